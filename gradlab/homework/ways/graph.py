"""Call a function of a graph on the last tensor of one that is built here from a recipe.

A recipe is a list of steps, each [operation, …]: ["leaf", numbers, requires_grad], ["times", i, number, how often], [name of a
method, i] or [name of a method, i, j], where i and j are earlier steps. A tensor of the recipe in the result, recognized by
identity, is returned as {"step": its number}; another one is returned unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from gradlab.core.tensor import Tensor, constant

Recipe = list[list[Any]]
METHODS = frozenset(("add", "sub", "mul", "exp", "sin", "cos", "tanh", "detach", "sum"))


def use(function: Callable[[Tensor], Any], recipe: Recipe, names: Mapping[str, int]) -> dict[str, Any]:
    """Call the function on the recipe's last tensor. Return {"deep": True} for a RecursionError."""
    tensors = build(recipe)
    try:
        value = function(tensors[-1])
        if isinstance(value, (Iterator, Set)):
            value = list(value)
    except RecursionError:
        return {"deep": True}
    step = {id(tensor): k for k, tensor in enumerate(tensors)}
    if isinstance(value, (list, tuple)):
        return {"value": [{"step": step[id(one)]} if id(one) in step else one for one in value]}
    return {"value": {"step": step[id(value)]} if id(value) in step else value}


def case_arguments(recipe: Recipe, names: Mapping[str, int]) -> dict[str, Any]:
    """Return the last tensor, as y, and the named ones."""
    tensors = build(recipe)
    return {"y": tensors[-1]} | {name: tensors[k] for name, k in names.items()}


def build(recipe: Recipe) -> list[Tensor]:
    """Return the tensor of each step.

    Raises
    ------
    ValueError
        If a step is invalid.
    """
    tensors: list[Tensor] = []
    for operation, *args in recipe:
        if operation == "leaf":
            tensor = constant(args[0])
            tensors.append(tensor.requires_grad_() if args[1] else tensor)
        elif operation == "times":
            tensor, number, often = tensors[args[0]], args[1], args[2]
            for _ in range(often):
                tensor = tensor * number
            tensors.append(tensor)
        elif operation in METHODS:
            tensors.append(getattr(tensors[args[0]], operation)(*(tensors[k] for k in args[1:])))
        else:
            raise ValueError(f"{operation!r} is not a step of a recipe.")
    return tensors
