"""Initial values whose size follows from how many inputs and outputs a layer has."""

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
    """How much the standard deviation is to grow to make up for the activation that follows.

    Parameters
    ----------
    nonlinearity : str
        "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu", or the name of a convolution.
    param : float, optional
        The slope of "leaky_relu".

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there is no such activation.

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
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}. There are: leaky_relu, {', '.join(GAINS)}.")
    return GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many numbers go into an output, and how many outputs a number goes into: of weights (out, in, …)."""
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
    """Uniform numbers in ±gain √(6 / (fan_in + fan_out)).

    Parameters
    ----------
    tensor : Tensor
        Of any shape, floating point; it is overwritten, and no gradient passes.
    gain : float, default: 1
        As of `calculate_gain`.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.

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
    """Normal numbers of standard deviation gain √(2 / (fan_in + fan_out)).

    Parameters
    ----------
    tensor : Tensor
        Of any shape, floating point; it is overwritten, and no gradient passes.
    gain : float, default: 1
        As of `calculate_gain`.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.

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
    """Uniform numbers in ±gain √(3 / fan).

    Parameters
    ----------
    tensor : Tensor
        Of any shape, floating point; it is overwritten, and no gradient passes.
    a : float, default: 0
        The slope of "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Whether the size is kept on the way forward, or of gradients on the way back.
    nonlinearity : str
        What follows the layer, as of `calculate_gain`.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.

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
    """Normal numbers of standard deviation gain / √fan.

    Parameters
    ----------
    tensor : Tensor
        Of any shape, floating point; it is overwritten, and no gradient passes.
    a : float, default: 0
        The slope of "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Whether the size is kept on the way forward, or of gradients on the way back.
    nonlinearity : str
        What follows the layer, as of `calculate_gain`.
    generator : Generator, optional
        The stream that is drawn from; the default one if it is left out.

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
