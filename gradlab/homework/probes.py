"""The function that a check passes to a student's code: the check answers and counts everything that is done with it.

A `Probe` belongs to the check. The student's code gets a `ProbedFunction` of one tensor, which requests each value, product
vᵀJ and product Ju from the probe. Each sweep that is counted has therefore run through f, and a Jacobian that was computed
without sweeps comes from difference quotients: f was called at points other than x. For a scalar function that the check wraps
in `Twice`, products with its Hessian, v Hu and uᵀHw, are requested in the same way. In a notebook a request is a call. In
grading it goes through a pipe to another process (see `homework.grading`), so a submission cannot change a count.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradlab.autograd.functions import grad
from gradlab.autograd.user_rules import grad_mode
from gradlab.core.primitive import primitive
from gradlab.core.registry import PRIMITIVES
from gradlab.core.tensor import Tensor, constant
from gradlab.func.transforms import jvp

QUESTIONS = ("value", "pull", "push", "bend", "curve")
Ask = Callable[[int, str, list[np.ndarray]], np.ndarray]  # (which function, one of the QUESTIONS, arrays)
MAX_POINTS = 1000  # stored: no derivative needs more
MAX_VECTORS = 1000  # of one request, which must not take long


class Twice:
    """A check's scalar function that a student's code may differentiate twice.

    Parameters
    ----------
    function : callable
        From a tensor to a tensor without axes.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.homework import Twice
    >>> Twice(lambda x: (x**3).sum())(gl.tensor([1.0, 2.0]))
    tensor(9.)
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x)


class Probe:
    """A function of a check, and counts of its uses.

    Attributes
    ----------
    calls : int
        Calls of the function itself.
    elsewhere : int
        Number of points other than `at` where it was called (`at` rounded to float32 does not count).
    pulls, pushes : list of int
        The reverse and the forward sweeps through it: the number of vectors of each.
    bends : list of int
        The second-order sweeps: the number of products with the Hessian of each.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], at: np.ndarray | None = None) -> None:
        self.function, self.at = function, at
        self.calls, self.pulls, self.pushes, self.bends = 0, list[int](), list[int](), list[int]()
        self._others: set[bytes] = set()

    @property
    def elsewhere(self) -> int:
        return len(self._others)

    @property
    def sweeps(self) -> int:
        """The cost: the number of vectors in all sweeps."""
        return sum(self.pulls) + sum(self.pushes) + sum(self.bends)

    def answer(self, what: str, arrays: list[np.ndarray]) -> np.ndarray:
        """Compute f(x), or vᵀJ or Ju at x for one vector or a stack. For a scalar function that is `Twice`, also v Hu for
        numbers v and vectors u ("bend") and uᵀHw ("curve").

        Raises
        ------
        ValueError
            If the shapes of the arrays do not fit the request.
        Exception
            Any exception of the function.
        """
        with grad_mode(on=True):  # in any mode of the student's code
            return self._answer(what, arrays)

    def _answer(self, what: str, arrays: list[np.ndarray]) -> np.ndarray:
        x = arrays[0].astype(np.complex128 if arrays[0].dtype.kind == "c" else np.float64)  # in f's own precision
        self._note(x)
        if what == "value":
            self.calls += 1
            return np.asarray(self.function(constant(x)).array)
        if what in ("bend", "curve"):
            return self._second(what, x, *arrays[1:])
        vectors = arrays[1]
        at = constant(x).requires_grad_()
        y = self.function(at)
        shape = y.array.shape if what == "pull" else x.shape
        if vectors.ndim < len(shape) or vectors.shape[vectors.ndim - len(shape) :] != shape:
            raise ValueError(f"expected a vector of shape {shape}, got {vectors.shape}")
        lead = vectors.shape[: vectors.ndim - len(shape)]
        if prod(lead) > MAX_VECTORS:
            raise ValueError(f"{prod(lead)} vectors at once; the limit is {MAX_VECTORS}")
        each = vectors.reshape((-1, *shape)).astype(y.array.dtype)
        (self.pulls if what == "pull" else self.pushes).append(len(each))
        if what == "pull":
            products = grad(y, at, constant(each), is_grads_batched=True)[0].array
        else:
            products = np.stack([np.asarray(jvp(self.function, (constant(x),), (constant(u),))[1].array) for u in each])
        return np.asarray(products).reshape(lead + products.shape[1:])

    def _second(self, what: str, x: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if not isinstance(self.function, Twice):
            raise RuntimeError("this f has first derivatives only: its backward cannot be differentiated with respect to x.")
        at = constant(x).requires_grad_()
        y = self.function(at)
        stacks = (first, second) if what == "curve" else (second,)
        if y.array.shape or any(one.shape[max(one.ndim - x.ndim, 0) :] != x.shape for one in stacks):
            raise ValueError(f"expected a scalar y and vectors of shape {x.shape}")
        of_first = first.shape if what == "bend" else first.shape[: first.ndim - x.ndim]
        lead = np.broadcast_shapes(of_first, second.shape[: second.ndim - x.ndim])
        if prod(lead) > MAX_VECTORS:
            raise ValueError(f"{prod(lead)} vectors at once; the limit is {MAX_VECTORS}")
        self.bends.append(prod(lead))
        each = second.reshape((-1, *x.shape)).astype(y.array.dtype)
        (slope,) = grad(y, at, create_graph=True)
        if slope.requires_grad:
            result = np.asarray(grad(slope, at, constant(each), is_grads_batched=True, allow_unused=True)[0].array)
        else:
            result = np.zeros_like(each)
        products = result.reshape(second.shape)
        if what == "bend":
            return np.asarray(first.reshape(first.shape + (1,) * x.ndim) * products)
        axes = tuple(range(-x.ndim, 0))
        return np.asarray((first * products).sum(axes))

    def _note(self, x: np.ndarray) -> None:
        """Store a point other than `at`, of any shape: the checks' functions flatten their input."""
        if self.at is None or len(self._others) == MAX_POINTS:
            return
        at, flat = self.at.reshape(-1), x.reshape(-1)
        if not (np.array_equal(flat, at) or np.array_equal(flat, at.astype(np.float32))):
            self._others.add(flat.tobytes())


