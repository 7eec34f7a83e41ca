"""How a curator wants a file randomized: a TOML file, or the same as Python's tables.

``[schema.…]`` as in a study file, and ``[randomize]``: one protection for all categories, ways for
single columns, groups of numbers whose noise is correlated. From the wishes and the records follow
the ways (`mpc_rr.curator.ways`) that the codebook tells.
"""

import csv
import io
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpc_rr.curator.ways import (
    AnyWay,
    AsItIs,
    Correlated,
    InvariantPram,
    KeptOrUniform,
    Laplace,
    Normal,
    NumberAsItIs,
    Pram,
    invariant,
    rows_of,
)
from mpc_rr.errors import DataError, InputError, MpcRrError, ScenarioError, all_quoted, quoted
from mpc_rr.estimation.lambdas import (
    keep_for_beta,
    keep_for_epsilon,
    kept_by_pair,
    lambdas_for_covariances,
)
from mpc_rr.estimation.matrix import (
    WORST_CONDITION,
    Array,
    Dense,
    KeepOrUniform,
    RRMatrix,
    check_share,
)
from mpc_rr.estimation.planning import lambdas_for_total
from mpc_rr.publication.sheets import csv_text, from_cell
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.file import schema_of_tables
from mpc_rr.study.file_errors import in_plain_words
from mpc_rr.study.layout import read_text

DELTA = 1e-6
"""Of normal noise."""
Codes = np.ndarray[Any, np.dtype[np.int64]]


class ColumnWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is wished of one column: one of these, and ``invariant`` beside a matrix."""

    keep: float | None = None
    """λ."""
    beta: float | None = None
    epsilon: float | None = None
    matrix: list[list[float]] | str | None = None
    """Itself, or a CSV file with it: a header with the categories, and a line for each."""
    noise: float | None = None
    """Of a number: the variance of normal noise, as a multiple of the column's own."""
    deviation: float | None = None
    """Of a number: the standard deviation of normal noise."""
    as_it_is: bool = False
    invariant: bool = False

    @property
    def chosen(self) -> list[str]:
        """Which of the ways are wished."""
        fields = ("keep", "beta", "epsilon", "matrix", "noise", "deviation")
        given = [field for field in fields if getattr(self, field) is not None]
        return [*given, *["as_it_is"] * self.as_it_is]


class CorrelatedWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers whose noise is as correlated as they are."""

    columns: list[str]
    noise: float


class Wishes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[randomize]``."""

    keep: float | None = None
    """λ of all columns of categories that have no wish of their own."""
    beta: float | None = None
    epsilon: float | None = None
    """For all of these together."""
    covariance: float | dict[str, float] | None = None
    """What all pairs of them keep of their covariance at least, or by pair (001, Eq. (9)); with
    ``beta``, as the least protection."""
    columns: dict[str, ColumnWish] = {}
    correlated: list[CorrelatedWish] = []


class _PlanFile(msgspec.Struct, forbid_unknown_fields=True):
    schema: dict[str, dict[str, Any]]
    randomize: Wishes = Wishes()


def read_plan(path: Path) -> tuple[Schema, Wishes]:
    """A plan's schema and wishes; `ScenarioError` says what is wrong in it."""
    try:
        tables = tomllib.loads(read_text(path))
        file = msgspec.convert(tables, _PlanFile)
        return schema_of_tables(file.schema), file.randomize
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {in_plain_words(error, _PlanFile)}") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: not a TOML file: {error}") from None
    except MpcRrError as error:
        raise ScenarioError(f"{path}: {error}") from None


def with_defaults(
    wishes: Wishes, keep: float | None, beta: float | None, epsilon: float | None
) -> Wishes:
    """The wishes with a protection for all from elsewhere; `InputError` if there are two."""
    given = {"keep": keep, "beta": beta, "epsilon": epsilon}
    wished = {name: value for name, value in given.items() if value is not None}
    there = [name for name in given if getattr(wishes, name) is not None]
    if len(wished) + len(there) > 1:
        raise InputError("for all columns give one of lambda, beta and epsilon, in one place")
    return msgspec.structs.replace(wishes, **wished)


def wishes_of(columns: Mapping[str, Mapping[str, Any]] | None, **rest: Any) -> Wishes:
    """The same table from Python."""
    given = {name: value for name, value in rest.items() if value is not None}
    try:
        return msgspec.convert({"columns": dict(columns or {}), **given}, Wishes)
    except msgspec.ValidationError as error:
        raise InputError(in_plain_words(error, Wishes)) from None


# ── From wishes to ways ────────────────────────────────────────────────────────────────────────


