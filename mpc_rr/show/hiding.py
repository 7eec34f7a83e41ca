"""What people see of plans of groups and masks."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.planning import hiding, masking
from mpc_rr.planning.hiding import Figure, GroupsPlan
from mpc_rr.planning.masking import MasksPlan

NONE = "–"
OTHERS = {
    hiding.AS_SAFE_CURATOR: "A trusted curator who makes groups alike, and keeps to herself who is "
    "in which,",
    hiding.AS_SAFE_SUPPRESSING: "A trusted curator who generalizes and leaves out as ARX does",
    hiding.ALONE: "Masking alone",
    hiding.ALONE_AT_WORST: "Masking alone, so strongly that nobody is more exposed than here,",
}
MASKERS = {
    masking.AS_SAFE_CURATOR: "A trusted curator, who publishes no masked value,",
    masking.ALONE: "Noise that each adds alone",
}
NO_CHANCE = 1e-12
"""Rounding alone leaves so much."""
CHANCE = "± is twice the standard error"


def show_groups(console: Console, plan: GroupsPlan) -> None:
    """For each k what this study would lose and risk, and what others would."""
    console.print(f"[bold]Groups of k among {plan.people:,} people[/]")
    console.print(_of_this_study(plan))
    console.print(_of_others(plan, "lost", 100, "% of variation lost, linked as often"))
    console.print(_of_others(plan, "relations", 1, "Relations off by, linked as often"))
    for sentence in groups_advice(plan):
        console.print(escape(sentence), highlight=False)
    for name, why in plan.refused.items():
        console.print(f"[dim]{escape(f'Not {name}: {why}')}[/]", highlight=False)
    console.print(f"[dim]{escape(' '.join(_how_groups(plan)))}[/]", highlight=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _of_this_study(plan: GroupsPlan) -> Table:
    table = _table(
        "This study", "k", "some\nleft out", "% of varia-\ntion lost", "relations\noff by",
        "% linked", "l", "% left\nout",
    )  # fmt: skip
    for way in plan.ways:
        if way.name not in (hiding.STUDY, hiding.LEFT_OUT):
            continue
        bold = (way.name, way.k) == (plan.own, plan.k)
        k = f"[bold]{way.k}[/]" if bold else str(way.k)
        table.add_row(
            k, "yes" if way.name == hiding.LEFT_OUT else "no", figure(way.figure("lost"), 100),
            figure(way.figure("relations")), figure(way.figure("linked"), 100),
            _least(way.figure("different")), figure(way.figure("left_out"), 100),
        )  # fmt: skip
    return table


def _of_others(plan: GroupsPlan, name: str, times: float, title: str) -> Table:
    table = _table(
        title, "k", "this study", "a curator,\ngroups alike", "a curator who\nleaves out",
        "each masks\nalone", "alone, at\nworst",
    )  # fmt: skip
    for k in sorted({way.k for way in plan.ways}):
        ways = [plan.way(each, k) for each in (plan.own, *OTHERS)]
        cells = [NONE if way is None else figure(way.figure(name), times) for way in ways]
        table.add_row(f"[bold]{k}[/]" if k == plan.k else str(k), *cells)
    return table


def figure(found: Figure, times: float = 1) -> str:
    """A mean and twice its standard error; the error only if there is chance in it."""
    mean, error = found.mean, found.standard_error
    if mean is None or error is None:
        return NONE
    shown = _rounded(times * mean)
    return f"{shown} ± {2 * times * error:.1g}" if times * error > NO_CHANCE else shown


def _rounded(number: float) -> str:
    return f"{number:.2g}" if abs(number) < 10 else f"{number:.0f}"


def _least(found: Figure) -> str:
    """Of all populations."""
    return NONE if found.known is None else f"{min(found.known):.0f}"


def _percent(found: Figure) -> str:
    return f"{figure(found, 100)} %"


def groups_advice(plan: GroupsPlan) -> Iterator[str]:
    """What the figures say of the study's own k."""
    own = plan.way(plan.own, plan.k)
    if own is None or own.figure("lost").mean is None:
        yield "The quasi-identifiers do not vary, so nothing is lost and nothing compared."
        return
    linked = _percent(own.figure("linked"))
    yield (
        f"This study's k = {plan.k} loses {_percent(own.figure('lost'))} of the quasi-identifiers' "
        f"variation. Who knows a person's quasi-identifiers picks her values with {linked} chance "
        "on average, by all that is published."
    )
    least = own.figure("different").known
    if least is not None and min(least) == 1:
        yield "In some group all have the same value of a confidential attribute, which k allows."
    for name, who in OTHERS.items():
        other = plan.way(name, plan.k)
        risk = "" if name == hiding.ALONE_AT_WORST else " at the same risk"
        lost = None if other is None else other.figure("lost")
        yield _compared(own.figure("lost"), lost, who, risk)
    alone = plan.way(hiding.ALONE, plan.k)
    if alone is not None and alone.figure("highest").mean is not None:
        yield (
            "The same risk is that of people on average. Who is most exposed if all mask alone is "
            f"then linked with {_percent(alone.figure('highest'))} chance, and with "
            f"{_percent(own.figure('highest'))} here."
        )
    curator = plan.way(hiding.CURATOR, plan.k)
    if curator is not None:
        yield (
            f"A curator links {_percent(curator.figure('collector'))} of the people if "
            f"trusted with the records as they are, and a coordinator {linked} here."
        )
    yield from _left_out(plan)


def _left_out(plan: GroupsPlan) -> Iterator[str]:
    """What leaving some out changes, where it can be had."""
    every, some = plan.way(hiding.STUDY, plan.k), plan.way(hiding.LEFT_OUT, plan.k)
    if every is None or some is None:
        return
    yield (
        f"With suppress = {plan.suppress:g}, {_percent(some.figure('left_out'))} of the people are "
        f"left out, and {_percent(some.figure('lost'))} of the variation is lost, theirs included; "
        f"without it {_percent(every.figure('lost'))}."
    )


def _compared(own: Figure, other: Figure | None, who: str, risk: str) -> str:
    """Who loses less."""
    if other is None or other.mean is None:
        return f"{who} cannot be had, or not as safe."
    sign = own.less(other).sign
    verdict = {
        None: "which of the two loses less cannot be told",
        -1: "this study loses less", 0: "both lose alike", 1: "this study loses more",
    }[sign]  # fmt: skip
    return f"{who} would lose {_percent(other)}{risk}: {verdict}."


def _how_groups(plan: GroupsPlan) -> Iterator[str]:
    yield (
        "Variation lost: squared error of what stands for the quasi-identifiers, as a share of "
        "their variance; of masked records, of what is best expected given the mask. Relations: "
        "the mean distance from the true rank correlations, Cramér's V and η between "
        "quasi-identifiers and confidential values. l: different values in the worst group."
    )
    yield "At the same risk: between two k, or two strengths, figures are interpolated."
    yield "At worst: masked so strongly that who is most exposed is linked no more often than here."
    if plan.lent:
        yield (
            "The study has no hierarchies: the curator who leaves out was lent ranges that double."
        )
    yield from _how(plan.people, plan.pilot, plan.populations, plan.asked)


def _how(people: int, pilot: int, populations: int, asked: int) -> Iterator[str]:
    if people == pilot:
        yield (
            f"All {pilot:,} records were used {populations} times: {CHANCE} of what ties and masks "
            "leave to chance. Other people would differ by more."
        )
    else:
        yield (
            f"{people:,} of the {pilot:,} records were drawn {populations} times: {CHANCE} over "
            "these draws, which may share people."
        )
    if people < asked:
        yield f"The study would have {asked:,} people: what that many would lose was not measured."


# ── Masks ──────────────────────────────────────────────────────────────────────────────────────


