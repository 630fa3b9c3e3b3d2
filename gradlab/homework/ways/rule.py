"""Use a student's `Function`: apply it, differentiate it once and twice, with two pending calls, and run gradcheck.

The arguments are `what` (a name of `WAYS`), the arguments of `forward` after x, and tensors: x, a vector v for the sweep, and any
others. The result is numbers, which the check compares with its own formulas and difference quotients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.autograd.function import Function
from gradlab.autograd.functions import grad
from gradlab.autograd.gradcheck import GradcheckError, gradcheck
from gradlab.core.modes import enable_grad
from gradlab.core.tensor import Tensor
from gradlab.homework.verdicts import describe


def use(function: Any, what: str, more: list[Any], *tensors: Tensor) -> dict[str, Any]:
    """Use the class. Return {"no rule": its kind} if it is not a `Function`."""
    if not (isinstance(function, type) and issubclass(function, Function)):
        return {"no rule": describe(function)}

    def apply(x: Tensor, times: float = 1) -> Any:
        return function.apply(x, *(times * one for one in more))

    with enable_grad():
        return WAYS[what](apply, *tensors)


def case_arguments(what: str, more: list[Any], *tensors: Tensor) -> tuple[Any, ...]:
    """Return the tensors, and the arguments of `forward` after x."""
    return (*tensors, *more)


def _leaf(x: Tensor) -> Tensor:
    return x.detach().clone().requires_grad_()


def _fits(y: Any, v: Tensor) -> bool:
    return isinstance(y, Tensor) and y.array.shape == v.array.shape


def _value(apply: Callable[..., Any], x: Tensor) -> dict[str, Any]:
    """Return the value."""
    return {"value": apply(_leaf(x))}


def _once(apply: Callable[..., Any], x: Tensor, v: Tensor) -> dict[str, Any]:
    """Return the value, the gradient of a backward sweep with v, and the dtypes of both."""
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
    """Return the gradient of (vᵀJ) u with respect to x."""
    leaf = _leaf(x)
    (slope,) = grad(apply(leaf), leaf, v, create_graph=True)
    if not slope.requires_grad:
        return {"cut": True}
    second = grad(slope, leaf, u, allow_unused=True)[0]
    return {"cut": True} if second is None else {"second": second}


def _in_flight(apply: Callable[..., Any], x: Tensor, v: Tensor, w: Tensor) -> dict[str, Any]:
    """Return the gradient at x after a second call at w, whose other arguments are doubled."""
    first, second = _leaf(x), _leaf(w)
    y, z = apply(first), apply(second, 2)
    if not (_fits(y, v) and isinstance(z, Tensor)):
        return {"value": y}
    y.backward(v)
    return {"gradient": first.grad}


def _overwritten(apply: Callable[..., Any], x: Tensor, v: Tensor) -> dict[str, Any]:
    """Return the gradient at x if the input is modified before the sweep, or {"refused": True}."""
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


def _run_gradcheck(apply: Callable[..., Any], x: Tensor) -> dict[str, Any]:
    """Run gradcheck."""
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
    "gradcheck": _run_gradcheck,
}
