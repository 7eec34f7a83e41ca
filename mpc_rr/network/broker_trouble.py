"""What is wrong with a broker, in one line: what it said, and what to do."""

import ssl

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from mpc_rr.crypto.certificates import WrongCertificate
from mpc_rr.errors import BrokerError, BrokerRefusal
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.rights import INVITATIONS

SERVER_UNAVAILABLE = 3
BAD_CREDENTIALS = frozenset({4, 5, 134, 135})
ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""The other side has hung up: a broker that starts or stops just now does that, too."""
HOW = "docs/brokers.md says which rights it must give"
FULL = "or is its store full, so that it must be started again?"


def number(code: object) -> int:
    """A reason code, which paho gives as a number or as an object that holds one."""
    return int(getattr(code, "value", code))  # type: ignore[call-overload, no-any-return]


def not_connected(url: BrokerUrl, error: BaseException, waited_s: float) -> BrokerError:
    """Why there is no connection. A `BrokerRefusal` if waiting would not help."""
    if isinstance(error, MqttConnectError):
        return _answered_no(url, error)
    cause = error.__context__ if isinstance(error, aiomqtt.MqttError) else error
    if isinstance(cause, WrongCertificate):
        return BrokerRefusal(
            f"the broker at {url.where} is not the expected one: {cause}; if it has a new "
            "certificate, ask for its address again"
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        advice = "name the authority that issued it with --broker-ca"
        if url.ca_file is not None:
            given = f"{url.ca_file}, which was given with --broker-ca, does not vouch for it"
            advice = f"{given}: name the authority that issued it"
        return BrokerRefusal(
            f"the certificate of the broker at {url.where} is not to be trusted: "
            f"{cause.verify_message or cause}; {advice}, or give the whole address as mpc-rr "
            "broker printed it, with #sha256=…"
        )
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ENDED):
        return BrokerRefusal(
            f"the broker at {url.where} does not speak TLS as we do ({cause.reason or cause}); "
            "without TLS its address begins with mqtt://"
        )
    return BrokerError(_no_answer(url, error, cause, waited_s))


def _answered_no(url: BrokerUrl, error: MqttConnectError) -> BrokerError:
    code = number(error.rc)
    if code in BAD_CREDENTIALS and url.user in INVITATIONS:
        return BrokerRefusal(
            f"the broker at {url.where} does not accept the invitation in this address: it is of "
            "another broker, or of keys that it no longer has; ask for the address again"
        )
    if code in BAD_CREDENTIALS:
        return BrokerRefusal(
            f"the broker at {url.where} refused the user name or password; give them as "
            "mqtt://user:password@host:port"
        )
    if code == SERVER_UNAVAILABLE:
        return BrokerError(f"the broker at {url.where} takes no more connections at the moment")
    return BrokerError(f"the broker at {url.where} refused the connection: {error}")


def _no_answer(
    url: BrokerUrl, error: BaseException, cause: BaseException | None, waited_s: float
) -> str:
    silent = isinstance(error, TimeoutError) or "timed out" in str(error)
    reason = f"no answer within {waited_s:.3g} s" if silent or not str(error) else str(error)
    through, hints = "", ["is it running, and is the address right?"]
    if url.proxy is not None:
        through = " through the proxy {}:{}".format(*url.proxy)
        hints.append("Is the proxy there, and does it speak SOCKS?")
    if silent:
        hints.append("Is it a broker at all, and not a web server, say?")
    hung_up = silent or isinstance(cause, ConnectionResetError) or "disconnect" in str(error)
    if url.tls:
        hints.append("Does it speak TLS? (mqtt:// is without)")
    elif hung_up:
        hints.append("Does it want TLS (mqtts://), or has it too many connections?")
    return f"no MQTT broker answers at {url.where}{through}: {reason}; {' '.join(hints)}"


def no_reading(url: BrokerUrl, root: str, error: BaseException | None = None) -> BrokerError:
    """Why we are not subscribed: not allowed, or no answer to the question."""
    if error is None:
        refusal = BrokerRefusal(
            f"the broker at {url.where} does not let us subscribe to {root}/…; check its access "
            f"rules ({HOW}), and whether it has room for more: a full store must be emptied"
        )
        refusal.may_pass = True
        return refusal
    return BrokerError(
        f"the broker at {url.where} does not answer a subscription to {root}/… ({error}); may this "
        f"user read there? ({HOW}) {FULL.capitalize()}"
    )


def hangs_up(url: BrokerUrl, topic: str, size: int) -> BrokerRefusal:
    """It ends the connection whenever a certain message comes."""
    return BrokerRefusal(
        f"the broker at {url.where} ends the connection each time {size:,} bytes are published to "
        f"{topic}: it does not allow it, or not so much at a time ({HOW})"
    )


def no_echo(url: BrokerUrl, topic: str) -> BrokerRefusal:
    """It does not carry what the coordinator sends to itself."""
    return BrokerRefusal(
        f"the broker at {url.where} does not carry messages to {topic}: may this user write and "
        f"read there, and 8 KiB at a time? ({HOW}) {FULL.capitalize()}"
    )
