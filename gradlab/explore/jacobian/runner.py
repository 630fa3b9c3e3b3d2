"""Runner: computes a Jacobian. Rows, columns and products take one sweep each; the whole matrix is computed by the blocks of a
plan.

A single row is one weighted backward. Products need no matrix: vᵀJ is a backward sweep, and Ju a forward one. Results go to the
store. Once it is complete, the graph is released.

Threads may share a runner. The store's lock is held for one row, product or block at a time, so that a view can show the progress
of another thread's long run, and two threads that compute the whole matrix share the work. If Ctrl-C or an error in a rule ends a
run early, the stored blocks are kept, and the exception says how many there are and that another call continues.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from gradlab.explore.caller_warning import warn_at_the_caller
from gradlab.explore.jacobian.graph import DifferentiatedGraph
from gradlab.explore.jacobian.memory import has_room
from gradlab.explore.jacobian.methods import compute_block
from gradlab.explore.jacobian.plan import METHODS, Block, Plan, make_plan
from gradlab.explore.jacobian.progress import report_progress
from gradlab.explore.jacobian.store import Store
from gradlab.explore.jacobian.tracing import DerivativeRequest
from gradlab.explore.jacobian.verification import compare

Method = TypeVar("Method", bound=Callable[..., Any])


class Elsewhere(Protocol):
    """Workers that compute a runner's whole matrix. See `distributed.Workers`."""

    def size(self, runner: Runner) -> None:
        """Resize the plan's blocks for the workers."""

    def compute(self, runner: Runner, progress: Any = None) -> None:
        """Compute and store all missing blocks."""

    def read(self, runner: Runner, stretches: Sequence[range]) -> list[int] | None:
        """Return sums of the digests of stretches of blocks in the target; None if workers cannot access it."""


def in_turn(method: Method) -> Method:
    """Decorate a method so that one thread at a time runs it."""

    @functools.wraps(method)
    def run_locked(self: Runner, *args: Any, **options: Any) -> Any:
        with self.store.lock:
            return method(self, *args, **options)

    return run_locked  # type: ignore[return-value]


