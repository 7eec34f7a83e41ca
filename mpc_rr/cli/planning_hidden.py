"""``mpc-rr plan`` for studies that hide people among each other: they have no ε to spend."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console

from mpc_rr.cli.console import print_json
from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Codes
from mpc_rr.planning.crowds import Effort
from mpc_rr.planning.hiding import Figure, GroupsPlan, plan_groups
from mpc_rr.planning.masking import MasksPlan, plan_masks
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.show.hiding import show_groups, show_masks
from mpc_rr.study.definition import Study

LEAST_PEOPLE = 4
"""Two groups of two."""
GROUPS = ("lost", "relations", "linked", "highest", "collector", "different", "left_out")
MASKS = ("moved", "correlation", "relations", "margin", "guessed", "fewest", "given_away")


def hides(study: Study) -> bool:
    """Whether its plan is one of groups or masks."""
    return isinstance(study.protocol, CollaborativeKAnonymity | CollaborativeMasking)


def check_options(study: Study, given: Mapping[str, object]) -> None:
    """`InputError` if an option was given that has no meaning here."""
    what = "k" if isinstance(study.protocol, CollaborativeKAnonymity) else "masks"
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option}: {study.protocol.name} spends no ε and has no design to choose; its "
                f"plan sets {what} against loss and risk. Leave {option} out"
            )


def plan_hidden(
    study: Study, records: Codes | None, n: int, effort: Effort
) -> GroupsPlan | MasksPlan:
    """Of a study whose respondents hide among each other, on records that are known."""
    if records is None:
        raise InputError(
            f"what {study.protocol.name} loses and risks is measured on records: give --pilot "
            "FILE.csv or --own-data"
        )
    setting, protocol, pilot = study.setting, study.protocol, records.astype(np.int64)
    protocol.check(setting)
    if isinstance(protocol, CollaborativeMasking):
        return plan_masks(protocol, setting.schema, pilot, n, effort)
    assert isinstance(protocol, CollaborativeKAnonymity)
    return plan_groups(protocol, setting.schema, pilot, n, effort)


def show_hidden(found: GroupsPlan | MasksPlan, *, as_json: bool) -> None:
    """For programs or for people."""
    if as_json:
        print_json(_groups(found) if isinstance(found, GroupsPlan) else _masks(found))
    elif isinstance(found, GroupsPlan):
        show_groups(Console(), found)
    else:
        show_masks(Console(), found)


def _groups(found: GroupsPlan) -> dict[str, Any]:
    return {
        **_people(found),
        "k": found.k,
        "suppress": found.suppress,
        "hierarchies_were_lent": found.lent,
        "ways": [
            {"way": way.name, "k": way.k, **{f: _figure(way.figure(f)) for f in GROUPS}}
            for way in found.ways
        ],
        "refused": dict(found.refused),
    }


def _masks(found: MasksPlan) -> dict[str, Any]:
    return {
        **_people(found),
        "recommended": found.recommended,
        "ways": [
            {
                "way": way.name,
                "attribute": way.attribute,
                "mask": way.mask,
                **{f: _figure(way.figure(f)) for f in MASKS},
                "fewest_for_anybody": None if way.for_anybody is None else _figure(way.for_anybody),
            }
            for way in found.ways
        ],
    }


def _people(found: GroupsPlan | MasksPlan) -> dict[str, Any]:
    return {
        "n": found.asked,
        "people": found.people,
        "pilot": found.pilot,
        "populations": found.populations,
    }


def _figure(found: Figure) -> dict[str, float | None] | None:
    if found.mean is None:
        return None
    return {"mean": found.mean, "standard_error": found.standard_error}
