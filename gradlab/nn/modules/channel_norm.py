"""Base classes of normalizations, with weight and bias, and with running statistics of channels.

The statistics are buffers: they are saved with the parameters and not trained.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradlab.core.tensor import Tensor
from gradlab.nn import init
from gradlab.nn.modules.bases import ReprModule, empty_parameter
from gradlab.ops.creation import empty
from gradlab.ops.from_data import tensor


class Affine(ReprModule):
    """A normalization with `weight` (initially ones) and `bias` (initially zeros). Either may be None."""

    def register_affine(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        """Register both parameters, or None for those that are disabled."""
        for name, wanted in (("weight", weight), ("bias", weight and bias)):
            self.register_parameter(name, empty_parameter(*shape, device=device, dtype=dtype) if wanted else None)

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.LayerNorm(2).reset_parameters()
        """
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# ----------------------------------------------------------------------------------------------------------- per channel
class ChannelNorm(Affine):
    """Base of batch and instance normalization: running statistics, and the allowed numbers of axes."""

    dims: ClassVar[tuple[int, int]]

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_affine((num_features,), affine, bias, device, dtype)
        track = track_running_stats
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, empty(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, device=device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the number of batches to 0.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.BatchNorm1d(2).reset_running_stats()
        """
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the statistics, the weight and the bias.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.BatchNorm1d(2).reset_parameters()
        """
        self.reset_running_stats()
        super().reset_parameters()

    def check_dims(self, input: Tensor) -> None:
        """Raise if the input has the wrong number of axes."""
        if input.array.ndim not in self.dims:
            wanted = " or ".join(f"{n}D" for n in dict.fromkeys(self.dims))
            raise ValueError(f"expected {wanted} input (got {input.array.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )
