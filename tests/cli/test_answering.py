"""Invited people take part: asked in words, told what they would disclose, and shown the result."""

import base64
import csv
import json
import stat
import subprocess
import sys

import msgspec
import pytest
from cli_helpers import assert_one_line, coordinate, mpc_rr, start
from terminals import AtTerminal

from mpc_rr.agents.invitation import StudyInvitation
from mpc_rr.cli import admissions, inviting
from mpc_rr.errors import InputError
from mpc_rr.network.envelope import Envelope, SignedEnvelope, decode, encode
from mpc_rr.network.lifecycle import ShowPass
from mpc_rr.results.transcript import transcript_lines

STUDY = """
title = "Gardens"
study = "gardens"
description = "Who has one?"
REGISTRAR
[schema.age]
bins = [16, 40, 65, inf]
question = { en = "How old are you?", de = "Wie alt sind Sie?" }
[schema.garden]
categories = ["no", "shared", "own"]
missing = "no answer"
question = { en = "Do you have a garden?", de = "Haben Sie einen Garten?" }
labels = { own = { en = "Yes, my own", de = "Ja, einen eigenen" } }
[protocol]
name = "exact_pairs"
[parties]
count = 3
[deadlines]
lobby_s = 600
round_s = 600
"""
BOSS = "ab" * 16
ADDRESS = "mqtt://127.0.0.1:1"


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace("REGISTRAR", ""))
    (tmp_path / "me.json").write_text(json.dumps({"age": 50, "garden": "own"}))
    return tmp_path


@pytest.fixture
def admitting(here, study):
    """The same with a registrar, and people to be invited, as Excel writes them."""
    code, line, _ = here("registrar", "new", study / "registrar.key")
    assert code == 0
    (study / "study.toml").write_text(STUDY.replace("REGISTRAR", line.strip()))
    (study / "people.csv").write_bytes(
        "who;town\nAnn Lee;x\nBob Ray;y\nCem Öz;z\n".encode("cp1252")
    )
    return study


def invite(here, folder, *options, address=ADDRESS, fingerprint=BOSS):
    return here(
        "invite", folder / "study.toml", "--broker", address, "--coordinator", fingerprint,
        "--out", folder / "letters", *options,
    )  # fmt: skip


def all_three(folder):
    return ("--registrar", folder / "registrar.key", "--csv", folder / "people.csv", "--id", "who")


def listed(here, folder, *options):
    code, out, err = here(
        "registrar", "list", folder / "study.toml", "--key", folder / "registrar.key", "--json",
        *options,
    )  # fmt: skip
    assert code == 0, err
    return {row["person"]: row["status"] for row in json.loads(out)}


IN_GERMAN = (
    ("Your language (1 to 2):", "2\n"),
    ("Wie alt sind Sie?", ""),
    ("Your answer (1 to 3):", "4\n"),
    ("Please type a number from 1 to 3, or one of these answers.", ""),
    ("Your answer (1 to 3):", "1\n"),
    ("Ja, einen eigenen", ""),
    ("Your answer (1 to 4):", "1\n"),
    ("Are these your answers?", "maybe\n"),
    ("Please type y or n.", ""),
    ("Are these your answers?", "n\n"),
    ("Your answer (1 to 3):", "41\n"),
    ("Your answer (1 to 4):", "ja, einen EIGENEN\n"),
    ("40–65", ""),
    ("Ja, einen eigenen", ""),
    ("Are these your answers?", "y\n"),
)
IN_ENGLISH = (
    ("How old are you?", ""),
    ("Your answer (1 to 3):", "3\n"),
    ("Your answer (1 to 4):", "4\n"),
    ("Are these your answers?", "y\n"),
)
"""What a person is shown, and types then."""


def replies(person, *shown_and_typed):
    for shown, typed in shown_and_typed:
        person.reply(shown, typed)


@pytest.mark.broker
def test_invited_people_answer_at_terminals_and_from_files(here, admitting):
    """Broker, coordinator and three people, each a process: one is asked, in German."""
    study = admitting / "study.toml"
    broker = start("broker", "--port", 0, "--keys", admitting / "keys")
    broker.until_it_says("parties: ")
    boss = coordinate(
        study, "--broker", f"@{admitting}/keys/coordinator.address", "--out", admitting / "result"
    )
    said = " ".join(" ".join(boss.said()).split())
    fingerprint = said.partition("coordinator fingerprint ")[2][:32]
    address = f"@{admitting}/keys/parties.address"
    code, out, err = invite(
        here, admitting, *all_three(admitting), address=address, fingerprint=fingerprint
    )
    assert code == 0, err
    assert "3 invitations" in out
    assert listed(here, admitting) == dict.fromkeys(("Ann Lee", "Bob Ray", "Cem Öz"), "admitted")
    ann, bob, cem = sorted((admitting / "letters").glob("0*.txt"))
    from_file = start(
        "answer", bob, "--answers", admitting / "me.json", "--yes", "--state", admitting / "bob",
        "--out", admitting / "bobs", "--json",
    )  # fmt: skip
    home = {"XDG_CONFIG_HOME": str(admitting / "home"), "HOME": str(admitting / "home")}
    people = {
        ann: AtTerminal(["answer", ann], env=home),
        cem: AtTerminal(["answer", cem, "--state", admitting / "cem", "--out", admitting / "cems",
                         "--language", "en"]),
    }  # fmt: skip
    replies(people[ann], *IN_GERMAN)
    replies(people[cem], *IN_ENGLISH)
    for person in people.values():
        person.reply("could take part in your name", "")
        person.reply("What you would disclose", "")
        person.reply("Take part? [y/N]:", "y\n")
    for person in people.values():
        shown, code = person.finish()
        assert code == 0, shown
        assert "Traceback" not in shown
        assert "Counts of age by garden" in shown or "Counts of" in shown
    code, out, err = from_file.finish()
    assert code == 0, err
    assert boss.finish()[0] == 0
    own = next((admitting / "home").glob("**/receipts/gardens-*"))
    assert stat.S_IMODE(own.parent.parent.stat().st_mode) == 0o700
    assert (
        json.loads(out)["publication"]
        == json.loads((own / "result.json").read_text())["publication"]
    )
    assert f"Your privacy ledger is in {own.parent.parent / 'ledger'}" in people[ann].shown
    code, out, err = here("verify", admitting / "result", "--receipt", own / "receipt.jsonl")
    assert code == 0, err
    came = listed(here, admitting, "--results", admitting / "result")
    assert set(came.values()) == {"came"}


@pytest.mark.parametrize("stop", ["\x03", "\x04"])
def test_who_stops_at_a_question_has_sent_nothing(here, study, stop):
    assert invite(here, study)[0] == 0
    person = AtTerminal(
        ["answer", study / "letters" / "invitation.txt", "--state", study / "ledger", "--language",
         "en", "--out", study / "mine"],
    )  # fmt: skip
    person.reply("Your answer (1 to 3):", stop)
    shown, code = person.finish()
    assert (code, "you stopped; nothing was sent" in shown) == (1, True)
    assert not (study / "mine").exists()


def test_who_does_not_agree_has_sent_nothing(here, study):
    assert invite(here, study)[0] == 0
    person = AtTerminal(
        ["answer", study / "letters" / "invitation.txt", "--answers", study / "me.json",
         "--state", study / "ledger", "--out", study / "mine"],
    )  # fmt: skip
    person.reply("Take part? [y/N]:", "n\n")
    shown, code = person.finish()
    assert (code, "you declined; nothing was sent" in shown) == (1, True)
    assert not (study / "ledger" / "account.json").exists()


def test_an_invitation_to_an_open_study_is_one_for_all(here, study):
    code, out, err = invite(here, study)
    assert code == 0, err
    file = study / "letters" / "invitation.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert StudyInvitation.parse(file.read_text()).study.title == "Gardens"
    code, out, err = here("answer", file, "--explain", "--state", study / "ledger")
    assert code == 0, err
    assert "What you would disclose" in out
    code, _, err = invite(here, study)
    assert_one_line(err, "invitation.txt exists already")


