"""A study that was run from here, in the hands of whoever wants to look at it."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from mpc_rr.errors import InputError
from mpc_rr.estimation.expressions import Expression
from mpc_rr.publication.answers import Answer
from mpc_rr.publication.computing import Computed
from mpc_rr.publication.parts import LEVEL, Publication, Table
from mpc_rr.results.asking import ask
from mpc_rr.results.asking import compute as compute_on
from mpc_rr.results.claims import Claim
from mpc_rr.results.folder import check_folder, write_results
from mpc_rr.results.run import StudyResult
from mpc_rr.results.verification import verify as verify_folder
from mpc_rr.show.fragment import STYLE, fragment, text_of
from mpc_rr.show.report import report
from mpc_rr.show.words import Words


class Tables(Mapping[tuple[str, ...], Table]):
    """What a study published in tables, by the names of their attributes.

    They may be named in any order; the table's axes are in the order of the schema.
    """

    def __init__(self, found: Publication) -> None:
        self._by_names = {tuple(axis.attribute for axis in t.axes): t for t in found.tables}

    def __getitem__(self, names: str | tuple[str, ...]) -> Table:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        for known, table in self._by_names.items():
            if sorted(known) == sorted(wanted):
                return table
        raise KeyError(f"{' × '.join(wanted)}; there are {', '.join(map(str, self._by_names))}")

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._by_names)

    def __len__(self) -> int:
        return len(self._by_names)

    def __repr__(self) -> str:
        return f"Tables({', '.join(' × '.join(names) for names in self._by_names)})"


class Run(StudyResult):
    """How a study ended, with what one does with it. A notebook shows what it found."""

    def __repr__(self) -> str:
        return f"Run({self.study.title!r}, {self.study.protocol.name}, {self._ended})"

    @property
    def _ended(self) -> str:
        if self.outcome.result is None:
            return "aborted"
        people = self.participation
        counted = "" if people.counted is None else f": {people.counted} of {people.expected}"
        return f"done{counted}"

    @property
    def tables(self) -> Tables:
        """The published tables: ``run.tables["car", "place"]``."""
        return Tables(self.publication)

    def save(self, folder: str | Path) -> Path:
        """Write the result folder, which must not be there yet; returns its path."""
        check_folder(Path(folder))
        write_results(self, Path(folder))
        return Path(folder)

    def report(self, file: str | Path, *, language: str | None = None) -> Path:
        """Write the HTML report to a file; returns its path."""
        with tempfile.TemporaryDirectory() as scratch:
            page = report(self.save(Path(scratch) / "run"), language=language)
        try:
            Path(file).write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write {file}: {error.strerror}") from None
        return Path(file)

    def verify(self) -> tuple[Claim, ...]:
        """Replay the transcript and compare; returns what can be said of it, or raises."""
        with tempfile.TemporaryDirectory() as scratch:
            return verify_folder(self.save(Path(scratch) / "run"))

    def query(self, condition: str, level: float = LEVEL) -> Answer:
        """How many meet a condition: the same answer as ``mpc-rr query`` gives of its folder."""
        with tempfile.TemporaryDirectory() as scratch:
            return ask(self.save(Path(scratch) / "run"), condition, level)

    def compute(
        self,
        expression: Expression | str,
        *,
        by: str | None = None,
        where: str | None = None,
        level: float = LEVEL,
        weights: Mapping[str, float] | None = None,
    ) -> Computed:
        """A statistic of the answers: what ``mpc-rr compute`` gives of its folder."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = self.save(Path(scratch) / "run")
            return compute_on(folder, expression, by=by, where=where, level=level, weights=weights)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        cause = "" if self.outcome.result is not None else f"Aborted: {self.outcome.cause}"
        shown = fragment(self.publication, Words(self.study.schema), before=text_of(cause))
        return f'<style>{STYLE}</style><div class="mpc-rr">{shown}</div>'


def verify(run: Run | str | Path) -> tuple[Claim, ...]:
    """Check a run, or a result folder: what is confirmed, and what cannot be.

    Raises `mpc_rr.results.claims.Contradicted` if anything is; its ``claims`` are all of them.
    """
    return run.verify() if isinstance(run, Run) else verify_folder(Path(run))


def query(run: Run | str | Path, condition: str, level: float = LEVEL) -> Answer:
    """How many meet a condition, in a run or a result folder (``docs/query.md``)."""
    return run.query(condition, level) if isinstance(run, Run) else ask(run, condition, level)


def compute(
    run: Run | str | Path,
    expression: Expression | str,
    *,
    by: str | None = None,
    where: str | None = None,
    level: float = LEVEL,
    weights: Mapping[str, float] | None = None,
) -> Computed:
    """A statistic of the answers in a run or a result folder (``docs/compute.md``)."""
    if isinstance(run, Run):
        return run.compute(expression, by=by, where=where, level=level, weights=weights)
    return compute_on(run, expression, by=by, where=where, level=level, weights=weights)
