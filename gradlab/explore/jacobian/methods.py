"""The work of one block, as functions of plain data without state.

`compute_block` sweeps, and `scatter` says where the numbers belong in the matrix. A loop over `plan.blocks()` with these two is
the whole computation, whoever runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.explore.jacobian.graph import DifferentiatedGraph
from gradlab.explore.jacobian.plan import Block, Plan


def compute_block(graph: DifferentiatedGraph, plan: Plan, block: Block) -> np.ndarray:
    """Compute the numbers of one block.

    Returns
    -------
    ndarray
        Rows: (stop - start, n). Columns: (m, stop - start). Colours: the compressed rows (stop - start, n) if the plan is by
        rows, the compressed columns (stop - start, m) if it is by columns. Samples: the rows of each, stacked.
    """
    if block.kind == "samples":
        return graph.of_samples(block.start, block.stop)
    count, (m, n) = block.size, graph.shape
    forward = (plan.by if block.kind == "colours" else block.kind) == "columns"
    numbers = np.arange(block.start, block.stop)
    if block.kind != "colours":
        vectors = np.zeros((count, n if forward else m), graph.dtype)
        vectors[np.arange(count), numbers] = 1
    else:
        vectors = plan.seeds(block, graph.dtype)
    swept = graph.jvp if forward else graph.vjp
    values = swept(vectors[0])[None] if count == 1 else swept(vectors)
    return values.T if block.kind == "columns" else values


def scatter(plan: Plan, block: Block, values: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Return (rows, columns, numbers) such that `matrix[rows, columns] = numbers` writes a block.

    Rows and columns are slices for dense blocks, and arrays of equal length for colours.
    """
    if block.kind in ("rows", "samples"):
        return plan.rows_of(block), slice(None), values
    if block.kind == "columns":
        return slice(None), slice(block.start, block.stop), values
    assert plan.pattern is not None
    which, numbers = entries(plan, block, values)
    return plan.pattern[0][which], plan.pattern[1][which], numbers


def entries(plan: Plan, block: Block, values: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return which entries of the pattern the compressed rows or columns of a block contain, and their numbers."""
    assert plan.gather is not None
    if block.size == plan.sweeps:
        return slice(None), values.reshape(-1).take(plan.gather, mode="wrap")  # faster than a bounds check of each index
    width = values.shape[1]
    low, high = block.start * width, block.stop * width
    first, last = np.searchsorted(plan.gather, (low, high), sorter=plan.gather_order)
    which = plan.gather_order[first:last]
    return which, values.reshape(-1)[plan.gather[which] - low]


def canonical(plan: Plan, block: Block, values: np.ndarray) -> np.ndarray:
    """Return the numbers of a block in the order in which `read_block` finds them in a matrix."""
    return values.T if block.kind == "columns" else scatter(plan, block, values)[2]


def read_block(plan: Plan, matrix: Any, block: Block) -> np.ndarray:
    """Return the numbers of `matrix` at the block, transposed for blocks of columns."""
    across = plan.shape[0 if plan.by == "columns" else 1]
    size = (block.size, across) if block.kind == "colours" else (0, 0)
    rows, columns, _ = scatter(plan, block, np.empty(size, np.uint8))
    values = np.asarray(matrix[rows, columns])
    return values.T if block.kind == "columns" else values
