"""``list``, ``run`` and ``compare``."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.harness import results
from benchmarks.harness.comparison import Change, compare
from benchmarks.harness.results import COMMITTED, Figures
from benchmarks.harness.running import Cannot, carried_out, names, title
from benchmarks.harness.show import show_comparison, show_figures

NARROWEST = 120
USAGE = """usage: python -m benchmarks list
       python -m benchmarks run NAME [--help] [options]
       python -m benchmarks compare [NAME ...] [--fresh FILE_OR_FOLDER] [options of run]"""


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 if something became worse; 2 if it could not be run."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, NARROWEST)
    try:
        match given:
            case ["list"]:
                return _list(console)
            case ["run", name, *rest]:
                show_figures(console, carried_out(name, rest))
                return 0
            case ["compare", *rest]:
                return _compare(console, rest)
    except Cannot as why:
        print(f"benchmarks: {why}", file=sys.stderr)
        return 2
    print(USAGE, file=sys.stderr)
    return 2


def _list(console: Console) -> int:
    for name in names():
        has = "" if (COMMITTED / f"{name}.json").exists() else "  (no committed figures)"
        console.print(f"{name}: {title(name)}{has}", soft_wrap=True)
    return 0


def _compare(console: Console, given: list[str]) -> int:
    wanted = list(itertools.takewhile(lambda word: not word.startswith("-"), given))
    parser = argparse.ArgumentParser(prog="python -m benchmarks compare", add_help=False)
    parser.add_argument("--fresh", type=Path)
    options, rest = parser.parse_known_args(given[len(wanted) :])
    if options.fresh is None:
        fresh = _run_anew(wanted, rest)
    elif rest:
        raise Cannot(f"figures that are read need no {rest[0]}")
    else:
        fresh = _found_in(options.fresh, wanted)
    worse = False
    for figures in fresh:
        was = results.committed(figures.benchmark)
        if was is None:
            raise Cannot(f"no figures of {figures.benchmark} are committed")
        found = compare(was, figures)
        show_comparison(console, figures.benchmark, found)
        worse |= any(c.change is Change.WORSE for c in found)
    return int(worse)


def _run_anew(wanted: list[str], rest: list[str]) -> list[Figures]:
    if not wanted:
        raise Cannot("name the benchmarks to run, or say with --fresh where their figures are")
    return [carried_out(name, rest) for name in wanted]


def _found_in(place: Path, wanted: list[str]) -> list[Figures]:
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    if missing := [str(file) for file in files if not file.exists()]:
        raise Cannot(f"there is no {missing[0]}")
    found = [results.read(file) for file in files]
    chosen = [f for f in found if not wanted or f.benchmark in wanted]
    if absent := set(wanted) - {f.benchmark for f in chosen}:
        raise Cannot(f"{place} has no figures of {', '.join(sorted(absent))}")
    if not chosen:
        raise Cannot(f"{place} has no figures")
    return chosen
