"""Who asks for everything has a folder like the coordinator's, or is told why not."""

import asyncio
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from helpers import Tapped, make_study, random_records, simulate, with_mailbox
from randomized import ALL, RECORDS, SIZES, N

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.handing_out import (
    HANDING_OUT_S,
    MOST_BYTES,
    MOST_MESSAGES,
    NOT_IN_TIME,
    QUIET_S,
    Everything,
    Said,
    most_bytes,
    most_closing_bytes,
    most_messages,
)
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.cli import parties
from mpc_rr.errors import ResultsError
from mpc_rr.network.envelope import COORDINATOR, Envelope, SignedEnvelope, decode, encode
from mpc_rr.network.lifecycle import TranscriptPiece, TranscriptWanted
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork, MemoryTransport
from mpc_rr.network.sealed import Reason
from mpc_rr.network.transport import Arrival
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import Absence
from mpc_rr.publication.reports import AnsweredOne
from mpc_rr.results.asking import ask
from mpc_rr.results.closing import close, for_parties
from mpc_rr.results.folder import party_result, read_folder, receipt_file, write_results
from mpc_rr.results.handed_out import whole_result, without_it
from mpc_rr.results.run import StudyResult
from mpc_rr.results.verification import (
    CLOSED,
    RECEIPTS_HERE,
    STATED_TO_PARTIES,
    claims_of,
    publish_anew,
    verify,
)

ASKER, OTHER = "party-01", "party-02"
PROTOCOLS = {
    **ALL,
    "block_aggregation": BlockAggregation(p=0.5, floor=0.02, block=8),
    "exact_pairs": ExactPairs(),
}
FEW = random_records(10, (2, 2), seed=3)


def wishing(wish, party=Party):
    """A party that asks for everything."""

    class Wishing(party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, terms=Terms(everything=wish), **kwargs)

    return Wishing


class Closing(Coordinator):
    """One that makes a closing statement for parties, as in a study in earnest."""

    def __init__(self, study, *args):
        super().__init__(study, *args)
        self.closing = lambda ended, sign: for_parties(
            StudyResult(study, ended, {}, None, "memory"), sign
        )
        closers.append(self)


closers = []


def few(**more):
    protocol = more.pop("protocol", RRIndependent(keep=0.6))
    return make_study(len(FEW), (2, 2), protocol=protocol, **more)


def play(wish, *, study=None, coordinator=Closing, **more):
    parties = {ASKER: wishing(wish)} | more.pop("parties", {})
    study = few() if study is None else study
    outcome, ends = simulate(study, FEW, coordinator=coordinator, parties=parties, **more)
    return study, outcome, {name: end for name, end in ends.items() if isinstance(end, Ending)}


def said_by(change):
    """A coordinator that hands out something else."""

    class Lying(Closing):
        def __init__(self, *args):
            super().__init__(*args)
            honest = self._handing_out.open
            self._handing_out.open = lambda said: honest(lambda: change(said()))

    return Lying


def pieces_changed_by(change):
    """A coordinator whose pieces are others."""

    class Changing(Mailbox):
        def write(self, session, step, target, message):
            if isinstance(message, TranscriptPiece):
                message = change(message)
            return super().write(session, step, target, message)

    return with_mailbox(Closing, Changing)


# ── What it is good for ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", PROTOCOLS)
def test_in_every_protocol_a_party_gets_what_the_coordinator_has(name, tmp_path):
    """The same publication, sheets and answers to questions, and nothing in it is contradicted."""
    wish, study = Everything(), make_study(N, SIZES, protocol=PROTOCOLS[name])
    outcome, ends = simulate(study, RECORDS, coordinator=Closing, parties={ASKER: wishing(wish)})
    done = StudyResult(study, outcome, {}, None, "memory")
    write_results(close(done, closers[-1].sign), tmp_path / "theirs")
    whole = whole_result(study, wish, ends)
    assert whole.remark is None
    whole.write(receipt_file(ends[ASKER]), tmp_path / "mine")
    mine, theirs = read_folder(tmp_path / "mine"), read_folder(tmp_path / "theirs")
    assert mine.file == theirs.file
    for sheet in theirs.file.publication.sheets:
        assert mine.text(sheet.name) == theirs.text(sheet.name)
    assert mine.text("transcript.jsonl") == theirs.text("transcript.jsonl")
    question = "a0 = v1 and a1 = v2"
    assert ask(tmp_path / "mine", question) == ask(tmp_path / "theirs", question)
    claims = {claim.claim: claim for claim in verify(tmp_path / "mine")}
    assert claims[STATED_TO_PARTIES].verdict == "confirmed"
    assert claims[RECEIPTS_HERE].verdict == "confirmed"
    assert claims[RECEIPTS_HERE].why.startswith("one receipt, ")
    verify(tmp_path / "mine", tmp_path / "mine" / "receipt.jsonl")


