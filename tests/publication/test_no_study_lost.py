"""Studies that were lost after everybody had paid, or told what they could not know."""

import csv
import io

import numpy as np
import pytest
from helpers import make_scenario, make_study, random_records

from mpc_rr.anonymization.together import possible_values
from mpc_rr.errors import InputError
from mpc_rr.estimation.conditions import conjunction
from mpc_rr.estimation.designs import Fitted, rr_independent
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication import reports
from mpc_rr.publication.counts import PairCounts
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import read_askable
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema


def published(tmp_path, sizes, n, protocol, seed=1):
    scenario = make_scenario(random_records(n, sizes, seed=2), sizes, protocol=protocol)
    result = run_study(scenario, transport="memory", seed=seed)
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")
    found = read_folder(tmp_path / "run").file.publication
    assert not any(note.incomplete for note in found.notes)
    return found


def test_pairs_that_nobody_answered_are_named_and_the_rest_is_published(tmp_path):
    """Once nothing was, of 56 % of studies with eight attributes, ε = 4 and 100 people."""
    sizes = (3,) * 8
    found = published(tmp_path, sizes, 20, RRViews(epsilon=4.0, together=2))
    pairs = [table for table in found.tables if len(table.axes) == 2]
    assert 0 < len(pairs) < 28
    assert len(found.listing("dependence").rows) == len(pairs)
    (warning,) = [note.text for note in found.notes if "reported together by nobody" in note.text]
    assert warning.startswith(f"{28 - len(pairs)} of 28 pairs")


def test_combinations_that_nobody_can_enumerate_are_not(tmp_path):
    """Once: "161,243,136 combinations are too many to enumerate", and no folder."""
    sizes = (9,) * 9
    found = published(tmp_path, sizes, 12, RRJoint(epsilon=20.0))
    assert any("no weights by RR-Adjustment" in note.text for note in found.notes)
    assert len([table for table in found.tables if len(table.axes) == 1]) == 9
    lines = (tmp_path / "run" / "reports.csv").read_text().splitlines()
    assert len(lines) == 13
    assert "weight" not in lines[0]


def test_reports_that_no_weights_fit_are_published_without(tmp_path):
    """Once there was no sheet of reports, and a folder of which nothing could be asked."""
    found = published(tmp_path, (2, 6, 3, 7, 7), 11, RRIndependent(keep=0.01), seed=2)
    assert any("no weights by RR-Adjustment: each" in note.text for note in found.notes)
    assert "weight" not in (tmp_path / "run" / "reports.csv").read_text()
    answer = read_askable(tmp_path / "run").estimates.query(conjunction({0: (0,)}))
    assert answer.interval[0] <= answer.count <= answer.interval[1]


def test_what_weights_are_worth_is_said_and_whether_they_converged(tmp_path):
    """Once silent: 19 of 40 small studies had weights that missed their margins. The effective
    sample size is Kish's, of the weights in the sheet."""
    trouble = {}
    for seed in range(1, 9):
        place = tmp_path / str(seed)
        found = published(place, (2, 3, 2, 3), 12, RRIndependent(keep=0.5), seed=seed)
        lines = (place / "run" / "reports.csv").read_text().splitlines()
        weights = np.array([float(line.rsplit(",", 1)[1]) for line in lines[1:]])
        (said,) = (note.text for note in found.notes if "effective sample size" in note.text)
        assert f"the 12 weighted reports are worth about {1 / (weights**2).sum():.0f} of" in said
        warned = [n for n in found.notes if n.text.startswith("Weights by RR-Adjustment: the")]
        assert [n.severity for n in warned] == ["warning"] * ("did not converge" in said)
        assert ("converged;" in said) != bool(warned)
        trouble[seed] = bool(warned)
    assert set(trouble.values()) == {False, True}


