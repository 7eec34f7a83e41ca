"""Is it in everybody's own interest to follow the protocol? (004, sections 2.3 and 4.)

Respondents choose strategies, what the study publishes follows, and an attacker links what is
published. Of every run two things are measured:

* accuracy: how much of the true tables of one open and one confidential attribute (numbers in
  quarters) the release gets right, from 0 to 1;
* exposure, of each: how often the attacker names her true confidential values. In groups he knows
  everybody's quasi-identifiers and group, and picks one of the records that may be hers. Of masked
  values he puts all together, and picks one of the values that remain possible.

A respondent's gain is interest × accuracy, if she gets the data, minus concern × exposure. One of
them, Ann, tries each strategy with the same people and the same random numbers; so differences of
gains are paired, and have standard errors.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpc_rr.anonymization.beside import Columns, read_release
from mpc_rr.anonymization.hierarchy import Labels
from mpc_rr.anonymization.perturbation import (
    NoPerturbation,
    Perturbation,
    RankSwap,
    read_perturbation,
    reverse_mapped,
)
from mpc_rr.anonymization.releases import Grouped
from mpc_rr.anonymization.table import Array, Codes, Microdata
from mpc_rr.anonymization.together import all_together
from mpc_rr.errors import InputError
from mpc_rr.planning.hiding import Figure, shuffled
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.runs import OnProgress
from mpc_rr.reproduce.verdict import FEWEST, Claim, Comparison, Verdict, mean_margin
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.file import Scenario

FOLLOW, REFUSE, FREE_RIDE, DEVIATE, OVERDO = "follow", "refuse", "free-ride", "deviate", "overdo"
WHAT = {
    FOLLOW: "report truthfully, as the study asks",
    OVERDO: "report truthfully, but masked so that the masked value tells nothing",
    REFUSE: "do not take part (and get the data only if they are for all)",
    FREE_RIDE: "take part with invented confidential values",
    DEVIATE: "report truthfully, and tell all others which values are one's own",
}
INTERESTS = (0.0, 0.5, 1.0)
CONCERNS = (0.0, 0.01, 0.1, 1.0)
EXTREMES = {"the data": (1.0, 0.0), "privacy": (0.0, 1.0)}
"""Gains are linear in interest and concern: what holds for these two holds for all."""
QUARTERS = (0.25, 0.5, 0.75)
USUAL_PEOPLE, RUNS, MIXED = 40, 40, 4
"""Of the random profiles there are so many."""
FEWEST_RUNS = 2


@dataclass(frozen=True)
class Played:
    """What came out of one profile of strategies."""

    accuracy: float
    exposure: tuple[float, ...]
    """Of each respondent."""
    there: tuple[bool, ...]
    """Who took part."""

    def gain(self, person: int, interest: float, concern: float, *, for_all: bool) -> float:
        """Of somebody with these preferences."""
        gets = for_all or self.there[person]
        return interest * self.accuracy * gets - concern * self.exposure[person]


class Game(ABC):
    """A study that is played by some of its people."""

    strategies: tuple[str, ...]

    def __init__(self, schema: Schema, records: Codes, seed: int) -> None:
        self.schema, self.records = schema, records
        self.rng = SeededRandomness(seed).fork("co-utility")

    @abstractmethod
    def play(self, profile: Sequence[str]) -> Played:
        """What comes out if each plays this; for the same profile always the same."""

    def _reported(self, profile: Sequence[str], confidential: Sequence[str]) -> Codes:
        """What each would report: who takes a free ride has invented her confidential values."""
        told = self.records.copy()
        for name in confidential:
            place, attribute = self.schema.names.index(name), self.schema.attribute(name)
            invented = self.rng.fork(f"invented {name}").uniform((len(told),))
            codes = np.floor(invented * attribute.answers_possible).astype(np.int64)
            if not attribute.numeric:
                codes = np.array(attribute.answer_codes)[codes]
            rides = np.array([strategy == FREE_RIDE for strategy in profile])
            told[rides, place] = codes[rides]
        return told

    def accuracy_of(self, attributes: Sequence[Attribute], released: Columns, open_: int) -> float:
        """One minus the total variation of the tables, on average over pairs."""
        places = [self.schema.names.index(attribute.name) for attribute in attributes]
        true = Columns.of(Microdata(tuple(attributes), self.records[:, places]))
        found = [_classes(true, place, released) for place in range(len(attributes))]
        pairs = [
            (a, b)
            for a in range(len(attributes))
            for b in range(a + 1, len(attributes))
            if b >= open_
        ]
        apart = [_apart(found[a], found[b], (true, released)) for a, b in pairs]
        return 1 - sum(apart) / len(apart)


NEITHER = 1 << 30
"""The class of what is no answer, a set of several, or not told."""


def _classes(true: Columns, place: int, released: Columns) -> tuple[Codes, Codes]:
    """Of one attribute, true and released: quarters of numbers, categories, and what is neither."""
    attribute, every = true.attributes[place], (true.values[place], released.values[place])
    numbers = every[0][~np.isnan(every[0])]
    if attribute.numeric and len(numbers):
        edges = np.quantile(numbers, QUARTERS)
        found = [np.searchsorted(edges, values, "right") for values in every]
    else:
        found = [np.rint(np.nan_to_num(values)).astype(np.int64) for values in every]
    beyond = [np.isnan(values) | (values >= attribute.size) for values in every]
    one, other = (
        np.where(outside, NEITHER, codes).astype(np.int64)
        for outside, codes in zip(beyond, found, strict=True)
    )
    return one, other


def _apart(
    one: tuple[Codes, Codes], other: tuple[Codes, Codes], both: tuple[Columns, Columns]
) -> float:
    """The total variation between the true and the released table of two attributes."""
    cells = [np.stack(pair) for pair in zip(one, other, strict=True)]
    kinds, places = np.unique(np.hstack(cells), axis=1, return_inverse=True)
    places, count = places.reshape(-1), cells[0].shape[1]
    shares = []
    for own, columns in zip((places[:count], places[count:]), both, strict=True):
        found = np.bincount(own, columns.weights, kinds.shape[1])
        shares.append(found / max(float(columns.weights.sum()), 1.0))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


class GroupsGame(Game):
    """Protocol 1."""

    strategies = (FOLLOW, REFUSE, FREE_RIDE, DEVIATE)

    def __init__(
        self, protocol: CollaborativeKAnonymity, schema: Schema, records: Codes, seed: int
    ) -> None:
        super().__init__(schema, records, seed)
        self.protocol = protocol
        self.order = shuffled(len(records), self.rng.fork("order"))
        quasi = [schema.names.index(name) for name in protocol.quasi_identifiers]
        self.known = Microdata(schema.pick(protocol.quasi_identifiers), records[:, quasi])
        self.hidden = [schema.names.index(name) for name in protocol.confidential]

    def play(self, profile: Sequence[str]) -> Played:
        """The release, and what is picked from it."""
        there = np.array([strategy != REFUSE for strategy in profile])
        if there.sum() < self.protocol.k:
            return Played(0.0, (0.0,) * len(profile), tuple(there.tolist()))
        told = self._reported(profile, self.protocol.confidential)[:, self.hidden]
        inside = np.flatnonzero(there)
        groups, levels = self._groups(inside)
        members = [inside[list(group)] for group in groups]
        exposure = tuple(
            self._exposure(person, profile, members, told) for person in range(len(profile))
        )
        released = self._released(members, levels, told)
        attributes = (*self.known.attributes, *self.schema.pick(self.protocol.confidential))
        accuracy = self.accuracy_of(attributes, released, len(self.known.attributes))
        return Played(accuracy, exposure, tuple(there.tolist()))

    def _groups(self, inside: Codes) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        known = [tuple(row) for row in self.known.codes[inside].tolist()]
        place = {person: number for number, person in enumerate(inside.tolist())}
        order = [place[person] for person in self.order.tolist() if person in place]
        return self.protocol.groups_of(self.schema, known, order)

    def _released(self, members: Sequence[Codes], levels: tuple[int, ...], told: Codes) -> Columns:
        """As whoever analyses it reads it; the values of a group in an order of chance."""
        everybody = np.sort(np.concatenate(members))
        place = {person: number for number, person in enumerate(everybody.tolist())}
        order = {person: number for number, person in enumerate(self.order.tolist())}
        confidential, tables = self.schema.pick(self.protocol.confidential), []
        for group in members:
            drawn = sorted(group.tolist(), key=lambda person: order[person])
            tables.append(Microdata(confidential, told[drawn]))
        rows = [np.array([place[person] for person in group.tolist()]) for group in members]
        labels = None
        if self.protocol.hierarchies is not None:
            labels = Labels(self.protocol.all_hierarchies(self.schema), levels)
        known = Microdata(self.known.attributes, self.known.codes[everybody])
        return read_release(Grouped(known, rows, tables, labels), self.protocol.release)

    def _exposure(
        self, person: int, profile: Sequence[str], members: Sequence[Codes], told: Codes
    ) -> float:
        """How often a record that may be hers has her true values.

        Whoever tells which record is hers leaves the others of her group one candidate fewer. Who
        is in no group is guessed from the groups of those most like her.
        """
        own = [group for group in members if person in group] or self._nearest(person, members)
        candidates = np.concatenate(own)
        announced = np.array([profile[other] == DEVIATE for other in candidates.tolist()])
        if person in candidates and profile[person] == DEVIATE:
            candidates = np.array([person])
        elif not announced.all():
            candidates = candidates[~announced]
        true = self.records[person, self.hidden]
        return float((told[candidates] == true).all(axis=1).mean())

    @cached_property
    def _apart(self) -> Codes:
        points = self.known.points.astype(np.float64)
        return np.asarray(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))

    def _nearest(self, person: int, members: Sequence[Codes]) -> list[Codes]:
        distances = [self._apart[person, group].min() for group in members]
        return [g for g, far in zip(members, distances, strict=True) if far == min(distances)]


class MasksGame(Game):
    """Protocol 2."""

    strategies = (FOLLOW, OVERDO, REFUSE, FREE_RIDE, DEVIATE)

    def __init__(
        self, protocol: CollaborativeMasking, schema: Schema, records: Codes, seed: int
    ) -> None:
        super().__init__(schema, records, seed)
        self.protocol = protocol

    def play(self, profile: Sequence[str]) -> Played:
        """The release, and what remains possible."""
        there = np.array([strategy != REFUSE for strategy in profile])
        if there.sum() < self.protocol.mix.count:
            return Played(0.0, (0.0,) * len(profile), tuple(there.tolist()))
        told = self._reported(profile, self.protocol.confidential)
        released, exposures = told.copy(), []
        for name in self.protocol.confidential:
            place = self.schema.names.index(name)
            mapped, exposure = self._masked(name, profile, told[:, place])
            released[:, place] = mapped
            exposures.append(exposure)
        attributes = (
            *self.schema.pick(self.protocol.open),
            *self.schema.pick(self.protocol.confidential),
        )
        places = [self.schema.names.index(attribute.name) for attribute in attributes]
        columns = Columns.of(Microdata(attributes, released[there][:, places]))
        accuracy = self.accuracy_of(attributes, columns, len(self.protocol.open))
        mean = np.mean(np.stack(exposures), axis=0).tolist()
        return Played(accuracy, tuple(mean), tuple(there.tolist()))

    def _masked(self, name: str, profile: Sequence[str], told: Codes) -> tuple[Codes, Array]:
        """What is told of an attribute once it is mapped back, and how each is exposed by it."""
        attribute = self.schema.attribute(name)
        recommended = read_perturbation(self.protocol.masks.get(name, "none"), attribute)
        asked = np.array([strategy != REFUSE for strategy in profile])
        people = np.flatnonzero(asked & (told != _gap(attribute)))
        values, masked = np.sort(told[people]), []
        for person in people.tolist():
            rng = self.rng.fork(f"mask {name} {person}")
            mask = _mask(profile[person], recommended)
            masked.append(mask.draw(int(told[person]), values, rng))
        mapped = told.copy()
        names = [f"{person}" for person in people.tolist()]
        seed = self.rng.fork("ties").bytes(32)
        mapped[people] = reverse_mapped(masked, values.tolist(), names, seed, name)
        return mapped, self.exposure_of(name, profile, people, told, masked, recommended)

    def exposure_of(
        self, name: str, profile: Sequence[str], people: Codes, told: Codes,
        masked: Sequence[int], recommended: Perturbation,
    ) -> Array:  # fmt: skip
        """How often each's true value is named by who guesses among what remains possible.

        The values of those who told which is theirs are nobody else's. Who is not there, or gave no
        answer, is guessed from the list.
        """
        true = self.records[:, self.schema.names.index(name)]
        own = dict(zip(people.tolist(), masked, strict=True))
        quiet = [person for person in own if profile[person] != DEVIATE]
        values = [int(told[person]) for person in quiet]
        together = all_together([own[person] for person in quiet], values, recommended)
        possible = dict(zip(quiet, together.possible, strict=True))
        everything = set(values)
        exposure = np.zeros(len(profile))
        for person in range(len(profile)):
            if person in own and profile[person] == DEVIATE:
                exposure[person] = 1.0
                continue
            left = possible.get(person, everything)
            exposure[person] = (int(true[person]) in left) / max(len(left), 1)
        return exposure


def _gap(attribute: Attribute) -> int:
    return -1 if attribute.missing_code is None else attribute.missing_code


def _mask(strategy: str, recommended: Perturbation) -> Perturbation:
    if strategy == DEVIATE:
        return NoPerturbation()
    return RankSwap(100) if strategy == OVERDO else recommended


# ── What a study's people would gain ───────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Profile:
    """Who plays what. Ann and Bob are two of the people."""

    name: str
    ann: str = FOLLOW
    bob: str = FOLLOW
    others: str = FOLLOW

    def of(self, ann: int, bob: int, people: int) -> list[str]:
        """The strategy of each."""
        profile = [self.others] * people
        profile[ann], profile[bob] = self.ann, self.bob
        return profile


@dataclass(frozen=True)
class Run:
    """Some people, Ann and Bob among them, and what came out of each profile."""

    ann: int
    played: Mapping[str, Played]
    replayed: Played
    """All follow, from the start once more: nothing that is played takes anybody's preferences."""


