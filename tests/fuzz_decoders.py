"""Everything that reads what others wrote, with samples to damage and what it may raise."""

import base64
import binascii
import datetime as dt
import functools
import json
import math
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from helpers import make_study
from mutating import changed, changed_bytes, changed_msgpack, changed_text

from mpc_rr.agents.handing_out import Said
from mpc_rr.agents.invitation import StudyInvitation
from mpc_rr.agents.ledger_file import read_ledger
from mpc_rr.agents.register import Register
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawals_text
from mpc_rr.cli.admissions import read_pass
from mpc_rr.crypto.admission import Credential, SigningKey
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS, Identity
from mpc_rr.curator.codebook import read_codebook
from mpc_rr.curator.randomizing import randomize_frame
from mpc_rr.errors import InputError
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.envelope import Header, Message, decode, encode
from mpc_rr.network.fragments import Assembler, batch, cut, token_of, unbatch
from mpc_rr.network.rights import BrokerKeys, Invitation
from mpc_rr.network.sealed import Rejected, read, understood, write
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.closing import STEP, Closing, closing_text, read_closing
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.definition import definition_from_json, study_json
from mpc_rr.study.file import load_scenario, schema_of_tables
from mpc_rr.study.records import read_csv, read_record

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
ALICE, BOB = Identity(SeededRandomness(1)), Identity(SeededRandomness(2))
RUN = bytes(range(32))
REGISTRAR = SigningKey.draw(SeededRandomness(3))
SCHEMA = Schema(
    (
        Attribute("place", "nominal", ("city", "village")),
        Attribute("age", "numeric", (), lowest=0, highest=120, step=1),
    )
)


@dataclass
class Case:
    """What is being played, for whoever must play it again."""

    about: str = ""
    input: str = ""


@dataclass(frozen=True)
class Decoder:
    """A reader of bytes: samples that it reads, and what it raises if it cannot."""

    reads: Callable[[bytes], object]
    samples: Callable[[], Sequence[bytes]]
    raises: tuple[type[Exception], ...]


# ── The wire ───────────────────────────────────────────────────────────────────────────────────


def every_message(kind=Message):
    """All kinds of messages of the package."""
    for child in kind.__subclasses__():
        if child.__module__.startswith("mpc_rr.") and hasattr(child, "step"):
            yield child
        yield from every_message(child)


@functools.cache
def _messages():
    """The frozen samples of all kinds, from Alice to Bob; private ones are sealed."""
    return tuple(
        write(_header(kind.step), msgspec.Raw(body), ALICE, BOB.public if kind.sealed else None)
        for kind, body in _bodies().values()
    )


def _header(step):
    return Header(2, "study", RUN, "attempt-1", step, "alice", "bob")


@functools.cache
def _bodies():
    frozen = json.loads((ROOT / "tests" / "vectors" / "wire-v2.json").read_text())["bodies"]
    kinds = {kind.step: kind for kind in every_message()}
    return {step: (kinds[step], bytes.fromhex(body)) for step, body in frozen.items()}


def _read_message(raw):
    """As an agent does: what is let through was signed by Alice exactly as it is."""
    opened = read(raw, study="study", runs=(RUN,), targets=("bob", "*"), versions=(1, 2))
    if opened.signed_by(ALICE.public):
        assert raw in _messages(), "Alice signed no such message"
    for kind, _ in _bodies().values():
        if kind.step == opened.envelope.header.step:
            return understood(opened, kind, BOB)
    return None


def _read_body(raw):
    """A signed envelope whose body is what was changed: it has one meaning."""
    step, _, body = raw.partition(b"\0")
    kind = _bodies()[step.decode()][0]
    opened = read(
        write(_header(kind.step), msgspec.Raw(body), ALICE, BOB.public if kind.sealed else None),
        study="study", runs=(RUN,), targets=("bob",),
    )  # fmt: skip
    message = understood(opened, kind, BOB)
    repr(message)
    again = encode(message)
    assert msgspec.msgpack.decode(again, type=kind) == message, "it is read in two ways"
    return message


def _body_samples():
    return [step.encode() + b"\0" + body for step, (_, body) in _bodies().items()]


