"""The two sweeps over a recorded graph: reverse (vᵀJ) and forward (Ju). Neither recurses, neither runs anything again.

A min-heap on a node's tick is a topological order, so the reverse sweep needs neither a discovery pass nor dependency
counts. Rules see cotangents with any number of leading batch axes `lead`. Per edge the engine, not the rule, sums a
broadcast cotangent back to its source's shape, casts it, checks it and adds it up.

Ownership: an array that a rule returned new belongs to the sweep; it may be added to in place and become a leaf's `.grad`
uncopied. One that is the incoming cotangent itself, a view, a hook's answer or the caller's weights is *borrowed*, and is
copied before either.

A sweep can be watched: see `observing`. Unwatched it costs nothing more.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of, wrap
from gradlab.core.errors import RuleError, graph_freed, overwritten
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Node
from gradlab.core.storage import clock, wrote
from gradlab.core.tensor import Tensor, constant

LARGE = 4096                      # elements from which working in place pays; on one-element arrays `+=` costs three times `+`


class Sweep(NamedTuple):
    """What an observer is told of a reverse sweep: the (node, cotangent) pairs it starts from, the batch axes, the wanted
    nodes (None: all leaves), whether it writes `.grad`, and the tensors that `backward` was called on, where it was."""

    roots: tuple[tuple[Node, Any], ...]
    lead: tuple[int, ...]
    wanted: frozenset[Node] | None
    accumulates: bool
    outputs: tuple[Tensor, ...] = ()


class Observer(Protocol):
    """Sees the reverse sweeps of this thread. Arrays are the sweep's own: copy what is kept."""

    def begin(self, sweep: Sweep) -> None:
        """A sweep starts."""

    def visit(self, node: Node, g: Any, cotangents: Sequence[Any]) -> None:
        """`node` turned the cotangent `g` into one cotangent for each of its edges."""

    def end(self, sweep: Sweep, error: BaseException | None) -> None:
        """The sweep is over; `error` is what stopped it, if anything did."""


class _Observers(threading.local):
    active: tuple[Observer, ...] = ()


observers = _Observers()


@contextmanager
def observing(observer: Observer) -> Iterator[Observer]:
    """Let `observer` see every reverse sweep that this thread runs inside the block."""
    before = observers.active
    observers.active = (*before, observer)
    try:
        yield observer
    finally:
        observers.active = before


