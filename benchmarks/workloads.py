"""What is timed. Each workload is written once, for a library that speaks torch's names, and returns a function to call.

`chain` is the fixed mix of small operations: 10 rounds of 10 (3 products, 2 sums, a difference, a quotient, tanh, exp, a
square), each on the result before it.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

SIZES = (1, 100, 10_000, 1_000_000)
WORKLOADS: dict[str, Callable[[Any], Callable[[], Any]]] = {}


def workload(name: str) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        WORKLOADS[name] = make
        return make
    return add


def mix(x: Any, a: Any, b: Any, rounds: int = 10) -> Any:
    for _ in range(rounds):
        x = ((x * a + b) * b - a) / b
        x = (x.tanh() * a + b).exp() * 0.1
        x = x ** 2
    return x


def chain(size: int, backward: bool) -> Any:
    def make(lib: Any) -> Callable[[], Any]:
        x = lib.linspace(0.1, 0.9, size).requires_grad_()
        a, b = lib.linspace(0.5, 0.6, size), lib.linspace(0.7, 0.8, size)
        rounds = 10 if size < 1_000_000 else 2
        v = lib.ones(size)

        def forward() -> Any:
            return mix(x, a, b, rounds)

        def both() -> Any:
            mix(x, a, b, rounds).backward(v)
            x.grad = None
        return both if backward else forward
    return make


OPERATIONS = {
    "add": lambda lib, x, y: x + y, "mul": lambda lib, x, y: x * y, "div": lambda lib, x, y: x / y,
    "scale": lambda lib, x, y: x * 2.0, "pow2": lambda lib, x, y: x ** 2, "exp": lambda lib, x, y: x.exp(),
    "log": lambda lib, x, y: x.log(), "tanh": lambda lib, x, y: x.tanh(),
    "sigmoid": lambda lib, x, y: x.sigmoid(), "relu": lambda lib, x, y: x.relu(), "sum": lambda lib, x, y: x.sum(),
    "mean": lambda lib, x, y: x.mean(), "max": lambda lib, x, y: x.max(), "reshape": lambda lib, x, y: x.reshape(-1, 1),
    "slice": lambda lib, x, y: x[1:], "where": lambda lib, x, y: lib.where(x > y, x, y), "cat": lambda lib, x, y: lib.cat([x, y]),
    "softmax": lambda lib, x, y: lib.softmax(x, 0),
}


def single(operation: Any, size: int) -> Any:
    def make(lib: Any) -> Callable[[], Any]:
        x, y = lib.linspace(0.1, 0.9, size).requires_grad_(), lib.linspace(0.2, 0.8, size).requires_grad_()
        v = lib.ones_like(operation(lib, x, y).detach())

        def run() -> None:
            operation(lib, x, y).backward(v)
            x.grad = y.grad = None
        return run
    return make


for _size in SIZES:
    WORKLOADS[f"chain/{_size}/forward"] = chain(_size, False)
    WORKLOADS[f"chain/{_size}/backward"] = chain(_size, True)
for _name, _operation in OPERATIONS.items():
    for _size in SIZES:
        WORKLOADS[f"op/{_name}/{_size}"] = single(_operation, _size)


def layers(lib: Any) -> list[Any]:
    lib.manual_seed(0)
    sizes = (784, 256, 256, 10)
    made = []
    for n, m in pairwise(sizes):
        made += [(lib.randn(m, n) / n ** 0.5).requires_grad_(), lib.zeros(m).requires_grad_()]
    return made


@workload("mlp")
def mlp(lib: Any) -> Callable[[], Any]:
    """A 784-256-256-10 step on a batch of 64: forward, cross entropy, backward, plain gradient descent."""
    functional = lib.nn.functional
    parameters = layers(lib)
    w1, b1, w2, b2, w3, b3 = parameters
    x, y = lib.randn(64, 784), lib.randint(0, 10, (64,))

    def step() -> None:
        h = functional.relu(functional.linear(x, w1, b1))
        h = functional.relu(functional.linear(h, w2, b2))
        loss = functional.cross_entropy(functional.linear(h, w3, b3), y)
        loss.backward()
        with lib.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                p.grad = None
    return step


def mlp_by_hand() -> Callable[[], Any]:
    """The same step in NumPy, its gradient worked out by hand: the floor under any library on NumPy."""
    import numpy as np

    rng = np.random.default_rng(0)
    sizes = (784, 256, 256, 10)
    ws = [(rng.standard_normal((m, n)) / n ** 0.5).astype(np.float32) for n, m in pairwise(sizes)]
    bs = [np.zeros(m, np.float32) for m in sizes[1:]]
    x, y, rows = rng.standard_normal((64, 784)).astype(np.float32), rng.integers(0, 10, 64), np.arange(64)

    def step() -> None:
        h1 = np.maximum(x @ ws[0].T + bs[0], 0)
        h2 = np.maximum(h1 @ ws[1].T + bs[1], 0)
        scores = h2 @ ws[2].T + bs[2]
        e = np.exp(scores - scores.max(1, keepdims=True))
        g = e / e.sum(1, keepdims=True)
        g[rows, y] -= 1
        g /= 64
        g2 = (g @ ws[2]) * (h2 > 0)
        g1 = (g2 @ ws[1]) * (h1 > 0)
        for w, b, up, h in zip(ws, bs, (g1, g2, g), (x, h1, h2), strict=True):
            w -= 0.01 * (up.T @ h)
            b -= 0.01 * up.sum(0)
    return step


@workload("correlation")
def correlation(lib: Any) -> Callable[[], Any]:
    """The normalised cross-correlation loss of two (256, 128) batches."""
    lib.manual_seed(0)
    a, b = lib.randn(256, 128).requires_grad_(), lib.randn(256, 128).requires_grad_()

    def run() -> None:
        z1, z2 = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        c = (z1.T @ z2) / 256
        (-lib.diagonal(c).sum()).backward()
        a.grad = b.grad = None
    return run


def jacobian_problem(lib: Any, n: int) -> tuple[Any, Any]:
    lib.manual_seed(0)
    w = lib.randn(n, n) / n ** 0.5
    x = lib.randn(n).requires_grad_()
    return x, (w @ x).tanh() * x


@workload("jacobian/rows/64")
def jacobian_rows(lib: Any) -> Callable[[], Any]:
    """64 weighted backward calls on a kept graph."""
    x, y = jacobian_problem(lib, 64)
    eye = lib.eye(64)
    grad = lib.autograd.grad
    return lambda: [grad(y, x, row, retain_graph=True)[0] for row in eye]


@workload("jacobian/batched/256")
def jacobian_batched(lib: Any) -> Callable[[], Any]:
    """All 256 rows in one sweep."""
    x, y = jacobian_problem(lib, 256)
    eye = lib.eye(256)
    return lambda: lib.autograd.grad(y, x, eye, retain_graph=True, is_grads_batched=True)[0]
