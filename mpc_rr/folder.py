"""Reading a result folder: the study, how it ended, and the other files as text."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_rr.errors import InputError, MpcRrError
from mpc_rr.scenario import Study, study_from_json

FORMAT, VERSION = "mpc-rr result", 1


@dataclass(frozen=True)
class ResultFolder:
    """A folder that `mpc-rr run` or `mpc-rr coordinate` wrote."""

    path: Path
    study: Study
    result: dict[str, Any]

    @property
    def done(self) -> bool:
        """Whether the study ended with a result."""
        return self.result.get("status") == "done"

    def text(self, name: str) -> str:
        """Another file of the folder; `InputError` if it cannot be read."""
        return _text(self.path, name)


def _text(path: Path, name: str) -> str:
    try:
        return (path / name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} is not a result folder: {name}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path / name} is damaged: it is no text") from None


def read_folder(path: Path) -> ResultFolder:
    """The result folder at this place; `InputError` if there is none, or it is of another kind."""
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    try:
        result = json.loads(_text(path, "result.json"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path / 'result.json'} is damaged: {error}") from None
    if not isinstance(result, dict) or result.get("format") != FORMAT or "status" not in result:
        raise InputError(f"{path / 'result.json'} is not the result of a study, or damaged")
    if result.get("version") != VERSION:
        raise InputError(
            f"{path / 'result.json'} is of format version {result.get('version')}; this program "
            f"knows {VERSION}"
        )
    try:
        study = study_from_json(_text(path, "study.json"))
    except (ValueError, MpcRrError) as error:
        if isinstance(error, InputError) and str(path) in str(error):
            raise
        raise InputError(f"{path / 'study.json'} is damaged: {error}") from None
    return ResultFolder(path, study, result)
