"""Whatever goes wrong on the way: never a wrong value, and every abort names its cause."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_tables, crosstabs, make_scenario, random_records

from mpc_rr.errors import MpcRrError
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.file import load_scenario

STEPS = ("hello", "join", "roster_seen", "share", "partial", "result_seen", "goodbye")
SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


def fault_schedule(seed):
    """A random study and random faults, all from one seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    sizes = tuple(int(s) for s in rng.integers(2, 4, size=rng.integers(2, 4)))

    def some(count):
        return tuple(
            PartyFault(f"party-{rng.integers(1, n + 1)}", STEPS[rng.integers(len(STEPS))])
            for _ in range(count)
        )

    faults = Faults(
        delay_s=(0.0, float(rng.choice([0.0, 0.05, 1.0, 6.0]))),
        loss=float(rng.choice([0.0, 0.05, 0.2, 0.5])),
        duplicate=float(rng.choice([0.0, 0.3])),
        reorder=float(rng.choice([0.0, 0.3])),
        silent=some(rng.choice([0, 0, 1, 2])),
        crash=some(rng.choice([0, 0, 1])),
    )
    minimum = int(rng.integers(3, n + 1))
    records = random_records(n, sizes, seed)
    return make_scenario(records, sizes, faults=faults, minimum=minimum), records, sizes


def play_schedule(seed):
    """Returns whether the study was finished; asserts what must hold in every case."""
    scenario, records, sizes = fault_schedule(seed)
    result = run_study(scenario, transport="memory", seed=seed)
    outcome, names = result.outcome, scenario.party_names()
    where = f"replay with play_schedule({seed})"
    if outcome.result is not None:
        members = [records[names.index(member)] for member in outcome.members]
        expected = crosstabs(members, sizes)
        assert_tables(outcome.result.tables, expected)
        assert {e.name for e in outcome.excluded}.isdisjoint(outcome.members), where
    else:
        expected = None
        assert outcome.cause, where
    faults = scenario.faults
    if not faults.loss and faults.delay_s[1] <= 1:
        guilty = {fault.party for fault in (*faults.silent, *faults.crash)}
        assert {*outcome.culprits, *(e.name for e in outcome.excluded)} <= guilty, where
    for end in result.parties.values():
        if isinstance(end, MpcRrError):
            assert str(end), where
        else:
            # A party that finished has the very counts of the members; it cannot have any if
            # the coordinator has none.
            assert expected is not None, where
            assert_tables(end.tables, expected)
    return outcome.result is not None


def test_fault_schedules_never_give_a_wrong_value():
    finished = sum(play_schedule(seed) for seed in range(100))
    assert 20 <= finished <= 90, f"{finished} of 100 finished: the schedules test nothing"


@pytest.mark.sweep
def test_many_fault_schedules_never_give_a_wrong_value():
    count = int(os.environ.get("MPC_RR_SWEEP_SEEDS", "1000"))
    for seed in range(100, 100 + count):
        play_schedule(seed)


def digest(result):
    return hashlib.sha256(transcript_lines(result.outcome.transcript).encode()).hexdigest()


def test_the_same_seed_gives_the_same_transcript_with_and_without_faults():
    scenario, _, _ = fault_schedule(3)
    digests = {digest(run_study(scenario, transport="memory", seed=3)) for _ in range(2)}
    assert len(digests) == 1
    assert digest(run_study(scenario, transport="memory", seed=4)) not in digests


def test_the_transcript_does_not_depend_on_the_hash_seed(tmp_path):
    digests = set()
    for hash_seed in ("0", "1", "4242"):
        scenario = str(SCENARIOS / "silent_party.toml")
        done = subprocess.run(
            [sys.executable, "-m", "mpc_rr", "run", scenario, "--transport", "memory",
             "--seed", "7", "--json", "--out", str(tmp_path / hash_seed)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )  # fmt: skip
        digests.add(json.loads(done.stdout)["transcript"]["digest"])
    assert len(digests) == 1


def test_a_silent_party_is_left_out_before_the_point_of_no_return():
    result = run_study(load_scenario(SCENARIOS / "silent_party.toml"), transport="memory")
    assert [e.name for e in result.outcome.excluded] == ["party-05"]
    assert result.outcome.result.n == 11
    assert result.outcome.attempts == 2


@pytest.mark.parametrize("kind", ["silent", "crash"])
@pytest.mark.parametrize(
    ("step", "n_counted"),
    [("hello", 5), ("join", 5), ("roster_seen", 5), ("share", 5), ("partial", None),
     ("result_seen", 6), ("goodbye", 6)],
)  # fmt: skip
def test_a_lost_party_at_every_step(kind, step, n_counted):
    sizes = (2, 3)
    records = random_records(6, sizes, seed=1)
    faults = Faults(**{kind: (PartyFault("party-2", step),)})
    scenario = make_scenario(records, sizes, faults=faults, minimum=5)
    outcome = run_study(scenario, transport="memory").outcome
    if n_counted is None:
        assert outcome.result is None
        assert outcome.culprits == ("party-2",)
    else:
        assert outcome.result.n == n_counted
        counted = [r for name, r in zip(scenario.party_names(), records, strict=True)
                   if name in outcome.members]  # fmt: skip
        assert_tables(outcome.result.tables, crosstabs(counted, sizes))
