"""mpc-rr registrar and enrol: from keys to a study that takes only whom the registrar knows."""

import json
import os
import shutil
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_helpers import assert_one_line, coordinate, patient, published_number, start

from mpc_rr.agents import locks
from mpc_rr.agents.withdrawals import read_withdrawals
from mpc_rr.cli import admissions
from mpc_rr.cli.admissions import read_pass
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.study.file import load_scenario

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


@pytest.fixture
def registered(tmp_path, here):
    """A registrar's key, and a study with it."""
    code, line, _ = here("registrar", "new", tmp_path / "registrar.key")
    assert code == 0
    text = (SCENARIOS / "hidden_in_groups.toml").read_text()
    (tmp_path / "study.toml").write_text(line + patient(text))
    shutil.copy(SCENARIOS / "eight_neighbours.csv", tmp_path)
    return tmp_path


def admit(here, folder, person, request, *options, study="study.toml"):
    return here(
        "registrar", "admit", folder / study, "--key", folder / "registrar.key",
        "--person", person, "--request", request, *options,
    )  # fmt: skip


def request_for(here, own, study):
    """A person's request to a study's registrar; her pass is made if it is not there."""
    code, request, err = here("enrol", own, "--study", study)
    assert code == 0, err
    return request.strip()


def key_for(here, own, study):
    """A person's public key for a study."""
    return request_for(here, own, study).partition(".")[0]


def withdraw(here, folder, person):
    """Withdraw an admission; the list, and the key that is on it now."""
    code, said, err = here(
        "registrar", "revoke", folder / "study.toml", "--key", folder / "registrar.key",
        "--person", person,
    )  # fmt: skip
    assert code == 0, err
    assert "--withdrawals of the coordinator and of the parties" in " ".join(err.split())
    return withdrawals(here, folder), said.strip().removeprefix("withdrawn: ")


def withdrawals(here, folder, name="withdrawals.json"):
    code, _, err = here(
        "registrar", "withdrawals", folder / "study.toml", "--key", folder / "registrar.key",
        "--out", folder / name,
    )  # fmt: skip
    assert code == 0, err
    return folder / name


def enrolled(here, folder, name):
    """A pass with an admission."""
    own = folder / f"{name}.pass"
    code, admission, err = admit(here, folder, name, request_for(here, own, folder / "study.toml"))
    assert code == 0, err
    code, out, err = here(
        "enrol", own, "--study", folder / "study.toml", "--admission", admission.strip()
    )
    assert (code, out) == (0, "admitted to study hidden-in-groups\n"), err
    return own


def test_a_person_is_admitted_once(here, registered):
    own = enrolled(here, registered, "jane")
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert stat.S_IMODE((registered / "registrar.key").stat().st_mode) == 0o600
    study = registered / "study.toml"
    request = request_for(here, own, study)
    assert admit(here, registered, "jane", request)[0] == 0  # the same again
    another = request_for(here, registered / "other.pass", study)
    code, _, err = admit(here, registered, "jane", another)
    assert code == 2
    assert_one_line(err, "'jane' has been admitted to this study before, with another key")
    code, _, err = admit(here, registered, "john", request)
    assert_one_line(err, "this key is that of 'jane'")


@pytest.mark.parametrize(
    "written", ["jane  MÜLLER", "Jane Mu\u0308ller", "Jane\u00a0Müller", "Jane \uff2d\u00fcller"]
)
def test_a_person_is_the_same_however_she_is_written(here, registered, written):
    enrolled(here, registered, "Jane Müller")
    another = request_for(here, registered / "other.pass", registered / "study.toml")
    code, _, err = admit(here, registered, written, another, "--another-person")
    assert code == 2
    assert_one_line(err, "'Jane Müller' has been admitted to this study before")


@pytest.mark.parametrize(
    "written",
    [
        "Jane\u200b Müller", "Jane M\u00adüller", "Jane \u2060Müller", "\u202aJane Müller",
        "J\u0430ne Müller", "Jane Müller\ufe0f", "Jane\u2800Müller", "Jane Müller\u0007",
        "Jane\u180eMüller",
    ],
)  # fmt: skip
def test_nobody_is_admitted_twice_under_a_name_that_shows_the_same(here, registered, written):
    """All nine of these once were."""
    enrolled(here, registered, "Jane Müller")
    another = request_for(here, registered / "other.pass", registered / "study.toml")
    code, _, err = admit(here, registered, written, another, "--another-person")
    assert code == 2
    assert_one_line(err, "the character U+")


