"""What `gl.watch` costs a training step: bare and watched runs in processes of their own, one after the other in turn.

    python -m benchmarks.watching [runs]

A process makes its steps, leaves out the first tenth, and tells the median time of a step. The ratio of a pair of neighbours is
least disturbed by what else the machine does; the median of the pairs is printed.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from statistics import median
from time import perf_counter

import numpy as np

KINDS = ("MLP", "conv net", "scalar regression")
LIBRARIES = ("gradlab", "torch")


def training(lib, kind):
    """The model (or tensors), the optimizer, and a function that computes the loss."""
    nn, drawn = lib.nn, np.random.default_rng(0)
    lib.manual_seed(0)

    def data(*shape):
        return lib.tensor(drawn.normal(size=shape).astype(np.float32))

    if kind == "MLP":
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        x, y = data(512, 64), data(512, 10)
    elif kind == "conv net":
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(576, 10),
        )
        x, y = data(32, 3, 16, 16), data(32, 10)
    else:
        net = nn.Linear(1, 1)
        x, y = data(20, 1), data(20, 1)
    return net, lib.optim.SGD(net.parameters(), lr=1e-3), lambda: ((net(x) - y) ** 2).mean()


def one(library, kind, watched, seconds=3.0):
    """The median time of a step, in seconds, and what the watch says of itself."""
    import gradlab as gl

    lib = importlib.import_module(library)
    if library == "torch":
        lib.set_num_threads(1)
    net, optimizer, loss_of = training(lib, kind)
    times = []

    def loop(log):
        end = perf_counter() + seconds
        while (began := perf_counter()) < end:
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            if log is not None:
                log(loss)
            times.append(perf_counter() - began)

    cost = {}
    if watched:
        with gl.watch(net, optimizer) as w:
            loop(w.log)
        cost = w.cost
    else:
        loop(None)
    some = times[len(times) // 10 :]
    return {"median": median(some), "mean": sum(some) / len(some), "cost": cost}


def main():
    if len(sys.argv) == 4:
        print(json.dumps(one(sys.argv[1], sys.argv[2], sys.argv[3] == "watched")))
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for library in LIBRARIES:
        for kind in KINDS:
            pairs = []
            for _ in range(runs):
                pair = []
                for how in ("bare", "watched"):
                    ran = subprocess.run(
                        [sys.executable, "-m", "benchmarks.watching", library, kind, how],
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    pair.append(json.loads(ran.stdout))
                pairs.append(pair)
            bare = median(a["mean"] for a, _ in pairs)
            ratios = sorted(b["mean"] / a["mean"] for a, b in pairs)
            print(
                f"{library:8} {kind:18} {1e3 * bare:7.3f} ms a step, watched {median(ratios):.3f} times that "
                f"({ratios[0]:.3f} to {ratios[-1]:.3f}); by its own account {median(b['cost']['share'] for _, b in pairs):.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
