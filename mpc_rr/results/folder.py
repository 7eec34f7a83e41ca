"""The result folder: everything that may be known of a study, and nothing secret.

``docs/results.md`` documents it. It is written under a temporary name beside its place and then
renamed, so a folder under its final name is always complete. What was received is on disk before
anything is computed from it: if the computing is cut short, ``NAME.unfinished`` stays, and
``mpc-rr publish`` finishes it.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from mpc_rr.agents.locks import flush_folder
from mpc_rr.errors import InputError, MpcRrError, ResultsError, ScenarioError
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.protocols.registry import UnknownProtocol, origin, protocol_from
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import Note, Publication, publication_fault
from mpc_rr.publication.whole import published
from mpc_rr.results import format1
from mpc_rr.results.closing import CLOSING, closing_text
from mpc_rr.results.format import (
    FORMAT,
    READ,
    PartyResult,
    ProtocolHead,
    ResultFile,
    StudyHead,
    TranscriptHead,
    pretty,
    to_json,
)
from mpc_rr.results.run import StudyResult
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.study.definition import Definition, Study, definition_from_json, study_json, study_of

LOGGER = logging.getLogger("mpc_rr.results")
UNFINISHED = ".unfinished"
END = "end.json"
"""How it ended for parties that have no result."""
LOST = "the transcript could not be kept anywhere, and is lost"
NOT_COMPUTED = Note(
    text="the computing was cut short: what the study found is not here; `mpc-rr publish` computes "
    "it from the transcript.",
    severity="warning",
    incomplete=True,
)

# ── Writing ────────────────────────────────────────────────────────────────────────────────────


def check_folder(folder: Path) -> None:
    """Make sure, before a study starts, that its results can be put there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already; name another folder")
    if folder.is_symlink():  # it would not be replaced when all is computed
        raise InputError(f"{folder} is a link; name a folder")
    place = folder.absolute().parent
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=place):
            pass
    except OSError as error:
        raise InputError(f"results cannot be written to {folder}: {error.strerror}") from None


def study_head(study: Study) -> StudyHead:
    """Which study it was."""
    return StudyHead(name=study.name, title=study.title, digest=study.digest.hex())


def protocol_head(study: Study) -> ProtocolHead:
    """Which protocol, and where it comes from."""
    return ProtocolHead(name=study.protocol.name, origin=origin(study.protocol.name))


def admission_of(study: Study) -> Literal["open", "by a registrar"]:
    """Who may take part."""
    return "open" if study.registrar is None else "by a registrar"


def result_file(result: StudyResult, transcript: str, publication: Publication) -> ResultFile:
    """``result.json`` of a study that was run here."""
    study, outcome = result.study, result.outcome
    return ResultFile(
        rules=RULES,
        status="done" if outcome.result is not None else "aborted",
        study=study_head(study),
        protocol=protocol_head(study),
        admission=admission_of(study),
        run=outcome.run.hex(),
        coordinator=outcome.identity.fingerprint,
        transport=result.transport,
        seed=result.seed,
        attempts=outcome.attempts,
        transcript=TranscriptHead(
            messages=len(outcome.transcript),
            digest=hashlib.sha256(transcript.encode()).hexdigest(),
        ),
        rejected_messages=dict(sorted(outcome.rejected.items())),
        cause=outcome.cause,
        culprits=outcome.culprits,
        publication=publication,
    )


class CutShort(MpcRrError):
    """Somebody stopped the computing; what was received is kept."""

    exit_code = 130


