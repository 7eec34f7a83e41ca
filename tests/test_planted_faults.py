"""The faults that `planted_faults` plants can be planted; and it says rightly what notices them."""

import pytest
from planted_faults import ROOT, Fault, faults_in, main, verdicts, wrong_with

FAULTS = faults_in()
CODE = """\
def larger(a, b):
    return a if a >= b else b
"""
TESTS = """\
import pytest
import code_under_test as code

@pytest.fixture
def both():
    return code.larger(1, 2), code.larger(2, 1)

def test_the_larger(both):
    assert both == (2, 2)

def test_a_number():
    assert code.larger(3, 3) == 3

def test_that_fails():
    assert code.larger(3, 3) == 4
"""


def test_every_fault_can_be_planted_and_every_test_exists():
    wrong = {f"{fault.book}: {fault.file}: {fault.was}": wrong_with(fault) for fault in FAULTS}
    assert not {place: why for place, why in wrong.items() if why is not None}


def test_no_fault_is_there_twice():
    planted = [(fault.file, fault.planted((ROOT / fault.file).read_text())) for fault in FAULTS]
    assert len(set(planted)) == len(planted)


@pytest.fixture
def tree(tmp_path):
    """A project of one function."""
    (tmp_path / "mpc_rr").mkdir()
    (tmp_path / "mpc_rr" / "code_under_test.py").write_text(CODE)
    (tmp_path / "tests" / "faults").mkdir(parents=True)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["mpc_rr"]\n')
    return tmp_path


def fault(was, became, *tests, **options):
    named = tuple(f"tests/test_it.py::{test}" for test in tests)
    return Fault("a.toml", "mpc_rr/code_under_test.py", was, became, named, **options)


def test_what_notices_a_fault(tree):
    larger, number, fails = "test_the_larger", "test_a_number", "test_that_fails"
    found = dict(
        verdicts(
            [
                noticed := fault("else b", "else a", number, larger),
                unnoticed := fault("else b", "else 0", number),
                unnamed := fault("else b", "else c", larger),
                not_imported := fault("def larger", "import nothing\ndef larger", number),
                failing := fault("else b", "else 1", fails),
                equivalent := fault(">=", ">", equivalent="equal numbers are the same"),
                twice := fault("b", "c", number),
                nowhere := fault("lower", "c", number),
                same := fault("else b", "else b", number),
                grammar := fault("else b", "else", number),
                missing := fault("else b", "else 2", "test_nothing"),
                nobody := fault("else b", "else 3"),
            ],
            tree,
        )
    )
    assert found[noticed].word == "noticed"
    assert found[unnoticed].word == "NOT NOTICED"
    assert "NameError" in found[unnamed].why
    assert found[not_imported].why == "ERROR tests/test_it.py"
    assert "fails without it" in found[failing].why
    assert found[equivalent].word == "equivalent"
    assert "stands 3 times" in found[twice].why
    assert "stands 0 times" in found[nowhere].why
    assert "the same" in found[same].why
    assert "invalid syntax" in found[grammar].why
    assert "there is no tests/test_it.py::test_nothing" in found[missing].why
    assert "neither" in found[nobody].why
    good = {noticed, equivalent}
    assert {f for f, verdict in found.items() if not verdict.bad} == good
    assert (tree / "mpc_rr" / "code_under_test.py").read_text() == CODE


def test_entries_with_other_keys_are_told(tree):
    book = tree / "tests" / "faults" / "a.toml"
    book.write_text('[[fault]]\nfile = "x"\nwas = "a"\nbecame = "b"\n')
    with pytest.raises(ValueError, match=r"a\.toml: a fault with the keys file, was, became"):
        faults_in(tree)


ENTRY = """
[[fault]]
file = "mpc_rr/code_under_test.py"
was = "else b"
became = "else {became}"
tests = ["tests/test_it.py::{test}"]
"""


def test_the_command_fails_if_a_fault_goes_unnoticed(tree, capsys):
    book = tree / "tests" / "faults" / "a.toml"
    noticed = ENTRY.format(became="a", test="test_the_larger")
    book.write_text(noticed + ENTRY.format(became="0", test="test_a_number"))
    assert main([], tree) == 1
    first, second, total = capsys.readouterr().out.splitlines()
    assert first.split() == ["noticed", "a.toml", "mpc_rr/code_under_test.py:2", "else", "b"]
    assert second.startswith("NOT NOTICED")
    assert total == "1 NOT NOTICED, 1 noticed"
    assert main(["--file", "mpc_rr/other*"], tree) == 0
    assert main(["--most", "1", "--minutes", "0"], tree) == 0
    assert capsys.readouterr().out.endswith("1 left out\n")
