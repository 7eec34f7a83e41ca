"""An invitation is read as it was written, or refused in one line; what it holds shows nowhere."""

import base64
import zlib

import msgspec
import pytest
from helpers import make_study
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.agents.invitation import LARGEST_CONTENT, LARGEST_TEXT, SCHEME, StudyInvitation
from mpc_rr.crypto.admission import Credential, SigningKey
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS
from mpc_rr.errors import InputError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.definition import study_json
from mpc_rr.study.examples import examples
from mpc_rr.study.file import load_scenario

BOSS = "ab" * (FINGERPRINT_DIGITS // 2)
ADDRESS = "mqtts://user:pass%2Cword@broker.example.org:8883#sha256=" + "cd" * 32
REGISTRAR = SigningKey.draw(SeededRandomness(1))
SECRET = bytes(range(32))
OPEN = make_study(4)
CLOSED = msgspec.structs.replace(OPEN, registrar=REGISTRAR.public.hex())


def admission(study=CLOSED, registrar=REGISTRAR, secret=SECRET):
    return registrar.admit(study.digest, Credential(secret).key_for(study.digest).public)


def invited(study=CLOSED):
    if study.registrar is None:
        return StudyInvitation(study, ADDRESS, BOSS)
    return StudyInvitation(study, ADDRESS, BOSS, SECRET, admission(study))


def content(of=OPEN, **changes):
    fields = {
        "digest": of.digest, "study": study_json(of), "broker": ADDRESS, "coordinator": BOSS,
        "secret": b"", "admission": b"",
    } | changes  # fmt: skip
    return msgspec.msgpack.encode([*fields.values()])


def packed(raw, level=9):
    return SCHEME + base64.urlsafe_b64encode(zlib.compress(raw, level)).decode().rstrip("=")


@pytest.mark.parametrize("study", [OPEN, CLOSED], ids=["open", "registrar"])
def test_an_invitation_is_read_as_it_was_written(study):
    made = invited(study)
    read = StudyInvitation.parse(made.text)
    assert read == made
    assert read.study.digest == study.digest
    assert read.url().with_secrets() == ADDRESS
    assert (read.credential is None) == (study.registrar is None)
    wrapped = "\n".join(made.text[k : k + 70] for k in range(0, len(made.text), 70))
    assert StudyInvitation.parse(f" {wrapped}\r\n") == made


@pytest.mark.parametrize("name", examples())
def test_every_example_fits_into_an_invitation(name):
    made = invited(load_scenario(name).study)
    assert StudyInvitation.parse(made.text).study.digest == made.study.digest
    assert len(made.text) < 3000


def test_nothing_secret_shows():
    made = invited()
    for shown in (repr(made), str(made), f"{made.url()!r}"):
        assert "pass" not in shown
        assert SECRET.hex() not in shown
        assert "secret" not in shown
        assert repr(SECRET) not in shown


@given(st.data())
def test_a_mistyped_invitation_is_refused(data):
    """Whichever character is another one, or is left out."""
    text = TEXT
    place = data.draw(st.integers(len(SCHEME), len(text) - 1))
    other = data.draw(st.sampled_from("ABab01-_").filter(lambda c: c != text[place]))
    for changed in (text[:place] + other + text[place + 1 :], text[:place] + text[place + 1 :]):
        if changed != text:
            with pytest.raises(InputError) as refused:
                StudyInvitation.parse(changed)
            assert "\n" not in str(refused.value)


TEXT = invited().text


def canonical_but_one():
    """The same bytes with another bit at the end, which a decoder of base64 does not look at."""
    made = (packed(content(make_study(parties))) for parties in range(4, 20))
    bare = next(text for text in made if len(text.removeprefix(SCHEME)) % 4)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return bare[:-1] + alphabet[alphabet.index(bare[-1]) ^ 1]


TOO_MANY = msgspec.msgpack.encode([*msgspec.msgpack.decode(content()), 1])
HOSTILE = {
    "a bomb": (packed(bytes(LARGEST_CONTENT + 1)), "holds more than any study does"),
    "a large bomb": (packed(bytes(100 * LARGEST_CONTENT)), "holds more than any study does"),
    "too long": (SCHEME + "A" * LARGEST_TEXT, "too long"),
    "far too long": ("x" * (2 * LARGEST_TEXT + 1), "too long"),
    "a later version": ("mpcrr2:AAAA", "a newer version"),
    "something else": ("https://example.org", "this is no invitation"),
    "nothing": ("", "this is no invitation"),
    "the scheme alone": (SCHEME, "cut off"),
    "no base64": (SCHEME + "!!!!", "cut off"),
    "no zlib": (SCHEME + "AAAA", "cut off"),
    "half of it": (TEXT[: len(TEXT) // 2], "cut off"),
    "more behind it": (
        SCHEME + base64.urlsafe_b64encode(zlib.compress(content()) + b"x").decode().rstrip("="),
        "cut off",
    ),
    "other bits at the end": (canonical_but_one(), "cut off"),
    "a field too many": (packed(TOO_MANY), "cut off"),
    "a map": (packed(msgspec.msgpack.encode({"study": "x"})), "cut off"),
    "deeply nested": (packed(b"\x91" * 100_000), "cut off"),
    "another digest": (packed(content(digest=bytes(32))), "not the one that it names"),
    "no study": (packed(content(study="[]")), "holds no study"),
    "nested study": (packed(content(study="[" * 100_000)), "holds no study"),
    "an unsound study": (
        packed(content(study=study_json(OPEN).replace('"count": 4', '"count": 1'))),
        "the study in the invitation: parties",
    ),
    "another protocol": (
        packed(content(study=study_json(OPEN).replace('"exact_pairs"', '"warner"'))),
        "the study in the invitation: there is no protocol",
    ),
    "a bad address": (packed(content(broker="http://x")), "must look like"),
    "a bad fingerprint": (packed(content(coordinator="x")), "names the coordinator by"),
    "a credential to an open study": (packed(content(secret=SECRET)), "holds no credential"),
    "no credential": (packed(content(CLOSED)), "was not admitted by the registrar"),
    "another's admission": (
        packed(content(CLOSED, secret=bytes(32), admission=admission())),
        "was not admitted by the registrar",
    ),
    "an admission by another registrar": (
        packed(content(CLOSED, secret=SECRET,
                       admission=admission(registrar=SigningKey.draw(SeededRandomness(2))))),
        "was not admitted by the registrar",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_invitation_is_refused_in_one_line(what):
    text, says = HOSTILE[what]
    with pytest.raises(InputError) as refused:
        StudyInvitation.parse(text)
    told = str(refused.value)
    assert says in told
    assert "\n" not in told
    assert len(told) < 500
    assert "pass%2Cword" not in told
    assert SECRET.hex() not in told
