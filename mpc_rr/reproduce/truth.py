"""Paper 002 (RRBA), Figure 4: ε over the probability p of telling the truth."""

import itertools

import numpy as np

from mpc_rr.estimation.blocks import claimed_epsilon, epsilon_bound
from mpc_rr.reproduce.result import PRINTED, Lines, Reproduction
from mpc_rr.reproduce.verdict import Claim, exactly

TRUTHS = tuple(round(0.05 * k, 2) for k in range(1, 20))
CELLS = (4, 8, 16)
OF_TABLES = {"Table 4": (0.5, 0.25), "Table 5": (0.4, 0.35), "Table 6": (0.5, 0.5)}
"""p and ε as they are printed."""
OURS = (
    "Printed: Eq. 6, ε = ln(1/(1 − p)). Ours: what one answer costs while the table shown is "
    "uniform, ln(1 + p·cells/(1 − p)); it goes to infinity as a cell of that table goes to 0."
)


def figure4() -> Reproduction:
    """Figure 4: ε over p, as Eq. 6 has it and as an answer costs."""
    lines = {PRINTED: [(p, claimed_epsilon(p)) for p in TRUTHS]}
    for cells in CELLS:
        lines[f"{cells} cells"] = [(p, epsilon_bound(p, 1.0, cells)) for p in TRUTHS]
    steps = itertools.pairwise(lines[PRINTED])
    claims = (
        Claim(
            "ε rises with p.",
            [exactly(f"p from {p} to {q}", higher - lower) for (p, lower), (q, higher) in steps],
        ),
        Claim(
            "An answer costs no more than the printed ε.",
            [
                exactly(
                    f"p = {p}, {cells} cells", claimed_epsilon(p) - epsilon_bound(p, 1.0, cells)
                )
                for p in TRUTHS
                for cells in CELLS
            ],
        ),
        Claim(
            "The printed p of Tables 4 to 6 are at most 1 − e^(−ε) of their printed ε (Eq. 6).",
            [
                exactly(f"{table}, p = {p}, ε = {epsilon}", 1 - float(np.exp(-epsilon)) - p)
                for table, (p, epsilon) in OF_TABLES.items()
            ],
        ),
    )
    return Reproduction(
        "RRBA, Figure 4: ε over the probability of the truth",
        ("p", *(f"ε {name}" for name in lines)),
        tuple(
            (p, *(round(line[place][1], 4) for line in lines.values()))
            for place, p in enumerate(TRUTHS)
        ),
        Lines("p", "ε", {"": lines}),
        claims,
        (OURS,),
    )
