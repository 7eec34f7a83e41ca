"""Files that hold secrets or registers: whole or not at all, and changed by one process at a time.

Whoever is interrupted, killed or out of space while writing still has the file as it was; no half
of a key, a pass or a register ever stands under its name.
"""

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from mpc_rr.agents.locks import flush_folder, locked
from mpc_rr.errors import InputError

UNFINISHED = ".unfinished"
"""With this the names of files end that are being written."""
OWNER_ALONE, AS_USUAL = 0o600, 0o666


def write_whole(file: Path, content: bytes, *, public: bool = False) -> None:
    """Write a file, over an older one if there is one; `InputError` if that cannot be done.

    Its owner alone can read it, unless it is ``public``. If the name is a link, the file that it
    leads to is written: a register that was left there would admit people twice.
    """
    place = _behind_links(file)
    made = place.with_name(f".{place.name}.{secrets.token_hex(4)}{UNFINISHED}")
    mode = AS_USUAL if public else OWNER_ALONE
    try:
        with open(made, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as unfinished:
            unfinished.write(content)
            unfinished.flush()
            os.fsync(unfinished.fileno())
        made.replace(place)
        flush_folder(place.parent)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)  # it holds the secret


@contextlib.contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Nobody else changes this file, which need not be there yet, while the context lasts."""
    place = _behind_links(file)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(place.with_name(f".{place.name}.lock"), wait=True))
            clear_unfinished(place.parent, glob.escape(place.name))
        except OSError as error:
            raise InputError(f"{file} cannot be used: {error.strerror}") from None
        yield


def clear_unfinished(folder: Path, names: str = "*") -> None:
    """Remove what a killed process left of files with such names; nobody may be writing them."""
    for unfinished in folder.glob(f".{names}.{'[0-9a-f]' * 8}{UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


def _behind_links(file: Path) -> Path:
    """Where a file really is."""
    with contextlib.suppress(OSError):  # it is told by whoever opens the file
        if file.is_dir():
            raise InputError(f"{file} is a folder; name a file")
    return Path(os.path.realpath(file))
