"""Every exception of the package, as one tree.

::

    MpcRrError
    ├── InputError            what the user gave is wrong; nothing was started   (exit code 2)
    │   ├── ScenarioError     the scenario or study file
    │   ├── SchemaError       the attributes asked for
    │   └── DataError         a record or a CSV file
    ├── BrokerError           no broker, port taken, connection lost             (exit code 1)
    │   └── BrokerRefusal     the broker is there and does not let us            (exit code 1)
    ├── ResultsError          the result folder cannot be written                (exit code 1)
    ├── InternalError         a fault of this program                            (exit code 1)
    └── StudyError            the study could not be finished                    (exit code 1)
        ├── Refused           the coordinator did not admit this party, or this party declined
        ├── Dropout           somebody stayed silent past a deadline
        │   └── Unheard       … or could not be heard here: nobody is to blame
        ├── Misconduct        somebody sent what an honest agent never sends
        └── Aborted           the coordinator's signed verdict: no result; the blame is its word

Messages are one line: what is wrong, where, and what to do. A `DataError` quotes the value that is
wrong, to the person whose record it is; nothing else quotes a record, and none is ever sent.
"""

import re
import unicodedata
from collections.abc import Iterable


class MpcRrError(Exception):
    """Base of everything this package raises on purpose."""

    exit_code = 1
    receipt: tuple[bytes, ...] = ()
    """Where it ended a study for a party: the signed public messages that this party sent and
    heard until then, with the verdict if there was one."""


class InputError(MpcRrError):
    """What the user gave is wrong; nothing was started."""

    exit_code = 2


class ScenarioError(InputError):
    """The scenario or study file is wrong."""


class SchemaError(InputError):
    """The attributes asked for make no sense."""


class DataError(InputError):
    """A record or a CSV file does not fit the schema, or cannot be read."""


class BrokerError(MpcRrError):
    """The MQTT broker cannot be reached, refuses us, or cannot be started."""


class BrokerRefusal(BrokerError):
    """The broker is there, but not for us: trying again would change nothing."""

    may_pass = False
    """Whether it also refuses those who have the right, for a while."""


class ResultsError(MpcRrError):
    """The result folder cannot be written."""


class InternalError(MpcRrError):
    """A fault of this program: something happened that should not."""


