"""Command of those who hold a finished run in groups: release it another way."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from mpc_rr.cli.app import JsonOption, PluginOption, Verbose, app
from mpc_rr.cli.console import messages, plain_errors, print_json
from mpc_rr.cli.runs import RunFolder
from mpc_rr.results.releasing import Measured, release_again


@app.command("release")
def release_command(
    run: RunFolder,
    kinds: Annotated[
        list[str],
        typer.Option(
            "--as",
            metavar="KIND",
            help="microaggregated, generalized, anatomy or permuted; may be given several times.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; must not exist yet.")],
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Release a finished study in groups in further ways, and say what all tell together.

    Nobody is asked anything: all releases follow from the transcript. They are refused if a group
    has fewer records than the k that was promised.
    """
    with plain_errors(verbose, plugin):
        with messages().status("replaying the transcript"):
            found = release_again(run, kinds, out)
        if as_json:
            print_json({"releases": [asdict(measured) for measured in found]})
            return
        _show(Console(), found)
        typer.echo(f"The further releases are in {out}")


def _show(console: Console, found: list[Measured]) -> None:
    table = Table()
    for heading in ("release", "k", "variation lost", "record found, average", "highest"):
        table.add_column(heading, justify="left" if heading == "release" else "right")
    *single, together = found
    for measured in (*single, *([together] if len(single) > 1 else ())):
        several = len(measured.releases) > 1
        name = "all together" if several else measured.releases[0]
        lost = "–" if measured.lost is None else f"{measured.lost:.1%}"
        linked = measured.linkage
        table.add_row(name, str(measured.k), lost, f"{linked.average:.1%}", f"{linked.highest:.1%}")
    console.print(table)
    console.print(
        "Record found: by anyone who knows a person's quasi-identifiers and has these releases, "
        "but not groups.csv. The first is the study's own. Releases made before count as well: "
        "name them again with --as.",
        highlight=False,
    )
