"""How a protocol ends, and what becomes of it: `Ending.publish`, called once for a run."""

import contextlib
import hashlib
import math
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
import numpy as np

from mpc_rr.errors import InputError, one_line, out_of
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.full_reports import Known
from mpc_rr.estimation.matrix import Array, RRMatrix
from mpc_rr.estimation.uncertainty import Uncertainty
from mpc_rr.privacy.disclosures import Caution, Disclosure
from mpc_rr.publication.parts import (
    Absence,
    Figure,
    Finding,
    Kind,
    Listing,
    Note,
    Participation,
    Publication,
    Quantity,
    Sheet,
    Table,
    publication_fault,
)
from mpc_rr.schema import Record, Schema

DIGEST_BYTES = 32
Part = TypeVar("Part")
_publication = msgspec.json.Decoder(Publication)
_participation = msgspec.json.Decoder(Participation)


class AbstractStruct(msgspec.StructMeta, ABCMeta):
    """Structs of which a subclass that leaves something out cannot be made."""


class Computation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statistic that a study publishes beside what its protocol does (``docs/compute.md``)."""

    compute: str
    by: str | None = None
    where: str | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a protocol, and how it ended, may know of the study around it."""

    study: str
    schema: Schema
    expected: int
    """How many parties the study is for."""
    parties: int
    """How many there are: all that are expected, or those in the run."""
    fewest: int
    """With how few it goes on."""
    registrar: bool = False
    """Whether a registrar admits people; otherwise the study is open to everybody."""
    registrar_key: str = ""
    """The first digits of the registrar's key, by which people can ask whose it is."""
    members: tuple[str, ...] | None = None
    """In a run: who was there when the protocol began, where that is known."""
    counted: int | None = None
    """After a run: how many are in its result, where that is known."""
    results: tuple[Computation, ...] = ()
    """What is to be computed on what it publishes."""
    decide_s: float = math.inf
    """How much time people have for all that they decide between two rounds."""


