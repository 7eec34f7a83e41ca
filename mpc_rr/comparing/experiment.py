"""One run of one trial, and what many of them come to."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mpc_rr.comparing.questions import Key, Questions
from mpc_rr.comparing.side_by_side import Measured, Method, NotRun, WeightsWorth
from mpc_rr.comparing.trials import Outcome, Trial, Weights, asked_once
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Schema

Unit = tuple[float, str, int]
"""ε, a trial, and the number of the run."""
Trials = Mapping[float, Mapping[str, Trial]]
"""By ε and name."""


@dataclass(frozen=True)
class Graded:
    """How wrong all methods of a trial were in a run."""

    errors: dict[str, dict[Key, float]]
    untold: dict[str, dict[str, str]]
    """By method and question, why it leaves it open."""
    outcome: dict[str, str]
    """Methods that could not be had, and why."""
    weights: dict[str, Weights]


@dataclass(frozen=True)
class Experiment:
    """People, questions and trials: a unit of work can be done in any process, in any order."""

    schema: Schema
    questions: Questions
    trials: Trials
    seed: int

    def __call__(self, unit: Unit) -> Graded:
        """One run of one trial. Its chance follows from the seed and the unit alone."""
        epsilon, name, run = unit
        rng = SeededRandomness(self.seed).fork(f"answers {name} {epsilon!r} {run}")
        records = self.questions.records.codes
        outcome: Outcome = asked_once(self.trials[epsilon][name], self.schema, records, rng)
        graded = {
            method: self.questions.errors(told, run) for method, told in outcome.methods.items()
        }
        return Graded(
            {method: errors for method, (errors, _) in graded.items()},
            {method: untold for method, (_, untold) in graded.items()},
            outcome.untold,
            outcome.weights,
        )


def methods_of(trial: Trial, epsilon: float) -> Iterator[Method]:
    """The facts of all methods of a trial."""
    protocol = None if trial.design.protocol is None else trial.design.protocol.name
    for name in trial.methods:
        yield Method(
            name, epsilon, trial.design.what, protocol, trial.trusted, trial.central, trial.delta
        )


def summary(
    done: Mapping[Unit, Graded], trials: Trials, runs: int
) -> tuple[tuple[Measured, ...], tuple[NotRun, ...]]:
    """The errors of methods that came out in every run; and what did not, and why."""
    measured: list[Measured] = []
    left_open: list[NotRun] = []
    for epsilon, own in trials.items():
        for name, trial in own.items():
            graded = [done[epsilon, name, run] for run in range(runs)]
            for method in trial.methods:
                failed = [each.outcome[method] for each in graded if method in each.outcome]
                if failed:
                    times = "" if len(failed) == runs else f" (in {len(failed)} of {runs} runs)"
                    left_open.append(NotRun(epsilon, method, f"{failed[0]}{times}"))
                    continue
                for question, why in graded[0].untold[method].items():
                    left_open.append(NotRun(epsilon, method, why, question))
                measured += [
                    Measured(
                        epsilon, method, question, error,
                        tuple(each.errors[method][question, error] for each in graded),
                    )
                    for question, error in graded[0].errors[method]
                ]  # fmt: skip
    return tuple(measured), tuple(left_open)


def weights_worth(done: Mapping[Unit, Graded]) -> tuple[WeightsWorth, ...]:
    """What weights were worth, over all runs that had any."""
    found: dict[tuple[float, str], list[Weights]] = {}
    for (epsilon, _, _), graded in done.items():
        for method, weights in graded.weights.items():
            found.setdefault((epsilon, method), []).append(weights)
    return tuple(
        WeightsWorth(
            epsilon=epsilon,
            method=method,
            runs=len(every),
            converged=sum(each.converged for each in every),
            missed=max(each.missed for each in every),
            effective=statistics.fmean(each.effective for each in every),
        )
        for (epsilon, method), every in found.items()
    )
