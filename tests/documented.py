"""What the commands of the docs need to run as they stand: files, and folders of results.

``PAGES`` prepares an empty folder for the blocks of a page, which then run one after the other;
``CHANGED`` says what a line becomes in the test; ``NOT_RUN`` which lines are not run, and why.
"""

import random
import re
import shutil
import sys
from pathlib import Path

from mpc_rr.__main__ import main

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)

ASKED = """
title = "As the page has it"
study = "documented"
[schema.car]
categories = ["no", "yes"]
[schema.place]
categories = ["city", "suburb", "village"]
[schema.trips]
type = "ordinal"
categories = ["0", "1", "2"]
[schema.age]
bins = [16, 30, 45, 65]
[schema."Stress level"]
type = "ordinal"
categories = ["low", "high"]
[protocol]
name = "rr_independent"
keep = 0.9
[parties]
count = 400
"""
LEARNT = """
title = "As the page has it"
study = "learnt"
[schema.income]
categories = ["<=50K", ">50K"]
[schema.education]
type = "ordinal"
categories = ["1", "2", "3"]
[protocol]
name = "rr_joint"
epsilon = 6
[parties]
count = 400
"""


def table(path, rows, **columns):
    """A CSV file: of each column, one of these values in each row, by chance."""
    draw = random.Random(path.name)
    lines = [",".join(draw.choice(values) for values in columns.values()) for _ in range(rows)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")


def health(folder):
    """The study file of the page itself, and people who answer it."""
    text = (ROOT / "README.md").read_text()
    (study,) = (block for block in TOML.findall(text) if "Health at work" in block)
    (folder / "health.toml").write_text(study)
    ages = [str(age) for age in range(16, 90)]
    table(folder / "people.csv", 200, stress=["low", "medium", "high"], age=ages)


def finished(folder, study):
    """``run``: the results of a study."""
    (folder / "asked.toml").write_text(study)
    people = folder / "answers.csv"
    table(
        people, 400, car=["no", "yes", "yes"], place=["city", "suburb", "village"],
        trips=["0", "1", "2"], age=[str(age) for age in range(16, 66)],
        **{"Stress level": ["low", "high"]},
    )  # fmt: skip
    run(folder, "asked.toml", "--data", "answers.csv")


def run(folder, study, *options):
    """``run``: a study that was simulated in this process."""
    there = [str(folder / part) if (folder / part).exists() else part for part in (study, *options)]
    before = sys.argv
    sys.argv = ["mpc-rr", "run", *there, "--transport", "memory", "--out", str(folder / "run")]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.argv = before


def readme(folder):
    health(folder)
    finished(folder, ASKED)


def compare(folder):
    table(folder / "survey.csv", 120, smokes=["no", "yes"], sport=["no", "yes"],
          age=["20", "30", "40", "50", "60"])  # fmt: skip


def compute(folder):
    """The page makes the results itself; for its last block there is a sample's weights."""
    names = [f"party-{number:04}" for number in range(1, 1001)]
    lines = [f"{name},{1 + number % 3}" for number, name in enumerate(names)]
    (folder / "sample.csv").write_text("\n".join(["party,weight", *lines]) + "\n")


def learning(folder):
    (folder / "study.toml").write_text(LEARNT)
    for name in ("asked.csv", "test.csv"):
        table(folder / name, 400, income=["<=50K", ">50K"], education=["1", "2", "3"])
    shutil.copy(ROOT / "docs" / "machine_learning.py", folder)


def condense(folder):
    (folder / "study.toml").write_text(ASKED)
    finished(folder, ASKED)
    shutil.copy(folder / "answers.csv", folder / "pilot.csv")


def randomize(folder):
    table(folder / "patients.csv", 200, sex=["f", "m"], smokes=["no", "yes", "yes"])


PAGES = {
    "README.md": readme,
    "docs/compare.md": compare,
    "docs/compute.md": compute,
    "docs/export.md": lambda folder: run(folder, "rr_views"),
    "docs/index.md": lambda _folder: None,
    "docs/machine-learning.md": learning,
    "docs/planning.md": condense,
    "docs/protocols/collaborative_k_anonymity.md": lambda folder: run(folder, "anonymous_survey"),
    "docs/query.md": lambda folder: finished(folder, ASKED),
    "docs/randomize.md": randomize,
}
CHANGED = {
    "mpc-rr init people.csv ": "mpc-rr init people.csv --yes --epsilon 2 --protocol rr_joint ",
    " FOLDER": " run",
    "--out people.csv": "--out synthetic.csv",  # the page's own people are in people.csv
    "python machine_learning.py": f"{sys.executable} machine_learning.py",
}
SERVERS = "it serves until it is stopped, on another machine; the tutorials run it"
TUTORIAL = "it needs a broker and a coordinator; tutorials/take-part.md runs it"
OTHER_WAY = "it needs what others send back; tests/cli/test_admission_commands.py does it"
NOT_RUN = {
    "README.md": {
        "pip install . && mpc-rr run quickstart": "tests/test_wheel.py does it from the wheel",
        "pip install -e '.[test]' && pytest": "it would run the tests within the tests",
        "mpc-rr broker": SERVERS,
        "mpc-rr coordinate": SERVERS,
        "mpc-rr invite": TUTORIAL,
        "mpc-rr answer": TUTORIAL,
        "mpc-rr party": TUTORIAL,
        "mpc-rr host": "it needs a coordinator; tutorials/three-machines.md runs it",
    },
    "docs/benchmarks.md": {
        "pip install": "the extra has the peers, which are large",
        "python -m benchmarks": "it needs that extra; tests/benchmarks/test_harness.py does it",
    },
    "docs/brokers.md": {"mpc-rr broker": SERVERS},
    "docs/export.md": {
        "Rscript": "R is not installed with the tests",
    },
    "docs/index.md": {"pip install .": "tests/test_wheel.py installs it"},
    "docs/own-protocol.md": {
        "mpc-rr": "tests/test_own_protocol.py takes the page's file through every command",
    },
    "docs/registrar.md": {"mpc-rr": OTHER_WAY},
}
