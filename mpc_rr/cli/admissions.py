"""Commands of registrars and of the people they admit: registrar, enrol."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from mpc_rr.agents.register import REGISTRAR, Register, request_text
from mpc_rr.agents.terms import Admitted
from mpc_rr.agents.whole_files import alone_with, write_whole
from mpc_rr.agents.withdrawals import read_withdrawals, withdrawals_text
from mpc_rr.cli.app import JsonOption, PluginOption, StudyFile, Verbose, app
from mpc_rr.cli.console import at_terminal, confirmed, messages, plain_errors, print_json
from mpc_rr.crypto.admission import Credential, SigningKey, Withdrawals, admitted
from mpc_rr.errors import InputError, plain
from mpc_rr.randomness import SystemRandomness
from mpc_rr.study.definition import Study
from mpc_rr.study.file import load_scenario

registrar_app = typer.Typer(
    no_args_is_help=True,
    help="""Admit people to studies, so that nobody can take part under several names.

A registrar knows the people (an office, a panel, a patients' register) and nothing of their
answers. Its public key stands in the study file.
""",
)
app.add_typer(registrar_app, name="registrar")

KIND = "mpc-rr pass"

RegistrarKey = Annotated[Path, typer.Option("--key", help="The registrar's key file.")]
KeyFile = Annotated[Path, typer.Argument(metavar="KEY", help="The registrar's key file.")]


@registrar_app.command("new")
def registrar_new(key_file: KeyFile, verbose: Verbose = False) -> None:
    """Make a registrar's key; prints the line that goes into study files."""
    with plain_errors(verbose):
        key = SigningKey.draw(SystemRandomness())
        _write_new(key_file, Register(key).text().encode())
        typer.echo(f'registrar = "{key.public.hex()}"')
        messages().print(
            "Put this line into the study file, before its first \\[section]. Anyone who has "
            f"{escape(str(key_file))} can admit anyone: keep it to yourself. It also remembers "
            "whom you admitted: an old copy of it would admit people twice.",
            highlight=False,
        )  # fmt: skip


@registrar_app.command("admit")
def registrar_admit(
    study_file: StudyFile,
    key_file: RegistrarKey,
    person: Annotated[
        str,
        typer.Option(
            help="Name or ID by which you know this person. Each is admitted once per study. A "
            "member number tells people of one name apart."
        ),
    ],
    request: Annotated[
        str,
        typer.Option(
            "--request", "--public", help="What `mpc-rr enrol` printed for her and this study."
        ),
    ],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Withdraw the key she was admitted with before."),
    ] = False,
    another_person: Annotated[
        bool,
        typer.Option(
            "--another-person", help="She only looks like someone you admitted, by her name."
        ),
    ] = False,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Admit one person to one study. Prints an admission to pass on; it is not secret.

    The key file records who was admitted with which key. Admissions contain no names.
    """

    def another(name: str) -> bool:
        if another_person or not at_terminal():
            return another_person
        return confirmed(f"{plain(name)} was admitted before and looks alike. Another person?")

    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        with open_register(key_file) as register:
            public, admission = register.admit(
                study, person, request, replace=replace, another=another
            )
        if as_json:
            print_json({"study": study.name, "person_key": public, "admission": admission})
        else:
            typer.echo(admission)
        if replace:
            _say_next(study_file, key_file)


@registrar_app.command("revoke")
def registrar_revoke(
    study_file: StudyFile,
    key_file: RegistrarKey,
    person: Annotated[str, typer.Option(help="Whose admission no longer counts.")],
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Withdraw a person's admission to one study: her pass is lost or stolen, or it was an error.

    It counts where your list of withdrawals is: mpc-rr registrar withdrawals prints it.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        with open_register(key_file) as register:
            public = register.withdraw(study, person)
        if as_json:
            print_json({"study": study.name, "person_key": public, "withdrawn": True})
        else:
            typer.echo(f"withdrawn: {public}")
        _say_next(study_file, key_file)


@registrar_app.command("withdrawals")
def registrar_withdrawals(
    study_file: StudyFile,
    key_file: RegistrarKey,
    out: Annotated[
        Path | None, typer.Option(help="The file to write, over an older list if there is one.")
    ] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Print the signed list of the admissions to a study that you have withdrawn.

    It has keys and no names, and is no secret. Give it to the coordinator and to the parties.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        listed = read_register(key_file).withdrawals(study)
        if out is None:
            typer.echo(withdrawals_text(listed), nl=False)
            return
        if out.exists():
            _check_older(out, study, listed)
        write_whole(out, withdrawals_text(listed).encode(), public=True)
        typer.echo(f"{out} is list {listed.number}, of {_so_many(listed)}")


def _check_older(out: Path, study: Study, listed: Withdrawals) -> None:
    """Only an older list for the same study is overwritten."""
    if read_withdrawals(out, study).number > listed.number:
        raise InputError(
            f"{out} is a newer list than this key file can make: the key file is an old copy, "
            "which would also admit people twice; use the newest"
        )


def _so_many(listed: Withdrawals) -> str:
    count = len(listed.persons)
    return f"{count} withdrawn admission{'' if count == 1 else 's'}"


def _say_next(study_file: Path, key_file: Path) -> None:
    messages().print(
        "The key that was withdrawn is refused wherever your new list is: mpc-rr registrar "
        f"withdrawals {escape(str(study_file))} --key {escape(str(key_file))} --out FILE, for "
        "--withdrawals of the coordinator and of the parties.",
        highlight=False,
    )


@contextlib.contextmanager
def open_register(key_file: Path) -> Iterator[Register]:
    """The registrar's register, for this process alone, and kept when all went well."""
    with alone_with(key_file):
        register = read_register(key_file)
        yield register
        write_whole(key_file, register.text().encode())


def read_register(path: Path) -> Register:
    """A registrar's register, to be looked at."""
    try:
        return Register.read(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is not a file of the kind {REGISTRAR!r}") from None


@app.command()
def enrol(
    pass_file: Annotated[
        Path, typer.Argument(metavar="PASS", help="Your own pass; made if it is not there yet.")
    ],
    study_file: Annotated[
        Path | None, typer.Option("--study", help="The study that you want to be admitted to.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="Your name, as the registrar will write it: nobody of another name can hand in "
            "your request."
        ),
    ] = None,
    admission: Annotated[
        str | None, typer.Option(help="What the registrar gave you for this study.")
    ] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Create your pass for studies with a registrar, and add admissions to it.

    First:  mpc-rr enrol me.pass --study study.toml   prints your request; give it to the
    registrar. It holds your public key for this study, another one for every study, and shows that
    the key is yours.

    Then:   mpc-rr enrol me.pass --study study.toml --admission …   keeps what the registrar gave
    you. Take part with:  mpc-rr party study.toml --pass me.pass …
    """
    with plain_errors(verbose, plugin):
        if study_file is None and admission is not None:
            raise InputError("--admission needs --study: to which study is it?")
        study = None if study_file is None else _with_registrar(load_scenario(study_file).study)
        if study is not None and admission is not None:
            _keep_admission(pass_file, study, admission)
            typer.echo(f"admitted to study {study.name}")
            return
        if not os.path.lexists(pass_file):
            secret = Credential.draw(SystemRandomness()).secret_hex()
            _write_new(pass_file, _json({"kind": KIND, "secret": secret, "admissions": {}}))
        book = _read_pass_file(pass_file)
        if study is None:
            typer.echo(
                f"{pass_file} is yours alone; your request for a study is printed by: mpc-rr enrol "
                f"{pass_file} --study FILE"
            )
        else:
            known = _admitted_key(book, study, book["admissions"].get(study.digest.hex(), ""))
            typer.echo(request_text(known or _keys(book, study)[0], study, person))
            if person is None:
                messages().print(
                    "Give this to the registrar alone: it has no name in it (--person), so "
                    "anyone who sees it could hand it in as her own.",
                    highlight=False,
                )


def _with_registrar(study: Study) -> Study:
    if study.registrar is None:
        raise InputError(f"study {study.name!r} has no registrar: it is open to everyone")
    return study


def _keep_admission(pass_file: Path, study: Study, admission: str) -> None:
    """Enter what the registrar gave into a pass, beside whatever else is entered meanwhile."""
    if not pass_file.exists():
        raise InputError(
            f"there is no {pass_file}; the admission is for a key from the pass that you made "
            "before"
        )
    with alone_with(pass_file):
        book = _read_pass_file(pass_file)
        if _admitted_key(book, study, admission) is None:
            raise InputError(
                "invalid admission: issued for another key, another version of the study file, "
                "or by another registrar"
            )
        book["admissions"][study.digest.hex()] = admission
        write_whole(pass_file, _json(book))


def _keys(book: dict[str, Any], study: Study) -> list[SigningKey]:
    """The keys a person may have been admitted with: that for this study; then, from a pass of
    the first kind, the one she had for all studies."""
    secret = bytes.fromhex(book.get("secret", book.get("key", "")))
    keys = [Credential(secret).key_for(study.digest)]
    return [*keys, SigningKey(secret)] if "key" in book else keys


def _admitted_key(book: dict[str, Any], study: Study, admission: str) -> SigningKey | None:
    """The one of a person's keys that this admission is for, if any."""
    try:
        signature = bytes.fromhex(admission)
    except ValueError:
        return None
    registrar = study.registrar_key or b""
    fitting = (
        k for k in _keys(book, study) if admitted(registrar, study.digest, k.public, signature)
    )
    return next(fitting, None)


def read_pass(path: Path, study: Study, withdrawals: Withdrawals | None = None) -> Admitted | None:
    """A person's key and her admission to this study; None if the study asks for none.

    Her pass remembers the newest list of withdrawals that she was given, and takes no older one.
    """
    if study.registrar is None:
        _read_pass_file(path)  # what is no pass at all was a mistake
        messages().print(
            f"[yellow]Note[/]: study {study.name} is open to everyone; your pass is not used.",
            highlight=False,
        )
        return None
    book = _read_pass_file(path)
    admission = book["admissions"].get(study.digest.hex(), "")
    key = _admitted_key(book, study, admission)
    if key is None:
        raise InputError(
            f"{path} holds no admission to this very study {study.name!r}; ask its registrar, then "
            "mpc-rr enrol with --study and --admission"
        )
    if withdrawals is not None:
        _remember(path, withdrawals)
    return key, bytes.fromhex(admission)


def _remember(path: Path, withdrawals: Withdrawals) -> None:
    """Note in a pass which list of withdrawals was the newest; an older one is refused."""
    with alone_with(path):
        book, study = _read_pass_file(path), withdrawals.study_digest.hex()
        seen = book.setdefault("withdrawals", {}).get(study, 0)
        if withdrawals.number < seen:
            raise InputError(
                f"this is list {withdrawals.number} of the registrar's withdrawals, and {path} has "
                f"seen list {seen}: ask the registrar for the newest"
            )
        if withdrawals.number > seen:
            book["withdrawals"][study] = withdrawals.number
            write_whole(path, _json(book))


def read_registrar(path: Path | None) -> SigningKey | None:
    """A registrar's key, if a file is given."""
    return None if path is None else read_register(path).key


def _read_pass_file(path: Path) -> dict[str, Any]:
    book: dict[str, Any] = {}
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        good = book["kind"] == KIND
        good &= len(bytes.fromhex(book["secret" if "secret" in book else "key"])) == 32
        for admission in book["admissions"].values():
            bytes.fromhex(admission)
        good &= all(isinstance(number, int) for number in book.get("withdrawals", {}).values())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        good = False
    if not good:
        raise InputError(f"{path} is not a file of the kind {KIND!r}")
    return dict(book)


def _json(book: dict[str, Any]) -> bytes:
    return (json.dumps(book, indent=2) + "\n").encode()


def _write_new(path: Path, content: bytes) -> None:
    """A file that only its owner can read, and that overwrites nothing."""
    with alone_with(path):
        if os.path.lexists(path):
            raise InputError(f"{path} exists already")
        write_whole(path, content)
