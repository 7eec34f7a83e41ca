"""Questions that were left without an answer, in whole studies: said, and never a value."""

import csv
import io
import json

import numpy as np
import pytest
from anonymizing import make_study
from helpers import setting, simulate, telling, with_mailbox

from mpc_rr.agents.party import Party
from mpc_rr.network.envelope import WIRE_VERSION
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking, MaskedRecord
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.results import earlier
from mpc_rr.results.claims import Contradicted
from mpc_rr.results.folder import read_folder
from mpc_rr.results.verification import replay, verify
from mpc_rr.running import simulate as simulate_study
from mpc_rr.schema import Attribute, Schema

ZIP = Attribute("zip", "nominal", ("13053", "13068"))
AGE = Attribute("age", "numeric", (), missing="no answer", lowest=0, highest=120, step=1)
PAY = Attribute("pay", "numeric", (), missing="no answer", lowest=0, highest=90_000, step=1)
NUMBERS = Schema((ZIP, AGE, PAY))
NO_AGE, NO_PAY = AGE.missing_code, PAY.missing_code
PEOPLE = [
    (0, 28, 35000), (0, 29, 30000), (1, NO_AGE, 20000), (1, NO_AGE, NO_PAY),
    (0, 50, 40000), (1, 55, NO_PAY), (0, NO_AGE, 48000), (1, 49, 45000),
]  # fmt: skip
MASKED = CollaborativeMasking(
    open=("zip", "age"), confidential=("pay",), masks={"pay": "noise:5000"}
)
ALL_MASKED = CollaborativeMasking(
    open=("zip",), confidential=("age", "pay"), masks={"age": "noise:5", "pay": "swap:20"}
)
IN_GROUPS = CollaborativeKAnonymity(k=3, quasi_identifiers=("zip", "age"), confidential=("pay",))

CAR = Attribute("car", "nominal", ("yes", "no", "no answer"), missing="no answer")
MOOD = Attribute("mood", "ordinal", ("?", "low", "fair", "good"), missing="?")
SEX = Attribute("sex", "nominal", ("f", "m"))
CATEGORIES = Schema((CAR, MOOD, SEX))


def some_people(n, seed=1):
    """A fifth says nothing about cars, a tenth nothing about moods."""
    rng = np.random.default_rng(seed)
    shares = ([0.5, 0.3, 0.2], [0.1, 0.3, 0.3, 0.3], [0.5, 0.5])
    return [tuple(int(rng.choice(len(s), p=s)) for s in shares) for _ in range(n)]


def sheet(publication, name):
    text = next(s.text for s in publication.sheets if s.name == name)
    return list(csv.DictReader(io.StringIO(text)))


def finished(protocol, schema=NUMBERS, records=PEOPLE):
    run = simulate_study(make_study(protocol, count=len(records), schema=schema), records, seed=3)
    return run, run.publication


# ── Records ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("release", ["microaggregated", "generalized", "anatomy", "permuted"])
@pytest.mark.parametrize("partition", ["mdav", "mondrian"])
def test_numbers_with_gaps_are_hidden_in_groups(partition, release, tmp_path):
    protocol = CollaborativeKAnonymity(
        k=3, quasi_identifiers=("zip", "age"), confidential=("pay",),
        partition=partition, release=release,
    )  # fmt: skip
    run, publication = finished(protocol)
    assert not any(note.incomplete for note in publication.notes)
    rows = sheet(publication, "confidential.csv" if release == "anatomy" else "release.csv")
    values = sorted(row["pay"] for row in rows)
    assert values == sorted("" if pay == NO_PAY else str(pay) for _, _, pay in PEOPLE)
    run.save(tmp_path / "run")
    verify(tmp_path / "run")


def test_hierarchies_leave_those_without_an_answer_apart():
    protocol = CollaborativeKAnonymity(
        k=2, quasi_identifiers=("zip", "age"), confidential=("pay",), partition="generalization",
        release="generalized", hierarchies={"age": (10.0, 40.0)},
    )  # fmt: skip
    _, publication = finished(protocol)
    ages = {row["age"] for row in sheet(publication, "release.csv")}
    assert "" in ages or ages == {"*"}


def test_how_many_gave_no_answer_is_published_with_records():
    for protocol in (IN_GROUPS, MASKED, ALL_MASKED):
        _, publication = finished(protocol)
        rows = publication.listing("no_answer").rows
        assert rows == (("age", 8, 3, 3 / 8), ("pay", 8, 2, 2 / 8))
        assert publication.listing("no_answer").main


