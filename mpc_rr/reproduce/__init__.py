"""Tables and figures of the papers, computed anew: ours beside the printed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpc_rr.errors import InputError
from mpc_rr.reproduce import (
    blocks,
    confidentiality,
    convergence,
    independence,
    lambdas,
    mdrr_figures,
    mdrr_tables,
    truth,
)
from mpc_rr.reproduce.adult import (
    CONFIDENTIALITY_ATTRIBUTES,
    MDRR_ATTRIBUTES,
    Records,
    read_adult,
)
from mpc_rr.reproduce.result import Reproduction
from mpc_rr.reproduce.runs import OnProgress
from mpc_rr.reproduce.verdict import HOW_JUDGED

SEED = 1


@dataclass(frozen=True)
class OnData:
    """A reproduction that needs the Adult data, and how often it repeats its experiment."""

    attributes: tuple[str, ...]
    runs: int
    compute: Callable[[Records, int, int, OnProgress], Reproduction]


@dataclass(frozen=True)
class OnNetwork:
    """A reproduction that samples a Bayesian network."""

    runs: int
    compute: Callable[[Path, int, int, OnProgress], Reproduction]


@dataclass(frozen=True)
class OnNothing:
    """A reproduction that needs no data, and how often it repeats its experiment."""

    runs: int
    compute: Callable[[int, int, OnProgress], Reproduction]


Kind = OnData | OnNetwork | OnNothing | Callable[[], Reproduction]
REPRODUCTIONS: dict[str, Kind] = {
    "mdrr-table1": OnData(MDRR_ATTRIBUTES, 1000, mdrr_tables.table1),
    "mdrr-table2": OnData(MDRR_ATTRIBUTES, 1000, mdrr_tables.table2),
    "mdrr-fig1": mdrr_figures.figure1,
    "mdrr-fig2": OnData(MDRR_ATTRIBUTES, 1000, mdrr_figures.figure2),
    "mdrr-fig3": OnData(MDRR_ATTRIBUTES, 200, mdrr_figures.figure3),
    "lambda-table1": lambdas.table1,
    "rrba-fig4": truth.figure4,
    "rrba-table4": OnNothing(100, independence.table4),
    "rrba-table5": OnNetwork(100, partial(blocks.distances, 5)),
    "rrba-table6": OnNetwork(100, partial(blocks.distances, 6)),
    "rrba-fig7": OnNetwork(100, blocks.figure7),
    "rrba-fig5": OnNothing(40, convergence.figure5),
    "rrba-fig6": OnNothing(40, convergence.figure6),
    "confidentiality-table1": confidentiality.table1,
    **{
        f"confidentiality-fig{number}": OnData(
            CONFIDENTIALITY_ATTRIBUTES, 10, partial(confidentiality.figure, number)
        )
        for number in (1, 2, 3)
    },
}


def _silent(_done: int, _of: int) -> None:
    pass


def reproduce(
    name: str,
    data: Path | None = None,
    *,
    runs: int | None = None,
    seed: int = SEED,
    progress: OnProgress = _silent,
) -> Reproduction:
    """The reproduction of this name; `InputError` lists the names there are."""
    if name not in REPRODUCTIONS:
        raise InputError(f"there is no {name!r} to reproduce; known: {', '.join(REPRODUCTIONS)}")
    found = REPRODUCTIONS[name]
    if not isinstance(found, OnData | OnNetwork | OnNothing):
        if data is not None or runs is not None:
            raise InputError(f"{name} needs neither --data nor --runs")
        return found()
    if runs is not None and runs < 1:
        raise InputError(f"the number of runs must be positive, not {runs}")
    if seed < 0:
        raise InputError(f"a seed must not be negative, not {seed}")
    repeats = found.runs if runs is None else runs
    result = _computed(name, found, data, repeats, seed, progress)
    usual = "" if repeats == found.runs else f" (the default is {found.runs:,})"
    remark = f"{repeats:,} run{'s' if repeats > 1 else ''}{usual}, seed {seed}. {HOW_JUDGED}"
    return replace(result, remarks=(*result.remarks, remark))


def _computed(
    name: str,
    found: OnData | OnNetwork | OnNothing,
    data: Path | None,
    runs: int,
    seed: int,
    progress: OnProgress,
) -> Reproduction:
    match found:
        case OnNothing():
            if data is not None:
                raise InputError(f"{name} needs no --data")
            return found.compute(runs, seed, progress)
        case OnNetwork():
            return found.compute(blocks.need_network(name, data), runs, seed, progress)
        case OnData():
            if data is None:
                raise InputError(
                    f"{name} needs the Adult data: give --data FILE.csv (mpc-rr data adult "
                    "downloads it)"
                )
            return found.compute(read_adult(data, found.attributes), runs, seed, progress)