def test_a_folder_from_before_weights_were_spoken_of_is_verified(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(reports, "_say_how_weighed", lambda _draft, _found: None)
        found = published(tmp_path, (2, 3), 12, RRIndependent(keep=0.5))
        assert not any("effective sample size" in note.text for note in found.notes)
    assert verify(tmp_path / "run")


def test_small_counts_are_hidden_however_few_people_there_are(tmp_path):
    """Once: "no table can be published", after everybody had been counted."""
    found = published(tmp_path, (3, 4, 2), 6, ExactPairs(suppress_below=5))
    assert all(set(table.values) == {None} for table in found.tables)
    assert set(found.listing("dependence").column("verdict")) == {"cannot be told"}


def test_a_condition_on_many_attributes_is_a_product_over_records():
    """Once 96 s and 3.7 GB for nine; the domain here has 10^18 combinations."""
    sizes = (8,) * 20
    schema = Schema(tuple(Attribute(f"a{k}", "nominal", tuple("12345678")) for k in range(20)))
    records = np.array(random_records(2000, sizes, seed=3))
    records[:1000] = 0
    design = rr_independent(sizes, 0.95)
    estimates = Estimates(schema, Fitted(design, design.randomize(records, SeededRandomness(4))))
    answer = estimates.query(conjunction(dict.fromkeys(range(12), (0, 1))))
    assert answer.interval[0] <= 1000 <= answer.interval[1] < 1200
    assert answer.population[0] < 0.5 < answer.population[1] < 0.6


def test_masks_of_many_are_put_together_in_time_whatever_their_order():
    """Sorted values of 500 people once took half a minute, and minutes where there were more."""
    rng = np.random.default_rng(1)
    values = np.sort(rng.integers(0, 10**6, 2000))
    masked = values + rng.integers(-500, 501, 2000)
    found = possible_values(masked.tolist(), values.tolist(), 500)
    assert all(int(value) in some for value, some in zip(values, found, strict=True))


ORDINAL = Schema(
    tuple(Attribute(name, "ordinal", tuple("12345")) for name in ("one", "two", "three"))
)


@pytest.mark.parametrize(("rules", "together"), [(2, {(0, 1)}), (3, {(0, 2)})])
def test_ordered_attributes_are_clustered_by_their_correlation(rules, together):
    """Papers 000 and 003 ask for |r|; V was taken, and joined what goes up and down again."""
    u_shaped = np.zeros((5, 5), dtype=np.int64)
    u_shaped[[0, 1, 2, 3, 4], [4, 1, 0, 1, 4]] = 40
    straight = 8 + 20 * np.eye(5, dtype=np.int64)
    flat = np.full((5, 5), 8, dtype=np.int64)
    tables = PairCounts(200, ORDINAL, [u_shaped, straight, flat])
    protocol = RRClusters(
        dependence=ExactPairs(), keep=0.5, most_combinations=25, least_dependence=0.2
    )
    found = protocol.clusters_of(ORDINAL, protocol.dependences_of(ORDINAL, tables, rules))
    assert {cluster for cluster in found if len(cluster) > 1} == together


def test_reports_of_wide_views_can_be_read_again(tmp_path):
    """Once a cell of the sheet was longer than readers of CSV take, and nothing could be asked."""
    published(tmp_path, (9, 9, 8, 6, 4), 3, RRViews(epsilon=0.01, together=5))
    rows = list(csv.reader(io.StringIO((tmp_path / "run" / "reports.csv").read_text())))
    assert {row[2] for row in rows[1:]} == {"7,737 of 15,552 combinations"}
    assert read_askable(tmp_path / "run").estimates.n == 3


def test_reports_too_long_to_be_read_again_are_refused_beforehand():
    """Eight attributes at ε = 0.01: each of 167 people would have named 20,059 combinations."""
    study = make_study(167, (4, 3, 4, 7, 10, 2, 2, 3))
    with pytest.raises(InputError, match=r"20,059 of the 40,320 combinations .* smaller together"):
        RRViews(epsilon=0.01, together=8).check(study.setting)
    RRViews(epsilon=0.01, together=6).check(study.setting)
    RRViews(epsilon=4.0, together=8).check(study.setting)
