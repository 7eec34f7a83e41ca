"""Collaborative k-anonymity (paper 004, Protocol 1): hide in a group before telling anything.

1. Each respondent commits to her quasi-identifiers (`mpc_rr.protocols.board.commitment`).
2. When all have committed, each opens hers; everybody checks every opening. Nobody could choose
   quasi-identifiers to be close to somebody's.
3. The coordinator puts respondents with similar quasi-identifiers into groups of at least k, once;
   where several are equally similar, the dice decide.
4. Each respondent checks that she is in one group, that it has k or more of the quasi-identifiers
   that were opened, that the groups hold everybody once, and that they are those which the study's
   way of grouping makes. If not, she leaves: no confidential value has been sent. Otherwise she
   posts that she agrees. She leaves, too, if the group is smaller than she wishes for herself.
   Where the study allows it, some who are in no group of k are left out; they tell nothing more.
5. Each sends the number of her group and her confidential values through the anonymous channel
   (`mpc_rr.protocols.mix.cascade`). If somebody leaves before the messages are opened, they stay
   closed, and those who remain begin again with step 4. Whoever is in a group that has lost
   somebody sends an empty message: were groups made anew, or went on with fewer, a coordinator
   could say of everybody around a victim that they have left, until only its own are with her.
6. Everybody has the quasi-identifiers, the whole groups and the confidential values of each, and
   makes the release from them; all find the same.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from mpc_rr.anonymization.hierarchy import (
    Hierarchy,
    check_combinations,
    generalize,
    groups_at,
)
from mpc_rr.anonymization.partition import mdav, mondrian
from mpc_rr.anonymization.table import Microdata
from mpc_rr.errors import (
    Declined,
    Dropout,
    InputError,
    Misconduct,
    all_quoted,
    key,
    listing,
)
from mpc_rr.network.envelope import COORDINATOR, Message, Way, encode_parts
from mpc_rr.network.session import AnySession, Check, CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import Caution, Disclosure, InGroup, Told
from mpc_rr.protocols.board.board import (
    ENTRY_BYTES,
    Announced,
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
from mpc_rr.protocols.interface import HEAD_BYTES, StudyProtocol
from mpc_rr.protocols.mix.batch import MIX_ROUNDS, Cascade, MixKeys
from mpc_rr.protocols.mix.cascade import Delivered, mix_coordinator, mix_party, relay_role
from mpc_rr.protocols.mix.relays import MixOptions
from mpc_rr.protocols.prospects import Prospect, of_groups
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.groups import GivenLevel, Grouping, KAnonymous, ReleaseKind, Strategy
from mpc_rr.schema import Attribute, Record, Schema

CODE_BYTES = 8
AS_PUBLISHED = 5
"""Since these rules, losses and risks are those of what is published, and distances are exact."""
LEAST_K_CHOICE = "least_k"
"""Keyword of a party's own choice: among how few she takes part at all."""
WITHDRAWN = -1
"""Instead of the number of a group: somebody has left it."""


class Partition(Announced, frozen=True):
    """3, coordinator → board: the groups, as places in the sorted list of all who are there."""

    step: ClassVar[str] = "partition"
    doing: ClassVar[str] = "the coordinator announces the groups"
    way: ClassVar[Way] = "announce"
    groups: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...]
    """How far each quasi-identifier is generalized, if hierarchies are used."""


class Agreed(Posted, frozen=True):
    """4, party → board: the partition protects me. A relay of the channel shows its keys, too."""

    step: ClassVar[str] = "agreed"
    doing: ClassVar[str] = "respondents check their groups"
    keys: MixKeys | None

    def check_size(self) -> None:
        """Of the keys."""
        if self.keys is not None:
            self.keys.check_size()


