"""Explain errors about graphs and gradients: the cause in the user's source, from the message and the traceback.

The messages of gradlab and PyTorch are matched by `RULES`. The frames of the traceback have the line and the values of names. If
several statements can be the cause, all of them are listed. Fixes are worded as in gradlab's own errors (`diagnose.autopsy`,
`diagnose.history_loss`).
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
from gradlab.explore.doctor.context.code_edits import before, clear_gradient_after, instead
from gradlab.explore.doctor.context.program import bound_names, read_names, root_of
from gradlab.explore.doctor.context.scene import Scene, numbers_in
from gradlab.explore.doctor.errors.freed_graphs import explain_freed, find_call
from gradlab.explore.doctor.errors.lost_history import NO_HISTORY, explain_lost_history
from gradlab.explore.doctor.errors.mismatches import MISMATCH_RULES
from gradlab.explore.doctor.errors.tuples import explain_tuple
from gradlab.explore.doctor.errors.writes import explain_out_argument, explain_write, find_writes
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check, declare
from gradlab.explore.libraries import library_of

WORTH, WORTH_IF_RECORDED = 9.0, 8.0  # the checks of a recorded run may know the cause


declare(
    "not-scalar",
    meaning="`backward()` is called on a tensor of several elements, without a weight for each element.",
    why="""
        `backward()` computes the gradient of one number. A tensor `y` of several elements needs weights `v`: `y.backward(v)`
        computes the gradient of `(v * y).sum()`. Without them it raises "grad can be implicitly created only for scalar outputs".
    """,
    remedy="""
        Reduce the tensor to one number, usually with `.mean()` or `.sum()`. Or pass the weights:
        `y.backward(torch.ones_like(y))` computes the gradient of the sum.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y, reduction="none")
            loss.backward()  #!
            optimizer.step()
    """,
    healthy={"loss.backward()": "loss.mean().backward()"},
)

declare(
    "leaf-in-place",
    meaning="A leaf that requires a gradient is modified in place while operations are recorded.",
    why="""
        A recorded write would turn the leaf into a result, and `backward()` stores gradients only in the `.grad` of leaves.
        So PyTorch raises "a leaf Variable that requires grad is being used in an in-place operation".
    """,
    remedy="""
        Modify parameters inside `with torch.no_grad():`. For updates use an optimizer, for initial values the functions of
        `torch.nn.init`.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        for step in range(20):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            w -= 0.1 * w.grad  #!
            w.grad = None
    """,
    healthy="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        for step in range(20):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
    """,
)

