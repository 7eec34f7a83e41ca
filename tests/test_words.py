"""What people read has the words of the glossary, not the private ones that they replaced.

Looked at are the sentences in the program's text (errors, terminal, report, consent, help) and what
terminal and report showed of every scenario (``tests/golden``). Names in files, on the wire and in
the code keep theirs, and so do comments and docstrings.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BANNED = {
    r"\b[Bb]ooks\b": "privacy ledger",
    r"\b(dice|die was|throws? of)\b": "random contribution, coin flip, public randomness",
    r"\blying coordinator\b": "malicious coordinator",
    r"\bcurious coordinator\b": "semi-honest coordinator",
    r"\b(is|are|was|were|be|or|and) (not )?in order\b(?!,)": "valid, invalid",
    r"\bparcels?\b": "sealed message",
    r"\bcounted together\.": "included in the secure sum",
    r"\b(give|gives|given|gave|giving)( \S+){0,3} away\b|\bbetray": "disclose, reveal, identify",
    r"\bseen under your name\b": "published under your name",
    r"\b([Ww]ho|[Ww]hom)ever\b": "anyone who, or the actor's name",
    r"\b([Ss]ome|[Ee]very|[Aa]ny)body\b": "someone, all parties, anyone",
    r"\bfalse identit|\bphantom|\bparties of (her|his|their) own\b": "controlled parties",
    r"\binvented (people|parties|populations)\b": "synthetic records",
    r"\b[Hh]ow strongly .* depends? on each other, as|\bHow strongly each pair\b": "association",
    r"\bprices?\b|\bPrices?\b": "privacy cost",
    r"\bε (of )?without bound\b|\bwithout bound\b": "no ε bound",
    r"\b(lost|left) on the way\b": "dropped out",
    r"\bconfide[ds]?\b": "sent to the coordinator only",
    r"\bin earnest\b": "in production, with real records",
    r"\b[Ss]o many\b(?! (that|as)\b)": "this many, how many",
    r"\b[Aa]new\b": "again; recompute",
    r"\bnot end well\b": "aborted",
    r"\breckon|\bwished\b|\bon the quiet\b|\bthe very same\b|\bthe own\b": "plain modern English",
    r"\bnot honest\b": "broke the protocol",
}
"""What is not said, and what is."""
KEPT = {"told to everybody"}
"""What a disclosure is called in ledgers and result folders, whatever people read of it."""
OF_THEN = {
    "mpc_rr/results/format1.py": "what result format 1 said, which older folders are held to",
    "mpc_rr/network/broker.py": "the configuration of NATS, with comments for its reader",
}


def sentences(source):
    """The string literals that have more than a word, but for docstrings; those of commands count.

    f-strings have “…” for what is put in; text that goes on over several literals is one.
    """
    tree = ast.parse(source)
    silent = {id(text) for node in ast.walk(tree) for text in docstrings(node)}
    inside = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
        for part in node.values
    }  # fmt: skip
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in silent | inside else node.value
        if " " in text.strip() and text not in KEPT:
            yield node.lineno, " ".join(text.split())


def docstrings(node):
    """All strings that stand alone below a node; of a command without the first, its help."""
    body = getattr(node, "body", ())
    alone = [
        line.value
        for line in (body if isinstance(body, list) else ())
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    ]
    decorated = getattr(node, "decorator_list", ())
    return alone[1:] if any(".command" in ast.unparse(d) for d in decorated) else alone


def banned(text):
    """The banned words in it, each with what to say instead."""
    return [
        f"“{found[0]}”: {instead}"
        for pattern, instead in BANNED.items()
        for found in re.finditer(pattern, text)
    ]


MODULES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "mpc_rr").rglob("*.py"))
    if path.relative_to(ROOT).as_posix() not in OF_THEN
]


@pytest.mark.parametrize("folder", sorted({Path(module).parent.as_posix() for module in MODULES}))
def test_no_sentence_of_the_program_has_a_banned_word(folder):
    found = [
        f"{module}:{line}: {word} ({text})"
        for module in MODULES
        if Path(module).parent.as_posix() == folder
        for line, text in sentences((ROOT / module).read_text())
        for word in banned(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/golden").glob("*.txt")), ids=lambda p: p.stem
)
def test_no_terminal_or_report_shows_a_banned_word(path):
    assert not banned(" ".join(path.read_text().split()))


def test_banned_words_are_noticed():
    """In a text, an f-string, over two lines and in a command's help; not in other docstrings."""
    source = '''
"""Whoever reads this."""
@app.command()
def run():
    """Write invented people."""
def other():
    """Whoever reads that."""
    raise InputError("the coordinator is not "
                     f"honest: {somebody} keeps books")
    return "anew"
'''
    found = {word.split("”")[0][1:] for _, text in sentences(source) for word in banned(text)}
    assert found == {"invented people", "not honest", "books"}


@pytest.mark.parametrize(
    "text",
    [
        "Everybody sees it", "to whomever it tells", "give ill away", "an ε without bound",
        "the dice were opened", "the study did not end well", "one in so many", "at what price",
        "50 parties counted together.", "it is not in order", "parties of her own",
    ],
)  # fmt: skip
def test_each_of_these_was_once_printed(text):
    assert banned(text)


def test_plain_words_are_not_banned():
    for text in ("All parties see the totals.", "in order, and then", "so many that k is reached"):
        assert not banned(text)
