"""Every check of `verify` has a folder that only this check can tell from an honest one.

The liars have all keys and sign what they change. The forger itself leaves no trace, so whatever is
contradicted is so because of the one change.
"""

import json
import os
import shutil

import msgspec
import pytest
from forging import Forger
from helpers import make_scenario, random_records

from mpc_rr.agents.roster import roster_digest, run_id
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import InputError
from mpc_rr.network.envelope import COORDINATOR, RUN_BYTES, WIRE_VERSION, decode
from mpc_rr.network.lifecycle import (
    Exclusion,
    Invitation,
    Join,
    Opening,
    Passes,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    Verdict,
)
from mpc_rr.network.sealed import write
from mpc_rr.network.session import Limits
from mpc_rr.network.session.coordinator import RULES, CoordinatorSession
from mpc_rr.network.session.replay import ReplaySession
from mpc_rr.protocols.collection import Answer, AnswersTaken
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.sums.secure_sum import Partial
from mpc_rr.publication.parts import Absence, Participation
from mpc_rr.publication.reports import Collected
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results import closing, earlier
from mpc_rr.results import folder as results_folder
from mpc_rr.results import verification as v
from mpc_rr.results.asking import read_askable
from mpc_rr.results.claims import Contradicted
from mpc_rr.results.closing import sha256_of
from mpc_rr.results.folder import write_results
from mpc_rr.results.recorded import StudyTranscript, check_joins, read_lines
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.faults import Faults, PartyFault

SEED, SIZES = 2, (2, 3, 2)
REGISTRAR = SigningKey.draw(SeededRandomness(1))
LEFT = {"exact": "share", "masked": "masked_vector", "reports": "answer"}
PROTOCOLS = {
    "exact": ExactPairs(),
    "masked": ExactPairs(sum="masked_sum"),
    "reports": RRIndependent(keep=0.6),
    "suppressed": ExactPairs(suppress_below=2),
    "hidden": ExactPairs(sum="masked_sum", suppress_below=2),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Honest folders, made when they are first asked for; ``-left``: somebody fell silent."""
    place, made = tmp_path_factory.mktemp("honest"), {}

    def folder(name):
        if name not in made:
            kind, *special = name.split("-")
            silent = PartyFault("party-03", LEFT.get(kind, ""))
            scenario = make_scenario(
                random_records(14, SIZES, seed=3), SIZES, protocol=PROTOCOLS[kind], minimum=8,
                faults=Faults(silent=(silent,)) if "left" in special else None,
            )  # fmt: skip
            if "registrar" in special:
                study = msgspec.structs.replace(scenario.study, registrar=REGISTRAR.public.hex())
                scenario = msgspec.structs.replace(scenario, study=study)
            run = run_study(scenario, transport="memory", seed=SEED, registrar=REGISTRAR)
            write_results(run, place / name)
            made[name] = place / name
        return made[name]

    return folder


@pytest.fixture
def forger(folders, tmp_path):
    def copied(name):
        return Forger(shutil.copytree(folders(name), tmp_path / "forged"), SEED)

    return copied


KINDS = [
    "exact", "exact-left", "exact-registrar", "masked", "masked-left", "masked-registrar",
    "reports", "reports-left", "reports-registrar", "suppressed", "hidden",
]  # fmt: skip


def judged(folder, verdict, **options):
    claims = v.claims_of(folder, **options)
    return {claim.claim: claim.why for claim in claims if claim.verdict == verdict}


def contradicted(folder, claim, why, *, more=()):
    """Exactly this claim is contradicted, for this reason, and those that are named."""
    found = judged(folder, "contradicted")
    assert set(found) == {claim, *more}
    assert why in found[claim]
    with pytest.raises(Contradicted) as raised:
        v.verify(folder)
    assert "\n" not in str(raised.value)
    assert raised.value.claims == v.claims_of(folder)


@pytest.mark.parametrize("name", KINDS)
def test_a_forger_who_changes_nothing_leaves_no_trace(forger, folders, name):
    honest = folders(name)
    folder = forger(name).save()
    assert not judged(folder, "contradicted")
    assert v.claims_of(folder) == v.claims_of(honest)
    assert (folder / "closing.json").read_text() == (honest / "closing.json").read_text()


# ── What no folder can show ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", KINDS)
def test_what_cannot_be_confirmed_is_said_and_by_whose_word_it_is_known(folders, name):
    unsure = judged(folders(name), "not confirmable")
    expected = {v.ALL_ANSWERS, v.TRUTH, v.SECRETS, v.NETWORK, v.CODE}
    expected |= {v.ONCE} if "registrar" in name else {v.PEOPLE}
    expected |= set() if name.startswith(("exact", "suppressed")) else {v.SEEN}
    expected |= {v.REASONS} if "left" in name else set()
    expected |= {v.SUM} if name in ("suppressed", "hidden") else set()
    expected |= {v.PLACE, v.ORDER} if name in ("exact-left", "hidden") else set()
    assert set(unsure) == expected
    if "registrar" in name:
        assert v.ADMITTED in judged(folders(name), "confirmed")
        assert "the registrar's word" in unsure[v.ONCE]
    else:
        assert "a coordinator alone can have made this folder" in unsure[v.PEOPLE]
        assert "a registrar in the study file would prevent that" in unsure[v.PEOPLE]
    assert "this is a simulation" in unsure[v.SECRETS]
    assert "its seed, 2," in unsure[v.SECRETS]


def test_confirmations_are_the_parties_only_where_there_are_any(folders):
    assert judged(folders("exact"), "confirmed")[v.SEEN] == "14 of 14"
    for name in ("masked", "reports"):
        why = judged(folders(name), "not confirmable")[v.SEEN]
        assert "parties do not confirm the result" in why
        assert "mpc-rr verify RUN --receipt FILE" in why


@pytest.mark.parametrize(("name", "confided"), [("exact", False), ("suppressed", True),
                                               ("masked", False), ("hidden", True)])  # fmt: skip
def test_where_answers_are_confided_no_receipt_is_said_to_tell(folders, name, confided):
    why = judged(folders(name), "not confirmable")[v.ALL_ANSWERS]
    assert ("stand in no transcript and no receipt" in why) is confided
    assert ("mpc-rr verify RUN --receipt FILE" in why) is not confided


def test_a_run_without_a_seed_is_the_coordinators_word(forger):
    forged = forger("reports")
    forged.result["seed"] = None
    why = judged(forged.save(), "not confirmable")[v.SECRETS]
    assert "that there was no seed is the coordinator's word" in why


def test_without_a_closing_statement_it_is_nobodys_word(forger):
    """Whoever removed the seed and the statement that named it had a simulation called a secret
    computation, by the coordinator's word."""
    forged = forger("reports")
    forged.result["seed"] = None
    why = judged(forged.save(closed=False), "not confirmable")[v.SECRETS]
    assert "someone who passed the folder on may have removed both" in why


def test_nobody_confirmed_is_not_confirmed(forger):
    forged = forger("exact")
    names = [member.name for member in forged.message(forged.places(Roster)[0], Roster).members]
    forged.change(Verdict, seen={}, unconfirmed=tuple(names))
    forged.result["publication"]["participation"]["unconfirmed"] = names
    unsure = judged(forged.save(), "not confirmable")
    assert unsure[v.SEEN] == "nobody has, by the coordinator's word"


def test_a_folder_from_before_closing_statements_is_not_contradicted(forger):
    unsure = judged(forger("reports").save(closed=False), "not confirmable")
    assert "there is no closing.json: the folder was written before" in unsure[v.CLOSED]
    assert unsure[v.STATED] == f"it rests on what is not confirmed: {v.CLOSED}"


# ── Lines, labels, order ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("label", ["session", "step", "sender", "more"])
def test_labels_are_those_of_the_signed_message(forger, label):
    forged = forger("reports")
    folder = forged.save()
    rows = [json.loads(row) for row in (folder / "transcript.jsonl").read_text().splitlines()]
    rows[4][label] = "forged"
    (folder / "transcript.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    why = "transcript.jsonl, line 5: not a message (beside it stands something else than in it)"
    contradicted(folder, v.LINES, why, more=[v.WHOLE])
    unsure = judged(folder, "not confirmable")
    assert unsure[v.REPLAY] == f"it rests on what is not confirmed: {v.ROSTER}"
    assert unsure[v.CLOSED] == f"it rests on what is not confirmed: {v.SIGNED}"
    assert v.SHEETS in judged(folder, "confirmed")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("distance", [1, 5])
def test_any_two_lines_that_change_places_are_noticed_even_if_the_order_is_signed(
    forger, name, distance
):
    """But for lines of an attempt that was given up, or that led to a confided sum, which nobody
    can run again: of these it is said that nobody can tell."""
    forged = forger(name)
    honest = list(forged.raws)
    for place in range(1, len(honest) - distance, 7):
        forged.raws = list(honest)
        pair = forged.raws[place], forged.raws[place + distance]
        forged.raws[place + distance], forged.raws[place] = pair
        at = [forged.envelope(p).header.session for p in (place, place + distance)]
        if name == "exact-left" and all(session.startswith("attempt-1") for session in at):
            continue
        if name in ("suppressed", "hidden") and all(session.count("/") > 1 for session in at):
            continue
        contradicted(forged.save(), v.ORDER, "here belongs what stands in line")


@pytest.mark.parametrize("name", KINDS)
def test_another_order_than_the_coordinator_signed_is_noticed(forger, name):
    """Also where the protocol does not say which comes first."""
    forged = forger(name)
    forged.stated = {"transcript": bytes(32)}
    contradicted(forged.save(), v.CLOSED, "the coordinator signed other messages than those")
    forged.stated = {"messages": 1}
    contradicted(forged.save(), v.CLOSED, "the coordinator signed other messages than those")


@pytest.mark.parametrize("name", ["hidden", "exact-left"])
@pytest.mark.parametrize("change", ["as they are", "reversed", "fewer"])
def test_lines_that_were_passed_over_are_not_said_to_be_in_order(forger, name, change):
    """What led to a confided sum, or to an attempt that was given up, cannot be done again. Its
    lines were said to be in their place and in order, whatever had been done to them."""
    forged, session = forger(name), "attempt-1/exact_pairs/" if name == "hidden" else "attempt-1"
    places = [(n, forged.envelope(n).header) for n in range(len(forged.raws))]
    passed = [n for n, h in places if h.session.startswith(session) and h.step != "roster"]
    lines = [forged.raws[n] for n in passed]
    if change == "reversed":
        for place, line in zip(passed, reversed(lines), strict=True):
            forged.raws[place] = line
    if change == "fewer":
        for place in reversed(passed[::2]):
            del forged.raws[place]
    unsure = judged(forged.save(), "not confirmable")
    left = len(passed) - (len(passed[::2]) if change == "fewer" else 0)
    for claim in (v.PLACE, v.ORDER):
        assert unsure[claim].startswith(f"not of {left} lines (")
        assert "cannot be done again; every other line" in unsure[claim]


@pytest.mark.parametrize(("name", "claim"), [("hidden", v.REPLAY), ("exact-left", v.ROSTER)])
def test_nobody_speaks_twice_even_where_lines_are_passed_over(forger, name, claim):
    forged = forger(name)
    place = next(n for n in range(len(forged.raws))
                 if forged.envelope(n).header.session.startswith("attempt-1")
                 and forged.envelope(n).header.step in ("mask_keys", "roster_seen"))  # fmt: skip
    forged.raws.insert(place + 1, forged.raws[place])
    assert "has spoken in this step before" in judged(forged.save(), "contradicted")[claim]


def test_lines_without_a_place_are_noticed_beside_those_that_were_passed_over(forger):
    forged = forger("hidden")
    (place,) = forged.places(Verdict)
    forged.raws.insert(place, forged.raws[place])
    forged.sign(place, session="attempt-1", step="more")
    found = judged(forged.save(), "contradicted")
    assert "it has no place in this protocol" in found[v.PLACE]
    unsure = judged(forged.folder, "not confirmable")
    assert unsure[v.ORDER] == f"it rests on what is not confirmed: {v.PLACE}"


@pytest.mark.parametrize("end", ["\x0b", "\x1c", "\u2028", "\r\n"])
def test_only_a_line_feed_ends_a_line(folders, tmp_path, end):
    folder = shutil.copytree(folders("reports"), tmp_path / "run")
    text = (folder / "transcript.jsonl").read_text().replace("\n", end, 1)
    (folder / "transcript.jsonl").write_bytes(text.encode())
    assert "line 1: not a message" in judged(folder, "contradicted")[v.LINES]


def test_a_message_that_is_there_twice_is_noticed(forger):
    forged = forger("reports")
    place = forged.places(Answer, "party-04")[0]
    forged.raws.insert(place, forged.raws[place])
    contradicted(forged.save(), v.REPLAY, "party-04 has spoken in this step before")


@pytest.mark.parametrize("session", ["attempt-1", "attempt-1/rr_independent/more", "elsewhere"])
def test_a_message_without_a_place_is_noticed(forger, session):
    forged = forger("reports")
    place = forged.places(Answer, "party-04")[0]
    forged.raws.insert(place, forged.raws[place])
    forged.sign(place, session=session)
    contradicted(forged.save(), v.PLACE, "it has no place in this protocol")


def test_a_party_that_is_not_in_the_roster_has_no_say(forger):
    """It joined, and its signed answer is there; but the roster that was announced excludes it."""
    forged = forger("reports-left")
    roster = forged.message(forged.places(Roster)[0], Roster)
    fewer = tuple(m for m in roster.members if m.name != "party-03")
    out = (Exclusion("party-03", "it was late"),)
    short = msgspec.structs.replace(roster, members=fewer, excluded=out)
    forged.change(Roster, members=fewer, excluded=out)
    forged.change(Opening, asked=13, digest=roster_digest(short))
    forged.change(AnswersTaken, asked=13)
    place = forged.places(Answer, "party-02")[0]
    forged.raws.insert(place + 1, forged.raws[place])
    forged.sign(place + 1, sender="party-03")
    found = judged(forged.save(), "contradicted")
    assert "answer by party-03" in found[v.PLACE]


# ── Joins and signatures ───────────────────────────────────────────────────────────────────────


def test_an_invitation_to_another_study_is_noticed(forger):
    forged = forger("reports")
    other = msgspec.structs.replace(forged.message(0, Invitation), study_digest=bytes(32))
    forged.sign(0, other)
    for place in range(len(forged.raws)):
        forged.sign(place, run=run_id(other))
    forged.result["run"] = run_id(other).hex()
    contradicted(forged.save(), v.SIGNED, "it invites to another study than study.json")


def test_a_message_of_another_run_is_noticed(forger):
    forged = forger("reports")
    forged.sign(forged.places(Answer, "party-03")[0], run=bytes(32))
    contradicted(forged.save(), v.SIGNED, "it belongs to another run")


def test_more_parties_than_the_study_has_are_noticed(forger):
    forged = forger("reports")
    last = forged.places(Join, "party-14")[0]
    forged.raws.insert(last + 1, forged.raws[last])
    join = Join(forged.identity("party-15").public)
    forged.sign(last + 1, join, sender="party-15")
    contradicted(forged.save(), v.SIGNED, "more parties joined than the study has")


def test_a_join_in_the_coordinators_name_does_not_make_it_another(forger):
    """It replaced the coordinator's key: whoever had the folder could sign its lines."""
    forged = forger("reports")
    join = forged.places(Join)[0]
    forged.raws.insert(join, forged.raws[join])
    forged.sign(join, sender=COORDINATOR, by="party-2")
    found = judged(forged.save(), "contradicted")
    assert any("no party may have the name of its sender" in why for why in found.values())


@pytest.mark.parametrize("kind", [Invitation, Join, Answer, AnswersTaken, Verdict])
def test_a_signature_by_somebody_else_is_noticed(forger, kind):
    forged = forger("reports")
    place = forged.places(kind)[-1]
    sender = forged.envelope(place).header.sender
    forged.sign(place, by="party-05")
    contradicted(forged.save(), v.SIGNED, f"its signature is not {sender}'s")


def test_a_sender_who_has_not_joined_is_noticed(forger):
    forged = forger("reports")
    forged.sign(forged.places(Answer, "party-03")[0], sender="party-99")
    contradicted(forged.save(), v.SIGNED, "its sender has not joined")


@pytest.mark.parametrize("key", ["run", "coordinator"])
def test_another_run_or_coordinator_in_the_result_is_noticed(forger, key):
    forged = forger("reports")
    folder = forged.save()
    forged.result[key] = "00"
    (folder / "result.json").write_text(json.dumps(forged.result))
    contradicted(folder, v.RUN, "run or coordinator is not that of the invitation")


# ── Rosters ────────────────────────────────────────────────────────────────────────────────────


def with_roster(forged, **fields):
    """Another roster, of which everybody is told and which everybody confirms."""
    place = forged.places(Roster)[-1]
    roster = msgspec.structs.replace(forged.message(place, Roster), **fields)
    forged.sign(place, roster)
    session = forged.envelope(place).header.session
    digest = roster_digest(roster)
    try:
        confirmed = forged.places(RosterSeen, session=session)
    except AssertionError:
        forged.change(Opening, digest=digest)
    else:
        for seen in confirmed:
            forged.sign(seen, RosterSeen(digest))
    return roster


@pytest.mark.parametrize("name", ["reports", "exact"])
def test_a_member_with_another_key_than_it_joined_with_is_noticed(forger, name):
    forged = forger(name)
    members = forged.message(forged.places(Roster)[0], Roster).members
    other = msgspec.structs.replace(members[4], identity=forged.identity("party-99").public)
    with_roster(forged, members=(*members[:4], other, *members[5:]))
    contradicted(forged.save(), v.ROSTER, "party-05 did not join with the key it has here")


def test_two_parties_with_one_key_are_noticed(forger):
    forged = forger("reports")
    one = forged.identity("party-04").public
    for place in range(len(forged.raws)):
        if forged.envelope(place).header.sender == "party-05":
            forged.sign(place, by="party-04")
    forged.sign(forged.places(Join, "party-05")[0], Join(one), by="party-04")
    members = forged.message(forged.places(Roster)[0], Roster).members
    twin = msgspec.structs.replace(members[4], identity=one)
    with_roster(forged, members=(*members[:4], twin, *members[5:]))
    contradicted(forged.save(), v.ROSTER, "two parties in it have the same key")


@pytest.mark.parametrize(("kind", "sender"), [(Invitation, COORDINATOR), (Join, "party-04")])
def test_a_key_that_anybody_can_sign_for_is_noticed(forger, kind, sender):
    """With it, whoever had the folder could close the run anew."""
    forged = forger("reports")
    weak = PublicIdentity(bytes([1]) + bytes(31), forged.identity(sender).public.sealing)
    forged.change(kind, sender, identity=weak)
    assert "for which anyone could sign" in judged(forged.save(), "contradicted")[v.SIGNED]


def test_a_roster_of_another_attempt_is_noticed(forger):
    forged = forger("reports")
    with_roster(forged, attempt=7)
    forged.result["attempts"] = 7
    contradicted(forged.save(), v.ROSTER, "it is of another attempt")


def test_another_number_of_attempts_in_the_result_is_noticed(forger):
    forged = forger("exact-left")
    assert forged.result["attempts"] == 2
    forged.result["attempts"] = 1
    contradicted(forged.save(), v.ROSTER, "'attempts' is not the number of rosters")


@pytest.mark.parametrize("name", ["party-04", None])
def test_those_who_are_excluded_are_those_who_were_left_out(forger, name):
    forged = forger("exact-left")
    people = forged.result["publication"]["participation"]
    (exclusion,) = forged.message(forged.places(Roster)[-1], Roster).excluded
    assert exclusion.name == "party-03"
    others = (msgspec.structs.replace(exclusion, name=name),) if name else ()
    with_roster(forged, excluded=others)
    people["absent"] = [people["absent"][0] | {"party": name}] if name else []
    why = "someone is in it and excluded" if name else "those it excludes are not those who were"
    contradicted(forged.save(), v.ROSTER, why)


@pytest.mark.parametrize("name", ["reports", "exact"])
def test_whoever_joined_is_in_the_first_roster_or_excluded(forger, name):
    """A coordinator left out whom it liked, unnamed, and everything was confirmed."""
    forged = forger(name)
    members = forged.message(forged.places(Roster)[0], Roster).members
    with_roster(forged, members=(*members[:4], *members[5:]))
    if name == "reports":
        forged.change(Opening, asked=13)
    why = judged(forged.save(), "contradicted")[v.ROSTER]
    assert "joined, but neither in it nor excluded: party-05" in why


@pytest.mark.parametrize("change", [{"asked": 13}, {"digest": bytes(32)}])
def test_an_opening_with_another_roster_is_noticed(forger, change):
    forged = forger("reports")
    forged.change(Opening, **change)
    contradicted(forged.save(), v.ROSTER, "it is not about the roster")


def test_a_member_who_did_not_confirm_the_roster_is_noticed(forger):
    forged = forger("exact")
    del forged.raws[forged.places(RosterSeen, "party-04")[0]]
    contradicted(forged.save(), v.ROSTER, "not every member has confirmed the roster")


def test_a_member_who_confirmed_another_roster_is_noticed(forger):
    forged = forger("exact")
    forged.change(RosterSeen, "party-04", digest=bytes(32))
    contradicted(forged.save(), v.ROSTER, "it confirms another roster")


# ── Passes ─────────────────────────────────────────────────────────────────────────────────────


def test_a_pass_by_another_registrar_is_noticed(forger):
    forged = forger("reports-registrar")
    (place,) = forged.places(ShowPass, "party-04")
    shown = forged.message(place, ShowPass).shown
    false = msgspec.structs.replace(shown, admission=bytes(64))
    forged.change(ShowPass, "party-04", shown=false)
    contradicted(forged.save(), v.ADMITTED, "party-04: ")


def test_passes_that_were_shown_otherwise_are_noticed(forger):
    forged = forger("exact-registrar")
    passes = forged.message(forged.places(Passes)[0], Passes).passes
    forged.change(Passes, passes=passes | {"party-04": passes["party-05"]})
    contradicted(forged.save(), v.ADMITTED, "these are not the passes that the parties showed")


# ── Verdict and replay ─────────────────────────────────────────────────────────────────────────


def with_confirmation(forged, by="party-04", digest=None, **header):
    verdict = forged.message(-1, Verdict)
    place = forged.places(Roster)[-1]
    header = {"session": forged.envelope(place).header.session} | header
    head = msgspec.structs.replace(
        forged.envelope(-1).header,
        **{"step": ResultSeen.step, "sender": "party-04", "target": COORDINATOR} | header,
    )
    said = ResultSeen(verdict.result_digest if digest is None else digest)
    seen = verdict.seen | {"party-04": write(head, said, forged.identity(by))}
    forged.change(Verdict, seen=seen)
    return forged.save()


def test_a_confirmation_made_by_the_forger_is_like_the_partys(forger):
    assert not judged(with_confirmation(forger("exact")), "contradicted")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"session": "attempt-9"}, "is of something else"),
        ({"step": "goodbye"}, "is of something else"),
        ({"sender": "party-05"}, "is of something else"),
        ({"digest": bytes(32)}, "is of another result"),
        ({"by": "party-05"}, "is not signed by party-04"),
        ({"target": "*"}, "is no message"),
        ({"run": bytes(16)}, "is no message"),
    ],
)
def test_a_confirmation_of_something_else_is_noticed(forger, change, why):
    folder = with_confirmation(forger("exact"), **change)
    contradicted(folder, v.SEEN, f"party-04's confirmation in it {why}")


def test_a_verdict_that_forgets_somebody_is_noticed(forger):
    forged = forger("exact")
    seen = dict(forged.message(-1, Verdict).seen)
    del seen["party-04"]
    forged.change(Verdict, seen=seen)
    contradicted(forged.save(), v.VERDICT, "it does not speak of every member")


def test_a_verdict_that_the_study_failed_is_noticed(forger):
    forged = forger("reports")
    forged.change(Verdict, done=False)
    contradicted(forged.save(), v.VERDICT, "it is that the study came to nothing")


def test_a_verdict_on_another_result_is_noticed(forger):
    forged = forger("reports")
    forged.change(Verdict, result_digest=bytes(32))
    contradicted(forged.save(), v.REPLAY, "it announces another result")


def test_an_announcement_that_does_not_follow_is_noticed(forger):
    forged = forger("reports")
    forged.change(AnswersTaken, digest=bytes(32))
    contradicted(
        forged.save(), v.REPLAY, "it differs from what replaying the earlier messages gives"
    )


def test_an_announcement_by_a_party_is_noticed(forger):
    forged = forger("reports")
    (place,) = forged.places(AnswersTaken)
    forged.raws.insert(place + 1, forged.raws[place])
    forged.sign(place + 1, sender="party-04")
    contradicted(forged.save(), v.REPLAY, "no 'answers_taken' by the coordinator in attempt-1/")


