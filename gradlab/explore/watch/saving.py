"""A run as numbers, a picture, files and a matplotlib plot, and compared with another."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, overload

import numpy as np

from gradlab.explore.drawing import GRADIENT, VALUE, Drawing, Pictured, clean
from gradlab.explore.markup import escape_html
from gradlab.explore.theme import hex_of
from gradlab.explore.views import open_view
from gradlab.explore.watch.card import bundle, text
from gradlab.explore.watch.comparing import RunComparison
from gradlab.explore.watch.history import columns_of, frame_maker
from gradlab.explore.watch.page import page, view_data
from gradlab.explore.watch.picture import drawing
from gradlab.explore.watch.snapshot import USUAL, snapshot

KINDS = (".html", ".svg", ".png", ".pdf", ".json")


class RunDisplay(Pictured):
    """Base class of runs that can be displayed, saved and compared."""

    @overload
    def history(self, frame: None = None) -> dict[str, np.ndarray]: ...
    @overload
    def history(self, frame: str) -> Any: ...
    def history(self, frame: str | None = None) -> Any:
        """Return the numbers of the run as columns, one row for each step or, in a long run, for several steps in a row.

        There are at most 256 rows, or fewer for a model of many layers. Beyond that, pairs of rows are merged.

        Parameters
        ----------
        frame : {"pandas", "polars"}, optional
            Return a DataFrame of this library, which must be installed.

        Returns
        -------
        dict of str to ndarray of shape (rows,), or DataFrame
            By name:

            - "step", "last": the first and the last step of a row, counted from 1. int64.
            - "loss", "lr": the loss and the learning rate. float64, like all others except "not finite".
            - "gradient LAYER": the norm of the gradient of each layer. "weight LAYER": that of its weights.
              "ratio LAYER": ‖update‖ / ‖weights‖.
            - "dead NAME", "saturated NAME": the share of dead and of saturated units of each activation, from 0 to 1. Left out
              if never measured.
            - "scale": the factor by which a GradScaler of PyTorch had multiplied the loss. Left out without one. All numbers of
              gradients are those of the loss itself.
            - "unclipped": the norm of all gradients together before `clip_grad_norm_` or `clip_grad_value_`. Left out if these
              were never called.
            - "not finite": how many losses and gradients were NaN or infinite. int64.

            In rows of several steps, these are means of the finite values, and "loss.min", "loss.max" and so on are the minimum
            and the maximum. NaN if nothing was measured.

        Raises
        ------
        ValueError
            If `frame` is not one of these names.
        ImportError
            If the library is not installed.

        Examples
        --------
        >>> w.history()["loss"]  # doctest: +SKIP
        >>> w.history("pandas").plot(x="step", y="loss")  # doctest: +SKIP
        """
        return frame_maker(frame)(columns_of(self))

    def compare(self, other: RunDisplay) -> Any:
        """Compare two runs: losses on one pair of axes, the other one dashed, and a table of the layers.

        Parameters
        ----------
        other : Watch

        Returns
        -------
        RunComparison
            Displayed as a picture in a notebook (`drawing`) and as text elsewhere (`text()`).

        Raises
        ------
        TypeError
            If `other` is not a Watch.
        """
        if not isinstance(other, RunDisplay):
            raise TypeError(f"compare(other) takes another Watch, and got {type(other).__name__}: {other!r:.80}.")
        return RunComparison(self, other)

    def drawing(self) -> Drawing:
        """Return the picture of the run."""
        return drawing(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the run: `.html` an interactive page, which states what it contains and makes no network requests; `.svg`, `.png`
        and `.pdf` the picture; `.json` the numbers. An existing file is replaced.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the path has another suffix.
        RuntimeError
            If the package that makes a .png (resvg_py) or a .pdf (typst) is not installed.
        """
        return save(self, Path(path))

    def plot(self, axes: Any = None) -> Any:
        """Draw the run with matplotlib: the loss, ‖gradient‖ and ‖update‖ ÷ ‖weights‖ of each layer over the steps.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Default: new ones, one below another.

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
        raise ValueError(f"save(path) takes a path that ends in one of {', '.join(KINDS)}, and got {path.name!r}.")
    if kind == ".html":
        script, styles = open_view("the view of a run", None)
        title = f"{watch.target.model_name or 'A training'}: {watch.steps} steps"
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
        raise ValueError(f"plot(axes) takes three axes, for the loss, the gradients and the ratio, and got {axes.size}.")
    loss, gradient, ratio = axes
    middle = (data["step"] + data["last"]) / 2
    loss.fill_between(middle, data["loss.min"], data["loss.max"], color=hex_of(VALUE), alpha=0.2, linewidth=0)
    loss.plot(middle, data["loss"], color=hex_of(VALUE))
    loss.set_ylabel(clean(watch.loss_name).replace("$", r"\$"))
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
