"""``mpc-rr invite`` and ``mpc-rr registrar list``: who is asked to take part, and who came."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpc_rr.agents.invitation import StudyInvitation
from mpc_rr.agents.register import Register, request_text
from mpc_rr.agents.whole_files import UNFINISHED, write_whole
from mpc_rr.cli.addresses import broker_url
from mpc_rr.cli.admissions import RegistrarKey, open_register, read_register, registrar_app
from mpc_rr.cli.app import BrokerOption, JsonOption, PluginOption, StudyFile, Verbose, app
from mpc_rr.cli.console import at_terminal, confirmed, note, plain_errors, print_json
from mpc_rr.crypto.admission import Credential
from mpc_rr.errors import DataError, InputError, all_quoted, plain, quoted
from mpc_rr.network.rights import COORDINATOR_INVITATION
from mpc_rr.publication.sheets import csv_text
from mpc_rr.randomness import SystemRandomness
from mpc_rr.results.folder import read_folder
from mpc_rr.results.recorded import persons_in
from mpc_rr.running.loops import deaf
from mpc_rr.study.definition import Study
from mpc_rr.study.file import load_scenario
from mpc_rr.study.layout import found_in

OPEN_FILE, LIST_FILE = "invitation.txt", "invitations.csv"


@app.command()
def invite(
    context: typer.Context,
    study_file: StudyFile,
    broker: BrokerOption,
    coordinator: Annotated[
        str,
        typer.Option(
            metavar="FINGERPRINT", help="The coordinator's fingerprint: it prints it at its start."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the invitations; made if not there.")
    ],
    registrar: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY", help="The registrar's key file, where the study has one: admits people."
        ),
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Invite one person, as the registrar knows them.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="PEOPLE.csv", help="Or all people in a file …")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="… of which this column tells them apart."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Withdraw what they were admitted with before.")
    ] = False,
    another_person: Annotated[
        bool,
        typer.Option("--another-person", help="Names that look alike are of different people."),
    ] = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Make invitations, by which people take part with mpc-rr answer.

    An invitation holds the study, the broker's address for parties, the coordinator's fingerprint
    and, where the study has a registrar, a credential that admits one person once. Anyone who has
    it can take part in that person's name: hand it over as you would a password.

    Example:  mpc-rr invite study.toml --broker @parties.address --coordinator 68a4… --out letters
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        url = broker_url(context, broker, None)
        if any(node.user == COORDINATOR_INVITATION for node in url.nodes):
            raise InputError(
                "this is the coordinator's address: anyone who has it can read what all parties "
                "send; invitations need the parties'"
            )
        address = url.with_secrets()
        people = _people(person, csv, column)
        if study.registrar is None:
            _invite_anyone(study, address, coordinator, out, registrar, people)
            return
        if registrar is None or not people:
            raise InputError(
                f"study {study.name!r} has a registrar: give its key file with --registrar, and "
                "whom to invite with --person, or --csv and --id"
            )
        folder = _folder(out)

        def another(name: str) -> bool:
            if another_person or not at_terminal():
                return another_person
            return confirmed(f"{plain(name)} was admitted before and looks alike. Another person?")

        # The register is kept when it is left, and only then the letters get their names.
        with contextlib.ExitStack() as stack, open_register(registrar) as register:
            standing = {entry.person for entry in register.entries(study) if not entry.withdrawn}
            new = [name for name in people if replace or " ".join(name.split()) not in standing]
            made = {
                name: _admitted(
                    register, study, address, coordinator, name,
                    replace=replace and " ".join(name.split()) in standing, another=another,
                )
                for name in new
            }  # fmt: skip
            stack.enter_context(_written_all(folder, made))
        whose = f"; {LIST_FILE} says whose each is" if made else ""
        typer.echo(f"{folder}: {len(made):,} invitations{whose}")
        if len(new) < len(people):
            note(
                f"{len(people) - len(new):,} people were admitted before and got no other "
                "invitation; --replace withdraws what they have and makes a new one"
            )
        if made:
            note(
                "these files are secrets, and the person who made them could take part in these "
                "people's names; people who make their own pass (mpc-rr enrol) need not trust "
                "anyone with that"
            )


def _people(person: str | None, csv: Path | None, column: str | None) -> list[str]:
    """Whom to invite, each once."""
    if csv is None:
        if column is not None:
            raise InputError("--id goes with --csv: it names a column of that file")
        return [] if person is None else [person]
    if person is not None or column is None:
        raise InputError("give either --person, or --csv with --id COLUMN")
    sheet = found_in(csv)
    if column not in sheet.headers:
        raise InputError(
            f"{csv}: there is no column {column!r}; it has {all_quoted(sheet.headers)}"
        )
    people = list(sheet.columns[sheet.headers.index(column)])
    if "" in people:
        raise DataError(f"{csv}: record {people.index('') + 1} has nothing in column {column!r}")
    twice = next((name for name in people if people.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{csv}: column {column!r} has {twice!r} twice; it must tell people apart")
    return people


def _invite_anyone(
    study: Study,
    address: str,
    coordinator: str,
    out: Path,
    registrar: Path | None,
    people: Sequence[str],
) -> None:
    """One invitation for all: an open study knows nobody."""
    if registrar is not None or people:
        raise InputError(
            f"study {study.name!r} is open to everyone: it has one invitation for all, without "
            "--registrar, --person and --csv (docs/registrar.md says how to admit each person once)"
        )
    made = StudyInvitation(study, address, coordinator).text
    file = _folder(out) / OPEN_FILE
    _write_new(file, made)
    typer.echo(f"{file} is the invitation; anyone who has it can take part")


def _admitted(
    register: Register,
    study: Study,
    address: str,
    coordinator: str,
    person: str,
    *,
    replace: bool,
    another: Callable[[str], bool],
) -> tuple[str, str]:
    """A person's key and invitation, with a credential made for them."""
    credential = Credential.draw(SystemRandomness())
    request = request_text(credential.key_for(study.digest), study, person)
    public, admission = register.admit(study, person, request, replace=replace, another=another)
    secret = bytes.fromhex(credential.secret_hex())
    invited = StudyInvitation(study, address, coordinator, secret, bytes.fromhex(admission))
    return public, invited.text


