"""Random streams used if no generator is given: the default stream and the streams of GPUs.

A GPU draws from the default stream, so that a program gets the same numbers on either device, unless the GPU has its own seed
(`cuda.manual_seed`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import current_gpu

WEYL_INCREMENT = 2654435769  # 2**32 over the golden ratio
States = dict[int | None, np.ndarray]

default = MersenneTwister()
gpu_streams: dict[int, MersenneTwister] = {}


def stream(xp: Any = np) -> MersenneTwister:
    """Return the stream for arrays of a namespace; for CuPy, the stream of the current GPU."""
    return default if xp is np or not gpu_streams else gpu_streams.get(current_gpu(), default)


def stream_of(number: int) -> MersenneTwister:
    """Return the stream of GPU `number`."""
    return gpu_streams.get(number, default)


def seed_gpu(number: int, seed: int) -> None:
    """Give a GPU its own stream with this seed. It differs from the default stream with the same seed."""
    seed = int(seed)
    gpu_streams.setdefault(number, MersenneTwister()).manual_seed((seed * WEYL_INCREMENT + 1) % 2**32)


def set_gpu_state(number: int, state: np.ndarray) -> None:
    """Give a GPU its own stream in this state."""
    own = MersenneTwister()
    own.set_state(state)
    gpu_streams[number] = own


def get_states() -> States:
    """Return the state of the default stream (key None) and of each GPU with its own stream."""
    return {None: default.get_state()} | {number: own.get_state() for number, own in gpu_streams.items()}


def restore_states(before: States) -> None:
    """Restore the states returned by `get_states`."""
    default.set_state(before[None])
    for number in list(gpu_streams):
        if number not in before:
            del gpu_streams[number]
    for which, state in before.items():
        if which is not None:
            set_gpu_state(which, state)
