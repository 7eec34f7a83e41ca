"""Plans: the same budget for all, what would be published, and nothing worse than simpler."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import epsilon_bound
from mpc_rr.estimation.guessing import guessed_population, mean_dependence
from mpc_rr.planning.crowds import (
    AS_GOOD,
    Crowd,
    Crowds,
    Effort,
    Outlook,
    Predicted,
    simplest_of_the_best,
    true_tables,
)
from mpc_rr.planning.designs import (
    MARGINS,
    BlockOptions,
    planned_designs,
    schema_of,
    setting_of,
)
from mpc_rr.planning.plans import TRUST, Known, budget_for_error, plan
from mpc_rr.planning.publishing import of_found_clusters
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.randomness import SeededRandomness

SIZES = (3, 2, 4, 2)
SCHEMA = schema_of(SIZES)
QUICK = Effort(populations=2)
CLUSTERS = [(0, 1), (2,), (3,)]


# ── Designs ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
def test_all_designs_spend_the_same(epsilon):
    designs, refused = planned_designs(SCHEMA, 500, epsilon, clusters=CLUSTERS)
    assert refused == {}
    assert [d.epsilon for d in designs] == pytest.approx([epsilon] * len(designs), rel=1e-6)
    assert {d.name for d in designs} >= {
        MARGINS, "independent", "lambda", "views", "joint", "clusters", "clusters found", "blocks"
    }  # fmt: skip


def test_blocks_of_a_study_keep_their_floor_and_size_and_spend_the_budget():
    wished = BlockOptions(floor=0.5, block=30, together=3)
    designs, _ = planned_designs(SCHEMA, 300, 4.0, blocks=wished)
    protocol = next(d for d in designs if d.name == "blocks").protocol
    assert isinstance(protocol, BlockAggregation)
    assert (protocol.floor, protocol.block, protocol.together) == (0.5, 30, 3)
    dearest = max(
        math.fsum(
            epsilon_bound(protocol.truth(SCHEMA), 0.5, math.prod(SIZES[a] for a in group))
            for group in view
        )
        for view in protocol.views(SCHEMA)
    )
    assert dearest == pytest.approx(4.0)


def test_what_is_planned_can_be_asked_for():
    designs, _ = planned_designs(SCHEMA, 500, 2.0)
    for design in designs:
        if design.protocol is not None:
            design.protocol.check(setting_of(SCHEMA, 500))
            assert design.options["name"] == design.protocol.name


def test_what_cannot_be_had_is_refused_with_its_reason():
    designs, refused = planned_designs(schema_of((20,) * 12), 40, 2.0)
    assert "combinations" in refused["joint"]
    assert MARGINS in {d.name for d in designs}
    _, refused = planned_designs(schema_of((2,) * 12), 5, 2.0)
    assert "only 5 people" in refused["blocks"]


# ── Predictions ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_no_error_is_above_the_trivial_bound(epsilon):
    """Raw tables of so few people at such budgets would be off by thousands."""
    found = plan((5, 4, 3), 60, epsilon, Known(clusters=[(0, 1), (2,)]), QUICK)
    errors = [p.error for outlook in found.outlooks for p in outlook.predicted.values()]
    assert len(found.outlooks) + len(found.refused) >= 8
    assert max(errors) <= 2


def like_a_survey(n, seed):
    """Place, car, health and sport, as in scenarios/block_survey.toml."""
    rng = np.random.default_rng(seed)
    place = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    health = rng.choice(3, n, p=[0.2, 0.5, 0.3])
    car = rng.random(n) < np.array([0.4, 0.7, 0.9])[place]
    sport = rng.random(n) < np.array([0.2, 0.5, 0.8])[health]
    return np.column_stack([place, car, health, sport]).astype(np.int64)


def observed(schema, names, records, epsilon, seed):
    """The mean error of designs on given people, and how far these are from independence."""
    truth = true_tables(records, schema.sizes)
    same = tuple(Crowd("real", records, truth, number) for number in range(6))
    crowds = Crowds(schema, same, Effort(populations=6, seed=seed))
    return tried(crowds, names, len(records), epsilon), crowds.dependence["real"]


def tried(crowds, names, n, epsilon):
    designs = [d for d in planned_designs(crowds.schema, n, epsilon)[0] if d.name in names]
    outlooks, hopeless = crowds.try_out(designs)
    assert hopeless == {}
    return {found.name: found.error for found in outlooks}


def test_predictions_agree_with_what_is_observed_on_other_people():
    """People whose mean dependence alone is told: within the stated trust on average over four
    designs, and each within that and what chance leaves of six runs (about a tenth)."""
    schema, names = schema_of((3, 2, 3, 2)), ("independent", "views", "blocks", "joint")
    found, dependence = observed(schema, names, like_a_survey(3000, 20), 3.0, seed=21)
    effort = Effort(populations=8, seed=22)
    crowds = Crowds.guessed(schema, 3000, effort, {"told": dependence})
    predicted = tried(crowds, names, 3000, 3.0)
    ratios = [predicted[name] / found[name] for name in names]
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1, abs=TRUST)
    assert ratios == pytest.approx([1] * len(names), abs=TRUST + 0.1)


def test_margins_alone_are_off_by_the_dependence_when_they_are_known_well():
    records = guessed_population(SIZES, 0.3, 1).draw(20_000, np.random.default_rng(2).random)
    errors, dependence = observed(SCHEMA, (MARGINS,), records, 12.0, seed=3)
    assert errors[MARGINS] == pytest.approx(dependence, rel=0.05)
    assert dependence == pytest.approx(mean_dependence(true_tables(records, SIZES).values()))


def test_more_people_and_more_budget_help():
    few, many = (plan((2, 3, 2), n, 3.0, effort=QUICK).tables.error for n in (200, 2000))
    more = plan((2, 3, 2), 200, 9.0, effort=QUICK).tables.error
    assert many < 0.6 * few
    assert more < 0.6 * few


def test_a_plan_is_the_same_again_and_another_by_another_seed():
    one, again, other = (
        plan(SIZES, 200, 2.0, effort=Effort(populations=2, seed=seed)) for seed in (1, 1, 2)
    )
    assert [o.predicted for o in one.outlooks] == [o.predicted for o in again.outlooks]
    assert one.margins.predicted != other.margins.predicted


def test_fewer_people_than_asked_may_be_simulated():
    found = plan(SIZES, 10_000, 2.0, effort=Effort(populations=2, people=500))
    assert {len(crowd.records) for crowd in found.crowds.crowds} == {500}


# ── What is recommended ────────────────────────────────────────────────────────────────────────


def outlook(name, *errors):
    design = replace(planned_designs(SCHEMA, 100, 1.0)[0][0], name=name)
    return Outlook(design, {"weak": Predicted(errors[:2]), "strong": Predicted(errors[2:])})


def test_the_simplest_of_those_that_are_as_good_is_recommended():
    """By what is predicted: an error that varies much is not as good for that."""
    simple, better = outlook("simple", 0.3, 0.5, 0.3, 0.5), outlook("better", 0.2, 0.4, 0.2, 0.4)
    hardly = outlook("hardly", 0.199, 0.399, 0.199, 0.399)
    unsure = outlook("unsure", 0.1, 0.6, 0.1, 0.6)
    assert simplest_of_the_best([simple, better, hardly], 1_000_000) is better
    assert simplest_of_the_best([simple, hardly, better], 1_000_000) is hardly
    assert simplest_of_the_best([unsure, better], 1_000_000) is better


def test_independence_is_as_good_where_little_is_told_and_not_where_much_is():
    little, much = (plan((2, 3, 2), 500, epsilon, effort=QUICK) for epsilon in (1.0, 8.0))
    assert little.recommended.name == MARGINS
    assert little.margins_are_as_good
    assert much.recommended is much.tables
    assert "strong" not in much.margins_are_as_good
    for found in (little, much):
        assert found.recommended.error <= (1 + AS_GOOD) * found.outlooks[0].error


def test_shares_alone_are_those_of_the_estimator_that_publishes():
    """They were projected: so far off at a small budget that asking nobody was nearer."""
    found = plan((3, 4), 200, 0.1, effort=Effort(populations=8))
    assert found.margins.error < 1.1 * found.nobody.error
    assert found.recommended is found.nobody


# ── Budgets and pilots ─────────────────────────────────────────────────────────────────────────


def test_the_smallest_budget_for_a_wished_error():
    """A plan at that budget, on as many populations, says that it is reached."""
    epsilon = budget_for_error((2, 3, 2), 1000, 0.1, effort=QUICK)
    reached = plan((2, 3, 2), 1000, epsilon, effort=QUICK)
    below = plan((2, 3, 2), 1000, 0.7 * epsilon, effort=QUICK)
    assert min(o.predicted["middling"].error for o in reached.outlooks) <= 0.1
    assert min(o.predicted["middling"].error for o in below.outlooks) > 0.1


def test_a_pilot_is_measured():
    """Its own dependence, not a guessed one: here all answers are nearly equal."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 2, 400)
    flips = rng.random((400, 2)) < 0.02
    pilot = np.column_stack([first, *((first + flips.T) % 2)])
    found = plan((2, 2, 2), 400, 6.0, Known(pilot=pilot), QUICK)
    assert found.pilot == 400
    assert set(found.crowds.dependence) == {"pilot"}
    assert found.crowds.dependence["pilot"] > 0.8
    assert found.margins.error > 0.8
    assert found.recommended.error < 0.2


