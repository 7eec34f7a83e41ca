"""What a study published, for other programs: CSV with labels, a codebook, and a script for R.

A result folder is made to be verified; this one, to be worked with. Formulas are kept out of CSV
cells as everywhere (`mpc_rr.publication.sheets`). ``docs/export.md`` says what is in it.
"""

import csv
import importlib
import importlib.resources
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpc_rr.errors import InputError, ResultsError
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.matrix import KeepOrUniform, RRMatrix
from mpc_rr.estimation.uncertainty import ExactCounts
from mpc_rr.privacy.sentences import in_all
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import ClusterDesign, Table
from mpc_rr.publication.sheets import csv_text, from_cell, pair_csv, table_csv
from mpc_rr.results.asking import checked_text, estimates_of
from mpc_rr.results.folder import ResultFolder, check_folder, in_the_making, read_folder
from mpc_rr.results.networks import network_of, tree_of
from mpc_rr.results.verification import replay
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.bif import bif_text
from mpc_rr.study.definition import writable

FORMAT = "mpc-rr study codebook"
VERSION = 1
LARGEST_MATRIX = 100
"""Of so many categories a matrix is written out; λ says the same of larger ones."""
OWN = frozenset({
    "tables.csv", "codebook.csv", "quantities.csv", "reports_labelled.csv", "clusters.csv",
    "randomization.csv", "corrected.csv", "codebook.json", "network.bif", "read.r", "listings",
    "matrices",
})  # fmt: skip
"""What an export calls its own files and folders, which a sheet must not replace."""
Lines = list[list[object]]
LAYERS = (
    "values", "standard_errors", "low", "high", "respondents_low", "respondents_high", "unbiased",
    "reported",
)  # fmt: skip
LAYER_NAMES = ("value", "standard_error", *LAYERS[2:])
WEIGHTS = (
    "In reports.csv, 'weight' (if it is there) is that of RR-Adjustment (000, Section 5): with it, "
    "the reports have the estimated shares of each attribute, or cluster of attributes. It does "
    "not undo the randomization between clusters: weighted tables or correlations across clusters "
    "are as weak as the reports'. Take those from tables.csv, or correct them (read.R)."
)
UNWEIGHTED = (
    "There are no weights: each respondent counts as one, and tables are of all who answered, as "
    "'n' says. Randomized reports of views cannot be weighted; take the tables."
)
HOW_TO_READ = (
    "'value' is the best estimate, a proper distribution (or a count); 'unbiased' is what the "
    "matrices alone give, (P^T)^-1 times the reported shares, with its 'standard_error': it may be "
    "negative. 'low' and 'high' are 95 % limits, for the population or the respondents as "
    "'speaks_of' says; 'respondents_low' and 'respondents_high' are for those who answered."
)


def export(run: str | Path, out: str | Path, *, parquet: bool = False) -> Path:
    """Write what a result folder holds into a new folder, and say where.

    What it holds is taken as it stands there; ``mpc-rr verify`` says whether it follows from the
    transcript. `InputError` if the study has no result, or ``parquet`` is asked for and pyarrow is
    not there.
    """
    place = Path(out)
    check_folder(place)
    arrow = _pyarrow() if parquet else None
    folder = read_folder(run)
    if not folder.done:
        raise InputError(f"the study in {folder.path} was aborted; there is nothing to export")
    exported = Exported(folder)
    files = exported.files()
    with in_the_making(place) as making:
        making.write(files)
        if arrow is not None:
            for name, lines in exported.sheets.items():
                _write_parquet(arrow, lines, making.path / f"{name.removesuffix('.csv')}.parquet")
    return place


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow, which is not installed here (pip install pyarrow); without "
            "--parquet the same is written as CSV"
        ) from None


def _write_parquet(arrow: Any, lines: Lines, place: Path) -> None:
    """Columns keep their types; nothing is a formula there, so texts stand as they are."""
    made, parquet = arrow
    head, *rows = lines
    columns = {str(name): [row[k] for row in rows] for k, name in enumerate(head)}
    try:
        parquet.write_table(made.table(columns), str(place))
    except (OSError, made.ArrowException) as error:
        raise ResultsError(f"cannot write {place.name}: {error}") from None