@dataclass(frozen=True)
class Reply:
    """Whether following is a best reply for somebody with these preferences, if all others do."""

    for_all: bool
    """Whether everybody gets the data; else participants alone."""
    interest: float
    concern: float
    verdict: Verdict
    better: str | None
    """Where it is not: of what pays more, what pays most."""


@dataclass(frozen=True)
class CoUtility:
    """What playing a study showed."""

    study: str
    protocol: str
    people: int
    strategies: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """What Ann can do instead of following."""
        return tuple(name for name in self.strategies if name != FOLLOW)

    def accuracy(self, profile: str) -> Figure:
        """Over the runs."""
        return Figure(tuple(run.played[profile].accuracy for run in self.runs))

    def exposure(self, profile: str) -> Figure:
        """Of Ann."""
        return Figure(tuple(run.played[profile].exposure[run.ann] for run in self.runs))

    def exposure_of_others(self, profile: str) -> Figure:
        """Of all but Ann, on average."""
        found = []
        for run in self.runs:
            whole = run.played[profile].exposure
            found.append((sum(whole) - whole[run.ann]) / (len(whole) - 1))
        return Figure(tuple(found))

    def _margins(
        self, profiles: Sequence[str], interest: float, concern: float, *, for_all: bool
    ) -> list[Comparison]:
        """What Ann gains, run by run, if all follow instead; where it is the same, nothing."""
        found: list[Comparison] = []
        if not (interest or concern):
            return found
        for name in profiles:
            differences = [
                run.played[FOLLOW].gain(run.ann, interest, concern, for_all=for_all)
                - run.played[name].gain(run.ann, interest, concern, for_all=for_all)
                for run in self.runs
            ]
            margin = compared(name, differences)
            found += [] if margin is None else [margin]
        return found

    @cached_property
    def replies(self) -> list[Reply]:
        """For a grid of preferences: whether Ann gains by playing something else (section 2.3)."""
        return [
            self._reply(interest, concern, for_all=for_all)
            for for_all in (False, True)
            for interest in INTERESTS
            for concern in CONCERNS
        ]

    def _reply(self, interest: float, concern: float, *, for_all: bool) -> Reply:
        found = self._margins(self.others, interest, concern, for_all=for_all)
        verdict, better = judged(found)
        most = min(better, key=lambda each: each.margin, default=None)
        return Reply(for_all, interest, concern, verdict, None if most is None else most.what)

    @property
    def largest_replayed(self) -> float:
        """How far accuracy or anybody's exposure moved at most though all played the same."""
        return max(
            float(np.abs(np.subtract(_all(run.played[FOLLOW]), _all(run.replayed))).max())
            for run in self.runs
        )

    @property
    def suits_privacy(self) -> str:
        """What exposes whoever plays it least, if all others follow."""
        return min(self.strategies, key=lambda name: self.exposure(name).mean or 0.0)

    def moved_by_bob(self) -> tuple[Figure, Figure]:
        """What Ann's accuracy and exposure gain or lose if Bob plays what suits privacy."""
        name = FOLLOW if self.suits_privacy == FOLLOW else f"Bob: {self.suits_privacy}"
        return (
            self.accuracy(name).less(self.accuracy(FOLLOW)),
            self.exposure(name).less(self.exposure(FOLLOW)),
        )

    @cached_property
    def definition_3(self) -> dict[str, tuple[Verdict, tuple[str, ...]]]:
        """Whether nobody gains more in any of the profiles tried, for each of `EXTREMES`.

        With the profiles in which she does. Participants alone get the data.
        """
        found = {}
        for what, (interest, concern) in EXTREMES.items():
            tried = [name for name in self.runs[0].played if not name.startswith("Bob: ")]
            verdict, better = judged(
                self._margins(
                    [name for name in tried if name != FOLLOW], interest, concern, for_all=False
                )
            )
            names = sorted(better, key=lambda each: each.margin)
            found[what] = (verdict, tuple(each.what for each in names))
        return found

    def conclusions(self) -> list[str]:
        """What the grid says, and nothing else."""
        return [
            *(self._of_grid(for_all=for_all) for for_all in (False, True)),
            *self._of_deviating(),
            self._of_definition_2(),
            self._of_definition_3(),
        ]

    def _of_grid(self, *, for_all: bool) -> str:
        cells = [r for r in self.replies if r.for_all == for_all and r.interest and r.concern]
        whose = "all people get the data" if for_all else "only participants get the data"
        parts = []
        for verdict, words in (
            (Verdict.HOLDS, "the best reply in {}"),
            (Verdict.FAILS, "not in {}"),
            (Verdict.OPEN, "cannot be told in {}"),
        ):
            of = [f"{r.concern:g}/{r.interest:g}" for r in cells if r.verdict is verdict]
            if of:
                parts.append(f"{words.format(len(of))} (concern/interest {', '.join(of)})")
        return (
            f"Following, if {whose}, in {len(cells)} cells with some interest and some concern: "
            f"{'; '.join(parts)}."
        )

    def _of_deviating(self) -> list[str]:
        pays = [r for r in self.replies if r.better == DEVIATE]
        if pays:
            return [f"Telling which values are one's own pays most in {len(pays)} cells."]
        return ["Telling which values are one's own pays most in no cell."]

    def _of_definition_2(self) -> str:
        if self.largest_replayed > 0:
            return (
                f"Definition 2 does not hold: a result moved by {self.largest_replayed:.2g} though "
                "nobody played otherwise."
            )
        return (
            "Definition 2 holds as it is written: no message and no attack takes preferences, so "
            f"with strategies fixed another's move nothing; {len(self.runs)} replays gave the "
            "same. They act through what is played: if Bob comes to care for privacy alone, and "
            f"turns to what exposes him least ({self.suits_privacy}), Ann's "
            f"accuracy moves by {in_words(self.moved_by_bob()[0])} and her exposure by "
            f"{in_words(self.moved_by_bob()[1])}."
        )

    def _of_definition_3(self) -> str:
        parts = []
        for what, (verdict, better) in self.definition_3.items():
            more = f" ({', '.join(better[:3])})" if better else ""
            parts.append(f"for who cares for {what} alone it {verdict.value}{more}")
        tried = sum(not name.startswith("Bob: ") for name in self.runs[0].played) - 1
        verdicts = [verdict for verdict, _ in self.definition_3.values()]
        whole = Verdict.FAILS if Verdict.FAILS in verdicts else Verdict.OPEN
        if set(verdicts) == {Verdict.HOLDS}:
            whole = Verdict.HOLDS
        return (
            f"Definition 3, strict co-utility, {whole.value} for all preferences over "
            f"{tried} other profiles: {'; '.join(parts)}. Gains are linear in both, so these two "
            "decide for all."
        )

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "study": self.study,
            "protocol": self.protocol,
            "people": self.people,
            "runs": len(self.runs),
            "profiles": {
                name: {
                    "accuracy": _figure(self.accuracy(name)),
                    "exposure": _figure(self.exposure(name)),
                    "exposure_of_others": _figure(self.exposure_of_others(name)),
                }
                for name in self.runs[0].played
            },
            "replies": [
                {
                    "data": "for all" if r.for_all else "for participants",
                    "interest": r.interest, "concern": r.concern,
                    "verdict": r.verdict.value, "better": r.better,
                }
                for r in self.replies
            ],
            "definition_2": {
                "verdict": (Verdict.FAILS if self.largest_replayed else Verdict.HOLDS).value,
                "largest_difference": self.largest_replayed,
                "bob_turns_to": self.suits_privacy,
                "accuracy_moves": _figure(self.moved_by_bob()[0]),
                "exposure_moves": _figure(self.moved_by_bob()[1]),
            },
            "definition_3": {
                what: {"verdict": verdict.value, "better": list(better)}
                for what, (verdict, better) in self.definition_3.items()
            },
            "conclusions": self.conclusions(),
        }  # fmt: skip


