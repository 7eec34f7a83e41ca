"""``python -m benchmarks list | run NAME | compare [NAME …]``, from the top of the repository."""

import sys

from benchmarks.harness.commands import main

if __name__ == "__main__":
    sys.exit(main())
