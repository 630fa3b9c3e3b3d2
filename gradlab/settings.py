"""Switches of torch's that programs set at their start. Most have nothing to switch here: they are checked and remembered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from gradlab.backend.namespaces import get_default_device, set_default_device
from gradlab.core.dtypes import get_default_dtype, set_default_dtype

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_default_device",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_default_device",
    "set_default_dtype",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "use_deterministic_algorithms",
]


class _Settings:
    threads = interop_threads = os.cpu_count() or 1
    deterministic = warn_only = False
    precision = "highest"


def get_num_threads() -> int:
    """The number last given to set_num_threads, or that of the processors."""
    return _Settings.threads


def set_num_threads(num: int) -> None:
    """Accepted and remembered. NumPy's BLAS reads its own number of threads from the environment, before it is imported
    (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS)."""
    _Settings.threads = _positive("set_num_threads", num)


def get_num_interop_threads() -> int:
    """The number last given to set_num_interop_threads, or that of the processors."""
    return _Settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Accepted and remembered."""
    _Settings.interop_threads = _positive("set_num_interop_threads", num)


def _positive(name: str, num: Any) -> int:
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"{name} expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"{name} expects a positive integer, got {num}.")
    return num


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted and remembered: gradlab's operations are deterministic on the CPU."""
    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms(True) was called."""
    return _Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was called with warn_only=True."""
    return _Settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Accepted, as use_deterministic_algorithms is: 0 or "default", 1 or "warn", 2 or "error"."""
    use_deterministic_algorithms(debug_mode not in (0, "default"), warn_only=debug_mode in (1, "warn"))


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted and remembered: products of float32 matrices are always those of the "highest" precision."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting is '{_Settings.precision}'."
        )
    _Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """The precision last set."""
    return _Settings.precision


def set_flush_denormal(mode: bool) -> bool:
    """False: NumPy keeps numbers that are not normal, and gradlab does not change the processor's mode."""
    return False


def compile(model: Any = None, **options: Any) -> Any:
    """`model` as it is, or a decorator that does nothing: gradlab runs every operation when it is called."""
    if model is None:

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            return function

        return decorate
    return model
