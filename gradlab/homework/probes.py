"""The function that a check hands to a student: everything done with it is asked of the check, which counts.

A `Probe` stays with the check. What the student's code is given, `asked(…)`, is a function of one tensor that knows nothing of
the Jacobian: its value, a product vᵀJ and a product Ju are each asked for, and noted there. So a sweep that is counted has run
through f, and a Jacobian that came without one came by difference quotients: f was asked for at points beside x. Of a scalar
function that the check marks (`Twice`) the products with its Hessian are asked for in the same way: v Hu and uᵀHw. In a notebook
asking is a call; where submissions are graded it goes through a pipe to another process (see `homework.grading`), and so
nothing that a submission does can change a count.
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
MOST_POINTS = 1000  # that are remembered; who asks for more is not deriving
MOST_VECTORS = 1000  # of one question: answering must not take long


class Twice:
    """A scalar function of a check's that a student's code may differentiate twice. The check calls it like the function.

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
    """A function of the check's, and what was asked of it.

    Attributes
    ----------
    calls : int
        Of the function itself.
    elsewhere : int
        Different points beside `at` that it was called at (rounding to float32 is not another point).
    pulls, pushes : list of int
        The reverse sweeps through it and the forward ones: for each, how many vectors it carried.
    bends : list of int
        The sweeps of second order: for each, how many products with the Hessian it made.
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
        """All vectors that went through it, either way: what the work costs."""
        return sum(self.pulls) + sum(self.pushes) + sum(self.bends)

    def answer(self, what: str, arrays: list[np.ndarray]) -> np.ndarray:
        """What is asked: f(x); vᵀJ at x, for one v or a stack of them; Ju likewise; of a scalar function that is `Twice`, also
        v Hu for numbers v and vectors u ("bend") and uᵀHw ("curve").

        Raises
        ------
        ValueError
            If nothing of the kind can be asked of these arrays.
        Exception
            What the function raises.
        """
        with grad_mode(on=True):  # whatever mode the asking code is in
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
            raise ValueError(f"a vector of shape {shape} is wanted, not {vectors.shape}")
        lead = vectors.shape[: vectors.ndim - len(shape)]
        if prod(lead) > MOST_VECTORS:
            raise ValueError(f"{prod(lead)} vectors at once; {MOST_VECTORS} are the most")
        each = vectors.reshape((-1, *shape)).astype(y.array.dtype)
        (self.pulls if what == "pull" else self.pushes).append(len(each))
        if what == "pull":
            products = grad(y, at, constant(each), is_grads_batched=True)[0].array
        else:
            products = np.stack([np.asarray(jvp(self.function, (constant(x),), (constant(u),))[1].array) for u in each])
        return np.asarray(products).reshape(lead + products.shape[1:])

    def _second(self, what: str, x: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if not isinstance(self.function, Twice):
            raise RuntimeError("a check's f has first derivatives only: its backward cannot be differentiated by x.")
        at = constant(x).requires_grad_()
        y = self.function(at)
        stacks = (first, second) if what == "curve" else (second,)
        if y.array.shape or any(one.shape[max(one.ndim - x.ndim, 0) :] != x.shape for one in stacks):
            raise ValueError(f"a number y and vectors of shape {x.shape} are wanted")
        of_first = first.shape if what == "bend" else first.shape[: first.ndim - x.ndim]
        lead = np.broadcast_shapes(of_first, second.shape[: second.ndim - x.ndim])
        if prod(lead) > MOST_VECTORS:
            raise ValueError(f"{prod(lead)} vectors at once; {MOST_VECTORS} are the most")
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
        """Remember a point beside `at`, whatever its shape: the functions of checks flatten what they are given."""
        if self.at is None or len(self._others) == MOST_POINTS:
            return
        at, flat = self.at.reshape(-1), x.reshape(-1)
        if not (np.array_equal(flat, at) or np.array_equal(flat, at.astype(np.float32))):
            self._others.add(flat.tobytes())


class Asked:
    """What a student's code gets in place of a check's function: it can be called, and differentiated."""

    __slots__ = ("_ask", "_number")

    def __init__(self, number: int, ask: Ask) -> None:
        self._number, self._ask = number, ask

    def __call__(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"f takes a tensor, not {type(x).__name__}: gl.tensor makes one of numbers.")
        if not (x.is_floating_point() or x.is_complex()):
            raise TypeError(f"f takes a tensor of floats, not of {x.dtype}: x.double() makes one.")
        return value.record(x, probe=self)

    def __repr__(self) -> str:
        return "<a function to be differentiated>"

    def asked(self, what: str, *arrays: Any) -> np.ndarray:
        """The answer, in the dtype of x."""
        inputs = [np.array(array, order="C") for array in arrays]
        return np.asarray(self._ask(self._number, what, inputs)).astype(inputs[0].dtype, copy=False)


def _product(what: str, vector: Any, x: Any, probe: Asked) -> Any:
    """vᵀJ or Ju, of arrays or of Tensors that are recorded."""
    if isinstance(vector, Tensor):
        return (pull if what == "pull" else push).record(vector, x, probe=probe)
    return probe.asked(what, x, vector)


def _hidden(name: str, forward: Any, node: str | None = None, **rules: tuple[Any, Any]) -> Any:
    """A primitive that is not listed among the library's: it stands for a function of unknown make. `rules` are pairs, vjp and
    jvp."""
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
    """The two rules of one argument. (What a rule needs it says by the names of its parameters.)"""
    return (lambda g, x, lead, probe: _product(of_g, g, x, probe)), (lambda t, x, lead, probe: _product(of_t, t, x, probe))


def _second(what: str, first: Any, second: Any, x: Any, probe: Asked, over: int = 0, lead: Any = ()) -> Any:
    """v Hu or uᵀHw, of arrays or of Tensors that are recorded, summed over as many axes behind `lead`."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        result = (bend if what == "bend" else curve).record(first, second, x, probe=probe)
    else:
        result = probe.asked(what, x, first, second)
    return result.sum(tuple(range(len(lead), len(lead) + over))) if over else result


def _refused_to(vector: Any) -> Any:
    raise RuntimeError("a check's f has two derivatives at most: a product with its Hessian cannot be differentiated.")


NO_THIRD = (lambda g, x: _refused_to(g)), (lambda t, x: _refused_to(t))
OF_PULL = (  # v has an axis for each that it is stacked by: f is scalar where it has second derivatives
    lambda g, v, x, lead, probe: _second("bend", v, g, x, probe, v.ndim, lead),
    lambda t, v, x, lead, probe: _second("bend", v, t, x, probe),
)
OF_PUSH = (
    lambda g, u, x, lead, probe: _second("bend", g, u, x, probe, u.ndim - x.ndim, lead),
    lambda t, u, x, lead, probe: _second("curve", u, t, x, probe),
)
value = _hidden("f", lambda x, *, probe: probe.asked("value", x), "FBackward", x=_both("pull", "push"))
pull = _hidden("f_pull", lambda v, x, *, probe: probe.asked("pull", x, v), v=_both("push", "pull"), x=OF_PULL)
push = _hidden("f_push", lambda u, x, *, probe: probe.asked("push", x, u), u=_both("pull", "push"), x=OF_PUSH)
bend = _hidden("f_bend", lambda v, u, x, *, probe: probe.asked("bend", x, v, u), v=NO_THIRD, u=NO_THIRD, x=NO_THIRD)
curve = _hidden("f_curve", lambda u, w, x, *, probe: probe.asked("curve", x, u, w), u=NO_THIRD, w=NO_THIRD, x=NO_THIRD)
