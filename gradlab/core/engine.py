"""Reverse sweep over a recorded graph: vᵀJ. It does not recurse and recomputes nothing. (The forward sweep is in core.forward.)

Pending nodes are in a heap ordered by ticks. Ticks count down (core.storage), so the smallest one is that of the newest node. A
node is newer than the nodes of its inputs, so popping the newest node visits nodes in topological order: when a node is popped,
all nodes that contribute to its cotangent have been visited. The sweep needs neither a discovery pass nor dependency counts.

Rules accept cotangents with any number of leading batch axes `lead`. For each edge the engine, not the rule, sums a broadcast
cotangent back to the shape of its source, casts it, checks it and accumulates it.

Ownership: a new array returned by a rule belongs to the sweep. The sweep may add to it in place and use it as a leaf's `.grad`
without a copy. An array is *borrowed*, and copied before either, if it is the incoming cotangent itself, a view, the result of a
user's hook or rule, captured for `grad`, or the caller's weights.

A node has one cotangent. For a node with several outputs it is a `Bundle` (core.ports). Sweeps nest: a hook or a user's rule may
start another. Beyond `MAX_NESTED_SWEEPS` it runs in a new thread, which has its own stack.

Observers can watch a sweep (see `core.observers`). Without one, there is no extra cost.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of, wrap
from gradlab.backend.sums import is_large, sum_large
from gradlab.core.errors import RuleError, detached_in_place, graph_freed, out_of_memory, saved_tensor_modified, weight_shape
from gradlab.core.fresh_thread import run_in_fresh_thread
from gradlab.core.gradients import add_to_grad, add_to_retained_grad
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Node
from gradlab.core.numpy_warnings import filter_is_overridden, silence
from gradlab.core.observers import OBSERVERS, Observer, ReverseSweep, find_sweep_origin, observers
from gradlab.core.ports import Bundle, UserSaved
from gradlab.core.search import get_order, orders_to_skip
from gradlab.core.storage import clock
from gradlab.core.tensor import Tensor, constant

MIN_SIZE_IN_PLACE = 4096  # elements; below, in-place operations are slower (`+=` takes three times `+` on one element)


class Run:
    """The state of a running sweep."""

    __slots__ = ("__weakref__", "at_end", "depth", "freed", "freed_at_end", "roots", "unpacked", "wanted")

    def __init__(self, roots: Sequence[tuple[Node, Any]], wanted: frozenset[Node] | None, depth: int) -> None:
        self.roots, self.wanted = roots, wanted
        self.depth = depth  # number of enclosing sweeps in this thread
        self.at_end: tuple[Callable[[], Any], ...] = ()  # callbacks
        self.unpacked: tuple[Node, Any] | None = None  # the node whose saved tensors are unpacked, and their packed form
        self.freed_at_end: list[Node] | None = None  # nodes that an observer still reads at the end of the sweep
        self.freed: Any = None  # replaces the saved tensors of a freed node


class _Running(threading.local):
    """The innermost sweep that runs in this thread. Hooks on several tensors read it (see autograd.graph)."""

    sweep: Run | None = None


running = _Running()
MAX_NESTED_SWEEPS = 40  # per thread, bounded by its stack


def vjp_sweep(
    roots: Sequence[tuple[Node, Any]],
    lead: tuple[int, ...] = (),
    *,
    wanted: Iterable[Node] | None = None,
    traced: bool = False,
    retain: bool = False,
    hooks: bool = True,
    accumulates: bool = True,
    outputs: Sequence[Tensor] = (),
    silent: bool = False,
) -> dict[Node, Any]:
    """Run the reverse sweep from (node, cotangent) pairs.

    Parameters
    ----------
    roots : sequence of (Node, cotangent)
        Cotangents are arrays, or Tensors if `traced`.
    lead : tuple of int, default: ()
        The leading batch axes of all cotangents.
    wanted : iterable of Node, optional
        The nodes whose cotangents are returned. If None, the sweep accumulates into the leaves' `.grad`.
    traced : bool, default: False
        Record the sweep itself, for higher derivatives.
    retain : bool, default: False
        Keep the tensors that the nodes saved.
    hooks : bool, default: True
        Run the user's hooks.
    accumulates : bool, default: True
        Whether the sweep is part of `backward`, which writes `.grad`. Observers read it, and node hooks depend on it.
    outputs : sequence of Tensor, default: ()
        The tensors of the roots, for observers.
    silent : bool, default: False
        Whether NumPy's warnings are already off.

    Returns
    -------
    dict
        The cotangent of each wanted node that was reached.
    """
    __tracebackhide__ = True
    if not silent and filter_is_overridden():
        with silence():
            return vjp_sweep(
                roots,
                lead,
                wanted=wanted,
                traced=traced,
                retain=retain,
                hooks=hooks,
                accumulates=accumulates,
                outputs=outputs,
                silent=True,
            )
    before, outer, watching = mode.grad, running.sweep, observers.sweeps
    if outer is not None and outer.depth == MAX_NESTED_SWEEPS:
        return run_in_fresh_thread(
            lambda: vjp_sweep(
                roots, lead, wanted=wanted, traced=traced, retain=retain, hooks=hooks, accumulates=accumulates, outputs=outputs
            )
        )
    wanted = None if wanted is None else frozenset(wanted)
    run = Run(roots, wanted, 0 if outer is None else outer.depth + 1)
    mode.grad, running.sweep = traced, run  # no call before `try`: an interrupt can only follow a call
    try:
        if not watching:
            return _reverse(run, lead, wanted, traced, retain, hooks, accumulates, ())
        sweep = ReverseSweep(tuple(roots), lead, wanted, accumulates, tuple(outputs))
        error: BaseException | None = None
        for observer in watching:
            observer.on_sweep_begin(sweep)
        if not retain and any(observer.keeps_saved(sweep) for observer in watching):
            run.freed_at_end, retain = [], True
        try:
            visiting = tuple([observer for observer in watching if observer.sees_nodes])
            return _reverse(run, lead, wanted, traced, retain, hooks, accumulates, visiting)
        except BaseException as raised:
            error = raised
            raise
        finally:
            for observer in watching:
                observer.on_sweep_end(sweep, error)
            error = None  # its traceback refers to this frame
    except MemoryError as error:
        raise out_of_memory("backward", error, [node for node, _ in roots]) from error
    finally:
        mode.grad, running.sweep = before, outer
        for node in run.freed_at_end or ():
            node.saved = run.freed
        for callback in run.at_end:
            callback()
        if run.unpacked is not None:  # the sweep stopped at this node
            node, packed = run.unpacked
            node.saved = packed


def _reverse(
    run: Run,
    lead: tuple[int, ...],
    wanted: frozenset[Node] | None,
    traced: bool,
    retain: bool,
    hooks: bool,
    accumulates: bool,
    watching: tuple[Observer, ...],
) -> dict[Node, Any]:
    __tracebackhide__ = True
    heap: list[tuple[int, Node]] = []
    leaves: list[Node] = []  # leaves are older than the nodes above them, so they come last and need no heap
    only_leaves = False  # nothing else is left, and the leaves are sorted
    pending: dict[Node, Any] = {}  # cotangents of the nodes in the heap and of the leaves
    gradients: dict[Node, Any] = {}
    borrowed: set[Node] = set()
    run.freed = freed = find_sweep_origin() if OBSERVERS else None
    roots, freed_at_end = run.roots, run.freed_at_end
    skipped = None if wanted is None else orders_to_skip(roots, wanted)
    # In a chain of nodes, only one is pending at a time. It bypasses the heap, and its cotangent the dictionary. Invariant: if
    # `alone` is set, the heap is empty.
    alone: Node | None = None
    carried = None
    if len(roots) == 1:
        alone, carried = roots[0]
        borrowed.add(alone)
    else:
        for node, g in roots:
            if node in pending:
                pending[node] = pending[node] + g
            else:
                pending[node] = g
                borrowed.add(node)
                heappush(heap, (node.order, node))
    while True:
        # 1. Take the newest pending node and its complete cotangent. The leaves follow when no other node is left.
        if alone is not None:
            node, g = alone, carried
            alone = carried = None
        else:
            if heap:
                node = heappop(heap)[1]
            elif leaves:
                if not only_leaves:
                    only_leaves = True
                    if len(leaves) > 1:
                        leaves.sort(key=get_order, reverse=True)
                node = leaves.pop()
            else:
                return gradients
            g = pending.pop(node)
        # 2. Run hooks on the tensor, and store the cotangent if it is wanted. A leaf ends here.
        op = node.op
        attached = node.hooks if hooks else None
        if attached is not None:
            g = _run_tensor_hooks(node, g, traced, borrowed)
        if wanted is not None and node in wanted:
            gradients[node] = g if traced or node not in borrowed else g.copy()
            borrowed.add(node)
        if op is None:
            for observer in watching:
                observer.on_node(node, g, ())
            if wanted is None:
                accumulate(node, g, traced, node in borrowed, hooks)
            continue
        # 3. Omit the edges that lead to no wanted node, and run the hooks before the node.
        edges: Sequence[Node | None] = node.edges
        if skipped:
            edges = [None if edge is None or edge.order in skipped else edge for edge in edges]
            if not any(edges):
                if accumulates and attached is not None and (attached.pre or attached.post):
                    g = _run_prehooks(node, g, traced)
                    _run_posthooks(node, edges, [None] * len(edges), g, lead, traced)
                continue
        if attached is not None and (attached.pre or attached.post):
            borrowed.add(node)  # hooks may keep their arguments and results
            g = _run_prehooks(node, g, traced)
        # 4. Unpack the saved tensors, or check that they were not overwritten, and run the rules of the node.
        saved = node.saved
        packed = type(saved) is not tuple
        if packed:
            run.unpacked = node, saved
            node.saved = unpack_saved(node, roots)
        elif clock.last_write < node.order:
            check_not_overwritten(node)
        if (
            pending
            and op.accumulate_into is not None
            and edges[0] in pending
            and not (packed or traced or watching or attached is not None)
        ):
            total = pending[edges[0]]  # `g` is the cotangent of a part of it: see `primitive.linear`
            if total.size >= MIN_SIZE_IN_PLACE and edges[0] not in borrowed and op.accumulate_into(total, g, lead, *node.meta):
                g = total = None
                continue
        shape = node.shape
        cotangents = (op.traced_vjp if traced else op.vjp if shape else op.scalar_vjp)(node, edges, g, lead)
        if attached is not None and attached.post:
            borrowed.update(edges)  # type: ignore[arg-type]
            cotangents = _run_posthooks(node, edges, cotangents, g, lead, traced)
        if watching:
            for observer in watching:
                observer.on_node(node, g, cotangents)
        if packed and type(saved) is UserSaved:
            borrowed.update(edges)  # type: ignore[arg-type]  # the user's rules may keep them too
        # 5. Add each result to the pending cotangent of its edge, or make the edge pending.
        at = -1
        for edge in edges:  # a counter takes half the time of `zip`
            at += 1
            if edge is None:
                continue
            c = cotangents[at]
            if c is None:
                continue
            if not shape and type(c) is edge.dtype.type and not (edge.shape or lead):  # a NumPy scalar: nothing to check
                if edge is alone:
                    carried = carried + c
                    continue
                if edge in pending:
                    pending[edge] = pending[edge] + c
                    continue
            else:
                array = c.array if traced else c
                if array.shape != (lead + edge.shape if lead else edge.shape) or array.dtype is not edge.dtype:
                    c = unbroadcast(c, edge, lead, node)
                if edge is alone:
                    carried = add_cotangent(carried, c, edge, traced, borrowed)
                    continue
                if pending and edge in pending:
                    pending[edge] = add_cotangent(pending[edge], c, edge, traced, borrowed)
                    continue
                if traced or (
                    (c is g or c.base is not None)
                    and (c.size < MIN_SIZE_IN_PLACE or not owns_memory(c, g, node, edges, borrowed))
                ):
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
        # 6. Free the saved tensors.
        if packed:
            frees = op.frees or (type(saved) is UserSaved and saved)
            node.saved, run.unpacked = freed if frees and not retain else saved, None
            if frees and freed_at_end is not None:
                freed_at_end.append(node)
        elif op.frees:
            if not retain:
                node.saved = freed
            elif freed_at_end is not None:
                freed_at_end.append(node)
        g = c = array = cotangents = None  # release their memory, still in the cache, for the next rule


def add_cotangent(total: Any, c: Any, edge: Node, traced: bool, borrowed: set[Node]) -> Any:
    """Add the cotangent `c` to the `total` of an edge, in place if the total is large and owned by the sweep."""
    if traced or total.size < MIN_SIZE_IN_PLACE:
        return total + c
    if edge in borrowed:
        borrowed.discard(edge)
        return total + c
    total += c
    return total


def owns_memory(c: Any, g: Any, node: Node, edges: Sequence[Node | None], borrowed: set[Node]) -> bool:
    """Return True if the sweep owns the memory of the cotangent `c`, which `node` computed from `g`.

    A rule is linear in g, so its result is new memory or a view of g. The sweep owns a view of g if it owned g and no other edge
    received one. The view must cover all elements once: those of a broadcast view share memory.
    """
    base = c.base
    if (c is g or base is g or base is g.base) and (node in borrowed or len(edges) - edges.count(None) > 1):
        return False
    return base is None or (base.size == c.size and is_writable(c))


def _as_tensors(values: Sequence[Any], traced: bool) -> tuple[Any, ...]:
    return tuple(c if c is None or traced else constant(wrap(c)) for c in values)


def _check_hook_result(hook: Any, result: Any, original: Any) -> Any:
    """Check and return the result of a hook that may replace the Tensor `original` (None if there was no gradient)."""
    if result is None:
        return None
    name = getattr(hook, "__name__", type(hook).__name__)
    if original is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value, as hook '{name}' did.")
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.array.shape != original.array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value: expected {list(original.array.shape)}, got {list(result.array.shape)}."
        )
    if result.array.dtype != original.array.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was gradlab.{original.dtype.legacy} got gradlab.{result.dtype.legacy})"
        )
    return result


def _check_hook_results(hook: Any, results: Any, originals: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check and return the result of a hook that may replace the tuple `originals`, or return these if it is None."""
    if results is None:
        return originals
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
    if len(results) != len(originals):
        raise RuntimeError(
            f"hook '{getattr(hook, '__name__', type(hook).__name__)}' has returned an incorrect number of values "
            f"(got {len(results)}, but expected {len(originals)})"
        )
    return tuple(_check_hook_result(hook, c, original) for c, original in zip(results, originals, strict=True))


