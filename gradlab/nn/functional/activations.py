"""Piecewise linear activations, with the names of `torch.nn.functional`, and helpers for all activations.

`inplace=True` and in-place twins such as `relu_` write into the argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core.inplace import in_place
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import document_twin_of, with_descriptions
from gradlab.ops import relu as relu_of
from gradlab.rules import activations as rules
from gradlab.rules import elementwise as el
from gradlab.rules import shapes

__all__ = [
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "softshrink",
    "threshold",
    "threshold_",
]

SELU = rules.elu.with_node("EluBackward0")
CELU = rules.elu.with_node("CeluBackward0")
RRELU = rules.leaky_relu.with_node("RreluWithNoiseBackward0")
DRAWN = el.mul.with_node("RreluWithNoiseBackward0")
IN_PLACE = {
    op: op.with_node(f"{op.node_name[:-1]}1")
    for op in (  # the names of torch's nodes for the in-place versions
        rules.elu,
        SELU,
        CELU,
        rules.leaky_relu,
        rules.threshold,
        RRELU,
        DRAWN,
    )
}


def run(op: Any, input: Tensor, inplace: bool, *others: Tensor, **meta: Any) -> Tensor:
    """Record the operation, in place if `inplace`."""
    if not inplace:
        return op.record(input, *others, **meta)
    if type(input) is not Tensor or input.array.dtype.kind != "f":
        op.record(input, *others, **meta)  # raise errors before writing
    return in_place(IN_PLACE.get(op, op), input, *others, **meta)


def number(function: str, name: str, position: int, value: Any) -> Any:
    """Convert a parameter to a Python number."""
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, (Tensor, np.generic)) and value.ndim == 0:
        return value.item()
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(
        f"{function}(): argument '{name}' (position {position}) must be Number, not {type(value).__name__}. Give a Python number."
    )


# -------------------------------------------------------------------------------------------------------- rectified units
@with_descriptions
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Replace negative elements by 0 (rectified linear unit).

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point or integers.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` holds bools, or if `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = \max(x, 0)

    The derivative at 0 is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-1.0, 0.0, 2.0])
    >>> F.relu(x)
    tensor([0., 0., 2.])
    """
    return in_place(el.relu, input) if inplace else relu_of(input)


@document_twin_of(relu)
def relu_(input: Tensor) -> Tensor:
    return in_place(el.relu, input)


