"""Randomized records under their parties' names, or views of them, and what they tell."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from mpc_rr.errors import listing
from mpc_rr.estimation.clusters import Dependences
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Estimates, RecordWeights, adjusted_weights, all_counted
from mpc_rr.estimation.full_reports import MOST_IN_ONE_POPULATION, Known
from mpc_rr.estimation.matrix import Codes, Dense, DistanceWeighted, KeepOrUniform, RRMatrix
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.raking import NoWeights
from mpc_rr.estimation.views import FittedViews, ViewDesign, ViewReports
from mpc_rr.privacy.disclosures import bounded
from mpc_rr.publication.crosstabs import add_dependences, add_graph, share_table, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, fact, how_many_answered
from mpc_rr.publication.nonresponse import add_non_response, told_alone
from mpc_rr.publication.parts import (
    Absence,
    Cell,
    Cluster,
    ClusterDesign,
    Column,
    Figure,
    Finding,
    Listing,
    Participation,
    Publication,
    Quantity,
    Sheet,
    ViewsDesign,
)
from mpc_rr.publication.sheets import LONGEST_CELL, csv_text, table_csv, table_file
from mpc_rr.schema import Attribute, Schema

REPORTS = "reports.csv"
CODE_BYTES = 2
MOST_WEIGHED = 10_000_000
"""Of larger clusters the shares of all combinations are not worked out, for weights."""
CELL_BYTES = 4
TOO_WIDE = (
    "The questions have {:,} categories together; tables of two questions, and their associations, "
    "are estimated of at most {:,}. Only the shares of single answers are published."
)
EXACTLY = (
    "All who were counted in the first stage answered in the second: shares, and tables of two "
    "questions, are as they were counted."
)
OF_WEIGHTS = "Weights by RR-Adjustment"
"""So begins what is said of weights that are there; folders of before say nothing."""
CORRECT_NO_DEPENDENCE = (
    "They make shares of what was randomized together come out; between other answers dependence "
    "stays as weak as it was reported: take tables, conditions and synthetic records instead."
)
FROM_BOTH = (
    "All who answered in the first stage answered in the second: tables rest on the answers of "
    "both; their limits, on those of the second alone."
)
MOST_CHOSEN = LONGEST_CELL // (2 * CELL_BYTES) - 1
"""So many combinations may a report of a view name: its bytes stand in a cell of the sheet."""
WEIGHED = 2**31
"""From here on views are numbered that are not all drawn alike: so nobody takes the report of a
program that knew no others for one of these, or the other way round."""


def answers_digest(answers: Mapping[str, bytes]) -> bytes:
    """What the coordinator commits itself to: who answered what."""
    hasher = hashlib.sha256(b"mpc-rr answers v1\0")
    for party in sorted(answers):
        hasher.update(msgspec.msgpack.encode((party, answers[party])))
    return hasher.digest()


def pack_record(codes: npt.ArrayLike) -> bytes:
    """A randomized record as bytes."""
    return np.asarray(codes).astype("<u2").tobytes()


def who_answered(
    study: Setting,
    asked: Sequence[str],
    answered: Iterable[str],
    silent: Iterable[str],
    faulty: Mapping[str, str],
    not_asked: Iterable[str] = (),
) -> Participation:
    """Those who answered; the others were silent, or sent what no honest party sends."""
    named = tuple(answered)
    return Participation(
        expected=study.expected,
        present=len(asked),
        counted=len(named),
        counted_parties=named,
        absent=(
            *(Absence(party=party, how="silent") for party in silent),
            *(Absence(party=party, how="faulty", reason=why) for party, why in faulty.items()),
            *(Absence(party=party, how="not asked") for party in not_asked),
        ),
    )


class Collected(Ending, frozen=True):
    """The randomized records of all who answered, and how they were randomized."""

    schema: Schema
    asked: tuple[str, ...]
    answered: tuple[str, ...]
    silent: tuple[str, ...]
    faulty: dict[str, str]
    design: Design
    reported: npt.NDArray[np.int64]
    """One row for each of ``answered``."""
    in_first_stage: int | None = None
    """How many were counted in the first stage, if this is a second one."""
    clustered_by: Dependences | None = None
    """The dependences of a first stage that made the clusters."""
    known: Known | None = None
    """What a first stage told of the very same respondents."""
    earlier: bool = False
    """Whether every table is estimated by itself, as up to rules 3."""

    def __repr__(self) -> str:
        return f"Collected({len(self.answered)} of {len(self.asked)} who were there answered)"

    @property
    def n(self) -> int:
        """How many answered."""
        return len(self.answered)

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as it was announced."""
        answers = (pack_record(row) for row in self.reported)
        return answers_digest(dict(zip(self.answered, answers, strict=True)))

    def estimates(self) -> Estimates:
        """What follows from the reports."""
        fitted = Fitted(self.design, self.reported)
        return Estimates(self.schema, fitted, self.known, earlier=self.earlier)

    def from_reports(self) -> Estimates:
        """The same."""
        return self.estimates()

    def known_before(self) -> Known:
        """What a first stage told of the very same respondents."""
        return self.known or {}

    def participation(self, study: Setting) -> Participation:
        """Who answered."""
        return who_answered(study, self.asked, self.answered, self.silent, self.faulty)

    def publish(self, study: Setting) -> Publication:
        """Shares, dependences and tables, and the reports with their weights."""
        draft, names = Draft(), self.schema.names
        clusters = tuple(
            _cluster(tuple(names[a] for a in cluster), matrix)
            for cluster, matrix in zip(self.design.clusters, self.design.matrices, strict=True)
        )
        with draft.part("the sheet of reports"):
            draft.sheets.append(self._reports(draft))
        _say_who_answered(draft, self.n, len(self.asked), study, self.digest)
        if self.in_first_stage is not None:
            draft.find(_of_first_stage(self.in_first_stage, study), first_stage=self.in_first_stage)
        if self.known and not self.earlier:
            exact = all_counted(self.known)
            if exact or self.design.width <= MOST_IN_ONE_POPULATION:
                draft.find(EXACTLY if exact else FROM_BOTH)
        with draft.part("what the reports tell"):
            _publish_estimates(draft, self.estimates())
        draft.listings.append(_clusters_listed(clusters))
        if self.clustered_by is not None:
            add_graph(draft, self.schema, self.clustered_by, self.design.clusters)
        epsilon = bounded(self.design.epsilon)
        design = ClusterDesign(epsilon=epsilon, clusters=clusters, sheet=REPORTS)
        return draft.publication(randomization=design)

    def _reports(self, draft: Draft) -> Sheet:
        weights = self._weights(draft)
        weighed = weights is not None
        columns = [(w,) for w in weights] if weights is not None else [()] * self.n
        lines: list[list[object]] = [["party", *self.schema.names, *["weight"] * weighed]]
        rows = decoded(self.reported, self.schema)
        for party, row, weight in zip(self.answered, rows, columns, strict=True):
            lines.append([party, *row, *weight])
        what = "each party's randomized record" + ", and its weight by RR-Adjustment" * weighed
        return Sheet.of(REPORTS, what, csv_text(lines))

    def _weights(self, draft: Draft) -> list[float] | None:
        """The weight of each report; None, and a note, where there are none."""
        largest = max(math.prod(self.schema.sizes[a] for a in c) for c in self.design.clusters)
        if largest > MOST_WEIGHED:
            draft.note(
                f"Reports have no weights by RR-Adjustment: a cluster has {largest:,} "
                f"combinations, more than the {MOST_WEIGHED:,} whose shares can be worked out."
            )
            return None
        try:
            found = adjusted_weights(Fitted(self.design, self.reported))
        except NoWeights:
            draft.note(
                "Reports have no weights by RR-Adjustment: each of them has an answer (or, in a "
                "cluster, a combination of answers) whose estimated share is 0."
            )
            return None
        _say_how_weighed(draft, found)
        return [float(w) for w in found.weights]


