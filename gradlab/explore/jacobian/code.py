"""Names of the rows and columns of a Jacobian, and code that computes one of them by hand.

A row is a weighted backward. For a column, gradlab pushes a tangent forward through the recorded graph. PyTorch records no
forward sweep. There, vᵀJ is recorded as a function of v; it is linear in v, so its derivative weighted with u is Ju.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from types import FrameType
from typing import Any

import numpy as np

from gradlab.explore.equivalent_code import is_code
from gradlab.explore.libraries import library_of
from gradlab.explore.names import names_in

SPELLED_OUT = 12  # up to this many weights are written out in code

Shape = tuple[int, ...]


class Labels(Sequence[str]):
    """Element labels of named arrays, one array after the other: `x[0,0]`, `x[0,1]`, ..., `b[0]`.

    Labels are made on access, so a matrix with a million columns costs nothing.
    """

    def __init__(self, parts: Sequence[tuple[str, Shape]]) -> None:
        self._parts = parts
        self._stops = np.cumsum([math.prod(shape) for _, shape in parts])

    def __len__(self) -> int:
        return int(self._stops[-1])

    def __iter__(self) -> Iterator[str]:
        for name, shape in self._parts:
            yield from (f"{name}[{','.join(map(str, place))}]" for place in np.ndindex(*shape)) if shape else (name,)

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
    """Names of output, inputs and function: given names, else the caller's variables, else y, x and func.

    Attributes
    ----------
    output, inputs : str, tuple of str
    remark : str
        A line of code that says which names are not the caller's own; empty if all are.
    """

    def __init__(self, target: Any, inputs: Sequence[Any], names: Mapping[str, Any] | None, frame: FrameType) -> None:
        spare = spare_names(len(inputs))
        parts = target if isinstance(target, (tuple, list)) and any(library_of(part) is not None for part in target) else ()
        is_function = library_of(target) is None and not parts
        tensors = [*inputs, *(parts or (() if is_function else (target,)))]
        known = _names_by_id(tensors, frame) if names is None else {id(value): str(name) for name, value in names.items()}
        self._parts = [known.get(id(part)) for part in parts]
        self.inputs = tuple(known.get(id(value)) or name for value, name in zip(inputs, spare, strict=True))
        name = None if is_function and names is None else known.get(id(target))
        if parts and all(self._parts):
            name = ", ".join(map(str, self._parts))
        self.output = name or next(letter for letter in ("y", "z", "out", "output") if letter not in self.inputs)
        xs = [as_code(name, other) for name, other in zip(self.inputs, spare, strict=True)]
        strange = [x for value, x in zip(inputs, xs, strict=True) if id(value) not in known]
        self._call: tuple[list[str], str] | None = None
        if is_function:
            function = _plain_name(target, frame)
            if not function:
                strange.insert(0, "func")
            self._call = [*(f"{x} = {x}.detach().clone().requires_grad_()" for x in xs)], f"{function or 'func'}({', '.join(xs)})"
        elif name is None:
            strange.insert(0, self.output)
        self.remark = f"# {', '.join(strange)}: as given to jacobian" if strange else ""

    def outputs(self, count: int, alone: bool) -> tuple[str, ...]:
        """Return the names of `count` outputs, which came `alone` or as a tuple."""
        if alone:
            return (self.output,)
        return tuple(name or f"{self.output}{k}" for k, name in enumerate(self._parts or [None] * count))

    def opening(self, outputs: Sequence[str], alone: bool) -> str:
        """Return the lines of code that compute a function's outputs; empty for given outputs."""
        if self._call is None:
            return ""
        lines, call = self._call
        left = ", ".join(as_code(name, other) for name, other in zip(outputs, spare_names(len(outputs), "y"), strict=True))
        return "\n".join([*lines, f"{left}{'' if alone or len(outputs) > 1 else ','} = {call}"])


