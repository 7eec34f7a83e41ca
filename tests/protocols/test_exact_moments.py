"""Exact sums of numbers: by both sums, with noise, without small groups, among liars."""

import msgspec
import numpy as np
import pytest
from helpers import setting, simulate
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Aborted, InputError, Misconduct
from mpc_rr.estimation.power_sums import Number, Sum, SumLayout
from mpc_rr.network.session.live import LiveSession
from mpc_rr.privacy.disclosures import ExactNumbers, NoisySum
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.privacy.sentences import in_words
from mpc_rr.protocols.exact_moments import (
    ExactMoments,
    PublishedSums,
    check_noisy,
    fault_of_shown,
    shown_sums,
)
from mpc_rr.publication.moments import NumberMoments
from mpc_rr.publication.whole import published
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import ask
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.report import report
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario, party_names

INCOME = Attribute(
    "income", "numeric", (), missing="none", lowest=0.0, highest=9000.0, step=10.0, clip="top"
)
AGE = Attribute("age", "numeric", (), lowest=16.0, highest=99.0, step=1.0)
PLACE = Attribute("place", "nominal", ("city", "village", "farm"))
SCHEMA = Schema((INCOME, PLACE, AGE))
N = 24


def some(n, seed=0, schema=SCHEMA):
    """The third place is rare."""
    rng = np.random.default_rng(seed)
    shares = {"place": [0.6, 0.3, 0.1]}
    return [
        tuple(int(rng.choice(a.size, p=shares.get(a.name))) for a in schema.attributes)
        for _ in range(n)
    ]


RECORDS = some(N)


def make_study(protocol, n=N, schema=SCHEMA, minimum=None):
    return Study(
        name="moments", title="T", description="", schema=schema, protocol=protocol,
        parties=Parties(n, minimum), deadlines=Deadlines(30.0, 10.0),
    )  # fmt: skip


def run(protocol, records=RECORDS, *, schema=SCHEMA, minimum=None, **how):
    return simulate(make_study(protocol, len(records), schema, minimum), records, **how)


def numbers(records, place, within=None):
    attribute = SCHEMA.attributes[place]
    return np.array([
        attribute.number(r[place]) for r in records
        if r[place] != attribute.missing_code and within in (None, r[1])
    ])  # fmt: skip


def by_name(result):
    return {(m.attribute, m.category): m for m in result.moments()}


def assert_exact(result, records):
    found = by_name(result)
    for place in (0, 2):
        for code, category in ((None, None), *enumerate(PLACE.categories)):
            x = numbers(records, place, code)
            one = found[SCHEMA.names[place], category]
            assert one.answered.value == len(x)
            if len(x) > 1:
                assert one.spread.mean.value == pytest.approx(x.mean())
                assert one.spread.variance.value == pytest.approx(x.var(ddof=1))
                assert one.spread.variance_here.value == pytest.approx(x.var())


@pytest.mark.parametrize("kind", ["secure_sum", "masked_sum"])
def test_everybody_learns_the_exact_moments(kind):
    outcome, ends = run(ExactMoments(sum=kind, pairs=True, fourth_powers=True))
    assert_exact(outcome.result, RECORDS)
    assert {end.digest for end in ends.values()} == {outcome.result.digest}
    both = [r for r in RECORDS if r[0] != INCOME.missing_code]
    (joint,) = outcome.result.jointly().values()
    x, y = numbers(both, 0), numbers(both, 2)
    assert joint.covariance == pytest.approx(np.cov(x, y)[0, 1])
    assert joint.correlation.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert all(m.spread.variance.standard_error is not None for m in outcome.result.moments()
               if m.category is None)  # fmt: skip


def test_who_leaves_a_masked_sum_is_not_in_it():
    """The fifth is silent when masked vectors are due: the others help to take off its masks."""
    name = party_names(N)[4]
    scenario = Scenario(
        path=None, study=make_study(ExactMoments(sum="masked_sum"), minimum=18), csv=None,
        generator=None, faults=Faults(silent=(PartyFault(name, "masked_vector"),)),
        seed=0, given=tuple(RECORDS),
    )  # fmt: skip
    result = run_study(scenario, transport="memory", seed=4)
    found = result.outcome.result
    assert found.n == N - 1
    assert set(found.lost) == {name}
    assert_exact(found, RECORDS[:4] + RECORDS[5:])


