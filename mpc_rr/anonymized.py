"""What is published of a collaborative anonymization, and how well it protects."""

from dataclasses import asdict
from typing import Any

from mpc_rr.anonymization.masking import Noise, possible_values, read_mask
from mpc_rr.anonymization.releases import Grouped, Sheet
from mpc_rr.anonymization.risk import information_loss, linkage, protection
from mpc_rr.errors import listing
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.release import csv_text
from mpc_rr.schema import Attribute

Anonymized = KAnonymous | MaskedRelease
MOST_FOR_MATCHING = 3000
"""Up to so many respondents it is found out what all masked values together give away."""


def anonymized_document(found: Anonymized) -> dict[str, Any]:
    """The part of ``result.json`` that speaks of the release and of what it still tells."""
    document = _groups_document(found) if isinstance(found, KAnonymous) else _masks_document(found)
    return document | {
        "unusable_messages": found.unusable,
        "lost": dict(sorted(found.lost.items())),
        "unconfirmed": list(found.unconfirmed),
    }


def anonymized_files(found: Anonymized) -> dict[str, str]:
    """The release as CSV, and what it was made from."""
    sheets = _groups_sheets(found) if isinstance(found, KAnonymous) else _masks_sheets(found)
    return {f"{name}.csv": csv_text([list(row) for row in sheet]) for name, sheet in sheets.items()}


# ── Groups ─────────────────────────────────────────────────────────────────────────────────────


def _groups_document(found: KAnonymous) -> dict[str, Any]:
    grouped, options = found.grouped(), found.options
    smallest = min(len(group) for group in found.groups)
    return {
        "n": found.n,
        "k_wanted": options.k,
        "k_reached": smallest,
        "groups": len(found.groups),
        "partition": options.partition,
        "release": options.release,
        "levels": dict(zip(options.quasi_identifiers, found.levels, strict=False)),
        "protection": [
            {
                "attribute": p.attribute,
                "l_diversity": p.least_different,
                "entropy_l_diversity": p.entropy_diversity,
                "t_closeness": p.farthest,
                "given_away_by": _single_valued(grouped, place),
            }
            for place, p in enumerate(protection(grouped))
        ],
        "information_loss": asdict(information_loss(grouped.known, grouped.groups)),
        "record_linkage": asdict(linkage(grouped.known, grouped.groups, options.release)),
        "miscounted_groups": {
            str(number + 1): {"members": members, "messages": messages}
            for number, (members, messages) in found.miscounted.items()
        },
        "withdrawn": list(found.withdrawn),
        "fake_parties_to_single_out_one": smallest - 1,
    }


def groups_notes(document: dict[str, Any], *, open_study: bool) -> list[str]:
    """What a reader of the release must know, in sentences."""
    notes = []
    for p in document["protection"]:
        if p["given_away_by"]:
            numbers = listing([str(number) for number in p["given_away_by"]])
            several = "groups give" if len(p["given_away_by"]) > 1 else "group gives"
            notes.append(
                f"{len(p['given_away_by'])} {several} {p['attribute']} away, because all of its "
                f"members have the same: {numbers}."
            )
    for number, count in document["miscounted_groups"].items():
        notes.append(
            f"group {number} has {count['members']} members, but {count['messages']} messages name "
            "it: some respondent did not say the truth about her group."
        )
    if open_study:
        notes.append(
            f"the study was open: whoever brings {document['fake_parties_to_single_out_one']} "
            "parties of her own into the smallest group learns what its last member answered; "
            "fewer leave her with as many candidates less. A registrar prevents it."
        )
    return notes


def _single_valued(grouped: Grouped, place: int) -> list[int]:
    """The numbers of the groups in which all have the same value of an attribute."""
    return [
        number
        for number, part in enumerate(grouped.confidential, start=1)
        if len(part.codes) and len(set(part.codes[:, place].tolist())) == 1
    ]


def _groups_sheets(found: KAnonymous) -> dict[str, Sheet]:
    quasi = found.options.attributes(found.schema)[0]
    sheet = [["party", *(a.name for a in quasi), "group"]]
    for number, group in enumerate(found.groups, start=1):
        sheet += [[name, *_texts(quasi, found.known[name]), str(number)] for name in group]
    return found.sheets() | {"groups": sheet}


def _texts(attributes: tuple[Attribute, ...], codes: tuple[int, ...]) -> list[str]:
    return [a.text(code) for a, code in zip(attributes, codes, strict=True)]


# ── Masks ──────────────────────────────────────────────────────────────────────────────────────


def _masks_document(found: MaskedRelease) -> dict[str, Any]:
    confidential = found.options.attributes(found.schema)[1]
    document: dict[str, Any] = {
        "n": found.n,
        "values": {a.name: len(v) for a, v in zip(confidential, found.values, strict=True)},
        "masks": [
            {"attribute": a.name, "recommended": found.options.masks.get(a.name, "none")}
            | _attack(found, place, a)
            for place, a in enumerate(confidential)
        ],
    }
    if found.own:
        document["your_masks"] = [
            {
                "attribute": own.attribute,
                "mask": own.mask,
                "candidates": own.candidates.people,
                "different_candidates": own.candidates.values,
            }
            for own in found.own
        ]
    return document


def masks_notes(document: dict[str, Any], *, open_study: bool) -> list[str]:
    """What a reader of the release must know, in sentences."""
    notes = []
    for m in document["masks"]:
        given_away = m.get("respondents_given_away")
        if given_away:
            several = "respondents are" if given_away > 1 else "respondent is"
            notes.append(
                f"{given_away} {several} given away: for whoever puts all masked values together, "
                f"only one {m['attribute']} is possible. A wider mask prevents it."
            )
    if open_study:
        notes.append(
            "the study was open: whoever brings parties of her own has as many candidates less. A "
            "registrar prevents it."
        )
    return notes


def _attack(found: MaskedRelease, place: int, attribute: Attribute) -> dict[str, Any]:
    """What somebody finds who believes that everybody used the recommended noise."""
    mask = read_mask(found.options.masks.get(attribute.name, "none"), attribute)
    masked = [codes[place] for _, codes in found.records.values()]
    values = found.values[place]
    all_there = len(values) == len(masked) <= MOST_FOR_MATCHING
    if not isinstance(mask, Noise) or not all_there:
        return {}
    fits = possible_values(masked, values, mask.width)
    if fits is None:
        return {}
    sizes = sorted(len(values_left) for values_left in fits)
    return {
        "fewest_possible_values": sizes[0],
        "median_possible_values": sizes[len(sizes) // 2],
        "respondents_given_away": sum(size == 1 for size in sizes),
    }


def _masks_sheets(found: MaskedRelease) -> dict[str, Sheet]:
    open_attributes, confidential = found.options.attributes(found.schema)
    header = ["party", *(a.name for a in (*open_attributes, *confidential))]
    release, masked = [header], [header]
    for (name, (codes, hidden)), mapped in zip(
        found.records.items(), found.released(), strict=True
    ):
        start = [name, *_texts(open_attributes, codes)]
        release.append([*start, *_texts(confidential, mapped)])
        masked.append([*start, *_texts(confidential, hidden)])
    values = [["attribute", "value"]]
    for attribute, column in zip(confidential, found.values, strict=True):
        values += [[attribute.name, attribute.text(code)] for code in column]
    return {"release": release, "masked": masked, "values": values}
