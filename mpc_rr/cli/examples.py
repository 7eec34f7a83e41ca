"""Command: examples, the studies that come with the package."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from mpc_rr.cli.app import JsonOption, Verbose, app
from mpc_rr.cli.console import plain_errors, print_json
from mpc_rr.errors import InputError, listing
from mpc_rr.study.examples import example
from mpc_rr.study.examples import examples as all_examples


@app.command()
def examples(
    name: Annotated[str | None, typer.Argument(help="One of them, to see its study file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Copy its files into this folder, to change them there.")
    ] = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """List the studies that come with mpc-rr, show one, or copy it.

    Each runs by its name:  mpc-rr run quickstart
    """
    with plain_errors(verbose):
        if name is None:
            if out is not None:
                raise InputError("--out copies one example: name it before --out")
            _list(as_json=as_json)
        elif out is None:
            found = example(name)
            if as_json:
                print_json({"name": found.name, "file": str(found.path), "text": found.text})
            else:
                typer.echo(found.text, nl=False)
        else:
            copied = example(name).copy(out)
            if as_json:
                print_json({"copied": [str(path) for path in copied]})
            else:
                typer.echo(f"copied: {listing(map(str, copied))}")
                typer.echo(f"run it: mpc-rr run {copied[0]}")


def _list(*, as_json: bool) -> None:
    found = all_examples().values()
    if as_json:
        print_json([{"name": e.name, "protocol": e.protocol, "what": e.sentence} for e in found])
        return
    console = Console()
    for one in found:
        needs = "" if one.has_data else ", needs --data"
        console.print(f"[bold]{one.name}[/]  ({one.protocol}{needs})", highlight=False)
        console.print(Padding(escape(one.sentence), (0, 0, 0, 4)), highlight=False)
    typer.echo("\nRun one:   mpc-rr run quickstart")
    typer.echo("Copy one:  mpc-rr examples quickstart --out my-study")
