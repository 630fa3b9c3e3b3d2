"""Explain backward() of a tensor without history: find the statement that cut it, in the source and the values of names.

The search starts at the statement that computed the loss and goes back to the statements that computed its operands. The history
ends at a statement with an operand that has a history and a result that has none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradlab.diagnose.history_loss import CHECKPOINT, HISTORY_LOSSES, LOSS_FAMILIES
from gradlab.diagnose.source_locations import clip, receiver, source_of
from gradlab.explore.doctor.context.case import join_names
from gradlab.explore.doctor.context.checkpoint_calls import is_checkpoint, without_reentry
from gradlab.explore.doctor.context.code_edits import argument, before, instead, parenthesize
from gradlab.explore.doctor.context.grad_switches import Switch, enclosing_switch, last_switch
from gradlab.explore.doctor.context.program import bound_names, read_names
from gradlab.explore.doctor.context.scene import Scene, dtype_of, is_float
from gradlab.explore.doctor.findings import Finding, join, sentence
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of

NO_HISTORY = r"does not require grad and does not have a grad_fn"
MAX_STATEMENTS = 200  # visited on the way back
CUTTING_METHODS = {
    "detach": "detach", "detach_": "detach", "item": "item()", "tolist": "tolist()", "numpy": "numpy()",
    "argmax": "position", "argmin": "position", "argsort": "position", "long": "cast", "int": "cast", "bool": "cast",
    "tensor": "tensor()", "as_tensor": "tensor()", "from_numpy": "tensor()", "Parameter": "Parameter()",
    "eq": "comparison", "ne": "comparison", "gt": "comparison", "lt": "comparison", "ge": "comparison", "le": "comparison",
}  # fmt: skip
CUTTING_FUNCTIONS = {"float": "__float__()", "int": "__int__()"}
CREATING_FUNCTIONS = (
    "rand", "randn", "zeros", "ones", "full", "tensor", "empty", "eye", "linspace", "logspace", "arange", "randint", "randperm",
    "rand_like", "randn_like", "zeros_like", "ones_like", "full_like", "empty_like",
)  # fmt: skip
MAX_LEAVES = 3  # listed in a message


declare(
    "no-history",
    meaning="`backward()` is called on a tensor without history, and the operation that cut the history is not known.",
    why="""
        `backward()` follows the recorded operations from a tensor back to the leaves. A tensor without history has none, so it
        raises "element 0 of tensors does not require grad and does not have a grad_fn". The run was not recorded, and the source
        does not show the cut.
    """,
    remedy="""
        Look for `detach()`, `.data`, `item()`, `no_grad()` or a conversion to NumPy where the tensor is computed. Or record the
        run (`%%doctor` in a notebook, `gradlab doctor` for a script): the finding then names the line of the cut.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @torch.no_grad()
        def evaluate():
            return F.mse_loss(model(x), y)

        def update(loss):
            optimizer.zero_grad()
            loss.backward()  #!
            optimizer.step()

        update(evaluate())
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @torch.no_grad()
        def evaluate():
            return F.mse_loss(model(x), y)

        def update(loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        update(F.mse_loss(model(x), y))
        evaluate()
    """,
)


def explain_lost_history(scene: Scene, match: re.Match[str] | None = None) -> Finding | None:
    """Explain a backward() call on a tensor without history."""
    name = receiver(scene.place, "backward")
    start = _find_assignment(scene, name, scene.place.line) if name.isidentifier() else scene.statement
    for node in _walk_back(scene, start):
        operands = [one for one in _operands(scene, node) if _requires_grad(one[1])]
        if operands and not any(_requires_grad(scene.names.get(one)) for one in bound_names(node) if one != name):
            return _cut_finding(scene, name, node, operands)
    for node in _walk_back(scene, start):
        switch = _explain_switch(scene, name, node)
        if switch is not None:
            return switch
    if start is None and name:
        return Finding(
            "no-history",
            f"{scene.code}: `{name}` has no history. It was computed elsewhere, and the line of the cut is not known.",
            evidence={"name": name},
        )
    return _frozen_finding(scene, name, start)


def explain_missing_requires_grad(scene: Scene | None) -> Finding | None:
    """Explain a failed backward() in a recorded cell if no leaf requires a gradient; otherwise return None."""
    if scene is None or re.search(NO_HISTORY, str(scene.error)) is None:
        return None
    finding = explain_lost_history(scene)
    if finding is None or finding.kind != "frozen" or finding.evidence.get("models"):
        return None
    return replace(finding, line=finding.line or scene.line, evidence={"modules": []})


def _requires_grad(value: Any) -> bool:
    """Return whether results computed from a value have a history: a tensor that requires grad, a model with such a parameter."""
    if library_of(value) is not None:
        return bool(value.requires_grad)
    if type(value) in (list, tuple):
        return any(_requires_grad(one) for one in value[:1000])
    if not isinstance(value, type) and callable(getattr(type(value), "named_parameters", None)):
        return any(one.requires_grad for _, one in value.named_parameters())
    return False


def _find_assignment(scene: Scene, name: str, before: int) -> Any:
    """Return the last statement before a line that assigns a name, or the last of all, as in a loop."""
    nodes = [node for node in scene.scope if name in bound_names(node)]
    return next((node for node in reversed(nodes) if node.lineno < before), nodes[-1] if nodes else None)


def _walk_back(scene: Scene, start: Any) -> Iterator[Any]:
    """Yield a statement and the statements that computed its operands, nearest first."""
    waiting: list[Any] = [start]
    seen: set[int] = set()
    while waiting and len(seen) < MAX_STATEMENTS:
        node = waiting.pop(0)
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting += [_find_assignment(scene, name, node.lineno) for name in sorted(read_names(node) - bound_names(node))]
        waiting += [_find_assignment(scene, name, node.lineno) for name in sorted(read_names(node) & bound_names(node))]


def _operands(scene: Scene, node: Any) -> list[tuple[str, Any]]:
    """Return the tensors and models that a statement reads: pairs (code, value)."""
    values: dict[str, Any] = {}
    longer: set[int] = set()
    for child in ast.walk(node):
        if isinstance(child, (ast.Name, ast.Attribute)) and id(child) not in longer and isinstance(child.ctx, ast.Load):
            if isinstance(child, ast.Attribute) and library_of(scene.value(child.value)) is not None:
                continue  # an attribute of a tensor: the tensor is the operand
            value = scene.value(child)
            if library_of(value) is not None or _requires_grad(value) or callable(getattr(type(value), "named_parameters", None)):
                values.setdefault(source_of(child), value)
                longer |= {id(part) for part in ast.walk(child)}
    return list(values.items())


def _cut_finding(scene: Scene, name: str, node: Any, operands: list[tuple[str, Any]]) -> Finding:
    """Return the finding on a statement whose operands have a history and whose result has none."""
    what = join_names([text for text, value in operands if library_of(value) is not None])
    what = what or f"the result of {join_names([text for text, _ in operands])}"
    at = f" on line {node.lineno}"
    part, how = _find_cut(scene, node, [text for text, _ in operands])
    if how is None and enclosing_switch(scene.program.tree, node.lineno) is None:
        part, how = _find_checkpoint(scene, node)
    own = scene.place.filename == scene.file
    lines = () if scene.line is None else (scene.line,)
    subject = f"`{name}`" if name else f"the tensor that `{scene.place.text}` differentiates"
    if how is None:
        switch = _explain_switch(scene, name, node)
        if switch is not None:
            return switch
        why = f"its operands have one ({what}), and its result has none"
        fix, kind = "Look for detach(), .data or no_grad() in the functions that it calls.", "no-history"
    else:
        explanation, advice = HISTORY_LOSSES[how]
        why = scene.spell(explanation.format(what=what, how=how))
        fix, kind = sentence(scene.spell(advice.format(at=at))), LOSS_FAMILIES.get(how, "non-differentiable")
        edit = _history_edit(scene, part, how)
        fix = f"{fix[:-1]}: {edit}." if edit else fix
    return Finding(
        kind,
        f"{subject} has no history, so {scene.code} cannot differentiate it. It ends at {scene.quote(node)}: {why}.",
        node.lineno if own else None,
        fix=fix,
        evidence={"name": name, "way": how or ""},
        lines=lines,
    )


def _history_edit(scene: Scene, part: Any, how: str) -> str:
    """Return the edit that keeps the history, or "" if it is not a single expression."""
    source = source_of(part) if part is not None else ""
    if how == CHECKPOINT and (call := without_reentry(part)) is not None:
        return instead(source_of(call), source)
    if how in ("detach", "data", "cast", "Parameter()"):
        return instead(argument(source), source)
    if how == "tensor()" and isinstance(part, ast.Call) and len(part.args) == 1:
        number = part.args[0]
        if isinstance(number, ast.Call) and isinstance(number.func, ast.Attribute) and number.func.attr == "item":
            return instead(source_of(number.func.value), source)
        given, value = source_of(part.args[0]), scene.value(part.args[0])
        if library_of(value) is not None:
            return instead(f"{parenthesize(given)}.clone()", source)
        if isinstance(value, (list, tuple)) and all(library_of(one) is not None for one in value):
            return instead(f"{scene.alias}.stack({given})", source)
    return ""


def _find_cut(scene: Scene, node: Any, operands: list[str]) -> tuple[Any, str | None]:
    """Return the expression that cuts the history of operands, and how, a key of `HISTORY_LOSSES`; (None, None) if the source
    does not show it."""
    for child in ast.walk(node):
        below = {source_of(part) for part in ast.walk(child) if isinstance(part, (ast.Name, ast.Attribute))}
        if not below & set(operands):
            continue
        if isinstance(child, ast.Attribute) and child.attr == "data" and source_of(child.value) in operands:
            return child, "data"
        if isinstance(child, ast.Compare):
            return child, "comparison"
        if isinstance(child, ast.Call):
            called = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
            root = scene.value(child.func.value) if isinstance(child.func, ast.Attribute) else None
            if root is sys.modules["numpy"]:
                return child, "numpy()"
            if isinstance(child.func, ast.Name) and called in CUTTING_FUNCTIONS:
                return child, CUTTING_FUNCTIONS[called]
            if called in CUTTING_METHODS:
                return child, CUTTING_METHODS[called]
    return None, None


def _find_checkpoint(scene: Scene, node: Any) -> tuple[Any, str | None]:
    """Return the call of a reentrant checkpoint none of whose arguments requires grad, and `CHECKPOINT`; else (None, None)."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or not is_checkpoint(scene.value(call.func)):
            continue
        given = {one.arg: one.value for one in call.keywords}
        reentrant = given.get("use_reentrant", ast.Constant(True))
        if None in given or not isinstance(reentrant, ast.Constant) or reentrant.value is not True:
            continue
        parts = [part for one in call.args[1:] for part in ast.walk(one) if isinstance(part, ast.expr)]
        if not any(_requires_grad(scene.value(part)) for part in parts):
            return call, CHECKPOINT
    return None, None


# ------------------------------------------------------------------------------------------------------------- grad modes
def _explain_switch(scene: Scene, name: str, node: Any) -> Finding | None:
    """Explain a lost history by gradients that are switched off: by a decorator or block around a statement or in a function that
    it calls, or by a call that is still in effect."""
    found = enclosing_switch(scene.program.tree, node.lineno)
    if found is not None:
        return _switch_finding(scene, name, node, found, scene.place.filename, "")
    if not scene.is_recording:
        last = last_switch({file: program.tree for file, program in scene.programs.items()})
        if last is not None:
            return _switch_finding(scene, name, node, last[1], last[0], "")
        return Finding(
            "no_grad",
            f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.code} cannot differentiate it: gradients are "
            "switched off by a set_grad_enabled(False) that is still in effect.",
            fix="Call set_grad_enabled(True) before the loss is computed.",
            evidence={"name": name},
        )
    inside = []
    for file, function in scene.called_functions(node):
        tree = scene.programs[file].tree
        for line in [
            one.lineno for one in scene.statements_of(function) if isinstance(one, ast.Return) and one.value is not None
        ]:
            switch = enclosing_switch(tree, line)
            if switch is not None and function.lineno <= switch.holder.lineno:
                inside.append((file, switch, function.name))
        inside += [(file, block, function.name) for block in _blocks_behind_return(scene, function)]
    unique = {(file, switch.line): (file, switch, function) for file, switch, function in inside}
    if len(unique) != 1:
        return None
    ((file, switch, function),) = unique.values()
    return _switch_finding(scene, name, node, switch, file, function)