def test_somebody_who_looks_like_another_is_asked_about(here, registered, monkeypatch):
    enrolled(here, registered, "Ali")
    another = request_for(here, registered / "other.pass", registered / "study.toml")
    code, _, err = admit(here, registered, "AIi", another)
    assert code == 2
    assert_one_line(err, "'AIi' looks like 'Ali', who has been admitted to this study before")
    asked = []
    monkeypatch.setattr(admissions, "at_terminal", lambda: True)
    for answer in (False, True):
        monkeypatch.setattr(admissions, "confirmed", lambda q, a=answer: asked.append(q) or a)
        assert admit(here, registered, "AIi", another)[0] == (0 if answer else 2)
    assert asked == 2 * ["Ali was admitted before and looks alike. Another person?"]
    third = request_for(here, registered / "third.pass", registered / "study.toml")
    assert admit(here, registered, "Al1", third, "--another-person")[0] == 0


def test_nobody_has_the_key_of_somebody_else_admitted(here, registered):
    """Mallory knows Jane's key, from a transcript or from the registrar's desk; she has not its
    private half. Once she was admitted with it, and Jane turned away."""
    study, mine = registered / "study.toml", registered / "mallory.pass"
    jane = request_for(here, registered / "jane.pass", study)
    janes_key, mallorys = jane.partition(".")[0], request_for(here, mine, study)
    code, _, err = admit(here, registered, "Mallory", janes_key)
    assert code == 2
    assert_one_line(err, "mpc-rr enrol of this version prints a request")
    code, _, err = admit(here, registered, "Mallory", f"{janes_key}.{mallorys.partition('.')[2]}")
    assert code == 2
    assert_one_line(err, "does not show that the person who asks has this key")
    assert admit(here, registered, "Jane", jane)[0] == 0


def test_a_request_is_to_one_study_and_one_registrar(here, registered):
    own, study, other = registered / "me.pass", registered / "study.toml", another_study(registered)
    code, _, err = admit(here, registered, "x", request_for(here, own, study), study="next.toml")
    assert code == 2
    assert_one_line(err, "it was made for another study")
    _, line, _ = here("registrar", "new", registered / "second.key")
    text = study.read_text()
    other.write_text(line + text.partition("\n")[2])
    code, _, err = admit(here, registered, "x", request_for(here, own, other))
    assert code == 2
    assert_one_line(err, "another registrar")


def test_the_option_is_still_called_public(here, registered):
    study = registered / "study.toml"
    code, _, _ = here(
        "registrar", "admit", study, "--key", registered / "registrar.key", "--person", "jane",
        "--public", request_for(here, registered / "me.pass", study),
    )  # fmt: skip
    assert code == 0


def test_a_lost_pass_is_replaced_and_its_key_withdrawn(here, registered):
    study = registered / "study.toml"
    lost = key_for(here, enrolled(here, registered, "Jane Müller"), study)
    new = request_for(here, registered / "new.pass", study)
    code, _, err = admit(here, registered, "jane muller", new, "--replace")
    assert_one_line(err, "'jane muller' has no admission that could be replaced")
    code, out, err = admit(here, registered, "jane müller", new, "--replace", "--json")
    assert code == 0, err
    assert json.loads(out)["person_key"] == new.partition(".")[0]
    listed = json.loads(withdrawals(here, registered).read_text())
    assert (listed["number"], listed["withdrawn"]) == (1, [lost])
    old = request_for(here, registered / "Jane Müller.pass", study)
    code, _, err = admit(here, registered, "Jane Müller", old, "--replace")
    assert code == 2
    assert_one_line(err, "the admission of this key has been withdrawn")


def test_an_admission_that_was_withdrawn_can_be_followed_by_another(here, registered):
    study = registered / "study.toml"
    enrolled(here, registered, "jane")
    listed, key = withdraw(here, registered, " JANE")
    assert json.loads(listed.read_text())["withdrawn"] == [key]
    code, _, err = here(
        "registrar", "revoke", study, "--key", registered / "registrar.key", "--person", "jane"
    )
    assert code == 2
    assert_one_line(err, "'jane' has no admission to study 'hidden-in-groups' that could be")
    assert admit(here, registered, "jane", request_for(here, registered / "n.pass", study))[0] == 0


def taking_part(here, folder, own, listed):
    return here(
        "party", folder / "study.toml", "--broker", "mqtt://127.0.0.1:1", "--csv",
        folder / "eight_neighbours.csv", "--row", "1", "--pass", own, "--withdrawals", listed,
        "--yes",
    )  # fmt: skip


