"""Operations that move elements: views, copies in another order, joins. All are linear, and each is the transpose of another.

Axes in metadata are negative, so that batch axes in front never shift them. A view is one wherever the library can make it;
where NumPy's own function is slow (`broadcast_to` takes 2 µs), the view is made of strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gradlab.backend.namespaces import moved, namespace_of, writable
from gradlab.core.primitive import Primitive, elementwise, linear
from gradlab.core.registry import used
from gradlab.rules.arguments import Array, Axes, Namespace, Shape
from gradlab.rules.indexing import namespace_under, scatter


def under(lead: Shape, axes: Axes) -> Axes:
    """A permutation (negative axes) behind the batch axes, also as negative numbers: it may be recorded itself."""
    return (*range(-len(lead) - len(axes), -len(axes)), *axes)


def inverse(axes: Axes) -> Axes:
    """The permutation back; axes negative, as all are."""
    return tuple(axes.index(i) - len(axes) for i in range(-len(axes), 0))


def strided(x: Array, shape: Shape, strides: Shape, offset: int = 0) -> Array:
    """A view of a NumPy array by strides and an offset in bytes, which knows whose memory it is (`as_strided` hides that); a
    copy where the memory is too scattered to say."""
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
    x=lambda g, lead, axes: permute(g, axes=under(lead, inverse(axes))),
    batch=lambda lead, axes: {"axes": under(lead, axes)},
)


def expanded(xp: Namespace, x: Array, *, shape: Shape, skip: int) -> Array:
    """Broadcast to `shape`; new axes go behind the first `skip` axes, which are batch axes."""
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


def narrowed(xp: Namespace, g: Array, lead: Shape, x_shape: Shape, skip: int) -> Array:
    """The engine sums over what broadcasting repeated, and expects new axes behind `lead`; those behind more are summed here."""
    if not skip:
        return g
    first, extra = len(lead) + skip, len(g.shape) - len(lead) - len(x_shape)
    return xp.sum(g, axis=tuple(range(first, first + extra))) if extra else g


expand = linear(
    "expand",
    expanded,
    reads="index",
    view=True,
    tex="{x}",
    x=narrowed,
    batch=lambda lead, shape, skip: {"shape": lead + shape, "skip": len(lead) + skip},
)
diagonal = linear(
    "diagonal",
    lambda x, *, offset, axes: writable(x.diagonal(offset, *axes), x),
    reads="index",
    view=True,
    tex=r"\mathrm{{diagonal}}({x})",
    batch=lambda lead, offset, axes: {"offset": offset, "axes": axes},
    x=lambda g, lead, x_shape, offset, axes: fill_diagonal(g, shape=lead + x_shape, offset=offset, axes=axes),
)


def set_diagonal(xp: Namespace, x: Array, *, shape: Shape, offset: int, axes: Axes) -> Array:
    """Zeros of `shape` with x on the diagonal of the two (negative) axes."""
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
    """The stretches of `size` elements along a negative axis, every `step`, as a new last axis."""
    n = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], n, *x.shape[axis:][1:], size)
    if type(x) is np.ndarray:
        each = x.strides[axis]
        return strided(x, shape, (*x.strides[:axis], step * each, *x.strides[axis:][1:], each))
    at = namespace_of[type(x)].arange(n)[:, None] * step + namespace_of[type(x)].arange(size)
    return namespace_of[type(x)].moveaxis(x.take(at, axis=axis), axis, -1)


def overlapped(xp: Namespace, x: Array, *, length: int, axis: int, step: int) -> Array:
    """Transpose of `windows`: zeros with every stretch added where it came from."""
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
)
fold: Primitive = linear(
    "fold",
    overlapped,
    reads="into",
    node="UnfoldBackwardBackward0",
    tex=r"\mathrm{{fold}}({x})",
    x=lambda g, x_shape, axis, step: unfold(g, axis=axis, size=x_shape[-1], step=step),
    batch=lambda lead, length, axis, step: {"length": length, "axis": axis, "step": step},
)


def element_numbers(xp: Namespace, shape: Shape, stride: Shape, offset: int) -> Array:
    """Where strides in elements lead, in a flat array."""
    total = offset
    for at, (n, step) in enumerate(zip(shape, stride, strict=True)):
        total = total + (xp.arange(n) * step).reshape((n,) + (1,) * (len(shape) - at - 1))
    return total if shape else xp.asarray(total)


def by_strides(x: Array, *, shape: Shape, stride: Shape, offset: int, numel: int) -> Array:
    """The view that strides in elements make of an array of `numel` elements; further axes of `shape` are batch axes."""
    lead = shape[: len(shape) - len(stride)]
    stride = (*(numel * prod(lead[i + 1 :]) for i in range(len(lead))), *stride)
    if type(x) is np.ndarray:
        x = np.ascontiguousarray(x)
        return strided(x, shape, tuple(n * x.itemsize for n in stride), offset * x.itemsize)
    return x.reshape(-1)[element_numbers(namespace_of[type(x)], shape, stride, offset)]


def by_strides_vjp(g: Array, lead: Shape, x_shape: Shape, shape: Shape, stride: Shape, offset: int, numel: int) -> Array:
    batch = len(shape) - len(stride)
    at = element_numbers(namespace_under(g), shape[batch:], stride, offset)
    return scatter(g, shape=(*lead, *x_shape[:batch], numel), index=(at,), skip=len(lead) + batch).reshape(lead + x_shape)


as_strided = linear(
    "as_strided",
    by_strides,
    reads="index",
    view=True,
    x=by_strides_vjp,
    tex=r"\mathrm{{as\_strided}}({x})",
    batch=lambda lead, shape, stride, offset, numel: {"shape": lead + shape, "stride": stride, "offset": offset, "numel": numel},
)


# ------------------------------------------------------------------------------------------------------------- in new memory
contiguous = elementwise("contiguous", lambda x: x.copy(), x=lambda g: g, node="CloneBackward0", tex="{x}")
flip: Primitive = linear(
    "flip",
    lambda xp, x, *, axes: xp.flip(x, axes).copy(),
    reads="index",
    tex=r"\mathrm{{flip}}({x})",
    x=lambda g, axes: flip(g, axes=axes),
)
roll: Primitive = linear(
    "roll",
    lambda xp, x, *, shifts, axes: xp.roll(x, shifts, axes),
    reads="index",
    tex=r"\mathrm{{roll}}({x})",
    x=lambda g, shifts, axes: roll(g, shifts=tuple([-n for n in shifts]), axes=axes),
)
tril: Primitive = linear(
    "tril",
    lambda xp, x, *, diagonal: xp.tril(x, diagonal),
    reads="index",
    tex=r"\mathrm{{tril}}({x})",
    x=lambda g, diagonal: tril(g, diagonal=diagonal),
)
triu: Primitive = linear(
    "triu",
    lambda xp, x, *, diagonal: xp.triu(x, diagonal),
    reads="index",
    tex=r"\mathrm{{triu}}({x})",
    x=lambda g, diagonal: triu(g, diagonal=diagonal),
)


def interleaved(one: Shape, two: Shape) -> Shape:
    return tuple(n for pair in zip(one, two, strict=True) for n in pair)


def tiled(xp: Namespace, x: Array, *, repeats: Shape) -> Array:
    """x as often as `repeats` says, for each axis one after the other."""
    apart = x.reshape(interleaved((1,) * x.ndim, x.shape))
    return (
        expanded(xp, apart, shape=interleaved(repeats, x.shape), skip=0)
        .copy()
        .reshape(tuple([n * m for n, m in zip(repeats, x.shape, strict=True)]))
    )


repeat = linear(
    "repeat",
    tiled,
    reads="index",
    tex=r"\mathrm{{repeat}}({x})",
    x=lambda xp, g, lead, x_shape, repeats: xp.sum(
        g.reshape(lead + interleaved(repeats, x_shape)), axis=tuple(range(-2 * len(repeats), 0, 2))
    ),
    batch=lambda lead, repeats: {"repeats": (1,) * len(lead) + repeats},
)


# ---------------------------------------------------------------------------------------------------------------- joins
def narrow(g: Array, axis: int, start: int, stop: int) -> Array:
    """g[..., start:stop, ...] on a negative axis."""
    return g[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis - 1)]


cat = linear(
    "cat",
    lambda xp, *xs, axis, starts: xp.concatenate(xs, axis),
    reads="index",
    tex=r"\mathrm{{cat}}({xs})",
    xs=lambda g, position, axis, starts: narrow(g, axis, starts[position], starts[position + 1]),
)


def stacked(xp: Namespace, *xs: Array, axis: int) -> Array:
    at = (..., None) + (slice(None),) * (-axis - 1) if axis < -1 else (..., None)
    return xp.concatenate([x[at] for x in xs], axis)


stack = linear(
    "stack",
    stacked,
    reads="index",
    tex=r"\mathrm{{stack}}({xs})",
    xs=lambda g, position, axis: g[(Ellipsis, position) + (slice(None),) * (-axis - 1)],
)


def corners(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Where each of some matrices begins when they are put on a diagonal, and where the last ends."""
    at = [(0, 0)]
    for shape in shapes:
        at.append((at[-1][0] + shape[-2], at[-1][1] + shape[-1]))
    return at


def on_diagonal(xp: Namespace, *xs: Array) -> Array:
    at = corners([x.shape for x in xs])
    total = xp.zeros((*xs[0].shape[:-2], *at[-1]), dtype=xs[0].dtype)
    for x, (row, column) in zip(xs, at, strict=False):
        total[..., row : row + x.shape[-2], column : column + x.shape[-1]] = x
    return total


def block(g: Array, position: int, xs_shape: tuple[Shape, ...]) -> Array:
    (top, left), (bottom, right) = corners(xs_shape[: position + 1])[-2:]
    return g[..., top:bottom, left:right]


block_diag = linear("block_diag", on_diagonal, reads="index", tex=r"\mathrm{{diag}}({xs})", xs=block)

astype = linear("astype", lambda x, *, dtype: x.astype(dtype), x=lambda g: g, reads="own", node="ToCopyBackward0", tex="{x}")
# `back` is the device that x lies on: the transpose brings the cotangent there.
transfer: Primitive = linear(
    "transfer",
    lambda x, *, where, back, waits: moved(x, where, waits),
    reads="own",
    node="ToCopyBackward0",
    tex="{x}",
    x=lambda g, where, back: transfer(g, where=back, back=where, waits=True),
)
used.astype, used.transfer = astype, transfer