def _say_how_weighed(draft: Draft, found: RecordWeights) -> None:
    """Whether the weights converged, what they are worth, and what they do not correct."""
    n, trouble = len(found.weights), found.adjustment.trouble
    if trouble is not None:
        draft.warn(f"{OF_WEIGHTS}: {trouble}.")
    ended = "converged" if found.adjustment.converged else "did not converge"
    draft.note(
        f"{OF_WEIGHTS} {ended}; the {n:,} weighted reports are worth about "
        f"{found.effective:,.0f} of equal weight (effective sample size). {CORRECT_NO_DEPENDENCE}"
    )


def _cluster(attributes: tuple[str, ...], matrix: RRMatrix) -> Cluster:
    """How a cluster was randomized, so that it can be undone by whoever reads it."""
    epsilon = bounded(matrix.epsilon)
    if isinstance(matrix, KeepOrUniform):
        return Cluster(attributes=attributes, keep=matrix.keep, epsilon=epsilon)
    if isinstance(matrix, DistanceWeighted):
        return Cluster(attributes=attributes, stay=matrix.stay, epsilon=epsilon)
    assert isinstance(matrix, Dense)
    rows = tuple(map(tuple, matrix.weights.tolist()))
    return Cluster(attributes=attributes, matrix=rows, epsilon=epsilon)