@dataclass(frozen=True)
class Factor:
    """One of the randomizations that a table's answers went through, independent of the others."""

    attributes: tuple[str, ...]
    matrix: RRMatrix

    @property
    def keep(self) -> float | None:
        """Kept with this probability, else uniform; None of any other matrix."""
        return self.matrix.keep if isinstance(self.matrix, KeepOrUniform) else None


class Exported:
    """A finished study as sheets and a codebook."""

    def __init__(self, folder: ResultFolder) -> None:
        self.folder = folder
        self.schema: Schema = folder.definition.schema
        self.published = folder.file.publication
        if folder.version == 1:  # whose tables stand in sheets alone
            self.published = replay(folder).publication

    def files(self) -> dict[str, str]:
        """All files by name."""
        found = {name: csv_text(lines) for name, lines in self.sheets.items()}
        for number, factor in enumerate(self.matrices, start=1):
            found[_matrix_file(number)] = csv_text(_matrix_lines(self.schema, factor))
        for listing in self.published.listings:
            lines: Lines = [[column.name for column in listing.columns]]
            for row in listing.rows:
                lines.append([" & ".join(c) if isinstance(c, tuple) else c for c in row])
            found[f"listings/{listing.name}.csv"] = csv_text(lines)
        tree = tree_of(self.published, self.schema)
        if tree is not None:
            found["network.bif"] = bif_text(
                network_of(tree, self.schema), self.folder.file.study.name
            )
        found["codebook.json"] = self._codebook(sorted(found))
        found["read.R"] = (importlib.resources.files(__package__) / "export.R").read_text("utf-8")
        return found

    @cached_property
    def sheets(self) -> dict[str, Lines]:
        """The tables, the codebook, the reports, how they were randomized."""
        found = {"tables.csv": list(self._tables()), "codebook.csv": list(self._categories())}
        if self.published.quantities:
            found["quantities.csv"] = list(self._quantities())
        found |= self._reports()
        design = self.published.randomization
        if isinstance(design, ClusterDesign):
            lines: Lines = [["cluster", "attribute", "keep", "file"]]
            for number, cluster in enumerate(design.clusters, start=1):
                file = None if cluster.keep is not None else self._file_of(cluster.attributes)
                lines += [[number, name, cluster.keep, file] for name in cluster.attributes]
            found["clusters.csv"] = lines
        if self.factors:
            lines = [["table", "factor", "attributes", "size", "keep", "file"]]
            for table, factors in self.factors.items():
                for number, f in enumerate(factors, start=1):
                    file = None if f.keep is not None else self._file_of(f.attributes)
                    about = " & ".join(f.attributes)
                    lines.append([table, number, about, f.matrix.size, f.keep, file])
            found["randomization.csv"] = lines
        return found

    # ── How answers were randomized ────────────────────────────────────────────────────────────

    @cached_property
    def factors(self) -> dict[str, tuple[Factor, ...]]:
        """Of each table that is estimated by a matrix, what it is made of, in the order of axes."""
        design = self.published.randomization
        tables = {t.name: t for t in self.published.tables if t.unbiased is not None}
        if isinstance(design, ClusterDesign):
            return {name: f for name, t in tables.items() if (f := self._of_reports(design, t))}
        if design is None and any(table.reported is not None for table in tables.values()):
            ending = replay(self.folder).ending
            found = {name: self._of_ending(ending, table) for name, table in tables.items()}
            return {name: factors for name, factors in found.items() if factors}
        return {}

    def _of_reports(self, design: ClusterDesign, table: Table) -> tuple[Factor, ...]:
        """Nothing where a first stage counted the same respondents: that table is not estimated."""
        estimates = self._estimates
        places = [self.schema.names.index(axis.attribute) for axis in table.axes]
        if isinstance(estimates.uncertainty(places), ExactCounts):
            return ()
        found: list[Factor] = []
        for cluster in design.clusters:
            own = tuple(a.attribute for a in table.axes if a.attribute in cluster.attributes)
            if own:
                found.append(Factor(own, self._part(own)))
        order = [axis.attribute for axis in table.axes]
        return tuple(sorted(found, key=lambda factor: order.index(factor.attributes[0])))

    @cached_property
    def _estimates(self) -> Estimates:
        design = self.published.randomization
        assert design is not None
        return estimates_of(self.folder, design)

    def _of_ending(self, ending: Ending, table: Table) -> tuple[Factor, ...]:
        """What an ending itself says of it."""
        names = self.schema.names
        places = tuple(names.index(axis.attribute) for axis in table.axes)
        return tuple(
            Factor(tuple(names[place] for place in own), matrix)
            for own, matrix in ending.randomized_by(places)
        )

    def _part(self, names: Sequence[str]) -> RRMatrix:
        """How some attributes of one cluster were randomized."""
        fitted = self._estimates.fitted
        assert isinstance(fitted, Fitted)
        part = sorted(self.schema.names.index(name) for name in names)
        cluster = next(c for c in fitted.design.clusters if part[0] in c)
        return fitted.design.matrix_of(cluster, part)

    @cached_property
    def matrices(self) -> list[Factor]:
        """Each different matrix of single attributes, and of what was randomized as one value."""
        found: dict[tuple[str, ...], Factor] = {}
        for factors in self.factors.values():
            for factor in factors:
                if factor.matrix.size <= LARGEST_MATRIX:
                    found.setdefault(factor.attributes, factor)
        return list(found.values())

    def _file_of(self, attributes: Sequence[str]) -> str | None:
        """Where the matrix of these attributes is written, if it is."""
        known = [factor.attributes for factor in self.matrices]
        wanted = tuple(attributes)
        return _matrix_file(known.index(wanted) + 1) if wanted in known else None

    # ── Sheets ─────────────────────────────────────────────────────────────────────────────────

    def _tables(self) -> Iterator[list[object]]:
        """A line for each cell of each table."""
        tables = self.published.tables
        axes = range(1, max((len(table.axes) for table in tables), default=1) + 1)
        yield [
            "table", *(f"{what}_{k}" for what in ("attribute", "category", "label") for k in axes),
            "kind", "speaks_of", "n", "hidden", *LAYER_NAMES,
        ]  # fmt: skip
        for table in tables:
            layers = [getattr(table, layer) for layer in LAYERS]
            spare = [""] * (len(axes) - len(table.axes))
            names = [axis.attribute for axis in table.axes]
            for place, cell in enumerate(
                itertools.product(*(axis.categories for axis in table.axes))
            ):
                labels = [self._label(name, c) for name, c in zip(names, cell, strict=True)]
                numbers = [None if layer is None else layer[place] for layer in layers]
                hidden = "yes" if table.values[place] is None else "no"
                yield [
                    table.name, *names, *spare, *cell, *spare, *labels, *spare, table.kind,
                    table.speaks_of, table.n, hidden, *numbers,
                ]  # fmt: skip

    def _quantities(self) -> Iterator[list[object]]:
        """A line for each single number that was found."""
        columns = (
            "name", "label", "value", "kind", "standard_error", "low", "high", "speaks_of",
        )  # fmt: skip
        yield [*columns]
        for found in self.published.quantities:
            yield [getattr(found, column) for column in columns]

    def _label(self, name: str, category: str) -> str:
        return self.schema.attribute(name).category_title(category)

    def _categories(self) -> Iterator[list[object]]:
        """A line for each category of each attribute; of numbers, one."""
        yield [
            "attribute", "type", "attribute_label", "question", "code", "category", "label",
            "missing", "interval",
        ]  # fmt: skip
        for attribute in self.schema.attributes:
            head = [attribute.name, attribute.type, attribute.title(), attribute.asked()]
            if attribute.numeric:
                yield [*head, None, None, attribute.answers, "no", None]
            for code, category in enumerate(attribute.categories):
                missing = "yes" if category == attribute.missing else "no"
                interval = attribute.intervals.get(category)
                yield [
                    *head, code, category, attribute.category_title(category), missing, interval,
                ]  # fmt: skip

    def _reports(self) -> dict[str, Lines]:
        """The sheets of the folder, and of randomized records one with labels.

        Those that say the same as a published table are not written again: tables.csv has it.
        """
        found: dict[str, Lines] = {}
        design = self.published.randomization
        known = {self._as_sheet(table) for table in self.published.tables}
        for sheet in self.published.sheets:
            first = sheet.name.casefold().partition("/")[0]
            if first in OWN or not sheet.name.endswith(".csv"):
                raise InputError(
                    f"{self.folder.path} cannot be exported: its sheet {sheet.name!r} is "
                    "called like a file of the export itself, or is no CSV file"
                )
            text = sheet.text or checked_text(self.folder, self.published, sheet.name)
            if text not in known:
                read = csv.reader(io.StringIO(text, newline=""))
                found[sheet.name] = [[from_cell(cell) for cell in row] for row in read]
        if isinstance(design, ClusterDesign) and design.sheet in found:
            head, *rows = found[design.sheet]
            named = [self._attribute(name) for name in head]
            lines: Lines = [
                [h if a is None else a.title() for a, h in zip(named, head, strict=True)]
            ]
            for row in rows:
                cells = zip(named, row, strict=True)
                lines.append([c if a is None else a.category_title(str(c)) for a, c in cells])
            found["reports_labelled.csv"] = lines
        return found

    def _as_sheet(self, table: Table) -> str | None:
        """A table as a result folder has it in a sheet of its own, if it has."""
        attributes = [self.schema.attribute(axis.attribute) for axis in table.axes]
        if len(attributes) == 2:
            return pair_csv(attributes[0], attributes[1], table.rows())
        if table.kind == "count":
            return None
        return table_csv(attributes, np.array(table.values, dtype=float).reshape(table.shape))

    def _attribute(self, name: object) -> Attribute | None:
        return self.schema.attribute(str(name)) if name in self.schema.names else None

    # ── Codebook ───────────────────────────────────────────────────────────────────────────────

    def _codebook(self, files: Sequence[str]) -> str:
        published, file = self.published, self.folder.file
        privacy, people = published.privacy, published.participation
        design = published.randomization
        matrices = [
            {
                "attributes": factor.attributes,
                "size": factor.matrix.size,
                "keep": factor.keep,
                "epsilon": factor.matrix.epsilon if math.isfinite(factor.matrix.epsilon) else None,
                "file": _matrix_file(number),
            }
            for number, factor in enumerate(self.matrices, start=1)
        ]
        document = {
            "format": FORMAT,
            "version": VERSION,
            "study": msgspec.to_builtins(file.study),
            "description": self.folder.definition.description,
            "protocol": msgspec.to_builtins(file.protocol),
            "simulation": file.seed is not None,
            "counted": None if people is None else people.counted,
            "attributes": msgspec.to_builtins(self.schema.attributes),
            "derived": msgspec.to_builtins(self.folder.definition.derived or {}),
            "randomization": None if design is None else msgspec.to_builtins(design),
            "matrices": matrices,
            "privacy": None
            if privacy is None
            else {
                "epsilon": privacy.local_epsilon,
                "beta": privacy.beta,
                "said": in_all(privacy.events),
                "in_words": privacy.in_words,
            },
            "how_to_weight": WEIGHTS if isinstance(design, ClusterDesign) else UNWEIGHTED,
            "how_to_read_tables": HOW_TO_READ,
            "notes": [note.text for note in published.notes],
            "files": [*files, "codebook.json", "read.R"],
        }
        plain = msgspec.json.encode(writable(document))
        return msgspec.json.format(plain, indent=2).decode() + "\n"


def _matrix_file(number: int) -> str:
    return f"matrices/{number:02}.csv"


def _matrix_lines(schema: Schema, factor: Factor) -> Lines:
    """A header with what is reported, and a line for each truth."""
    combinations: list[str] = [""]
    for attribute in schema.pick(factor.attributes):
        combinations = [
            f"{before} & {category}" if before else category
            for before in combinations
            for category in attribute.categories
        ]
    matrix: RRMatrix = factor.matrix
    head: list[object] = [f"{' & '.join(factor.attributes)} (true \\ reported)", *combinations]
    rows = zip(combinations, matrix.dense().tolist(), strict=True)
    return [head, *([name, *row] for name, row in rows)]
