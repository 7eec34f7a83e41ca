"""Figures in one shape: rows, and by which sessions they were measured."""

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.harness.rows import Row

COMMITTED = Path(__file__).parent.parent / "results"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """On what something was measured."""

    cores: int
    kind: str
    python: str
    numpy: str


def machine() -> Machine:
    """This one."""
    return Machine(
        cores=os.cpu_count() or 1,
        kind=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        numpy=metadata.version("numpy"),
    )


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a benchmark: what was asked for, with which seed, where, and what it cost."""

    options: dict[str, Any] = {}
    seed: int | None = None
    machine: Machine | None = None
    wall_s: float | None = None
    processor_s: float | None = None
    """Of all processes, those that have ended."""
    remark: str = ""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one benchmark."""

    benchmark: str
    sessions: tuple[Session, ...]
    rows: tuple[Row, ...]

    def renewed(self, later: "Figures") -> "Figures":
        """With the rows of a later session in the place of the same ones; the others stay."""
        anew = {row.key for row in later.rows}
        shift = len(self.sessions)
        moved = (msgspec.structs.replace(r, session=r.session + shift) for r in later.rows)
        rows = [row for row in self.rows if row.key not in anew] + list(moved)
        used = sorted({row.session for row in rows})
        every = self.sessions + later.sessions
        return Figures(
            benchmark=self.benchmark,
            sessions=tuple(every[k] for k in used),
            rows=tuple(msgspec.structs.replace(r, session=used.index(r.session)) for r in rows),
        )


def read(path: Path) -> Figures:
    """Figures as `write` wrote them."""
    return msgspec.json.decode(path.read_bytes(), type=Figures, strict=True)


def write(path: Path, figures: Figures) -> None:
    """As JSON, a line for each row, in place of what was there."""
    plain = msgspec.to_builtins(figures, enc_hook=lambda number: number.item())  # numpy's
    lists = [
        f' "{name}": [\n'
        + ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in plain[name])
        + "\n ]"
        for name in ("sessions", "rows")
    ]
    named = json.dumps(figures.benchmark, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(f"{path.name}.new")
    passing.write_text("{\n" + ",\n".join([f' "benchmark": {named}', *lists]) + "\n}\n")
    passing.replace(path)


def committed(name: str) -> Figures | None:
    """Those in the repository."""
    path = COMMITTED / f"{name}.json"
    return read(path) if path.exists() else None
