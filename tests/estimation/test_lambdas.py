import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.lambdas import (
    keep_for_beta,
    keep_for_epsilon,
    keeps_for_covariances,
    lambdas_for_covariances,
)
from mpc_rr.estimation.matrix import KeepOrUniform


@given(st.integers(2, 30), st.floats(0, 1))
def test_the_wished_entropy_share_is_reached(size, beta):
    assert KeepOrUniform(size, keep_for_beta(size, beta)).beta == pytest.approx(beta, abs=1e-9)


@given(st.integers(2, 30), st.floats(0, 10))
def test_the_wished_epsilon_is_reached(size, epsilon):
    found = KeepOrUniform(size, keep_for_epsilon(size, epsilon)).epsilon
    assert found == pytest.approx(epsilon, abs=1e-9)


def test_covariance_is_kept_to_the_product_of_the_lambdas():
    """Eq. (9), exactly: on the joint distribution itself, without sampling."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(20)).reshape(4, 5)
    x, y = np.arange(4.0), np.arange(5.0)

    def covariance(table):
        return x @ table @ y - (table.sum(1) @ x) * (table.sum(0) @ y)

    design = Kronecker([KeepOrUniform(4, 0.7), KeepOrUniform(5, 0.4)])
    assert covariance(design.apply(joint)) == pytest.approx(0.7 * 0.4 * covariance(joint))


def test_the_smallest_lambdas_that_keep_what_is_wished():
    found = keeps_for_covariances([0.9, 0.9, 0.5, 0.8], {(0, 1): 0.5, (1, 2): 0.3})
    assert found[0] * found[1] >= 0.5 - 1e-9
    assert found[1] * found[2] >= 0.3 - 1e-9
    assert all(f <= m + 1e-9 for f, m in zip(found, [0.9, 0.9, 0.5, 0.8], strict=True))
    assert found[3] == 0.8
    assert np.prod(found[:3]) <= 0.9 * 0.9 * 0.5


def test_a_wish_that_protection_forbids_is_told():
    with pytest.raises(InputError, match=r"cannot keep 50% .* allows at most 42%"):
        keeps_for_covariances([0.6, 0.7], {(0, 1): 0.5})


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(0.05, 1))
def test_the_papers_masked_numbers_can_be_undone(values, keep):
    """001 §5, centralized: individuals as categories. No data but the output and λ are used."""
    masked = KeepOrUniform(len(values), keep).dense() @ np.array(values)
    assert masked.mean() == pytest.approx(np.mean(values), abs=1e-6)
    recovered = (masked - (1 - keep) * masked.mean()) / keep
    np.testing.assert_allclose(recovered, values, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: keep_for_beta(3, 1.2), "between 0 and 1"),
        (lambda: keeps_for_covariances([0.0, 1.0], {}), "above 0"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_nobody_pays_for_the_others():
    assert keeps_for_covariances([1.0, 1.0], {(0, 1): 0.25}) == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize("pair", [(0, 0), (0, 7), (-1, 0)])
def test_a_pair_that_is_none_is_told(pair):
    with pytest.raises(InputError, match="is not a pair"):
        keeps_for_covariances([1.0, 1.0], {pair: 0.25})


# ── λ from wished covariances ──────────────────────────────────────────────────────────────────


@given(
    st.lists(st.floats(0.3, 1), min_size=2, max_size=6),
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 5)), st.floats(0.01, 1), min_size=1, max_size=9
    ),
)
def test_no_lambda_could_be_smaller_alone_and_the_largest_is_the_smallest_possible(most, wished):
    """Against the definition, and a lower bound that needs no algorithm."""
    count = len(most)
    kept = {(i, j): share * most[i] * most[j] for (i, j), share in wished.items() if i < j < count}
    found = keeps_for_covariances(most, kept)
    for (i, j), share in kept.items():
        assert found[i] * found[j] >= share * (1 - 1e-9)
    for index in range(count):
        assert found[index] <= most[index]
        own = [share / found[a + b - index] for (a, b), share in kept.items() if index in (a, b)]
        wanted = max(own) if own else most[index]
        assert found[index] == pytest.approx(wanted, rel=1e-9)
    if kept:
        forced = [max(c**0.5, c / most[i], c / most[j]) for (i, j), c in kept.items()]
        touched = {index for pair in kept for index in pair}
        assert max(found[index] for index in touched) <= max(forced) * (1 + 1e-9)


def test_half_of_all_covariances():
    assert lambdas_for_covariances((2, 5, 9), 0.5) == pytest.approx([0.5**0.5] * 3)


def test_covariances_with_a_least_protection():
    """One may not be as large as the root; the other makes up for it."""
    capped = keep_for_beta(2, 0.7)
    found = keeps_for_covariances([capped, 1.0], {(0, 1): 0.5})
    assert capped < 0.5**0.5
    assert found == pytest.approx([capped, 0.5 / capped])
    with pytest.raises(InputError, match="cannot keep 50% of their covariance"):
        lambdas_for_covariances((2, 2), 0.5, beta=0.7)


def test_an_attribute_of_no_pair_needs_a_protection_of_its_own():
    with pytest.raises(InputError, match="no target is given for the covariances of attribute 2"):
        lambdas_for_covariances((2, 3, 4), {(0, 1): 0.5})
    found = lambdas_for_covariances((2, 3, 4), {(0, 1): 0.2}, beta=0.5)
    assert found[2] == pytest.approx(keep_for_beta(4, 0.5))
