"""On what terms a party takes part: whom it believes, what it may spend, what it has decided."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mpc_rr.agents.account import Account
from mpc_rr.agents.handing_out import Everything
from mpc_rr.crypto.admission import Pass, SigningKey, admitted
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import InputError
from mpc_rr.network.session.party import Decide
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study

Admitted = tuple[SigningKey, bytes]
"""A person's key, and the registrar's signature on it."""


@dataclass(frozen=True)
class Terms:
    """What a party brings besides its record. Nothing of it is shown to others but the pass."""

    coordinator_fingerprint: str | None = None
    """Only this coordinator is believed; the first that answers, if not given."""
    account: Account = field(default_factory=Account)
    choices: Mapping[str, str] = field(default_factory=dict)
    """What the protocol leaves to each party, by its keywords."""
    admission: Admitted | None = field(default=None, repr=False)
    again: bool = False
    """Whether to take part even if an earlier run could be compared with this one."""
    withdrawn: Collection[bytes] = ()
    """The persons' keys on the registrar's list of withdrawals, if this party was given it."""
    everything: Everything | None = field(default=None, repr=False)
    """All that was said, if it is wished for in the end. The parties of a host may share a wish."""
    decide: Decide | None = field(default=None, repr=False)
    """What it decides when it has seen something: what it is asked, its protocol says."""

    def check(self, study: Study, record: Record | None = None) -> None:
        """Raises if one cannot take part in this study, with this record, on these terms.

        `InputError`, or `Declined` where the ledger is against it. Asked before anybody joins.
        """
        study.check_open()
        study.protocol.check_choices(study.setting, self.choices)
        self.account.check(study, record, again=self.again)
        registrar = study.registrar_key
        if registrar is None:
            return
        if self.admission is None:
            raise InputError(
                f"study {study.name!r} takes only people whom its registrar has admitted; give "
                "your pass with --pass (mpc-rr enrol makes one)"
            )
        person, admission = self.admission
        if not admitted(registrar, study.digest, person.public, admission):
            raise InputError(
                f"your admission is not for the key in your pass, not to this very study "
                f"{study.name!r} (its file may have been changed since), or not by its registrar"
            )
        if person.public in self.withdrawn:
            raise InputError(
                f"the registrar has withdrawn your admission to study {study.name!r}: your key is "
                "on its list of withdrawals; ask it to admit you again, with a new pass "
                "(mpc-rr enrol)"
            )

    def pass_for(self, study: Study, run: bytes, identity: PublicIdentity) -> Pass | None:
        """The pass to be shown in a run, if the study asks for one."""
        if study.registrar is None or self.admission is None:
            return None
        person, admission = self.admission
        return Pass(person.public, admission, person.prove(run, identity))