def compared(what: str, differences: Sequence[float]) -> Comparison | None:
    """Paired differences of gains; None where there is none in any of `FEWEST` runs or more.

    Where they are alike in all runs and not 0, chance shows no spread: the signs are judged.
    """
    values = np.array(differences)
    runs = len(values)
    if not values.any() and runs >= FEWEST:
        return None
    if values.any() and not np.ptp(values):
        return Comparison(what, float(values[0]), 0.0, runs, 0.5**runs)
    return mean_margin(what, values)


def judged(found: Sequence[Comparison]) -> tuple[Verdict, list[Comparison]]:
    """Whether no margin is below 0, and those that are; without margins nothing speaks against."""
    if not found:
        return Verdict.HOLDS, []
    claim = Claim("nothing pays more", found)
    return claim.verdict, [each for each in found if each.verdict(claim.level) is Verdict.FAILS]


def in_words(found: Figure) -> str:
    """A mean, and its standard error."""
    if found.mean is None or found.standard_error is None:
        return "something unknown"
    return f"{found.mean:+.3f} (standard error {found.standard_error:.2g})"


def _all(played: Played) -> list[float]:
    return [played.accuracy, *played.exposure]


def _figure(found: Figure) -> dict[str, float | None]:
    return {"mean": found.mean, "standard_error": found.standard_error}