def _run_tensor_hooks(node: Node, g: Any, traced: bool, borrowed: set[Node]) -> Any:
    """Run the hooks on the tensor in the order of their registration, then `retain_grad`."""
    attached = node.hooks
    assert attached is not None
    if type(g) is Bundle:
        _run_hooks_of_missing_outputs(node, g)
    elif attached.tensor:
        (shown,) = _as_tensors((g,), traced)
        for hook in tuple(attached.tensor.values()):
            result = _check_hook_result(hook, hook(shown), shown)
            shown = shown if result is None else result
        g = shown if traced else shown.array
        borrowed.add(node)  # the hook may have kept its argument
    tensor = attached.retain() if attached.retain is not None else None
    if tensor is not None:
        add_to_retained_grad(tensor, g, traced)
    return g


def _run_hooks_of_missing_outputs(node: Any, g: Bundle) -> None:
    """Call hooks with None on outputs that received no gradient while another output of the node did."""
    for ref, part in zip(node.ports, g.parts, strict=True):
        port = None if part is not None or ref is None else ref()
        if port is not None and port.hooks is not None:
            for hook in tuple(port.hooks.tensor.values()):
                _check_hook_result(hook, hook(None), None)


def _run_prehooks(node: Node, g: Any, traced: bool) -> Any:
    """Run the hooks before the node, on the cotangents of its outputs."""
    assert node.hooks is not None
    incoming = shown = _as_tensors(g.parts if type(g) is Bundle else (g,), traced)
    for hook in tuple(node.hooks.pre.values()):
        shown = _check_hook_results(hook, hook(shown), shown)
    if shown is incoming:
        return g
    parts = [c if c is None or traced else c.array for c in shown]
    return Bundle(parts, g.shape) if type(g) is Bundle else parts[0]


