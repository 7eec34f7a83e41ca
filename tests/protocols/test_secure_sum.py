"""The secure sum of paper 000 §4.2: exact, and nobody learns more than the sum."""

import asyncio
import itertools
from collections import Counter

import numpy as np
import pytest
from helpers import Tapped, assert_tables, crosstabs, make_study, random_records, simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import Refused
from mpc_rr.network.envelope import COORDINATOR, decode, encode
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.session.party import PartySession
from mpc_rr.network.vectors import pack, unpack
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.sums.secure_sum import (
    ConfidedPartial,
    Partial,
    Share,
    add,
    check_group,
    secure_sum_coordinator,
    secure_sum_party,
    zero_shares,
)
from mpc_rr.randomness import Randomness, SeededRandomness


class Given(Randomness):
    """Serves residues that the test has chosen."""

    def __init__(self, residues):
        self.residues = residues

    def bytes(self, count):
        raise AssertionError("only residues are drawn here")

    def fork(self, label):
        return self

    def below(self, modulus, shape):
        assert max(self.residues) < modulus
        return np.array(self.residues, dtype=np.uint64).reshape(shape)


# ── Sharing ────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(3, 40), st.integers(1, 30), st.integers(0, 1000))
def test_shares_sum_to_zero(parties, cells, seed):
    shares = zero_shares(parties, cells, parties + 1, SeededRandomness(seed))
    assert shares.shape == (parties, cells)
    assert not (shares.sum(axis=0) % (parties + 1)).any()


@pytest.mark.parametrize("left_out", range(4))
def test_any_n_minus_1_shares_are_uniform(left_out):
    """4 parties, modulus 5: the 125 combinations of any three shares are equally frequent.

    The seed is fixed; over seeds a false alarm comes once in ten thousand. The test can fail: see
    the next one.
    """
    shares = zero_shares(4, 50_000, 5, SeededRandomness(11))
    assert _combination_p_value(np.delete(shares, left_out, axis=0), 5) > 1e-4


def test_the_uniformity_test_notices_a_slightly_bent_share():
    shares = zero_shares(4, 50_000, 5, SeededRandomness(11))
    shares[1, :1000] = 0  # two in a hundred
    assert _combination_p_value(shares[1:], 5) < 1e-4


def _combination_p_value(three, modulus):
    combined = three[0] * modulus**2 + three[1] * modulus + three[2]
    counts = np.bincount(combined.astype(int), minlength=modulus**3)
    return chisquare(counts).pvalue


# ── What a coalition sees ──────────────────────────────────────────────────────────────────────


class Table:
    """Parties that sit together: what each sends is kept, and handed over when all have sent."""

    def __init__(self, names):
        self.names = names
        self.all_sent = asyncio.Barrier(len(names))
        self.shares, self.partials = {}, {}


class Seat:
    """A party's session at a `Table`, with the randomness that the test has chosen."""

    def __init__(self, table, me, residues):
        self._table, self.me, self.rng = table, me, Given(residues)
        self.parties = table.names
        self.others = tuple(name for name in table.names if name != me)

    async def exchange(self, messages, *, check):
        self._table.shares[self.me] = messages
        await self._table.all_sent.wait()
        return {other: self._table.shares[other][self.me] for other in self.others}

    def point_of_no_return(self):
        pass

    async def publish(self, message, *, check):
        self._table.partials[self.me] = message
        await self._table.all_sent.wait()
        return dict(self._table.partials)


async def coalition_view(inputs, draws, corrupt):
    """Run the real protocol on one cell; returns what the corrupt parties see, and the total."""
    names = tuple("abc"[: len(inputs)])
    table = Table(names)
    totals = await asyncio.gather(
        *(
            secure_sum_party(Seat(table, name, draw), np.array([value], np.uint64), 4)
            for name, value, draw in zip(names, inputs, draws, strict=True)
        )
    )
    assert len({int(total[0]) for total in totals}) == 1
    seen = tuple(
        table.shares[sender][reader].residues
        for sender in names
        for reader in names
        if sender != reader and reader in corrupt
    )
    published = tuple(table.partials[name].residues for name in names)
    return (seen, published), int(totals[0][0])


