"""Block aggregation over the network: honest prices, tables that follow, and those who cheat."""

import math
from collections import Counter

import msgspec
import numpy as np
import pytest
from helpers import (
    PATIENT,
    make_scenario,
    make_schema,
    make_study,
    random_records,
    setting,
    simulate,
)
from test_collaborative_k_anonymity import telling, with_mailbox

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import InputError, Misconduct, Refused
from mpc_rr.estimation.blocks import (
    answer_epsilon,
    claimed_epsilon,
    epsilon_bound,
    pooled,
    respond,
)
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.uncertainty import BlockAnswers
from mpc_rr.network.session.replay import DoesNotHold
from mpc_rr.protocols import block_aggregation
from mpc_rr.protocols.block_aggregation import (
    BlockAggregation,
    BlockAnswer,
    Question,
)
from mpc_rr.publication.blocks import AnsweredOneBlock
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

SIZES = (2, 3, 2, 2)
N = 60
RECORDS = random_records(N, SIZES, seed=3)
BLOCKS = BlockAggregation(p=0.5, floor=0.4, block=12)


def scenario(protocol=BLOCKS, *, records=RECORDS, **study):
    return make_scenario(records, SIZES, protocol=protocol, **study)


def run(protocol=BLOCKS, *, seed=1, **options):
    return run_study(scenario(protocol, **options), transport="memory", seed=seed)


class Books(dict):
    """The accounts of all parties."""

    def party(self):
        books = self

        class Keeping(Party):
            def __init__(self, study, name, *args):
                account = books.setdefault(name, Account())
                super().__init__(study, name, *args, terms=Terms(account=account))

        return Keeping


def test_everybody_answers_one_view_and_the_tables_follow():
    result = run()
    found = result.outcome.result
    assert found.n == N
    assert len(found.shown) == math.comb(4, 2)
    for combination, shown in found.shown.items():
        answered = found.answered(combination)
        assert len(shown) == 5 + 1  # five blocks, and the table after the last
        assert len(answered.tables) == 5
        assert answered.n == N // 3  # three views, in turn
        assert np.allclose(answered.tables[0], 1 / answered.tables.shape[1])
        assert not np.allclose(answered.tables[-1], answered.tables[0])
        assert answered.tables.min() >= 0.4 / answered.tables.shape[1] * (1 - 1e-9)
    for end in result.parties.values():
        assert isinstance(end, AnsweredOneBlock)
        assert end.digest == found.digest


@pytest.mark.broker
def test_the_same_seed_gives_the_same_over_mqtt():
    simulated = run(seed=7).outcome.result
    sent = run_study(scenario(**PATIENT), transport="mqtt", seed=7).outcome.result
    assert simulated.answers == sent.answers
    assert simulated.shown == sent.shown


def test_client_by_client_is_version_1():
    found = run(msgspec.structs.replace(BLOCKS, block=1)).outcome.result
    assert len(next(iter(found.shown.values()))) == N + 1


def test_three_attributes_together():
    found = run(msgspec.structs.replace(BLOCKS, together=3)).outcome.result
    assert all(len(combination) == 3 for combination in found.shown)
    sheets = found.publish(setting(make_schema(SIZES), N)).sheets
    assert sum(sheet.name.startswith("tables/") for sheet in sheets) == 4


def test_estimates_come_near_the_truth():
    """With 900 people: within five standard errors everywhere (a false alarm in 10⁵ seeds)."""
    records = random_records(900, SIZES, seed=4)
    protocol = BlockAggregation(p=0.6, floor=0.5, block=150)
    found = run(protocol, records=records).outcome.result
    codes = np.array(records)
    for combination, table in found.tables().items():
        true = np.zeros([SIZES[a] for a in combination])
        np.add.at(true, tuple(codes[:, combination].T), 1 / len(records))
        estimate = pooled(found.answered(combination))
        off = np.abs(estimate.shares - true.ravel())
        assert (off < 5 * estimate.standard_errors).all()
        assert table.sum() == pytest.approx(1)


def test_whoever_is_silent_is_left_out_of_her_block_only():
    faults = Faults(silent=(PartyFault("party-14", "block_answer"),))
    result = run(faults=faults, minimum=50).outcome.result
    assert result.silent == ("party-14",)
    assert result.n == N - 1