def test_without_a_closing_statement_the_folder_holds_all_the_same(tmp_path):
    """What stands in no message is then said not to be confirmable."""
    wish = Everything()
    study, _, ends = play(wish, coordinator=Coordinator)
    whole_result(study, wish, ends).write({}, tmp_path / "mine")
    claims = {claim.claim: claim for claim in claims_of(tmp_path / "mine")}
    closed = claims[CLOSED]
    assert closed.verdict == "not confirmable"
    assert "by a party that was given none" in closed.why
    anew = publish_anew(tmp_path / "mine", tmp_path / "again")
    assert anew.tables == read_folder(tmp_path / "mine").file.publication.tables


def test_costs_that_somebody_put_there_are_named(tmp_path):
    wish = Everything()
    study, _, ends = play(wish)
    whole_result(study, wish, ends).write({"cost.json": "{}\n"}, tmp_path / "mine")
    (costs,) = [c for c in claims_of(tmp_path / "mine") if "cost.json" in c.claim]
    assert (costs.verdict, costs.why.split(":")[0]) == (
        "not confirmable", "nothing vouches for it",
    )  # fmt: skip


def test_the_reasons_of_the_absent_are_those_that_the_coordinator_signed():
    """From the transcript alone, who sent junk cannot be told from who was silent."""

    class Junk(Mailbox):
        async def tell(self, session, target, message):
            if message.step == "answer":
                message = msgspec.structs.replace(message, codes=b"\7\0\7\0")
            return await super().tell(session, target, message)

    for coordinator, how in ((Closing, "faulty"), (Coordinator, "silent")):
        wish = Everything()
        study, _, ends = play(
            wish, study=few(minimum=3), coordinator=coordinator,
            parties={OTHER: with_mailbox(Party, Junk)},
        )  # fmt: skip
        whole = whole_result(study, wish, ends)
        (absent,) = whole.file.publication.participation.absent
        assert (absent.party, absent.how) == (OTHER, how)
        assert whole.not_in_it == (OTHER,)
        assert f"Something that {OTHER} sent is not in the transcript" in whole.remark


# ── How it is asked for ────────────────────────────────────────────────────────────────────────


def asked_in(network):
    return [e.header.sender for e in network.envelopes if e.header.step == TranscriptWanted.step]


def test_a_host_asks_once_for_all_its_parties():
    wish, network = Everything(), Tapped()
    play(wish, parties={OTHER: wishing(wish)}, network=network)
    assert wish.said is not None
    assert len(set(asked_in(network))) == 1