# ── Playing ────────────────────────────────────────────────────────────────────────────────────


def play(
    scenario: Scenario, people: int | None, runs: int, seed: int, progress: OnProgress
) -> CoUtility:
    """Play a study so many times, each time with other people of its data if it has more."""
    protocol, records = scenario.study.protocol, scenario.records()
    count = min(USUAL_PEOPLE, len(records)) if people is None else people
    _check(scenario, count, len(records), runs)
    known, rng = np.array(records, dtype=np.int64), SeededRandomness(seed).fork("people")
    drawn = rng.subsets(len(known), count, runs)
    found: list[Run] = []
    strategies: tuple[str, ...] = ()
    for number in range(runs):
        game = _game(scenario, known[drawn[number]], seed + number)
        strategies = game.strategies
        found.append(_run(game, _game(scenario, known[drawn[number]], seed + number), rng))
        progress(number + 1, runs)
    return CoUtility(scenario.study.title, protocol.name, count, strategies, tuple(found))


def _run(game: Game, again: Game, rng: SeededRandomness) -> Run:
    count = len(game.records)
    ann = int(rng.below(count, ()))
    bob = (ann + 1 + int(rng.below(count - 1, ()))) % count
    played = {
        profile.name: game.play(profile.of(ann, bob, count))
        for profile in profiles(game.strategies)
    }
    for number in range(1, MIXED + 1):
        mixed = rng.below(len(game.strategies), (count,)).tolist()
        played[f"mixed {number}"] = game.play([game.strategies[each] for each in mixed])
    return Run(ann, played, again.play([FOLLOW] * count))


