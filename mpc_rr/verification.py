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
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.agents.roster import roster_digest, roster_fault, run_id, session_name
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import InputError, MpcRrError
from mpc_rr.folder import read_folder
from mpc_rr.network.messages import (
    COORDINATOR,
    EVERYONE,
    Invitation,
    Join,
    M,
    Message,
    Opening,
    ResultSeen,
    Roster,
    RosterSeen,
    Verdict,
    decode,
    encode,
)
from mpc_rr.network.sealed import Opened, Rejected, read
from mpc_rr.network.session import Check, Gathered, encode_parts
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.protocols.collection import Collected
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.protocols.interface import Ending
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.protocols.rr_views import CollectedViews
from mpc_rr.results import counted, ending_document, ending_files, privacy_document
from mpc_rr.scenario import Study


class DoesNotHold(MpcRrError):
    """Something in a result folder is not as it should be."""


@dataclass(frozen=True)
class Line:
    """One message of the transcript, and where it stands."""

    number: int
    opened: Opened

    @property
    def place(self) -> tuple[str, str, str]:
        """Session, step and sender."""
        header = self.opened.envelope.header
        return header.session, header.step, header.sender

    def wrong(self, what: str) -> DoesNotHold:
        """The error that names this line."""
        session, step, sender = self.place
        return DoesNotHold(
            f"transcript.jsonl, line {self.number} ({step} by {sender} in {session}): {what}"
        )

    def message(self, kind: type[M]) -> M:
        """The message, which must be of this kind."""
        try:
            return self.opened.message(kind)
        except Rejected:
            raise self.wrong(f"it is no {kind.step!r} message") from None


@dataclass
class Transcript:
    """The lines, with the keys of those who speak in them."""

    study: Study
    lines: list[Line]
    keys: dict[str, PublicIdentity] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def at(self, session: str, step: str) -> dict[str, Line]:
        """The lines of one step, by sender; each is there once."""
        found: dict[str, Line] = {}
        for line in self.lines:
            if line.place[:2] != (session, step):
                continue
            sender = line.place[2]
            if sender in found:
                raise line.wrong(f"{sender} has spoken in this step before")
            found[sender] = line
            self.used.add(line.number)
        return found

    def by_coordinator(self, session: str, kind: type[M]) -> tuple[Line, M]:
        """The coordinator's one message of this kind."""
        found = self.at(session, kind.step)
        if list(found) != [COORDINATOR]:
            raise DoesNotHold(f"transcript.jsonl: no {kind.step!r} by the coordinator in {session}")
        return found[COORDINATOR], found[COORDINATOR].message(kind)


class ReplaySession:
    """Stands in for a `CoordinatorSession`: it hears what was recorded."""

    def __init__(self, transcript: Transcript, name: str, parties: tuple[str, ...]) -> None:
        self.transcript, self.name, self.parties = transcript, name, parties
        self.fewest, self.most = transcript.study.parties.fewest, transcript.study.parties.count

    def sub(self, label: str) -> "ReplaySession":
        """The session of a sub-protocol."""
        return ReplaySession(self.transcript, f"{self.name}/{label}", self.parties)

    def point_of_no_return(self) -> None:
        """It is past."""

    @property
    def context(self) -> bytes:
        """What binds a hash or a ciphertext to this study, run and session."""
        header = self.transcript.lines[0].opened.envelope.header
        return encode_parts(header.study.encode(), header.run, self.name.encode())

    def signed(self, raw: bytes, sender: str, step: str, *, target: str = COORDINATOR) -> Opened:
        """What somebody wrote in this session; ``ValueError`` if it is anything else."""
        header = self.transcript.lines[0].opened.envelope.header
        try:
            opened = read(raw, study=header.study, runs=(header.run,), targets=(target,))
        except Rejected as rejected:
            raise ValueError(rejected.reason) from None
        place = opened.envelope.header
        if (place.session, place.step, place.sender) != (self.name, step, sender):
            raise ValueError("it belongs to another step")
        if not opened.signed_by(self.transcript.keys[sender]):
            raise ValueError("its signature is not the sender's")
        return opened

    def identity_of(self, party: str) -> PublicIdentity:
        """The keys with which a party joined."""
        return self.transcript.keys[party]

    async def route(
        self, kind: type[M], *, before_handing_out: Callable[[], None] | None = None
    ) -> None:
        """Sealed parcels are in no transcript."""

    async def relay(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """What all parties published."""
        lines = self.transcript.at(self.name, kind.step)
        missing = [party for party in self.parties if party not in lines]
        if missing:
            raise DoesNotHold(
                f"transcript.jsonl: {missing[0]}'s message for step {kind.step!r} is missing"
            )
        return {party: self._checked(lines[party], kind, check) for party in self.parties}

    async def gather(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        senders: Collection[str] | None = None,
    ) -> Gathered[M]:
        """What those reported who did."""
        asked = [party for party in self.parties if senders is None or party in senders]
        lines = self.transcript.at(self.name, kind.step)
        for party, line in lines.items():
            if party not in asked:
                raise line.wrong(f"{party} was not asked")
        messages = {party: self._checked(line, kind, check) for party, line in lines.items()}
        silent = tuple(party for party in asked if party not in messages)
        signed = {party: line.opened.raw for party, line in lines.items()}
        return Gathered(messages, silent, {}, signed)

    async def hand_out(self, messages: Mapping[str, Message]) -> None:
        """What was written to single parties is in no transcript."""

    async def announce(self, message: Message) -> None:
        """What was announced must be what follows."""
        line, recorded = self.transcript.by_coordinator(self.name, type(message))
        if encode(recorded) != encode(message):
            raise line.wrong("it does not follow from the messages before it")

    async def announce_made(
        self,
        kind: type[M],
        make: Callable[[], Awaitable[M]],  # noqa: ARG002  (only the coordinator could)
        *,
        check: Check[M],
    ) -> M:
        """What the coordinator announced; of how it came about, only that it passes the check."""
        line, _ = self.transcript.by_coordinator(self.name, kind)
        below = {o.number for o in self.transcript.lines if o.place[0].startswith(f"{self.name}/")}
        self.transcript.used |= below
        return self._checked(line, kind, check)

    def _checked(self, line: Line, kind: type[M], check: Check[M] | None) -> M:
        message = line.message(kind)
        if check is not None:
            try:
                check(message)
            except ValueError as error:
                raise line.wrong(str(error)) from None
        return message


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
            raise DoesNotHold(f"{name}, line {number}: not a message ({error})") from None
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
    _check_shown(transcript, session, roster)
    excluded = [{"party": e.name, "reason": e.reason} for e in roster.excluded]
    if result["attempts"] != attempts or result["parties"]["excluded"] != excluded:
        raise DoesNotHold("result.json: attempts or excluded parties are not those of the roster")
    return tuple(member.name for member in roster.members), session


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
    if isinstance(ending, Collected | CollectedViews):
        missing = (*result.get("silent", ()), *result.get("faulty", ()))
        if sorted(missing) != sorted(ending.silent):
            raise DoesNotHold("result.json: silent and faulty are not those without an answer")
        silent, faulty = tuple(result["silent"]), dict(result["faulty"])
        return msgspec.structs.replace(ending, silent=silent, faulty=faulty)
    lost = dict(result.get("lost", {}))
    if not isinstance(ending, PairCounts | RandomizedPairs | KAnonymous | MaskedRelease):
        return ending
    if not set(lost) <= set(members) or ending.n != len(members) - len(lost):
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