@pytest.mark.parametrize("noise", [0.0, 10.0], ids=["exact", "noisy"])
def test_limits_of_means_stay_in_the_range(noise):
    """An even count of numbers, whose middle is nearer to one end than to the other."""
    attribute = Attribute("x", "numeric", (), lowest=0.0, highest=99.0, step=1.0)
    schema, rising = Schema((attribute, AGE)), [0, 0, 0, 40]
    for codes in (rising, [99 - code for code in rising]):
        layout = SumLayout(schema, ends=not noise)
        sums = np.sum([layout.added_by((code, 40)) for code in codes], axis=0)
        grains = 1000 if noise else 0
        largest = [layout.largest(cell) for cell in layout.cells]
        told = sums * grains // largest if noise else sums
        result = NumberMoments(4, schema, tuple(map(int, told)), noise=noise, grains=grains)
        (one, _) = result.moments()
        low, high = one.spread.mean.low, one.spread.mean.high
        assert low == 0 if codes is rising else high == 99
        assert 0 <= low < np.mean(codes) < high <= 99


@pytest.mark.parametrize(("kind", "n"), [("secure_sum", 3), ("masked_sum", 7)])
def test_the_largest_numbers_that_are_allowed_do_not_overflow(kind, n):
    """As wide as `check` lets a range be, with everybody at one end of it, and one step wider."""

    def schema_of(numbers):
        wide = Attribute("x", "numeric", (), lowest=0.0, highest=numbers - 1.0, step=1.0)
        return Schema((wide, Attribute("y", "numeric", (), lowest=0.0, highest=1.0, step=1.0)))

    protocol, low, high = ExactMoments(sum=kind), 2, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        try:
            make_study(protocol, n, schema_of(middle))
            protocol.check(setting(schema_of(middle), n))
            low = middle
        except InputError as error:
            assert "take a larger step for 'x'" in str(error)  # noqa: PT017
            high = middle
    assert 1 << 28 < low < 1 << 32
    for ends in ([low - 1] * n, [0] * n, [0, low - 1, *([0] * (n - 2))]):
        result = run(protocol, [(end, 1) for end in ends], schema=schema_of(low))[0].result
        exact = np.array(ends, dtype=object)
        assert by_name(result)["x", None].spread.mean.value == pytest.approx(exact.sum() / n)
        middle = (low - 1) // 2
        assert result.told()[Sum(((0, 2),))] == ((exact - middle) ** 2).sum()


