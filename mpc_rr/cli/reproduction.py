"""``mpc-rr reproduce`` and ``mpc-rr data``: the papers' tables and figures, and their data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mpc_rr.cli.app import JsonOption, OutOption, Verbose, app
from mpc_rr.cli.console import plain_errors, print_json, progress_bar
from mpc_rr.errors import InputError
from mpc_rr.reproduce import REPRODUCTIONS, SEED, reproduce
from mpc_rr.reproduce.adult import download_adult
from mpc_rr.reproduce.plots import png
from mpc_rr.results.folder import check_folder, write_folder
from mpc_rr.show.planning import show_reproduction


@app.command("reproduce")
def reproduce_command(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(REPRODUCTIONS)}.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="The Adult data as CSV, or for rrba-table5, 6 and fig7 a network (.bif)."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="How often to repeat the experiment; each has its default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = SEED,
    out: OutOption = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Recompute a table or figure from the papers and compare it with the published one.

    Says of each of the paper's claims whether it holds, does not hold, or cannot be told from these
    runs. With --out, also writes the numbers and the verdicts as CSV, and a chart.

    Example:  mpc-rr reproduce mdrr-table1 --data adult.csv --out table1
    """
    with plain_errors(verbose):
        if out is not None:
            check_folder(out)
        with progress_bar(name) as progress:
            found = reproduce(name, data, runs=runs, seed=seed, progress=progress)
        if out is not None:
            picture = png(found.chart, found.title)
            claims = {f"{name}-claims.csv": found.claims_csv()}
            write_folder({f"{name}.csv": found.csv(), f"{name}.png": picture, **claims}, out)
        if as_json:
            print_json(found.document())
        else:
            show_reproduction(Console(), found)


@app.command("data")
def data_command(
    name: Annotated[str, typer.Argument(metavar="adult", help="Which data set: adult.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")] = Path("adult.csv"),
    verbose: Verbose = False,
) -> None:
    """Download the data set that the papers use, check it, and write it as CSV."""
    with plain_errors(verbose):
        if name != "adult":
            raise InputError(f"there is no data set {name!r}; known: adult")
        with progress_bar("downloading") as progress:
            download_adult(out, progress)
        typer.echo(f"{out} holds the Adult data; use it with --data {out}")
