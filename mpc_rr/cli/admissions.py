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
from mpc_rr.crypto.admission import Credential, SigningKey, admitted, is_sound_key
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

REGISTRAR, PASS = "mpc-rr registrar", "mpc-rr pass"

KeyFile = Annotated[Path, typer.Argument(metavar="KEY", help="The registrar's key file.")]


@registrar_app.command("new")
def registrar_new(key_file: KeyFile, verbose: Verbose = False) -> None:
    """Make a registrar's key; prints the line that goes into study files."""
    with plain_errors(verbose):
        key = SigningKey.draw(SystemRandomness())
        _write_new(key_file, {"kind": REGISTRAR, "key": key.private_hex(), "admitted": {}})
        typer.echo(f'registrar = "{key.public.hex()}"')
        messages().print(
            "Put this line into the study file, before its first \\[section]. Whoever has "
            f"{escape(str(key_file))} can admit anybody: keep it to yourself. It also remembers "
            "whom you admitted: an old copy of it would admit people twice.",
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
        str, typer.Option(help="The key that `mpc-rr enrol` printed for her and this study.")
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
    book = _read(key_file, REGISTRAR)
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
    if not is_sound_key(bytes.fromhex(public)):
        raise InputError("--public: anybody could sign for this key; `mpc-rr enrol` makes no such")
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
        Path | None, typer.Option("--study", help="The study for which you want a key.")
    ] = None,
    admission: Annotated[
        str | None, typer.Option(help="What the registrar gave you for this study.")
    ] = None,
    plugin: PluginOption = None,
    verbose: Verbose = False,
) -> None:
    """Get ready for studies that have a registrar.

    First:  mpc-rr enrol me.pass --study study.toml   prints your public key for this study; give
    it to the registrar. For every study it is another one.

    Then:   mpc-rr enrol me.pass --study study.toml --admission …   keeps what the registrar gave
    you. Take part with:  mpc-rr party study.toml --pass me.pass …
    """
    with plain_errors(verbose, plugin):
        if study_file is None and admission is not None:
            raise InputError("--admission needs --study: to which study is it?")
        study = None if study_file is None else _with_registrar(load_scenario(study_file).study)
        if not pass_file.exists():
            if admission is not None:
                raise InputError(
                    f"there is no {pass_file}; the admission is for a key from the pass that you "
                    "made before"
                )
            secret = Credential.draw(SystemRandomness()).secret_hex()
            _write_new(pass_file, {"kind": PASS, "secret": secret, "admissions": {}})
        book = _read(pass_file, PASS)
        if study is None:
            typer.echo(
                f"{pass_file} is yours alone; your key for a study is printed by: mpc-rr enrol "
                f"{pass_file} --study FILE"
            )
        elif admission is None:
            known = _admitted_key(book, study, book["admissions"].get(study.digest.hex(), ""))
            typer.echo((known or _keys(book, study)[0]).public.hex())
        else:
            if _admitted_key(book, study, admission) is None:
                raise InputError(
                    "this admission is not for your key, not to this very study, or not by its "
                    "registrar"
                )
            book["admissions"][study.digest.hex()] = admission
            _rewrite(pass_file, book)
            typer.echo(f"admitted to study {study.name}")


def _with_registrar(study: Study) -> Study:
    if study.registrar is None:
        raise InputError(f"study {study.name!r} has no registrar: it is open to everybody")
    return study


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


def read_pass(path: Path, study: Study) -> Admitted | None:
    """A person's key and her admission to this study; None if the study asks for none."""
    if study.registrar is None:
        messages().print(
            f"[yellow]Note[/]: study {study.name} is open to everybody; your pass is not used.",
            highlight=False,
        )
        return None
    book = _read(path, PASS)
    admission = book["admissions"].get(study.digest.hex(), "")
    key = _admitted_key(book, study, admission)
    if key is None:
        raise InputError(
            f"{path} holds no admission to this very study {study.name!r}; ask its registrar, then "
            "mpc-rr enrol with --study and --admission"
        )
    return key, bytes.fromhex(admission)


def read_registrar(path: Path | None) -> SigningKey | None:
    """A registrar's key, if a file is given."""
    if path is None:
        return None
    return SigningKey(bytes.fromhex(_read(path, REGISTRAR)["key"]))


def _read(path: Path, kind: str) -> dict[str, Any]:
    book: dict[str, Any] = {}
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        secret = book["secret" if kind == PASS and "secret" in book else "key"]
        good = book["kind"] == kind and len(bytes.fromhex(secret)) == 32
        inside = book["admitted" if kind == REGISTRAR else "admissions"]
        good &= isinstance(inside, dict)
        for admission in inside.values() if kind == PASS else ():
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
