"""What ``mpc-rr condense`` says: what need not be asked, and what to change in the study file."""

import json
import math
import re

from rich.console import Console
from rich.markup import escape

from mpc_rr.errors import all_quoted, quoted
from mpc_rr.planning.condensing import Condensed, Followed, Joined


def show_condensed(console: Console, found: Condensed) -> None:
    """Each proposal with what it saves and costs, and its lines for the study file."""
    for followed in found.followed:
        _show_followed(console, followed)
    for joined in found.joined:
        _show_joined(console, joined)
    if not found.followed and not found.joined:
        _say(console, f"In this pilot of {found.pilot:,} people no attribute follows from another.")
        return
    _say(
        console,
        f"A record would be one of {found.combinations_left:,} instead of {found.combinations:,} "
        "combinations.",
    )


def _say(console: Console, text: str) -> None:
    console.print(escape(text), highlight=False)


def _show_followed(console: Console, found: Followed) -> None:
    name, from_ = quoted(found.attribute.name), quoted(found.representative.name)
    _say(
        console,
        f"{name} need not be asked: computed from {from_}, it is wrong for {found.wrong:.1%} of "
        f"those {found.people:,} of the pilot's people on whom it was not chosen (for at most "
        f"{found.wrong_at_most:.1%} of the people from whom they were drawn, with 95 % "
        "confidence). Take it out of the schema and write:",
    )
    if found.unseen:
        _say(
            console,
            f"Nobody on whom it was chosen answered {all_quoted(found.unseen)} to {from_}; what "
            "follows from that is a guess.",
        )
    values = ", ".join(f"{_toml(z)} = {_toml(x)}" for z, x in found.values.items())
    _toml_lines(
        console,
        f"[derived.{_key(found.attribute.name)}]",
        f"from = {_toml(found.representative.name)}",
        f"values = {{ {values} }}",
        f"wrong = {math.ceil(found.wrong_at_most * 1e4) / 1e4:g}",
    )


def _show_joined(console: Console, found: Joined) -> None:
    some = [group for group in found.groups if len(group) > 1]
    _say(
        console,
        f"{quoted(found.attribute.name)} could be asked with {len(found.groups)} instead of "
        f"{found.attribute.size} categories; {found.lost:.1%} of its entropy in the pilot could "
        "then no longer be told:",
    )
    if found.bins is not None:
        edges = ", ".join(f"{edge:.12g}" for edge in found.bins)
        _toml_lines(console, f"[schema.{_key(found.attribute.name)}]", f"bins = [{edges}]")
        return
    joins = ", ".join(
        f"{_toml(name)} = {_toml(group)}"
        for name, group in zip(found.names, found.groups, strict=True)
        if group in some
    )
    _toml_lines(
        console,
        f"[schema.{_key(found.attribute.name)}]",
        f"categories = {_toml(found.names)}",
        f"joins = {{ {joins} }}",
    )


def _toml_lines(console: Console, *lines: str) -> None:
    console.print()
    for line in lines:
        console.print(f"    {escape(line)}", highlight=False, soft_wrap=True)
    console.print()


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
