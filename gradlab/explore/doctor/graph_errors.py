"""What an error about a graph tells: gradlab's and PyTorch's sentences, with the user's line, and what in the source led there.

The sentence says what happened, the traceback where, and the frames what each name stood for. What cannot be told from these is
not claimed: who wrote to a saved tensor is said where one statement alone can have done it, and else which statements can.
The advice is that of gradlab's own errors (`diagnose.autopsy`, `diagnose.history_loss`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from gradlab.diagnose.autopsy import ALIKE, CARRIED, REDUCED, RETAINED, UNRECORDED, retained
from gradlab.diagnose.requires_grad_calls import EARLY, request_last, requires_grad_inside
from gradlab.diagnose.source_locations import as_update, before_a_dot, receiver, source_of
from gradlab.explore.doctor.case import Case
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.lost_history import lost_history
from gradlab.explore.doctor.mismatches import MISFITS
from gradlab.explore.doctor.program import bound, read, root_of
from gradlab.explore.doctor.scene import Scene
from gradlab.explore.doctor.tuples import taken_for_a_tensor
from gradlab.explore.doctor.writes import asked_out, modified_in_place, writes
from gradlab.explore.libraries import Library, library_of

WORTH, SEEN = 9.0, 8.0  # of the error; and where the cell was seen, and its cause may be known
WALKED = 20_000  # nodes that are looked at
NEAR = 30  # nodes that are looked at behind what one pass hands to the next


def graph_errors(case: Case) -> Iterable[Finding]:
    """Findings on the error with which the cell ended."""
    scene = case.scene
    if scene is None or not scene.steps:
        return
    said = str(scene.error)
    for pattern, tell in RULES:
        if (match := re.search(pattern, said, re.IGNORECASE)) is not None:
            if tell is lost_history and case.trace is not None:
                return  # what was seen tells more
            finding = tell(scene, match)
            if finding is not None:
                yield replace(finding, line=finding.line or scene.line, worth=WORTH if case.trace is None else SEEN)
            return
    for finding in taken_for_a_tensor(scene):
        yield finding
        return
    yield from _without_gradient(scene)


# ----------------------------------------------------------------------------------------------------------- what is asked
def _not_scalar(scene: Scene, match: re.Match[str]) -> Finding:
    name = receiver(scene.place, "backward")
    shape = _shape(scene, name)
    what = f"`{name}`" if name else "what is differentiated"
    size = f" has shape {shape}, and" if shape else ""
    fix = (
        sentence(scene.spelled(REDUCED.format(x=name, ones=scene.ones(name))))
        if name
        else "Give it `grad_outputs=`, or reduce it first."
    )
    return Finding(
        "not-scalar",
        f"{scene.said}: {what}{size} is no single number, and backward() differentiates one.",
        fix=fix,
        evidence={"shape": shape},
    )


def _weights(scene: Scene, match: re.Match[str]) -> Finding:
    name = receiver(scene.place, "backward")
    sizes, wanted = _sizes(match[1]), _sizes(match[2])
    return Finding(
        "shape",
        f"{scene.said}: the weights have shape {sizes}, and {f'`{name}`' if name else 'the output'} has shape {wanted}.",
        fix=sentence(scene.spelled(ALIKE.format(ones=scene.ones(name)))) if name else "Give weights of that shape.",
        evidence={"weights": sizes, "output": wanted},
    )


def _grad_shape(scene: Scene, match: re.Match[str]) -> Finding:
    statement = scene.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = source_of(target.value) if isinstance(target, ast.Attribute) else ""
    value = source_of(statement.value) if name else ""
    sizes, wanted = _sizes(match[1]), _sizes(match[2])
    spread = _spreads(sizes, wanted)
    fix = (
        f"Give it the shape of its tensor: `{name}.grad = {before_a_dot(statement.value)}.expand_as({name}).clone()`."
        if name and spread
        else (f"A `.grad` has the shape of its tensor: reduce or reshape `{value}` to {wanted}." if name else "")
    )
    return Finding(
        "shape",
        f"{scene.said} gives a gradient of shape {sizes} to a tensor of shape {wanted}.",
        fix=fix,
        evidence={"gradient": sizes, "tensor": wanted},
    )


def _unused(scene: Scene, match: re.Match[str]) -> Finding:
    index = int(match["index"] or 0) if "index" in match.groupdict() else 0
    name = _input(scene, index)
    what = f"`{name}`" if name else f"input number {index}"
    return Finding(
        "unused-leaf",
        f"{scene.said} differentiates with respect to {what}, of which nothing was used on the way to the output.",
        fix="Differentiate with respect to the tensor that was used: a name that is bound again (x = x + 0) is another one. "
        "`allow_unused=True` gives None for it.",
        evidence={"name": name},
    )


def _unrecorded(scene: Scene, match: re.Match[str]) -> Finding:
    index = next((i for i in range(8) if (one := _input_value(scene, i)) is not None and not one.requires_grad), 0)
    name = _input(scene, index)
    fix = f"Ask for its gradient before the output is computed: `{name}.requires_grad_()`." if name else ""
    return Finding(
        "frozen",
        f"{scene.said} differentiates with respect to {f'`{name}`' if name else 'a tensor'}, which does not require a gradient.",
        fix=fix,
        evidence={"name": name},
    )


def _inputs(scene: Scene) -> list[Any]:
    for node in ast.walk(scene.statement) if scene.statement is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called == "grad":
                argument = next(
                    (k.value for k in node.keywords if k.arg == "inputs"), node.args[1] if len(node.args) > 1 else None
                )
                return (
                    list(argument.elts)
                    if isinstance(argument, (ast.List, ast.Tuple))
                    else [argument]
                    if argument is not None
                    else []
                )
    return []


def _input(scene: Scene, index: int) -> str:
    inputs = _inputs(scene)
    return source_of(inputs[index]) if index < len(inputs) else ""


def _input_value(scene: Scene, index: int) -> Any:
    inputs = _inputs(scene)
    value = scene.value(inputs[index]) if index < len(inputs) else None
    return value if library_of(value) is not None else None


# ------------------------------------------------------------------------------------------------------- freed, then used
def _freed(scene: Scene, match: re.Match[str]) -> Finding:
    name = receiver(scene.place, "backward")
    for tell in (_carried, _twice, _of_before):
        if (finding := tell(scene, name)) is not None:
            return finding
    return Finding(
        "freed",
        f"{scene.said} needs what an earlier backward() of the same graph has freed; that one was not seen.",
        fix="Give `retain_graph=True` to the earlier call, or add the losses and call backward() once; a state that one step "
        "hands to the next is to be detached.",
    )


def _carried(scene: Scene, name: str) -> Finding | None:
    """What one pass of a loop hands to the next with its history."""
    if scene.loop is None:
        return None
    inside = [node for node in scene.scope if scene.loop.lineno <= node.lineno <= (scene.loop.end_lineno or 0)]
    before = [node for node in scene.scope if node.lineno < scene.loop.lineno]
    graph = _behind(scene.value(name) if name else None)
    assignments: dict[str, ast.stmt] = {}
    for node in inside:
        for one in bound(node):
            assignments.setdefault(one, node)
    for one in dict.fromkeys(one for node in inside for one in sorted(read(node))):
        tensors = _with_history(scene.names.get(one), graph)
        if not tensors or one == name:
            continue
        older = [node for node in before if one in bound(node)]
        if one not in assignments:
            where = scene.quoted(older[-1]) if older else f"`{one}`"
            return _held(
                scene, one, older[-1] if older else None, f"{where} is computed once, before the loop", _again(scene, one, older)
            )
        first = assignments[one]
        early = any(one in read(node) and node.lineno <= first.lineno for node in inside)
        if early:
            fix = f"In each pass {CARRIED.replace('h = h.detach()', f'{one} = {one}.detach()')}."
            if type(scene.names.get(one)) in (tuple, list):
                detached = f"{one} = tuple(part.detach() for part in {one})"
                fix = f"In each pass {CARRIED.replace('h = h.detach()', detached)}."
            return _held(scene, one, first, f"{scene.quoted(first)} hands `{one}` from one pass of the loop to the next", fix)
    for owner, one in _kept_in_modules(scene, graph):
        return _held(
            scene,
            one,
            None,
            f"`{owner}` keeps `{one}` from one call to the next",
            f"Detach it where it is kept: `{one} = {one}.detach()`.",
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


def _again(scene: Scene, name: str, older: list[ast.stmt]) -> str:
    if not older:
        return f"Compute `{name}` again in each pass, or detach it if it is not to learn: `{name} = {name}.detach()`."
    return f"Move {scene.quoted(older[-1])} into the loop, or detach it if it is not to learn: `{name} = {name}.detach()`."


def _kept_in_modules(scene: Scene, graph: set[Any]) -> Iterator[tuple[str, str]]:
    for name, value in list(scene.names.items()):
        if name.startswith("_") or isinstance(value, type) or not callable(getattr(type(value), "named_modules", None)):
            continue
        for _, module in value.named_modules():
            for attribute, kept in {**vars(module), **dict(module.named_buffers(recurse=False))}.items():
                if not attribute.startswith("_") and _with_history(kept, graph):
                    path = scene.path(module)
                    yield path, f"{path}.{attribute}"


def _twice(scene: Scene, name: str) -> Finding | None:
    """An earlier call in the same function."""
    calls = [node for node in scene.scope if node.lineno < scene.place.line and (_call(node, "backward") or _call(node, "grad"))]
    if scene.loop is not None:
        calls = [node for node in calls if node.lineno >= scene.loop.lineno]
    if not calls:
        return None
    call = _call(calls[-1], "backward") or _call(calls[-1], "grad")
    fix = scene.here(RETAINED.format(way=retained(scene.at(call))), call)
    return Finding(
        "freed",
        f"{scene.quoted(calls[-1])} frees the graph, and {scene.said} goes through a part of it again.",
        calls[-1].lineno if scene.place.filename == scene.file else None,
        fix=sentence(fix),
        evidence={"earlier": calls[-1].lineno},
        lines=() if scene.line is None else (scene.line,),
    )


def _of_before(scene: Scene, name: str) -> Finding | None:
    """A loss of an earlier cell, or one that this function was given."""
    if not name.isidentifier() or scene.loop is not None or any(name in bound(node) for node in scene.scope):
        return None
    return Finding(
        "freed",
        f"{scene.said}: `{name}` was computed before, and backward() was called on its graph already, which frees it.",
        fix=f"Compute `{name}` again before each backward(): run the code that makes it again, here if need be.",
        evidence={"name": name},
    )


def _call(node: ast.stmt, method: str) -> Any:
    parts = ast.walk(node) if isinstance(node, (ast.Expr, ast.Assign)) else ()
    calls = (part for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return next((part for part in calls if part.func.attr == method), None)  # type: ignore[attr-defined]


def _with_history(value: Any, graph: set[Any]) -> list[Any]:
    """The tensors of a value that are no leaves and, where a graph is known, are made of something in it that is no leaf: of an
    LSTM's state and output neither is behind the other."""
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