class Ending(msgspec.Struct, metaclass=AbstractStruct, frozen=True, kw_only=True):
    """What a protocol gives its agents in the end: a result, or what a party knows of it.

    A subclass must say what it publishes; leaving that out is an error where the class is made.
    """

    counts_pairs: ClassVar[bool] = False
    """Whether its tables are the counts of all pairs of attributes."""

    lost: dict[str, str] = {}
    """Parties that were left out on the way, and at which step."""

    unconfirmed: tuple[str, ...] = ()
    """Parties whose confirmation of the very same result was not seen."""

    without_verdict: bool = False
    """For a party: whether the coordinator never said how the study ended."""

    receipt: tuple[bytes, ...] = ()
    """For a party: the signed public messages it sent and the announcements it heard."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.publish is Ending.publish:
            raise TypeError(f"{cls.__name__} must say what it publishes: define publish(study)")

    @property
    def digest(self) -> bytes:
        """By which agents see that they mean the same result: all its own fields, by default."""
        agents = {"lost", "unconfirmed", "without_verdict", "receipt"}
        own = [name for name in self.__struct_fields__ if name not in agents]
        encoded = msgspec.msgpack.encode(
            [getattr(self, name) for name in own], enc_hook=_plain, order="deterministic"
        )
        kind = type(self).__qualname__.encode()
        return hashlib.sha256(b"mpc-rr ending\0" + kind + b"\0" + encoded).digest()

    @abstractmethod
    def publish(self, study: Setting) -> Publication:
        """What it says to the world. Participation and privacy are added to it."""

    def known_before(self) -> Known:
        """What a first stage told of the very same respondents."""
        return {}

    def from_reports(self) -> Estimates | None:
        """What follows from the randomized records of all who answered, if it has them."""

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """What the table of some attributes is made from: unbiased shares, and how uncertain.

        ``mpc-rr query`` works out limits from it, ``mpc-rr compute`` all statistics; without it
        there are limits of single cells only, and no statistics.
        """

    def randomized_by(
        self, attributes: tuple[int, ...]
    ) -> tuple[tuple[tuple[int, ...], RRMatrix], ...]:
        """How the answers in a table of counted reports were randomized.

        Which of them were one value, and its matrix; nothing if that table has no such reports.
        """
        return ()

    def beside_truth(self, people: Mapping[str, Record]) -> tuple[Listing, ...]:
        """What stands beside the truth, in a simulation: of a release of records, by respondent."""
        return ()

    def participation(self, study: Setting) -> Participation:
        """Who is in it: all who were there but those who were lost, unless a kind knows better."""
        there = study.members
        counted = None if there is None else tuple(name for name in there if name not in self.lost)
        return Participation(
            expected=study.expected,
            present=None if there is None else len(there),
            counted=None if counted is None else len(counted),
            counted_parties=counted,
            absent=dropped_out(self.lost),
            unconfirmed=self.unconfirmed,
        )


def checked_ending(ending: object) -> Ending:
    """What a protocol returned; ``TypeError`` if that is no ending, or none that has a digest."""
    if not isinstance(ending, Ending):
        raise TypeError(f"it returned {type(ending).__name__}, not an Ending")
    digest: object = ending.digest
    if not isinstance(digest, bytes) or len(digest) not in (DIGEST_BYTES, DIGEST_BYTES + 1):
        raise TypeError(f"its digest is not {DIGEST_BYTES} or {DIGEST_BYTES + 1} bytes")
    return ending


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in an ending: define its digest")


def dropped_out(lost: dict[str, str]) -> tuple[Absence, ...]:
    """Those who were lost on the way: at which step, and why if there is more to say."""
    found = []
    for party, at in sorted(lost.items()):
        step, _, reason = at.partition(": ")
        found.append(Absence(party=party, how="dropped out", step=step, reason=reason))
    return tuple(found)


class Promising(Protocol):
    """What a protocol says of itself in every study."""

    def stated(self, study: Setting) -> Sequence[Disclosure]:
        """What a party discloses."""

    def cautions(self, study: Setting) -> Sequence[Caution]:
        """What a respondent is told beforehand that may happen."""

    def notes(self, study: Setting) -> Sequence[Note]:
        """What it does not promise."""


def who_took_part(
    ending: Ending,
    study: Setting,
    excluded: Sequence[Absence] = (),
    said: Participation | None = None,
) -> Participation:
    """Who is in a result, and who is not; an error if the ending does not say it properly."""
    people = ending.participation(study) if said is None else said
    people = read_again(people, _participation)
    return msgspec.structs.replace(people, absent=(*excluded, *people.absent))


def read_again(part: Part, decoder: msgspec.json.Decoder[Part]) -> Part:
    """A part as whoever reads its JSON has it: an error if that cannot be written or is no such."""
    return decoder.decode(msgspec.json.encode(part, enc_hook=_plain))


def fact(name: str, label: str, value: str | float | None, kind: Kind = "number") -> Quantity:
    """A quantity that is known for sure, and not worth a place on a terminal."""
    return Quantity(name=name, label=label, value=value, kind=kind, main=False)


def in_order(made: Publication) -> Publication:
    """What was published, in plain values; an error if it is not in order."""
    if not isinstance(made, Publication):
        raise TypeError(f"publish() returned {type(made).__name__}, not a Publication")
    checked = read_again(made, _publication)
    sheets = tuple(Sheet.of(sheet.name, sheet.what, sheet.text) for sheet in checked.sheets)
    checked = msgspec.structs.replace(checked, sheets=sheets)
    fault = publication_fault(checked)
    if fault is not None:
        raise ValueError(fault)
    return checked


def how_many_answered(n: int, asked: int, expected: int) -> str:
    """``5 of 8 parties (6 were there) answered``."""
    return f"{out_of(n, asked, expected)} answered"


def counting(people: Participation, n: int) -> Participation:
    """The same where so many are counted; if that is not as many as were left, nobody knows who."""
    named = people.counted_parties
    if named is not None and len(named) != n:
        named = None
    return msgspec.structs.replace(people, counted=n, counted_parties=named)


class Draft:
    """A publication in the making: a part that cannot be computed becomes a note."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.quantities: list[Quantity] = []
        self.tables: list[Table] = []
        self.listings: list[Listing] = []
        self.figures: list[Figure] = []
        self.notes: list[Note] = []
        self.sheets: list[Sheet] = []

    @contextlib.contextmanager
    def part(self, what: str) -> Iterator[None]:
        """One part. What was added before it failed stays."""
        try:
            yield
        except InputError as error:  # it follows from the study, and would again
            self.warn(f"{what} could not be computed: {one_line(str(error)).rstrip('.')}.")
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the study is finished and stays)
            why = one_line(f"{type(error).__name__}: {error}".rstrip(": "))
            self.notes.append(
                Note(
                    text=f"{what} could not be computed ({why}); the transcript has everything it "
                    "follows from (mpc-rr publish computes it again).",
                    severity="warning",
                    incomplete=True,
                )
            )

    def find(self, text: str, **numbers: float | None) -> None:
        """Add a finding."""
        self.findings.append(Finding(text=text, numbers=numbers))

    def note(self, text: str) -> None:
        """Add a note."""
        self.notes.append(Note(text=text))

    def warn(self, text: str) -> None:
        """Add a warning."""
        self.notes.append(Note(text=text, severity="warning"))

    def publication(self, **parts: Any) -> Publication:
        """All of it, with further parts."""
        return Publication(
            findings=tuple(self.findings),
            quantities=tuple(self.quantities),
            tables=tuple(self.tables),
            listings=tuple(self.listings),
            figures=tuple(self.figures),
            notes=tuple(self.notes),
            sheets=tuple(self.sheets),
            **parts,
        )
