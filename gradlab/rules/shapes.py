"""Operations that move elements: views, copies in another order, joins. All are linear, and the transpose of each is another one.

Axes in metadata are negative, so that batch axes in front do not shift them. Views are used wherever the array library has them.
If NumPy's function is slow (`broadcast_to` takes 2 µs), the view is created from strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gradlab.backend.namespaces import make_writable, move_to, namespace_of
from gradlab.core.primitive import Primitive, elementwise, linear
from gradlab.core.properties import Properties
from gradlab.core.registry import core_primitives
from gradlab.rules.arguments import Array, Axes, Namespace, Shape
from gradlab.rules.indexing import namespace_under, scatter


def permutation_behind(lead: Shape, axes: Axes) -> Axes:
    """Return a permutation of all axes, batch axes first, as negative numbers, because it may itself be recorded."""
    return (*range(-len(lead) - len(axes), -len(axes)), *axes)


def inverse_permutation(axes: Axes) -> Axes:
    """Return the inverse permutation, with negative axes."""
    return tuple(axes.index(i) - len(axes) for i in range(-len(axes), 0))


def strided_view(x: Array, shape: Shape, strides: Shape, offset: int = 0) -> Array:
    """Return a view of a NumPy array, given strides and an offset in bytes, whose `base` is the owner of the memory.

    `as_strided` hides the owner. If the array is not a view of contiguous memory, the result is a copy.
    """
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, offset, strides)
    root = x.base
    if type(root) is np.ndarray and root.flags.c_contiguous and root.dtype == x.dtype:
        return np.ndarray(shape, x.dtype, root, offset + x.ctypes.data - root.ctypes.data, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides).copy()


reshape = linear(
    "reshape",
    lambda x, *, shape: x.reshape(shape),
    reads="index",
    view=True,
    node="ViewBackward0",
    tex="{x}",
    x=lambda g, lead, x_shape: g.reshape(lead + x_shape),
    batch=lambda lead, shape: {"shape": lead + shape},
)
permute: Primitive = linear(
    "permute",
    lambda x, *, axes: x.transpose(axes),
    reads="index",
    view=True,
    tex=r"{x}^{{\top}}",
    x=lambda g, lead, axes: permute(g, axes=permutation_behind(lead, inverse_permutation(axes))),
    batch=lambda lead, axes: {"axes": permutation_behind(lead, axes)},
    properties=Properties(transposes=True),
)


def expand_forward(xp: Namespace, x: Array, *, shape: Shape, skip: int) -> Array:
    """Broadcast x to `shape`. New axes are inserted after the first `skip` axes, which are batch axes."""
    have = x.shape
    extra = len(shape) - len(have)
    if xp is np and not skip and x.flags.c_contiguous:
        if x.size == 1 and extra >= 0:
            return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        strides = [0] * extra
        for m, n, stride in zip(have, shape[extra:], x.strides, strict=True):
            if m != n and m != 1:
                raise ValueError(f"{have} does not broadcast to {shape}")
            strides.append(stride if m == n else 0)
        return np.ndarray(shape, x.dtype, x, 0, strides)
    if extra:
        x = x.reshape(x.shape[:skip] + (1,) * extra + x.shape[skip:])
    return xp.broadcast_to(x, shape)


def expand_vjp(xp: Namespace, g: Array, lead: Shape, x_shape: Shape, skip: int) -> Array:
    """Sum over new axes that come after `skip` axes. The engine sums over other broadcast axes, which follow `lead`."""
    if not skip:
        return g
    first, extra = len(lead) + skip, len(g.shape) - len(lead) - len(x_shape)
    return xp.sum(g, axis=tuple(range(first, first + extra))) if extra else g


expand = linear(
    "expand",
    expand_forward,
    reads="index",
    view=True,
    tex="{x}",
    x=expand_vjp,
    batch=lambda lead, shape, skip: {"shape": lead + shape, "skip": len(lead) + skip},
    properties=Properties(inserts_axis=True),
)
diagonal = linear(
    "diagonal",
    lambda x, *, offset, axes: make_writable(x.diagonal(offset, *axes), x),
    reads="index",
    view=True,
    tex=r"\mathrm{{diagonal}}({x})",
    batch=lambda lead, offset, axes: {"offset": offset, "axes": axes},
    x=lambda g, lead, x_shape, offset, axes: fill_diagonal(g, shape=lead + x_shape, offset=offset, axes=axes),
    properties=Properties(moves="part"),
)


def set_diagonal(xp: Namespace, x: Array, *, shape: Shape, offset: int, axes: Axes) -> Array:
    """Return zeros of `shape` with x on a diagonal of two (negative) axes."""
    total = xp.zeros(shape, dtype=x.dtype)
    at = xp.arange(x.shape[-1])
    xp.moveaxis(total, axes, (-2, -1))[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return total


fill_diagonal: Primitive = linear(
    "fill_diagonal",
    set_diagonal,
    reads="index",
    node="DiagEmbedBackward0",
    tex=r"\mathrm{{diag}}({x})",
    x=lambda g, offset, axes: diagonal(g, offset=offset, axes=axes),
    batch=lambda lead, shape, offset, axes: {"shape": lead + shape, "offset": offset, "axes": axes},
)


def windows(x: Array, *, axis: int, size: int, step: int) -> Array:
    """Return windows of `size` elements along a negative axis, every `step` elements, as a new last axis."""
    n = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], n, *x.shape[axis:][1:], size)
    if type(x) is np.ndarray:
        each = x.strides[axis]
        return strided_view(x, shape, (*x.strides[:axis], step * each, *x.strides[axis:][1:], each))
    at = namespace_of[type(x)].arange(n)[:, None] * step + namespace_of[type(x)].arange(size)
    return namespace_of[type(x)].moveaxis(x.take(at, axis=axis), axis, -1)


def add_windows(xp: Namespace, x: Array, *, length: int, axis: int, step: int) -> Array:
    """Transpose of `windows`: add each window to zeros at its position."""
    x = xp.moveaxis(x, -1, 0)
    total = xp.zeros((*x.shape[1:][:axis], length, *x.shape[1:][axis:][1:]), dtype=x.dtype)
    n, rest = x.shape[axis], (slice(None),) * (-axis - 1)
    for k in range(x.shape[0]):
        total[(Ellipsis, slice(k, k + (n - 1) * step + 1, step), *rest)] += x[k]
    return total


unfold = linear(
    "unfold",
    windows,
    reads="index",
    view=True,
    tex=r"\mathrm{{unfold}}({x})",
    x=lambda g, x_shape, axis, step: fold(g, length=x_shape[axis], axis=axis, step=step),
    batch=lambda lead, axis, size, step: {"axis": axis, "size": size, "step": step},
    properties=Properties(moves="order"),
)
fold: Primitive = linear(
    "fold",
    add_windows,
    reads="into",
    node="UnfoldBackwardBackward0",
    tex=r"\mathrm{{fold}}({x})",
    x=lambda g, x_shape, axis, step: unfold(g, axis=axis, size=x_shape[-1], step=step),
    batch=lambda lead, length, axis, step: {"length": length, "axis": axis, "step": step},
)


def element_numbers(xp: Namespace, shape: Shape, stride: Shape, offset: int) -> Array:
    """Return the flat positions that strides and an offset, in elements, refer to."""
    total = offset
    for at, (n, step) in enumerate(zip(shape, stride, strict=True)):
        total = total + (xp.arange(n) * step).reshape((n,) + (1,) * (len(shape) - at - 1))
    return total if shape else xp.asarray(total)


def as_strided_forward(x: Array, *, shape: Shape, stride: Shape, offset: int, numel: int) -> Array:
    """Return a view of an array of `numel` elements by strides in elements. Additional axes of `shape` are batch axes."""
    lead = shape[: len(shape) - len(stride)]
    stride = (*(numel * prod(lead[i + 1 :]) for i in range(len(lead))), *stride)
    if type(x) is np.ndarray:
        x = np.ascontiguousarray(x)
        return strided_view(x, shape, tuple(n * x.itemsize for n in stride), offset * x.itemsize)
    return x.reshape(-1)[element_numbers(namespace_of[type(x)], shape, stride, offset)]


def as_strided_vjp(g: Array, lead: Shape, x_shape: Shape, shape: Shape, stride: Shape, offset: int, numel: int) -> Array:
    batch = len(shape) - len(stride)
    at = element_numbers(namespace_under(g), shape[batch:], stride, offset)
    return scatter(g, shape=(*lead, *x_shape[:batch], numel), index=(at,), skip=len(lead) + batch).reshape(lead + x_shape)


as_strided = linear(
    "as_strided",
    as_strided_forward,
    reads="index",
    view=True,
    x=as_strided_vjp,
    tex=r"\mathrm{{as\_strided}}({x})",
    batch=lambda lead, shape, stride, offset, numel: {"shape": lead + shape, "stride": stride, "offset": offset, "numel": numel},
    properties=Properties(moves="part"),
)


# --------------------------------------------------------------------------------------------------------------- copies
contiguous = elementwise(
    "contiguous", lambda x: x.copy(), x=lambda g: g, node="CloneBackward0", tex="{x}", properties=Properties(moves="layout")
)
flip: Primitive = linear(
    "flip",
    lambda xp, x, *, axes: xp.flip(x, axes).copy(),
    reads="index",
    tex=r"\mathrm{{flip}}({x})",
    x=lambda g, axes: flip(g, axes=axes),
    properties=Properties(moves="order"),
)
roll: Primitive = linear(
    "roll",
    lambda xp, x, *, shifts, axes: xp.roll(x, shifts, axes),
    reads="index",
    tex=r"\mathrm{{roll}}({x})",
    x=lambda g, shifts, axes: roll(g, shifts=tuple([-n for n in shifts]), axes=axes),
    properties=Properties(moves="order"),
)
tril: Primitive = linear(
    "tril",
    lambda xp, x, *, diagonal: xp.tril(x, diagonal),
    reads="index",
    tex=r"\mathrm{{tril}}({x})",
    x=lambda g, diagonal: tril(g, diagonal=diagonal),
    properties=Properties(keeps_sign=True),
)
triu: Primitive = linear(
    "triu",
    lambda xp, x, *, diagonal: xp.triu(x, diagonal),
    reads="index",
    tex=r"\mathrm{{triu}}({x})",
    x=lambda g, diagonal: triu(g, diagonal=diagonal),
    properties=Properties(keeps_sign=True),
)


def interleave(one: Shape, two: Shape) -> Shape:
    return tuple(n for pair in zip(one, two, strict=True) for n in pair)


def repeat_forward(xp: Namespace, x: Array, *, repeats: Shape) -> Array:
    """Repeat x along each axis as often as `repeats` gives."""
    apart = x.reshape(interleave((1,) * x.ndim, x.shape))
    return (
        expand_forward(xp, apart, shape=interleave(repeats, x.shape), skip=0)
        .copy()
        .reshape(tuple([n * m for n, m in zip(repeats, x.shape, strict=True)]))
    )


repeat = linear(
    "repeat",
    repeat_forward,
    reads="index",
    tex=r"\mathrm{{repeat}}({x})",
    x=lambda xp, g, lead, x_shape, repeats: xp.sum(
        g.reshape(lead + interleave(repeats, x_shape)), axis=tuple(range(-2 * len(repeats), 0, 2))
    ),
    batch=lambda lead, repeats: {"repeats": (1,) * len(lead) + repeats},
    properties=Properties(moves="order"),
)


# ---------------------------------------------------------------------------------------------------------------- joins
def narrow(g: Array, axis: int, start: int, stop: int) -> Array:
    """Return g[..., start:stop, ...] along a negative axis."""
    return g[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis - 1)]


cat = linear(
    "cat",
    lambda xp, *xs, axis, starts: xp.concatenate(xs, axis),
    reads="index",
    tex=r"\mathrm{{cat}}({xs})",
    xs=lambda g, position, axis, starts: narrow(g, axis, starts[position], starts[position + 1]),
    properties=Properties(moves="join"),
)


def stack_forward(xp: Namespace, *xs: Array, axis: int) -> Array:
    at = (..., None) + (slice(None),) * (-axis - 1) if axis < -1 else (..., None)
    return xp.concatenate([x[at] for x in xs], axis)


stack = linear(
    "stack",
    stack_forward,
    reads="index",
    tex=r"\mathrm{{stack}}({xs})",
    xs=lambda g, position, axis: g[(Ellipsis, position) + (slice(None),) * (-axis - 1)],
    properties=Properties(moves="join"),
)


def block_corners(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return the start (row, column) of each block of a block-diagonal matrix, and the end of the last."""
    at = [(0, 0)]
    for shape in shapes:
        at.append((at[-1][0] + shape[-2], at[-1][1] + shape[-1]))
    return at


