"""The columns of a data frame, whoever made it: its values, and what they mean as answers.

Neither pandas nor polars is needed here: a frame is whatever gives a column by its name.
"""

import numbers
from collections.abc import Sequence
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import DataError
from mpc_rr.schema import Attribute

Codes = npt.NDArray[np.int64]

SURE = {str, int, bool, NoneType}
"""Types of which no value means that there is no answer, but None."""
SHORT: dict[str, type[np.floating[Any]]] = {"float16": np.float16, "float32": np.float32}
"""Numbers with fewer digits than Python's, as pandas, polars and numpy call them."""
EXACT = 1 << 53
"""From here on, different whole numbers may be the same float."""


def column_names(frame: Any) -> list[str]:
    """The names of all columns; `DataError` if they cannot be names of attributes."""
    _check_frame(frame)
    columns = getattr(frame, "columns", None)
    try:
        names = list(frame if columns is None else columns)
    except TypeError:
        raise DataError("a data frame or a dict of columns is needed") from None
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"column {name!r}: its name is not text; rename it")
        if names.count(name) > 1:
            raise DataError(f"column {name!r} is there twice; rename one, or leave it out")
    return names


def column_of(frame: Any, name: str) -> Any:
    """One column as the frame holds it."""
    _check_frame(frame)
    try:
        return frame[name]
    except Exception:  # noqa: BLE001  (each library has an exception of its own for this)
        raise DataError(f"there is no column {name!r}") from None


def _check_frame(frame: Any) -> None:
    if hasattr(frame, "collect"):
        raise DataError("the frame is lazy and holds no values yet; collect() it first")


def values_of(column: Any, name: str) -> list[Any]:
    """The values of a column as Python has them, None for every way to say that there is none."""
    if isinstance(column, str | bytes) or getattr(column, "ndim", 1) != 1:
        raise DataError(f"column {name!r} is not one list of values (is it there twice?)")
    try:
        values = _listed(column)
    except TypeError:
        raise DataError(f"column {name!r} is not a list of values") from None
    kinds = set(map(type, values))
    if kinds <= SURE:
        return values
    if kinds <= SURE | {float}:
        values = [None if value != value else value for value in values]  # noqa: PLR0124
    else:
        values = [None if _is_missing(value) else value for value in values]
    short = SHORT.get(str(getattr(column, "dtype", "")).lower())
    return values if short is None else _shortest(values, short)


def _listed(column: Any) -> list[Any]:
    categories = categories_of(column)
    codes = getattr(getattr(column, "cat", column), "codes", None)
    if categories is not None and codes is not None:  # pandas: values would change with a gap
        return [None if code < 0 else categories[code] for code in codes.tolist()]
    convert = getattr(column, "tolist", None) or getattr(column, "to_list", None)
    return list(column) if convert is None else list(convert())


def categories_of(column: Any) -> list[Any] | None:
    """The categories that the column itself declares, in their order, or None."""
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    convert = getattr(declared, "tolist", None) or getattr(declared, "to_list", None)
    return None if convert is None else list(convert())


def _is_missing(value: Any) -> bool:
    """Whether this is None, a NaN of any kind, or what pandas writes for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError, ArithmeticError):  # an array, or something odder
        return False


def _shortest(values: Sequence[Any], kind: type[np.floating[Any]]) -> list[Any]:
    """Short floats by their own decimals: 0.1, not 0.10000000149011612."""
    decimals = {value: float(str(kind(value))) for value in set(values) - {None}}
    return [decimals.get(value) for value in values]


def value_text(value: object) -> str:
    """A value as people write it: a number without digits behind the point has no point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value).strip()


def is_gap(value: object) -> bool:
    """Whether a value of `values_of` is no answer: nothing, or a text without letters."""
    return value is None or (type(value) not in (int, float, bool) and not value_text(value))


def encoded(values: Sequence[Any], attribute: Attribute) -> Codes:
    """The category numbers of a column's values; `DataError` with the first row that has none."""
    found = _intervals(values, attribute)
    if found is not None:
        return found
    # 1, 1.0 and True are the same key, but not the same text.
    alike = len(set(map(type, values)) - {str, NoneType}) <= 1
    keys = values if alike else list(zip(map(type, values), values, strict=True))
    try:
        distinct = dict(zip(keys, values, strict=True))
    except TypeError:
        check_single(values, attribute.name)
        raise
    codes: dict[object, int] = {}
    for key, value in distinct.items():
        try:
            codes[key] = _code(value, attribute)
        except DataError as error:
            raise DataError(f"row {keys.index(key) + 1}: {error}") from None
    return np.fromiter(map(codes.__getitem__, keys), dtype=np.int64, count=len(keys))


def check_single(values: Sequence[Any], name: str) -> None:
    """`DataError` if a value holds others, as a list does."""
    for row, value in enumerate(values, start=1):
        try:
            hash(value)
        except TypeError:
            kind = type(value).__name__
            raise DataError(
                f"row {row}: attribute {name!r}: a {kind} is no answer; one text or number is due "
                "in each row"
            ) from None


def _code(value: Any, attribute: Attribute) -> int:
    """`Attribute.code` of a value of a frame.

    The text of a category is that category, before anything is read as a number. (With bins, a text
    that is a number is one, as in a CSV file, even if an interval has such a name.)
    """
    text = str(value).strip()
    if attribute.bins is not None and text in attribute.categories and _as_number(text) is None:
        return attribute.categories.index(text)
    numbers = attribute.numeric or attribute.bins is not None
    meant = _missing(attribute) if numbers else tuple(attribute.told_as)
    number = _as_number(value)
    if number is None or text in meant or isinstance(value, str) or not abs(number) < EXACT:
        return attribute.code(value)
    if value_text(value) in meant:
        return attribute.code(value_text(value))
    equal = [category for category in meant if _as_number(category) == number]
    return attribute.code(equal[0] if len(equal) == 1 else value)


def _missing(attribute: Attribute) -> tuple[str, ...]:
    return () if attribute.missing is None else (attribute.missing,)


def _as_number(value: object) -> float | None:
    """A number, or a text that is one, as a float."""
    if not isinstance(value, str | numbers.Real | Decimal | np.bool_):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _intervals(values: Sequence[Any], attribute: Attribute) -> Codes | None:
    """The bins of a column of numbers, all at once.

    None if the attribute has no bins, or if any value is no number or in no bin.
    """
    bins = attribute.bins
    if bins is None or not set(map(type, values)) <= {int, float, NoneType}:
        return None
    try:
        found = np.array(values, dtype=np.float64)
    except OverflowError:
        return None
    unanswered = np.isnan(found)
    for missing in map(_as_number, _missing(attribute)):
        unanswered |= found == missing
    outside = ~unanswered & ~((found >= bins[0]) & (found <= bins[-1]))
    if outside.any() or (unanswered.any() and attribute.missing is None):
        return None
    codes = np.searchsorted(bins, found, side="right").clip(max=len(bins) - 1) - 1
    codes[unanswered] = len(attribute.categories) - 1
    return codes.astype(np.int64)
