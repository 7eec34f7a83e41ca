"""One agent's end of the network: it signs and sends, checks what comes, and files it by step.

Theory of operation. A pump task takes raw bytes from the transport and files each message under
(session, step, sender). Whatever fails a check is counted in ``rejected`` under a fixed reason and
dropped. An identical repeat is ignored; a differing one from the same sender for the same step is
misconduct. The agent's one coroutine waits with `collect` for the senders it needs: every wait has
a deadline, asks again while it lasts, and ends early when something more important arrives (a
verdict, a new roster, an objection): such news is raised by `interrupt`.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, ParamSpec, Self

import msgspec

from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import Dropout, Misconduct, MpcRrError, Unheard, listing
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    VERDICT_SESSION,
    WIRE_VERSION,
    Again,
    Header,
    Message,
)
from mpc_rr.network.sealed import Opened, OtherVersion, Reason, Rejected, read, write
from mpc_rr.network.transport import AT_ONCE, Transport

LOGGER = logging.getLogger("mpc_rr.rounds")
FILED_PER_SENDER = 256
FILED_BY_COORDINATOR = 4096
"""More steps than any protocol has, with all its repetitions: who files more is flooding us."""
MESSAGES_OF_THE_LARGEST_KIND = 4
"""As much as so many of them may be filed of one sender: nobody is further ahead of us."""

MOST_PAUSES = 2
"""For so many pauses one may put off asking again, because others' messages are coming in or this
process is slow: not longer, or whoever sends junk keeps lost messages lost."""
ANEW = 0.75
"""Who was cut off in a wait waits once more, for this part of it: others are waited for by then."""
CLOCK_STEP_S = 1e-6
"""Less than this before a deadline is past it: a timer may not be able to wait for so little."""
LOOK_S = 0.1
CAUGHT_UP_S = 60.0
"""Who is sent ever more does not wait longer than this until all of it is read."""
QUIET_TURNS = 3
"""In so many turns of the loop in which nothing is read, there is nothing more to be read."""

P = ParamSpec("P")
Handler = Callable[[Opened], None]


def _ignore(_opened: Opened) -> None:
    """What is not for us."""


class Traffic(msgspec.Struct):
    """Messages and bytes of one step with one peer, and when its first message arrived."""

    messages_up: int = 0
    bytes_up: int = 0
    messages_down: int = 0
    bytes_down: int = 0
    seconds: float | None = None


class Watched(NamedTuple):
    """A share as it is known now, for people to watch, with its limits."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Proof:
    """What signed public messages prove of a party, whatever anybody says."""

    honest: bool
    deed: str
    """What it did: the end of a sentence that begins with its name."""
    about: str
    """Words that are in every honest verdict on such deeds, and in none on others."""


class Patience:
    """For how long to wait, also if news interrupts it; once more if this process was cut off."""

    def __init__(self, timeout_s: float, *, timer: bool = False) -> None:
        self.timeout_s, self.anew_s = timeout_s, 0.0
        self.started = self.since = asyncio.get_running_loop().time()
        """Since when in all, and since when the wait that goes on now."""
        self.may_begin_anew = not timer
        """Once; then for ``anew_s``."""

    @property
    def ends(self) -> float:
        """When it ends at the latest."""
        return self.since + (self.anew_s or self.timeout_s)

    @property
    def waited_s(self) -> float:
        """For how long, when it has ended."""
        return self.timeout_s + self.anew_s

    def begin_anew(self) -> None:
        """Wait once more: who is missing may have spoken, and is asked again."""
        self.may_begin_anew, self.anew_s = False, ANEW * self.timeout_s
        self.since = asyncio.get_running_loop().time()


