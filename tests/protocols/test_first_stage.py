"""A study in two stages whose second comes to nothing publishes what the first has found."""

import msgspec
import pytest
from randomized import CLUSTERED, NAMES, RECORDS, N, run

from mpc_rr.errors import MpcRrError
from mpc_rr.protocols.collection import Answer
from mpc_rr.publication.first_stage import FirstStage
from mpc_rr.publication.reports import AnsweredOne, Collected
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import DoesNotHold, verify
from mpc_rr.show.report import report
from mpc_rr.simulation.faults import Faults, PartyFault

MINIMUM = 20


def silent(count):
    """So many fall silent when they are to answer in the second stage."""
    return Faults(silent=[PartyFault(party=name, step=Answer.step) for name in NAMES[:count]])


@pytest.mark.parametrize("dependence", CLUSTERED)
def test_if_too_few_answer_the_second_stage_the_first_one_s_result_is_published(
    tmp_path, dependence
):
    run_ = run(CLUSTERED[dependence], faults=silent(5), minimum=MINIMUM)
    ending = run_.outcome.result
    assert isinstance(ending, FirstStage)
    assert (ending.asked, ending.answered, ending.fewest) == (N, N - 5, MINIMUM)
    assert ending.found.n == N
    made = run_.publication
    assert len(made.tables) >= 3
    assert made.notes[0].severity == "warning"
    assert f"{N - 5} of {N} parties answered in time, at least {MINIMUM}" in made.notes[0].text
    assert made.participation.counted == N
    write_results(run_, tmp_path / "run")
    assert verify(tmp_path / "run")
    assert "The second stage came to nothing" in report(tmp_path / "run")


def test_everybody_has_the_same_result():
    run_ = run(CLUSTERED["exact"], faults=silent(5), minimum=MINIMUM)
    same = [end for end in run_.parties.values() if isinstance(end, FirstStage)]
    assert len(same) == N, "also those who sent nothing, but went on listening"
    assert {end.digest for end in same} == {run_.outcome.result.digest}


@pytest.mark.parametrize("gone", [0, N - MINIMUM])
def test_as_long_as_enough_answer_the_second_stage_is_the_result(gone):
    run_ = run(CLUSTERED["each"], faults=silent(gone), minimum=MINIMUM)
    assert isinstance(run_.outcome.result, Collected)
    ends = [end for end in run_.parties.values() if not isinstance(end, MpcRrError)]
    assert all(isinstance(end, AnsweredOne) for end in ends)


def test_even_if_nobody_answers_the_second_stage():
    run_ = run(CLUSTERED["each"], faults=silent(N), minimum=MINIMUM)
    assert run_.outcome.result.answered == 0
    assert run_.outcome.result.found.n == len(RECORDS)


def test_a_folder_that_makes_more_of_the_second_stage_does_not_hold(tmp_path):
    run_ = run(CLUSTERED["each"], faults=silent(5), minimum=MINIMUM)
    write_results(run_, tmp_path / "run")
    file = tmp_path / "run" / "result.json"
    file.write_text(file.read_text().replace(f"{N - 5} of {N} parties", f"{N} of {N} parties"))
    with pytest.raises(DoesNotHold):
        verify(tmp_path / "run")


def test_the_first_stage_must_have_been_answered_by_enough():
    faults = Faults(silent=[PartyFault(party=name, step="first_answer") for name in NAMES[:5]])
    run_ = run(CLUSTERED["each"], faults=faults, minimum=MINIMUM)
    assert run_.outcome.result is None
    assert f"only {N - 5} of {N} parties answered" in run_.outcome.cause


def test_nobody_is_told_that_others_have_the_same_if_they_have_the_second_stage_s_result():
    """A coordinator announces the digest of answers itself: any 32 bytes it likes."""
    run_ = run(CLUSTERED["each"], faults=silent(5), minimum=MINIMUM)
    assert len(run_.outcome.result.digest) == 33
    full = run(CLUSTERED["each"]).outcome.result
    assert len(full.digest) == 32


def test_its_digest_tells_how_the_second_stage_ended():
    run_ = run(CLUSTERED["each"], faults=silent(5), minimum=MINIMUM)
    ending = run_.outcome.result
    others = [
        msgspec.structs.replace(ending, answered=ending.answered - 1),
        msgspec.structs.replace(ending, asked=ending.asked + 1),
        msgspec.structs.replace(ending, answers_digest=bytes(32)),
        msgspec.structs.replace(ending, found=msgspec.structs.replace(ending.found, n=1)),
    ]
    assert len({ending.digest, *(other.digest for other in others)}) == 5
