"""What tells several trainings of one program apart: the variables of the loops in which they run, or their models' names.

A variable of a loop is of use if it has one value as long as a training lasts, and another one in another training: `act` of
`for act in (Sigmoid, Tanh): train(make(act))`, and not the number of a step. Values are kept as text, so that nothing lives on.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NamedTuple

from gradlab.explore.names import is_model
from gradlab.explore.trace.notes import locals_of

LARGEST = 2_000_000  # characters of a source that is parsed
WIDEST = 24  # characters of a value
CLASS_NAME = type.__dict__["__name__"]  # whatever a metaclass makes of it
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
OWN_FRAMES = frozenset(("<listcomp>", "<setcomp>", "<genexpr>", "<dictcomp>"))  # from Python 3.12 on of generators alone

Variable = tuple[CodeType, int, str]  # of a loop: the code it is in, the loop's line, the name


class LoopValue(NamedTuple):
    """The value of a variable of a loop. `counts`: whether it is a whole number, as that of `enumerate` is."""

    text: str
    counts: bool


@dataclass
class Identity:
    """What may tell a training from others: what it is called, the line of the cell from which it runs, the loops around it."""

    called: str
    line: int | None = None
    loops: dict[Variable, LoopValue] = field(default_factory=dict)


class _Loop(NamedTuple):
    line: int
    first: int  # lines that run in it
    last: int
    names: tuple[str, ...]
    own_names: bool  # whether these are a comprehension's, and none of the code around it


def loop_values(frames: Iterable[Any]) -> dict[Variable, LoopValue]:
    """The variables of the loops that the frames are in, the outermost first, as far as their values can be said in a few
    characters."""
    found: dict[Variable, LoopValue] = {}
    for frame in reversed(list(frames)):
        around = [one for one in _loops(frame.f_code.co_filename) if one.first <= frame.f_lineno <= one.last]
        names = locals_of(frame) if around else {}
        for one in around:
            for name in one.names:
                if one.own_names and frame.f_code.co_name not in OWN_FRAMES and name not in frame.f_code.co_varnames:
                    continue
                if name in names and (value := _said(names[name])) is not None:
                    found[frame.f_code, one.line, name] = value
    return found


def labels(trainings: Sequence[Identity]) -> list[str]:
    """What each is called beside the others: "act=Sigmoid"; "critic"; "net, line 7"; "net (2)"."""
    variables = list(dict.fromkeys(variable for one in trainings for variable in one.loops))
    counting = {variable for one in trainings for variable, value in one.loops.items() if value.counts}
    columns: list[tuple[Variable | str, list[Any]]] = [
        (variable, [one.loops[variable].text if variable in one.loops else None for one in trainings])
        for variable in sorted(variables, key=counting.__contains__)
    ]
    columns += [("name", [one.called for one in trainings]), ("line", [one.line for one in trainings])]
    chosen: set[Variable | str] = set()
    rows: list[tuple[Any, ...]] = [() for _ in trainings]
    for key, column in columns:
        more = [(*row, value) for row, value in zip(rows, column, strict=True)]
        if len(set(more)) > len(set(rows)):
            rows = more
            chosen.add(key)
    if not any(variable in chosen for variable in variables):
        chosen.add("name")
    texts = [_text(one, chosen, variables) for one in trainings]
    return [f"{text} ({texts[:k].count(text) + 1})" if texts.count(text) > 1 else text for k, text in enumerate(texts)]


def _text(one: Identity, chosen: set[Variable | str], variables: Sequence[Variable]) -> str:
    parts = [f"{v[2]}={one.loops[v].text}" for v in variables if v in chosen and v in one.loops]
    if "name" in chosen or not parts:
        parts.append(one.called)
    if "line" in chosen and one.line is not None:
        parts.append(f"line {one.line}")
    return ", ".join(parts)


def _said(value: Any) -> LoopValue | None:
    """A value in a few characters; None where it does not say much. No code of the user's runs."""
    kind = type(value)
    if kind is str:
        text = value
    elif kind in (bool, type(None), int, complex):
        text = repr(value)
    elif kind is float:
        text = f"{value:.6g}"
    elif kind in (tuple, list) and len(value) <= 4 and all(type(item) in (int, float, str, bool) for item in value):
        text = repr(value)
    elif issubclass(kind, type):
        text = CLASS_NAME.__get__(value)
    elif kind in (FunctionType, BuiltinFunctionType):
        text = value.__name__
    elif is_model(value):
        text = kind.__name__
    else:
        return None
    return LoopValue(text, kind is int) if text.isprintable() and text != "<lambda>" and 0 < len(text) <= WIDEST else None


def _loops(filename: str) -> tuple[_Loop, ...]:
    return _parsed("".join(linecache.getlines(filename)))


@lru_cache(maxsize=32)
def _parsed(source: str) -> tuple[_Loop, ...]:
    """The loops of a source, outer ones before those within them."""
    if len(source) > LARGEST:
        return ()
    try:
        return tuple(_in(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _in(tree: ast.AST) -> Iterator[_Loop]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield _Loop(node.lineno, node.body[0].lineno, node.body[-1].end_lineno or 0, _names([node.target]), False)
        elif isinstance(node, COMPREHENSIONS):
            names = _names([one.target for one in node.generators])
            yield _Loop(node.lineno, node.lineno, node.end_lineno or 0, names, True)


def _names(targets: Iterable[ast.AST]) -> tuple[str, ...]:
    return tuple(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
