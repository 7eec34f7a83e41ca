"""The carrier of earnest runs: any MQTT 3.1.1 broker, through aiomqtt.

Topics, all under ``mpc_rr/<study>/``: ``coordinator`` for what goes up, ``all`` for what everyone
gets, ``box/<mailbox>/<party>`` for one party. A mailbox is a connection; a host gives thousands of
parties one mailbox, which needs two subscriptions however many parties there are.

Under load messages wait a moment for a free place and then travel together (``box/<mailbox>/=`` for
those to several parties of one mailbox): a client can publish only some thousand times a second.

A lost connection is made again with growing pauses. What the broker had not acknowledged is
published again; what it lost meanwhile, the mailboxes ask for again.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import re
import socket
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from mpc_rr.errors import BrokerError
from mpc_rr.network.address import BrokerUrl, proxy_settings, tls_context
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.fragments import BATCH_BYTES, Assembler, batch, cut, unbatch
from mpc_rr.network.transport import AT_ONCE
from mpc_rr.randomness import Randomness

LOGGER = logging.getLogger("mpc_rr.mqtt")
LOGGER.addHandler(logging.NullHandler())
"""Where the library tells what it sees; nobody reads it unless a program asks for it."""
CONNECT_TIMEOUT_S = 10.0
ABANDON_S = 1.0
RECONNECT_S = 60.0
SEND_S = 120.0
IN_FLIGHT = 8
SEVERAL = "="
"""Stands where a party's name would: no party can be called this."""
INBOX_MESSAGES = 65536
AT_LEAST_ONCE = 1
_BAD_CREDENTIALS = frozenset({4, 5, 134, 135})


_Waiting = tuple[str, bytes, "asyncio.Future[None]"]
"""A reader's name, a message, and who waits for it to be published."""


def _number(code: Any) -> int:
    """A reason code, which paho gives as a number or as an object that holds one."""
    return int(getattr(code, "value", code))