# -------------------------------------------------------------------------------------------------------------- leaves
def _leaf_in_place(scene: Scene, match: re.Match[str]) -> Finding:
    target = next((target for target, _ in writes(scene, scene.statement)), None)
    name = root_of(target) if target is not None else ""
    fix = scene.spelled(UNRECORDED.format(x=scene.place.text))
    return Finding(
        "leaf-in-place",
        f"{scene.said} writes to {f'`{name}`' if name else 'a tensor'} in place, which is a leaf that requires a gradient: that "
        "cannot be recorded.",
        fix=f"Outside of the graph, as an update is meant: {fix}.",
        evidence={"name": name},
    )


def _not_a_leaf(scene: Scene, match: re.Match[str]) -> Finding:
    """An optimizer is given, or a flag is set of, a tensor that is computed from others."""
    non_leaves = [(text, one) for text, one in _listed_tensors(scene) if one.requires_grad and not one.is_leaf]
    name = non_leaves[0][0] if non_leaves else ""
    assignment = next((node for node in reversed(scene.scope) if name in bound(node) and node.lineno < scene.place.line), None)
    fix = "Give it the leaves from which it is computed."
    if assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
        fix = sentence(EARLY.format(name=name, value=request_last(assignment.value)))
    elif match[0].startswith("you can only change"):
        fix = f"For a copy without history: `{name} = {name}.detach()`." if name else "For a copy without history: detach()."
    where = f" ({scene.quoted(assignment)})" if assignment is not None else ""
    return Finding(
        "not-a-leaf",
        f"{scene.said}: {f'`{name}`' if name else 'the tensor'} is computed from other tensors{where}, and no leaf.",
        assignment.lineno if assignment is not None and scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"name": name},
        lines=() if scene.line is None else (scene.line,),
    )


