"""Studies with a registrar: one admission per person, checked by everybody."""

import asyncio

import msgspec
import pytest
from anonymizing import IN_GROUPS, NAMES, PEOPLE, make_scenario, make_study
from helpers import LaxDesk, simulate

from mpc_rr.agents import coordinator as coordinating
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.agents.withdrawals import withdrawals_text
from mpc_rr.crypto.admission import Credential, Pass, SigningKey, admitted, pass_fault
from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import InputError, Misconduct, Refused, ScenarioError
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, LOBBY_SESSION, WIRE_VERSION, Header
from mpc_rr.network.lifecycle import Hello, Passes, ShowPass
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import read, write
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.claims import Contradicted
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import STANDING, verify
from mpc_rr.running import run_study
from mpc_rr.study.checks import check_study

REGISTRAR = SigningKey.draw(SeededRandomness(1))
PEOPLES_KEYS = {name: SigningKey.draw(SeededRandomness(name.encode())) for name in NAMES}
STUDY = make_study(IN_GROUPS, registrar=REGISTRAR.public.hex())


def admission(key, study=STUDY, registrar=REGISTRAR):
    return key, registrar.admit(study.digest, key.public)


def bringing(passes, withdrawn=()):
    class Bringing(Party):
        def __init__(self, study, name, *args):
            terms = Terms(admission=passes.get(name), withdrawn=withdrawn)
            super().__init__(study, name, *args, terms=terms)

    return Bringing


def play(passes, study=STUDY, **agents):
    agents.setdefault("party", bringing(passes))
    return simulate(study, PEOPLE, **agents)


HONEST = {name: admission(key) for name, key in PEOPLES_KEYS.items()}


def test_with_passes_the_study_goes_as_without():
    outcome, ends = play(HONEST)
    assert outcome.result is not None, outcome.cause
    assert {end.digest for end in ends.values()} == {outcome.result.digest}


def test_a_person_without_admission_does_not_even_try():
    outcome, ends = play(HONEST | {"party-3": None})
    assert outcome.result is None
    assert isinstance(ends["party-3"], InputError)
    assert "takes only people whom its registrar has admitted" in str(ends["party-3"])


def test_an_admission_to_another_study_or_by_another_registrar_is_no_admission():
    other = SigningKey.draw(SeededRandomness(9))
    key = PEOPLES_KEYS["party-3"]
    for wrong in (admission(key, registrar=other), admission(key, make_study(IN_GROUPS))):
        _, ends = play(HONEST | {"party-3": wrong})
        assert "not to this very study" in str(ends["party-3"])


class Brazen(Party):
    """Does not check its own admission before it knocks."""

    def __init__(self, study, name, *args):
        super().__init__(study, name, *args, terms=_NoCheck(admission=SECOND[name]))


class _NoCheck(Terms):
    def check(self, study, record=None):
        pass


SECOND = dict(HONEST)


@pytest.mark.parametrize(
    ("brought", "says"),
    [
        (HONEST["party-1"], "takes part already, under another name"),
        ((PEOPLES_KEYS["party-3"], bytes(64)), "has not admitted it to this study"),
    ],
)
def test_the_coordinator_refuses_who_comes_twice_or_was_not_admitted(brought, says):
    SECOND["party-3"] = brought
    # Only the one who comes later is refused.
    _, ends = play(HONEST, parties={"party-3": Brazen})
    refused = [end for end in ends.values() if isinstance(end, Refused)]
    assert any(says in str(end) for end in refused), [str(e) for e in ends.values()]


class Lenient(Coordinator):
    """A coordinator that lets somebody in twice, or without a pass, and covers it up."""

    change = staticmethod(lambda passes: passes)

    def __init__(self, *args):
        super().__init__(*args)
        change = self.change

        class Telling(Mailbox):
            async def tell(self, session, target, message):
                if isinstance(message, Passes):
                    message = Passes(change(dict(message.passes)))
                return await super().tell(session, target, message)

        self.mailbox.__class__ = Telling


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p | {"party-2": p["party-1"]}, "its pass belongs to someone else"),
        (lambda p: {k: v for k, v in p.items() if k != "party-2"}, "one pass for each party"),
        (
            lambda p: p | {"party-2": Pass(p["party-2"].person, bytes(64), p["party-2"].proof)},
            "the registrar has not admitted it",
        ),
    ],
)
def test_every_party_checks_all_passes(change, says):
    lenient = type("L", (Lenient,), {"change": staticmethod(change)})
    outcome, ends = play(HONEST, coordinator=lenient)
    assert outcome.result is None
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert says in str(end)


