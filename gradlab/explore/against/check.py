"""`check_against_torch(f, *inputs)`: does gradlab give what PyTorch gives?"""

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

PASSED = (int, str, type(None), slice, type(Ellipsis))  # handed to the function as they are


def check_against_torch(f: Callable[..., Any], *inputs: Any) -> TorchComparison:
    """Run a function in gradlab and in PyTorch, and compare every operation's value and gradient.

    The function may be written for either library, and name it as it likes: `import torch` inside of it, `torch` or `gl` of the
    notebook, `from torch.nn import functional as F`. For gradlab it runs as under `as_torch()`. The other library's names are
    looked up in its place; nothing of yours is changed. Each library gets copies of the inputs; random numbers are the same in
    both, and the state of both generators is put back.

    Results that have more than one element are weighted by fixed random numbers for the sweep, so that no gradient is zero by
    symmetry. Two numbers are equal if they differ by no more than 1e-9 (float64), 2e-5 (float32) or 5e-3 (float16) of the largest
    modulus in their array or in those that it was computed from, and by ten times the relative difference that these had.

    Parameters
    ----------
    f : callable
        A function of tensors, that returns a tensor or tuples, lists and dictionaries of them.
    *inputs : Tensor, array, float or list of numbers
        Its arguments, of either library; copied. Those of a floating dtype require grad in the copies; integers, booleans and
        texts stay what they are.

    Returns
    -------
    TorchComparison
        With `.agrees`, `.first` and `.table()`, shown in words and as a table. What the function raises in one library is
        reported there.

    Raises
    ------
    ModuleNotFoundError
        If torch is not installed.
    TypeError
        If `f` cannot be called or is a module of one library, or an input is nothing that can be copied to both.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.check_against_torch(lambda x: (x * gl.sin(x)).sum(), [1.0, 2.0]).agrees  # doctest: +SKIP
    True
    """
    if not callable(f):
        raise TypeError(f"check_against_torch(f, *inputs) calls f, and {type(f).__name__} cannot be called.")
    if callable(getattr(type(f), "named_parameters", None)):
        raise TypeError(
            f"check_against_torch(f, *inputs): f is a module ({type(f).__name__}), whose parameters belong to one library. "
            "Give a function of tensors that computes the same, with the parameters among the inputs."
        )
    arrays = [_given(k, x) for k, x in enumerate(inputs, start=1)]
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
    """One library's run, with the other's names translated."""

    def tensor(value: Any) -> Any:
        library = library_of(value)
        array = np.array(value.detach().cpu().numpy() if library is None else library.array(value))
        return lib.tensor(array).requires_grad_(bool(value.requires_grad))

    inputs = [lib.tensor(x) if isinstance(x, (np.ndarray, float, list)) else x for x in arrays]
    inputs = [x.requires_grad_() if hasattr(x, "requires_grad_") and x.is_floating_point() else x for x in inputs]
    return run(name, lib, Translation(other, name, tensor)(f), inputs, code)


def _given(position: int, x: Any) -> Any:
    """An input as what both libraries make a tensor of: an array, a float, a list; or itself, where it is handed on."""
    library = library_of(x)
    if library is not None:
        if library.dtype_name(x) == "bfloat16":
            raise TypeError(f"input {position} of check_against_torch is bfloat16, which gradlab does not have: give .float().")
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
        f"input {position} of check_against_torch is {type(x).__name__}: it takes tensors, arrays, numbers and lists of numbers."
    )


def _requires_grad(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, (np.ndarray, list)) and np.asarray(x).dtype.kind == "f")


def _names(f: Callable[..., Any], number: int) -> list[str]:
    """What the function calls its arguments."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [plain[k] if k < len(plain) else f"input {k + 1}" for k in range(number)]


@contextmanager
def _random_state_of(lib: Any) -> Iterator[None]:
    """The library's random state is put back after the block."""
    state = lib.get_rng_state()
    try:
        yield
    finally:
        lib.set_rng_state(state)
