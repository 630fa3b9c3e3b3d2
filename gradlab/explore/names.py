"""The user's own names for tensors: `loss`, `params[0]`, `model.fc1.weight`, `layers[3].gamma`.

A namespace is searched in this order: names bound to tensors; items of lists, tuples and dictionaries bound to a name, and
`named_parameters()` of models; parameters of models in containers; objects' own dictionaries, and objects and containers in
these. Of several names for one tensor the best is used (`_rank`): the attribute of a layer says more than a position in a list of
all parameters. A loop variable names only tensors without another name.

The only user code that runs is `named_parameters`: reading an attribute could run code, and so could `isinstance`. So objects are
classified by their type, and their dictionaries are read through Python's own slots.
"""

from __future__ import annotations

import ast
import linecache
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from inspect import CO_OPTIMIZED
from itertools import islice
from types import CodeType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, NamedTuple

from gradlab.diagnose.source_locations import cells
from gradlab.explore.keras_layers import is_keras_layer, keras_parameters, modules_of
from gradlab.explore.libraries import library_of
from gradlab.explore.module_paths import attribute
from gradlab.explore.trace.notes import METHODS, locals_of

HELD = 1000  # maximum number of items per container that are examined
ITEMS, DEEP = 5000, 4  # maximum number of items in objects that are examined, and maximum depth
LARGEST = 2_000_000  # maximum size of a source that is parsed, in characters
FILES = 100  # files whose loop variables are cached
SIMPLE = (str, int, float, bool, complex, bytes, type(None))
EXPLORER_PACKAGES = ("gradlab.explore.", "gradlab.notebook.")  # their objects hold many tensors, and need no names

# Slots of classes, read without the code of metaclasses.
_MRO, _SPACE, _NAME, _OFFSET = (type.__dict__[slot] for slot in ("__mro__", "__dict__", "__name__", "__weakrefoffset__"))


def names_in(namespace: Mapping[str, Any], first: Iterable[str] = (), loops: frozenset[str] | None = None) -> dict[str, Any]:
    """Return {name: tensor}, with one name for each tensor.

    A plain name is preferred to `layers[0].weight`, and that to `params[0]`; one of `first` to any other; an earlier binding to a
    later one. Names with a leading underscore (such as IPython's results) are ignored. `loops` are the variables of the program's
    loops; by default those of the running cell or script.
    """
    order = _users_names(namespace, first)
    held = {name: list(_contents(name, namespace[name])) for name in order}
    passing = _passing(order, namespace, held, frozenset(first), _known_loops(loops))
    found = list(_named_tensors(order, passing, namespace, held))
    passing |= _aliases(found, namespace) - set(first)
    best: dict[int, tuple[tuple[bool, int], int]] = {}
    for at, (root, name, tensor) in enumerate(found):
        rank = (root in passing, _rank(root, name))
        if id(tensor) not in best or rank < best[id(tensor)][0]:
            best[id(tensor)] = rank, at
    chosen = sorted((last, at) for (last, _), at in best.values())
    return {found[at][1]: found[at][2] for _, at in chosen}


def _users_names(namespace: Mapping[str, Any], first: Iterable[str] = ()) -> list[str]:
    order = list(dict.fromkeys([*(name for name in first if name in namespace), *namespace]))
    order = [name for name in order if isinstance(name, str) and name.replace(".", "_").isidentifier()]
    return [name for name in order if not name.startswith("_") and name not in ("In", "Out")]


