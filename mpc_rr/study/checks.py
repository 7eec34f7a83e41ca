"""What a study must be to be run, whether it comes from a file or from a script."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mpc_rr.crypto.identity import is_sound_key
from mpc_rr.errors import (
    InputError,
    ScenarioError,
    key,
    listing,
    one_line,
    plain,
    quoted,
    unprintable,
)
from mpc_rr.estimation.expressions import parse_expression
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.planning import LARGEST_TOTAL
from mpc_rr.network.envelope import NAME_RULE, is_name
from mpc_rr.privacy.disclosures import Disclosure, MatrixResponse
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.registry import UnknownProtocol, kind_of
from mpc_rr.publication.computing import check_expression
from mpc_rr.study.definition import Study
from mpc_rr.study.file_errors import in_plain_words

MOST_PARTIES = 10_000_000
LONGEST_NAME = 60
"""So many characters may the name of an attribute have: it stands in sentences of this program."""
MOST_RESULTS = 200
LONGEST_TEXT = 2000
"""So many characters may a title, an option or a line of a description have."""


def name_from(title: str) -> str:
    """A name for a study that was given none."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:48]


def protocol_of(table: Any) -> StudyProtocol | None:
    """The protocol that a ``[protocol]`` table names, if it names one."""
    name = table.get("name") if isinstance(table, dict) else None
    if name is None:
        return None
    try:
        kind = kind_of(str(name))
    except UnknownProtocol as error:
        raise ScenarioError(f"protocol.name: {error}") from None
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ScenarioError(in_plain_words(error, kind, start="protocol")) from None


def check_study(study: Study) -> None:
    """`ScenarioError` if a study cannot be run as it is defined."""
    if not is_name(study.name):
        raise ScenarioError(f"study: {study.name!r} is not a name ({NAME_RULE})")
    _check_parties(study)
    _check_registrar(study.registrar)
    numbers = [a.name for a in study.schema.attributes if a.numeric]
    if numbers and not study.protocol.publishes_values:
        raise ScenarioError(
            f"schema.{key(numbers[0])}: {study.protocol.name} counts categories; give bins instead "
            'of type = "numeric"'
        )
    gaps = [a.name for a in study.schema.attributes if a.numeric and a.missing is not None]
    if gaps and not study.protocol.numbers_may_be_missing:
        raise ScenarioError(
            f"schema.{key(gaps[0])}: {study.protocol.name} would take no answer for a number; "
            "leave 'missing' out"
        )
    for name, derived in (study.derived or {}).items():
        derived.check(name, study.schema)
    check_words(study)
    _check_results(study)
    _check_pairs(study)
    _check_protocol(study)
    _check_deadlines(study)


def _check_results(study: Study) -> None:
    """What is to be computed can be read, and is of this schema."""
    if len(study.results) > MOST_RESULTS:
        raise ScenarioError(f"results: at most {MOST_RESULTS} can be computed in a study")
    for number, wanted in enumerate(study.results, start=1):
        try:
            asked = parse_expression(wanted.compute)
            derived = study.whole.named_in(asked, wanted.by, wanted.where)
            if not derived:
                check_expression(asked, study.schema, wanted.by, wanted.where)
        except InputError as error:
            raise ScenarioError(f"results[{number}]: {error}") from None
        if derived:
            raise ScenarioError(
                f"results[{number}]: {quoted(min(derived))} is computed from what is asked; when "
                "the study has ended, ask for it with mpc-rr query or mpc-rr compute"
            )


def _check_registrar(registrar: str | None) -> None:
    """Anybody can admit people in the name of a key for which anybody can sign."""
    if registrar is None:
        return
    if not re.fullmatch(r"[0-9a-f]{64}", registrar) or not is_sound_key(bytes.fromhex(registrar)):
        raise ScenarioError(
            "registrar: give the 64 hexadecimal digits that `mpc-rr registrar new` prints"
        )


