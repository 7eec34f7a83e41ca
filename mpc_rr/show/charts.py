"""Charts as SVG that follow the page's colours, light or dark, and its width."""

import html
import math
from collections.abc import Collection, Mapping, Sequence

from mpc_rr.errors import one_line, plain
from mpc_rr.publication.parts import Kind
from mpc_rr.show.words import CANNOT_BE_TOLD, number

ROW, LABELS, RIGHT, TOP = 26, 130, 56, 8
PLOT, TICKS = 260, 4
CELL, HEAD = 46, 100
WIDEST = 7
"""So wide is a digit, at most."""
LONGEST = 20
FAINTEST = 0.05
"""A weaker dependence has no line."""
READABLE = 640
"""A wider chart is not made narrower than this, in pixels: one scrolls."""


def _short(text: str, longest: int = LONGEST) -> str:
    return html.escape(one_line(text, longest))


def intervals(
    title: str,
    labels: Sequence[str],
    values: Sequence[float | None],
    limits: Sequence[tuple[float | None, float | None]],
    largest: float,
    truth: Sequence[float] | None = None,
    kind: Kind = "share",
    *,
    room: int = LABELS,
) -> str:
    """Points with their limits on a scale from 0 to the largest; crosses are the truth.

    ``room``: for the labels; what is longer is cut.
    """
    longest = LONGEST * room // LABELS
    step = _round_step(largest / TICKS, kind)
    scale = PLOT / (TICKS * step)
    height = TOP + ROW * len(labels) + 24
    parts = []
    for place, (label, value, (low, high)) in enumerate(zip(labels, values, limits, strict=True)):
        y = TOP + ROW * place + ROW / 2
        parts.append(
            f'<text x="{room - 8}" y="{y + 4}" text-anchor="end">{_short(label, longest)}</text>'
        )
        parts.append(f'<path class="grid" d="M{room} {y}h{PLOT}"/>')
        if low is not None and high is not None:
            x1, x2 = room + scale * low, room + scale * high
            parts.append(
                f'<path class="range" d="M{x1:.1f} {y}H{x2:.1f}M{x1:.1f} {y - 5}v10'
                f'M{x2:.1f} {y - 5}v10"/>'
            )
        if value is not None:
            parts.append(f'<circle class="dot" cx="{room + scale * value:.1f}" cy="{y}" r="4.5"/>')
        shown = number(value, kind)
        parts.append(f'<text class="dim" x="{room + PLOT + 6}" y="{y + 4}">{shown}</text>')
        if truth is not None:
            x = room + scale * truth[place]
            parts.append(
                f'<path class="truth" d="M{x - 4:.1f} {y - 4}l8 8M{x - 4:.1f} {y + 4}l8 -8"/>'
            )
    bottom = TOP + ROW * len(labels)
    parts.append(f'<path class="axis" d="M{room} {TOP}V{bottom}h{PLOT}"/>')
    for tick in range(TICKS + 1):
        said = f"{100 * step * tick:g}%" if kind == "share" else f"{step * tick:,.10g}"
        parts.append(
            f'<text class="dim" x="{room + PLOT * tick / TICKS}" y="{bottom + 16}" '
            f'text-anchor="middle">{said}</text>'
        )
    digits = max((len(number(value, kind)) for value in values), default=0)
    right = max(RIGHT, WIDEST * digits + 12)
    return _svg(room + PLOT + right, height, title, parts)


def _round_step(least: float, kind: Kind) -> float:
    """The next step of a scale that people can read: at most a quarter of everything, of shares."""
    power = 10.0 ** math.floor(math.log10(least))
    steps = (power * factor for factor in (1, 2, 2.5, 5, 10))
    step = next(step for step in steps if step >= least * (1 - 1e-9))
    return min(step, 1 / TICKS) if kind == "share" else step


def heat_map(
    title: str,
    labels: Sequence[str],
    values: Mapping[tuple[int, int], float | None],
    untold: Collection[tuple[int, int]] = (),
) -> str:
    """Degrees from −1 to 1 between each two of the labels; those that are ``untold`` are grey."""
    n = len(labels)
    parts = []
    for place, label in enumerate(labels):
        middle = HEAD + CELL * place + CELL / 2
        x = LABELS + CELL * place + CELL / 2
        parts.append(
            f'<text x="{LABELS - 8}" y="{middle + 4}" text-anchor="end">{_short(label)}</text>'
        )
        parts.append(
            f'<text x="{x}" y="{HEAD - 8}" transform="rotate(-50 {x} {HEAD - 8})">'
            f"{_short(label)}</text>"
        )
        for other in range(n):
            x, y = LABELS + CELL * other, HEAD + CELL * place
            value = values.get((place, other), values.get((other, place)))
            pair = (min(place, other), max(place, other))
            known = pair in values and place != other
            vague = value is None or pair in untold
            told = value is not None and not vague
            shade = f'style="--degree:{abs(value or 0):.3f}"' if told else ""
            kind = "none" if not known else "vague" if vague else "cell"
            parts.append(
                f'<rect class="{kind}" {shade} x="{x}" y="{y}" width="{CELL - 2}" '
                f'height="{CELL - 2}" rx="4"/>'
            )
            if known:
                text = CANNOT_BE_TOLD if value is None else number(value, "degree")
                dark = told and abs(value or 0) > 0.5
                parts.append(
                    f'<text class="{"on" if dark else "off"}" x="{x + CELL / 2 - 1}" '
                    f'y="{y + CELL / 2 + 3}" text-anchor="middle">{text}</text>'
                )
    return _svg(LABELS + CELL * n + 70, HEAD + CELL * n + 4, title, parts)


def graph(
    title: str,
    labels: Sequence[str],
    degrees: dict[tuple[int, int], float],
    together: set[tuple[int, int]],
) -> str:
    """Labels on a circle, and between two a line as thick as their degree."""
    radius = max(90.0, 11.0 * len(labels))
    middle = (LABELS + radius, radius + 40)
    turns = [2 * math.pi * k / len(labels) for k in range(len(labels))]
    place = [
        (middle[0] + radius * math.sin(turn), middle[1] - radius * math.cos(turn)) for turn in turns
    ]
    parts = []
    for (one, other), degree in sorted(degrees.items(), key=lambda found: found[1]):
        if degree < FAINTEST:
            continue
        (x1, y1), (x2, y2) = place[one], place[other]
        kind = "tie" if (one, other) in together else "link"
        parts.append(
            f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" '
            f'stroke-width="{1 + 7 * degree:.1f}"/>'
        )
    for label, (x, y) in zip(labels, place, strict=True):
        sideways = (x - middle[0]) / radius
        anchor = "middle" if abs(sideways) < 0.2 else "start" if sideways > 0 else "end"
        down = 4 if anchor != "middle" else 22 if y > middle[1] else -12
        across = 0 if anchor == "middle" else 11 if sideways > 0 else -11
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>')
        parts.append(
            f'<text x="{x + across:.1f}" y="{y + down:.1f}" text-anchor="{anchor}">'
            f"{_short(label)}</text>"
        )
    return _svg(2 * (LABELS + radius), 2 * (radius + 40), title, parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
        f"{_wide(width)}>"
        f"<title>{html.escape(plain(title))}</title>{''.join(parts)}</svg>"
    )


def _wide(width: float) -> str:
    return f' style="min-width:{READABLE}px"' if width > READABLE else ""
