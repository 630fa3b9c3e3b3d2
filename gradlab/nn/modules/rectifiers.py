"""Activations that can overwrite their input: ReLU and its variants."""

from __future__ import annotations

import warnings

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.bases import InPlaceModule

__all__ = [
    "CELU",
    "ELU",
    "SELU",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "Mish",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Threshold",
]


class Rectifier(InPlaceModule):
    """Base of activations whose only setting is `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(Rectifier):
    """The rectifier max(x, 0) of each element.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    The gradient is 1 where x > 0, and 0 elsewhere, including x = 0.

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> nn.ReLU()(x).sum().backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, self.inplace)


class SELU(Rectifier):
    """The scaled ELU of self-normalizing networks: scale · x if x > 0, otherwise scale · alpha (exp(x) - 1).

    Parameters
    ----------
    {inplace}

    Notes
    -----
    The constants scale = 1.0507… and alpha = 1.6733… of Klambauer et al. (2017) preserve mean 0 and variance 1 across layers.

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.SELU()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.selu(input, self.inplace)


class SiLU(Rectifier):
    """The function x · sigmoid(x) of each element, also called swish.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.SiLU()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, self.inplace)


class Mish(Rectifier):
    """The function x · tanh(log(1 + exp(x))) of each element.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Mish()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.mish(input, self.inplace)


class Hardsigmoid(Rectifier):
    """A piecewise linear approximation of the logistic function: min(max(x + 3, 0), 6) / 6 of each element.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Hardsigmoid()(gradlab.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(Rectifier):
    """The function x · min(max(x + 3, 0), 6) / 6 of each element.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Hardswish()(gradlab.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000, 1.1250, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(InPlaceModule):
    """Clamp each element to [min_val, max_val].

    Parameters
    ----------
    min_val, max_val : float, optional
        The bounds (default: -1 and 1).
    {inplace}
    min_value, max_value : float, optional
        Deprecated names of the bounds.

    Raises
    ------
    AssertionError
        If `max_val` is not greater than `min_val`.

    Notes
    -----
    The gradient is 0 where an element is at or beyond a bound.

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    >>> nn.Hardtanh()(x).sum().backward()
    >>> x.grad
    tensor([0., 1., 0.])
    """

    repr_format = "min_val={min_val}, max_val={max_val}"

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn("keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn("keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """Clamp each element to [0, 6].

    Parameters
    ----------
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ReLU6()(gradlab.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    repr_format = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(InPlaceModule):
    """The leaky ReLU: x if x > 0, otherwise negative_slope · x.

    Parameters
    ----------
    negative_slope : float, optional
        Slope for x < 0 (default: 0.01).
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.LeakyReLU(0.1)(gradlab.tensor([-2.0, 3.0]))
    tensor([-0.2000,  3.0000])
    """

    repr_format = "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(InPlaceModule):
    """The exponential linear unit: x if x > 0, otherwise alpha (exp(x) - 1).

    Parameters
    ----------
    alpha : float, optional
        Minus the limit for x → -∞ (default: 1).
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ELU()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.6321,  0.0000,  1.0000])
    """

    repr_format = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, self.inplace)


class CELU(InPlaceModule):
    """The exponential linear unit with a continuous slope for every alpha: x if x > 0, otherwise alpha (exp(x / alpha) - 1).

    Parameters
    ----------
    alpha : float, optional
        Minus the limit for x → -∞ (default: 1).
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.CELU(2.0)(gradlab.tensor([-2.0, 0.0, 1.0]))
    tensor([-1.2642,  0.0000,  1.0000])
    """

    repr_format = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha, self.inplace)


class Threshold(InPlaceModule):
    """Replace elements that do not exceed the threshold by `value`.

    Parameters
    ----------
    threshold : float
        Elements greater than this are kept.
    value : float
        Replacement for the others, which receive no gradient.
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Threshold(1.0, -5.0)(gradlab.tensor([0.5, 1.0, 2.0]))
    tensor([-5., -5.,  2.])
    """

    repr_format = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(InPlaceModule):
    """Leaky ReLU with a random slope for each element in training, and the mean slope in evaluation.

    Parameters
    ----------
    lower, upper : float, optional
        Bounds of the uniform distribution of the slopes (default: 1/8 and 1/3).
    {inplace}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.RReLU(0.25, 0.75).eval()(gradlab.tensor([-2.0, 3.0]))
    tensor([-1.,  3.])
    """

    repr_format = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)
