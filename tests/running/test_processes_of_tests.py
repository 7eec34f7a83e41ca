"""The tests' own watch over processes: a test must not fail for what it waits for."""

import sys

import processes


def test_a_process_may_end_badly_between_two_looks():
    """Once whoever waited for its end failed then, in some tests on a busy machine."""
    process = processes.start([sys.executable, "-c", "raise SystemExit(1)"])
    looks = iter([False, True])

    def happened():
        process.wait(processes.LIMIT_S)  # after it was seen alive
        return next(looks)

    process.until(happened, "the end")
    assert process.finish()[0] == 1