async def all_views(inputs, corrupt):
    """The coalition's views over all equally likely random choices of the honest parties."""
    free = list(itertools.product(range(4), repeat=2))
    honest = [k for k, name in enumerate("abc") if name not in corrupt]
    views = Counter()
    for chosen in itertools.product(free, repeat=len(honest)):
        draws = [(1, 1)] * 3
        for k, draw in zip(honest, chosen, strict=True):
            draws[k] = draw
        view, _ = await coalition_view(inputs, draws, corrupt)
        views[view] += 1
    return views


@pytest.mark.parametrize("corrupt", ["a", "b", "c"])
async def test_with_all_but_two_pooled_the_honest_two_stay_undetermined(corrupt):
    """Exactly: the coalition's view has the same distribution whichever of the two said yes."""
    honest = [k for k, name in enumerate("abc") if name != corrupt]

    async def views(first, second):
        inputs = [1, 1, 1]
        inputs[honest[0]], inputs[honest[1]] = first, second
        return await all_views(inputs, corrupt)

    assert await views(0, 1) == await views(1, 0)
    assert await views(0, 0) != await views(1, 1)  # the sum itself is meant to be known


async def test_all_but_one_pooled_know_the_last_input():
    """The limit of every secure sum, stated in the threat model."""
    for last in (0, 1):
        _, total = await coalition_view([1, last, 1], [(1, 2), (3, 0), (2, 2)], "ac")
        assert total - 1 - 1 == last


# ── The protocol itself, message by message ────────────────────────────────────────────────────


class ByHand:
    """A party session whose other parties the test plays."""

    def __init__(self, rng):
        self.parties, self.me, self.rng = ("a", "b", "c"), "a", rng
        self.others = ("b", "c")
        self.returned, self.sent = False, None

    async def exchange(self, messages, *, check):
        self.sent = messages
        replies = {"b": Share(pack(np.array([3, 1], np.uint64), 4)), "c": Share(bytes([2, 2]))}
        for reply in replies.values():
            check(reply)
        return replies

    def point_of_no_return(self):
        self.returned = True

    async def publish(self, message, *, check):
        assert self.returned, "the point of no return comes before the publication"
        self.published = message
        others = {"b": Partial(bytes([1, 0])), "c": Partial(bytes([0, 3]))}
        return {"a": message, **others}


async def test_the_steps_are_those_of_the_paper():
    session = ByHand(Given([1, 2, 3, 3]))  # to b: (1, 2); to c: (3, 3); so own: (0, 3)
    total = await secure_sum_party(session, np.array([1, 0], np.uint64), 4)
    assert session.sent["b"].residues == bytes([1, 2])
    assert session.sent["c"].residues == bytes([3, 3])
    # own value (1, 0) + own share (0, 3) + received (3, 1) + (2, 2), modulo 4
    assert session.published.residues == bytes([2, 2])
    assert total.tolist() == [3, 1]


@given(st.lists(st.lists(st.integers(0, 100), min_size=3, max_size=3), min_size=1, max_size=300))
def test_addition_never_overflows(vectors):
    arrays = [np.array(vector, dtype=np.uint64) for vector in vectors]
    assert add(arrays, 101).tolist() == [sum(column) % 101 for column in zip(*vectors, strict=True)]


@pytest.mark.parametrize("parties", [0, 1, 2])
def test_fewer_than_three_parties_are_refused(parties):
    with pytest.raises(Refused, match="hides nothing"):
        check_group(parties)


async def test_a_party_of_a_group_that_is_too_small_sends_nothing():
    session = ByHand(Given([1, 2]))
    session.parties, session.others = ("a", "b"), ("b",)
    with pytest.raises(Refused, match="a secure sum of 2 parties hides nothing"):
        await secure_sum_party(session, np.array([1, 0], np.uint64), 4)
    assert session.sent is None


