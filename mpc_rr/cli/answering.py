"""``mpc-rr answer``: take part by an invitation, at a terminal, in words."""

import contextlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mpc_rr.agents.account import StoredAccount
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.invitation import LARGEST_TEXT, SCHEME, StudyInvitation
from mpc_rr.agents.terms import Terms
from mpc_rr.cli.app import (
    AgainOption,
    BudgetOption,
    JsonOption,
    LanguageOption,
    OutOption,
    PluginOption,
    ProxyOption,
    StateOption,
    Verbose,
    app,
)
from mpc_rr.cli.console import at_terminal, confirmed, messages, note, plain_errors
from mpc_rr.cli.parties import (
    ask_consent,
    check_out,
    explain_consent,
    party_name,
    take_part_alone,
)
from mpc_rr.errors import DataError, Declined, InputError, plain, plain_lines
from mpc_rr.schema import Attribute, Record, Schema
from mpc_rr.show.study import indented, show_venue
from mpc_rr.study.definition import Study
from mpc_rr.study.records import read_record

OTHERS_MAY_READ = 0o044
PRIVATE = 0o700


@app.command()
def answer(
    invitation: Annotated[
        str,
        typer.Argument(
            metavar="INVITATION",
            help="The file with your invitation, - to read it from standard input, or the "
            "invitation itself (which others on this machine could then see).",
        ),
    ],
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .json or .toml file with your answers; else you are asked."
        ),
    ] = None,
    language: LanguageOption = None,
    state: StateOption = None,
    budget: BudgetOption = math.inf,
    again: AgainOption = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take part without being asked for your consent.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show what you would disclose and what it costs, then exit. Sends nothing.",
        ),
    ] = False,
    out: OutOption = None,
    proxy: ProxyOption = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Take part in a study that you were invited to.

    You are asked the questions, shown what you would disclose and to whom, and asked whether you
    take part; until you say yes, nothing is sent. In the end you see the result. Your privacy
    ledger and your receipt are kept in a private folder, which is named.

    Example:  mpc-rr answer invitation.txt
    """
    with plain_errors(verbose, plugin), contextlib.ExitStack() as opened:
        invited = _invitation(invitation)
        study = invited.study
        study.schema.check_language(language)
        url = invited.url(proxy)
        if answers is None and not explain:
            _check_askable()
            language = _language(study, language)
        place = _private_folder() / "ledger" if state is None else state
        account = opened.enter_context(StoredAccount.open(place, budget))
        own = None if answers is None else read_record(answers, study.schema)
        if explain:
            means = consent_to(study, account, own, language=language, again=again)
            if not as_json:
                show_venue(Console(), url, invited.coordinator)
            where = {
                "brokers": [repr(node) for node in url.nodes],
                "coordinator": invited.coordinator,
            }
            explain_consent(means, as_json=as_json, beside=where)
            return
        receipt = _receipt_folder(study) if out is None else out
        check_out(receipt, everything=False)
        terms = Terms(invited.coordinator, account, admission=invited.credential, again=again)
        terms.check(study, own)  # told before anything is asked
        if own is None:
            own = _asked_record(study, language)
        terms.check(study, own)
        messages().print(
            f"Your privacy ledger is in {escape(plain(str(place)))}: keep it, and let nobody else "
            "read it.",
            highlight=False,
            soft_wrap=True,
        )
        if invited.credential is not None:
            note(
                "the person who made this invitation knows which of the study's messages are "
                "yours, and could take part in your name"
            )
        show_venue(messages(), url, invited.coordinator)
        if not yes:
            if not sys.stdin.isatty():
                raise InputError(
                    "nobody can be asked here for consent, and nothing was sent: --explain says "
                    "what you would disclose; if you agree, say --yes"
                )
            ask_consent(consent_to(study, account, own, language=language, again=again))
        take_part_alone(study, url, party_name(None), own, terms, receipt, as_json=as_json)


# ── The invitation ─────────────────────────────────────────────────────────────────────────────


def _invitation(given: str) -> StudyInvitation:
    """The invitation in a file, on standard input, or given as it is."""
    if given.startswith(SCHEME):
        note(
            "others on this machine can see the invitation in the list of processes; better keep "
            "it in a file, and give that"
        )
        return StudyInvitation.parse(given)
    if given == "-":
        return StudyInvitation.parse(sys.stdin.read(2 * LARGEST_TEXT + 1))
    path = Path(given)
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(2 * LARGEST_TEXT + 1)
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"cannot read an invitation from {path}: {why}") from None
    found = StudyInvitation.parse(text)
    if os.name == "posix" and mode & OTHERS_MAY_READ:
        note(f"others on this machine can read the invitation in {path}; chmod 600 {path} helps")
    return found


def _private_folder() -> Path:
    """Where a person's ledger and receipts are kept, unless she names another folder."""
    folder = Path(typer.get_app_dir("mpc-rr"))
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"nothing can be kept in {folder}: {error.strerror}; name another folder with --state"
        ) from None
    return folder