declare(
    "not-a-leaf",
    meaning="An optimizer gets a tensor that is computed from other tensors, or `requires_grad` of such a tensor is set.",
    why="""
        `backward()` stores gradients only in leaves: tensors that no recorded operation computed. A result has no `.grad` for an
        optimizer, and a step on it would not change the leaves behind it. A common cause is an operation after
        `requires_grad=True`, as in `torch.randn(3, requires_grad=True) * 0.1`.
    """,
    remedy="""
        Give the optimizer the leaves, and compute the result again in each step. If the tensor itself should be the leaf, set
        `requires_grad` last: `w = (torch.randn(3) * 0.1).requires_grad_()`. To stop the gradient at a result, use `detach()`.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
        model.requires_grad_(False)
        noise = torch.randn(1, 3, 8, 8, requires_grad=True)
        image = torch.sigmoid(noise)  #!
        optimizer = torch.optim.Adam([image], lr=0.05)
        for step in range(20):
            optimizer.zero_grad()
            loss = -model(image)[0, 3]
            loss.backward()
            optimizer.step()
    """,
    healthy="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
        model.requires_grad_(False)
        noise = torch.randn(1, 3, 8, 8, requires_grad=True)
        optimizer = torch.optim.Adam([noise], lr=0.05)
        for step in range(20):
            optimizer.zero_grad()
            image = torch.sigmoid(noise)
            loss = -model(image)[0, 3]
            loss.backward()
            optimizer.step()
    """,
)


@check(
    "not-scalar",
    "leaf-in-place",
    "not-a-leaf",
    "freed",
    "in-place",
    "no-history",
    "detached",
    "item",
    "numpy",
    "no_grad",
    "checkpoint-without-grad",
    "integer",
    "non-differentiable",
    "re-wrapped",
    "frozen",
    "unused-leaf",
    "no-gradient",
    "rebound-leaf",
    "stale-optimizer",
    "shape",
    "dtype",
    "device",
    "target",
    looks_at=ERROR,
)
def explain_graph_errors(case: Case) -> Iterable[Finding]:
    """Explain the error that ended a run."""
    scene = case.scene
    if scene is None or not scene.frames:
        return
    message = str(scene.error)
    for pattern, explain in RULES:
        if (match := re.search(pattern, message, re.IGNORECASE)) is not None:
            if explain is explain_lost_history and case.trace is not None:
                return  # the checks of cuts explain it
            finding = explain(scene, match)
            if finding is not None:
                yield replace(finding, line=finding.line or scene.line, worth=WORTH if case.trace is None else WORTH_IF_RECORDED)
            return
    for finding in explain_tuple(scene):
        yield finding
        return
    yield from _explain_missing_grad(scene)


# -------------------------------------------------------------------------------------------------------- backward(), grad()
def _explain_not_scalar(scene: Scene, match: re.Match[str]) -> Finding:
    name = receiver(scene.place, "backward")
    shape = _shape(scene, name)
    what = f"`{name}`" if name else "the tensor"
    size = f"shape {shape}" if shape else "several elements"
    call = scene.node if isinstance(scene.node, ast.Call) and name else None
    codes = [scene.replace(f"{name}.{new}.backward()", call) for new in ("mean()", "sum()") if call]
    fix = (
        f"Use its mean, {codes[0]}, or its sum, {codes[1]}."
        if all(codes) and codes
        else "Use its mean or its sum, or pass a weight for each element: grad_outputs."
    )
    return Finding(
        "not-scalar",
        f"{scene.code}: {what} has {size}, and backward() differentiates a single number.",
        fix=fix,
        evidence={"shape": shape},
    )


def _explain_weights(scene: Scene, match: re.Match[str]) -> Finding:
    name = receiver(scene.place, "backward")
    sizes, wanted = numbers_in(match[1]), numbers_in(match[2])
    call = scene.node if isinstance(scene.node, ast.Call) else None
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "gradient")] if call is not None and name else []
    code = scene.replace(scene.ones(name), given[0]) if given else ""
    return Finding(
        "shape",
        f"{scene.code}: the weights have shape {sizes}, and {f'`{name}`' if name else 'the output'} has shape {wanted}.",
        fix=f"Give all elements the same weight: {code}." if code else "Pass weights of that shape.",
        evidence={"weights": sizes, "output": wanted},
    )


def _explain_grad_shape(scene: Scene, match: re.Match[str]) -> Finding:
    statement = scene.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = source_of(target.value) if isinstance(target, ast.Attribute) else ""
    value = source_of(statement.value) if name else ""
    sizes, wanted = numbers_in(match[1]), numbers_in(match[2])
    spread = _broadcasts_to(sizes, wanted)
    code = (
        instead(f"{name}.grad = {parenthesize(statement.value)}.expand_as({name}).clone()", source_of(statement)) if name else ""
    )
    fix = f"A .grad has the shape of its tensor: reduce or reshape `{value}` to {wanted}." if name else ""
    fix = f"Give it the shape of its tensor: {code}." if code and spread else fix
    return Finding(
        "shape",
        f"{scene.code} assigns a gradient of shape {sizes} to a tensor of shape {wanted}.",
        fix=fix,
        evidence={"gradient": sizes, "tensor": wanted},
    )


def _explain_unused(scene: Scene, match: re.Match[str]) -> Finding:
    index = int(match["index"] or 0) if "index" in match.groupdict() else 0
    name = _input_code(scene, index)
    what = f"`{name}`" if name else f"input number {index}"
    return Finding(
        "unused-leaf",
        f"{scene.code} differentiates with respect to {what}, and the output was not computed from it.",
        fix="Pass the tensor from which the output was computed: after x = x + 0, the name x refers to another tensor. With "
        "allow_unused=True the gradient is None.",
        evidence={"name": name},
    )


def _explain_frozen_input(scene: Scene, match: re.Match[str]) -> Finding:
    index = next((i for i in range(8) if (one := _input_value(scene, i)) is not None and not one.requires_grad), 0)
    name = _input_code(scene, index)
    reader = next((node for node in scene.scope if name and root_of(ast.parse(name, mode="eval").body) in read_names(node)), None)
    code = before(f"{name}.requires_grad_()", source_of(reader)) if isinstance(reader, (ast.Assign, ast.Expr)) else ""
    advice = "Call requires_grad_() before the output is computed"
    fix = f"{advice}: {code}." if code else f"{advice}."
    return Finding(
        "frozen",
        f"{scene.code} differentiates with respect to {f'`{name}`' if name else 'a tensor'}, which does not require a gradient.",
        fix=fix,
        evidence={"name": name},
    )


def _grad_inputs(scene: Scene) -> list[Any]:
    """Return the expressions that a call of autograd.grad() in the failing statement differentiates with respect to."""
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


def _input_code(scene: Scene, index: int) -> str:
    inputs = _grad_inputs(scene)
    return source_of(inputs[index]) if index < len(inputs) else ""


def _input_value(scene: Scene, index: int) -> Any:
    inputs = _grad_inputs(scene)
    value = scene.value(inputs[index]) if index < len(inputs) else None
    return value if library_of(value) is not None else None


# -------------------------------------------------------------------------------------------------------------- leaves
def _explain_leaf_write(scene: Scene, match: re.Match[str]) -> Finding:
    target = next((target for target, _ in find_writes(scene, scene.statement)), None)
    name = root_of(target) if target is not None else ""
    code = instead(_under_no_grad(scene, scene.place.text), scene.place.text)
    return Finding(
        "leaf-in-place",
        f"{scene.code} modifies {f'`{name}`' if name else 'a tensor'} in place, a leaf that requires a gradient. This cannot be "
        "recorded.",
        fix=f"Do it under no_grad(): {code}.",
        evidence={"name": name},
    )


def _explain_not_a_leaf(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain that an optimizer got a result instead of a leaf, or that `requires_grad` of a result was set."""
    non_leaves = [(text, one) for text, one in _tensors_in_statement(scene) if one.requires_grad and not one.is_leaf]
    name = non_leaves[0][0] if non_leaves else ""
    assignment = next(
        (node for node in reversed(scene.scope) if name in bound_names(node) and node.lineno < scene.place.line), None
    )
    fix = "Pass the leaves from which it is computed, and compute it again in each step."
    if assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
        fix = _request_last_fix(assignment, name)
    elif match[0].startswith("you can only change"):
        code = before(f"{name} = {name}.detach()", source_of(scene.statement)) if name else ""
        fix = f"For a copy without history: {code}." if code else "For a copy without history: detach()."
    where = f" ({scene.quote(assignment)})" if assignment is not None else ""
    return Finding(
        "not-a-leaf",
        f"{scene.code}: {f'`{name}`' if name else 'the tensor'} is not a leaf, but computed from other tensors{where}.",
        assignment.lineno if assignment is not None and scene.place.filename == scene.file else None,
        fix=fix,
        evidence={"name": name},
        lines=() if scene.line is None else (scene.line,),
    )


def _tensors_in_statement(scene: Scene) -> list[tuple[str, Any]]:
    """Return the code and the value of the tensors in the failing statement, also of items of lists and of its target."""
    named = scene.tensors(scene.statement)
    for node in ast.walk(scene.statement) if scene.statement is not None else ():
        value: Any = scene.value(node) if isinstance(node, ast.Name) else None
        if type(value) in (list, tuple):
            named += [(f"{source_of(node)}[{i}]", one) for i, one in enumerate(value[:100]) if library_of(one) is not None]
    statement = scene.statement
    target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Attribute):
        target = target.value
        named += [(source_of(target), scene.value(target))] * (library_of(scene.value(target)) is not None)
    return named