def test_who_does_not_ask_is_sent_nothing_and_costs_nothing():
    class Idle(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            self.closing = None  # it would fail

    network = Tapped()
    _, ends = simulate(few(), FEW, coordinator=Idle, network=network)
    assert all(isinstance(end, AnsweredOne) for end in ends.values())
    steps = {envelope.header.step for envelope in network.envelopes}
    assert not steps & {TranscriptWanted.step, TranscriptPiece.step}


def test_all_may_ask_at_once_and_small_pieces_are_put_together(monkeypatch):
    monkeypatch.setattr("mpc_rr.agents.handing_out.PIECE_BYTES", 700)
    wishes = {f"party-{k:02}": Everything() for k in range(1, 11)}
    parties = {name: wishing(wish) for name, wish in wishes.items()}
    outcome, ends = simulate(few(), FEW, coordinator=Closing, parties=parties)
    for wish in wishes.values():
        assert wish.said.transcript == outcome.transcript
        whole_result(few(), wish, ends)


class Lossy(MemoryNetwork):
    """Loses every third message that has to do with handing out."""

    met = 0

    def carry(self, sender, target, raw):
        if b"transcript_" in raw:
            self.met += 1
            if self.met % 3 == 0:
                return
        super().carry(sender, target, raw)


def test_what_is_lost_is_asked_for_again(monkeypatch):
    monkeypatch.setattr("mpc_rr.agents.handing_out.PIECE_BYTES", 700)
    wish, network = Everything(), Lossy()
    _, outcome, _ = play(wish, network=network)
    assert network.met > 10
    assert wish.said.transcript == outcome.transcript


def lasting(**more):
    """How long after the verdict a coordinator lasts."""
    told = []

    class Timed(Closing):
        async def run(self):
            outcome = await super().run()
            told[1:] = [self.mailbox.now()]
            return outcome

        def _pronounce(self, verdict):
            told.append(self.mailbox.now())
            return super()._pronounce(verdict)

    wish = Everything()
    play(wish, coordinator=Timed, **more)
    return told[1] - told[0], wish


def test_a_coordinator_does_not_wait_for_who_asked_and_is_gone():
    class Gone(Everything):
        async def take(self, mailbox):
            return

    lasted, _ = lasting(parties={ASKER: wishing(Gone())})
    assert QUIET_S <= lasted <= QUIET_S + 1
    assert lasting()[0] < 1


def asking(at, times, pause_s):
    """Who asks for pieces and says never that all of them have come."""

    class Greedy(Everything):
        def _on_piece(self, opened):
            """She takes none of them."""

        async def take(self, mailbox):
            for number in range(times):
                await asyncio.sleep(pause_s)
                await mailbox.tell("verdict", COORDINATOR, TranscriptWanted(at(number)))

    return Greedy


def test_nobody_keeps_a_coordinator_for_ever_and_a_second_asker_has_a_turn_all_the_same(
    monkeypatch,
):
    monkeypatch.setattr("mpc_rr.agents.handing_out.PIECE_BYTES", 64)
    greedy = asking(lambda number: number, 70, 1.0)()
    lasted, wish = lasting(parties={OTHER: wishing(greedy)})
    assert HANDING_OUT_S <= lasted <= HANDING_OUT_S + 1
    assert wish.said is not None


@pytest.mark.parametrize("at", [lambda _: 0, lambda number: number], ids=["one", "many"])
def test_who_asks_without_end_is_sent_two_transcripts_at_most_and_not_waited_for(at):
    """One member put 1.2 GB on the broker's disk, by asking again and again."""
    network = Tapped()
    lasted, wish = lasting(parties={OTHER: wishing(asking(at, 700, 0.1)())}, network=network)
    pieces = [e for e in network.envelopes if e.header.step == TranscriptPiece.step]
    greedy = [e for e in pieces if e.header.target == OTHER]
    assert wish.said is not None
    assert 2 <= len(greedy) <= 3
    assert lasted < HANDING_OUT_S / 2


def test_who_waits_for_a_turn_is_waited_for_and_told_if_it_does_not_come(monkeypatch):
    """She asks again meanwhile, is not taken for one who has left, and hears how it ends."""
    monkeypatch.setattr("mpc_rr.agents.handing_out.UNDER_WAY", 0)
    monkeypatch.setattr("mpc_rr.agents.handing_out.SILENT_S", 100)
    lasted, wish = lasting()
    assert HANDING_OUT_S <= lasted <= HANDING_OUT_S + 1
    assert wish.trouble == f"the coordinator refuses: {NOT_IN_TIME}"


def test_before_the_verdict_nothing_is_handed_out():
    class Early(Party):
        def _check_still_on(self):
            if self.begun and self.mailbox.run:
                wanted = TranscriptWanted(0)
                self.mailbox.spawn(self.mailbox.tell, "verdict", COORDINATOR, wanted)
            super()._check_still_on()

    network = Tapped()
    outcome, _ = simulate(few(), FEW, parties={ASKER: Early}, network=network)
    assert asked_in(network)
    assert outcome.rejected["other session"] >= 1
    assert not [e for e in network.envelopes if e.header.step == TranscriptPiece.step]


def test_ctrl_c_while_it_comes_takes_no_result_away():
    class Stopped(Everything):
        async def take(self, mailbox):
            asyncio.get_running_loop().call_later(1, asyncio.current_task().cancel)
            await super().take(mailbox)

    wish = Stopped()
    silent = pieces_changed_by(lambda piece: msgspec.structs.replace(piece, at=piece.at + 1))
    _, _, ends = play(wish, coordinator=silent)
    assert isinstance(ends[ASKER], AnsweredOne)
    assert wish.trouble == "it was interrupted before all of it had come"


# ── Coordinators that are not honest, or too old ───────────────────────────────────────────────


def without(said, step):
    """The same without one message of this step."""
    (one, *_) = [raw for raw in said.transcript if step in raw]
    return Said(said.closing, tuple(raw for raw in said.transcript if raw != one))


def turned(said):
    """Two answers in the other order: each is signed, but nobody sent them so."""
    lines = list(said.transcript)
    lines[-3], lines[-4] = lines[-4], lines[-3]
    return Said(said.closing, tuple(lines))


@pytest.mark.parametrize(
    ("coordinator", "says"),
    [
        (said_by(lambda s: without(s, b"\xa6answer")), "digest|announce|follow"),
        (said_by(lambda s: without(s, b"\xadanswers_taken")), "'answers_taken' .* is not in it"),
        (said_by(lambda s: without(s, b"\xa4join")), "has not joined|roster"),
        (said_by(turned), "here belongs|signed other messages"),
        (said_by(lambda s: Said(s.closing, ())), "message that party-01 heard is not in it"),
        (said_by(lambda s: Said(b"junk", s.transcript)), "no statement on this run"),
        (said_by(lambda s: Said(s.transcript[0], s.transcript)), "no closing statement"),
        (said_by(lambda s: Said(b"", (*s.transcript, b"junk"))), "something else than messages"),
    ],
)  # fmt: skip
def test_what_is_not_what_was_announced_is_not_used(coordinator, says):
    """Nothing of it comes into the party's folder, which says so; the party has its own result."""
    wish = Everything()
    study, _, ends = play(wish, coordinator=coordinator)
    with pytest.raises(ResultsError, match=says) as trouble:
        whole_result(study, wish, ends)
    assert str(trouble.value).startswith(
        "what the coordinator handed out is not what it had announced"
    )
    own = without_it(party_result(study, ends[ASKER]), trouble.value)
    assert own.publication.listings[0].name == "reported"
    assert str(trouble.value) in own.publication.notes[-1].text


def stating(**changes):
    """A coordinator that makes another closing statement for parties."""

    class Stating(Closing):
        def __init__(self, *args):
            super().__init__(*args)
            honest = self.closing

            def closing(ended, sign):
                def changed(step, statement):
                    return sign(step, msgspec.structs.replace(statement, **changes))

                return honest(ended, changed)

            self.closing = closing

    return Stating


def absent(number, reason="a reason"):
    return tuple(Absence(party=f"p{k}", how="silent", reason=reason) for k in range(number))


@pytest.mark.parametrize(
    ("coordinator", "says"),
    [
        (stating(rejected_messages={"invented": 1}), "not what it had announced"),
        (stating(rejected_messages={"x" * 200_000: 1}), "statement has 200,"),
        (stating(transport="x" * 200_000), "statement has 200,"),
        (stating(absent=absent(len(FEW) + 1)), "names 11 absent parties, with reasons of up to 8 "),
        (stating(absent=absent(1, "y" * 1001)), "names 1 absent .* reasons of up to 1,001 char"),
        (said_by(lambda s: Said(s.closing, (*s.transcript, s.transcript[-1]))), "speaks twice in"),
        (said_by(lambda s: Said(b"", s.transcript * 500)), "messages; of this study there"),
        (said_by(lambda s: Said(b"", (*s.transcript, bytes(80_000)))), "has 80,000 bytes, "),
    ],
)  # fmt: skip
def test_no_more_is_taken_than_an_honest_coordinator_has_to_say(coordinator, says, monkeypatch):
    """One that lied had a party read 150 MB of invented words, in 3.4 GB, and believe them."""
    wish = Everything()
    study, _, ends = play(wish, coordinator=coordinator)
    monkeypatch.setattr("mpc_rr.results.handed_out.replay", None)
    with pytest.raises(ResultsError, match=says):
        whole_result(study, wish, ends)


def test_what_is_taken_of_a_small_study_is_little():
    """A bound for all studies let a coordinator of three parties hand out a quarter of a GB."""
    small, large = few(), make_study(100_000, (2, 2), protocol=RRIndependent(keep=0.6))
    assert most_messages(small) == 11 * 256
    assert most_closing_bytes(small) == 64 * 1024 + 10 * 4096
    largest = small.largest_message_bytes
    assert most_bytes(small) < most_messages(small) * (largest + 1024) + 150_000
    assert (most_bytes(large), most_messages(large)) == (MOST_BYTES, MOST_MESSAGES)


def test_the_words_for_what_is_rejected_are_those_of_the_wires_page():
    page = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
    listed = page.partition("## What is rejected")[2].partition("\n## ")[0]
    words = set(re.findall("`([^`]+)`", listed)) - {"rejected_messages", "result.json"}
    assert words == set(get_args(Reason))


def test_the_transcript_of_another_run_is_none_of_this_one():
    other, _ = simulate(few(), FEW, seed=9)
    wish = Everything()
    study, _, ends = play(wish, coordinator=said_by(lambda s: Said(b"", other.transcript)))
    with pytest.raises(ResultsError, match="other run"):
        whole_result(study, wish, ends)


def drip(piece):
    return msgspec.structs.replace(piece, part=piece.part[:1])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"refusal": "not to\nyou"}, "the coordinator refuses: not to you"),
        ({"total": most_bytes(few()) + 1}, "of this study no more than"),
        ({"part": b""}, "pieces that do not fit together"),
        ({"total": 3}, "more than it said there is"),
        ({"part": b"\xc1", "total": 1}, "what the coordinator handed out is no transcript"),
        ({"at": 1}, "the coordinator did not answer within 30 s"),
    ],
)
def test_a_coordinator_that_hands_out_no_transcript_is_told_as_that(change, says):
    wish = Everything()
    changed = pieces_changed_by(lambda piece: msgspec.structs.replace(piece, **change))
    study, _, ends = play(wish, coordinator=changed)
    assert isinstance(ends[ASKER], AnsweredOne)
    assert says in wish.trouble
    with pytest.raises(ResultsError, match="coordinator"):
        whole_result(study, wish, ends)


