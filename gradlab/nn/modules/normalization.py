"""Normalization of channels over a batch or an instance, of groups of channels, and of the last axes.

Running statistics of batch and instance normalization are buffers: they are saved with the parameters and not trained.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.bases import ReprModule, empty_parameter
from gradlab.nn.modules.channel_norm import Affine, ChannelNorm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class BatchNorm(ChannelNorm):
    """(x - mean) / √(var + eps) · weight + bias for each channel, with statistics over the batch and all other axes.

    In training, the statistics are those of the batch, and the running statistics are updated with `momentum` (None for the
    cumulative average). In evaluation the running statistics are used.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self.check_dims(input)
        training, momentum = self.training, 0.0 if self.momentum is None else self.momentum
        running_mean, running_var = self.running_mean, self.running_var
        if training and self.track_running_stats:
            tracked = self.num_batches_tracked
            if tracked is not None:
                tracked.array += 1  # no graph reads it, so the version need not change
                if self.momentum is None:
                    momentum = 1.0 / tracked.item()
        elif training:
            running_mean = running_var = None
        of_batch = training or (running_mean is None and running_var is None)
        return functional.batch_norm(input, running_mean, running_var, self.weight, self.bias, of_batch, momentum, self.eps)


class BatchNorm1d(BatchNorm):
    """(x - mean) / √(var + eps) · weight + bias, with the mean and variance of each channel over the batch.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or in training only one element for each channel.

    Notes
    -----
    {batch_norm}

    Input: (N, C) or (N, C, L). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.BatchNorm1d(1)
    >>> y = layer(gradlab.tensor([[1.0], [3.0]]))
    >>> layer.running_mean, layer.running_var
    (tensor([0.2000]), tensor([1.1000]))
    """

    dims = 2, 3


class BatchNorm2d(BatchNorm):
    """(x - mean) / √(var + eps) · weight + bias, with the mean and variance of each channel over the batch.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or in training only one element for each channel.

    Notes
    -----
    {batch_norm}

    Input: (N, C, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.BatchNorm2d(1)
    >>> y = layer(gradlab.tensor([1.0, 3.0]).reshape(1, 1, 1, 2))
    >>> layer.running_mean, layer.running_var
    (tensor([0.2000]), tensor([1.1000]))
    """

    dims = 4, 4


class BatchNorm3d(BatchNorm):
    """(x - mean) / √(var + eps) · weight + bias, with the mean and variance of each channel over the batch.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or in training only one element for each channel.

    Notes
    -----
    {batch_norm}

    Input: (N, C, D, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.BatchNorm3d(1)
    >>> y = layer(gradlab.tensor([1.0, 3.0]).reshape(1, 1, 1, 1, 2))
    >>> layer.running_mean, layer.running_var
    (tensor([0.2000]), tensor([1.1000]))
    """

    dims = 5, 5


