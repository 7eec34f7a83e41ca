"""Listings of a release beside the truth, which is known in simulations only."""

from mpc_rr.anonymization.beside import Columns, distance_of_shares, moments, relations
from mpc_rr.anonymization.permutation import permutation
from mpc_rr.anonymization.table import Microdata
from mpc_rr.publication.parts import Cell, Column, Listing

NUMBERS = (
    Column(name="attribute", label="attribute", kind="attribute"),
    Column(name="true_mean", label="true mean", kind="number"),
    Column(name="released_mean", label="released", kind="number"),
    Column(name="true_deviation", label="true deviation", kind="number"),
    Column(name="released_deviation", label="released", kind="number"),
)
CATEGORIES = (
    Column(name="attribute", label="attribute", kind="attribute"),
    Column(name="distance", label="distance of distributions", kind="share"),
)
MOVED = (
    Column(name="attribute", label="attribute", kind="attribute"),
    Column(name="distance", label="moved in rank", kind="share"),
    Column(name="correlation", label="rank correlation", kind="number"),
)
RELATED = (
    Column(name="first", label="attribute", kind="attribute"),
    Column(name="second", label="and", kind="attribute"),
    Column(name="measure", label="measure"),
    Column(name="true", label="true", kind="number"),
    Column(name="released", label="released", kind="number"),
)


def distributions(true: Columns, released: Columns) -> list[Listing]:
    """Means and deviations of numbers, and how far distributions of categories are apart."""
    numbers: list[tuple[Cell, ...]] = []
    others: list[tuple[Cell, ...]] = []
    for place, attribute in enumerate(true.attributes):
        if not attribute.numeric:
            apart = distance_of_shares(true, released, place)
            others.append((attribute.name, apart))
            continue
        before, after = moments(true, place), moments(released, place)
        if before is None or after is None:
            numbers.append((attribute.name, None, None, None, None))
        else:
            numbers.append((attribute.name, before[0], after[0], before[1], after[1]))
    found = []
    if numbers:
        found.append(
            Listing(
                name="numbers_beside_truth", title="Numbers beside the truth", columns=NUMBERS,
                rows=tuple(numbers),
                caption="Of those who are in the release. A range counts as its middle.",
            )
        )  # fmt: skip
    if others:
        found.append(
            Listing(
                name="categories_beside_truth", title="Categories beside the truth",
                columns=CATEGORIES, rows=tuple(others),
                caption="Total variation: what share of people would have to answer otherwise. A "
                "set of categories counts as an answer of its own.",
            )
        )  # fmt: skip
    return found


def permutations(true: Microdata, released: Microdata) -> Listing:
    """How far everybody was moved in each ordered attribute."""
    rows: list[tuple[Cell, ...]] = []
    for place, attribute in enumerate(true.attributes):
        there = ~(true.unanswered[:, place] | released.unanswered[:, place])
        if attribute.type == "nominal" or not there.any():
            continue
        found = permutation(true.codes[there, place], released.codes[there, place])
        rows.append((attribute.name, found.distance, found.correlation))
    return Listing(
        name="moved_beside_truth", title="How far masks moved people in rank", columns=MOVED,
        rows=tuple(rows),
        caption="On average, as a share of all ranks, and how ranks before and after correlate.",
    )  # fmt: skip


def relations_listed(true: Columns, released: Columns) -> list[Listing]:
    """How strongly each two attributes depend on each other, before and after."""
    found = relations(true, released)
    rows = tuple((r.first, r.second, r.measure, r.true, r.released) for r in found)
    if not rows:
        return []
    return [
        Listing(
            name="relations_beside_truth", title="Relations beside the truth", columns=RELATED,
            rows=rows,
            caption="Of the rows of the release as they stand, a range as its middle; of two "
            "tables each value stands beside all records of its group in equal parts.",
        )
    ]  # fmt: skip
