"""The protocols that a study may name: those of this package, and those from outside, as equals.

One from outside is found in one of three ways:

* an installed package declares it in the entry-point group ``mpc_rr.protocols``;
* ``--plugin FILE.py`` on the command line: all protocols that the file defines (`load_plugin`);
* `register` in a script or notebook.
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from mpc_rr.errors import InputError, one_line, quoted
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.lifecycle import (
    AGENT_MESSAGES,
    COORDINATOR_MESSAGES,
)
from mpc_rr.protocols.interface import StudyProtocol

GROUP = "mpc_rr.protocols"
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
BUILT_IN = "mpc-rr"
RESERVED_STEPS = frozenset(kind.step for kind in (*AGENT_MESSAGES, *COORDINATOR_MESSAGES))

Kind = type[StudyProtocol]
_kinds: dict[str, Kind] = {}
_origins: dict[str, str] = {}
_plugins: list[Path] = []
_files: dict[str, Path] = {}
"""The files from which protocols were loaded, by the protocols' names."""
_unusable: dict[str, str] = {}
"""Installed protocols that cannot be loaded, and why."""


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
    if not isinstance(kind.messages, tuple | list):
        raise InputError(f"protocol {name!r}: messages must be a tuple of classes")
    for message in kind.messages:
        fault = _message_fault(message, kind.messages)
        if fault is not None:
            raise InputError(f"protocol {name!r}: {fault}")
    known = _kinds.get(name)
    if known is not None and not _same(known, kind):
        raise InputError(
            f"there are two protocols {name!r}: one from {_origins[name]}, one from {origin}; "
            "give one of them another tag, or name only one"
        )
    _kinds[name] = kind
    _origins.setdefault(name, origin)
    return kind


def _same(one: Kind, other: Kind) -> bool:
    """Whether these are the same class, or the same made again (as when a notebook cell is run)."""
    if one is other:
        return True
    if _origins.get(str(one.__struct_config__.tag)) == BUILT_IN:
        return False
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _message_fault(message: Any, all_messages: tuple[Any, ...]) -> str | None:
    """Why this class cannot be one of a protocol's messages, or None."""
    if not inspect.isclass(message) or not issubclass(message, Message):
        return f"{message!r} in its messages is no subclass of Message"
    step = getattr(message, "step", None)
    if not isinstance(step, str) or NAME.fullmatch(step) is None:
        return f"message {message.__name__} has no step: a name of small letters and '_'"
    if step in RESERVED_STEPS:
        return f"message {message.__name__}: the step {step!r} is one of the agents' own"
    if sum(getattr(other, "step", None) == step for other in all_messages) > 1:
        return f"two of its messages have the step {step!r}"
    if message.way not in get_args(Way):
        return f"message {message.__name__}: way is one of {', '.join(get_args(Way))}"
    return None


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
    _look_for_installed()
    return _kinds


@functools.cache
def _look_for_installed() -> None:
    for entry in importlib.metadata.entry_points(group=GROUP):
        _register_installed(entry)


def _register_installed(entry: importlib.metadata.EntryPoint) -> None:
    """One that cannot be loaded must not keep others from being used; it is told when named."""
    package = entry.dist.name if entry.dist is not None else "an installed package"
    try:
        kind = entry.load()
        if _name_of(kind) != entry.name:
            raise InputError(f"its class is tagged {_name_of(kind)!r}")  # noqa: TRY301
        register(kind, f"the package {package}")
    except (Exception, SystemExit) as error:  # noqa: BLE001
        why = one_line(f"{type(error).__name__}: {error}")
        _unusable[entry.name] = f"the package {package} brings it, but it cannot be used ({why})"


def load_plugin(path: Path) -> list[str]:
    """Register all protocols that a Python file defines; returns their names.

    The file is run: it can do whatever you can. Use only files you would run yourself.
    """
    try:
        path = path.resolve()
    except (OSError, RuntimeError):
        raise InputError(f"the plugin {path} cannot be read: it is a link to itself") from None
    known()
    before = set(_kinds)
    try:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        stem = re.sub(r"\W", "_", path.stem)
        module_name = f"mpc_rr_plugin_{stem}_{content[:8]}"
        if module_name not in sys.modules:
            earlier = {name: _kinds.pop(name) for name, file in _files.items() if file == path}
            try:
                _import(path, module_name)
            except InputError:
                _kinds.update(earlier)
                raise
    except OSError as error:
        raise InputError(f"the plugin {path} cannot be read: {error.strerror}") from None
    module = sys.modules[module_name]
    mine = [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, StudyProtocol) and value.__module__ == module_name and _tagged(value)
    ]
    for kind in mine:
        _register_from(path, kind)
    if not mine and set(_kinds) == before:
        raise InputError(
            f"the plugin {path} defines no protocol: a subclass of StudyProtocol with a tag "
            "(docs/own-protocol.md)"
        )
    if path not in _plugins:
        _plugins.append(path)
    return [_name_of(kind) for kind in mine]


def _register_from(path: Path, kind: Kind) -> None:
    name, origin = str(kind.__struct_config__.tag), f"the file {path.name}"
    if _files.get(name) == path:  # the file was changed and is loaded again
        _kinds.pop(name, None)
    try:
        register(kind, origin)
    except InputError as error:
        raise InputError(f"the plugin {path}: {error}") from None
    _files[name], _origins[name] = path, origin


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
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        if isinstance(error, OSError):
            raise
        where = getattr(error, "lineno", None) or _line_in(error, path)
        at = "" if where is None else f", line {where}"
        said = getattr(error, "msg", None) if isinstance(error, SyntaxError) else error
        why = one_line(f"{type(error).__name__}: {said}")
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
    how = (
        "if it is someone's own, install the package that brings it, or give its file with "
        "--plugin FILE.py"
    )
    if origin and origin != BUILT_IN:  # by somebody's word, who may want us to run something
        said = quoted(one_line(origin, 80))
        how = (
            f"result.json says that it came from {said}, for which nobody vouches. A protocol of "
            "this name is known once an installed package that you trust brings it, or a file "
            "given with --plugin"
        )
    shown = quoted(one_line(name, 60))
    return f"there is no protocol {shown} here; {how} (known are {', '.join(sorted(_kinds))})"


def protocol_from(table: Mapping[str, Any], origin: str = "") -> StudyProtocol:
    """The protocol that a ``[protocol]`` table describes.

    `UnknownProtocol` if none has its name; msgspec's ``ValidationError`` if the options do not fit.
    """
    kind = kind_of(str(table.get("name")), origin)
    return msgspec.convert(dict(table), kind, strict=False)