async def test_a_coordinator_of_a_group_that_is_too_small_hands_nothing_on():
    class Routing:
        parties, routed = ("a", "b"), False

        async def route(self, kind, *, before_handing_out):
            self.routed = True

    session = Routing()
    with pytest.raises(Refused, match="a secure sum of 2 parties hides nothing"):
        await secure_sum_coordinator(session, 2, 4)
    assert not session.routed


# ── A sum for the coordinator alone ────────────────────────────────────────────────────────────

CONFIDED = ExactPairs(sum="secure_sum", suppress_below=3)


def test_what_is_confided_only_the_coordinator_can_read():
    """On the way it is sealed, and to nobody else."""
    network, opened = Tapped(), []

    class Opening(LiveSession):
        async def confided(self, kind, **options):
            opened.append(self.mailbox.identity)
            return await super().confided(kind, **options)

    class Watched(Coordinator):
        session_kind = Opening

    study = make_study(4, (2, 3), protocol=CONFIDED)
    simulate(study, random_records(4, (2, 3)), network=network, coordinator=Watched)
    sent = [e for e in network.envelopes if e.header.step == ConfidedPartial.step]
    assert len(sent) == 4
    for envelope in sent:
        inside = opened[0].open(envelope.body, encode(envelope.header))
        assert inside is not None
        assert len(decode(inside, ConfidedPartial).residues) == 6


@pytest.mark.parametrize(
    ("residues", "says"), [(bytes(7), "7 bytes where 6 are due"), (b"\xff" * 6, "modulus")]
)
def test_who_confides_what_is_no_vector_is_named(residues, says):
    class Lying(PartySession):
        async def confide(self, message):
            await super().confide(ConfidedPartial(residues))

    class Liar(Party):
        session_kind = Lying

    study = make_study(4, (2, 3), protocol=CONFIDED)
    outcome, _ = simulate(study, random_records(4, (2, 3)), parties={"party-3": Liar})
    assert outcome.result is None
    assert outcome.culprits == ("party-3",)
    assert says in outcome.cause


# ── Whole studies ──────────────────────────────────────────────────────────────────────────────


@st.composite
def studies(draw):
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=4)))
    n = draw(st.integers(3, 7))
    records = draw(
        st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=n, max_size=n)
    )
    return sizes, records


@settings(max_examples=60)
@given(studies(), st.integers(0, 2**32))
def test_counts_equal_numpys_crosstabs(given_study, seed):
    sizes, records = given_study
    outcome, ends = simulate(make_study(len(records), sizes), records, seed=seed)
    expected = crosstabs(records, sizes)
    assert_tables(outcome.result.tables, expected)
    assert len(ends) == len(records)
    for counts in ends.values():  # the result is every party's, not only the coordinator's
        assert_tables(counts.tables, expected)


def test_a_modulus_past_one_byte():
    """256 parties would be the first to need two bytes; the layout of 300 is checked alone."""
    cells, n = 5, 300
    shares = zero_shares(n, cells, n + 1, SeededRandomness(1))
    raw = [pack(share, n + 1) for share in shares]
    assert {len(r) for r in raw} == {2 * cells}
    back = add([unpack(r, cells, n + 1) for r in raw], n + 1)
    assert not back.any()


def test_only_two_rounds_whatever_the_number_of_cells():
    def steps(sizes):
        outcome, _ = simulate(make_study(4, sizes), random_records(4, sizes))
        return Counter(
            step for _, step, peer in outcome.traffic if peer not in ("*", COORDINATOR)
        ), sum(t.messages_up for t in outcome.traffic.values())

    assert steps((2, 2)) == steps((4, 4, 4, 4))
    assert steps((2, 2))[0]["share"] == steps((2, 2))[0]["partial"] == 4
