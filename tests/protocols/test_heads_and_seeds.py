"""What heads, dice, layers and digests are made of: whoever drops an input from them is noticed.

Both sides compute these alike, so no honest run would show it. Values are those of version 1.
"""

import dataclasses
import math

import msgspec
import numpy as np
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED
from helpers import make_schema
from scipy import stats

from mpc_rr.crypto.commitments import commit
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.onion import LayerKey
from mpc_rr.estimation.designs import rr_clusters, rr_independent
from mpc_rr.network.envelope import encode_parts
from mpc_rr.protocols.board.board import Block, Board
from mpc_rr.protocols.board.commitment import Commitments, Openings, _bound_to, _Opened, _wrong
from mpc_rr.protocols.collaborative_k_anonymity import _by_chance
from mpc_rr.protocols.collection import design_mark
from mpc_rr.protocols.mix.batch import Cascade, MixKeys, digest_of_onions
from mpc_rr.protocols.mix.cascade import MixOutput, _cascade, _in_output, shuffled
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.groups import KAnonymous
from mpc_rr.publication.masks import MaskedRelease
from mpc_rr.randomness import SeededRandomness

SEAL = Identity(SeededRandomness(0)).seal
NAMES = ("ann", "ben", "cat", "dan")


class Alone:
    """A session that shares its work with nobody."""

    def __init__(self, context=b"context"):
        self.context = context

    def shared(self, what, depends_on, work):
        return work()


def beginning(value):
    return value.hex()[:32]


# ── Parts ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other"), [((b"ab", b"c"), (b"a", b"bc")), ((b"a", b""), (b"", b"a")), ((b"",), ())]
)
def test_parts_do_not_run_into_each_other(one, other):
    assert encode_parts(*one) != encode_parts(*other)


def test_parts_are_written_with_their_lengths():
    assert encode_parts(b"ab", b"").hex() == "0000000000000002" + "6162" + "0000000000000000"


# ── The board ──────────────────────────────────────────────────────────────────────────────────

BLOCK = Block(b"previous", {"ann": b"entry"})


def test_a_head_is_this_hash():
    assert (
        beginning(Board(bytes(32), NAMES).head_after("step", BLOCK))
        == "73cb97efd47e3d451e96a41de8d29576"
    )
    assert beginning(Board.opened(_Session()).head) == "727097419e01502d122818b870bb2dd4"


class _Session(Alone):
    parties = NAMES


@pytest.mark.parametrize(
    ("board", "step", "block"),
    [
        (Board(b"\1" * 32, NAMES), "step", BLOCK),
        (Board(bytes(32), NAMES, blocks=1), "step", BLOCK),
        (Board(bytes(32), NAMES), "other", BLOCK),
        (Board(bytes(32), NAMES), "step", Block(b"previous", {"ann": b"other"})),
        (Board(bytes(32), NAMES), "step", Block(b"other", {"ann": b"entry"})),
    ],
    ids=["the head before", "the number", "the step", "an entry", "what it continues"],
)
def test_a_head_changes_with_all_that_was_ever_on_the_board(board, step, block):
    assert board.head_after(step, block) != Board(bytes(32), NAMES).head_after("step", BLOCK)


def test_an_empty_board_is_that_of_one_session():
    assert Board.opened(_Session(b"one")).head != Board.opened(_Session(b"two")).head


def test_who_is_drawn_follows_from_the_dice():
    """Ten people have 3,628,800 orders: by chance two are the same for one seed in so many."""
    board = Board(b"", tuple("abcdefghij"))
    assert "".join(board.draw(Alone(), b"seed", "relays")) == "idfjcgaheb"
    drawn = {"".join(board.draw(Alone(), bytes([k]), "relays")) for k in range(20)}
    assert len(drawn) == 20
    assert board.draw(Alone(), b"seed", "others") != board.draw(Alone(), b"seed", "relays")


def test_every_party_is_drawn_as_often_as_any_other():
    """Chi-square on 4,000 draws of ten; by chance below 1e-4 once in 10,000 runs."""
    board = Board(b"", tuple("abcdefghij"))
    first = [board.draw(Alone(), k.to_bytes(4), "relays")[0] for k in range(4_000)]
    counts = [first.count(name) for name in board.present]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_who_is_grouped_with_whom_follows_from_the_dice():
    names = list("abcdefghij")
    assert "".join(_by_chance(names, b"seed")) == "cibgajhefd"
    assert len({"".join(_by_chance(names, bytes([k]))) for k in range(20)}) == 20


