"""The command line: ``mpc-rr``. Each command reads its files, calls the library, shows the end."""

import asyncio
import contextlib
import datetime as dt
import json
import os
import re
import secrets
import sys
import time
import traceback
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.roster import is_party_name
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS
from mpc_rr.data import read_csv, read_record
from mpc_rr.display import show_counts, show_result, watcher
from mpc_rr.errors import Aborted, InputError, MpcRrError, ResultsError
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.network.broker import LOOPBACK, serve_broker
from mpc_rr.network.messages import COORDINATOR, NAME_RULE
from mpc_rr.network.mqtt import BrokerUrl
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.randomness import SystemRandomness
from mpc_rr.results import (
    check_folder,
    counts_document,
    counts_files,
    result_document,
    write_folder,
    write_results,
)
from mpc_rr.scenario import Scenario, Study, load_scenario
from mpc_rr.schema import Record
from mpc_rr.study import StudyResult, mqtt_connection, run_study, unwatched

app = typer.Typer(
    name="mpc-rr",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    help="""
Statistics on private data without a trusted collector.

Parties, each holding one private record, and a coordinator that cannot read their messages count
together over an MQTT broker: how often each pair of answers occurs, and how strongly the
questions depend on each other. Nobody ever sees a record.

Start with:  [bold]mpc-rr run scenarios/quickstart.toml[/]

On several machines:  one [bold]mpc-rr coordinate[/], and a [bold]mpc-rr party[/] or
[bold]mpc-rr host[/] wherever the records are, all with the same study file and broker.
""",
)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's TOML file.")]
ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario's TOML file.")]
BrokerOption = Annotated[
    str,
    typer.Option(
        "--broker",
        envvar="MPC_RR_BROKER",
        show_envvar=True,
        help="mqtt://user:password@host:port, or mqtts:// with TLS. (A password given by the "
        "variable does not show in the list of processes.)",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--broker-ca", help="Certificate authority of an mqtts:// broker (PEM file)."),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for the results; must not exist yet.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="On an error, show the whole trace.")]
PinOption = Annotated[
    str | None,
    typer.Option(
        "--coordinator",
        metavar="FINGERPRINT",
        help="Accept only the coordinator with this fingerprint (it prints it when it starts).",
    ),
]


class TransportName(StrEnum):
    """How messages travel in ``mpc-rr run``."""

    mqtt = "mqtt"
    memory = "memory"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mpc-rr {version('mpc-rr')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def run(
    scenario_file: ScenarioFile,
    transport: Annotated[
        TransportName,
        typer.Option(help="mqtt: a real broker. memory: simulated, in virtual time, from a seed."),
    ] = TransportName.mqtt,
    broker: Annotated[
        str | None,
        typer.Option(
            help="mqtt://user:password@host:port; without it, one is started just for this run."
        ),
    ] = None,
    broker_ca: CaFile = None,
    out: OutOption = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Make the run reproducible. For simulation only: a seed is no secret."),
    ] = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole scenario here: broker, coordinator and all parties.

    Example:  mpc-rr run scenarios/quickstart.toml --out my-results
    """
    with _plain_errors(verbose):
        if (broker or broker_ca) and transport is TransportName.memory:
            raise InputError("--broker and --broker-ca have no meaning with --transport memory")
        url = BrokerUrl.parse(broker, broker_ca) if broker is not None else None
        scenario = load_scenario(scenario_file)
        scenario.records()  # bad data is told before anything starts
        folder = _result_folder(out, scenario.study)
        started = time.monotonic()
        result = run_study(
            scenario,
            transport=transport.value,
            broker=url,
            seed=seed,
            watch=unwatched if as_json else watcher(_messages()),
        )
        _finish(result, folder, time.monotonic() - started, as_json=as_json)


@app.command()
def check(
    scenario_file: ScenarioFile, as_json: JsonOption = False, verbose: Verbose = False
) -> None:
    """Check a scenario file, and its data if it names any, without running it."""
    with _plain_errors(verbose):
        scenario = load_scenario(scenario_file)
        has_data = scenario.csv is not None or scenario.generator is not None
        records = len(scenario.records()) if has_data else 0
        _show_check(scenario, records, as_json=as_json)


@app.command()
def coordinate(
    study_file: StudyFile,
    broker: BrokerOption,
    broker_ca: CaFile = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Coordinate a study: gather the parties, route their messages, publish the result.

    The parties run elsewhere (mpc-rr party, mpc-rr host), with the same study file and broker.
    """
    with _plain_errors(verbose):
        study = load_scenario(study_file).study
        url = BrokerUrl.parse(broker, broker_ca)
        folder = _result_folder(out, study)
        started = time.monotonic()
        result = asyncio.run(_coordinate(study, url, quiet=as_json))
        _finish(result, folder, time.monotonic() - started, as_json=as_json)


@app.command()
def party(
    study_file: StudyFile,
    broker: BrokerOption,
    record: Annotated[
        Path | None, typer.Option(help="A .json or .toml file with one record.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="A CSV file with a header line.")] = None,
    row: Annotated[
        int | None, typer.Option(min=1, help="Which record of the CSV file; the first is 1.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name shown to the others; random if not given.")
    ] = None,
    coordinator: PinOption = None,
    broker_ca: CaFile = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Take part in a study with one record. The record never leaves this process.

    Example:  mpc-rr party study.toml --broker mqtt://host:1883 --csv people.csv --row 7
    """
    with _plain_errors(verbose):
        study = load_scenario(study_file).study
        own = _own_record(study, record, csv, row)
        url = BrokerUrl.parse(broker, broker_ca)
        if out is not None:
            check_folder(out)
        own_name = _party_name(name)
        ends = asyncio.run(_take_part(study, url, {own_name: own}, coordinator))
        _show_party_end(ends[own_name], out, as_json=as_json)


@app.command()
def host(
    study_file: StudyFile,
    broker: BrokerOption,
    csv: Annotated[Path, typer.Option(help="A CSV file with a header line.")],
    rows: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Records A to B, both included; the first is 1."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Parties are called NAME-1, NAME-2, …; random if not given.")
    ] = None,
    coordinator: PinOption = None,
    broker_ca: CaFile = None,
    out: OutOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Take part with many records: one party for each, in this process, over one connection.

    Example:  mpc-rr host study.toml --broker mqtt://host:1883 --csv people.csv --rows 1:25
    """
    with _plain_errors(verbose):
        study = load_scenario(study_file).study
        records = read_csv(csv, study.schema, _row_range(rows))
        url = BrokerUrl.parse(broker, broker_ca)
        if out is not None:
            check_folder(out)
        prefix = _party_name(name)
        own = {f"{prefix}-{number}": record for number, record in enumerate(records, start=1)}
        _party_name(f"{prefix}-{len(records)}")  # the longest of them
        ends = asyncio.run(_take_part(study, url, own, coordinator))
        _show_host_end(ends, out, as_json=as_json)


@app.command("broker")
def broker_command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 1883,
    host_address: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for other machines too.")
    ] = LOOPBACK,
    user: Annotated[str, typer.Option(help="User name that clients must give.")] = "study",
    password: Annotated[
        str | None,
        typer.Option(envvar="MPC_RR_BROKER_PASSWORD", help="Password; random if not given."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Run the embedded broker until Ctrl-C, for parties on this machine or others.

    It speaks plain MQTT: records stay sealed end to end, but who talks to whom is visible to the
    network. For studies in earnest use a broker with TLS (mqtts://).
    """

    def ready(url: BrokerUrl) -> None:
        entry = f"{quote(url.user or '', safe='')}:{quote(url.password or '', safe='')}"
        typer.echo(f"broker ready; give the agents:  --broker mqtt://{entry}@{url.where}")

    with _plain_errors(verbose):
        try:
            serve_broker(host_address, port, user, password, ready)
        except KeyboardInterrupt:
            typer.echo("broker stopped")


# ── What the commands do ───────────────────────────────────────────────────────────────────────


async def _coordinate(study: Study, url: BrokerUrl, *, quiet: bool) -> StudyResult:
    async with mqtt_connection(study, url, coordinator=True) as connection:
        coordinator = Coordinator(study, connection.attach(COORDINATOR), SystemRandomness())
        console = _messages()
        console.print(
            f"study [bold]{study.name}[/] at {escape(repr(url))}; coordinator fingerprint "
            f"[bold]{coordinator.fingerprint}[/]",
            highlight=False,
            soft_wrap=True,
        )
        with unwatched(coordinator) if quiet else watcher(console)(coordinator):
            outcome = await coordinator.run()
    return StudyResult(study, outcome, {}, None, "mqtt")


async def _take_part(
    study: Study, url: BrokerUrl, records: dict[str, Record], fingerprint: str | None
) -> dict[str, PairCounts | MpcRrError]:
    if fingerprint is None:
        _messages().print(
            "[yellow]Note[/]: without --coordinator FINGERPRINT, whoever answers first is believed "
            "to be the coordinator.",
            highlight=False,
        )
    elif not re.fullmatch(rf"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", fingerprint):
        raise InputError(
            f"--coordinator takes the {FINGERPRINT_DIGITS} hexadecimal digits that the coordinator "
            "prints when it starts"
        )
    async with mqtt_connection(study, url, coordinator=False) as connection:
        rng = SystemRandomness()
        parties = [
            Party(
                study, name, record, connection.attach(name), rng,
                coordinator_fingerprint=fingerprint,
            )
            for name, record in records.items()
        ]  # fmt: skip
        with _messages().status(f"taking part in study {study.name} with {len(parties)} record(s)"):
            return await run_parties(parties)


def _own_record(study: Study, record: Path | None, csv: Path | None, row: int | None) -> Record:
    if record is not None and csv is None and row is None:
        return read_record(record, study.schema)
    if record is None and csv is not None and row is not None:
        return read_csv(csv, study.schema, range(row, row + 1))[0]
    raise InputError("give the record either by --record FILE or by --csv FILE --row N")


def _row_range(rows: str | None) -> range | None:
    if rows is None:
        return None
    first, colon, last = rows.partition(":")
    numbers = colon and re.fullmatch("[0-9]{1,9}", first) and re.fullmatch("[0-9]{1,9}", last)
    if not (numbers and 1 <= int(first) <= int(last)):
        raise InputError(f"--rows must look like 1:25 (first and last record), not {rows!r}")
    return range(int(first), int(last) + 1)


def _party_name(name: str | None) -> str:
    if name is None:
        return f"party-{secrets.token_hex(4)}"
    if not is_party_name(name):
        raise InputError(f"{name!r} cannot be a party's name: {NAME_RULE}")
    return name


def _result_folder(out: Path | None, study: Study) -> Path:
    if out is None:
        stamp = dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        out = Path("results") / f"{study.name}-{stamp}"
    check_folder(out)
    return out


def _finish(result: StudyResult, folder: Path, seconds: float, *, as_json: bool) -> None:
    """Write and then show how a study ended; a failed one ends the command with code 1."""
    try:
        write_results(result, folder)
    except ResultsError as error:
        _print_json(result_document(result))  # nothing is lost
        raise ResultsError(f"{error}; result.json was printed instead") from None
    if as_json:
        _print_json(result_document(result) | {"folder": str(folder)})
    else:
        show_result(Console(), result, seconds)
        Console().print(f"Results are in {escape(str(folder))}", highlight=False, soft_wrap=True)
    if result.outcome.counts is None:
        raise Aborted(f"the study failed: {result.outcome.cause}", result.outcome.culprits)


def _show_party_end(end: PairCounts | MpcRrError, out: Path | None, *, as_json: bool) -> None:
    if isinstance(end, MpcRrError):
        raise end
    if out is not None:
        document = json.dumps(counts_document(end), indent=2, ensure_ascii=False)
        write_folder({"result.json": document + "\n", **counts_files(end)}, out)
    if as_json:
        _print_json(counts_document(end))
        return
    Console().print(f"[green]Done[/]: {end.n} parties counted together.", highlight=False)
    show_counts(Console(), end)


def _show_host_end(
    ends: dict[str, PairCounts | MpcRrError], out: Path | None, *, as_json: bool
) -> None:
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    finished = [end for name, end in ends.items() if name not in failed]
    if finished:
        _show_party_end(finished[0], out, as_json=as_json)
    if failed:
        name, error = next(iter(failed.items()))
        message = (
            f"{len(failed)} of {len(ends)} parties of this host have no result; {name}: {error}"
        )
        raise Aborted(message, failed)


def _show_check(scenario: Scenario, records: int, *, as_json: bool) -> None:
    study = scenario.study
    layout = PairLayout(study.schema.sizes)
    facts: dict[str, Any] = {
        "study": study.name,
        "digest": study.digest.hex(),
        "protocol": study.protocol.name,
        "parties": study.parties.count,
        "minimum": study.parties.fewest,
        "attributes": list(study.schema.names),
        "pairs": len(layout.pairs),
        "cells": layout.cells,
        "records": records,
    }
    if as_json:
        _print_json(facts)
        return
    for key, value in facts.items():
        typer.echo(f"{key:<11} {', '.join(value) if isinstance(value, list) else value}")
    typer.echo(f"{scenario.path} is in order")


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _messages() -> Console:
    """For people only: never mixed into what a program reads."""
    return Console(stderr=True)


@contextlib.contextmanager
def _plain_errors(verbose: bool) -> Iterator[None]:
    """An error is one line on standard error and an exit code; the trace only on request."""
    try:
        yield
    except MpcRrError as error:
        if verbose:
            traceback.print_exc()
        _say(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        _say("interrupted")
        raise typer.Exit(130) from None
    except OSError as error:
        if verbose:
            traceback.print_exc()
        _say(f"cannot go on: {error.strerror or error}")
        raise typer.Exit(1) from None


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        typer.echo(f"mpc-rr: {message}", err=True)


def main() -> None:
    """Entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        # Typer's usage errors, whichever copy of click they come from, can format themselves.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if "NoArgs" in type(error).__name__:  # its message is the help, if not printed already
            typer.echo(error.format_message())
            sys.exit(2)
        path = context.command_path if context is not None else "mpc-rr"
        _say(f"{error.format_message().rstrip('.')} (see {path} --help)")
        sys.exit(2)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    # A reader that has gone (as in "mpc-rr run … | head") must not make the exit noisy.
    if sys.stdout.closed is False:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else 0)
