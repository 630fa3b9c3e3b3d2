"""Random numbers: torch's own CPU stream, so that a seed gives the numbers a course's text prints."""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.core.dtypes import as_numpy_dtype, default, dtype
from gradlab.core.tensor import Tensor, constant
from gradlab.creation import Device, placed, sizes


class Generator:
    """A random stream of its own: `Generator().manual_seed(0)`."""

    def __init__(self, device: Device = "cpu") -> None:
        self.engine = MersenneTwister()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`."""
        self.engine.manual_seed(seed)
        return self

    def initial_seed(self) -> int:
        """The seed the stream was started with."""
        return self.engine.initial_seed()

    def get_state(self) -> Tensor:
        """The stream's present state, as torch lays it out (uint8)."""
        return constant(self.engine.get_state())

    def set_state(self, state: Tensor) -> None:
        """Go on from a state that `get_state` returned."""
        self.engine.set_state(state.array)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the default stream over: the same seed gives the same numbers, and on the CPU they are torch's."""
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def _engine(generator: Generator | None) -> MersenneTwister:
    return (default_generator if generator is None else generator).engine


def _float(wanted: Any) -> np.dtype:
    numpy = as_numpy_dtype(wanted)
    return default.float if numpy is None else numpy


def rand(*shape: Any, size: Any = None, generator: Generator | None = None, dtype: dtype | None = None,
         device: Device = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers in [0, 1)."""
    return placed(_engine(generator).uniform(sizes("rand", shape, size), _float(dtype)), device, requires_grad)


def randn(*shape: Any, size: Any = None, generator: Generator | None = None, dtype: dtype | None = None,
          device: Device = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers."""
    return placed(_engine(generator).normal(sizes("randn", shape, size), _float(dtype)), device, requires_grad)


def randint(*bounds: Any, low: int = 0, high: int | None = None, size: Any = None, generator: Generator | None = None,
            dtype: dtype | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Integers from low (0 if left out) up to but not including high: `randint(high, size)` or `randint(low, high, size)`."""
    if size is None and bounds:
        bounds, size = bounds[:-1], bounds[-1]
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' (position {len(bounds) + 1}) must be tuple of ints, not "
                        f"{type(size).__name__}")
    low, high = (*bounds, high)[:2] if len(bounds) > 1 else (low, bounds[0]) if bounds and high is None else (
        bounds[0] if bounds else low, high)
    if high is None:
        raise TypeError('randint() missing 1 required positional arguments: "high"')
    numpy = as_numpy_dtype(dtype)
    drawn = _engine(generator).randint(low, high, sizes("randint", (size,)))
    return placed(drawn if numpy is None else drawn.astype(numpy), device, requires_grad)


def randperm(n: int, *, generator: Generator | None = None, dtype: dtype | None = None, device: Device = None) -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    numpy = as_numpy_dtype(dtype)
    drawn = _engine(generator).randperm(n)
    return placed(drawn if numpy is None else drawn.astype(numpy), device, False)


def rand_like(input: Tensor, *, requires_grad: bool = False) -> Tensor:
    """Uniform numbers in the shape, dtype and device of `input`."""
    return rand(input.array.shape, dtype=input.dtype, device=input.device, requires_grad=requires_grad)


def randn_like(input: Tensor, *, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers in the shape, dtype and device of `input`."""
    return randn(input.array.shape, dtype=input.dtype, device=input.device, requires_grad=requires_grad)
