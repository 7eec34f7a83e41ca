"""What a protocol must offer to be named in a study file."""

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from mpc_rr.errors import InputError
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.ledger import Release
from mpc_rr.protocols.secure_sum import SMALLEST
from mpc_rr.schema import Record, Schema


class _AbstractStruct(msgspec.StructMeta, ABCMeta):
    """Structs of which a subclass that leaves something out cannot be made."""


class Ending(msgspec.Struct, metaclass=_AbstractStruct, frozen=True, kw_only=True):
    """What a protocol gives its agents in the end: a result, or what a party knows of it."""

    lost: dict[str, str] = {}
    """Parties that were left out on the way, and at which step."""

    unconfirmed: tuple[str, ...] = ()
    """Parties whose confirmation of the very same result was not seen."""

    receipt: tuple[bytes, ...] = ()
    """For a party: the signed public messages it sent and the announcements it heard."""

    @property
    @abstractmethod
    def digest(self) -> bytes:
        """By which agents see that they mean the same result."""


class StudyProtocol(
    msgspec.Struct,
    metaclass=_AbstractStruct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="name",
):
    """A protocol with its options: the ``[protocol]`` table of a study file.

    The protocols are its subclasses, one file each; the tag is the name in the study file.
    """

    publishes_values: ClassVar[bool] = False
    """Whether single values are published, so that attributes may be numeric."""

    @abstractmethod
    def steps(self, parties: int) -> tuple[str, ...]:
        """The steps in which so many parties send something, in order."""

    @abstractmethod
    def mutual(self, parties: int) -> bool:
        """Whether all of so many parties depend on all: they compare the roster and the result."""

    @property
    def name(self) -> str:
        """Its name in a study file."""
        return str(type(self).__struct_config__.tag)

    @property
    def fewest(self) -> tuple[int, str]:
        """With how few parties it can go on at all, and why."""
        return SMALLEST, "among fewer, each could tell what the others answered"

    def check(self, schema: Schema, parties: int) -> None:
        """`InputError` if the options make no sense with this schema and so many parties."""

    def check_choices(self, schema: Schema, choices: Mapping[str, str]) -> None:  # noqa: ARG002
        """`InputError` unless a party may choose these things for itself."""
        if choices:
            raise InputError(
                f"{self.name} leaves a party nothing to choose: no masks, no candidates"
            )

    @abstractmethod
    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """An upper bound on any of its messages, so that larger ones can be rejected."""

    @abstractmethod
    def releases(self, study: str, schema: Schema, parties: int) -> list[Release]:
        """What a party gives away by taking part, for its ledger."""

    @abstractmethod
    async def party(self, session: PartySession, schema: Schema, record: Record) -> Ending:
        """A party's part."""

    @abstractmethod
    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> Ending:
        """The coordinator's part."""
