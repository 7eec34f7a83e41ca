"""``mpc-rr condense`` and ``plan``: before anything is asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from rich.console import Console

from mpc_rr.cli.app import JsonOption, PluginOption, StudyFile, Verbose, app
from mpc_rr.cli.console import plain_errors, print_json, progress_bar
from mpc_rr.cli.planning_hidden import (
    LEAST_PEOPLE,
    check_options,
    hides,
    plan_hidden,
    show_hidden,
)
from mpc_rr.errors import DataError, InputError, all_quoted
from mpc_rr.estimation.matrix import Codes
from mpc_rr.planning.condensing import NEAR, Condensed
from mpc_rr.planning.condensing import condense as condensed
from mpc_rr.planning.crowds import Effort, Outlook
from mpc_rr.planning.designs import BlockOptions, check_categories
from mpc_rr.planning.plans import TRUST, Known, Plan, budget_for_error
from mpc_rr.planning.plans import plan as plan_designs
from mpc_rr.planning.trust import Way, ways_to_trust
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.publication.ending import Setting
from mpc_rr.schema import Schema
from mpc_rr.show.condensing import show_condensed
from mpc_rr.show.planning import show_plan, show_ways
from mpc_rr.study.definition import Study
from mpc_rr.study.file import Scenario, load_scenario
from mpc_rr.study.records import read_csv

LEAST_PILOT = 20
WHY_SO_MANY = ": of fewer, associations between answers cannot be told"


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
        float | None, typer.Option(help="Target mean L1 error of the pair tables.")
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="Also plan clusters that you know: 'age+health, car+place'."),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Records of a pilot: errors are measured on people drawn from it.",
        ),
    ] = None,
    own_data: Annotated[
        bool, typer.Option("--own-data", help=r"Take the study's own \[data] as the pilot.")
    ] = False,
    populations: Annotated[
        int | None,
        typer.Option(
            help="Simulated populations for each strength of dependence (2 to 8; of "
            "groups or masks, in all)."
        ),
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(help="Simulated people in each, at most (50,000; of groups or masks 1,000)."),
    ] = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Try out designs before anyone is asked: how wrong would what they publish be?

    Give either --epsilon (how much privacy may be spent) or --error (how accurate the tables of
    all pairs of attributes must be). A study that hides people in groups or behind masks spends no
    ε: give --pilot or --own-data, and k or masks are set against loss and risk. See
    docs/planning.md.
    """
    with plain_errors(verbose, plugin):
        scenario = load_scenario(study_file)
        study = scenario.study
        n = study.parties.count if respondents is None else respondents
        effort = Effort(populations=populations, people=people)
        if hides(study):
            given = {"--epsilon": epsilon, "--error": error, "--clusters": clusters}
            check_options(study, given)
            records = _pilot(scenario, pilot, own_data, LEAST_PEOPLE)
            with progress_bar("Trying out") as bar:
                hidden = plan_hidden(study, records, n, replace(effort, progress=bar))
            show_hidden(hidden, as_json=as_json)
            return
        check_categories(study.schema)
        if (epsilon is None) == (error is None):
            raise InputError("give either --epsilon or --error")
        known = Known(
            clusters=None if clusters is None else _clusters(clusters, study.schema),
            blocks=_block_options(study),
            pilot=_pilot(scenario, pilot, own_data),
            study=_setting(study, n),
        )
        with progress_bar("Trying out designs") as bar:
            effort = replace(effort, progress=bar)
            if epsilon is None:
                assert error is not None
                epsilon = float(f"{budget_for_error(study.schema, n, error, known, effort):.3g}")
            found = plan_designs(study.schema, n, epsilon, known, effort)
            ways, untrusted = ways_to_trust(found)
        lobby_s, round_s = study.deadlines.lobby_s, study.deadlines.round_s
        if as_json:
            print_json(_as_json(found, ways, lobby_s, round_s))
        else:
            console = Console()
            if error is not None:
                console.print(
                    f"About the smallest ε at which some design reaches an error of {error:g} "
                    f"(middling dependence, or the pilot's): {epsilon:g}",
                    highlight=False,
                )
            show_plan(console, found)
            show_ways(console, ways, untrusted, lobby_s, round_s)