def _explain_empty_optimizer(scene: Scene, match: re.Match[str]) -> Finding:
    models = [
        source_of(node.func.value)
        for node in ast.walk(scene.statement or ast.Pass())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters"
    ]
    what = f"`{models[0]}` has no parameters" if models else "the list of parameters is empty"
    code = _registration_edit(scene, scene.value(models[0])) if models else ""
    return Finding(
        "stale-optimizer",
        f"{scene.code}: {what}. Layers in a plain list or created in forward() are not registered, and a generator yields its "
        "items once.",
        fix=f"Register them: {code}." if code else "Create layers in `__init__`, and put a list of them in an `nn.ModuleList`.",
        evidence={"models": models},
    )


def _explain_missing_grad(scene: Scene) -> Iterable[Finding]:
    """Explain an error about None if the statement uses a `.grad` that is None."""
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
        kind, why, line, fix = _reason_for_none(scene, name, tensor)
        yield Finding(
            kind,
            f"{scene.code} uses `{name}.grad`, which is None: {why}.",
            line or scene.line,
            fix=fix,
            evidence={"name": name},
            worth=WORTH,
            lines=() if scene.line is None else (scene.line,),
        )
        return


def _reason_for_none(scene: Scene, name: str, tensor: Any) -> tuple[str, str, int | None, str]:
    """Return why `.grad` of a tensor is None: the kind of finding, the reason, its line, and the fix."""
    earlier = [node for node in scene.scope if node.lineno < scene.place.line or scene.loop is not None]
    own = scene.place.filename == scene.file
    assignment = next(
        (node for node in reversed(earlier) if name in bound_names(node)),
        scene.statement if name in bound_names(scene.statement) else None,
    )
    update = as_update(assignment, name) if isinstance(assignment, ast.Assign) else ""
    if not tensor.requires_grad and assignment is not None and update:
        return (
            "rebound-leaf",
            f"{scene.quote(assignment)} assigns a new tensor without history to the name",
            assignment.lineno if own else None,
            _update_fix(scene, assignment, update),
        )
    if not tensor.requires_grad:
        return (
            "frozen",
            f"`{name}` does not require a gradient",
            None,
            _request_before_fix(scene, name),
        )
    if not tensor.is_leaf:
        fix = "Keep the name for the leaf, and assign the result to another one."
        if update:
            fix = _update_fix(scene, assignment, update)
        elif assignment is not None and requires_grad_inside(assignment) and isinstance(assignment, ast.Assign):
            fix = _request_last_fix(assignment, name)
        where = f", because {scene.quote(assignment)} assigns a result to the name" if assignment is not None else ""
        return (
            "rebound-leaf",
            f"`{name}` is not a leaf{where}",
            assignment.lineno if assignment is not None and own else None,
            fix,
        )
    sweeps = [node for node in earlier if find_call(node, "backward")]
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
        why = f"{scene.quote(cleared[-1])} cleared it"
        return "no-gradient", why, line if own else None, f"Clear it after line {scene.place.line}."
    why = f"{scene.quote(sweeps[-1])} did not reach `{name}`"
    return "unused-leaf", why, None, f"Compute the loss from `{name}` too, or leave it out of the update."


