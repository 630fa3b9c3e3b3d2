"""A run on workers: submits tasks as others finish, and stores, records and reports the results.

The number of tasks under way is just large enough to keep every worker busy. So the memory on workers and for results on the
client is bounded however large the matrix is, and a run that is stopped loses only those tasks.
"""

from __future__ import annotations

import queue
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from gradlab import clock
from gradlab.explore.jacobian.checkpoint import digest_of, summary
from gradlab.explore.jacobian.distributed.environment import differing, environment
from gradlab.explore.jacobian.distributed.job import MARK, Job
from gradlab.explore.jacobian.distributed.pools import Pool, pool_for
from gradlab.explore.jacobian.distributed.sizes import ROUNDS, Sizes, affordable
from gradlab.explore.jacobian.distributed.tasks import Answer, Task, read, run
from gradlab.explore.jacobian.memory import SHARE, free_memory
from gradlab.explore.jacobian.methods import compute_block
from gradlab.explore.jacobian.plan import Block, make_plan
from gradlab.explore.jacobian.progress import report_progress
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.targets.zarr_store import KeyBeside
from gradlab.explore.jacobian.tracing import DerivativeRequest

AHEAD = 2  # tasks under way per worker: one runs, one waits
GIVEN_BACK = 64e6  # bytes of numbers that a task of several blocks may return


