"""What people do wrong first, and the hint that each gets."""

import json

import pytest
from cli_helpers import assert_one_line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--record", "me.yaml"], "a record is a .json or a .toml file, not a .yaml file"),
        (["--record", "people.csv"], "a row of a CSV file is taken by --csv and --row"),
        (["--record", "me.json", "--broker", "mqtt://host:99999", "--yes"],
         "the port in the broker's address 'mqtt://…' is out of range: ports are 1 to 65535"),
        (["--record", "me.json", "--broker", "mqtt://host", "--yes", "--pass", "me.json"],
         "me.json is not a file of the kind 'mpc-rr pass'"),
        (["--csv", "semicolons.csv", "--row", "1", "--explain"],
         "Its columns look separated by semicolons, not by commas"),
        (["--csv", "numbers.csv", "--row", "1", "--explain"], "'quite low' is not one of its"),
    ],
)  # fmt: skip
def test_what_is_given_wrong_gets_the_right_hint(here, small, options, says):
    (small / "me.yaml").write_text("sport: no\n")
    (small / "me.json").write_text(json.dumps({"sport": "no", "mood": "low"}))
    (small / "semicolons.csv").write_text("sport;mood\nno;low\n")
    (small / "numbers.csv").write_text("sport,mood\nno,quite low\n")
    code, _, err = here("party", "study.toml", *options, cwd=small)
    assert code == 2
    assert_one_line(err.splitlines()[-1] + "\n", says)


def test_exit_codes_are_in_the_help(here):
    code, out, _ = here("--help")
    assert code == 0
    assert "Exit codes: 0, all went well; 1, it failed" in " ".join(out.split())
