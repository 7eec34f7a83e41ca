"""Checks on invitations and rosters that coordinator and party share."""

import hashlib
from collections.abc import Collection, Mapping, Sequence

import msgspec

from mpc_rr.crypto.admission import Pass, pass_fault
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.envelope import (
    RUN_BYTES,
    WIRE_VERSION,
    encode,
    encode_parts,
    is_party_name,
)
from mpc_rr.network.lifecycle import Invitation, Member, Roster
from mpc_rr.protocols.interface import SMALLEST
from mpc_rr.study.definition import Study


def run_id(invitation: Invitation, version: int = WIRE_VERSION) -> bytes:
    """The identifier of a run: it binds the coordinator's keys, the study and a fresh nonce.

    ``version``: of the wire on which it took place.
    """
    bound = (invitation.identity, invitation.study_digest, invitation.nonce, b"")
    encoded = msgspec.msgpack.encode(bound)
    digest = hashlib.sha256(b"mpc-rr run v%d\0" % version + encoded).digest()
    return digest[: RUN_BYTES[version]]


def join_claim(run: bytes, name: str, identity: PublicIdentity) -> bytes:
    """What a party proves of its sealing key when it joins: that it is its own."""
    return encode_parts(b"mpc-rr join", run, name.encode(), identity.signing, identity.sealing)


def roster_digest(roster: Roster) -> bytes:
    """What parties compare to be sure that all were shown the same roster."""
    return hashlib.sha256(b"mpc-rr roster v1\0" + encode(roster)).digest()


def session_name(attempt: int) -> str:
    """The name of an attempt's session; the sessions of its protocols stand below it."""
    return f"attempt-{attempt}"


def roster_fault(roster: Roster, study: Study, earlier: Roster | None) -> str | None:
    """Why an honest coordinator would not show this roster, or None."""
    names = [member.name for member in roster.members]
    keys = [key for m in roster.members for key in (m.identity.signing, m.identity.sealing)]
    if len(set(names)) != len(names) or not all(map(is_party_name, names)):
        return "a party is in it twice or has no proper name"
    if len(set(keys)) != len(keys):
        return "two parties in it have the same key"
    if not all(member.identity.usable for member in roster.members):
        return "a party in it has a key that cannot be used"
    if not max(SMALLEST, study.parties.fewest) <= len(names) <= study.parties.count:
        return (
            f"it has {len(names)} parties where the study allows "
            f"{max(SMALLEST, study.parties.fewest)} to {study.parties.count}"
        )
    if earlier is not None:
        known = {(m.name, m.identity) for m in earlier.members}
        if not {(m.name, m.identity) for m in roster.members} < known:
            return "a repetition must have fewer parties than before, and no new ones"
    return None


def member_pass_fault(
    study: Study,
    run: bytes,
    withdrawn: Collection[bytes],
    identity: PublicIdentity,
    shown: Pass | None,
) -> str | None:
    """Why this pass does not show that its owner may take part in the study, or None.

    ``withdrawn``: the persons' keys on the registrar's list of withdrawals, as far as it is known.
    """
    registrar = study.registrar_key
    if registrar is None:
        return None
    if shown is None:
        return "it has no pass"
    return pass_fault(shown, registrar, study.digest, run, identity, withdrawn)


def passes_fault(
    study: Study,
    run: bytes,
    withdrawn: Collection[bytes],
    members: Sequence[Member],
    passes: Mapping[str, Pass],
) -> str | None:
    """Why these passes do not show that every member is another person, or None."""
    if set(passes) != {member.name for member in members}:
        return "it does not show one pass for each party"
    for member in members:
        fault = member_pass_fault(study, run, withdrawn, member.identity, passes[member.name])
        if fault is not None:
            return f"{member.name}: {fault}"
    if len({shown.person for shown in passes.values()}) < len(passes):
        return "a person is there twice, under two names"
    return None