def test_an_invitation_is_taken_from_standard_input_and_shown_by_no_note(here, study, monkeypatch):
    invite(here, study)
    text = (study / "letters" / "invitation.txt").read_text()
    given = start_with(text, "answer", "-", "--explain", "--state", study / "ledger")
    code, out, err = given
    assert code == 0, err
    assert "What you would disclose" in out
    code, out, err = here("answer", text.strip(), "--explain", "--state", study / "ledger")
    assert code == 0
    assert "others on this machine can see the invitation" in " ".join(err.split())
    (study / "letters" / "invitation.txt").chmod(0o644)
    code, out, err = here("answer", study / "letters" / "invitation.txt", "--explain",
                          "--state", study / "ledger")  # fmt: skip
    assert "others on this machine can read the invitation" in " ".join(err.split())
    assert "mpcrr1:" not in out + err


def start_with(text, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "mpc_rr", *map(str, arguments)],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--coordinator", "x"], "names the coordinator by the 32 hexadecimal digits"),
        (["--broker", "http://x"], "must look like"),
        (["--person", "Ann"], "is open to everyone: it has one invitation for all"),
    ],
)
def test_a_wrong_invitation_is_not_made(here, study, options, says):
    code, _, err = invite(here, study, *options)
    assert code == 2
    assert_one_line(err.splitlines()[-1] + "\n", says)
    assert not (study / "letters").exists()


def test_people_are_invited_once_unless_their_admission_is_replaced(here, admitting):
    for options, says in (
        ((), "has a registrar: give its key file with --registrar, and whom to invite"),
        (("--registrar", admitting / "registrar.key"), "whom to invite"),
        (("--registrar", admitting / "registrar.key", "--csv", admitting / "people.csv"),
         "--csv with --id COLUMN"),
        (("--registrar", admitting / "registrar.key", "--csv", admitting / "people.csv", "--id",
          "name"), "there is no column 'name'; it has “who”, “town”"),
    ):  # fmt: skip
        code, _, err = invite(here, admitting, *options)
        assert code == 2
        assert_one_line(err, says)
    assert invite(here, admitting, *all_three(admitting), "--coordinator", "x")[0] == 2
    assert listed(here, admitting) == {}  # nobody was admitted for an invitation that is none
    assert invite(here, admitting, *all_three(admitting))[0] == 0
    code, out, err = invite(here, admitting, *all_three(admitting))
    assert code == 0
    assert out == f"{admitting / 'letters'}: 0 invitations\n"
    assert "3 people were admitted before" in err
    code, _, err = invite(
        here, admitting, "--registrar", admitting / "registrar.key", "--person", "Bob  Ray",
        "--replace",
    )  # fmt: skip
    assert code == 0, err
    letters = sorted((admitting / "letters").glob("0*.txt"))
    assert [file.name for file in letters] == [
        "0001-Ann-Lee.txt", "0002-Bob-Ray.txt", "0003-Cem-z.txt", "0004-Bob-Ray.txt",
    ]  # fmt: skip
    invited = [StudyInvitation.parse(file.read_text()) for file in letters]
    assert len({one.secret for one in invited}) == 4
    code, out, _ = here(
        "registrar", "list", admitting / "study.toml", "--key", admitting / "registrar.key"
    )
    assert code == 0
    assert "3 admitted, 1 withdrawn" in out


@pytest.mark.parametrize("when", ["second letter", "list", "register"])
@pytest.mark.parametrize("how", [KeyboardInterrupt(), InputError("no room")])
def test_nobody_is_admitted_whose_invitation_is_nowhere(here, admitting, when, how, monkeypatch):
    """After Ctrl-C while they were written people stood in the register, and could not be invited
    again without withdrawing what they had never been given."""
    write, names = inviting.write_whole, []

    def stopped(file, content):
        names.append(file.name)
        if (when, len(names)) in (("second letter", 2), ("list", 4)):
            raise how
        write(file, content)

    def not_kept(*_):
        raise how

    monkeypatch.setattr(inviting, "write_whole", stopped)
    if when == "register":
        monkeypatch.setattr(admissions, "write_whole", not_kept)
    assert invite(here, admitting, *all_three(admitting))[0] in (2, 130)
    monkeypatch.undo()
    assert listed(here, admitting) == {}
    assert not list((admitting / "letters").iterdir())
    code, out, _ = invite(here, admitting, *all_three(admitting))
    assert (code, len(list((admitting / "letters").iterdir()))) == (0, 4)
    assert "3 invitations; invitations.csv says whose each is" in out


