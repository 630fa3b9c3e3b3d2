"""Activations, as `torch.nn.functional` spells them. `inplace=True` and the twins `relu_` … write into the argument."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core.errors import not_implemented
from gradlab.core.inplace import in_place
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import abs, div, max, sigmoid, sub, tanh
from gradlab.ops import log_softmax as log_softmax_along
from gradlab.ops import relu as relu_of
from gradlab.ops import softmax as softmax_along
from gradlab.ops.arguments import one_dim
from gradlab.ops.copies import in_single
from gradlab.rules import activations as rules
from gradlab.rules import elementwise as el
from gradlab.rules import shapes

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


SELU, CELU = rules.elu.named("EluBackward0"), rules.elu.named("CeluBackward0")
RRELU = rules.leaky_relu.named("RreluWithNoiseBackward0")
DRAWN, GATED = el.mul.named("RreluWithNoiseBackward0"), el.mul.named("GluBackward0")
IN_PLACE = {
    op: op.named(f"{op.node_name[:-1]}1")
    for op in (  # torch's nodes of the twins
        rules.elu,
        SELU,
        CELU,
        rules.leaky_relu,
        rules.threshold,
        RRELU,
        DRAWN,
    )
}


def run(op: Any, input: Tensor, inplace: bool, *others: Tensor, **meta: Any) -> Tensor:
    """The operation, or its in-place twin."""
    if not inplace:
        return op.record(input, *others, **meta)
    if type(input) is not Tensor or input.array.dtype.kind != "f":
        op.record(input, *others, **meta)  # refuses what it has no meaning for, before a write
    return in_place(IN_PLACE.get(op, op), input, *others, **meta)


def number(function: str, name: str, position: int, value: Any) -> Any:
    """A parameter as a Python number."""
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, (Tensor, np.generic)) and value.ndim == 0:
        return value.item()
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(
        f"{function}(): argument '{name}' (position {position}) must be Number, not {type(value).__name__}. Give a Python number."
    )


# -------------------------------------------------------------------------------------------------------- rectified units
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); its derivative at 0 is 0."""
    return in_place(el.relu, input) if inplace else relu_of(input)


def relu_(input: Tensor) -> Tensor:
    """`relu`, written into its argument's memory."""
    return in_place(el.relu, input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6); its derivative at 0 and 6 is 0."""
    return clamped("relu6", input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, but at least `min_val` and at most `max_val`; its derivative at the bounds is 0."""
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val. They are {min_val} and {max_val}.")
    return clamped("hardtanh", input, min_val, max_val, inplace)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, written into its argument's memory."""
    return hardtanh(input, min_val, max_val, True)


