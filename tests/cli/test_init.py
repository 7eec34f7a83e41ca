"""From a file with answers to a study that runs: what people bring, and what they are asked."""

import random
import tomllib

import pytest
from cli_helpers import assert_one_line
from hypothesis import given, settings
from hypothesis import strategies as st
from terminals import AtTerminal

from mpc_rr.errors import DataError
from mpc_rr.study.drafting import Assumed, draft
from mpc_rr.study.file import load_scenario
from mpc_rr.study.layout import found_in

HEADER = (
    "Lfd. Nr", "E-Mail", "q1. How satisfied are you with your work?", "Age group", "Smokes", "Wage",
    "Stress", "Job",
)  # fmt: skip


def survey(path, records=60):
    """As a German Excel writes it, with SPSS's labels and gaps."""
    draw = random.Random(1)
    rows = [
        (
            str(k + 1), f"p{k}@example.org",
            draw.choice(["1 = not at all", "2", "3", "4", "5 = very", "99"]),
            draw.choice(["16-24", "25-39", "40-64", "65+"]),
            draw.choice(["1 = yes", "2 = no", "#NULL!"]),
            f"{draw.uniform(800, 6000):.2f}".replace(".", ","),
            draw.choice(["low", "medium", "high", "k.A."]),
            draw.choice(["teacher", "baker", "Ärztin"]) if k else "astronaut",
        )
        for k in range(records)
    ]  # fmt: skip
    lines = [";".join(row) for row in (HEADER, *rows)]
    path.write_bytes(("\r\n".join(lines) + "\r\n" + ";" * 7 + "\r\n").encode("cp1252"))
    return path


@pytest.fixture
def brought(tmp_path):
    return survey(tmp_path / "survey.csv")


def test_a_file_becomes_a_study_that_is_checked_and_runs(here, brought, tmp_path):
    code, out, err = here("init", brought, "--yes", "--epsilon", "8", cwd=tmp_path)
    assert code == 0, err
    said = " ".join(out.split())
    for words in (
        "Assumed: survey.csv: 60 records, 8 columns, separated by semicolons, Windows-1252,",
        "“99” in column “q1. How satisfied are you with your work?” means that there is no answer",
        "“#NULL!” in column “Smokes” means that there is no answer",
        "column “Wage” is counted in the intervals under",
        "in column “Job”, what only one record says is counted as “other” (1 of 4 answers)",
        "each person randomizes the answers, so that nobody need be trusted",
        "Left out: “Lfd. Nr”, it numbers people",
        "Left out: “E-Mail”, it names people",
        "its predicted error is",
        "7 questions" if "Left out: “Job”" in said else "6 questions, protocol rr_",
    ):
        assert words in said
    text = (tmp_path / "survey.toml").read_text()
    assert "astronaut" not in text
    assert "example.org" not in text
    schema = tomllib.loads(text)["schema"]
    assert schema["Age group"]["categories"] == ["16-24", "25-39", "40-64", "65+"]
    assert schema["Stress"]["categories"] == ["low", "medium", "high"]
    assert schema["Stress"]["type"] == "ordinal"
    assert schema["q1"]["question"] == "How satisfied are you with your work?"
    assert here("check", tmp_path / "survey.toml")[0] == 0
    out = tmp_path / "out"
    code, _, err = here("run", tmp_path / "survey.toml", "--transport", "memory", "--out", out)
    assert code == 0, err


