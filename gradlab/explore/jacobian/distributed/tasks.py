"""What a worker does: some blocks of a job, computed, and written where the job says or given back."""

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
from gradlab.explore.jacobian.distributed.failures import Failure, block_text, caught
from gradlab.explore.jacobian.distributed.job import Job, Packed
from gradlab.explore.jacobian.methods import compute_block

KEPT = 2  # jobs that a process of concurrent.futures remembers
_kept: OrderedDict[str, Packed] = OrderedDict()
_lock = Lock()


@dataclass
class Answer:
    """What came of a task.

    Attributes
    ----------
    written : dict of int to int
        The blocks that are in the target, and their digests.
    values : dict of int to ndarray
        The numbers of those that the worker could not write.
    seconds : float
        What these blocks took, together.
    began : float
        What it took before, once a worker: the job opened, the function called.
    read : dict of int to int
        The digests of blocks that the target has, where these were asked for.
    failure : Failure or None
        What stopped it; the blocks before are done.
    surroundings : dict of str to str
        What the worker computes by.
    unknown : bool
        The worker does not have the job: send it along.
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
    """Compute some blocks. A unit of blocks (see `Target.units`) is a task's, whole."""
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
            answer.written[number] = digest_of(number, target.written(job.plan, block, values))
    except Exception as error:  # noqa: BLE001  (the user's function, a rule, a store: the client raises it again)
        answer.failure = caught(error, doing)
    answer.seconds = clock.now() - start
    return answer


def read(job: Job | Packed, numbers: Sequence[int]) -> Answer:
    """What the target has of some blocks, by digests; of none if this worker does not see it."""
    answer, doing = Answer(), "when a worker began to read"
    try:
        if isinstance(job, Packed):
            job = job.job
        for number in numbers if job.reaches and job.target is not None else ():
            block = job.plan.block(number)
            doing = f"by a worker that read {block_text(job.plan, block)}"
            answer.read[number] = digest_of(number, job.target.held(job.plan, block))  # type: ignore[union-attr]
    except Exception as error:  # noqa: BLE001  (of a store: the client raises it again)
        answer.failure = caught(error, doing)
    return answer


def known(what: Task, token: str, content: bytes | None, numbers: Sequence[int]) -> Answer:
    """`run` or `read` in a process that remembers jobs: `content` comes along where it does not have this one."""
    with _lock:
        job = _kept.get(token)
        if job is None and content is not None:
            job = _kept[token] = Packed(token, content)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return Answer(unknown=True) if job is None else what(job, numbers)


def idle() -> Any:
    """Nothing: by it a cluster that starts workers on demand is asked for one."""
