"""Explain errors about a freed graph: which backward() freed it, or which tensor was computed before and is used again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from gradlab.diagnose.source_locations import receiver, source_of
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.program import bound_names, read_names
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.module_paths import is_model

MAX_NODES = 20_000  # nodes visited in a graph
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
MAX_SHARED = 30  # nodes visited to find one that two graphs share


declare(
    "freed",
    meaning="`backward()` goes through a part of the graph that an earlier `backward()` has freed.",
    why="""
        `backward()` frees the tensors that operations saved for it, so each part of a graph can be used once. It is used a second
        time if `backward()` is called twice, if two losses share a part of the graph, or if a loop carries a tensor with its
        history from one step to the next.
    """,
    remedy="""
        Detach a tensor that a loop carries from one step to the next: `h = h.detach()`. Add losses that share a part of the
        graph and call `backward()` once, or compute the part again. To call `backward()` twice on purpose, pass
        `retain_graph=True` to the first call.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        sequence, target = torch.randn(20, 4, 2), torch.randn(20, 4, 1)
        cell, head = nn.RNNCell(2, 8), nn.Linear(8, 1)
        optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(4, 8)
        for x, y in zip(sequence, target):
            h = cell(x, h)  #!
            loss = F.mse_loss(head(h), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    healthy={"h = cell(x, h)": "h = cell(x, h.detach())"},
)