@pytest.mark.parametrize(
    ("options", "schema", "says"),
    [
        ({}, Schema((PLACE, msgspec.structs.replace(PLACE, name="b"))), "no attribute is a number"),
        ({"pairs": True}, Schema((AGE, PLACE)), "pairs = true needs two numbers"),
        ({"noise_epsilon": 1.0, "pairs": True}, SCHEMA, "pairs and noise_epsilon exclude"),
        ({"noise_epsilon": 1.0, "fourth_powers": True}, SCHEMA, "fourth_powers and noise_eps"),
        ({"noise_epsilon": 1.0, "suppress_below": 3}, SCHEMA, "suppress_below exclude"),
        ({"noise_epsilon": 0.0}, SCHEMA, "noise_epsilon must be positive"),
        ({"noise_epsilon": 1e-9}, SCHEMA, "would need noise of a scale"),
        ({"noise_corrupt": 0.2}, SCHEMA, "noise_corrupt goes with noise_epsilon"),
        ({"noise_epsilon": 1.0, "noise_corrupt": 1.0}, SCHEMA, "noise_corrupt lies between"),
        ({"suppress_below": 2}, SCHEMA, "suppress_below must be 3 or more, not 2: from a sum over"),
        (
            {"suppress_below": 9, "fourth_powers": True},
            SCHEMA,
            "fourth_powers and suppress_below exclude each other",
        ),
        ({"suppress_below": 25}, SCHEMA, "more than the 24 parties"),
        ({"suppress_below": 3, "pairs": True}, SCHEMA, "where a number may be missing"),
        (
            {"suppress_below": 3, "pairs": True},
            Schema((AGE, msgspec.structs.replace(AGE, name="y", highest=18.0))),
            "where a number has as few possible answers as 'y'",
        ),
        (
            {},
            Schema(
                (
                    *(msgspec.structs.replace(AGE, name=f"n{k}") for k in range(600)),
                    msgspec.structs.replace(PLACE, categories=tuple(map(str, range(900)))),
                )
            ),
            "1,083,300 sums would be added up, and 1,000,000 are possible: ask for fewer numbers",
        ),
        (
            {"noise_epsilon": 1.0},
            Schema(tuple(msgspec.structs.replace(AGE, name=n, highest=6e5) for n in "ab")),
            "'a' has 599,985 possible numbers, and all together 1,199,970; with noise_epsilon at",
        ),
        (
            {"suppress_below": 3},
            Schema((AGE, PLACE, msgspec.structs.replace(PLACE, name="b"))),
            "goes with one attribute that has categories",
        ),
        (
            {"fourth_powers": True},
            Schema((msgspec.structs.replace(AGE, highest=1e6), PLACE)),
            "the fourth powers of 24 numbers .* or leave fourth_powers out",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(options, schema, says):
    with pytest.raises(InputError, match=says) as refused:
        ExactMoments(**options).check(setting(schema, N))
    assert "\n" not in str(refused.value)


# ── Noise ──────────────────────────────────────────────────────────────────────────────────────

NOISY = ExactMoments(noise_epsilon=3.0)


def test_noise_is_as_large_as_agreed_and_in_every_sum():
    """Mean squares over 30 studies of 18 sums: within 40 % of what is stated (four sd).

    Rounding adds at most a quarter of a grain for each person, far less than the noise here."""
    squares, few = [], RECORDS[:3]
    for seed in range(30):
        result = run(NOISY, few, seed=seed)[0].result
        layout = result.layout
        exact = layout.read(np.sum([layout.added_by(r) for r in few], axis=0))
        told = result.told()
        squares += [
            (told[cell] - exact[cell] * result.grains / layout.largest(cell)) ** 2
            for cell in layout.cells
        ]
    assert np.mean(squares) == pytest.approx(result.noise**2, rel=0.4)
    assert (np.array(squares) > 1).mean() > 0.98


def test_all_agree_on_a_noisy_result_and_know_its_price():
    outcome, ends = run(NOISY)
    assert {end.digest for end in ends.values()} == {outcome.result.digest}
    (event,) = make_study(NOISY).disclosures
    assert isinstance(event, NoisySum)
    assert event.epsilon == 3.0
    assert 0 < event.delta < 1e-6
    income, place, age = event.by_answer
    assert place == 3.0  # another category takes all of a record along
    assert age < income < 3.0
    assert "Only totals with noise are seen" in in_words([event])


@pytest.mark.parametrize("kind", ["secure_sum", "masked_sum"])
def test_parties_draw_noise_for_all_that_a_record_may_move(kind, monkeypatch):
    drawn, draw = [], NoiseShares.draw

    def noted(share, rng):
        drawn.append(share)
        return draw(share, rng)

    monkeypatch.setattr(NoiseShares, "draw", noted)
    protocol = ExactMoments(noise_epsilon=3.0, sum=kind)
    assert run(protocol)[0].result is not None
    scaled = protocol.scaled(protocol.layout(SCHEMA))
    assert {(s.sensitivity, s.epsilon, s.honest) for s in drawn} == {
        (scaled.sensitivity, 3.0, N // 2)
    }
    assert len(drawn) == N


def test_noise_suffices_if_no_more_stay_than_must():
    study = make_study(ExactMoments(noise_epsilon=30.0, sum="masked_sum"), minimum=13)
    assert study.protocol.agreed_noise(study.setting).honest == 1
    result = simulate(study, RECORDS)[0].result
    assert result.noise == study.protocol.agreed_noise(study.setting).standard_deviation(N)


def test_where_noise_is_small_the_means_are_found():
    """Within five standard errors, and those are small."""
    records = some(40, seed=3)
    result = run(ExactMoments(noise_epsilon=60.0, noise_corrupt=0.0), records)[0].result
    found = by_name(result)
    for name, place in (("income", 0), ("age", 2)):
        here, spread = numbers(records, place), found[name, None].spread
        pairs = ((spread.mean_here, here.mean()), (spread.variance_here, here.var()))
        for estimate, true in pairs:
            assert abs(estimate.value - true) < 5 * estimate.standard_error
            assert estimate.standard_error < 0.1 * true


def test_limits_hold_for_numbers_that_are_rounded_and_groups_that_are_added_up():
    """Of 200 times 23 limits, as many as 95 % within 2 %; they go together, so it is no test of
    each: five standard errors of 200 times one group's."""
    n, held, limits = 300, 0, 0
    records = some(n, seed=4)
    protocol = ExactMoments(noise_epsilon=10.0, noise_corrupt=0.0, sum="secure_sum")
    layout = protocol.layout(SCHEMA)
    scaled, noise = protocol.scaled(layout), protocol.agreed_noise(setting(SCHEMA, n))
    largest = np.array([layout.largest(cell) for cell in layout.cells])
    exact = scaled.grains * np.array([layout.added_by(r) for r in records]) / largest
    true = {
        (SCHEMA.names[place], category): numbers(records, place, code)
        for place in (0, 2)
        for code, category in ((None, None), *enumerate(PLACE.categories))
    }
    alone = NoiseShares(noise.epsilon, noise.sensitivity, 1, noise.cells)  # all in one draw
    rng = np.random.default_rng(2)
    for seed in range(200):
        rounded = np.floor(exact + rng.random(exact.shape)).sum(axis=0)
        sums = layout.read([int(v) for v in rounded + alone.draw(SeededRandomness(seed))])
        result = NumberMoments(
            n, SCHEMA, tuple(sums.values()), grains=scaled.grains,
            noise=noise.standard_deviation(n),
        )  # fmt: skip
        for one in result.moments():
            x, spread = true[one.attribute, one.category], one.spread
            pairs = ((one.answered, len(x)), (spread.mean_here, x.mean()),
                     (spread.variance_here, x.var()))  # fmt: skip
            held += sum(estimate.low <= value <= estimate.high for estimate, value in pairs)
            limits += len(pairs)
    assert held / limits == pytest.approx(0.955, abs=0.02)


# ── Without small groups ───────────────────────────────────────────────────────────────────────

HIDING = ExactMoments(suppress_below=4)


def test_small_groups_are_hidden_and_everything_else_is_exact():
    outcome, ends = run(HIDING)
    result, layout = outcome.result, outcome.result.layout
    true = layout.read(np.sum([layout.added_by(r) for r in RECORDS], axis=0))
    told = result.told()
    farm = sum(r[1] == 2 for r in RECORDS)
    assert 0 < farm < 4
    hidden = {cell.group for cell, value in told.items() if value is None}
    assert (1, 2) in hidden
    assert len(hidden) == 2  # with another, or the rest would tell
    assert all(value in (None, true[cell]) for cell, value in told.items())
    together = sum(true[Sum((), group)] for group in hidden)
    assert together >= 4
    assert {end.digest for end in ends.values()} == {result.digest}
    assert not any(m.answered.value == farm for m in result.moments())


def test_numbers_that_too_few_gave_are_not_shown_at_all():
    nobody = [(INCOME.missing_code, r[1], r[2]) for r in RECORDS]
    two = [(5, *nobody[0][1:]), (80, *nobody[1][1:]), *nobody[2:]]
    told = run(HIDING, two)[0].result.told()
    of_income = [v for cell, v in told.items() if any(p == 0 for p, _ in cell.powers)]
    assert set(of_income) <= {None, 0}
    assert of_income.count(0) == 0


def showing(change):
    """A coordinator that publishes something else."""

    class Showing(LiveSession):
        async def announce_made(self, kind, make, *, check):
            message = change(await make())
            await self.announce(message)
            return message

    class Lying(Coordinator):
        session_kind = Showing

    return Lying


def with_sum(message, cell, value):
    layout = HIDING.layout(SCHEMA)
    sums = list(message.sums)
    sums[(*layout.cells, *layout.totals).index(cell)] = value
    return PublishedSums(message.n, tuple(sums))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: with_sum(m, Sum((), (1, 2)), 2), "a count of 2 is shown"),
        (lambda m: with_sum(m, Sum((), (1, 0)), -5), "a count of -5 is shown"),
        (lambda m: PublishedSums(m.n + 1, m.sums), "sums over 25 parties where there were 24"),
        (lambda m: PublishedSums(m.n, m.sums[1:]), "sums where"),
        (lambda m: with_sum(m, Sum(((2, 2),), (1, 0)), 10**9), "larger than this many people"),
        (lambda m: with_sum(m, Sum(((2, 1),), (1, 2)), 3), "whose count is hidden"),
        (lambda m: with_sum(m, Sum((), (1, 0)), 22), "the hidden groups are 2 people together"),
        (lambda m: with_sum(m, Sum(((2, 1),), (1, 0)), None), "a sum is hidden, and others"),
        (lambda m: with_sum(m, Sum(((2, 1),)), None), "whose sum over all is hidden"),
    ],
)
def test_a_coordinator_that_shows_what_it_must_not_is_named(change, says):
    _, ends = run(HIDING, coordinator=showing(change))
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert says in str(end)


def hidden_of(schema, records, below, *, hide=(), tails=False):
    """What may be shown of sums, and the fault of hiding these groups alone."""
    layout = SumLayout(schema, tails=tails)
    sums = layout.read(np.sum([layout.added_by(r) for r in records], axis=0))
    shown = shown_sums(layout, sums, len(records), below)
    bad = tuple(None if cell.group in hide else v for cell, v in sums.items())
    fault = fault_of_shown(layout, bad, len(records), below)
    assert fault_of_shown(layout, shown, len(records), below) is None
    return dict(zip(sums, shown, strict=True)), fault


def clipped(clip, missing=None):
    wide = {"lowest": 0.0, "highest": 100.0, "step": 1.0}
    return Schema((Attribute("x", "numeric", (), missing=missing, clip=clip, **wide), PLACE))


@pytest.mark.parametrize(
    ("clip", "numbers", "hidden"),
    [
        ("top", [100] * 30 + list(range(10)), set()),
        ("top", [100] * 36 + [10, 20, 30, 40], {100}),
        ("top", [100] * 4 + list(range(36)), {100}),
        ("bottom", [0] * 36 + [10, 20, 30, 40], {0}),
        ("both", [0] * 18 + [100] * 18 + [10, 20, 30, 40], {0, 100}),
        ("both", [0] * 15 + [100] * 15 + list(range(20, 30)), set()),
        ("both", [0] * 4 + [100] * 15 + list(range(20, 30)), {0}),
        ("top", [100] * 30 + [0] * 30 + [6, 5], {100}),  # without those at the top
        ("top", [100] * 20 + [3] * 20, {100}),
    ],
)
def test_a_count_of_an_end_is_hidden_if_few_gave_it_or_another_number(clip, numbers, hidden):
    """39 of 40 at the end, and the mean: that was the other one's number."""
    schema = clipped(clip)
    told, fault = hidden_of(schema, [(x, 0) for x in numbers], 10)
    ends = [cell for cell in told if cell.at is not None]
    assert {cell.at[1] for cell in ends if told[cell] is None} == hidden
    assert (fault is not None) == bool(hidden)


def test_one_alone_off_the_end_of_a_range_is_hidden_with_all_sums_of_the_number():
    told, fault = hidden_of(clipped("top"), [(100, 0)] * 39 + [(37, 0)], 10)
    of_x = [v for cell, v in told.items() if cell.at or any(p == 0 for p, _ in cell.powers)]
    assert set(of_x) == {None}
    assert "show single people's numbers" in fault


def test_two_off_the_end_of_a_range_are_hidden():
    """Of twelve in a village, ten gave 0: from 11 and 61 follow 5 and 6."""
    records = [(k, 0) for k in range(20)] + [(0, 1)] * 10 + [(6, 1), (5, 1)]
    records += [(3 * k, 2) for k in range(20)]
    told, _ = hidden_of(clipped(None), records, 5)
    assert told[Sum((), (1, 1))] is None
    _, fault = hidden_of(clipped(None), records[:32], 5)
    assert fault == "the sums of 'x' show single people's numbers"


def few_answers(possible, clip=None):
    wide = {"lowest": 0.0, "highest": possible - 1.0, "step": 1.0}
    return Schema((Attribute("x", "numeric", (), clip=clip, **wide), PLACE))


@pytest.mark.parametrize("tails", [False, True])
def test_small_counts_that_follow_from_the_sums_of_few_answers_are_hidden(tails):
    """With three possible numbers, n, Σx and Σx² tell how many gave each; with Σx⁴, with five."""
    possible = 5 if tails else 3
    many = [(x, g) for x in range(possible) for g in (0, 2) for _ in range(8)]
    village = [(x, 1) for x in range(possible) for _ in range(8)][:-7]
    told, fault = hidden_of(few_answers(possible), many + village, 6, tails=tails)
    assert told[Sum((), (1, 1))] is None
    assert fault == "the sums of 'x' show single people's numbers"
    rare = [(x, 0) for x in range(possible) if x != 1 for _ in range(20)] + [(1, 0)]
    told, _ = hidden_of(few_answers(possible), rare, 6, tails=tails)
    assert told[Sum(((0, 1),))] is None


@pytest.mark.parametrize(("clip", "possible", "hidden"), [
    ("top", 3, 0), ("top", 4, 1), ("top", 5, 0), ("both", 4, 2), ("both", 5, 2), ("both", 6, 0),
])  # fmt: skip
def test_ends_are_hidden_if_all_counts_would_follow_with_them(clip, possible, hidden):
    """Of five possible numbers, those between both ends are three: as many as sums."""
    records = [(x, g) for x in range(possible) for g in range(3) for _ in range(12)]
    told, fault = hidden_of(few_answers(possible, clip), records, 6)
    ends = [value for cell, value in told.items() if cell.at is not None]
    assert ends.count(None) == hidden
    due = "with its ends, how many gave each 'x' follows" if hidden else None
    assert fault == due


def test_groups_that_all_gave_the_same_number_are_hidden():
    """The first group did; the second goes with it, as the sums over both follow."""
    groups = [[7] * 20, list(range(20, 40)), list(range(40, 70))]
    records = [(x, g) for g, xs in enumerate(groups) for x in xs]
    told, fault = hidden_of(clipped(None), records, 5)
    assert [g for g in range(3) if told[Sum((), (1, g))] is None] == [0, 1]
    assert "'x' show single people's numbers" in fault
    _, alone = hidden_of(clipped(None), records, 5, hide=[(1, 0)])
    assert "'x' show single people's numbers" in alone


def test_parties_see_that_one_who_gave_a_number_in_a_hidden_group_follows():
    """Five are in the third group, of whom one gave a number: the total less the others'."""
    schema = clipped(None, missing="none")
    none = schema.attributes[0].missing_code
    records = [(40 + k, 0) for k in range(10)] + [(60 + k, 1) for k in range(5)]
    records += [(9, 2)] + [(none, 2)] * 4
    _, fault = hidden_of(schema, records, 3, hide=[(1, 2)])
    assert fault == "the hidden groups are 1 people together who gave a number"


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=60),
       st.integers(3, 8), st.sampled_from(["top", "both"]), st.integers(5, 7))  # fmt: skip
