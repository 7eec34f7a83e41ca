"""Replaying a public transcript: whoever has the result folder can check the coordinator.

The messages are read in order and every signature is checked against the keys with which their
authors joined. Then the protocol's own code is run again on the recorded messages, as if it were
the coordinator: sums, clusters and announcements must come out as recorded, and the estimates and
tables as published. What cannot be checked from outside is said: that nobody was left out who did
send an answer in time; only that party, with its own report, can tell.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.agents.roster import passes_fault, roster_digest, roster_fault, run_id, session_name
from mpc_rr.errors import InputError, MpcRrError
from mpc_rr.folder import read_folder
from mpc_rr.network.messages import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    Invitation,
    Join,
    Opening,
    Passes,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    Verdict,
    decode,
)
from mpc_rr.network.sealed import Rejected, read
from mpc_rr.protocols.block_aggregation import CollectedBlocks
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.protocols.collection import Collected
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.protocols.interface import Ending
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.protocols.rr_views import CollectedViews
from mpc_rr.replay import DoesNotHold, Line, ReplaySession, Transcript
from mpc_rr.results import counted, ending_document, ending_files, privacy_document
from mpc_rr.scenario import Study


def verify(folder: Path, receipt: Path | None = None) -> list[str]:
    """Check a result folder; returns what was confirmed, or raises `DoesNotHold`.

    With a party's ``receipt.jsonl``, also that all it sent and heard is in the transcript.
    """
    try:
        return _verify(folder, receipt)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DoesNotHold(f"{folder / 'result.json'} is damaged: {error!r}") from None


def _verify(folder: Path, receipt: Path | None) -> list[str]:
    run = read_folder(folder)
    if not run.done:
        raise InputError(f"the study in {folder} did not end well; there is no result to verify")
    study, result = run.study, run.result
    lines = _lines("transcript.jsonl", run.text("transcript.jsonl").splitlines(), study)
    confirmed = []
    if study.digest.hex() != result["study"]["digest"]:
        raise DoesNotHold("result.json: its study digest is not that of study.json")
    transcript = Transcript(study, lines)
    _check_enrolment(transcript, result)
    confirmed.append(f"{len(transcript.keys) - 1} parties joined with keys of their own")
    members, session = _check_roster(transcript, result)
    confirmed.append(f"the roster names {len(members)} of them")
    if study.registrar is not None:
        confirmed.append("each of them was admitted by the study's registrar, as another person")
    ending = _with_reasons(_replay(transcript, session, members), result, members)
    if isinstance(ending, PairCounts) and ending.suppressed_below:
        confirmed.append(
            "the published tables fit together and show no small count (the sum itself was for the "
            "coordinator alone and cannot be repeated)"
        )
    else:
        confirmed.append(
            "the protocol, run again on the recorded messages, ends with the same result"
        )
    ending = _check_verdict(transcript, session, members, ending)
    confirmed.append("the verdict is the coordinator's, and the confirmations are the parties'")
    _check_all_used(transcript)
    _check_head(folder, study, result, ending, members)
    _check_published(folder, result, ending)
    confirmed.append(
        "result.json and all tables are what follows from it (seed, transport, rejected messages "
        "and costs cannot be checked; nor why somebody did not answer)"
    )
    if receipt is not None:
        confirmed.append(_check_receipt(transcript, session, receipt))
    return confirmed


def _lines(name: str, rows: list[str], study: Study) -> list[Line]:
    lines = []
    for number, row in enumerate(rows, start=1):
        try:
            raw = base64.b64decode(json.loads(row)["envelope"], validate=True)
            opened = read(raw, study=study.name, runs=None, targets=(EVERYONE, COORDINATOR))
        except (ValueError, KeyError, TypeError, binascii.Error, Rejected) as error:
            astray = isinstance(error, Rejected) and error.reason == "other study"
            what = "this message belongs to another study" if astray else f"not a message ({error})"
            raise DoesNotHold(f"{name}, line {number}: {what}") from None
        lines.append(Line(number, opened))
    return lines


def _check_receipt(transcript: Transcript, session: str, receipt: Path) -> str:
    """Everything a party sent and heard must be in the transcript, byte for byte."""
    try:
        rows = receipt.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{receipt} is not a receipt: {error}") from None
    known = {line.opened.raw for line in transcript.lines}
    mine = _lines(receipt.name, rows, transcript.study)
    if not mine:
        raise InputError(f"{receipt} is not a receipt: it is empty")
    for line in mine:
        place, step, sender = line.place
        counted = place.split("/")[0] in (session, "verdict")
        if line.opened.raw not in known or not counted:
            raise DoesNotHold(
                f"{receipt.name}, line {line.number}: the {step!r} message by {sender} is not in "
                "the transcript of what was counted; it was left out, or another was shown to "
                "this party"
            )
    return f"all {len(mine)} messages of the receipt are in the transcript"


def _check_enrolment(transcript: Transcript, result: dict[str, Any]) -> None:
    """The invitation binds study and run; each join is signed with the key it brings."""
    if not transcript.lines or transcript.lines[0].place[1:] != (Invitation.step, COORDINATOR):
        raise DoesNotHold("transcript.jsonl: it does not begin with an invitation")
    first = transcript.lines[0]
    invitation = first.message(Invitation)
    if not first.opened.signed_by(invitation.identity):
        raise first.wrong("its signature is not the coordinator's")
    if invitation.study_digest != transcript.study.digest:
        raise first.wrong("it invites to another study than study.json")
    run = run_id(invitation)
    if run.hex() != result["run"] or invitation.identity.fingerprint != result["coordinator"]:
        raise DoesNotHold("result.json: run or coordinator is not that of the invitation")
    transcript.keys[COORDINATOR] = invitation.identity
    transcript.used.add(first.number)
    for line in transcript.lines:
        if line.opened.envelope.header.run != run:
            raise line.wrong("it belongs to another run")
        if line.place[1] == Join.step:
            _check_join(transcript, line)
    if len(transcript.keys) - 1 > transcript.study.parties.count:
        raise DoesNotHold("transcript.jsonl: more parties joined than the study has")
    _check_signatures(transcript)


def _check_join(transcript: Transcript, line: Line) -> None:
    join, name = line.message(Join), line.place[2]
    if not line.opened.signed_by(join.identity):
        raise line.wrong("it is not signed with the key it brings")
    if name in transcript.keys:
        raise line.wrong(f"{name} has joined before")
    transcript.keys[name] = join.identity
    transcript.used.add(line.number)


def _check_signatures(transcript: Transcript) -> None:
    """Of every line, whether or not anything follows from it."""
    for line in transcript.lines:
        sender = line.place[2]
        if sender not in transcript.keys:
            raise line.wrong("its sender has not joined")
        if not line.opened.signed_by(transcript.keys[sender]):
            raise line.wrong(f"its signature is not {sender}'s")


def _check_roster(transcript: Transcript, result: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """The rosters follow from each other; the last one's members were shown it."""
    attempts = sum(line.place[1] == Roster.step for line in transcript.lines)
    if attempts < 1 or (attempts > 1 and not transcript.study.mutual):
        raise DoesNotHold("transcript.jsonl: there must be one roster, or one for each attempt")
    roster: Roster | None = None
    for number in range(1, attempts + 1):
        line, latest = transcript.by_coordinator(session_name(number), Roster)
        for member in latest.members:
            if transcript.keys.get(member.name) != member.identity:
                raise line.wrong(f"{member.name} did not join with the key it has here")
        fault = roster_fault(latest, transcript.study, roster)
        if fault is not None or latest.attempt != number:
            raise line.wrong(fault or "it is of another attempt")
        roster = latest
    assert roster is not None
    given_up = {session_name(number) for number in range(1, attempts)}
    transcript.used |= {
        line.number for line in transcript.lines if line.place[0].split("/")[0] in given_up
    }
    session = session_name(attempts)
    if transcript.study.registrar is not None:
        _check_passes(transcript, session, roster)
    _check_shown(transcript, session, roster)
    excluded = [{"party": e.name, "reason": e.reason} for e in roster.excluded]
    if result["attempts"] != attempts or result["parties"]["excluded"] != excluded:
        raise DoesNotHold("result.json: attempts or excluded parties are not those of the roster")
    return tuple(member.name for member in roster.members), session


