"""A benchmark, found by its name, and one run of it."""

import argparse
import ast
import importlib
import secrets
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.cost import Cost
from benchmarks.harness.results import Figures, Session, machine
from benchmarks.harness.rows import Row
from benchmarks.harness.show import in_one_line

FOLDER = Path(__file__).parent.parent
OWN = ("seed", "out", "data")


class Cannot(Exception):
    """Why a benchmark cannot be run, in a sentence."""


def names() -> list[str]:
    """Of all benchmarks: the files of this folder that are not private."""
    return sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))


def title(name: str) -> str:
    """The first line of its docstring, without importing what it needs."""
    told = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or ""
    return told.split("\n", maxsplit=1)[0]


def module_of(name: str) -> ModuleType:
    """The module that measures; `Cannot` if there is none."""
    if name not in names():
        raise Cannot(f"there is no benchmark {name!r}; there are {', '.join(names())}")
    return importlib.import_module(f"benchmarks.{name}")


class Run:
    """What a benchmark is given: its options, its random numbers, its data."""

    def __init__(self, options: argparse.Namespace, seed: int, shown: TextIO | None = None) -> None:
        self.options, self.seed = options, seed
        self._shown = shown or sys.stderr

    def rngs(self, runs: int, *where: object) -> list[np.random.Generator]:
        """One generator for each run of a setting: whoever names the same gets the same."""
        place = zlib.crc32(repr(where).encode())
        return np.random.default_rng([self.seed, place]).spawn(runs)

    def data(self, name: str) -> Path:
        """A file in the data folder; `Cannot` if it is not there."""
        folder = self.options.data
        if folder is None or not (folder / name).exists():
            raise Cannot(f"{name} is needed: say with --data in which folder it is")
        return Path(folder / name)

    def tell(self, text: str) -> None:
        """While it lasts: what is not measured and why, or how far it is."""
        print(text, file=self._shown, flush=True)


def parser_of(module: ModuleType) -> argparse.ArgumentParser:
    """Its options and those that all benchmarks have."""
    name = module.__name__.rpartition(".")[2]
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks run {name}", description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    if hasattr(module, "add_options"):
        module.add_options(parser)
    parser.add_argument("--seed", type=int, help="to repeat a run; a fresh one unless given")
    parser.add_argument("--data", type=Path, help="the folder with the data files")
    parser.add_argument(
        "--out", type=Path, help="JSON file; rows in it that are not measured again stay"
    )
    return parser


def carried_out(name: str, arguments: list[str], shown: TextIO | None = None) -> Figures:
    """Run a benchmark and write after each row: a run that is stopped has not been in vain."""
    module = module_of(name)
    options = parser_of(module).parse_args(arguments)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    run = Run(options, seed, shown)
    run.tell(f"{name}, seed {seed}")
    before = results.read(options.out) if options.out and options.out.exists() else None
    rows: list[Row] = []
    with Cost() as cost:
        for row in _rows(module, run):
            rows.append(row)
            run.tell(in_one_line(row))
            if options.out is not None:
                _write(options.out, before, _figures(name, run, cost, rows))
    if not rows:
        raise Cannot("nothing was measured: no setting is left by these options")
    return _figures(name, run, cost, rows)


def _rows(module: ModuleType, run: Run) -> Iterator[Row]:
    found: Iterable[Row] = module.measure(run)
    yield from found


def _figures(name: str, run: Run, cost: Cost, rows: list[Row]) -> Figures:
    told: dict[str, Any] = {
        key: [str(v) for v in value] if isinstance(value, list | tuple) else _told(value)
        for key, value in vars(run.options).items()
        if key not in OWN and value is not None
    }
    session = Session(
        options=told, seed=run.seed, machine=machine(),
        wall_s=round(cost.wall_s, 1), processor_s=round(cost.processor_s, 1),
    )  # fmt: skip
    return Figures(benchmark=name, sessions=(session,), rows=tuple(rows))


def _told(value: Any) -> Any:
    """Of a path only its name: where a folder lies on this machine is nobody's business."""
    return value.name if isinstance(value, Path) else value


def _write(path: Path, before: Figures | None, figures: Figures) -> None:
    results.write(path, before.renewed(figures) if before else figures)
