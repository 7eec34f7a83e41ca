"""Protocol 2 of paper 004: marginals first, then masks, then mapping back by rank."""

import asyncio

import msgspec
import numpy as np
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED, NAMES, PEOPLE, make_scenario, make_study, run
from helpers import setting, simulate
from test_collaborative_k_anonymity import relays_of, telling, with_mailbox

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Declined, InputError
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.protocols.board.commitment import Openings
from mpc_rr.protocols.collaborative_masking import (
    DECIDE_CHOICE,
    CollaborativeMasking,
    MaskedRecord,
    MaskedRelease,
)
from mpc_rr.protocols.mix.batch import Found
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.definition import Deadlines


def test_the_release_has_exactly_the_original_values():
    outcome, ends = run(MASKED)
    released = outcome.result.released()
    for place, original in enumerate(zip(*PEOPLE, strict=True)):
        if place:
            assert sorted(row[place - 1] for row in released) == sorted(original)
    assert {end.digest for end in ends.values()} == {outcome.result.digest}
    assert all(end.released() == released for end in ends.values())


def test_masked_values_are_within_the_recommended_noise():
    outcome, _ = run(MASKED)
    for name, person in zip(NAMES, PEOPLE, strict=True):
        codes, masked = outcome.result.records[name]
        assert codes == person[:1]
        assert abs(masked[0] - person[1]) <= 5
        assert abs(masked[1] - person[2]) <= 5000


def choosing(choices):
    class Choosing(Party):
        def __init__(self, *args):
            super().__init__(*args, terms=Terms(choices=choices))

    return Choosing


def test_a_respondent_chooses_her_own_masks():
    mine = choosing({"mask/age": "none", "mask/salary": "swap:100"})
    outcome, ends = run(MASKED, parties={"party-2": mine})
    masked = outcome.result.records["party-2"][1]
    assert masked[0] == PEOPLE[1][1]
    assert masked[1] in {p[2] for p in PEOPLE}
    own = ends["party-2"].own
    assert [o.mask for o in own] == ["none: published as it is, under your name", "swap:100"]
    assert own[0].candidates.values == 1
    assert own[1].candidates.values == 8


@pytest.mark.parametrize("least", [2, 5, 8])
def test_a_respondent_can_ask_for_enough_candidates(least):
    outcome, ends = run(MASKED, party=choosing({"candidates": str(least)}))
    for end in ends.values():
        assert all(own.candidates.values >= least for own in end.own)
    assert outcome.result.own == ()  # what masks leave is for their owners only


AGES = Schema((EIGHT.attributes[0], EIGHT.attributes[1]))
AGE_MASKED = CollaborativeMasking(open=("zip",), confidential=("age",), masks={"age": "noise:5"})
MOODS = Schema((EIGHT.attributes[0], Attribute("mood", "ordinal", ("low", "fair", "good", "top"))))
MOOD_BARE = CollaborativeMasking(open=("zip",), confidential=("mood",))


def test_a_mask_is_as_wide_for_a_rare_value_as_for_any_other():
    """Attack N7: a respondent of 90 among ten of 20 to 29 was told 11, and was 90 at 0.999."""
    records = [(0, age) for age in (*range(20, 30), 90)]
    for seed in range(5):
        _, ends = run(
            AGE_MASKED, records=records, seed=seed, study={"schema": AGES},
            party=choosing({"candidates": "5"}),
        )  # fmt: skip
        told = [end.own[0] for end in ends.values()]
        assert {own.mask for own in told} == {"swap among the 9 nearest in rank, then noise:5"}
        assert all(5 <= own.candidates.values <= 10 for own in told)


def test_nobody_is_lost_by_asking_for_candidates_among_categories():
    """Attack N8: her own program left the range, and she was named and left out."""
    records = [(0, 3 if k == 0 else k % 4) for k in range(8)]
    for seed in range(20):
        outcome, ends = run(
            MOOD_BARE, records=records, seed=seed, study={"schema": MOODS, "minimum": 4},
            party=choosing({"candidates": "2"}), parties={"party-1": choosing({"candidates": "3"})},
        )  # fmt: skip
        assert outcome.result.lost == {}
        assert set(outcome.result.records) == set(NAMES)
        assert all(own.candidates.values >= 2 for end in ends.values() for own in end.own)


