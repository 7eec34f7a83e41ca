"""The whole result folder of a party or a host, made from the transcript that it was handed out.

The coordinator is not believed: what it hands out must be what it had announced to these parties,
and everything must follow from it as ``mpc-rr verify`` has it follow. Then the folder is like the
coordinator's own, but for the costs, and can be verified, asked and computed on without it.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mpc_rr.agents.handing_out import Everything, Said, most_closing_bytes, most_messages
from mpc_rr.errors import MpcRrError, ResultsError, listing, one_line
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, Header
from mpc_rr.network.lifecycle import Roster
from mpc_rr.network.sealed import Rejected, read
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.network.session.replay import DoesNotHold
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import Note, Publication
from mpc_rr.results.closing import CLOSING, Closing, closing_text, read_closing, sha256_of
from mpc_rr.results.folder import (
    NOT_COMPUTED,
    NotWritten,
    admission_of,
    protocol_head,
    published_files,
    read_folder,
    study_head,
    write_folder,
)
from mpc_rr.results.format import PartyResult, ResultFile, TranscriptHead, to_json
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.results.verification import replay, verify
from mpc_rr.study.definition import Study, study_json

LONGEST_REASON = 1000
"""In characters: why a party is absent is said in a line."""
NOT_HERE = (
    "All that was said was asked for (--everything), and is not here: {}. What stands here is what "
    "this side knows by itself."
)
NOT_IN_IT = (
    "Something that {} sent is not in the transcript that the coordinator handed out: it came too "
    "late, was lost, or was left out. `mpc-rr verify FOLDER --receipt FILE` tells whether the "
    "answer is counted."
)


@dataclass(frozen=True)
class Whole:
    """A result folder in the hands of a party or a host."""

    file: ResultFile
    files: Mapping[str, str]
    """All of it, but for the receipts."""
    not_in_it: tuple[str, ...]
    """Parties here of which something is not in the transcript."""

    @property
    def remark(self) -> str | None:
        """What these parties should know of it."""
        return NOT_IN_IT.format(listing(self.not_in_it)) if self.not_in_it else None

    def write(self, beside: Mapping[str, str], folder: Path) -> None:
        """Write it, with the parties' own files; `ResultsError` says why that cannot be done."""
        try:
            write_folder({**self.files, **beside}, folder)
        except NotWritten as fault:
            raise ResultsError(f"it could not be written ({fault.reason})") from None


def whole_result(study: Study, everything: Everything, ends: Mapping[str, Ending]) -> Whole:
    """The folder that follows from what was handed out; `ResultsError` says why there is none.

    Whatever goes wrong with it, the parties' own results stay: also after Ctrl-C.
    ``ends``: of the parties here, with what each has said and heard.
    """
    said = everything.said
    if said is None:
        raise ResultsError(everything.trouble)
    try:
        _check_size(study, said)
        not_in_it = _compared(study, said, everything.run, ends)
        files, file = _followed(study, said, everything)
    except (DoesNotHold, ValueError) as error:
        raise ResultsError(
            f"what the coordinator handed out is not what it had announced: {error}"
        ) from None
    except NotWritten as fault:
        raise ResultsError(
            f"it could not be checked: temporary files could not be written ({fault.reason})"
        ) from None
    except ResultsError:
        raise
    except KeyboardInterrupt:
        raise ResultsError("the checking of what was handed out was interrupted") from None
    except Exception as error:
        what = one_line(f"{type(error).__name__}: {error}".rstrip(": "))
        raise ResultsError(f"what was handed out could not be checked ({what})") from error
    return Whole(file, files, not_in_it)


def _check_size(study: Study, said: Said) -> None:
    """Of what was signed by one that lies, no more is looked at than an honest one has to say."""
    if len(said.closing) > most_closing_bytes(study):
        raise ValueError(f"its closing statement has {len(said.closing):,} bytes")
    most, count = most_messages(study), len(said.transcript)
    if count > most:
        raise ValueError(f"it has {count:,} messages; of this study there are at most {most:,}")
    largest = max(map(len, said.transcript), default=0)
    if largest > study.largest_message_bytes:
        raise ValueError(f"a message in it has {largest:,} bytes, more than any of this study")