def _clusters_listed(clusters: Sequence[Cluster]) -> Listing:
    """The clusters, each with how it was randomized."""
    columns = [
        Column(name="attributes", label="randomized as one value", kind="attribute"),
        Column(name="keep", label="kept with probability", kind="number"),
        Column(name="epsilon", label="ε", kind="epsilon"),
    ]
    rows: list[tuple[Cell, ...]] = [(c.attributes, c.keep, c.epsilon) for c in clusters]
    if any(cluster.keep is None for cluster in clusters):
        columns.append(Column(name="otherwise", label="otherwise randomized"))
        rows = [(*row, _otherwise(c)) for row, c in zip(rows, clusters, strict=True)]
    return Listing(
        name="clusters", title="Clusters", columns=tuple(columns), rows=tuple(rows), main=False
    )


def _otherwise(cluster: Cluster) -> str:
    if cluster.stay is not None:
        return f"stays with probability {cluster.stay:.3g}, else rather near"
    if cluster.matrix is None:
        return ""
    return "by a matrix of its own" + "; reports exclude answers" * (cluster.epsilon is None)


def decoded(codes: Codes, schema: Schema) -> list[list[str]]:
    """Records as text."""
    return [
        [a.categories[code] for a, code in zip(schema.attributes, row, strict=True)]
        for row in codes.tolist()
    ]


def _say_who_answered(draft: Draft, n: int, asked: int, study: Setting, digest: bytes) -> None:
    text = f"{how_many_answered(n, asked, study.expected)}."
    draft.find(text, counted=n, present=asked, expected=study.expected)
    draft.quantities.append(announced_digest(digest))


def _of_first_stage(n: int, study: Setting) -> str:
    return f"In the first stage {n} of {study.expected} were counted."


def announced_digest(digest: bytes) -> Quantity:
    """What the coordinator committed itself to."""
    label = "digest of all answers, as it was announced"
    return fact("answers_digest", label, digest.hex(), kind="text")


def _publish_estimates(draft: Draft, estimates: Estimates) -> None:
    """What randomized records tell: shares of every answer, tables and dependences of all pairs."""
    with draft.part("the shares of single answers"):
        _publish_marginals(draft, estimates)
    with draft.part("item non-response"):
        add_non_response(draft, told_alone(estimates.schema, draft.tables))
    if estimates.too_wide is not None:
        draft.warn(TOO_WIDE.format(estimates.too_wide, MOST_IN_ONE_POPULATION))
        return
    with draft.part("the dependences"):
        add_dependences(
            draft,
            estimates.schema,
            estimates.strengths(),
            title="Association between attributes, as estimated",
            main=False,
        )
    with draft.part("the tables of pairs"):
        _publish_pairs(draft, estimates)


def _publish_marginals(draft: Draft, estimates: Estimates) -> None:
    for marginal in estimates.marginals():
        table = share_table(
            (marginal.attribute,),
            marginal.shares,
            marginal.unbiased,
            estimates.limits((marginal.place,)),
            main=True,
        )
        draft.tables.append(table)
        draft.figures.append(Figure(kind="intervals", of=table.name))
    untold = [a.name for k, a in enumerate(estimates.schema.attributes)
              if not estimates.fitted.told_together((k,))]  # fmt: skip
    if untold:
        draft.warn(f"Nobody reported {listing(untold)}: nothing is known of it.")


def _publish_pairs(draft: Draft, estimates: Estimates) -> None:
    schema = estimates.schema
    pairs = PairLayout(schema.sizes).pairs
    for number, (i, j) in enumerate(pairs, start=1):
        if (i, j) not in estimates.pairs_told:
            continue
        both = (schema.attributes[i], schema.attributes[j])
        shares, estimate = estimates.pair_tables[i, j], estimates.unbiased(i, j)
        draft.tables.append(share_table(both, shares, estimate, estimates.limits((i, j))))
        name, what = table_file("pairs", number, both), f"shares of {table_name(both)}"
        draft.sheets.append(Sheet.of(name, what, table_csv(both, shares)))
    untold = len(pairs) - len(estimates.pairs_told)
    if untold:
        draft.warn(
            f"{untold} of {len(pairs)} pairs of attributes were reported together by nobody: they "
            "have no table, and their associations cannot be told. More respondents, or larger "
            "views, would tell it."
        )


