"""Padding, average pooling, interpolation and the columns of an image, as linear maps along each spatial axis.

All of them are one primitive. An `AxisMap` describes, for each output position, which input positions it reads and with which
weights; maps of several axes are applied one after the other. The transpose is an `AxisMap` too, so the primitive is its own
adjoint with other metadata. A tap (the k-th position that the outputs read) with evenly spaced positions is a slice.

Inputs are never excluded by a factor of 0, so an infinite input does not spread as NaN.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from gradlab.core.primitive import Primitive, linear
from gradlab.core.sparsity import number_elements
from gradlab.rules.arguments import Meta, Shape

WHOLE_AXIS = slice(None)


def selector(places: np.ndarray) -> Any:
    """Return increasing, evenly spaced positions as a slice, and others as they are."""
    steps = np.diff(places)
    if not places.size:
        return slice(0, 0)
    if not steps.size or (steps[0] > 0 and (steps == steps[0]).all()):
        return slice(int(places[0]), int(places[-1]) + 1, int(steps[0]) if steps.size else 1)
    return places


class AxisMap:
    """The linear map out[o] = Σ_t weight[t, o] · x[index[t, o]] along an axis of `length`. Index -1 reads nothing."""

    def __init__(self, index: np.ndarray, length: int, weight: np.ndarray | None = None) -> None:
        self.index, self.length, self.weight = index, length, weight

    @cached_property
    def rows(self) -> list[tuple[Any, Any, Any]]:
        """For each tap, the outputs that have it, the inputs that they read, and the weights."""
        selected = []
        for t, row in enumerate(self.index):
            has = np.flatnonzero(row >= 0)
            if has.size or len(self.index) == 1:
                whole = has.size == row.size
                weight = None if self.weight is None else self.weight[t, has]
                selected.append((WHOLE_AXIS if whole else selector(has), selector(row[has]), weight))
        return selected

    @cached_property
    def taps(self) -> list[tuple[Any, Any, Any]]:
        """The rows, beginning with the taps that all outputs have."""
        return sorted(self.rows, key=lambda row: row[0] is not WHOLE_AXIS)

    @cached_property
    def transpose(self) -> AxisMap:
        """The transpose: each input reads the outputs that read it."""
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
        back.__dict__["transpose"] = self
        return back

    @cached_property
    def taps_read_once(self) -> bool:
        """True if no tap reads the same input position for two outputs."""
        return all(isinstance(source, slice) or np.unique(source).size == source.size for _, source, _ in self.taps)

    @cached_property
    def reads_inputs_once(self) -> bool:
        """True if no input position is read twice."""
        read = self.index[self.index >= 0]
        return np.unique(read).size == read.size

    def apply(self, xp: Any, x: Any, axis: int, fill: float) -> Any:
        """Apply the map to x along a negative axis. Outputs that read nothing are `fill`."""
        behind = (WHOLE_AXIS,) * (-axis - 1)
        total, owned = None, False
        for outputs, inputs, weight in self.taps:
            part = x[(Ellipsis, inputs, *behind)] if isinstance(inputs, slice) else xp.take(x, xp.asarray(inputs), axis=axis)
            if weight is not None:
                part = part * xp.asarray(weight, dtype=x.dtype).reshape(-1, *(1,) * len(behind))
            if outputs is WHOLE_AXIS:
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


def resample_forward(xp: Any, x: Any, *, maps: Maps, over: Any, first: bool, fill: float) -> Any:
    """Apply one map to each of the last axes, beginning with the axis that becomes shortest relative to its length.

    The result is divided by `over` or, if `first` is True, x is divided by it beforehand.
    """
    y = x / (over if isinstance(over, float) else xp.asarray(over, dtype=x.dtype)) if over is not None and first else x
    axes = [(axis, m) for axis, m in zip(range(-len(maps), 0), maps, strict=True) if m is not None]
    for axis, m in sorted(axes, key=lambda pair: pair[1].index.shape[1] / max(pair[1].length, 1)):
        y = m.apply(xp, y, axis, fill)
    if over is not None and not first:
        y = y / (over if isinstance(over, float) else xp.asarray(over, dtype=x.dtype))
    return y.copy() if y is x or y.base is not None else y


def resample_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: return the element that each output reads, for each combination of taps."""
    flows = []
    for taps in product(*(range(1 if m is None else len(m.index)) for m in meta["maps"])):
        source = number_elements(x_shape)
        for axis, t, m in zip(range(-len(taps), 0), taps, meta["maps"], strict=True):
            if m is not None:
                index = m.index[t] if m.weight is None else np.where(m.weight[t] == 0, -1, m.index[t])
                read = np.take(source, np.maximum(index, 0), axis=axis)
                source = np.where((index >= 0).reshape(-1, *(1,) * (-axis - 1)), read, -1)
        flows.append((None, source))
    return flows


