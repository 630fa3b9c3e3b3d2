"""Operations on PyTorch tensors that are hidden from the program. Imported once the user has imported torch.

A user's `TorchDispatchMode` (a FLOP counter, a checkpoint context, `FakeTensorMode`), a `TorchFunctionMode`, methods that
subclasses of Tensor override, the profiler and autocast see each operation of a thread. Our operations must be hidden from them:
otherwise they would be counted, refused, or computed in another precision.
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
# Versions before 2.6 lack some of these functions; there, nested calls hide operations again.
_hidden: Callable[[], bool] = getattr(_C, "_is_torch_function_all_disabled", lambda: False)
_no_autocast = getattr(_C, "_DisableAutocast", nullcontext)
_set_excluded = getattr(_C, "_SetExcludeDispatchKeyGuard", lambda key, excluded: nullcontext())
# These see operations of this thread on plain tensors; function modes also see which attributes it reads.
is_profiled: Callable[[], bool] = _C._autograd._profiler_enabled
count_modes: Callable[[], int] = _C._len_torch_dispatch_stack
count_function_modes: Callable[[], int] = getattr(_C, "_len_torch_function_stack", lambda: 1)


def are_modes_on() -> bool:
    """Return whether a mode or the profiler sees the operations of this thread on plain tensors."""
    return bool(count_modes() or count_function_modes() or is_profiled())


def unseen(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that modes of this thread and subclasses of Tensor do not see its operations on tensors."""

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
    """Decorate a function whose operations must be dispatched by the subclasses of its tensors (`__torch_dispatch__`, as in
    DTensor and FakeTensor), also inside an `unseen` function, but stay hidden from the program's modes."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with _set_excluded(_PYTHON, False), _disable_current_modes() if count_modes() else nullcontext():
            return function(*args, **kwargs)

    return call
