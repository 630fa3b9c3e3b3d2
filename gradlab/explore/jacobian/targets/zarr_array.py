"""A dense matrix in a zarr array, in any store that zarr opens.

Concurrent writes to one chunk would undo each other's work. So blocks that share a chunk form one unit of work (`units`), and
block sizes that match the chunks are preferred (`aligned_chunk`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import to_host
from gradlab.explore.jacobian.methods import canonical, read_block, scatter
from gradlab.explore.jacobian.plan import Block, Plan
from gradlab.explore.jacobian.targets.target import Place, Target
from gradlab.explore.jacobian.targets.zarr_store import KeyBeside, is_shared
from gradlab.explore.jacobian.transposed import Transposed

STRIPE_BYTES = 64e6  # read at once


class ZarrArray(Target):
    """A two-dimensional zarr.Array. It is indexed like a NumPy array, by numbers and slices, and its products read it once."""

    takes = "dense"
    __array_ufunc__ = None  # NumPy leaves `v @ matrix` to this class

    def __init__(self, array: Any) -> None:
        self.array = array.with_config({"write_empty_chunks": True})  # otherwise −0.0 would come back as 0.0
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype = np.dtype(array.dtype)
        self.matrix, self.travels, self.what = self, is_shared(array.store), f"the zarr array {array.store_path}"

    @property
    def pieces(self) -> tuple[int, ...]:
        """Shape of the unit of writing: a shard, or else a chunk."""
        return tuple(self.array.shards or self.array.chunks)

    @property
    def lies(self) -> str:
        return f"zarr, pieces of {self.pieces}"

    def check(self, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
        makes = f"zarr.create_array(store, shape={shape}, dtype={dtype.name!r}, chunks=…) makes one, and a path as out= too"
        if self.shape != shape:
            sides = "(output elements, input elements)"
            raise ValueError(f"out= must have the Jacobian's shape {shape} {sides}, but has {self.shape}. {makes}")
        if self.dtype != dtype:
            raise TypeError(f"out= must have the Jacobian's dtype {dtype}, but has {self.dtype}. {makes}")
        if self.array.read_only:
            raise ValueError("out= is read only; zarr.open_array(…, mode='r+') can be written")

    def place(self) -> Place:
        return KeyBeside(self.array.store_path)

    def put(self, plan: Plan, block: Block, values: np.ndarray) -> None:
        rows, columns, numbers = scatter(plan, block, values)
        self[rows, columns] = numbers

    def expected_contents(self, plan: Plan, block: Block, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return (canonical(plan, block, values),)

    def read_block(self, plan: Plan, block: Block) -> tuple[np.ndarray, ...]:
        return (read_block(plan, self, block),)

    def units(self, plan: Plan, blocks: Iterable[Block]) -> list[list[Block]]:
        units: list[list[Block]] = []
        last = -1
        for block in sorted(blocks, key=lambda block: block.start):
            start, stop, piece = self._reach(plan, block)
            if start // piece > last:
                units.append([])
            units[-1].append(block)
            last = max(last, (stop - 1) // piece)
        return units

    def aligned_chunk(self, plan: Plan, chunk: int) -> int:
        lines = plan.rows_a_sample if plan.kind == "samples" else 1
        piece = self.pieces[int(plan.kind == "columns")]
        step = piece // math.gcd(piece, max(lines, 1))  # the smallest number that fills whole pieces
        if chunk >= step:
            return chunk // step * step
        return max(size for size in range(1, chunk + 1) if step % size == 0)

    def _reach(self, plan: Plan, block: Block) -> tuple[int, int, int]:
        """Return (start, end) of its rows or columns, and how many of them a piece contains."""
        if plan.kind == "columns":
            return block.start, block.stop, self.pieces[1]
        rows = plan.rows_of(block)
        return rows.start, rows.stop, self.pieces[0]

    # ------------------------------------------------------------------------------------------ as a matrix
    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.asarray(to_host(self.array[key]))

    def __setitem__(self, key: Any, values: np.ndarray) -> None:
        self.array[key] = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)

    def stripes(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice, rows) from first to last, each a few pieces high."""
        height = self.pieces[0]
        height *= max(1, int(STRIPE_BYTES // (height * self.shape[1] * self.dtype.itemsize)))
        for start in range(0, self.shape[0], height):
            rows = slice(start, min(start + height, self.shape[0]))
            yield rows, self[rows]

    @property
    def T(self) -> Transposed:  # noqa: N802  (NumPy's name)
        """Transpose, which supports products, too."""
        return Transposed(self)

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return np.concatenate([stripe @ u for _, stripe in self.stripes()])

    def __rmatmul__(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(sum(v[..., rows] @ stripe for rows, stripe in self.stripes()))