def test_a_coordinator_that_never_comes_to_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr("mpc_rr.agents.handing_out.MOST_TIMES", 10**6)

    """It says a byte at a time; each is a round trip, and the party has a deadline."""

    class Slow(MemoryNetwork):
        def carry(self, sender, target, raw):
            if b"transcript_" in raw or b"goodbye" in raw:
                loop = asyncio.get_running_loop()
                loop.call_later(0.5, super().carry, sender, target, raw)
            else:
                super().carry(sender, target, raw)

    wish = Everything()
    _, _, ends = play(wish, coordinator=pieces_changed_by(drip), network=Slow())
    assert isinstance(ends[ASKER], AnsweredOne)
    assert "bytes had come after 65 s" in wish.trouble


def test_a_coordinator_of_an_earlier_version_answers_nothing():
    class Earlier(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            del self.mailbox.handlers[TranscriptWanted.step]

    wish = Everything()
    _, outcome, ends = play(wish, coordinator=Earlier)
    assert outcome.result is not None
    assert isinstance(ends[ASKER], AnsweredOne)
    assert "its program is of a version that hands out nothing" in wish.trouble


def test_of_a_newer_coordinator_it_is_said_that_its_rules_are_not_known(monkeypatch):
    monkeypatch.setattr("mpc_rr.results.closing.RULES", 99)
    wish = Everything()
    study, _, ends = play(wish)
    with pytest.raises(ResultsError, match="follow rules 99, and this program knows up to"):
        whole_result(study, wish, ends)


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), RuntimeError("a bug"), MemoryError()])
def test_nothing_that_goes_wrong_while_it_is_checked_takes_the_own_result(fault, monkeypatch):
    wish = Everything()
    study, _, ends = play(wish)

    def fails(_folder):
        raise fault

    monkeypatch.setattr("mpc_rr.results.handed_out.replay", fails)
    with pytest.raises(ResultsError, match=r"interrupted|could not be checked \("):
        whole_result(study, wish, ends)


