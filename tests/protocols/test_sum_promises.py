"""What sums promise, and what they do not: each sentence of docs/threat-model.md with its proof."""

import hashlib
import io
import itertools
import json

import msgspec
import numpy as np
import pytest
from helpers import (
    Tapped,
    assert_tables,
    crosstabs,
    make_scenario,
    make_study,
    random_records,
    setting,
    simulate,
)
from rich.console import Console
from test_masked_attacks import VICTIM, Fork
from test_masked_cheats import coordinator_whose

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.party import Party
from mpc_rr.crypto import shamir
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.merkle import MerkleTree
from mpc_rr.crypto.pairwise import MaskKey, lock, mask, seed_of, unlock
from mpc_rr.errors import Refused, ScenarioError
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.network.envelope import decode
from mpc_rr.network.vectors import unpack_bits
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.graph_parameters import LEAST_OTHERS
from mpc_rr.privacy.shuffling import numerical
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.sums.choice import OPEN_MASKS, TRUSTED, UNPROVED
from mpc_rr.protocols.sums.masked import setup
from mpc_rr.protocols.sums.masked.setup import (
    Die,
    KeysFixed,
    MaskingOptions,
    Player,
    Seat,
)
from mpc_rr.protocols.sums.masked.slots import Slots, pieces
from mpc_rr.protocols.sums.masked.sum import (
    PARCEL_BYTES,
    MaskedVector,
    MaskShares,
    SharesForYou,
    Vouchers,
)
from mpc_rr.publication.parts import Note
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import DoesNotHold, verify
from mpc_rr.running import run_study
from mpc_rr.show.study import scenario_facts, show_consent
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.checks import check_study
from mpc_rr.study.definition import study_from_json, study_json
from mpc_rr.study.file import party_names

SIZES = (3, 4, 2)
N = 16
RECORDS = random_records(N, SIZES, seed=4)
OPEN = ExactPairs(sum="masked_sum")
REGISTRAR = SigningKey.draw(SeededRandomness(1))


def with_registrar(study):
    return msgspec.structs.replace(study, registrar=REGISTRAR.public.hex())


MALICIOUS = {"sum": "masked_sum", "masking": MaskingOptions(coordinator="malicious")}


def taking(coordinator, **options):
    masking = MaskingOptions(coordinator=coordinator)
    return ExactPairs(sum="masked_sum", masking=masking, **options)


# ── Masks in an open study ─────────────────────────────────────────────────────────────────────


class Reading(Fork):
    """Is all neighbours of one party, and so holds every share of that party's secrets."""

    def seats(self):
        """The places of the invented neighbours, in the victim's order."""
        dice = {VICTIM: self.mailbox.seen[Die][VICTIM].die}
        entries = self.entries
        players = [Player(e, at, dice.get(e.name, bytes(16))) for at, e in enumerate(entries)]
        dice_root = MerkleTree([setup._encoded(player) for player in players]).root
        plan = MaskingOptions().plan(len(players), self.most)
        fixed = KeysFixed(self.tree.root, b"")
        graph = setup._graph(fixed, dice_root, len(players), plan.degree)
        me = [entry.name for entry in entries].index(VICTIM)
        for number in graph.neighbours(me).tolist():
            name = entries[number].name
            masks = MaskKey(SeededRandomness(f"key of {name}"))
            seals = Identity(SeededRandomness(f"identity of {name}"))
            yield Seat(
                plan, True, graph, number, [me], [masks.shared_secret(entries[me].key)],
                [seals.shared_secret(entries[me].identity.sealing)],
            )  # fmt: skip

    async def hand_out(self, messages):
        if isinstance(next(iter(messages.values())), SharesForYou):
            seats = list(self.seats())
            purpose = self.mailbox.run + self.name.encode() + b"\0" + seats[0].graph.seed
            keys = [seat.seal_keys(purpose)[0] for seat in seats]
            seeds = [seat.pair_seeds(purpose)[0] for seat in seats]
            numbers = [seat.number for seat in seats]
            self.mailbox.network.stolen = (seats[0].neighbours[0], numbers, keys, seeds)
            parcels = Slots.of([lock(key.to_them, bytes(2 * shamir.SHARE_BYTES)) for key in keys])
            messages = messages | {VICTIM: SharesForYou(*parcels.packed)}
        await super().hand_out(messages)


