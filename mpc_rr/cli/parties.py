"""Commands of those who answer: party, host."""

import contextlib
import math
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.agents.account import Account, StoredAccount, known_as, ledgers_in
from mpc_rr.agents.consent import Consent, consent_to
from mpc_rr.agents.handing_out import Everything
from mpc_rr.agents.host import INTERRUPTED, Ends
from mpc_rr.agents.terms import Terms
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawn
from mpc_rr.cli.addresses import broker_url
from mpc_rr.cli.admissions import read_pass
from mpc_rr.cli.app import (
    AgainOption,
    AnswerBudgetOption,
    BrokerOption,
    BudgetOption,
    CaFile,
    CandidatesOption,
    EverythingOption,
    JsonOption,
    LanguageOption,
    LeastKOption,
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
from mpc_rr.cli.asking import asked_at_terminal
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
    all_quoted,
    listing,
    plain,
    quoted,
)
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.envelope import NAME_RULE, is_party_name
from mpc_rr.privacy.ledger import AnswerBudget
from mpc_rr.protocols.collaborative_k_anonymity import LEAST_K_CHOICE
from mpc_rr.protocols.collaborative_masking import CANDIDATES_CHOICE, DECIDE_CHOICE, MASK_CHOICE
from mpc_rr.publication.ending import Ending
from mpc_rr.results.folder import (
    Kept,
    check_folder,
    kept_meanwhile,
    party_result,
    published_files,
    receipt_file,
    receipt_files,
    without_result,
    write_host_results,
    write_party_end,
    write_party_result,
)
from mpc_rr.results.format import PartyResult, ResultFile, to_json
from mpc_rr.results.handed_out import Whole, whole_result, without_it
from mpc_rr.running import take_part
from mpc_rr.running.loops import deaf, run_to_end
from mpc_rr.schema import Record
from mpc_rr.show.progress import party_watcher
from mpc_rr.show.study import show_consent
from mpc_rr.show.terminal import show_publication
from mpc_rr.study.definition import Study
from mpc_rr.study.file import Scenario, load_scenario
from mpc_rr.study.layout import Layout
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
    least_k: LeastKOption = None,
    decide: Annotated[
        bool,
        typer.Option(
            "--decide",
            help="Choose masks when the values of all are there: you are shown what each would do.",
        ),
    ] = False,
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
    answer_budget: AnswerBudgetOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take part without being asked at the terminal.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show what you would disclose and what it costs, then exit. Sends nothing.",
        ),
    ] = False,
    language: LanguageOption = None,
    out: OutOption = None,
    everything: EverythingOption = False,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Take part in a study with one record. Use --explain first to see what you would disclose.

    Example:  mpc-rr party study.toml --broker mqtt://host:1883 --csv people.csv --row 7
    """
    with contextlib.ExitStack() as open_ledger, plain_errors(verbose, plugin):
        scenario = load_scenario(study_file)
        study, layout = scenario.study, scenario.layout
        _check_seed(seed, state)
        study.schema.check_language(language)
        asked = record is not None or csv is not None or not explain
        own = _own_record(scenario, record, csv, row) if asked else None
        whose = person
        if person is not None and csv is not None:
            whose = _persons(csv, person, row, row, layout)[0]
        limits = _answer_budget(answer_budget or [], study)
        account = open_ledger.enter_context(_account(state, whose, budget, limits))
        _note_new_ledgers(state, [account])
        choices = _choices(mask, candidates, least_k)
        asking = None
        if decide:
            choices[DECIDE_CHOICE] = "yes"
            asking = asked_at_terminal()
        study.protocol.check_choices(study.setting, choices)
        means = consent_to(study, account, own, choices=choices, language=language, again=again)
        if explain or own is None:
            explain_consent(means, as_json=as_json)
            return
        if broker is None:
            raise InputError(
                "--broker is required, e.g. --broker mqtt://host:1883 (or set MPC_RR_BROKER)"
            )
        url = broker_url(context, broker, broker_ca, proxy)
        check_out(out, everything=everything)
        own_name = party_name(name)
        listed = None if withdrawals is None else read_withdrawals(withdrawals, study)
        admission = None if own_pass is None else read_pass(own_pass, study, listed)
        wish = Everything() if everything else None
        terms = Terms(
            coordinator, account, choices, admission, again, withdrawn(listed), wish, asking
        )
        terms.check(study, own)  # told before anything is sent
        _check_fingerprint(coordinator)
        if state is None:
            _note_no_ledger()
        if not yes:
            ask_consent(means)

        take_part_alone(
            study, url, own_name, own, terms, out, seed=seed, wish=wish, as_json=as_json
        )


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
    least_k: LeastKOption = None,
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
    answer_budget: AnswerBudgetOption = None,
    out: OutOption = None,
    everything: EverythingOption = False,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Take part with many records: one party for each, in this process, over one connection.

    Example:  mpc-rr host study.toml --broker mqtt://host:1883 --csv people.csv --rows 1:25

    With --state each person has their own privacy ledger; --id says by which column people are
    known, so that it stays hers wherever her record stands.
    """
    with plain_errors(verbose, plugin):
        scenario = load_scenario(study_file)
        study, layout = scenario.study, scenario.layout
        _check_seed(seed, state)
        chosen = _row_range(rows)
        records = read_csv(csv, study.schema, chosen, layout)
        url = broker_url(context, broker, broker_ca, proxy)
        check_out(out, everything=everything)
        prefix = party_name(name)
        own = {f"{prefix}-{number}": record for number, record in enumerate(records, start=1)}
        party_name(f"{prefix}-{len(records)}")  # the longest of them
        first = 1 if chosen is None else chosen.start
        numbers = range(first, first + len(records))
        _check_fingerprint(coordinator)
        whose = None if person is None else _persons(csv, person, first, numbers[-1], layout)
        listed = None if withdrawals is None else read_withdrawals(withdrawals, study)
        limits = _answer_budget(answer_budget or [], study)
        with _accounts(state, whose, budget, limits, len(records)) as accounts:
            if state is None:
                _note_no_ledger()
            _note_new_ledgers(state, accounts)
            wish = Everything() if everything else None
            terms = {
                own_name: Terms(
                    coordinator,
                    account,
                    _choices(mask, candidates, least_k),
                    None if passes is None else read_pass(passes / f"{number}.pass", study, listed),
                    again,
                    withdrawn(listed),
                    wish,
                )
                for own_name, account, number in zip(own, accounts, numbers, strict=True)
            }

            def ended(ends: Ends) -> None:
                show_host_end(study, ends, out, wish, as_json=as_json)

            ends = _run_parties(study, url, own, seed, terms, ended)
        ended(ends)
        _raise_failed(ends)


