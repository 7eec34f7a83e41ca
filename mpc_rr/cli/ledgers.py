"""The command of those who keep a privacy ledger: ledger."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpc_rr.agents.account import StoredAccount, adopt_rows
from mpc_rr.cli.app import JsonOption, Verbose, app
from mpc_rr.cli.console import confirmed, messages, plain_errors, print_json
from mpc_rr.errors import Declined, InputError, all_quoted
from mpc_rr.privacy.disclosures import as_long_as, bounded
from mpc_rr.privacy.sentences import epsilon_cell, epsilon_said
from mpc_rr.study.records import read_columns


@app.command()
def ledger(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The state folder.")],
    person: Annotated[
        str | None, typer.Option("--id", help="Whose ledger, where the folder keeps many.")
    ] = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Erase the secret that draws answers: afterwards nobody can undo the answers "
            "given so far, nor can they be given again. What was spent stays.",
        ),
    ] = False,
    adopt: Annotated[
        Path | None,
        typer.Option(
            metavar="PEOPLE.csv",
            help="Ledgers of an earlier version go by row number: say whose they are, by the very "
            "CSV file that they were made with and --id COLUMN.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without being asked.")] = False,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Show what a privacy ledger holds: what was disclosed, in which studies, and its ε.

    Example:  mpc-rr ledger ~/my-ledger
    """
    with plain_errors(verbose):
        if not state.is_dir():
            raise InputError(f"there is no state folder {state}")
        if adopt is not None:
            _adopt(state, adopt, person)
            return
        with StoredAccount.open(state, person=person) as account:
            if person is not None and not account.participations:
                raise InputError(f"{state} keeps no ledger of {person!r}")
            if forget:
                _forget(account, yes=yes)
                return
            held = _held(account)
            if as_json:
                print_json(held)
            else:
                _show(Console(), held)


def _adopt(state: Path, people: Path, column: str | None) -> None:
    if column is None:
        raise InputError("--adopt needs --id COLUMN: which column says who a record is of?")
    count = adopt_rows(state, read_columns(people, [column])[column])
    if not count:
        raise InputError(f"nothing is to be adopted: no ledger in {state} goes by row number")
    messages().print(f"{count} ledgers now belong to people, by {column!r}.", highlight=False)


def _forget(account: StoredAccount, *, yes: bool) -> None:
    if not yes and not confirmed(
        "Studies answered so far cannot be answered again afterwards. Erase the secret?"
    ):
        raise Declined("nothing was erased")
    account.forget()
    messages().print("The secret was erased; copies of this folder still hold it.")


def _held(account: StoredAccount) -> dict[str, Any]:
    events = account.ledger.events
    reading = account.ledger.reading()
    return {
        "studies": [
            {
                "study": took.study,
                "promise": took.promise,
                "disclosed": [
                    {
                        "attributes": list(event.attributes),
                        "how": event.how,
                        "epsilon": bounded(event.cost),
                        "epsilon_said": epsilon_cell(event.cost, [event]),
                        "answers": _bounded(event.answers),
                    }
                    for event in took.events
                ],
                "runs": [run.run for run in took.runs],
                "erased": took.erased,
                "epsilon": bounded(sum(event.cost for event in took.events)),
            }
            for took in account.participations
        ],
        "accountant": reading.accountant,
        "local_epsilon": bounded(reading.local),
        "answers": _bounded(reading.answers),
        "local_delta": reading.local_delta,
        "local_withstands": reading.withstands,
        "local_trusts_coordinator": reading.trusts_coordinator,
        "claimed_epsilon": bounded(reading.claimed),
        "central_epsilon": bounded(reading.central),
        "central_delta": reading.delta,
        "in_words": account.ledger.in_words(),
        "said": {
            "against anyone who sees all that was sent": epsilon_said(reading.local, events),
            "of any one answer": epsilon_said(reading.one_answer, events),
            "as the papers count": epsilon_said(reading.claimed, events),
            "against anyone who sees only totals": epsilon_said(reading.central, events),
        },
    }


def _bounded(answers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: bounded(epsilon) for name, epsilon in answers.items()}


NOTHING_NEW = {
    "attributes": [], "how": "nothing new", "epsilon": 0, "epsilon_said": "0", "answers": {},
}  # fmt: skip


def _show(console: Console, held: dict[str, Any]) -> None:
    if not held["studies"]:
        console.print("This ledger is empty.")
        return
    heads = ("study", "runs", "about", "how", "ε", "of one answer")
    table = Table(*heads, box=None, pad_edge=False)
    for took in held["studies"]:
        for event in took["disclosed"] or [NOTHING_NEW]:
            about = all_quoted(event["attributes"])
            study = f"{took['study']} (erased)" if took["erased"] else took["study"]
            runs = str(len(took["runs"]))
            known = [epsilon for epsilon in event["answers"].values() if epsilon is not None]
            one = f"{max(known):.3g}" if known else event["epsilon_said"]
            cells = (study, runs, about, event["how"], event["epsilon_said"], one)
            table.add_row(*map(Text, cells))
    console.print(table)
    for place, (words, epsilon) in enumerate(held["said"].items()):
        most = held["local_withstands"] if place < 2 else None
        honest = held["local_trusts_coordinator"]
        rests = "" if most is None else f", {as_long_as(most, honest=honest)}"
        console.print(Text(f"In all, {words}: {epsilon}{rests}"), highlight=False)
    console.print(Text(held["in_words"]), highlight=False)