class InstanceNorm(ChannelNorm):
    """(x - mean) / √(var + eps) for each channel of each instance."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self.check_dims(input)
        single = input.dim() == self.dims[0]
        axis = 0 if single else 1
        if (channels := input.shape[axis]) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={axis} to match num_features ({self.num_features}), but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={axis} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                UserWarning,
                stacklevel=2,
            )
        normed = functional.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return normed.squeeze(0) if single else normed


class InstanceNorm1d(InstanceNorm):
    """(x - mean) / √(var + eps), with the mean and variance of each channel of each instance.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or with `affine` the wrong number of channels.

    Notes
    -----
    By default `affine` and `track_running_stats` are False: there are no parameters or buffers, and evaluation does the same.

    Input: (N, C, L) or (C, L). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.InstanceNorm1d(2)(gradlab.tensor([[[1.0, 3.0], [5.0, 5.0]]])).flatten()
    tensor([-1.0000,  1.0000,  0.0000,  0.0000])
    """

    dims = 2, 3


class InstanceNorm2d(InstanceNorm):
    """(x - mean) / √(var + eps), with the mean and variance of each channel of each instance.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or with `affine` the wrong number of channels.

    Notes
    -----
    By default `affine` and `track_running_stats` are False: there are no parameters or buffers, and evaluation does the same.

    Input: (N, C, H, W) or (C, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.InstanceNorm2d(2)(gradlab.tensor([1.0, 3.0, 5.0, 5.0]).reshape(1, 2, 1, 2)).flatten()
    tensor([-1.0000,  1.0000,  0.0000,  0.0000])
    """

    dims = 3, 4


class InstanceNorm3d(InstanceNorm):
    """(x - mean) / √(var + eps), with the mean and variance of each channel of each instance.

    Parameters
    ----------
    {channel_norm}

    {channel_state}

    Raises
    ------
    ValueError
        If the input has the wrong number of dimensions, or with `affine` the wrong number of channels.

    Notes
    -----
    By default `affine` and `track_running_stats` are False: there are no parameters or buffers, and evaluation does the same.

    Input: (N, C, D, H, W) or (C, D, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.InstanceNorm3d(2)(gradlab.tensor([1.0, 3.0, 5.0, 5.0]).reshape(1, 2, 1, 1, 2)).flatten()
    tensor([-1.0000,  1.0000,  0.0000,  0.0000])
    """

    dims = 4, 5


class GroupNorm(Affine):
    """(x - mean) / √(var + eps) · weight + bias over groups of channels of each instance.

    Parameters
    ----------
    num_groups : int
        Number of groups of channels.
    num_channels : int
        Number C of channels.
    {norm_eps}
    affine : bool, optional
        Whether there are `weight` and `bias` (default: True).
    {device}
    {dtype}
    {norm_bias}

    Attributes
    ----------
    weight, bias : Parameter of shape (num_channels,), or None
        Initialised to ones and zeros.

    Raises
    ------
    ValueError
        If `num_groups` does not divide `num_channels`.

    Notes
    -----
    Input: (N, C, *). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.GroupNorm(1, 2)(gradlab.tensor([[1.0, 3.0], [5.0, 9.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]], grad_fn=<NativeGroupNormBackward0>)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_affine((num_channels,), affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


# --------------------------------------------------------------------------------------------------------- over the last axes
class LayerNorm(Affine):
    """(x - mean) / √(var + eps) · weight + bias, with the mean and variance over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of ints
        Sizes of the last dimensions, which are normalized together.
    {norm_eps}
    elementwise_affine : bool, optional
        Whether there are `weight` and `bias` (default: True).
    {norm_bias}
    {device}
    {dtype}

    Attributes
    ----------
    weight, bias : Parameter of shape `normalized_shape`, or None
        Initialised to ones and zeros.

    Notes
    -----
    Training and evaluation are the same (Ba et al. 2016).

    Input: (*, *normalized_shape). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.LayerNorm(2)(gradlab.tensor([[1.0, 3.0], [5.0, 9.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = feature_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(ReprModule):
    """The root-mean-square norm over the last dimensions: x / √(mean(x²) + eps) · weight.

    Parameters
    ----------
    normalized_shape : int or sequence of ints
        Sizes of the last dimensions, which are normalized together.
    eps : float, optional
        Added to the mean (default: machine epsilon of the dtype).
    elementwise_affine : bool, optional
        Whether there is a `weight` (default: True).
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape `normalized_shape`, or None
        Initialised to ones.

    Notes
    -----
    Input: (*, *normalized_shape). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.RMSNorm(2)(gradlab.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]], grad_fn=<MulBackward0>)
    """

    repr_format = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}"

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = feature_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = empty_parameter(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to 1.

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.RMSNorm(2)
        >>> layer.reset_parameters()
        >>> layer.weight.tolist()
        [1.0, 1.0]
        """
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class LocalResponseNorm(ReprModule):
    """Local response normalization: x / (k + alpha · mean of the squares of neighbouring channels)^beta.

    Parameters
    ----------
    size : int
        Number of neighbouring channels, including the element's own, padded with zeros.
    alpha, beta, k : float, optional
        Coefficients of the formula (default: 1e-4, 0.75 and 1).

    Notes
    -----
    Input: (N, C, *) of three dimensions or more. Output: the same shape (Krizhevsky et al. 2012).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.LocalResponseNorm(1, alpha=1.0, beta=1.0)(gradlab.tensor([[[1.0], [3.0]]]))
    tensor([[[0.5000],
             [0.3000]]])
    """

    repr_format = "{size}, alpha={alpha}, beta={beta}, k={k}"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


def feature_shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the axes to normalize."""
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