def test_what_is_shown_never_has_a_fault(records, below, clip, highest):
    """A coordinator that follows the rule is never accused, and nothing small follows."""
    wide = Attribute("x", "numeric", (), missing="none", lowest=0.0, highest=float(highest),
                     step=1.0, clip=clip)  # fmt: skip
    schema = Schema((wide, PLACE))
    records = [(min(x, wide.size - 1), g) for x, g in records]
    told, _ = hidden_of(schema, records, below)
    gave = told[Sum(((0, 0),))]
    ends = [told[Sum(at=(0, code))] for code in Number(0, wide).ends]
    for end in ends:
        assert end is None or not (0 < end < below or 0 < gave - end < below)
    assert None in ends or not 0 < gave - sum(ends) < below


# ── Liars, and second runs ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protocol", [ExactMoments(), NOISY], ids=["exact", "noisy"])
def test_sums_that_no_records_make_end_the_study(protocol, monkeypatch):
    """One party adds what nobody has; it cannot be told which."""
    real, first = ExactMoments.vector, []

    def much(self, layout, record, noise, rng):
        vector = real(self, layout, record, noise, rng)
        first.append(record)
        return [500 * value for value in vector] if len(first) == 1 else vector

    monkeypatch.setattr(ExactMoments, "vector", much)
    outcome, ends = run(protocol)
    assert outcome.result is None
    assert "the sum is poisoned" in str(outcome.cause)
    assert {type(end) for end in ends.values()} <= {Misconduct, Aborted}


