"""What a respondent should know before she takes part: what may go wrong, and what prevents it."""

from collections.abc import Sequence

from mpc_rr.privacy.disclosures import Caution, Disclosure, InGroup, Masked, Unstated
from mpc_rr.publication.ending import Setting

FEW = 0.5
"""A study that may go on with a smaller part of those expected is said to."""


def cautions_of(events: Sequence[Disclosure], study: Setting) -> list[Caution]:
    """What follows from what is disclosed, and from who may take part."""
    found = [*_by_event(events)]
    in_crowd = [e for e in events if e.added_up or isinstance(e, InGroup | Masked)]
    if in_crowd and not study.registrar:
        others, learned = "all other parties", "what you added to the totals"
        if any(isinstance(event, InGroup) for event in in_crowd):
            others, learned = "all others in your group", "which of the published values are yours"
        elif any(isinstance(event, Masked) for event in in_crowd):
            learned = "your true values"
        found.append(
            Caution(
                "The study is open: anyone may take part under any number of names, the "
                f"coordinator too. If {others} were one person's, that person would learn "
                f"{learned}.",
                "a registrar who admits each person once (registrar = … in the study file)",
            )
        )
    if in_crowd and study.fewest < FEW * study.expected:
        found.append(
            Caution(
                f"{study.expected:,} parties are expected, but the study may go on with "
                f"{study.fewest:,}: you would be hidden among so few.",
                "a higher minimum in [parties]",
            )
        )
    return found


def _by_event(events: Sequence[Disclosure]) -> list[Caution]:
    found = []
    for event in events:
        names = ", ".join(event.attributes)
        if isinstance(event, Unstated):
            text = "The author of this protocol does not state what it discloses."
            found.append(Caution(text, "a protocol whose author states it"))
        if isinstance(event, Masked) and event.recommended == "none":
            text = (
                f"No mask is recommended for “{names}”: it is published as it is, under your name."
            )
            found.append(Caution(text, f"a mask of your choice (--mask {names}=noise:…)"))
    return found
