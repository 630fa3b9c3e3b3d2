"""Differentiate recorded batched sweeps with respect to their batch, in both modes, and with respect to the inputs.

Jacobians of Jacobians need this of every primitive, because a rule that runs on a batch is recorded with other metadata than the
call itself. The results are compared with unrecorded sweeps and with sweeps of one row.
"""

from __future__ import annotations

import numpy as np
import pytest
from grouped import for_each_sample
from rules.table import GROUPS

from gradlab.autograd import grad, jvp_of_graph
from gradlab.core.tensor import constant

ROWS = 3
SMOOTH = {primitive: cases for primitive, cases in GROUPS.items() if primitive != "astype"}  # its sample goes through float32


def close(found, want):
    np.testing.assert_allclose(found.array, want, atol=1e-7)


class Batch:
    """A case with a batch of cotangents and tangents that require grad."""

    def __init__(self, case):
        self.case, self.rng = case, np.random.default_rng(3)
        self.xs = [constant(self.rng.uniform(0.5, 1.5, shape)).requires_grad_() for shape in case.shapes]
        self.y = case.function(*self.xs)
        self.g = self.draw(ROWS, *self.y.shape).requires_grad_()
        self.us = [self.draw(ROWS, *x.shape).requires_grad_() for x in self.xs]

    def __str__(self):
        return str(self.case)

    def draw(self, *shape):
        return constant(self.rng.standard_normal(shape))

    def rows(self, g, **options):
        return grad(self.y, self.xs, g, is_grads_batched=True, **{"retain_graph": True, **options})

    def total(self, g, us, **options):
        """Return the sum of ⟨vᵀJ, u⟩ over a batch, from reverse sweeps."""
        return sum((row * u).sum() for row, u in zip(self.rows(g, **options), us, strict=True))

    def one_by_one(self):
        """Return the gradient of the sum with respect to the inputs, row by row."""
        made = [np.zeros(x.shape) for x in self.xs]
        for k in range(ROWS):
            row = grad(self.y, self.xs, self.g[k].detach(), create_graph=True)
            part = sum((r * constant(u.array[k])).sum() for r, u in zip(row, self.us, strict=True))
            if part.requires_grad:
                for total, g in zip(made, grad(part, self.xs, materialize_grads=True, retain_graph=True), strict=True):
                    total += g.array
        return made


@pytest.fixture(params=SMOOTH)
def samples(request):
    return [Batch(case) for case in SMOOTH[request.param]]


@for_each_sample
def test_recorded_rows_are_linear_in_their_cotangents(batch):
    us = [u.detach() for u in batch.us]
    total = batch.total(batch.g, us, create_graph=True)
    (by_g,) = grad(total, batch.g, retain_graph=True, materialize_grads=True)
    close(by_g, jvp_of_graph(batch.y, batch.xs, us, is_batched=True)[0].array)
    directions = batch.draw(2, *batch.g.shape)
    rows = [(i, row) for i, row in enumerate(batch.rows(batch.g, create_graph=True)) if row.node is not None]
    tangents = jvp_of_graph([row for _, row in rows], [batch.g], [directions], is_batched=True) if rows else ()
    for (i, row), tangent in zip(rows, tangents, strict=True):
        if tangent is not None:
            close(tangent, np.stack([batch.rows(constant(one))[i].array for one in directions.array]))
        v = batch.draw(2, *row.shape)
        (pulled,) = grad(row, batch.g, v, retain_graph=True, is_grads_batched=True, materialize_grads=True)
        close(
            pulled,
            np.stack([grad(row, batch.g, constant(one), retain_graph=True, materialize_grads=True)[0].array for one in v.array]),
        )


@for_each_sample
def test_recorded_columns_are_linear_in_their_tangents(batch):
    (t,) = jvp_of_graph(batch.y, batch.xs, batch.us, is_batched=True, create_graph=True)
    if t.node is None:
        return  # the derivative is 0 everywhere
    g = batch.g.detach()
    for found, want in zip(grad(t, batch.us, g, retain_graph=True, materialize_grads=True), batch.rows(g), strict=True):
        close(found, want.array)
    v = batch.draw(2, *t.shape)
    for u in batch.us:
        (pulled,) = grad(t, u, v, retain_graph=True, is_grads_batched=True, materialize_grads=True)
        close(
            pulled, np.stack([grad(t, u, constant(one), retain_graph=True, materialize_grads=True)[0].array for one in v.array])
        )


@for_each_sample
def test_recorded_batches_have_second_derivatives(batch):
    us = [u.detach() for u in batch.us]
    want = batch.one_by_one()
    by_rows = batch.total(batch.g, us, create_graph=True)
    by_columns = (jvp_of_graph(batch.y, batch.xs, batch.us, is_batched=True, create_graph=True)[0] * batch.g).sum()
    for total in (by_rows, by_columns):
        for found, expected in zip(grad(total, batch.xs, retain_graph=True, materialize_grads=True), want, strict=True):
            close(found, expected)
