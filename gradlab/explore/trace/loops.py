"""Find the position of a program in its loops from its source and the local variables of its running functions.

The position gives the progress of a training. The length of a loop is known if it iterates over a `range` of known numbers, a
sequence, or a data loader of PyTorch. The only code of the program that is called is `len()` of a data loader.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from types import CodeType
from typing import Any, NamedTuple

from gradlab.explore.names import owners_in
from gradlab.explore.trace.notes import Frame, line_of

MAX_CHARACTERS = 500_000  # of a file that is parsed
MAX_PLACES = 200  # in the cache of loops
MAX_MISSES = 2  # wrong predictions of the end of a training, after which no more are made
WRAPPERS = frozenset(("enumerate", "tqdm", "trange", "list", "tuple", "reversed", "sorted", "iter", "progress_bar", "track"))
REORDERED = frozenset(("reversed", "sorted"))
INLINED = sys.version_info >= (3, 12)  # comprehensions run in the enclosing frame
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Loop(NamedTuple):
    """A loop around a line: its variables, its iterable, and the names that its body assigns."""

    targets: tuple[str, ...]
    over: ast.expr
    assigned: frozenset[str] = frozenset()


# ------------------------------------------------------------------------------------------------------------------ source
@lru_cache(maxsize=512)
def _loops_at(source: str, line: int, first: int, comprehension: bool) -> tuple[Loop, ...]:
    """Return the loops around a line, outermost first, in the function or comprehension that begins on line `first`."""
    tree = _parse(source)
    loops: list[Loop] = []

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.stmt)) and not child.lineno <= line <= (child.end_lineno or child.lineno):
                continue
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)) and _first_line(child) == first:
                loops.clear()  # loops around the function do not count
            if isinstance(child, (ast.For, ast.AsyncFor)) and child.body[0].lineno <= line <= (child.body[-1].end_lineno or 0):
                stored = (_names(part) for part in child.body)
                loops.append(Loop(_names(child.target), child.iter, frozenset(name for names in stored for name in names)))
            elif isinstance(child, COMPREHENSIONS):
                parts = [Loop(_names(one.target), one.iter) for one in child.generators]
                if comprehension:
                    loops[:] = parts
                elif INLINED and not isinstance(child, ast.GeneratorExp):
                    loops.extend(parts)
            visit(child)

    visit(tree)
    return tuple(loops)


@lru_cache(maxsize=8)
def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source if len(source) <= MAX_CHARACTERS else "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse("")


def _first_line(node: Any) -> int:
    """Return the first line of a function according to Python, which is the line of its first decorator."""
    first: int = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return first


def _names(node: ast.AST) -> tuple[str, ...]:
    """Return the names that are assigned."""
    return tuple(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))


def loops_around(frame: Frame) -> tuple[Loop, ...]:
    """Return the loops of a running function around its current line, outermost first."""
    code, key = frame.code, (id(frame.code), frame.offset)
    known = _around.get(key)
    if known is None or known[0] is not code:
        line = line_of((code, frame.offset))
        first = code.co_firstlineno if code.co_flags & inspect.CO_OPTIMIZED else 0  # else top-level lines of a module or a cell
        source = "".join(linecache.getlines(code.co_filename))
        loops = () if line is None else _loops_at(source, line, first, _is_comprehension(code))
        if len(_around) >= MAX_PLACES:
            _around.clear()
        known = _around[key] = code, loops
    return known[1]


_around: dict[
    tuple[int, int], tuple[CodeType, tuple[Loop, ...]]
] = {}  # by the id of the code, which is kept alive, and the offset


def _is_comprehension(code: CodeType) -> bool:
    return code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def loops_of(frames: Sequence[Frame]) -> set[tuple[int, int]]:
    """Return keys of the loops that contain the current position of a program."""
    return {(id(frame.code), at) for frame in frames for at, _ in enumerate(loops_around(frame))}


# ---------------------------------------------------------------------------------------------------------------- progress
@dataclass
class Progress:
    """The progress of a training according to its loops.

    Attributes
    ----------
    done : float or None
        The share of the training that is done after the next sweep; None if unknown.
    last : bool
        True if the next sweep is expected to be the last.
    steady : bool
        True if the innermost loop is in the same pass as at the last sweep, or in the next one, as before.
    over : bool
        True if the next sweep is expected to be the first of another model: a loop creates models, and the loops in it have
        ended.
    """

    done: float | None = None
    last: bool = False
    steady: bool = False
    over: bool = False
    _first: dict[tuple[Any, int], Any] = field(default_factory=dict)  # the pass of each loop at the first sweep
    _is_last: bool = False  # whether this sweep was expected to be the last
    _misses: int = 0  # wrong predictions
    _path: tuple[int, ...] | None = None  # the current pass of each loop
    _in_pass: int = 0  # sweeps of this pass so far
    _per_pass: int = 1  # sweeps of the previous pass
    _makers: set[tuple[Any, int]] = field(default_factory=set)  # the loops that create a model in each pass
    _moved: set[tuple[Any, int]] = field(default_factory=set)  # the loops that have advanced since
    _last: dict[tuple[Any, int], tuple[int, int | None]] = field(default_factory=dict)  # the last pass, and the number of passes
    _counted: dict[tuple[Any, int], tuple[Any, Any, int]] = field(default_factory=dict)  # for loops without a counter

    def begin(self, frames: Sequence[Frame], is_part: Callable[[Any], bool]) -> None:
        """Begin a training. The loops that created its model, which `is_part` identifies, do not count as its loops."""
        for depth, frame in enumerate(frames):
            made = {name for name, value in owners_in(frame.names).items() if name not in frame.arguments and is_part(value)}
            if made:
                inner = [
                    (id(frame.code), at) for at, loop in enumerate(loops_around(frame)) if made & {*loop.assigned, *loop.targets}
                ]
                outer = [(id(one.code), at) for one in frames[depth + 1 :] for at, _ in enumerate(loops_around(one))]
                self._makers = {*inner, *outer}
                self.over = self._makes_more(key for key, _, _ in _running(frames))
                return

    def update(self, frames: Sequence[Frame]) -> None:
        """Update the progress at the begin of a sweep, from the running functions."""
        self._misses += self._is_last or self.over  # there is a sweep that was not expected
        self._is_last = self.last
        loops = [*_running(frames)]
        went_on = bool(loops) and loops[-1][0] in self._moved and loops[-1][0] not in self._makers
        place: list[
            tuple[int, int | None]
        ] = []  # of the loops that advance within the training: the pass, and the number of passes
        outer: tuple[int, ...] = ()
        for i, (key, loop, space) in enumerate(loops):
            shadowed = {name for _, other, _ in loops[i + 1 :] for name in other.targets} & {*loop.targets}
            length = length_of(loop.over, space)
            index = None if shadowed else _index(loop, space, length)
            if index is None:
                innermost = i == len(loops) - 1
                values = None if innermost or shadowed else tuple(id(space.get(name)) for name in loop.targets)
                before, seen, passes = self._counted.get(key, (None, None, -1))
                goes_on = before == outer and (innermost or values != seen)
                index = passes + 1 if goes_on else 0 if before != outer else passes
                self._counted[key] = outer, values, index
            self._last[key] = index, length
            if self._first.setdefault(key, index) != index:
                self._moved.add(key)
                self._makers.discard(key)  # the model is still the one of the first pass
            if key in self._moved:
                place.append((index, length))
            outer = *outer, index
        before = self._path
        is_beside = went_on and before is not None and len(before) == len(outer) and before[:-1] == outer[:-1]
        self.steady = is_beside and before is not None and outer[-1] - before[-1] in (0, 1)
        self._in_pass, self._per_pass = (self._in_pass + 1, self._per_pass) if outer == self._path else (1, self._in_pass or 1)
        self._path = outer
        self.done = _share_after_next(place)
        left = [None if length is None else length - 1 - index for index, length in place]  # passes after this one
        ending = left and not any(left[:-1]) and None not in left
        if self._per_pass > 1:
            self.last = bool(ending) and left[-1] == 0 and self._in_pass == self._per_pass - 1
        else:
            self.last = bool(ending) and left[-1] == 1
        self.over = self._in_pass >= self._per_pass and self._makes_more(key for key, _, _ in loops)
        if self._misses > MAX_MISSES:
            self.last = self.over = False

    def total(self, around: Collection[tuple[int, int]] = ()) -> int | None:
        """Return the number of sweeps of the training, without the loops `around` it and those that create the model; None if the
        length of another loop is unknown."""
        lengths = [length for key, (_, length) in self._last.items() if key not in self._makers and key not in around]
        if not lengths or None in lengths:
            return None
        return prod(length for length in lengths if length is not None) * self._per_pass

    def _makes_more(self, keys: Iterable[Any]) -> bool:
        """Return True if a loop that creates models is not at its end, but all advancing loops inside it are."""
        goes_on = False
        for key in keys:
            index, length = self._last.get(key, (0, None))
            at_end = length is not None and index >= length - 1
            if key in self._makers:
                goes_on |= not at_end
            elif key in self._moved and not at_end:
                return False
        return goes_on


def _running(frames: Sequence[Frame]) -> Iterator[tuple[tuple[Any, int], Loop, Mapping[str, Any]]]:
    """Yield the key, the loop and the visible variables for each loop of the running functions, outermost first."""
    for depth, frame in reversed([*enumerate(frames)]):
        around = frames[depth + 1].names if _is_comprehension(frame.code) and depth + 1 < len(frames) else {}
        for at, loop in enumerate(loops_around(frame)):
            yield (id(frame.code), at), loop, ChainMap(frame.names, around, frame.globals)


def _share_after_next(place: Sequence[tuple[int, int | None]]) -> float | None:
    """Return the share of nested loops that is done after the next pass; None if unknown."""
    if not place or place[0][1] is None:
        return None
    done, part = 0.0, 1.0
    for i, (index, length) in enumerate(place):
        if not length:
            break
        done += part * (min(index, length - 1) + 2 * (i == len(place) - 1)) / length
        part /= length
    return min(done, 1.0)


def _index(loop: Loop, space: Mapping[str, Any], length: int | None) -> int | None:
    """Return the pass of a loop from its variable if that is a counter, else None."""
    name, arguments = _call_parts(loop.over)
    first = loop.targets[0] if loop.targets else ""
    value = space.get(first)
    if type(value) is not int or (not arguments and name != "range"):
        return None
    if name in ("range", "trange") and len(loop.targets) == 1:
        numbers = [_number(one, space) for one in arguments]
        if len(numbers) == 1:
            return value
        if len(numbers) in (2, 3) and all(type(one) is int for one in numbers):
            step = numbers[2] if len(numbers) == 3 else 1
            return (value - numbers[0]) // step if step else None
        return None
    if name == "enumerate":
        start = _number(arguments[1], space) if len(arguments) > 1 else 0
        return value - start if type(start) is int else None
    if name in WRAPPERS and name not in REORDERED and length is not None:
        return _index(Loop(loop.targets, arguments[0]), space, length)
    return None


def length_of(over: ast.expr, space: Mapping[str, Any]) -> int | None:
    """Return the number of passes of a loop over an expression; None if it is unknown without running code."""
    if isinstance(over, (ast.List, ast.Tuple, ast.Set)):
        return None if any(isinstance(one, ast.Starred) for one in over.elts) else len(over.elts)
    name, arguments = _call_parts(over)
    if name in ("range", "trange"):
        numbers = [_number(one, space) for one in arguments]
        if not 1 <= len(numbers) <= 3 or not all(type(one) is int for one in numbers) or (len(numbers) == 3 and not numbers[2]):
            return None
        return len(range(*numbers))
    if name == "zip" and arguments:
        lengths = [length_of(one, space) for one in arguments]
        return min((one for one in lengths if one is not None), default=None)
    if name in WRAPPERS and arguments:
        return length_of(arguments[0], space)
    return _length(_value(over, space))


def _call_parts(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the name of the function that an expression calls, and the arguments."""
    if not isinstance(node, ast.Call):
        return "", []
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", ""), node.args


