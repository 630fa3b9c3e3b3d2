"""The inputs of a function and their ranges, read from what was asked for, and how the function is called with them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

MOST = 24  # inputs that a page has sliders for
START = 0.8, 0.7  # where the first inputs begin, as a share of their ranges: seldom a symmetrical place


@dataclass(frozen=True)
class Input:
    """One number that a function is of: a parameter ("x"), or one element of a parameter that is a vector ("p[0]")."""

    name: str
    parameter: str
    index: int | None
    low: float
    high: float

    @property
    def width(self) -> float:
        """How long the range is."""
        return self.high - self.low

    @property
    def step(self) -> float:
        """What a slider moves by: a power of ten, between a thousandth and a hundredth of the range."""
        return float(f"1e{math.floor(math.log10(self.width / 100))}")


@dataclass(frozen=True)
class Call:
    """How a function is called: its parameters in order, each a number or a vector.

    Attributes
    ----------
    parameters : tuple of (name, size)
        Size None for a number. Only those that have a range.
    keyword : frozenset of str
        Parameters that are passed by name.
    """

    parameters: tuple[tuple[str, int | None], ...]
    keyword: frozenset[str]

    def __call__(self, f: Callable[..., Any], values: Sequence[Any]) -> Any:
        """f of one value for each parameter."""
        named = list(zip((name for name, _ in self.parameters), values, strict=True))
        positional = [value for name, value in named if name not in self.keyword]
        return f(*positional, **{name: value for name, value in named if name in self.keyword})

    def text(self, called: str) -> str:
        """The call as code: "f(x, y)"."""
        parts = [f"{name}={name}" if name in self.keyword else name for name, _ in self.parameters]
        return f"{called}({', '.join(parts)})"

    def columns(self) -> list[slice | int]:
        """Which columns of a table of inputs each parameter has."""
        columns: list[slice | int] = []
        at = 0
        for _, size in self.parameters:
            columns.append(at if size is None else slice(at, at + size))
            at += 1 if size is None else size
        return columns


def read_inputs(f: Callable[..., Any], ranges: Mapping[str, Any]) -> tuple[tuple[Input, ...], Call]:
    """The inputs that ranges were given for, and how `f` is called with them.

    Raises
    ------
    TypeError
        If `f` is no function, a range belongs to no parameter, a parameter without default has no range, or a range is not a pair
        of numbers.
    ValueError
        If a range is empty or not finite, or there are more inputs than sliders on a page.
    """
    if not callable(f):
        raise TypeError(
            f"playground(f, …): f is {type(f).__name__}, and should be a function: gl.playground(lambda x: x**2, x=(-3, 3))."
        )
    taken, keyword = _parameters(f, ranges)
    inputs: list[Input] = []
    parameters: list[tuple[str, int | None]] = []
    for name in taken:
        limits = ranges[name]
        if _is_vector(limits):
            inputs += [_input(f"{name}[{k}]", name, k, pair) for k, pair in enumerate(limits)]
            parameters.append((name, len(limits)))
        else:
            inputs.append(_input(name, name, None, limits))
            parameters.append((name, None))
    if len(inputs) > MOST:
        raise ValueError(
            f"playground: {len(inputs)} inputs have a range, and a view has sliders for {MOST} at most. Fix some of them: "
            "lambda x, y: f(x, y, 0.5)."
        )
    return tuple(inputs), Call(tuple(parameters), keyword)


def _parameters(f: Callable[..., Any], ranges: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    """The parameters that have a range, in the function's order, and which of them are passed by name."""
    try:
        parameters = inspect.signature(f.forward if hasattr(f, "forward") and not inspect.isroutine(f) else f).parameters
    except (TypeError, ValueError):  # some of the functions that are written in C
        if not ranges:
            raise _nothing(f, ["x"]) from None
        return list(ranges), frozenset()
    single = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    kinds = {p.kind for p in parameters.values()}
    names = [p.name for p in single]
    free = inspect.Parameter.VAR_KEYWORD in kinds
    if not ranges:
        raise _nothing(f, names)
    strange = [name for name in ranges if name not in names]
    if strange and not free and not (inspect.Parameter.VAR_POSITIONAL in kinds and not names):
        has = f"has the parameters {', '.join(names)}" if names else "has no parameters"
        raise TypeError(
            f"playground: a range is given for {', '.join(map(repr, strange))}, but {_called(f)} {has}. "
            "Ranges go by the parameters' names" + (f": gl.playground(f, {names[0]}=(-3, 3))." if names else ".")
        )
    missing = [p.name for p in single if p.default is p.empty and p.name not in ranges]
    if missing:
        raise TypeError(
            f"playground: {_called(f)} needs {', '.join(missing)} too, and no range is given for "
            f"{'it' if len(missing) == 1 else 'them'}: add {', '.join(f'{name}=(-3, 3)' for name in missing)}, or fix "
            f"{'it' if len(missing) == 1 else 'them'} by a default."
        )
    taken = [name for name in names if name in ranges] + strange
    keyword = {p.name for p in single if p.kind is p.KEYWORD_ONLY} | (set(strange) if free else set())
    if (skipped := next((k for k, p in enumerate(single) if p.name not in ranges), None)) is not None:
        keyword |= {p.name for p in single[skipped:]}  # what follows a parameter that keeps its default
    return taken, frozenset(keyword & set(taken))


