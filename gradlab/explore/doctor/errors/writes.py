"""Find the statement that wrote to a tensor that backward() needs: in-place methods, `+=`, items, `inplace=True`, `out=`, steps.

The message of the error has the shape of the tensor and the operation that computed it. The sources and the values of names give
the statements that can have written to it. If there are several, all are listed.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.grad_switches import enclosing_switch
from gradlab.explore.doctor.context.layer_sources import change_arguments
from gradlab.explore.doctor.context.program import bound_names, read_names
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_optimizer
from gradlab.explore.operations import lookup

MAX_WRITES = 4  # listed in a message
NOT_WRITES = (
    "requires_grad_",
    "zero_grad_",
    "share_memory_",
    "retain_grad_",
    "clip_grad_norm_",
    "clip_grad_value_",
)  # do not change values
VIEW_METHODS = (
    "view", "reshape", "t", "transpose", "flatten", "squeeze", "unsqueeze", "detach", "narrow", "select", "expand", "permute",
    "diagonal", "unflatten", "swapaxes", "movedim", "contiguous",
)  # fmt: skip
OPERATORS: dict[str, type[ast.operator]] = {
    "Add": ast.Add,
    "Sub": ast.Sub,
    "Mul": ast.Mult,
    "Div": ast.Div,
    "Pow": ast.Pow,
    "Mm": ast.MatMult,
}


declare(
    "in-place",
    meaning="A tensor that `backward()` needs was modified in place after an operation saved it.",
    why="""
        Operations save tensors for `backward()`: `tanh` its result, a product both factors. With other values in them the
        gradient would be wrong. So each tensor counts its writes, and `backward()` raises "one of the variables needed for
        gradient computation has been modified by an inplace operation".
    """,
    remedy="""
        Compute a new tensor: `h = h + 1` instead of `h += 1`, `relu()` instead of `relu_()`, `inplace=False`. Or write to a
        `clone()`. Call `optimizer.step()` only after every `backward()` that uses the weights.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        encoder, skip, head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)
        model = nn.ModuleList([encoder, skip, head])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            h = torch.tanh(encoder(x))
            h += skip(x)  #!
            loss = F.mse_loss(head(h), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"h += skip(x)": "h = h + skip(x)"},
)


@dataclass(frozen=True)
class Write:
    """A statement that can have written in place, or a layer.

    Attributes
    ----------
    node : statement or None
        None for a layer with `inplace=True`.
    code : str
        The statement in backticks with its line, or the layer.
    fix : str
    line : int or None
        The line in `Scene.file`.
    root : str
        The tensor that it writes to.
    """

    node: Any
    code: str
    fix: str
    line: int | None = None
    root: str = ""


def explain_write(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain that a saved tensor was modified in place."""
    shape, maker = [int(number) for number in re.findall(r"\d+", match["shape"])], match["made"] or ""
    by = f", the result of {maker}," if maker and not _is_view(maker) else ""
    what = f"a tensor of shape {shape}{by} that backward() needs"
    writers = _filter_by_maker(scene, _candidate_writes(scene, tuple(shape), maker), maker)
    evidence = {"shape": shape, "made by": maker}
    if len(writers) == 1:
        (one,) = writers
        return Finding(
            "in-place",
            f"{one.code} modifies {what}, before {scene.code} uses it.",
            one.line,
            fix=one.fix,
            evidence=evidence,
            lines=() if scene.line is None else (scene.line,),
        )
    listed = [one.code for one in writers][:MAX_WRITES]
    these = f"These write in place: {', '.join(listed)}." if listed else "The line that wrote to it is not known."
    return Finding(
        "in-place",
        f"{scene.code}: {what} was modified in place. {these}",
        fix="Write to a copy, or after backward().",
        evidence=evidence,
        lines=tuple(dict.fromkeys(one.line for one in writers if one.line is not None)),
    )


def explain_out_argument(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain that a recorded operation has an `out=` argument."""
    node, statement, code = scene.node, scene.statement, ""
    if isinstance(node, ast.Call):
        plain = source_of(ast.Call(node.func, node.args, [keyword for keyword in node.keywords if keyword.arg != "out"]))
        out = next((source_of(keyword.value) for keyword in node.keywords if keyword.arg == "out"), "")
        alone = isinstance(statement, ast.Expr) and statement.value is node
        code = instead(f"{out} = {plain}", source_of(statement)) if alone and out else scene.replace(plain, node)
    return Finding(
        "in-place",
        f"{scene.code} writes its result into an existing tensor, which cannot be differentiated.",
        fix=f"Assign the result to the name: {code}." if code else "Assign the result to a name, without out=.",
    )


# ----------------------------------------------------------------------------------------------------------- statements
def _candidate_writes(scene: Scene, shape: tuple[int, ...], maker: str) -> list[Write]:
    """Return the writes that can have modified a tensor of a shape.

    First those to a tensor of this shape in the functions of the traceback; if there are none, those in layers and functions that
    these call; if there are none, those to tensors of other shapes.
    """
    fitting: list[Write] = []
    others: list[Write] = []
    for number, frame in enumerate(reversed(scene.frames)):
        filename = frame.place.filename
        program = scene.programs.get(filename)
        if program is None:
            continue
        scope = scene.scope if number == 0 else scene.scope_of(program, frame.place)
        for node in scope:
            for target, part in find_writes(scene, node):
                root = _find_root(target)
                value = scene.value_in(frame.names, root)
                if is_optimizer(value):
                    shapes = [
                        tuple(p.shape) for group in value.param_groups for p in group["params"] if library_of(p) is not None
                    ]
                    if shape in shapes or shape[::-1] in shapes:
                        where = _on_line(scene, node, filename)
                        fix = f"Run every backward() before step(){where}, or compute the loss again after it."
                        fitting.append(_make_write(scene, node, filename, fix, root))
                elif library_of(value) is not None:
                    leaf = value.is_leaf and value.requires_grad
                    where = _on_line(scene, node, filename)
                    unrecorded = leaf or enclosing_switch(program.tree, node.lineno) is not None
                    fix = f"Run backward() before the write{where}, or compute the loss again after it." if unrecorded else ""
                    fix = fix or _replacement_fix(node, target, part, root, scope)
                    fits = tuple(value.shape) in (shape, shape[::-1])
                    (fitting if fits else others).append(_make_write(scene, node, filename, fix, root))
                elif value is None and isinstance(part, ast.Call) and _is_in_place_method(part):
                    fix = _replacement_fix(node, target, part, root, scope)
                    others.append(_make_write(scene, node, filename, fix, root))
    found = fitting or [*_writes_in_functions(scene), *_in_place_layers(scene, maker)] or others
    return list({(one.code, one.fix): one for one in found}.values())


def _make_write(scene: Scene, node: Any, filename: str, fix: str, root: Any) -> Write:
    return Write(
        node, scene.quote(node, filename), fix, node.lineno if filename == scene.file else None, source_of(root) if root else ""
    )


def _is_view(maker: str) -> bool:
    """Return whether an operation did not compute a tensor: another shape, order of axes or stride of the same memory."""
    properties = lookup(f"{maker}Backward0")
    return maker == "AsStrided" or (properties.moves == "layout" and not properties.elementwise)  # a clone is elementwise


def _on_line(scene: Scene, node: Any, filename: str) -> str:
    return scene.on_line(scene.location(node, filename))


def _filter_by_maker(scene: Scene, writers: list[Write], maker: str) -> list[Write]:
    """Return the writes to a result of the operation in the error's message, or all if the source shows none."""
    if len(writers) < 2 or not maker:
        return writers
    word, sign, kept = re.sub(r"\d+$", "", maker).lower(), OPERATORS.get(maker), []
    for one in writers:
        scope = [node for node in scene.scope if one.node is not None and node.lineno <= one.node.lineno]
        assignment = next((node for node in reversed(scope) if node is not one.node and one.root in bound_names(node)), None)
        parts = [*ast.walk(assignment or ast.Pass()), *ast.walk(one.node or ast.Pass())]
        named = any(
            isinstance(part, (ast.Attribute, ast.Name)) and word in source_of(part).rpartition(".")[2].lower() for part in parts
        )
        if named or (sign is not None and any(isinstance(part, ast.BinOp) and isinstance(part.op, sign) for part in parts)):
            kept.append(one)
    return kept or writers


def find_writes(scene: Scene, statement: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the targets that a statement writes to in place, and the part of it that writes: the statement or a call.

    Statements in its block are not included.
    """
    if isinstance(statement, ast.AugAssign):
        yield statement.target, statement
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            for one in target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,):
                if isinstance(one, ast.Subscript):
                    yield one, statement
    for call in _outer_calls(statement):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        function = isinstance(call.func, ast.Name) or scene.is_module(call.func.value)
        if name == "step" and not function:
            yield call.func.value, call
        elif name.endswith("_") and not name.startswith("_") and name not in NOT_WRITES:
            if not function:
                yield call.func.value, call
            elif call.args:
                yield call.args[0], call
        for keyword in call.keywords:
            on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg == "inplace" and on and call.args and not isinstance(call.args[0], ast.Constant):
                yield call.args[0], call
            elif keyword.arg == "out":
                yield keyword.value, call


def _outer_calls(statement: Any) -> Iterator[Any]:
    """Yield the calls in a statement, without those in its block; of a chain of in-place methods only the outermost."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    inner: set[int] = set()
    for _, field in ast.iter_fields(statement):
        for part in field if isinstance(field, list) else [field]:
            if isinstance(part, (ast.expr, ast.withitem)):
                for node in ast.walk(part):
                    if isinstance(node, ast.Call) and id(node) not in inner:
                        yield node
                        one: Any = node.func
                        while _is_in_place_method(node) and isinstance(one, (ast.Attribute, ast.Call, ast.Subscript)):
                            inner |= {id(one)} if isinstance(one, ast.Call) and _is_in_place_method(one) else set()
                            one = one.func if isinstance(one, ast.Call) else one.value


def _is_in_place_method(node: Any) -> bool:
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name.endswith("_") and not name.startswith("_") and name not in NOT_WRITES


def _find_root(target: Any) -> Any:
    """Return the tensor behind views and in-place methods: `h` for `h[0].view(-1).relu_()`."""
    while True:
        if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr in ("data", "T", "mT")):
            target = target.value
        elif _is_in_place_method(target) or (
            isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and target.func.attr in VIEW_METHODS
        ):
            target = target.func.value
        else:
            return target


# --------------------------------------------------------------------------------------------------------------- advice
def _replacement_fix(statement: Any, target: Any, part: Any, root: Any, scope: list[Any]) -> str:
    """Return the advice to replace a write to a saved tensor."""
    name = source_of(root) if isinstance(root, (ast.Name, ast.Attribute)) else ""
    text = source_of(statement) if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)) else ""
    text = f"if {source_of(statement.test)}:" if isinstance(statement, ast.If) else text
    cloned = before(f"{name} = {name}.clone()", text) if name else ""
    copied = f"Write to a copy: {cloned}." if cloned else "Write to a copy, or after backward()."
    if isinstance(part, ast.AugAssign):
        if source_of(part.target) != name:
            return copied
        value = source_of(ast.BinOp(part.target, part.op, part.value))  # type: ignore[arg-type]
        return f"Write {instead(f'{name} = {value}', text)}."
    if not isinstance(part, ast.Call):
        return copied
    alone = isinstance(statement, ast.Expr) and statement.value is part
    later = name and any(
        node is not statement and node.lineno > statement.lineno and _root_name(name) in read_names(node) for node in scope
    )
    new = _out_of_place_call(part)
    if new is None:
        return copied
    if alone:
        direct = source_of(_start_of_chain(target)) == name
        return f"Write {instead(f'{name} = {source_of(new)}', text)}." if direct and name else copied
    if later and name not in bound_names(statement):
        return copied
    return f"Write {instead(source_of(new), source_of(part))}."


