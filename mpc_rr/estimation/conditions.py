"""The little language of ``mpc-rr query``: ``sex=Female & income=">50K"``."""

import re
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.estimation.matrix import Array
from mpc_rr.schema import Attribute, Schema

TERM = re.compile(r"""\s*([^=!&"']+?)\s*(!?=)\s*(.+?)\s*""", re.DOTALL)
VALUE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^|"']+?))\s*""")


@dataclass(frozen=True)
class Condition:
    """A conjunction: for some attributes, the categories that are wanted."""

    wanted: dict[int, tuple[int, ...]]

    def in_words(self, schema: Schema) -> str:
        """How it was understood: ``age = 16–30 & place = city | suburb``."""
        return " & ".join(
            f"{schema.names[attribute]} = "
            + " | ".join(schema.attributes[attribute].text(code) for code in codes)
            for attribute, codes in self.wanted.items()
        )

    def indicator(self, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], Array]:
        """The attributes it speaks of, and a table of 0 and 1 over them."""
        attributes = tuple(self.wanted)
        table = np.ones(())
        for attribute in attributes:
            axis = np.zeros(sizes[attribute])
            axis[list(self.wanted[attribute])] = 1
            table = np.multiply.outer(table, axis)
        return attributes, table


def parse_condition(text: str, schema: Schema) -> Condition:
    """``sex=Female & income=">50K"``; several values with ``|``, all but some with ``!=``."""
    wanted: dict[int, tuple[int, ...]] = {}
    for part in _split(text, "&"):
        term = TERM.fullmatch(part)
        if term is None:
            raise InputError(
                f"{part.strip()!r} is not a condition; write attribute=value, several with &"
            )
        name, sign, values = term.groups()
        if name not in schema.names:
            raise InputError(f"there is no attribute {name!r}; they are {all_quoted(schema.names)}")
        index = schema.names.index(name)
        codes = {_code(value, schema.attributes[index]) for value in _split(values, "|")}
        if sign == "!=":
            codes = set(range(schema.sizes[index])) - codes
        codes &= set(wanted.get(index, range(schema.sizes[index])))
        wanted[index] = tuple(sorted(codes))
    return Condition(wanted)


def _split(text: str, separator: str) -> list[str]:
    """Parts between separators that are not in quotes."""
    parts, quote = [""], ""
    for letter in text:
        if letter == separator and not quote:
            parts.append("")
            continue
        parts[-1] += letter
        if letter == quote:
            quote = ""
        elif letter in "\"'" and not quote:
            quote = letter
    if quote:
        raise InputError(f"a quotation mark is not closed in {text.strip()!r}")
    return parts


def _code(text: str, attribute: Attribute) -> int:
    value = VALUE.fullmatch(text)
    if value is None:
        raise InputError(f"attribute {attribute.name!r}: {text.strip()!r} is not a value")
    plain = next(group for group in value.groups() if group is not None)
    if attribute.bins is not None and plain in attribute.categories:
        return attribute.categories.index(plain)
    return attribute.code(plain)
