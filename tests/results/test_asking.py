"""Every kind of result folder can be asked, and says the same as its tables."""

import itertools
from pathlib import Path

import anonymizing
import numpy as np
import pytest
from helpers import make_schema, make_study, random_records, unpack

from mpc_rr import Run, query, simulate
from mpc_rr.anonymization.pairings import fewest_and_most
from mpc_rr.errors import InputError
from mpc_rr.estimation.condition_language import parse_condition
from mpc_rr.estimation.estimates import checked_cells
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.answers import from_shares
from mpc_rr.publication.parts import Axis, Table
from mpc_rr.results.asking import ask
from mpc_rr.results.folder import read_folder
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.answers import answer_lines

GOLDEN = Path(__file__).parents[1] / "golden"
SIZES = (2, 3, 2)
RECORDS = random_records(30, SIZES, seed=3)
PROTOCOLS = {
    "exact_pairs": ExactPairs(),
    "exact_pairs, noise": ExactPairs(noise_epsilon=8.0, noise_corrupt=0.2),
    "exact_pairs, Gaussian": ExactPairs(noise_epsilon=8.0, noise_corrupt=0.2, noise="gaussian"),
    "exact_pairs, hidden": ExactPairs(suppress_below=4),
    "rr_pairs": RRPairs(keep=0.6),
    "rr_each_attribute": RREachAttribute(keep=0.6),
    "rr_independent": RRIndependent(keep=0.6),
    "rr_joint": RRJoint(epsilon=4.0),
    "rr_clusters": RRClusters(keep=0.6, most_combinations=6, dependence=RREachAttribute(keep=0.6)),
    "rr_views": RRViews(epsilon=3.0, together=2),
    "lambda_randomization": LambdaRandomization(beta=0.5),
    "block_aggregation": BlockAggregation(p=0.6, floor=0.5, block=10),
}
RECORDS_KEPT = {"rr_independent", "rr_joint", "rr_clusters", "lambda_randomization"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each protocol, made when it is first asked for."""
    made = {}

    def folder(kind):
        if kind not in made:
            study = make_study(len(RECORDS), SIZES, protocol=PROTOCOLS[kind])
            run = simulate(study, RECORDS, seed=5)
            place = tmp_path_factory.mktemp("asked") / "run"
            made[kind] = run, run.save(place)
        return made[kind]

    return folder


def truth(text, sizes=SIZES):
    holds = parse_condition(text, make_schema(sizes)).holds(dict(enumerate(np.array(RECORDS).T)))
    return int(holds.sum())


def cells_of(table):
    """Each cell of a table as a condition."""
    values = itertools.product(*(axis.categories for axis in table.axes))
    for place, words in enumerate(values):
        pairs = zip(table.axes, words, strict=True)
        yield place, " and ".join(f"{axis.attribute} = {word}" for axis, word in pairs)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_each_published_cell_is_the_answer(kind, folders):
    """The same number and the same limits; or, where noise was put right, a sentence about it."""
    run, folder = folders(kind)
    assert run.publication.tables
    for table in run.publication.tables:
        for place, text in cells_of(table):
            answer, value = ask(folder, text), table.values[place]
            if table.kind == "share":
                assert answer.source == "published cell"
                assert answer.share == value
                assert answer.population == (table.low[place], table.high[place])
                limits = (table.respondents_low[place], table.respondents_high[place])
                assert answer.interval == pytest.approx([30 * limit for limit in limits])
                assert answer.standard_error == table.standard_errors[place]
                assert "published share" in answer.how
            elif kind == "exact_pairs":
                assert (answer.source, answer.count) == ("exact counts", value)
                assert answer.interval == (value, value)
            elif value is None:
                low, high = answer.interval
                assert low <= truth(text) <= high
                assert low < high
                assert "hidden" in answer.how
                assert "three attributes or more may leave less room" in answer.how
            elif kind == "exact_pairs, hidden":
                assert (answer.source, answer.count) == ("exact counts", value)
            else:
                assert answer.source == "noisy counts"
                limits = (table.low[place], table.high[place])
                assert answer.interval == pytest.approx(limits, abs=1e-6)
                assert f"They add up to {value:,.0f} here" in answer.how


CONDITIONS = [
    "a0 = v1",
    "a1 in (v0, v2)",
    "not a1 = v1",
    "a0 = v1 or a1 = v2",
    "not (a0 = v1 and a2 = v0)",
    "a0 = v0 and a1 != v0 or a0 = v1 and a1 = v0",
]


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_compound_conditions_lie_within_their_limits(kind, level, folders):
    _, folder = folders(kind)
    for text in CONDITIONS:
        answer = ask(folder, text, level)
        low, high = answer.interval
        if answer.count is not None:
            assert low <= answer.count <= high
            assert answer.population[0] <= answer.share <= answer.population[1]
        if answer.certain:
            assert low <= truth(text) <= high
        everybody = ask(folder, f"not ({text})", level)
        if answer.share is not None:
            assert answer.share + everybody.share == pytest.approx(1)
        assert 0 <= low <= high <= 30 + 1e-9
        assert answer.how.endswith(".")


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_three_attributes_are_estimated_or_bounded(kind, folders):
    """Once refused where a folder holds tables of pairs, which say much of three together."""
    _, folder = folders(kind)
    text = "a0 = v1 and a1 = v0 and a2 = v1"
    answer = ask(folder, text)
    low, high = answer.interval
    if kind in RECORDS_KEPT:
        assert answer.source == "reports"
        assert "from the reports on these 3 attributes" in answer.how
        assert low <= answer.count <= high
        return
    assert (answer.source, answer.count, answer.share) == ("bounds", None, None)
    assert answer.how.startswith("No published table holds these 3 attributes together.")
    assert 0 <= low <= truth(text) <= high <= 30
    assert answer.certain == (kind in ("exact_pairs", "exact_pairs, hidden"))
    assert answer.certain != ("Bonferroni" in answer.how)
    said = answer_lines(answer)[0]
    assert ("for sure" in said) == answer.certain
    assert high < 30 or kind == "exact_pairs, hidden"
    among_pairs = [ask(folder, part).interval[1] for part in text_pairs(text)]
    assert high <= min(among_pairs) + 1e-9 or not answer.certain


def text_pairs(text):
    return [" and ".join(two) for two in itertools.combinations(text.split(" and "), 2)]


def test_bounds_of_exact_counts_are_within_those_of_their_classes(folders):
    """All tables of 30 people over the classes with the published pairs: one number tells them."""
    _, folder = folders("exact_pairs")
    records = np.array(RECORDS)
    here = records.copy()
    here[:, 1] = np.minimum(records[:, 1], 1)  # a1 in (v1, v2) is one class
    table = np.zeros((2, 2, 2), dtype=int)
    np.add.at(table, tuple(here.T), 1)
    signs = np.array([1, -1])
    moved = np.multiply.outer(np.multiply.outer(signs, signs), signs)
    possible = [
        int((table + t * moved)[1, 0, 1]) for t in range(-30, 31) if (table + t * moved).min() >= 0
    ]
    low, high = ask(folder, "a0 = v1 and a1 = v0 and a2 = v1").interval
    assert min(possible) <= low <= high <= max(possible)


def test_what_is_too_wide_to_be_bounded_is_refused_in_one_line(tmp_path):
    sizes = (2,) * 13
    records = random_records(4, sizes, seed=1)
    simulate(make_study(4, sizes, protocol=ExactPairs()), records, seed=1).save(tmp_path / "run")
    parts = [f"a{k} = v0" for k in range(13)]
    with pytest.raises(InputError, match="too wide") as told:
        ask(tmp_path / "run", " and ".join(parts))
    assert "\n" not in str(told.value)
    assert ask(tmp_path / "run", " and ".join(parts[:4])).certain


def test_what_does_not_matter_is_not_asked(folders):
    _, folder = folders("rr_independent")
    plain = ask(folder, "a0 = v1")
    roundabout = ask(folder, "a0 = v1 and (a1 = v0 or a1 != v0)")
    assert roundabout.share == plain.share
    assert roundabout.interval == plain.interval
    for text, says in (
        ("a0 = v1 or a0 != v1", "everyone meets"),
        ("a0 not in (v0, v1)", "nobody"),
    ):
        with pytest.raises(InputError, match=says):
            ask(folder, text)


def test_margins_of_tables_that_differ_are_said_to(folders):
    _, folder = folders("rr_pairs")
    said = [ask(folder, f"a{a} = v0").how for a in range(3)]
    assert any("each estimated by itself, give" in how for how in said)
    _, exact = folders("exact_pairs")
    assert ask(exact, "a1 = v0").count == truth("a1 = v0")


def test_a_run_and_its_folder_give_the_same_answer(folders):
    run, folder = folders("rr_joint")
    assert isinstance(run, Run)
    assert run.query("a0 = v1 or a2 = v1") == query(folder, "a0 = v1 or a2 = v1")
    assert query(run, "a0 = v1", 0.9).level == 0.9


@pytest.mark.parametrize("archive", ["format-1", "format-2", "rules-2"])
def test_older_folders_can_be_asked(archive, tmp_path):
    unpack(GOLDEN / f"{archive}.tar.xz", tmp_path)
    folders = [read_folder(place.parent) for place in tmp_path.rglob("result.json")]
    for folder in filter(lambda folder: folder.done, folders):
        asked = [a for a in folder.definition.schema.attributes if not a.numeric][:2]
        answer = ask(folder.path, " or ".join(f'"{a.name}" = "{a.categories[0]}"' for a in asked))
        low, high = answer.interval
        assert low <= (low if answer.count is None else answer.count) <= high <= answer.n + 1e-9


# ── Released records ───────────────────────────────────────────────────────────────────────────

ZIPS, PEOPLE = anonymizing.ZIPS, anonymizing.PEOPLE


def asked_of(protocol, tmp_path):
    return anonymized(protocol).save(tmp_path / "run")


def anonymized(protocol):
    return simulate(anonymizing.make_study(protocol), PEOPLE, seed=1)


def in_groups(release):
    return CollaborativeKAnonymity(
        k=4, quasi_identifiers=("zip", "age"), confidential=("salary",), release=release
    )


@pytest.mark.parametrize("release", ["microaggregated", "generalized", "anatomy", "permuted"])
def test_groups_are_counted_where_that_is_known(release, tmp_path):
    folder = asked_of(in_groups(release), tmp_path)
    young = ask(folder, "age < 29 or zip = 14853")
    assert (young.count, young.interval, young.released) == (5, (5, 5), None)
    paid = ask(folder, "salary >= 40000")
    assert (paid.count, paid.interval) == (4, (4, 4))
    both = ask(folder, "age < 29 and salary < 30000")
    true = sum(age < 29 and salary < 30000 for _, age, salary in PEOPLE)
    assert both.count is None
    assert both.interval == (1, 2)  # three young, two badly paid, in a group of four
    assert both.interval[0] <= true <= both.interval[1]
    assert "nobody can tell whose values are whose" in both.how
    assert (both.released is None) == (release in ("generalized", "anatomy"))
    if release == "microaggregated":
        assert (both.released, both.records) == (2, 8)  # all of the group are 25.25 years old


def test_masked_combinations_are_of_the_release_alone(tmp_path):
    folder = asked_of(anonymizing.MASKED, tmp_path)
    for text, true in (("zip in (13053, 13068)", 4), ("age >= 47", 4), ("salary = 20000", 1)):
        assert ask(folder, text).count == true
    both = ask(folder, "age < 29 and salary < 30000")
    assert (both.count, both.interval) == (None, None)
    assert both.records == 8
    assert 0 <= both.released <= 8
    assert "of the respondents themselves it cannot be told" in both.how


def test_pairings_are_those_of_all_permutations():
    rng = np.random.default_rng(2)
    for _ in range(40):
        groups = [rng.random((size, size)) < rng.random() for size in rng.integers(1, 5, 3)]
        fewest = most = 0
        for met in groups:
            every = itertools.permutations(range(len(met)))
            sums = [sum(met[i, j] for i, j in enumerate(order)) for order in every]
            fewest, most = fewest + min(sums), most + max(sums)
        assert fewest_and_most(groups) == (fewest, most)


# ── Tables of protocols that are not known here ────────────────────────────────────────────────

TWO = Schema((Attribute("a", "nominal", ("x", "y")), Attribute("b", "nominal", ("x", "y"))))


def of_a_count_table(**layers):
    axis = Axis(attribute="a", categories=("x", "y"))
    table = Table(name="a", axes=(axis,), kind="count", n=10, **({"values": (3, 7)} | layers))
    cells = checked_cells(parse_condition("a = x", TWO), TWO.sizes)
    return from_shares("a = x", [table], cells, TWO, 10, 0.95, lambda *_: None)


def test_counts_of_a_protocol_of_one_s_own_are_counts():
    """Once they were taken for shares: 30 of 10 respondents."""
    found = of_a_count_table()
    assert (found.count, found.share, found.certain) == (3.0, 0.3, True)
    noisy = of_a_count_table(standard_errors=(1.0, 1.0))
    assert (noisy.count, noisy.share, noisy.certain) == (3.0, 0.3, False)
    assert noisy.interval is None
    limited = of_a_count_table(standard_errors=(1.0, 1.0), low=(1.1, 5.0), high=(4.9, 9.0))
    assert (limited.count, limited.interval, limited.population) == (3.0, (1.1, 4.9), None)
    assert "with its published limits" in limited.how


@pytest.mark.parametrize(
    ("values", "says"), [((13, 7), "each respondent once"), ((None, 7), "are hidden")]
)
def test_counts_that_do_not_tell_are_not_told(values, says):
    with pytest.raises(InputError, match=says):
        of_a_count_table(values=values)