def _named_tensors(
    order: Iterable[str], passing: set[str], namespace: Mapping[str, Any], held: Mapping[str, list[tuple[str, Any]]]
) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, path from it, tensor) of all tensors, several times if several paths lead to one. Contents of an object come
    once. A path from a `passing` name is used only if it is the only one."""
    order = sorted(order, key=passing.__contains__)
    for name in order:
        if library_of(namespace[name]) is not None:
            yield name, name, namespace[name]
    for name in order:
        for label, value in held[name]:
            if library_of(value) is not None:
                yield name, label, value
    for name in order:
        for label, value in _held_deeper(name, namespace[name]):
            if library_of(value) is not None:
                yield name, label, value
    looked: set[int] = set()
    for several in ([name for name in order if name not in passing], [name for name in order if name in passing]):
        yield from _of_objects(several, namespace, looked)


def _rank(root: str, name: str) -> int:
    """Return a rank; the name with the lowest rank is used: a plain name; one that says where the tensor belongs, `layer.weight`
    or `params['w']`; a place in a list of an object, `neuron.w[0]`; a place in a plain list, `params[0]`; in an optimizer."""
    if name == root:
        return 0
    if "param_groups" in name:
        return 4
    if not name.endswith("]") or name.endswith("']"):
        return 1
    return 2 if "." in name else 3


# ---------------------------------------------------------------------------------------------------- loop variables
def _known_loops(loops: frozenset[str] | None) -> frozenset[str]:
    return loop_variables(cells.current) if loops is None else loops


def running_loops(codes: Iterable[CodeType]) -> frozenset[str]:
    """Return the variables of the loops in the running cell, and in the files of running functions."""
    return frozenset().union(*map(loop_variables, {cells.current, *(code.co_filename for code in codes)}))


def loop_variables(filename: str | None) -> frozenset[str]:
    """Return the variables of the `for` statements in a file or a cell."""
    lines = [] if filename is None else linecache.getlines(filename)
    if not lines:
        return frozenset()
    known = _variables.get(str(filename))
    if known is None or known[0] is not lines:  # linecache returns the same list as long as the file is unchanged
        if len(_variables) >= FILES:
            _variables.clear()
        known = _variables[str(filename)] = lines, _loop_targets("".join(lines))
    return known[1]


_variables: dict[str, tuple[list[str], frozenset[str]]] = {}


def _loop_targets(source: str) -> frozenset[str]:
    if len(source) > LARGEST:
        return frozenset()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    targets = [node.target for node in ast.walk(tree) if isinstance(node, (ast.For, ast.AsyncFor))]
    return frozenset(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _passing(
    order: Iterable[str],
    namespace: Mapping[str, Any],
    held: Mapping[str, list[tuple[str, Any]]],
    first: frozenset[str],
    loops: frozenset[str],
) -> set[str]:
    """Return the names that a loop binds or has left behind: `p` of `for p in model.parameters()`, `layer` of `for layer in
    layers`.

    These are the variables of the program's loops (for tensors, only trainable leaves and parameters) and, if the source is
    unknown, names of the last item of a container that was bound earlier, whose other items have no names.
    """
    names = [name for name in namespace if name in held]
    at: dict[int, str] = {}
    place: dict[str, int] = {}
    for i, name in enumerate(names):
        at.setdefault(id(namespace[name]), name)
        place[name] = i
    passing = set()
    for holder in names:
        items = _loop_items(held[holder], namespace[holder])
        if len(items) < 2 or is_users(namespace[holder]):
            continue
        last = items[-1]
        name = at.get(id(last), holder)
        others = [at[id(item)] for item in items[:-1] if id(item) in at and item is not last]
        if place[name] > place[holder] and not (
            any(place[one] > place[holder] for one in others) if _may_learn(last) else others
        ):
            passing.add(name)
    passing -= first
    return passing | {name for name in order if name in loops and _may_learn(namespace[name])}


def loop_leftovers(namespace: Mapping[str, Any], loops: frozenset[str] | None = None) -> set[str]:
    """Return the names that a loop over containers of the namespace has left behind for their items."""
    order = _users_names(namespace)
    held = {name: list(_contents(name, namespace[name])) for name in order}
    inside = {id(item) for name in order for _, item in items_of(name, namespace[name]) or ()}
    passing = _passing(order, namespace, held, frozenset(), _known_loops(loops))
    return {name for name in passing if id(namespace[name]) in inside}


def _loop_items(items: list[tuple[str, Any]], holder: Any) -> list[Any]:
    """Return the items that a loop over a container visits; for a model, its modules."""
    modules = modules_in("", holder)
    return [module for _, module in modules if module is not holder] if modules else [item for _, item in items]


def _may_learn(value: Any) -> bool:
    """Return whether a value is a leaf that requires grad, a `Parameter`, or neither a tensor nor a number."""
    library = library_of(value)
    if library is None:
        return type(value) not in SIMPLE
    return library.is_parameter(value) or (bool(value.requires_grad) and library.is_leaf(value))


def _aliases(found: Iterable[tuple[str, str, Any]], namespace: Mapping[str, Any]) -> set[str]:
    """Return the plain names of the last of the leaves to which an earlier name leads, if the others have none: a loop over them
    leaves its variable so."""
    place = {name: i for i, name in enumerate(namespace)}
    plain: dict[int, list[str]] = {}
    reached: dict[str, dict[int, None]] = {}
    for root, name, tensor in found:
        if name == root:
            plain.setdefault(id(tensor), []).append(name)
        elif _may_learn(tensor):
            reached.setdefault(root, {})[id(tensor)] = None
    aliases: set[str] = set()
    for root, keys in reached.items():
        later = {key: [name for name in plain.get(key, ()) if place[name] > place[root]] for key in keys}
        later = {key: names for key, names in later.items() if names}
        if len(keys) > 1 and list(later) == [*keys][-1:]:
            aliases.update(*later.values())
    return aliases


# ----------------------------------------------------------------------------------------------------------- contents
def _contents(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a container that is bound to a name, or the parameters of a model."""
    items = items_of(name, value)
    return _parameters(name, value) if items is None else items


