"""Studies that come with the package, by name: ``mpc-rr run quickstart``.

Their home is ``scenarios/`` in the repository; a wheel carries them as ``mpc_rr/examples/``.
"""

import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpc_rr.errors import ResultsError, ScenarioError, listing

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED, CHECKOUT = PACKAGE / "examples", PACKAGE.parent / "scenarios"
NAME = re.compile(r"[a-z][a-z0-9_]*")
DATA_FILE = re.compile(r'^csv = "([^"/\\]+)"', re.MULTILINE)
END_OF_SENTENCE = re.compile(r"(?<=\.)\s")


@dataclass(frozen=True)
class Example:
    """A study file that comes with the package."""

    name: str
    path: Path

    @property
    def text(self) -> str:
        """The study file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def sentence(self) -> str:
        """What happens in it: the first sentence of the comment at its top."""
        lines = []
        for line in self.text.splitlines():
            if not line.startswith("# "):
                break
            lines.append(line.removeprefix("# "))
        return END_OF_SENTENCE.split(" ".join(lines), maxsplit=1)[0]

    @property
    def has_data(self) -> bool:
        """Whether it can be run as it is."""
        return "\n[data" in self.text

    @property
    def protocol(self) -> str:
        """Which protocol it plays."""
        found = re.search(r'^name = "(\w+)"', self.text.partition("[protocol]")[2], re.MULTILINE)
        return "" if found is None else found[1]

    @property
    def files(self) -> tuple[Path, ...]:
        """The study file, and the data file that it names, if it comes with it."""
        named = (self.path.parent / name for name in DATA_FILE.findall(self.text))
        return (self.path, *(path for path in named if path.is_file()))

    def copy(self, folder: Path) -> tuple[Path, ...]:
        """Its files in a folder, to be changed there; nothing that is there is overwritten."""
        wanted = [folder / path.name for path in self.files]
        there = [str(path) for path in wanted if path.exists()]
        if there:
            raise ResultsError(f"{listing(there)} exists already; name another folder with --out")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path, copied in zip(self.files, wanted, strict=True):
                shutil.copyfile(path, copied)
        except OSError as error:
            raise ResultsError(f"cannot write to {folder}: {error.strerror}") from None
        return tuple(wanted)


@cache
def examples() -> dict[str, Example]:
    """All of them, by name."""
    folder = INSTALLED if INSTALLED.is_dir() else CHECKOUT
    return {path.stem: Example(path.stem, path) for path in sorted(folder.glob("*.toml"))}


def example(name: str) -> Example:
    """The example of this name; `ScenarioError` if there is none."""
    found = examples().get(name)
    if found is None:
        raise ScenarioError(f"there is no example {name!r}; there are {listing(examples())}")
    return found


def study_path(path: Path) -> Path:
    """A file as it is; a bare word that is no file here, the example of this name."""
    if path.exists() or not NAME.fullmatch(str(path)):
        return path
    found = examples().get(str(path))
    if found is None:
        raise ScenarioError(
            f"there is no file {path} here, and no example of this name; mpc-rr examples lists them"
        )
    return found.path
