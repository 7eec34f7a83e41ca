"""The codebook beside a randomized file: how each column was randomized, in full.

It is made to be passed on with the file: from both together, and nothing else, follow the estimates
(`mpc_rr.curator.estimates`). It is JSON with a version; ``docs/randomize.md`` has the fields.
"""

import hashlib
import math
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from mpc_rr.curator.ways import AnyWay, Correlated, Normal, OfCategories, OfNumbers
from mpc_rr.errors import InputError, ResultsError, SchemaError
from mpc_rr.privacy.entropy import joint_share
from mpc_rr.schema import Attribute, Schema, check_categories
from mpc_rr.study.definition import writable
from mpc_rr.study.layout import read_text

FORMAT = "mpc-rr codebook"
VERSION = 1
SUFFIX = ".codebook.json"
ROUNDING = 1e-9
"""So much may a stated number be off, for the arithmetic of another machine."""
SIGNS = {"epsilon": "ε", "delta": "δ", "beta": "β", "alone": "noise left alone"}


Source = Literal["given", "the records"]
"""Where the categories, or the range, of all columns come from."""
TELLS = (
    "; as its categories were taken from the records, the file tells which there are, also of one "
    "person alone, and there is no ε"
)


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ColumnEntry(_Part, frozen=True, kw_only=True):
    """One column of the randomized file."""

    attribute: Attribute
    way: AnyWay
    said: str
    """The way in words."""
    protected: bool
    epsilon: float | None
    """What bounds what one value tells, by itself; null: no ε does."""
    delta: float
    beta: float | None
    """The share of the largest entropy (001, Definition 1); null where it has none."""
    alone: float | None = None
    """Of noise that depends on that of other columns: the standard deviation of what is left of
    it to whoever knows the record's other numbers of the group."""

    @classmethod
    def of(
        cls, attribute: Attribute, way: AnyWay, groups: tuple[Correlated, ...], source: Source
    ) -> "ColumnEntry":
        """What follows from the way, and from where the categories come."""
        number = getattr(way, "group", None)
        group = None if number is None else groups[number]
        return cls(
            attribute=attribute,
            way=way,
            said=f"{way.said}{TELLS if source == 'the records' else ''}",
            protected=way.protects,
            epsilon=way.epsilon if source == "given" else None,
            delta=way.failing if source == "given" else 0.0,
            beta=way.beta if isinstance(way, OfCategories) else None,
            alone=None if group is None else group.alone[group.columns.index(attribute.name)],
        )


class Codebook(_Part, frozen=True, kw_only=True):
    """How a file was randomized."""

    format: Literal["mpc-rr codebook"] = "mpc-rr codebook"
    version: Literal[1] = 1
    rows: int
    sha256: str
    """Of the randomized file as it was written."""
    columns: tuple[ColumnEntry, ...]
    groups: tuple[Correlated, ...] = ()
    """Columns of numbers whose noise is correlated."""
    left_out: tuple[str, ...] = ()
    """Columns of the original that are not in the randomized file."""
    categories: Source
    """Where the categories come from: those of the records tell which values there are, so that
    there is no ε."""
    epsilon: float | None
    """What bounds what a whole record tells: all columns together; null: no ε does."""
    delta: float
    beta: float | None
    """Of all columns of categories together; null where one of them has none."""
    shuffled: bool
    simulated: bool
    """Drawn from a seed: whoever knows it gets the true values back."""

    @property
    def schema(self) -> tuple[Attribute, ...]:
        """The columns' attributes."""
        return tuple(column.attribute for column in self.columns)

    def column(self, name: str) -> ColumnEntry:
        """One column; `InputError` if there is none."""
        for column in self.columns:
            if column.attribute.name == name:
                return column
        raise InputError(f"there is no column {name!r} in the codebook")


def codebook_of(
    schema: Schema,
    ways: tuple[AnyWay, ...],
    groups: tuple[Correlated, ...],
    *,
    left_out: tuple[str, ...],
    categories: Source,
    shuffled: bool,
    simulated: bool,
) -> Codebook:
    """What a codebook says, but for the file itself."""
    pairs = zip(schema.attributes, ways, strict=True)
    columns = tuple(ColumnEntry.of(*pair, groups, categories) for pair in pairs)
    return Codebook(
        rows=0,
        sha256="",
        columns=columns,
        groups=groups,
        left_out=left_out,
        categories=categories,
        epsilon=joint_epsilon(columns),
        delta=joint_delta(columns),
        beta=joint_beta(columns),
        shuffled=shuffled,
        simulated=simulated,
    )


def joint_epsilon(columns: tuple[ColumnEntry, ...]) -> float | None:
    """Of all columns together; None if one of them has none."""
    known = [column.epsilon for column in columns if column.epsilon is not None]
    return math.fsum(known) if len(known) == len(columns) else None


def joint_delta(columns: tuple[ColumnEntry, ...]) -> float:
    """With which that holds."""
    return math.fsum(column.delta for column in columns)


def joint_beta(columns: tuple[ColumnEntry, ...]) -> float | None:
    """Of all columns of categories; None if one of them has none."""
    ways = [column.way for column in columns if isinstance(column.way, OfCategories)]
    known = all(way.beta is not None for way in ways)
    return joint_share(way.matrix for way in ways) if known else None


def codebook_place(file: Path) -> Path:
    """Where the codebook of a file is, if nobody says otherwise."""
    return file.with_name(file.name.removesuffix(".csv") + SUFFIX)