class Safe:
    """A finished study in a safe place, until its folder is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.place: _Making | None = None

    def keep(self, result: StudyResult) -> None:
        """Put there what was received: beside its folder, or where temporary files are.

        If both fail, it is still to be written in the end.
        """
        received = _received(result)[0]
        for make in (_Making.beside, _Making.elsewhere):
            place = None
            try:
                place = make(self._folder)
                place.write(received, durably=True)
            except OSError as error:
                where = self._folder.absolute().parent if place is None else place.path.parent
                LOGGER.warning("a finished study cannot be kept in %s: %s", where, error.strerror)
                if place is not None:
                    shutil.rmtree(place.path, ignore_errors=True)
            else:
                self.place = place
                return

    @property
    def what_is_there(self) -> str:
        """What to tell if the folder cannot be written."""
        return LOST if self.place is None else self.place.what_is_there

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Say where it is, to whoever stops this."""
        try:
            yield
        except KeyboardInterrupt:
            if self.place is None:
                raise
            raise CutShort(f"interrupted; {self.what_is_there}") from None


class NotWritten(ResultsError):
    """A folder could not be written: where, and why not."""

    def __init__(self, folder: Path, reason: str | None, rest: str = "") -> None:
        super().__init__(f"the results could not be written to {folder}: {reason}{rest}")
        self.reason = reason


class Kept:
    """Files beside the folder that they are for, until there is more to write, or for good."""

    def __init__(self, place: "_Making | None" = None) -> None:
        self._place = place

    def write(self, files: Mapping[str, str | bytes], folder: Path) -> None:
        """Write them as the folder: where they are kept already they get its name, and need no more
        room. What of them is not the same by now and has no room stays as it was kept."""
        place = self._place
        if place is None:
            write_folder(files, folder)
            return
        for name, content in files.items():
            with contextlib.suppress(OSError):
                place.replace(name, content)
        try:
            place.appear()
        except OSError as error:
            there = f"; what is known here is in {place.path}"
            raise NotWritten(folder, error.strerror, there) from None

    def remove(self) -> None:
        """They are no longer needed."""
        if self._place is not None:
            shutil.rmtree(self._place.path, ignore_errors=True)


def _received(result: StudyResult) -> tuple[dict[str, str], ResultFile]:
    """What was received, as files, of which the last says that nothing is computed of it yet."""
    outcome, transcript = result.outcome, transcript_lines(result.outcome.transcript)
    cut_short = Publication(participation=result.participation, notes=(NOT_COMPUTED,))
    file = result_file(result, transcript, cut_short)
    received = {
        "study.json": study_json(result.study),
        "transcript.jsonl": transcript,
        **result.cost_files,
    }
    if result.closing is not None:
        received[CLOSING] = closing_text(result.closing, result.study.name, outcome.run)
    return received | {"result.json": to_json(file)}, file


def write_results(result: StudyResult, folder: Path, safe: Safe | None = None) -> ResultFile:
    """Write the result folder, what was received first.

    `ResultsError` if that fails; then nothing is left behind, unless what was received could be
    written: that stays, and is named.
    """
    received, file = _received(result)
    with in_the_making(folder, safe) as place:
        place.write(received)
        place.keep = result.outcome.result is not None
        if safe is not None and safe.place is not None:
            place.take_the_place_of(safe.place)
            safe.place = place
        try:
            publication = result.publication
        except KeyboardInterrupt:
            raise CutShort(f"interrupted; {place.what_is_there}") from None
        file = msgspec.structs.replace(file, publication=publication)
        place.write(published_files(file, publication))
    if safe is not None:
        safe.place = None
    return file


def published_files(file: ResultFile | PartyResult, publication: Publication) -> dict[str, str]:
    """``result.json`` and the sheets."""
    return {"result.json": to_json(file)} | {s.name: s.text for s in publication.sheets}


def party_result(
    study: Study, ending: Ending, members: tuple[str, ...] | None = None
) -> PartyResult:
    """``result.json`` of a party."""
    setting = study.setting_with(members)
    return PartyResult(
        study=study_head(study),
        protocol=protocol_head(study),
        publication=published(ending, setting, study.protocol),
    )


def write_party_result(
    result: PartyResult | ResultFile, ending: Ending, folder: Path, kept: Kept | None = None
) -> None:
    """Write what a party has in the end; `ResultsError` if that fails."""
    files = published_files(result, result.publication)
    (kept or Kept()).write(files | receipt_file(ending), folder)


