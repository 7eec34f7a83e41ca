"""A study that has ended: what is known of it, and what it publishes."""

import contextlib
import functools
from dataclasses import dataclass, field

from mpc_rr.agents.outcome import Outcome
from mpc_rr.errors import MpcRrError
from mpc_rr.publication.ending import Ending, who_took_part
from mpc_rr.publication.parts import Absence, Participation, Publication
from mpc_rr.publication.whole import published
from mpc_rr.results.format import pretty
from mpc_rr.results.transcript import cost_csv, cost_document
from mpc_rr.study.definition import Study


@dataclass(frozen=True)
class StudyResult:
    """How a study ended: for the coordinator, and for each party that ran here.

    Of parties in processes of their own (``hosts``) only one end of each host is kept, and those
    that failed.
    """

    study: Study
    outcome: Outcome
    parties: dict[str, Ending | MpcRrError] = field(repr=False)
    seed: int | None
    transport: str
    closing: bytes | None = field(default=None, repr=False)
    """The coordinator's signed closing statement (`mpc_rr.results.closing`)."""

    @property
    def _excluded(self) -> tuple[Absence, ...]:
        left_out = self.outcome.excluded
        return tuple(Absence(party=e.name, how="excluded", reason=e.reason) for e in left_out)

    @property
    def participation(self) -> Participation:
        """Who is in the result, and who is not."""
        ending, study = self.outcome.result, self.study
        if ending is not None:
            with contextlib.suppress(Exception):  # then its publication says so
                members = study.setting_with(self.outcome.members)
                return who_took_part(ending, members, self._excluded)
        return Participation(expected=study.parties.count, absent=self._excluded)

    @functools.cached_property
    def cost_files(self) -> dict[str, str]:
        """What it cost the network, as files."""
        cost = cost_document(self.outcome, self.study.step_words)
        return {"cost.json": pretty(cost), "cost.csv": cost_csv(self.outcome)}

    @functools.cached_property
    def publication(self) -> Publication:
        """What the study publishes: made once, when it is first asked for."""
        ending, study = self.outcome.result, self.study
        if ending is None:
            return Publication(participation=self.participation)
        setting = study.setting_with(self.outcome.members)
        return published(ending, setting, study.protocol, self._excluded)