def _blocks_behind_return(scene: Scene, function: Any) -> Iterator[Switch]:
    """Yield the blocks without gradients in which a function assigns a name that it returns."""
    body = scene.statements_of(function)
    returned = {one.value.id for one in body if isinstance(one, ast.Return) and isinstance(one.value, ast.Name)}
    for name in returned:
        last = [one for one in body if name in bound_names(one)]
        switch = enclosing_switch(ast.Module([function], []), last[-1].lineno) if last else None
        if switch is not None and switch.how == "block":
            yield switch


def _switch_finding(scene: Scene, name: str, node: Any, switch: Switch, file: str, function: str) -> Finding:
    """Return the finding on a statement that ran while `switch` had switched gradients off."""
    place = scene.location(switch.node, file)
    where = scene.on_line(place).strip()
    own = file == scene.file
    by = f"`{function}` runs under `{switch.text}` {where}" if function else f"it is computed under `{switch.text}` {where}"
    if switch.how == "call":
        by = f"gradients are switched off by `{switch.text}` {where}"
    line = switch.line if own and switch.how != "block" else node.lineno if scene.place.filename == scene.file else None
    further = [one for one in (node.lineno, switch.line if own else None, scene.line) if one is not None and one != line]
    return Finding(
        "no_grad",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.code} cannot differentiate it. It ends at "
        f"{scene.quote(node)}: {by}.",
        line,
        fix=switch.removal_advice(where),
        evidence={"name": name, "way": switch.mode},
        lines=tuple(dict.fromkeys(further)),
    )


