"""Columns that no study should ask: who a person is, when something was, or anything at all.

What a column looks like is told from its header and from its values.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

NEARLY_UNIQUE = 0.5
"""Of the records that have a value, if so large a share has one of its own, values tell people
apart."""
FEW_RECORDS = 20
"""Among fewer, that values differ says nothing."""
LONG_TEXT = 40
"""Characters; longer ones, on average, were written freely."""


class Looks(StrEnum):
    """Why a column had better be left out."""

    PERSON = "it names people or says how to reach them"
    CODE = "it numbers people or tells them apart, one value for each"
    DATE = "it holds dates or times; ask for a year or an age group instead"
    FREE_TEXT = "it holds free text"
    PLACE = "a postcode narrows down who a person is; ask for a region, or its first digit, instead"


_PERSON = re.compile(
    r"(?:(?:full|first|last|middle|family|given|user|sur|nick|your)[ _-]?)?names?|name of .*person|"
    r"(?:vor|nach|familien|benutzer)name|e-?mails?(?:[ _-]?(?:address|adresse))?|mail|"
    r"(?:tele)?(?:phone|fon|fax)(?:[ _-]?(?:number|no|nummer))?|mobile|handy|tel|"
    r"(?:home |postal |street |ip[ _-]?)?address|adresse|anschrift|street|straße|strasse|ip|"
    r"ssn|social security.*|sozialversicherungs.*|passport.*|iban|"
    r"(?:bank[ _-]?)?account(?:[ _-]?number)?|"
    r"insurance[ _-]?(?:number|no)|versicherten.*|signature|unterschrift"
)
_CODE = re.compile(
    r"(?:.*[ _-])?(?:id|uuid|guid|pid|token)|"
    r"(?:respondent|participant|person|patient|case|response|"
    r"record|serial|member|row|teilnehmer|fall|lfd)[ _.-]?(?:id|no|nr|number|code|nummer)?\.?|"
    r"(?:id|no|nr|nummer|number|lfdn)\.?|index"
)
_DATE_HEADER = re.compile(
    r".*\b(?:date|datum|timestamp|zeitstempel|birthday|geburtstag|geburtsdatum|dob|"
    r"start ?time|end ?time|submitted|started|created)\b.*"
)
_POSTCODE = re.compile(
    r"(?:.*\b)?(?:plz|postleitzahl|zip(?: ?code)?|post(?:al)? ?code|code postal)(?:\b.*)?"
)
COARSE = 2
"""A postcode of so few characters is a region."""
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PHONE = re.compile(r"(?:\+|00|0|\(0)[\d ()/.-]{6,}\d")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|"
    r"\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez)\w*\.? \d{2,4})"
    r"(?:[ T]\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2})?",
    re.IGNORECASE,
)


def looks(header: str, given: Sequence[str], *, numbers: bool) -> Looks | None:
    """What a column looks like that is no question; None if it may be one.

    ``given``: its values, of which none is empty; ``numbers``: whether all are numbers.
    """
    title = " ".join(header.casefold().replace("_", " ").split())
    alone = len(set(given)) == len(given) > 2
    if _PERSON.fullmatch(title) or _mostly(given, _EMAIL, _PHONE, _ADDRESS):
        return Looks.PERSON
    if _mostly(given, _DATE) or (_DATE_HEADER.fullmatch(title) and not numbers):
        return Looks.DATE
    if _POSTCODE.fullmatch(title) and max(map(len, given)) > COARSE:
        return Looks.PLACE
    if alone and (_CODE.fullmatch(title) or (numbers and _counts_up(given))):
        return Looks.CODE
    return None if numbers else _apart(given)


def _apart(given: Sequence[str]) -> Looks | None:
    """Whether texts tell people apart, by a code or by what they wrote."""
    if len(given) < FEW_RECORDS:
        return None
    unique = sum(times == 1 for times in Counter(given).values()) / len(given)
    length = sum(map(len, given)) / len(given)
    words = sum(len(text.split()) for text in given) / len(given)
    if unique > NEARLY_UNIQUE:
        return Looks.FREE_TEXT if words > 2.5 else Looks.CODE
    return Looks.FREE_TEXT if length > LONG_TEXT and unique > NEARLY_UNIQUE / 2 else None


def _mostly(given: Sequence[str], *shapes: re.Pattern[str]) -> bool:
    """Whether most values have one of these shapes."""
    found = sum(any(shape.fullmatch(text) for shape in shapes) for text in given)
    return 2 * found > len(given) > 0


def _counts_up(given: Sequence[str]) -> bool:
    """Whether these are many whole numbers that rise from row to row without many gaps."""
    if len(given) < FEW_RECORDS or not all(re.fullmatch(r"\d{1,15}", text) for text in given):
        return False
    values = list(map(int, given))
    rising = all(low < high for low, high in itertools.pairwise(values))
    return rising and values[-1] - values[0] < 1.2 * len(values)
