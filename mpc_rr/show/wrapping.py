"""Lines that fit a terminal, by the larger of what it and rich may take a character for.

rich counts spacing marks (the vowels of Indian scripts) as nothing, terminals as a column. A text
full of them would be wrapped by the terminal, at its very edge: where only we begin a line.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from rich.cells import cell_len

from mpc_rr.errors import JOINERS, VARIATIONS

WIDENED = frozenset(
    map(chr, (*range(0x3248, 0x3250), *range(0x4DC0, 0x4E00), *range(0x1F3FB, 0x1F400)))
)
"""Circled numbers, hexagrams (wide since Unicode 16), and colours of skin beside what has none: of
ambiguous or new width, and drawn wide."""


@lru_cache(maxsize=4096)
def columns(character: str) -> int:
    """So many columns a terminal draws it over, at most."""
    if character == "\ufe0f":  # makes a picture of a narrow sign
        return 1
    if character in WIDENED:
        return 2
    wide = 2 * (unicodedata.east_asian_width(character) in "WF")
    spacing = int(unicodedata.category(character) == "Mc")
    return max(cell_len(character), wide * spacing, spacing)


def width(text: str) -> int:
    """So many columns a terminal draws a line over, at most."""
    return sum(map(columns, text))


def wrapped(text: str, most: int) -> str:
    """The text in lines of at most so many columns, broken at spaces where there are any."""
    return "\n".join(line for given in text.split("\n") for line in _lines(given, max(most, 1)))


def _lines(text: str, most: int) -> Iterator[str]:
    line = ""
    for word in re.findall("[^ ]+ *| +", text):
        if width(line) + width(word.rstrip(" ")) > most:
            if line.strip(" "):
                yield line.rstrip(" ")
            *whole, line = _pieces(word, most)
            yield from whole
        else:
            line += word
    yield line.rstrip(" ")


def _pieces(word: str, most: int) -> list[str]:
    """A word that is longer than a line, cut between letters, not before their marks."""
    if width(word.rstrip(" ")) <= most:
        return [word]
    pieces = [""]
    for letter in _letters(word):
        if pieces[-1] and width(pieces[-1]) + width(letter.rstrip(" ")) > most:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def _letters(text: str) -> list[str]:
    found: list[str] = []
    for character in text:
        mark = unicodedata.category(character)[0] == "M" or character in VARIATIONS
        if found and (mark or character in JOINERS):
            found[-1] += character
        else:
            found.append(character)
    return found
