"""The registrar's list of withdrawals, as a file that anybody may have."""

from pathlib import Path

import msgspec

from mpc_rr.crypto.admission import Withdrawals, withdrawals_fault
from mpc_rr.errors import InputError
from mpc_rr.study.definition import Study

KIND, VERSION = "mpc-rr withdrawals", 1


class _File(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    version: int
    study_digest: str
    number: int
    withdrawn: tuple[str, ...]
    signature: str


def withdrawals_text(listed: Withdrawals) -> str:
    """What the file says: JSON, with everything that the signature covers."""
    keys = tuple(key.hex() for key in listed.persons)
    file = _File(
        KIND, VERSION, listed.study_digest.hex(), listed.number, keys, listed.signature.hex()
    )
    return msgspec.json.format(msgspec.json.encode(file)).decode() + "\n"


def read_withdrawals(path: Path, study: Study) -> Withdrawals:
    """The list in a file, if the study's registrar has signed it for this very study."""
    if study.registrar_key is None:
        raise InputError(
            f"study {study.name!r} has no registrar, who could have withdrawn anything: leave out "
            "--withdrawals"
        )
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
        if (file.kind, file.version) != (KIND, VERSION):
            raise ValueError  # noqa: TRY301
        listed = Withdrawals(
            bytes.fromhex(file.study_digest),
            file.number,
            tuple(map(bytes.fromhex, file.withdrawn)),
            bytes.fromhex(file.signature),
        )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is not a file of the kind {KIND!r}, version {VERSION}") from None
    fault = withdrawals_fault(listed, study.registrar_key, study.digest)
    if fault is not None:
        raise InputError(
            f"{path} is not the list of withdrawals for study {study.name!r}: {fault}; ask the "
            "registrar for it"
        )
    return listed


def withdrawn(listed: Withdrawals | None) -> frozenset[bytes]:
    """The keys on a list, for quick looking up; none if there is no list."""
    return frozenset(() if listed is None else listed.persons)