def test_nobody_is_asked_once_enough_is_known():
    """Who is not asked gives away nothing, and the books say so."""
    books = Books()
    protocol = msgspec.structs.replace(BLOCKS, p=0.8, enough=0.4)
    study = make_study(N, SIZES, protocol=protocol, minimum=20)
    outcome, ends = simulate(study, RECORDS, party=books.party())
    found = outcome.result
    assert 20 <= found.n < N
    assert found.n % BLOCKS.block == 0
    assert set(found.not_asked) == set(found.asked) - set(found.answers)
    for name in found.not_asked:
        assert ends[name].epsilon == 0
        assert books[name].ledger.spent == 0
    for combination in found.shown:
        answered = found.answered(combination)
        limits = cell_intervals(
            pooled(answered).shares, BlockAnswers(answered.n, answered), "population"
        )
        assert (limits.high - limits.low).max() / 2 <= 0.4


def test_a_study_that_stopped_early_can_be_verified(tmp_path):
    protocol = msgspec.structs.replace(BLOCKS, p=0.8, enough=0.4)
    result = run(protocol, minimum=20)
    assert result.outcome.result.not_asked
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_without_a_rule_to_stop_nobody_is_turned_away():
    """A coordinator cannot leave people out by telling them that they are not needed."""
    unwanted = with_mailbox(Coordinator, telling(Question, lambda _, __: Question(0, 0, ())))
    _, ends = simulate(make_study(N, SIZES, protocol=BLOCKS), RECORDS, coordinator=unwanted)
    assert all("there is no such view" in str(end) for end in list(ends.values())[: BLOCKS.block])


# ── What it costs ──────────────────────────────────────────────────────────────────────────────


def test_the_books_show_the_true_price_beside_the_papers():
    """With the very tables that were shown, added over the combinations."""
    books = Books()
    study = make_study(N, SIZES, protocol=BLOCKS)
    outcome, ends = simulate(study, RECORDS, party=books.party())
    found = outcome.result
    for name, end in ends.items():
        reading = books[name].ledger.reading()
        assert reading.local == pytest.approx(end.epsilon)
        assert reading.claimed == pytest.approx(claimed_epsilon(0.5))
        assert reading.local > reading.claimed
    first = next(iter(found.asked))
    sizes = [math.prod(study.schema.sizes[a] for a in c) for c in BLOCKS.views(study.schema)[0]]
    assert ends[first].epsilon == pytest.approx(sum(math.log1p(size) for size in sizes))


def test_what_is_planned_is_never_less_than_what_is_spent():
    schema = make_schema(SIZES)
    planned = sum(e.cost for e in BLOCKS.disclosures(setting(schema, N)))
    result = run()
    for end in result.parties.values():
        assert end.epsilon <= planned * (1 + 1e-9)
    largest = max(
        sum(epsilon_bound(0.5, 0.4, math.prod(SIZES[a] for a in c)) for c in view)
        for view in BLOCKS.views(schema)
    )
    assert planned == pytest.approx(largest)


def test_answers_confirm_the_true_price_of_every_table_of_a_run():
    """Likelihood ratios of single answers, by 40,000 answers to each table that was shown.

    The most telling answer is the rarest cell. The standard error of the logarithm of its ratio
    follows from the counts; five of them make a false alarm once in 50,000 such tests. With the
    paper's ε this fails for every table.
    """
    found = run().outcome.result
    rng = np.random.default_rng(1)
    for combination in found.shown:
        for table in found.answered(combination).tables:
            rarest, other = int(np.argmin(table)), int(np.argmax(table))
            if rarest == other:  # the uniform table
                other = rarest + 1
            told = [
                Counter(
                    respond(
                        np.full(40_000, truth),
                        table,
                        BLOCKS.p,
                        SeededRandomness.from_generator(rng),
                    ).tolist()
                )
                for truth in (rarest, other)
            ]
            counts = told[0][rarest], told[1][rarest]
            observed = math.log(counts[0] / counts[1])
            error = math.sqrt(1 / counts[0] + 1 / counts[1])
            assert abs(observed - answer_epsilon(BLOCKS.p, table)) < 5 * error
            assert observed - claimed_epsilon(BLOCKS.p) > 5 * error


