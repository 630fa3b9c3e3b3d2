"""Jacobians of a batch: one for each sample, stacked as one matrix.

A function of a batch whose samples do not depend on each other has the Jacobian ∂y[s] / ∂x[s], (m, n), for sample s. One backward
sweep with weights on output element o of every sample at once gives row o of all Jacobians: m sweeps for any number of samples,
or n forward ones. So the function is called on some samples at a time, and a block computes the Jacobians of these samples.

Batch normalization in training mode, for example, mixes samples. If a check of two samples detects this, an error is raised,
since the sums of the sweeps would not be the Jacobian of any sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.explore.jacobian.graph import DifferentiatedGraph, split
from gradlab.explore.libraries import Library

SWEEP_BYTES = 64e6  # for sweeps of some samples at once, by default

Part = Callable[[Sequence[Any]], tuple[DifferentiatedGraph, Any]]


class SampleGraph(DifferentiatedGraph):
    """The graphs of some samples at a time. As a `DifferentiatedGraph` it covers all samples, with a row for each output element
    of each sample and a column for each element of one sample's input.

    Parameters
    ----------
    library : Library
    inputs : sequence of tensor
        All samples, along axis 0.
    part : callable
        Maps some samples of each input to (their graph, the function's output), with samples along axis 0 in both.
    """

    def __init__(self, library: Library, inputs: Sequence[Any], part: Part) -> None:
        self.samples, self._given, self._part = int(inputs[0].shape[0]), tuple(inputs), part
        seen = min(2, self.samples)
        self.first, output = self._of(0, seen)
        if not output.shape or output.shape[0] != seen:
            raise ValueError(
                f"batch=: the function was called on {seen} sample{'s' * (seen > 1)}, and must return one row for each along the "
                f"same axis; it returned shape {tuple(output.shape)}"
            )
        super().__init__(library, (output,), self.first.inputs)
        self.output_shapes = ((self.samples, *output.shape[1:]),)
        self.input_shapes = tuple(tuple(x.shape[1:]) for x in inputs)
        self.rows, self.columns = prod(output.shape[1:]), sum(map(prod, self.input_shapes))
        self.shape = self.samples * self.rows, self.columns
        self.unused = self.first.unused
        if seen == 2:
            self._check_apart()

    def likes(self) -> list[Any]:
        """One sample of each input, with the shape of its part of a row."""
        return [x[0] for x in self._given]

    def output(self) -> np.ndarray:
        return self.first.output()

    def derivative(self) -> np.ndarray:
        return self.first.derivative()

    def of_samples(self, start: int, stop: int) -> np.ndarray:
        """Return the stacked Jacobians of samples `start` to `stop`: (samples · m, n)."""
        graph, _ = self._of(start, stop)
        count, (m, n) = stop - start, (self.rows, self.columns)
        blocks = np.empty((count, m, n), self.dtype)
        forward = n * graph.forward_cost < m
        lines = n if forward else m
        at_once = max(1, int(SWEEP_BYTES // (count * self.first.bytes_of_a_vector("columns" if forward else "rows"))))
        for first in range(0, lines, at_once):
            unit = np.zeros((min(at_once, lines - first), lines), self.dtype)
            unit[np.arange(len(unit)), np.arange(first, first + len(unit))] = 1
            if forward:
                blocks[:, :, first : first + len(unit)] = self._forward_of(graph, count, unit).transpose(1, 2, 0)
            else:
                weights = np.repeat(unit[:, None], count, axis=1)  # (lines, samples, m)
                blocks[:, first : first + len(unit)] = self._backward_of(graph, weights).transpose(1, 0, 2)
        return blocks.reshape(count * m, n)

    def vjp(self, v: np.ndarray) -> np.ndarray:
        many = v.reshape(-1, self.samples, self.rows)
        products = np.zeros((len(many), self.columns), self.dtype)
        for start, stop in self._stretches(np.asarray(many.any(axis=(0, 2))), len(many)):
            graph, _ = self._of(start, stop)
            products += self._backward_of(graph, many[:, start:stop]).sum(1)
        return products.reshape(*v.shape[:-1], self.columns)

    def jvp(self, u: np.ndarray) -> np.ndarray:
        many = u.reshape(-1, self.columns)
        products = np.empty((len(many), self.samples, self.rows), self.dtype)
        for start, stop in self._stretches(np.ones(self.samples, bool), len(many)):
            graph, _ = self._of(start, stop)
            products[:, start:stop] = self._forward_of(graph, stop - start, many)
        return products.reshape(*u.shape[:-1], self.shape[0])

    def bytes_of_a_vector(self, by: str) -> int:
        """Estimate the memory per additional sample: all of its rows, and its graph."""
        return (int(self.rows) + 1) * self.first.bytes_of_a_vector("rows")

    def _of(self, start: int, stop: int) -> tuple[DifferentiatedGraph, Any]:
        return self._part([x[start:stop] for x in self._given])

    def _backward_of(self, graph: DifferentiatedGraph, weights: np.ndarray) -> np.ndarray:
        """Map (k, samples, m) to (k, samples, n)."""
        k, count, _ = weights.shape
        gradients = graph.vjp(weights.reshape(k, -1))
        shapes = [(count, prod(shape)) for shape in self.input_shapes]
        return np.concatenate(list(split(gradients, shapes)), axis=-1)

    def _forward_of(self, graph: DifferentiatedGraph, count: int, tangents: np.ndarray) -> np.ndarray:
        """Map (k, n), shared by all samples, to (k, samples, m)."""
        k = len(tangents)
        parts = [
            np.repeat(part[:, None], count, axis=1).reshape(k, -1)
            for part in split(tangents, [(prod(shape),) for shape in self.input_shapes])
        ]
        return graph.jvp(np.concatenate(parts, axis=-1)).reshape(k, count, self.rows)

    def _stretches(self, wanted: np.ndarray, vectors: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of neighbouring samples that are wanted, at most as many as may be swept at once."""
        most = max(1, int(SWEEP_BYTES // (vectors * self.first.bytes_of_a_vector("rows"))))
        ends = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
        for start, stop in ends.reshape(-1, 2).tolist():
            for first in range(start, stop, most):
                yield first, min(first + most, stop)

    def _check_apart(self) -> None:
        """Raise if samples depend on each other: for two samples, check the outputs' derivatives by the other one."""
        weights = np.zeros((2, 2, self.rows), self.dtype)
        weights[[0, 1], [0, 1]] = np.random.default_rng(0).uniform(0.5, 1.0, self.rows)
        blocks = self._backward_of(self.first, weights)
        across = blocks[[0, 1], [1, 0]]
        if across.any():  # NaN is True
            raise RuntimeError(
                "batch=: the samples depend on each other: the function's output for one sample depends on another one, as with "
                f"batch normalization in training mode (between the first two such a derivative is {np.abs(across).max():.3g}). "
                "A Jacobian for each sample requires a function that treats them independently, for example after model.eval()"
            )
