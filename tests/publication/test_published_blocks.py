"""Tables of blocks agree about all they share, and single attributes have tables of their own."""

import json
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from helpers import make_scenario, make_study, random_records, setting
from scipy import stats

from mpc_rr.estimation import agreement
from mpc_rr.estimation.agreement import disagreement, missed
from mpc_rr.estimation.blocks import Answered, collect, of_block, pooled
from mpc_rr.estimation.convergence import printed_width
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.uncertainty import BlockAnswers
from mpc_rr.network.session.coordinator import RULES, CoordinatorSession
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.publication import blocks
from mpc_rr.publication.blocks import CollectedBlocks
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results import closing
from mpc_rr.results import folder as results_folder
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.verification import Contradicted, verify
from mpc_rr.running import run_study

SIZES = (2, 3, 2, 2)
RECORDS = random_records(90, SIZES, seed=4)
NAMES = [f"a{place}" for place in range(len(SIZES))]


def collected(together):
    protocol = BlockAggregation(p=0.5, floor=0.5, block=30, together=together)
    scenario = make_scenario(RECORDS, SIZES, protocol=protocol)
    result = run_study(scenario, transport="memory", seed=1)
    return result.outcome.result, result.publication


@pytest.fixture(scope="module", params=[2, 3])
def study(request):
    return collected(request.param)


def of_several(publication):
    return [table for table in publication.tables if len(table.axes) > 1]


def test_published_tables_agree_about_all_that_they_share(study):
    _, publication = study
    tables = {
        tuple(NAMES.index(axis.attribute) for axis in t.axes): np.reshape(t.values, t.shape)
        for t in publication.tables
    }
    assert len(tables) == len(of_several(publication)) + len(SIZES)
    assert disagreement(tables) < 1e-12


def test_each_published_share_is_within_its_limits(study):
    """Also those of single attributes, whose limits come from all answers about them."""
    _, publication = study
    for table in publication.tables:
        for low, value, high in zip(table.low, table.values, table.high, strict=True):
            assert 0 <= low <= value <= high <= 1


def test_before_rules_4_tables_agreed_about_single_attributes_alone(study):
    found, publication = study
    then = msgspec.structs.replace(found, in_part=True)
    published = then.publish(setting(make_study(90, SIZES).schema, 90))
    assert len(published.tables) == len(of_several(publication))
    assert disagreement(then.tables()) > 1e-3 or len(next(iter(then.tables()))) == 2
    assert disagreement(found.tables()) < 1e-12


def test_that_no_distribution_has_all_tables_is_said_with_by_how_much(study):
    found, publication = study
    least = missed(found.tables(), SIZES).least
    said = [note.text for note in publication.notes if "no distribution" in note.text]
    assert len(said) == (least > 1e-6)
    assert said or len(next(iter(found.tables()))) == 2
    assert all(text.endswith(f"the nearest misses some share by {least:.2g}.") for text in said)


def test_where_only_parts_could_be_looked_at_no_more_is_said_than_that(monkeypatch):
    found, _ = collected(3)
    monkeypatch.setattr(blocks, "missed", lambda *_: agreement.Missed(0.02, reached=False))
    assert any("any misses some share by at least 0.02" in text for text in notes_of(found))
    monkeypatch.setattr(blocks, "missed", lambda *_: agreement.Missed(0.0, reached=False))
    assert blocks.NOT_FOUND_OUT in notes_of(found)


def test_where_the_solver_fails_that_is_said(monkeypatch):
    found, _ = collected(3)
    failed = SimpleNamespace(status=4, fun=None)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_: failed)
    assert blocks.NOT_SOLVED in notes_of(found)


def test_too_many_cells_agree_about_single_attributes_and_that_is_said(monkeypatch):
    found, _ = collected(3)
    monkeypatch.setattr(agreement, "MOST_WORK", 10)
    assert blocks.NOT_MADE_TO_AGREE in notes_of(found)
    assert disagreement(found.tables()) > 1e-3


def notes_of(found):
    published = found.publish(setting(make_study(90, SIZES).schema, 90))
    return [note.text for note in published.notes]


