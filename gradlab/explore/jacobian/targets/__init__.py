"""Targets: a NumPy array or file, a zarr array, or CSR parts in a zarr group.

A dense matrix is one array. A sparse one is a zarr group that reads without gradlab::

    group = zarr.open_group("J.zarr", mode="r")
    parts = [group["parts"][name] for name in sorted(group["parts"])]
    matrices = [
        scipy.sparse.csr_array((part["data"][:], part["indices"][:], part["indptr"][:]), shape=part.attrs["shape"])
        for part in parts
    ]
    J = scipy.sparse.vstack(matrices) if group.attrs["parts"] == "stacked" else sum(matrices)

A part is one block of the plan. For blocks of rows, it has the block's rows ("stacked"). For columns or colours, whose entries
are all over the matrix, it is a matrix of J's shape ("added"). zarr is imported only when it is used.
"""

from gradlab.explore.jacobian.targets.opening import open_target
from gradlab.explore.jacobian.targets.target import Target

__all__ = ["Target", "opened"]