def write_codebook(codebook: Codebook, place: Path) -> None:
    """As JSON; infinite edges of bins are written as text."""
    plain = msgspec.json.encode(writable(msgspec.to_builtins(codebook)))
    try:
        place.write_bytes(msgspec.json.format(plain, indent=2) + b"\n")
    except OSError as error:
        raise ResultsError(f"cannot write {place}: {error.strerror}") from None


def read_codebook(place: Path) -> Codebook:
    """A codebook that `write_codebook` wrote; `InputError` if it is none."""
    text = read_text(place)
    try:
        head = msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise InputError(f"{place} is no codebook: {error}") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InputError(f"{place} is no codebook of mpc-rr randomize")
    if head.get("version") != VERSION:
        raise InputError(
            f"{place} is of codebook version {head.get('version')}; this program knows {VERSION}"
        )
    try:
        codebook = msgspec.json.decode(text, type=Codebook, strict=False)
        _check(codebook)
        return _reckoned(codebook)
    except (msgspec.MsgspecError, SchemaError, InputError, RecursionError) as error:
        raise InputError(f"{place} is damaged: {error}") from None


def _check(codebook: Codebook) -> None:
    """`InputError` unless each column has a way that fits it."""
    names = [attribute.name for attribute in codebook.schema]
    if not names or len(set(names)) != len(names):
        raise InputError("it has no columns, or one twice")
    check_categories(codebook.schema)
    for column in codebook.columns:
        attribute, way = column.attribute, column.way
        if isinstance(way, OfNumbers) != attribute.numeric:
            raise InputError(f"column {attribute.name!r} is not of the kind that it was randomized")
        if isinstance(way, OfNumbers) and not _of_range(way, attribute):
            raise InputError(f"column {attribute.name!r} was randomized for other numbers")
        if isinstance(way, OfCategories) and way.matrix.size != attribute.size:
            raise InputError(f"column {attribute.name!r} has a matrix of another size")
        group = getattr(way, "group", None)
        if group is not None and not (
            0 <= group < len(codebook.groups) and attribute.name in codebook.groups[group].columns
        ):
            raise InputError(f"column {attribute.name!r} names a group that it is not in")
    _check_groups(codebook)


def _check_groups(codebook: Codebook) -> None:
    """`InputError` unless each column of a group has the noise of it."""
    for number, own in enumerate(codebook.groups):
        if any(len(row) != len(own.columns) for row in own.covariance) or len(
            own.covariance
        ) != len(own.columns):
            raise InputError("a group's covariances are not those of its columns")
        for place, name in enumerate(own.columns):
            if not _in_group(codebook.column(name).way, number, own.covariance[place][place]):
                raise InputError(f"column {name!r} has other noise than its group")


def _of_range(way: OfNumbers, attribute: Attribute) -> bool:
    """Whether noise is for the very numbers that the column may have: for fewer, ε is larger."""
    stated = [getattr(way, end, None) for end in ("lowest", "highest")]
    due = [attribute.lowest, attribute.number(attribute.answers_possible - 1)]
    return way.step == attribute.step and stated in (due, [None, None])


def _in_group(way: AnyWay, group: int, variance: float) -> bool:
    """Whether noise is that of a group, which was made from the columns themselves."""
    return (
        isinstance(way, Normal)
        and way.group == group
        and way.from_file
        and _close(way.variance / variance if variance > 0 else None, 1.0)
    )


def _reckoned(codebook: Codebook) -> Codebook:
    """With what follows from its ways; `InputError` if it states something else.

    What an earlier version stated of categories that were taken from the records is replaced.
    """
    try:
        columns = tuple(
            ColumnEntry.of(own.attribute, own.way, codebook.groups, codebook.categories)
            for own in codebook.columns
        )
        by_ways = tuple(
            ColumnEntry.of(own.attribute, own.way, codebook.groups, "given")
            for own in codebook.columns
        )
    except np.linalg.LinAlgError:
        raise InputError("a group's covariances are those of no noise") from None
    for stated, due, by_way in zip(codebook.columns, columns, by_ways, strict=True):
        name = stated.attribute.name
        if stated.protected != due.protected:
            raise InputError(f"whether column {name!r} is protected does not follow from its way")
        for what in ("epsilon", "delta", "beta", "alone"):
            _check_stated(f"column {name!r}", what, stated, due, by_way)
    found, earlier = (_with_columns(codebook, own) for own in (columns, by_ways))
    for what in ("epsilon", "delta", "beta"):
        _check_stated("the whole record", what, codebook, found, earlier)
    return found


def _with_columns(codebook: Codebook, columns: tuple[ColumnEntry, ...]) -> Codebook:
    """With these, and what a whole record has of them."""
    return msgspec.structs.replace(
        codebook,
        columns=columns,
        epsilon=joint_epsilon(columns),
        delta=joint_delta(columns),
        beta=joint_beta(columns),
    )


def _check_stated(whose: str, what: str, stated: _Part, due: _Part, earlier: _Part) -> None:
    """`InputError` unless a number is what follows now, or followed in an earlier version."""
    said = getattr(stated, what)
    expected = [getattr(due, what), getattr(earlier, what)]
    if not any(said is one or _close(said, one) for one in expected):
        raise InputError(
            f"the {SIGNS[what]} of {whose} is stated as {said}; from how it was randomized follows "
            f"{expected[0]}"
        )


def _close(one: float | None, other: float | None) -> bool:
    return (
        one is not None
        and other is not None
        and math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
    )


def digest_of(text: str) -> str:
    """The SHA-256 of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()