def _length(value: Any) -> int | None:
    kind = type(value)
    if kind in (list, tuple, dict, set, range, str):
        return len(value)
    shape = getattr(value, "shape", None) if kind.__name__ in ("Tensor", "Parameter", "ndarray") else None
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else None
    if any(one.__module__.startswith("tqdm.") for one in kind.__mro__):
        total = getattr(value, "__dict__", {}).get("total")
        return total if type(total) is int else None
    if any(one.__name__ == "DataLoader" and one.__module__.startswith("torch.") for one in kind.__mro__):
        try:
            return len(value)
        except Exception:  # noqa: BLE001  (data without a length; a sampler's __len__ may raise anything)
            return None
    return None


def _number(node: ast.expr, space: Mapping[str, Any]) -> Any:
    """Return the value of an integer literal, variable, or an expression of these; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, space)
        return -value if type(value) is int else None
    if isinstance(node, ast.BinOp):
        a, b = _number(node.left, space), _number(node.right, space)
        if type(a) is not int or type(b) is not int:
            return None
        if isinstance(node.op, ast.Add):
            return a + b
        if isinstance(node.op, ast.Sub):
            return a - b
        if isinstance(node.op, ast.Mult):
            return a * b
        return a // b if isinstance(node.op, ast.FloorDiv) and b else None
    name, arguments = _call_parts(node)
    if name == "len" and len(arguments) == 1:
        return length_of(arguments[0], space)
    if name == "int" and len(arguments) == 1:
        return _number(arguments[0], space)
    return _value(node, space)


def _value(node: ast.expr, space: Mapping[str, Any]) -> Any:
    """Return the value of a constant, a variable, or an attribute; None if evaluating it would run code."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, space)
        held = getattr(owner, "__dict__", None)
        return held.get(node.attr) if isinstance(held, Mapping) else None
    return None
