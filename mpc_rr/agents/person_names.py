"""How a registrar's names of people are compared, and which ones are refused.

After Unicode's reports on identifiers and security (UAX #31, UTS #36, UTS #39): nobody is admitted
twice because her name can be written in two ways that look the same. What does not show is refused
rather than dropped, a word is written in one script (UTS #39, "highly restrictive": Latin letters
may stand beside Chinese, Japanese or Korean ones), and names that look alike (the same skeleton)
are told to the registrar, who decides.
"""

import functools
import itertools
import unicodedata
from importlib import resources

from fontTools.unicodedata import (  # type: ignore[import-untyped]
    script_extension,
    script_name,
)

from mpc_rr.errors import BLANK, JOINERS, VARIATIONS, InputError

ANY_SCRIPT = frozenset({"Zyyy", "Zinh"})
"""Common and inherited: digits, hyphens and accents go with every script."""
WRITTEN_WITH = {
    "Hani": {"Hanb", "Jpan", "Kore"},
    "Hira": {"Jpan"},
    "Kana": {"Jpan"},
    "Hang": {"Kore"},
    "Bopo": {"Hanb"},
}
"""Systems that several scripts make together: Chinese with bopomofo, Japanese, Korean."""
WITH_LATIN = frozenset({"Hanb", "Jpan", "Kore"})
JOINED = frozenset(
    {
        "Arab", "Beng", "Deva", "Gujr", "Guru", "Khmr", "Knda", "Mand", "Mlym", "Mong", "Mymr",
        "Nkoo", "Orya", "Sinh", "Syrc", "Taml", "Telu", "Tibt",
    }
)  # fmt: skip
"""The scripts whose spelling needs joiners, which show in the shapes beside them."""
MOST_MARKS = 4
DOT = "\u0307"
NO_DOT = frozenset("ijl\u0131\u0237\u0249\u0268\u029d\u03f3\u0456\u0458\u1d96\u2c7c\U0001df1a")
"""Letters on which a dot does not show: those that have one (Unicode's property Soft_Dotted, as
far as they are left after normalizing), those without, which then look as if they were the others,
and l, the top of which hides it."""
NAMELESS = {"Cc": "a control character", "Co": "for private use", "Cn": "not assigned"}


def folded(name: str) -> str:
    """Two names are one person's if this is the same: spaces, capitals, the width of letters, how
    accents are put together and joiners do not count."""
    text = name.translate(dict.fromkeys(map(ord, JOINERS)))
    for form in ("NFKD", "NFKD", "NFKC"):  # until folding and normalizing change nothing more
        text = unicodedata.normalize(form, unicodedata.normalize(form, text).casefold())
    return " ".join(text.split())


def looks(name: str) -> frozenset[str]:
    """What a name looks like, as it is written and in small letters: if two have one in common,
    somebody may take them for the same."""
    written = " ".join(unicodedata.normalize("NFKC", name).split())
    return frozenset(_skeleton(form).casefold() for form in (written, folded(name)))


def check_name(name: str) -> None:
    """`InputError` if a registrar could not tell by its looks what this name is."""
    if not name.strip():
        raise InputError("--person is empty: say who it is")
    spaced = " ".join(name.split())
    for place, character in enumerate(spaced):
        fault = _character_fault(spaced, place, character)
        if fault is not None:
            raise InputError(f"--person has {_named(character)}, which {fault}; leave it out")
    composed = unicodedata.normalize("NFKC", spaced)
    fault = _marks_fault(composed) or _digits_fault(composed)
    if fault is not None:
        raise InputError(f"--person {fault}")
    for word in composed.split():
        _check_script(word)


def _named(character: str) -> str:
    kind = unicodedata.category(character)
    name = unicodedata.name(character, NAMELESS.get(kind, "without a name"))
    return f"the character U+{ord(character):04X} ({name})"


def _character_fault(text: str, place: int, character: str) -> str | None:
    if character in JOINERS:
        needed = all(_is_joined(beside) for beside in (text[:place][-1:], text[place + 1 :][:1]))
        return None if needed else "does not show here"
    if character in VARIATIONS or character in BLANK:
        return "does not show"
    kind = unicodedata.category(character)
    if kind[0] == "C":
        return "does not show, or not the same everywhere"
    if kind[0] == "S" and not character.isascii():
        return "is a symbol, no letter"
    return None


def _is_joined(beside: str) -> bool:
    """Whether there is a letter, or a mark on one, that a joiner can change."""
    letter = unicodedata.category(beside)[0] in "LM" if beside else False
    return letter and bool(script_extension(beside) & (JOINED | {"Zinh"}))


def _marks_fault(name: str) -> str | None:
    """Marks that do not show: more on a letter than anybody writes, one twice, a second dot."""
    decomposed, letter = unicodedata.normalize("NFD", name), ""
    for is_mark, run in itertools.groupby(decomposed, lambda c: unicodedata.category(c) == "Mn"):
        marks = "".join(run)
        if is_mark and len(marks) > MOST_MARKS:
            return f"has {len(marks)} marks on one letter; write it with fewer"
        if is_mark and len(set(marks)) < len(marks):
            return "has the same mark twice on one letter, which shows once; write it once"
        if is_mark and DOT in marks and letter in NO_DOT:
            return f"has {_named(DOT)} on {letter!r}, where it does not show; leave it out"
        letter = marks[-1]
    return None


def _digits_fault(name: str) -> str | None:
    zeros = {ord(c) - int(unicodedata.decimal(c)) for c in name if c.isdecimal()}
    if len(zeros) > 1:
        return "has digits of two kinds, which may look alike; write all of one kind"
    return None


def _check_script(word: str) -> None:
    """`InputError` unless the word is written in one script, or in some that go together."""
    scripts = {letter: _systems(letter) for letter in word}
    told = {letter: systems for letter, systems in scripts.items() if systems is not None}
    if not told or frozenset.intersection(*told.values()):
        return
    others = [systems for systems in told.values() if "Latn" not in systems]
    if frozenset.intersection(*others) & WITH_LATIN:
        return
    first, *rest = told
    odd = next(letter for letter in rest if not told[letter] & told[first])
    raise InputError(
        f"--person mixes scripts in one word, {_named(odd)} beside {_script(first)}: it may look "
        "like another name; write the word in one script"
    )


def _systems(character: str) -> frozenset[str] | None:
    """The scripts and systems of writing that a character is of; None if it is of all."""
    scripts = frozenset(script_extension(character))
    if scripts & ANY_SCRIPT:
        return None
    return scripts.union(*(WRITTEN_WITH.get(script, ()) for script in scripts))


def _script(character: str) -> str:
    return str(script_name(min(script_extension(character))))


def _skeleton(text: str) -> str:
    """UTS #39's skeleton: each character replaced by what it looks like."""
    replaced = unicodedata.normalize("NFD", text).translate(_lookalikes())
    return unicodedata.normalize("NFD", replaced)


@functools.cache
def _lookalikes() -> dict[int, str]:
    """What each character looks like, from a table that `tests/lookalikes.py` makes."""
    text = resources.files("mpc_rr.agents").joinpath("lookalikes.txt").read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    table: dict[int, str] = {}
    for line in lines:
        looks_like, _, characters = line.partition(": ")
        prototype = "".join(chr(int(code, 16)) for code in looks_like.split())
        table |= {int(code, 16): prototype for code in characters.split()}
    return table
