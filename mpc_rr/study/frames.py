"""Records, a schema, or a whole study from a data frame: without a file.

What a column becomes follows the same rules as a draft from a CSV file (`mpc_rr.study.suggesting`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import DataError, ScenarioError
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.schema import Attribute, Record, Schema, interval_labels
from mpc_rr.study.checks import check_study, name_from, protocol_of
from mpc_rr.study.columns import (
    categories_of,
    check_single,
    column_names,
    column_of,
    encoded,
    is_gap,
    value_text,
    values_of,
)
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.suggesting import (
    MOST_CATEGORIES,
    Bins,
    Categories,
    Unsuitable,
    suggest,
    too_many,
)

Edges = Mapping[str, Sequence[float]]
"""The edges of the bins of some columns, by name."""


def schema_from_frame(
    frame: Any,
    *,
    bins: Edges | None = None,
    missing: str | None = "no answer",
    attributes: Sequence[str] | None = None,
) -> Schema:
    """What a data frame (or a dict of columns) answers, as the schema of a study.

    Categories and bins become part of the study, which everybody sees. They must be what is known
    of the question anyhow, not what these records happen to hold: a category that only one person
    has tells that this person is there. Look at the schema before you use it; give ``bins``
    yourself, and declare categories in the frame (pandas' categorical, polars' Enum).

    Declared categories are kept in their order, with an order if the frame says so. Otherwise few
    numbers become categories with an order, many numbers become bins at round numbers, texts become
    categories. Columns with gaps get the category ``missing``. `DataError` tells of columns of
    which no question can be made; ``attributes`` names the columns to be asked, in this order.
    """
    edges = dict(bins or {})
    names = column_names(frame) if attributes is None else list(attributes)
    stray = [name for name in edges if name not in names]
    if stray:
        raise DataError(f"bins are given for {stray[0]!r}, which is not among the columns")
    held = {name: column_of(frame, name) for name in names}
    listed = {name: values_of(column, name) for name, column in held.items()}
    _check_lengths({name: len(values) for name, values in listed.items()})
    made = []
    for name, values in listed.items():
        column = held[name]
        if name in edges:
            made.append(_binned(name, values, edges[name], missing))
        else:
            made.append(_attribute(name, _suggested(name, column, values), values, missing))
    schema = Schema(tuple(made))
    schema.check_words()
    return schema


def unsuitable_columns(frame: Any) -> dict[str, str]:
    """Columns of which no question can be made, and why."""
    found = {}
    for name in column_names(frame):
        values = values_of(column_of(frame, name), name)
        kind = suggest([value_text(value) for value in values if not is_gap(value)])
        if isinstance(kind, Unsuitable):
            found[name] = kind.why
    return found


def _check_lengths(lengths: Mapping[str, int]) -> None:
    if not lengths or not max(lengths.values()):
        raise DataError("the frame is empty: it has no columns, or no rows")
    name, first = next(iter(lengths.items()))
    other = next((n for n, length in lengths.items() if length != first), None)
    if other is not None:
        raise DataError(f"column {other!r} has {lengths[other]} rows, but {name!r} has {first}")


def study_from_frame(  # noqa: PLR0913  (one for each line of a study file)
    frame: Any,
    *,
    protocol: StudyProtocol | Mapping[str, Any] | str,
    title: str,
    name: str | None = None,
    description: str = "",
    parties: int | None = None,
    minimum: int | None = None,
    bins: Edges | None = None,
    missing: str | None = "no answer",
    attributes: Sequence[str] | None = None,
    deadlines: Deadlines | None = None,
) -> Study:
    """A study that asks what a data frame answers; by default of as many parties as it has rows.

    The schema is that of `schema_from_frame`, and the same warning holds: categories and bins are
    public, and must be what is known of the questions anyhow. The protocol is given as an object,
    as the table of a study file (``{"name": "rr_independent", "keep": 0.5}``), or by its name. The
    study is checked like one from a file: `ScenarioError` says what is wrong.
    """
    schema = schema_from_frame(frame, bins=bins, missing=missing, attributes=attributes)
    rows = len(values_of(column_of(frame, schema.names[0]), schema.names[0]))
    study = Study(
        name=name_from(title) if name is None else name,
        title=title,
        description=description,
        schema=schema,
        protocol=_protocol(protocol),
        parties=Parties(rows if parties is None else parties, minimum),
        deadlines=Deadlines() if deadlines is None else deadlines,
    )
    check_study(study)
    return study


def _protocol(given: StudyProtocol | Mapping[str, Any] | str) -> StudyProtocol:
    if isinstance(given, StudyProtocol):
        return given
    if not isinstance(given, str | Mapping):
        raise ScenarioError(
            "protocol: give a protocol with its options (RRViews(epsilon=2)), a table, or a name"
        )
    found = protocol_of({"name": given} if isinstance(given, str) else dict(given))
    if found is None:
        raise ScenarioError("protocol: 'name' is missing")
    return found


def _suggested(name: str, column: Any, values: Sequence[Any]) -> Categories | Bins:
    """What kind of question a column answers; `DataError` if none."""
    check_single(values, name)
    declared = categories_of(column)
    found: Categories | Bins | Unsuitable
    if declared is not None:
        found = _declared(declared, ordinal=bool(getattr(column.dtype, "ordered", False)))
    elif set(map(type, values)) - {type(None)} == {bool}:
        found = Categories(("False", "True"), ordinal=False)
    else:
        found = suggest(_given(values))
    if isinstance(found, Unsuitable):
        raise DataError(
            f"column {name!r}: {found.why}; leave it out (name the others in attributes=), or give "
            "its bins"
        )
    return found


def _declared(categories: Sequence[Any], *, ordinal: bool) -> Categories | Unsuitable:
    texts = tuple(_given(categories))
    if len(texts) > MOST_CATEGORIES:
        return too_many(len(texts))
    if len(texts) < 2:
        return Unsuitable("it has fewer than two categories")
    return Categories(texts, ordinal)


def _given(values: Sequence[Any]) -> list[str]:
    """The answers that were given, as text."""
    texts = (value_text(value) for value in values if value is not None)
    return [text for text in texts if text]


def _attribute(
    name: str, kind: Categories | Bins, values: Sequence[Any], missing: str | None
) -> Attribute:
    """The question of this kind, with a category for those who gave no answer."""
    rows = enumerate(values, start=1)
    gap = next((row for row, value in rows if is_gap(value)), None)
    if gap is not None and missing is None:
        raise DataError(f"row {gap}: column {name!r} has no value; name a category as missing=")
    edges = kind.edges if isinstance(kind, Bins) else None
    texts = interval_labels(kind.edges) if isinstance(kind, Bins) else kind.texts
    ordinal = isinstance(kind, Bins) or kind.ordinal
    unanswered = None if gap is None else missing
    if unanswered is not None and unanswered not in texts:
        texts = (*texts, unanswered)
    return Attribute(name, "ordinal" if ordinal else "nominal", texts, edges, unanswered)


def _binned(
    name: str, values: Sequence[Any], edges: Sequence[float], missing: str | None
) -> Attribute:
    """A question with the bins that were given; `DataError` if a value is in none of them."""
    try:
        rising = tuple(map(float, edges))
    except (TypeError, ValueError):
        raise DataError(f"bins of {name!r} are a list of numbers, the edges") from None
    attribute = _attribute(name, Bins(rising), values, missing)
    encoded(values, attribute)
    return attribute


# ── Records ────────────────────────────────────────────────────────────────────────────────────


def records_of(data: Any, schema: Schema) -> tuple[Record, ...]:
    """Records for parties: from a data frame, a dict of columns, or category numbers.

    `DataError` if a category number is none.
    """
    codes = np.asarray(data) if isinstance(data, list | tuple | np.ndarray) else None
    if codes is None:
        codes = records_from_frame(data, schema)
    elif codes.ndim != 2 or codes.shape[1] != len(schema.sizes) or codes.dtype.kind not in "iu":
        raise DataError(
            f"records are rows of {len(schema.sizes)} category numbers; for values as people write "
            "them, give a data frame or a dict of columns"
        )
    outside = np.argwhere((codes < 0) | (codes >= np.array(schema.sizes)))
    if len(outside):
        row, column = outside[0]
        raise DataError(
            f"row {row + 1}: attribute {schema.names[column]!r} has no category number "
            f"{codes[row, column]}"
        )
    return tuple(tuple(row) for row in codes.tolist())


def records_from_frame(frame: Any, schema: Schema) -> npt.NDArray[np.int64]:
    """Records as category numbers from a pandas or polars frame, or a dict of columns.

    Other columns than the schema's are ignored. None, NaN, and what pandas and polars have for
    missing values are no answer: the attribute's ``missing`` category, or a `DataError`. A number
    means the category that is written like it, or else the one of the same value: 4.0 is "4".
    Rows are counted from 1 in errors.
    """
    columns = [
        encoded(values_of(column_of(frame, attribute.name), attribute.name), attribute)
        for attribute in schema.attributes
    ]
    if len({len(column) for column in columns}) != 1 or not len(columns[0]):
        raise DataError("the columns are empty, or of different lengths")
    return np.stack(columns, axis=1)
