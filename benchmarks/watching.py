"""What it costs to watch a training: bare and watched trainings in processes of their own, in turn.

    python -m benchmarks.watching [turns]

Both processes of a pair are there at once and train by turns; while one trains, the other waits. A turn tells the processor time
of a step: wall-clock time says little on a machine that does other things too. Each has one thread, since those of BLAS that wait
for work take time as well. The first steps, which the doctor examines, are not counted. The ratio is that of turns that follow
one another, of which now the one comes first and now the other; their median is printed, and the quartiles.

Of PyTorch, `gl.watch` is compared with W&B's `watch` (offline, gradients and parameters, every 100 steps) where that is
installed, and with a loop that computes the norm of every gradient at every step. Bare against bare, the control, tells how far
a ratio is to be trusted.
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
from statistics import median, quantiles
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
    ("gradlab", "MLP", 1),
    ("gradlab", "conv net", 1),
    ("gradlab", "scalar regression", 1),
)
WAYS = ("watched", "W&B", "norms by hand", "bare")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
FIRST, SECONDS, STEPS = 120, 0.5, 8  # steps that are not counted; seconds and steps of a turn, whichever is longer


def training(lib: Any, kind: str) -> tuple[Any, Callable[[], Any]]:
    """Return the model, and a function that computes the loss."""
    nn, drawn = lib.nn, np.random.default_rng(0)
    lib.manual_seed(0)

    def data(*shape: int) -> Any:
        return lib.tensor(drawn.normal(size=shape).astype(np.float32))

    if kind == "GPT":
        from benchmarks.gpt import GPT  # of PyTorch alone

        net, ids = GPT(vocabulary=256, width=320, layers=8, heads=5), lib.tensor(drawn.integers(0, 256, (2, 65)))
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
    loss = nn.MSELoss()
    return net, lambda: loss(net(x), y)


def observer(way: str, net: Any, optimizer: Any, stack: ExitStack) -> Callable[[Any], None]:
    """Begin to watch in one of the ways. Return a function that is called with the loss after each step."""
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
    """Train for a turn for each line that is read, and write the processor time of a step."""
    lib = importlib.import_module(library)
    if library == "torch":
        lib.set_num_threads(1)
    net, loss_of = training(lib, kind)
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


def compared(library: str, kind: str, batches: int, way: str, turns: int) -> list[list[float]]:
    """Return the seconds of a step, turn by turn, of a bare training and of one in another way."""
    command = [sys.executable, "-m", "benchmarks.watching", library, kind, str(batches)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with ExitStack() as stack:
        two = [stack.enter_context(subprocess.Popen([*command, one], env=ALONE, **pipes)) for one in ("bare", way)]
        told: list[list[float]] = [[], []]
        for turn in range(-1, turns):  # the first is warming up
            for which in (0, 1) if turn % 2 else (1, 0):
                print(file=two[which].stdin, flush=True)
                seconds = float(two[which].stdout.readline())
                if turn >= 0:
                    told[which].append(seconds)
        for process in two:
            process.stdin.close()
    return told


def main() -> None:
    if len(sys.argv) == 5:
        trainer(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    ways = [way for way in WAYS if way != "W&B" or importlib.util.find_spec("wandb")]
    for library, kind, batches in TRAININGS:
        print(f"{library:8}{kind}" + (f", {batches} micro-batches" if batches > 1 else ""), flush=True)
        for way in ways if library == "torch" else ("watched", "bare"):
            bare, other = compared(library, kind, batches, way, turns)
            low, middle, high = quantiles([b / a for a, b in zip(bare, other, strict=True)], n=4)
            step = f"of {1e3 * median(bare):.2f} ms" if way == "watched" else ""
            print(f"    {way:14} {middle:.3f} ({low:.3f} to {high:.3f}) {step}", flush=True)


if __name__ == "__main__":
    main()