def test_a_message_that_all_should_have_published_is_missed(forger):
    forged = forger("exact")
    del forged.raws[forged.places(Partial, "party-04")[0]]
    contradicted(forged.save(), v.REPLAY, "party-04's message for step 'partial' is missing")


def test_a_relayed_message_by_another_author_is_refused(folders):
    """What a party signed is repeated inside others' messages; there its signature counts, too."""
    folder = folders("reports")
    study = v.read_folder(folder).study
    rows = (folder / "transcript.jsonl").read_text().splitlines()
    transcript = StudyTranscript(read_lines("transcript.jsonl", rows, study), study=study)
    check_joins(transcript)
    session = ReplaySession(transcript, "attempt-1/rr_independent", ("party-04",), Limits(2, 14, 9))
    line = next(x for x in transcript.lines if x.place[1:] == (Answer.step, "party-04"))
    assert session.signed(line.opened.raw, "party-04", Answer.step).raw == line.opened.raw
    false = write(
        line.opened.envelope.header,
        decode(line.opened.envelope.body, Answer),
        Forger(folder, SEED).identity("party-05"),
    )
    with pytest.raises(ValueError, match="its signature is not the sender's"):
        session.signed(false, "party-04", Answer.step)
    with pytest.raises(ValueError, match="it belongs to another step"):
        session.signed(line.opened.raw, "party-05", Answer.step)


