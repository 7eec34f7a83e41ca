"""msgspec's complaints about a file, in words for whoever wrote the file."""

import difflib
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list in [ ]",
    "object": "a table",
    "date": "a date such as 2026-12-31",
    "null": "nothing",
}


WITHIN = "[...]"
"""So msgspec writes that something is in a list, or under a name of the file's own."""


def in_plain_words(error: msgspec.ValidationError, root: Any, *, start: str = "") -> str:
    """The complaint with its place first; ``root`` is the type that was read, ``start`` where."""
    what, _, where = str(error).partition(" - at `$")
    place = where.rstrip("`").lstrip(".").replace(WITHIN, "")
    kinds = list(_at(root, re.findall(r"[^.\[\]]+|\[\.\.\.\]", where.rstrip("`"))))
    if what.startswith("Invalid enum value"):
        what = f"{what.removeprefix('Invalid enum value ')} is not {_one_of(_words(kinds))}"
    elif unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        what = _unknown(unknown.group(1), kinds)
        if place and unknown.group(1) in _fields([root]):
            what = (
                f"{unknown.group(1)!r} belongs at the top of the file, before the first [section]"
            )
    elif expected := re.fullmatch(r"Expected `(.*)`, got `(.*)`", what):
        what = f"{_kinds(expected.group(1))} is due here, not {_kinds(expected.group(2))}"
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        what = f"{missing.group(1)!r} is missing"
    elif what.startswith("Invalid RFC3339 encoded date"):
        what = "write a date like 2026-12-31"
    full = ".".join(part for part in (start, place) if part)
    return f"{full}: {what}" if full else what


def _kinds(names: str) -> str:
    return " or ".join(KINDS.get(name, name) for name in names.split(" | ") if name != "null")


def _unknown(field: str, kinds: Sequence[Any]) -> str:
    known = _fields(kinds)
    close = difflib.get_close_matches(field, known, 1)
    if close:
        return f"there is no {field!r} here; did you mean {close[0]!r}?"
    return f"there is no {field!r} here" + (f"; it is {_one_of(known)}" if known else "")


def _fields(kinds: Sequence[Any]) -> list[str]:
    """The names that a table of such a kind may have."""
    structs = [kind for kind in kinds if _is_struct(kind)]
    return sorted({f.encode_name for kind in structs for f in msgspec.structs.fields(kind)})


def _one_of(words: Sequence[str]) -> str:
    return f"one of {', '.join(map(repr, sorted(set(words))))}"


def _at(kind: Any, path: Sequence[str]) -> Iterator[Any]:
    """The types that may stand at a place below this one."""
    if get_origin(kind) in (Union, types.UnionType):
        for inner in get_args(kind):
            yield from _at(inner, path)
    elif not path:
        yield kind
    elif _is_struct(kind):
        inner = get_type_hints(kind).get(path[0])
        if inner is not None:
            yield from _at(inner, path[1:])
    elif path[0] == WITHIN and get_args(kind):
        values = get_args(kind)[1 if get_origin(kind) is dict else 0]
        yield from _at(values, path[1:])


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _words(kinds: Sequence[Any]) -> list[str]:
    """The words of a ``Literal``."""
    return [str(word) for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
