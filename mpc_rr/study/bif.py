"""Bayesian networks in the BIF format: read, sampled, and written."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import DataError, InputError, one_line
from mpc_rr.estimation.matrix import Uniform
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.layout import read_text

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{\s*type\s+discrete\s*\[\s*\d+\s*\]\s*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^)|]+?)\s*(?:\|\s*([^)]+?)\s*)?\)\s*\{([^}]*)\}")
_ROW = re.compile(r"\(([^)]*)\)\s*([^;]*);")
SUM_TOLERANCE = 0.01
_NOT_IN_A_WORD = re.compile(r"[^A-Za-z0-9_.<>=+-]")


@dataclass(frozen=True)
class Node:
    """A variable, those it depends on, and its shares given each of their combinations."""

    parents: tuple[int, ...]
    shares: npt.NDArray[np.float64]
    """One row for each combination of the parents' values, the last parent's changing fastest."""


@dataclass(frozen=True)
class Network:
    """Variables and their dependences."""

    schema: Schema
    nodes: tuple[Node, ...]
    order: tuple[int, ...]
    """Parents before children."""

    def sample(self, count: int, uniform: Uniform) -> npt.NDArray[np.int64]:
        """Records drawn from the network, as category numbers."""
        sizes = self.schema.sizes
        records = np.zeros((count, len(sizes)), dtype=np.int64)
        for number in self.order:
            node = self.nodes[number]
            given = np.zeros(count, dtype=np.int64)
            for parent in node.parents:
                given = given * sizes[parent] + records[:, parent]
            limits = np.cumsum(node.shares, axis=1)[given, :-1]
            records[:, number] = (uniform((count,))[:, None] >= limits).sum(axis=1)
        return records


def read_bif(path: Path) -> Network:
    """A network from a ``.bif`` file; `DataError` says what is wrong with it."""
    text = re.sub(r"//[^\n]*", "", read_text(path))
    try:
        network = _network(text)
        network.schema.check_words()
    except InputError as error:
        raise DataError(f"{path} is not a network in the BIF format: {error}") from None
    return network


def _network(text: str) -> Network:
    found = {name: _words(values) for name, values in _VARIABLE.findall(text)}
    if len(found) < 2:
        raise DataError("it names fewer than two discrete variables")
    names = list(found)
    nodes: dict[str, Node] = {}
    for name, parents, body in _TABLE.findall(text):
        if name not in found or name in nodes:
            raise DataError(f"probabilities of {name!r}, which is unknown or was given before")
        nodes[name] = _node(name, _words(parents), body, found)
    missing = [name for name in names if name not in nodes]
    if missing:
        raise DataError(f"there are no probabilities of {missing[0]!r}")
    schema = Schema(tuple(Attribute(name, "nominal", tuple(found[name])) for name in names))
    in_order = tuple(nodes[name] for name in names)
    return Network(schema, in_order, _order(in_order, names))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _node(name: str, parents: list[str], body: str, values: dict[str, list[str]]) -> Node:
    names = list(values)
    unknown = [parent for parent in parents if parent not in values]
    if unknown:
        raise DataError(f"{name!r} depends on {unknown[0]!r}, which is no variable")
    sizes = [len(values[parent]) for parent in parents]
    shares = np.full((math.prod(sizes), len(values[name])), np.nan)
    if parents:
        for given, row in _ROW.findall(body):
            shares[_place(name, _words(given), parents, values)] = _numbers(name, row, shares)
    else:
        shares[0] = _numbers(name, body.replace("table", "").rstrip(" ;\n\t"), shares)
    if np.isnan(shares).any():
        raise DataError(f"the probabilities of {name!r} are not complete")
    total = shares.sum(axis=1, keepdims=True)
    if (shares < 0).any() or (np.abs(total - 1) > SUM_TOLERANCE).any():
        raise DataError(f"the probabilities of {name!r} do not sum to 1")
    return Node(tuple(names.index(parent) for parent in parents), shares / total)


def _place(name: str, given: list[str], parents: list[str], values: dict[str, list[str]]) -> int:
    place = 0
    if len(given) != len(parents):
        raise DataError(f"a row of {name!r} names {len(given)} values for {len(parents)} parents")
    for parent, value in zip(parents, given, strict=True):
        if value not in values[parent]:
            raise DataError(f"{parent!r} has no value {value!r}")
        place = place * len(values[parent]) + values[parent].index(value)
    return place


def _numbers(name: str, row: str, shares: npt.NDArray[np.float64]) -> list[float]:
    try:
        numbers = [float(word) for word in _words(row)]
    except ValueError:
        raise DataError(f"a probability of {name!r} is not a number") from None
    if len(numbers) != shares.shape[1]:
        raise DataError(f"{name!r} has {shares.shape[1]} values but {len(numbers)} probabilities")
    return numbers


def _order(nodes: tuple[Node, ...], names: list[str]) -> tuple[int, ...]:
    done: list[int] = []
    while len(done) < len(nodes):
        ready = [
            number
            for number, node in enumerate(nodes)
            if number not in done and set(node.parents) <= set(done)
        ]
        if not ready:
            stuck = next(name for number, name in enumerate(names) if number not in done)
            raise DataError(f"{stuck!r} depends on itself")
        done += ready
    return tuple(done)


# ── Writing ────────────────────────────────────────────────────────────────────────────────────


def bif_text(network: Network, name: str) -> str:
    """The network as a ``.bif`` file; comments say what it cannot hold as a name or a value."""
    attributes = network.schema.attributes
    names = _as_words([attribute.name for attribute in attributes])
    values = [_as_words(attribute.categories) for attribute in attributes]
    lines = [f"network {_as_words([name])[0]} {{", "}"]
    for attribute, word, words in zip(attributes, names, values, strict=True):
        both = [(attribute.name, word), *zip(attribute.categories, words, strict=True)]
        lines += [f"// {w} of {word}: {one_line(t)}" for t, w in both if t != w]
        lines += [
            f"variable {word} {{",
            f"  type discrete [ {len(words)} ] {{ {_listed(words)} }};",
        ]
        lines.append("}")
    for node, word in zip(network.nodes, names, strict=True):
        given = f" | {', '.join(names[p] for p in node.parents)}" if node.parents else ""
        lines.append(f"probability ( {word}{given} ) {{")
        rows = [_listed(map(repr, row)) for row in node.shares.tolist()]
        if node.parents:
            known = itertools.product(*(values[parent] for parent in node.parents))
            lines += [f"  ({_listed(k)}) {row};" for k, row in zip(known, rows, strict=True)]
        else:
            lines.append(f"  table {rows[0]};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _as_words(texts: Sequence[str]) -> list[str]:
    """Each text as a word of the format, no two the same; a text that is one stays."""
    found: list[str] = []
    kept = {text for text in texts if text and not _NOT_IN_A_WORD.search(text)}
    for text in texts:
        word = text
        if text not in kept:
            plain = _NOT_IN_A_WORD.sub("_", text) or "_"
            tries = itertools.chain([plain], (f"{plain}_{k}" for k in itertools.count(2)))
            word = next(w for w in tries if w not in kept and w not in found)
        found.append(word)
    return found
