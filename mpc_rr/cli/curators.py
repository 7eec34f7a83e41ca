"""``mpc-rr randomize`` and ``mpc-rr estimate``: for whoever holds a file, and for who gets it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.cli.app import JsonOption, Verbose, app
from mpc_rr.cli.console import messages, note, plain_errors, print_json
from mpc_rr.curator.codebook import codebook_place
from mpc_rr.curator.estimates import RandomizedFile, document, read_randomized
from mpc_rr.curator.plan import Wishes, read_plan, with_defaults
from mpc_rr.curator.randomizing import (
    Randomized,
    check_places,
    frame_of,
    header_of,
    randomize_records,
)
from mpc_rr.errors import InputError, quoted
from mpc_rr.estimation.estimates import QueryAnswer
from mpc_rr.publication.parts import LEVEL, Table
from mpc_rr.show.curator import show_estimates, show_randomized, show_tables
from mpc_rr.study.frames import records_from_frame, schema_from_frame, unsuitable_columns
from mpc_rr.study.records import read_csv

CodebookOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.json", help="The codebook; beside the file if not given."),
]


@app.command()
def randomize(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Records with a header line.")],
    out: Annotated[Path, typer.Option(metavar="OUT.csv", help="The randomized file to write.")],
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="PLAN.toml",
            help="Categories and ranges (as in a study file), and a way for each column.",
        ),
    ] = None,
    keep: Annotated[
        float | None, typer.Option("--lambda", help="Keep each category with this probability.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Or: protect each by this share of the largest entropy.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Or: let all columns of categories spend this together.")
    ] = None,
    codebook: CodebookOption = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave the rows in their order, which may tell.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="For tries only: anyone who knows the seed gets the true values back."),
    ] = None,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Randomize a file that you hold, before others see it (PRAM, λ-randomization, noise).

    Writes the randomized file and a codebook that says exactly how it was made: with both, and
    without you, mpc-rr estimate tells shares, tables and means. Columns that are not asked for are
    left out. See docs/randomize.md.

    Example:  mpc-rr randomize patients.csv --beta 0.6 --out patients.randomized.csv
    """
    with plain_errors(verbose):
        beside = codebook_place(out) if codebook is None else codebook
        check_places(out, beside)
        if seed is not None:
            note(
                "drawn from a seed: for tries only; anyone who knows it gets the true values back."
            )
        with messages().status("randomizing"):
            made = _randomized(file, plan, (keep, beta, epsilon), keep_order, seed)
        made.save(out, beside)
        if as_json:
            print_json({
                "out": str(out),
                "codebook": str(beside),
                "comparison": msgspec.to_builtins(made.comparison),
            })  # fmt: skip
            return
        show_randomized(Console(), made.codebook, made.comparison)
        typer.echo(f"{out} holds {made.codebook.rows:,} randomized records; {beside} says how")


def _randomized(
    file: Path,
    plan: Path | None,
    wished: tuple[float | None, float | None, float | None],
    keep_order: bool,
    seed: int | None,
) -> Randomized:
    header = header_of(file)
    categories: Literal["given", "the records"]
    if plan is None:
        frame = frame_of(file)
        unfit = unsuitable_columns(frame)
        for name, why in unfit.items():
            note(f"column {quoted(name)} is left out: {why}.")
        kept = [name for name in header if name not in unfit]
        if len(kept) < 2:
            raise InputError(f"{file}: two columns are needed that can be randomized")
        schema, wishes = schema_from_frame(frame, attributes=kept), Wishes()
        categories = "the records"
        records = records_from_frame(frame, schema)
    else:
        (schema, wishes), categories = read_plan(plan), "given"
        records = np.array(read_csv(file, schema), dtype=np.int64)
    return randomize_records(
        records,
        schema,
        with_defaults(wishes, *wished),
        categories=categories,
        left_out=tuple(name for name in header if name not in schema.names),
        beside=None if plan is None else plan.parent,
        keep_order=keep_order,
        seed=seed,
    )


@app.command()
def estimate(
    file: Annotated[
        Path, typer.Argument(metavar="OUT.csv", help="A file that mpc-rr randomize wrote.")
    ],
    codebook: CodebookOption = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="A+B", help="Also the table of these columns: sex+smokes."),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Only how many meet this (docs/query.md), and the tables that are named.",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence of the limits of --query.")] = LEVEL,
    as_json: JsonOption = False,
    verbose: Verbose = False,
) -> None:
    """Say what a randomized file tells: shares, tables, means and correlations, with errors.

    Reads the file and its codebook, and nothing else.

    Example:  mpc-rr estimate patients.randomized.csv --table sex+smokes
    """
    with plain_errors(verbose):
        found = read_randomized(file, codebook)
        if found.changed:
            note(
                f"{file} is not as it was written with this codebook: what was changed since is "
                "taken for randomized values"
            )
        tables = [found.table(*_names(names)) for names in table or ()]
        if query is not None:
            _show_query(found, found.query(query, _checked(level)), level, tables, as_json)
        elif as_json:
            shown: dict[str, Any] = msgspec.to_builtins(document(found, tables))
            print_json(shown)
        else:
            show_estimates(Console(), found, tables)


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not {level}")
    return level


def _show_query(
    found: RandomizedFile,
    answer: QueryAnswer,
    level: float,
    tables: Sequence[Table],
    as_json: bool,
) -> None:
    """How many meet a condition, and the tables that were asked for beside it."""
    if as_json:
        beside = {"tables": [msgspec.to_builtins(table) for table in tables]} if tables else {}
        print_json(msgspec.to_builtins(answer) | beside)
        return
    low, high = answer.population
    Console().print(
        escape(
            f"{answer.share:.2%} of the population meet it ({100 * level:g} %: {low:.2%} "
            f"to {high:.2%}); of these {found.n:,} records about {answer.count:,.0f} "
            f"({answer.interval[0]:,.0f} to {answer.interval[1]:,.0f})"
        ),
        highlight=False,
    )
    show_tables(Console(), found, tables)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split("+")]
