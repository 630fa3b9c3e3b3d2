"""How a run is shown: its picture, a file, and a plot of matplotlib's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.explore.drawing import GRADIENT, VALUE, Drawing, Pictured, clean
from gradlab.explore.markup import escape_html
from gradlab.explore.theme import hex_of
from gradlab.explore.views import open_view
from gradlab.explore.watch.card import bundle, text
from gradlab.explore.watch.page import page, view_data
from gradlab.explore.watch.picture import drawing
from gradlab.explore.watch.snapshot import USUAL, snapshot

KINDS = (".html", ".svg", ".png", ".pdf", ".json")


class Shown(Pictured):
    """How a run is shown and saved."""

    def drawing(self) -> Drawing:
        """Return the picture of the run."""
        return drawing(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run to a file that needs nothing else: `.html` a page to hover and slide through, which says what it contains
        and asks no host for anything; `.svg`, `.png` and `.pdf` its picture; `.json` its numbers. An existing file is replaced.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the path ends in none of these.
        RuntimeError
            If the package that makes a .png (resvg_py) or a .pdf (typst) is not installed.
        """
        return save(self, Path(path))

    def plot(self, axes: Any = None) -> Any:
        """Draw the run with matplotlib: the loss, ‖gradient‖ and ‖update‖ ÷ ‖weights‖ of each layer over the steps.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Default: new ones, above one another.

        Returns
        -------
        ndarray of axes
        """
        return plot(self, axes)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return bundle(self)

    def __repr__(self) -> str:
        return text(self)


def save(watch: Any, path: Path) -> Path:
    """Write a run to a file; see `Watch.save`."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"a run is saved as {', '.join(KINDS)}, and {path.name!r} ends in none of them.")
    if kind == ".html":
        script, styles = open_view("the view of a run", None)
        title = f"{watch.of.called or 'A training'}: {watch.steps} steps"
        fallback = f"<pre>{escape_html(text(watch))}</pre>"
        path.write_text(page(title, view_data(watch), script, styles, fallback), encoding="utf-8")
    elif kind == ".json":
        path.write_text(json.dumps(snapshot(watch), ensure_ascii=False), encoding="utf-8")
    else:
        drawing(watch).save(path)
    return path


def plot(watch: Any, axes: Any = None) -> Any:
    """Draw a run with matplotlib; see `Watch.plot`."""
    import matplotlib.pyplot as plt

    data = watch.history()
    if axes is None:
        axes = plt.subplots(3, 1, sharex=True, layout="constrained", figsize=(7, 7))[1]
    axes = np.asarray(axes)
    if axes.shape != (3,):
        raise ValueError(f"plot(axes) takes three axes, and got {axes.size}: for the loss, the gradients and the ratio.")
    loss, gradient, ratio = axes
    middle = (data["step"] + data["last"]) / 2
    loss.fill_between(middle, data["loss.min"], data["loss.max"], color=hex_of(VALUE), alpha=0.2, linewidth=0)
    loss.plot(middle, data["loss"], color=hex_of(VALUE))
    loss.set_ylabel(clean(watch.called).replace("$", r"\$"))
    for k, layer in enumerate(watch.layers):
        shade = 1 - 0.7 * k / max(len(watch.layers) - 1, 1)
        label = clean(layer).replace("$", r"\$")
        for ax, what, colour in ((gradient, "gradient", hex_of(GRADIENT)), (ratio, "ratio", "0.25")):
            known = data[f"{what} {layer}"] > 0
            ax.plot(middle[known], data[f"{what} {layer}"][known], color=colour, alpha=shade, label=label)
    for ax, title in ((gradient, "‖gradient‖"), (ratio, "‖update‖ ÷ ‖weights‖")):
        ax.set_ylabel(title)
        if ax.lines and any(len(line.get_xdata()) for line in ax.lines):
            ax.set_yscale("log")
    ratio.axhspan(*USUAL, color="0.5", alpha=0.15, linewidth=0)
    ratio.set_xlabel("step")
    if 1 < len(watch.layers) <= 12:
        gradient.legend(fontsize="small", ncols=2)
    return axes