# --------------------------------------------------------------------------------------------- no leaf requires a gradient
def _frozen_finding(scene: Scene, name: str, start: Any) -> Finding:
    """Return the finding on a loss of which no leaf requires a gradient."""
    models: dict[str, Any] = {}
    leaves: dict[str, Any] = {}
    readers: dict[str, Any] = {}
    for node in _walk_back(scene, start):
        for text, value in _operands(scene, node):
            if text not in readers or node.lineno < readers[text].lineno:
                readers[text] = node
            if library_of(value) is None:
                models.setdefault(text, value)
            elif value.is_leaf and not dtype_of(value).startswith(("bool", "complex")):
                leaves.setdefault(text, value)
    own = scene.value(name) if name else None
    if library_of(own) is not None and not leaves and not models:
        return _leaf_finding(scene, name, own, start)
    frozen = [text for text, model in models.items() if any(True for _ in model.named_parameters())]
    inputs = [text for text in leaves if not any(text in bound_names(node) and _operands(scene, node) for node in scene.scope)]
    floats = [text for text in inputs if is_float(leaves[text])]
    inputs = floats or inputs
    first = next((readers[text] for text in [*frozen, *inputs]), start)
    line = first.lineno if first is not None and scene.place.filename == scene.file else None
    count = 0
    if frozen:
        count = sum(1 for text in frozen for _ in models[text].named_parameters())
        which = "the parameter" if count == 1 else f"all {count} parameters"
        why = f"{which} of {join_names(frozen)} {'has' if count == 1 else 'have'} requires_grad=False"
        code = before(f"{frozen[0]}.requires_grad_()", _first_line(readers[frozen[0]]))
        fix = (
            f"Call requires_grad_(): {code}."
            if code
            else f"Call requires_grad_() on the layers of `{frozen[0]}` that should learn."
        )
    else:
        each = [f"`{text}`{_creation_text(scene, text)}" for text in inputs[:MAX_LEAVES]]
        why = f"no tensor that it was computed from requires a gradient{f' ({join(each)})' if each else ''}"
        edits = [_request_edit(scene, text, leaves[text], readers[text]) for text in inputs[:MAX_LEAVES]]
        edits = [edit for edit in edits if edit]
        fix = f"Set requires_grad of the tensors that should learn: {', or '.join(edits)}." if edits else ""
        if inputs and not floats:
            why = f"it was computed from integers, which have no gradient ({join(each)})"
            fix = f"Use floating point, and set requires_grad: {', or '.join(edits)}." if edits else "Use floating point."
    return Finding(
        "frozen",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.code} cannot differentiate it: {why}.",
        line,
        fix=fix,
        evidence={"models": frozen, "leaves": inputs, **({"parameters": count} if count else {})},
        lines=() if scene.line is None else (scene.line,),
    )


