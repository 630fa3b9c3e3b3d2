"""In-place versions of functions that return views. They turn the tensor itself into the view."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from gradlab.core.inplace import check_writable, invalidate_view
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.observers import OBSERVERS, notify_become_view
from gradlab.core.ports import ReshapedPort
from gradlab.core.storage import FRESH, View, mark_written, view_of
from gradlab.core.tensor import Tensor, constant

F = TypeVar("F", bound=Callable[..., Tensor])
RAISES = "RuntimeError\n    If this tensor is a leaf that requires a gradient, or a view of such a leaf."


def in_place_view(node: str | Callable[..., str]) -> Callable[[F], F]:
    """Give a function that returns a view an in-place twin, which turns the tensor itself into that view.

    `node` is the node's name, or a function that returns the name for the arguments of the call.
    """

    def with_twin(function: F) -> F:
        def twin(self: Tensor, *args: Any, **options: Any) -> Tensor:
            title = node if isinstance(node, str) else node(*args, **options)
            return become_view(self, lambda x: function(x, *args, **options), title)

        twin.twin_doc = f"In-place version of `{function.__name__}`."  # type: ignore[attr-defined]
        twin.refuses = RAISES  # type: ignore[attr-defined]
        function.twin = twin  # type: ignore[attr-defined]
        return function

    return with_twin


def become_view(self: Tensor, view: Callable[[Tensor], Tensor], node: str) -> Tensor:
    """Turn a tensor into a view of its old self, in place. Its other views get the old self as their base."""
    check_writable(self)
    old = constant(self.array)
    old.node, old.storage = self.node, self.storage
    record = view_of(self)
    others = (
        []
        if self.storage is FRESH or record is not None
        else [
            (other, v) for ref in self.storage.views if (other := ref()) is not None and (v := view_of(other)) and v.base is self
        ]
    )
    new = view(old)
    step = view_of(new)
    assert step is not None
    op, meta = step.steps[-1]
    self.array = new.array
    if type(self.node) is AccumulateGrad:  # a leaf under no_grad stays a leaf
        self.node.shape = new.array.shape
    elif new.node is not None:
        renamed = op.with_node(node).record(old, **meta)
        self.node = renamed.node
        self.node.storage = self.storage
    elif self.node is not None:
        self.node = ReshapedPort(self.node, self)
    for other, v in others:
        v.base = old
        if mode.grad:
            invalidate_view(other, v, old.node)
    if record is not None:
        self.view_record = View(record.base, (*record.steps, (op, meta)), record.refusal)  # type: ignore[attr-defined]
    elif others:
        self.storage = new.storage
        self.view_record = View(old, ((op, meta),), "" if mode.grad else "no_grad")  # type: ignore[attr-defined]
        new.storage.views.append(weakref.ref(self))
    mark_written(self)
    if OBSERVERS:
        notify_become_view(self, old, op, meta)
    return self
