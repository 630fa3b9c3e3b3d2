"""Arithmetic, element by element; errors and edge values."""

from __future__ import annotations

import numpy as np
from operators.spelling import B, I, N, U, V, rows_for

inf, nan = np.inf, np.nan
EDGES = {"x": V([0, 0, -0.0, 1, -1, nan, 1, inf, inf, 2, -2, 0, -inf]), "y": V([0, -1, 1, 0, 0, 1, nan, inf, -inf, 2, 2, 0.5, 2])}
SHAPES = [{"x": N(3, 4), "y": N(4)}, {"x": N(), "y": N(2, 1)}, {"x": N(0, 3), "y": N(3)}]
WHOLE = {"x": I(3, 4), "y": I(4, low=1, high=5)}

ROWS = [
    *rows_for(
        SHAPES,
        """
        torch.add(x, y)
        torch.add(x, y, alpha=2)
        torch.add(input=x, other=y, alpha=-0.5)
        x.add(y, alpha=2)
        torch.sub(x, y)
        torch.sub(x, y, alpha=2)
        x.subtract(other=y)
        torch.mul(x, y)
        x.multiply(y)
        x / y
        torch.rsub(x, y)
        torch.rsub(x, y, alpha=2)
        torch.maximum(x, y)
        torch.minimum(input=x, other=y)
        x.fmax(y)
        torch.fmin(x, y)
        torch.hypot(x, y)
        torch.atan2(x, y)
        x.arctan2(y)
        torch.ldexp(x, y)
        torch.logaddexp(x, y)
        x.logaddexp2(other=y)
        torch.copysign(x, y)
        torch.remainder(x, y)
        x % y
        x.fmod(y)
        torch.div(x, y, rounding_mode='floor')
        torch.div(x, y, rounding_mode='trunc')
        torch.lerp(x, y, 0.3)
        torch.lerp(x, y, weight=0.75)
        torch.lerp(x, y, y)
        torch.addcmul(x, y, y)
        torch.addcmul(x, x, y, value=0.5)
        torch.addcdiv(x, x, y, value=2)
        x.addcdiv(y, y)
        torch.clamp(x, y, y + 1)
        torch.clamp(x, y + 1, y)
        torch.clamp(x, max=y)
        x.clip(min=y)
        torch.clamp_min(x, y)
        x.clamp_max(y)
        x.square() + y
        x - y * 2 + 1
        torch.nextafter(x, y)
    """,
    ),
    *rows_for(
        [{"x": N(3, 4)}, {"x": N()}, {"x": N(0, 3)}, {"x": V([-2, -1, -0.5, 0, 0.5, 1, 2, nan, inf, -inf])}],
        """
        x + 2
        2 + x
        x - 0.5
        3 - x
        x * 2
        2.5 * x
        x / 4
        2 / x
        x ** 2
        x ** 3
        x ** 0
        x ** 0.5
        x ** -1
        2 ** x
        torch.autograd.grad((0 ** x).sum(), x)
        -x
        +x
        abs(x)
        x % 2
        x % -1.5
        torch.fmod(x, 2)
        torch.remainder(x, other=-2)
        torch.add(x, 2, alpha=3)
        torch.sub(x, 2, alpha=3)
        torch.rsub(x, 2)
        torch.rsub(x, 2, alpha=3)
        torch.div(x, 2)
        torch.div(x, 0.7, rounding_mode='floor')
        torch.div(x, 0.7, rounding_mode='trunc')
        torch.true_divide(x, 2)
        x.divide(2)
        torch.neg(x)
        torch.negative(x)
        x.abs()
        torch.absolute(x)
        torch.positive(x)
        x.reciprocal()
        torch.square(x)
        torch.pow(x, 2.5)
        torch.pow(2.5, x)
        torch.pow(-2.0, x)
        x.pow(exponent=-2)
        torch.float_power(x, 2)
        torch.float_power(2, x)
        torch.clamp(x, -1, 1)
        torch.clamp(x, min=-0.5)
        x.clamp(max=0.5)
        x.clip(-1, 1)
        torch.clamp(x, 3, 1)
        torch.clamp_min(x, 0)
        x.clamp_max(0.5)
        torch.relu(x)
        torch.copysign(x, -2)
        torch.xlogy(x, 2)
        torch.xlogy(x, 0)
        torch.xlogy(2, x)
        torch.xlogy(0, x)
        torch.lerp(x, x * 2, 0.25)
    """,
    ),
    *rows_for(
        EDGES,
        """
        x + y
        x - y
        x * y
        x / y
        torch.autograd.grad((x ** y).sum(), [x, y])
        x % y
        torch.fmod(x, y)
        torch.div(x, y, rounding_mode='floor')
        torch.div(x, y, rounding_mode='trunc')
        x.detach() // y.detach()
        torch.maximum(x, y)
        torch.minimum(x, y)
        torch.fmax(x, y)
        torch.fmin(x, y)
        torch.hypot(x, y)
        torch.atan2(x, y)
        torch.logaddexp(x, y)
        torch.logaddexp2(x, y)
        torch.ldexp(x, y)
        torch.copysign(x, y)
        torch.xlogy(x, y)
        torch.clamp(x, y, y + 1)
        torch.clamp(x, y + 1, y)
        torch.clamp(x, min=y)
        torch.clamp_max(x, y)
        torch.lerp(x, y, 0.3)
        torch.lerp(x, y, y)
        torch.addcmul(x, x, y)
        torch.addcdiv(x, x, y)
        torch.nextafter(x, y).clamp(-9, 9)
        torch.heaviside(x.detach(), y.detach())
        torch.signbit(torch.nan_to_num(x % y))
        torch.signbit(torch.nan_to_num(x.detach() // y.detach()))
    """,
    ),
    *rows_for(
        [{"x": U(3, 4), "y": U(4)}],
        """
        x ** y
        torch.pow(x, y)
        torch.pow(input=x, exponent=y)
        torch.float_power(x, y)
        x.float_power(y)
        torch.xlogy(x, y)
        x.xlogy(other=y)
        x.clone().add_(y)
        x.clone().add_(y, alpha=2)
        x.clone().sub_(y, alpha=2)
        x.clone().subtract_(y)
        x.clone().mul_(y)
        x.clone().multiply_(y)
        x.clone().div_(y)
        x.clone().divide_(y)
        x.clone().true_divide_(y)
        x.clone().div_(y, rounding_mode='floor')
        x.clone().remainder_(y)
        x.clone().remainder_(0.3)
        x.clone().fmod_(y)
        x.clone().pow_(y)
        x.clone().pow_(3)
        x.clone().square_()
        x.clone().neg_()
        x.clone().negative_()
        (x - 0.5).abs_()
        (x - 0.5).absolute_()
        (x - 0.5).relu_()
        torch.relu_(x - 0.5)
        x.clone().reciprocal_()
        x.clone().hypot_(y)
        x.clone().atan2_(y)
        x.clone().arctan2_(y)
        x.clone().ldexp_(y)
        x.clone().xlogy_(y)
        x.clone().lerp_(y, 0.3)
        x.clone().lerp_(y, y)
        x.clone().addcmul_(x, y, value=2)
        x.clone().addcdiv_(x, y, value=2)
        x.clone().copysign_(y - 0.5)
        x.clone().clamp_(0.3, 0.6)
        x.clone().clamp_(min=y)
        x.clone().clip_(max=0.5)
        x.clone().clamp_min_(0.5)
        x.clone().clamp_max_(y)
        x.clone().nextafter_(y)
        z = x.clone(); z += y; z
        z = x.clone(); z -= y; z
        z = x.clone(); z *= y; z
        z = x.clone(); z /= y; z
        z = x.clone(); z **= 2; z
        z = x.clone(); z %= 0.3; z
        z = x.detach().clone(); z //= 0.3; z
        x.detach().clone().floor_divide_(y.detach())
        x.detach().clone().heaviside_(x.detach())
        x.detach().double().float_power_(2)
        x.detach().float().float_power_(2)
        x.add_(1)
        x.clone().add_(torch.ones(2, 3, 4, dtype=x.dtype))
        x // y
        x // 0.3
        0.3 // x
        2 % x
        torch.remainder(2, x)
        torch.floor_divide(x, 0.3)
        torch.heaviside(x, x)
        x.detach() // 0.3
        1 // x.detach()
        2 % x.detach()
        torch.remainder(2, x.detach())
        torch.floor_divide(input=x.detach(), other=y.detach())
        torch.add(x.detach(), y.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.sub(x.detach(), 1, out=torch.empty(3, 4, dtype=x.dtype))
        torch.mul(x.detach(), y.detach(), out=torch.empty(2, dtype=x.dtype))
        torch.div(x.detach(), 2, out=torch.empty(0, dtype=torch.int64))
        torch.pow(x.detach(), 2, out=torch.empty(0, dtype=x.dtype))
        torch.clamp(x.detach(), 0, 1, out=torch.empty(0, dtype=x.dtype))
        torch.add(x, y, out=torch.empty(0, dtype=x.dtype))
        torch.lerp(x.detach(), x.detach(), 0.5, out=torch.empty(0, dtype=x.dtype))
        torch.float_power(x.detach(), 2, out=torch.empty(0, dtype=torch.float64))
        torch.square(x.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.maximum(x.detach(), y.detach(), out=torch.empty(0, dtype=x.dtype))
    """,
    ),
    *rows_for(
        [WHOLE, {"x": I(), "y": I(3, low=1, high=4)}],
        """
        x + y
        x - y
        x * y
        x / y
        x // y
        x % y
        x + 1
        1 - x
        x * 2.5
        x / 2
        2 / y
        x // 2
        x // -2
        x // 2.5
        x % 3
        x % -3
        7 % y
        7 // y
        x ** 2
        x ** y
        2 ** y
        2.5 ** y
        (-2) ** y
        x ** 0.5
        x ** -1
        x ** (y - 3)
        -x
        abs(x)
        torch.fmod(x, y)
        torch.fmod(x, -3)
        torch.div(x, y, rounding_mode='floor')
        torch.div(x, y, rounding_mode='trunc')
        torch.div(x, -2, rounding_mode='trunc')
        torch.div(x, 2.5, rounding_mode='floor')
        torch.gcd(x, y)
        torch.lcm(x, y)
        x.clone().gcd_(y) if x.dim() else 0
        x.clone().lcm_(y) if x.dim() else 0
        torch.maximum(x, y)
        torch.fmin(x, y)
        torch.clamp(x, -1, 2)
        torch.clamp(x, 0.5)
        torch.clamp(x, max=y)
        torch.clamp_min(x, 1)
        torch.clamp_max(x, 1.5)
        torch.add(x, y, alpha=2)
        torch.add(x, y, alpha=0.5)
        torch.add(x, y, alpha=True)
        torch.addcmul(x, y, y)
        torch.addcmul(x, y, y, value=2)
        torch.addcdiv(x, y, y)
        torch.atan2(x, y)
        torch.ldexp(x, y)
        torch.copysign(x, -1)
        torch.copysign(x, y)
        torch.xlogy(x, y)
        torch.float_power(x, y)
        torch.float_power(x, 2)
        torch.hypot(x, y)
        torch.logaddexp(x, y)
        torch.lerp(x, y, 0.5)
        torch.square(x)
        torch.reciprocal(x)
        torch.heaviside(x, y)
        torch.rsub(x, y)
        torch.nextafter(x, y)
        torch.relu(x)
        torch.positive(x)
        x.clone().add_(1)
        x.clone().add_(1.5)
        x.clone().div_(2)
        x.clone().mul_(2.5)
        x.clone().floor_divide_(2)
        x.clone().floor_divide_(2.5)
        x.clone().div_(2, rounding_mode='floor')
        x.clone().remainder_(3)
        x.clone().pow_(2)
        x.clone().pow_(0.5)
        x.clone().pow_(-1)
        x.clone().clamp_(0, 1)
        x.clone().float_power_(2)
        x // 0
        x % 0
        torch.fmod(x, 0)
        torch.div(x, 0, rounding_mode='trunc')
        torch.div(x, 0)
        x // (y * 0)
    """,
    ),
    *rows_for(
        [{"x": N(2, 3), "i": I(3), "b": B(2, 3)}],
        """
        x + i
        i + x
        x * b
        b * x
        x - b
        b - x
        x - True
        True - x
        b - b
        (~b) - b
        b + b
        b * b
        b + 1
        b + 1.5
        b * 2
        b / 2
        b / b
        b // b
        b % b
        torch.fmod(b, b)
        b // 2
        b ** 2
        b ** b
        b ** x
        x.detach() ** b
        -b
        +b
        abs(b)
        torch.relu(b)
        torch.square(b)
        torch.maximum(b, i)
        torch.clamp(b, 0, 1)
        torch.add(b, b, alpha=True)
        torch.add(x, x, alpha=True)
        x + torch.tensor(2)
        x + torch.tensor(2.0, dtype=torch.float64)
        i + torch.tensor(2.5)
        i + torch.tensor(2.5, dtype=torch.float64)
        x.half() + i
        x.half() * x.float()
        x.half() + 2.5
        x.half() + torch.tensor(2.5)
        i.to(torch.uint8) + i.to(torch.int8)
        i.to(torch.int32) + i.to(torch.int16)
        i.to(torch.uint8) + 300
        i.to(torch.uint8) - 1
        i.to(torch.uint8) * -1
        -i.to(torch.uint8)
        i.to(torch.uint8) // 2
        i.to(torch.uint8) / 2
        i.to(torch.uint8) ** 2
        torch.clamp(i.to(torch.uint8), 0, 300)
        torch.clamp(i.to(torch.uint8), 1, 200)
        torch.lerp(x, x, x.half())
        torch.lerp(x, x.half(), 0.5)
        torch.atan2(x, i)
        torch.hypot(x, i)
        torch.ldexp(x, i.abs())
        torch.ldexp(x.detach(), i)
        torch.heaviside(x, i)
        torch.addcmul(x, i, x)
        torch.addcdiv(x.detach(), x.detach(), i)
        torch.addcdiv(x, i, i)
        torch.logaddexp(x, i)
        torch.xlogy(i, x.abs())
        torch.where(b, x, i)
        b.clone().add_(1)
        b.clone().sub_(b)
    """,
    ),
    *rows_for(
        {"x": N(2, 3), "y": N(4)},
        """
        x + y
        x * torch.ones(3, 3)
        torch.maximum(x, y)
        torch.atan2(x, y)
        torch.lerp(x, y, 0.5)
        torch.addcmul(x, y, x)
        x + 'a'
        x + None
        x - [1.0]
        [1.0] + x
        x * (1, 2)
        x // 'a'
        x % 'a'
        x ** 'a'
        torch.add(x, 'a')
        torch.add('a', x)
        torch.add(x, None)
        torch.sub(x, [1.0])
        torch.mul(1, x)
        torch.div(x, 'a')
        torch.div(x, y, rounding_mode='up')
        torch.pow(2, 3)
        torch.pow(x, 'a')
        torch.maximum(x, 2)
        torch.maximum(2, x)
        torch.fmax(x, 2.0)
        torch.atan2(x, 1)
        torch.hypot(1, x)
        torch.ldexp(x, 2)
        torch.logaddexp(x, 0)
        torch.remainder(x, 'a')
        torch.fmod(2, x)
        torch.floor_divide(x, None)
        torch.copysign(2, x)
        torch.float_power(x, 'a')
        torch.xlogy(2, 3)
        torch.gcd(x, x)
        torch.lcm(x, 2)
        torch.heaviside(x, 1)
        torch.clamp(x)
        torch.clamp(x, min='a')
        torch.clamp(x, min=x, max=2)
        torch.clamp_min(x, 'a')
        torch.lerp(x, 2.0, 0.5)
        torch.lerp(x, x, 'a')
        torch.addcmul(x, 2, x)
        torch.addcdiv(x, x, 1)
        torch.square(2)
        torch.abs(2)
        torch.neg([1])
        torch.reciprocal('a')
        torch.rsub(2, x)
    """,
    ),
]
