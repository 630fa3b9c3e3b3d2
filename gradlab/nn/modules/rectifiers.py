"""Activations that may overwrite their input: ReLU and its kin."""

from __future__ import annotations

import warnings

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.described import InPlace

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


class Rectifier(InPlace):
    """`inplace` is the only setting."""

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
    The gradient is 1 where x is positive and 0 elsewhere, at 0 too.

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
    """The scaled ELU of self-normalizing networks: scale times x where positive, scale · alpha (exp(x) - 1) elsewhere.

    Parameters
    ----------
    {inplace}

    Notes
    -----
    scale = 1.0507… and alpha = 1.6733… are those of Klambauer et al. (2017), which keep mean 0 and variance 1
    from layer to layer.

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
    """x · sigmoid(x) of each element, also called swish.

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
    """x · tanh(log(1 + exp(x))) of each element.

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
    """min(max(x + 3, 0), 6) / 6 of each element: straight lines in place of the logistic function.

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
    """x · min(max(x + 3, 0), 6) / 6 of each element.

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


class Hardtanh(InPlace):
    """Each element kept within min_val ... max_val.

    Parameters
    ----------
    min_val, max_val : float, optional
        The bounds: -1 and 1 unless given.
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

    shown = "min_val={min_val}, max_val={max_val}"

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
    """min(max(x, 0), 6) of each element.

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

    shown = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(InPlace):
    """x where it is positive, negative_slope · x elsewhere.

    Parameters
    ----------
    negative_slope : float, optional
        The slope below 0: 0.01 unless given.
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

    shown = "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(InPlace):
    """x where it is positive, alpha (exp(x) - 1) elsewhere.

    Parameters
    ----------
    alpha : float, optional
        Minus the limit towards -∞: 1 unless given.
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

    shown = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, self.inplace)


class CELU(InPlace):
    """x where it is positive, alpha (exp(x / alpha) - 1) elsewhere: its slope has no jump at 0, whatever alpha is.

    Parameters
    ----------
    alpha : float, optional
        Minus the limit towards -∞: 1 unless given.
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

    shown = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha, self.inplace)


class Threshold(InPlace):
    """x where it is above the threshold, `value` elsewhere.

    Parameters
    ----------
    threshold : float
        What an element has to exceed to be kept.
    value : float
        What stands in place of the others, which get no gradient.
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

    shown = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(InPlace):
    """Leaky ReLU with slopes drawn anew for each element while training, and with their mean in evaluation.

    Parameters
    ----------
    lower, upper : float, optional
        The slopes are uniform in lower ... upper: 1/8 and 1/3 unless given.
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

    shown = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)
