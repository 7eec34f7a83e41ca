"""The carrier of earnest runs: any MQTT 3.1.1 broker, through aiomqtt.

Topics, all under ``mpc_rr/<study>/``: ``coordinator/<mailbox>`` for what goes up, ``all`` for what
everyone gets, ``box/<mailbox>/<party>`` for one party. A mailbox is a connection, and its name is
also the client's identifier: a broker can give each connection rights to its own topics. A host
gives thousands of parties one mailbox, which needs two subscriptions however many there are.

Under load messages wait a moment for a free place and then travel together (``box/<mailbox>/=`` for
those to several parties of one mailbox): a client can publish only some thousand times a second.

What arrives waits in one place only, the reader's inbox, where senders are served in turn: of a
batch one message at a time, as each may cost us a signature to check. Reading goes before handling,
so that a flood waits there, and not with the broker, in one line for all.

The first connection is tried for as long as the study's lobby is open. A lost one is made again
with growing pauses, for as long as an agent waits. What the broker had not acknowledged is
published again; what it lost meanwhile, the mailboxes ask for again.

The coordinator's connection finds out how large a message the broker carries, by sending some to
itself; parties are told with their invitation.
"""

import asyncio
import contextlib
import logging
import math
import re
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import aiomqtt

from mpc_rr.errors import BrokerError, BrokerRefusal
from mpc_rr.network.address import BrokerUrl, proxy_settings
from mpc_rr.network.broker_trouble import (
    FULL,
    hangs_up,
    no_echo,
    no_reading,
    not_connected,
    number,
)
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.fairness import COST_OF_AN_ITEM, FairQueue
from mpc_rr.network.fragments import (
    BATCH_BYTES,
    GONE,
    HERE,
    LARGEST_PAYLOAD,
    PIECE_OVERHEAD,
    SMALLEST_PAYLOAD,
    Assembler,
    batch,
    cut,
    fits_in_batch,
    is_batch,
    probe,
    token_of,
    unbatch,
    whole,
)
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.network.transport import Arrival
from mpc_rr.randomness import Randomness

T = TypeVar("T")
LOGGER = logging.getLogger("mpc_rr.network")
LIBRARY = logging.getLogger("mpc_rr.library.mqtt")
"""Where aiomqtt and paho tell what they see; nobody reads it unless a program asks for it."""
LIBRARY.addHandler(logging.NullHandler())
LIBRARY.propagate = False
CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 10
"""After so long without a word from the broker it is asked for one, and has as long to answer. So
a line that is dead, and that nobody has hung up, is noticed after 20 s; a round has 60 s unless a
study says otherwise. A broker takes a client for dead that is silent for half as long again."""
ABANDON_S = 1.0
LAST_TRY_S = 1.0
"""The last attempt at a first connection has at least so long, though the lobby may close."""
PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
STEADY_S = 10.0
"""A connection that has lasted so long is a good one: the next pause is short again."""
HANG_UPS = 5
"""So many connections end over a message that is sent again before we take it for the reason."""
BEAT_S = 5.0
"""How often a connection with parties says that it is there."""
NO_RIGHTS_S = 15.0
"""For so long a subscription is tried again: a cluster that has lost a node refuses some, too."""
MOST_OF_A_STUDY = 1000
"""Messages in a second, on average over a wait, or as many as there are mailboxes of parties. Who
takes part says that he is there every five seconds: these would be five thousand connections."""
SECONDS_KEPT = 3600
"""For so many seconds in which messages came it is known how many."""
BACK_S = 5.0
"""Who has lost its connection for longer than this, in the broker's eyes, is gone."""
PROBES = tuple(kib * 1024 - 512 for kib in (8, 16, 32, 64, 128, 256))
PROBE_S, PROBE_HANG_UPS = 10.0, 2
"""How long the first of them may take to come back, and over how many connections each is tried."""
TOKEN_BYTES = 16
OUTAGES = 16
IN_FLIGHT = 8
SEVERAL = "="
"""Stands where a party's name would: no party can be called this."""
INBOX_BYTES = 64 * 2**20
"""What waits to be read, besides four messages of the largest kind."""
IN_A_TURN, READ_AHEAD = 8, 8
"""So many messages are handled in one turn of the loop; and so many are read before, if they are
there."""
IN_A_ROW_S = 0.001
"""For so long messages are handled in one turn where nothing is there to be read."""
AT_LEAST_ONCE = 1


