import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import (
    check_clusters,
    coarsen,
    computed_from,
    dependence_graph,
    determination,
    merge_clusters,
    power_iteration_clusters,
    representatives,
)
from mpc_rr.estimation.dependence import cramers_v


def symmetric(entries, m):
    matrix = np.zeros((m, m))
    for (i, j), value in zip(itertools.combinations(range(m), 2), entries, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


def algorithm_1_by_the_letter(dependences, sizes, t_v, t_d):
    """The paper's loop, with its list and its pointer, written again without a look at ours."""
    clusters = [frozenset([k]) for k in range(len(sizes))]

    def dependence_list():
        pairs = itertools.combinations(sorted(clusters, key=sorted), 2)
        found = [(max(dependences[a, b] for a in c for b in d), c, d) for c, d in pairs]
        return sorted(found, key=lambda x: -x[0])

    ranked, place = dependence_list(), 0
    while place < len(ranked) and ranked[place][0] >= t_d:
        _, first, second = ranked[place]
        if math.prod(sizes[a] for a in first | second) <= t_v:
            clusters.remove(first)
            clusters.remove(second)
            clusters.append(first | second)
            ranked, place = dependence_list(), 0
        else:
            place += 1
    return sorted(tuple(sorted(c)) for c in clusters)


@given(
    st.integers(2, 6).flatmap(
        lambda m: st.tuples(
            st.lists(st.floats(0, 1), min_size=m * (m - 1) // 2, max_size=m * (m - 1) // 2),
            st.lists(st.integers(2, 6), min_size=m, max_size=m),
        )
    ),
    st.integers(2, 200),
    st.floats(0, 1),
)
def test_merging_is_algorithm_1(given_data, t_v, t_d):
    entries, sizes = given_data
    dependences = symmetric(entries, len(sizes))
    found = merge_clusters(dependences, sizes, t_v, t_d)
    assert found == algorithm_1_by_the_letter(dependences, sizes, t_v, t_d)
    assert check_clusters(found, len(sizes)) == found
    assert all(len(c) == 1 or math.prod(sizes[a] for a in c) <= t_v for c in found)


def test_extremes_of_the_thresholds():
    dependences = symmetric([0.9, 0.5, 0.4], 3)
    assert merge_clusters(dependences, [2, 2, 2], 8, 0.0) == [(0, 1, 2)]
    assert merge_clusters(dependences, [2, 2, 2], 8, 0.95) == [(0,), (1,), (2,)]
    assert merge_clusters(dependences, [2, 2, 2], 4, 0.0) == [(0, 1), (2,)]


def blocks(seed):
    """Two groups of attributes: strongly dependent inside, weakly between."""
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.02, 0.15, (6, 6))
    matrix[:2, :2] = rng.uniform(0.6, 0.9)
    matrix[2:, 2:] = rng.uniform(0.4, 0.8, (4, 4))
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize("seed", range(50))
def test_power_iteration_finds_the_blocks(seed):
    found = power_iteration_clusters(dependence_graph("abcdef", blocks(seed)), 2)
    assert sorted(map(sorted, found)) == [["a", "b"], ["c", "d", "e", "f"]]


def test_distances_in_the_place_of_similarities_split_dependent_attributes():
    """What paper 003 prints: 1/V as if it were an affinity. The pairs a–b, c–d, e–f belong
    together; V finds them, 1/V takes the strongest pair apart."""
    entries = [0.9, 0.09, 0.29, 0.13, 0.16, 0.19, 0.06, 0.24, 0.18, 0.7, 0.08, 0.15, 0.17, 0.3, 0.5]
    graph = dependence_graph("abcdef", symmetric(entries, 6))
    pairs = [["a", "b"], ["c", "d"], ["e", "f"]]
    assert sorted(map(sorted, power_iteration_clusters(graph, 3))) == pairs
    assert ["a", "b"] not in power_iteration_clusters(graph, 3, as_printed=True)


def test_every_number_of_clusters_is_reached():
    graph = dependence_graph("abcdef", symmetric(np.linspace(0.1, 0.9, 15), 6))
    for k in range(1, 7):
        found = power_iteration_clusters(graph, k)
        assert len(found) == k
        assert sorted(name for c in found for name in c) == list("abcdef")


def pair_tables(*columns):
    """Of all pairs of columns of records."""
    found = {}
    for i, j in itertools.combinations(range(len(columns)), 2):
        table = np.zeros((max(columns[i]) + 1, max(columns[j]) + 1))
        np.add.at(table, (columns[i], columns[j]), 1)
        found[i, j] = table
    return found


def test_what_is_a_function_of_another_can_be_computed_from_it_and_not_the_reverse():
    """|x − 2| has V = 1 with x, and does not tell x (docs/errata.md)."""
    x = np.arange(500) % 5
    z = abs(x - 2)
    tables = pair_tables(z, x)
    assert cramers_v(tables[0, 1]).value == pytest.approx(1)
    assert determination(tables[0, 1]) == pytest.approx(1 - np.log2(2) * 0.8 / np.log2(5))
    assert determination(tables[0, 1].T) == 1
    assert representatives(tables) == {0: 1, 1: 1}
    assert computed_from(tables[0, 1].T) == ([2, 1, 0, 1, 2], 0)
    assert computed_from(tables[0, 1])[1] == pytest.approx(0.4)


def test_the_rest_are_judged_anew_after_each_choice():
    """Two halves of one number are each computed from it; another pair keeps one for itself."""
    rng = np.random.default_rng(1)
    whole, other = rng.integers(0, 6, 4000), rng.integers(0, 3, 4000)
    tables = pair_tables(whole // 3, other, whole % 3, whole, (other + 1) % 3)
    assert representatives(tables) == {0: 3, 1: 1, 2: 3, 3: 3, 4: 1}


@given(st.integers(0, 10_000), st.floats(0.3, 1))
def test_a_representative_stands_for_itself_and_tells_what_it_stands_for(seed, near):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 4, 200), rng.integers(0, 2, 200)
    noisy = np.where(rng.random(200) < 0.05, rng.integers(0, 4, 200), first)
    tables = pair_tables(first, second, noisy, first // 2, first + 4 * second)
    stands = representatives(tables, near)
    assert sorted(stands) == [0, 1, 2, 3, 4]
    for x, z in stands.items():
        assert stands[z] == z
        table = tables[z, x] if z < x else tables.get((x, z), np.ones((1, 1))).T
        assert x == z or determination(table) >= near


def test_representatives_need_every_table():
    with pytest.raises(InputError, match="every pair"):
        representatives({(0, 1): np.ones((2, 2)), (1, 2): np.ones((2, 2))})
    with pytest.raises(InputError, match="negative"):
        determination([[-1, 2], [1, 1]])
    with pytest.raises(InputError, match="two attributes"):
        computed_from(np.zeros((2, 2)))


def test_coarsening_joins_the_rarest():
    assert coarsen([0.4, 0.05, 0.5, 0.05], 3, ordinal=False) == [(0,), (1, 3), (2,)]
    assert coarsen([0.4, 0.05, 0.5, 0.05], 3, ordinal=True) == [(0, 1), (2,), (3,)]
    assert coarsen([0.2, 0.3, 0.5], 1, ordinal=True) == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: merge_clusters(np.zeros((2, 2)), [2, 2, 2], 4, 0.1), "3 x 3"),
        (lambda: merge_clusters(np.full((2, 2), np.nan), [2, 2], 4, 0.1), "symmetric"),
        (lambda: check_clusters([[0], [0, 1]], 2), "exactly one cluster"),
        (
            lambda: power_iteration_clusters(dependence_graph("ab", np.ones((2, 2))), 3),
            "cannot make 3",
        ),
        (lambda: coarsen([1, 2], 0, ordinal=True), "at least one"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_power_iteration_finds_what_the_degrees_alone_do_not_tell():
    """Two groups alike in every respect: all degrees are equal, so the usual start says nothing."""
    dependences = np.full((6, 6), 0.05)
    for group in ((0, 2, 4), (1, 3, 5)):
        dependences[np.ix_(group, group)] = 0.6
    np.fill_diagonal(dependences, 0)
    graph = dependence_graph(list("abcdef"), dependences)
    assert sorted(power_iteration_clusters(graph, 2)) == [["a", "c", "e"], ["b", "d", "f"]]
