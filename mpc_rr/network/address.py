"""Where a broker is, and how to get there."""

import ipaddress
import re
import ssl
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import aiomqtt
import msgspec

from mpc_rr.crypto.certificates import TlsSocket, accepting_only
from mpc_rr.errors import InputError
from mpc_rr.network.rights import INVITATIONS, Invitation, is_invitation
from mpc_rr.randomness import SystemRandomness

SOCKS5 = 2
"""PySocks' number for it."""
FINGERPRINT = "sha256="
"""Begins what follows the # of an address: which certificate the broker has."""
CUT_OFF = (
    "the invitation in the broker's address is cut off or mistyped; copy the whole address again, "
    "as mpc-rr broker printed it"
)


class BrokerUrl(msgspec.Struct, frozen=True):
    """Where a broker is and how to enter. Password and invitation never show in a repr."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = None
    ca_file: Path | None = None
    others: "tuple[BrokerUrl, ...]" = ()
    """More nodes of the same broker, to turn to when this one is gone."""
    proxy: tuple[str, int] | None = None
    """A SOCKS5 proxy (Tor, for example) through which to go; it also looks the host up."""
    fingerprint: str | None = None
    """SHA-256 of the only certificate that the broker may show, in hexadecimal digits."""

    @classmethod
    def parse(cls, text: str, ca_file: Path | None = None, proxy: str | None = None) -> "BrokerUrl":
        """Read ``mqtt://user:pass@host:port`` or ``mqtts://…``; `InputError` if it is neither.

        ``#sha256=…`` at the end of one with TLS says which certificate alone is accepted. Several
        addresses, for the nodes of a cluster, are separated by commas. ``proxy`` looks like
        ``socks5://host:port``.
        """
        way = None if proxy is None else _proxy(proxy)
        first, *others = (cls._parse_one(one.strip(), ca_file, way) for one in text.split(","))
        return msgspec.structs.replace(first, others=tuple(others))

    @classmethod
    def _parse_one(
        cls, text: str, ca_file: Path | None, proxy: tuple[str, int] | None
    ) -> "BrokerUrl":
        try:
            url = urlsplit(text)
            port = url.port
        except ValueError as error:
            if "out of range" in str(error):
                raise InputError(
                    f"the port in the broker's address {_without_secrets(text)!r} is out of range: "
                    "ports are 1 to 65535 (1883 without TLS and 8883 with it are usual)"
                ) from None
            url, port = urlsplit(""), None
        if url.scheme not in ("mqtt", "mqtts") or not url.hostname or port == 0:
            raise InputError(
                f"the broker's address {_without_secrets(text)!r} must look like "
                "mqtt://host:port, mqtts://host:port or mqtt://user:password@host:port (in a "
                "password, write a comma as %2C)"
            )
        if url.hostname in INVITATIONS:
            raise InputError(CUT_OFF)
        tls = url.scheme == "mqtts"
        if ca_file is not None and not (tls and ca_file.is_file()):
            why = "does not exist" if tls else "needs an mqtts:// address"
            raise InputError(f"the certificate file {ca_file} {why}")
        if ca_file is not None:
            _trusting(ca_file)  # told now if it is no certificate
        pin = _fingerprint(url.fragment, tls=tls, ca_file=ca_file)
        user = unquote(url.username) if url.username is not None else None
        password = unquote(url.password) if url.password is not None else None
        if user in INVITATIONS and not is_invitation(password or ""):
            raise InputError(CUT_OFF)
        port = port or (8883 if tls else 1883)
        return cls(url.hostname, port, tls, user, password, ca_file, proxy=proxy, fingerprint=pin)

    def __repr__(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.where}"

    @property
    def where(self) -> str:
        """Host and port, for messages to people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def nodes(self) -> "tuple[BrokerUrl, ...]":
        """This one and the others of the same broker."""
        return (msgspec.structs.replace(self, others=()), *self.others)

    @property
    def exposed(self) -> bool:
        """Whether what is sent there goes over a network that others may read."""
        return not (self.tls or is_loopback(self.host) or self.host.endswith(".onion"))

    def with_secrets(self) -> str:
        """The whole address, for whom it is meant: `parse` reads it."""
        return ",".join(node._with_secrets() for node in self.nodes)  # noqa: SLF001

    def _with_secrets(self) -> str:
        given = [quote(part, safe="") for part in (self.user, self.password) if part is not None]
        entry = f"{':'.join(given)}@" if given else ""
        pin = "" if self.fingerprint is None else f"#{FINGERPRINT}{self.fingerprint}"
        return f"mqtt{'s' if self.tls else ''}://{entry}{self.where}{pin}"

    def login(self, mailbox: str) -> tuple[str | None, str | None]:
        """User and password for the connection of a mailbox.

        With an invitation, the password is a token that is made here and holds for it alone.
        """
        if self.user not in INVITATIONS or self.password is None:
            return self.user, self.password
        return self.user, Invitation.parse(self.password).token(mailbox, SystemRandomness())

    def tls_context(self) -> ssl.SSLContext | None:
        """How to check the broker's certificate; None without TLS."""
        if not self.tls:
            return None
        if self.fingerprint is not None:
            return accepting_only(self.fingerprint)
        return _trusting(self.ca_file)