def test_an_attribute_is_told_by_all_answers_that_hold_it(study):
    found, publication = study
    for place, name in enumerate(NAMES):
        told = found.answered_alone(place)
        holding = [found.answered(c).n for c in found.shown if place in c]
        assert told.n == sum(holding) == publication.table(name).n
        shares, spread = found.estimate_of((place,))
        assert shares == pytest.approx(pooled(told).shares)
        assert spread.reports == told.n


def test_shares_of_one_attribute_are_unbiased_whatever_it_was_asked_with():
    """A share of 50 simulated studies, in standard errors: χ² with 50 degrees of freedom.

    A false alarm in 10,000 sets of seeds.
    """
    squares = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        records = np.stack([rng.choice(2, 1600, p=[0.3, 0.7]), rng.integers(0, 3, 1600)], axis=1)
        shown, counts = {}, {}
        for k, combination in enumerate([(0, 1), (0, 2)]):
            half = records[k::2]
            cells = half[:, 0] * 3 + half[:, 1]
            told = collect(cells, 6, 0.5, 200, SeededRandomness(2 * seed + k), 0.5).answered
            shown[combination] = [table.astype("<f8").tobytes() for table in told.tables]
            shown[combination].append(shown[combination][-1])
            counts[combination] = [*told.counts.tolist(), [0] * 6]
        schema = make_study(10, (2, 3, 3)).schema
        found = CollectedBlocks(schema, 0.5, 0.5, 200, (), {}, (), {}, shown, counts, ())
        estimate = pooled(found.answered_alone(0))
        assert estimate.n == 1600
        squares.append(((estimate.shares[0] - 0.3) / estimate.standard_errors[0]) ** 2)
    assert stats.chi2(50).ppf(5e-5) < sum(squares) < stats.chi2(50).isf(5e-5)


def test_the_trajectory_ends_at_the_widest_published_limits_and_narrows(study):
    found, publication = study
    rows = publication.listing("trajectory").rows
    blocks = publication.quantity("blocks").value
    assert [row[0] for row in rows] == list(range(1, blocks + 1))
    widths = {
        tuple(axis.attribute for axis in table.axes): max(
            high - low for low, high in zip(table.low, table.high, strict=True)
        )
        for table in publication.tables
    }
    _, answers, half, where, words, share = rows[-1]
    assert answers == sum(found.answered(c).n for c in found.shown)
    assert half == pytest.approx(max(widths.values()) / 2, abs=1e-8)
    assert widths[where] == max(widths.values())
    assert half < rows[0][2]
    ((table, cell),) = [
        (t, cell)
        for t in publication.tables
        if tuple(axis.attribute for axis in t.axes) == where
        for cell, spread in enumerate(np.subtract(t.high, t.low))
        if spread == widths[where]
    ]
    assert words == words_of(table, cell)
    proper = project_to_simplex(np.array(table.unbiased))
    assert share == pytest.approx(proper[cell], abs=1e-6)


def words_of(table, cell):
    codes = np.unravel_index(cell, table.shape)
    return " & ".join(a.categories[c] for a, c in zip(table.axes, codes, strict=True))


def test_where_section_5_would_have_stopped_stands_beside_what_is_published(study):
    """By a plain reading of the rule; where steps are never small, that is said."""
    found, publication = study
    listed = publication.listing("convergence")
    assert "known_at" not in [column.name for column in listed.columns]
    tables = {tuple(axis.attribute for axis in t.axes): t for t in publication.tables}
    assert len(listed.rows) == len(found.shown)
    for names, stops, answers, answer, *shares in listed.rows:
        told = found.answered(tuple(NAMES.index(name) for name in names))
        block, average = plain_section_5(told)
        if block is None:
            assert (stops, answers, answer, *shares) == ("not reached", *[None] * 6)
            continue
        table = tables[names]
        assert (stops, answers) == (block, told.counts[:block].sum())
        off = np.abs(average - table.values)
        cell = int(np.argmax(off))
        assert answer == words_of(table, cell)
        parts = table.values, table.low, table.high
        assert shares == pytest.approx([average[cell], *(part[cell] for part in parts)])


