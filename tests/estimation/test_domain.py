"""Names instead of numbers: the same designs, counts and results."""

import itertools
import math

import numpy as np
import pytest
from helpers import make_schema, random_records
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Fitted, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.domain import Domain
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import best_pair_tables
from mpc_rr.estimation.views import ViewDesign, best_views
from mpc_rr.randomness import SeededRandomness

DOMAIN = Domain(("sex", "age", "car", "pets"), (2, 3, 2, 4))


@st.composite
def domains(draw):
    names = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=5, unique=True))
    sizes = draw(st.lists(st.integers(1, 6), min_size=len(names), max_size=len(names)))
    return Domain(tuple(names), tuple(sizes))


@st.composite
def projections(draw):
    domain = draw(domains())
    order = draw(st.permutations(domain.names))
    return domain, tuple(order[: draw(st.integers(1, len(order)))])


@given(projections())
def test_a_projection_has_the_named_attributes_in_their_order(case):
    domain, names = case
    part = domain.project(names)
    assert part.names == names
    assert part.sizes == tuple(domain.sizes[axis] for axis in domain.axes(names))
    assert tuple(domain.names[axis] for axis in domain.axes(names)) == names
    assert part.size == math.prod(part.sizes)
    assert part.project(names) == part
    assert domain.project(domain.names) == domain


@given(projections(), st.integers(0, 99))
def test_counts_of_some_attributes_are_margins_of_the_counts_of_all(case, seed):
    domain, names = case
    rng = np.random.default_rng(seed)
    records = np.stack([rng.integers(0, size, 30) for size in domain.sizes], axis=1)
    others = tuple(k for k, name in enumerate(domain.names) if name not in names)
    margin = domain.counts(records, domain.names).sum(axis=others)
    kept = [name for name in domain.names if name in names]
    expected = margin.transpose([kept.index(name) for name in names])
    np.testing.assert_array_equal(domain.counts(records, names), expected)


def test_a_domain_comes_from_a_schema():
    assert Domain.of(make_schema((2, 3))) == Domain(("a0", "a1"), (2, 3))
    assert Domain.of(make_schema((2, 3))).size == 6


def test_designs_are_those_of_the_numbers():
    sizes = DOMAIN.sizes
    together = [(0, 2), (1,), (3,)]
    each = {"pets": 4.0, "car": 3.0, "sex": 1.0, "age": 2.0}
    for by_name, by_number in [
        (DOMAIN.independent(0.5), rr_independent(sizes, 0.5)),
        (DOMAIN.joint(4.0), rr_joint(sizes, 4.0)),
        (DOMAIN.clustered([("car", "sex")], 1.0), rr_clusters(sizes, together, [1.0] * 4)),
        (
            DOMAIN.clustered([("car", "sex"), "age"], each),
            rr_clusters(sizes, together, [1.0, 2.0, 3.0, 4.0]),
        ),
    ]:
        assert repr(by_name) == repr(by_number)


def test_views_are_those_of_the_numbers():
    assert DOMAIN.views(2.0).views == best_views(DOMAIN.sizes, 2.0)
    named = DOMAIN.views(2.0, [("age", "sex"), ("car", "pets")])
    assert named.views == ViewDesign(DOMAIN.sizes, [(0, 1), (2, 3)], 2.0).views


def test_results_are_keyed_by_names():
    records = random_records(500, DOMAIN.sizes)
    design = DOMAIN.independent(0.7)
    fitted = Fitted(design, design.randomize(records, SeededRandomness(1)))
    tables = best_pair_tables(fitted, classes=2)
    named = DOMAIN.named(tables)
    assert list(named) == list(DOMAIN.pairs) == list(itertools.combinations(DOMAIN.names, 2))
    assert named["age", "pets"] is tables[1, 3]
    strength = dependences_of_records(records, DOMAIN.sizes)
    assert DOMAIN.by_pair(strength)["age", "car"] == strength[1, 2]


def test_margins_by_name_are_those_of_the_numbers():
    records = np.array(random_records(500, DOMAIN.sizes))
    both = np.full((3, 2), 1 / 6)
    margins = DOMAIN.margins({"sex": [0.3, 0.7], ("age", "car"): both})
    found = adjust(records, margins, DOMAIN.sizes)
    assert found.trouble is None
    np.testing.assert_allclose(found.table(DOMAIN.axes("sex"), DOMAIN.sizes), [0.3, 0.7])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Domain(("a",), (2, 3)), "1 names do not go with 2 sizes"),
        (lambda: Domain(("a", "a"), (2, 3)), "the same name"),
        (lambda: Domain(("a", "b"), (2, 0)), "at least one category"),
        (lambda: DOMAIN.index("zip"), "no attribute 'zip'; they are “sex”, “age”, “car”, “pets”"),
        (lambda: DOMAIN.axes(()), "one or more attributes"),
        (lambda: DOMAIN.axes(("sex", "sex")), "each of them once"),
        (lambda: DOMAIN.clustered([("sex", "age"), ("age",)], 1.0), "exactly one cluster"),
        (
            lambda: DOMAIN.clustered([], {"sex": 1.0}),
            "give an ε for each of “sex”, “age”, “car”, “pets”",
        ),
        (lambda: DOMAIN.margins({("age", "sex"): np.ones((2, 3))}), r"the shape \(3, 2\), not"),
        (lambda: DOMAIN.by_pair(np.ones((2, 2))), "a matrix of 4 rows"),
        (lambda: DOMAIN.counts([[0, 0, 0, 9]], "sex"), "9 is not among its 4 categories"),
    ],
)
def test_wrong_names_and_shapes_are_told(wrong, says):
    with pytest.raises(InputError, match=says):
        wrong()
