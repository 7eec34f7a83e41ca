"""The game of co-utility: what is played is what studies publish, and verdicts follow from runs."""

import itertools
import json
import sys
from pathlib import Path

import msgspec
import numpy as np
import processes
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED, PEOPLE, make_scenario, run

from mpc_rr.anonymization.beside import read_release
from mpc_rr.errors import InputError
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.reproduce.co_utility import (
    DEVIATE,
    FOLLOW,
    FREE_RIDE,
    OVERDO,
    REFUSE,
    CoUtility,
    GroupsGame,
    MasksGame,
    Played,
    Run,
    compared,
    play,
)
from mpc_rr.reproduce.verdict import Verdict

SCRIPT = Path(__file__).parent.parent / "scenarios" / "co_utility.py"
EIGHTS = np.array(PEOPLE)
TWICE = [*PEOPLE, *((zip_, age + 1, pay + 500) for zip_, age, pay in PEOPLE)]


def quiet(_done, _of):
    pass


def groups(**changed):
    return GroupsGame(msgspec.structs.replace(IN_GROUPS, **changed), EIGHT, EIGHTS, 1)


def masks():
    return MasksGame(MASKED, EIGHT, EIGHTS, 1)


def but(strategy, *, person=0, people=8):
    return [strategy if number == person else FOLLOW for number in range(people)]


# ── What is played is what is published ────────────────────────────────────────────────────────


@pytest.mark.parametrize("release", ["microaggregated", "generalized", "anatomy"])
def test_a_game_of_groups_releases_what_a_simulated_study_does(release):
    game, told = groups(release=release), []
    accuracy = game.accuracy_of
    game.accuracy_of = lambda attributes, released, open_: (
        told.append(released) or accuracy(attributes, released, open_)
    )
    game.play([FOLLOW] * 8)
    protocol = msgspec.structs.replace(IN_GROUPS, release=release)
    ending = run(protocol)[0].result
    studied = read_release(ending.grouped(), release)
    both = [
        sorted(map(tuple, np.vstack([*r.values, r.weights]).T.tolist())) for r in (told[0], studied)
    ]
    assert both[0] == both[1]


def test_who_refuses_is_not_in_the_release_and_who_rides_free_is_with_other_values():
    for game in (groups(), masks()):
        follow = game.play([FOLLOW] * 8)
        assert follow.there == (True,) * 8
        refused = game.play(but(REFUSE))
        assert refused.there == (False,) + (True,) * 7
        for strategy in (REFUSE, FREE_RIDE):
            assert game.play(but(strategy)).exposure[0] < follow.exposure[0]


def test_groups_of_four_with_different_salaries_expose_one_in_four():
    """As measured in Fig. 1: and whoever tells hers leaves the others one candidate fewer (§4)."""
    game = groups()
    assert game.play([FOLLOW] * 8).exposure == (0.25,) * 8
    told = game.play(but(DEVIATE)).exposure
    assert told == (1.0, *(pytest.approx(1 / 3),) * 3, *(0.25,) * 4)
    every = game.play([DEVIATE] * 3 + [FOLLOW] * 5).exposure
    assert every[3] == 1.0  # she is the one that is left


def test_equal_values_in_a_group_expose_more_than_one_in_k():
    same = EIGHTS.copy()
    same[:4, 2] = [100, 100, 100, 700]
    game = GroupsGame(IN_GROUPS, EIGHT, same, 1)
    assert game.play([FOLLOW] * 8).exposure[:4] == (0.75, 0.75, 0.75, 0.25)


