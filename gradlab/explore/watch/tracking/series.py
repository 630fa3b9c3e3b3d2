"""The series that trackers get of a run: a bounded number of them, however many layers a model has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.core.numpy_warnings import silence
from gradlab.explore.module_paths import STEP
from gradlab.explore.watch.layers import WatchedModel

GROUPS = 32  # series of one kind at most
TABLE_ROWS = 1000  # layers in the table of a spike at most


def module_path(name: str, model: str) -> str:
    """Return PyTorch's path for a layer's name: "layers.3" for "net.layers[3]" of `net`, and `model` for the model itself."""
    if not model or not name.startswith(model):
        return name
    return ".".join(step.strip(".[]'\"") for step in STEP.findall(name[len(model) :])) or model


@dataclass(frozen=True)
class Groups:
    """Layers that share a series.

    Attributes
    ----------
    names : tuple of str
        One for each group: the path of a module, or "layers.0-3" for neighbours.
    of_layer : ndarray of int, shape (layers,)
        The group of each layer.
    first : tuple of int
        The first layer of each group.
    """

    names: tuple[str, ...]
    of_layer: np.ndarray
    first: tuple[int, ...]

    def norms(self, norms: np.ndarray) -> np.ndarray:
        """Return the norms of groups from those of layers. NaN stands for "not measured"."""
        with silence():
            made = self._sums(norms * norms)
        np.sqrt(made, out=made)
        return made

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of the values of each group's layers."""
        made = self._sums(values)
        made /= self._sums(np.where(np.isnan(values), np.nan, 1.0))
        return made

    def _sums(self, values: np.ndarray) -> np.ndarray:
        measured = ~np.isnan(values)
        sums = np.full(len(self.names), np.nan)
        sums[self.of_layer[measured]] = 0.0
        np.add.at(sums, self.of_layer[measured], values[measured])
        return sums


def group_layers(paths: Sequence[str], root: str, most: int = GROUPS) -> Groups:
    """Group layers by the modules that they are in.

    The groups are the modules at the deepest level at which there are at most `most`. Where the next level has too many only
    because modules are numbered, as the blocks of a transformer, neighbours share a group.

    Parameters
    ----------
    paths : sequence of str
        The paths of the layers, such as "layers.3.attn".
    root : str
        The name of the group of all layers.
    most : int
        How many groups there may be.
    """
    if len(set(paths)) <= most:
        return _merge_layers(paths, paths)
    split = [path.split(".") for path in paths]
    depth = max(map(len, split))

    def keys(level: int) -> list[str]:
        return [".".join(parts[:level]) for parts in split]

    level = next(level for level in range(depth, -1, -1) if len(set(keys(level))) <= most)
    deepest, below = keys(level), keys(level + 1)
    for width in (2**k for k in range(1, len(paths).bit_length() + 1)):
        ranges = [_range_key(key, width) for key in below]
        if len(set(deepest)) < len(set(ranges)) <= most:
            return _merge_layers(ranges, below)
    return _merge_layers(deepest, [key or root for key in deepest])


def _range_key(path: str, width: int) -> str:
    parent, _, last = path.rpartition(".")
    return f"{parent}.[{int(last) // width}]" if last.isdecimal() else path


def _merge_layers(keys: Sequence[str], labels: Sequence[str]) -> Groups:
    """Return the groups of layers with equal keys; the name of one is made of the labels of its first and its last layer."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    first: dict[str, int] = {}
    last: dict[str, str] = {}
    for i, (key, label) in enumerate(zip(keys, labels, strict=True)):
        first.setdefault(key, i)
        last[key] = label
    names = tuple(_range_name(labels[i], last[key]) for key, i in first.items())
    return Groups(names, np.array([numbers[key] for key in keys], int), tuple(first.values()))


def _range_name(first: str, last: str) -> str:
    return first if first == last else f"{first}-{last.rpartition('.')[2]}"


class Series:
    """The names and numbers of the series of a run.

    Parameters
    ----------
    target : WatchedModel
    layout : SeriesLayout
        Where the numbers are in a row.
    """

    def __init__(self, target: WatchedModel, layout: Any) -> None:
        self._layout = layout
        self.paths = [module_path(name, target.model_name) for name in target.layers]
        self.layers = group_layers(self.paths, target.model_name or "parameters")
        self._activations = group_layers(
            [module_path(one.name, target.model_name) for one in target.activations], target.model_name
        )

    def total_norms(self, rows: np.ndarray) -> np.ndarray:
        """Return the norm of all gradients of each row, before they were clipped where that is known; NaN if not measured."""
        gradients = rows[:, self._layout.gradient]
        none = np.isnan(gradients)
        with silence():
            norms = np.sqrt(np.where(none, 0.0, gradients * gradients).sum(1))
        before = rows[:, self._layout.unclipped]
        return np.where(~np.isnan(before), before, np.where(none.all(1), np.nan, norms))

    def measured_parts(self, rows: np.ndarray) -> np.ndarray:
        """Return which parts (gradients, updates, units) of each row were measured, as the bits of an int."""
        parts = (self._layout.gradient, self._layout.ratio, self._layout.dead)
        bits = np.zeros(len(rows), int)
        for i, part in enumerate(parts):
            bits |= (~np.isnan(rows[:, part])).any(1).astype(int) << i
        return bits

    def scalars(self, row: np.ndarray) -> dict[str, float]:
        """Return the numbers of a row by name: those that were measured, with NaN for one that is not finite."""
        layout = self._layout
        weights, ratios = row[layout.weight], row[layout.ratio]
        total = self.layers.norms(row[layout.gradient])
        with silence():
            moved = self.layers.norms(ratios * weights) / self.layers.norms(np.where(np.isnan(ratios), np.nan, weights))
            every = np.sqrt(np.nansum(total * total)) if not np.isnan(total).all() else np.nan
        named = {
            "gradlab/loss": row[layout.loss],
            "gradlab/lr": row[layout.rate],
            "gradlab/gradient_norm": every,
            "gradlab/gradient_norm_unclipped": row[layout.unclipped],
            "gradlab/loss_scale": row[layout.scale],
        }
        for kind, groups, values in (
            ("gradient_norm", self.layers, total),
            ("update_ratio", self.layers, moved),
            ("weight_norm", self.layers, self.layers.norms(weights)),
            ("dead_units", self._activations, self._activations.means(row[layout.dead])),
        ):
            named.update({f"{kind}/{name}": value for name, value in zip(groups.names, values, strict=True)})
        return {name: float(x) if math.isfinite(x) else math.nan for name, x in named.items() if not np.isnan(x)}

    def table(self, row: np.ndarray) -> list[tuple[str, float, float, float]]:
        """Return a row for each layer, the largest gradients first: its path, gradient norm, update ratio and weight norm."""
        gradients = row[self._layout.gradient]
        order = np.argsort(-np.nan_to_num(gradients, nan=-1.0, posinf=np.inf), kind="stable")[:TABLE_ROWS]
        parts = [row[part] for part in (self._layout.gradient, self._layout.ratio, self._layout.weight)]
        return [(self.paths[i], *(float(part[i]) for part in parts)) for i in order]
