"""The command of whoever runs a broker for others: broker."""

import contextlib
import ipaddress
import re
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mpc_rr.agents.whole_files import alone_with, write_whole
from mpc_rr.cli.app import JsonOption, Verbose, app
from mpc_rr.cli.console import note, plain_errors, print_json
from mpc_rr.errors import InputError
from mpc_rr.network.address import BrokerAddresses, BrokerUrl, is_loopback
from mpc_rr.network.broker import LOOPBACK, TlsFiles, fresh_keys, reachable, serve_broker
from mpc_rr.network.rights import BrokerKeys
from mpc_rr.randomness import SystemRandomness

KEYS_FILE = "keys.json"
HOST_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?")
"""Letters of all languages among them: resolvers know how to spell those."""


@app.command("broker")
def broker_command(
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="1883 if not given, or 8883 with TLS; 0 takes a free one."
        ),
    ] = None,
    host_address: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for other machines too.")
    ] = LOOPBACK,
    name: Annotated[
        str | None,
        typer.Option(help="The name or address of this machine to put into the addresses."),
    ] = None,
    tls: Annotated[
        bool | None,
        typer.Option(
            "--tls/--no-tls",
            help="Encrypt connections, with a certificate made here whose fingerprint is part of "
            "the addresses. So it is anyhow where other machines are served.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Use this certificate (PEM) instead; needs --key.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The private key of --certificate (PEM, no password).")
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep keys and certificate here, so that all addresses hold after a restart; the "
            "addresses are written there, too, as coordinator.address and parties.address.",
        ),
    ] = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Run the embedded broker until Ctrl-C, for parties on this machine or others.

    It prints two addresses: one that coordinates studies, to be kept from parties, and one that
    takes part in them. Anyone who has one can hand it on: docs/brokers.md.
    """
    with plain_errors(verbose):
        _check_name(name)
        used = _tls(host_address, tls, certificate, key)
        port = (8883 if used else 1883) if port is None else port
        own_keys = fresh_keys() if keys is None else _kept(keys)

        def ready(addresses: BrokerAddresses) -> None:
            shown = _shown(addresses, name)
            if keys is not None:
                _keep_addresses(keys, shown, own_keys)
            if name is None and reachable(host_address) != host_address:
                note("other machines need the name of this one in their address: give it by --name")
            if as_json:
                print_json(shown)
            else:
                typer.echo("broker ready; the coordinator's address is for nobody else")
                for role, address in shown.items():
                    typer.echo(f"{role}: {address}")

        try:
            serve_broker(host_address, port, own_keys, used, ready)
        except KeyboardInterrupt:
            if not as_json:
                with contextlib.suppress(OSError):
                    typer.echo("broker stopped")


# ── What the command does ──────────────────────────────────────────────────────────────────────


def _tls(
    host: str, wished: bool | None, certificate: Path | None, key: Path | None
) -> bool | TlsFiles:
    """Whether to use TLS, and with which certificate."""
    if (certificate is None) != (key is None):
        raise InputError("--certificate and --key go together: a certificate and its private key")
    if certificate is not None and key is not None:
        if wished is False:
            raise InputError("--certificate has no meaning with --no-tls")
        return TlsFiles(certificate, key)
    if wished is not None:
        if not wished and not is_loopback(host):
            note(
                "without TLS, everyone on the way sees who talks to whom, and can use the "
                "invitations in the addresses; records stay sealed or randomized"
            )
        return wished
    return not is_loopback(host)


def _check_name(name: str | None) -> None:
    """Whoever is given an address with this name must reach this machine, by any program's reading.

    So it is printed and read again before anybody is given one.
    """
    if name is None:
        return
    try:
        read: BrokerUrl | None = BrokerUrl.parse(BrokerUrl(name, 1).with_secrets())
    except InputError:
        read = None
    if read != BrokerUrl(name.lower(), 1) or not (HOST_NAME.fullmatch(name) or _is_ipv6(name)):
        raise InputError(
            f"--name {name!r} cannot stand in an address: it must be the name or the IP address of "
            "this machine alone, such as broker.example.org, without a port (that is --port)"
        )


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _shown(addresses: BrokerAddresses, name: str | None) -> dict[str, str]:
    """The addresses as they are handed out, by role."""
    urls = {"coordinator": addresses.coordinator, "parties": addresses.parties}
    if name is not None:
        urls = {role: msgspec.structs.replace(url, host=name) for role, url in urls.items()}
    return {role: url.with_secrets() for role, url in urls.items()}


def _kept(folder: Path) -> BrokerKeys:
    """The keys in a folder, which is made, with fresh ones, if there is none."""
    file = folder / KEYS_FILE
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with alone_with(file):
            if not file.exists():
                write_whole(file, msgspec.json.encode(fresh_keys()))
            return BrokerKeys.read(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot keep keys in {folder}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(
            f"{file} holds no broker's keys ({error}); put back a copy of it, or give another "
            "folder: then there are new keys, and all addresses change"
        ) from None


def _keep_addresses(folder: Path, shown: dict[str, str], keys: BrokerKeys) -> None:
    """Write beside the keys what follows from them."""
    with alone_with(folder / KEYS_FILE):
        for role, address in shown.items():
            write_whole(folder / f"{role}.address", f"{address}\n".encode())
        # For a NATS server of one's own; see docs/brokers/nats.conf.
        rights = keys.configuration(SystemRandomness())
        write_whole(folder / "rights.conf", rights.encode())
