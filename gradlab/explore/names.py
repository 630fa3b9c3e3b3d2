"""The user's own names for tensors: `loss`, `params[0]`, `model.fc1.weight`.

A namespace is searched in this order: what is bound to a name; what lists, tuples and dictionaries bound to a name hold, and what
`named_parameters()` of a model says; the parameters of models in containers; what objects have in their own dictionaries, and
objects and containers in these. No code of the user's runs but `named_parameters`: reading an attribute may run some, and so does
`isinstance`. What an object is, is asked of its type, and its dictionary is taken by the slot that Python itself made for it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from types import FunctionType, GetSetDescriptorType, ModuleType
from typing import Any

from gradlab.explore.libraries import library_of

HELD = 1000  # how many items of one container are looked at
ITEMS, DEEP = 5000, 4  # how much in objects and what they hold is looked at, and how many steps deep
SIMPLE = (str, int, float, bool, complex, bytes, type(None))
OURS = ("gradlab.explore.", "gradlab.notebook.")  # reports and their like hold much, and nothing that wants a name

# What a class is made of, as Python itself tells it, whatever its metaclass does.
_MRO, _SPACE, _NAME = (type.__dict__[slot] for slot in ("__mro__", "__dict__", "__name__"))


def names_in(namespace: Mapping[str, Any], first: Iterable[str] = ()) -> dict[str, Any]:
    """{name: tensor}, one name for each tensor.

    A plain name is preferred to `params[0]`, one of `first` to any other, an earlier binding to a later. Names that start
    with an underscore (IPython keeps results under such) are not the user's.
    """
    order = list(dict.fromkeys([*(name for name in first if name in namespace), *namespace]))
    order = [name for name in order if isinstance(name, str) and name.replace(".", "_").isidentifier()]
    order = [name for name in order if not name.startswith("_") and name not in ("In", "Out")]
    names: dict[str, Any] = {}
    seen: set[int] = set()

    def add(name: str, value: Any) -> None:
        if id(value) not in seen and library_of(value) is not None:
            seen.add(id(value))
            names[name] = value

    held = {name: list(_held(name, namespace[name])) for name in order}
    passing = _left_over(order, namespace, held) - set(first)
    for name in order:
        if name not in passing:
            add(name, namespace[name])
    for items in held.values():
        for label, value in items:
            add(label, value)
    for name in order:
        for label, value in _held_deeper(name, namespace[name]):
            add(label, value)
    for label, value in _of_objects(order, namespace):
        add(label, value)
    for name in passing:
        add(name, namespace[name])
    return names


def _left_over(order: Iterable[str], namespace: Mapping[str, Any], held: Mapping[str, list[tuple[str, Any]]]) -> set[str]:
    """The names that a loop left behind, as `p` of `for p in model.parameters()`: they stand for the last item of something that
    was bound before, of which no other item has a name."""
    at: dict[int, str] = {}
    place: dict[str, int] = {}
    for i, name in enumerate(order):
        at.setdefault(id(namespace[name]), name)
        place[name] = i
    labels = set()
    for holder, items in held.items():
        if len(items) > 1 and not is_users(namespace[holder]) and not any(id(item) in at for _, item in items[:-1]):
            name = at.get(id(items[-1][1]), holder)
            if place[name] > place[holder]:
                labels.add(name)
    return labels


def _held(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The items of a container that is bound to a name, or the parameters of a model."""
    items = items_of(name, value)
    return _parameters(name, value) if items is None else items


