"""The comparison: everybody answers by every protocol, in each run anew, and all is asked alike."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_rr.comparing.experiment import Experiment, methods_of, summary, weights_worth
from mpc_rr.comparing.questions import Questions, widths_of
from mpc_rr.comparing.side_by_side import NotRun, SideBySide
from mpc_rr.comparing.trials import clusters_of, trials_at
from mpc_rr.errors import DataError, InputError, all_quoted, quoted
from mpc_rr.estimation.condition_language import parse_condition
from mpc_rr.estimation.estimates import checked_cells
from mpc_rr.estimation.matrix import Codes
from mpc_rr.estimation.planning import LARGEST_TOTAL
from mpc_rr.planning.crowds import Pilot
from mpc_rr.planning.designs import check_categories
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import Records
from mpc_rr.reproduce.runs import each_of
from mpc_rr.schema import Schema
from mpc_rr.study.columns import column_names
from mpc_rr.study.frames import records_from_frame, schema_from_frame, unsuitable_columns

EPSILON = 2.0
MOST_PEOPLE = 10_000
"""So many records of a file are taken unless more are wished."""
FEWEST_PEOPLE = 20
RUNS = ((12, 10), (24, 5))
"""Up to so many attributes, so many runs."""
FEWEST_RUNS = 3
WORTH_A_POOL = 500_000
"""Fewer answers than this, over all runs, are given before other processes have started."""
SEED = 1

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True)
class Effort:
    """On how many people, how often, and in how many processes."""

    people: int | None = None
    runs: int | None = None
    seed: int = SEED
    processes: int | None = 1
    """None: one for each core."""
    progress: Progress | None = None
    only: tuple[str, ...] = ()
    """The trials to run; none named: all."""

    def __post_init__(self) -> None:
        if self.people is not None and self.people < FEWEST_PEOPLE:
            raise InputError(
                f"{self.people} people are too few to compare anything: take {FEWEST_PEOPLE} or "
                "more"
            )
        if self.runs is not None and self.runs < 1:
            raise InputError(f"the number of runs must be positive, not {self.runs}")

    def runs_of(self, attributes: int) -> int:
        """The more attributes, the fewer runs."""
        if self.runs is not None:
            return self.runs
        return next((runs for most, runs in RUNS if attributes <= most), FEWEST_RUNS)


USUAL = Effort()


def compare(  # noqa: PLR0913  (one for each option of the command)
    frame: Any,
    epsilons: Sequence[float] = (EPSILON,),
    *,
    schema: Schema | None = None,
    where: Sequence[str] = (),
    people: int | None = None,
    only: Sequence[str] = (),
    runs: int | None = None,
    seed: int = SEED,
    processes: int | None = 1,
    progress: Progress | None = None,
) -> SideBySide:
    """All protocols side by side on a data frame (or a dict of columns), as `mpc-rr compare`.

    Without a ``schema`` the questions are those that the columns answer; columns of which no
    question can be made are left out. ``where``: conditions of your own (``docs/query.md``).
    ``only``: names of what is compared (``independent``, ``views``, …); all if none is given.
    ``processes``: None is one for each core; a script that uses more than one needs the usual
    ``if __name__ == "__main__":``.
    """
    effort = Effort(people, runs, seed, processes, progress, tuple(only))
    left_out: dict[str, str] = {}
    if schema is None:
        left_out = unsuitable_columns(frame)
        kept = [name for name in column_names(frame) if name not in left_out]
        if len(kept) < 2:
            raise DataError(
                "two columns are needed of which questions can be made; " + "; ".join(
                    f"{name!r}: {why}" for name, why in left_out.items()
                )
            )  # fmt: skip
        schema = schema_from_frame(frame, attributes=kept)
    records = records_from_frame(frame, schema)
    return compare_records(records, schema, epsilons, where, effort, left_out)


def compare_records(
    records: Codes,
    schema: Schema,
    epsilons: Sequence[float],
    where: Sequence[str] = (),
    effort: Effort = USUAL,
    left_out: Mapping[str, str] | None = None,
) -> SideBySide:
    """The same for records as category numbers."""
    check_categories(schema)
    _check_epsilons(epsilons)
    if len(records) < FEWEST_PEOPLE:
        raise DataError(
            f"there are {len(records)} records; of fewer than {FEWEST_PEOPLE} nothing can be told"
        )
    cells = {text: checked_cells(parse_condition(text, schema), schema.sizes) for text in where}
    people = _people(records, effort)
    sizes, n = schema.sizes, len(people)
    clusters = clusters_of(people, sizes)
    questions = Questions(
        Records(schema.names, sizes, people), widths_of(sizes, n, effort.seed), cells, effort.seed
    )
    trials, refused = {}, []
    for epsilon in epsilons:
        there, not_there = trials_at(schema, n, epsilon, clusters)
        wanted = _wanted(effort.only, [*(trial.name for trial in there), *not_there])
        trials[epsilon] = {trial.name: trial for trial in there if trial.name in wanted}
        refused += [NotRun(epsilon, name, why) for name, why in not_there.items() if name in wanted]
    runs = effort.runs_of(len(sizes))
    units = [(e, name, run) for run in range(runs) for e, own in trials.items() for name in own]
    found = each_of(
        Experiment(schema, questions, trials, effort.seed),
        units,
        effort.progress or _silently,
        processes=effort.processes if n * len(sizes) * runs >= WORTH_A_POOL else 1,
    )
    done = dict(zip(units, found, strict=True))
    measured, left_open = summary(done, trials, runs)
    return SideBySide(
        names=schema.names,
        left_out=dict(left_out or {}),
        in_file=len(records),
        people=n,
        runs=runs,
        seed=effort.seed,
        epsilons=tuple(epsilons),
        clusters=tuple(tuple(schema.names[a] for a in c) for c in clusters if len(c) > 1),
        widths=questions.widths,
        conditions={text: questions.meeting(own) for text, own in cells.items()},
        methods=tuple(method for e, own in trials.items() for trial in own.values()
                      for method in methods_of(trial, e)),
        measured=measured,
        not_run=(*refused, *left_open),
        weights=weights_worth(done),
    )  # fmt: skip


def _wanted(only: Sequence[str], known: Sequence[str]) -> Collection[str]:
    """The trials that are asked for; `InputError` if there is no such."""
    stray = [name for name in only if name not in known]
    if stray:
        raise InputError(
            f"there is nothing called {quoted(stray[0])} to compare; there are {all_quoted(known)}"
        )
    return only or known


def _silently(_done: int, _of: int) -> None:
    """Nobody is told."""


def _check_epsilons(epsilons: Sequence[float]) -> None:
    if not epsilons:
        raise InputError("give at least one epsilon")
    for epsilon in epsilons:
        if not 0 < epsilon <= LARGEST_TOTAL:
            raise InputError(
                f"epsilon must be positive and at most {LARGEST_TOTAL:g}, not {epsilon:g}"
            )
    if len(set(epsilons)) < len(epsilons):
        raise InputError("the same epsilon is given twice")


def _people(records: Codes, effort: Effort) -> Codes:
    """Records drawn from the file; where more are wished than it has, some several times."""
    n, rng = effort.people or min(len(records), MOST_PEOPLE), SeededRandomness(effort.seed)
    if n > len(records):
        return Pilot(records).draw(n, rng.fork("people").uniform)
    if n == len(records):
        return records
    chosen = np.argsort(rng.fork("people").uniform((len(records),)), kind="stable")[:n]
    return np.asarray(records[np.sort(chosen)])
