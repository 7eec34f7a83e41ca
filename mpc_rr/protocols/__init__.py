"""The protocols, one file each: all roles, all message types, numbered as in the paper.

Protocol code awaits only its session and draws only from ``session.rng``; a test forbids it to
import anything else that acts. A study file names its protocol by the tag of its class, which
`mpc_rr.protocols.registry` looks up.
"""

from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.protocols.exact_moments import ExactMoments
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.registry import BUILT_IN, register
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews

for _kind in (
    ExactPairs, RREachAttribute, RRPairs, RRIndependent, RRJoint, RRClusters, LambdaRandomization,
    RRViews, CollaborativeKAnonymity, CollaborativeMasking, BlockAggregation, ExactMoments,
):  # fmt: skip
    register(_kind, BUILT_IN)
