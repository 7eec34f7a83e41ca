"""A finished run in groups, released in further ways: all follow from what everybody has."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mpc_rr.anonymization.jointly import linkage_in_all
from mpc_rr.anonymization.loss import mean_loss, released_loss
from mpc_rr.anonymization.releases import RELEASES, Grouped
from mpc_rr.anonymization.risk import Linkage
from mpc_rr.errors import InputError, all_quoted
from mpc_rr.publication.groups import Grouping, ReleaseKind
from mpc_rr.publication.sheets import csv_text
from mpc_rr.results.folder import check_folder, in_the_making, read_folder
from mpc_rr.results.verification import replay

KINDS: tuple[ReleaseKind, ...] = ("microaggregated", "generalized", "anatomy", "permuted")


@runtime_checkable
class InGroups(Protocol):
    """An ending with records in groups."""

    @property
    def options(self) -> Grouping:
        """How they were grouped."""
        ...

    @property
    def records(self) -> list[int]:
        """How many records each group has."""
        ...

    def grouped(self) -> Grouped:
        """What releases are made from."""
        ...


@dataclass(frozen=True)
class Measured:
    """What one release, or several together, lose and risk."""

    releases: tuple[str, ...]
    k: int
    """Among how few records of the same group each is."""
    linkage: Linkage
    lost: float | None
    """Variation of quasi-identifiers; of several releases that of the most exact one."""


def release_again(run: Path, kinds: Sequence[str], out: Path) -> list[Measured]:
    """Write further releases into a folder; returns each one's measures, and last those of all.

    All are the one of the study and these. `InputError` if together they are below the study's k.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(f"there is no release {unknown[0]!r}; there are {all_quoted(KINDS)}")
    check_folder(out)
    folder = read_folder(run)
    if not folder.done:
        raise InputError(f"the study in {run} was aborted; there is nothing to release")
    ending = replay(folder).ending
    if not isinstance(ending, InGroups):
        raise InputError(
            f"{run} holds no records in groups: {folder.file.protocol.name} has one release only"
        )
    found = _measured(ending, tuple(dict.fromkeys((ending.options.release, *kinds))))
    with in_the_making(out) as making:
        for kind in dict.fromkeys(kinds):
            for name, lines in RELEASES[kind](ending.grouped()).items():
                file = making.path / kind / f"{name}.csv"
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(csv_text(lines).encode())
    return found


def _measured(ending: InGroups, kinds: tuple[str, ...]) -> list[Measured]:
    grouped, records, wanted = ending.grouped(), ending.records, ending.options.k
    least = min(records)
    if least < wanted:
        raise InputError(
            f"group {records.index(least) + 1} has {least} records, fewer than the {wanted} that "
            "were promised (someone named another group): it is not released again"
        )

    def measure(several: tuple[str, ...]) -> Measured:
        losses = [mean_loss(released_loss(grouped, kind)) for kind in several]
        told = [loss for loss in losses if loss is not None]
        linked = linkage_in_all(grouped, several, records)
        return Measured(several, least, linked, min(told) if told else None)

    return [*(measure((kind,)) for kind in kinds), measure(kinds)]
