"""Commands that run studies: run, check, coordinate, party, host, broker."""

import asyncio
import contextlib
import datetime as dt
import math
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.agents.account import Account, StoredAccount
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.roster import is_party_name
from mpc_rr.cli.app import (
    BrokerOption,
    BudgetOption,
    CaFile,
    DataOption,
    JsonOption,
    OptionalBroker,
    OutOption,
    PinOption,
    ScenarioFile,
    SeedOption,
    StateOption,
    StudyFile,
    Verbose,
    app,
)
from mpc_rr.console import messages, plain_errors, print_json
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS
from mpc_rr.data import read_csv, read_record
from mpc_rr.display import (
    scenario_facts,
    show_ending,
    show_explanation,
    show_facts,
    show_result,
    watcher,
)
from mpc_rr.errors import Aborted, InputError, MpcRrError, ResultsError
from mpc_rr.network.broker import LOOPBACK, serve_broker
from mpc_rr.network.messages import NAME_RULE
from mpc_rr.network.mqtt import BrokerUrl
from mpc_rr.protocols.interface import Ending
from mpc_rr.results import (
    check_folder,
    ending_document,
    result_document,
    transcript_lines,
    write_ending,
    write_folder,
    write_host_ends,
    write_results,
)
from mpc_rr.scenario import Study, load_scenario
from mpc_rr.schema import Record
from mpc_rr.study import StudyResult, Watch, coordinate_study, run_study, take_part, unwatched


class TransportName(StrEnum):
    """How messages travel in ``mpc-rr run``."""

    mqtt = "mqtt"
    memory = "memory"


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
    data: DataOption = None,
    hosts: Annotated[
        int,
        typer.Option(
            min=0, max=256, help="Spread the parties over so many processes; 0: all in this one."
        ),
    ] = 0,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole scenario here: broker, coordinator and all parties.

    Example:  mpc-rr run scenarios/quickstart.toml --out my-results
    """
    with plain_errors(verbose):
        if (broker or broker_ca or hosts) and transport is TransportName.memory:
            raise InputError(
                "--broker, --broker-ca and --hosts have no meaning with --transport memory"
            )
        url = BrokerUrl.parse(broker, broker_ca) if broker is not None else None
        scenario = load_scenario(scenario_file, data)
        scenario.records()  # bad data is told before anything starts
        folder = _result_folder(out, scenario.study)
        started = time.monotonic()
        result = run_study(
            scenario,
            transport=transport.value,
            broker=url,
            seed=seed,
            hosts=hosts,
            watch=_watch(as_json),
        )
        _finish(result, folder, time.monotonic() - started, as_json=as_json)


@app.command()
def check(
    scenario_file: ScenarioFile,
    data: DataOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Check a scenario file, and its data if it names any, without running it."""
    with plain_errors(verbose):
        scenario = load_scenario(scenario_file, data)
        has_data = scenario.csv is not None or scenario.generator is not None
        records = len(scenario.records()) if has_data else 0
        facts = scenario_facts(scenario, records)
        if as_json:
            print_json(facts)
        else:
            show_facts(Console(), facts)
            typer.echo(f"{scenario_file} is in order")


