"""Parts that several kinds of result share: tables of attributes, and their dependences."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mpc_rr.estimation.dependence import Dependence
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.publication.ending import Draft
from mpc_rr.publication.parts import LEVEL, Axis, Column, Figure, Listing, Number, Table
from mpc_rr.schema import Attribute, Schema

MEASURES = {"cramers_v": "Cramér's V", "abs_pearson_r": "|Pearson r|"}


def axes(attributes: Sequence[Attribute]) -> tuple[Axis, ...]:
    """The axes of a table."""
    return tuple(Axis(attribute=a.name, categories=a.categories) for a in attributes)


def table_name(attributes: Sequence[Attribute]) -> str:
    """The name of the table of some attributes."""
    return " & ".join(a.name for a in attributes)


def flat(table: npt.ArrayLike) -> tuple[Number, ...]:
    """All cells of an array, row by row."""
    return tuple(np.asarray(table).reshape(-1).tolist())


def share_table(
    attributes: Sequence[Attribute],
    shares: npt.ArrayLike,
    estimate: Estimate,
    *,
    reported: npt.ArrayLike | None = None,
    main: bool = False,
) -> Table:
    """Estimated shares, and the unbiased estimate with errors and limits they come from."""
    low, high = (limit.clip(0, 1) for limit in estimate.interval(LEVEL))
    return Table(
        name=table_name(attributes),
        axes=axes(attributes),
        kind="share",
        values=flat(shares),
        n=estimate.n,
        standard_errors=flat(estimate.standard_errors),
        low=flat(low),
        high=flat(high),
        unbiased=flat(estimate.shares),
        reported=None if reported is None else flat(reported),  # type: ignore[arg-type]
        speaks_of="population",
        main=main,
    )


def add_dependences(
    draft: Draft,
    schema: Schema,
    found: Mapping[tuple[int, int], Dependence],
    *,
    title: str,
    main: bool = True,
) -> None:
    """A listing of the dependences, strongest first, and its heat map."""
    tested = any(d.p_value is not None for d in found.values())
    columns = [
        Column(name="attribute_1", label="", kind="attribute"),
        Column(name="attribute_2", label="", kind="attribute"),
        Column(name="measure", label="measure"),
        Column(name="value", label="0 … 1", kind="degree"),
        *([Column(name="p_value", label="p-value", kind="p-value")] if tested else []),
    ]
    rows = [
        (
            schema.names[i], schema.names[j], MEASURES[d.measure], d.value,
            *([d.p_value] if tested else []),
        )
        for (i, j), d in sorted(found.items(), key=lambda item: -(item[1].value or 0.0))
    ]  # fmt: skip
    draft.listings.append(
        Listing(name="dependence", title=title, columns=tuple(columns), rows=tuple(rows), main=main)
    )
    draft.figures.append(
        Figure(kind="heat_map", of="dependence", title="0: independent, 1: fully dependent")
    )
