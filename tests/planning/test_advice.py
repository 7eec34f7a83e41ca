"""What plans advise: one recommendation, and no sentence against another."""

import pytest

from mpc_rr.planning.crowds import Crowds, Effort, Outlook, Predicted, simplest_of_the_best
from mpc_rr.planning.designs import MARGINS, planned_designs, schema_of, setting_of
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
        designs = {d.name: d for d in planned_designs(SCHEMA, 100, 4.0)[0]}
        outlooks = [
            Outlook(
                designs[name],
                {word: Predicted((e, e)) for word, e in zip(WORDS, found, strict=True)},
            )
            for name, found in errors.items()
        ]
        return Plan(
            n=100,
            epsilon=4.0,
            outlooks=tuple(sorted(outlooks, key=lambda found: found.error)),
            recommended=simplest_of_the_best(outlooks),
            tables=simplest_of_the_best([o for o in outlooks if o.name != MARGINS]),
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
