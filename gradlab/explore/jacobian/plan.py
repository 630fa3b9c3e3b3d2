"""Plans: by which sweeps a Jacobian is computed, in which blocks, and in how much memory.

A `Plan` holds no graph and no values, so it can be kept and passed to the next Jacobian of the same shape. Its blocks are plain
data: a block can be computed wherever the function and its inputs are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gradlab.explore.jacobian import colouring
from gradlab.explore.jacobian.graph import DifferentiatedGraph
from gradlab.explore.jacobian.memory import SHARE, SMALL, free_memory
from gradlab.explore.markup import size_text

Kind = Literal["rows", "columns", "colours", "samples"]
METHODS = ("auto", "rows", "batched", "columns", "sparse")
SWEEP_BYTES = 256e6  # larger sweeps are not faster, and an interrupt loses more
WORTH_A_SEARCH = 512 * 512  # elements of the matrix from which on "auto" looks for a pattern
FEW_SWEEPS = 64  # up to this many rows or columns, it does not
SPARSE, THIN, QUICK = 0.25, 0.02, 500_000  # see `most_entries`


@dataclass(frozen=True)
class Block:
    """A range of rows, columns, colours (compressed rows or columns) or samples that one sweep computes."""

    number: int
    kind: Kind
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of rows, columns, colours or samples."""
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan for computing a Jacobian. `str(plan)` is a sentence.

    Attributes
    ----------
    method : {"rows", "batched", "columns", "sparse", "samples"}
    shape : tuple of int
        (rows, columns) of the matrix.
    sweeps : int
        Number of vectors swept through the graph for the whole matrix: rows, columns or colours. For a batch, the samples.
    chunk : int
        Number of vectors per sweep.
    bytes : int
        Estimate of the peak memory of one sweep.
    pattern : tuple of ndarray or None
        (row numbers, column numbers), row-major, of the entries that can be nonzero.
    colours : ndarray or None
        Colour of each row or column. Rows or columns of one colour share a sweep.
    by : {"rows", "columns", "samples"}
        Direction of the sweeps: cotangents backward, tangents forward, or either for some samples at a time.
    gather : ndarray or None
        Flat position of each entry of the pattern in the compressed rows (colours, columns) or columns (colours, rows).
    why : str
        Reason for the method.
    given : bool
        Whether the pattern comes from the caller or another graph, not from this graph. It is then checked by sweeps in random
        directions.
    graph : int
        Fingerprint of the graph from which the pattern was read.
    equality : str
        Whether workers' results equal one process's bit for bit; "" if no workers were used.
    """

    method: str
    shape: tuple[int, int]
    sweeps: int
    chunk: int
    bytes: int = 0
    pattern: tuple[np.ndarray, np.ndarray] | None = None
    colours: np.ndarray | None = None
    by: str = "rows"
    gather: np.ndarray | None = None
    why: str = ""
    given: bool = False
    graph: int = 0
    equality: str = ""

    @cached_property
    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        """(columns, row starts) of the pattern, as in a compressed sparse row matrix."""
        assert self.pattern is not None
        rows, columns = self.pattern
        small = np.int32 if max(*self.shape, rows.size) < 2**31 else np.int64
        return columns.astype(small), np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.shape[0]))]).astype(small)

    @cached_property
    def gather_order(self) -> np.ndarray:
        """Entries of the pattern in the order of the blocks of colours."""
        assert self.gather is not None
        return np.argsort(self.gather, kind="stable")

    def seeds(self, block: Block, dtype: np.dtype) -> np.ndarray:
        """Return the vectors of a block of colours, (colours, rows or columns), with 1 at each colour. Cached if it is the only
        block."""
        assert self.colours is not None
        kept: np.ndarray | None = self.__dict__.get("_seeds")
        if kept is None or kept.dtype != dtype or len(kept) != block.size:
            kept = np.equal(self.colours, np.arange(block.start, block.stop)[:, None]).astype(dtype)
            if len(kept) == self.sweeps:
                self.__dict__["_seeds"] = kept
        return kept

    @property
    def kind(self) -> Kind:
        """Kind of range that a block is."""
        if self.colours is not None:
            return "colours"
        return self.by if self.by in ("columns", "samples") else "rows"  # type: ignore[return-value]

    @property
    def rows_a_sample(self) -> int:
        """Number of rows of the matrix for one sample of a batch."""
        return self.shape[0] // max(self.sweeps, 1)

    def rows_of(self, block: Block) -> slice:
        """Return the rows of the matrix that a block of rows or samples computes."""
        lines = self.rows_a_sample if block.kind == "samples" else 1
        return slice(block.start * lines, block.stop * lines)

    def block_with(self, row: int) -> Block:
        """Return the block of rows or samples that contains a row of the matrix."""
        lines = self.rows_a_sample if self.kind == "samples" else 1
        return self.block(row // (lines * self.chunk))

    def blocks(self) -> list[Block]:
        """Return the blocks of the matrix in the order of their numbers."""
        return [self.block(number) for number in range(-(-self.sweeps // self.chunk))]

    def block(self, number: int) -> Block:
        """Return the block with this number."""
        start = number * self.chunk
        return Block(number, self.kind, start, min(start + self.chunk, self.sweeps))

    def __str__(self) -> str:
        rows, columns = self.shape
        calls = -(-self.sweeps // self.chunk)
        way = "forward" if self.by == "columns" else "backward"
        of = _count(self.sweeps, self.kind[:-1])
        if self.colours is not None:
            assert self.pattern is not None
            of = f"{self.by} in {of} for the {self.pattern[0].size:,} entries that can be nonzero"
        at_once = "all at once" if calls == 1 else "one at a time" if self.chunk == 1 else f"{self.chunk:,} at a time"
        of += f", {at_once}" if self.sweeps > 1 else ""
        return (
            f"{rows:,}×{columns:,} by method {self.method!r}: {of}, in {_count(calls, way + ' sweep')} of about "
            f"{size_text(self.bytes)}" + "".join(f"; {said}" for said in (self.why, self.equality) if said)
        )

    def __repr__(self) -> str:
        return f"<Plan: {self}>"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def check_request(
    graph: DifferentiatedGraph, method: Any = "auto", chunk_size: Any = None, sparsity: Any = None, plan: Any = None
) -> None:
    """Raise if a request cannot be planned, before anything is computed."""
    if method not in METHODS:
        raise ValueError(f"method={method!r} must be one of {', '.join(map(repr, METHODS))}")
    whole = isinstance(chunk_size, (int, np.integer)) and not isinstance(chunk_size, bool)
    if not (chunk_size is None or chunk_size == "auto" or (whole and chunk_size >= 1)):
        raise ValueError(f'chunk_size is a whole number from 1, "auto" or None; got {chunk_size!r}')
    if plan is not None:
        if not isinstance(plan, Plan):
            raise TypeError(f"plan= takes the .plan of another Jacobian; got {type(plan).__name__}")
        if plan.shape != graph.shape:
            raise ValueError(f"the plan is for a Jacobian of shape {plan.shape}, this one has {graph.shape}")
        if (plan.by == "samples") != bool(graph.samples):
            raise ValueError("plan= comes from a Jacobian with batch= and this one has none, or vice versa")
        if method not in ("auto", plan.method) or sparsity is not None:
            raise ValueError("plan= includes the method and the pattern, so do not pass method or sparsity with it")
    if sparsity is not None:
        if method not in ("auto", "sparse"):
            raise ValueError(f'sparsity= is for the methods "sparse" and "auto"; got method={method!r}')
        as_pattern(sparsity, graph.shape)
    elif method == "sparse" and plan is None and not graph.tells_pattern:
        raise ValueError(
            f'method="sparse" reads the pattern off the graph, and a {graph.library.name} graph does not say which '
            'elements an operation reads. Give the pattern as sparsity=, or use method="batched" or "columns"'
        )


def as_pattern(sparsity: Any, shape: tuple[int, int], symmetric: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows, columns), row-major and without duplicates, of a pattern given by the user."""
    if hasattr(sparsity, "tocoo"):
        sparsity = sparsity.tocoo()
        rows, columns, its_shape = sparsity.row, sparsity.col, tuple(sparsity.shape)
    elif isinstance(sparsity, tuple) and len(sparsity) == 2 and all(np.ndim(part) == 1 for part in sparsity):
        rows, columns = map(np.asarray, sparsity)
        its_shape = shape
        if rows.shape != columns.shape or any(part.size and part.dtype.kind not in "iu" for part in (rows, columns)):
            raise ValueError(
                f"sparsity=(rows, columns) takes two equally long arrays of whole numbers; got {rows.size} of "
                f"{rows.dtype} and {columns.size} of {columns.dtype}"
            )
        for part, size, what in ((rows, shape[0], "row"), (columns, shape[1], "column")):
            if part.size and not 0 <= part.min() <= part.max() < size:
                wrong = part.max() if part.max() >= size else part.min()
                raise ValueError(f"sparsity= names {what} {wrong} of a Jacobian of shape {shape}")
    else:
        mask = np.asarray(sparsity)
        if mask.ndim != 2 or mask.dtype.kind not in "biuf":
            raise TypeError(
                "sparsity= takes a scipy sparse array, a boolean array or (rows, columns); got "
                f"{type(sparsity).__name__}" + (f" of shape {mask.shape}" if mask.ndim else "")
            )
        rows, columns = np.nonzero(mask)
        its_shape = mask.shape
    if its_shape != shape:
        raise ValueError(f"sparsity= has shape {its_shape}, the Jacobian has {shape}")
    return row_major(rows, columns, shape, mirrored=symmetric)


