"""Convolutions in any number of dimensions: three bilinear primitives, each of which is an adjoint of the others.

    conv           y[n, o, p] = Σ x[n, c, q] w[o, c, k]       where q = p · stride - padding + k · dilation
    conv_input     x from y and w: the adjoint with respect to x, which is also the transposed convolution
    conv_weight    w from x and y: the adjoint with respect to w

All three are one matrix product with the columns of several images (im2col: one row for each channel and kernel position, one
column for each image and output position). Columns are computed for as many images as fit into the cache, and are not saved: the
backward pass computes them again.

To copy long runs, the padded images are stored flat, one after the other, for each channel. The columns of a kernel position are
then a slice of this with another start. The slice includes the elements between the rows of the output, which are cut off at the
end. Without a stride, the zeros on the right of a row are those on the left of the next one, and likewise below an image. With a
stride, the images are first split into phases (every stride-th element), each of which is flat.

The products with zeros, in the padding and in the gaps between rows, add nothing, unless the other factor is infinite or NaN. On
NumPy these cases are computed again from the products that exist, so that a NaN reaches no more elements than in PyTorch.

Either argument may have batch axes in front. They are folded into the images, or into channels that the other argument does
not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradlab.core.primitive import Primitive, bilinear, primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import number_elements
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.reductions import total

CACHE_BYTES, MAX_COLUMN_BYTES = 1 << 21, 1 << 22  # bytes of columns at a time: of several images, of one image
MAX_GAPS = 1.25  # elements of a flat image per element of its output rows, up to which the rest of it is computed, too

Ints = tuple[int, ...]


class Plan:
    """Flat layout of images of `size`, and where each kernel position starts in it."""

    def __init__(self, size: Ints, out: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        if prod(stride) == 1:
            # What an output row reads past its own row are then the zeros on the left of the next one.
            grid = tuple([max(n + p, o, o + r - p) for n, o, r, p in zip(size, out, reach, padding, strict=True)])
        else:
            grid = tuple(
                [max(-(-(n + 2 * p) // s), r // s + o) for n, o, r, s, p in zip(size, out, reach, stride, padding, strict=True)]
            )
        steps = [prod(grid[i + 1 :]) for i in range(len(grid))]
        taps = [[i * d for i, d in zip(tap, dilation, strict=True)] for tap in product(*map(range, kernel))]
        parts = {tuple(i % s for i, s in zip(tap, stride, strict=True)) for tap in taps}
        self.size, self.out, self.kernel, self.rank = size, out, kernel, len(size) + 2
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.grid, self.area, self.phases = grid, prod(grid), prod(stride)
        self.taps = [  # the phase of each kernel position, and its offset there
            (
                int(np.ravel_multi_index([i % s for i, s in zip(tap, stride, strict=True)], stride)),
                sum(i // s * step for i, s, step in zip(tap, stride, steps, strict=True)),
            )
            for tap in taps
        ]
        self.tail = max([offset for _, offset in self.taps], default=0)  # zeros behind the last image
        self.rows = (out[0], *grid[1:])
        if self.area <= MAX_GAPS * prod(self.rows):
            self.rows = grid
        self.run = prod(self.rows)  # elements of each image in a column
        self.crop = (Ellipsis, *(slice(o) for o in out))
        self.fills = [self._fill(part) for part in parts]
        self.covers_image = sum(prod(s.stop - s.start for s in there[-len(size) :]) for there, _ in self.fills) == prod(size)
        self.is_pointwise = prod(kernel) == 1 and out == size and not any(padding)  # the image is already its column matrix

    @cached_property
    def adjoint(self) -> Plan | None:
        """The plan that computes the adjoint as a convolution; None if there is a stride or too much padding."""
        back = tuple([d * (k - 1) - p for d, k, p in zip(self.dilation, self.kernel, self.padding, strict=True)])
        if prod(self.stride) > 1 or min(back) < 0:
            return None
        return plan_of(self.out, self.size, self.kernel, self.stride, back, self.dilation)

    def _fill(self, part: Ints) -> tuple[Any, Any]:
        """Return the index of a phase in the flat layout, and its index in the image."""
        there, here = [], []
        for a, p, s, n in zip(part, self.padding, self.stride, self.size, strict=True):
            first = -(-(p - a) // s) if p > a else 0
            begin = first * s + a - p
            count = max(0, -(-(n - begin) // s))
            there.append(slice(first, first + count))
            here.append(slice(begin, begin + count * s, s))
        return (slice(None), *part, slice(None), *there), (Ellipsis, *here)

    def chunks(self, images: int, channels: int, itemsize: int) -> list[slice]:
        """Return slices of a few images each, whose columns fit into the cache."""
        several = max(1, CACHE_BYTES // max(channels * len(self.taps) * self.run * itemsize, 1))
        return [slice(i, min(i + several, images)) for i in range(0, images, several)]

    def ranges(self, images: int, channels: int, itemsize: int) -> list[tuple[int, int]]:
        """Return ranges of the columns of a chunk: one, unless it is a very large image."""
        length = images * self.run
        some = length if images > 1 else max(1, MAX_COLUMN_BYTES // max(channels * len(self.taps) * itemsize, 1))
        return [(a, min(a + some, length)) for a in range(0, length, some)]

    def make_flat(self, xp: Any, channels: int, images: int, dtype: Any) -> tuple[Any, Any]:
        """Return zeros for flat images, (channels, length), and a view of them as (channels, *stride, images, *grid)."""
        length = self.phases * images * self.area
        flat = xp.zeros((channels, length + self.tail), dtype=dtype)
        return flat, flat[:, :length].reshape(channels, *self.stride, images, *self.grid)

    def flatten(self, xp: Any, x: Any) -> Any:
        """Return the padded images (n, c, …) in the flat layout (c, length)."""
        flat, padded = self.make_flat(xp, x.shape[1], x.shape[0], x.dtype)
        x = xp.swapaxes(x, 0, 1)
        for there, here in self.fills:
            padded[there] = x[here]
        return flat

    def runs(self, flat: Any, images: int, k: int, a: int, b: int) -> Any:
        """Return a view of the elements that kernel position `k` reads for columns a to b: (c, columns) or (c, images, run)."""
        phase, offset = self.taps[k]
        start = phase * images * self.area + offset
        if images == 1 or self.run == self.area:
            return flat[:, start + a : start + b]
        return flat[:, start : start + images * self.area].reshape(-1, images, self.area)[..., : self.run]

    def columns(self, xp: Any, flat: Any, images: int, a: int, b: int) -> Any:
        """Return the columns a to b: (c, kernel positions, columns)."""
        result = xp.empty((flat.shape[0], len(self.taps), b - a), dtype=flat.dtype)
        for k in range(len(self.taps)):
            runs = self.runs(flat, images, k, a, b)
            result[:, k].reshape(runs.shape)[...] = runs
        return result

    def windows(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yield for each kernel position the index of the outputs that read an element of the image, and that of the elements."""
        for tap in product(*map(range, self.kernel)):
            there, here = [], []
            for k, n, o, s, p, d in zip(tap, self.size, self.out, self.stride, self.padding, self.dilation, strict=True):
                first = max(0, -(-(p - k * d) // s))
                last = min(o, (n - 1 + p - k * d) // s + 1)
                begin = first * s - p + k * d
                there.append(slice(first, max(first, last)))
                here.append(slice(begin, begin + max(0, last - first) * s, s))
            yield (Ellipsis, *there), (Ellipsis, *here)

    def insert_gaps(self, xp: Any, y: Any) -> Any:
        """Return outputs (n, o, …) as (o, columns), with zeros for the elements between the rows of the flat layout."""
        y = xp.swapaxes(y, 0, 1)
        if self.rows == self.out:
            return y.reshape(y.shape[0], -1)
        padded = xp.zeros((*y.shape[:2], *self.rows), dtype=y.dtype)
        padded[self.crop] = y
        return padded.reshape(y.shape[0], -1)

    def input_positions(self) -> np.ndarray:
        """Return the input position of each (kernel position, output position), -1 in the padding."""
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


def convolve(xp: Any, x: Any, w: Any, bias: Any, plan: Plan, groups: int) -> Any:
    """Convolve (n, c, …) with (o, c / groups, …) to (n, o, …)."""
    (n, c), o = x.shape[:2], w.shape[0]
    y = xp.empty((n, o, *plan.out), dtype=x.dtype)
    if plan.is_pointwise or has_special_values(xp, w):
        if plan.is_pointwise:
            images, into = (flat_images(split_groups(z, groups)) for z in (x, y))
            xp.matmul(split_filters(w, groups)[..., 0], images, out=into)
        else:
            y[...] = 0
            convolve_by_taps(x, w, y, plan, groups)
        if bias is not None:
            y += bias.reshape(-1, *(1,) * len(plan.out))
        return y
    w = w.reshape(groups, o // groups, c // groups * len(plan.taps))
    for part in plan.chunks(n, c, x.itemsize) if y.size else ():
        flat, images = plan.flatten(xp, x[part]), part.stop - part.start
        result = xp.empty((groups, o // groups, images * plan.run), dtype=x.dtype)
        for a, b in plan.ranges(images, c, x.itemsize):
            columns = plan.columns(xp, flat, images, a, b)
            xp.matmul(w, columns.reshape(groups, -1, b - a), out=result[..., a:b])
        if bias is not None:
            result += bias.reshape(groups, o // groups, 1)
        xp.swapaxes(y[part], 0, 1)[...] = result.reshape(o, images, *plan.rows)[plan.crop]
    return y


def convolve_transposed(xp: Any, y: Any, w: Any, plan: Plan, groups: int) -> Any:
    """Map (n, o, …) and (o, c / groups, …) to (n, c, …) by adding each column back to where it was copied from.

    With stride 1 this is a convolution of y with the flipped kernel, which is quicker unless y has many more channels.
    """
    (n, o), c = y.shape[:2], w.shape[1] * groups
    if plan.adjoint is not None and o <= 2 * c:
        w = xp.swapaxes(w.reshape(groups, o // groups, c // groups, -1)[..., ::-1], 1, 2)
        return convolve(xp, y, w.reshape(c, o // groups, *plan.kernel), None, plan.adjoint, groups)
    if has_special_values(xp, w):
        x = np.zeros((n, c, *plan.size), y.dtype)
        convolve_by_taps(y, w, x, plan, groups, transposed=True)
        return x
    x = (xp.empty if plan.covers_image else xp.zeros)((n, c, *plan.size), dtype=y.dtype)
    w = w.reshape(groups, o // groups, c // groups * len(plan.taps)).mT
    for part in plan.chunks(n, c, y.itemsize) if x.size else ():
        rows, images = plan.insert_gaps(xp, y[part]).reshape(groups, o // groups, -1), part.stop - part.start
        flat, padded = plan.make_flat(xp, c, images, y.dtype)
        for a, b in plan.ranges(images, c, y.itemsize):
            columns = xp.matmul(w, rows[..., a:b]).reshape(c, len(plan.taps), b - a)
            for k in range(len(plan.taps)):
                runs = plan.runs(flat, images, k, a, b)
                runs += columns[:, k].reshape(runs.shape)
        image = xp.swapaxes(x[part], 0, 1)
        for there, here in plan.fills:
            image[here] = padded[there]
    return x


def correlate(xp: Any, x: Any, y: Any, plan: Plan, groups: int) -> Any:
    """Correlate (n, c, …) with (n, o, …) to (o, c / groups, …)."""
    (n, c), o = x.shape[:2], y.shape[1]
    sums = xp.zeros((groups, o // groups, c // groups * len(plan.taps)), dtype=x.dtype)
    if plan.is_pointwise:
        x, y = (flat_images(split_groups(z, groups)) for z in (x, y))
        return (y @ x.mT).sum(axis=0).reshape(o, c // groups, *plan.kernel)
    for part in plan.chunks(n, c, x.itemsize) if y.size and x.size else ():
        flat, images = plan.flatten(xp, x[part]), part.stop - part.start
        rows = plan.insert_gaps(xp, y[part]).reshape(groups, o // groups, -1)
        for a, b in plan.ranges(images, c, x.itemsize):
            columns = plan.columns(xp, flat, images, a, b).reshape(groups, -1, b - a)
            sums += rows[..., a:b] @ columns.mT
    sums = sums.reshape(o, c // groups, *plan.kernel)
    if has_special_values(xp, sums):
        by_group, x, y = split_filters(sums, groups), split_groups(x, groups), split_groups(y, groups)
        for k, (there, here) in enumerate(plan.windows()):
            by_group[..., k] = (flat_images(y[there]) @ flat_images(x[here]).mT).sum(axis=0)
    return sums


def convolve_by_taps(given: Any, w: Any, result: Any, plan: Plan, groups: int, transposed: bool = False) -> None:
    """Add the convolution, or the transposed one, of `given` with w to `result`, only from the products that exist."""
    given, result, w = split_groups(given, groups), split_groups(result, groups), split_filters(w, groups)
    for k, (there, here) in enumerate(plan.windows()):
        into, source = (here, there) if transposed else (there, here)
        part = result[into]
        part += ((w[..., k].mT if transposed else w[..., k]) @ flat_images(given[source])).reshape(part.shape)


def has_special_values(xp: Any, x: Any) -> bool:
    """Return True if a NumPy array has an infinite element or NaN, or if its sum overflows."""
    return xp is np and not np.isfinite(total(np, x, tuple(range(-x.ndim, 0))))


def split_groups(x: Any, groups: int) -> Any:
    """Return (n, c, …) as (n, groups, c / groups, …), a view if it is contiguous."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def split_filters(w: Any, groups: int) -> Any:
    """Return (o, c / groups, …) as (groups, o / groups, c / groups, kernel positions), a view if it is contiguous."""
    return w.reshape(groups, w.shape[0] // groups, w.shape[1], prod(w.shape[2:]))


def flat_images(x: Any) -> Any:
    """Return (n, groups, c / groups, …) with one axis for the positions."""
    return x.reshape(*x.shape[:3], prod(x.shape[3:]))


# ----------------------------------------------------------------------------------------------------------- batch axes
def fold_batch(xp: Any, x: Any, rank: int, axis: int, groups: int) -> tuple[Any, Ints]:
    """Fold the leading batch axes into one axis, within each of its groups. Return the result and the batch shape."""
    lead, own = x.shape[:-rank], x.shape[-rank:]
    if not lead:
        return x, lead
    x = x.reshape(prod(lead), *own[:axis], groups, own[axis] // groups, *own[axis + 1 :])
    return xp.moveaxis(x, 0, axis + 1).reshape(*own[:axis], prod(lead) * own[axis], *own[axis + 1 :]), lead


def unfold_batch(xp: Any, x: Any, lead: Ints, axis: int, groups: int) -> Any:
    """Move the batch axes out of an axis again: the inverse of `fold_batch`."""
    if not lead:
        return x
    own, b = x.shape, prod(lead)
    each = own[axis] // (groups * b)
    x = x.reshape(*own[:axis], groups, b, each, *own[axis + 1 :])
    return xp.moveaxis(x, axis + 1, 0).reshape(*lead, *own[:axis], groups * each, *own[axis + 1 :])


def run_on_batches(
    xp: Any,
    run: Any,
    a: Any,
    b: Any,
    rank: int,
    axes: tuple[tuple[int, int], tuple[int, int]],
    into: tuple[tuple[int, int], tuple[int, int]],
) -> Any:
    """Return run(a, b) for arguments that may have leading batch axes.

    The batch axes of each argument are folded into one of its own axes, given in `axes` as (axis, groups), and appear in the
    axis of the result given in `into`. If both have batch axes, these are the same batch, and its elements are run one by one.
    """
    if a.ndim > rank and b.ndim > rank:
        lead = np.broadcast_shapes(a.shape[:-rank], b.shape[:-rank])
        pairs = [xp.broadcast_to(z, lead + z.shape[-rank:]).reshape(-1, *z.shape[-rank:]) for z in (a, b)]
        if not prod(lead):
            return xp.zeros(lead + run(*(xp.zeros(z.shape[-rank:], dtype=z.dtype) for z in (a, b))).shape, dtype=a.dtype)
        result = xp.stack([run(one, other) for one, other in zip(*pairs, strict=True)])
        return result.reshape(*lead, *result.shape[1:])
    a, lead_a = fold_batch(xp, a, rank, *axes[0])
    b, lead_b = fold_batch(xp, b, rank, *axes[1])
    return unfold_batch(xp, unfold_batch(xp, run(a, b), lead_a, *into[0]), lead_b, *into[1])


def conv_forward(xp: Namespace, x: Array, w: Array, *, plan: Plan, groups: int) -> Array:
    return run_on_batches(
        xp, lambda x, w: convolve(xp, x, w, None, plan, groups), x, w, plan.rank, ((0, 1), (0, groups)), ((0, 1), (1, groups))
    )


def conv_input_forward(xp: Namespace, y: Array, w: Array, *, plan: Plan, groups: int) -> Array:
    return run_on_batches(
        xp, lambda y, w: convolve_transposed(xp, y, w, plan, groups), y, w, plan.rank, ((0, 1), (1, 1)), ((0, 1), (1, groups))
    )


def conv_weight_forward(xp: Namespace, x: Array, y: Array, *, plan: Plan, groups: int) -> Array:
    return run_on_batches(
        xp, lambda x, y: correlate(xp, x, y, plan, groups), x, y, plan.rank, ((1, groups), (1, groups)), ((1, 1), (0, groups))
    )


def conv_bias_forward(xp: Namespace, x: Array, w: Array, bias: Array, *, plan: Plan, groups: int, transposed: bool) -> Array:
    if not transposed:
        return convolve(xp, x, w, bias, plan, groups)
    result = convolve_transposed(xp, x, w, plan, groups)
    result += bias.reshape(-1, *(1,) * (plan.rank - 2))
    return result


# ------------------------------------------------------------------------------------------------------------- sparsity
def conv_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: y[n, o, p] reads one input position of the group's channels per kernel position, or one position of filter o."""
    at, groups, (images, o) = meta["plan"].input_positions(), meta["groups"], out_shape[:2]
    if arg == "w":
        merged = np.broadcast_to(number_elements((o, 1, len(at))), (o, x_shape[1], len(at)))
        return [
            (merged, np.broadcast_to(np.where(place >= 0, np.arange(o)[:, None] * len(at) + k, -1), (images, o, place.size)))
            for k, place in enumerate(at)
        ]
    merged, first = number_group_positions(images, x_shape[1], groups, prod(x_shape[2:]))
    return [(merged, np.where(place >= 0, first[:, np.arange(o) // (o // groups), None] + place, -1)) for place in at]


def conv_input_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: x[n, c, q] reads, per kernel position, the one output position of the group's channels that reads q there."""
    at, groups, (images, c) = meta["plan"].input_positions(), meta["groups"], out_shape[:2]
    size = prod(out_shape[2:])
    back = np.full((len(at), size + 1), -1)
    for place, positions in zip(back, at, strict=True):
        place[positions] = np.arange(positions.size)
    back, group = back[:, :size], np.arange(c) // (c // groups)
    if arg == "w":
        each = c // groups
        merged = np.broadcast_to(number_elements((groups, 1, each, len(at))), (groups, x_shape[0] // groups, each, len(at)))
        return [
            (merged, np.broadcast_to(np.where(place >= 0, np.arange(c)[:, None] * len(at) + k, -1), (images, c, size)))
            for k, place in enumerate(back)
        ]
    merged, first = number_group_positions(images, x_shape[1], groups, prod(x_shape[2:]))
    return [(merged, np.where(place >= 0, first[:, group, None] + place, -1)) for place in back]


def conv_weight_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: w[o, c, k] reads, for each output position of all images, the input position at k, or that output itself."""
    at, groups, (o, each) = meta["plan"].input_positions(), meta["groups"], out_shape[:2]
    size = prod(x_shape[2:])
    merged = np.broadcast_to(number_elements(x_shape[1:]), x_shape)
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


def number_group_positions(images: int, channels: int, groups: int, size: int) -> tuple[Array, Array]:
    """Number the positions of each image and group (channels share numbers), and return the first number of each."""
    merged = np.broadcast_to(number_elements((images, groups, 1, size)), (images, groups, channels // groups, size))
    return merged, number_elements((images, groups)) * size


# ------------------------------------------------------------------------------------------------------------- primitives
DOUBLE_BACKWARD_NODE = "ConvolutionBackwardBackward0"

conv = bilinear(
    "conv",
    conv_forward,
    reads=conv_reads,
    node="ConvolutionBackward0",
    tex=r"{x} \star {w}",
    formula=r"\bar{x} = \bar{y} \star^{\top} w,\quad \bar{w} = x \star \bar{y}",
    x=lambda g, w, plan, groups: conv_input(g, w, plan=plan, groups=groups),
    w=lambda g, x, plan, groups: conv_weight(x, g, plan=plan, groups=groups),
    properties=Properties(product="layer", channels_first=True, short_name="convolution"),
)
conv_input: Primitive = bilinear(
    "conv_input",
    conv_input_forward,
    reads=conv_input_reads,
    node=DOUBLE_BACKWARD_NODE,
    tex=r"{y} \star^{{\top}} {w}",
    formula=r"\bar{y} = \bar{x} \star w,\quad \bar{w} = \bar{x} \star y",
    y=lambda g, w, plan, groups: conv(g, w, plan=plan, groups=groups),
    w=lambda g, y, plan, groups: conv_weight(g, y, plan=plan, groups=groups),
    properties=Properties(product="layer"),
)
conv_weight: Primitive = bilinear(
    "conv_weight",
    conv_weight_forward,
    reads=conv_weight_reads,
    node=DOUBLE_BACKWARD_NODE,
    tex=r"{x} \star {y}",
    formula=r"\bar{x} = y \star^{\top} \bar{w},\quad \bar{y} = x \star \bar{w}",
    x=lambda g, y, plan, groups: conv_input(y, g, plan=plan, groups=groups),
    y=lambda g, x, plan, groups: conv(x, g, plan=plan, groups=groups),
    properties=Properties(product="layer"),
)
conv_transpose = conv_input.with_node("ConvolutionBackward0")


def sum_per_channel(xp: Namespace, g: Array, plan: Plan) -> Array:
    """Sum over all axes except the channels."""
    return total(xp, g, (-plan.rank, *range(2 - plan.rank, 0)))


def weight_cotangent(x: Array, y: Array, plan: Plan, groups: int, transposed: bool) -> Array:
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
        "w": lambda g, x, plan, groups, transposed: weight_cotangent(x, g, plan, groups, transposed),
        "bias": sum_per_channel,
    },
    jvp={
        "x": lambda t, w, plan, groups, transposed: DIRECT[transposed](t, w, plan=plan, groups=groups),
        "w": lambda t, x, plan, groups, transposed: DIRECT[transposed](x, t, plan=plan, groups=groups),
        "bias": lambda t, plan: t[(Ellipsis, None, slice(None), *(None,) * (plan.rank - 2))],
    },
    promote="single",
    properties=Properties(product="layer", addend=2, channels_first=True, short_name="convolution"),
)
