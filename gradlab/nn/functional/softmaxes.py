"""The softmax along a dimension, its logarithm, and random draws by it."""

from __future__ import annotations

import warnings

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import described
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
    """The axis that torch chooses if none is given, with its warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@described
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""The exponentials of the elements over their sum along a dimension: positive numbers that add up to 1.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which they add up to 1. Left out, one is guessed of the rank, with a warning.
    _stacklevel : int, default 3
        Which caller that warning points to.
    dtype : dtype, optional
        What `input` is converted to first.

    Returns
    -------
    Tensor
        Of the shape of `input`, of its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is no tensor.
    NotImplementedError
        If `input` holds integers or bools and no `dtype` is given.
    IndexError
        If `input` has no dimension `dim`.

    Notes
    -----
    .. math:: y_i = e^{x_i} / \sum_j e^{x_j}

    The greatest element is subtracted first, so that nothing overflows.

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


@described
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""`softmax` of the negated elements: the smallest gets the greatest share.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which the result adds up to 1. Left out, one is guessed of the rank, with a warning.
    _stacklevel : int, default 3
        Which caller that warning points to.
    dtype : dtype, optional
        What `input` is converted to first.

    Returns
    -------
    Tensor
        Of the shape of `input`, of its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is no tensor.
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


@described
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype | None = None) -> Tensor:
    r"""The logarithm of `softmax`, computed without overflow or loss of small probabilities.

    Parameters
    ----------
    {floats}
    dim : int
        The dimension along which the probabilities add up to 1. Left out, one is guessed of the rank, with a warning.
    _stacklevel : int, default 3
        Which caller that warning points to.
    dtype : dtype, optional
        What `input` is converted to first.

    Returns
    -------
    Tensor
        Of the shape of `input`, of its dtype or `dtype`.

    Raises
    ------
    TypeError
        If `input` is no tensor.
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
    r"""A random draw of classes whose probabilities are the softmax of scores, with a gradient.

    Parameters
    ----------
    logits : Tensor
        The scores, floating point, unnormalised.
    tau : float, default 1
        The temperature: the smaller, the closer the draw is to one class alone.
    hard : bool, default False
        Whether the result is 1 at one class and 0 elsewhere; its gradient is that of the soft draw.
    eps : float, default 1e-10
        Has no effect; another number is warned of.
    dim : int, default -1
        The dimension of the classes.

    Returns
    -------
    Tensor
        Of the shape and dtype of `logits`; along `dim` it adds up to 1.

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
