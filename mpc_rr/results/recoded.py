"""Questions about attributes that nobody was asked: of what was asked, with how wrong these are.

A condition on derived attributes (003 §4) is one on their representatives (`Whole.of_asked`). What
a folder tells of that holds for the others but for the share of people of whom it is not true.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mpc_rr.errors import InputError, listing, quoted
from mpc_rr.estimation.condition_language import in_words, parse_condition, written
from mpc_rr.estimation.expressions import Expression, parse_expression, share
from mpc_rr.estimation.statistics import Between
from mpc_rr.publication.answers import Answer
from mpc_rr.publication.computing import MOST_CELLS, Computed, Value, compute
from mpc_rr.publication.parts import LEVEL
from mpc_rr.publication.told import Told
from mpc_rr.study.derived import Derived, Whole


@dataclass(frozen=True)
class Wrong:
    """How often what was computed of people is not true of them."""

    named: Mapping[str, Derived]

    @property
    def is_known(self) -> bool:
        """Whether the study file says it of all."""
        return all(derived.wrong is not None for derived in self.named.values())

    @property
    def most(self) -> float:
        """Of the population, as far as it is known."""
        return min(math.fsum(derived.wrong or 0.0 for derived in self.named.values()), 1.0)

    def among(self, n: int, level: float) -> int:
        """Of so many respondents: by chance, more may be wrong than of the population."""
        from scipy.stats import binom  # noqa: PLC0415  (a quarter of the time it takes to start)

        return int(binom.ppf(1 - (1 - level) / 2, n, self.most))

    def of_population(self, limits: Between | None) -> Between | None:
        """Limits of a share that hold it."""
        if limits is None:
            return None
        return max(limits[0] - self.most, 0.0), min(limits[1] + self.most, 1.0)

    def said(self, *, held: bool = True) -> str:
        """In words; ``held``: the limits are those that hold it."""
        whose = listing(f"{quoted(name)} from {quoted(d.source)}" for name, d in self.named.items())
        head = f"Nobody was asked this: it is computed, {whose}. "
        if not self.is_known:
            return (
                f"{head}How often that is wrong the study does not say, so the limits do not hold "
                "it."
            )
        if not held:
            return (
                f"{head}The limits do not hold that this is wrong for at most {self.most:.3g} of "
                "the population, as the study file says."
            )
        return (
            f"{head}The limits hold that this is wrong for at most {self.most:.3g} of the "
            "population, as the study file says; how sure that is, is not part of their confidence."
        )


def of_derived(answer: Answer, words: str, named: Mapping[str, Derived]) -> Answer:
    """An answer about attributes that nobody was asked, in limits that hold how wrong these are."""
    wrong, n, interval = Wrong(named), answer.n, answer.interval
    if interval is not None and n is not None:
        most = wrong.among(n, answer.level)
        interval = max(interval[0] - most, 0.0), min(interval[1] + most, float(n))
    return replace(
        answer,
        condition=words,
        interval=interval,
        population=wrong.of_population(answer.population),
        standard_error=None,
        certain=answer.certain and wrong.is_known and not wrong.most,
        how=f"{answer.how} {wrong.said()}",
    )


@dataclass(frozen=True)
class Computable:
    """What a folder tells, to be computed on: of what was asked, and what is computed from that."""

    told: Told
    whole: Whole

    def compute(
        self,
        expression: Expression | str,
        *,
        by: str | None = None,
        where: str | None = None,
        level: float = LEVEL,
    ) -> Computed:
        """A statistic; `InputError` says why it cannot be computed."""
        asked = parse_expression(expression) if isinstance(expression, str) else expression
        if not self.whole.named_in(asked, by, where):
            return compute(self.told, asked, by=by, where=where, level=level)
        self._check(asked, by)
        among, whom = (None, None) if where is None else self._of_asked(where)
        if asked.kind == "table":
            cells = [
                self._share(share(cell), cell, by, among, level) for cell in self._cells(asked)
            ]
            groups = zip(*(cell.values for cell in cells), strict=True)
            found = replace(cells[0], values=tuple(itertools.chain(*groups)))
        elif asked.kind == "share":
            found = self._share(asked, "", by, among, level)
        else:
            found = compute(self.told, asked, by=by, where=among, level=level)
        words = asked if asked.condition is None else replace(
            asked, condition=self._words(asked.condition)
        )  # fmt: skip
        wrong = Wrong(self.whole.named_in(asked, None, where))
        held = asked.kind in ("share", "table") and by is None and where is None
        notes = (*found.notes, wrong.said(held=held))
        return replace(found, expression=str(words), where=whom, notes=notes)

    def _check(self, asked: Expression, by: str | None) -> None:
        """Only shares can be told of what nobody was asked."""
        names = [one.attribute for one in asked.of]
        if asked.kind == "table" and len({*names}) < len(names):
            raise InputError(f"attribute {max(names, key=names.count)!r} is named twice in table()")
        told = () if asked.kind == "table" else names
        outcome = asked.condition if asked.kind == "logistic" else None
        derived = self.whole.derived
        wrong = [name for name in (*told, by) if name in derived]
        wrong += [*self.whole.named_in(share(outcome), None, None)] if outcome else []
        if wrong:
            raise InputError(self.whole.refusal(wrong[0]))

    def _of_asked(self, text: str) -> tuple[str, str]:
        """A condition on what was asked; and how it was understood."""
        condition = parse_condition(text, self.whole.schema)
        return in_words(self.whole.of_asked(condition), self.told.schema), self._words(text)

    def _words(self, text: str) -> str:
        schema = self.whole.schema
        return in_words(parse_condition(text, schema), schema)

    def _cells(self, asked: Expression) -> Iterator[str]:
        """Each combination of answers as a condition."""
        attributes = self.whole.schema.pick([one.attribute for one in asked.of])
        size = math.prod(attribute.size for attribute in attributes)
        if size > MOST_CELLS:
            raise InputError(
                f"this table has {size:,} cells; {MOST_CELLS:,} can be computed: name fewer "
                "attributes"
            )
        for answers in itertools.product(*(attribute.categories for attribute in attributes)):
            both = zip(attributes, answers, strict=True)
            yield " and ".join(f"{written(own.name)} = {written(answer)}" for own, answer in both)

    def _share(
        self, asked: Expression, name: str, by: str | None, among: str | None, level: float
    ) -> Computed:
        assert asked.condition is not None
        wrong = Wrong(self.whole.named_in(asked, None, None))
        instead, _ = self._of_asked(asked.condition)
        found = compute(self.told, share(instead), by=by, where=among, level=level)
        held = by is None and among is None
        return replace(
            found,
            values=tuple(
                self._in_limits(replace(one, name=name), wrong, found.n, level)
                if held
                else replace(one, name=name)
                for one in found.values
            ),
        )

    @staticmethod
    def _in_limits(one: Value, wrong: Wrong, n: int, level: float) -> Value:
        if not wrong.named:
            return one
        respondents = one.respondents
        if respondents is not None and n:
            most = wrong.among(n, level) / n
            respondents = max(respondents[0] - most, 0.0), min(respondents[1] + most, 1.0)
        population = wrong.of_population(one.population)
        return replace(one, standard_error=None, respondents=respondents, population=population)
