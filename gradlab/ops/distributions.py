"""Draws whose probabilities, means or deviations are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, namespace_of, namespace_on, wrap
from gradlab.core.dtypes import as_numpy_dtype, dtype
from gradlab.core.errors import expected, invalid_combination
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.operator import composed
from gradlab.core.out_argument import into
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.broadcasting import expand
from gradlab.ops.creation_arguments import Device, place, placed, sizes
from gradlab.ops.generators import Generator, engine_of
from gradlab.ops.random_sampling import NORMAL, floating
from gradlab.rules.draws import NODES

__all__ = ["bernoulli", "multinomial", "normal"]


def sampled(x: Tensor, values: Any, node: str) -> Tensor:
    """Drawn values as a function of `x`: torch records the draw, with a gradient of 0."""
    if (x.node is not None and mode.grad) or OBSERVERS:
        return NODES[node].record(x, values=values)
    return constant(values)


def _finished(name: str, out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else into(name, out, result)


@composed()
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """1 with a probability, else 0, for each element.

    Parameters
    ----------
    input : Tensor
        The probabilities, floating point, of any shape.
    p : float, optional
        The probability everywhere, in place of them.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.
    out : Tensor, optional
        Where the result is written, and what is returned.

    Returns
    -------
    Tensor
        The shape and the dtype of `input`. The gradient that comes back is 0.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1, or `input` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.bernoulli(gl.full((4,), 0.5))
    tensor([1., 0., 1., 1.])
    """
    if not isinstance(input, Tensor):
        raise expected("bernoulli", "input", 1, "Tensor", input)
    array = input.array
    engine = engine_of("bernoulli", generator, namespace_of[type(array)])
    if p is None:
        chances = namespace_on(CPU).asarray(input.detach().cpu().array)
        if array.dtype.kind != "f":
            floating(array.dtype, "bernoulli_tensor_cpu_p_")
        drawn = engine.bernoulli(chances)
    else:
        drawn = engine.bernoulli(float(p), array.shape)
    result = namespace_of[type(array)].asarray(drawn.astype(array.dtype))
    return _finished("bernoulli", out, sampled(input, result, "BernoulliBackward0" if p is None else "NotImplemented"))


NORMALS = (
    "(Tensor mean, Tensor std)",
    "(Tensor mean, float std = 1)",
    "(float mean, Tensor std)",
    "(float mean, float std, tuple of ints size)",
)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers, of means and standard deviations.

    Parameters
    ----------
    mean : Tensor or float, default 0
        The means.
    std : Tensor or float, default 1
        The standard deviations; of tensors the shapes broadcast.
    size : sequence of int, optional
        The shape, where both are numbers.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.
    out : Tensor, optional
        Where the result is written, and what is returned.
    dtype : dtype, optional
        The dtype of the result, where both are numbers.
    layout, pin_memory : optional
        Taken as torch takes them, and without effect.
    device : device, optional
        Where it is.
    requires_grad : bool, default False
        Whether gradients are wanted of the result.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If a standard deviation is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.normal(10.0, 0.1, (3,))
    tensor([10.1541,  9.9707,  9.7821])
    """
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    engine = engine_of("normal", generator, namespace_of[type(tensors[0].array)] if tensors else namespace_on(place(device)))
    if not all(isinstance(x, (int, float, Tensor)) for x in (mean, std)) or (size is None) != bool(tensors):
        raise invalid_combination("normal", (mean, std, *(() if size is None else (size,))), *NORMALS)
    if not tensors:
        shape = sizes("normal", (size,))
        wanted = floating(None if dtype is None else as_numpy_dtype(dtype, "normal"), NORMAL)
        result = placed(engine.normal(shape, wanted, mean=float(mean), std=float(std)), device, requires_grad)
        return _finished("normal", out, result)
    for x in tensors:
        floating(x.array.dtype, NORMAL)
    like = tensors[0].array
    xp = namespace_of[type(like)]
    m, s = (x.array if isinstance(x, Tensor) else x for x in (mean, std))
    if isinstance(std, Tensor) and bool((s < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0. The smallest is " + f"{float(s.min()):g}.")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    both = tensors[0] + tensors[-1]  # raises torch's error where they do not broadcast
    shape = both.array.shape
    drawn = wrap(xp.asarray(engine.normal(shape, like.dtype)) * s + m)
    node = f"NormalBackward{1 if not isinstance(std, Tensor) else 3 if isinstance(mean, Tensor) else 2}"
    recorded = [x for x in tensors if x.node is not None]
    source = both if len(recorded) > 1 else expand((recorded or tensors)[0], shape)
    return _finished("normal", out, sampled(source, xp.asarray(drawn, dtype=like.dtype), node))


@composed()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Indices that are drawn with probabilities proportional to weights.

    Parameters
    ----------
    input : Tensor
        The weights, (n,) or (m, n), floating point, none negative.
    num_samples : int
        How many are drawn from each row.
    replacement : bool, default False
        Whether an index may be drawn again.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.
    out : Tensor, optional
        Where the result is written, and what is returned.

    Returns
    -------
    Tensor
        (num_samples,) or (m, num_samples), int64.

    Raises
    ------
    RuntimeError
        If a weight is negative or not finite, or more are drawn than there are, without replacement.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.multinomial(gl.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    if not isinstance(input, Tensor):
        raise expected("multinomial", "input", 1, "Tensor", input)
    engine, weights = engine_of("multinomial", generator, namespace_of[type(input.array)]), input.detach().cpu().array
    if weights.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.word}. Call .float().")
    if weights.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim. It has shape {list(weights.shape)}.")
    if not num_samples > 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement. {num_samples} of "
            f"{weights.shape[-1]} were asked for: give replacement=True, if an index may come twice."
        )
    if not replacement or num_samples == 1:
        if not bool(np.isfinite(weights).all()) or bool((weights < 0).any()):
            raise RuntimeError(
                "probability tensor contains either `inf`, `nan` or element < 0. Give probabilities or weights, "
                "such as softmax makes of scores."
            )
    elif not bool((weights >= 0).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0). It may also be NaN.")
    elif not bool(np.isfinite(weights).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    if bool((weights.sum(-1) <= 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    drawn = engine.multinomial(weights, num_samples, replacement)
    return _finished("multinomial", out, constant(namespace_of[type(input.array)].asarray(drawn)))
