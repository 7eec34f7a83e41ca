"""What plans advise: one recommendation, and no sentence against another."""

from dataclasses import replace

import pytest

from mpc_rr.planning.crowds import Crowds, Effort, Outlook, Predicted, simplest_of_the_best
from mpc_rr.planning.designs import (
    ASK_NOBODY,
    MARGINS,
    WITHOUT_TABLES,
    nobody_asked,
    planned_designs,
    schema_of,
    setting_of,
)
from mpc_rr.planning.plans import Plan
from mpc_rr.show.planning import advice

SCHEMA = schema_of((3, 2, 4, 2))
WORDS = ("weak", "middling", "strong")


@pytest.fixture(scope="module")
def crowds():
    return Crowds.guessed(SCHEMA, 20, Effort(populations=2))


@pytest.fixture
def planned(crowds):
    """A plan of designs, the simplest first, with these errors by strength."""

    def made(errors):
        known = [nobody_asked(), *planned_designs(SCHEMA, 100, 4.0)[0]]
        designs = {d.name: d for d in known}
        errors = {ASK_NOBODY: (1.0, 1.0, 1.0)} | errors
        outlooks = [
            Outlook(
                designs[name],
                {word: Predicted((e, e)) for word, e in zip(WORDS, found, strict=True)},
            )
            for name, found in errors.items()
        ]
        return Plan(
            n=10_000,
            epsilon=4.0,
            outlooks=tuple(sorted(outlooks, key=lambda found: found.error)),
            recommended=simplest_of_the_best(outlooks, 10_000),
            tables=simplest_of_the_best(
                [o for o in outlooks if o.name not in WITHOUT_TABLES], 10_000
            ),
            refused={},
            crowds=crowds,
            setting=setting_of(SCHEMA, 100),
        )

    return made


def test_views_of_two_are_not_taken_where_joint_is_better(planned):
    """M: .14/.20/.16 was taken to be as good as .12/.14/.16, and shares alone with .25 as .20."""
    found = planned(
        {
            MARGINS: (0.14, 0.25, 0.33),
            "views of 2": (0.14, 0.20, 0.16),
            "joint": (0.12, 0.14, 0.16),
        }
    )
    first, *rest = advice(found)
    assert first == (
        "Take joint: its predicted error is the smallest on average over these strengths, and "
        "that of no simpler design is within 5 %."
    )
    assert not any("shares of single answers" in sentence for sentence in rest)


def test_a_simpler_design_is_taken_within_the_tolerance_and_named_as_that(planned):
    found = planned(
        {
            MARGINS: (0.10, 0.25, 0.33),
            "views of 2": (0.11, 0.145, 0.16),
            "joint": (0.10, 0.145, 0.16),
        }
    )
    first, second, *_ = advice(found)
    assert "Take views of 2: " in first
    assert "within 5 % of the smallest (joint)" in first
    assert second == (
        "If dependence is weak, shares of single answers, taken as independent, are predicted to "
        "be as good as tables by joint."
    )


def test_shares_alone_have_their_exception_in_the_same_sentence(planned):
    found = planned({MARGINS: (0.40, 0.40, 0.44), "joint": (0.42, 0.42, 0.36)})
    first, *rest = advice(found)
    assert first.startswith(
        "Do not ask for tables at this budget, unless you expect strong dependence (then tables "
        "by joint): "
    )
    assert not any("better" in sentence or "as good" in sentence for sentence in rest)
    (only, *_) = advice(planned({MARGINS: (0.4, 0.4, 0.4), "joint": (0.42, 0.42, 0.42)}))
    assert "unless" not in only


@pytest.mark.parametrize("weak", [0.30, 0.34, 0.35, 0.36, 0.38, 0.40, 0.45])
def test_shares_alone_are_as_good_somewhere_if_recommended_else_not_everywhere(planned, weak):
    """Though at each strength another design is best."""
    found = planned(
        {
            MARGINS: (weak, 0.4, 0.4),
            "views of 2": (0.30, 0.42, 0.42),
            "joint": (0.40, 0.37, 0.37),
        }
    )
    alike = len(found.margins_are_as_good)
    if found.recommended.name == MARGINS:
        assert alike > 0
    else:
        assert alike < len(WORDS)


def test_nobody_is_asked_for_what_is_known_before(planned):
    """At ε = .1 a plan said "Take independent", which was no nearer than equal shares."""
    found = planned(
        {
            ASK_NOBODY: (0.74, 0.75, 0.76),
            MARGINS: (0.80, 0.80, 0.80),
            "independent": (0.76, 0.74, 0.73),
        }
    )
    (only,) = advice(found)
    assert only.startswith("Do not ask at this budget: equal shares of all answers, ")


def test_half_a_person_is_no_reason_for_a_protocol_of_many_rounds(planned):
    """Of ten thousand people: these errors are .4 of a person apart."""
    found = planned({"joint": (0.00108, 0.00108, 0.00108), "blocks": (0.001, 0.001, 0.001)})
    assert found.recommended.name == "joint"
    assert "within half a person in a wrong cell of the smallest (blocks)" in next(advice(found))


def test_advice_for_fewer_people_than_are_planned_is_said_to_be_that(planned):
    errors = {MARGINS: (0.4, 0.4, 0.4), "joint": (0.42, 0.42, 0.42)}
    assert "This is advice for" not in " ".join(advice(planned(errors)))
    found = replace(planned(errors), n=1_000_000)
    found = replace(found, crowds=replace(found.crowds, effort=Effort(people=100)))
    first, *_ = advice(found)
    assert first.startswith("This is advice for 100 people: ")
    assert "1,000,000" in first
