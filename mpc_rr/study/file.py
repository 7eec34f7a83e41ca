"""A scenario: a TOML file that says what is asked, of how many, how, and with which faults.

The same file serves everybody. Its public part is the `Study`, of which all agents must hold the
same copy: they compare its digest. Data, faults and seed concern only ``mpc-rr run``.
"""

import datetime as dt
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mpc_rr.errors import DataError, ScenarioError, SchemaError, key, unprintable
from mpc_rr.network.lifecycle import STEPS_AFTER_PROTOCOL, STEPS_BEFORE_PROTOCOL
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.publication.ending import Computation
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Record, Schema, Text, interval_labels
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.checks import check_study, name_from, protocol_of
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.derived import Derived
from mpc_rr.study.examples import study_path
from mpc_rr.study.file_errors import in_plain_words
from mpc_rr.study.generator import Generator
from mpc_rr.study.layout import PLAIN, Layout, read_text
from mpc_rr.study.records import read_csv

LONGEST_FILE_NAME = 255


class Scenario(msgspec.Struct, frozen=True):
    """A study and, for runs on one machine, its data, faults and seed."""

    path: Path
    study: Study
    csv: Path | None
    generator: Generator | None
    faults: Faults
    seed: int
    given: tuple[Record, ...] | None = None
    """Records that were given in Python, instead of any in a file."""
    layout: Layout = PLAIN
    """How the CSV file is written."""

    @classmethod
    def of(cls, study: Study, records: Sequence[Record]) -> "Scenario":
        """A study that was made in Python, with its records."""
        return cls(Path(f"{study.name}.toml"), study, None, None, Faults(), 0, tuple(records))

    def records(self) -> list[Record]:
        """One record for each party."""
        schema, count = self.study.schema, self.study.parties.count
        if self.given is not None:
            if len(self.given) != count:
                raise DataError(
                    f"{len(self.given)} records were given, but the study has {count} parties"
                )
            return list(self.given)
        if self.generator is not None:
            return self.generator.records(schema, count, SeededRandomness(self.generator.seed))
        if self.csv is None:
            raise ScenarioError(
                f"{self.path}: there is no [data]; name a CSV file or a generator to run it here"
            )
        records = read_csv(self.csv, schema, layout=self.layout)
        if len(records) < count:
            raise DataError(
                f"{self.csv} has {len(records)} records, but the scenario has {count} parties"
            )
        return records[:count]

    def party_names(self) -> list[str]:
        """Names for the parties of a run on one machine: party-01, party-02, …"""
        return party_names(self.study.parties.count)


def party_names(count: int) -> list[str]:
    """``party-1`` … with leading zeros, so that they sort."""
    width = len(str(count))
    return [f"party-{number:0{width}}" for number in range(1, count + 1)]


# ── The file ───────────────────────────────────────────────────────────────────────────────────


