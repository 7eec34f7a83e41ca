"""Running a study from Python: all of it here, or only its coordinator, or only some parties."""

from mpc_rr.running.parts import coordinate_study, take_part
from mpc_rr.running.run import Run
from mpc_rr.running.studies import run_study, run_study_async, simulate, simulate_async

__all__ = [
    "Run",
    "coordinate_study",
    "run_study",
    "run_study_async",
    "simulate",
    "simulate_async",
    "take_part",
]
