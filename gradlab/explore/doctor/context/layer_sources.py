"""Where a layer was made, `nn.Linear(16, 3)`, and how to write it with another width.

The expression is searched in the user's files and cells: a call of the layer's class whose arguments, as far as they can be read
without running anything, are the layer's own. It is used if there is one such expression; of several alike the one whose
statement assigns to the layer's attribute. An argument that is a parameter of `__init__` is changed where the model is made.
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
class Made:
    """A call that makes a layer: its node, the statement and the function around it, what its arguments are by name, and its
    whole file, parsed."""

    call: ast.Call
    statement: ast.stmt
    function: Any
    owner: Any  # the class around it
    given: dict[str, ast.expr]
    tree: ast.Module


def changed(scene: Scene, module: Any, path: str, **values: Any) -> str:
    """ "`nn.Linear(16, 4)` in place of `nn.Linear(16, 3)`" with other values of arguments; "" where the source is not found."""
    made = _found(scene, module, path)
    if made is None:
        return ""
    if len(values) == 1:
        (name, value), *_ = values.items()
        node = made.given.get(name)
        if isinstance(node, ast.Name) and _is_parameter(made, node.id):
            found = _at_the_model(scene, made, node.id, getattr(module, name, UNKNOWN), value)
            if found:
                return found
    for name in values:
        node = made.given.get(name)
        if node is not None and _value(scene, made, node) is UNKNOWN and not _alone(scene, made):
            return ""
    return _written(made, _with(made.call, made.given, values))


def wrapped(scene: Scene, module: Any, path: str, form: str) -> str:
    """A layer's expression in another one: `form` with "{}" for it."""
    made = _found(scene, module, path)
    return "" if made is None else _written(made, ast.parse(form.format(source_of(made.call)), mode="eval").body)


def renamed(scene: Scene, module: Any, path: str, name: str) -> str:
    """A layer of another class in its place: "`nn.BCEWithLogitsLoss()` in place of `nn.BCELoss()`"."""
    made = _found(scene, module, path)
    if made is None:
        return ""
    func = ast.parse(source_of(made.call.func).removesuffix(type(module).__name__) + name, mode="eval").body
    return _written(made, copy.deepcopy(made.call, {id(made.call.func): func}))


def _written(made: Made, new: ast.expr) -> str:
    """The change of a call, of the whole statement where the file has the same expression again."""
    text = source_of(made.call)
    if sum(isinstance(node, ast.Call) and source_of(node) == text for node in ast.walk(made.tree)) == 1:
        return instead(source_of(new), text)
    statement = source_of(made.statement)
    if sum(isinstance(node, ast.stmt) and source_of(node) == statement for node in ast.walk(made.tree)) > 1:
        return ""
    return instead(source_of(copy.deepcopy(made.statement, {id(made.call): new})), statement)


def _found(scene: Scene, module: Any, path: str) -> Made | None:
    """The one call that can have made a layer; None where there are several or none."""
    attribute = path.rpartition(".")[2]
    owners = _owners(scene, module)
    several: dict[str, list[Made]] = {}
    for name, program in scene.programs.items():
        for made in _calls(program.tree, module):
            of_owner = made.owner.name in owners and scene.holds(name, made.owner) if made.owner is not None else not owners
            if of_owner and _matches(scene, made, module):
                several.setdefault(name, []).append(made)
    every = [made for one in several.values() for made in one]
    sure = [made for made in every if _certain(scene, made, module)]
    placed = _in_sequential(scene, module, path, every)
    for chosen in (placed, [made for made in every if _assigns(made.statement, attribute)]):
        # The newest of cells that were run several times comes first.
        first = next((mine for mine in ([one for one in chosen if one in mine] for mine in several.values()) if mine), [])
        if len(first) == 1:
            return first[0]
    for chosen in (sure, every):
        files = [sum(one in mine for one in chosen) for mine in several.values()]
        if chosen and len({source_of(made.call) for made in chosen}) == 1 and max(files) == 1:
            return chosen[0]
    return None


def _alone(scene: Scene, made: Made) -> bool:
    """Whether one model only was made by the class that a layer's expression is in."""
    every = {id(one): one for model in scene.modules() for one in model.modules()}
    return made.owner is not None and sum(type(one).__name__ == made.owner.name for one in every.values()) == 1


def _owners(scene: Scene, module: Any) -> set[str]:
    """The names of the user's classes of which an instance holds a layer; empty where none does."""
    holders = [one for model in scene.modules() for one in model.modules() if one is not module and module in one.modules()]
    kinds = {kind for one in holders for kind in type(one).__mro__}
    return {kind.__name__ for kind in kinds if any(is_user_file(name) for name in files_of(kind))}


