"""Dropout of elements or whole channels. `gradlab.ops.dropping` draws the noise."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.ops import dropping as drops
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.shapes import squeeze, unsqueeze

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


# ------------------------------------------------------------------------------------------------------------- dropout
def _check_probability(p: Any) -> float:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return float(p)


@with_descriptions
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    r"""Zero elements at random with probability `p`, and scale up the rest.

    Parameters
    ----------
    {dropped}
    {p}
    {training}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    {dropout_raises}

    Notes
    -----
    .. math:: y = x m / (1 - p), \quad m \sim \operatorname{Bernoulli}(1 - p)

    The expected value is x (Srivastava et al. 2014).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> F.dropout(gl.ones(6), 0.5)
    tensor([0., 0., 2., 0., 0., 0.])
    >>> F.dropout(gl.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    return (drops.dropout_ if inplace else drops.dropout)(input, _check_probability(p), training)


@with_descriptions
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    r"""Apply the dropout that preserves the mean and variance of `selu` outputs.

    Parameters
    ----------
    {dropped}
    {p}
    {training_off}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    {dropout_raises}

    Notes
    -----
    Dropped elements are replaced by -λα = -1.7581, the value at which SELU saturates. Then all are scaled and shifted:

    .. math:: y = a (x m - \lambda \alpha (1 - m)) + b

    where a and b are such that mean 0 and variance 1 are preserved (Klambauer et al. 2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> dropped = F.alpha_dropout(gl.randn(10000), 0.2, training=True)
    >>> bool(abs(dropped.mean()) < 0.05), bool(abs(dropped.std() - 1) < 0.05)
    (True, True)
    """
    return (drops.alpha_dropout_ if inplace else drops.alpha_dropout)(input, _check_probability(p), training)


@with_descriptions
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply `alpha_dropout` to whole channels.

    Parameters
    ----------
    input : Tensor
        The tensor (N, C, …), floating point.
    {p}
    {training_off}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    ValueError
        If `p` is not between 0 and 1.
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        In training: if `input` holds integers or bools, or has fewer than two dimensions.

    Notes
    -----
    As for `alpha_dropout`, with one draw for each channel of each sample.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> dropped = F.feature_alpha_dropout(gl.zeros(1, 4, 3), 0.5, training=True)
    >>> bool((dropped == dropped[..., :1]).all())
    True
    """
    return (drops.feature_alpha_dropout_ if inplace else drops.feature_alpha_dropout)(input, _check_probability(p), training)


@with_descriptions
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of sequences at random.

    Parameters
    ----------
    input : Tensor
        The tensor (N, C, L) or (C, L), floating point.
    {p}
    {training}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    ValueError
        If `p` is not between 0 and 1.
    RuntimeError
        If `input` has neither 2 nor 3 dimensions, or holds integers or bools.

    Notes
    -----
    Each channel of each sample is zeroed with probability p, otherwise divided by 1 - p (Tompson et al. 2015).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> F.dropout1d(gl.ones(1, 3, 2), 0.5)
    tensor([[[0., 0.],
             [0., 0.],
             [2., 2.]]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("dropout1d", input)
    p, ndim = _check_probability(p), input.array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an "
            "optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return drop_channels(input, p, training, inplace, ndim == 3)


@with_descriptions
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of images at random.

    Parameters
    ----------
    input : Tensor
        The tensor (N, C, H, W), floating point. Three dimensions are interpreted as (N, C, L), with a warning.
    {p}
    {training}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    ValueError
        If `p` is not between 0 and 1.
    RuntimeError
        In training: if `input` holds integers or bools, or has fewer than two dimensions.

    Notes
    -----
    Each channel of each sample is zeroed with probability p, otherwise divided by 1 - p (Tompson et al. 2015).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> F.dropout2d(gl.ones(1, 3, 1, 2), 0.5)[0, :, 0]
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("dropout2d", input)
    p, ndim = _check_probability(p), input.array.ndim
    if ndim not in (3, 4):
        warn_of_rank(2, ndim)
    elif ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=2,
        )
    return drop_channels(input, p, training, inplace, True)


@with_descriptions
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of volumes at random.

    Parameters
    ----------
    input : Tensor
        The tensor (N, C, D, H, W) or (C, D, H, W), floating point.
    {p}
    {training}
    {inplace}

    Returns
    -------
    {kept}

    Raises
    ------
    ValueError
        If `p` is not between 0 and 1.
    RuntimeError
        In training: if `input` holds integers or bools.

    Notes
    -----
    Each channel of each sample is zeroed with probability p, otherwise divided by 1 - p (Tompson et al. 2015).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> generator = gl.manual_seed(0)
    >>> F.dropout3d(gl.ones(1, 3, 1, 1, 2), 0.5)[0, :, 0, 0]
    tensor([[0., 0.],
            [0., 0.],
            [2., 2.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("dropout3d", input)
    p, ndim = _check_probability(p), input.array.ndim
    if ndim not in (4, 5):
        warn_of_rank(3, ndim)
    return drop_channels(input, p, training, inplace, ndim == 5)


def warn_of_rank(spatial: int, ndim: int) -> None:
    warnings.warn(
        f"dropout{spatial}d: Received a {ndim}-D input to dropout{spatial}d, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use dropout instead. Note "
        f"that dropout{spatial}d exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a "
        f"channel dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        UserWarning,
        stacklevel=3,
    )


def drop_channels(input: Tensor, p: float, training: bool, in_place: bool, batched: bool) -> Tensor:
    """Drop channels. Add a batch axis if there is none."""
    if batched:
        return (drops.feature_dropout_ if in_place else drops.feature_dropout)(input, p, training)
    if in_place:
        return (
            inplace.composed_in_place(lambda x: drop_channels(x, p, training, False, False), input) if training and p else input
        )
    return squeeze(drops.feature_dropout(unsqueeze(input, 0), p, training), 0)
