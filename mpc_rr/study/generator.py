"""Invented populations, for simulations: attributes drawn one after the other."""

import msgspec
import numpy as np
import numpy.typing as npt

from mpc_rr.errors import DataError, ScenarioError
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one attribute is generated: by weights of its categories.

    With ``given``, the weights depend on the value of an attribute drawn before: ``weights`` is
    then a table from that attribute's categories to weights. For a numeric attribute the weights
    are those of ranges, ``between``; within a range all numbers are equally likely. If it may be
    missing, one weight more is that of no answer.
    """

    attribute: str
    weights: list[float] | dict[str, list[float]]
    given: str | None = None
    between: list[tuple[float, float]] | None = None


class Generator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invented population: attributes drawn one after the other, each perhaps given another."""

    draw: list[Draw]
    seed: int = 0

    def check(self, schema: Schema) -> None:
        """`ScenarioError` unless every attribute is drawn once, after what it depends on."""
        drawn: list[str] = []
        for draw in self.draw:
            where = f"data.generator: attribute {draw.attribute!r}"
            if draw.attribute not in schema.names:
                raise ScenarioError(f"{where} is not in the schema")
            if draw.attribute in drawn:
                raise ScenarioError(f"{where} is drawn twice")
            if draw.given is not None and draw.given not in drawn:
                raise ScenarioError(
                    f"{where} depends on {draw.given!r}, which is not drawn before it"
                )
            _weights(draw, schema)
            drawn.append(draw.attribute)
        missing = [name for name in schema.names if name not in drawn]
        if missing:
            raise ScenarioError(f"data.generator: attribute {missing[0]!r} is never drawn")

    def records(self, schema: Schema, count: int, rng: Randomness) -> list[Record]:
        """``count`` invented records."""
        self.check(schema)
        codes: dict[str, npt.NDArray[np.intp]] = {}
        for draw in self.draw:
            cumulative = np.cumsum(_weights(draw, schema), axis=1)
            rows = codes[draw.given] if draw.given is not None else np.zeros(count, dtype=np.intp)
            chances = rng.fork(draw.attribute).uniform((count,))
            drawn = (chances[:, None] >= cumulative[rows, :-1]).sum(axis=1)
            if draw.between is not None:
                limits = _ranges(draw, schema)[drawn]
                within = rng.fork(f"{draw.attribute}/within").uniform((count,))
                width = limits[:, 1] - limits[:, 0] + 1
                drawn = (limits[:, 0] + within * width).astype(np.intp)
            codes[draw.attribute] = drawn
        columns = [codes[name] for name in schema.names]
        return [tuple(int(code) for code in row) for row in zip(*columns, strict=True)]


def _weights(draw: Draw, schema: Schema) -> npt.NDArray[np.float64]:
    """One row of probabilities for each category of ``given`` (one row if there is none)."""
    where = f"data.generator: attribute {draw.attribute!r}"
    attribute = schema.attributes[schema.names.index(draw.attribute)]
    if draw.given is None:
        if isinstance(draw.weights, dict):
            raise ScenarioError(f"{where}: a table of weights needs 'given'")
        rows = [draw.weights]
    else:
        parent = schema.attributes[schema.names.index(draw.given)]
        if parent.numeric:
            raise ScenarioError(f"{where}: 'given' must name an attribute with categories")
        if not isinstance(draw.weights, dict) or set(draw.weights) != set(parent.categories):
            raise ScenarioError(f"{where}: weights must have one list for each {draw.given!r}")
        rows = [draw.weights[category] for category in parent.categories]
    if attribute.numeric != (draw.between is not None):
        raise ScenarioError(f"{where}: ranges (between) go with numeric attributes, and only these")
    size = attribute.size if draw.between is None else len(_ranges(draw, schema))
    for row in rows:
        if len(row) != size or min(row) < 0 or not 0 < sum(row) < float("inf"):
            raise ScenarioError(f"{where}: weights must be {size} non-negative numbers")
    table = np.asarray(rows, dtype=np.float64)
    shares: npt.NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
    return shares


def _ranges(draw: Draw, schema: Schema) -> npt.NDArray[np.int64]:
    """First and last code of each range of a numeric attribute."""
    attribute = schema.attributes[schema.names.index(draw.attribute)]
    try:
        codes = [[attribute.code(edge) for edge in limits] for limits in draw.between or ()]
    except DataError as error:
        raise ScenarioError(f"data.generator: {error}") from None
    if not codes or any(low > high for low, high in codes):
        raise ScenarioError(f"data.generator: attribute {draw.attribute!r}: ranges go upwards")
    if attribute.missing_code is not None:
        codes.append([attribute.missing_code] * 2)
    return np.array(codes, dtype=np.int64)