# ---------------------------------------------------------------------------------------------------------------- advice
def _under_no_grad(scene: Scene, text: str) -> str:
    return f"with {scene.alias}.no_grad(): {text}"


def _update_fix(scene: Scene, assignment: Any, update: str) -> str:
    """Return the advice to write a step into the leaf."""
    update = clear_gradient_after(update, "\n".join(line for frame in scene.frames for line in frame.place.lines))
    return f"Write into the leaf: {instead(_under_no_grad(scene, update), source_of(assignment))}."


def _request_last_fix(assignment: ast.Assign, name: str) -> str:
    """Return the advice to set `requires_grad` after the last operation."""
    return f"Call requires_grad_() last: {instead(f'{name} = {move_request_last(assignment.value)}', source_of(assignment))}."


def _request_before_fix(scene: Scene, name: str) -> str:
    """Return the advice to set `requires_grad` before a tensor is first used."""
    node = next((node for node in scene.scope if name in read_names(node)), None)
    code = before(f"{name}.requires_grad_()", source_of(node)) if isinstance(node, (ast.Assign, ast.Expr)) else ""
    advice = "Call requires_grad_() before the loss is computed"
    return f"{advice}: {code}." if code else f"{advice}."


def _registration_edit(scene: Scene, model: Any) -> str:
    """Return the edit that makes a model's plain list of layers an `nn.ModuleList`, or a dict an `nn.ModuleDict`."""
    kinds = {"list": ("ModuleList", (ast.List, ast.ListComp)), "dict": ("ModuleDict", (ast.Dict, ast.DictComp))}
    for attribute, value in vars(model).items() if model is not None else ():
        container, nodes = kinds.get(type(value).__name__, ("", ()))
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        if attribute.startswith("_") or not container or not any(hasattr(type(one), "named_parameters") for one in items):
            continue
        for program in scene.programs.values():
            for node in program.statements:
                if (
                    isinstance(node, ast.Assign)
                    and source_of(node.targets[0]) == f"self.{attribute}"
                    and isinstance(node.value, nodes)
                ):
                    return instead(f"self.{attribute} = nn.{container}({source_of(node.value)})", source_of(node))
    return ""


