"""Losses as modules: the functions of `gradlab.nn.functional` with their settings kept.

Class weights and positive weights are buffers: they move with the module and are in its `state_dict`.
"""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
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
from gradlab.nn.modules.reduced import Loss, WeightedLoss

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
    """The squared differences (input - target)², averaged.

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
    """The absolute differences |input - target|, averaged.

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
    """Quadratic for differences below beta, linear above: d² / (2 beta), or |d| - beta / 2.

    Parameters
    ----------
    {size_average}
    {reduction}
    beta : float, optional
        Where the two meet: 1 unless given; 0 makes it `L1Loss`.

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
    """Quadratic for differences below delta, linear above: d² / 2, or delta (|d| - delta / 2).

    Parameters
    ----------
    {reduction}
    delta : float, optional
        Where the two meet: 1 unless given.

    Raises
    ------
    TypeError
        If `delta` is not a number.

    Notes
    -----
    It is delta times `SmoothL1Loss` with beta = delta.

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
    """The cross entropy of logits against target classes, or against probabilities of classes.

    Parameters
    ----------
    {class_weight}
    {size_average}
    {ignore_index}
    {reduction}
    label_smoothing : float, optional
        Which part of each target, 0 ... 1, is spread evenly over all classes: 0 unless given.

    Notes
    -----
    Of logits x and class t the loss is log(Σ exp(x_c)) - x_t, so the gradient is softmax(x) - one_hot(t). With class weights the
    mean divides by the sum of the targets' weights, not by their number.

    Input: (C), (N, C) or (N, C, d₁, …), logits: no softmax before it. Target: integers (), (N) or (N, d₁, …) in 0 ... C - 1, or
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
    """The negative log-probability of the target classes.

    Parameters
    ----------
    {class_weight}
    {size_average}
    {ignore_index}
    {reduction}

    Notes
    -----
    After `LogSoftmax` over the classes it is `CrossEntropyLoss`. With class weights the mean divides by the sum of the targets'
    weights.

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
    The logarithms are kept at or above -100, so that the loss is finite at p = 0 and p = 1. For logits `BCEWithLogitsLoss` is
    more exact than a sigmoid before this.

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
    """The binary cross entropy of logits: that of the probabilities sigmoid(x), without overflow.

    Parameters
    ----------
    {element_weight}
    {size_average}
    {reduction}
    pos_weight : Tensor, optional
        What the terms of positive targets are multiplied by; a buffer, of a shape that broadcasts with the target's.

    Notes
    -----
    The gradient is sigmoid(x) - t for each element, divided by their number if the mean is taken.

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
    """The Kullback-Leibler divergence target · (log target - input), for log-probabilities as input.

    Parameters
    ----------
    {size_average}
    reduction : str, optional
        "mean" (the default) averages over all elements; "batchmean" adds and divides by the batch's size, which is the
        divergence; "sum" and "none" as elsewhere.
    log_target : bool, optional
        Whether the targets are log-probabilities too.

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
    """The negative log-likelihood of counts under Poisson distributions.

    Parameters
    ----------
    log_input : bool, optional
        Whether the input x is the logarithm of the rate: exp(x) - t x (the default); else x - t log(x + eps).
    full : bool, optional
        Whether Stirling's approximation of log(t!) is added where t is above 1.
    {size_average}
    eps : float, optional
        Added within the logarithm if `log_input` is False.
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
    """The negative log-likelihood of targets under normal distributions: (log var + (input - target)² / var) / 2.

    Parameters
    ----------
    full : bool, optional
        Whether the constant log(2π) / 2 is added.
    eps : float, optional
        The variances are kept at or above it.
    {reduction}

    Notes
    -----
    The variance is the third argument: of the input's shape, or of one that lacks the last dimension or has 1 there.

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
    """Connectionist temporal classification: it can be made, as part of a model, but not called.

    Parameters
    ----------
    blank : int, optional
        The class that stands for no label: 0 unless given.
    {reduction}
    zero_infinity : bool, optional
        Whether infinite losses, of targets too long for their input, become 0.

    Raises
    ------
    NotImplementedError
        If it is called.

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
