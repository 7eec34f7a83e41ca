"""Pages of the site that are made from the code: the commands, and the public names of Python."""

import os
import subprocess
import sys

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import mpc_rr
from mpc_rr.cli.app import IN_ORDER_OF_USE, app

ROOMS = {
    "Studies and runs": ("study", "running", "results", "show", "simulation"),
    "Plan and compare": ("planning", "comparing"),
    "Protocols": ("protocols",),
    "What is published": ("publication",),
    "A protocol of one's own": ("network",),
    "Estimation": ("estimation",),
    "Groups and masks": ("anonymization",),
    "Privacy": ("privacy", "crypto"),
    "Records and errors": ("schema", "errors"),
}
"""The headings of the Python reference, and from which rooms the names below each come."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and those that lie at the top of the repository."""
    pages = {"reference/cli.md": commands(), "reference/python.md": names()}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def commands() -> str:
    """The help of every command, as it is printed."""
    parts = ["# Commands\n\nWhat `mpc-rr COMMAND --help` prints.\n"]
    for panel, members in IN_ORDER_OF_USE.items():
        parts.append(f"## {panel}\n")
        for name in members:
            parts.append(_help("###", name))
            parts.extend(_help("####", name, inner) for inner in _subcommands(name))
    return "\n".join(parts)


def _help(level: str, *words: str) -> str:
    return f"{level} mpc-rr {' '.join(words)}\n\n```text\n{_printed(*words)}\n```\n"


def _subcommands(name: str) -> list[str]:
    groups = [found.typer_instance for found in app.registered_groups if found.name == name]
    commands = [command for group in groups if group for command in group.registered_commands]
    return [c.name or c.callback.__name__.replace("_", "-") for c in commands if c.callback]


def _printed(*words: str) -> str:
    """The help of a command, in a process that finds a terminal of 90 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "mpc_rr", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1"},
    )
    return done.stdout.strip("\n")


def names() -> str:
    """Every public name of `mpc_rr`, from the docstrings."""
    head = "Everything that `import mpc_rr` gives. [From Python](../python.md) shows how it fits."
    parts = [f"# Python\n\n{head}\n"]
    for heading, rooms in ROOMS.items():
        parts.append(f"## {heading}\n")
        for name, module in sorted(mpc_rr._HOME.items()):
            if module.split(".")[1] in rooms:
                parts.append(f"::: {module}.{name}\n")
    return "\n".join(parts)