def block_diag_forward(xp: Namespace, *xs: Array) -> Array:
    at = block_corners([x.shape for x in xs])
    total = xp.zeros((*xs[0].shape[:-2], *at[-1]), dtype=xs[0].dtype)
    for x, (row, column) in zip(xs, at, strict=False):
        total[..., row : row + x.shape[-2], column : column + x.shape[-1]] = x
    return total


def diagonal_block(g: Array, position: int, xs_shape: tuple[Shape, ...]) -> Array:
    (top, left), (bottom, right) = block_corners(xs_shape[: position + 1])[-2:]
    return g[..., top:bottom, left:right]


block_diag = linear(
    "block_diag",
    block_diag_forward,
    reads="index",
    tex=r"\mathrm{{diag}}({xs})",
    xs=diagonal_block,
    properties=Properties(keeps_sign=True),
)

astype = linear(
    "astype",
    lambda x, *, dtype: x.astype(dtype),
    x=lambda g: g,
    reads="own",
    node="ToCopyBackward0",
    tex="{x}",
    properties=Properties(moves="cast"),
)
# `back` is the device of x, to which the transpose moves the cotangent.
transfer: Primitive = linear(
    "transfer",
    lambda x, *, where, back, waits: move_to(x, where, waits),
    reads="own",
    node="ToCopyBackward0",
    tex="{x}",
    x=lambda g, where, back: transfer(g, where=back, back=where, waits=True),
    properties=Properties(moves="cast"),
)
core_primitives.astype, core_primitives.transfer = astype, transfer
