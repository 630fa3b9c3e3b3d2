"""A small training in NumPy and float64, with the derivatives written out, and what a watch has to record of it."""

from __future__ import annotations

import numpy as np

BATCH = 8
LAYERS = ("0", "2")


class Training:
    """A network of two layers with a ReLU between them, trained by SGD on the mean squared error.

    Parameters
    ----------
    steps : int
    accumulate : int
        Micro-batches of a step, whose losses are averaged.
    clip : float, optional
        The norm to which gradients are clipped.

    Attributes
    ----------
    x, y : ndarray of float32
        The micro-batches below one another.
    start : list of ndarray
        The first weights.
    expected : dict of str to list of float
        The numbers of each step by what a watch calls them.
    """

    def __init__(self, steps=6, accumulate=1, clip=None, rate=0.05):
        drawn = np.random.default_rng(0)
        self.steps, self.accumulate, self.clip, self.rate = steps, accumulate, clip, rate
        count = BATCH * steps * accumulate
        self.x = drawn.normal(size=(count, 3)).astype(np.float32)
        self.y = drawn.normal(size=(count, 1)).astype(np.float32)
        self.start = [(drawn.normal(size=shape) * 0.5).astype(np.float32) for shape in ((8, 3), (8,), (1, 8), (1,))]
        self.expected = {}
        self._train()

    def _train(self):
        weights = [one.astype(np.float64) for one in self.start]
        batches = zip(*(np.split(one.astype(np.float64), len(one) // BATCH) for one in (self.x, self.y)), strict=True)
        for _ in range(self.steps):
            loss, gradients = 0.0, [np.zeros_like(one) for one in weights]
            for _ in range(self.accumulate):
                value, parts = differentiate(weights, *next(batches))
                loss += value / self.accumulate
                gradients = [one + part / self.accumulate for one, part in zip(gradients, parts, strict=True)]
            total = norm(gradients)
            if self.clip is not None:
                gradients = [one * min(1.0, self.clip / (total + 1e-6)) for one in gradients]
                self.note("unclipped", total)
            self.note("loss", loss)
            self.note("lr", self.rate)
            for name, at in zip(LAYERS, (slice(0, 2), slice(2, 4)), strict=True):
                self.note(f"gradient {name}", norm(gradients[at]))
                self.note(f"ratio {name}", self.rate * norm(gradients[at]) / norm(weights[at]))
            weights = [one - self.rate * gradient for one, gradient in zip(weights, gradients, strict=True)]

    def note(self, name, number):
        self.expected.setdefault(name, []).append(number)

    def model(self):
        """Return the network in PyTorch, with the first weights."""
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        with torch.no_grad():
            for p, start in zip(model.parameters(), self.start, strict=True):
                p.copy_(torch.from_numpy(start))
        return model

    def loader(self, batch=BATCH):
        """Return a DataLoader of the micro-batches in their order."""
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        return DataLoader(TensorDataset(torch.from_numpy(self.x), torch.from_numpy(self.y)), batch_size=batch)

    def check(self, run, name="model{}".format):
        """Assert that a run has the numbers of this training."""
        history = run.history()
        assert run.steps == self.steps and not run.trouble
        for key, numbers in self.expected.items():
            kind, _, layer = key.partition(" ")
            column = f"{kind} {name(f'[{layer}]')}" if layer else kind
            assert list(history[column]) == [approx(one) for one in numbers], column


def approx(number):
    import pytest

    return pytest.approx(number, rel=2e-5)


def differentiate(weights, x, y):
    w1, b1, w2, b2 = weights
    sums = x @ w1.T + b1
    hidden = np.maximum(sums, 0)
    error = hidden @ w2.T + b2 - y
    d = 2 * error / error.size
    back = (d @ w2) * (sums > 0)
    return (error**2).mean(), [back.T @ x, back.sum(0), d.T @ hidden, d.sum(0)]


def norm(arrays):
    return float(np.sqrt(sum((one**2).sum() for one in arrays)))


def is_unhooked(optimizer):
    """Return whether a watch left no hook on an optimizer of PyTorch, nor on `backward`."""
    import torch

    hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    return not any(hooks) and not hasattr(torch.Tensor.backward, "__wrapped__")


def line_with(text, function):
    """Return the number of the line of a function that contains a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return first + at


class Recorder:
    """A tracker that keeps what it is given."""

    def __init__(self):
        self.rows = {}

    def log(self, values, step):
        self.rows.setdefault(step, {}).update(values)
