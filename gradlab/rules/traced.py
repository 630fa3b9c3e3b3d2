"""NumPy's functions for Tensors: the namespace `xp` of rules in a recorded sweep (`create_graph=True`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.rules import cumulative, elementary, elementwise, reductions, shapes, zero_derivative  # noqa: F401
from gradlab.rules.arguments import Array, Axes, Shape


def broadcast_to(x: Array, shape: Shape) -> Array:
    return shapes.expand.record(x, shape=tuple(shape), skip=0)


def expand_dims(x: Array, axis: int | Axes) -> Array:
    return shapes.reshape.record(x, shape=np.expand_dims(np.broadcast_to(0, x.array.shape), axis).shape)


def axes_of(x: Array, axis: int | Sequence[int] | None) -> Axes:
    return reductions.negative_axes(axis, x.array.ndim)


def constant_like(name: str) -> Callable[..., Array]:
    """Return `xp.<name>` for Tensors. Its derivative is 0 or undefined, so the result is a constant."""
    return lambda *xs: constant(getattr(namespace_of[type(xs[0].array)], name)(*(x.array for x in xs)))


def concatenate(xs: Sequence[Array], axis: int) -> Array:
    starts = (0, *np.cumsum([x.array.shape[axis] for x in xs]).tolist())
    return shapes.cat.record(*xs, axis=axis, starts=starts)


def where(condition: Array, a: Array, b: Array) -> Array:
    return elementwise.where.record(condition if isinstance(condition, Tensor) else constant(condition), a, b)


namespace_of[Tensor] = SimpleNamespace(
    exp=elementary.exp.record,
    log=elementary.log.record,
    log1p=elementary.log1p.record,
    sqrt=elementary.sqrt.record,
    sin=elementary.sin.record,
    cos=elementary.cos.record,
    sinh=elementary.sinh.record,
    cosh=elementary.cosh.record,
    isfinite=constant_like("isfinite"),
    sign=elementary.sign.record,
    ones_like=constant_like("ones_like"),
    absolute=elementwise.absolute.record,
    concatenate=concatenate,
    flip=lambda x, axis: shapes.flip.record(x, axes=(axis,)),
    cumprod=lambda x, axis: cumulative.cumprod.record(x, axis=(axis,)),
    where=where,
    broadcast_to=broadcast_to,
    expand_dims=expand_dims,
    asarray=lambda x: x if isinstance(x, Tensor) else constant(x),
    zeros_like=constant_like("zeros_like"),
    zeros=lambda shape, dtype: constant(np.zeros(shape, dtype)),
    sum=lambda x, axis=None, keepdims=False: reductions.sum_.record(x, axis=axes_of(x, axis), keepdims=keepdims),
    mean=lambda x, axis=None, keepdims=False: reductions.mean.record(x, axis=axes_of(x, axis), keepdims=keepdims),
    astype=lambda x, dtype: shapes.astype.record(x, dtype=getattr(dtype, "numpy", dtype)),
)
