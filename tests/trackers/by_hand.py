"""A small training in NumPy and float64, with the derivatives written out, and the same training by a library under a watch."""

from __future__ import annotations

import importlib

import numpy as np

import gradlab as gl

RATE = 0.05


class Training:
    """A network of two layers with a ReLU between them, trained on the mean squared error.

    Attributes
    ----------
    expected : list of dict of str to float
        The numbers of each step by the names that trackers get.
    """

    def __init__(self, steps=12, spike_at=None, clip=None):
        drawn = np.random.default_rng(0)
        self.x, self.y = drawn.normal(size=(16, 3)), drawn.normal(size=(16, 1))
        self.start = [drawn.normal(size=shape) * 0.5 for shape in ((8, 3), (8,), (1, 8), (1,))]
        self.start[1][0] = -9.0  # a dead unit
        self.scales = [1000.0 if step + 1 == spike_at else 1.0 for step in range(steps)]
        self.clip = clip
        self.expected = list(self._train())

    def _train(self):
        w1, b1, w2, b2 = (one.copy() for one in self.start)
        for scale in self.scales:
            sums = self.x @ w1.T + b1
            hidden = np.maximum(sums, 0)
            error = hidden @ w2.T + b2 - scale * self.y
            d = 2 * error / error.size
            back = (d @ w2) * (sums > 0)
            gradients = [back.T @ self.x, back.sum(0), d.T @ hidden, d.sum(0)]
            row = {"gradlab/loss": (error**2).mean(), "gradlab/lr": RATE}
            if self.clip is not None:
                row["gradlab/gradient_norm_unclipped"] = before = norm(gradients)
                gradients = [one * min(1.0, self.clip / before) for one in gradients]
            row["gradlab/gradient_norm"] = norm(gradients)
            for name, part, weights in (("0", gradients[:2], [w1, b1]), ("2", gradients[2:], [w2, b2])):
                row[f"gradient_norm/{name}"] = norm(part)
                row[f"weight_norm/{name}"] = norm(weights)
                row[f"update_ratio/{name}"] = RATE * norm(part) / norm(weights)
            row["dead_units/1"] = (hidden == 0).all(0).mean()
            yield row
            for weight, gradient in zip((w1, b1, w2, b2), gradients, strict=True):
                weight -= RATE * gradient

    def watch(self, to, library="gradlab", before_step=lambda step: None, **options):
        """Train by a library, and return the watch."""
        lib = importlib.import_module(library)
        model = lib.nn.Sequential(lib.nn.Linear(3, 8), lib.nn.ReLU(), lib.nn.Linear(8, 1))
        for p, start in zip(model.parameters(), self.start, strict=True):
            with lib.no_grad():
                p.copy_(lib.tensor(start.astype(np.float32)))
        x, y = (lib.tensor(one.astype(np.float32)) for one in (self.x, self.y))
        optimizer = lib.optim.SGD(model.parameters(), lr=RATE)
        with gl.watch(model, optimizer, to=to, **options) as w:
            for step, scale in enumerate(self.scales):
                optimizer.zero_grad()
                loss = ((model(x) - y * scale) ** 2).mean()
                loss.backward()
                if self.clip is not None:
                    lib.nn.utils.clip_grad_norm_(model.parameters(), self.clip)
                before_step(step)
                optimizer.step()
                w.log(loss)
        return w


def norm(arrays):
    return float(np.sqrt(sum((one**2).sum() for one in arrays)))