def stolen_vector(network, protocol, layout):
    """The victim's vector, from what it sent and what the coordinator invented."""
    sent = {e.header.step: e.body for e in network.envelopes if e.header.sender == VICTIM}
    me, numbers, keys, seeds = network.stolen
    parcels = pieces(decode(sent[MaskShares.step], MaskShares).parcels, PARCEL_BYTES, len(keys))
    opened = [unlock(key.from_them, p) for key, p in zip(keys, parcels, strict=True)]
    own = shamir.join({k: both[: shamir.SHARE_BYTES] for k, both in enumerate(opened, start=1)})
    cells, bits = layout.free_count, (protocol._modulus(N, None) - 1).bit_length()
    masked = decode(sent[MaskedVector.step], MaskedVector).cells
    vector = unpack_bits(masked, cells, bits).astype(np.int64)
    vector -= mask(seed_of(own), cells, bits).astype(np.int64)
    for number, seed in zip(numbers, seeds, strict=True):
        sign = -1 if me < number else 1
        vector += sign * mask(seed, cells, bits).astype(np.int64)
    return vector % (1 << bits)


@pytest.mark.parametrize("protocol", [OPEN, taking("malicious")], ids=["default", "vouching"])
def test_in_an_open_study_a_malicious_coordinator_reads_a_record_and_everybody_is_warned(protocol):
    """Vouching does not help where the neighbours who vouch are all its own."""
    study, network = make_study(N, SIZES, minimum=10, protocol=protocol), Tapped()

    class Coordinated(coordinator_whose(Reading)):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.network = network

    outcome, _ = simulate(study, RECORDS, coordinator=Coordinated, network=network)
    assert outcome.culprits == (VICTIM,)  # it is blamed, too
    layout, record = PairLayout(SIZES), RECORDS[party_names(N).index(VICTIM)]
    np.testing.assert_array_equal(
        stolen_vector(network, protocol, layout), layout.free_vector(record)
    )
    assert OPEN_MASKS in study.protocol.cautions(study.setting)
    assert OPEN_MASKS not in study.protocol.cautions(with_registrar(study).setting)


def test_whoever_is_asked_checks_or_reads_a_result_is_warned_of_an_open_masked_sum():
    scenario = make_scenario(RECORDS, SIZES, protocol=OPEN)
    assert str(OPEN_MASKS) in scenario_facts(scenario, 0)["notes"]
    means = consent_to(scenario.study, Account())
    assert OPEN_MASKS in means.cautions
    shown = io.StringIO()
    show_consent(Console(width=1000, file=shown), means)
    assert OPEN_MASKS.text in shown.getvalue()
    found = run_study(scenario, transport="memory", seed=1).publication
    assert Note(text=str(OPEN_MASKS), severity="warning") in found.notes


def test_who_trusts_a_coordinator_with_a_registrar_is_told_so():
    """A registrar alone protects from invented parties, not from a coordinator that deviates."""
    study = with_registrar(make_study(N, SIZES, protocol=taking("semi-honest")))
    assert TRUSTED in consent_to(study, Account()).cautions
    assert any(note.text == str(TRUSTED) for note in study.protocol.notes(study.setting))
    malicious = with_registrar(make_study(N, SIZES, protocol=taking("malicious")))
    assert not {TRUSTED, OPEN_MASKS} & {*consent_to(malicious, Account()).cautions}


@pytest.mark.parametrize("outer", [lambda p: p, lambda p: RRClusters(keep=0.6, dependence=p)])
def test_masks_are_malicious_with_a_registrar_and_semi_honest_without(outer):
    open_study = make_study(N, SIZES, protocol=outer(OPEN))
    closed = with_registrar(open_study)
    for study in (open_study, closed):
        check_study(study)
    assert Vouchers.step not in open_study.protocol.steps(open_study.setting)
    assert Vouchers.step in closed.protocol.steps(closed.setting)
    assert OPEN_MASKS in open_study.protocol.cautions(open_study.setting)


@pytest.mark.parametrize("word", ["malicious", "lying"])
def test_malicious_is_refused_where_nobody_admits_people(word):
    study = make_study(N, SIZES, protocol=taking(word))
    with pytest.raises(ScenarioError, match=f'"{word}" .* needs a registrar.*"semi-honest"'):
        check_study(study)
    check_study(with_registrar(study))
    assert Vouchers.step in study.protocol.steps(study.setting)


def test_a_party_refuses_a_noisy_sum_in_which_it_could_be_alone_with_too_few():
    """Thirteen of thirty are left: a malicious coordinator could have one of them among nine."""
    records = random_records(30, SIZES, seed=2)
    gone = tuple(PartyFault(name, "mask_keys") for name in party_names(30)[13:])
    scenario = make_scenario(
        records, SIZES, minimum=13, protocol=taking("malicious", noise_epsilon=5.0),
        faults=Faults(silent=gone),
    )  # fmt: skip
    result = run_study(scenario, transport="memory", seed=3)
    assert result.outcome.result is None
    first = result.parties[party_names(30)[0]]
    assert isinstance(first, Refused)
    assert "among 9 others; 10 are needed; it was not sent" in str(first)


