"""`python benchmarks/gpu.py`: gradlab's time divided by torch's on one GPU, and both relative to the limits of the GPU.

Both libraries run in this process and take turns, sample by sample, so that changes of the clock rate affect both equally. A
sample is a batch of calls between two synchronisations with the device. Medians over the rounds are printed. The results are
compared before anything is timed. The limits are measured, too: the bandwidth of a copy (bytes read and written) and the rate of
a matrix product, each with the faster of the two libraries. Inputs are random, since zeros can be faster than data.

Columns: milliseconds of each library, their ratio (below 1: gradlab is faster), and gradlab's fraction of a limit. An elementwise
chain has two fractions of the bandwidth: of the bytes moved by its separate operations, and of those that a single fused kernel
would move. `--device cpu` runs on the CPU, `--small` uses small sizes. Without torch, only gradlab is timed.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

import gradlab

FLOAT = 4  # bytes of an element


def torch_or_none() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


class Library:
    """One of the two libraries, on the device."""

    def __init__(self, name: str, module: Any, device: str) -> None:
        self.name, self.module, self.device = name, module, device

    def wait(self) -> None:
        if self.device != "cpu":
            self.module.cuda.synchronize()

    def tensor(self, array: np.ndarray, grad: bool = False) -> Any:
        made = self.module.tensor(array).to(self.device)
        return made.requires_grad_() if grad else made

    def free(self) -> None:
        if self.device != "cpu":
            self.module.cuda.empty_cache()


def sample(library: Library, call: Callable[[], Any], inner: int) -> float:
    """Return the seconds of one call in a batch of `inner`. The device is idle before and after."""
    library.wait()
    start = time.perf_counter()
    for _ in range(inner):
        call()
    library.wait()
    return (time.perf_counter() - start) / inner


def median_times(calls: list[tuple[Library, Callable[[], Any]]], rounds: int, batch: float) -> list[float]:
    """Return the median seconds of a call for each library. The first calls, which compile kernels, are not counted."""
    inner = []
    for library, call in calls:
        for _ in range(3):
            call()
        once = min(sample(library, call, 1) for _ in range(3))
        inner.append(max(1, min(1000, round(batch / max(once, 1e-7)))))
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for k, (library, call) in enumerate(calls):
            samples[k].append(sample(library, call, inner[k]))
    return [median(s) for s in samples]


# --------------------------------------------------------------------------------------------------------------- workloads
# Each returns, for a library, (a call to time, a function that returns a result to compare).
Made = tuple[Callable[[], Any], Callable[[], Any]]
MULTIPLY_ADD, TANH, SCALE, EXP = 6, 2, 2, 2  # arrays read and written
CHAIN_MOVED, CHAIN_FUSED = MULTIPLY_ADD + TANH + SCALE + EXP, 4


def with_gradient(forward: Callable[[], Any], x: Any, v: Any) -> Made:
    """Return a forward pass with a weighted backward pass."""

    def both() -> Any:
        x.grad = None
        forward().backward(v)
        return x.grad

    return both, both


def chain(n: int, backward: bool) -> Callable[[Library, np.random.Generator], Made]:
    def make(library: Library, rng: np.random.Generator) -> Made:
        x = library.tensor(rng.uniform(0.1, 0.9, n).astype(np.float32), grad=backward)
        a, b, v = (library.tensor(rng.uniform(0.5, 0.8, n).astype(np.float32)) for _ in range(3))

        def forward() -> Any:
            return ((x * a + b).tanh() * 0.5).exp()

        return with_gradient(forward, x, v) if backward else (forward, forward)

    return make


def copy(n: int) -> Callable[[Library, np.random.Generator], Made]:
    def make(library: Library, rng: np.random.Generator) -> Made:
        x = library.tensor(rng.standard_normal(n).astype(np.float32))
        y = x.clone()
        return lambda: y.copy_(x), lambda: y

    return make


def product(n: int) -> Callable[[Library, np.random.Generator], Made]:
    def make(library: Library, rng: np.random.Generator) -> Made:
        x, y = (library.tensor(rng.standard_normal((n, n)).astype(np.float32)) for _ in range(2))
        return lambda: x @ y, lambda: x @ y

    return make


def mlp(batch: int, width: int) -> Callable[[Library, np.random.Generator], Made]:
    """One training step: forward, loss, backward, update."""

    def make(library: Library, rng: np.random.Generator) -> Made:
        nn = library.module.nn
        net = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.ReLU(), nn.Linear(width, 10))
        with library.module.no_grad():
            for p in net.parameters():
                p.copy_(library.module.tensor((rng.standard_normal(p.shape) / np.sqrt(p.shape[-1])).astype(np.float32)))
        net = net.to(library.device)
        optimizer = library.module.optim.SGD(net.parameters(), lr=1e-6)
        x = library.tensor(rng.standard_normal((batch, width)).astype(np.float32))
        y = library.tensor(rng.integers(0, 10, batch))

        def step() -> Any:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda: next(iter(net.parameters())).grad

    return make


def attention(batch: int, heads: int, length: int, size: int) -> Callable[[Library, np.random.Generator], Made]:
    """Softmax attention from basic operations, forward and backward."""

    def make(library: Library, rng: np.random.Generator) -> Made:
        shape = batch, heads, length, size
        q, k, v = (library.tensor(rng.standard_normal(shape).astype(np.float32), grad=True) for _ in range(3))

        def step() -> Any:
            q.grad = k.grad = v.grad = None
            out = library.module.softmax(q @ k.transpose(-2, -1) * size**-0.5, -1) @ v
            out.sum().backward()
            return q.grad

        return step, step

    return make


def jacobian(rows: int, width: int) -> Callable[[Library, np.random.Generator], Made]:
    """All rows of the Jacobian of a two-layer network, by one batched vector-Jacobian product."""

    def make(library: Library, rng: np.random.Generator) -> Made:
        w, u = (library.tensor((rng.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32)) for _ in range(2))
        x = library.tensor(rng.standard_normal(width).astype(np.float32), grad=True)
        eye = library.tensor(np.eye(rows, width, dtype=np.float32))

        def rows_of() -> Any:
            y = u @ (w @ x).tanh()
            return library.module.autograd.grad(y, x, eye, is_grads_batched=True)[0]

        return rows_of, rows_of

    return make


ROUNDS_OF_SMALL = 20


def small(backward: bool) -> Callable[[Library, np.random.Generator], Made]:
    """A chain of 100 operations on 16 elements, which shows the overhead of an operation."""

    def make(library: Library, rng: np.random.Generator) -> Made:
        x = library.tensor(rng.uniform(0.1, 0.9, 16).astype(np.float32), grad=True)
        a, b, v = (library.tensor(rng.uniform(0.5, 0.8, 16).astype(np.float32)) for _ in range(3))

        def forward() -> Any:
            y = x
            for _ in range(ROUNDS_OF_SMALL):
                y = ((y * a + b).tanh() - a) / b
            return y

        return with_gradient(forward, x, v) if backward else (forward, forward)

    return make


# ------------------------------------------------------------------------------------------------------------------ report
def host(x: Any) -> np.ndarray:
    return np.asarray(x.detach().cpu().numpy(), np.float64)


def check(name: str, results: list[Callable[[], Any]], calls: list[Callable[[], Any]]) -> None:
    """Raise unless the libraries agree: ‖difference‖ / ‖value‖ under 1e-3 (float32), and no NaN."""
    for call in calls:
        call()
    values = [host(result()) for result in results]
    for value in values:
        if not np.isfinite(value).all():
            raise SystemExit(f"{name}: a result is not finite")
        apart = np.linalg.norm(value - values[-1]) / max(np.linalg.norm(values[-1]), 1e-30)
        if apart > 1e-3:
            raise SystemExit(f"{name}: the libraries differ by {apart:.1e}")


def run(name: str, make: Any, libraries: list[Library], rounds: int, batch: float) -> list[float]:
    made = [make(library, np.random.default_rng(0)) for library in libraries]
    check(name, [result for _, result in made], [call for call, _ in made])
    return median_times([(library, call) for library, (call, _) in zip(libraries, made, strict=True)], rounds, batch)


def line(name: str, times: list[float], share: str = "") -> None:
    texts = "".join(f"{1e3 * t:12.4f}" for t in times)
    ratio = f"{times[0] / times[1]:9.2f}" if len(times) > 1 else " " * 9
    print(f"{name:34}{texts}{ratio}   {share}".rstrip(), flush=True)


def sizes(small_ones: bool) -> dict[str, Any]:
    if small_ones:
        return {
            "copy": 10**6,
            "product": 256,
            "chain": (10**3, 10**4),
            "mlp": (32, 64),
            "attention": (2, 2, 32, 16),
            "jacobian": (32, 64),
        }
    return {
        "copy": 1 << 30,
        "product": 8192,
        "chain": [10**k for k in range(3, 9)],
        "mlp": (4096, 1024),
        "attention": (8, 16, 512, 64),
        "jacobian": (512, 1024),
    }


def workloads(wanted: dict[str, Any], bandwidth: float) -> Iterator[tuple[str, Any, Callable[[float], str]]]:
    """Yield (name, function that creates it, text about gradlab's seconds)."""
    for n in wanted["chain"]:

        def shares(seconds: float, n: int = n) -> str:
            moved, fused = (k * n * FLOAT / seconds / bandwidth for k in (CHAIN_MOVED, CHAIN_FUSED))
            return f"{moved:5.0%} of copy bandwidth with separate kernels, {fused:5.0%} as one fused kernel"

        yield f"chain, {n:.0e} elements", chain(n, False), shares
        yield f"chain with backward, {n:.0e}", chain(n, True), lambda seconds: ""
    yield "MLP step, batch {} width {}".format(*wanted["mlp"]), mlp(*wanted["mlp"]), lambda seconds: ""
    yield "attention step, {}×{}×{}×{}".format(*wanted["attention"]), attention(*wanted["attention"]), lambda seconds: ""
    yield "Jacobian, {} rows of {}".format(*wanted["jacobian"]), jacobian(*wanted["jacobian"]), lambda seconds: ""
    for backward in (False, True):
        yield (
            f"100 small operations{', backward' * backward}",
            small(backward),
            lambda seconds: f"{1e6 * seconds / (5 * ROUNDS_OF_SMALL):.2f} µs for each operation",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true", help="sizes that a CPU runs in seconds")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--batch", type=float, default=0.01, help="seconds of a sample, at least one call")
    options = parser.parse_args()
    if options.device == "cuda" and not gradlab.cuda.is_available():
        print(f"There is no GPU to measure ({gradlab.cuda.why_unavailable()}). Use `--device cpu --small` to run on the CPU.")
        return
    torch = torch_or_none()
    libraries = [Library("gradlab", gradlab, options.device)]
    if torch is not None and (options.device == "cpu" or torch.cuda.is_available()):
        libraries.append(Library("torch", torch, options.device))
    versions = [f"gradlab {gradlab.__version__}"]
    if options.device == "cuda":
        import cupy

        versions.append(f"CuPy {cupy.__version__}")
    versions += [f"torch {torch.__version__}" if len(libraries) > 1 else "without torch", f"NumPy {np.__version__}"]
    card = gradlab.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine()
    print(f"{card}; {', '.join(versions)}; medians of {options.rounds} rounds")
    wanted = sizes(options.small)
    print(f"{'milliseconds':34}" + "".join(f"{library.name:>12}" for library in libraries) + f"{'ratio':>9}")
    seconds = run("copy", copy(wanted["copy"]), libraries, options.rounds, options.batch)
    bandwidth = 2 * wanted["copy"] * FLOAT / min(seconds)
    line(f"copy of {wanted['copy'] * FLOAT / 1e9:.3g} GB", seconds, f"{bandwidth / 1e9:.0f} GB/s read and written")
    seconds = run("product", product(wanted["product"]), libraries, options.rounds, options.batch)
    rate = 2 * wanted["product"] ** 3 / min(seconds)
    line(f"float32 product, {wanted['product']}³", seconds, f"{rate / 1e12:.1f} TFLOP/s")
    for name, make, say in workloads(wanted, bandwidth):
        for library in libraries:
            library.free()
        times = run(name, make, libraries, options.rounds, options.batch)
        line(name, times, say(times[0]))


if __name__ == "__main__":
    main()
