"""What the fuzzer has found stays fixed, a little of it runs every time, and it notices faults."""

import random

import fuzz_agents
import fuzz_decoders
import pytest
from fuzz_decoders import DECODERS, corpus, decode_with
from fuzzing import KINDS, fuzz, main

from mpc_rr.agents.coordinator import Coordinator

KEPT = list(corpus())
INPUTS = {"a": 600, "b": 12, "c": 40, "d": 40}


@pytest.mark.parametrize(
    ("name", "raw"),
    [(name, raw) for name, _, raw in KEPT],
    ids=[f"{name}/{file}" for name, file, _ in KEPT],
)
def test_a_kept_input_is_read_or_refused(name, raw):
    decode_with(name, raw)


def test_every_decoder_has_kept_inputs_and_reads_its_samples():
    assert {name for name, _, _ in KEPT} == set(DECODERS)
    for name, decoder in DECODERS.items():
        assert all(decode_with(name, sample) for sample in decoder.samples()), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_inputs_of_each_kind(kind):
    found = [fuzz(0, kind, number)[1] for number in range(INPUTS[kind])]
    assert [str(finding) for finding in found if finding is not None] == []


def test_a_study_with_a_number_that_json_does_not_have_is_another():
    """NaN had the digest of null: `verify` took such a study.json for the signed one."""
    (honest,) = DECODERS["definition"].samples()
    for word in (b"NaN", b"Infinity", b"-Infinity"):
        assert not decode_with(
            "definition", honest.replace(b'"stragglers_s": null', b'"stragglers_s": ' + word)
        )


def test_a_decoder_that_fails_is_found_and_the_finding_can_be_played_again(monkeypatch, capsys):
    def reads(raw):
        raise IndexError(len(raw))

    broken = fuzz_decoders.Decoder(reads, lambda: [b"x"], (ValueError,))
    monkeypatch.setattr(fuzz_decoders, "DECODERS", {"broken": broken})
    assert main(["--seconds", "0.01", "--seed", "3", "--kind", "a"]) == 1
    said = capsys.readouterr().out
    assert "FOUND (--seed 3 --kind a --only 0)\nbroken: IndexError: " in said
    assert main(["--seed", "3", "--kind", "a", "--only", "0"]) == 1
    assert capsys.readouterr().out.splitlines() == said.splitlines()[:3]


def test_a_coordinator_that_names_the_wrong_one_is_found(monkeypatch):
    """It leaves out whoever is first in the roster, whatever happened."""

    class Unjust(Coordinator):
        def _judge(self, session, news):
            fault = super()._judge(session, news)
            fault.culprits = session.parties[:1]
            return fault

    monkeypatch.setattr(fuzz_agents, "Coordinator", Unjust)
    found = [fuzz(0, "c", number)[1] for number in range(40)]
    assert any("named: ['party-1']" in str(finding) for finding in found)


def test_an_input_is_the_same_from_the_same_seed():
    cases = [fuzz_decoders.Case() for _ in range(2)]
    for case in cases:
        fuzz_agents.play_liar(random.Random("5"), case)
    assert cases[0] == cases[1]
