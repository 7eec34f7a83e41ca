"""What people see of a study before it runs, and when it has ended."""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mpc_rr.agents.consent import Consent, Question
from mpc_rr.errors import InternalError, all_quoted, plain, plain_lines, quoted
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.network.address import BrokerUrl
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.disclosures import Disclosure, as_long_as
from mpc_rr.privacy.entropy import MEANING, beta_cell, entropy_share, entropy_shares
from mpc_rr.privacy.sentences import becomes, in_all, in_words
from mpc_rr.publication.parts import Publication
from mpc_rr.results.run import StudyResult
from mpc_rr.show.terminal import say, show_publication
from mpc_rr.show.words import size
from mpc_rr.show.wrapping import wrapped
from mpc_rr.study.file import Scenario

INDENT, HANGING = 4, 2
"""So far from the edge others' words begin: what begins at the edge is ours."""
MOST_PLACES = 3
"""So many brokers of an invitation are named."""
SETTING = re.compile(r"\[\w+(\.\w+)*\]|\w+ = |a number for relays")
"""Names something in the study file, which a respondent cannot set."""
IN_PLAIN_WORDS = {
    "noise_epsilon or suppress_below in": "random noise in the totals, or for small ones to be "
    "hidden",
    "noise_epsilon in": "random noise in the totals",
    "(registrar = ": "a registrar",
    "a higher minimum in": "a study that ends without a result if fewer come",
    "corrupt": "protection against more parties who pool what they know",
    'coordinator = "malicious" in': "a sum that stays secure if the coordinator deviates from the "
    "protocol",
    'sum = "secure_sum" in': "a sum of all or none",
    "(relays = ": "more relays",
    "a number for relays": "relays that are drawn by chance, and for a registrar",
}
"""What settings do, by their words in `mpc_rr.privacy.disclosures.Caution`."""


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
            f"Simulation (seed {result.seed}): reproducible, so nothing in it is secret. Never use "
            "--seed with real records."
        )
        console.print(Text(text, style="dim"))


def show_consent(console: Console, means: Consent) -> None:
    """What taking part would mean to a respondent."""
    _tell(console, f"Study {means.study}. Its title:")
    console.print(indented(console, means.title))
    if means.description:  # set apart on every line of the screen: these are not our words
        _tell(console, "Its author writes:")
        console.print(indented(console, means.description))
    few = "" if means.minimum >= means.parties else f", at least {means.minimum:,}"
    who = "only people whom its registrar admits (--pass)" if means.registrar else "open to anyone"
    _tell(console, f"Asked of {means.parties:,} parties{few}; {who}:")
    for asked in means.questions.values():
        console.print(indented(console, _asked(asked)))
    _tell(console, f"What you would disclose (protocol {means.protocol}):")
    for told in means.disclosures:
        about = all_quoted(told.event.attributes) or "whatever you answer"
        left = "" if told.entropy_share is None else f"; β = {beta_cell(told.entropy_share)}"
        told_all = f"{about}: {told.how}; seen {told.seen}; {told.cost}{left}"
        console.print(indented(console, told_all))
    _tell(console, _whole_record(means))
    _tell_each_answer(console, means)
    if any(told.entropy_share is not None for told in means.disclosures):
        _tell(console, _uncertainty_left(means))
    _tell_warnings(console, means)
    if means.adds == 0:
        but = ", but see the warning" if means.compared else ""
        _tell(console, f"All of this is in your ledger already: no ε is added{but}.")
    budgets = _budgets(means)
    if means.spent_before != 0 or budgets:
        within = f" Your budget: {budgets}." if budgets else ""
        _tell(console, f"{_spent(means)}{_one_answer(means)}{_if(means)}.{within}")


def show_venue(console: Console, broker: BrokerUrl, coordinator: str) -> None:
    """Where a study takes place, as an invitation says: it may have been altered on its way."""
    places = [f"{node.where} ({'with' if node.tls else 'without'} TLS)" for node in broker.nodes]
    more = f" and {len(places) - MOST_PLACES:,} more" if len(places) > MOST_PLACES else ""
    _tell(console, "Where it takes place, as your invitation says:")
    console.print(indented(console, f"broker: {', '.join(places[:MOST_PLACES])}{more}"))
    console.print(indented(console, f"coordinator: {coordinator}"))
    _tell(
        console,
        "Anyone who can alter your invitation can alter these. If it came by a way that others can "
        "write to, compare them with what the study team says elsewhere.",
    )
    if any(node.exposed for node in broker.nodes):
        _tell(
            console,
            "There is no TLS on the way: anyone on it sees that you take part, and can read "
            "what is not sealed.",
            "Warning",
        )


def _tell_each_answer(console: Console, means: Consent) -> None:
    """The ε of every answer, where they differ."""
    if len(set(means.answers.values())) > 1:
        _tell(console, "For each answer by itself, to someone who knows all your others:")
        for name, epsilon in means.answers.items():
            console.print(indented(console, f"{quoted(name)}: {_of_answer(epsilon)}"))


def _tell_warnings(console: Console, means: Consent) -> None:
    for caution in (*means.compared, *means.cautions):
        _tell(console, f"{caution.text} {_way_out(caution.prevented_by)}", "Warning")
    for text in means.in_vain:
        _tell(console, f"Your answers may be in vain for this: {text}", "Warning")
    for note in means.notes:
        _tell(console, note, "Note")