# ── What is published, and what the coordinator signed ─────────────────────────────────────────


def test_another_step_at_which_somebody_dropped_out_is_noticed(forger):
    forged = forger("masked-left")
    (lost,) = forged.result["publication"]["participation"]["absent"]
    assert (lost["party"], lost["how"]) == ("party-03", "dropped out")
    lost["step"] = "masked_sum"
    why = "those who dropped out are not those whose messages are missing"
    contradicted(forged.save(), v.COUNTED, why)


@pytest.mark.parametrize(("name", "how"), [("exact-left", "excluded"), ("reports-left", "silent")])
def test_somebody_absent_who_is_not_said_to_be_is_noticed(forger, name, how):
    forged = forger(name)
    people = forged.result["publication"]["participation"]
    assert [absence["how"] for absence in people["absent"]] == [how]
    people["absent"] = []
    found = judged(forged.save(), "contradicted")
    assert set(found) == {v.COUNTED}


def test_somebody_who_is_absent_twice_is_noticed(forger):
    forged = forger("reports-left")
    forged.result["publication"]["participation"]["absent"] *= 2
    contradicted(forged.save(), v.COUNTED, "party-03 is 'silent' twice")


@pytest.mark.parametrize("lost", ["party-03", "party-99"])
def test_a_number_of_lost_that_does_not_fit_the_sum_is_noticed(forger, lost):
    """Who is missing from a sum that the coordinator alone has seen, it says; not how many."""
    forged = forger("suppressed")
    people = forged.result["publication"]["participation"]
    people["absent"] = [{"party": lost, "how": "dropped out", "step": "partial", "reason": ""}]
    why = "those who dropped out are not those who are not counted"
    contradicted(forged.save(), v.COUNTED, why)


