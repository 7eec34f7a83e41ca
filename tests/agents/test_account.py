"""A person's ledger: exact, safe against crashes, hers alone, and the only thing that draws."""

import base64
import datetime as dt
import hashlib
import io
import json
import math
import os
import shutil

import msgspec
import pytest
from helpers import make_study, setting
from rich.console import Console

from mpc_rr.agents.account import Account, StoredAccount, _shared, adopt_rows
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.ledger_file import Occasion, StateError
from mpc_rr.errors import Declined, InputError
from mpc_rr.privacy.disclosures import Unstated
from mpc_rr.privacy.ledger import OverdrawnError
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.study import show_consent
from mpc_rr.study.definition import Deadlines, Parties

STUDY = make_study(9, (2, 3), protocol=RRJoint(epsilon=1.5))
RECORD = (1, 2)
HERE, ELSEWHERE = Occasion("01" * 16, "02" * 32, "05", 9), Occasion("03" * 16, "04" * 32, "06", 8)


def answered(account, study=STUDY, record=RECORD, label="answer", given=b""):
    """What a party would send: sixteen bytes of what it draws with."""
    account.charge(study, record)
    return account.once(study, record, label, lambda rng: rng.bytes(16), given)


# ── Answers ────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_the_same_again_and_is_paid_once(tmp_path):
    with StoredAccount.open(tmp_path / "me", budget=2.0) as account:
        first = answered(account)
    with StoredAccount.open(tmp_path / "me", budget=2.0) as again:
        assert again.planned(STUDY) == []
        assert answered(again) == first
        assert again.ledger.spent == 1.5


def test_a_restored_backup_draws_the_same_answer(tmp_path):
    """Fifteen restored copies gave fifteen independent answers for one price."""
    with StoredAccount.open(tmp_path / "me", budget=3.0) as account:
        account.charge(make_study(9, (2, 3), name="before", protocol=RRJoint(epsilon=1.0)), RECORD)
    found = set()
    for number in range(15):
        shutil.copytree(tmp_path / "me", tmp_path / f"restored-{number}")
        with StoredAccount.open(tmp_path / f"restored-{number}", budget=3.0) as restored:
            found.add(answered(restored))
    assert len(found) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other words"}, {"description": "More words"},
        {"deadlines": Deadlines(lobby_s=9e3, round_s=8e3)}, {"expires": dt.date(2999, 1, 1)},
        {"parties": Parties(20, 9)},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_what_is_not_promised_may_change_without_another_draw(change):
    account = Account()
    first = answered(account)
    later = msgspec.structs.replace(STUDY, **change)
    assert later.promise == STUDY.promise
    assert answered(account, later) == first
    assert account.ledger.spent == 1.5  # the very same answer tells nothing new


def test_another_question_or_another_name_is_another_study():
    """Were the answer the same if and only if the record is, two questions whose answers have the
    same numbers would tell who answers both alike: no ε bounds that."""
    first, *rest = STUDY.schema.attributes
    asked = msgspec.structs.replace(first, question="Do you own a bicycle?")
    schema = msgspec.structs.replace(STUDY.schema, attributes=(asked, *rest))
    secret = bytes(range(32))
    for other in (
        msgspec.structs.replace(STUDY, name="renamed"),
        msgspec.structs.replace(STUDY, schema=schema),
    ):
        account = Account(secret=secret)
        assert answered(account, other) != answered(account, STUDY)
        assert account.ledger.spent == 3.0


def test_another_promise_another_answer():
    """Each of schema, protocol, ε, minimum and registrar is part of what is promised."""
    others = [
        make_study(9, (3, 3), protocol=RRJoint(epsilon=1.5)),
        make_study(9, (2, 3), protocol=RRJoint(epsilon=1.6)),
        make_study(9, (2, 3), protocol=RRIndependent(epsilon=1.5)),
        make_study(9, (2, 3), minimum=8, protocol=RRJoint(epsilon=1.5)),
        msgspec.structs.replace(STUDY, registrar="ab" * 32),
    ]
    promises = {study.promise for study in (STUDY, *others)}
    assert len(promises) == 1 + len(others)
    secret = bytes(range(32))
    answers = {answered(Account(secret=secret), study) for study in (STUDY, *others)}
    assert len(answers) == 1 + len(others)


