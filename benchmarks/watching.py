"""Cost of watching a training, measured by running bare and watched trainings in separate processes, by turns.

    python -m benchmarks.watching [pairs]

The two processes of a pair run at the same time, but train by turns: while one trains, the other waits, and the order alternates.
A turn measures the processor time of a step, because wall-clock time means little on a machine with other load. Each process has
one thread: BLAS threads that wait for work also use processor time. The first steps, which the doctor examines, are not counted.
Each pair gives one ratio; the median and the quartiles over all pairs are printed. Several pairs are needed because two identical
processes differ by a few percent for their whole life, depending on the addresses of their memory.

glibc is configured to keep freed memory. Otherwise the sizes freed earlier decide whether each step maps its memory anew, and one
of two bare loops was up to 20 % slower than the other.

With PyTorch, `gl.watch` is compared with W&B's `watch` (offline, gradients and parameters, every 100 steps) if it is installed,
and with a loop that computes the norm of every gradient at every step. Bare against bare is the control: it shows how accurate
the ratios are.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from statistics import mean, median, quantiles
from time import perf_counter, process_time
from typing import Any

import numpy as np

TRAININGS = (  # library, model, micro-batches of a step
    ("torch", "MLP", 1),
    ("torch", "MLP", 4),
    ("torch", "conv net", 1),
    ("torch", "conv net", 4),
    ("torch", "GPT", 1),
    ("torch", "GPT", 4),
    ("torch", "scalar regression", 1),
    ("torch", "compiled MLP", 1),
    ("torch", "compiled GPT", 1),
    ("gradlab", "MLP", 1),
    ("gradlab", "conv net", 1),
    ("gradlab", "scalar regression", 1),
)
WAYS = ("watched", "W&B", "norms by hand", "bare")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
ALONE |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26)}
FIRST, SECONDS, STEPS = 120, 0.5, 8  # warm-up steps; seconds and steps of a turn, whichever is longer


def training(lib: Any, kind: str, batches: int) -> tuple[Any, Callable[[], Any]]:
    """Return the model, and a function that computes the loss of one of `batches` micro-batches."""
    nn, drawn = lib.nn, np.random.default_rng(0)
    lib.manual_seed(0)

    def data(*shape: int) -> Any:
        return lib.tensor(drawn.normal(size=shape).astype(np.float32))

    kind, is_compiled = kind.removeprefix("compiled "), kind.startswith("compiled ")
    if kind == "GPT":
        from benchmarks.gpt import GPT  # PyTorch only

        net, ids = GPT(vocabulary=256, width=320, layers=8, heads=5), lib.tensor(drawn.integers(0, 256, (2, 64 // batches + 1)))
        net = lib.compile(net) if is_compiled else net
        return net, lambda: nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    if kind == "MLP":
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        x, y = data(512, 64), data(512, 10)
    elif kind == "conv net":
        first, second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3)
        net = nn.Sequential(first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.Flatten(), nn.Linear(576, 10))
        x, y = data(32, 3, 16, 16), data(32, 10)
    else:
        net = nn.Linear(1, 1)
        x, y = data(20, 1), data(20, 1)
    net, loss = lib.compile(net) if is_compiled else net, nn.MSELoss()
    return net, lambda: loss(net(x), y)


def observer(way: str, net: Any, optimizer: Any, stack: ExitStack) -> Callable[[Any], None]:
    """Start watching in one of the ways. Return a function to call with the loss after each step."""
    if way == "watched":
        import gradlab as gl

        log: Callable[[Any], None] = stack.enter_context(gl.watch(net, optimizer)).log
        return log
    if way == "W&B":
        import wandb

        run = wandb.init(dir=stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(run.finish)
        run.watch(net, log="all", log_freq=100)
        return lambda loss: run.log({"loss": loss})
    if way == "norms by hand":
        kept = []
        return lambda loss: kept.append((loss.item(), [p.grad.norm().item() for p in net.parameters()]))
    return lambda loss: None


def trainer(library: str, kind: str, batches: int, way: str) -> None:
    """Train for one turn per line of standard input, and print the processor time of a step."""
    for name in filter(importlib.util.find_spec, ("gradlab", "wandb")):  # an import alone changes where memory is allocated
        importlib.import_module(name)
    lib = importlib.import_module(library)
    if library == "torch":
        lib.set_num_threads(1)
    net, loss_of = training(lib, kind, batches)
    optimizer = lib.optim.SGD(net.parameters(), lr=1e-3)

    def loop(seconds: float, least: int) -> float:
        began, end, steps = process_time(), perf_counter() + seconds, 0
        while steps < least or perf_counter() < end:
            optimizer.zero_grad()
            for _ in range(batches):
                loss = loss_of() / batches if batches > 1 else loss_of()
                loss.backward()
            optimizer.step()
            log(loss)
            steps += 1
        return (process_time() - began) / steps

    with ExitStack() as stack:
        log = observer(way, net, optimizer, stack)
        loop(0.5, FIRST)
        for _ in sys.stdin:
            print(loop(SECONDS, STEPS), flush=True)


def compare(library: str, kind: str, batches: int, way: str) -> tuple[float, float]:
    """Return the seconds of a step of a bare training, and of one in another way, in a new pair of processes."""
    command = [sys.executable, "-m", "benchmarks.watching", library, kind, str(batches)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    turns: tuple[list[float], list[float]] = [], []
    with ExitStack() as stack:
        two = [stack.enter_context(subprocess.Popen([*command, one], env=ALONE, **pipes)) for one in ("bare", way)]
        for turn, which in enumerate((0, 1, 0, 1, 1, 0)):  # the first two turns are a warm-up
            print(file=two[which].stdin, flush=True)
            seconds = float(two[which].stdout.readline())
            if turn > 1:
                turns[which].append(seconds)
        for process in two:
            process.stdin.close()
    return mean(turns[0]), mean(turns[1])


def main() -> None:
    if len(sys.argv) == 5:
        trainer(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ways = [way for way in WAYS if way != "W&B" or importlib.util.find_spec("wandb")]
    for library, kind, batches in TRAININGS:
        print(f"{library:8}{kind}" + (f", {batches} micro-batches" if batches > 1 else ""), flush=True)
        for way in ways if library == "torch" else ("watched", "bare"):
            times = [compare(library, kind, batches, way) for _ in range(pairs)]
            low, middle, high = quantiles([other / bare for bare, other in times], n=4)
            step = f"of {1e3 * median(bare for bare, _ in times):.2f} ms" if way == "watched" else ""
            print(f"    {way:14} {middle:.3f} ({low:.3f} to {high:.3f}) {step}", flush=True)


if __name__ == "__main__":
    main()
