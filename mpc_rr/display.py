"""What people see: progress while a study runs, tables when it has ended."""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.outcome import State
from mpc_rr.agents.party import Party
from mpc_rr.block_tables import blocks_document
from mpc_rr.display_records import show_groups, show_masked
from mpc_rr.errors import listing
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.planning import Plan
from mpc_rr.estimation.tables import dependence_matrix
from mpc_rr.privacy.odds import in_words, seen_as
from mpc_rr.protocols.block_aggregation import BlockParticipation, CollectedBlocks
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.protocols.collection import Collected, Participation
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.protocols.interface import Ending
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.protocols.rr_views import CollectedViews, ViewParticipation
from mpc_rr.release import Reports, estimates_of
from mpc_rr.reproduce.result import Reproduction
from mpc_rr.results import dependences, shown_counts, single_person_cells
from mpc_rr.scenario import Scenario, Study
from mpc_rr.schema import Attribute
from mpc_rr.study import StudyResult, Watch, WatchParties

STEP_WORDS = {
    "join": "waiting for parties to join",
    "roster_seen": "parties compare the roster they were shown",
    "share": "round 1 of 2: parties send each other sealed shares",
    "first_answer": "parties report randomized answers, to find dependences",
    "view_answer": "parties report one group of answers each, randomized",
    "answer": "parties report their randomized answers",
    "block_answer": "a block of parties answers",
    "partial": "round 2 of 2: parties publish masked vectors",
    "commitments": "respondents commit to what they will show",
    "openings": "respondents open their commitments",
    "agreed": "respondents check their groups",
    "relay_keys": "relays of the anonymous channel show their keys",
    "onions": "respondents send through the anonymous channel",
    "shuffled": "a relay shuffles",
    "found": "respondents look for their messages",
    "final_key": "relays open the messages",
    "route_key": "something went wrong in the channel: relays show what they did",
    "masked_record": "respondents post their masked records",
    "result_seen": "parties confirm the result",
    "goodbye": "parties take their leave",
}
MOST_WATCHED = 12
MEASURE_WORDS = {"cramers_v": "Cramér's V", "abs_pearson_r": "|Pearson r|"}


def size(count: int) -> str:
    """``3.2 MB``."""
    value = float(count)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


