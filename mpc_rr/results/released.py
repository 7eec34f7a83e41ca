"""Conditions asked of released records: how many of these meet it, and what of the respondents.

A release is not the people. In groups, each value belongs to somebody of the group, but nobody
knows to whom; masked values were mapped back by rank, attribute by attribute.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mpc_rr.anonymization.pairings import Met, fewest_and_most
from mpc_rr.estimation.conditions import Condition
from mpc_rr.estimation.matrix import Array
from mpc_rr.publication.answers import Answer, between
from mpc_rr.publication.sheets import from_cell
from mpc_rr.schema import Attribute, Schema

Sheets = Mapping[str, str]
"""The texts of the sheets, by name."""
WHOSE = (
    "Within a group nobody can tell whose values are whose, so only these limits are known of the "
    "respondents."
)
MISCOUNTED = (
    "Some groups have more or fewer values than members, so nothing is sure of the respondents."
)
BY_RANK = (
    "Masked values were mapped back by rank, attribute by attribute, so the values of a row need "
    "not be one person's: of the respondents themselves it cannot be told."
)


@dataclass(frozen=True)
class Records:
    """Rows that tell some attributes, in codes of categories or in numbers."""

    columns: dict[int, Array]
    labels: tuple[str, ...]
    """The number of each row's group, or whose it is."""

    @classmethod
    def read(
        cls, text: str, schema: Schema, attributes: slice, label: int, names: Sequence[str] = ()
    ) -> "Records":
        """Of a sheet: where its attributes and the label are; only those of ``names``, if given."""
        header, *rows = _rows(text)
        columns = {}
        for place in range(len(header))[attributes]:
            if header[place] in (names or schema.names):
                attribute = schema.names.index(header[place])
                texts = [row[place] for row in rows]
                columns[attribute] = _read(texts, schema.attributes[attribute])
        return cls(columns, tuple(row[label] for row in rows))

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.labels)

    def tells(self, condition: Condition) -> bool:
        """Whether it has all attributes of a condition."""
        return set(condition.attributes) <= set(self.columns)

    def meeting(self, condition: Condition) -> tuple[int, int]:
        """How many rows meet a condition, of how many that tell all of its attributes."""
        told = ~np.any([np.isnan(self.columns[a]) for a in condition.attributes], axis=0)
        return int((condition.holds(self.columns) & told).sum()), int(told.sum())

    def by_label(self) -> dict[str, list[int]]:
        """The rows with each label."""
        found = defaultdict(list)
        for row, label in enumerate(self.labels):
            found[label].append(row)
        return found


def _rows(text: str) -> list[list[str]]:
    found = csv.reader(io.StringIO(text, newline=""))
    return [[from_cell(cell) for cell in row] for row in found if row]


def _read(texts: Sequence[str], attribute: Attribute) -> Array:
    """Codes or numbers; not a number where there is nothing."""
    if attribute.numeric:
        return np.array([float(text) if text else np.nan for text in texts])
    codes = {category: code for code, category in enumerate(attribute.categories)}
    return np.array([float(codes[text]) if text else np.nan for text in texts])


# ── In groups ──────────────────────────────────────────────────────────────────────────────────


def ask_groups(
    sheets: Sheets, kind: str, schema: Schema, condition: Condition, words: str, level: float
) -> Answer:
    """Of respondents in groups: counted where that is known, else between limits."""
    members, values, release = _grouped(sheets, kind, schema)
    for counted, what in ((members, "quasi-identifiers"), (values, "confidential values")):
        if counted.tells(condition):
            met, rows = counted.meeting(condition)
            return between(words, (met, met), rows, level, f"Counted among the {what}.", "")
    pairs = _possible(members, values, condition)
    if pairs is None:
        answer = _untold(words, members.rows, level, MISCOUNTED)
    else:
        answer = between(words, fewest_and_most(pairs), members.rows, level, WHOSE, WHOSE)
    if release is None:
        return answer
    met, rows = release.meeting(condition)
    return replace(answer, released=met, records=rows)


def _grouped(sheets: Sheets, kind: str, schema: Schema) -> tuple[Records, Records, Records | None]:
    """Members and values by group; and the released records, if these hold single values."""
    members = Records.read(sheets["groups.csv"], schema, slice(1, -1), -1)
    names = [name for a, name in enumerate(schema.names) if a not in members.columns]
    if kind == "anatomy":
        confidential = sheets["confidential.csv"]
        return members, Records.read(confidential, schema, slice(1, None), 0, names), None
    if kind == "permuted":
        release = Records.read(sheets["release.csv"], schema, slice(None), 0)
        values = Records.read(sheets["release.csv"], schema, slice(None), 0, names)
        return members, replace(values, labels=_beside(members, release)), release
    values = Records.read(sheets["release.csv"], schema, slice(1, None), 0, names)
    if kind == "generalized":
        return members, values, None
    return members, values, Records.read(sheets["release.csv"], schema, slice(1, None), 0)


def _beside(members: Records, release: Records) -> tuple[str, ...]:
    """The groups of records whose quasi-identifiers are published as they are, in their order."""
    if release.rows == members.rows and all(
        np.array_equal(release.columns[a], column) for a, column in members.columns.items()
    ):
        return members.labels
    return ("",) * release.rows


def _possible(members: Records, values: Records, condition: Condition) -> list[Met] | None:
    """For each group, which member would meet the condition with which value."""
    found, told = [], values.by_label()
    for group, people in members.by_label().items():
        beside = told.get(group, [])
        if len(people) != len(beside):
            return None
        crossed = {a: column[people][:, np.newaxis] for a, column in members.columns.items()} | {
            a: column[beside][np.newaxis, :] for a, column in values.columns.items()
        }
        found.append(np.broadcast_to(condition.holds(crossed), (len(people), len(beside))))
    return found


def _untold(words: str, n: int, level: float, how: str) -> Answer:
    return Answer(
        words, n, None, None, None, None, None, level, "released records", certain=True, how=how
    )


# ── Masked ─────────────────────────────────────────────────────────────────────────────────────


def ask_masked(
    sheets: Sheets, schema: Schema, condition: Condition, words: str, level: float
) -> Answer:
    """Of masked records: single attributes are as they were told, combinations are not."""
    release = Records.read(sheets["release.csv"], schema, slice(1, None), 0)
    met, rows = release.meeting(condition)
    masked: dict[int, list[str]] = defaultdict(list)
    for name, value in _rows(sheets["values.csv"])[1:]:
        masked[schema.names.index(name)].append(value)
    named = [a for a in condition.attributes if a in masked]
    as_told = not named or (
        len(condition.attributes) == 1
        and np.array_equal(
            np.sort(release.columns[named[0]]),
            np.sort(_read(masked[named[0]], schema.attributes[named[0]])),
        )
    )
    if as_told:
        told = "Counted among the values of all, which are released as they were told."
        return between(words, (met, met), rows, level, told, "")
    answer = _untold(words, rows, level, BY_RANK)
    return replace(answer, released=met, records=rows)
