"""The anonymous channel of paper 004: messages go through relays that shuffle them.

1. Keys. Relays are drawn from the parties by public randomness (or named by the study). Each posts
   two fresh keys for this batch: a route key and a final key.
2. Onions. Every party seals its message to all final keys and then, around that, to all route keys,
   one layer in the other, and reports this onion. All onions of a batch have the same size.
3. Relays. One relay after the other takes the whole batch, takes off its layer, shuffles, and
   passes on. A relay that finds a layer that does not open, or two equal onions, says so.
4. Output. The coordinator announces what the last relay passed on: messages that nobody can read
   yet. Every party looks for its own and posts whether it is there.
5. If every single one is there, the relays make their final keys known, and everybody reads all
   messages. If somebody does not find hers, or does not say so, the relays make their route keys
   known instead: everybody can repeat every step and see who dropped, altered, added or repeated
   something. That party is named and left out, and the rest begin again with fresh keys. What was
   sealed to the final keys stays sealed for ever.

One honest relay suffices: its shuffle nobody else knows, and it never gives away both of its keys
for a batch. After a party has said that its messages are there, it goes on to another batch only if
every relay has shown its route key for this one; otherwise some might be opened on the quiet, and
the difference between two batches would give away who is missing in the second. Several batches
(one for each attribute) go through together but are shuffled apart.

This is the shuffle of Dissent (Corrigan-Gibbs & Ford 2010, after Brickell & Shmatikov 2006) with
relays instead of all parties.

How a batch may end, for everybody alike:

===================================================  ==============================================
`Delivered`                                          all messages were there, and everybody reads
`GivenUp`, a relay showed no proper keys (1)         without that relay
`GivenUp`, hashes or onions are missing (2)          without their senders
`GivenUp`, a relay did not pass on (3)               without that relay
`GivenUp`, a layer does not open, or two are equal,  without whom the evidence shows to have done
or somebody does not find her message (3, 4)         it; or, if an onion was copied and nobody can
                                                     tell by whom, with all, who then fix theirs
`Refused`, `Misconduct`, `Dropout`                   not at all: to go on could give somebody away
===================================================  ==============================================

In the words of Dissent, and of the papers it follows:

==================================  ===============================================================
Dissent                             here
==================================  ===============================================================
member i, its message d_i           a sender, its message
secondary key pair (O_i', O_i)      the final key of a relay (`RelayRole.final`)
primary key pair (I_i', I_i)        the route key of a relay (`RelayRole.route`)
inner ciphertext C_i'               ``sealed``: the message under all final keys
onion C_i                           `Onions`: ``sealed`` under all route keys
anonymization phase                 step 3, `RelayRole.relay`
GO_i / NO-GO_i                      `Found`
phase 5a, decryption                `FinalKey`, `_open_party`
phase 5b, blame                     `RouteKey`, `Evidence`, `mpc_rr.protocols.mix.blame`
==================================  ===============================================================
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpc_rr.crypto.onion import LayerKey
from mpc_rr.errors import Dropout, Misconduct, Refused
from mpc_rr.network.envelope import COORDINATOR, encode_parts
from mpc_rr.network.session import AnySession, CoordinatorSession, PartySession
from mpc_rr.protocols.board.board import (
    Board,
    announce_on,
    check_enough_present,
    go_on_with_few,
    post_coordinator,
    post_party,
)
from mpc_rr.protocols.mix.batch import (
    Batch,
    Cascade,
    Evidence,
    FinalKey,
    Found,
    MixKeys,
    MixOutput,
    Onions,
    OnionsFixed,
    RelayKeys,
    RouteKey,
    Shuffled,
    digest_of_onions,
)
from mpc_rr.protocols.mix.blame import Case, at_relay, judged
from mpc_rr.randomness import Randomness


@dataclass(frozen=True)
class Delivered:
    """All messages, by batch, in no order."""

    messages: list[list[bytes]]


@dataclass(frozen=True)
class GivenUp:
    """It came to nothing and nobody has read anything: without whom to begin again, and why."""

    without: Mapping[str, str] = field(default_factory=dict)
    copied: bool = False
    """Whether an onion was copied, by whom cannot be told."""


Mixed = Delivered | GivenUp


def _cascade(
    session: AnySession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    batches: int,
    size: int,
) -> Cascade | GivenUp:
    """The cascade, if all relays have shown proper keys."""
    proper = {relay: shown for relay in relays if (shown := keys.get(relay)) and shown.proper}
    if len(proper) < len(relays):
        missing = [relay for relay in relays if relay not in proper and relay in board.present]
        return GivenUp(dict.fromkeys(missing, f"{RelayKeys.step}: it shows no proper keys"))

    def cascade() -> Cascade:
        return Cascade(
            encode_parts(session.context, board.head),
            tuple(relays),
            tuple(proper[relay].route for relay in relays),
            tuple(proper[relay].final for relay in relays),
            tuple(sorted(board.present)),
            batches,
            size,
        )

    return session.shared("cascade", (board.head, batches, size), cascade)


def shuffled(items: Sequence[bytes], rng: Randomness) -> list[bytes]:
    """The items in an order of which nobody else knows anything: all orders are equally likely."""
    while True:
        chances = rng.below(1 << 63, (len(items),)).tolist()
        if len(set(chances)) == len(items):
            return [item for _, item in sorted(zip(chances, items, strict=True))]


# ── A party ────────────────────────────────────────────────────────────────────────────────────


def relay_role(session: PartySession, relays: Sequence[str]) -> "RelayRole | None":
    """The role of a relay, if we are one."""
    return RelayRole(session) if session.me in relays else None


async def post_keys_party(
    session: PartySession, board: Board, relays: Sequence[str], own: "RelayRole | None"
) -> dict[str, MixKeys]:
    """Step 1, where nothing else is posted just before."""
    posted = None if own is None else RelayKeys(board.head, own.keys)
    said = await post_party(session, board, RelayKeys, posted, authors=relays)
    return {relay: entry.keys for relay, entry in said.items()}


async def mix_party(
    session: PartySession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    own: "RelayRole | None",
    messages: Sequence[bytes],
) -> Mixed:
    """Send one message through each batch. The board knows afterwards who was lost."""
    mixed = await _mix_party(session, board, keys, relays, own, messages)
    _go_on(board, mixed)
    return mixed


def _go_on(board: Board, mixed: Mixed) -> None:
    """Without those who made a batch come to nothing."""
    if isinstance(mixed, GivenUp):
        board.lose(mixed.without)
        board.wary |= mixed.copied


async def _mix_party(
    session: PartySession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    own: "RelayRole | None",
    messages: Sequence[bytes],
) -> Mixed:
    # Step 1: the relays have shown their keys.
    cascade = _cascade(session, board, keys, relays, len(messages), len(messages[0]))
    dropped = cascade.without if isinstance(cascade, GivenUp) else ()
    if session.me not in board.present or session.me in dropped:
        raise Refused("I am not among those who take part any more; nothing was sent")
    if isinstance(cascade, GivenUp):
        return cascade

    # Step 2: report the onions.
    seal = session.identity.seal
    sealed = [cascade.sealed(batch, message, seal) for batch, message in enumerate(messages)]
    onions = tuple(cascade.onion(b, item, session.me, seal) for b, item in enumerate(sealed))
    fixed: dict[str, OnionsFixed] = {}
    if board.wary:
        own_fixed = OnionsFixed(board.head, digest_of_onions(onions))
        fixed = await post_party(session, board, OnionsFixed, own_fixed)
        if len(board.present) < len(cascade.senders):
            return GivenUp()
    case = Case(cascade, board.head, fixed)
    await session.report(Onions(board.head, onions))

    # Step 3: relays shuffle.
    if own is not None:
        await own.relay(session, cascade, board.head)

    # Step 4: look for one's own messages in the output.
    output = await _output_party(session, board, cascade)
    if output.lost:
        return GivenUp(dict.fromkeys(output.lost, output.lost_at))
    if output.failed:
        return await _blame_party(session, board, case, own, output)
    found = session.shared("output", (board.head,), lambda: _in_output(cascade, output))
    mine = all(item in batch for item, batch in zip(sealed, found, strict=True))
    said = await post_party(session, board, Found, Found(board.head, mine), even_if_few=True)
    complaining = session.shared(
        "complaining", (board.head,), lambda: [n for n, entry in said.items() if not entry.mine]
    )
    if complaining or len(board.present) < len(cascade.senders):
        return await _blame_party(
            session, board, replace(case, complaining=complaining), own, output
        )

    # Step 5: all are there, so nothing can be told from who is missing. Open them.
    return await _open_party(session, board, cascade, own, output)


async def _open_party(
    session: PartySession,
    board: Board,
    cascade: Cascade,
    own: "RelayRole | None",
    output: MixOutput,
) -> Delivered:
    """Step 5, if all is well: relays show their final keys, and everybody reads."""
    final = None if own is None else FinalKey(board.head, own.final.reveal())
    finals = await post_party(
        session, board, FinalKey, final, authors=cascade.relays, even_if_few=True
    )
    missing = _missing_final_keys(session, board, cascade, finals)
    if missing:
        relay = min(missing)
        raise Refused(f"the messages cannot be opened without {relay} ({missing[relay]})")
    return _read(session, board, cascade, output, finals)


async def _output_party(session: PartySession, board: Board, cascade: Cascade) -> MixOutput:
    """Hear what came out, or who was lost on the way."""
    output = await session.hear(
        MixOutput,
        check=lambda said: _check_output(board, cascade, said),
        rounds=len(cascade.relays) + 1,
    )
    if session.me in output.lost:
        raise Refused("the coordinator left this party out of the anonymous channel")
    board.announced(output)
    return output


def _missing_final_keys(
    session: AnySession, board: Board, cascade: Cascade, keys: Mapping[str, FinalKey]
) -> dict[str, str]:
    """Which relays have not shown their final keys, and how that looks."""

    def found() -> dict[str, str]:
        missing = {}
        for relay, public in zip(cascade.relays, cascade.final, strict=True):
            if relay not in keys:
                missing[relay] = f"{FinalKey.step}: the coordinator shows none"
            elif LayerKey.revealed(keys[relay].key, public) is None:
                missing[relay] = f"{FinalKey.step}: it is not the final key that was posted"
        return missing

    return session.shared("missing final keys", (board.head,), found)


def _read(
    session: AnySession,
    board: Board,
    cascade: Cascade,
    output: MixOutput,
    keys: Mapping[str, FinalKey],
) -> Delivered:
    """The messages of an output, by batch; all that they follow from is on the board."""

    def messages() -> list[list[bytes]]:
        finals = [LayerKey(keys[relay].key) for relay in cascade.relays]
        items = cascade.items(output.batches, len(cascade.relays))
        return [cascade.read(number, batch, finals) for number, batch in enumerate(items)]

    return Delivered(session.shared("delivered", (board.head,), messages))


def _in_output(cascade: Cascade, output: MixOutput) -> list[set[bytes]]:
    """The sealed messages of each batch; none of a batch in which one is there twice."""
    batches = [set(batch) for batch in cascade.items(output.batches, len(cascade.relays))]
    return [batch if len(batch) == len(cascade.senders) else set() for batch in batches]


def _check_output(board: Board, cascade: Cascade, said: MixOutput) -> None:
    board.follows(said)
    if said.batches and said.lost:
        raise ValueError("there is an output although someone was lost")
    if said.batches:
        cascade.check_sizes(said.batches, len(cascade.relays))
    elif not set(said.lost) <= set(cascade.senders):
        raise ValueError("someone was lost who was not there")
    if said.shuffling and (len(said.lost) != 1 or said.lost[0] not in cascade.relays):
        raise ValueError("only a relay, and one at a time, can be lost when it shuffles")


class RelayRole:
    """What a relay does besides sending its own messages."""

    def __init__(self, session: PartySession) -> None:
        self.route = LayerKey.draw(session.rng.fork("route key"))
        self.final = LayerKey.draw(session.rng.fork("final key"))
        self.signed_batch = b""

    @property
    def keys(self) -> MixKeys:
        """What it shows."""
        return MixKeys(self.route.public, self.final.public)

    async def relay(self, session: PartySession, cascade: Cascade, head: bytes) -> None:
        """Step 3: take off a layer and shuffle, unless something is not in order."""
        place = cascade.relays.index(session.me)
        batch, self.signed_batch = await session.told_with_proof(Batch, rounds=place + 2)
        if batch.head != head:
            raise Misconduct("the coordinator's batch is for another board", [COORDINATOR])
        if not batch.batches:
            return
        passed_on = self._shuffle(session, cascade, place, batch)
        await session.sub(at_relay(place)).report(Shuffled(head, passed_on))

    def _shuffle(
        self, session: PartySession, cascade: Cascade, place: int, batch: Batch
    ) -> tuple[bytes, ...]:
        passed_on = []
        layers = 2 * len(cascade.relays) - place
        try:
            all_items = cascade.items(batch.batches, layers)
        except ValueError as error:
            raise Misconduct(f"the coordinator's batch: {error}", [COORDINATOR]) from None
        for number, items in enumerate(all_items):
            inner = [i for i in cascade.peeled(place, self.route, number, items) if i is not None]
            if len(set(inner)) < len(items):
                return ()
            passed_on.append(b"".join(shuffled(inner, session.rng.fork(f"shuffle/{number}"))))
        return tuple(passed_on)


async def _blame_party(
    session: PartySession, board: Board, case: Case, own: RelayRole | None, output: MixOutput
) -> GivenUp:
    """Step 5, if something went wrong: see who did it."""
    relays = case.cascade.relays
    mine = None if own is None else RouteKey(board.head, own.route.reveal(), own.signed_batch)
    keys = await post_party(
        session, board, RouteKey, mine,
        authors=relays, check=case.check_route_key, even_if_few=True,
    )  # fmt: skip
    if len(keys) < len(relays):
        gone = [relay for relay in relays if relay not in keys]
        if not output.failed:
            raise Refused(
                f"the coordinator does not show that {gone[0]} gave this batch up; to go on "
                "without it could identify someone"
            )
        return GivenUp()
    if not output.failed and not case.complaining:
        return GivenUp()
    evidence = await session.hear(Evidence, check=board.follows)
    board.announced(evidence)
    blamed, copied = judged(session, case, keys, evidence, output)
    if COORDINATOR in blamed:
        raise Misconduct(f"the coordinator {blamed[COORDINATOR]}", [COORDINATOR])
    if session.me in blamed:
        raise Misconduct("the coordinator's evidence against me is not true", [COORDINATOR])
    return GivenUp(blamed, copied)


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


async def post_keys_coordinator(
    session: CoordinatorSession, board: Board, relays: Sequence[str]
) -> dict[str, MixKeys]:
    """Step 1: publish the relays' keys."""
    said = await post_coordinator(session, board, RelayKeys, authors=relays)
    return {relay: entry.keys for relay, entry in said.items()}