def take_part_alone(
    study: Study,
    url: BrokerUrl,
    name: str,
    record: Record,
    terms: Terms,
    out: Path | None,
    *,
    seed: int | None = None,
    wish: Everything | None = None,
    as_json: bool = False,
) -> None:
    """Take part with one record, show how it ended, and keep it; raises what went wrong."""

    def ended(ends: Ends) -> None:
        end = ends[name]
        if isinstance(end, Ending):
            show_party_end(study, name, end, out, wish, as_json=as_json)
        elif out is not None:
            write_party_end(study, name, end, out)

    ends = _run_parties(study, url, {name: record}, seed, {name: terms}, ended)
    end = ends[name]
    if isinstance(end, Ending):
        ended(ends)
        return
    with deaf(), _beside(end):
        ended(ends)
    raise end


# ── What the commands do ───────────────────────────────────────────────────────────────────────


def _check_seed(seed: int | None, state: Path | None) -> None:
    if seed is not None and state is not None:
        raise InputError(
            "--seed is for simulation and goes without --state: the secret in a ledger draws its "
            "answers"
        )


def check_out(out: Path | None, *, everything: bool) -> None:
    """`InputError` if results could not be written in the end."""
    if out is not None:
        check_folder(out)
    elif everything:
        raise InputError("--everything needs --out: in which folder shall everything be?")


def _answer_budget(given: Sequence[str], study: Study) -> AnswerBudget:
    """``2`` is for each answer, ``health=0.5`` for the one to this question."""
    each, of, before = math.inf, dict[str, float](), dict[str, str]()
    for text in given:
        name, sign, number = text.rpartition("=")
        try:
            epsilon = float(number)
        except ValueError:
            raise InputError(
                f"--answer-budget takes a number, or NAME=NUMBER, not {quoted(text)}"
            ) from None
        if sign and name not in study.schema.names:
            raise InputError(
                f"--answer-budget: there is no attribute {quoted(name)}; the study has "
                f"{all_quoted(study.schema.names)}"
            )
        if name in before:
            raise InputError(
                f"--answer-budget was given twice for the same: {quoted(before[name])} and "
                f"{quoted(text)}; give one"
            )
        before[name] = text
        if sign:
            of[name] = epsilon
        else:
            each = epsilon
    return AnswerBudget(each, of)


