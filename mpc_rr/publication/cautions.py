"""What a respondent should know before she takes part: what may go wrong, and what prevents it."""

from collections.abc import Sequence

from mpc_rr.errors import quoted
from mpc_rr.privacy.disclosures import Caution, Disclosure, InGroup, Masked, NoisySum, Unstated
from mpc_rr.publication.ending import Setting

FEW = 0.5
"""A study that may go on with a smaller part of those expected is said to."""

RANDOMIZED = (
    "a protocol in which answers are randomized, like rr_joint (a larger k only makes it rarer)"
)


def cautions_of(events: Sequence[Disclosure], study: Setting) -> list[Caution]:
    """What follows from what is disclosed, and from who may take part."""
    found = [*_by_event(events)]
    in_crowd = [e for e in events if e.added_up or isinstance(e, InGroup | Masked)]
    if in_crowd:
        found += _by_who_takes_part(in_crowd, study)
    if in_crowd and study.fewest < FEW * study.expected:
        found.append(
            Caution(
                f"{study.expected:,} parties are expected, but the study may go on with "
                f"{study.fewest:,}: you would be hidden among so few.",
                "a higher minimum in [parties]",
            )
        )
    return found


def _by_who_takes_part(in_crowd: Sequence[Disclosure], study: Setting) -> list[Caution]:
    """What whoever is many of the parties would learn, and who can be."""
    limits = [most for e in in_crowd if (most := getattr(e, "withstands", None)) is not None]
    others, would = "all other parties", "would"
    learned = "what you added to the totals"
    if any(isinstance(event, InGroup) for event in in_crowd):
        others, learned = "all others in your group", "which of the published values are yours"
    elif any(isinstance(event, Masked) for event in in_crowd):
        learned = "your true values"
    elif limits:
        others, would = f"more than {min(limits):,} of the {study.expected:,} parties", "could"
        if all(isinstance(event, NoisySum) for event in in_crowd):
            learned = "more about you than ε says"
    if not study.registrar:
        return [
            Caution(
                "The study is open: anyone may take part under any number of names, the "
                f"coordinator too. If {others} were one person's, that person {would} learn "
                f"{learned}.",
                "a registrar who admits each person once (registrar = … in the study file)",
            )
        ]
    admitting = Caution(
        f"Anyone who holds the registrar's key ({study.registrar_key}…) can admit people who do "
        f"not exist; the author of the study may hold it. If {others} were invented, anyone who "
        f"invented them {would} learn {learned}.",
        "a registrar whom you trust (ask who holds this key)",
    )
    if not limits:
        return [admitting]
    noisy = any(isinstance(event, NoisySum) for event in in_crowd)
    higher = "noise_corrupt in [protocol] and corrupt in [protocol.masking], whichever is the lower"
    pooling = Caution(
        f"If {others} pool what they know, they {would} learn {learned}.",
        f"a higher {higher if noisy else 'corrupt in [protocol.masking]'}",
    )
    return [admitting, pooling]


def _by_event(events: Sequence[Disclosure]) -> list[Caution]:
    found = []
    for event in events:
        named = [*map(quoted, event.attributes)]
        names = ", ".join(named)
        if isinstance(event, Unstated):
            text = "The author of this protocol does not state what it discloses."
            found.append(Caution(text, "a protocol whose author states it"))
        if isinstance(event, InGroup):
            text = (
                f"If all in your group have the same value of {' or '.join(named)}, everyone "
                "learns that it is yours, however large the group is."
            )
            found.append(Caution(text, RANDOMIZED))
        if isinstance(event, Masked) and event.recommended == "none":
            text = f"No mask is recommended for {names}: it is published as it is, under your name."
            found.append(Caution(text, "a mask of your choice for it (--mask NAME=noise:…)"))
    return found