def test_the_rule_of_the_draw_is_the_one_that_is_written_down():
    """docs/draws.md, worked out once by hand: a second implementation must find the same."""
    drawn = Account(secret=bytes(range(32)))
    assert STUDY.promise.hex() == "89f925bcc1fe396da93ba7ad7f9fcde4e298d3c733e7a231d2d0f567d0ee17ea"
    assert answered(drawn, given=b"mark").hex() == "0a5198eec200106e7b5aee15f8757c75"


def test_answers_depend_on_secret_label_record_and_what_was_given():
    drawn = {
        answered(Account(secret=secret), STUDY, record, label, given)
        for secret, record, label, given in [
            (b"a" * 32, (1, 2), "answer", b""),
            (b"b" * 32, (1, 2), "answer", b""),
            (b"a" * 32, (0, 2), "answer", b""),
            (b"a" * 32, (1, 2), "first", b""),
            (b"a" * 32, (1, 2), "answer", b"x"),
        ]
    }
    assert len(drawn) == 5


def test_the_same_study_is_not_answered_otherwise_when_others_answered_otherwise():
    account = Account()
    answered(account, given=b"these clusters")
    with pytest.raises(Declined, match="another answer would tell more"):
        answered(account, given=b"those clusters")


def test_a_name_that_somebody_else_took_stands_in_nobodys_way():
    """Whoever answered one study "health" was refused at every other of that name."""
    account = Account()
    answered(account)
    other = msgspec.structs.replace(STUDY, protocol=RRJoint(epsilon=0.5))
    answered(account, other)
    assert account.ledger.spent == 2.0


def test_another_record_is_refused_in_the_same_study():
    account = Account()
    account.charge(STUDY, (1, 2))
    account.charge(STUDY, (1, 2))
    with pytest.raises(InputError, match="for another record"):
        account.charge(STUDY, (0, 2))


def test_masks_are_never_the_same_again():
    account = Account(secret=bytes(32))
    assert account.masks(b"roster").bytes(16) != account.masks(b"roster").bytes(16)
    one = account.masks(b"roster")
    assert one.fork("a").bytes(16) != one.fork("a").bytes(16)


def test_masks_of_two_rosters_differ_even_if_the_system_repeats_itself(monkeypatch):
    account = Account(secret=bytes(32))
    monkeypatch.setattr(os, "urandom", bytes)
    drawn = {account.masks(*place).bytes(16) for place in ((b"a", b"b"), (b"ab", b""), (b"c",))}
    assert len(drawn) == 3


# ── Comparing runs ─────────────────────────────────────────────────────────────────────────────

EXACT = make_study(9, (2, 3), protocol=ExactPairs())


def about(*names):
    """A study of exact counts about these."""
    schema = Schema(tuple(Attribute(name, "nominal", ("x", "y", "z")) for name in names))
    return msgspec.structs.replace(EXACT, name="about-them", schema=schema)


def test_who_was_counted_is_asked_before_she_joins_again():
    account = Account()
    account.charge(EXACT, RECORD)
    account.check(EXACT, RECORD)  # nothing has left yet
    account.disclose(EXACT, HERE)
    with pytest.raises(Declined, match="shows the answers of whoever is in only one"):
        account.check(EXACT, RECORD)
    account.check(EXACT, RECORD, again=True)
    with pytest.raises(Declined, match=r"\(run 01010101…, 9 parties\)"):
        account.disclose(EXACT, ELSEWHERE)
    account.disclose(EXACT, HERE)  # the same run goes on
    account.disclose(EXACT, ELSEWHERE, again=True)
    assert [run.run for run in account.participations[0].runs] == [HERE.run, ELSEWHERE.run]


@pytest.mark.parametrize(
    "other",
    [
        make_study(9, (2, 3), name="renamed", protocol=ExactPairs()),
        make_study(9, (2, 3), minimum=8, protocol=ExactPairs()),
        make_study(9, (2, 3), protocol=ExactPairs(sum="secure_sum")),
        make_study(9, (2, 3, 4), name="one-more", protocol=ExactPairs()),
        make_study(9, (5, 5), name=EXACT.name, protocol=ExactPairs()),
        about("a0", "b1"),
    ],
    ids=[
        "renamed",
        "another minimum",
        "an option",
        "another question",
        "other categories",
        "one question in common",
    ],
)
def test_a_study_need_not_be_repeated_as_it_was_to_be_compared(other):
    """One number in the file was changed, and the same sum could be had without somebody."""
    account = Account()
    account.charge(EXACT, RECORD)
    account.disclose(EXACT, HERE)
    with pytest.raises(Declined, match="in only one"):
        account.check(other, RECORD)
    account.check(other, RECORD, again=True)


