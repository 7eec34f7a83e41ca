"""Whose pass is whose, whatever is shown, and in whatever order."""

import asyncio

import msgspec
import pytest
from anonymizing import IN_GROUPS, NAMES, PEOPLE
from anonymizing import make_study as study_in_groups
from helpers import make_study, simulate
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.pass_desk import PassDesk
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import Pass, SigningKey
from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import Refused
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, LOBBY_SESSION, WIRE_VERSION, Header
from mpc_rr.network.lifecycle import ShowPass
from mpc_rr.network.sealed import read, write
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.closing import close
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running.run import Run

REGISTRAR = SigningKey.draw(SeededRandomness(1))
KEYS = {name: SigningKey.draw(SeededRandomness(name.encode())) for name in NAMES}
SECOND = SigningKey.draw(SeededRandomness(b"second"))
"""A second person's: a friend's, or the lost one that the registrar has replaced."""


def shown(study, key, run, name, who):
    """The message with which somebody shows the pass of a person."""
    admission = REGISTRAR.admit(study.digest, key.public)
    own = Pass(key.public, admission, key.prove(run, who.public))
    header = Header(WIRE_VERSION, study.name, run, LOBBY_SESSION, ShowPass.step, name, COORDINATOR)
    return write(header, ShowPass(who.public, own), who)


# ── The desk alone ─────────────────────────────────────────────────────────────────────────────

STUDY = msgspec.structs.replace(make_study(4), registrar=REGISTRAR.public.hex())
RUN = bytes(32)
GUESTS = [(name, Identity(SeededRandomness(name.encode()))) for name in ("ann", "ben", "cid")]
PERSONS = [*KEYS.values()][:3]
SHOWN = {
    (guest, person): read(
        shown(STUDY, PERSONS[person], RUN, *GUESTS[guest]),
        study=STUDY.name, runs=(RUN,), targets=(COORDINATOR,),
    )
    for guest in range(3) for person in range(3)
}  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(["show", "join", "leave"]), st.integers(0, 2), st.integers(0, 2)),
        max_size=30,
    )
)
def test_who_sits_there_keeps_the_pass_with_which_she_came(acts):
    desk, seated = PassDesk(STUDY), {}
    for act, number, person in acts:
        guest = (GUESTS[number][0], GUESTS[number][1].public)
        if act == "show":
            desk.show(SHOWN[number, person], RUN)
        elif act == "leave" and number in seated:
            desk.leave(*guest)
            del seated[number]
        elif act == "join" and not desk.lacks(*guest) and desk.joined_as(*guest) is None:
            desk.join(*guest)
            seated[number] = desk.shown_by(*guest)
        for other, came_with in seated.items():
            assert desk.shown_by(GUESTS[other][0], GUESTS[other][1].public) == came_with
        assert len({came_with.person for came_with in seated.values()}) == len(seated)
        most = 2 * len(PERSONS)
        assert len(desk._persons) <= most, "of anyone who shows much, little is kept"


# ── Two passes in one hand ─────────────────────────────────────────────────────────────────────


class Honest(Party):
    def __init__(self, study, name, *args):
        key = KEYS[name]
        terms = Terms(admission=(key, REGISTRAR.admit(study.digest, key.public)))
        super().__init__(study, name, *args, terms=terms)


class Late(Honest):
    """So that the lobby is open when the other shows passes."""

    async def run(self):
        await asyncio.sleep(1)
        return await super().run()


class TwoPasses(Honest):
    """Has joined with her pass; shows a second under her seat, and then the second elsewhere."""

    async def _first_roster(self):
        for name, who in ((self.name, self._identity), ("nobody", Identity(SeededRandomness(99)))):
            raw = shown(self.study, SECOND, self.mailbox.run, name, who)
            await self._transport.send(COORDINATOR, raw)
        return await super()._first_roster()


def registered(kind):
    """A study with a registrar, and its people's records."""
    if kind == "groups":
        return study_in_groups(IN_GROUPS, registrar=REGISTRAR.public.hex()), PEOPLE
    protocol = ExactPairs(sum="masked_sum") if kind == "masked" else RRIndependent(keep=0.5)
    study = make_study(8, (2, 3), protocol=protocol)
    return msgspec.structs.replace(study, registrar=REGISTRAR.public.hex()), [(0, 1)] * 8


@pytest.mark.parametrize("kind", ["groups", "masked", "reports"])
def test_a_second_pass_makes_nobody_blame_the_coordinator(kind, tmp_path):
    """Once her first was forgotten with it: it was the coordinator that "had shown no pass"."""
    study, records = registered(kind)
    bosses = []

    class Kept(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            bosses.append(self)

    outcome, ends = simulate(
        study, records, coordinator=Kept, party=Honest,
        parties={"party-2": TwoPasses, "party-8": Late},
    )  # fmt: skip
    assert outcome.result is not None, outcome.cause
    assert outcome.members == tuple(NAMES)
    write_results(close(Run(study, outcome, ends, 0, "memory"), bosses[0].sign), tmp_path / "run")
    assert "contradicted" not in {claim.verdict for claim in verify(tmp_path / "run")}


def test_what_is_shown_when_the_roster_is_closed_changes_nothing():
    study, records = registered("groups")
    kept = []

    class Kept(Coordinator):
        async def _show_roster(self, session, roster):
            late = Identity(SeededRandomness(99))
            self.mailbox.accept(shown(study, SECOND, self.mailbox.run, "late", late))
            kept.append(self.desk.lacks("late", late.public))
            await super()._show_roster(session, roster)

    outcome, _ = simulate(study, records, coordinator=Kept, party=Honest)
    assert outcome.result is not None, outcome.cause
    assert kept == [True]
    assert outcome.rejected == {"other session": 1}


class LostHers(Honest):
    """Joins with the pass that is lost, ends, and comes again with the one that replaced it."""

    async def run(self):
        joined = asyncio.create_task(super().run())
        while not self._admitted:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        joined.cancel()
        await asyncio.wait([joined])
        terms = Terms(admission=(SECOND, REGISTRAR.admit(self.study.digest, SECOND.public)))
        rng = SeededRandomness(98)
        return await Party(
            self.study, self.name, self._record, self._transport, rng, terms=terms
        ).run()


def test_whoever_lost_her_pass_comes_again_with_the_new_one():
    study, records = registered("groups")
    outcome, ends = simulate(
        study, records, party=Honest, parties={"party-2": LostHers, "party-8": Late}
    )
    assert outcome.result is not None, outcome.cause
    assert outcome.members == tuple(NAMES)
    assert not any(isinstance(end, Refused) for end in ends.values())
    opened = [
        read(raw, study=study.name, runs=None, targets=(COORDINATOR, EVERYONE))
        for raw in outcome.transcript
    ]
    passes = [o.message(ShowPass) for o in opened if o.envelope.header.step == ShowPass.step]
    people = {message.shown.person for message in passes}
    assert SECOND.public in people
    assert KEYS["party-2"].public not in people
