"""Commands on a result folder: query, compute, synthesize, verify, report."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mpc_rr.cli.app import JsonOption, LanguageOption, PluginOption, Verbose, app
from mpc_rr.cli.console import messages, note, plain_errors, print_json
from mpc_rr.errors import InputError, ResultsError, plain
from mpc_rr.estimation.expressions import parse_expression
from mpc_rr.publication.parts import LEVEL
from mpc_rr.publication.reports import decoded
from mpc_rr.publication.sheets import csv_text
from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness
from mpc_rr.results.asking import ask, read_computable, read_weights, synthetic
from mpc_rr.results.claims import Claim, Contradicted, Judgement
from mpc_rr.results.export import export
from mpc_rr.results.folder import check_folder
from mpc_rr.results.verification import claims_of, publish_anew
from mpc_rr.show.answers import answer_lines
from mpc_rr.show.computed import computed_lines
from mpc_rr.show.report import report

HANGING = "    "
COLOURS: dict[Judgement, str] = {
    "confirmed": "green", "not confirmable": "yellow", "contradicted": "bold red",
}  # fmt: skip
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The result folder of a study.")]


@app.command()
def query(
    run: RunFolder,
    condition: Annotated[
        str,
        typer.Argument(
            help="=, !=, <, <=, >, >=, in (a, b), is missing, and, or, not, parentheses; quotation "
            "marks around names and values with spaces or signs are never wrong."
        ),
    ],
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = LEVEL,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Say how many respondents meet a condition, how sure that is, and where it comes from.

    Every result folder can be asked. A published number is given as it was published; docs/query.md
    has the grammar, and what each kind of folder can tell.

    Example:  mpc-rr query results/health-at-work 'smokes = yes and not (age < 30 or health = poor)'
    """
    with plain_errors(verbose, plugin):
        answer = ask(run, condition, level)
        if as_json:
            print_json(asdict(answer))
            return
        for line in answer_lines(answer):
            Console().print(escape(plain(line)), highlight=False)


@app.command("compute")
def compute_command(
    run: RunFolder,
    expressions: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPRESSION…",
            help="mean(age), variance(…), standard_deviation(…), median(…), quantile(age, 0.9), "
            "covariance(a, b), correlation(a, b), share(CONDITION), table(a, b, c), "
            "linear(OUTCOME, PREDICTOR, …), logistic(CONDITION, PREDICTOR, …); in place of an "
            "attribute score(age, young = 20, …), midpoints(age), categories(place).",
        ),
    ],
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="For each answer to this question.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Only of those who meet it.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Sampling weights of the parties.")
    ] = None,
    party: Annotated[
        str, typer.Option("--id", metavar="COLUMN", help="Its column of parties' names.")
    ] = "party",
    weight: Annotated[
        str, typer.Option(metavar="COLUMN", help="Its column of weights.")
    ] = "weight",
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = LEVEL,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Compute statistics of the pooled answers, each with its error and interval.

    Means, variances, quantiles, covariances, correlations, shares, tables, linear and logistic
    regressions, of answers by their order or by any score of your own. What a folder cannot tell is
    refused, and says why; docs/compute.md has the language.

    Example:  mpc-rr compute results/health-at-work 'mean(stress)' 'share(smokes = yes)' --by age
    """
    with plain_errors(verbose, plugin):
        known = None if weights is None else read_weights(weights, party, weight)
        told = read_computable(run, known)
        found = [
            told.compute(one, by=by, where=where, level=level)
            for one in map(parse_expression, expressions)
        ]
        if as_json:
            print_json([asdict(one) for one in found])
            return
        for number, one in enumerate(found):
            for line in [""] * bool(number) + computed_lines(one):
                Console().print(escape(plain(line)), highlight=False, soft_wrap=True)


@app.command()
def synthesize(
    run: RunFolder,
    rows: Annotated[int, typer.Option(help="How many synthetic records.")],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")],
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same people.")] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Generate synthetic records that follow the estimated joint distribution.

    They are drawn from a model that is estimated from the randomized answers (by blocks, from a
    tree of its tables), and tell no more of anyone than those do. A row may equal someone's
    record by chance.
    """
    with plain_errors(verbose, plugin):
        if out.exists():
            raise InputError(f"{out} exists already; name another file with --out")
        rng: Randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
        with messages().status("fitting a model to the answers"):
            schema, codes = synthetic(run, rows, rng.uniform)
            people = decoded(codes, schema)
        try:
            out.write_text(csv_text([list(schema.names), *people]), encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"cannot write {out}: {error.strerror}") from None
        typer.echo(f"{out} holds {rows:,} synthetic records")


