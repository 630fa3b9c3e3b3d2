"""The softmax along a dimension, its logarithm, and samples from it."""

from __future__ import annotations

import warnings

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.ops import log_softmax as log_softmax_along
from gradlab.ops import max
from gradlab.ops import softmax as softmax_along
from gradlab.ops.arguments import negative_dim, not_a_tensor

__all__ = [
    "gumbel_softmax",
    "log_softmax",
    "softmax",
    "softmin",
]


# ---------------------------------------------------------------------------------------------------------------- softmax
def implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    """Return the axis that PyTorch uses if none is given, with its warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@with_descriptions
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""Divide the exponentials of elements by their sum along a dimension: positive numbers with sum 1.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which the result sums to 1. If omitted, it is guessed from the number of dimensions, with a warning.
    _stacklevel : int, default: 3
        Stack level of that warning.
    dtype : dtype, optional
        Dtype to which `input` is converted first.

    Returns
    -------
    Tensor
        Same shape as `input`, with its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError
        If `input` holds integers or bools and no `dtype` is given.
    IndexError
        If `input` has no dimension `dim`.

    Notes
    -----
    .. math:: y_i = e^{x_i} / \sum_j e^{x_j}

    The maximum is subtracted first to avoid overflow.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.softmax(gl.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("softmax", input)
    axis = implicit_dim("softmax", input.array.ndim, _stacklevel) if dim is None else dim
    return softmax_along(input, axis, dtype=dtype)


@with_descriptions
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""Compute the softmax of the negated elements: the smallest element has the largest probability.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which the result sums to 1. If omitted, it is guessed from the number of dimensions, with a warning.
    _stacklevel : int, default: 3
        Stack level of that warning.
    dtype : dtype, optional
        Dtype to which `input` is converted first.

    Returns
    -------
    Tensor
        Same shape as `input`, with its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError, RuntimeError
        If `input` holds integers and no `dtype` is given, or bools.
    IndexError
        If `input` has no dimension `dim`.

    Notes
    -----
    .. math:: y_i = e^{-x_i} / \sum_j e^{-x_j}

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.softmin(gl.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("softmin", input)
    axis = implicit_dim("softmin", input.array.ndim, _stacklevel) if dim is None else dim
    return softmax_along(-input, axis, dtype=dtype)


@with_descriptions
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""Compute the logarithm of the softmax without overflow or underflow.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which probabilities sum to 1. If omitted, it is guessed from the number of dimensions, with a warning.
    _stacklevel : int, default: 3
        Stack level of that warning.
    dtype : dtype, optional
        Dtype to which `input` is converted first.

    Returns
    -------
    Tensor
        Same shape as `input`, with its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError
        If `input` holds integers or bools and no `dtype` is given.
    IndexError
        If `input` has no dimension `dim`.

    Notes
    -----
    .. math:: y_i = x_i - \log \sum_j e^{x_j}

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.log_softmax(gl.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("log_softmax", input)
    axis = implicit_dim("log_softmax", input.array.ndim, _stacklevel) if dim is None else dim
    return log_softmax_along(input, axis, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    r"""Sample from the classes with the softmax of scores as probabilities, with a gradient.

    Parameters
    ----------
    logits : Tensor
        The scores, floating point, unnormalised.
    tau : float, default: 1
        Temperature. The smaller it is, the closer the samples are to one-hot.
    hard : bool, default: False
        Return one-hot samples with the gradient of the soft samples.
    eps : float, default: 1e-10
        Has no effect. Values other than the default cause a warning.
    dim : int, default: -1
        The dimension of the classes.

    Returns
    -------
    Tensor
        Same shape and dtype as `logits`. The sum along `dim` is 1.

    Raises
    ------
    RuntimeError
        If `logits` holds integers or bools.
    IndexError
        If `logits` has no dimension `dim`.

    Notes
    -----
    .. math:: y = \operatorname{softmax}((x + g) / \tau), \quad g = -\log E, \; E \sim \operatorname{Exp}(1)

    Jang et al. (2017), Maddison et al. (2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> drawn = F.gumbel_softmax(gl.tensor([[0.0, 1.0, 2.0]]), hard=True)
    >>> drawn.sum(), drawn.max()
    (tensor(1.), tensor(1.))
    """
    if not isinstance(logits, Tensor):
        raise not_a_tensor("gumbel_softmax", logits, "logits", 1)
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    if logits.array.dtype.kind != "f":
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but"
            f" you specified {logits.dtype.word}. Call logits.float() first."
        )
    xp = namespace_of[type(logits.array)]
    drawn = stream(xp).exponential(logits.array.shape).astype(logits.array.dtype)
    soft = softmax_along((logits + constant(-xp.log(xp.asarray(drawn)))) / tau, dim)
    if not hard:
        return soft
    chosen = max(soft.detach(), dim, keepdim=True)[1].array
    classes = xp.arange(soft.array.shape[dim]).reshape((-1,) + (1,) * (-negative_dim(dim, soft.array.ndim) - 1))
    return constant((classes == chosen).astype(soft.array.dtype)) - soft.detach() + soft
