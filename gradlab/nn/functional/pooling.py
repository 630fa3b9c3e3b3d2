"""Pooling, as `torch.nn.functional` spells it. Inputs are (N, C, …) or, unbatched, (C, …).

As in torch's graphs, a pooling over one axis is one over two of which the first has length 1 (`with_one_more`), and an
adaptive average of all is a mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf, prod
from typing import Any

import numpy as np

from gradlab.backend.bounds import within
from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import expected
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import abs, mul, relu, sign
from gradlab.ops.copies import in_order
from gradlab.ops.reductions import mean
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules.indexing import masked_fill, places, put_along
from gradlab.rules.pooling import max_places, max_pool
from gradlab.rules.resampling import AxisMap, adaptive_map, remap, window_map
from gradlab.rules.shapes import reshape

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
]

Sizes = int | tuple[int, ...] | list[int]
MAX = {2: max_pool, 3: max_pool.named("MaxPool3DWithIndicesBackward0")}
ADAPTIVE_MAX = max_pool.named("AdaptiveMaxPool2DBackward0")
AVERAGE = {n: remap.named(f"AvgPool{n}DBackward0") for n in (2, 3)}
ADAPTIVE_AVERAGE = {n: remap.named(f"AdaptiveAvgPool{n}DBackward0") for n in (2, 3)}
for _op in (*AVERAGE.values(), *ADAPTIVE_AVERAGE.values()):
    _op.tex = r"\mathrm{{avgpool}}({x})"
UNPOOL, UNPOOLED = put_along, reshape.named("MaxUnpool2DBackward0", view=False)


# ------------------------------------------------------------------------------------------------------------------ maxima
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of the last axis: (N, C, L) to (N, C, L'). stride=None is the kernel's size."""
    check_tensor("max_pool1d", input)
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(input.array.shape)}. unsqueeze adds an axis."
        )
    k, s, p, d = (
        single(name, value)
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
            ("dilation", dilation),
        )
    )
    for name, value in (("kernel_size", k), ("stride", s)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}")
    if d <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {d}")
    if (out := pooled_length(input.array.shape[-1], k, s, p, d, ceil_mode)) <= 0:
        raise RuntimeError(
            f"max_pool1d() Invalid computed output size: {out}. The kernel does not fit into the input, of length "
            f"{input.array.shape[-1]}."
        )
    if input.array.dtype.kind != "f":
        raise refused("max_pool1d_impl", input)
    return with_one_more(lambda x: max_pool2d(x, (1, k), (1, s), (0, p), (1, d), ceil_mode, return_indices), input)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of the last two axes: (N, C, H, W) to (N, C, H', W').

    H' = (H + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1 (rounded up in ceil_mode); stride=None is the
    kernel's size. With return_indices also where in its (H, W) plane each maximum is. Of equal elements, the first is the
    maximum, and gets the gradient.
    """
    return max_over_windows(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The greatest element of each window of the last three axes: (N, C, D, H, W) to (N, C, D', H', W')."""
    return max_over_windows(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_over_windows(
    n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    name = f"max_pool{n}d"
    check_tensor(name, input)
    shape = input.array.shape
    k, s, p = window(name, n, kernel_size, stride, padding)
    d = several(name, "dilation", dilation, n)
    out = pooled_shape(input, n, k, s, p, d, ceil_mode)
    if input.array.dtype.kind == "b":
        raise refused(name, input)
    maps = tuple([window_map(*axis) for axis in zip(shape[-n:], out, k, s, p, d, strict=True)])
    return maxima(MAX[n], input, maps, return_indices)


def maxima(op: Any, input: Tensor, maps: tuple[AxisMap, ...], return_indices: bool) -> Any:
    made = in_order(op.record(input, maps=maps))
    if not return_indices:
        return made
    return made, constant(max_places(namespace_of[type(input.array)], input.array, maps).reshape(made.array.shape))


def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The greatest element of each of `output_size` windows that share the last axis: (N, C, L) to (N, C, output_size)."""
    size = adaptive_single("adaptive_max_pool1d", input, output_size)
    return with_one_more(lambda x: adaptive_max_pool2d(x, (1, size), return_indices), input)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest element of each of output_size windows that share the last two axes (None: the axis as it is)."""
    maps, _ = adaptive("adaptive_max_pool2d", 2, input, output_size)
    return maxima(ADAPTIVE_MAX, input, maps, return_indices)


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Tensor:
    """What `max_pool1d(return_indices=True)` came from, with zeros for all but the maxima."""
    k, s, p = (
        single(n, v)
        for n, v in (("kernel_size", kernel_size), ("stride", kernel_size if stride is None else stride), ("padding", padding))
    )
    size = unpooled_shape(input.array.shape[-1:], (k,), (s,), (p,), output_size)
    flat = unpool(unsqueeze(input, -2), constant(indices.array[..., None, :]), (1, *size))
    return squeeze(flat, -2)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Tensor:
    """What `max_pool2d(return_indices=True)` came from, with zeros for all but the maxima; output_size says which of the shapes
    that pool to the input's is meant."""
    k, s, p = (
        several("max_unpool2d", name, value, 2)
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
        )
    )
    return unpool(input, indices, unpooled_shape(input.array.shape[-2:], k, s, p, output_size))


def unpooled_shape(shape: tuple[int, ...], k: Any, s: Any, p: Any, output_size: Any) -> tuple[int, ...]:
    plain = [(n - 1) * step - 2 * pad + kernel for n, kernel, step, pad in zip(shape, k, s, p, strict=True)]
    if output_size is None:
        return tuple(plain)
    size = tuple(output_size)[-len(plain) :]
    for axis, (n, usual, step) in enumerate(zip(size, plain, s, strict=True)):
        if not usual - step < n < usual + step:
            raise ValueError(f'invalid output_size "{size}" (dim {axis} must be between {usual - step} and {usual + step})')
    return tuple([int(n) for n in size])


def unpool(input: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Zeros of `size` planes with the input at the indices."""
    check_tensor("max_unpool2d", input)
    check_tensor("max_unpool2d", indices, "indices", 2)
    shape = input.array.shape
    if indices.array.dtype != np.int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices.dtype.word}. They are what max_pool "
            "gives with return_indices=True."
        )
    if indices.array.shape != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices "
            f"tensor with shape: {list(indices.array.shape)}"
        )
    within(
        "max_unpool",
        indices.array,
        0,
        prod(size) - 1,
        lambda wrong: RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})"
        ),
    )
    front = shape[: -len(size)]
    rows, whole = reshape.record(input, shape=(*front, prod(shape[-len(size) :]))), (*front, prod(size))
    at = indices.array.reshape(rows.array.shape)
    xp, hidden = namespace_of[type(at)], overwritten(at, whole)
    if xp is not np or hidden.any():  # (a GPU is not waited for)
        rows = masked_fill.record(rows, mask=hidden, value=0)
    placed = put_along.record(rows, shape=whole, axis=-1, indices=at, keepdims=True)
    return UNPOOLED.record(placed, shape=(*front, *size))


def overwritten(at: Any, shape: tuple[int, ...]) -> Any:
    """Of elements written one after the other to the places `at` along the last axis of an array of `shape`: whether a later one
    is written to the same place."""
    xp = namespace_of[type(at)]
    numbers, last = xp.broadcast_to(xp.arange(at.shape[-1]), at.shape), xp.zeros(shape, dtype=np.int64)
    np.put_along_axis(last, at, numbers, axis=-1) if xp is np else last.put(places(xp, shape, -1, at), numbers)
    return xp.take_along_axis(last, at, axis=-1) != numbers


# ---------------------------------------------------------------------------------------------------------------- averages
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last axis: (N, C, L) to (N, C, L')."""
    check_tensor("avg_pool1d", input)
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.array.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for avg_pool1d)"
        )
    k, s, p = (
        single(name, value, "avg_pool1d")
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
        )
    )
    return with_one_more(lambda x: avg_pool2d(x, (1, k), (1, s), (0, p), ceil_mode, count_include_pad), input)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of the last two axes: (N, C, H, W) to (N, C, H', W').

    Zeros of the padding count in the mean unless count_include_pad=False; divisor_override divides the sums instead.
    """
    return mean_over_windows(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of the last three axes: (N, C, D, H, W) to (N, C, D', H', W')."""
    return mean_over_windows(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def mean_over_windows(
    n: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    name = f"avg_pool{n}d"
    check_tensor(name, input)
    shape = input.array.shape
    k, s, p = window(name, n, kernel_size, stride, padding)
    if input.array.ndim <= n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(len(shape), 1)}, "
            f"{max(len(shape), 1) - 1}], but got {-n - 1}). The input needs {n + 1} axes, or {n + 2} with a batch; "
            "unsqueeze adds one."
        )
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    out = pooled_shape(input, n, k, s, p, (1,) * n, ceil_mode)
    maps = tuple([window_map(*axis) for axis in zip(shape[-n:], out, k, s, p, strict=True)])
    over = (
        float(divisor_override)
        if divisor_override is not None
        else divisors([window_lengths(*axis, count_include_pad) for axis in zip(shape[-n:], out, k, s, p, strict=True)])
    )
    if input.array.dtype.kind in "ui":  # torch's integer averages are rounded to zero
        sums = AVERAGE[n].record(input, maps=maps, over=None, first=False, fill=0).array
        xp = namespace_of[type(sums)]
        return constant(xp.trunc(sums / xp.asarray(over)).astype(sums.dtype))
    return in_order(AVERAGE[n].record(input, maps=maps, over=over, first=False, fill=0))