@pytest.mark.parametrize(
    ("options", "table"),
    [
        (["--protocol", "exact_pairs"], {"name": "exact_pairs"}),
        (["--protocol", "rr_independent", "--epsilon", "3"],
         {"name": "rr_independent", "epsilon": 3}),
        (["--protocol", "rr_each_attribute"], {"name": "rr_each_attribute", "epsilon": 2}),
        (["--protocol", "rr_pairs", "--epsilon", "2"], {"name": "rr_pairs", "epsilon": 2}),
        (["--protocol", "lambda_randomization", "--epsilon", "2"],
         {"name": "lambda_randomization", "epsilon": 2}),
        (["--protocol", "rr_views", "--epsilon", "2"], {"name": "rr_views", "epsilon": 2}),
        (["--protocol", "rr_clusters", "--epsilon", "4"],
         {"name": "rr_clusters", "epsilon": 2, "dependence": {"name": "rr_each_attribute",
                                                             "epsilon": 2}}),
        (["--protocol", "collaborative_masking", "--confidential", "Wage"],
         {"name": "collaborative_masking", "confidential": ["Wage"],
          "open": ["q1", "Age group", "Smokes", "Stress", "Job"]}),
        (["--protocol", "collaborative_k_anonymity", "--confidential", "Smokes"],
         {"name": "collaborative_k_anonymity", "k": 5, "confidential": ["Smokes"],
          "quasi_identifiers": ["q1", "Age group", "Wage", "Stress", "Job"]}),
    ],
)  # fmt: skip
def test_a_protocol_that_is_asked_for_gets_the_options_that_it_needs(
    here, brought, tmp_path, options, table
):
    code, _, err = here("init", brought, "--yes", *options, "--title", 'A "title"', cwd=tmp_path)
    assert code == 0, err
    made = tomllib.loads((tmp_path / "survey.toml").read_text())
    assert made["protocol"] == table
    assert made["title"] == 'A "title"'
    numeric = made["schema"]["Wage"].get("type") == "numeric"
    assert numeric == table["name"].startswith("collaborative")
    assert here("check", tmp_path / "survey.toml")[0] == 0


@pytest.mark.parametrize(
    ("options", "wrong_cells", "no_dependences"),
    [(["rr_views", "--epsilon", "0.5"], True, False), (["exact_pairs"], False, False),
     (["rr_joint", "--epsilon", "20"], False, True),
     (["rr_independent", "--epsilon", "14"], False, True),
     (["rr_clusters", "--epsilon", "28"], False, True)],
)  # fmt: skip
def test_where_randomizing_leaves_nothing_it_is_said_what_would_tell_more(
    here, brought, tmp_path, options, wrong_cells, no_dependences
):
    """Once a study was recommended that put all into wrong cells, and nothing else was named."""
    code, out, err = here("init", brought, "--yes", "--protocol", *options, cwd=tmp_path)
    assert code == 0, err
    said = " ".join(out.split())
    assert ("into wrong cells" in said) == wrong_cells
    assert ("will mostly not be told from none" in said) == no_dependences
    advised = "or --protocol exact_pairs, which publishes exact totals" in said
    assert advised == (wrong_cells or no_dependences)


def test_noise_in_totals_is_had_by_a_budget(here, brought, tmp_path):
    code, out, _ = here(
        "init", brought, "--yes", "--protocol", "exact_pairs", "--epsilon", 4, cwd=tmp_path
    )
    assert code == 0
    assert "Noise of standard deviation" in out
    assert "What would tell more" not in out  # it is this protocol already
    made = tomllib.loads((tmp_path / "survey.toml").read_text())
    assert made["protocol"]["noise_epsilon"] == 4


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "nobody can be asked here what the file does not tell; say --yes"),
        (["--yes", "--protocol", "warner"], "there is no protocol"),
        (["--yes", "--epsilon", "0"], "--epsilon must be positive"),
        (["--yes", "--out", "survey.csv"], "survey.csv exists already"),
        (["--yes", "--protocol", "collaborative_masking", "--confidential", "hair"],
         "there is no column “hair”"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_in_one_line_and_nothing_is_written(
    here, brought, tmp_path, options, says
):
    before = brought.read_bytes()
    code, _, err = here("init", brought, *options, cwd=tmp_path)
    assert code == 2
    assert_one_line(err, says)
    assert [path.name for path in tmp_path.iterdir()] == ["survey.csv"]
    assert brought.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("a;b\n", "has a header but no records"),
        ("a;b\n1;2\n3\n", "record 2: 1 fields where the header has 2"),
        ("a;a\n1;2\n", "column 'a' is there twice"),
        ("a;;b\n1;2;3\n", "column 2 has no name"),
        ("a;b\n" + "x;1\ny;1\n" * 20, "only one column is left (“b”: it has fewer than two"),
        ("a;b\n" + "x;1\ny;2\n", "2 records are too few: at least 3 people"),
        ("a;b\n1;2\n\u202e1;2\n2;3\n", "a character that cannot be printed"),
    ],
)
def test_a_file_of_which_no_study_can_be_made_is_told(here, tmp_path, content, says):
    (tmp_path / "people.csv").write_text(content)
    code, _, err = here("init", "people.csv", "--yes", cwd=tmp_path)
    assert code == 2
    assert says in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


