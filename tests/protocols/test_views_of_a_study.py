"""Which views a study of `rr_views` has: by the study alone, as now and as up to rules 3."""

import asyncio
import hashlib

import msgspec
import numpy as np
import pytest
from helpers import make_schema, make_study, setting

from mpc_rr.estimation.views import ViewDesign, all_views
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.reports import WEIGHED, pack_report, read_report, view_reports
from mpc_rr.randomness import SeededRandomness

SIZES = (4, 3, 2, 4)


def test_few_parties_are_asked_about_single_attributes_and_all_know_how_often():
    design = RRViews(epsilon=1.0).design(make_schema(SIZES), 100)
    assert {len(view) for view in design.views} == {1, 2}
    alone = sum(w for v, w in zip(design.views, design.weights, strict=True) if len(v) == 1)
    assert alone / sum(design.weights) == pytest.approx(0.5, abs=0.01)
    assert design.weights == RRViews(epsilon=1.0).design(make_schema(SIZES), 100).weights


@pytest.mark.parametrize("n", [100, 100_000])
def test_up_to_rules_3_all_views_were_alike_and_of_one_size(n):
    design = RRViews(epsilon=1.0).design(make_schema(SIZES), n, 3)
    assert design.views == all_views(4, 2)
    assert set(design.weights) == {1}


def test_together_is_what_was_asked_for():
    design = RRViews(epsilon=1.0, together=3).design(make_schema(SIZES), 100)
    assert design.views == all_views(4, 3)
    assert set(design.weights) == {1}


def test_a_report_of_a_weighted_view_is_none_of_an_even_one_nor_the_other_way_round():
    even = ViewDesign(SIZES, all_views(4, 2), 8.0)
    weighted = ViewDesign(SIZES, all_views(4, 2), 8.0, [1, 2, 3, 4, 5, 6])
    cells = np.array([1])
    assert np.frombuffer(pack_report(2, cells, weighted), "<u4").tolist() == [WEIGHED + 2, 1]
    for design, other in ((even, weighted), (weighted, even)):
        report = pack_report(2, cells, design)
        assert read_report(report, design) == (2, [1])
        assert view_reports([report], design).drawn.tolist() == [2]
        with pytest.raises(ValueError, match="no view"):
            read_report(report, other)


def test_another_design_is_another_answer():
    """What a party drew from is kept: with other views or weights it would draw another answer."""
    protocol, schema = RRViews(epsilon=1.0), make_schema(SIZES)
    designs = [
        ViewDesign(SIZES, all_views(4, k), 1.0, w)
        for k, w in ((2, None), (1, None), (2, [2] * 6), (2, [1, 2, 3, 4, 5, 6]))
    ]
    given = [protocol.given(schema, design) for design in designs]
    assert given[0] == b""  # as older programs drew
    assert len(set(given)) == len(designs)


def test_what_a_weighted_view_is_drawn_from_is_as_written_down():
    """docs/draws.md, for those who write another program."""
    protocol, schema = RRViews(epsilon=1.0), make_schema(SIZES)
    design = protocol.design(schema, 100)
    plain = [[list(view) for view in design.views], list(design.weights)]
    given = protocol.given(schema, design)
    assert given == hashlib.sha256(msgspec.msgpack.encode(plain)).digest()


class Drawn(Exception):
    """What a party asks to be drawn, once and for all."""


class Session:
    """As far as a party's first step goes: it draws from a secret that stays."""

    def __init__(self, most, fewest):
        self.most, self.fewest = most, fewest

    def once(self, label, draw, given):
        raise Drawn(label, draw(SeededRandomness(7)), given)


@pytest.mark.parametrize("sizes", [(2,) * 9, SIZES])
def test_how_many_are_expected_changes_nobodys_answer(sizes):
    """The promise stays, and so must what is drawn by it: or two answers go for one price.

    Found by an attacker: of nine attributes alike one design had pairs, and another, for fewer
    people, pairs and single ones, both with all weights alike.
    """
    protocol, schema = RRViews(epsilon=1.0), make_schema(sizes)
    assert (
        protocol.design(schema, 1500).views != protocol.design(schema, 300).views or sizes == SIZES
    )
    drawn = set()
    for count in (1500, 1000, 300):
        study = make_study(count, sizes, protocol=protocol, minimum=300)
        assert study.promise == make_study(9999, sizes, protocol=protocol, minimum=300).promise
        session = Session(study.parties.count, study.parties.fewest)
        with pytest.raises(Drawn) as found:
            asyncio.run(protocol.party(session, schema, (0,) * len(sizes)))
        drawn.add(found.value.args)
        views = study.disclosures[0].groups
        assert views == len(protocol.design(schema, 300).views)
    assert len(drawn) == 1


def test_pairs_that_nobody_may_answer_are_foretold():
    study = setting(make_schema(SIZES), 60, None)
    (found, *_) = RRViews(epsilon=1.0).prospects(study)
    text = found.text
    assert "answers one attribute or one of 6 pairs" in text
    untold = float(text.split(" of the pairs")[0].split(". ")[-1])
    design = RRViews(epsilon=1.0).design(make_schema(SIZES), 60)
    chances = np.array(design.weights)[4:] / sum(design.weights)
    assert untold == pytest.approx(((1 - chances) ** 60).sum(), abs=0.051)
    assert not any("in no answered group" in t for t in RRViews(epsilon=4.0).prospects(
        setting(make_schema(SIZES), 20_000, None)))  # fmt: skip