def _compared(study: Study, said: Said, run: bytes, ends: Mapping[str, Ending]) -> tuple[str, ...]:
    """Whose own words are not in it. What these parties heard of the coordinator must be."""
    spoken = set[tuple[str, str, str]]()
    for raw in said.transcript:
        header = _header(raw, study, run)
        here = (header.session, header.step, header.sender)
        if here in spoken:
            raise ValueError(f"{header.sender} speaks twice in step {header.step!r}")
        spoken.add(here)
    handed_out = frozenset(said.transcript)
    missing = [
        (name, _header(raw, study, run))
        for name, end in ends.items()
        for raw in end.receipt
        if raw not in handed_out
    ]
    for name, header in missing:
        if header.sender == COORDINATOR:
            raise ValueError(f"the {header.step!r} message that {name} heard is not in it")
    return tuple(dict.fromkeys(name for name, _ in missing))


def _header(raw: bytes, study: Study, run: bytes) -> Header:
    try:
        opened = read(raw, study=study.name, runs=(run,), targets=(EVERYONE, COORDINATOR))
    except Rejected as rejected:
        raise ValueError(f"there is something else than messages in it ({rejected})") from None
    return opened.envelope.header


def _followed(
    study: Study, said: Said, everything: Everything
) -> tuple[dict[str, str], ResultFile]:
    """All that follows from the transcript, if it holds."""
    files = {"study.json": study_json(study), "transcript.jsonl": transcript_lines(said.transcript)}
    closing = None
    if said.closing:
        files[CLOSING] = closing_text(said.closing, study.name, everything.run)
        _, closing = read_closing(files[CLOSING], study.name, everything.run)
        if closing.rules > RULES:
            raise ResultsError(
                f"the coordinator's program is newer: its results follow rules {closing.rules}, "
                f"and this program knows up to {RULES}"
            )
        _check_absent(study, closing)
    file = _file(study, said, everything, closing, files["transcript.jsonl"])
    with tempfile.TemporaryDirectory() as scratch:
        draft, whole = Path(scratch) / "draft", Path(scratch) / "whole"
        write_folder(files | {"result.json": to_json(file)}, draft)
        replayed = replay(read_folder(draft))
        publication, people = replayed.publication, replayed.publication.participation
        if closing is not None and people is not None:
            told = msgspec.structs.replace(people, absent=closing.absent)
            publication = replayed.with_reasons(told)
        file = msgspec.structs.replace(file, publication=publication)
        files |= published_files(file, publication)
        write_folder(files, whole)
        verify(whole)
    return files, file


def _check_absent(study: Study, closing: Closing) -> None:
    longest = max((len(absence.reason) for absence in closing.absent), default=0)
    if len(closing.absent) > study.parties.count or longest > LONGEST_REASON:
        raise ValueError(
            f"its closing statement names {len(closing.absent):,} absent parties, with reasons of "
            f"up to {longest:,} characters"
        )


def _file(
    study: Study, said: Said, everything: Everything, closing: Closing | None, transcript: str
) -> ResultFile:
    """``result.json``, with nothing computed yet."""
    seed = None if closing is None or closing.seed is None else int(closing.seed)
    rejected = {} if closing is None else {str(w): n for w, n in closing.rejected_messages.items()}
    run = everything.run
    return ResultFile(
        rules=RULES,
        status="done",
        study=study_head(study),
        protocol=protocol_head(study),
        admission=admission_of(study),
        run=run.hex(),
        coordinator=everything.coordinator,
        transport="" if closing is None else closing.transport,
        seed=seed,
        attempts=sum(_header(raw, study, run).step == Roster.step for raw in said.transcript),
        transcript=TranscriptHead(
            messages=len(said.transcript), digest=sha256_of(transcript).hex()
        ),
        rejected_messages=rejected,
        publication=Publication(notes=(NOT_COMPUTED,)),
    )


def without_it(result: PartyResult, trouble: MpcRrError) -> PartyResult:
    """A party's own result, which says why it is not the whole."""
    note = Note(text=NOT_HERE.format(trouble), severity="warning")
    publication = result.publication
    publication = msgspec.structs.replace(publication, notes=(*publication.notes, note))
    return msgspec.structs.replace(result, publication=publication)
