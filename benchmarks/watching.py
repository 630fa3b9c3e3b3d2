"""What `gl.watch` costs a training step: bare and watched runs in processes of their own, in turn.

    python -m benchmarks.watching [pairs]

A process leaves out its first second, and then tells the processor time of a step in the mean of some seconds: wall-clock
time says little on a machine that does other things too. It has one thread, since those of BLAS that wait for work take time
as well. The ratio is that of neighbours; the median of the pairs is printed, and the least and the greatest.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from statistics import median
from time import perf_counter, process_time

import numpy as np

KINDS = ("MLP", "conv net", "scalar regression")
LIBRARIES = ("gradlab", "torch")
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
WARM, SECONDS = 1.0, 4.0


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


def one(library, kind, watched):
    """The processor time of a step, in seconds."""
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

    if not watched:
        loop(WARM, None)
        return loop(SECONDS, None)
    with gl.watch(net, optimizer) as w:
        loop(WARM, w.log)
        return loop(SECONDS, w.log)


def main():
    if len(sys.argv) == 4:
        print(json.dumps(one(sys.argv[1], sys.argv[2], sys.argv[3] == "watched")))
        return
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for library in LIBRARIES:
        for kind in KINDS:
            found = []
            for _ in range(pairs):
                command = [sys.executable, "-m", "benchmarks.watching", library, kind]
                ran = [
                    subprocess.run([*command, how], capture_output=True, text=True, check=True, env=ALONE)
                    for how in ("bare", "watched")
                ]
                found.append([json.loads(one.stdout) for one in ran])
            ratios = sorted(watched / bare for bare, watched in found)
            print(
                f"{library:8} {kind:18} {1e3 * median(bare for bare, _ in found):7.3f} ms a step, watched {median(ratios):.3f} "
                f"times that ({ratios[0]:.3f} to {ratios[-1]:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
