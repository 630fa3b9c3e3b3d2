"""`playground`: check the arguments and create the view model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.explore.playground.code import Code, names_in_code
from gradlab.explore.playground.descent import MOST, OPTIMIZERS
from gradlab.explore.playground.function import find_kind
from gradlab.explore.playground.inputs import Input, read_inputs, read_start
from gradlab.explore.playground.playground import Playground
from gradlab.explore.playground.view_model import PlaygroundViewModel, check_rate

OPTIONS = "at", "axes", "optimizer", "lr", "steps", "library"


def playground(
    f: Callable[..., Any],
    ranges: Mapping[str, Any] | None = None,
    /,
    *,
    at: Mapping[str, Any] | None = None,
    axes: str | Sequence[str] | None = None,
    optimizer: str = "SGD",
    lr: float = 0.1,
    steps: int = 0,
    library: Any = None,
    **more: Any,
) -> Playground:
    """Explore a function with sliders for its inputs: its value and gradient at a point, and a path of descent.

    ``gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4))`` draws the curve with its tangent,
    ``gl.playground(f, x=(-4, 4), y=(-2, 2))`` contours with the gradient as an arrow. Both compare the gradient with finite
    differences. The view is live in a notebook, and a static picture is saved with the notebook.

    Parameters
    ----------
    f : callable
        A function of one or several numbers or vectors that returns a tensor of one element. It is called often, with scalar
        tensors, or one-dimensional ones for vectors, in float64 if it accepts them, else in float32.
    ranges : mapping of str to range, optional
        The ranges of parameters whose names are options of `playground`: ``gl.playground(f, {"lr": (0, 1)})``.
    at : mapping of str to float or sequence of float, optional
        The starting point, by parameters or inputs: ``{"x": 1.6}``, ``{"p": [-4, 1.8]}``, ``{"p[0]": -4}``.
    axes : str or sequence of str, optional
        The inputs that are the axes of the picture: one for a curve, two for contours. Default: the first two.
    optimizer : str
        The optimizer of the path: "SGD", "momentum" (SGD with momentum 0.9), "Nesterov", "Adam", "AdamW", "RMSprop", "Adagrad",
        "Adamax" or "NAdam", from the library of the function.
    lr : float
        The learning rate.
    steps : int
        The initial number of steps of the path, up to 500.
    library : {"gradlab", "torch"} or module, optional
        The library of the tensors with which f is called. Default: gradlab, or torch if it is imported and gradlab's tensors
        fail.
    **more : pair or sequence of pairs
        The ranges of the parameters of f, by name: ``x=(-3, 3)``. For a vector, a pair for each element,
        ``p=[(-4, 4), (-2, 2)]``; its elements are the inputs p[0] and p[1]. A parameter with a default needs no range.

    Returns
    -------
    Playground
        `.widget()` returns the live view, `.plot()` draws on matplotlib axes, `.save("f.html")` saves a page that works without a
        kernel. `.value`, `.gradient`, `.path`, `.sentence` and `.code` are its contents.

    Raises
    ------
    TypeError
        If a range belongs to no parameter, if one is missing, or if f does not return a tensor of one element.
    ValueError
        If a range is empty or not finite, if the point is outside, or if the optimizer, axis or library is unknown.
    RuntimeError
        If f raises at every point that is tried.

    Examples
    --------
    >>> import gradlab as gl
    >>> def f(x):
    ...     return x**3 / 3 - x
    >>> gl.playground(f, x=(-2.4, 2.4))
    <playground of x**3 / 3 - x>
    """
    asked = {**(ranges or {}), **more}
    inputs, call = read_inputs(f, asked)
    point = read_start(inputs, at)
    which = _axes(inputs, axes)
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"playground: optimizer={optimizer!r} must be one of {', '.join(map(repr, OPTIMIZERS))}.")
    try:
        rate = check_rate(lr)
    except ValueError as error:
        raise ValueError(f"playground: lr={lr!r}: {error}.") from None
    if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= MOST:
        raise ValueError(f"playground: steps={steps!r} must be an integer from 0 to {MOST}.")
    shares = (0.5, 0.25, 0.75, 0.9, 0.1)
    tried = [point, *(np.array([one.low + share * one.width for one in inputs]) for share in shares)]
    function = find_kind(f, call, tried, library)
    frame = sys._getframe(1)
    called, definition, heading = names_in_code(f, call, (frame.f_locals, frame.f_globals))
    code = Code(function.kind, call, called, definition)
    return Playground(PlaygroundViewModel(function, inputs, code, heading, point, which, optimizer, rate, steps))


def _axes(inputs: Sequence[Input], asked: str | Sequence[str] | None) -> tuple[int, ...]:
    names = [one.name for one in inputs]
    if asked is None:
        return tuple(range(min(2, len(inputs))))
    wanted = [asked] if isinstance(asked, str) else list(asked)
    if len(wanted) not in (1, 2) or len(set(wanted)) != len(wanted) or any(name not in names for name in wanted):
        raise ValueError(f"playground: axes={asked!r} must be one or two of the inputs {', '.join(map(repr, names))}.")
    return tuple(names.index(name) for name in wanted)
