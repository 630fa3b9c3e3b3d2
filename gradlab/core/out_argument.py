"""Copy results into a tensor that the caller passes as `out=`.

The result is complete before it is copied, so memory shared with an argument would do no harm here. PyTorch writes while it
reads and refuses arguments that overlap `out`, so gradlab refuses them too. A destination whose elements share memory is always
refused, since the last write would overwrite the others.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gradlab.backend.namespaces import address, is_writable
from gradlab.core.devices import different_devices
from gradlab.core.dtypes import CATEGORY_OF_KIND
from gradlab.core.errors import advice, overlapping_memory
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.observers import OBSERVERS, notify_before_write
from gradlab.core.ports import replace_array
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def copy_to_out(name: str, out: Any, result: Tensor, inputs: Iterable[Any] = (), disjoint: bool = False) -> Tensor:
    """Copy `result` into `out`, resizing `out` if its shape differs, and return `out`. No gradient passes.

    A tensor among `inputs` must not overlap `out` partly. It may be `out` itself, unless `disjoint` is True.
    """
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not is_writable(out.array):
        raise overlapping_memory()
    if any(isinstance(x, Tensor) and arrays_overlap(x.array, out.array, disjoint) for x in inputs):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )
    if mode.grad and (result.node is not None or out.node is not None):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. " + advice("Omit out=, or compute inside `with gradlab.no_grad():`.")
        )
    if OBSERVERS and any(getattr(x, "_tangent", None) is not None for x in (result, out)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. Omit out=."
        )
    if CATEGORY_OF_KIND[result.array.dtype.kind] > CATEGORY_OF_KIND[out.array.dtype.kind]:
        raise RuntimeError(
            f"result type {result.dtype.word} can't be cast to the desired output type {out.dtype.word}. "
            + advice(f"Pass an out= of dtype {result.dtype}.")
        )
    if type(out.array) is not type(result.array):
        raise different_devices(name, (result.array, out.array))
    if OBSERVERS:
        notify_before_write(out)
    if out.array.shape == result.array.shape:
        call_quietly(out.array.__setitem__, ..., result.array)
    else:
        if out.array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which does not "
                f"match the required output shape {list(result.array.shape)}. This behavior is deprecated, and in a future "
                "release outputs will not be resized unless they have zero elements.",
                UserWarning,
                stacklevel=3,
            )
        replace_array(out, call_quietly(result.array.astype, out.array.dtype))
    mark_written(out)
    filled: Tensor = out
    return filled


def arrays_overlap(x: Any, out: Any, disjoint: bool) -> bool:
    """Return True if two arrays share a part of their memory or, with `disjoint`, any of it.

    As in PyTorch, only arrays without gaps are checked.
    """
    if type(x) is not type(out) or not x.size or not out.size or not (is_dense(x) and is_dense(out)):
        return False
    first, second = address(x), address(out)
    if first == second and x.nbytes == out.nbytes and x.strides == out.strides:
        return disjoint
    return bool(first < second + out.nbytes and second < first + x.nbytes)


def is_dense(x: Any) -> bool:
    """Return True if the elements fill their memory without gaps, in some order of the axes."""
    length = x.itemsize
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride != length:
            return False
        length *= n
    return True


def takes_out(function: F, disjoint_from: int | None = None) -> F:
    """Add the keyword `out` to a function of tensors: a tensor, or a tuple if the function returns several.

    The arguments from number `disjoint_from` on must not share memory with `out`.
    """

    @functools.wraps(function)
    def with_out(*args: Any, out: Any = None, **options: Any) -> Any:
        result = function(*args, **options)
        if out is None:
            return result
        if isinstance(result, tuple):
            return type(result)(copy_to_out(function.__name__, o, m) for o, m in zip(out, result, strict=True))
        first = disjoint_from
        inputs = () if first is None else (*args[first:], *(x for name, x in options.items() if not first or name != "input"))
        return copy_to_out(function.__name__, out, result, inputs, True)

    return with_out  # type: ignore[return-value]


takes_disjoint_out = functools.partial(takes_out, disjoint_from=0)  # for functions whose outputs depend on other positions
