"""Where a loss has lost its history, read off the source and the values that the names had: for an error, after the event.

From the statement that made the loss one goes back over what it read: at each name the value tells whether there is a history.
A statement that read something with a history and made something without one is where it ended.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gradlab.diagnose.history_loss import HISTORY_LOSSES, LOSS_FAMILIES
from gradlab.diagnose.source_locations import clip, receiver, source_of
from gradlab.explore.doctor.context.case import listed
from gradlab.explore.doctor.context.code_edits import argument, before, grouped, instead
from gradlab.explore.doctor.context.grad_switches import Switch, last_switch, off_around
from gradlab.explore.doctor.context.program import bound, read
from gradlab.explore.doctor.context.scene import Scene, dtype_of
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of

NO_HISTORY = r"does not require grad and does not have a grad_fn"
STEPS = 200  # statements that are gone back over
METHODS = {
    "detach": "detach", "detach_": "detach", "item": "item()", "tolist": "tolist()", "numpy": "numpy()",
    "argmax": "position", "argmin": "position", "argsort": "position", "long": "cast", "int": "cast", "bool": "cast",
    "tensor": "tensor()", "as_tensor": "tensor()", "from_numpy": "tensor()", "Parameter": "Parameter()",
    "eq": "comparison", "ne": "comparison", "gt": "comparison", "lt": "comparison", "ge": "comparison", "le": "comparison",
}  # fmt: skip
NUMBERS = {"float": "__float__()", "int": "__int__()"}
CREATORS = (
    "rand", "randn", "zeros", "ones", "full", "tensor", "empty", "eye", "linspace", "logspace", "arange", "randint", "randperm",
    "rand_like", "randn_like", "zeros_like", "ones_like", "full_like", "empty_like",
)  # fmt: skip
SHOWN = 3  # leaves that are named


declare(
    "no-history",
    meaning="backward() of a tensor without history",
    why="",
    remedy="",
    fault="",
    healthy="",
)


def lost_history(scene: Scene, match: re.Match[str] | None = None) -> Finding | None:
    """The finding on a sweep that was asked of something without history."""
    name = receiver(scene.place, "backward")
    start = _made(scene, name, scene.place.line) if name.isidentifier() else scene.statement
    for node in _back(scene, start):
        operands = [one for one in _read(scene, node) if carries(one[1])]
        if operands and not any(carries(scene.names.get(one)) for one in bound(node) if one != name):
            return _cut(scene, name, node, operands)
    for node in _back(scene, start):
        switch = _switched_off(scene, name, node)
        if switch is not None:
            return switch
    if start is None and name:
        return Finding(
            "no-history",
            f"{scene.said}: `{name}` has no history, and was computed elsewhere: what cut it off was not seen.",
            evidence={"name": name},
        )
    return _frozen(scene, name, start)


def nothing_asks(scene: Scene | None) -> Finding | None:
    """The finding on a failing sweep of a seen cell where no leaf requires a gradient; None where that is not the cause."""
    if scene is None or re.search(NO_HISTORY, str(scene.error)) is None:
        return None
    finding = lost_history(scene)
    if finding is None or finding.kind != "frozen" or finding.evidence.get("models"):
        return None
    return replace(finding, line=finding.line or scene.line, evidence={"modules": []})


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
    part, how = _way(scene, node, [text for text, _ in operands])
    own = scene.place.filename == scene.file
    lines = () if scene.line is None else (scene.line,)
    subject = f"what `{scene.place.text}` differentiates" if not name else f"`{name}`"
    if how is None:
        switch = _switched_off(scene, name, node)
        if switch is not None:
            return switch
        why = f"what it was given has one ({what})"
        fix, kind = "Look for detach(), .data or no_grad() in what it calls.", "no-history"
    else:
        told, advice = HISTORY_LOSSES[how]
        why = scene.spelled(told.format(what=what, how=how))
        fix, kind = sentence(scene.spelled(advice.format(at=at))), LOSS_FAMILIES.get(how, "non-differentiable")
        plain = _kept(scene, part, how)
        fix = f"{fix[:-1]}: {plain}." if plain else fix
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


def _kept(scene: Scene, part: Any, how: str) -> str:
    """What keeps the history, in place of what cut it off, where that is one expression."""
    source = source_of(part) if part is not None else ""
    if how in ("detach", "data", "cast", "Parameter()"):
        return instead(argument(source), source)
    if how == "tensor()" and isinstance(part, ast.Call) and len(part.args) == 1:
        number = part.args[0]
        if isinstance(number, ast.Call) and isinstance(number.func, ast.Attribute) and number.func.attr == "item":
            return instead(source_of(number.func.value), source)
        given, value = source_of(part.args[0]), scene.value(part.args[0])
        if library_of(value) is not None:
            return instead(f"{grouped(given)}.clone()", source)
        if isinstance(value, (list, tuple)) and all(library_of(one) is not None for one in value):
            return instead(f"{scene.alias}.stack({given})", source)
    return ""


def _way(scene: Scene, node: Any, operands: list[str]) -> tuple[Any, str | None]:
    """How a statement cut off what it was given, a key of `HISTORY_LOSSES`, and the part of it that did; None where the source
    does not tell."""
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
            if isinstance(child.func, ast.Name) and called in NUMBERS:
                return child, NUMBERS[called]
            if called in METHODS:
                return child, METHODS[called]
    return None, None


# ------------------------------------------------------------------------------------------------------------- grad modes
def _switched_off(scene: Scene, name: str, node: Any) -> Finding | None:
    """What switched gradients off for a statement: a decorator or block around it, one of a function that it calls, or a call
    that still holds."""
    found = off_around(scene.program.tree, node.lineno)
    if found is not None:
        return _off(scene, name, node, found, scene.place.filename, "")
    if not scene.graded:
        last = last_switch({file: program.tree for file, program in scene.programs.items()})
        if last is not None:
            return _off(scene, name, node, last[1], last[0], "")
        return Finding(
            "no_grad",
            f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.said} cannot differentiate it: gradients are "
            "switched off for all that runs, by a set_grad_enabled(False) that still holds.",
            fix="Switch them on before the loss is computed, by set_grad_enabled(True).",
            evidence={"name": name},
        )
    inside = []
    for file, function in scene.called_functions(node):
        tree = scene.programs[file].tree
        for line in [
            one.lineno for one in scene.statements_of(function) if isinstance(one, ast.Return) and one.value is not None
        ]:
            switch = off_around(tree, line)
            if switch is not None and function.lineno <= switch.holder.lineno:
                inside.append((file, switch, function.name))
        inside += [(file, made, function.name) for made in _returned_from_a_block(scene, function)]
    unique = {(file, switch.line): (file, switch, function) for file, switch, function in inside}
    if len(unique) != 1:
        return None
    ((file, switch, function),) = unique.values()
    return _off(scene, name, node, switch, file, function)


def _returned_from_a_block(scene: Scene, function: Any) -> Iterator[Switch]:
    """The blocks that switch gradients off and give its value to a name that a function returns."""
    body = scene.statements_of(function)
    returned = {one.value.id for one in body if isinstance(one, ast.Return) and isinstance(one.value, ast.Name)}
    for name in returned:
        last = [one for one in body if name in bound(one)]
        switch = off_around(ast.Module([function], []), last[-1].lineno) if last else None
        if switch is not None and switch.how == "block":
            yield switch


def _off(scene: Scene, name: str, node: Any, switch: Switch, file: str, function: str) -> Finding:
    place = scene.at(switch.node, file)
    where = scene.on(place).strip()
    own = file == scene.file
    by = f"`{function}` runs under `{switch.text}` {where}" if function else f"it is computed under `{switch.text}` {where}"
    if switch.how == "call":
        by = f"gradients are switched off by `{switch.text}` {where}"
    line = switch.line if own and switch.how != "block" else node.lineno if scene.place.filename == scene.file else None
    further = [one for one in (node.lineno, switch.line if own else None, scene.line) if one is not None and one != line]
    return Finding(
        "no_grad",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.said} cannot differentiate it. It ends at "
        f"{scene.quoted(node)}: {by}.",
        line,
        fix=switch.removed(where),
        evidence={"name": name, "way": switch.mode},
        lines=tuple(dict.fromkeys(further)),
    )


# ------------------------------------------------------------------------------------------------ nothing asks for a gradient
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
            elif value.is_leaf and not dtype_of(value).startswith(("bool", "complex")):
                leaves.setdefault(text, value)
    own = scene.value(name) if name else None
    if library_of(own) is not None and not leaves and not models:
        return _is_leaf(scene, name, own, start)
    still = [text for text, model in models.items() if any(True for _ in model.named_parameters())]
    computed = [text for text in leaves if not any(text in bound(node) and _read(scene, node) for node in scene.scope)]
    floats = [text for text in computed if _is_float(leaves[text])]
    computed = floats or computed
    first = next((readers[text] for text in [*still, *computed]), start)
    line = first.lineno if first is not None and scene.place.filename == scene.file else None
    whole = 0
    if still:
        whole = sum(1 for text in still for _ in models[text].named_parameters())
        which = "the parameter" if whole == 1 else f"all {whole} parameters"
        why = f"{which} of {listed(still)} {'has' if whole == 1 else 'have'} requires_grad=False"
        code = before(f"{still[0]}.requires_grad_()", _head(readers[still[0]]))
        fix = f"Switch on what is to learn: {code}." if code else f"Switch on what is to learn in `{still[0]}`."
    else:
        each = [f"`{text}`{_maker_of(scene, text)}" for text in computed[:SHOWN]]
        why = f"none of what it was computed from requires a gradient{f': {_and(each)}' if each else ''}"
        asks = [_ask(scene, text, leaves[text], readers[text]) for text in computed[:SHOWN]]
        codes = [ask for ask in asks if ask]
        fix = f"Ask for the gradient of what is to learn: {', or '.join(codes)}." if codes else ""
        if computed and not floats:
            why = f"it was computed from integers, which have no gradient: {_and(each)}"
            fix = f"Make it of floats, and ask for the gradient: {', or '.join(codes)}." if codes else "Make it of floats."
    return Finding(
        "frozen",
        f"{f'`{name}`' if name else 'The loss'} has no history, so {scene.said} cannot differentiate it: {why}.",
        line,
        fix=fix,
        evidence={"models": still, "leaves": computed, **({"parameters": whole} if whole else {})},
        lines=() if scene.line is None else (scene.line,),
    )


def _is_leaf(scene: Scene, name: str, value: Any, start: Any) -> Finding:
    """backward() of a tensor that was not computed from others."""
    integers = not _is_float(value)
    shape = list(value.shape)
    by = _maker_of(scene, name)
    why = (
        f"it is a leaf{by}, and does not require a gradient"
        if not integers
        else f"it is a leaf{by} of {dtype_of(value)}, which has no gradient"
    )
    code = _ask(scene, name, value, start) if not shape else ""
    fix = f"Ask for its gradient: {code}." if code else ""
    if shape:
        call = _creation(scene, name)
        asked = f"Give `{source_of(call.func)}` requires_grad=True" if call is not None else f"Ask for the gradient of `{name}`"
        dtype = f" and dtype={scene.alias}.float32" if integers else ""
        fix = f"{asked}{dtype}, compute a loss of one number from `{name}`, and call backward() on that."
    own = scene.place.filename == scene.file
    return Finding(
        "frozen",
        f"{scene.said}: `{name}` has no history: {why}.",
        start.lineno if own and start is not None else None,
        fix=fix,
        evidence={"name": name, "shape": shape},
        lines=() if scene.line is None else (scene.line,),
    )


def _is_float(tensor: Any) -> bool:
    return dtype_of(tensor).startswith(("float", "bfloat", "complex"))


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _creation(scene: Scene, name: str) -> Any:
    """The call that made a tensor, if it takes `requires_grad`."""
    node = _made(scene, name, scene.place.line) if name.isidentifier() else None
    value = node.value if isinstance(node, ast.Assign) and source_of(node.targets[0]) == name else None
    called = source_of(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return value if called in CREATORS else None


def _maker_of(scene: Scene, name: str) -> str:
    """ " made by `torch.rand(3)` on line 1", where that is known."""
    call = _creation(scene, name)
    return f" made by `{clip(source_of(call))}`{scene.on(scene.at(call))}" if call is not None else ""


def _ask(scene: Scene, name: str, value: Any, reader: Any) -> str:
    """Code that asks for the gradient of a leaf: where it is made, else before it is read."""
    call = _creation(scene, name)
    if call is not None:
        keywords = [keyword for keyword in call.keywords if keyword.arg != "requires_grad"]
        if not _is_float(value):
            dtype = ast.parse(f"{scene.alias}.float32", mode="eval").body
            keywords = [*(keyword for keyword in keywords if keyword.arg != "dtype"), ast.keyword("dtype", dtype)]
        keywords.append(ast.keyword("requires_grad", ast.Constant(True)))
        return instead(source_of(ast.Call(call.func, call.args, keywords)), source_of(call))
    if not _is_float(value):
        return ""
    return before(f"{name}.requires_grad_()", _head(reader)) if reader is not None else ""


def _head(statement: Any) -> str:
    """Return the code that names a statement in advice: the first line of one with a block."""
    text = ast.unparse(statement)
    return text.partition("\n")[0] if getattr(statement, "body", None) else source_of(statement)
