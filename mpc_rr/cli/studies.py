"""Commands that run studies: run, check, coordinate."""

import contextlib
import dataclasses
import datetime as dt
import json
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mpc_rr.agents.coordinator import INTERRUPTED, Coordinator
from mpc_rr.agents.outcome import Outcome
from mpc_rr.agents.watching import Watch, unwatched
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawn
from mpc_rr.cli.addresses import broker_url, on_command_line
from mpc_rr.cli.admissions import read_registrar
from mpc_rr.cli.app import (
    BrokerOption,
    CaFile,
    DataOption,
    JsonOption,
    OutOption,
    PluginOption,
    SeedOption,
    StudyFile,
    Verbose,
    WithdrawalsOption,
    app,
)
from mpc_rr.cli.console import messages, plain_errors, print_json, say
from mpc_rr.errors import (
    Aborted,
    BrokerError,
    InputError,
    InternalError,
    MpcRrError,
    ResultsError,
)
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.rights import PARTY_INVITATION
from mpc_rr.protocols.budgets import matrices_in_words
from mpc_rr.results.closing import close
from mpc_rr.results.folder import Safe, check_folder, result_file, write_results
from mpc_rr.results.format import to_json
from mpc_rr.results.run import StudyResult
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.running import coordinate_study, run_study
from mpc_rr.running.loops import deaf, run_to_end, settle
from mpc_rr.running.parts import nowhere
from mpc_rr.running.studies import Interrupted
from mpc_rr.show.progress import watcher
from mpc_rr.show.study import scenario_facts, show_facts, show_prospects, show_result
from mpc_rr.study.definition import Study
from mpc_rr.study.file import load_scenario


class TransportName(StrEnum):
    """How messages travel in ``mpc-rr run``."""

    mqtt = "mqtt"
    memory = "memory"