def _way_out(prevented_by: str) -> str:
    """What would prevent it; if the study file would, whom a respondent can ask for what."""
    if SETTING.search(prevented_by) is None:
        return f"What would prevent it: {prevented_by}."
    for setting, plainly in IN_PLAIN_WORDS.items():
        if setting in prevented_by:
            return f"Only the study team can prevent it: ask for {plainly} ({prevented_by})."
    return f"Only the study team can prevent it, by this in the study file: {prevented_by}."


def _of_answer(epsilon: float | None) -> str:
    if epsilon is None:
        return "no ε bounds what is told of it"
    return f"ε = {epsilon:.3g}; a 50:50 guess can become {becomes(epsilon)}"


def _spent(means: Consent) -> str:
    """Before and after; without a ledger nobody knows what was before."""
    before = f"Spent so far: {means.spent_said}. After this study"
    if not means.remembered:
        before = "What you spent before is not known without a ledger (--state). This study alone"
    return f"{before}: {means.total_said}"


def _budgets(means: Consent) -> str:
    found = [] if means.budget is None else [f"ε = {means.budget:.3g}"]
    if means.answer_budget is not None:
        other = "other " * bool(means.answer_budgets)
        found.append(f"ε = {means.answer_budget:.3g} for each {other}answer")
    for name, budget in means.answer_budgets.items():
        limit = "no limit" if budget is None else f"ε = {budget:.3g}"
        found.append(f"{limit} for the answer to {quoted(name)}")
    return ", ".join(found)


def _uncertainty_left(means: Consent) -> str:
    """What β says, and that of all answers together."""
    share = means.entropy_share
    several = share is not None and len(means.disclosures) > 1
    together = f" For all answers together: {beta_cell(share)}." if share and several else ""
    return f"{MEANING}{together}"


def _tell(console: Console, text: str, head: str = "") -> None:
    """A sentence of ours. It may hold names that others gave, so it goes on indented: only our own
    words stand at the edge."""
    said = plain_lines(f"{head}: {text}" if head else text)
    shown = Text(f"\n{' ' * HANGING}".join(wrapped(said, console.width - HANGING).split("\n")))
    shown.stylize("yellow", 0, len(head))
    console.print(shown)


def indented(console: Console, text: str) -> Text:
    """A text that stays indented on every line of the terminal, whatever it is made of."""
    lines = wrapped(plain_lines(text), console.width - INDENT)
    return Text(textwrap.indent(lines, " " * INDENT))


def _asked(asked: Question) -> str:
    """A question by its true name first: what it is called elsewhere is its author's choice."""
    words = [word for word in dict.fromkeys((asked.label, asked.question)) if word != asked.name]
    called = "".join(f", {quoted(word)}" for word in words)
    own = "" if asked.own is None else f"\n  your answer: {_answer(asked, asked.own)}"
    if asked.numbers:
        return f"{quoted(asked.name)}{called}: {', '.join(asked.answers)}{own}"
    shown = [_answer(asked, name, title) for name, title in asked.answers.items()]
    return f"{quoted(asked.name)}{called}: {', '.join(shown)}{own}"


def _answer(asked: Question, name: str, title: str | None = None) -> str:
    """An answer, how it is shown to people and which numbers are counted as it."""
    said = [] if title is None or title == name else [f"shown as {quoted(title)}"]
    said += [asked.intervals[name]] if name in asked.intervals else []
    return f"{quoted(name)} ({'; '.join(said)})" if said else quoted(name)


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
    return f"{worst} Expected: anyone who sees only the totals is held to {expected}."


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
    facts["privacy"] = _privacy_of(study.disclosures)
    together = entropy_share(study.disclosures)
    if together is not None:
        each = {" & ".join(a): share for a, share in entropy_shares(study.disclosures).items()}
        facts["beta"] = {"all answers together": together, **each}
    notes = [note.text for note in study.protocol.notes(study.setting)]
    warnings = [found.text for found in study.protocol.prospects(study.setting)]
    facts |= {"records": records} | ({"notes": notes} if notes else {})
    return facts | ({"warnings": warnings} if warnings else {})


def _privacy_of(events: Sequence[Disclosure]) -> str:
    """The ε, if there is one, and what it means; that there is none stands in the sentences."""
    said = in_words(events)
    known = not math.isinf(Accountant().read(events).local)
    return f"{in_all(events)}. {said}" if known else said


def show_facts(console: Console, facts: dict[str, Any]) -> None:
    """Keys and values, a line each."""
    for key, value in facts.items():
        if key == "warnings":
            continue
        text = str(value)
        if isinstance(value, dict):
            text = "; ".join(f"{name}: {beta_cell(share)}" for name, share in value.items())
        if isinstance(value, list):
            text = " ".join(value) if key == "notes" else all_quoted(value)
        console.print(f"{key:<11} {escape(plain(text))}", highlight=False, soft_wrap=True)
    show_prospects(console, facts.get("warnings", ()))


def show_prospects(console: Console, prospects: Sequence[str]) -> None:
    """What a study is too small, or too wide, to find out."""
    for text in prospects:
        say(console, text, "Warning")