def row_major(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], *, mirrored: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Sort a pattern's entries by rows, without duplicates; `mirrored`: add their mirror images."""
    n = max(shape[1], 1)
    keys = rows.astype(np.int64) * n + columns
    keys = np.unique(np.concatenate([keys, columns.astype(np.int64) * n + rows]) if mirrored else keys)
    return keys // n, keys % n


def make_plan(
    graph: DifferentiatedGraph,
    method: str = "auto",
    chunk_size: int | str | None = None,
    sparsity: Any = None,
    plan: Plan | None = None,
    *,
    dense: bool = False,
) -> Plan:
    """Make the plan for a graph; for "auto" the one with the fewest sweeps by estimate. `dense`: use no colours unless
    requested."""
    (rows, columns), asked = graph.shape, method
    if plan is not None:
        if plan.pattern is not None and graph.fingerprint() != plan.graph and not plan.given:
            plan = replace(plan, given=True)
        if chunk_size is None:
            return plan
        chunk, size = _choose_chunk(graph, plan.by, plan.sweeps, chunk_size)
        return replace(plan, chunk=chunk, bytes=size)
    if graph.samples:
        return Plan(
            "samples",
            graph.shape,
            graph.samples,
            *_choose_chunk(graph, "samples", graph.samples, chunk_size),
            by="samples",
            why="",
        )
    if method == "auto":
        method = "columns" if columns * graph.forward_cost < rows else "batched"
    why = f"{'columns' if method == 'columns' else 'rows'} are fewer" if rows != columns else "rows and columns are as many"
    pattern = None
    if sparsity is not None:
        pattern = as_pattern(sparsity, graph.shape, graph.symmetric)
    elif asked == "sparse" or (
        asked == "auto"
        and not dense
        and graph.tells_pattern
        and min(rows, columns) >= FEW_SWEEPS
        and rows * columns >= WORTH_A_SEARCH
    ):
        pattern = graph.pattern(None if asked == "sparse" else most_entries(rows * columns))
        if pattern is not None and graph.symmetric:
            pattern = row_major(*pattern, graph.shape, mirrored=True)
        why = why if pattern is not None else f"{why}, and the pattern is too full for colours to pay"
    if pattern is not None:
        by, colours = _choose_colouring(pattern, graph)
        count = int(colours.max(initial=-1)) + 1
        if asked == "sparse" or sparsity is not None or 2 * count <= min(rows, columns):
            least = "" if asked == "sparse" else f"{count:,} instead of {min(rows, columns):,} sweeps"
            return sparse_plan(graph, pattern, colours, by, chunk_size, least, sparsity is not None)
        why += f", and colours would be {count:,}"
    by = "columns" if method == "columns" else "rows"
    sweeps = columns if method == "columns" else rows
    return Plan(
        method,
        graph.shape,
        sweeps,
        *_choose_chunk(graph, by, sweeps, 1 if method == "rows" else chunk_size),
        by=by,
        why=why if asked == "auto" else "",
    )


