"""Cases of `repr` of tensors: values, shapes, print options, and `requires_grad` or `grad_fn`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

INF, NAN = float("inf"), float("nan")
VALUES = {  # dtype, nested list
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
LINES = {  # dtype, shape, value = start + step * position
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
    {"precision": 2},
    {"precision": 0},
    {"precision": 8, "linewidth": 40},
    {"sci_mode": True},
    {"sci_mode": False},
    {"threshold": 4, "edgeitems": 1},
    {"threshold": 4, "edgeitems": 0},
    {"profile": "short", "threshold": 5},
    {"linewidth": 20},
    {"profile": "full"},
]


def _with_history(tensor: Any, mark: str) -> Any:
    """Return the tensor as a leaf that requires a gradient, or as the result of an operation."""
    if mark:
        tensor.requires_grad_()
    return {"": tensor, "leaf": tensor, "clone": tensor.clone(), "view": tensor.view(tensor.shape)}[mark]


def _print_case(lib: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Return the case with the printed text."""
    dtype = getattr(lib, case["dtype"])
    if "values" in case:
        tensor = lib.tensor(case["values"], dtype=dtype)
    else:
        start, step = case["line"]
        count = int(lib.Size(case["shape"]).numel())
        tensor = lib.tensor([start + step * i for i in range(count)], dtype=dtype).reshape(case["shape"])
    lib.set_printoptions(**case.get("options", {}))
    tensor = _with_history(tensor, case.get("mark", ""))
    text = repr(tensor)
    lib.set_printoptions(profile="default")
    return {**case, **({"grad_fn": tensor.grad_fn.name()} if tensor.grad_fn else {}), "text": text}


def printing() -> dict[str, Callable[[Any], Any]]:
    """Return the cases by name."""
    cases: dict[str, Any] = {name: {"dtype": dtype, "values": values} for name, (dtype, values) in VALUES.items()}
    for name, (dtype, shape, start, step) in LINES.items():
        cases[name] = {"dtype": dtype, "shape": shape, "line": [start, step]}
    for name in (
        "fractions",
        "double",
        "scalar",
        "lines in a matrix",
        "summarised rows, seven columns",
        "lines in three axes",
        "no element, matrix",
        "half",
        "infinities are wider",
    ):
        for mark in ("leaf", "clone", "view"):
            cases[f"{name}, {mark}"] = {**cases[name], "mark": mark}
    for length in range(8, 12):  # lengths around which the suffix moves to a new line
        cases[f"suffix after {length} numbers"] = {"dtype": "float32", "values": [0.5] * length, "mark": "leaf"}
    for options in OPTIONS:
        for name in ("fractions", "integers of ratio over 1000", "three axes", "lines in a matrix", "scalar", "int64"):
            cases[f"{name}, {json.dumps(options)}"] = {**cases[name], "options": options}
    found: dict[str, Callable[[Any], Any]] = {name: lambda lib, case=case: _print_case(lib, case) for name, case in cases.items()}
    return found | {"dual": _dual}


def _dual(lib: Any) -> dict[str, Any]:
    forward_ad = lib.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(lib.tensor([1.5, 2.0]), lib.tensor([0.0, 1.0]))
        return {"dtype": "float32", "values": [1.5, 2.0], "tangent": [0.0, 1.0], "text": repr(dual)}


TOPICS = {"printing": printing()}
