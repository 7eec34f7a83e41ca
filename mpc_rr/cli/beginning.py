"""``mpc-rr init`` and ``mpc-rr schema``: a study from a file with the answers of some people."""

import contextlib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from mpc_rr.agents.whole_files import write_whole
from mpc_rr.cli.app import PluginOption, Verbose, app
from mpc_rr.cli.console import at_terminal, messages, note, plain_errors, progress_bar
from mpc_rr.errors import DataError, Declined, InputError, ResultsError, plain, quoted
from mpc_rr.estimation.planning import LARGEST_TOTAL
from mpc_rr.planning.crowds import Effort
from mpc_rr.planning.designs import WITHOUT_TABLES, setting_of
from mpc_rr.planning.plans import plan
from mpc_rr.planning.trust import noise_in_sum
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.registry import kind_of
from mpc_rr.schema import Schema
from mpc_rr.show.planning import advice, toml_lines
from mpc_rr.show.study import scenario_facts, show_prospects
from mpc_rr.show.wrapping import wrapped
from mpc_rr.study.drafting import Asker, Assumed, Draft, draft, draft_schema
from mpc_rr.study.file import load_scenario, schema_of_tables
from mpc_rr.study.layout import DELIMITER_WORDS, DELIMITERS, ENCODING_WORDS, Sheet, found_in

USUAL_EPSILON = 2.0
FEWEST_PARTIES = 3
FEWEST_SHARE = 0.8
"""With so large a share of its people a study goes on, unless its file says otherwise."""
QUICK = Effort(populations=2, people=2_000)
"""A plan for a first draft; mpc-rr plan takes more time."""
EXACT, RANDOMIZED, NOISY = "exact_pairs", "randomized", "noisy"
WAYS = {
    RANDOMIZED: "Each person randomizes the answers before they leave. Nobody is trusted; results "
    "are estimates, with limits that say how sure they are.",
    EXACT: "Exact totals: only sums over all people are seen. No error and no ε; a count of 1 can "
    "identify someone.",
    NOISY: "Totals with noise that all people add together: ε holds as long as not too many "
    "collude. All must be online at the same time.",
}


PEOPLE = """# As many people as the file has records, so that mpc-rr run can try it. Change both
# numbers to what you will ask for, and to with how few the study still goes on.
"""
HERE_ALONE = """# For mpc-rr run alone. Leave it out of the copies that you hand out: respondents
# do not need it, and the file's digest is the same without.
"""


@app.command()
def schema(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Records with a header line.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the draft to this file instead of the terminal.")
    ] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Ask many numbers as they are, not by bins.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Draft only the schema of a study from a CSV file; mpc-rr init makes the whole study.

    It asks nothing, and says in comments what it assumed. Columns that identify people are left
    out.
    """
    with plain_errors(verbose):
        drafted = draft_schema(file, numbers=numbers)
        if out is None:
            typer.echo(drafted, nl=False)
            return
        _check_new(out)
        _write(out, drafted)
        typer.echo(f"{out} holds a draft; look at every line before you use it")


@app.command()
def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.csv", help="Answers of some people, with a header line.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="STUDY.toml", help="The study file; FILE.toml if not given."),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Ask nothing: take what is usual, and say what was assumed."),
    ] = False,
    title: Annotated[str | None, typer.Option(help="What people read first.")] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The protocol, instead of the planner's; docs/choosing.md says which there are.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy budget of each record, for all its answers.")
    ] = None,
    confidential: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Where records are published (collaborative_…): a column whose values must stay "
            "apart from the others. May be given several times.",
        ),
    ] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Make a complete study from a CSV file with the answers of some people.

    It finds out how the file is written (separator, encoding, decimal sign), what can be asked,
    what means "no answer" and what identifies people, asks what it cannot know, recommends a
    protocol, and writes a study file that check accepts and run runs with the file.

    Example:  mpc-rr init people.csv --out study.toml
    """
    with plain_errors(verbose, plugin):
        target = file.with_suffix(".toml") if out is None else out
        _check_new(target)
        asker = _asker(yes)
        _check_budget(epsilon)
        kind = None if protocol is None else kind_of(protocol)
        sheet = _confirmed(file, found_in(file), asker)
        as_numbers = kind is not None and kind.publishes_values
        drafted = draft(file, sheet, asker, as_numbers=as_numbers)
        asked = _schema(drafted)
        if title is None:
            usual = file.stem.replace("_", " ").replace("-", " ").capitalize()
            title = asker.text(
                "The title of the study", usual=usual, assumed=f"the title is {quoted(usual)}"
            )
        made = _Protocol(asked, drafted, asker, kind, epsilon, confidential or [])
        text = _study_text(drafted, title, made.lines(), target)
        _try_out(target, text)
        _tell(asker, drafted, made, target)


