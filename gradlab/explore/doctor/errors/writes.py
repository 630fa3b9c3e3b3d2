"""Which statement wrote to a tensor that backward() needs: in-place methods, `+=`, items, `inplace=True`, `out=`, steps.

The sentence of the error gives the shape of the tensor and the operation that made it; the sources and the names of the frames
give the statements that can have written to it. One is named where it alone can have done so.
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
from gradlab.explore.doctor.context.grad_switches import off_around
from gradlab.explore.doctor.context.layer_sources import changed
from gradlab.explore.doctor.context.program import bound, read
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_optimizer

SHOWN = 4  # statements that are named where it may have been any of them
KEEPS = (
    "requires_grad_",
    "zero_grad_",
    "share_memory_",
    "retain_grad_",
    "clip_grad_norm_",
    "clip_grad_value_",
)  # write no values
VIEWS = (
    "view", "reshape", "t", "transpose", "flatten", "squeeze", "unsqueeze", "detach", "narrow", "select", "expand", "permute",
    "diagonal", "unflatten", "swapaxes", "movedim", "contiguous",
)  # fmt: skip
SIGNS: dict[str, type[ast.operator]] = {
    "Add": ast.Add,
    "Sub": ast.Sub,
    "Mul": ast.Mult,
    "Div": ast.Div,
    "Pow": ast.Pow,
    "Mm": ast.MatMult,
}
PLAIN = ("AsStrided", "T", "Transpose", "View", "Alias")  # operations that compute nothing


declare(
    "in-place",
    meaning="a value that backward() needs was written to in place",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@dataclass(frozen=True)
class Write:
    """A statement that can have written in place.

    Attributes
    ----------
    node : statement or None
        None of a layer with `inplace=True`.
    said : str
        What it is called in a sentence, with its line.
    fix : str
    line : int or None
        In the file whose lines are counted.
    root : str
        What it writes to.
    """

    node: Any
    said: str
    fix: str
    line: int | None = None
    root: str = ""


def modified_in_place(scene: Scene, match: re.Match[str]) -> Finding:
    """The finding on a saved tensor that was written to."""
    shape, maker = [int(number) for number in re.findall(r"\d+", match["shape"])], match["made"] or ""
    by = f", the result of {maker}," if maker and maker not in PLAIN else ""
    what = f"a tensor of shape {shape}{by} that backward() needs"
    writers = _of_maker(scene, _writers(scene, tuple(shape), maker), maker)
    evidence = {"shape": shape, "made by": maker}
    if len(writers) == 1:
        (one,) = writers
        return Finding(
            "in-place",
            f"{one.said} writes to {what}, before {scene.said} reads it.",
            one.line,
            fix=one.fix,
            evidence=evidence,
            lines=() if scene.line is None else (scene.line,),
        )
    names = [one.said for one in writers][:SHOWN]
    those = f"These write in place: {', '.join(names)}." if names else "The line that wrote to it is not known."
    return Finding(
        "in-place",
        f"{scene.said}: {what} was written to since it was computed. {those}",
        fix="Write to a copy, or after backward().",
        evidence=evidence,
        lines=tuple(dict.fromkeys(one.line for one in writers if one.line is not None)),
    )


def asked_out(scene: Scene, match: re.Match[str]) -> Finding:
    """`out=` of an operation that is to be differentiated."""
    node, statement, code = scene.node, scene.statement, ""
    if isinstance(node, ast.Call):
        plain = source_of(ast.Call(node.func, node.args, [keyword for keyword in node.keywords if keyword.arg != "out"]))
        out = next((source_of(keyword.value) for keyword in node.keywords if keyword.arg == "out"), "")
        alone = isinstance(statement, ast.Expr) and statement.value is node
        code = instead(f"{out} = {plain}", source_of(statement)) if alone and out else scene.swapped(plain, node)
    return Finding(
        "in-place",
        f"{scene.said} writes its result into a tensor that exists, which cannot be differentiated.",
        fix=f"Bind the result to the name: {code}." if code else "Bind the result to a name, without out=.",
    )


# ----------------------------------------------------------------------------------------------------------- statements
def _writers(scene: Scene, shape: tuple[int, ...], maker: str) -> list[Write]:
    """What can have written to a tensor of a shape: statements of the functions of the traceback to one of that shape, else
    layers and functions that these call, else writes to tensors of another shape."""
    sure: list[Write] = []
    others: list[Write] = []
    for number, step in enumerate(reversed(scene.steps)):
        program = scene.programs.get(step.place.filename)
        if program is None:
            continue
        scope = scene.scope if number == 0 else scene.scope_of(program, step.place)
        for node in scope:
            for target, part in writes(scene, node):
                root = _root(target)
                value = scene.value_in(step.names, root)
                if is_optimizer(value):
                    held = [tuple(p.shape) for group in value.param_groups for p in group["params"] if library_of(p) is not None]
                    if shape in held or shape[::-1] in held:
                        where = _line(scene, node, step.place.filename)
                        fix = f"Run every backward() before step(){where}, or compute the loss again after it."
                        sure.append(_write(scene, node, step.place.filename, fix, root))
                elif library_of(value) is not None:
                    leaf = value.is_leaf and value.requires_grad
                    where = _line(scene, node, step.place.filename)
                    unseen = leaf or off_around(program.tree, node.lineno) is not None
                    fix = f"Run backward() before the write{where}, or compute the loss again after it." if unseen else ""
                    fix = fix or mended(node, target, part, root, scope)
                    fits = tuple(value.shape) in (shape, shape[::-1])
                    (sure if fits else others).append(_write(scene, node, step.place.filename, fix, root))
                elif value is None and isinstance(part, ast.Call) and _in_place_method(part):
                    others.append(_write(scene, node, step.place.filename, mended(node, target, part, root, scope), root))
    found = sure or [*_elsewhere(scene), *_layers(scene, maker)] or others
    return list({(one.said, one.fix): one for one in found}.values())


def _write(scene: Scene, node: Any, filename: str, fix: str, root: Any) -> Write:
    return Write(
        node, scene.quoted(node, filename), fix, node.lineno if filename == scene.file else None, source_of(root) if root else ""
    )


def _line(scene: Scene, node: Any, filename: str) -> str:
    return scene.on(scene.at(node, filename))


def _of_maker(scene: Scene, writers: list[Write], maker: str) -> list[Write]:
    """Of several writes those to what the operation of the error's sentence made, as far as the source shows it."""
    if len(writers) < 2 or not maker:
        return writers
    word, sign, kept = re.sub(r"\d+$", "", maker).lower(), SIGNS.get(maker), []
    for one in writers:
        scope = [node for node in scene.scope if one.node is not None and node.lineno <= one.node.lineno]
        made = next((node for node in reversed(scope) if node is not one.node and one.root in bound(node)), None)
        parts = [*ast.walk(made or ast.Pass()), *ast.walk(one.node or ast.Pass())]
        named = any(
            isinstance(part, (ast.Attribute, ast.Name)) and word in source_of(part).rpartition(".")[2].lower() for part in parts
        )
        if named or (sign is not None and any(isinstance(part, ast.BinOp) and isinstance(part.op, sign) for part in parts)):
            kept.append(one)
    return kept or writers


