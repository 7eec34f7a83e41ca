"""Paper 001, Table 1."""

from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.reproduce.result import Bars, Reproduction
from mpc_rr.reproduce.verdict import Claim, exactly

PRINTED = {
    (0.9, 0.8, 0.7): (25, 41, 56, 31),
    (0.3, 0.2, 0.1): (92, 96, 99, 72),
    (0.6, 0.7, 0.4): (68, 52, 85, 51),
}
"""Randomization strength in % of three attributes, and of their joint."""

REMARK = (
    "The printed percentages fit 4 categories instead of the 5 that the text names, and the joint "
    "column divides by one attribute too many."
)


def table1() -> Reproduction:
    """Table 1: randomization strength of three attributes and of their joint, in %."""
    rows = []
    for keeps, values in PRINTED.items():
        design = Kronecker([KeepOrUniform(5, keep) for keep in keeps])
        strengths = [*(matrix.beta for matrix in design.matrices), design.beta]
        labels = [*(f"attribute with λ = {keep}" for keep in keeps), f"joint of λ = {keeps}"]
        rows += [
            (label, float(value), round(100 * strength, 2))
            for label, value, strength in zip(labels, values, strengths, strict=True)
        ]
    joints = [row for row in rows if row[0].startswith("joint")]
    return Reproduction(
        "λ-randomization, Table 1",
        ("what", "printed %", "ours %"),
        tuple(rows),
        Bars(
            "% of the largest entropy",
            [label for label, _, _ in rows],
            {"printed": [row[1] for row in rows], "ours": [row[2] for row in rows]},
        ),
        (
            Claim(
                "The joint strengths are as printed, to one percentage point.",
                [exactly(label, 1 - abs(printed - ours)) for label, printed, ours in joints],
            ),
        ),
        (REMARK,),
    )
