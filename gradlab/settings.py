"""Switches of torch's that programs set at their start. Most have nothing to switch here: they are checked and remembered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from gradlab.backend.namespaces import get_default_device, set_default_device
from gradlab.backend.threads import number_of_threads, set_number_of_threads
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


DEBUG_MODES = ("default", "warn", "error")


class _Settings:
    interop_threads = os.cpu_count() or 1
    deterministic = warn_only = False
    precision = "highest"


def get_num_threads() -> int:
    """How many threads work on one large array.

    The number that was given to `set_num_threads` last; else what the environment's OMP_NUM_THREADS says, or the number of cores
    that the process may use. (In a browser it is 1.)

    Returns
    -------
    int

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.get_num_threads() > 0
    True
    """
    return number_of_threads()


def set_num_threads(num: int) -> None:
    """Set how many threads work on one large array: exponentials, logarithms, trigonometry and powers of two million.

    Results are equal to the bit whatever the number. NumPy's BLAS, which multiplies matrices, has its own number of threads: it
    reads it from the environment before it is imported (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS).

    Parameters
    ----------
    num : int
        A positive number.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If it is no int.
    RuntimeError
        If it is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_num_threads(gl.get_num_threads())
    """
    set_number_of_threads(_positive("set_num_threads", num))


def get_num_interop_threads() -> int:
    """The number that was given to `set_num_interop_threads` last, or that of the processors.

    Returns
    -------
    int

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.get_num_interop_threads() > 0
    True
    """
    return _Settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Accepted and remembered.

    Parameters
    ----------
    num : int
        A positive number.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If it is no int.
    RuntimeError
        If it is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_num_interop_threads(gl.get_num_interop_threads())
    """
    _Settings.interop_threads = _positive("set_num_interop_threads", num)


def _positive(name: str, num: Any) -> int:
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"{name} expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"{name} expects a positive integer, got {num}.")
    return num


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted and remembered: gradlab's operations are deterministic on the CPU.

    Parameters
    ----------
    mode : bool
        What is wished.
    warn_only : bool, default False
        Whether torch would only warn.

    Returns
    -------
    None

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.use_deterministic_algorithms(False)
    """
    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms(True)` was called.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.are_deterministic_algorithms_enabled()
    False
    """
    return _Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was called with `warn_only=True`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _Settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Accepted, as `use_deterministic_algorithms` is.

    Parameters
    ----------
    debug_mode : int or str
        0 or "default", 1 or "warn", 2 or "error".

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If it is neither an int nor a str.
    RuntimeError
        If it is none of these.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (modes := DEBUG_MODES if isinstance(debug_mode, str) else range(len(DEBUG_MODES))):
        expected = ", ".join(map(repr, modes))
        raise RuntimeError(f"invalid value of debug_mode, expected one of {expected}, but got {debug_mode!r}.")
    level = DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted and remembered: products of float32 matrices are always of the highest precision.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        The precision.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If it is none of the three.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting is '{_Settings.precision}'."
        )
    _Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """The precision that was set last.

    Returns
    -------
    str

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.get_float32_matmul_precision()
    'highest'
    """
    return _Settings.precision


def set_flush_denormal(mode: bool) -> bool:
    """Accepted: NumPy keeps numbers that are not normal, and the processor's mode is not changed.

    Parameters
    ----------
    mode : bool
        What is wished.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_flush_denormal(True)
    False
    """
    return False


def compile(model: Any = None, **options: Any) -> Any:
    """The model as it is, or a decorator that does nothing: gradlab runs every operation when it is called.

    Parameters
    ----------
    model : callable, optional
        A module or a function.
    **options : optional
        torch's, without effect.

    Returns
    -------
    object
        `model`, or without one a decorator.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.compile(abs)(-2)
    2
    """
    if model is None:

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            return function

        return decorate
    return model
