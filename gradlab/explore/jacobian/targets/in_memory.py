"""A target that is a NumPy array or a memory-mapped file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gradlab.explore.jacobian.memory import first_byte, needs_disk
from gradlab.explore.jacobian.methods import canonical, read_block, scatter
from gradlab.explore.jacobian.plan import Block, Plan
from gradlab.explore.jacobian.targets.target import Place, Target


class ArrayTarget(Target):
    """A NumPy array given by the user."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.matrix = array.view(np.ndarray)  # a view, which will be read-only, unlike the user's array

    @property
    def is_mapped(self) -> bool:
        """True for a memory-mapped file."""
        return isinstance(self.array, np.memmap) and bool(self.array.filename)

    @property
    def what(self) -> str:  # type: ignore[override]
        return str(self.array.filename) if isinstance(self.array, np.memmap) else "the array"

    @property
    def lies(self) -> str:
        assert isinstance(self.array, np.memmap)
        return f"byte {first_byte(self.array, self.array)}, strides {self.array.strides}"

    def check(self, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
        out = self.array
        makes = f"np.empty({shape}, np.{dtype}), or np.memmap(file, np.{dtype}, 'w+', shape={shape}), makes one"
        if out.shape != shape:
            sides = "(output elements, input elements)"
            raise ValueError(f"out= must have the Jacobian's shape {shape} {sides}, but has {out.shape}. {makes}")
        if out.dtype != dtype:
            raise TypeError(f"out= must have the Jacobian's dtype {dtype}, but has {out.dtype}. {makes}")
        if not out.flags.writeable:
            how = f" (opened with mode={out.mode!r}; 'r+' can be written)" if isinstance(out, np.memmap) else ""
            raise ValueError(f"out= is read only{how}")
        if any(step == 0 and size > 1 for step, size in zip(out.strides, out.shape, strict=True)):
            raise ValueError("out= is a broadcast array, whose elements share memory; give an array with its own memory")
        for name, array in others:
            if np.shares_memory(out, array):
                raise ValueError(f"out= shares memory with {name}, which would be overwritten; give an array with its own memory")

    def reserve(self) -> None:
        needs_disk(self.array)

    def place(self) -> Place | None:
        return FileBeside(Path(f"{self.array.filename}.json")) if isinstance(self.array, np.memmap) and self.is_mapped else None

    def put(self, plan: Plan, block: Block, values: np.ndarray) -> None:
        rows, columns, numbers = scatter(plan, block, values)
        self.matrix[rows, columns] = numbers

    def expected_contents(self, plan: Plan, block: Block, values: np.ndarray) -> tuple[np.ndarray, ...]:
        return (canonical(plan, block, values),)

    def read_block(self, plan: Plan, block: Block) -> tuple[np.ndarray, ...]:
        return (read_block(plan, self.array, block),)

    def settle(self) -> None:
        if isinstance(self.array, np.memmap):
            self.array.flush()


class FileBeside:
    """A file beside another, which is replaced atomically by a rename."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        beside = self.path.with_name(self.path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except OSError:  # a full disk, for example: the old record remains
            beside.unlink(missing_ok=True)
            raise