def test_what_was_made_beside_them_meanwhile_is_not_written_over(here, admitting, monkeypatch):
    letters = admitting / "letters"
    letters.mkdir()
    (letters / "0001-Somebody.txt").write_text("theirs")
    (letters / "invitations.csv").write_text("person,person_key,file\nSomebody,00,0001.txt\n")
    assert invite(here, admitting, *all_three(admitting))[0] == 0
    assert (letters / "0001-Somebody.txt").read_text() == "theirs"
    rows = (letters / "invitations.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["Somebody", "Ann Lee", "Bob Ray", "Cem Öz"]
    assert all((letters / row.split(",")[2]).exists() for row in rows[2:])


def test_a_list_of_people_who_look_alike_admits_nobody(here, admitting):
    (admitting / "people.csv").write_text("who,x\nAli,1\nAIi,2\n")
    code, _, err = invite(here, admitting, *all_three(admitting))
    assert code == 2
    assert_one_line(err, "'AIi' looks like 'Ali'")
    assert listed(here, admitting) == {}
    (admitting / "people.csv").write_text("who,x\nAli,1\nAli,2\n")
    code, _, err = invite(here, admitting, *all_three(admitting))
    assert_one_line(err, "has 'Ali' twice")


@pytest.mark.broker
def test_the_coordinators_address_goes_into_no_invitation(here, study, nats):
    code, _, err = invite(here, study, address=nats.with_secrets())
    assert code == 2
    assert_one_line(err.splitlines()[-1] + "\n", "this is the coordinator's address")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mpcrr1:AAAA", "the invitation is cut off or mistyped"),
        ("nowhere.txt", "cannot read an invitation from nowhere.txt: No such file"),
        ("study.toml", "this is no invitation: it would begin with mpcrr1:"),
        (".", "cannot read an invitation from ."),
    ],
)
def test_what_is_no_invitation_is_told_in_one_line(here, study, given, says):
    code, _, err = here("answer", given, "--yes", cwd=study)
    assert code == 2
    assert_one_line(err.splitlines()[-1] + "\n", says)


def test_where_nobody_can_be_asked_answers_and_consent_must_be_given(here, study):
    invite(here, study)
    file = study / "letters" / "invitation.txt"
    code, _, err = here("answer", file, "--state", study / "ledger")
    assert code == 2
    assert_one_line(err, "nobody can be asked the questions here")
    code, _, err = here("answer", file, "--answers", study / "me.json", "--state", study / "ledger",
                        "--out", study / "mine")  # fmt: skip
    assert code == 2
    assert "nobody can be asked here for consent, and nothing was sent" in err
    code, _, err = mpc_rr("answer", file, "--language", "fr")
    assert code == 2
    assert_one_line(err, "the study has no words in 'fr'")


# ── Where it takes place ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "says", "warned"),
    [
        ("mqtt://127.0.0.1:1", "broker: 127.0.0.1:1 (without TLS)", False),
        ("mqtt://192.0.2.7:1883", "broker: 192.0.2.7:1883 (without TLS)", True),
        ("mqtts://office.example#sha256=" + "ab" * 32, "office.example:8883 (with TLS)", False),
        (",".join(f"mqtts://n{k}.example" for k in range(5)), "8883 (with TLS) and 2 more", False),
    ],
)  # fmt: skip
def test_respondents_are_told_where_their_answers_would_go(here, study, address, says, warned):
    """An invitation that was altered on its way led to another broker, and nothing showed it."""
    assert invite(here, study, address=address)[0] == 0
    file, ledger = study / "letters" / "invitation.txt", study / "ledger"
    code, out, err = here("answer", file, "--explain", "--state", ledger)
    assert code == 0, err
    shown = " ".join(out.split())
    assert says in shown
    assert f"coordinator: {BOSS}" in shown
    assert ("There is no TLS on the way" in shown) == warned
    code, out, _ = here("answer", file, "--explain", "--state", ledger, "--json")
    told = json.loads(out)
    assert told["coordinator"] == BOSS
    assert told["brokers"][0].startswith(address.split(",")[0].partition("#")[0])
    code, _, err = here("answer", file, "--state", ledger, "--answers", study / "me.json")
    assert says in " ".join(err.split())  # before consent is asked for