def _account(
    state: Path | None, person: str | None, budget: float, answer_budget: AnswerBudget
) -> contextlib.AbstractContextManager[Account]:
    """A person's ledger: in her state folder, or in memory if she has none."""
    if state is not None:
        return StoredAccount.open(state, budget, person, answer_budget=answer_budget)
    if person is not None:
        raise InputError("--id goes with --state: whose ledger it is")
    return contextlib.nullcontext(Account(budget, answer_budget=answer_budget))


@contextlib.contextmanager
def _accounts(
    state: Path | None,
    persons: list[str] | None,
    budget: float,
    answer_budget: AnswerBudget,
    count: int,
) -> Iterator[list[Account]]:
    """The ledgers of a host's people."""
    if state is None:
        yield [Account(budget, answer_budget=answer_budget) for _ in range(count)]
        return
    if persons is None:
        raise InputError(
            "--state needs --id COLUMN: a ledger belongs to a person, and her record may stand in "
            "another row tomorrow"
        )
    with StoredAccount.open_many(state, persons, budget, answer_budget=answer_budget) as stored:
        yield [stored[person] for person in persons]


def _persons(
    csv: Path, column: str, first: int | None, last: int | None, layout: Layout
) -> list[str]:
    """Who the records of some rows are of."""
    if first is None or last is None:
        raise InputError("--csv needs --row: which record is it?")
    everybody = read_columns(csv, [column], layout)[column]
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
        "[yellow]Warning[/]: no --state folder, so your privacy spending is not recorded. Each "
        "repetition of a study may disclose as much again, and --budget covers this study only.",
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
        "spent. Anyone who took part before must have the same --id as then, capitals included.",
        highlight=False,
    )


def explain_consent(
    means: Consent, *, as_json: bool, beside: Mapping[str, object] = MappingProxyType({})
) -> None:
    """Say what taking part would mean; end with an error if this person must not.

    ``beside``: what else stands in the JSON.
    """
    if as_json:
        print_json(msgspec.to_builtins(means) | dict(beside))
    else:
        show_consent(Console(), means)
    if means.refused is not None:
        raise InputError(means.refused)


def ask_consent(means: Consent) -> None:
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
        with deaf():
            stopped(ends)
        told = True

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


def _choices(
    masks: list[str] | None, candidates: int | None, least_k: int | None
) -> dict[str, str]:
    """What this party decides for itself, by the protocol's keywords."""
    choices = {} if candidates is None else {CANDIDATES_CHOICE: str(candidates)}
    if least_k is not None:
        choices[LEAST_K_CHOICE] = str(least_k)
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
            "[yellow]Warning[/]: no --coordinator FINGERPRINT, so the first coordinator that "
            "answers is trusted. Ask the study team for its fingerprint.",
            highlight=False,
        )
    elif not re.fullmatch(rf"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", fingerprint):
        raise InputError(
            f"--coordinator takes the {FINGERPRINT_DIGITS} hexadecimal digits that the coordinator "
            "prints when it starts"
        )


def _own_record(
    scenario: Scenario, record: Path | None, csv: Path | None, row: int | None
) -> Record:
    schema = scenario.study.schema
    if record is not None and csv is None and row is None:
        return read_record(record, schema)
    if record is None and csv is not None and row is not None:
        return read_csv(csv, schema, range(row, row + 1), scenario.layout)[0]
    raise InputError("give the record either by --record FILE or by --csv FILE --row N")


def _row_range(rows: str | None) -> range | None:
    if rows is None:
        return None
    first, colon, last = rows.partition(":")
    numbers = colon and re.fullmatch("[0-9]{1,9}", first) and re.fullmatch("[0-9]{1,9}", last)
    if not (numbers and 1 <= int(first) <= int(last)):
        raise InputError(f"--rows must look like 1:25 (first and last record), not {rows!r}")
    return range(int(first), int(last) + 1)


def party_name(name: str | None) -> str:
    """The name that was given, or a random one."""
    if name is None:
        return f"party-{secrets.token_hex(4)}"
    if not is_party_name(name):
        raise InputError(f"{name!r} cannot be a party's name: {NAME_RULE}")
    return name


