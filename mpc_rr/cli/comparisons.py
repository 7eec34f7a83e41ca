"""``mpc-rr compare``: the protocols side by side on a file of one's own."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from mpc_rr.cli.app import JsonOption, Verbose, app
from mpc_rr.cli.console import plain_errors, print_json, progress_bar
from mpc_rr.comparing.comparing import EPSILON, SEED, Effort, compare, compare_records
from mpc_rr.comparing.side_by_side import SideBySide
from mpc_rr.curator.randomizing import frame_of
from mpc_rr.reproduce.plots import png
from mpc_rr.results.folder import check_folder, write_folder
from mpc_rr.show.comparing import lines_over_coverages, show_side_by_side, side_by_side_page
from mpc_rr.study.file import load_scenario
from mpc_rr.study.records import read_csv

PAGE, ROWS, PICTURE = "compare.html", "compare.csv", "queries.png"


@app.command("compare")
def compare_command(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Records with a header line.")],
    epsilon: Annotated[
        list[float] | None,
        typer.Option(
            "--epsilon",
            help=f"The privacy budget of a whole record ({EPSILON:g}); several may be given.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="STUDY.toml", help="Questions of a study; drafted from the file if not given."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Also how many meet this (docs/query.md)."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare this and no others: independent, views, …"),
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="How many people answer (all of the file, at most 10,000).")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="How often all answer again (10 to 3, by attributes).")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = SEED,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write a page with charts, and all rows as CSV."),
    ] = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Set the protocols side by side on your own records, at equal ε, before you choose one.

    Everyone in the file answers by each protocol, and what would be published is compared with
    the truth: tables of two, three and four answers, random count queries, and your own
    conditions. See docs/compare.md.

    Example:  mpc-rr compare survey.csv --epsilon 2 --epsilon 4 --where "age < 30 and sex = F"
    """
    with plain_errors(verbose):
        if out is not None:
            check_folder(out)
        with progress_bar("Everyone answers by each protocol") as bar:
            effort = Effort(people, runs, seed, None, bar, tuple(only or ()))
            found = _compared(file, schema, epsilon or [EPSILON], where or [], effort)
        if out is not None:
            _write(found, file.name, out)
        if as_json:
            print_json(found.document())
        else:
            show_side_by_side(Console(), found)
            if out is not None:
                typer.echo(f"{out / PAGE} has charts, {out / ROWS} all rows")


def _compared(
    file: Path, schema: Path | None, epsilons: list[float], where: list[str], effort: Effort
) -> SideBySide:
    """With the questions of a study, or of the file's columns."""
    if schema is not None:
        asked = load_scenario(schema).study.schema
        records = np.array(read_csv(file, asked), dtype=np.int64)
        return compare_records(records, asked, epsilons, where, effort)
    return compare(
        frame_of(file), epsilons, where=where, people=effort.people, only=effort.only,
        runs=effort.runs, seed=effort.seed, processes=effort.processes, progress=effort.progress,
    )  # fmt: skip


def _write(found: SideBySide, source: str, out: Path) -> None:
    picture = png(lines_over_coverages(found), "Pair queries: median relative error")
    page = side_by_side_page(found, source, PICTURE)
    write_folder({PAGE: page, ROWS: found.csv(), PICTURE: picture}, out)