class ProbedFunction:
    """A function that a student's code can call and differentiate. It requests everything from the check."""

    __slots__ = ("_ask", "_number")

    def __init__(self, number: int, ask: Ask) -> None:
        self._number, self._ask = number, ask

    def __call__(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"f takes a tensor, not {type(x).__name__}: convert it with gl.tensor.")
        if not (x.is_floating_point() or x.is_complex()):
            raise TypeError(f"f takes a tensor of floats, not of {x.dtype}: use x.double().")
        return value.record(x, probe=self)

    def __repr__(self) -> str:
        return "<a function to be differentiated>"

    def query(self, what: str, *arrays: Any) -> np.ndarray:
        """Request a product from the check, in the dtype of x."""
        inputs = [np.array(array, order="C") for array in arrays]
        return np.asarray(self._ask(self._number, what, inputs)).astype(inputs[0].dtype, copy=False)


def _product(what: str, vector: Any, x: Any, probe: ProbedFunction) -> Any:
    """Return vᵀJ or Ju of arrays, or of Tensors with recording."""
    if isinstance(vector, Tensor):
        return (pull if what == "pull" else push).record(vector, x, probe=probe)
    return probe.query(what, x, vector)


def _hidden(name: str, forward: Any, node: str | None = None, **rules: tuple[Any, Any]) -> Any:
    """Define a primitive that is not in the library's list. `rules` are pairs of vjp and jvp, by argument."""
    hidden = primitive(
        name,
        forward,
        vjp={arg: rule[0] for arg, rule in rules.items()},
        jvp={arg: rule[1] for arg, rule in rules.items()},
        reads="all",
        node=node,
    )
    PRIMITIVES.pop(name)
    return hidden


def _both(of_g: str, of_t: str) -> tuple[Any, Any]:
    """Return the vjp and the jvp of one argument. (A rule's parameter names select its inputs.)"""
    return (lambda g, x, lead, probe: _product(of_g, g, x, probe)), (lambda t, x, lead, probe: _product(of_t, t, x, probe))


def _second(what: str, first: Any, second: Any, x: Any, probe: ProbedFunction, over: int = 0, lead: Any = ()) -> Any:
    """Return v Hu or uᵀHw of arrays, or of Tensors with recording, summed over `over` axes after `lead`."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        result = (bend if what == "bend" else curve).record(first, second, x, probe=probe)
    else:
        result = probe.query(what, x, first, second)
    return result.sum(tuple(range(len(lead), len(lead) + over))) if over else result


def _refuse_third_derivative(vector: Any) -> Any:
    raise RuntimeError("this f has at most two derivatives: a product with its Hessian cannot be differentiated.")


NO_THIRD = (lambda g, x: _refuse_third_derivative(g)), (lambda t, x: _refuse_third_derivative(t))
OF_PULL = (  # all axes of v are batch axes, because f is scalar
    lambda g, v, x, lead, probe: _second("bend", v, g, x, probe, v.ndim, lead),
    lambda t, v, x, lead, probe: _second("bend", v, t, x, probe),
)
OF_PUSH = (
    lambda g, u, x, lead, probe: _second("bend", g, u, x, probe, u.ndim - x.ndim, lead),
    lambda t, u, x, lead, probe: _second("curve", u, t, x, probe),
)
value = _hidden("f", lambda x, *, probe: probe.query("value", x), "FBackward", x=_both("pull", "push"))
pull = _hidden("f_pull", lambda v, x, *, probe: probe.query("pull", x, v), v=_both("push", "pull"), x=OF_PULL)
push = _hidden("f_push", lambda u, x, *, probe: probe.query("push", x, u), u=_both("pull", "push"), x=OF_PUSH)
bend = _hidden("f_bend", lambda v, u, x, *, probe: probe.query("bend", x, v, u), v=NO_THIRD, u=NO_THIRD, x=NO_THIRD)
curve = _hidden("f_curve", lambda u, w, x, *, probe: probe.query("curve", x, u, w), u=NO_THIRD, w=NO_THIRD, x=NO_THIRD)