class _Progress:
    """A live picture of a coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._started = time.monotonic()

    def __rich__(self) -> RenderableType:
        now = self._coordinator.progress
        if now.state is State.LOBBY:
            what, done, wanted = STEP_WORDS["join"], now.joined, now.expected
        else:
            what, done, wanted = STEP_WORDS.get(now.step, now.step), now.arrived, now.wanted
        again = f" (attempt {now.attempt})" if now.attempt > 1 else ""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(max(wanted, 1), done, width=30), f"{done}/{wanted}", what + again)
        seconds = time.monotonic() - self._started
        rows = Table.grid(padding=(0, 1))
        for name, share in now.preview[:MOST_WATCHED]:
            rows.add_row(escape(name), f"{share:.1%}", ProgressBar(1.0, share, width=30))
        traffic = f"{now.messages:,} messages · {size(now.bytes)} · {seconds:.0f} s"
        return Group(bar, rows, Text(traffic, style="dim"))


class _PartyProgress:
    """A live picture of the parties of one process."""

    def __init__(self, parties: Sequence[Party]) -> None:
        self._parties, self._spinner = parties, Spinner("dots")
        self._started = time.monotonic()

    def __rich__(self) -> RenderableType:
        box, study = self._parties[0].mailbox, self._parties[0].study
        if not box.run:
            doing = "looking for the coordinator"
        elif not box.session_root:
            doing = f"waiting for the others ({study.parties.count} are expected)"
        else:
            doing = "waiting for the coordinator and the others"
        records = f"{len(self._parties)} records" if len(self._parties) > 1 else "one record"
        seconds = time.monotonic() - self._started
        text = f"{study.name}, {records}: {doing} · {box.messages:,} messages · {seconds:.0f} s"
        return Columns([self._spinner, Text(text)])


def party_watcher(console: Console) -> WatchParties:
    """A `mpc_rr.study.WatchParties` that draws on this console."""

    @contextlib.contextmanager
    def watch(parties: Sequence[Party]) -> Iterator[None]:
        with Live(_PartyProgress(parties), console=console, refresh_per_second=8, transient=True):
            yield

    return watch


def watcher(console: Console) -> Watch:
    """A `mpc_rr.study.Watch` that draws on this console."""

    @contextlib.contextmanager
    def watch(coordinator: Coordinator) -> Iterator[None]:
        with Live(_Progress(coordinator), console=console, refresh_per_second=8, transient=True):
            yield

    return watch


def show_counts(console: Console, counts: PairCounts) -> None:
    """The dependences, strongest first, and the table of the strongest pair."""
    rows = sorted(
        zip(dependences(counts), counts.tables, strict=True),
        key=lambda row: -(row[0][1].value or 0.0),
    )
    table = Table(
        title="How strongly each pair of answers depends on each other", title_justify="left"
    )
    for heading in ("", "", "measure"):
        table.add_column(heading)
    table.add_column("0 … 1", justify="right")
    table.add_column("")
    table.add_column("p-value", justify="right")
    for ((a, b), found), _ in rows:
        value = "–" if found.value is None else f"{found.value:.3f}"
        p_value = "–" if found.p_value is None else f"{found.p_value:.2g}"
        bar = ProgressBar(1.0, found.value or 0.0, width=20)
        table.add_row(escape(a), escape(b), MEASURE_WORDS[found.measure], value, bar, p_value)
    console.print(table)
    ((a, b), _), strongest = rows[0]
    attributes = {attribute.name: attribute for attribute in counts.schema.attributes}
    console.print(_count_table(attributes[a], attributes[b], shown_counts(strongest, counts)))
    if counts.unconfirmed:
        console.print(
            f"[yellow]Note[/]: {listing(counts.unconfirmed)} did not confirm to have the same "
            "result.",
            highlight=False,
        )
    if counts.noise:
        console.print(
            f"Every count has noise in it (standard deviation {counts.noise:.1f}); nobody saw an "
            "exact one.",
            highlight=False,
        )
    if counts.suppressed_below:
        console.print(
            f"{counts.hidden_cells} cells are hidden: counts below {counts.suppressed_below}, and "
            "what would give them away. Only the coordinator saw the exact counts.",
            highlight=False,
        )
    alone = single_person_cells(counts)
    if alone:
        console.print(
            f"[yellow]Note[/]: {alone} cells count a single person. Exact counts are published, so "
            "whoever knows one answer of such a person learns the other (docs/threat-model.md).",
            highlight=False,
        )


def _count_table(rows: Attribute, columns: Attribute, counts: list[list[int | None]]) -> Table:
    title = escape(f"Counts of {rows.name} by {columns.name}")
    table = Table(title=title, title_justify="left")
    table.add_column(escape(rows.name))
    for category in columns.categories:
        table.add_column(escape(category), justify="right")
    for category, row in zip(rows.categories, counts, strict=True):
        table.add_row(escape(category), *("hidden" if c is None else str(c) for c in row))
    return table


def show_ending(console: Console, ending: Ending, study: Study) -> None:
    """What a study found, or what a party knows of it."""
    match ending:
        case PairCounts():
            console.print(
                f"[green]Done[/]: {ending.n} of {study.parties.count} parties counted together; "
                "nobody's answers were shown to anybody.",
                highlight=False,
            )
            show_counts(console, ending)
        case RandomizedPairs():
            show_randomized_pairs(console, ending)
        case Collected() | CollectedViews():
            show_collected(console, ending, study)
        case CollectedBlocks():
            show_blocks(console, ending)
        case BlockParticipation():
            console.print(
                f"[green]Done[/]: {ending.n} of {ending.asked} parties answered. Your "
                f"{len(ending.view)} answers cost ε = {ending.epsilon:.3g} with the tables you "
                f"were shown (the paper would say {ending.claimed_epsilon:.3g}).",
                highlight=False,
            )
        case KAnonymous():
            show_groups(console, ending, study)
        case MaskedRelease():
            show_masked(console, ending, study)
        case Participation() | ViewParticipation():
            console.print(
                f"[green]Done[/]: {ending.n} of {ending.asked} parties answered; what you reported "
                "is randomized. Estimates are in the coordinator's result folder.",
                highlight=False,
            )


def show_blocks(console: Console, found: CollectedBlocks) -> None:
    """Every table with its price and whether its attributes depend on each other."""
    document = blocks_document(found)
    console.print(
        f"[green]Done[/]: {found.n} of {len(found.asked)} parties answered, in "
        f"{document['blocks']} blocks.",
        highlight=False,
    )
    for party, reason in found.faulty.items():
        console.print(f"[yellow]Left out[/]: {escape(f'{party} ({reason})')}", highlight=False)
    if found.silent:
        said = f"{listing(found.silent)} did not answer"
        console.print(f"[yellow]Left out[/]: {escape(said)}", highlight=False)
    if found.not_asked:
        console.print(
            f"{len(found.not_asked)} were not asked any more: all shares are known well enough.",
            highlight=False,
        )
    table = Table(title="Tables", title_justify="left")
    for heading in ("attributes", "answers", "ε of an answer", "largest error", "p-value"):
        table.add_column(heading, justify="left" if heading == "attributes" else "right")
    for row in document["tables"]:
        test = row.get("independence")
        table.add_row(
            escape(" & ".join(row["attributes"])),
            str(row["n"]),
            f"{row['epsilon_of_an_answer']['largest']:.2f}",
            f"{np.max(row['standard_errors']):.1%}",
            "–" if test is None else f"{test['p_value']:.2f}",
        )
    console.print(table)
    console.print(
        "[dim]p-value: of independence, by Monte Carlo with the very tables that were shown.[/]",
        highlight=False,
    )


def show_randomized_pairs(console: Console, found: RandomizedPairs) -> None:
    """The estimated dependences, strongest first."""
    console.print(
        f"[green]Done[/]: {found.n} parties; the tables are estimated from randomized answers.",
        highlight=False,
    )
    names = found.schema.names
    dependences = dependence_matrix(found.pair_shares(), len(names))
    table = Table(title="Estimated dependence of each pair", title_justify="left")
    for heading in ("", ""):
        table.add_column(heading)
    table.add_column("Cramér's V", justify="right")
    table.add_column("")
    for i, j in sorted(PairLayout(found.schema.sizes).pairs, key=lambda p: -dependences[p]):
        value = float(dependences[i, j])
        bar = ProgressBar(1.0, value, width=20)
        table.add_row(escape(names[i]), escape(names[j]), f"{value:.3f}", bar)
    console.print(table)


def show_collected(console: Console, collected: Reports, study: Study) -> None:
    """Who answered, at what price, and the shares of all answers with their intervals."""
    releases = study.protocol.releases(study.name, study.schema, len(collected.asked))
    epsilon = math.fsum(release.epsilon for release in releases)
    price = "without a bound on ε" if math.isinf(epsilon) else f"each with ε = {epsilon:.3g} in all"
    console.print(
        f"[green]Done[/]: {collected.n} of {len(collected.asked)} parties answered, {price}. "
        f"{in_words(epsilon)}",
        highlight=False,
    )
    for party, reason in collected.faulty.items():
        console.print(f"[yellow]Left out[/]: {escape(f'{party} ({reason})')}", highlight=False)
    if collected.silent:
        said = f"{listing(collected.silent)} did not answer"
        console.print(f"[yellow]Left out[/]: {escape(said)}", highlight=False)
    table = Table(title="Estimated shares, with 95 % intervals", title_justify="left")
    for heading in ("", "", "share", "from", "to"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_column("")
    for marginal in estimates_of(collected).marginals():
        low, high = (np.clip(limit, 0, 1) for limit in marginal.unbiased.interval())
        for code, category in enumerate(marginal.attribute.categories):
            share = float(marginal.shares[code])
            table.add_row(
                escape(marginal.attribute.name) if code == 0 else "",
                escape(category),
                f"{share:.1%}", f"{low[code]:.1%}", f"{high[code]:.1%}",
                ProgressBar(1.0, share, width=20),
            )  # fmt: skip
    console.print(table)


def show_result(console: Console, result: StudyResult, seconds: float) -> None:
    """Everything a person wants to see at the end of a run."""
    outcome = result.outcome
    for exclusion in outcome.excluded:
        said = escape(f"{exclusion.name} ({exclusion.reason})")
        console.print(f"[yellow]Left out[/]: {said}", highlight=False)
    if outcome.result is not None:
        show_ending(console, outcome.result, result.study)
    messages = sum(t.messages_up + t.messages_down for t in outcome.traffic.values())
    carried = sum(t.bytes_up + t.bytes_down for t in outcome.traffic.values())
    console.print(
        f"Cost: {messages:,} messages, {size(carried)}, {seconds:.1f} s; "
        f"{outcome.rejected.total()} messages rejected",
        highlight=False,
    )
    if result.seed is not None:
        console.print(
            f"[dim]Seed {result.seed}: reproducible, and therefore a simulation, not a secret "
            "computation.[/]",
            highlight=False,
        )


def show_explanation(console: Console, explanation: dict[str, Any]) -> None:
    """What taking part would mean to a respondent."""

    def budget(epsilon: float | None) -> str:
        return "without bound" if epsilon is None else f"{epsilon:.3g}"

    console.print(f"[bold]{escape(explanation['title'])}[/] (study {explanation['study']})")
    if explanation["description"]:
        console.print(escape(explanation["description"]), highlight=False)
    console.print(f"Asked of {explanation['parties']:,} parties:", highlight=False)
    for name, categories in explanation["questions"].items():
        console.print(f"  {escape(name)}: {escape(', '.join(categories))}", highlight=False)
    console.print(f"What leaves you (protocol {explanation['protocol']}):", highlight=False)
    for release in explanation["releases"]:
        how = release["mechanism"]
        seen = seen_as(how, release["crowd"]).replace("the party's", "your")
        how = "randomized" if how == explanation["protocol"] else how
        attributes = ", ".join(release["attributes"])
        said = f"  {attributes}: {how}; seen {seen}; ε {budget(release['epsilon'])}"
        console.print(escape(said), highlight=False)
    if explanation["registrar"]:
        console.print("Only people with a pass of the study's registrar take part (--pass).")
    if not explanation["releases"]:
        console.print("  nothing new: you answered this study before", highlight=False)
    else:
        console.print(
            f"In all ε = {budget(explanation['epsilon'])}. {explanation['in_words']}",
            highlight=False,
        )
    if explanation["spent_before"] != 0 or explanation["budget"] is not None:
        console.print(
            f"With your earlier studies (ε = {budget(explanation['spent_before'])}) the total "
            f"would be {budget(explanation['total'])}; your budget is "
            f"{budget(explanation['budget'])}.",
            highlight=False,
        )


def show_plans(console: Console, plans: Sequence[Plan], n: int) -> None:
    """The designs of `mpc-rr plan`, the best first."""
    epsilon = plans[0].epsilon
    table = Table(
        title=f"Predicted error of the pair tables, {n:,} respondents, ε = {epsilon:.3g} a record",
        title_justify="left",
    )
    table.add_column("design")
    table.add_column("what a respondent reports")
    table.add_column("mean L1 error", justify="right")
    for row, found in enumerate(plans):
        name = f"[bold]{found.name}[/]" if row == 0 else found.name
        error = "too random" if math.isinf(found.error) else f"{found.error:.3g}"
        table.add_row(name, found.what, error)
    console.print(table)
    console.print(in_words(epsilon), highlight=False)
    console.print(
        "[dim]What randomizing adds, for unbiased tables and shares as skewed as answers usually "
        "are. An L1 error of 0.1 means that 5 % of the respondents are in a wrong cell.[/]",
        highlight=False,
    )


def show_reproduction(console: Console, found: Reproduction) -> None:
    """A table of the papers beside ours, and which of the paper's claims hold."""
    table = Table(title=found.title, title_justify="left")
    for place, column in enumerate(found.columns):
        number = isinstance(found.rows[0][place], float | int)
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(escape(column), justify=justify, overflow="fold")
    for row in found.rows:
        cells = (f"{value:g}" if isinstance(value, float | int) else value or "" for value in row)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    for claim in found.claims:
        verdict = "[green]holds[/]" if claim.holds else "[red]does not hold[/]"
        console.print(f"{verdict}: {escape(claim.text)}", highlight=False)
    for remark in found.remarks:
        console.print(f"[dim]{escape(remark)}[/]", highlight=False)


def scenario_facts(scenario: Scenario, records: int) -> dict[str, Any]:
    """What ``mpc-rr check`` says of a scenario."""
    study = scenario.study
    facts: dict[str, Any] = {
        "study": study.name,
        "digest": study.digest.hex(),
        "protocol": study.protocol.name,
        "parties": study.parties.count,
        "minimum": study.parties.fewest,
        "attributes": list(study.schema.names),
    }
    if not study.protocol.publishes_values:
        layout = PairLayout(study.schema.sizes)
        facts |= {"pairs": len(layout.pairs), "cells": layout.cells}
    return facts | {"records": records}


def show_facts(console: Console, facts: dict[str, Any]) -> None:
    """Keys and values, a line each."""
    for key, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        console.print(f"{key:<11} {escape(text)}", highlight=False, soft_wrap=True)
