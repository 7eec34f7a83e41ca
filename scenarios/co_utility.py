"""Is it in everybody's own interest to follow the protocol? (Paper 004, sections 2.3 and 4.)

    python scenarios/co_utility.py [--people 40] [--runs 12] [--json]

All but one respondent follow the protocol; the last one, Ann, tries each strategy in turn (in each
run another of the people is Ann). Every profile is played as a real (simulated) study, and two
things are measured each time:

* accuracy: how much of the true table (district by income) the release gets right, 0 to 1;
* exposure: how likely it is that somebody who knows Ann's district, age and education picks her
  confidential values out of what was published.

Ann's gain is *interest* × accuracy, if she gets the data, minus *concern* × exposure. Her best
reply depends on what she cares about, so it is shown for a grid of both. The strategies:

* follow: report truthfully;
* refuse: do not take part (and get the data only if they are for all);
* free-ride: take part with invented confidential values;
* deviate: report truthfully, but tell everybody which record is one's own.

At the end the three ways of section 4 are compared: a collector who is trusted with everything,
masking alone, and collaborating.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mpc_rr.publication.groups import KAnonymous
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running import simulate
from mpc_rr.schema import Record
from mpc_rr.study.file import Scenario, load_scenario

SURVEY = Path(__file__).parent / "anonymous_survey.toml"
STRATEGIES = ("follow", "refuse", "free-ride", "deviate")
INCOME_STEPS = (0, 15, 30, 60, 201)
"""Limits of the income classes, in steps of 100."""
INTERESTS = (0.0, 0.25, 0.5, 1.0)
CONCERNS = (0.0, 0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Measured:
    """What one strategy brings, on average over the runs."""

    accuracy: float
    exposure: float
    others_exposure: float

    def gain(self, interest: float, concern: float, *, gets_data: bool) -> float:
        """Ann's gain, with these preferences."""
        return interest * self.accuracy * gets_data - concern * self.exposure


def play(survey: Scenario, people: list[Record], seed: int) -> KAnonymous:
    """One study, simulated."""
    count = msgspec.structs.replace(survey.study.parties, count=len(people), minimum=len(people))
    study = msgspec.structs.replace(survey.study, parties=count)
    result = simulate(study, people, seed=seed).outcome.result
    assert isinstance(result, KAnonymous)
    return result


def table(districts: list[int], incomes: list[int]) -> np.ndarray:
    """Shares of district by class of income."""
    found, _, _ = np.histogram2d(districts, incomes, bins=(range(5), INCOME_STEPS))
    return found / max(found.sum(), 1)