def test_a_party_that_never_heard_the_verdict_has_asked_for_nothing():
    wish = Everything()
    with pytest.raises(ResultsError, match="nobody here has heard the coordinator say"):
        whole_result(few(), wish, {})


def test_what_is_handed_out_reads_back_as_it_was_written():
    said = Said(b"closing", (b"one", b"two"))
    assert encode(said) == bytes.fromhex("92c407636c6f73696e6792c4036f6e65c40374776f")


def test_a_hundred_million_empty_messages_are_not_taken():
    """In 256 MiB they fit; decoded they filled the memory, and took the party's own result."""
    many = MOST_MESSAGES + 1
    raw = b"\x92\xc4\x00\xdd" + many.to_bytes(4, "big") + b"\xc4\x00" * many
    with pytest.raises(ValueError, match="length"):
        decode(raw, Said)
    fits = b"\x92\xc4\x00\xdc\x00\x02" + b"\xc4\x00" * 2
    assert len(decode(fits, Said).transcript) == 2


@pytest.mark.parametrize("who", ["party", "host"])
def test_the_own_result_is_on_disk_before_what_was_handed_out_is_looked_at(
    who, tmp_path, monkeypatch, capsys
):
    """Whatever a coordinator hands out: should checking it kill this process, that stays."""
    wish, out = Everything(), tmp_path / "mine"
    study, _, ends = play(wish)
    there = []

    def checking(*given):
        kept = tmp_path / "mine.unfinished"
        there.extend(sorted(str(p.relative_to(kept)) for p in kept.rglob("*.json*")))
        assert json.loads((kept / "result.json").read_text())["publication"]["listings"]
        return whole_result(*given)

    monkeypatch.setattr(parties, "whole_result", checking)
    if who == "party":
        parties.show_party_end(study, ASKER, ends[ASKER], out, wish, as_json=True)
        assert there == ["receipt.jsonl", "result.json"]
    else:
        parties.show_host_end(study, ends, out, wish, as_json=True)
        assert there == sorted(["result.json", *(f"receipts/{name}.jsonl" for name in ends)])
    assert read_folder(out).done
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert json.loads(capsys.readouterr().out)["format"] == "mpc-rr result"


