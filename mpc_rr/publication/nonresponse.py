"""Item non-response: how many gave no answer to a question that need not be answered."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import subset_intervals
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import Target, Uncertainty
from mpc_rr.publication.ending import Draft
from mpc_rr.publication.parts import LEVEL, Column, Listing
from mpc_rr.schema import Attribute

NO_ANSWER = "no_answer"
"""The name of the listing."""
COLUMNS = (
    Column(name="attribute", label="", kind="attribute"),
    Column(name="asked", label="parties", kind="count"),
    Column(name="unanswered", label="no answer", kind="count"),
    Column(name="share", label="share", kind="share"),
)
LIMITS = (
    Column(name="low", label="from", kind="share"),
    Column(name="high", label="to", kind="share"),
)
SPEAKS_OF: dict[Target, str] = {
    "population": "Estimated, with 95 % limits for the population that the respondents were drawn "
    "from.",
    "respondents": "Estimated, with 95 % limits for these respondents.",
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
) -> NoAnswer:
    """From the unbiased table of several attributes, of which this is the one at ``axis``."""
    chosen = np.zeros(table.shape, dtype=bool)
    np.moveaxis(chosen, axis, 0)[attribute.missing_code] = True
    share, fit = float(table[chosen].sum()), project_to_simplex(table).ravel()
    found = subset_intervals(np.array([share]), chosen.reshape(1, -1), uncertainty, fit, of, LEVEL)
    limits = (float(found.low[0]), float(found.high[0]))
    return NoAnswer(attribute.name, asked, min(max(share, 0.0), 1.0), limits)


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
            columns=(*COLUMNS, *LIMITS) if uncertain else COLUMNS,
            rows=rows,
            caption=" ".join(filter(None, (SPEAKS_OF[of] if uncertain else "", caption))),
        )
    )
