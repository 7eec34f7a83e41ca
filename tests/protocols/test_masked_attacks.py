"""Attacks by which a reviewer broke an earlier version of the masked sum."""

import asyncio

import msgspec
import pytest
from helpers import (
    LaxDesk,
    Tapped,
    assert_tables,
    crosstabs,
    make_scenario,
    make_study,
    random_records,
    setting,
    simulate,
)
from test_masked_cheats import MASKED, SIZES, coordinator_whose, party_that_reports

from mpc_rr.agents import coordinator as coordinating
from mpc_rr.agents.account import Account
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.merkle import MerkleTree
from mpc_rr.crypto.pairwise import MaskKey, is_key
from mpc_rr.errors import InputError, Misconduct
from mpc_rr.network.envelope import EVERYONE
from mpc_rr.network.session import Gathered
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.session.party import PartySession
from mpc_rr.privacy.graph_parameters import LEAST_OTHERS, GraphParameters
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.sums.masked import setup as enrolment
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import (
    Die,
    Entry,
    KeysFixed,
    MaskingOptions,
    MaskKeys,
    Neighbourhood,
    Player,
    Seat,
)
from mpc_rr.protocols.sums.masked.sum import MaskedVector, SumDone, Unmasking
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running import studies as study_module
from mpc_rr.study.file import party_names

N = 16
RECORDS = random_records(N, SIZES, seed=2)


def run(**how):
    return simulate(make_study(N, SIZES, minimum=10, protocol=MASKED), RECORDS, **how)


# ── Keys that stand twice ──────────────────────────────────────────────────────────────────────


def test_no_two_edges_share_a_secret_even_with_equal_keys():
    """Else a phantom with a victim's keys could be given both kinds of shares of the victim."""
    place = Seat(
        GraphParameters(4, 3), True, HararyGraph(bytes(32), 9, 4), 4, [2, 3, 5, 6],
        [b"agreed"] * 4, [b"agreed"] * 4,
    )  # fmt: skip
    seeds = place.pair_seeds(b"a sum")
    keys = [key for seal in place.seal_keys(b"a sum") for key in seal]
    assert len(set(seeds)) == 4
    assert len(set(keys)) == 12


def test_a_neighbour_that_stands_there_twice_is_found(monkeypatch):
    """The coordinator lets a phantom in, with the keys of a party and another name."""

    class Phantom(LiveSession):
        async def gather(self, kind, **options):
            gathered = await super().gather(kind, **options)
            if kind is MaskKeys:
                everybody = sorted(gathered.messages)
                monkeypatch.setattr(enrolment, "_without_copied_keys", lambda *_: everybody)
                same = gathered.messages["party-05"].key
                other = msgspec.structs.replace(gathered.messages["party-06"], key=same)
                return Gathered(gathered.messages | {"party-06": other}, (), {})
            return gathered

    _, ends = run(coordinator=coordinator_whose(Phantom))
    others = [end for name, end in ends.items() if name != "party-06"]
    assert all(isinstance(end, Misconduct) for end in others)
    assert all("two neighbours have the same key" in str(end) for end in others)


def test_whoever_copies_a_key_is_left_out():
    """And nobody else: once the owner of the key was left out with whoever had copied it."""
    keys = {}

    class Shown(PartySession):
        async def report(self, message):
            if isinstance(message, MaskKeys):
                keys[self.me] = message.key
            return await super().report(message)

    class Owner(Party):
        session_kind = Shown

    class Copies(PartySession):
        async def report(self, message):
            if isinstance(message, MaskKeys):
                message = msgspec.structs.replace(message, key=keys["party-03"])
            return await super().report(message)

    class Copier(Party):
        session_kind = Copies

    outcome, _ = run(parties={"party-03": Owner, "party-09": Copier})
    assert set(outcome.result.lost) == {"party-09"}
    assert "does not prove that the key in it" in outcome.result.lost["party-09"]
    rest = [
        r
        for name, r in zip(party_names(N), RECORDS, strict=True)
        if name not in outcome.result.lost
    ]
    assert_tables(outcome.result.tables, crosstabs(rest, SIZES))


def test_a_key_for_masks_that_is_already_for_sealing_is_its_owner_s_fault():
    class Same(PartySession):
        async def report(self, message):
            if isinstance(message, MaskKeys):
                own = self.mailbox.identity.public.sealing
                message = msgspec.structs.replace(message, key=own)
            return await super().report(message)

    class Twice(Party):
        session_kind = Same

    outcome, _ = run(parties={"party-04": Twice})
    assert set(outcome.result.lost) == {"party-04"}
    assert (
        "does not prove that the key in it is its sender's own" in outcome.result.lost["party-04"]
    )