def there_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def full_for(disk, *names):
    """A disk on which files of these names have no room any more."""
    write = Path.write_bytes

    def writing(self, content):
        if self.name in names and self.is_relative_to(disk):
            raise OSError(28, "No space left on device")
        return write(self, content)

    return writing


@pytest.mark.parametrize("who", ["party", "host"])
@pytest.mark.parametrize("room_for_a_note", [True, False])
def test_where_there_is_no_room_for_the_whole_the_own_result_stays(
    who, room_for_a_note, tmp_path, monkeypatch, capsys
):
    """On a full disk it was removed with its receipt before anything was there in its place."""
    wish, out = Everything(), tmp_path / "mine"
    study, _, ends = play(wish)
    full = ("transcript.jsonl",) if room_for_a_note else (
        "transcript.jsonl", "result.json.unfinished",
    )  # fmt: skip
    monkeypatch.setattr(Path, "write_bytes", full_for(tmp_path, *full))
    if who == "party":
        parties.show_party_end(study, ASKER, ends[ASKER], out, wish, as_json=True)
        own = ["receipt.jsonl"]
    else:
        parties.show_host_end(study, ends, out, wish, as_json=True)
        own = sorted(f"receipts/{name}.jsonl" for name in ends)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    written = json.loads((out / "result.json").read_text())
    sheets = [sheet["name"] for sheet in written["publication"].get("sheets", ())]
    assert there_in(out) == sorted([*own, "result.json", *sheets])
    shown = json.loads(capsys.readouterr().out)
    said = "is not here: it could not be written (No space left on device)"
    assert shown["format"] == "mpc-rr party result"
    assert said in shown["publication"]["notes"][-1]["text"]
    assert (said in str(written["publication"].get("notes"))) == room_for_a_note