def test_protection_says_of_how_many_it_speaks():
    _, publication = finished(IN_GROUPS)
    listed = publication.listing("protection")
    assert listed.column("answered") == [6]
    assert listed.caption == "Among those who answered."
    found = [finding.text for finding in publication.findings]
    assert any("quasi-identifiers that were answered" in text for text in found)


def test_masked_values_are_mapped_back_among_those_who_answered(tmp_path):
    run, publication = finished(ALL_MASKED)
    rows = sheet(publication, "release.csv")
    for (_, age, pay), row, masked in zip(
        PEOPLE, rows, sheet(publication, "masked.csv"), strict=True
    ):
        assert (row["age"] == "") == (masked["age"] == "") == (age == NO_AGE)
        assert (row["pay"] == "") == (masked["pay"] == "") == (pay == NO_PAY)
    for name, gap in (("age", NO_AGE), ("pay", NO_PAY)):
        place = NUMBERS.names.index(name)
        true = sorted(str(person[place]) for person in PEOPLE if person[place] != gap)
        assert sorted(row[name] for row in rows if row[name]) == true
    run.save(tmp_path / "run")
    verify(tmp_path / "run")


def test_an_ordinal_answer_that_is_missing_has_no_rank():
    schema = Schema((SEX, MOOD))
    people = [(0, 1), (1, 0), (0, 0), (1, 3), (0, 2), (1, 1)]
    protocol = CollaborativeMasking(
        open=("sex",), confidential=("mood",), masks={"mood": "swap:50"}
    )
    run, publication = finished(protocol, schema, people)
    rows = sheet(publication, "release.csv")
    assert [row["mood"] == "?" for row in rows] == [mood == 0 for _, mood in people]
    assert run.outcome.result.values == ((1, 1, 2, 3),)


def test_everybody_may_leave_a_confidential_question_out():
    people = [(zip_code, age, NO_PAY) for zip_code, age, _ in PEOPLE]
    for protocol in (MASKED, ALL_MASKED, IN_GROUPS):
        _, publication = finished(protocol, records=people)
        assert not any(note.incomplete for note in publication.notes)
        assert {row["pay"] for row in sheet(publication, "release.csv")} == {""}
    warned = [note.text for note in publication.notes]
    assert any("nobody answered" in text for text in warned)


def test_who_gave_no_answer_is_told_that_this_is_published():
    _, ends = simulate(make_study(ALL_MASKED, schema=NUMBERS), PEOPLE)
    mine = {own.attribute: own for own in ends["party-4"].own}
    assert mine["pay"].candidates is None
    assert mine["pay"].mask == "none: that you gave no answer is published, under your name"
    listed = ends["party-4"].publish(setting(NUMBERS, 8)).listing("your_masks")
    assert listed.rows[1][2:] == (None, None)
    assert ends["party-1"].own[1].candidates is not None


def test_consent_says_that_a_mask_does_not_hide_who_answered():
    events = ALL_MASKED.disclosures(setting(NUMBERS, 8))
    assert events[1].how.endswith("; whether it was answered is told as it is")
    without = Schema((ZIP, AGE, Attribute("pay", "numeric", (), lowest=0, highest=9, step=1)))
    assert "answered" not in ALL_MASKED.disclosures(setting(without, 8))[2].how


def claiming(attribute, masked):
    """How it ends if party-6 posts this instead of her masked value."""
    schema = Schema((SEX, attribute))
    protocol = CollaborativeMasking(open=("sex",), confidential=(attribute.name,))
    bad = with_mailbox(
        Party, telling(MaskedRecord, lambda _, m: MaskedRecord(m.head, (0,), (masked,)))
    )
    study = make_study(protocol, schema=schema, minimum=5)
    outcome, _ = simulate(study, [(0, 1 + k % 3) for k in range(8)], parties={"party-6": bad})
    return outcome.result


def test_noise_may_carry_a_number_to_where_no_answer_has_its_code():
    """Beyond all that can be answered, it is no gap for that."""
    found = claiming(AGE, NO_AGE).publish(setting(Schema((SEX, AGE)), 8))
    assert sheet(found, "masked.csv")[5]["age"] == "121"
    assert sheet(found, "release.csv")[5]["age"] == "3"


@pytest.mark.parametrize(
    ("attribute", "masked"),
    [
        (Attribute("age", "numeric", (), lowest=0, highest=120, step=1), None),
        (Attribute("mood", "ordinal", ("a", "b", "c", "d")), None),
        (MOOD, MOOD.missing_code),
    ],
)
def test_a_gap_that_cannot_be_and_a_category_that_is_none_are_left_out(attribute, masked):
    result = claiming(attribute, masked)
    assert "not as many as were asked, or too large" in result.lost["party-6"]


