"""`playground`: what was asked for, checked, and the model that answers it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.explore.playground.code import Code, named
from gradlab.explore.playground.descent import MOST, OPTIMIZERS
from gradlab.explore.playground.function import find_kind
from gradlab.explore.playground.inputs import Input, read_inputs, read_start
from gradlab.explore.playground.playground import Playground
from gradlab.explore.playground.view_model import PlaygroundViewModel, asked_rate

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
    """A function to take hold of: sliders over its inputs, its value and gradient there, and a path of descent.

    ``gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4))`` draws the curve with its tangent,
    ``gl.playground(f, x=(-4, 4), y=(-2, 2))`` contours with the gradient's arrow, each with the finite difference beside it. The
    view is live in a notebook, and has a static picture that stays when the notebook is saved.

    Parameters
    ----------
    f : callable
        A function of one or several numbers, or of vectors, that makes a tensor of one element. It is called often, and is given
        scalar tensors, or one-dimensional ones for vectors, in float64 where it takes them and else in float32.
    ranges : mapping of str to range, optional
        The ranges of parameters whose names are options here: ``gl.playground(f, {"lr": (0, 1)})``.
    at : mapping of str to float or sequence of float, optional
        The point to begin at, by parameters or inputs: ``{"x": 1.6}``, ``{"p": [-4, 1.8]}``, ``{"p[0]": -4}``.
    axes : str or sequence of str, optional
        The inputs that are the axes of the picture: one for a curve, two for contours. By default the first two.
    optimizer : str
        Who descends: "SGD", "momentum" (SGD with momentum 0.9), "Nesterov", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax" or
        "NAdam", of the function's library.
    lr : float
        Its learning rate.
    steps : int
        How many steps the path has at first, up to 500.
    library : {"gradlab", "torch"} or module, optional
        Whose tensors f is called with. By default it is tried with gradlab's, and if that fails with torch's once torch is
        imported.
    **more : pair or sequence of pairs
        The ranges of the parameters of f, by their names: ``x=(-3, 3)``; of a vector a pair for each element,
        ``p=[(-4, 4), (-2, 2)]``, whose elements are the inputs p[0] and p[1]. What has a default and no range keeps its default.

    Returns
    -------
    Playground
        `.widget()` is the live view, `.plot()` draws on matplotlib axes, `.save("f.html")` a page that works without a kernel;
        `.value`, `.gradient`, `.path`, `.sentence` and `.code` are what it shows.

    Raises
    ------
    TypeError
        If a range belongs to no parameter or one is missing, or f makes something else than a tensor of one element.
    ValueError
        If a range is empty or not finite, or the point is outside; for an unknown optimizer, axis or library.
    RuntimeError
        If f raises wherever it is tried.

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
        raise ValueError(f"playground: optimizer={optimizer!r} is none of {', '.join(map(repr, OPTIMIZERS))}.")
    try:
        rate = asked_rate(lr)
    except ValueError as error:
        raise ValueError(f"playground: lr={lr!r}: {error}.") from None
    if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= MOST:
        raise ValueError(f"playground: steps={steps!r} should be a whole number from 0 to {MOST}.")
    shares = (0.5, 0.25, 0.75, 0.9, 0.1)
    tried = [point, *(np.array([one.low + share * one.width for one in inputs]) for share in shares)]
    function = find_kind(f, call, tried, library)
    frame = sys._getframe(1)
    called, definition, heading = named(f, call, (frame.f_locals, frame.f_globals))
    code = Code(function.kind, call, called, definition)
    return Playground(PlaygroundViewModel(function, inputs, code, heading, point, which, optimizer, rate, steps))


def _axes(inputs: Sequence[Input], asked: str | Sequence[str] | None) -> tuple[int, ...]:
    names = [one.name for one in inputs]
    if asked is None:
        return tuple(range(min(2, len(inputs))))
    wanted = [asked] if isinstance(asked, str) else list(asked)
    if len(wanted) not in (1, 2) or len(set(wanted)) != len(wanted) or any(name not in names for name in wanted):
        raise ValueError(f"playground: axes={asked!r} should be one or two of the inputs {', '.join(map(repr, names))}.")
    return tuple(names.index(name) for name in wanted)