class CollaborativeKAnonymity(StudyProtocol, frozen=True, tag="collaborative_k_anonymity"):
    """``[protocol] name = "collaborative_k_anonymity"`` with ``k`` and who may know what."""

    publishes_values: ClassVar[bool] = True
    numbers_may_be_missing: ClassVar[bool] = True

    k: int
    quasi_identifiers: tuple[str, ...]
    confidential: tuple[str, ...]
    partition: Strategy = "mdav"
    release: ReleaseKind = "microaggregated"
    hierarchies: dict[str, tuple[GivenLevel, ...]] | None = None
    mix: MixOptions = MixOptions()
    suppress: float | None = None
    """With generalization: this share of respondents at most may be left out, so that all others
    can be told more exactly."""

    messages: ClassVar[tuple[type[Message], ...]] = (Commitments, Openings, Agreed, *MIX_ROUNDS)

    @property
    def smallest_group(self) -> tuple[int, str]:
        """A group, and the relays."""
        return max(self.k, self.mix.count), f"a group of {self.k}, and {self.mix.count} relays"

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        schema, parties = study.schema, study.parties
        if self.k < 2:
            raise InputError(f"k must be 2 or more, not {self.k}: a group of one hides no one")
        if self.k > parties:
            raise InputError(f"k is {self.k}, more than the {parties} parties")
        check_roles(schema, self.quasi_identifiers, self.confidential)
        if not self.quasi_identifiers:
            raise InputError("there must be a quasi-identifier by which respondents are grouped")
        self._check_generalization(schema)
        self.mix.check(parties)

    def _check_generalization(self, schema: Schema) -> None:
        if self.partition == "generalization" and self.hierarchies is None:
            raise InputError('partition = "generalization" needs hierarchies')
        labelled = self.partition == "generalization" or self.release == "generalized"
        if self.hierarchies is not None and not labelled:
            raise InputError(
                'hierarchies go with partition = "generalization", which generalizes by them, or '
                'with release = "generalized", which calls groups by their labels'
            )
        if self.hierarchies is not None:
            strangers = set(self.hierarchies) - set(self.quasi_identifiers)
            if strangers:
                raise InputError(f"hierarchies.{key(min(strangers))}: it is no quasi-identifier")
            hierarchies = self.all_hierarchies(schema)
            if self.partition == "generalization":
                check_combinations(hierarchies)
        if self.suppress is not None and self.partition != "generalization":
            raise InputError('suppress goes with partition = "generalization"')
        if self.suppress is not None and not 0 < self.suppress < 1:
            raise InputError(f"suppress is a share of all, between 0 and 1, not {self.suppress}")

    def check_choices(self, study: Setting, choices: Mapping[str, str]) -> None:
        """`InputError` unless these are choices that a respondent has here."""
        for choice, value in choices.items():
            if choice != LEAST_K_CHOICE:
                raise InputError(
                    f"--mask, --candidates and --decide do not apply to {self.name}: a party "
                    "chooses only how large its group must be (--least-k)"
                )
            if not value.isdecimal() or not self.k <= int(value) <= study.parties:
                raise InputError(
                    f"the least k must be from {self.k}, which the study promises, to "
                    f"{study.parties}, not {value}"
                )

    def prospects(self, study: Setting) -> list[Prospect]:
        """Too few people for two groups, or to lose one."""
        return of_groups(self.k, study.expected, study.fewest)

    @property
    def grouping(self) -> Grouping:
        """What the ending must know of it."""
        return Grouping(
            self.k, self.quasi_identifiers, self.confidential,
            self.partition, self.release, self.hierarchies,
        )  # fmt: skip

    def attributes(self, schema: Schema) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """The quasi-identifiers, and the confidential attributes."""
        return self.grouping.attributes(schema)

    def all_hierarchies(self, schema: Schema) -> list[Hierarchy]:
        """One for each quasi-identifier; without levels of its own it is told or not."""
        return self.grouping.all_hierarchies(schema)

    def largest_message_bytes(self, study: Setting) -> int:
        """A block with everybody's openings, or all that a mix has seen."""
        opened = (CODE_BYTES + 64) * (len(self.quasi_identifiers) + 1)
        relays = self.mix.count
        onion = Cascade.largest_item(CODE_BYTES * (1 + len(self.confidential)), relays)
        each = ENTRY_BYTES + opened + (relays + 2) * (onion + ENTRY_BYTES)
        return HEAD_BYTES + study.parties * each

    def disclosures(self, study: Setting) -> list[Disclosure]:  # noqa: ARG002
        """No ε bounds what a group may tell; the quasi-identifiers are told to all."""
        grouped = f"in a group of {self.k}"
        return [
            Told(what="told to everybody", attributes=self.quasi_identifiers),
            InGroup(what=grouped, attributes=self.confidential, crowd=self.k),
        ]

    def cautions(self, study: Setting) -> list[Caution]:
        """Among them, who can link values to their owners."""
        return [*super().cautions(study), *self.mix.cautions(study)]

    # ── A respondent ───────────────────────────────────────────────────────────────────────────

    async def party(self, session: PartySession, schema: Schema, record: Record) -> KAnonymous:
        """A respondent's steps."""
        board, answers = Board.opened(session), dict(zip(schema.names, record, strict=True))

        # Steps 1 and 2: commit to the quasi-identifiers, then open them.
        own = {name: _bytes(answers[name]) for name in self.quasi_identifiers}
        opened, seed = await commit_party(session.sub("commitment"), board, own)
        known = _those_there(self._read(session, schema, board, opened), board)
        order = self.mix.order(session, board, seed)

        # Step 3: hear the groups, and check them.
        partition = await session.sub("groups").hear(
            Partition, check=self._check_partition(session, schema, board, known, seed)
        )
        board.announced(partition)
        self._check_own_wish(session, partition, known)

        for attempt in itertools.count(1):
            here, before = session.sub(f"round-{attempt}"), (len(board.present), board.wary)

            # Step 4: agree.
            relays, channel = self.mix.chosen(board, order), here.sub("mix")
            own_role = relay_role(channel, relays)
            shown = None if own_role is None else own_role.keys
            agreed = await post_party(here, board, Agreed, Agreed(board.head, shown))
            whole = _whole(session, board, partition, known)
            if len(whole) + _left_out(partition, known) < session.fewest:
                raise Misconduct(
                    f"the coordinator goes on with {len(whole)} in whole groups where "
                    f"{session.fewest} are needed",
                    [COORDINATOR],
                )
            if len(board.present) < before[0]:
                continue

            # Step 5: send group and confidential values through the anonymous channel.
            keys = {relay: agreed[relay].keys for relay in relays}
            values = [answers[name] for name in self.confidential]
            mine = whole.get(session.me)
            message = (
                _message(WITHDRAWN, [0] * len(values)) if mine is None else _message(mine, values)
            )
            mixed = await mix_party(channel, board, keys, relays, own_role, [message])
            if isinstance(mixed, Delivered):
                # Step 6: everybody makes the release.
                return self._ending(session, schema, board, known, partition, mixed.messages[0])
            if (len(board.present), board.wary) == before:
                break
        raise Misconduct("the coordinator begins again although nobody was lost", [COORDINATOR])

    def _check_own_wish(
        self, session: PartySession, partition: Partition, known: Mapping[str, Record]
    ) -> None:
        """`Declined` if she wants to be among more than her group has."""
        least = int(session.choices.get(LEAST_K_CHOICE, "0"))
        if not least:
            return
        own = [group for group in _named(partition, known) if session.me in group]
        size = len(own[0]) if own else least  # who is left out tells nothing confidential
        if size < least:
            raise Declined(
                f"your group has {size} members, and you want to be among {least} or more: your "
                "confidential values were not sent"
            )

    # ── The coordinator ────────────────────────────────────────────────────────────────────────

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> KAnonymous:
        """The coordinator's part: it makes the groups; it learns what everybody learns."""
        board = Board.opened(session)

        # Steps 1 and 2: publish commitments and openings.
        opened, seed = await commit_coordinator(
            session.sub("commitment"), board, self.quasi_identifiers
        )
        known = _those_there(self._read(session, schema, board, opened), board)
        order = self.mix.order(session, board, seed)
        check_enough_present(session, board, max(self.k, self.mix.count))

        # Step 3: make the groups.
        order_of_ties = b"" if session.rules < 1 else seed
        earlier = session.rules < AS_PUBLISHED
        partition = await self._announce_groups(
            session, schema, board, known, order_of_ties, rounded=earlier
        )

        for attempt in itertools.count(1):
            here, before = session.sub(f"round-{attempt}"), len(board.present)

            # Step 4: see that all agree.
            relays = self.mix.chosen(board, order)
            agreed = await post_coordinator(
                here, board, Agreed,
                enough=lambda session, board: _check_whole(session, board, partition, known),
            )  # fmt: skip
            if len(board.present) < before:
                continue

            # Step 5: serve the anonymous channel.
            keys = {relay: agreed[relay].keys for relay in relays}
            size = CODE_BYTES * (1 + len(self.confidential))
            mixed = await mix_coordinator(here.sub("mix"), board, keys, relays, 1, size)
            if isinstance(mixed, Delivered):
                # Step 6: everybody makes the release.
                ending = self._ending(session, schema, board, known, partition, mixed.messages[0])
                return msgspec.structs.replace(ending, earlier=earlier)
        raise AssertionError("every round loses someone or is the last")

    async def _announce_groups(
        self,
        session: CoordinatorSession,
        schema: Schema,
        board: Board,
        known: dict[str, Record],
        seed: bytes,
        *,
        rounded: bool,
    ) -> Partition:
        async def made() -> Partition:
            return self._groups(schema, board, known, seed, rounded=rounded)

        check = self._check_partition(session, schema, board, known, seed, rounded=rounded)
        partition = await session.sub("groups").announce_made(Partition, made, check=check)
        board.announced(partition)
        return partition

    def _groups(
        self,
        schema: Schema,
        board: Board,
        known: Mapping[str, Record],
        seed: bytes,
        *,
        rounded: bool = False,
    ) -> Partition:
        """Step 3: groups of similar respondents; among equally similar ones the dice decide.

        Were it the order of their names, which they choose themselves, a few who know a victim's
        quasi-identifiers could call themselves her neighbours in the alphabet.
        """
        place = {name: number for number, name in enumerate(known)}
        order = _by_chance(list(known), seed) if seed else list(known)
        groups, levels = self.groups_of(
            schema, list(known.values()), [place[name] for name in order], rounded=rounded
        )
        return Partition(board.head, groups, levels)

    def groups_of(
        self,
        schema: Schema,
        known: Sequence[Record],
        order: Sequence[int],
        *,
        rounded: bool = False,
    ) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """The groups of respondents with these quasi-identifiers, by their places, and the levels.

        Among equally similar ones those decide who come first in this order.
        """
        places, records = np.array(order), [known[place] for place in order]
        table = Microdata.of(self.attributes(schema)[0], records, rounded=rounded)
        levels: tuple[int, ...] = ()
        if self.partition == "generalization":
            hierarchies = self.all_hierarchies(schema)
            levels = generalize(table, hierarchies, self.k, self._most_suppressed(len(known)))
            groups = [g for g in groups_at(table, hierarchies, levels) if len(g) >= self.k]
        else:
            groups = (mdav if self.partition == "mdav" else mondrian)(table, self.k)
        return tuple(sorted(tuple(sorted(places[rows].tolist())) for rows in groups)), levels

    def _most_suppressed(self, people: int) -> int:
        """So many of them may be left out."""
        return 0 if self.suppress is None else int(Fraction(str(self.suppress)) * people)

    # ── What both check and make ───────────────────────────────────────────────────────────────

    def _check_partition(
        self,
        session: AnySession,
        schema: Schema,
        board: Board,
        known: Mapping[str, Record],
        seed: bytes,
        *,
        rounded: bool = False,
    ) -> Check[Partition]:
        """Step 4: ``ValueError`` unless everybody is in one group of at least k, and in hers.

        Were the groups the coordinator's to choose, it would put a victim among its own parties;
        so they must follow from the quasi-identifiers and the dice alone.
        """

        def check(message: Partition) -> None:
            board.follows(message)
            places = [place for group in message.groups for place in group]
            if len(set(places)) < len(places):
                raise ValueError("a respondent is in two groups")
            left_out = len(known) - len(places)
            if not set(places) <= set(range(len(known))) or left_out > self._most_suppressed(
                len(known)
            ):
                raise ValueError("the groups do not hold all respondents, and only these")
            smallest = min((len(group) for group in message.groups), default=0)
            if smallest < self.k:
                raise ValueError(f"a group has {smallest} respondents, fewer than k = {self.k}")
            made = session.shared(
                "groups",
                (board.head, seed, *known),
                lambda: self._groups(schema, board, known, seed, rounded=rounded),
            )
            if message != made:
                raise ValueError(
                    "these are not the groups that quasi-identifiers and the public randomness make"
                )

        return check

    def _read(
        self,
        session: AnySession,
        schema: Schema,
        board: Board,
        opened: Mapping[str, tuple[bytes, ...]],
    ) -> dict[str, Record]:
        """The opened quasi-identifiers; whoever opened something impossible is lost."""
        quasi = self.attributes(schema)[0]

        def read() -> dict[str, Record]:
            known: dict[str, Record] = {}
            for party, values in opened.items():
                codes = tuple(int.from_bytes(value, "little") for value in values)
                fits = all(code < a.size for code, a in zip(codes, quasi, strict=True))
                if fits and all(len(value) == CODE_BYTES for value in values):
                    known[party] = codes
            return known

        known = session.shared("quasi-identifiers", (board.head, quasi), read)
        unfit = f"{Openings.step}: it is no answer to what was asked"
        board.lose({party: unfit for party in opened if party not in known})
        return known

    def _ending(
        self,
        session: AnySession,
        schema: Schema,
        board: Board,
        known: dict[str, Record],
        partition: Partition,
        mixed: list[bytes],
    ) -> KAnonymous:
        """Step 6: the same for everybody, but for whom each knows to be lost."""
        depends_on = (board.head, repr(self.grouping), len(board.present))
        ending = session.shared(
            "release",
            depends_on,
            lambda: self._released(session, schema, board, known, partition, mixed),
        )
        return msgspec.structs.replace(ending, lost=dict(board.lost))

    def _released(
        self,
        session: AnySession,
        schema: Schema,
        board: Board,
        known: dict[str, Record],
        partition: Partition,
        mixed: list[bytes],
    ) -> KAnonymous:
        whole, named = _whole(session, board, partition, known), _named(partition, known)
        numbers = {number: place for place, number in enumerate(sorted(set(whole.values())))}
        sizes = tuple(a.size for a in self.attributes(schema)[1])
        messages = []
        for raw in mixed:
            group, *codes = np.frombuffer(raw, dtype="<i8").tolist()
            fits = all(0 <= code < size for code, size in zip(codes, sizes, strict=True))
            if group in numbers and fits:
                messages.append((numbers[group], tuple(codes)))
        grouped = {name for group in named for name in group}
        suppressed = tuple(name for name in known if name not in grouped)
        idle = tuple(name for name in sorted(board.present) if name not in whole)
        withdrawn = tuple(name for name in idle if name in grouped)
        return KAnonymous(
            schema, self.grouping, {name: known[name] for name in known if name in whole},
            tuple(named[number] for number in numbers), partition.levels, tuple(messages),
            max(len(mixed) - len(messages) - len(idle), 0), withdrawn, suppressed=suppressed,
        )  # fmt: skip


