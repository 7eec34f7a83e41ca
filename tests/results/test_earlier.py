"""What is left out where folders of earlier rules are compared."""

from mpc_rr.publication import parts
from mpc_rr.results import earlier
from mpc_rr.schema import Attribute, Schema

IN_COLUMNS = ("attribute_1", "attribute_2", "measure", "value", "p_value")
TAKEN = (("a", "x, y", ("b",)), ("a", "x, z", ("b", "c")), ("c", "u, v", ("b",)))


def dependences_of(*rows, names=IN_COLUMNS, taken=TAKEN):
    """A listing of dependences, and one of rare answers."""
    columns = tuple(parts.Column(name=name, label="") for name in names)
    three = tuple(parts.Column(name=name, label="") for name in ("attribute", "answers", "beside"))
    return parts.Publication(
        listings=(
            parts.Listing(name="dependence", title="", columns=columns, rows=rows),
            parts.Listing(name="taken_together", title="", columns=three, rows=taken),
        )
    )


def large_schema():
    sizes = {"a": 65, "b": 64, "c": 2}
    return Schema(
        tuple(
            Attribute(name, "nominal", tuple(f"v{k}" for k in range(n)))
            for name, n in sizes.items()
        )
    )


def test_large_pairs_are_left_out_wherever_they_stood():
    told, weak = ("a", "b", "V", 0.9, 0.01), ("b", "c", "V", 0.2, None)
    then = dependences_of(told, weak, ("a", "c", "V", None, None))
    now = dependences_of(
        weak[:4], ("a", "b", "V", None), ("a", "c", "V", None),
        names=("attribute_1", "attribute_2", "measure", "value"),
        taken=(("a", "x, z", ("c",)), ("c", "u, v", ("b",))),
    )  # fmt: skip
    one, other, said = earlier.before_tables(then, now, large_schema(), limits=True)
    assert one == other
    assert said == [earlier.NO_LARGE]
    assert [row[:2] for row in one.listings[0].rows] == [("b", "c"), ("a", "c"), ("a", "b")]
    assert earlier.before_tables(then, now, large_schema(), limits=False) == (then, now, [])


def test_rows_that_are_not_whole_are_compared_as_they_are():
    then = dependences_of(("a",), ("b", "c", "V", 0.2, None))
    now = dependences_of(("a", "b", "V", None, None))
    assert earlier.before_tables(then, now, large_schema(), limits=True) == (then, now, [])
