"""Initialisation scaled by the numbers of inputs (fan-in) and outputs (fan-out) of a layer."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.init_plain import normal_, uniform_

GAINS = {
    **dict.fromkeys(
        ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"), 1
    ),
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor of the standard deviation that compensates for the following activation.

    Parameters
    ----------
    nonlinearity : str
        "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", or the name of a convolution.
    param : float, optional
        Slope of "leaky_relu".

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the activation is not known.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}. Use one of: leaky_relu, {', '.join(GAINS)}.")
    return GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the fan-in and fan-out of weights (out, in, …): the numbers of inputs of an output, and of outputs of an input."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform random numbers in ±gain √(6 / (fan_in + fan_out)).

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    gain : float, default: 1
        Factor, usually from `calculate_gain`.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` has fewer than two axes.

    Notes
    -----
    Glorot and Bengio 2010.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.xavier_uniform_(gl.empty(2, 3))
    tensor([[-0.0082,  0.5876, -0.9016],
            [-0.8062, -0.4219,  0.2938]])
    """
    bound = math.sqrt(3.0) * xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal random numbers with standard deviation gain √(2 / (fan_in + fan_out)).

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    gain : float, default: 1
        Factor, usually from `calculate_gain`.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` has fewer than two axes.

    Notes
    -----
    Glorot and Bengio 2010.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.xavier_normal_(gl.empty(2, 3))
    tensor([[ 0.9746, -0.1856, -1.3780],
            [ 0.3595, -0.6859, -0.8845]])
    """
    return normal_(tensor, 0.0, xavier_std(tensor, gain), generator)


def kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with uniform random numbers in ±gain √(3 / fan).

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    a : float, default: 0
        The slope of "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Preserve the variance of the outputs in the forward pass, or of the gradients in the backward pass.
    nonlinearity : str
        Activation that follows the layer, a name as in `calculate_gain`.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` has fewer than two axes.

    Notes
    -----
    He et al. 2015.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.kaiming_uniform_(gl.empty(2, 3))
    tensor([[-0.0106,  0.7586, -1.1640],
            [-1.0408, -0.5447,  0.3792]])
    """
    std = kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with normal random numbers with standard deviation gain / √fan.

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    a : float, default: 0
        The slope of "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Preserve the variance of the outputs in the forward pass, or of the gradients in the backward pass.
    nonlinearity : str
        Activation that follows the layer, a name as in `calculate_gain`.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` has fewer than two axes.

    Notes
    -----
    He et al. 2015.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.kaiming_normal_(gl.empty(2, 3))
    tensor([[ 1.2582, -0.2396, -1.7790],
            [ 0.4641, -0.8855, -1.1419]])
    """
    std = kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)