def _by_chance(names: list[str], seed: bytes) -> list[str]:
    """Names in an order that only public randomness decides."""
    return sorted(
        names,
        key=lambda name: hashlib.sha256(
            encode_parts(b"mpc-rr group order", seed, name.encode())
        ).digest(),
    )


def _bytes(code: int) -> bytes:
    return code.to_bytes(CODE_BYTES, "little")


def _message(group: int, values: list[int]) -> bytes:
    """What goes through the channel: always the same size."""
    return np.array([group, *values], dtype="<i8").tobytes()


def _those_there(known: Mapping[str, Record], board: Board) -> dict[str, Record]:
    return {name: known[name] for name in sorted(board.present)}


def _whole(
    session: AnySession, board: Board, partition: Partition, known: Mapping[str, Record]
) -> dict[str, int]:
    """The number of the group of each who is in one that has lost nobody."""

    def numbers() -> dict[str, int]:
        there = set(board.present)
        named = enumerate(_named(partition, known))
        return {name: number for number, group in named if there >= set(group) for name in group}

    return session.shared("whole groups", (board.head, len(board.present)), numbers)


def _check_whole(
    session: CoordinatorSession, board: Board, partition: Partition, known: Mapping[str, Record]
) -> None:
    """`Dropout` if fewer than the study needs are in groups that have lost nobody."""
    whole = _whole(session, board, partition, known)
    if len(whole) + _left_out(partition, known) < session.fewest:
        raise Dropout(
            f"only {session.out_of_expected(len(whole))} are in groups that have lost "
            f"nobody, at least {session.fewest} are needed; {listing(board.lost)} left",
            board.lost,
        )


