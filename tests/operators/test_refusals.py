"""Check the documented errors of operators on shapes, joins, splits, diagonals, indices and masks.

Each row is one error. Torch raises the same type of error, except for the rows in DIFFERENT_IN_TORCH.
"""

from __future__ import annotations

import pytest

import gradlab as gl
from gradlab.core.operator import OPERATORS

# Operator, call, error.
REFUSALS = [
    ("reshape", "gl.reshape(3, (1,))", TypeError),
    ("reshape", "gl.reshape(gl.zeros(2), (1.5,))", TypeError),
    ("reshape", "gl.reshape(gl.zeros(2), (3,))", RuntimeError),
    ("reshape", "gl.reshape(gl.zeros(2), (-1, -1))", RuntimeError),
    ("view", "gl.zeros(2).view()", TypeError),
    ("view", "gl.zeros(2, 3).t().view(6)", RuntimeError),
    ("view", "gl.zeros(3).half().view(gl.float32)", RuntimeError),
    ("reshape_as", "gl.zeros(2).reshape_as(gl.zeros(3))", RuntimeError),
    ("view_as", "gl.zeros(2).view_as(gl.zeros(3))", RuntimeError),
    ("flatten", "gl.flatten(gl.zeros(2, 2), 2)", IndexError),
    ("flatten", "gl.flatten(gl.zeros(2, 2), 1, 0)", RuntimeError),
    ("unflatten", "gl.unflatten(gl.zeros(2), 1, (2,))", IndexError),
    ("unflatten", "gl.unflatten(gl.zeros(2), 0, (3,))", RuntimeError),
    ("unflatten", "gl.unflatten(gl.zeros(2), 0, ())", RuntimeError),
    ("squeeze", "gl.squeeze(gl.zeros(1), 1)", IndexError),
    ("squeeze", "gl.squeeze(gl.zeros(1, 1), (0, 0))", RuntimeError),
    ("unsqueeze", "gl.unsqueeze(gl.zeros(1), 2)", IndexError),
    ("atleast_1d", "gl.atleast_1d(3)", TypeError),
    ("transpose", "gl.transpose(gl.zeros(2), 0, 1)", IndexError),
    ("swapaxes", "gl.swapaxes(gl.zeros(2), 0, 1)", IndexError),
    ("swapdims", "gl.swapdims(gl.zeros(2), 0, 1)", IndexError),
    ("permute", "gl.permute(gl.zeros(2, 2), (0, 2))", IndexError),
    ("permute", "gl.permute(gl.zeros(2, 2), (0,))", RuntimeError),
    ("permute", "gl.permute(gl.zeros(2, 2), (0, 0))", RuntimeError),
    ("movedim", "gl.movedim(gl.zeros(2, 2), 2, 0)", IndexError),
    ("movedim", "gl.movedim(gl.zeros(2, 2), (0, 1), (0,))", RuntimeError),
    ("movedim", "gl.movedim(gl.zeros(2, 2), (0, 0), (0, 1))", RuntimeError),
    ("t", "gl.t(gl.zeros(1, 1, 1))", RuntimeError),
    ("adjoint", "gl.adjoint(gl.zeros(2))", RuntimeError),
    ("expand", "gl.zeros(2).expand(3)", RuntimeError),
    ("expand", "gl.zeros(2, 2).expand(2)", RuntimeError),
    ("expand_as", "gl.zeros(2).expand_as(gl.zeros(3))", RuntimeError),
    ("broadcast_to", "gl.broadcast_to(gl.zeros(2), (3,))", RuntimeError),
    ("broadcast_tensors", "gl.broadcast_tensors(3)", TypeError),
    ("broadcast_tensors", "gl.broadcast_tensors(gl.zeros(2), gl.zeros(3))", RuntimeError),
    ("broadcast_shapes", "gl.broadcast_shapes((2,), (3,))", RuntimeError),
    ("broadcast_shapes", "gl.broadcast_shapes((-1,))", RuntimeError),
    ("sum_to_size", "gl.zeros(2).sum_to_size(3)", RuntimeError),
    ("repeat", "gl.zeros(2, 2).repeat(2)", RuntimeError),
    ("repeat", "gl.zeros(2).repeat(-1)", RuntimeError),
    ("tile", "gl.tile(gl.zeros(2), (-1,))", RuntimeError),
    ("repeat_interleave", "gl.repeat_interleave(gl.zeros(2), 2, 1)", IndexError),
    ("repeat_interleave", "gl.repeat_interleave(gl.zeros(2), -1)", RuntimeError),
    ("repeat_interleave", "gl.repeat_interleave(gl.zeros(2), gl.tensor([1, 2, 3]))", RuntimeError),
    ("roll", "gl.roll(gl.zeros(2), 1, 1)", IndexError),
    ("roll", "gl.roll(gl.zeros(2), (1, 1), 0)", RuntimeError),
    ("flip", "gl.flip(gl.zeros(2), (1,))", IndexError),
    ("flip", "gl.flip(gl.zeros(2), (0, 0))", RuntimeError),
    ("fliplr", "gl.fliplr(gl.zeros(2))", RuntimeError),
    ("flipud", "gl.flipud(gl.tensor(1.0))", RuntimeError),
    ("rot90", "gl.rot90(gl.zeros(2, 2), 1, (0, 3))", IndexError),
    ("rot90", "gl.rot90(gl.zeros(2))", RuntimeError),
    ("rot90", "gl.rot90(gl.zeros(2, 2), 1, (0, 0))", RuntimeError),
    ("unfold", "gl.zeros(2).unfold(1, 1, 1)", IndexError),
    ("unfold", "gl.zeros(2).unfold(0, 3, 1)", RuntimeError),
    ("unfold", "gl.zeros(2).unfold(0, 1, 0)", RuntimeError),
    ("as_strided", "gl.as_strided(gl.zeros(2), (2,), (-1,))", RuntimeError),
    ("as_strided", "gl.as_strided(gl.zeros(2), (2,), (1, 1))", RuntimeError),
    ("as_strided", "gl.as_strided(gl.zeros(2), (3,), (1,))", RuntimeError),
    ("split", "gl.split(gl.zeros(2), 1, 1)", IndexError),
    ("split", "gl.split(gl.zeros(2), -1)", RuntimeError),
    ("split", "gl.split(gl.zeros(2), [1, 2])", RuntimeError),
    ("split", "gl.split(gl.tensor(1.0), 1)", RuntimeError),
    ("chunk", "gl.chunk(gl.zeros(2), 0)", RuntimeError),
    ("tensor_split", "gl.tensor_split(gl.zeros(2), 0)", RuntimeError),
    ("tensor_split", "gl.tensor_split(gl.zeros(2), gl.tensor([1.0]))", RuntimeError),
    ("hsplit", "gl.hsplit(gl.zeros(2, 3), 2)", RuntimeError),
    ("vsplit", "gl.vsplit(gl.zeros(2), 2)", RuntimeError),
    ("dsplit", "gl.dsplit(gl.zeros(2, 2), 2)", RuntimeError),
    ("unbind", "gl.unbind(gl.zeros(2), 1)", IndexError),
    ("narrow", "gl.narrow(gl.zeros(2), 0, 3, 0)", IndexError),
    ("narrow", "gl.narrow(gl.zeros(2), 0, 0, 3)", RuntimeError),
    ("narrow", "gl.narrow(gl.tensor(1.0), 0, 0, 1)", RuntimeError),
    ("select", "gl.select(gl.zeros(2), 0, 2)", IndexError),
    ("select", "gl.select(gl.tensor(1.0), 0, 0)", IndexError),
    ("cat", "gl.cat([gl.zeros(2)], 1)", IndexError),
    ("cat", "gl.cat([gl.zeros(2, 2), gl.zeros(3, 3)])", RuntimeError),
    ("cat", "gl.cat(3)", TypeError),
    ("stack", "gl.stack([gl.zeros(2), gl.zeros(3)])", RuntimeError),
    ("stack", "gl.stack([gl.zeros(2)], 2)", IndexError),
    ("stack", "gl.stack([])", RuntimeError),
    ("stack", "gl.stack(3)", TypeError),
    ("hstack", "gl.hstack([])", RuntimeError),
    ("vstack", "gl.vstack(3)", TypeError),
    ("block_diag", "gl.block_diag(gl.zeros(1, 1, 1))", RuntimeError),
    ("combinations", "gl.combinations(gl.zeros(2, 2))", RuntimeError),
    ("combinations", "gl.combinations(gl.zeros(2), -1)", RuntimeError),
    ("cartesian_prod", "gl.cartesian_prod(gl.zeros(2, 2))", RuntimeError),
    ("meshgrid", "gl.meshgrid(gl.zeros(1, 1), indexing='ij')", RuntimeError),
    ("meshgrid", "gl.meshgrid(gl.zeros(1), indexing='ji')", RuntimeError),
    ("diagonal", "gl.diagonal(gl.zeros(2))", IndexError),
    ("diagonal", "gl.diagonal(gl.zeros(2, 2), 0, 1, 1)", RuntimeError),
    ("diag", "gl.diag(gl.zeros(1, 1, 1))", RuntimeError),
    ("diag_embed", "gl.diag_embed(gl.zeros(1), 0, 1, 2)", IndexError),
    ("diag_embed", "gl.diag_embed(gl.zeros(1), 0, 1, 1)", RuntimeError),
    ("trace", "gl.trace(gl.zeros(2))", RuntimeError),
    ("trace", "gl.trace(gl.eye(2).bool())", NotImplementedError),
    ("tril", "gl.tril(gl.zeros(2))", RuntimeError),
    ("tril_indices", "gl.tril_indices(-1, 2)", RuntimeError),
    ("diagonal_scatter", "gl.diagonal_scatter(gl.zeros(2, 2), gl.zeros(3))", RuntimeError),
    ("select_scatter", "gl.select_scatter(gl.zeros(2), gl.tensor(0.0), 0, 2)", IndexError),
    ("slice_scatter", "gl.slice_scatter(gl.zeros(2), gl.zeros(3))", RuntimeError),
    ("slice_scatter", "gl.slice_scatter(gl.zeros(2), gl.zeros(2), step=0)", RuntimeError),
    ("fill_diagonal_", "gl.zeros(2).fill_diagonal_(1)", RuntimeError),
    ("fill_diagonal_", "gl.zeros(2, 2, 3).fill_diagonal_(1)", RuntimeError),
    ("gather", "gl.gather(gl.zeros(2), 0, 1)", TypeError),
    ("gather", "gl.gather(gl.zeros(2), 0, gl.zeros(1))", RuntimeError),
    ("gather", "gl.gather(gl.zeros(2), 0, gl.tensor([-1]))", RuntimeError),
    ("take_along_dim", "gl.take_along_dim(gl.zeros(2), gl.tensor([0]), 1)", IndexError),
    ("take_along_dim", "gl.take_along_dim(gl.zeros(2), gl.tensor([0.0]), 0)", RuntimeError),
    ("scatter", "gl.scatter(gl.zeros(2), 0, 1, 2.0)", TypeError),
    ("scatter", "gl.scatter(gl.zeros(2), 0, gl.tensor([-1]), 2.0)", RuntimeError),
    ("scatter", "gl.scatter(gl.zeros(2), 0, gl.tensor([0]), gl.tensor([1]))", RuntimeError),
    ("scatter_add", "gl.scatter_add(gl.zeros(2), 0, gl.tensor([0]), 1.0)", TypeError),
    ("scatter_add", "gl.scatter_add(gl.zeros(2), 0, gl.tensor([2]), gl.tensor([1.0]))", RuntimeError),
    ("scatter_reduce", "gl.scatter_reduce(gl.zeros(2), 0, gl.tensor([0]), gl.zeros(1), 'max')", RuntimeError),
    ("take", "gl.take(gl.zeros(2), 0)", TypeError),
    ("take", "gl.take(gl.zeros(2), gl.tensor([0.0]))", RuntimeError),
    ("take", "gl.take(gl.zeros(2), gl.tensor([2]))", IndexError),
    ("put", "gl.put(gl.zeros(2), gl.tensor([0]), gl.tensor([1]))", RuntimeError),
    ("put", "gl.put(gl.zeros(2), gl.tensor([2]), gl.zeros(1))", IndexError),
    ("unravel_index", "gl.unravel_index(3, (2,))", TypeError),
    ("unravel_index", "gl.unravel_index(gl.tensor([0]), (-1,))", ValueError),
    ("unravel_index", "gl.unravel_index(gl.tensor([0]), (0,))", RuntimeError),
    ("masked_fill", "gl.masked_fill(gl.zeros(2), 1, 0)", TypeError),
    ("masked_fill", "gl.masked_fill(gl.zeros(2), gl.tensor([1, 0]), 0)", RuntimeError),
    ("masked_fill", "gl.masked_fill(gl.zeros(2), gl.tensor([True, False]), gl.zeros(1))", RuntimeError),
    ("masked_select", "gl.masked_select(gl.zeros(2), gl.tensor([1, 0]))", RuntimeError),
    ("masked_scatter", "gl.masked_scatter(gl.zeros(2), gl.tensor([True, True]), gl.zeros(1))", RuntimeError),
    ("index_select", "gl.index_select(gl.zeros(2), 0, 1)", TypeError),
    ("index_select", "gl.index_select(gl.zeros(2), 0, gl.tensor([-1]))", IndexError),
    ("index_select", "gl.index_select(gl.zeros(2), 0, gl.tensor([0.0]))", RuntimeError),
    ("index_add", "gl.index_add(gl.zeros(2), 0, gl.tensor([[0]]), gl.zeros(1))", IndexError),
    ("index_add", "gl.index_add(gl.zeros(2, 2), 0, gl.tensor([-1]), gl.zeros(1, 2))", RuntimeError),
    ("index_reduce", "gl.index_reduce(gl.zeros(2), 0, gl.tensor([2]), gl.zeros(1), 'prod')", IndexError),
    ("index_reduce", "gl.index_reduce(gl.zeros(2), 0, gl.tensor([0]), gl.zeros(1), 'sum')", RuntimeError),
    ("index_copy", "gl.index_copy(gl.zeros(2), 0, gl.tensor([2]), gl.zeros(1))", IndexError),
    ("index_copy", "gl.index_copy(gl.zeros(2), 0, gl.tensor([0]), gl.tensor([1]))", RuntimeError),
    ("index_fill", "gl.index_fill(gl.zeros(2), 0, gl.tensor([2]), 1)", IndexError),
    ("index_fill", "gl.index_fill(gl.zeros(2), 0, gl.tensor([[0]]), 1)", RuntimeError),
    ("index_put", "gl.index_put(gl.zeros(2), 0, gl.zeros(1))", TypeError),
    ("index_put", "gl.index_put(gl.zeros(2), [gl.tensor([2])], gl.zeros(1))", IndexError),
    ("index_put", "gl.index_put(gl.zeros(2), [gl.tensor([0])], gl.zeros(3))", RuntimeError),
    ("promote_types", "gl.promote_types(1, gl.int32)", TypeError),
    ("result_type", "gl.result_type('a', 1)", TypeError),
    ("is_floating_point", "gl.is_floating_point(1)", TypeError),
    ("is_nonzero", "gl.is_nonzero(gl.zeros(2))", RuntimeError),
    ("is_same_size", "gl.is_same_size(gl.zeros(2), 1)", TypeError),
    ("is_complex", "gl.is_complex(1)", TypeError),
    ("fill_", "gl.zeros(2).fill_('a')", TypeError),
    ("fill_", "gl.zeros(2).fill_(gl.zeros(2))", RuntimeError),
    ("zero_", "gl.zeros(2, requires_grad=True).zero_()", RuntimeError),
    ("copy_", "gl.zeros(2).copy_(3)", TypeError),
    ("copy_", "gl.zeros(2).copy_(gl.zeros(3))", RuntimeError),
    ("apply_", "gl.zeros(2, requires_grad=True).apply_(abs)", RuntimeError),
    ("resize_", "gl.zeros(2, requires_grad=True).resize_(3)", RuntimeError),
    ("set_", "gl.zeros(2).set_(gl.tensor([1]))", RuntimeError),
]

# Torch accepts these, or raises another error: ValueError for a negative length, AttributeError for a number as an index.
DIFFERENT_IN_TORCH = {
    "gl.broadcast_shapes((-1,))",
    "gl.scatter_reduce(gl.zeros(2), 0, gl.tensor([0]), gl.zeros(1), 'max')",
    "gl.unravel_index(3, (2,))",
    "gl.zeros(2).copy_(3)",
}


def label(value):
    return value if isinstance(value, str) else value.__name__


IN_TORCH = [row for row in REFUSALS if row[1] not in DIFFERENT_IN_TORCH]


@pytest.mark.parametrize(("name", "call", "error"), REFUSALS, ids=label)
def test_documented_errors_are_raised(name, call, error):
    doc = OPERATORS[name].public_function().__doc__
    assert error.__name__ in doc.partition("Raises")[2].partition("Examples")[0]
    with pytest.raises(error):
        eval(call, {"gl": gl})


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "call", "error"), IN_TORCH, ids=label)
def test_torch_raises_the_same_errors(name, call, error):
    torch = pytest.importorskip("torch")
    with pytest.raises(error):
        eval(call, {"gl": torch})
