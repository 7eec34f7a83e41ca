"""The worked examples of paper 004, and studies like them, that several tests run."""

from pathlib import Path

from helpers import simulate

from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario

ZIPS = ("13053", "13068", "14850", "14853")
EIGHT = Schema(
    (
        Attribute("zip", "nominal", ZIPS),
        Attribute("age", "numeric", (), lowest=0, highest=120, step=1),
        Attribute("salary", "numeric", (), lowest=0, highest=1_000_000, step=1),
    )
)
PEOPLE = [
    (0, 28, 35000), (1, 29, 30000), (1, 21, 20000), (0, 23, 27000),
    (3, 50, 40000), (3, 55, 43000), (2, 47, 48000), (2, 49, 45000),
]  # fmt: skip
NAMES = [f"party-{number}" for number in range(1, 9)]
GROUPS = (
    ("party-1", "party-2", "party-3", "party-4"),
    ("party-5", "party-6", "party-7", "party-8"),
)
IN_GROUPS = CollaborativeKAnonymity(
    k=4, quasi_identifiers=("zip", "age"), confidential=("salary",), release="generalized"
)
MASKED = CollaborativeMasking(
    open=("zip",), confidential=("age", "salary"), masks={"age": "noise:5", "salary": "noise:5000"}
)


def make_study(
    protocol, *, count=8, minimum=None, schema=EIGHT, lobby_s=30.0, round_s=5.0, registrar=None
):
    return Study(
        name="eight",
        title="Eight neighbours",
        description="",
        schema=schema,
        protocol=protocol,
        parties=Parties(count, minimum),
        deadlines=Deadlines(lobby_s, round_s),
        registrar=registrar,
    )


def make_scenario(protocol, *, records=PEOPLE, faults=None, **study):
    return Scenario(
        path=Path("eight.toml"),
        study=make_study(protocol, count=len(records), **study),
        csv=None,
        generator=None,
        faults=faults if faults is not None else Faults(),
        seed=0,
        given=tuple(records),
    )


def run(protocol, *, records=PEOPLE, seed=0, study=None, **agents):
    """A simulation with agents of our choice: outcome, and how each party ended."""
    given = make_study(protocol, count=len(records), **(study or {}))
    return simulate(given, records, seed=seed, **agents)