def plain_section_5(told):
    """The first block whose estimates are all near those before; blocks without answers pass."""
    before = np.full(told.counts.shape[1], 1 / told.counts.shape[1])
    for block, (counts, table) in enumerate(zip(told.counts, told.tables, strict=True), start=1):
        if counts.any():
            now = np.clip(of_block(counts, table, told.p), 0, 1)
            if (np.abs(now - before) < printed_width(now, counts.sum())).all():
                return block, (now + before) / 2
            before = now
    return None, None


def test_with_enough_the_block_is_named_at_which_each_table_was_known_so_well():
    protocol = BlockAggregation(p=0.9, floor=1.0, block=30, enough=0.13)
    records = random_records(900, SIZES, seed=4)
    result = run_study(make_scenario(records, SIZES, protocol=protocol), transport="memory", seed=1)
    publication = result.publication
    found, listed = result.outcome.result, publication.listing("convergence")
    column = [c.name for c in listed.columns].index("known_at")
    assert all(1 < row[column] < 30 for row in listed.rows)
    for row in listed.rows:
        told = found.answered(tuple(NAMES.index(name) for name in row[0]))
        for end, known in ((row[column] - 1, False), (row[column], True)):
            told_then = Answered(told.p, told.tables[:end], told.counts[:end])
            limits = cell_intervals(
                pooled(told_then).shares, BlockAnswers(told_then.n, told_then), "population"
            )
            assert (float((limits.high - limits.low).max()) / 2 <= 0.13) == known


def test_a_table_that_was_never_known_so_well_is_said_not_to_be():
    found, _ = collected(2)
    published = msgspec.structs.replace(found, enough=0.001).publish(
        setting(make_study(90, SIZES).schema, 90)
    )
    assert {row[-1] for row in published.listing("convergence").rows} == {"not reached"}


def made_by_rules(rules, path, monkeypatch):
    """A folder as these rules write it."""
    protocol = BlockAggregation(p=0.5, floor=0.5, block=10)
    planned = make_scenario(random_records(30, (2, 3), seed=1), (2, 3), protocol=protocol)
    with monkeypatch.context() as then:
        for module in (closing, results_folder):
            then.setattr(module, "RULES", rules)
        then.setattr(CoordinatorSession, "rules", rules)
        write_results(run_study(planned, transport="memory", seed=2), path)
    return path


def test_a_folder_of_rules_5_told_widths_alone_and_is_verified(tmp_path, monkeypatch):
    then, now = (made_by_rules(r, tmp_path / str(r), monkeypatch) for r in (5, RULES))
    published = [read_folder(folder).file.publication for folder in (then, now)]
    assert [len(p.listing("trajectory").columns) for p in published] == [4, 6]
    assert [p.listing("convergence") is None for p in published] == [True, False]
    assert verify(then)
    assert verify(now)
    document = json.loads((now / "result.json").read_text())
    listings = document["publication"]["listings"]
    document["publication"]["listings"] = [li for li in listings if li["name"] != "convergence"]
    (now / "result.json").write_text(json.dumps(document))
    with pytest.raises(Contradicted, match=r"what result\.json publishes"):
        verify(now)


def test_a_folder_from_before_there_was_a_trajectory_is_verified(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(blocks.CollectedBlocks, "_add_trajectory", lambda *_: None)
        folder = made_by_rules(5, tmp_path / "run", monkeypatch)
    assert "trajectory" not in (folder / "result.json").read_text()
    assert verify(folder)


def test_blocks_in_which_nobody_answered_about_a_table_are_no_steps():
    """Client by client each table has an answer in every third block, at most."""
    protocol = BlockAggregation(p=0.5, floor=0.5, block=1)
    result = run_study(make_scenario(RECORDS, SIZES, protocol=protocol), transport="memory", seed=1)
    found, listed = result.outcome.result, result.publication.listing("convergence")
    for names, stops, *_ in listed.rows:
        told = found.answered(tuple(NAMES.index(name) for name in names))
        assert not told.counts.any(axis=1).all()
        assert stops == plain_section_5(told)[0]