def _leaf_finding(scene: Scene, name: str, value: Any, start: Any) -> Finding:
    """Return the finding on backward() of a tensor that was not computed from others."""
    integers = not is_float(value)
    shape = list(value.shape)
    by = _creation_text(scene, name)
    why = (
        f"it is a leaf{by} and does not require a gradient"
        if not integers
        else f"it is a leaf{by} of dtype {dtype_of(value)}, which has no gradient"
    )
    code = _request_edit(scene, name, value, start) if not shape else ""
    fix = f"Set requires_grad: {code}." if code else ""
    if shape:
        call = _creating_call(scene, name)
        flags = f"requires_grad=True and dtype={scene.alias}.float32" if integers else "requires_grad=True"
        where = f"Pass {flags} to `{source_of(call.func)}`" if call is not None else f"Create `{name}` with {flags}"
        fix = f"{where}, compute a loss of one number from `{name}`, and call backward() on the loss."
    own = scene.place.filename == scene.file
    return Finding(
        "frozen",
        f"{scene.code}: `{name}` has no history, because {why}.",
        start.lineno if own and start is not None else None,
        fix=fix,
        evidence={"name": name, "shape": shape},
        lines=() if scene.line is None else (scene.line,),
    )


def _creating_call(scene: Scene, name: str) -> Any:
    """Return the call that created a tensor, if it takes `requires_grad`; otherwise None."""
    node = _find_assignment(scene, name, scene.place.line) if name.isidentifier() else None
    value = node.value if isinstance(node, ast.Assign) and source_of(node.targets[0]) == name else None
    called = source_of(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return value if called in CREATING_FUNCTIONS else None


def _creation_text(scene: Scene, name: str) -> str:
    """Return " made by `torch.rand(3)` on line 1", or "" if the call is not known."""
    call = _creating_call(scene, name)
    return f" made by `{clip(source_of(call))}`{scene.on_line(scene.location(call))}" if call is not None else ""


def _request_edit(scene: Scene, name: str, value: Any, reader: Any) -> str:
    """Return the edit that sets `requires_grad` of a leaf: where it is created, or before its first use."""
    call = _creating_call(scene, name)
    if call is not None:
        keywords = [keyword for keyword in call.keywords if keyword.arg != "requires_grad"]
        if not is_float(value):
            dtype = ast.parse(f"{scene.alias}.float32", mode="eval").body
            keywords = [*(keyword for keyword in keywords if keyword.arg != "dtype"), ast.keyword("dtype", dtype)]
        keywords.append(ast.keyword("requires_grad", ast.Constant(True)))
        return instead(source_of(ast.Call(call.func, call.args, keywords)), source_of(call))
    if not is_float(value):
        return ""
    return before(f"{name}.requires_grad_()", _first_line(reader)) if reader is not None else ""


def _first_line(statement: Any) -> str:
    """Return the code of a statement for a fix; of one with a block its first line."""
    text = ast.unparse(statement)
    return text.partition("\n")[0] if getattr(statement, "body", None) else source_of(statement)