def _unbatch(raw):
    for reader, message in unbatch(raw) or ():
        assert isinstance(reader, str)
        assert isinstance(message, bytes)
    token_of(raw, 16)


def _assemble(raw):
    """The payloads of a connection, each with its length (two bytes) before it."""
    assembler = Assembler(4096)
    while raw:
        length, raw = int.from_bytes(raw[:2], "big"), raw[2:]
        made = assembler.add("alice" if length % 2 else "bob", raw[:length])
        assert made is None or len(made) <= len(raw) + 4096
        raw = raw[length:]
        assert assembler._total <= 4096
        assert assembler._total == sum(assembler._held.values())


def _payloads():
    pieces = cut(bytes(range(200)), SeededRandomness(4), 60)
    joined = b"".join(len(piece).to_bytes(2, "big") + piece for piece in pieces)
    return [joined, joined + joined, b"\0\2\0x"]


# ── Addresses ──────────────────────────────────────────────────────────────────────────────────


def _read_address(raw):
    url = BrokerUrl.parse(raw.decode())
    repr(url)
    assert BrokerUrl.parse(url.with_secrets()) == url, "it is not written as it is read"


@functools.cache
def _keys():
    return BrokerKeys.draw(SeededRandomness(5), "", "")


@functools.cache
def _kept_keys():
    """Keys of a broker as they are kept, the same in every process."""
    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    day = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day)
    pem, no_password = serialization.Encoding.PEM, serialization.NoEncryption()
    certificate = builder.sign(key, None).public_bytes(pem).decode()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, no_password).decode()
    return [msgspec.json.encode(BrokerKeys.draw(SeededRandomness(5), certificate, private))]


def _addresses():
    invitation = _keys().coordinator_invitation
    return [
        b"mqtt://localhost:1883",
        b"mqtts://user:p%40ss@broker.example.org:8883#sha256=" + b"ab" * 32,
        b"mqtt://one:1883,mqtt://two:1884,mqtt://[::1]:1885",
        f"mqtts://coordinator-invitation:{invitation}@host:8883".encode(),
    ]


def _read_study_invitation(raw):
    found = StudyInvitation.parse(raw.decode())
    assert "secret" not in repr(found)
    assert StudyInvitation.parse(found.text) == found, "it is not written as it is read"


def packed(content):
    """An invitation with this inside."""
    return b"mpcrr1:" + base64.urlsafe_b64encode(zlib.compress(content, 9)).rstrip(b"=")


def _contents():
    texts = [made.removeprefix(b"mpcrr1:") for made in _study_invitations()]
    return [
        zlib.decompress(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))) for text in texts
    ]


