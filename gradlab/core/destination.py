"""`out=`: a result copied into a tensor that the caller provides."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from gradlab.core.devices import different_devices
from gradlab.core.dtypes import CATEGORY
from gradlab.core.modes import mode
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor
from gradlab.core.watching import WATCHED, writing

F = TypeVar("F", bound=Callable[..., Any])


def into(name: str, out: Any, made: Tensor) -> Tensor:
    """Copy `made` into `out`, which takes its shape if it has another, and hand `out` back. Gradients do not pass."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if mode.grad and (made.node is not None or out.node is not None):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad. Leave out= away, or compute inside `with no_grad():`.")
    if WATCHED and any(getattr(x, "_tangent", None) is not None for x in (made, out)):
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= "
                                  "function. Leave out= away.")
    if CATEGORY[made.array.dtype.kind] > CATEGORY[out.array.dtype.kind]:
        raise RuntimeError(f"result type {made.dtype.word} can't be cast to the desired output type {out.dtype.word}. Give an "
                           f"out= of dtype {made.dtype}.")
    if type(out.array) is not type(made.array):
        raise different_devices(name, (made.array, out.array))
    if WATCHED:
        writing(out)
    if out.array.shape == made.array.shape:
        out.array[...] = made.array
    else:
        if out.array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which does not "
                f"match the required output shape {list(made.array.shape)}. This behavior is deprecated, and in a future release "
                "outputs will not be resized unless they have zero elements.", UserWarning, stacklevel=3)
        out.array = made.array.astype(out.array.dtype)
    wrote(out)
    return out


def takes_out(function: F) -> F:
    """Give a function of tensors the keyword `out`; a tuple of them where it returns several tensors."""
    @functools.wraps(function)
    def with_out(*args: Any, out: Any = None, **options: Any) -> Any:
        made = function(*args, **options)
        if out is None:
            return made
        if isinstance(made, tuple):
            return type(made)(into(function.__name__, o, m) for o, m in zip(out, made, strict=True))
        return into(function.__name__, out, made)
    return with_out  # type: ignore[return-value]
