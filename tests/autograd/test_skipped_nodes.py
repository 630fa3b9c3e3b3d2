"""Test that repeated calls of `grad` on one graph, which remember the nodes to skip, skip only what the inputs do not need."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import gradlab as gl
from gradlab.core import search


def graph():
    a, b = gl.tensor([1.0, 2.0], requires_grad=True), gl.tensor([3.0, 5.0], requires_grad=True)
    inner = a * b
    return a, b, inner, (inner + a).exp().log() * b


def gradients(a, b):
    """The gradients of the sum of (a b + a) b, with respect to a, b and the product a b."""
    a, b = a.detach(), b.detach()
    return (b + 1) * b, 2 * a * b + a, b


def test_each_choice_of_inputs_has_its_gradients():
    a, b, inner, y = graph()
    of_a, of_b, of_inner = gradients(a, b)
    v = gl.ones(2)
    for _ in range(2):
        for inputs, wanted in (((a,), (of_a,)), ((b,), (of_b,)), ((inner,), (of_inner,)), ((a, inner), (of_a, of_inner))):
            for _ in range(2):
                found = gl.autograd.grad(y, inputs, v, retain_graph=True)
                for g, w in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-6)
    assert a.grad is None
    assert b.grad is None


def test_rows_of_a_jacobian_search_once(monkeypatch):
    a, _, _, y = graph()
    searches = []
    original = search.reachable_nodes
    monkeypatch.setattr(search, "reachable_nodes", lambda roots: searches.append(1) or original(roots))
    rows = [gl.autograd.grad(y, a, row, retain_graph=True)[0] for row in gl.eye(2)]
    assert len(searches) == 1
    np.testing.assert_allclose(gl.stack(rows).numpy(), np.diag([12.0, 30.0]), rtol=1e-6)


def test_another_graph_is_searched_again():
    v = gl.ones(2)
    for _ in range(3):
        a, b, _, y = graph()
        np.testing.assert_allclose(gl.autograd.grad(y, a, v)[0].numpy(), gradients(a, b)[0].numpy(), rtol=1e-6)


def test_the_search_keeps_no_graph_alive():
    a, _, inner, y = graph()
    gl.autograd.grad(y, a, gl.ones(2), retain_graph=True)
    node = weakref.ref(inner.grad_fn)
    del a, inner, y, _
    gc.collect()
    assert node() is None


def test_results_of_large_searches_are_not_kept(monkeypatch):
    monkeypatch.setattr(search, "MAX_KEPT_ORDERS", 1)
    a, _, _, y = graph()
    before = search.last.search
    other = gl.tensor([1.0, 1.0], requires_grad=True)
    y = y + (other * 2).exp() * 3
    gl.autograd.grad(y, a, gl.ones(2), retain_graph=True)
    assert search.last.search is before
