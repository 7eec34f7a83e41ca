"""Randomized records under their parties' names, or views of them, and what they tell."""

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from mpc_rr.errors import listing
from mpc_rr.estimation.clusters import Dependences
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Estimates, adjusted_weights, uncertainty_of
from mpc_rr.estimation.matrix import Codes, KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.raking import NoWeights
from mpc_rr.estimation.views import FittedViews, ViewDesign, ViewReports
from mpc_rr.publication.crosstabs import add_dependences, add_graph, share_table, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, fact, how_many_answered
from mpc_rr.publication.nonresponse import NoAnswer, add_non_response, estimated
from mpc_rr.publication.parts import (
    Absence,
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
from mpc_rr.publication.sheets import csv_text, table_csv, table_file
from mpc_rr.schema import Schema

REPORTS = "reports.csv"
CODE_BYTES = 2
MOST_WEIGHED = 10_000_000
"""Of larger clusters the shares of all combinations are not worked out, for weights."""
CELL_BYTES = 4


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
        return Estimates(self.schema, Fitted(self.design, self.reported))

    def participation(self, study: Setting) -> Participation:
        """Who answered."""
        return who_answered(study, self.asked, self.answered, self.silent, self.faulty)

    def publish(self, study: Setting) -> Publication:
        """Shares, dependences and tables, and the reports with their weights."""
        draft, names = Draft(), self.schema.names
        clusters = tuple(
            Cluster(
                attributes=tuple(names[a] for a in cluster),
                keep=matrix.keep,
                epsilon=matrix.epsilon,
            )
            for cluster, matrix in zip(self.design.clusters, self.design.matrices, strict=True)
            if isinstance(matrix, KeepOrUniform)
        )
        columns = (
            Column(name="attributes", label="randomized as one value", kind="attribute"),
            Column(name="keep", label="kept with probability", kind="number"),
            Column(name="epsilon", label="ε", kind="epsilon"),
        )
        rows = tuple((c.attributes, c.keep, c.epsilon) for c in clusters)
        with draft.part("the sheet of reports"):
            draft.sheets.append(self._reports(draft))
        _say_who_answered(draft, self.n, len(self.asked), study, self.digest)
        if self.in_first_stage is not None:
            draft.find(_of_first_stage(self.in_first_stage, study), first_stage=self.in_first_stage)
        with draft.part("what the reports tell"):
            _publish_estimates(draft, self.estimates())
        draft.listings.append(
            Listing(name="clusters", title="Clusters", columns=columns, rows=rows, main=False)
        )
        if self.clustered_by is not None:
            add_graph(draft, self.schema, self.clustered_by, self.design.clusters)
        design = ClusterDesign(epsilon=self.design.epsilon, clusters=clusters, sheet=REPORTS)
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
            return [float(w) for w in adjusted_weights(Fitted(self.design, self.reported))]
        except NoWeights:
            draft.note(
                "Reports have no weights by RR-Adjustment: each of them has an answer (or, in a "
                "cluster, a combination of answers) whose estimated share is 0."
            )
            return None


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
        add_non_response(draft, _non_response(estimates))
    with draft.part("the dependences"):
        add_dependences(
            draft,
            estimates.schema,
            estimates.strengths(),
            title="How strongly answers depend on each other, as estimated",
            main=False,
        )
    with draft.part("the tables of pairs"):
        _publish_pairs(draft, estimates)


def _non_response(estimates: Estimates) -> list[NoAnswer]:
    return [
        estimated(
            marginal.attribute,
            0,
            marginal.unbiased.shares,
            uncertainty_of(estimates.fitted, (marginal.place,)),
            marginal.unbiased.n,
        )
        for marginal in estimates.marginals()
        if marginal.attribute.missing is not None
    ]


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
            "have no table, and how strongly they depend on each other cannot be told. More "
            "respondents, or larger views, would tell it."
        )


# ── One view of each ───────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=16)
def view_design(
    sizes: tuple[int, ...], views: tuple[tuple[int, ...], ...], epsilon: float
) -> ViewDesign:
    """The design with these views; making one takes a while."""
    return ViewDesign(sizes, views, epsilon)


def read_report(report: bytes, design: ViewDesign) -> tuple[int, list[int]]:
    """Number of the view, and reported combinations; ``ValueError`` if an honest party has none."""
    numbers = np.frombuffer(report, dtype="<u4").tolist() if len(report) % CELL_BYTES == 0 else []
    if not numbers or numbers[0] >= len(design.views):
        raise ValueError("it names no view")
    mechanism = design.mechanisms[design.views[numbers[0]]]
    cells = numbers[1:]
    if len(cells) != mechanism.chosen or cells != sorted(set(cells)):
        raise ValueError(f"it does not hold {mechanism.chosen} different combinations in order")
    if cells[-1] >= mechanism.size:
        raise ValueError("it has a combination outside its view")
    return numbers[0], cells


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
        return view_design(self.schema.sizes, self.views, self.epsilon)

    def reports(self) -> ViewReports:
        """The reports as the mathematics wants them."""
        return view_reports(list(self.answers.values()), self.design)

    def estimates(self) -> Estimates:
        """What follows from the reports."""
        return Estimates(self.schema, FittedViews(self.design, self.reports()))

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
        column = Column(
            name="attributes", label="one of these was answered by each", kind="attribute"
        )
        draft.listings.append(
            Listing(
                name="views", title="Views", columns=(column,),
                rows=tuple((view,) for view in views), main=False,
            )
        )  # fmt: skip
        design = ViewsDesign(epsilon=self.epsilon, views=views, sheet=REPORTS)
        return draft.publication(randomization=design)

    def _reports_sheet(self) -> Sheet:
        what = "each party's view, what it reported, and the report's bytes"
        return Sheet.of(REPORTS, what, csv_text(self._report_lines()))

    def _report_lines(self) -> Iterator[tuple[str, ...]]:
        attributes, design = self.schema.attributes, self.design
        views = [[attributes[a] for a in view] for view in design.views]
        names = [" & ".join(a.name for a in view) for view in views]
        combinations = [
            [" & ".join(words) for words in itertools.product(*(a.categories for a in view))]
            for view in views
        ]
        yield ("party", "view", "reported", "report")
        for party, report in self.answers.items():
            number, cells = read_report(report, design)
            reported = " | ".join(combinations[number][cell] for cell in cells)
            yield (party, names[number], reported, report.hex())


# ── What a party knows ─────────────────────────────────────────────────────────────────────────

MAY_BE_MISSING = (
    "Not everybody who was asked is counted, and your answer may be one that is not: `mpc-rr "
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
