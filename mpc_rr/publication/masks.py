"""Masked records, mapped back to the original values by rank, and what the masks leave open."""

import hashlib
from collections.abc import Mapping

import msgspec

from mpc_rr.anonymization.beside import Columns
from mpc_rr.anonymization.permutation import expected
from mpc_rr.anonymization.perturbation import (
    Candidates,
    Noise,
    NoPerturbation,
    Perturbation,
    read_perturbation,
    reverse_mapped,
)
from mpc_rr.anonymization.table import Microdata
from mpc_rr.anonymization.together import all_together, possible_values
from mpc_rr.errors import quoted
from mpc_rr.publication.beside_truth import distributions, permutations, relations_listed
from mpc_rr.publication.ending import Draft, Ending, Setting, fact
from mpc_rr.publication.nonresponse import add_non_response, counted
from mpc_rr.publication.parts import (
    Cell,
    Column,
    Listing,
    Participation,
    Publication,
    Sheet,
)
from mpc_rr.publication.sheets import csv_text
from mpc_rr.schema import Attribute, Record, Schema

MOST_FOR_MATCHING = 3000
"""Up to so many respondents it is found out what all masked values together give away."""
MASKS = (
    Column(name="attribute", label="confidential", kind="attribute"),
    Column(name="recommended", label="recommended mask"),
    Column(name="fewest_possible_values", label="fewest possible values", kind="count"),
    Column(name="median_possible_values", label="median", kind="count"),
    Column(name="respondents_given_away", label="identified", kind="count"),
)
OTHER_MASKS = Column(name="other_masks", label="other masks, at least", kind="count")
MOVED = (
    Column(name="attribute", label="confidential", kind="attribute"),
    Column(name="distance", label="moved in rank", kind="share"),
    Column(name="distance_low", label="from", kind="share"),
    Column(name="distance_high", label="to", kind="share"),
    Column(name="correlation", label="rank correlation", kind="number"),
    Column(name="correlation_low", label="from", kind="number"),
    Column(name="correlation_high", label="to", kind="number"),
)
MOVED_CAPTION = (
    "If everyone used the recommended mask: how far people are moved on average, as a share of "
    "all ranks, and how ranks before and after correlate; the mean, and where 95 % lie, of masks "
    "drawn again for the values that were read. What masks really did, only their owners know."
)
OWN = (
    Column(name="attribute", label="your", kind="attribute"),
    Column(name="mask", label="mask"),
    Column(name="candidates", label="values in the list it may be", kind="count"),
    Column(name="different_candidates", label="different ones", kind="count"),
)


class OwnMask(msgspec.Struct, frozen=True):
    """What a respondent's mask did to one value; for her eyes only."""

    attribute: str
    mask: str
    candidates: Candidates | None
    """None: there was no answer to mask."""
    asked: int = 1
    """How many values she wanted to be left."""


class Masking(msgspec.Struct, frozen=True):
    """What is open and what is confidential, and how it was recommended to be masked."""

    open: tuple[str, ...]
    confidential: tuple[str, ...]
    masks: dict[str, str]

    def attributes(self, schema: Schema) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """The open attributes, and the confidential ones."""
        return schema.pick(self.open), schema.pick(self.confidential)


