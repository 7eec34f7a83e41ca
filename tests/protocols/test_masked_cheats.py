"""A masked sum with a coordinator or a party that cheats: named, and nothing learned."""

import asyncio

import msgspec
import numpy as np
import pytest
from helpers import Tapped, make_study, random_records, simulate
from scipy import stats

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.crypto.pairwise import SEED_BYTES, MaskKey
from mpc_rr.errors import Misconduct, StudyError
from mpc_rr.network.envelope import decode, encode
from mpc_rr.network.session import Gathered
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.session.party import PartySession
from mpc_rr.network.vectors import unpack_bits
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.sums.masked import slots
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import Die, MaskingOptions, MaskKeys, Neighbourhood, Seat
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
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3)
N = 16
RECORDS = random_records(N, SIZES, seed=2)
MASKED = ExactPairs(sum="masked_sum", masking=MaskingOptions(coordinator="malicious"))


def run(*, study=None, **how):
    return simulate(study or make_study(N, SIZES, minimum=10, protocol=MASKED), RECORDS, **how)


def coordinator_whose(session_class):
    """A coordinator with another kind of session."""

    class Cheat(Coordinator):
        session_kind = session_class

    return Cheat


def handing_out(kind, change):
    """A coordinator that changes what it hands out to single parties."""

    class Session(LiveSession):
        async def hand_out(self, messages):
            await super().hand_out(
                {
                    name: change(name, message) if isinstance(message, kind) else message
                    for name, message in messages.items()
                }
            )

    return coordinator_whose(Session)


def with_player(told, change):
    """A neighbourhood in which the first neighbour was changed."""
    number = next(k for k in sorted(told.players))
    players = told.players | {number: change(told.players[number])}
    return msgspec.structs.replace(told, players=players)


def other_key(player):
    key = MaskKey(SeededRandomness(99)).public
    return msgspec.structs.replace(player, entry=msgspec.structs.replace(player.entry, key=key))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda t: msgspec.structs.replace(t, dice_root=bytes(32)),
            "whose random contributions count",
        ),
        (
            lambda t: msgspec.structs.replace(t, nodes=N - 1),
            "a graph of 15",
        ),
        (
            lambda t: with_player(t, other_key),
            "not fixed before the random contributions|not in the graph with my",
        ),
        (
            lambda t: with_player(t, lambda p: msgspec.structs.replace(p, die=b"x" * 16)),
            "random contribution was changed|not in the graph",
        ),
        (
            lambda t: with_player(t, lambda p: msgspec.structs.replace(p, at=p.at + 1)),
            "stands twice|not fixed before",
        ),
        (lambda t: msgspec.structs.replace(t, dice_proof=t.dice_proof + bytes(32)), "length"),
    ],
    ids=["picks the seed", "drops one", "swaps a key", "turns a die", "doubles one", "pads"],
)
def test_a_coordinator_that_picks_the_graph_is_named_by_every_party(change, says):
    _, ends = run(coordinator=handing_out(Neighbourhood, lambda _, told: change(told)))
    for end in ends.values():
        assert isinstance(end, Misconduct), end
        assert end.culprits == ("coordinator",)
    assert all(np.any([part in str(end) for part in says.split("|")]) for end in ends.values())


class TwoSets(LiveSession):
    """Tells a third of the victim's neighbours that it has left, and the others the truth."""

    victim = "party-05"
    captured: list = []  # noqa: RUF012

    async def hand_out(self, messages):
        if isinstance(next(iter(messages.values()), None), Survivors):
            fooled = sorted(set(messages) - {self.victim})[::3]
            slot = self.slots
            messages = messages | {
                name: msgspec.structs.replace(
                    messages[name],
                    survived=cleared(messages[name].survived, slot[name]),
                    count=messages[name].count - 1,
                    digest=bytes(32),
                )
                for name in fooled
            }
        await super().hand_out(messages)

    @property
    def slots(self):
        return _slots_of_victim(TwoSets.board)

    async def gather(self, kind, *, check=None, senders=None):
        if kind is not Unmasking:
            return await super().gather(kind, check=check, senders=senders)
        gathered = await super().gather(kind, senders=senders)
        TwoSets.captured.append(gathered.messages)
        slots = self.slots
        usable = {
            name: message if message.survivors != bytes(32) else without(message, slots[name])
            for name, message in gathered.messages.items()
        }
        return Gathered(usable, gathered.silent, {})


