"""A sparse matrix in a zarr group, with a CSR part for each block of the plan. The package's docstring describes the layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import to_host
from gradlab.explore.jacobian.methods import entries
from gradlab.explore.jacobian.plan import Block, Plan
from gradlab.explore.jacobian.targets.target import Place, Target
from gradlab.explore.jacobian.targets.zarr_store import KeyBeside, compressor, is_shared

NAMES = ("data", "indices", "indptr")


class ZarrParts(Target):
    """A zarr.Group to which parts are written."""

    takes = "sparse"

    def __init__(self, group: Any) -> None:
        self.group = group
        self.travels, self.what = is_shared(group.store), f"the zarr group {group.store_path}"

    @property
    def lies(self) -> str:
        return "zarr, CSR parts"

    def check(self, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
        if self.group.read_only:
            raise ValueError("out= is read only; zarr.open_group(…, mode='r+') can be written")

    def begin(self, plan: Plan, dtype: np.dtype, *, anew: bool) -> None:
        """Write into the group what its parts will be; `anew`: remove existing parts."""
        if anew or "parts" not in self.group:
            self.group.create_group("parts", overwrite=True)
            kind = "stacked" if is_stacked(plan) else "added"
            self.group.attrs.update({"shape": list(plan.shape), "dtype": dtype.name, "parts": kind})

    def place(self) -> Place:
        return KeyBeside(self.group.store_path)

    def put(self, plan: Plan, block: Block, values: np.ndarray) -> None:
        shape = [len(values), plan.shape[1]] if is_stacked(plan) else list(plan.shape)
        part = self.group.create_group(f"parts/{block.number:08d}", overwrite=True, attributes={"shape": shape})
        for name, array in zip(NAMES, self.expected_contents(plan, block, values), strict=True):
            part.create_array(name, data=array, chunks=(max(1, array.size),), compressors=compressor())

    def expected_contents(self, plan: Plan, block: Block, values: np.ndarray) -> tuple[np.ndarray, ...]:
        if block.kind == "colours":
            assert plan.pattern is not None
            which, numbers = entries(plan, block, values)
            if not isinstance(which, slice):
                order = np.argsort(which)
                which, numbers = which[order], numbers[order]
            rows, columns, height = plan.pattern[0][which], plan.pattern[1][which], plan.shape[0]
        else:
            rows, columns = np.nonzero(values)
            numbers, height = values[rows, columns], len(values)
            columns = columns + (block.start if block.kind == "columns" else 0)
        small = np.int32 if max(*plan.shape, rows.size) < 2**31 else np.int64
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=height))])
        return np.ascontiguousarray(numbers), columns.astype(small), starts.astype(small)

    def read_block(self, plan: Plan, block: Block) -> tuple[np.ndarray, ...]:
        name = f"parts/{block.number:08d}"
        if name not in self.group:
            return ()
        part = self.group[name]
        return tuple(np.asarray(to_host(part[name][:])) for name in NAMES if name in part)

    def matrix_of(self, plan: Plan, blocks: Iterable[Block]) -> Any:
        """Return parts as one scipy.sparse.csr_array: for stacked parts their rows, else a matrix of J's shape."""
        from scipy.sparse import coo_array, csr_array, vstack

        parts = []
        for block in blocks:
            data, indices, indptr = self.read_block(plan, block)
            shape = (len(indptr) - 1, plan.shape[1])
            parts.append(csr_array((data.astype(np.float32) if data.itemsize < 4 else data, indices, indptr), shape=shape))
        if not parts:
            return csr_array(plan.shape, dtype=self.group.attrs["dtype"])
        if is_stacked(plan):
            return vstack(parts, format="csr")
        several = [part.tocoo() for part in parts]
        data, rows, columns = (np.concatenate([getattr(part, name) for part in several]) for name in ("data", "row", "col"))
        whole = coo_array((data, (rows, columns)), shape=plan.shape).tocsr()
        whole.sort_indices()  # so that its numbers are in the order of a pattern's entries
        return whole


def is_stacked(plan: Plan) -> bool:
    """Return whether a part has only the rows of its block, rather than all rows of the matrix."""
    return plan.kind in ("rows", "samples")
