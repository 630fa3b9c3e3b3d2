"""The user's own names for tensors: `loss`, `params[0]`, `model.fc1.weight`.

A namespace is searched three steps deep: what is bound to a name, what lists, tuples, dictionaries and objects of the user's own
classes bound to a name hold, and what `named_parameters()` of a model says, of one that has a name before one in a list. Nothing
else is looked into: reading attributes of unknown objects may run code, and so does `isinstance`. What an object is, is asked of
its type.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from types import ModuleType
from typing import Any

from gradlab.explore.libraries import library_of

HELD = 1000  # how many items of one container are looked at


def names_in(namespace: Mapping[str, Any], first: Iterable[str] = ()) -> dict[str, Any]:
    """{name: tensor}, one name for each tensor.

    A plain name is preferred to `params[0]`, one of `first` to any other, an earlier binding to a later. Names that start
    with an underscore (IPython keeps results under such) are not the user's.
    """
    order = list(dict.fromkeys([*(name for name in first if name in namespace), *namespace]))
    order = [name for name in order if isinstance(name, str) and name.replace(".", "_").isidentifier()]
    order = [name for name in order if not name.startswith("_") and name not in ("In", "Out")]
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def add(name: str, value: Any) -> None:
        if id(value) not in seen and library_of(value) is not None:
            seen.add(id(value))
            found[name] = value

    for name in order:
        add(name, namespace[name])
    for held in (_held, _held_deeper):
        for name in order:
            for label, value in held(name, namespace[name]):
                add(label, value)
    return found


def _held(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The items of a container that is bound to a name, or the parameters of a model."""
    items = items_of(name, value)
    return _parameters(name, value) if items is None else items


def _held_deeper(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """The parameters of the models in a container."""
    return [found for label, item in items_of(name, value) or () for found in _parameters(label, item)]


def items_of(name: str, value: Any) -> list[tuple[str, Any]] | None:
    """The items of a list, tuple or dictionary, or the attributes of an object of the program's own class, as one writes them;
    None of anything else."""
    if type(value) in (list, tuple):
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:HELD])]
    if type(value) is dict:
        return [(f"{name}[{key!r}]", item) for key, item in islice(value.items(), HELD) if type(key) in (str, int, bool)]
    if name != "self" and is_users(value):
        return [(f"{name}.{key}", item) for key, item in islice(vars(value).items(), HELD) if not key.startswith("_")]
    return None


def is_users(value: Any) -> bool:
    """Whether it is an object of a plain class that the program defines, a trainer that holds a model, say."""
    kind = type(value)
    own = kind.__module__ == "__main__" and type(kind) is type and not hasattr(kind, "named_parameters")
    return own and type(getattr(value, "__dict__", None)) is dict


def with_held(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace, and what objects of the program's own classes in it hold, as `trainer.model`."""
    held = {
        label: item
        for name, value in namespace.items()
        if isinstance(name, str) and not name.startswith("_") and is_users(value)
        for label, item in items_of(name, value) or ()
    }
    return {**namespace, **held}


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
    return [(_attribute(name, path), parameter) for path, parameter in parameters if type(path) is str]


def _attribute(name: str, path: str) -> str:
    """ "0.weight" of `net` as `net[0].weight`, for sequences of layers."""
    for part in path.split("."):
        name += f"[{part}]" if part.isdecimal() else f".{part}"
    return name


def held_by_self(value: Any) -> list[tuple[str, Any]]:
    """What the attributes of `self` hold in a class of the user's, "self.model"; nothing of a model's own."""
    held = getattr(value, "__dict__", None) if not callable(getattr(type(value), "named_parameters", None)) else None
    return [(f"self.{name}", item) for name, item in held.items()] if type(held) is dict else []


def owners_in(space: Mapping[str, Any]) -> dict[str, Any]:
    """Of some names those that may hold what learns: models, optimizers, leaves that require grad, and containers of them."""
    return {name: value for name, value in space.items() if not name.startswith("_") and _owns(name, value)}


def _owns(name: str, value: Any, deeper: bool = True) -> bool:
    if issubclass(type(value), (type, ModuleType)):
        return False
    if library_of(value) is not None:
        return bool(value.is_leaf and value.requires_grad)
    if callable(getattr(type(value), "named_parameters", None)) or any(x.__name__ == "Optimizer" for x in type(value).__mro__):
        return True
    return deeper and any(_owns(label, item, False) for label, item in items_of(name, value) or ())


def caller_names(depth: int = 1) -> dict[str, Any]:
    """The names of the frame `depth` above the function that calls this: its locals, then its globals."""
    frame = sys._getframe(depth + 1)
    return names_in({**frame.f_globals, **frame.f_locals}, first=frame.f_locals)