def without(message, slot):
    """An unmasking without the share for one neighbour."""
    shares = masked_sum._given(message, TwoSets.board.graph.degree)
    del shares[slot]
    kept = b"".join(shares.values())
    return msgspec.structs.replace(message, given=cleared(message.given, slot), shares=kept)


def cleared(bitmap, slot):
    flags = np.unpackbits(np.frombuffer(bitmap, np.uint8))
    flags[slot] = 0
    return np.packbits(flags).tobytes()


def test_two_sets_of_survivors_are_found_out_before_any_share_is_given(monkeypatch):
    """Neighbours vouch with the set they were shown: whoever was shown another finds too few."""
    remember_board(monkeypatch)
    TwoSets.captured.clear()
    outcome, ends = run(coordinator=coordinator_whose(TwoSets))
    assert outcome.result is None or len(TwoSets.captured[0]) < N
    refused = [end for end in ends.values() if "neighbours vouch" in str(end)]
    assert len(refused) >= 5
    assert all(isinstance(end, Misconduct) for end in refused)
    assert all(end.culprits == ("coordinator",) for end in refused)
    gave_box_shares = [m for m in TwoSets.captured[0].values() if m.survivors == bytes(32)]
    assert not gave_box_shares


def remember_board(monkeypatch):
    original = masked_sum.masked_sum_coordinator

    async def remembered(session, board, *args, **kwargs):
        TwoSets.board = board
        return await original(session, board, *args, **kwargs)

    monkeypatch.setattr("mpc_rr.protocols.sums.choice.masked_sum_coordinator", remembered)


class Stripping(LiveSession):
    """Shows the victim t neighbours only, and tells others that some of just these are gone.

    No party is told that fewer than t of its neighbours are left; all are shown one digest. If they
    gave their shares now, the keys of those t neighbours could be put together and, with the
    victim's own secret, its vector laid bare.
    """

    victim = "party-05"
    unmasked: list = []  # noqa: RUF012

    async def gather(self, kind, *, check=None, senders=None):
        gathered = await super().gather(kind, check=check, senders=senders)
        if kind is Unmasking:
            Stripping.unmasked.append(gathered.messages)
        return gathered

    async def hand_out(self, messages):
        first = next(iter(messages.values()), None)
        if isinstance(first, SharesForYou | Survivors):
            board = TwoSets.board
            degree, threshold = board.graph.degree, board.plan.threshold
            row = board.rows[board.names.index(self.victim)].tolist()
            shown = set(row[:threshold])
        if isinstance(first, SharesForYou):
            parcels = slots.pieces(messages[self.victim].parcels, masked_sum.PARCEL_BYTES, degree)
            few = SharesForYou(
                slots.bitmap([k in shown for k in row]),
                b"".join(p for p, k in zip(parcels, row, strict=True) if k in shown),
            )
            messages = messages | {self.victim: few}
        elif isinstance(first, Survivors):
            messages = {
                name: msgspec.structs.replace(message, survived=self._told(name, shown))
                for name, message in messages.items()
            }
        await super().hand_out(messages)

    def _told(self, name, shown):
        board = TwoSets.board
        row = board.rows[board.names.index(name)].tolist()
        if name == self.victim:
            return slots.bitmap([k in shown for k in row])
        gone = set([k for k in row if k in shown][: len(row) - board.plan.threshold])
        return slots.bitmap([k not in gone for k in row])


@pytest.mark.parametrize("n", [16, 50])
def test_a_party_whose_neighbours_are_said_to_be_gone_is_not_stripped_of_its_masks(monkeypatch, n):
    """So few help that of the neighbours shown to the victim not all keys can be recovered."""
    remember_board(monkeypatch)
    Stripping.unmasked.clear()
    records = random_records(n, SIZES, seed=2)
    study = make_study(n, SIZES, minimum=int(0.8 * n), protocol=MASKED)
    outcome, ends = simulate(study, records, coordinator=coordinator_whose(Stripping))
    assert outcome.result is None
    board, (helped,) = TwoSets.board, Stripping.unmasked
    shown = board.rows[board.names.index(Stripping.victim)].tolist()[: board.plan.threshold]
    helpers = {board.names.index(name) for name in helped}
    stripped = [
        number for number in shown
        if len([k for k in board.rows[number].tolist() if k in helpers]) >= board.plan.threshold
        and board.names[number] not in helped
    ]  # fmt: skip
    assert len(stripped) < len(shown)
    assert any("neighbours vouch" in str(end) for end in ends.values())