def test_a_long_die_is_its_owner_s_fault():
    """It would make the messages to all its neighbours too long."""
    die = bytes(60_000)
    long = party_that_reports(
        (MaskKeys, Die),
        lambda m: Die(die) if isinstance(m, Die)
        else msgspec.structs.replace(m, die_hash=enrolment._die_hash(die)),
    )  # fmt: skip
    outcome, _ = run(parties={"party-04": long})
    assert set(outcome.result.lost) == {"party-04"}
    assert "a die has 16 bytes" in outcome.result.lost["party-04"]


def test_a_key_written_in_another_way_is_no_key():
    key = MaskKey(SeededRandomness(9)).public
    assert is_key(key)
    assert not is_key(key[:31] + bytes([key[31] | 0x80]))


def test_too_few_for_any_plan_end_the_study_with_the_cause():
    class Few(LiveSession):
        async def gather(self, kind, **options):
            gathered = await super().gather(kind, **options)
            if kind is Die:
                few = dict(sorted(gathered.messages.items())[:5])
                return Gathered(few, (), {})
            return gathered

    options = MaskingOptions(corrupt=0.25, coordinator="curious")
    study = make_study(N, SIZES, minimum=4, protocol=ExactPairs(sum="masked_sum", masking=options))
    outcome, _ = simulate(study, RECORDS, coordinator=coordinator_whose(Few))
    assert outcome.result is None
    assert "5 parties are too few for a masked sum" in outcome.cause


def test_a_key_that_is_none_is_the_coordinator_s_fault():
    class Low(LiveSession):
        async def gather(self, kind, **options):
            gathered = await super().gather(kind, **options)
            if kind is MaskKeys:
                low = msgspec.structs.replace(gathered.messages["party-03"], key=bytes(32))
                return Gathered(gathered.messages | {"party-03": low}, (), {})
            return gathered

    _, ends = run(coordinator=coordinator_whose(Low))
    assert all(isinstance(end, Misconduct) for end in ends.values()), ends


# ── Neighbours whom the registrar does not know ────────────────────────────────────────────────

VICTIM = "party-05"


class Fork(LiveSession):
    """Shows one party a tree of keys that are all its own, under the names of the others."""

    passes = staticmethod(lambda _: None)
    persons = staticmethod(lambda entry: entry.shown.person)

    async def gather(self, kind, **options):
        gathered = await super().gather(kind, **options)
        if kind in (MaskKeys, Die):
            self.mailbox.seen = getattr(self.mailbox, "seen", {}) | {kind: gathered.messages}
        return gathered

    async def announce(self, message):
        if not isinstance(message, KeysFixed):
            await super().announce(message)
            return
        raw = self.mailbox.write(self.name, message.step, EVERYONE, message)
        self.mailbox.transcribe(raw)
        for party in self.parties:
            persons = b"".join(type(self).persons(e) for e in self.entries if e.shown)
            root = message if party != VICTIM else KeysFixed(self.tree.root, persons)
            raw = self.mailbox.write(self.name, message.step, EVERYONE, root)
            await self.mailbox.transport.send(party, raw)

    @property
    def entries(self):
        real = self.mailbox.seen[MaskKeys][VICTIM]
        return [
            Entry(name, self.identity_of(name), real.key, real.die_hash, self.pass_of(name))
            if name == VICTIM
            else Entry(
                name, Identity(SeededRandomness(f"identity of {name}")).public,
                MaskKey(SeededRandomness(f"key of {name}")).public,
                enrolment._die_hash(bytes(16)), type(self).passes(self.pass_of(name)),
            )
            for name in sorted(self.parties)
        ]  # fmt: skip

    @property
    def tree(self):
        return MerkleTree([enrolment._encoded(entry) for entry in self.entries])

    async def hand_out(self, messages):
        if isinstance(next(iter(messages.values())), Neighbourhood):
            dice = {VICTIM: self.mailbox.seen[Die][VICTIM].die}
            players = [
                Player(entry, at, dice.get(entry.name, bytes(16)))
                for at, entry in enumerate(self.entries)
            ]
            dice_tree = MerkleTree([enrolment._encoded(player) for player in players])
            degree = MaskingOptions().plan(len(players), self.most).degree
            persons = b"".join(type(self).persons(e) for e in self.entries if e.shown)
            fixed = KeysFixed(self.tree.root, persons)
            graph = enrolment._graph(fixed, dice_tree.root, len(players), degree)
            number = sorted(self.parties).index(VICTIM)
            numbers = [number, *graph.neighbours(number).tolist()]
            told = enrolment._neighbourhood(numbers, players, self.tree, dice_tree)
            messages = messages | {VICTIM: told}
        await super().hand_out(messages)