def test_a_gap_that_no_message_speaks_of_spoils_nothing():
    """Whoever sent a value and then says that she gave none has a blank row."""
    result = claiming(MOOD, None)
    found = result.publish(setting(Schema((SEX, MOOD)), 8))
    assert [row["mood"] == "?" for row in sheet(found, "release.csv")] == [k == 5 for k in range(8)]
    assert found.listing("no_answer").rows == (("mood", 8, 0, 0.0),)


# ── Counts and estimates ───────────────────────────────────────────────────────────────────────


def test_exact_counts_of_no_answer():
    people = some_people(40)
    _, publication = finished(ExactPairs(), CATEGORIES, people)
    cars, moods = (sum(p[k] == code for p in people) for k, code in ((0, 2), (1, 0)))
    rows = publication.listing("no_answer").rows
    assert rows == (("car", 40, cars, cars / 40), ("mood", 40, moods, moods / 40))


def test_hidden_counts_of_no_answer_are_not_told():
    people = [(0, 1, 0)] * 12 + [(1, 2, 1)] * 12 + [(2, 0, 1)]
    _, publication = finished(ExactPairs(suppress_below=3), CATEGORIES, people)
    assert publication.listing("no_answer").column("unanswered") == [None, None]


ESTIMATED = {
    "noise": ExactPairs(noise_epsilon=20.0),
    "independent": RRIndependent(keep=0.7),
    "joint": RRJoint(epsilon=4.0),
    "lambda": LambdaRandomization(lambdas={"car": 0.7, "mood": 0.7, "sex": 0.7}),
    "views": RRViews(epsilon=4.0),
    "each": RREachAttribute(keep=0.7),
    "pairs": RRPairs(keep=0.7),
    "clusters": RRClusters(keep=0.7, dependence=RREachAttribute(keep=0.7)),
    "blocks": BlockAggregation(p=0.6, floor=0.3, block=40, together=2),
}


@pytest.mark.parametrize("protocol", ESTIMATED.values(), ids=ESTIMATED)
def test_how_many_gave_no_answer_is_estimated_with_limits(protocol, tmp_path):
    """99.7 % of such estimates are right within 3 standard errors; the seed is fixed."""
    people = some_people(120)
    run, publication = finished(protocol, CATEGORIES, people)
    listed = publication.listing("no_answer")
    assert [row[0] for row in listed.rows] == ["car", "mood"]
    for _, asked, count, share, low, high in listed.rows:
        assert 0 < asked <= 120
        assert count == round(share * asked)
        assert 0 <= low <= share <= high <= 1
        assert low < high
    true = [sum(p[0] == 2 for p in people) / 120, sum(p[1] == 0 for p in people) / 120]
    for (*_, share, low, high), truth in zip(listed.rows, true, strict=True):
        assert abs(share - truth) <= 1.6 * (high - low) / 2 + 1e-9
    run.save(tmp_path / "run")
    verify(tmp_path / "run")


RANKS = ("1", "2", "3", "4", "none")
FIVE = Schema(tuple(Attribute(f"q{k}", "ordinal", RANKS, missing="none") for k in range(5)))


def five_answers(n):
    """Five answers that depend on each other, 15 in a hundred of them blank."""
    rng = np.random.default_rng(7)
    answers = np.clip(rng.integers(3, size=(n, 1)) + rng.integers(-1, 2, size=(n, 5)), 0, 3)
    return np.where(rng.random((n, 5)) < 0.15, 4, answers).tolist()


AGREEING = {
    **{name: p for name, p in ESTIMATED.items() if name not in ("lambda", "clusters")},
    "lambda": LambdaRandomization(lambdas={f"q{k}": 0.4 for k in range(5)}),
    "clusters": RRClusters(keep=0.6, most_combinations=40, dependence=RREachAttribute(keep=0.6)),
    "little": RRPairs(epsilon=1.0),
    "nothing": RREachAttribute(epsilon=0.5),
    "views of little": RRViews(epsilon=2.0),
    "blocks of twenty": BlockAggregation(p=0.5, floor=0.2, block=20, together=2),
    "exact": ExactPairs(),
    "hidden": ExactPairs(suppress_below=3),
}


