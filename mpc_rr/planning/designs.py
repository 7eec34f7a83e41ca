"""What may be asked at a budget: designs that all spend the same ε a record, the simplest first.

A design is a protocol with its options, as a study file would name it. Three stand beside these
that no study file can name: to ask nobody (`ASK_NOBODY`) and to publish the shares of single
answers alone (`MARGINS`), against which all others must pay; and clusters that are known
beforehand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import Clusters
from mpc_rr.estimation.designs import rr_clusters
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.planning import block_choices, keep_for_total
from mpc_rr.estimation.views import ViewDesign, guessed_shares
from mpc_rr.planning.publishing import (
    Publishing,
    of_blocks,
    of_found_clusters,
    of_margins,
    of_nobody,
    of_reports,
    of_views,
)
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.entropy import entropy_share, joint_share
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.collection import FixedDesign, check_design
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.ending import Setting
from mpc_rr.schema import Attribute, Schema

ASK_NOBODY = "nobody asked"
MARGINS = "margins alone"
WITHOUT_TABLES = frozenset({ASK_NOBODY, MARGINS})
"""These publish no tables of two answers."""
WIDEST = 3
"""Views of two and of so many attributes are tried, besides those that promise most."""
BLOCKS = 10
"""In so many blocks people are asked if the study does not say."""


@dataclass(frozen=True)
class PlannedDesign:
    """One way to ask at a budget."""

    name: str
    what: str
    """What a respondent reports, in words."""
    epsilon: float
    """What one record spends in all."""
    one_answer: float
    """The ε of that answer of which most is told, to whoever knows all the others."""
    publish: Publishing
    protocol: StudyProtocol | None = None
    """None where no study file can ask for it."""
    beta: float | None = None
    """The share of the largest entropy that all answers together leave (001); None: no such."""

    @property
    def options(self) -> Mapping[str, object] | None:
        """The ``[protocol]`` table of a study file."""
        if self.protocol is None:
            return None
        options: dict[str, object] = msgspec.to_builtins(self.protocol)
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class BlockOptions:
    """What a study wants of block aggregation, but for p: that follows from the budget."""

    floor: float
    block: int
    together: int = 2
    answers: int | None = None
    tables: tuple[tuple[str, ...], ...] | None = None


def schema_of(sizes: Sequence[int]) -> Schema:
    """Attributes of which nothing is known but how many answers they have."""
    return Schema(
        tuple(
            Attribute(f"a{number}", "nominal", tuple(str(code + 1) for code in range(size)))
            for number, size in enumerate(sizes, start=1)
        )
    )


def check_categories(schema: Schema) -> None:
    """`InputError` if a question is for a number, of which no design makes a table."""
    for attribute, size in zip(schema.attributes, schema.sizes, strict=True):
        if attribute.numeric:
            raise InputError(
                f"{attribute.name!r} is a number with {size:,} possible values; randomized designs "
                "need categories: give it bins"
            )


def setting_of(schema: Schema, n: int) -> Setting:
    """A study of so many people that needs all of them, as its protocol sees it."""
    return Setting(study="plan", schema=schema, expected=n, parties=n, fewest=n)


def planned_designs(
    schema: Schema,
    n: int,
    epsilon: float,
    *,
    clusters: Clusters | None = None,
    blocks: BlockOptions | None = None,
    study: Setting | None = None,
) -> tuple[list[PlannedDesign], dict[str, str]]:
    """All designs that spend ε a record, the simplest first; and why others cannot be had.

    ``clusters``: known beforehand. ``blocks``: of the study; without it plain answers by blocks.
    ``study``: of so many people; without it one that needs all of them.
    """
    setting = setting_of(schema, n) if study is None else study
    designs, refused = [], {}
    for name, make in _all(setting, epsilon, clusters, blocks):
        try:
            designs.append(make())
        except InputError as error:
            refused[name] = str(error)
    return designs, refused


Named = tuple[str, Callable[[], PlannedDesign]]


def _all(
    setting: Setting,
    epsilon: float,
    clusters: Clusters | None,
    blocks: BlockOptions | None,
) -> Iterator[Named]:
    """By rising complexity; made only when they are looked at, as some refuse."""
    schema = setting.schema
    known = partial(_of_protocol, setting)
    yield MARGINS, partial(margins_alone, schema, epsilon)
    yield "independent", lambda: known("independent", RRIndependent(epsilon=epsilon))
    yield "lambda", lambda: known("lambda", LambdaRandomization(epsilon=epsilon))
    for together in _views_to_try(setting, epsilon):
        name = "views" if together is None else f"views of {together}"
        yield name, partial(known, name, RRViews(epsilon=epsilon, together=together))
    yield "joint", lambda: known("joint", RRJoint(epsilon=epsilon))
    if clusters is not None:
        yield "clusters", partial(_known_clusters, schema, clusters, epsilon)
    yield (
        "clusters found",
        lambda: known(
            "clusters found",
            RRClusters(dependence=RREachAttribute(epsilon=epsilon / 2), epsilon=epsilon / 2),
        ),
    )
    yield "blocks", lambda: known("blocks", by_blocks(setting, epsilon, blocks))


def _views_to_try(setting: Setting, epsilon: float) -> list[int | None]:
    """Those that promise most (None), and few attributes together where that is not the same."""
    try:
        views = RRViews(epsilon=epsilon).design(setting.schema, setting.fewest).views
        promising = {len(view) for view in views}
    except InputError:
        return [None]
    few = range(2, min(WIDEST, len(setting.schema.sizes)) + 1)
    tried: dict[int | None, int] = {k: k for k in few if promising != {k}}
    tried[None] = max(promising)
    return sorted(tried, key=tried.__getitem__)


def nobody_asked() -> PlannedDesign:
    """All answers are taken to be as common as each other; that costs nobody anything."""
    return PlannedDesign(ASK_NOBODY, "nothing; equal shares", 0.0, 0.0, of_nobody, beta=1.0)


def margins_alone(schema: Schema, epsilon: float) -> PlannedDesign:
    """Each respondent answers one question; tables are products, as if all were independent."""
    design = ViewDesign(schema.sizes, [(a,) for a in range(len(schema.sizes))], epsilon)
    what = "one answer; shares alone"
    return PlannedDesign(MARGINS, what, epsilon, epsilon, partial(of_margins, design))


def by_blocks(setting: Setting, epsilon: float, blocks: BlockOptions | None) -> BlockAggregation:
    """Block aggregation with the p at which the dearest view costs just ε.

    Without wishes, pairs with the floor that promises most.
    """
    schema, n = setting.schema, setting.expected
    wished = blocks
    if wished is None:
        best = block_choices(schema.sizes, n, epsilon, guessed_shares(schema.sizes))[0]
        wished = BlockOptions(best.floor, -(-n // BLOCKS))
    shape = BlockAggregation(
        epsilon=epsilon, floor=wished.floor, block=min(wished.block, n), together=wished.together,
        answers=wished.answers, tables=wished.tables,
    )  # fmt: skip
    views = len(shape.views(schema))
    if n < views:
        raise InputError(f"there are {views:,} views, and only {n:,} people to answer them")
    return shape


def _known_clusters(schema: Schema, clusters: Clusters, epsilon: float) -> PlannedDesign:
    """Each cluster as one value; an attribute gives what it would spend if it were kept alone."""
    keep = keep_for_total(schema.sizes, epsilon)
    spent = [KeepOrUniform(size, keep).epsilon for size in schema.sizes]
    design = rr_clusters(schema.sizes, clusters, spent)
    check_design(design)
    return PlannedDesign(
        "clusters",
        "each of your clusters at once",
        design.epsilon,
        max(matrix.epsilon for matrix in design.matrices),
        partial(of_reports, design),
        beta=joint_share(design.matrices),
    )


def _of_protocol(setting: Setting, name: str, protocol: StudyProtocol) -> PlannedDesign:
    """`InputError` if no study could be held so."""
    protocol.check(setting)
    what, publish = _published(protocol, setting)
    events = protocol.stated(setting)
    reading, beta = Accountant().read(events), entropy_share(events)
    return PlannedDesign(name, what, reading.local, reading.one_answer, publish, protocol, beta)


def _published(protocol: StudyProtocol, setting: Setting) -> tuple[str, Publishing]:
    """What a respondent reports, and what is made of it."""
    match protocol:
        case RRViews():
            views = protocol.design(setting.schema, setting.fewest)
            return _of_views(views), partial(of_views, views)
        case FixedDesign():
            design = protocol.design(setting.schema)
            return _of_design(protocol), partial(of_reports, design)
        case RRClusters():
            return "each answer, then each cluster", partial(of_found_clusters, protocol)
        case BlockAggregation():
            return _of_blocks(protocol, setting.schema), partial(of_blocks, protocol)
    raise InputError(f"{protocol.name} publishes no tables of pairs that can be planned")


def _of_views(design: ViewDesign) -> str:
    lengths = sorted({len(view) for view in design.views})
    which = " or ".join(map(str, lengths))
    if len(design.views) == 1:
        return f"all {which} answers at once"
    return f"one of {len(design.views):,} groups of {which} answers"


def _of_design(protocol: FixedDesign) -> str:
    match protocol:
        case RRJoint():
            return "the whole record at once"
        case LambdaRandomization():
            return "each answer, by its entropy"
    return "each answer by itself"


def _of_blocks(protocol: BlockAggregation, schema: Schema) -> str:
    view = max(protocol.views(schema), key=len)
    asked = [combination for view in protocol.views(schema) for combination in view]
    widths = " or ".join(map(str, sorted(set(map(len, asked)))))
    return f"{len(view)} of {len(asked):,} groups of {widths} answers"
