"""Result format 1 (mpc-rr 0.1 before the rebuilding): read, and told from a publication.

Its folders hold the same transcript, so everything can be published anew from that. What
``result.json`` said in its eleven shapes is made here from a publication, to be compared.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.disclosures import (
    AdaptiveResponse,
    AnyDisclosure,
    ClusteredResponse,
    ExactSum,
    RandomizedSum,
    Recorded,
    bounded,
)
from mpc_rr.privacy.odds import certainty
from mpc_rr.publication.crosstabs import DEPENDENCE
from mpc_rr.publication.ending import dropped_out
from mpc_rr.publication.parts import (
    Absence,
    Cluster,
    ClusterDesign,
    Listing,
    Number,
    Participation,
    Publication,
    Table,
    ViewsDesign,
)
from mpc_rr.results import earlier
from mpc_rr.results.format import ProtocolHead, ResultFile, StudyHead, TranscriptHead
from mpc_rr.schema import Schema
from mpc_rr.study.definition import Study

REPORTS = "reports.csv"


def read(result: Mapping[str, Any]) -> ResultFile:
    """What ``result.json`` of format 1 says, but for what was found.

    ``KeyError``, ``TypeError`` or msgspec's ``ValidationError`` if it says something else.
    """
    file = ResultFile(
        rules=0,
        status=result["status"],
        study=StudyHead(**result["study"]),
        protocol=ProtocolHead(name=str(result["protocol"]), origin=""),
        admission=result["admission"],
        run=result["run"],
        coordinator=result["coordinator"],
        transport=result["transport"],
        seed=result["seed"],
        attempts=result["attempts"],
        transcript=TranscriptHead(**result["transcript"]),
        rejected_messages=result["rejected_messages"],
        cause=result.get("cause", ""),
        culprits=tuple(result.get("culprits", ())),
        publication=Publication(
            participation=_participation(result), randomization=_randomization(result.get("design"))
        ),
    )
    return msgspec.convert(msgspec.to_builtins(file), ResultFile)  # nothing was checked so far


def _participation(result: Mapping[str, Any]) -> Participation:
    parties = result["parties"]
    absent = [
        *(Absence(party=e["party"], how="excluded", reason=e["reason"])
          for e in parties["excluded"]),
        *(Absence(party=party, how="silent") for party in result.get("silent", ())),
        *(Absence(party=party, how="faulty", reason=why)
          for party, why in result.get("faulty", {}).items()),
        *(Absence(party=party, how="not asked") for party in result.get("not_asked", ())),
        *dropped_out(result.get("lost", {})),
        *(Absence(party=party, how="withdrawn") for party in result.get("withdrawn", ())),
    ]  # fmt: skip
    return Participation(
        expected=parties["expected"],
        present=result.get("asked"),
        counted=result.get("n"),
        counted_parties=tuple(parties["counted"]) or None,
        absent=tuple(absent),
        unconfirmed=tuple(parties["unconfirmed"]),
    )


def _randomization(design: Mapping[str, Any] | None) -> ClusterDesign | ViewsDesign | None:
    if not design:
        return None
    if "views" in design:
        views = tuple(tuple(view) for view in design["views"])
        return ViewsDesign(epsilon=design["epsilon"], views=views, sheet=REPORTS)
    clusters = tuple(
        Cluster(attributes=tuple(c["attributes"]), keep=c["keep"], epsilon=c["epsilon"])
        for c in design["clusters"]
    )
    return ClusterDesign(epsilon=design["epsilon"], clusters=clusters, sheet=REPORTS)


# ── What format 1 said of a publication ────────────────────────────────────────────────────────


HEAD = frozenset(
    {"format", "version", "status", "study", "protocol", "admission", "run", "coordinator"}
    | {"transport", "seed", "attempts", "transcript", "rejected_messages"}
)
"""What a ``result.json`` of format 1 says of every study."""


def document(study: Study, found: Publication) -> dict[str, Any]:
    """What a ``result.json`` of format 1 says of a study that ended well, without its head."""
    people, protocol = found.participation, study.protocol.name
    assert people is not None
    assert found.privacy is not None
    return {
        "n": people.counted,
        "parties": {
            "expected": people.expected,
            "counted": list(people.counted_parties or ()),
            "excluded": [
                {"party": a.party, "reason": a.reason} for a in people.absent if a.how == "excluded"
            ],
            "unconfirmed": list(people.unconfirmed),
        },
        "privacy": _privacy(found.privacy, study.name, people.present),
        **KINDS[protocol](found, people),
        **_dependence(found, study.schema, p_values=protocol == "exact_pairs"),
    }


BLOCKS = "tables"
"""The key of the tables of `block_aggregation`."""


def compared(said: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Each part that a folder says, with what is expected, so that the same is the same today.

    Degrees of dependence are squared (`earlier.squared`); errors of blocks are no longer those.
    """
    return {key: (_comparable(key, said[key]), _comparable(key, expected[key])) for key in expected}