def test_randomized_pairs_are_held_to_what_their_sum_needs():
    with pytest.raises(ScenarioError, match="needs a registrar"):
        check_study(make_study(N, SIZES, protocol=RRPairs(epsilon=1.0, **MALICIOUS)))
    unmasked = RRPairs(epsilon=1.0, sum="secure_sum", masking=MaskingOptions())
    with pytest.raises(ScenarioError, match="goes with sum"):
        check_study(make_study(N, SIZES, protocol=unmasked))


@pytest.mark.parametrize("word", ["semi-honest", "curious"])
def test_semi_honest_is_taken_at_its_word(word):
    open_study = make_study(N, SIZES, protocol=taking(word))
    for study in (open_study, with_registrar(open_study)):
        check_study(study)
        assert Vouchers.step not in study.protocol.steps(study.setting)


@pytest.mark.parametrize("registrar", [None, REGISTRAR], ids=["open", "admitted"])
def test_agents_vouch_as_the_study_has_it_and_a_replay_finds_the_same(registrar, tmp_path):
    scenario = make_scenario(RECORDS, SIZES, minimum=10, protocol=OPEN)
    if registrar:
        study = with_registrar(scenario.study)
        scenario = msgspec.structs.replace(scenario, study=study)
    result = run_study(scenario, transport="memory", seed=3, registrar=registrar)
    assert_tables(result.outcome.result.tables, crosstabs(RECORDS, SIZES))
    steps = {step for _, step, _ in result.outcome.traffic}
    assert (Vouchers.step in steps) == bool(registrar)
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_a_transcript_without_the_vouchers_that_are_due_does_not_hold(tmp_path):
    scenario = make_scenario(RECORDS, SIZES, minimum=10, protocol=OPEN)
    scenario = msgspec.structs.replace(scenario, study=with_registrar(scenario.study))
    folder = tmp_path / "run"
    write_results(run_study(scenario, transport="memory", seed=3, registrar=REGISTRAR), folder)
    lines = (folder / "transcript.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["step"] != Vouchers.step]
    assert len(kept) == len(lines) - N
    (folder / "transcript.jsonl").write_text("".join(kept))
    result = json.loads((folder / "result.json").read_text())
    digest = hashlib.sha256("".join(kept).encode()).hexdigest()
    result["transcript"] = {"messages": len(kept), "digest": digest}
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(DoesNotHold, match="only 0 of party-01's neighbours helped"):
        verify(folder)


@pytest.mark.parametrize("noise", [None, 5.0])
def test_a_run_in_which_parties_vouched_without_a_registrar_is_replayed_as_it_was(
    noise, tmp_path, monkeypatch
):
    """Once that was what an open study meant; such folders hold no word for it."""
    records = random_records(30, SIZES, seed=2)
    protocol = ExactPairs(sum="masked_sum", noise_epsilon=noise)
    scenario = make_scenario(records, SIZES, protocol=protocol)
    with monkeypatch.context() as then:
        then.setattr(MaskingOptions, "resolved", lambda self, **_: self)
        result = run_study(scenario, transport="memory", seed=3)
        assert Vouchers.step in {step for _, step, _ in result.outcome.traffic}
        write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


@pytest.mark.parametrize(
    ("masking", "digest"),
    [
        (None, "d879b516aaa06093"),
        (MaskingOptions(), "4cdbe3cf9bb3be22"),
        (MaskingOptions(corrupt=0.1), "90e4dcb7d5ae355f"),
        (MaskingOptions(coordinator="lying"), "4cdbe3cf9bb3be22"),
        (MaskingOptions(coordinator="curious"), "52bb9b505ac08dbe"),
    ],
)
def test_digests_are_those_that_old_programs_made(masking, digest):
    """As commit 723af55 has them. It wrote "lying" where a file gave no word."""
    study = make_study(50, (2, 3), protocol=ExactPairs(sum="masked_sum", masking=masking))
    assert study.digest.hex().startswith(digest)
    assert study_from_json(study_json(study)) == study


# ── One dishonest party ────────────────────────────────────────────────────────────────────────


class Moved(tuple):
    """A record that moves people from the first to the second answer of the first attribute."""

    people = 0


@pytest.fixture
def mover(monkeypatch):
    """A party that adds its record, and as many people moved as the test says."""

    def moving(encode):
        def encoded(layout, record):
            vector = encode(layout, tuple(record)).astype(np.int64)
            if isinstance(record, Moved):
                others = itertools.product(*(range(size) for size in layout.sizes[1:]))
                for rest in others:
                    there, here = encode(layout, (1, *rest)), encode(layout, (0, *rest))
                    vector += record.people * (there.astype(np.int64) - here.astype(np.int64))
            return vector.astype(np.uint64)

        return encoded

    for name in ("free_vector", "indicator"):
        monkeypatch.setattr(PairLayout, name, moving(getattr(PairLayout, name)))

    def party(people):
        class Dishonest(Party):
            def __init__(self, study, name, record, *args):
                record = Moved(record)
                record.people = people
                super().__init__(study, name, record, *args)

        return Dishonest

    return party


@pytest.mark.parametrize(
    ("n", "kind", "each", "moved"),
    [(40, "secure_sum", 2, 12), (200, "masked_sum", 16, 96)],
)
def test_one_dishonest_party_moves_as_many_people_as_there_are_in_the_smallest_cell(
    mover, n, kind, each, moved
):
    """The limit that the threat model states, and no other: half of everybody, for example."""
    rng = np.random.default_rng(1)
    sizes = (2, 3, 2)
    records = [
        (int(rng.choice(2, p=[0.62, 0.38])), int(rng.integers(3)), int(rng.integers(2)))
        for _ in range(n)
    ]
    study = make_study(n, sizes, protocol=ExactPairs(sum=kind))
    liar = {party_names(n)[0]: mover(each)}
    outcome, ends = simulate(study, records, parties=liar)
    assert outcome.result is not None, outcome.cause
    true, found = crosstabs(records, sizes)[0].sum(axis=1), outcome.result.tables[0].sum(axis=1)
    assert (found - true).tolist() == [-moved, moved]
    assert {end.digest for end in ends.values()} == {outcome.result.digest}
    assert UNPROVED in study.protocol.notes(study.setting)

    too_many = {party_names(n)[0]: mover(2 * each)}
    outcome, _ = simulate(study, records, parties=too_many)
    assert outcome.result is None
    assert "poisoned" in outcome.cause


# ── Hidden among whom ──────────────────────────────────────────────────────────────────────────


SCHEMA = make_study(3, SIZES).schema


@pytest.mark.parametrize(
    ("kind", "where", "crowd"),
    [
        ("secure_sum", {"fewest": 3}, 2),
        ("secure_sum", {"fewest": 30}, 29),
        ("secure_sum", {"fewest": 3, "counted": 900}, 899),
        ("masked_sum", {"fewest": 1000}, 950),
        ("masked_sum", {"fewest": 700}, 650),
        ("masked_sum", {"fewest": 700, "counted": 800}, 750),
        ("masked_sum", {"fewest": 51}, 1),
        ("masked_sum", {"fewest": 50}, 1),
        ("masked_sum", {"fewest": 3}, 1),
        ("masked_sum", {"fewest": 700, "registrar": True}, LEAST_OTHERS + 1),
        ("masked_sum", {"fewest": 60, "registrar": True}, 1),
        ("masked_sum", {"counted": 1000, "registrar": True}, LEAST_OTHERS + 1),
    ],
)
def test_a_sum_hides_among_those_who_surely_stay_and_are_honest(kind, where, crowd):
    place = setting(SCHEMA, 1000, **where)
    for protocol in (ExactPairs(sum=kind), RRPairs(epsilon=1.0, sum=kind)):
        (event,) = protocol.disclosures(place)
        assert (event.crowd, event.expected) == (crowd, where.get("counted", 1000))
    found = Privacy.of([event])
    assert found.local_epsilon == event.epsilon
    if crowd == 1:
        assert found.central_epsilon == found.local_epsilon
    else:
        assert found.central_epsilon == numerical(event.epsilon, crowd, 1e-6)


def test_more_corrupt_parties_leave_fewer_to_hide_among():
    masking = MaskingOptions(corrupt=0.3, coordinator="semi-honest")
    (event,) = ExactPairs(sum="masked_sum", masking=masking).disclosures(setting(SCHEMA, 100))
    assert event.crowd == 70
    (event,) = ExactPairs(sum="masked_sum").disclosures(setting(SCHEMA, 10))
    assert event.crowd == 9  # whoever looks may be one of them


def test_what_is_published_is_reckoned_for_those_who_are_counted():
    scenario = make_scenario(
        RECORDS, SIZES, minimum=10, protocol=RRPairs(epsilon=1.0, sum="masked_sum")
    )
    before = scenario.study.disclosures[0]
    found = run_study(scenario, transport="memory", seed=2).publication
    assert (before.crowd, found.privacy.events[0].crowd) == (9, N - 1)


@pytest.mark.parametrize(("expected", "fewest"), [(14, 9), (9, 9), (40, 9), (1000, 600)])
def test_the_smallest_group_is_that_of_any_number_that_may_remain(expected, fewest):
    """Nine leave a party among seven others, ten among six: it was asked for nine only."""
    place = setting(SCHEMA, expected, fewest=fewest, registrar=True)
    (event,) = ExactPairs(sum="masked_sum").disclosures(place)
    plans = [MaskingOptions().plan(n, expected) for n in range(fewest, min(expected, 650) + 1)]
    assert event.least == min(plan.others for plan in plans) + 1
    assert event.crowd <= event.least
