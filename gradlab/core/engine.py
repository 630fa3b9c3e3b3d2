"""The reverse sweep over a recorded graph: vᵀJ. It does not recurse, and runs nothing again. (The other one: core.forward.)

A min-heap on a node's tick is a topological order, so the reverse sweep needs neither a discovery pass nor dependency
counts. Rules see cotangents with any number of leading batch axes `lead`. Per edge the engine, not the rule, sums a
broadcast cotangent back to its source's shape, casts it, checks it and adds it up.

Ownership: an array that a rule returned new belongs to the sweep; it may be added to in place and become a leaf's `.grad`
uncopied. One that is the incoming cotangent itself, a view, what a hook or a rule of a user's returned, what was captured for
`grad`, or the caller's weights is *borrowed*, and is copied before either.

A node has one cotangent; those with several outputs have it in a `Bundle` (core.ports). Sweeps nest: a hook or a user's rule may
start another; deep down it gets a thread with a stack of its own.

A sweep can be watched: see `core.observers`. Unwatched it costs nothing more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of, wrap
from gradlab.core.errors import RuleError, detached_in_place, graph_freed, out_of_memory, overwritten, weight_shape
from gradlab.core.fresh_thread import in_fresh_thread
from gradlab.core.gradients import add_to_grad, retained
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Node
from gradlab.core.numpy_warnings import heard, silence
from gradlab.core.observers import OBSERVERS, Observer, ReverseSweep, observers, find_sweep_origin
from gradlab.core.ports import Bundle, Own
from gradlab.core.storage import clock
from gradlab.core.tensor import Tensor, constant

LARGE = 4096  # elements from which working in place pays; on one-element arrays `+=` costs three times `+`


class Run:
    """A sweep at work."""

    __slots__ = ("__weakref__", "depth", "forget", "freed", "held", "opened", "roots", "wanted")

    def __init__(self, roots: Sequence[tuple[Node, Any]], wanted: frozenset[Node] | None, depth: int) -> None:
        self.roots, self.wanted = roots, wanted
        self.depth = depth  # how many sweeps of this thread it runs inside of
        self.forget: tuple[Callable[[], Any], ...] = ()  # called when it is over
        self.opened: tuple[Node, Any] | None = None  # the node whose saved tensors are unpacked, and what stood for them
        self.held: list[Node] | None = None  # what is freed at the end alone, since an observer wants to look then
        self.freed: Any = None  # what stands for what is freed


class _Running(threading.local):
    """The sweep at work in this thread, for hooks that want to know of the others (see autograd.graph)."""

    sweep: Run | None = None


running = _Running()
DEEP = 40  # sweeps inside of sweeps that one thread's stack is good for


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
    """Reverse sweep from (node, cotangent) pairs: into the leaves' `.grad`, or to the `wanted` nodes, which are returned.

    Cotangents are arrays, or Tensors when `traced` (the sweep is then recorded itself). `retain` keeps what the nodes
    saved; `hooks=False` leaves the user's hooks out; `accumulates` and `outputs` are for observers alone: whether `.grad` will
    be written, and the tensors swept from. `silent` says that NumPy's warnings are off.
    """
    __tracebackhide__ = True
    if not silent and heard():
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
    if outer is not None and outer.depth == DEEP:
        return in_fresh_thread(
            lambda: vjp_sweep(
                roots, lead, wanted=wanted, traced=traced, retain=retain, hooks=hooks, accumulates=accumulates, outputs=outputs
            )
        )
    wanted = None if wanted is None else frozenset(wanted)
    run = Run(roots, wanted, 0 if outer is None else outer.depth + 1)
    mode.grad, running.sweep = traced, run  # no call between here and `try`: an interrupt comes after one
    try:
        if not watching:
            return _reverse(roots, lead, wanted, traced, retain, hooks, accumulates, ())
        sweep = ReverseSweep(tuple(roots), lead, wanted, accumulates, tuple(outputs))
        error: BaseException | None = None
        for observer in watching:
            observer.begin(sweep)
        if not retain and any(observer.keeps_saved(sweep) for observer in watching):
            run.held, retain = [], True
        try:
            visiting = tuple([observer for observer in watching if observer.sees_nodes])
            return _reverse(roots, lead, wanted, traced, retain, hooks, accumulates, visiting)
        except BaseException as raised:
            error = raised
            raise
        finally:
            for observer in watching:
                observer.end(sweep, error)
            error = None  # its traceback holds this frame
    except MemoryError as error:
        raise out_of_memory("backward", error, [node for node, _ in roots]) from error
    finally:
        mode.grad, running.sweep = before, outer
        for node in run.held or ():
            node.saved = run.freed
        for forget in run.forget:
            forget()
        if run.opened is not None:  # the sweep was stopped at it
            run.opened[0].saved = run.opened[1]


def _reverse(
    roots: Sequence[tuple[Node, Any]],
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
    leaves: list[Node] = []  # older than what leads to them, they wait for the end
    pending: dict[Node, Any] = {}  # the cotangents of the nodes in the heap and of the leaves
    gradients: dict[Node, Any] = {}
    borrowed: set[Node] = set()
    freed = find_sweep_origin() if OBSERVERS else None  # what stands for what is freed; mostly nothing
    run: Any = running.sweep
    run.freed, held = freed, run.held
    needed = None
    if wanted is not None:
        needed = leading_to(wanted, [node for node, _ in roots])
    for node, g in roots:
        if node in pending:
            pending[node] = pending[node] + g
        else:
            pending[node] = g
            borrowed.add(node)
            heappush(heap, (node.order, node))
    alone: Node | None = None  # a node that waits by itself need not go through the heap,
    carried = None  # nor its cotangent through the dictionary
    while True:
        if alone is not None:
            node, g, alone, carried = alone, carried, None, None
        else:
            if not heap:
                if not leaves:
                    return gradients
                heap, leaves = sorted([(leaf.order, leaf) for leaf in leaves]), []
            node = heappop(heap)[1]
            g = pending.pop(node)
        op = node.op
        attached = node.hooks if hooks else None
        if attached is not None:
            g = _run_tensor_hooks(node, g, traced, borrowed)
        if wanted is not None and node in wanted:
            gradients[node] = g if traced or node not in borrowed else g.copy()
            borrowed.add(node)
        if op is None:
            for observer in watching:
                observer.visit(node, g, ())
            if wanted is None:
                accumulate(node, g, traced, node in borrowed, hooks)
            continue
        edges: Sequence[Node | None] = node.edges
        if needed is not None:
            edges = [edge if edge in needed else None for edge in edges]
            if not any(edges):
                if accumulates and attached is not None and (attached.pre or attached.post):
                    g = _run_prehooks(node, g, traced)
                    _run_posthooks(node, edges, [None] * len(edges), g, lead, traced)
                continue
        if attached is not None and (attached.pre or attached.post):
            borrowed.add(node)  # the hooks may keep what they see, and what they return
            g = _run_prehooks(node, g, traced)
        kept = node.saved
        odd = type(kept) is not tuple
        if odd:
            run.opened = node, kept
            node.saved = unpacked(node, roots)
        elif clock.last_write < node.order:
            check_unwritten(node)
        if (
            pending
            and op.accumulate_into is not None
            and edges[0] in pending
            and not (odd or traced or watching or attached is not None)
        ):
            total = pending[edges[0]]  # of a part of what waits: see `primitive.linear`
            if total.size >= LARGE and edges[0] not in borrowed and op.accumulate_into(total, g, lead, *node.meta):
                g = total = None
                continue
        cotangents = (op.traced_vjp if traced else op.vjp if node.shape else op.scalar_vjp)(node, edges, g, lead)
        if attached is not None and attached.post:
            borrowed.update(edges)  # type: ignore[arg-type]
            cotangents = _run_posthooks(node, edges, cotangents, g, lead, traced)
        if watching:
            for observer in watching:
                observer.visit(node, g, cotangents)
        if odd and type(kept) is Own:
            borrowed.update(edges)  # type: ignore[arg-type]  # rules of a user's: so may they
        at = -1
        for edge in edges:  # counted by hand: half the time of a zip
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
                if traced or ((c is g or c.base is not None) and (c.size < LARGE or not owned(c, g, node, edges, borrowed))):
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
        if odd:
            frees = op.frees or (type(kept) is Own and kept)
            node.saved, run.opened = freed if frees and not retain else kept, None
            if frees and held is not None:
                held.append(node)
        elif op.frees:
            if not retain:
                node.saved = freed
            elif held is not None:
                held.append(node)
        g = c = array = cotangents = None  # their memory, still in the cache, is free for the next rule


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


def _as_tensors(values: Sequence[Any], traced: bool) -> tuple[Any, ...]:
    return tuple(c if c is None or traced else constant(wrap(c)) for c in values)


def _answer(hook: Any, answer: Any, original: Any) -> Any:
    """What a hook returned in place of the Tensor `original` (None: nothing was there), checked."""
    if answer is None:
        return None
    name = getattr(hook, "__name__", type(hook).__name__)
    if original is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value, as hook '{name}' did.")
    if not isinstance(answer, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
    if answer.array.shape != original.array.shape:
        raise RuntimeError(
            f"hook '{name}' has changed the size of value: it was {list(original.array.shape)}, and is "
            f"{list(answer.array.shape)}."
        )
    if answer.array.dtype != original.array.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was gradlab.{original.dtype.legacy} got gradlab.{answer.dtype.legacy})"
        )
    return answer


def _answers(hook: Any, answers: Any, originals: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same of a hook that replaces a tuple."""
    if answers is None:
        return originals
    if not isinstance(answers, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(answers).__name__}'")
    if len(answers) != len(originals):
        raise RuntimeError(
            f"hook '{getattr(hook, '__name__', type(hook).__name__)}' has returned an incorrect number of values "
            f"(got {len(answers)}, but expected {len(originals)})"
        )
    return tuple(_answer(hook, c, original) for c, original in zip(answers, originals, strict=True))


