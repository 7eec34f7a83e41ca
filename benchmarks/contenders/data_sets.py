"""Real data sets by name: which file of the data folder, and which of its columns."""

import functools
from collections.abc import Callable
from pathlib import Path

from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, Records, read_adult

ADULT, CHILD, ALARM, SURVEY = "adult.csv", "child_10000.csv", "alarm_10000.csv", "survey_8000.csv"
CHILD_A = (
    "ChestXray", "XrayReport", "Disease", "Age", "CardiacMixing", "DuctFlow", "LungParench",
    "LungFlow", "HypoxiaInO2", "LowerBodyO2",
)  # fmt: skip
CHILD_B = (
    "BirthAsphyxia", "HypDistrib", "CO2", "Grunting", "LVHreport", "RUQO2", "CO2Report",
    "GruntingReport", "LVH", "Sick", "Disease",
)  # fmt: skip
ALARM_A = (
    "CVP", "PCWP", "LVEDVOLUME", "STROKEVOLUME", "HYPOVOLEMIA", "LVFAILURE", "HISTORY", "CO",
    "BP", "TPR",
)  # fmt: skip
ALARM_B = (
    "EXPCO2", "MINVOL", "PRESS", "VENTMACH", "VENTTUBE", "VENTLUNG", "VENTALV", "ARTCO2",
    "INTUBATION", "MINVOLSET",
)  # fmt: skip
DATA_SETS = {
    "Adult-8": (ADULT, MDRR_ATTRIBUTES),
    "Child A": (CHILD, CHILD_A),
    "Child B": (CHILD, CHILD_B),
    "Alarm A": (ALARM, ALARM_A),
    "Alarm B": (ALARM, ALARM_B),
    "Survey": (SURVEY, tuple("ASEORT")),
}
"""Child, Alarm and Survey are records drawn from the Bayesian networks of these names, as CSV with
a header: 10,000, 10,000 and 8,000 of them."""


@functools.lru_cache(maxsize=8)
def _read(path: Path, names: tuple[str, ...]) -> Records:
    return read_adult(path, names)


def data_set(name: str, file: Callable[[str], Path]) -> Records:
    """One of them; ``file`` finds a file of the data folder."""
    from_file, columns = DATA_SETS[name]
    return _read(file(from_file), tuple(columns))
