"""Collaborative masking (paper 004, Protocol 2): see everybody's values, then mask one's own.

1. Each respondent commits to a die and opens it; the dice draw the relays of the channel.
2. Each sends each of her confidential values, alone, through the anonymous channel
   (`mpc_rr.protocols.mix.cascade`). Now everybody knows the values of each attribute, and nobody
   whose they are, nor which belong together.
3. Each masks her own values, knowing among which others they are to hide, and is told how many
   candidates an attacker is left with who knows her mask. If she wants more of them, the mask is
   widened, alike for everybody who chose the same: by the values of all, never by her own. She may
   have chosen beforehand, have given a rule, or decide now (`mpc_rr.anonymization.deciding`); if
   she does not in time, the recommended mask is used, or she withdraws where none is.
4. Each posts her other attributes, as they are, and her masked values, under her name.
5. Reverse mapping: in each attribute, every masked value is replaced by the original one of equal
   rank. Everybody does it and finds the same; the release has exactly the original values, in
   another order. Equal masked values are ordered by public randomness.

Where an attribute need not be answered, no answer is a message like any other in step 2, and is
posted as such in step 4: it has no rank, so there is nothing among which a mask could hide it.
Ranks are those of who answered.

Whoever leaves after the values were read has given them already (nobody knows which they are), but
has no row in the release.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec
import numpy as np

from mpc_rr.anonymization.deciding import Asked, decided_by_rule, read_rule
from mpc_rr.anonymization.perturbation import (
    ChosenValue,
    NoPerturbation,
    Perturbation,
    Widened,
    read_perturbation,
    wide_enough,
)
from mpc_rr.anonymization.table import Codes
from mpc_rr.errors import Declined, InputError, Misconduct, key
from mpc_rr.network.envelope import COORDINATOR, Message
from mpc_rr.network.session import Check, CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import UNDECIDED, Caution, Disclosure, Masked, Told
from mpc_rr.protocols.board.board import (
    ENTRY_BYTES,
    Board,
    Posted,
    check_enough_present,
    post_coordinator,
    post_party,
)
from mpc_rr.protocols.board.commitment import (
    Commitments,
    Openings,
    commit_coordinator,
    commit_party,
)
from mpc_rr.protocols.collaborative_k_anonymity import AS_PUBLISHED, CODE_BYTES, check_roles
from mpc_rr.protocols.interface import HEAD_BYTES, StudyProtocol
from mpc_rr.protocols.mix.batch import MIX_ROUNDS, Cascade, RelayKeys
from mpc_rr.protocols.mix.cascade import (
    Delivered,
    mix_coordinator,
    mix_party,
    post_keys_coordinator,
    post_keys_party,
    relay_role,
)
from mpc_rr.protocols.mix.relays import MixOptions
from mpc_rr.protocols.prospects import Prospect, of_deciding
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.masks import MaskedRelease, Masking, OwnMask
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Attribute, Record, Schema

CANDIDATES_CHOICE = "candidates"
MASK_CHOICE = "mask/"
DECIDE_CHOICE = "decide"
"""Keywords of a party's own choices: the least number of candidates, ``mask/<attribute>``, and that
she decides when she has seen the values of all."""
LARGEST_MASKED = 1 << 60
OWN_VALUE = "your own choice, so nothing bounds what it tells of you"
NO_ANSWER = "none: that you gave no answer is published, under your name"


class MaskedRecord(Posted, frozen=True):
    """4, party → board: what is not confidential, and the masked values."""

    step: ClassVar[str] = "masked_record"
    doing: ClassVar[str] = "respondents post their masked records"
    open_codes: tuple[int, ...]
    masked: tuple[int | None, ...]
    """None: no answer."""


class CollaborativeMasking(StudyProtocol, frozen=True, tag="collaborative_masking"):
    """``[protocol] name = "collaborative_masking"`` with what is confidential and open."""

    publishes_values: ClassVar[bool] = True
    numbers_may_be_missing: ClassVar[bool] = True

    confidential: tuple[str, ...]
    open: tuple[str, ...] = ()
    masks: dict[str, str] = msgspec.field(default_factory=dict)
    """The recommended mask of each confidential attribute; everybody may choose another."""
    mix: MixOptions = MixOptions()

    messages: ClassVar[tuple[type[Message], ...]] = (
        Commitments, Openings, RelayKeys, *MIX_ROUNDS, MaskedRecord,
    )  # fmt: skip

    @property
    def smallest_group(self) -> tuple[int, str]:
        """The relays."""
        return self.mix.count, f"{self.mix.count} relays"

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        schema = study.schema
        check_roles(schema, self.open, self.confidential)
        nominal = [a.name for a in schema.pick(self.confidential) if a.type == "nominal"]
        if nominal:
            raise InputError(
                f"{nominal[0]!r} has no order, so it cannot be mapped back by rank; make it "
                "ordinal or numeric, or leave it open"
            )
        for name in self.masks:
            if name not in self.confidential:
                raise InputError(f"masks.{key(name)}: it is not confidential")
        for attribute in schema.pick(self.confidential):
            words = self.masks.get(attribute.name, "none")
            if words.startswith(("=", "first:")):
                raise InputError(
                    f"masks.{key(attribute.name)}: a study recommends a mask, no value and no rule"
                )
            read_perturbation(words, attribute)
        self.mix.check(study.parties)

    @property
    def masking(self) -> Masking:
        """What the ending must know of it."""
        return Masking(self.open, self.confidential, self.masks)

    def _recommended(self, attribute: Attribute) -> str:
        return self.masks.get(attribute.name, "none")

    def check_choices(self, study: Setting, choices: Mapping[str, str]) -> None:
        """`InputError` unless these are choices that a respondent has here."""
        for choice, value in choices.items():
            if choice == CANDIDATES_CHOICE:
                self._check_candidates(study, value)
                continue
            if choice == DECIDE_CHOICE:
                continue
            if choice.removeprefix(MASK_CHOICE) not in self.confidential:
                raise InputError(f"{choice.removeprefix(MASK_CHOICE)!r} is not confidential here")
            attribute = study.schema.attribute(choice.removeprefix(MASK_CHOICE))
            if read_rule(value, attribute) is None:
                read_perturbation(value, attribute)

    def _check_candidates(self, study: Setting, value: str) -> None:
        if not value.isdecimal() or int(value) < 1:
            raise InputError(f"candidates: {value!r} is not a whole number above 0")
        for attribute in study.schema.pick(self.confidential):
            most = min(study.parties, attribute.answers_possible)
            if int(value) > most:
                raise InputError(
                    f"candidates: {value} different values of {attribute.name!r} cannot be: "
                    f"there are {most} at most"
                )

    def prospects(self, study: Setting) -> list[Prospect]:
        """Whether who decides when the values of all are there has time for it."""
        return [*super().prospects(study), *of_deciding(study.decide_s)]

    def largest_message_bytes(self, study: Setting) -> int:
        """A block with everybody's records, or all that a mix has seen."""
        relays, batches = self.mix.count, len(self.confidential)
        onions = batches * (Cascade.largest_item(CODE_BYTES, relays) + 8)
        record = 9 * len(study.schema.names) + 128
        each = ENTRY_BYTES + record + (relays + 2) * (onions + ENTRY_BYTES)
        return HEAD_BYTES + study.parties * each

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """No ε bounds what a mask of limited width may tell."""
        told = [Told(what="told to everybody", attributes=self.open)] if self.open else []
        masked = []
        for attribute in study.schema.pick(self.confidential):
            recommended = self.masks.get(attribute.name, "none")
            what = (
                f"masked ({recommended} is recommended, the choice is yours), and once as it is "
                "among all values, in no order"
            )
            optional = attribute.missing is not None
            masked.append(
                Masked(
                    what=what, attributes=(attribute.name,), recommended=recommended,
                    optional=optional,
                )
            )  # fmt: skip
        return [*told, *masked]

    def as_chosen(
        self, events: Sequence[Disclosure], choices: Mapping[str, str]
    ) -> Sequence[Disclosure]:
        """Masks that a party has chosen instead of the recommended ones."""
        found: list[Disclosure] = []
        least = int(choices.get(CANDIDATES_CHOICE, "1"))
        for event in events:
            if isinstance(event, Masked):
                chosen = choices.get(MASK_CHOICE + event.attributes[0], "")
                found.append(
                    msgspec.structs.replace(event, chosen=_announced(event, chosen, choices, least))
                )
            else:
                found.append(event)
        return found

    def cautions(self, study: Setting) -> list[Caution]:
        """Among them, who can link values to their owners."""
        return [*super().cautions(study), *self.mix.cautions(study)]

    # ── A respondent ───────────────────────────────────────────────────────────────────────────

    async def party(self, session: PartySession, schema: Schema, record: Record) -> MaskedRelease:
        """A respondent's steps."""
        board, answers = Board.opened(session), dict(zip(schema.names, record, strict=True))
        confidential = [answers[name] for name in self.confidential]

        # Step 1: throw the dice.
        _, seed = await commit_party(session.sub("commitment"), board, {})

        # Step 2: every value alone through the channel.
        messages = [code.to_bytes(CODE_BYTES, "little") for code in confidential]
        mixed = await self._channel(session, board, seed, messages)
        values, unanswered, unusable = session.shared(
            "values", (board.head, self.confidential), lambda: self._values(schema, mixed)
        )

        # Step 3: choose a mask for each, knowing what it leaves to an attacker.
        masked, own = await self._masked(session, schema, values, confidential)

        # Step 4: post the record with its confidential values masked.
        posted = MaskedRecord(board.head, tuple(answers[name] for name in self.open), masked)
        records = await post_party(
            session.sub("records"), board, MaskedRecord, posted, check=self._check_record(schema)
        )

        # Step 5: everybody maps back.
        rows = session.shared("rows", (board.head, *records), lambda: _rows(records))
        return self._ending(schema, board, seed, rows, values, unanswered, unusable, own)

    async def _channel(
        self, session: PartySession, board: Board, seed: bytes, messages: list[bytes]
    ) -> list[list[bytes]]:
        """Step 2: begin again, with fresh messages, as long as somebody is lost on the way."""
        attempt, order = 0, self.mix.order(session, board, seed)
        while True:
            attempt, before = attempt + 1, (len(board.present), board.wary)
            relays = self.mix.chosen(board, order)
            here = session.sub(f"round-{attempt}")
            own = relay_role(here, relays)
            keys = await post_keys_party(here, board, relays, own)
            mixed = await mix_party(here, board, keys, relays, own, messages)
            if isinstance(mixed, Delivered):
                return mixed.messages
            if (len(board.present), board.wary) == before:
                raise Misconduct(
                    "the coordinator begins again although nobody was lost", [COORDINATOR]
                )

    async def _masked(
        self,
        session: PartySession,
        schema: Schema,
        values: tuple[tuple[int, ...], ...],
        own: list[int],
    ) -> tuple[tuple[int | None, ...], tuple[OwnMask, ...]]:
        """Step 3."""
        least = int(session.choices.get(CANDIDATES_CHOICE, "1"))
        masked: list[int | None] = []
        told = []
        until = session.decisions_until()
        for place, attribute in enumerate(schema.pick(self.confidential)):
            name = attribute.name
            if own[place] == attribute.missing_code:
                masked.append(None)
                told.append(OwnMask(name, NO_ANSWER, None, least))
                continue
            asked = Asked(
                attribute, values[place], own[place], self._recommended(attribute),
                session.seconds_until(until),
            )  # fmt: skip
            words = await self._decided(session, asked, until)
            mask = read_perturbation(words, attribute)
            others = np.array(values[place], dtype=np.int64)
            if isinstance(mask, ChosenValue):
                masked.append(_as_told(session, name, mask, others))
                told.append(OwnMask(name, f"{words[1:]}: {OWN_VALUE}", None, least))
                continue
            used = self._wide_enough(session, mask, others, least)
            code = _drawn(session, name, used, own[place], others)
            masked.append(code)
            left = used.candidates(code, others)
            told.append(OwnMask(name, _in_words(words, used, len(others)), left, least))
        return tuple(masked), tuple(told)

    async def _decided(self, session: PartySession, asked: Asked, until: float) -> str:
        """A mask or a value, in words: chosen before, by a rule, now, or as is recommended."""
        attribute = asked.attribute
        given = session.choices.get(MASK_CHOICE + attribute.name)
        if given is None:
            given = await session.decide(asked, until)
            if given is None:
                return _undecided(asked, late=session.decides)
            read_perturbation(given, attribute)
        rule = read_rule(given, attribute)
        if rule is None:
            return given
        depends_on = (given, attribute.name, asked.values)
        return session.shared(
            "rule", depends_on, lambda: decided_by_rule(rule, attribute, asked.values)
        )

    def _wide_enough(
        self, session: PartySession, mask: Perturbation, values: Codes, least: int
    ) -> Perturbation:
        """The same for everybody who chose so: parties of one process look for it once."""
        depends_on = (repr(mask), values.tobytes(), least)
        return session.shared("mask", depends_on, lambda: wide_enough(mask, values, least))

    # ── The coordinator ────────────────────────────────────────────────────────────────────────

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> MaskedRelease:
        """The coordinator's part: it learns what everybody learns."""
        board = Board.opened(session)

        # Step 1: publish the dice.
        _, seed = await commit_coordinator(session.sub("commitment"), board, ())

        # Step 2: serve the channel.
        mixed = await self._serve_channel(session, board, seed)
        values, unanswered, unusable = self._values(schema, mixed)

        # Step 4: publish the masked records. Step 5: map back, as everybody does.
        records = await post_coordinator(
            session.sub("records"), board, MaskedRecord, check=self._check_record(schema)
        )
        ending = self._ending(schema, board, seed, _rows(records), values, unanswered, unusable, ())
        return msgspec.structs.replace(ending, earlier=session.rules < AS_PUBLISHED)

    async def _serve_channel(
        self, session: CoordinatorSession, board: Board, seed: bytes
    ) -> list[list[bytes]]:
        attempt, batches, order = 0, len(self.confidential), self.mix.order(session, board, seed)
        while True:
            attempt += 1
            check_enough_present(session, board, self.mix.count)
            relays = self.mix.chosen(board, order)
            here = session.sub(f"round-{attempt}")
            keys = await post_keys_coordinator(here, board, relays)
            mixed = await mix_coordinator(here, board, keys, relays, batches, CODE_BYTES)
            if isinstance(mixed, Delivered):
                return mixed.messages

    # ── What both check and make ───────────────────────────────────────────────────────────────

    def _values(
        self, schema: Schema, mixed: list[list[bytes]]
    ) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], int]:
        """The values of each attribute in rising order; how many gave none; how many were amiss."""
        values, unanswered, unusable = [], [], 0
        for attribute, batch in zip(schema.pick(self.confidential), mixed, strict=True):
            codes, size = [int.from_bytes(raw, "little") for raw in batch], attribute.size
            proper = sorted(code for code in codes if code < size)
            values.append(tuple(code for code in proper if code != attribute.missing_code))
            unanswered.append(len(proper) - len(values[-1]))
            unusable += len(codes) - len(proper)
            if not proper:
                raise Misconduct(f"no respondent sent a value for {attribute.name!r}")
        return tuple(values), tuple(unanswered), unusable

    def _check_record(self, schema: Schema) -> Check[MaskedRecord]:
        sizes = [attribute.size for attribute in schema.pick(self.open)]
        asked = schema.pick(self.confidential)

        def can_be_masked(code: int | None, attribute: Attribute) -> bool:
            if code is None:
                return attribute.missing is not None
            if attribute.numeric:
                return -LARGEST_MASKED <= code <= LARGEST_MASKED
            return 0 <= code < attribute.size and code != attribute.missing_code

        def check(message: MaskedRecord) -> None:
            if len(message.open_codes) != len(sizes) or not all(
                0 <= code < size for code, size in zip(message.open_codes, sizes, strict=True)
            ):
                raise ValueError("it is no answer to what was asked")
            if len(message.masked) != len(asked) or not all(
                map(can_be_masked, message.masked, asked)
            ):
                raise ValueError("its masked values are not as many as were asked, or too large")

        return check

    def _ending(
        self,
        schema: Schema,
        board: Board,
        seed: bytes,
        rows: dict[str, tuple[Record, tuple[int | None, ...]]],
        values: tuple[tuple[int, ...], ...],
        unanswered: tuple[int, ...],
        unusable: int,
        own: tuple[OwnMask, ...],
    ) -> MaskedRelease:
        return MaskedRelease(
            schema, self.masking, seed, rows, values, unusable, own, unanswered,
            lost=dict(board.lost),
        )  # fmt: skip


def _undecided(asked: Asked, *, late: bool) -> str:
    """The mask of who was not asked, or did not say in time; `Declined` if hers would be none."""
    if late and asked.recommended == "none":
        raise Declined(
            f"you did not decide in time how {asked.attribute.name!r} is to be masked, and no mask "
            "is recommended: nothing is published under your name (your values were seen among "
            "those of all, in no order); choose one beforehand with --mask"
        )
    return asked.recommended


def _rows(
    records: Mapping[str, MaskedRecord],
) -> dict[str, tuple[Record, tuple[int | None, ...]]]:
    """What was posted, by name."""
    return {name: (said.open_codes, said.masked) for name, said in sorted(records.items())}


def _announced(event: Masked, chosen: str, choices: Mapping[str, str], least: int) -> str:
    """What a party is told beforehand of the mask that she will use."""
    if chosen.startswith("="):
        return f"{chosen[1:]}, whatever your own is"
    if not chosen and DECIDE_CHOICE in choices:
        return UNDECIDED
    if chosen.startswith("first:"):
        chosen = f"by your rule, {chosen}"
    if least <= 1:
        return chosen
    mask = chosen or event.recommended
    swapped = f"a swap by rank that leaves {least} candidates or as many as can be"
    return swapped if mask == "none" else f"{swapped}, then {mask}"


def _in_words(words: str, used: Perturbation, people: int) -> str:
    """What a respondent is told of the mask that was used instead of, or as, the one she chose."""
    if isinstance(used, NoPerturbation):
        return "none: published as it is, under your name"
    if isinstance(used, Widened):
        among = min(2 * used.neighbours + 1, people)
        swap = f"swap among the {among} nearest in rank"
        return f"{swap}, then {words}" if used.noise() else swap
    return words


def _as_told(session: PartySession, attribute: str, told: ChosenValue, others: Codes) -> int:
    """A value of one's own choice: among the same values never another."""
    among = hashlib.sha256(str(others.tolist()).encode()).hexdigest()
    code = msgspec.msgpack.encode(told.code)
    session.once(f"told/{attribute}/{among}", lambda _: b"", code)
    return told.code


def _drawn(
    session: PartySession, attribute: str, mask: Perturbation, own: int, others: Codes
) -> int:
    """The masked value: for the same mask among the same values always the same.

    Another draw under the same name would narrow it down.
    """
    among = hashlib.sha256(f"{mask!r}\0{others.tolist()}".encode()).hexdigest()

    def draw(rng: Randomness) -> bytes:
        return msgspec.msgpack.encode(mask.draw(own, others, rng))

    return msgspec.msgpack.decode(session.once(f"mask/{attribute}/{among}", draw), type=int)