def test_what_nobody_states_may_be_about_the_same():
    """A protocol whose author does not say what it discloses is compared with everything."""
    exact, unstated = EXACT.disclosures[0], Unstated()
    assert _shared(unstated, [exact])
    assert _shared(exact, [unstated])
    assert _shared(unstated, [unstated])


def test_studies_about_something_else_are_not_compared():
    account = Account()
    account.charge(EXACT, RECORD)
    account.disclose(EXACT, HERE)
    account.check(about("b0", "b1"), RECORD)
    account.check(make_study(9, (2, 3), name="third", protocol=RRJoint(epsilon=1.0)), RECORD)


def test_randomized_answers_may_be_given_in_any_number_of_runs():
    account = Account()
    account.charge(STUDY, RECORD)
    account.disclose(STUDY, HERE)
    account.disclose(STUDY, ELSEWHERE)
    account.check(STUDY, RECORD)
    assert account.ledger.spent == 1.5


# ── Budgets ────────────────────────────────────────────────────────────────────────────────────


def test_another_study_adds_up_and_is_refused_beyond_the_budget(tmp_path):
    other = make_study(9, (2, 4), protocol=RRJoint(epsilon=1.5))
    with StoredAccount.open(tmp_path, budget=2.0) as account:
        account.charge(STUDY, RECORD)
        with pytest.raises(InputError, match=r"total 3 exceeds the budget of 2"):
            account.charge(other, RECORD)
        assert account.ledger.spent == 1.5


def test_exact_counts_have_no_bound_and_survive_the_disk(tmp_path):
    with StoredAccount.open(tmp_path) as account:
        account.charge(EXACT, RECORD)
    with StoredAccount.open(tmp_path) as account:
        assert math.isinf(account.ledger.spent)
    with pytest.raises(InputError, match="no ε bounds what this would disclose"):
        Account(budget=100.0).check(EXACT)


def test_a_negative_budget_is_refused():
    with pytest.raises(InputError, match="must not be negative"):
        Account(-1.0)


def test_a_price_that_comes_later_is_checked_against_what_was_spent_meanwhile():
    """An answer was not needed, so it cost nothing; asked again, it must fit the budget of now."""
    blocks = BlockAggregation(p=0.5, floor=0.5, block=4, enough=0.5)
    first = make_study(4, (2, 2), name="first", protocol=blocks)
    priced = blocks.disclosures(setting(first.schema, 4))
    account = Account(1.5 * math.fsum(event.cost for event in priced))
    account.charge(first, (0, 1))
    account.settle(first, [])
    assert account.ledger.spent == 0
    account.charge(make_study(4, (2, 2), name="second", protocol=blocks), (0, 1))
    with pytest.raises(OverdrawnError, match="exceeds the budget"):
        account.settle(first, priced)
    assert account.participations[0].events == []
    account.budget *= 2
    account.settle(first, priced)
    account.once(first, (0, 1), "answer", lambda _: b"drawn")
    account.settle(first, [])
    assert account.participations[0].events == list(priced)


def test_a_study_cannot_settle_for_more_than_it_announced():
    account = Account()
    account.charge(STUDY, RECORD)
    with pytest.raises(InputError, match="a higher ε than it announced"):
        account.settle(STUDY, [*STUDY.disclosures, *STUDY.disclosures])


# ── What taking part means ─────────────────────────────────────────────────────────────────────


def test_consent_says_what_it_costs():
    account = Account(budget=4.0)
    account.charge(STUDY, RECORD)
    study = make_study(9, (2, 3), protocol=RRIndependent(epsilon=1.0), name="next")
    said = consent_to(study, account)
    assert said.epsilon == pytest.approx(1.0)
    assert said.spent_before == 1.5
    assert said.total == pytest.approx(2.5)
    assert "at most 73.1 % sure" in said.in_words
    assert list(said.questions) == ["a0", "a1"]
    assert said.refused is None
    json.dumps(msgspec.to_builtins(said), allow_nan=False)
    assert consent_to(make_study(9, protocol=ExactPairs()), Account()).epsilon is None


def test_consent_to_a_changed_study_is_not_free():
    account = Account()
    account.charge(STUDY, RECORD)
    changed = msgspec.structs.replace(STUDY, protocol=RRJoint(epsilon=9.0))
    assert consent_to(STUDY, account).adds == 0
    assert consent_to(STUDY, account).epsilon == 1.5  # what it discloses is said all the same
    assert consent_to(changed, account).adds == 9


