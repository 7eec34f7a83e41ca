"""Accusations by the coordinator: parties say whose word it is, and what they have seen."""

import pytest
from anonymizing import IN_GROUPS, MASKED, NAMES, run
from anonymizing import make_study as make_anonymized_study
from helpers import make_study, random_records, simulate
from test_collaborative_k_anonymity import telling, with_mailbox

from mpc_rr.agents.accusations import NOT_ME, weighed
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import Aborted, Misconduct, Refused
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.lifecycle import Exclusion, Roster, Verdict
from mpc_rr.network.mailbox import Mailbox, Proof
from mpc_rr.protocols.board.board import Board
from mpc_rr.protocols.board.commitment import Commitments, Openings, commit_coordinator
from mpc_rr.results.folder import write_host_results

ACCUSED = "party-3"
CHARGE = f"{ACCUSED} opened something else than it had committed to: its 'die' is another"


def others(ends):
    return [end for name, end in ends.items() if name != ACCUSED]


@pytest.mark.parametrize("protocol", [MASKED, IN_GROUPS])
def test_an_accusation_without_proof_is_the_coordinators_word(monkeypatch, protocol):
    """It ends the study before anybody has shown anything."""

    async def lying(*_):
        raise Misconduct(CHARGE, [ACCUSED])

    monkeypatch.setattr(type(protocol), "coordinator", lying)
    outcome, ends = run(protocol)
    assert outcome.cause.endswith(CHARGE)
    assert len(others(ends)) == len(NAMES) - 1
    for end in others(ends):
        assert isinstance(end, Aborted)
        assert str(end) == f"the coordinator says: {outcome.cause}"
    assert str(ends[ACCUSED]) == f"the coordinator says: {outcome.cause}; {NOT_ME}"


@pytest.mark.parametrize("protocol", [MASKED, IN_GROUPS])
def test_an_accusation_that_the_board_disproves_is_the_coordinators_own_fault(
    monkeypatch, protocol, tmp_path
):
    """All have opened what they had committed to, and everybody has seen it."""

    async def lying(self, session, schema):
        board = Board.opened(session)
        names = () if protocol is MASKED else self.quasi_identifiers
        await commit_coordinator(session.sub("commitment"), board, names)
        raise Misconduct(CHARGE, [ACCUSED])

    monkeypatch.setattr(type(protocol), "coordinator", lying)
    _, ends = run(protocol)
    for end in ends.values():
        assert isinstance(end, Misconduct), end
        assert end.culprits == (COORDINATOR,)
        assert str(end) == (
            f"the coordinator broke the protocol: it says: {CHARGE}; the board shows otherwise: "
            f"{ACCUSED} opened what it had committed to"
        )
    write_host_results(make_anonymized_study(protocol), None, ends, tmp_path / "out")
    for name in ends:  # the board and the verdict: who has them can show it
        kept = (tmp_path / "out" / "receipts" / f"{name}.jsonl").read_text()
        assert kept.count('"step": "block"') == 2
        assert kept.count('"step": "verdict"') == 1


@pytest.mark.parametrize("protocol", [MASKED, IN_GROUPS])
def test_an_accusation_that_the_board_proves_is_confirmed(protocol):
    """Somebody opens another die; without her they are too few."""
    another = telling(Openings, lambda _, m: Openings(m.head, (*m.values[:-1], bytes(16)), m.salts))
    outcome, ends = run(protocol, parties={ACCUSED: with_mailbox(Party, another)})
    assert outcome.result is None
    proved = f"the board confirms it: {ACCUSED} failed at openings: 'die' is not what it"
    for end in others(ends):
        assert isinstance(end, Aborted)
        assert str(end).startswith("the coordinator says: only 7 of 8 parties are left")
        assert proved in str(end)
    assert NOT_ME not in str(ends[ACCUSED])


def test_who_is_silent_is_so_by_the_coordinators_word():
    class Silent(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Commitments):
                return b""
            return await super().tell(session, target, message)

    outcome, ends = run(MASKED, parties={ACCUSED: with_mailbox(Party, Silent)})
    assert outcome.culprits == (ACCUSED,)
    for end in others(ends):
        assert str(end) == f"the coordinator says: {outcome.cause}"
    assert str(ends[ACCUSED]) == f"the coordinator says: {outcome.cause}; {NOT_ME}"


def test_whom_a_roster_leaves_out_hears_whose_word_that_is():
    reason = "party-3 sent\nsomething \u202eelse"

    class Excluding(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Roster):
                kept = tuple(m for m in message.members if m.name != ACCUSED)
                message = Roster(message.attempt, kept, (Exclusion(ACCUSED, reason),))
            return await super().tell(session, target, message)

    _, ends = simulate(
        make_study(5, minimum=4, round_s=5),
        random_records(5, (2, 3)),
        coordinator=with_mailbox(Coordinator, Excluding),
    )
    assert isinstance(ends[ACCUSED], Refused)
    assert str(ends[ACCUSED]) == (
        "the coordinator left this party out, and says: party-3 sent something \\u202eelse; "
        f"{NOT_ME}"
    )


# ── What weighs ────────────────────────────────────────────────────────────────────────────────

KEPT = Proof(True, "opened what it had committed to", "committed to")
BROKE = Proof(False, "failed at openings", "committed to")


def verdict(cause, *culprits):
    return Verdict(False, cause, culprits, b"", {}, ())


def test_nobody_can_make_an_honest_coordinator_look_a_liar():
    """A respondent who kept her word leaves, and says something that sounds like an accusation."""
    honest = verdict("a left: b opened another than it had committed to", "a")
    assert isinstance(weighed(honest, "c", {"a": KEPT}.get), Aborted)


def test_what_is_proved_of_one_says_nothing_of_another_charge():
    silent = weighed(
        verdict("a sent nothing for step 'onions' within 5 s", "a"), "b", {"a": KEPT}.get
    )
    assert str(silent) == "the coordinator says: a sent nothing for step 'onions' within 5 s"


def test_what_the_board_shows_is_said_however_the_charge_is_worded():
    """Whether it is the coordinator's own charge cannot be told; that it is untrue can."""
    for charge in ("Misconduct: a opened other than it committed to", "a broke its commitment"):
        said = weighed(verdict(charge, "a"), "b", {"a": KEPT}.get)
        assert str(said).endswith("; the board shows: a opened what it had committed to")


def test_one_who_is_cleared_is_enough_to_find_the_lie():
    both = verdict("a, b did not open what they had committed to", "a", "b")
    found = weighed(both, "c", {"a": BROKE, "b": KEPT}.get)
    assert isinstance(found, Misconduct)
    assert "the board shows otherwise: b opened" in str(found)


def test_who_broke_her_word_does_not_say_that_she_did_not():
    found = weighed(verdict("a left", "a"), "a", {"a": BROKE}.get)
    assert str(found) == "the coordinator says: a left; the board confirms it: a failed at openings"
