"""Keys and signed claims as NATS writes them: nkeys, and JSON web tokens that they sign.

An nkey is an Ed25519 key in base32: a byte for what it belongs to (operator, account or user), the
key, and a CRC-16 against typing errors. A seed, the private half, begins with S. A token is a JWT
whose algorithm is ``ed25519-nkey``: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt
"""

import base64
import binascii
import hashlib
import json
import time
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mpc_rr.randomness import Randomness

_SEED = 18 << 3
_KEY_BYTES = 32
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class Kind(IntEnum):
    """Whom a key belongs to: its first byte, which makes its first letter."""

    ACCOUNT = 0
    OPERATOR = 14 << 3
    USER = 20 << 3


class NKey:
    """A private key of an operator, an account or a user. It shows in no repr."""

    def __init__(self, kind: Kind, private: bytes) -> None:
        self._kind, self._private = kind, Ed25519PrivateKey.from_private_bytes(private)
        self.public = _encode(bytes([kind]), self._private.public_key().public_bytes_raw())

    @classmethod
    def draw(cls, kind: Kind, rng: Randomness) -> "NKey":
        """A fresh key."""
        return cls(kind, rng.bytes(_KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: str) -> "NKey":
        """A key from its `seed`; ``ValueError`` if it is none, or mistyped."""
        raw = _decode(seed)
        if len(raw) != 2 + _KEY_BYTES or raw[0] & 0xF8 != _SEED:
            raise ValueError("not a seed")
        return cls(Kind((raw[0] & 7) << 5 | raw[1] >> 3), raw[2:])

    def __repr__(self) -> str:
        return f"NKey({self.public})"

    @property
    def seed(self) -> str:
        """The private key, for its owner's file or address."""
        prefix = bytes([_SEED | self._kind >> 5, (self._kind & 31) << 3])
        return _encode(prefix, self._private.private_bytes_raw())

    def token(self, subject: str, name: str, claims: Mapping[str, Any]) -> str:
        """A token in which this key says something of the key ``subject``; it never expires."""
        document = {"iat": int(time.time()), "iss": self.public, "name": name, "sub": subject}
        document["nats"] = {**claims, "version": 2}
        # The identifier of a token is a digest of all else that it says.
        digest = hashlib.new("sha512_256", _compact(document)).digest()
        document["jti"] = base64.b32encode(digest).decode().rstrip("=")
        text = b".".join(map(_unpadded, (_compact(_HEADER), _compact(document))))
        return b".".join((text, _unpadded(self._private.sign(text)))).decode()


def is_public_key(text: str, kind: Kind) -> bool:
    """Whether this is a public key of such an owner, without a typing error."""
    try:
        raw = _decode(text)
    except ValueError:
        return False
    return len(raw) == 1 + _KEY_BYTES and raw[0] == kind


def _encode(prefix: bytes, key: bytes) -> str:
    raw = prefix + key
    return base64.b32encode(raw + _checksum(raw)).decode().rstrip("=")


def _decode(text: str) -> bytes:
    raw = base64.b32decode(text + "=" * (-len(text) % 8))  # binascii.Error is a ValueError
    if _checksum(raw[:-2]) != raw[-2:]:
        raise ValueError("a digit is wrong or missing")
    return raw[:-2]


def _checksum(raw: bytes) -> bytes:
    return binascii.crc_hqx(raw, 0).to_bytes(2, "little")


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _unpadded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
