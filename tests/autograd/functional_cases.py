"""Test cases for `autograd.functional`: pairs (name, function of the library), for gradlab and torch."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

A, B = [0.5, -1.25, 2.0], [[1.0, 0.5], [-0.75, 2.0]]


def tensors(lib: Any) -> Any:
    """Return a vector, a matrix, a number, and an outside weight that requires gradients, all of double precision."""

    def tensor(data: Any, requires_grad: bool = False) -> Any:
        return lib.tensor(data, dtype=lib.float64, requires_grad=requires_grad)

    return tensor(A), tensor(B), tensor(0.7), tensor([3.0, 1.0, -2.0], requires_grad=True)


# (name, the inputs as letters of `tensors`: x the vector, m the matrix, s the number, r the vector that requires grad), function
VECTOR_FUNCTIONS: dict[str, tuple[str, Any]] = {
    "elementwise": ("x", lambda lib, w: lambda x: x.exp() * x),
    "linear": ("x", lambda lib, w: lambda x: x * 2),
    "two outputs": ("x", lambda lib, w: lambda x: (x * x, x.sum())),
    "one in a tuple": ("(x)", lambda lib, w: lambda x: (x.sin(),)),
    "two inputs": ("xm", lambda lib, w: lambda x, m: (m.sin() * x[:2], x[0] * m.sum())),
    "number": ("s", lambda lib, w: lambda s: s**3),
    "number to matrix": ("s", lambda lib, w: lambda s: s * lib.ones(2, 2, dtype=lib.float64)),
    "requires grad": ("r", lambda lib, w: lambda r: r * r),
    "outside weight": ("x", lambda lib, w: lambda x: x * w * x),
    "only the outside": ("x", lambda lib, w: lambda x: w * 2),
    "constant": ("x", lambda lib, w: lambda x: lib.ones(2, dtype=lib.float64)),
    "one input unused": ("xm", lambda lib, w: lambda x, m: m * m),
    "second output constant": ("x", lambda lib, w: lambda x: (x * x, lib.ones(2, dtype=lib.float64))),
    "detached": ("x", lambda lib, w: lambda x: x.detach() * 2),
    "partly detached": ("x", lambda lib, w: lambda x: x.detach() * x),
    "in no_grad": ("x", lambda lib, w: partial(without_grad, lib)),
    "relu": ("x", lambda lib, w: lib.relu),
    "the input": ("x", lambda lib, w: lambda x: x),
    "empty": ("x", lambda lib, w: lambda x: x[:0] * 2),
    "matrix product": ("m", lambda lib, w: lambda m: (m @ m).tanh()),
    "returns a list": ("x", lambda lib, w: lambda x: [x]),
    "returns a number": ("x", lambda lib, w: lambda x: 3.0),
    "returns a tuple with a number": ("x", lambda lib, w: lambda x: (x, 3.0)),
    "list of inputs": ("[x]", lambda lib, w: lambda x: x),
    "number among inputs": ("(3)", lambda lib, w: lambda x, y: x),
}
SCALAR_FUNCTIONS: dict[str, tuple[str, Any]] = {
    "cubes": ("x", lambda lib, w: lambda x: (x**3).sum()),
    "linear": ("x", lambda lib, w: lambda x: x.sum()),
    "square": ("x", lambda lib, w: lambda x: (x * x).sum()),
    "two inputs": ("xm", lambda lib, w: lambda x, m: (m.sin() * x[:2]).sum() * x[2]),
    "in a tuple": ("(x)", lambda lib, w: lambda x: (x**4).sum()),
    "one input linear": ("xm", lambda lib, w: lambda x, m: (x**3).sum() + m.sum()),
    "one input unused": ("xm", lambda lib, w: lambda x, m: (m**3).sum()),
    "one element": ("s", lambda lib, w: lambda s: (s**4).reshape(1, 1)),
    "outside weight": ("x", lambda lib, w: lambda x: (x**3 * w).sum()),
    "requires grad": ("r", lambda lib, w: lambda r: (r**3).sum()),
    "constant": ("x", lambda lib, w: lambda x: lib.ones((), dtype=lib.float64)),
    "only the outside": ("x", lambda lib, w: lambda x: (w**3).sum()),
    "rosenbrock": ("x", lambda lib, w: lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()),
    "returns a tuple": ("x", lambda lib, w: lambda x: ((x**3).sum(),)),
    "returns two numbers": ("x", lambda lib, w: lambda x: x * x),
    "returns nothing": ("x", lambda lib, w: lambda x: None),
}


def without_grad(lib: Any, x: Any) -> Any:
    with lib.no_grad():
        y = x * 3
    return y * x


def inputs_of(lib: Any, letters: str) -> Any:
    x, m, s, r = tensors(lib)
    return {"x": x, "m": m, "s": s, "r": r, "(x)": (x,), "xm": (x, m), "[x]": [x], "(3)": (x, 3.0)}[letters]


def vector_for(lib: Any, shaped: Any, kind: str) -> Any:
    """Return a vector v for a tensor or a tuple of tensors: with their shapes, or one of four kinds of invalid values."""
    one = shaped[0] if isinstance(shaped, (tuple, list)) else shaped
    if kind == "none":
        return None
    if kind == "text":
        return "v"
    if kind == "wrong":
        return lib.ones(7, dtype=lib.float64)
    if kind == "long":
        return (lib.ones_like(one).detach(), lib.ones_like(one).detach())

    def fitting(t: Any) -> Any:
        return (lib.arange(t.numel(), dtype=lib.float64).reshape(t.shape) + 1) * 0.5 if hasattr(t, "numel") else t

    return tuple(map(fitting, shaped)) if isinstance(shaped, tuple) else fitting(shaped)


def calls() -> list[tuple[str, Any]]:
    """Return all pairs (name, call). A call takes a library and returns the result of the function under test."""
    made: list[tuple[str, Any]] = []

    def add(function: str, case: str, letters: str, make: Any, kind: str | None, **options: Any) -> None:
        def call(lib: Any) -> Any:
            given, func = inputs_of(lib, letters), make(lib, tensors(lib)[3])
            args = []
            if kind is not None:
                against = given
                if function == "vjp":
                    try:
                        against = func(*(given if isinstance(given, tuple) else (given,)))
                    except TypeError:
                        against = given
                args = [vector_for(lib, against, kind)]
            return getattr(lib.autograd.functional, function)(func, given, *args, **options)

        shown = " ".join(f"{k}={v}" for k, v in options.items() if v is not False)
        made.append((f"{function}, {case}{f', v {kind}' if kind else ''} {shown}".strip(), call))

    flags = [{"create_graph": a, "strict": b} for a, b in product((False, True), repeat=2)]
    for case, (letters, make) in VECTOR_FUNCTIONS.items():
        for options in flags:
            add("jacobian", case, letters, make, None, **options)
            for function in ("vjp", "jvp"):
                add(function, case, letters, make, "fitting", **options)
        add("jacobian", case, letters, make, None, vectorize=True)
        add("jacobian", case, letters, make, None, vectorize=True, strict=True)
        add("jacobian", case, letters, make, None, vectorize=True, strategy="forward-mode")
    for case, (letters, make) in SCALAR_FUNCTIONS.items():
        for options in flags:
            add("hessian", case, letters, make, None, **options)
            for function in ("vhp", "hvp"):
                add(function, case, letters, make, "fitting", **options)
        add("hessian", case, letters, make, None, vectorize=True)
        add("hessian", case, letters, make, None, vectorize=True, strict=True)
        add("hessian", case, letters, make, None, vectorize=True, outer_jacobian_strategy="forward-mode")
    for kind in ("none", "wrong", "long", "text"):
        for case in ("elementwise", "two inputs", "number", "one in a tuple", "two outputs"):
            add("vjp", case, *VECTOR_FUNCTIONS[case], kind)
            add("jvp", case, *VECTOR_FUNCTIONS[case], kind)
        for case in ("cubes", "two inputs", "one element", "in a tuple"):
            add("vhp", case, *SCALAR_FUNCTIONS[case], kind)
            add("hvp", case, *SCALAR_FUNCTIONS[case], kind)
    for options in (
        {"strategy": "sideways"},
        {"strategy": "forward-mode", "create_graph": True},
        {"strategy": "forward-mode", "strict": True, "vectorize": True},
    ):
        add("jacobian", "elementwise", *VECTOR_FUNCTIONS["elementwise"], None, **options)
    add("hessian", "cubes", *SCALAR_FUNCTIONS["cubes"], None, outer_jacobian_strategy="sideways")
    add("hessian", "cubes", *SCALAR_FUNCTIONS["cubes"], None, outer_jacobian_strategy="forward-mode", create_graph=True)
    return made