def _receipt_folder(study: Study) -> Path:
    """A new folder for this study's receipt and result."""
    first = _private_folder() / "receipts" / f"{study.name}-{study.digest.hex()[:8]}"
    first.parent.mkdir(mode=PRIVATE, exist_ok=True)
    number, folder = 2, first
    while folder.exists():
        folder, number = first.with_name(f"{first.name}-{number}"), number + 1
    return folder


# ── The questions ──────────────────────────────────────────────────────────────────────────────


def _check_askable() -> None:
    if not at_terminal():
        raise InputError(
            "nobody can be asked the questions here: run it at a terminal, or give your answers "
            "with --answers FILE"
        )


def _language(study: Study, wished: str | None) -> str | None:
    """The language in which the questions are asked, where there are several."""
    known = study.schema.languages
    if wished is not None or len(known) < 2:
        return wished
    _say("The study has its questions in several languages:")
    return known[_chosen("Your language", list(known), _place_in(known))]


def _asked_record(study: Study, language: str | None) -> Record:
    """All questions, until the person says that the answers are right."""
    console = messages()
    _say(f"Study {study.name}. Its title:")
    console.print(indented(console, study.title))
    if study.description:
        _say("Its author writes:")
        console.print(indented(console, study.description))
    _say("Nothing that you answer leaves this machine before you have agreed to it.")
    while True:
        record = _asked(study.schema, language)
        _say("\nYour answers:")
        for attribute, code in zip(study.schema.attributes, record, strict=True):
            given = attribute.category_title(attribute.text(code), language)
            console.print(indented(console, f"{attribute.asked(language)}  {given}"))
        if confirmed("Are these your answers?"):
            return record


def _asked(schema: Schema, language: str | None) -> Record:
    console, found = messages(), []
    for number, attribute in enumerate(schema.attributes, start=1):
        _say(f"\nQuestion {number} of {len(schema.attributes)}:")
        console.print(indented(console, attribute.asked(language)))
        if attribute.numeric:
            found.append(_number(attribute))
        else:
            titles = [_category(attribute, c, language) for c in attribute.categories]
            found.append(_chosen("Your answer", titles, _code_in(attribute, language)))
    return tuple(found)


def _code_in(attribute: Attribute, language: str | None) -> Callable[[str], int | None]:
    """Reads an answer in words, or a number of which the interval is asked."""
    shown = [attribute.category_title(c, language) for c in attribute.categories]
    by_name, by_title = _place_in(attribute.categories), _place_in(shown)

    def code(said: str) -> int | None:
        place = by_title(said)
        if place is None:
            place = by_name(said)
        if place is not None:
            return place
        try:
            return attribute.code(said)
        except DataError:
            return None

    return code


def _place_in(words: Sequence[str]) -> Callable[[str], int | None]:
    """Reads one of these words, in capitals or not; None if it is none, or more than one."""
    folded = [word.casefold() for word in words]

    def place(said: str) -> int | None:
        word = said.casefold()
        return folded.index(word) if folded.count(word) == 1 else None

    return place


def _category(attribute: Attribute, category: str, language: str | None) -> str:
    """An answer as it is shown, with the numbers that are counted as it."""
    title = attribute.category_title(category, language)
    numbers = attribute.intervals.get(category)
    return title if numbers is None else f"{title}  ({numbers})"


def _number(attribute: Attribute) -> int:
    """A number that the study takes."""
    _say(f"Possible: {attribute.answers}.")
    while True:
        said = _prompted("Your answer")
        try:
            return attribute.code(said)
        except DataError as error:
            _say(str(error))


def _chosen(what: str, options: list[str], in_words: Callable[[str], int | None]) -> int:
    """One of several: by its number, else as ``in_words`` reads what is typed."""
    console = messages()
    for number, option in enumerate(options, start=1):
        console.print(indented(console, f"{number}  {option}"))
    while True:
        said = _prompted(f"{what} (1 to {len(options)})")
        if said in {str(number + 1) for number in range(len(options))}:
            return int(said) - 1
        place = in_words(said)
        if place is not None:
            return place
        _say(f"Please type a number from 1 to {len(options)}, or one of these answers.")


def _prompted(what: str) -> str:
    try:
        return str(typer.prompt(what, err=True)).strip()
    except typer.Abort:
        messages().print()
        raise Declined("you stopped; nothing was sent") from None


def _say(text: str) -> None:
    messages().print(Text(plain_lines(text)))
