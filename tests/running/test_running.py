"""Running a study from Python: from a script, a coroutine, or a notebook."""

import asyncio
import gc
import threading
import time

import msgspec
import numpy as np
import pytest
from helpers import PATIENT, make_scenario, make_study, random_records

from mpc_rr import running
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.errors import DataError, InputError
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running.run import verify

SIZES = (2, 3)
RECORDS = random_records(12, SIZES, seed=1)
SCENARIO = make_scenario(RECORDS, SIZES)
STUDY = make_study(12, SIZES)


def test_a_study_and_its_records_are_all_a_simulation_needs():
    run = running.simulate(STUDY, RECORDS, seed=3)
    assert run.outcome.result.n == 12
    again = running.simulate(STUDY, np.array(RECORDS), seed=3)
    assert again.outcome.transcript == run.outcome.transcript


def test_agents_that_are_done_leave_nothing_behind_that_must_be_searched_for():
    def agents():
        return [found for found in gc.get_objects() if isinstance(found, Coordinator | Party)]

    gc.disable()
    try:
        of_others = agents()  # what other tests left
        run = running.simulate(STUDY, RECORDS, seed=3)
        left = [agent for agent in agents() if not any(agent is other for other in of_others)]
    finally:
        gc.enable()
    assert run.outcome.result.n == 12
    assert left == []


def test_data_may_be_columns_of_values():
    columns = {
        name: [attribute.categories[record[place]] for record in RECORDS]
        for place, (name, attribute) in enumerate(
            zip(STUDY.schema.names, STUDY.schema.attributes, strict=True)
        )
    }
    run = running.simulate(STUDY, columns, seed=3)
    assert run.outcome.transcript == running.simulate(STUDY, RECORDS, seed=3).outcome.transcript


def test_data_may_replace_those_of_a_scenario():
    flipped = [(1 - first, second) for first, second in RECORDS]
    found = running.simulate(SCENARIO, flipped).outcome.result.tables[0]
    before = running.simulate(SCENARIO).outcome.result.tables[0]
    np.testing.assert_array_equal(found, before[::-1])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (None, "needs data"),
        (RECORDS[:3], "3 records were given, but the study has 12 parties"),
        ([(0, 7)] * 12, "row 1: attribute 'a1' has no category number 7"),
        ([(0, -1)] * 12, "no category number -1"),
        ([(0,)] * 12, "rows of 2 category numbers"),
        ([(0.5, 1.0)] * 12, "rows of 2 category numbers"),
        ([("v0", "v1")] * 12, "give a data frame or a dict of columns"),
        ({"a0": ["v0"]}, "there is no column 'a1'"),
    ],
)
def test_wrong_data_is_told_before_anything_runs(data, says):
    with pytest.raises((InputError, DataError), match=says):
        running.simulate(STUDY, data)


async def test_it_works_inside_a_running_event_loop():
    """As in a notebook, where no other loop can be run in the same thread."""
    run = running.simulate(STUDY, RECORDS, seed=3)
    assert run.outcome.result.n == 12


async def test_its_twin_lets_the_caller_s_loop_go_on():
    ticks = []

    async def tick():
        while True:
            ticks.append(threading.get_ident())
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    run = await running.simulate_async(STUDY, RECORDS, seed=3)
    ticking.cancel()
    assert run.outcome.result.n == 12
    assert len(ticks) > 10
    assert run.outcome.transcript == running.simulate(STUDY, RECORDS, seed=3).outcome.transcript


@pytest.mark.broker
async def test_over_a_broker_too():
    scenario = make_scenario(RECORDS, SIZES, **PATIENT)
    run = await running.run_study_async(scenario)
    assert run.outcome.result.n == 12
    assert running.run_study(scenario).outcome.result.n == 12


@pytest.mark.broker
async def test_a_study_that_is_cancelled_ends_and_leaves_nothing_running():
    study = make_study(12, SIZES, **PATIENT)
    study = msgspec.structs.replace(study, parties=msgspec.structs.replace(study.parties, count=13))
    before = threading.active_count()

    def lonely(scenario, url, *_):
        return running.coordinate_study(scenario.study, url)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running.studies, "_on_mqtt", lonely)
        waiting = asyncio.create_task(
            running.run_study_async(study, [*RECORDS, RECORDS[0]], transport="mqtt")
        )
        while threading.active_count() == before and not waiting.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not [t for t in threading.enumerate() if t.name == "mpc-rr study"]


