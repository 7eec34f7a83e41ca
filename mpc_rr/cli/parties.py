"""Commands of those who answer: party, host."""

import contextlib
import math
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.agents.account import Account, StoredAccount, known_as, ledgers_in
from mpc_rr.agents.consent import Consent, consent_to
from mpc_rr.agents.host import INTERRUPTED, Ends
from mpc_rr.agents.terms import Terms
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawn
from mpc_rr.cli.addresses import broker_url
from mpc_rr.cli.admissions import read_pass
from mpc_rr.cli.app import (
    AgainOption,
    BrokerOption,
    BudgetOption,
    CaFile,
    CandidatesOption,
    JsonOption,
    LanguageOption,
    MaskOption,
    OptionalBroker,
    OutOption,
    PassOption,
    PinOption,
    PluginOption,
    ProxyOption,
    SeedOption,
    StateOption,
    StudyFile,
    Verbose,
    WithdrawalsOption,
    app,
)
from mpc_rr.cli.console import at_terminal, confirmed, messages, plain_errors, print_json
from mpc_rr.crypto.identity import FINGERPRINT_DIGITS
from mpc_rr.errors import (
    Aborted,
    BrokerError,
    Declined,
    InputError,
    MpcRrError,
    Refused,
    ResultsError,
    StudyError,
    listing,
    plain,
)
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.envelope import NAME_RULE, is_party_name
from mpc_rr.protocols.collaborative_masking import CANDIDATES_CHOICE, MASK_CHOICE
from mpc_rr.publication.ending import Ending
from mpc_rr.results.folder import (
    check_folder,
    party_result,
    write_host_results,
    write_party_end,
    write_party_result,
)
from mpc_rr.results.format import PartyResult, to_json
from mpc_rr.running import take_part
from mpc_rr.running.loops import run_to_end
from mpc_rr.schema import Record
from mpc_rr.show.progress import party_watcher
from mpc_rr.show.study import show_consent
from mpc_rr.show.terminal import show_publication
from mpc_rr.study.definition import Study
from mpc_rr.study.file import load_scenario
from mpc_rr.study.records import read_columns, read_csv, read_record


@app.command()
def party(
    context: typer.Context,
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
    proxy: ProxyOption = None,
    own_pass: PassOption = None,
    withdrawals: WithdrawalsOption = None,
    mask: MaskOption = None,
    candidates: CandidatesOption = None,
    state: StateOption = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Whose ledger it is, where the folder keeps those of many; with --csv, the "
            "column that says so.",
        ),
    ] = None,
    again: AgainOption = False,
    budget: BudgetOption = math.inf,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take part without being asked at the terminal.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say what taking part would mean.")
    ] = False,
    language: LanguageOption = None,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Take part in a study with one record. What of it leaves this process, --explain says.

    Example:  mpc-rr party study.toml --broker mqtt://host:1883 --csv people.csv --row 7
    """
    with contextlib.ExitStack() as open_ledger, plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        _check_seed(seed, state)
        study.schema.check_language(language)
        asked = record is not None or csv is not None or not explain
        own = _own_record(study, record, csv, row) if asked else None
        whose = person if person is None or csv is None else _persons(csv, person, row, row)[0]
        account = open_ledger.enter_context(_account(state, budget, whose))
        _note_new_ledgers(state, [account])
        choices = _choices(mask, candidates)
        study.protocol.check_choices(study.setting, choices)
        means = consent_to(study, account, own, choices=choices, language=language, again=again)
        if explain or own is None:
            _explain(means, as_json=as_json)
            return
        if broker is None:
            raise InputError("--broker is missing: where does the study take place?")
        url = broker_url(context, broker, broker_ca, proxy)
        if out is not None:
            check_folder(out)
        own_name = _party_name(name)
        listed = None if withdrawals is None else read_withdrawals(withdrawals, study)
        admission = None if own_pass is None else read_pass(own_pass, study, listed)
        terms = Terms(coordinator, account, choices, admission, again, withdrawn(listed))
        terms.check(study, own)  # told before anything is sent
        _check_fingerprint(coordinator)
        if state is None:
            _note_no_ledger()
        if not yes:
            _ask(means)

        def keep(ends: Ends) -> None:
            if out is not None and isinstance(end := ends[own_name], MpcRrError):
                write_party_end(study, own_name, end, out)

        ends = _run_parties(study, url, {own_name: own}, seed, {own_name: terms}, keep)
        with _beside(ends[own_name]):
            keep(ends)
        _show_party_end(study, ends[own_name], out, as_json=as_json)


@app.command()
def host(
    context: typer.Context,
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
    proxy: ProxyOption = None,
    passes: Annotated[
        Path | None,
        typer.Option(help="Folder with the passes: 7.pass is that of record 7 of the CSV file."),
    ] = None,
    withdrawals: WithdrawalsOption = None,
    mask: MaskOption = None,
    candidates: CandidatesOption = None,
    state: StateOption = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="The column of the CSV file that says who a record is of; --state needs it.",
        ),
    ] = None,
    again: AgainOption = False,
    budget: BudgetOption = math.inf,
    out: OutOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Take part with many records: one party for each, in this process, over one connection.

    Example:  mpc-rr host study.toml --broker mqtt://host:1883 --csv people.csv --rows 1:25

    With --state each person has a privacy ledger of her own; --id says by which column people are
    known, so that it stays hers wherever her record stands.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        _check_seed(seed, state)
        chosen = _row_range(rows)
        records = read_csv(csv, study.schema, chosen)
        url = broker_url(context, broker, broker_ca, proxy)
        if out is not None:
            check_folder(out)
        prefix = _party_name(name)
        own = {f"{prefix}-{number}": record for number, record in enumerate(records, start=1)}
        _party_name(f"{prefix}-{len(records)}")  # the longest of them
        first = 1 if chosen is None else chosen.start
        numbers = range(first, first + len(records))
        _check_fingerprint(coordinator)
        persons = None if person is None else _persons(csv, person, first, numbers[-1])
        listed = None if withdrawals is None else read_withdrawals(withdrawals, study)
        with _accounts(state, budget, len(records), persons) as accounts:
            if state is None:
                _note_no_ledger()
            _note_new_ledgers(state, accounts)
            terms = {
                own_name: Terms(
                    coordinator,
                    account,
                    _choices(mask, candidates),
                    None if passes is None else read_pass(passes / f"{number}.pass", study, listed),
                    again,
                    withdrawn(listed),
                )
                for own_name, account, number in zip(own, accounts, numbers, strict=True)
            }

            def stopped(ends: Ends) -> None:
                if out is not None:
                    write_host_results(study, None, ends, out)

            ends = _run_parties(study, url, own, seed, terms, stopped)
        _show_host_end(study, ends, out, as_json=as_json)


# ── What the commands do ───────────────────────────────────────────────────────────────────────


def _check_seed(seed: int | None, state: Path | None) -> None:
    if seed is not None and state is not None:
        raise InputError(
            "--seed is for simulation and goes without --state: the secret in a ledger draws its "
            "answers"
        )


def _account(
    state: Path | None, budget: float, person: str | None
) -> contextlib.AbstractContextManager[Account]:
    """A person's ledger: in her state folder, or in memory if she has none."""
    if state is not None:
        return StoredAccount.open(state, budget, person)
    if person is not None:
        raise InputError("--id goes with --state: whose ledger it is")
    return contextlib.nullcontext(Account(budget))


