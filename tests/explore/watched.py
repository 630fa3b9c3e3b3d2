"""Trainings with gradlab and PyTorch for tests of `watch`, and measurements of them by hand."""

from __future__ import annotations

import importlib
from itertools import pairwise

import numpy as np
import pytest

LIBRARIES = [pytest.param("gradlab", id="gradlab"), pytest.param("torch", id="torch", marks=pytest.mark.torch)]


def library(name):
    return importlib.import_module(name)


def numbers(tensor):
    return np.array(tensor.detach().numpy(), np.float64)


def norm(arrays):
    return float(np.sqrt(sum((numbers(a) ** 2).sum() for a in arrays)))


def data(lib, rows=64, inputs=6, seed=0):
    drawn = np.random.default_rng(seed)
    x = drawn.normal(size=(rows, inputs)).astype(np.float32)
    y = np.sin(x[:, :1]) + 0.1 * drawn.normal(size=(rows, 1)).astype(np.float32)
    return lib.tensor(x), lib.tensor(y.astype(np.float32))


def mlp(lib, *widths, activation="Tanh", seed=0):
    lib.manual_seed(seed)
    layers = []
    for a, b in pairwise(widths):
        layers += [lib.nn.Linear(a, b), getattr(lib.nn, activation)()]
    return lib.nn.Sequential(*layers[:-1])


class ByHand:
    """Expected data of each step, computed by hand."""

    def __init__(self, layers):
        self.layers, self.rows = layers, []

    def before(self):
        self._gradients = [norm([p.grad for p in layer]) for layer in self.layers]
        self._old = [[numbers(p).copy() for p in layer] for layer in self.layers]

    def after(self, loss):
        ratios = []
        for layer, old in zip(self.layers, self._old, strict=True):
            moved = np.sqrt(sum(((numbers(p) - o) ** 2).sum() for p, o in zip(layer, old, strict=True)))
            ratios.append(moved / max(np.sqrt(sum((o**2).sum() for o in old)), 1e-30))
        self.rows.append((float(loss.detach()), self._gradients, ratios))