def plan_for(pool: Pool, runner: Runner) -> None:
    """Choose blocks that take about half a second here, and enough of them for all workers, unless the chunk size is given."""
    if not runner.chunk_is_open or runner.graph is None:
        return
    graph, plan = runner.graph, runner.plan
    most = max(1, min(plan.chunk, -(-plan.sweeps // (ROUNDS * pool.workers()))))

    def measure(count: int) -> float:
        start = clock.now()
        compute_block(graph, plan, Block(0, plan.kind, 0, count))
        return clock.now() - start

    chunk = affordable(measure, most) if plan.sweeps else 1
    if runner.store.out is not None:
        chunk = runner.store.out.aligned_chunk(plan, chunk)
    if chunk != plan.chunk:
        runner.store.plan = make_plan(graph, plan=plan, chunk_size=chunk)


class Workers:
    """An executor's workers, as the `elsewhere` of a `Runner`.

    Raises
    ------
    TypeError
        If it is not an executor, or if the request has no function or one that cannot be pickled.
    """

    def __init__(self, executor: Any, question: DerivativeRequest) -> None:
        self.pool = pool_for(executor, question)

    def size(self, runner: Runner) -> None:
        """Resize the plan's blocks for the workers."""
        plan_for(self.pool, runner)

    def compute(self, runner: Runner, progress: Any = None) -> None:
        """Compute and store all missing blocks."""
        if runner.on_stored is None:
            with runner.store.lock:
                plan_for(self.pool, runner)
        try:
            with self._send(runner) as job:
                DistributedRun(runner, self.pool, job).whole(runner.progress if progress is None else progress)
        except BaseException as error:
            runner.explain(error)
            raise
        runner.settle()

    def read(self, runner: Runner, stretches: Sequence[range]) -> list[int] | None:
        """Return sums of the digests of stretches of blocks in the target; None if workers cannot access it."""
        if not stretches or runner.store.out is None or runner.store.out.takes == "any":
            return None
        with self._send(runner) as job:
            tasks, waiting, sums = Tasks(self.pool), deque(stretches), dict.fromkeys(stretches, 0)
            try:
                while job.target is not None and (waiting or tasks.under_way):
                    while waiting and len(tasks.under_way) < AHEAD * self.pool.workers():
                        tasks.submit(read, waiting.popleft())
                    for numbers, answer in tasks.answers():
                        if answer.failure is not None:
                            raise answer.failure.error()
                        if len(answer.read) < len(numbers):
                            return None
                        assert isinstance(numbers, range)
                        sums[numbers] = sum(answer.read.values())
            finally:
                tasks.cancel()
        return list(sums.values()) if job.target is not None else None

    @contextmanager
    def _send(self, runner: Runner) -> Iterator[Job]:
        """Send a runner's job to the workers, with its target marked so that they recognise it."""
        question, graph, out = runner.question, runner.graph, runner.store.out
        assert question is not None
        assert graph is not None
        shared = out if out is not None and out.takes != "any" and (out.travels or self.pool.shares_memory) else None
        plan = replace(runner.plan)  # without its cached properties
        job = Job(question, plan, summary(graph.output()), shared, uuid.uuid4().hex)
        place = shared.place() if shared is not None else None
        mark = KeyBeside(place.base, MARK) if isinstance(place, KeyBeside) else None
        try:
            if mark is not None:
                mark.write(job.token)
            self.pool.send(job)
            yield job
        finally:
            self.pool.close()
            if mark is not None:
                with suppress(OSError):  # the store failed, which was reported
                    mark.remove()


class Tasks:
    """Tasks under way in a pool. A lost task is sent again."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.under_way: dict[Any, tuple[Task, Sequence[int]]] = {}

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> None:
        """Submit a task."""
        future = self.pool.submit(what, numbers, again)
        self.under_way[future] = what, numbers
        future.add_done_callback(self.finished.put)

    def answers(self) -> Iterator[tuple[Sequence[int], Answer]]:
        """Yield (blocks, answer) of the tasks that are done: at least one, unless it was lost."""
        future = self.finished.get()
        while True:
            what, numbers = self.under_way.pop(future)
            try:
                answer = self.pool.answer(future)
            except BaseException as error:
                error.add_note(f"A task of {self.pool.name} ended so, with blocks {numbers[0]} to {numbers[-1]} of the Jacobian.")
                raise
            if answer is None:
                self.submit(what, numbers, again=True)
            else:
                yield numbers, answer
            if self.finished.empty():
                return
            future = self.finished.get()

    def cancel(self) -> None:
        """Cancel tasks that have not started."""
        self.pool.cancel([future for future in self.under_way if not future.done()])


class DistributedRun:
    """The tasks of one run."""

    def __init__(self, runner: Runner, pool: Pool, job: Job) -> None:
        self.runner, self.pool, self.job = runner, pool, job
        self.out = out = runner.store.out
        self.sizes, self.tasks = Sizes(), Tasks(pool)
        missing = runner.missing()
        self.units = deque(out.units(job.plan, missing) if out is not None else [[block] for block in missing])
        self.left, self.total = len(missing), len(job.plan.blocks())  # blocks that are not stored, and all blocks
        self.waiting = self.left  # blocks that were not submitted yet
        self.made, self.gathers = 0, job.target is None  # blocks computed; whether numbers are returned to this process
        self.differences: dict[str, None] = {}  # in order of appearance
        assert runner.graph is not None
        self.here = environment(runner.graph.inputs[0])

    def whole(self, progress: Any) -> None:
        """Submit all blocks, and store the results."""
        known = self.total - self.left
        try:
            with report_progress(progress, known, self.total, "blocks") as report:
                while self.left:
                    self._hand_out()
                    for numbers, answer in self.tasks.answers():
                        self._keep(answer)
                        if answer.failure is not None:
                            raise answer.failure.error()
                        self.sizes.note(answer.seconds, len(numbers))
                    report(self.total - self.left)
        finally:
            self.tasks.cancel()
            self._say_equality()

    def _hand_out(self) -> None:
        workers = self.pool.workers()
        limit = self._most(workers)
        while self.units and len(self.tasks.under_way) < limit:
            blocks = list(self.units.popleft())
            wanted = min(self.sizes.blocks(self.waiting, workers), self._room(blocks[0]))
            while self.units and len(blocks) + len(self.units[0]) <= wanted:
                blocks += self.units.popleft()
            self.waiting -= len(blocks)
            self.tasks.submit(run, [block.number for block in blocks])

    def _most(self, workers: int) -> int:
        """Return the maximum number of tasks under way. All of their numbers may come back at once, and must fit into memory."""
        if not self.gathers:
            return AHEAD * workers
        room = SHARE * free_memory() // max(GIVEN_BACK, self._bytes(self.job.plan.block(0)))
        return int(max(1, min(AHEAD * workers, room)))

    def _room(self, block: Block) -> int:
        """Return the maximum number of blocks like this in a task that returns its numbers."""
        return max(1, int(GIVEN_BACK // self._bytes(block))) if self.gathers else self.waiting

    def _bytes(self, block: Block) -> int:
        rows, columns = self.job.plan.shape
        plan = self.job.plan
        across = {"samples": plan.rows_a_sample * columns, "columns": rows, "rows": columns}[plan.by]
        return max(1, block.size * across * self.runner.store.dtype.itemsize)

    def _keep(self, answer: Answer) -> None:
        """Store blocks that a worker returned, and record blocks that it has written."""
        runner, store, plan, out = self.runner, self.runner.store, self.job.plan, self.out
        with store.lock:
            noted: dict[Block, int | None] = {}
            for number, values in answer.values.items():
                block = plan.block(number)
                if number not in store.done:  # not stored by another thread meanwhile
                    store.put(block, values)
                    apart = out is not None and out.takes != "any"
                    noted[block] = (
                        digest_of(number, out.expected_contents(plan, block, values)) if out is not None and apart else None
                    )
            for number, digest in answer.written.items():
                block = plan.block(number)
                store.take_over([block])
                noted[block] = digest
            runner.sweeps += sum(block.size for block in noted)
            if noted and runner.on_stored is not None:
                runner.on_stored(noted)
        self.gathers = self.gathers or bool(answer.values)  # the worker cannot access the target
        done = len(answer.values) + len(answer.written)
        self.left, self.made = self.left - done, self.made + done
        for said in differing(self.here, answer.environment) if answer.environment else ():
            self.differences[said] = None

    def _say_equality(self) -> None:
        """Write into the plan how close the numbers are to one process's."""
        store = self.runner.store
        if not self.made or store.plan is None:
            return
        whose = f"{self.made:,} of {self.total:,} blocks are from {self.pool.name} and equal those of one process with this plan"
        if self.differences:
            said = f"{whose} up to rounding: {'; '.join(list(self.differences)[:3])}"
        elif self.here.get("the device", "cpu") != "cpu":
            said = f"{whose} up to rounding: kernels of a GPU may add in any order"
        else:
            said = f"{whose} bit for bit: versions, BLAS, kernels and threads agree"
        store.plan = replace(store.plan, equality=said)