def explain_freed(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a second backward() through a graph."""
    name = receiver(scene.place, "backward")
    for explain in (_find_carried, _find_earlier_call, _find_older_loss):
        if (finding := explain(scene, name)) is not None:
            return finding
    return Finding(
        "freed",
        f"{scene.code} goes through a graph that an earlier backward() freed. The earlier call is not known.",
        fix="Pass retain_graph=True to the earlier call, or add the losses and call backward() once. Detach a state that is "
        "carried from one step to the next.",
    )


def _find_carried(scene: Scene, name: str) -> Finding | None:
    """Find a tensor that one iteration of a loop carries to the next with its history."""
    if scene.loop is None:
        return None
    inside = [node for node in scene.scope if scene.loop.lineno <= node.lineno <= (scene.loop.end_lineno or 0)]
    outside = [node for node in scene.scope if node.lineno < scene.loop.lineno]
    graph = _graph_nodes(scene.value(name) if name else None)
    assignments: dict[str, ast.stmt] = {}
    for node in inside:
        for one in bound_names(node):
            assignments.setdefault(one, node)
    for one in dict.fromkeys(one for node in inside for one in sorted(read_names(node))):
        tensors = _tensors_with_history(scene.names.get(one), graph)
        if not tensors or one == name:
            continue
        older = [node for node in outside if one in bound_names(node)]
        reader = next((node for node in inside if one in read_names(node)), None)
        if one not in assignments:
            where = scene.quote(older[-1]) if older else f"`{one}`"
            return _carried_finding(
                scene,
                one,
                older[-1] if older else None,
                f"{where} is computed once, before the loop",
                _recompute_fix(scene, one, older, reader),
            )
        first = assignments[one]
        early = any(one in read_names(node) and node.lineno <= first.lineno for node in inside)
        if early:
            several = type(scene.names.get(one)) in (tuple, list)
            detached = f"{one} = tuple((part.detach() for part in {one}))" if several else f"{one} = {one}.detach()"
            code = before(detached, source_of(reader)) if isinstance(reader, SIMPLE_STATEMENTS) else ""
            fix = f"Detach it in each iteration: {code}." if code else f"Detach `{one}` at the start of each iteration."
            how = f"{scene.quote(first)} carries `{one}` from one iteration of the loop to the next"
            return _carried_finding(scene, one, first, how, fix)
    for owner, one in _find_module_state(scene, graph):
        return _carried_finding(
            scene,
            one,
            None,
            f"`{owner}` keeps `{one}` from one call to the next",
            f"Detach `{one}` before each call, or reset it.",
        )
    return None


def _carried_finding(scene: Scene, name: str, node: Any, how: str, fix: str) -> Finding:
    return Finding(
        "freed",
        f"{how}, with its history. The backward() of an earlier iteration freed that graph, and {scene.code} needs it again.",
        node.lineno if node is not None and scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"name": name},
        lines=() if scene.line is None else (scene.line,),
    )


def _recompute_fix(scene: Scene, name: str, older: list[ast.stmt], reader: Any) -> str:
    """Return the advice to compute a tensor in each iteration instead of before the loop."""
    last = older[-1] if older else None
    if not isinstance(last, ast.Assign) or len(last.targets) != 1:
        return f"Compute `{name}` again in each iteration."
    code = before(source_of(last), source_of(reader)) if isinstance(reader, SIMPLE_STATEMENTS) else ""
    if code:
        return f"Compute it in each iteration: {code}."
    return f"Move {scene.quote(last)} into the loop."


def _find_module_state(scene: Scene, graph: set[Any]) -> Iterator[tuple[str, str]]:
    """Yield the paths of modules that keep tensors of a graph as attributes or buffers, and of these tensors."""
    for name, value in list(scene.names.items()):
        if name.startswith("_") or not is_model(value):
            continue
        for _, module in value.named_modules():
            for attribute, state in {**vars(module), **dict(module.named_buffers(recurse=False))}.items():
                if not attribute.startswith("_") and _tensors_with_history(state, graph):
                    path = scene.path(module)
                    yield path, f"{path}.{attribute}"


def _find_earlier_call(scene: Scene, name: str) -> Finding | None:
    """Explain the error by an earlier call in the same function."""
    calls = [
        node
        for node in scene.scope
        if node.lineno < scene.place.line and (find_call(node, "backward") or find_call(node, "grad"))
    ]
    if scene.loop is not None:
        calls = [node for node in calls if node.lineno >= scene.loop.lineno]
    if not calls:
        return None
    call = find_call(calls[-1], "backward") or find_call(calls[-1], "grad")
    fix = f"Keep the graph: {_retain_graph_edit(scene, call)}, or add the losses and call backward() once."
    return Finding(
        "freed",
        f"{scene.quote(calls[-1])} frees the graph, and {scene.code} goes through a part of it again.",
        calls[-1].lineno if scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"earlier": calls[-1].lineno},
        lines=() if scene.line is None else (scene.line,),
    )


def _retain_graph_edit(scene: Scene, call: ast.Call) -> str:
    """Return the edit that passes retain_graph=True to an earlier call, with its line."""
    keywords = [keyword for keyword in call.keywords if keyword.arg != "retain_graph"]
    retaining = ast.Call(call.func, call.args, [*keywords, ast.keyword("retain_graph", ast.Constant(True))])
    return f"{instead(source_of(retaining), source_of(call))}{scene.on_line(scene.location(call))}"


def _find_older_loss(scene: Scene, name: str) -> Finding | None:
    """Explain the error by a loss of an earlier cell or of the function's caller."""
    if not name.isidentifier() or scene.loop is not None or any(name in bound_names(node) for node in scene.scope):
        return None
    code = ""
    for filename, program in scene.programs.items():
        makers = [node for node in program.assignments(name) if isinstance(node, ast.Assign)]
        if filename != scene.place.filename and makers and not scene.place.function.startswith("<lambda"):
            code = before(source_of(makers[-1]), scene.place.text) if scene.place.function == "<module>" else ""
            break
    again = f"Compute it again before each backward(): {code}." if code else f"Compute `{name}` again before each backward()."
    return Finding(
        "freed",
        f"{scene.code}: `{name}` was computed earlier, and backward() was already called on its graph, which freed it.",
        fix=again,
        evidence={"name": name},
    )


def find_call(node: ast.stmt, method: str) -> Any:
    """Return the first call of a method in a statement, or None."""
    parts = ast.walk(node) if isinstance(node, (ast.Expr, ast.Assign)) else ()
    calls = (part for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return next((part for part in calls if part.func.attr == method), None)  # type: ignore[attr-defined]


def _tensors_with_history(value: Any, graph: set[Any]) -> list[Any]:
    """Return the tensors of a value that have a history, and share a node with `graph` if that is not empty.

    An LSTM's state and its output share nodes, although neither is computed from the other.
    """
    parts = list(value) if type(value) in (tuple, list) and len(value) < 100 else [value]
    tensors = []
    for part in parts:
        library = library_of(part)
        if library is not None and part.requires_grad and not part.is_leaf and (not graph or _shares_node(library, part, graph)):
            tensors.append(part)
    return tensors


def _shares_node(library: Library, tensor: Any, graph: set[Any]) -> bool:
    """Return whether one of the nearest nodes behind a tensor is in a graph. Nodes of leaves do not count."""
    seen: set[Any] = set()
    waiting = [library.node(tensor)]
    while waiting and len(seen) < MAX_SHARED:
        node = waiting.pop(0)
        if node is None or node in seen or library.variable(node) is not None:
            continue
        if node in graph:
            return True
        seen.add(node)
        waiting += library.inputs(node)
    return False


def _graph_nodes(value: Any) -> set[Any]:
    """Return the nodes of a tensor's graph; an empty set if it has none or too many."""
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
            if len(seen) > (library.at_most(MAX_NODES) or MAX_NODES):
                return set()
    return seen
