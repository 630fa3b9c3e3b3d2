"""Optimizers that divide the gradient by a size of its past, without a bias correction."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.optim.moments import follow, follow_square
from gradlab.optim.optimizer import Elementwise, Group, add_scaled, checked_ways, not_negative

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(Elementwise):
    """p ← p - lr·g / (√v + ε) with v the running mean of g² (Hinton, lecture 6e, 2012); less the square of the running mean of
    g if centered; with momentum, the quotient is accumulated first."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            checked_ways(
                {
                    "lr": lr,
                    "momentum": momentum,
                    "alpha": alpha,
                    "eps": eps,
                    "centered": centered,
                    "weight_decay": weight_decay,
                    "capturable": capturable,
                    "foreach": foreach,
                    "maximize": maximize,
                    "differentiable": differentiable,
                }
            ),
        )

    def slots(self, group: Group) -> tuple[str, ...]:
        return ("square_avg",) + ("momentum_buffer",) * (group["momentum"] > 0) + ("grad_avg",) * bool(group["centered"])

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        return float(group["lr"]), group["alpha"], group["eps"], group["momentum"], group["centered"]

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        lr, alpha, eps, momentum, centered = numbers
        v, *others = kept
        t = s[0]
        follow_square(xp, v, g, alpha, t)
        if centered:
            mean = others[-1]
            follow(xp, mean, g, alpha, t)
            xp.multiply(mean, mean, out=t)
            xp.subtract(v, t, out=t)
            xp.sqrt(t, out=t)
        else:
            xp.sqrt(v, out=t)
        t += eps
        xp.divide(g, t, out=t)
        if momentum > 0:
            b = others[0]
            b *= momentum
            b += t
            add_scaled(xp, p, b, -lr, t)
        else:
            add_scaled(xp, p, t, -lr, t)


class Adagrad(Elementwise):
    """p ← p - lrₜ·g / (√Σg² + ε), lrₜ = lr / (1 + (t - 1)·lr_decay) (Duchi, Hazan and Singer, 2011)."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        not_negative(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps
        )
        super().__init__(
            params,
            checked_ways(
                {
                    "lr": lr,
                    "lr_decay": lr_decay,
                    "eps": eps,
                    "weight_decay": weight_decay,
                    "initial_accumulator_value": initial_accumulator_value,
                    "foreach": foreach,
                    "maximize": maximize,
                    "differentiable": differentiable,
                    "fused": fused,
                }
            ),
        )
        for group in self.param_groups:
            for p in group["params"]:
                self.start(p, group, self.state[p])

    def slots(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def start(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        super().start(p, group, state)
        state["sum"].array[...] = group["initial_accumulator_value"]

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        return float(group["lr"]) / (1.0 + (float(state["step"].array) - 1.0) * group["lr_decay"]), group["eps"]

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        rate, eps = numbers
        (total,) = kept
        t = s[0]
        total += xp.multiply(g, g, out=t)
        xp.sqrt(total, out=t)
        t += eps
        add_scaled(xp, p, xp.divide(g, t, out=t), -rate, t)


class Adadelta(Elementwise):
    """p ← p - lr·Δ, Δ = √(mean of Δ² + ε) / √(mean of g² + ε) · g (Zeiler, 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        not_negative(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}. It must lie between 0 and 1.")
        not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            checked_ways(
                {
                    "lr": lr,
                    "rho": rho,
                    "eps": eps,
                    "weight_decay": weight_decay,
                    "maximize": maximize,
                    "capturable": capturable,
                    "foreach": foreach,
                    "differentiable": differentiable,
                }
            ),
        )

    def slots(self, group: Group) -> tuple[str, ...]:
        return "square_avg", "acc_delta"

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        return float(group["lr"]), group["rho"], group["eps"]

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        lr, rho, eps = numbers
        v, past = kept
        t, u, _ = s
        follow_square(xp, v, g, rho, t)
        xp.add(v, eps, out=t)
        xp.add(past, eps, out=u)
        u /= t
        xp.sqrt(u, out=u)
        u *= g
        follow_square(xp, past, u, rho, t)
        add_scaled(xp, p, u, -lr, t)
