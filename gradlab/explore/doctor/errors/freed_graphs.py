"""What an error about a graph that was freed tells: which backward() freed it, or what was computed before and used again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from gradlab.diagnose.source_locations import receiver, source_of
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.program import bound, read
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.names import is_model

WALKED = 20_000  # nodes that are looked at
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
NEAR = 30  # nodes searched behind a tensor that one pass carries to the next


declare(
    "freed",
    meaning="a second backward() through a graph that was freed",
    why="",
    remedy="",
    fault="",
    healthy="",
)


def freed(scene: Scene, match: re.Match[str]) -> Finding:
    """The finding on a second sweep through a graph."""
    name = receiver(scene.place, "backward")
    for tell in (_carried, _twice, _of_before):
        if (finding := tell(scene, name)) is not None:
            return finding
    return Finding(
        "freed",
        f"{scene.said} needs what an earlier backward() of the same graph has freed; that one was not seen.",
        fix="Give retain_graph=True to the earlier call, or add the losses and call backward() once. Detach a state that is "
        "carried from one step to the next.",
    )


def _carried(scene: Scene, name: str) -> Finding | None:
    """Find what one pass of a loop carries to the next with its history."""
    if scene.loop is None:
        return None
    inside = [node for node in scene.scope if scene.loop.lineno <= node.lineno <= (scene.loop.end_lineno or 0)]
    outside = [node for node in scene.scope if node.lineno < scene.loop.lineno]
    graph = _behind(scene.value(name) if name else None)
    assignments: dict[str, ast.stmt] = {}
    for node in inside:
        for one in bound(node):
            assignments.setdefault(one, node)
    for one in dict.fromkeys(one for node in inside for one in sorted(read(node))):
        tensors = _with_history(scene.names.get(one), graph)
        if not tensors or one == name:
            continue
        older = [node for node in outside if one in bound(node)]
        reader = next((node for node in inside if one in read(node)), None)
        if one not in assignments:
            where = scene.quoted(older[-1]) if older else f"`{one}`"
            return _held(
                scene,
                one,
                older[-1] if older else None,
                f"{where} is computed once, before the loop",
                _again(scene, one, older, reader),
            )
        first = assignments[one]
        early = any(one in read(node) and node.lineno <= first.lineno for node in inside)
        if early:
            several = type(scene.names.get(one)) in (tuple, list)
            detached = f"{one} = tuple((part.detach() for part in {one}))" if several else f"{one} = {one}.detach()"
            code = before(detached, source_of(reader)) if isinstance(reader, SIMPLE) else ""
            fix = f"Detach what one pass carries to the next: {code}." if code else f"Detach `{one}` at the start of each pass."
            return _held(scene, one, first, f"{scene.quoted(first)} carries `{one}` from one pass of the loop to the next", fix)
    for owner, one in _kept_in_modules(scene, graph):
        return _held(
            scene,
            one,
            None,
            f"`{owner}` keeps `{one}` from one call to the next",
            f"Detach `{one}` before each call, or set it anew.",
        )
    return None


def _held(scene: Scene, name: str, node: Any, how: str, fix: str) -> Finding:
    return Finding(
        "freed",
        f"{how}, with its history: the graph behind it was freed by the backward() of an earlier pass, and {scene.said} "
        "needs it again.",
        node.lineno if node is not None and scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"name": name},
        lines=() if scene.line is None else (scene.line,),
    )


def _again(scene: Scene, name: str, older: list[ast.stmt], reader: Any) -> str:
    """Compute again in each pass what was computed before the loop."""
    last = older[-1] if older else None
    if not isinstance(last, ast.Assign) or len(last.targets) != 1:
        return f"Compute `{name}` again in each pass."
    code = before(source_of(last), source_of(reader)) if isinstance(reader, SIMPLE) else ""
    if code:
        return f"Compute it in each pass: {code}."
    return f"Move {scene.quoted(last)} into the loop."


def _kept_in_modules(scene: Scene, graph: set[Any]) -> Iterator[tuple[str, str]]:
    for name, value in list(scene.names.items()):
        if name.startswith("_") or not is_model(value):
            continue
        for _, module in value.named_modules():
            for attribute, kept in {**vars(module), **dict(module.named_buffers(recurse=False))}.items():
                if not attribute.startswith("_") and _with_history(kept, graph):
                    path = scene.path(module)
                    yield path, f"{path}.{attribute}"


def _twice(scene: Scene, name: str) -> Finding | None:
    """An earlier call in the same function."""
    calls = [
        node for node in scene.scope if node.lineno < scene.place.line and (call_of(node, "backward") or call_of(node, "grad"))
    ]
    if scene.loop is not None:
        calls = [node for node in calls if node.lineno >= scene.loop.lineno]
    if not calls:
        return None
    call = call_of(calls[-1], "backward") or call_of(calls[-1], "grad")
    fix = f"Keep the graph: {_retaining(scene, call)}, or add the losses and call backward() once."
    return Finding(
        "freed",
        f"{scene.quoted(calls[-1])} frees the graph, and {scene.said} goes through a part of it again.",
        calls[-1].lineno if scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"earlier": calls[-1].lineno},
        lines=() if scene.line is None else (scene.line,),
    )


def _retaining(scene: Scene, call: ast.Call) -> str:
    """The earlier call with retain_graph=True, and its line."""
    keywords = [keyword for keyword in call.keywords if keyword.arg != "retain_graph"]
    kept = ast.Call(call.func, call.args, [*keywords, ast.keyword("retain_graph", ast.Constant(True))])
    return f"{instead(source_of(kept), source_of(call))}{scene.on(scene.at(call))}"


def _of_before(scene: Scene, name: str) -> Finding | None:
    """A loss of an earlier cell, or one that this function was given."""
    if not name.isidentifier() or scene.loop is not None or any(name in bound(node) for node in scene.scope):
        return None
    code = ""
    for filename, program in scene.programs.items():
        makers = [node for node in program.assigned(name) if isinstance(node, ast.Assign)]
        if filename != scene.place.filename and makers and not scene.place.function.startswith("<lambda"):
            code = before(source_of(makers[-1]), scene.place.text) if scene.place.function == "<module>" else ""
            break
    again = f"Compute it again before each backward(): {code}." if code else f"Compute `{name}` again before each backward()."
    return Finding(
        "freed",
        f"{scene.said}: `{name}` was computed before, and backward() was called on its graph already, which frees it.",
        fix=again,
        evidence={"name": name},
    )


def call_of(node: ast.stmt, method: str) -> Any:
    parts = ast.walk(node) if isinstance(node, (ast.Expr, ast.Assign)) else ()
    calls = (part for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return next((part for part in calls if part.func.attr == method), None)  # type: ignore[attr-defined]


def _with_history(value: Any, graph: set[Any]) -> list[Any]:
    """Return the tensors of a value that have a history, and share a node with a graph where one is given.

    An LSTM's state and its output share nodes, though neither is computed from the other.
    """
    parts = list(value) if type(value) in (tuple, list) and len(value) < 100 else [value]
    names = []
    for part in parts:
        library = library_of(part)
        if library is not None and part.requires_grad and not part.is_leaf and (not graph or _shares(library, part, graph)):
            names.append(part)
    return names


def _shares(library: Library, tensor: Any, graph: set[Any]) -> bool:
    seen: set[Any] = set()
    waiting = [library.node(tensor)]
    while waiting and len(seen) < NEAR:
        node = waiting.pop(0)
        if node is None or node in seen or library.variable(node) is not None:
            continue
        if node in graph:
            return True
        seen.add(node)
        waiting += library.inputs(node)
    return False


def _behind(value: Any) -> set[Any]:
    """The nodes of the graph of a tensor; none where it is not known, or not whole."""
    library = library_of(value)
    if library is None or not value.requires_grad:
        return set()
    seen: set[Any] = set()
    waiting = [library.node(value)]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += library.inputs(node)
            if len(seen) > (library.at_most(WALKED) or WALKED):
                return set()
    return seen
