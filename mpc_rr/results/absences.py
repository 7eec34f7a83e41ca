"""Who is absent from a result: what a transcript shows, and what is the coordinator's word."""

from collections.abc import Sequence

import msgspec

from mpc_rr.network.session.replay import DoesNotHold
from mpc_rr.publication.parts import Absence, Participation

ANSWERING = ("silent", "faulty")
"""Why somebody's answer is missing cannot be seen from outside, only that it is."""


def with_reasons(
    found: Participation | None, told: Participation | None, members: Sequence[str]
) -> Participation:
    """Who took part, with the reasons that the coordinator tells; these cannot be checked."""
    if found is None or told is None:
        raise DoesNotHold("result.json does not say who took part")
    mine, theirs = _by_how(found), _by_how(told)
    for how in ("excluded", "withdrawn", "suppressed", "not asked"):
        if mine.get(how, {}) != theirs.get(how, {}):
            raise DoesNotHold(f"result.json: those who are {how!r} are not those of the transcript")
    if _names(mine, *ANSWERING) != _names(theirs, *ANSWERING):
        raise DoesNotHold("result.json: silent and faulty are not those without an answer")
    lost = theirs.get("dropped out", {})
    steps = {party: absence.step for party, absence in lost.items()}
    if found.told_by == "coordinator":
        counted = tuple(name for name in members if name not in lost)
        if not set(lost) <= set(members) or len(counted) != found.counted:
            raise DoesNotHold(
                "result.json: those who dropped out are not those who are not counted"
            )
        found = msgspec.structs.replace(found, counted_parties=counted)
    elif steps != {party: absence.step for party, absence in mine.get("dropped out", {}).items()}:
        raise DoesNotHold(
            "result.json: those who dropped out are not those whose messages are missing"
        )
    return msgspec.structs.replace(found, absent=told.absent)


def _by_how(people: Participation) -> dict[str, dict[str, Absence]]:
    found: dict[str, dict[str, Absence]] = {}
    for absence in people.absent:
        here = found.setdefault(absence.how, {})
        if absence.party in here:
            raise DoesNotHold(f"result.json: {absence.party} is {absence.how!r} twice")
        here[absence.party] = absence
    return found


def _names(by_how: dict[str, dict[str, Absence]], *hows: str) -> list[str]:
    return sorted(name for how in hows for name in by_how.get(how, {}))
