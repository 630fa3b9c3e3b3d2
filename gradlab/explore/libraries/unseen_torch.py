"""Computing on PyTorch's tensors unseen by the program. Loaded once the user has imported torch.

A user's `TorchDispatchMode` (a FLOP counter, a checkpoint's context, `FakeTensorMode`), a `TorchFunctionMode`, the methods that a
subclass of Tensor overrides, the profiler and autocast all see each operation of a thread. Ours must not be among them: they
would be counted, refused, or computed in another precision.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

P = ParamSpec("P")
T = TypeVar("T")

_C: Any = torch._C
_PYTHON = _C.DispatchKey.Python
# What versions before 2.6 lack is done without: operations are hidden twice where once would do.
_hidden: Callable[[], bool] = getattr(_C, "_is_torch_function_all_disabled", lambda: False)
_no_autocast = getattr(_C, "_DisableAutocast", nullcontext)
_set_excluded = getattr(_C, "_SetExcludeDispatchKeyGuard", lambda key, excluded: nullcontext())
# What sees the operations of this thread on plain tensors; the last of them also which attributes it reads.
is_profiled: Callable[[], bool] = _C._autograd._profiler_enabled
count_modes: Callable[[], int] = _C._len_torch_dispatch_stack
count_function_modes: Callable[[], int] = getattr(_C, "_len_torch_function_stack", lambda: 1)


def are_modes_on() -> bool:
    """Return whether a mode or the profiler sees the operations of this thread on plain tensors."""
    return bool(count_modes() or count_function_modes() or is_profiled())


def unseen(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function whose operations on tensors no mode of this thread, and no subclass of Tensor, shall see."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if _hidden() and _C._dispatch_tls_is_dispatch_key_excluded(_PYTHON):
            return function(*args, **kwargs)
        profiled = is_profiled()
        if profiled:
            _C._autograd._enable_record_function(False)
        try:
            with _C.DisableTorchFunction(), _C._DisableTorchDispatch(), _no_autocast():
                return function(*args, **kwargs)
        finally:
            if profiled:
                _C._autograd._enable_record_function(True)

    return call


def by_subclass(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that computes on tensors of subclasses which dispatch by themselves (`__torch_dispatch__`, as DTensor
    and FakeTensor do): these must see it, also inside of what is unseen, and no mode of the program's."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with _set_excluded(_PYTHON, False), _disable_current_modes() if count_modes() else nullcontext():
            return function(*args, **kwargs)

    return call
