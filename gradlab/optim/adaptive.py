"""Optimizers that divide the gradient by a norm of past gradients, without bias correction."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.optim.moments import follow, follow_square
from gradlab.optim.optimizer import Elementwise, Group, add_scaled, check_implementation, check_not_negative

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(Elementwise):
    """RMSprop: divide the gradient by the root of the running mean of its square (Hinton 2012).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.01).
    alpha : float, optional
        Decay rate of the running mean (default: 0.99).
    eps : float, optional
        Added to the divisor (default: 1e-8).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    momentum : float, optional
        Decay rate of the direction of previous steps (default: 0).
    centered : bool, optional
        Subtract the square of the running mean of g, to use the variance instead of the mean square.
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    capturable, foreach : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, or `params` is empty.

    Notes
    -----
    v ← alpha v + (1 - alpha) g²; p ← p - lr g / (√v + eps). With momentum, the quotients are accumulated first.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.RMSprop([x], lr=0.01)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

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
        check_not_negative(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            check_implementation(
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
    """Adagrad: divide the gradient by the root of the sum of all squared gradients (Duchi, Hazan and Singer 2011).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.01).
    lr_decay : float, optional
        The learning rate is divided by 1 + (t - 1) lr_decay at step t (default: 0).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    initial_accumulator_value : float, optional
        Initial value of the sums of squares (default: 0).
    eps : float, optional
        Added to the divisor (default: 1e-10).
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    foreach, fused : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, or `params` is empty.

    Notes
    -----
    s ← s + g²; p ← p - lr / (1 + (t - 1) lr_decay) · g / (√s + eps).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adagrad([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

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
        check_not_negative(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps
        )
        super().__init__(
            params,
            check_implementation(
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
    """Adadelta: scale the gradient by the ratio of the running norms of steps and gradients (Zeiler 2012).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 1).
    rho : float, optional
        Decay rate of the running means (default: 0.9).
    eps : float, optional
        Added to the divisor (default: 1e-6).
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
        If a setting is negative, `rho` is not between 0 and 1, or `params` is empty.

    Notes
    -----
    p ← p - lr Δ, with Δ = √(mean of Δ² + eps) / √(mean of g² + eps) · g.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.Adadelta([x])
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9968, -1.9968])
    """

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
        check_not_negative(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}. It must be between 0 and 1.")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            check_implementation(
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
