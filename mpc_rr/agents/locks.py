"""Files for one process at a time, and folders that survive a power cut, on any system."""

import contextlib
import errno
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

AGAIN_S = 0.05


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl = _module("fcntl")
_msvcrt = None if _fcntl is not None else importlib.import_module("msvcrt")  # Windows


def _acquire(file: int) -> None:
    """Lock an open file, or `BlockingIOError` if it is locked; closing it sets it free."""
    try:
        if _fcntl is not None:
            _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        else:
            assert _msvcrt is not None
            _msvcrt.locking(file, _msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EAGAIN}:
            raise BlockingIOError(error.errno, "it is locked") from None
        raise


@contextlib.contextmanager
def locked(file: Path, *, wait: bool) -> Iterator[None]:
    """Hold this file, made if it is missing, while the context lasts.

    If somebody else holds it: wait, or `BlockingIOError`. Any other `OSError`: it cannot be used.
    """
    handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        while True:
            try:
                _acquire(handle)
                break
            except BlockingIOError:
                if not wait:
                    raise
                time.sleep(AGAIN_S)
        yield
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Have the names in a folder written to disk, where a folder can be opened: not on Windows."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
