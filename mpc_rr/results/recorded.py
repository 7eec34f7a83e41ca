"""The checks of a recorded transcript: who joined, who signed, which rosters, what follows.

Each raises `DoesNotHold` at the first thing that is not in order. Lines are met
(`Transcript.met`) in the order in which an honest coordinator would have written them down.
"""

import base64
import binascii
import json
from dataclasses import dataclass

from mpc_rr.agents.roster import (
    member_pass_fault,
    roster_digest,
    roster_fault,
    run_id,
    session_name,
)
from mpc_rr.errors import InputError, MpcRrError, listing
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    RUN_BYTES,
    is_party_name,
)
from mpc_rr.network.lifecycle import Invitation, Join, Opening, Roster, RosterSeen, ShowPass
from mpc_rr.network.sealed import Rejected, read
from mpc_rr.network.session import Limits
from mpc_rr.network.session.replay import DoesNotHold, Line, ReplaySession, Transcript
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.publication.ending import Ending
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.study.definition import Study

MISSING_IS_NO_ANSWER = 3
"""Since these rules, who gave no answer has no rank, and no place among numbers."""
UNUSABLE = "it brings a key that cannot be used, or for which anyone could sign"


@dataclass(kw_only=True)
class StudyTranscript(Transcript):
    """The transcript of a study that is known."""

    study: Study

    @property
    def run(self) -> bytes:
        """The run of its first message."""
        return self.lines[0].opened.envelope.header.run


def rows_of(text: str) -> list[str]:
    """The lines of a file; only a line feed ends one."""
    rows = text.split("\n")
    return rows[:-1] if rows[-1] == "" else rows


def read_lines(name: str, rows: list[str], study: Study) -> list[Line]:
    """The messages of a file; what stands beside them must be what they are labelled with."""
    lines = []
    for number, row in enumerate(rows, start=1):
        try:
            raw = base64.b64decode(json.loads(row)["envelope"], validate=True)
            opened = read(
                raw, study=study.name, runs=None, targets=(EVERYONE, COORDINATOR),
                versions=RUN_BYTES,
            )  # fmt: skip
            if transcript_lines([raw]) != row + "\n":
                raise ValueError("beside it stands something else than in it")  # noqa: TRY301
        except (ValueError, KeyError, TypeError, binascii.Error, Rejected, RecursionError) as error:
            astray = isinstance(error, Rejected) and error.reason == "other study"
            what = "this message belongs to another study" if astray else f"not a message ({error})"
            raise DoesNotHold(f"{name}, line {number}: {what}") from None
        lines.append(Line(number, opened))
    return lines


def persons_in(text: str, study: Study) -> set[bytes]:
    """The keys of the persons who joined a run of this very study with a pass of its registrar.

    `InputError` if a transcript does not show that: nothing in it is believed unsigned.
    """
    try:
        transcript = StudyTranscript(
            read_lines("transcript.jsonl", rows_of(text), study), study=study
        )
        if not any(line.place[1] in (Join.step, ShowPass.step) for line in transcript.lines):
            return set()  # it ended before the roster was closed
        check_joins(transcript)
        check_signatures(transcript)
        return {
            _person(transcript, line)
            for line in transcript.at(LOBBY_SESSION, ShowPass.step).values()
        }
    except DoesNotHold as error:
        raise InputError(f"{error}; who came cannot be told") from None


def _person(transcript: StudyTranscript, line: Line) -> bytes:
    """Whose pass somebody showed who joined."""
    message, study = line.message(ShowPass), transcript.study
    if message.identity != transcript.keys[line.place[2]]:
        raise line.wrong("it is for other keys than those that joined")
    known = (study, transcript.run, (), message.identity)
    fault = member_pass_fault(*known, message.shown)
    if fault is not None:
        raise line.wrong(fault)
    return message.shown.person


def check_joins(transcript: StudyTranscript) -> None:
    """The invitation binds study and run, each join a name and a key."""
    if not transcript.lines or transcript.lines[0].place[1:] != (Invitation.step, COORDINATOR):
        raise DoesNotHold("transcript.jsonl: it does not begin with an invitation")
    first, study = transcript.lines[0], transcript.study
    invitation = first.message(Invitation)
    if invitation.study_digest != study.digest:
        raise first.wrong("it invites to another study than study.json")
    if not invitation.identity.usable:
        raise first.wrong(UNUSABLE)
    version = first.opened.envelope.header.version
    run = run_id(invitation, version)
    for line in transcript.lines:
        header = line.opened.envelope.header
        if (header.version, header.run) != (version, run):
            raise line.wrong("it belongs to another run")
    transcript.keys[COORDINATOR] = invitation.identity
    transcript.met.append(first.number)
    _meet_parties(transcript)
    if len(transcript.keys) - 1 > study.parties.count:
        raise DoesNotHold("transcript.jsonl: more parties joined than the study has")


