"""Optimizers that divide the gradient by a size of its past, without a bias correction."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.optim.moments import follow, follow_square
from gradlab.optim.optimizer import Elementwise, Group, add_scaled, checked_ways, not_negative

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class RMSprop(Elementwise):
    """Steps by the gradient over the root of the running mean of its square (Hinton 2012).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with a key "params" and settings of their own.
    lr : float or Tensor, optional
        The learning rate: 0.01 unless given.
    alpha : float, optional
        How much the running mean keeps at a step: 0.99 unless given.
    eps : float, optional
        Added to the divisor: 1e-8 unless given.
    weight_decay : float, optional
        What part of a parameter is added to its gradient: 0 unless given.
    momentum : float, optional
        How much of the last direction is kept: none unless given.
    centered : bool, optional
        Whether the square of the running mean of g is taken off: the variance in place of the square.
    maximize : bool, optional
        Whether the objective is maximized: the gradient's sign is turned.
    capturable, foreach : bool, optional
        How torch would compute; the result here is the same.
    differentiable : bool, optional
        Refused with a NotImplementedError if True: steps are not recorded.

    Raises
    ------
    ValueError
        If a setting is negative, or `params` is empty.

    Notes
    -----
    v ← alpha v + (1 - alpha) g²; p ← p - lr g / (√v + eps). With momentum the quotients are accumulated first.

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
    """Steps that shrink by the sum of all squared gradients (Duchi, Hazan and Singer 2011).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with a key "params" and settings of their own.
    lr : float or Tensor, optional
        The learning rate: 0.01 unless given.
    lr_decay : float, optional
        lr is divided by 1 + (t - 1) lr_decay at step t.
    weight_decay : float, optional
        What part of a parameter is added to its gradient: 0 unless given.
    initial_accumulator_value : float, optional
        What the sums of squares start from: 0 unless given.
    eps : float, optional
        Added to the divisor: 1e-10 unless given.
    maximize : bool, optional
        Whether the objective is maximized: the gradient's sign is turned.
    foreach, fused : bool, optional
        How torch would compute; the result here is the same.
    differentiable : bool, optional
        Refused with a NotImplementedError if True: steps are not recorded.

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
    """Steps in the parameters' own units (Zeiler 2012).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with a key "params" and settings of their own.
    lr : float or Tensor, optional
        The learning rate: 1 unless given.
    rho : float, optional
        How much the running means keep at a step: 0.9 unless given.
    eps : float, optional
        Added to the divisor: 1e-6 unless given.
    weight_decay : float, optional
        What part of a parameter is added to its gradient: 0 unless given.
    maximize : bool, optional
        Whether the objective is maximized: the gradient's sign is turned.
    foreach, capturable : bool, optional
        How torch would compute; the result here is the same.
    differentiable : bool, optional
        Refused with a NotImplementedError if True: steps are not recorded.

    Raises
    ------
    ValueError
        If a setting is negative or `rho` not within 0 ... 1, or `params` is empty.

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
