"""Smooth activations: exponential units, gates and smooth versions of `relu`."""

from __future__ import annotations

from gradlab.core.errors import not_implemented
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.activations import CELU, SELU, number, run
from gradlab.nn.functional.descriptions import document_twin_of, with_descriptions
from gradlab.ops import abs, div, sigmoid, sub, tanh
from gradlab.ops.arguments import negative_dim, not_a_tensor
from gradlab.ops.copies import compute_in_float32
from gradlab.rules import activations as rules
from gradlab.rules import elementwise as el

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "logsigmoid",
    "mish",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
]

GATED = el.mul.with_node("GluBackward0")


# ----------------------------------------------------------------------------------------------------------- smooth units
@with_descriptions
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Apply the exponential linear unit: negative elements become an exponential with limit -alpha.

    Parameters
    ----------
    {floats}
    alpha : float, default: 1.0
        Minus the limit for large negative elements.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = x \text{ if } x > 0, \; \alpha (e^x - 1) \text{ otherwise}

    Clevert et al. (2015).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-1.0, 0.0, 2.0])
    >>> F.elu(x)
    tensor([-0.6321,  0.0000,  2.0000])
    """
    return run(rules.elu, input, inplace, alpha=number("elu", "alpha", 2, alpha), scale=1, rate=1)


@document_twin_of(elu)
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return elu(input, alpha, True)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848, 1.0507009873554804934  # Klambauer et al. (2017), equation 14


@with_descriptions
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Apply the scaled exponential linear unit, whose constants preserve mean 0 and variance 1 across layers.

    Parameters
    ----------
    {floats}
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = \lambda x \text{ if } x > 0, \; \lambda \alpha (e^x - 1) \text{ otherwise}

    λ = 1.0507… and α = 1.6733… (Klambauer et al. 2017, equation 14).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-1.0, 0.0, 2.0])
    >>> F.selu(x)
    tensor([-1.1113,  0.0000,  2.1014])
    """
    return run(SELU, input, inplace, alpha=SELU_ALPHA, scale=SELU_SCALE, rate=1)


@document_twin_of(selu)
def selu_(input: Tensor) -> Tensor:
    return selu(input, True)


@with_descriptions
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""Apply the exponential linear unit with a continuous derivative for every `alpha`.

    Parameters
    ----------
    {floats}
    alpha : float, default: 1.0
        Minus the limit for large negative elements. Must not be 0.
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    RuntimeError
        If `alpha` is 0, or if `inplace` and `input` is a leaf that requires a gradient.

    Notes
    -----
    .. math:: y = \max(x, 0) + \min(0, \alpha (e^{x / \alpha} - 1))

    Barron (2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([-1.0, 0.0, 2.0])
    >>> F.celu(x, 2.0)
    tensor([-0.7869,  0.0000,  2.0000])
    """
    if not number("celu", "alpha", 2, alpha):
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return run(CELU, input, inplace, alpha=alpha, scale=1, rate=1 / alpha)


@document_twin_of(celu)
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    return celu(input, alpha, True)


@with_descriptions
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    r"""Multiply each element x by Φ(x), the standard normal distribution function.

    Parameters
    ----------
    {floats}
    approximate : {"none", "tanh"}, default: "none"
        Compute Φ exactly, or approximate it with tanh.

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    RuntimeError
        If `approximate` is neither "none" nor "tanh".

    Notes
    -----
    .. math:: y = x \Phi(x) = \tfrac{x}{2} (1 + \operatorname{erf}(x / \sqrt{2}))

    or, with `approximate="tanh"`,

    .. math:: y = \tfrac{x}{2} \left(1 + \tanh\left(\sqrt{2 / \pi} (x + 0.044715 x^3)\right)\right)

    Hendrycks and Gimpel (2016).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.gelu(gl.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    >>> F.gelu(gl.tensor([-1.0, 0.0, 1.0]), approximate="tanh")
    tensor([-0.1588,  0.0000,  0.8412])
    """
    if approximate == "none":
        return rules.gelu.record(input)
    if approximate != "tanh":
        raise RuntimeError(f"approximate argument must be either none or tanh. Got {approximate!r}.")
    return rules.gelu_tanh.record(input)


@with_descriptions
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Multiply each element by its sigmoid (also called swish).

    Parameters
    ----------
    {floats}
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = x \sigma(x) = x / (1 + e^{-x})

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.silu(gl.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return run(rules.silu, input, inplace)


@with_descriptions
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Multiply each element by the tanh of its softplus.

    Parameters
    ----------
    {floats}
    {inplace}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}
    {leaf}

    Notes
    -----
    .. math:: y = x \tanh(\log(1 + e^x))

    Misra (2019).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.mish(gl.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """
    return run(rules.mish, input, inplace)


@with_descriptions
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    r"""Apply a smooth version of `relu`.

    Parameters
    ----------
    {floats}
    beta : float, default: 1
        Sharpness of the bend at 0.
    threshold : float, default: 20
        If beta · x exceeds it, the result is x.

    Returns
    -------
    {same}

    Raises
    ------
    {refused}

    Notes
    -----
    .. math:: y = \log(1 + e^{\beta x}) / \beta

    The derivative is σ(βx).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.softplus(gl.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    return rules.softplus.record(
        input, beta=number("softplus", "beta", 2, beta), threshold=number("softplus", "threshold", 3, threshold)
    )


@with_descriptions
def logsigmoid(input: Tensor) -> Tensor:
    r"""Compute the logarithm of the sigmoid without overflow.

    Parameters
    ----------
    {floats}

    Returns
    -------
    {same}

    Raises
    ------
    {refused}

    Notes
    -----
    .. math:: y = \log \sigma(x) = -\log(1 + e^{-x})

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.logsigmoid(gl.tensor([-200.0, 0.0, 2.0]))
    tensor([-2.0000e+02, -6.9315e-01, -1.2693e-01])
    """
    return rules.logsigmoid.record(input)


def softsign(input: Tensor) -> Tensor:
    """Compute x / (1 + |x|) for each element.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point. Integers are converted to the default dtype.

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    .. math:: y = x / (1 + |x|)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.softsign(gl.tensor([-3.0, 0.0, 1.0]))
    tensor([-0.7500,  0.0000,  0.5000])
    """
    return div(input, abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    r"""Subtract the tanh from each element.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point. Integers are converted to the default dtype.

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` holds bools.

    Notes
    -----
    .. math:: y = x - \tanh(x)

    Near 0 this is x³ / 3, so the derivative at 0 is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.tanhshrink(gl.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.0360,  0.0000,  1.0360])
    """
    return sub(input, tanh(input))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    r"""Multiply one half of the input by the sigmoid of the other half (gated linear unit).

    Parameters
    ----------
    input : Tensor
        Floating-point tensor with an even length along `dim`.
    dim : int, default: -1
        The dimension to halve.

    Returns
    -------
    Tensor
        Same shape as `input`, except that `dim` is half as long.

    Raises
    ------
    RuntimeError
        If the length is odd, or `input` has no dimension.
    IndexError
        If `input` has no dimension `dim`.
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    .. math:: y = a \, \sigma(b)

    where a is the first half and b the second (Dauphin et al. 2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.glu(gl.tensor([2.0, 4.0, 0.0, 100.0]))
    tensor([1., 4.])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("glu", input)
    if not input.array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even. Use at least one axis.")
    axis = negative_dim(dim, input.array.ndim)
    n = input.array.shape[axis]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis + input.array.ndim} is size {n}")
    if input.array.dtype.kind != "f":
        raise not_implemented("glu", input.dtype)
    if input.array.dtype.char == "e":
        return compute_in_float32(glu, input, axis)
    behind = (slice(None),) * (-axis - 1)
    a, b = (input[(..., half, *behind)] for half in (slice(0, n // 2), slice(n // 2, n)))
    return GATED.record(a, sigmoid(b))
