"""Tasks of a worker: compute some blocks of a job, and write them to the target or return them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.explore.jacobian.checkpoint import digest_of
from gradlab.explore.jacobian.distributed.environment import environment
from gradlab.explore.jacobian.distributed.failures import Failure, block_text, failure_of
from gradlab.explore.jacobian.distributed.job import Job, Packed
from gradlab.explore.jacobian.methods import compute_block

KEPT = 2  # jobs that a process of concurrent.futures caches
_kept: OrderedDict[str, Packed] = OrderedDict()
_lock = Lock()


@dataclass
class Answer:
    """Result of a task.

    Attributes
    ----------
    written : dict of int to int
        Digests of the blocks that were written to the target.
    values : dict of int to ndarray
        Numbers of the blocks that the worker could not write.
    seconds : float
        Total time of these blocks.
    began : float
        Time to unpickle the job and call the function, once per worker.
    read : dict of int to int
        Digests of blocks in the target, if requested.
    failure : Failure or None
        The error that stopped the task; the blocks before it are done.
    surroundings : dict of str to str
        Facts on the worker's environment.
    unknown : bool
        Whether the worker does not have the job, which must then be sent along.
    """

    written: dict[int, int] = field(default_factory=dict)
    values: dict[int, np.ndarray] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    began: float = 0.0
    failure: Failure | None = None
    environment: dict[str, str] = field(default_factory=dict)
    unknown: bool = False


Task = Callable[[Job | Packed, Sequence[int]], Answer]


def run(job: Job | Packed, numbers: Sequence[int]) -> Answer:
    """Compute some blocks. All blocks of a unit (see `Target.units`) are in one task."""
    answer, start = Answer(), clock.now()
    doing = "when a worker began, before any block"
    try:
        if isinstance(job, Packed):
            job = job.job
        graph = job.graph()
        answer.environment = environment(graph.inputs[0])
        answer.began = clock.now() - start
        start = clock.now()
        target = job.target if job.reaches else None
        for number in numbers:
            block = job.plan.block(number)
            doing = f"by a worker in {block_text(job.plan, block)}"
            values = compute_block(graph, job.plan, block)
            if target is None:
                answer.values[number] = np.ascontiguousarray(values)
                continue
            doing = f"by a worker that wrote {block_text(job.plan, block)}, into {target.what}"
            target.put(job.plan, block, values)
            answer.written[number] = digest_of(number, target.expected_contents(job.plan, block, values))
    except Exception as error:  # noqa: BLE001  (from the user's function, a rule or a store: the client raises it again)
        answer.failure = failure_of(error, doing)
    answer.seconds = clock.now() - start
    return answer


def read(job: Job | Packed, numbers: Sequence[int]) -> Answer:
    """Return the digests of blocks in the target; none if this worker cannot access it."""
    answer, doing = Answer(), "when a worker began to read"
    try:
        if isinstance(job, Packed):
            job = job.job
        for number in numbers if job.reaches and job.target is not None else ():
            block = job.plan.block(number)
            doing = f"by a worker that read {block_text(job.plan, block)}"
            answer.read[number] = digest_of(number, job.target.read_block(job.plan, block))  # type: ignore[union-attr]
    except Exception as error:  # noqa: BLE001  (from a store: the client raises it again)
        answer.failure = failure_of(error, doing)
    return answer


def call_cached(what: Task, token: str, content: bytes | None, numbers: Sequence[int]) -> Answer:
    """Call `run` or `read` in a process that caches jobs. `content` is sent along if the process does not have this one."""
    with _lock:
        job = _kept.get(token)
        if job is None and content is not None:
            job = _kept[token] = Packed(token, content)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return Answer(unknown=True) if job is None else what(job, numbers)


def idle() -> Any:
    """Return at once. A cluster that starts workers on demand starts one for it."""
