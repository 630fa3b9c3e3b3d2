"""Windows of pooling: PyTorch's checks, and the number of windows. Inputs are (N, C, …) or, unbatched, (C, …).

As in torch's graphs, pooling over one axis is pooling over two, where the first has length 1 (`with_extra_axis`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradlab.core.errors import wrong_type
from gradlab.core.tensor import Tensor
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules.resampling import AxisMap, adaptive_map

Sizes = int | tuple[int, ...] | list[int]
OutputSizes = int | tuple[int | None, ...] | list[int | None] | None  # None keeps the length of the input


# ----------------------------------------------------------------------------------------------------------------- shared
def check_tensor(function: str, x: Any, argument: str = "input", position: int = 1) -> None:
    if type(x) is not Tensor and not isinstance(x, Tensor):
        raise wrong_type(function, argument, position, "Tensor", x)


def with_extra_axis(function: Callable[[Tensor], Any], input: Tensor) -> Any:
    """Apply a function of two axes to the last one only."""
    result = function(unsqueeze(input, -2))
    if isinstance(result, tuple):
        return squeeze(result[0], -2), squeeze(result[1], -2)
    return squeeze(result, -2)


def single(name: str, value: Any, function: str = "max_pool1d") -> int:
    """Return a number that may be given as a list of length 1."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise RuntimeError(
                f"{function}() {name} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}"
            )
        value = value[0]
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, not {type(value).__name__}")
    return value.__index__()


def not_implemented_error(kernel: str, input: Tensor) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.word}'. Call .float() first.")


COUNTS = {2: "two", 3: "three"}
POSITIONS = {"kernel_size": 2, "stride": 3, "padding": 4, "dilation": 5}


def one_per_axis(function: str, name: str, value: Any, n: int) -> tuple[int, ...]:
    """Return one number for each axis. Raise PyTorch's error for another length."""
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
    """Return the kernel size, stride and padding for each axis."""
    k = one_per_axis(name, "kernel_size", kernel_size, n)
    s = k if stride is None or (isinstance(stride, (tuple, list)) and not stride) else one_per_axis(name, "stride", stride, n)
    return k, s, one_per_axis(name, "padding", padding, n)


def pooled_length(length: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """Return the number of windows along an axis.

    With `ceil_mode` the last may extend past the end, but must start in the input or in the left padding.
    """
    out = (length + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= length + p else out


def pooled_shape(input: Tensor, n: int, k: Any, s: Any, p: Any, d: Any, ceil_mode: bool) -> tuple[int, ...]:
    """Run PyTorch's checks of a window. Return the number of windows along each axis."""
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
            f"{list(shape)}. Use unsqueeze to add an axis."
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
    """Run PyTorch's checks of a pooling over one axis. Return the output size."""
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
    """Return the windows of an adaptive pooling, and their lengths along each axis."""
    check_tensor(name, input)
    shape = input.array.shape
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(sizes) != n:
        raise RuntimeError(f"{name}: output_size must be {n}")
    sizes = tuple([length if size is None else int(size) for size, length in zip(sizes, shape[-n:], strict=False)])
    if len(shape) not in (n + 1, n + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(shape)}. Use unsqueeze to add an axis."
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
        raise not_implemented_error(name, input)
    maps, lengths = zip(*[adaptive_map(length, size) for length, size in zip(shape[-n:], sizes, strict=True)], strict=True)
    return maps, list(lengths)
