"""The layers of Keras models as the user wrote them: the calls that make and compile them, and edits of these calls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.keras_layers import activation_of, is_keras_layer, modules_of
from gradlab.explore.trace.data import Line

DEFAULTS = {"linear": None}  # spellings of an argument's default


def model_of(case: Case, layer: Any) -> Any:
    """Return the Keras model that contains a layer, which may have several names; None if there is none, or more than one."""
    found = {id(model): model for model in case.models.values() if any(part is layer for _, part in modules_of("", model))}
    model = next(iter(found.values()), None)
    return model if len(found) == 1 and is_keras_layer(model) else None


def layer_call(case: Case, path: str) -> tuple[Program, ast.Call] | None:
    """Return the call that makes a layer, `Dense(1, activation="softmax")`, and its program.

    Known are calls that make no other layer of the model: the only one whose arguments fit, or, if the program has as many calls
    of the class as a sequential model has layers, the one at the same place.
    """
    layer = case.keras_layer(path)
    model = model_of(case, layer)
    if model is None:
        return None
    alike = [one for _, one in modules_of("", model) if type(one) is type(layer)]
    for program in case.programs:
        calls = [node for node in _calls(program) if _last_name(node.func) == type(layer).__name__]
        ordered = type(model).__name__ == "Sequential" and len(calls) == len(alike)
        if ordered and all(_fits(call, one) for call, one in zip(calls, alike, strict=True)):
            return program, calls[next(i for i, one in enumerate(alike) if one is layer)]
        fitting = [call for call in calls if _fits(call, layer)]
        if len(fitting) == 1 and sum(_fits(fitting[0], one) for one in alike) == 1:
            return program, fitting[0]
    return None


def compile_call(case: Case, path: str) -> tuple[Program, ast.Call] | None:
    """Return the call of `compile` for the model that contains a layer, and its program; None if it is not the only one."""
    model = model_of(case, case.keras_layer(path))
    if model is None:
        return None
    for program in case.programs:
        calls = [node for node in _calls(program) if isinstance(node.func, ast.Attribute) and node.func.attr == "compile"]
        names = {name for name, one in case.models.items() if one is model}
        own = [node for node in calls if ast.unparse(node.func.value) in names]  # type: ignore[attr-defined]
        if len(own or calls) == 1:
            return program, (own or calls)[0]
    return None


def change_layer(case: Case, path: str, **values: Any) -> str:
    """Return the edit of the call that makes a layer: "`Dense(1, activation="sigmoid")` in place of `…`"; "" if it is not known.
    The value None removes an argument."""
    found = layer_call(case, path)
    return "" if found is None else _edit(*found, _parameters(type(case.keras_layer(path))), values)


def change_loss(case: Case, path: str, loss: str) -> str:
    """Return the edit of the loss in the call of `compile`: "`model.compile(…)` in place of `…`"; "" if it is not known."""
    found = compile_call(case, path)
    return "" if found is None else _edit(*found, ["optimizer", "loss"], {"loss": loss})


def line_of_call(flow: Flow, i: int, call: tuple[Program, ast.Call] | None) -> tuple[int | None, Line | None]:
    """Return the line of a call as that of a finding: its number in the cell, and the line itself. Without a call, or for one in
    another cell, the line of node `i`."""
    place = flow.nodes[i].cell or flow.nodes[i].place
    if call is None or place is None or call[0] is not flow.case.program:
        return flow.line(i), None
    program, node = call
    text = _segment(program, node)
    where = place.where.replace(f"line {place.line}", f"line {node.lineno}")
    line = replace(
        place, where=where, line=node.lineno, end=node.end_lineno or node.lineno, columns=None, source=text, statement=text
    )
    return node.lineno, line


def _calls(program: Program) -> Iterator[ast.Call]:
    """Yield the calls in a program in the order of the text."""
    calls = [node for node in ast.walk(program.tree) if isinstance(node, ast.Call)]
    yield from sorted(calls, key=lambda node: (node.lineno, node.col_offset))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parameters(kind: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def _arguments(call: ast.Call, names: list[str]) -> dict[str, ast.expr] | None:
    """Return the arguments of a call by name; None if they are not all written there."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    given = dict(zip(names, call.args, strict=False))
    return given | {one.arg: one.value for one in call.keywords if one.arg is not None}


def _fits(call: ast.Call, layer: Any) -> bool:
    """Return whether the arguments of a call that are constants are those of a layer."""
    arguments = _arguments(call, _parameters(type(layer)))
    if arguments is None:
        return False
    for name, node in arguments.items():
        if not isinstance(node, ast.Constant):
            continue
        value = DEFAULTS.get(node.value, node.value) if isinstance(node.value, str) else node.value
        if name == "activation":
            if (value or "") != activation_of(layer):
                return False
        elif isinstance(own := vars(layer).get(name), (int, float, str, bool)) and own != value:
            return False
    return True


def _segment(program: Program, node: ast.AST) -> str:
    return " ".join((ast.get_source_segment("\n".join(program.lines), node) or ast.unparse(node)).split())


def _edit(program: Program, call: ast.Call, names: list[str], values: dict[str, Any]) -> str:
    """Return the edit of some arguments of a call, in the quotation marks that it has; "" if the program has the call twice."""
    given = _arguments(call, names)
    old = _segment(program, call)
    if given is None or sum(_segment(program, one) == old for one in _calls(program)) != 1:
        return ""
    quote = "'" if "'" in old and '"' not in old else '"'
    pieces: list[str] = []
    left = dict(values)
    written = [(None, node) for node in call.args] + [(one.arg, one.value) for one in call.keywords]
    for keyword, node in written:
        name = keyword or next(key for key, value in given.items() if value is node)
        text = _segment(program, node)
        if name in left:
            value = left.pop(name)
            if value is None:
                continue
            text = _spell(value, quote)
        pieces.append(f"{keyword}={text}" if keyword else text)
    pieces += [f"{name}={_spell(value, quote)}" for name, value in left.items() if value is not None]
    return instead(f"{_segment(program, call.func)}({', '.join(pieces)})", old)


def _spell(value: Any, quote: str) -> str:
    return f"{quote}{value}{quote}" if isinstance(value, str) else repr(value)