class BrokerAddresses(msgspec.Struct, frozen=True):
    """How the agents of a study enter one broker, each role with its own rights."""

    coordinator: BrokerUrl
    parties: BrokerUrl


def is_loopback(host: str) -> bool:
    """Whether only this machine is served."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fingerprint(fragment: str, *, tls: bool, ca_file: Path | None) -> str | None:
    """The digits of ``sha256=…``, which may have colons between them."""
    if not fragment:
        return None
    digits = fragment.removeprefix(FINGERPRINT).replace(":", "").lower()
    if not fragment.startswith(FINGERPRINT) or not re.fullmatch("[0-9a-f]{64}", digits):
        raise InputError(
            "what follows the # of a broker's address must look like sha256= and the 64 "
            "hexadecimal digits of its certificate's fingerprint; copy the whole address again"
        )
    if not tls:
        raise InputError("a certificate's fingerprint (#sha256=…) needs an mqtts:// address")
    if ca_file is not None:
        raise InputError(
            "the address has a certificate's fingerprint: leave out the certificate authority"
        )
    return digits


def _without_secrets(text: str) -> str:
    """A bad address as it may be shown: what follows the @, and how it begins.

    Without an @ it may have been cut off in the middle of a password.
    """
    scheme, slashes, rest = text.partition("://")
    if not slashes or not re.fullmatch("[a-z0-9+]{1,10}", scheme, re.IGNORECASE):
        scheme, slashes, rest = "", "", text
    _, at, host = rest.rpartition("@")
    return f"{scheme}{slashes}{host if at else '…'}"


def _proxy(text: str) -> tuple[str, int]:
    """Host and port of ``socks5://host:port``."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in ("socks5", "socks5h") or not url.hostname or not port:
        raise InputError(
            f"a proxy must look like socks5://host:port, not {_without_secrets(text)!r}"
        )
    if find_spec("socks") is None:
        raise InputError("a proxy needs PySocks: pip install PySocks")
    return url.hostname, port


def proxy_settings(proxy: tuple[str, int] | None) -> aiomqtt.ProxySettings | None:
    """A proxy as aiomqtt wants it."""
    if proxy is None:
        return None
    host, port = proxy
    return aiomqtt.ProxySettings(proxy_type=SOCKS5, proxy_addr=host, proxy_port=port)


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Certificates are checked as usual: by name, by date, and by who vouches for them."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise InputError(f"{ca_file} holds no certificates (PEM)") from None
    except OSError as error:
        raise InputError(f"cannot read {ca_file}: {error.strerror}") from None
    context.sslsocket_class = TlsSocket
    return context