async def test_work_in_a_running_loop_is_stopped_by_ctrl_c():
    """The thread is told to stop, and waited for, before the interrupt goes on."""
    from mpc_rr.running import loops  # noqa: PLC0415

    cleaned_up = []

    async def endless():
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned_up.append(True)

    class Interrupted(loops._Thread):
        def __init__(self, work):
            super().__init__(work)
            while self._running is None:
                time.sleep(0.001)
            self.future.result = self.interrupt

        def interrupt(self):
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loops, "_Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            loops.here(lambda: loops.run_to_end(endless()))
    assert cleaned_up == [True]


def test_a_seed_gives_one_transcript_where_there_is_a_registrar_too():
    registrar = SigningKey.draw(SeededRandomness(1))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    scenario = msgspec.structs.replace(SCENARIO, study=study)
    runs = [
        running.run_study(scenario, transport="memory", seed=seed, registrar=registrar)
        for seed in (1, 1, 2)
    ]
    one, same, other = (run.outcome.transcript for run in runs)
    assert one == same != other


def test_what_one_does_with_a_run(tmp_path):
    run = running.simulate(STUDY, RECORDS, seed=3)
    assert list(run.tables) == [("a0", "a1")]
    assert run.tables["a1", "a0"] is run.tables["a0", "a1"]
    with pytest.raises(KeyError):
        run.tables["a0", "a2"]
    assert repr(run.tables) == "Tables(a0 × a1)"
    assert any("12 parties joined" in str(claim) for claim in verify(run))
    folder = run.save(tmp_path / "run")
    assert verify(folder) == run.verify()
    page = run.report(tmp_path / "report.html")
    assert "<h1>A test</h1>" in page.read_text()
    assert "a0" in run._repr_html_()


def test_a_folder_that_is_there_is_told_before_anything_is_written(tmp_path):
    run = running.simulate(STUDY, RECORDS, seed=3)
    folder = run.save(str(tmp_path / "run"))
    with pytest.raises(InputError, match="exists already"):
        run.save(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_run_shows_itself_in_a_line():
    run = running.simulate(STUDY, RECORDS, seed=3)
    assert repr(run) == "Run('A test', exact_pairs, done: 12 of 12)"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: running.run_study(STUDY, RECORDS, transport="pigeon"), "'memory' or 'mqtt'"),
        (lambda: running.simulate("study.toml", RECORDS), "load_scenario reads a file"),
        (lambda: running.run_study(STUDY, RECORDS, broker="pigeon://loft"), "pigeon"),
    ],
)
def test_wrong_arguments_are_told(wrong, says):
    with pytest.raises(InputError, match=says):
        wrong()


# What other tests left for the collector is not this one's.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_cancelled_study_prints_nothing(capfd):
    heard = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))

    async def endless():
        await asyncio.sleep(3600)

    from mpc_rr.running import loops  # noqa: PLC0415

    waiting = asyncio.create_task(loops.beside(lambda: loops.run_to_end(endless())))
    while not [t for t in threading.enumerate() if t.name == "mpc-rr study"]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    del waiting
    gc.collect()
    await asyncio.sleep(0)
    assert heard == []
    assert capfd.readouterr().err == ""


def test_a_report_that_cannot_be_written_is_one_clear_line(tmp_path):
    run = running.simulate(STUDY, RECORDS, seed=3)
    with pytest.raises(InputError, match="cannot write"):
        run.report(tmp_path / "no" / "such" / "folder.html")


def test_tables_of_estimates_are_found_by_name():
    study = make_study(12, SIZES, protocol=RRIndependent(keep=0.6))
    run = running.simulate(study, RECORDS, seed=3)
    assert ("a0",) in run.tables
    assert run.tables["a0"].axes[0].attribute == "a0"
