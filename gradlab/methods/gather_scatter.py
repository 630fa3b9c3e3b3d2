"""Picking and writing by tensors of indices or masks, each write with its in-place twin."""

from __future__ import annotations

from gradlab.methods.writing import twin
from gradlab.ops import gather_scatter, linear_indices, masks, slices


class GatherScatter:
    """Gathering, scattering, masks."""

    gather, take, take_along_dim, index_select = (
        gather_scatter.gather,
        linear_indices.take,
        gather_scatter.take_along_dim,
        slices.index_select,
    )
    masked_select, nonzero, argwhere = masks.masked_select, masks.nonzero, masks.argwhere
    scatter, scatter_add, scatter_reduce = gather_scatter.scatter, gather_scatter.scatter_add, gather_scatter.scatter_reduce
    index_add, index_copy, index_fill, index_put, put = (
        slices.index_add,
        slices.index_copy,
        slices.index_fill,
        slices.index_put,
        linear_indices.put,
    )
    index_reduce, index_reduce_ = slices.index_reduce, twin(slices.index_reduce)
    masked_fill, masked_scatter = masks.masked_fill, masks.masked_scatter

    scatter_, scatter_add_, scatter_reduce_ = (
        gather_scatter.scatter.twin,
        gather_scatter.scatter_add.twin,
        twin(gather_scatter.scatter_reduce),
    )
    index_add_, index_copy_, index_fill_, index_put_, put_, masked_scatter_ = (
        function.twin
        for function in (
            slices.index_add,
            slices.index_copy,
            slices.index_fill,
            slices.index_put,
            linear_indices.put,
            masks.masked_scatter,
        )
    )
    masked_fill_ = twin(masks.masked_fill)
