"""Parts that several kinds of result share: tables of attributes, and their dependences."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from mpc_rr.estimation.clusters import Dependences
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.independence import Groups
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.strength import LOWER_TAIL, Strength
from mpc_rr.publication.ending import Draft
from mpc_rr.publication.parts import Axis, Column, Figure, Listing, Number, Sheet, Table
from mpc_rr.publication.sheets import csv_text
from mpc_rr.schema import Attribute, Schema

Known = Literal["exactly", "noisy", "in part"]
"""How a table of respondents is known: as it is, estimated, or with hidden cells."""
MEASURES = {"cramers_v": "V", "pearson_r": "r"}
DEPENDENCE = "dependence"
"""The name of the listing."""
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
    listed = Listing(
        name=DEPENDENCE, title=title, columns=columns, rows=tuple(rows),
        caption=_caption(found, known), main=main,
    )  # fmt: skip
    draft.listings.append(listed)
    draft.figures.append(
        Figure(
            kind="heat_map",
            of="dependence",
            title="0: independent, ±1: fully dependent; grey: it cannot be told from these answers",
        )
    )
    _add_sheet(draft, "dependence.csv", "the dependence of each pair, with its limits", listed)
    _add_merged(draft, schema, found)


def add_graph(
    draft: Draft, schema: Schema, dependences: Dependences, clusters: Sequence[Sequence[int]]
) -> None:
    """The dependences that made the clusters: a listing, strongest first, its picture, a sheet."""
    attributes, names = schema.attributes, schema.names
    cluster = {attribute: k for k, members in enumerate(clusters) for attribute in members}
    columns = (
        Column(name="attribute_1", label="", kind="attribute"),
        Column(name="attribute_2", label="", kind="attribute"),
        Column(name="measure", label=""),
        Column(name="value", label="degree", kind="degree"),
        Column(name="together", label="in one cluster"),
    )
    pairs = itertools.combinations(range(len(attributes)), 2)
    rows = [
        (
            names[i], names[j],
            "|r|" if attributes[i].type == attributes[j].type == "ordinal" else "V",
            round(float(dependences[i, j]), DIGITS), "yes" if cluster[i] == cluster[j] else "no",
        )
        for i, j in sorted(pairs, key=lambda pair: -dependences[pair])
    ]  # fmt: skip
    listed = Listing(
        name="dependence_graph", title="What made the clusters", columns=columns,
        rows=tuple(rows), main=False,
        caption="The degrees by which attributes were clustered, as the first stage found "
        "them: V, Cramér's V; |r|, Pearson's correlation of ranks without its sign. They say "
        "why attributes were randomized together; how strongly answers depend on each other "
        "is said with limits above, from all answers.",
    )  # fmt: skip
    draft.listings.append(listed)
    draft.figures.append(
        Figure(
            kind="graph", of="dependence_graph",
            title="The thicker a line, the stronger the dependence; coloured within a cluster, "
            "grey between clusters; none below 0.05",
        )
    )  # fmt: skip
    what = "the dependence graph that made the clusters, edge by edge"
    _add_sheet(draft, "dependence_graph.csv", what, listed)


def _add_sheet(draft: Draft, name: str, what: str, listed: Listing) -> None:
    head: tuple[object, ...] = tuple(column.name for column in listed.columns)
    draft.sheets.append(Sheet.of(name, what, csv_text([head, *listed.rows])))


def _add_merged(draft: Draft, schema: Schema, found: Mapping[tuple[int, int], Strength]) -> None:
    """Which rare answers were taken together for V, and in which pairs."""
    merged: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for pair, strength in found.items():
        both = strength.groups or ((), ())
        for attribute, other, groups in zip(pair, reversed(pair), both, strict=True):
            for group in groups:
                if len(group) > 1:
                    answers = [schema.attributes[attribute].answer_codes[k] for k in group]
                    merged.setdefault((attribute, tuple(answers)), []).append(other)
    if not merged:
        return
    columns = (
        Column(name="attribute", label="", kind="attribute"),
        Column(name="answers", label="taken together"),
        Column(name="beside", label="for V with", kind="attribute"),
    )
    rows = []
    for (attribute, codes), others in sorted(merged.items()):
        categories = [schema.attributes[attribute].categories[k] for k in codes]
        beside = tuple(schema.names[other] for other in sorted(others))
        rows.append((schema.names[attribute], ", ".join(categories), beside))
    draft.listings.append(
        Listing(
            name="taken_together", title="Rare answers that were taken together",
            columns=columns, rows=tuple(rows), main=False,
            caption="Too few gave these answers to tell them apart. The limits of V speak of the "
            "table in which they are one answer.",
        )
    )  # fmt: skip


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
        + ("For V, rare answers were taken together; the report says which. " if merged else "")
        + ("Who did not answer both questions is left out. " if partly else "")
        + f"Of pairs that do not depend on each other, {LOWER_TAIL:.0%} are said to by chance"
        + (f": of {len(found)} such pairs, {here:.1f} on average." if here >= 0.1 else ".")
        + (
            " Limits that leave 0 out are not enough for that: a pair is said to depend only if "
            f"chance alone would make it look so in less than {LOWER_TAIL:.0%} of cases."
            if any(_is_near(strength) for strength in found.values())
            else ""
        )
    )


def _is_near(found: Strength) -> bool:
    """Whether limits leave out independence, and yet it is not ruled out."""
    return found.verdict == "cannot be told" and (found.low > 0 or found.high < 0)


def _are_merged(groups: tuple[Groups, Groups]) -> bool:
    return any(len(group) > 1 for axis in groups for group in axis)
