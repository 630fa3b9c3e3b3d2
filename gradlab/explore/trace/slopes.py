"""Count saturated elements and dead units of activations during a sweep.

A slope is the ratio of the two cotangents, so it needs no formula. It is undefined if the upstream gradient is 0. For a softmax,
rows are counted: a row whose largest entry is nearly 1 passes on almost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.explore.keras_layers import has_channels_first, is_keras_layer
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import Slopes
from gradlab.explore.trace.values import Pending

FLAT = 0.01  # of the steepest slope; for a sigmoid at |x| > 6, where the slope is at most 0.0025
NEARLY_FLAT = 1 - 0.97**2  # of the steepest slope; for a tanh beyond ±0.97, for a sigmoid where tanh(x / 2) is
SHARP = 0.999  # the largest entry of a softmax row; the norm of the Jacobian is then below 2 (1 - 0.999)
MASKED = -1e8  # entries below are masked, by -inf, -1e9, or the smallest number of their dtype
MASKED_HALF = -6e4  # the same of float16, which ends at -65504


def open_slope(node_name: str) -> float | None:
    """Return the slope of an activation where it is not flat; None for a node that is not an activation with a flat part.

    It is 1 for rectifiers, of which some (GELU, SiLU) are a little steeper near 0, and otherwise the steepest slope.
    """
    properties = lookup(node_name)
    return 1.0 if properties.rectifier else properties.steepest if properties.sigmoidal else None


def slopes_of(library: Any, node: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    """Return the `Slopes` of a node, `Pending` on a device; None if the node is not an activation."""
    name = library.name_of(node)
    if name == "SoftmaxBackward0":
        rows = library.output_of(node)
        axis = library.setting(node, "dim")
        axis = library.setting(node, "axis") if axis is None else axis
        if rows is None or not len(rows.shape):
            return None
        axis = axis[0] if isinstance(axis, tuple) else axis
        operand = library.output_of(sources[0]) if sources and sources[0] is not None else None
        if operand is not None and tuple(operand.shape) != tuple(rows.shape):
            operand = None
        return library.sharp(rows, operand, -1 if axis is None else axis)
    steepest = open_slope(name)
    handed = cotangents[0] if cotangents else None
    if steepest is None or g is None or handed is None:
        return None
    g = g[0] if isinstance(g, tuple) else g
    shape = tuple(g.shape)
    if tuple(handed.shape) != shape or not shape:
        return None
    before = library.name_of(sources[0]) if sources and sources[0] is not None else ""
    first = len(shape) >= 4 or (len(shape) == 3 and lookup(before).channels_first)
    note = library.note(node)
    layer = None if note is None or note.call is None else note.call.module()
    if is_keras_layer(layer):
        first = len(shape) >= 3 and has_channels_first(layer)
    return library.slopes(g, handed, (FLAT * steepest, NEARLY_FLAT * steepest), 1 if first else len(shape) - 1)


def slopes(g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
    """Return the `Slopes` of two cotangents, `Pending` for arrays on a device. Elements with slopes below the two numbers `flat`
    are flat and nearly flat. `axis` is the axis of the units."""
    xp = np if isinstance(g, np.ndarray) else namespace_of[type(g)]
    arrived, passed = g != 0, handed != 0
    others = tuple(k for k in range(g.ndim) if k != axis)
    with np.errstate(all="ignore"):
        sizes = xp.abs(g), xp.abs(handed)
        low, nearly = (arrived & (sizes[1] < slope * sizes[0]) for slope in flat)
    reached, open_ = arrived.any(others), passed.any(others)
    counted = [arrived.sum(), low.sum(), reached.sum(), (reached & ~open_).sum(), nearly.sum()]
    places = g.size // max(g.shape[axis], 1)
    return slopes_reader(places)([np.asarray(x) for x in counted]) if xp is np else Pending(counted, slopes_reader(places))


def sharp(rows: Any, inputs: Any, axis: int) -> Any:
    """Return the `Slopes` of the rows of a softmax along an axis. Only rows with at least two unmasked entries in `inputs`
    count."""
    xp = np if isinstance(rows, np.ndarray) else namespace_of[type(rows)]
    counts = rows.max(axis) > SHARP
    if inputs is None:
        several = xp.full(counts.shape, rows.shape[axis] > 1)
    else:
        several = (inputs > (MASKED if inputs.dtype.itemsize >= 4 else MASKED_HALF)).sum(axis) > 1
    counted = [several.sum(), (several & counts).sum()]
    return slopes_reader()([np.asarray(x) for x in counted]) if xp is np else Pending(counted, slopes_reader())


def slopes_reader(places: int = 1) -> Any:
    """Return a function that converts the counts to `Slopes` when they have been read."""

    def finish(read: Sequence[np.ndarray]) -> Slopes:
        numbers = [int(x) for x in read]
        units, shut, nearly = numbers[2:] or (0, 0, 0)
        return Slopes(numbers[0], numbers[1], units, shut, places, nearly)

    return finish
