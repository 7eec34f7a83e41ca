"""Statistics on private data without a trusted collector.

The names below are what most people need; each is loaded when it is first used. The modules they
come from hold more; ``docs/python.md``, ``docs/estimation.md`` and ``docs/own-protocol.md`` show
how they fit together.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_rr.anonymization.hierarchy import Hierarchy as Hierarchy
    from mpc_rr.anonymization.hierarchy import generalize as generalize
    from mpc_rr.anonymization.hierarchy import groups_at as groups_at
    from mpc_rr.anonymization.partition import mdav as mdav
    from mpc_rr.anonymization.partition import mondrian as mondrian
    from mpc_rr.anonymization.perturbation import Noise as Noise
    from mpc_rr.anonymization.perturbation import Perturbation as Perturbation
    from mpc_rr.anonymization.perturbation import RankSwap as RankSwap
    from mpc_rr.anonymization.perturbation import reverse_mapped as reverse_mapped
    from mpc_rr.anonymization.releases import Grouped as Grouped
    from mpc_rr.anonymization.releases import anatomy as anatomy
    from mpc_rr.anonymization.releases import generalized as generalized
    from mpc_rr.anonymization.releases import group_values as group_values
    from mpc_rr.anonymization.releases import microaggregated as microaggregated
    from mpc_rr.anonymization.releases import permuted as permuted
    from mpc_rr.anonymization.risk import information_loss as information_loss
    from mpc_rr.anonymization.risk import linkage as linkage
    from mpc_rr.anonymization.risk import protection as protection
    from mpc_rr.anonymization.table import Microdata as Microdata
    from mpc_rr.comparing.comparing import compare as compare
    from mpc_rr.comparing.side_by_side import SideBySide as SideBySide
    from mpc_rr.crypto.admission import SigningKey as SigningKey
    from mpc_rr.curator.estimates import RandomizedFile as RandomizedFile
    from mpc_rr.curator.estimates import read_randomized as read_randomized
    from mpc_rr.curator.randomizing import Randomized as Randomized
    from mpc_rr.curator.randomizing import randomize_frame as randomize_frame
    from mpc_rr.errors import DataError as DataError
    from mpc_rr.errors import Dropout as Dropout
    from mpc_rr.errors import InputError as InputError
    from mpc_rr.errors import Misconduct as Misconduct
    from mpc_rr.errors import MpcRrError as MpcRrError
    from mpc_rr.errors import Refused as Refused
    from mpc_rr.errors import ScenarioError as ScenarioError
    from mpc_rr.estimation.blocks import independence_test as independence_test
    from mpc_rr.estimation.clusters import merge_clusters as merge_clusters
    from mpc_rr.estimation.dependence import cramers_v as cramers_v
    from mpc_rr.estimation.dependence import dependences_of_records as dependences_of_records
    from mpc_rr.estimation.designs import Design as Design
    from mpc_rr.estimation.designs import Fitted as Fitted
    from mpc_rr.estimation.designs import rr_clusters as rr_clusters
    from mpc_rr.estimation.designs import rr_independent as rr_independent
    from mpc_rr.estimation.designs import rr_joint as rr_joint
    from mpc_rr.estimation.distribution import maximum_likelihood as maximum_likelihood
    from mpc_rr.estimation.distribution import project_to_simplex as project_to_simplex
    from mpc_rr.estimation.distribution import unbiased as unbiased
    from mpc_rr.estimation.domain import Domain as Domain
    from mpc_rr.estimation.expressions import Expression as Expression
    from mpc_rr.estimation.expressions import Score as Score
    from mpc_rr.estimation.expressions import categories as categories
    from mpc_rr.estimation.expressions import correlation as correlation
    from mpc_rr.estimation.expressions import covariance as covariance
    from mpc_rr.estimation.expressions import linear as linear
    from mpc_rr.estimation.expressions import logistic as logistic
    from mpc_rr.estimation.expressions import mean as mean
    from mpc_rr.estimation.expressions import median as median
    from mpc_rr.estimation.expressions import midpoints as midpoints
    from mpc_rr.estimation.expressions import quantile as quantile
    from mpc_rr.estimation.expressions import score as score
    from mpc_rr.estimation.expressions import share as share
    from mpc_rr.estimation.expressions import standard_deviation as standard_deviation
    from mpc_rr.estimation.expressions import table as table
    from mpc_rr.estimation.expressions import variance as variance
    from mpc_rr.estimation.kronecker import Kronecker as Kronecker
    from mpc_rr.estimation.latent import latent_classes as latent_classes
    from mpc_rr.estimation.matrix import Dense as Dense
    from mpc_rr.estimation.matrix import DistanceWeighted as DistanceWeighted
    from mpc_rr.estimation.matrix import KeepOrUniform as KeepOrUniform
    from mpc_rr.estimation.pairs import PairLayout as PairLayout
    from mpc_rr.estimation.raking import adjust as adjust
    from mpc_rr.estimation.suppression import suppress as suppress
    from mpc_rr.estimation.tables import TreeModel as TreeModel
    from mpc_rr.estimation.tables import best_pair_tables as best_pair_tables
    from mpc_rr.estimation.views import ViewDesign as ViewDesign
    from mpc_rr.estimation.views import best_views as best_views
    from mpc_rr.network.address import BrokerUrl as BrokerUrl
    from mpc_rr.network.envelope import Message as Message
    from mpc_rr.network.envelope import Way as Way
    from mpc_rr.network.session.coordinator import CoordinatorSession as CoordinatorSession
    from mpc_rr.network.session.party import PartySession as PartySession
    from mpc_rr.planning.plans import plan as plan
    from mpc_rr.privacy.costs import Privacy as Privacy
    from mpc_rr.privacy.disclosures import Disclosure as Disclosure
    from mpc_rr.privacy.disclosures import ExactNumbers as ExactNumbers
    from mpc_rr.privacy.disclosures import ExactSum as ExactSum
    from mpc_rr.privacy.disclosures import InGroup as InGroup
    from mpc_rr.privacy.disclosures import Masked as Masked
    from mpc_rr.privacy.disclosures import NoisySum as NoisySum
    from mpc_rr.privacy.disclosures import RandomizedResponse as RandomizedResponse
    from mpc_rr.privacy.disclosures import RandomizedSum as RandomizedSum
    from mpc_rr.privacy.disclosures import SubsetSelection as SubsetSelection
    from mpc_rr.privacy.disclosures import Told as Told
    from mpc_rr.privacy.disclosures import Unstated as Unstated
    from mpc_rr.privacy.gaussian_shares import GaussianShares as GaussianShares
    from mpc_rr.privacy.graph_parameters import GraphParameters as GraphParameters
    from mpc_rr.privacy.graph_parameters import graph_parameters_for as graph_parameters_for
    from mpc_rr.privacy.ledger import Ledger as Ledger
    from mpc_rr.privacy.noise import NoiseShares as NoiseShares
    from mpc_rr.protocols.block_aggregation import BlockAggregation as BlockAggregation
    from mpc_rr.protocols.budgets import Own as Own
    from mpc_rr.protocols.collaborative_k_anonymity import (
        CollaborativeKAnonymity as CollaborativeKAnonymity,
    )
    from mpc_rr.protocols.collaborative_masking import CollaborativeMasking as CollaborativeMasking
    from mpc_rr.protocols.exact_moments import ExactMoments as ExactMoments
    from mpc_rr.protocols.exact_pairs import ExactPairs as ExactPairs
    from mpc_rr.protocols.interface import StudyProtocol as StudyProtocol
    from mpc_rr.protocols.lambda_randomization import LambdaRandomization as LambdaRandomization
    from mpc_rr.protocols.prospects import Prospect as Prospect
    from mpc_rr.protocols.registry import load_plugin as load_plugin
    from mpc_rr.protocols.registry import register as register
    from mpc_rr.protocols.rr_clusters import RRClusters as RRClusters
    from mpc_rr.protocols.rr_each_attribute import RREachAttribute as RREachAttribute
    from mpc_rr.protocols.rr_independent import RRIndependent as RRIndependent
    from mpc_rr.protocols.rr_joint import RRJoint as RRJoint
    from mpc_rr.protocols.rr_pairs import RRPairs as RRPairs
    from mpc_rr.protocols.rr_views import RRViews as RRViews
    from mpc_rr.publication.answers import Answer as Answer
    from mpc_rr.publication.computing import Computed as Computed
    from mpc_rr.publication.ending import Computation as Computation
    from mpc_rr.publication.ending import Draft as Draft
    from mpc_rr.publication.ending import Ending as Ending
    from mpc_rr.publication.ending import Setting as Setting
    from mpc_rr.publication.named import NamedAdjustment as NamedAdjustment
    from mpc_rr.publication.named import NamedEstimates as NamedEstimates
    from mpc_rr.publication.named import adjust_by_name as adjust_by_name
    from mpc_rr.publication.named import count_table as count_table
    from mpc_rr.publication.named import dependences_by_name as dependences_by_name
    from mpc_rr.publication.parts import Axis as Axis
    from mpc_rr.publication.parts import Column as Column
    from mpc_rr.publication.parts import Figure as Figure
    from mpc_rr.publication.parts import Finding as Finding
    from mpc_rr.publication.parts import Listing as Listing
    from mpc_rr.publication.parts import Note as Note
    from mpc_rr.publication.parts import Participation as Participation
    from mpc_rr.publication.parts import Publication as Publication
    from mpc_rr.publication.parts import Quantity as Quantity
    from mpc_rr.publication.parts import Sheet as Sheet
    from mpc_rr.publication.parts import Table as Table
    from mpc_rr.results.asking import read_weights as read_weights
    from mpc_rr.results.claims import Claim as Claim
    from mpc_rr.results.claims import Contradicted as Contradicted
    from mpc_rr.results.export import export as export
    from mpc_rr.results.folder import read_folder as read_folder
    from mpc_rr.running import Run as Run
    from mpc_rr.running import coordinate_study as coordinate_study
    from mpc_rr.running import run_study as run_study
    from mpc_rr.running import run_study_async as run_study_async
    from mpc_rr.running import simulate as simulate
    from mpc_rr.running import simulate_async as simulate_async
    from mpc_rr.running import take_part as take_part
    from mpc_rr.running.run import compute as compute
    from mpc_rr.running.run import query as query
    from mpc_rr.running.run import verify as verify
    from mpc_rr.schema import Attribute as Attribute
    from mpc_rr.schema import Record as Record
    from mpc_rr.schema import Schema as Schema
    from mpc_rr.show.report import report as report
    from mpc_rr.simulation.faults import Faults as Faults
    from mpc_rr.simulation.faults import PartyFault as PartyFault
    from mpc_rr.study.definition import Deadlines as Deadlines
    from mpc_rr.study.definition import Parties as Parties
    from mpc_rr.study.definition import Study as Study
    from mpc_rr.study.file import Scenario as Scenario
    from mpc_rr.study.file import load_scenario as load_scenario
    from mpc_rr.study.frames import records_from_frame as records_from_frame
    from mpc_rr.study.frames import schema_from_frame as schema_from_frame
    from mpc_rr.study.frames import study_from_frame as study_from_frame
    from mpc_rr.study.records import read_csv as read_csv

__version__ = "0.1.0"

_NAMES = {
    "mpc_rr.anonymization.hierarchy": "Hierarchy generalize groups_at",
    "mpc_rr.anonymization.partition": "mdav mondrian",
    "mpc_rr.anonymization.perturbation": "Noise Perturbation RankSwap reverse_mapped",
    "mpc_rr.anonymization.releases": "Grouped anatomy generalized group_values microaggregated "
    "permuted",
    "mpc_rr.anonymization.risk": "information_loss linkage protection",
    "mpc_rr.anonymization.table": "Microdata",
    "mpc_rr.comparing.comparing": "compare",
    "mpc_rr.comparing.side_by_side": "SideBySide",
    "mpc_rr.crypto.admission": "SigningKey",
    "mpc_rr.curator.estimates": "RandomizedFile read_randomized",
    "mpc_rr.curator.randomizing": "Randomized randomize_frame",
    "mpc_rr.errors": "DataError Dropout InputError Misconduct MpcRrError Refused ScenarioError",
    "mpc_rr.estimation.blocks": "independence_test",
    "mpc_rr.estimation.clusters": "merge_clusters",
    "mpc_rr.estimation.dependence": "cramers_v dependences_of_records",
    "mpc_rr.estimation.designs": "Design Fitted rr_clusters rr_independent rr_joint",
    "mpc_rr.estimation.distribution": "maximum_likelihood project_to_simplex unbiased",
    "mpc_rr.estimation.domain": "Domain",
    "mpc_rr.estimation.expressions": "Expression Score categories correlation covariance linear "
    "logistic mean median midpoints quantile score share standard_deviation table variance",
    "mpc_rr.estimation.kronecker": "Kronecker",
    "mpc_rr.estimation.latent": "latent_classes",
    "mpc_rr.estimation.matrix": "Dense DistanceWeighted KeepOrUniform",
    "mpc_rr.estimation.pairs": "PairLayout",
    "mpc_rr.estimation.raking": "adjust",
    "mpc_rr.estimation.suppression": "suppress",
    "mpc_rr.estimation.tables": "TreeModel best_pair_tables",
    "mpc_rr.estimation.views": "ViewDesign best_views",
    "mpc_rr.network.address": "BrokerUrl",
    "mpc_rr.network.envelope": "Message Way",
    "mpc_rr.network.session.coordinator": "CoordinatorSession",
    "mpc_rr.network.session.party": "PartySession",
    "mpc_rr.planning.plans": "plan",
    "mpc_rr.privacy.costs": "Privacy",
    "mpc_rr.privacy.disclosures": "Disclosure ExactNumbers ExactSum InGroup Masked NoisySum "
    "RandomizedResponse RandomizedSum SubsetSelection Told Unstated",
    "mpc_rr.privacy.gaussian_shares": "GaussianShares",
    "mpc_rr.privacy.graph_parameters": "GraphParameters graph_parameters_for",
    "mpc_rr.privacy.ledger": "Ledger",
    "mpc_rr.privacy.noise": "NoiseShares",
    "mpc_rr.protocols.block_aggregation": "BlockAggregation",
    "mpc_rr.protocols.budgets": "Own",
    "mpc_rr.protocols.collaborative_k_anonymity": "CollaborativeKAnonymity",
    "mpc_rr.protocols.collaborative_masking": "CollaborativeMasking",
    "mpc_rr.protocols.exact_moments": "ExactMoments",
    "mpc_rr.protocols.exact_pairs": "ExactPairs",
    "mpc_rr.protocols.interface": "StudyProtocol",
    "mpc_rr.protocols.lambda_randomization": "LambdaRandomization",
    "mpc_rr.protocols.prospects": "Prospect",
    "mpc_rr.protocols.registry": "load_plugin register",
    "mpc_rr.protocols.rr_clusters": "RRClusters",
    "mpc_rr.protocols.rr_each_attribute": "RREachAttribute",
    "mpc_rr.protocols.rr_independent": "RRIndependent",
    "mpc_rr.protocols.rr_joint": "RRJoint",
    "mpc_rr.protocols.rr_pairs": "RRPairs",
    "mpc_rr.protocols.rr_views": "RRViews",
    "mpc_rr.publication.answers": "Answer",
    "mpc_rr.publication.computing": "Computed",
    "mpc_rr.publication.ending": "Computation Draft Ending Setting",
    "mpc_rr.publication.named": "NamedAdjustment NamedEstimates adjust_by_name count_table "
    "dependences_by_name",
    "mpc_rr.publication.parts": "Axis Column Figure Finding Listing Note Participation Publication "
    "Quantity Sheet Table",
    "mpc_rr.results.asking": "read_weights",
    "mpc_rr.results.claims": "Claim Contradicted",
    "mpc_rr.results.export": "export",
    "mpc_rr.results.folder": "read_folder",
    "mpc_rr.running": "Run coordinate_study run_study run_study_async simulate simulate_async "
    "take_part",
    "mpc_rr.running.run": "compute query verify",
    "mpc_rr.schema": "Attribute Record Schema",
    "mpc_rr.show.report": "report",
    "mpc_rr.simulation.faults": "Faults PartyFault",
    "mpc_rr.study.definition": "Deadlines Parties Study",
    "mpc_rr.study.file": "Scenario load_scenario",
    "mpc_rr.study.frames": "records_from_frame schema_from_frame study_from_frame",
    "mpc_rr.study.records": "read_csv",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605


if not TYPE_CHECKING:  # which would believe that every name is there

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module 'mpc_rr' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
