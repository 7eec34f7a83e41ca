"""The protocols that a study may name: those of this package, and those from outside, as equals.

One from outside is found in one of three ways:

* an installed package declares it in the entry-point group ``mpc_rr.protocols``;
* ``--plugin FILE.py`` on the command line: all protocols that the file defines (`load_plugin`);
* `register` in a script or notebook.
"""

import hashlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.errors import InputError, one_line
from mpc_rr.protocols.interface import StudyProtocol

GROUP = "mpc_rr.protocols"
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
BUILT_IN = "mpc-rr"

Kind = type[StudyProtocol]
_kinds: dict[str, Kind] = {}
_origins: dict[str, str] = {}
_plugins: list[Path] = []
_unusable: dict[str, str] = {}
"""Installed protocols that cannot be loaded, and why."""
_looked_for_installed = False


class UnknownProtocol(InputError):
    """A study names a protocol that is not known here."""

    def __init__(self, name: str, origin: str = "") -> None:
        super().__init__(_where_to_get(name, origin))
        self.name = name


def register(kind: Kind, origin: str = "registered by a script") -> Kind:
    """Make a protocol known under the tag of its class; can be used as a decorator.

    `InputError` if it is incomplete, or if another protocol has its name.
    """
    name = _name_of(kind)
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise InputError(f"protocol {name!r} ({kind.__name__}) lacks {', '.join(missing)}")
    if not kind.messages and kind.rounds is StudyProtocol.rounds:
        raise InputError(
            f"protocol {name!r} ({kind.__name__}) lacks messages: the classes of the messages that "
            "its parties send"
        )
    known = _kinds.get(name)
    if known is not None and not _same(known, kind):
        raise InputError(
            f"there are two protocols {name!r}: one from {_origins[name]}, one from {origin}"
        )
    _kinds[name] = kind
    _origins.setdefault(name, origin)
    return kind


def _same(one: Kind, other: Kind) -> bool:
    """Whether these are the same class, or the same made again (as when a notebook cell is run)."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _name_of(kind: Any) -> str:
    if not inspect.isclass(kind) or not issubclass(kind, StudyProtocol):
        raise InputError(f"{kind!r} is no protocol: it must be a subclass of StudyProtocol")
    name = kind.__struct_config__.tag
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise InputError(
            f'{kind.__name__} has no proper name: give its class tag="…" (small letters, digits '
            "and '_')"
        )
    return name


def known() -> Mapping[str, Kind]:
    """All protocols by their names: built-in, installed, and registered."""
    global _looked_for_installed  # noqa: PLW0603
    if not _looked_for_installed:
        _looked_for_installed = True
        for entry in importlib.metadata.entry_points(group=GROUP):
            _register_installed(entry)
    return _kinds


def _register_installed(entry: importlib.metadata.EntryPoint) -> None:
    """One that cannot be loaded must not keep others from being used; it is told when named."""
    package = entry.dist.name if entry.dist is not None else "an installed package"
    try:
        kind = entry.load()
        if _name_of(kind) != entry.name:
            raise InputError(f"its class is tagged {_name_of(kind)!r}")  # noqa: TRY301
        register(kind, f"the package {package}")
    except Exception as error:  # noqa: BLE001
        why = one_line(f"{type(error).__name__}: {error}")
        _unusable[entry.name] = f"the package {package} brings it, but it cannot be used ({why})"


def load_plugin(path: Path) -> list[str]:
    """Register all protocols that a Python file defines; returns their names.

    The file is run: it can do whatever you can. Use only files you would run yourself.
    """
    path = path.resolve()
    known()
    before = set(_kinds)
    try:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        module_name = f"mpc_rr_plugin_{path.stem}_{content[:8]}"
        if module_name not in sys.modules:
            _import(path, module_name)
    except OSError as error:
        raise InputError(f"the plugin {path} cannot be read: {error.strerror}") from None
    module = sys.modules[module_name]
    mine = [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, StudyProtocol) and value.__module__ == module_name
        and not getattr(value, "__abstractmethods__", ()) and _tagged(value)
    ]  # fmt: skip
    for kind in mine:
        try:
            register(kind, f"the file {path.name}")
        except InputError as error:
            raise InputError(f"the plugin {path}: {error}") from None
    if not mine and set(_kinds) == before:
        raise InputError(
            f"the plugin {path} defines no protocol: a subclass of StudyProtocol with a tag and "
            "all it must have (docs/own-protocol.md)"
        )
    if path not in _plugins:
        _plugins.append(path)
    return [_name_of(kind) for kind in mine]


def _tagged(kind: Kind) -> bool:
    return isinstance(kind.__struct_config__.tag, str)


def _import(path: Path, module_name: str) -> None:
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"the plugin {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        if isinstance(error, OSError):
            raise
        where = getattr(error, "lineno", None) or _line_in(error, path)
        at = "" if where is None else f", line {where}"
        why = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"the plugin {path}{at} cannot be used: {why}") from error


def _line_in(error: BaseException, path: Path) -> int | None:
    """The last line of a file that an error went through."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def plugins() -> tuple[Path, ...]:
    """The files that were loaded, for processes that are to know the same."""
    return tuple(_plugins)


def load_plugins(paths: tuple[Path, ...]) -> None:
    """Load what another process has loaded."""
    for path in paths:
        load_plugin(path)


def origin(name: str) -> str:
    """Where a known protocol comes from."""
    return _origins.get(name, "")


def kind_of(name: str, origin: str = "") -> Kind:
    """The protocol of this name; `UnknownProtocol` says how to get one that is not here."""
    found = known().get(name)
    if found is None:
        raise UnknownProtocol(name, origin)
    return found


def _where_to_get(name: str, origin: str) -> str:
    if name in _unusable:
        return f"protocol {name!r}: {_unusable[name]}"
    if origin.startswith("the package "):
        how = f"install {origin.removeprefix('the ')}"
    elif origin.startswith("the file "):
        how = f"it came from {origin}: give that with --plugin"
    elif origin and origin != BUILT_IN:
        how = f"it was {origin}: register it first"
    else:
        how = (
            "if it is somebody's own, install the package that brings it, or give its file with "
            "--plugin FILE.py"
        )
    return f"there is no protocol {name!r} here; known are {', '.join(sorted(_kinds))}; {how}"


def protocol_from(table: Mapping[str, Any], origin: str = "") -> StudyProtocol:
    """The protocol that a ``[protocol]`` table describes.

    `UnknownProtocol` if none has its name; msgspec's ``ValidationError`` if the options do not fit.
    """
    kind = kind_of(str(table.get("name")), origin)
    return msgspec.convert(dict(table), kind, strict=False)