# ── Commitments ────────────────────────────────────────────────────────────────────────────────

FIELDS, VALUES, SALTS = ("zip", "age"), (b"one", b"one"), (bytes(32), bytes(32))


def committed(context=b"context", party="ann", fields=FIELDS):
    return Commitments(
        b"head",
        tuple(
            commit(_bound_to(context, party, field), value, salt)
            for field, value, salt in zip(fields, VALUES, SALTS, strict=True)
        ),
    )


def test_what_is_committed_to_opens():
    assert _wrong(b"context", "ann", FIELDS, committed(), Openings(b"", VALUES, SALTS)) is None


@pytest.mark.parametrize(
    "elsewhere",
    [{"context": b"another run"}, {"party": "ben"}, {"fields": ("age", "zip")}],
    ids=["run", "party", "field"],
)
def test_a_commitment_from_elsewhere_does_not_open_here(elsewhere):
    """Even with its own value and salt: else one could copy what another has committed to."""
    found = _wrong(b"context", "ann", FIELDS, committed(**elsewhere), Openings(b"", VALUES, SALTS))
    assert found == "'zip' is not what it committed to"


DICE = {"ann": (b"value", b"die of ann"), "ben": (b"value", b"die of ben")}


def test_the_randomness_of_these_dice_is_this():
    assert (
        beginning(_Opened(DICE, complete=True).seed(b"context"))
        == "ce94505acbcea446f3e43ad73dc47be4"
    )


def test_public_randomness_changes_with_every_die_and_with_nothing_else():
    seed = _Opened(DICE, complete=True).seed(b"context")
    for other in (
        {**DICE, "ben": (b"value", b"die of Ben")},
        {"ann": DICE["ben"], "ben": DICE["ann"]},
        {"ann": DICE["ann"]},
        {"ann": DICE["ann"], "cat": DICE["ben"]},
    ):
        assert _Opened(other, complete=True).seed(b"context") != seed
    assert _Opened(DICE, complete=True).seed(b"another") != seed
    same = {"ben": (b"other", b"die of ben"), "ann": (b"other", b"die of ann")}
    assert _Opened(same, complete=True).seed(b"context") == seed


# ── Layers ─────────────────────────────────────────────────────────────────────────────────────

KEYS = [LayerKey(bytes([k]) * 32) for k in range(1, 7)]
CASCADE = Cascade(
    b"context", NAMES[:3], tuple(k.public for k in KEYS[:3]), tuple(k.public for k in KEYS[3:]),
    NAMES, 2, 5,
)  # fmt: skip


def test_a_layer_is_bound_to_this():
    assert CASCADE.info(1, b"route", 2, "ann") == encode_parts(
        b"mpc-rr onion", b"context", b"route", b"\2", b"\0\0\0\1", b"ann"
    )


@pytest.mark.parametrize(
    "moved",
    [
        lambda: dataclasses.replace(CASCADE, context=b"another").info(0, b"route", 0, "ann"),
        lambda: CASCADE.info(1, b"route", 0, "ann"),
        lambda: CASCADE.info(0, b"final", 0, "ann"),
        lambda: CASCADE.info(0, b"route", 1, "ann"),
        lambda: CASCADE.info(0, b"route", 0, "ben"),
    ],
    ids=["batch of another board", "another batch", "another kind", "another place", "sender"],
)
def test_an_onion_opens_only_where_it_belongs(moved):
    """Moved to another batch, it would come out twice, and show whose it is."""
    onion = CASCADE.onion(0, CASCADE.sealed(0, b"hello", SEAL), "ann", SEAL)
    assert KEYS[0].peel(onion, CASCADE.info(0, b"route", 0, "ann")) is not None
    assert KEYS[0].peel(onion, moved()) is None


