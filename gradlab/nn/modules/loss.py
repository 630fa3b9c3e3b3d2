"""Loss layers: functions of `gradlab.nn.functional` with settings.

Class weights and positive weights are buffers: they move with the module and are part of its `state_dict`.
"""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.loss_bases import Loss, WeightedLoss
from gradlab.nn.modules.margin_losses import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


# --------------------------------------------------------------------------------------------------------------- differences
class MSELoss(Loss):
    """The mean squared error: (input - target)², averaged.

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
    >>> nn.MSELoss()(gradlab.tensor([1.0, 2.0]), gradlab.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """The mean absolute error: |input - target|, averaged.

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
    >>> nn.L1Loss()(gradlab.tensor([1.0, 2.0]), gradlab.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """Loss that is quadratic for errors below beta and linear above: d² / (2 beta), or |d| - beta / 2.

    Parameters
    ----------
    {size_average}
    {reduction}
    beta : float, optional
        Error at which the loss changes from quadratic to linear (default: 1). 0 gives `L1Loss`.

    Notes
    -----
    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.SmoothL1Loss(reduction="none")(gradlab.tensor([0.5, 3.0]), gradlab.zeros(2))
    tensor([0.1250, 2.5000])
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Loss that is quadratic for errors below delta and linear above: d² / 2, or delta (|d| - delta / 2).

    Parameters
    ----------
    {reduction}
    delta : float, optional
        Error at which the loss changes from quadratic to linear (default: 1).

    Raises
    ------
    TypeError
        If `delta` is not a number.

    Notes
    -----
    This is delta times `SmoothL1Loss` with beta = delta.

    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.HuberLoss(reduction="none", delta=2.0)(gradlab.tensor([0.5, 3.0]), gradlab.zeros(2))
    tensor([0.1250, 4.0000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# ------------------------------------------------------------------------------------------------------------- probabilities
class CrossEntropyLoss(WeightedLoss):
    """The cross entropy of logits, for target classes or class probabilities.

    Parameters
    ----------
    {class_weight}
    {size_average}
    {ignore_index}
    {reduction}
    label_smoothing : float, optional
        Part of each target, between 0 and 1, that is distributed equally over all classes (default: 0).

    Notes
    -----
    For logits x and class t the loss is log(Σ exp(x_c)) - x_t, with gradient softmax(x) - one_hot(t). With class weights, the
    mean divides by the sum of the targets' weights instead of their number.

    Input: logits (C), (N, C) or (N, C, d₁, …), without a softmax. Target: integers (), (N) or (N, d₁, …) in 0 ... C - 1, or
    probabilities of the input's shape.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> logits = gradlab.tensor([[0.0, 0.0]], requires_grad=True)
    >>> nn.CrossEntropyLoss()(logits, gradlab.tensor([1])).backward()
    >>> logits.grad
    tensor([[ 0.5000, -0.5000]])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(WeightedLoss):
    """The negative log likelihood of the target classes.

    Parameters
    ----------
    {class_weight}
    {size_average}
    {ignore_index}
    {reduction}

    Notes
    -----
    After `LogSoftmax` over the classes this is `CrossEntropyLoss`. With class weights, the mean divides by the sum of the
    targets' weights.

    Input: log-probabilities (C), (N, C) or (N, C, d₁, …). Target: integers (), (N) or (N, d₁, …) in 0 ... C - 1.

    {sample}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> log_probs = gradlab.tensor([[0.25, 0.75]]).log()
    >>> nn.NLLLoss()(log_probs, gradlab.tensor([0]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class BCELoss(WeightedLoss):
    """The binary cross entropy of probabilities: -(t log p + (1 - t) log(1 - p)).

    Parameters
    ----------
    {element_weight}
    {size_average}
    {reduction}

    Notes
    -----
    Logarithms are clamped to at least -100, so the loss is finite at p = 0 and p = 1. For logits, `BCEWithLogitsLoss` is more
    accurate than a sigmoid followed by this loss.

    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.BCELoss()(gradlab.tensor([0.25]), gradlab.tensor([1.0]))
    tensor(1.3863)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """The binary cross entropy of logits, without overflow.

    Parameters
    ----------
    {element_weight}
    {size_average}
    {reduction}
    pos_weight : Tensor, optional
        Factor of the terms of positive targets, a buffer of a shape that broadcasts with the target's.

    Notes
    -----
    The gradient is sigmoid(x) - t for each element, divided by the number of elements for the mean.

    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([0.0, 4.0], requires_grad=True)
    >>> nn.BCEWithLogitsLoss(reduction="sum")(x, gradlab.tensor([1.0, 1.0])).backward()
    >>> x.grad
    tensor([-0.5000, -0.0180])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence target · (log target - input) for log-probabilities as input.

    Parameters
    ----------
    {size_average}
    reduction : str, optional
        "mean" (the default) averages over all elements; "batchmean" divides the sum by the batch size, which is the divergence;
        "sum" and "none" as in other losses.
    log_target : bool, optional
        Whether the targets are log-probabilities, too.

    Notes
    -----
    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> p, q = gradlab.tensor([[0.5, 0.5]]), gradlab.tensor([[0.25, 0.75]])
    >>> nn.KLDivLoss(reduction="batchmean")(q.log(), p)
    tensor(0.1438)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(Loss):
    """The negative log likelihood of counts under Poisson distributions.

    Parameters
    ----------
    log_input : bool, optional
        The input x is the logarithm of the rate, so the loss is exp(x) - t x (the default). Otherwise it is x - t log(x + eps).
    full : bool, optional
        Add Stirling's approximation of log(t!) where t > 1.
    {size_average}
    eps : float, optional
        Added to the argument of the logarithm if `log_input` is False.
    {reduction}

    Notes
    -----
    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.PoissonNLLLoss()(gradlab.tensor([0.0]), gradlab.tensor([3.0]))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return functional.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(Loss):
    """The negative log likelihood of targets under normal distributions: (log var + (input - target)² / var) / 2.

    Parameters
    ----------
    full : bool, optional
        Add the constant log(2π) / 2.
    eps : float, optional
        Lower bound of the variances.
    {reduction}

    Notes
    -----
    The variance is the third argument. Its last dimension may be missing or 1; otherwise it has the input's shape.

    {differences}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.GaussianNLLLoss()(gradlab.tensor([1.0]), gradlab.tensor([3.0]), gradlab.tensor([1.0]))
    tensor(2.)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class CTCLoss(Loss):
    """Connectionist temporal classification, which is not supported: it can be part of a model, but not be called.

    Parameters
    ----------
    blank : int, optional
        The blank class (default: 0).
    {reduction}
    zero_infinity : bool, optional
        Replace infinite losses by 0.

    Raises
    ------
    NotImplementedError
        If the loss is called.

    Examples
    --------
    >>> from gradlab import nn
    >>> nn.CTCLoss()
    CTCLoss()
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