class Borrowed(Fork):
    """The same, with the passes of those whose names it uses."""

    passes = staticmethod(lambda shown: shown)


@pytest.mark.parametrize(("kind", "says"), [(Fork, "has no pass"), (Borrowed, "someone else")])
def test_invented_neighbours_have_no_pass(monkeypatch, kind, says):
    monkeypatch.setattr(study_module, "Coordinator", coordinator_whose(kind))
    registrar = SigningKey.draw(SeededRandomness(1))
    scenario = make_scenario(RECORDS, SIZES, protocol=MASKED, minimum=10)
    study = msgspec.structs.replace(scenario.study, registrar=registrar.public.hex())
    scenario = msgspec.structs.replace(scenario, study=study)
    result = study_module.run_study(scenario, transport="memory", seed=3, registrar=registrar)
    end = result.parties[VICTIM]
    assert isinstance(end, Misconduct)
    assert end.culprits == ("coordinator",)
    assert says in str(end)


def test_one_person_at_two_places_of_the_tree_is_seen_by_everybody(monkeypatch):
    """Not only by those who have both as neighbours."""
    monkeypatch.setattr(coordinating, "PassDesk", LaxDesk)
    registrar, person = (SigningKey.draw(SeededRandomness(seed)) for seed in (1, 2))
    admission = {}

    def admit_all(scenario, key, rng):
        given = {name: SigningKey.draw(SeededRandomness(name)) for name in scenario.party_names()}
        given["party-01"] = given["party-09"] = person
        digest = scenario.study.digest
        admission.update({n: (k, key.admit(digest, k.public)) for n, k in given.items()})
        return admission

    monkeypatch.setattr(study_module, "_admit_all", admit_all)
    scenario = make_scenario(RECORDS, SIZES, protocol=MASKED, minimum=10)
    study = msgspec.structs.replace(scenario.study, registrar=registrar.public.hex())
    scenario = msgspec.structs.replace(scenario, study=study)
    result = study_module.run_study(scenario, transport="memory", seed=3, registrar=registrar)
    assert all("the same person" in str(end) or "a person is there twice" in str(end)
               for end in result.parties.values())  # fmt: skip


def test_a_party_with_the_registrars_list_takes_no_neighbour_who_is_on_it(monkeypatch):
    """Her coordinator has no list, or ignores it."""
    registrar = SigningKey.draw(SeededRandomness(1))
    scenario = make_scenario(RECORDS, SIZES, protocol=MASKED, minimum=10)
    study = msgspec.structs.replace(scenario.study, registrar=registrar.public.hex())
    scenario = msgspec.structs.replace(scenario, study=study)
    admitted = study_module._admit_all(scenario, registrar, SeededRandomness(3))
    others = frozenset(key.public for name, (key, _) in admitted.items() if name != VICTIM)
    hers = admitted[VICTIM][0].public

    def terms(admission):
        return Terms(admission=admission, withdrawn=others if admission[0].public == hers else ())

    monkeypatch.setattr(study_module, "Terms", terms)
    result = study_module.run_study(scenario, transport="memory", seed=3, registrar=registrar)
    end = result.parties[VICTIM]
    assert isinstance(end, Misconduct)
    assert "the registrar has withdrawn this admission" in str(end)


# ── Parties that lie, and parties that leave with a lie ────────────────────────────────────────


def test_a_few_false_shares_do_not_stop_the_sum():
    """One in twenty lies, spread over all neighbourhoods."""
    n = 60
    records = random_records(n, SIZES, seed=1)
    liars = party_names(n)[1::20]
    lying = party_that_reports(
        Unmasking, lambda m: msgspec.structs.replace(m, shares=bytes(len(m.shares)))
    )
    study = make_study(n, SIZES, minimum=36, protocol=MASKED)
    outcome, _ = simulate(study, records, parties=dict.fromkeys(liars, lying))
    assert_tables(outcome.result.tables, crosstabs(records, SIZES))


def test_nobody_is_named_for_a_liar_where_no_share_is_to_spare():
    """Any t shares fit together: that they do not fit a mark says nothing of who lied."""
    lying = party_that_reports(
        Unmasking, lambda m: msgspec.structs.replace(m, shares=bytes(len(m.shares)))
    )
    gone = party_that_reports(Unmasking, lambda m: msgspec.structs.replace(m, survivors=b""))
    parties = {"party-02": lying, "party-14": gone, "party-15": gone}
    outcome, _ = run(parties=parties)
    assert outcome.result is None
    assert "do not fit" in outcome.cause
    assert outcome.culprits == ()


