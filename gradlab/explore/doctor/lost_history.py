"""Where a loss has lost its history, read off the source and the values that the names had: for an error, after the event.

From the statement that made the loss one goes back over what it read: at each name the value tells whether there is a history.
A statement that read something with a history and made something without one is where it ended.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from gradlab.diagnose.history_loss import FAMILIES, WAYS
from gradlab.diagnose.source_locations import receiver, source_of
from gradlab.explore.doctor.case import listed
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.program import bound, read
from gradlab.explore.doctor.scene import Scene
from gradlab.explore.libraries import library_of

STEPS = 200  # statements that are gone back over
METHODS = {
    "detach": "detach", "detach_": "detach", "item": "item()", "tolist": "tolist()", "numpy": "numpy()",
    "argmax": "position", "argmin": "position", "argsort": "position", "long": "cast", "int": "cast", "bool": "cast",
    "tensor": "tensor()", "as_tensor": "tensor()", "from_numpy": "tensor()", "Parameter": "Parameter()",
    "eq": "comparison", "ne": "comparison", "gt": "comparison", "lt": "comparison", "ge": "comparison", "le": "comparison",
}  # fmt: skip
NUMBERS = {"float": "__float__()", "int": "__int__()"}
OFF = ("no_grad", "inference_mode", "set_grad_enabled")


def lost_history(scene: Scene, match: re.Match[str]) -> Finding | None:
    """The finding on a sweep that was asked of something without history."""
    name = receiver(scene.place, "backward")
    start = _made(scene, name, scene.place.line) if name.isidentifier() else scene.statement
    for node in _back(scene, start):
        operands = [one for one in _read(scene, node) if carries(one[1])]
        if operands and not any(carries(scene.names.get(one)) for one in bound(node) if one != name):
            return _cut(scene, name, node, operands)
    if start is None and name:
        return Finding(
            "no-history",
            f"{scene.said}: `{name}` has no history, and was computed elsewhere: what cut it off was not seen.",
            evidence={"name": name},
        )
    return _frozen(scene, name, start)


def carries(value: Any) -> bool:
    """Whether what is computed from a value has a history: a tensor that requires grad, a model with a parameter that does."""
    if library_of(value) is not None:
        return bool(value.requires_grad)
    if type(value) in (list, tuple):
        return any(carries(one) for one in value[:1000])
    if not isinstance(value, type) and callable(getattr(type(value), "named_parameters", None)):
        return any(one.requires_grad for _, one in value.named_parameters())
    return False


def _made(scene: Scene, name: str, before: int) -> Any:
    """The statement that gave a name its value: the last one before a line, in a loop the last of all."""
    nodes = [node for node in scene.scope if name in bound(node)]
    return next((node for node in reversed(nodes) if node.lineno < before), nodes[-1] if nodes else None)


def _back(scene: Scene, start: Any) -> Iterator[Any]:
    """A statement, and those that made what it read, nearest first."""
    waiting: list[Any] = [start]
    seen: set[int] = set()
    while waiting and len(seen) < STEPS:
        node = waiting.pop(0)
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting += [_made(scene, name, node.lineno) for name in sorted(read(node) - bound(node))]
        waiting += [_made(scene, name, node.lineno) for name in sorted(read(node) & bound(node))]


def _read(scene: Scene, node: Any) -> list[tuple[str, Any]]:
    """The tensors and models that a statement read: (as written, value)."""
    values: dict[str, Any] = {}
    longer: set[int] = set()
    for child in ast.walk(node):
        if isinstance(child, (ast.Name, ast.Attribute)) and id(child) not in longer and isinstance(child.ctx, ast.Load):
            if isinstance(child, ast.Attribute) and library_of(scene.value(child.value)) is not None:
                continue  # of a tensor: that one counts
            value = scene.value(child)
            if library_of(value) is not None or carries(value) or callable(getattr(type(value), "named_parameters", None)):
                values.setdefault(source_of(child), value)
                longer |= {id(part) for part in ast.walk(child)}
    return list(values.items())


def _cut(scene: Scene, name: str, node: Any, operands: list[tuple[str, Any]]) -> Finding:
    """A statement read what has a history, and what it made has none."""
    what = listed([text for text, value in operands if library_of(value) is not None])
    what = what or f"the result of {listed([text for text, _ in operands])}"
    at = f" on line {node.lineno}"
    how = _way(scene, node, [text for text, _ in operands])
    own = scene.place.filename == scene.file
    lines = () if scene.line is None else (scene.line,)
    subject = f"what `{scene.place.text}` differentiates" if not name else f"`{name}`"
    if how is None:
        why = f"what it was given has one ({what})"
        fix, kind = "Look for detach(), .data or no_grad() in what it calls.", "no-history"
    else:
        told, advice = WAYS[how]
        why = scene.spelled(told.format(what=what, how=how))
        fix, kind = sentence(scene.spelled(advice.format(at=at))), FAMILIES.get(how, "non-differentiable")
    if not scene.graded and how is None:
        return _switched_off(scene, name)
    return Finding(
        kind,
        f"{subject} has no history, so {scene.said} cannot differentiate it: at {scene.quoted(node)} it ends, {why}."
        if how is None
        else f"{subject} has no history, so {scene.said} cannot differentiate it. It ends at {scene.quoted(node)}: {why}.",
        node.lineno if own else None,
        fix=fix,
        evidence={"name": name, "way": how or ""},
        lines=lines,
    )


def _way(scene: Scene, node: Any, operands: list[str]) -> str | None:
    """How a statement cut off what it was given, a word of `WAYS`; None where the source does not tell."""
    for child in ast.walk(node):
        below = {source_of(part) for part in ast.walk(child) if isinstance(part, (ast.Name, ast.Attribute))}
        if not below & set(operands):
            continue
        if isinstance(child, ast.Attribute) and child.attr == "data" and source_of(child.value) in operands:
            return "data"
        if isinstance(child, ast.Compare):
            return "comparison"
        if isinstance(child, ast.Call):
            called = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
            root = scene.value(child.func.value) if isinstance(child.func, ast.Attribute) else None
            if root is sys.modules["numpy"]:
                return "numpy()"
            if isinstance(child.func, ast.Name) and called in NUMBERS:
                return NUMBERS[called]
            if called in METHODS:
                return METHODS[called]
    for outer in ast.walk(scene.program.tree):
        if not getattr(outer, "lineno", 0) <= node.lineno <= (getattr(outer, "end_lineno", 0) or 0):
            continue
        switches: list[Any] = []
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            switches = [item.context_expr for item in outer.items]
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            switches = list(outer.decorator_list)
        for switch in switches:
            text = source_of(switch)
            if any(word in text for word in OFF) and "True" not in text:
                return "inference_mode" if "inference_mode" in text else "no_grad"
    return None


def _switched_off(scene: Scene, name: str) -> Finding:
    return Finding(
        "no_grad",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.said} cannot differentiate it: gradients are switched "
        "off for all that runs, by a set_grad_enabled(False) that still holds.",
        fix=f"Switch them on before the loss is computed: `{scene.alias}.set_grad_enabled(True)`.",
        evidence={"name": name},
    )


def _frozen(scene: Scene, name: str, start: Any) -> Finding:
    """Nothing that the loss was computed from requires a gradient."""
    models: dict[str, Any] = {}
    leaves: dict[str, Any] = {}
    readers: dict[str, Any] = {}
    for node in _back(scene, start):
        for text, value in _read(scene, node):
            if text not in readers or node.lineno < readers[text].lineno:
                readers[text] = node
            if library_of(value) is None:
                models.setdefault(text, value)
            elif value.is_leaf and str(value.dtype).rpartition(".")[2].startswith(("float", "bfloat")):
                leaves.setdefault(text, value)
    still = [text for text, model in models.items() if any(True for _ in model.named_parameters())]
    computed = [text for text in leaves if not any(text in bound(node) and _read(scene, node) for node in scene.scope)]
    first = next((readers[text] for text in [*still, *computed]), start)
    line = first.lineno if first is not None and scene.place.filename == scene.file else None
    before = f" before line {first.lineno}" if first is not None else ""
    if still:
        count = sum(1 for text in still for _ in models[text].named_parameters())
        why = f"all {count} parameters of {listed(still)} have requires_grad=False"
        fix = f"Switch on what is to learn{before}: `{still[0]}.requires_grad_()`, or that of its last layer alone."
    elif not scene.graded and not computed:
        return _switched_off(scene, name)
    else:
        why = f"none of what it was computed from requires a gradient{f' ({listed(computed)})' if computed else ''}"
        fix = f"Ask for the gradient of what is to learn{before}: `{computed[0]}.requires_grad_()`." if len(computed) == 1 else ""
        fix = fix or (f"Ask for the gradient of what is to learn{before}: {_asks(computed)}." if computed else "")
    return Finding(
        "frozen",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.said} cannot differentiate it: {why}.",
        line,
        fix=fix,
        evidence={"models": still, "leaves": computed},
        lines=() if scene.line is None else (scene.line,),
    )


def _asks(names: list[str]) -> str:
    return " or ".join(f"`{name}.requires_grad_()`" for name in names[:4])
