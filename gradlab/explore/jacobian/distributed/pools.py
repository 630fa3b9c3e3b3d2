"""Pools that run tasks: a `dask.distributed.Client`, or any `concurrent.futures.Executor`.

Both return futures with callbacks, so one loop serves both. They differ in how the job is sent. Threads share it. Dask scatters
it, once to each worker. A process of an executor that does not have the job says so, and the task is sent again with the job.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

from gradlab import clock
from gradlab.explore.jacobian.distributed.job import Job, Packed, bytes_of, pack
from gradlab.explore.jacobian.distributed.tasks import Answer, Task, call_cached, idle
from gradlab.explore.jacobian.tracing import DerivativeRequest, kind_text

RECOUNTED = 5.0  # seconds between counts of the workers of a cluster, which may grow
FIRST_WORKER = 600.0  # seconds to wait for the first worker of a cluster that starts them on demand
LOST, PAUSE = 10, 0.5  # times that a lost job is sent again, and seconds between


class Pool:
    """Base class of pools, which run tasks.

    Attributes
    ----------
    name : str
        Name in messages.
    shares_memory : bool
        Whether workers share the objects of this process, such as a store in memory.
    """

    name, shares_memory = "", False

    def workers(self) -> int:
        """Return the number of tasks that run at once."""
        raise NotImplementedError

    def send(self, job: Job) -> None:
        """Prepare a job for `submit`."""
        raise NotImplementedError

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> Any:
        """Return a future for a task with some blocks of the job. `again`: it was submitted before, and got no answer."""
        raise NotImplementedError

    def answer(self, future: Any) -> Answer | None:
        """Return the answer of a finished future; None if the task must be submitted again."""
        raise NotImplementedError

    def cancel(self, futures: Sequence[Any]) -> None:
        """Cancel tasks that have not started."""
        for future in futures:
            future.cancel()

    def close(self) -> None:
        """Release the job."""


class ThreadPool(Pool):
    """Threads of this process."""

    shares_memory = True

    def __init__(self, executor: Any) -> None:
        self.executor, self.name = executor, "threads"
        self.job: Job | None = None

    def workers(self) -> int:
        return _size(self.executor)

    def send(self, job: Job) -> None:
        self.job = job

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> Any:
        assert self.job is not None
        return self.executor.submit(what, self.job, tuple(numbers))

    def answer(self, future: Any) -> Answer | None:
        answer: Answer = future.result()
        return answer


class ProcessPool(Pool):
    """Processes of any executor, in which gradlab can be imported."""

    def __init__(self, executor: Any) -> None:
        self.executor, self.name = executor, "processes"
        self.packed: Packed | None = None

    def workers(self) -> int:
        return _size(self.executor)

    def send(self, job: Job) -> None:
        self.packed = pack(job)

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> Any:
        assert self.packed is not None
        return self.executor.submit(call_cached, what, self.packed.token, self.packed.content if again else None, tuple(numbers))

    def answer(self, future: Any) -> Answer | None:
        try:
            answer: Answer = future.result()
        except concurrent.futures.BrokenExecutor as error:
            error.add_note("A process of the executor died, which breaks it. Another request with a new one continues.")
            raise
        return None if answer.unknown else answer


class DaskPool(Pool):
    """The workers of a dask cluster."""

    def __init__(self, client: Any) -> None:
        self.client, self.name = client, "dask's workers"
        self.packed: Packed | None = None
        self.scattered: Any = None
        self.counted, self.count, self.lost = -RECOUNTED, 0, 0

    def workers(self) -> int:
        now = clock.now()
        if now - self.counted > RECOUNTED:
            self.counted, self.count = now, sum(self.client.nthreads().values())
        return max(1, self.count)

    def send(self, job: Job) -> None:
        self.packed = pack(job)
        if not self.client.nthreads():
            self.client.submit(idle, key=f"gradlab-idle-{uuid.uuid4().hex}").result(timeout=FIRST_WORKER)
            self.counted = -RECOUNTED
        self._scatter()

    def _scatter(self) -> None:
        for left in reversed(range(LOST)):
            try:
                self.scattered = self.client.scatter(self.packed, broadcast=True, hash=False)
                return
            except OSError:  # a worker that was receiving it has just died
                if not left or self.client.status != "running":
                    raise
                time.sleep(PAUSE)

    def submit(self, what: Task, numbers: Sequence[int], again: bool = False) -> Any:
        if again and self.scattered.status != "finished":
            self._scatter()
        assert self.packed is not None
        key = f"gradlab-jacobian-{self.packed.token}-{numbers[0]}-{uuid.uuid4().hex[:8]}"
        return self.client.submit(what, self.scattered, tuple(numbers), key=key, pure=False)

    def answer(self, future: Any) -> Answer | None:
        try:
            answer: Answer = future.result()
        except concurrent.futures.CancelledError:  # with the last worker that had the job, or with the scheduler
            self.lost += 1
            if self.lost > LOST or self.client.status != "running":
                raise ConnectionError(
                    f"the Dask cluster lost the work and does not accept it again (its client is {self.client.status!r})"
                ) from None
            return None
        finally:
            future.release()
        return answer

    def cancel(self, futures: Sequence[Any]) -> None:
        if futures and self.client.status == "running":
            self.client.cancel(list(futures))

    def close(self) -> None:
        if self.scattered is not None:
            self.scattered.release()
        self.scattered = None


def _size(executor: Any) -> int:
    """Return the number of an executor's workers, or of processors if it is unknown."""
    said = getattr(executor, "_max_workers", None)
    return said if isinstance(said, int) and said > 0 else os.cpu_count() or 1


def pool_of(executor: Any) -> Pool:
    """Return the pool of an executor given by the user.

    Raises
    ------
    TypeError
        If it is not a Dask client or an executor.
    """
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        if executor.asynchronous:
            raise TypeError("executor= takes a dask Client that waits for its results; this one was made with asynchronous=True")
        return DaskPool(executor)
    apart = getattr(concurrent.futures, "InterpreterPoolExecutor", ())
    if isinstance(executor, concurrent.futures.ThreadPoolExecutor) and not isinstance(executor, apart):
        return ThreadPool(executor)
    if isinstance(executor, concurrent.futures.Executor):
        return ProcessPool(executor)
    raise TypeError(f"executor= takes a dask.distributed.Client or a concurrent.futures.Executor; got {kind_text(executor)}")


def pool_for(executor: Any, question: DerivativeRequest) -> Pool:
    """Return the pool of an executor, if it can compute this request; otherwise raise before anything starts.

    Raises
    ------
    TypeError
        If it is not an executor, or if the target is not a function or cannot be pickled.
    """
    pool = pool_of(executor)
    if not question.is_function:
        raise TypeError(
            f"executor= takes a function, which each worker calls; got {kind_text(question.target)}. Give {question.verb} the "
            "function that computes it"
        )
    if not pool.shares_memory and callable(question.target):
        bytes_of(question.target, question)
    return pool
