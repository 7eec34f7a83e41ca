"""What is published of groups: one table or two, in four ways.

The confidential values of a group come in no order: nobody can tell whose is whose.

* ``microaggregated``: everybody in a group has the same quasi-identifiers, those of its centre.
  Where some gave no answer it is the centre of the others, and how many these are stands beside it.
* ``generalized``: the range of the group in each quasi-identifier (or the label of a hierarchy),
  and whether some gave no answer.
* ``anatomy``: the quasi-identifiers as they are, with the number of the group; and a second table
  of the group's confidential values (Xiao & Tao 2006).
* ``permuted``: the quasi-identifiers as they are, and beside each the confidential values of
  somebody of the same group (probabilistic k-anonymity, Soria-Comas & Domingo-Ferrer 2012).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.hierarchy import Labels
from mpc_rr.anonymization.table import Codes, Groups, Microdata, Rows

Lines = list[list[str]]
"""A header and rows."""
TOLD_DIGITS = 10


@dataclass(frozen=True)
class Grouped:
    """Quasi-identifiers in groups, and the confidential values of each group, in no order."""

    known: Microdata
    groups: Groups
    confidential: list[Microdata]
    """One table for each group."""
    labels: Labels | None = None
    """What a group is called in each quasi-identifier, where hierarchies say so."""

    @property
    def header(self) -> list[str]:
        """The names of all attributes."""
        values = self.confidential[0].attributes
        return [a.name for a in self.known.attributes] + [a.name for a in values]

    def values(self, number: int) -> Lines:
        """The confidential values of a group, as text."""
        table = self.confidential[number]
        return [
            [a.cell(code) for a, code in zip(table.attributes, row, strict=True)]
            for row in table.codes.tolist()
        ]


def centre(known: Microdata, rows: Rows) -> list[float]:
    """The centre of a group: mean of numbers, median of ordered categories, commonest category.

    That is of those who answered; if nobody did, the centre is no answer.
    """
    middle = []
    for place, attribute in enumerate(known.attributes):
        codes = known.answers(rows, place)
        if not len(codes):
            assert attribute.missing_code is not None
            middle.append(float(attribute.missing_code))
        elif attribute.numeric:
            middle.append(float(codes.mean()))
        elif attribute.type == "ordinal":
            middle.append(float(np.sort(codes)[(len(codes) - 1) // 2]))
        else:
            middle.append(float(np.argmax(np.bincount(codes))))
    return middle


def range_of(known: Microdata, rows: Rows) -> list[str]:
    """The range of a group in each attribute: ``21–29``, ``low–middle | no answer``, ``a | b``."""
    return [_range(known, rows, place) for place in range(len(known.attributes))]


def _range(known: Microdata, rows: Rows, place: int) -> str:
    attribute = known.attributes[place]
    codes = np.unique(known.codes[rows, place]).tolist()
    if len(codes) == 1:
        return attribute.cell(codes[0])
    if attribute.type == "nominal":
        return " | ".join(attribute.text(code) for code in codes)
    answers = np.unique(known.answers(rows, place)).tolist()
    ends = dict.fromkeys((attribute.text(answers[0]), attribute.text(answers[-1])))
    some = ("–".join(ends), *([attribute.missing or ""] if len(answers) < len(codes) else ()))
    return " | ".join(some)


def _told(known: Microdata, middle: Sequence[float]) -> list[str]:
    return [
        f"{a.number(value):.{TOLD_DIGITS}g}"
        if a.numeric and value != a.missing_code
        else a.cell(int(value))
        for a, value in zip(known.attributes, middle, strict=True)
    ]


def microaggregated(grouped: Grouped) -> dict[str, Lines]:
    """One table with the centres of the groups, and of how many answers each is the centre."""
    known = grouped.known
    partly = [place for place, a in enumerate(known.attributes) if a.missing is not None]

    def told(rows: Rows) -> list[str]:
        numbers = [str(len(known.answers(rows, place))) for place in partly]
        return [*_told(known, centre(known, rows)), *numbers]

    answered = [f"{known.attributes[place].name} (answered)" for place in partly]
    return {"release": _one_for_all(grouped, told, answered)}


def generalized(grouped: Grouped) -> dict[str, Lines]:
    """One table with the ranges or labels of the groups."""
    known, labels = grouped.known, grouped.labels

    def told(rows: Rows) -> list[str]:
        return range_of(known, rows) if labels is None else labels.texts(known, rows)

    return {"release": _one_for_all(grouped, told)}


def _one_for_all(
    grouped: Grouped, told: Callable[[Rows], list[str]], further: Sequence[str] = ()
) -> Lines:
    known = len(grouped.known.attributes)
    sheet = [["group", *grouped.header[:known], *further, *grouped.header[known:]]]
    for number, rows in enumerate(grouped.groups):
        same = told(rows)
        sheet += [[str(number + 1), *same, *values] for values in grouped.values(number)]
    return sheet


def anatomy(grouped: Grouped) -> dict[str, Lines]:
    """Two tables that the number of the group connects."""
    known, confidential = grouped.known, grouped.confidential[0].attributes
    first = [["group", *(a.name for a in known.attributes)]]
    second = [["group", *(a.name for a in confidential)]]
    for number, rows in enumerate(grouped.groups):
        first += [[str(number + 1), *row] for row in _as_they_are(known, rows)]
        second += [[str(number + 1), *values] for values in sorted(grouped.values(number))]
    return {"quasi_identifiers": first, "confidential": second}


def permuted(grouped: Grouped) -> dict[str, Lines]:
    """One table; the confidential values beside a record are somebody's of the same group.

    If more or fewer name a group than are in it, some cells stay empty: nothing is left out.
    """
    sheet = [grouped.header]
    no_record = [""] * len(grouped.known.attributes)
    no_values = [""] * (len(grouped.header) - len(no_record))
    for number, rows in enumerate(grouped.groups):
        records, values = _as_they_are(grouped.known, rows), grouped.values(number)
        for record, beside in itertools.zip_longest(records, values):
            sheet.append([*(record or no_record), *(beside or no_values)])
    return {"release": sheet}


def _as_they_are(known: Microdata, rows: Rows) -> Lines:
    codes: list[list[int]] = known.codes[rows].tolist()
    return [[a.cell(c) for a, c in zip(known.attributes, row, strict=True)] for row in codes]


RELEASES: dict[str, Callable[[Grouped], dict[str, Lines]]] = {
    "microaggregated": microaggregated,
    "generalized": generalized,
    "anatomy": anatomy,
    "permuted": permuted,
}


def group_values(
    attributes: int, groups: int, messages: Sequence[tuple[int, Sequence[int]]]
) -> list[Codes]:
    """The confidential codes of each group, in the order in which they came."""
    found: list[list[Sequence[int]]] = [[] for _ in range(groups)]
    for group, values in messages:
        found[group].append(values)
    return [np.array(of, dtype=np.int64).reshape(len(of), attributes) for of in found]
