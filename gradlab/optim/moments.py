"""Adam and variants: running means of the gradient and of its square, with bias correction.

The bias corrections are numbers, so they are factored out of the arrays, which saves a loop over memory:
m̂ / (√v̂ + ε) = (√c₂ / c₁) · m / (√v + ε·√c₂) with cᵢ = 1 - βᵢᵗ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor, constant
from gradlab.optim.optimizer import Elementwise, Group, add_scaled, check_betas, check_implementation, check_not_negative

__all__ = ["Adam", "AdamW", "Adamax", "NAdam"]


def follow(xp: Any, mean: Any, x: Any, beta: float, t: Any) -> None:
    """Update a running mean in place: mean ← β·mean + (1 - β)·x, with `t` as scratch."""
    mean *= beta
    add_scaled(xp, mean, x, 1.0 - beta, t)


def follow_square(xp: Any, mean: Any, x: Any, beta: float, t: Any) -> None:
    """Update a running mean of squares in place: mean ← β·mean + (1 - β)·x², with `t` as scratch."""
    mean *= beta
    add_scaled(xp, mean, xp.multiply(x, x, out=t), 1.0 - beta, t)


class Adam(Elementwise):
    """Adam: steps from running means of the gradient and of its square (Kingma and Ba 2015).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.001).
    betas : (float, float), optional
        Decay rates of the running means of g and g² (default: 0.9 and 0.999).
    eps : float, optional
        Added to the divisor (default: 1e-8).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    amsgrad : bool, optional
        Use the largest v so far (Reddi et al. 2018).
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    decoupled_weight_decay : bool, optional
        Multiply p by 1 - lr weight_decay instead, as in `AdamW`.
    foreach, capturable, fused : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, a beta is not between 0 and 1, or `params` is empty.

    Notes
    -----
    m ← β₁ m + (1 - β₁) g, v ← β₂ v + (1 - β₂) g²; p ← p - lr m̂ / (√v̂ + eps), with m̂ = m / (1 - β₁ᵗ) and
    v̂ = v / (1 - β₂ᵗ).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    scratch = 2

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            check_implementation(
                {
                    "lr": lr,
                    "betas": betas,
                    "eps": eps,
                    "weight_decay": weight_decay,
                    "amsgrad": amsgrad,
                    "maximize": maximize,
                    "foreach": foreach,
                    "capturable": capturable,
                    "differentiable": differentiable,
                    "fused": fused,
                    "decoupled_weight_decay": decoupled_weight_decay,
                }
            ),
        )

    def slots(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def decay(self, group: Group) -> tuple[float, float]:
        weight = float(group["weight_decay"])
        return (1.0 - float(group["lr"]) * weight, 0.0) if group["decoupled_weight_decay"] else (1.0, weight)

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        (first, second), t = map(float, group["betas"]), float(state["step"].array)
        root = math.sqrt(1.0 - second**t)
        return first, second, group["eps"] * root, -float(group["lr"]) * root / (1.0 - first**t)

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        first, second, eps, rate = numbers
        m, v, *most = kept
        t = s[0]
        follow(xp, m, g, first, t)
        follow_square(xp, v, g, second, t)
        if most:
            (v,) = most
            xp.maximum(v, kept[1], out=v)
        xp.sqrt(v, out=t)
        t += eps
        add_scaled(xp, p, xp.divide(m, t, out=t), rate, t)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.001).
    betas : (float, float), optional
        Decay rates of the running means of g and g² (default: 0.9 and 0.999).
    eps : float, optional
        Added to the divisor (default: 1e-8).
    weight_decay : float, optional
        Parameters are multiplied by 1 - lr weight_decay before each step (default: 0.01).
    amsgrad : bool, optional
        Use the largest v so far (Reddi et al. 2018).
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    foreach, capturable, fused : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, a beta is not between 0 and 1, or `params` is empty.

    Notes
    -----
    p ← p - lr weight_decay p, then the step of `Adam`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8500, -1.8000])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class Adamax(Elementwise):
    """Adamax: Adam with the decayed maximum of |g| in place of √v (Kingma and Ba 2015, section 7).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.002).
    betas : (float, float), optional
        Decay rates of the running means of g and g² (default: 0.9 and 0.999).
    eps : float, optional
        Added to the divisor (default: 1e-8).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    foreach, capturable : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, a beta is not between 0 and 1, or `params` is empty.

    Notes
    -----
    u ← max(β₂ u, |g| + eps); p ← p - lr m / ((1 - β₁ᵗ) u).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adamax([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            check_implementation(
                {
                    "lr": lr,
                    "betas": betas,
                    "eps": eps,
                    "weight_decay": weight_decay,
                    "foreach": foreach,
                    "maximize": maximize,
                    "differentiable": differentiable,
                    "capturable": capturable,
                }
            ),
        )

    def slots(self, group: Group) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        first, second = group["betas"]
        return first, second, group["eps"], -float(group["lr"]) / (1.0 - first ** float(state["step"].array))

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        first, second, eps, rate = numbers
        m, largest = kept
        t = s[0]
        follow(xp, m, g, first, t)
        xp.absolute(g, out=t)
        t += eps
        largest *= second
        xp.maximum(largest, t, out=largest)
        add_scaled(xp, p, xp.divide(m, largest, out=t), rate, t)


class NAdam(Elementwise):
    """NAdam: Adam with Nesterov momentum (Dozat 2016).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.002).
    betas : (float, float), optional
        Decay rates of the running means of g and g² (default: 0.9 and 0.999).
    eps : float, optional
        Added to the divisor (default: 1e-8).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    momentum_decay : float, optional
        Rate at which the momentum approaches β₁ (default: 0.004).
    decoupled_weight_decay : bool, optional
        Multiply p by 1 - lr weight_decay instead, as in `AdamW`.
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    foreach, capturable : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, a beta is not between 0 and 1, or `params` is empty.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.NAdam([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8944, -1.8944])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative(lr=lr, eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            check_implementation(
                {
                    "lr": lr,
                    "betas": betas,
                    "eps": eps,
                    "weight_decay": weight_decay,
                    "momentum_decay": momentum_decay,
                    "decoupled_weight_decay": decoupled_weight_decay,
                    "maximize": maximize,
                    "foreach": foreach,
                    "capturable": capturable,
                    "differentiable": differentiable,
                }
            ),
        )

    decay = Adam.decay  # type: ignore[assignment]

    def slots(self, group: Group) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def start(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        state.update(step=None, mu_product=constant(np.ones((), np.float32)))  # torch's order
        super().start(p, group, state)

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        (first, second), t, lr = group["betas"], float(state["step"].array), float(group["lr"])
        here, there = (first * (1.0 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (t, t + 1))
        state["mu_product"].array *= here
        product = float(state["mu_product"].array)
        root = math.sqrt(1.0 - second**t)
        return (
            first,
            second,
            group["eps"] * root,
            -lr * root * (1.0 - here) / (1.0 - product),
            -lr * root * there / (1.0 - product * there),
        )

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        first, second, eps, of_g, of_m = numbers
        m, v = kept
        t, u, _ = s
        follow(xp, m, g, first, t)
        follow_square(xp, v, g, second, t)
        xp.multiply(g, of_g, out=t)
        add_scaled(xp, t, m, of_m, u)
        xp.sqrt(v, out=u)
        u += eps
        t /= u
        p += t