class _Wait:
    """What `collect` is waiting for now."""

    def __init__(self, session: str, step: str, senders: Iterable[str], patience: Patience) -> None:
        self.session, self.step = session, step
        self.wanted = tuple(senders)
        self.missing = dict.fromkeys(self.wanted)
        self.wake = asyncio.Event()
        self.started = self.latest = asyncio.get_running_loop().time()
        self.asked_at = self.tried_at = self.started
        """When the missing were last asked, and when it was last thought of."""
        self.patience = patience
        self.before_news = False
        """Whether what has come is taken even if there is news."""
        self.spared, self.stragglers_s = 0, math.inf
        """When only so many are missing, how long after the latest to wait for them."""

    def ask_at(self, pause_s: float) -> float:
        """When to ask for what is missing: every pause, but not while others' messages come in.

        Then the missing ones may well be among those on their way, and whoever asks for them makes
        everybody's way longer.
        """
        pause_s = self._shortened(pause_s)
        quiet = max(self.tried_at + pause_s, self.latest + pause_s / 10)
        return min(quiet, self.must_ask_at(pause_s))

    def must_ask_at(self, pause_s: float) -> float:
        """From when on nothing is a reason any more to put it off."""
        return self.asked_at + MOST_PAUSES * self._shortened(pause_s)

    def _shortened(self, pause_s: float) -> float:
        """Those who may be left out are not waited for much longer than the others."""
        few = 0 < len(self.missing) <= self.spared
        return min(pause_s, self.stragglers_s / 3) if few else pause_s

    @property
    def deadline(self) -> float:
        """When this wait ends at the latest, as things stand."""
        last = self.patience.ends
        enough = 0 < len(self.missing) <= self.spared
        return min(last, self.latest + self.stragglers_s) if enough else last

    def begin_anew(self) -> None:
        """Wait once more."""
        self.patience.begin_anew()
        self.latest = self.patience.since