# ---------------------------------------------------------------------------------------------------------------- pieces
def _shape(scene: Scene, name: str) -> list[int] | None:
    value = scene.value(name) if name else None
    if value is not None and library_of(value) is not None:
        return list(value.shape)
    match = re.search(r"This one has shape (\[[\d, ]*\])", str(scene.error))
    return numbers_in(match[1]) if match else None


def _broadcasts_to(shape: list[int], wanted: list[int]) -> bool:
    """Return whether a shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)


SIZE = r"(?:torch\.Size\(|\w+\.Size\()?(\[[\d, ]*\])\)?"
TENSOR = r"\[\S+ (?P<shape>\[[\d, ]*\])\](?:, which is output \d+ of (?P<made>\w+?)(?:Backward\d*)?,)?"
RULES: list[tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]] = [
    (rf"modified by an inplace operation: {TENSOR} is at", explain_write),
    (r"functions with out=\.\.\. arguments don't support automatic differentiation", explain_out_argument),
    (r"through the graph a second time|have already been freed", explain_freed),
    (NO_HISTORY, explain_lost_history),
    (r"implicitly created only for scalar outputs", _explain_not_scalar),
    (rf"Mismatch in shape: grad_output\[\d+\] has a shape of {SIZE} and output\[\d+\] has a shape of {SIZE}", _explain_weights),
    (r"assign a gradient of size '(\[[\d, ]*\])' to a tensor of size '(\[[\d, ]*\])'", _explain_grad_shape),
    (
        r"(?:differentiated Tensor at index (?P<index>\d+)|One of the differentiated Tensors) appears to not have been used",
        _explain_unused,
    ),
    (r"One of the differentiated Tensors does not require grad", _explain_frozen_input),
    (r"leaf Variable that requires grad (?:is being|has been) used in an in-place operation", _explain_leaf_write),
    (r"can't optimize a non-leaf Tensor|you can only change requires_grad flags of leaf", _explain_not_a_leaf),
    (r"optimizer got an empty parameter list", _explain_empty_optimizer),
    *MISMATCH_RULES,
]