def warned(ending):
    return [note.text for note in ending.publish(setting(EIGHT, 8)).notes]


def test_who_cannot_have_as_many_candidates_as_asked_for_is_told_how_many():
    records = [(0, k // 6) for k in range(8)]  # six of one mood, two of another
    outcome, ends = run(
        MOOD_BARE, records=records, study={"schema": MOODS}, party=choosing({"candidates": "3"})
    )
    assert outcome.result.lost == {}
    for end in ends.values():
        assert end.own[0].mask == "swap among the 8 nearest in rank"
        assert end.own[0].candidates.values == 1
        assert any("asked for 3 candidates for your “mood”, and have 1" in w for w in warned(end))


def test_what_is_not_masked_is_said_to_be_published_under_the_name():
    outcome, ends = run(MOOD_BARE, records=[(0, k % 4) for k in range(8)], study={"schema": MOODS})
    listings = {part.name: part for part in ends["party-1"].publish(setting(MOODS, 8)).listings}
    assert listings["your_masks"].rows == (
        ("mood", "none: published as it is, under your name", 2, 1),
    )
    assert any("published as it is, under their name" in w for w in warned(outcome.result))
    masked, _ = run(MASKED)
    assert not any("published as it is" in w for w in warned(masked.result))


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"mask/zip": "none"}, "'zip' is not confidential here"),
        ({"mask/age": "noise:0"}, "at least one step"),
        ({"candidates": "0"}, "not a whole number above 0"),
        ({"candidates": "some"}, "not a whole number above 0"),
        ({"candidates": "9"}, "9 different values of 'age' cannot be: there are 8 at most"),
    ],
)
def test_a_choice_that_makes_no_sense_is_told_before_anything_is_sent(choices, says):
    party = choosing(choices)(
        make_study(MASKED), "party-1", PEOPLE[0], MemoryNetwork().attach("x"), SeededRandomness(1)
    )
    with pytest.raises(InputError, match=says):
        simulate_one(party)


def simulate_one(party):
    party.run().send(None)


@pytest.mark.parametrize("step", ["commitments", "openings", "onions", "found"])
def test_whoever_leaves_before_the_values_are_read_is_left_out(step):
    honest = run_study(make_scenario(MASKED, minimum=5), transport="memory", seed=4).outcome
    gone = next(name for name in NAMES if name not in relays_of(honest))
    faults = Faults(silent=(PartyFault(gone, step),))
    scenario = make_scenario(MASKED, faults=faults, minimum=5)
    result = run_study(scenario, transport="memory", seed=4).outcome.result
    assert isinstance(result, MaskedRelease)
    assert set(result.lost) == {gone}
    assert len(result.values[0]) == result.n == 7


def test_whoever_leaves_after_that_has_no_row_and_the_values_are_spread():
    faults = Faults(silent=(PartyFault("party-5", "masked_record"),))
    scenario = make_scenario(MASKED, faults=faults, minimum=5)
    result = run_study(scenario, transport="memory", seed=4).outcome.result
    assert result.n == 7
    assert len(result.values[0]) == 8
    released = result.released()
    assert len(released) == 7
    assert {row[0] for row in released} < {p[1] for p in PEOPLE}


def test_equal_masked_values_are_ordered_alike_by_everybody():
    def same(_, message):
        return MaskedRecord(message.head, message.open_codes, (40, 40))

    outcome, ends = run(MASKED, party=with_mailbox(Party, telling(MaskedRecord, same)))
    orders = {tuple(end.released()) for end in ends.values()}
    assert orders == {tuple(outcome.result.released())}
    assert sorted(row[0] for row in outcome.result.released()) == sorted(p[1] for p in PEOPLE)


