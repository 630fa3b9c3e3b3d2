"""Initialisation independent of the fan-in: constants, random numbers, identities and orthonormal rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradlab.core.modes import no_grad
from gradlab.core.tensor import Tensor
from gradlab.linalg.factors import qr
from gradlab.ops import creation
from gradlab.ops.comparison import where
from gradlab.ops.diagonals import diag
from gradlab.random import randperm


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with uniform random numbers in [a, b).

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    a, b : float
        The bounds (default: 0 and 1).
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.uniform_(gl.empty(3))
    tensor([0.4963, 0.7682, 0.0885])
    """
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal random numbers.

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    mean : float, default: 0
        The mean.
    std : float, default: 1
        The standard deviation.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.nn.init.normal_(gl.empty(3))
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a constant.

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    val : float
        The constant.

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.constant_(gl.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.ones_(gl.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.zeros_(gl.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normal random numbers, truncated to [a, b].

    Parameters
    ----------
    tensor : Tensor
        Floating-point tensor of any shape. It is overwritten without being recorded.
    mean : float, default: 0
        The mean.
    std : float, default: 1
        The standard deviation.
    a, b : float
        The bounds.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Examples
    --------
    >>> import gradlab as gl
    >>> bool(gl.nn.init.trunc_normal_(gl.empty(100)).abs().max() <= 2)
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=3,
        )

    def below(x: float) -> float:
        return (1 + math.erf((x - mean) / std / math.sqrt(2))) / 2

    if below(b) - below(a) > 0.3:  # most draws are accepted: reject and redraw the others
        low, high = tensor.new_tensor(a, device="cpu").item(), tensor.new_tensor(b, device="cpu").item()
        result = tensor.normal_(mean, std, generator=generator)
        while (outside := (result < low) | (result > high)).any():
            result = where(outside, creation.empty_like(result).normal_(mean, std, generator=generator), result)
    else:  # uniform proposals, accepted with probability proportional to the density
        peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

        def is_rejected(proposal: Tensor) -> Tensor:
            density = proposal.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
            return creation.empty_like(tensor).uniform_(generator=generator).log_().gt(density)

        result = tensor.uniform_(a, b, generator=generator)
        pending = is_rejected(result)
        while pending.any():
            proposal = creation.empty_like(tensor).uniform_(a, b, generator=generator)
            result = where(pending, proposal, result)
            pending = pending & is_rejected(proposal)
    return tensor if result is tensor else tensor.copy_(result)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix.

    Parameters
    ----------
    tensor : Tensor
        A matrix.

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` does not have two axes.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.eye_(gl.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(creation.eye(*tensor.shape))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weights of a convolution so that as many channels as possible pass through unchanged.

    Parameters
    ----------
    tensor : Tensor
        (out_channels, in_channels, …), with three to five axes.
    groups : int, default: 1
        Number of groups of channels.

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If the number of axes is wrong, or `groups` does not divide the number of channels.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.init.dirac_(gl.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    each, centre = tensor.shape[0] // groups, tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for d in range(min(each, tensor.shape[1])):
            tensor[(group * each + d, d, *centre)] = 1
    return tensor


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a matrix of orthonormal rows or columns, times a factor.

    Parameters
    ----------
    tensor : Tensor
        Two or more axes. All but the first are treated as columns.
    gain : float, default: 1
        The factor.
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
    Saxe et al. 2013.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.nn.init.orthogonal_(gl.empty(2, 2))
    >>> (w @ w.T).round(decimals=4).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = qr(drawn.T if rows < columns else drawn)
    q = q * diag(r, 0).sign()
    return tensor.copy_((q.T if rows < columns else q).reshape(tensor.shape)).mul_(gain)


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill with normal random numbers, and set a fraction of each column to 0.

    Parameters
    ----------
    tensor : Tensor
        A matrix.
    sparsity : float
        Fraction of zeros.
    std : float, default: 0.01
        The standard deviation.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    Tensor
        `tensor`.

    Raises
    ------
    ValueError
        If `tensor` does not have two axes.

    Examples
    --------
    >>> import gradlab as gl
    >>> (gl.nn.init.sparse_(gl.empty(4, 2), sparsity=0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor
