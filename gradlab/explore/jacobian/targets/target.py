"""The interface of all targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from gradlab.explore.jacobian.plan import Block, Plan


class Place(Protocol):
    """Place of the record of a run, beside its target. `str` describes the place."""

    name: str

    def read(self) -> bytes | None:
        """Return the contents; None if nothing exists."""

    def write(self, text: str) -> None:
        """Write a text atomically."""


class Target:
    """A place to which blocks of a plan are written.

    Attributes
    ----------
    matrix : array-like or None
        Indexed and written like the matrix, as a NumPy array; None if the target holds no dense matrix.
    travels : bool
        Whether other processes may be able to access it. If so, workers try to write to it themselves.
    takes : {"any", "dense", "sparse"}
        Supported plans: "dense" ones have no colours, and "sparse" ones leave out zeros.
    what : str
        Description in messages: "np.memmap file J.bin".
    """

    matrix: Any = None
    travels = False
    takes = "any"
    what = ""

    def check(self, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
        """Raise if the Jacobian cannot be written to the target, or would overwrite one of the arrays `others`, given with their
        names."""

    def reserve(self) -> None:
        """Reserve space for the whole matrix, as far as possible in advance."""

    def place(self) -> Place | None:
        """Return the place of its record; None if another process could not find it."""
        return None

    @property
    def lies(self) -> str:
        """Facts that must be equal to resume: the position of the matrix, and its pieces."""
        return ""

    def put(self, plan: Plan, block: Block, values: np.ndarray) -> None:
        """Write a block."""
        raise NotImplementedError

    def expected_contents(self, plan: Plan, block: Block, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what reading the block returns once `values` are written. Its digest identifies the block."""
        raise NotImplementedError

    def read_block(self, plan: Plan, block: Block) -> tuple[np.ndarray, ...]:
        """Read a block."""
        raise NotImplementedError

    def settle(self) -> None:
        """Flush writes, so that a kill loses nothing."""

    def units(self, plan: Plan, blocks: Iterable[Block]) -> list[list[Block]]:
        """Group blocks so that writers of different groups do not conflict."""
        return [[block] for block in blocks]

    def aligned_chunk(self, plan: Plan, chunk: int) -> int:
        """Return a block size, at most `chunk` if possible, with which no two blocks share a piece of the target."""
        return chunk
