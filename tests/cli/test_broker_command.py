"""The command broker: two addresses that outlive a restart, TLS, a quiet end; no secret shown."""

import json
import os
import pty
import signal
import sys
import termios

import msgspec
import processes
import pytest
from cli_helpers import STUDY, assert_one_line, mpc_rr, start

from mpc_rr.cli import brokers
from mpc_rr.crypto.nkeys import Kind, NKey
from mpc_rr.network.address import BrokerAddresses, BrokerUrl
from mpc_rr.network.broker import fresh_keys
from mpc_rr.randomness import SystemRandomness

pytestmark = pytest.mark.broker


def addresses(said):
    lines = dict(line.split(": ", 1) for line in said.splitlines() if ": mqtt" in line)
    return lines["coordinator"], lines["parties"]


def run_broker(*options, end=signal.SIGTERM):
    """What a broker says on both streams when it is ended as soon as it is ready."""
    broker = start("broker", "--port", 0, *options)
    broker.until(lambda: "parties" in broker.said()[0] and broker.said()[0].endswith("\n"), "ready")
    broker.send_signal(end)
    code, out, err = broker.finish()
    assert code == 0, err
    return out, err


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_it_ends_quietly(end):
    out, err = run_broker(end=end)
    assert out.splitlines()[-1] == "broker stopped"
    assert err == ""


def test_a_restart_with_the_same_keys_keeps_the_addresses(tmp_path):
    keys = tmp_path / "keys"
    secrets = []
    for _ in range(2):
        out, _ = run_broker("--keys", keys, "--tls", "--name", "broker.example.org")
        shown = addresses(out)
        assert [(keys / f"{role}.address").read_text().strip() for role in
                ("coordinator", "parties")] == list(shown)  # fmt: skip
        secrets.append([(a.partition("@")[0], a.partition("#")[2]) for a in shown])
    assert secrets[0] == secrets[1]
    assert all("@broker.example.org:" in address for address in shown)
    for file in keys.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    rights = (keys / "rights.conf").read_text()
    assert not any(entry.partition(":")[2].partition(".")[0] in rights for entry, _ in secrets[0])


def test_json_is_one_document():
    out, err = run_broker("--json")
    document = json.loads(out)
    assert document.keys() == {"coordinator", "parties"}
    assert document["coordinator"] != document["parties"]
    assert err == ""


def test_whoever_serves_other_machines_speaks_tls_unless_told_otherwise():
    out, err = run_broker("--host", "0.0.0.0")
    assert all(a.startswith("mqtts://") and "#sha256=" in a for a in addresses(out))
    assert "--name" in err
    out, err = run_broker("--host", "0.0.0.0", "--no-tls")
    assert all(a.startswith("mqtt://") and "#" not in a for a in addresses(out))
    assert "without TLS" in " ".join(err.split())


@pytest.mark.parametrize(
    "name",
    ["", " ", "host:9", "host:8883", "[::1]", "[::1]:8883", "x@y", "a,b", "h/p", "h?x", "h#x",
     "a b", "h%41", "mqtt://h", "h\n", "ho\u200bst", ".", "a..b", "ⓗost", "fe80::1::2"],
)  # fmt: skip
def test_a_name_that_an_address_cannot_hold_is_told_before_anything_starts(
    here, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(brokers, "serve_broker", lambda *_: None)
    code, _, err = here("broker", "--name", name, "--keys", tmp_path / "keys")
    assert code == 2
    assert_one_line(err, "--name", "without a port")
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    "name",
    ["broker", "Broker.example.org", "h.", "10.0.0.7", "fe80::1", "FE80::1", "bücher.example"],
)
def test_names_and_addresses_of_machines_are_taken(here, monkeypatch, name):
    def serve(_host, _port, keys, _tls, ready):
        invited = ("party-invitation", keys.party_invitation)
        ready(BrokerAddresses(*[BrokerUrl("127.0.0.1", 1234, True, *invited)] * 2))

    monkeypatch.setattr(brokers, "serve_broker", serve)
    code, out, err = here("broker", "--name", name, "--json")
    assert code == 0, err
    read = BrokerUrl.parse(json.loads(out)["parties"])
    assert (read.host, read.port) == (name.lower(), 1234)


def damaged(name):
    """The keys of a broker with something wrong, as they would be kept."""
    keys = msgspec.to_builtins(fresh_keys())
    changes = {
        "another key": {"private_key": fresh_keys().private_key},
        "no certificate": {"certificate": "-----BEGIN CERTIFICATE-----"},
        "no private key": {"private_key": keys["certificate"]},
        "a user's seed": {"parties": NKey.draw(Kind.USER, SystemRandomness()).seed},
        "a number": {"account": 7},
    }
    texts = {
        "empty": b"",
        "no object": b"[]",
        "not all": b"{}",
        "cut off": json.dumps(keys).encode()[:-9],
        "no text": json.dumps(keys).encode().replace(b"CERTIFICATE", b"\xff", 1),
        "nested": b'{"x":' + b"[" * 100_000,
    }
    return texts[name] if name in texts else json.dumps(keys | changes[name]).encode()


