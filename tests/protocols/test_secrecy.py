"""What the broker and the coordinator hold together, and what can be learned from it."""

import itertools
import math

import msgspec
import numpy as np
import pytest
from helpers import Tapped, make_study, random_records, setting, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.network.envelope import Envelope, SignedEnvelope, decode
from mpc_rr.protocols.collection import Answer, unpack_record
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews

SIZES = (2, 3, 2)
N = 40
PROTOCOLS = [
    RRIndependent(keep=0.6),
    RRJoint(epsilon=3.0),
    LambdaRandomization(beta=0.6),
    RREachAttribute(keep=0.6),
    RRViews(epsilon=2.0, together=2),
    RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
]


def run(protocol, records, account):
    """Everything the broker carried and the coordinator kept."""

    class WithBooks(Party):
        def __init__(self, study, name, *args):
            super().__init__(study, name, *args, terms=Terms(account=account(name)))

    network = Tapped()
    study = make_study(N, SIZES, protocol=protocol)
    outcome, _ = simulate(study, records, seed=4, party=WithBooks, network=network)
    state = (outcome.transcript, outcome.traffic, outcome.round_seconds, outcome.members)
    return network.captured, state


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_nothing_but_the_drawn_report_depends_on_the_record(protocol):
    """Other people who happen to draw the same reports leave the very same traces everywhere.

    So whatever is to be learned from broker and coordinator together is learned from the reports;
    and these are as the ledger says.
    """
    drawn = {}

    class Recording(Account):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def once(self, study, record, label, draw, given=b""):
            answer = super().once(study, record, label, draw, given)
            return drawn.setdefault((self.name, label), answer)

    class Repeating(Recording):
        def once(self, study, record, label, draw, given=b""):
            return drawn[self.name, label]

    first = run(protocol, random_records(N, SIZES, seed=1), Recording)
    second = run(protocol, random_records(N, SIZES, seed=2), Repeating)
    assert first == second
    assert len(first[0]) > 5 * N


def test_guessing_records_from_everything_captured_is_as_hard_as_promised():
    """The best guess is the report itself: right as often as the matrix keeps, no more.

    400 parties in 10 studies; the number of records recovered is within 4 standard deviations.
    """
    keep, right, asked = 0.5, 0, 0
    for seed in range(10):
        records = random_records(N, SIZES, seed=seed)
        protocol = RRIndependent(keep=keep)
        network = Tapped()
        study = make_study(N, SIZES, protocol=protocol, name=f"study-{seed}")
        simulate(study, records, seed=100 + seed, network=network)
        guesses = _reports_in(network.captured)
        for k, record in enumerate(records, start=1):
            right += guesses[f"party-{k:02}"] == record
            asked += 1
    chance = math.prod(keep + (1 - keep) / size for size in SIZES)
    assert abs(right - asked * chance) < 4 * math.sqrt(asked * chance * (1 - chance))
    assert right < asked / 2


def _reports_in(captured):
    found = {}
    for _, _, raw in captured:
        envelope = msgspec.msgpack.decode(
            msgspec.msgpack.decode(raw, type=SignedEnvelope).envelope, type=Envelope
        )
        if envelope.header.step == "answer":
            codes = unpack_record(decode(envelope.body, Answer).codes, SIZES)
            found[envelope.header.sender] = tuple(int(code) for code in codes)
    return found


@pytest.mark.parametrize(
    "protocol",
    [RRIndependent(epsilon=1.5), RRJoint(epsilon=1.5), LambdaRandomization(beta=0.7)],
    ids=lambda protocol: protocol.name,
)
def test_the_price_is_the_largest_likelihood_ratio_of_any_report(protocol):
    """Over all pairs of records and all reports, from the matrices themselves."""
    schema = make_study(4, SIZES).schema
    design = protocol.design(schema)
    spent = math.fsum(e.cost for e in protocol.disclosures(setting(schema, 4)))
    domain = list(itertools.product(*map(range, SIZES)))
    ratios = []
    dense = [matrix.dense() for matrix in design.matrices]
    shapes = [tuple(SIZES[a] for a in cluster) for cluster in design.clusters]
    for one, other, report in itertools.product(domain, domain, domain):
        log_ratio = 0.0
        for cluster, matrix, shape in zip(design.clusters, dense, shapes, strict=True):
            cells = [
                int(np.ravel_multi_index([r[a] for a in cluster], shape))
                for r in (one, other, report)
            ]
            log_ratio += math.log(matrix[cells[0], cells[2]] / matrix[cells[1], cells[2]])
        ratios.append(log_ratio)
    assert max(ratios) == pytest.approx(spent, rel=1e-9)
