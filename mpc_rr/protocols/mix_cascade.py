"""The anonymous channel of paper 004: messages go through relays that shuffle them.

1. Keys. Relays are drawn from the parties by public randomness (or named by the study). Each posts
   two fresh keys for this batch: a route key and a final key.
2. Onions. Every party seals its message to all final keys and then, around that, to all route keys,
   one layer in the other, and reports this onion. All onions of a batch have the same size.
3. Relays. One relay after the other takes the whole batch, takes off its layer, shuffles, and
   passes on. A relay that finds a layer that does not open, or two equal onions, says so.
4. Output. The coordinator announces what the last relay passed on: messages that nobody can read
   yet. Every party looks for its own and posts whether it is there.
5. If every single one is there, the relays make their final keys known, and everybody can read all
   messages. Each party checks that its own is read right. If somebody does not find hers, the
   relays make their route keys known instead: everybody can repeat every step and see who dropped,
   altered, added or repeated something. That party is named and left out, and the rest begin again
   with fresh keys. What was sealed to the final keys stays sealed for ever.

One honest relay suffices: its shuffle nobody else knows, and it never gives away both of its keys
for a batch. Several batches (one for each attribute) go through together but are shuffled apart.

This is the shuffle of Dissent (Corrigan-Gibbs & Ford 2010, after Brickell & Shmatikov 2006) with
relays instead of all parties.
"""

from collections.abc import Mapping, Sequence

from mpc_rr.crypto.onion import LayerKey
from mpc_rr.errors import Dropout, Misconduct
from mpc_rr.network.messages import COORDINATOR
from mpc_rr.network.per_host import once_per_host
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.protocols.bulletin_board import (
    Board,
    announce_on,
    check_enough,
    post_coordinator,
    post_party,
)
from mpc_rr.protocols.mix_batch import (
    Batch,
    Cascade,
    Evidence,
    FinalKey,
    Found,
    MixKeys,
    MixOpened,
    MixOutput,
    Onions,
    RelayKeys,
    RouteKey,
    Shuffled,
)
from mpc_rr.protocols.mix_blame import at_relay, judged
from mpc_rr.randomness import Randomness


def _cascade(
    session: PartySession | CoordinatorSession,
    board: Board,
    keys: Mapping[str, MixKeys | None],
    relays: Sequence[str],
    batches: int,
    size: int,
) -> Cascade | None:
    """The cascade, if all relays have shown proper keys; those who have not are lost."""
    proper = {relay: shown for relay in relays if (shown := keys.get(relay)) and shown.proper}
    if len(proper) < len(relays):
        missing = [relay for relay in relays if relay not in proper and relay in board.present]
        board.lose(dict.fromkeys(missing, f"{RelayKeys.step}: it shows no proper keys"))
        return None

    def cascade() -> Cascade:
        return Cascade(
            session.context,
            tuple(relays),
            tuple(proper[relay].route for relay in relays),
            tuple(proper[relay].final for relay in relays),
            tuple(sorted(board.present)),
            batches,
            size,
        )

    return once_per_host((session.context, board.head, batches, size), cascade)


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
) -> list[list[bytes]] | None:
    """Send one message through each batch; returns all messages, by batch, in no order.

    None: it came to nothing, nobody has read anything, and the board says who was lost.
    """
    # Step 1: the relays have shown their keys.
    cascade = _cascade(session, board, keys, relays, len(messages), len(messages[0]))
    if cascade is None:
        return None

    # Step 2: report the onions.
    sealed = [cascade.sealed(batch, message) for batch, message in enumerate(messages)]
    onions = [cascade.onion(batch, item, session.me) for batch, item in enumerate(sealed)]
    await session.report(Onions(tuple(onions)))

    # Step 3: relays shuffle.
    if own is not None:
        await own.relay(session, cascade)

    # Step 4: look for one's own messages in the output.
    rounds = len(relays) + 1
    output = await session.hear(
        MixOutput, check=lambda said: _check_output(board, cascade, said), rounds=rounds
    )
    board.announced(output)
    if output.lost:
        board.lose(output.lost)
        return None
    if output.failed:
        await _blame_party(session, board, cascade, own, output, ())
        return None
    found = once_per_host((board.head, MixOutput), lambda: _places(cascade, output))
    mine = all(item in places for item, places in zip(sealed, found, strict=True))
    said = await post_party(session, board, Found, Found(board.head, mine))
    if len(board.present) < len(cascade.senders):
        return None
    complaining = once_per_host(
        (board.head, Found), lambda: [name for name, entry in said.items() if not entry.mine]
    )
    if complaining:
        await _blame_party(session, board, cascade, own, output, complaining)
        return None

    # Step 5: all are there, so nothing can be told from who is missing. Open them.
    session.point_of_no_return()
    if own is not None:
        await session.report(FinalKey(board.head, own.final.reveal()))
    opened = await session.hear(MixOpened, check=board.follows)
    board.announced(opened)
    read = once_per_host((board.head, MixOpened), lambda: cascade.items(opened.batches, 0))
    _check_own(read, found, sealed, messages)
    return read


