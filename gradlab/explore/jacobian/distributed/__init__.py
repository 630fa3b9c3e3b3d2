"""Jacobians computed by other threads, processes and machines: the plan's blocks as tasks of Dask or concurrent.futures.

A `Job` holds the request, the plan and the target (`job`). It is sent once to each worker, which records its own graph and
computes the blocks of its tasks (`tasks`). A `Pool` submits tasks to Dask or the standard library (`pools`). `runner` keeps
enough tasks under way for all workers, each with as many blocks as take a second or a few (`sizes`), and stores or records the
results. Errors are sent as text and, if possible, as exceptions (`failures`). The workers' environments determine whether the
numbers equal one process's bit for bit (`environment`).

For GPUs, use one worker per card (dask-cuda's LocalCUDACluster). The function's tensors are sent as they are, and blocks come
back as arrays of the host.
"""

from gradlab.explore.jacobian.distributed.runner import Workers

__all__ = ["Workers"]