def test_consent_says_that_a_second_run_will_be_declined():
    """It said "nothing new", and the run was then refused after joining."""
    account = Account()
    account.charge(EXACT, RECORD)
    account.disclose(EXACT, HERE)
    said = consent_to(EXACT, account, RECORD)
    assert "in only one of them" in said.compared[0].text
    assert said.compared[0].prevented_by
    assert "--again" in said.refused
    assert consent_to(EXACT, account, RECORD, again=True).refused is None


BLOCKS = BlockAggregation(p=0.5, floor=0.5, block=4, enough=0.5)


@pytest.mark.parametrize(
    "protocol",
    [RRJoint(epsilon=1.0), RRIndependent(epsilon=1.0), ExactPairs(noise_epsilon=1.0), BLOCKS,
     RRClusters(keep=0.5, dependence=RREachAttribute(keep=0.5)), RRPairs(epsilon=1.0)],
    ids=lambda protocol: protocol.name,
)  # fmt: skip
@pytest.mark.parametrize("name", ["first", "renamed"])
@pytest.mark.parametrize("answered_first", [True, False])
def test_the_total_on_the_screen_is_what_the_ledger_says_afterwards(protocol, name, answered_first):
    """Also in a second run, under another name, and where the first needed no answer."""
    account = Account()
    first = make_study(9, (2, 3), name="first", protocol=protocol)
    account.charge(first, RECORD)
    if answered_first:
        account.once(first, RECORD, "answer", lambda _: b"")
        account.disclose(first, HERE)
    else:
        account.settle(first, [])
    second = msgspec.structs.replace(first, name=name)
    said = consent_to(second, account, RECORD, again=True)
    assert said.refused is None
    account.charge(second, RECORD, again=True)
    account.settle(second, second.disclosures) if not answered_first else None
    account.disclose(second, ELSEWHERE, again=True)
    assert account.ledger.spent == pytest.approx(said.total)


def test_the_screen_shows_true_names_and_ones_own_answer():
    """Columns "hiv" and "salary" were shown as a favourite colour and a number of pens."""
    hiv = Attribute("hiv", "nominal", ("positive", "negative"), label="favourite colour",
                    labels={"positive": "blue", "negative": "red"})  # fmt: skip
    schema = msgspec.structs.replace(STUDY.schema, attributes=(hiv, STUDY.schema.attributes[1]))
    false = "What you would disclose:\n  nothing; ε = 0.01"
    study = msgspec.structs.replace(STUDY, schema=schema, description=false)
    shown = io.StringIO()
    show_consent(Console(file=shown, width=200), consent_to(study, Account(), (0, 1)))
    said = shown.getvalue()
    padded = msgspec.structs.replace(
        study, description="x" + " " * 98 + "For your whole record: ε = 0"
    )
    narrow = io.StringIO()
    show_consent(Console(file=narrow, width=100), consent_to(padded, Account()))
    assert narrow.getvalue().count("\nFor your whole record") == 1  # ours
    answers = "positive (shown as “blue”), negative (shown as “red”)"
    assert f"    hiv, “favourite colour”: {answers}" in said
    assert "      your answer: positive" in said
    assert "    What you would disclose:" in said
    assert said.count("\nWhat you would disclose") == 1
    assert "hiv, a1: randomized" in said


# ── Files ──────────────────────────────────────────────────────────────────────────────────────


NEGATIVE = b'{"study":"x","mechanism":"m","attributes":[],"epsilon":-1,"claimed":null,"crowd":null}'


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"{}", b'{"version": 7, "releases": [], "enrolments": {}}',
        b'{"version": 1, "releases": [{"epsilon": -1}], "enrolments": {}}',
        b'{"version":1,"releases":[%s],"enrolments":{}}' % NEGATIVE,
        b'{"version":1,"releases":[],"enrolments":{"x":{"digest":"","record":"","drawn":{"a":"%%"}}}}',
        b'{"version":2,"secret":"00","participations":[]}',
        b'{"version":2,"secret":"","participations":[]}',
    ],
)  # fmt: skip
def test_a_damaged_ledger_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / "account.json").write_bytes(content)
    with pytest.raises(StateError, match=r"account\.json"), StoredAccount.open(tmp_path):
        pass
    assert (tmp_path / "account.json").read_bytes() == content


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path):
    with (
        StoredAccount.open(tmp_path),
        pytest.raises(StateError, match="in use by another process"),
        StoredAccount.open(tmp_path),
    ):
        pass
    with StoredAccount.open(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StateError, match="cannot be used"),
        StoredAccount.open(tmp_path / "file" / "x"),
    ):
        pass


