"""Studies with randomized answers in which a party or the coordinator cheats."""

import asyncio

import msgspec
import pytest
from helpers import make_study, simulate
from randomized import CLUSTERED, RECORDS, SIZES, N

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import Misconduct
from mpc_rr.network.envelope import Again
from mpc_rr.network.lifecycle import Opening, Verdict
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.protocols.collection import Answer, AnswersTaken
from mpc_rr.protocols.rr_clusters import Clustering
from mpc_rr.protocols.rr_each_attribute import ReportedPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_views import RRViews, ViewAnswer


def liar(step, *messages):
    """A party that sends these messages instead of its own."""

    class Lying(Mailbox):
        async def post(self, session, at_step, target, raw):
            if at_step != step:
                await super().post(session, at_step, target, raw)
                return
            for message in messages:
                forged = self.write(session, step, target, message)
                await self.transport.send(target, forged)

    class Liar(Party):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = Lying

    return Liar


@pytest.mark.parametrize(
    ("protocol", "step", "messages", "says"),
    [
        (RRIndependent(keep=0.5), "answer", [Answer(b"\x02\0\0\0\0\0")], "outside the domain"),
        (RRIndependent(keep=0.5), "answer", [Answer(b"\0\0")], "2 bytes where 6"),
        (
            RRIndependent(keep=0.5),
            "answer",
            [Answer(bytes(6)), Answer(b"\x01\0\0\0\0\0")],
            "two different messages",
        ),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(b"\xff\0\0\0\0\0\0\0")], "no view"),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(b"x")], "no view"),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(bytes(4))], "different combinations"),
        (
            RRViews(epsilon=3.0),
            "view_answer",
            [ViewAnswer(b"\0\0\0\0\xff\0\0\0")],
            "outside its view",
        ),
    ],
)
def test_an_answer_no_honest_party_gives_is_left_out_and_its_author_named(
    protocol, step, messages, says
):
    study = make_study(N, SIZES, minimum=20, protocol=protocol)
    outcome, ends = simulate(study, RECORDS, parties={"party-07": liar(step, *messages)})
    assert outcome.result.n == N - 1
    assert list(outcome.result.faulty) == ["party-07"]
    assert says in outcome.result.faulty["party-07"]
    honest = [end for name, end in ends.items() if name != "party-07"]
    assert all(end.n == N - 1 for end in honest)


def coordinator_that_tells(change):
    """A coordinator whose announcements are changed."""

    class Lying(Mailbox):
        async def tell(self, session, target, message):
            return await super().tell(session, target, change(message))

        def write(self, session, step, target, message):
            return super().write(session, step, target, change(message))

    class Liar(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = Lying

    return Liar


def changed(kind, **fields):
    def change(message):
        if isinstance(message, kind):
            return msgspec.structs.replace(message, **fields)
        return message

    return change


@pytest.mark.parametrize(
    ("protocol", "change", "says"),
    [
        (
            CLUSTERED["each"],
            changed(Clustering, clusters=((0,), (1,), (2,))),
            "not the clusters that follow from the tables",
        ),
        (
            CLUSTERED["exact"],
            changed(Clustering, clusters=((0, 1, 2),)),
            "not the clusters that follow from the tables",
        ),
        (CLUSTERED["each"], changed(ReportedPairs, n=22), "sums to 24, not to 22"),
        (CLUSTERED["each"], changed(ReportedPairs, counts=b"x"), "one count for each cell"),
        (RRIndependent(keep=0.5), changed(Opening, asked=2), "opened the study with 2 parties"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, answered=30), "30 answers of 24"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, answered=1), "1 answers of 24"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, asked=10**6), "24 answers of 1000000"),
        (CLUSTERED["each"], changed(ReportedPairs, n=0, counts=bytes(64)), "0 answers in all"),
        (
            RRIndependent(keep=0.5),
            changed(Verdict, result_digest=bytes(32)),
            "another result than I computed",
        ),
    ],
)
def test_a_lying_coordinator_is_found_out_by_every_party(protocol, change, says):
    study = make_study(N, SIZES, minimum=20, protocol=protocol, round_s=5)
    _, ends = simulate(study, RECORDS, coordinator=coordinator_that_tells(change))
    for end in ends.values():
        assert isinstance(end, Misconduct), end
        assert says in str(end)
        assert end.culprits == ("coordinator",)


def test_a_coordinator_that_opens_the_study_twice_is_found_out():
    class Twice(Coordinator):
        async def _open(self, session, roster):
            await super()._open(session, roster)
            await self.mailbox.tell(session.name, "*", Opening(21, bytes(32)))

    study = make_study(N, SIZES, minimum=20, protocol=RRIndependent(keep=0.5), round_s=5)
    _, ends = simulate(study, RECORDS, coordinator=Twice)
    assert all("two different ways" in str(end) for end in ends.values())


def test_a_coordinator_cannot_have_a_second_answer():
    """Asked again it gets the very same message; another step or session gets nothing."""
    study = make_study(N, SIZES, minimum=20, protocol=RRIndependent(keep=0.5))
    seen = []

    class Curious(Coordinator):
        async def _one_attempt(self, session):
            result = await super()._one_attempt(session)
            name = f"{session.name}/rr_independent"
            for party in session.parties:
                await self.mailbox.tell(name, party, Again(name, "answer"))
            await asyncio.sleep(1)  # they wait for the verdict, and hear it
            return result

    class Counting(Party):
        async def run(self):
            post = self.mailbox.transport.send

            async def send(target, raw):
                if b"answer" in raw:
                    seen.append(raw)
                await post(target, raw)

            self.mailbox.transport.send = send
            return await super().run()

    simulate(study, RECORDS, coordinator=Curious, party=Counting)
    assert len(seen) > N
    assert len(set(seen)) == N
