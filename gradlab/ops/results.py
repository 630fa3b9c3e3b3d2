"""Tuples with named fields, as functions with several results return them: `gradlab.return_types.max`.

A type is a tuple whose members have names too, printed as torch prints its own and made, as there, from one sequence:
`MAX((values, indices))`. Types are declared where the function is, by `result_type`, which also lists them for
`gradlab.return_types` (where pickle finds them again). Functions that return values and their places find the places on the
array and pick the elements there by one primitive, under torch's name for the node: `Picking`.
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

TYPES: dict[str, type[Result]] = {}


class Result(tuple[Any, ...]):
    """Several results of one function, by position or by name."""

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
    """The type `gradlab.return_types.<name>` with these fields."""
    if name in TYPES:
        return TYPES[name]
    members: dict[str, Any] = {"__slots__": (), "_fields": fields, "__module__": "gradlab.return_types"}
    result = TYPES[name] = type(name, (Result,), members | {field: property(itemgetter(i)) for i, field in enumerate(fields)})
    return result


class ValuesAndIndices:
    """How a function along one axis hands out values and indices: the result type and the node under torch's name."""

    def __init__(self, name: str, node: str) -> None:
        self.result = result_type(name, "values", "indices")
        self.pick, self.whole = gather.named(node), el.clone.named(node)

    def __call__(self, input: Tensor, axis: int, indices: Any, keepdim: bool) -> Any:
        """`indices` with the axis in place, one or several along it."""
        values = self.pick.record(input, axis=axis, indices=indices, keepdims=keepdim)
        places = constant(as_long(indices if keepdim else wrap(indices.squeeze(axis))))
        if OBSERVERS:
            notify_detach(places, input, "position")
        return self.result((values, places))

    def of_scalar(self, input: Tensor) -> Any:
        """Of a 0-d tensor: itself, at 0."""
        return self.result((self.whole.record(input), constant(namespace_of[type(input.array)].zeros((), dtype=np.int64))))


def undifferentiable(node: str, derivative: str) -> Any:
    """Records `array` as the result of a tensor whose derivative torch refuses: the refusal comes when it is asked for, not as
    a gradient that is silently zero. Called as f(input, value=array)."""

    def refuse(*arguments: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{derivative}' is not implemented. detach() its argument if no gradient is meant to pass."
        )

    op: Any = el.fill.named(node)
    op.forward, op.reads = (lambda xp, x, *, value: value), "all"
    op.vjp = op.scalar_vjp = op.traced_vjp = op.jvp = op.traced_jvp = refuse
    return op.record
