"""A first draft of a study's schema from a CSV file, for a person to finish."""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np

from mpc_rr.errors import DataError
from mpc_rr.study.records import read_columns, read_text

FEW_NUMBERS = 12
"""A number with at most so many different values is taken as categories with an order."""
MOST_CATEGORIES = 60
BINS = 5

HEAD = """# Drafted from {name}: {rows:,} records. Look at every line before you use it.
# Categories and bins are part of the study file, which everybody sees. They must be what is known
# of the question anyhow, not what these records happen to hold.
"""


def draft_schema(path: Path) -> str:
    """The ``[schema.…]`` tables of a study file, one for each column that can be asked."""
    header = next(csv.reader(io.StringIO(read_text(path), newline="")), [])
    names = [name.strip() for name in header if name.strip()]
    columns = read_columns(path, names)
    rows = len(columns[names[0]])
    parts = [HEAD.format(name=path.name, rows=rows)]
    parts += [_table(name, columns[name]) for name in names]
    if all(part.startswith("#") for part in parts):
        raise DataError(f"{path}: no column has values that could be asked for")
    return "\n".join(parts)


def _table(name: str, values: list[str]) -> str:
    title = name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else (
        json.dumps(name, ensure_ascii=False)
    )  # fmt: skip
    given = [value for value in values if value]
    missing = len(values) - len(given)
    note = f"# {missing:,} records have no value here; they need one, such as \"none\".\n" if (
        missing
    ) else ""  # fmt: skip
    different = sorted(set(given))
    if len(different) < 2:
        return f"# {name}: left out, it has fewer than two different values.\n"
    numbers = _numbers(different)
    if numbers is not None and len(different) > FEW_NUMBERS:
        edges = ", ".join(_edge(edge) for edge in _edges(_numbers(given) or []))
        return f"{note}[schema.{title}]\nbins = [{edges}]\n"
    if len(different) > MOST_CATEGORIES:
        return (
            f"# {name}: left out, {len(different):,} different values are too many (an identifier, "
            "or free text?).\n"
        )
    kind = ""
    if numbers is not None:
        different, kind = sorted(different, key=float), 'type = "ordinal"\n'
    listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in different)
    return f"{note}[schema.{title}]\n{kind}categories = [{listed}]\n"


def _numbers(values: list[str]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _edges(numbers: list[float]) -> list[float]:
    """Open at both ends; between them round numbers near the quantiles."""
    inner = np.quantile(numbers, np.linspace(0, 1, BINS + 1))[1:-1]
    spread = max(numbers) - min(numbers)
    unit = 10.0 ** math.floor(math.log10(spread / (2 * BINS)))
    rounded = sorted({round(float(edge) / unit) * unit for edge in inner})
    return [-math.inf, *rounded, math.inf]


def _edge(edge: float) -> str:
    return str(edge) if math.isinf(edge) else f"{edge:.12g}"