def profiles(strategies: Sequence[str]) -> list[Profile]:
    """All follow; Ann, Bob, all but Ann, or all do something else."""
    found = [Profile(FOLLOW)]
    for name in strategies:
        if name != FOLLOW:
            found += [
                Profile(name, ann=name),
                Profile(f"Bob: {name}", bob=name),
                Profile(f"all others {name}", bob=name, others=name),
                Profile(f"all {name}", name, name, name),
            ]
    return found


def _game(scenario: Scenario, records: Codes, seed: int) -> Game:
    protocol, schema = scenario.study.protocol, scenario.study.schema
    if isinstance(protocol, CollaborativeMasking):
        return MasksGame(protocol, schema, records, seed)
    assert isinstance(protocol, CollaborativeKAnonymity)
    return GroupsGame(protocol, schema, records, seed)


def _check(scenario: Scenario, people: int, records: int, runs: int) -> None:
    """`InputError` if this cannot be played."""
    protocol = scenario.study.protocol
    if not isinstance(protocol, CollaborativeKAnonymity | CollaborativeMasking):
        raise InputError(
            f"{scenario.path}: its protocol is {protocol.name}; what is played is "
            "collaborative_k_anonymity or collaborative_masking"
        )
    protocol.check(scenario.study.setting)
    if runs < FEWEST_RUNS:
        raise InputError(f"--runs {runs}: at least {FEWEST_RUNS} runs tell how sure a result is")
    if people > records:
        raise InputError(f"--people {people}: {scenario.path} has {records} records")
    least, why = (
        (protocol.k + 1, f"groups of {protocol.k} of which one can refuse")
        if isinstance(protocol, CollaborativeKAnonymity)
        else (protocol.mix.count + 1, f"{protocol.mix.count} relays of which one can refuse")
    )
    if people < least:
        raise InputError(f"--people {people}: at least {least} are needed, for {why}")
