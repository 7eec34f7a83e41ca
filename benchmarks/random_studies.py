"""Random small studies: does each end with a folder that ``verify`` confirms, and how soon?

Every study follows from one number: a random schema (nominal, ordinal, in intervals, numeric where
the protocol publishes values; questions that may be left open; strange names), each protocol in
turn with random options, 3 to 200 people whose answers depend on each other or not, and in most of
them faults: a network that delays, loses, repeats and reorders, parties that fall silent or crash
at some step, and one that signs something else than it should. It is run on the simulated network,
saved, verified, reported, and asked.

Named floor: 0 failures. A study fails if anything raises but an honest end (a sentence and a folder
with ``status`` "aborted"), if a claim of its folder is contradicted or its result is not confirmed,
if the arithmetic warns, or if a published value cannot be: not finite, a share or a degree outside
its range, shares that do not add up to 1, limits that do not hold their estimate, a negative error.

``after`` is the processor time from the last message to the finished folder, ``study`` that before
it, of all parties and the coordinator together; a study that takes longer after its last message
than before is listed among ``slowest_endings``.
"""

import collections
import io
import json
import math
import random
import signal
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import msgspec
import numpy as np
from rich.console import Console

from benchmarks.harness.rows import Row, measured
from mpc_rr.agents.party import Party
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.errors import InputError, InternalError, MpcRrError
from mpc_rr.estimation.condition_language import in_words
from mpc_rr.estimation.conditions import conjunction
from mpc_rr.network.envelope import encode
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.protocols.registry import known
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import ask, read_askable
from mpc_rr.results.folder import party_result, read_folder, write_results
from mpc_rr.results.verification import PUBLISHED, REPLAY, claims_of
from mpc_rr.running import run_study, studies
from mpc_rr.schema import Attribute, Schema, interval_labels
from mpc_rr.show.report import report
from mpc_rr.show.study import show_result
from mpc_rr.show.terminal import show_publication
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.checks import check_study, protocol_of
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario, party_names

NAMES = (
    "age",
    "car",
    "A b",
    "é,ü",
    'a "quoted" one',
    "=1+1",
    "-x",
    "a/b",
    "a--b",
    "日本",
    "x=1 & y",
)
MOST_PEOPLE = 200
MOST_FOR_SECURE_SUM = 40
LONGEST_S = 600
ROUNDING = 1e-9


# ── A study ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Drawn:
    """A scenario, who lies in it at which step, and the registrar's key if it has one."""

    scenario: Scenario
    liars: dict[str, str] = field(default_factory=dict)
    registrar: SigningKey | None = None

    @property
    def kind(self):
        study = self.scenario.study
        table = msgspec.to_builtins(study.protocol)
        told = ", ".join(f"{k}={v}" for k, v in table.items() if k != "name" and v is not None)
        sizes = "×".join(str(a.size) for a in study.schema.attributes)
        return f"{table['name']}({told}), {study.parties.count} people, {sizes}"


def drawn_study(number):
    """The study of this number; options that a study file may not have are drawn again."""
    rng = random.Random(number)
    names = sorted(name for name, kind in known().items() if kind.__module__.startswith("mpc_rr."))
    name = names[number % len(names)]
    while True:
        try:
            return _drawn(rng, name)
        except InputError:
            continue


