"""Views of combinations: as few as possible, every combination once, no attribute twice."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.combinations import combination_views, fewest_views


def assert_proper(views, attributes, together):
    seen = [combination for view in views for combination in view]
    assert sorted(seen) == list(itertools.combinations(range(attributes), together))
    for view in views:
        inside = [attribute for combination in view for attribute in combination]
        assert len(set(inside)) == len(inside)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_combination_is_in_one_of_as_few_views_as_can_be(data):
    attributes = data.draw(st.integers(2, 13))
    together = data.draw(st.integers(1, min(attributes, 5)))
    views = combination_views(attributes, together)
    assert_proper(views, attributes, together)
    assert len(views) == fewest_views(attributes, together)


def fewest_by_search(attributes, together):
    """The smallest number of views that hold all combinations, by trying."""
    everything = list(itertools.combinations(range(attributes), together))

    def fits(count):
        views = [[] for _ in range(count)]

        def place(index):
            if index == len(everything):
                return True
            tried_empty = False
            for view in views:
                if not view and tried_empty:
                    continue
                tried_empty |= not view
                if all(set(everything[index]).isdisjoint(other) for other in view):
                    view.append(everything[index])
                    if place(index + 1):
                        return True
                    view.pop()
            return False

        return place(0)

    return next(count for count in itertools.count(1) if fits(count))


@pytest.mark.parametrize(
    ("attributes", "together"), [(3, 2), (4, 2), (5, 2), (6, 2), (4, 3), (5, 3), (6, 3), (5, 4)]
)
def test_no_search_finds_fewer(attributes, together):
    assert len(combination_views(attributes, together)) == fewest_by_search(attributes, together)


@pytest.mark.parametrize(("attributes", "together", "count"), [(20, 4, 969), (19, 3, 162)])
def test_large_ones_are_there_in_seconds(attributes, together, count):
    views = combination_views(attributes, together)
    assert len(views) == count
    assert_proper(views, attributes, together)


def test_the_papers_examples_have_as_many_views():
    assert len(combination_views(6, 2)) == 5
    assert len(combination_views(5, 2)) == 5


@pytest.mark.parametrize(
    ("attributes", "together", "says"),
    [(3, 4, "do not exist"), (3, 0, "do not exist"), (60, 4, "487,635 combinations of 4")],
)
def test_what_cannot_be_asked_is_refused(attributes, together, says):
    with pytest.raises(InputError, match=says):
        combination_views(attributes, together)