_Waiting = tuple[str, bytes, "asyncio.Future[None]"]
"""A reader's name, a message, and who waits for it to be published."""


class _Parcel:
    """A message, or a batch of them, that waits to be handed over."""

    def __init__(self, mailbox: str, payload: bytes) -> None:
        self.mailbox = mailbox
        self._payload: bytes | None = payload
        self._messages: deque[bytes] = deque()
        self.cost = len(payload)
        """In bytes, besides `COST_OF_AN_ITEM`."""

    def __len__(self) -> int:
        return len(self._messages) if self._payload is None else 1

    def first(self) -> bytes | None:
        """Take out the first message; None if this holds none. A batch is divided only now."""
        if self._payload is not None:
            batched = unbatch(self._payload)
            parts = [self._payload] if batched is None else [raw for _, raw in batched]
            self._payload, self._messages = None, deque(parts)
            self.cost = sum(len(raw) + COST_OF_AN_ITEM for raw in parts)
        if not self._messages:
            return None
        raw = self._messages.popleft()
        self.cost -= len(raw) + COST_OF_AN_ITEM
        return raw


@dataclass
class _Outage:
    """A time without connection."""

    since: float
    until: float
    why: str


class MqttConnection:
    """One connection to a broker, shared by all agents of this process that were attached to it."""

    def __init__(
        self,
        url: BrokerUrl,
        study: str,
        rng: Randomness,
        *,
        size_limit: int,
        coordinator: bool,
        lobby_s: float,
        longest_wait_s: float,
        keepalive_s: int = KEEPALIVE_S,
    ) -> None:
        self._nodes = deque([url, *url.others])
        self._rng, self._size_limit = rng, size_limit
        self._root, self._coordinator = f"mpc_rr/{study}", coordinator
        self._lobby_s, self._longest_wait_s = lobby_s, longest_wait_s
        self._keepalive_s = keepalive_s
        self.mailbox = draw_mailbox(rng)
        self._up, self._all = f"{self._root}/coordinator/{self.mailbox}", f"{self._root}/all"
        self._filters = (
            # Without a mailbox: what parties of wire version 1 say, who are told why not.
            [f"{self._root}/coordinator", f"{self._root}/coordinator/+"]
            if coordinator
            else [self._all, f"{self._root}/box/{self.mailbox}/+"]
        )
        self.payload_bytes = SMALLEST_PAYLOAD
        """How large a payload the broker is known to carry."""
        self._probes: dict[bytes, tuple[int, asyncio.Event]] = {}
        self._ends: dict[str, MqttTransport] = {}
        self._assembler = Assembler(8 * size_limit + 2**23, per_sender=2 * size_limit + 2**20)
        self._assembler_for_strangers = Assembler(2**22, per_sender=2**16)
        self._heard: dict[str, float] = {}
        """When the mailboxes of admitted parties were last heard of."""
        self._gone: dict[str, float] = {}
        """When the broker said of some of them that they are gone."""
        self._client: aiomqtt.Client | None = None
        self._online, self._loss = asyncio.Event(), asyncio.Event()
        """Whether there is a connection; and whether this one is lost: each has its own."""
        self._outages: deque[_Outage] = deque(maxlen=OUTAGES)
        self._pause_s, self._connected_at = PAUSE_S, -math.inf
        self._told = ""
        self._unacknowledged: set[asyncio.Timeout] = set()
        self._window = asyncio.Semaphore(IN_FLIGHT)
        self._lanes: dict[str, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_in_pieces, self._one_again = asyncio.Lock(), asyncio.Lock()
        self._failure: BrokerError | None = None
        self._read = 0
        """How many messages were read from the broker."""
        self._came_in: deque[list[int]] = deque(maxlen=SECONDS_KEPT)
        """How many came in which second, if any did."""
        self._came_at = -math.inf
        """When the last message came, or the last acknowledgement of one."""
        self._turns: deque[asyncio.Future[None]] = deque()
        """Those who have a message, and wait for their turn to handle it."""
        self._quiet_until = -math.inf
        if coordinator:
            self.attach(COORDINATOR)  # parties may write before it is known what the broker carries

    def attach(self, name: str) -> "MqttTransport":
        """The end of the network for one agent of this process."""
        if name not in self._ends:
            self._ends[name] = MqttTransport(self, name, self._rng.bytes(16), self._size_limit)
        return self._ends[name]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["MqttConnection"]:
        """Connect, and stay connected as long as the context lasts."""
        _quiet_lost_sockets(asyncio.get_running_loop())
        client = await self._first_connection()
        keeper = asyncio.create_task(self._keep(client))
        try:
            if self._coordinator:
                await self._learn_sizes()
            else:
                self._spawn(self._beat())
            yield self
        finally:
            working = [keeper, *self._tasks]
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)

    # ── connecting ─────────────────────────────────────────────────────────────────────────────

    @property
    def _url(self) -> BrokerUrl:
        """The node we are connected to, or try now."""
        return self._nodes[0]

    async def _first_connection(self) -> aiomqtt.Client:
        """Connect, for as long as the study may still be waiting for us."""
        loop = asyncio.get_running_loop()
        started, refused_at = loop.time(), math.inf
        deadline = started + self._lobby_s
        while True:
            try:
                client = await self._connect(max(deadline - loop.time(), LAST_TRY_S))
            except BrokerError as error:
                self._outages = deque([_Outage(started, math.inf, str(error))], maxlen=OUTAGES)
                if isinstance(error, BrokerRefusal):
                    patience_s = NO_RIGHTS_S if error.may_pass else 0.0
                    refused_at = min(refused_at, loop.time())
                    if loop.time() - refused_at >= patience_s:
                        raise
                if loop.time() >= deadline:
                    raise BrokerError(f"{error} (tried for {self._lobby_s:g} s)") from None
                self._tell(f"{error} Trying again for {deadline - loop.time():.0f} s.")
                await self._pause()
            else:
                if self._outages:
                    self._back("at last")
                return client

    async def _connect(self, left_s: float = math.inf) -> aiomqtt.Client:
        """Connect to the first node that answers, within what is left of the time for it."""
        for _ in range(len(self._nodes) - 1):
            try:
                return await self._connect_to_node(min(CONNECT_TIMEOUT_S, left_s))
            except BrokerError:
                self._nodes.rotate(-1)
        return await self._connect_to_node(min(CONNECT_TIMEOUT_S, left_s))

    async def _connect_to_node(self, timeout_s: float) -> aiomqtt.Client:
        client = self._new_client()
        connecting = asyncio.ensure_future(client.__aenter__())
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(connecting)
        except asyncio.CancelledError:
            await _abandon(client, connecting)
            raise
        except TimeoutError as error:
            await _abandon(client, connecting)
            raise not_connected(self._url, error, timeout_s) from None
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            raise not_connected(self._url, error, timeout_s) from None
        try:
            await self._subscribe(client)
        except BaseException:
            await _close(client)
            raise
        self._client, self._loss = client, asyncio.Event()
        self._connected_at = self._came_at = asyncio.get_running_loop().time()
        self._online.set()
        LOGGER.debug("connected to %s", self._url.where)
        return client

    def _new_client(self) -> aiomqtt.Client:
        user, password = self._url.login(self.mailbox)
        will = None if self._coordinator else aiomqtt.Will(self._up, GONE, AT_LEAST_ONCE)
        client = aiomqtt.Client(
            self._url.host,
            self._url.port,
            username=user,
            password=password,
            identifier=self.mailbox,
            will=will,
            proxy=proxy_settings(self._url.proxy),
            tls_context=self._url.tls_context(),
            timeout=CONNECT_TIMEOUT_S,
            keepalive=self._keepalive_s,
            queue_type=_no_queue(self._arrived),
            logger=LIBRARY,
            # Without this, Nagle's algorithm and delayed acknowledgements add 40 ms a message.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )
        client.pending_calls_threshold = 2 * IN_FLIGHT
        return client

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        try:
            topics = [(topic, AT_LEAST_ONCE) for topic in self._filters]
            codes = await heeded(client.subscribe(topics))
        except aiomqtt.MqttError as error:
            raise no_reading(self._url, self._root, error) from None
        if any(number(code) >= 128 for code in codes):
            raise no_reading(self._url, self._root)

    async def _keep(self, client: aiomqtt.Client) -> None:
        """Connect again whenever the connection is lost."""
        try:
            while True:
                try:
                    async for _ in client.messages:
                        pass  # none is ever here: they are taken as they arrive
                except aiomqtt.MqttError as error:
                    self._lost(error)
                    await _close(client)
                    client = await self._reconnect()
        except Exception as error:  # noqa: BLE001  (whatever it is, nobody must wait for ever)
            self._fail(error)
        finally:
            await _close(client)

    def _fail(self, error: Exception) -> None:
        """Nothing will come any more, and nothing be published."""
        self._failure = BrokerError(
            f"the connection to the broker at {self._url.where} could not be kept: "
            f"{type(error).__name__}"
        )
        self._online.set()
        self._loss.set()
        for end in self._ends.values():
            end.fail(self._failure)

    def _lost(self, error: aiomqtt.MqttError) -> None:
        now = asyncio.get_running_loop().time()
        self._online.clear()
        self._loss.set()
        self._outages.append(_Outage(now, math.inf, str(error)))
        for patience in self._unacknowledged:
            patience.reschedule(now)
        if now - self._connected_at >= STEADY_S:
            self._pause_s = PAUSE_S
        self._tell(f"the connection to the broker at {self._url.where} was lost: {error}")

    async def _reconnect(self) -> aiomqtt.Client:
        """Connect again, however long it takes: those who wait have deadlines of their own."""
        while True:
            await self._pause()
            try:
                client = await self._connect()
            except BrokerError as error:
                self._outages[-1].why = str(error)
                self._tell(str(error))
            else:
                self._back("again")
                self._spawn(self._say_here())
                return client

    def _back(self, how: str) -> None:
        """There is a connection again, or at last."""
        self._outages[-1].until = self._connected_at
        away_s = self._connected_at - self._outages[-1].since
        LOGGER.warning("connected to %s %s, after %.1f s", self._url.where, how, away_s)
        self._told = ""

    async def _pause(self) -> None:
        """Wait before the next attempt: ever longer, and not when everybody else tries again."""
        pause_s = self._pause_s * (0.5 + float(self._rng.uniform((1,))[0]))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s)

    def _tell(self, trouble: str) -> None:
        """Tell whoever reads the log, once as long as it stays the same."""
        sort = re.sub(r" Trying again for .*", "", trouble)
        if sort != self._told:
            self._told = sort
            LOGGER.warning("%s", trouble)

    def cut_off(self, since: float) -> str | None:
        """For how long there was no connection since then, in words; None if not for a second."""
        now = asyncio.get_running_loop().time()
        away = [o for o in self._outages if o.until > since]
        seconds = sum(min(o.until, now) - max(o.since, since) for o in away)
        if seconds < 1:
            return None
        whole = "in all" if since == -math.inf else "of that time"
        until = "so far" if away[-1].until > now else whole
        return (
            f"this process had no connection to the broker for {seconds:.0f} s {until} "
            f"({away[-1].why.rstrip('.?')})"
        )

    def crowded(self, since: float) -> str | None:
        """That far more has come in since then than a study's messages, in words."""
        came = sum(read for second, read in self._came_in if second + 1 > since)
        known = self._came_in[0][0] if len(self._came_in) == SECONDS_KEPT else since
        seconds = max(asyncio.get_running_loop().time() - max(since, known), 1.0)
        if came <= max(MOST_OF_A_STUDY, len(self._heard)) * seconds:
            return None
        return (
            f"{came:,} messages have come in, {came / seconds:,.0f} a second: does "
            "someone flood this broker?"
        )

    async def _beat(self) -> None:
        """Say now and then that this connection is there."""
        while True:
            await asyncio.sleep(BEAT_S)
            await self._say_here()

    async def _say_here(self) -> None:
        if not self._coordinator and self._online.is_set() and self._client is not None:
            with contextlib.suppress(aiomqtt.MqttError):
                await heeded(self._client.publish(self._up, HERE, qos=0))

    # ── sizes ──────────────────────────────────────────────────────────────────────────────────

    async def _learn_sizes(self) -> None:
        """Send ever larger payloads to ourselves, until one does not come back."""
        loop, patience_s = asyncio.get_running_loop(), PROBE_S
        lobby_ends = loop.time() + self._lobby_s
        for payload_bytes in PROBES:
            started = loop.time()
            if not await self._carries(payload_bytes, patience_s, lobby_ends):
                if payload_bytes == PROBES[0]:
                    raise no_echo(self._url, self._up)
                LOGGER.warning(
                    "the broker at %s does not carry %s bytes at a time; larger messages are cut "
                    "into pieces of %s", self._url.where, f"{payload_bytes:,}",
                    f"{self.payload_bytes:,}",
                )  # fmt: skip
                break
            self.payload_bytes = payload_bytes
            patience_s = min(PROBE_S, 1.0 + 50 * (loop.time() - started))
        await self._back_by(lobby_ends)

    async def _carries(self, payload_bytes: int, patience_s: float, lobby_ends: float) -> bool:
        """Whether the broker carries so much. Some hang up if not: then it is tried again."""
        for _ in range(PROBE_HANG_UPS):
            await self._back_by(lobby_ends)
            loss = self._loss
            if await self._comes_back(payload_bytes, patience_s):
                return True
            if not loss.is_set():
                return False
        return False

    async def _back_by(self, deadline: float) -> None:
        """Wait for the connection, for as long as the study may still be waiting for us."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._online.wait()
        except TimeoutError:
            why = self._outages[-1].why
            raise BrokerError(
                f"the broker at {self._url.where} was lost before the study began ({why})"
            ) from None

    async def _comes_back(self, payload_bytes: int, patience_s: float) -> bool:
        token = self._rng.bytes(TOKEN_BYTES)
        came = asyncio.Event()
        self._probes[token] = (payload_bytes, came)
        try:
            async with asyncio.timeout(patience_s):
                if not await self._published(self._up, probe(token, payload_bytes)):
                    return False
                await came.wait()
        except TimeoutError:
            return False
        finally:
            del self._probes[token]
        return True

    def fit(self, payload_bytes: int) -> None:
        """Be told by the coordinator how large a payload the broker carries."""
        self.payload_bytes = min(max(payload_bytes, SMALLEST_PAYLOAD), LARGEST_PAYLOAD)

    # ── carrying ───────────────────────────────────────────────────────────────────────────────

    def topic(self, target: str, routes: dict[str, str]) -> str | None:
        """Where what is for ``target`` is published; None if nobody knows."""
        if target == COORDINATOR:
            return self._up
        if target == EVERYONE:
            return self._all
        address = routes.get(target)
        return self.box(address) if address is not None else None

    def box(self, address: str) -> str:
        """The topic of an address."""
        return f"{self._root}/box/{address}"

    async def publish(self, topic: str, raw: bytes) -> None:
        """Publish until the broker has acknowledged every piece; `BrokerError` if it never does."""
        room = self.payload_bytes - PIECE_OVERHEAD
        if len(raw) > min(room, BATCH_BYTES):
            # The pieces of one message follow each other: many half messages would fill the
            # memory of the one who puts them together.
            async with self._one_in_pieces:
                for piece in cut(raw, self._rng, room):
                    async with self._window:
                        await self._deliver(topic, piece)
            return
        boxed = topic.startswith(self.box(""))  # a study, too, may be called like one of our words
        lane, _, reader = topic.rpartition("/") if boxed else (topic, "", "")
        published = asyncio.get_running_loop().create_future()
        waiting = self._lanes.setdefault(lane, deque())
        waiting.append((reader, raw, published))
        if len(waiting) == 1:
            self._spawn(self._serve(lane, waiting))
        await published

    async def _serve(self, lane: str, waiting: deque[_Waiting]) -> None:
        """Send what waits on a lane, as much together as fits, whenever there is a free place."""
        while waiting:
            await self._window.acquire()
            messages = ((reader, raw) for reader, raw, _ in waiting)
            # What is for everyone goes alone: there are few of these, and many who would divide it.
            fitting = 1 if lane == self._all else fits_in_batch(messages, self.payload_bytes)
            count = max(fitting, 1)
            together = [waiting.popleft() for _ in range(count)]
            self._spawn(self._send_together(lane, together))
        self._lanes.pop(lane, None)

    async def _send_together(self, lane: str, together: list[_Waiting]) -> None:
        try:
            if len(together) == 1:
                reader, raw, _ = together[0]
                topic = f"{lane}/{reader}" if reader else lane
                await self._deliver(topic, whole(raw))
            else:
                topic = f"{lane}/{SEVERAL}" if together[0][0] else lane
                await self._deliver(topic, batch([(reader, raw) for reader, raw, _ in together]))
        except BaseException as error:
            for _, _, published in together:
                if not published.done():
                    published.set_exception(_of_the_broker(error))
            if not isinstance(error, BrokerError):
                raise
        else:
            for _, _, published in together:
                if not published.done():
                    published.set_result(None)
        finally:
            self._window.release()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, topic: str, payload: bytes) -> None:
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._longest_wait_s):
                if not await self._published(topic, payload):
                    async with self._one_again:
                        await self._deliver_again(topic, payload)
        except TimeoutError:
            why = self.cut_off(started) or self._unanswered(started)
            raise BrokerError(
                f"the broker at {self._url.where} did not acknowledge a message within "
                f"{self._longest_wait_s:g} s: {why}"
            ) from None

    def _unanswered(self, since: float) -> str:
        """What is known where a message was not acknowledged, and no loss was noticed."""
        if self._came_at > since:
            return f"the connection stands: something else came over it meanwhile; {FULL}"
        quiet_s = asyncio.get_running_loop().time() - self._came_at
        return (
            "neither a message nor an acknowledgement has come over this connection for "
            f"{quiet_s:.0f} s; is the line dead, {FULL}"
        )

    async def _deliver_again(self, topic: str, payload: bytes) -> None:
        """Publish what was under way when the connection was lost, after all others that were.

        If a broker does not bear a message, we must know which: so they are sent one by one.
        """
        loop, hang_ups = asyncio.get_running_loop(), 0
        while hang_ups < HANG_UPS:
            await self._online.wait()
            sent_at = loop.time()
            if await self._published(topic, payload):
                return
            hang_ups = hang_ups + 1 if loop.time() - sent_at < STEADY_S else 0
        raise hangs_up(self._url, topic, len(payload))

    async def _published(self, topic: str, payload: bytes) -> bool:
        """Publish once and wait for the acknowledgement as long as the connection lives."""
        await self._online.wait()
        if self._failure is not None:
            raise self._failure
        client, loss = self._client, self._loss
        assert client is not None
        try:
            async with asyncio.timeout(None) as patience:  # which ends when the connection does
                self._unacknowledged.add(patience)
                try:
                    await heeded(
                        client.publish(topic, payload, qos=AT_LEAST_ONCE, timeout=math.inf)
                    )
                finally:
                    self._unacknowledged.discard(patience)
        except TimeoutError:
            return False
        except aiomqtt.MqttError:
            with contextlib.suppress(TimeoutError):  # if it was not the connection's loss
                async with asyncio.timeout(STEADY_S):
                    await loss.wait()  # or it would be tried over this connection again and again
            return False
        self._came_at = asyncio.get_running_loop().time()
        return True

    def _arrived(self, message: aiomqtt.Message) -> None:
        """Take a message at once. Nothing of ours is retained: somebody left that here."""
        self._read += 1
        now = self._came_at = asyncio.get_running_loop().time()
        if not self._came_in or now >= self._came_in[-1][0] + 1:
            self._came_in.append([math.floor(now), 0])
        self._came_in[-1][1] += 1
        if message.retain or not isinstance(message.payload, bytes):
            return
        try:
            self._take(message.topic.value, message.payload)
        except Exception as error:  # noqa: BLE001  (whatever is wrong with one, go on listening)
            LOGGER.debug("a message that came could not be read: %s", type(error).__name__)

    def _take(self, topic: str, payload: bytes) -> None:
        """Put a message together from its pieces and hand it to those it is for."""
        kind, _, rest = topic.removeprefix(f"{self._root}/").partition("/")
        mailbox, _, reader = rest.partition("/")
        if kind not in ([COORDINATOR] if self._coordinator else ["all", "box"]):
            return  # we have not asked for it: a broker that is not honest sends it
        if kind == COORDINATOR and self._of_connections(mailbox, payload):
            return
        if is_batch(payload):
            if kind == COORDINATOR:  # divided when its sender's turn has come
                self._hand_over(COORDINATOR, payload, mailbox)
            for name, raw in (unbatch(payload) or ()) if kind == "box" else ():
                self._hand_over(name, raw, mailbox)
            return
        if kind == "box" and reader not in self._ends:
            return
        stranger = kind == COORDINATOR and mailbox not in self._heard
        assembler = self._assembler_for_strangers if stranger else self._assembler
        message = assembler.add(rest, payload)
        if message is not None:
            message = message[: self._size_limit + 1]  # enough to see that it is too large
            self._hand_over(reader if kind == "box" else None, message, mailbox)

    def _of_connections(self, mailbox: str, payload: bytes) -> bool:
        """Take note of what connections say of themselves; whether it was no more than that."""
        if mailbox in self._heard:
            now = asyncio.get_running_loop().time()
            if payload == GONE:
                self._gone.setdefault(mailbox, now)
            else:
                self._heard[mailbox] = now
                self._gone.pop(mailbox, None)
        token = token_of(payload, TOKEN_BYTES)
        length, came = self._probes.get(token or b"", (0, None))
        if came is not None and len(payload) == length:
            came.set()
        return token is not None or payload in (HERE, GONE)

    def watch(self, mailbox: str) -> None:
        """From now on, know when this mailbox was last heard of."""
        self._heard[mailbox] = asyncio.get_running_loop().time()
        self._gone.pop(mailbox, None)

    def unwatch(self, mailbox: str) -> None:
        """Nobody asks for this mailbox any more."""
        self._heard.pop(mailbox, None)
        self._gone.pop(mailbox, None)

    def last_heard(self, mailbox: str) -> float | None:
        """When a mailbox that is watched was last heard of; minus infinity: it is gone.

        Whoever has lost its connection may have it again in a moment; and while we have none, or
        have it for a moment only, we cannot tell.
        """
        now = asyncio.get_running_loop().time()
        if mailbox not in self._heard:
            return None
        if not self._online.is_set():
            return now
        if now - self._gone.get(mailbox, math.inf) > BACK_S:
            return -math.inf
        return max(self._heard[mailbox], self._connected_at)

    def missed(self, mailbox: str) -> bool:
        """Whether the broker has said of a mailbox that it is gone, and nothing came since."""
        return mailbox in self._gone

    def _hand_over(self, reader: str | None, raw: bytes, mailbox: str) -> None:
        """To one agent behind this connection, or to all of them."""
        ends = [*self._ends.values()] if reader is None else [self._ends.get(reader)]
        for end in filter(None, ends):
            end.take(raw, mailbox)

    async def turn(self) -> None:
        """Wait until the next message may be handled: a few in each turn of the loop.

        If thousands acted on one at once, nobody would look after the connection meanwhile, and the
        broker would take it for dead. While more can be read, that goes first, up to a point: what
        is not read waits with the broker, in one line for all. Where there is nothing to be read, a
        turn lasts a little longer.
        """
        loop = asyncio.get_running_loop()
        if not self._turns and loop.time() < self._quiet_until:
            return
        mine = loop.create_future()
        if not self._turns:
            loop.call_soon(self._give_turns, self._read, 0)
        self._turns.append(mine)
        await mine

    def _give_turns(self, read_before: int, ahead: int) -> None:
        if self._read > read_before and ahead < READ_AHEAD:
            ahead += 1
        else:
            quiet = self._read == read_before
            now = asyncio.get_running_loop().time()
            self._quiet_until = now + IN_A_ROW_S if quiet else -math.inf
            ahead = 0
            for _ in range(min(IN_A_TURN, len(self._turns))):
                mine = self._turns.popleft()
                if not mine.done():
                    mine.set_result(None)
        if self._turns:
            asyncio.get_running_loop().call_soon(self._give_turns, self._read, ahead)


def _no_queue(
    take: Callable[[aiomqtt.Message], None],
) -> type["asyncio.Queue[aiomqtt.Message]"]:
    """A queue for aiomqtt in which nothing waits: its own is one line for all senders.

    While that was worked off, nobody would notice either that the connection is lost.
    """

    class NoQueue(asyncio.Queue[aiomqtt.Message]):
        def put_nowait(self, item: aiomqtt.Message) -> None:
            take(item)

    return NoQueue


def _mailbox_of(address: str) -> str:
    return address.partition("/")[0]


def _of_the_broker(error: BaseException) -> BrokerError:
    """What those are told who wait for a message to be published."""
    if isinstance(error, BrokerError):
        return error
    return BrokerError(f"a message could not be published: {type(error).__name__}")


def _quiet_lost_sockets(loop: asyncio.AbstractEventLoop) -> None:
    """Keep asyncio from printing a trace when a socket is gone before paho has unregistered it.

    Nor when a connection ended as we gave it up, and nobody asks any more why. A loss itself is
    noticed and handled by the keeper of the connection.
    """
    previous = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        about_sockets = re.search("(add|remove)_(reader|writer)", str(context.get("message")))
        what = context.get("exception")
        if isinstance(what, aiomqtt.MqttError) or (
            about_sockets and isinstance(what, OSError | ValueError)
        ):
            return
        if previous is not None:
            previous(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


async def heeded(call: Awaitable[T]) -> T:
    """What a call of aiomqtt returns, unless the task is cancelled meanwhile.

    ``asyncio.wait_for`` before Python 3.12, which aiomqtt uses, forgets that it was cancelled if
    what it waits for comes at the same moment: a Ctrl-C would be lost, and the study go on.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    found = await call
    if task.cancelling() > before:
        raise asyncio.CancelledError
    return found


