"""Independent repetitions of an experiment, on all cores, with progress."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar, cast

import numpy as np

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Told how many runs are done, of how many."""

WORTH_A_POOL = 20
"""Fewer runs than this are over before other processes have started."""


def repeat(
    task: Callable[[np.random.Generator], T], runs: int, seed: int, progress: OnProgress
) -> list[T]:
    """``task`` once for each run, each with random numbers of its own.

    The result depends on the seed alone, not on how many cores there are. ``task`` must be
    picklable.
    """
    seeds = np.random.SeedSequence(seed).spawn(runs)
    results: list[T] = []
    for result in _each(task, seeds):
        results.append(result)
        progress(len(results), runs)
    return results


def _each(
    task: Callable[[np.random.Generator], T], seeds: list[np.random.SeedSequence]
) -> Iterator[T]:
    cores = os.cpu_count() or 1
    if len(seeds) < WORTH_A_POOL or cores == 1:
        yield from (task(np.random.default_rng(seed)) for seed in seeds)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(cores, context, _prepare, (task,)) as pool:
        yield from cast(
            "Iterator[T]", pool.map(_one, seeds, chunksize=max(1, len(seeds) // (cores * 50)))
        )


_task: list[Callable[[np.random.Generator], object]] = []


def _prepare(task: Callable[[np.random.Generator], object]) -> None:
    """In a new process: keep the task, with its data, for all runs to come."""
    _task[:] = [task]


def _one(seed: np.random.SeedSequence) -> object:
    return _task[0](np.random.default_rng(seed))