def test_a_cascade_is_for_one_board_of_one_session():
    shown = zip(CASCADE.relays, CASCADE.route, CASCADE.final, strict=True)
    keys = {relay: MixKeys(route, final) for relay, route, final in shown}

    def context(session, head):
        return _cascade(Alone(session), Board(head, NAMES), keys, NAMES[:3], 2, 5).context

    assert context(b"session", b"head") == encode_parts(b"session", b"head")
    assert context(b"session", b"head") != context(b"session", b"other")
    assert context(b"session", b"head") != context(b"another", b"head")


def test_a_relay_needs_two_different_keys():
    """Whoever is shown the one would have the other."""
    one, other = CASCADE.route[:2]
    assert MixKeys(one, other).proper
    assert not MixKeys(one, one).proper
    assert not MixKeys(bytes(32), other).proper
    assert not MixKeys(one, bytes(32)).proper


def test_fixed_onions_are_all_of_them_in_their_order():
    assert beginning(digest_of_onions([b"a", b"bc"])) == "a3d532d9f957c5cefa586319a5ea3795"
    for other in ([b"ab", b"c"], [b"bc", b"a"], [b"a"], [b"a", b"bc", b""]):
        assert digest_of_onions(other) != digest_of_onions([b"a", b"bc"])


def test_a_batch_in_which_one_is_there_twice_holds_nobodys_message():
    """Else a relay could put another's in the place of its own, and see it come out twice."""
    items = [bytes([k]) * CASCADE.item_bytes(3) for k in range(4)]
    good, twice = b"".join(items), b"".join([*items[:3], items[0]])
    found = _in_output(CASCADE, MixOutput(b"", (good, twice), (), shuffling=False))
    assert found == [set(items), set()]


def test_all_orders_of_a_shuffle_are_equally_likely():
    """Chi-square on 1,200 shuffles of three; by chance below 1e-4 once in 10,000 runs."""
    items = [b"c", b"a", b"b"]
    orders = [b"".join(shuffled(items, SeededRandomness(seed))) for seed in range(1_200)]
    assert set(map(len, orders)) == {3}
    counts = np.unique(orders, return_counts=True)[1]
    assert len(counts) == math.factorial(3)
    assert stats.chisquare(counts).pvalue > 1e-4


# ── Designs and results ────────────────────────────────────────────────────────────────────────


def test_a_design_has_this_mark():
    assert design_mark(rr_independent((2, 3), 0.5)).hex() == "4158dfbf5b71d48c"


@pytest.mark.parametrize(
    "other",
    [
        rr_independent((2, 3), 0.6),
        rr_independent((3, 2), 0.5),
        rr_clusters((2, 3), ((0, 1),), (0.5, 0.5)),
    ],
    ids=["matrices", "sizes", "clusters"],
)
def test_whoever_answered_under_one_design_notices_another(other):
    assert design_mark(other) != design_mark(rr_independent((2, 3), 0.5))


GROUPED = KAnonymous(
    EIGHT, IN_GROUPS.grouping, {"ann": (0, 28), "ben": (1, 29)}, (("ann", "ben"),), (),
    ((0, (35000,)), (0, (30000,))), 0,
)  # fmt: skip
RELEASED = MaskedRelease(
    EIGHT, MASKED.masking, b"seed", {"ann": ((0,), (28, 35000))}, ((28,), (35000,)), 0
)
COUNTED = PairCounts(3, make_schema((2, 2)), [np.array([[1, 0], [1, 1]])])


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (GROUPED, "1322af6a63581fd49f58eeb186b8467d"),
        (RELEASED, "1b4f4a9ea9a62b5b4e3a9d14fac8a369"),
        (COUNTED, "7d83cb0fcd8523ab2947ffb7204a8314"),
    ],
    ids=["groups", "masks", "counts"],
)
def test_what_all_compare_in_the_end_is_this_digest(result, expected):
    assert beginning(result.digest) == expected


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(GROUPED, known={"ann": (0, 28), "ben": (1, 30)}),
        msgspec.structs.replace(GROUPED, groups=(("ben", "ann"),)),
        msgspec.structs.replace(GROUPED, levels=(1, 0)),
        msgspec.structs.replace(GROUPED, messages=((0, (35000,)), (0, (30001,)))),
    ],
    ids=["quasi-identifiers", "groups", "levels", "confidential values"],
)
def test_two_releases_that_differ_have_two_digests(other):
    assert other.digest != GROUPED.digest
