"""Results of two machines differ in the last digits; forged ones differ in more."""

import json

import pytest
from helpers import make_scenario, random_records
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.results.alike import alike, texts_alike
from mpc_rr.results.closing import sha256_of
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import LAST_DIGITS, PUBLISHED, SHEETS, claims_of
from mpc_rr.running import run_study


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_only_the_last_digits_of_a_fraction_may_differ(number):
    near, far = number * (1 + 1e-13), number * (1 + 1e-5)
    assert alike({"a": [number, 3]}, {"a": [near, 3]})
    assert not alike({"a": [number, 3]}, {"a": [far, 3]})
    assert texts_alike(f"a,b\n{number!r},x\n", f"a,b\n{near!r},x\n")
    assert not texts_alike(f"a,b\n{number!r},x\n", f"a,b\n{far!r},x\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a,1\n", "a,2\n"),
        ("a,1\n", "a,1\r\n"),
        ("a,0.5\n", "a,0.5\r\n"),
        ("a,0.5\n", "a,0.5,\n"),
        ("a,0.5\n", "a,0.5"),
        ("a,0.5\n", "b,0.5\n"),
        ("a,10000000000\n", "a,10000000001\n"),
        ("a,250.0\n", "a,250.00\n"),
        ("a,250.0\n", "a,2.5e2\n"),
        ("a,0.5\n", "a,\u0660.\u0665\n"),
        ("a,0.5\n", "a,-0.5\n"),
    ],
)
def test_text_counts_and_line_ends_must_be_the_same(one, other):
    assert not texts_alike(one, other)
    assert texts_alike(one, one)


def test_what_is_as_good_as_zero_is_the_same():
    """Sums of what cancels out have other digits, and other signs, on every machine."""
    assert alike(1.5e-16, -7e-17)
    assert alike(0.25, 0.25 + 5e-13)
    assert not alike(1e-13, 2e-12)
    assert not alike(1e-9, 1.01e-9)


def test_documents_of_another_shape_are_not_alike():
    assert not alike([1.0], [1.0, 2.0])
    assert not alike({"a": 1.0}, {"b": 1.0})
    assert not alike(10**10, 10**10 + 1)
    assert not alike(0.5, None)
    assert not alike(0.5, "0.5")


@pytest.fixture
def folder(tmp_path):
    scenario = make_scenario(
        random_records(12, (2, 3), seed=3), (2, 3), protocol=RRIndependent(keep=0.6)
    )
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    return tmp_path / "run"


def change_table(folder, result, factor):
    result["publication"]["tables"][0]["standard_errors"][0] *= factor


def change_sheet(folder, result, factor):
    sheet = folder / "reports.csv"
    head, first, *rest = sheet.read_text().splitlines(keepends=True)
    *cells, weight = first.rstrip("\n").split(",")
    changed = ",".join([*cells, repr(float(weight) * factor)]) + "\n"
    assert changed != first
    sheet.write_text("".join([head, changed, *rest]))
    for listed in result["publication"]["sheets"]:
        if listed["name"] == sheet.name:
            listed["sha256"] = sha256_of(sheet.read_text()).hex()


@pytest.mark.parametrize("change", [change_table, change_sheet])
@pytest.mark.parametrize(("factor", "holds"), [(1 + 1e-14, True), (1 + 1e-5, False)])
def test_a_folder_from_another_machine_is_not_called_forged(folder, change, factor, holds):
    result = json.loads((folder / "result.json").read_text())
    change(folder, result, factor)
    (folder / "result.json").write_text(json.dumps(result))
    found = {claim.claim: claim for claim in claims_of(folder)}
    assert found[SHEETS].verdict == "confirmed"
    assert found[PUBLISHED].verdict == ("confirmed" if holds else "contradicted")
    assert (found[PUBLISHED].why == LAST_DIGITS) is holds


def test_released_values_are_no_estimates():
    """A salary of eleven digits must be the one that was released."""
    assert not texts_alike("a,98765432105.5\n", "a,98765432195.5\n")
    assert not alike(98765432105.5, 98765432106.5)
    assert not alike(1, True)
