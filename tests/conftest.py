import logging
import shutil
import signal
import socket
from pathlib import Path

import hypothesis
import observing
import processes
import pytest

from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a script: the processes that tests interrupt would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Whoever ends the tests from outside ends what they have started, too.
signal.signal(signal.SIGTERM, signal.default_int_handler)

hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=True,
    print_blob=True,
)
hypothesis.settings.load_profile("steady")


HERE = Path(__file__).parent
SLOW = [line for line in (HERE / "slow.txt").read_text().splitlines() if not line.startswith("#")]


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out what tests/slow.txt lists")


def pytest_collection_modifyitems(config, items):
    slow = set(SLOW)
    left_out = []
    for item in items:
        place = f"{item.path.relative_to(HERE).as_posix()}::{item.name.partition('[')[0]}"
        if place in slow:
            item.add_marker(pytest.mark.slow)
            left_out.append(item)
    if config.getoption("--quick") and left_out:
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    """A command that a test calls in this process sends the logs elsewhere, for good."""
    loggers = [logging.getLogger(name) for name in ("mpc_rr", "mpc_rr.library.mqtt")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test():
    yield
    processes.end_all()


@pytest.fixture(scope="session")
def nats():
    """The coordinator's address of an embedded broker, with which one may also take part."""
    with embedded_broker(keys=observing.own_keys()) as broker:
        yield broker.coordinator


MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")


class Mosquitto:
    """A real mosquitto process on a free port; `stop` and `start` it to lose the connection."""

    def __init__(self, folder, extra=""):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.configuration = folder / "mosquitto.conf"
        lines = extra or "allow_anonymous true"
        self.configuration.write_text(
            f"listener {self.port} 127.0.0.1\npersistence false\nuser root\n{lines}\n"
        )
        self.process = None

    def start(self):
        self.process = processes.Process([MOSQUITTO, "-c", str(self.configuration)])
        self.process.until(self._answers, "it answers")
        return BrokerUrl("127.0.0.1", self.port)

    def _answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def stop(self):
        if self.process is not None:
            self.process.end()
            self.process = None


@pytest.fixture(scope="session")
def start_mosquitto(tmp_path_factory):
    """Start a mosquitto with extra configuration lines; all are stopped at the end."""
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed (apt-get install mosquitto)")
    started = []

    def start(extra=""):
        server = Mosquitto(tmp_path_factory.mktemp("mosquitto"), extra)
        started.append(server)
        return server, server.start()

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def mosquitto(start_mosquitto):
    return start_mosquitto()[1]


@pytest.fixture(params=["nats", "mosquitto"])
def broker(request):
    """Each real broker in turn."""
    return request.getfixturevalue(request.param)