def reachable(roots: Iterable[Node]) -> list[Node]:
    """Every node below the roots, newest first."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=lambda node: node.order)


def leading_to(wanted: Iterable[Node], roots: Iterable[Node]) -> set[Node]:
    """The nodes through which a wanted node is reached: what else there is need not be computed."""
    needed = set(wanted)
    for node in reversed(reachable(roots)):
        if any(edge in needed for edge in node.edges):
            needed.add(node)
    return needed


def vjp_sweep(roots: Sequence[tuple[Node, Any]], lead: tuple[int, ...] = (), *, wanted: Iterable[Node] | None = None,
              traced: bool = False, retain: bool = False, hooks: bool = True, accumulates: bool = True,
              outputs: Sequence[Tensor] = ()) -> dict[Node, Any]:
    """Reverse sweep from (node, cotangent) pairs: into the leaves' `.grad`, or to the `wanted` nodes, which are returned.

    Cotangents are arrays, or Tensors when `traced` (the sweep is then recorded itself). `retain` keeps what the nodes
    saved; `hooks=False` leaves the user's hooks out; `accumulates` and `outputs` are for observers alone: whether `.grad` will
    be written, and the tensors swept from.
    """
    before = mode.grad
    mode.grad = traced
    watching = observers.active
    try:
        if not watching:
            return _reverse(roots, lead, wanted, traced, retain, hooks, ())
        sweep = Sweep(tuple(roots), lead, None if wanted is None else frozenset(wanted), accumulates, tuple(outputs))
        error: BaseException | None = None
        for observer in watching:
            observer.begin(sweep)
        try:
            return _reverse(roots, lead, wanted, traced, retain, hooks, watching)
        except BaseException as raised:
            error = raised
            raise
        finally:
            for observer in watching:
                observer.end(sweep, error)
    finally:
        mode.grad = before


def _reverse(roots: Sequence[tuple[Node, Any]], lead: tuple[int, ...], wanted: Iterable[Node] | None, traced: bool,
             retain: bool, hooks: bool, watching: tuple[Observer, ...]) -> dict[Node, Any]:
    heap: list[tuple[int, Node]] = []
    leaves: list[Node] = []                                   # older than what leads to them, they wait for the end
    pending: dict[Node, Any] = {}                             # the cotangents of the nodes in the heap and of the leaves
    found: dict[Node, Any] = {}
    borrowed: set[Node] = set()
    needed = None
    if wanted is not None:
        wanted = frozenset(wanted)
        needed = leading_to(wanted, [node for node, _ in roots])
    for node, g in roots:
        if node in pending:
            pending[node] = pending[node] + g
        else:
            pending[node] = g
            borrowed.add(node)
            heappush(heap, (node.order, node))
    alone: Node | None = None                                 # a node that waits by itself need not go through the heap,
    carried = None                                            # nor its cotangent through the dictionary
    while True:
        if alone is not None:
            node, g, alone, carried = alone, carried, None, None
        else:
            if not heap:
                if not leaves:
                    return found
                heap, leaves = sorted([(leaf.order, leaf) for leaf in leaves]), []
            node = heappop(heap)[1]
            g = pending.pop(node)
        op = node.op
        attached = node.hooks if hooks else None
        if attached is not None:
            g = _run_tensor_hooks(node, g, traced, borrowed)
        if wanted is not None and node in wanted:
            found[node] = g if traced or node not in borrowed else g.copy()
        if op is None:
            if wanted is None:
                accumulate(node, g, traced, node in borrowed, hooks)
            continue
        edges: Sequence[Node | None] = node.edges
        if needed is not None:
            edges = [edge if edge in needed else None for edge in edges]
            if not any(edges):
                continue
        if attached is not None and attached.pre:
            g = _run_prehooks(node, g, traced)
        if node.saved is None:
            raise graph_freed(node.name())
        if clock.last_write < node.order:
            check_unwritten(node)
        cotangents = (op.traced_vjp if traced else op.vjp if node.shape else op.scalar_vjp)(node, edges, g, lead)
        if attached is not None and attached.post:
            cotangents = _run_posthooks(node, cotangents, g, traced)
        if watching:
            for observer in watching:
                observer.visit(node, g, cotangents)
        at = -1
        for edge in edges:                                    # counted by hand: half the time of a zip
            at += 1
            if edge is None:
                continue
            c = cotangents[at]
            if c is None:
                continue
            array = c.array if traced else c
            if array.shape != (lead + edge.shape if lead else edge.shape) or array.dtype is not edge.dtype:
                c = fit(c, edge, lead, node)
            if edge is alone:
                carried = added(carried, c, edge, traced, borrowed)
            elif pending and edge in pending:
                pending[edge] = added(pending[edge], c, edge, traced, borrowed)
            else:
                if traced or ((c is g or c.base is not None) and (
                        c.size < LARGE or not owned(c, g, node, edges, borrowed))):
                    borrowed.add(edge)
                if edge.op is None:
                    leaves.append(edge)
                    pending[edge] = c
                elif alone is None and not heap:
                    alone, carried = edge, c
                else:
                    if alone is not None:
                        heappush(heap, (alone.order, alone))
                        pending[alone] = carried
                        alone = carried = None
                    heappush(heap, (edge.order, edge))
                    pending[edge] = c
        if op.saves and not retain:
            node.saved = None
        g = c = array = cotangents = None                          # their memory, still in the cache, is free for the next rule


def added(total: Any, c: Any, edge: Node, traced: bool, borrowed: set[Node]) -> Any:
    """A further cotangent added to what an edge has: in place where that is large and the sweep's own."""
    if traced or total.size < LARGE:
        return total + c
    if edge in borrowed:
        borrowed.discard(edge)
        return total + c
    total += c
    return total