def most_entries(size: int) -> int:
    """Return the number of entries in a node's pattern at which "auto" stops the search: the number found in no time, or a small
    share of the matrix, so that a vain search costs little compared to the sweeps; but never more than colours could pay for."""
    return int(min(SPARSE * size, max(THIN * size, QUICK)))


def sparse_plan(
    graph: DifferentiatedGraph,
    pattern: tuple[np.ndarray, np.ndarray],
    colours: np.ndarray,
    by: str,
    chunk_size: int | str | None,
    why: str = "",
    given: bool = False,
) -> Plan:
    """Make the plan of a coloured pattern."""
    (rows, columns), (m, n) = pattern, graph.shape
    count = int(colours.max(initial=-1)) + 1
    if graph.symmetric:  # for each pair of mirror images, the one that can be read
        own = colouring.one_of_two(rows, columns, colours)
        assert own is not None
        gather = np.where(own, colours[columns] * n + rows, colours[rows] * n + columns)
    else:
        gather = colours[columns] * m + rows if by == "columns" else colours[rows] * n + columns
    return Plan(
        "sparse",
        graph.shape,
        count,
        *_choose_chunk(graph, by, count, chunk_size),
        pattern,
        colours,
        by,
        gather,
        why,
        given,
        graph.fingerprint(),
    )


