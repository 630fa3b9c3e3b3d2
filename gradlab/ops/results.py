"""Named tuples for functions with several results, such as `gradlab.return_types.max`.

A type is a tuple with named fields. As in PyTorch, `MAX((values, indices))` creates one from a sequence, and the printed form is
the same. `result_type` declares a type next to the function that returns it and registers it for `gradlab.return_types`, where
pickle looks it up. A function that returns values and indices finds the indices on the array. `ValuesAndIndices` then picks the
elements with one primitive, under PyTorch's name for the node.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.backend.sizes import as_long
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.tensor import Tensor, constant
from gradlab.rules import elementwise as el
from gradlab.rules.indexing import gather

RESULT_TYPES: dict[str, type[Result]] = {}


class Result(tuple[Any, ...]):
    """Several results of one function, accessible by position or by name."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:  # for type checkers: the fields are properties
        raise AttributeError(
            f"'gradlab.return_types.{type(self).__name__}' object has no attribute {name!r}. It has: {', '.join(self._fields)}."
        )

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._fields, self, strict=True))
        return f"gradlab.return_types.{type(self).__name__}(\n{parts})"


def result_type(name: str, *fields: str) -> type[Result]:
    """Return the type `gradlab.return_types.<name>` with these fields, and create it on first use."""
    if name in RESULT_TYPES:
        return RESULT_TYPES[name]
    members: dict[str, Any] = {"__slots__": (), "_fields": fields, "__module__": "gradlab.return_types"}
    result = RESULT_TYPES[name] = type(
        name, (Result,), members | {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    )
    return result


class ValuesAndIndices:
    """Values and indices along one axis: the result type of the function and the primitives that record its node."""

    def __init__(self, name: str, node: str) -> None:
        self.result = result_type(name, "values", "indices")
        self.pick, self.whole = gather.with_node(node), el.clone.with_node(node)

    def __call__(self, input: Tensor, axis: int, indices: Any, keepdim: bool) -> Any:
        """Pick the elements at `indices`. The array of indices keeps the axis, with one or several indices along it."""
        values = self.pick.record(input, axis=axis, indices=indices, keepdims=keepdim)
        places = constant(as_long(indices if keepdim else wrap(indices.squeeze(axis))))
        if OBSERVERS:
            notify_detach(places, input, "position")
        return self.result((values, places))

    def of_scalar(self, input: Tensor) -> Any:
        """Return the result for a 0-d tensor: the tensor itself, at index 0."""
        return self.result((self.whole.record(input), constant(namespace_of[type(input.array)].zeros((), dtype=np.int64))))


def undifferentiable(node: str, derivative: str) -> Any:
    """Return a function f(input, value=array) that records `array` as a result whose derivative PyTorch does not implement.

    The error is raised when the gradient is computed, so that the gradient is not silently zero.
    """

    def refuse(*arguments: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{derivative}' is not implemented. Call detach() on its argument if no gradient is needed."
        )

    op: Any = el.fill.with_node(node)
    op.forward, op.reads = (lambda xp, x, *, value: value), "all"
    op.vjp = op.scalar_vjp = op.traced_vjp = op.jvp = op.traced_jvp = refuse
    return op.record
