"""An invitation to a study: one text with all that a respondent needs to take part.

It holds the study itself, the broker's address with its certificate's fingerprint, the
coordinator's fingerprint and, where the study has a registrar, a credential with its admission. It
is ``mpcrr1:`` and the base64url of a zlib stream of msgpack. Whoever has it can take part in the
name of the person it was made for: it is a secret, and shows in no repr.
"""

import base64
import binascii
import re
import zlib

import msgspec

from mpc_rr.agents.terms import Admitted
from mpc_rr.crypto.admission import Credential, admitted
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS, KEY_BYTES
from mpc_rr.errors import InputError, MpcRrError
from mpc_rr.network.address import BrokerUrl
from mpc_rr.study.checks import check_study
from mpc_rr.study.definition import Study, study_from_json, study_json

SCHEME = "mpcrr1:"
LARGEST_TEXT = 2**20
"""So many characters may it have; studies with thousands of categories have some ten thousand."""
LARGEST_CONTENT = 4 * 2**20
"""So many bytes may come out of it: more is an attack."""
_SHAPE = re.compile(r"mpcrr1:[A-Za-z0-9_-]+")
_FINGERPRINT = re.compile(rf"[0-9a-f]{{{FINGERPRINT_DIGITS}}}")
CUT_OFF = "the invitation is cut off or mistyped; copy the whole of it again"


class _Content(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is in it, in this order for ever."""

    digest: bytes
    study: str
    broker: str
    coordinator: str
    secret: bytes
    admission: bytes

    def __repr__(self) -> str:
        return "_Content(…)"


class StudyInvitation(msgspec.Struct, frozen=True):
    """All that a respondent needs. Nothing that is secret shows in a repr."""

    study: Study
    broker: str
    """The address as a party is given it; it may have the right to enter in it."""
    coordinator: str
    """The fingerprint of the only coordinator that is to be believed."""
    secret: bytes = b""
    """Where the study has a registrar: the credential that was made for this person."""
    admission: bytes = b""
    """And the registrar's signature on its key for this study."""

    def __post_init__(self) -> None:
        if _FINGERPRINT.fullmatch(self.coordinator) is None:
            raise InputError(
                f"an invitation names the coordinator by the {FINGERPRINT_DIGITS} hexadecimal "
                "digits that it prints when it starts"
            )
        self.url()
        if self.study.registrar is None and (self.secret or self.admission):
            raise InputError("an invitation to an open study holds no credential")
        if self.study.registrar is not None and self.credential is None:
            raise InputError(
                "the invitation's credential was not admitted by the registrar of its study"
            )

    def __repr__(self) -> str:
        return f"StudyInvitation({self.study.name!r}, …)"

    def url(self, proxy: str | None = None) -> BrokerUrl:
        """Where the study takes place."""
        return BrokerUrl.parse(self.broker, None, proxy)

    @property
    def credential(self) -> Admitted | None:
        """The person's key for the study and its admission; None if there is none that holds."""
        registrar = self.study.registrar_key
        if registrar is None or len(self.secret) != KEY_BYTES:
            return None
        key = Credential(self.secret).key_for(self.study.digest)
        good = admitted(registrar, self.study.digest, key.public, self.admission)
        return (key, self.admission) if good else None

    @property
    def text(self) -> str:
        """The whole of it, for whom it is meant: `parse` reads it."""
        content = msgspec.msgpack.encode(
            _Content(
                self.study.digest, study_json(self.study), self.broker, self.coordinator,
                self.secret, self.admission,
            )
        )  # fmt: skip
        packed = base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")
        if len(content) > LARGEST_CONTENT or len(packed) + len(SCHEME) > LARGEST_TEXT:
            raise InputError("the study is too large for an invitation")
        return SCHEME + packed

    @classmethod
    def parse(cls, text: str) -> "StudyInvitation":
        """Read the `text` of an invitation; `InputError` says in one line why it is none.

        Spaces and ends of lines in it, as mail programs put them there, do not count.
        """
        if len(text) > 2 * LARGEST_TEXT:
            raise InputError("this is too long for an invitation")
        bare = "".join(text.split())
        if not bare.startswith(SCHEME):
            version = re.match(r"mpcrr([0-9]{1,3}):", bare)
            raise InputError(
                "the invitation was made by a newer version of mpc-rr; update this one"
                if version
                else f"this is no invitation: it would begin with {SCHEME}"
            )
        if len(bare) > LARGEST_TEXT:
            raise InputError("this is too long for an invitation")
        if _SHAPE.fullmatch(bare) is None:
            raise InputError(CUT_OFF)
        content = _unpacked(bare.removeprefix(SCHEME))
        study = _study(content)
        return cls(study, content.broker, content.coordinator, content.secret, content.admission)


def _unpacked(packed: str) -> _Content:
    """What was packed, if it was packed in the one way there is."""
    try:
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        if base64.urlsafe_b64encode(raw).decode().rstrip("=") != packed:
            raise InputError(CUT_OFF)
        stream = zlib.decompressobj()
        content = stream.decompress(raw, LARGEST_CONTENT)
        if stream.unconsumed_tail and not stream.eof:
            raise InputError("the invitation holds more than any study does; it was refused")
        if not stream.eof or stream.unused_data:
            raise InputError(CUT_OFF)
        return msgspec.msgpack.decode(content, type=_Content)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise InputError(CUT_OFF) from None


def _study(content: _Content) -> Study:
    """The study in it, which must have the digest that is given."""
    try:
        study = study_from_json(content.study)
        check_study(study)
    except MpcRrError as error:
        raise InputError(f"the study in the invitation: {error}") from None
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise InputError("the invitation holds no study that this version can read") from None
    if study.digest != content.digest:
        raise InputError("the study in the invitation is not the one that it names")
    return study