resample: Primitive = linear(
    "resample",
    resample_forward,
    reads=resample_reads,
    tex=r"\mathrm{{resample}}({x})",
    x=lambda g, maps, over, first: resample(g, maps=transpose_maps(maps), over=over, first=not first, fill=0),
    batch=lambda lead, maps, over, first, fill: {"maps": maps, "over": over, "first": first, "fill": 0},
    promote="single",
)


# The same primitive for operations whose backward takes the input in PyTorch. The derivative with respect to it is 0, but the
# result depends on it (see `zero_derivative`).
remap = linear(
    "remap",
    resample_forward,
    reads=resample_reads,
    tex=r"\mathrm{{resample}}({x})",
    batch=resample.batch,
    x=lambda g, x, maps, over, first: resample(g, maps=transpose_maps(maps), over=over, first=not first, fill=0),
    promote="single",
)


def transpose_maps(maps: Maps) -> Maps:
    return tuple([None if m is None else m.transpose for m in maps])


# ------------------------------------------------------------------------------------------------------------------ maps
@lru_cache(maxsize=256)
def window_map(length: int, out: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> AxisMap:
    """Return windows of `kernel` positions, every `stride` positions. Positions outside the axis are skipped."""
    index = np.arange(out) * stride - padding + np.arange(kernel)[:, None] * dilation
    return AxisMap(np.where((index >= 0) & (index < length), index, -1), length)


@lru_cache(maxsize=256)
def adaptive_map(length: int, out: int) -> tuple[AxisMap, np.ndarray]:
    """Return `out` windows that divide the axis evenly, from floor(o n / out) to ceil((o + 1) n / out), and their lengths."""
    starts = np.arange(out) * length // max(out, 1)
    stops = -(-(np.arange(out) + 1) * length // max(out, 1))
    index = starts + np.arange((stops - starts).max(initial=1))[:, None]
    return AxisMap(np.where(index < stops, index, -1), length), stops - starts


@lru_cache(maxsize=256)
def padding_map(length: int, before: int, after: int, mode: str) -> AxisMap | None:
    """Return the map that pads an axis at its ends (or cuts it, if negative); None if it does not change."""
    if not before and not after:
        return None
    at = np.arange(-before, length + after)
    if mode == "constant":
        at = np.where((at >= 0) & (at < length), at, -1)
    elif mode == "reflect":
        at = length - 1 - np.abs(length - 1 - np.abs(at))
    elif mode == "replicate":
        at = np.clip(at, 0, length - 1)
    else:  # circular: the elements that remain after cutting repeat
        left = length + min(before, 0) + min(after, 0)
        at = max(-before, 0) + (np.arange(length + before + after) - max(before, 0)) % max(left, 1)
    return AxisMap(at[None], length)


@lru_cache(maxsize=256)
def columns_map(length: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> AxisMap:
    """Return the elements of all windows side by side, at position (k, o) of kernel × out."""
    windows = window_map(length, out, kernel, stride, padding, dilation)
    return AxisMap(windows.index.reshape(1, -1), length)


@lru_cache(maxsize=256)
def interpolation_map(length: int, out: int, mode: str, align_corners: bool, scale: float | None, dtype: str) -> AxisMap:
    """Return the positions and weights that `interpolate` reads along an axis.

    Positions are computed in `dtype` like the values, because the nearest element may depend on the last bit. The bicubic weights
    are those of Keys (1981) with a = -0.75.
    """
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
    """Return the weights of the elements at -1, 0, 1 and 2 for a point at t between 0 and 1."""

    def near(x: np.ndarray) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)])
