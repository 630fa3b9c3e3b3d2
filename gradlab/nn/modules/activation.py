"""Activations: the functions of `gradlab.nn.functional` with their settings kept."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.described import Described, Plain, unset
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
class Sigmoid(Plain):
    """The logistic function 1 / (1 + exp(-x)) of each element, between 0 and 1.

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


class Tanh(Plain):
    """The hyperbolic tangent of each element, between -1 and 1.

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


class LogSigmoid(Plain):
    """log(1 / (1 + exp(-x))) of each element, without overflow.

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


class Softsign(Plain):
    """x / (1 + |x|) of each element.

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


class Tanhshrink(Plain):
    """x - tanh(x) of each element.

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
class GELU(Described):
    """x Φ(x) of each element, with Φ the standard normal distribution's cumulative function.

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

    shown = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, approximate=self.approximate)


class Softplus(Described):
    """log(1 + exp(beta x)) / beta of each element: a ReLU without a kink.

    Parameters
    ----------
    beta : float, optional
        How sharp the bend is: 1 unless given.
    threshold : float, optional
        Where beta x is above it (20 unless given), the result is x itself.

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

    shown = "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)


class Shrink(Described):
    """The settings of the two shrinking functions."""

    shown = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(Shrink):
    """x, or 0 where |x| is at most lambd.

    Parameters
    ----------
    lambd : float, optional
        The bound: 0.5 unless given.

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


class Softshrink(Shrink):
    """x moved by lambd towards 0, and 0 where that would pass it.

    Parameters
    ----------
    lambd : float, optional
        How far, not negative: 0.5 unless given.

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


class PReLU(Described):
    """Leaky ReLU whose slope is learned: x where it is positive, weight · x elsewhere.

    Parameters
    ----------
    num_parameters : int, optional
        1 for one slope for all (the default), or the number of channels for one slope each.
    init : float, optional
        The slopes at the start: 0.25 unless given.
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (num_parameters,)
        The slopes.

    Notes
    -----
    Input: any shape; with a slope for each channel (N, C, *). Output: the input's shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.PReLU()
    >>> layer(gradlab.tensor([-2.0, 3.0])).sum().backward()
    >>> layer.weight.grad
    tensor([-2.])
    """

    shown = "num_parameters={num_parameters}"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = unset(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to `init`.

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


class GLU(Described):
    """The gated linear unit: the first half along `dim`, times the sigmoid of the second half.

    Parameters
    ----------
    dim : int, optional
        The dimension that is halved: the last unless given. Its size must be even.

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

    shown = "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)


# ---------------------------------------------------------------------------------------------------------------- softmaxes
class Normalized(Described):
    """The settings of the softmaxes. Without `dim` torch's old choice is made, with its warning."""

    shown = "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(Normalized):
    """exp(x) divided by its sum along `dim`: numbers between 0 and 1 that sum to 1.

    Parameters
    ----------
    {softmax_dim}

    Notes
    -----
    `CrossEntropyLoss` takes logits and does this itself: no softmax stands before it.

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


class Softmin(Normalized):
    """The softmax of -x along `dim`: the smallest element gets the largest share.

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


class LogSoftmax(Normalized):
    """x - log(Σ exp(x)), the sum along `dim`: the logarithm of the softmax, without overflow.

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


class Softmax2d(Plain):
    """The softmax over the channels, at each place of a picture.

    Raises
    ------
    ValueError
        If the input has not 3 or 4 dimensions.

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