def test_a_person_on_the_list_is_told_before_anything_is_sent(here, registered):
    own = enrolled(here, registered, "jane")
    listed, _ = withdraw(here, registered, "jane")
    code, _, err = taking_part(here, registered, own, listed)
    assert code == 2
    assert "the registrar has withdrawn your admission" in err.strip().splitlines()[-1]


def test_a_pass_takes_no_older_list_than_it_has_seen(here, registered):
    own = enrolled(here, registered, "jane")
    older = withdrawals(here, registered, "older.json")
    enrolled(here, registered, "joan")
    newer, _ = withdraw(here, registered, "joan")
    code, _, err = taking_part(here, registered, own, newer)
    assert code == 1, err  # no broker there
    code, _, err = taking_part(here, registered, own, older)
    assert code == 2
    assert "has seen list 1: ask the registrar for the newest" in err
    assert json.loads(own.read_text())["withdrawals"] == {
        load_scenario(registered / "study.toml").study.digest.hex(): 1
    }


def test_an_old_copy_of_the_key_file_does_not_overwrite_a_newer_list(here, registered):
    enrolled(here, registered, "jane")
    old = (registered / "registrar.key").read_bytes()
    withdraw(here, registered, "jane")
    (registered / "registrar.key").write_bytes(old)
    code, _, err = here(
        "registrar", "withdrawals", registered / "study.toml", "--key",
        registered / "registrar.key", "--out", registered / "withdrawals.json",
    )  # fmt: skip
    assert code == 2
    assert_one_line(err, "the key file is an old copy")


def test_a_list_that_is_not_the_registrars_for_this_study_is_refused(here, registered):
    study, broker = registered / "study.toml", ("--broker", "mqtt://127.0.0.1:1")
    enrolled(here, registered, "jane")
    listed, _ = withdraw(here, registered, "jane")
    said = json.loads(listed.read_text())
    wrong = registered / "wrong.json"
    for text, says in (
        (json.dumps(said | {"withdrawn": []}), "has not signed it, or not as it is now"),
        (json.dumps(said | {"number": 0}), "has not signed it, or not as it is now"),
        (json.dumps(said | {"version": 2}), "is not a file of the kind 'mpc-rr withdrawals'"),
        (json.dumps(said | {"withdrawn": ["zz"]}), "is not a file of the kind"),
        ("[]", "is not a file of the kind 'mpc-rr withdrawals', version 1"),
    ):
        wrong.write_text(text)
        code, _, err = here("coordinate", study, *broker, "--withdrawals", wrong)
        assert code == 2
        assert_one_line(err, says)
    for other, says in (
        (another_study(registered), "it is for another study"),
        (SCENARIOS / "hidden_in_groups.toml", "has no registrar"),
    ):
        code, _, err = here("coordinate", other, *broker, "--withdrawals", listed)
        assert code == 2
        assert_one_line(err, says)
    code, _, err = here("coordinate", study, *broker, "--withdrawals", registered / "none.json")
    assert_one_line(err, "cannot read")


def test_a_key_file_of_the_first_version_is_read_and_kept_as_the_second(here, registered):
    """It held names folded, and no withdrawals."""
    file, study = registered / "registrar.key", registered / "study.toml"
    digest = load_scenario(study).study.digest.hex()
    jane = request_for(here, registered / "jane.pass", study)
    key = json.loads(file.read_text())["key"]
    old = {
        "kind": "mpc-rr registrar", "key": key,
        "admitted": {digest: {"jane müller": jane.partition(".")[0]}},
    }  # fmt: skip
    file.write_text(json.dumps(old))
    another = request_for(here, registered / "x.pass", study)
    code, _, err = admit(here, registered, "Jane Müller", another)
    assert code == 2
    assert_one_line(err, "'jane müller' has been admitted to this study before")
    assert admit(here, registered, "Jane Müller", jane)[0] == 0
    new = json.loads(file.read_text())
    assert (new["version"], "admitted" in new) == (2, False)
    assert new["register"][digest] == [{"person": "jane müller", "key": jane.partition(".")[0]}]
    file.write_text(json.dumps(new | {"version": 3}))
    assert admit(here, registered, "Jane Müller", jane)[0] == 2