# ── At a terminal ──────────────────────────────────────────────────────────────────────────────


def at_a_terminal(command, replies, cwd):
    """Run a command at a terminal; each reply is typed when its question is there."""
    person = AtTerminal(command, cwd=cwd)
    for question, typed in replies:
        person.reply(question, typed)
    return person.finish()


def test_a_person_is_asked_what_the_file_does_not_tell(brought, tmp_path):
    shown, code = at_a_terminal(
        ["init", brought],
        [
            ("Windows-1252, decimal comma. Right?", "y\n"),
            ("numbers people or tells them apart", "n\n"),
            ("names people or says how to reach them", "n\n"),
            ("“99” mean that there is no answer?", "n\n"),
            ("“#NULL!” mean that there is no answer?", "y\n"),
            ("Give the limits", "1000, 3000\n"),
            ("“k.A.” mean that there is no answer?", "y\n"),
            ("Count it as “other” instead?", "y\n"),
            ("The title of the study", "Work\n"),
            ("How shall answers be protected?", "9\n"),
            ("a number from 1 to 3", "2\n"),
        ],
        tmp_path,
    )
    assert code == 0, shown
    assert "Traceback" not in shown
    made = tomllib.loads((tmp_path / "survey.toml").read_text())
    assert made["title"] == "Work"
    assert made["protocol"] == {"name": "exact_pairs"}
    assert made["schema"]["Wage"]["bins"] == [float("-inf"), 1000, 3000, float("inf")]
    assert made["schema"]["q1"]["categories"][-1] == "99"
    assert load_scenario(tmp_path / "survey.toml").records()


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_who_stops_has_nothing_written(brought, tmp_path, key):
    shown, code = at_a_terminal(["init", brought], [("Right?", key)], tmp_path)
    assert code == 1
    assert "you stopped; nothing was written" in shown
    assert not (tmp_path / "survey.toml").exists()


def test_what_was_found_out_of_a_file_can_be_put_right(brought, tmp_path):
    brought.write_bytes(b"a|b;c\n1|x;y\n2|z;y\n3|x;w\n" * 1 + b"1|z;w\n")
    shown, code = at_a_terminal(
        ["init", brought],
        [
            ("Right?", "n\n"),
            ("What separates the columns?", "4\n"),
            ("How is the text encoded?", "1\n"),
            ("What is the decimal sign?", "1\n"),
            ("separated by vertical bars", "y\n"),
            ("If these have an order", "\n"),
            ("The title", "\n"),
            ("How shall", "2\n"),
        ],
        tmp_path,
    )
    assert code == 0, shown
    made = tomllib.loads((tmp_path / "survey.toml").read_text())
    assert made["data"]["delimiter"] == "|"
    assert list(made["schema"]) == ["a", "b;c"]


# ── Whatever people bring ──────────────────────────────────────────────────────────────────────

CELL = st.sampled_from(
    ["", "1", "2", "3,5", "1.234", "yes", "no", "low", "high", "99", "1 = a", "2 = b", "k.A.",
     "=1+1", "a;b", 'say "x"', "ü",
     "12.03.1999", "x@y.org", "16-24", "65+", "'", "0", "-9", " ", "𝔘"]
)  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(st.tuples(CELL, CELL, CELL), min_size=3, max_size=30),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-16"]),
)
def test_a_draft_reads_the_very_file_that_it_was_made_of(tmp_path_factory, rows, delimiter, coding):
    """Whatever is in the cells: either it is refused in words, or all of its records are read."""
    folder = tmp_path_factory.mktemp("any")
    quoted = [delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    text = delimiter.join(["one", "two", "three"]) + "\n" + "\n".join(quoted) + "\n"
    (folder / "people.csv").write_bytes(text.encode(coding))
    path = folder / "people.csv"
    try:
        made = draft(path, found_in(path), Assumed())
    except DataError:
        return
    if len(made.asked) < 2:
        return
    (folder / "study.toml").write_text(
        'title = "t"\n[protocol]\nname = "exact_pairs"\n[parties]\ncount = 3\n'
        + made.schema_text()
        + made.data_text("people.csv"),
        encoding="utf-8",
    )
    scenario = load_scenario(folder / "study.toml")
    if made.sheet.rows >= 3:
        assert len(scenario.records()) == 3