def show_masks(console: Console, plan: MasksPlan) -> None:
    """For each confidential attribute what masks would move and leave, and what others would."""
    console.print(f"[bold]Masks among {plan.people:,} people[/]")
    for name, recommended in plan.recommended.items():
        ways = [way for way in plan.ways if way.attribute == name and way.name == masking.STUDY]
        if not ways:
            console.print(
                escape(f"Not {name}: fewer than two people of the pilot answered."),
                highlight=False,
            )
            continue
        console.print(_masks(name, recommended, ways))
        console.print(_other_masks(plan, recommended, ways))
        for sentence in masks_advice(plan, name, recommended):
            console.print(escape(sentence), highlight=False)
    console.print(f"[dim]{escape(' '.join(_how_masks(plan)))}[/]", highlight=False)


def _masks(name: str, recommended: str, ways: Sequence[masking.Way]) -> Table:
    table = _table(
        f"{escape(name)} in this study", "mask", "% moved\nin rank", "rank cor-\nrelation",
        "relations\noff by", "% guessed", "fewest\nleft", "% identi-\nfied",
    )  # fmt: skip
    for way in ways:
        words = f"[bold]{way.mask}[/]" if way.mask == recommended else way.mask
        table.add_row(
            words, figure(way.figure("moved"), 100), figure(way.figure("correlation")),
            figure(way.figure("relations")), figure(way.figure("guessed"), 100),
            _least(way.figure("fewest")), figure(way.figure("given_away"), 100),
        )  # fmt: skip
    return table


def _other_masks(plan: MasksPlan, recommended: str, ways: Sequence[masking.Way]) -> Table:
    table = _table(
        "% moved in rank, guessed as often; and how far values alone are off", "mask",
        "this study", "a curator", "each masks\nalone", "alone: margin\noff by",
    )  # fmt: skip
    for way in ways:
        others = [plan.way(name, way.attribute, way.mask) for name in MASKERS]
        cells = [NONE if each is None else figure(each.figure("moved"), 100) for each in others]
        alone = others[-1]
        margin = NONE if alone is None else figure(alone.figure("margin"))
        words = f"[bold]{way.mask}[/]" if way.mask == recommended else way.mask
        table.add_row(words, figure(way.figure("moved"), 100), *cells, margin)
    return table


def masks_advice(plan: MasksPlan, name: str, recommended: str) -> Iterator[str]:
    """What the figures say of the recommended mask of an attribute."""
    own = plan.way(masking.STUDY, name, recommended)
    if own is None:
        return
    if recommended == "none":
        yield f"No mask is recommended for {name!r}: each value is published as it is."
        return
    yield (
        f"{recommended} moves people by {_percent(own.figure('moved'))} of all ranks. Who puts all "
        "masked values together, and guesses among the values that are possible, names a person's "
        f"with {_percent(own.figure('guessed'))} chance."
    )
    given = own.figure("given_away").mean
    if given:
        yield (
            f"It identifies {_percent(own.figure('given_away'))} of the people: one value alone is "
            "possible for them."
        )
    for way, who in MASKERS.items():
        other = plan.way(way, name, recommended)
        yield _moved(own.figure("moved"), None if other is None else other.figure("moved"), who)


def _moved(own: Figure, other: Figure | None, who: str) -> str:
    if other is None or other.mean is None:
        return f"{who} cannot be had, or not as safe."
    sign = own.less(other).sign
    verdict = {
        None: "which of the two moves them less cannot be told",
        -1: "this study moves them less", 0: "both alike", 1: "this study moves them more",
    }[sign]  # fmt: skip
    return f"{who} would move them by {_percent(other)} at the same risk: {verdict}."


def _how_masks(plan: MasksPlan) -> Iterator[str]:
    yield (
        "Moved: the mean distance in rank, as a share of all ranks. Relations: the mean distance "
        "from the true rank correlations and η with all other attributes. Fewest left: possible "
        "values of the worst off. Margin off: the mean distance between told and true values, "
        "each in order, in standard deviations; 0 where they are mapped back. Each attribute is "
        "masked by itself. At the same risk: between two masks figures are interpolated."
    )
    yield from _how(plan.people, plan.pilot, plan.populations, plan.asked)