class MqttConnection:
    """One connection to a broker, shared by all agents of this process that were attached to it."""

    def __init__(
        self, url: BrokerUrl, study: str, rng: Randomness, *, size_limit: int, coordinator: bool
    ) -> None:
        self._nodes = deque([url, *url.others])
        self._rng, self._size_limit = rng, size_limit
        self._root = f"mpc_rr/{study}"
        self.mailbox = rng.bytes(8).hex()
        self._filters = (
            [f"{self._root}/coordinator"]
            if coordinator
            else [f"{self._root}/all", f"{self._root}/box/{self.mailbox}/+"]
        )
        self._ends: dict[str, MqttTransport] = {}
        self._assemblers: dict[str, Assembler] = {}
        self._client: aiomqtt.Client | None = None
        self._online = asyncio.Event()
        self._unacknowledged: set[asyncio.Timeout] = set()
        self._window = asyncio.Semaphore(IN_FLIGHT)
        self._lanes: dict[str, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_in_pieces = asyncio.Lock()
        self._failure: BrokerError | None = None
        self._handed_over = 0
        self._handing_over = False

    def attach(self, name: str) -> "MqttTransport":
        """The end of the network for one agent of this process."""
        self._ends[name] = MqttTransport(self, name)
        return self._ends[name]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["MqttConnection"]:
        """Connect, and stay connected as long as the context lasts."""
        _quiet_lost_sockets(asyncio.get_running_loop())
        client = await self._connect()
        keeper = asyncio.create_task(self._keep(client))
        try:
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

    async def _connect(self) -> aiomqtt.Client:
        """Connect to the first node that answers."""
        for _ in range(len(self._nodes) - 1):
            try:
                return await self._connect_to_node()
            except BrokerError:
                self._nodes.rotate(-1)
        return await self._connect_to_node()

    async def _connect_to_node(self) -> aiomqtt.Client:
        client = aiomqtt.Client(
            self._url.host,
            self._url.port,
            username=self._url.user,
            password=self._url.password,
            identifier=f"mpc-rr-{self._rng.bytes(8).hex()}",
            proxy=proxy_settings(self._url.proxy),
            tls_context=tls_context(self._url.ca_file) if self._url.tls else None,
            timeout=CONNECT_TIMEOUT_S,
            logger=LOGGER,
            # Without this, Nagle's algorithm and delayed acknowledgements add 40 ms a message.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )
        client.pending_calls_threshold = 2 * IN_FLIGHT
        connecting = asyncio.ensure_future(client.__aenter__())
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.shield(connecting)
        except asyncio.CancelledError:
            await _abandon(client, connecting)
            raise
        except TimeoutError as error:
            await _abandon(client, connecting)
            raise BrokerError(self._no_answer(error)) from None
        except MqttConnectError as error:
            raise self._refused(error) from None
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            raise BrokerError(self._no_answer(error)) from None
        try:
            await self._subscribe(client)
        except BaseException:
            await _close(client)
            raise
        self._client = client
        self._online.set()
        return client

    def _no_answer(self, error: BaseException) -> str:
        reason = str(error) or f"no answer within {CONNECT_TIMEOUT_S:g} s"
        through, hints = "", ["is it running, and is the address right?"]
        if self._url.proxy is not None:
            through = " through the proxy {}:{}".format(*self._url.proxy)
            hints.append("Is the proxy there, and does it speak SOCKS?")
        if self._url.tls:
            hints.append("Does it speak TLS? (mqtt:// is without)")
        return f"no MQTT broker answers at {self._url.where}{through}: {reason}; {' '.join(hints)}"

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        try:
            codes = await client.subscribe([(topic, AT_LEAST_ONCE) for topic in self._filters])
        except aiomqtt.MqttError as error:
            raise BrokerError(
                f"the broker at {self._url.where} does not answer a subscription: {error}"
            ) from None
        if any(_number(code) >= 128 for code in codes):
            raise BrokerError(
                f"the broker at {self._url.where} does not let us subscribe to {self._root}/…; "
                "check its access rules"
            )

    def _refused(self, error: MqttConnectError) -> BrokerError:
        if _number(error.rc) in _BAD_CREDENTIALS:
            return BrokerError(
                f"the broker at {self._url.where} refused the user name or password; "
                "give them as mqtt://user:password@host:port"
            )
        return BrokerError(f"the broker at {self._url.where} refused the connection: {error}")

    async def _keep(self, client: aiomqtt.Client) -> None:
        try:
            while True:
                try:
                    async for message in client.messages:
                        payload = message.payload
                        if isinstance(payload, bytes):
                            self._handing_over = True
                            try:
                                await self._take(message.topic.value, payload)
                            finally:
                                self._handing_over = False
                except aiomqtt.MqttError:
                    self._online.clear()
                    for patience in self._unacknowledged:
                        patience.reschedule(asyncio.get_running_loop().time())
                    await _close(client)
                    client = await self._reconnect()
        except Exception as error:  # noqa: BLE001  (whatever it is, nobody must wait for ever)
            self._failure = _of_the_broker(error)
            self._online.set()
            for end in self._ends.values():
                end.inbox.put_nowait(self._failure)
        finally:
            await _close(client)

    async def _reconnect(self) -> aiomqtt.Client:
        loop, pause_s = asyncio.get_running_loop(), 0.1
        deadline = loop.time() + RECONNECT_S
        while True:
            try:
                return await self._connect()
            except BrokerError as error:
                if loop.time() >= deadline:
                    raise BrokerError(
                        f"the connection to {self._url.where} was lost and did not come back "
                        f"within {RECONNECT_S:g} s"
                    ) from error
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, 5.0)

    @property
    def behind(self) -> bool:
        """Whether messages have come that were not handed over yet."""
        client = self._client
        return self._handing_over or (client is not None and len(client.messages) > 0)

    # ── carrying ───────────────────────────────────────────────────────────────────────────────

    def topic(self, target: str, routes: dict[str, str]) -> str | None:
        """Where what is for ``target`` is published; None if nobody knows."""
        if target == COORDINATOR:
            return f"{self._root}/coordinator"
        if target == EVERYONE:
            return f"{self._root}/all"
        address = routes.get(target)
        return self.box(address) if address is not None else None

    def box(self, address: str) -> str:
        """The topic of an address."""
        return f"{self._root}/box/{address}"

    async def publish(self, topic: str, raw: bytes) -> None:
        """Publish until the broker has acknowledged every piece; `BrokerError` if it never does."""
        if len(raw) > BATCH_BYTES:
            # The pieces of one message follow each other: many half messages would fill the
            # memory of the one who puts them together.
            async with self._one_in_pieces:
                for piece in cut(raw, self._rng):
                    async with self._window:
                        await self._deliver(topic, piece)
            return
        lane, _, reader = topic.rpartition("/") if "/box/" in topic else (topic, "", "")
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
            together, size = [waiting[0]], len(waiting[0][1])
            for one in itertools.islice(waiting, 1, None):
                size += len(one[1]) + len(one[0])
                if size > BATCH_BYTES:
                    break
                together.append(one)
            for _ in together:
                waiting.popleft()
            self._spawn(self._send_together(lane, together))
        self._lanes.pop(lane, None)

    async def _send_together(self, lane: str, together: list[_Waiting]) -> None:
        try:
            if len(together) == 1:
                reader, raw, _ = together[0]
                topic = f"{lane}/{reader}" if reader else lane
                await self._deliver(topic, cut(raw, self._rng)[0])
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
        try:
            async with asyncio.timeout(SEND_S):
                while not await self._published(topic, payload):
                    pass
        except TimeoutError:
            raise BrokerError(
                f"the broker at {self._url.where} did not acknowledge a message within {SEND_S:g} s"
            ) from None

    async def _published(self, topic: str, payload: bytes) -> bool:
        """Publish once and wait for the acknowledgement as long as the connection lives."""
        await self._online.wait()
        if self._failure is not None:
            raise self._failure
        client = self._client
        assert client is not None
        try:
            async with asyncio.timeout(None) as patience:  # which ends when the connection does
                self._unacknowledged.add(patience)
                try:
                    await client.publish(topic, payload, qos=AT_LEAST_ONCE, timeout=math.inf)
                finally:
                    self._unacknowledged.discard(patience)
        except TimeoutError:
            return False
        except aiomqtt.MqttError:
            await asyncio.sleep(0.05)  # the keeper notices the loss and connects again
            return False
        return True

    async def _take(self, topic: str, payload: bytes) -> None:
        """Put a message together from its pieces and hand it to those it is for."""
        kind, _, rest = topic.removeprefix(f"{self._root}/").partition("/")
        reader = rest.partition("/")[2]
        messages = unbatch(payload) if kind != "all" else None
        if messages is not None:
            for name, raw in messages[:INBOX_MESSAGES]:
                await self._hand_over(name if kind == "box" else None, raw)
            return
        if kind == "box" and reader not in self._ends:
            return
        assembler = self._assemblers.setdefault(topic, Assembler(4 * self._size_limit))
        whole = assembler.add(payload)
        if whole is not None:
            await self._hand_over(reader if kind == "box" else None, whole)

    async def _hand_over(self, reader: str | None, raw: bytes) -> None:
        """To one agent behind this connection, or to all of them.

        A few at a time: if thousands acted on it at once, nobody would look after the connection
        meanwhile, and the broker would take it for dead.
        """
        raw = raw[: self._size_limit + 1]  # enough to see that it is too large
        ends = (
            [*self._ends.values()] if reader is None else [*filter(None, [self._ends.get(reader)])]
        )
        for end in ends:
            end.take(raw)
            self._handed_over += 1
            if self._handed_over % AT_ONCE == 0:
                await asyncio.sleep(0)


def _of_the_broker(error: BaseException) -> BrokerError:
    """What those are told who wait for a message to be published."""
    if isinstance(error, BrokerError):
        return error
    return BrokerError(f"a message could not be published: {type(error).__name__}")


def _quiet_lost_sockets(loop: asyncio.AbstractEventLoop) -> None:
    """Keep asyncio from printing a trace when a socket is gone before paho has unregistered it.

    The loss itself is noticed and handled by the keeper of the connection.
    """
    previous = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        about_sockets = re.search("(add|remove)_(reader|writer)", str(context.get("message")))
        if about_sockets and isinstance(context.get("exception"), OSError | ValueError):
            return
        if previous is not None:
            previous(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


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

    def __init__(self, connection: MqttConnection, name: str) -> None:
        self._connection, self._name = connection, name
        self._routes: dict[str, str] = {}
        self.inbox: asyncio.Queue[bytes | BrokerError] = asyncio.Queue()

    @property
    def address(self) -> str:
        """The mailbox of the connection and the agent's name in it."""
        return f"{self._connection.mailbox}/{self._name}"

    def route(self, target: str, address: str) -> None:
        """Deliver what is for ``target`` to ``address``."""
        self._routes[target] = address

    def take(self, raw: bytes) -> None:
        """Put a message in the inbox. A full inbox loses it; it can be asked for again."""
        if self.inbox.qsize() < INBOX_MESSAGES:
            self.inbox.put_nowait(raw)

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
        """Whether messages have come that were not handed over yet, or not taken from here."""
        return self._connection.behind or not self.inbox.empty()

    async def recv(self) -> bytes:
        """The next message; `BrokerError` when the connection is lost for good."""
        arrived = await self.inbox.get()
        if isinstance(arrived, BrokerError):
            raise arrived
        return arrived
