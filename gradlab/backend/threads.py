"""A small pool of threads for work on large arrays: NumPy's loops release the GIL, so pieces of one array are computed at once.

`shared(work, pieces)` calls work(0) … work(pieces - 1), in this thread and in the pool's. Whoever is free takes the next piece,
so a core that is busy elsewhere delays nobody; where the pieces begin and end is the caller's affair and must not depend on the
number of threads, so that results do not. Every piece has ended when it returns, or raises.

What runs inside of a piece, or while another thread of the user's has the pool, runs in its own thread alone: nothing waits for
a turn, so nothing can wait in a circle. The threads are made when first needed, are ended before a fork (so the child starts
with none, and Python has no reason to warn of it) and are daemons, so that they keep no interpreter from its end. A piece runs
in a copy of the caller's context, where `numpy.errstate` is kept. Where threads cannot be started, as on Pyodide, there is one.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable


def cores() -> int:
    """How many threads there are unless somebody says otherwise: as OMP_NUM_THREADS says, which BLAS reads too, or as many as
    this process may use cores."""
    if sys.platform == "emscripten":
        return 1
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if said.isdecimal() and int(said):
        return int(said)
    counter = getattr(os, "process_cpu_count", None)  # from Python 3.13
    if counter is None and hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return (counter or os.cpu_count)() or 1


class Job:
    """Pieces of work that threads take one after the other, until there is none left or one has failed."""

    __slots__ = ("contexts", "ended", "error", "failed", "gate", "pieces", "taken", "work", "working")

    def __init__(self, work: Callable[[int], object], pieces: int) -> None:
        self.work, self.pieces, self.taken = work, pieces, 0
        self.gate = threading.Lock()
        self.working, self.ended = 0, threading.Event()  # workers that have a piece in hand; set when the last has none
        self.error: BaseException | None = None
        self.failed = pieces  # the number of the piece that raised it
        self.contexts: list[contextvars.Context] = []  # a copy of the caller's for each worker: two cannot be in one

    def take(self) -> int | None:
        """The number of the next piece, or None."""
        with self.gate:
            if self.taken >= self.pieces:
                return None
            self.taken += 1
            return self.taken - 1

    def run(self) -> None:
        """Take pieces. Of several that fail the first is the one that is told, as if one thread had run them all."""
        while (piece := self.take()) is not None:
            try:
                self.work(piece)
            except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
                with self.gate:
                    self.taken = self.pieces
                    if piece < self.failed:
                        self.failed, self.error = piece, error

    def help(self) -> None:
        """What a worker does: take pieces, in the caller's context, and say when it has no more in hand."""
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
        """Begin no further piece, and return when no worker has one in hand, however often the user interrupts: that is raised
        then."""
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
    """A thread of the pool. It sleeps until it is called to the pool's job."""

    __slots__ = ("called", "leaves", "thread")

    def __init__(self) -> None:
        self.called = threading.Lock()  # free: it is to look what there is to do
        self.called.acquire()
        self.leaves = False
        self.thread = threading.Thread(target=self.serve, name="gradlab", daemon=True)
        self.thread.start()

    def call(self) -> None:
        """Wake it. It may be awake already."""
        with contextlib.suppress(RuntimeError):  # it has been called, and has not come yet
            self.called.release()

    def serve(self) -> None:
        while True:
            self.called.acquire()
            if self.leaves:
                return
            job = pool.job
            if job is not None:
                job.help()
            del job  # what it worked on is not kept alive until the next time

    def leave(self) -> None:
        """Have the thread end, after the pieces that it takes part in."""
        self.leaves = True
        self.call()
        if self.thread is not threading.current_thread():
            self.thread.join()


class Pool:
    """The threads that there are beside the callers' own, and the job they work on."""

    def __init__(self, number: int) -> None:
        self.number = number  # of threads that work on a job, its caller's included
        self.forget()

    def forget(self) -> None:
        """Begin anew: in the child of a fork there are none of the threads, nor who held the gate or had the job."""
        self.gate = threading.Lock()
        self.workers: list[Worker] = []
        self.job: Job | None = None

    def called(self, pieces: int) -> list[Worker]:
        """The workers for a job, made if they are not there yet."""
        wanted = min(self.number, pieces) - 1
        while len(self.workers) < wanted:
            try:
                self.workers.append(Worker())
            except RuntimeError:  # the interpreter is about to end, or the system has no more threads
                break
        return self.workers[:wanted]

    def stop(self, left: int = 0) -> None:
        """End the workers but for so many."""
        self.workers, gone = self.workers[:left], self.workers[left:]
        for worker in gone:
            worker.leave()


pool = Pool(cores())


def shared(work: Callable[[int], object], pieces: int) -> None:
    """work(0) … work(pieces - 1), by as many threads as there are."""
    if pieces < 2 or pool.number < 2 or pool.job is not None or sys.is_finalizing():
        for piece in range(pieces):
            work(piece)
        return
    job = Job(work, pieces)
    try:  # an interrupt may come after any call: what is taken is taken inside
        with pool.gate:
            if pool.job is None:
                pool.job = job
        if pool.job is job:
            workers = pool.called(pieces)
            job.contexts = [contextvars.copy_context() for _ in workers]
            for worker in workers:
                worker.call()
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
    """How many threads work on a large array."""
    return pool.number


def set_number_of_threads(number: int) -> None:
    """Have so many from now on."""
    pool.number = number
    pool.stop(number - 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=pool.stop, after_in_child=pool.forget)