# ── Who came ───────────────────────────────────────────────────────────────────────────────────


RECORDED = """title = "Recorded"
registrar = "{}"
study = "recorded"
[schema.a]
categories = ["x", "y"]
[schema.b]
categories = ["p", "q"]
[protocol]
name = "rr_independent"
epsilon = 2.0
[parties]
count = 4
minimum = 4
"""


@pytest.fixture
def recorded(here, tmp_path):
    """A simulated run with a registrar, and the lines of its transcript."""
    code, line, _ = here("registrar", "new", tmp_path / "registrar.key")
    assert code == 0
    (tmp_path / "study.toml").write_text(RECORDED.format(line.split('"')[1]))
    (tmp_path / "people.csv").write_text("a,b\n" + "x,p\ny,q\n" * 2)
    code, _, err = here(
        "run", tmp_path / "study.toml", "--data", tmp_path / "people.csv", "--registrar",
        tmp_path / "registrar.key", "--transport", "memory", "--seed", 3, "--out",
        tmp_path / "results",
    )  # fmt: skip
    assert code == 0, err
    return tmp_path


def changed_pass(raw, **changes):
    """A line that shows another pass; whoever changes it cannot sign it."""
    signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
    envelope = decode(signed.envelope, Envelope)
    message = decode(envelope.body, ShowPass)
    message = msgspec.structs.replace(
        message, shown=msgspec.structs.replace(message.shown, **changes)
    )
    envelope = msgspec.structs.replace(envelope, body=encode(message))
    return encode(msgspec.structs.replace(signed, envelope=encode(envelope)))


@pytest.mark.parametrize("resigned", [False, True])
def test_nobody_is_told_to_have_come_whose_signature_is_not_there(
    here, recorded, resigned, monkeypatch
):
    """A line that somebody had put into the transcript, unsigned, made an absent person "came"."""
    code, _, err = here(
        "invite", recorded / "study.toml", "--broker", ADDRESS, "--coordinator", BOSS, "--out",
        recorded / "letters", "--registrar", recorded / "registrar.key", "--person", "Jane Doe",
    )  # fmt: skip
    assert code == 0, err
    results = recorded / "results"
    assert listed(here, recorded, "--results", results)["Jane Doe"] == "has not come"
    if resigned:  # by a coordinator that keeps the parties' keys, say: it still lacks Jane's
        monkeypatch.setattr("mpc_rr.results.recorded.check_signatures", lambda _: None)
    with (recorded / "letters" / "invitations.csv").open(newline="") as file:
        jane = bytes.fromhex(next(csv.DictReader(file))["person_key"])
    raws = [
        base64.b64decode(json.loads(line)["envelope"])
        for line in (results / "transcript.jsonl").read_text().splitlines()
    ]
    place = next(n for n, raw in enumerate(raws) if b"\xa4pass" in raw)
    raws[place] = changed_pass(raws[place], person=jane)
    (results / "transcript.jsonl").write_text(transcript_lines(raws))
    code, out, err = here(
        "registrar", "list", recorded / "study.toml", "--key", recorded / "registrar.key",
        "--results", results,
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert_one_line(err, "transcript.jsonl, line ", "; who came cannot be told")
    assert ("registrar" if resigned else "its signature is not ") in err


def test_who_came_to_another_version_of_a_study_is_not_told(here, recorded):
    file = recorded / "study.toml"
    file.write_text(file.read_text().replace("epsilon = 2.0", "epsilon = 3.0"))
    code, _, err = here(
        "registrar", "list", file, "--key", recorded / "registrar.key", "--results",
        recorded / "results",
    )  # fmt: skip
    assert code == 2
    assert_one_line(err, "results is of another version of study")