@with_descriptions
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Clamp elements to [0, 6].

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point or integers.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` holds bools, or if `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = \min(\max(x, 0), 6)

    The derivative at 0 and at 6 is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.relu6(gl.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return clamp_elements("relu6", input, 0.0, 6.0, inplace)


@with_descriptions
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Clamp elements to [min_val, max_val].

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point or integers.
    min_val : float, default: -1.0
        The lower bound.
    max_val : float, default: 1.0
        The upper bound.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    ValueError
        If `min_val` is greater than `max_val`.
    RuntimeError
        If `input` holds bools, or if `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = \min(\max(x, \text{min\_val}), \text{max\_val})

    The derivative at the bounds is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-3.0, 0.5, 3.0])
    >>> F.hardtanh(x)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val. Got {min_val} and {max_val}.")
    return clamp_elements("hardtanh", input, min_val, max_val, inplace)


@document_twin_of(hardtanh)
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    return hardtanh(input, min_val, max_val, True)


def clamp_elements(name: str, input: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    if type(input) is Tensor and input.array.dtype.kind != "f":
        if input.array.dtype.kind == "b":
            raise RuntimeError("Bool inputs not supported for hardtanh. Call .float() first.")
        low, high = int(low), int(high)
    elif type(input) is not Tensor:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return run(rules.hardtanh, input, inplace, low=low, high=high)


@with_descriptions
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    r"""Replace elements that are not greater than a threshold by a constant.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point or integers.
    threshold : float
        Elements greater than this are kept.
    value : float
        Replacement for the other elements.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If `input` is not a Tensor, or `threshold` or `value` is not a number.
    NotImplementedError
        If `input` holds bools.
    RuntimeError
        If `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = x \text{ if } x > \text{threshold}, \text{ value otherwise}

    The derivative at the threshold is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-1.0, 0.5, 2.0])
    >>> F.threshold(x, 1.0, 0.0)
    tensor([0., 0., 2.])
    """
    bound, value = number("threshold", "threshold", 2, threshold), number("threshold", "value", 3, value)
    if type(input) is Tensor and input.array.dtype.kind in "iu":
        bound, value = int(bound), int(value)
    return run(rules.threshold, input, inplace, threshold=bound, value=value)


@document_twin_of(threshold)
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    return globals()["threshold"](input, threshold, value, True)


@with_descriptions
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    r"""Multiply negative elements by a small slope.

    Parameters
    ----------
    {floats}
    negative_slope : float, default: 0.01
        Factor of negative elements.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = \max(x, 0) + \text{negative\_slope} \cdot \min(x, 0)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-2.0, 3.0])
    >>> F.leaky_relu(x, 0.1)
    tensor([-0.2000,  3.0000])
    """
    return run(rules.leaky_relu, input, inplace, slope=number("leaky_relu", "negative_slope", 2, negative_slope))


@document_twin_of(leaky_relu)
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    return leaky_relu(input, negative_slope, True)


@composite()
@with_descriptions
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    r"""Multiply negative elements by a learned slope.

    Parameters
    ----------
    {floats}
    weight : Tensor
        Factor of negative elements: one number, or (C), one for each channel (the second axis).

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If the dtypes differ, `weight` has more than one axis, or its length is not the number of channels.
    NotImplementedError
        If the tensors hold integers or bools.

    Notes
    -----
    .. math:: y = \max(x, 0) + w \min(x, 0)

    He et al. (2015). The gradient of `weight` is the sum of the cotangent times x over the elements that are not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> w = gl.tensor([0.25], requires_grad=True)
    >>> F.prelu(gl.tensor([-2.0, 3.0]), w).sum().backward()
    >>> w.grad
    tensor([-2.])
    """
    for position, (name, x) in enumerate((("input", input), ("weight", weight)), start=1):
        if not isinstance(x, Tensor):
            raise TypeError(f"prelu(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}.")
    if input.array.dtype != weight.array.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.word} and {weight.dtype.word}. Convert one of "
            "them: weight.to(input.dtype)."
        )
    rank, parameters = input.array.ndim, weight.array.size
    if weight.array.ndim > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.array.ndim}. Its shape is {list(weight.array.shape)}."
        )
    if parameters != 1:
        if not rank:
            raise RuntimeError("Not allow zero-dim input tensor. With one weight, any number of axes is allowed.")
        channels = input.array.shape[1] if rank > 1 else 1
        if channels != parameters:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{parameters} and channel size = {channels}. The input's shape is {list(input.array.shape)}."
            )
    if weight.array.ndim and rank != 1:
        weight = shapes.reshape.record(weight, shape=(parameters, *[1] * (rank - 2)) if rank > 1 else ())
    return rules.prelu.record(input, weight)


@with_descriptions
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    r"""Multiply negative elements by random slopes.

    Parameters
    ----------
    {floats}
    lower : float, default: 1/8
        Smallest factor of negative elements.
    upper : float, default: 1/3
        Largest factor.
    training : bool, default: False
        Draw a factor for each negative element. If False, the factor is the mean of the bounds.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    RuntimeError
        If `lower` is greater than `upper`, or if `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = x \text{ if } x > 0, \; a x \text{ otherwise}, \quad a \sim U(\text{lower}, \text{upper})

    Outside training the factor is (lower + upper) / 2.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-2.0, 3.0])
    >>> F.rrelu(x, 0.2, 0.3)
    tensor([-0.5000,  3.0000])
    """
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound. Got {lower} and {upper}.")
    if not training:
        return run(RRELU, input, inplace, slope=(lower + upper) / 2)
    rules.leaky_relu.record(input, slope=0.0)  # raises if `input` is not a floating-point Tensor
    xp, x = namespace_of[type(input.array)], input.array
    noise, drawn_for = xp.ones_like(x), x <= 0
    noise[drawn_for] = xp.asarray(stream(xp).uniform((int(drawn_for.sum()),), np.float64, lower, upper))
    return run(DRAWN, input, inplace, constant(noise))


@document_twin_of(rrelu)
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    return rrelu(input, lower, upper, training, True)


@with_descriptions
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Compute a piecewise linear approximation of the sigmoid.

    Parameters
    ----------
    {floats}
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = \min(\max(x + 3, 0), 6) / 6

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.hardsigmoid(gl.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return run(rules.hardsigmoid, input, inplace)


@with_descriptions
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Multiply each element by its `hardsigmoid`.

    Parameters
    ----------
    {floats}
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = x \min(\max(x + 3, 0), 6) / 6

    Howard et al. (2019).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.hardswish(gl.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return run(rules.hardswish, input, inplace)


@with_descriptions
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Move elements towards 0 by `lambd`. Elements closer to 0 become 0.

    Parameters
    ----------
    {floats}
    lambd : float, default: 0.5
        Distance, at least 0.

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    RuntimeError
        If `lambd` is negative.

    Notes
    -----
    .. math:: y = \operatorname{sign}(x) \max(|x| - \lambda, 0)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.softshrink(gl.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    limit = number("softshrink", "lambd", 2, lambd)
    if not limit >= 0:
        largest = f"{np.finfo(input.array.dtype).max:g}" if input.array.dtype.kind == "f" else "inf"
        raise RuntimeError(
            f"lambda must be in range [0, {largest}] for input dtype {input.dtype.word}, but found {limit:g}. It "
            "is the distance by which elements move towards 0."
        )
    return rules.softshrink.record(input, limit=limit)


@composite()
@with_descriptions
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Replace elements with absolute value at most `lambd` by 0.

    Parameters
    ----------
    {floats}
    lambd : float, default: 0.5
        Threshold of the absolute value.

    Returns
    -------
    {same}

    Raises
    ------
    {refused}

    Notes
    -----
    .. math:: y = x \text{ if } |x| > \lambda, \; 0 \text{ otherwise}

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.hardshrink(gl.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return rules.hardshrink.record(input, limit=number("hardshrink", "lambd", 2, lambd))
