"""Normalisation over batches, features or groups of channels. `gradlab.rules.normalization` has the derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.arithmetic import div
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import clone, compute_in_float32
from gradlab.ops.joins import cat
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import normalization as rules

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]

BATCH = rules.affine_normalized.with_node("NativeBatchNormBackward0")
BATCH_PLAIN = rules.normalized.with_node("NativeBatchNormBackward0")
LAYER = rules.affine_normalized.with_node("NativeLayerNormBackward0")
LAYER_PLAIN = rules.normalized.with_node("NativeLayerNormBackward0")
GROUP = rules.affine_normalized.with_node("NativeGroupNormBackward0")
GROUP_PLAIN = rules.normalized.with_node("NativeGroupNormBackward0")


@with_descriptions
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    r"""Normalise each channel by its mean and standard deviation over the batch.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …), floating point.
    running_mean : Tensor or None
        Mean of each channel, (C), used in evaluation and updated in place in training.
    running_var : Tensor or None
        Variance of each channel, (C), likewise.
    {channel_weight}
    {channel_bias}
    training : bool, default: False
        Use the mean and variance of the batch.
    {momentum}
    {eps}

    Returns
    -------
    {same}

    Raises
    ------
    {norm_refused}
    ValueError
        In training: if there is one value per channel, `eps` is not positive, or only one of the running statistics is given.
    RuntimeError
        If `weight`, `bias` or the running statistics do not have one element for each channel or the dtype of `input`, or a
        running statistic requires a gradient; in evaluation, if a running statistic is missing.
    IndexError, RuntimeError
        If `input` has fewer than two dimensions.

    Notes
    -----
    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} w + b

    σ² divides by n. `running_var` is updated with the variance that divides by n - 1 (Ioffe and Szegedy 2015).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[1.0], [3.0]])
    >>> mean, var = gl.zeros(1), gl.ones(1)
    >>> F.batch_norm(x, mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("batch_norm", input)
    if type(input) is not Tensor:
        raise not_a_tensor("batch_norm", input)
    shape = input.array.shape
    if shape == (0,):  # torch checks nothing in this case
        out = input if weight is None else input * weight[0]
        return clone(input) if weight is bias is None else out if bias is None else out + bias[0]
    if training:
        check_enough_values(shape[0] * prod(shape[2:]), "value per channel", Size(shape))
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return norm_channels("batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps)


def norm_channels(
    name: str,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    instances: int = 0,
) -> Tensor:
    """Check the arguments as PyTorch does, and record `batch_norm`, or with `instances` (N) `instance_norm` of (1, N·C, …)."""
    x = input.array
    channels = x.shape[1] if x.ndim > 1 else 0
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    parameters = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for position, (what, parameter) in enumerate(parameters.items(), start=2):
        if parameter is None:
            if not training and what.startswith("running"):
                raise RuntimeError(f"{what} must be defined in evaluation mode. Pass it, or training=True.")
            continue
        if not isinstance(parameter, Tensor):
            raise not_a_tensor(name, parameter, what, position)
        if parameter.array.size * (instances or 1) != channels:
            raise RuntimeError(f"{what} should contain {channels} elements not {parameter.array.size * (instances or 1)}")
        if parameter.node is not None and what.startswith("running"):
            words = f"The function 'native_batch_norm' is not differentiable with respect to argument '{what}'."
            raise RuntimeError(f"{words} This input cannot have requires_grad True.")
    if x.ndim < 2:
        raise too_few_axes_error(name)
    if not isinstance(momentum, (int, float)):
        raise TypeError(f"{name}(): argument 'momentum' (position 7) must be float, not {type(momentum).__name__}")
    check_dtypes("batch_norm", input, (running_mean, weight))
    if not x.size:
        out = clone(input)
        out = out if weight is None else out * channelwise(weight, x.ndim)
        return out if bias is None else out + channelwise(bias, x.ndim)
    batch, length = x.shape[0], prod(x.shape[2:])
    if running_mean is not None and running_var is not None and not training:
        return apply_running_stats(input, running_mean, running_var, weight, bias, eps, instances or 1)
    shape: Any = (instances, channels // instances, length) if instances else (batch, channels, length) if x.ndim > 2 else x.shape
    axis: tuple[int, ...] = (-1,) if instances else (-3, -1) if x.ndim > 2 else (-2,)
    moments: list[Any] = []
    out = record_norm(BATCH, BATCH_PLAIN, input, weight, bias, shape, axis, shape[1:2] + (1,) * (len(shape) - 2), eps, moments)
    if running_mean is not None and running_var is not None:
        mean, _, variance = (m.mean(axis=0) if instances else m for m in moments)
        n = prod(shape[i] for i in axis)
        update_running_stat(running_mean, mean, momentum)
        update_running_stat(running_var, variance * (n / (n - 1)), momentum)
    return out


EVALUATED = el.add.with_node("NativeBatchNormBackward0")
EVALUATED_PLAIN = el.mul.with_node("NativeBatchNormBackward0")


def apply_running_stats(
    input: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, repeats: int
) -> Tensor:
    """Return (input - mean) · weight / deviation + bias for given statistics. The channels are repeated `repeats` times."""
    ndim, v = input.array.ndim, variance.array
    scale, shift = constant(1 / namespace_of[type(v)].sqrt(v + eps)), constant(-mean.array)
    if weight is None and bias is None:
        return EVALUATED_PLAIN.record(input + channelwise(shift, ndim, repeats), channelwise(scale, ndim, repeats))
    scale = scale if weight is None else scale * weight
    shift = shift * scale if bias is None else shift * scale + bias
    return EVALUATED.record(input * channelwise(scale, ndim, repeats), channelwise(shift, ndim, repeats))


def record_norm(
    affine_op: Any,
    plain_op: Any,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    shape: tuple[int, ...],
    axis: tuple[int, ...],
    affine: tuple[int, ...],
    eps: float,
    moments: list[Any],
) -> Tensor:
    """Record the primitive with weight and bias (replacing a missing one by ones or zeros), or the one without both."""
    if weight is None and bias is None:
        return plain_op.record(input, shape=shape, axis=axis, eps=eps, moments=moments)
    if weight is None or bias is None:
        x = input.array
        other = constant(getattr(namespace_of[type(x)], "ones" if weight is None else "zeros")(affine, dtype=x.dtype))
        weight, bias = (other, bias) if weight is None else (weight, other)
    return affine_op.record(input, weight, bias, shape=shape, axis=axis, affine=affine, eps=eps, moments=moments)


def update_running_stat(running: Tensor, batch: Any, momentum: float) -> None:
    """Move a running statistic towards that of the batch, in place. (As in torch, this does not change the version.)"""
    held = running.array
    held *= 1 - momentum
    held += (batch * momentum).reshape(held.shape)


@with_descriptions
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    r"""Normalise the features of each sample by their mean and standard deviation.

    Parameters
    ----------
    input : Tensor
        The features, (…, *normalized_shape), floating point.
    {normalized_shape}
    weight : Tensor, optional
        A factor for each feature, of shape `normalized_shape`.
    bias : Tensor, optional
        A bias for each feature, of shape `normalized_shape`.
    {eps}

    Returns
    -------
    {same}

    Raises
    ------
    {norm_refused}
    TypeError
        If `normalized_shape` is not a tuple or list.
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    Notes
    -----
    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} w + b

    σ² divides by n (Ba et al. 2016).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.layer_norm(gl.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247],
            [-1.2247,  0.0000,  1.2247]])
    """
    if type(input) is not Tensor:
        raise not_a_tensor("layer_norm", input)
    features, shape = feature_shape("layer_norm", input, normalized_shape), input.array.shape
    if shape[len(shape) - len(features) :] != features:
        raise RuntimeError(
            f"Given normalized_shape={list(features)}, expected input with shape [*, {sizes(features)}], but got "
            f"input of size{list(shape)}"
        )
    n = prod(features)
    if weight is not None or bias is not None:
        check_features(weight, bias, features)
    check_dtypes("LayerNormKernelImpl", input, (weight, bias))
    rows = prod(shape[: len(shape) - len(features)])
    return record_norm(LAYER, LAYER_PLAIN, input, weight, bias, (rows, n), (-1,), (n,), eps, [])


@with_descriptions
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    r"""Normalise groups of channels of each sample by their mean and standard deviation.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …), floating point.
    num_groups : int
        Number of groups; must divide C.
    {channel_weight}
    {channel_bias}
    {eps}

    Returns
    -------
    {same}

    Raises
    ------
    {norm_refused}
    ValueError
        If there is one sample with one value in each group.
    RuntimeError
        If `input` has fewer than two dimensions, `num_groups` is negative or does not divide C, `weight` or `bias` does not have
        one element for each channel, or the dtypes differ.
    ZeroDivisionError
        If `num_groups` is 0.

    Notes
    -----
    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} w + b

    One group normalises all channels together; C groups give `instance_norm` (Wu and He 2018).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.group_norm(gl.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if type(input) is not Tensor:
        raise not_a_tensor("group_norm", input)
    shape = input.array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    batch, channels = shape[:2]
    check_enough_values(
        batch * channels // num_groups * prod(shape[2:]),
        "value per channel",
        [batch * channels // num_groups, num_groups, *shape[2:]],
    )
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    for what, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.array.shape != (channels,):
            raise RuntimeError(
                f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} "
                f"of shape {list((parameter if weight is None else weight).array.shape)} and input of shape "
                f"{list(shape)}. The {what} has shape {list(parameter.array.shape)}."
            )
    check_dtypes("GroupNormKernelImpl", input, (weight, bias))
    width, length = channels // num_groups, prod(shape[2:])
    if weight is None and bias is None:
        return GROUP_PLAIN.record(input, shape=(batch * num_groups, width * length), axis=(-1,), eps=eps, moments=[])
    return record_norm(
        GROUP, GROUP_PLAIN, input, weight, bias, (batch, num_groups, width, length), (-2, -1), (num_groups, width, 1), eps, []
    )


@with_descriptions
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    r"""Normalise each channel of each sample by its mean and standard deviation.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …), floating point.
    running_mean : Tensor, optional
        Mean of each channel, (C), used if `use_input_stats` is False, otherwise updated in place.
    running_var : Tensor, optional
        Variance of each channel, (C), likewise.
    {channel_weight}
    {channel_bias}
    use_input_stats : bool, default: True
        Use the mean and variance of each sample.
    {momentum}
    {eps}

    Returns
    -------
    {same}

    Raises
    ------
    {norm_refused}
    ValueError
        If there is one element per channel, or only one of the running statistics is given.
    RuntimeError
        If `weight`, `bias` or the running statistics do not have one element for each channel or the dtype of `input`; without
        `use_input_stats`, if a running statistic is missing.
    IndexError, ValueError
        If `input` has fewer than two dimensions.

    Notes
    -----
    .. math:: y = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} w + b

    Ulyanov et al. (2016).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.instance_norm(gl.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if type(input) is not Tensor:
        raise not_a_tensor("instance_norm", input)
    shape = input.array.shape
    if use_input_stats:
        check_enough_values(prod(shape[2:]), "spatial element", Size(shape))
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if len(shape) < 2:
        raise too_few_axes_error("instance_norm")
    joined = reshape(input, 1, shape[0] * shape[1], *shape[2:])
    return reshape(
        norm_channels("instance_norm", joined, running_mean, running_var, weight, bias, use_input_stats, momentum, eps, shape[0]),
        *shape,
    )


@with_descriptions
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    r"""Divide the features of each sample by their root mean square.

    Parameters
    ----------
    input : Tensor
        The features, (…, *normalized_shape), floating point.
    {normalized_shape}
    weight : Tensor, optional
        A factor for each feature, of shape `normalized_shape`.
    eps : float, optional
        Added to the mean square. If omitted, the machine epsilon of the dtype.

    Returns
    -------
    {same}

    Raises
    ------
    {norm_refused}
    TypeError
        If `normalized_shape` is not a tuple or list.
    RuntimeError
        If the shapes do not fit.

    Notes
    -----
    .. math:: y = \frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}} w

    Zhang and Sennrich (2019).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.rms_norm(gl.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    if type(input) is not Tensor:
        raise not_a_tensor("rms_norm", input)
    features, x = feature_shape("rms_norm", input, normalized_shape), input.array
    if x.shape[x.ndim - len(features) :] != features:
        raise RuntimeError(
            f"Given normalized_shape={list(features)}, expected input with shape [*{sizes(features)}], but got "
            f"input of size{list(x.shape)}"
        )
    check_features(weight, None, features)
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{input.dtype.word}'. Call .float() first.")
    if x.dtype.char == "e":
        return compute_in_float32(rms_norm, input, features, weight, eps)
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    axes = tuple(range(-len(features), 0))
    scaled = input * ((input**2).mean(axes, keepdim=True) + eps) ** -0.5
    return scaled if weight is None else scaled * weight


@with_descriptions
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    r"""Divide each element by a power of the mean square of neighbouring channels.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …) of at least three dimensions.
    size : int
        Number of channels in the mean, padded with zeros.
    alpha : float, default: 1e-4
        Factor of the mean.
    beta : float, default: 0.75
        Exponent.
    k : float, default: 1.0
        Added to the mean.

    Returns
    -------
    {same}

    Raises
    ------
    ValueError
        If `input` has fewer than three dimensions.
    RuntimeError
        If `size` is less than 1.

    Notes
    -----
    .. math:: y = x \left(k + \alpha \operatorname{mean}(x^2)\right)^{-\beta}

    Krizhevsky et al. (2012).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.local_response_norm(gl.tensor([[[1.0], [2.0]]]), 1, alpha=1.0, beta=1.0)
    tensor([[[0.5000],
             [0.4000]]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("local_response_norm", input)
    x = input.array
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {x.ndim} dimensions)")
    if not x.size:
        return input
    if size < 1:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1. Use size=1 or more.")
    squares, xp = input * input, namespace_of[type(x)]
    ends = [constant(xp.zeros((x.shape[0], n, *x.shape[2:]), dtype=x.dtype)) for n in (size // 2, (size - 1) // 2)]
    padded = cat([ends[0], squares, ends[1]], 1)
    total = padded[:, : x.shape[1]]
    for first in range(1, size):
        total = total + padded[:, first : first + x.shape[1]]
    mean = total / size if x.dtype.kind == "f" else div(total, size, rounding_mode="trunc")  # integers remain integers
    return input / (mean * alpha + k) ** beta


# ----------------------------------------------------------------------------------------------------------- arguments
def too_few_axes_error(name: str) -> IndexError:
    return IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got 1). {name} takes (N, C, …).")


def check_enough_values(count: int, what: str, shape: Any) -> None:
    """Raise PyTorch's error if single numbers would be normalised."""
    if count == 1:
        raise ValueError(
            f"Expected more than 1 {what} when training, got input size {shape}. A single number minus its mean is "
            "0. Use more of them, or evaluate with the running mean and variance."
        )


def feature_shape(name: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """Return `normalized_shape` as a non-empty tuple of integers."""
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{type(normalized_shape).__name__}. Write ({normalized_shape},)."
        )
    if not normalized_shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
            "got normalized_shape = []"
        )
    return tuple(normalized_shape)


def check_features(weight: Tensor | None, bias: Tensor | None, features: tuple[int, ...]) -> None:
    for what, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.array.shape != features:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(parameter.array.shape)} and normalized_shape = {list(features)}"
            )


def check_dtypes(name: str, input: Tensor, others: tuple[Tensor | None, ...]) -> None:
    """Raise PyTorch's errors unless all tensors are floating point and of one dtype."""
    dtype = input.array.dtype
    if dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.word}'. Call .float() first.")
    for at, other in enumerate(others):
        if other is not None and other.array.dtype != dtype:
            raise RuntimeError(
                "mixed dtype (CPU): all inputs must share same datatype."
                if at == 0 or name != "batch_norm"
                else "mixed dtype (CPU): expect parameter to have scalar type of Float. Convert one of them: x.to(weight.dtype)."
            )


def sizes(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def channelwise(x: Tensor, ndim: int, repeats: int = 1) -> Tensor:
    """Reshape numbers for each channel, repeated `repeats` times, to broadcast with (N, C, …)."""
    if repeats > 1:
        x = expand(x, repeats, x.array.size)
    return reshape(x, -1, *[1] * (ndim - 2))
