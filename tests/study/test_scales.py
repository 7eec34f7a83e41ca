"""What is known of answers in words: orders, gaps, labels; and what is not known is not guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.study.identifying import Looks, looks
from mpc_rr.study.scales import (
    SCALES,
    in_order,
    numbers_for_no_answer,
    value_labels,
    without_gaps,
    words_for_no_answer,
)


@pytest.mark.parametrize(
    "ordered",
    [
        ["low", "Medium", "HIGH"],
        ["strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"],
        ["nie", "selten", "manchmal", "oft", "immer"],
        ["16-24", "25-39", "40–64", "65+"],
        ["under 18", "18 to 30", "over 30"],
        ["<5 km", "5-9 km", "10 and more"],
        ["0,5-1", "1-1,5"],
    ],
)
def test_scales_that_are_known_are_put_in_their_order(ordered):
    assert in_order(ordered[::-1]) == tuple(ordered)


@pytest.mark.parametrize(
    "texts",
    [
        ["yes", "no"], ["red", "green"], ["low", "purple"], ["low"], ["often", "frequently"],
        ["10-30", "20-40"], ["30-10", "40-50"], ["city", "1-2"], [],
    ],
)  # fmt: skip
def test_no_order_is_invented(texts):
    assert in_order(texts) is None


def some_of(scale):
    return st.lists(st.sampled_from(sorted(scale)), unique=True)


@given(st.sampled_from(SCALES).flatmap(some_of))
def test_a_scale_is_the_same_whatever_of_it_was_answered(words):
    """Words of one scale with different meanings have its order, or that of another scale."""
    found = in_order(words)
    holding = [scale for scale in SCALES if set(words) <= set(scale)]
    fitting = [scale for scale in holding if len({scale[w] for w in words}) == len(words)]
    assert (found is not None) == (bool(fitting) and len(words) > 1)
    if found is not None:
        assert any([*found] == sorted(words, key=scale.get) for scale in fitting)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ("1 2 3 4 5 9", [("9", True)]),
        ("1 2 3 4 5 98 99", [("98", True), ("99", True)]),
        ("18 30 90 99 -9", [("-9", True), ("99", False)]),
        ("0 1 2 3 4 5 6 7 8 9", []),
        ("0 1 2 3 4 5 6 7 9", [("9", False)]),
        ("-9 -5 5 9", [("9", False)]),
        ("9 99", []),
        ("1 2 x 99", []),
        ("812.5 1234.56 2400 5100.25 99999", [("99999", True)]),
        ("812.5 1234.56 2400 5100.25 99999.0", [("99999.0", True)]),
        ("52.5 60.25 81 99999 999", [("999", True), ("99999", True)]),
        ("812.5 1234.56 2400.75 5100.25 999", [("999", False)]),
        ("812.5 1234.56 2400 5100.25 999", []),
        ("0.5 1.25 2.75 -99 -9999", [("-9999", True), ("-99", True)]),
        ("7.5 8 8.5 9 9.5", []),
    ],
)
def test_numbers_that_stand_apart_may_mean_no_answer(texts, found):
    assert numbers_for_no_answer(texts.split()) == found


def test_words_for_no_answer_are_known():
    texts = ["#NULL!", "k.A.", "NA", ".", "none", "no", "yes", "Keine Angabe"]
    assert words_for_no_answer(texts) == ["#NULL!", ".", "Keine Angabe", "NA", "k.A."]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["1 = yes", "2 = no"], {"1 = yes": (1, "yes"), "2 = no": (2, "no")}),
        (["(1) yes", "[2] no"], {"(1) yes": (1, "yes"), "[2] no": (2, "no")}),
        (["1: never", "2", "-9: missing"],
         {"1: never": (1, "never"), "2": (2, ""), "-9: missing": (-9, "missing")}),
        (["1. a", "1. b"], None),
        (["5 km", "10 km"], None),
        (["2 children", "3 or more"], None),
        (["16-24", "25-39"], None),
        (["1", "2", "3"], None),
        (["yes", "2 = no"], None),
    ],
)  # fmt: skip
def test_value_labels_are_told_from_other_texts(texts, found):
    assert value_labels(texts) == found


def test_gaps_are_filled_only_among_few():
    assert without_gaps(["5", "1", "3"], 12) == ["1", "2", "3", "4", "5"]
    assert without_gaps(["1", "40"], 12) == ["1", "40"]


NAMES = [f"Ann{chr(97 + k % 26)} Li{chr(97 + k // 2)}" for k in range(30)]


@pytest.mark.parametrize(
    ("header", "values", "numbers", "found"),
    [
        ("Name", ["Ann", "Bob", "Ann"], False, Looks.PERSON),
        ("first_name", ["Ann", "Bob"], False, Looks.PERSON),
        ("contact", ["a@b.org", "c@d.org", "-"], False, Looks.PERSON),
        ("where", ["+44 20 7946 0000", "+44 20 7946 0001"], False, Looks.PERSON),
        ("ip", ["10.0.0.1", "10.0.0.2"], False, Looks.PERSON),
        ("when", ["2024-01-01", "2024-02-02 10:00"], False, Looks.DATE),
        ("Geburtsdatum", ["1.2.1980", "3.4.1990"], False, Looks.DATE),
        ("respondent_id", ["7", "3", "9"], True, Looks.CODE),
        ("anything", [str(k) for k in range(100, 130)], True, Looks.CODE),
        ("who", [f"x{k}" for k in range(30)], False, Looks.CODE),
        ("remarks", [f"I think that {k} is enough" for k in range(30)], False, Looks.FREE_TEXT),
        ("age", [str((37 * k) % 61 + 18) for k in range(30)], True, None),
        ("income", [str(1000 + 37.5 * k) for k in range(30)], True, None),
        ("id", ["1", "1", "2"], True, None),
        ("car", ["yes", "no"] * 20, False, None),
        ("number of rooms", ["1", "2", "3"], True, None),
    ],
)
def test_columns_that_are_no_questions_are_recognized(header, values, numbers, found):
    assert looks(header, values, numbers=numbers) == found
