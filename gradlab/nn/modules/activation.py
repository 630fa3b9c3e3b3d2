"""Activation layers: functions of `gradlab.nn.functional` with settings."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.bases import ModuleWithoutSettings, ReprModule, empty_parameter
from gradlab.nn.modules.rectifiers import (
    CELU,
    ELU,
    SELU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    Mish,
    ReLU,
    ReLU6,
    RReLU,
    SiLU,
    Threshold,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


# ------------------------------------------------------------------------------------------------------- without settings
class Sigmoid(ModuleWithoutSettings):
    """The logistic function 1 / (1 + exp(-x)) of each element.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> x = gradlab.tensor([0.0, 2.0], requires_grad=True)
    >>> nn.Sigmoid()(x).sum().backward()
    >>> x.grad
    tensor([0.2500, 0.1050])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.sigmoid(input)


class Tanh(ModuleWithoutSettings):
    """The hyperbolic tangent of each element.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Tanh()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanh(input)


class LogSigmoid(ModuleWithoutSettings):
    """The logarithm of the logistic function, log(1 / (1 + exp(-x))), without overflow.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.LogSigmoid()(gradlab.tensor([-200.0, 0.0]))
    tensor([-200.0000,   -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.logsigmoid(input)


class Softsign(ModuleWithoutSettings):
    """The function x / (1 + |x|) of each element.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softsign()(gradlab.tensor([-3.0, 0.0, 1.0]))
    tensor([-0.7500,  0.0000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softsign(input)


class Tanhshrink(ModuleWithoutSettings):
    """The function x - tanh(x) of each element.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Tanhshrink()(gradlab.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanhshrink(input)


# ----------------------------------------------------------------------------------------------------------- with settings
class GELU(ReprModule):
    """The function x Φ(x) of each element, where Φ is the standard normal distribution function.

    Parameters
    ----------
    approximate : str, optional
        "none" for Φ itself, or "tanh" for Φ(x) ≈ (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.GELU()(gradlab.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """

    repr_format = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, approximate=self.approximate)


class Softplus(ReprModule):
    """A smooth ReLU: log(1 + exp(beta x)) / beta of each element.

    Parameters
    ----------
    beta : float, optional
        Sharpness of the bend (default: 1).
    threshold : float, optional
        If beta x exceeds it (default: 20), the result is x.

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softplus()(gradlab.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """

    repr_format = "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)


class ShrinkBase(ReprModule):
    """Base of the shrinkage functions, with the setting `lambd`."""

    repr_format = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(ShrinkBase):
    """Replace elements with absolute value at most `lambd` by 0.

    Parameters
    ----------
    lambd : float, optional
        Threshold of the absolute value (default: 0.5).

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Hardshrink()(gradlab.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardshrink(input, self.lambd)


class Softshrink(ShrinkBase):
    """Move elements towards 0 by `lambd`. Elements closer to 0 become 0.

    Parameters
    ----------
    lambd : float, optional
        Distance, not negative (default: 0.5).

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softshrink()(gradlab.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softshrink(input, self.lambd)


class PReLU(ReprModule):
    """Leaky ReLU with learned slopes: x if x > 0, otherwise weight · x.

    Parameters
    ----------
    num_parameters : int, optional
        1 for a single slope (the default), or the number of channels for one slope each.
    init : float, optional
        Initial slope (default: 0.25).
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (num_parameters,)
        The slopes.

    Notes
    -----
    Input: any shape, or (N, C, *) with one slope for each channel. Output: the input's shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.PReLU()
    >>> layer(gradlab.tensor([-2.0, 3.0])).sum().backward()
    >>> layer.weight.grad
    tensor([-2.])
    """

    repr_format = "num_parameters={num_parameters}"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = empty_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.PReLU(init=0.5)
        >>> layer.reset_parameters()
        >>> layer.weight.item()
        0.5
        """
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)


class GLU(ReprModule):
    """The gated linear unit: the first half along `dim` times the sigmoid of the second half.

    Parameters
    ----------
    dim : int, optional
        The dimension to halve (default: the last). Its size must be even.

    Notes
    -----
    Input: (*, 2 n, *), 2 n along `dim`. Output: (*, n, *).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.GLU()(gradlab.tensor([4.0, 6.0, 0.0, 0.0]))
    tensor([2., 3.])
    """

    repr_format = "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)


# ---------------------------------------------------------------------------------------------------------------- softmaxes
class SoftmaxBase(ReprModule):
    """Base of the softmaxes, with the setting `dim`. If it is omitted, torch's old choice is used, with its warning."""

    repr_format = "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(SoftmaxBase):
    """The softmax along `dim`: exp(x) divided by its sum.

    Parameters
    ----------
    {softmax_dim}

    Notes
    -----
    `CrossEntropyLoss` takes logits and includes the softmax: do not apply one before it.

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softmax(dim=0)(gradlab.tensor([0.0, 0.0, 1000.0]))
    tensor([0., 0., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, 5)


class Softmin(SoftmaxBase):
    """The softmax of -x along `dim`: the smallest element has the largest probability.

    Parameters
    ----------
    {softmax_dim}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softmin(dim=0)(gradlab.tensor([1.0, 2.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, 5)


class LogSoftmax(SoftmaxBase):
    """The logarithm of the softmax along `dim`, x - log(Σ exp(x)), without overflow.

    Parameters
    ----------
    {softmax_dim}

    Notes
    -----
    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.LogSoftmax(dim=0)(gradlab.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, 5)


class Softmax2d(ModuleWithoutSettings):
    """The softmax over the channels at each position of an image.

    Raises
    ------
    ValueError
        If the input has neither 3 nor 4 dimensions.

    Notes
    -----
    Input: (N, C, H, W) or (C, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Softmax2d()(gradlab.zeros(4, 1, 2))[0]
    tensor([[0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return functional.softmax(input, -3)
