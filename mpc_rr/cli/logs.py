"""What the agents tell of their work, on standard error, for people and for programs.

At a terminal a live picture shows how far a study is, so only warnings are told there; agents that
run where nobody looks on tell every step. Nothing is told that could not stand in a result folder:
names of parties and steps, counts, times, and what brokers say.
"""

import datetime as dt
import logging
import sys
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from mpc_rr.cli.app import VersionOption, app
from mpc_rr.errors import plain

AGENTS = frozenset({"coordinate", "party", "host"})
"""The commands that run for long, perhaps where nobody looks on."""


class Level(StrEnum):
    """How much is told."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """One line for people."""
        when = dt.datetime.fromtimestamp(record.created).astimezone()
        return f"mpc-rr: {when:%H:%M:%S} {plain(record.getMessage())}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """One JSON object a line, for programs."""
        when = dt.datetime.fromtimestamp(record.created, dt.UTC)
        told = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": plain(record.getMessage()),
        }
        return msgspec.json.encode(told).decode()


class _ToStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write to what standard error is now: a live picture may have taken its place."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more


@app.callback()
def options(
    context: typer.Context,
    log: Annotated[
        Level | None,
        typer.Option(
            envvar="MPC_RR_LOG",
            help="What agents tell on standard error: warnings, unless coordinate, party or host "
            "run where there is no terminal; there every step (of a host: of its first party).",
        ),
    ] = None,
    log_json: Annotated[
        bool,
        typer.Option("--log-json", envvar="MPC_RR_LOG_JSON", help="Tell it as JSON lines."),
    ] = False,
    _version: VersionOption = False,
) -> None:
    """Options of all commands."""
    unwatched = context.invoked_subcommand in AGENTS and not sys.stderr.isatty()
    level = log or (Level.info if unwatched else Level.warning)
    handler = _ToStandardError()
    handler.setFormatter(_Json() if log_json else _Lines())
    logger = logging.getLogger("mpc_rr")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    if level is Level.debug:
        logging.getLogger("mpc_rr.library.mqtt").propagate = True
