"""Every exception of the package, as one tree.

::

    MpcRrError
    ├── InputError            what the user gave is wrong; nothing was started   (exit code 2)
    │   ├── ScenarioError     the scenario or study file
    │   ├── SchemaError       the attributes asked for
    │   └── DataError         a record or a CSV file
    ├── BrokerError           no broker, wrong credentials, port taken           (exit code 1)
    ├── ResultsError          the result folder cannot be written                (exit code 1)
    ├── InternalError         a fault of this program                            (exit code 1)
    └── StudyError            the study could not be finished                    (exit code 1)
        ├── Refused           the coordinator did not admit this party, or this party declined
        ├── Dropout           somebody stayed silent past a deadline
        ├── Misconduct        somebody sent what an honest agent never sends
        └── Aborted           the coordinator's signed verdict: no result, with cause and culprits

Messages are one line: what is wrong, where, and what to do. A `DataError` quotes the value that is
wrong, to the person whose record it is; nothing else quotes a record, and none is ever sent.
"""

import unicodedata
from collections.abc import Iterable


class MpcRrError(Exception):
    """Base of everything this package raises on purpose."""

    exit_code = 1


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


class Dropout(StudyError):
    """Somebody stayed silent past a deadline."""


class Misconduct(StudyError):
    """Somebody sent what an honest agent never sends."""


class Aborted(StudyError):
    """The coordinator's signed verdict: the study ends without a result."""

    receipt: tuple[bytes, ...] = ()
    """The signed public messages this party sent and heard until then, the verdict included."""


def listing(names: Iterable[str], limit: int = 5) -> str:
    """``a, b and 3 more``: names in a sentence, however many there are."""
    names = sorted(names)
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of what follows."""


def is_plain(text: str) -> bool:
    """Whether a text shows what it says, on one line: no control characters, nothing turned."""
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDI for c in text)


def plain(text: str) -> str:
    """The same text, fit for a terminal."""
    return "".join(c if is_plain(c) else " " for c in text)


def one_line(text: str, limit: int = 300) -> str:
    """Somebody else's words, fit to be shown: printable characters only, and not too many."""
    plain = "".join(c if c.isprintable() else " " for c in text[: 2 * limit])
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
