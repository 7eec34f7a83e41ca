"""A finished run released in further ways, and what all of them tell together."""

import csv
import itertools

import anonymizing
import msgspec
import numpy as np
import pytest
from anonymizing import IN_GROUPS, MASKED

from mpc_rr.anonymization.jointly import linkage_in_all
from mpc_rr.anonymization.partition import mondrian
from mpc_rr.anonymization.releases import RELEASES, Grouped
from mpc_rr.anonymization.table import Microdata
from mpc_rr.errors import InputError
from mpc_rr.protocols import collaborative_k_anonymity as protocol_of_groups
from mpc_rr.results.folder import write_results
from mpc_rr.results.releasing import KINDS, release_again
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute


def finished(folder, protocol, **study):
    result = run_study(anonymizing.make_scenario(protocol, **study), transport="memory", seed=1)
    write_results(result, folder)
    return folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_further_releases_are_what_the_study_would_have_published(tmp_path):
    run = finished(tmp_path / "run", IN_GROUPS)
    found = release_again(run, ["anatomy", "permuted", "microaggregated"], tmp_path / "further")
    for kind in ("anatomy", "permuted", "microaggregated"):
        other = msgspec.structs.replace(IN_GROUPS, release=kind)
        due = finished(tmp_path / kind, other)
        for path in (tmp_path / "further" / kind).iterdir():
            lines, others = (file.read_text().splitlines() for file in (path, due / path.name))
            assert len(lines) == 9
            if kind != "permuted":  # in a group, values stand as they came out of the channel
                assert sorted(lines) == sorted(others)
    assert [measured.releases for measured in found[:-1]] == [
        ("generalized",), ("anatomy",), ("permuted",), ("microaggregated",),
    ]  # fmt: skip
    together = found[-1]
    assert (together.k, together.lost) == (4, 0)
    assert together.linkage.highest == pytest.approx(1 / 4)


PLACE = Attribute("place", "ordinal", ("a", "b", "c", "d"))
PAY = Attribute("pay", "numeric", (), lowest=0, highest=99, step=1)


@pytest.mark.parametrize("seed", range(4))
def test_linkage_in_all_is_that_of_whoever_joins_the_sheets(seed):
    """Of the sheets alone: groups in whose range she lies, and that hold her very values."""
    rng = np.random.default_rng(seed)
    known = Microdata((PLACE, PAY), np.stack([rng.integers(0, 4, 30), rng.integers(0, 6, 30)], 1))
    groups = mondrian(known, 3)
    values = [Microdata((PAY,), rng.integers(0, 99, (len(g), 1))) for g in groups]
    grouped = Grouped(known, groups, values)
    ranges = {r[0]: r[1:3] for r in RELEASES["generalized"](grouped)["release"][1:]}
    first = RELEASES["anatomy"](grouped)["quasi_identifiers"][1:]
    sizes = {number: sum(r[0] == number for r in first) for number in ranges}

    def inside(value, text, names):
        ends = [names(end) for end in text.split("–")]
        return ends[0] <= names(value) <= ends[-1]

    for kinds in (("generalized",), ("anatomy", "generalized"), ("permuted", "microaggregated")):
        chances = []
        for code, pay in known.codes.tolist():
            own = (PLACE.categories[code], str(pay))
            fit = set(ranges)
            if "generalized" in kinds:
                fit = {
                    number
                    for number, (place, money) in ranges.items()
                    if inside(own[0], place, PLACE.categories.index)
                    and inside(own[1], money, float)
                }
            if {"anatomy", "permuted"} & set(kinds):
                fit &= {r[0] for r in first if tuple(r[1:3]) == own}
            chances.append(1 / sum(sizes[number] for number in fit))
        found = linkage_in_all(grouped, kinds)
        assert found.average == pytest.approx(np.mean(chances))
        assert found.highest == pytest.approx(max(chances))


def test_no_release_beside_others_makes_a_record_harder_to_find():
    rng = np.random.default_rng(9)
    known = Microdata((PLACE, PAY), np.stack([rng.integers(0, 4, 40), rng.integers(0, 9, 40)], 1))
    groups = mondrian(known, 4)
    grouped = Grouped(known, groups, [Microdata((PAY,), known.codes[g][:, 1:]) for g in groups])
    for one, other in itertools.permutations([k for k in KINDS if k != "microaggregated"], 2):
        alone = linkage_in_all(grouped, [one]).average
        assert linkage_in_all(grouped, [one, other]).average >= alone - 1e-12


def test_below_k_nothing_more_is_released(tmp_path, monkeypatch):
    honest = protocol_of_groups._message  # noqa: SLF001
    monkeypatch.setattr(
        protocol_of_groups, "_message", lambda g, v: honest(1 - g if v == [20000] else g, v)
    )
    run = finished(tmp_path / "run", IN_GROUPS)
    monkeypatch.undo()
    with pytest.raises(InputError, match="group 1 has 3 records, fewer than the 4"):
        release_again(run, ["anatomy"], tmp_path / "further")
    assert not (tmp_path / "further").exists()


def test_what_cannot_be_released_again_is_told(tmp_path):
    run = finished(tmp_path / "run", MASKED)
    with pytest.raises(InputError, match="holds no records in groups"):
        release_again(run, ["anatomy"], tmp_path / "a")
    with pytest.raises(InputError, match="there is no release 'k-map'"):
        release_again(run, ["k-map"], tmp_path / "a")