def window_lengths(length: int, out: int, k: int, s: int, p: int, count_include_pad: bool) -> np.ndarray:
    """How many elements each window counts along an axis."""
    starts = np.arange(out) * s - p
    stops = np.minimum(starts + k, length + p)
    return stops - starts if count_include_pad else np.minimum(stops, length) - np.maximum(starts, 0)


def divisors(lengths: list[np.ndarray]) -> Any:
    """The product of the windows' lengths along the axes; one number if they are all alike."""
    if all((row == row[0]).all() for row in lengths if row.size):
        return float(prod([int(row[0]) for row in lengths if row.size]))
    return reduce(np.multiply, np.ix_(*lengths)).astype(float)


def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """The means of `output_size` windows that share the last axis: (N, C, L) to (N, C, output_size)."""
    size = adaptive_single("adaptive_avg_pool1d", input, output_size)
    return with_one_more(lambda x: adaptive_avg_pool2d(x, (1, size)), input)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size windows that share the last two axes (None: the axis as it is)."""
    return adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size windows that share the last three axes (None: the axis as it is)."""
    return adaptive_mean("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_mean(name: str, n: int, input: Tensor, output_size: Any) -> Tensor:
    maps, lengths = adaptive(name, n, input, output_size)
    if all(m.index.shape[1] == 1 for m in maps):
        return mean(input, tuple(range(-n, 0)), True)
    return in_order(ADAPTIVE_AVERAGE[n].record(input, maps=maps, over=divisors(lengths), first=False, fill=0))


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of the last axis."""
    k = single("kernel_size", kernel_size, "lp_pool1d")
    if norm_type in (inf, -inf):
        return extreme_pool(max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)
    powers = avg_pool1d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return mul(mul(sign(powers), relu(abs(powers))), k) ** (1.0 / norm_type)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of each window of the last two axes."""
    k = several("lp_pool2d", "kernel_size", kernel_size, 2)
    if norm_type in (inf, -inf):
        return extreme_pool(max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)
    powers = avg_pool2d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return mul(mul(sign(powers), relu(abs(powers))), prod(k)) ** (1.0 / norm_type)


def extreme_pool(
    pool: Callable[..., Any], input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    """The greatest magnitude in each window for the norm ∞, the smallest for -∞."""
    if norm_type > 0:
        return pool(abs(input), kernel_size, stride, 0, 1, ceil_mode)
    return -pool(-abs(input), kernel_size, stride, 0, 1, ceil_mode)


# ----------------------------------------------------------------------------------------------------------------- shared
def check_tensor(function: str, x: Any, argument: str = "input", position: int = 1) -> None:
    if type(x) is not Tensor and not isinstance(x, Tensor):
        raise expected(function, argument, position, "Tensor", x)


def with_one_more(function: Callable[[Tensor], Any], input: Tensor) -> Any:
    """A function of two axes on the last one alone."""
    made = function(unsqueeze(input, -2))
    if isinstance(made, tuple):
        return squeeze(made[0], -2), squeeze(made[1], -2)
    return squeeze(made, -2)


def single(name: str, value: Any, function: str = "max_pool1d") -> int:
    """A number that may come in a list of one."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise RuntimeError(
                f"{function}() {name} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}"
            )
        value = value[0]
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, not {type(value).__name__}")
    return value.__index__()


def refused(kernel: str, input: Tensor) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.word}'. Call .float() first.")


COUNTS = {2: "two", 3: "three"}
POSITIONS = {"kernel_size": 2, "stride": 3, "padding": 4, "dilation": 5}


def several(function: str, name: str, value: Any, n: int) -> tuple[int, ...]:
    """One number for each axis, or torch's error."""
    if type(value) is int:
        return (value,) * n
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not all(hasattr(v, "__index__") for v in values):
        raise TypeError(
            f"{function}(): argument '{name}' (position {POSITIONS[name]}) must be tuple of ints, not {type(values[0]).__name__}"
        )
    if len(values) not in (1, n):
        omitted = "be omitted, " if name == "stride" else "be "
        raise RuntimeError(f"{function}: {name} must either {omitted}a single int, or a tuple of {COUNTS[n]} ints")
    whole = tuple([v.__index__() for v in values])
    return whole * n if len(whole) == 1 else whole


def window(name: str, n: int, kernel_size: Any, stride: Any, padding: Any) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride and padding for each axis."""
    k = several(name, "kernel_size", kernel_size, n)
    s = k if stride is None or (isinstance(stride, (tuple, list)) and not stride) else several(name, "stride", stride, n)
    return k, s, several(name, "padding", padding, n)


def pooled_length(length: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """How many windows there are along an axis; in ceil_mode the last may hang over, but starts inside or in the left padding."""
    out = (length + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= length + p else out


def pooled_shape(input: Tensor, n: int, k: Any, s: Any, p: Any, d: Any, ceil_mode: bool) -> tuple[int, ...]:
    """Torch's checks of a window, and how many of them there are along each axis."""
    shape = input.array.shape
    letters = "DHW"[3 - n :]
    if min(s) == 0 or min(k) == 0:
        raise RuntimeError("stride should not be zero")
    if min(k) < 0 or min(s) < 0:
        raise RuntimeError(f"kernel size and stride should be greater than zero, but got {k} and {s}")
    if min(d) <= 0:
        raise RuntimeError(
            "dilation should be greater than zero, but got "
            + " ".join(f"dilation{a}: {v}" for a, v in zip(letters, d, strict=True))
        )
    for kernel, pad, step in zip(k, p, d, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (step * (kernel - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} "
                f"and dilation={step}"
            )
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input. Got one of shape "
            f"{list(shape)}; unsqueeze adds an axis."
        )
    if not prod(shape[-n - 1 :]):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(shape)}"
        )
    out = tuple([pooled_length(*axis, ceil_mode) for axis in zip(shape[-n:], k, s, p, d, strict=True)])
    if min(out) < 1:
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, shape[-n - 1 :]))}). Calculated output size: "
            f"({'x'.join(map(str, (shape[-n - 1], *out)))}). Output size is too small"
        )
    return out


def adaptive_single(name: str, input: Any, output_size: Any) -> int:
    """Torch's checks of a pooling over one axis, and the one size."""
    check_tensor(name, input)
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,)
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.array.ndim}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {name})"
        )
    if len(sizes) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(sizes)})")
    return input.array.shape[-1] if sizes[0] is None else int(sizes[0])


def adaptive(name: str, n: int, input: Any, output_size: Any) -> tuple[tuple[AxisMap, ...], list[np.ndarray]]:
    """The windows of an adaptive pooling, and how long they are along each axis."""
    check_tensor(name, input)
    shape = input.array.shape
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(sizes) != n:
        raise RuntimeError(f"{name}: output_size must be {n}")
    sizes = tuple([length if size is None else int(size) for size, length in zip(sizes, shape[-n:], strict=False)])
    if len(shape) not in (n + 1, n + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(shape)}. unsqueeze adds an axis."
        )
    if min(sizes) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{', '.join(map(str, sizes))}}}"
        )
    for axis in range(len(shape) - n, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )
    if input.array.dtype.kind != "f":
        raise refused(name, input)
    maps, lengths = zip(*[adaptive_map(length, size) for length, size in zip(shape[-n:], sizes, strict=True)], strict=True)
    return maps, list(lengths)
