"""A small thread pool for large arrays. NumPy's loops release the GIL, so pieces of one array are computed in parallel.

`run_pieces(work, pieces)` calls work(0) … work(pieces - 1) in this thread and in the pool's threads. A free thread takes the
next piece, so a core that is busy elsewhere delays nothing. The caller chooses the pieces, which must not depend on the number
of threads, so that results do not. All pieces have ended when `run_pieces` returns or raises.

A call inside a piece, or while another user thread has the pool, runs only in its own thread. No call waits for the pool, so
there are no deadlocks. Threads are started on first need and stopped before a fork, so that the child has none and Python does
not warn about them. They are daemons, so that they do not keep the interpreter alive. A piece runs in a copy of the caller's
context, which contains `numpy.errstate`. If threads cannot be started, as on Pyodide, only the caller's is used.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable


def default_thread_count() -> int:
    """Return the default number of threads: OMP_NUM_THREADS, which BLAS also reads, or the cores available to this process."""
    if sys.platform == "emscripten":
        return 1
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if setting.isdecimal() and int(setting):
        return int(setting)
    counter = getattr(os, "process_cpu_count", None)  # from Python 3.13
    if counter is None and hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return (counter or os.cpu_count)() or 1


class Job:
    """Pieces of work that threads take one by one, until none is left or one has failed."""

    __slots__ = ("contexts", "ended", "error", "failed", "gate", "pieces", "taken", "work", "working")

    def __init__(self, work: Callable[[int], object], pieces: int) -> None:
        self.work, self.pieces, self.taken = work, pieces, 0
        self.gate = threading.Lock()
        self.working, self.ended = 0, threading.Event()  # number of busy workers; set when it becomes 0
        self.error: BaseException | None = None
        self.failed = pieces  # the number of the piece that raised `error`
        self.contexts: list[contextvars.Context] = []  # one copy of the caller's per worker, since two threads cannot share one

    def take(self) -> int | None:
        """Take a piece and return its number, or None if there is none left."""
        with self.gate:
            if self.taken >= self.pieces:
                return None
            self.taken += 1
            return self.taken - 1

    def run(self) -> None:
        """Run pieces until none is left. If several fail, keep the error of the first, as if one thread had run them all."""
        while (piece := self.take()) is not None:
            try:
                self.work(piece)
            except BaseException as error:  # noqa: BLE001  (raised by the caller of `run_pieces`)
                with self.gate:
                    self.taken = self.pieces
                    if piece < self.failed:
                        self.failed, self.error = piece, error

    def help(self) -> None:
        """Run pieces in the caller's context, as a worker. Set `ended` if no worker is busy afterwards."""
        with self.gate:
            if self.taken >= self.pieces or not self.contexts:
                return
            context = self.contexts.pop()
            self.working += 1
        try:
            context.run(self.run)
        finally:
            with self.gate:
                self.working -= 1
                if not self.working:
                    self.ended.set()

    def wait(self) -> None:
        """Start no further pieces and wait until no worker is busy. An interrupt is raised only then."""
        interrupt: BaseException | None = None
        while True:
            try:
                self.taken = self.pieces
                while self.working:
                    self.ended.wait()
                    with self.gate:
                        if self.working:
                            self.ended.clear()
                break
            except BaseException as error:  # noqa: BLE001  (raised below)
                interrupt = error
        if interrupt is not None:
            raise interrupt


class Worker:
    """A thread of the pool. It sleeps until it is woken for the pool's job."""

    __slots__ = ("stopping", "thread", "wake_lock")

    def __init__(self) -> None:
        self.wake_lock = threading.Lock()  # released to wake the thread
        self.wake_lock.acquire()
        self.stopping = False
        self.thread = threading.Thread(target=self.serve, name="gradlab", daemon=True)
        self.thread.start()

    def wake(self) -> None:
        """Wake the thread. It may already be awake."""
        with contextlib.suppress(RuntimeError):  # the lock is already released
            self.wake_lock.release()

    def serve(self) -> None:
        while True:
            self.wake_lock.acquire()
            if self.stopping:
                return
            job = pool.job
            if job is not None:
                job.help()
            del job  # do not keep its arrays alive until the next job

    def stop(self) -> None:
        """End the thread after its current job and wait for it."""
        self.stopping = True
        self.wake()
        if self.thread is not threading.current_thread():
            self.thread.join()


class Pool:
    """The worker threads and the job they work on."""

    def __init__(self, number: int) -> None:
        self.number = number  # threads that work on a job, including the caller's
        self.reset()

    def reset(self) -> None:
        """Reset the pool. The child of a fork has none of the threads, including any that held the gate or the job."""
        self.gate = threading.Lock()
        self.workers: list[Worker] = []
        self.job: Job | None = None

    def get_workers(self, pieces: int) -> list[Worker]:
        """Return the workers for a job, starting those that are missing."""
        wanted = min(self.number, pieces) - 1
        while len(self.workers) < wanted:
            try:
                self.workers.append(Worker())
            except RuntimeError:  # the interpreter is shutting down, or the system has no more threads
                break
        return self.workers[:wanted]

    def stop(self, left: int = 0) -> None:
        """Stop all workers except `left` of them."""
        self.workers, stopped = self.workers[:left], self.workers[left:]
        for worker in stopped:
            worker.stop()


pool = Pool(default_thread_count())


def run_pieces(work: Callable[[int], object], pieces: int) -> None:
    """Call work(0) … work(pieces - 1), distributed over the threads of the pool."""
    if pieces < 2 or pool.number < 2 or pool.job is not None or sys.is_finalizing():
        for piece in range(pieces):
            work(piece)
        return
    job = Job(work, pieces)
    try:  # an interrupt may occur after any call, so the pool is taken inside the block
        with pool.gate:
            if pool.job is None:
                pool.job = job
        if pool.job is job:
            workers = pool.get_workers(pieces)
            job.contexts = [contextvars.copy_context() for _ in workers]
            for worker in workers:
                worker.wake()
        job.run()
    finally:
        if pool.job is job:
            try:
                job.wait()
            finally:
                pool.job = None
    if job.error is not None:
        try:
            raise job.error
        finally:
            job.error = None  # it refers to this frame, which refers to the job


def number_of_threads() -> int:
    """Return the number of threads that work on a large array."""
    return pool.number


def set_number_of_threads(number: int) -> None:
    """Set the number of threads that work on a large array."""
    pool.number = number
    pool.stop(number - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=pool.stop, after_in_child=pool.reset)
