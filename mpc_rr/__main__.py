"""``python -m mpc_rr`` is ``mpc-rr``."""

import sys


def main() -> None:
    """Load the command line (which takes a moment) and run it; Ctrl-C is quiet from the start."""
    try:
        from mpc_rr import cli  # noqa: PLC0415

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
