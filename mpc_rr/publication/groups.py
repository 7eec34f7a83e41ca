"""Records in groups in which nobody can be picked out, and how well the groups hide them."""

import hashlib
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from mpc_rr.anonymization.hierarchy import Hierarchy
from mpc_rr.anonymization.releases import RELEASES, Grouped, Lines, group_values
from mpc_rr.anonymization.risk import information_loss, linkage, protection
from mpc_rr.anonymization.table import Microdata, Rows
from mpc_rr.errors import listing, quoted
from mpc_rr.publication.ending import Draft, Ending, Setting, fact
from mpc_rr.publication.nonresponse import add_non_response, counted
from mpc_rr.publication.parts import (
    Absence,
    Column,
    Listing,
    Participation,
    Publication,
    Quantity,
    Sheet,
)
from mpc_rr.publication.sheets import csv_text
from mpc_rr.schema import Attribute, Record, Schema

Strategy = Literal["mdav", "mondrian", "generalization"]
ReleaseKind = Literal["microaggregated", "generalized", "anatomy", "permuted"]
PROTECTION = (
    Column(name="attribute", label="confidential", kind="attribute"),
    Column(name="l_diversity", label="different values (l)", kind="count"),
    Column(name="entropy_l_diversity", label="effective values", kind="number"),
    Column(name="t_closeness", label="distance to all (t)", kind="number"),
)
ANSWERED = Column(name="answered", label="answered", kind="count")
MOST_NAMED = 5
WHAT = {
    "release": "the records",
    "quasi_identifiers": "the quasi-identifiers, with the number of each one's group",
    "confidential": "the confidential values of each group, in no order",
    "groups": "who is in which group",
}


class Grouping(msgspec.Struct, frozen=True):
    """How respondents were grouped, and who may know what."""

    k: int
    quasi_identifiers: tuple[str, ...]
    confidential: tuple[str, ...]
    partition: Strategy
    release: ReleaseKind
    hierarchies: dict[str, tuple[dict[str, tuple[str, ...]] | float, ...]] | None

    def attributes(self, schema: Schema) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """The quasi-identifiers, and the confidential attributes."""
        return schema.pick(self.quasi_identifiers), schema.pick(self.confidential)

    def all_hierarchies(self, schema: Schema) -> list[Hierarchy]:
        """One for each quasi-identifier; without levels of its own it is told or not."""
        given = self.hierarchies or {}
        return [Hierarchy(a, given.get(a.name, ())) for a in self.attributes(schema)[0]]