def test_where_nobody_vouches_everybody_gives_its_shares_to_the_same_attack(monkeypatch):
    """What the test above prevents: a study that trusts its coordinator not to lie."""
    remember_board(monkeypatch)
    Stripping.unmasked.clear()
    curious = ExactPairs(sum="masked_sum", masking=MaskingOptions(coordinator="curious"))
    study = make_study(N, SIZES, minimum=10, protocol=curious)
    run(study=study, coordinator=coordinator_whose(Stripping))
    assert len(Stripping.unmasked[0]) == N, "all have given their shares"


def test_a_graph_smaller_than_the_study_allows_is_refused():
    class Few(LiveSession):
        async def gather(self, kind, *, check=None, senders=None):
            gathered = await super().gather(kind, check=check, senders=senders)
            if kind is Die:
                few = dict(sorted(gathered.messages.items())[:3])
                return Gathered(few, (), {})
            return gathered

        @property
        def fewest(self):
            return 3

        @fewest.setter
        def fewest(self, _):
            pass

    _, ends = run(coordinator=coordinator_whose(Few))
    named = [end for end in ends.values() if "a graph of 3 parties" in str(end)]
    assert len(named) == 3


def _slots_of_victim(board):
    number = board.names.index(TwoSets.victim)
    return {
        name: row.tolist().index(number)
        for name, row in zip(board.names, board.rows, strict=True)
        if number in row.tolist()
    }


def test_a_coordinator_that_asks_a_second_time_gets_nothing_and_is_named():
    class Twice(LiveSession):
        async def hand_out(self, messages):
            await super().hand_out(messages)
            if isinstance(next(iter(messages.values()), None), Survivors):
                again = {
                    name: msgspec.structs.replace(message, survived=bytes(len(message.survived)))
                    for name, message in messages.items()
                }
                await super().hand_out(again)

    network = Tapped()
    _, ends = run(coordinator=coordinator_whose(Twice), network=network)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert "two different messages for step 'survivors'" in str(end)
    answers = [e.header.sender for e in network.envelopes if e.header.step == "unmasking"]
    assert len(answers) == len(set(answers)), "nobody answered twice"


def test_an_old_sum_cannot_be_replayed():
    """What the coordinator handed out in one run is nothing to a party of another."""
    first = Tapped()
    run(network=first)
    old = {
        target: raw
        for (_, target, raw), envelope in zip(first.captured, first.envelopes, strict=True)
        if envelope.header.step == Survivors.step
    }

    class Replay(LiveSession):
        async def hand_out(self, messages):
            if not isinstance(next(iter(messages.values()), None), Survivors):
                await super().hand_out(messages)
                return
            for name in messages:
                await self.mailbox.transport.send(name, old[name])

    network = Tapped()
    _, ends = run(coordinator=coordinator_whose(Replay), network=network, seed=9)
    assert not [e for e in network.envelopes if e.header.step == "unmasking"]
    assert all(isinstance(end, StudyError) for end in ends.values())


def test_survivors_below_the_threshold_are_not_unmasked():
    def nobody(_, told):
        return msgspec.structs.replace(told, survived=bytes(len(told.survived)))

    network = Tapped()
    _, ends = run(coordinator=handing_out(Survivors, nobody), network=network)
    assert all("0 of my 15 neighbours are left" in str(end) for end in ends.values())
    assert all("I take off nobody's mask" in str(end) for end in ends.values())
    assert not sent(network, "vouchers", "unmasking")


def sent(network, *steps):
    return [e.header.sender for e in network.envelopes if e.header.step in steps]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: {"count": N + 1}, "a sum over 17 parties is not what the study allows"),
        (lambda told: {"count": N - 1}, "a sum over 15 parties is not what the study allows"),
        (
            lambda told: {"count": 9, "survived": slots.bitmap([k < 8 for k in range(N - 1)])},
            "a sum over 9 parties is not what the study allows",
        ),
        (lambda told: {"survived": told.survived + b"\0"}, "a bitmap of another length"),
    ],
    ids=["more than there are", "fewer than I was shown", "fewer than the study needs", "longer"],
)
def test_survivors_of_whom_there_cannot_be_so_many_are_refused(change, says):
    network = Tapped()
    lie = handing_out(Survivors, lambda _, told: msgspec.structs.replace(told, **change(told)))
    _, ends = run(coordinator=lie, network=network)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert says in str(end)
    assert not sent(network, "vouchers", "unmasking")