def _comparable(key: str, part: Any) -> Any:
    if key not in ("dependence", BLOCKS) or not isinstance(part, list):
        return part
    if not all(isinstance(row, dict) for row in part):
        return part
    if key == BLOCKS:
        return [{k: v for k, v in row.items() if k != "standard_errors"} for row in part]
    return [row | {"value": earlier.square(row.get("value"))} for row in part]


def _privacy(privacy: Privacy, study: str, present: int | None) -> dict[str, Any]:
    """Format 1 took everybody who was there for the crowd of a sum, honest or not."""
    events = [then for event in privacy.events for then in _of_then(event, present)]
    reading = Accountant().read(events)
    return {
        "local_epsilon": privacy.local_epsilon,
        "local_delta": privacy.local_delta,
        "claimed_epsilon": privacy.claimed_epsilon,
        "central_epsilon": bounded(reading.central),
        "central_delta": reading.delta,
        "in_words": _in_words(reading.local),
        "releases": [
            {
                "study": study,
                "mechanism": event.what,
                "attributes": list(event.attributes),
                "epsilon": event.epsilon,
                "claimed": event.claimed,
                "crowd": event.crowd,
                "delta": event.delta,
            }
            for event in events
        ],
    }


def _of_then(event: AnyDisclosure, present: int | None) -> list[Recorded]:
    """An event with the crowd it had then, and as many as were made of it."""
    if isinstance(event, ClusteredResponse):  # one for each attribute
        return [
            Recorded(what=event.what, attributes=(name,), epsilon=epsilon)
            for name, epsilon in zip(event.attributes, event.each, strict=True)
        ]
    if isinstance(event, AdaptiveResponse) and event.sets:  # those of the dearest set
        dearest = max(range(len(event.sets)), key=lambda k: sum(event.prices[k]))
        answers, prices = event.sets[dearest], event.prices[dearest]
        return [
            Recorded(
                what=event.what, attributes=names, epsilon=epsilon,
                claimed=event.claimed / len(answers),
            )
            for names, epsilon in zip(answers, prices, strict=True)
        ]  # fmt: skip
    summed = isinstance(event, RandomizedSum | ExactSum)
    return [
        Recorded(
            what=event.what,
            attributes=event.attributes,
            epsilon=bounded(event.cost),
            claimed=getattr(event, "claimed", None),
            crowd=present if summed else getattr(event, "crowd", None),
            delta=event.failing,
        )
    ]


def _in_words(epsilon: float) -> str:
    """What version 1 said of an ε."""
    if math.isinf(epsilon):
        return "Some answers give you away with certainty: there is no limit to what they tell."
    sure = 100 * certainty(epsilon)
    if sure >= 99.95:
        return "Whoever sees your answer can be practically certain of the truth."
    return f"Whoever sees your answer can be at most {sure:.3g} % sure, where a coin toss is 50 %."


def _nested(table: Table, cells: tuple[Number, ...] | None) -> Any:
    """Cells as lists in lists, one level for each axis."""
    found: list[Any] = list(cells or ())
    for width in reversed(table.shape[1:]):
        found = [found[start : start + width] for start in range(0, len(found), width)]
    return found


def _axes(table: Table) -> dict[str, Any]:
    return {
        "attributes": [axis.attribute for axis in table.axes],
        "categories": [list(axis.categories) for axis in table.axes],
    }


def _lost(people: Participation) -> dict[str, Any]:
    return {
        "lost": {
            a.party: f"{a.step}: {a.reason}" if a.reason else a.step
            for a in people.absent
            if a.how == "dropped out"
        },
        "unconfirmed": list(people.unconfirmed),
    }


def _answers(found: Publication, people: Participation) -> dict[str, Any]:
    return {
        "asked": people.present,
        "silent": [a.party for a in people.absent if a.how == "silent"],
        "faulty": {a.party: a.reason for a in people.absent if a.how == "faulty"},
        "answers_digest": _value(found, "answers_digest"),
    }


def _value(found: Publication, name: str, missing: Any = 0) -> Any:
    quantity = found.quantity(name)
    return missing if quantity is None else quantity.value


def _number(found: Publication, name: str) -> Number:
    """A number on which some finding rests."""
    for finding in found.findings:
        if name in finding.numbers:
            return finding.numbers[name]
    return 0


def _dependence(found: Publication, schema: Schema, *, p_values: bool) -> dict[str, Any]:
    if found.listing(DEPENDENCE) is None:
        return {}
    rows = []
    for pair, degree in earlier.dependences(found, schema).items():
        row: dict[str, Any] = {"attributes": list(pair), "measure": degree.measure}
        row["value"] = degree.value
        if p_values:
            row["p_value"] = degree.p_value
        rows.append(row)
    return {"dependence": rows}


def _listing(found: Publication, name: str) -> Listing:
    listing = found.listing(name)
    return Listing(name=name, title="", columns=(), rows=()) if listing is None else listing


def _counts(found: Publication, people: Participation) -> dict[str, Any]:
    return {
        "pairs": [_axes(t) | {"counts": _nested(t, t.values)} for t in found.tables],
        "single_person_cells": _value(found, "single_person_cells"),
        "noise_standard_deviation": _number(found, "noise_standard_deviation"),
        "suppressed_below": _number(found, "suppressed_below"),
        "suppressed_cells": _number(found, "suppressed_cells"),
        **_lost(people),
    }


