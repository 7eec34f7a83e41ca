"""The examples of the documentation, run as they stand; its links; and the names it names."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import mpc_rr
from mpc_rr.network.envelope import Message
from mpc_rr.privacy.disclosures import AnyDisclosure
from mpc_rr.privacy.sentences import cost_of

ROOT = Path(__file__).parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [page for page in TOP if page.exists()] + sorted((ROOT / "docs").rglob("*.md"))
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = "mpc_rr|tests|scenarios|benchmarks|docs"


@pytest.mark.parametrize("page", ["estimation.md", "python.md"])
def test_the_examples_run(page):
    flags = doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(ROOT / "docs" / page), False, optionflags=flags)
    assert found.attempted > 10
    assert found.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


# ── Names ──────────────────────────────────────────────────────────────────────────────────────


def paths_in(text):
    """Paths from the top of the repository. What is told to be made up has a capital in it."""
    found = re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[a-z0-9_./-]*(?![\w<*…{{])", text)
    return {path.rstrip(".") for path in found}


def dotted_in(text):
    return set(re.findall(r"(?<![\w./\"])mpc_rr(?:\.[A-Za-z_]\w*)+(?!\.?\w)", text))


def found(dotted):
    """What a dotted name names: modules as far as there are any, then attributes."""
    parts, here = dotted.split("."), None
    for count in range(len(parts), 0, -1):
        try:
            here = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            here = getattr(here, part)
        return here
    raise ModuleNotFoundError(dotted)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_and_names_exist(page):
    text = page.read_text()
    missing = sorted(path for path in paths_in(text) if not (ROOT / path).exists())
    assert not missing
    for dotted in sorted(dotted_in(text)):
        found(dotted)


def test_a_path_or_name_that_is_gone_is_noticed():
    text = "See `mpc_rr/scenario.py`, mpc_rr/study/, and `mpc_rr.privacy.ledger.Release`."
    assert paths_in(text) == {"mpc_rr/scenario.py", "mpc_rr/study/"}
    assert not (ROOT / "mpc_rr/scenario.py").exists()
    assert dotted_in(text) == {"mpc_rr.privacy.ledger.Release"}
    with pytest.raises(AttributeError):
        found("mpc_rr.privacy.ledger.Release")
    with pytest.raises(AttributeError):
        found("mpc_rr.scenario.Study")


def rows_below(heading):
    """The cells of the table below a heading of the architecture page."""
    section = ARCHITECTURE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_everything_is_where_the_page_says():
    rows = rows_below("Where is …?")
    assert len(rows) > 14
    for question, files, names in rows:
        modules = [
            importlib.import_module(path.removesuffix(".py").replace("/", "."))
            for path in re.findall(r"`([^`]+\.py)`", files)
        ]
        for name in re.findall(r"`([^`]+)`", names):
            first, *rest = name.split(".")
            homes = [getattr(module, first) for module in modules if first in vars(module)]
            assert homes, f"{question} {name}"
            for part in rest:
                assert hasattr(homes[0], part), f"{question} {name}"


def test_the_layers_of_the_page_are_those_of_the_contract():
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (one for one in linter["contracts"] if one["id"] == "one-way")
    assert contract["exhaustive"]
    section = ARCHITECTURE.split("\n## Layers\n")[1]
    assert re.findall(r"```\n(.*?)```", section, re.DOTALL)[0].splitlines() == contract["layers"]


def messages(kind=Message):
    for one in kind.__subclasses__():
        yield one
        yield from messages(one)


def test_the_page_names_every_message_whose_class_is_called_otherwise_than_its_step():
    for module in pkgutil.walk_packages(mpc_rr.__path__, "mpc_rr."):
        if module.name != "mpc_rr.__main__":
            importlib.import_module(module.name)
    ours = [m for m in messages() if m.__module__.startswith("mpc_rr.") and hasattr(m, "step")]
    differing = {
        (f"`{kind.__module__}.{kind.__name__}`", f"`{kind.step}`")
        for kind in ours
        if re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower() != kind.step
    }
    assert differing == {tuple(row) for row in rows_below("Names on the wire")}


# ── What people are told ───────────────────────────────────────────────────────────────────────

SETS = ((("a", "b"), ("c", "d")), (("a", "c"), ("b", "d")), (("a", "d"), ("b", "c")))
EXAMPLES = {
    "RandomizedResponse": {"combinations": 4, "keep": 0.5, "epsilon": 1.0},
    "MatrixResponse": {
        "combinations": 4,
        "least": 0.4,
        "most": 0.56,
        "epsilon": 1.95,
        "left": 0.876,
        "attributes": ("a",),
    },
    "ClusteredResponse": {"epsilon": 3.0, "each": (1.0, 2.0)},
    "SubsetSelection": {"groups": 10, "epsilon": 2.0},
    "AdaptiveResponse": {
        "truth": 0.5,
        "epsilon": 2.2,
        "claimed": 0.7,
        "sets": SETS,
        "prices": ((1.1, 1.1),) * 3,
        "attributes": ("a", "b", "c", "d"),
    },
    "RandomizedSum": {
        "epsilon": 3.0,
        "claimed": 1.0,
        "crowd": 40,
        "expected": 60,
        "least": 50,
        "attributes": ("a", "b", "c"),
        "by_answer": (2.0, 2.0, 2.0),
    },
    "ExactSum": {"crowd": 40, "withstands": 24, "expected": 60, "least": 50},
    "ExactNumbers": {"crowd": 40, "withstands": 24, "expected": 60, "least": 50},
    "NoisySum": {
        "epsilon": 1.0,
        "delta": 1e-9,
        "withstands": 24,
        "expected": 60,
        "least": 50,
        "attributes": ("a", "b", "c"),
        "by_answer": (2 / 3, 2 / 3, 2 / 3),
    },
    "Told": {},
    "InGroup": {"crowd": 5},
    "Masked": {"recommended": "noise:5"},
    "Unstated": {},
}


def mechanisms():
    """The table of docs/disclosures.md, from the classes that the consent screen is made of."""
    lines = [
        "| mechanism | how | seen | cost | in a second run |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind in get_args(AnyDisclosure):
        named = {"what": "as its protocol calls it", "attributes": ("a", "b")}
        event = kind(**named | EXAMPLES[kind.__name__])
        again = event.compared or "the very same answer: nothing new"
        cells = (f"`{kind.__name__}`", event.how, event.seen, cost_of(event), again)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_about_disclosures_says_what_the_screen_says():
    assert mechanisms() in (ROOT / "docs" / "disclosures.md").read_text()