def test_accuracy_is_what_few_lines_find():
    """By hand: zips against quarters of salaries, where zips are ranges of their group."""
    game = groups()
    edges = np.quantile(EIGHTS[:, 2], (0.25, 0.5, 0.75))
    quarter = np.searchsorted(edges, EIGHTS[:, 2], "right")
    true, told = {}, {}
    ages = np.searchsorted(np.quantile(EIGHTS[:, 1], (0.25, 0.5, 0.75)), EIGHTS[:, 1], "right")
    middles = np.searchsorted(
        np.quantile(EIGHTS[:, 1], (0.25, 0.5, 0.75)), [25] * 4 + [51] * 4, "right"
    )
    for n in range(8):
        for counts, zip_, age in ((true, EIGHTS[n, 0], ages[n]), (told, n // 4 + 100, middles[n])):
            for cell in (("zip", zip_, quarter[n]), ("age", age, quarter[n])):
                counts[cell] = counts.get(cell, 0) + 1 / 8
    apart = sum(abs(true.get(c, 0) - told.get(c, 0)) for c in {*true, *told}) / 2
    assert game.play([FOLLOW] * 8).accuracy == pytest.approx(1 - apart / 2)


def left_by_enumeration(masked, values, width):
    found = [set() for _ in masked]
    for order in itertools.permutations(values):
        if all(abs(own - value) <= width for own, value in zip(masked, order, strict=True)):
            for person, value in enumerate(order):
                found[person].add(value)
    return found


@pytest.mark.parametrize("told", [(), (0,), (1, 5)])
def test_masks_expose_what_remains_possible_without_those_who_told_theirs(told):
    game, seen = masks(), {}
    exposure = game.exposure_of

    def watched(name, profile, people, values, masked, recommended):
        seen[name] = list(masked)
        return exposure(name, profile, people, values, masked, recommended)

    game.exposure_of = watched
    profile = [DEVIATE if person in told else FOLLOW for person in range(8)]
    found = game.play(profile).exposure
    by_hand = np.zeros(8)
    for place, name, width in ((1, "age", 5), (2, "salary", 5000)):
        rest = [person for person in range(8) if person not in told]
        left = left_by_enumeration(
            [seen[name][p] for p in rest], [PEOPLE[p][place] for p in rest], width
        )
        for person, values in zip(rest, left, strict=True):
            assert PEOPLE[person][place] in values
            by_hand[person] += 1 / len(values) / 2
        by_hand[list(told)] += 1 / 2
    assert found == pytest.approx(by_hand.tolist())


def test_a_mask_that_tells_nothing_exposes_less():
    game = masks()
    over = np.mean([MasksGame(MASKED, EIGHT, EIGHTS, s).play(but(OVERDO)).exposure[0]
                    for s in range(20)])  # fmt: skip
    follow = np.mean([MasksGame(MASKED, EIGHT, EIGHTS, s).play([FOLLOW] * 8).exposure[0]
                      for s in range(20)])  # fmt: skip
    assert over < follow
    assert game.play([OVERDO] * 8).accuracy <= 1


def test_too_few_for_a_group_publish_nothing():
    found = groups().play([REFUSE] * 5 + [FOLLOW] * 3)
    assert (found.accuracy, set(found.exposure)) == (0, {0.0})


# ── Verdicts ───────────────────────────────────────────────────────────────────────────────────


def ended(differences, runs=20):
    """A study in which Ann's exposure, and the accuracy, differ by so much from following."""
    rng, found = np.random.default_rng(1), []
    for _ in range(runs):
        noise = rng.normal(0, 0.01)
        played = {FOLLOW: Played(0.8, (0.5, 0.5), (True, True))}
        for name, (accuracy, exposure) in differences.items():
            there = (name != REFUSE, True)
            played[name] = Played(0.8 + accuracy + noise, (0.5 + exposure + noise, 0.5), there)
            played[f"Bob: {name}"] = Played(0.8 + accuracy, (0.5, 0.5 + exposure), (True, False))
        found.append(Run(0, played, played[FOLLOW]))
    return CoUtility("s", "p", 2, (FOLLOW, *differences), tuple(found))


def verdicts(found, **wanted):
    return {
        (r.interest, r.concern): (r.verdict, r.better)
        for r in found.replies
        if all(getattr(r, key) == value for key, value in wanted.items())
    }


def test_verdicts_follow_from_paired_differences():
    found = ended({FREE_RIDE: (-0.1, -0.2), REFUSE: (-0.3, -0.4)})
    told = verdicts(found, for_all=False)
    assert told[1.0, 0.0] == (Verdict.HOLDS, None)
    assert told[1.0, 0.1] == (Verdict.HOLDS, None)
    assert told[0.0, 1.0] == (Verdict.FAILS, REFUSE)  # less exposure than a free ride
    assert told[1.0, 1.0][0] is Verdict.FAILS
    assert told[0.0, 0.0] == (Verdict.HOLDS, None)  # who cares for nothing gains nothing
    # Who stays away loses the data, too, if only participants get them.
    assert told[1.0, 1.0][1] == FREE_RIDE
    assert verdicts(found, for_all=True)[1.0, 1.0][1] == FREE_RIDE
    assert found.definition_3["privacy"] == (Verdict.FAILS, (REFUSE, FREE_RIDE))
    assert found.definition_3["the data"][0] is Verdict.HOLDS
    assert "does not hold for all preferences" in " ".join(found.conclusions())


def test_small_differences_cannot_be_told():
    found = ended({FREE_RIDE: (-0.001, -0.001)})
    assert {v for v, _ in verdicts(found, interest=1.0).values()} == {Verdict.OPEN}
    text = " ".join(found.conclusions())
    assert "cannot be told in 6" in text
    assert "the best reply in" not in text


def test_two_runs_tell_nothing_and_ten_that_are_alike_do():
    assert compared("x", [0.0] * 10) is None
    assert compared("x", [0.0] * 2).verdict(0.01) is Verdict.OPEN
    assert compared("x", [0.5] * 2).verdict(0.01) is Verdict.OPEN
    assert compared("x", [0.5] * 10).verdict(0.01) is Verdict.HOLDS
    assert compared("x", [-0.5] * 10).verdict(0.01) is Verdict.FAILS


def test_a_replay_that_differs_breaks_definition_2():
    found = ended({REFUSE: (-0.1, -0.2)})
    assert found.document()["definition_2"]["verdict"] == "holds"
    assert found.document()["definition_2"]["bob_turns_to"] == REFUSE
    assert found.document()["definition_2"]["accuracy_moves"]["mean"] == pytest.approx(-0.1)
    moved = Played(0.8, (0.5, 0.4), (True, True))
    runs = tuple(Run(each.ann, each.played, moved) for each in found.runs)
    other = CoUtility("s", "p", 2, found.strategies, runs)
    assert other.document()["definition_2"]["verdict"] == "does not hold"
    assert other.largest_replayed == pytest.approx(0.1)


# ── Whole studies ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protocol", [msgspec.structs.replace(IN_GROUPS, k=3), MASKED])
def test_a_study_is_played_to_its_conclusions(protocol):
    scenario = make_scenario(protocol, records=TWICE)
    found = play(scenario, 12, 10, 1, quiet)
    again = play(scenario, 12, 10, 1, quiet)
    assert found == again
    assert found.document()["definition_2"]["verdict"] == "holds"
    assert found.exposure(DEVIATE).mean == 1
    assert found.exposure_of_others(DEVIATE).mean > found.exposure_of_others(FOLLOW).mean
    assert verdicts(found)[0.0, 1.0][0] is Verdict.FAILS  # without interest one declines (§4)
    assert len(found.conclusions()) == 5
    assert len(found.document()["replies"]) == 24


@pytest.mark.parametrize(
    ("people", "runs", "words"),
    [(4, 10, "at least 5 are needed, for groups of 4"), (9, 10, "has 8 records"),
     (None, 0, "at least 2 runs"), (None, 1, "at least 2 runs")],
)  # fmt: skip
def test_what_cannot_be_played_is_said(people, runs, words):
    with pytest.raises(InputError, match=words):
        play(make_scenario(IN_GROUPS), people, runs, 1, quiet)
    with pytest.raises(InputError, match="what is played is collaborative_k_anonymity or"):
        play(make_scenario(RRJoint(epsilon=1.0)), None, 10, 1, quiet)


# ── The script ─────────────────────────────────────────────────────────────────────────────────


def script(*arguments):
    return processes.start([sys.executable, str(SCRIPT), *map(str, arguments)]).finish()


def test_the_script_plays_both_protocols():
    code, out, err = script("--people", 8, "--runs", 10, "--json")
    assert code == 0, err
    assert [each["protocol"] for each in json.loads(out)] == [
        "collaborative_k_anonymity", "collaborative_masking",
    ]  # fmt: skip
    code, out, err = script("--study", SCRIPT.parent / "masked_salaries.toml", "--runs", 2)
    assert code == 0, err
    assert "cannot be told" in out
    assert "Definition 3" in out


def test_the_script_says_in_one_line_what_is_wrong():
    for arguments in (("--people", 4), ("--study", "no.toml")):
        code, out, err = script(*arguments)
        assert (code != 0, out) == (True, "")
        assert len(err.splitlines()) == 1, err
        assert err.startswith("co_utility: ")