def _listed_tensors(scene: Scene) -> list[tuple[str, Any]]:
    named = scene.tensors(scene.statement)
    for node in ast.walk(scene.statement) if scene.statement is not None else ():
        held: Any = scene.value(node) if isinstance(node, ast.Name) else None
        if type(held) in (list, tuple):
            named += [(f"{source_of(node)}[{i}]", one) for i, one in enumerate(held[:100]) if library_of(one) is not None]
    statement = scene.statement
    target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Attribute):
        target = target.value
        named += [(source_of(target), scene.value(target))] * (library_of(scene.value(target)) is not None)
    return named


def _nothing_to_optimize(scene: Scene, match: re.Match[str]) -> Finding:
    models = [
        source_of(node.func.value)
        for node in ast.walk(scene.statement or ast.Pass())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"
    ]
    what = f"`{models[0]}` has no parameters" if models else "the list of parameters is empty"
    return Finding(
        "stale-optimizer",
        f"{scene.said}: {what}. Layers in a plain list or made in forward are not found, and a generator gives its items once.",
        fix="Make layers in `__init__`, lists of them an `nn.ModuleList`.",
        evidence={"models": models},
    )


def _without_gradient(scene: Scene) -> Iterable[Finding]:
    """`.grad` was used while it was None."""
    error = scene.error
    none = "NoneType" in str(error) and isinstance(error, (TypeError, AttributeError))
    if not none or scene.statement is None:
        return
    for node in ast.walk(scene.statement):
        if not (isinstance(node, ast.Attribute) and node.attr == "grad"):
            continue
        tensor, name = scene.value(node.value), source_of(node.value)
        if library_of(tensor) is None or (tensor.is_leaf and tensor.grad is not None):
            continue
        kind, why, line, fix = _why_none(scene, name, tensor)
        yield Finding(
            kind,
            f"{scene.said} uses `{name}.grad`, which is None: {why}.",
            line or scene.line,
            fix=fix,
            evidence={"name": name},
            worth=WORTH,
            lines=() if scene.line is None else (scene.line,),
        )
        return


