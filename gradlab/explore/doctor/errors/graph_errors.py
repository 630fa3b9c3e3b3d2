"""What an error about a graph says: gradlab's and PyTorch's sentences, with the user's line, and what in the source led there.

The sentence says what happened, the traceback where, and the frames what each name stood for. What cannot be told from these is
not claimed: who wrote to a saved tensor is said where one statement alone can have done it, and else which statements can.
The advice is that of gradlab's own errors (`diagnose.autopsy`, `diagnose.history_loss`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gradlab.diagnose.requires_grad_calls import move_request_last, requires_grad_inside
from gradlab.diagnose.source_locations import as_update, parenthesize, receiver, source_of
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import before, cleared, instead
from gradlab.explore.doctor.context.program import bound, read, root_of
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.errors.freed_graphs import call_of, freed
from gradlab.explore.doctor.errors.lost_history import NO_HISTORY, lost_history
from gradlab.explore.doctor.errors.mismatches import MISFITS
from gradlab.explore.doctor.errors.tuples import taken_for_a_tensor
from gradlab.explore.doctor.errors.writes import asked_out, modified_in_place, writes
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check, declare
from gradlab.explore.libraries import library_of

WORTH, SEEN = 9.0, 8.0  # of the error; and where the cell was seen, and its cause may be known


declare(
    "not-scalar",
    meaning="backward() of several numbers without their weights",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "leaf-in-place",
    meaning="a leaf that requires grad is written to in place",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "not-a-leaf",
    meaning="an optimizer, or a flag, of a tensor that is computed from others",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check(
    "not-scalar",
    "leaf-in-place",
    "not-a-leaf",
    "freed",
    "no-history",
    "shape",
    "dtype",
    "device",
    "target",
    "in-place",
    "unused-leaf",
    "frozen",
    "stale-optimizer",
    "no_grad",
    "rebound-leaf",
    "unused-module",
    "detached",
    "item",
    "numpy",
    looks_at=ERROR,
)
def explain_graph_errors(case: Case) -> Iterable[Finding]:
    """Findings on the error with which the cell ended."""
    scene = case.scene
    if scene is None or not scene.steps:
        return
    said = str(scene.error)
    for pattern, tell in RULES:
        if (match := re.search(pattern, said, re.IGNORECASE)) is not None:
            if tell is lost_history and case.trace is not None:
                return  # what was seen says more
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
    call = scene.node if isinstance(scene.node, ast.Call) and name else None
    codes = [scene.swapped(f"{name}.{new}", call) for new in ("sum().backward()", f"backward({scene.ones(name)})") if call]
    fix = (
        f"Reduce it, or weigh each element: {', or '.join(codes)}."
        if all(codes) and codes
        else "Give it grad_outputs, or reduce it first."
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
    call = scene.node if isinstance(scene.node, ast.Call) else None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "gradient")] if call is not None and name else []
    code = scene.swapped(scene.ones(name), given[0]) if given else ""
    return Finding(
        "shape",
        f"{scene.said}: the weights have shape {sizes}, and {f'`{name}`' if name else 'the output'} has shape {wanted}.",
        fix=f"Weigh every element alike: {code}." if code else "Give weights of that shape.",
        evidence={"weights": sizes, "output": wanted},
    )


def _grad_shape(scene: Scene, match: re.Match[str]) -> Finding:
    statement = scene.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = source_of(target.value) if isinstance(target, ast.Attribute) else ""
    value = source_of(statement.value) if name else ""
    sizes, wanted = _sizes(match[1]), _sizes(match[2])
    spread = _spreads(sizes, wanted)
    code = (
        instead(f"{name}.grad = {parenthesize(statement.value)}.expand_as({name}).clone()", source_of(statement)) if name else ""
    )
    fix = f"A .grad has the shape of its tensor: reduce or reshape `{value}` to {wanted}." if name else ""
    fix = f"Give it the shape of its tensor: {code}." if code and spread else fix
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
        "With allow_unused=True it gets None.",
        evidence={"name": name},
    )


def _unrecorded(scene: Scene, match: re.Match[str]) -> Finding:
    index = next((i for i in range(8) if (one := _input_value(scene, i)) is not None and not one.requires_grad), 0)
    name = _input(scene, index)
    reader = next((node for node in scene.scope if name and root_of(ast.parse(name, mode="eval").body) in read(node)), None)
    code = before(f"{name}.requires_grad_()", source_of(reader)) if isinstance(reader, (ast.Assign, ast.Expr)) else ""
    fix = (
        f"Ask for its gradient before the output is computed: {code}."
        if code
        else "Ask for its gradient before the output is computed."
    )
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


# -------------------------------------------------------------------------------------------------------------- leaves
def _leaf_in_place(scene: Scene, match: re.Match[str]) -> Finding:
    target = next((target for target, _ in writes(scene, scene.statement)), None)
    name = root_of(target) if target is not None else ""
    code = instead(_unrecorded_update(scene, scene.place.text), scene.place.text)
    return Finding(
        "leaf-in-place",
        f"{scene.said} writes to {f'`{name}`' if name else 'a tensor'} in place, which is a leaf that requires a gradient: that "
        "cannot be recorded.",
        fix=f"Write it where nothing is recorded: {code}.",
        evidence={"name": name},
    )


def _not_a_leaf(scene: Scene, match: re.Match[str]) -> Finding:
    """An optimizer is given, or a flag is set of, a tensor that is computed from others."""
    non_leaves = [(text, one) for text, one in _listed_tensors(scene) if one.requires_grad and not one.is_leaf]
    name = non_leaves[0][0] if non_leaves else ""
    assignment = next((node for node in reversed(scene.scope) if name in bound(node) and node.lineno < scene.place.line), None)
    fix = "Give it the leaves from which it is computed."
    if assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
        fix = _asked_last(assignment, name)
    elif match[0].startswith("you can only change"):
        code = before(f"{name} = {name}.detach()", source_of(scene.statement)) if name else ""
        fix = f"For a copy without history: {code}." if code else "For a copy without history: detach()."
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
    code = _registered(scene, scene.value(models[0])) if models else ""
    return Finding(
        "stale-optimizer",
        f"{scene.said}: {what}. Layers in a plain list or made in forward are not found, and a generator gives its items once.",
        fix=f"Register them: {code}." if code else "Make layers in `__init__`, lists of them an `nn.ModuleList`.",
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
            _updated(scene, assignment, update),
        )
    if not tensor.requires_grad:
        return (
            "frozen",
            f"`{name}` does not require a gradient",
            None,
            _asked_before(scene, name),
        )
    if not tensor.is_leaf:
        fix = "Keep the name for the leaf, and give the result another one."
        if update:
            fix = _updated(scene, assignment, update)
        elif assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
            fix = _asked_last(assignment, name)
        where = f": {scene.quoted(assignment)} gave its name to a result" if assignment is not None else ""
        return "rebound-leaf", f"`{name}` is no leaf{where}", assignment.lineno if assignment is not None and own else None, fix
    sweeps = [node for node in earlier if call_of(node, "backward")]
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


# ---------------------------------------------------------------------------------------------------------------- advice
def _unrecorded_update(scene: Scene, text: str) -> str:
    return f"with {scene.alias}.no_grad(): {text}"


def _updated(scene: Scene, assignment: Any, update: str) -> str:
    """A step by hand that keeps the leaf."""
    update = cleared(update, "\n".join(line for step in scene.steps for line in step.place.lines))
    return f"Update the leaf itself: {instead(_unrecorded_update(scene, update), source_of(assignment))}."


def _asked_last(assignment: ast.Assign, name: str) -> str:
    """A leaf that is asked for its gradient when it is whole."""
    return f"Ask for the gradient last: {instead(f'{name} = {move_request_last(assignment.value)}', source_of(assignment))}."


def _asked_before(scene: Scene, name: str) -> str:
    """A leaf that is asked for its gradient before it is first read."""
    node = next((node for node in scene.scope if name in read(node)), None)
    code = before(f"{name}.requires_grad_()", source_of(node)) if isinstance(node, (ast.Assign, ast.Expr)) else ""
    return f"Ask for it before the loss is computed: {code}." if code else "Ask for it before the loss is computed."


def _registered(scene: Scene, model: Any) -> str:
    """The list in which a model holds its layers, as an `nn.ModuleList`."""
    kinds = {"list": ("ModuleList", (ast.List, ast.ListComp)), "dict": ("ModuleDict", (ast.Dict, ast.DictComp))}
    for attribute, kept in vars(model).items() if model is not None else ():
        held, nodes = kinds.get(type(kept).__name__, ("", ()))
        items = list(kept.values()) if isinstance(kept, dict) else kept if isinstance(kept, list) else []
        if attribute.startswith("_") or not held or not any(hasattr(type(one), "named_parameters") for one in items):
            continue
        for program in scene.programs.values():
            for node in program.statements:
                if (
                    isinstance(node, ast.Assign)
                    and source_of(node.targets[0]) == f"self.{attribute}"
                    and isinstance(node.value, nodes)
                ):
                    return instead(f"self.{attribute} = nn.{held}({source_of(node.value)})", source_of(node))
    return ""


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
    (r"through the graph a second time|have already been freed", freed),
    (NO_HISTORY, lost_history),
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