def test_sums_beyond_what_noise_explains_are_noticed():
    """By a grain: a sum that is too large by itself, and counts that are too many together."""
    n, records = 400, some(400)
    noise, layout = NOISY.agreed_noise(setting(SCHEMA, n)), NOISY.layout(SCHEMA)
    scaled, rng = NOISY.scaled(layout), SeededRandomness(1)
    honest = [int(v) for v in np.sum([scaled.rounded(r, rng) for r in records], axis=0)]
    total, count = (layout.cells.index(Sum(p, (1, 2))) for p in (((2, 1),), ()))
    far = n * scaled.grains + noise.bound(n, 1, len(layout.cells) + 1)
    more = noise.bound(n, 3, len(layout.cells) + 1)
    for place, limit in ((total, far), (count, honest[count] + more)):
        values = list(honest)
        values[place] = limit
        check_noisy(layout, values, n, noise, scaled.grains)
        values[place] += 1
        with pytest.raises(Misconduct, match="further from possible than the noise"):
            check_noisy(layout, values, n, noise, scaled.grains)


def test_who_was_counted_before_is_not_counted_again():
    books = {}

    class WithBooks(Party):
        def __init__(self, study, name, *args):
            account = books.setdefault(name, Account())
            super().__init__(study, name, *args, terms=Terms(account=account))

    assert run(ExactMoments(), party=WithBooks)[0].result is not None
    assert run(ExactMoments(), party=WithBooks, seed=5)[0].result is None


