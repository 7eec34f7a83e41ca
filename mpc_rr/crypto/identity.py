"""Who an agent is: an Ed25519 key that signs and an X25519 key to which others seal.

Sealing is HPKE (`mpc_rr.crypto.hpke`). What must be bound to a ciphertext (the envelope's header)
is given as ``info``: it enters the key schedule, so a ciphertext moved under another header does
not open.
"""

import functools
import hashlib
import hmac
import threading

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from mpc_rr.crypto import hpke
from mpc_rr.crypto.pairwise import FIELD, is_key, possession, shared_secret
from mpc_rr.randomness import Randomness

FINGERPRINT_DIGITS = 32
KEY_BYTES = 32
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL_ORDER = frozenset({0, 1, FIELD - 1, _ORDER_8, FIELD - _ORDER_8})
"""The heights (y) of the eight points of small order: anybody can sign for such a key."""


def is_sound_key(public: bytes) -> bool:
    """Whether only one person can sign for this key: it is written as it should be, and a key."""
    if len(public) != KEY_BYTES:
        return False
    height = int.from_bytes(public, "little") & (2**255 - 1)
    return height < FIELD and height not in SMALL_ORDER


@functools.lru_cache(maxsize=65536)
def _verifier(raw: bytes) -> Ed25519PublicKey:
    """``ValueError`` for a key that shows nothing: the library takes those of small order."""
    if not is_sound_key(raw):
        raise ValueError("anyone could sign for this key")
    return Ed25519PublicKey.from_public_bytes(raw)


@functools.lru_cache(maxsize=65536)
def _usable(signing: bytes, sealing: bytes) -> bool:
    """Whether one can verify and seal with these keys: some 32-byte strings are no proper keys."""
    try:
        _verifier(signing)
    except ValueError:
        return False
    return is_key(sealing) and signing != sealing


_at_a_time = threading.Lock()
_seen_good: dict[bytes, None] = {}
"""Digests of signatures that were found good: all parties of a host get the same messages."""
SIGNATURES_KEPT = 65536


def _verified(signing: bytes, signature: bytes, data: bytes) -> bool:
    mark = hashlib.sha256(b"%d\0" % len(signature) + signing + signature + data).digest()
    if mark in _seen_good:
        return True
    try:
        _verifier(signing).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    with _at_a_time:  # studies may run in several threads
        _seen_good[mark] = None
        while len(_seen_good) > SIGNATURES_KEPT:
            del _seen_good[next(iter(_seen_good))]
    return True


class PublicIdentity(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The public half of an identity, as it stands in a roster."""

    signing: bytes
    sealing: bytes

    def __post_init__(self) -> None:
        if len(self.signing) != 32 or len(self.sealing) != 32:
            raise ValueError("a public key has 32 bytes")

    def __repr__(self) -> str:
        return f"PublicIdentity({self.fingerprint})"

    @property
    def digest(self) -> bytes:
        """A digest of both keys."""
        return hashlib.sha256(b"mpc-rr identity\0" + self.signing + self.sealing).digest()

    @property
    def fingerprint(self) -> str:
        """The first 32 hexadecimal digits of the digest (128 bits), for people to compare."""
        return self.digest.hex()[:FINGERPRINT_DIGITS]

    @property
    def usable(self) -> bool:
        """Whether these are proper keys, and two different ones."""
        return _usable(self.signing, self.sealing)

    def verify(self, signature: bytes, data: bytes) -> bool:
        """Whether ``signature`` on ``data`` is this identity's."""
        return _verified(self.signing, signature, data)


class Identity:
    """An agent's private keys. They are never written to a log, a repr or a result."""

    def __init__(self, rng: Randomness) -> None:
        self._signing = Ed25519PrivateKey.from_private_bytes(rng.bytes(32))
        self._sealing = X25519PrivateKey.from_private_bytes(rng.bytes(32))
        self._hedge = hpke.hedge(rng.bytes(hpke.SECRET_BYTES))
        self.public = PublicIdentity(
            self._signing.public_key().public_bytes_raw(),
            self._sealing.public_key().public_bytes_raw(),
        )

    def __repr__(self) -> str:
        return f"Identity({self.public.fingerprint})"

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature on ``data``."""
        return self._signing.sign(data)

    def shared_secret(self, public: bytes) -> bytes:
        """The secret our sealing key shares with another's; ``ValueError`` if that is no key."""
        return shared_secret(self._sealing, public)

    def possession(self, verifier: bytes, statement: bytes) -> bytes:
        """Prove to the owner of another sealing key that ours is ours."""
        return possession(self.shared_secret(verifier), statement)

    def possesses(self, public: bytes, statement: bytes, proof: bytes) -> bool:
        """Whether the proof shows us that who made the statement has the private half of a key."""
        try:
            return hmac.compare_digest(possession(self.shared_secret(public), statement), proof)
        except ValueError:
            return False

    def seal(self, reader: bytes, plaintext: bytes, info: bytes) -> bytes:
        """Encrypt for the owner of a sealing key; it opens only under the same ``info``."""
        return hpke.seal(self._hedge, reader, plaintext, info)

    def open(self, ciphertext: bytes, info: bytes) -> bytes | None:
        """What was sealed to us under ``info``, or None if it does not open."""
        return hpke.open_sealed(self._sealing, ciphertext, info)