def test_a_repetition_gets_the_same_answers_and_no_others():
    """What was drawn stays drawn; so the tables follow alike, and nothing more is spent."""
    books = Books()
    study = make_study(N, SIZES, protocol=BLOCKS, minimum=3)
    first, _ = simulate(study, RECORDS, party=books.party(), seed=1)
    spent = {name: account.ledger.spent for name, account in books.items()}
    second, _ = simulate(study, RECORDS, party=books.party(), seed=2)
    assert second.result.answers == first.result.answers

    class Mute(books.party()):
        async def _protocol_run(self, session):
            raise Refused("gone")

    _, ends = simulate(study, RECORDS, party=books.party(), parties={"party-01": Mute}, seed=3)
    later = [name for name in ends if int(name.split("-")[1]) > BLOCKS.block]
    refused = [name for name in later if "another answer would tell more" in str(ends[name])]
    assert len(refused) > N // 5  # all who were to answer the view that lacks an answer now
    assert {name: account.ledger.spent for name, account in books.items()} == spent


def test_a_budget_below_the_bound_refuses_before_anything_is_asked():
    planned = sum(e.cost for e in BLOCKS.disclosures(setting(make_schema(SIZES), N)))

    class Careful(Party):
        def __init__(self, *args):
            super().__init__(*args, terms=Terms(account=Account(planned * 0.9)))

    _, ends = simulate(make_study(N, SIZES, protocol=BLOCKS), RECORDS, party=Careful)
    assert all("exceeds the budget" in str(end) for end in ends.values())


# ── Cheating ───────────────────────────────────────────────────────────────────────────────────


def question_changed(change):
    def changed(_, message):
        shares = [np.array(table) for table in message.shares()]
        tables = tuple(np.asarray(t).astype("<f8").tobytes() for t in change(shares))
        return Question(message.block, message.view, tables)

    return with_mailbox(Coordinator, telling(Question, changed))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: [np.r_[1.0, np.zeros(len(t[0]) - 1)], *t[1:]], "without any share"),
        (lambda t: [np.r_[0.99, np.full(len(t[0]) - 1, 0.01 / (len(t[0]) - 1))], *t[1:]],
         "below the floor"),
        (lambda t: [t[0] * 2, *t[1:]], "no distribution"),
        (lambda t: [t[0] * np.nan, *t[1:]], "no distribution"),
        (lambda t: t[:1], "1 tables for 2 combinations"),
    ],
)  # fmt: skip
def test_a_table_that_would_bare_the_answer_is_refused(change, says):
    _, ends = simulate(
        make_study(N, SIZES, protocol=BLOCKS), RECORDS, coordinator=question_changed(change)
    )
    first = [end for name, end in ends.items() if int(name.split("-")[1]) <= BLOCKS.block]
    for end in first:
        assert isinstance(end, Misconduct)
        assert end.culprits == ("coordinator",)
        assert says in str(end)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda a: bytes(32) + a[32:], "another question"),
        (lambda a: a[:-4], "does not answer 2 combinations"),
        (lambda a: a[:32] + b"\xff" * 8, "a cell that is not there"),
    ],
)
def test_an_answer_that_is_none_is_left_out(answer, says):
    bad = with_mailbox(Party, telling(BlockAnswer, lambda _, m: BlockAnswer(answer(m.answer))))
    outcome, _ = simulate(
        make_study(N, SIZES, protocol=BLOCKS, minimum=50), RECORDS, parties={"party-20": bad}
    )
    assert says in outcome.result.faulty["party-20"]
    assert outcome.result.n == N - 1


def test_a_coordinator_that_showed_other_tables_is_found_out_by_verify(tmp_path, monkeypatch):
    """An answer names the digest of its question, which must follow from the answers before."""
    write_results(run(), tmp_path / "good")
    assert verify(tmp_path / "good")
    honest = block_aggregation._Following.questions

    def skewed(self, members, block, first):
        """The coordinator's books agree with what it showed; the answers do not lead there."""
        for combination, shown in self.shown.items():
            table = np.frombuffer(shown[-1], dtype="<f8")
            self.shown[combination][-1] = np.roll(table, 1).tobytes()
        return honest(self, members, block, first)

    monkeypatch.setattr(block_aggregation._Following, "questions", skewed)
    result = run()
    assert not result.outcome.result.faulty
    monkeypatch.undo()
    write_results(result, tmp_path / "bad")
    with pytest.raises(DoesNotHold):
        verify(tmp_path / "bad")