def _meet_parties(transcript: StudyTranscript) -> None:
    """Each with the key that it brings; nobody takes the coordinator's place."""
    registrar = transcript.study.registrar
    passes = {} if registrar is None else transcript.at(LOBBY_SESSION, ShowPass.step)
    for name, line in sorted(transcript.at(LOBBY_SESSION, Join.step).items()):
        if not is_party_name(name):
            raise line.wrong("no party may have the name of its sender")
        transcript.keys[name] = line.message(Join).identity
        if not transcript.keys[name].usable:
            raise line.wrong(UNUSABLE)
        transcript.met.append(line.number)
        if name in passes:
            transcript.met.append(passes[name].number)


def check_signatures(transcript: StudyTranscript) -> None:
    """Of every line, also of the joins, which bring the key."""
    for line in transcript.lines:
        sender = line.place[2]
        if sender not in transcript.keys:
            raise line.wrong("its sender has not joined")
        if not line.opened.signed_by(transcript.keys[sender]):
            raise line.wrong(f"its signature is not {sender}'s")


def check_rosters(transcript: StudyTranscript) -> tuple[Roster, str]:
    """The rosters follow from each other; returns the last, and the session it is for."""
    attempts = sum(line.place[1] == Roster.step for line in transcript.lines)
    if attempts < 1 or (attempts > 1 and not transcript.study.needs_roster):
        raise DoesNotHold("transcript.jsonl: there must be one roster, or one for each attempt")
    roster: Roster | None = None
    for number in range(1, attempts + 1):
        if number > 1:
            transcript.pass_over(session_name(number - 1), itself=True)
        line, latest = transcript.announced(session_name(number), Roster)
        for member in latest.members:
            if transcript.keys.get(member.name) != member.identity:
                raise line.wrong(f"{member.name} did not join with the key it has here")
        fault = roster_fault(latest, transcript.study, roster) or _exclusion_fault(
            latest, roster, set(transcript.keys) - {COORDINATOR}
        )
        if fault is not None or latest.attempt != number:
            raise line.wrong(fault or "it is of another attempt")
        roster = latest
    assert roster is not None
    return roster, session_name(attempts)


def _exclusion_fault(roster: Roster, earlier: Roster | None, joined: set[str]) -> str | None:
    """Why those it excludes cannot be those who were left out, or None.

    Whoever joined is in the first roster, or named as excluded: nobody is left out unnamed.
    """
    members = {member.name for member in roster.members}
    excluded = [exclusion.name for exclusion in roster.excluded]
    if members & set(excluded):
        return "someone is in it and excluded"
    if earlier is None:
        unnamed = joined - members - set(excluded)
        if unnamed:
            return f"joined, but neither in it nor excluded: {listing(unnamed)}"
    else:
        known = len(earlier.excluded)
        lost = {member.name for member in earlier.members} - members
        if roster.excluded[:known] != earlier.excluded or set(excluded[known:]) != lost:
            return "those it excludes are not those who were in the one before"
    return None


def check_shown(transcript: StudyTranscript, session: str, roster: Roster) -> None:
    """All members confirmed this roster; or, where they only report, its digest was announced."""
    digest, names = roster_digest(roster), [member.name for member in roster.members]
    if not transcript.study.needs_roster:
        line, opening = transcript.announced(session, Opening)
        if (opening.asked, opening.digest) != (len(names), digest):
            raise line.wrong("it is not about the roster")
        return
    seen = transcript.by_parties(session, RosterSeen.step, names)
    if len(seen) < len(names):
        raise DoesNotHold("transcript.jsonl: not every member has confirmed the roster")
    for said in seen.values():
        if said.message(RosterSeen).digest != digest:
            raise said.wrong("it confirms another roster")


def run_again(
    transcript: StudyTranscript, session: str, members: tuple[str, ...], protocol: StudyProtocol
) -> Ending:
    """How the protocol's own code ends on the recorded messages."""
    study = transcript.study
    parties, deadlines = study.parties, study.deadlines
    limits = Limits(
        parties.fewest, parties.count, deadlines.round_s, registrar=study.registrar is not None
    )
    replayed = ReplaySession(transcript, f"{session}/{protocol.name}", members, limits)
    known = transcript.rules >= MISSING_IS_NO_ANSWER
    schema = study.schema if known else study.schema.with_missing_as_answers()
    steps = protocol.coordinator(replayed, schema)
    try:
        steps.send(None)
    except StopIteration as finished:
        ending: Ending = finished.value
        return ending
    except DoesNotHold:
        raise
    except MpcRrError as error:
        raise DoesNotHold(f"transcript.jsonl: {error}") from None
    steps.close()
    raise DoesNotHold(
        f"transcript.jsonl: the protocol {protocol.name!r} waits for something that is in no "
        "transcript, so it cannot be replayed"
    )
