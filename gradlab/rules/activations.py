"""Element-wise activation functions.

Many are defined piecewise. At a kink the derivative is PyTorch's subgradient, and NaN belongs to the piece for which no
comparison holds. Slopes that take several passes are separate primitives. Their forward works in one buffer, and a recorded
sweep differentiates them by their own rules.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log as log_of
from math import pi, sqrt

import numpy as np

from gradlab.backend.special import special_of
from gradlab.core.primitive import Primitive, elementwise
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.constants import ONE, one_minus
from gradlab.rules.elementary import sigmoid
from gradlab.rules.masking import keep_where, select


def is_outside(x: Array, limit: float) -> Array:
    """Return a mask of the elements outside [-limit, limit]."""
    return (x > limit) | (x < -limit)


# ------------------------------------------------------------------------------------------------------------ piecewise
def leaky_relu_forward(xp: Namespace, x: Array, *, slope: float) -> Array:
    return xp.maximum(x, x * slope) if 0 <= slope <= 1 else select(xp, x > 0, x, x * slope)


leaky_relu = elementwise(
    "leaky_relu",
    leaky_relu_forward,
    promote="real tensors",
    tex=r"\max({x}, 0) + {slope} \min({x}, 0)",
    formula=r"\bar{x} = [x > 0]\,\bar{y} + [x \le 0]\,s\,\bar{y}",
    x=lambda xp, g, x, slope: select(xp, x > 0, g, g * slope),
    properties=Properties(keeps_sign=True, steepest=1, leaky=True),
)
prelu = elementwise(
    "prelu",
    lambda xp, x, w: select(xp, x > 0, x, w * x),
    node="PreluKernelBackward0",
    promote="real tensors",
    tex=r"\max({x}, 0) + {w} \min({x}, 0)",
    formula=r"\bar{x} = [x > 0]\,\bar{y} + [x \le 0]\,w\,\bar{y}, \quad \bar{w} = [x \le 0]\,x\,\bar{y}",
    x=lambda xp, g, x, w: select(xp, x > 0, g, w * g),
    w=lambda xp, g, x: xp.where(x > 0, 0, x * g),
    properties=Properties(leaky=True),
)
hardtanh = elementwise(
    "hardtanh",
    lambda xp, x, *, low, high: xp.clip(x, low, high),
    promote="number",
    tex=r"\min(\max({x}, {low}), {high})",
    formula=r"\bar{x} = [a < x < b]\,\bar{y}",
    x=lambda xp, g, x, low, high: keep_where(xp, (x > low) & (x < high), g),
    properties=Properties(keeps_sign=True, steepest=1, saturates="both", rectifier=True, sigmoidal=True),
)
hardsigmoid = elementwise(
    "hardsigmoid",
    lambda xp, x: xp.clip(x + 3, 0, 6) / 6,
    promote="real tensors",
    tex=r"\tfrac{{1}}{{6}} \min(\max({x} + 3, 0), 6)",
    formula=r"\bar{x} = \tfrac{1}{6}\,[-3 < x < 3]\,\bar{y}",
    x=lambda xp, g, x: keep_where(xp, (x > -3) & (x < 3), g / 6),
    properties=Properties(low=0, high=1, steepest=1 / 6, saturates="both", sigmoidal=True),
)
hardswish = elementwise(
    "hardswish",
    lambda xp, x: x * xp.clip(x + 3, 0, 6) / 6,
    promote="real tensors",
    tex=r"\tfrac{{1}}{{6}}\,{x} \min(\max({x} + 3, 0), 6)",
    formula=r"\bar{x} = [-3 < x < 3]\,(\tfrac{x}{3} + \tfrac{1}{2})\,\bar{y} + [x \ge 3]\,\bar{y}",
    x=lambda xp, g, x: keep_where(xp, x > -3, select(xp, x < 3, g * (x / 3 + 0.5), g)),
    properties=Properties(low=-3 / 8, keeps_sign=True, steepest=3 / 2, saturates="below", rectifier=True),
)
softshrink = elementwise(
    "softshrink",
    lambda xp, x, *, limit: select(xp, is_outside(x, limit), x - xp.copysign(limit, x), x * 0),
    promote="real tensors",
    tex=r"\mathrm{{sgn}}({x}) \max(|{x}| - {limit}, 0)",
    formula=r"\bar{x} = [|x| > \lambda]\,\bar{y}",
    x=lambda xp, g, x, limit: keep_where(xp, is_outside(x, limit), g),
    properties=Properties(still=True, keeps_sign=True, steepest=1),
)
hardshrink = elementwise(
    "hardshrink",
    lambda xp, x, *, limit: keep_where(xp, ~((x >= -limit) & (x <= limit)), x),
    promote="real tensors",
    tex=r"[|{x}| > {limit}]\,{x}",
    formula=r"\bar{x} = [|x| > \lambda]\,\bar{y}",
    x=lambda xp, g, x, limit: keep_where(xp, ~((x >= -limit) & (x <= limit)), g),
    properties=Properties(still=True, keeps_sign=True, steepest=1),
)
threshold = elementwise(
    "threshold",
    lambda xp, x, *, threshold, value: select(xp, x <= threshold, value, x),
    promote="number",
    tex=r"[{x} > {threshold}]\,{x} + [{x} \le {threshold}]\,{value}",
    formula=r"\bar{x} = [x > \theta]\,\bar{y}",
    x=lambda xp, g, x, threshold: keep_where(xp, ~(x <= threshold), g),
    properties=Properties(steepest=1, saturates="below", rectifier=True),
)


# --------------------------------------------------------------------------------------------------------- exponentials
def elu_forward(xp: Namespace, x: Array, *, alpha: float, scale: float, rate: float) -> Array:
    """Add both pieces: one of them is 0, so the sum is exact."""
    e = xp.empty_like(x)
    xp.minimum(x, 0, out=e)
    if rate != 1:
        e *= rate
    xp.expm1(e, out=e)
    if alpha * scale != 1:
        e *= alpha * scale
    positive = xp.maximum(x, 0)
    e += positive if scale == 1 else positive * scale
    return e


def elu_slope_forward(xp: Namespace, x: Array, *, alpha: float, scale: float, rate: float) -> Array:
    """Return the slope, at 0 from the left. If both sides have the same slope at 0, the exponential alone is enough."""
    e = xp.empty_like(x)
    xp.minimum(x, 0, out=e)
    if rate != 1:
        e *= rate
    xp.exp(e, out=e)
    if alpha and rate == 1 / alpha:
        if scale != 1:
            e *= scale
        return e
    e *= alpha * scale * rate
    return select(xp, x > 0, scale, e)


elu_slope = elementwise(
    "elu_slope",
    elu_slope_forward,
    node="EluBackwardBackward0",
    tex=r"\mathrm{{ELU}}'({x})",
    formula=r"\bar{x} = [x < 0]\,\beta\,y\,\bar{y}",
    x=lambda xp, g, x, out, rate: keep_where(xp, x < 0, g * (out * rate)),
    promote="single",
)
elu = elementwise(
    "elu",
    elu_forward,
    promote="real tensors",
    tex=r"\mathrm{{ELU}}({x})",
    formula=r"\bar{x} = s\,([x > 0] + [x \le 0]\,\alpha\,\beta\,e^{\beta x})\,\bar{y}",
    x=lambda x, alpha, scale, rate: elu_slope(x, alpha=alpha, scale=scale, rate=rate),
    properties=Properties(keeps_sign=True, steepest=1, saturates="below", rectifier=True),
)


def softplus_forward(xp: Namespace, x: Array, *, beta: float, threshold: float) -> Array:
    """Compute (max(z, 0) + log(1 + e^-|z|)) / β with z = βx, which does not overflow.

    Above the threshold the result is x. If the threshold is large enough, the formula already gives x to the last bit.
    """
    z = x if beta == 1 else x * beta
    e = xp.empty_like(x)
    xp.absolute(z, out=e)
    xp.negative(e, out=e)
    xp.exp(e, out=e)
    xp.log1p(e, out=e)
    e += xp.maximum(z, 0)
    if beta != 1:
        e /= beta
    return e if threshold > 1 - log_of(np.finfo(x.dtype).eps) else select(xp, z > threshold, x, e)


softplus_slope = elementwise(
    "softplus_slope",
    lambda xp, x, *, beta, threshold: xp.maximum(sigmoid(x * beta), x * beta > threshold),
    node="SoftplusBackwardBackward0",
    tex=r"\sigma(\beta {x})",
    formula=r"\bar{x} = \beta\,y\,(1 - y)\,\bar{y}",
    x=lambda xp, g, x, out, beta, threshold: xp.where(x * beta >= threshold, 0, g * out * (1 - out) * beta),
    promote="single",
    properties=Properties(low=0, high=1, saturates="both"),
)
softplus = elementwise(
    "softplus",
    softplus_forward,
    promote="real tensors",
    tex=r"\tfrac{{1}}{{\beta}} \log(1 + e^{{\beta {x}}})",
    formula=r"\bar{x} = \sigma(\beta x)\,\bar{y}",
    x=lambda x, beta, threshold: softplus_slope(x, beta=beta, threshold=threshold),
    properties=Properties(low=0, steepest=1, saturates="below"),
)


def logsigmoid_forward(xp: Namespace, x: Array) -> Array:
    e = xp.empty_like(x)
    xp.absolute(x, out=e)
    xp.negative(e, out=e)
    xp.exp(e, out=e)
    xp.log1p(e, out=e)
    return xp.subtract(xp.minimum(x, 0), e, out=e)


logsigmoid = elementwise(
    "logsigmoid",
    logsigmoid_forward,
    promote="real tensors",
    node="LogSigmoidBackward0",
    tex=r"\log \sigma({x})",
    formula=r"\bar{x} = \sigma(-x)\,\bar{y}",
    x=lambda x: sigmoid(-x),
    properties=Properties(high=0, steepest=1, saturates="above"),
)


def silu_forward(xp: Namespace, x: Array) -> Array:
    e = xp.empty_like(x)
    xp.negative(x, out=e)
    xp.exp(e, out=e)
    e += ONE if xp is np else 1
    return xp.divide(x, e, out=e)


def silu_slope(x: Array) -> Array:
    s = sigmoid(x)
    return s * (1 + x * one_minus(s))


silu = elementwise(
    "silu",
    silu_forward,
    promote="real tensors",
    tex=r"{x}\,\sigma({x})",
    formula=r"\bar{x} = \sigma(x)\,(1 + x\,(1 - \sigma(x)))\,\bar{y}",
    x=silu_slope,
    properties=Properties(low=-0.27847, keeps_sign=True, steepest=1.0998393201, saturates="below", rectifier=True),
)


def tanh_softplus(xp: Namespace, x: Array) -> Array:
    """Compute tanh(softplus(x)) = w / (w + 2) with w = eˣ (eˣ + 2). It is 1 to the last bit from x = 20 on."""
    e = xp.exp(xp.where(x > 20, 20, x))
    w = e * (e + 2)
    return w / (w + 2)


def mish_slope(xp: Namespace, x: Array) -> Array:
    t = tanh_softplus(xp, x)
    return t + x * sigmoid(x) * (1 - t * t)


mish = elementwise(
    "mish",
    lambda xp, x: x * tanh_softplus(xp, x),
    promote="real tensors",
    tex=r"{x} \tanh \log(1 + e^{{{x}}})",
    formula=r"\bar{x} = (t + x\,\sigma(x)\,(1 - t^2))\,\bar{y}, \quad t = \tanh \log(1 + e^{x})",
    x=mish_slope,
    properties=Properties(low=-0.30885, keeps_sign=True, steepest=1.0884981613, saturates="below", rectifier=True),
)


# ----------------------------------------------------------------------------------------------------------------- GELU
MIN_SIZE_IN_BLOCKS, BLOCK_SIZE = 1 << 9, 1 << 14  # elements; several buffers of one block fit into the cache
CUBIC_COEFFICIENT = 0.044715  # of the approximation tanh(√(2/π) (x + 0.044715 x³))


def normal_tail(x: Array) -> tuple[Array, Array]:
    """Return Φ(-|x|) and e^(-x²/2) of a float32 NumPy array.

    The error is below 1e-7 (Abramowitz and Stegun 1964, 7.1.26). SciPy's `erf` computes in float64 and takes ten times as long.
    """
    t = np.absolute(x, out=np.empty_like(x))
    t *= np.float32(0.3275911 * sqrt(0.5))
    t += 1
    np.divide(1, t, out=t)
    q = t * np.float32(0.5 * 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        q += np.float32(0.5 * coefficient)
        q *= t
    e = np.multiply(x, x, out=t)
    e *= np.float32(-0.5)
    np.exp(e, out=e)
    q *= e
    return q, e


def run_in_blocks(function: Callable[[Array, Array], None], x: Array) -> Array:
    """Call `function(x, out)` on blocks that fit into the cache, and return `out`."""
    out = np.empty_like(x)
    if x.size <= 2 * BLOCK_SIZE or not (x.flags.c_contiguous and out.flags.c_contiguous):
        function(x, out)
        return out
    flat, into = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, BLOCK_SIZE):
        function(flat[start : start + BLOCK_SIZE], into[start : start + BLOCK_SIZE])
    return out


def gelu_block(x: Array, out: Array) -> None:
    """Write max(x, 0) - |x| Φ(-|x|) to `out`."""
    q, e = normal_tail(x)
    q *= np.absolute(x, out=e)
    np.clip(x, 0, np.inf, out=out)
    out -= q


def gelu_slope_block(x: Array, out: Array) -> None:
    """Write Φ(x) + x φ(x) to `out`, with Φ(x) = 1/2 ± (1/2 - Φ(-|x|))."""
    q, e = normal_tail(x)
    np.subtract(np.float32(0.5), q, out=q)
    np.copysign(q, x, out=out)
    out += np.float32(0.5)
    e *= x
    e *= np.float32(1 / sqrt(2 * pi))
    out += e


def should_use_blocks(x: Array) -> bool:
    """Return True for large float32 NumPy arrays. For small ones a single pass of SciPy is quicker than twenty of NumPy."""
    return type(x) is np.ndarray and x.size > MIN_SIZE_IN_BLOCKS and x.dtype == np.float32


def twice_normal_cdf(xp: Namespace, x: Array) -> Array:
    """Return 1 + erf(x / √2), twice the standard normal distribution function, in a new array."""
    e = xp.empty_like(x)
    xp.multiply(x, sqrt(0.5), out=e)
    special_of(x).erf(e, out=e)
    e += 1
    return e


def gelu_forward(xp: Namespace, x: Array) -> Array:
    if should_use_blocks(x):
        return run_in_blocks(gelu_block, x)
    e = twice_normal_cdf(xp, x)
    e *= x
    e *= 0.5
    return e


def gelu_slope_forward(xp: Namespace, x: Array) -> Array:
    if should_use_blocks(x):
        return run_in_blocks(gelu_slope_block, x)
    e = twice_normal_cdf(xp, x)
    e *= 0.5
    density = xp.exp(x * x * -0.5)
    density *= x
    density *= 1 / sqrt(2 * pi)
    e += density
    return e


gelu_slope = elementwise(
    "gelu_slope",
    gelu_slope_forward,
    node="GeluBackwardBackward0",
    tex=r"\mathrm{{GELU}}'({x})",
    formula=r"\bar{x} = (2 - x^2)\,\varphi(x)\,\bar{y}",
    x=lambda xp, x: xp.exp(x * x * -0.5) * (2 - x * x) * (1 / sqrt(2 * pi)),
    promote="single",
)
gelu = elementwise(
    "gelu",
    gelu_forward,
    promote="real tensors",
    tex=r"{x}\,\Phi({x})",
    formula=r"\bar{x} = (\Phi(x) + x\,\varphi(x))\,\bar{y}",
    x=lambda x: gelu_slope(x),  # noqa: PLW0108  (the parameters of a primitive cannot be read)
    properties=Properties(low=-0.16998, keeps_sign=True, steepest=1.1289041452, saturates="below", rectifier=True),
)


def half_tanh(x: Array) -> Array:
    """Compute (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, the sigmoid of twice the argument of tanh."""
    return sigmoid((x + x * x * x * CUBIC_COEFFICIENT) * (2 * sqrt(2 / pi)))


def gelu_tanh_slope(x: Array) -> Array:
    s = half_tanh(x)
    return s + x * s * (1 - s) * ((1 + x * x * (3 * CUBIC_COEFFICIENT)) * (2 * sqrt(2 / pi)))


gelu_tanh: Primitive = elementwise(
    "gelu_tanh",
    lambda x: x * half_tanh(x),
    node="GeluBackward0",
    promote="real tensors",
    tex=r"\tfrac{{1}}{{2}}\,{x}\,(1 + \tanh(\sqrt{{2/\pi}}\,({x} + 0.044715\,{x}^3)))",
    formula=r"\bar{x} = (s + 2\sqrt{2/\pi}\,x\,s\,(1 - s)\,(1 + 0.134145\,x^2))\,\bar{y}, \quad s = y / x",
    x=gelu_tanh_slope,
    properties=Properties(low=-0.17005, keeps_sign=True, steepest=1.1289930687, saturates="below", rectifier=True),
)