def _check_parties(study: Study) -> None:
    parties = study.parties
    least, why = study.protocol.smallest_group
    if parties.fewest < least:
        field = "count" if parties.minimum is None else "minimum"
        raise ScenarioError(f"parties.{field}: at least {least} are needed: {why}")
    if parties.count > MOST_PARTIES:
        raise ScenarioError(f"parties.count: {parties.count} is more than {MOST_PARTIES:,}")
    if parties.fewest > parties.count:
        raise ScenarioError(
            f"parties.minimum: {parties.fewest} is more than the {parties.count} that are expected"
        )


def _check_deadlines(study: Study) -> None:
    for field in ("lobby_s", "round_s"):
        seconds = getattr(study.deadlines, field)
        if not 0 < seconds < math.inf:
            raise ScenarioError(f"deadlines.{field}: must be a positive number of seconds")
    if study.deadlines.stragglers_s is not None and not study.deadlines.stragglers_s > 0:
        raise ScenarioError("deadlines.stragglers_s: must be a positive number of seconds")


def check_words(study: Study) -> None:
    """`InputError` unless all that people read before they agree shows as what it is.

    A description may have several lines, and tabs; everything else is one line.
    """
    whole = study.whole.schema
    whole.check_words()
    for name in whole.names:
        if len(name) > LONGEST_NAME:
            raise ScenarioError(
                f"schema.{key(name)}: a name has at most {LONGEST_NAME} "
                f"characters, not {len(name):,}; say more in its label or question"
            )
    lines = [("description", line) for line in re.split("[\n\t]", study.description)]
    options = _texts("protocol", msgspec.to_builtins(study.protocol))
    for field, text in [("title", study.title), *lines, *options]:
        fault = unprintable(text)
        if fault is None and len(text) > LONGEST_TEXT:
            fault = f"it has {len(text):,} characters; {LONGEST_TEXT:,} are possible"
        if fault is not None:
            raise ScenarioError(f"{plain(field)}: {fault}")


def _texts(field: str, value: Any) -> Iterator[tuple[str, str]]:
    """All texts of a table, with their places in it."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            place = f"{field}.{key(str(name))}"
            yield from _texts(place, str(name))
            yield from _texts(place, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(field, inner)


def _check_pairs(study: Study) -> None:
    """Whatever counts categories publishes a table of each pair."""
    if not study.protocol.publishes_values:
        try:
            PairLayout(study.schema.sizes)
        except InputError as error:
            raise ScenarioError(f"schema: {error}") from None


def _check_protocol(study: Study) -> None:
    try:
        study.protocol.check(study.setting)
        stated = study.protocol.stated(study.setting)
        _check_total(stated)
        _check_excluded_once(stated)
    except InputError as error:
        raise ScenarioError(f"protocol: {error}") from None
    except Exception as error:
        what = one_line(f"{type(error).__name__}: {error}".rstrip(": "))
        raise ScenarioError(f"protocol: {study.protocol.name} cannot check it: {what}") from error


def _check_total(events: Sequence[Disclosure]) -> None:
    """Answers that each protect somebody may protect nobody together.

    Of what leaves a party under its name; what is only added up has limits of its own.
    """
    counted = [e.of_what_is_left if isinstance(e, MatrixResponse) else e for e in events]
    named = [event.cost for event in counted if not event.added_up and not math.isinf(event.cost)]
    total = math.fsum(named)
    if total > LARGEST_TOTAL:
        raise InputError(
            f"ε = {total:.3g} for all answers together protects nobody (at most {LARGEST_TOTAL:g} "
            "is allowed): randomize more, ask fewer questions, or let each party answer some of "
            "them (rr_views)"
        )


def _check_excluded_once(events: Sequence[Disclosure]) -> None:
    """Two reports of one answer that each leave several may leave one together."""
    excluding = [e for e in events if isinstance(e, MatrixResponse) and e.epsilon is None]
    names = [name for event in excluding for name in event.attributes]
    for name in names:
        if names.count(name) > 1:
            where = listing([event.what for event in excluding if name in event.attributes])
            raise InputError(
                f"{quoted(name)} is reported more than once by a matrix with zeros ({where}): "
                "reports that each leave several answers may leave a single one together; give all "
                "but one a matrix without zeros, or a budget"
            )
