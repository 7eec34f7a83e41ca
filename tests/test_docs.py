"""The examples of the documentation, run as they stand; and its links."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_examples_of_the_estimation_page():
    flags = doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(ROOT / "docs" / "estimation.md"), False, optionflags=flags)
    assert found.attempted > 30
    assert found.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
