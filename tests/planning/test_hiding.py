"""Plans of groups and masks: what they measure is what studies publish, and what few lines find."""

import itertools

import msgspec
import numpy as np
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED, PEOPLE, run
from scipy.stats import spearmanr

from mpc_rr.anonymization.hierarchy import Hierarchy
from mpc_rr.errors import InputError
from mpc_rr.planning import hiding, masking
from mpc_rr.planning.crowds import Effort
from mpc_rr.planning.hiding import Figure, doubling, plan_groups
from mpc_rr.planning.masking import masks_to_try, plan_masks
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.publication.ending import Setting
from mpc_rr.schema import Attribute, Schema

EIGHTS = np.array(PEOPLE)
AGE = Attribute("age", "numeric", (), lowest=0, highest=99, step=1)
SCHOOL = Attribute("school", "ordinal", ("none", "primary", "secondary", "higher"))
PAY = Attribute("pay", "numeric", (), lowest=0, highest=1000, step=1)
ILL = Attribute("ill", "nominal", ("no", "yes"))
SCHEMA = Schema((AGE, SCHOOL, PAY, ILL))
LEVELS = {
    "age": (10.0, 50.0),
    "school": ({"low": ("none", "primary"), "high": ("secondary", "higher")},),
}
BY_LEVELS = CollaborativeKAnonymity(
    k=4, quasi_identifiers=("age", "school"), confidential=("pay", "ill"),
    partition="generalization", release="generalized", hierarchies=LEVELS, suppress=0.1,
)  # fmt: skip
BY_MDAV = msgspec.structs.replace(
    BY_LEVELS, partition="mdav", release="microaggregated", hierarchies=None, suppress=None
)


