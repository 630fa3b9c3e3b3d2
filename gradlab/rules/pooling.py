"""Max pooling. The windows are one `AxisMap` per axis, as for average pooling in `resampling`.

The maximum is computed axis by axis. The backward pass compares input and output to find it again: the first of several equal
elements receives the cotangent, as in PyTorch. Only the input and the output are saved, and neighbouring operations usually save
these anyway. Recorded sweeps, windows with NaN (the last NaN is the maximum) and unevenly overlapping windows use the
positions of the maxima instead.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.primitive import primitive
from gradlab.core.tensor import Tensor
from gradlab.rules.indexing import gather, put_along
from gradlab.rules.masking import INTEGER_OF_ITEMSIZE, keep_where
from gradlab.rules.resampling import WHOLE_AXIS, AxisMap, resample_reads


def max_along(xp: Any, x: Any, m: AxisMap, axis: int) -> Any:
    """Return the maximum of each window along a negative axis."""
    behind = (WHOLE_AXIS,) * (-axis - 1)
    total, owned = None, False
    for outputs, inputs, _ in m.taps:
        part = x[(Ellipsis, inputs, *behind)] if isinstance(inputs, slice) else xp.take(x, xp.asarray(inputs), axis=axis)
        if total is None and outputs is not WHOLE_AXIS:
            lowest = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
            total, owned = xp.full(m.shape(x.shape, axis), lowest, dtype=x.dtype), True
        if total is None:
            total = part
        elif outputs is WHOLE_AXIS:
            total, owned = (xp.maximum(total, part, out=total) if owned else xp.maximum(total, part)), True
        else:
            total, owned = total if owned else total.copy(), True
            at = (Ellipsis, outputs if isinstance(outputs, slice) else xp.asarray(outputs), *behind)
            total[at] = xp.maximum(total[at], part)
    return total


def max_pool_forward(xp: Any, x: Any, *, maps: tuple[AxisMap, ...]) -> Any:
    maxima = x
    for axis, m in zip(range(-len(maps), 0), maps, strict=True):
        maxima = max_along(xp, maxima, m, axis)
    return maxima.copy() if maxima is x or maxima.base is not None else maxima


def argmax_positions(xp: Any, x: Any, maps: tuple[AxisMap, ...]) -> Any:
    """Return the flat position of each window's maximum, int64 of shape (…, windows): the first of equal ones, the last NaN."""
    size = x.shape[x.ndim - len(maps) :]
    indices = [m.index for m in maps]
    firsts = [index[np.argmax(index >= 0, axis=0), np.arange(index.shape[1])] for index in indices]
    flat = x.reshape(*x.shape[: x.ndim - len(maps)], prod(size))
    best = places = None
    for taps in product(*map(range, map(len, indices))):
        rows = [index[t] for index, t in zip(indices, taps, strict=True)]
        filled = [np.where(row < 0, first, row) for row, first in zip(rows, firsts, strict=True)]
        read = np.ravel_multi_index(np.ix_(*filled), size)
        inside = reduce(np.logical_and.outer, [row >= 0 for row in rows])
        read, inside = xp.asarray(read.ravel()), xp.asarray(inside.ravel())
        value = xp.take(flat, read, axis=-1)
        if best is None:
            best, places = value, xp.broadcast_to(read, value.shape)
        else:
            better = ((value > best) | (value != value)) & inside
            best, places = xp.where(better, value, best), xp.where(better, read, places)
    return places


@lru_cache(maxsize=256)
def window_indices(maps: tuple[AxisMap, ...]) -> list[tuple[Any, Any]]:
    """Return, for each position in the window (row by row), the index of the outputs that have it and of the inputs they read."""
    outputs, inputs = [m.index.shape[1] for m in maps], [m.length for m in maps]
    return [
        (outer_index([row[0] for row in rows], outputs), outer_index([row[1] for row in rows], inputs))
        for rows in product(*(m.rows for m in maps))
    ]


def outer_index(parts: list[Any], sizes: list[int]) -> tuple[Any, ...]:
    """Combine positions along several axes into one index."""
    if all(isinstance(part, slice) for part in parts):
        return (Ellipsis, *parts)
    return (Ellipsis, *np.ix_(*(np.arange(n)[part] for part, n in zip(parts, sizes, strict=True))))


def index_on_device(xp: Any, where: tuple[Any, ...]) -> tuple[Any, ...]:
    return where if isinstance(where[-1], slice) else (Ellipsis, *map(xp.asarray, where[1:]))


def max_pool_vjp(xp: Any, g: Any, x: Any, out: Any, lead: tuple[int, ...], maps: tuple[AxisMap, ...]) -> Any:
    """Add the cotangent of each output to the first element of its window that equals the output."""
    if type(g) is not np.ndarray or not all(m.taps_read_once for m in maps) or bool(xp.isnan(out.sum())):
        n = len(maps)
        indices = positions_of_maxima(x, maps)
        front = (*lead, *x.shape[: x.ndim - n])
        placed = put_along(
            g.reshape(*front, indices.shape[-1]),
            shape=(*front, prod(x.shape[x.ndim - n :])),
            axis=-1,
            indices=indices,
            keepdims=True,
        )
        return placed.reshape(*lead, *x.shape)
    total = xp.zeros(lead + x.shape, dtype=g.dtype)
    apart = all(m.reads_inputs_once for m in maps)
    free = xp.ones(out.shape, dtype=bool)  # windows whose maximum has not been found yet
    taps = window_indices(maps)
    full = all(len(m.rows) == len(m.index) and m.taps[-1][0] is WHOLE_AXIS for m in maps)
    for k, (outputs, inputs) in enumerate(taps, 1):
        outputs, inputs = index_on_device(xp, outputs), index_on_device(xp, inputs)
        if full and k == len(taps):
            is_maximum = free
        else:
            is_maximum = x[inputs] == out[outputs]
            is_maximum &= free[outputs]
            free[outputs] ^= is_maximum
        if not apart:
            total[inputs] += keep_where(xp, is_maximum, g[outputs])
        elif type(g) is np.ndarray and isinstance(inputs[-1], slice):
            bits = INTEGER_OF_ITEMSIZE[g.itemsize]
            np.bitwise_and(g[outputs].view(bits), -is_maximum.view(np.int8), out=total.view(bits)[inputs])
        else:
            total[inputs] = keep_where(xp, is_maximum, g[outputs])
    return total


def max_pool_jvp(t: Any, x: Any, out_shape: tuple[int, ...], lead: tuple[int, ...], maps: tuple[AxisMap, ...]) -> Any:
    rows = t.reshape(*t.shape[: t.ndim - len(maps)], prod(t.shape[t.ndim - len(maps) :]))
    picked = gather(rows, axis=-1, indices=positions_of_maxima(x, maps), keepdims=True)
    return picked.reshape(*lead, *out_shape)


def positions_of_maxima(x: Any, maps: tuple[AxisMap, ...]) -> Any:
    """Return the positions of the maxima of an array or Tensor."""
    array = x.array if type(x) is Tensor else x
    return argmax_positions(namespace_of[type(array)], array, maps)


max_pool = primitive(
    "max_pool",
    max_pool_forward,
    reads=resample_reads,
    node="MaxPool2DWithIndicesBackward0",
    tex=r"\mathrm{{maxpool}}({x})",
    promote="number",
    formula=r"\bar{x}_q = \textstyle\sum_p \bar{y}_p\,[q = \mathrm{argmax}_{q'\in w(p)}\,x_{q'}]",
    vjp={"x": max_pool_vjp},
    jvp={"x": max_pool_jvp},
)
