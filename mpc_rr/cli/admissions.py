"""Commands of registrars and of the people they admit: registrar, enrol."""

import contextlib
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from mpc_rr.agents.locks import locked
from mpc_rr.agents.terms import Admitted
from mpc_rr.cli.app import JsonOption, PluginOption, StudyFile, Verbose, app
from mpc_rr.cli.console import messages, plain_errors, print_json
from mpc_rr.crypto.admission import SigningKey, admitted
from mpc_rr.errors import InputError
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

KeyFile = Annotated[Path, typer.Argument(metavar="KEY", help="The registrar's key file.")]


@registrar_app.command("new")
def registrar_new(key_file: KeyFile, verbose: Verbose = False) -> None:
    """Make a registrar's key; prints the line that goes into study files."""
    with plain_errors(verbose):
        key = SigningKey.draw(SystemRandomness())
        _write_new(key_file, {"kind": "mpc-rr registrar", "key": key.private_hex(), "admitted": {}})
        typer.echo(f'registrar = "{key.public.hex()}"')
        messages().print(
            "Put this line into the study file, before its first \\[section]. Whoever has "
            f"{escape(str(key_file))} can admit anybody: keep it, and a copy, to yourself.",
            highlight=False,
        )  # fmt: skip


@registrar_app.command("admit")
def registrar_admit(
    study_file: StudyFile,
    key_file: Annotated[Path, typer.Option("--key", help="The registrar's key file.")],
    person: Annotated[
        str, typer.Option(help="Who it is, as you know her: she is admitted only once.")
    ],
    public: Annotated[
        str, typer.Option(help="The key that `mpc-rr enrol` printed for her, 64 digits.")
    ],
    as_json: JsonOption = False,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Admit one person to one study; prints her admission, which is no secret.

    Whom you admitted with which key is kept in the key file, and leaves it with no admission.
    """
    with plain_errors(verbose, plugin):
        study = load_scenario(study_file).study
        with _to_itself(key_file):
            admission = _admit(study, key_file, person, public)
        if as_json:
            print_json({"study": study.name, "person_key": public, "admission": admission})
        else:
            typer.echo(admission)


def _admit(study: Study, key_file: Path, person: str, public: str) -> str:
    """Enter one person, however she is written, and sign her key."""
    book = _read(key_file, "mpc-rr registrar")
    key = SigningKey(bytes.fromhex(book["key"]))
    if study.registrar != key.public.hex():
        raise InputError(
            f"this is not the key of the study's registrar; to be it, the study file must say, "
            f'before its first [section]: registrar = "{key.public.hex()}"'
        )
    known = book["admitted"].setdefault(study.digest.hex(), {})
    name = unicodedata.normalize("NFKC", " ".join(person.split())).casefold()
    _check_new(known, name, public)
    known[name] = public
    _rewrite(key_file, book)
    return key.admit(study.digest, bytes.fromhex(public)).hex()


@contextlib.contextmanager
def _to_itself(path: Path) -> Iterator[None]:
    """Nobody else changes a file meanwhile."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(path.with_name(f".{path.name}.lock"), wait=True))
        except OSError as error:
            raise InputError(f"{path} cannot be used: {error.strerror}") from None
        yield


def _check_new(known: dict[str, str], person: str, public: str) -> None:
    """One person, one key; the same admission again may be had again."""
    if not person:
        raise InputError("--person is empty: say who it is")
    if not re.fullmatch(r"[0-9a-f]{64}", public):
        raise InputError("--public takes the 64 hexadecimal digits that `mpc-rr enrol` printed")
    if known.get(person, public) != public:
        raise InputError(
            f"{person!r} has been admitted to this study before, with another key (capitals and "
            "spaces do not count; another person of that name needs something to be told apart by)"
        )
    others = [name for name, key in known.items() if key == public and name != person]
    if others:
        raise InputError(f"this key is that of {others[0]!r}, who has been admitted before")


@app.command()
def enrol(
    pass_file: Annotated[
        Path, typer.Argument(metavar="PASS", help="Your own pass; made if it is not there yet.")
    ],
    study_file: Annotated[
        Path | None, typer.Option("--study", help="The study file, once you have an admission.")
    ] = None,
    admission: Annotated[
        str | None, typer.Option(help="What the registrar gave you for this study.")
    ] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Get ready for studies that have a registrar.

    First:  mpc-rr enrol me.pass   prints your public key; give it to the registrar.

    Then:   mpc-rr enrol me.pass --study study.toml --admission …   keeps what the registrar gave
    you. Take part with:  mpc-rr party study.toml --pass me.pass …
    """
    with plain_errors(verbose, plugin):
        if (study_file is None) != (admission is None):
            raise InputError("--study and --admission belong together")
        if not pass_file.exists():
            if study_file is not None:
                raise InputError(
                    f"there is no {pass_file}; the admission is for the key in the pass that you "
                    "made before"
                )
            key = SigningKey.draw(SystemRandomness())
            empty = {"kind": "mpc-rr pass", "key": key.private_hex(), "admissions": {}}
            _write_new(pass_file, empty)
        book = _read(pass_file, "mpc-rr pass")
        key = SigningKey(bytes.fromhex(book["key"]))
        if study_file is None or admission is None:
            typer.echo(key.public.hex())
            return
        study = load_scenario(study_file).study
        _check_admission(study, key, admission)
        book["admissions"][study.digest.hex()] = admission
        _rewrite(pass_file, book)
        typer.echo(f"admitted to study {study.name}")


def _check_admission(study: Study, key: SigningKey, admission: str) -> None:
    if study.registrar_key is None:
        raise InputError(f"study {study.name!r} has no registrar: it is open to everybody")
    try:
        signature = bytes.fromhex(admission)
    except ValueError:
        signature = b""
    if not admitted(study.registrar_key, study.digest, key.public, signature):
        raise InputError(
            "this admission is not for your key, not to this very study, or not by its registrar"
        )


def read_pass(path: Path, study: Study) -> Admitted | None:
    """A person's key and her admission to this study; None if the study asks for none."""
    if study.registrar is None:
        messages().print(
            f"[yellow]Note[/]: study {study.name} is open to everybody; your pass is not used.",
            highlight=False,
        )
        return None
    book = _read(path, "mpc-rr pass")
    admission = book["admissions"].get(study.digest.hex())
    if admission is None:
        raise InputError(
            f"{path} holds no admission to this very study {study.name!r}; ask its registrar, then "
            "mpc-rr enrol with --study and --admission"
        )
    return SigningKey(bytes.fromhex(book["key"])), bytes.fromhex(admission)


def read_registrar(path: Path | None) -> SigningKey | None:
    """A registrar's key, if a file is given."""
    if path is None:
        return None
    return SigningKey(bytes.fromhex(_read(path, "mpc-rr registrar")["key"]))


def _read(path: Path, kind: str) -> dict[str, Any]:
    book: dict[str, Any] = {}
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        good = book["kind"] == kind and len(bytes.fromhex(book["key"])) == 32
        inside = book["admitted" if kind == "mpc-rr registrar" else "admissions"]
        good &= isinstance(inside, dict)
        for admission in inside.values() if kind == "mpc-rr pass" else ():
            bytes.fromhex(admission)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise InputError(f"{path} is not a file of the kind {kind!r}")
    return dict(book)


def _write_new(path: Path, book: dict[str, Any]) -> None:
    """A file that only its owner can read, and that overwrites nothing."""
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(json.dumps(book, indent=2) + "\n", encoding="utf-8")
    except FileExistsError:
        raise InputError(f"{path} exists already") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _rewrite(path: Path, book: dict[str, Any]) -> None:
    """Replace a file as a whole: if that fails, the old one is still there."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    _write_new(temporary, book)
    temporary.replace(path)
