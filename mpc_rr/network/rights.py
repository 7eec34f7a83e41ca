"""Who may do what at an embedded broker: rights by role, which no client can widen.

A NATS server knows one account, for studies. Two keys may sign users of it, and each has its rights
written down in the account's own token, signed by the operator: whatever a user's token says, it
has the rights of the key that signed it. The private half of such a key is an *invitation*: it
stands in the address that a coordinator, or every party, is given. Each process signs with it,
offline, a token of its own for its mailbox, and shows that to the broker as its password.

A mailbox's name is random and known to nobody but its owner, the broker and the coordinator.
Whoever knows it could read it: it is a capability.
"""

import contextlib

import msgspec

from mpc_rr.crypto.certificates import check_pair
from mpc_rr.crypto.nkeys import Kind, NKey, is_public_key
from mpc_rr.randomness import Randomness

COORDINATOR_INVITATION = "coordinator-invitation"
PARTY_INVITATION = "party-invitation"
INVITATIONS = frozenset({COORDINATOR_INVITATION, PARTY_INVITATION})
"""The user names in addresses by which invitations are recognized."""

MAILBOX_PREFIX = "m"
"""Every mailbox's first letter. A user may call itself *, which would stand for all mailboxes if
the pattern of rights were that name alone; m* stands for itself."""

MOST_CONSUMERS = 1_000_000
"""Each subscription with QoS 1 is one; without a figure NATS stops at 1,000."""

MOST_STORED = 4 * 2**30
"""Bytes that wait on the broker's disk, retained messages included, which nobody here asks for.
Who fills it shuts all others out; NATS has no setting for retained messages alone
(docs/brokers.md)."""

KEEPER = "keeper"
RETAINED, SESSIONS = "$MQTT_rmsgs", "$MQTT_sess"
"""The streams in which NATS keeps what is retained, and which session has which subscriptions."""
SESSION_BYTES = 4096
"""A session's record: two subscriptions, with the longest name that a study can have."""
SESSIONS_BYTES = 64 * 2**20
"""All of them; beyond that the oldest are forgotten, which only those notice who come again."""
FORGOTTEN_S = 300
"""A session without a connection for so long is forgotten."""
RECORDS_KEPT_S = 2 * FORGOTTEN_S
"""So long a record is kept since its session last subscribed; who is connected needs it no more."""
_UPDATE, _PURGE = "$JS.API.STREAM.UPDATE", "$JS.API.STREAM.PURGE"

_OWN = f"{MAILBOX_PREFIX}{{{{name()}}}}"
_DELIVERIES = "$MQTT.sub.*"
"""Through which NATS hands messages with QoS 1 to its own subscriptions. No MQTT client can name
it: the server refuses such topics, and MQTT is the only way in."""
_PARTY_READS = ["mpc_rr.*.all", f"mpc_rr.*.box.{_OWN}.*", _DELIVERIES]
_PARTY_WRITES = [f"mpc_rr.*.coordinator.{_OWN}"]
# A coordinator may do what a party may: `mpc-rr run --broker` needs but one address. In NATS
# "coordinator/#" is two subjects, the level itself and all below.
_COORDINATOR_READS = ["mpc_rr.*.coordinator", "mpc_rr.*.coordinator.>", *_PARTY_READS]
_COORDINATOR_WRITES = ["mpc_rr.*.all", "mpc_rr.*.box.>", *_PARTY_WRITES]

_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}
# MQTT has no challenge that a user's key could answer.
_BY_MQTT = {"bearer_token": True, "allowed_connection_types": ["MQTT"]}
_CLOSED = {"imports": 0, "exports": 0, "leaf": 0, "wildcards": True}


def draw_mailbox(rng: Randomness) -> str:
    """A mailbox's name, which nobody guesses; also the client identifier of its connection.

    23 characters: no MQTT broker may refuse an identifier of that length for it.
    """
    return MAILBOX_PREFIX + rng.bytes(11).hex()


class Invitation:
    """The right to sign tokens for one role. It shows in no repr."""

    def __init__(self, key: NKey, account: str) -> None:
        self._key, self._account = key, account

    @classmethod
    def parse(cls, text: str) -> "Invitation":
        """Read the `text` of an invitation; ``ValueError`` if it is none, or mistyped."""
        seed, _, account = text.partition(".")
        if not is_public_key(account, Kind.ACCOUNT):
            raise ValueError("not an invitation")
        return cls(NKey.from_seed(seed), account)

    def __repr__(self) -> str:
        return f"Invitation({self._key.public[:8]}…)"

    @property
    def text(self) -> str:
        """What stands as the password in an address."""
        return f"{self._key.seed}.{self._account}"

    def token(self, mailbox: str, rng: Randomness) -> str:
        """A user's token, which holds for this mailbox alone and for as long as its broker."""
        if not mailbox.startswith(MAILBOX_PREFIX):
            raise ValueError(f"a mailbox's name begins with {MAILBOX_PREFIX}")
        user = NKey.draw(Kind.USER, rng).public  # the server wants one; its private half is lost
        claims = {"type": "user", "issuer_account": self._account}
        return self._key.token(user, mailbox.removeprefix(MAILBOX_PREFIX), claims)


