"""The inputs of a function with their ranges, and the call of the function with them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

MOST = 24  # inputs with sliders
START = 0.8, 0.7  # the start of the first inputs as a share of their ranges, which is rarely a symmetric point


@dataclass(frozen=True)
class Input:
    """One input number of a function: a parameter ("x"), or one element of a vector parameter ("p[0]")."""

    name: str
    parameter: str
    index: int | None
    low: float
    high: float

    @property
    def width(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def step(self) -> float:
        """The step of a slider: a power of ten, between a thousandth and a hundredth of the range."""
        return float(f"1e{math.floor(math.log10(self.width / 100))}")


@dataclass(frozen=True)
class Call:
    """The call of a function: its parameters in order, each a number or a vector.

    Attributes
    ----------
    parameters : tuple of (name, size)
        Only parameters with a range. The size is None for a number.
    keyword : frozenset of str
        Parameters that are passed by name.
    """

    parameters: tuple[tuple[str, int | None], ...]
    keyword: frozenset[str]

    def __call__(self, f: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call f with one value for each parameter."""
        named = list(zip((name for name, _ in self.parameters), values, strict=True))
        positional = [value for name, value in named if name not in self.keyword]
        return f(*positional, **{name: value for name, value in named if name in self.keyword})

    def text(self, called: str) -> str:
        """Return the call as code: "f(x, y)"."""
        parts = [f"{name}={name}" if name in self.keyword else name for name, _ in self.parameters]
        return f"{called}({', '.join(parts)})"

    def columns(self) -> list[slice | int]:
        """Return the columns of each parameter in a table of inputs."""
        columns: list[slice | int] = []
        at = 0
        for _, size in self.parameters:
            columns.append(at if size is None else slice(at, at + size))
            at += 1 if size is None else size
        return columns


def read_inputs(f: Callable[..., Any], ranges: Mapping[str, Any]) -> tuple[tuple[Input, ...], Call]:
    """Return the inputs with ranges, and the call of `f` with them.

    Raises
    ------
    TypeError
        If `f` is not a function, a range belongs to no parameter, a parameter without default has no range, or a range is not a
        pair of numbers.
    ValueError
        If a range is empty or not finite, or there are more than `MOST` inputs.
    """
    if not callable(f):
        raise TypeError(
            f"playground(f, …): f is {type(f).__name__}, but must be a function: gl.playground(lambda x: x**2, x=(-3, 3))."
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
            f"playground: {len(inputs)} inputs have a range, but a view has at most {MOST} sliders. Fix some of them: "
            "lambda x, y: f(x, y, 0.5)."
        )
    return tuple(inputs), Call(tuple(parameters), keyword)


def _parameters(f: Callable[..., Any], ranges: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    """Return the parameters with a range, in the order of the function, and those that are passed by name."""
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
            f"playground: a range is given for {', '.join(map(repr, strange))}, but {_function_name(f)} {has}. "
            "Pass ranges by the names of the parameters" + (f": gl.playground(f, {names[0]}=(-3, 3))." if names else ".")
        )
    missing = [p.name for p in single if p.default is p.empty and p.name not in ranges]
    if missing:
        raise TypeError(
            f"playground: {_function_name(f)} needs {', '.join(missing)}, too, but no range is given for "
            f"{'it' if len(missing) == 1 else 'them'}: add {', '.join(f'{name}=(-3, 3)' for name in missing)}, or fix "
            f"{'it' if len(missing) == 1 else 'them'} by a default."
        )
    taken = [name for name in names if name in ranges] + strange
    keyword = {p.name for p in single if p.kind is p.KEYWORD_ONLY} | (set(strange) if free else set())
    if (skipped := next((k for k, p in enumerate(single) if p.name not in ranges), None)) is not None:
        keyword |= {p.name for p in single[skipped:]}  # parameters after one that keeps its default
    return taken, frozenset(keyword & set(taken))


def _nothing(f: Callable[..., Any], names: Sequence[str]) -> TypeError:
    example = ", ".join(f"{name}=(-3, 3)" for name in names or ("x",))
    return TypeError(f"playground: no range is given for the inputs of {_function_name(f)}: gl.playground(f, {example}).")


def _function_name(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return "the function" if name == "<lambda>" else name


def _is_vector(limits: Any) -> bool:
    """Return True for the ranges of a vector: pairs instead of numbers."""
    return (
        isinstance(limits, (list, tuple, np.ndarray))
        and len(limits) > 0
        and all(isinstance(p, (list, tuple, np.ndarray)) for p in limits)
    )


def _input(name: str, parameter: str, index: int | None, limits: Any) -> Input:
    numbers = list(limits) if isinstance(limits, (list, tuple, np.ndarray)) else []
    if len(numbers) != 2 or not all(isinstance(n, Real) and not isinstance(n, bool) for n in numbers):
        raise TypeError(
            f"playground: the range of {name} is {limits!r}, but must be two numbers: {parameter}=(-3, 3); "
            f"for a vector, a pair for each element: {parameter}=[(-4, 4), (-2, 2)]."
        )
    low, high = float(numbers[0]), float(numbers[1])
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise ValueError(f"playground: the range of {name} is {limits!r}, but must be finite.")
    if not low < high:
        why = "decreasing" if low > high else "empty"
        raise ValueError(
            f"playground: the range of {name} is {why}: {limits!r}. Give the smaller number first, then a larger one."
        )
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        raise ValueError(f"playground: the range of {name}, {limits!r}, is too narrow for floating point numbers of that size.")
    return Input(name, parameter, index, low, high)


def read_start(inputs: Sequence[Input], at: Mapping[str, Any] | None) -> np.ndarray:
    """Return the starting point: as given, by parameter or input, else inside the ranges, on the steps of the sliders.

    Raises
    ------
    TypeError, ValueError
        If a name is not an input, or a number is outside its range.
    """
    shares = [*START, *([0.5] * len(inputs))]
    point = np.array([snap(i, i.low + share * i.width) for i, share in zip(inputs, shares, strict=False)])
    for name, value in dict(at or {}).items():
        places = [k for k, i in enumerate(inputs) if name in (i.name, i.parameter)]
        numbers = np.asarray(value, float).reshape(-1) if _numeric(value) else np.empty(0)
        if not places:
            raise TypeError(f"playground: at has {name!r}, which is not one of the inputs: {', '.join(i.name for i in inputs)}.")
        if len(numbers) != len(places):
            want = "a number" if len(places) == 1 else f"{len(places)} numbers"
            raise TypeError(f"playground: at[{name!r}] is {value!r}, but must be {want}.")
        for k, number in zip(places, numbers, strict=True):
            one = inputs[k]
            if not one.low <= number <= one.high:
                raise ValueError(f"playground: at has {one.name} = {number:g}, outside its range ({one.low:g}, {one.high:g}).")
            point[k] = number
    return point


def _numeric(value: Any) -> bool:
    try:
        np.asarray(value, float)
    except (TypeError, ValueError):
        return False
    return True


def snap(one: Input, value: float) -> float:
    """Return the nearest position of a slider, within its range."""
    number = round(value / one.step) * one.step
    return float(f"{min(max(number, one.low), one.high):.12g}")