def show_party_end(
    study: Study,
    name: str,
    end: Ending,
    out: Path | None,
    wish: Everything | None,
    *,
    as_json: bool,
) -> None:
    """What a party has in the end: on disk, if it is to be there, and on the screen."""
    with _kept(study, end, receipt_file(end), out, wish) as kept:
        result, whole = _result_of(study, {name: end}, end, wish)
        if out is not None:
            with deaf():
                result, whole = _written(result, whole, study, end, receipt_file(end), out)
                if whole is None:
                    with _or_printed(result):
                        write_party_result(result, end, out, kept)
    if out is not None:
        own = "Your result" if whole is None else "The whole result"
        messages().print(f"{own} and receipt are in {out}", highlight=False, soft_wrap=True)
    _show(study, result, end, as_json=as_json)


def _kept(
    study: Study,
    end: Ending | None,
    beside: Mapping[str, str],
    out: Path | None,
    wish: Everything | None,
) -> contextlib.AbstractContextManager[Kept]:
    """What is known here anyhow is on disk before what was handed out is looked at."""
    if end is None or out is None or wish is None:
        return contextlib.nullcontext(Kept())
    own = party_result(study, end)
    return kept_meanwhile({**published_files(own, own.publication), **beside}, out)


def _result_of(
    study: Study, ends: Mapping[str, Ending], end: Ending, wish: Everything | None
) -> tuple[PartyResult | ResultFile, Whole | None]:
    """What is known here in the end: everything, where that was asked for and handed out."""
    if wish is None:
        return party_result(study, end), None
    try:
        whole = whole_result(study, wish, ends)
    except ResultsError as trouble:
        return without_it(party_result(study, end), trouble), None
    if whole.remark is not None:
        messages().print(f"[yellow]Note[/]: {escape(whole.remark)}", highlight=False)
    return whole.file, whole


def _written(
    result: PartyResult | ResultFile,
    whole: Whole | None,
    study: Study,
    end: Ending,
    beside: Mapping[str, str],
    out: Path,
) -> tuple[PartyResult | ResultFile, Whole | None]:
    """Write the whole, if it is there; where that cannot be done the own result says so."""
    if whole is None:
        return result, None
    try:
        whole.write(beside, out)
    except ResultsError as trouble:
        return without_it(party_result(study, end), trouble), None
    return result, whole


def _show(study: Study, result: PartyResult | ResultFile, end: Ending, *, as_json: bool) -> None:
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
def _or_printed(result: PartyResult | ResultFile | None) -> Iterator[None]:
    """If results cannot be written they are printed, so that nothing is lost."""
    try:
        yield
    except ResultsError as error:
        if result is not None:
            typer.echo(to_json(result), nl=False)
        raise ResultsError(f"{error}; result.json was printed instead") from None


def show_host_end(
    study: Study, ends: Ends, out: Path | None, wish: Everything | None, *, as_json: bool
) -> None:
    """The result, which all parties of the host share, and each one's receipt."""
    finished = {name: end for name, end in ends.items() if isinstance(end, Ending)}
    best = min(finished.values(), key=lambda end: end.without_verdict, default=None)
    beside = receipt_files(ends) | without_result(study, ends)
    with _kept(study, best, beside, out, wish) as kept:
        result, whole = (None, None) if best is None else _result_of(study, finished, best, wish)
        if out is not None:
            with deaf():
                if result is not None and best is not None:
                    result, whole = _written(result, whole, study, best, beside, out)
                if whole is None:
                    with _or_printed(result):
                        write_host_results(study, result, ends, out, kept)
    if result is not None and best is not None:  # what one has heard, all have
        _show(study, result, best, as_json=as_json)


def _raise_failed(ends: Ends) -> None:
    """Say why some parties of a host have no result, if any have none."""
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    if failed:
        message = f"{len(failed)} of {len(ends)} parties of this host got no result; "
        raise Aborted(message + _causes(failed), failed)


def _causes(failed: Mapping[str, MpcRrError], most: int = 3) -> str:
    """Why parties have no result: each cause once, those of this machine before those of others."""
    by_cause: dict[str, list[str]] = {}
    for name in sorted(failed, key=lambda name: isinstance(failed[name], StudyError)):
        by_cause.setdefault(str(failed[name]), []).append(name)
    told = [f"{listing(names, 2)}: {cause}" for cause, names in by_cause.items()]
    more = f"; and {len(told) - most} more causes" if len(told) > most else ""
    return "; ".join(told[:most]) + more