def test_a_changed_table_does_not_hold(tmp_path):
    write_results(run(), tmp_path / "run")
    table = next((tmp_path / "run" / "tables").iterdir())
    table.write_text(table.read_text().replace("0.", "0.1", 1))
    with pytest.raises(DoesNotHold, match="is not what follows from the transcript"):
        verify(tmp_path / "run")


def test_what_is_published_says_what_depends_on_what():
    found = run().publication
    assert found.quantity("blocks").value == 5
    p_values = found.listing("tables").column("p_value")
    assert all(p_value is None or 0 < p_value <= 1 for p_value in p_values)
    details = found.listing("details")
    prices = zip(details.column("smallest_epsilon"), details.column("largest_epsilon"), strict=True)
    assert all(0 < smallest <= largest for smallest, largest in prices)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"p": 1.0}, "lies between 0 and 1"),
        ({"p": 1e-9}, "p must be at least"),
        ({"floor": 1.5}, "floor lies between 0.0001 and 1"),
        ({"floor": 0.0}, "nothing bounds what an answer costs"),
        ({"block": 0}, "block must be 1 to 60"),
        ({"block": 61}, "block must be 1 to 60"),
        ({"enough": 0.0}, "enough lies between 0 and 1"),
        ({"together": 1}, "together must be 2 to 4"),
        ({"together": 5}, "together must be 2 to 4"),
    ],
)
def test_options_that_make_no_sense_are_refused(changed, says):
    with pytest.raises(InputError, match=says):
        msgspec.structs.replace(BLOCKS, **changed).check(setting(make_schema(SIZES), N))


def test_people_who_watch_see_estimates_their_widest_interval_and_what_is_still_expected():
    """Not the tables that untrue answers are drawn from: with a floor of 1 they stay uniform."""
    seen = []

    class Watched(Coordinator):
        async def run(self):
            outcome = await super().run()
            seen.append(self.mailbox.watched)
            return outcome

    protocol = BlockAggregation(p=0.9, floor=1.0, block=12, enough=0.02)
    simulate(make_study(N, SIZES, protocol=protocol), RECORDS, coordinator=Watched)
    ((rows, remark),) = seen
    assert len(rows) == 10  # six tables and four attributes
    assert sum(" & " in row.name for row in rows) == 6
    halves = [(row.high - row.low) / 2 for row in rows]
    assert halves == sorted(halves, reverse=True)
    assert max(abs(row.share - 0.25) for row in rows) > 0.05
    assert all(row.low <= row.share <= row.high for row in rows)
    assert f"120 answers about 6 tables; every share is known to ±{halves[0]:.1%}" in remark
    assert "more are expected until ±2.0% in every table" in remark


def test_of_many_tables_people_see_the_ten_known_least_and_how_well_the_others_are():
    sizes, seen = (2,) * 6, []

    class Watched(Coordinator):
        async def run(self):
            outcome = await super().run()
            seen.append(self.mailbox.watched)
            return outcome

    protocol = BlockAggregation(p=0.9, floor=1.0, block=12)
    records = random_records(N, sizes, seed=3)
    simulate(make_study(N, sizes, protocol=protocol), records, coordinator=Watched)
    ((rows, remark),) = seen
    assert len(rows) == 10
    assert "15 tables" in remark
    assert "those of 11 other tables and attributes to ±" in remark


def test_people_look_again_when_there_are_enough_more_answers(monkeypatch):
    """So that watching takes no more time for each answer, however many there are."""
    looks = []
    preview = block_aggregation._Following.preview
    monkeypatch.setattr(
        block_aggregation._Following, "preview", lambda self: looks.append(1) or preview(self)
    )
    monkeypatch.setattr(block_aggregation, "WORTH_ANOTHER_LOOK", 2)
    protocol = BlockAggregation(p=0.9, floor=1.0, block=1)
    simulate(make_study(N, SIZES, protocol=protocol), RECORDS)
    assert len(looks) == 7  # at 2, 4, 8, 16, 32 and 64 answers, and at the end
