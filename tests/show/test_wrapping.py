"""Others' words stay where they are set, however wide a terminal draws them."""

import ctypes
import ctypes.util
import io
import locale
import sys
import unicodedata

import msgspec
import pytest
from helpers import make_study
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.errors import unprintable
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.study import INDENT, show_consent
from mpc_rr.show.wrapping import columns, width, wrapped

MARK = "\u0903"
"""A spacing mark that looks like a colon."""


@pytest.fixture
def drawn():
    """How many columns this machine's own terminals draw a character over."""
    if sys.platform == "win32" or ctypes.util.find_library("c") is None:
        pytest.skip("this machine's library has no wcwidth")
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        pytest.skip("this machine has no locale for UTF-8")
    library.wcwidth.argtypes = [ctypes.c_wchar]
    yield library.wcwidth
    locale.setlocale(locale.LC_CTYPE, before)


def accepted():
    for code in range(0x20, 0x110000):
        character = chr(code)
        if unicodedata.category(character) != "Cs" and unprintable(f"ß{character}") is None:
            yield character


def test_no_character_is_taken_for_narrower_than_a_terminal_draws_it(drawn):
    narrower = [c for c in accepted() if columns(c) < max(drawn(c), cell_len(c))]
    assert narrower == []


def test_rich_takes_hundreds_for_narrower(drawn):
    """So there is something to mend, and the test above can fail."""
    assert sum(cell_len(c) < drawn(c) for c in accepted()) > 400


UNEVEN = "ab \u0903\u093f\u0915\u65e5\U0001f3fb\u3248\ufe0f\n"


@given(st.lists(st.sampled_from(UNEVEN), max_size=200).map("".join), st.integers(30, 60))
def test_no_line_is_longer_than_the_terminal_is_wide(text, most):
    assume(unprintable(text.replace("\n", " ")) is None)
    lines = wrapped(text, most)
    assert all(width(line) <= most for line in lines.split("\n"))
    assert lines.replace("\n", "").replace(" ", "") == text.replace("\n", "").replace(" ", "")


@given(st.text("abc ", max_size=300))
def test_plain_words_are_wrapped_as_rich_wraps_them(text):
    """Spaces at the ends of lines aside, and lines of nothing but spaces."""
    console = Console(width=20, file=io.StringIO())
    theirs = [line.plain.rstrip() for line in Text(text).wrap(console, 20)]
    ours = [line.rstrip() for line in wrapped(text, 20).split("\n")]
    assert [line for line in ours if line] == [line for line in theirs if line]


@pytest.mark.parametrize("filler", ["a" + MARK, "\u3248", "\U0001f3fb"])
@pytest.mark.parametrize("size", [60, 80, 100])
def test_an_author_never_speaks_where_we_do(filler, size, drawn):
    """Words that follow a line full of these began at the very edge, as ours do."""
    theirs = "ε = 0.01."
    full = filler * ((size - INDENT) // sum(map(drawn, filler)))
    study = msgspec.structs.replace(make_study(), description=f"{full}{theirs}")
    screen = io.StringIO()
    show_consent(Console(file=screen, width=size), consent_to(study, Account()))
    shown = list(lines_drawn(screen.getvalue(), size, drawn))
    assert f"{' ' * INDENT}{theirs}" in shown
    assert theirs not in [line.rstrip() for line in shown]


def lines_drawn(text, size, drawn):
    """What a terminal makes of a text: it wraps at its edge."""
    for line in text.split("\n"):
        shown, at = "", 0
        for character in line:
            if at + drawn(character) > size:
                yield shown
                shown, at = "", 0
            shown, at = shown + character, at + drawn(character)
        yield shown


@pytest.mark.parametrize("at", range(50, 130))
def test_only_our_own_words_begin_at_the_edge_of_the_consent_screen(at):
    """The name of a question stands in sentences of ours, too."""
    name = "x. For your whole record: ε = 0.01"
    schema = Schema((Attribute(name, "nominal", ("a", "b")), Attribute("y", "nominal", ("a", "b"))))
    protocol = CollaborativeKAnonymity(
        k=5, quasi_identifiers=(name,), confidential=("y",), release="anatomy"
    )
    study = msgspec.structs.replace(make_study(20, protocol=protocol), schema=schema)
    console = Console(width=at, record=True, file=io.StringIO())
    show_consent(console, consent_to(study, Account()))
    told = console.export_text().splitlines()
    assert sum("For your whole record" in line for line in told) > 2
    assert sum(line.startswith("For your whole record") for line in told) == 1
    ours = ("For your whole record", "Warning", "Note", "Study", "Asked of", "What you would")
    heads = (*ours, "Its author", "Your answers")
    assert all(line.startswith((*heads, "  ")) for line in told if line)
