"""One run on workers: tasks handed out as they finish, and what comes back stored, noted and told.

At most so many tasks are under way as keep every worker busy, so what waits on workers or comes back to the client is bounded
however large the result is, and a run that is stopped loses those tasks alone.
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
from gradlab.explore.jacobian.progress import told
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.targets.zarr_store import KeyBeside
from gradlab.explore.jacobian.tracing import DerivativeRequest

AHEAD = 2  # tasks under way for each worker: one runs, one waits
GIVEN_BACK = 64e6  # bytes of numbers that a task may give back, where it has several blocks


def plan_for(pool: Pool, runner: Runner) -> None:
    """Have blocks that take about half a second here, and enough of them for all workers; if nobody said how large they are."""
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
        chunk = runner.store.out.aligned(plan, chunk)
    if chunk != plan.chunk:
        runner.store.plan = make_plan(graph, plan=plan, chunk_size=chunk)


class Workers:
    """An executor's workers, as what a `Runner` has compute elsewhere.

    Raises
    ------
    TypeError
        If it is no executor, or if the question is of no function, or of one that cannot travel.
    """

    def __init__(self, executor: Any, question: DerivativeRequest) -> None:
        self.pool = pool_for(executor, question)

    def size(self, runner: Runner) -> None:
        """Have the plan in blocks of the size that workers want."""
        plan_for(self.pool, runner)

    def compute(self, runner: Runner, progress: Any = None) -> None:
        """Compute and store all that is missing."""
        if runner.noted is None:
            with runner.store.lock:
                plan_for(self.pool, runner)
        try:
            with self._sent(runner) as job:
                DistributedRun(runner, self.pool, job).whole(runner.progress if progress is None else progress)
        except BaseException as error:
            runner.explain(error)
            raise
        runner.settle()

    def read(self, runner: Runner, stretches: Sequence[range]) -> list[int] | None:
        """The sums of the digests of stretches of blocks, as the target has them; None if workers do not see it."""
        if not stretches or runner.store.out is None or runner.store.out.takes == "any":
            return None
        with self._sent(runner) as job:
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
    def _sent(self, runner: Runner) -> Iterator[Job]:
        """The job of a runner, sent to the workers, its target marked so that they know it again."""
        question, graph, out = runner.question, runner.graph, runner.store.out
        assert question is not None
        assert graph is not None
        shared = out if out is not None and out.takes != "any" and (out.travels or self.pool.shares_memory) else None
        plan = replace(runner.plan)  # without what it has worked out for itself
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
                with suppress(OSError):  # of a store that failed, which was said
                    mark.remove()


class Tasks:
    """Tasks under way in a pool. One that was lost is sent again."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.under_way: dict[Any, tuple[Task, Sequence[int]]] = {}

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> None:
        """Hand out a task."""
        future = self.pool.submit(what, numbers, again)
        self.under_way[future] = what, numbers
        future.add_done_callback(self.finished.put)

    def answers(self) -> Iterator[tuple[Sequence[int], Answer]]:
        """(the blocks, what came of them) of the tasks that are done: one at least, unless it was lost."""
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
        """Let go of what has not begun."""
        self.pool.cancel([future for future in self.under_way if not future.done()])


class DistributedRun:
    """The tasks of one run."""

    def __init__(self, runner: Runner, pool: Pool, job: Job) -> None:
        self.runner, self.pool, self.job = runner, pool, job
        self.out = out = runner.store.out
        self.sizes, self.tasks = Sizes(), Tasks(pool)
        missing = runner.missing()
        self.units = deque(out.units(job.plan, missing) if out is not None else [[block] for block in missing])
        self.left, self.total = len(missing), len(job.plan.blocks())  # blocks that are not stored, and all
        self.waiting = self.left  # those that nobody has been handed
        self.made, self.gathers = 0, job.target is None  # what was computed; whether numbers come back here
        self.differences: dict[str, None] = {}  # in the order in which they were met
        assert runner.graph is not None
        self.here = environment(runner.graph.inputs[0])

    def whole(self, progress: Any) -> None:
        """Hand out all of it, and take in what comes."""
        known = self.total - self.left
        try:
            with told(progress, known, self.total, "blocks") as tell:
                while self.left:
                    self._hand_out()
                    for numbers, answer in self.tasks.answers():
                        self._keep(answer)
                        if answer.failure is not None:
                            raise answer.failure.error()
                        self.sizes.note(answer.seconds, len(numbers))
                    tell(self.total - self.left)
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
        """How many tasks may be under way: their numbers may all come back at once, and must have room."""
        if not self.gathers:
            return AHEAD * workers
        room = SHARE * free_memory() // max(GIVEN_BACK, self._bytes(self.job.plan.block(0)))
        return int(max(1, min(AHEAD * workers, room)))

    def _room(self, block: Block) -> int:
        """How many blocks like this a task may have that gives its numbers back."""
        return max(1, int(GIVEN_BACK // self._bytes(block))) if self.gathers else self.waiting

    def _bytes(self, block: Block) -> int:
        rows, columns = self.job.plan.shape
        plan = self.job.plan
        across = {"samples": plan.rows_a_sample * columns, "columns": rows, "rows": columns}[plan.by]
        return max(1, block.size * across * self.runner.store.dtype.itemsize)

    def _keep(self, answer: Answer) -> None:
        """Store what a worker gave back, note what it has written."""
        runner, store, plan, out = self.runner, self.runner.store, self.job.plan, self.out
        with store.lock:
            noted: dict[Block, int | None] = {}
            for number, values in answer.values.items():
                block = plan.block(number)
                if number not in store.done:  # by another thread meanwhile
                    store.put(block, values)
                    apart = out is not None and out.takes != "any"
                    noted[block] = digest_of(number, out.written(plan, block, values)) if out is not None and apart else None
            for number, digest in answer.written.items():
                block = plan.block(number)
                store.take_over([block])
                noted[block] = digest
            runner.sweeps += sum(block.size for block in noted)
            if noted and runner.noted is not None:
                runner.noted(noted)
        self.gathers = self.gathers or bool(answer.values)  # a worker that does not see the target
        done = len(answer.values) + len(answer.written)
        self.left, self.made = self.left - done, self.made + done
        for said in differing(self.here, answer.environment) if answer.environment else ():
            self.differences[said] = None

    def _say_equality(self) -> None:
        """Say in the plan how near the numbers are to one process's."""
        store = self.runner.store
        if not self.made or store.plan is None:
            return
        whose = f"{self.made:,} of {self.total:,} blocks are of {self.pool.name}, equal to one process's with this plan"
        if self.differences:
            said = f"{whose} to rounding: {'; '.join(list(self.differences)[:3])}"
        elif self.here.get("the device", "cpu") != "cpu":
            said = f"{whose} to rounding: a GPU's kernels may add in any order"
        else:
            said = f"{whose} to the bit: versions, BLAS, kernels and threads agree"
        store.plan = replace(store.plan, equality=said)