async def mix_coordinator(
    session: CoordinatorSession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    batches: int,
    size: int,
) -> Mixed:
    """The coordinator's part: it carries the batches from relay to relay, and reads with all."""
    mixed = await _mix_coordinator(session, board, keys, relays, batches, size)
    _go_on(board, mixed)
    if isinstance(mixed, GivenUp):
        check_enough_present(session, board)
    return mixed


async def _mix_coordinator(
    session: CoordinatorSession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    batches: int,
    size: int,
) -> Mixed:
    # Step 1: the relays have shown their keys.
    cascade = _cascade(session, board, keys, relays, batches, size)
    if isinstance(cascade, GivenUp):
        return cascade

    # Steps 2 and 3: gather the onions and pass them from relay to relay.
    fixed: dict[str, OnionsFixed] = {}
    if board.wary:
        fixed = await post_coordinator(session, board, OnionsFixed)
        if len(board.present) < len(cascade.senders):
            return GivenUp()
    passed, case = _Passed(session, board, cascade), Case(cascade, board.head, fixed)
    await passed.gather_onions(fixed)
    for place in range(len(relays)):
        await passed.pass_to(place)

    # Step 4: announce the output, and gather who found theirs in it.
    output = MixOutput(board.head, passed.output, tuple(sorted(passed.lost)), passed.shuffling)
    await announce_on(session, board, output)
    if passed.lost:
        return GivenUp(passed.lost)
    if not output.failed:
        said = await post_coordinator(session, board, Found, enough=go_on_with_few)
        case = replace(case, complaining=[n for n, found in said.items() if not found.mine])
    if output.failed or case.complaining or len(board.present) < len(cascade.senders):
        return await _blame_coordinator(session, board, passed, case, output)

    # Step 5: publish the final keys and read the messages. Whoever keeps hers back is named.
    finals = await post_coordinator(session, board, FinalKey, authors=relays, enough=go_on_with_few)
    missing = _missing_final_keys(session, board, cascade, finals) | {
        relay: board.lost[relay] for relay in relays if relay in board.lost
    }
    if missing:
        reasons = "; ".join(f"{name} ({why})" for name, why in sorted(missing.items()))
        raise Dropout(f"the messages cannot be opened without {reasons}", missing)
    return _read(session, board, cascade, output, finals)


