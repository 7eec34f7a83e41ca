"""What people see of a study before it runs, and when it has ended."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mpc_rr.errors import InternalError, plain
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.publication.parts import Publication
from mpc_rr.results.run import StudyResult
from mpc_rr.show.terminal import say, show_publication
from mpc_rr.show.words import size
from mpc_rr.study.file import Scenario


def show_result(console: Console, result: StudyResult, found: Publication, seconds: float) -> None:
    """Everything a person wants to see at the end of a run; ``found`` is what was written."""
    outcome = result.outcome
    show_publication(console, found, result.study.schema)
    broken = [end for end in result.parties.values() if isinstance(end, InternalError)]
    if broken and outcome.result is not None:
        count = "one party" if len(broken) == 1 else f"{len(broken):,} parties"
        say(console, f"the program of {count} failed. {broken[0]}.", "Warning")
    messages = sum(t.messages_up + t.messages_down for t in outcome.traffic.values())
    carried = sum(t.bytes_up + t.bytes_down for t in outcome.traffic.values())
    say(
        console,
        f"Cost: {messages:,} messages, {size(carried)}, {seconds:.1f} s; "
        f"{outcome.rejected.total()} messages rejected",
    )
    if result.seed is not None:
        text = (
            f"Seed {result.seed}: reproducible, and therefore a simulation, not a secret "
            "computation."
        )
        console.print(Text(text, style="dim"))


def show_explanation(console: Console, explanation: dict[str, Any]) -> None:
    """What taking part would mean to a respondent."""

    def budget(epsilon: float | None) -> str:
        return "without bound" if epsilon is None else f"{epsilon:.3g}"

    console.print(f"[bold]{escape(explanation['title'])}[/] (study {explanation['study']})")
    if explanation["description"]:
        console.print(escape(explanation["description"]), highlight=False)
    console.print(f"Asked of {explanation['parties']:,} parties:", highlight=False)
    for asked in explanation["questions"].values():
        words = [*dict.fromkeys((asked["label"], asked["question"]))]
        question = ": ".join(words)
        say(console, f"  {question}  [{', '.join(asked['answers'])}]")
    console.print(f"What leaves you (protocol {explanation['protocol']}):", highlight=False)
    for told in explanation["disclosures"]:
        titles = [explanation["questions"][name]["label"] for name in told["event"]["attributes"]]
        attributes = ", ".join(titles) or "whatever you answer"
        seen = told["seen"].replace("the party's", "your")
        say(console, f"  {attributes}: {told['how']}; seen {seen}; ε {budget(told['epsilon'])}")
    if explanation["registrar"]:
        console.print("Only people with a pass of the study's registrar take part (--pass).")
    if not explanation["disclosures"]:
        console.print("  nothing new: you answered this study before", highlight=False)
    else:
        console.print(
            f"In all: ε {budget(explanation['epsilon'])}. {explanation['in_words']}",
            highlight=False,
        )
    if explanation["spent_before"] != 0 or explanation["budget"] is not None:
        console.print(
            f"With your earlier studies (ε = {budget(explanation['spent_before'])}) the total "
            f"would be {budget(explanation['total'])}; your budget is "
            f"{budget(explanation['budget'])}.",
            highlight=False,
        )


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
        console.print(f"{key:<11} {escape(plain(text))}", highlight=False, soft_wrap=True)
