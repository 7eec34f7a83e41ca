"""What people see of a study before it runs, and when it has ended."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from mpc_rr.agents.consent import Consent, Question
from mpc_rr.errors import InternalError, all_quoted, plain, plain_lines, quoted
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.privacy.disclosures import as_long_as
from mpc_rr.privacy.sentences import in_all, in_words
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


def show_consent(console: Console, means: Consent) -> None:
    """What taking part would mean to a respondent."""
    say(console, f"Study {means.study}. Its title:")
    console.print(_indented(means.title))
    if means.description:  # set apart on every line of the screen: these are not our words
        say(console, "Its author writes:")
        console.print(_indented(means.description))
    few = "" if means.minimum >= means.parties else f", at least {means.minimum:,}"
    who = "only people whom its registrar admits (--pass)" if means.registrar else "open to anyone"
    say(console, f"Asked of {means.parties:,} parties{few}; {who}:")
    for asked in means.questions.values():
        console.print(_indented(_asked(asked)))
    say(console, f"What you would disclose (protocol {means.protocol}):")
    for told in means.disclosures:
        about = all_quoted(told.event.attributes) or "whatever you answer"
        console.print(_indented(f"{about}: {told.how}; seen {told.seen}; {told.cost}"))
    say(console, _whole_record(means))
    for caution in (*means.compared, *means.cautions):
        say(console, str(caution), "Warning")
    for note in means.notes:
        say(console, note, "Note")
    if means.adds == 0:
        but = ", but see the warning" if means.compared else ""
        say(console, f"All of this is in your ledger already: no ε is added{but}.")
    if means.spent_before != 0 or means.budget is not None:
        within = "" if means.budget is None else f" Your budget: ε = {means.budget:.3g}."
        say(
            console,
            f"Spent so far: {means.spent_said}. After this study: {means.total_said}"
            f"{_one_answer(means)}{_if(means)}.{within}",
        )


def _indented(text: str) -> Padding:
    """A text that stays indented however it is wrapped."""
    return Padding(Text(plain_lines(text)), (0, 0, 0, 4))


def _asked(asked: Question) -> str:
    """A question by its true name first: what it is called elsewhere is its author's choice."""
    words = [word for word in dict.fromkeys((asked.label, asked.question)) if word != asked.name]
    called = "".join(f", {quoted(word)}" for word in words)
    own = "" if asked.own is None else f"\n  your answer: {quoted(asked.own)}"
    if asked.numbers:
        return f"{quoted(asked.name)}{called}: {', '.join(asked.answers)}{own}"
    shown = [
        quoted(name) if name == title else f"{quoted(name)} (shown as {quoted(title)})"
        for name, title in asked.answers.items()
    ]
    return f"{quoted(asked.name)}{called}: {', '.join(shown)}{own}"


def _one_answer(means: Consent) -> str:
    """The largest ε of any one answer, in all studies."""
    known = [epsilon for epsilon in means.total_answers.values() if epsilon is not None]
    if means.total is None or not known:
        return ""
    return f" in all, ε = {max(known):.3g} for any one answer"


def _if(means: Consent) -> str:
    most, honest = means.total_withstands, means.total_trusts_coordinator
    return "" if most is None else f", {as_long_as(most, honest=honest)}"


def _whole_record(means: Consent) -> str:
    known = "" if means.epsilon is None else f"{means.epsilon_said}. "
    worst = f"For your whole record: {known}{means.in_words}"
    if means.central_epsilon is None or not means.central_epsilon < (means.epsilon or math.inf):
        return worst
    expected = f"ε = {means.central_epsilon:.3g} (δ = {means.central_delta:.2g})"
    return f"{worst} Expected: whoever sees only the totals is held to {expected}."


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
    facts["privacy"] = f"{in_all(study.disclosures)}. {in_words(study.disclosures)}"
    notes = [note.text for note in study.protocol.notes(study.setting)]
    warnings = list(study.protocol.prospects(study.setting))
    facts |= {"records": records} | ({"notes": notes} if notes else {})
    return facts | ({"warnings": warnings} if warnings else {})


def show_facts(console: Console, facts: dict[str, Any]) -> None:
    """Keys and values, a line each."""
    for key, value in facts.items():
        if key == "warnings":
            continue
        text = str(value)
        if isinstance(value, list):
            text = " ".join(value) if key == "notes" else all_quoted(value)
        console.print(f"{key:<11} {escape(plain(text))}", highlight=False, soft_wrap=True)
    show_prospects(console, facts.get("warnings", ()))


def show_prospects(console: Console, prospects: Sequence[str]) -> None:
    """What a study is too small, or too wide, to find out."""
    for text in prospects:
        say(console, text, "Warning")
