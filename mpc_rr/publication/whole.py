"""Everything that a finished study publishes, made from its ending."""

from collections.abc import Sequence

import msgspec

from mpc_rr.errors import InputError
from mpc_rr.estimation.condition_language import written
from mpc_rr.privacy.costs import Privacy
from mpc_rr.publication.computing import Computed, Value, compute
from mpc_rr.publication.ending import (
    Computation,
    Draft,
    Ending,
    Promising,
    Setting,
    in_order,
    read_again,
    who_took_part,
)
from mpc_rr.publication.parts import (
    Absence,
    Cell,
    Column,
    Listing,
    Participation,
    Publication,
)
from mpc_rr.publication.told import Told

NO_VERDICT = (
    "The coordinator did not say how the study ended, and was not heard of again: whether it was "
    "finished, and whether there is a result folder, is not known here. Ask the study team."
)
RESULTS = "results"
DIGITS = 6
"""Of published statistics: so that they are the same on every machine."""
DETAILS = "results_in_full"
WHAT = Column(name="computed", label="what")
COLUMNS = (
    WHAT,
    Column(name="value", label="estimate", kind="number"),
    Column(name="low", label="from", kind="number"),
    Column(name="high", label="to", kind="number"),
    Column(name="people", label="people", kind="count"),
)
IN_FULL = (
    WHAT,
    Column(name="standard_error", label="standard error", kind="number"),
    Column(name="respondents_low", label="these respondents from", kind="number"),
    Column(name="respondents_high", label="to", kind="number"),
    Column(name="log_likelihood", label="log-likelihood", kind="number"),
)
LIMITS = (
    "Limits hold with 95 % confidence, each by itself, for the population that the respondents "
    "were drawn from; people: on how many respondents it rests, as estimated."
)
_privacy = msgspec.json.Decoder(Privacy)


def published(
    ending: Ending, study: Setting, protocol: Promising, excluded: Sequence[Absence] = ()
) -> Publication:
    """Everything an ending publishes. Nothing that fails here loses a finished study."""
    draft = Draft()
    made = Publication()
    with draft.part("what was found"):
        made = in_order(ending.publish(study))
    found = made
    people = Participation(expected=study.expected, absent=tuple(excluded))
    with draft.part("who took part"):
        people = who_took_part(ending, study, excluded, made.participation)
    with draft.part("what was to be computed"):
        found = with_results(draft, made, ending, study, people)
    privacy = None
    ended = msgspec.structs.replace(study, counted=people.counted)
    with draft.part("what it cost each party"):
        made_of = Privacy.of(protocol.stated(ended), protocol.cautions(study))
        privacy = read_again(made_of, _privacy)
    with draft.part("what it does not promise"):
        draft.notes.extend(protocol.notes(ended))
    if ending.without_verdict:
        draft.warn(NO_VERDICT)
    said = (*made.notes, *draft.notes)
    return msgspec.structs.replace(found, participation=people, privacy=privacy, notes=said)


# ── What the study file has computed ───────────────────────────────────────────────────────────


def with_results(
    draft: Draft, made: Publication, ending: Ending, study: Setting, people: Participation
) -> Publication:
    """The same with a listing of the statistics that the study file asks for.

    A party's own ending, which has nothing to compute on, is left as it is.
    """
    if not study.results or not (made.tables or made.sheets):
        return made
    told = Told.of(ending, made, study.schema, people.counted)
    rows: list[tuple[Cell, ...]] = []
    details: list[tuple[Cell, ...]] = []
    said: dict[str, None] = {}
    for wanted in study.results:
        try:
            found = compute(told, wanted.compute, by=wanted.by, where=wanted.where)
        except InputError as error:
            draft.warn(f"{_asked(wanted)} was not computed: {error}.")
            continue
        for value in found.values:
            what = _what(found, value)
            numbers = (value.value, *(value.population or (None, None)))
            rows.append((what, *map(_rounded, numbers), round(value.people)))
            more = (*(value.respondents or (None, None)), found.log_likelihood)
            details.append((what, *map(_rounded, (value.standard_error, *more))))
        said |= dict.fromkeys(found.notes)
    if not rows:
        return made
    listed = Listing(
        name=RESULTS, title="What was computed", columns=COLUMNS, rows=tuple(rows),
        caption=" ".join([*said, LIMITS]),
    )  # fmt: skip
    in_full = Listing(
        name=DETAILS, title="What was computed, in full", columns=IN_FULL, rows=tuple(details),
        main=False,
    )  # fmt: skip
    return msgspec.structs.replace(made, listings=(*made.listings, listed, in_full))


def _asked(wanted: Computation) -> str:
    where = "" if wanted.where is None else f" where {wanted.where}"
    return f"{wanted.compute}{where}{'' if wanted.by is None else f' by {wanted.by}'}"


def _what(found: Computed, value: Value) -> str:
    """What was computed, among whom, and which of its numbers this is."""
    where = "" if found.where is None else f" where {found.where}"
    by = "" if found.by is None else f", {written(found.by)} = {written(value.group or '')}"
    part = value.name or value.label
    return f"{found.expression}{where}{by}{'' if part is None else f': {part}'}"


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{DIGITS}g}")