# ── One view of each ───────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)
def view_design(
    sizes: tuple[int, ...],
    views: tuple[tuple[int, ...], ...],
    epsilon: float,
    weights: tuple[int, ...],
) -> ViewDesign:
    """The design with these views; making one takes a while."""
    return ViewDesign(sizes, views, epsilon, weights)


def _first_number(design: ViewDesign) -> int:
    return 0 if len(set(design.weights)) == 1 else WEIGHED


def pack_report(number: int, cells: Codes, design: ViewDesign) -> bytes:
    """The number of a view, and reported combinations, as bytes."""
    return np.array([_first_number(design) + number, *cells], dtype="<u4").tobytes()


def read_report(report: bytes, design: ViewDesign) -> tuple[int, list[int]]:
    """Number of the view, and reported combinations; ``ValueError`` if an honest party has none."""
    first, *cells = (
        np.frombuffer(report, dtype="<u4").tolist() if len(report) % CELL_BYTES == 0 else []
    ) or [-1]
    number = first - _first_number(design)
    if not 0 <= number < len(design.views):
        raise ValueError("it names no view")
    mechanism = design.mechanisms[design.views[number]]
    if len(cells) != mechanism.chosen or cells != sorted(set(cells)):
        raise ValueError(f"it does not hold {mechanism.chosen} different combinations in order")
    if cells[-1] >= mechanism.size:
        raise ValueError("it has a combination outside its view")
    return number, cells


def view_reports(answers: list[bytes], design: ViewDesign) -> ViewReports:
    """The answers of all parties, by view."""
    drawn = [read_report(answer, design)[0] for answer in answers]
    reports: dict[tuple[int, ...], Codes] = {}
    for number, view in enumerate(design.views):
        mine = [answer for answer, drew in zip(answers, drawn, strict=True) if drew == number]
        numbers = np.frombuffer(b"".join(mine), dtype="<u4").astype(np.int64)
        reports[view] = numbers.reshape(len(mine), 1 + design.mechanisms[view].chosen)[:, 1:]
    return ViewReports(np.array(drawn, dtype=np.int64), reports)


