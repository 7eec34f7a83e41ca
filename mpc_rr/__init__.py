"""Statistics on private data without a trusted collector.

The names below are what most people need; each is loaded when it is first used. The modules they
come from hold more, and ``docs/estimation.md`` shows how they fit together.
"""

import importlib
from typing import Any

_HOME = {
    "Attribute": "mpc_rr.schema",
    "Schema": "mpc_rr.schema",
    "records_from_frame": "mpc_rr.data",
    "load_scenario": "mpc_rr.scenario",
    "run_study": "mpc_rr.study",
    "KeepOrUniform": "mpc_rr.estimation.matrix",
    "DistanceWeighted": "mpc_rr.estimation.matrix",
    "Dense": "mpc_rr.estimation.matrix",
    "Kronecker": "mpc_rr.estimation.kronecker",
    "unbiased": "mpc_rr.estimation.distribution",
    "maximum_likelihood": "mpc_rr.estimation.distribution",
    "project_to_simplex": "mpc_rr.estimation.distribution",
    "Design": "mpc_rr.estimation.designs",
    "Fitted": "mpc_rr.estimation.designs",
    "rr_independent": "mpc_rr.estimation.designs",
    "rr_clusters": "mpc_rr.estimation.designs",
    "rr_joint": "mpc_rr.estimation.designs",
    "adjust": "mpc_rr.estimation.raking",
    "merge_clusters": "mpc_rr.estimation.clusters",
    "ViewDesign": "mpc_rr.estimation.views",
    "best_views": "mpc_rr.estimation.views",
    "best_pair_tables": "mpc_rr.estimation.tables",
    "latent_classes": "mpc_rr.estimation.latent",
    "cramers_v": "mpc_rr.estimation.dependence",
    "dependences_of_records": "mpc_rr.estimation.dependence",
    "TreeModel": "mpc_rr.estimation.tables",
    "plan": "mpc_rr.estimation.planning",
    "Ledger": "mpc_rr.privacy.ledger",
    "Release": "mpc_rr.privacy.ledger",
}
__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mpc_rr' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
