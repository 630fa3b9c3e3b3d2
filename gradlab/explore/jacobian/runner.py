"""What computes a Jacobian: rows, columns and products by one sweep each, the whole by the blocks of a plan.

A row that is asked for alone is one weighted backward. Products need no matrix: vᵀJ is a backward sweep and Ju a forward one.
What is computed goes to the store; when it has all, the graph is let go.

Threads may share a runner. The store's lock is held for one row, product or block at a time, so that a view can show what a long
run of another thread has so far, and two that ask for the whole share the work. Whatever ends a run early, Ctrl-C or an error of
a rule, the blocks that are stored stay, and the exception says how many they are and that asking again goes on.
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
from gradlab.explore.jacobian.progress import told
from gradlab.explore.jacobian.store import Store
from gradlab.explore.jacobian.tracing import DerivativeRequest
from gradlab.explore.jacobian.verification import compare

Method = TypeVar("Method", bound=Callable[..., Any])


class Elsewhere(Protocol):
    """Workers that compute a runner's whole. See `distributed.Workers`."""

    def size(self, runner: Runner) -> None:
        """Have the plan in blocks of the size that workers want."""

    def compute(self, runner: Runner, progress: Any = None) -> None:
        """Compute and store all that is missing."""

    def read(self, runner: Runner, stretches: Sequence[range]) -> list[int] | None:
        """The sums of the digests of stretches of blocks, as the target has them; None if workers do not see it."""


def in_turn(method: Method) -> Method:
    """A method that one thread at a time is in."""

    @functools.wraps(method)
    def taken(self: Runner, *args: Any, **options: Any) -> Any:
        with self.store.lock:
            return method(self, *args, **options)

    return taken  # type: ignore[return-value]