class StudyError(MpcRrError):
    """The study could not be finished."""

    def __init__(self, message: str, culprits: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.culprits: tuple[str, ...] = tuple(sorted(set(culprits)))


class Refused(StudyError):
    """The coordinator did not admit this party, or this party declined to take part."""


class Declined(Refused):
    """This party does not go on, for reasons of its own: others hear only that it declined."""


class Dropout(StudyError):
    """Somebody stayed silent past a deadline."""

    @property
    def missing(self) -> tuple[str, ...]:
        """From whom nothing has come."""
        return self.culprits


class Unheard(Dropout):
    """Far more came in than a study's messages, or there was no connection: who is missing may have
    spoken. Nobody is named."""

    def __init__(self, message: str, missing: Iterable[str]) -> None:
        super().__init__(message)
        self._missing = tuple(sorted(set(missing)))

    @property
    def missing(self) -> tuple[str, ...]:
        """From whom nothing has got through."""
        return self._missing


class Misconduct(StudyError):
    """Somebody sent what an honest agent never sends."""


class Aborted(StudyError):
    """The coordinator's signed verdict: the study ends without a result.

    Cause and culprits are the coordinator's word, as the message says.
    """


def listing(names: Iterable[str], limit: int = 5) -> str:
    """``a, b and 3 more``: names in a sentence, however many there are."""
    names = sorted(names)
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""The kinds of characters that show as nothing, as something else in every font, or as a command to
the terminal: controls, formats (which turn the direction, or are invisible), halves of pairs,
private and unassigned ones, ends of lines."""
BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4\U0001d159"
) | frozenset(map(chr, range(0xE0100, 0xE01F0)))
"""Letters, marks and symbols that show as nothing; the last ones choose between forms of Chinese
characters, which show without them, too."""
VARIATIONS = frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Invisible, too: they choose between the forms of the character before them, as emoji need."""
JOINERS = "\u200c\u200d"
"""Invisible, but spelling: Persian, Indian scripts and composed emoji need them, inside a word."""

WIDE = frozenset("\u2e3b\ufdfd\U00012031\U00012219\U0001242b")
"""Drawn over a good part of the line, whatever stands there: the widest of Unicode."""
MOST_MARKS = 5
"""So many may stand on one letter (Hebrew with points and accents); more are drawn over other
lines."""


def _joins(text: str, place: int) -> bool:
    """Whether a joiner stands where a script needs it: between letters, marks or symbols that are
    not ASCII. Elsewhere it would only make two texts look the same."""
    beside = text[max(place - 1, 0) : place] + text[place + 1 : place + 2]
    spelled = [c for c in beside if not c.isascii() and unicodedata.category(c)[0] in "LMS"]
    return text[place] in JOINERS and len(spelled) == 2


def hidden(text: str) -> list[int]:
    """Where a text has characters that do not show, on one line, as what they are."""
    if text.isascii() and text.isprintable():
        return []
    stacked = _stacked(text)
    return [
        place
        for place, character in enumerate(text)
        if place in stacked or character in WIDE or _is_hidden(text, place, character)
    ]


def _stacked(text: str) -> set[int]:
    """Where marks stand on a letter that has enough of them, those that it is composed with
    included."""
    marks, found = 0, set()
    for place, character in enumerate(text):
        if character in JOINERS:
            continue
        parts = [unicodedata.category(c)[0] == "M" for c in _decomposed(character)]
        marks = sum(parts) + (marks if parts[0] else 0)
        if parts[0] and marks > MOST_MARKS:
            found.add(place)
    return found


def _decomposed(character: str) -> str:
    return character if character.isascii() else unicodedata.normalize("NFD", character)


def _is_hidden(text: str, place: int, character: str) -> bool:
    if character in VARIATIONS:
        return text[max(place - 1, 0) : place].isascii()
    if character in BLANK:
        return True
    return unicodedata.category(character) in NOT_SHOWN and not _joins(text, place)


def unprintable(text: str) -> str | None:
    """Why a text cannot be shown to people on one line, or None."""
    places = hidden(text)
    if not places:
        return None
    place, code = places[0], f"U+{ord(text[places[0]]):04X}"
    if text[place] in WIDE:
        return f"it has a character that is drawn over others ({code})"
    if place in _stacked(text):
        return f"it has more than {MOST_MARKS} marks on one letter ({code})"
    return f"it has a character that cannot be printed ({code})"


def plain(text: str) -> str:
    """The same text, fit for a terminal: on one line, what does not show is spelled out."""
    while places := set(hidden(text)):  # what stood beside them may not show any more, either
        text = "".join(_spelled(c) if p in places else c for p, c in enumerate(text))
    return text


def quoted(name: str) -> str:
    """Somebody else's name in a sentence of ours: its own quotation marks, and what looks like
    them, do not end it, nor do many spaces set apart what comes after."""
    shown = _QUOTATION_MARKS.sub('"', " ".join(plain(name).split()))
    return f"“{shown}”"


_QUOTATION_MARKS = re.compile(
    "[\u00ab\u00bb\u02ba\u02dd\u02ee\u02f5\u02f6\u05f2\u05f4\u1cd3\u201c-\u201f\u2033\u2034\u2036\u2037"
    "\u2057\u275d\u275e\u2760\u2e42\u3003\u301d-\u301f\uff02\U0001f676-\U0001f678]"
    "|['`\u00b4\u02b9\u02bb-\u02be\u02c8\u02ca\u02cb\u055a\u055d\u05f3\u07f4\u07f5\u2018-\u201b\u2032\u2035"
    "\u275b\u275c\ua78c\uff07]{2,}"
)
"""Unicode's double quotation marks and what looks like them; or two single ones."""


def all_quoted(names: Iterable[str], limit: int = 80) -> str:
    """Several of them, none of which can pass for two, nor for a sentence of ours."""
    return ", ".join(quoted(one_line(name, limit)) for name in names)


def key(name: str) -> str:
    """A key of somebody else's file, where a place in it is named: bare if it can only be one."""
    return name if _BARE_KEY.fullmatch(name) else quoted(one_line(name, 60))


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")


def plain_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(plain, text.split("\n")))


def _spelled(character: str) -> str:
    return " " if character in "\t\n\r" else character.encode("unicode_escape").decode()


def one_line(text: str, limit: int = 300) -> str:
    """Somebody else's words, fit to be shown: printable characters only, and not too many."""
    shown = plain(text[: 2 * limit])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def out_of(n: int, there: int, expected: int) -> str:
    """``5 of 8 parties (6 were there)``: of those expected, not of those who were there."""
    came = "" if there == expected else f" ({there} were there)"
    return f"{n} of {expected} parties{came}"