@contextlib.contextmanager
def _accounts(
    state: Path | None, budget: float, count: int, persons: list[str] | None
) -> Iterator[list[Account]]:
    """The ledgers of a host's people."""
    if state is None:
        yield [Account(budget) for _ in range(count)]
        return
    if persons is None:
        raise InputError(
            "--state needs --id COLUMN: a ledger belongs to a person, and her record may stand in "
            "another row tomorrow"
        )
    with StoredAccount.open_many(state, persons, budget) as stored:
        yield [stored[person] for person in persons]


def _persons(csv: Path, column: str, first: int | None, last: int | None) -> list[str]:
    """Who the records of some rows are of."""
    if first is None or last is None:
        raise InputError("--csv needs --row: which record is it?")
    everybody = read_columns(csv, [column])[column]
    persons = everybody[first - 1 : last]
    if "" in persons:
        row = first + persons.index("")
        raise InputError(f"{csv}: record {row} has nothing in column {column!r}: whose is it?")
    times = Counter(map(known_as, everybody))
    twice = [person for person in persons if times[known_as(person)] > 1]
    if twice:
        raise InputError(
            f"{csv}: column {column!r} has {twice[0]!r} twice; it must tell people apart"
        )
    return persons


def _note_no_ledger() -> None:
    messages().print(
        "[yellow]Note[/]: without --state nothing is remembered: taking part in a study again may "
        "disclose as much again, and --budget limits this study alone.",
        highlight=False,
    )


def _note_new_ledgers(state: Path | None, accounts: Sequence[Account]) -> None:
    """Whoever is spelled otherwise than last time would begin again with nothing spent."""
    count = sum(isinstance(account, StoredAccount) and not account.begun for account in accounts)
    known = 0 if state is None or not count else ledgers_in(state)
    if state is None or not known:
        return
    new = "a new ledger begins" if count == 1 else f"{count:,} new ledgers begin"
    others = "the one that is there" if known == 1 else f"the {known:,} that are there"
    messages().print(
        f"[yellow]Note[/]: {new} in {escape(plain(str(state)))}, beside {others}, with nothing "
        "spent. Whoever took part before must have the same --id as then, capitals included.",
        highlight=False,
    )


