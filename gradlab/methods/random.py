"""Methods that fill a tensor with random numbers, such as `x.normal_()`. The overwritten values get a gradient of 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core import inplace
from gradlab.core.errors import overlapping_memory
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor
from gradlab.ops import random_sampling
from gradlab.ops.broadcasting import expand
from gradlab.ops.generators import Generator, find_engine
from gradlab.ops.random_sampling import draw_integers, draw_into, require_floating
from gradlab.rules.draws import DRAW_OF_NODE


def redraw(self: Tensor, node: str, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Tensor:
    """Fill the tensor with `draw(shape)`, in the order of its memory, and record the node that torch records."""
    inplace.check_writable(self)
    array = self.array
    if not is_writable(array):
        raise overlapping_memory()

    def in_dtype(shape: tuple[int, ...]) -> np.ndarray:
        values = draw(shape)
        if array.dtype.itemsize == 2 and values.dtype.itemsize == 8:
            values = values.astype(np.float32)  # torch converts float64 to float16 via float32
        return values.astype(array.dtype, copy=False)

    if (mode.grad and self.node is not None) or OBSERVERS:
        return inplace.in_place(DRAW_OF_NODE[node], self, values=draw_into(namespace_of[type(array)].empty_like(array), in_dtype))
    draw_into(array, in_dtype)
    mark_written(self)
    return self


def check_floating_point(self: Tensor, what: str, word: str) -> None:
    """Raise unless the tensor holds floating point numbers."""
    if self.array.dtype.kind != "f":
        raise RuntimeError(
            f"{what} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {word}"
        )


def engine_for(self: Tensor, name: str, generator: Generator | None) -> MersenneTwister:
    """Return the engine that draws for a tensor."""
    return find_engine(name, generator, namespace_of[type(self.array)])


class Random:
    """In-place sampling methods. They draw from `generator` or from the default generator."""

    array: Any

    def uniform_(self, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **named: float) -> Tensor:
        """Fill the tensor with numbers sampled from the uniform distribution on [from, to).

        Parameters
        ----------
        from_, to : float
            The bounds. The first may also be passed as `from`, by ``**{"from": 0}``.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.
        **named : optional
            `from`, as another name of `from_`.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient or is not floating point.

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
        engine = engine_for(self, "uniform_", generator)
        dtype = require_floating(self.array.dtype, random_sampling.UNIFORM_KERNEL)
        return redraw(self, "UniformBackward0", lambda shape: engine.uniform(shape, dtype, float(low), float(to)))

    def normal_(self, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
        """Fill the tensor with numbers sampled from a normal distribution.

        Parameters
        ----------
        mean : float, default: 0
            The mean.
        std : float, default: 1
            The standard deviation.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).normal_()
        tensor([ 1.5410, -0.2934, -2.1788])
        """
        engine, dtype = engine_for(self, "normal_", generator), require_floating(self.array.dtype, random_sampling.NORMAL_KERNEL)
        contiguous = self.array.flags.c_contiguous
        return redraw(self, "NormalBackward0", lambda shape: engine.normal(shape, dtype, float(mean), float(std), contiguous))

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill the tensor with samples from a Bernoulli distribution: 1 with probability `p`, 0 otherwise.

        Parameters
        ----------
        p : float or Tensor, default: 0.5
            The probability of 1, for all elements or for each element.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

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
            inplace.store(self, DRAW_OF_NODE["BernoulliBackward1"].record(expand(p, self.array.shape), values=drawn))
            return self
        return inplace.in_place(DRAW_OF_NODE["BernoulliBackward1"], self, values=drawn)

    def random_(
        self, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None, **named: int
    ) -> Tensor:
        """Fill the tensor with integers sampled uniformly from [from, to).

        Parameters
        ----------
        from_ : int, optional
            The lower bound. If it is the only argument it is the upper bound: `random_(10)` draws from 0 to 9.
        to : int, optional
            The upper bound, which is excluded. Without bounds, integers are drawn from 0 to the largest number up
            to which the dtype represents every integer.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.
        **named : optional
            `from`, as another name of `from_`.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

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
            return redraw(self, "RandomBackward2", lambda shape: draw_whole_range(engine, dtype, shape))
        bounds = (0, low) if to is None else (0 if low is None else low, to)
        return redraw(
            self,
            "RandomBackward0" if low is not None and to is not None else "RandomBackward1",
            lambda shape: draw_integers(engine, int(bounds[0]), int(bounds[1]), shape, dtype),
        )

    def exponential_(self, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
        """Fill the tensor with numbers sampled from an exponential distribution.

        Parameters
        ----------
        lambd : float, default: 1
            The rate.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).exponential_()
        tensor([3.5083, 1.2304, 0.6150])
        """
        check_floating_point(self, "Exponential", self.dtype.word)
        engine = engine_for(self, "exponential_", generator)
        return redraw(self, "ExponentialBackward0", lambda shape: engine.exponential(shape, lambd))

    def geometric_(self, p: float, *, generator: Generator | None = None) -> Tensor:
        """Fill the tensor with numbers sampled from a geometric distribution: the number of trials until the first success.

        Parameters
        ----------
        p : float
            The probability of success, between 0 and 1.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

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
        """Fill the tensor with numbers sampled from a Cauchy distribution.

        Parameters
        ----------
        median : float, default: 0
            The median.
        sigma : float, default: 1
            Half the distance between the quartiles.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).cauchy_()
        tensor([10.5977,  0.7648, -0.1283])
        """
        check_floating_point(self, "Cauchy", self.dtype.c_name)
        engine = engine_for(self, "cauchy_", generator)
        return redraw(self, "CauchyBackward0", lambda shape: engine.cauchy(shape, median, sigma))

    def log_normal_(self, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
        """Fill the tensor with numbers sampled from a log-normal distribution.

        Parameters
        ----------
        mean : float, default: 1
            The mean of the underlying normal distribution.
        std : float, default: 2
            The standard deviation of the underlying normal distribution.
        generator : Generator, optional
            Random number generator to use. Defaults to the default generator.

        Returns
        -------
        Tensor
            This tensor. The previous values get a gradient of 0.

        Raises
        ------
        RuntimeError, NotImplementedError
            If this tensor is a leaf that requires a gradient or is not floating point.

        Examples
        --------
        >>> import gradlab as gl
        >>> _ = gl.manual_seed(0)
        >>> gl.empty(3).log_normal_()
        tensor([5.9263e+01, 1.5116e+00, 3.4819e-02])
        """
        require_floating(self.array.dtype, "log_normal_cpu")
        engine = engine_for(self, "log_normal_", generator)
        return redraw(self, "LogNormalBackward0", lambda shape: engine.log_normal(shape, mean, std))


def draw_whole_range(engine: MersenneTwister, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Draw integers from 0 to the largest number up to which the dtype represents every integer."""
    if dtype.kind == "f":
        most, wide = 2 ** (np.finfo(dtype).nmant + 1), dtype.itemsize == 8
    else:
        most, wide = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max), dtype.itemsize == 8
    return engine.randint(0, most + 1, shape, wide)