def test_people_drawn_from_a_pilot_are_its_people():
    pilot = np.array([[0, 1, 2, 0], [2, 0, 3, 1]])
    crowds = Crowds.like(pilot, SCHEMA, 50, QUICK)
    drawn = {tuple(row) for crowd in crowds.crowds for row in crowd.records.tolist()}
    assert drawn == {(0, 1, 2, 0), (2, 0, 3, 1)}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: plan((3,), 100, 1.0), "at least two attributes"),
        (lambda: plan(SIZES, 1, 1.0), "two respondents"),
        (lambda: plan(SIZES, 100, 0.0), "must be positive"),
        (lambda: plan(SIZES, 100, 61.0), "at most 60"),
        (lambda: plan(SIZES, 100, 1.0, Known(pilot=[[9, 0, 0, 0]])), "not among its 3"),
        (lambda: budget_for_error(SIZES, 100, 0.0), "lies between 0"),
        (lambda: budget_for_error((4,) * 6, 10, 1e-4, effort=QUICK), "protects nobody"),
        (lambda: Effort(populations=1), "at least 2 populations"),
        (lambda: Effort(people=1), "two people"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_clusters_that_are_found_are_published_with_what_the_first_stage_told():
    """Of a first stage at ε = 20 nearly everything is known, of the second at 0.1 nothing."""
    protocol = RRClusters(dependence=RREachAttribute(epsilon=20.0), epsilon=0.1)
    records = like_a_survey(2000, 5)
    schema = schema_of((3, 2, 3, 2))
    found = of_found_clusters(protocol, schema, records, SeededRandomness(6)).pair_tables
    truth = true_tables(records, schema.sizes)
    assert max(float(np.abs(found[pair] - truth[pair]).sum()) for pair in truth) < 0.1


def test_a_question_that_nobody_was_asked_has_equal_shares():
    """Of one person's shares alone, three of four questions are unanswered."""
    margins = planned_designs(SCHEMA, 2, 1.0)[0][0]
    tables = margins.publish(SCHEMA, np.array([[0, 0, 0, 0]]), SeededRandomness(1)).pair_tables
    equal = [table for table in tables.values() if np.allclose(table, 1 / table.size)]
    assert len(equal) >= 3
    assert all(table.sum() == pytest.approx(1) for table in tables.values())
