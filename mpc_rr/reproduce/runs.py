"""Independent repetitions of an experiment, on all cores, with progress."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Generic, TypeVar, cast

import numpy as np

S = TypeVar("S")
T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Told how many runs are done, of how many."""

WORTH_A_POOL = 20
"""Fewer runs than this are over before other processes have started."""


def shifted(progress: OnProgress, before: int, of: int) -> OnProgress:
    """The progress of one experiment of several: so many runs were done before, of how many."""
    return lambda done, _runs: progress(before + done, of)


def repeat(
    task: Callable[[np.random.Generator], T], runs: int, seed: int, progress: OnProgress
) -> list[T]:
    """``task`` once for each run, each with random numbers of its own.

    The result depends on the seed alone, not on how many cores there are. ``task`` must be
    picklable.
    """
    seeds = np.random.SeedSequence(seed).spawn(runs)
    few = runs < WORTH_A_POOL
    return each_of(_Run(task), seeds, progress, processes=1 if few else None)


@dataclass
class _Run(Generic[T]):
    """One run with the random numbers of a seed."""

    task: Callable[[np.random.Generator], T]

    def __call__(self, seed: np.random.SeedSequence) -> T:
        return self.task(np.random.default_rng(seed))


def each_of(
    work: Callable[[S], T],
    items: Sequence[S],
    progress: OnProgress,
    *,
    processes: int | None = None,
) -> list[T]:
    """``work`` on each item, on all cores (or in so many processes); both must be picklable."""
    results: list[T] = []
    for result in _each(work, items, processes or os.cpu_count() or 1):
        results.append(result)
        progress(len(results), len(items))
    return results


def _each(work: Callable[[S], T], items: Sequence[S], processes: int) -> Iterator[T]:
    if processes == 1:
        yield from map(work, items)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, _prepare, (work,)) as pool:
        chunk = max(1, len(items) // (processes * 50))
        yield from cast("Iterator[T]", pool.map(_one, items, chunksize=chunk))


_work: list[Callable[[Any], object]] = []


def _prepare(work: Callable[[Any], object]) -> None:
    """In a new process: keep the work, with its data, for all items to come."""
    _work[:] = [work]


def _one(item: object) -> object:
    return _work[0](item)