def _folder(out: Path) -> Path:
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"invitations cannot be written to {out}: {error.strerror}") from None
    return out


def _write_new(file: Path, text: str) -> None:
    if os.path.lexists(file):
        raise InputError(f"{file} exists already; name another folder with --out")
    write_whole(file, f"{text}\n".encode())


@contextlib.contextmanager
def _written_all(folder: Path, made: dict[str, tuple[str, str]]) -> Iterator[None]:
    """A file for each person, and a list of them: in a draft, until all went well."""
    if not made:
        yield
        return
    try:
        draft = Path(tempfile.mkdtemp(prefix=".", suffix=UNFINISHED, dir=folder))
    except OSError as error:
        raise InputError(f"invitations cannot be written to {folder}: {error.strerror}") from None
    kept = False
    try:
        number, rows = 1, []
        for person, (public, text) in made.items():
            slug = re.sub(r"[^A-Za-z0-9]+", "-", person).strip("-")[:40]
            while any(folder.glob(f"{number:04}*")):
                number += 1
            name = f"{number:04}-{slug}.txt" if slug else f"{number:04}.txt"
            write_whole(draft / name, f"{text}\n".encode())
            rows.append((person, public, name))
            number += 1
        listed = folder / LIST_FILE
        before = listed.read_text(encoding="utf-8") if listed.exists() else csv_text([HEAD])
        write_whole(draft / LIST_FILE, (before + csv_text(rows)).encode())
        with deaf():  # from here on a moment's work: the register is kept, and letters are named
            yield
            kept = True
            _name_all(draft, folder, [*(name for _, _, name in rows), LIST_FILE])
    finally:
        if not kept:
            shutil.rmtree(draft, ignore_errors=True)


def _name_all(draft: Path, folder: Path, names: Sequence[str]) -> None:
    """Give the letters their names, the list last: it says that all are there."""
    try:
        for name in names:
            (draft / name).replace(folder / name)
        draft.rmdir()
    except OSError as error:
        raise InputError(
            f"the people are admitted, but not all of their invitations could be put into "
            f"{folder} ({error.strerror}): the others are in {draft}"
        ) from None


HEAD = ("person", "person_key", "file")


# ── Who has come ───────────────────────────────────────────────────────────────────────────────


@registrar_app.command("list")
def registrar_list(
    study_file: StudyFile,
    key_file: RegistrarKey,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULTS",
            help="The coordinator's result folder: also say who took part in that run.",
        ),
    ] = None,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """List whom you admitted to a study, whose admission is withdrawn, and who has not come.

    Who came is told by the keys in the transcript, which you know the people of, and each person's
    signature on that run. It says nothing of what anyone answered.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        entries = read_register(key_file).entries(study)
        came = None if results is None else _came(results, study)
        rows = []
        for entry in entries:
            status = "withdrawn" if entry.withdrawn else "admitted"
            if came is not None and not entry.withdrawn:
                status = "came" if entry.key in came else "has not come"
            rows.append({"person": entry.person, "status": status, "person_key": entry.key})
        if as_json:
            print_json(rows)
            return
        table = Table("person", "status", "key begins with")
        for row in rows:
            shown = (row["person"], row["status"], row["person_key"][:16])
            table.add_row(*(Text(plain(text)) for text in shown))
        console = Console()
        console.print(table)
        counted = {row["status"] for row in rows}
        parts = [f"{sum(r['status'] == s for r in rows):,} {s}" for s in sorted(counted)]
        console.print(", ".join(parts) or "nobody was admitted yet", highlight=False)


def _came(results: Path, study: Study) -> set[str]:
    """The keys of those who took part in a run of this study."""
    folder = read_folder(results)
    if folder.definition.name != study.name:
        raise InputError(
            f"{results} is of study {quoted(folder.definition.name)}, not {quoted(study.name)}"
        )
    if folder.file.study.digest != study.digest.hex():
        raise InputError(f"{results} is of another version of study {quoted(study.name)}")
    try:
        text = (results / "transcript.jsonl").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{results} has no transcript that can be read") from None
    return {key.hex() for key in persons_in(text, study)}
