"""The command of those who keep a privacy ledger: ledger."""

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
from mpc_rr.privacy.disclosures import as_long_as, bounded, on_condition
from mpc_rr.privacy.odds import in_words
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
        "local_delta": reading.local_delta,
        "local_withstands": reading.withstands,
        "claimed_epsilon": bounded(reading.claimed),
        "central_epsilon": bounded(reading.central),
        "central_delta": reading.delta,
        "in_words": on_condition(in_words(reading.local, you=True), reading.withstands),
    }


def _show(console: Console, held: dict[str, Any]) -> None:
    if not held["studies"]:
        console.print("This ledger is empty.")
        return
    table = Table("study", "runs", "about", "how", "ε", box=None, pad_edge=False)
    for took in held["studies"]:
        for event in took["disclosed"] or [{"attributes": [], "how": "nothing new", "epsilon": 0}]:
            about = all_quoted(event["attributes"])
            study = f"{took['study']} (erased)" if took["erased"] else took["study"]
            runs = str(len(took["runs"]))
            cells = (study, runs, about, event["how"], _epsilon(event["epsilon"]))
            table.add_row(*map(Text, cells))
    console.print(table)
    for words, key in (
        ("against whoever sees all that was sent", "local_epsilon"),
        ("as the papers count", "claimed_epsilon"),
        ("against whoever sees only totals", "central_epsilon"),
    ):
        most = held["local_withstands"] if key == "local_epsilon" else None
        rests = "" if most is None else f", {as_long_as(most)}"
        console.print(Text(f"In all, {words}: {_epsilon(held[key])}{rests}"), highlight=False)
    console.print(Text(held["in_words"]), highlight=False)


def _epsilon(epsilon: float | None) -> str:
    return "no ε bound" if epsilon is None else f"ε = {epsilon:.3g}"