def test_reasons_are_the_coordinators_word_and_nobody_elses(forger):
    """Why an answer is missing nobody else can know; but whoever changes its reason is noticed."""
    forged = forger("reports-left")
    (absence,) = forged.result["publication"]["participation"]["absent"]
    folder = forged.save()
    unsure = judged(folder, "not confirmable")
    assert unsure[v.REASONS] == "it is the coordinator's word, which it signed"
    absence |= {"how": "faulty", "reason": "it sent nonsense"}
    assert v.REASONS in judged(forged.save(), "not confirmable")
    absence["reason"] = "it laughed"
    (folder / "result.json").write_text(json.dumps(forged.result))
    contradicted(folder, v.REASONS, "'absent' is not what the coordinator signed")
    (folder / "closing.json").unlink()
    assert judged(folder, "not confirmable")[v.REASONS] == "it is the coordinator's word"


def test_a_protocol_that_tells_otherwise_who_took_part_is_not_called_forged(tmp_path, monkeypatch):
    """The coordinator signs what the ending says, before anything is published."""
    publish = Collected.publish

    def otherwise(self, study):
        absent = (Absence(party="party-03", how="not asked", reason="so it is published"),)
        people = Participation(expected=14, absent=absent)
        return msgspec.structs.replace(publish(self, study), participation=people)

    monkeypatch.setattr(Collected, "publish", otherwise)
    scenario = make_scenario(
        random_records(14, SIZES, seed=3), SIZES, protocol=PROTOCOLS["reports"]
    )
    write_results(run_study(scenario, transport="memory", seed=SEED), tmp_path / "run")
    # Anybody may have changed it since: the coordinator has not signed this reason.
    assert judged(tmp_path / "run", "not confirmable")[v.REASONS] == "it is the coordinator's word"
    assert not judged(tmp_path / "run", "contradicted")


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", None), ("seed", 3), ("transport", "mqtt"), ("rejected_messages", {"duplicate": 1})],
)
def test_transport_and_seed_are_those_the_coordinator_signed(forger, key, value):
    """A simulation does not become a study by deleting its seed."""
    forged = forger("reports")
    folder = forged.save()
    forged.result[key] = value
    (folder / "result.json").write_text(json.dumps(forged.result))
    contradicted(folder, v.STATED, f"result.json: {key!r} is not what the coordinator signed")
    assert "its seed, 2," in judged(folder, "not confirmable")[v.SECRETS]


def test_everything_that_differs_is_named(forger):
    forged = forger("reports")
    folder = forged.save()
    forged.result |= {"seed": None, "transport": "mqtt"}
    (folder / "result.json").write_text(json.dumps(forged.result))
    contradicted(folder, v.STATED, "'transport', 'seed' are not what the coordinator signed")


@pytest.mark.parametrize("file", ["cost.json", "cost.csv"])
def test_costs_are_those_the_coordinator_signed(forger, file):
    folder = forger("reports").save()
    (folder / file).write_text((folder / file).read_text() + " ")
    contradicted(folder, v.STATED, f"{file} is not what the coordinator signed")
    (folder / file).unlink()
    contradicted(folder, v.STATED, f"{file} cannot be read")


def test_a_closing_statement_about_other_files_is_noticed(forger):
    forged = forger("reports")
    forged.stated = {"files": {"../secret": bytes(32)}}
    contradicted(forged.save(), v.STATED, "it is not about cost.csv, cost.json")


def test_a_closing_statement_by_somebody_else_is_noticed(forger):
    forged = forger("reports")
    folder = forged.save()
    forged.close(by="party-05")
    contradicted(folder, v.CLOSED, "its signature is not the coordinator's")


def test_a_closing_statement_on_another_result_is_noticed(forger):
    forged = forger("reports")
    forged.stated = {"result": bytes(32)}
    contradicted(forged.save(), v.CLOSED, "the coordinator signed another result than its verdict")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "it is damaged"),
        ("[", "it is damaged"),
        ('{"envelope": "AAAA"}', "it is no statement on this run (malformed)"),
        (None, "beside the signed statement stands something else than in it"),
    ],
)
def test_a_closing_statement_that_says_something_else_beside_is_noticed(forger, text, why):
    folder = forger("reports").save()
    shown = (folder / "closing.json").read_text()
    (folder / "closing.json").write_text(shown.replace("memory", "mqtt") if text is None else text)
    contradicted(folder, v.CLOSED, f"closing.json: {why}")