@app.command()
def coordinate(
    study_file: StudyFile,
    broker: BrokerOption,
    broker_ca: CaFile = None,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Coordinate a study: gather the parties, route their messages, publish the result.

    The parties run elsewhere (mpc-rr party, mpc-rr host), with the same study file and broker.
    """
    with plain_errors(verbose):
        study = load_scenario(study_file).study
        url = BrokerUrl.parse(broker, broker_ca)
        folder = _result_folder(out, study)
        started = time.monotonic()
        result = asyncio.run(
            coordinate_study(
                study, url, seed=seed, announce=_announce(study, url), watch=_watch(as_json)
            )
        )
        _finish(result, folder, time.monotonic() - started, as_json=as_json)


@app.command()
def party(
    study_file: StudyFile,
    broker: OptionalBroker = None,
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
    state: StateOption = None,
    budget: BudgetOption = math.inf,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say what taking part would mean.")
    ] = False,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Take part in a study with one record. The record never leaves this process.

    Example:  mpc-rr party study.toml --broker mqtt://host:1883 --csv people.csv --row 7
    """
    with plain_errors(verbose), _account(state, budget) as account:
        study = load_scenario(study_file).study
        if explain:
            _explain(study, account, as_json=as_json)
            return
        if broker is None:
            raise InputError("--broker is missing: where does the study take place?")
        own = _own_record(study, record, csv, row)
        url = BrokerUrl.parse(broker, broker_ca)
        if out is not None:
            check_folder(out)
        own_name = _party_name(name)
        if state is None:
            _note_no_books()
        ends = _run_parties(
            study, url, {own_name: own}, coordinator, seed, accounts={own_name: account}
        )
        _show_party_end(study, ends[own_name], out, as_json=as_json)


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
    state: StateOption = None,
    budget: BudgetOption = math.inf,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Take part with many records: one party for each, in this process, over one connection.

    Example:  mpc-rr host study.toml --broker mqtt://host:1883 --csv people.csv --rows 1:25

    With --state each record has its own books, under its number in the CSV file.
    """
    with plain_errors(verbose):
        study = load_scenario(study_file).study
        chosen = _row_range(rows)
        records = read_csv(csv, study.schema, chosen)
        url = BrokerUrl.parse(broker, broker_ca)
        if out is not None:
            check_folder(out)
        prefix = _party_name(name)
        own = {f"{prefix}-{number}": record for number, record in enumerate(records, start=1)}
        _party_name(f"{prefix}-{len(records)}")  # the longest of them
        first = 1 if chosen is None else chosen.start
        with _accounts(state, budget, range(first, first + len(records))) as accounts:
            if state is None:
                _note_no_books()
            books = dict(zip(own, accounts, strict=True))
            ends = _run_parties(study, url, own, coordinator, seed, accounts=books)
        _show_host_end(study, ends, out, as_json=as_json)


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

    with plain_errors(verbose):
        try:
            serve_broker(host_address, port, user, password, ready)
        except KeyboardInterrupt:
            typer.echo("broker stopped")


# ── What the commands do ───────────────────────────────────────────────────────────────────────


def _watch(quiet: bool) -> Watch:
    return unwatched if quiet else watcher(messages())


def _announce(study: Study, url: BrokerUrl) -> Callable[[Coordinator], None]:
    def announce(coordinator: Coordinator) -> None:
        messages().print(
            f"study [bold]{study.name}[/] at {escape(repr(url))}; coordinator fingerprint "
            f"[bold]{coordinator.fingerprint}[/]",
            highlight=False,
            soft_wrap=True,
        )

    return announce


def _account(state: Path | None, budget: float) -> contextlib.AbstractContextManager[Account]:
    """A party's books: in its state folder, or in memory if it has none."""
    if state is not None:
        return StoredAccount.open(state, budget)
    return contextlib.nullcontext(Account(budget))


@contextlib.contextmanager
def _accounts(state: Path | None, budget: float, numbers: range) -> Iterator[list[Account]]:
    """The books of a host's records."""
    if state is None:
        yield [Account(budget) for _ in numbers]
        return
    with StoredAccount.open_many(state, numbers, budget) as stored:
        yield list(stored.values())


def _note_no_books() -> None:
    messages().print(
        "[yellow]Note[/]: without --state nothing is remembered: whoever answers a study again "
        "draws anew and gives away as much again, and --budget limits this study alone.",
        highlight=False,
    )


def _explain(study: Study, account: Account, *, as_json: bool) -> None:
    """Say what taking part would mean; end with an error if this party must not."""
    explanation = account.explain(study)
    if as_json:
        print_json(explanation)
    else:
        show_explanation(Console(), explanation)
    account.check(study)


def _run_parties(
    study: Study,
    url: BrokerUrl,
    records: dict[str, Record],
    fingerprint: str | None,
    seed: int | None,
    accounts: Mapping[str, Account],
) -> dict[str, Ending | MpcRrError]:
    if fingerprint is None:
        messages().print(
            "[yellow]Note[/]: without --coordinator FINGERPRINT, whoever answers first is believed "
            "to be the coordinator.",
            highlight=False,
        )
    elif not re.fullmatch(rf"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", fingerprint):
        raise InputError(
            f"--coordinator takes the {FINGERPRINT_DIGITS} hexadecimal digits that the coordinator "
            "prints when it starts"
        )
    with messages().status(f"taking part in study {study.name} with {len(records)} record(s)"):
        taking_part = take_part(
            study, url, records, coordinator_fingerprint=fingerprint, seed=seed, accounts=accounts
        )
        return asyncio.run(taking_part)


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
    document = result_document(result)
    _written_or_printed(document, lambda: write_results(result, folder))
    if as_json:
        print_json(document | {"folder": str(folder)})
    else:
        show_result(Console(), result, seconds)
        Console().print(f"Results are in {escape(str(folder))}", highlight=False, soft_wrap=True)
    if result.outcome.result is None:
        raise Aborted(f"the study failed: {result.outcome.cause}", result.outcome.culprits)


def _show_party_end(
    study: Study, end: Ending | MpcRrError, out: Path | None, *, as_json: bool
) -> None:
    if isinstance(end, MpcRrError):
        if isinstance(end, Aborted) and out is not None and end.receipt:
            write_folder({"receipt.jsonl": transcript_lines(end.receipt)}, out)
        raise end
    document = ending_document(end)
    if out is not None:
        _written_or_printed(document, lambda: write_ending(end, out))
    if as_json:
        print_json(document)
    else:
        show_ending(Console(), end, study)


def _written_or_printed(document: dict[str, Any], write: Callable[[], None]) -> None:
    """Write results; if that fails print them, so that nothing is lost."""
    try:
        write()
    except ResultsError as error:
        print_json(document)
        raise ResultsError(f"{error}; result.json was printed instead") from None


def _show_host_end(
    study: Study, ends: dict[str, Ending | MpcRrError], out: Path | None, *, as_json: bool
) -> None:
    """The result, which all parties of the host share, and each one's receipt."""
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    finished = [end for end in ends.values() if not isinstance(end, MpcRrError)]
    if out is not None:
        written = partial(write_host_ends, ends, out)
        _written_or_printed(ending_document(finished[0]) if finished else {}, written)
    if finished:
        _show_party_end(study, finished[0], None, as_json=as_json)
    if failed:
        name, error = next(iter(failed.items()))
        message = (
            f"{len(failed)} of {len(ends)} parties of this host have no result; {name}: {error}"
        )
        raise Aborted(message, failed)
