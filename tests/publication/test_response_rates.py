"""Response rates are of all who were expected, not of those who came."""

import msgspec
import pytest
from anonymizing import IN_GROUPS, MASKED, PEOPLE
from anonymizing import make_study as make_values_study
from helpers import make_study, random_records, simulate, with_mailbox

from mpc_rr.agents.party import Party
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.protocols.block_aggregation import BlockAggregation, BlockAnswer
from mpc_rr.protocols.board.commitment import Commitments
from mpc_rr.protocols.collaborative_masking import MaskedRecord
from mpc_rr.protocols.collection import Answer
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.first_stage import FirstStage
from mpc_rr.publication.whole import published
from mpc_rr.running.run import Run

SIZES = (2, 3, 2)
COUNTING = {
    "exact_pairs": ExactPairs(),
    "rr_independent": RRIndependent(keep=0.6),
    "rr_views": RRViews(epsilon=3.0),
    "rr_pairs": RRPairs(keep=0.6),
    "rr_clusters": RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
    "block_aggregation": BlockAggregation(p=0.6, floor=0.3, block=4),
}
EXPECTED, CAME = 10, 8


def with_fewer(protocol, minimum=6, **agents):
    """Eight of ten come."""
    if protocol.publishes_values:
        study, records = make_values_study(protocol, count=EXPECTED, minimum=minimum), PEOPLE
    else:
        records = random_records(CAME, SIZES, seed=2)
        study = make_study(EXPECTED, SIZES, protocol=protocol, minimum=minimum)
    return study, *simulate(study, records, **agents)


def sentences(study, ending, members=None):
    found = published(ending, study.setting_with(members), study.protocol)
    return [finding.text for finding in found.findings] + [note.text for note in found.notes]


@pytest.mark.parametrize(
    "protocol", [*COUNTING.values(), IN_GROUPS, MASKED], ids=lambda protocol: protocol.name
)
def test_every_result_says_of_how_many(protocol):
    study, outcome, ends = with_fewer(protocol)
    for ending in (outcome.result, *ends.values()):
        said = sentences(study, ending)
        assert f"{CAME} of {EXPECTED} " in said[0]
        assert not any(f"of {CAME} parties" in text for text in said)
        people = published(ending, study.setting, study.protocol).participation
        assert (people.expected, people.counted) in ((EXPECTED, CAME), (EXPECTED, None))
    run = Run(study, outcome, ends, 0, "memory")
    assert repr(run).endswith(f"done: {CAME} of {EXPECTED})")


def test_both_stages_say_of_how_many():
    study, outcome, ends = with_fewer(COUNTING["rr_clusters"])
    for ending in (outcome.result, *ends.values()):
        said = sentences(study, ending)
        assert f"In the first stage {CAME} of {EXPECTED} were counted." in said


def test_a_first_stage_alone_says_of_how_many_the_second_came_to_nothing():
    study, outcome, _ = with_fewer(COUNTING["rr_pairs"])
    second = FirstStage(
        found=outcome.result, asked=CAME, answered=3, fewest=6, answers_digest=bytes(32)
    )
    said = sentences(study, second)
    assert any("3 of 10 parties (8 were there) answered in time" in text for text in said)


def test_who_was_there_and_did_not_answer_is_told_apart_from_who_never_came():
    study, outcome, _ = with_fewer(COUNTING["rr_independent"])
    fewer = msgspec.structs.replace(outcome.result, asked=(*outcome.result.asked, "late"))
    assert sentences(study, fewer)[0] == "8 of 10 parties (9 were there) answered."
    assert repr(fewer) == "Collected(8 of 9 who were there answered)"


class Mute(Mailbox):
    """Comes, and then keeps its answers to itself."""

    async def tell(self, session, target, message):
        if isinstance(message, Answer | BlockAnswer | MaskedRecord | Commitments):
            return self.write(session, message.step, target, message)
        return await super().tell(session, target, message)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (COUNTING["rr_independent"], "only 7 of 10 parties (8 were there) answered"),
        (COUNTING["block_aggregation"], "only 7 of 10 parties (8 were there) answered"),
        (MASKED, "only 7 of 10 parties (8 were there) are left"),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_a_study_that_ends_for_want_of_answers_says_of_how_many(protocol, said):
    _, outcome, _ = with_fewer(protocol, minimum=8, parties={"party-2": with_mailbox(Party, Mute)})
    assert outcome.result is None
    assert said in outcome.cause
