"""What every target offers, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from gradlab.explore.jacobian.plan import Block, Plan


class Place(Protocol):
    """Where the record of a run is kept, beside what it is the record of. `str` of it says where."""

    name: str

    def read(self) -> bytes | None:
        """What is there; None if nothing is."""

    def write(self, text: str) -> None:
        """Put a text there, whole or not at all."""


class Target:
    """A place that blocks of a plan are written to.

    Attributes
    ----------
    matrix : array-like or None
        What is indexed and written like the matrix as a NumPy array is; None where the target holds no dense one.
    travels : bool
        Whether other processes may see it: then workers try to write into it themselves.
    takes : {"any", "dense", "sparse"}
        Which plans: "dense" ones have no colours, and for "sparse" zeros are left out.
    what : str
        What it is in messages: "np.memmap file J.bin".
    """

    matrix: Any = None
    travels = False
    takes = "any"
    what = ""

    def check(self, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
        """Refuse a target that the Jacobian cannot be written into, or not without writing over `others`, arrays under their
        names."""

    def reserve(self) -> None:
        """Have room for all of it, as far as that can be said beforehand."""

    def place(self) -> Place | None:
        """Where its record is kept; None if another process could not find it."""
        return None

    @property
    def lies(self) -> str:
        """What must be the same when another process goes on: where the matrix lies, and in what pieces."""
        return ""

    def put(self, plan: Plan, block: Block, values: np.ndarray) -> None:
        """Write a block."""
        raise NotImplementedError

    def written(self, plan: Plan, block: Block, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """What `held` gives once `values` are written: by its digest a block is known again."""
        raise NotImplementedError

    def held(self, plan: Plan, block: Block) -> tuple[np.ndarray, ...]:
        """What is there of a block."""
        raise NotImplementedError

    def settle(self) -> None:
        """Have what was put where a kill cannot take it."""

    def units(self, plan: Plan, blocks: Iterable[Block]) -> list[list[Block]]:
        """The blocks in groups, each of which one writer must have: what two of different groups write is apart."""
        return [[block] for block in blocks]

    def aligned(self, plan: Plan, chunk: int) -> int:
        """A size of blocks, `chunk` or less if it can be, with which no two blocks share a piece of the target."""
        return chunk