class BrokerKeys(msgspec.Struct, frozen=True):
    """What keeps a broker's addresses valid when it is started again. Nothing shows in a repr."""

    account: str
    coordinator: str
    parties: str
    certificate: str
    private_key: str

    def __post_init__(self) -> None:
        for seed in (self.account, self.coordinator, self.parties):
            if not is_public_key(NKey.from_seed(seed).public, Kind.ACCOUNT):
                raise ValueError("not the seed of an account")

    @classmethod
    def draw(cls, rng: Randomness, certificate: str, private_key: str) -> "BrokerKeys":
        """Fresh keys, and a certificate with its private key."""
        account, coordinator, parties = (NKey.draw(Kind.ACCOUNT, rng).seed for _ in range(3))
        return cls(account, coordinator, parties, certificate, private_key)

    @classmethod
    def read(cls, raw: bytes) -> "BrokerKeys":
        """Keys as they are kept in a file; ``ValueError`` if a broker could not use all of them."""
        try:
            keys = msgspec.json.decode(raw, type=cls)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        check_pair(keys.certificate, keys.private_key)
        return keys

    def __repr__(self) -> str:
        return "BrokerKeys(…)"

    @property
    def coordinator_invitation(self) -> str:
        """What lets somebody coordinate studies at this broker."""
        return self._invitation(self.coordinator)

    @property
    def party_invitation(self) -> str:
        """What lets somebody take part in studies at this broker."""
        return self._invitation(self.parties)

    def _invitation(self, seed: str) -> str:
        return Invitation(NKey.from_seed(seed), NKey.from_seed(self.account).public).text

    def keeper_token(self, rng: Randomness) -> str:
        """A token for whoever starts the broker, and for one thing: to bound what it keeps."""
        subjects = [topic.replace("/", ".") for topic, _ in words_of_the_keeper()]
        rights = {"pub": {"allow": subjects}, "sub": {"deny": [">"]}}
        claims = {"type": "user", **_UNLIMITED, **rights, **_BY_MQTT}
        return NKey.from_seed(self.account).token(NKey.draw(Kind.USER, rng).public, KEEPER, claims)

    def configuration(self, rng: Randomness) -> str:
        """The lines of a NATS server's configuration that give these keys their rights.

        They hold no secret: the operator's key, which signs the account, is not needed again.
        """
        operator = NKey.draw(Kind.OPERATOR, rng)
        system = NKey.draw(Kind.ACCOUNT, rng).public  # the server's own; nobody can enter it
        account = NKey.from_seed(self.account).public
        studies = {
            "type": "account",
            "limits": {
                **_UNLIMITED, **_CLOSED, "conn": -1, "mem_storage": -1, "disk_storage": MOST_STORED,
                "streams": -1, "consumer": MOST_CONSUMERS,
            },
            "signing_keys": [
                _role("coordinator", self.coordinator, _COORDINATOR_WRITES, _COORDINATOR_READS),
                _role("party", self.parties, _PARTY_WRITES, _PARTY_READS),
            ],
        }  # fmt: skip
        nobody = {"type": "account", "limits": {**_UNLIMITED, **_CLOSED, "conn": 0}}
        own = {"type": "operator", "system_account": system}
        return "\n".join((
            f"operator: {operator.token(operator.public, 'mpc_rr', own)}",
            f"system_account: {system}",
            "resolver: MEMORY",
            "resolver_preload {",
            f"  {account}: {operator.token(account, 'studies', studies)}",
            f"  {system}: {operator.token(system, 'system', nobody)}",
            "}\n",
        ))  # fmt: skip


def words_of_the_keeper() -> tuple[tuple[str, str], ...]:
    """What the keeper publishes, on which topics, so that nobody can fill the store for good.

    Nothing more is retained, and what somebody left before that goes; sessions are forgotten, and
    none of them has a record that is larger than ours are.
    """
    second = 10**9  # JetStream counts in nanoseconds
    nothing = _stream(RETAINED, "$MQTT.rmsgs.>", max_bytes=1, discard="new")
    sessions = _stream(
        SESSIONS, "$MQTT.sess.>", max_bytes=SESSIONS_BYTES, discard="old",
        max_msg_size=SESSION_BYTES, max_age=RECORDS_KEPT_S * second,
    )  # fmt: skip
    words = (
        (f"{_UPDATE}.{RETAINED}", nothing),
        (f"{_PURGE}.{RETAINED}", ""),
        (f"{_UPDATE}.{SESSIONS}", sessions),
    )
    return tuple((subject.replace(".", "/"), told) for subject, told in words)


def _stream(name: str, subjects: str, **bounds: int | str) -> str:
    """A stream as NATS itself makes it for MQTT, but for its bounds."""
    made = {
        "name": name, "subjects": [subjects], "storage": "file", "num_replicas": 1,
        "retention": "limits", "max_msgs_per_subject": 1, "max_consumers": -1, "max_msgs": -1,
        "max_msg_size": -1, "max_age": 0,
    }  # fmt: skip
    return msgspec.json.encode(made | bounds).decode()


def is_invitation(text: str) -> bool:
    """Whether this is an invitation, without a typing error."""
    with contextlib.suppress(ValueError):
        Invitation.parse(text)
        return True
    return False


def _role(name: str, seed: str, writes: list[str], reads: list[str]) -> dict[str, object]:
    """The rights of a role: those of all tokens that its key signs."""
    template = {
        **_UNLIMITED,
        "pub": {"allow": writes},
        "sub": {"allow": reads},
        **_BY_MQTT,
    }
    key = NKey.from_seed(seed).public
    return {"kind": "user_scope", "key": key, "role": name, "template": template}
