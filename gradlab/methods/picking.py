"""Picking and writing by tensors of indices or masks, each write with its in-place twin."""

from __future__ import annotations

from gradlab.methods.writing import twin
from gradlab.ops import picking as functions
from gradlab.ops import slices


class Picking:
    """Gathering, scattering, masks."""

    gather, take, take_along_dim, index_select = (functions.gather, functions.take, functions.take_along_dim, slices.index_select)
    masked_select, nonzero, argwhere = functions.masked_select, functions.nonzero, functions.argwhere
    scatter, scatter_add, scatter_reduce = functions.scatter, functions.scatter_add, functions.scatter_reduce
    index_add, index_copy, index_fill, index_put, put = (
        slices.index_add,
        slices.index_copy,
        slices.index_fill,
        functions.index_put,
        functions.put,
    )
    index_reduce, index_reduce_ = slices.index_reduce, twin(slices.index_reduce)
    masked_fill, masked_scatter = functions.masked_fill, functions.masked_scatter

    scatter_, scatter_add_, scatter_reduce_ = functions.scatter.twin, functions.scatter_add.twin, twin(functions.scatter_reduce)
    index_add_, index_copy_, index_fill_, index_put_, put_, masked_scatter_ = (
        function.twin
        for function in (
            slices.index_add,
            slices.index_copy,
            slices.index_fill,
            functions.index_put,
            functions.put,
            functions.masked_scatter,
        )
    )
    masked_fill_ = twin(functions.masked_fill)