# ── Who is asked ───────────────────────────────────────────────────────────────────────────────


class AtTerminal:
    """The person at the terminal."""

    def yes(self, question: str, *, usual: bool, assumed: str) -> bool:  # noqa: ARG002
        """Yes or no."""
        return bool(self._asked(lambda: typer.confirm(_shown(question), usual, err=True)))

    def text(self, question: str, *, usual: str, assumed: str) -> str:  # noqa: ARG002
        """Some words; Enter takes the usual ones."""
        return str(
            self._asked(
                lambda: typer.prompt(_shown(question), usual, err=True, show_default=bool(usual))
            )
        ).strip()

    def choice(
        self,
        question: str,
        options: Sequence[str],
        *,
        usual: int,
        assumed: str,  # noqa: ARG002
    ) -> int:
        """One of several, by its number."""
        console = messages()
        console.print(escape(_shown(question)), highlight=False)
        for number, option in enumerate(options, start=1):
            lines = wrapped(option, console.width - 5).split("\n")
            console.print(escape(f"  {number}  " + "\n     ".join(lines)), highlight=False)
        while True:
            said = self.text("Number", usual=str(usual + 1), assumed="")
            if said in {str(number + 1) for number in range(len(options))}:
                return int(said) - 1
            self.tell(f"a number from 1 to {len(options)}, please")

    def tell(self, warning: str) -> None:
        """A warning, at once."""
        _warn(warning)

    @staticmethod
    def _asked(ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except typer.Abort:
            messages().print()
            raise Declined("you stopped; nothing was written") from None


def _shown(question: str) -> str:
    return wrapped(plain(question), max(messages().width - 2, 40))


def _asker(yes: bool) -> Asker:
    if yes:
        return Assumed()
    if not at_terminal():
        raise InputError(
            "nobody can be asked here what the file does not tell; say --yes to take what is usual "
            "(it is said), or run it at a terminal"
        )
    return AtTerminal()


def _warn(text: str) -> None:
    messages().print(f"[yellow]Warning[/]: {escape(plain(text))}", highlight=False, soft_wrap=True)


# ── The file ───────────────────────────────────────────────────────────────────────────────────


def _confirmed(file: Path, sheet: Sheet, asker: Asker) -> Sheet:
    """The sheet as it is meant: what was found out is shown, and can be put right."""
    while True:
        layout = sheet.layout
        separated, encoded = DELIMITER_WORDS[layout.delimiter], ENCODING_WORDS[layout.encoding]
        decimal = {",": "decimal comma", ".": "decimal point"}[layout.decimal]
        found = (
            f"{file.name}: {sheet.rows:,} records, {len(sheet.headers)} columns, separated by "
            f"{separated}, {encoded}, {decimal}"
        )
        if asker.yes(f"{found}. Right?", usual=True, assumed=found):
            break
        place = asker.choice(
            "What separates the columns?",
            [DELIMITER_WORDS[d] for d in DELIMITERS],
            usual=DELIMITERS.index(layout.delimiter),
            assumed="",
        )
        encodings = list(ENCODING_WORDS)
        which = asker.choice(
            "How is the text encoded?",
            list(ENCODING_WORDS.values()),
            usual=encodings.index(layout.encoding),
            assumed="",
        )
        sheet = found_in(file, delimiter=DELIMITERS[place], encoding=encodings[which])  # type: ignore[arg-type]
        sign = asker.choice(
            "What is the decimal sign?",
            ["a point: 1.5", "a comma: 1,5"],
            usual=int(sheet.layout.decimal == ","),
            assumed="",
        )
        sheet = _with_decimal(sheet, ".,"[sign])
    return _numbers_read(sheet, asker)


def _with_decimal(sheet: Sheet, decimal: str) -> Sheet:
    if decimal == sheet.layout.decimal:
        return sheet
    layout = msgspec.structs.replace(sheet.layout, decimal=decimal, thousands="")
    return Sheet(layout, sheet.headers, sheet.columns, sheet.unsure)


def _numbers_read(sheet: Sheet, asker: Asker) -> Sheet:
    """Where 1.234 may be a thousand or one and a bit, whoever drafts must say."""
    if not sheet.unsure:
        return sheet
    cell = sheet.unsure
    sign = next(c for c in cell if c in ".,")
    layout = sheet.layout
    thousands = layout.thousands == sign
    read = cell.replace(sign, "") if thousands else cell.replace(sign, ".")
    if asker.yes(
        f"Numbers such as {quoted(cell)} can be read in two ways. Is it {read}?",
        usual=True,
        assumed=f"{quoted(cell)} is {read}",
    ):
        return sheet
    other = {",": ".", ".": ","}[sign]
    changed = (
        {"decimal": sign, "thousands": ""} if thousands else {"decimal": other, "thousands": sign}
    )
    return Sheet(msgspec.structs.replace(layout, **changed), sheet.headers, sheet.columns)


def _schema(drafted: Draft) -> Schema:
    """The schema that was drafted; at least two questions are needed."""
    if len(drafted.asked) < 2:
        why = "; ".join(f"{quoted(name)}: {why}" for name, why in drafted.left_out.items())
        raise DataError(
            f"{drafted.file}: a study asks at least two questions, and only one column is left "
            f"({why or 'the file has no other'})"
        )
    if drafted.sheet.rows < FEWEST_PARTIES:
        raise DataError(
            f"{drafted.file}: {drafted.sheet.rows} records are too few: at least {FEWEST_PARTIES} "
            "people are needed for a study"
        )
    schema = schema_of_tables(tomllib.loads(drafted.schema_text())["schema"])
    schema.check_words()
    return schema


# ── The protocol ───────────────────────────────────────────────────────────────────────────────


def _check_budget(epsilon: float | None) -> None:
    if epsilon is not None and not 0 < epsilon <= LARGEST_TOTAL:
        raise InputError(
            f"--epsilon must be positive and at most {LARGEST_TOTAL:g}, not {epsilon:g}"
        )


@dataclass
class _Protocol:
    """The protocol of a new study, and why it is this one."""

    schema: Schema
    drafted: Draft
    asker: Asker
    kind: type[StudyProtocol] | None
    epsilon: float | None
    confidential: Sequence[str]
    reasons: list[str] = field(default_factory=list)

    def lines(self) -> str:
        """The ``[protocol]`` table of the study file."""
        options = self._named() if self.kind is not None else self._recommended()
        lines = [line for name, value in options.items() for line in toml_lines(name, value)]
        return "[protocol]\n" + "\n".join(lines) + "\n"

    @property
    def _people(self) -> int:
        return max(self.drafted.sheet.rows, 2)

    def _named(self) -> Mapping[str, object]:
        """That which was asked for, with the options that it needs."""
        assert self.kind is not None
        name = str(self.kind.__struct_config__.tag)
        options: dict[str, object] = {"name": name}
        fields = self.kind.__struct_fields__
        if self.kind.publishes_values:
            return options | self._records_options(fields)
        if name == EXACT:
            return options if self.epsilon is None else self._noisy(self.epsilon)
        if "epsilon" in fields:
            options["epsilon"] = self._budget()
        elif "p" in fields:  # by blocks: what the planner would ask for
            found = plan(self.schema, self._people, self._budget(), effort=QUICK)
            blocks = next((o.design.options for o in found.outlooks if o.name == "blocks"), None)
            if blocks is None:
                raise InputError(f"no {name} at this budget: {found.refused.get('blocks', '')}")
            options |= dict(blocks)
        if name == "rr_clusters":
            half = self._budget() / 2
            options |= {
                "epsilon": half,
                "dependence": {"name": "rr_each_attribute", "epsilon": half},
            }
        return options

    def _records_options(self, fields: Sequence[str]) -> dict[str, object]:
        """What must stay confidential, where records are published."""
        names = list(self.schema.names)
        by_header = {asked.header: asked.name for asked in self.drafted.asked}
        chosen = [by_header.get(column, column) for column in self.confidential]
        stray = [name for name in chosen if name not in names]
        if stray:
            raise InputError(
                f"--confidential: there is no column {quoted(stray[0])} among those that are asked"
            )
        if not chosen:
            usual = names[-1]
            said = self.asker.text(
                f"Whose values must stay apart from the other answers? Of {', '.join(names)}, "
                "with commas between several",
                usual=usual,
                assumed=f"only {quoted(usual)} is confidential",
            )
            chosen = [name.strip() for name in said.split(",")]
            if not set(chosen) <= set(names):
                raise InputError(f"these are not all among the columns: {', '.join(chosen)}")
        others = [name for name in names if name not in chosen]
        if "quasi_identifiers" in fields:
            return {"k": 5, "quasi_identifiers": others, "confidential": chosen}
        return {"confidential": chosen, "open": others}

    def _budget(self) -> float:
        while self.epsilon is None:
            said = self.asker.text(
                "The privacy budget ε of each person, for all answers together (1 is strong, 2 "
                "usual, 4 weak)",
                usual=f"{USUAL_EPSILON:g}",
                assumed=f"each person spends ε = {USUAL_EPSILON:g} for all answers together",
            )
            with contextlib.suppress(ValueError):
                number = float(said.replace(",", "."))
                if 0 < number <= LARGEST_TOTAL:
                    self.epsilon = number
                    break
            self.asker.tell(f"a positive number, at most {LARGEST_TOTAL:g}")
        return self.epsilon

    def _recommended(self) -> Mapping[str, object]:
        """That which the planner takes, after one question that it cannot answer."""
        ways = list(WAYS)
        way = ways[
            self.asker.choice(
                "How shall answers be protected?",
                list(WAYS.values()),
                usual=0,
                assumed="each person randomizes the answers, so that nobody need be trusted",
            )
        ]
        if way == EXACT:
            return {"name": EXACT}
        if way == NOISY:
            return self._noisy(self._budget())
        epsilon = self._budget()
        with progress_bar("Trying out designs") as bar:
            effort = Effort(QUICK.populations, QUICK.people, progress=bar)
            found = plan(self.schema, self._people, epsilon, effort=effort)
        self.reasons = [*advice(found)]
        without = found.recommended.name in WITHOUT_TABLES
        best = found.tables if without else found.recommended
        if best is not found.recommended:
            self.reasons.append(
                f"The file asks for tables by {best.name}, the simplest design whose predicted "
                "error is within 5 % of the smallest among those that publish tables."
            )
        assert best.design.options is not None
        return best.design.options

    def _noisy(self, epsilon: float) -> dict[str, object]:
        """Exact counts with the smaller of both noises."""
        found = noise_in_sum(setting_of(self.schema, self._people), epsilon)
        deviation = found.noise.standard_deviation(self._people)
        self.reasons = [f"Noise of standard deviation {deviation:.3g} will be in every count."]
        options = msgspec.to_builtins(found.protocol)
        return {name: value for name, value in options.items() if value is not None}


INSTEAD_OF_RANDOM = (
    "What would tell more: fewer questions (leave columns out of the file), or --protocol "
    f"{EXACT}, which publishes exact totals (no ε bounds what they tell of one person), and with "
    "--epsilon totals with noise."
)


# ── The study file ─────────────────────────────────────────────────────────────────────────────


def _study_text(drafted: Draft, title: str, protocol: str, target: Path) -> str:
    """The whole file."""
    count = drafted.sheet.rows
    fewest = max(FEWEST_PARTIES, round(FEWEST_SHARE * count))
    csv = Path(os.path.relpath(drafted.file, target.parent)).as_posix()
    parts = [
        f"title = {_toml_text(title)}\n",
        drafted.schema_text(),
        protocol,
        f"{PEOPLE}[parties]\ncount = {count}\nminimum = {min(fewest, count)}\n",
        f"{HERE_ALONE}{drafted.data_text(csv)}",
    ]
    return "\n".join(parts)


def _toml_text(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _try_out(target: Path, text: str) -> None:
    """Write the file, but only if it can be checked and its records can be read."""
    beside = target.with_name(f".{target.name}.draft")
    try:
        _write(beside, text)
        scenario = load_scenario(beside)
        scenario.records()
        write_whole(target, text.encode(), public=True)
    except InputError as error:
        told = str(error).replace(f"{beside}: ", "")
        raise InputError(f"no study can be made of it: {told}; nothing was written") from None
    finally:
        beside.unlink(missing_ok=True)


def _tell(asker: Asker, drafted: Draft, made: _Protocol, target: Path) -> None:
    """What was made, what was assumed, and what to do next."""
    console = Console()
    scenario = load_scenario(target)
    study = scenario.study

    def said(text: str) -> None:
        console.print(escape(wrapped(plain(text), console.width)), highlight=False)

    if isinstance(asker, Assumed):
        for text in asker.said:
            said(f"Assumed: {text}.")
        for text in asker.warnings:
            _warn(text)
    for header, why in drafted.left_out.items():
        said(f"Left out: {quoted(header)}, {why}.")
    for reason in made.reasons:
        said(reason)
    said(f"{target}: {len(study.schema.names)} questions, protocol {study.protocol.name}.")
    facts = scenario_facts(scenario, study.parties.count)
    said(f"Privacy: {facts['privacy']}")
    show_prospects(console, facts.get("warnings", ()))
    kinds = {found.kind for found in study.protocol.prospects(study.setting)}
    if "randomness" in kinds and study.protocol.name != EXACT:
        said(INSTEAD_OF_RANDOM)
    note(
        "categories and limits stand in the study file, which all respondents see; look at every "
        "line of it"
    )
    said(f"Next:  mpc-rr check {target}")
    said(f"       mpc-rr run {target} --transport memory")


def _check_new(out: Path) -> None:
    if out.exists():
        raise InputError(f"{out} exists already; name another file with --out")


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ResultsError(f"cannot write {out}: {error.strerror}") from None
