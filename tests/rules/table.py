"""The table: for each primitive, samples that exercise it. Everything else about it is checked by test_table.py.

A row is `case(function of tensors, shapes of its differentiable inputs, …)`; inputs are drawn from (0.5, 1.5), so that every
function here is smooth at them. `coincidence` marks functions whose derivative can be zero by value where it is not by
structure (a comparison chose it), for which the sparsity pattern is only required to cover the nonzeros.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradlab as gl
from gradlab.core.tensor import constant
from gradlab.nn import functional as F  # noqa: N812
from gradlab.rules import matrix, reductions, shapes
from gradlab.rules.softmax import nll_entries


@dataclass(frozen=True)
class Case:
    """One sample of one primitive."""

    primitive: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    coincidence: bool = False

    def __str__(self) -> str:
        return f"{self.primitive}-{'-'.join('x'.join(map(str, s)) or '0d' for s in self.shapes)}"


def case(primitive: str, function: Callable[..., Any], *shapes: tuple[int, ...], coincidence: bool = False) -> Case:
    return Case(primitive, function, shapes, coincidence)


def like(x: Any, array: np.ndarray) -> Any:
    """A constant of the samples, in the array type of `x` (index arrays and masks follow the backend under test)."""
    from gradlab.backend.namespaces import namespace_of

    return constant(namespace_of[type(x.array)].asarray(array))


ROWS = np.array([2, 0, 2])
MASK = np.arange(12).reshape(3, 4) % 3 > 0
TARGET = np.array([1, 0, 3])
PIXELS = np.array([[0, 1, 2, 1], [2, 2, 0, 1]])


def written(x, y):
    """In place through a view of a view, and by an advanced index."""
    z = x * 1
    z.T[1:].add_(y)
    z[like(x, np.array([0, 2]))] = y[:1] * 2
    return z * z


def entries(total):
    def run(x):
        weights = like(x, np.array([1.0, 2.0, 0.5], x.array.dtype)).array
        index = like(x, np.arange(3)).array, like(x, TARGET).array
        return nll_entries.record(x, shape=(3, 4), index=index, weights=weights, total=total)
    return run


CASES = [
    case("add", lambda a, b: a + b, (3, 4), (4,)),
    case("add", lambda a, b: a + b, (), (2, 1)),
    case("sub", lambda a, b: a - b, (3, 1), (3, 4)),
    case("rsub", lambda x: 2.5 - x, (3, 4)),
    case("mul", lambda a, b: a * b, (3, 4), (2, 1, 4)),
    case("mul", lambda a: a * 2.5, (3,)),
    case("div", lambda a, b: a / b, (4,), (3, 4)),
    case("neg", lambda x: -x, (3,)),
    case("abs", lambda x: (x - 1).abs(), (3, 4)),
    case("reciprocal", lambda x: 2 / x, (3, 4)),
    case("pow", lambda a, b: a ** b, (3, 4), (4,)),
    case("pow_scalar", lambda x: x ** 3, (3,)),
    case("pow_scalar", lambda x: x ** -1.5, (2, 2)),
    case("pow_scalar", lambda x: x ** 2, ()),
    case("rpow_scalar", lambda x: 2.5 ** x, (3,)),
    case("maximum", gl.maximum, (3, 4), (4,), coincidence=True),
    case("minimum", gl.minimum, (2, 1), (2, 3), coincidence=True),
    case("exp", gl.exp, (3,)),
    case("log", gl.log, (3,)),
    case("sqrt", gl.sqrt, (3, 2)),
    case("sin", gl.sin, (3,)),
    case("cos", gl.cos, (3,)),
    case("tanh", gl.tanh, ()),
    case("tanh", gl.tanh, (2, 3)),
    case("sigmoid", gl.sigmoid, (2, 3)),
    case("relu", lambda x: (x - 1).relu(), (3, 4), coincidence=True),
    case("where", lambda a, b: gl.where(like(a, MASK), a, b), (3, 4), (4,), coincidence=True),
    case("clone", lambda x: x.clone(), (3,)),
    case("fill", lambda x: (x * 2).fill_(3.0) + x, (3,), coincidence=True),
    case("matmul", lambda a, b: a @ b, (3, 4), (4, 2)),
    case("matmul", lambda a, b: a @ b, (3, 3), (3, 3)),
    case("matmul", lambda a, b: a @ b, (3, 4), (2, 4, 4)),
    case("matmul", lambda a, b: a @ b, (2, 3, 4), (4, 2)),
    case("matvec", lambda a, b: a @ b, (3, 4), (4,)),
    case("matvec", lambda a, b: a @ b, (3, 3), (3,)),
    case("matmul", lambda a, b: a @ b, (3,), (3, 4)),
    case("dot", lambda a, b: a @ b, (4,), (4,)),
    case("addmm", matrix.addmm.record, (2,), (3, 4), (4, 2)),
    case("sum", lambda x: x.sum((0, 2)), (3, 4, 2)),
    case("sum", lambda x: x.sum(-1, True), (3, 3)),
    case("sum", lambda x: x.sum(), (3, 4)),
    case("mean", lambda x: x.mean(1), (3, 4)),
    case("mean", lambda x: x.mean(), (2, 3)),
    case("var", lambda x: x.var(0), (4, 3)),
    case("var", lambda x: x.var(1, keepdim=True, correction=0), (3, 3)),
    case("std", lambda x: x.std(0), (4, 3)),
    case("std", lambda x: x.std(), (3, 4)),
    case("vector_norm", lambda x: x.norm(), (3, 4)),
    case("vector_norm", lambda x: x.norm(dim=0, keepdim=True), (2, 3)),
    case("amax", lambda x: x.max(), (3, 4), coincidence=True),
    case("amax", lambda x: reductions.amax.record(x, axis=(-1,), keepdims=True), (3, 4), coincidence=True),
    case("amin", lambda x: x.min(), (3, 4), coincidence=True),
    case("gather", lambda x: x.max(1).values, (3, 4)),
    case("gather", lambda x: x.min(0, keepdim=True).values, (3, 3)),
    case("put_along", lambda x: shapes.put_along.record(
        x, shape=(3, 4), axis=-1, indices=like(x, np.array([[1, 1], [0, 3], [2, 2]])).array, keepdims=True), (3, 2)),
    case("put_along", lambda x: shapes.put_along.record(
        x, shape=(3, 4), axis=-2, indices=like(x, np.array([[2, 0, 0, 1]])).array, keepdims=False), (4,)),
    case("reshape", lambda x: x.reshape(2, -1), (3, 4)),
    case("permute", lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    case("permute", lambda x: x.mT, (2, 3, 3)),
    case("expand", lambda x: x.expand(3, 2, 4), (2, 1)),
    case("diagonal", lambda x: x.diagonal(), (3, 4)),
    case("diagonal", lambda x: x.diagonal(1, 0, 2), (3, 2, 3)),
    case("fill_diagonal", lambda x: x.diag(-1), (3,)),
    case("getitem", lambda x: x[1:, None, ..., ::2], (3, 4)),
    case("getitem", lambda x: x[like(x, ROWS)], (3, 3)),
    case("getitem", lambda x: x[0, :, like(x, ROWS)], (3, 3, 3)),
    case("getitem", lambda x: x[like(x, MASK)], (3, 4)),
    case("scatter", lambda x: shapes.scatter.record(x, shape=(4, 2), index=(like(x, ROWS).array,), skip=0), (3, 2)),
    case("cat", lambda a, b: gl.cat([a, b], 1), (3, 2), (3, 1)),
    case("cat", lambda a, b: gl.cat([a, b, a]), (2, 3), (1, 3)),
    case("stack", lambda a, b: gl.stack([a, b], 1), (3, 2), (3, 2)),
    case("astype", lambda x: x.float().double(), (3,)),
    case("transfer", lambda x: shapes.transfer.record(x, where=x.device), (3,)),
    case("overwrite", written, (3, 3), (2, 3), coincidence=True),
    case("softmax", lambda x: gl.softmax(x, 1), (3, 3)),
    case("log_softmax", lambda x: gl.log_softmax(x, 0), (3, 2)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET), reduction="none"), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, PIXELS), ignore_index=2), (2, 3, 4)),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET), label_smoothing=0.25), (3, 4)),
    case("nll_entries", entries(3.5), ()),
    case("nll_entries", entries(None), (3,)),
]
