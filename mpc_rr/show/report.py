"""The HTML report of a result folder."""

from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.results.folder import read_folder
from mpc_rr.results.format import Cost
from mpc_rr.results.verification import replay
from mpc_rr.show.page import page
from mpc_rr.study.definition import Definition
from mpc_rr.study.records import read_csv


def report(path: Path, truth: Path | None = None, language: str | None = None) -> str:
    """The HTML of a result folder; `InputError` if it is none.

    What a folder of format 1 publishes is made anew from its transcript.
    """
    folder = read_folder(path)
    folder.definition.schema.check_language(language)
    if folder.version == 1 and folder.done:
        found = replay(folder).with_reasons(folder.file.publication.participation)
        file = msgspec.structs.replace(folder.file, publication=found)
    else:
        file = folder.file
    try:
        cost = msgspec.json.decode(folder.text("cost.json"), type=Cost)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{path / 'cost.json'} is damaged: {error}") from None
    shares = None if truth is None else _true_shares(truth, folder.definition)
    return page(folder.definition, file, cost, truth=shares, language=language)


def _true_shares(path: Path, definition: Definition) -> dict[str, list[float]]:
    """The true distribution of each attribute, over the records the scenario used."""
    schema = definition.schema
    records = np.array(read_csv(path, schema)[: definition.parties.count])
    return {
        name: (np.bincount(records[:, place], minlength=size) / len(records)).tolist()
        for place, (name, size) in enumerate(zip(schema.names, schema.sizes, strict=True))
    }