def _in_sequential(scene: Scene, module: Any, path: str, every: list[Made]) -> list[Made]:
    """Of several calls those that are the argument of a Sequential's that the layer is at, of one that is assigned to its name if
    there is one."""
    parents = [(one, list(one.children())) for model in scene.modules() for one in model.modules()]
    held = next((children for one, children in parents if type(one).__name__ == "Sequential" and module in children), None)
    if held is None:
        return []
    at = next(i for i, one in enumerate(held) if one is module)
    kinds, chosen = [type(one).__name__ for one in held], []
    for made in every:
        for node in ast.walk(made.statement):
            if isinstance(node, ast.Call) and source_of(node.func).rpartition(".")[2] == "Sequential":
                called = [source_of(one.func).rpartition(".")[2] if isinstance(one, ast.Call) else "" for one in node.args]
                if called == kinds and node.args[at] is made.call:
                    chosen.append(made)
    name = path.rpartition("[")[0].rpartition(".")[2]
    return [made for made in chosen if _assigns(made.statement, name)] or chosen


def _calls(tree: ast.Module, module: Any) -> Iterator[Made]:
    name = type(module).__name__

    def walk(node: ast.AST, statement: Any, function: Any, owner: Any) -> Iterator[Made]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and source_of(child.func).rpartition(".")[2] == name:
                given = _bound(child, module)
                if given is not None:
                    yield Made(child, statement, function, owner, given, tree)
            yield from walk(
                child,
                child if isinstance(child, ast.stmt) else statement,
                child if isinstance(child, ast.FunctionDef) else function,
                child if isinstance(child, ast.ClassDef) else owner,
            )

    yield from walk(tree, None, None, None)


def _bound(call: ast.Call, module: Any) -> dict[str, ast.expr] | None:
    """The arguments of a call by the names of the parameters of the layer's `__init__`."""
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


def _matches(scene: Scene, made: Made, module: Any) -> bool:
    """Whether the arguments that can be read are the layer's own."""
    for name, node in made.given.items():
        value, own = _value(scene, made, node), getattr(module, name, UNKNOWN)
        if value is UNKNOWN or own is UNKNOWN or not isinstance(own, (int, float, str, tuple, bool)):
            continue
        if isinstance(own, tuple) and not isinstance(value, tuple):
            value = (value,) * len(own)
        if value != own:
            return False
    return True


def _certain(scene: Scene, made: Made, module: Any) -> bool:
    return all(_value(scene, made, node) is not UNKNOWN for node in made.given.values())


def _value(scene: Scene, made: Made, node: Any) -> Any:
    """What an argument is: a constant, a global name, or what is computed of these."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        parts = tuple(_value(scene, made, part) for part in node.elts)
        return UNKNOWN if UNKNOWN in parts else parts
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        sides = _value(scene, made, node.left), _value(scene, made, node.right)
        whole = all(isinstance(side, int) for side in sides)
        return ARITHMETIC[type(node.op)](*sides) if whole else UNKNOWN
    if (isinstance(node, ast.Name) and made.function is None and made.owner is None) or _is_global(made, node):
        value = {**scene.namespace, **scene.steps[0].names}.get(node.id, UNKNOWN)
        return value if isinstance(value, (int, float, str)) else UNKNOWN
    return UNKNOWN


def _is_global(made: Made, node: Any) -> bool:
    """Whether a name in a function is none of its own."""
    if not isinstance(node, ast.Name) or made.function is None or _is_parameter(made, node.id):
        return False
    own = {one.id for one in ast.walk(made.function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return node.id not in own


def _is_parameter(made: Made, name: str) -> bool:
    if made.function is None:
        return False
    arguments = made.function.args
    return name in {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _assigns(statement: Any, attribute: str) -> bool:
    """Whether a statement gives a layer its name or attribute."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    return source_of(statement.targets[0]).rpartition(".")[2] == attribute


def _with(call: ast.Call, given: dict[str, ast.expr], values: dict[str, Any]) -> ast.Call:
    """A call with other values of some arguments."""
    new = {name: ast.parse(repr(value), mode="eval").body for name, value in values.items()}
    swaps = {id(given[name]): node for name, node in new.items() if name in given}
    made = copy.deepcopy(call, swaps)
    made.keywords += [ast.keyword(name, node) for name, node in new.items() if name not in given]
    return made


def _at_the_model(scene: Scene, made: Made, parameter: str, old: Any, new: Any) -> str:
    """The change of an argument that a model's `__init__` hands to one layer, where the model is made."""
    if made.owner is None or made.function.name != "__init__":
        return ""
    reads = [node for node in ast.walk(made.function) if isinstance(node, ast.Name) and node.id == parameter]
    if len(reads) != 1:
        return ""
    names = [one.arg for one in made.function.args.args[1:]]
    places = []
    for program in scene.programs.values():
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Call) and source_of(node.func) == made.owner.name:
                given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
                outer = Made(node, ast.Pass(), None, None, given, program.tree)
                if parameter in given and _value(scene, outer, given[parameter]) == old:
                    places.append((node, given))
    if len({source_of(node) for node, _ in places}) != 1:
        return ""
    node, given = places[0]
    return instead(source_of(_with(node, given, {parameter: new})), source_of(node))
