"""Item non-response: how many gave no answer to a question that need not be answered."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import subset_intervals
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import Target, Uncertainty
from mpc_rr.publication.ending import Draft
from mpc_rr.publication.parts import LEVEL, Column, Listing, Table
from mpc_rr.schema import Attribute, Schema

NO_ANSWER = "no_answer"
"""The name of the listing."""
COLUMNS = (
    Column(name="attribute", label="", kind="attribute"),
    Column(name="asked", label="parties", kind="count"),
    Column(name="unanswered", label="no answer", kind="count"),
    Column(name="share", label="share", kind="share"),
)
ESTIMATED = (
    *COLUMNS[:2],
    Column(name="unanswered", label="no answer (share × parties)", kind="count"),
    *COLUMNS[3:],
)
LIMITS = (
    Column(name="low", label="from", kind="share"),
    Column(name="high", label="to", kind="share"),
)
SPEAKS_OF: dict[Target, str] = {
    "population": "Parties: who were asked the question and are counted. From randomized answers, "
    "how many gave none is estimated. The 95 % limits of the share are for the population that the "
    "respondents were drawn from.",
    "respondents": "Estimated from counts with noise, with 95 % limits of the share for these "
    "respondents.",
}


@dataclass(frozen=True)
class NoAnswer:
    """Of one question: how many were asked, and which share of them gave no answer."""

    attribute: str
    asked: int
    share: float | None
    """None: it is hidden."""
    limits: tuple[float, float] | None = None
    """Where it is estimated."""

    @property
    def count(self) -> int | None:
        """How many gave none; as estimated, a whole number."""
        return None if self.share is None else round(self.share * self.asked)


def counted(attribute: Attribute, asked: int, unanswered: int | None) -> NoAnswer:
    """Where it is known exactly, or hidden (None)."""
    share = None if unanswered is None else unanswered / asked if asked else 0.0
    return NoAnswer(attribute.name, asked, share)


def estimated(
    attribute: Attribute,
    axis: int,
    table: Array,
    uncertainty: Uncertainty,
    asked: int,
    of: Target = "population",
    published: Array | None = None,
) -> NoAnswer:
    """From the unbiased table of several attributes, of which this is the one at ``axis``.

    ``published``: the same table as it is shown, if that is another; the share is its.
    """
    chosen = np.zeros(table.shape, dtype=bool)
    np.moveaxis(chosen, axis, 0)[attribute.missing_code] = True
    share, fit = float(table[chosen].sum()), project_to_simplex(table).ravel()
    found = subset_intervals(np.array([share]), chosen.reshape(1, -1), uncertainty, fit, of, LEVEL)
    shown = share if published is None else float(published[chosen].sum())
    return _within(attribute, asked, shown, (float(found.low[0]), float(found.high[0])))


def _within(
    attribute: Attribute, asked: int, share: float, limits: tuple[float, float]
) -> NoAnswer:
    share = min(max(share, 0.0), 1.0)
    return NoAnswer(attribute.name, asked, share, (min(limits[0], share), max(limits[1], share)))


def told_alone(schema: Schema, tables: Sequence[Table]) -> list[NoAnswer]:
    """From the published tables of single attributes, which queries are answered from, too."""
    alone = {table.axes[0].attribute: table for table in tables if len(table.axes) == 1}
    found = []
    for attribute in schema.attributes:
        table, code = alone.get(attribute.name), attribute.missing_code
        if table is None or code is None:
            continue
        layers = (table.values, table.low or (), table.high or ())
        share, low, high = (float(layer[code] or 0.0) for layer in layers)  # none is hidden
        found.append(_within(attribute, table.n or 0, share, (low, high)))
    return found


def add_non_response(
    draft: Draft, found: Sequence[NoAnswer], of: Target = "population", caption: str = ""
) -> None:
    """A listing of them, where any question need not be answered."""
    if not found:
        return
    uncertain = any(one.limits is not None for one in found)
    rows = tuple(
        (
            one.attribute, one.asked, one.count, one.share,
            *((one.limits or (None, None)) if uncertain else ()),
        )
        for one in found
    )  # fmt: skip
    draft.listings.append(
        Listing(
            name=NO_ANSWER,
            title="Item non-response: no answer was given",
            columns=(*ESTIMATED, *LIMITS) if uncertain else COLUMNS,
            rows=rows,
            caption=" ".join(filter(None, (SPEAKS_OF[of] if uncertain else "", caption))),
        )
    )
