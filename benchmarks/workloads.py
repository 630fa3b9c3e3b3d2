"""The workloads. Each is written once, for a library with torch's names, and returns a function to time.

`chain` is a fixed mix of small operations: 10 rounds of 10 (3 products, 2 sums, a difference, a quotient, tanh, exp, a square),
each applied to the previous result.
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
        x = x**2
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
    "add": lambda lib, x, y: x + y,
    "mul": lambda lib, x, y: x * y,
    "div": lambda lib, x, y: x / y,
    "scale": lambda lib, x, y: x * 2.0,
    "pow2": lambda lib, x, y: x**2,
    "exp": lambda lib, x, y: x.exp(),
    "log": lambda lib, x, y: x.log(),
    "tanh": lambda lib, x, y: x.tanh(),
    "sigmoid": lambda lib, x, y: x.sigmoid(),
    "relu": lambda lib, x, y: x.relu(),
    "sum": lambda lib, x, y: x.sum(),
    "mean": lambda lib, x, y: x.mean(),
    "max": lambda lib, x, y: x.max(),
    "reshape": lambda lib, x, y: x.reshape(-1, 1),
    "slice": lambda lib, x, y: x[1:],
    "where": lambda lib, x, y: lib.where(x > y, x, y),
    "cat": lambda lib, x, y: lib.cat([x, y]),
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


def chain_without_grad(size: int) -> Any:
    def make(lib: Any) -> Callable[[], Any]:
        x, a, b = (lib.linspace(low, low + 0.1, size) for low in (0.1, 0.5, 0.7))

        def run() -> None:
            with lib.no_grad():
                mix(x, a, b)

        return run

    return make


for _size in (1, 100):
    WORKLOADS[f"chain/{_size}/no_grad"] = chain_without_grad(_size)


def deep(length: int, times: int) -> Any:
    def make(lib: Any) -> Callable[[], Any]:
        x = lib.tensor(0.3, requires_grad=True)

        def run() -> None:
            for _ in range(times):
                z = x
                for _ in range(length // 2):
                    z = z * 0.999 + x
                z.backward()
                x.grad = None

        return run

    return make


# A million nodes are created, visited and freed, in a hundred graphs and in one. (Seconds for each call.)
WORKLOADS["deep/10000 × 100"] = deep(10_000, 100)
WORKLOADS["deep/1000000"] = deep(1_000_000, 1)


@workload("function")
def custom_function(lib: Any) -> Callable[[], Any]:
    """Ten calls of a custom Function with two outputs, with backward."""

    class Both(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b + h, g * a + h

    x, w = lib.linspace(0.1, 0.9, 100).requires_grad_(), lib.linspace(0.2, 0.8, 100).requires_grad_()

    def run() -> None:
        p, q = x, w
        for _ in range(10):
            p, q = Both.apply(p, q)
        (p + q).sum().backward()
        x.grad = w.grad = None

    return run


@workload("elementwise/2000000")
def elementwise(lib: Any) -> Callable[[], Any]:
    """A few operations on two million elements, with backward."""
    x, y = lib.linspace(0.1, 0.9, 2_000_000).requires_grad_(), lib.linspace(0.2, 0.8, 2_000_000)

    def run() -> None:
        ((x * y + x).tanh() * y).exp().sum().backward()
        x.grad = None

    return run


@workload("scalar/2000")
def scalar_graph(lib: Any) -> Callable[[], Any]:
    """2 000 operations on single numbers (0-d tensors), as in a scalar engine, with backward."""
    a, b = lib.tensor(0.3, requires_grad=True), lib.tensor(0.7, requires_grad=True)

    def run() -> None:
        x = a
        for _ in range(500):
            x = (x * b + a).tanh() - b
        x.backward()
        a.grad = b.grad = None

    return run


def layers(lib: Any) -> list[Any]:
    lib.manual_seed(0)
    sizes = (784, 256, 256, 10)
    made = []
    for n, m in pairwise(sizes):
        made += [(lib.randn(m, n) / n**0.5).requires_grad_(), lib.zeros(m).requires_grad_()]
    return made


@workload("mlp")
def mlp(lib: Any, batch: int = 64) -> Callable[[], Any]:
    """A training step of a 784-256-256-10 network: forward, cross entropy, backward, gradient descent."""
    functional = lib.nn.functional
    parameters = layers(lib)
    w1, b1, w2, b2, w3, b3 = parameters
    x, y = lib.randn(batch, 784), lib.randint(0, 10, (batch,))

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


@workload("adam")
def adam(lib: Any, batch: int = 64) -> Callable[[], Any]:
    """The same step with modules and Adam."""
    nn = lib.nn
    lib.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer, criterion = lib.optim.Adam(model.parameters()), nn.CrossEntropyLoss()
    x, y = lib.randn(batch, 784), lib.randint(0, 10, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    return step


@workload("adam/step")
def adam_step(lib: Any) -> Callable[[], Any]:
    """Only the Adam step."""
    parameters = layers(lib)
    for p in parameters:
        p.grad = lib.randn(*p.shape)
    return lib.optim.Adam(parameters).step


def mlp_by_hand() -> Callable[[], Any]:
    """The same step in NumPy with the gradient derived by hand: a lower bound for libraries based on NumPy."""
    import numpy as np

    rng = np.random.default_rng(0)
    sizes = (784, 256, 256, 10)
    ws = [(rng.standard_normal((m, n)) / n**0.5).astype(np.float32) for n, m in pairwise(sizes)]
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


@workload("convnet")
def convnet(lib: Any, batch: int = 32) -> Callable[[], Any]:
    """A training step of two convolutions with pooling and a linear layer on 28 x 28 images."""
    functional = lib.nn.functional
    lib.manual_seed(0)
    shapes = (8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (10, 784), (10,)
    parameters = [(lib.randn(*shape) * 0.1).requires_grad_() for shape in shapes]
    w1, b1, w2, b2, w3, b3 = parameters
    x, y = lib.randn(batch, 1, 28, 28), lib.randint(0, 10, (batch,))

    def step() -> None:
        h = functional.max_pool2d(functional.relu(functional.conv2d(x, w1, b1, padding=1)), 2)
        h = functional.max_pool2d(functional.relu(functional.conv2d(h, w2, b2, padding=1)), 2)
        loss = functional.cross_entropy(functional.linear(h.flatten(1), w3, b3), y)
        loss.backward()
        with lib.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                p.grad = None

    return step


@workload("attention")
def attention(lib: Any, batch: int = 8) -> Callable[[], Any]:
    """An attention block on (batch, 64, 128) with 4 heads of 32: projections, attention, output, layer norm, mean, backward."""
    functional = lib.nn.functional
    lib.manual_seed(0)
    weights = [(lib.randn(128, 128) / 128**0.5).requires_grad_() for _ in range(4)]
    biases = [lib.zeros(128).requires_grad_() for _ in range(5)]
    gamma, x = lib.ones(128).requires_grad_(), lib.randn(batch, 64, 128).requires_grad_()
    leaves = [*weights, *biases, gamma, x]

    def run() -> None:
        q, k, v = (
            functional.linear(x, w, b).view(batch, 64, 4, 32).transpose(1, 2) for w, b in zip(weights[:3], biases, strict=False)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, 64, 128)
        out = functional.linear(mixed, weights[3], biases[3])
        functional.layer_norm(out, (128,), gamma, biases[4]).mean().backward()
        for leaf in leaves:
            leaf.grad = None

    return run


def normalisation(norm: Any) -> Any:
    def make(lib: Any) -> Callable[[], Any]:
        lib.manual_seed(0)
        x, w, b = (t.requires_grad_() for t in (lib.randn(64, 256), lib.ones(256), lib.zeros(256)))
        v, mean, var = lib.randn(64, 256), lib.zeros(256), lib.ones(256)

        def run() -> None:
            norm(lib.nn.functional, x, w, b, mean, var).backward(v)
            x.grad = w.grad = b.grad = None

        return run

    return make


WORKLOADS["layer_norm"] = normalisation(lambda functional, x, w, b, mean, var: functional.layer_norm(x, (256,), w, b))
WORKLOADS["batch_norm"] = normalisation(lambda functional, x, w, b, mean, var: functional.batch_norm(x, mean, var, w, b, True))


@workload("embedding")
def embedding(lib: Any) -> Callable[[], Any]:
    """(32, 20) rows of a table (1000, 64), with backward."""
    lib.manual_seed(0)
    table, indices, v = lib.randn(1000, 64).requires_grad_(), lib.randint(0, 1000, (32, 20)), lib.randn(32, 20, 64)

    def run() -> None:
        lib.nn.functional.embedding(indices, table).backward(v)
        table.grad = None

    return run


@workload("correlation")
def correlation(lib: Any, batch: int = 256) -> Callable[[], Any]:
    """The normalised cross-correlation loss of two (batch, 128) embeddings."""
    lib.manual_seed(0)
    a, b = lib.randn(batch, 128).requires_grad_(), lib.randn(batch, 128).requires_grad_()

    def run() -> None:
        z1, z2 = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        c = (z1.T @ z2) / batch
        (-lib.diagonal(c).sum()).backward()
        a.grad = b.grad = None

    return run


def jacobian_problem(lib: Any, n: int) -> tuple[Any, Any]:
    lib.manual_seed(0)
    w = lib.randn(n, n) / n**0.5
    x = lib.randn(n).requires_grad_()
    return x, (w @ x).tanh() * x


@workload("jacobian/rows/64")
def jacobian_rows(lib: Any) -> Callable[[], Any]:
    """64 weighted backward calls with `retain_graph`."""
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


def tanh_map(lib: Any, n: int = 256) -> tuple[Any, Any]:
    """Return a function with two layers of tanh, and the point at which it is differentiated."""
    lib.manual_seed(0)
    first, second = lib.randn(n, n) / n**0.5, lib.randn(n, n) / n**0.5
    return (lambda x: lib.tanh(second @ lib.tanh(first @ x))), lib.randn(n)


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@workload("functional/jacobian/256")
def functional_jacobian(lib: Any) -> Callable[[], Any]:
    f, x = tanh_map(lib)
    return lambda: lib.autograd.functional.jacobian(f, x)


@workload("functional/jacobian/256, torch.func.jacrev")
def functional_jacobian_jacrev(lib: Any) -> Callable[[], Any]:
    """`functional.jacobian`, compared with the fastest method of torch."""
    f, x = tanh_map(lib)
    return lambda: lib.func.jacrev(f)(x) if lib.__name__ == "torch" else lib.autograd.functional.jacobian(f, x)


@workload("functional/hessian/100")
def functional_hessian(lib: Any) -> Callable[[], Any]:
    x = lib.linspace(-1, 1, 100)
    return lambda: lib.autograd.functional.hessian(rosenbrock, x)


@workload("functional/hessian/100, vectorized")
def functional_hessian_vectorized(lib: Any) -> Callable[[], Any]:
    x = lib.linspace(-1, 1, 100)
    return lambda: lib.autograd.functional.hessian(rosenbrock, x, vectorize=True)


@workload("func/jacrev/256")
def func_jacrev(lib: Any) -> Callable[[], Any]:
    f, x = tanh_map(lib)
    return lambda: lib.func.jacrev(f)(x)


@workload("func/jacfwd/256")
def func_jacfwd(lib: Any) -> Callable[[], Any]:
    f, x = tanh_map(lib)
    return lambda: lib.func.jacfwd(f)(x)


@workload("func/hessian/100")
def func_hessian(lib: Any) -> Callable[[], Any]:
    x = lib.linspace(-1, 1, 100)
    return lambda: lib.func.hessian(rosenbrock)(x)


@workload("func/grad")
def func_grad(lib: Any) -> Callable[[], Any]:
    x = lib.linspace(-1, 1, 100)
    return lambda: lib.func.grad(rosenbrock)(x)
