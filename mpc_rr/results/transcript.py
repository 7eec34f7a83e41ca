"""The public messages of a study as lines of text, and what they cost the network."""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpc_rr.agents.outcome import Outcome
from mpc_rr.network.messages import EVERYONE, Envelope, SignedEnvelope
from mpc_rr.publication.sheets import csv_text


def transcript_lines(transcript: Iterable[bytes]) -> str:
    """The public messages, one JSON object a line: where each belongs, and its signed bytes."""
    lines = []
    for raw in transcript:
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        header = msgspec.msgpack.decode(signed.envelope, type=Envelope).header
        entry = {
            "session": header.session,
            "step": header.step,
            "sender": header.sender,
            "envelope": base64.b64encode(raw).decode(),
        }
        lines.append(json.dumps(entry) + "\n")
    return "".join(lines)


FIELDS = ("messages_up", "bytes_up", "messages_down", "bytes_down")


def cost_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Messages, bytes and seconds of every party in every step, as the coordinator saw them.

    The party ``everyone`` is what went to all at once.
    """
    return [
        {
            "party": "everyone" if peer == EVERYONE else peer,
            "session": session,
            "step": step,
            **msgspec.to_builtins(traffic),
        }
        for (session, step, peer), traffic in sorted(outcome.traffic.items())
    ]


def cost_document(outcome: Outcome, words: Mapping[str, str]) -> dict[str, Any]:
    """``cost.json``: totals, and the rounds with how long each took and what was done in it."""
    by_round: dict[tuple[str, str], dict[str, int]] = {}
    for (session, step, _), traffic in outcome.traffic.items():
        sums = by_round.setdefault((session, step), dict.fromkeys(FIELDS, 0))
        for field in FIELDS:
            sums[field] += getattr(traffic, field)
    total = {field: sum(sums[field] for sums in by_round.values()) for field in FIELDS}
    return {
        "total": total | {"seconds": sum(outcome.round_seconds.values())},
        "rounds": [
            {"session": session, "step": step, "doing": words.get(step, ""), "seconds": seconds}
            | by_round.get((session, step), dict.fromkeys(FIELDS, 0))
            for (session, step), seconds in outcome.round_seconds.items()
        ],
    }


def cost_csv(outcome: Outcome) -> str:
    """``cost.csv``: the rows."""
    rows = cost_rows(outcome)
    head = list(rows[0]) if rows else []
    return csv_text([head, *(list(row.values()) for row in rows)])