def _run_tensor_hooks(node: Node, g: Any, traced: bool, borrowed: set[Node]) -> Any:
    """Hooks on the tensor in the order of their registration, then `retain_grad`."""
    attached = node.hooks
    assert attached is not None
    if type(g) is Bundle:
        _tell_siblings(node, g)
    elif attached.tensor:
        (shown,) = _as_tensors((g,), traced)
        for hook in tuple(attached.tensor.values()):
            answer = _answer(hook, hook(shown), shown)
            shown = shown if answer is None else answer
        g = shown if traced else shown.array
        borrowed.add(node)  # the hook may have kept what it saw
    tensor = attached.retain() if attached.retain is not None else None
    if tensor is not None:
        retained(tensor, g, traced)
    return g


def _tell_siblings(node: Any, g: Bundle) -> None:
    """Hooks on the outputs that got no gradient while others did: they are called with None."""
    for ref, part in zip(node.ports, g.parts, strict=True):
        port = None if part is not None or ref is None else ref()
        if port is not None and port.hooks is not None:
            for hook in tuple(port.hooks.tensor.values()):
                _answer(hook, hook(None), None)


def _run_prehooks(node: Node, g: Any, traced: bool) -> Any:
    """Hooks before the node: on the cotangents of all its outputs."""
    assert node.hooks is not None
    incoming = shown = _as_tensors(g.parts if type(g) is Bundle else (g,), traced)
    for hook in tuple(node.hooks.pre.values()):
        shown = _answers(hook, hook(shown), shown)
    if shown is incoming:
        return g
    parts = [c if c is None or traced else c.array for c in shown]
    return Bundle(parts, g.shape) if type(g) is Bundle else parts[0]