def test_where_temporary_files_have_no_room_the_whole_is_not_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full_for(tmp_path, "transcript.jsonl"))
    wish = Everything()
    study, _, ends = play(wish)
    with pytest.raises(ResultsError, match=r"temporary files .* \(No space left on device\)$"):
        whole_result(study, wish, ends)


def test_where_nothing_can_be_kept_meanwhile_nothing_is_left_of_the_attempt(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_bytes", full_for(tmp_path, "receipt.jsonl"))
    wish = Everything()
    study, _, ends = play(wish)
    with pytest.raises(ResultsError, match="No space left on device; result"):
        parties.show_party_end(study, ASKER, ends[ASKER], tmp_path / "mine", wish, as_json=True)
    assert list(tmp_path.iterdir()) == []


class FromElsewhere(MemoryTransport):
    """Says where what comes came from, as a broker does: party-01's wishes from a stranger."""

    async def recv(self):
        raw = (await super().recv()).raw
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        header = msgspec.msgpack.decode(signed.envelope, type=Envelope).header
        wish = header.step == TranscriptWanted.step
        return Arrival(raw, "stranger" if wish and header.sender == ASKER else header.sender)


def test_who_repeats_what_a_party_has_signed_asks_for_nothing(monkeypatch):
    """Anybody who had seen one wish could have the coordinator send her all again."""
    monkeypatch.setattr("mpc_rr.network.memory.MemoryTransport", FromElsewhere)
    network = Tapped()
    outcome, _ = simulate(
        few(), FEW, parties={ASKER: wishing(Everything()), OTHER: wishing(Everything())},
        network=network, coordinator=Closing,
    )  # fmt: skip
    pieces = {e.header.target for e in network.envelopes if e.header.step == TranscriptPiece.step}
    assert pieces == {OTHER}
    assert outcome.rejected["other mailbox"] >= 1


@pytest.mark.parametrize(("then", "pause_s"), [(1, 0.1), (0, 3.0)])
def test_a_piece_is_not_sent_twice_at_once_nor_one_from_before_again(then, pause_s, monkeypatch):
    monkeypatch.setattr("mpc_rr.agents.handing_out.MOST_TIMES", 10)
    network = Tapped()
    greedy = asking(lambda number: then if number else 1, 3, pause_s)()
    lasting(parties={OTHER: wishing(greedy)}, network=network)
    to = [e.header.target for e in network.envelopes if e.header.step == TranscriptPiece.step]
    assert to.count(OTHER) == 2  # the first that she asked for, and the one after that


class Slow(MemoryTransport):
    """Its pieces are with their reader long before the broker acknowledges them."""

    async def send(self, target, raw):
        await super().send(target, raw)
        if b"transcript_piece" in raw:
            await asyncio.sleep(1.0)


@pytest.mark.parametrize("bytes_each", [700, 10**6])
def test_an_answer_that_overtakes_the_brokers_acknowledgement_counts(bytes_each, monkeypatch):
    """It was rejected as a repetition: the coordinator stayed for a minute after the last piece,
    and after each of the others the party had to ask again."""
    monkeypatch.setattr("mpc_rr.agents.handing_out.PIECE_BYTES", bytes_each)
    monkeypatch.setattr("mpc_rr.network.memory.MemoryTransport", Slow)
    network = Tapped()
    lasted, wish = lasting(network=network)
    assert wish.said is not None
    pieces = [e for e in network.envelopes if e.header.step == TranscriptPiece.step]
    assert len(asked_in(network)) == len(pieces) + 1
    assert lasted < 2
