"""Rows of operators: lines of Python that are run with torch (to record) and with gradlab (to compare).

In a row `torch` is the library under test, `F` its `nn.functional`, and `x`, `y`, … are inputs:

    ROWS = [
        *rows_for(dict(x=N(3, 4), y=N(4)), '''
            torch.atan2(x, y)
            x.clone().atan2_(y)
            ~ torch.hypot(x, y)
        '''),
    ]

`rows_for` also accepts a list of such dicts and runs every line with each of them. Statements are separated by `;`. The last one
is an expression, the result: a tensor, a number, or tuples, lists and dicts of these. `~` at the beginning of a line means that
the name of the result's graph node is not compared, since torch records other nodes. Each row runs in float64 with gradients and
second derivatives, and in float32 with gradients.

Results are recorded as sketches, which are small but reveal a wrong number: dtype, shape, the positions of nonfinite elements,
the sum of absolute values, and two projections on fixed weights. Errors and warnings are results, too.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Make = Callable[[np.random.Generator, type], np.ndarray]


@dataclass(frozen=True)
class Input:
    """Input of a row: its text in the row's title, and a function that creates it."""

    text: str
    make: Make


def _shape(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def N(*shape: int) -> Input:  # noqa: N802
    """Normally distributed floats."""
    return Input(f"N({_shape(shape)})", lambda rng, dtype: np.asarray(rng.standard_normal(shape)).astype(dtype))


def U(*shape: int, low: float = 0.1, high: float = 0.9) -> Input:  # noqa: N802
    """Uniformly distributed floats in (low, high)."""
    return Input(f"U({_shape((*shape, low, high))})", lambda rng, dtype: np.asarray(rng.uniform(low, high, shape)).astype(dtype))


def I(*shape: int, low: int = -5, high: int = 5) -> Input:  # noqa: E743, N802
    """Integers (int64) from low to high - 1."""
    return Input(f"I({_shape((*shape, low, high))})", lambda rng, dtype: np.asarray(rng.integers(low, high, shape)))


def B(*shape: int) -> Input:  # noqa: N802
    """Bools."""
    return Input(f"B({_shape(shape)})", lambda rng, dtype: np.asarray(rng.integers(0, 2, shape).astype(bool)))


def V(values: Any, dtype: Any = None) -> Input:  # noqa: N802
    """Given values, as floats unless a NumPy dtype is given."""
    return Input(
        f"V({values}{f', {np.dtype(dtype).name}' if dtype else ''})", lambda rng, default: np.asarray(values, dtype or default)
    )


@dataclass(frozen=True)
class Row:
    """One line with its inputs, in one dtype."""

    line: str
    inputs: tuple[tuple[str, Input], ...]
    dtype: str
    node: bool

    def __str__(self) -> str:
        return f"{self.line}  # {' '.join(f'{name}={i.text}' for name, i in self.inputs)} {self.dtype}"

    def run(self, lib: Any) -> Any:
        """Run the line with `lib` and return a sketch of the result."""
        rng = np.random.default_rng(int.from_bytes(hashlib.sha256(self.line.encode()).digest()[:4]))
        arrays = {name: i.make(rng, np.dtype(self.dtype).type) for name, i in self.inputs}
        tensors = {name: lib.from_numpy(np.array(a)) for name, a in arrays.items()}
        leaves = [t.requires_grad_() for t in tensors.values() if t.is_floating_point()]
        space = {"torch": lib, "F": lib.nn.functional, "inf": float("inf"), "nan": float("nan"), **tensors}
        *before, last = (part.strip() for part in self.line.split(";"))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")  # as gradlab itself does
            try:
                exec("\n".join(before), space)
                result = eval(last, space)
                found = {"result": sketch(lib, result)}
                outputs = [t for t in flatten(result) if lib.is_tensor(t) and t.requires_grad and t.is_floating_point()]
                if outputs:
                    if self.node:
                        found["node"] = outputs[0].grad_fn.name().rpartition("::")[2] if outputs[0].grad_fn is not None else None
                    found |= derivatives(lib, outputs, leaves, 2 if self.dtype == "float64" else 1)
            except Exception as error:  # noqa: BLE001
                found = {"raised": [type(error).__name__, str(error)]}
        texts = [
            str(w.message)
            for w in warned
            if issubclass(w.category, (UserWarning, RuntimeWarning)) and ("is in beta" not in str(w.message))
        ]  # torch gives this warning once per process
        return found | ({"warned": texts} if texts else {})


def rows_for(inputs: dict[str, Input] | list[dict[str, Input]], lines: str | Iterable[str]) -> Iterator[Row]:
    """Yield a row for each line, each set of inputs and each dtype."""
    for line in lines.splitlines() if isinstance(lines, str) else lines:
        text = line.strip()
        if text and not text.startswith("#"):
            for one in inputs if isinstance(inputs, list) else [inputs]:
                used = tuple(one.items())
                for dtype in ("float64", "float32"):
                    yield Row(text.removeprefix("~").strip(), used, dtype, not text.startswith("~"))


def flatten(result: Any) -> Iterator[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from flatten(part)
    else:
        yield result


def weights(shape: tuple[int, ...], k: int) -> np.ndarray:
    """Return fixed weights with absolute values up to 1, without a regular pattern."""
    count = int(np.prod(shape))
    return np.cos(np.arange(1, count + 1) * (0.7 + k)).reshape(shape)


def derivatives(lib: Any, outputs: list[Any], leaves: list[Any], order: int) -> dict[str, Any]:
    """Return sketches of the gradients of a weighted sum of the outputs, and of the second derivatives if `order` is 2."""
    found: dict[str, Any] = {}
    for name in ("gradients", "second derivatives")[:order]:
        total = None
        for k, y in enumerate(outputs):
            w = lib.from_numpy(np.array(weights(tuple(y.shape), k))).to(y.dtype)
            total = (y * w).sum() if total is None else total + (y * w).sum()
        gradients = lib.autograd.grad(total, leaves, create_graph=order == 2 and name == "gradients", allow_unused=True)
        found[name] = [sketch(lib, g) for g in gradients]
        outputs = [g for g in gradients if g is not None and g.requires_grad]
        if not outputs:
            break
    return found


def sketch(lib: Any, result: Any) -> Any:
    """Return a small summary of a result as plain data."""
    if isinstance(result, dict):
        return {str(k): sketch(lib, v) for k, v in result.items()}
    if isinstance(result, (tuple, list)):
        return [sketch(lib, part) for part in result]
    if not lib.is_tensor(result):
        return (
            float(result)
            if isinstance(result, float)
            else result
            if isinstance(result, (bool, int, str, type(None)))
            else str(result)
        )
    array = result.numpy(force=True)  # (torch represents some zeros without storing them)
    shape = list(array.shape)
    if array.dtype.kind != "f":
        return {
            "dtype": str(array.dtype),
            "shape": shape,
            "values": array.tolist()
            if array.size <= 32
            else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16],
        }
    odd = np.where(np.isnan(array), 3, np.where(np.isposinf(array), 1, np.where(np.isneginf(array), 2, 0)))
    numbers = np.where(odd, 0, array).astype(np.float64)
    sums = np.abs(numbers).sum(), *((numbers * weights(array.shape, k)).sum() for k in (2, 3))
    made = {"dtype": str(array.dtype), "shape": shape, "sums": [float(f"{s:.12g}") for s in sums]}
    return made | ({"odd": "".join(map(str, odd.ravel().tolist()))} if odd.any() else {})
