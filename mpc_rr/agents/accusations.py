"""What a party makes of a coordinator's accusations: whose word it is, and what is proved."""

from collections.abc import Callable

from mpc_rr.errors import Aborted, Misconduct, StudyError, listing, one_line
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.lifecycle import Verdict
from mpc_rr.network.mailbox import Proof

NOT_ME = "as far as this program knows, this party did what the protocol asks"


def weighed(verdict: Verdict, me: str, proof: Callable[[str], Proof | None]) -> StudyError:
    """The end that a coordinator's verdict of failure is to a party, in words for its owner.

    Only what this party has seen itself speaks for or against the coordinator. If it proves an
    accusation wrong, the coordinator is the one who is not honest.
    """
    proofs = {name: proof(name) for name in verdict.culprits}
    # What others have said follows after a colon: they must not be able to make it look a liar.
    charge, _, _ = verdict.cause.partition(":")
    cleared = {n: p for n, p in proofs.items() if p and p.honest and p.about in charge}
    said = one_line(verdict.cause)
    if cleared:
        shown = listing(f"{n} {p.deed}" for n, p in cleared.items())
        return Misconduct(
            f"the coordinator broke the protocol: it says: {said}; the board shows otherwise: "
            f"{shown}",
            [COORDINATOR],
        )
    guilty = [f"{n} {p.deed}" for n, p in proofs.items() if p and not p.honest]
    about = "commit" in verdict.cause.lower()  # in whatever words, and whoever's they are
    honest = [f"{n} {p.deed}" for n, p in proofs.items() if p and p.honest and about]
    parts = [f"the coordinator says: {said}"]
    if guilty:
        parts.append(f"the board confirms it: {listing(guilty)}")
    if honest:
        parts.append(f"the board shows: {listing(honest)}")
    own = proofs.get(me)
    if me in proofs and (own is None or own.honest):
        parts.append(NOT_ME)
    return Aborted("; ".join(parts), verdict.culprits)


def left_out(reason: str | None) -> str:
    """Why a party is not in a roster, in words for its owner."""
    if reason is None:
        return "the coordinator left this party out: the roster is closed, it may have been late"
    return f"the coordinator left this party out, and says: {one_line(reason)}; {NOT_ME}"
