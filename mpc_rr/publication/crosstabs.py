"""Parts that several kinds of result share: tables of attributes, and their dependences."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.strength import LOWER_TAIL, Groups, Strength
from mpc_rr.publication.ending import Draft
from mpc_rr.publication.parts import Axis, Column, Figure, Listing, Number, Sheet, Table
from mpc_rr.publication.sheets import csv_text
from mpc_rr.schema import Attribute, Schema

Known = Literal["exactly", "noisy", "in part"]
"""How a table of respondents is known: as it is, estimated, or with hidden cells."""
MEASURES = {"cramers_v": "V", "pearson_r": "r"}
DIGITS = 6
"""Of degrees: so that they are the same on every machine."""
IN_FULL = "V: Cramér's V; r: Pearson's correlation of ranks"


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
    shares: Array,
    estimate: Estimate,
    limits: Limits,
    *,
    reported: npt.ArrayLike | None = None,
    main: bool = False,
) -> Table:
    """Estimated shares with their limits, and the unbiased estimate that they come from.

    Limits are for the population, and for the respondents themselves; no share lies outside.
    """
    population, respondents = limits.population.around(shares), limits.respondents.around(shares)
    return Table(
        name=table_name(attributes),
        axes=axes(attributes),
        kind="share",
        values=flat(shares),
        n=estimate.n,
        standard_errors=flat(estimate.standard_errors),
        low=flat(population.low),
        high=flat(population.high),
        respondents_low=flat(respondents.low),
        respondents_high=flat(respondents.high),
        unbiased=flat(estimate.shares),
        reported=None if reported is None else flat(reported),  # type: ignore[arg-type]
        speaks_of="population",
        main=main,
    )


def add_dependences(
    draft: Draft,
    schema: Schema,
    found: Mapping[tuple[int, int], Strength],
    *,
    title: str,
    known: Known = "noisy",
    main: bool = True,
) -> None:
    """A listing of the dependences, strongest first, its heat map, and a sheet."""
    exact = known == "exactly"
    tested = any(strength.p_value is not None for strength in found.values())
    partly = any(strength.answered is not None for strength in found.values())
    columns = (
        Column(name="attribute_1", label="", kind="attribute"),
        Column(name="attribute_2", label="", kind="attribute"),
        Column(name="measure", label=""),
        Column(name="value", label="here" if exact else "estimate", kind="degree"),
        Column(name="low", label="from", kind="limit"),
        Column(name="high", label="to", kind="limit"),
        Column(name="verdict", label="strength"),
        *((Column(name="answered", label="answered", kind="count"),) if partly else ()),
        *((Column(name="p_value", label="p", kind="p-value"),) if tested else ()),
    )
    order = sorted(found, key=lambda pair: -abs(_told(found[pair], exact) or 0.0))
    rows = [
        (
            schema.names[i], schema.names[j], MEASURES[found[i, j].measure],
            _told(found[i, j], exact), round(found[i, j].low, DIGITS),
            round(found[i, j].high, DIGITS), in_words(found[i, j]),
            *((_people(found[i, j]),) if partly else ()),
            *((found[i, j].p_value,) if tested else ()),
        )
        for i, j in order
    ]  # fmt: skip
    draft.listings.append(
        Listing(
            name="dependence", title=title, columns=columns, rows=tuple(rows),
            caption=_caption(found, known), main=main,
        )
    )  # fmt: skip
    draft.figures.append(
        Figure(
            kind="heat_map",
            of="dependence",
            title="0: independent, ±1: fully dependent; grey: it cannot be told from these answers",
        )
    )
    lines: list[tuple[object, ...]] = [tuple(column.name for column in columns), *rows]
    draft.sheets.append(
        Sheet.of("dependence.csv", "the dependence of each pair, with its limits", csv_text(lines))
    )


def _told(found: Strength, exact: bool) -> float | None:
    """The degree, unless the answers do not tell it."""
    if found.value is None or (found.verdict == "cannot be told" and not exact):
        return None
    return round(found.value, DIGITS)


def _people(found: Strength) -> int | None:
    """How many answered both questions, where one need not."""
    return None if found.answered is None else round(found.answered)


def in_words(found: Strength) -> str:
    """What may be said of a dependence in the population."""
    if found.bound is None:
        return found.verdict
    # Towards the safe side: a bound that is rounded must still hold.
    digits = math.floor if found.verdict == "at least" else math.ceil
    return f"{found.verdict} {digits(found.bound * 100) / 100:.2f}"


def _caption(found: Mapping[tuple[int, int], Strength], known: Known) -> str:
    if known == "in part":
        return f"{IN_FULL}. The limits hold for these respondents, whatever the hidden counts are."
    tested = any(strength.p_value is not None for strength in found.values())
    partly = any(strength.answered is not None for strength in found.values())
    merged = any(d.groups is not None and _are_merged(d.groups) for d in found.values())
    here = len(found) * LOWER_TAIL
    return (
        f"{IN_FULL}{'; p: of independence' if tested else ''}. "
        + ("“Here” is the degree among these respondents. " if known == "exactly" else "")
        + "The limits hold for the population that the respondents were drawn from, with 95 % "
        "confidence for each pair. "
        + ("For V, rare answers were taken together. " if merged else "")
        + ("Who did not answer both questions is left out. " if partly else "")
        + f"Of pairs that do not depend on each other, {LOWER_TAIL:.0%} are said to by chance"
        + (f": of {len(found)} such pairs, {here:.1f} on average." if here >= 0.1 else ".")
    )


def _are_merged(groups: tuple[Groups, Groups]) -> bool:
    return any(len(group) > 1 for axis in groups for group in axis)
