"""The sentences of a playground: on the point, the check, and the path."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradlab.explore.markup import Sentence, Span, code, count, number, say
from gradlab.explore.playground.descent import FAR, OPTIMIZERS, Descent
from gradlab.explore.playground.function import Kind
from gradlab.explore.playground.gradient_check import Check
from gradlab.explore.playground.inputs import Input

EXACT = 6  # digits of an input


def place(inputs: Sequence[Input], point: np.ndarray, which: Sequence[int] | None = None) -> str:
    """Return "x = 1.6, y = −2"."""
    return ", ".join(f"{inputs[k].name} = {number(float(point[k]), EXACT)}" for k in (which or range(len(inputs))))


def value(x: float) -> Span:
    """Return a value as text."""
    return Span(number(x), "value strong")


def slope(x: float) -> Span:
    """Return a gradient as text."""
    return Span(number(x), "gradient strong")


def vector(numbers: Sequence[float] | np.ndarray, digits: int = 4) -> str:
    """Return "(1, −2)"."""
    return f"({', '.join(number(float(n), digits) for n in numbers)})"


def headline(
    heading: str,
    inputs: Sequence[Input],
    point: np.ndarray,
    at: float,
    gradient: np.ndarray | None,
    ahead: tuple[float, float] | None,
) -> Sentence:
    """Return the value and the gradient at the point, and their meaning. `ahead`: a step along the only input, and the change of
    f."""
    opening = say(code(heading), " ", Span(f"at {place(inputs, point)}: ", "strong"), value(at))
    if gradient is None:
        return say(
            opening,
            ", ",
            Span("no gradient", "strong"),
            Span(": no recorded operation leads from the inputs to the result", "dim"),
        )
    if len(inputs) == 1:
        sentence = say(opening, ", slope ", slope(float(gradient[0])))
        if ahead is None or not math.isfinite(gradient[0]):
            return sentence
        step, added = ahead
        about = f"{number(step)}·{_parenthesize(float(gradient[0]))} = {number(step * float(gradient[0]))}"
        truth = f", exactly {number(added)}" if math.isfinite(added) else ""
        return say(sentence, Span(f" · a step of {number(step)} adds about {about}{truth}", "dim"))
    sentence = say(
        opening, ", gradient ", Span(vector(gradient) if len(gradient) <= 4 else f"of {len(gradient)} numbers", "gradient strong")
    )
    norm = float(np.linalg.norm(gradient))
    if not math.isfinite(norm) or norm == 0:
        return say(sentence, Span(" · flat to first order here", "dim")) if norm == 0 else sentence
    return say(sentence, Span(f" · uphill along it f grows by {number(norm)} per unit of distance", "dim"))


def _parenthesize(x: float) -> str:
    return f"({number(x)})" if x < 0 else number(x)


def verdict(check: Check) -> str:
    """Return the result of a check in a few words."""
    return {
        "agrees": "agrees",
        "differs": "differs",
        "kink": "kink here",
        "jump": "jump here",
        "edge": "edge",
        "unclear": "unclear",
        "late": "not checked yet",
    }[check.kind]


def check_text(inputs: Sequence[Input], checks: Sequence[Check], gradient: np.ndarray | None, kind: Kind) -> str:
    """Return the check as sentences: inputs that agree first, then the others, each with its step and error."""
    said = []
    agreeing = [check for check in checks if check.kind == "agrees"]
    if agreeing:
        worst = max(agreeing, key=lambda check: check.error)
        which = (
            ""
            if len(agreeing) == len(checks)
            else f" for {', '.join(i.name for i, c in zip(inputs, checks, strict=True) if c.kind == 'agrees')}"
        )
        said.append(
            f"The central difference (f(x + h) − f(x − h)) / 2h agrees{which}: h = {number(worst.h, 2)}, its error about "
            f"{number(worst.error, 2)}."
        )
    for k, (one, check) in enumerate(zip(inputs, checks, strict=True)):
        g = None if gradient is None else float(gradient[k])
        text = _doubtful(one, check, g, kind)
        if text:
            said.append(text)
    return " ".join(said)


def _doubtful(one: Input, check: Check, g: float | None, kind: Kind) -> str:
    name, got = one.name, "no gradient" if g is None else number(g)
    match check.kind:
        case "kink":
            among = (
                f"the gradient, {got}, is one of the slopes between them"
                if g is not None and min(check.left, check.right) - 1e-9 <= g <= max(check.left, check.right) + 1e-9
                else f"the gradient, {got}, is none of the slopes between them"
            )
            return (
                f"Kink here in {name}: to the left the slope is {number(check.left)}, to the right "
                f"{number(check.right)} (within h = {number(check.h, 2)}); {among}."
            )
        case "jump":
            return (
                f"Jump here in {name}: within h = {number(check.h, 2)} the value changes by {number(check.left)}, which "
                f"no gradient shows (it is {got})."
            )
        case "edge":
            return f"No check in {name}: f is not a finite number here or next to it."
        case "unclear":
            return (
                f"The differences in {name} are inconclusive: {number(check.slope)} with an error of about "
                f"{number(check.error, 2)} for h = {number(check.h, 2)}."
            )
        case "late":
            return f"The check in {name} is not finished: f is slow."
        case "differs":
            return (
                f"Differs in {name}: the central difference is {number(check.slope)} (h = {number(check.h, 2)}, error about "
                f"{number(check.error, 2)}), {kind.library.name} says {got}. f seems to be smooth here, so the rule of some "
                "operation in it returns a wrong gradient, or none."
            )
    return ""


def path(descent: Descent, name: str, lr: float, curvature: np.ndarray | None, gradient: np.ndarray | None) -> str:
    """Return sentences on the course of a path. Before the first step, they announce where it goes."""
    inputs, steps = descent.inputs, descent.steps
    law = _law(inputs, curvature, lr, gradient) if OPTIMIZERS[name] == ("SGD", {}) else ""
    if not steps and not descent.ended:
        return f"{_next(descent, name, lr, gradient)} {law}".strip()
    ending = _ending(descent, steps)
    if steps and not ending and (cycle := _swings(descent)):
        ending = cycle
    begin = (
        f"{count(steps, 'step')} of {name} with lr = {number(lr, EXACT)}" if steps else f"{name} with lr = {number(lr, EXACT)}"
    )
    values = descent.values
    if steps and len(values) == steps + 1 and math.isfinite(values[-1]):
        begin += (
            f" take f from {number(values[0])} to {number(values[-1])}"
            if steps > 1
            else f" takes f from {number(values[0])} to {number(values[-1])}"
        )
        if values[-1] > values[0]:
            begin += ", higher than it began"
        if steps and not ending and len(inputs) <= 3:
            begin += f", at {place(inputs, descent.points[-1])}"
    sentence = f"{begin}." if not ending else f"{begin}. {ending}"
    return f"{sentence} {law}".strip()


def _next(descent: Descent, name: str, lr: float, gradient: np.ndarray | None) -> str:
    """Return the next step of plain gradient descent, with its numbers."""
    plain = OPTIMIZERS[name] == ("SGD", {}) and len(descent.inputs) <= 2
    if not plain or gradient is None or not np.isfinite(gradient).all():
        return f"No step of {name} with lr = {number(lr, EXACT)} yet."
    rate = number(lr, EXACT)
    parts = [
        f"{one.name} = {number(float(x), EXACT)} − {rate}·{_parenthesize(float(g))} = {number(float(x - lr * g), EXACT)}"
        for one, x, g in zip(descent.inputs, descent.points[0], gradient, strict=True)
    ]
    return f"The first step of {name} goes to {' and '.join(parts)}."


def _ending(descent: Descent, steps: int) -> str:
    where = place(descent.inputs, descent.points[-1]) if len(descent.inputs) <= 3 else "where it is"
    match descent.ended:
        case "settled":
            return f"It has converged to {where}: the last steps move it by less than 1e−7 of a range."
        case "flat":
            return f"The gradient is exactly 0 at {where}, so it does not move."
        case "left":
            return f"It diverges: after step {steps} it is more than {number(FAR)} ranges away from its start."
        case "nan":
            if np.isfinite(descent.points[-1]).all():
                return f"At {where} f or its gradient is not a finite number, and the path ends."
            return f"Step {steps} leads to NaN or inf, and the path ends."
        case "none":
            return "There is no gradient: no recorded operation leads from the inputs to the result."
        case "raised":
            return f"f raised {descent.trouble.partition(chr(10))[0]} at {where}, and the path ends."
    return ""


def _swings(descent: Descent) -> str:
    """Return a sentence if the last steps alternate between two points, else ""."""
    points = descent.points
    if len(points) < 7:
        return ""
    last = np.array(points[-7:]) / np.array([one.width for one in descent.inputs])
    far = np.abs(np.diff(last, axis=0)).max(axis=1)
    back = np.abs(last[2:] - last[:-2]).max(axis=1)
    if far.min() > 1e-6 and back.max() < 1e-4 * far.min():
        a, b = (place(descent.inputs, point) for point in points[-2:])
        return (
            f"It goes back and forth between {a} and {b}."
            if len(descent.inputs) <= 3
            else "It goes back and forth between two places."
        )
    return ""


def _law(inputs: Sequence[Input], curvature: np.ndarray | None, lr: float, gradient: np.ndarray | None) -> str:
    """Return the convergence rates of plain gradient descent on a quadratic function, from its second derivatives."""
    if curvature is None or gradient is None or not np.isfinite(gradient).all():
        return ""
    values, directions = np.linalg.eigh(curvature)
    if values.min() <= 1e-9 * abs(values).max():
        return ""
    diagonal = np.abs(curvature - np.diag(np.diag(curvature))).max() <= 1e-7 * abs(values).max()
    bends = np.diag(curvature) if diagonal else np.array([values[0], values[-1]])
    names = [one.name for one in inputs] if diagonal else ["along the flattest direction", "along the steepest"]
    parts = [
        f"{name} by 1 − {number(lr, EXACT)}·{number(float(b))} = {number(1 - lr * float(b))}"
        for name, b in zip(names, bends, strict=True)
    ]
    what = "the distance to the lowest point" + (" in " if diagonal else " ")
    bound = 2 / float(values.max())
    rates = (
        f"f is quadratic (its second derivatives are the same at three places): each step multiplies {what}{' and '.join(parts)}."
    )
    if not abs(directions[:, -1] @ gradient) > 1e-9 * np.linalg.norm(gradient):
        return rates  # the path has no component in the steepest direction
    return f"{rates} It does not converge for lr ≥ 2/{number(float(values.max()))} = {number(bound)}."