def _why_none(scene: Scene, name: str, tensor: Any) -> tuple[str, str, int | None, str]:
    earlier = [node for node in scene.scope if node.lineno < scene.place.line or scene.loop is not None]
    own = scene.place.filename == scene.file
    assignment = next(
        (node for node in reversed(earlier) if name in bound(node)), scene.statement if name in bound(scene.statement) else None
    )
    update = as_update(assignment, name) if isinstance(assignment, ast.Assign) else ""
    if not tensor.requires_grad and assignment is not None and update:
        return (
            "rebound-leaf",
            f"{scene.quoted(assignment)} gave its name to a new tensor, made where no history is recorded",
            assignment.lineno if own else None,
            f"Update the leaf itself: {scene.spelled(UNRECORDED.format(x=update))}.",
        )
    if not tensor.requires_grad:
        return (
            "frozen",
            f"`{name}` does not require a gradient",
            None,
            f"Ask for it before the loss is computed: `{name}.requires_grad_()`.",
        )
    if not tensor.is_leaf:
        fix = "Keep the name for the leaf, and give the result another one."
        if update:
            fix = f"Update the leaf itself: {scene.spelled(UNRECORDED.format(x=update))}."
        elif assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
            fix = sentence(EARLY.format(name=name, value=request_last(assignment.value)))
        where = f": {scene.quoted(assignment)} gave its name to a result" if assignment is not None else ""
        return "rebound-leaf", f"`{name}` is no leaf{where}", assignment.lineno if assignment is not None and own else None, fix
    sweeps = [node for node in earlier if _call(node, "backward")]
    if not sweeps:
        return "no-gradient", "no backward() was called before it", None, "Call backward() on the loss first."
    cleared = [
        node
        for node in earlier
        if sweeps[0].lineno < node.lineno < scene.place.line
        and ("zero_grad(" in source_of(node) or source_of(node) == f"{name}.grad = None")
    ]
    if cleared:
        line = cleared[-1].lineno
        why = f"{scene.quoted(cleared[-1])} has cleared it"
        return "no-gradient", why, line if own else None, f"Clear it after line {scene.place.line}."
    why = f"{scene.quoted(sweeps[-1])} did not reach `{name}`"
    return "unused-leaf", why, None, f"Use `{name}` on the way to the loss, or leave it out of the update."