class CollectedViews(Ending, frozen=True):
    """The reports of all who answered, by view."""

    schema: Schema
    asked: tuple[str, ...]
    answers: dict[str, bytes]
    silent: tuple[str, ...]
    faulty: dict[str, str]
    epsilon: float
    views: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    """How often each view is drawn, in proportion."""
    earlier: bool = False
    """Whether every table is estimated by itself, as up to rules 3."""

    def __repr__(self) -> str:
        return f"CollectedViews({len(self.answers)} of {len(self.asked)} who were there answered)"

    @property
    def n(self) -> int:
        """How many answered."""
        return len(self.answers)

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as it was announced."""
        return answers_digest(self.answers)

    @property
    def design(self) -> ViewDesign:
        """How a record is reported."""
        return view_design(self.schema.sizes, self.views, self.epsilon, self.weights)

    def reports(self) -> ViewReports:
        """The reports as the mathematics wants them."""
        return view_reports(list(self.answers.values()), self.design)

    def estimates(self) -> Estimates:
        """What follows from the reports."""
        fitted = FittedViews(self.design, self.reports())
        return Estimates(self.schema, fitted, earlier=self.earlier)

    def from_reports(self) -> Estimates:
        """The same."""
        return self.estimates()

    def participation(self, study: Setting) -> Participation:
        """Who answered."""
        return who_answered(study, self.asked, self.answers, self.silent, self.faulty)

    def publish(self, study: Setting) -> Publication:
        """Shares, dependences and tables, and the reports."""
        draft, names = Draft(), self.schema.names
        with draft.part("the sheet of reports"):
            draft.sheets.append(self._reports_sheet())
        views = tuple(tuple(names[a] for a in view) for view in self.views)
        _say_who_answered(draft, self.n, len(self.asked), study, self.digest)
        with draft.part("what the reports tell"):
            _publish_estimates(draft, self.estimates())
        alike = len(set(self.weights)) == 1
        weights = () if alike else self.weights
        draft.listings.append(_views_listing(views, weights))
        design = ViewsDesign(epsilon=self.epsilon, views=views, weights=weights, sheet=REPORTS)
        return draft.publication(randomization=design)

    def _reports_sheet(self) -> Sheet:
        what = "each party's view, what it reported, and the report's bytes"
        return Sheet.of(REPORTS, what, csv_text(self._report_lines()))

    def _report_lines(self) -> Iterator[tuple[str, ...]]:
        attributes, design = self.schema.attributes, self.design
        views = [[attributes[a] for a in view] for view in design.views]
        names = [" & ".join(a.name for a in view) for view in views]
        yield ("party", "view", "reported", "report")
        for party, report in self.answers.items():
            number, cells = read_report(report, design)
            yield (party, names[number], _reported(cells, views[number]), report.hex())


def _reported(cells: Sequence[int], view: Sequence[Attribute]) -> str:
    """Combinations in words, or how many there are where nobody could read a cell of so many."""
    sizes = tuple(a.size for a in view)
    codes = np.unravel_index(np.array(cells), sizes)
    words = [[a.categories[k] for k in column] for a, column in zip(view, codes, strict=True)]
    said = " | ".join(" & ".join(combination) for combination in zip(*words, strict=True))
    if len(said) <= LONGEST_CELL:
        return said
    return f"{len(cells):,} of {math.prod(sizes):,} combinations"


def _views_listing(views: Sequence[tuple[str, ...]], weights: Sequence[int]) -> Listing:
    """The views; where some are drawn more often than others, with their probabilities."""
    label, total = "one of these was answered by each", sum(weights)
    column = Column(name="attributes", label=label, kind="attribute")
    often = Column(name="probability", label="drawn with probability", kind="number")
    columns: tuple[Column, ...] = (column,)
    rows: list[tuple[Cell, ...]] = [(view,) for view in views]
    if weights:
        columns = (column, often)
        rows = [(view, weight / total) for view, weight in zip(views, weights, strict=True)]
    return Listing(
        name="views", title="Views", columns=tuple(columns), rows=tuple(rows), main=False
    )


# ── What a party knows ─────────────────────────────────────────────────────────────────────────

MAY_BE_MISSING = (
    "Not everyone who was asked is counted, and your answer may be one that is not: `mpc-rr "
    "verify RUN --receipt FILE` tells, with the coordinator's result folder and your receipt."
)


def _own_publication(
    study: Setting, ending: "AnsweredOne | AnsweredOneView", own: Listing
) -> Publication:
    draft, n, asked, digest = Draft(), ending.n, ending.asked, ending.answers_digest
    where = "" if ending.without_verdict else " Estimates are in the coordinator's result folder."
    draft.find(
        f"{how_many_answered(n, asked, study.expected)}; what you reported is randomized.{where}",
        counted=n,
        present=asked,
    )
    if n < asked:
        draft.note(MAY_BE_MISSING)
    draft.quantities.append(announced_digest(digest))
    draft.listings.append(own)
    return draft.publication()


class AnsweredOne(Ending, frozen=True):
    """What a party knows in the end: that so many answered, and what it reported itself."""

    schema: Schema
    asked: int
    n: int
    answers_digest: bytes
    reported: tuple[int, ...]
    in_first_stage: int | None = None
    """How many were counted in the first stage, if there was one."""

    def __repr__(self) -> str:
        return f"AnsweredOne(of {self.n})"

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as the coordinator announced it."""
        return self.answers_digest

    def participation(self, study: Setting) -> Participation:
        """How many answered."""
        return Participation(expected=study.expected, present=self.asked, counted=self.n)

    def publish(self, study: Setting) -> Publication:
        """What it reported itself, randomized."""
        columns = (
            Column(name="attribute", label="question", kind="attribute"),
            Column(name="reported", label="what you reported"),
        )
        own = zip(self.schema.attributes, self.reported, strict=True)
        rows = tuple((a.name, a.categories[code]) for a, code in own)
        listed = Listing(name="reported", title="Your report", columns=columns, rows=rows)
        made = _own_publication(study, self, listed)
        if self.in_first_stage is None:
            return made
        first = Finding(text=_of_first_stage(self.in_first_stage, study))
        return msgspec.structs.replace(made, findings=(*made.findings, first))


class AnsweredOneView(Ending, frozen=True):
    """What a party knows in the end: that so many answered, and which view was its own."""

    schema: Schema
    asked: int
    n: int
    answers_digest: bytes
    view: tuple[str, ...]
    """The attributes it was about."""

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as the coordinator announced it."""
        return self.answers_digest

    def participation(self, study: Setting) -> Participation:
        """How many answered."""
        return Participation(expected=study.expected, present=self.asked, counted=self.n)

    def publish(self, study: Setting) -> Publication:
        """What it was asked about."""
        column = Column(name="attributes", label="what your report was about", kind="attribute")
        listed = Listing(name="view", title="Your view", columns=(column,), rows=((self.view,),))
        return _own_publication(study, self, listed)
