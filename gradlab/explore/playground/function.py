"""A function of numbers, evaluated in the library and precision that it accepts: its value, its gradient, and many values at
once.

The only assumption is that the function returns a scalar tensor. The library is found by calling it with gradlab's tensors, then
with PyTorch's if torch is imported, in float64 or else in float32. Many points are computed in one call by `vmap` if that gives
the same numbers as single calls, which is checked at a few points. Otherwise each point is one call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradlab import clock
from gradlab import optim as gradlab_optim
from gradlab.core.dtypes import float32, float64
from gradlab.core.modes import enable_grad, no_grad
from gradlab.core.tensor import Tensor
from gradlab.explore.libraries import GRADLAB, Library, adapters, library_of
from gradlab.explore.playground.inputs import Call
from gradlab.func import vmap
from gradlab.ops.from_data import tensor

CHUNK = 8  # points of the first batch; the next batches are larger while they are quick
LARGEST = 8192
QUICK = 0.02  # seconds of a batch after which the next may be larger


class NotScalarError(TypeError):
    """Raised if a function does not return a scalar tensor of the library with which it was called."""


class Kind:
    """A library and a precision: functions to create, record and optimize tensors.

    Attributes
    ----------
    library : Library
    dtype : str
        "float64" or "float32".
    """

    def __init__(self, library: Library, dtype: str) -> None:
        self.library, self.dtype = library, dtype
        self._torch = None if library is GRADLAB else sys.modules[library.name]

    @property
    def alias(self) -> str:
        """The usual alias of the library in code."""
        return self.library.alias

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
        return float(np.finfo(self.dtype).eps)

    @property
    def optim(self) -> Any:
        """The library's optimizers."""
        return gradlab_optim if self._torch is None else self._torch.optim

    def tensor(self, numbers: np.ndarray, requires_grad: bool = False) -> Any:
        """Return numbers as a tensor."""
        if self._torch is None:
            return tensor(numbers, dtype=float64 if self.dtype == "float64" else float32, requires_grad=requires_grad)
        return self._torch.tensor(numbers, dtype=getattr(self._torch, self.dtype), requires_grad=requires_grad)

    def recording(self) -> Any:
        """Return a context manager that enables gradients."""
        return enable_grad() if self._torch is None else self._torch.enable_grad()

    def plain(self) -> Any:
        """Return a context manager that disables gradients."""
        return no_grad() if self._torch is None else self._torch.no_grad()

    def vmap(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return f for batches."""
        mapped: Callable[..., Any] = vmap(f) if self._torch is None else self._torch.func.vmap(f)
        return mapped


class Function:
    """A function of some numbers, with the library that computes it.

    Parameters
    ----------
    f : callable
    call : Call
        The parameters of the function.
    kind : Kind
    """

    def __init__(self, f: Callable[..., Any], call: Call, kind: Kind) -> None:
        self._f, self.call, self.kind = f, call, kind
        self._columns = call.columns()
        self._batches: bool | None = None  # whether many points can be computed in one call; None until it was tried
        self.raised: Exception | None = None  # the last error at one of many points

    # ------------------------------------------------------------------------------------------ one point
    def tensors(self, point: np.ndarray, requires_grad: bool = False) -> list[Any]:
        """Return a tensor for each parameter."""
        return [self.kind.tensor(np.array(point[columns]), requires_grad) for columns in self._columns]

    def output(self, inputs: Sequence[Any]) -> Any:
        """Call f with a tensor for each parameter and return its result, a tensor of one element.

        Raises
        ------
        NotScalarError
            If f returns anything else. Errors of f are raised, too.
        """
        output = self.call(self._f, inputs)
        if library_of(output) is not self.kind.library:
            raise NotScalarError(_not_a_tensor(output, self.kind))
        if tuple(output.shape) not in ((), (1,), (1, 1)):
            shape = "×".join(map(str, output.shape))
            raise NotScalarError(
                f"the function returned a tensor of shape {shape}, but a playground shows one number. Reduce it: .sum(), .mean()."
            )
        return output if tuple(output.shape) == () else output.reshape(())

    def value(self, point: np.ndarray) -> float:
        """Return the value at one point."""
        with self.kind.plain():
            return self._number(self.output(self.tensors(point)))

    def gradient(self, point: np.ndarray) -> tuple[float, np.ndarray | None]:
        """Return the value and the gradient at one point; None if no gradient was recorded. The gradient of an unused input is 0.
        No `.grad` is written."""
        with self.kind.recording():
            inputs = self.tensors(point, True)
            output = self.output(inputs)
            return self._number(output), self.gradient_of(output, inputs)

    def gradient_of(self, output: Any, inputs: Sequence[Any]) -> np.ndarray | None:
        """Return the gradient of an output with respect to its inputs as one row; None if none was recorded."""
        if not output.requires_grad:
            return None
        parts = self.kind.library.grad([output], list(inputs))
        if all(part is None for part in parts):
            return None
        rows = [
            np.zeros(tuple(one.shape)) if part is None else self.kind.library.array(part)
            for part, one in zip(parts, inputs, strict=True)
        ]
        return np.concatenate([np.asarray(row, float).reshape(-1) for row in rows])

    def _number(self, output: Any) -> float:
        return float(np.asarray(self.kind.library.array(output)).reshape(()))

    # ------------------------------------------------------------------------------------------ many points
    def values(self, points: np.ndarray, until: float | None = None) -> np.ndarray:
        """Return the values at many points, (n, inputs), that can be computed until a time of `gradlab.clock`, at least the
        first; NaN where f raised. `raised` is the last error."""
        if self._batches is None:
            self._batches = self._try_batches(points, until)
        values: list[np.ndarray] = []
        done, chunk = 0, CHUNK if self._batches else 1
        with self.kind.plain():
            while done < len(points) and (not done or until is None or clock.now() < until):
                began = clock.now()
                part = points[done : done + chunk]
                values.append(self._batch(part) if self._batches and len(part) > 1 else self._one_by_one(part))
                done += len(part)
                if clock.now() - began < QUICK and self._batches:
                    chunk = min(2 * chunk if chunk < 64 else 8 * chunk, LARGEST)
        return np.concatenate(values) if values else np.empty(0)

    def _one_by_one(self, points: np.ndarray) -> np.ndarray:
        values = np.full(len(points), np.nan)
        for k, point in enumerate(points):
            try:
                values[k] = self._number(self.output(self.tensors(point)))
            except Exception as error:  # noqa: BLE001  (f is the user's: it may raise anything at some points)
                self.raised = error
        return values

    def _batch(self, points: np.ndarray) -> np.ndarray:
        inputs = [self.kind.tensor(np.ascontiguousarray(points[:, columns])) for columns in self._columns]
        outputs = self.kind.vmap(lambda *parts: self.output(parts))(*inputs)
        return np.asarray(self.kind.library.array(outputs), float).reshape(len(points))

    def _try_batches(self, points: np.ndarray, until: float | None) -> bool | None:
        """Return True if a batch gives the same values as single calls; None if there were too few points, or no time."""
        some = points[np.unique(np.linspace(0, len(points) - 1, 4).astype(int))]
        if len(some) < 4 or (until is not None and clock.now() > until):
            return None
        with self.kind.plain():
            singly = self._one_by_one(some)
            try:
                jointly = self._batch(some)
            except Exception:  # noqa: BLE001  (a function that does not support batches)
                return False
        scale = np.nanmax(np.abs(singly), initial=0.0, where=np.isfinite(singly))
        return bool(np.allclose(singly, jointly, rtol=1e3 * self.kind.eps, atol=1e2 * self.kind.eps * scale, equal_nan=True))


def _not_a_tensor(output: Any, kind: Kind) -> str:
    name, alias = kind.library.name, kind.alias
    if isinstance(output, (tuple, list)):
        kind_of_output = type(output).__name__
        return f"the function returned a {kind_of_output}, but a playground shows one number: return one tensor of one element."
    other = library_of(output)
    if other is not None:
        return f"the function was called with tensors of {name}, but returned one of {other.name}."
    return (
        f"the function returned {'nothing' if output is None else type(output).__name__}, but it must return a tensor of one "
        "element that it computed from its inputs. (float(), .item(), NumPy and math return numbers without a gradient: use "
        f"{alias}.sin and similar functions.)"
    )


def find_kind(f: Callable[..., Any], call: Call, points: Sequence[np.ndarray], library: str | None = None) -> Function:
    """Return `f` with the first library and precision in which it returns a scalar at one of `points`.

    Raises
    ------
    ValueError
        If the library is unknown, or torch is not imported.
    NotScalarError
        If f does not return a scalar tensor.
    RuntimeError
        If f raises at every point; the error is the cause.
    """
    errors: dict[str, Exception] = {}
    for one in _candidates(library):
        for dtype in ("float64", "float32"):
            function = Function(f, call, Kind(one, dtype))
            for point in points:
                try:
                    with function.kind.recording():
                        function.output(function.tensors(point, True))
                except NotScalarError as error:
                    errors.setdefault(one.name, error)
                    break
                except Exception as error:  # noqa: BLE001  (f is the user's)
                    errors.setdefault(one.name, error)
                else:
                    return function
    shape = next((error for error in errors.values() if isinstance(error, NotScalarError)), None)
    if shape is not None:
        raise NotScalarError(f"playground: {shape}") from None
    parts = [f"with tensors of {name} it raised {type(error).__name__}: {_first_line(error)}" for name, error in errors.items()]
    hint = "" if "torch" in errors or library else " (torch's tensors are tried once torch is imported.)"
    raise RuntimeError(f"playground: the function cannot be called. {'; '.join(parts)}{hint}") from next(iter(errors.values()))


def _candidates(library: str | None) -> list[Library]:
    torch = sys.modules.get("torch")
    disguised = torch is not None and getattr(torch, "Tensor", None) is Tensor  # after `gl.as_torch()`
    there = [one for one in adapters() if one is GRADLAB or not disguised]
    name = getattr(library, "__name__", library)
    if name is None:
        return there
    if name == "torch" and disguised:
        name = "gradlab"
    candidates = [one for one in there if one.name == name]
    if not candidates:
        names = " or ".join(repr(one.name) for one in there)
        raise ValueError(f"playground: library={name!r} is not imported; the libraries are {names}.")
    return candidates


def _first_line(error: Exception) -> str:
    return (str(error) or "no message").partition("\n")[0]
