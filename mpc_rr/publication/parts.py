"""The one shape of what any study publishes.

An ending makes a `Publication` once (`mpc_rr.publication.ending.Ending.publish`). Terminal, report,
result folder and verification know these parts and no protocol: whatever a protocol puts into them
is shown, written and checked. ``result.json`` is this, as JSON (``docs/result.schema.json``).

Attributes and categories stand here under their identifiers; renderers put labels in their place.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from mpc_rr.privacy.costs import Privacy
from mpc_rr.publication.tabular import data_frame, html_table

Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Number = Whole | float | None
"""None: hidden, or it cannot be told."""
Cell = str | Whole | float | tuple[str, ...] | None
"""Of a listing; several strings are names of attributes that belong together."""
Kind = Literal[
    "text", "attribute", "count", "share", "degree", "limit", "p-value", "epsilon", "number"
]
"""How a value is written: ``share`` as a percentage, ``degree`` (from −1 to 1) with a bar, two
``limit`` columns beside each other as one interval, ``attribute`` by the label of the attribute (or
of several)."""
LEVEL = 0.95
"""The confidence of all intervals."""
NOTHING_TOLD = 0.8
"""Limits that leave more than this part of all shares possible tell nothing of a share."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Absence(_Part, frozen=True, kw_only=True):
    """A party that is not in the result, and why."""

    party: str
    how: Literal[
        "excluded", "silent", "faulty", "dropped out", "withdrawn", "suppressed", "not asked"
    ]
    """Excluded: left out before the protocol began, or with an attempt that was given up. Dropped
    out: lost on the way. Withdrawn: told nothing, by the protocol's own rules. Suppressed: in
    no group, so that others can be told more exactly."""
    step: str = ""
    reason: str = ""


