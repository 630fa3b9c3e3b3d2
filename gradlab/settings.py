"""PyTorch's global settings. Most have no effect in gradlab; their values are checked and stored."""

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
    """Return the number of threads that work on one large array.

    It is the last value set by `set_num_threads`. The default is the environment variable OMP_NUM_THREADS or, if it is not set,
    the number of cores available to the process (1 in a browser).

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
    """Set the number of threads that work on one large array.

    Exponentials, logarithms, trigonometric functions and powers use several threads from two million elements on. Results are
    bitwise equal for any number of threads. NumPy's BLAS, which multiplies matrices, has its own number of threads, read from the
    environment when it is imported (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS).

    Parameters
    ----------
    num : int
        Positive number of threads.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `num` is not an int.
    RuntimeError
        If `num` is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_num_threads(gl.get_num_threads())
    """
    set_number_of_threads(_positive("set_num_threads", num))


def get_num_interop_threads() -> int:
    """Return the last value set by `set_num_interop_threads`, or the number of processors.

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
    """Set the number of inter-op threads. It is stored and has no effect.

    Parameters
    ----------
    num : int
        Positive number of threads.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `num` is not an int.
    RuntimeError
        If `num` is not positive.

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
    """Set whether deterministic algorithms are used. It is stored and has no effect.

    gradlab's operations are always deterministic on the CPU.

    Parameters
    ----------
    mode : bool
        Whether to use only deterministic algorithms.
    warn_only : bool, default: False
        In PyTorch, warn instead of raising if an operation has no deterministic algorithm.

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
    """Return True if deterministic algorithms are enabled by `use_deterministic_algorithms` or the debug mode.

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
    """Return True if `warn_only` is enabled by `use_deterministic_algorithms` or the debug mode.

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
    """Set the deterministic debug mode. It is stored and has no effect, like `use_deterministic_algorithms`.

    Parameters
    ----------
    debug_mode : {0, 1, 2} or {"default", "warn", "error"}
        Mode, as a number or a name.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `debug_mode` is neither an int nor a str.
    RuntimeError
        If `debug_mode` is not one of these values.

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
    """Set the precision of float32 matrix products. It is stored and has no effect.

    gradlab always uses the highest precision.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        Precision to store.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If `precision` is not one of these values.

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
    """Return the last precision set by `set_float32_matmul_precision`.

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
    """Return False without changing the processor's mode: NumPy keeps subnormal numbers.

    Parameters
    ----------
    mode : bool
        Whether to flush subnormal numbers to zero. Ignored.

    Returns
    -------
    bool
        False, which means that the mode is not supported.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_flush_denormal(True)
    False
    """
    return False


def compile(model: Any = None, **options: Any) -> Any:
    """Return the model unchanged. gradlab runs every operation eagerly and does not compile.

    Parameters
    ----------
    model : callable, optional
        Module or function.
    **options : optional
        PyTorch's options. They have no effect.

    Returns
    -------
    object
        `model`, or a decorator that returns its argument if `model` is omitted.

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