def ways_of(
    schema: Schema, wishes: Wishes, records: Codes, beside: Path | None = None
) -> tuple[tuple[AnyWay, ...], tuple[Correlated, ...]]:
    """How each column is randomized, and which have noise together.

    ``beside``: the folder in which files of matrices are looked for.
    """
    grouped = _check_names(schema, wishes)
    groups = tuple(_correlated(schema, wish, records) for wish in wishes.correlated)
    keeps = _keeps(schema, wishes)
    ways: list[AnyWay] = []
    for place, attribute in enumerate(schema.attributes):
        wish, where = wishes.columns.get(attribute.name), f"column {quoted(attribute.name)}"
        try:
            if attribute.name in grouped:
                number = grouped[attribute.name]
                ways.append(_of_group(attribute, groups[number], number))
            elif attribute.numeric:
                ways.append(_of_number(attribute, wish, records[:, place]))
            elif wish is None:
                ways.append(_kept(attribute.size, keeps[attribute.name]))
            else:
                ways.append(_of_categories(attribute, wish, records[:, place], beside))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return tuple(ways), groups


def _check_names(schema: Schema, wishes: Wishes) -> dict[str, int]:
    """In which group each number is that is in one; `InputError` if a name makes no sense."""
    grouped: dict[str, int] = {}
    for name in (*wishes.columns, *(n for wish in wishes.correlated for n in wish.columns)):
        if name not in schema.names:
            raise InputError(
                f"there is no column {quoted(name)}; they are {all_quoted(schema.names)}"
            )
    for number, wish in enumerate(wishes.correlated):
        if len(wish.columns) < 2:
            raise InputError("correlated noise needs at least two columns")
        for name in wish.columns:
            if name in grouped or name in wishes.columns:
                raise InputError(f"column {quoted(name)} is to be randomized twice")
            if not schema.attribute(name).numeric:
                raise InputError(f"column {quoted(name)}: noise is for numbers, not for categories")
            grouped[name] = number
    return grouped


def _keeps(schema: Schema, wishes: Wishes) -> dict[str, float]:
    """λ of each column of categories without a wish of its own, by the protection of all."""
    rest = [a for a in schema.attributes if not a.numeric and a.name not in wishes.columns]
    if not rest:
        return {}
    names, sizes = [a.name for a in rest], [a.size for a in rest]
    beta = None if wishes.covariance is not None else wishes.beta  # beside it, a least protection
    ways = (wishes.keep, beta, wishes.epsilon, wishes.covariance)
    if sum(way is not None for way in ways) != 1:
        raise InputError(
            f"give one of lambda, beta, epsilon and covariance for {all_quoted(names)}, or a way "
            "for each"
        )
    if wishes.covariance is not None:
        kept = kept_by_pair(names, wishes.covariance)
        keeps = lambdas_for_covariances(sizes, kept, wishes.beta, names)
        return dict(zip(names, keeps, strict=True))
    if wishes.keep is not None:
        return dict.fromkeys(names, check_share("lambda", wishes.keep))
    if wishes.beta is not None:
        return {n: keep_for_beta(s, wishes.beta) for n, s in zip(names, sizes, strict=True)}
    assert wishes.epsilon is not None
    if not 0 < wishes.epsilon < math.inf:
        raise InputError(f"epsilon must be positive, not {wishes.epsilon}")
    return dict(zip(names, lambdas_for_total(sizes, wishes.epsilon), strict=True))


def _kept(size: int, keep: float) -> AnyWay:
    way = AsItIs(size=size) if keep == 1 else KeptOrUniform(size=size, keep=keep)
    _check_told(way.matrix)
    return way


def _check_told(matrix: RRMatrix) -> None:
    if matrix.condition > WORST_CONDITION:
        raise InputError("nothing of the true values would be left; randomize less")


def _of_categories(
    attribute: Attribute, wish: ColumnWish, codes: Codes, beside: Path | None
) -> AnyWay:
    chosen = wish.chosen
    if len(chosen) != 1 or chosen[0] in {"noise", "deviation"}:
        raise InputError("give one of keep, beta, epsilon, matrix and as_it_is")
    if wish.as_it_is:
        return _kept(attribute.size, 1.0)
    if wish.matrix is not None:
        matrix: RRMatrix = _given_matrix(wish.matrix, attribute, beside)
    elif wish.keep is not None:
        matrix = KeepOrUniform(attribute.size, wish.keep)
    elif wish.beta is not None:
        matrix = KeepOrUniform(attribute.size, keep_for_beta(attribute.size, wish.beta))
    else:
        matrix = KeepOrUniform(attribute.size, keep_for_epsilon(attribute.size, wish.epsilon or 0))
    if wish.invariant:
        shares = np.bincount(codes, minlength=attribute.size) / len(codes)
        found: InvariantPram = invariant(matrix, shares)
        _check_told(found.matrix)
        return found
    if isinstance(matrix, KeepOrUniform):
        return _kept(attribute.size, matrix.keep)
    _check_told(matrix)
    return Pram(rows=rows_of(matrix.dense()))


