"""What can be computed, written as text and in Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation import expressions as e
from mpc_rr.estimation.expressions import coded, parse_expression, predictors_of
from mpc_rr.schema import Attribute, Schema

SCHEMA = Schema((
    Attribute("age", "ordinal", ("16–30", "30–45", "45 and over", "no answer"),
              bins=(16, 30, 45, float("inf")), missing="no answer"),
    Attribute("health", "ordinal", ("poor", "fair", "good")),
    Attribute("car", "nominal", ("no", "yes", "none said"), missing="none said"),
    Attribute("trips", "ordinal", ("0", "1", "5")),
    Attribute("pay (net)", "ordinal", ("<=50K", ">50K")),
    Attribute("height", "numeric", (), lowest=0, highest=10, step=1),
))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mean(trips)", e.mean("trips")),
        (" median ( health ) ", e.median("health")),
        ("quantile(health, 0.5)", e.median("health")),
        ("quantile(health, .9)", e.quantile("health", 0.9)),
        ('variance("pay (net)")', e.variance("pay (net)")),
        ("standard_deviation(trips)", e.standard_deviation("trips")),
        ("covariance(trips, health)", e.covariance("trips", "health")),
        ("correlation(score(car, no = 0, yes = 1), 'pay (net)')",
         e.correlation(e.score("car", {"no": 0, "yes": 1}), "pay (net)")),
        ('mean(score("pay (net)", <=50K = 1, ">50K" = 2.5))',
         e.mean(e.score("pay (net)", {"<=50K": 1, ">50K": 2.5}))),
        ("mean(midpoints(age, 45 and over = 60))",
         e.mean(e.midpoints("age", {"45 and over": 60}))),
        ("share(car = yes and (health = good or trips in (0, 1)))",
         e.share("car = yes and (health = good or trips in (0, 1))")),
        ("table(age, car, trips)", e.table("age", "car", "trips")),
        ("linear(trips, health, car)", e.linear("trips", "health", "car")),
        ('logistic("pay (net)" = ">50K", categories(health), car)',
         e.logistic('"pay (net)" = ">50K"', e.categories("health"), "car")),
    ],
)  # fmt: skip
def test_text_says_what_python_says_and_back(text, meant):
    assert parse_expression(text) == meant
    assert parse_expression(str(meant)) == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("trips", "is nothing that can be computed"),
        ("mean trips", "is nothing that can be computed"),
        ("maen(trips)", "did you mean mean?"),
        ("mean(trips", "is nothing that can be computed"),
        ("mean(trips))", "is nothing that can be computed"),
        ("mean(trips, age)", "mean(…) is of 1, separated by commas, not of 2"),
        ("linear(trips)", "linear(…) is of at least 2"),
        ("quantile(trips, 2)", "a quantile is of a share between 0 and 1"),
        ("quantile(trips, many)", "“many” is not a number"),
        ("mean(score(trips))", "write score(attribute, category = number, …)"),
        ("mean(score(trips, 0))", "write category = number"),
        ("mean(score(trips, 0 = nan))", "“nan” is not a number"),
        ("linear(trips, categories(age, a = 1))", "categories(…) is of one attribute"),
        ("mean(" * 200, "is nothing that can be computed"),
        ("m" * 30_000, "an expression may have 20,000 characters"),
    ],
)
def test_what_is_no_expression_is_refused_in_one_line(text, why):
    with pytest.raises(InputError) as error:
        parse_expression(text)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(alphabet="mean(shr,)=\"' <>&|0-", max_size=40))
def test_any_text_is_an_expression_or_an_input_error(text):
    for whole in (text, f"mean({text})", f"mean(score({text}))", f"share({text})"):
        try:
            found = parse_expression(whole)
        except InputError:
            continue
        assert parse_expression(str(found)).kind == found.kind


@pytest.mark.parametrize(
    ("score", "numbers", "said"),
    [
        (e.Score("health"), [0, 1, 2], "the order of its answers (poor = 0, fair = 1, good = 2)"),
        (e.Score("trips"), [0, 1, 5], "the numbers that its answers are"),
        (e.score("car", {"no": -1, "yes": 1.5}), [-1, 1.5, np.nan], "scores as given"),
        (e.midpoints("age", {"45 and over": 60}), [23, 37.5, 60, np.nan], "the middle of each"),
    ],
)  # fmt: skip
def test_what_answers_count_for_is_said(score, numbers, said):
    found = coded(score, SCHEMA)
    assert found.numbers.tolist() == pytest.approx(numbers, nan_ok=True)
    assert said in found.how


@pytest.mark.parametrize(
    ("score", "why"),
    [
        (e.Score("age"), "was asked in intervals, whose numbers nobody reported"),
        (e.Score("car"), "is nominal: its answers are no numbers"),
        (e.Score("heigth"), "did you mean “height”?"),
        (e.Score("height"), "is numeric"),
        (e.midpoints("age"), "“45 and over” has no middle"),
        (e.midpoints("age", {"old": 3, "45 and over": 60}), "“old” is no answer"),
        (e.midpoints("health"), "has no intervals"),
        (e.score("car", {"no": 1}), "there is none for “yes”"),
        (e.score("car", {"no": 1, "yes": 2, "none said": 3}), "“none said” is none of its answers"),
        (e.score("car", {"no": 1, "yes": float("inf")}), "a score is a finite number"),
        (e.categories("car"), "is for predictors"),
        (e.Score("trips", "scores", (("0", 1.0), ("0", 2.0), ("1", 1.0), ("5", 1.0))), "has two"),
    ],
)
def test_what_answers_count_for_must_be_clear(score, why):
    with pytest.raises(InputError) as error:
        coded(score, SCHEMA)
    assert why in str(error.value)


def test_order_is_enough_for_a_quantile():
    assert coded(e.Score("age"), SCHEMA, order_is_enough=True).label(1) == "30–45"


def test_predictors_without_an_order_are_compared_with_the_first():
    columns, said = predictors_of(e.Score("car"), SCHEMA)
    assert [column.name for column in columns] == ["car = yes"]
    assert columns[0].numbers.tolist() == pytest.approx([0, 1, np.nan], nan_ok=True)
    assert said == "car compared with no"
    columns, _ = predictors_of(e.categories("health"), SCHEMA)
    assert [column.name for column in columns] == ["health = fair", "health = good"]
    columns, _ = predictors_of(e.Score("health"), SCHEMA)
    assert [column.numbers.tolist() for column in columns] == [[0, 1, 2]]
