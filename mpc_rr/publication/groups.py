"""Records in groups in which nobody can be picked out, and how well the groups hide them."""

import hashlib
from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from mpc_rr.anonymization.beside import Columns, read_release
from mpc_rr.anonymization.hierarchy import Hierarchy, Labels
from mpc_rr.anonymization.loss import AS_THEY_ARE, mean_left_open, mean_loss, released_loss
from mpc_rr.anonymization.releases import RELEASES, Grouped, Lines, group_values
from mpc_rr.anonymization.risk import (
    Linkage,
    information_loss,
    linkage,
    linkage_by_group,
    protection,
)
from mpc_rr.anonymization.table import Microdata
from mpc_rr.errors import listing, quoted
from mpc_rr.publication.beside_truth import distributions, relations_listed
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
GivenLevel = dict[str, tuple[str, ...]] | float | tuple[float, ...]
"""A level of a hierarchy, as a study file gives it."""
ReleaseKind = Literal["microaggregated", "generalized", "anatomy", "permuted"]
PROTECTION = (
    Column(name="attribute", label="confidential", kind="attribute"),
    Column(name="l_diversity", label="l-diversity", kind="count"),
    Column(name="entropy_l_diversity", label="entropy l-diversity", kind="number"),
    Column(name="t_closeness", label="t-closeness", kind="number"),
)
ANSWERED = Column(name="answered", label="answered", kind="count")
LOSS = (
    Column(name="attribute", label="quasi-identifier", kind="attribute"),
    Column(name="released", label="released as"),
    Column(name="squared_error", label="variation lost", kind="share"),
    Column(name="left_open", label="range left open", kind="share"),
    Column(name="unchanged", label="told exactly", kind="share"),
)
TOLD = {"exactly": "it is", "centre": "a centre", "range": "a range", "label": "a label"}
LOSS_CAPTION = (
    "Variation lost: the squared error of what is published, as a share of the variance; a range "
    "stands for its middle, a set of categories for each of them alike. It is above 100 % where a "
    "commonest category stands for many others. Range left open (NCP): how much of all that was "
    "answered a range or label covers; a centre does not say. groups.csv tells all exactly."
)
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
    hierarchies: dict[str, tuple[GivenLevel, ...]] | None

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
    suppressed: tuple[str, ...] = ()
    """Who is in no group, so that all others could be told more exactly."""
    earlier: bool = False
    """Whether losses and risks are those of the groups and not of the release, as up to rules 4."""

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
        known = Microdata.of(quasi, list(self.known.values()), rounded=self.earlier)
        labels = Labels(self.options.all_hierarchies(self.schema), self.levels)
        tables = [Microdata(confidential, part) for part in parts]
        return Grouped(
            known, rows, tables, labels if self.options.hierarchies is not None else None
        )

    def sheets(self) -> dict[str, Lines]:
        """The release: one table or two."""
        return RELEASES[self.options.release](self.grouped())

    @property
    def records(self) -> list[int]:
        """How many records each group has: one of each member, if all name their own group."""
        came = [0] * len(self.groups)
        for group, _ in self.messages:
            came[group] += 1
        return came

    @property
    def smallest(self) -> int:
        """Among how few a record of the release is: somebody may have named another group."""
        members = min(len(group) for group in self.groups)
        if self.earlier:
            return members
        return min([members, *(count for count in self.records if count)])

    @property
    def miscounted(self) -> dict[int, tuple[int, int]]:
        """Groups that did not get one message from each member: how many are in it, and came.

        Some respondent named another group than hers, or none; nobody can tell which one.
        """
        members = (len(group) for group in self.groups)
        pairs = enumerate(zip(members, self.records, strict=True))
        return {number: pair for number, pair in pairs if pair[0] != pair[1]}

    def beside_truth(self, people: Mapping[str, Record]) -> tuple[Listing, ...]:
        """The release, as whoever analyses it takes it, beside those who are in it."""
        quasi, confidential = self.options.attributes(self.schema)
        places = [self.schema.names.index(a.name) for a in (*quasi, *confidential)]
        there = [people[name] for name in self.known if name in people]
        records = [tuple(record[place] for place in places) for record in there]
        if not records:
            return ()
        before = Columns.of(Microdata.of((*quasi, *confidential), records))
        after = read_release(self.grouped(), self.options.release)
        return (*distributions(before, after), *relations_listed(before, after))

    def participation(self, study: Setting) -> Participation:
        """Those in whole groups; who was in one that has lost somebody told nothing."""
        people = super().participation(study)
        withdrawn = (Absence(party=name, how="withdrawn") for name in self.withdrawn)
        there = (name for name in self.suppressed if name not in self.lost)
        suppressed = (Absence(party=name, how="suppressed") for name in there)
        return msgspec.structs.replace(
            people,
            counted=self.n,
            counted_parties=tuple(self.known),
            absent=(*people.absent, *withdrawn, *suppressed),
        )

    def publish(self, study: Setting) -> Publication:
        """The release, how well its groups protect, and what they cost."""
        draft, grouped = Draft(), self.grouped()
        several = "groups" if len(self.groups) > 1 else "group"
        draft.find(
            f"{self.n} of {study.expected} respondents in {len(self.groups)} {several} of "
            f"{self.smallest} or more. Within a group, values are not linked to names.",
            counted=self.n, groups=len(self.groups), smallest=self.smallest,
            expected=study.expected,
        )  # fmt: skip
        if self.withdrawn:
            draft.find(
                "Withdrew (sent no confidential values, because a group member dropped out): "
                f"{listing(self.withdrawn)}.",
                withdrawn=len(self.withdrawn),
            )
        if self.suppressed:
            draft.find(
                f"{len(self.suppressed)} respondents are in no group, so that all others are told "
                "more exactly. They told nothing confidential.",
                suppressed=len(self.suppressed),
            )
            draft.quantities.append(
                fact(name="suppressed", label="respondents who are in no group",
                     value=len(self.suppressed), kind="count")
            )  # fmt: skip
        for name, sheet in (RELEASES[self.options.release](grouped) | self._who_is_where()).items():
            draft.sheets.append(Sheet.of(f"{name}.csv", WHAT[name], csv_text(sheet)))
        draft.quantities += self._facts()
        with draft.part("item non-response"):
            self._publish_non_response(draft, grouped)
        with draft.part("how well the groups protect"):
            self._publish_protection(draft, grouped)
        with draft.part("what the groups cost"):
            if self.earlier:
                self._publish_costs_of_groups(draft, grouped)
            else:
                self._publish_costs(draft, grouped)
        self._add_notes(draft, open_study=not study.registrar)
        return draft.publication()

    def _facts(self) -> list[Quantity]:
        options, colluding = self.options, min(len(group) for group in self.groups) - 1
        levels = dict(zip(options.quasi_identifiers, self.levels, strict=False))
        return [
            fact(name="k_reached", label="smallest group (k)", value=self.smallest, kind="count"),
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
                     value=colluding, kind="count"),
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
                name="protection", title="Weakest group for each confidential attribute",
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
                several = "groups" if len(bare) > 1 else "group"
                more = f" and {len(bare) - MOST_NAMED} more" if len(bare) > MOST_NAMED else ""
                draft.warn(
                    f"in {len(bare)} {several} all {who} have the same {quoted(p.attribute)}, so "
                    f"it is disclosed for each of them ({several} "
                    f"{', '.join(map(str, bare[:MOST_NAMED]))}{more})."
                )
        columns = (PROTECTION[0], Column(name="group", label="disclosed by group", kind="number"))
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
        """What is given up by what is published, and who finds whom in it."""
        losses = released_loss(grouped, self.options.release)
        lost, left_open = mean_loss(losses), mean_left_open(losses)
        within = information_loss(grouped.known, grouped.groups)
        self._say_loss(draft, grouped, lost)
        alone, beside = self._say_linkage(draft, grouped)
        draft.listings.append(
            Listing(
                name="loss",
                title="What the release gives up",
                columns=LOSS,
                rows=tuple(
                    (a.attribute, TOLD[a.told], a.squared_error, a.left_open, a.unchanged)
                    for a in losses
                ),
                caption=LOSS_CAPTION,
            )
        )
        draft.quantities += [
            fact(name="squared_error", kind="share", value=lost,
                 label="variation of quasi-identifiers that the release loses, on average"),
            fact(name="certainty_penalty", kind="share", value=left_open,
                 label="range of quasi-identifiers that the release leaves open, on average"),
            fact(name="variation_within_groups", kind="share", value=within.squared_error,
                 label="variation of quasi-identifiers within groups, whatever is released"),
            fact(name="discernibility", kind="count", value=within.discernibility,
                 label="sum of squared group sizes (discernibility)"),
            fact(name="linkage_average", kind="share", value=alone.average,
                 label="chance to find a person's record in the release alone, average"),
            fact(name="linkage_highest", kind="share", value=alone.highest,
                 label="chance to find a person's record in the release alone, highest"),
            fact(name="linkage_by_group_average", kind="share", value=beside.average,
                 label="chance to find a person's record with groups.csv, average"),
            fact(name="linkage_by_group_highest", kind="share", value=beside.highest,
                 label="chance to find a person's record with groups.csv, highest"),
        ]  # fmt: skip

    def _say_loss(self, draft: Draft, grouped: Grouped, lost: float | None) -> None:
        if self.options.release in AS_THEY_ARE:
            draft.find("Quasi-identifiers are released as they are.", squared_error=0.0)
            return
        partly = grouped.known.unanswered.any()
        which = "quasi-identifiers that were answered" if partly else "quasi-identifiers"
        if lost is not None:
            draft.find(
                f"The release gives up {lost:.1%} of the variation among {which}.",
                squared_error=lost,
            )

    def _say_linkage(self, draft: Draft, grouped: Grouped) -> tuple[Linkage, Linkage]:
        """In the release alone, and with everything in the folder."""
        known, groups, records = grouped.known, grouped.groups, self.records
        alone = linkage(known, groups, self.options.release, records=records, labels=grouped.labels)
        beside = linkage_by_group(known, groups, records=records)
        without = ""
        if alone != beside:
            without = (
                f"; without groups.csv, which says who is in which group, {alone.average:.1%} "
                f"and {alone.highest:.1%}"
            )
        draft.find(
            "Who knows a person's quasi-identifiers finds her record with probability "
            f"{beside.average:.1%} on average, {beside.highest:.1%} at most{without}.",
            average=beside.average, highest=beside.highest,
            release_average=alone.average, release_highest=alone.highest,
        )  # fmt: skip
        return alone, beside

    def _publish_costs_of_groups(self, draft: Draft, grouped: Grouped) -> None:
        """As up to rules 4: what the groups would cost if they were all that is published."""
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
                     label="normalized certainty penalty (NCP), average"),
            fact(name="discernibility", kind="count", value=loss.discernibility,
                     label="sum of squared group sizes (discernibility)"),
            fact(name="linkage_average", kind="share", value=found.average,
                     label="re-identification risk, average"),
            fact(name="linkage_highest", kind="share", value=found.highest,
                     label="re-identification risk, highest"),
        ]  # fmt: skip

    def _add_notes(self, draft: Draft, *, open_study: bool) -> None:
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
            others = min(len(group) for group in self.groups) - 1
            draft.warn(
                f"Open study: anyone who controls {others} of the parties in the smallest group "
                "learns what its last member answered; each controlled party leaves one "
                "candidate fewer. A registrar who admits each person once protects against this."
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
