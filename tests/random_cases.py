"""Cases of the CPU's random number generator: the numbers drawn after `manual_seed`, and the final state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

SEQUENCES: dict[str, tuple[int, list[list[Any]]]] = {  # seed, [function, arguments, dtype]
    "uniforms": (0, [["rand", [3], "float32"], ["rand", [2, 2], "float64"], ["rand", [5], "float16"], ["rand", [], "float32"]]),
    "few normals": (
        1,
        [["randn", [1], "float32"], ["randn", [3], "float64"], ["randn", [15], "float32"], ["randn", [], "float64"]],
    ),
    "odd normals leave one for the next": (
        42,
        [["randn", [3], "float32"], ["rand", [2], "float32"], ["randn", [1], "float64"], ["rand", [1], "float32"]],
    ),
    "a block of normals": (42, [["randn", [16], "float32"], ["randn", [4, 4], "float64"], ["randn", [16], "float16"]]),
    "normals with a tail": (
        7,
        [
            ["randn", [17], "float32"],
            ["rand", [2], "float32"],
            ["randn", [3, 7], "float64"],
            ["randn", [19], "float16"],
            ["rand", [1], "float64"],
        ],
    ),
    "a block leaves the kept normal": (3, [["randn", [1], "float32"], ["randn", [16], "float32"], ["randn", [1], "float32"]]),
    "integers": (
        5,
        [
            ["randint", [0, 10, 6], "int64"],
            ["randint", [-5, 7, 6], "int64"],
            ["randint", [0, 2**28 - 1, 3], "int64"],
            ["randint", [0, 2**28, 3], "int64"],
            ["randint", [-(2**62), 2**62, 3], "int64"],
            ["rand", [1], "float32"],
        ],
    ),
    "permutations": (6, [["randperm", [n], "int64"] for n in (0, 1, 2, 10)] + [["rand", [1], "float32"]]),
    "coins": (
        8,
        [
            ["bernoulli", [[0.0, 0.25, 0.5, 0.75, 1.0]], "float32"],
            ["bernoulli", [[0.1, 0.5, 0.9]], "float64"],
            ["bernoulli_", [0.3, 12], "float32"],
            ["rand", [1], "float32"],
        ],
    ),
    "uniforms of a range": (
        9,
        [
            ["uniform_", [-0.3, 0.7, 5], "float32"],
            ["uniform_", [-0.3, 0.7, 5], "float64"],
            ["uniform_", [2047.0, 2048.0, 5], "float16"],
        ],
    ),
    "normals of a mean": (10, [["normal_", [2.0, 0.5, 4], "float32"], ["normal_", [-1.0, 0.1, 20], "float64"]]),
    "large seed": (2**64 - 1, [["rand", [3], "float32"]]),
    "negative seed": (-3, [["rand", [3], "float32"]]),
    "seed beyond 32 bits": (2**32 + 5, [["rand", [3], "float32"]]),
    "past one block of words": (11, [["randperm", [620], "int64"], ["rand", [6], "float32"]]),
}


def _draw(lib: Any, name: str, arguments: list[Any], dtype: str) -> Any:
    if name == "randperm":
        return lib.randperm(*arguments).tolist()
    kind = getattr(lib, dtype)
    if name in ("rand", "randn"):
        return getattr(lib, name)(arguments, dtype=kind).tolist()
    if name == "randint":
        return lib.randint(*arguments[:2], (arguments[2],)).tolist()
    if name == "bernoulli":
        return lib.bernoulli(lib.tensor(*arguments, dtype=kind)).tolist()
    *parameters, count = arguments
    return getattr(lib.empty(count, dtype=kind), name)(*parameters).tolist()


def _sequence(seed: int, calls: list[list[Any]]) -> Callable[[Any], dict[str, Any]]:
    def run(lib: Any) -> dict[str, Any]:
        lib.manual_seed(seed)
        drawn = [[name, arguments, dtype, _draw(lib, name, arguments, dtype)] for name, arguments, dtype in calls]
        state = hashlib.sha256(bytes(lib.get_rng_state().tolist())).hexdigest()
        return {"seed": seed, "initial_seed": lib.initial_seed(), "state": state, "calls": drawn}

    return run


TOPICS = {"random": {title: _sequence(seed, calls) for title, (seed, calls) in SEQUENCES.items()}}