def _check_passes(transcript: Transcript, session: str, roster: Roster) -> None:
    """Every member showed a pass by the registrar; where all know all, everybody was shown it."""
    lines = transcript.at(LOBBY_SESSION, ShowPass.step)
    shown = {name: line.message(ShowPass).shown for name, line in lines.items()}
    members = {member.name for member in roster.members}
    run = transcript.lines[0].opened.envelope.header.run
    passes = {name: p for name, p in shown.items() if name in members}
    fault = passes_fault(transcript.study, run, roster.members, passes)
    if fault is not None:
        raise DoesNotHold(f"transcript.jsonl: {fault}")
    transcript.passes = passes
    if transcript.study.mutual:
        line, said = transcript.by_coordinator(session, Passes)
        if said.passes != passes:
            raise line.wrong("these are not the passes that the parties showed")


def _check_shown(transcript: Transcript, session: str, roster: Roster) -> None:
    """All members confirmed this roster; or, where they only report, its digest was announced."""
    digest, names = roster_digest(roster), {member.name for member in roster.members}
    if not transcript.study.mutual:
        line, opening = transcript.by_coordinator(session, Opening)
        if (opening.asked, opening.digest) != (len(names), digest):
            raise line.wrong("it is not about the roster")
        return
    seen = transcript.at(session, RosterSeen.step)
    if set(seen) != names:
        raise DoesNotHold("transcript.jsonl: not every member has confirmed the roster")
    for said in seen.values():
        if said.message(RosterSeen).digest != digest:
            raise said.wrong("it confirms another roster")


