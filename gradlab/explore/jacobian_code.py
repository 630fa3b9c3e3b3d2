"""What the rows and columns of a Jacobian are called, and the code that computes one of its rows by hand."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from gradlab.explore.by_hand import is_code
from gradlab.explore.libraries import library_of
from gradlab.explore.names import names_in

SPELLED_OUT = 12                                    # weights are written out in code up to this many

Shape = tuple[int, ...]


class Labels(Sequence[str]):
    """The element labels of named arrays, one array after the other: `x[0,0]`, `x[0,1]`, ..., `b[0]`.

    Each is made when it is looked at, so that a matrix with a million columns costs nothing.
    """

    def __init__(self, parts: Sequence[tuple[str, Shape]]) -> None:
        self._parts = parts
        self._stops = np.cumsum([math.prod(shape) for _, shape in parts])

    def __len__(self) -> int:
        return int(self._stops[-1])

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"label {i} of {len(self)}")
        i = i % len(self)
        part = int(np.searchsorted(self._stops, i, side="right"))
        name, shape = self._parts[part]
        if not shape:
            return name
        inside = i - int(self._stops[part]) + math.prod(shape)
        return f"{name}[{_index(inside, shape, ',')}]"


class Called:
    """What output, inputs and function are called: by given names, else the caller's variables, else y, x and func.

    Attributes
    ----------
    output, inputs : str, tuple of str
    remark : str
        A line of code that says which names are not the caller's own; empty if all are.
    opening : str
        The lines of code by which a function's output comes about; empty for a given output.
    """

    def __init__(self, target: Any, inputs: Sequence[Any], names: Mapping[str, Any] | None, frame: FrameType) -> None:
        variables = {**frame.f_globals, **frame.f_locals}
        given = names_in(variables, first=frame.f_locals) if names is None else names
        known = {id(value): str(name) for name, value in given.items()}
        is_function = library_of(target) is None
        spare = spare_names(len(inputs))
        self.inputs = tuple(known.get(id(value)) or name for value, name in zip(inputs, spare, strict=True))
        name = None if is_function and names is None else known.get(id(target))
        self.output = name or next(letter for letter in ("y", "z", "out", "output") if letter not in self.inputs)
        xs = [as_code(name, other) for name, other in zip(self.inputs, spare, strict=True)]
        strange = [x for value, x in zip(inputs, xs, strict=True) if id(value) not in known]
        self.opening = ""
        if is_function:
            mine = (name for name, value in variables.items() if value is target and not name.startswith("_"))
            function = next(mine, "")
            if not function:
                strange.insert(0, "func")
            self.opening = "\n".join([*(f"{x} = {x}.detach().clone().requires_grad_()" for x in xs),
                                      f"{as_code(self.output, 'y')} = {function or 'func'}({', '.join(xs)})"])
        elif name is None:
            strange.insert(0, self.output)
        self.remark = f"# {', '.join(strange)}: as given to jacobian" if strange else ""


@dataclass(frozen=True)
class RowByHand:
    """The code for the rows of one Jacobian, in the spelling of its library and with the user's names."""

    alias: str                                      # of the library: "gl", "torch"
    output: tuple[str, Shape]
    inputs: Sequence[tuple[str, Shape]]
    leaves: bool                                    # whether all inputs are leaves: others have no `.grad`
    plain: bool                                     # whether the output has the default dtype
    remark: str = ""
    opening: str = ""

    def code(self, weights: int | Sequence[float] | np.ndarray, unused: Sequence[bool]) -> str:
        """Lines that leave the weighted mix of rows, or one row, in `row`. `unused`: inputs that get no gradient."""
        gl, (name, shape) = self.alias, self.output
        z = as_code(name, "y")
        spare = spare_names(len(self.inputs))
        xs = [as_code(given, other) for (given, _), other in zip(self.inputs, spare, strict=True)]
        end = ""
        if isinstance(weights, (int, np.integer)):
            end = f"  # the row of {_one_line(Labels([self.output])[int(weights)])}"
            v = np.zeros(math.prod(shape))
            v[weights] = 1.0
        else:
            v = np.asarray(weights, float).reshape(-1)
        named = zip([z, *xs], [self.output, *self.inputs], strict=True)
        renamed = [f"{code} is {_one_line(given)}" for code, (given, _) in named if code != given]
        lines = [self.remark, "# " + ", ".join(renamed) if renamed else "", self.opening]
        weight = f"{gl}.tensor({_literal(v.reshape(shape))}{'' if self.plain else f', dtype={z}.dtype'})"
        if not shape and v[0] == 1.0:
            weight = ""
        elif v.size > SPELLED_OUT:
            weight = "v"
            lines.append(f"v = {gl}.zeros_like({z})")
            lines += [f"v[{_index(int(i), shape, ', ')}] = {_number(float(v[i]))}" for i in np.flatnonzero(v)]
        if self.leaves:
            lines += [" = ".join(f"{x}.grad" for x in xs) + " = None",
                      f"{z}.backward({weight}{', ' if weight else ''}retain_graph=True)"]
            parts = [f"{x}.grad" for x in xs]
        else:
            parts = [f"g{k}" for k in range(len(xs))] if len(xs) > 1 else ["g"]
            lines.append(f"{', '.join(parts)}{',' if len(xs) == 1 else ''} = {gl}.autograd.grad("
                         f"{z}, [{', '.join(xs)}], {f'[{weight}]' if weight else 'None'}, retain_graph=True"
                         f"{', allow_unused=True' if any(unused) else ''})")
        parts = [f"{gl}.zeros({math.prod(size)})" if missing else f"{part}.flatten()"
                 for part, (_, size), missing in zip(parts, self.inputs, unused, strict=True)]
        result = parts[0] if len(parts) == 1 else f"{gl}.cat([{', '.join(parts)}])"
        return "\n".join(filter(None, [*lines, f"row = {result}{end}"]))


def spare_names(count: int) -> list[str]:
    """What inputs are called that have no name."""
    return ["x"] if count == 1 else [f"x{k}" for k in range(count)]


def as_code(name: str, other: str) -> str:
    """`name` if it can stand in code, on its own or before a dot; else `other`."""
    return name if name.isprintable() and name == name.strip() and "(" not in name and is_code(name) else other


def _index(i: int, shape: Shape, comma: str) -> str:
    return comma.join(map(str, np.unravel_index(i, shape)))


def _one_line(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return f"float('{value}')"
    return f"{int(value)}." if value.is_integer() and abs(value) < 1e15 else repr(value)


def _literal(values: np.ndarray) -> str:
    return f"[{', '.join(map(_literal, values))}]" if values.ndim else _number(float(values))
