"""The command line: ``mpc-rr``. Each command reads its files, calls the library, shows the end."""

from mpc_rr.cli import (
    admissions,
    answering,
    beginning,
    brokers,
    comparisons,
    curators,
    examples,
    inviting,
    ledgers,
    logs,
    parties,
    planning,
    releasing,
    reproduction,
    runs,
    studies,
)
from mpc_rr.cli.app import app
from mpc_rr.cli.console import run_app

__all__ = [
    "admissions", "answering", "app", "beginning", "brokers", "comparisons", "curators",
    "examples", "inviting", "ledgers", "logs", "main", "parties", "planning", "releasing",
    "reproduction", "runs", "studies",
]  # fmt: skip


def main() -> None:
    """Run the command line."""
    run_app(app)