def test_a_neighbour_whose_shares_were_kept_back_cannot_survive():
    """Its mask is not on our vector: the sum of the two would be over others than is said."""

    def without_the_first(_, told):
        flags = slots.flags_of(told.senders, N - 1)
        return msgspec.structs.replace(
            told,
            senders=slots.bitmap([False, *flags[1:]]),
            parcels=told.parcels[masked_sum.PARCEL_BYTES :],
        )

    network = Tapped()
    _, ends = run(coordinator=handing_out(SharesForYou, without_the_first), network=network)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert "neighbours whose shares were not given to me" in str(end)
    assert not sent(network, "vouchers", "unmasking")


def test_nobody_vouches_for_itself():
    """The coordinator gives everybody its own vouchers back instead of its neighbours'."""

    class Reflecting(LiveSession):
        async def gather(self, kind, **options):
            gathered = await super().gather(kind, **options)
            if kind is Vouchers:
                Reflecting.came = gathered.messages
            return gathered

        async def hand_out(self, messages):
            if isinstance(next(iter(messages.values())), VouchedFor):
                messages = {
                    name: msgspec.structs.replace(told, vouchers=Reflecting.came[name].vouchers)
                    for name, told in messages.items()
                }
            await super().hand_out(messages)

    network = Tapped()
    _, ends = run(coordinator=coordinator_whose(Reflecting), network=network)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert "0 of my 15 neighbours vouch" in str(end)
    assert not sent(network, "unmasking")


def test_a_vector_leaves_only_after_the_point_of_no_return():
    """What comes after it may not be repeated with others: two sums would expose somebody."""
    passed = []

    class Watching(PartySession):
        async def report(self, message):
            passed.append((type(message), self.past_return))
            return await super().report(message)

    class Watched(Party):
        session_kind = Watching

    run(parties={"party-03": Watched})
    assert (MaskShares, False) in passed
    assert (MaskedVector, True) in passed


def test_shares_are_handed_on_only_after_the_coordinator_s_point_of_no_return():
    passed = []

    class Watching(LiveSession):
        async def hand_out(self, messages):
            passed.append((type(next(iter(messages.values()))), self.past_return))
            await super().hand_out(messages)

    run(coordinator=coordinator_whose(Watching))
    assert passed[:2] == [(Neighbourhood, False), (SharesForYou, True)]


# ── Just enough, and one too few ───────────────────────────────────────────────────────────────

ENOUGH = MaskingOptions().plan(N, N).threshold
"""Of a party's 15 neighbours so many must answer."""


def only_the_first(count, joined, size):
    """What came in the first slots only."""
    return slots.bitmap([k < count for k in range(N - 1)]), joined[: count * size]


@pytest.mark.parametrize("count", [ENOUGH - 1, ENOUGH])
def test_a_vector_is_sent_only_if_enough_neighbours_can_help(count):
    def fewer(_, told):
        return SharesForYou(*only_the_first(count, told.parcels, masked_sum.PARCEL_BYTES))

    network = Tapped()
    _, ends = run(coordinator=handing_out(SharesForYou, fewer), network=network)
    kept = [f"only {count} of my 15 neighbours sent me shares" in str(e) for e in ends.values()]
    assert len(sent(network, "masked_vector")) == (N if count == ENOUGH else 0)
    assert all(kept) if count < ENOUGH else not any(kept)


@pytest.mark.parametrize("count", [ENOUGH - 1, ENOUGH])
def test_survivors_are_vouched_for_only_if_there_are_enough(count):
    def fewer(_, told):
        flags = [k < count for k in range(N - 1)]
        return msgspec.structs.replace(told, survived=slots.bitmap(flags))

    network = Tapped()
    _, ends = run(coordinator=handing_out(Survivors, fewer), network=network)
    kept = [f"only {count} of my 15 neighbours are left" in str(end) for end in ends.values()]
    assert len(sent(network, "vouchers")) == (N if count == ENOUGH else 0)
    assert all(kept) if count < ENOUGH else not any(kept)


@pytest.mark.parametrize("count", [ENOUGH - 1, ENOUGH])
def test_shares_are_given_only_if_enough_neighbours_vouch(count):
    def fewer(_, told):
        return VouchedFor(*only_the_first(count, told.vouchers, masked_sum.VOUCHER_BYTES))

    network = Tapped()
    outcome, ends = run(coordinator=handing_out(VouchedFor, fewer), network=network)
    if count == ENOUGH:
        assert outcome.result.n == N
        return
    assert all(f"{count} of my 15 neighbours vouch" in str(end) for end in ends.values())
    assert not sent(network, "unmasking")