def full_disk(_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("registrar.key", ("registrar", "revoke", "study.toml", "--key", "registrar.key",
                           "--person", "jane")),
        ("withdrawals.json", ("registrar", "withdrawals", "study.toml", "--key", "registrar.key",
                              "--out", "withdrawals.json")),
        ("jane.pass", ("enrol", "jane.pass", "--study", "study.toml", "--admission", "jane's")),
        ("new.pass", ("enrol", "new.pass")),
        ("new.key", ("registrar", "new", "new.key")),
    ],
)  # fmt: skip
def test_who_runs_out_of_space_keeps_what_there_was(here, registered, monkeypatch, file, command):
    """A list was cut off, a new pass was left empty; nothing waited for the disk."""
    own = enrolled(here, registered, "jane")
    withdrawals(here, registered)
    (admission,) = json.loads(own.read_text())["admissions"].values()
    before = {path: path.read_bytes() for path in registered.iterdir()}
    monkeypatch.setattr(os, "fsync", full_disk)
    command = [admission if word == "jane's" else word for word in command]
    code, _, err = here(*command, cwd=registered)
    assert code == 2
    assert_one_line(err, f"{file} cannot be written: No space left on device")
    after = {path: path.read_bytes() for path in registered.iterdir()}
    assert {path: after[path] for path in after if not path.name.endswith(".lock")} == {
        path: before[path] for path in before if not path.name.endswith(".lock")
    }


def test_a_list_of_withdrawals_is_for_everybody_to_read(here, registered):
    listed = withdrawals(here, registered)
    assert listed.stat().st_mode == (registered / "study.toml").stat().st_mode


def test_a_list_that_is_entered_while_an_admission_is_stays_in_the_pass(
    here, registered, monkeypatch
):
    """The admission was written over it, into the pass as it had been before."""
    own, study = enrolled(here, registered, "jane"), registered / "study.toml"
    (admission,) = json.loads(own.read_text())["admissions"].values()
    enrolled(here, registered, "joan")
    listed, _ = withdraw(here, registered, "joan")
    definition = load_scenario(study).study
    newest = read_withdrawals(listed, definition)
    done_or_waiting = threading.Event()
    meanwhile = threading.Thread(
        target=lambda: (read_pass(own, definition, newest), done_or_waiting.set())
    )
    read_text = Path.read_text

    def read_and_look_away(path, **options):
        text = read_text(path, **options)
        if path == own and not meanwhile.ident:
            meanwhile.start()
            assert done_or_waiting.wait(60)
        return text

    monkeypatch.setattr(locks, "time", SimpleNamespace(sleep=lambda _: done_or_waiting.set()))
    monkeypatch.setattr(Path, "read_text", read_and_look_away)
    assert here("enrol", own, "--study", study, "--admission", admission)[0] == 0
    meanwhile.join(60)
    assert json.loads(own.read_text())["withdrawals"] == {definition.digest.hex(): 1}


@pytest.mark.parametrize("damage", [("admissions", None), ("admissions", {"x": "zz"})])
def test_a_damaged_pass_is_told_in_one_line(here, registered, damage):
    own = enrolled(here, registered, "jane")
    book = json.loads(own.read_text())
    book[damage[0]] = damage[1]
    own.write_text(json.dumps(book))
    code, _, err = here("enrol", own)
    assert code == 2
    assert_one_line(err, "is not a file of the kind 'mpc-rr pass'")


def test_what_is_wrong_is_said_in_one_line(here, registered):
    own, study = registered / "me.pass", registered / "study.toml"
    public = request_for(here, own, study)
    key = registered / "registrar.key"
    cases = [
        (("registrar", "new", key), "exists already"),
        (("registrar", "admit", study, "--key", own, "--person", "x", "--public", public),
         "is not a file of the kind 'mpc-rr registrar'"),
        (("registrar", "admit", study, "--key", key, "--person", "x", "--public", "12"),
         "takes the line that `mpc-rr enrol` printed"),
        (("registrar", "admit", study, "--key", key, "--person", " ", "--public", public),
         "--person is empty"),
        (("registrar", "admit", SCENARIOS / "hidden_in_groups.toml", "--key", key, "--person", "x",
          "--public", public), "registrar = \""),
        (("registrar", "admit", study, "--key", key, "--person", "x", "--public",
          "01" + 62 * "0" + "." + 128 * "0"),
         "anyone could sign for this key"),
        (("enrol", own, "--admission", "00"), "--admission needs --study"),
        (("enrol", registered / "typo.pass", "--study", study, "--admission", "00"),
         "the admission is for a key from the pass that you made before"),
        (("enrol", own, "--study", study, "--admission", "zz"), "issued for another key"),
        (("enrol", own, "--study", SCENARIOS / "hidden_in_groups.toml"), "it is open to everyone"),
        (("run", study), "give the registrar's own key"),
        (("party", study, "--broker", "mqtt://127.0.0.1:1", "--csv",
          registered / "eight_neighbours.csv", "--row", "1", "--pass", own),
         "holds no admission to this very study"),
    ]  # fmt: skip
    for arguments, says in cases:
        code, _, err = here(*arguments)
        assert code == 2, (arguments, err)
        assert says in err.strip().splitlines()[-1], err
    assert not (registered / "typo.pass").exists()


