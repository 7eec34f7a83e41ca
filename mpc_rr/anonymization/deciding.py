"""What a respondent sees before she decides how to mask a value (paper 004, Protocol 2, step 3).

She has the list of all values (of each attribute apart, in rising order: whose they are, and which
belong together, nobody knows), her own place in it, and for any mask what it would leave to an
attacker and how far it would move her.

What a mask leaves is told by Bayes for an attacker who knows which mask it was. That holds if
whoever has another value would have decided alike. If the decision depends on the value, the
decision itself tells of it: who masks more because her value is rare, tells that it is rare. A rule
that is given beforehand therefore sees the list and never the value (`decided_by_rule`).
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpc_rr.anonymization.permutation import middle_ranks
from mpc_rr.anonymization.perturbation import ChosenValue, Perturbation, read_perturbation
from mpc_rr.anonymization.table import Codes
from mpc_rr.errors import InputError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute

DRAWS = 200
"""So often a mask is tried for what it usually leaves, and how far it moves."""
RULE = re.compile(r"first:([1-9][0-9]{0,8}):(.+)")


@dataclass(frozen=True)
class Outlook:
    """What a mask would do to a respondent's value."""

    words: str
    fewest: int
    """So many different values remain at least, whatever is drawn for her."""
    usual: int
    """In half of all draws so many remain, or more."""
    for_anybody: int
    """So many remain at least, whoever used this mask."""
    moved: float
    """By so many ranks it moves her on average, among the values of the others as they are."""


@dataclass(frozen=True)
class Asked:
    """One decision: an attribute, the values of all, one's own, and what the study recommends."""

    attribute: Attribute
    values: tuple[int, ...]
    """The codes of all who answered, in rising order."""
    own: int
    recommended: str
    seconds: float = math.inf
    """So long there is time to decide; then the recommended mask is used, or she withdraws."""

    @cached_property
    def _ordered(self) -> Codes:
        return np.array(self.values, dtype=np.int64)

    @property
    def rank(self) -> tuple[int, int]:
        """The first and the last place that her value has, counted from 1 at the lowest."""
        low, high = (int(np.searchsorted(self._ordered, self.own, s)) for s in ("left", "right"))
        return low + 1, max(high, low + 1)

    def outlook(self, words: str) -> Outlook:
        """What a mask would leave and move; `InputError` if it makes no sense here."""
        mask = read_perturbation(words, self.attribute)
        if isinstance(mask, ChosenValue):
            raise InputError(
                "what a value of your own choice leaves depends on how you choose it: nothing "
                "bounds what it tells"
            )
        rng = SeededRandomness(words.encode() + self._ordered.tobytes())
        drawn = [mask.draw(self.own, self._ordered, rng) for _ in range(DRAWS)]
        left = sorted(mask.candidates(code, self._ordered).values for code in drawn)
        mine = fewest_left(mask, self._ordered, mask.taken_from(self.own, self._ordered))
        everybody = fewest_left(mask, self._ordered, self._ordered)
        return Outlook(words, mine, left[DRAWS // 2], everybody, self._moved(drawn))

    def _moved(self, drawn: Sequence[int]) -> float:
        ranks = middle_ranks(self._ordered)
        own = ranks[self.rank[0] - 1] if len(ranks) else 0.0
        low, high = (np.searchsorted(self._ordered, drawn, s) for s in ("left", "right"))
        among = np.where(high > low, (low + high - 1) / 2, low - 0.5)
        same = np.array(drawn) == self.own
        return float(np.abs(np.where(same, own, np.clip(among, 0, len(ranks) - 1)) - own).mean())


def fewest_for_anybody(mask: Perturbation, values: Sequence[int]) -> int:
    """So many different values remain at least, whoever uses this mask and whatever is drawn."""
    ordered = np.sort(np.asarray(values, dtype=np.int64))
    return fewest_left(mask, ordered, ordered)


def fewest_left(mask: Perturbation, ordered: Codes, taken: Codes) -> int:
    """Over all masked values that noise makes of these.

    What remains changes only where a value comes within reach of the noise, or drops out of it.
    """
    noise, taken = mask.noise(), np.unique(taken)
    masked = taken - noise
    if noise:
        changes = np.concatenate([ordered - noise, ordered + noise + 1])
        place = np.searchsorted(taken, changes - noise)
        within = np.flatnonzero(place < len(taken))
        changes, nearest = changes[within], taken[place[within]]
        masked = np.concatenate([masked, changes[np.abs(changes - nearest) <= noise]])
    return min(mask.candidates(code, ordered).values for code in np.unique(masked).tolist())


# ── Rules that are given beforehand ────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rule:
    """``first:C:MASK,MASK,…``: the first of these masks that leaves everybody C different values.

    If none does, the last of them.
    """

    least: int
    masks: tuple[str, ...]


def read_rule(words: str, attribute: Attribute) -> Rule | None:
    """A rule from words; None if they are those of a mask; `InputError` if they make no sense."""
    if not words.startswith("first:"):
        return None
    fits = RULE.fullmatch(words)
    if fits is None:
        raise InputError(
            f"mask of {attribute.name!r}: a rule looks like first:5:swap:10,swap:20,swap:50, not "
            f"{words!r}"
        )
    rule = Rule(int(fits[1]), tuple(fits[2].split(",")))
    for mask in rule.masks:
        if isinstance(read_perturbation(mask, attribute), ChosenValue):
            raise InputError(f"mask of {attribute.name!r}: a rule takes masks, no values")
    return rule


def decided_by_rule(rule: Rule, attribute: Attribute, values: Sequence[int]) -> str:
    """What a rule decides for a list of values: the same for everybody who has it."""
    for words in rule.masks:
        if fewest_for_anybody(read_perturbation(words, attribute), values) >= rule.least:
            return words
    return rule.masks[-1]


def tries(asked: Asked) -> list[str]:
    """Masks that are worth a look: what is recommended, some swaps, and none."""
    offered = [asked.recommended, "swap:5", "swap:10", "swap:25", "swap:50", "none"]
    return list(dict.fromkeys(offered))