# ---------------------------------------------------------------------------------------------------------------- pieces
def _shape(scene: Scene, name: str) -> list[int] | None:
    value = scene.value(name) if name else None
    if value is not None and library_of(value) is not None:
        return list(value.shape)
    match = re.search(r"This one has shape (\[[\d, ]*\])", str(scene.error))
    return _sizes(match[1]) if match else None


def _sizes(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _spreads(shape: list[int], wanted: list[int]) -> bool:
    """Whether a shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)


SIZE = r"(?:torch\.Size\(|\w+\.Size\()?(\[[\d, ]*\])\)?"
WHICH = r"\[\S+ (?P<shape>\[[\d, ]*\])\](?:, which is output \d+ of (?P<made>\w+?)(?:Backward\d*)?,)?"
RULES: list[tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]] = [
    (rf"modified by an inplace operation: {WHICH} is at", modified_in_place),
    (r"functions with out=\.\.\. arguments don't support automatic differentiation", asked_out),
    (r"through the graph a second time|have already been freed", _freed),
    (r"does not require grad and does not have a grad_fn", lost_history),
    (r"implicitly created only for scalar outputs", _not_scalar),
    (rf"Mismatch in shape: grad_output\[\d+\] has a shape of {SIZE} and output\[\d+\] has a shape of {SIZE}", _weights),
    (r"assign a gradient of size '(\[[\d, ]*\])' to a tensor of size '(\[[\d, ]*\])'", _grad_shape),
    (
        r"(?:differentiated Tensor at index (?P<index>\d+)|One of the differentiated Tensors) appears to not have been used",
        _unused,
    ),
    (r"One of the differentiated Tensors does not require grad", _unrecorded),
    (r"leaf Variable that requires grad (?:is being|has been) used in an in-place operation", _leaf_in_place),
    (r"can't optimize a non-leaf Tensor|you can only change requires_grad flags of leaf", _not_a_leaf),
    (r"optimizer got an empty parameter list", _nothing_to_optimize),
    *MISFITS,
]