class Runner:
    """Computation of the missing entries of a store.

    Attributes
    ----------
    graph : Graph or None
        The graph to sweep; None once all entries are known.
    store : Store
    request : dict
        Arguments for the plan: method, chunk_size, sparsity, plan, as in `jacobian`.
    progress
        Progress, as in `jacobian`.
    question : DerivativeRequest or None
        The request that the graph answers. Workers record their graphs from it.
    elsewhere : Elsewhere or None
        Workers that compute the whole matrix; None for this thread.
    on_stored : callable or None
        Called with stored blocks, and their digests if known, so that another process can resume.
    sweeps : int
        Number of vectors swept through the graph so far, forward or backward.
    unused : tuple of bool or None
        For each input, whether the outputs do not depend on it; None if not known yet.
    """

    def __init__(
        self,
        graph: DifferentiatedGraph,
        store: Store,
        request: dict[str, Any] | None = None,
        progress: Any = None,
        question: DerivativeRequest | None = None,
    ) -> None:
        self.graph: DifferentiatedGraph | None = None if store.complete else graph
        self.store, self.request, self.progress = store, dict(request or {}), progress
        self.question = question
        self.elsewhere: Elsewhere | None = None
        self.on_stored: Callable[[Mapping[Block, int | None]], None] | None = None
        self.sweeps, self.unused = 0, graph.unused

    # ------------------------------------------------------------------------------------------ the plan
    @property
    @in_turn
    def plan(self) -> Plan:
        """Plan for the whole matrix, made on first access."""
        store = self.store
        if store.plan is None:
            if self.graph is None:
                store.plan = Plan("rows", store.shape, store.shape[0], 1, why="each was requested separately")
            else:
                dense = store.out is not None and store.out.takes == "dense"
                store.plan = make_plan(self.graph, **self.request, dense=dense)
        return store.plan

    def plan_as(self, method: str, chunk_size: int) -> None:
        """Plan as an earlier run did, except for explicit arguments: the free memory, for example, may differ."""
        request = self.request
        if request.get("method") == "auto" and request.get("plan") is None and method in METHODS:
            request["method"] = method
        if request.get("chunk_size") in (None, "auto"):
            request["chunk_size"] = chunk_size

    @property
    def chunk_is_open(self) -> bool:
        """Return whether the chunk size is neither given nor determined by stored blocks."""
        asked = self.request.get("chunk_size") not in (None, "auto") or self.request.get("plan") is not None
        return not asked and not self.store.done and not self.store.complete

    def plan_in_chunks(self, least: int) -> None:
        """Use at least `least` chunks without a common piece of `out`, unless the chunk size is given."""
        if self.chunk_is_open:
            chunk = max(1, min(self.plan.chunk, self.plan.sweeps // least))
            if self.store.out is not None:
                chunk = self.store.out.aligned_chunk(self.plan, chunk)
            if self.plan.chunk != chunk:
                assert self.graph is not None
                self.store.plan = make_plan(self.graph, plan=self.plan, chunk_size=chunk)

    # ------------------------------------------------------------------------------------------ sweeps
    def backward(self, weights: np.ndarray) -> np.ndarray:
        """Compute vᵀJ by one weighted backward over the kept graph: (columns,) for (rows,), (k, columns) for (k, rows)."""
        assert self.graph is not None
        rows = self.graph.vjp(weights)
        self.sweeps += len(weights) if weights.ndim == 2 else 1
        self.unused = self.graph.unused
        return rows

    def forward(self, tangents: np.ndarray) -> np.ndarray:
        """Compute Ju by one forward sweep over the kept graph: (rows,) for (columns,), (k, rows) for (k, columns)."""
        assert self.graph is not None
        columns = self.graph.jvp(tangents)
        self.sweeps += len(tangents) if tangents.ndim == 2 else 1
        return columns

    @in_turn
    def vjp(self, weights: np.ndarray) -> np.ndarray:
        """Compute vᵀJ for v of shape (rows,): by the matrix, once it is known."""
        return self._to_dtype(weights @ self.store.factor()) if self.store.complete else self.backward(weights)

    @in_turn
    def jvp(self, tangents: np.ndarray) -> np.ndarray:
        """Compute Ju for u of shape (columns,): by the matrix, once it is known."""
        return self._to_dtype(self.store.factor() @ tangents) if self.store.complete else self.forward(tangents)

    @in_turn
    def product(self, vectors: np.ndarray, side: int) -> np.ndarray:
        """Compute J @ u (side 1) or v @ J (side 0) for vectors (size,) or (size, k): in chunks of sweeps, or by the known
        matrix."""
        if self.store.complete:
            whole = self.store.factor()
            return self._to_dtype(whole @ vectors if side else (whole.T @ vectors).T)
        sweep = self.forward if side else self.backward
        if vectors.ndim == 1:
            return sweep(vectors)
        product = np.empty((vectors.shape[1], self.store.shape[1 - side]), self.store.dtype)
        chunk = max(1, self.plan.chunk)
        for start in range(0, len(product), chunk):
            product[start : start + chunk] = sweep(np.ascontiguousarray(vectors[:, start : start + chunk].T))
        return product.T if side else product

    def _to_dtype(self, values: Any) -> np.ndarray:
        return np.asarray(values, self.store.dtype)  # scipy has no float16

    # ------------------------------------------------------------------------------------------ lines
    @in_turn
    def row(self, i: int) -> np.ndarray:
        """Return row `i`, computed by one weighted backward if it is not known yet. Read-only."""
        store = self.store
        known = store.row(i)
        if known is not None:
            return known
        if store.out is not None and self.plan.kind in ("rows", "samples"):
            self.run([self.plan.block_with(i)])
            return self.row(i)
        row = self.backward(_unit(i, store.shape[0], store.dtype))
        store.keep_row(i, row)
        if store.all_rows():
            if store.out is not None:
                self.compute()
            else:
                store.gather()
                self._finish()
            return self.row(i)
        return row

    @in_turn
    def column(self, j: int) -> np.ndarray:
        """Return column `j`, computed by one forward sweep if it is not known yet."""
        known = self.store.column(j)
        return self.forward(_unit(j, self.store.shape[1], self.store.dtype)) if known is None else known

    def rows(self) -> Iterator[np.ndarray]:
        """Yield the rows in order, computed a chunk at a time and not stored."""
        store = self.store
        if store.complete or self.plan.colours is not None:
            self.compute()
            yield from map(self.row, range(store.shape[0]))
            return
        chunk = max(1, self.plan.chunk)
        for start in range(0, store.shape[0], chunk):
            numbers = range(start, min(start + chunk, store.shape[0]))
            with store.lock:
                known = bool(store.known_rows[start : numbers.stop].all())
                some = None if known else self.backward(_unit(np.array(numbers), store.shape[0], store.dtype))
            yield from map(self.row, numbers) if some is None else some

    # ------------------------------------------------------------------------------------------ the whole
    def dense(self) -> np.ndarray:
        """Compute and return the matrix. Read-only."""
        self.compute()
        with self.store.lock:
            return self.store.dense()

    def sparse(self) -> Any:
        """Compute and return the matrix as a scipy.sparse.csr_array. It is not stored if it does not fit into memory as a dense
        one."""
        from scipy.sparse import csr_array, hstack, vstack

        store = self.store
        with store.lock:
            in_memory = store.out is None and self.plan.colours is None
            if not store.complete and in_memory and not has_room(store.shape, store.dtype):
                stack = hstack if self.plan.kind == "columns" else vstack
                return stack([csr_array(self.values(block)) for block in self.plan.blocks()], format="csr")
        self.compute()
        return store.csr()

    def missing(self) -> list[Block]:
        """Return the blocks of the plan that are not stored."""
        return [] if self.store.complete else [block for block in self.plan.blocks() if block.number not in self.store.done]

    def compute(self, elsewhere: Elsewhere | None = None, progress: Any = None) -> None:
        """Compute all blocks of the plan, here or elsewhere."""
        elsewhere = elsewhere or self.elsewhere
        if self.store.complete:
            return
        if self.plan.sweeps == 0:  # an empty pattern: all entries are zero
            with self.store.lock:
                self.store.make_room()
                self._finish()
            return
        if elsewhere is not None:
            elsewhere.compute(self, progress)
            return
        self.run(self.missing(), progress=progress)

    def run(self, blocks: Iterable[Block], *, progress: Any = None) -> None:
        """Compute and store blocks of the plan. The graph is released after the last one. `progress` overrides the runner's
        own."""
        blocks, plan, store = list(blocks), self.plan, self.store
        known, todo = store.swept, sum(block.size for block in blocks)
        done, total = (known, plan.sweeps) if known + todo == plan.sweeps else (0, todo)
        with report_progress(self.progress if progress is None else progress, done, total, plan.kind) as report:
            try:
                for block in blocks:
                    with store.lock:
                        if not store.complete and block.number not in store.done:  # not stored by another thread meanwhile
                            store.put(block, self.values(block))
                            if self.on_stored is not None:
                                self.on_stored({block: None})
                    done += block.size
                    report(done)
            except BaseException as error:
                self.explain(error)
                raise
        self.settle()

    def take_over(self, blocks: Iterable[Block]) -> None:
        """Adopt blocks that the store's `out` holds from an earlier run."""
        self.store.take_over(blocks)
        self.settle()

    def values(self, block: Block) -> np.ndarray:
        """Compute the numbers of a block, except for rows that are known already."""
        assert self.graph is not None
        store = self.store
        known = store.alone(block.start, block.stop) if block.kind == "rows" else {}
        if not known:
            values = compute_block(self.graph, self.plan, block)
            self.sweeps += block.size
            self.unused = self.graph.unused
            return values
        values = np.empty((block.size, store.shape[1]), store.dtype)
        missing = np.setdiff1d(np.arange(block.start, block.stop), list(known))
        for i, row in known.items():
            values[i - block.start] = row
        if missing.size:
            values[missing - block.start] = self.backward(_unit(missing, store.shape[0], store.dtype))
        return values

    @in_turn
    def settle(self) -> None:
        """Release the graph if all entries are known."""
        if not self.store.complete and len(self.store.done) * self.plan.chunk >= self.plan.sweeps:
            self._finish()

    def _finish(self) -> None:
        """Release the graph; the run is complete."""
        store = self.store
        if store.complete:
            return
        assert self.graph is not None
        if store.plan is not None and store.plan.given and (store.done or not store.plan.sweeps):
            self._check_given(store.plan)
        self.unused = self.graph.unused
        store.close()
        self.graph = self.on_stored = self.question = None

    def _check_given(self, plan: Plan) -> None:
        """Warn if the given pattern leaves out nonzero entries."""
        forward = plan.by == "columns"
        whole = self.store.factor()
        sweep, lines, across = (self.forward, "rows", whole) if forward else (self.backward, "columns", whole.T)
        wrong, unknown = compare(sweep, across, self.store.dtype, plan.chunk)
        if wrong.any():
            warn_at_the_caller(
                f"the given pattern leaves out entries that are not zero: {int(wrong.sum())} of {wrong.size} {lines} "
                f"are wrong, the first of them {int(np.argmax(wrong))}. Compute this one without plan= and sparsity=, or give a "
                "pattern with all of its entries"
            )
        elif unknown.any():
            warn_at_the_caller(
                f"the given pattern could be checked for all {lines} except "
                f"{int(unknown.sum())} of {unknown.size}, which hold inf or NaN; the first of them is {int(np.argmax(unknown))}"
            )

    def explain(self, error: BaseException) -> None:
        """Add to the exception how many lines are known, and how to continue."""
        plan, one = self.plan, self.plan.sweeps == 1
        name = plan.kind[:-1] if one else plan.kind
        text = (
            f"{self.store.swept} of {plan.sweeps} {name} of the Jacobian {'is' if one else 'are'} known and kept. "
            "Another request, np.asarray(J) for example, continues with the others"
            + ("; so does resume=True in another process." if self.on_stored is not None else ".")
        )
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (text,)  # where notes are not shown
        else:
            error.add_note(text)


def _unit(rows: Any, size: int, dtype: Any) -> np.ndarray:
    """Return the unit vector of one row, or a batch of several."""
    if np.ndim(rows) == 0:
        v = np.zeros(size, dtype)
        v[rows] = 1
        return v
    v = np.zeros((len(rows), size), dtype)
    v[np.arange(len(rows)), rows] = 1
    return v
