"""Makes the pictures of the README anew, from a real run: ``python docs/pictures.py``.

``session.svg`` is what a terminal shows of the quickstart; ``report.png`` needs Debian's chromium.
"""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH, LINES = 100, 34
MOVES = re.compile(r"\x1b\[(?![\d;]*m)[\d;?]*[a-zA-Z]")
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
"""Whoever looks at the picture would fetch them from elsewhere."""


def printed(folder: Path) -> str:
    """What the quickstart prints at its end, on a terminal."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "mpc_rr", "run", "quickstart", "--out", "results"]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdout=writer, stderr=subprocess.DEVNULL, cwd=folder, env=environment
    ) as run:
        os.close(writer)
        said = b""
        while True:
            try:
                more = os.read(reader, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not more:
                break
            said += more
    os.close(reader)
    if run.returncode != 0:
        raise SystemExit("the quickstart failed")
    return MOVES.sub("", said.decode()).replace("\r\n", "\n")


def session(said: str) -> str:
    """A terminal with the first lines of it."""
    lines = said.splitlines()
    shown = lines[:LINES] + (["…", lines[-1]] if len(lines) > LINES else [])
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ mpc-rr run quickstart", style="bold"))
    console.print(Text.from_ansi("\n".join(shown)))
    return FONTS.sub("", console.export_svg(title="mpc-rr"))


def photographed(page: Path, picture: Path) -> None:
    """The top of a page, as a window of 1,200 pixels shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("there is no chromium here (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                "--no-first-run", "--disable-background-networking", "--disable-sync",
                "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={profile}",
                "--window-size=1200,900", f"--screenshot={picture}", page.as_uri(),
            ],
            check=True, capture_output=True,
        )  # fmt: skip


def main() -> None:
    """Make both pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (HERE / "session.svg").write_text(session(printed(folder)), encoding="utf-8")
        report = [sys.executable, "-m", "mpc_rr", "report", "results"]
        subprocess.run(report, check=True, cwd=folder, capture_output=True)
        photographed(folder / "results" / "report.html", HERE / "report.png")


if __name__ == "__main__":
    main()