def _explain(means: Consent, *, as_json: bool) -> None:
    """Say what taking part would mean; end with an error if this person must not."""
    if as_json:
        print_json(msgspec.to_builtins(means))
    else:
        show_consent(Console(), means)
    if means.refused is not None:
        raise InputError(means.refused)


def _ask(means: Consent) -> None:
    """Ask for consent, where somebody sits at a terminal; who cannot be asked must say --yes."""
    if not sys.stdin.isatty():
        return
    if not at_terminal():
        raise InputError(
            "you sit at a terminal but cannot be asked there (this runs in the background, or its "
            "messages go elsewhere); nothing was sent. --explain says what you would disclose; if "
            "you agree, say --yes"
        )
    show_consent(messages(), means)
    if not confirmed("Take part?"):
        raise Declined("you declined; nothing was sent")


def _run_parties(
    study: Study,
    url: BrokerUrl,
    records: dict[str, Record],
    seed: int | None,
    terms: Mapping[str, Terms],
    stopped: Callable[[Ends], None],
) -> Ends:
    for own in terms.values():
        study.protocol.check_choices(study.setting, own.choices)  # told before anything is sent
    watch, told = party_watcher(messages()), False

    def once(ends: Ends) -> None:
        nonlocal told
        told = True
        stopped(ends)

    try:
        return run_to_end(
            take_part(study, url, records, terms=terms, seed=seed, watch=watch, when_stopped=once)
        )
    except BrokerError as error:  # there never was a connection
        with _beside(error):
            once(dict.fromkeys(records, error))
        raise
    except KeyboardInterrupt:
        if not told:
            once(dict.fromkeys(records, Refused(INTERRUPTED)))
        raise


def _choices(masks: list[str] | None, candidates: int | None) -> dict[str, str]:
    """What this party decides for itself, by the protocol's keywords."""
    choices = {} if candidates is None else {CANDIDATES_CHOICE: str(candidates)}
    for given in masks or ():
        attribute, equals, mask = given.partition("=")
        if not (attribute and equals and mask):
            raise InputError(f"--mask must look like salary=noise:5000, not {given!r}")
        if MASK_CHOICE + attribute in choices:
            raise InputError(f"--mask is given twice for {attribute!r}; which one shall it be?")
        choices[MASK_CHOICE + attribute] = mask
    return choices


def _check_fingerprint(fingerprint: str | None) -> None:
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


def _show_party_end(
    study: Study, end: Ending | MpcRrError, out: Path | None, *, as_json: bool
) -> None:
    if isinstance(end, MpcRrError):
        raise end
    result = party_result(study, end)
    if out is not None:
        with _or_printed(result):
            write_party_result(result, end, out)
        messages().print(f"Your result and receipt are in {out}", highlight=False, soft_wrap=True)
    _show(study, result, end, as_json=as_json)


def _show(study: Study, result: PartyResult, end: Ending, *, as_json: bool) -> None:
    if as_json:
        typer.echo(to_json(result), nl=False)
    else:
        head = "Not confirmed" if end.without_verdict else "Done"
        show_publication(Console(), result.publication, study.schema, head)


@contextlib.contextmanager
def _beside(end: Ending | MpcRrError) -> Iterator[None]:
    """If it cannot be written why there is no result, it is said all the same."""
    try:
        yield
    except ResultsError as error:
        raise ResultsError(f"{end}; and {error}") from None


@contextlib.contextmanager
def _or_printed(result: PartyResult | None) -> Iterator[None]:
    """If results cannot be written they are printed, so that nothing is lost."""
    try:
        yield
    except ResultsError as error:
        if result is not None:
            typer.echo(to_json(result), nl=False)
        raise ResultsError(f"{error}; result.json was printed instead") from None


def _show_host_end(study: Study, ends: Ends, out: Path | None, *, as_json: bool) -> None:
    """The result, which all parties of the host share, and each one's receipt."""
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    finished = [end for end in ends.values() if isinstance(end, Ending)]
    finished.sort(key=lambda end: end.without_verdict)  # what one has heard, all have
    result = party_result(study, finished[0]) if finished else None
    if out is not None:
        with _or_printed(result):
            write_host_results(study, result, ends, out)
    if result is not None:
        _show(study, result, finished[0], as_json=as_json)
    if failed:
        message = f"{len(failed)} of {len(ends)} parties of this host have no result; "
        raise Aborted(message + _causes(failed), failed)


def _causes(failed: Mapping[str, MpcRrError], most: int = 3) -> str:
    """Why parties have no result: each cause once, those of this machine before those of others."""
    by_cause: dict[str, list[str]] = {}
    for name in sorted(failed, key=lambda name: isinstance(failed[name], StudyError)):
        by_cause.setdefault(str(failed[name]), []).append(name)
    told = [f"{listing(names, 2)}: {cause}" for cause, names in by_cause.items()]
    more = f"; and {len(told) - most} more causes" if len(told) > most else ""
    return "; ".join(told[:most]) + more
