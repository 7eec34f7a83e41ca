"""Brokers' addresses as people give them: typed, in a variable, or in a file."""

import os
import stat
from pathlib import Path

import msgspec
import typer

from mpc_rr.cli.console import at_terminal, note
from mpc_rr.errors import InputError
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.rights import INVITATIONS

OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH


def on_command_line(context: typer.Context, option: str) -> bool:
    """Whether an option was typed, and not taken from a variable."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def broker_url(
    context: typer.Context, given: str, ca_file: Path | None, proxy: str | None = None
) -> BrokerUrl:
    """The broker of ``--broker``, with its password, if it needs one and somebody can be asked."""
    in_file = given.startswith("@")
    url = BrokerUrl.parse(_in(Path(given[1:])) if in_file else given, ca_file, proxy)
    secret = any(node.password is not None for node in url.nodes)
    if secret and not in_file and on_command_line(context, "broker"):
        what = "invitation" if url.user in INVITATIONS else "password"
        note(
            f"others on this machine can see the {what} in the list of processes; better give the "
            "address as --broker @FILE or in the variable MPC_RR_BROKER"
        )
    return _with_password(url)


def _in(file: Path) -> str:
    """The address in a file."""
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"cannot read the broker's address from {file}: {why}") from None
    if len(text.split("\n")) != 1:
        raise InputError(f"{file} must hold one line, the broker's address")
    if os.name == "posix" and mode & OTHERS_MAY_READ and "@" in text:
        note(f"others on this machine can read the address in {file}; chmod 600 {file} helps")
    return text


def _with_password(url: BrokerUrl) -> BrokerUrl:
    """Ask for the password, where there is a user without, and somebody at the terminal."""
    asked = [node for node in url.nodes if node.user is not None and node.password is None]
    if not asked or not at_terminal():
        return url
    try:
        password = typer.prompt(
            f"Password of {asked[0].user} at {asked[0].where}", hide_input=True, err=True
        )
    except typer.Abort:
        raise InputError("no password was given") from None
    first, *others = (
        msgspec.structs.replace(node, password=password) if node in asked else node
        for node in url.nodes
    )
    return msgspec.structs.replace(first, others=tuple(others))