def test_another_message_is_no_closing_statement(forger):
    forged = forger("reports")
    folder = forged.save()
    shown = json.loads((folder / "closing.json").read_text())
    row = json.loads((folder / "transcript.jsonl").read_text().splitlines()[-1])
    (folder / "closing.json").write_text(json.dumps(shown | {"envelope": row["envelope"]}))
    contradicted(folder, v.CLOSED, "closing.json: it is no closing statement")


def test_a_transcript_with_another_digest_is_noticed(forger):
    forged = forger("reports")
    folder = forged.save()
    forged.result["transcript"]["messages"] += 1
    (folder / "result.json").write_text(json.dumps(forged.result))
    contradicted(folder, v.WHOLE, "'transcript' is not what follows from the transcript")


def test_files_for_which_nobody_vouches_are_named_one_by_one(forger):
    folder = forger("reports").save()
    (folder / "pairs" / "99-lies.csv").write_text("a,b\n")
    (folder / "report.html").write_text("95 % fell ill")
    (folder / "link").symlink_to("nowhere")
    unsure = judged(folder, "not confirmable")
    assert "nothing vouches for it" in unsure["“pairs/99-lies.csv” belongs to the result"]
    assert "nothing vouches for it" in unsure["“link” belongs to the result"]
    assert "make it again with `mpc-rr report`" in unsure["“report.html” belongs to the result"]


def test_a_receipt_of_an_attempt_that_was_given_up_is_none_of_the_result(forger, tmp_path):
    folder = forger("exact-left").save()
    rows = (folder / "transcript.jsonl").read_text().splitlines(keepends=True)
    for session, holds in (("attempt-2", True), ("attempt-1", False)):
        mine = [row for row in rows if f'"{session}", "step": "roster_seen"' in row]
        (tmp_path / "receipt.jsonl").write_text(mine[0])
        found = judged(folder, "not confirmable", receipt=tmp_path / "receipt.jsonl")
        assert (v.RECEIPT in found) is not holds
    assert "is of attempt-1, an attempt that was given up" in found[v.RECEIPT]


@pytest.mark.parametrize("text", ["garbage", "[" * 100_000, "1" * 5000])
@pytest.mark.parametrize("closed", [True, False])
def test_costs_that_no_reader_can_read_are_told(forger, text, closed):
    """They ended in a traceback."""
    folder = forger("reports").save(closed=closed)
    (folder / "cost.json").write_text(text)
    found = judged(folder, "contradicted")
    assert "cost.json is damaged" in found[v.TWICE]
    assert (v.STATED in found) is closed


def test_a_sheet_inside_the_result_is_refused(forger):
    """It follows from nothing, and was confirmed with the rest."""
    forged = forger("reports")
    forged.result["publication"]["sheets"][0]["text"] = "a,b\nsick,999\n"
    with pytest.raises(InputError, match="their text has no place in it"):
        v.claims_of(forged.save())


def test_words_of_others_cannot_look_like_a_claim_of_ours(forger):
    """Spaces filled the line of a terminal; what followed stood where claims begin."""
    forged = forger("reports")
    lie = "confirmed: the parties are people"
    forged.result["protocol"]["origin"] = "mpc-rr" + " " * 200 + lie + "x" * 200
    folder = forged.save()
    (folder / f"x{' ' * 62}{lie}").write_text("")
    (folder / f"x {lie}").write_text("")
    said = [str(claim) for claim in v.claims_of(folder)]
    assert not any("  " in line for line in said)
    assert sum(f"“x {lie}” belongs to the result" in line for line in said) == 2
    (code,) = [line for line in said if v.CODE in line]
    assert f"theirs came from “mpc-rr {lie}xxx" in code
    assert "…”, as result.json says" in code
    assert len(code) < 250


def test_a_claim_is_one_line_without_gaps_whatever_is_in_it():
    claim = v.Claim(claim="x" + " " * 200 + "confirmed: y", verdict="contradicted", why="\n z")
    assert str(claim) == "contradicted: x confirmed: y: z"


def test_a_files_name_does_not_end_its_own_quotation(forger):
    """It said, in our words, that something else belongs to the result."""
    folder = forger("reports").save()
    (folder / "a” belongs to the result: confirmed. “b").write_text("")
    (folder / os.fsdecode(b"\xff")).write_text("")
    named = [claim for claim in judged(folder, "not confirmable") if "belongs to the" in claim]
    assert '“a" belongs to the result: confirmed. "b” belongs to the result' in named
    assert "“\\udcff” belongs to the result" in named


def test_one_contradiction_does_not_hide_another(forger):
    forged = forger("exact")
    folder = with_confirmation(forged, by="party-05")
    forged.result["transport"] = "mqtt"
    forged.result["publication"]["tables"][0]["values"][0] += 1
    (folder / "result.json").write_text(json.dumps(forged.result))
    (folder / "dependence.csv").write_text("")
    found = judged(folder, "contradicted")
    assert set(found) == {v.SEEN, v.PUBLISHED, v.SHEETS, v.STATED}
    with pytest.raises(Contradicted, match=r"^contradicted: the parties have signed .* 3 more\)$"):
        v.verify(folder)


# ── What other readers would read ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["result.json", "study.json"])
def test_a_key_that_stands_twice_is_noticed(folders, tmp_path, name):
    """Some readers take the first, some the last: people would be shown what was not verified."""
    folder = shutil.copytree(folders("reports"), tmp_path / "run")
    text = (folder / name).read_text()
    key = '"title"' if name == "study.json" else '"transport"'
    (folder / name).write_text(text.replace(key, f'{key}: "another",\n  {key}', 1))
    with pytest.raises(Contradicted, match=f"{name}: “{key[1:-1]}” stands twice"):
        v.verify(folder)