class Silent(PartySession):
    async def report(self, message):
        if isinstance(message, MaskedVector):
            await asyncio.sleep(1000)
        return await super().report(message)


class Leaving(Party):
    """Sends shares, and nothing after that."""

    session_kind = Silent


def test_who_leaves_with_a_false_seed_in_its_box_cannot_move_the_sum(monkeypatch):
    honest = masked_sum._shares

    def with_a_false_seed(place, own_secret, box_key, seeds, seals, rng):
        if place.liar:
            seeds = [bytes(16), *seeds[1:]]
        return honest(place, own_secret, box_key, seeds, seals, rng)

    original = masked_sum.masked_sum_party

    async def party(session, place, *args, **options):
        place.liar = session.me == "party-07"
        return await original(session, place, *args, **options)

    monkeypatch.setattr(masked_sum, "_shares", with_a_false_seed)
    monkeypatch.setattr("mpc_rr.protocols.sums.choice.masked_sum_party", party)
    outcome, _ = run(parties={"party-07": Leaving}, seed=2)
    assert outcome.result is None
    assert "do not name the same mask: one of them lied" in outcome.cause
    assert "party-07" in outcome.culprits


# ── The same record in two runs ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["masked_sum", "secure_sum"])
def test_who_was_counted_is_not_counted_again_without_being_asked(kind):
    """The difference of two totals is the record of whoever is missing in one of them."""
    books = {}

    def keeping(again):
        class Keeping(Party):
            def __init__(self, study, name, *args):
                account = books.setdefault(name, Account())
                super().__init__(study, name, *args, terms=Terms(account=account, again=again))

        return Keeping

    study = make_study(N, SIZES, minimum=10, protocol=ExactPairs(sum=kind))
    first, _ = simulate(study, RECORDS, party=keeping(False), seed=1)
    assert first.result is not None
    second, ends = simulate(study, RECORDS, party=keeping(False), seed=2)
    assert second.result is None
    assert all("anyone who is in only one of them" in str(end) for end in ends.values())
    third, _ = simulate(study, RECORDS, party=keeping(True), seed=3)
    assert_tables(third.result.tables, crosstabs(RECORDS, SIZES))


# ── What parties are told about the total ──────────────────────────────────────────────────────


def test_parties_that_were_told_of_other_numbers_do_not_vouch():
    """One has left: both 15 and 16 could be the number of those whose vectors are there."""

    class Counts(LiveSession):
        async def hand_out(self, messages):
            if isinstance(next(iter(messages.values())), masked_sum.Survivors):
                assert len(messages) == N - 1
                messages = {
                    name: msgspec.structs.replace(m, count=m.count + place % 2)
                    for place, (name, m) in enumerate(messages.items())
                }
            await super().hand_out(messages)

    network = Tapped()
    parties = {"party-16": Leaving}
    _, ends = run(coordinator=coordinator_whose(Counts), parties=parties, network=network)
    for place, end in enumerate(list(ends.values())[:-1]):
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert f"{7 - place % 2} of my 15 neighbours vouch" in str(end)
    assert not [e for e in network.envelopes if e.header.step == Unmasking.step]


def test_a_total_for_the_coordinator_alone_is_told_to_nobody():
    class Telling(LiveSession):
        async def announce(self, message):
            if isinstance(message, SumDone):
                message = msgspec.structs.replace(message, total=b"all of it")
            await super().announce(message)

    study = make_study(
        N, SIZES, minimum=10, protocol=msgspec.structs.replace(MASKED, suppress_below=3)
    )
    _, ends = simulate(study, RECORDS, coordinator=coordinator_whose(Telling))
    assert all("for the coordinator alone" in str(end) for end in ends.values())


# ── Noise against a coordinator that lies ──────────────────────────────────────────────────────


def test_noise_suffices_for_the_smallest_group_of_which_a_liar_can_have_the_sum():
    lying = ExactPairs(sum="masked_sum", noise_epsilon=5.0)
    trusted = msgspec.structs.replace(lying, masking=MaskingOptions(coordinator="curious"))
    many = setting(make_study(1000, SIZES).schema, 1000, registrar=True)
    assert lying.agreed_noise(many).honest == LEAST_OTHERS + 1
    assert trusted.agreed_noise(many).honest == 500
    lying.check(many)
    with pytest.raises(InputError, match="could get sums over fewer than 11"):
        lying.check(setting(make_study(12, SIZES).schema, 12, registrar=True))