def _run_posthooks(
    node: Node, edges: Sequence[Node | None], cotangents: Sequence[Any], g: Any, lead: tuple[int, ...], traced: bool
) -> Sequence[Any]:
    """Hooks after the node: on what it hands on, and on the cotangents of its outputs."""
    assert node.hooks is not None
    into = _as_tensors(
        [
            None if c is None or edge is None else c if type(c) is Bundle else fit(c, edge, lead, node)
            for c, edge in zip(cotangents, edges, strict=True)
        ],
        traced,
    )
    out = _as_tensors(g.parts if type(g) is Bundle else (g,), traced)
    for hook in tuple(node.hooks.post.values()):
        into = _answers(hook, hook(into, out), into)
    return [c if c is None or traced else c.array for c in into]


def accumulate(leaf: Node, g: Any, traced: bool, borrowed: bool, hooks: bool = True) -> None:
    """Add a cotangent to the leaf's `.grad`, between the hooks on its node, and run the hooks that wait for `.grad`."""
    assert isinstance(leaf, AccumulateGrad)
    tensor = leaf.variable
    if tensor is None or tensor.node is None:  # gone, or frozen since
        return
    attached = leaf.hooks if hooks else None
    if attached is None:
        add_to_grad(tensor, g, traced, borrowed)
        return
    if attached.pre or attached.post:
        g, borrowed = _run_prehooks(leaf, g, traced), True
    add_to_grad(tensor, g, traced, borrowed)
    for hook in tuple(attached.accumulated.values()):
        answer = hook(tensor)
        if answer is not None:
            if not isinstance(answer, Tensor):
                raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
            raise RuntimeError("Tensor post accumulate grad hooks should return None. Write to x.grad instead.")
    for hook in tuple(attached.post.values()):
        _answers(hook, hook((), _as_tensors((g,), traced)), ())