@dataclass(frozen=True)
class HandCode:
    """Names of one Jacobian's rows and columns, and code for them, in its library's spelling and with the user's names."""

    alias: str  # alias of the library: "gl", "torch"
    outputs: Sequence[tuple[str, Shape]]
    inputs: Sequence[tuple[str, Shape]]
    leaves: bool  # whether all inputs are leaves: only these have `.grad`
    plain: bool  # whether the output has the default dtype
    forward: bool  # whether the library sweeps a recorded graph forward, as gradlab does
    remark: str = ""
    opening: str = ""
    spare: str = "y"  # name of an output whose own name is not valid in code

    def row_labels(self) -> Labels:
        """Return the labels of the rows: `z[0,2]`."""
        return Labels(self.outputs)

    def column_labels(self) -> Labels:
        """Return the labels of the columns: `x[3]`."""
        return Labels(self.inputs)

    def independent(self, unused: Sequence[bool] | None) -> list[str]:
        """Return the names of the inputs that are `unused`."""
        return [name for (name, _), missing in zip(self.inputs, unused or (), strict=False) if missing]

    def row(self, weights: int | Sequence[float] | np.ndarray, unused: Sequence[bool]) -> str:
        """Return lines that compute one row, or a weighted sum of rows, in `row`. `unused`: inputs that get no gradient."""
        gl, (zs, xs), lines = self.alias, self._names(), self._opening()
        v, end = _vector(weights, self.row_labels(), "row")
        stops = np.cumsum([math.prod(shape) for _, shape in self.outputs])
        used = [(z, part, shape) for z, part, (_, shape) in zip(zs, np.split(v, stops[:-1]), self.outputs, strict=True)]
        used = [one for one in used if one[1].any()] or used[:1]
        weight_codes = [self._weight(lines, "v" if len(used) == 1 else f"v{k}", *one) for k, one in enumerate(used)]
        outputs = used[0][0] if len(used) == 1 else f"[{', '.join(z for z, *_ in used)}]"
        argument = weight_codes[0] if len(used) == 1 else f"[{', '.join(w or 'None' for w in weight_codes)}]"
        keeping = "" if self.opening else "retain_graph=True"  # these lines made the graph themselves and do not use it again
        if self.leaves:
            lines.append(self._zeroing(xs))
            call = f"{outputs}.backward" if len(used) == 1 else f"{gl}.autograd.backward"
            arguments = [argument] if len(used) == 1 else [outputs, argument]
            lines.append(f"{call}({', '.join(filter(None, [*arguments, keeping]))})")
            parts = [f"{x}.grad" for x in xs]
        else:
            parts = [f"g{k}" for k in range(len(xs))] if len(xs) > 1 else ["g"]
            weights_made = f"[{', '.join(w or 'None' for w in weight_codes)}]" if any(weight_codes) else "None"
            allowing = "allow_unused=True" if any(unused) else ""
            arguments = [outputs, f"[{', '.join(xs)}]", weights_made, keeping, allowing]
            call = f"{gl}.autograd.grad({', '.join(filter(None, arguments))})"
            lines.append(f"{', '.join(parts)}{',' if len(xs) == 1 else ''} = {call}")
        return "\n".join(filter(None, [*lines, f"row = {self._join_code(parts, unused)}{end}"]))

    def loop(self, rows: Sequence[int], unused: Sequence[bool], *, zero: bool, retain: bool, said: str = "") -> str:
        """Return a loop over `rows` without the line that zeroes, or retains; `said` describes the final `row`."""
        gl, (zs, xs), lines = self.alias, self._names(), self._opening()
        z, (_, shape) = zs[0], self.outputs[0]
        if len(zs) > 1:
            z, shape = "together", (len(self.row_labels()),)
            lines.append(f"{z} = {gl}.cat([{', '.join(f'{one}.flatten()' for one in zs)}])")
        keeping, forgotten = ("", "  # retain_graph=True is forgotten") if retain else ("retain_graph=True", "")
        body = [f"v = {gl}.{'zeros' if shape else 'ones'}_like({z})"]
        if shape:
            body.append(f"{'v[i]' if len(shape) == 1 else 'v.view(-1)[i]'} = 1.")
        if self.leaves:
            zeroing, parts = self._zeroing(xs), [f"{x}.grad" for x in xs]
            if zero:
                lines.append(zeroing)
            body.insert(0, f"# {zeroing}  is forgotten" if zero else zeroing)
            body.append(f"{z}.backward({', '.join(filter(None, ['v', keeping]))}){forgotten}")
        else:
            parts = spare_names(len(xs), "g")
            allowing = "allow_unused=True" if any(unused) else ""
            arguments = ", ".join(filter(None, [z, f"[{', '.join(xs)}]", "v", keeping, allowing]))
            body.append(f"{', '.join(parts)}{',' if len(xs) == 1 else ''} = {gl}.autograd.grad({arguments}){forgotten}")
        ending = f"  # {_one_line(said)}" if said else ""
        body.append(f"row = {self._join_code(parts, unused)}{'.clone()' if self.leaves else ''}{ending}")
        return "\n".join([*filter(None, lines), f"for i in {list(rows)}:", *(f"    {line}" for line in body)])

    def _zeroing(self, xs: Sequence[str]) -> str:
        return " = ".join(f"{x}.grad" for x in xs) + " = None"

    def _join_code(self, parts: Sequence[str], unused: Sequence[bool]) -> str:
        """Return code for the gradients of all inputs, flat, one after the other."""
        missing = unused or (False,) * len(parts)
        flat = [
            f"{self.alias}.zeros({math.prod(size)})" if absent else f"{part}.flatten()"
            for part, (_, size), absent in zip(parts, self.inputs, missing, strict=True)
        ]
        return flat[0] if len(flat) == 1 else f"{self.alias}.cat([{', '.join(flat)}])"

    def column(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Return lines that compute one column, or a weighted sum of columns, in `column`."""
        gl, (zs, xs), lines = self.alias, self._names(), self._opening()
        u, end = _vector(weights, self.column_labels(), "column")
        names = ["u"] if len(xs) == 1 else [f"u{k}" for k in range(len(xs))]
        stops = np.cumsum([math.prod(shape) for _, shape in self.inputs])[:-1]
        for name, x, part, (_, shape) in zip(names, xs, np.split(u, stops), self.inputs, strict=True):
            if part.size <= SPELLED_OUT:
                lines.append(f"{name} = {gl}.tensor({_literal(part.reshape(shape))}, dtype={x}.dtype)")
            else:
                lines += _entry_by_entry(gl, name, x, part, shape)
        z, x, u_ = (", ".join(some) for some in (zs, xs, names))
        if self.forward:
            lines.append(f"parts = {gl}.autograd.jvp_of_graph([{z}], [{x}], [{u_}])")
        else:
            vs = ["v"] if len(zs) == 1 else [f"v{k}" for k in range(len(zs))]
            lines += [f"{v} = {gl}.zeros_like({y}, requires_grad=True)" for v, y in zip(vs, zs, strict=True)]
            lines += [
                f"rows = {gl}.autograd.grad([{z}], [{x}], [{', '.join(vs)}], create_graph=True)  # vᵀJ, recorded",
                f"parts = {gl}.autograd.grad(rows, [{', '.join(vs)}], [{u_}])  # its derivative by v, along u",
            ]
        result = "parts[0].flatten()" if len(zs) == 1 else f"{gl}.cat([part.flatten() for part in parts])"
        return "\n".join(filter(None, [*lines, f"column = {result}{end}"]))

    def _names(self) -> tuple[list[str], list[str]]:
        """Return the names of the outputs and the inputs in code."""
        zs, xs = (
            [as_code(code, other) for (code, _), other in zip(side, spare_names(len(side), letter), strict=True)]
            for side, letter in ((self.outputs, self.spare), (self.inputs, "x"))
        )
        return zs, xs

    def _opening(self) -> list[str]:
        """Return the lines before any sweep."""
        zs, xs = self._names()
        named = zip([*zs, *xs], [*self.outputs, *self.inputs], strict=True)
        renamed = [f"{code} is {_one_line(source)}" for code, (source, _) in named if code != source]
        return [self.remark, "# " + ", ".join(renamed) if renamed else "", self.opening]

    def _weight(self, lines: list[str], name: str, z: str, v: np.ndarray, shape: Shape) -> str:
        """Return the code of one output's weight, and add the lines that make it to `lines`. Empty for the 1 of a scalar."""
        if not shape and v[0] == 1.0:
            return ""
        if v.size > SPELLED_OUT:
            lines += _entry_by_entry(self.alias, name, z, v, shape)
            return name
        return f"{self.alias}.tensor({_literal(v.reshape(shape))}{'' if self.plain else f', dtype={z}.dtype'})"


def gradient_code(alias: str, output: str, inputs: Sequence[str]) -> str:
    """Return the line that records a gradient, in `g` or `g0`, `g1` …"""
    xs = [as_code(name, other) for name, other in zip(inputs, spare_names(len(inputs)), strict=True)]
    left = ", ".join(spare_names(len(xs), "g")) + ("," if len(xs) == 1 else "")
    return f"{left} = {alias}.autograd.grad({as_code(output, 'y')}, [{', '.join(xs)}], create_graph=True)"


def _names_by_id(values: Sequence[Any], frame: FrameType) -> dict[int, str]:
    """Return {id: name} for the caller's variables. Containers and models are searched only if a value has no plain name."""
    names = {id(value): _plain_name(value, frame) for value in values}
    if all(names.values()):
        return names
    return {id(value): name for name, value in names_in({**frame.f_globals, **frame.f_locals}, first=frame.f_locals).items()}


def _plain_name(value: Any, frame: FrameType) -> str:
    """Return the caller's first variable that is bound to `value`; "" if there is none."""
    for scope in (frame.f_locals, frame.f_globals):
        for name, other in scope.items():
            if other is value and type(name) is str and name[:1] != "_":
                return name
    return ""


def spare_names(count: int, letter: str = "x") -> list[str]:
    """Return names for inputs or outputs that have none."""
    return [letter] if count == 1 else [f"{letter}{k}" for k in range(count)]


def as_code(name: str, other: str) -> str:
    """Return `name` if it is valid in code, on its own or before a dot; else `other`."""
    if name.isidentifier() and not iskeyword(name):
        return name
    return name if name.isprintable() and name == name.strip() and "(" not in name and is_code(name) else other


def _vector(weights: int | Sequence[float] | np.ndarray, labels: Labels, what: str) -> tuple[np.ndarray, str]:
    """Return the weights of all rows or columns, and a remark if it is a single one."""
    if isinstance(weights, (int, np.integer)):
        v = np.zeros(len(labels))
        v[weights] = 1.0
        return v, f"  # the {what} of {_one_line(labels[int(weights)])}"
    return np.asarray(weights, float).reshape(-1), ""


def _entry_by_entry(gl: str, name: str, like: str, v: np.ndarray, shape: Shape) -> list[str]:
    """Return lines that make a large array with few entries."""
    return [
        f"{name} = {gl}.zeros_like({like})",
        *(f"{name}[{_index(int(i), shape, ', ')}] = {_number(float(v[i]))}" for i in np.flatnonzero(v)),
    ]


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
