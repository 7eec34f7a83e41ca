"""What was found, in a few sentences: whatever a publication holds that people ask for first.

Each sentence repeats published numbers with their limits, and claims nothing that they do not.
"""

from mpc_rr.estimation.strength import LOWER_TAIL
from mpc_rr.publication.parts import Cell, Listing, Publication, Table
from mpc_rr.show.words import Words, number

MOST = 3
"""Of how many pairs, and of how many questions, it is said in a sentence."""


def brief(found: Publication, words: Words) -> list[str]:
    """The strongest dependences, and the commonest answers, as far as they can be told."""
    return [*_dependences(found.listings, words), *_commonest(found.tables, words)]


def _dependences(listings: tuple[Listing, ...], words: Words) -> list[str]:
    listed = next(filter(_has_verdicts, listings), None)
    if listed is None or not listed.rows:
        return []
    names = [column.name for column in listed.columns]
    rows = [dict(zip(names, row, strict=True)) for row in listed.rows]
    clear = [row for row in rows if str(row["verdict"]).startswith("at least")]
    if clear:
        return [_pair(row, words) for row in clear[:MOST]]
    tested = [row for row in rows if _is_below(row.get("p_value"), LOWER_TAIL)]
    if tested:
        return [_tested(row, words) for row in tested[:MOST]]
    return ["Of no two questions can it be told that their answers depend on each other."]


def _is_below(value: Cell, level: float) -> bool:
    return isinstance(value, float) and value < level


def _tested(row: dict[str, Cell], words: Words) -> str:
    """By a test alone: it needs fewer answers than limits."""
    one, other = (words.attribute(str(row[name])) for name in ("attribute_1", "attribute_2"))
    p_value = number(row["p_value"], "p-value")  # type: ignore[arg-type]
    return (
        f"“{one}” and “{other}” depend on each other (p = {p_value}); how strongly cannot be told."
    )


def _has_verdicts(listed: Listing) -> bool:
    columns = {column.name for column in listed.columns}
    wanted = {"attribute_1", "attribute_2", "measure", "value", "verdict"}
    return listed.name == "dependence" and wanted <= columns


def _pair(row: dict[str, Cell], words: Words) -> str:
    one, other = (words.attribute(str(row[name])) for name in ("attribute_1", "attribute_2"))
    value, measure = row["value"], row["measure"]
    degree = f"{measure} = {number(value, 'degree')}, " if isinstance(value, float | int) else ""
    way = ""
    if measure == "r" and isinstance(value, float | int):
        way = ": the higher the one, the " + ("higher" if value > 0 else "lower") + " the other"
    return f"“{one}” and “{other}” depend on each other ({degree}{row['verdict']}){way}."


def _commonest(tables: tuple[Table, ...], words: Words) -> list[str]:
    """The commonest answers to the first questions that clearly have one."""
    told = (_most_often(table, words) for table in tables)
    return [sentence for sentence in told if sentence][:MOST]


def _most_often(table: Table, words: Words) -> str:
    """Nothing unless its lower limit is above all others' upper ones."""
    if len(table.axes) != 1 or table.kind != "share" or any(table.untold):
        return ""
    limits = list(zip(table.values, table.low or (), table.high or (), strict=False))
    found = [
        (value, low, place)
        for place, (value, low, _) in enumerate(limits)
        if value is not None and low is not None
        if all(
            high is not None and high < low for _, _, high in limits[:place] + limits[place + 1 :]
        )
    ]
    if not found:
        return ""
    ((value, low, place),) = found
    (axis,) = table.axes
    answer = words.category(axis.attribute, axis.categories[place])
    return (
        f"To “{words.attribute(axis.attribute)}” the commonest answer is “{answer}”: an estimated "
        f"{number(value, 'share')} (95 %: {number(low, 'share')} to "
        f"{number(limits[place][2], 'share')})."
    )