def _places(cascade: Cascade, output: MixOutput) -> list[dict[bytes, int]]:
    """Where each sealed message of the output stands in its batch."""
    batches = cascade.items(output.batches, len(cascade.relays))
    return [{item: place for place, item in enumerate(batch)} for batch in batches]


def _check_own(
    read: list[list[bytes]],
    found: list[dict[bytes, int]],
    sealed: Sequence[bytes],
    messages: Sequence[bytes],
) -> None:
    """Every message was read as it was sent."""
    for batch, item in enumerate(sealed):
        if read[batch][found[batch][item]] != messages[batch]:
            raise Misconduct("the coordinator does not read my message as I sent it", [COORDINATOR])


def _check_output(board: Board, cascade: Cascade, said: MixOutput) -> None:
    board.follows(said)
    if said.batches and said.lost:
        raise ValueError("there is an output although somebody was lost")
    if said.batches:
        cascade.items(said.batches, len(cascade.relays))
    elif not set(said.lost) <= set(cascade.senders):
        raise ValueError("somebody was lost who was not there")


class RelayRole:
    """What a relay does besides sending its own messages."""

    def __init__(self, session: PartySession) -> None:
        self.route = LayerKey.draw(session.rng.fork("route key"))
        self.final = LayerKey.draw(session.rng.fork("final key"))
        self.told = b""

    @property
    def keys(self) -> MixKeys:
        """What it shows."""
        return MixKeys(self.route.public, self.final.public)

    async def relay(self, session: PartySession, cascade: Cascade) -> None:
        """Step 3: take off a layer and shuffle, unless something is not in order."""
        place = cascade.relays.index(session.me)
        batch, self.told = await session.told_with_proof(Batch, rounds=place + 2)
        if not batch.batches:
            return
        passed_on = self._shuffle(session, cascade, place, batch)
        await session.sub(at_relay(place)).report(Shuffled(passed_on))

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
    session: PartySession,
    board: Board,
    cascade: Cascade,
    own: RelayRole | None,
    output: MixOutput,
    complaining: Sequence[str],
) -> None:
    """Step 5, if something went wrong: see who did it, and go on without."""
    mine = None if own is None else RouteKey(board.head, own.route.reveal(), own.told)
    keys = await post_party(session, board, RouteKey, mine, authors=cascade.relays)
    if len(keys) < len(cascade.relays):
        return
    evidence = await session.hear(Evidence, check=board.follows)
    board.announced(evidence)
    blamed = judged(session, cascade, keys, evidence, output, complaining)
    if COORDINATOR in blamed:
        raise Misconduct(f"the coordinator {blamed[COORDINATOR]}", [COORDINATOR])
    if session.me in blamed:
        raise Misconduct("the coordinator's evidence against me is not true", [COORDINATOR])
    board.lose(blamed)


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
) -> list[list[bytes]] | None:
    """The coordinator's part: it carries the batches from relay to relay, and reads with all."""
    # Step 1: the relays have shown their keys.
    cascade = _cascade(session, board, keys, relays, batches, size)
    if cascade is None:
        check_enough(session, board)
        return None

    # Steps 2 and 3: gather the onions and pass them from relay to relay.
    passed = _Passed(session, board, cascade)
    await passed.gather_onions()
    for place in range(len(relays)):
        await passed.pass_to(place)

    # Step 4: announce the output, and gather who found theirs in it.
    output = MixOutput(board.head, passed.output, dict.fromkeys(passed.lost, passed.lost_at))
    await announce_on(session, board, output)
    if passed.lost:
        board.lose(passed.lost)
        check_enough(session, board)
        return None
    complaining: list[str] = []
    if not output.failed:
        said = await post_coordinator(session, board, Found)
        if len(board.present) < len(cascade.senders):
            return None
        complaining = [name for name, found in said.items() if not found.mine]
    if output.failed or complaining:
        await _blame_coordinator(session, board, passed, output, complaining)
        return None

    # Step 5: publish the final keys and read the messages.
    session.point_of_no_return()
    finals = await _final_keys(session, board, cascade)
    items = cascade.items(output.batches, len(relays))
    read = [cascade.read(number, batch, finals) for number, batch in enumerate(items)]
    opened = MixOpened(board.head, tuple(b"".join(batch) for batch in read))
    await announce_on(session, board, opened)
    return read