class MaskedRelease(Ending, frozen=True):
    """Open attributes and masked values by respondent, and the original values of each attribute.

    A respondent also has what her own masks leave to an attacker.
    """

    schema: Schema
    options: Masking
    seed: bytes
    records: dict[str, tuple[Record, tuple[int | None, ...]]]
    """Open codes and masked values (None: no answer), by respondent."""
    values: tuple[tuple[int, ...], ...]
    """The original values of each confidential attribute, in rising order."""
    unusable: int
    own: tuple[OwnMask, ...] = ()
    unanswered: tuple[int, ...] = ()
    """How many gave no answer to each confidential question, as the channel has it."""
    earlier: bool = False
    """Whether risks are told only where everybody is there and used the recommended noise, as up to
    rules 4."""

    def __repr__(self) -> str:
        return f"MaskedRelease({len(self.records)} respondents)"

    @property
    def n(self) -> int:
        """How many rows the release has."""
        return len(self.records)

    @property
    def digest(self) -> bytes:
        """What respondents compare to be sure that all have the same result."""
        whole: tuple[object, ...] = (sorted(self.records.items()), self.values, self.seed)
        if any(self.unanswered):
            whole = (*whole, self.unanswered)
        encoded = msgspec.msgpack.encode(whole)
        return hashlib.sha256(b"mpc-rr masked result\0" + encoded).digest()

    def released(self) -> list[tuple[int | None, ...]]:
        """The confidential codes of the release, row by row: masked values mapped back by rank.

        None where there is no answer.
        """
        columns = [self._mapped(place) for place in range(len(self.options.confidential))]
        return list(zip(*columns, strict=True))

    def _answered(self, place: int) -> dict[str, int]:
        """The masked values of those who gave one."""
        masked = {name: codes[place] for name, (_, codes) in self.records.items()}
        return {name: code for name, code in masked.items() if code is not None}

    def _mapped(self, place: int) -> list[int | None]:
        masked, values = self._answered(place), self.values[place]
        if not values:  # whoever gave a masked value all the same had none to mask
            return [None] * len(self.records)
        attribute = self.options.confidential[place]
        found = reverse_mapped(list(masked.values()), values, list(masked), self.seed, attribute)
        mapped = dict(zip(masked, found, strict=True))
        return [mapped.get(name) for name in self.records]

    def beside_truth(self, people: Mapping[str, Record]) -> tuple[Listing, ...]:
        """How far each attribute was really moved, and what is left of relations."""
        open_attributes, confidential = self.options.attributes(self.schema)
        attributes = (*open_attributes, *confidential)
        places = [self.schema.names.index(attribute.name) for attribute in attributes]
        known = [name for name in self.records if name in people]
        if not known:
            return ()
        rows = dict(zip(self.records, self.released(), strict=True))
        true = [tuple(people[name][place] for place in places) for name in known]
        told = [
            (
                *self.records[name][0],
                *(self._code(a, c) for a, c in zip(confidential, rows[name], strict=True)),
            )
            for name in known
        ]
        before, after = Microdata.of(attributes, true), Microdata.of(attributes, told)
        both = Columns.of(before), Columns.of(after)
        return (*distributions(*both), permutations(before, after), *relations_listed(*both))

    def _code(self, attribute: Attribute, code: int | None) -> int:
        """Of a released value; no answer has a code, too."""
        if code is None:
            assert attribute.missing_code is not None
            return attribute.missing_code
        return code

    def participation(self, study: Setting) -> Participation:
        """Those with a row in the release."""
        people = super().participation(study)
        return msgspec.structs.replace(people, counted=self.n, counted_parties=tuple(self.records))

    def publish(self, study: Setting) -> Publication:
        """The release, and what the masks leave to an attacker."""
        draft, confidential = Draft(), self.options.attributes(self.schema)[1]
        draft.find(
            f"{self.n} of {study.expected} respondents have a masked record, mapped back to the "
            "original values by rank.",
            counted=self.n,
            expected=study.expected,
        )
        draft.quantities += [
            fact(name=f"values of {a.name}", label=f"values of {quoted(a.name)} that were read",
                     value=len(values), kind="count")
            for a, values in zip(confidential, self.values, strict=True)
        ] + [
            fact(name="unusable_messages", label="messages that answer nothing that was asked",
                     value=self.unusable, kind="count")
        ]  # fmt: skip
        with draft.part("item non-response"):
            self._publish_non_response(draft)
        with draft.part("the release"):
            self._publish_release(draft)
        with draft.part("disclosure risk after masking"):
            self._publish_attack(draft, confidential)
        if not self.earlier:
            with draft.part("what the masks move"):
                self._publish_moves(draft, confidential)
        if not study.registrar:
            draft.warn(
                "Open study: each party that an attacker controls leaves one candidate fewer. A "
                "registrar who admits each person once protects against this."
            )
        if self.own:
            self._publish_own(draft)
        return draft.publication()

    def _publish_non_response(self, draft: Draft) -> None:
        """Of open questions by the rows of the release, of others by what the channel delivered."""
        shown, confidential = self.options.attributes(self.schema)
        found = []
        for place, attribute in enumerate(shown):
            if attribute.missing is not None:
                codes = [codes[place] for codes, _ in self.records.values()]
                found.append(counted(attribute, self.n, codes.count(attribute.missing_code or 0)))
        for place, attribute in enumerate(confidential):
            if attribute.missing is not None:
                gaps = self.unanswered[place]
                found.append(counted(attribute, len(self.values[place]) + gaps, gaps))
        add_non_response(draft, found)

    def _publish_own(self, draft: Draft) -> None:
        """What a respondent is told of her own masks: never more than an attacker is left with."""
        rows: list[tuple[Cell, ...]] = []
        for own in self.own:
            left = own.candidates
            if left is None:
                rows.append((own.attribute, own.mask, None, None))
                continue
            rows.append((own.attribute, own.mask, left.people, left.values))
            if left.values < own.asked:
                draft.warn(
                    f"you asked for {own.asked} candidates for your {quoted(own.attribute)}, and "
                    f"have {left.values}: the values of all do not allow for more. Your masked "
                    "value tells nothing that they do not tell."
                )
        draft.listings.append(
            Listing(
                name="your_masks",
                title="Your masks",
                columns=OWN,
                rows=tuple(rows),
                caption="None is likelier than 1 in this many, for someone who knows your mask, "
                "your masked value and the values of all. Someone who combines all masked values "
                "may know more. A mask is widened for the values of all, not for yours.",
            )
        )

    def _publish_attack(self, draft: Draft, confidential: tuple[Attribute, ...]) -> None:
        rows: list[tuple[Cell, ...]] = []
        for place, attribute in enumerate(confidential):
            left, others = self._possible(place, attribute)
            recommended = self.options.masks.get(attribute.name, "none")
            if recommended == "none":
                draft.warn(
                    f"no mask is recommended for {quoted(attribute.name)}: anyone who chose none "
                    "has it published as it is, under their name."
                )
            told = () if self.earlier else (others,)
            if left is None:
                rows.append((attribute.name, recommended, None, None, None, *told))
                continue
            given_away = sum(size == 1 for size in left)
            middle = left[len(left) // 2]
            rows.append((attribute.name, recommended, left[0], middle, given_away, *told))
            if given_away:
                several = "respondents are" if given_away > 1 else "respondent is"
                draft.warn(
                    f"{given_away} {several} identified: all masked values together leave only "
                    f"one possible {quoted(attribute.name)}. Use a wider mask."
                )
        draft.listings.append(
            Listing(
                name="masks",
                title="Disclosure risk after masking",
                columns=MASKS if self.earlier else (*MASKS, OTHER_MASKS),
                rows=tuple(rows),
                caption="Possible values: those left to an attacker who combines all masked "
                "values and assumes that as few respondents as possible used another mask than the "
                "recommended one. For a respondent who seems to have used another, all values are "
                "counted. It cannot be told where no mask is recommended, and of more than "
                f"{MOST_FOR_MATCHING:,} respondents.",
            )
        )

    def _possible(self, place: int, attribute: Attribute) -> tuple[list[int] | None, int | None]:
        """How many values are possible for each, fewest first, and how many used another mask.

        None if it cannot be told.
        """
        mask = self._recommended(attribute)
        masked, values = list(self._answered(place).values()), self.values[place]
        if not values or not masked or max(len(values), len(masked)) > MOST_FOR_MATCHING:
            return None, None
        if self.earlier:
            if not isinstance(mask, Noise) or len(masked) != len(values):
                return None, None
            fits = possible_values(masked, values, mask.width)
            return None if fits is None else sorted(map(len, fits)), None
        if isinstance(mask, NoPerturbation):
            return None, None
        found = all_together(masked, values, mask)
        return sorted(map(len, found.possible)), found.other_masks

    def _recommended(self, attribute: Attribute) -> Perturbation:
        return read_perturbation(self.options.masks.get(attribute.name, "none"), attribute)

    def _publish_moves(self, draft: Draft, confidential: tuple[Attribute, ...]) -> None:
        """What the recommended masks do to ranks, as far as it follows from what is public."""
        rows: list[tuple[Cell, ...]] = []
        for place, attribute in enumerate(confidential):
            seed = hashlib.sha256(b"mpc-rr ranks\0" + self.seed + attribute.name.encode()).digest()
            found = expected(self._recommended(attribute), self.values[place], seed)
            if found is None:
                rows.append((attribute.name, *(None,) * 6))
                continue
            between = found.correlation_range or (None, None)
            distance = (found.distance, *found.distance_range)
            rows.append((attribute.name, *distance, found.correlation, *between))
        draft.listings.append(
            Listing(
                name="moved",
                title="How far the recommended masks move people in rank",
                columns=MOVED,
                rows=tuple(rows),
                caption=MOVED_CAPTION,
            )
        )

    def _publish_release(self, draft: Draft) -> None:
        open_attributes, confidential = self.options.attributes(self.schema)
        header = ["party", *(a.name for a in (*open_attributes, *confidential))]
        release, masked = [header], [header]
        rows = zip(self.records.items(), self.released(), strict=True)
        for (name, (codes, hidden)), mapped in rows:
            cells = (a.cell(code) for a, code in zip(open_attributes, codes, strict=True))
            start = [name, *cells]
            release.append([*start, *_texts(confidential, mapped)])
            masked.append([*start, *_texts(confidential, hidden)])
        values = [["attribute", "value"]]
        for attribute, column in zip(confidential, self.values, strict=True):
            values += [[attribute.name, attribute.text(code)] for code in column]
        draft.sheets += [
            Sheet.of("release.csv", "the records", csv_text(release)),
            Sheet.of("masked.csv", "the records as they were masked", csv_text(masked)),
            Sheet.of("values.csv", "the original values of each attribute", csv_text(values)),
        ]


def _texts(attributes: tuple[Attribute, ...], codes: tuple[int | None, ...]) -> list[str]:
    return [_text(a, code) for a, code in zip(attributes, codes, strict=True)]


def _text(attribute: Attribute, code: int | None) -> str:
    """Of a masked value, which may lie beyond all that can be answered; None is no answer."""
    if code is None:
        assert attribute.missing_code is not None
        return attribute.cell(attribute.missing_code)
    return f"{attribute.number(code):.15g}" if attribute.numeric else attribute.categories[code]
