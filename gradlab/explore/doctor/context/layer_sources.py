"""The call that makes a layer, `nn.Linear(16, 3)`, and edits of it.

The call is searched in the user's files and cells: a call of the layer's class whose arguments, as far as they can be evaluated
without running code, equal the layer's attributes. If there are several, the one whose statement assigns to the layer's name is
used. An argument that is a parameter of `__init__` is changed in the call that makes the model.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.scene import Scene, files_of

UNKNOWN = object()
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b if abs(b) < 64 else UNKNOWN,
}


@dataclass(frozen=True)
class LayerCall:
    """A call that makes a layer.

    Attributes
    ----------
    call : ast.Call
    statement : ast.stmt
        The statement around it.
    function, owner : FunctionDef or None, ClassDef or None
        The function and the class around it.
    arguments : dict of str to ast.expr
        Its arguments, by the names of the parameters.
    tree : ast.Module
        Its file.
    """

    call: ast.Call
    statement: ast.stmt
    function: Any
    owner: Any
    arguments: dict[str, ast.expr]
    tree: ast.Module


def change_arguments(scene: Scene, module: Any, path: str, **values: Any) -> str:
    """Return "`nn.Linear(16, 4)` in place of `nn.Linear(16, 3)`", with other arguments; "" if the source is not found."""
    source = _find_call(scene, module, path)
    if source is None:
        return ""
    if len(values) == 1:
        (name, value), *_ = values.items()
        node = source.arguments.get(name)
        if isinstance(node, ast.Name) and _is_parameter(source, node.id):
            edit = _edit_of_model(scene, source, node.id, getattr(module, name, UNKNOWN), value)
            if edit:
                return edit
    for name in values:
        node = source.arguments.get(name)
        if node is not None and _value(scene, source, node) is UNKNOWN and not _has_one_instance(scene, source):
            return ""
    return _edit(source, _with_arguments(source.call, source.arguments, values))


def wrap_layer(scene: Scene, module: Any, path: str, form: str) -> str:
    """Return the edit that puts the call that makes a layer into other code: `form` with "{}" for the call."""
    source = _find_call(scene, module, path)
    return "" if source is None else _edit(source, ast.parse(form.format(source_of(source.call)), mode="eval").body)


def replace_class(scene: Scene, module: Any, path: str, name: str) -> str:
    """Return the edit to another class: "`nn.BCEWithLogitsLoss()` in place of `nn.BCELoss()`"."""
    source = _find_call(scene, module, path)
    if source is None:
        return ""
    func = ast.parse(source_of(source.call.func).removesuffix(type(module).__name__) + name, mode="eval").body
    return _edit(source, copy.deepcopy(source.call, {id(source.call.func): func}))


def _edit(source: LayerCall, new: ast.expr) -> str:
    """Return the edit of a call, or of its whole statement if the file contains the same call again."""
    text = source_of(source.call)
    if sum(isinstance(node, ast.Call) and source_of(node) == text for node in ast.walk(source.tree)) == 1:
        return instead(source_of(new), text)
    statement = source_of(source.statement)
    if sum(isinstance(node, ast.stmt) and source_of(node) == statement for node in ast.walk(source.tree)) > 1:
        return ""
    return instead(source_of(copy.deepcopy(source.statement, {id(source.call): new})), statement)


def _find_call(scene: Scene, module: Any, path: str) -> LayerCall | None:
    """Return the one call that can have made a layer; None if there is none or more than one."""
    attribute = path.rpartition(".")[2]
    owners = _owners(scene, module)
    by_file: dict[str, list[LayerCall]] = {}
    for name, program in scene.programs.items():
        for source in _calls(program.tree, module):
            owner = source.owner
            of_owner = owner.name in owners and scene.is_current(name, owner) if owner is not None else not owners
            if of_owner and _matches(scene, source, module):
                by_file.setdefault(name, []).append(source)
    every = [source for one in by_file.values() for source in one]
    certain = [source for source in every if _is_certain(scene, source)]
    placed = _in_sequential(scene, module, path, every)
    for chosen in (placed, [source for source in every if _assigns(source.statement, attribute)]):
        # Of a cell that was run several times the newest source comes first.
        chosen_by_file = ([one for one in chosen if one in calls] for calls in by_file.values())
        first = next((calls for calls in chosen_by_file if calls), [])
        if len(first) == 1:
            return first[0]
    for chosen in (certain, every):
        files = [sum(one in calls for one in chosen) for calls in by_file.values()]
        if chosen and len({source_of(source.call) for source in chosen}) == 1 and max(files) == 1:
            return chosen[0]
    return None


def _has_one_instance(scene: Scene, source: LayerCall) -> bool:
    """Return whether the class around the call that makes a layer has one instance."""
    every = {id(one): one for model in scene.modules() for one in model.modules()}
    return source.owner is not None and sum(type(one).__name__ == source.owner.name for one in every.values()) == 1


def _owners(scene: Scene, module: Any) -> set[str]:
    """Return the names of the user's classes whose instances contain a layer."""
    holders = [one for model in scene.modules() for one in model.modules() if one is not module and module in one.modules()]
    kinds = {kind for one in holders for kind in type(one).__mro__}
    return {kind.__name__ for kind in kinds if any(is_user_file(name) for name in files_of(kind))}