class _Passed:
    """What passes through the coordinator's hands, signed by parties and relays."""

    def __init__(self, session: CoordinatorSession, board: Board, cascade: Cascade) -> None:
        self.session, self.board, self.cascade = session, board, cascade
        self.lost: dict[str, str] = {}
        self.shuffling = False
        """Whether it was a relay that was lost, when it was to shuffle."""
        self.onions: dict[str, bytes] = {}
        self.shuffled: dict[str, bytes] = {}
        self.output: tuple[bytes, ...] = ()
        """The batches as they are now; empty after something went wrong."""

    async def gather_onions(self, fixed: Mapping[str, OnionsFixed]) -> None:
        """Step 2."""
        size = self.cascade.item_bytes(2 * len(self.cascade.relays))

        def right_size(message: Onions) -> None:
            if message.head != self.board.head:
                raise ValueError("they name another board than the one I published")
            right = len(message.onions) == self.cascade.batches
            if not right or any(len(onion) != size for onion in message.onions):
                raise ValueError(f"{self.cascade.batches} onions of {size} bytes are due")

        gathered = await self.session.gather(Onions, check=right_size, senders=self.cascade.senders)
        self.lost = gathered.missing(Onions.step)
        for sender, entry in fixed.items():
            said = gathered.messages.get(sender)
            if said is not None and digest_of_onions(said.onions) != entry.digest:
                self.lost[sender] = f"{Onions.step}: they are not those it had fixed"
        if self.lost:
            return
        self.onions = gathered.signed
        in_order = [gathered.messages[sender].onions for sender in self.cascade.senders]
        self.output = tuple(b"".join(batch) for batch in zip(*in_order, strict=True))

    async def pass_to(self, place: int) -> None:
        """Step 3 with one relay."""
        relay, layers = self.cascade.relays[place], 2 * len(self.cascade.relays) - place - 1
        await self.session.hand_out({relay: Batch(self.board.head, self.output)})
        if not self.output:
            return

        def right_size(message: Shuffled) -> None:
            if message.head != self.board.head:
                raise ValueError("it names another board than the one I published")
            if message.batches:
                self.cascade.check_sizes(message.batches, layers)

        gathered = await self.session.sub(at_relay(place)).gather(
            Shuffled, check=right_size, senders=(relay,)
        )
        self.lost = gathered.missing(Shuffled.step)
        self.shuffling = bool(self.lost)
        self.shuffled |= gathered.signed
        self.output = () if self.lost else gathered.messages[relay].batches


async def _blame_coordinator(
    session: CoordinatorSession, board: Board, passed: _Passed, case: Case, output: MixOutput
) -> GivenUp:
    """Step 5, if something went wrong: publish all that was signed, and see who did it."""
    relays = case.cascade.relays
    keys = await post_coordinator(
        session, board, RouteKey,
        authors=relays, check=case.check_route_key, enough=go_on_with_few,
    )  # fmt: skip
    gone = [relay for relay in relays if relay not in keys]
    if gone and not output.failed:
        raise Dropout(
            f"{gone[0]} did not show in time that it gave its batch up; to go on without it could "
            "identify someone",
            gone,
        )
    if gone or not (output.failed or case.complaining):
        return GivenUp()
    evidence = Evidence(board.head, passed.onions, passed.shuffled)
    await announce_on(session, board, evidence)
    return GivenUp(*judged(session, case, keys, evidence, output))