def _drawn(rng, name):
    values = known()[name].publishes_values
    schema = Schema(tuple(_attributes(rng, values=values)))
    count = _people(rng)
    table = {"name": name} | OPTIONS[name](rng, schema, count)
    if _sum_of(table) == "secure_sum":
        count = min(count, MOST_FOR_SECURE_SUM)
    protocol = protocol_of(table)
    least = max(protocol.smallest_group[0], 3)
    minimum = rng.choice(
        (None, rng.randint(least, max(count, least)), *[max(least, count // 2), least] * 2)
    )
    registrar = None
    if rng.random() < 0.1:
        registrar = SigningKey.draw(SeededRandomness(rng.randrange(1 << 30)))
    study = Study(
        name="random", title="Random", description="", schema=schema, protocol=protocol,
        parties=Parties(count, minimum), deadlines=Deadlines(60.0, 20.0, rng.choice((None, 2.0))),
        registrar=None if registrar is None else registrar.public.hex(),
    )  # fmt: skip
    check_study(study)
    steps = ("hello", "join", *study.protocol.steps(study.setting), "goodbye")
    scenario = msgspec.structs.replace(
        Scenario.of(study, _records(rng, schema, count)), faults=_faults(rng, count, steps)
    )
    return Drawn(scenario, _liars(rng, count, steps), registrar)


def _people(rng):
    return rng.randint(3, rng.choice((8, 40, MOST_PEOPLE)))


def _attributes(rng, *, values):
    names = rng.sample(NAMES, rng.choice((2, 2, 3, 3, 4, 5, 8)))
    for name in names:
        kind = rng.choice(("nominal", "ordinal", "bins", "numeric" if values else "nominal"))
        missing = rng.choice((None, None, "no answer"))
        if kind == "numeric":
            low, step = rng.choice((0.0, -5.0, 0.1)), rng.choice((1.0, 0.1, 2.5, 1000.0))
            yield Attribute(name, "numeric", (), None, None, low,
                            low + step * rng.choice((1, 4, 40, 5000)), step)  # fmt: skip
            continue
        size = rng.choice((2, 2, 3, 3, 4, 6, 9))
        bins = tuple(range(size + 1)) if kind == "bins" else None
        categories = interval_labels(bins) if bins else tuple(f"v{k}" for k in range(size))
        kind = "ordinal" if bins else kind
        if missing:
            categories = (*categories, missing)
        yield Attribute(name, kind, categories, bins, missing)


def _records(rng, schema, count):
    """Classes of people with habits of their own; at the ends all alike, or all by chance."""
    habit = rng.choice((0.0, 0.5, 0.9, 1.0))
    classes = rng.choice((1, 2, 4))
    leaving_open = [rng.choice((0.0, 0.1, 0.5, 1.0)) for _ in schema.attributes]
    usual = [[rng.randrange(a.size) for a in schema.attributes] for _ in range(classes)]
    found = []
    for _ in range(count):
        own, record = rng.choice(usual), []
        for place, attribute in enumerate(schema.attributes):
            code = own[place] if rng.random() < habit else rng.randrange(attribute.size)
            if attribute.missing is not None and rng.random() < leaving_open[place]:
                code = attribute.categories.index(attribute.missing)
            record.append(code)
        found.append(tuple(record))
    return tuple(found)


# ── Its options ────────────────────────────────────────────────────────────────────────────────


def _budget(rng, schema, _count):
    """For all alike; for some, or for all of them, their own."""
    for_all = {"epsilon": _epsilon(rng)} if rng.random() < 0.5 else {"keep": _keep(rng)}
    own = [a for a in schema.attributes if rng.random() < 0.5] if rng.random() < 0.4 else []
    if len(own) == len(schema.attributes):
        for_all = {}
    return for_all | ({"each": {a.name: _own(rng, a) for a in own}} if own else {})


def _keep(rng):
    return rng.choice((0.01, 0.1, 0.5, 0.9, 0.999, rng.random()))


def _own(rng, attribute):
    """A budget or a matrix of an attribute's own; some make no sense, and are drawn again."""
    ordered = attribute.type == "ordinal" and attribute.missing is None
    kind = rng.choice(("keep", "epsilon", "beta", "matrix", *["nearby"] * 2 * ordered))
    if kind == "matrix":
        return {"matrix": _matrix(rng, attribute.size)}
    return {kind: _epsilon(rng) if kind == "epsilon" else rng.choice((0.5, 0.9, _keep(rng)))}


def _matrix(rng, size):
    """By chance, perhaps with zeros far from the diagonal; or the same for all others."""
    stays, aside = rng.choice((0.5, 0.8, 0.95)), rng.choice((0.0, 0.3, 1.0))
    rows = []
    for k in range(size):
        row = [aside * rng.random() if abs(j - k) > 1 else rng.random() + 0.01 for j in range(size)]
        row[k] = 0.0
        total = math.fsum(row)
        rows.append([(1 - stays) * share / total for share in row])
        rows[k][k] = 1 - math.fsum(rows[k])
    if rng.random() < 0.5:
        alike = (1 - stays) / (size - 1)
        rows = [[stays if j == k else alike for j in range(size)] for k in range(size)]
    return rows


def _epsilon(rng):
    return rng.choice((0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, round(rng.uniform(0.1, 10), 3)))


def _summing(rng, _schema, count):
    options = {}
    if rng.random() < 0.6:
        options["sum"] = rng.choice(("secure_sum", "masked_sum"))
    if rng.random() < 0.3 and options.get("sum", "masked_sum" if count > 40 else "") == (
        "masked_sum"
    ):
        options["masking"] = {"corrupt": rng.choice((0.0, 0.05, 0.2)), "dropout": rng.random() / 2}
    return options


def _exact(rng, schema, count):
    kind = rng.randrange(3)
    options = _summing(rng, schema, count)
    if kind == 1:
        options |= {"noise_epsilon": _epsilon(rng)} | _noise(rng)
        if rng.random() < 0.5:
            options |= {"noise_corrupt": rng.choice((0.0, 0.2, 0.5, 0.9))}
    if kind == 2:
        options |= {"suppress_below": rng.choice((2, 3, 5, max(count // 2, 2), count))}
    return options


def _noise(rng):
    kind = rng.choice((None, "laplace", "gaussian", "gaussian"))
    if kind != "gaussian":
        return {} if kind is None else {"noise": kind}
    return {"noise": kind} | rng.choice(({}, {"noise_delta": 1e-6}, {"noise_delta": 1e-3}))


def _moments(rng, schema, count):
    options = _exact(rng, schema, count)
    kept = {
        name: option for name, option in options.items() if name not in {"noise", "noise_delta"}
    }
    return kept | {"pairs": rng.random() < 0.5, "fourth_powers": rng.random() < 0.3}


def _pairs(rng, schema, count):
    return _budget(rng, schema, count) | _summing(rng, schema, count)


def _clusters(rng, schema, count):
    if rng.random() < 0.25:
        return _given_clusters(rng, schema, count)
    first = rng.choice(("exact_pairs", "rr_pairs", "rr_each_attribute"))
    measure = rng.choice(({}, {}, {"measure": "V"}, {"measure": "r"}))
    options = _budget(rng, schema, count) | measure
    options |= {"dependence": {"name": first} | OPTIONS[first](rng, schema, count)}
    if rng.random() < 0.3:
        return options | {
            "method": "power_iteration", "clusters": rng.randint(1, len(schema.sizes)),
        }  # fmt: skip
    return options | {
        "most_combinations": rng.choice((1, 10, 50, 10**6)),
        "least_dependence": rng.choice((0.0, 0.1, 0.5, 1.0)),
    }


def _given_clusters(rng, schema, count):
    """Named in the study file: some attributes in groups, the others alone."""
    names = rng.sample(schema.names, rng.randint(1, len(schema.names)))
    cut = rng.randint(1, len(names))
    clusters = [part for part in (names[:cut], names[cut:]) if part]
    stay = {"stay": rng.choice((0.4, 0.7, 0.95))}
    return {"clusters": clusters} | (stay if rng.random() < 0.5 else _budget(rng, schema, count))


def _joint(rng, *_):
    return {"epsilon": _epsilon(rng)} if rng.random() < 0.7 else {"stay": rng.uniform(0.3, 0.99)}


def _lambdas(rng, schema, count):
    kind = rng.randrange(5)
    if kind == 0:
        return {"lambdas": {name: rng.uniform(0.01, 1) for name in schema.names}}
    if kind == 1:
        return {"covariance": rng.uniform(0.05, 0.95)}
    return {"beta": rng.uniform(0.01, 0.99)} if kind == 2 else _of_lambdas(rng, schema, count)


def _of_lambdas(rng, schema, count):
    options = _budget(rng, schema, count)
    keep = options.pop("keep", None)
    return options if keep is None else options | {"beta": keep}


def _views(rng, schema, _count):
    together = rng.choice((None, None, rng.randint(2, len(schema.sizes))))
    return {"epsilon": _epsilon(rng)} | ({} if together is None else {"together": together})


def _blocks(rng, schema, count):
    options = {
        "p": rng.choice((0.01, 0.2, 0.5, 0.9, 0.99)),
        "floor": rng.choice((1e-4, 0.05, 0.3, 1.0)),
        "block": rng.choice((1, min(count, 5), max(1, count // 4), count)),
        "together": rng.choice((2, 2, min(3, len(schema.sizes)))),
    }
    return options | ({"enough": rng.uniform(0.01, 0.5)} if rng.random() < 0.4 else {})


def _roles(rng, schema):
    names = list(schema.names)
    rng.shuffle(names)
    cut = rng.randint(1, len(names) - 1)
    return names[:cut], names[cut:]


def _mix(rng):
    return {} if rng.random() < 0.7 else {"mix": {"relays": rng.choice((3, 4, 6))}}


def _grouped(rng, schema, count):
    quasi, confidential = _roles(rng, schema)
    options = {
        "k": rng.choice((2, 3, 5, max(2, count // 2), count)),
        "quasi_identifiers": quasi, "confidential": confidential,
        "partition": rng.choice(("mdav", "mondrian", "generalization")),
        "release": rng.choice(("microaggregated", "generalized", "anatomy", "permuted")),
    }  # fmt: skip
    if options["partition"] == "generalization":
        options["hierarchies"] = {
            a.name: _levels(a) for a in schema.pick(tuple(quasi)) if rng.random() < 0.5
        }
    return options | _mix(rng)


def _levels(attribute):
    if attribute.numeric:
        return [2 * attribute.step, 4 * attribute.step]
    half = attribute.size // 2
    return [{"few": attribute.categories[:half], "many": attribute.categories[half:]}]


def _masked(rng, schema, _count):
    first, second = _roles(rng, schema)
    masks = {}
    for attribute in schema.pick(tuple(first)):
        if attribute.numeric and rng.random() < 0.5:
            masks[attribute.name] = f"noise:{attribute.step * rng.randint(1, attribute.size)}"
        elif rng.random() < 0.6:
            masks[attribute.name] = f"swap:{rng.choice((1, 10, 50, 100))}"
    return {"confidential": first, "open": second, "masks": masks} | _mix(rng)


OPTIONS = {
    "exact_pairs": _exact, "exact_moments": _moments,
    "rr_each_attribute": _budget, "rr_pairs": _pairs,
    "rr_independent": _budget, "rr_joint": _joint,
    "rr_clusters": _clusters, "lambda_randomization": _lambdas, "rr_views": _views,
    "block_aggregation": _blocks, "collaborative_k_anonymity": _grouped,
    "collaborative_masking": _masked,
}  # fmt: skip


def _sum_of(table):
    return table.get("sum", table.get("dependence", {}).get("sum"))


# ── Its faults ─────────────────────────────────────────────────────────────────────────────────


def _faults(rng, count, steps):
    def some(most):
        parties = rng.sample(party_names(count), min(count, rng.randint(0, most)))
        return tuple(PartyFault(party, rng.choice(steps)) for party in parties)

    if rng.random() < 0.3:
        return Faults()
    bad = rng.random() < 0.3
    return Faults(
        delay_s=(0.0, rng.choice((0.0, 0.5, 3.0))) if bad else (0.0, 0.0),
        loss=rng.choice((0.0, 0.02, 0.2)) if bad else 0.0,
        duplicate=rng.choice((0.0, 0.3)) if bad else 0.0,
        reorder=rng.choice((0.0, 0.3)) if bad else 0.0,
        silent=some(max(1, min(count // 5, 6))),
        crash=some(1),
    )


def _liars(rng, count, steps):
    if rng.random() < 0.7:
        return {}
    return {rng.choice(party_names(count)): rng.choice(steps[2:-1])}


def _altered(rng, value):
    """The same kind of value, another one."""
    if isinstance(value, bytes):
        raw = bytearray(value or b"\0")
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        return rng.choice((bytes(raw), value[:-1], value + b"\0"))
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, -1, 0, 1 << 40))
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        return [*value[:place], _altered(rng, value[place]), *value[place + 1 :]]
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value, key=str))
        return value | {key: _altered(rng, value[key])}
    return b"\0"


def lying_party(liars, seed):
    """`Party`, but those who are to lie sign another message at their step."""

    class Liar(Party):
        def __init__(self, study, name, *rest, **more):
            super().__init__(study, name, *rest, **more)
            if name in liars:
                self.mailbox.__class__ = _lying(liars[name], random.Random(f"{seed}/{name}"))

    return Liar


def _lying(at_step, rng):
    class Lying(Mailbox):
        def write(self, session, step, target, message):
            if step == at_step:
                plain = msgspec.msgpack.decode(encode(message))
                message = _as_kind_of(message, _altered(rng, plain))
            return super().write(session, step, target, message)

    return Lying


def _as_kind_of(message, plain):
    """A message of the same kind with other contents; the same where there is none."""
    try:
        return msgspec.convert(plain, type(message), strict=False)
    except (msgspec.ValidationError, ValueError):
        return message


# ── Its end ────────────────────────────────────────────────────────────────────────────────────


class _Timed(MemoryNetwork):
    """Knows when it carried its last message, in processor time."""

    last = 0.0

    def carry(self, sender, target, raw):
        super().carry(sender, target, raw)
        _Timed.last = time.process_time()


def played(number):
    """A row: how the study of this number ended, what was wrong with it, and what time it took."""
    given = drawn_study(number)
    row = {"number": number, "kind": given.kind, "ended": "failed", "wrong": []}
    try:
        with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as place:
            warnings.simplefilter("always")
            _play(given, number, Path(place) / "run", row)
        row["wrong"] += sorted({f"warning: {w.message} ({w.filename}:{w.lineno})" for w in caught})
    except (Exception, TooLong):  # noqa: BLE001
        row["wrong"].append(traceback.format_exc())
    return row


def _play(given, number, folder, row):
    study = given.scenario.study
    row["foretold"] = len(study.protocol.prospects(study.setting))
    started = time.process_time()
    with (
        mock.patch.object(studies, "Party", lying_party(given.liars, number)),
        mock.patch.object(studies, "MemoryNetwork", _Timed),
    ):
        result = run_study(
            given.scenario, transport="memory", seed=number, registrar=given.registrar
        )
    write_results(result, folder)
    row["study"], row["after"] = _Timed.last - started, time.process_time() - _Timed.last
    outcome = result.outcome
    row["wrong"] += [str(end) for end in result.parties.values() if isinstance(end, InternalError)]
    file = read_folder(folder).file
    if outcome.result is None:
        row["ended"], row["cause"] = "aborted", outcome.cause
        if file.status != "aborted" or not file.cause or "\n" in file.cause:
            row["wrong"].append(f"no honest end: {file.status}, {file.cause!r}")
        report(folder)
        return
    row["ended"] = "done"
    row["wrong"] += faults_of(result.publication)
    claims = {claim.claim: claim for claim in claims_of(folder)}
    row["wrong"] += [str(c) for c in claims.values() if c.verdict == "contradicted"]
    row["wrong"] += [
        str(claims[c]) for c in (REPLAY, PUBLISHED) if claims[c].verdict != "confirmed"
    ]
    row["wrong"] += _shown(result, folder)
    row["wrong"] += _asked_in_words(folder, number, given.scenario)
    if file.publication.randomization is not None:
        row["wrong"] += _asked(folder, number)


def _shown(result, folder):
    """What is wrong with the report, the terminal, and what a party has."""
    report(folder)
    console = Console(file=io.StringIO(), width=100)
    show_result(console, result, result.publication, 0.0)
    told = [end for end in result.parties.values() if not isinstance(end, MpcRrError)]
    if not told:
        return []
    found = party_result(result.study, told[-1], result.outcome.members).publication
    show_publication(console, found, result.study.schema)
    return [f"a party: {fault}" for fault in faults_of(found)]


def _asked_in_words(folder, number, scenario):
    """What is wrong with the answers to conditions on one to four attributes, of any folder.

    A refusal is one line. Limits that are said to be certain hold all who may have been counted.
    """
    rng, found, schema = random.Random(number), [], scenario.study.schema
    places = [k for k, a in enumerate(schema.attributes) if not a.numeric]
    for most in range(1, min(len(places), 4) + 1):
        asked = sorted(rng.sample(places, most))
        condition = conjunction({a: (rng.randrange(schema.sizes[a]),) for a in asked})
        try:
            answer = ask(folder, in_words(condition, schema))
        except InputError as error:
            if "\n" in str(error):
                found.append(f"ask: {error}")
            continue
        if answer.interval is None:
            continue
        limits = answer.interval
        if not 0 <= limits[0] <= limits[1] <= (answer.n or 0) + ROUNDING:
            found.append(f"ask {asked}: {answer}")
        columns = dict(enumerate(np.array(scenario.records()).T))
        met, n = int(condition.holds(columns).sum()), answer.n or 0
        others = scenario.study.parties.count - n
        if answer.certain and not limits[0] <= met <= limits[1] + others:
            found.append(f"ask {asked}: {met} meet it, {answer}")
    return found


def _asked(folder, number):
    """What is wrong with the answers to a few questions."""
    rng, found = random.Random(number), []
    estimates = read_askable(folder).estimates
    schema = estimates.schema
    for most in (1, 2, len(schema.sizes)):
        asked = sorted(rng.sample(range(len(schema.sizes)), most))
        condition = conjunction({a: (rng.randrange(schema.sizes[a]),) for a in asked})
        try:
            answer = estimates.query(condition)
        except InputError as error:
            if "\n" in str(error):
                found.append(f"query: {error}")
            continue
        low, high = answer.interval
        if not 0 <= low <= answer.count + ROUNDING <= high + 2 * ROUNDING:
            found.append(f"query {asked}: {answer}")
        low, high = answer.population
        if not 0 <= low <= high <= 1:
            found.append(f"query {asked}: {answer}")
    try:
        people = estimates.synthesize(7, SeededRandomness(number).uniform)
        if people.shape != (7, len(schema.sizes)) or (people < 0).any():
            found.append(f"synthesis: {people}")
    except InputError as error:
        found.append(f"synthesis: {error}")
    return found


# ── What cannot be ─────────────────────────────────────────────────────────────────────────────


def faults_of(publication):
    """Published values that cannot be."""
    if publication is None:
        return ["nothing is published"]
    found = [f"note: {note.text}" for note in publication.notes if note.incomplete]
    found += _not_finite(msgspec.to_builtins(publication), "publication")
    for table in publication.tables:
        found += [f"table {table.name}: {fault}" for fault in _table_faults(table)]
    for listed in publication.listings:
        found += [f"listing {listed.name}: {fault}" for fault in _listing_faults(listed)]
    for quantity in publication.quantities:
        value = quantity.value
        if isinstance(value, int | float) and not _between(quantity.low, value, quantity.high):
            found.append(f"quantity {quantity.name}: {quantity}")
    return found


def _not_finite(value, where):
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{where} is {value}"]
    if isinstance(value, dict):
        return [f for key, inner in value.items() for f in _not_finite(inner, f"{where}.{key}")]
    if isinstance(value, list | tuple):
        return [f for k, inner in enumerate(value) for f in _not_finite(inner, f"{where}[{k}]")]
    return []


def _between(low, value, high):
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return value is None or low - ROUNDING <= value <= high + ROUNDING


def _table_faults(table):
    values = table.values
    empty = [None] * len(values)
    shares = table.kind == "share"
    if shares and None not in values and abs(math.fsum(values) - 1) > 1e-6:
        yield f"its shares add up to {math.fsum(values)}"
    for k, value in enumerate(values):
        low, high = (table.low or empty)[k], (table.high or empty)[k]
        if shares and not all(_between(0, x, 1) for x in (low, value, high)):
            yield f"cell {k} is {value}, {low} to {high}"
        nearest = value if shares or value is None else min(max(value, 0), table.n or value)
        if not _between(low, nearest, high):  # noisy counts may be below 0; no true one is
            yield f"cell {k}: {value} is not between {low} and {high}"
        low, high = (table.respondents_low or empty)[k], (table.respondents_high or empty)[k]
        if low is not None and high is not None and not (low <= high):
            yield f"cell {k}, respondents: {low} to {high}"
        if shares and not (_between(0, low, 1) and _between(0, high, 1)):
            yield f"cell {k}, respondents: {low} to {high}"
        if shares and not _between(low, value, high):
            yield f"cell {k}, respondents: {value} is not between {low} and {high}"
        if not _between(0, (table.standard_errors or empty)[k], math.inf):
            yield f"cell {k} has a negative standard error"


RANGES = {"share": (0, 1), "degree": (-1, 1), "p-value": (0, 1), "count": (0, math.inf)}
LARGEST_ERROR = "largest_error"
"""Of blocks, before the shares are made a distribution: it may be more than 1."""


def _listing_faults(listed):
    for row in listed.rows:
        named = {column.name: cell for column, cell in zip(listed.columns, row, strict=True)}
        for column in listed.columns:
            cell = named[column.name]
            if column.name == LARGEST_ERROR:
                continue
            if column.kind in RANGES and isinstance(cell, int | float):
                low, high = RANGES[column.kind]
                if not _between(low, cell, high):
                    yield f"{column.name} is {cell} in {row}"
        low, high = named.get("low"), named.get("high")
        if isinstance(low, float) and isinstance(high, float):
            value = named.get("value")
            held = not isinstance(value, float) or _between(low, value, high)
            if low > high or not held:
                yield f"limits of {row}"


# ── Many of them ───────────────────────────────────────────────────────────────────────────────


def rows_of(rows):
    """The figures of many studies."""
    failed = [row for row in rows if row["wrong"]]
    share = len(failed) / len(rows)
    causes = collections.Counter(_kind_of(row["cause"]) for row in rows if "cause" in row)
    yield Row(
        what="share of studies that failed", setting={}, value=share, runs=len(rows), aim=0.0,
        error=math.sqrt(max(share, 1 / len(rows)) * (1 - share) / len(rows)), better="lower",
        details={
            "failed": failed, "causes": dict(causes),
            "ended": dict(collections.Counter(row["ended"] for row in rows)),
            "foretold": sum(row.get("foretold", 0) > 0 for row in rows),
        },
    )  # fmt: skip
    done = [row for row in rows if "after" in row]
    if not done:
        return
    late = sorted(done, key=lambda row: row["after"] / max(row["study"], 1e-9), reverse=True)
    kept = ("number", "kind", "study", "after")
    yield measured(
        "time after the last message", {}, *([row[k] for row in done] for k in ("after", "study")),
        unit="processor s", beside="the study until then", better="lower",
        details={
            "longest_s": round(max(row["after"] for row in done), 2),
            "longer_after_than_before": sum(row["after"] > row["study"] for row in done),
            "slowest_endings": [{name: row[name] for name in kept} for row in late[:10]],
        },
    )  # fmt: skip


def _kind_of(cause):
    """A cause without names and numbers."""
    words = ["#" if any(c.isdigit() for c in word) else word for word in cause.split()]
    return " ".join(words)[:60]


class TooLong(BaseException):
    """No `Exception`: those are taken for parts that could not be computed."""


def _too_long(*_):
    raise TooLong(f"the study is not at its end after {LONGEST_S} s")


def add_options(parser):
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--only", type=int, nargs="+", help="the studies of these numbers")
    parser.add_argument("--rows", type=Path, help="keep each study there, and go on from there")


def measure(run):
    options, first = run.options, run.seed * 100_000
    numbers = options.only or range(first, first + options.studies)
    signal.signal(signal.SIGALRM, _too_long)
    rows = _kept(options.rows)
    for number in sorted(set(numbers) - {row["number"] for row in rows}):
        signal.alarm(LONGEST_S)
        rows.append(played(number))
        signal.alarm(0)
        if rows[-1]["wrong"] or options.only:
            shown = json.dumps(rows[-1], indent=1, ensure_ascii=False)
            run.tell(shown.replace("\\n", "\n"))
        if options.rows is not None:
            with options.rows.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    yield from rows_of(rows)


def _kept(file):
    if file is None or not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]