def receipt_file(end: Ending | MpcRrError) -> dict[str, str]:
    """A party's receipt, if there is any."""
    return {"receipt.jsonl": transcript_lines(end.receipt)} if end.receipt else {}


def receipt_files(ends: Mapping[str, Ending | MpcRrError]) -> dict[str, str]:
    """The receipts of a host's parties."""
    return {
        f"receipts/{name}.jsonl": transcript_lines(end.receipt)
        for name, end in ends.items()
        if end.receipt
    }


def write_party_end(study: Study, name: str, end: MpcRrError, folder: Path) -> None:
    """Write why a party has no result, and its receipt."""
    write_folder(receipt_file(end) | without_result(study, {name: end}), folder)


def write_host_results(
    study: Study,
    result: PartyResult | ResultFile | None,
    ends: Mapping[str, Ending | MpcRrError],
    folder: Path,
    kept: Kept | None = None,
) -> None:
    """Write what the parties of a host have in the end: the result, and a receipt of each."""
    files = {} if result is None else published_files(result, result.publication)
    (kept or Kept()).write(files | receipt_files(ends) | without_result(study, ends), folder)


def without_result(study: Study, ends: Mapping[str, Ending | MpcRrError]) -> dict[str, str]:
    """The file that says why some have no result, if any have none."""
    why = {name: str(end) for name, end in ends.items() if isinstance(end, MpcRrError)}
    told = {"format": "mpc-rr end", "version": 1, "study": study.name, "without_result": why}
    return {END: pretty(told)} if why else {}


