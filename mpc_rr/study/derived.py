"""Attributes that nobody is asked: they are computed from one that is (003 §4)."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mpc_rr.errors import ScenarioError, all_quoted, key, quoted
from mpc_rr.estimation.condition_language import parse_condition
from mpc_rr.estimation.conditions import Among, Condition, replaced
from mpc_rr.estimation.expressions import Expression
from mpc_rr.schema import Attribute, Schema


class Derived(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """``[derived.NAME]``: an attribute that is computed from its representative."""

    source: str
    """The attribute that is asked."""
    values: dict[str, str]
    """For each answer to it, that to this one."""
    wrong: float | None = None
    """Of at most this share of people that is not true, as far as is known."""

    def attribute(self, name: str, schema: Schema) -> Attribute:
        """As if it had been asked; who gave no answer to the other gives none to this."""
        of = schema.attribute(self.source)
        categories = tuple(dict.fromkeys(self.values.values()))
        missing = None if of.missing is None else (of.missing,)
        return Attribute(name, "nominal", categories + (missing or ()), missing=of.missing)

    def check(self, name: str, schema: Schema) -> None:
        """`ScenarioError` if it cannot be computed."""
        where = f"derived.{key(name)}"
        if name in schema.names:
            raise ScenarioError(f"{where}: {quoted(name)} is asked already, as schema.{key(name)}")
        if self.source not in schema.names:
            raise ScenarioError(
                f"{where}.from: there is no attribute {quoted(self.source)}; they are "
                f"{all_quoted(schema.names)}"
            )
        of = schema.attribute(self.source)
        if of.numeric:
            raise ScenarioError(f"{where}.from: {quoted(of.name)} has numbers, not categories")
        answers = [of.categories[code] for code in of.answer_codes]
        if set(self.values) != set(answers):
            raise ScenarioError(
                f"{where}.values: say what follows from each of {all_quoted(answers)}, and nothing "
                "else"
            )
        if len(set(self.values.values())) < 2:
            raise ScenarioError(f"{where}.values: at least two different answers must follow")
        if of.missing in self.values.values():
            raise ScenarioError(
                f"{where}.values: {quoted(of.missing or '')} stands for no answer to "
                f"{quoted(of.name)}"
            )
        if self.wrong is not None and not 0 <= self.wrong < 1:
            raise ScenarioError(f"{where}.wrong: must be a share of people, not {self.wrong}")
        self.attribute(name, schema)


@dataclass(frozen=True)
class Whole:
    """What is asked of people and what is computed from that, to be spoken of alike."""

    asked: Schema
    derived: Mapping[str, Derived]

    @property
    def schema(self) -> Schema:
        """Derived attributes behind those that are asked."""
        found = (derived.attribute(name, self.asked) for name, derived in self.derived.items())
        return Schema((*self.asked.attributes, *found))

    def named(self, condition: Condition) -> dict[str, Derived]:
        """The derived attributes that a condition names."""
        names = self.schema.names
        wanted = (names[place] for place in condition.attributes)
        return {name: self.derived[name] for name in wanted if name in self.derived}

    def named_in(self, asked: Expression, by: str | None, where: str | None) -> dict[str, Derived]:
        """The derived attributes that a statistic names."""
        if not self.derived:
            return {}
        names = {by, *(one.attribute for one in asked.of)}
        found = {name: derived for name, derived in self.derived.items() if name in names}
        for text in (asked.condition, where):
            if text is not None:
                found |= self.named(parse_condition(text, self.schema))
        return found

    def refusal(self, name: str) -> str:
        """Why a statistic of a derived attribute cannot be computed."""
        source = self.derived[name].source
        return (
            f"{quoted(name)} is computed from {quoted(source)}: ask for it with mpc-rr query, in "
            f"share(…), table(…) and --where; or compute this of {quoted(source)}, by scores"
        )

    def of_asked(self, condition: Condition) -> Condition:
        """The same, said of what was asked."""
        schema = self.schema

        def instead(leaf: Among) -> Among:
            if leaf.attribute < len(self.asked.attributes):
                return leaf
            attribute = schema.attributes[leaf.attribute]
            derived = self.derived[attribute.name]
            of = self.asked.attribute(derived.source)
            becomes = {of.missing: of.missing} | derived.values
            wanted = {attribute.categories[code] for code in leaf.codes}
            codes = (k for k, c in enumerate(of.categories) if becomes[c] in wanted)
            return Among(self.asked.names.index(derived.source), frozenset(codes))

        return replaced(condition, instead)
