"""Jacobians that other threads, processes and machines compute: the plan's blocks as tasks of dask, or of concurrent.futures.

A `Job` is the question, the plan and where the result goes (`job`). It travels once to each worker, which records the graph for
itself and computes the blocks that it is told to (`tasks`). A `Pool` is what hands out tasks, dask's or the standard library's
(`pools`). `runner` keeps as many tasks under way as there are workers for, each of as many blocks as take a second or a few
(`sizes`), and stores or notes what comes back. Errors travel as text and, if they can, as themselves (`failures`). Whether the
numbers equal one process's to the bit is told by what they were computed with (`environment`).

The layout for GPUs is a worker for each card (dask-cuda's LocalCUDACluster): the function's tensors travel to it as they are, and
blocks come back as arrays of the host.
"""

from gradlab.explore.jacobian.distributed.runner import Workers

__all__ = ["Workers"]
