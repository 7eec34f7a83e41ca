from pathlib import Path

import pytest

from mpc_rr.errors import ResultsError, ScenarioError
from mpc_rr.study import examples as shipped
from mpc_rr.study.examples import example, examples
from mpc_rr.study.file import load_scenario

ROOT = Path(__file__).parents[2]


def test_every_study_in_the_repository_is_an_example():
    assert set(examples()) == {path.stem for path in (ROOT / "scenarios").glob("*.toml")}


@pytest.mark.parametrize("name", sorted(examples()))
def test_an_example_says_in_a_sentence_what_happens_and_is_found_by_its_name(name):
    found = example(name)
    assert found.sentence[0].isupper()
    assert found.sentence.endswith(".")
    assert found.protocol == load_scenario(Path(name)).study.protocol.name
    assert len(found.sentence) < 200


def test_a_file_of_that_name_goes_before_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text(example("silent_party").text)
    assert load_scenario("quickstart").study.name == "silent-party"


def test_what_is_neither_a_file_nor_an_example_is_said_to_be_neither():
    with pytest.raises(ScenarioError, match="no file quickstrat here, and no example"):
        load_scenario("quickstrat")
    with pytest.raises(ScenarioError, match=r"cannot read nothing\.toml"):
        load_scenario("nothing.toml")
    with pytest.raises(ScenarioError, match="no example 'nothing'; there are"):
        example("nothing")


def test_a_copy_has_its_data_runs_and_overwrites_nothing(tmp_path):
    folder = tmp_path / "mine"
    copied = example("hidden_in_groups").copy(folder)
    assert sorted(p.name for p in copied) == ["eight_neighbours.csv", "hidden_in_groups.toml"]
    assert len(load_scenario(copied[0]).records()) == 8
    copied[0].write_text("changed")
    with pytest.raises(ResultsError, match="exists already"):
        example("hidden_in_groups").copy(folder)
    assert copied[0].read_text() == "changed"


def test_an_installed_package_has_its_own(tmp_path, monkeypatch):
    (tmp_path / "one.toml").write_text("# One.\n")
    monkeypatch.setattr(shipped, "INSTALLED", tmp_path)
    examples.cache_clear()
    try:
        assert list(examples()) == ["one"]
    finally:
        examples.cache_clear()
