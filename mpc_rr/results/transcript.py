"""The public messages of a study as lines of text, and what they cost the network."""

import base64
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpc_rr.agents.outcome import Outcome
from mpc_rr.network.envelope import EVERYONE, Envelope, SignedEnvelope
from mpc_rr.network.mailbox import Traffic
from mpc_rr.publication.sheets import csv_text

_signed = msgspec.msgpack.Decoder(SignedEnvelope)
_envelopes = msgspec.msgpack.Decoder(Envelope)
_quoted = json.JSONEncoder().encode


def transcript_lines(transcript: Iterable[bytes]) -> str:
    """The public messages, one JSON object a line: where each belongs, and its signed bytes."""
    lines = []
    for raw in transcript:
        header = _envelopes.decode(_signed.decode(raw).envelope).header
        session, step, sender = map(_quoted, (header.session, header.step, header.sender))
        envelope = base64.b64encode(raw).decode()
        lines.append(
            f'{{"session": {session}, "step": {step}, "sender": {sender}, '
            f'"envelope": "{envelope}"}}\n'
        )
    return "".join(lines)


FIELDS = ("messages_up", "bytes_up", "messages_down", "bytes_down")


def cost_document(outcome: Outcome, words: Mapping[str, str]) -> dict[str, Any]:
    """``cost.json``: totals, and the rounds with how long each took and what was done in it."""
    by_round: dict[tuple[str, str], Traffic] = {}
    for (session, step, _), traffic in outcome.traffic.items():
        sums = by_round.get((session, step))
        if sums is None:
            sums = by_round[session, step] = Traffic()
        sums.messages_up += traffic.messages_up
        sums.bytes_up += traffic.bytes_up
        sums.messages_down += traffic.messages_down
        sums.bytes_down += traffic.bytes_down
    total = {field: sum(getattr(sums, field) for sums in by_round.values()) for field in FIELDS}
    return {
        "total": total | {"seconds": sum(outcome.round_seconds.values())},
        "rounds": [
            {"session": session, "step": step, "doing": words.get(step, ""), "seconds": seconds}
            | {field: getattr(by_round.get((session, step), Traffic()), field) for field in FIELDS}
            for (session, step), seconds in outcome.round_seconds.items()
        ],
    }


def cost_csv(outcome: Outcome) -> str:
    """``cost.csv``: messages, bytes and seconds of every party in every step.

    As the coordinator saw them; the party ``everyone`` is what went to all at once.
    """
    peers: dict[tuple[str, str], list[str]] = {}
    for session, step, peer in outcome.traffic:
        peers.setdefault((session, step), []).append(peer)
    parties: list[str] = []
    sessions: list[str] = []
    steps: list[str] = []
    found: list[Traffic] = []
    for session, step in sorted(peers):  # names alone sort much faster than whole keys
        here = sorted(peers[session, step])
        parties += ["everyone" if peer == EVERYONE else peer for peer in here]
        sessions += [session] * len(here)
        steps += [step] * len(here)
        found += [outcome.traffic[session, step, peer] for peer in here]
    fields = Traffic.__struct_fields__
    columns = ([getattr(traffic, field) for traffic in found] for field in fields)
    lines = zip(parties, sessions, steps, *columns, strict=True)
    return csv_text(itertools.chain([("party", "session", "step", *fields)], lines))
