"""Base classes of losses: the reduction, and weights of classes or elements."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn.functional.losses import resolve_reduction
from gradlab.nn.modules.bases import ReprModule


class Loss(ReprModule):
    """A loss whose terms are averaged ("mean"), added ("sum") or returned ("none")."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        legacy = size_average is not None or reduce is not None
        self.reduction = resolve_reduction(reduction, size_average, reduce) if legacy else reduction


class WeightedLoss(Loss):
    """A loss with optional weights of classes or elements."""

    def __init__(
        self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