def clamped(name: str, input: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    if type(input) is Tensor and input.array.dtype.kind != "f":
        if input.array.dtype.kind == "b":
            raise RuntimeError("Bool inputs not supported for hardtanh. Call .float() first.")
        low, high = int(low), int(high)
    elif type(input) is not Tensor:
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return run(rules.hardtanh, input, inplace, low=low, high=high)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is greater than the threshold, `value` elsewhere."""
    bound, value = number("threshold", "threshold", 2, threshold), number("threshold", "value", 3, value)
    if type(input) is Tensor and input.array.dtype.kind in "iu":
        bound, value = int(bound), int(value)
    return run(rules.threshold, input, inplace, threshold=bound, value=value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold`, written into its argument's memory."""
    return globals()["threshold"](input, threshold, value, True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, negative_slope · x elsewhere."""
    return run(rules.leaky_relu, input, inplace, slope=number("leaky_relu", "negative_slope", 2, negative_slope))


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu`, written into its argument's memory."""
    return leaky_relu(input, negative_slope, True)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, weight · x elsewhere; `weight` is one number, or one for each channel (the second axis)."""
    for position, (name, x) in enumerate((("input", input), ("weight", weight)), start=1):
        if not isinstance(x, Tensor):
            raise TypeError(f"prelu(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}.")
    if input.array.dtype != weight.array.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.word} and {weight.dtype.word}. Convert one of "
            "them: weight.to(input.dtype)."
        )
    rank, parameters = input.array.ndim, weight.array.size
    if weight.array.ndim > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.array.ndim}. Its shape is {list(weight.array.shape)}."
        )
    if parameters != 1:
        if not rank:
            raise RuntimeError("Not allow zero-dim input tensor. With one weight it may have any number of axes.")
        channels = input.array.shape[1] if rank > 1 else 1
        if channels != parameters:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{parameters} and channel size = {channels}. The input's shape is {list(input.array.shape)}."
            )
    if weight.array.ndim and rank != 1:
        weight = shapes.reshape.record(weight, shape=(parameters, *[1] * (rank - 2)) if rank > 1 else ())
    return rules.prelu.record(input, weight)


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """x where it is positive, a · x elsewhere: a is drawn for each element from (lower, upper) in training, else their mean."""
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound. They are {lower} and {upper}.")
    if not training:
        return run(RRELU, input, inplace, slope=(lower + upper) / 2)
    rules.leaky_relu.record(input, slope=0.0)  # refuses what is no float tensor
    xp, x = namespace_of[type(input.array)], input.array
    noise, drawn_for = xp.ones_like(x), x <= 0
    noise[drawn_for] = xp.asarray(stream(xp).uniform((int(drawn_for.sum()),), np.float64, lower, upper))
    return run(DRAWN, input, inplace, constant(noise))


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, written into its argument's memory."""
    return rrelu(input, lower, upper, training, True)


# ----------------------------------------------------------------------------------------------------------- smooth units
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, α (eˣ - 1) elsewhere."""
    return run(rules.elu, input, inplace, alpha=number("elu", "alpha", 2, alpha), scale=1, rate=1)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, written into its argument's memory."""
    return elu(input, alpha, True)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848, 1.0507009873554804934  # Klambauer et al. (2017), equation 14


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """1.0507 x where it is positive, 1.0507 · 1.6733 (eˣ - 1) elsewhere (Klambauer et al. 2017)."""
    return run(SELU, input, inplace, alpha=SELU_ALPHA, scale=SELU_SCALE, rate=1)


def selu_(input: Tensor) -> Tensor:
    """`selu`, written into its argument's memory."""
    return selu(input, True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, α (e^(x/α) - 1) elsewhere."""
    if not number("celu", "alpha", 2, alpha):
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return run(CELU, input, inplace, alpha=alpha, scale=1, rate=1 / alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu`, written into its argument's memory."""
    return celu(input, alpha, True)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x Φ(x), Φ the normal distribution function; approximate="tanh" is Hendrycks and Gimpel's (2016) formula for it."""
    if approximate == "none":
        return rules.gelu.record(input)
    if approximate != "tanh":
        raise RuntimeError(f"approximate argument must be either none or tanh. It is {approximate!r}.")
    return rules.gelu_tanh.record(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x σ(x), also called swish."""
    return run(rules.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(log(1 + eˣ))."""
    return run(rules.mish, input, inplace)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + e^(βx)) / β; x itself where βx exceeds the threshold."""
    return rules.softplus.record(
        input, beta=number("softplus", "beta", 2, beta), threshold=number("softplus", "threshold", 3, threshold)
    )


def logsigmoid(input: Tensor) -> Tensor:
    """log(σ(x)), computed without overflow."""
    return rules.logsigmoid.record(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return run(rules.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x min(max(x + 3, 0), 6) / 6."""
    return run(rules.hardswish, input, inplace)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return div(input, abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return sub(input, tanh(input))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, and 0 where that would pass it."""
    limit = number("softshrink", "lambd", 2, lambd)
    if not limit >= 0:
        largest = f"{np.finfo(input.array.dtype).max:g}" if input.array.dtype.kind == "f" else "inf"
        raise RuntimeError(
            f"lambda must be in range [0, {largest}] for input dtype {input.dtype.word}, but found {limit:g}. It "
            "says how far towards 0 the elements move."
        )
    return rules.softshrink.record(input, limit=limit)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, 0 elsewhere."""
    return rules.hardshrink.record(input, limit=number("hardshrink", "lambd", 2, lambd))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a σ(b), a and b being the halves of the input along `dim`."""
    if not input.array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even. Give at least one axis.")
    axis = one_dim(dim, input.array.ndim)
    n = input.array.shape[axis]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis + input.array.ndim} is size {n}")
    if input.array.dtype.kind != "f":
        raise not_implemented("glu", input.dtype)
    if input.array.dtype.char == "e":
        return in_single(glu, input, axis)
    behind = (slice(None),) * (-axis - 1)
    a, b = (input[(..., half, *behind)] for half in (slice(0, n // 2), slice(n // 2, n)))
    return GATED.record(a, sigmoid(b))


# ---------------------------------------------------------------------------------------------------------------- softmax
def implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The axis that torch chooses if none is given, with its warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`."""
    axis = implicit_dim("softmax", input.array.ndim, _stacklevel) if dim is None else dim
    return softmax_along(input, axis, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x) along `dim`."""
    axis = implicit_dim("softmin", input.array.ndim, _stacklevel) if dim is None else dim
    return softmax_along(-input, axis, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed without overflow."""
    axis = implicit_dim("log_softmax", input.array.ndim, _stacklevel) if dim is None else dim
    return log_softmax_along(input, axis, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Softmax of (logits + Gumbel noise) / tau along `dim` (Jang et al. 2016); with `hard`, one-hot with the gradient of that.

    `eps` has no effect."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    if logits.array.dtype.kind != "f":
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but"
            f" you specified {logits.dtype.word}. Call logits.float() first."
        )
    xp = namespace_of[type(logits.array)]
    drawn = stream(xp).exponential(logits.array.shape).astype(logits.array.dtype)
    soft = softmax_along((logits + constant(-xp.log(xp.asarray(drawn)))) / tau, dim)
    if not hard:
        return soft
    chosen = max(soft.detach(), dim, keepdim=True)[1].array
    classes = xp.arange(soft.array.shape[dim]).reshape((-1,) + (1,) * (-one_dim(dim, soft.array.ndim) - 1))
    return constant((classes == chosen).astype(soft.array.dtype)) - soft.detach() + soft
