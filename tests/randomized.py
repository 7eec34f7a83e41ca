"""Studies with randomized answers that several tests run."""

from helpers import make_scenario, random_records

from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.running import run_study
from mpc_rr.study.file import party_names

SIZES = (2, 3, 2)
N = 24
RECORDS = random_records(N, SIZES, seed=8)
NAMES = party_names(N)
COLLECTIONS = {
    "rr_independent": RRIndependent(keep=0.6),
    "rr_joint": RRJoint(epsilon=3.0),
    "lambda_randomization": LambdaRandomization(lambdas={"a0": 0.5, "a1": 0.7, "a2": 0.9}),
}
CLUSTERED = {
    name: RRClusters(keep=0.6, most_combinations=6, least_dependence=0.0, dependence=dependence)
    for name, dependence in (
        ("each", RREachAttribute(keep=0.6)),
        ("exact", ExactPairs()),
        ("pairs", RRPairs(keep=0.6)),
    )
}
ALL = {
    **COLLECTIONS, **CLUSTERED, "rr_views": RRViews(epsilon=3.0),
    "rr_each_attribute": RREachAttribute(epsilon=3.0), "rr_pairs": RRPairs(epsilon=3.0),
}  # fmt: skip


def run(protocol, *, seed=5, faults=None, minimum=None):
    scenario = make_scenario(RECORDS, SIZES, protocol=protocol, faults=faults, minimum=minimum)
    return run_study(scenario, transport="memory", seed=seed)
