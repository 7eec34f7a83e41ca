"""What a protocol must offer to be named in a study file.

A protocol writes what only it can know: the messages of its rounds, what it discloses, and the
parts of party and coordinator. The rest follows: its steps, whether parties depend on each other,
how long a message may be. ``docs/own-protocol.md`` walks through one.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Self

import msgspec

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.network.envelope import AMONG_PARTIES, Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import AnyDisclosure, Caution, Disclosure
from mpc_rr.protocols.prospects import Prospect
from mpc_rr.publication.cautions import cautions_of
from mpc_rr.publication.ending import AbstractStruct, Ending, Setting
from mpc_rr.publication.parts import Note
from mpc_rr.schema import Record, Schema

SMALLEST = 3
"""Among fewer parties each could tell from a total what the others answered."""
HEAD_BYTES = 65536
"""More than a message takes whose length depends neither on the schema nor on the parties."""
MEMBER_BYTES = 256
"""More than a party's entry in the roster takes."""
PARCEL_BYTES = 768
"""More than a signed and sealed envelope adds to what it holds."""


class StudyProtocol(
    msgspec.Struct,
    metaclass=AbstractStruct,
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
    numbers_may_be_missing: ClassVar[bool] = False
    """Whether it takes no answer (`Attribute.missing_code`) for none where a number is asked."""

    # ── What only a protocol can know ──────────────────────────────────────────────────────────

    messages: ClassVar[tuple[type[Message], ...]] = ()
    """The messages that parties may have to send, in order."""

    @abstractmethod
    def disclosures(self, study: Setting) -> Sequence[Disclosure]:
        """What a party gives away by taking part. Who does not know says `Unstated`."""

    @abstractmethod
    async def party(self, session: PartySession, schema: Schema, record: Record) -> Ending:
        """A party's part."""

    @abstractmethod
    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> Ending:
        """The coordinator's part."""

    # ── What it may say ────────────────────────────────────────────────────────────────────────

    @property
    def smallest_group(self) -> tuple[int, str]:
        """With how few parties it can go on at all, and why."""
        return SMALLEST, "among fewer, each could tell what the others answered"

    def as_chosen(
        self,
        events: Sequence[Disclosure],
        choices: Mapping[str, str],  # noqa: ARG002
    ) -> Sequence[Disclosure]:
        """These disclosures as they are if a party chooses so."""
        return events

    def cautions(self, study: Setting) -> list[Caution]:
        """What this study file allows to happen to a respondent, and what would prevent it."""
        return cautions_of(self.stated(study), study)

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:  # noqa: ARG002
        """Its messages, where they depend on the options or the number of parties."""
        return self.messages

    def check(self, study: Setting) -> None:
        """`InputError` if the options make no sense in this study."""

    def notes(self, study: Setting) -> Sequence[Note]:  # noqa: ARG002
        """What whoever agrees to take part, or reads the result, must know of its limits."""
        return ()

    def prospects(self, study: Setting) -> Sequence[Prospect]:  # noqa: ARG002
        """What this study is too small, or too wide, to find out, and what would help.

        Said to whoever plans it (``mpc-rr check``, and before a study begins), and to whoever is
        asked to take part.
        """
        return ()

    def as_recorded(self, steps: Collection[str]) -> Self:  # noqa: ARG002
        """The same as it was run when a transcript with these steps was made.

        Only where what its options leave open once meant something else.
        """
        return self

    def check_choices(self, study: Setting, choices: Mapping[str, str]) -> None:  # noqa: ARG002
        """`InputError` unless a party may choose these things for itself."""
        if choices:
            raise InputError(
                f"--mask, --candidates, --decide and --least-k do not apply to {self.name}"
            )

    def largest_message_bytes(self, study: Setting) -> int:
        """An upper bound on any of its messages, so that larger ones can be rejected."""
        kinds = self.rounds(study)
        longest = max((kind.most_bytes for kind in kinds), default=0)
        bundled = study.parties if self.needs_roster(study) else 1
        return HEAD_BYTES + study.parties * MEMBER_BYTES + bundled * (longest + PARCEL_BYTES)

    # ── What follows ───────────────────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """Its name in a study file."""
        return str(type(self).__struct_config__.tag)

    def steps(self, study: Setting) -> tuple[str, ...]:
        """The steps in which parties send something, in order."""
        return tuple(kind.step for kind in self.rounds(study))

    def needs_roster(self, study: Setting) -> bool:
        """Whether all parties depend on all: they compare the roster and the result."""
        return any(kind.way in AMONG_PARTIES for kind in self.rounds(study))

    def stated(self, study: Setting) -> tuple[Disclosure, ...]:
        """What it discloses; `InputError` if it does not even say that it does not say."""
        events = tuple(self.disclosures(study) or ())
        if not events:
            raise InputError(
                f"{self.name} does not state what it discloses; if its author cannot say, its "
                "disclosures must be [Unstated()], and parties are told so"
            )
        strangers = [event for event in events if not isinstance(event, AnyDisclosure)]
        if strangers:
            raise InputError(
                f"{self.name} discloses {strangers[0]!r}, which is none of the mechanisms in "
                "mpc_rr.privacy.disclosures"
            )
        named = {name for event in events for name in event.attributes}
        unknown = sorted(named - set(study.schema.names))
        if unknown:
            raise InputError(
                f"it is about {unknown[0]!r}, but the schema has {all_quoted(study.schema.names)}"
            )
        return events