def _held_deeper(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Return the parameters of the models in a container."""
    return [parameter for label, item in items_of(name, value) or () for parameter in _parameters(label, item)]


def _of_objects(order: Iterable[str], namespace: Mapping[str, Any], looked: set[int]) -> Iterator[tuple[str, str, Any]]:
    """Yield the tensors that require grad in objects that are not containers or tensors: `regression.weight`,
    `net.layers[0].neurons[2].w`."""
    for root, label, item in _inside(order, namespace, looked):
        if library_of(item) is not None and item.requires_grad:
            yield root, label, item


def _inside(order: Iterable[str], namespace: Mapping[str, Any], looked: set[int]) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, path from it, item) of the contents of containers and objects, recursively. Each is visited once
    (`looked`)."""
    waiting = deque((name, name, namespace[name], 0) for name in order)
    room = ITEMS
    while waiting and room > 0:
        root, name, value, depth = waiting.popleft()
        if id(value) in looked or library_of(value) is not None:
            continue
        looked.add(id(value))
        items = items_of(name, value)
        items = [*_own(name, value), *(_parameters(name, value) if depth else ())] if items is None else items
        room -= len(items) if depth else 0
        for label, item in items:
            yield root, label, item
            if depth < DEEP and type(item) not in SIMPLE and library_of(item) is None:
                waiting.append((root, label, item, depth + 1))


def _own(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the entries of an object's own dictionary whose names do not begin with an underscore."""
    kind = type(value)
    if issubclass(kind, (type, ModuleType, FunctionType)):
        return []
    for one in _MRO.__get__(kind):
        space = _SPACE.__get__(one)
        if str(space.get("__module__", "")).startswith(EXPLORER_PACKAGES):
            return []
        if "__dict__" in space:
            slot = space["__dict__"]
            own = slot.__get__(value) if type(slot) is GetSetDescriptorType else None
            if type(own) is not dict:
                return []
            fields = islice(own.items(), HELD)
            return [(f"{name}.{key}", item) for key, item in fields if type(key) is str and key.isidentifier() and key[0] != "_"]
    return []


def items_of(name: str, value: Any) -> list[tuple[str, Any]] | None:
    """Return the items of a list, tuple or dictionary, or the attributes of an object of the program's own class, with their
    paths in code; None for other values."""
    if type(value) in (list, tuple):
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:HELD])]
    if type(value) is dict:
        return [(f"{name}[{key!r}]", item) for key, item in islice(value.items(), HELD) if type(key) in (str, int, bool)]
    if name != "self" and is_users(value):
        return _own(name, value)
    return None


def is_users(value: Any) -> bool:
    """Return whether a value is an object of a plain class of the program, such as a trainer that holds a model."""
    return type(type(value)) is type and type(value).__module__ == "__main__" and not _defines(value, "named_parameters")