class Mailbox:
    """Signs, seals and sends; checks, files and hands over what arrives.

    ``up`` in ``traffic`` is towards the coordinator, ``down`` is from it.
    """

    told_at = logging.DEBUG
    """The level of what is logged of this agent's steps."""

    def __init__(
        self,
        me: str,
        identity: Identity,
        transport: Transport,
        *,
        study: str,
        ask_again_s: float,
        size_limit: int,
    ) -> None:
        self.me, self.identity, self.transport, self.study = me, identity, transport, study
        self.ask_again_s, self.size_limit = ask_again_s, size_limit
        self.run: bytes = b""
        self.session_root = ""
        """What is said in this session, and in those below it, is filed."""
        self.keys: dict[str, PublicIdentity] = {}
        self.watched: tuple[tuple[Watched, ...], str] = ((), "")
        """For a coordinator: shares as they are now, for people to watch, and a line about them."""
        self.keys_digest: bytes = b""
        """For a party: the digest of the roster from which it has the keys."""
        self.rejected: Counter[Reason] = Counter()
        self.traffic: dict[tuple[str, str, str], Traffic] = {}
        """By (session, step, peer)."""
        self.messages = self.bytes = 0
        self.open_handlers: dict[str, Handler] = {}
        """Steps whose handler checks run and signature itself: the key is in the message."""
        self.handlers: dict[str, Handler] = {Again.step: self._on_again}
        """Steps that are handled on arrival instead of being filed; their signature is checked."""
        self.watchers: dict[str, Handler] = {}
        """Steps that are looked at on arrival and then filed like all others."""
        self.on_other_version: Handler = _ignore
        """What to do with a message of this study in another version of the wire."""
        self.catch_up: bytes | None = None
        """What to send to somebody who asks for a message of a session that is over."""
        self.verdict: bytes | None = None
        """For a coordinator: how the study ended. Whoever asks for something is told it first."""
        self.last_wait = ("", "")
        """Session and step of the latest wait: where an objection belongs."""
        self.round_seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.routed: dict[tuple[str, str], dict[str, dict[str, bytes]]] = {}
        """By (session, step): the sealed parcels this coordinator routed, by sender and target."""
        self.transcript: list[bytes] = []
        """The public messages, in the protocol's order; a party's: its own, and what it heard."""
        self.proof: Callable[[str], Proof | None] = lambda _party: None
        """For a party: what it has seen that proves something of another."""
        self.came_from: str | None = None
        """The mailbox from which the message came that is handled now, if the carrier knows it."""
        self._targets = (me, EVERYONE)
        self._filed: dict[tuple[str, str, str], Opened] = {}
        self._fingerprints: dict[tuple[str, str, str], bytes] = {}
        self._contradicted: set[tuple[str, str, str]] = set()
        """Of these it is known that their sender contradicts himself: each is news once."""
        self._filed_by: Counter[str] = Counter()
        self._filed_bytes: Counter[str] = Counter()
        self._sent: dict[tuple[str, str, str], bytes] = {}
        self._resent_at: dict[tuple[str, str, str], float] = {}
        self._news: deque[Exception] = deque()
        self._wait: _Wait | None = None
        self._read = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self.spawn(self._pump)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.on_other_version = _ignore
        for handlers in (self.open_handlers, self.handlers, self.watchers):
            handlers.clear()  # they hold the agent, which holds this: it would stay until searched

    # ── sending ────────────────────────────────────────────────────────────────────────────────

    def header(self, session: str, step: str, target: str) -> Header:
        """The header of a message of ours."""
        return Header(WIRE_VERSION, self.study, self.run, session, step, self.me, target)

    def write(self, session: str, step: str, target: str, message: msgspec.Struct) -> bytes:
        """A signed message of ours, sealed to its target if its kind is private."""
        sealed = isinstance(message, Message) and message.sealed
        reader = self.keys[target] if sealed else None
        return write(self.header(session, step, target), message, self.identity, reader)

    async def post(self, session: str, step: str, target: str, raw: bytes) -> None:
        """Send raw bytes, count them, and once they are out keep them for whoever asks again."""
        self.count(session, step, target, sent=len(raw))
        await self.transport.send(target, raw)
        self._sent[session, step, target] = raw

    def transcribe(self, raw: bytes) -> None:
        """Enter a public message in the transcript."""
        self.transcript.append(raw)

    async def tell(self, session: str, target: str, message: Message) -> bytes:
        """Write and post one message; returns its raw bytes."""
        raw = self.write(session, message.step, target, message)
        await self.post(session, message.step, target, raw)
        return raw

    @staticmethod
    def now() -> float:
        """The time by which deadlines are kept."""
        return asyncio.get_running_loop().time()

    # ── waiting ────────────────────────────────────────────────────────────────────────────────

    async def collect(
        self,
        session: str,
        step: str,
        senders: Iterable[str],
        timeout_s: float,
        *,
        before_news: bool = False,
    ) -> dict[str, Opened]:
        """One message of this step from each sender; `Dropout` names those who stay silent."""
        senders = tuple(senders)
        await self.await_all(session, step, senders, timeout_s, before_news=before_news)
        return self.take(session, step, senders)

    async def await_all(
        self,
        session: str,
        step: str,
        senders: Iterable[str],
        timeout_s: float | Patience,
        *,
        fewest: int = 0,
        stragglers_s: float = math.inf,
        before_news: bool = False,
    ) -> None:
        """Wait until each sender's message of this step is filed, and leave them there.

        Once ``fewest`` are there, wait for the rest only ``stragglers_s`` after the latest.
        """
        self.last_wait = (session, step)
        patience = timeout_s if isinstance(timeout_s, Patience) else Patience(timeout_s)
        wait = _Wait(session, step, senders, patience)
        wait.before_news = before_news
        wait.spared, wait.stragglers_s = max(len(wait.wanted) - fewest, 0), stragglers_s
        for sender in wait.wanted:
            if (session, step, sender) in self._filed:
                wait.missing.pop(sender)
        try:
            await self._until_done(wait)
        finally:
            seconds = asyncio.get_running_loop().time() - wait.started
            self.round_seconds[session, step] += seconds
            came = len(wait.wanted) - len(wait.missing)
            LOGGER.log(
                self.told_at, "%s: %d of %d for step %r in %s, after %.1f s",
                self.me, came, len(wait.wanted), step, session, seconds,
            )  # fmt: skip

    def take(self, session: str, step: str, senders: Iterable[str]) -> dict[str, Opened]:
        """The filed messages of these senders; they are filed no longer."""
        taken = {sender: self._filed.pop((session, step, sender)) for sender in senders}
        self._filed_by.subtract(taken.keys())
        for sender, opened in taken.items():
            self._filed_bytes[sender] -= len(opened.raw)
        return taken

    async def wait_for_news(self, session: str, step: str, timeout_s: float) -> None:
        """Wait until `interrupt` raises something; `Dropout` if nothing does.

        A party that knows its coordinator asks it for ``step`` meanwhile.
        """
        patience = Patience(timeout_s, timer=True)
        await self._until_done(_Wait(session, step, (COORDINATOR,), patience))

    def interrupt(self, news: Exception, *, before_others: bool = False) -> None:
        """Raise ``news`` in the coroutine that waits, now or when it next waits."""
        if before_others:
            self._news.appendleft(news)
        else:
            self._news.append(news)
        if self._wait is not None:
            self._wait.wake.set()

    def raise_news(self) -> None:
        """Raise now what the next wait would raise, if there is any."""
        if self._news:
            raise self._news.popleft()

    async def caught_up(self) -> None:
        """Wait until all that has come is read: who has slept hears then what happened meanwhile.

        What has come may not have been taken from the socket yet.
        """
        deadline, quiet = self.now() + CAUGHT_UP_S, 0
        while quiet < QUIET_TURNS and self.now() < deadline and not self._news:
            if self.transport.behind:
                self._read.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._read.wait()
                quiet = 0
            else:
                await asyncio.sleep(0)
                quiet += 1

    def hurry(self, pause_s: float) -> None:
        """From now on, ask for what is missing after so short a pause."""
        self.ask_again_s = min(self.ask_again_s, pause_s)
        if self._wait is not None:
            self._wait.wake.set()

    def take_part(self, run: bytes, coordinator: PublicIdentity) -> None:
        """From now on, be a party of this run; nothing that was said in another counts."""
        self.run, self.keys[COORDINATOR] = run, coordinator
        self._contradicted.clear()
        for filed in (self._filed, self._fingerprints, self._filed_by, self._filed_bytes):
            filed.clear()

    def forget_earlier_attempts(self) -> None:
        """Keep only what belongs to this session, where it may have come already, or to the end.

        Nobody takes the rest any more, and it would count towards a flood.
        """
        kept = (self.session_root, VERDICT_SESSION)
        for key in [key for key in self._fingerprints if key[0].split("/")[0] not in kept]:
            del self._fingerprints[key]
            self._contradicted.discard(key)
            if key in self._filed:
                self.take(*key[:2], key[2:])

    def dismiss(self, sender: str) -> None:
        """Take no more notice of a sender: neither of what comes nor of what came already."""
        self.keys.pop(sender, None)
        news = [n for n in self._news if sender not in getattr(n, "culprits", ())]
        self._news = deque(news)

    def drop_news(self, kind: type[Exception]) -> None:
        """Raise no more of this kind: it is known, or it no longer matters."""
        self._news = deque(news for news in self._news if not isinstance(news, kind))

    def forget(self, peer: str, steps: Iterable[str]) -> None:
        """Keep nothing of somebody who was in the lobby, for a moment only."""
        for step in steps:
            key = (LOBBY_SESSION, step, peer)
            self.traffic.pop(key, None)
            self._sent.pop(key, None)
            self._resent_at.pop(key, None)

    def waiting(self) -> tuple[str, int, int]:
        """Step, how many have come, how many are wanted: for a progress display."""
        wait = self._wait
        if wait is None:
            return ("", 0, 0)
        return (wait.step, len(wait.wanted) - len(wait.missing), len(wait.wanted))

    async def _until_done(self, wait: _Wait) -> None:
        loop = asyncio.get_running_loop()
        self._wait = wait
        try:
            while True:
                if not wait.missing and wait.before_news:
                    return
                if self._news:
                    raise self._news.popleft()
                if not wait.missing:
                    return
                left_s = wait.deadline - loop.time()
                if left_s <= CLOCK_STEP_S:
                    patience = wait.patience
                    if patience.may_begin_anew and self.transport.cut_off(patience.since):
                        wait.begin_anew()
                        continue
                    raise self.silence(
                        wait.missing, wait.step, patience.waited_s, patience.started, patience.since
                    )
                quiet_s = wait.ask_at(self.ask_again_s) - loop.time()
                if quiet_s <= CLOCK_STEP_S:
                    self._ask_all(wait, late_s=-quiet_s)
                else:
                    await self._woken(wait, min(quiet_s, left_s))
        finally:
            self._wait = None

    def silence(
        self,
        missing: Collection[str],
        step: str,
        waited_s: float,
        since: float,
        anew: float | None = None,
    ) -> Dropout:
        """Who did not write; and if it is we who could not hear, that.

        In a flood of others' messages, or without a connection, nobody is silent of whom it could
        be known. ``anew``: when the wait began anew; what was before is told, and no reason.
        """
        latest = since if anew is None else anew
        unheard = self.transport.cut_off(latest) or self.transport.crowded(latest)
        cut_off, crowded = self.transport.cut_off(since), self.transport.crowded(since)
        but = "".join(f"; {why}" for why in (crowded, cut_off) if why)
        where = f"for step {step!r} within {waited_s:g} s"
        if unheard is None:
            return Dropout(f"{listing(missing)} sent nothing {where}{but}", missing)
        return Unheard(f"{listing(missing)} could not be heard {where}{but}", missing)

    @staticmethod
    async def _woken(wait: _Wait, timeout_s: float) -> None:
        """Wait until something happens, or the time is over."""
        timer = asyncio.get_running_loop().call_later(timeout_s, wait.wake.set)
        try:
            await wait.wake.wait()
        finally:
            timer.cancel()
        wait.wake.clear()

    def _ask_all(self, wait: _Wait, late_s: float) -> None:
        """Ask all who are missing, unless it is we who are slow: then theirs may be here already.

        ``late_s``: how much later than planned we got our turn in a busy process.
        """
        wait.tried_at = self.now()
        slow = self.transport.behind or late_s > self.ask_again_s / 2
        if slow and wait.tried_at + CLOCK_STEP_S < wait.must_ask_at(self.ask_again_s):
            return
        wait.asked_at = wait.tried_at
        for sender in wait.missing:
            if sender in self.keys:
                self.spawn(self._ask_again, wait, sender)

    async def _ask_again(self, wait: _Wait, sender: str) -> None:
        raw = self.write(wait.session, Again.step, sender, Again(wait.session, wait.step))
        self.count(wait.session, Again.step, sender, sent=len(raw))
        await self.transport.send(sender, raw)

    # ── receiving ──────────────────────────────────────────────────────────────────────────────

    async def _pump(self) -> None:
        while True:
            for _ in range(AT_ONCE):
                self.accept(*await self.transport.recv())
                self._read.set()
            await asyncio.sleep(0)

    def accept(self, raw: bytes, came_from: str | None = None) -> None:
        """File one raw message, or count why it was thrown away. Never raises."""
        self.came_from = came_from
        try:
            self._file(raw)
        except Rejected as rejected:
            self.rejected[rejected.reason] += 1
        except Exception:  # noqa: BLE001  (whatever is wrong with one message, go on listening)
            self.rejected["internal error"] += 1

    def _file(self, raw: bytes) -> None:
        if len(raw) > self.size_limit:
            raise Rejected("oversized")
        try:
            opened = read(raw, study=self.study, runs=None, targets=self._targets)
        except OtherVersion as met:
            self.on_other_version(met.opened)
            raise
        header = opened.envelope.header
        if header.step in self.open_handlers:
            self.open_handlers[header.step](opened)
            author = self.keys.get(header.sender)
            if author is not None and opened.signed_by(author):
                self.count(LOBBY_SESSION, header.step, header.sender, received=len(raw))
            return
        if self.run and header.run not in (self.run, b""):
            raise Rejected("other run")
        key = (header.session, header.step, header.sender)
        fingerprint = opened.digest
        earlier = self._fingerprints.get(key)
        if earlier == fingerprint:
            raise Rejected("duplicate")
        self._authenticate(opened)
        if header.step in self.handlers:
            self.count(LOBBY_SESSION, header.step, header.sender, received=len(raw))
            self.handlers[header.step](opened)
            return
        if earlier is not None:
            self._tell_contradiction(key)
        self._admit(header, len(raw))
        self.count(header.session, header.step, header.sender, received=len(raw))
        if header.step in self.watchers:
            self.watchers[header.step](opened)
        self._fingerprints[key] = fingerprint
        self._filed[key] = opened
        self._arrived(header)

    def _authenticate(self, opened: Opened) -> None:
        author = self.keys.get(opened.envelope.header.sender)
        if author is None or opened.envelope.header.run != self.run:
            raise Rejected("unknown sender")
        if not opened.signed_by(author):
            raise Rejected("bad signature")

    def _admit(self, header: Header, size: int) -> None:
        if COORDINATOR not in (self.me, header.sender):
            raise Rejected("not the coordinator")
        if self.me == COORDINATOR and not self.session_root:
            raise Rejected("other session")  # in the lobby there is nothing to be filed
        if header.session.split("/")[0] not in (self.session_root, VERDICT_SESSION):
            raise Rejected("other session")
        most = FILED_BY_COORDINATOR if header.sender == COORDINATOR else FILED_PER_SENDER
        room = MESSAGES_OF_THE_LARGEST_KIND * self.size_limit
        filed_bytes = self._filed_bytes[header.sender] + size
        if self._filed_by[header.sender] >= most or filed_bytes > room:
            raise Rejected("flooding")
        self._filed_by[header.sender] += 1
        self._filed_bytes[header.sender] = filed_bytes

    def _tell_contradiction(self, key: tuple[str, str, str]) -> None:
        if key not in self._contradicted:
            self._contradicted.add(key)
            _, step, sender = key
            what = f"{sender} sent two different messages for step {step!r}"
            self.interrupt(Misconduct(what, [sender]))
        raise Rejected("contradiction")

    def _arrived(self, header: Header) -> None:
        wait = self._wait
        if wait is None or (wait.session, wait.step) != (header.session, header.step):
            return
        if header.sender in wait.missing:
            del wait.missing[header.sender]
            now = wait.latest = asyncio.get_running_loop().time()
            traffic = self.traffic[header.session, header.step, header.sender]
            traffic.seconds = now - wait.started
        if len(wait.missing) in (0, wait.spared):
            wait.wake.set()

    def _on_again(self, opened: Opened) -> None:
        asker = opened.envelope.header.sender
        now, pause_s, due = self.now(), self.ask_again_s / 2, {}
        for key, raw in self._answers_to(opened.message(Again), asker).items():
            if now - self._resent_at.get(key, -math.inf) >= pause_s:
                self._resent_at[key] = math.inf  # not a second time while this one is on its way
                self.count(key[0] or LOBBY_SESSION, Again.step, asker, sent=len(raw))
                due[key] = raw
        if due:
            self.spawn(self._resend, asker, due)

    def _answers_to(self, again: Again, asker: str) -> dict[tuple[str, str, str], bytes]:
        """What to send to whoever asks, in this order.

        When the study is over she hears that first: nobody is to begin now, nor reply to what she
        asked for; only what belongs to the result is of use to her yet.
        """
        key, late = (again.at_session, again.at_step, asker), ("", "", asker)
        raw = self._sent.get(key) or self._sent.get((*key[:2], EVERYONE))
        asked = {} if raw is None else {key: raw}
        if self.verdict is not None:
            before_the_rounds = "/" not in again.at_session
            return {late: self.verdict} | ({} if before_the_rounds else asked)
        elsewhere = again.at_session.split("/")[0] != self.session_root
        return {late: self.catch_up} if not asked and elsewhere and self.catch_up else asked

    async def _resend(self, asker: str, answers: dict[tuple[str, str, str], bytes]) -> None:
        for key, raw in answers.items():
            await self.transport.send(asker, raw)
            if key in self._resent_at:  # else its asker has left, and nothing of it is kept
                self._resent_at[key] = self.now()

    def count(
        self, session: str, step: str, peer: str, *, sent: int = 0, received: int = 0
    ) -> None:
        """Add one message to the traffic with a peer in a step."""
        traffic = self.traffic.setdefault((session, step, peer), Traffic())
        up, down = (sent, received) if self.me != COORDINATOR else (received, sent)
        self.messages += 1
        self.bytes += sent + received
        traffic.messages_up += bool(up)
        traffic.bytes_up += up
        traffic.messages_down += bool(down)
        traffic.bytes_down += down

    def spawn(self, act: Callable[P, Awaitable[None]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do something beside the agent's own coroutine; its failure interrupts that one."""

        async def acting() -> None:
            try:
                await act(*args, **kwargs)
            except MpcRrError as error:
                self.interrupt(error)

        task = asyncio.get_running_loop().create_task(acting())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
