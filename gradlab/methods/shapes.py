"""The same elements in another shape, order or place; parts, diagonals and windows of a tensor."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradlab.core.inplace import check_writable, invalidated
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.ports import Reshaped
from gradlab.core.storage import FRESH, View, view_of, wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED, became
from gradlab.methods.writing import twin
from gradlab.ops import broadcasting, copies, diagonals, permutation, rearrangement, reductions, shapes, splits


class Shapes:
    """Views and copies."""

    array: Any

    reshape, view, flatten, unflatten, ravel = shapes.reshape, shapes.view, shapes.flatten, shapes.unflatten, shapes.ravel
    squeeze, unsqueeze, expand, expand_as, broadcast_to = (
        shapes.squeeze,
        shapes.unsqueeze,
        broadcasting.expand,
        broadcasting.expand_as,
        broadcasting.broadcast_to,
    )
    transpose, swapaxes, swapdims, permute, movedim, moveaxis, t, adjoint = (
        permutation.transpose,
        permutation.swapaxes,
        permutation.swapdims,
        permutation.permute,
        permutation.movedim,
        permutation.moveaxis,
        permutation.t,
        permutation.adjoint,
    )
    clone = copies.clone
    repeat, tile, repeat_interleave, roll = (
        rearrangement.repeat,
        rearrangement.tile,
        rearrangement.repeat_interleave,
        rearrangement.roll,
    )
    flip, fliplr, flipud, rot90 = rearrangement.flip, rearrangement.fliplr, rearrangement.flipud, rearrangement.rot90
    unfold, as_strided = rearrangement.unfold, rearrangement.as_strided
    split, split_with_sizes, chunk, tensor_split = splits.split, splits.split_with_sizes, splits.chunk, splits.tensor_split
    unsafe_chunk, unsafe_split, unsafe_split_with_sizes = (
        splits.unsafe_chunk,
        splits.unsafe_split,
        splits.unsafe_split_with_sizes,
    )
    hsplit, vsplit, dsplit, unbind, narrow, select = (
        splits.hsplit,
        splits.vsplit,
        splits.dsplit,
        splits.unbind,
        splits.narrow,
        splits.select,
    )
    diag, diagonal, diag_embed, diagflat, trace = (
        diagonals.diag,
        diagonals.diagonal,
        diagonals.diag_embed,
        diagonals.diagflat,
        diagonals.trace,
    )
    tril, triu, tril_, triu_ = diagonals.tril, diagonals.triu, twin(diagonals.tril), twin(diagonals.triu)
    diagonal_scatter, select_scatter, slice_scatter = (
        diagonals.diagonal_scatter,
        diagonals.select_scatter,
        diagonals.slice_scatter,
    )
    fill_diagonal_ = diagonals.fill_diagonal_

    def reshape_as(self: Any, other: Tensor) -> Tensor:
        """In the shape of `other`."""
        return shapes.reshape(self, other.array.shape)

    def sum_to_size(self: Any, *size: Any) -> Tensor:
        """The sum over the axes that broadcasting a tensor of that size to this one's shape would make or lengthen."""
        return reductions.sum_to_size(self, shapes.ints("sum_to_size", "size", size))

    def view_as(self: Any, other: Tensor) -> Tensor:
        """The same memory in the shape of `other`."""
        return shapes.view(self, other.array.shape)

    # ---------------------------------------------------------------------------------------- the tensor itself, as its view
    def t_(self: Any) -> Tensor:
        """`t`, of this very tensor."""
        return become(self, permutation.t, "TBackward1")

    def transpose_(self: Any, dim0: int, dim1: int) -> Tensor:
        """`transpose`, of this very tensor."""
        return become(self, lambda x: permutation.transpose(x, dim0, dim1), "TransposeBackward1")

    def swapaxes_(self: Any, axis0: int, axis1: int) -> Tensor:
        """`swapaxes`, of this very tensor."""
        return self.transpose_(axis0, axis1)

    def swapdims_(self: Any, dim0: int, dim1: int) -> Tensor:
        """`swapdims`, of this very tensor."""
        return self.transpose_(dim0, dim1)

    def squeeze_(self: Any, dim: Any = None) -> Tensor:
        """`squeeze`, of this very tensor."""
        number = 3 if dim is None else 4 if isinstance(dim, int) else 5
        return become(self, lambda x: shapes.squeeze(x, dim), f"SqueezeBackward{number}")

    def unsqueeze_(self: Any, dim: int) -> Tensor:
        """`unsqueeze`, of this very tensor."""
        return become(self, lambda x: shapes.unsqueeze(x, dim), "UnsqueezeBackward1")


def become(self: Tensor, view: Callable[[Tensor], Tensor], node: str) -> Tensor:
    """Make a tensor a view of what it was, in place: its other views keep the old shape as their base."""
    check_writable(self)
    old = constant(self.array)
    old.node, old.storage = self.node, self.storage
    noted = view_of(self)
    others = (
        []
        if self.storage is FRESH or noted is not None
        else [
            (other, v) for ref in self.storage.views if (other := ref()) is not None and (v := view_of(other)) and v.base is self
        ]
    )
    made = view(old)
    step = view_of(made)
    assert step is not None
    op, meta = step.steps[-1]
    self.array = made.array
    if type(self.node) is AccumulateGrad:  # a leaf, under no_grad: it stays one
        self.node.shape = made.array.shape
    elif made.node is not None:
        renamed = op.named(node).record(old, **meta)
        self.node = renamed.node
        self.node.storage = self.storage
    elif self.node is not None:
        self.node = Reshaped(self.node, self)
    for other, v in others:
        v.base = old
        if mode.grad:
            invalidated(other, v, old.node)
    if noted is not None:
        self.view_record = View(noted.base, (*noted.steps, (op, meta)), noted.refusal)
    elif others:
        self.storage = made.storage
        self.view_record = View(old, ((op, meta),), "" if mode.grad else "no_grad")
        made.storage.views.append(weakref.ref(self))
    wrote(self)
    if WATCHED:
        became(self, old, op, meta)
    return self
