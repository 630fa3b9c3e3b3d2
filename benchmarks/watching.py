"""What `gl.watch` costs a training step: bare and watched trainings in processes of their own, in turn.

    python -m benchmarks.watching [turns]

Both processes of a pair are there at once and train by turns, half a second each; while one trains, the other waits. A turn
tells the processor time of a step: wall-clock time says little on a machine that does other things too. Each has one thread,
since those of BLAS that wait for work take time as well. The ratio is that of turns that follow one another, of which now the
one comes first and now the other; their median is printed, and the quartiles. The same of two bare ones, the control, tells
how far a ratio is to be trusted.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from contextlib import ExitStack
from statistics import median, quantiles
from time import perf_counter, process_time

import numpy as np

KINDS = ("MLP", "conv net", "scalar regression")
LIBRARIES = ("gradlab", "torch")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
WARM, SECONDS = 1.0, 0.5


def training(lib, kind):
    """The model, the optimizer, and a function that computes the loss."""
    nn, drawn = lib.nn, np.random.default_rng(0)
    lib.manual_seed(0)

    def data(*shape):
        return lib.tensor(drawn.normal(size=shape).astype(np.float32))

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
    return net, lib.optim.SGD(net.parameters(), lr=1e-3), lambda: loss(net(x), y)


def trainer(library, kind, watched):
    """A process: for each line that it reads it trains for half a second, and writes the processor time of a step."""
    import gradlab as gl

    lib = importlib.import_module(library)
    if library == "torch":
        lib.set_num_threads(1)
    net, optimizer, loss_of = training(lib, kind)

    def loop(seconds, log):
        began, end, steps = process_time(), perf_counter() + seconds, 0
        while perf_counter() < end:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            if log is not None:
                log(loss)
            steps += 1
        return (process_time() - began) / steps

    with ExitStack() as stack:
        log = stack.enter_context(gl.watch(net, optimizer)).log if watched else None
        loop(WARM, log)
        for _ in sys.stdin:
            print(loop(SECONDS, log), flush=True)


def compared(library, kind, hows, turns):
    """The seconds of a step of the first, turn by turn, and of the second."""
    command = [sys.executable, "-m", "benchmarks.watching", library, kind]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with ExitStack() as stack:
        two = [stack.enter_context(subprocess.Popen([*command, how], env=ALONE, **pipes)) for how in hows]
        told = [[], []]
        for turn in range(-1, turns):  # the first is warming up
            for which in (0, 1) if turn % 2 else (1, 0):
                print(file=two[which].stdin, flush=True)
                seconds = float(two[which].stdout.readline())
                if turn >= 0:
                    told[which].append(seconds)
        for process in two:
            process.stdin.close()
    return told


def main():
    if len(sys.argv) == 4:
        trainer(sys.argv[1], sys.argv[2], sys.argv[3] == "watched")
        return
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for library in LIBRARIES:
        for kind in KINDS:
            print(f"{library:8} {kind:18}", end="", flush=True)
            for second in ("watched", "bare"):
                bare, other = compared(library, kind, ("bare", second), turns)
                ratios = [b / a for a, b in zip(bare, other, strict=True)]
                low, middle, high = quantiles(ratios, n=4)
                if second == "watched":
                    print(f"{1e3 * median(bare):7.3f} ms a step, watched {middle:.3f} times that ", end="")
                    print(f"({low:.3f} to {high:.3f})", end="", flush=True)
                else:
                    print(f"; the control {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)


if __name__ == "__main__":
    main()