def _left_out(partition: Partition, known: Mapping[str, Record]) -> int:
    """How many are in no group, as the study allows: they are there, and count towards those."""
    return len(known) - sum(len(group) for group in partition.groups)


def _named(partition: Partition, known: Mapping[str, Record]) -> list[tuple[str, ...]]:
    names = list(known)
    return [tuple(names[place] for place in group) for group in partition.groups]


def check_roles(
    schema: Schema, open_attributes: tuple[str, ...], confidential: tuple[str, ...]
) -> None:
    """`InputError` unless every attribute is either told to all or confidential."""
    for name in (*open_attributes, *confidential):
        if name not in schema.names:
            raise InputError(f"{name!r} is not in the schema, which has {all_quoted(schema.names)}")
    both = set(open_attributes) & set(confidential)
    if both:
        raise InputError(f"{min(both)!r} cannot be confidential and told to all")
    neither = [name for name in schema.names if name not in (*open_attributes, *confidential)]
    if neither:
        raise InputError(f"the study does not say whether {neither[0]!r} is confidential")
    if not confidential:
        raise InputError("no attribute is confidential; nothing would be asked")
    repeated = [n for n in schema.names if (*open_attributes, *confidential).count(n) > 1]
    if repeated:
        raise InputError(f"{repeated[0]!r} is named twice")