class KAnonymous(Ending, frozen=True):
    """Quasi-identifiers by respondent, groups, and each group's confidential values in no order."""

    schema: Schema
    options: Grouping
    known: dict[str, Record]
    groups: tuple[tuple[str, ...], ...]
    levels: tuple[int, ...]
    messages: tuple[tuple[int, Record], ...]
    """Number of the group and confidential values, as they came out of the channel."""
    unusable: int
    """How many messages say nothing that anybody could have been asked for."""
    withdrawn: tuple[str, ...] = ()
    """Who told nothing, because somebody had left her group."""

    def __repr__(self) -> str:
        return f"KAnonymous({len(self.known)} respondents in {len(self.groups)} groups)"

    @property
    def n(self) -> int:
        """How many respondents there are."""
        return len(self.known)

    @property
    def digest(self) -> bytes:
        """What respondents compare to be sure that all have the same result."""
        whole = (sorted(self.known.items()), self.groups, self.levels, self.messages)
        encoded = msgspec.msgpack.encode(whole)
        return hashlib.sha256(b"mpc-rr k-anonymous result\0" + encoded).digest()

    def grouped(self) -> Grouped:
        """What the release is made from."""
        quasi, confidential = self.options.attributes(self.schema)
        places = {name: place for place, name in enumerate(self.known)}
        rows = [np.array([places[name] for name in group]) for group in self.groups]
        parts = group_values(len(confidential), len(rows), self.messages)
        known = Microdata.of(quasi, list(self.known.values()))
        labels = self._labels(known) if self.levels else None
        return Grouped(known, rows, [Microdata(confidential, part) for part in parts], labels)

    def _labels(self, known: Microdata) -> Callable[[Rows], list[str]]:
        hierarchies = self.options.all_hierarchies(self.schema)

        def labels(rows: Rows) -> list[str]:
            first = known.codes[rows[0]].tolist()
            return [
                hierarchy.label(code, level)
                for hierarchy, code, level in zip(hierarchies, first, self.levels, strict=True)
            ]

        return labels

    def sheets(self) -> dict[str, Lines]:
        """The release: one table or two."""
        return RELEASES[self.options.release](self.grouped())

    @property
    def miscounted(self) -> dict[int, tuple[int, int]]:
        """Groups that did not get one message from each member: how many are in it, and came.

        Some respondent named another group than hers, or none; nobody can tell which one.
        """
        came = [0] * len(self.groups)
        for group, _ in self.messages:
            came[group] += 1
        pairs = enumerate(zip((len(group) for group in self.groups), came, strict=True))
        return {number: pair for number, pair in pairs if pair[0] != pair[1]}

    def participation(self, study: Setting) -> Participation:
        """Those in whole groups; who was in one that has lost somebody told nothing."""
        people = super().participation(study)
        withdrawn = (Absence(party=name, how="withdrawn") for name in self.withdrawn)
        return msgspec.structs.replace(
            people,
            counted=self.n,
            counted_parties=tuple(self.known),
            absent=(*people.absent, *withdrawn),
        )

    def publish(self, study: Setting) -> Publication:
        """The release, how well its groups protect, and what they cost."""
        draft, grouped = Draft(), self.grouped()
        smallest = min(len(group) for group in self.groups)
        several = "groups" if len(self.groups) > 1 else "group"
        draft.find(
            f"{self.n} of {study.expected} respondents in {len(self.groups)} {several} of "
            f"{smallest} or more. Within a group, values are not linked to names.",
            counted=self.n, groups=len(self.groups), smallest=smallest, expected=study.expected,
        )  # fmt: skip
        if self.withdrawn:
            draft.find(
                f"Told nothing, because somebody had left their group: {listing(self.withdrawn)}.",
                withdrawn=len(self.withdrawn),
            )
        for name, sheet in (RELEASES[self.options.release](grouped) | self._who_is_where()).items():
            draft.sheets.append(Sheet.of(f"{name}.csv", WHAT[name], csv_text(sheet)))
        draft.quantities += self._facts(smallest)
        with draft.part("item non-response"):
            self._publish_non_response(draft, grouped)
        with draft.part("how well the groups protect"):
            self._publish_protection(draft, grouped)
        with draft.part("what the groups cost"):
            self._publish_costs(draft, grouped)
        self._add_notes(draft, smallest, open_study=not study.registrar)
        return draft.publication()

    def _facts(self, smallest: int) -> list[Quantity]:
        options = self.options
        levels = dict(zip(options.quasi_identifiers, self.levels, strict=False))
        return [
            fact(name="k_reached", label="smallest group (k)", value=smallest, kind="count"),
            fact(name="k_wanted", label="smallest group that was asked for", value=options.k,
                     kind="count"),
            fact(name="groups", label="groups", value=len(self.groups), kind="count"),
            fact(name="partition", label="made by", value=options.partition, kind="text"),
            fact(name="release", label="kind of release", value=options.release, kind="text"),
            *(
                fact(name=f"level of {name}", label=f"level to which {quoted(name)} is generalized",
                         value=level, kind="count")
                for name, level in levels.items()
            ),
            fact(name="unusable_messages", label="messages that answer nothing that was asked",
                     value=self.unusable, kind="count"),
            fact(name="fake_parties_to_single_out_one",
                     label="parties that must collude to single out the last of a group",
                     value=smallest - 1, kind="count"),
        ]  # fmt: skip

    def _publish_non_response(self, draft: Draft, grouped: Grouped) -> None:
        tables, found = [grouped.known, *grouped.confidential], []
        for attribute in self.schema.attributes:
            if attribute.missing is None:
                continue
            gaps = [
                table.unanswered[:, table.attributes.index(attribute)]
                for table in tables
                if attribute in table.attributes
            ]
            found.append(counted(attribute, sum(map(len, gaps)), sum(int(g.sum()) for g in gaps)))
        add_non_response(draft, found)

    def _publish_protection(self, draft: Draft, grouped: Grouped) -> None:
        found, confidential = protection(grouped), self.options.attributes(self.schema)[1]
        partly = any(a.missing is not None for a in confidential)
        rows = tuple(
            (
                p.attribute, p.least_different, p.entropy_diversity, p.farthest,
                *((p.answered,) if partly else ()),
            )
            for p in found
        )  # fmt: skip
        draft.listings.append(
            Listing(
                name="protection", title="The values of the worst group",
                columns=(*PROTECTION, ANSWERED) if partly else PROTECTION, rows=rows,
                caption="Among those who answered." if partly else "",
            )
        )  # fmt: skip
        given_away = []
        for place, p in enumerate(found):
            bare = _single_valued(grouped, place)
            who = "members" if confidential[place].missing is None else "who answered"
            self._warn_of_silent_groups(draft, grouped, place)
            given_away += [(p.attribute, number) for number in bare]
            if bare:
                several = "groups give" if len(bare) > 1 else "group gives"
                whose = "in each of them" if len(bare) > 1 else "in it"
                more = f" and {len(bare) - MOST_NAMED} more" if len(bare) > MOST_NAMED else ""
                draft.warn(
                    f"{len(bare)} {several} {quoted(p.attribute)} away, because all {who} have "
                    f"the same {whose}: {', '.join(map(str, bare[:MOST_NAMED]))}{more}."
                )
        columns = (PROTECTION[0], Column(name="group", label="given away by group", kind="number"))
        if given_away:
            draft.listings.append(
                Listing(
                    name="given_away", title="Groups with a single value", columns=columns,
                    rows=tuple(given_away), main=False,
                )
            )  # fmt: skip

    def _warn_of_silent_groups(self, draft: Draft, grouped: Grouped, place: int) -> None:
        silent = [
            number
            for number, part in enumerate(grouped.confidential, start=1)
            if len(part) and part.unanswered[:, place].all()
        ]
        if silent:
            name = quoted(grouped.confidential[0].attributes[place].name)
            more = f" and {len(silent) - MOST_NAMED} more" if len(silent) > MOST_NAMED else ""
            several = "groups" if len(silent) > 1 else "group"
            draft.warn(
                f"in {len(silent)} {several} nobody answered {name}, which is known of each member "
                f"by that: {', '.join(map(str, silent[:MOST_NAMED]))}{more}."
            )

    def _publish_costs(self, draft: Draft, grouped: Grouped) -> None:
        loss = information_loss(grouped.known, grouped.groups)
        found = linkage(grouped.known, grouped.groups, self.options.release)
        partly = grouped.known.unanswered.any()
        which = "quasi-identifiers that were answered" if partly else "quasi-identifiers"
        draft.find(
            f"Given up: {loss.squared_error:.1%} of the variation among {which}. Who "
            "knows a person's quasi-identifiers finds her record with probability "
            f"{found.average:.1%} on average, {found.highest:.1%} at most.",
            squared_error=loss.squared_error, average=found.average, highest=found.highest,
        )  # fmt: skip
        draft.quantities += [
            fact(name="squared_error", kind="share", value=loss.squared_error,
                     label="variation among quasi-identifiers that is lost"),
            fact(name="certainty_penalty", kind="share", value=loss.certainty_penalty,
                     label="range that a group leaves open, on average"),
            fact(name="discernibility", kind="count", value=loss.discernibility,
                     label="sum of squared group sizes (discernibility)"),
            fact(name="linkage_average", kind="share", value=found.average,
                     label="chance to find a person's record, average"),
            fact(name="linkage_highest", kind="share", value=found.highest,
                     label="chance to find a person's record, highest"),
        ]  # fmt: skip

    def _add_notes(self, draft: Draft, smallest: int, *, open_study: bool) -> None:
        if self.miscounted:
            columns = (
                Column(name="group", label="group", kind="number"),
                Column(name="members", label="members", kind="count"),
                Column(name="messages", label="messages that name it", kind="count"),
            )
            rows = tuple((number + 1, *pair) for number, pair in self.miscounted.items())
            draft.listings.append(
                Listing(
                    name="miscounted", title="Groups that do not add up", columns=columns,
                    rows=rows, main=False,
                )
            )  # fmt: skip
        for number, (members, messages) in self.miscounted.items():
            draft.warn(
                f"group {number + 1} has {members} members, but {messages} messages name it: some "
                "respondent did not say the truth about her group."
            )
        if open_study:
            draft.warn(
                f"the study was open: whoever brings {smallest - 1} parties of her own into the "
                "smallest group learns what its last member answered; with fewer, that many fewer "
                "candidates are left. A registrar prevents it."
            )

    def _who_is_where(self) -> dict[str, Lines]:
        quasi = self.options.attributes(self.schema)[0]
        sheet = [["party", *(a.name for a in quasi), "group"]]
        for number, group in enumerate(self.groups, start=1):
            for name in group:
                texts = (a.cell(c) for a, c in zip(quasi, self.known[name], strict=True))
                sheet.append([name, *texts, str(number)])
        return {"groups": sheet}


def _single_valued(grouped: Grouped, place: int) -> list[int]:
    """The numbers of the groups in which all who answered have the same value of an attribute."""
    return [
        number
        for number, part in enumerate(grouped.confidential, start=1)
        if len(set(part.answers(np.arange(len(part)), place).tolist())) == 1
    ]
