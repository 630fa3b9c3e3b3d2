"""A student's `Function` at work: applied, differentiated once and twice, with two calls in flight, put through gradcheck.

The arguments are `what` (a name of `WAYS`), the arguments of `forward` behind x, and tensors: x, a vector v for the sweep, and
what the way wants besides. Numbers come back; the check has formulas and difference quotients of its own to compare with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.autograd.function import Function
from gradlab.autograd.functions import grad
from gradlab.autograd.gradcheck import GradcheckError, gradcheck
from gradlab.core.modes import enable_grad
from gradlab.core.tensor import Tensor
from gradlab.homework.verdicts import described


def use(function: Any, what: str, more: list[Any], *tensors: Tensor) -> dict[str, Any]:
    """Do with the class what is asked; {"no rule": its kind} if it is none."""
    if not (isinstance(function, type) and issubclass(function, Function)):
        return {"no rule": described(function)}

    def apply(x: Tensor, times: float = 1) -> Any:
        return function.apply(x, *(times * one for one in more))

    with enable_grad():
        return WAYS[what](apply, *tensors)


def shown(what: str, more: list[Any], *tensors: Tensor) -> tuple[Any, ...]:
    """The tensors, and the arguments of `forward` behind x."""
    return (*tensors, *more)


def _leaf(x: Tensor) -> Tensor:
    return x.detach().clone().requires_grad_()


def _fits(y: Any, v: Tensor) -> bool:
    return isinstance(y, Tensor) and y.array.shape == v.array.shape


def _value(apply: Callable[..., Any], x: Tensor) -> dict[str, Any]:
    """The value alone."""
    return {"value": apply(_leaf(x))}


def _once(apply: Callable[..., Any], x: Tensor, v: Tensor) -> dict[str, Any]:
    """The value, and after a backward sweep with v the gradient; and what of these is float32 that should be."""
    leaf = _leaf(x)
    y = apply(leaf)
    if not _fits(y, v):
        return {"value": y}
    if not y.requires_grad:
        return {"value": y, "cut": True}
    y.backward(v)
    dtypes = [str(one.dtype) for one in (y, leaf.grad) if one is not None]
    return {"value": y, "gradient": leaf.grad, "dtypes": dtypes}


def _twice(apply: Callable[..., Any], x: Tensor, v: Tensor, u: Tensor) -> dict[str, Any]:
    """The gradient of (vᵀJ) u by x."""
    leaf = _leaf(x)
    (slope,) = grad(apply(leaf), leaf, v, create_graph=True)
    if not slope.requires_grad:
        return {"cut": True}
    second = grad(slope, leaf, u, allow_unused=True)[0]
    return {"cut": True} if second is None else {"second": second}


def _in_flight(apply: Callable[..., Any], x: Tensor, v: Tensor, w: Tensor) -> dict[str, Any]:
    """The gradient at x of a call after which another one was made, at w, with what follows x twice as large."""
    first, second = _leaf(x), _leaf(w)
    y, z = apply(first), apply(second, 2)
    if not (_fits(y, v) and isinstance(z, Tensor)):
        return {"value": y}
    y.backward(v)
    return {"gradient": first.grad}


def _overwritten(apply: Callable[..., Any], x: Tensor, v: Tensor) -> dict[str, Any]:
    """The gradient at x where the tensor that came in is written to before the sweep; or that it was refused."""
    leaf = _leaf(x)
    operand = leaf * 1
    y = apply(operand)
    if not _fits(y, v):
        return {"value": y}
    operand += 2
    try:
        y.backward(v)
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            return {"refused": True}
        raise
    return {"gradient": leaf.grad}


def _checked(apply: Callable[..., Any], x: Tensor) -> dict[str, Any]:
    """What gradcheck says."""
    try:
        gradcheck(apply, _leaf(x))
    except GradcheckError as error:
        return {"passes": False, "says": str(error).partition("\n")[0]}
    return {"passes": True, "says": ""}


WAYS: dict[str, Callable[..., dict[str, Any]]] = {
    "value": _value,
    "once": _once,
    "twice": _twice,
    "in flight": _in_flight,
    "overwritten": _overwritten,
    "gradcheck": _checked,
}