def _held_deeper(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The parameters of the models in a container."""
    return [parameter for label, item in items_of(name, value) or () for parameter in _parameters(label, item)]


def _of_objects(order: Iterable[str], namespace: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """What objects hold that are neither containers nor tensors: `regression.weight`, `net.layers[0].neurons[2].w`."""
    waiting = deque((name, namespace[name], 0) for name in order)
    looked: set[int] = set()
    room = ITEMS
    while waiting and room > 0:
        name, value, depth = waiting.popleft()
        if id(value) in looked or library_of(value) is not None:
            continue
        looked.add(id(value))
        items = items_of(name, value)
        items = _own(name, value) if items is None else items
        room -= len(items) if depth else 0
        for label, item in items:
            if library_of(item) is None:
                if depth < DEEP and type(item) not in SIMPLE:
                    waiting.append((label, item, depth + 1))
            elif item.requires_grad:
                yield label, item


def _own(name: str, value: Any) -> list[tuple[str, Any]]:
    """What an object's own dictionary holds under names that do not begin with an underscore."""
    kind = type(value)
    if issubclass(kind, (type, ModuleType, FunctionType)):
        return []
    for one in _MRO.__get__(kind):
        space = _SPACE.__get__(one)
        if str(space.get("__module__", "")).startswith(OURS):
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
    """The items of a list, tuple or dictionary, or the attributes of an object of the program's own class, as one writes them;
    None of anything else."""
    if type(value) in (list, tuple):
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:HELD])]
    if type(value) is dict:
        return [(f"{name}[{key!r}]", item) for key, item in islice(value.items(), HELD) if type(key) in (str, int, bool)]
    if name != "self" and is_users(value):
        return _own(name, value)
    return None


def is_users(value: Any) -> bool:
    """Whether it is an object of a plain class that the program defines, a trainer that holds a model, say."""
    return type(type(value)) is type and type(value).__module__ == "__main__" and not _defines(value, "named_parameters")


def with_held(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace, and what objects of the program's own classes in it hold, as `trainer.model`."""
    held = {
        label: item
        for name, value in namespace.items()
        if isinstance(name, str) and not name.startswith("_") and is_users(value)
        for label, item in items_of(name, value) or ()
    }
    return {**namespace, **held}


def _defines(value: Any, name: str) -> bool:
    """Whether the class of an object, or one that it derives from, defines a name."""
    return any(name in _SPACE.__get__(one) for one in _MRO.__get__(type(value)))


def _parameters(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The parameters of a model; none of anything else."""
    if issubclass(type(value), (type, ModuleType)):
        return []
    try:
        if not callable(getattr(type(value), "named_parameters", None)):
            return []
        parameters = [(path, parameter) for path, parameter in islice(value.named_parameters(), HELD)]
    except Exception:  # noqa: BLE001  (a model of the user's that is not finished: it then has no names for us)
        return []
    return [(attribute(name, path), parameter) for path, parameter in parameters if type(path) is str]


def attribute(name: str, path: str) -> str:
    """ "0.weight" of `net` as `net[0].weight`, for sequences of layers."""
    for part in path.split("."):
        name += f"[{part}]" if part.isdecimal() else f".{part}"
    return name


def held_by_self(value: Any) -> list[tuple[str, Any]]:
    """What the attributes of `self` hold in a class of the user's, "self.model"; nothing of a model's own."""
    return [] if value is None or _defines(value, "named_parameters") else _own("self", value)


def owners_in(space: Mapping[str, Any]) -> dict[str, Any]:
    """Of some names those that may hold what learns: models, optimizers, leaves that require grad, and containers of them."""
    return {name: value for name, value in space.items() if type(name) is str and name[:1] != "_" and _owns(name, value)}


def _owns(name: str, value: Any, deeper: bool = True) -> bool:
    if issubclass(type(value), (type, ModuleType)):
        return False
    if (library := library_of(value)) is not None:
        return bool(value.requires_grad) and library.is_leaf(value)
    if _defines(value, "named_parameters") or any(_NAME.__get__(one) == "Optimizer" for one in _MRO.__get__(type(value))):
        return True
    return deeper and any(_owns(label, item, False) for label, item in items_of(name, value) or ())


def caller_names(depth: int = 1) -> dict[str, Any]:
    """The names of the frame `depth` above the function that calls this: its locals, then its globals."""
    frame = sys._getframe(depth + 1)
    return names_in({**frame.f_globals, **frame.f_locals}, first=frame.f_locals)


def modules_in(name: str, model: Any) -> list[tuple[str, Any]]:
    """A model and all its modules, with their paths from its name; of anything else nothing."""
    try:
        if not callable(getattr(type(model), "named_modules", None)):
            return []
        return [(f"{name}.{path}" if path else name, module) for path, module in model.named_modules()]
    except Exception:  # noqa: BLE001  (a model of the user's that is not finished has no names for us)
        return []