def test_a_record_that_nobody_was_asked_for_is_left_out():
    bad = with_mailbox(Party, telling(MaskedRecord, lambda _, m: MaskedRecord(m.head, (9,), (1,))))
    outcome, _ = run(MASKED, parties={"party-6": bad}, study={"minimum": 5})
    assert "it is no answer to what was asked" in outcome.result.lost["party-6"]
    assert outcome.result.n == 7


def published_sheet(ending, name):
    sheets = ending.publish(setting(EIGHT, 8)).sheets
    return next(sheet.text for sheet in sheets if sheet.name == name)


def keeping_books(books, *, again=False):
    class Keeping(Party):
        def __init__(self, study, name, *args):
            account = books.setdefault(name, Account())
            super().__init__(study, name, *args, terms=Terms(account=account, again=again))

    return Keeping


def test_whose_values_were_opened_refuses_another_run():
    """Two releases with other people would give away who is missing in one of them."""
    books = {}
    study = make_study(MASKED)
    first, _ = simulate(study, PEOPLE, seed=1, party=keeping_books(books))
    assert first.result is not None
    for seed in (1, 2):  # the coordinator names the run: it may give two the same name
        second, ends = simulate(study, PEOPLE, seed=seed, party=keeping_books(books))
        assert second.result is None
        assert all("narrow the true one down" in str(end) for end in ends.values())


def test_after_a_batch_that_was_given_up_everybody_is_asked_before_another_run():
    """Nothing was opened; but who may begin again until the dice suit chooses all relays."""
    books, study = {}, make_study(MASKED)  # all eight are needed
    honest, _ = simulate(study, PEOPLE, seed=1)
    silent = next(name for name in NAMES if name not in relays_of(honest))
    kind = with_mailbox(keeping_books(books), without(Found))
    first, _ = simulate(study, PEOPLE, seed=1, party=keeping_books(books), parties={silent: kind})
    assert "only 7 of 8 parties are left" in first.cause
    second, ends = simulate(study, PEOPLE, seed=2, party=keeping_books(books))
    assert second.result is None
    assert all("can choose among relays" in str(end) for end in ends.values())
    third, _ = simulate(study, PEOPLE, seed=3, party=keeping_books(books, again=True))
    assert third.result is not None


def without(kind):
    """A mailbox that keeps messages of a kind to itself."""

    class Keeping(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, kind):
                return self.write(session, message.step, target, message)
            return await super().tell(session, target, message)

    return Keeping


def test_whose_quasi_identifiers_were_told_refuses_another_run():
    """Others could choose theirs to be close to hers."""
    books, study = {}, make_study(IN_GROUPS, minimum=8)
    late = with_mailbox(keeping_books(books), without(Openings))
    first, _ = simulate(
        study, PEOPLE, seed=1, party=keeping_books(books), parties={"party-8": late}
    )
    assert first.result is None
    second, ends = simulate(study, PEOPLE, seed=2, party=keeping_books(books))
    assert second.result is None
    assert all("with values close to them" in str(ends[name]) for name in NAMES[:7])
    third, _ = simulate(study, PEOPLE, seed=3, party=keeping_books(books, again=True))
    assert third.result is not None


def test_a_masked_value_is_drawn_once():
    """A second one under the same name would narrow the first down."""
    books = {}
    study = make_study(MASKED)
    first, _ = simulate(study, PEOPLE, seed=1, party=keeping_books(books))
    second, _ = simulate(study, PEOPLE, seed=2, party=keeping_books(books, again=True))
    assert first.result.records == second.result.records


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"masks": {"zip": "none"}}, "masks.zip: it is not confidential"),
        ({"masks": {"age": "noise"}}, "'' is not a number"),
        ({"confidential": ("age", "salary", "zip"), "open": ()}, "'zip' has no order"),
        ({"confidential": ("age",)}, "does not say whether 'salary' is confidential"),
    ],
)
def test_options_that_make_no_sense_are_refused(changed, says):
    with pytest.raises(InputError, match=says):
        msgspec.structs.replace(MASKED, **changed).check(setting(EIGHT, 8))


