"""Linear maps along the spatial axes, one for each axis: padding, average pooling, interpolation, the columns of an image.

One primitive does them all. An `AxisMap` says for each output position which input positions it reads, and with which
weights; the map of several axes is one after the other. Its transpose is a map of the same kind, so that the primitive is its
own adjoint, under other metadata. A tap (the k-th position that the outputs read) that moves in even steps is a slice.

Nothing is multiplied by zero to leave it out: an infinite input stays where it is.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from gradlab.core.primitive import Primitive, linear
from gradlab.core.sparsity import numbered
from gradlab.rules.arguments import Meta, Shape

ALL = slice(None)


def selector(places: np.ndarray) -> Any:
    """The places as a slice, if they are evenly spaced and rise; else themselves."""
    steps = np.diff(places)
    if not places.size:
        return slice(0, 0)
    if not steps.size or (steps[0] > 0 and (steps == steps[0]).all()):
        return slice(int(places[0]), int(places[-1]) + 1, int(steps[0]) if steps.size else 1)
    return places


class AxisMap:
    """out[o] = Σ over t of weight[t, o] · x[index[t, o]] along an axis of `length`; nothing is read at index -1."""

    def __init__(self, index: np.ndarray, length: int, weight: np.ndarray | None = None) -> None:
        self.index, self.length, self.weight = index, length, weight

    @cached_property
    def rows(self) -> list[tuple[Any, Any, Any]]:
        """For each tap: the outputs that have it, the inputs they read, the weights there."""
        selected = []
        for t, row in enumerate(self.index):
            has = np.flatnonzero(row >= 0)
            if has.size or len(self.index) == 1:
                whole = has.size == row.size
                weight = None if self.weight is None else self.weight[t, has]
                selected.append((ALL if whole else selector(has), selector(row[has]), weight))
        return selected

    @cached_property
    def taps(self) -> list[tuple[Any, Any, Any]]:
        """The rows; those that every output has come first."""
        return sorted(self.rows, key=lambda row: row[0] is not ALL)

    @cached_property
    def transposed(self) -> AxisMap:
        """The map from the outputs back: each input reads the outputs that read it."""
        tap, out = np.nonzero(self.index >= 0)
        into = self.index[tap, out]
        order = np.lexsort((tap, out, into))
        tap, out, into = tap[order], out[order], into[order]
        counts = np.bincount(into, minlength=self.length)
        rank = np.arange(into.size) - np.repeat(np.cumsum(counts) - counts, counts)
        index = np.full((counts.max(initial=0), self.length), -1)
        index[rank, into] = out
        weight = None
        if self.weight is not None:
            weight = np.zeros(index.shape)
            weight[rank, into] = self.weight[tap, out]
        back = AxisMap(index, self.index.shape[1], weight)
        back.__dict__["transposed"] = self
        return back

    @cached_property
    def unrepeated(self) -> bool:
        """Whether no tap reads an input position for two outputs."""
        return all(isinstance(source, slice) or np.unique(source).size == source.size for _, source, _ in self.taps)

    @cached_property
    def apart(self) -> bool:
        """Whether no input position is read twice."""
        read = self.index[self.index >= 0]
        return np.unique(read).size == read.size

    def along(self, xp: Any, x: Any, axis: int, fill: float) -> Any:
        """The map of x along a negative axis; an output that reads nothing is `fill`."""
        behind = (ALL,) * (-axis - 1)
        total, owned = None, False
        for outputs, inputs, weight in self.taps:
            part = x[(Ellipsis, inputs, *behind)] if isinstance(inputs, slice) else xp.take(x, xp.asarray(inputs), axis=axis)
            if weight is not None:
                part = part * xp.asarray(weight, dtype=x.dtype).reshape(-1, *(1,) * len(behind))
            if outputs is ALL:
                if total is None:
                    total = part
                elif owned:
                    total += part
                else:
                    total, owned = total + part, True
                continue
            if total is None:
                total = xp.full(self.shape(x.shape, axis), fill, dtype=x.dtype)
                total[(Ellipsis, outputs if isinstance(outputs, slice) else xp.asarray(outputs), *behind)] = part
            else:
                total = total if owned else total.copy()
                total[(Ellipsis, outputs if isinstance(outputs, slice) else xp.asarray(outputs), *behind)] += part
            owned = True
        return xp.full(self.shape(x.shape, axis), fill, dtype=x.dtype) if total is None else total

    def shape(self, of: tuple[int, ...], axis: int) -> tuple[int, ...]:
        return (*of[:axis], self.index.shape[1], *of[len(of) + axis + 1 :])

    def __repr__(self) -> str:
        return f"AxisMap({self.length} to {self.index.shape[1]})"


Maps = tuple[AxisMap | None, ...]


def resampled(xp: Any, x: Any, *, maps: Maps, over: Any, first: bool, fill: float) -> Any:
    """The maps of the last axes, one after the other (those that shorten an axis most come first); the result is divided by
    `over`, or x is, if `first`."""
    y = x / (over if isinstance(over, float) else xp.asarray(over, dtype=x.dtype)) if over is not None and first else x
    axes = [(axis, m) for axis, m in zip(range(-len(maps), 0), maps, strict=True) if m is not None]
    for axis, m in sorted(axes, key=lambda pair: pair[1].index.shape[1] / max(pair[1].length, 1)):
        y = m.along(xp, y, axis, fill)
    if over is not None and not first:
        y = y / (over if isinstance(over, float) else xp.asarray(over, dtype=x.dtype))
    return y.copy() if y is x or y.base is not None else y


def resample_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """For each tap of each axis, the element that it reads."""
    flows = []
    for taps in product(*(range(1 if m is None else len(m.index)) for m in meta["maps"])):
        source = numbered(x_shape)
        for axis, t, m in zip(range(-len(taps), 0), taps, meta["maps"], strict=True):
            if m is not None:
                index = m.index[t] if m.weight is None else np.where(m.weight[t] == 0, -1, m.index[t])
                read = np.take(source, np.maximum(index, 0), axis=axis)
                source = np.where((index >= 0).reshape(-1, *(1,) * (-axis - 1)), read, -1)
        flows.append((None, source))
    return flows


resample: Primitive = linear(
    "resample",
    resampled,
    reads=resample_reads,
    tex=r"\mathrm{{resample}}({x})",
    x=lambda g, maps, over, first: resample(g, maps=transposed(maps), over=over, first=not first, fill=0),
    batch=lambda lead, maps, over, first, fill: {"maps": maps, "over": over, "first": first, "fill": 0},
    promote="single",
)


# The same where PyTorch's backward is given the input too, whose derivative in it is 0: so is ours, and says so (see
# `zero_derivative`).
remap = linear(
    "remap",
    resampled,
    reads=resample_reads,
    tex=r"\mathrm{{resample}}({x})",
    batch=resample.batch,
    x=lambda g, x, maps, over, first: resample(g, maps=transposed(maps), over=over, first=not first, fill=0),
    promote="single",
)


def transposed(maps: Maps) -> Maps:
    return tuple([None if m is None else m.transposed for m in maps])


# ------------------------------------------------------------------------------------------------------ what the maps are
@lru_cache(maxsize=256)
def window_map(length: int, out: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> AxisMap:
    """Windows of `kernel` places, every `stride` positions; places outside are left out."""
    index = np.arange(out) * stride - padding + np.arange(kernel)[:, None] * dilation
    return AxisMap(np.where((index >= 0) & (index < length), index, -1), length)


@lru_cache(maxsize=256)
def adaptive_map(length: int, out: int) -> tuple[AxisMap, np.ndarray]:
    """`out` windows that share the axis evenly, and how long each is: from floor(o n / out) to ceil((o + 1) n / out)."""
    starts = np.arange(out) * length // max(out, 1)
    stops = -(-(np.arange(out) + 1) * length // max(out, 1))
    index = starts + np.arange((stops - starts).max(initial=1))[:, None]
    return AxisMap(np.where(index < stops, index, -1), length), stops - starts


@lru_cache(maxsize=256)
def padding_map(length: int, before: int, after: int, mode: str) -> AxisMap | None:
    """The axis with more at its ends (fewer, where negative); None if nothing changes."""
    if not before and not after:
        return None
    at = np.arange(-before, length + after)
    if mode == "constant":
        at = np.where((at >= 0) & (at < length), at, -1)
    elif mode == "reflect":
        at = length - 1 - np.abs(length - 1 - np.abs(at))
    elif mode == "replicate":
        at = np.clip(at, 0, length - 1)
    else:  # what is left after cutting is what goes round
        left = length + min(before, 0) + min(after, 0)
        at = max(-before, 0) + (np.arange(length + before + after) - max(before, 0)) % max(left, 1)
    return AxisMap(at[None], length)


@lru_cache(maxsize=256)
def columns_map(length: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> AxisMap:
    """The elements of all windows side by side: position (k, o) of kernel × out."""
    windows = window_map(length, out, kernel, stride, padding, dilation)
    return AxisMap(windows.index.reshape(1, -1), length)


@lru_cache(maxsize=256)
def interpolation_map(length: int, out: int, mode: str, align_corners: bool, scale: float | None, dtype: str) -> AxisMap:
    """What `interpolate` reads along an axis. The positions are worked out in `dtype`, as the values are, since which element is
    nearest may hang on the last bit. Bicubic weights: Keys (1981), with a = -0.75."""
    real = np.dtype(np.float32 if mode.startswith("nearest") else dtype).type
    to = np.arange(out)
    step = real(1 / scale) if scale else real(real(length) / real(out))
    if mode == "nearest":
        at = to if out == length else to // 2 if out == 2 * length else np.floor(to.astype(real) * step).astype(int)
        return AxisMap(np.minimum(at, length - 1)[None], length)
    if mode == "nearest-exact":
        return AxisMap(np.minimum(np.floor((to.astype(real) + real(0.5)) * step).astype(int), length - 1)[None], length)
    if align_corners:
        at = to.astype(real) * (real(length - 1) / real(out - 1) if out > 1 else real(0))
    else:
        at = step * (to.astype(real) + real(0.5)) - real(0.5)
    if mode == "bicubic":
        low = np.floor(at).astype(int)
        return AxisMap(np.clip(low + np.arange(-1, 3)[:, None], 0, length - 1), length, cubic_weights((at - low).astype(float)))
    if out == length:
        at = to.astype(real)
    at = np.maximum(at, 0)
    low = np.minimum(at.astype(int), length - 1)
    part = np.clip(at - low, 0, 1).astype(float)
    return AxisMap(np.stack([low, np.minimum(low + 1, length - 1)]), length, np.stack([1 - part, part]))


def cubic_weights(t: np.ndarray, a: float = -0.75) -> np.ndarray:
    """The weights of the elements at -1, 0, 1 and 2 for a point t past 0."""

    def near(x: np.ndarray) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)])
