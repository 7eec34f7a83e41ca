"""Answers that people write in words, and what is known of such words: orders, gaps, value labels.

English and German, as the files that people bring have them. What is not known is not guessed.
"""

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from importlib import resources

_LINES = resources.files("mpc_rr.study").joinpath("scales.txt").read_text(encoding="utf-8")
SCALES: tuple[Mapping[str, int], ...] = tuple(
    {
        word.strip().casefold(): place
        for place, words in enumerate(line.split("|"))
        for word in words.split(",")
    }
    for line in _LINES.splitlines()
    if not line.startswith("#")
)
"""The place of each word on the scales that are known."""

_NUMBER = r"(\d+(?:[.,]\d+)?)"
_INTERVAL = re.compile(
    rf"(?:age[ds]? )?{_NUMBER}\s*(?:-|–|—|to|bis|until)\s*(?:under |unter |<\s?)?{_NUMBER}"
)
_BELOW = re.compile(rf"(?:<=?|≤|under|below|unter|bis|up to|less than|younger than)\s*{_NUMBER}")
_ABOVE = re.compile(
    rf"(?:>=?|≥|over|above|über|ab|from|more than|older than)\s*{_NUMBER}|{_NUMBER}\s*"
    r"(?:\+|and (?:over|more|older|above)|or (?:over|more|older)|und (?:älter|mehr)|plus)"
)
_UNIT = re.compile(
    r"\s*(?:years old|years|year|yrs|jahre|jahren|y|%|€|£|\$|km|kg|cm|h|hours|min)\s*$"
)


def in_order(different: Collection[str]) -> tuple[str, ...] | None:
    """These answers from the lowest to the highest; None if no order of them is known.

    They are words of one scale, or intervals such as 16-24, 25-39, 65+.
    """
    words = {text: " ".join(text.casefold().replace("’", "'").split()) for text in different}
    for scale in SCALES:
        places = {text: scale.get(word) for text, word in words.items()}
        if None not in places.values() and len(set(places.values())) == len(different) > 1:
            return tuple(sorted(different, key=lambda text: (places[text], text)))
    ends = {text: _ends(word) for text, word in words.items()}
    if len(ends) < 2 or None in ends.values():
        return None
    known = sorted((end, text) for text, end in ends.items() if end is not None)
    overlap = any(high > low for ((_, high), _), ((low, _), _) in itertools.pairwise(known))
    return None if overlap else tuple(text for _, text in known)


def _ends(text: str) -> tuple[float, float] | None:
    """The lowest and the highest number of an interval in words."""
    text = _UNIT.sub("", text)
    between, below, above = (p.fullmatch(text) for p in (_INTERVAL, _BELOW, _ABOVE))
    if between:
        low, high = (float(end.replace(",", ".")) for end in between.groups())
        return (low, high) if low <= high else None
    if below:
        return -math.inf, float(below.group(1).replace(",", "."))
    if above:
        return float((above.group(1) or above.group(2)).replace(",", ".")), math.inf
    return None


# ── Codes ──────────────────────────────────────────────────────────────────────────────────────

NO_ANSWER = frozenset(
    {"#null!", "#n/a", "#na", "na", "n/a", "n.a.", "<na>", "nan", "null", "-", "--", ".", "..", "?"}
    | {"sysmis", "missing", "no answer", "not answered", "refused", "refusal", "declined"}
    | {"prefer not to say", "k.a.", "k. a.", "ka", "keine angabe", "keine angaben", "verweigert"}
)
"""Words by which programs and people say that there is no answer."""
_NEGATIVE = re.compile("-(?:1|2|7|8|66|77|88|97|98|9+)")
_REPEATED = re.compile("8|66|77|88|97|98|888|997|998|9+")
"""Numbers that often mean so; `numbers_for_no_answer` sees whether they stand apart."""
LABELLED = re.compile(r"(?:[(\[](-?\d{1,4})[)\]]\s*[=:.–-]?|(-?\d{1,4})\s*[=:.)–-])\s*(\S.*)")


def words_for_no_answer(different: Collection[str]) -> list[str]:
    """Those of these texts that are known to mean that there is no answer."""
    return sorted(text for text in different if text.casefold().strip() in NO_ANSWER)


def numbers_for_no_answer(different: Collection[str]) -> list[tuple[str, bool]]:
    """Those of these numbers that may mean so, and whether they stand far from the others."""
    if not all(re.fullmatch(r"-?\d{1,9}(?:\.\d+)?", text) for text in different):
        return []
    whole = {text: text.partition(".")[0] for text in different if float(text).is_integer()}
    known = [text for text, n in whole.items() if _NEGATIVE.fullmatch(n) or _REPEATED.fullmatch(n)]
    codes = sorted(known, key=float)
    others = sorted(float(text) for text in different if text not in codes)
    if len(others) < 2:
        return []
    lowest, highest = others[0], others[-1]
    wide = max(2, (highest - lowest) / 2)
    decimals = not any(text in whole for text in different if text not in codes)
    found = []
    for code in codes:
        number = float(code)
        if number < 0 and lowest > number and lowest >= 0:
            found.append((code, True))
        elif number > highest + 1:
            found.append((code, number - highest >= wide))
        elif decimals and len(code) > 1 and "." not in code and number > 0:
            found.append((code, False))  # nobody else wrote a number without decimals
        else:
            lowest, highest = min(lowest, number), max(highest, number)
    return found


def value_labels(different: Collection[str]) -> dict[str, tuple[int, str]] | None:
    """Code and label of each text, where all look like ``1 = yes`` (or are bare codes); else None.

    At least two have labels, and no code and no label is there twice.
    """
    found: dict[str, tuple[int, str]] = {}
    for text in different:
        if re.fullmatch(r"-?\d{1,4}", text):
            found[text] = (int(text), "")
        elif labelled := LABELLED.fullmatch(text):
            code, label = labelled.group(1) or labelled.group(2), labelled.group(3)
            found[text] = (int(code), label.strip())
        else:
            return None
    codes = [code for code, _ in found.values()]
    labels = [label for _, label in found.values() if label]
    alone = all(any(c.isalpha() for c in label) for label in labels) and len(labels) > 1
    units = len({label.casefold() for label in labels}) < len(labels)  # 5 km, 10 km: no labels
    return None if not alone or units or len(set(codes)) < len(codes) else found


def without_gaps(numbers: Sequence[str], most: int) -> list[str]:
    """Whole numbers with those between them that nobody has given, if they are few in all."""
    values = sorted(map(int, numbers))
    span = range(values[0], values[-1] + 1)
    return [str(value) for value in (span if len(span) <= most else values)]