@pytest.mark.parametrize(
    "damage",
    ["empty", "no object", "not all", "cut off", "no text", "nested", "another key",
     "no certificate", "no private key", "a user's seed", "a number"],
)  # fmt: skip
def test_damaged_keys_are_told_and_left_alone(here, tmp_path, monkeypatch, damage):
    monkeypatch.setattr(brokers, "serve_broker", lambda *_: None)
    file = tmp_path / "keys.json"
    file.write_bytes(damaged(damage))
    before = file.read_bytes()
    code, _, err = here("broker", "--keys", tmp_path)
    assert code == 2
    assert_one_line(err, f"{file} holds no broker's keys (", "put back a copy of it, or give")
    assert file.read_bytes() == before


@pytest.mark.parametrize("place", ["a file", "keys.json is a folder"])
def test_a_place_where_no_keys_can_be_is_told(here, tmp_path, place):
    folder = tmp_path / "keys"
    if place == "a file":
        folder.write_text("")
    else:
        (folder / "keys.json").mkdir(parents=True)
    code, _, err = here("broker", "--keys", folder)
    assert code == 2
    assert_one_line(err, str(folder))


def test_a_certificate_that_is_a_folder_is_told(here, tmp_path):
    code, _, err = here("broker", "--certificate", tmp_path, "--key", tmp_path / "key.pem")
    assert code == 2
    assert_one_line(err, f"{tmp_path} does not exist as a file")


def test_keys_that_could_not_be_written_whole_are_not_there(here, tmp_path, monkeypatch):
    """An empty file was left, which is nobody's keys: no restart would have mended that."""
    monkeypatch.setattr(brokers, "serve_broker", lambda *_: None)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full_disk)
        code, _, err = here("broker", "--keys", tmp_path / "keys")
    assert code == 2
    assert_one_line(err, "keys.json cannot be written: No space left on device")
    assert not (tmp_path / "keys" / "keys.json").exists()
    assert here("broker", "--keys", tmp_path / "keys")[0] == 0


def full_disk(_):
    raise OSError(28, "No space left on device")


# ── Secrets ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(small):
    """Nobody waits long for a broker that is not there."""
    study = small / "study.toml"
    study.write_text(study.read_text().replace("lobby_s = 600", "lobby_s = 1"))
    return small


def party(small, *broker, **options):
    """A party that finds no broker."""
    return mpc_rr(
        "party", small / "study.toml", *broker, "--csv", small / "people.csv", "--row", 1, **options
    )


def test_a_password_on_the_command_line_is_noted_without_showing_it(small):
    _, _, err = party(small, "--broker", "mqtt://ann:hunter2@127.0.0.1:1")
    assert "--broker @FILE" in " ".join(err.split())
    assert "hunter2" not in err


def test_an_address_in_a_file_or_variable_is_not_noted_unless_others_can_read_it(small):
    address = small / "address"
    address.touch(mode=0o600)
    address.write_text("mqtt://ann:hunter2@127.0.0.1:1\n")
    variable = {"env": os.environ | {"MPC_RR_BROKER": address.read_text().strip()}}
    for given, options in ((["--broker", f"@{address}"], {}), ([], variable)):
        code, _, err = party(small, *given, **options)
        assert code == 1
        assert "no MQTT broker answers at 127.0.0.1:1" in err
        assert "others on this machine" not in err
    address.chmod(0o644)
    _, _, err = party(small, "--broker", f"@{address}")
    assert "others on this machine can read" in " ".join(err.split())
    assert "hunter2" not in err


def test_the_coordinator_is_told_if_it_has_the_parties_address(small, nats):
    out, _ = run_broker("--json")
    (small / "study.toml").write_text(STUDY)
    variable = {"env": os.environ | {"MPC_RR_BROKER": json.loads(out)["parties"]}}
    code, _, err = mpc_rr("coordinate", small / "study.toml", **variable)
    assert code == 2
    assert_one_line(err, "this is the parties' address")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_missing_password_is_asked_for_without_echo(small):
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [
            sys.executable, "-m", "mpc_rr", "party", str(small / "study.toml"), "--yes", "--broker",
            "mqtt://ann@127.0.0.1:1", "--csv", str(small / "people.csv"), "--row", "1",
        ])  # fmt: skip
    shown = b""

    def read():
        nonlocal shown
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the end of a pseudo-terminal
            return True
        return False

    processes.until(lambda: read() or b"Password of ann at 127.0.0.1:1" in shown, "the question")
    # What is typed before the echo is off is thrown away.
    processes.until(lambda: not termios.tcgetattr(terminal)[3] & termios.ECHO, "no echo")
    os.write(terminal, b"hunter2\n")
    processes.until(read, "the end")
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert b"no MQTT broker answers" in shown
    assert b"hunter2" not in shown
