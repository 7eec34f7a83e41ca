"""Admissions: a registrar vouches that a key belongs to one person, and to no other.

A person has an Ed25519 key of her own. The registrar, who knows her, signs that key for one study:
the admission. In a run she proves with her key that the identity she joins with is hers.
"""

import functools

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.randomness import Randomness

KEY_BYTES = 32


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

    def admit(self, study_digest: bytes, person: bytes) -> bytes:
        """A registrar's signature: this key belongs to a person who has no other in this study."""
        return self._private.sign(_admission(study_digest, person))

    def prove(self, run: bytes, identity: PublicIdentity) -> bytes:
        """A person's signature: in this run, this identity is mine."""
        return self._private.sign(_proof(run, identity))


class Pass(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A person's key, the registrar's admission of it, and the proof for one run."""

    person: bytes
    admission: bytes
    proof: bytes


def _admission(study_digest: bytes, person: bytes) -> bytes:
    return b"mpc-rr admission v1\0" + study_digest + person


def _proof(run: bytes, identity: PublicIdentity) -> bytes:
    return b"mpc-rr proof of identity v1\0" + run + identity.signing + identity.sealing


@functools.lru_cache(maxsize=4096)
def _verified(public: bytes, signature: bytes, data: bytes) -> bool:
    """Remembered for a while: all parties of a host check the same passes."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def admitted(registrar: bytes, study_digest: bytes, person: bytes, admission: bytes) -> bool:
    """Whether the registrar has admitted this person to this study."""
    return len(person) == KEY_BYTES and _verified(
        registrar, admission, _admission(study_digest, person)
    )


def pass_fault(
    shown: Pass, registrar: bytes, study_digest: bytes, run: bytes, identity: PublicIdentity
) -> str | None:
    """Why this is no proper pass for this identity in this run, or None."""
    if not admitted(registrar, study_digest, shown.person, shown.admission):
        return "the registrar has not admitted it to this study"
    if not _verified(shown.person, shown.proof, _proof(run, identity)):
        return "its pass belongs to somebody else"
    return None
