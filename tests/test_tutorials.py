"""The commands of the tutorials, run one after the other as they stand on the page."""

import os
import re
import socket
import sys
from pathlib import Path

import processes
import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.md"))
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.mark.broker
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_of_a_tutorial_do_what_it_says(page, tmp_path):
    """In one shell; the broker that stands for another machine is on this one."""
    blocks = COMMANDS.findall(page.read_text())
    assert len(blocks) > 3
    script = "".join(blocks)
    script = script.replace("broker.example.org", "localhost").replace("0.0.0.0", "127.0.0.1 --tls")
    script = script.replace("--port 8883", f"--port {free_port()}")
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = processes.start(
        ["bash", "-euo", "pipefail", "-c", script + "\nkill $(jobs -p) || true\n"],
        cwd=tmp_path,
        env={**os.environ, "PATH": here},
    )
    code, said, errors = shell.finish()
    assert code == 0, errors + said
    assert "contradicted" not in said
    assert "confirmed: what result.json publishes follows from the transcript" in said
