"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.optim.optimizer import Elementwise, Group, add_scaled, check_implementation, check_not_negative

__all__ = ["SGD"]


class SGD(Elementwise):
    """Stochastic gradient descent, optionally with momentum.

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 0.001).
    momentum : float, optional
        Decay rate of the direction b of previous steps (default: 0).
    dampening : float, optional
        Fraction by which the gradient is reduced in b after the first step (default: 0).
    weight_decay : float, optional
        Multiple of the parameter that is added to its gradient (default: 0).
    nesterov : bool, optional
        Use Nesterov momentum, which requires momentum and no dampening.
    maximize : bool, optional
        Maximize the objective: negate the gradients.
    foreach, fused : bool, optional
        Options of PyTorch's implementation, without effect.
    differentiable : bool, optional
        Not supported: steps are not recorded. True raises a NotImplementedError.

    Raises
    ------
    ValueError
        If a setting is negative, `nesterov` is used without momentum or with dampening, or `params` is empty.

    Notes
    -----
    b ← momentum b + (1 - dampening) g, with b = g in the first step; p ← p - lr b, or with nesterov
    p ← p - lr (g + momentum b) (Sutskever et al. 2013).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.SGD([x], lr=0.1)
    >>> (x ** 2).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8000, -1.6000])
    """

    counts, scratch = False, 2

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            check_implementation(
                {
                    "lr": lr,
                    "momentum": momentum,
                    "dampening": dampening,
                    "weight_decay": weight_decay,
                    "nesterov": nesterov,
                    "maximize": maximize,
                    "foreach": foreach,
                    "differentiable": differentiable,
                    "fused": fused,
                }
            ),
        )

    def slots(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def start(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        state["momentum_buffer"] = constant(namespace_of[type(p.array)].empty_like(p.array))
        state["first"] = True

    def numbers(self, group: Group, state: dict[str, Any]) -> Any:
        first = bool(state) and state.pop("first", False)
        return float(group["lr"]), group["momentum"], 1.0 - group["dampening"], group["nesterov"], first

    def move(self, xp: Any, numbers: Any, s: Any, p: Any, g: Any, *kept: Any) -> None:
        lr, momentum, weight, nesterov, first = numbers
        t = s[0]
        if kept:
            (b,) = kept
            if first:
                b[...] = g
            else:
                b *= momentum
                add_scaled(xp, b, g, weight, t)
            if nesterov:
                add_scaled(xp, p, g, -lr, t)
                lr *= momentum
            g = b
        add_scaled(xp, p, g, -lr, t)
