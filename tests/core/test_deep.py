"""Deep and wide graphs are built, traversed and freed without recursion, in time linear in the number of nodes."""

from __future__ import annotations

import sys
import threading
import weakref

import pytest

import gradlab as gl
from gradlab.core import freeing
from gradlab.core.freeing import free_node, free_view_source
from gradlab.core.node import Node


def chain(n):
    """A leaf, and the end of a chain of n operations on it."""
    x = gl.tensor(0.3, requires_grad=True)
    z = x
    for _ in range(n // 2):
        z = z * 0.999 + x
    return x, z


def saving(n):
    """A chain whose nodes save tensors, which refer to nodes themselves."""
    x = gl.tensor([0.5, 0.25], requires_grad=True)
    z = x
    for _ in range(n // 2):
        z = (z * z).tanh()
    return x, z.sum()


def wide(n):
    """A sum of n terms."""
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    return x, gl.stack([x * 2.0 for _ in range(n)]).sum()


def recorded_gradient(n):
    """A recorded gradient of a chain: two chains that refer to each other's tensors."""
    x = gl.tensor(0.5, dtype=gl.float64, requires_grad=True)
    z = x
    for _ in range(n // 8):
        z = z * 1.0 + x * x
    return x, gl.autograd.grad(z, x, create_graph=True)[0]


def with_little_stack(work):
    """Call `work()` in a thread with a stack of 2 MB, in which recursion through a long chain ends the process.

    Python 3.13 itself recurses 10 000 deep when it frees objects. That takes between 1 and 1.25 MB (Debian's 3.13.5), so a
    chain of 100 000 takes about ten times that. On Pyodide there are no threads, and less stack.
    """
    if sys.platform == "emscripten":
        return work()
    made = []

    def run():
        try:
            made.append(work())
        except BaseException as error:  # noqa: BLE001  (raised below)
            made.extend((None, error))

    before = threading.stack_size(2 * 1024 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if len(made) > 1:
        raise made[1]
    return made[0]


def lifetime(graph, n):
    """Build, traverse and free a graph. Return True if it is gone."""
    x, z = graph(n)
    z.backward()
    assert x.grad is not None
    gone = weakref.ref(z.grad_fn)
    del z
    return gone() is None


@pytest.mark.slow
@pytest.mark.parametrize("graph", [chain, saving, wide, recorded_gradient])
@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)])
def test_no_recursion(graph, n):
    assert with_little_stack(lambda: lifetime(graph, n))


def test_a_chain_of_custom_functions():
    class Add(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    def work():
        x = gl.tensor(1.0, dtype=gl.float64, requires_grad=True)
        z = x
        for _ in range(20_000):
            z, _ = Add.apply(z)
        z.backward()
        gone = weakref.ref(z.node)
        del z
        return x.grad.item(), gone()

    assert with_little_stack(work) == (1, None)


@pytest.mark.skipif(sys.platform == "emscripten", reason="the other tests check this on Pyodide")
def test_finalizers_free_nodes_without_nesting(monkeypatch):
    """The finalizers used on Pyodide, with the depth of nesting counted."""
    depth, deepest, freed = 0, 0, 0

    def count_depth(free):
        def finalizer(self):
            nonlocal depth, deepest, freed
            depth, freed = depth + 1, freed + 1
            deepest = max(deepest, depth)
            free(self)
            depth -= 1

        return finalizer

    class Add(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = x
            return x + 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    def custom(n):
        x = z = gl.ones(1, requires_grad=True)
        for _ in range(n):
            z, _ = Add.apply(z)
        return x, z

    def with_hooks(n):
        x = z = gl.ones(1, requires_grad=True)
        for _ in range(n):
            before, z = z, z * 2
            z.register_hook(lambda g, before=before: g * before.sum())
        return x, z.sum()

    def views(n):
        x = y = gl.ones(1)
        for _ in range(n):
            y = y.unsqueeze(0).squeeze(0)
        return x, y

    monkeypatch.setattr(Node, "__del__", count_depth(free_node), raising=False)
    monkeypatch.setattr(gl.Tensor, "__del__", count_depth(free_view_source), raising=False)
    for graph in (chain, saving, wide, recorded_gradient, custom, with_hooks, views):
        x, z = graph(400)
        if z.requires_grad:
            z.backward(retain_graph=True)
            gone = weakref.ref(z.node)
        before, deepest = freed, 0
        del z
        assert freed - before >= 100, graph
        assert deepest <= 5, graph  # the outermost, its objects, and a tensor or two between a node and its port
        assert not depth and (graph is views or gone() is None)
    assert not freeing.PENDING