class Participation(_Part, frozen=True, kw_only=True):
    """Who was in it. One shape for all protocols."""

    expected: int
    present: int | None = None
    """How many were there when the protocol began."""
    counted: int | None = None
    counted_parties: tuple[str, ...] | None = None
    """None where it is not known whose answers are in the result."""
    absent: tuple[Absence, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    """Parties whose confirmation of the very same result was not seen."""
    told_by: Literal["transcript", "coordinator"] = "transcript"
    """By what one knows who dropped out, and where."""


class Finding(_Part, frozen=True, kw_only=True):
    """A sentence, and the numbers it rests on."""

    text: str
    numbers: dict[str, Number] = {}


class Quantity(_Part, frozen=True, kw_only=True):
    """One number (or word) that was found, with its uncertainty where it has one."""

    name: str
    label: str
    value: str | Whole | float | None
    """None: it cannot be told."""
    kind: Kind = "number"
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    speaks_of: Literal["study", "respondents", "population"] = "study"
    main: bool = True
    """Whether it is worth a place on a terminal."""


class Axis(_Part, frozen=True, kw_only=True):
    """One attribute of a table, with its categories."""

    attribute: str
    categories: tuple[str, ...]


class Table(_Part, frozen=True, kw_only=True):
    """Cells over the categories of one or more attributes.

    All lists of cells are in row-major order: the last axis runs fastest.
    """

    name: str
    axes: tuple[Axis, ...]
    kind: Literal["count", "share"]
    values: tuple[Number, ...]
    """None: hidden, so that nobody can be picked out."""
    n: int | None = None
    """How many answers it is made from."""
    standard_errors: tuple[Number, ...] | None = None
    low: tuple[Number, ...] | None = None
    high: tuple[Number, ...] | None = None
    """Limits of each cell, with 95 % confidence, for whom the table ``speaks_of``."""
    respondents_low: tuple[Number, ...] | None = None
    respondents_high: tuple[Number, ...] | None = None
    """The same for these very respondents, where it speaks of the population."""
    unbiased: tuple[Number, ...] | None = None
    """Before it was made a proper distribution: may be negative, and adds up without bias."""
    reported: tuple[int, ...] | None = None
    """How often each cell was reported, randomized."""
    speaks_of: Literal["respondents", "population"] = "respondents"
    main: bool = False
    """Whether it is worth a place on a terminal."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of categories, axis by axis."""
        return tuple(len(axis.categories) for axis in self.axes)

    @property
    def untold(self) -> tuple[bool, ...]:
        """Of which cells the answers tell nothing: their limits are too far from each other.

        Their values stand here, with their limits, but are not shown to people as if known.
        """
        whole = 1 if self.kind == "share" else self.n
        if self.low is None or self.high is None or not whole:
            return (False,) * len(self.values)
        ends = zip(self.low, self.high, strict=True)
        return tuple(tells_nothing(low, high, whole) for low, high in ends)

    def rows(self, cells: Sequence[Number] | None = None) -> list[list[Number]]:
        """The values (or other cells) row by row; a table of one axis is one row."""
        width = self.shape[-1]
        flat = self.values if cells is None else cells
        return [list(flat[start : start + width]) for start in range(0, len(flat), width)]

    def to_frame(self, *, errors: bool = False) -> Any:
        """As a pandas data frame; `InputError` where pandas is not installed.

        Two attributes are rows and columns; otherwise, and with ``errors``, each cell has a row,
        the latter with its standard error and limits. Hidden cells are missing values.
        """
        return data_frame(self, errors=errors)

    def _repr_html_(self) -> str:
        return html_table(self)


def tells_nothing(low: Number, high: Number, whole: float = 1) -> bool:
    """Whether limits leave nearly everything from 0 to ``whole`` possible."""
    return low is not None and high is not None and high - low > NOTHING_TOLD * whole


class Column(_Part, frozen=True, kw_only=True):
    """One column of a listing."""

    name: str
    label: str
    kind: Kind = "text"


class Listing(_Part, frozen=True, kw_only=True):
    """Rows of mixed values."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    main: bool = True

    def column(self, name: str) -> list[Cell]:
        """The values of one column."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]


class Figure(_Part, frozen=True, kw_only=True):
    """What of the above is worth a picture. Renderers draw it; nothing of it is stored twice.

    ``intervals``: the cells of a table of one axis with their limits; or the rows of a listing, by
    its first column: its first ``number`` with two ``limit`` columns, none below 0. ``heat_map``: a
    listing whose first two columns name attributes, by its column of kind ``degree``. ``graph``:
    the same with nodes and edges, those together whose last column says "yes".
    """

    kind: Literal["intervals", "heat_map", "graph"]
    of: str
    """The name of a table or a listing."""
    title: str = ""


class Note(_Part, frozen=True, kw_only=True):
    """A sentence that whoever uses the result must know."""

    text: str
    severity: Literal["note", "warning"] = "note"
    incomplete: bool = False
    """Whether it says that something could not be computed where it was written."""


class Sheet(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A CSV file of the result folder. Its text is in the file, not in ``result.json``."""

    name: str
    what: str
    sha256: str
    text: str = ""

    @classmethod
    def of(cls, name: str, what: str, text: str) -> "Sheet":
        """A sheet with its digest."""
        return cls(
            name=name, what=what, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text
        )


class Cluster(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Attributes that were randomized as one value; one of ``keep``, ``stay`` and ``matrix`` says
    how."""

    attributes: tuple[str, ...]
    keep: float | None = None
    """Kept with this probability, else replaced by a uniform value."""
    epsilon: float | None = None
    """Not given: a report may exclude some values."""
    stay: float | None = None
    """Staying with this probability, else a value rather with few changes (paper 003, §6.2)."""
    matrix: tuple[tuple[float, ...], ...] | None = None
    """A row for each true value, a column for each reported one: weights, of which each row's sum
    is 1 up to rounding."""


class ClusterDesign(_Part, frozen=True, kw_only=True, tag="clusters", tag_field="design"):
    """How records were randomized: cluster by cluster. The reports are in ``sheet``."""

    epsilon: float | None
    """Of the whole record; None: a report may exclude some values."""
    clusters: tuple[Cluster, ...]
    sheet: str


class ViewsDesign(_Part, frozen=True, kw_only=True, tag="views", tag_field="design"):
    """How records were randomized: each party reported one of these groups of attributes."""

    epsilon: float
    views: tuple[tuple[str, ...], ...]
    sheet: str
    weights: tuple[int, ...] = ()
    """How often each was drawn, in proportion; all alike, if there are none."""


class Publication(_Part, frozen=True, kw_only=True):
    """Everything a study publishes."""

    participation: Participation | None = None
    findings: tuple[Finding, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    tables: tuple[Table, ...] = ()
    listings: tuple[Listing, ...] = ()
    figures: tuple[Figure, ...] = ()
    privacy: Privacy | None = None
    notes: tuple[Note, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    randomization: ClusterDesign | ViewsDesign | None = None
    """Where parties reported randomized records: how, so that more can be asked of them."""

    def quantity(self, name: str) -> Quantity | None:
        """The quantity of this name, if there is one."""
        return next((q for q in self.quantities if q.name == name), None)

    def table(self, *attributes: str) -> Table | None:
        """The table of these attributes, in this order, if there is one."""
        for table in self.tables:
            if tuple(axis.attribute for axis in table.axes) == attributes:
                return table
        return None

    def listing(self, name: str) -> Listing | None:
        """The listing of this name, if there is one."""
        return next((found for found in self.listings if found.name == name), None)


RESERVED = (
    "result.json", "study.json", "transcript.jsonl", "cost.json", "cost.csv", "closing.json",
    "report.html", "receipt.jsonl", "receipts", "end.json",
)  # fmt: skip
"""Other files of a result folder, also where capitals make no difference."""
LISTING_NAME = re.compile(r'[^\s./\\:*?"<>|\x00-\x1f\x7f][^/\\:*?"<>|\x00-\x1f\x7f]{0,199}')
"""A listing becomes a file when it is exported (`mpc_rr.results.export`)."""
SHEET_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,199}/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


def publication_fault(found: Publication) -> str | None:
    """Why this cannot be shown or written as it stands, or None."""
    for table in found.tables:
        cells = math.prod(table.shape)
        layers = (table.values, table.standard_errors, table.low, table.high,
                  table.respondents_low, table.respondents_high, table.unbiased,
                  table.reported)  # fmt: skip
        if not cells or any(layer is not None and len(layer) != cells for layer in layers):
            return f"table {table.name!r} has not one value for each of its cells"
    for listed in found.listings:
        if any(len(row) != len(listed.columns) for row in listed.rows):
            return f"listing {listed.name!r} has a row with another number of columns"
        if LISTING_NAME.fullmatch(listed.name) is None:
            return f"a listing cannot be called {listed.name!r}"
    files = {sheet.name for sheet in found.sheets}
    for sheet in found.sheets:
        first, *rest = sheet.name.split("/")
        taken = first.casefold() in RESERVED or (rest and first in files)
        if SHEET_NAME.fullmatch(sheet.name) is None or taken:
            return f"a sheet cannot be called {sheet.name!r}"
    for kind in (found.tables, found.listings, found.sheets, found.quantities):
        names = [part.name for part in kind]
        if len(set(names)) < len(names):
            return f"two parts are called {next(n for n in names if names.count(n) > 1)!r}"
    return None