def test_one_person_under_two_names_is_noticed_by_every_party(monkeypatch):
    """Both names have a true pass of the same person: only comparing all of them shows it."""
    monkeypatch.setattr(coordinating, "PassDesk", LaxDesk)
    twice = HONEST | {"party-2": HONEST["party-1"]}
    outcome, ends = play(twice)
    assert outcome.result is None
    assert all("a person is there twice, under two names" in str(end) for end in ends.values())


def test_a_pass_is_worth_nothing_in_another_run_or_for_another_identity():
    key = PEOPLES_KEYS["party-1"]
    own, other = (Identity(SeededRandomness(k)).public for k in (1, 2))
    shown = Pass(key.public, HONEST["party-1"][1], key.prove(bytes(16), own))
    args = (REGISTRAR.public, STUDY.digest)
    assert pass_fault(shown, *args, bytes(16), own) is None
    assert "someone else" in pass_fault(shown, *args, bytes([1] * 16), own)
    assert "someone else" in pass_fault(shown, *args, bytes(16), other)
    assert not admitted(REGISTRAR.public, STUDY.digest, b"short", bytes(64))
    assert key.private_hex() not in repr(key)


@pytest.mark.parametrize("protocol", [IN_GROUPS, None])
def test_the_whole_run_can_be_verified_with_its_passes(protocol, tmp_path):
    scenario = make_scenario(IN_GROUPS, registrar=REGISTRAR.public.hex())
    if protocol is None:  # parties that only report are admitted, too; the transcript shows it
        from helpers import make_scenario as plain  # noqa: PLC0415

        scenario = plain([(0, 1)] * 6, (2, 3), protocol=RRIndependent(keep=0.5))
        registered = msgspec.structs.replace(scenario.study, registrar=REGISTRAR.public.hex())
        scenario = msgspec.structs.replace(scenario, study=registered)
    result = run_study(scenario, transport="memory", registrar=REGISTRAR)
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")
    with pytest.raises(InputError, match="give the registrar's own key"):
        run_study(scenario, transport="memory")


def test_a_pass_shown_under_anothers_name_harms_nobody():
    """It is kept for the identity that showed it; whoever joins needs her own."""
    victim = "party-3"

    class Mallory(bringing(HONEST)):
        async def _enter_lobby(self):
            other = Identity(SeededRandomness(77))
            await self._knock(lambda: bool(self.mailbox.run), self._hello)
            person, signed = HONEST[self.name]
            shown = Pass(person.public, signed, person.prove(self.mailbox.run, other.public))
            for step, run, message in (
                (Hello.step, b"", Hello(other.public, self._transport.address)),
                (ShowPass.step, self.mailbox.run, ShowPass(other.public, shown)),
            ):
                header = Header(
                    WIRE_VERSION, self.study.name, run, LOBBY_SESSION, step, victim, COORDINATOR
                )
                await self._transport.send(COORDINATOR, write(header, message, other))
            await super()._enter_lobby()

    class Late(bringing(HONEST)):
        async def run(self):
            await asyncio.sleep(1)
            return await super().run()

    outcome, ends = play(HONEST, parties={victim: Late, "party-8": Mallory})
    assert outcome.result is not None, outcome.cause
    assert ends[victim].digest == outcome.result.digest


def shown_in(study, transcript):
    """The keys of persons that stand in a public transcript."""
    opened = [
        read(raw, study=study.name, runs=None, targets=(COORDINATOR, EVERYONE))
        for raw in transcript
    ]
    passes = [o.message(ShowPass) for o in opened if o.envelope.header.step == ShowPass.step]
    return {message.shown.person for message in passes}


def keys_shown(study, people, seed):
    """The same people in a study, as its transcript shows them."""
    brought = {name: admission(person.key_for(study.digest), study) for name, person in people}
    outcome, _ = play(brought, study, seed=seed)
    assert outcome.result is not None, outcome.cause
    return shown_in(study, outcome.transcript)


def test_nobody_can_join_the_people_of_two_studies_by_their_keys():
    """The same eight people with the same passes; both transcripts are public."""
    people = [(name, Credential.draw(SeededRandomness(name.encode()))) for name in NAMES]
    other = msgspec.structs.replace(STUDY, title="Another question to the same people")
    first, second = keys_shown(STUDY, people, 1), keys_shown(other, people, 2)
    assert len(first) == len(second) == len(NAMES)
    assert not first & second