def people(n=80, seed=3):
    """Schooling and pay depend on age; a few are much older than the rest."""
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.05, rng.integers(80, 99, n), rng.integers(18, 60, n))
    school = np.clip((age - 18) // 12 + rng.integers(-1, 2, n), 0, 3)
    pay = np.clip(age * 8 + rng.integers(-100, 101, n), 0, 1000)
    return np.stack([age, school, pay, rng.integers(0, 2, n)], axis=1)


@pytest.fixture(scope="module")
def levels():
    return plan_groups(BY_LEVELS, SCHEMA, people(), 80, Effort(populations=3))


@pytest.fixture(scope="module")
def mdav():
    return plan_groups(BY_MDAV, SCHEMA, people(), 80, Effort(populations=3))


@pytest.mark.parametrize("release", ["microaggregated", "generalized", "anatomy", "permuted"])
def test_a_plan_of_eight_is_what_the_study_of_the_eight_publishes(release):
    """Nobody is as near as another in Fig. 1, so groups depend on no chance."""
    protocol = msgspec.structs.replace(IN_GROUPS, release=release)
    ending = run(protocol)[0].result
    setting = Setting(study="s", schema=EIGHT, expected=8, parties=8, fewest=8)
    published = ending.publish(setting)
    plan = plan_groups(protocol, EIGHT, EIGHTS, 8, Effort(populations=2))
    way = plan.way(hiding.STUDY, 4)
    assert way.figure("lost").mean == pytest.approx(published.quantity("squared_error").value)
    assert way.figure("linked").mean == 1 / 4
    assert way.figure("different").mean == published.listing("protection").rows[0][1]
    curator = plan.way(hiding.CURATOR, 4)
    assert curator.figure("lost").values == way.figure("lost").values
    assert curator.figure("collector").mean == 1  # all eight differ


def grouped_by_hand(records, k, most):
    """Over all levels of two hierarchies: the released classes that lose least, as ARX seeks."""
    ages = [lambda a: a, lambda a: a // 10, lambda a: a // 50, lambda _: 0]
    schools = [lambda s: s, lambda s: s // 2, lambda _: 0]
    widths = [[0, 9 / 99, 49 / 99, 1], [0, 1 / 3, 1]]
    best = None
    for (i, age), (j, school) in itertools.product(enumerate(ages), enumerate(schools)):
        classes = {}
        for n, row in enumerate(records.tolist()):
            classes.setdefault((age(row[0]), school(row[1])), []).append(n)
        gone = [n for own in classes.values() if len(own) < k for n in own]
        kept = [own for own in classes.values() if len(own) >= k]
        cost = widths[0][i] + widths[1][j]
        if kept and len(gone) <= most and (best is None or cost < best[0]):
            best = (cost, i, j, kept, gone)
    return best


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_leaving_out_loses_what_is_left_out_too(levels, k):
    """Of age: an interval stands for its middle, and nothing for who is left out."""
    records = people()
    for name, most in ((hiding.STUDY, 0), (hiding.LEFT_OUT, 8), (hiding.SUPPRESSING, 8)):
        _, i, j, kept, gone = grouped_by_hand(records, k, most)
        shares = []
        for column, width, count in ((0, [0, 10, 50][i] if i < 3 else None, 100),
                                     (1, [0, 2][j] if j < 2 else None, 4)):  # fmt: skip
            true = records[:, column].astype(float)
            inside = np.concatenate(kept)
            told = np.full(80, true.mean())
            for n in inside:
                if width == 0:
                    told[n] = true[n]
                elif width is None:
                    told[n] = true[inside].mean()
                else:
                    first = true[n] // width * width
                    told[n] = (first + min(first + width, count) - 1) / 2
            shares.append(((true - told) ** 2).sum() / ((true - true.mean()) ** 2).sum())
        way = levels.way(name, k)
        assert way.figure("lost").mean == pytest.approx(np.mean(shares))
        assert way.figure("left_out").mean == pytest.approx(len(gone) / 80)
        if name == hiding.LEFT_OUT:  # who is left out told nothing, and is not linked
            assert way.figure("linked").mean == pytest.approx(len(kept) / 80)
        if name == hiding.SUPPRESSING:  # her values stand among those of all who were left out
            assert way.figure("linked").mean == pytest.approx((len(kept) + bool(gone)) / 80)


def test_a_curator_makes_the_same_groups_and_hides_better(mdav):
    """Where nobody can tell who is in which group, a centre may be nearest to somebody else's."""
    for k in (2, 3, 5, 10, 20):
        study, curator = mdav.way(hiding.STUDY, k), mdav.way(hiding.CURATOR, k)
        assert curator.figure("lost").mean == pytest.approx(study.figure("lost").mean, rel=0.05)
        assert curator.figure("linked").mean <= study.figure("linked").mean
        assert curator.figure("collector").mean > study.figure("collector").mean
        safe = mdav.way(hiding.AS_SAFE_CURATOR, k)
        assert safe.figure("linked").mean == pytest.approx(study.figure("linked").mean)
        assert safe.figure("lost").mean <= curator.figure("lost").mean


def test_masking_alone_is_as_safe_on_average_but_not_for_the_most_exposed(mdav):
    for k in (3, 5, 10):
        study, alone = mdav.way(hiding.STUDY, k), mdav.way(hiding.ALONE, k)
        assert alone.figure("linked").mean == pytest.approx(study.figure("linked").mean)
        assert alone.figure("highest").mean > 1.5 * study.figure("highest").mean
        assert max(study.figure("highest").values) <= 1 / k
        assert 0 < alone.figure("lost").mean < 1
        worst = mdav.way(hiding.ALONE_AT_WORST, k)
        pairs = zip(worst.figure("highest").values, study.figure("highest").values, strict=True)
        assert all(own is None or own <= other + 1e-9 for own, other in pairs)
        pairs = zip(worst.figure("lost").values, alone.figure("lost").values, strict=True)
        assert all(own is None or own > other for own, other in pairs)


def test_relations_are_those_of_ranks_before_and_after():
    """Two numbers only, released as the centres of their groups."""
    schema = Schema((AGE, PAY))
    protocol = CollaborativeKAnonymity(k=20, quasi_identifiers=("age",), confidential=("pay",))
    records = people()[:, [0, 2]]
    plan = plan_groups(protocol, schema, records, 80, Effort(populations=2))
    order = np.argsort(records[:, 0], kind="stable")
    found = plan.way(hiding.STUDY, 20).figure("relations").values
    true = spearmanr(records[:, 0], records[:, 1]).statistic
    centres = np.empty(80)
    groups, _ = msgspec.structs.replace(protocol, k=20).groups_of(
        schema, [(age,) for age in records[:, 0].tolist()], order.tolist()
    )
    for group in groups:
        centres[list(group)] = records[list(group), 0].mean()
    after = spearmanr(centres, records[:, 1]).statistic
    # Equal ages are put into groups by chance, here in another order than in the plan.
    assert found[0] == pytest.approx(abs(true - after), abs=0.02)


def test_fewer_than_the_pilot_are_drawn_and_differ(mdav):
    assert mdav.people == mdav.pilot == 80
    plan = plan_groups(BY_MDAV, SCHEMA, people(), 40, Effort(populations=3))
    assert (plan.people, plan.pilot, plan.asked) == (40, 80, 40)
    assert len(set(plan.way(hiding.STUDY, 5).figure("lost").values)) == 3
    again = plan_groups(BY_MDAV, SCHEMA, people(), 40, Effort(populations=3))
    assert again.ways == plan.ways


def test_quasi_identifiers_that_do_not_vary_lose_nothing():
    same = people(40)
    same[:, :2] = [30, 1]
    plan = plan_groups(BY_MDAV, SCHEMA, same, 40, Effort(populations=2))
    assert plan.way(hiding.STUDY, 4).figure("lost").mean is None
    assert plan.way(hiding.STUDY, 4).figure("linked").mean <= 1 / 4


def test_a_sign_is_told_only_where_chance_allows_it():
    """t with 4 populations: 5.84 standard errors at 1 in 100."""
    assert Figure((1.0, 1.0, 1.0)).sign == 1
    assert Figure((0.0, 0.0)).sign == 0
    assert Figure((1.0, 2.0, 3.0, 4.0)).sign is None
    assert Figure((-1.0, -1.1, -1.2, -1.1)).sign == -1
    assert Figure((1.0, None)).sign is None
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(2000):  # 20 expected; more than 45 once in a million
        wrong += Figure(tuple(rng.normal(size=4).tolist())).sign is not None
    assert wrong <= 45


@pytest.mark.parametrize("attribute", [AGE, SCHOOL, ILL, PAY])
def test_lent_levels_are_nested_and_double(attribute):
    for finest in range(5):
        found = Hierarchy(attribute, doubling(attribute, finest))  # which checks that they nest
        assert len(found.levels) <= finest
    assert doubling(ILL, 4) == ()


# ── Masks ──────────────────────────────────────────────────────────────────────────────────────


def test_masks_of_the_eight_are_measured_as_few_lines_do():
    plan = plan_masks(MASKED, EIGHT, EIGHTS, 8, Effort(populations=3))
    assert [w.mask for w in plan.ways if (w.attribute, w.name) == ("age", masking.STUDY)] == [
        "noise:1", "noise:2", "noise:5", "noise:10", "noise:20",
    ]  # fmt: skip
    ages = sorted(row[1] for row in PEOPLE)
    # Noise of 1: only 28 and 29, and 49 and 50, can be taken for each other.
    narrow = plan.way(masking.STUDY, "age", "noise:1")
    for found in narrow.found:
        assert found.given_away >= 4 / 8
        assert found.moved <= 4 / 8 / 7
        assert found.margin == 0
    assert narrow.for_anybody.mean == 1
    # A curator's rows leave all within twice the width.
    for width in (1, 5, 20):
        curator = plan.way(masking.CURATOR, "age", f"noise:{width}")
        left = [sum(abs(own - other) <= 2 * width for other in ages) for own in ages]
        assert curator.figure("guessed").mean == pytest.approx(np.mean([1 / n for n in left]))
        study = plan.way(masking.STUDY, "age", f"noise:{width}")
        assert study.figure("guessed").mean >= curator.figure("guessed").mean
        assert study.figure("moved").values == curator.figure("moved").values


def test_noise_alone_is_as_safe_and_distorts_the_values():
    pilot = people(60)
    protocol = msgspec.structs.replace(
        MASKED, open=("school", "ill"), confidential=("age", "pay"),
        masks={"age": "noise:8", "pay": "swap:10"},
    )  # fmt: skip
    plan = plan_masks(protocol, SCHEMA, pilot, 60, Effort(populations=4))
    for name, mask in (("age", "noise:8"), ("pay", "swap:10"), ("pay", "swap:20")):
        study, alone = plan.way(masking.STUDY, name, mask), plan.way(masking.ALONE, name, mask)
        assert alone.figure("guessed").mean == pytest.approx(study.figure("guessed").mean)
        assert alone.figure("margin").mean > 0
        assert study.figure("margin").mean == 0
        assert study.figure("moved").mean > 0
        safe = plan.way(masking.AS_SAFE_CURATOR, name, mask)
        assert safe.figure("moved").mean < study.figure("moved").mean


def test_masks_rise_around_the_recommended_one():
    assert masks_to_try("swap:30", PAY) == ["swap:7.5", "swap:15", "swap:30", "swap:60", "swap:100"]
    assert masks_to_try("none", PAY) == ["none", *masking.SWAPS]
    assert masks_to_try("noise:1", AGE) == ["noise:1", "noise:2", "noise:4"]
    assert masks_to_try("noise:60", AGE)[-1] == "noise:100"


def test_who_gave_no_answer_is_not_masked():
    optional = msgspec.structs.replace(AGE, missing="none")
    schema = Schema((optional, *SCHEMA.attributes[1:]))
    pilot = people(40)
    pilot[::4, 0] = 100
    protocol = msgspec.structs.replace(
        MASKED, open=("school", "ill", "pay"), confidential=("age",), masks={"age": "noise:200"}
    )
    with pytest.raises(InputError):  # wider than the range
        plan_masks(protocol, schema, pilot, 40, Effort(populations=2))
    protocol = msgspec.structs.replace(protocol, masks={"age": "noise:40"})
    plan = plan_masks(protocol, schema, pilot, 40, Effort(populations=2))
    assert 0 < plan.way(masking.STUDY, "age", "noise:40").figure("guessed").mean < 1
    pilot[:39, 0] = 100
    assert plan_masks(protocol, schema, pilot, 40, Effort(populations=2)).ways == ()


def test_a_study_that_leaves_some_out_is_compared_as_it_is(levels):
    assert levels.own == hiding.LEFT_OUT
    for k in (3, 5):
        own = levels.way(hiding.LEFT_OUT, k).figure("linked").mean
        for name in (hiding.AS_SAFE_CURATOR, hiding.AS_SAFE_SUPPRESSING, hiding.ALONE):
            assert levels.way(name, k).figure("linked").mean == pytest.approx(own)