@app.command()
def run(
    context: typer.Context,
    study_file: StudyFile,
    transport: Annotated[
        TransportName,
        typer.Option(help="mqtt: a real broker. memory: simulated, in virtual time, from a seed."),
    ] = TransportName.mqtt,
    broker: Annotated[
        str | None,
        typer.Option(
            envvar="MPC_RR_BROKER",
            show_envvar=True,
            help="The broker's address (for an embedded one, the coordinator's), or @FILE with it; "
            "without it, one is started just for this run.",
        ),
    ] = None,
    broker_ca: CaFile = None,
    data: DataOption = None,
    hosts: Annotated[
        int,
        typer.Option(
            min=0,
            max=256,
            help="Number of worker processes for the parties; 0 runs them in this process.",
        ),
    ] = 0,
    registrar: Annotated[
        Path | None,
        typer.Option(help="The registrar's key file, if the study has one, to admit all parties."),
    ] = None,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    r"""Run a whole study here: broker, coordinator and all parties.

    The records come from the CSV file or the generator in the study file's \[data]. Examples:

    mpc-rr run quickstart --out my-results

    mpc-rr run my-study.toml --data people.csv
    """
    with plain_errors(verbose, plugin):
        simulated = transport is TransportName.memory
        if simulated and (on_command_line(context, "broker") or broker_ca or hosts):
            raise InputError(
                "--broker, --broker-ca and --hosts have no meaning with --transport memory"
            )
        url = None if simulated or broker is None else broker_url(context, broker, broker_ca)
        scenario = load_scenario(study_file, data)
        scenario.records()  # bad data is told before anything starts
        folder = _result_folder(out, scenario.study)
        _foretell(scenario.study, quiet=as_json)
        started, safe = time.monotonic(), Safe(folder)
        kept = _Kept(scenario.study, safe, seed)
        own_key = read_registrar(registrar)
        with safe.named():
            try:
                result: StudyResult = run_study(
                    scenario,
                    transport=transport.value,
                    broker=url,
                    seed=seed,
                    hosts=hosts,
                    registrar=own_key,
                    watch=_watch(as_json) if simulated else kept.watching(_watch(as_json)),
                )
            except Interrupted as stopped:
                result = stopped.run
            except (BrokerError, InternalError, KeyboardInterrupt) as stopped:
                result = kept.cut_short(stopped)
            _finish(result, folder, time.monotonic() - started, safe, as_json=as_json)


@app.command()
def check(
    study_file: StudyFile,
    data: DataOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Check a study file, and its data if it names any, without running it."""
    with plain_errors(verbose, plugin):
        scenario = load_scenario(study_file, data)
        scenario.study.check_open()
        has_data = scenario.csv is not None or scenario.generator is not None
        records = len(scenario.records()) if has_data else 0
        facts = scenario_facts(scenario, records)
        each = getattr(scenario.study.protocol, "each", None)
        given = matrices_in_words(scenario.study.schema, each)
        facts |= {"matrices": given} if given else {}
        if as_json:
            print_json(facts)
        else:
            show_facts(Console(), facts)
            typer.echo(f"{study_file} is valid")


@app.command()
def coordinate(
    context: typer.Context,
    study_file: StudyFile,
    broker: BrokerOption,
    broker_ca: CaFile = None,
    withdrawals: WithdrawalsOption = None,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Coordinate a study: gather the parties, route their messages, publish the result.

    The parties run elsewhere (mpc-rr party, mpc-rr host), with the same study file and broker.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        url = broker_url(context, broker, broker_ca)
        if url.user == PARTY_INVITATION:
            raise InputError(
                "this is the parties' address; the coordinator needs the other one that mpc-rr "
                "broker printed"
            )
        listed = None if withdrawals is None else read_withdrawals(withdrawals, study)
        folder = _result_folder(out, study)
        _foretell(study, quiet=as_json)
        started, safe = time.monotonic(), Safe(folder)
        kept = _Kept(study, safe, seed)
        with safe.named():
            try:
                result: StudyResult = run_to_end(
                    coordinate_study(
                        study,
                        url,
                        seed=seed,
                        announce=_announce(study, url),
                        watch=kept.watching(_watch(as_json)),
                        withdrawn=withdrawn(listed),
                    )
                )
            except (BrokerError, KeyboardInterrupt) as stopped:
                result = kept.cut_short(stopped)
            _finish(result, folder, time.monotonic() - started, safe, as_json=as_json)


# ── What the commands do ───────────────────────────────────────────────────────────────────────


def _watch(quiet: bool) -> Watch:
    return unwatched if quiet else watcher(messages())


class _Kept:
    """However a study ends here, what is known of it is not lost."""

    def __init__(self, study: Study, safe: Safe, seed: int | None) -> None:
        self._study, self._safe, self._seed = study, safe, seed
        self._coordinator: Coordinator | None = None

    def watching(self, watch: Watch) -> Watch:
        """Watched, and a finished study is on disk before any party is told that it is finished."""

        @contextlib.contextmanager
        def watched(coordinator: Coordinator) -> Iterator[None]:
            def keep(outcome: Outcome) -> None:
                settle()
                self._safe.keep(self._closed(coordinator, outcome))

            self._coordinator, coordinator.keep = coordinator, keep
            with watch(coordinator):
                yield

        return watched

    def cut_short(self, stopped: MpcRrError | KeyboardInterrupt) -> StudyResult:
        """What is known of a study that never began, or was stopped before it had ended.

        One that is done is in its safe place: whoever stopped it is told where.
        """
        if self._safe.place is not None:
            raise stopped
        by_hand = isinstance(stopped, KeyboardInterrupt)
        coordinator = self._coordinator or nowhere(self._study, self._seed)
        outcome = coordinator.cut_short(INTERRUPTED if by_hand else str(stopped))
        return self._closed(coordinator, dataclasses.replace(outcome, interrupted=by_hand))

    def _closed(self, coordinator: Coordinator, outcome: Outcome) -> StudyResult:
        known = StudyResult(self._study, outcome, {}, self._seed, TransportName.mqtt.value)
        return close(known, coordinator.sign)


def _announce(study: Study, url: BrokerUrl) -> Callable[[Coordinator], None]:
    def announce(coordinator: Coordinator) -> None:
        messages().print(
            f"study [bold]{study.name}[/] at {escape(repr(url))}; coordinator fingerprint "
            f"[bold]{coordinator.fingerprint}[/]",
            highlight=False,
            soft_wrap=True,
        )

    return announce


def _foretell(study: Study, *, quiet: bool) -> None:
    """Say what the study is too small, or too wide, to find out, before it begins."""
    if not quiet:
        foretold = study.protocol.prospects(study.setting)
        show_prospects(messages(), [found.text for found in foretold])


def _result_folder(out: Path | None, study: Study) -> Path:
    if out is None:
        stamp = dt.datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        out = Path("results") / f"{study.name}-{stamp}"
    check_folder(out)
    return out


def _finish(
    result: StudyResult, folder: Path, seconds: float, safe: Safe | None = None, *, as_json: bool
) -> None:
    """Write and then show how a study ended; a failed one ends the command with code 1."""
    try:
        # Without a result nothing is computed: whoever stops it again does not stop that.
        hearing = deaf() if result.outcome.result is None else contextlib.nullcontext()
        with hearing, _computing(result, quiet=as_json):
            file = write_results(result, folder, safe)
    except ResultsError as error:
        transcript = transcript_lines(result.outcome.transcript)
        typer.echo(to_json(result_file(result, transcript, result.publication)), nl=False)
        raise ResultsError(f"{error}; result.json was printed instead") from None
    if as_json:
        print_json(json.loads(to_json(file)) | {"folder": str(folder)})
    else:
        console = Console()
        show_result(console, result, file.publication, seconds)
        done = result.outcome.result is not None
        what = "Results are in" if done else "The log of the aborted study is in"
        console.print(Text(f"{what} {folder}"), soft_wrap=True)
    if result.outcome.interrupted:
        say("interrupted")
        raise typer.Exit(130)
    if result.outcome.result is None:
        kinds = InternalError | BrokerError
        broken = [end for end in result.parties.values() if isinstance(end, kinds)]
        told = dict.fromkeys([result.outcome.cause, *(str(end) for end in broken[:1])])
        why = "; ".join(told)
        fault = broken[0].__cause__ if broken else result.outcome.fault
        raise Aborted(f"the study failed: {why}", result.outcome.culprits) from fault


@contextlib.contextmanager
def _computing(result: StudyResult, *, quiet: bool) -> Iterator[None]:
    """Say what takes so long, where anything is computed."""
    if quiet or result.outcome.result is None or not sys.stderr.isatty():
        yield
        return
    with messages().status("computing what the study publishes"):
        yield