@functools.cache
def _study_invitations():
    """To an open study, and of one person to one with a registrar."""
    credential = Credential(bytes(range(32)))
    key = credential.key_for(_study().digest)
    admission = REGISTRAR.admit(_study().digest, key.public)
    address, boss = _addresses()[1].decode(), "ab" * (FINGERPRINT_DIGITS // 2)
    made = [
        StudyInvitation(make_study(4), address, boss),
        StudyInvitation(_study(), address, boss, bytes(range(32)), admission),
    ]
    return [one.text.encode() for one in made]


def _read_proxy(raw):
    repr(BrokerUrl.parse("mqtt://host:1883", proxy=raw.decode()))


# ── Files ──────────────────────────────────────────────────────────────────────────────────────


def _in_file(reader, name):
    """A reader of bytes, made of one of files."""

    def reads(raw):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(raw)
            return reader(path)

    return reads


def _study_files():
    return [path.read_bytes() for path in sorted((ROOT / "scenarios").glob("*.toml"))]


@functools.cache
def _study():
    admitting = msgspec.structs.replace(make_study(4), registrar=REGISTRAR.public.hex())
    assert admitting.registrar_key == REGISTRAR.public
    return admitting


def _ledgers():
    took_part = {
        "study": "s", "promise": "ab" * 32, "digest": "cd" * 32, "record": "02ab", "events": [],
        "runs": [{"run": "ab" * 32, "keys": "cd" * 32, "roster": "", "parties": 4}],
        "answered": {"answer": "ab" * 32},
    }  # fmt: skip
    ledger = {"version": 2, "secret": "ab" * 32, "participations": [took_part]}
    entry = {
        "study": "s", "mechanism": "m", "attributes": ["a"], "epsilon": 1.0, "claimed": None,
        "crowd": None,
    }  # fmt: skip
    enrolment = {"digest": "ab" * 32, "record": "cd" * 32, "drawn": {"answer": "AQI="}}
    first = {"version": 1, "releases": [entry], "enrolments": {"s": enrolment}}
    return [json.dumps(one).encode() for one in (ledger, first)]


def _passes():
    key = SigningKey.draw(SeededRandomness(6))
    admission = REGISTRAR.admit(_study().digest, key.public).hex()
    book = {
        "kind": "mpc-rr pass", "key": key.private_hex(),
        "admissions": {_study().digest.hex(): admission},
        "withdrawals": {_study().digest.hex(): 3},
    }  # fmt: skip
    return [json.dumps(book).encode()]


def _registers():
    register = Register(REGISTRAR)
    first = {"kind": "mpc-rr registrar", "key": "ab" * 32, "admitted": {"cd": {"ann": "ef" * 32}}}
    return [register.text().encode(), json.dumps(first).encode()]


def _withdrawals():
    return [withdrawals_text(_listed()).encode()]


@functools.cache
def _listed():
    persons = (bytes(32), bytes(range(32)))
    return REGISTRAR.withdraw(_study().digest, 2, persons)


def _read_withdrawals(path):
    found = read_withdrawals(path, _study())
    assert found == _listed(), "the registrar signed another list"


def _read_closing(raw):
    opened, statement = read_closing(raw.decode(), "study", RUN)
    if opened.signed_by(ALICE.public):
        assert raw == _closings()[0], f"Alice signed no such statement: {statement}"


@functools.cache
def _closings():
    header = Header(2, "study", RUN, "verdict", STEP, "coordinator", "*")
    statement = Closing(
        messages=3, transcript=bytes(32), result=bytes(32), rules=1, transport="memory",
        seed="1", absent=(), rejected_messages={"duplicate": 1}, files={"cost.json": bytes(32)},
    )  # fmt: skip
    raw = write(header, statement, ALICE)
    return (closing_text(raw, "study", RUN).encode(),)


def _definitions():
    return [study_json(_study()).encode()]


@functools.cache
def _codebooks():
    """Of every way to randomize a column; bins with infinite edges are in it, too."""
    frame = {
        "place": ["city", "village"] * 5, "age": [*range(20, 30)],
        "size": [3, 1, 4, 1, 5, 9, 2, 6, 5, 8],
        "pay": [*range(0, 100, 10)], "mood": ["low", "high"] * 5, "work": ["no", "yes"] * 5,
    }  # fmt: skip
    number = {"type": "numeric", "lowest": 0, "highest": 120}
    schema = schema_of_tables({
        "place": {"categories": ["city", "village"]}, "age": number, "size": number,
        "pay": {"bins": [-math.inf, 50, math.inf]}, "mood": {"categories": ["low", "high"]},
        "work": {"categories": ["no", "yes"]},
    })  # fmt: skip
    ways = {
        "mood": {"matrix": [[0.9, 0.1], [0.2, 0.8]]}, "work": {"beta": 0.4, "invariant": True},
        "pay": {"as_it_is": True},
    }  # fmt: skip
    both = [{"columns": ["age", "size"], "noise": 2.0}]
    alone = {"age": {"epsilon": 1}, "size": {"deviation": 20}}
    made = [
        randomize_frame(frame, schema=schema, keep=0.5, seed=1, columns=ways, correlated=both),
        randomize_frame(frame, schema=schema, epsilon=2, seed=1, columns=ways | alone),
    ]
    with tempfile.TemporaryDirectory() as folder:
        return [m.save(Path(folder) / f"{k}.csv").read_bytes() for k, m in enumerate(made)]


DECODERS = {
    "codebook": Decoder(_in_file(read_codebook, "codebook.json"), _codebooks, (InputError,)),
    "message": Decoder(_read_message, _messages, (Rejected, ValueError)),
    "body": Decoder(_read_body, _body_samples, (Rejected, ValueError, KeyError)),
    "batch": Decoder(_unbatch, lambda: [batch([("alice", b"x"), ("bob", b"yz")])], ()),
    "pieces": Decoder(_assemble, _payloads, ()),
    "address": Decoder(_read_address, _addresses, (InputError, UnicodeDecodeError)),
    "proxy": Decoder(
        _read_proxy, lambda: [b"socks5://localhost:9050"], (InputError, UnicodeDecodeError)
    ),
    "invitation": Decoder(
        lambda raw: Invitation.parse(raw.decode()),
        lambda: [_keys().coordinator_invitation.encode()], (ValueError,),
    ),
    "study-invitation": Decoder(
        _read_study_invitation, _study_invitations, (InputError, UnicodeDecodeError)
    ),
    "invitation-content": Decoder(
        lambda raw: _read_study_invitation(packed(raw)), _contents,
        (InputError, UnicodeDecodeError),
    ),
    "keys": Decoder(BrokerKeys.read, _kept_keys, (ValueError,)),
    "study": Decoder(_in_file(load_scenario, "study.toml"), _study_files, (InputError,)),
    "definition": Decoder(
        lambda raw: definition_from_json(raw.decode()), _definitions, (ValueError, InputError)
    ),
    "record": Decoder(
        _in_file(lambda path: read_record(path, SCHEMA), "record.json"),
        lambda: [b'{"place": "city", "age": 31}'], (InputError,),
    ),
    "record-toml": Decoder(
        _in_file(lambda path: read_record(path, SCHEMA), "record.toml"),
        lambda: [b'place = "city"\nage = 31\n'], (InputError,),
    ),
    "csv": Decoder(
        _in_file(lambda path: read_csv(path, SCHEMA), "records.csv"),
        lambda: [b'place,age\ncity,31\n"village",0\n'], (InputError,),
    ),
    "ledger": Decoder(_in_file(read_ledger, "account.json"), _ledgers, (InputError,)),
    "pass": Decoder(
        _in_file(lambda path: read_pass(path, _study()), "pass.json"), _passes, (InputError,)
    ),
    "register": Decoder(Register.read, _registers, (ValueError,)),
    "withdrawals": Decoder(_in_file(_read_withdrawals, "list.json"), _withdrawals, (InputError,)),
    "closing": Decoder(_read_closing, _closings, (ValueError,)),
    "handed-out": Decoder(
        lambda raw: decode(raw, Said), lambda: [encode(Said(b"closing", (b"x", b"yz")))],
        (ValueError,),
    ),
}  # fmt: skip


def decode_with(name, raw):
    """Read these bytes; whatever a decoder may not raise goes on."""
    decoder = DECODERS[name]
    try:
        decoder.reads(raw)
    except decoder.raises:
        return False
    return True


def corpus():
    """The inputs that were kept: their decoder, their file's name, their bytes."""
    for path in sorted(CORPUS.glob("*/*")):
        text = path.read_bytes()
        raw = binascii.unhexlify(b"".join(text.split())) if path.suffix == ".hex" else text
        yield path.parent.name, path.name, raw


def _changed_json(rng, raw):
    try:
        return json.dumps(changed(rng, json.loads(raw))).encode()
    except (ValueError, TypeError):
        return changed_bytes(rng, raw)


def _changed_sample(rng, name, raw):
    if name in ("message", "batch", "pieces", "handed-out", "invitation-content"):
        return changed_msgpack(rng, raw) if rng.random() < 0.4 else changed_bytes(rng, raw)
    if name == "body":
        step, _, body = raw.partition(b"\0")
        return step + b"\0" + changed_msgpack(rng, body)
    if raw[:1] == b"{" and rng.random() < 0.6:
        return _changed_json(rng, raw)
    if rng.random() < 0.15:
        return changed_bytes(rng, raw)
    try:
        return changed_text(rng, raw.decode()).encode(errors="surrogatepass")
    except UnicodeDecodeError:
        return changed_bytes(rng, raw)


def play(rng, case):
    """Read one damaged sample."""
    case.about = name = rng.choice(list(DECODERS))
    raw = rng.choice(DECODERS[name].samples())
    for _ in range(rng.choice((1, 1, 2, 4))):
        raw = _changed_sample(rng, name, raw)
    case.input = raw.hex()[:20_000]
    decode_with(name, raw)