def _replay(transcript: Transcript, session: str, members: tuple[str, ...]) -> Ending:
    protocol = transcript.study.protocol
    replayed = ReplaySession(transcript, f"{session}/{protocol.name}", members)
    steps = protocol.coordinator(replayed, transcript.study.schema)  # type: ignore[arg-type]
    try:
        steps.send(None)
    except StopIteration as finished:
        ending: Ending = finished.value
        return ending
    except DoesNotHold:
        raise
    except MpcRrError as error:
        raise DoesNotHold(f"transcript.jsonl: {error}") from None
    raise AssertionError("a replayed protocol waits for nothing")


def _check_verdict(
    transcript: Transcript, session: str, members: tuple[str, ...], ending: Ending
) -> Ending:
    line, verdict = transcript.by_coordinator("verdict", Verdict)
    if not verdict.done or verdict.result_digest != ending.digest:
        raise line.wrong("it announces another result")
    expected = sorted(members) if transcript.study.mutual else []
    if sorted((*verdict.seen, *verdict.unconfirmed)) != expected:
        raise line.wrong("it does not speak of every member")
    run = transcript.lines[0].opened.envelope.header.run
    for name, raw in verdict.seen.items():
        try:
            seen = read(raw, study=transcript.study.name, runs=(run,), targets=(COORDINATOR,))
            header = seen.envelope.header
            said = decode(seen.envelope.body, ResultSeen)
        except (Rejected, ValueError):
            raise line.wrong(f"{name}'s confirmation in it is no message") from None
        mine = (header.session, header.step, header.sender) == (session, ResultSeen.step, name)
        if not mine or said.digest != ending.digest or not seen.signed_by(transcript.keys[name]):
            raise line.wrong(f"{name}'s confirmation in it is not of this result, or not signed")
    return msgspec.structs.replace(ending, unconfirmed=verdict.unconfirmed)


def _check_all_used(transcript: Transcript) -> None:
    for line in transcript.lines:
        if line.number not in transcript.used:
            raise line.wrong("it has no place in this protocol")


def _check_head(
    folder: Path, study: Study, result: dict[str, Any], ending: Ending, members: tuple[str, ...]
) -> None:
    """What result.json says of the study, its price and its parties."""
    transcript = (folder / "transcript.jsonl").read_bytes()
    expected = {
        "protocol": study.protocol.name,
        "admission": "open" if study.registrar is None else "by a registrar",
        "study": {"name": study.name, "title": study.title, "digest": study.digest.hex()},
        "privacy": privacy_document(study, len(members)),
        "transcript": {
            "messages": len(transcript.splitlines()),
            "digest": hashlib.sha256(transcript).hexdigest(),
        },
    }
    for key, value in expected.items():
        if result.get(key) != json.loads(json.dumps(value)):
            raise DoesNotHold(f"result.json: {key!r} is not what follows from the transcript")
    parties = result["parties"]
    said = (parties["expected"], parties["counted"], parties["unconfirmed"])
    if said != (study.parties.count, counted(ending, members), list(ending.unconfirmed)):
        raise DoesNotHold("result.json: 'parties' is not what follows from the transcript")


def _with_reasons(ending: Ending, result: dict[str, Any], members: Sequence[str]) -> Ending:
    """Why somebody's answer is missing cannot be seen from outside, only that it is."""
    if isinstance(ending, Collected | CollectedViews | CollectedBlocks):
        missing = (*result.get("silent", ()), *result.get("faulty", ()))
        if sorted(missing) != sorted(ending.silent):
            raise DoesNotHold("result.json: silent and faulty are not those without an answer")
        silent, faulty = tuple(result["silent"]), dict(result["faulty"])
        return msgspec.structs.replace(ending, silent=silent, faulty=faulty)
    lost = dict(result.get("lost", {}))
    if not isinstance(ending, PairCounts | RandomizedPairs | KAnonymous | MaskedRelease):
        return ending
    withdrawn = len(ending.withdrawn) if isinstance(ending, KAnonymous) else 0
    if not set(lost) <= set(members) or ending.n != len(members) - len(lost) - withdrawn:
        raise DoesNotHold("result.json: 'lost' names others than those who are not counted")
    confided = isinstance(ending, PairCounts) and ending.suppressed_below
    if not confided and _steps(lost) != _steps(ending.lost):
        raise DoesNotHold("result.json: 'lost' does not name those whose messages are missing")
    return msgspec.structs.replace(ending, lost=lost)


def _steps(lost: Mapping[str, str]) -> dict[str, str]:
    """At which step each was lost, without the details."""
    return {name: at.partition(":")[0] for name, at in lost.items()}


def _check_published(folder: Path, result: dict[str, Any], ending: Ending) -> None:
    """The published numbers, to the last digit."""
    expected = json.loads(json.dumps(ending_document(ending)))
    for key, value in expected.items():
        if result.get(key) != value:
            raise DoesNotHold(f"result.json: {key!r} is not what follows from the transcript")
    for name, content in ending_files(ending).items():
        try:
            published = (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise DoesNotHold(f"{name} cannot be read: {error}") from None
        if published != content:
            raise DoesNotHold(f"{name} is not what follows from the transcript")
