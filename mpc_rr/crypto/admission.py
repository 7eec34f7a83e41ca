"""Admissions: a registrar vouches that a key belongs to one person, and to no other.

A person has one secret, her credential, and for each study an Ed25519 key that follows from it:
two studies show two keys, of which nobody else can tell that they are hers. With a request she
shows the registrar that she has the key; the registrar, who knows her, signs it for that study: the
admission. In a run she proves with it that the identity she joins with is hers. Admissions that no
longer count stand on the registrar's signed list of withdrawals.
"""

import functools
from collections.abc import Collection, Iterable, Sequence

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mpc_rr.crypto.identity import KEY_BYTES, PublicIdentity, is_sound_key
from mpc_rr.randomness import Randomness


class SigningKey:
    """A registrar's or a person's private key. It shows in no repr."""

    def __init__(self, private: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._private.public_key().public_bytes_raw()

    @classmethod
    def draw(cls, rng: Randomness) -> "SigningKey":
        """A fresh key."""
        return cls(rng.bytes(KEY_BYTES))

    def __repr__(self) -> str:
        return f"SigningKey({self.public.hex()[:16]}…)"

    def private_hex(self) -> str:
        """For its owner's file."""
        return self._private.private_bytes_raw().hex()

    def request(self, study_digest: bytes, registrar: bytes, name: str = "") -> bytes:
        """A person's signature: I have this key, and ask this registrar to admit it to a study,
        under this name if there is one."""
        return self._private.sign(_request(study_digest, registrar, self.public, name))

    def admit(self, study_digest: bytes, person: bytes) -> bytes:
        """A registrar's signature: this key belongs to a person who has no other in this study."""
        return self._private.sign(_admission(study_digest, person))

    def withdraw(self, study_digest: bytes, number: int, persons: Iterable[bytes]) -> "Withdrawals":
        """A registrar's list of the admissions to a study that no longer count."""
        keys = tuple(sorted(persons))
        return Withdrawals(
            study_digest, number, keys, self._private.sign(_withdrawals(study_digest, number, keys))
        )

    def prove(self, run: bytes, identity: PublicIdentity) -> bytes:
        """A person's signature: in this run, this identity is mine."""
        return self._private.sign(_proof(run, identity))


class Credential:
    """A person's one secret, from which her key for each study follows. It shows in no repr."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a credential has {KEY_BYTES} bytes")
        self._secret = secret

    @classmethod
    def draw(cls, rng: Randomness) -> "Credential":
        """A fresh one."""
        return cls(rng.bytes(KEY_BYTES))

    def __repr__(self) -> str:
        return "Credential(…)"

    def secret_hex(self) -> str:
        """For its owner's file."""
        return self._secret.hex()

    def key_for(self, study_digest: bytes) -> SigningKey:
        """The person's key for one study: always the same, and unlike her key for any other."""
        info = b"mpc-rr person key v1" + study_digest
        return SigningKey(HKDF(hashes.SHA256(), KEY_BYTES, None, info).derive(self._secret))


class Pass(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A person's key, the registrar's admission of it, and the proof for one run."""

    person: bytes
    admission: bytes
    proof: bytes


class Withdrawals(msgspec.Struct, frozen=True):
    """The admissions to one study that its registrar has withdrawn, by the persons' keys.

    ``number`` rises with every withdrawal: of two lists the higher one counts.
    """

    study_digest: bytes
    number: int
    persons: tuple[bytes, ...]
    signature: bytes


def _request(study_digest: bytes, registrar: bytes, person: bytes, name: str) -> bytes:
    head = b"mpc-rr request for admission v2\0" if name else b"mpc-rr request for admission v1\0"
    return head + study_digest + registrar + person + name.encode()


def _withdrawals(study_digest: bytes, number: int, persons: Sequence[bytes]) -> bytes:
    rank = number.to_bytes(8, "big")
    return b"mpc-rr withdrawals v1\0" + study_digest + rank + b"".join(persons)


def _admission(study_digest: bytes, person: bytes) -> bytes:
    return b"mpc-rr admission v1\0" + study_digest + person


def _proof(run: bytes, identity: PublicIdentity) -> bytes:
    return b"mpc-rr proof of identity v1\0" + run + identity.signing + identity.sealing


@functools.lru_cache(maxsize=4096)
def _verified(public: bytes, signature: bytes, data: bytes) -> bool:
    """Remembered for a while: all parties of a host check the same passes.

    Under a key for which anybody can sign, a signature shows nothing: a registrar's, too.
    """
    if not is_sound_key(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def requested(
    registrar: bytes, study_digest: bytes, person: bytes, signature: bytes, name: str = ""
) -> bool:
    """Whether somebody who has this key asks this registrar to admit it to this study, under this
    name or, if it is empty, under any."""
    return _verified(person, signature, _request(study_digest, registrar, person, name))


def withdrawals_fault(listed: Withdrawals, registrar: bytes, study_digest: bytes) -> str | None:
    """Why this is no list of withdrawals by this registrar for this study, or None."""
    if listed.study_digest != study_digest:
        return "it is for another study, or for another version of its file"
    if not 0 <= listed.number < 2**64 or any(len(key) != KEY_BYTES for key in listed.persons):
        return "it is damaged"
    signed = _withdrawals(listed.study_digest, listed.number, listed.persons)
    if not _verified(registrar, listed.signature, signed):
        return "the study's registrar has not signed it, or not as it is now"
    return None


def admitted(registrar: bytes, study_digest: bytes, person: bytes, admission: bytes) -> bool:
    """Whether the registrar has admitted this person to this study."""
    return is_sound_key(person) and _verified(
        registrar, admission, _admission(study_digest, person)
    )


def pass_fault(
    shown: Pass,
    registrar: bytes,
    study_digest: bytes,
    run: bytes,
    identity: PublicIdentity,
    withdrawn: Collection[bytes] = (),
) -> str | None:
    """Why this is no proper pass for this identity in this run, or None.

    ``withdrawn``: the keys of the persons whose admissions no longer count.
    """
    if not admitted(registrar, study_digest, shown.person, shown.admission):
        return "the registrar has not admitted it to this study"
    if shown.person in withdrawn:
        return "the registrar has withdrawn this admission (it is on its list of withdrawals)"
    if not _verified(shown.person, shown.proof, _proof(run, identity)):
        return "its pass belongs to someone else"
    return None
