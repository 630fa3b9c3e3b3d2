"""Plot a report with matplotlib, from the statistics and the pooled maps that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.drawing import GRADIENT, clean
from gradlab.explore.heat import plot as plot_heat
from gradlab.explore.report.table import TensorRow
from gradlab.explore.report_picture import Map
from gradlab.explore.theme import hex_of

KINDS = ("heat", "hist", "norms")


def plot(kind: str, rows: Sequence[TensorRow], maps: Sequence[Map], ax: Any = None) -> Any:
    """Draw one kind of plot; see `Report.plot`."""
    import matplotlib.pyplot as plt

    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    shown = [row for row in rows if row.gradient is not None and row.gradient.size]
    if not (maps if kind == "heat" else shown):
        raise ValueError(
            "this report has no matrix-shaped gradient to draw a heat map of."
            if kind == "heat"
            else "this report has no gradients to plot."
        )
    if kind == "heat":
        return _heat(maps, ax, plt)
    if ax is None:
        ax = plt.subplots(layout="constrained", figsize=(6, 3 if kind == "hist" else 1.2 + 0.28 * len(shown)))[1]
    if kind == "norms":
        norms = [row.gradient.norm for row in shown if row.gradient]
        ax.barh([_plain(row.name) for row in shown], np.where(np.isfinite(norms), norms, 0), color=hex_of(GRADIENT))
        for at, norm in enumerate(norms):
            if not np.isfinite(norm):
                ax.text(0.01, at, "NaN" if np.isnan(norm) else "inf", va="center", transform=ax.get_yaxis_transform())
        ax.invert_yaxis()
        ax.set_xlabel("‖gradient‖")
        positive = [norm for norm in norms if 0 < norm < np.inf]
        if positive and max(positive) > 100 * min(positive):
            ax.set_xscale("log")
        return ax
    for row in shown:
        s = row.gradient
        if s is None or not s.finite:
            continue
        half = 0.0 if s.minimum != s.maximum else 0.5 * (abs(s.minimum) or 1.0)
        edges = np.linspace(s.minimum - half, s.maximum + half, len(s.bins) + 1)
        ax.stairs(s.bins, edges, label=_plain(row.name))
    ax.set_xlabel("gradient")
    ax.set_ylabel("elements")
    ax.legend()
    return ax


def _heat(maps: Sequence[Map], ax: Any, plt: Any) -> Any:
    if ax is None:
        grid = plt.subplots(1, len(maps), layout="constrained", figsize=(3.6 * len(maps), 3.2), squeeze=False)[1]
        axes = list(grid[0])
    else:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) < len(maps):
        raise ValueError(
            f"there are {len(maps)} heat maps ({', '.join(m.name for m in maps)}), but {len(axes)} axes. Give {len(maps)} axes, "
            "or none to create a figure."
        )
    for one, axis in zip(maps, axes, strict=False):
        plot_heat(one.values(), axis, rows=list(map(str, one.rows)), columns=list(map(str, one.columns)))
        axis.set_title(_plain(one.name))
    return axes[0] if len(maps) == 1 else np.array(axes[: len(maps)], dtype=object)


def _plain(name: str) -> str:
    """Escape a name for matplotlib, so that `$` does not start a formula and a leading `_` does not hide the label."""
    text = clean(name).replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text
