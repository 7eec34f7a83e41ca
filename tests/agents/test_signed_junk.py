"""A member that signs whatever it likes: nobody crashes, nobody gets a wrong result."""

import msgspec
from helpers import assert_tables, crosstabs, make_study, random_records, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import InternalError
from mpc_rr.network.envelope import WIRE_VERSION, Envelope, SignedEnvelope, encode
from mpc_rr.network.sealed import SIGNATURE_CONTEXTS

SIZES = (2, 3)
RECORDS = random_records(5, SIZES, seed=9)
STEPS = st.sampled_from([
    "hello", "invitation", "refusal", "join", "admission", "roster", "roster_seen", "share",
    "lobby_news", "partial", "result_seen", "verdict", "goodbye", "objection", "again",
    "transcript_wanted", "transcript_piece",
    "no such step",
])  # fmt: skip
SESSIONS = st.sampled_from(
    ["lobby", "attempt-1", "attempt-1/exact_pairs/secure_sum", "attempt-2", "verdict", ""]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31),
    st.binary(max_size=40),
    st.text(max_size=10),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.binary(max_size=60) | VALUES.map(msgspec.msgpack.encode)
JUNK = st.lists(st.tuples(SESSIONS, STEPS, BODIES), min_size=1, max_size=8)


def signed(mailbox, session, step, target, body):
    envelope = encode(Envelope(mailbox.header(session, step, target), body))
    signature = mailbox.identity.sign(SIGNATURE_CONTEXTS[WIRE_VERSION] + envelope)
    return encode(SignedEnvelope(envelope, signature))


@settings(max_examples=60)
@given(JUNK)
def test_a_member_that_signs_junk(junk):
    class Junky(Party):
        async def _compare_rosters(self, session, roster):
            for where, step, body in junk:
                for target in ("coordinator", "*"):
                    raw = signed(self.mailbox, where, step, target, body)
                    await self.mailbox.transport.send("coordinator", raw)
            await super()._compare_rosters(session, roster)

    study = make_study(5, SIZES, minimum=4, round_s=5)
    outcome, ends = simulate(study, RECORDS, parties={"party-2": Junky})
    assert outcome.rejected["internal error"] == 0
    assert not any(isinstance(end, InternalError) for end in ends.values())
    assert outcome.result is not None or outcome.cause
    if outcome.result is not None:
        members = [RECORDS[int(name[-1]) - 1] for name in outcome.members]
        assert_tables(outcome.result.tables, crosstabs(members, SIZES))
    assert {*outcome.culprits, *(e.name for e in outcome.excluded)} <= {"party-2"}


@settings(max_examples=60)
@given(JUNK)
def test_a_coordinator_that_signs_junk(junk):
    class Junky(Coordinator):
        async def _one_attempt(self, session):
            for where, step, body in junk:
                raw = signed(self.mailbox, where, step, "*", body)
                await self.mailbox.transport.send("*", raw)
            return await super()._one_attempt(session)

    study = make_study(5, SIZES, round_s=5)
    _, ends = simulate(study, RECORDS, coordinator=Junky)
    assert not any(isinstance(end, InternalError) for end in ends.values())
    for end in ends.values():
        if not isinstance(end, Exception):
            assert_tables(end.tables, crosstabs(RECORDS, SIZES))
