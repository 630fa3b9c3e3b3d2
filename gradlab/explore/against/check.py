"""`check_against_torch(f, *inputs)`: compare the results of gradlab with those of PyTorch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradlab.explore.against.comparison import compare
from gradlab.explore.against.recorded_run import RecordedRun, run
from gradlab.explore.against.result import TorchComparison
from gradlab.explore.against.translation import Translation
from gradlab.explore.libraries import library_of
from gradlab.interop import gradlab_as_torch, real_torch

PASSED = (int, str, type(None), slice, type(Ellipsis))  # passed to the function unchanged


def check_against_torch(f: Callable[..., Any], *inputs: Any) -> TorchComparison:
    """Run a function in gradlab and in PyTorch, and compare the value and gradient of every operation.

    The function may be written for either library and import it in any way: `import torch` in the function, `torch` or `gl` of
    the notebook, `from torch.nn import functional as F`. For gradlab it runs as under `as_torch()`. Names of the other library
    are translated when they are looked up; your objects are not changed. Each library gets copies of the inputs. Random numbers
    are the same in both, and the state of both generators is restored.

    Results with more than one element are weighted by fixed random numbers for the backward pass, so that no gradient is zero by
    symmetry. Two numbers are equal if they differ by at most 1e-9 (float64), 2e-5 (float32) or 5e-3 (float16) times the largest
    absolute value in their array or its inputs, plus ten times the relative difference of the inputs.

    Parameters
    ----------
    f : callable
        A function of tensors that returns a tensor, or tuples, lists and dictionaries of tensors.
    *inputs : Tensor, array, float or list of numbers
        The arguments, of either library. They are copied, and copies of a floating-point dtype require grad. Integers, booleans
        and strings are passed unchanged.

    Returns
    -------
    TorchComparison
        With `.agrees`, `.first` and `.table()`, displayed as sentences and a table. It also reports errors of the function.

    Raises
    ------
    ModuleNotFoundError
        If torch is not installed.
    TypeError
        If `f` is not callable or is a module of one library, or an input cannot be copied to both libraries.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.check_against_torch(lambda x: (x * gl.sin(x)).sum(), [1.0, 2.0]).agrees  # doctest: +SKIP
    True
    """
    if not callable(f):
        raise TypeError(f"check_against_torch(f, *inputs): f must be callable, got {type(f).__name__}.")
    if callable(getattr(type(f), "named_parameters", None)):
        raise TypeError(
            f"check_against_torch(f, *inputs): f is a module ({type(f).__name__}), whose parameters belong to one library. "
            "Give a function of tensors that computes the same, with the parameters among the inputs."
        )
    arrays = [_plain_input(k, x) for k, x in enumerate(inputs, start=1)]
    names = _names(f, len(arrays))
    code = getattr(inspect.unwrap(f), "__code__", None)
    try:
        with real_torch() as torch, _random_state_of(torch):
            state = torch.get_rng_state().numpy().copy()
            theirs = _run("torch", torch, sys.modules["gradlab"], f, arrays, code)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "check_against_torch compares with PyTorch, which is not installed here: pip install torch.", name="torch"
        ) from None
    with gradlab_as_torch() as gradlab, _random_state_of(gradlab):
        gradlab.set_rng_state(gradlab.tensor(state))
        ours = _run("gradlab", gradlab, torch, f, arrays, code)
    graded = [name for name, x in zip(names, arrays, strict=True) if _requires_grad(x)]
    return TorchComparison(compare(ours, theirs, graded), ours, theirs, graded)


def _run(name: str, lib: Any, other: Any, f: Callable[..., Any], arrays: list[Any], code: Any) -> RecordedRun:
    """Run the function in one library, with the names of the other translated."""

    def tensor(value: Any) -> Any:
        library = library_of(value)
        array = np.array(value.detach().cpu().numpy() if library is None else library.array(value))
        return lib.tensor(array).requires_grad_(bool(value.requires_grad))

    inputs = [lib.tensor(x) if isinstance(x, (np.ndarray, float, list)) else x for x in arrays]
    inputs = [x.requires_grad_() if hasattr(x, "requires_grad_") and x.is_floating_point() else x for x in inputs]
    return run(name, lib, Translation(other, name, tensor)(f), inputs, code)


def _plain_input(position: int, x: Any) -> Any:
    """Return an input from which both libraries can create a tensor: an array, a float, a list. Others are returned unchanged."""
    library = library_of(x)
    if library is not None:
        if library.dtype_name(x) == "bfloat16":
            raise TypeError(f"input {position} of check_against_torch is bfloat16, which gradlab does not have. Pass .float().")
        return np.array(library.array(x))
    if isinstance(x, (bool, *PASSED)):
        return x
    if isinstance(x, (float, np.ndarray)):
        return x
    if isinstance(x, np.generic):
        return np.asarray(x)
    if isinstance(x, (list, tuple)) and np.asarray(x, dtype=object).size:
        try:
            numbers = np.asarray(x)
        except ValueError:
            numbers = np.asarray(None)
        if numbers.dtype.kind in "fiub":
            return numbers.tolist()
    if hasattr(x, "__array__") or hasattr(x, "get"):
        array = np.asarray(x.get() if hasattr(x, "get") and hasattr(x, "dtype") else x)
        if array.dtype.kind in "fiub":
            return array
    raise TypeError(
        f"input {position} of check_against_torch is {type(x).__name__}, but must be a tensor, an array, a number or a list of "
        "numbers."
    )


def _requires_grad(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, (np.ndarray, list)) and np.asarray(x).dtype.kind == "f")


def _names(f: Callable[..., Any], number: int) -> list[str]:
    """Return the names of the function's parameters."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [plain[k] if k < len(plain) else f"input {k + 1}" for k in range(number)]


@contextmanager
def _random_state_of(lib: Any) -> Iterator[None]:
    """Restore the library's random state after the block."""
    state = lib.get_rng_state()
    try:
        yield
    finally:
        lib.set_rng_state(state)
