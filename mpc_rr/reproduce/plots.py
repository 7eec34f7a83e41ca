"""Charts as PNG pictures, by matplotlib. It is loaded only here, because it takes a moment."""

import io
from typing import TYPE_CHECKING

import numpy as np

from mpc_rr.reproduce.result import Bars, Chart, HeatMap, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def png(chart: Chart, title: str) -> bytes:
    """The chart as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = 1 if isinstance(chart, Bars) else len(chart.panels)
    columns = min(panels, 2)
    rows = -(-panels // columns)
    figure = Figure(figsize=(6.4 * columns, 4.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[panels:]:
        unused.set_visible(False)
    if isinstance(chart, Lines):
        _draw_lines(axes, chart)
    elif isinstance(chart, Bars):
        _draw_bars(axes[0], chart)
    else:
        _draw_heat(axes, chart)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def _draw_lines(axes: "list[Axes]", chart: Lines) -> None:
    for axis, (name, lines) in zip(axes, chart.panels.items(), strict=False):
        for label, points in lines.items():
            x, y = (np.array(values) for values in zip(*points, strict=True))
            y = np.where(np.isfinite(y), y, np.nan)
            axis.plot(x, y, marker="o", markersize=3, label=label)
        axis.set(title=name, xlabel=chart.x_label, ylabel=chart.y_label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if len(lines) > 1:
            axis.legend(fontsize="small")


def _draw_bars(axis: "Axes", chart: Bars) -> None:
    width = 0.8 / len(chart.series)
    places = np.arange(len(chart.groups))
    for number, (label, values) in enumerate(chart.series.items()):
        drawn = np.where(np.isfinite(values), values, 0)
        axis.bar(places + number * width, drawn, width, label=label)
    axis.set_xticks(places + 0.4 - width / 2, chart.groups, rotation=75, fontsize="x-small")
    axis.set_ylabel(chart.y_label, fontsize="small", wrap=True)
    axis.legend(fontsize="small")


def _draw_heat(axes: "list[Axes]", chart: HeatMap) -> None:
    edges = np.cumsum([0, *(width for _, width in chart.labels)])
    middles = (edges[:-1] + edges[1:]) / 2 - 0.5
    names = [name for name, _ in chart.labels]
    for axis, (name, values) in zip(axes, chart.panels.items(), strict=False):
        axis.set_facecolor("lightgrey")
        image = axis.imshow(values, cmap="viridis", vmin=0, vmax=100, origin="lower")
        axis.set_title(name)
        axis.set_xticks(middles, names, rotation=90, fontsize="x-small")
        axis.set_yticks(middles, names, fontsize="x-small")
        assert axis.figure is not None
        axis.figure.colorbar(image, ax=axis, label=chart.value_label)
