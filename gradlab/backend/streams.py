"""The random streams that are drawn from where no generator is given: the default one, and those of the GPUs that have their own.

A GPU draws from the default stream, so that a program gives the same numbers on either device, unless it was given a seed of its
own (`cuda.manual_seed`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import current_gpu

WEYL = 2654435769  # 2**32 over the golden ratio
States = dict[int | None, np.ndarray]

default = MersenneTwister()
of_gpus: dict[int, MersenneTwister] = {}


def stream(xp: Any = np) -> MersenneTwister:
    """What arrays of a namespace are drawn from, those of a GPU on the current one."""
    return default if xp is np or not of_gpus else of_gpus.get(current_gpu(), default)


def stream_of(number: int) -> MersenneTwister:
    """The stream that GPU `number` draws from."""
    return of_gpus.get(number, default)


def seed_gpu(number: int, seed: int) -> None:
    """Give a GPU a stream of its own, which is not the default stream of the same seed."""
    seed = int(seed)
    of_gpus.setdefault(number, MersenneTwister()).manual_seed((seed * WEYL + 1) % 2**32)


def set_gpu(number: int, state: np.ndarray) -> None:
    """Give a GPU a stream of its own, in this state."""
    own = MersenneTwister()
    own.set_state(state)
    of_gpus[number] = own


def states() -> States:
    """The state of the default stream (None), and of each GPU that has one of its own."""
    return {None: default.get_state()} | {number: own.get_state() for number, own in of_gpus.items()}


def go_on_from(before: States) -> None:
    """Go on from what `states` returned."""
    default.set_state(before[None])
    for number in list(of_gpus):
        if number not in before:
            del of_gpus[number]
    for which, state in before.items():
        if which is not None:
            set_gpu(which, state)