class Runner:
    """Computes what a store does not have yet.

    Attributes
    ----------
    graph : Graph or None
        What is swept; None once all is known.
    store : Store
    request : dict
        What the plan is made from: method, chunk_size, sparsity, plan, as `jacobian` takes them.
    progress
        Who is told how far a run is, as `jacobian` takes it.
    question : DerivativeRequest or None
        What the graph answers: what workers record it from.
    elsewhere : Elsewhere or None
        Who computes the whole; None: this thread does.
    noted : callable or None
        Called with the blocks that were stored, and their digests where these are known, so that another process can go on.
    sweeps : int
        How many vectors have been swept through the graph so far, forward or backward.
    unused : tuple of bool or None
        Which inputs the outputs do not depend on; None if that is not known yet.
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
        self.noted: Callable[[Mapping[Block, int | None]], None] | None = None
        self.sweeps, self.unused = 0, graph.unused

    # ------------------------------------------------------------------------------------------ the plan
    @property
    @in_turn
    def plan(self) -> Plan:
        """How the whole is computed; found when first asked for."""
        store = self.store
        if store.plan is None:
            if self.graph is None:
                store.plan = Plan("rows", store.shape, store.shape[0], 1, why="each was asked for by itself")
            else:
                dense = store.out is not None and store.out.takes == "dense"
                store.plan = make_plan(self.graph, **self.request, dense=dense)
        return store.plan

    def plan_as(self, method: str, chunk_size: int) -> None:
        """Plan as an earlier run did, but for what was asked for: a share of free memory, say, is not what it was."""
        request = self.request
        if request.get("method") == "auto" and request.get("plan") is None and method in METHODS:
            request["method"] = method
        if request.get("chunk_size") in (None, "auto"):
            request["chunk_size"] = chunk_size

    @property
    def chunk_is_open(self) -> bool:
        """Whether nobody has said how large chunks are, and no block of any size is stored."""
        asked = self.request.get("chunk_size") not in (None, "auto") or self.request.get("plan") is not None
        return not asked and not self.store.done and not self.store.complete

    def plan_in_chunks(self, least: int) -> None:
        """Have at least so many chunks, and such as do not share a piece of `out`, if nobody has said how large they are."""
        if self.chunk_is_open:
            chunk = max(1, min(self.plan.chunk, self.plan.sweeps // least))
            if self.store.out is not None:
                chunk = self.store.out.aligned(self.plan, chunk)
            if self.plan.chunk != chunk:
                assert self.graph is not None
                self.store.plan = make_plan(self.graph, plan=self.plan, chunk_size=chunk)

    # ------------------------------------------------------------------------------------------ sweeps
    def backward(self, weights: np.ndarray) -> np.ndarray:
        """vᵀJ by one weighted backward over the kept graph: (columns,) for (rows,), (k, columns) for (k, rows)."""
        assert self.graph is not None
        rows = self.graph.vjp(weights)
        self.sweeps += len(weights) if weights.ndim == 2 else 1
        self.unused = self.graph.unused
        return rows

    def forward(self, tangents: np.ndarray) -> np.ndarray:
        """Ju by one forward sweep over the kept graph: (rows,) for (columns,), (k, rows) for (k, columns)."""
        assert self.graph is not None
        columns = self.graph.jvp(tangents)
        self.sweeps += len(tangents) if tangents.ndim == 2 else 1
        return columns

    @in_turn
    def vjp(self, weights: np.ndarray) -> np.ndarray:
        """vᵀJ for v of shape (rows,): by the matrix, once it is known."""
        return self._typed(weights @ self.store.factor()) if self.store.complete else self.backward(weights)

    @in_turn
    def jvp(self, tangents: np.ndarray) -> np.ndarray:
        """Ju for u of shape (columns,): by the matrix, once it is known."""
        return self._typed(self.store.factor() @ tangents) if self.store.complete else self.forward(tangents)

    @in_turn
    def product(self, vectors: np.ndarray, side: int) -> np.ndarray:
        """J @ u (side 1) or v @ J (side 0) for vectors (size,) or (size, k): sweeps in chunks, or the matrix once known."""
        if self.store.complete:
            whole = self.store.factor()
            return self._typed(whole @ vectors if side else (whole.T @ vectors).T)
        sweep = self.forward if side else self.backward
        if vectors.ndim == 1:
            return sweep(vectors)
        product = np.empty((vectors.shape[1], self.store.shape[1 - side]), self.store.dtype)
        chunk = max(1, self.plan.chunk)
        for start in range(0, len(product), chunk):
            product[start : start + chunk] = sweep(np.ascontiguousarray(vectors[:, start : start + chunk].T))
        return product.T if side else product

    def _typed(self, values: Any) -> np.ndarray:
        return np.asarray(values, self.store.dtype)  # scipy has no float16

    # ------------------------------------------------------------------------------------------ lines
    @in_turn
    def row(self, i: int) -> np.ndarray:
        """Row `i`, computed by one weighted backward if it is not known yet. Read only."""
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
        """Column `j`: by one forward sweep, unless it is known."""
        known = self.store.column(j)
        return self.forward(_unit(j, self.store.shape[1], self.store.dtype)) if known is None else known

    def rows(self) -> Iterator[np.ndarray]:
        """The rows from first to last, computed a chunk at a time and not kept."""
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
        """The matrix, computed. Read only."""
        self.compute()
        with self.store.lock:
            return self.store.dense()

    def sparse(self) -> Any:
        """The matrix, computed, as a scipy.sparse.csr_array; one that does not fit into memory as a dense one is not kept."""
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
        """The blocks of the plan that are not stored."""
        return [] if self.store.complete else [block for block in self.plan.blocks() if block.number not in self.store.done]

    def compute(self, elsewhere: Elsewhere | None = None, progress: Any = None) -> None:
        """Make everything known, by the plan: here, or elsewhere."""
        elsewhere = elsewhere or self.elsewhere
        if self.store.complete:
            return
        if self.plan.sweeps == 0:  # an empty pattern: all is zero
            with self.store.lock:
                self.store.make_room()
                self._finish()
            return
        if elsewhere is not None:
            elsewhere.compute(self, progress)
            return
        self.run(self.missing(), progress=progress)

    def run(self, blocks: Iterable[Block], *, progress: Any = None) -> None:
        """Compute and store these blocks of the plan; the graph goes with the last. `progress` instead of the runner's own."""
        blocks, plan, store = list(blocks), self.plan, self.store
        known, todo = store.swept, sum(block.size for block in blocks)
        done, total = (known, plan.sweeps) if known + todo == plan.sweeps else (0, todo)
        with told(self.progress if progress is None else progress, done, total, plan.kind) as tell:
            try:
                for block in blocks:
                    with store.lock:
                        if not store.complete and block.number not in store.done:  # by another thread meanwhile
                            store.put(block, self.values(block))
                            if self.noted is not None:
                                self.noted({block: None})
                    done += block.size
                    tell(done)
            except BaseException as error:
                self.explain(error)
                raise
        self.settle()

    def take_over(self, blocks: Iterable[Block]) -> None:
        """Blocks that the store's `out` holds from an earlier run."""
        self.store.take_over(blocks)
        self.settle()

    def values(self, block: Block) -> np.ndarray:
        """The numbers of a block: swept, but for rows that are known already."""
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
        """Have done with the graph, if all is known."""
        if not self.store.complete and len(self.store.done) * self.plan.chunk >= self.plan.sweeps:
            self._finish()

    def _finish(self) -> None:
        """All is known: the graph is let go, and nobody has to go on."""
        store = self.store
        if store.complete:
            return
        assert self.graph is not None
        if store.plan is not None and store.plan.given and (store.done or not store.plan.sweeps):
            self._check_given(store.plan)
        self.unused = self.graph.unused
        store.close()
        self.graph = self.noted = self.question = None

    def _check_given(self, plan: Plan) -> None:
        """Say so if the pattern that was given leaves out what is not zero."""
        forward = plan.by == "columns"
        whole = self.store.factor()
        sweep, lines, across = (self.forward, "rows", whole) if forward else (self.backward, "columns", whole.T)
        wrong, unknown = compare(sweep, across, self.store.dtype, plan.chunk)
        if wrong.any():
            warn_at_the_caller(
                f"the pattern that was given leaves out entries that are not zero: {int(wrong.sum())} of {wrong.size} {lines} "
                f"are wrong, the first of them {int(np.argmax(wrong))}. Compute this one without plan= and sparsity=, or give a "
                "pattern that has all of its entries"
            )
        elif unknown.any():
            warn_at_the_caller(
                f"whether the pattern that was given has all entries that are not zero can be told of all {lines} but "
                f"{int(unknown.sum())} of {unknown.size}, which hold inf or NaN; the first of them is {int(np.argmax(unknown))}"
            )

    def explain(self, error: BaseException) -> None:
        """Say in the exception what is known, and how to go on."""
        plan, one = self.plan, self.plan.sweeps == 1
        name = plan.kind[:-1] if one else plan.kind
        text = (
            f"{self.store.swept} of {plan.sweeps} {name} of the Jacobian {'is' if one else 'are'} known and kept. "
            "Asking again, np.asarray(J) for example, goes on with the others"
            + ("; so does resume=True in another process." if self.noted is not None else ".")
        )
        if isinstance(error, KeyboardInterrupt) and not error.args:
            error.args = (text,)  # where notes are not shown too
        else:
            error.add_note(text)


def _unit(rows: Any, size: int, dtype: Any) -> np.ndarray:
    """The unit vector of one row, or a batch of several."""
    if np.ndim(rows) == 0:
        v = np.zeros(size, dtype)
        v[rows] = 1
        return v
    v = np.zeros((len(rows), size), dtype)
    v[np.arange(len(rows)), rows] = 1
    return v
