"""Where a broker is, and how to get there."""

import ssl
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiomqtt
import msgspec

from mpc_rr.errors import InputError

SOCKS5 = 2
"""PySocks' number for it."""


class BrokerUrl(msgspec.Struct, frozen=True):
    """Where a broker is and how to enter. The password never shows in a repr."""

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

    @classmethod
    def parse(cls, text: str, ca_file: Path | None = None, proxy: str | None = None) -> "BrokerUrl":
        """Read ``mqtt://user:pass@host:port`` or ``mqtts://…``; `InputError` if it is neither.

        Several, for the nodes of a cluster, are separated by commas. ``proxy`` looks like
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
        except ValueError:
            url, port = urlsplit(""), None
        if url.scheme not in ("mqtt", "mqtts") or not url.hostname or port == 0:
            raise InputError(
                f"the broker's address {_without_password(text)!r} must look like "
                "mqtt://host:port, mqtts://host:port or mqtt://user:password@host:port (in a "
                "password, write a comma as %2C)"
            )
        tls = url.scheme == "mqtts"
        if ca_file is not None and not (tls and ca_file.is_file()):
            why = "does not exist" if tls else "needs an mqtts:// address"
            raise InputError(f"the certificate file {ca_file} {why}")
        if ca_file is not None:
            tls_context(ca_file)  # told now if it is no certificate
        user = unquote(url.username) if url.username is not None else None
        password = unquote(url.password) if url.password is not None else None
        port = port or (8883 if tls else 1883)
        return cls(url.hostname, port, tls, user, password, ca_file, proxy=proxy)

    def __repr__(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.where}"

    @property
    def where(self) -> str:
        """Host and port, for messages to people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _without_password(text: str) -> str:
    """An address as it may be shown: of what stands before an @, nothing."""
    scheme, slashes, rest = text.partition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}" if slashes else text.rpartition("@")[2]


def _proxy(text: str) -> tuple[str, int]:
    """Host and port of ``socks5://host:port``."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    if url.scheme not in ("socks5", "socks5h") or not url.hostname or not port:
        raise InputError(f"a proxy must look like socks5://host:port, not {text!r}")
    if find_spec("socks") is None:
        raise InputError('a proxy needs PySocks: pip install "mpc-rr[proxy]"')
    return url.hostname, port


def proxy_settings(proxy: tuple[str, int] | None) -> aiomqtt.ProxySettings | None:
    """A proxy as aiomqtt wants it."""
    if proxy is None:
        return None
    host, port = proxy
    return aiomqtt.ProxySettings(proxy_type=SOCKS5, proxy_addr=host, proxy_port=port)


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """How to check a broker's certificate."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError):
        raise InputError(f"{ca_file} holds no certificates (PEM)") from None