# ── What does not fit ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "part"), [(SharesForYou, "parcels"), (VouchedFor, "vouchers")], ids=["parcels", "v"]
)
def test_what_is_handed_out_in_another_size_is_the_coordinator_s_fault(kind, part):
    def longer(_, told):
        return msgspec.structs.replace(told, **{part: getattr(told, part) + b"!"})

    _, ends = run(coordinator=handing_out(kind, longer))
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert "bytes where" in str(end)


def test_a_total_of_another_size_is_the_coordinator_s_fault():
    class Longer(LiveSession):
        async def announce(self, message):
            if isinstance(message, SumDone):
                message = msgspec.structs.replace(message, total=message.total + b"!")
            await super().announce(message)

    _, ends = run(coordinator=coordinator_whose(Longer))
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert "bytes where" in str(end)


def test_neighbours_that_were_never_shown_cannot_survive():
    def fewer(_, told):
        return msgspec.structs.replace(told, senders=bytes(len(told.senders)), parcels=b"")

    _, ends = run(coordinator=handing_out(SharesForYou, fewer))
    assert all("my vector was not sent" in str(end) for end in ends.values())


def test_a_masked_vector_is_uniform_whatever_the_record(monkeypatch):
    """Even to its two neighbours, whose masks on it are here the same in all sums.

    The first cells of one party's vector over 400 sums; below 1e-4 once in 10,000 runs.
    """
    monkeypatch.setattr(Seat, "pair_seeds", lambda seat, purpose: [bytes(SEED_BYTES)] * 2)
    values = []
    for seed in range(400):
        network = Tapped()
        study = make_study(3, (2, 2), protocol=MASKED)
        simulate(study, [(1, 1), (0, 1), (0, 0)], network=network, seed=seed)
        (own,) = [e for e in network.envelopes
                  if e.header.step == "masked_vector" and e.header.sender == "party-1"]  # fmt: skip
        values += unpack_bits(decode(own.body, MaskedVector).cells, 3, 2).tolist()
    assert stats.chisquare(np.bincount(values, minlength=4)).pvalue > 1e-4


def test_a_masked_vector_for_the_coordinator_alone_is_sealed():
    """Without that, whoever saw the shares and these could take the masks off as well as it."""
    readers = []

    class Reading(LiveSession):
        async def gather(self, kind, **options):
            readers.append(self.mailbox.identity)
            return await super().gather(kind, **options)

    network = Tapped()
    study = make_study(
        N, SIZES, minimum=10, protocol=msgspec.structs.replace(MASKED, suppress_below=3)
    )
    run(study=study, network=network, coordinator=coordinator_whose(Reading))
    vectors = [e for e in network.envelopes if e.header.step == ConfidedVector.step]
    assert len(vectors) == N
    assert all(readers[0].open(e.body, encode(e.header)) is not None for e in vectors)


# ── Parties ────────────────────────────────────────────────────────────────────────────────────


def party_that_reports(kind, change):
    """A party that changes one of its reports."""

    class Session(PartySession):
        async def report(self, message):
            await super().report(change(message) if isinstance(message, kind) else message)

    class Cheat(Party):
        session_kind = Session

    return Cheat


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        (Die, lambda m: Die(b"y" * 16), "not the one that was committed to"),
        (MaskKeys, lambda m: MaskKeys(m.key[:31], m.die_hash), "have 32 bytes each"),
        (MaskKeys, lambda m: MaskKeys(m.key, m.die_hash * 1000), "have 32 bytes each"),
        (MaskKeys, lambda m: MaskKeys(bytes(32), m.die_hash), "is no proper key"),
        (MaskShares, lambda m: msgspec.structs.replace(m, parcels=b"short"), "bytes where"),
        (MaskShares, lambda m: msgspec.structs.replace(m, box=m.box[1:]), "bytes where"),
        (MaskShares, lambda m: msgspec.structs.replace(m, marks=m.marks[1:]), "bytes where"),
        (MaskedVector, lambda m: MaskedVector(m.cells + b"\0"), "bytes where"),
    ],
    ids=[
        "another die",
        "short key",
        "long hash",
        "no key",
        "short parcels",
        "short box",
        "short marks",
        "long vector",
    ],
)
def test_a_report_out_of_order_is_left_out_and_its_author_named(kind, change, says):
    outcome, _ = run(parties={"party-07": party_that_reports(kind, change)})
    assert outcome.result is not None, outcome.cause
    assert outcome.result.n == N - 1
    assert says in outcome.result.lost["party-07"]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Vouchers, lambda m: Vouchers(m.vouchers[1:])),
        (Unmasking, lambda m: msgspec.structs.replace(m, shares=m.shares[1:])),
        (Unmasking, lambda m: msgspec.structs.replace(m, survivors=bytes(32))),
        (Unmasking, lambda m: msgspec.structs.replace(m, marks=m.marks[1:])),
    ],
    ids=["vouchers", "shares", "survivors", "marks"],
)
def test_who_helps_out_of_order_is_counted_all_the_same_and_harms_nobody(kind, change):
    """One has left, so that there are marks to be compared."""
    parties = {"party-07": party_that_reports(kind, change), "party-11": leaving_after()}
    outcome, _ = run(parties=parties)
    assert outcome.result is not None, outcome.cause
    assert outcome.result.n == N - 1
    assert set(outcome.result.lost) == {"party-11"}


