"""Measurements behind the thresholds of the doctor. Run as a program, it prints the figures that their comments give.

It runs optimizers that minimize and that maximize on small nets over several seeds, and the rows of this folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from symptoms import array
from test_planted import FAULTS, HEALTHY
from tracing import case_of

import gradlab as gl

OPTIMIZERS = {
    "gradient descent": lambda p, up: gl.optim.SGD(p, lr=0.1, maximize=up),
    "momentum": lambda p, up: gl.optim.SGD(p, lr=0.03, momentum=0.9, maximize=up),
    "Adam": lambda p, up: gl.optim.Adam(p, lr=3e-3, maximize=up),
    "RMSprop": lambda p, up: gl.optim.RMSprop(p, lr=1e-3, maximize=up),
}


@dataclass
class Run:
    """A training run: for each step, its cosine with the gradient, and the loss before it."""

    optimizer: str
    up: bool
    cosines: np.ndarray
    losses: np.ndarray

    @property
    def least_of_three(self) -> np.ndarray:
        """The smallest cosine of each three consecutive steps."""
        return np.lib.stride_tricks.sliding_window_view(self.cosines, 3).min(1)

    @property
    def rising(self) -> np.ndarray:
        """Mask of the three consecutive steps that all increased the loss."""
        return np.lib.stride_tricks.sliding_window_view(np.diff(self.losses) > 0, 3).all(1)


def runs(seeds: int = 3, steps: int = 30) -> Iterator[Run]:
    """Train classifiers of two depths and two activations, with full and with random batches."""
    for optimizer, up, seed, act, layers, whole in itertools.product(
        OPTIMIZERS, (False, True), range(seeds), (gl.tanh, gl.relu), (1, 3), (True, False)
    ):
        rng = np.random.default_rng(seed)
        widths = [6, *[16] * layers, 3]
        Ws = [
            gl.tensor(rng.normal(size=pair) * np.sqrt(2 / sum(pair)), requires_grad=True) for pair in itertools.pairwise(widths)
        ]
        X = rng.normal(size=(64, 6))
        y = rng.integers(0, 3, 64)
        opt = OPTIMIZERS[optimizer](Ws, up)
        cosines, losses = [], []
        for _ in range(steps):
            rows = slice(None) if whole else rng.choice(64, 8, replace=False)
            h = gl.tensor(X[rows])
            for W in Ws[:-1]:
                h = act(h @ W)
            loss = gl.nn.functional.cross_entropy(h @ Ws[-1], gl.tensor(y[rows]))
            opt.zero_grad()
            loss.backward()
            before = np.concatenate([array(W).reshape(-1) for W in Ws])
            g = np.concatenate([array(W.grad).reshape(-1) for W in Ws])
            opt.step()
            step = np.concatenate([array(W).reshape(-1) for W in Ws]) - before
            cosines.append(float(step @ g / max(np.linalg.norm(step) * np.linalg.norm(g), 1e-300)))
            losses.append(float(loss.item()))
        yield Run(optimizer, up, np.array(cosines), np.array(losses))


def figures_of_steps() -> dict[str, float]:
    """Return how far the smallest cosines of three steps are apart in descents and ascents."""
    all_of = list(runs())
    down = [run for run in all_of if not run.up]
    up = [run for run in all_of if run.up]
    rising = [run.least_of_three[: len(run.rising)][run.rising] for run in down]
    return {
        "runs": len(all_of),
        "greatest down": float(max(run.least_of_three.max() for run in down)),
        "greatest down while the loss grows": float(max((part.max() for part in rising if part.size), default=-1.0)),
        "least up": float(min(run.least_of_three.min() for run in up)),
        "least first up": float(min(run.least_of_three[0] for run in up)),
    }


def cases_of_rows(table: Any, kinds: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the cases of rows run with gradlab, restricted to faults of some kinds if `kinds` is not empty."""
    for row in table.values():
        if "gradlab" in row.libraries and (not kinds or set(kinds) & set(row.kinds)):
            with case_of("gradlab", row.texts) as (case, _):
                if case is not None:
                    yield case


def shares(table: Any, kinds: tuple[str, ...] = ()) -> dict[str, list[float]]:
    """Return for each cell the largest share of dead units in a layer with at least 32 positions, of saturated elements and of
    saturated softmax rows, and the largest ratio of a step to the norm of its matrix."""
    found: dict[str, list[float]] = {"shut": [], "flat": [], "sharp": [], "ratio": []}
    for case in cases_of_rows(table, kinds):
        seen = [node for node in case.trace.nodes if node.slopes is not None]
        units = [
            n.slopes.shut / n.slopes.units for n in seen if n.slopes.units and n.slopes.places >= 32 and "Relu" in n.operation
        ]
        bent = [n.slopes.flat / n.slopes.elements for n in seen if n.slopes.elements >= 8 and n.operation[:4] in ("Tanh", "Sigm")]
        rows = [n.slopes.flat / n.slopes.elements for n in seen if n.slopes.elements >= 16 and n.operation.startswith("Softmax")]
        moved = []
        largest: dict[int, float] = {}  # norm before the steps; a matrix close to 0 does not count as moved far
        for swept in case.trace.journal:
            for entry in swept.entries:
                largest[entry.key] = max(largest.get(entry.key, 0.0), entry.weight)
                learner = case.learners.get(entry.key)
                if learner is not None and len(learner.shape) >= 2 and entry.weight and (entry.moved or 0) > largest[entry.key]:
                    moved.append(entry.moved / entry.weight)
        for name, values in (("shut", units), ("flat", bent), ("sharp", rows), ("ratio", moved)):
            found[name] += [max(values)] if values else []
    return found


if __name__ == "__main__":
    print(figures_of_steps())  # noqa: T201
    healthy = shares(HEALTHY)
    print({name: (len(values), max(values)) for name, values in healthy.items()})  # noqa: T201
    for kind, name in (("dead", "shut"), ("saturated", "flat"), ("saturated", "sharp"), ("update-ratio", "ratio")):
        print(kind, name, sorted(shares(FAULTS, (kind,))[name]))  # noqa: T201
