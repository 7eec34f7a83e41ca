"""β of 001: how much of the uncertainty about answers a randomization leaves, beside its ε.

Reports are evenly distributed if the answers are, so what is uncertain of a report, given the
answer, is as uncertain of the answer, given the report. Only of answers that are randomized, each
attribute or cluster by itself, is there such a number; screen, plan, result and report all have it
from this file.
"""

import math
from collections.abc import Iterable, Sequence

from mpc_rr.estimation.matrix import KeepOrUniform, RRMatrix
from mpc_rr.privacy.disclosures import Disclosure, MatrixResponse, RandomizedResponse

MEANING = (
    "β says how much stays uncertain, on average and in bits, for someone to whom all answers "
    "were equally probable before: 100 % if nothing is told, 0 % if all is."
)


def entropy_share(events: Sequence[Disclosure]) -> float | None:
    """β of these answers together; None if not all of them have one, or one is given twice."""
    known = [e for e in events if isinstance(e, RandomizedResponse | MatrixResponse)]
    told = [name for event in known for name in event.attributes]
    if len(known) < len(events) or len(set(told)) < len(told):
        return None
    several = [event for event in known if event.combinations > 1]
    if not several:
        return None
    most = math.fsum(math.log2(event.combinations) for event in several)
    return math.fsum(map(_left, several)) / most


def _left(event: RandomizedResponse | MatrixResponse) -> float:
    """How uncertain a uniform answer is, given its report, in bits."""
    if isinstance(event, MatrixResponse):
        return event.left * math.log2(event.combinations)
    return KeepOrUniform(event.combinations, event.keep).entropy_rate


def joint_share(matrices: Iterable[RRMatrix]) -> float | None:
    """β of independent randomizations: their entropy rates add up (001, Theorem 2)."""
    found = [matrix for matrix in matrices if matrix.size > 1]
    if not found:
        return None
    most = math.fsum(math.log2(matrix.size) for matrix in found)
    return math.fsum(matrix.entropy_rate for matrix in found) / most


def entropy_shares(events: Sequence[Disclosure]) -> dict[tuple[str, ...], float]:
    """The same of each event that has one, by its attributes: those of a cluster are one value."""
    shares = {event.attributes: entropy_share([event]) for event in events}
    return {names: share for names, share in shares.items() if share is not None}


def beta_cell(share: float | None) -> str:
    """In a column that is called β."""
    return "none" if share is None else f"{100 * share:.3g} %"


def beta_said(events: Sequence[Disclosure]) -> str:
    """A sentence on all answers together; nothing where they have no β."""
    share = entropy_share(events)
    if share is None:
        return ""
    return (
        f"β = {beta_cell(share)}: so much stays uncertain, on average and in bits, for someone to "
        "whom all answers were equally probable before."
    )
