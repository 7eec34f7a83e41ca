"""A party's books: exact, safe against crashes, and used by one process at a time."""

import json
import math
import os

import msgspec
import pytest
from helpers import make_study, setting

from mpc_rr.agents.account import Account, StateError, StoredAccount
from mpc_rr.errors import InputError
from mpc_rr.privacy.ledger import OverdrawnError
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint

STUDY = make_study(9, (2, 3), protocol=RRJoint(epsilon=1.5))
RECORD = (1, 2)


def test_what_is_drawn_stays_drawn_and_is_paid_once(tmp_path):
    with StoredAccount.open(tmp_path / "me", budget=2.0) as account:
        account.charge(STUDY, RECORD)
        assert account.once(STUDY, "answer", lambda: b"first") == b"first"
    with StoredAccount.open(tmp_path / "me", budget=2.0) as again:
        again.charge(STUDY, RECORD)
        assert again.once(STUDY, "answer", lambda: b"second") == b"first"
        assert again.ledger.spent == 1.5
        assert again.planned(STUDY) == []


def test_another_study_adds_up_and_is_refused_beyond_the_budget(tmp_path):
    other = msgspec.structs.replace(STUDY, name="other")
    with StoredAccount.open(tmp_path, budget=2.0) as account:
        account.charge(STUDY, RECORD)
        with pytest.raises(InputError, match=r"total 3 exceeds the budget of 2"):
            account.charge(other, RECORD)
        assert account.ledger.spent == 1.5


def test_a_study_that_changed_since_is_refused():
    account = Account()
    account.charge(STUDY, RECORD)
    changed = msgspec.structs.replace(STUDY, protocol=RRJoint(epsilon=9.0))
    with pytest.raises(InputError, match="has changed since; nothing was sent"):
        account.check(changed)


def test_another_record_is_refused():
    account = Account()
    account.charge(STUDY, (1, 2))
    account.charge(STUDY, (1, 2))
    with pytest.raises(InputError, match="for another record"):
        account.charge(STUDY, (0, 2))


def test_an_explanation_of_a_changed_study_is_not_free():
    account = Account()
    account.charge(STUDY, RECORD)
    changed = msgspec.structs.replace(STUDY, protocol=RRJoint(epsilon=9.0))
    assert account.explain(STUDY)["epsilon"] == 0
    assert account.explain(changed)["epsilon"] == 9


def test_exact_counts_have_no_bound_and_survive_the_disk(tmp_path):
    exact = make_study(9, (2, 3), protocol=ExactPairs())
    with StoredAccount.open(tmp_path) as account:
        account.charge(exact, RECORD)
    with StoredAccount.open(tmp_path) as account:
        assert math.isinf(account.ledger.spent)
    with pytest.raises(InputError, match="no ε bounds what this would give away"):
        Account(budget=100.0).check(exact)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"{}", b'{"version": 7, "releases": [], "enrolments": {}}',
        b'{"version": 1, "releases": [{"epsilon": -1}], "enrolments": {}}',
        b'{"version":1,"releases":[],"enrolments":{"x":{"digest":"","record":"","drawn":{"a":"%%"}}}}',
    ],
)  # fmt: skip
def test_damaged_books_are_refused_and_left_alone(tmp_path, content):
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


def test_a_crash_while_writing_leaves_the_old_books(tmp_path, monkeypatch):
    with StoredAccount.open(tmp_path) as account:
        account.charge(STUDY, RECORD)
        before = (tmp_path / "account.json").read_bytes()
        monkeypatch.setattr(os, "fsync", _full_disk)
        with pytest.raises(StateError, match="nothing was sent"):
            account.once(STUDY, "answer", lambda: b"x")
    assert (tmp_path / "account.json").read_bytes() == before


def _full_disk(_):
    raise OSError(28, "No space left on device")


def test_the_books_are_for_the_party_alone(tmp_path):
    with StoredAccount.open(tmp_path / "me") as account:
        account.charge(STUDY, RECORD)
    assert (tmp_path / "me").stat().st_mode & 0o077 == 0
    assert (tmp_path / "me" / "account.json").stat().st_mode & 0o077 == 0


def test_an_explanation_says_what_it_costs():
    account = Account(budget=4.0)
    account.charge(STUDY, RECORD)
    study = make_study(9, (2, 3), protocol=RRIndependent(epsilon=1.0), name="next")
    said = account.explain(study)
    assert said["epsilon"] == pytest.approx(1.0)
    assert said["spent_before"] == 1.5
    assert said["total"] == pytest.approx(2.5)
    assert "at most 73.1 % sure" in said["in_words"]
    assert list(said["questions"]) == ["a0", "a1"]
    json.dumps(said, allow_nan=False)
    assert Account().explain(make_study(9, protocol=ExactPairs()))["epsilon"] is None


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
    assert [release.study for release in account.ledger.releases] == ["second"]
    account.budget *= 2
    account.settle(first, priced)
    account.once(first, "answer", lambda: b"drawn")
    account.settle(first, [])
    assert {release.study for release in account.ledger.releases} == {"first", "second"}


def test_what_a_study_costs_after_all_is_not_more_than_it_said():
    """And what other studies have cost stays in the books."""
    blocks = BlockAggregation(p=0.5, floor=0.5, block=4, enough=0.5)
    first, other = (make_study(4, (2, 2), name=name, protocol=blocks) for name in ("a", "b"))
    priced = blocks.disclosures(setting(first.schema, 4))
    account = Account()
    account.charge(other, (0, 1))
    account.charge(first, (0, 1))
    with pytest.raises(InputError, match="would cost more than it said; nothing was sent"):
        account.settle(first, [*priced, *priced])
    account.settle(first, priced)
    assert sorted(release.study for release in account.ledger.releases) == ["a", "b"]