def test_what_exact_sums_disclose_is_said():
    (event,) = make_study(ExactMoments()).disclosures
    assert isinstance(event, ExactNumbers)
    assert event.compared.startswith("the difference of two totals shows the numbers")
    said = in_words([event], you=True)
    assert "Exact sums of numbers have no ε" in said
    assert "learns yours exactly" in said
    (hidden,) = make_study(HIDING).disclosures
    assert hidden.seen.endswith("and by everyone but for those over few people")
    cautions = [str(c) for c in HIDING.cautions(setting(SCHEMA, N))]
    assert any("is trusted to publish none over fewer than 4" in text for text in cautions)
    (note, *_) = ExactMoments().notes(setting(SCHEMA, N))
    assert "One dishonest party can move any sum" in note.text


def test_it_is_said_from_how_few_sums_numbers_follow():
    """As many as there are powers: Newton's identities give the sums' numbers as roots."""
    x = (3, 17, 40, 88)
    power = [sum(v**k for v in x) for k in range(5)]
    e = [1.0]
    for k in range(1, 5):
        e.append(sum((-1) ** (i - 1) * e[k - i] * power[i] for i in range(1, k + 1)) / k)
    assert np.sort(np.roots([(-1) ** k * e[k] for k in range(5)]).real) == pytest.approx(x)
    for protocol, few in (
        (ExactMoments(), "one or two"),
        (ExactMoments(fourth_powers=True), "one to four"),
    ):
        (event,) = make_study(protocol).disclosures
        assert f"From a sum over {few} people" in in_words([event])
        (first, *_) = protocol.cautions(setting(SCHEMA, N))
        assert f"From a sum over {few} people" in first.text


