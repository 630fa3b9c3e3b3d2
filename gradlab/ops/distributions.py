"""Random draws with probabilities, means or standard deviations given by tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, namespace_of, namespace_on, wrap
from gradlab.core.dtypes import as_numpy_dtype, dtype
from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.operator import composite
from gradlab.core.out_argument import copy_to_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.broadcasting import expand
from gradlab.ops.creation_arguments import Device, make_leaf, parse_size, resolve_device
from gradlab.ops.generators import Generator, find_engine
from gradlab.ops.random_sampling import NORMAL_KERNEL, require_floating
from gradlab.rules.draws import DRAW_OF_NODE

__all__ = ["bernoulli", "multinomial", "normal"]


def record_draw(x: Tensor, values: Any, node: str) -> Tensor:
    """Record drawn values as a function of `x` with gradient 0, as PyTorch does."""
    if (x.node is not None and mode.grad) or OBSERVERS:
        return DRAW_OF_NODE[node].record(x, values=values)
    return constant(values)


def _write_out(name: str, out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else copy_to_out(name, out, result)


@composite()
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
    """Draw binary random numbers (0 or 1) from a Bernoulli distribution.

    Parameters
    ----------
    input : Tensor
        Probabilities of drawing 1, floating point, of any shape.
    p : float, optional
        Probability for all elements, used instead of `input`.
    generator : Generator, optional
        Random number generator. Default: the default generator.
    out : Tensor, optional
        Tensor to write the result to; it is returned.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`. The gradient of `input` is 0.

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
        raise wrong_type("bernoulli", "input", 1, "Tensor", input)
    array = input.array
    engine = find_engine("bernoulli", generator, namespace_of[type(array)])
    if p is None:
        chances = namespace_on(CPU).asarray(input.detach().cpu().array)
        if array.dtype.kind != "f":
            require_floating(array.dtype, "bernoulli_tensor_cpu_p_")
        drawn = engine.bernoulli(chances)
    else:
        drawn = engine.bernoulli(float(p), array.shape)
    result = namespace_of[type(array)].asarray(drawn.astype(array.dtype))
    return _write_out("bernoulli", out, record_draw(input, result, "BernoulliBackward0" if p is None else "NotImplemented"))


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
    """Draw random numbers from normal distributions.

    Parameters
    ----------
    mean : Tensor or float, default: 0
        Means.
    std : Tensor or float, default: 1
        Standard deviations. If both are tensors, their shapes must broadcast.
    size : sequence of int, optional
        Shape, if both are numbers.
    generator : Generator, optional
        Random number generator. Default: the default generator.
    out : Tensor, optional
        Tensor to write the result to; it is returned.
    dtype : dtype, optional
        Dtype of the result, if both are numbers.
    layout, pin_memory : optional
        Accepted for compatibility with PyTorch; they have no effect.
    device : device, optional
        Device of the result.
    requires_grad : bool, default: False
        Whether the result requires a gradient.

    Returns
    -------
    Tensor
        Broadcast shape of `mean` and `std`, or `size`.

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
    engine = find_engine(
        "normal", generator, namespace_of[type(tensors[0].array)] if tensors else namespace_on(resolve_device(device))
    )
    if not all(isinstance(x, (int, float, Tensor)) for x in (mean, std)) or (size is None) != bool(tensors):
        raise invalid_combination("normal", (mean, std, *(() if size is None else (size,))), *NORMALS)
    if not tensors:
        shape = parse_size("normal", (size,))
        wanted = require_floating(None if dtype is None else as_numpy_dtype(dtype, "normal"), NORMAL_KERNEL)
        result = make_leaf(engine.normal(shape, wanted, mean=float(mean), std=float(std)), device, requires_grad)
        return _write_out("normal", out, result)
    for x in tensors:
        require_floating(x.array.dtype, NORMAL_KERNEL)
    like = tensors[0].array
    xp = namespace_of[type(like)]
    m, s = (x.array if isinstance(x, Tensor) else x for x in (mean, std))
    if isinstance(std, Tensor) and bool((s < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0. The smallest is " + f"{float(s.min()):g}.")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    both = tensors[0] + tensors[-1]  # raises torch's error if they do not broadcast
    shape = both.array.shape
    drawn = wrap(xp.asarray(engine.normal(shape, like.dtype)) * s + m)
    node = f"NormalBackward{1 if not isinstance(std, Tensor) else 3 if isinstance(mean, Tensor) else 2}"
    recorded = [x for x in tensors if x.node is not None]
    source = both if len(recorded) > 1 else expand((recorded or tensors)[0], shape)
    return _write_out("normal", out, record_draw(source, xp.asarray(drawn, dtype=like.dtype), node))


@composite()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Draw indices with probabilities proportional to weights.

    Parameters
    ----------
    input : Tensor
        Non-negative weights of shape (n,) or (m, n), floating point.
    num_samples : int
        Number of draws from each row.
    replacement : bool, default: False
        Whether an index may be drawn more than once.
    generator : Generator, optional
        Random number generator. Default: the default generator.
    out : Tensor, optional
        Tensor to write the result to; it is returned.

    Returns
    -------
    Tensor
        Indices of shape (num_samples,) or (m, num_samples), int64.

    Raises
    ------
    RuntimeError
        If a weight is negative or not finite, or `num_samples` exceeds n without replacement.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.multinomial(gl.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    if not isinstance(input, Tensor):
        raise wrong_type("multinomial", "input", 1, "Tensor", input)
    engine, weights = find_engine("multinomial", generator, namespace_of[type(input.array)]), input.detach().cpu().array
    if weights.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.word}. Call .float().")
    if weights.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim. Got shape {list(weights.shape)}.")
    if not num_samples > 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement. Expected at most "
            f"{weights.shape[-1]}, got {num_samples}. Use replacement=True if an index may be drawn more than once."
        )
    if not replacement or num_samples == 1:
        if not bool(np.isfinite(weights).all()) or bool((weights < 0).any()):
            raise RuntimeError(
                "probability tensor contains either `inf`, `nan` or element < 0. Pass probabilities or non-negative "
                "weights, such as the output of softmax."
            )
    elif not bool((weights >= 0).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0). It may also be NaN.")
    elif not bool(np.isfinite(weights).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    if bool((weights.sum(-1) <= 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    drawn = engine.multinomial(weights, num_samples, replacement)
    return _write_out("multinomial", out, constant(namespace_of[type(input.array)].asarray(drawn)))
