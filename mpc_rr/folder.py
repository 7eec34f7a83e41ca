"""Reading a result folder: the study, how it ended, and the other files as text."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc_rr.errors import InputError, MpcRrError
from mpc_rr.scenario import Study, study_from_json


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
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.path} is not a result folder: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{self.path} is not a result folder: {error}") from None


def read_folder(path: Path) -> ResultFolder:
    """The result folder at this place; `InputError` if there is none."""
    try:
        study = study_from_json((path / "study.json").read_text(encoding="utf-8"))
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} is not a result folder: {error.strerror}") from None
    except (ValueError, MpcRrError) as error:
        raise InputError(f"{path} is not a result folder: {error}") from None
    if not isinstance(result, dict):
        raise InputError(f"{path} is not a result folder: result.json holds no object")
    return ResultFolder(path, study, result)