def test_a_crash_while_writing_leaves_the_old_ledger(tmp_path, monkeypatch):
    with StoredAccount.open(tmp_path) as account:
        account.charge(STUDY, RECORD)
        before = (tmp_path / "account.json").read_bytes()
        monkeypatch.setattr(os, "fsync", _full_disk)
        with pytest.raises(StateError, match="no part of the record was sent"):
            account.once(STUDY, RECORD, "answer", lambda _: b"x")
    assert (tmp_path / "account.json").read_bytes() == before
    assert not [*tmp_path.glob(".account-*")]  # which would hold the secret


def test_what_a_killed_process_left_behind_is_cleared_away(tmp_path):
    (tmp_path / ".account-abc").write_text("half a ledger, with its secret")
    with StoredAccount.open(tmp_path):
        assert not (tmp_path / ".account-abc").exists()


def _full_disk(_):
    raise OSError(28, "No space left on device")


def test_the_ledger_is_for_its_owner_alone(tmp_path):
    with StoredAccount.open(tmp_path / "me") as account:
        account.charge(STUDY, RECORD)
        assert account.participations[0].record not in repr(account)
    assert (tmp_path / "me").stat().st_mode & 0o077 == 0
    assert (tmp_path / "me" / "account.json").stat().st_mode & 0o077 == 0


def test_neither_record_nor_answer_stands_in_the_file(tmp_path):
    with StoredAccount.open(tmp_path) as account:
        drawn = answered(account, record=(1, 2))
    kept = (tmp_path / "account.json").read_text()
    assert base64.b64encode(drawn).decode() not in kept
    assert drawn.hex() not in kept
    assert "1,2" not in kept.replace(" ", "").replace("\n", "")


def test_forgetting_keeps_the_price_and_ends_the_answers(tmp_path):
    with StoredAccount.open(tmp_path, budget=2.0) as account:
        answered(account)
        old = json.loads((tmp_path / "account.json").read_text())["secret"]
        account.forget()
    assert old not in (tmp_path / "account.json").read_text()
    with StoredAccount.open(tmp_path, budget=2.0) as account:
        assert account.ledger.spent == 1.5
        with pytest.raises(Declined, match="was erased"):
            account.check(STUDY, RECORD, again=True)
        with pytest.raises(Declined, match="was erased"):
            account.check(STUDY, (0, 0), again=True)
        other = make_study(9, (2, 3), protocol=RRJoint(epsilon=0.5))
        answered(account, other)


# ── Ledgers of version 1 ───────────────────────────────────────────────────────────────────────


def version_1(study, record, drawn=None, told=()):
    """What an earlier program wrote."""
    salt = bytes(range(16))
    hashed = salt.hex() + hashlib.sha256(salt + repr(tuple(record)).encode()).hexdigest()
    kept = {label: base64.b64encode(raw).decode() for label, raw in (drawn or {}).items()}
    kept |= {label: base64.b64encode(bytes(16) + bytes(32)).decode() for label in told}
    return {
        "version": 1,
        "releases": [
            {
                "study": study.name, "mechanism": event.what, "attributes": list(event.attributes),
                "epsilon": None if math.isinf(event.cost) else event.cost,
                "claimed": None, "crowd": None, "delta": 0.0,
            }
            for event in study.disclosures
        ],
        "enrolments": {study.name: {"digest": study.digest.hex(), "record": hashed, "drawn": kept}},
    }  # fmt: skip


def test_a_ledger_of_version_1_keeps_its_answers_and_its_price(tmp_path):
    content = version_1(STUDY, RECORD, {"answer": b"markANSWER"})
    (tmp_path / "account.json").write_text(json.dumps(content))
    with StoredAccount.open(tmp_path, budget=1.5) as account:
        assert account.planned(STUDY) == []
        assert answered(account, given=b"mark") == b"ANSWER"
        assert account.ledger.spent == 1.5
        with pytest.raises(Declined, match="another answer"):
            answered(account, given=b"other")
        with pytest.raises(InputError, match="for another record"):
            account.check(STUDY, (0, 0))
        account.settle(STUDY, STUDY.disclosures)  # whatever saves it
    with StoredAccount.open(tmp_path, budget=1.5) as account:
        assert answered(account, given=b"mark") == b"ANSWER"
    assert json.loads((tmp_path / "account.json").read_text())["version"] == 2


