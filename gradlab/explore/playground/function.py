"""A function of numbers, evaluated in the library and precision that it takes: its value, its gradient, many values at once.

Nothing is assumed of the function but that it makes a scalar tensor. The library is found by calling it: with gradlab's tensors,
then with PyTorch's if torch is imported, in float64 and else in float32. Many points go through `vmap` in one call where that
gives the same numbers as calls one by one (which is checked at a few points); else they are called one by one.
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

CHUNK = 8  # points of the first call of many; the next ones are larger as long as they are quick
LARGEST = 8192
QUICK = 0.02  # seconds of a call after which the next may be larger


class NotScalarError(TypeError):
    """What a function returned is no scalar tensor of the library that it was called with."""


class Kind:
    """A library and a precision: how tensors are made, recorded and stepped.

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
        """What the user's code calls the library."""
        return self.library.alias

    @property
    def eps(self) -> float:
        """The distance of 1 to the next number."""
        return float(np.finfo(self.dtype).eps)

    @property
    def optim(self) -> Any:
        """The library's optimizers."""
        return gradlab_optim if self._torch is None else self._torch.optim

    def tensor(self, numbers: np.ndarray, requires_grad: bool = False) -> Any:
        """Numbers as a tensor."""
        if self._torch is None:
            return tensor(numbers, dtype=float64 if self.dtype == "float64" else float32, requires_grad=requires_grad)
        return self._torch.tensor(numbers, dtype=getattr(self._torch, self.dtype), requires_grad=requires_grad)

    def recording(self) -> Any:
        """A context in which gradients are recorded."""
        return enable_grad() if self._torch is None else self._torch.enable_grad()

    def plain(self) -> Any:
        """A context in which they are not."""
        return no_grad() if self._torch is None else self._torch.no_grad()

    def vmap(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """f of batches."""
        mapped: Callable[..., Any] = vmap(f) if self._torch is None else self._torch.func.vmap(f)
        return mapped


class Function:
    """A function of some numbers, and how it is computed.

    Parameters
    ----------
    f : callable
    call : Call
        Its parameters.
    kind : Kind
    """

    def __init__(self, f: Callable[..., Any], call: Call, kind: Kind) -> None:
        self._f, self.call, self.kind = f, call, kind
        self._columns = call.columns()
        self._batches: bool | None = None  # whether many points can go through in one call; None until it was tried
        self.raised: Exception | None = None  # the last error in one of many points

    # ------------------------------------------------------------------------------------------ one point
    def tensors(self, point: np.ndarray, requires_grad: bool = False) -> list[Any]:
        """A tensor for each parameter."""
        return [self.kind.tensor(np.array(point[columns]), requires_grad) for columns in self._columns]

    def output(self, inputs: Sequence[Any]) -> Any:
        """What f makes of a tensor for each parameter: a tensor of one element.

        Raises
        ------
        NotScalarError
            If it is something else. And whatever f raises.
        """
        output = self.call(self._f, inputs)
        if library_of(output) is not self.kind.library:
            raise NotScalarError(_not_a_tensor(output, self.kind))
        if tuple(output.shape) not in ((), (1,), (1, 1)):
            shape = "×".join(map(str, output.shape))
            raise NotScalarError(
                f"the function returned a tensor of shape {shape}, and a playground shows one number. "
                "Make one of it: .sum(), .mean()."
            )
        return output if tuple(output.shape) == () else output.reshape(())

    def value(self, point: np.ndarray) -> float:
        """The value at one point."""
        with self.kind.plain():
            return self._number(self.output(self.tensors(point)))

    def gradient(self, point: np.ndarray) -> tuple[float, np.ndarray | None]:
        """Value and gradient at one point; None where no gradient was recorded. A number that f does not use has a gradient of 0.
        Nobody's `.grad` is written."""
        with self.kind.recording():
            inputs = self.tensors(point, True)
            output = self.output(inputs)
            return self._number(output), self.swept(output, inputs)

    def swept(self, output: Any, inputs: Sequence[Any]) -> np.ndarray | None:
        """The gradient of an output by the tensors that it was made of, as one row; None where none was recorded."""
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
        """The values at many points, (n, inputs): those that were computed until a time of `gradlab.clock`, at least the first;
        NaN where f raised, and `raised` has the last error."""
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
            except Exception as error:  # noqa: BLE001  (f is the user's: it may raise anything, here and not there)
                self.raised = error
        return values

    def _batch(self, points: np.ndarray) -> np.ndarray:
        inputs = [self.kind.tensor(np.ascontiguousarray(points[:, columns])) for columns in self._columns]
        outputs = self.kind.vmap(lambda *parts: self.output(parts))(*inputs)
        return np.asarray(self.kind.library.array(outputs), float).reshape(len(points))

    def _try_batches(self, points: np.ndarray, until: float | None) -> bool | None:
        """Whether a batch gives what calls one by one give; None if there were too few points to tell, or no time."""
        some = points[np.unique(np.linspace(0, len(points) - 1, 4).astype(int))]
        if len(some) < 4 or (until is not None and clock.now() > until):
            return None
        with self.kind.plain():
            singly = self._one_by_one(some)
            try:
                jointly = self._batch(some)
            except Exception:  # noqa: BLE001  (what cannot be batched is called one by one)
                return False
        scale = np.nanmax(np.abs(singly), initial=0.0, where=np.isfinite(singly))
        return bool(np.allclose(singly, jointly, rtol=1e3 * self.kind.eps, atol=1e2 * self.kind.eps * scale, equal_nan=True))


def _not_a_tensor(output: Any, kind: Kind) -> str:
    name, alias = kind.library.name, kind.alias
    if isinstance(output, (tuple, list)):
        kind_of_output = type(output).__name__
        return f"the function returned a {kind_of_output}, and a playground shows one number: return one tensor of one element."
    other = library_of(output)
    if other is not None:
        return f"the function was called with tensors of {name} and returned one of {other.name}."
    return (
        f"the function returned {'nothing' if output is None else type(output).__name__}, and should return a tensor of one "
        "element that it computed from its inputs. (float(), .item(), NumPy and math give numbers without a gradient: take "
        f"{alias}.sin and the like.)"
    )


def find_kind(f: Callable[..., Any], call: Call, points: Sequence[np.ndarray], library: str | None = None) -> Function:
    """`f` in the first library and precision in which it gives a scalar at one of `points`.

    Raises
    ------
    ValueError
        If there is no such library, or torch is not imported.
    NotScalarError
        If f gives no scalar tensor.
    RuntimeError
        If f raises wherever it is tried; the error is its cause.
    """
    told: dict[str, Exception] = {}
    for one in _candidates(library):
        for dtype in ("float64", "float32"):
            function = Function(f, call, Kind(one, dtype))
            for point in points:
                try:
                    with function.kind.recording():
                        function.output(function.tensors(point, True))
                except NotScalarError as error:
                    told.setdefault(one.name, error)
                    break
                except Exception as error:  # noqa: BLE001  (f is the user's)
                    told.setdefault(one.name, error)
                else:
                    return function
    shape = next((error for error in told.values() if isinstance(error, NotScalarError)), None)
    if shape is not None:
        raise NotScalarError(f"playground: {shape}") from None
    parts = [f"with tensors of {name} it raised {type(error).__name__}: {_first_line(error)}" for name, error in told.items()]
    hint = "" if "torch" in told or library else " (torch's tensors are tried once torch is imported.)"
    raise RuntimeError(f"playground: the function cannot be called. {'; '.join(parts)}{hint}") from next(iter(told.values()))


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
        raise ValueError(f"playground: library={name!r} is none that is imported here: say {names}.")
    return candidates


def _first_line(error: Exception) -> str:
    return (str(error) or "no message").partition("\n")[0]
