"""What the tests of the command line share: a small study, and commands run as processes."""

import asyncio
import contextlib
import re
import sys

import aiomqtt
import processes
from helpers import crosstabs
from processes import LIMIT_S

STUDY = """
title = "Small"
study = "small"
[schema.sport]
categories = ["no", "yes"]
[schema.mood]
type = "ordinal"
categories = ["low", "middle", "high"]
[protocol]
name = "exact_pairs"
[parties]
count = 5
[deadlines]
lobby_s = 600
round_s = 600
"""
RANDOMIZED = STUDY.replace('"exact_pairs"', '"rr_independent"\nkeep = 0.6')
PEOPLE = [("no", "low"), ("yes", "high"), ("yes", "middle"), ("no", "low"), ("yes", "high")]


def patient(study):
    """A study file with deadlines for the slowest machine; they cost nothing if everybody comes."""
    return re.sub("^(lobby_s|round_s) = .*$", r"\1 = 600", study, flags=re.MULTILINE)


def start(*arguments, **options):
    return processes.start([sys.executable, "-m", "mpc_rr", *map(str, arguments)], **options)


def coordinate(*arguments, **options):
    """Start a coordinator, and wait until it is there for the parties: none has to ask twice."""
    coordinator = start("coordinate", *arguments, **options)
    coordinator.until_it_says("coordinator fingerprint")
    return coordinator


def mpc_rr(*arguments, **options):
    return start(*arguments, **options).finish()


EMBEDDED = re.compile(
    'mqtt { host: "(.*?)", port: ([0-9]+).* user: "(.*?)", password: "(.*?)"', re.DOTALL
)


def listen_for(step, folder, process):
    """Listen at the embedded broker of a process until there is a message of this step.

    Whoever comes late to hear it hears it asked for: a silent party must be a part of the study.
    """

    async def heard(host, port, user, password):
        client = aiomqtt.Client(host, int(port), username=user, password=password)
        async with asyncio.timeout(LIMIT_S), client:
            await client.subscribe("mpc_rr/#", qos=1)
            async for message in client.messages:
                if step.encode() in message.payload:
                    break

    def happened():
        with contextlib.suppress(OSError, StopIteration, aiomqtt.MqttError):
            configuration = next(folder.glob("*/broker.conf")).read_text()
            if found := EMBEDDED.search(configuration):
                asyncio.run(heard(*found.groups()))
                return True
        return False

    process.until(happened, f"a message of step {step!r}")


def expected_counts():
    codes = [(("no", "yes").index(s), ("low", "middle", "high").index(m)) for s, m in PEOPLE]
    return crosstabs(codes, (2, 3))[0].reshape(-1).tolist()


def published_counts(document):
    """The cells of the first table in a result.json."""
    return document["publication"]["tables"][0]["values"]


def published_number(document, name):
    """A quantity in a result.json."""
    (found,) = [q["value"] for q in document["publication"]["quantities"] if q["name"] == name]
    return found


def assert_one_line(error, *parts):
    assert error.count("\n") == 1, error
    assert error.startswith("mpc-rr: ")
    for part in parts:
        assert part in error