def _in_sequential(scene: Scene, module: Any, path: str, every: list[LayerCall]) -> list[LayerCall]:
    """Return the calls that are the argument of a `Sequential` at the layer's index, if possible of one assigned to its name."""
    parents = [(one, list(one.children())) for model in scene.modules() for one in model.modules()]
    held = next((children for one, children in parents if type(one).__name__ == "Sequential" and module in children), None)
    if held is None:
        return []
    at = next(i for i, one in enumerate(held) if one is module)
    kinds, chosen = [type(one).__name__ for one in held], []
    for source in every:
        for node in ast.walk(source.statement):
            if isinstance(node, ast.Call) and source_of(node.func).rpartition(".")[2] == "Sequential":
                called = [source_of(one.func).rpartition(".")[2] if isinstance(one, ast.Call) else "" for one in node.args]
                if called == kinds and node.args[at] is source.call:
                    chosen.append(source)
    name = path.rpartition("[")[0].rpartition(".")[2]
    return [source for source in chosen if _assigns(source.statement, name)] or chosen


def _calls(tree: ast.Module, module: Any) -> Iterator[LayerCall]:
    """Yield the calls of a layer's class in a file."""
    name = type(module).__name__

    def walk(node: ast.AST, statement: Any, function: Any, owner: Any) -> Iterator[LayerCall]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and source_of(child.func).rpartition(".")[2] == name:
                given = _arguments_of(child, module)
                if given is not None:
                    yield LayerCall(child, statement, function, owner, given, tree)
            yield from walk(
                child,
                child if isinstance(child, ast.stmt) else statement,
                child if isinstance(child, ast.FunctionDef) else function,
                child if isinstance(child, ast.ClassDef) else owner,
            )

    yield from walk(tree, None, None, None)


def _arguments_of(call: ast.Call, module: Any) -> dict[str, ast.expr] | None:
    """Return the arguments of a call by the names of the parameters of the layer's `__init__`; None if they are not known."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return None
    try:
        names = [name for name in inspect.signature(type(module).__init__).parameters if name != "self"]
    except (TypeError, ValueError):
        return None
    if names[:1] == ["args"]:
        names = ["input_size", "hidden_size", "num_layers", "bias", "batch_first"]  # of the recurrent layers
        names = [name for name in names if hasattr(module, name)]
    if len(call.args) > len(names):
        return None
    return dict(zip(names, call.args, strict=False)) | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _matches(scene: Scene, source: LayerCall, module: Any) -> bool:
    """Return whether the arguments that can be evaluated equal the layer's attributes."""
    for name, node in source.arguments.items():
        value, own = _value(scene, source, node), getattr(module, name, UNKNOWN)
        if value is UNKNOWN or own is UNKNOWN or not isinstance(own, (int, float, str, tuple, bool)):
            continue
        if isinstance(own, tuple) and not isinstance(value, tuple):
            value = (value,) * len(own)
        if value != own:
            return False
    return True


def _is_certain(scene: Scene, source: LayerCall) -> bool:
    """Return whether all arguments can be evaluated."""
    return all(_value(scene, source, node) is not UNKNOWN for node in source.arguments.values())


def _value(scene: Scene, source: LayerCall, node: Any) -> Any:
    """Return the value of an argument that is computed from constants and global names; `UNKNOWN` for another one."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        parts = tuple(_value(scene, source, part) for part in node.elts)
        return UNKNOWN if UNKNOWN in parts else parts
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        sides = _value(scene, source, node.left), _value(scene, source, node.right)
        whole = all(isinstance(side, int) for side in sides)
        return ARITHMETIC[type(node.op)](*sides) if whole else UNKNOWN
    if (isinstance(node, ast.Name) and source.function is None and source.owner is None) or _is_global(source, node):
        value = {**scene.namespace, **scene.frames[0].names}.get(node.id, UNKNOWN)
        return value if isinstance(value, (int, float, str)) else UNKNOWN
    return UNKNOWN


def _is_global(source: LayerCall, node: Any) -> bool:
    """Return whether a name in a function is neither a parameter nor assigned in it."""
    if not isinstance(node, ast.Name) or source.function is None or _is_parameter(source, node.id):
        return False
    own = {one.id for one in ast.walk(source.function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return node.id not in own


def _is_parameter(source: LayerCall, name: str) -> bool:
    if source.function is None:
        return False
    arguments = source.function.args
    return name in {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _assigns(statement: Any, attribute: str) -> bool:
    """Return whether a statement assigns to a layer's name or attribute."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return source_of(statement.targets[0]).rpartition(".")[2] == attribute


def _with_arguments(call: ast.Call, given: dict[str, ast.expr], values: dict[str, Any]) -> ast.Call:
    """Return a call with other values of some arguments."""
    new = {name: ast.parse(repr(value), mode="eval").body for name, value in values.items()}
    swaps = {id(given[name]): node for name, node in new.items() if name in given}
    changed = copy.deepcopy(call, swaps)
    changed.keywords += [ast.keyword(name, node) for name, node in new.items() if name not in given]
    return changed


def _edit_of_model(scene: Scene, source: LayerCall, parameter: str, old: Any, new: Any) -> str:
    """Return the edit of the call that makes a model, for a parameter of its `__init__` that is an argument of one layer."""
    if source.owner is None or source.function.name != "__init__":
        return ""
    reads = [node for node in ast.walk(source.function) if isinstance(node, ast.Name) and node.id == parameter]
    if len(reads) != 1:
        return ""
    names = [one.arg for one in source.function.args.args[1:]]
    places = []
    for program in scene.programs.values():
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Call) and source_of(node.func) == source.owner.name:
                given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
                outer = LayerCall(node, ast.Pass(), None, None, given, program.tree)
                if parameter in given and _value(scene, outer, given[parameter]) == old:
                    places.append((node, given))
    if len({source_of(node) for node, _ in places}) != 1:
        return ""
    node, given = places[0]
    return instead(source_of(_with_arguments(node, given, {parameter: new})), source_of(node))