def test_a_run_on_one_machine_shows_other_keys_in_every_study():
    """Even from the same seed."""
    scenario = make_scenario(IN_GROUPS, registrar=REGISTRAR.public.hex())
    titled = msgspec.structs.replace(scenario.study, title="Another")
    runs = [
        run_study(played, transport="memory", registrar=REGISTRAR, seed=3)
        for played in (scenario, msgspec.structs.replace(scenario, study=titled))
    ]
    first, second = (shown_in(run.study, run.outcome.transcript) for run in runs)
    assert len(first) == len(second) == len(NAMES)
    assert not first & second


FIELD = 2**255 - 19
ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc"


WEAK = [
    bytes(32),
    (1).to_bytes(32, "little"),
    (1 | 1 << 255).to_bytes(32, "little"),
    (FIELD - 1).to_bytes(32, "little"),
    FIELD.to_bytes(32, "little"),
    (FIELD + 1).to_bytes(32, "little"),
    bytes.fromhex(ORDER_8 + "05"),
    bytes.fromhex(ORDER_8 + "85"),
]


@pytest.mark.parametrize("weak", WEAK)
def test_a_study_names_no_registrar_for_whom_anybody_can_sign(weak):
    """It would be open to everybody, and say that it is not."""
    with pytest.raises(ScenarioError, match="registrar: give the 64 hexadecimal digits"):
        check_study(msgspec.structs.replace(STUDY, registrar=weak.hex()))


@pytest.mark.parametrize("weak", WEAK)
def test_a_key_for_which_anybody_can_sign_is_nobodys(weak):
    """Of small order, or written in a second way: its registrar may have been careless."""
    assert not admitted(REGISTRAR.public, STUDY.digest, weak, REGISTRAR.admit(STUDY.digest, weak))


def test_a_credential_shows_in_no_repr():
    person = Credential(bytes(range(32)))
    assert person.secret_hex() not in repr(person)
    with pytest.raises(ValueError, match="32 bytes"):
        Credential(b"short")


# ── Withdrawn admissions ───────────────────────────────────────────────────────────────────────

LOST = "party-3"
WITHDRAWN = frozenset({PEOPLES_KEYS[LOST].public})


class Knowing(Coordinator):
    """Was given the registrar's list."""

    def __init__(self, *args):
        super().__init__(*args, withdrawn=WITHDRAWN)


def test_whoever_was_given_the_list_with_her_own_key_is_told_before_anything_is_sent():
    _, ends = play(HONEST, parties={LOST: bringing(HONEST, WITHDRAWN)})
    assert isinstance(ends[LOST], InputError)
    assert "the registrar has withdrawn your admission" in str(ends[LOST])


def test_the_coordinator_refuses_a_withdrawn_admission():
    outcome, ends = play(HONEST, coordinator=Knowing)
    assert isinstance(ends[LOST], Refused)
    assert "the registrar has withdrawn this admission" in str(ends[LOST])
    assert LOST not in outcome.members


def test_parties_with_the_list_refuse_a_roster_in_which_somebody_withdrawn_stands():
    """The coordinator has no list, or ignores it; whoever took the pass does, too."""
    outcome, ends = play(
        HONEST, party=bringing(HONEST, WITHDRAWN), parties={LOST: bringing(HONEST)}
    )
    assert outcome.result is None
    for name, end in ends.items():
        if name != LOST:
            assert isinstance(end, Misconduct)
            assert end.culprits == ("coordinator",)
            assert f"{LOST}: the registrar has withdrawn this admission" in str(end)


def test_with_a_list_that_names_nobody_who_is_there_the_study_goes_as_without():
    others = frozenset({SigningKey.draw(SeededRandomness(99)).public})
    outcome, _ = play(HONEST, party=bringing(HONEST, others))
    assert outcome.result is not None, outcome.cause


def test_verify_tells_whether_somebody_withdrawn_took_part(tmp_path):
    scenario = make_scenario(IN_GROUPS, registrar=REGISTRAR.public.hex())
    study = scenario.study
    result = run_study(scenario, transport="memory", registrar=REGISTRAR)
    write_results(result, tmp_path / "run")
    there = shown_in(study, result.outcome.transcript)
    for number, keys in enumerate([[REGISTRAR.public], [min(there)]]):
        listed = REGISTRAR.withdraw(study.digest, number, keys)
        (tmp_path / f"{number}.json").write_text(withdrawals_text(listed))
    claims = verify(tmp_path / "run", withdrawals=tmp_path / "0.json")
    assert [c.verdict for c in claims if c.claim == STANDING] == ["confirmed"]
    assert STANDING not in {c.claim for c in verify(tmp_path / "run")}
    with pytest.raises(Contradicted, match="has withdrawn this admission"):
        verify(tmp_path / "run", withdrawals=tmp_path / "1.json")