def _choose_colouring(pattern: tuple[np.ndarray, np.ndarray], graph: DifferentiatedGraph) -> tuple[str, np.ndarray]:
    """Return the side that takes fewer sweeps, and its colours. The fullest line of the other side is a lower bound."""
    (m, n), (rows, columns) = graph.shape, pattern
    if not rows.size:
        return "columns", np.full(n, -1)
    if graph.symmetric:
        return "rows", colouring.symmetric(rows, columns, n)
    sides = {"columns": (columns, rows, (n, m)), "rows": (rows, columns, (m, n))}
    cost = {"columns": graph.forward_cost, "rows": 1.0}
    least = {by: int(np.bincount(groups).max()) * cost[by] for by, (_, groups, _) in sides.items()}
    first, second = sorted(sides, key=lambda by: (least[by], cost[by], by != "rows"))  # a backward sweep accumulates in place
    colours = colouring.distance_2(*sides[first])
    taken = (int(colours.max()) + 1) * cost[first]
    if taken > 1.5 * least[second]:
        other = colouring.distance_2(*sides[second])
        if (int(other.max()) + 1) * cost[second] < taken:
            return second, other
    return first, colours


def _choose_chunk(graph: DifferentiatedGraph, by: str, sweeps: int, chunk_size: int | str | None) -> tuple[int, int]:
    """Return how many vectors to sweep at once, and the bytes this takes."""
    each = graph.bytes_of_a_vector(by)
    if chunk_size is None or chunk_size == "auto":
        chunk = sweeps if each * sweeps <= SMALL else int(min(SHARE * free_memory(), SWEEP_BYTES) // each)
    else:
        chunk = int(chunk_size)
    chunk = max(1, min(chunk, sweeps))
    return chunk, chunk * each
