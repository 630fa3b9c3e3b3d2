"""Streams of random numbers: torch's own CPU stream, so that a seed gives the numbers a course's text prints.

A GPU draws from the same stream, unless `cuda.manual_seed` has given it one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradlab.backend import streams
from gradlab.backend.mersenne import MersenneTwister
from gradlab.core.errors import expected
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, place

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


class Generator:
    """A random stream of its own.

    Parameters
    ----------
    device : device, default "cpu"
        Where what is drawn from it is.

    Examples
    --------
    >>> import gradlab as gl
    >>> stream = gl.Generator().manual_seed(0)
    >>> a = gl.rand(2, generator=stream)
    >>> b = gl.rand(2, generator=gl.Generator().manual_seed(0))
    >>> bool((a == b).all())
    True
    """

    __module__ = "gradlab"

    def __init__(self, device: Device = "cpu") -> None:
        self.device, self.engine = place(device), MersenneTwister()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to a seed.

        Parameters
        ----------
        seed : int
            Which one; negative ones count from 2**64.

        Returns
        -------
        Generator
            The generator itself.

        Raises
        ------
        RuntimeError
            If the seed has more than 64 bits.

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> generator.manual_seed(3).initial_seed()
        3
        """
        self.engine.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Start the stream of a seed that the operating system draws.

        Returns
        -------
        int
            The seed.

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> generator.seed() == generator.initial_seed()
        True
        """
        return self.engine.seed()

    def initial_seed(self) -> int:
        """The seed that the stream was started with.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> generator.manual_seed(5).initial_seed()
        5
        """
        return self.engine.initial_seed()

    def get_state(self) -> Tensor:
        """The stream's present state.

        Returns
        -------
        Tensor
            As torch lays it out, uint8 of shape (5056).

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> state = generator.get_state()
        >>> first = gl.rand(2, generator=generator)
        >>> generator.set_state(state)
        >>> gl.equal(gl.rand(2, generator=generator), first)
        True
        """
        return constant(self.engine.get_state())

    def set_state(self, new_state: Tensor) -> None:
        """Go on from a state.

        Parameters
        ----------
        new_state : Tensor
            What `get_state` returned, here or in torch.

        Returns
        -------
        None

        Raises
        ------
        TypeError, RuntimeError
            If it is none.

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> generator.set_state(gl.Generator().manual_seed(7).get_state())
        >>> generator.initial_seed()
        7
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a gradlab.ByteTensor, but got {type(new_state).__name__}")
        self.engine.set_state(new_state.array)

    def clone_state(self) -> Generator:
        """Another generator in this one's state.

        Returns
        -------
        Generator

        Examples
        --------
        >>> import gradlab as gl
        >>> generator = gl.Generator()
        >>> other = generator.clone_state()
        >>> gl.equal(gl.rand(2, generator=other), gl.rand(2, generator=generator))
        True
        """
        twin = Generator(self.device)
        twin.set_state(self.get_state())
        return twin

    graphsafe_get_state = clone_state


default_generator = Generator()
default_generator.engine = streams.default


def manual_seed(seed: int) -> Generator:
    """Start the default stream over: the same seed gives the same numbers.

    Parameters
    ----------
    seed : int
        On the CPU the numbers are those that torch draws from it. GPUs draw from it again, too.

    Returns
    -------
    Generator
        The default stream.

    Raises
    ------
    ValueError
        If it is no integer of 64 bits.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.rand(2)
    tensor([0.4963, 0.7682])
    """
    streams.of_gpus.clear()
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default stream from a seed that the operating system draws.

    Returns
    -------
    int
        The seed.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.seed() == gl.initial_seed()
    True
    """
    streams.of_gpus.clear()
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream.

    Returns
    -------
    int

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(7)
    >>> gl.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream.

    Returns
    -------
    Tensor
        uint8, for `set_rng_state`.

    Examples
    --------
    >>> import gradlab as gl
    >>> state = gl.get_rng_state()
    >>> state.dtype
    gradlab.uint8
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go on from a state of the default stream.

    Parameters
    ----------
    new_state : Tensor
        What `get_rng_state` returned.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If it is no such state.

    Examples
    --------
    >>> import gradlab as gl
    >>> state = gl.get_rng_state()
    >>> a = gl.rand(2)
    >>> gl.set_rng_state(state)
    >>> bool((gl.rand(2) == a).all())
    True
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Draws inside the `with` block leave the default stream, and those of the GPUs, as they were before."""
    before = streams.states() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            streams.go_on_from(before)


def engine_of(name: str, generator: Any, xp: Any = np) -> MersenneTwister:
    """The engine of a generator, or of what arrays of the namespace `xp` are drawn from without one."""
    if generator is None:
        return streams.stream(xp)
    if not isinstance(generator, Generator):
        raise expected(name, "generator", None, "gradlab.Generator", generator)
    return generator.engine