def test_a_request_with_a_name_is_nobody_elses(here, registered):
    """Mallory, who had seen Jane's request, was admitted with her key, and Jane was kept out."""
    own, study = registered / "jane.pass", registered / "study.toml"
    code, request, err = here("enrol", own, "--study", study, "--person", "Jane Doe")
    assert (code, err) == (0, "")
    code, _, err = admit(here, registered, "Mallory", request.strip())
    assert code == 2
    assert_one_line(err, "or a person of another name")
    code, _, err = admit(here, registered, "jane  DOE", request.strip())
    assert code == 0, err


def test_a_request_without_a_name_is_said_to_be_for_the_registrar_alone(here, registered):
    own, study = registered / "jane.pass", registered / "study.toml"
    _, _, err = here("enrol", own, "--study", study)
    assert "Give this to the registrar alone" in " ".join(err.split())
    code, _, err = here("enrol", own, "--study", study, "--person", "Jane\u200b")
    assert code == 2
    assert_one_line(err, "U+200B")


def another_study(folder):
    """The same registrar's next study."""
    place = folder / "next.toml"
    text = (folder / "study.toml").read_text()
    place.write_text(f'study = "next"\n{text}')
    return place


def test_a_pass_alone_is_no_key_and_every_study_gets_another(here, registered):
    own = registered / "me.pass"
    code, out, _ = here("enrol", own)
    assert code == 0
    assert "--study FILE" in out
    studies = registered / "study.toml", another_study(registered)
    first, second = (key_for(here, own, study) for study in studies)
    assert first != second
    assert key_for(here, own, studies[0]) == first
    assert json.loads(own.read_text())["secret"] not in (first, second)


def test_a_pass_of_the_first_kind_keeps_its_one_key_where_it_was_admitted(here, registered):
    """It held one key for all studies; from now on, it too has another for each."""
    study, private = registered / "study.toml", "07" * 32
    one_key = SigningKey(bytes.fromhex(private)).public.hex()
    registrar = json.loads((registered / "registrar.key").read_text())["key"]
    admission = SigningKey(bytes.fromhex(registrar)).admit(
        load_scenario(study).study.digest, bytes.fromhex(one_key)
    )
    digest = load_scenario(study).study.digest.hex()
    book = {"kind": "mpc-rr pass", "key": private, "admissions": {digest: admission.hex()}}
    own = registered / "old.pass"
    own.write_text(json.dumps(book))
    key, _ = read_pass(own, load_scenario(study).study)
    assert key.public.hex() == one_key == key_for(here, own, study)
    assert key_for(here, own, another_study(registered)) != one_key


def test_a_whole_run_with_the_registrars_key(here, registered):
    code, out, err = here(
        "run", registered / "study.toml", "--registrar", registered / "registrar.key",
        "--transport", "memory", "--json", "--out", registered / "out",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["admission"] == "by a registrar"
    assert here("verify", registered / "out")[0] == 0


@pytest.mark.broker
def test_people_with_passes_take_part_as_processes(here, registered, nats):
    """Seven by one host with a folder of passes, one by herself; a ninth was withdrawn."""
    passes = registered / "passes"
    passes.mkdir()
    for number in range(1, 9):
        enrolled(here, registered, f"p{number}").rename(passes / f"{number}.pass")
    enrolled(here, registered, "p9")
    listed = ["--withdrawals", withdraw(here, registered, "p9")[0]]
    url = ["--broker", nats.with_secrets()]
    study, csv = registered / "study.toml", registered / "eight_neighbours.csv"
    processes = [
        coordinate(study, *url, *listed, "--json", "--out", registered / "out"),
        start("host", study, *url, *listed, "--csv", csv, "--rows", "1:7", "--passes", passes,
              "--json"),
        start("party", study, *url, "--csv", csv, "--row", "8", "--pass", passes / "8.pass",
              "--json"),
    ]  # fmt: skip
    for process in processes:
        code, out, err = process.finish()
        assert code == 0, err
        assert published_number(json.loads(out), "k_reached") == 4
    code, out, err = here("verify", registered / "out", *listed)
    assert code == 0, err
    assert "nobody took part whose admission the registrar has withdrawn" in out
