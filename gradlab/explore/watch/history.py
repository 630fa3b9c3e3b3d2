"""The numbers of runs as columns: a dict of NumPy arrays, or a DataFrame of a library that is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

FRAMES = ("pandas", "polars")  # both make a DataFrame of a dict of arrays


def columns_of(watch: Any) -> dict[str, np.ndarray]:
    """Return the columns of a run; see `Watch.history`."""
    watch.flush()
    m, layout = watch.measuring, watch.measuring.layout
    summary = m.columns.summary()
    first = np.arange(m.columns.used) * summary.width
    series = {"step": first + 1, "last": np.minimum(first + summary.width, m.steps)}
    names = {layout.loss: "loss", layout.rate: "lr", layout.unclipped: "unclipped", layout.scale: "scale"}
    for what, part in (("gradient", layout.gradient), ("ratio", layout.ratio), ("weight", layout.weight)):
        names.update({part.start + i: f"{what} {layer}" for i, layer in enumerate(watch.layers)})
    for what, part in (("dead", layout.dead), ("saturated", layout.saturated)):
        names.update({part.start + i: f"{what} {one.name}" for i, one in enumerate(watch.target.activations)})
    for at, name in names.items():
        measured = summary.count[:, at].any() or summary.bad[:, at].any()
        if measured or at in (layout.loss, layout.rate) or not name.startswith(("unclipped", "scale", "dead ", "saturated ")):
            series[name] = summary.mean[:, at]
            series[f"{name}.min"], series[f"{name}.max"] = summary.low[:, at], summary.high[:, at]
    series["not finite"] = summary.bad[:, layout.loss] + summary.bad[:, layout.gradient].sum(1)
    return series


def stack_runs(histories: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the rows of several runs one after another, with the label of each in the column "run"; NaN if a run lacks a
    column."""
    lengths = {label: len(columns["step"]) for label, columns in histories.items()}
    names = dict.fromkeys(name for columns in histories.values() for name in columns)
    together = {"run": np.repeat(np.array(list(lengths), object), list(lengths.values()))}
    for name in names:
        parts = [columns.get(name, np.full(lengths[label], np.nan)) for label, columns in histories.items()]
        together[name] = np.concatenate(parts)
    return together


def frame_maker(frame: str | None) -> Callable[[Mapping[str, np.ndarray]], Any]:
    """Return a function that makes a DataFrame of columns; for None, one that returns them as they are.

    Raises
    ------
    ValueError
        If `frame` is not in `FRAMES`.
    ImportError
        If the library is not installed.
    """
    if frame is None:
        return lambda columns: columns
    if frame not in FRAMES:
        raise ValueError(f'history(frame=…) takes "pandas" or "polars", and got {frame!r:.80}.')
    try:
        make: Callable[[Mapping[str, np.ndarray]], Any] = import_module(frame).DataFrame
    except ImportError as error:
        raise ImportError(
            f'history(frame="{frame}") needs {frame}, which is not installed here: pip install {frame}. Without it, history() '
            "returns the same columns as NumPy arrays.",
            name=frame,
        ) from error
    return make
