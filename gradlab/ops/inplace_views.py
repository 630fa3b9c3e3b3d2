"""A tensor that becomes a view of what it was: the in-place twins of functions that make views."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from gradlab.core.inplace import check_writable, invalidated
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.observers import OBSERVERS, notify_become_view
from gradlab.core.ports import Reshaped
from gradlab.core.storage import FRESH, View, view_of, wrote
from gradlab.core.tensor import Tensor, constant

F = TypeVar("F", bound=Callable[..., Tensor])
REFUSED = "RuntimeError\n    If this tensor is a leaf that requires a gradient, or a view of one."


def in_place_view(node: str | Callable[..., str]) -> Callable[[F], F]:
    """Give a function that makes a view its in-place twin, which makes the tensor itself that view. `node` is the name of the
    node, or gives it, of the arguments."""

    def with_twin(function: F) -> F:
        def twin(self: Tensor, *args: Any, **options: Any) -> Tensor:
            title = node if isinstance(node, str) else node(*args, **options)
            return become(self, lambda x: function(x, *args, **options), title)

        twin.twin_doc = f"`{function.__name__}`, of this very tensor."  # type: ignore[attr-defined]
        twin.refuses = REFUSED  # type: ignore[attr-defined]
        function.twin = twin  # type: ignore[attr-defined]
        return function

    return with_twin


def become(self: Tensor, view: Callable[[Tensor], Tensor], node: str) -> Tensor:
    """Make a tensor a view of what it was, in place: its other views keep the old shape as their base."""
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
    if type(self.node) is AccumulateGrad:  # a leaf, under no_grad: it stays one
        self.node.shape = new.array.shape
    elif new.node is not None:
        renamed = op.named(node).record(old, **meta)
        self.node = renamed.node
        self.node.storage = self.storage
    elif self.node is not None:
        self.node = Reshaped(self.node, self)
    for other, v in others:
        v.base = old
        if mode.grad:
            invalidated(other, v, old.node)
    if record is not None:
        self.view_record = View(record.base, (*record.steps, (op, meta)), record.refusal)  # type: ignore[attr-defined]
    elif others:
        self.storage = new.storage
        self.view_record = View(old, ((op, meta),), "" if mode.grad else "no_grad")  # type: ignore[attr-defined]
        new.storage.views.append(weakref.ref(self))
    wrote(self)
    if OBSERVERS:
        notify_become_view(self, old, op, meta)
    return self