def accuracy(result: KAnonymous, people: list[Record]) -> float:
    """One minus the total variation between the released and the true table."""
    sheet = result.sheets()["release"]
    columns = {name: sheet[0].index(name) for name in ("district", "income")}
    names = result.schema.attributes[0].categories
    districts = [names.index(row[columns["district"]]) for row in sheet[1:]]
    incomes = [int(row[columns["income"]]) // 100 for row in sheet[1:]]
    true = table([p[0] for p in people], [p[3] for p in people])
    return 1 - float(np.abs(table(districts, incomes) - true).sum()) / 2


def measure(survey: Scenario, people: list[Record], strategy: str, seeds: range) -> Measured:
    """Play a strategy several times."""
    rows = []
    for seed in seeds:
        place = seed % len(people)
        ann, others = people[place], people[:place] + people[place + 1 :]
        if strategy == "free-ride":
            invented = (
                SeededRandomness(seed).below(201, ()),
                SeededRandomness(seed + 1).below(2, ()),
            )
            ann = (*ann[:3], *(int(value) for value in invented))
        playing = others if strategy == "refuse" else [ann, *others]
        result = play(survey, playing, seed)
        sizes = [len(group) for group in result.groups for _ in group]
        own = next((g for g in result.groups if min(result.known) in g), ())  # she is the first
        exposure = {"refuse": 0.0, "free-ride": 0.0, "deviate": 1.0}.get(strategy, 1 / len(own))
        hiding = [1 / size for size in sizes]
        if strategy == "deviate":  # whoever is in her group has one candidate less
            hiding = [1 / (len(g) - (g == own)) for g in result.groups for _ in g]
        rows.append((accuracy(result, people), exposure, float(np.mean(hiding))))
    return Measured(*(float(value) for value in np.mean(rows, axis=0)))


def best_reply(found: dict[str, Measured], interest: float, concern: float, *, open_data: bool) -> (
    str
):  # fmt: skip
    """The strategy with the highest gain; of equal ones, the first."""
    gains = {
        name: measured.gain(interest, concern, gets_data=open_data or name != "refuse")
        for name, measured in found.items()
    }
    if max(gains.values()) <= 0:
        return "refuse"
    return max(gains, key=lambda name: gains[name])


def most_concern(found: dict[str, Measured], *, open_data: bool) -> float:
    """Below so much concern for each interest, following beats refusing and invented values."""
    others = ["free-ride", "refuse"] if open_data else ["free-ride"]
    follow = found["follow"]
    lost = min(follow.accuracy - found[name].accuracy for name in others)
    return max(lost, 0.0) / follow.exposure


def paradigms(survey: Scenario, people: list[Record], following: Measured) -> dict[str, Measured]:
    """Section 4: a trusted collector, masking alone, and collaborating."""
    k = survey.study.protocol.k
    rng = np.random.default_rng(1)
    # Alone she cannot know how close others are, so she spreads over a k-th part of all incomes.
    width = 201 * k // len(people) * 2
    masked = [p[3] + int(rng.integers(-width, width + 1)) for p in people]
    moved = [int(rng.integers(4)) if rng.random() < 1 - 1 / k else p[0] for p in people]
    true = table([p[0] for p in people], [p[3] for p in people])
    alone = 1 - float(np.abs(table(moved, list(np.clip(masked, 0, 200))) - true).sum()) / 2
    return {
        "trusted collector": Measured(following.accuracy, 1.0, following.others_exposure),
        "masking alone": Measured(alone, 1 / k, 1 / k),
        "collaborating": following,
    }


def main() -> None:
    """Play, measure, show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=40, help="how many respondents (40)")
    parser.add_argument("--runs", type=int, default=12, help="how often each strategy is played")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    options = parser.parse_args()
    survey = load_scenario(SURVEY)
    people = survey.records()[: options.people]
    console = Console(stderr=True)
    found = {
        strategy: measure(survey, people, strategy, range(options.runs))
        for strategy in track(STRATEGIES, "playing", console=console, transient=True)
    }
    limits = {
        "for participants": most_concern(found, open_data=False),
        "for all": most_concern(found, open_data=True),
    }
    ways = paradigms(survey, people, found["follow"])
    if options.json:
        shown = {name: vars(measured) for name, measured in (found | ways).items()}
        grid = [
            {"interest": i, "concern": c, "data": data, "best_reply": best_reply(
                found, i, c, open_data=data == "for all")}
            for data in ("for all", "for participants")
            for i in INTERESTS
            for c in CONCERNS
        ]  # fmt: skip
        print(json.dumps({"measured": shown, "concern_per_interest": limits, "replies": grid}))
        return
    show(found, ways, limits, options.runs)


def show(
    found: dict[str, Measured], ways: dict[str, Measured], limits: dict[str, float], runs: int
) -> None:
    """Tables for people."""
    console = Console()
    console.print(
        "Ann is one of the respondents; all others follow the protocol. She can follow, refuse to "
        "take part, free-ride (take part with invented values) or deviate (tell everybody which "
        "record is hers). Accuracy: how much of the true table the release gets right, 0 to 1. "
        "Exposure: how likely her values are picked out by whoever knows her quasi-identifiers.",
        highlight=False,
    )
    three = "Three ways: trust a collector, mask alone, or collaborate"
    for title, rows in (("What each strategy brings Ann", found), (three, ways)):
        shown = Table(title=title, title_justify="left")
        for heading in ("", "accuracy", "exposure of Ann", "of the others"):
            shown.add_column(heading, justify="right" if heading else "left")
        for name, m in rows.items():
            shown.add_row(
                name, f"{m.accuracy:.3f}", f"{m.exposure:.3f}", f"{m.others_exposure:.3f}"
            )
        console.print(shown)
    for open_data in (False, True):
        who = "everybody gets the data" if open_data else "only participants get the data"
        grid = Table(title=f"Ann's best reply if {who}", title_justify="left")
        grid.add_column("interest \\ concern")
        for concern in CONCERNS:
            grid.add_column(f"{concern:g}")
        for interest in INTERESTS:
            replies = [best_reply(found, interest, c, open_data=open_data) for c in CONCERNS]
            grid.add_row(f"{interest:g}", *replies)
        console.print(grid)
    console.print(
        f"In short, by these {runs} runs of each strategy: following is Ann's best reply as long "
        "as her concern about exposure is below "
        f"{limits['for participants']:.3f} of her interest in the data if only participants get "
        f"them, and below {limits['for all']:.3f} if everybody does: what her own false, or "
        "missing, answer would cost the data, divided by her exposure. (0 means: nowhere.) The "
        "more people, the less one answer matters, and the smaller this is. Whoever is more "
        "concerned does best with invented values, or by staying away; to tell everybody which "
        "record is one's own never pays. (Concern and interest: how much one would give for full "
        "exposure not to happen, and for perfect data.)",
        highlight=False,
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