AGES = Schema((AGE, PLACE))


@pytest.mark.parametrize(
    ("ages", "tails", "says"),
    [
        ([10, 20, 30, 40], False, None),
        ([10, 20], False, "2 sums are over one or two people, whose numbers follow"),
        ([10, 20, 30, 40], True, "2 sums are over one to four people, whose numbers follow"),
        ([10, 20, 30, 40, 50], True, None),
        ([33] * 9, False, "2 sums are over people who all gave the same number: everyone's"),
        ([83] * 9 + [20], False, "2 sums are over people of whom all but a few gave the lowest"),
        ([0] * 9 + [1, 1], False, "2 sums are over people of whom all but a few gave the lowest"),
    ],
)
def test_sums_that_show_single_peoples_numbers_are_warned_of(ages, tails, says):
    """All of one place, so that each sum stands there twice."""
    layout = SumLayout(AGES, tails=tails)
    sums = layout.read(np.sum([layout.added_by((age, 0)) for age in ages], axis=0))
    result = NumberMoments(len(ages), AGES, tuple(sums.values()), tails=tails)
    published = result.publish(setting(AGES, len(ages)))
    warned = [note.text for note in published.notes if note.severity == "warning"]
    assert [text for text in warned if "over" in text] == warned
    assert len(warned) == (says is not None)
    assert says is None or warned[0].startswith(says)