def _nothing(f: Callable[..., Any], names: Sequence[str]) -> TypeError:
    example = ", ".join(f"{name}=(-3, 3)" for name in names or ("x",))
    return TypeError(
        f"playground: no range is given. Say from where to where {_called(f)} is looked at: gl.playground(f, {example})."
    )


def _called(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return "the function" if name == "<lambda>" else name


def _is_vector(limits: Any) -> bool:
    """Whether these are the ranges of a vector: pairs, not numbers."""
    return (
        isinstance(limits, (list, tuple, np.ndarray))
        and len(limits) > 0
        and all(isinstance(p, (list, tuple, np.ndarray)) for p in limits)
    )


def _input(name: str, parameter: str, index: int | None, limits: Any) -> Input:
    numbers = list(limits) if isinstance(limits, (list, tuple, np.ndarray)) else []
    if len(numbers) != 2 or not all(isinstance(n, Real) and not isinstance(n, bool) for n in numbers):
        raise TypeError(
            f"playground: the range of {name} is {limits!r}, and should be two numbers, from and to: {parameter}=(-3, 3); "
            f"for a vector a pair for each element: {parameter}=[(-4, 4), (-2, 2)]."
        )
    low, high = float(numbers[0]), float(numbers[1])
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise ValueError(f"playground: the range of {name} is {limits!r}, and should be finite.")
    if not low < high:
        why = "from above to below" if low > high else "from a number to itself"
        raise ValueError(
            f"playground: the range of {name} goes {why}: {limits!r}. Give the smaller number first, then a larger one."
        )
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        raise ValueError(f"playground: the range of {name}, {limits!r}, is too narrow for floating point numbers of that size.")
    return Input(name, parameter, index, low, high)


def read_start(inputs: Sequence[Input], at: Mapping[str, Any] | None) -> np.ndarray:
    """The point to begin at: as given, by parameter or by input, and else inside the ranges, on the sliders' steps.

    Raises
    ------
    TypeError, ValueError
        If a name is none of the inputs, or a number is outside its range.
    """
    shares = [*START, *([0.5] * len(inputs))]
    point = np.array([snapped(i, i.low + share * i.width) for i, share in zip(inputs, shares, strict=False)])
    for name, value in dict(at or {}).items():
        places = [k for k, i in enumerate(inputs) if name in (i.name, i.parameter)]
        numbers = np.asarray(value, float).reshape(-1) if _numeric(value) else np.empty(0)
        if not places:
            raise TypeError(f"playground: at has {name!r}, which is none of the inputs: {', '.join(i.name for i in inputs)}.")
        if len(numbers) != len(places):
            want = "a number" if len(places) == 1 else f"{len(places)} numbers"
            raise TypeError(f"playground: at[{name!r}] is {value!r}, and should be {want}.")
        for k, number in zip(places, numbers, strict=True):
            one = inputs[k]
            if not one.low <= number <= one.high:
                raise ValueError(f"playground: at has {one.name} = {number:g}, outside of its range ({one.low:g}, {one.high:g}).")
            point[k] = number
    return point


def _numeric(value: Any) -> bool:
    try:
        np.asarray(value, float)
    except (TypeError, ValueError):
        return False
    return True


def snapped(one: Input, value: float) -> float:
    """The nearest place of a slider, within its range."""
    number = round(value / one.step) * one.step
    return float(f"{min(max(number, one.low), one.high):.12g}")
