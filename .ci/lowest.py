"""Print the lowest version of each direct dependency that pyproject.toml allows, for ``pip -c``.

Usage: python .ci/lowest.py [EXTRA…]
"""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def lowest(requirement: Requirement) -> str | None:
    """``name==version``, or None where there is no lower bound."""
    bounds = [bound.version for bound in requirement.specifier if bound.operator == ">="]
    return f"{requirement.name}=={bounds[0]}" if bounds else None


for line in sum(
    (PROJECT["optional-dependencies"][extra] for extra in sys.argv[1:]), PROJECT["dependencies"]
):
    if pinned := lowest(Requirement(line)):
        sys.stdout.write(pinned + "\n")
