"""Studies that are run to be measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.schema import Attribute, Record, Schema
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario

NO_FAULTS = Faults()
PATIENT = Deadlines(3600.0, 3600.0)


def schema_of(
    sizes: Sequence[int],
    names: Sequence[str] = (),
    kind: Literal["nominal", "ordinal"] = "nominal",
) -> Schema:
    """Attributes of these sizes, without any meaning."""
    return Schema(
        tuple(
            Attribute(names[k] if names else f"a{k}", kind, tuple(f"v{c}" for c in range(size)))
            for k, size in enumerate(sizes)
        )
    )


def scenario_of(
    schema: Schema,
    protocol: StudyProtocol,
    people: Sequence[Record],
    *,
    minimum: int | None = None,
    deadlines: Deadlines = PATIENT,
    faults: Faults = NO_FAULTS,
) -> Scenario:
    """A study in which these people take part."""
    study = Study(
        name="benchmark", title="Benchmark", description="", schema=schema, protocol=protocol,
        parties=Parties(len(people), minimum), deadlines=deadlines,
    )  # fmt: skip
    return Scenario(Path("benchmark"), study, None, None, faults, 0, given=tuple(people))


def random_people(sizes: Sequence[int], count: int, seed: int = 1) -> list[Record]:
    """With uniformly random answers."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=count) for size in sizes], axis=1)
    return [tuple(row) for row in codes.tolist()]
