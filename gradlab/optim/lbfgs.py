"""L-BFGS: a quasi-Newton method that estimates the curvature from the last steps and the changes of the gradient.

Nocedal and Wright, *Numerical Optimization* (2006): algorithm 7.4 (two loops) for the direction, 3.5 and 3.6 for the line search
with the strong Wolfe conditions, equation 3.59 for the cubic. All parameters form one flat vector.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gradlab.backend.namespaces import namespace_of
from gradlab.core.modes import no_grad
from gradlab.core.observers import OBSERVERS, notify_before_write
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant
from gradlab.optim.optimizer import Closure, Optimizer, check_not_negative, evaluate_closure

__all__ = ["LBFGS"]


class Point(NamedTuple):
    """A point of a line search: the step, and the loss, its gradient and the slope along the direction at this step."""

    t: float
    loss: float
    g: Any
    slope: float


class LBFGS(Optimizer):
    """L-BFGS: a quasi-Newton method that calls the closure several times in each step (Liu and Nocedal 1989).

    Parameters
    ----------
    params : iterable
        Parameters, (name, parameter) pairs, or dicts with the key "params" and their own settings.
    lr : float or Tensor, optional
        The learning rate (default: 1).
    max_iter : int, optional
        Maximal number of iterations in a step (default: 20).
    max_eval : int, optional
        Maximal number of calls of the closure in a step (default: 1.25 max_iter).
    tolerance_grad : float, optional
        A step ends when no element of the gradient exceeds it.
    tolerance_change : float, optional
        A step ends when the loss or the parameters change by less.
    history_size : int, optional
        Number of previous steps that approximate the Hessian (default: 100).
    line_search_fn : str, optional
        None for a fixed step, or "strong_wolfe".

    Raises
    ------
    ValueError
        If there is more than one group of parameters.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import optim
    >>> x = gradlab.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> x.detach()
    tensor([3.0000, 3.0000])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative(lr=lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _gradient(self) -> Any:
        params = self.param_groups[0]["params"]
        xp = namespace_of[type(params[0].array)]
        return xp.concatenate(
            [xp.zeros(p.array.size, p.array.dtype) if p.grad_slot is None else p.grad_slot.array.reshape(-1) for p in params]
        )

    def _place(self, starts: list[Any], t: float, d: Any) -> None:
        """Set the parameters to `starts` + t·d."""
        at = 0
        for p, start in zip(self.param_groups[0]["params"], starts, strict=True):
            if OBSERVERS:
                notify_before_write(p)
            p.array[...] = start + t * d[at : at + start.size].reshape(start.shape)
            at += start.size
            mark_written(p)

    def step(self, closure: Closure | None = None) -> Any:
        """Iterate until convergence, or until `max_iter` or `max_eval` is reached.

        Parameters
        ----------
        closure : callable
            Function that clears the gradients, computes the loss, calls `backward()` and returns the loss.

        Returns
        -------
        Tensor
            The first loss.

        Raises
        ------
        TypeError
            If no closure is given.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> optimizer = gl.optim.LBFGS([w])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (w - 3).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> optimizer.step(closure).item()
        8.0
        >>> bool((w - 3).abs().max() < 1e-3)
        True
        """
        if closure is None:
            raise TypeError(
                "LBFGS.step() missing 1 required positional argument: 'closure'. It is a function that clears the "
                "gradients, computes the loss, calls backward() and returns the loss."
            )
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Closure) -> Any:
        group = self.param_groups[0]
        first, lr, change = group["params"][0], float(group["lr"]), group["tolerance_change"]
        state = self.state[first]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        original = evaluate_closure(closure)
        loss, evaluations = _number(original), 1
        state["func_evals"] += 1
        g = self._gradient()
        if not g.size or not _reaches(g, group["tolerance_grad"]):
            return original
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            before = loss
            state["prev_flat_grad"], state["prev_loss"] = constant(g), loss
            t = min(1.0, 1.0 / abs(g).sum().item()) * lr if state["n_iter"] == 1 else lr
            state["t"] = t
            slope = (g @ d).item()
            if slope > -change:
                break
            starts, calls = [p.array.copy() for p in group["params"]], 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")

                def at(t: float, starts: Any = starts, d: Any = d) -> Point:
                    self._place(starts, t, d)
                    loss = _number(evaluate_closure(closure))
                    g = self._gradient()
                    return Point(t, loss, g, (g @ d).item())

                point, calls = strong_wolfe(at, Point(0.0, loss, g, slope), t, abs(d).max().item())
                t, loss, g, _ = point
                self._place(starts, t, d)
            else:
                self._place(starts, t, d)
                if iteration != group["max_iter"]:
                    loss, calls = _number(evaluate_closure(closure)), 1
                    g = self._gradient()
            state["t"] = t
            evaluations += calls
            state["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or not _reaches(g, group["tolerance_grad"])
                or abs(t * d).max().item() <= change
                or abs(loss - before) < change
            ):
                break
        return original

    @staticmethod
    def _direction(state: dict[str, Any], g: Any, history: int) -> Any:
        """Update the estimate of the inverse Hessian H with the last step, and return the direction -H g."""
        if state["n_iter"] == 1:
            state.update(d=constant(-g), t=1.0, old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return state["d"].array
        ys, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = g - state["prev_flat_grad"].array, state["d"].array * state["t"]
        curvature = (y @ s).item()
        if curvature > 1e-10:
            if len(ys) == history:
                for kept in (ys, steps, inverses):
                    kept.pop(0)
            ys.append(constant(y))
            steps.append(constant(s))
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / (y @ y).item()
        d, weights = -g, []
        for y, s, inverse in zip(reversed(ys), reversed(steps), reversed(inverses), strict=True):
            weights.append((s.array @ d).item() * inverse)
            d -= weights[-1] * y.array
        d *= state["H_diag"]
        for y, s, inverse, weight in zip(ys, steps, inverses, reversed(weights), strict=True):
            d += s.array * (weight - (y.array @ d).item() * inverse)
        state["d"] = constant(d)
        return d


def _number(loss: Any) -> float:
    return loss.item() if isinstance(loss, Tensor) else float(loss)


def _reaches(g: Any, tolerance: float) -> bool:
    return not abs(g).max().item() <= tolerance


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum of the cubic with the losses and slopes of two points, within bounds (default: the two points)."""
    if a.t > b.t:
        a, b = b, a
    low, high = bounds or (a.t, b.t)
    if a.t == b.t:
        return (low + high) / 2
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    below = b.slope - a.slope + 2 * root
    return min(max(b.t - (b.t - a.t) * ((b.slope + root - d) / below), low), high) if below else (low + high) / 2


def strong_wolfe(
    at: Any,
    start: Point,
    t: float,
    length: float,
    decrease: float = 1e-4,
    flatness: float = 0.9,
    change: float = 1e-9,
    most: int = 25,
) -> tuple[Point, int]:
    """Find a point along the direction that satisfies the strong Wolfe conditions. Return it and the number of evaluations.

    `at(t)` computes a point. `length` is the largest element of the direction.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -flatness * start.slope

    # Extend the interval until it contains a minimum.
    before, new, calls, rounds = start, at(t), 1, 0
    bracket: list[Point] = []
    while rounds < most:
        if too_high(new) or (rounds > 1 and new.loss >= before.loss):
            bracket = [before, new]
        elif flat(new):
            return new, calls
        elif new.slope >= 0:
            bracket = [before, new]
        if bracket:
            break
        t = cubic_minimum(before, new, (new.t + 0.01 * (new.t - before.t), new.t * 10))
        before, new = new, at(t)
        calls, rounds = calls + 1, rounds + 1
    low, high = sorted(bracket or [start, new], key=lambda point: point.loss)

    # Narrow the interval. A point too close to its ends twice in a row is moved inwards.
    crept = False
    while rounds < most and abs(high.t - low.t) * length >= change:
        left, right = sorted((low.t, high.t))
        t, margin = cubic_minimum(low, high), 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if crept or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                crept = False
            else:
                crept = True
        else:
            crept = False
        new = at(t)
        calls, rounds = calls + 1, rounds + 1
        if too_high(new) or new.loss >= low.loss:
            low, high = sorted((low, new), key=lambda point: point.loss)
        elif flat(new):
            return new, calls
        else:
            low, high = new, low if new.slope * (high.t - low.t) >= 0 else high
    return low, calls