def write_folder(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write files into a folder that appears whole or not at all."""
    with in_the_making(folder) as place:
        place.write(files)


@contextlib.contextmanager
def kept_meanwhile(files: Mapping[str, str | bytes], folder: Path) -> Iterator[Kept]:
    """Keep files beside a folder until it is written: whatever happens until then, they stay."""
    place = None
    try:
        place = _Making.beside(folder)
        place.write(files, durably=True)
    except OSError as error:
        LOGGER.warning("nothing can be kept beside %s meanwhile: %s", folder, error.strerror)
        if place is not None:
            shutil.rmtree(place.path, ignore_errors=True)
            place = None
    kept = Kept(place)
    yield kept
    kept.remove()


@dataclass
class _Making:
    """A folder in the making."""

    path: Path
    wanted: Path
    keep: bool = False
    """Whether it is of use as it is, should something go wrong."""

    @classmethod
    def beside(cls, folder: Path) -> Self:
        parent = folder.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        path = parent / f"{folder.name}{UNFINISHED}"
        try:
            path.mkdir()
        except FileExistsError:  # whatever it is, a link perhaps: it is not ours
            path = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=UNFINISHED, dir=parent))
        path.chmod(0o755)
        return cls(path, folder)

    @classmethod
    def elsewhere(cls, folder: Path) -> Self:
        """Where temporary files are: for when there is no room beside the folder."""
        return cls(Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=UNFINISHED)), folder)

    def write(self, files: Mapping[str, str | bytes], *, durably: bool = False) -> None:
        for name, content in files.items():
            path = self.path / name
            if not path.resolve().is_relative_to(self.path.resolve()):
                raise ResultsError(f"a file called {name!r} would be outside {self.wanted}")
            if path.parent != self.path:
                path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            if durably:
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
        if durably:
            for place in (self.path, self.path.parent):
                flush_folder(place)

    def replace(self, name: str, content: str | bytes) -> None:
        """Write a file again if it is another by now; it is always there, old or new."""
        path, raw = self.path / name, content.encode() if isinstance(content, str) else content
        if path.is_file() and path.read_bytes() == raw:
            return
        new = path.with_name(f"{path.name}{UNFINISHED}")
        try:
            new.write_bytes(raw)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)

    def appear(self) -> None:
        """Get the name that is wanted."""
        with contextlib.suppress(OSError):
            self.wanted.rmdir()  # it may be there if it is empty; Windows would not replace it
        self.path.rename(self.wanted)

    def take_the_place_of(self, other: "_Making") -> None:
        """Be there instead of what was written earlier; one of the two is always there."""
        shutil.rmtree(other.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path = self.path.rename(other.path)

    @property
    def what_is_there(self) -> str:
        return (
            f"what was received is in {self.path}; `mpc-rr publish {self.path} --out "
            f"{self.wanted}` computes the rest"
        )


@contextlib.contextmanager
def in_the_making(folder: Path, safe: Safe | None = None) -> Iterator[_Making]:
    """A folder that gets its final name when it is complete."""
    place = None
    try:
        place = _Making.beside(folder)
        yield place
        place.appear()
    except OSError as error:
        rest = ""
        if place is not None and place.keep:
            rest = f"; {place.what_is_there}"
        elif place is not None:
            shutil.rmtree(place.path, ignore_errors=True)
        if not rest and safe is not None:
            rest = f"; {safe.what_is_there}"
        raise NotWritten(folder, error.strerror, rest) from None
    except ResultsError:
        if place is not None and not place.keep:
            shutil.rmtree(place.path, ignore_errors=True)
        raise


# ── Reading ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ResultFolder:
    """A folder that `mpc-rr run` or `mpc-rr coordinate` wrote."""

    path: Path
    version: int
    definition: Definition
    protocol_table: dict[str, Any]
    file: ResultFile
    """Of format 1: what can be read without replaying the transcript."""
    original: dict[str, Any]
    """``result.json`` as it stands there."""

    @property
    def done(self) -> bool:
        """Whether the study ended with a result."""
        return self.file.status == "done"

    @property
    def study(self) -> Study:
        """The study with its protocol; `UnknownProtocol` if that is not known here."""
        try:
            protocol = protocol_from(self.protocol_table, self.file.protocol.origin)
        except UnknownProtocol as error:
            raise InputError(f"{self.path}: {error}") from None
        except msgspec.ValidationError as error:
            raise InputError(f"{self.path / 'study.json'} is damaged: {error}") from None
        try:
            return study_of(self.definition, protocol)
        except ScenarioError as error:
            raise InputError(f"{self.path / 'study.json'} is damaged: {error}") from None

    def text(self, name: str) -> str:
        """Another file of the folder; `InputError` if it cannot be read."""
        return _text(self.path, name)


def _text(path: Path, name: str) -> str:
    place = path / name
    try:
        inside = [place, *place.parents][: len(Path(name).parts)]
        if any(part.is_symlink() for part in inside) or not place.is_file():
            raise InputError(f"{path} is not a result folder: {name} is not there as a file")
        return place.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path} is not a result folder: {name}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{place} is damaged: it is no text") from None


def read_folder(path: str | Path) -> ResultFolder:
    """The result folder at this place; `InputError` if there is none, or it is of another kind."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    text = _text(path, "result.json")
    try:
        result = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path / 'result.json'} is damaged: {error}") from None
    if not isinstance(result, dict) or result.get("format") != FORMAT or "status" not in result:
        raise InputError(f"{path / 'result.json'} is not the result of a study, or damaged")
    version = result.get("version")
    if version not in READ:
        raise InputError(
            f"{path / 'result.json'} is of format version {version}; this program knows "
            f"{' and '.join(map(str, READ))}"
        )
    try:
        file = format1.read(result) if version == 1 else msgspec.json.decode(text, type=ResultFile)
        fault = publication_fault(file.publication)
        if fault is not None:
            raise ValueError(fault)  # noqa: TRY301
        if any(sheet.text for sheet in file.publication.sheets):
            raise ValueError("sheets are files of their own; their text has no place in it")  # noqa: TRY301
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path / 'result.json'} is damaged: {error}") from None
    try:
        definition, protocol = definition_from_json(_text(path, "study.json"))
    except (ValueError, MpcRrError, RecursionError) as error:
        if isinstance(error, InputError) and str(path) in str(error):
            raise
        raise InputError(f"{path / 'study.json'} is damaged: {error}") from None
    return ResultFolder(path, int(version), definition, protocol, file, result)