async def _final_keys(
    session: CoordinatorSession, board: Board, cascade: Cascade
) -> list[LayerKey]:
    """The relays' final keys. Whoever keeps hers back now ends the study, and is named."""
    gathered = await session.gather(FinalKey, senders=cascade.relays)
    missing, keys = gathered.missing(FinalKey.step), []
    for relay, public in zip(cascade.relays, cascade.final, strict=True):
        said = gathered.messages.get(relay)
        key = None if said is None else LayerKey.revealed(said.key, public)
        if said is not None and (key is None or said.head != board.head):
            missing[relay] = f"{FinalKey.step}: it is not the final key that was posted"
        elif key is not None:
            keys.append(key)
    if missing:
        reasons = "; ".join(f"{name} ({why})" for name, why in sorted(missing.items()))
        raise Dropout(f"the messages cannot be opened without {reasons}", missing)
    return keys


class _Passed:
    """What passes through the coordinator's hands, signed by parties and relays."""

    def __init__(self, session: CoordinatorSession, board: Board, cascade: Cascade) -> None:
        self.session, self.board, self.cascade = session, board, cascade
        self.lost: dict[str, str] = {}
        self.lost_at = Onions.step
        self.onions: dict[str, bytes] = {}
        self.shuffled: dict[str, bytes] = {}
        self.output: tuple[bytes, ...] = ()
        """The batches as they are now; empty after something went wrong."""

    async def gather_onions(self) -> None:
        """Step 2."""
        size = self.cascade.item_bytes(2 * len(self.cascade.relays))

        def right_size(message: Onions) -> None:
            right = len(message.onions) == self.cascade.batches
            if not right or any(len(onion) != size for onion in message.onions):
                raise ValueError(f"{self.cascade.batches} onions of {size} bytes are due")

        gathered = await self.session.gather(Onions, check=right_size, senders=self.cascade.senders)
        self.lost = gathered.missing(Onions.step)
        if self.lost:
            return
        self.onions = gathered.signed
        in_order = [gathered.messages[sender].onions for sender in self.cascade.senders]
        self.output = tuple(b"".join(batch) for batch in zip(*in_order, strict=True))

    async def pass_to(self, place: int) -> None:
        """Step 3 with one relay."""
        relay, layers = self.cascade.relays[place], 2 * len(self.cascade.relays) - place - 1
        await self.session.hand_out({relay: Batch(self.output)})
        if not self.output:
            return

        def right_size(message: Shuffled) -> None:
            if message.batches:
                self.cascade.items(message.batches, layers)

        gathered = await self.session.sub(at_relay(place)).gather(
            Shuffled, check=right_size, senders=(relay,)
        )
        self.lost, self.lost_at = gathered.missing(Shuffled.step), Shuffled.step
        self.shuffled |= gathered.signed
        self.output = () if self.lost else gathered.messages[relay].batches


async def _blame_coordinator(
    session: CoordinatorSession,
    board: Board,
    passed: _Passed,
    output: MixOutput,
    complaining: Sequence[str],
) -> None:
    """Step 5, if something went wrong: publish all that was signed, and see who did it."""
    cascade = passed.cascade
    keys = await post_coordinator(session, board, RouteKey, authors=cascade.relays)
    if len(keys) < len(cascade.relays):
        return
    evidence = Evidence(board.head, passed.onions, passed.shuffled)
    await announce_on(session, board, evidence)
    blamed = judged(session, cascade, keys, evidence, output, complaining)
    board.lose(blamed)
    check_enough(session, board)
