"""Losses with a margin by which a score, or a distance, must exceed another."""

from __future__ import annotations

from collections.abc import Callable

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.distance import PairwiseDistance
from gradlab.nn.modules.loss_bases import Loss, WeightedLoss

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class SoftMarginLoss(Loss):
    """The logistic loss log(1 + exp(-target · input)) for targets 1 and -1.

    Parameters
    ----------
    {size_average}
    {reduction}

    Notes
    -----
    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.SoftMarginLoss()(gradlab.tensor([0.0, 2.0]), gradlab.tensor([1.0, -1.0]))
    tensor(1.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """The hinge loss between target classes and other classes, for samples with several target classes.

    Parameters
    ----------
    {size_average}
    {reduction}

    Notes
    -----
    The sum over target classes t and other classes i of max(0, 1 - (x_t - x_i)), divided by C.

    Input: (N, C) or (C). Target: integers of the same shape, the target classes first, then a -1.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x, target = gradlab.tensor([0.1, 0.2, 0.4, 0.8]), gradlab.tensor([3, 0, -1, 1])
    >>> nn.MultiLabelMarginLoss()(x, target)
    tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """The mean over classes of the binary cross entropy of logits.

    Parameters
    ----------
    {class_weight}
    {size_average}
    {reduction}

    Notes
    -----
    Input: logits (N, C) or (C). Target: 0 and 1, of the same shape.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.MultiLabelSoftMarginLoss()(gradlab.zeros(1, 3), gradlab.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """The hinge loss between the target class and the other classes: Σ max(0, margin - x_t + x_i)^p / C.

    Parameters
    ----------
    p : int, optional
        Exponent: 1 (the default) or 2.
    margin : float, optional
        Margin by which the target's score must exceed the others (default: 1).
    {class_weight}
    {size_average}
    {reduction}

    Raises
    ------
    ValueError
        If `p` is not 1 or 2, or `weight` is not one-dimensional.

    Notes
    -----
    Input: scores (N, C) or (C). Target: integers (N) or ().

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.MultiMarginLoss()(gradlab.tensor([[0.5, 1.0, 0.0]]), gradlab.tensor([1]))
    tensor(0.1667)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MarginLoss(Loss):
    """A loss with a margin."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class CosineEmbeddingLoss(MarginLoss):
    """The cosine loss of two vectors: 1 - cos for targets 1, max(0, cos - margin) for targets -1.

    Parameters
    ----------
    margin : float, optional
        Cosine allowed for dissimilar vectors (default: 0).
    {size_average}
    {reduction}

    Notes
    -----
    Inputs, both: (N, D) or (D). Target: (N) or (), 1 and -1.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> a, b = gradlab.tensor([[1.0, 0.0]]), gradlab.tensor([[3.0, 4.0]])
    >>> nn.CosineEmbeddingLoss()(a, b, gradlab.tensor([1.0]))
    tensor(0.4000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(MarginLoss):
    """The ranking loss max(0, -target (input1 - input2) + margin). For target 1 the first input should be larger.

    Parameters
    ----------
    margin : float, optional
        The margin (default: 0).
    {size_average}
    {reduction}

    Notes
    -----
    Inputs and target: (N) or ().

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.MarginRankingLoss()(gradlab.tensor([1.0]), gradlab.tensor([3.0]), gradlab.tensor([1.0]))
    tensor(2.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(MarginLoss):
    """The hinge loss of a distance: the input for targets 1, max(0, margin - input) for targets -1.

    Parameters
    ----------
    margin : float, optional
        Distance that dissimilar pairs should have (default: 1).
    {size_average}
    {reduction}

    Notes
    -----
    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.HingeEmbeddingLoss(reduction="none")(gradlab.tensor([0.5, 0.25]), gradlab.tensor([1.0, -1.0]))
    tensor([0.5000, 0.7500])
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    """The triplet loss max(0, d(anchor, positive) - d(anchor, negative) + margin) with the distance d of the p-norm.

    Parameters
    ----------
    margin : float, optional
        Margin by which the negative must be further away, positive (default: 1).
    p : float, optional
        Order of the norm (default: 2).
    eps : float, optional
        Added to the differences, so that the norm is differentiable at 0.
    swap : bool, optional
        Use d(positive, negative) if it is smaller than d(anchor, negative).
    {size_average}
    {reduction}

    Raises
    ------
    ValueError
        If `margin` is not positive.

    Notes
    -----
    Anchor, positive, negative: (N, D) or (D).

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> a, p, n = gradlab.tensor([[0.0]]), gradlab.tensor([[1.0]]), gradlab.tensor([[3.0]])
    >>> nn.TripletMarginLoss(margin=4.0, eps=0.0)(a, p, n)
    tensor(2.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(Loss):
    """The triplet loss max(0, d(anchor, positive) - d(anchor, negative) + margin) with a custom distance d.

    Parameters
    ----------
    distance_function : callable, optional
        Function that returns the distances of two tensors (default: `PairwiseDistance()`).
    margin : float, optional
        Margin by which the negative must be further away, positive (default: 1).
    swap : bool, optional
        Use d(positive, negative) if it is smaller than d(anchor, negative).
    {reduction}

    Raises
    ------
    ValueError
        If `margin` is not positive.

    Notes
    -----
    Anchor, positive, negative: (N, *), as `distance_function` accepts them.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), margin=4.0)
    >>> loss(gradlab.tensor([[0.0]]), gradlab.tensor([[1.0]]), gradlab.tensor([[3.0]]))
    tensor(2.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
