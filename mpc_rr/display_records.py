"""What people see of a collaborative anonymization: how well it protects, and whom it does not."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.anonymized import anonymized_document, groups_notes, masks_notes
from mpc_rr.errors import listing
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.protocols.interface import Ending
from mpc_rr.scenario import Study


def show_lost(console: Console, ending: Ending) -> None:
    """Who was lost on the way, and where."""
    for party, at in sorted(ending.lost.items()):
        console.print(
            f"[yellow]Left on the way[/]: {escape(f'{party} (at {at})')}", highlight=False
        )


def show_groups(console: Console, found: KAnonymous, study: Study) -> None:
    """How well the groups hide their members."""
    document = anonymized_document(found)
    several = "groups" if document["groups"] > 1 else "group"
    console.print(
        f"[green]Done[/]: {found.n} respondents in {document['groups']} {several} of "
        f"{document['k_reached']} or more; whose values are whose within a group, nobody knows.",
        highlight=False,
    )
    show_lost(console, found)
    if found.withdrawn:
        console.print(
            f"Told nothing, because somebody had left their group: {listing(found.withdrawn)}.",
            highlight=False,
        )
    table = Table(title="The values of the worst group", title_justify="left")
    for heading in ("confidential", "different (l)", "effective", "distance to all (t)"):
        table.add_column(heading, justify="left" if heading == "confidential" else "right")
    for p in document["protection"]:
        table.add_row(
            escape(p["attribute"]), str(p["l_diversity"]), f"{p['entropy_l_diversity']:.2f}",
            f"{p['t_closeness']:.3f}",
        )  # fmt: skip
    console.print(table)
    loss, link = document["information_loss"], document["record_linkage"]
    console.print(
        f"Given up: {loss['squared_error']:.1%} of the variation among quasi-identifiers. Who "
        f"knows a person's quasi-identifiers finds her record with probability "
        f"{link['average']:.1%} on average, {link['highest']:.1%} at most.",
        highlight=False,
    )
    for note in groups_notes(document, open_study=study.registrar is None):
        console.print(f"[yellow]Note[/]: {escape(note)}", highlight=False)


def show_masked(console: Console, found: MaskedRelease, study: Study) -> None:
    """What the masks leave to an attacker."""
    document = anonymized_document(found)
    console.print(
        f"[green]Done[/]: {found.n} masked records, mapped back to the original values by rank.",
        highlight=False,
    )
    show_lost(console, found)
    table = Table(title="What the masks leave to an attacker", title_justify="left")
    table.add_column("confidential", overflow="fold")
    table.add_column("recommended", overflow="fold")
    for heading in ("fewest possible", "median", "given away"):
        table.add_column(heading, justify="right")
    keys = ("fewest_possible_values", "median_possible_values", "respondents_given_away")
    for m in document["masks"]:
        known = [str(m[key]) if key in m else "–" for key in keys]
        table.add_row(escape(m["attribute"]), m["recommended"], *known)
    console.print(table)
    for note in masks_notes(document, open_study=study.registrar is None):
        console.print(f"[yellow]Note[/]: {escape(note)}", highlight=False)
    for own in document.get("your_masks", ()):
        console.print(
            f"Your {escape(own['attribute'])}: mask {own['mask']}; it leaves "
            f"{own['candidates']} people with {own['different_candidates']} different values.",
            highlight=False,
        )
    console.print(
        "[dim]Possible values: for whoever believes that all used the recommended noise and puts "
        "all masked values together; – if some used another, or there is no noise.[/]",
        highlight=False,
    )
