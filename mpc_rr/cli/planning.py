"""``mpc-rr schema`` and ``mpc-rr plan``: before anything is asked."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mpc_rr.cli.app import JsonOption, PluginOption, StudyFile, Verbose, app
from mpc_rr.cli.console import plain_errors, print_json
from mpc_rr.errors import InputError, ResultsError, all_quoted
from mpc_rr.estimation.planning import budget_for_error
from mpc_rr.estimation.planning import plan as plan_designs
from mpc_rr.privacy.disclosures import bounded
from mpc_rr.schema import Schema
from mpc_rr.show.planning import show_plans
from mpc_rr.study.drafting import draft_schema
from mpc_rr.study.file import load_scenario


@app.command()
def schema(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Records with a header line.")],
    out: Annotated[Path | None, typer.Option(help="Write it there instead of showing it.")] = None,
    verbose: Verbose = False,
) -> None:
    """Draft the schema of a study from a CSV file, for you to finish.

    Few different values become categories, many numbers become bins, identifiers are left out.
    """
    with plain_errors(verbose):
        draft = draft_schema(file)
        if out is None:
            typer.echo(draft, nl=False)
            return
        if out.exists():
            raise InputError(f"{out} exists already; name another file with --out")
        try:
            out.write_text(draft, encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"cannot write {out}: {error.strerror}") from None
        typer.echo(f"{out} holds a draft; look at every line before you use it")


@app.command()
def plan(
    study_file: StudyFile,
    respondents: Annotated[
        int | None, typer.Option("--n", min=2, help="Respondents; the study's number if not given.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy budget of each record, for all its answers.")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="Or the wished mean L1 error of the pair tables.")
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="Also plan RR-Clusters with these: 'age+health, car+place'."),
    ] = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Predict the error of each randomized-response design before any data is collected.

    Give either --epsilon (how much privacy may be spent) or --error (how accurate the tables of
    all pairs of attributes must be). The first line of the table is the design to prefer.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        n = study.parties.count if respondents is None else respondents
        sizes = study.schema.sizes
        numeric = [a.name for a in study.schema.attributes if a.numeric]
        if numeric:
            raise InputError(
                f"{numeric[0]!r} is a number with {sizes[study.schema.names.index(numeric[0])]:,} "
                "possible values; randomized designs need categories: give it bins"
            )
        if (epsilon is None) == (error is None):
            raise InputError("give either --epsilon or --error")
        budget = budget_for_error(sizes, n, error).epsilon if error is not None else epsilon
        assert budget is not None
        groups = _clusters(clusters, study.schema) if clusters is not None else None
        plans = plan_designs(sizes, n, budget, clusters=groups)
        if as_json:
            print_json(
                {
                    "n": n,
                    "epsilon": budget,
                    "designs": [asdict(p) | {"error": bounded(p.error)} for p in plans],
                }
            )
        else:
            show_plans(Console(), plans, n)


def _clusters(text: str, schema: Schema) -> list[tuple[int, ...]]:
    """``a+b, c``: groups of attributes; those that are not named stay alone."""
    groups = [[name.strip() for name in group.split("+")] for group in text.split(",")]
    named = [name for group in groups for name in group]
    for name in named:
        if name not in schema.names:
            raise InputError(f"there is no attribute {name!r}; they are {all_quoted(schema.names)}")
        if named.count(name) > 1:
            raise InputError(f"attribute {name!r} is in two clusters")
    groups += [[name] for name in schema.names if name not in named]
    return [tuple(sorted(schema.names.index(name) for name in group)) for group in groups]
