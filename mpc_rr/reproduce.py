"""Tables of the papers, computed anew: ours beside the printed values."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass

from mpc_rr.errors import InputError
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import DistanceWeighted, KeepOrUniform


@dataclass(frozen=True)
class Reproduction:
    """A table of the papers: rows of what, printed and ours; and what to know about it."""

    title: str
    rows: tuple[tuple[str, float, float], ...]
    remark: str

    def csv(self) -> str:
        """The table as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["what", "printed", "ours"])
        writer.writerows(self.rows)
        return text.getvalue()


def lambda_table1() -> Reproduction:
    """Paper 001, Table 1: randomization strength of three attributes and of their joint, in %."""
    printed = {
        (0.9, 0.8, 0.7): (25, 41, 56, 31),
        (0.3, 0.2, 0.1): (92, 96, 99, 72),
        (0.6, 0.7, 0.4): (68, 52, 85, 51),
    }
    rows = []
    for keeps, values in printed.items():
        design = Kronecker([KeepOrUniform(5, keep) for keep in keeps])
        strengths = [*(matrix.beta for matrix in design.matrices), design.beta]
        labels = [*(f"attribute with λ = {keep}" for keep in keeps), f"joint of λ = {keeps}"]
        rows += [
            (label, float(value), round(100 * strength, 2))
            for label, value, strength in zip(labels, values, strengths, strict=True)
        ]
    remark = (
        "The printed percentages fit 4 categories instead of the 5 that the text names, and the "
        "joint column divides by one attribute too many."
    )
    return Reproduction("λ-randomization, Table 1", tuple(rows), remark)


CONFIDENTIALITY_CLUSTERS = {
    0.9: (((9, 16), 7.309), ((5, 42), 7.735), ((7, 15, 6, 2, 2), 11.975)),
    0.8: (((9, 16, 5, 42), 11.844), ((15, 2), 5.171), ((7, 6, 2), 6.234)),
    0.7: (((16, 15, 2), 7.337), ((9, 5, 42), 8.569), ((7, 6, 2), 5.695)),
}
"""Sizes of the attributes in each cluster of paper 003's Table 1, and the printed ε.

The paper prints only how many attributes a cluster has. The printed ε leave one composition for
each row, up to exchanging sex and income, which both have two categories.
"""


def confidentiality_table1() -> Reproduction:
    """Paper 003, Table 1: ε of the clusters under distance-weighted randomization."""
    rows = [
        (f"p = {stay}, sizes {sizes}", printed, round(DistanceWeighted(sizes, stay).epsilon, 3))
        for stay, clusters in CONFIDENTIALITY_CLUSTERS.items()
        for sizes, printed in clusters
    ]
    remark = "Eight of nine to rounding; the third at p = 0.9 is 10.434."
    return Reproduction("Statistical input confidentiality, Table 1", tuple(rows), remark)


REPRODUCTIONS: dict[str, Callable[[], Reproduction]] = {
    "lambda-table1": lambda_table1,
    "confidentiality-table1": confidentiality_table1,
}


def reproduce(name: str) -> Reproduction:
    """The reproduction of this name; `InputError` lists the names there are."""
    if name not in REPRODUCTIONS:
        raise InputError(f"there is no {name!r} to reproduce; known: {', '.join(REPRODUCTIONS)}")
    return REPRODUCTIONS[name]()
