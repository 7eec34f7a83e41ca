"""Names in a registrar's register: what is refused, what is the same, what looks the same."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lookalikes import FILE, Icu

from mpc_rr.agents.person_names import check_name, folded, looks
from mpc_rr.errors import InputError

GENUINE = [
    "Jane Müller", "O’Neill", "O'Neill", "王小明", "Иван Петров", "Νίκος", "محمد", "नरेन्द्र",
    "van der Berg-Smith", "田中さくら", "M-1042", "Jane Müller M-1042", "김민준", "Nguyễn Thị Ánh",
    "Łukasz Żółw", "Ján Ďurďa", "ジェーン・ミュラー", "יעקב כ״ץ", "D’Arcy‑Smith", "ᎠᎩ", "T. 王",
    "李X明", "Jane Doe (b. 1980)", "№ 7",
]  # fmt: skip
WITH_JOINERS = ["علی\u200cرضا", "ශ්\u200dරී", "क्\u200dष"]


@pytest.mark.parametrize("name", [*GENUINE[:-1], *WITH_JOINERS])
def test_genuine_names_are_accepted(name):
    check_name(name)
    check_name(unicodedata.normalize("NFD", name))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Jane\u200b Müller", "U+200B (ZERO WIDTH SPACE)"),
        ("Jane M\u00adüller", "U+00AD (SOFT HYPHEN)"),
        ("Jane \u2060Müller", "U+2060 (WORD JOINER)"),
        ("\u202aJane Müller", "U+202A (LEFT-TO-RIGHT EMBEDDING)"),
        ("J\u0430ne Müller", "U+0430 (CYRILLIC SMALL LETTER A) beside Latin"),
        ("Jane Müller\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
        ("Jane\u2800Müller", "U+2800 (BRAILLE PATTERN BLANK)"),
        ("Jane Müller\u0007", "U+0007 (a control character)"),
        ("Jane\u180eMüller", "U+180E (MONGOLIAN VOWEL SEPARATOR)"),
        ("邉\U000e0100", "U+E0100 (VARIATION SELECTOR-17)"),
        ("Jane\u200dMüller", "U+200D (ZERO WIDTH JOINER), which does not show here"),
        ("محمد\u200c", "U+200C (ZERO WIDTH NON-JOINER)"),
        ("\ue000", "U+E000 (for private use)"),
        ("Jane\U000e0fff", "U+E0FFF (not assigned)"),
        ("Jane \u3164", "U+3164 (HANGUL FILLER)"),
        ("Jane\u034f", "U+034F (COMBINING GRAPHEME JOINER)"),
        ("O\u00b4Neill", "U+00B4 (ACUTE ACCENT), which is a symbol"),
        ("№ 7", "U+2116 (NUMERO SIGN), which is a symbol"),
        ("Jane Mü\u0308ller", "the same mark twice"),
        ("Jane Ma\u0300\u0301\u0302\u0303\u0304ller", "5 marks on one letter"),
        ("Ki\u0307m Miller", "U+0307 (COMBINING DOT ABOVE) on 'i', where it does not show"),
        ("Kim Mil\u0307ler", "U+0307 (COMBINING DOT ABOVE) on 'l'"),
        ("Kim M\u0131\u0307ller", "U+0307 (COMBINING DOT ABOVE) on 'ı'"),
        ("Kim Mi\u0331\u0307ller", "U+0307 (COMBINING DOT ABOVE) on 'i'"),
        ("Сергі\u0307й", "U+0307 (COMBINING DOT ABOVE) on 'і'"),
        ("M-1\u0662", "digits of two kinds"),
        ("Иван-Smith", "mixes scripts in one word"),
        ("王\u0430", "mixes scripts in one word"),
        ("a王\u0430", "mixes scripts in one word"),
        (" ", "--person is empty"),
    ],
)
def test_what_does_not_show_as_what_it_is_is_refused_and_named(name, says):
    with pytest.raises(InputError) as refused:
        check_name(name)
    assert says in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "written",
    [
        "jane  MÜLLER",
        "Jane Mu\u0308ller",
        "Jane\u00a0Müller",
        "Jane \uff2d\u00fcller",
        "\tJane Müller ",
    ],
)
def test_a_person_is_the_same_however_she_is_written(written):
    assert folded(written) == folded("Jane Müller")


@pytest.mark.parametrize("name", WITH_JOINERS)
def test_a_joiner_makes_no_other_person(name):
    without = name.replace("\u200c", "").replace("\u200d", "")
    assert folded(name) == folded(without)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sasha", "\u0405\u0430\u0455\u04bb\u0430"),  # all Cyrillic
        ("O’Neill", "O'Neill"),
        ("Ali", "AIi"),
        ("M-1042", "M-l042"),
        ("M-1O42", "m-1042"),
        ("Marnie", "Mamie"),
        ("Ann", "\u0251nn"),
        ("Berg-Smith", "Berg‐Smith"),
        ("Νina", "Nina"),
    ],
)
def test_names_that_look_alike_are_told(one, other):
    assert folded(one) != folded(other)
    assert looks(one) & looks(other)


def test_different_names_do_not_look_alike():
    people = [*GENUINE, "Jane Miller", "M-1043", "M-2041", "Ivan Petrov", "Nikos"]
    people.remove("O'Neill")
    for place, name in enumerate(people):
        assert not any(looks(name) & looks(other) for other in people[place + 1 :]), name


@given(st.text())
def test_folding_and_looks_are_settled(name):
    """Once folded, a name folds to itself; and what is the same person's looks the same."""
    assert folded(folded(name)) == folded(name)
    assert looks(name) & looks(folded(name))


@given(st.text(), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_no_way_to_put_a_name_together_makes_another_person(name, form):
    assert folded(unicodedata.normalize(form, name)) == folded(name)


@given(st.text(min_size=1), st.characters(categories=["Cc", "Cf", "Co", "Cn"]), st.data())
def test_nothing_invisible_is_accepted_in_a_latin_name(name, character, data):
    if character.isspace() or not name.isascii():
        return
    place = data.draw(st.integers(0, len(name)))
    with pytest.raises(InputError):
        check_name(f"x{name[:place]}{character}{name[place:]}x")


def test_the_table_of_lookalikes_is_icus():
    try:
        icu = Icu()
    except OSError as error:
        pytest.skip(str(error))
    lines = FILE.read_text().splitlines()
    if not any(f"ICU {icu.version}'s" in line for line in lines):
        pytest.skip(f"the table is not of ICU {icu.version}; tests/lookalikes.py makes it again")
    entries = [line.split(": ") for line in lines if not line.startswith("#")]
    assert len(entries) > 1000
    for looks_like, characters in entries:
        prototype = "".join(chr(int(code, 16)) for code in looks_like.split())
        for code in characters.split():
            assert icu.skeleton(chr(int(code, 16))) == prototype
