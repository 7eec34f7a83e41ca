"""What a study is: the part that all agents must hold alike. They compare its digest."""

import datetime as dt
import functools
import hashlib
import json
import math
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
import numpy as np

from mpc_rr.errors import InputError, ScenarioError, key
from mpc_rr.network.lifecycle import AGENT_MESSAGES
from mpc_rr.privacy.disclosures import Disclosure
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.registry import protocol_from
from mpc_rr.publication.ending import Computation, Setting
from mpc_rr.schema import Schema
from mpc_rr.study.derived import Derived, Whole
from mpc_rr.study.file_errors import in_plain_words


class Parties(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many parties are expected, and with how few the study still goes on."""

    count: int
    minimum: int | None = None

    @property
    def fewest(self) -> int:
        """The smallest number of parties that may remain."""
        return self.count if self.minimum is None else self.minimum


TIME_TO_DECIDE = 0.6
"""Of the time that the coordinator waits: the rest is for the way."""


class Deadlines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the coordinator waits."""

    lobby_s: float = 120.0
    round_s: float = 60.0
    stragglers_s: float | None = None
    """Where the study can go on without some: how long to wait for them after the others."""

    @property
    def patience_s(self) -> float:
        """How long after the others those are waited for who may be left out."""
        return math.inf if self.stragglers_s is None else self.stragglers_s

    @property
    def decide_s(self) -> float:
        """How much time people have for all that they decide between two rounds."""
        return TIME_TO_DECIDE * min(self.round_s, self.patience_s)

    @property
    def ask_again_s(self) -> float:
        """How long to wait for a message before asking for it again.

        A tenth of the deadline: a study that gives people long has many of them, and if each asked
        every few seconds while the others are still being admitted, nobody would get through.
        """
        return min(max(self.round_s / 10, 0.2), 300.0)


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a study says of itself, but for how its protocol works."""

    name: str
    title: str
    description: str
    schema: Schema
    parties: Parties
    deadlines: Deadlines
    expires: dt.date | None = None
    """The last day on which anybody may take part."""
    registrar: str | None = None
    """The public key (hexadecimal) of whoever admits people; without one, the study is open."""
    derived: dict[str, Derived] | None = None
    """What is computed from answers and not asked. It is no part of what parties are promised:
    everybody could do the same with what is published."""
    results: tuple[Computation, ...] = ()
    """What is computed on what it publishes. No part of the digest: it follows from that, and
    anybody can compute it, or something else, as well."""


class Study(Definition, frozen=True, kw_only=True):
    """What all agents of a study must agree on."""

    protocol: StudyProtocol

    def __post_init__(self) -> None:
        """A study made in Python is the one that would be read from a file: 2 is 2.0 there."""
        if not isinstance(self.protocol, StudyProtocol):
            raise ScenarioError("protocol: give a protocol with its options: RRViews(epsilon=2)")
        kinds: dict[str, type[msgspec.Struct]] = {
            "schema": Schema, "protocol": type(self.protocol),
            "parties": Parties, "deadlines": Deadlines,
        }  # fmt: skip
        for field, kind in kinds.items():
            try:
                plain = msgspec.to_builtins(getattr(self, field), enc_hook=_as_python)
                read = msgspec.convert(plain, kind)
            except msgspec.ValidationError as error:
                raise ScenarioError(in_plain_words(error, kind, start=field)) from None
            except TypeError as error:
                raise ScenarioError(f"{field}: {error}") from None
            _check_finite(plain, field)
            msgspec.structs.force_setattr(self, field, read)

    @property
    def registrar_key(self) -> bytes | None:
        """The registrar's public key."""
        return None if self.registrar is None else bytes.fromhex(self.registrar)

    @property
    def digest(self) -> bytes:
        """A digest of everything above, by which agents see whether their files agree.

        What came later to the format and is not used is left out, so that older digests stay.
        """
        encoded = msgspec.json.encode(self, order="deterministic")
        return _digest(encoded, self._ordered_words)

    @property
    def _ordered_words(self) -> bytes:
        """Which language comes first decides what people read; JSON objects have no order."""
        words = [
            [name, field, [*text.items()]]
            for name, field, text in self.schema.texts()
            if isinstance(text, dict)
        ]
        return msgspec.json.encode(words) if words else b""

    @property
    def promise(self) -> bytes:
        """A digest of what parties are promised: what is asked, how it is protected, among whom.

        A study that is given more time has the same, and one that expects more people, if its
        ``minimum`` stays; without one, as many must stay as are expected. Answers are drawn by it,
        so such a study gets the very same ones. One that is explained otherwise may ask something
        else: it is another study.
        """
        encoded = msgspec.json.encode(self, order="deterministic")
        return _promise(encoded, self._ordered_words, self.parties.fewest)

    @property
    def setting(self) -> Setting:
        """What its protocol may know of it, before anybody has come."""
        return Setting(
            study=self.name,
            schema=self.schema,
            expected=self.parties.count,
            parties=self.parties.count,
            fewest=self.parties.fewest,
            registrar=self.registrar is not None,
            registrar_key=(self.registrar or "")[:KEY_DIGITS_SHOWN],
            results=self.results,
            decide_s=self.deadlines.decide_s,
        )

    def setting_with(self, members: Sequence[str] | None) -> Setting:
        """The same when these are there; None: some are, and it is not known who."""
        if members is None:
            return self.setting
        return msgspec.structs.replace(
            self.setting, parties=max(len(members), 2), members=tuple(members)
        )

    @property
    def whole(self) -> Whole:
        """What is asked, and what is computed from it."""
        return Whole(self.schema, self.derived or {})

    @property
    def needs_roster(self) -> bool:
        """Whether all parties depend on all."""
        return self.protocol.needs_roster(self.setting)

    @property
    def largest_message_bytes(self) -> int:
        """An upper bound on any message, so that larger ones can be rejected."""
        return self.protocol.largest_message_bytes(self.setting)

    @property
    def step_words(self) -> dict[str, str]:
        """What happens in each step, in words for whoever watches."""
        kinds = [*AGENT_MESSAGES, *self.protocol.rounds(self.setting)]
        return {kind.step: kind.doing or kind.step for kind in kinds}

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """What a party gives away by taking part."""
        known = _disclosed.get(id(self))
        if known is not None:
            return known[1]
        stated = self.protocol.stated(self.setting)
        with _at_a_time:  # studies may run in several threads
            _disclosed[id(self)] = (self, stated)
            while len(_disclosed) > STUDIES_KEPT:
                del _disclosed[next(iter(_disclosed))]
        return stated

    @property
    def comparable(self) -> bool:
        """Whether a run of it could be compared with one of other parties."""
        return any(event.compared is not None for event in self.disclosures)

    def check_open(self) -> None:
        """`InputError` if the study's last day has passed."""
        today = dt.datetime.now(dt.UTC).date()
        if self.expires is not None and today > self.expires:
            raise InputError(
                f"study {self.name!r} ended on {self.expires}; nothing was sent (today is {today}, "
                "UTC)"
            )


def _as_python(value: Any) -> Any:
    """A number of numpy's as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written to a file")


def _check_finite(value: Any, place: str) -> None:
    """Infinities, and what is no number, would have the digest of a number that is not given."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{place}: must be a finite number, not {value}, or be left out")
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != UNBOUNDED:
                _check_finite(inner, f"{place}.{key(str(name))}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _check_finite(inner, f"{place}[{number}]")


UNBOUNDED = "bins"
"""Of which the outer edges may be infinite; that they rise is checked with the attribute."""
KEY_DIGITS_SHOWN = 16
STUDIES_KEPT = 8
_at_a_time = threading.Lock()
_disclosed: dict[int, tuple[Study, tuple[Disclosure, ...]]] = {}
"""By the identity of a study, which is kept so that no other can take its place: a host's thousands
of parties all ask."""

CAME_LATER = frozenset(
    {"expires", "missing", "stragglers_s", "noise_epsilon", "noise_corrupt", "suppress_below"}
    | {"sum", "masking", "lowest", "highest", "step", "registrar", "enough"}
    | {"label", "question", "labels", "noise", "noise_delta", "covariance"}
    | {"each", "stay", "measure", "joins", "derived", "clip", "suppress"}
    | {"answers", "tables"}
)


DIGESTED = (
    "name", "title", "description", "schema", "protocol", "parties", "deadlines", "expires",
    "registrar", "derived",
)  # fmt: skip
"""What the digest is made of, in this order for ever."""
PROMISED = ("name", "title", "description", "schema", "protocol", "registrar")


@functools.lru_cache(maxsize=8)
def _digest(study: bytes, words: bytes) -> bytes:
    """Once for all parties of a host."""
    tables = msgspec.json.decode(study)
    canonical = msgspec.json.encode(_without_unused({key: tables[key] for key in DIGESTED}))
    return hashlib.sha256(b"mpc-rr study v1\0" + canonical + words).digest()


@functools.lru_cache(maxsize=8)
def _promise(study: bytes, words: bytes, fewest: int) -> bytes:
    """Once for all parties of a host."""
    tables = msgspec.json.decode(study)
    promised = {key: tables[key] for key in PROMISED}
    canonical = msgspec.json.encode(_without_unused(promised | {"minimum": fewest}))
    return hashlib.sha256(b"mpc-rr promise v2\0" + canonical + words).digest()


def _without_unused(value: Any) -> Any:
    """The same without what came later to the format and is not used."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if v is not None or k not in CAME_LATER}
        if "masking" in kept:
            kept["masking"] = _masking_as_written(kept["masking"])
        if kept.get("name") == "block_aggregation" and kept.get("epsilon", 0) is None:
            del kept["epsilon"]  # in other protocols it always was there
        return {key: _without_unused(inner) for key, inner in kept.items()}
    if isinstance(value, list | tuple):
        return [_without_unused(inner) for inner in value]
    return value


def _masking_as_written(table: Any) -> Any:
    """Digests always held a word for the coordinator: this one, where the file gives none."""
    if isinstance(table, dict) and table.get("coordinator", "") is None:
        return table | {"coordinator": "lying"}
    return table


def writable(value: Any) -> Any:
    """The same with infinities, as edges of bins may be, as text: JSON has none."""
    if isinstance(value, dict):
        return {key: writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [writable(inner) for inner in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def study_json(study: Study) -> str:
    """A study as JSON, for a result folder; infinite edges of bins are written as text."""
    tables = msgspec.to_builtins(study)
    if not study.results:
        del tables["results"]  # which older programs do not know
    plain = msgspec.json.encode(writable(tables))
    return msgspec.json.format(plain, indent=2).decode() + "\n"


def _no_number(word: str) -> NoReturn:
    """Else NaN and Infinity, which JSON does not have, would have the digest of null."""
    raise ValueError(f"{word} is not JSON")


def definition_from_json(text: str) -> tuple[Definition, dict[str, Any]]:
    """What `study_json` wrote, with the table of its protocol; ``ValueError`` if it is none."""
    try:
        tables = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it describes no study") from None
    if not isinstance(tables, dict) or not isinstance(tables.get("protocol"), dict):
        raise ValueError("it describes no study")  # noqa: TRY004
    protocol = tables.pop("protocol")
    return msgspec.convert(tables, Definition, strict=False), protocol


def study_of(definition: Definition, protocol: StudyProtocol) -> Study:
    """A definition with its protocol."""
    fields = {f: getattr(definition, f) for f in Definition.__struct_fields__}
    return Study(protocol=protocol, **fields)


def study_from_json(text: str) -> Study:
    """The study that `study_json` wrote; ``ValueError`` if it is none."""
    definition, protocol = definition_from_json(text)
    return study_of(definition, protocol_from(protocol))