class _AttributeTable(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["nominal", "ordinal", "numeric"] | None = None
    categories: list[str] | None = None
    bins: list[float] | None = None
    missing: str | None = None
    lowest: float | None = None
    highest: float | None = None
    step: float | None = None
    label: Text | None = None
    question: Text | None = None
    labels: dict[str, Text] | None = None
    joins: dict[str, tuple[str, ...]] | None = None
    clip: Literal["top", "bottom", "both"] | None = None


class _DataTable(Layout, frozen=True, kw_only=True, forbid_unknown_fields=True):
    csv: str | None = None
    generator: Generator | None = None

    @property
    def layout(self) -> Layout:
        return Layout(*(getattr(self, field) for field in Layout.__struct_fields__))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    schema: dict[str, dict[str, Any]]
    parties: Parties
    protocol: dict[str, Any]
    study: str | None = None
    description: str = ""
    deadlines: Deadlines = Deadlines()
    data: _DataTable = msgspec.field(default_factory=_DataTable)
    faults: Faults = Faults()
    seed: int = 0
    expires: dt.date | None = None
    registrar: str | None = None
    derived: dict[str, dict[str, Any]] | None = None
    results: tuple[Computation, ...] = ()


def load_scenario(path: str | Path, data: str | Path | None = None) -> Scenario:
    """Read and check a scenario file; `ScenarioError` says what is wrong and where in it.

    The name of an example is enough (`mpc_rr.study.examples`). ``data`` is a CSV file to be used
    instead of the scenario's own data.
    """
    path = study_path(Path(path))
    try:
        scenario = _scenario(path, *_parse(path))
    except (ScenarioError, SchemaError) as error:
        text = str(error)
        raise ScenarioError(text if str(path) in text else f"{path}: {text}") from None
    if data is None:
        return scenario
    return msgspec.structs.replace(scenario, csv=Path(data), generator=None)


def _parse(path: Path) -> tuple[_File, StudyProtocol]:
    try:
        tables: dict[str, Any] = tomllib.loads(read_text(path))
    except DataError as error:
        raise ScenarioError(str(error)) from None
    except ValueError as error:  # also a number of thousands of digits
        raise ScenarioError(f"not a TOML file: {error}") from None
    except RecursionError:
        raise ScenarioError("not a TOML file: nested too deeply") from None
    protocol = protocol_of(tables.get("protocol"))
    try:
        file = msgspec.convert(tables, _File)
    except msgspec.ValidationError as error:
        raise ScenarioError(in_plain_words(error, _File)) from None
    if protocol is None:
        raise ScenarioError("protocol: 'name' is missing")
    return file, protocol


def schema_of_tables(tables: Mapping[str, dict[str, Any]]) -> Schema:
    """The attributes that ``[schema.…]`` tables describe."""
    return Schema(tuple(_attribute(name, _table(name, table)) for name, table in tables.items()))


def _scenario(path: Path, file: _File, protocol: StudyProtocol) -> Scenario:
    study = Study(
        name=name_from(file.title) if file.study is None else file.study,
        title=file.title,
        description=file.description,
        schema=schema_of_tables(file.schema),
        protocol=protocol,
        parties=file.parties,
        deadlines=file.deadlines,
        expires=file.expires,
        registrar=file.registrar,
        derived=None if file.derived is None else _derived(file.derived),
        results=file.results,
    )
    check_study(study)
    if file.data.csv is not None and file.data.generator is not None:
        raise ScenarioError("data: give either a csv or a generator, not both")
    if file.data.generator is not None:
        file.data.generator.check(study.schema)
    _check_faults(file.faults, study)
    if file.data.csv is not None:
        _check_file_name(file.data.csv)
    layout = file.data.layout
    if file.data.generator is not None and layout != PLAIN:
        raise ScenarioError("data: how a file is written goes with csv, not with a generator")
    layout.check(study.schema)
    csv = path.parent / file.data.csv if file.data.csv is not None else None
    return Scenario(path, study, csv, file.data.generator, file.faults, file.seed, layout=layout)


def _check_file_name(name: str) -> None:
    """`ScenarioError` if errors that begin with it could be taken for other words of ours."""
    fault = unprintable(name)
    if fault is None and (len(name) > LONGEST_FILE_NAME or name.split(" ") != name.split()):
        fault = f"a file name has at most {LONGEST_FILE_NAME} characters, and no spaces in a row"
    if fault is not None:
        raise ScenarioError(f"data.csv: {fault}")


def _derived(tables: dict[str, dict[str, Any]]) -> dict[str, Derived]:
    found = {}
    for name, table in tables.items():
        try:
            found[name] = msgspec.convert(table, Derived)
        except msgspec.ValidationError as error:
            start = f"derived.{key(name)}"
            raise ScenarioError(in_plain_words(error, Derived, start=start)) from None
    return found


def _table(name: str, table: dict[str, Any]) -> _AttributeTable:
    try:
        return msgspec.convert(table, _AttributeTable)
    except msgspec.ValidationError as error:
        raise ScenarioError(
            in_plain_words(error, _AttributeTable, start=f"schema.{key(name)}")
        ) from None


def _attribute(name: str, table: _AttributeTable) -> Attribute:
    bins = tuple(table.bins) if table.bins is not None else None
    if table.type == "numeric":
        step = 1.0 if table.step is None else table.step
        categories = tuple(table.categories or ())
        return Attribute(
            name, "numeric", categories, bins, table.missing, table.lowest, table.highest, step,
            table.label, table.question, table.labels, table.joins, table.clip,
        )  # fmt: skip
    if table.categories is not None:
        categories = tuple(table.categories)
    elif bins is not None:
        categories = interval_labels(bins)
    else:
        raise SchemaError(
            f'schema.{key(name)}: give its categories, or bins for numbers (or type = "numeric" '
            "with lowest and highest, where values and not counts are published)"
        )
    kind = table.type or ("ordinal" if bins is not None else "nominal")
    return Attribute(
        name, kind, categories, bins, table.missing, table.lowest, table.highest, table.step,
        table.label, table.question, table.labels, table.joins, table.clip,
    )  # fmt: skip


def _check_faults(faults: Faults, study: Study) -> None:
    if not (faults.silent or faults.crash):
        return
    names = party_names(study.parties.count)
    protocol_steps = study.protocol.steps(study.setting)
    steps = (*STEPS_BEFORE_PROTOCOL, *protocol_steps, *STEPS_AFTER_PROTOCOL)
    for fault in (*faults.silent, *faults.crash):
        if fault.party not in names:
            raise ScenarioError(
                f"faults: there is no party {fault.party!r}; they are {names[0]} to {names[-1]}"
            )
        if fault.step not in steps:
            raise ScenarioError(
                f"faults: parties have no step {fault.step!r}; it is one of {', '.join(steps)}"
            )
