"""`out=`: a result copied into a tensor that the caller provides.

The result is complete before it is copied, so that memory shared with an argument does no harm; but torch writes as it reads, and
refuses what would then be read after it was written: a program that does so is refused here as well. What is refused always is
a destination whose elements share places of memory: the last one written would stand for all.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gradlab.backend.namespaces import address, is_writable
from gradlab.core.devices import different_devices
from gradlab.core.dtypes import CATEGORY
from gradlab.core.errors import advice, shared_place
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import quietly
from gradlab.core.observers import OBSERVERS, notify_before_write
from gradlab.core.ports import hold
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def into(name: str, out: Any, result: Tensor, beside: Iterable[Any] = (), apart: bool = False) -> Tensor:
    """Copy `result` into `out`, which takes its shape if it has another, and hand `out` back. Gradients do not pass. The tensors
    among the arguments `beside` may be `out` itself, but not share a part of its memory; with `apart` not even be it."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not is_writable(out.array):
        raise shared_place()
    if any(isinstance(x, Tensor) and overlap(x.array, out.array, apart) for x in beside):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )
    if mode.grad and (result.node is not None or out.node is not None):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad. " + advice("Leave out= away, or compute inside `with gradlab.no_grad():`.")
        )
    if OBSERVERS and any(getattr(x, "_tangent", None) is not None for x in (result, out)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. Leave out= away."
        )
    if CATEGORY[result.array.dtype.kind] > CATEGORY[out.array.dtype.kind]:
        raise RuntimeError(
            f"result type {result.dtype.word} can't be cast to the desired output type {out.dtype.word}. "
            + advice(f"Give an out= of dtype {result.dtype}.")
        )
    if type(out.array) is not type(result.array):
        raise different_devices(name, (result.array, out.array))
    if OBSERVERS:
        notify_before_write(out)
    if out.array.shape == result.array.shape:
        quietly(out.array.__setitem__, ..., result.array)
    else:
        if out.array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which does not "
                f"match the required output shape {list(result.array.shape)}. This behavior is deprecated, and in a future "
                "release outputs will not be resized unless they have zero elements.",
                UserWarning,
                stacklevel=3,
            )
        hold(out, quietly(result.array.astype, out.array.dtype))
    wrote(out)
    filled: Tensor = out
    return filled


def overlap(x: Any, out: Any, apart: bool) -> bool:
    """Whether two arrays share memory: a part of it or, with `apart`, any. Torch asks this of arrays without gaps alone."""
    if type(x) is not type(out) or not x.size or not out.size or not (dense(x) and dense(out)):
        return False
    first, second = address(x), address(out)
    if first == second and x.nbytes == out.nbytes and x.strides == out.strides:
        return apart
    return bool(first < second + out.nbytes and second < first + x.nbytes)


def dense(x: Any) -> bool:
    """Whether the elements fill their memory, in some order of the axes."""
    length = x.itemsize
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride != length:
            return False
        length *= n
    return True


def takes_out(function: F, apart: int | None = None) -> F:
    """Give a function of tensors the keyword `out`; a tuple of them where it returns several tensors. `apart` is the number of
    the first argument whose memory must be apart from that of `out`."""

    @functools.wraps(function)
    def with_out(*args: Any, out: Any = None, **options: Any) -> Any:
        result = function(*args, **options)
        if out is None:
            return result
        if isinstance(result, tuple):
            return type(result)(into(function.__name__, o, m) for o, m in zip(out, result, strict=True))
        beside = () if apart is None else (*args[apart:], *(x for name, x in options.items() if not apart or name != "input"))
        return into(function.__name__, out, result, beside, True)

    return with_out  # type: ignore[return-value]


takes_out_apart = functools.partial(takes_out, apart=0)  # of functions that read here and there