def test_values_and_ranks_survive_on_a_few_dozen_people():
    rng = np.random.default_rng(1)
    records = [
        (int(rng.integers(4)), int(rng.integers(100)), int(rng.integers(10**6))) for _ in range(40)
    ]
    outcome, _ = run(MASKED, records=records)
    released = np.array(outcome.result.released())
    original = np.array(records)[:, 1:]
    assert (np.sort(released, axis=0) == np.sort(original, axis=0)).all()
    assert np.corrcoef(released[:, 1], original[:, 1])[0, 1] > 0.95


def test_a_masked_category_must_be_one():
    """Otherwise one respondent could spoil everybody's files."""
    schema = Schema((EIGHT.attributes[0], Attribute("mood", "ordinal", ("low", "middle", "high"))))
    protocol = CollaborativeMasking(open=("zip",), confidential=("mood",))
    bad = with_mailbox(Party, telling(MaskedRecord, lambda _, m: MaskedRecord(m.head, (0,), (-1,))))
    records = [(0, k % 3) for k in range(8)]
    outcome, _ = run(
        protocol, records=records, parties={"party-6": bad},
        study={"minimum": 5, "schema": schema},
    )  # fmt: skip
    assert "not as many as were asked, or too large" in outcome.result.lost["party-6"]
    assert len(published_sheet(outcome.result, "release.csv").splitlines()) == 8


# ── Deciding after seeing ──────────────────────────────────────────────────────────────────────

FIGURE_2 = {  # what each respondent of the paper's Fig. 2 makes of her age and her salary
    (28, 35000): (29, 37306), (29, 30000): (24, 27765), (21, 20000): (18, 18951),
    (23, 27000): (19, 28151), (50, 40000): (51, 36879), (55, 43000): (50, 42631),
    (47, 48000): (52, 45585), (49, 45000): (49, 40390),
}  # fmt: skip
STEP_5 = [
    (29, 40000), (28, 27000), (21, 20000), (23, 30000),
    (50, 35000), (49, 45000), (55, 48000), (47, 43000),
]  # fmt: skip


def deciding(decide, choices=None):
    class Deciding(Party):
        def __init__(self, *args):
            super().__init__(*args, terms=Terms(choices=choices or {}, decide=decide))

    return Deciding


def test_figure_2_can_be_reached_by_deciding_after_the_values_were_seen():
    seen = []

    def for_one(person):
        told = FIGURE_2[person[1:]]

        def decide(asked):
            seen.append(asked)
            place = ("age", "salary").index(asked.attribute.name)
            assert asked.own == person[1:][place]
            return f"={told[place]}"

        return deciding(decide)

    people = {name: for_one(person) for name, person in zip(NAMES, PEOPLE, strict=True)}
    outcome, ends = run(MASKED, parties=people)
    assert outcome.result.released() == STEP_5
    assert len(seen) == 16
    for asked in seen:
        column = 1 if asked.attribute.name == "age" else 2
        assert asked.values == tuple(sorted(person[column] for person in PEOPLE))
    own = ends["party-1"].own
    assert own[0].mask == "29: your own choice, so nothing bounds what it tells of you"
    assert own[0].candidates is None


def test_who_does_not_decide_in_time_uses_the_recommended_mask():
    async def slow(_):
        await asyncio.sleep(1000)
        return "none"

    outcome, ends = run(MASKED, parties={"party-1": deciding(slow)})
    assert len(outcome.result.records) == 8
    assert [own.mask for own in ends["party-1"].own] == ["noise:5", "noise:5000"]


def test_who_does_not_decide_in_time_withdraws_where_no_mask_is_recommended():
    """Nothing that she has not agreed to is published; who is not asked has agreed."""

    async def slow(_):
        await asyncio.sleep(1000)
        return "swap:50"

    bare = msgspec.structs.replace(MASKED, masks={"age": "noise:5"})
    outcome, ends = run(bare, study={"minimum": 6}, parties={"party-1": deciding(slow)})
    assert isinstance(ends["party-1"], Declined)
    assert "did not decide in time how 'salary'" in str(ends["party-1"])
    assert sorted(outcome.result.records) == [f"party-{k}" for k in range(2, 9)]
    assert outcome.result.lost == {"party-1": "masked_record: it declined to go on"}
    assert outcome.result.records["party-2"][1][1] == PEOPLE[1][2]