def run_alone(node: Node, cotangents: tuple[Any, ...]) -> Any:
    """`node(*cotangents)`: its rules on the cotangents (Tensors or None) of its outputs, and nothing else."""
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
        node.saved = unpacked(node)
    elif clock.last_write < node.order:
        check_unwritten(node)
    try:
        with silence():
            gradients = (node.op.traced_vjp if traced else node.op.vjp if node.shape else node.op.scalar_vjp)(
                node, node.edges, g, ()
            )
    finally:
        node.saved = kept
    results = _as_tensors(
        [None if c is None or edge is None else fit(c, edge, (), node) for c, edge in zip(gradients, node.edges, strict=True)],
        traced,
    )
    return results[0] if len(results) == 1 else results


Node.alone = staticmethod(run_alone)


def retain_grad(tensor: Tensor) -> None:
    """Let the sweep write the cotangent that reaches this non-leaf to its `.grad`."""
    assert tensor.node is not None
    tensor.node.hooks_of_its_own().retain = weakref.ref(tensor)


def unpacked(node: Node, roots: Sequence[Any] = ()) -> tuple[Any, ...]:
    """What a node saved, where that is not simply a tuple: hooks have it (see core.saved), or it is freed."""
    __tracebackhide__ = True
    saved = node.saved  # read once: another thread's sweep may have unpacked it by now
    if type(saved) is tuple:
        return saved
    if hasattr(saved, "unpacked"):
        items: tuple[Any, ...] = saved.unpacked(node)
        return items
    spared = getattr(node.op, "spared", None)
    if spared and all(e is None or spare for e, spare in zip(node.edges, spared, strict=True)):
        return (None,) * len(node.op.saves)  # it had saved nothing that could be freed
    raise graph_freed(node, roots)


def check_unwritten(node: Node, items: tuple[Any, ...] | None = None) -> None:
    """Refuse a node whose saved arrays (or those of them that `items` holds) were overwritten after it had saved them."""
    __tracebackhide__ = True
    if node.op.foreign:  # its own affair: see core.saved.restore
        return
    for name, saved in zip(node.op.saves, node.saved if items is None else items, strict=True):
        if saved is None:
            continue
        storage = node.storage if name == "out" else saved.storage
        if storage.written < node.order:
            kept = constant(saved) if name == "out" else saved
            maker = node if name == "out" else saved.grad_fn
            producer = None if maker is None else f"output 0 of {maker.name().rstrip('0123456789').removesuffix('Backward')}"
            raise overwritten(
                f"gradlab.{kept.dtype.legacy}", kept.array.shape, producer, storage.version, node.name(), node, name, storage
            )
        if name in node.op.rules and saved.node is None:  # whose history `detach_` took away?
            edge = node.edges[list(node.op.rules).index(name)]
            if edge is not None and edge.op is not None:
                raise detached_in_place(node.name())


def fit(c: Any, edge: Node, lead: tuple[int, ...], node: Node) -> Any:
    """Sum a broadcast cotangent back to the edge's shape and cast it to the edge's dtype: the transposes of what the
    forward did on its own."""
    want, k = lead + edge.shape, len(lead)
    shape = c.shape
    xp = namespace_of[type(c)]
    if shape != want:
        extra = len(shape) - len(want)
        axes = tuple(range(k, k + extra)) + tuple(
            i + extra for i in range(k, len(want)) if extra >= 0 and want[i] == 1 != shape[i + extra]
        )
        wide = np.float32 if type(c) is np.ndarray and c.dtype.char == "e" else None  # float16 is added up in float32
        total = (
            c
            if not axes
            else np.add.reduce(c, axis=axes, keepdims=True, dtype=wide)
            if type(c) is np.ndarray
            else xp.sum(c, axis=axes, keepdims=True)
        )
        if extra < 0 or total.shape != lead + (1,) * extra + edge.shape:
            if (
                edge.op is None
                and not k
                and extra <= 0
                and all(n in (1, m) for n, m in zip(reversed(shape), reversed(want), strict=False))
            ):
                # a leaf that has got another shape since, under no_grad
                return fit(xp.broadcast_to(c, want), edge, lead, node)
            raise RuleError(
                f"Function {node.name()} returned an invalid gradient at index {list(node.edges).index(edge)} - got "
                f"{list(shape[k:])} but expected shape compatible with {list(edge.shape)}"
            )
        c = total.reshape(want)
    return c if getattr(c, "array", c).dtype == edge.dtype else xp.astype(c, edge.dtype)
