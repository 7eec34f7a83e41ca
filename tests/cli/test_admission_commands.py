"""mpc-rr registrar and enrol: from keys to a study that takes only whom the registrar knows."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from cli_helpers import assert_one_line, coordinate, patient, published_number, start

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


def admit(here, folder, person, public):
    return here(
        "registrar", "admit", folder / "study.toml", "--key", folder / "registrar.key",
        "--person", person, "--public", public,
    )  # fmt: skip


def key_for(here, own, study):
    """A person's public key for a study; her pass is made if it is not there."""
    code, public, err = here("enrol", own, "--study", study)
    assert code == 0, err
    return public.strip()


def enrolled(here, folder, name):
    """A pass with an admission."""
    own = folder / f"{name}.pass"
    code, admission, err = admit(here, folder, name, key_for(here, own, folder / "study.toml"))
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
    public = key_for(here, own, study)
    assert admit(here, registered, "jane", public)[0] == 0  # the same again
    code, _, err = admit(here, registered, "jane", key_for(here, registered / "other.pass", study))
    assert code == 2
    assert_one_line(err, "'jane' has been admitted to this study before, with another key")
    code, _, err = admit(here, registered, "john", public)
    assert_one_line(err, "this key is that of 'jane'")


def test_a_person_is_the_same_however_she_is_written(here, registered):
    enrolled(here, registered, "Jane  Doe")
    another = key_for(here, registered / "other.pass", registered / "study.toml")
    code, _, err = admit(here, registered, " jane doe", another)
    assert code == 2
    assert "has been admitted to this study before" in err


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
    public = key_for(here, own, study)
    key = registered / "registrar.key"
    cases = [
        (("registrar", "new", key), "exists already"),
        (("registrar", "admit", study, "--key", own, "--person", "x", "--public", public),
         "is not a file of the kind 'mpc-rr registrar'"),
        (("registrar", "admit", study, "--key", key, "--person", "x", "--public", "12"),
         "takes the 64 hexadecimal digits"),
        (("registrar", "admit", study, "--key", key, "--person", " ", "--public", public),
         "--person is empty"),
        (("registrar", "admit", SCENARIOS / "hidden_in_groups.toml", "--key", key, "--person", "x",
          "--public", public), "registrar = \""),
        (("registrar", "admit", study, "--key", key, "--person", "x", "--public", "01" + 62 * "0"),
         "anybody could sign for this key"),
        (("enrol", own, "--admission", "00"), "--admission needs --study"),
        (("enrol", registered / "typo.pass", "--study", study, "--admission", "00"),
         "the admission is for a key from the pass that you made before"),
        (("enrol", own, "--study", study, "--admission", "zz"), "not for your key"),
        (("enrol", own, "--study", SCENARIOS / "hidden_in_groups.toml"), "it is open to everybody"),
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
    _, admission, _ = admit(here, registered, "jane", one_key)
    digest = load_scenario(study).study.digest.hex()
    book = {"kind": "mpc-rr pass", "key": private, "admissions": {digest: admission.strip()}}
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
    """Seven by one host with a folder of passes, one by herself."""
    passes = registered / "passes"
    passes.mkdir()
    for number in range(1, 9):
        enrolled(here, registered, f"p{number}").rename(passes / f"{number}.pass")
    url = ["--broker", f"mqtt://{nats.user}:{nats.password}@{nats.where}"]
    study, csv = registered / "study.toml", registered / "eight_neighbours.csv"
    processes = [
        coordinate(study, *url, "--json", "--out", registered / "out"),
        start("host", study, *url, "--csv", csv, "--rows", "1:7", "--passes", passes, "--json"),
        start("party", study, *url, "--csv", csv, "--row", "8", "--pass", passes / "8.pass",
              "--json"),
    ]  # fmt: skip
    for process in processes:
        code, out, err = process.finish()
        assert code == 0, err
        assert published_number(json.loads(out), "k_reached") == 4
