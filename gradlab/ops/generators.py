"""Random number generators with the stream of PyTorch's CPU generator, so a seed reproduces the numbers printed in a course.

A GPU draws from the same stream, unless `cuda.manual_seed` has given it its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradlab.backend import streams
from gradlab.backend.mersenne import MersenneTwister
from gradlab.core.errors import wrong_type
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, resolve_device

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
    """Random number generator with its own state.

    Parameters
    ----------
    device : device, default: "cpu"
        Device of the tensors drawn from it.

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
        self.device, self.engine = resolve_device(device), MersenneTwister()

    def manual_seed(self, seed: int) -> Generator:
        """Restart the generator from a seed.

        Parameters
        ----------
        seed : int
            Seed. 2**64 is added to a negative one.

        Returns
        -------
        Generator
            This generator.

        Raises
        ------
        ValueError
            If `seed` is not from -2**63 to 2**64 - 1.

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
        """Restart the generator from a seed drawn by the operating system.

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
        """Return the seed of the generator.

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
        """Return the current state of the generator.

        Returns
        -------
        Tensor
            State in PyTorch's layout: uint8, of shape (5056).

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
        """Set the state of the generator.

        Parameters
        ----------
        new_state : Tensor
            State returned by `get_state`, here or in PyTorch.

        Returns
        -------
        None

        Raises
        ------
        TypeError, RuntimeError
            If `new_state` is not a valid state.

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
        """Return another generator with the same state.

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
    """Restart the default generator from a seed.

    Parameters
    ----------
    seed : int
        Seed. On the CPU, the numbers equal PyTorch's for the same seed. GPUs draw from the default generator again.

    Returns
    -------
    Generator
        The default generator.

    Raises
    ------
    ValueError
        If `seed` is not from -2**63 to 2**64 - 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.rand(2)
    tensor([0.4963, 0.7682])
    """
    streams.gpu_streams.clear()
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the default generator from a seed drawn by the operating system.

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
    streams.gpu_streams.clear()
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator.

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
    """Return the state of the default generator.

    Returns
    -------
    Tensor
        State to pass to `set_rng_state`, uint8.

    Examples
    --------
    >>> import gradlab as gl
    >>> state = gl.get_rng_state()
    >>> state.dtype
    gradlab.uint8
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator.

    Parameters
    ----------
    new_state : Tensor
        State returned by `get_rng_state`.

    Returns
    -------
    None

    Raises
    ------
    TypeError, RuntimeError
        If `new_state` is not a valid state.

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
    """Restore the states of the default generator and of the GPUs' generators at the end of the `with` block."""
    before = streams.get_states() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            streams.restore_states(before)


def find_engine(name: str, generator: Any, xp: Any = np) -> MersenneTwister:
    """Return the engine of a generator, or the default engine for arrays of the namespace `xp`."""
    if generator is None:
        return streams.stream(xp)
    if not isinstance(generator, Generator):
        raise wrong_type(name, "generator", None, "gradlab.Generator", generator)
    return generator.engine