def leaving_after(change=lambda message: message):
    """A party that sends shares, perhaps others, and no vector."""

    class Session(PartySession):
        async def report(self, message):
            if isinstance(message, MaskedVector):
                await asyncio.sleep(1000)
            return await super().report(
                change(message) if isinstance(message, MaskShares) else message
            )

    class Leaving(Party):
        session_kind = Session

    return Leaving


def test_who_leaves_with_a_box_that_does_not_open_is_named():
    spoiled = leaving_after(lambda m: msgspec.structs.replace(m, box=bytes(len(m.box))))
    outcome, _ = run(parties={"party-07": spoiled})
    assert outcome.result is None
    assert "party-07 left, and its box of seeds does not open" in outcome.cause
    assert outcome.culprits == ("party-07",)


def test_who_sends_shares_that_nobody_can_open_is_named():
    junk = party_that_reports(
        MaskShares, lambda m: msgspec.structs.replace(m, parcels=bytes(len(m.parcels)))
    )
    outcome, _ = run(parties={"party-07": junk})
    assert outcome.result is None
    assert "15 neighbours of party-07 are there, but could not open the shares" in outcome.cause
    assert outcome.culprits == ("party-07",)


def test_a_false_share_is_got_round():
    """One neighbour's shares are wrong: other choices of t fit the mark."""

    def spoiled(message):
        return msgspec.structs.replace(message, shares=bytes(len(message.shares)))

    outcome, _ = run(parties={"party-01": party_that_reports(Unmasking, spoiled)})
    assert outcome.result is not None, outcome.cause
    assert outcome.result.n == N


def test_secrets_that_do_not_fit_end_the_sum_and_are_said():
    def unmarked(message):
        return msgspec.structs.replace(message, marks=bytes(32))

    outcome, _ = run(parties={"party-03": party_that_reports(MaskShares, unmarked)})
    assert outcome.result is None
    assert "party-03" in outcome.cause
    assert "do not fit together" in outcome.cause


def test_a_vector_that_is_no_record_is_noticed():
    """A party that takes off three people of a cell where there is none."""

    class Poisoner(Party):
        def __init__(self, study, name, record, *args):
            super().__init__(study, name, record, *args)
            self._protocol = Poisoned(sum="masked_sum", masking=MASKED.masking)

    outcome, _ = run(parties={"party-07": Poisoner})
    assert outcome.result is None
    assert "poisoned" in outcome.cause


class Poisoned(ExactPairs, frozen=True, tag="poisoned"):
    async def add_party(self, session, vector, modulus, **options):
        vector = (vector.astype(np.int64) - 16) % modulus
        return await super().add_party(session, vector.astype(np.uint64), modulus, **options)


@pytest.mark.parametrize(
    "change",
    [lambda done: {"count": done.count - 1}, lambda done: {"survivors": bytes(32)}],
    ids=["so many others", "others"],
)
def test_a_sum_over_others_than_those_shown_is_refused(change):
    class Other(LiveSession):
        async def announce(self, message):
            if isinstance(message, SumDone):
                message = msgspec.structs.replace(message, **change(message))
            await super().announce(message)

    _, ends = run(coordinator=coordinator_whose(Other))
    assert all("than those I was shown" in str(end) for end in ends.values())
