"""Record what PyTorch 2.13 does, for the tests to compare with.

Run by hand, with torch 2.13 installed, when a topic is added or changed:

    python tests/record_torch.py [TOPIC ...]

Each topic is a function that returns named cases; they are written to `tests/expected/TOPIC.json`, one case a line,
with torch's version, so that a change is reviewed as a diff. Numbers are written by Python's `repr`, which loses
nothing. `torch.` in dtype names is left as it is; the tests know that gradlab writes `gradlab.`. What runs on both
libraries alike lies in `spellings.py`; what needs torch's own internals lies here.
"""
from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spellings
import torch
from torch.autograd import forward_ad

EXPECTED = Path(__file__).parent / "expected"
TOPICS: dict[str, Callable[[], dict[str, Any]]] = {}


def topic(record: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Register a topic under its function's name."""
    TOPICS[record.__name__] = record
    return record


def main(names: list[str]) -> None:
    if not torch.__version__.startswith("2.13."):
        sys.exit(f"The expectations are those of torch 2.13; this is {torch.__version__}.")
    if unknown := set(names) - set(TOPICS):
        sys.exit(f"No topic {', '.join(sorted(unknown))}. There are: {', '.join(TOPICS)}.")
    for name in names or TOPICS:
        lines = [f" {json.dumps(case)}: {json.dumps(data)}" for case, data in TOPICS[name]().items()]
        text = f'{{"torch": "{torch.__version__}",\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n"
        (EXPECTED / f"{name}.json").write_text(text)
        print(f"{name}: {len(lines)} cases, {len(text) / 1024:.1f} KB")


# ------------------------------------------------------------------------------------------------------------ printing
INF, NAN = float("inf"), float("nan")
VALUES = {                                                     # dtype, nested list
    "integers as floats": ("float32", [0, 1, 2, 3, 4]),
    "fractions": ("float32", [0.5, 1.25, -2.0]),
    "negative zero alone": ("float32", [-0.0, 0.0]),
    "negative zero among fractions": ("float32", [-0.0, 0.5]),
    "all zero": ("float32", [[0, 0], [0, 0]]),
    "ratio of exactly 1000": ("float32", [0.5, 500.0]),
    "ratio over 1000": ("float32", [0.5, 500.5]),
    "integers of ratio over 1000": ("float32", [1, 1001]),
    "largest 1e8": ("float32", [1e8, 1e8]),
    "largest over 1e8": ("float64", [1e8 + 1, 1e8]),
    "smallest 1e-4 in double": ("float64", [1e-4, 2e-4]),
    "smallest 1e-4 in single": ("float32", [1e-4, 2e-4]),
    "smallest below 1e-4": ("float32", [9.9e-5, 0.01]),
    "zero does not count as smallest": ("float32", [0.0, 0.25]),
    "nan is wider than its column": ("float32", [NAN, 1.0, -2.0]),
    "infinities are wider": ("float32", [INF, -INF, 1.0]),
    "nan among fractions": ("float32", [[NAN, 0.5], [INF, -1000.25]]),
    "nan among scientific": ("float32", [NAN, 1e-10, -INF]),
    "only nan": ("float32", [NAN, NAN]),
    "half": ("float16", [0.1, 65504.0]),
    "half, fractions": ("float16", [0.1, -0.3]),
    "double": ("float64", [0.1, -0.3]),
    "subnormal": ("float64", [5e-324, 0.0]),
    "subnormal and huge": ("float64", [5e-324, 1e308]),
    "rounding half to even": ("float32", [0.00005, 0.12345, 2.00005, 0.5]),
    "rounds to a wider number": ("float32", [9.99999, 99.99999]),
    "bool": ("bool", [[True, False], [False, True]]),
    "uint8": ("uint8", [[0, 255], [17, 3]]),
    "int8": ("int8", [-128, 127]),
    "int16": ("int16", [-1]),
    "int32": ("int32", [[1], [-20]]),
    "int64": ("int64", [[1, -2], [300, 4]]),
    "large int64": ("int64", [-(2**63), 2**63 - 1]),
    "scalar": ("float32", 1.5),
    "scalar integer as float": ("float32", 3.0),
    "scalar nan": ("float32", NAN),
    "scalar inf": ("float32", -INF),
    "scalar tiny": ("float32", 1e-10),
    "scalar int": ("int64", -7),
    "scalar bool": ("bool", True),
    "scalar double": ("float64", 0.1),
    "one element, three axes": ("float32", [[[2.5]]]),
    "three axes": ("float32", [[[1.5, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]),
    "four axes": ("int64", [[[[1, 2]], [[3, 4]]], [[[5, 6]], [[7, 8]]]]),
}
LINES = {                                                      # dtype, shape, value = start + step * position
    "one long line": ("int64", [40], 0, 1),
    "lines of fractions": ("float32", [30], -1.5, 0.125),
    "lines in a matrix": ("float32", [2, 23], -3.0, 0.25),
    "lines in three axes": ("float64", [2, 1, 25], 1e-3, 0.011),
    "exactly 1000": ("int64", [1000], 0, 1),
    "summarised": ("int64", [1001], 0, 1),
    "summarised fractions": ("float32", [2000], -1.0, 0.001),
    "summarised rows and columns": ("float32", [40, 40], 0.0, 0.5),
    "summarised rows, six columns": ("float32", [200, 6], 0.0, 0.5),
    "summarised rows, seven columns": ("float64", [200, 7], 0.0, 0.25),
    "few rows, summarised columns": ("int64", [2, 600], 0, 1),
    "summarised in three axes": ("float32", [8, 7, 20], 0.0, 1.0),
    "summarised in four axes": ("float32", [2, 9, 2, 40], 0.0, 1.0),
    "style decided by the edges": ("float32", [1001], -500.0, 1.0),
    "no element": ("float32", [0], 0, 1),
    "no element, matrix": ("float32", [0, 3], 0, 1),
    "no element, int64": ("int64", [2, 0], 0, 1),
    "no element, bool": ("bool", [0], 0, 1),
    "no element, double": ("float64", [0], 0, 1),
}
OPTIONS = [
    {"precision": 2}, {"precision": 0}, {"precision": 8, "linewidth": 40}, {"sci_mode": True}, {"sci_mode": False},
    {"threshold": 4, "edgeitems": 1}, {"threshold": 4, "edgeitems": 0}, {"profile": "short", "threshold": 5},
    {"linewidth": 20}, {"profile": "full"},
]


def _marked(tensor: torch.Tensor, mark: str) -> torch.Tensor:
    """The tensor as a leaf that requires a gradient, or as an operation's result."""
    if mark:
        tensor.requires_grad_()
    return {"": tensor, "leaf": tensor, "clone": tensor.clone(), "view": tensor.view(tensor.shape)}[mark]


def _printed(case: dict[str, Any]) -> dict[str, Any]:
    dtype = getattr(torch, case["dtype"])
    if "values" in case:
        tensor = torch.tensor(case["values"], dtype=dtype)
    else:
        start, step = case["line"]
        count = int(torch.Size(case["shape"]).numel())
        tensor = torch.tensor([start + step * i for i in range(count)], dtype=dtype).reshape(case["shape"])
    torch.set_printoptions(**case.get("options", {}))
    tensor = _marked(tensor, case.get("mark", ""))
    text = repr(tensor)
    torch.set_printoptions(profile="default")
    return {**case, **({"grad_fn": tensor.grad_fn.name()} if tensor.grad_fn else {}), "text": text}


@topic
def printing() -> dict[str, Any]:
    """`repr` of tensors: values as a nested list, or on a line; print options; whether and how recorded."""
    cases: dict[str, Any] = {name: {"dtype": dtype, "values": values} for name, (dtype, values) in VALUES.items()}
    for name, (dtype, shape, start, step) in LINES.items():
        cases[name] = {"dtype": dtype, "shape": shape, "line": [start, step]}
    for name in ("fractions", "double", "scalar", "lines in a matrix", "summarised rows, seven columns",
                 "lines in three axes", "no element, matrix", "half", "infinities are wider"):
        for mark in ("leaf", "clone", "view"):
            cases[f"{name}, {mark}"] = {**cases[name], "mark": mark}
    for length in range(8, 12):                                # around where a suffix goes to a new line
        cases[f"suffix after {length} numbers"] = {"dtype": "float32", "values": [0.5] * length, "mark": "leaf"}
    for options in OPTIONS:
        for name in ("fractions", "integers of ratio over 1000", "three axes", "lines in a matrix", "scalar", "int64"):
            cases[f"{name}, {json.dumps(options)}"] = {**cases[name], "options": options}
    found = {name: _printed(case) for name, case in cases.items()}
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor([1.5, 2.0]), torch.tensor([0.0, 1.0]))
        found["dual"] = {"dtype": "float32", "values": [1.5, 2.0], "tangent": [0.0, 1.0], "text": repr(dual)}
    return found


# -------------------------------------------------------------------------------------------------------------- random
SEQUENCES: dict[str, tuple[int, list[list[Any]]]] = {          # seed, [function, arguments, dtype]
    "uniforms": (0, [["rand", [3], "float32"], ["rand", [2, 2], "float64"], ["rand", [5], "float16"],
                     ["rand", [], "float32"]]),
    "few normals": (1, [["randn", [1], "float32"], ["randn", [3], "float64"], ["randn", [15], "float32"],
                        ["randn", [], "float64"]]),
    "odd normals leave one for the next": (42, [["randn", [3], "float32"], ["rand", [2], "float32"],
                                                ["randn", [1], "float64"], ["rand", [1], "float32"]]),
    "a block of normals": (42, [["randn", [16], "float32"], ["randn", [4, 4], "float64"], ["randn", [16], "float16"]]),
    "normals with a tail": (7, [["randn", [17], "float32"], ["rand", [2], "float32"], ["randn", [3, 7], "float64"],
                                ["randn", [19], "float16"], ["rand", [1], "float64"]]),
    "a block leaves the kept normal": (3, [["randn", [1], "float32"], ["randn", [16], "float32"],
                                           ["randn", [1], "float32"]]),
    "integers": (5, [["randint", [0, 10, 6], "int64"], ["randint", [-5, 7, 6], "int64"],
                     ["randint", [0, 2**28 - 1, 3], "int64"], ["randint", [0, 2**28, 3], "int64"],
                     ["randint", [-(2**62), 2**62, 3], "int64"], ["rand", [1], "float32"]]),
    "permutations": (6, [["randperm", [n], "int64"] for n in (0, 1, 2, 10)] + [["rand", [1], "float32"]]),
    "coins": (8, [["bernoulli", [[0.0, 0.25, 0.5, 0.75, 1.0]], "float32"], ["bernoulli", [[0.1, 0.5, 0.9]], "float64"],
                  ["bernoulli_", [0.3, 12], "float32"], ["rand", [1], "float32"]]),
    "uniforms of a range": (9, [["uniform_", [-0.3, 0.7, 5], "float32"], ["uniform_", [-0.3, 0.7, 5], "float64"],
                                ["uniform_", [2047.0, 2048.0, 5], "float16"]]),
    "normals of a mean": (10, [["normal_", [2.0, 0.5, 4], "float32"], ["normal_", [-1.0, 0.1, 20], "float64"]]),
    "large seed": (2**64 - 1, [["rand", [3], "float32"]]),
    "negative seed": (-3, [["rand", [3], "float32"]]),
    "seed beyond 32 bits": (2**32 + 5, [["rand", [3], "float32"]]),
    "past one block of words": (11, [["randperm", [620], "int64"], ["rand", [6], "float32"]]),
}


def _drawn(name: str, arguments: list[Any], dtype: str) -> Any:
    if name == "randperm":
        return torch.randperm(*arguments).tolist()
    kind = getattr(torch, dtype)
    if name in ("rand", "randn"):
        return getattr(torch, name)(arguments, dtype=kind).tolist()
    if name == "randint":
        return torch.randint(*arguments[:2], (arguments[2],)).tolist()
    if name == "bernoulli":
        return torch.bernoulli(torch.tensor(*arguments, dtype=kind)).tolist()
    *parameters, count = arguments
    return getattr(torch.empty(count, dtype=kind), name)(*parameters).tolist()


@topic
def random() -> dict[str, Any]:
    """Draws of the CPU generator after `manual_seed`, call by call, and the state they leave."""
    cases = {}
    for title, (seed, calls) in SEQUENCES.items():
        torch.manual_seed(seed)
        drawn = [[name, arguments, dtype, _drawn(name, arguments, dtype)] for name, arguments, dtype in calls]
        state = hashlib.sha256(bytes(torch.get_rng_state().tolist())).hexdigest()
        cases[title] = {"seed": seed, "initial_seed": torch.initial_seed(), "state": state, "calls": drawn}
    return cases


# ------------------------------------------------------------------------------------------ what both libraries can run
for _name, _cases in spellings.TOPICS.items():
    TOPICS[_name] = lambda cases=_cases: {name: case(torch) for name, case in cases.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