def _run_posthooks(
    node: Node, edges: Sequence[Node | None], cotangents: Sequence[Any], g: Any, lead: tuple[int, ...], traced: bool
) -> Sequence[Any]:
    """Run the hooks after the node, on the cotangents of its inputs and of its outputs."""
    assert node.hooks is not None
    into = _as_tensors(
        [
            None if c is None or edge is None else c if type(c) is Bundle else unbroadcast(c, edge, lead, node)
            for c, edge in zip(cotangents, edges, strict=True)
        ],
        traced,
    )
    out = _as_tensors(g.parts if type(g) is Bundle else (g,), traced)
    for hook in tuple(node.hooks.post.values()):
        into = _check_hook_results(hook, hook(into, out), into)
    return [c if c is None or traced else c.array for c in into]


def accumulate(leaf: Node, g: Any, traced: bool, borrowed: bool, hooks: bool = True) -> None:
    """Add a cotangent to the leaf's `.grad`, and run the hooks before and after it."""
    assert isinstance(leaf, AccumulateGrad)
    tensor = leaf.variable
    if tensor is None or tensor.node is None:  # the tensor is gone, or no longer requires a gradient
        return
    attached = leaf.hooks if hooks else None
    if attached is None:
        add_to_grad(tensor, g, traced, borrowed)
        return
    if attached.pre or attached.post:
        g, borrowed = _run_prehooks(leaf, g, traced), True
    add_to_grad(tensor, g, traced, borrowed)
    for hook in tuple(attached.accumulated.values()):
        result = hook(tensor)
        if result is not None:
            if not isinstance(result, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            raise RuntimeError("Tensor post accumulate grad hooks should return None. Write to x.grad instead.")
    for hook in tuple(attached.post.values()):
        _check_hook_results(hook, hook((), _as_tensors((g,), traced)), ())


def call_node(node: Node, cotangents: tuple[Any, ...]) -> Any:
    """Run the rules of one node on the cotangents (Tensors or None) of its outputs: `node(*cotangents)`."""
    outputs = getattr(node, "outputs", 1)
    if len(cotangents) != outputs:
        raise TypeError(f"expected {outputs} arguments, got {len(cotangents)} instead")
    for i, c in enumerate(cotangents):
        if c is not None and not isinstance(c, Tensor):
            raise TypeError(f"argument {i} is not a Variable")
    if all(c is None for c in cotangents):
        return (None,) * len(node.edges) if len(node.edges) > 1 else None
    traced = mode.grad
    parts = [c if c is None or traced else c.array for c in cotangents]
    g = Bundle(parts, ()) if node.dtype is Bundle.dtype else parts[0]
    if g.shape != node.shape:
        raise weight_shape(0, g.shape, node.shape)
    if node.op is None:
        accumulate(node, g, traced, borrowed=True)
        return ()
    kept = node.saved
    if type(kept) is not tuple:
        node.saved = unpack_saved(node)
    elif clock.last_write < node.order:
        check_not_overwritten(node)
    try:
        with silence():
            gradients = (node.op.traced_vjp if traced else node.op.vjp if node.shape else node.op.scalar_vjp)(
                node, node.edges, g, ()
            )
    finally:
        node.saved = kept
    results = _as_tensors(
        [
            None if c is None or edge is None else unbroadcast(c, edge, (), node)
            for c, edge in zip(gradients, node.edges, strict=True)
        ],
        traced,
    )
    return results[0] if len(results) == 1 else results


Node.run_alone = staticmethod(call_node)


def retain_grad(tensor: Tensor) -> None:
    """Make sweeps write the cotangent of this non-leaf to its `.grad`."""
    assert tensor.node is not None
    tensor.node.ensure_hooks().retain = weakref.ref(tensor)


def unpack_saved(node: Node, roots: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Return the saved items of a node as a tuple if hooks have packed them (see core.saved). Raise if they are freed."""
    __tracebackhide__ = True
    saved = node.saved  # read once: a sweep in another thread may have unpacked it
    if type(saved) is tuple:
        return saved
    if hasattr(saved, "unpack_items"):
        items: tuple[Any, ...] = saved.unpack_items(node)
        return items
    spared = getattr(node.op, "spared", None)
    if spared and all(e is None or spare for e, spare in zip(node.edges, spared, strict=True)):
        return (None,) * len(node.op.saves)  # it saved nothing that can be freed
    raise graph_freed(node, roots)


def check_not_overwritten(node: Node, items: tuple[Any, ...] | None = None) -> None:
    """Raise if an array saved by the node, or in `items` if given, was written to after it was saved."""
    __tracebackhide__ = True
    if node.op.foreign:  # core.saved.restore checks these
        return
    for name, saved in zip(node.op.saves, node.saved if items is None else items, strict=True):
        if saved is None:
            continue
        storage = node.storage if name == "out" else saved.storage
        if storage.written < node.order:
            kept = constant(saved) if name == "out" else saved
            maker = node if name == "out" else saved.grad_fn
            producer = None if maker is None else f"output 0 of {maker.name().rstrip('0123456789').removesuffix('Backward')}"
            raise saved_tensor_modified(
                f"gradlab.{kept.dtype.legacy}", kept.array.shape, producer, storage.version, node.name(), node, name, storage
            )
        if name in node.op.rules and saved.node is None:  # detached in place?
            edge = node.edges[list(node.op.rules).index(name)]
            if edge is not None and edge.op is not None:
                raise detached_in_place(node.name())


def unbroadcast(c: Any, edge: Node, lead: tuple[int, ...], node: Node) -> Any:
    """Sum a broadcast cotangent to the shape of the edge and cast it to its dtype.

    These are the transposes of the implicit broadcasts and casts of the forward.
    """
    want, k = lead + edge.shape, len(lead)
    shape = c.shape
    xp = namespace_of[type(c)]
    if shape != want:
        extra = len(shape) - len(want)
        axes = tuple(range(k, k + extra)) + tuple(
            i + extra for i in range(k, len(want)) if extra >= 0 and want[i] == 1 != shape[i + extra]
        )
        total = _sum_axes(c, axes) if axes else c
        if extra < 0 or total.shape != lead + (1,) * extra + edge.shape:
            if (
                edge.op is None
                and not k
                and extra <= 0
                and all(n in (1, m) for n, m in zip(reversed(shape), reversed(want), strict=False))
            ):
                # the shape of the leaf was changed under no_grad
                return unbroadcast(xp.broadcast_to(c, want), edge, lead, node)
            raise RuleError(
                f"Function {node.name()} returned an invalid gradient at index {list(node.edges).index(edge)} - got "
                f"{list(shape[k:])} but expected shape compatible with {list(edge.shape)}"
            )
        c = total.reshape(want)
    return c if getattr(c, "array", c).dtype == edge.dtype else xp.astype(c, edge.dtype)


def _sum_axes(c: Any, axes: tuple[int, ...]) -> Any:
    """Sum over axes, which stay with length 1. Numbers of float16 are added in float32."""
    if type(c) is not np.ndarray:
        return namespace_of[type(c)].sum(c, axis=axes, keepdims=True)
    if is_large(c):
        return sum_large(c, axes, True)
    return np.add.reduce(c, axis=axes, keepdims=True, dtype=np.float32 if c.dtype.char == "e" else None)