def owned(c: Any, g: Any, node: Node, edges: Sequence[Node | None], borrowed: set[Node]) -> bool:
    """Whether the sweep alone holds the memory of the cotangent `c` that `node` made of `g`, where that is not plain.

    A rule is linear in g, so what it returns is new memory or a view of g. A view of g is ours if g was, and no other edge
    was given one; and a view is only taken whole (a broadcast one has elements that share a place)."""
    base = c.base
    if (c is g or base is g or base is g.base) and (node in borrowed or len(edges) - edges.count(None) > 1):
        return False
    return base is None or (base.size == c.size and is_writable(c))


def _run_tensor_hooks(node: Node, g: Any, traced: bool, borrowed: set[Node]) -> Any:
    """Hooks on the tensor in the order of their registration, then `retain_grad`."""
    attached = node.hooks
    assert attached is not None
    for hook in tuple(attached.tensor.values()):
        answer = hook(g if traced else constant(wrap(g)))
        if answer is not None:
            if not isinstance(answer, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
            if answer.array.shape != (g.array if traced else g).shape:
                raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value")
            g = answer if traced else answer.array
        borrowed.add(node)                                                       # the hook may have kept what it saw
    tensor = attached.retain() if attached.retain is not None else None
    if tensor is not None:
        _add_to_grad(tensor, g, traced, borrowed=True)
    return g


def _run_prehooks(node: Node, g: Any, traced: bool) -> Any:
    assert node.hooks is not None
    for hook in tuple(node.hooks.pre.values()):
        answer = hook((g if traced else constant(wrap(g)),))
        if answer is not None:
            (g,) = answer if isinstance(answer, tuple) else (answer,)
            g = g if traced else g.array
    return g


def _run_posthooks(node: Node, cotangents: Sequence[Any], g: Any, traced: bool) -> Sequence[Any]:
    def as_tensors(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(c if c is None or traced else constant(wrap(c)) for c in values)

    assert node.hooks is not None
    for hook in tuple(node.hooks.post.values()):
        answer = hook(as_tensors(cotangents), as_tensors((g,)))
        if answer is not None:
            answer = answer if isinstance(answer, tuple) else (answer,)
            if len(answer) != len(cotangents):
                raise RuntimeError(f"hook '{getattr(hook, '__name__', hook)}' has returned an incorrect number of values "
                                   f"(got {len(answer)}, but expected {len(cotangents)})")
            cotangents = [c if c is None or traced else c.array for c in answer]
    return cotangents


def accumulate(leaf: Node, g: Any, traced: bool, borrowed: bool, hooks: bool = True) -> None:
    """Add a cotangent to the leaf's `.grad`, then run the hooks that wait for it."""
    assert isinstance(leaf, AccumulateGrad)
    tensor = leaf.variable
    if tensor is None:
        return
    _add_to_grad(tensor, g, traced, borrowed)
    if hooks and leaf.hooks is not None:
        for hook in tuple(leaf.hooks.accumulated.values()):
            hook(tensor)


def _add_to_grad(tensor: Tensor, g: Any, traced: bool, borrowed: bool) -> None:
    held = tensor.grad_slot
    if held is None:
        tensor.grad_slot = g if traced else constant(wrap(g.copy() if borrowed else g))
    elif traced or held.node is not None:
        tensor.grad_slot = held + (g if traced else constant(wrap(g)))
    else:
        held.array[...] += g
        wrote(held)


def retain_grad(tensor: Tensor) -> None:
    """Let the sweep write the cotangent that reaches this non-leaf to its `.grad`."""
    assert tensor.node is not None
    tensor.node.hooks_of_its_own().retain = weakref.ref(tensor)


def check_unwritten(node: Node) -> None:
    """Refuse a node whose saved arrays were overwritten after it had saved them."""
    assert node.saved is not None
    for name, saved in zip(node.op.saves, node.saved, strict=True):
        if saved is None:
            continue
        storage = node.storage if name == "out" else saved.storage
        if storage.written < node.order:
            kept = constant(saved) if name == "out" else saved
            maker = node if name == "out" else saved.grad_fn
            producer = None if maker is None else f"output 0 of {maker.name().rstrip('0123456789').removesuffix('Backward')}"
            raise overwritten(f"gradlab.{kept.dtype.legacy}", kept.array.shape, producer, storage.version, node.name())


def fit(c: Any, edge: Node, lead: tuple[int, ...], node: Node) -> Any:
    """Sum a broadcast cotangent back to the edge's shape and cast it to the edge's dtype: the transposes of what the
    forward did on its own."""
    want, k = lead + edge.shape, len(lead)
    shape = c.shape
    xp = namespace_of[type(c)]
    if shape != want:
        extra = len(shape) - len(want)
        axes = tuple(range(k, k + extra)) + tuple(
            i + extra for i in range(k, len(want)) if extra >= 0 and want[i] == 1 != shape[i + extra])
        total = c if not axes else np.add.reduce(c, axis=axes, keepdims=True) if type(c) is np.ndarray else xp.sum(
            c, axis=axes, keepdims=True)
        if extra < 0 or total.shape != lead + (1,) * extra + edge.shape:
            raise RuleError(f"{node.op.name}: a rule returned a cotangent of shape {tuple(shape)} for an argument of shape "
                            f"{edge.shape} with batch axes {lead}.")
        c = total.reshape(want)
    return c if getattr(c, "array", c).dtype == edge.dtype else xp.astype(c, edge.dtype)


def jvp_sweep(outputs: Sequence[Node], tangents: Mapping[Node, Any], lead: tuple[int, ...] = (), *,
              traced: bool = False) -> list[Any]:
    """Forward sweep over the recorded nodes: from {node: tangent} to the tangents of the output nodes (None: unreached)."""
    before = mode.grad
    mode.grad = traced
    try:
        return _forward(outputs, tangents, lead, traced)
    finally:
        mode.grad = before


def _forward(outputs: Sequence[Node], tangents: Mapping[Node, Any], lead: tuple[int, ...], traced: bool) -> list[Any]:
    values = dict(tangents)
    for node in reversed(reachable(outputs)):
        given = [values.get(edge) if edge is not None else None for edge in node.edges]
        if node.op is None or node in tangents or all(t is None for t in given):
            continue
        if node.saved is None:
            raise graph_freed(node.name())
        if clock.last_write < node.order:
            check_unwritten(node)
        if node.op.kind in ("elementwise", "bilinear"):                  # these broadcast: pad *between* batch and own axes
            given = [t if t is None else pad(t, lead, len(node.shape)) for t in given]
        parts = [p for p in (node.op.traced_jvp if traced else node.op.jvp)(node, given, None, lead) if p is not None]
        t = parts[0]
        for part in parts[1:]:
            t = t + part
        xp = namespace_of[type(t)]
        if t.shape != lead + node.shape:
            t = xp.broadcast_to(t, lead + node.shape)
        values[node] = t if getattr(t, "array", t).dtype == node.dtype else xp.astype(t, node.dtype)
    return [values.get(node) for node in outputs]


def pad(t: Any, lead: tuple[int, ...], ndim: int) -> Any:
    """A tangent of lower rank with axes of length 1 put between the batch axes and its own."""
    k = len(lead)
    return t if t.ndim >= k + ndim else t.reshape(lead + (1,) * (k + ndim - t.ndim) + t.shape[k:])