def test_a_choice_still_to_be_made_is_no_mask_where_none_is_recommended():
    """The consent screen says the worst, and how much time there is."""
    bare = msgspec.structs.replace(MASKED, masks={"age": "noise:5"})
    study = msgspec.structs.replace(make_study(bare), deadlines=Deadlines(30.0, 0.2))
    means = consent_to(study, Account(), choices={DECIDE_CHOICE: "yes"})
    assert "“salary” is told as it is, under your name, unless you choose a mask" in means.in_words
    assert "Masked values (“age”)" in means.in_words
    assert "if you do not decide in time, you withdraw" in means.disclosures[-1].how
    assert "“age”, “salary” you have 0.12 s in all" in means.cautions[0].text
    assert "--mask" in means.cautions[0].prevented_by
    assert all("s in all" not in c.text for c in consent_to(study, Account()).cautions)


@pytest.mark.parametrize(("round_s", "stragglers_s", "few"), [
    (49.0, None, True), (50.0, None, False), (500.0, 49.0, True), (500.0, 50.0, False),
])  # fmt: skip
def test_a_study_that_leaves_people_no_time_to_decide_is_warned(round_s, stragglers_s, few):
    deadlines = Deadlines(30.0, round_s, stragglers_s)
    study = msgspec.structs.replace(make_study(MASKED), deadlines=deadlines)
    found = [prospect.text for prospect in MASKED.prospects(study.setting)]
    assert [text for text in found if "too few for a person" in text] == found
    assert len(found) == few


def test_a_decision_may_take_its_time_and_be_any_mask():
    async def thoughtful(asked):
        await asyncio.sleep(0.5)
        return "swap:50" if asked.attribute.name == "age" else asked.recommended

    outcome, ends = run(MASKED, parties={"party-1": deciding(thoughtful)})
    assert [own.mask for own in ends["party-1"].own] == ["swap:50", "noise:5000"]
    assert outcome.result.lost == {}


def test_what_is_given_beforehand_is_not_asked():
    asked = []
    mine = deciding(lambda what: asked.append(what) or "none", {"mask/age": "swap:10"})
    _, ends = run(MASKED, parties={"party-1": mine})
    assert [what.attribute.name for what in asked] == ["salary"]
    assert ends["party-1"].own[0].mask == "swap:10"


def test_a_rule_takes_the_first_mask_that_leaves_everybody_enough():
    mine = choosing({"mask/age": "first:4:swap:5,swap:50,swap:100", "mask/salary": "=37306"})
    outcome, ends = run(MASKED, parties={"party-2": mine})
    assert ends["party-2"].own[0].mask == "swap:50"
    assert outcome.result.records["party-2"][1][1] == 37306


@pytest.mark.parametrize("masks", [{"age": "=20"}, {"age": "first:3:swap:5"}])
def test_a_study_recommends_neither_a_value_nor_a_rule(masks):
    with pytest.raises(InputError, match="recommends a mask, no value and no rule"):
        msgspec.structs.replace(MASKED, masks=masks).check(setting(EIGHT, 8))


def test_another_value_of_ones_own_choice_for_the_same_list_is_declined():
    account = Account()
    run_with = {"age": "20"}

    class Same(Party):
        def __init__(self, *args):
            choices = {"mask/age": f"={run_with['age']}", "mask/salary": "none"}
            super().__init__(*args, terms=Terms(account=account, choices=choices, again=True))

    _, ends = run(MASKED, parties={"party-1": Same}, study={"minimum": 7})
    assert ends["party-1"].own[0].candidates is None
    run_with["age"] = "30"
    _, ends = run(MASKED, parties={"party-1": Same}, study={"minimum": 7})
    assert isinstance(ends["party-1"], Declined)