def with_held(namespace: Mapping[str, Any], loops: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the namespace with the attributes of objects of the program's own classes, such as `trainer.model`."""
    passing = loop_leftovers(namespace, loops)
    held = {
        label: item
        for name, value in namespace.items()
        if isinstance(name, str) and not name.startswith("_") and is_users(value) and name not in passing
        for label, item in items_of(name, value) or ()
    }
    return {**namespace, **held}


def _defines(value: Any, name: str) -> bool:
    """Return whether the class of an object or one of its bases defines a name."""
    return any(name in _SPACE.__get__(one) for one in _MRO.__get__(type(value)))


def _parameters(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Return the parameters of a model; none for other values."""
    if issubclass(type(value), (type, ModuleType)):
        return []
    try:
        if not callable(getattr(type(value), "named_parameters", None)):
            return []
        if is_keras_layer(value):
            return keras_parameters(name, value)[:HELD]
        parameters = [(path, parameter) for path, parameter in islice(value.named_parameters(), HELD)]
    except Exception:  # noqa: BLE001  (a model of the user's that is not finished has no names)
        return []
    return [(attribute(name, path, value), parameter) for path, parameter in parameters if type(path) is str]


def held_by_self(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of `self` in a class of the user's, "self.model"; none for a model's own `self`."""
    return [] if value is None or _defines(value, "named_parameters") else _own("self", value)


def names_of_functions(spaces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names in running functions, innermost first, including attributes of a trainer's `self`."""
    found: dict[str, Any] = {}
    for space in spaces:
        for name, value in (*space.items(), *held_by_self(space.get("self"))):
            found.setdefault(name, value)
    return found


def owners_in(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of values that may have parameters: models, optimizers, leaves that require grad, and containers of
    these."""
    return {name: value for name, value in space.items() if type(name) is str and name[:1] != "_" and _owns(name, value)}


def _owns(name: str, value: Any, deeper: bool = True) -> bool:
    if issubclass(type(value), (type, ModuleType)):
        return False
    if (library := library_of(value)) is not None:
        return bool(value.requires_grad) and library.is_leaf(value)
    if _defines(value, "named_parameters") or is_optimizer(value):
        return True
    return deeper and any(_owns(label, item, False) for label, item in items_of(name, value) or ())


def caller_names(depth: int = 1) -> dict[str, Any]:
    """Return the names in the frame `depth` above the caller of this function: its locals, then its globals."""
    frame = sys._getframe(depth + 1)
    own = locals_of(frame)
    first = tuple(own) if frame.f_code.co_flags & CO_OPTIMIZED else ()
    return names_in({**frame.f_globals, **own}, first, loop_variables(frame.f_code.co_filename))


def is_optimizer(value: Any) -> bool:
    """Return whether a value is an optimizer of a library that uses PyTorch's names; those of Keras do not."""
    return any(
        _NAME.__get__(one) == "Optimizer" and not str(_SPACE.__get__(one).get("__module__")).startswith("keras.")
        for one in _MRO.__get__(type(value))
    )


def modules_in(name: str, model: Any) -> list[tuple[str, Any]]:
    """Return a model and all its modules, with their paths in code; an empty list for other values."""
    try:
        if not callable(getattr(type(model), "named_modules", None)):
            return []
        return modules_of(name, model)
    except Exception:  # noqa: BLE001  (a model of the user's that is not finished has no names)
        return []


def module_names(spaces: Iterable[Mapping[str, Any]], loops: frozenset[str] | None = None) -> dict[int, str]:
    """Return {id: name} of the modules in some namespaces, earlier namespaces first: `net[0]`, `trainer.model`."""
    names: dict[int, str] = {}
    later: list[tuple[str, Any]] = []
    for space in spaces:
        order = _users_names(space)
        held = {name: list(_contents(name, space[name])) for name in order}
        passing = _passing(order, space, held, frozenset(), _known_loops(loops))
        pairs = [(name, space[name]) for name in order if name not in passing]
        for label, model in [*pairs, *(item for name, value in pairs for item in items_of(name, value) or ())]:
            for path, module in modules_in(label, model):
                names.setdefault(id(module), path)
        later += [(name, space[name]) for name in order if name in passing]
    for name, value in later:
        for path, module in modules_in(name, value):
            names.setdefault(id(module), path)
    return names


# ------------------------------------------------------------------------------------------- objects that compute like modules
class CalledObject(NamedTuple):
    """An object of a class that computes like a module: a weak reference to it, its name, the name of its class, and the code of
    its computing methods."""

    ref: weakref.ref[Any]
    path: str
    kind: str
    methods: tuple[CodeType, ...]


def called_objects(space: Mapping[str, Any]) -> dict[int, CalledObject]:
    """Return the objects in a namespace that compute like modules, with their names, `layers[0]`, by the id of their weak
    reference, which is unique for each object. As for tensors, the shortest path is used, and a loop variable last."""
    found: dict[int, CalledObject] = {}
    order = _users_names(space)
    held = {name: list(_contents(name, space[name])) for name in order}
    passing = _passing(order, space, held, frozenset(), _known_loops(None))
    looked: set[int] = set()
    for several in ([name for name in order if name not in passing], [name for name in order if name in passing]):
        own = ((name, name, space[name]) for name in several if name != "self")
        for _, label, item in (*own, *_inside(several, space, looked)):
            if methods := _methods(item):
                ref = weakref.ref(item)
                found.setdefault(id(ref), CalledObject(ref, label, _NAME.__get__(type(item)), methods))
    return found


def _methods(value: Any) -> tuple[CodeType, ...]:
    """Return the code of the methods by which an object computes that is not a module or tensor and supports weak references."""
    kind = type(value)
    if issubclass(kind, (type, ModuleType, FunctionType)) or not _OFFSET.__get__(kind):
        return ()
    found: list[CodeType] = []
    for one in _MRO.__get__(kind):
        for name in METHODS:
            method = _SPACE.__get__(one).get(name)
            while type(method) is FunctionType:
                found.append(method.__code__)
                method = method.__dict__.get("__wrapped__")
    return tuple(found) if found and not _defines(value, "named_parameters") and library_of(value) is None else ()
