"""At a terminal a person is shown what she would disclose, and asked."""

import json

import pytest
from cli_helpers import STUDY, mpc_rr
from terminals import AtTerminal

from mpc_rr.cli import console
from mpc_rr.study.file import load_scenario

SHORT = STUDY.replace("lobby_s = 600", "lobby_s = 1")
"""A broker that does not answer is tried for no longer."""
TYPED = {
    "no": ("n\n", "you declined; nothing was sent"),
    "yes": ("y\n", "no MQTT broker answers"),
    "the end of what is typed": ("\x04", "you declined; nothing was sent"),
    "an interrupt": ("\x03", "you declined; nothing was sent"),
}


def taking_part(small, *options, errors=None):
    """The first of the people, at a terminal, in a study whose broker does not answer."""
    (small / "study.toml").write_text(SHORT)
    return AtTerminal(
        ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
         "--broker", "mqtt://127.0.0.1:1", *options],
        errors=errors,
    )  # fmt: skip


@pytest.mark.parametrize("answer", TYPED)
def test_a_person_at_a_terminal_is_asked_before_anything_is_sent(small, answer):
    typed, ends_with = TYPED[answer]
    person = taking_part(small)
    person.reply("Take part? [y/N]:", typed)
    shown, code = person.finish()
    assert "What you would disclose" in shown
    assert "The study is open" in shown
    assert ends_with in shown
    assert "Traceback" not in shown
    assert code == 1


def test_who_says_yes_beforehand_is_not_asked(small):
    shown, _ = taking_part(small, "--yes").finish()
    assert "Take part?" not in shown
    assert "no MQTT broker answers" in shown


@pytest.mark.parametrize("said", [[], ["--yes"]])
def test_who_sits_at_a_terminal_and_cannot_be_asked_there_must_say_yes(small, said):
    """With 2>file nothing was asked, and the broker was connected to."""
    errors = small / "errors"
    _, code = taking_part(small, *said, errors=errors).finish()
    told = errors.read_text()
    assert ("cannot be asked there" in told) == (not said)
    assert ("no MQTT broker answers" in told) == bool(said)
    assert code == (1 if said else 2)


def test_who_is_started_in_the_background_of_a_terminal_must_say_yes(here, small, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(console, "_in_foreground", lambda: False)
    (small / "study.toml").write_text(SHORT)
    code, _, told = here(
        "party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
        "--broker", "mqtt://127.0.0.1:1",
    )  # fmt: skip
    assert "cannot be asked there" in told
    assert code == 2


def test_a_limit_for_each_answer_is_shown_and_kept(small):
    study = STUDY.replace('name = "exact_pairs"', 'name = "rr_independent"\nkeep = 0.5')
    (small / "study.toml").write_text(study)
    asked = ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1, "--explain"]
    code, out, err = mpc_rr(*asked, "--json", "--answer-budget", 2)
    assert (code, err) == (0, "")
    means = json.loads(out)
    assert (means["budget"], means["answer_budget"], means["refused"]) == (None, 2.0, None)
    assert [0 < line["entropy_share"] < 1 for line in means["disclosures"]] == [True, True]
    assert means["in_vain"]  # five people
    code, out, err = mpc_rr(*asked, "--answer-budget", 1)
    assert code == 2
    assert "Your answers may be in vain for this" in " ".join(out.split())
    assert "exceeds the budget of 1 for each answer" in err


def test_an_answer_can_have_a_limit_of_its_own(small):
    study = STUDY.replace('name = "exact_pairs"', 'name = "rr_independent"\nkeep = 0.5')
    (small / "study.toml").write_text(study)
    first = load_scenario(small / "study.toml").study.schema.names[0]
    asked = ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1, "--explain"]
    code, out, err = mpc_rr(*asked, "--answer-budget", 2, "--answer-budget", f"{first}=0.1")
    assert code == 2
    assert f"ε = 2 for each other answer, ε = 0.1 for the answer to “{first}”" in " ".join(
        out.split()
    )
    assert f"“{first}” exceeds the budget of 0.1 for it" in " ".join(err.split())
    for twice in ((f"{first}=1", f"{first}=9"), ("1", "9")):
        code, _, err = mpc_rr(*asked, "--answer-budget", twice[0], "--answer-budget", twice[1])
        assert code == 2
        assert f"“{twice[0]}” and “{twice[1]}”; give one" in " ".join(err.split())
    for wrong, says in (("heath=1", "no attribute “heath”"), ("much", "a number, or NAME=NUMBER")):
        code, _, err = mpc_rr(*asked, "--answer-budget", wrong)
        assert code == 2
        assert says in " ".join(err.split())
