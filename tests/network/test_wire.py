"""The wire format: frozen by golden vectors, and hard against whatever a broker may do to it."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers import make_schema, make_study
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.agents.roster import roster_digest, run_id
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import Identity
from mpc_rr.network import envelope, lifecycle
from mpc_rr.network.fragments import cut
from mpc_rr.network.sealed import Rejected, read, write
from mpc_rr.protocols.block_aggregation import BlockAnswer, Question
from mpc_rr.protocols.board.board import Announced, Block, Posted
from mpc_rr.protocols.board.commitment import Commitments, Openings
from mpc_rr.protocols.collaborative_k_anonymity import Agreed, Partition
from mpc_rr.protocols.collaborative_masking import MaskedRecord
from mpc_rr.protocols.collection import Answer, AnswersTaken, answers_digest
from mpc_rr.protocols.exact_moments import PublishedSums
from mpc_rr.protocols.exact_pairs import PublishedTables
from mpc_rr.protocols.mix.batch import (
    Batch,
    Evidence,
    FinalKey,
    Found,
    MixKeys,
    MixOutput,
    Onions,
    OnionsFixed,
    RelayKeys,
    RouteKey,
    Shuffled,
)
from mpc_rr.protocols.rr_clusters import Clustering
from mpc_rr.protocols.rr_each_attribute import FirstAnswer, ReportedPairs
from mpc_rr.protocols.rr_views import ViewAnswer
from mpc_rr.protocols.sums.masked.setup import (
    Die,
    Entry,
    KeysFixed,
    MaskKeys,
    Neighbourhood,
    Player,
)
from mpc_rr.protocols.sums.masked.sum import (
    ConfidedVector,
    MaskedVector,
    MaskShares,
    SharesForYou,
    SumDone,
    Survivors,
    Unmasking,
    VouchedFor,
    Vouchers,
)
from mpc_rr.protocols.sums.secure_sum import ConfidedPartial, Partial, Share
from mpc_rr.publication.counts import PairCounts
from mpc_rr.randomness import SeededRandomness

VECTORS = Path(__file__).parent.parent / "vectors" / "wire-v2.json"
VECTORS_1 = Path(__file__).parent.parent / "vectors" / "wire-v1.json"
ALICE, BOB = Identity(SeededRandomness(1)), Identity(SeededRandomness(2))
RUN = bytes(range(32))
RESULT = PairCounts(4, make_schema((2, 2)), [np.array([[1, 2], [0, 1]])])


def samples():
    """One message of every kind."""
    a, b = ALICE.public, BOB.public
    members = (lifecycle.Member("alice", a), lifecycle.Member("bob", b))
    return {
        message.step: message
        for message in (
            lifecycle.Hello(a, "box/alice"),
            lifecycle.Invitation(b, bytes(32), bytes(16), b"", 65024),
            lifecycle.Refusal(b, "closed", bytes(32)),
            lifecycle.Join(a, "box/alice", bytes(32)),
            lifecycle.LobbyNews(3),
            lifecycle.Welcome(a.fingerprint),
            lifecycle.Roster(1, members, (lifecycle.Exclusion("carol", "left"),)),
            lifecycle.RosterSeen(bytes(32)),
            lifecycle.ResultSeen(bytes(32)),
            lifecycle.Verdict(False, "cause", ("carol",), b"", {"alice": b"raw"}, ("bob",)),
            lifecycle.Goodbye(),
            lifecycle.TranscriptWanted(5),
            lifecycle.TranscriptPiece(5, 9, b"\1\2", "not now"),
            lifecycle.Objection("bob", "attempt-1", "share", "reason"),
            envelope.Again("attempt-1", "share"),
            Share(b"\1\2\3"),
            Partial(b"\4\5\6"),
            lifecycle.Opening(3, bytes(32)),
            Answer(b"\1\0\2\0"),
            AnswersTaken(3, 2, bytes(32)),
            FirstAnswer(b"\1\0\2\0"),
            ReportedPairs(2, bytes(16)),
            Clustering(((0, 2), (1,))),
            ViewAnswer(b"\1\0\0\0\2\0\0\0"),
            ConfidedPartial(b"\4\5\6"),
            PublishedTables(2, bytes(32)),
            PublishedSums(3, (3, None, -(1 << 61))),
            MaskKeys(bytes(32), bytes(32), bytes(32)),
            KeysFixed(bytes(32), b""),
            Die(bytes(16)),
            Neighbourhood(
                2,
                1,
                {0: Player(Entry("alice", a, bytes(32), bytes(32), None), 1, bytes(16))},
                b"proof",
                bytes(32),
                b"",
            ),
            MaskShares(b"parcels", b"box", b"marks"),
            SharesForYou(b"\x80", b"parcel"),
            MaskedVector(b"\1\2"),
            ConfidedVector(b"\1\2"),
            Survivors(b"\x80", 5, bytes(32)),
            Vouchers(bytes(16)),
            VouchedFor(b"\x80", bytes(16)),
            Unmasking(bytes(32), b"\x80", bytes(32), bytes(16)),
            SumDone(5, bytes(32), b"\1\2"),
            lifecycle.ShowPass(a, Pass(bytes(32), bytes(64), bytes(64))),
            lifecycle.Passes({"alice": Pass(bytes(32), bytes(64), bytes(64))}),
            Block(bytes(32), {"alice": b"raw"}),
            Commitments(bytes(32), (bytes(32),)),
            Openings(bytes(32), (b"\1\2",), (bytes(32),)),
            Partition(bytes(32), ((0, 2), (1, 3)), (1,)),
            Agreed(bytes(32), MixKeys(bytes(32), bytes(32))),
            RelayKeys(bytes(32), MixKeys(bytes(32), bytes(32))),
            Onions(bytes(32), (b"\1\2",)),
            Batch(bytes(32), (b"\1\2",)),
            Shuffled(bytes(32), (b"\1\2",)),
            MixOutput(bytes(32), (b"\1\2",), ("bob",), False),
            Found(bytes(32), True),
            FinalKey(bytes(32), bytes(32)),
            OnionsFixed(bytes(32), bytes(32)),
            RouteKey(bytes(32), bytes(32), b"raw"),
            Evidence(bytes(32), {"alice": b"raw"}, {"bob": b"raw"}),
            MaskedRecord(bytes(32), (1,), (2, -3)),
            Question(1, 0, (bytes(16),)),
            BlockAnswer(bytes(36)),
        )
    }


def header(step="hello", sender="alice", target="bob"):
    return envelope.Header(2, "study", RUN, "attempt-1", step, sender, target)


def golden():
    """What must never change: bodies, a whole signed envelope of each kind, and the digests."""
    found = samples()
    return {
        "bodies": {step: envelope.encode(message).hex() for step, message in found.items()},
        "signed": {
            step: write(header(step), message, ALICE).hex() for step, message in found.items()
        },
        "bundle": envelope.encode(envelope.Bundle({"alice": b"1", "bob": b"22"})).hex(),
        "run_id": run_id(found["invitation"]).hex(),
        "roster_digest": roster_digest(found["roster"]).hex(),
        "identity_digest": ALICE.public.digest.hex(),
        "study_digest": make_study(4, (2, 3)).digest.hex(),
        "result_digest": PairCounts(
            4, make_schema((2, 2)), [np.array([[1, 2], [0, 1]])]
        ).digest.hex(),
        "answers_digest": answers_digest({"bob": b"\1\0", "alice": b"\2\0"}).hex(),
        "pieces": [piece.hex() for piece in cut(b"abcde", SeededRandomness(3), 2)],
        "whole": cut(b"abcde", SeededRandomness(3))[0].hex(),
    }


def test_the_format_is_frozen():
    """If this fails, the format has changed: old and new agents cannot talk to each other.

    Raise WIRE_VERSION, say so in the changelog, and write a new file of vectors.
    """
    frozen = json.loads(VECTORS.read_text())
    assert golden() == {key: frozen[key] for key in golden()}


def test_what_was_written_on_wire_1_is_still_read():
    """Transcripts of earlier studies: every message opens, and is signed by whoever signed it."""
    frozen = json.loads(VECTORS_1.read_text())
    kinds = {kind.step: kind for kind in every_message() if hasattr(kind, "step")}
    for step, signed in frozen["signed"].items():
        raw = bytes.fromhex(signed)
        opened = read(raw, study="study", runs=None, targets=("bob",), versions=(1, 2))
        assert opened.signed_by(ALICE.public)
        assert not opened.signed_by(BOB.public)
        message = opened.message(kinds[step])
        body = bytes.fromhex(frozen["bodies"][step])
        assert envelope.decode(body, kinds[step]) == message
        with pytest.raises(Rejected, match="other version"):
            read(raw, study="study", runs=None, targets=("bob",))
    invitation = envelope.decode(
        bytes.fromhex(frozen["bodies"]["invitation"]), lifecycle.Invitation
    )
    assert run_id(invitation, 1).hex() == frozen["run_id"]
    assert len(run_id(invitation, 2)) == 32


def test_a_signature_of_one_version_is_none_of_another():
    """Else what was signed in one could be passed off in the other."""
    raw = write(msgspec.structs.replace(header(), version=1), Share(b"x"), ALICE)
    signed = msgspec.msgpack.decode(raw, type=envelope.SignedEnvelope)
    inside = msgspec.msgpack.decode(signed.envelope, type=envelope.Envelope)
    newer = msgspec.structs.replace(inside.header, version=2)
    forged = envelope.SignedEnvelope(
        envelope.encode(msgspec.structs.replace(inside, header=newer)), signed.signature
    )
    assert not open_as_bob(envelope.encode(forged)).signed_by(ALICE.public)


def every_message(kind=lifecycle.Message):
    for child in kind.__subclasses__():
        yield child
        yield from every_message(child)


def test_every_message_has_a_golden_vector_and_a_step_of_its_own():
    ours = [k for k in every_message() if k.__module__.startswith("mpc_rr.")]
    kinds = [k for k in ours if k not in (Posted, Announced)]  # which are never sent themselves
    assert {k.step for k in kinds} == set(samples())
    assert len({k.step for k in kinds}) == len(kinds)


def test_a_share_that_was_sealed_in_the_past_still_opens():
    """Sealing is randomized, so this vector can only be opened, not made again."""
    sealed = bytes.fromhex(json.loads(VECTORS.read_text())["sealed_share"])
    assert BOB.open(sealed, envelope.encode(header("share"))) == envelope.encode(Share(b"\1\2\3"))


def open_as_bob(raw, runs=(RUN,)):
    return read(raw, study="study", runs=runs, targets=("bob", "*"))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"version": 1}, "other version"),
        ({"study": "another"}, "other study"),
        ({"run": bytes(32)}, "other run"),
        ({"run": RUN[:16]}, "other run"),
        ({"run": b"short"}, "other run"),
        ({"target": "carol"}, "misdirected"),
    ],
)
def test_what_is_not_for_us_is_rejected_with_its_reason(changed, reason):
    raw = write(msgspec.structs.replace(header(), **changed), Share(b"x"), ALICE)
    with pytest.raises(Rejected) as rejected:
        open_as_bob(raw)
    assert rejected.value.reason == reason


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_any_changed_byte_is_noticed(place, change):
    raw = bytearray(write(header("share"), Share(b"\1\2\3"), ALICE, BOB.public))
    raw[place % len(raw)] ^= change
    try:
        opened = open_as_bob(bytes(raw))
    except Rejected:
        return
    assert not opened.signed_by(ALICE.public)


def test_a_signature_by_somebody_else_is_noticed():
    opened = open_as_bob(write(header(), Share(b"x"), BOB))
    assert opened.signed_by(BOB.public)
    assert not opened.signed_by(ALICE.public)


@given(st.binary(max_size=300))
def test_junk_is_malformed(junk):
    with pytest.raises(Rejected, match="malformed"):
        open_as_bob(junk)


def test_unknown_and_missing_fields_are_refused():
    for body in ([b"x", 1], [], [3], {"residues": b"x"}):
        with pytest.raises(ValueError, match=r"Expected|Object"):
            envelope.decode(msgspec.msgpack.encode(body), Share)


@pytest.mark.parametrize("message", samples().values(), ids=samples().keys())
def test_bodies_never_show(message):
    raw = write(header(message.step), message, ALICE)
    shown = repr(message) + repr(open_as_bob(raw)) + str(message.__rich_repr__())
    assert "\\x01\\x02" not in shown
    assert "reason" not in shown
    assert "cause" not in shown
