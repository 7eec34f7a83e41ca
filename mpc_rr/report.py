"""One HTML file about a finished study, for people: it needs no network to be opened.

Everything in it comes from the result folder. What the respondents truly answered is not there; in
a simulation it can be given from outside (``truth``) and is then drawn beside the estimates.
"""

import html
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mpc_rr.anonymized import groups_notes, masks_notes
from mpc_rr.data import read_csv
from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array
from mpc_rr.folder import read_folder
from mpc_rr.privacy.odds import seen_as
from mpc_rr.scenario import Study

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: .25rem .75rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; } .dim { color: #666; }
"""
Rows = Sequence[Sequence[object]]


def report(folder: Path, truth: Path | None = None) -> str:
    """The HTML of a result folder; `InputError` if it is none."""
    run = read_folder(folder)
    try:
        return _page(run.study, run.result, json.loads(run.text("cost.json")), truth)
    except json.JSONDecodeError as error:
        raise InputError(f"{folder / 'cost.json'} is damaged: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{folder / 'result.json'} is damaged: {error!r}") from None


def _page(study: Study, result: dict[str, Any], cost: dict[str, Any], truth: Path | None) -> str:
    true_shares = _true_shares(truth, study) if truth is not None else None
    parts = [
        f"<h1>{_text(study.title)}</h1>",
        f'<p class="dim">study {_text(study.name)}, protocol {_text(result["protocol"])}</p>',
        f"<p>{_text(study.description)}</p>",
        _outcome(result),
        _questions(study),
    ]
    if result["status"] == "done":
        parts += [_privacy(result["privacy"]), _design(result), _dependences(result, study)]
        parts += [_marginals(result, true_shares), _pairs(result), _groups(result), _masks(result)]
        parts.append(_block_tables(result))
    parts.append(_costs(cost))
    title = _text(study.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(filter(None, parts)) + "\n</body>"
        "</html>\n"
    )


def _true_shares(path: Path, study: Study) -> list[Array]:
    """The true distribution of each attribute, over the records the scenario used."""
    records = np.array(read_csv(path, study.schema)[: study.parties.count])
    return [
        np.bincount(records[:, index], minlength=size) / len(records)
        for index, size in enumerate(study.schema.sizes)
    ]


# ── Parts ──────────────────────────────────────────────────────────────────────────────────────


def _outcome(result: dict[str, Any]) -> str:
    if result["status"] != "done":
        return f"<h2>Aborted</h2><p>{_text(result['cause'])}</p>"
    rows: list[tuple[object, ...]] = [
        ("parties expected", result["parties"]["expected"]),
        ("counted" if "asked" not in result else "answered", result["n"]),
    ]
    if result.get("silent"):
        rows.append(("did not answer", ", ".join(result["silent"])))
    rows += [("left out", f"{party}: {why}") for party, why in result.get("faulty", {}).items()]
    rows += [("left out", f"{e['party']}: {e['reason']}") for e in result["parties"]["excluded"]]
    rows += [("lost on the way", f"{party}: {at}") for party, at in result.get("lost", {}).items()]
    if result.get("withdrawn"):
        rows.append(("told nothing: their group had lost somebody", ", ".join(result["withdrawn"])))
    who = "each is another person, admitted by the study's registrar"
    rows.append(("admission", "open to everybody" if result["admission"] == "open" else who))
    if result.get("seed") is not None:
        rows.append(("seed", f"{result['seed']}: a simulation, not a secret computation"))
    return "<h2>Who took part</h2>" + _table((), rows)


def _questions(study: Study) -> str:
    rows = [(a.name, a.type, a.answers) for a in study.schema.attributes]
    return "<h2>What was asked</h2>" + _table(("question", "type", "answers"), rows)


def _privacy(privacy: dict[str, Any]) -> str:
    def epsilon(value: float | None) -> str:
        return "no bound" if value is None else f"{value:.3g}"

    central = epsilon(privacy["central_epsilon"])
    if privacy["central_delta"] and privacy["central_epsilon"] is not None:
        central += f" (δ = {privacy['central_delta']:g})"
    readings = [
        ("whoever sees all that a party sent", epsilon(privacy["local_epsilon"])),
        ("as the paper counts it", epsilon(privacy["claimed_epsilon"])),
        ("whoever sees only totals", central),
    ]
    releases = [
        (", ".join(r["attributes"]), r["mechanism"], epsilon(r["epsilon"]),
         seen_as(r["mechanism"], r["crowd"]))
        for r in privacy["releases"]
    ]  # fmt: skip
    return (
        f"<h2>What it cost each party</h2><p>{_text(privacy['in_words'])}</p>"
        + _table(("against", "ε"), readings)
        + _table(("about", "mechanism", "ε", "seen"), releases)
    )


def _design(result: dict[str, Any]) -> str:
    design = result.get("design")
    if design is None:
        return ""
    if "views" in design:
        views = [(" & ".join(view),) for view in design["views"]]
        return "<h2>Views</h2>" + _table(("one of these was answered by each",), views)
    rows = [
        (" & ".join(c["attributes"]), f"{c['keep']:.3f}", f"{c['epsilon']:.3g}")
        for c in design["clusters"]
    ]
    return "<h2>Clusters</h2>" + _table(("randomized as one value", "kept with", "ε"), rows)


def _dependences(result: dict[str, Any], study: Study) -> str:
    if "dependence" not in result:
        return ""
    names = study.schema.names
    values = np.full((len(names), len(names)), np.nan)
    for found in result["dependence"]:
        i, j = (names.index(name) for name in found["attributes"])
        values[i, j] = values[j, i] = np.nan if found["value"] is None else found["value"]
    return "<h2>How strongly answers depend on each other</h2>" + _heat_map(values, names)


def _marginals(result: dict[str, Any], truth: list[Array] | None) -> str:
    if "marginals" not in result:
        return ""
    parts = ["<h2>Estimated shares, with 95 % intervals</h2>"]
    for index, found in enumerate(result["marginals"]):
        known = truth[index] if truth is not None else None
        parts.append(_error_bars(found, known))
    if truth is not None:
        parts.append('<p class="dim">Crosses are the true shares, known in this simulation.</p>')
    return "\n".join(parts)


def _pairs(result: dict[str, Any]) -> str:
    parts = []
    for pair in result.get("pairs", []):
        rows_of, columns_of = pair["categories"]
        numbers = pair.get("counts", pair.get("shares"))
        shown = [
            (category, *(_cell(value) for value in row))
            for category, row in zip(rows_of, numbers, strict=True)
        ]
        title = " by ".join(pair["attributes"])
        parts.append(f"<h3>{_text(title)}</h3>" + _table(("", *columns_of), shown))
    alone = sum(count == 1 for pair in result.get("pairs", []) for row in pair.get("counts", ())
                for count in row)  # fmt: skip
    note = (
        f"{alone} cells count a single person: whoever knows one answer of such a person learns "
        "the other."
    )
    exact = alone and not result.get("noise")
    return "<h2>Tables</h2>" + _notes([note] * bool(exact)) + "\n".join(parts) if parts else ""


def _cell(value: float | None) -> object:
    if value is None:
        return "hidden"
    return value if isinstance(value, int) else f"{value:.1%}"


def _block_tables(result: dict[str, Any]) -> str:
    """The tables of a block aggregation."""
    if "tables" not in result:
        return ""
    rows = [
        (" & ".join(t["attributes"]), t["n"], f"{t['epsilon_of_an_answer']['largest']:.2f}",
         f"{np.max(t['standard_errors']):.1%}",
         f"{t['independence']['p_value']:.2f}" if "independence" in t else "not tested")
        for t in result["tables"]
    ]  # fmt: skip
    head = ("attributes", "answers", "largest ε of an answer", "largest error", "p-value")
    told = "<p>p-value: of independence, by Monte Carlo with the very tables that were shown.</p>"
    return "<h2>Tables</h2>" + _table(head, rows) + told


def _groups(result: dict[str, Any]) -> str:
    """How well groups hide their members, and what they cost."""
    if "k_reached" not in result:
        return ""
    loss, found = result["information_loss"], result["record_linkage"]
    facts = [
        ("smallest group (k)", f"{result['k_reached']} (at least {result['k_wanted']} was asked)"),
        ("groups", result["groups"]),
        ("variation among quasi-identifiers that is lost", f"{loss['squared_error']:.1%}"),
        ("range that a group leaves open, on average", f"{loss['certainty_penalty']:.1%}"),
        ("chance to find a person's record, average", f"{found['average']:.1%}"),
        ("chance to find a person's record, highest", f"{found['highest']:.1%}"),
    ]
    rows = [
        (p["attribute"], p["l_diversity"], f"{p['entropy_l_diversity']:.2f}",
         f"{p['t_closeness']:.3f}")
        for p in result["protection"]
    ]  # fmt: skip
    head = ("confidential", "different values (l)", "effective values", "distance to all (t)")
    notes = groups_notes(result, open_study=result["admission"] == "open")
    return (
        "<h2>How well the groups hide</h2>" + _table((), facts)
        + "<p>In the worst group:</p>" + _table(head, rows) + _notes(notes)
        + "<p>The records are in release.csv (Anatomy: quasi_identifiers.csv and "
        "confidential.csv), who is in which group in groups.csv.</p>"
    )  # fmt: skip


def _masks(result: dict[str, Any]) -> str:
    """What masked values still tell."""
    if "masks" not in result:
        return ""
    rows = [
        (m["attribute"], m["recommended"], m.get("fewest_possible_values", "not known"),
         m.get("median_possible_values", "not known"), m.get("respondents_given_away", "not known"))
        for m in result["masks"]
    ]  # fmt: skip
    head = ("confidential", "recommended mask", "fewest possible values", "median", "given away")
    told = (
        "<p>Whoever believes that all used the recommended mask, and puts all masked values "
        "together, is left with so many possible values for a person.</p>"
    )
    notes = masks_notes(result, open_study=result["admission"] == "open")
    files = (
        "<p>The records are in release.csv, as they were masked in masked.csv, the original values "
        "of each attribute in values.csv.</p>"
    )
    return "<h2>What the masks leave open</h2>" + told + _table(head, rows) + _notes(notes) + files


def _notes(notes: Sequence[str]) -> str:
    return "".join(f"<p><b>Note:</b> {_text(note)}</p>" for note in notes)


def _costs(cost: dict[str, Any]) -> str:
    rows = [
        (r["step"], r["messages_up"] + r["messages_down"], r["bytes_up"] + r["bytes_down"],
         f"{r['seconds']:.2f}")
        for r in cost["rounds"]
    ]  # fmt: skip
    total = cost["total"]
    messages = total["messages_up"] + total["messages_down"]
    carried = total["bytes_up"] + total["bytes_down"]
    return (
        f"<h2>What it cost the network</h2><p>{messages:,} messages, {carried:,} bytes.</p>"
        + _table(("round", "messages", "bytes", "seconds"), rows)
    )


# ── Pieces ─────────────────────────────────────────────────────────────────────────────────────


def _text(value: object) -> str:
    return html.escape(str(value))


def _table(head: Sequence[str], rows: Rows) -> str:
    def cell(value: object) -> str:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        shown = f"{value:,}" if number else _text(value)
        return f'<td class="number">{shown}</td>' if number else f"<td>{shown}</td>"

    heading = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = [f"<tr>{''.join(map(cell, row))}</tr>" for row in rows]
    return f"<table><tr>{heading}</tr>{''.join(lines)}</table>"


def _heat_map(values: Array, names: Sequence[str]) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415

    size = 2.5 + 0.45 * len(names)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axis = figure.subplots()
    axis.set_facecolor("lightgrey")
    image = axis.imshow(values, cmap="viridis", vmin=0, vmax=1)
    axis.set_xticks(range(len(names)), [_plain(n) for n in names], rotation=60, ha="right")
    axis.set_yticks(range(len(names)), [_plain(n) for n in names])
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        colour = "black" if values[i, j] > 0.6 else "white"
        axis.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", color=colour, fontsize=7)
    figure.colorbar(image, label="0: independent, 1: fully dependent")
    return _svg(figure)


def _error_bars(found: dict[str, Any], truth: npt.NDArray[np.float64] | None) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415

    categories, shares = found["categories"], np.array(found["unbiased_shares"])
    width = 1.96 * np.array(found["standard_errors"])
    figure = Figure(figsize=(7, 0.7 + 0.3 * len(categories)), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(categories))
    axis.errorbar(100 * shares, places, xerr=100 * width, fmt="o", capsize=3)
    if truth is not None:
        axis.plot(100 * truth, places, "kx")
    axis.set_yticks(places, [_plain(c) for c in categories])
    axis.invert_yaxis()
    axis.set_xlabel("%")
    axis.set_title(_plain(found["attribute"]), loc="left", fontsize="medium")
    axis.axvline(0, color="lightgrey", zorder=0)
    return _svg(figure)


def _plain(text: str) -> str:
    """matplotlib takes a dollar sign for the beginning of a formula."""
    return text.replace("$", r"\$")


def _svg(figure: Any) -> str:
    import matplotlib as mpl  # noqa: PLC0415

    drawn = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "mpc-rr"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    text = drawn.getvalue()
    return text[text.index("<svg") :]