@app.command("verify")
def verify_command(
    run: RunFolder,
    receipt: Annotated[
        Path | None,
        typer.Option(help="Your own receipt.jsonl (mpc-rr party --out): is your answer there?"),
    ] = None,
    withdrawals: Annotated[
        Path | None,
        typer.Option(help="The registrar's list of withdrawn admissions: did one of them count?"),
    ] = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Check a result folder against its transcript: signatures, sums, clusters, estimates.

    Needs no network and no secret. Each line is something the folder says: confirmed, not
    confirmable (then why, and what would change that), or contradicted. Exit code 1 if anything is
    contradicted. Whether its own answer is in it, a party can see with its receipt.
    """
    with plain_errors(verbose, plugin):
        with messages().status("replaying the transcript"):
            claims = claims_of(run, receipt, withdrawals)
        holds = all(claim.verdict != "contradicted" for claim in claims)
        if as_json:
            print_json({"holds": holds, "claims": [msgspec.to_builtins(claim) for claim in claims]})
        else:
            _show_claims(Console(), claims)
        if not holds:
            raise Contradicted(claims)


def _show_claims(console: Console, claims: tuple[Claim, ...]) -> None:
    """One line each; on a terminal, what does not fit is indented: no claim begins there."""
    for claim in claims:
        said = Text(str(claim))
        said.stylize(COLOURS[claim.verdict], 0, len(claim.verdict))
        if console.is_terminal and said.cell_len > console.width:
            first, *rest = said.wrap(console, max(console.width - len(HANGING), 20))
            lines = [first, *(Text(HANGING) + line for line in rest)]
        else:
            lines = [said]
        for line in lines:
            console.print(line, soft_wrap=True)


@app.command("report")
def report_command(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file to write; RUN/report.html if not given.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="In a simulation: the true records as CSV, drawn beside the estimates."),
    ] = None,
    language: LanguageOption = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Write one HTML file about a finished study: who took part, what it cost, what it found."""
    with plain_errors(verbose, plugin):
        place = run / "report.html" if out is None else out
        if place.exists():
            raise InputError(f"{place} exists already; name another file with --out")
        with messages().status("drawing"):
            text = report(run, truth, language)
        try:
            place.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"cannot write {place}: {error.strerror}") from None
        typer.echo(f"{place} opens in any browser, offline")


@app.command("export")
def export_command(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder to write; must not exist yet.")],
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Also as Parquet files; needs pyarrow.")
    ] = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Write what a study published for other programs: CSV with labels, a codebook, R.

    Tables with their limits, reports, randomization matrices, and a script that reads and corrects
    them in base R. The folder is taken as it stands: whether it follows from the transcript,
    mpc-rr verify says. See docs/export.md.
    """
    with plain_errors(verbose, plugin):
        with messages().status("exporting"):
            place = export(run, out, parquet=parquet)
        typer.echo(f"{place} holds what the study published; begin with {place / 'codebook.json'}")
        note(f"not verified: whether {run} follows from its transcript, mpc-rr verify {run} says")


@app.command("publish")
def publish_command(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder to write; must not exist yet.")],
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Recompute, from its transcript, what a finished study publishes.

    For a folder NAME.unfinished, whose computing was cut short, and for folders that an older
    version wrote. The transcript is checked on the way, as mpc-rr verify does.
    """
    with plain_errors(verbose, plugin):
        check_folder(out)
        with messages().status("replaying the transcript"):
            found = publish_anew(run, out)
        for told in found.notes:
            if told.incomplete:
                messages().print(f"[yellow]Warning[/]: {escape(plain(told.text))}", highlight=False)
        typer.echo(f"{out} holds what the study publishes")
