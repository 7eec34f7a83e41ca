import pytest
from cli_helpers import PEOPLE, STUDY


@pytest.fixture
def small(tmp_path):
    """A study file, people to ask, and a scenario with both."""
    (tmp_path / "study.toml").write_text(STUDY)
    rows = "".join(f"{sport},{mood}\n" for sport, mood in PEOPLE)
    (tmp_path / "people.csv").write_text("sport,mood\n" + rows)
    (tmp_path / "scenario.toml").write_text(STUDY + '[data]\ncsv = "people.csv"\n')
    return tmp_path