def _given_matrix(
    given: Sequence[Sequence[float]] | str, attribute: Attribute, beside: Path | None
) -> Dense:
    rows = given if not isinstance(given, str) else _matrix_file(given, attribute, beside)
    matrix = Dense(rows)
    if matrix.size != attribute.size:
        raise InputError(
            f"its matrix is {matrix.size} x {matrix.size}, for {attribute.size} categories"
        )
    return matrix


def _matrix_file(name: str, attribute: Attribute, beside: Path | None) -> list[list[float]]:
    """Rows and columns in the order of the categories, however they stand in the file."""
    path = (beside or Path()) / name
    lines = [row for row in csv.reader(io.StringIO(read_text(path), newline="")) if row]
    heads = [from_cell(cell.strip()) for cell in lines[0][1:]] if lines else []
    rows = {from_cell(line[0].strip()): line[1:] for line in lines[1:]}
    wanted = set(attribute.categories)
    if set(heads) != wanted or set(rows) != wanted or {len(heads), len(lines) - 1} != {len(wanted)}:
        head, first = csv_text([["", *attribute.categories], _even_row(attribute)]).splitlines()
        missing = "" if attribute.missing is None else f", {quoted(attribute.missing)} too"
        raise DataError(
            f"{path}: its header and its first column must name each category once{missing}: write "
            f"{quoted(head)}, then a line for each of them, as {quoted(first)}"
        )
    places = [heads.index(category) for category in attribute.categories]
    try:
        return [[float(rows[c][place]) for place in places] for c in attribute.categories]
    except (ValueError, IndexError):
        raise DataError(f"{path}: a probability is missing, or no number") from None


def _even_row(attribute: Attribute) -> list[object]:
    """A line of such a file: the first category is kept with probability 0.7."""
    others = [round(0.3 / (attribute.size - 1), 3)] * (attribute.size - 1)
    return [attribute.categories[0], round(1 - math.fsum(others), 3), *others]


# ── Numbers ────────────────────────────────────────────────────────────────────────────────────


def _range(attribute: Attribute) -> tuple[float, float, float]:
    assert attribute.lowest is not None
    assert attribute.highest is not None
    assert attribute.step is not None
    if attribute.missing is not None:
        raise InputError(
            "noise does not hide that a number is missing; give the column bins, with a category "
            "for those who gave no answer, or leave it out"
        )
    return attribute.lowest, attribute.number(attribute.size - 1), attribute.step


def _of_number(attribute: Attribute, wish: ColumnWish | None, codes: Codes) -> AnyWay:
    lowest, highest, step = _range(attribute)
    chosen = [] if wish is None else wish.chosen
    if (
        wish is None
        or wish.invariant
        or len(chosen) != 1
        or chosen[0] in {"keep", "beta", "matrix"}
    ):
        raise InputError("it is a number: give one of epsilon, noise, deviation and as_it_is")
    if wish.as_it_is:
        return NumberAsItIs(step=step)
    if wish.epsilon is not None:
        return Laplace(lowest=lowest, highest=highest, step=step, spent=wish.epsilon)
    deviation = wish.deviation
    if wish.noise is not None:
        _check_noise(wish.noise)
        deviation = step * math.sqrt(wish.noise * float(np.var(codes, ddof=1)))
    assert deviation is not None
    return Normal(
        step=step, lowest=lowest, highest=highest, deviation=deviation, delta=DELTA,
        from_file=wish.noise is not None,
    )  # fmt: skip


def _check_noise(noise: float) -> None:
    if not 0 < noise < math.inf:
        raise InputError(f"noise must be positive, not {noise}")


def numbers_of(schema: Schema, names: Sequence[str], records: Codes) -> Array:
    """Columns of numbers in their units."""
    columns = []
    for name in names:
        attribute = schema.attribute(name)
        lowest, _, step = _range(attribute)
        columns.append(lowest + step * records[:, schema.names.index(name)])
    return np.stack(columns, axis=1)


def _correlated(schema: Schema, wish: CorrelatedWish, records: Codes) -> Correlated:
    _check_noise(wish.noise)
    own = np.cov(numbers_of(schema, wish.columns, records), rowvar=False)
    scale = np.sqrt(np.diag(own))
    if not scale.all() or np.linalg.cond(own / np.outer(scale, scale)) > WORST_CONDITION:
        raise InputError(
            f"{all_quoted(wish.columns)}: one of them follows from the others, or does not vary: "
            "noise as correlated as they are would not hide it; leave it out"
        )
    return Correlated(
        columns=tuple(wish.columns), share=wish.noise, covariance=rows_of(wish.noise * own)
    )


def _of_group(attribute: Attribute, group: Correlated, number: int) -> Normal:
    lowest, highest, step = _range(attribute)
    place = group.columns.index(attribute.name)
    return Normal(
        step=step, lowest=lowest, highest=highest, delta=DELTA, from_file=True, group=number,
        deviation=math.sqrt(group.covariance[place][place]),
    )  # fmt: skip
