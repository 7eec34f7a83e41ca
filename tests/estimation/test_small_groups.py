"""Groups to hide: no sum over fewer people than the limit is shown, nor follows."""

from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.small_groups import groups_to_hide

GROUPS = st.lists(
    st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1
)


@given(GROUPS, st.integers(2, 10))
def test_neither_shown_nor_by_subtraction(people, below):
    """Of everything that enough people are, or gave, in all."""
    hidden = groups_to_hide(people, below)
    for column in zip(*people, strict=True):
        if 0 < sum(column) < below:
            continue
        assert not [n for g, n in enumerate(column) if g not in hidden and 0 < n < below]
        assert not 0 < sum(column[g] for g in hidden) < below


@given(GROUPS, st.integers(2, 10))
def test_nothing_is_hidden_without_a_small_group(people, below):
    small = any(0 < n < below for row in people for n in row)
    assert small or not groups_to_hide(people, below)


def test_the_smallest_others_are_hidden_with_a_small_one():
    assert groups_to_hide([(50, 50), (3, 3), (20, 18), (9, 9)], 5) == {1, 3}
    assert groups_to_hide([(50, 50), (3, 3), (20, 18), (1, 1)], 5) == {1, 2, 3}
    assert groups_to_hide([(50, 50), (6, 4), (20, 18)], 5) == {1, 2}
    assert groups_to_hide([(3, 3), (3, 3), (30, 30)], 5) == {0, 1}