def test_groups_that_are_too_small_are_foretold():
    (few,) = ExactMoments(suppress_below=10).prospects(setting(SCHEMA, N))
    assert "24 people in 3 groups are 8.0 in each on average" in few.text
    (drowned,) = ExactMoments(noise_epsilon=0.5).prospects(setting(SCHEMA, N))
    assert "most means cannot be told" in drowned.text
    assert ExactMoments(noise_epsilon=2.0).prospects(setting(SCHEMA, 20_000)) == []


# ── The whole way ──────────────────────────────────────────────────────────────────────────────


def test_questions_whose_names_no_file_can_have_are_published_too():
    """Their listings become files when they are exported."""
    named = [
        msgspec.structs.replace(a, name=f"{a.name}/{k}?") for k, a in enumerate(SCHEMA.attributes)
    ]
    schema = Schema(tuple(named))
    (outcome, *_) = run(ExactMoments(), schema=schema)
    found = published(outcome.result, setting(schema, N), ExactMoments())
    assert not any(note.incomplete for note in found.notes), found.notes
    assert len({listing.name for listing in found.listings}) == len(found.listings)


@pytest.mark.parametrize(
    "protocol",
    [ExactMoments(pairs=True), ExactMoments(noise_epsilon=20.0), HIDING],
    ids=["exact", "noisy", "hidden"],
)
def test_a_folder_can_be_verified_asked_and_reported(tmp_path, protocol):
    scenario = Scenario(
        path=None, study=make_study(protocol), csv=None, generator=None, faults=Faults(), seed=0,
        given=tuple(RECORDS),
    )  # fmt: skip
    result = run_study(scenario, transport="memory", seed=4)
    folder = tmp_path / "run"
    write_results(result, folder)
    assert verify(folder)
    found = result.publication
    assert not any(note.incomplete for note in found.notes), found.notes
    mean = by_name(result.outcome.result)["age", None].spread.mean
    assert found.quantity("mean.age").value == mean.value
    page = report(folder)
    assert "income by place" in page
    assert "<svg" in page
    city = ask(folder, "place = city")
    if protocol is not HIDING:
        assert abs(city.count - sum(r[1] == 0 for r in RECORDS)) < (1e-9 if protocol.pairs else 12)
    if protocol.noise_epsilon is not None:
        (table,) = found.tables
        assert city.interval == (table.low[0], table.high[0])
        assert city.count == table.values[0]
        assert city.population[0] < city.share < city.population[1]
        several = ask(folder, "place in (city, farm)")
        assert several.interval[0] < several.count < several.interval[1]
        wider = ask(folder, "place = city", 0.999)
        assert wider.interval[1] - wider.interval[0] > city.interval[1] - city.interval[0]
    with pytest.raises(InputError, match="“age” is a number, of which no table was published"):
        ask(folder, "age > 30")