@pytest.mark.parametrize("protocol", AGREEING.values(), ids=AGREEING)
def test_how_many_gave_no_answer_is_what_a_query_says(protocol):
    run, publication = finished(protocol, FIVE, five_answers(100))
    listed = publication.listing("no_answer")
    assert len(listed.rows) == 5
    for name, asked, _, share, *limits in listed.rows:
        asked_for = run.query(f"{name} is missing")
        if share is None:
            assert asked_for.share is None
            continue
        assert share == pytest.approx(asked_for.share, abs=1e-12)
        if not limits:
            continue
        told = asked_for.population
        if "these respondents" in listed.caption:
            told = tuple(end / asked_for.n for end in asked_for.interval)
        assert limits == pytest.approx(told, abs=1e-12)
        table = next((t for t in publication.tables if t.name == name), None)
        assert asked == (table.n if table else asked_for.n)


def test_a_question_that_must_be_answered_is_in_no_such_list():
    schema = Schema((SEX, Attribute("car", "nominal", ("yes", "no"))))
    for protocol in (ExactPairs(), RRIndependent(keep=0.7)):
        _, publication = finished(protocol, schema, [(k % 2, k % 2) for k in range(12)])
        assert publication.listing("no_answer") is None


def both_silent(n):
    """Cars and moods are independent, but whoever says nothing of one says nothing of the other."""
    rng = np.random.default_rng(4)
    sex = rng.integers(2, size=n).tolist()
    answers = [(int(rng.integers(2)), 1 + int(rng.integers(3))) for _ in range(n)]
    silent = (rng.random(n) < 0.3).tolist()
    return [(2, 0, sex[k]) if silent[k] else (*answers[k], sex[k]) for k in range(n)]


def test_that_some_answer_neither_is_no_dependence_of_blocks():
    protocol = BlockAggregation(p=0.9, floor=0.3, block=60, together=2)
    _, publication = finished(protocol, CATEGORIES, both_silent(360))
    listed = publication.listing("tables")
    by_table = dict(zip(listed.column("attributes"), listed.column("p_value"), strict=True))
    assert by_table["car", "mood"] > 0.001  # with the silent counted it is below 1e-9
    answered = dict(zip(listed.column("attributes"), listed.column("answered"), strict=True))
    asked = dict(zip(listed.column("attributes"), listed.column("n"), strict=True))
    assert answered["car", "mood"] < 0.8 * asked["car", "mood"]
    assert "who answered all" in listed.caption


# ── Folders of earlier rules ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["independent", "views", "blocks", "pairs"])
def test_estimates_of_no_answer_by_earlier_rules_are_not_contradicted(name, tmp_path, monkeypatch):
    """Up to rules 4 they were worked out beside the tables; what else was published is compared."""
    run, _ = finished(ESTIMATED[name], CATEGORIES, some_people(60))
    run.save(tmp_path / "run")
    result = tmp_path / "run" / "result.json"
    said = json.loads(result.read_text())
    said["rules"] = 4
    published = said["publication"]  # blocks did not tell of these then
    later = ("trajectory", "convergence")
    published["listings"] = [x for x in published["listings"] if x["name"] not in later]
    (listed,) = (part for part in published["listings"] if part["name"] == "no_answer")
    listed["rows"][0][3:] = [0.5, 0.4, 0.6]
    (tmp_path / "run" / "closing.json").unlink()
    result.write_text(json.dumps(said))
    claims = verify(tmp_path / "run")
    assert [c for c in claims if "without estimates of how many gave no answer" in c.why]
    said["publication"]["tables"][0]["values"][0] += 0.01
    result.write_text(json.dumps(said))
    with pytest.raises(Contradicted, match="tables"):
        verify(tmp_path / "run")


def test_what_earlier_rules_made_of_no_answer_is_still_verified(tmp_path, monkeypatch):
    """Up to rules 2 the category for no answer was one like any other, with a rank."""
    rank = Attribute("rank", "ordinal", ("low", "middle", "high", "no answer"), missing="no answer")
    people = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (1, 3), (0, 0)]
    protocol = CollaborativeKAnonymity(k=3, quasi_identifiers=("rank",), confidential=("sex",))
    with monkeypatch.context() as before:
        for role in ("party", "coordinator"):
            steps = getattr(CollaborativeKAnonymity, role)
            before.setattr(
                CollaborativeKAnonymity,
                role,
                lambda self, session, schema, *record, steps=steps: steps(
                    self, session, schema.with_missing_as_answers(), *record
                ),
            )
        run, publication = finished(protocol, Schema((SEX, rank)), people)
        run.save(tmp_path / "run")
    folder = read_folder(tmp_path / "run")
    monkeypatch.setitem(earlier.RULES_WITH_WIRE, WIRE_VERSION, 2)  # its messages are of today
    then = replay(folder, rules=2).publication
    assert then.listing("no_answer") is None
    assert sheet(then, "release.csv") == sheet(publication, "release.csv")
    with pytest.raises(Contradicted, match="not the groups"):
        replay(folder)
