"""The HTML report of a result folder: one file for people, which needs no network to be opened.

Everything in it comes from what was published. What the respondents truly answered is not there; in
a simulation it can be given from outside (``truth``) and is then drawn beside the estimates.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.results.folder import read_folder
from mpc_rr.results.format import Cost, ResultFile
from mpc_rr.results.verification import replay
from mpc_rr.show.fragment import STYLE, facts_table, fragment, rows_table, text_of
from mpc_rr.show.words import Words, absences, size
from mpc_rr.study.definition import Definition
from mpc_rr.study.records import read_csv

PAGE = """
* { box-sizing: border-box; }
body.mpc-rr { max-width: 60rem; margin: 1rem auto; padding: 0 1rem; }
"""


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


def page(
    definition: Definition,
    file: ResultFile,
    cost: Cost,
    *,
    truth: Mapping[str, Sequence[float]] | None = None,
    language: str | None = None,
) -> str:
    """The whole page. ``truth``: the true shares of each attribute, in a simulation."""
    words = Words(definition.schema, language)
    title = text_of(definition.title)
    told = text_of(definition.description)
    described = f"<p>Its author writes:</p><blockquote>{told}</blockquote>" if told else ""
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="dim">{text_of(f"study {file.study.name}, protocol {file.protocol.name}")}</p>',
        described,
        f"<h2>Aborted</h2><p>{text_of(file.cause)}</p>" if file.status == "aborted" else "",
        fragment(file.publication, words, truth, before=_who(file) + _asked(definition, words)),
        _costs(cost),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}'
        f'</title><style>{STYLE}{PAGE}</style></head>\n<body class="mpc-rr">\n'
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _who(file: ResultFile) -> str:
    people, rows = file.publication.participation, []
    if people is not None:
        rows.append(("parties expected", f"{people.expected:,}"))
        if people.present is not None:
            rows.append(("there when it began", f"{people.present:,}"))
        if people.counted is not None:
            rows.append(("in the result", f"{people.counted:,}"))
        rows += absences(people)
        if people.unconfirmed:
            rows.append(("did not confirm the result", ", ".join(people.unconfirmed)))
    who = "each is another person, admitted by the study's registrar"
    rows.append(("admission", "open to everybody" if file.admission == "open" else who))
    if file.seed is not None:
        rows.append(("seed", f"{file.seed}: a simulation, not a secret computation"))
    return "<h2>Who took part</h2>" + facts_table(rows)


def _asked(definition: Definition, words: Words) -> str:
    rows = []
    for a in definition.schema.attributes:
        answers = ", ".join(words.category(a.name, c) for c in a.categories) or a.answers
        asked, *known_as = dict.fromkeys((a.asked(words.language), words.attribute(a.name), a.name))
        also = f" ({', '.join(known_as)})" if known_as else ""
        rows.append((asked + also, a.type, answers))
    head = ("question", "type", "answers")
    return "<h2>What was asked</h2>" + rows_table(head, rows)


def _costs(cost: Cost) -> str:
    rows = [
        (r.doing or r.step, f"{r.messages_up + r.messages_down:,}",
         size(r.bytes_up + r.bytes_down), f"{r.seconds:.2f}")
        for r in cost.rounds
    ]  # fmt: skip
    messages = cost.total.messages_up + cost.total.messages_down
    carried = cost.total.bytes_up + cost.total.bytes_down
    return (
        f"<h2>What it cost the network</h2><p>{messages:,} messages, {size(carried)}.</p>"
        + rows_table(("round", "messages", "sent", "seconds"), rows, (False, True, True, True))
    )