@app.command()
def condense(
    study_file: StudyFile,
    pilot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Records of a pilot, by which it is judged."),
    ] = None,
    own_data: Annotated[
        bool, typer.Option("--own-data", help=r"Take the study's own \[data] as the pilot.")
    ] = False,
    near: Annotated[
        float,
        typer.Option(
            help="An attribute follows from another that tells at least this share of its entropy."
        ),
    ] = NEAR,
    most_categories: Annotated[
        int | None,
        typer.Option(help="Join categories until no attribute has more answers than this."),
    ] = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Ask less: which attributes follow from others, which categories could be joined?

    Judged on a pilot, before anyone is asked (statistical input confidentiality, section 4).
    Prints what to change in the study file.
    """
    with plain_errors(verbose, plugin):
        scenario = load_scenario(study_file)
        check_categories(scenario.study.schema)
        records = _pilot(scenario, pilot, own_data)
        if records is None:
            raise InputError("what follows from what is judged on a pilot: give --pilot FILE.csv")
        found = condensed(scenario.study.schema, records, near, most_categories)
        if as_json:
            print_json(_condensed_as_json(found))
        else:
            show_condensed(Console(), found)


def _condensed_as_json(found: Condensed) -> dict[str, Any]:
    return {
        "pilot": found.pilot,
        "combinations": found.combinations,
        "combinations_left": found.combinations_left,
        "followed": [
            {
                "attribute": f.attribute.name, "from": f.representative.name, "values": f.values,
                "unseen": f.unseen, "people": f.people, "wrong": f.wrong,
                "wrong_at_most": f.wrong_at_most,
            }
            for f in found.followed
        ],
        "joined": [
            {"attribute": j.attribute.name, "groups": j.groups, "entropy_lost": j.lost}
            for j in found.joined
        ],
    }  # fmt: skip


def _setting(study: Study, n: int) -> Setting:
    """The study with so many people; of these it needs the same share."""
    minimum, count = study.parties.minimum, study.parties.count
    fewest = n if minimum is None else max(round(n * minimum / count), 1)
    return msgspec.structs.replace(study.setting, expected=n, parties=n, fewest=fewest)


def _block_options(study: Study) -> BlockOptions | None:
    """What a study by blocks wants; its p follows from the budget."""
    asked = study.protocol
    if not isinstance(asked, BlockAggregation):
        return None
    return BlockOptions(asked.floor, asked.block, asked.together, asked.answers, asked.tables)


def _pilot(
    scenario: Scenario, pilot: Path | None, own_data: bool, least: int = LEAST_PILOT
) -> Codes | None:
    if pilot is not None and own_data:
        raise InputError("give either --pilot or --own-data")
    if pilot is None and not own_data:
        return None
    if pilot is None:
        whose, records = "the study's own [data]", scenario.records()
    else:
        whose = str(pilot)
        records = read_csv(pilot, scenario.study.schema, layout=scenario.layout)
    if len(records) < least:
        raise DataError(
            f"{whose} has {len(records)} of the {least} records that a pilot needs at least"
            + ("" if least < LEAST_PILOT else WHY_SO_MANY)
        )
    return np.array(records, dtype=np.int64)


def _as_json(found: Plan, ways: Sequence[Way], lobby_s: float, round_s: float) -> dict[str, Any]:
    return {
        "n": found.n,
        "epsilon": found.epsilon,
        "recommended": found.recommended.name,
        "recommended_with_tables": found.tables.name,
        "shares_alone_are_as_good": found.margins_are_as_good,
        "independence": found.crowds.dependence,
        "pilot": found.pilot,
        "simulated_people": found.simulated,
        "simulated_populations": found.crowds.effort.populations_of(found.n),
        "relative_trust": None if found.pilot else TRUST,
        "designs": [
            {
                "name": outlook.name,
                "what": outlook.design.what,
                "epsilon": outlook.design.epsilon,
                "one_answer": outlook.design.one_answer,
                "beta": outlook.design.beta,
                "error": outlook.error,
                "errors": _errors(outlook),
                "protocol": outlook.design.options,
            }
            for outlook in found.outlooks
        ],
        "refused": found.refused,
        "ways_to_trust": [
            {
                "name": way.name,
                "trusted": way.trusted,
                "central_epsilon": way.epsilon,
                "delta": way.delta,
                "local_epsilon": way.local_epsilon,
                "errors": _errors(way.outlook),
                "messages": way.messages,
                "minutes_online": way.minutes(lobby_s, round_s),
                "offered": way.offered,
            }
            for way in ways
        ],
    }


def _errors(outlook: Outlook) -> dict[str, dict[str, float]]:
    return {
        word: {"error": found.error, "standard_error": found.standard_error}
        for word, found in outlook.predicted.items()
    }


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