def test_a_formula_that_was_put_back_is_noticed(tmp_path):
    """Sheets without apostrophes are those of earlier versions; this one writes them."""
    schema = Schema((
        Attribute("a", "nominal", ("=1+1", "x")), Attribute("b", "nominal", ("y", "z")),
    ))  # fmt: skip
    scenario = make_scenario(random_records(12, (2, 2), seed=1), (2, 2), protocol=ExactPairs())
    study = msgspec.structs.replace(scenario.study, schema=schema)
    scenario = msgspec.structs.replace(scenario, study=study)
    folder = tmp_path / "run"
    write_results(run_study(scenario, transport="memory", seed=SEED), folder)
    assert v.verify(folder)
    (sheet,) = (folder / "pairs").iterdir()
    assert "'=1+1" in sheet.read_text()
    sheet.write_text(sheet.read_text().replace("'=1+1", "=1+1"))
    document = json.loads((folder / "result.json").read_text())
    for listed in document["publication"]["sheets"]:
        if listed["name"].startswith("pairs/"):
            listed["sha256"] = sha256_of(sheet.read_text()).hex()
    (folder / "result.json").write_text(json.dumps(document))
    with pytest.raises(Contradicted, match="is not what follows from the transcript"):
        v.verify(folder)


def with_rules(folder, rules):
    """The folder says that it was made by these rules, and that its limits are narrow."""
    document = json.loads((folder / "result.json").read_text())
    document["rules"] = rules
    document["publication"]["findings"][0]["text"] = "90 % smoke"
    for table in document["publication"]["tables"]:
        for limit in {"low", "high", "standard_errors"} & set(table):
            table[limit] = [0.5] * len(table["values"])
    (folder / "result.json").write_text(json.dumps(document))


WIRE = "it names rules {}, but the messages of this run are of wire version 2, which began with"


@pytest.mark.parametrize("rules", [0, 1, 2])
def test_who_says_that_a_folder_is_older_is_contradicted(folders, tmp_path, rules):
    """By older rules, sentences and limits that were changed could only be called not confirmable.

    Every party signs in which version of the wire it speaks: also if the coordinator itself signed
    that the rules are older, or its closing statement is gone, they are not.
    """
    folder = shutil.copytree(folders("reports"), tmp_path / "run")
    with_rules(folder, rules)
    contradicted(folder, v.OLD_ENOUGH, WIRE.format(rules), more=[v.STATED])
    (folder / "closing.json").unlink()
    contradicted(folder, v.OLD_ENOUGH, WIRE.format(rules))
    assert {v.REPLAY, v.PUBLISHED, v.UNCERTAINTY, v.WORDS} <= set(judged(folder, "not confirmable"))


def test_a_coordinator_that_signs_older_rules_is_contradicted(tmp_path, monkeypatch):
    monkeypatch.setattr(closing, "RULES", 2)
    scenario = make_scenario(
        random_records(12, (2, 2), seed=1), (2, 2), protocol=RRIndependent(keep=0.8)
    )
    folder = tmp_path / "run"
    write_results(run_study(scenario, transport="memory", seed=SEED), folder)
    with_rules(folder, 2)
    contradicted(folder, v.OLD_ENOUGH, WIRE.format(2))


def test_the_rules_with_which_each_version_of_the_wire_began_are_known():
    assert set(earlier.RULES_WITH_WIRE) == set(RUN_BYTES)
    assert earlier.RULES_WITH_WIRE[WIRE_VERSION] <= RULES


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "nan", "inf"])
@pytest.mark.parametrize("place", ["protocol.epsilon", "protocol.keep", "deadlines.stragglers_s"])
def test_a_text_that_is_read_as_no_number_is_refused(folders, tmp_path, word, place):
    """It had the digest of null, and whatever was signed for a study without it was confirmed."""
    folder = shutil.copytree(folders("reports"), tmp_path / "run")
    document = json.loads((folder / "study.json").read_text())
    table, field = place.split(".")
    document[table][field] = word
    (folder / "study.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"study.json is damaged: {place}: must be a finite"):
        v.verify(folder)


def test_full_reports_of_rules_3_are_verified_by_the_estimator_of_then(tmp_path, monkeypatch):
    """Nothing but the rules that it names tells it from a folder of now that has other tables."""
    scenario = make_scenario(
        random_records(30, (3, 2, 2), seed=1), (3, 2, 2), protocol=RRIndependent(keep=0.8)
    )

    def made(rules):
        for module in (closing, results_folder):
            monkeypatch.setattr(module, "RULES", rules)
        monkeypatch.setattr(CoordinatorSession, "rules", rules)
        write_results(run_study(scenario, transport="memory", seed=SEED), tmp_path / str(rules))
        return tmp_path / str(rules)

    then, now = made(3), made(RULES)
    tables = [read_askable(folder).estimates.pair_tables[0, 1] for folder in (then, now)]
    assert abs(tables[0] - tables[1]).max() > 1e-4
    assert judged(then, "contradicted") == judged(now, "contradicted") == {}
    assert v.PUBLISHED in judged(then, "confirmed")
    document = json.loads((now / "result.json").read_text())
    document["rules"] = 3
    (now / "result.json").write_text(json.dumps(document))
    assert v.PUBLISHED in judged(now, "contradicted")
