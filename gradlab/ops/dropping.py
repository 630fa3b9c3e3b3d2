"""Dropout functions of PyTorch's main namespace. They zero elements or whole channels at random and scale up the rest.

A seed drops the same elements as in PyTorch: noise is drawn as `empty_like(input).bernoulli_(1 - p)` does, in the memory order of
the input. `feature_` functions drop channels. `alpha_` functions set dropped elements to the value at which SELU saturates and
preserve mean and variance (Klambauer et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core import inplace
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor
from gradlab.rules import elementwise as el

__all__ = [
    "alpha_dropout",
    "alpha_dropout_",
    "dropout",
    "dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
]

F = TypeVar("F", bound=Callable[..., Tensor])
RETURNS, RAISES, RAISES_IN_PLACE = (
    "Same shape and dtype as `input`.",
    "or `input` is not floating point",
    "or `input` is a leaf that requires a gradient or is not floating point",
)
SATURATION = 1.7580993408473766  # of SELU: scale times alpha


def draw_noise(x: Any, keep: float, feature: bool) -> Any:
    """Draw 1 with probability `keep`, otherwise 0, for each element, or (`feature`) for each channel of each sample."""
    if feature and x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input. Expected shape (samples, channels, …).")
    shape = x.shape[:2] + (1,) * (x.ndim - 2) if feature else x.shape
    xp = namespace_of[type(x)]
    engine = stream(xp)
    if feature or x.flags.c_contiguous:
        drawn = engine.bernoulli(keep, shape)
    else:  # memory order
        order = sorted(range(x.ndim), key=lambda i: -x.strides[i])
        drawn = engine.bernoulli(keep, tuple(shape[i] for i in order)).transpose(np.argsort(order))
    return xp.asarray(drawn.astype(np.float32 if x.dtype == np.float16 else x.dtype, order="K"))


def _drop(name: str, input: Tensor, p: float, train: bool, *, feature: bool, alpha: bool, in_place: bool = False) -> Tensor:
    if type(input) is not Tensor:
        raise not_a_tensor(name, input)
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    x = input.array
    if p == 0 or not train or not x.size:
        return input
    if x.dtype.kind != "f":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.word}. Call .float() first.")
    shift: Any = None
    if p == 1:
        factor = namespace_of[type(x)].zeros((), dtype=x.dtype)
    else:
        factor = draw_noise(x, 1 - p, feature)
        if alpha:
            scale = 1 / ((SATURATION**2 * p + 1) * (1 - p)) ** 0.5
            shift = (factor - 1) * (SATURATION * scale) + SATURATION * scale * p
            factor *= scale
        else:
            factor /= 1 - p
        if x.dtype == np.float16:  # computed in float32, as torch does
            factor, shift = factor.astype(x.dtype), None if shift is None else shift.astype(x.dtype)
    if in_place:
        inplace.in_place(el.mul, input, constant(factor))
        return input if shift is None else inplace.in_place(el.add, input, constant(shift))
    out = el.mul.record(input, constant(factor))
    return out if shift is None else el.add.record(out, constant(shift))


def document_twin_of(function: Callable[..., Tensor]) -> Callable[[F], F]:
    """Adapt the docstring of `function` to its in-place version. (`composite` only documents twins that are methods.)"""

    def document(twin: F) -> F:
        name, doc = function.__name__, function.__doc__
        if doc is not None:
            _, rest = doc.split("\n", 1)
            rest = rest.replace(f"gl.{name}(", f"gl.{name}_(").replace(RETURNS, "`input`.").replace(RAISES, RAISES_IN_PLACE)
            twin.__doc__ = f"In-place version of `{name}`.\n{rest}"
        return twin

    return document


@composite(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements at random with probability `p`, and scale up the rest.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of any shape.
    p : float
        Probability that an element is dropped.
    train : bool
        Whether to drop. If False, `input` is returned.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `p` is not between 0 and 1, or `input` is not floating point.

    Notes
    -----
    The remaining elements are divided by 1 - p to preserve the mean. The gradient of dropped elements is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> seed = gl.manual_seed(0)
    >>> gl.dropout(gl.ones(6), p=0.5, train=True)
    tensor([0., 0., 2., 0., 0., 0.])
    """
    return _drop("dropout", input, p, train, feature=False, alpha=False)


@document_twin_of(dropout)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return _drop("dropout_", input, p, train, feature=False, alpha=False, in_place=True)


@composite(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Drop elements at random with probability `p`, preserving mean and variance.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of any shape.
    p : float
        Probability that an element is dropped.
    train : bool
        Whether to drop. If False, `input` is returned.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `p` is not between 0 and 1, or `input` is not floating point.

    Notes
    -----
    Dropped elements are set to the value at which SELU saturates. All elements are then scaled and shifted to preserve mean and
    variance (Klambauer et al. 2017, Self-Normalizing Neural Networks).

    Examples
    --------
    >>> import gradlab as gl
    >>> seed = gl.manual_seed(0)
    >>> gl.alpha_dropout(gl.ones(3), p=0.5, train=True)
    tensor([-0.7792, -0.7792,  1.6656])
    """
    return _drop("alpha_dropout", input, p, train, feature=False, alpha=True)


@document_twin_of(alpha_dropout)
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return _drop("alpha_dropout_", input, p, train, feature=False, alpha=True, in_place=True)


@composite(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels at random with probability `p`, and scale up the rest.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of shape (N, C, …).
    p : float
        Probability that a channel is dropped.
    train : bool
        Whether to drop. If False, `input` is returned.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `p` is not between 0 and 1, or `input` is not floating point or has fewer than two dimensions.

    Notes
    -----
    The remaining elements are divided by 1 - p to preserve the mean. The gradient of dropped elements is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> seed = gl.manual_seed(0)
    >>> gl.feature_dropout(gl.ones(1, 4, 2), p=0.5, train=True)
    tensor([[[0., 0.],
             [0., 0.],
             [2., 2.],
             [0., 0.]]])
    """
    return _drop("feature_dropout", input, p, train, feature=True, alpha=False)


@document_twin_of(feature_dropout)
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return _drop("feature_dropout_", input, p, train, feature=True, alpha=False, in_place=True)


@composite(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Drop whole channels at random with probability `p`, preserving mean and variance.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of shape (N, C, …).
    p : float
        Probability that a channel is dropped.
    train : bool
        Whether to drop. If False, `input` is returned.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `p` is not between 0 and 1, or `input` is not floating point or has fewer than two dimensions.

    Notes
    -----
    Dropped elements are set to the value at which SELU saturates. All elements are then scaled and shifted to preserve mean and
    variance (Klambauer et al. 2017, Self-Normalizing Neural Networks).

    Examples
    --------
    >>> import gradlab as gl
    >>> seed = gl.manual_seed(0)
    >>> gl.feature_alpha_dropout(gl.ones(1, 4, 2), p=0.5, train=True)
    tensor([[[-0.7792, -0.7792],
             [-0.7792, -0.7792],
             [ 1.6656,  1.6656],
             [-0.7792, -0.7792]]])
    """
    return _drop("feature_alpha_dropout", input, p, train, feature=True, alpha=True)


@document_twin_of(feature_alpha_dropout)
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    return _drop("feature_alpha_dropout_", input, p, train, feature=True, alpha=True, in_place=True)