def _root_name(name: str) -> str:
    """Return the first name of a path: "self" for "self.h"."""
    return name.partition(".")[0]


def _start_of_chain(target: Any) -> Any:
    while _is_in_place_method(target):
        target = target.func.value
    return target


def _out_of_place_call(call: ast.Call) -> ast.Call | None:
    """Return a call without its writes, `h.relu().mul(2)` for `h.relu_().mul_(2)`, or None if there is no such function."""
    new: Any = copy.deepcopy(call)
    new.keywords = [keyword for keyword in new.keywords if keyword.arg not in ("inplace", "out")]
    changed = len(new.keywords) != len(call.keywords)
    one = new
    while isinstance(one, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and _is_in_place_method(one):
            one.func.attr = one.func.attr[:-1]
            changed = True
            if not hasattr(Tensor, one.func.attr):
                return None
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id.endswith("_"):
            return None
        one = one.func if isinstance(one, ast.Call) else one.value
    return new if changed else None


# ------------------------------------------------------------------------------------------------------------ elsewhere
def _writes_in_functions(scene: Scene) -> Iterator[Write]:
    """Yield the writes in functions that the code calls."""
    for filename, function in scene.called_functions():
        body = scene.statements_of(function)
        for node in body:
            for target, part in find_writes(scene, node):
                root = _find_root(target)
                if _is_step(part) or not _may_be_tensor(scene, function, body, root):
                    continue
                yield _make_write(scene, node, filename, _replacement_fix(node, target, part, root, body), root)


def _may_be_tensor(scene: Scene, function: Any, body: list[Any], root: Any) -> bool:
    """Return whether the target of a write in a function can be a tensor with a history.

    A name cannot if the function first assigns a number, a list or a new tensor to it. An attribute of `self` can if a model has
    a tensor there.
    """
    if isinstance(root, ast.Attribute) and isinstance(root.value, ast.Name) and root.value.id == "self":
        owners = [module for model in scene.modules() for module in model.modules() if hasattr(type(module), function.name)]
        return any(library_of(vars(module).get(root.attr)) is not None for module in owners)
    for node in body:
        if isinstance(node, ast.Assign) and any(source_of(target) == source_of(root) for target in node.targets):
            value = node.value
            if isinstance(value, ast.Call):
                return source_of(value.func).rpartition(".")[2] not in (
                    "dict",
                    "list",
                    "zeros",
                    "empty",
                    "ones",
                    "full",
                    "defaultdict",
                )
            return not isinstance(value, (ast.List, ast.Dict, ast.Constant, ast.ListComp, ast.DictComp))
    own = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return not isinstance(root, ast.Name) or root.id in own or library_of(scene.value(root)) is not None


def _is_step(part: Any) -> bool:
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "step"


def _in_place_layers(scene: Scene, maker: str) -> Iterator[Write]:
    """Yield the layers with `inplace=True` that follow the operation in the error's message, or all such layers of the models."""
    found: list[tuple[Any, bool]] = []
    for value in scene.modules():
        for _, module in value.named_modules():
            previous = None
            for child in module.children():
                if getattr(child, "inplace", False) is True and not any(one is child for one, _ in found):
                    follows = maker.lower() in type(previous).__name__.lower() if maker and previous is not None else False
                    found.append((child, follows))
                previous = child
        if getattr(value, "inplace", False) is True and not any(one is value for one, _ in found):
            found.append((value, False))
    chosen = [one for one, follows in found if follows] or [one for one, _ in found]
    for module in chosen:
        path, kind = scene.path(module), type(module).__name__
        code = change_arguments(scene, module, path, inplace=False)
        fix = f"Let it return a new tensor: {code}." if code else f"Remove inplace=True from `{path}`."
        yield Write(None, f"`{path}` ({kind}, inplace=True)", fix)