async def _close(client: aiomqtt.Client) -> None:
    with contextlib.suppress(aiomqtt.MqttError):
        await client.__aexit__(None, None, None)


async def _abandon(client: aiomqtt.Client, connecting: "asyncio.Future[Any]") -> None:
    """Undo a connection for which nobody waits any more: its socket must not outlive its loop."""
    await asyncio.wait({connecting}, timeout=ABANDON_S)
    connecting.cancel()
    with contextlib.suppress(aiomqtt.MqttError, OSError, TimeoutError):
        async with asyncio.timeout(ABANDON_S):
            await client.__aexit__(None, None, None)


class MqttTransport:
    """One agent's end of an `MqttConnection`."""

    def __init__(
        self, connection: MqttConnection, name: str, secret: bytes, size_limit: int
    ) -> None:
        self._connection, self._name = connection, name
        self._routes: dict[str, str] = {}
        self._inbox: FairQueue[_Parcel] = FairQueue(INBOX_BYTES + 4 * size_limit, secret)
        self._arrived = asyncio.Event()
        self._failure: BrokerError | None = None

    @property
    def address(self) -> str:
        """The mailbox of the connection and the agent's name in it."""
        return f"{self._connection.mailbox}/{self._name}"

    @property
    def payload_bytes(self) -> int:
        """How large a payload the broker is known to carry."""
        return self._connection.payload_bytes

    def fit(self, payload_bytes: int) -> None:
        """Be told how large a payload the broker carries."""
        self._connection.fit(payload_bytes)

    def route(self, target: str, address: str) -> None:
        """Deliver what is for ``target`` to ``address``."""
        self._routes[target] = address
        self._connection.watch(_mailbox_of(address))

    def unroute(self, target: str) -> None:
        """Forget an address, and its mailbox if nobody else is there."""
        mailbox = _mailbox_of(self._routes.pop(target, ""))
        if mailbox not in map(_mailbox_of, self._routes.values()):
            self._connection.unwatch(mailbox)

    def last_heard(self, address: str) -> float | None:
        """When something last came from an address to which we have a route."""
        return self._connection.last_heard(_mailbox_of(address))

    def missed(self, address: str) -> bool:
        """Whether the broker said a moment ago that who is there has gone."""
        return self._connection.missed(address.partition("/")[0])

    def cut_off(self, since: float) -> str | None:
        """For how long there was no connection since then, in words."""
        return self._connection.cut_off(since)

    def crowded(self, since: float) -> str | None:
        """That far more has come in since then than a study's messages, in words."""
        return self._connection.crowded(since)

    def take(self, raw: bytes, mailbox: str) -> None:
        """Put a message, or a batch, in the inbox. If it is full some are lost, and asked for."""
        self._put(_Parcel(mailbox, raw))
        self._arrived.set()

    def _put(self, parcel: _Parcel) -> None:
        self._inbox.put(parcel.mailbox, parcel, parcel.cost)

    def fail(self, why: BrokerError) -> None:
        """Nothing will come any more."""
        self._failure = why
        self._arrived.set()

    async def answer(self, address: str, raw: bytes) -> None:
        """Publish a message to an address."""
        await self._connection.publish(self._connection.box(address), raw)

    async def send(self, target: str, raw: bytes) -> None:
        """Publish a message; one for an unknown target is lost."""
        topic = self._connection.topic(target, self._routes)
        if topic is not None:
            await self._connection.publish(topic, raw)

    @property
    def behind(self) -> bool:
        """Whether messages have come that were not taken from here yet."""
        return len(self._inbox) > 0

    async def recv(self) -> Arrival:
        """The next message; `BrokerError` when the connection is lost for good."""
        while True:
            while not len(self._inbox):
                if self._failure is not None:
                    raise self._failure
                self._arrived.clear()
                await self._arrived.wait()
            await self._connection.turn()
            parcel = self._inbox.get()
            raw = parcel.first()
            if len(parcel):
                self._put(parcel)  # its others wait for their sender's next turn
            if raw is not None:
                return Arrival(raw, parcel.mailbox)
