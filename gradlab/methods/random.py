"""Draws into a tensor's memory: `x.normal_()` and its kind. A draw forgets what the tensor was, so its gradient is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core import inplace
from gradlab.core.errors import shared_place
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor
from gradlab.ops import random_sampling
from gradlab.ops.broadcasting import expand
from gradlab.ops.generators import Generator, engine_of
from gradlab.ops.random_sampling import drawn_into, floating, integers
from gradlab.rules.draws import NODES


def redraw(self: Tensor, node: str, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Tensor:
    """Fill the tensor, in the order of its memory, with what `draw` makes of a shape, and record it as torch does."""
    inplace.check_writable(self)
    array = self.array
    if not is_writable(array):
        raise shared_place()

    def in_dtype(shape: tuple[int, ...]) -> np.ndarray:
        values = draw(shape)
        if array.dtype.itemsize == 2 and values.dtype.itemsize == 8:
            values = values.astype(np.float32)  # float64 to float16 goes by float32 in torch
        return values.astype(array.dtype, copy=False)

    if (mode.grad and self.node is not None) or OBSERVERS:
        return inplace.in_place(NODES[node], self, values=drawn_into(namespace_of[type(array)].empty_like(array), in_dtype))
    drawn_into(array, in_dtype)
    wrote(self)
    return self


def continuous(self: Tensor, what: str, word: str) -> None:
    """Raise unless the tensor holds floating point numbers."""
    if self.array.dtype.kind != "f":
        raise RuntimeError(
            f"{what} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {word}"
        )


def engine_for(self: Tensor, name: str, generator: Generator | None) -> MersenneTwister:
    """What is drawn from for a tensor."""
    return engine_of(name, generator, namespace_of[type(self.array)])


class Random:
    """In place, from `generator` or from the default stream."""

    array: Any

    def uniform_(self, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **named: float) -> Tensor:
        """Uniform numbers in [from, to), in place.

        Parameters
        ----------
        from_, to : float
            The bounds; the first may be called `from` in `**{"from": 0}`.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.
        **named : optional
            `from`.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient, or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).uniform_()
        tensor([0.4963, 0.7682, 0.0885])
        """
        low = named.pop("from", from_)
        if named:
            raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(named))}'")
        engine, dtype = engine_for(self, "uniform_", generator), floating(self.array.dtype, random_sampling.UNIFORM)
        return redraw(self, "UniformBackward0", lambda shape: engine.uniform(shape, dtype, float(low), float(to)))

    def normal_(self, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
        """Normal numbers, in place.

        Parameters
        ----------
        mean : float, default 0
            The mean.
        std : float, default 1
            The standard deviation.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient, or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).normal_()
        tensor([ 1.5410, -0.2934, -2.1788])
        """
        engine, dtype = engine_for(self, "normal_", generator), floating(self.array.dtype, random_sampling.NORMAL)
        contiguous = self.array.flags.c_contiguous
        return redraw(self, "NormalBackward0", lambda shape: engine.normal(shape, dtype, float(mean), float(std), contiguous))

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """1 with a probability, else 0, in place.

        Parameters
        ----------
        p : float or Tensor, default 0.5
            The probability, or one for each element.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError
            If this tensor is a leaf that requires a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).bernoulli_(0.5)
        tensor([0., 0., 1.])
        """
        engine = engine_for(self, "bernoulli_", generator)
        if not isinstance(p, Tensor):
            return redraw(self, "BernoulliBackward2", lambda shape: engine.bernoulli(float(p), shape))
        chances = np.broadcast_to(p.detach().cpu().array, self.array.shape)
        if chances.dtype.kind != "f":
            raise RuntimeError(f"bernoulli_ expects p to be floating point, got {p.dtype}. Call p.float().")
        drawn = namespace_of[type(self.array)].asarray(engine.bernoulli(chances).astype(self.array.dtype))
        if p.node is not None and self.node is None and mode.grad:
            inplace.check_writable(self)
            inplace.store(self, NODES["BernoulliBackward1"].record(expand(p, self.array.shape), values=drawn))
            return self
        return inplace.in_place(NODES["BernoulliBackward1"], self, values=drawn)

    def random_(
        self, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None, **named: int
    ) -> Tensor:
        """Integers, in place.

        Parameters
        ----------
        from_ : int, optional
            The least; alone, the bound: `random_(10)` is below 10.
        to : int, optional
            The bound, which is not reached. Without both, of the dtype's whole range from 0.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.
        **named : optional
            `from`.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError
            If this tensor is a leaf that requires a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).random_(10)
        tensor([4., 9., 3.])
        """
        low, engine, dtype = named.pop("from", from_), engine_for(self, "random_", generator), self.array.dtype
        if named:
            raise TypeError(f"random_() got an unexpected keyword argument '{next(iter(named))}'")
        if low is None and to is None:
            return redraw(self, "RandomBackward2", lambda shape: whole_range(engine, dtype, shape))
        bounds = (0, low) if to is None else (0 if low is None else low, to)
        return redraw(
            self,
            "RandomBackward0" if low is not None and to is not None else "RandomBackward1",
            lambda shape: integers(engine, int(bounds[0]), int(bounds[1]), shape, dtype),
        )

    def exponential_(self, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
        """Exponential numbers, in place.

        Parameters
        ----------
        lambd : float, default 1
            The rate.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient, or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).exponential_()
        tensor([3.5083, 1.2304, 0.6150])
        """
        continuous(self, "Exponential", self.dtype.word)
        engine = engine_for(self, "exponential_", generator)
        return redraw(self, "ExponentialBackward0", lambda shape: engine.exponential(shape, lambd))

    def geometric_(self, p: float, *, generator: Generator | None = None) -> Tensor:
        """How many trials it took to succeed, in place.

        Parameters
        ----------
        p : float
            The probability of success, between 0 and 1.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError
            If this tensor is a leaf that requires a gradient.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).geometric_(0.5)
        tensor([1., 1., 2.])
        """
        engine = engine_for(self, "geometric_", generator)
        return redraw(self, "GeometricBackward0", lambda shape: engine.geometric(shape, p))

    def cauchy_(self, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
        """Cauchy numbers, in place.

        Parameters
        ----------
        median : float, default 0
            The median.
        sigma : float, default 1
            Half the distance between the quartiles.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient, or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).cauchy_()
        tensor([10.5977,  0.7648, -0.1283])
        """
        continuous(self, "Cauchy", self.dtype.c_name)
        engine = engine_for(self, "cauchy_", generator)
        return redraw(self, "CauchyBackward0", lambda shape: engine.cauchy(shape, median, sigma))

    def log_normal_(self, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
        """Numbers whose logarithms are normal, in place.

        Parameters
        ----------
        mean : float, default 1
            The mean of the logarithms.
        std : float, default 2
            Their standard deviation.
        generator : Generator, optional
            The stream that is drawn from; the default one if it is left out.

        Returns
        -------
        Tensor
            This tensor. What it was is forgotten: the gradient that goes on is 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient, or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).log_normal_()
        tensor([5.9263e+01, 1.5116e+00, 3.4819e-02])
        """
        floating(self.array.dtype, "log_normal_cpu")
        engine = engine_for(self, "log_normal_", generator)
        return redraw(self, "LogNormalBackward0", lambda shape: engine.log_normal(shape, mean, std))


def whole_range(engine: MersenneTwister, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Integers from 0 to the largest that the dtype has without gaps."""
    if dtype.kind == "f":
        most, wide = 2 ** (np.finfo(dtype).nmant + 1), dtype.itemsize == 8
    else:
        most, wide = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max), dtype.itemsize == 8
    return engine.randint(0, most + 1, shape, wide)