def test_forgetting_what_version_1_drew_ends_those_answers_too(tmp_path):
    content = version_1(STUDY, RECORD, {"answer": b"ANSWER"})
    (tmp_path / "account.json").write_text(json.dumps(content))
    with StoredAccount.open(tmp_path) as account:
        account.forget()
    assert base64.b64encode(b"ANSWER").decode() not in (tmp_path / "account.json").read_text()
    with (
        StoredAccount.open(tmp_path) as account,
        pytest.raises(Declined, match="was erased"),
    ):
        account.charge(STUDY, RECORD)


@pytest.mark.parametrize("change", [{"title": "New"}, {"deadlines": Deadlines(lobby_s=9.0)}])
def test_what_version_1_counted_is_compared_whatever_the_file_says_now(tmp_path, change):
    content = version_1(EXACT, RECORD, told=["counted"])
    (tmp_path / "account.json").write_text(json.dumps(content))
    with (
        StoredAccount.open(tmp_path) as account,
        pytest.raises(Declined, match="in only one of them"),
    ):
        account.check(msgspec.structs.replace(EXACT, **change), RECORD)


@pytest.mark.parametrize(
    "label", ["counted", "noisy sum", "values told", "die opened", "values opened"]
)
def test_what_version_1_told_in_a_run_is_compared_as_well(tmp_path, label):
    (tmp_path / "account.json").write_text(json.dumps(version_1(EXACT, RECORD, told=[label])))
    with (
        StoredAccount.open(tmp_path) as account,
        pytest.raises(Declined, match="in only one of them"),
    ):
        account.check(EXACT, RECORD)


# ── Ledgers of many ────────────────────────────────────────────────────────────────────────────


def test_a_ledger_follows_its_person_not_her_row(tmp_path):
    """A line inserted on top of the file: somebody answered on another's budget."""
    with StoredAccount.open_many(tmp_path, ["ann", "bob"], budget=2.0) as accounts:
        accounts["ann"].charge(STUDY, RECORD)
    with StoredAccount.open_many(tmp_path, ["new", "ann", "bob"], budget=2.0) as accounts:
        assert [accounts[name].ledger.spent for name in ("new", "ann", "bob")] == [0, 1.5, 0]
    assert not any("ann" in file.name for file in tmp_path.iterdir())


def test_a_party_and_a_host_keep_one_ledger_for_a_person(tmp_path):
    with StoredAccount.open(tmp_path, person="ann") as account:
        account.charge(STUDY, RECORD)
    with StoredAccount.open_many(tmp_path, ["ann"]) as accounts:
        assert accounts["ann"].ledger.spent == 1.5


def test_a_person_is_known_however_her_name_is_encoded(tmp_path):
    with StoredAccount.open(tmp_path, person="José") as account:
        account.charge(STUDY, RECORD)
    with StoredAccount.open(tmp_path, person="Jose\u0301 ") as account:
        assert account.ledger.spent == 1.5


def test_one_folder_is_not_both_a_persons_and_many_peoples(tmp_path):
    with StoredAccount.open(tmp_path / "one") as account:
        account.charge(STUDY, RECORD)
    with (
        pytest.raises(StateError, match="of a single person"),
        StoredAccount.open_many(tmp_path / "one", ["ann"]),
    ):
        pass
    with StoredAccount.open_many(tmp_path / "many", ["ann"]) as accounts:
        accounts["ann"].charge(STUDY, RECORD)
    with (
        pytest.raises(StateError, match="say whose it is with --id"),
        StoredAccount.open(tmp_path / "many"),
    ):
        pass


def test_ledgers_by_row_are_adopted_by_those_who_stood_there(tmp_path):
    for number in (1, 3):
        content = version_1(make_study(9, (2, 3), protocol=RRJoint(epsilon=number)), RECORD)
        (tmp_path / f"record-{number}.json").write_text(json.dumps(content))
    with (
        pytest.raises(StateError, match="by the number of a row"),
        StoredAccount.open_many(tmp_path, ["ann"]),
    ):
        pass
    with pytest.raises(StateError, match="a row that the file of people does not have"):
        adopt_rows(tmp_path, ["ann", "bob"])
    with pytest.raises(StateError, match="would be of one person; nothing was changed"):
        adopt_rows(tmp_path, ["ann", "bob", "ann"])
    assert adopt_rows(tmp_path, ["ann", "bob", "eve"]) == 2
    with StoredAccount.open_many(tmp_path, ["ann", "bob", "eve"]) as accounts:
        assert [a.ledger.spent for a in accounts.values()] == [1, 0, 3]