def _pairs(found: Publication, people: Participation) -> dict[str, Any]:
    return {
        "pairs": [
            _axes(t)
            | {
                "reported_counts": _nested(t, t.reported),
                "shares": _nested(t, t.values),
                "unbiased_shares": _nested(t, t.unbiased),
                "standard_errors": _nested(t, t.standard_errors),
            }
            for t in found.tables
        ],
        **_lost(people),
    }


def _collected(found: Publication, people: Participation) -> dict[str, Any]:
    design = found.randomization
    assert design is not None
    shape: dict[str, Any] = {"epsilon": design.epsilon}
    if isinstance(design, ViewsDesign):
        shape["views"] = [list(view) for view in design.views]
    else:
        shape["clusters"] = [
            {"attributes": list(c.attributes), "keep": c.keep, "epsilon": c.epsilon}
            for c in design.clusters
        ]
    return {
        **_answers(found, people),
        "design": shape,
        "marginals": [
            {
                "attribute": t.axes[0].attribute,
                "categories": list(t.axes[0].categories),
                "shares": list(t.values),
                "unbiased_shares": list(t.unbiased or ()),
                "standard_errors": list(t.standard_errors or ()),
            }
            for t in found.tables
            if len(t.axes) == 1
        ],
    }


def _groups(found: Publication, people: Participation) -> dict[str, Any]:
    given_away: dict[Any, list[Any]] = {}
    for attribute, number in _listing(found, "given_away").rows:
        given_away.setdefault(attribute, []).append(number)
    protection = [
        {
            "attribute": attribute,
            "l_diversity": l_diversity,
            "entropy_l_diversity": entropy,
            "t_closeness": closeness,
            "given_away_by": given_away.get(attribute, []),
        }
        for attribute, l_diversity, entropy, closeness in _listing(found, "protection").rows
    ]
    loss = ("squared_error", "certainty_penalty", "discernibility")
    level = "level of "
    same = ("k_wanted", "k_reached", "groups", "partition", "release", "unusable_messages",
            "fake_parties_to_single_out_one")  # fmt: skip
    return {
        **{name: _value(found, name) for name in same},
        "levels": {
            q.name.removeprefix(level): q.value
            for q in found.quantities
            if q.name.startswith(level)
        },
        "protection": protection,
        "information_loss": {name: _value(found, name) for name in loss},
        "record_linkage": {
            "average": _value(found, "linkage_average"),
            "highest": _value(found, "linkage_highest"),
        },
        "miscounted_groups": {
            str(number): {"members": members, "messages": messages}
            for number, members, messages in _listing(found, "miscounted").rows
        },
        "withdrawn": [a.party for a in people.absent if a.how == "withdrawn"],
        **_lost(people),
    }


def _masks(found: Publication, people: Participation) -> dict[str, Any]:
    masks = []
    names = ("fewest_possible_values", "median_possible_values", "respondents_given_away")
    for attribute, recommended, *left in _listing(found, "masks").rows:
        known = {} if left[0] is None else dict(zip(names, left, strict=False))
        masks.append({"attribute": attribute, "recommended": recommended} | known)
    values = "values of "
    return {
        "values": {
            q.name.removeprefix(values): q.value
            for q in found.quantities
            if q.name.startswith(values)
        },
        "masks": masks,
        "unusable_messages": _value(found, "unusable_messages"),
        **_lost(people),
    }


def _blocks(found: Publication, people: Participation) -> dict[str, Any]:
    details = {row[0]: row[1:] for row in _listing(found, "details").rows}
    summaries = {row[0]: row[1:] for row in _listing(found, "tables").rows}
    tables = []
    for t in found.tables:
        names = tuple(axis.attribute for axis in t.axes)
        if names not in details:
            continue  # single attributes had no table then
        least, most, *test = details[names]
        row = _axes(t) | {
            "n": t.n,
            "shares": _nested(t, t.values),
            "unbiased_shares": _nested(t, t.unbiased),
            "standard_errors": _nested(t, t.standard_errors),
            "epsilon_of_an_answer": {"smallest": least, "largest": most},
        }
        if test:
            statistic, critical, dependent = test
            row["independence"] = {
                "statistic": statistic,
                "critical": critical,
                "p_value": summaries[names][-1],
                "rejected": dependent == "yes",
            }
        tables.append(row)
    return {
        **_answers(found, people),
        "not_asked": [a.party for a in people.absent if a.how == "not asked"],
        **{name: _value(found, name) for name in ("p", "floor", "block", "blocks")},
        BLOCKS: tables,
    }


KINDS: dict[str, Callable[[Publication, Participation], dict[str, Any]]] = {
    "exact_pairs": _counts,
    "rr_pairs": _pairs,
    "rr_each_attribute": _pairs,
    "rr_independent": _collected,
    "rr_joint": _collected,
    "rr_clusters": _collected,
    "lambda_randomization": _collected,
    "rr_views": _collected,
    "collaborative_k_anonymity": _groups,
    "collaborative_masking": _masks,
    "block_aggregation": _blocks,
}
