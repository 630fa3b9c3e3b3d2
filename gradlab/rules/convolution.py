"""Convolutions in any number of dimensions. Three primitives, each bilinear, whose adjoints are one another:

    conv           y[n, o, p] = Σ x[n, c, q] w[o, c, k]       where q = p · stride - padding + k · dilation
    conv_input     x from y and w: the adjoint in x, which is also what a transposed convolution does
    conv_weight    w from x and y: the adjoint in w

All three are one matrix product per image with the columns of the image (a row for each channel and place in the kernel, a
column for each output position). Columns are never kept: they are made for a few images at a time, so that they stay in
cache, and again in the sweep. To make them by copying long runs, the padded image is laid out flat: the columns of a kernel
place are then the image from another start on, with the few elements between the rows of the output carried along and cut
off at the end. With a stride the image is first taken apart into phases (every stride-th element), each of which is flat.

Batch axes may lead either argument: they are folded into the images, or into the channels that the other argument lacks.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradlab.core.primitive import Primitive, bilinear, primitive
from gradlab.core.sparsity import numbered
from gradlab.rules.arguments import Array, Meta, Namespace, Shape

IN_CACHE, AT_MOST = 1 << 20, 1 << 25  # bytes of columns that are made at a time: of several images, of a single one

Ints = tuple[int, ...]


class Plan:
    """How images of `size` are laid out flat, and where each place of the kernel starts in them."""

    def __init__(self, size: Ints, out: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        phase = tuple(
            [max(-(-(n + 2 * p) // s), r // s + o) for n, o, r, s, p in zip(size, out, reach, stride, padding, strict=True)]
        )
        steps = [prod(phase[i + 1 :]) for i in range(len(phase))]
        taps = [[i * d for i, d in zip(tap, dilation, strict=True)] for tap in product(*map(range, kernel))]
        parts = {tuple(i % s for i, s in zip(tap, stride, strict=True)) for tap in taps}
        self.size, self.out, self.kernel, self.rank = size, out, kernel, len(size) + 2
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.grid, self.length = phase, prod(stride) * prod(phase)
        self.starts = [
            int(np.ravel_multi_index([i % s for i, s in zip(tap, stride, strict=True)], stride)) * prod(phase)
            + sum(i // s * step for i, s, step in zip(tap, stride, steps, strict=True))
            for tap in taps
        ]
        self.positions = 1 + sum((o - 1) * step for o, step in zip(out, steps, strict=True)) if prod(out) else 0
        self.rows = (out[0], *phase[1:])
        self.cut = (Ellipsis, *(slice(o) for o in out))
        self.fills = [self._fill(part) for part in parts]
        self.whole = sum(prod(s.stop - s.start for s in there[1 + len(size) :]) for there, _ in self.fills) == prod(size)
        self.plain = prod(kernel) == 1 and out == size and not any(padding)  # the image is its own column

    @cached_property
    def turned(self) -> Plan | None:
        """The plan of the adjoint as a convolution, where there is one."""
        back = tuple([d * (k - 1) - p for d, k, p in zip(self.dilation, self.kernel, self.padding, strict=True)])
        if prod(self.stride) > 1 or min(back) < 0:
            return None
        return plan_of(self.out, self.size, self.kernel, self.stride, back, self.dilation)

    def _fill(self, part: Ints) -> tuple[Any, Any]:
        """Where the elements of a phase lie in the flat layout, and in the image."""
        there, here = [], []
        for a, p, s, n in zip(part, self.padding, self.stride, self.size, strict=True):
            first = -(-(p - a) // s) if p > a else 0
            begin = first * s + a - p
            count = max(0, -(-(n - begin) // s))
            there.append(slice(first, first + count))
            here.append(slice(begin, begin + count * s, s))
        return (Ellipsis, *part, *there), (Ellipsis, *here)

    def chunks(self, images: int, channels: int, itemsize: int) -> list[slice]:
        """A few images at a time."""
        each = channels * len(self.starts) * self.positions * itemsize
        several = max(1, IN_CACHE // max(each, 1))
        return [slice(i, min(i + several, images)) for i in range(0, images, several)]

    def ranges(self, channels: int, itemsize: int) -> list[tuple[int, int]]:
        """All output positions, or some at a time where the image is very large."""
        some = max(1, AT_MOST // max(channels * len(self.starts) * itemsize, 1))
        return [(a, min(a + some, self.positions)) for a in range(0, self.positions, some)]

    def flat(self, xp: Any, x: Any) -> Any:
        """The images padded, their phases one after the other: (n, c, length)."""
        if self.plain:
            return x.reshape(*x.shape[:2], -1)
        laid = xp.zeros((*x.shape[:2], *self.stride, *self.grid), dtype=x.dtype)
        for there, here in self.fills:
            laid[there] = x[here]
        return laid.reshape(*x.shape[:2], self.length)

    def columns(self, xp: Any, flat: Any, a: int, b: int) -> Any:
        """(n, c, kernel places, positions a to b)."""
        if self.plain:
            return flat[:, :, None, a:b]
        made = xp.empty((*flat.shape[:2], len(self.starts), b - a), dtype=flat.dtype)
        for k, start in enumerate(self.starts):
            made[:, :, k] = flat[:, :, start + a : start + b]
        return made

    def spaced(self, xp: Any, y: Any) -> Any:
        """Outputs (n, o, …) with zeros where the flat layout has elements between rows."""
        if self.rows == self.out:
            return y.reshape(*y.shape[:2], -1)
        laid = xp.zeros((*y.shape[:2], *self.rows), dtype=y.dtype)
        laid[self.cut] = y
        return laid.reshape(*y.shape[:2], -1)

    def reached(self) -> np.ndarray:
        """(kernel places, output positions): the number of the input position that meets both, -1 where that is padding."""
        at, inside = np.zeros((2, prod(self.kernel), prod(self.out)), int)
        taps, positions = (np.indices(shape).reshape(len(shape), -1) for shape in (self.kernel, self.out))
        for k, p, n, s, pad, d in zip(taps, positions, self.size, self.stride, self.padding, self.dilation, strict=True):
            q = p * s - pad + k[:, None] * d
            inside += (q < 0) | (q >= n)
            at = at * n + q
        return np.where(inside, -1, at)

    def __repr__(self) -> str:
        return f"Plan(kernel={self.kernel}, stride={self.stride}, padding={self.padding}, dilation={self.dilation})"


@lru_cache(maxsize=256)
def plan_of(size: Ints, out: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Plan:
    return Plan(size, out, kernel, stride, padding, dilation)


def convolved(xp: Any, x: Any, w: Any, bias: Any, plan: Plan, groups: int) -> Any:
    """(n, c, …) and (o, c / groups, …) to (n, o, …)."""
    (n, c), o = x.shape[:2], w.shape[0]
    y = xp.empty((n, o, *plan.out), dtype=x.dtype)
    w = w.reshape(groups, o // groups, c // groups * len(plan.starts))
    for part in plan.chunks(n, c, x.itemsize) if y.size else ():
        flat = plan.flat(xp, x[part])
        m = flat.shape[0]
        made = xp.empty((m, groups, o // groups, prod(plan.rows)), dtype=x.dtype)
        for a, b in plan.ranges(c, x.itemsize):
            columns = plan.columns(xp, flat, a, b)
            xp.matmul(w, columns.reshape(m, groups, -1, b - a), out=made[..., a:b])
        if bias is not None:
            made += bias.reshape(groups, o // groups, 1)
        y[part] = made.reshape(m, o, *plan.rows)[plan.cut]
    return y


def spread(xp: Any, y: Any, w: Any, plan: Plan, groups: int) -> Any:
    """(n, o, …) and (o, c / groups, …) to (n, c, …): each column added back to where it was copied from. With stride 1 that is
    the convolution of y with the kernel turned round, which is quicker unless y has many more channels."""
    (n, o), c = y.shape[:2], w.shape[1] * groups
    if plan.turned is not None and o <= 2 * c:
        w = xp.swapaxes(w.reshape(groups, o // groups, c // groups, -1)[..., ::-1], 1, 2)
        return convolved(xp, y, w.reshape(c, o // groups, *plan.kernel), None, plan.turned, groups)
    x = (xp.empty if plan.whole else xp.zeros)((n, c, *plan.size), dtype=y.dtype)
    w = w.reshape(groups, o // groups, c // groups * len(plan.starts)).mT
    for part in plan.chunks(n, c, y.itemsize) if x.size else ():
        rows = plan.spaced(xp, y[part])
        m = rows.shape[0]
        rows = rows.reshape(m, groups, o // groups, -1)
        flat = xp.zeros((m, c, plan.length), dtype=y.dtype)
        for a, b in plan.ranges(c, y.itemsize):
            columns = xp.matmul(w, rows[..., a:b]).reshape(m, c, len(plan.starts), b - a)
            for k, start in enumerate(plan.starts):
                flat[:, :, start + a : start + b] += columns[:, :, k]
        laid, image = flat.reshape(m, c, *plan.stride, *plan.grid), x[part]
        for there, here in plan.fills:
            image[here] = laid[there]
    return x


def correlated(xp: Any, x: Any, y: Any, plan: Plan, groups: int) -> Any:
    """(n, c, …) and (n, o, …) to (o, c / groups, …)."""
    (n, c), o = x.shape[:2], y.shape[1]
    total = xp.zeros((groups, o // groups, c // groups * len(plan.starts)), dtype=x.dtype)
    for part in plan.chunks(n, c, x.itemsize) if y.size and x.size else ():
        flat = plan.flat(xp, x[part])
        m = flat.shape[0]
        rows = plan.spaced(xp, y[part]).reshape(m, groups, o // groups, -1)
        for a, b in plan.ranges(c, x.itemsize):
            columns = plan.columns(xp, flat, a, b).reshape(m, groups, -1, b - a)
            total += (rows[..., a:b] @ columns.mT).sum(axis=0)
    return total.reshape(o, c // groups, *plan.kernel)


# ----------------------------------------------------------------------------------------------------------- batch axes
def fold(xp: Any, x: Any, rank: int, axis: int, groups: int) -> tuple[Any, Ints]:
    """The batch axes in front made part of one axis (within each group of it), and what they were."""
    lead, own = x.shape[:-rank], x.shape[-rank:]
    if not lead:
        return x, lead
    x = x.reshape(prod(lead), *own[:axis], groups, own[axis] // groups, *own[axis + 1 :])
    return xp.moveaxis(x, 0, axis + 1).reshape(*own[:axis], prod(lead) * own[axis], *own[axis + 1 :]), lead


def unfold(xp: Any, x: Any, lead: Ints, axis: int, groups: int) -> Any:
    """The batch axes taken out of an axis again."""
    if not lead:
        return x
    own, b = x.shape, prod(lead)
    each = own[axis] // (groups * b)
    x = x.reshape(*own[:axis], groups, b, each, *own[axis + 1 :])
    return xp.moveaxis(x, axis + 1, 0).reshape(*lead, *own[:axis], groups * each, *own[axis + 1 :])


def on_batches(
    xp: Any,
    run: Any,
    a: Any,
    b: Any,
    rank: int,
    axes: tuple[tuple[int, int], tuple[int, int]],
    into: tuple[tuple[int, int], tuple[int, int]],
) -> Any:
    """run(a, b) where batch axes may lead either: `axes` says which axis of each (and in how many groups) takes them in, `into`
    in which axis of the result they come out. Where both are led, they are the same batch, taken one by one."""
    if a.ndim > rank and b.ndim > rank:
        lead = np.broadcast_shapes(a.shape[:-rank], b.shape[:-rank])
        pairs = [xp.broadcast_to(z, lead + z.shape[-rank:]).reshape(-1, *z.shape[-rank:]) for z in (a, b)]
        if not prod(lead):
            return xp.zeros(lead + run(*(xp.zeros(z.shape[-rank:], dtype=z.dtype) for z in (a, b))).shape, dtype=a.dtype)
        made = xp.stack([run(one, other) for one, other in zip(*pairs, strict=True)])
        return made.reshape(*lead, *made.shape[1:])
    a, lead_a = fold(xp, a, rank, *axes[0])
    b, lead_b = fold(xp, b, rank, *axes[1])
    return unfold(xp, unfold(xp, run(a, b), lead_a, *into[0]), lead_b, *into[1])


def conv_forward(xp: Namespace, x: Array, w: Array, *, plan: Plan, groups: int) -> Array:
    return on_batches(
        xp, lambda x, w: convolved(xp, x, w, None, plan, groups), x, w, plan.rank, ((0, 1), (0, groups)), ((0, 1), (1, groups))
    )


def conv_input_forward(xp: Namespace, y: Array, w: Array, *, plan: Plan, groups: int) -> Array:
    return on_batches(xp, lambda y, w: spread(xp, y, w, plan, groups), y, w, plan.rank, ((0, 1), (1, 1)), ((0, 1), (1, groups)))


def conv_weight_forward(xp: Namespace, x: Array, y: Array, *, plan: Plan, groups: int) -> Array:
    return on_batches(
        xp, lambda x, y: correlated(xp, x, y, plan, groups), x, y, plan.rank, ((1, groups), (1, groups)), ((1, 1), (0, groups))
    )


def conv_bias_forward(xp: Namespace, x: Array, w: Array, bias: Array, *, plan: Plan, groups: int, transposed: bool) -> Array:
    if not transposed:
        return convolved(xp, x, w, bias, plan, groups)
    made = spread(xp, x, w, plan, groups)
    made += bias.reshape(-1, *(1,) * (plan.rank - 2))
    return made


# ------------------------------------------------------------------------------------------------------------- sparsity
def conv_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """y[n, o, p] reads, for each place in the kernel, one position of the group's channels, or one place of filter o."""
    at, groups, (images, o) = meta["plan"].reached(), meta["groups"], out_shape[:2]
    if arg == "w":
        merged = np.broadcast_to(numbered((o, 1, len(at))), (o, x_shape[1], len(at)))
        return [
            (merged, np.broadcast_to(np.where(place >= 0, np.arange(o)[:, None] * len(at) + k, -1), (images, o, place.size)))
            for k, place in enumerate(at)
        ]
    merged, first = by_group(images, x_shape[1], groups, prod(x_shape[2:]))
    return [(merged, np.where(place >= 0, first[:, np.arange(o) // (o // groups), None] + place, -1)) for place in at]


def conv_input_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """x[n, c, q] reads, for each place in the kernel, the one output position of the group's channels that reads q there."""
    at, groups, (images, c) = meta["plan"].reached(), meta["groups"], out_shape[:2]
    size = prod(out_shape[2:])
    back = np.full((len(at), size + 1), -1)
    for place, positions in zip(back, at, strict=True):
        place[positions] = np.arange(positions.size)
    back, group = back[:, :size], np.arange(c) // (c // groups)
    if arg == "w":
        each = c // groups
        merged = np.broadcast_to(numbered((groups, 1, each, len(at))), (groups, x_shape[0] // groups, each, len(at)))
        return [
            (merged, np.broadcast_to(np.where(place >= 0, np.arange(c)[:, None] * len(at) + k, -1), (images, c, size)))
            for k, place in enumerate(back)
        ]
    merged, first = by_group(images, x_shape[1], groups, prod(x_shape[2:]))
    return [(merged, np.where(place >= 0, first[:, group, None] + place, -1)) for place in back]


def conv_weight_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """w[o, c, k] reads, for each output position, the input position that it meets at k, or that output itself; of all images."""
    at, groups, (o, each) = meta["plan"].reached(), meta["groups"], out_shape[:2]
    size = prod(x_shape[2:])
    merged = np.broadcast_to(numbered(x_shape[1:]), x_shape)
    out = np.arange(o)[:, None, None]
    channel = out * size if arg == "y" else (out // (o // groups) * each + np.arange(each)[:, None]) * size
    return [
        (merged, np.broadcast_to(np.where(place >= 0, channel + (p if arg == "y" else place), -1), (o, each, place.size)))
        for p, place in enumerate(at.T)
    ]


def conv_bias_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    if arg == "bias":
        return None, np.broadcast_to(np.arange(x_shape[0]).reshape(-1, *(1,) * (len(out_shape) - 2)), out_shape)
    return (
        conv_input_reads({"x": "y", "w": "w"}[arg], x_shape, out_shape, meta)
        if meta["transposed"]
        else conv_reads(arg, x_shape, out_shape, meta)
    )


def by_group(images: int, channels: int, groups: int, size: int) -> tuple[Array, Array]:
    """Elements merged over the channels of a group, and the number of the first of each image and group."""
    merged = np.broadcast_to(numbered((images, groups, 1, size)), (images, groups, channels // groups, size))
    return merged, numbered((images, groups)) * size


# ------------------------------------------------------------------------------------------------------------- primitives
TWICE = "ConvolutionBackwardBackward0"

conv = bilinear(
    "conv",
    conv_forward,
    reads=conv_reads,
    node="ConvolutionBackward0",
    tex=r"{x} \star {w}",
    formula=r"\bar{x} = \bar{y} \star^{\top} w,\quad \bar{w} = x \star \bar{y}",
    x=lambda g, w, plan, groups: conv_input(g, w, plan=plan, groups=groups),
    w=lambda g, x, plan, groups: conv_weight(x, g, plan=plan, groups=groups),
)
conv_input: Primitive = bilinear(
    "conv_input",
    conv_input_forward,
    reads=conv_input_reads,
    node=TWICE,
    tex=r"{y} \star^{{\top}} {w}",
    formula=r"\bar{y} = \bar{x} \star w,\quad \bar{w} = \bar{x} \star y",
    y=lambda g, w, plan, groups: conv(g, w, plan=plan, groups=groups),
    w=lambda g, y, plan, groups: conv_weight(g, y, plan=plan, groups=groups),
)
conv_weight: Primitive = bilinear(
    "conv_weight",
    conv_weight_forward,
    reads=conv_weight_reads,
    node=TWICE,
    tex=r"{x} \star {y}",
    formula=r"\bar{x} = y \star^{\top} \bar{w},\quad \bar{y} = x \star \bar{w}",
    x=lambda g, y, plan, groups: conv_input(y, g, plan=plan, groups=groups),
    y=lambda g, x, plan, groups: conv(x, g, plan=plan, groups=groups),
)
conv_transpose = conv_input.named("ConvolutionBackward0")


def over_channels(xp: Namespace, g: Array, plan: Plan) -> Array:
    """The sum over all but the channels."""
    return xp.sum(g, axis=(-plan.rank, *range(2 - plan.rank, 0)))


def adjoint_in_w(x: Array, y: Array, plan: Plan, groups: int, transposed: bool) -> Array:
    return conv_weight(y, x, plan=plan, groups=groups) if transposed else conv_weight(x, y, plan=plan, groups=groups)


DIRECT, ADJOINT = {False: conv, True: conv_input}, {False: conv_input, True: conv}

conv_bias = primitive(
    "conv_bias",
    conv_bias_forward,
    reads=conv_bias_reads,
    node="ConvolutionBackward0",
    tex=r"{x} \star {w} + {bias}",
    formula=r"\bar{x} = \bar{y} \star^{\top} w,\quad \bar{w} = x \star \bar{y},\quad \bar{b} = \textstyle\sum \bar{y}",
    vjp={
        "x": lambda g, w, plan, groups, transposed: ADJOINT[transposed](g, w, plan=plan, groups=groups),
        "w": lambda g, x, plan, groups, transposed: adjoint_in_w(x, g, plan, groups, transposed),
        "bias": over_channels,
    },
    jvp={
        "x": lambda t, w, plan, groups, transposed: DIRECT[transposed](t, w, plan=plan, groups=groups),
        "w": lambda t, x, plan, groups, transposed: DIRECT[transposed](x, t, plan=plan, groups=groups),
        "bias": lambda t, plan: t[(Ellipsis, None, slice(None), *(None,) * (plan.rank - 2))],
    },
    promote="single",
)