def writes(scene: Scene, statement: Any) -> Iterator[tuple[Any, Any]]:
    """What a statement by itself writes to in place, and the part of it that does: the statement, or a call."""
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
        elif name.endswith("_") and not name.startswith("_") and name not in KEEPS:
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
    """The calls of a statement by itself, the outermost of a chain of in-place methods alone."""
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
                        while _in_place_method(node) and isinstance(one, (ast.Attribute, ast.Call, ast.Subscript)):
                            inner |= {id(one)} if isinstance(one, ast.Call) and _in_place_method(one) else set()
                            one = one.func if isinstance(one, ast.Call) else one.value


def _in_place_method(node: Any) -> bool:
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return name.endswith("_") and not name.startswith("_") and name not in KEEPS


def _root(target: Any) -> Any:
    """The tensor of which a target is a view or the result of an in-place method: `h` of `h[0].view(-1).relu_()`."""
    while True:
        if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr in ("data", "T", "mT")):
            target = target.value
        elif _in_place_method(target) or (
            isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and target.func.attr in VIEWS
        ):
            target = target.func.value
        else:
            return target


# --------------------------------------------------------------------------------------------------------------- advice
def mended(statement: Any, target: Any, part: Any, root: Any, scope: list[Any]) -> str:
    """What to write in place of a write to a saved tensor."""
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
        node is not statement and node.lineno > statement.lineno and root_name(name) in read(node) for node in scope
    )
    new = _out_of_place(part)
    if new is None:
        return copied
    if alone:
        direct = source_of(_root_of_chain(target)) == name
        return f"Write {instead(f'{name} = {source_of(new)}', text)}." if direct and name else copied
    if later and name not in bound(statement):
        return copied
    return f"Write {instead(source_of(new), source_of(part))}."


def root_name(name: str) -> str:
    """`self` of `self.h`."""
    return name.partition(".")[0]


def _root_of_chain(target: Any) -> Any:
    while _in_place_method(target):
        target = target.func.value
    return target


def _out_of_place(call: ast.Call) -> ast.Call | None:
    """The same call, which writes nothing: `h.relu().mul(2)` of `h.relu_().mul_(2)`; None where there is none."""
    made: Any = copy.deepcopy(call)
    made.keywords = [keyword for keyword in made.keywords if keyword.arg not in ("inplace", "out")]
    changed_it = len(made.keywords) != len(call.keywords)
    one = made
    while isinstance(one, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and _in_place_method(one):
            one.func.attr = one.func.attr[:-1]
            changed_it = True
            if not hasattr(Tensor, one.func.attr):
                return None
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id.endswith("_"):
            return None
        one = one.func if isinstance(one, ast.Call) else one.value
    return made if changed_it else None


# ------------------------------------------------------------------------------------------------------------ elsewhere
def _elsewhere(scene: Scene) -> Iterator[Write]:
    """Statements of functions that were called from the failing ones and write in place, as far as the source tells."""
    for filename, function in scene.called_functions():
        body = scene.statements_of(function)
        for node in body:
            for target, part in writes(scene, node):
                root = _root(target)
                if _is_step(part) or not _may_be_tensor(scene, function, body, root):
                    continue
                yield _write(scene, node, filename, mended(node, target, part, root, body), root)


def _may_be_tensor(scene: Scene, function: Any, body: list[Any], root: Any) -> bool:
    """Whether what a function writes to can be a tensor with a history: not if it binds it to a number, a list or a new tensor
    first, and of an attribute not unless a model of that class holds a tensor there."""
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


def _layers(scene: Scene, maker: str) -> Iterator[Write]:
    """The layers with `inplace=True` of the models that the frames can name: those that follow the operation of the error's
    sentence, where one is known to."""
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
        code = changed(scene, module, path, inplace=False)
        fix = f"Let it write to a new tensor: {code}." if code else f"Leave inplace=True out of `{path}`."
        yield Write(None, f"`{path}` ({kind}, inplace=True)", fix)
