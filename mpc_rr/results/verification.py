"""Replaying a public transcript: whoever has the result folder can check the coordinator.

The messages are read in order and every signature is checked against the keys with which their
authors joined. Then the protocol's own code is run again on the recorded messages, as if it were
the coordinator: sums, clusters and announcements must come out as recorded, and what is published
must be what its ending publishes. Each of these is a claim of its own (`mpc_rr.results.claims`);
what no folder can prove is a claim, too, and is said not to be confirmable.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mpc_rr.agents.roster import passes_fault
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawn
from mpc_rr.crypto.admission import Withdrawals
from mpc_rr.errors import InputError, listing, one_line, quoted
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    RUN_BYTES,
    VERDICT_SESSION,
    decode,
)
from mpc_rr.network.lifecycle import (
    Passes,
    ResultSeen,
    Roster,
    ShowPass,
    Verdict,
)
from mpc_rr.network.sealed import Rejected, read
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.network.session.replay import DoesNotHold, Line
from mpc_rr.publication.blocks import FOLLOWED
from mpc_rr.publication.crosstabs import DEPENDENCE
from mpc_rr.publication.ending import Ending, who_took_part
from mpc_rr.publication.parts import Absence, Listing, Participation, Publication, Table
from mpc_rr.publication.reports import OF_WEIGHTS
from mpc_rr.publication.sheets import as_before, as_unsplit
from mpc_rr.publication.whole import published
from mpc_rr.results import earlier, format1
from mpc_rr.results.absences import with_reasons
from mpc_rr.results.alike import alike, texts_alike
from mpc_rr.results.claims import CannotTell, Claim, Contradicted, Findings
from mpc_rr.results.closing import CLOSING, Closing, in_order, read_closing, sha256_of
from mpc_rr.results.folder import (
    ResultFolder,
    protocol_head,
    published_files,
    read_folder,
    write_folder,
)
from mpc_rr.results.format import without_texts
from mpc_rr.results.recorded import (
    StudyTranscript,
    check_joins,
    check_rosters,
    check_shown,
    check_signatures,
    read_lines,
    rows_of,
    run_again,
)
from mpc_rr.study.definition import Study

REPORT = "report.html"
FILES = frozenset(
    {"result.json", "study.json", "transcript.jsonl", "cost.json", "cost.csv", CLOSING}
)
COSTS = {"cost.json", "cost.csv"}
RECEIPTS = re.compile(r"receipt\.jsonl|receipts/[^/]+\.jsonl")

STUDY = "result.json speaks of the study in study.json"
TWICE = "no key stands twice in a JSON file, so that all readers read the same"
WHOLE = "result.json has the digest of transcript.jsonl"
LINES = "every line of transcript.jsonl is a message of this study, labelled as it is signed"
SIGNED = "every message is signed with the key with which its sender joined"
RUN = "result.json names the run and the coordinator of the invitation"
ROSTER = "the roster names only parties that joined, and leaves out only those it excludes"
ADMITTED = "each party in the roster has a key of its own that the study's registrar admitted"
STANDING = "nobody took part whose admission the registrar has withdrawn"
ONCE = "the registrar admitted nobody twice"
PEOPLE = "the parties are people, or anyone but the coordinator"
VERDICT = "the coordinator's verdict is that the study ended well"
SEEN = "the parties have signed that they have the result of the verdict"
REPLAY = "replaying the recorded messages gives the same result"
SUM = "the published tables are the sum of what the parties sent"
PLACE = "every line has its place in the protocol"
ORDER = "the lines stand in the order in which the protocol sends them"
TRUTH = "the parties reported what is true of them"
ALL_ANSWERS = "no answer that came in time was left out"
RECEIPT = "all messages of the receipt are in the transcript"
RECEIPTS_HERE = "all messages of the receipts in this folder are in the transcript"
COUNTED = "result.json names those as counted or absent who are so in the transcript"
PUBLISHED = "what result.json publishes follows from the transcript"
OLD_ENOUGH = "the rules that result.json names are not older than the messages' wire version"
UNCERTAINTY = "limits, standard errors and which tables are shown first follow from the transcript"
WORDS = "findings, notes, labels, titles, figures and privacy costs follow from the transcript"
SHEETS = "the CSV files are those that result.json lists"
CLOSED = "the coordinator closed the run with this transcript and this result"
STATED = "transport, seed, rejected messages and costs are as the coordinator signed them"
STATED_TO_PARTIES = "transport, seed and rejected messages are as the coordinator signed them"
REASONS = "those who are absent are so for the reasons given"
SECRETS = "the secrets were drawn from the operating system's randomness"
NETWORK = "transport, times, costs and rejected messages were as stated"
CODE = "the agents ran the protocol that is known here under its name"

LAST_DIGITS = "but for the last digits, which depend on the machine"
HOW = "`mpc-rr verify RUN --receipt FILE` looks for it"
ONLY_ITS_SENDER = (
    "only the party that sent it can see whether it is there, with its receipt; {how}. That it "
    "came in time, no receipt proves"
)
IN_NO_RECEIPT = (
    "answers were sent to the coordinator alone, and stand in no transcript and no receipt: it "
    "is its word"
)
ANYBODY = (
    "the study is open to everyone, so a coordinator alone can have made this folder, all parties "
    "included; a registrar in the study file would prevent that"
)
CONFIDED = (
    "the sum was for the coordinator alone, and is its word; only that the tables fit together and "
    "show no small count was checked"
)
NO_SEED = (
    "that there was no seed is the coordinator's word, and of its own secrets only; each party "
    "knows from what it drew"
)
NO_SEED_UNSIGNED = (
    "result.json names no seed, but there is no closing statement in which the coordinator says "
    "so: someone who passed the folder on may have removed both; and it would be the coordinator's "
    "word, of its own secrets only"
)
SIMULATED = (
    "the folder says itself that they were not: this is a simulation, and anyone who knows its "
    "seed, {seed}, knows all of them"
)
EARLIER = (
    "result.json says that they were written by the rules and in the words of an earlier version, "
    "which someone who passed it on may have put there; `mpc-rr publish RUN --out NEW` writes them "
    "again"
)
UNCOMPARED = "but not limits and standard errors, which were not compared"
NOT_COMPARED = (
    "not compared: by the rules that result.json names they were worked out otherwise; where the "
    "transcript allows it, `mpc-rr publish RUN --out NEW` works them out by those of now"
)
DRAWN = (
    "not checked: it is drawn from result.json; delete it and make it again with `mpc-rr report`"
)
UNKNOWN = "nothing vouches for it: it does not follow from the transcript"


NO_FORMULAS = 2
"""Since these rules, and some time before, no cell of a sheet is a formula."""
NO_SPLITS = 3
"""Since these none becomes one where its line is split at other characters than commas."""

P = TypeVar("P", bound=msgspec.Struct)
Named = TypeVar("Named", Table, Listing)


@dataclass(frozen=True)
class Replayed:
    """A study whose transcript holds, and what follows from it."""

    study: Study
    members: tuple[str, ...]
    ending: Ending
    publication: Publication
    """But for the reasons why somebody is absent, which only the coordinator can know."""

    def with_reasons(self, told: Participation | None) -> Publication:
        """The same with these reasons, if they fit."""
        with contextlib.suppress(DoesNotHold):
            people = with_reasons(self.publication.participation, told, self.members)
            return msgspec.structs.replace(self.publication, participation=people)
        return self.publication


def verify(
    path: Path, receipt: Path | None = None, withdrawals: Path | None = None
) -> tuple[Claim, ...]:
    """Check a result folder; returns what can be said of it, or raises `Contradicted`."""
    return _unless_contradicted(claims_of(path, receipt, withdrawals))


def claims_of(
    path: Path, receipt: Path | None = None, withdrawals: Path | None = None
) -> tuple[Claim, ...]:
    """Everything that can be said of a result folder, claim by claim.

    With a party's ``receipt.jsonl``, also whether all it sent and heard is in the transcript; with
    the registrar's list of withdrawals, whether nobody who stands on it took part.
    """
    folder = read_folder(path)
    there = _Examined(folder, folder.file.rules)
    there.look_at_transcript()
    there.look_at_result()
    there.look_at_other_files()
    if receipt is not None:
        there.look_at_receipt(receipt)
    if withdrawals is not None:
        there.look_at_withdrawals(withdrawals)
    return there.findings.claims


def replay(folder: ResultFolder, rules: int | None = None) -> Replayed:
    """Check a transcript and publish anew what follows from it; `Contradicted` if it does not hold.

    ``rules``: by which it is run again; those by which the folder was made, if not given.
    """
    there = _Examined(folder, folder.file.rules if rules is None else rules)
    there.look_at_transcript()
    _unless_contradicted(there.findings.claims)
    return Replayed(there.study, there.members, there.ending, there.publication)


def publish_anew(path: Path, out: Path) -> Publication:
    """Write a result folder of the newest format with what follows from an older one's transcript.

    `Contradicted` if the transcript does not hold.
    """
    folder = read_folder(path)
    try:
        replayed = replay(folder, RULES)
    except DoesNotHold:
        if folder.file.rules == RULES:
            raise
        replay(folder)  # if that does not hold either, the folder is wrong
        raise InputError(
            f"{path} cannot be brought to the newest format: it was made by a rule that has "
            "changed since (docs/compatibility.md); verify and report read it as it is"
        ) from None
    publication = replayed.with_reasons(folder.file.publication.participation)
    file = msgspec.structs.replace(
        folder.file, rules=RULES, publication=publication, protocol=protocol_head(replayed.study)
    )
    copied = ("study.json", "transcript.jsonl", "cost.json", "cost.csv", CLOSING)
    files = {name: folder.text(name) for name in copied if (path / name).exists()}
    write_folder(files | published_files(file, publication), out)
    return publication


class _Examined:
    """A result folder, and what has been found out about it.

    Each check returns how much it found, or raises `DoesNotHold` or `CannotTell`. It may use what
    the checks of the claims that it needs have found.
    """

    transcript: StudyTranscript
    members: tuple[str, ...]
    session: str
    roster: Roster
    passes: tuple[Line, Passes]
    verdict: Verdict
    last: Line
    """The verdict's."""
    ending: Ending
    met: dict[int, None]
    """The numbers of the lines that have a place, in the order in which they belong."""
    publication: Publication
    closing: Closing

    def __init__(self, folder: ResultFolder, rules: int) -> None:
        if not folder.done:
            raise InputError(f"the study in {folder.path} was aborted; there is no result of it")
        if not 0 <= rules <= RULES:
            raise InputError(
                f"{folder.path} was made by rules {rules}; this program knows 0 to {RULES}"
            )
        self.folder, self.rules = folder, rules
        self.study = folder.study
        self.text = folder.text("transcript.jsonl")
        self.findings = Findings()

    def look_at_transcript(self) -> None:
        """Whether the transcript holds, and what it does not show."""
        look, cannot_tell = self.findings.look, self.findings.cannot_tell
        look(STUDY, self._study)
        look(LINES, self._lines)
        look(SIGNED, self._signed, [LINES])
        older = [OLD_ENOUGH] if self.rules < RULES else []
        if older:
            look(OLD_ENOUGH, self._old_enough, [SIGNED])
        look(RUN, self._run, [SIGNED])
        look(ROSTER, self._rosters, [SIGNED])
        if self.study.registrar is None:
            cannot_tell(PEOPLE, ANYBODY)
        else:
            look(ADMITTED, self._passes, [ROSTER])
            cannot_tell(ONCE, "it is the registrar's word; a pass shows a key, not its person")
        look(VERDICT, self._verdict, [ROSTER])
        look(SEEN, self._results_seen, [VERDICT])
        admitted = [] if self.study.registrar is None else [ADMITTED]
        look(REPLAY, self._replay, [*older, ROSTER, *admitted, VERDICT])
        if self.findings.confirmed(REPLAY) and self._told_by_coordinator:
            cannot_tell(SUM, CONFIDED)
        look(PLACE, self._places, [REPLAY])
        look(ORDER, self._order, [REPLAY])
        cannot_tell(
            ALL_ANSWERS, IN_NO_RECEIPT if self._confided else ONLY_ITS_SENDER.format(how=HOW)
        )
        cannot_tell(TRUTH, "nobody sees a party's record but the party: it is its word")

    def look_at_result(self) -> None:
        """Whether the rest of the folder follows from the transcript, or was signed."""
        look, cannot_tell = self.findings.look, self.findings.cannot_tell
        look(TWICE, self._no_key_twice)
        look(WHOLE, self._whole)
        look(COUNTED, self._counted, [REPLAY])
        look(PUBLISHED, self._published, [REPLAY])
        if self._other_limits:
            cannot_tell(UNCERTAINTY, NOT_COMPARED)
        if self.folder.version > 1 and self.rules < RULES:
            cannot_tell(WORDS, EARLIER)
        look(SHEETS, self._sheets, [REPLAY] if self.folder.version == 1 else [])
        look(CLOSED, self._closed, [SIGNED])
        of_party = self.findings.confirmed(CLOSED) and not self.closing.files
        look(STATED_TO_PARTIES if of_party else STATED, self._stated, [CLOSED])
        if self._absent:
            look(REASONS, self._reasons)
        file, signed = self.folder.file, self.findings.confirmed(CLOSED)
        seed = self.closing.seed if signed else file.seed
        no_seed = NO_SEED if signed else NO_SEED_UNSIGNED
        cannot_tell(SECRETS, no_seed if seed is None else SIMULATED.format(seed=seed))
        cannot_tell(NETWORK, "only the coordinator saw that: it is its word")
        origin = _quoted(file.protocol.origin or "unknown")
        here = protocol_head(self.study).origin
        cannot_tell(CODE, f"theirs came from {origin}, as result.json says; run here: {here}")

    # ── The transcript ─────────────────────────────────────────────────────────────────────────

    def _study(self) -> str:
        file, study = self.folder.file, self.study
        if study.digest.hex() != file.study.digest:
            raise DoesNotHold("result.json: its study digest is not that of study.json")
        _same(
            ("study", (file.study.name, file.study.title), (study.name, study.title)),
            ("protocol", file.protocol.name, study.protocol.name),
            ("admission", file.admission, "open" if study.registrar is None else "by a registrar"),
        )
        return ""

    def _lines(self) -> str:
        lines = read_lines("transcript.jsonl", rows_of(self.text), self.study)
        self.transcript = StudyTranscript(lines, rules=self.rules, study=self.study)
        return f"{len(lines)} messages"

    def _signed(self) -> str:
        check_joins(self.transcript)
        check_signatures(self.transcript)
        return f"{len(self.transcript.keys) - 1} parties joined, with keys of their own"

    def _old_enough(self) -> str:
        """The rules are their author's word, but every party signs in which wire version it speaks:
        agents that speak one follow the rules with which it began, or later ones."""
        wire = self.transcript.lines[0].opened.envelope.header.version
        began = earlier.RULES_WITH_WIRE[wire]
        if self.rules < began:
            raise DoesNotHold(
                f"result.json: it names rules {self.rules}, but the messages of this run are of "
                f"wire version {wire}, which began with rules {began}"
            )
        return f"rules {self.rules}, wire version {wire}"

    def _run(self) -> str:
        file, identity = self.folder.file, self.transcript.keys[COORDINATOR]
        if (self.transcript.run.hex(), identity.fingerprint) != (file.run, file.coordinator):
            raise DoesNotHold("result.json: run or coordinator is not that of the invitation")
        return f"to know whose key it has, compare its fingerprint, {identity.fingerprint}"

    def _rosters(self) -> str:
        self.roster, self.session = check_rosters(self.transcript)
        self.members = tuple(member.name for member in self.roster.members)
        if self.study.registrar is not None and self.study.needs_roster:
            self.passes = self.transcript.announced(self.session, Passes)
        check_shown(self.transcript, self.session, self.roster)
        if self.folder.file.attempts != self.roster.attempt:
            raise DoesNotHold("result.json: 'attempts' is not the number of rosters")
        shown = "have confirmed it" if self.study.needs_roster else "were told its digest"
        return f"{len(self.members)} parties, who {shown}"

    def _passes(self) -> str:
        lines = self.transcript.at(LOBBY_SESSION, ShowPass.step)
        shown = {name: line.message(ShowPass).shown for name, line in lines.items()}
        passes = {name: shown[name] for name in self.members if name in shown}
        fault = passes_fault(self.study, self.transcript.run, (), self.roster.members, passes)
        if fault is not None:
            raise DoesNotHold(f"transcript.jsonl: {fault}")
        self.transcript.passes = passes
        if self.study.needs_roster:
            line, said = self.passes
            if said.passes != passes:
                raise line.wrong("these are not the passes that the parties showed")
        return f"{len(passes)} passes"

    def _verdict(self) -> str:
        line, self.verdict = self.transcript.by_coordinator(VERDICT_SESSION, Verdict)
        self.last = line
        if not self.verdict.done:
            raise line.wrong("it is that the study came to nothing")
        if self.folder.file.cause or self.folder.file.culprits:
            raise DoesNotHold("result.json: it blames someone although the study ended well")
        expected = sorted(self.members) if self.study.needs_roster else []
        if sorted((*self.verdict.seen, *self.verdict.unconfirmed)) != expected:
            raise line.wrong("it does not speak of every member")
        return ""

    def _results_seen(self) -> str:
        if not self.study.needs_roster:
            raise CannotTell(
                f"in this protocol parties do not confirm the result; each has a receipt; {HOW}"
            )
        for name, raw in self.verdict.seen.items():
            self._check_seen(name, raw)
        if not self.verdict.seen:
            raise CannotTell("nobody has, by the coordinator's word")
        missing = f", not {listing(self.verdict.unconfirmed)}" if self.verdict.unconfirmed else ""
        return f"{len(self.verdict.seen)} of {len(self.members)}{missing}"

    def _check_seen(self, name: str, raw: bytes) -> None:
        runs = (self.transcript.run,)
        try:
            seen = read(
                raw, study=self.study.name, runs=runs, targets=(COORDINATOR,), versions=RUN_BYTES
            )
            header = seen.envelope.header
            said = decode(seen.envelope.body, ResultSeen)
        except (Rejected, ValueError):
            raise self.last.wrong(f"{name}'s confirmation in it is no message") from None
        if (header.session, header.step, header.sender) != (self.session, ResultSeen.step, name):
            raise self.last.wrong(f"{name}'s confirmation in it is of something else")
        if said.digest != self.verdict.result_digest:
            raise self.last.wrong(f"{name}'s confirmation in it is of another result")
        if not seen.signed_by(self.transcript.keys[name]):
            raise self.last.wrong(f"{name}'s confirmation in it is not signed by {name}")

    def _replay(self) -> str:
        steps = {line.place[1] for line in self.transcript.lines}
        protocol = self.study.protocol.as_recorded(steps)
        ending = run_again(self.transcript, self.session, self.members, protocol)
        if self.verdict.result_digest != ending.digest:
            raise self.last.wrong("it announces another result")
        self.ending = msgspec.structs.replace(ending, unconfirmed=self.verdict.unconfirmed)
        setting = self.study.setting_with(self.members)
        self.publication = published(self.ending, setting, protocol, self._excluded)
        return f"by rules of then ({self.rules})" if self.rules < RULES else ""

    @property
    def _excluded(self) -> tuple[Absence, ...]:
        left_out = self.roster.excluded
        return tuple(Absence(party=e.name, how="excluded", reason=e.reason) for e in left_out)

    @property
    def _confided(self) -> bool:
        """Whether answers went to the coordinator alone."""
        rounds = self.study.protocol.rounds(self.study.setting)
        return any(kind.way == "confide" for kind in rounds)

    @property
    def _told_by_coordinator(self) -> bool:
        people = self.publication.participation
        return people is not None and people.told_by == "coordinator"

    def _places(self) -> str:
        self.met = dict.fromkeys([*self.transcript.met, self.last.number])
        for line in self.transcript.lines:
            if line.number not in self.met:
                raise line.wrong("it has no place in this protocol")
        return self._but_for_passed("has its place")

    def _order(self) -> str:
        if len(self.met) < len(self.transcript.lines):
            raise CannotTell(f"it rests on what is not confirmed: {PLACE}")
        for line, number in zip(self.transcript.lines, self.met, strict=True):
            if line.number != number:
                raise line.wrong(f"here belongs what stands in line {number}")
        return self._but_for_passed("stands in order")

    def _but_for_passed(self, how: str) -> str:
        """`CannotTell` of lines that were passed over when the protocol was run again."""
        counts = Counter(self.transcript.passed.values())
        if counts:
            where = ", ".join(f"{count} of {session}" for session, count in counts.items())
            raise CannotTell(
                f"not of {sum(counts.values())} lines ({where}), nor whether more belong there: "
                f"what was done there cannot be done again; every other line {how}"
            )
        return ""

    # ── What is published ──────────────────────────────────────────────────────────────────────

    def _no_key_twice(self) -> str:
        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            seen = dict(pairs)
            if len(seen) < len(pairs):
                (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
                raise DoesNotHold(f"{name}: {_quoted(twice)} stands twice in one place")
            return seen

        for name in ("result.json", "study.json", "cost.json"):
            if (self.folder.path / name).exists():
                try:
                    json.loads(self._file(name), object_pairs_hook=once)
                except (ValueError, RecursionError) as error:
                    raise DoesNotHold(f"{name} is damaged: {error}") from None
        return ""

    def _whole(self) -> str:
        head = self.folder.file.transcript
        messages, digest = len(rows_of(self.text)), sha256_of(self.text).hex()
        _same(("transcript", (head.messages, head.digest), (messages, digest)))
        return ""

    def _counted(self) -> str:
        told, found = self.folder.file.publication.participation, self.publication.participation
        expected = with_reasons(found, told, self.members)
        if self.folder.version > 1:
            _same(("participation", told, _as_read(expected, Participation)))
        return "" if told is None or told.counted is None else f"{told.counted} counted"

    def _published(self) -> str:
        """Every part, but for the last digits."""
        there = self.folder.file.publication
        if any(note.incomplete for note in there.notes) and not any(
            note.incomplete for note in self.publication.notes
        ):
            raise DoesNotHold(
                "result.json is incomplete: not everything could be computed where it was written; "
                f"`mpc-rr publish {self.folder.path} --out NEW` computes it again"
            )
        if self.folder.version == 1:
            return self._published_in_format1()
        if self.rules < RULES:
            return self._published_in_other_words()
        expected = _as_read(without_texts(self.publication), Publication)
        if not any(note.text.startswith(OF_WEIGHTS) for note in there.notes):  # it came later
            others = (note for note in expected.notes if not note.text.startswith(OF_WEIGHTS))
            expected = msgspec.structs.replace(expected, notes=tuple(others))
        parts = [p for p in Publication.__struct_fields__ if p not in ("participation", "sheets")]
        facts = [(part, getattr(there, part), getattr(expected, part)) for part in parts]
        _same(*facts)
        listed, due = ([(s.name, s.what) for s in some.sheets] for some in (there, expected))
        _same(("sheets", listed, due))
        for sheet, mine in zip(there.sheets, self.publication.sheets, strict=True):
            if sheet.sha256 != mine.sha256 and not self._holds(mine.name, mine.text):
                raise DoesNotHold(f"{sheet.name} is not what follows from the transcript")
        exactly = all(said == due for _, said, due in facts) and there.sheets == expected.sheets
        return "" if exactly else LAST_DIGITS

    def _published_in_other_words(self) -> str:
        """What numbers say, whatever the sentences around them are now."""
        there, now = self.folder.file.publication, self.publication
        if there.listing(FOLLOWED) is None:  # it came with rules 5, but not at once
            listings = (listed for listed in now.listings if listed.name != FOLLOWED)
            now = msgspec.structs.replace(now, listings=tuple(listings))
        said = ["quantities, tables and listings"]
        if self.rules < earlier.AS_IN_TABLES:
            limits, schema = not self._other_limits, self.study.schema
            there, now, less = earlier.before_tables(there, now, schema, limits=limits)
            said += less
        if self._other_limits:
            self._published_without_limits(there, now)
        else:
            _same(*((part, *pair) for part, pair in _numbers(there, now).items()))
        for name, text in self._sheets_of_then().items():
            if not self._holds(name, text):
                raise DoesNotHold(f"{name} is not what follows from the transcript")
        return ", ".join([*said, *([UNCOMPARED] if self._other_limits else [])])

    @property
    def _other_limits(self) -> bool:
        """Whether limits and errors were others by the rules of then; in format 1, which had no
        limits, only the errors of blocks were."""
        if self.folder.version == 1:
            return format1.BLOCKS in self.folder.original
        return self.rules < earlier.LIMITS

    def _published_without_limits(self, there: Publication, now: Publication) -> None:
        """Everything but how uncertain it is, which was worked out otherwise."""
        numbers = _numbers(there, now)
        tables = [earlier.layers(*both) for both in _both(there.tables, now.tables, "tables")]
        numbers["tables"] = ([then for then, _ in tables], [due for _, due in tables])
        listed = []
        known = [part for part in now.listings if part.name not in earlier.NOT_YET]
        for then, due in _both(there.listings, known, "listings"):
            if due.name == DEPENDENCE:
                due_rows = earlier.listing(now, self.study.schema)
                listed.append((earlier.squared(then.rows), earlier.squared(due_rows)))
            else:
                listed.append((earlier.rows(then), earlier.rows(due)))
        numbers["listings"] = ([then for then, _ in listed], [due for _, due in listed])
        _same(*((part, *pair) for part, pair in numbers.items()))

    def _sheets_of_then(self) -> dict[str, str]:
        """The sheets that must be there, and what must stand in them."""
        due = {sheet.name: sheet.text for sheet in self.publication.sheets}
        if self.rules < earlier.LIMITS and earlier.DEPENDENCE_SHEET in due:
            text = earlier.sheet(self.publication, self.study.schema)
            due |= {} if text is None else {earlier.DEPENDENCE_SHEET: text}
            if text is None:
                del due[earlier.DEPENDENCE_SHEET]
        elif self.rules < earlier.AS_IN_TABLES and earlier.DEPENDENCE_SHEET in due:
            text = earlier.sheet_of_then(self.folder.file.publication)
            due[earlier.DEPENDENCE_SHEET] = text
        if self.folder.version > 1:
            listed = [sheet.name for sheet in self.folder.file.publication.sheets]
            _same(("sheets", sorted(listed), sorted(due)))
        return due

    def _published_in_format1(self) -> str:
        replayed = Replayed(self.study, self.members, self.ending, self.publication)
        found = replayed.with_reasons(self.folder.file.publication.participation)
        if self.study.protocol.name not in format1.KINDS:
            raise DoesNotHold(f"result.json: format 1 has no protocol {self.study.protocol.name!r}")
        expected = format1.document(self.study, found)
        there = self.folder.original
        strangers = set(there) - format1.HEAD - set(expected)
        if strangers:
            raise DoesNotHold(f"result.json: {min(strangers)!r} has no place in format 1")
        said = {key: there.get(key) for key in expected}
        _same(*((key, *pair) for key, pair in format1.compared(said, _in_json(expected)).items()))
        return UNCOMPARED if self._other_limits else ""

    def _sheets(self) -> str:
        if self.folder.version == 1:
            due = self._sheets_of_then()
            wrong = [name for name, text in due.items() if not self._holds(name, text)]
        else:
            sheets = self.folder.file.publication.sheets
            due = {sheet.name: sheet.sha256 for sheet in sheets}
            wrong = [n for n, digest in due.items() if sha256_of(self._file(n)).hex() != digest]
        if wrong:
            raise DoesNotHold(f"{wrong[0]} is not what follows from the transcript")
        return f"{len(due)} files"

    def _holds(self, name: str, text: str) -> bool:
        """Whether the folder has this sheet, as it is written today or was before."""
        held = self._file(name)
        if texts_alike(held, text):
            return True
        if self.rules < NO_SPLITS and texts_alike(held, as_unsplit(text)):
            return True
        return self.rules < NO_FORMULAS and texts_alike(held, as_before(text))

    def _file(self, name: str) -> str:
        try:
            return self.folder.text(name)
        except InputError as error:
            raise DoesNotHold(f"{name} cannot be read: {error}") from None

    # ── What the coordinator signed, and what is its word ──────────────────────────────────────

    def _closed(self) -> str:
        if not (self.folder.path / CLOSING).exists():
            raise CannotTell(
                f"there is no {CLOSING}: the folder was written before there were any, or by a "
                "party that was given none, or someone took it away"
            )
        try:
            text, run = self.folder.text(CLOSING), self.transcript.run
            opened, self.closing = read_closing(text, self.study.name, run)
        except (InputError, ValueError) as error:
            raise DoesNotHold(f"{CLOSING}: {error}") from None
        if not opened.signed_by(self.transcript.keys[COORDINATOR]):
            raise DoesNotHold(f"{CLOSING}: its signature is not the coordinator's")
        raws = [line.opened.raw for line in self.transcript.lines]
        if (self.closing.messages, self.closing.transcript) != (len(raws), in_order(raws)):
            raise DoesNotHold(
                f"{CLOSING}: the coordinator signed other messages than those of transcript.jsonl, "
                "or another order"
            )
        _, verdict = self.transcript.by_coordinator(VERDICT_SESSION, Verdict)
        if self.closing.result != verdict.result_digest:
            raise DoesNotHold(f"{CLOSING}: the coordinator signed another result than its verdict")
        return ""

    def _stated(self) -> str:
        file, closing = self.folder.file, self.closing
        _same(
            ("transport", file.transport, closing.transport),
            ("seed", None if file.seed is None else str(file.seed), closing.seed),
            ("rejected_messages", file.rejected_messages, closing.rejected_messages),
            source="what the coordinator signed",
        )
        if file.rules < closing.rules:
            raise DoesNotHold(
                f"result.json: 'rules' are older than those that the coordinator signed, "
                f"{closing.rules}"
            )
        if not closing.files:
            return "parties are told nothing of costs"
        if set(closing.files) != COSTS:
            raise DoesNotHold(f"{CLOSING}: it is not about {listing(COSTS)}")
        for name, digest in closing.files.items():
            if sha256_of(self._file(name)) != digest:
                raise DoesNotHold(f"{name} is not what the coordinator signed")
        return ""

    @property
    def _absent(self) -> tuple[Absence, ...]:
        people = self.folder.file.publication.participation
        return () if people is None else people.absent

    def _reasons(self) -> str:
        signed = self.findings.confirmed(CLOSED) and self._as_the_ending_says
        if signed and self._absent != self.closing.absent:
            raise DoesNotHold("result.json: 'absent' is not what the coordinator signed")
        word = "the coordinator's word, which it signed" if signed else "the coordinator's word"
        excluded = sum(absence.how == "excluded" for absence in self._absent)
        seen = ", and all in the roster have seen it" if self.study.needs_roster else ""
        left_out = f"; of {excluded} excluded the reason stands in the roster{seen}"
        raise CannotTell(f"it is {word}{left_out if excluded else ''}")

    @property
    def _as_the_ending_says(self) -> bool:
        """Whether who took part is told by the ending alone; a protocol may publish it otherwise.

        Then only what was published could be compared, and the coordinator signs before that.
        """
        if not self.findings.confirmed(REPLAY):
            return False
        setting = self.study.setting_with(self.members)
        said = who_took_part(self.ending, setting, self._excluded)
        return said == self.publication.participation

    # ── What does not belong to it ─────────────────────────────────────────────────────────────

    def look_at_other_files(self) -> None:
        """Name the files for which nobody vouches."""
        sheets = {sheet.name for sheet in self.folder.file.publication.sheets}
        if self.findings.confirmed(REPLAY):
            sheets |= {sheet.name for sheet in self.publication.sheets}
        known = FILES | sheets
        if self.findings.confirmed(CLOSED) and not self.closing.files:
            known -= COSTS
        receipts: dict[str, Sequence[Line]] = {}
        for path in sorted(self.folder.path.rglob("*")):
            name = path.relative_to(self.folder.path).as_posix()
            if name in known or (path.is_dir() and not path.is_symlink()):
                continue
            why = DRAWN if name == REPORT else UNKNOWN
            if RECEIPTS.fullmatch(name) and path.is_file() and not path.is_symlink():
                try:
                    receipts[name] = self._receipt(path)
                    continue
                except InputError as error:
                    why = one_line(" ".join(str(error).split()), 300)
            self.findings.cannot_tell(f"{_quoted(name)} belongs to the result", why, name)
        if receipts:
            self.findings.look(RECEIPTS_HERE, lambda: self._all_received(receipts), [ROSTER])

    # ── A party's receipt ──────────────────────────────────────────────────────────────────────

    def look_at_receipt(self, receipt: Path) -> None:
        """Whether everything a party sent and heard is in the transcript, byte for byte.

        `InputError` if it is no receipt, or not signed by those who speak in it.
        """
        lines = self._receipt(receipt)
        self.findings.look(RECEIPT, lambda: self._received(receipt.name, lines), [ROSTER])

    def _receipt(self, receipt: Path) -> Sequence[Line]:
        try:
            rows = rows_of(receipt.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{receipt} is not a receipt: {why}") from None
        if not rows:
            raise InputError(f"{receipt} is not a receipt: it is empty")
        try:
            lines = read_lines(receipt.name, rows, self.study)
        except DoesNotHold as error:
            raise InputError(f"{receipt} is not a receipt of this study: {error}") from None
        if self.findings.confirmed(RUN) and {line.opened.envelope.header.run for line in lines} != {
            self.transcript.run
        }:
            raise InputError(f"{receipt} is a receipt of another run than this folder's")
        if self.findings.confirmed(SIGNED):
            self._check_signed(receipt, lines)
        return lines

    def look_at_withdrawals(self, withdrawals: Path) -> None:
        """Whether somebody took part who stands on the registrar's list."""
        listed = read_withdrawals(withdrawals, self.study)
        self.findings.look(STANDING, lambda: self._standing(listed), [ADMITTED])

    def _standing(self, listed: Withdrawals) -> str:
        known = (self.study, self.transcript.run, withdrawn(listed))
        found = passes_fault(*known, self.roster.members, self.transcript.passes)
        if found is not None:
            raise DoesNotHold(f"{found}; whether before the run or since, the list does not say")
        return f"by the registrar's list {listed.number}"

    def _check_signed(self, receipt: Path, lines: Sequence[Line]) -> None:
        """What somebody else made proves nothing, of a party or of the coordinator."""
        keys, none = self.transcript.keys, f"{receipt} is not a receipt of this study: line"
        for line in lines:
            sender = line.place[2]
            if sender in keys and not line.opened.signed_by(keys[sender]):
                raise InputError(f"{none} {line.number}: its signature is not {sender}'s")
        for line in self._withheld(lines):
            if not self._is_announced(line):
                raise InputError(
                    f"{none} {line.number}: no transcript holds what the coordinator sends as "
                    f"{line.place[1]!r}"
                )
        for line in lines:
            sender = line.place[2]
            if sender not in keys and not self._withheld(lines):
                raise InputError(
                    f"{none} {line.number}: by this transcript {sender!r} has not joined"
                )

    def _missing(self, lines: Sequence[Line]) -> list[Line]:
        """The messages that are not in the transcript."""
        return [line for line in lines if line.opened.raw not in self._raws]

    @cached_property
    def _raws(self) -> set[bytes]:
        """All messages of the transcript."""
        return {line.opened.raw for line in self.transcript.lines}

    def _withheld(self, lines: Sequence[Line]) -> list[Line]:
        """What the coordinator has signed for a party, and not put into the transcript."""
        return [line for line in self._missing(lines) if line.place[2] == COORDINATOR]

    def _is_announced(self, line: Line) -> bool:
        """Whether an honest coordinator enters this message of its own in the transcript.

        The lobby's news and the closing statement it does not; nor what it relays, in steps in
        which the parties speak: their messages stand there one by one.
        """
        place, step, _ = line.place
        if line.opened.envelope.header.target != EVERYONE or place == LOBBY_SESSION:
            return False
        if place == VERDICT_SESSION:
            return step == Verdict.step
        return all(
            ln.place[1] != step or ln.place[2] == COORDINATOR for ln in self.transcript.lines
        )

    def _received(self, name: str, lines: Sequence[Line]) -> str:
        for line in self._withheld(lines):
            raise DoesNotHold(
                f"{name}, line {line.number}: the coordinator has signed this {line.place[1]!r} "
                "message, and it is not in the transcript: this party was shown another one, or it "
                "was left out"
            )
        for line in self._missing(lines):
            _, step, sender = line.place
            raise CannotTell(
                f"{name}, line {line.number}: the {step!r} message by {sender} is not in the "
                f"transcript: it came late, was lost, or was left out, and {sender}'s signature "
                f"does not tell which; {self._what_became_of(sender)}"
            )
        for line in lines:
            place, step, sender = line.place
            if place.split("/")[0] not in (self.session, VERDICT_SESSION):
                party = next((ln.place[2] for ln in lines if ln.place[2] != COORDINATOR), sender)
                raise CannotTell(
                    f"{name}, line {line.number}: the {step!r} message by {sender} is of {place}, "
                    f"an attempt that was given up; {self._what_became_of(party)}"
                )
        return f"{len(lines)} messages"

    def _all_received(self, receipts: Mapping[str, Sequence[Line]]) -> str:
        """Of all receipts that lie in the folder, as of a host's parties."""
        open_questions = []
        for name, lines in receipts.items():
            try:
                self._received(name, lines)
            except CannotTell as error:
                open_questions.append(str(error))
        if open_questions:
            among = f"{len(open_questions)} of {len(receipts)} receipts have others"
            raise CannotTell(f"{among}; {open_questions[0]}")
        messages = sum(map(len, receipts.values()))
        one = "one receipt" if len(receipts) == 1 else f"{len(receipts):,} receipts"
        return f"{one}, {messages:,} messages"

    def _what_became_of(self, party: str) -> str:
        """Whether a party is counted, as far as it follows from the transcript."""
        people = self.publication.participation if self.findings.confirmed(REPLAY) else None
        if people is None:
            return f"whether {party} is counted does not follow from the transcript"
        for absence in people.absent:
            if absence.party == party:
                return f"{party} is not counted ({absence.how})"
        if people.counted_parties is None:
            return f"whether {party} is counted is the coordinator's word"
        counted = party in people.counted_parties
        return f"{party}'s answer is counted" if counted else f"{party} is not counted"


def _quoted(text: str) -> str:
    """Somebody else's words, where they cannot be taken for ours."""
    return quoted(one_line(" ".join(text.split()), 80))


def _unless_contradicted(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    if any(claim.verdict == "contradicted" for claim in claims):
        raise Contradicted(claims)
    return claims


def _numbers(*some: Publication) -> dict[str, tuple[Any, ...]]:
    """What publications say besides sentences: names, axes and values, of each."""
    return {
        "quantities": tuple(
            [(q.name, q.value, q.kind, q.standard_error, q.low, q.high) for q in p.quantities]
            for p in some
        ),
        "tables": tuple(
            [[getattr(table, field) for field in Table.__struct_fields__] for table in p.tables]
            for p in some
        ),
        "listings": tuple(
            [(li.name, [(c.name, c.kind) for c in li.columns], li.rows) for li in p.listings]
            for p in some
        ),
        "randomization": tuple(p.randomization for p in some),
    }


def _both(there: Sequence[Named], now: Sequence[Named], part: str) -> list[tuple[Named, Named]]:
    """Parts of the same names, one of each."""
    _same((part, [one.name for one in there], [other.name for other in now]))
    return list(zip(there, now, strict=True))


def _same(*facts: tuple[str, Any, Any], source: str = "what follows from the transcript") -> None:
    plain = ((key, *map(msgspec.to_builtins, pair)) for key, *pair in facts)
    wrong = [repr(key) for key, said, expected in plain if not alike(said, expected)]
    if wrong:
        be = "are" if len(wrong) > 1 else "is"
        raise DoesNotHold(f"result.json: {', '.join(wrong)} {be} not {source}")


def _as_read(part: P, kind: type[P]) -> P:
    """The same as it is read from a file."""
    return msgspec.json.decode(msgspec.json.encode(part), type=kind)


def _in_json(document: dict[str, Any]) -> dict[str, Any]:
    """The same, where it is no struct."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found
