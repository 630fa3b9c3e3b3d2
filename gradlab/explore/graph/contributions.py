"""What each edge of a graph contributes to the gradient of one leaf.

Let x be the leaf, g its gradient, and e an edge along which an operation hands the cotangent c to the tensor s. What flowed
through e arrives at the leaf as J_sᵀ c, J_s = ∂s/∂x over all ways that lead from x to s. That is the edge's *contribution*, a
part of g: the contributions of the edges that leave the leaf add up to g, and at each tensor on the way what comes in goes on,

    Σ (edges by which cotangents arrive at s) = Σ (edges by which the operation that made s hands them on),

the latter those that lead on to x. Contributions are tensors of the leaf's shape. What is told of one is its signed length along
g: ⟨J_sᵀ c, d⟩, with d = g/‖g‖; of a leaf with one element d = 1, so that it is the number itself. The share is that length over
the length of g: ⟨J_sᵀ c, g⟩/‖g‖², signed, and summing to 1 wherever all paths are counted.

They are had all at once, without a vector for each edge. Of the adjoint identity ⟨J_sᵀ c, d⟩ = ⟨c, J_s d⟩ the right side needs
one backward sweep (c at every edge) and one forward sweep (the tangent J_s d at every tensor). The forward sweep is a backward
sweep through the recorded backward sweep: g is linear in each c with the factor J_sᵀ, so that ∂⟨g, d⟩/∂c = J_s d. (Townsend, "A
new trick for calculating Jacobian vector products", 2017.) It needs of a library no more than `create_graph=True`. Each edge's
cotangent is cloned on its way, so that two edges with one cotangent stay two variables.

Where the sweep cannot be recorded (an operation without second derivatives, as PyTorch's fused attention), or the graph is gone,
`by_structure` tells what follows from the shares at each tensor alone: contributions are conserved; those of one number split as
its cotangents do; where all paths go through one place all of g does. What does not follow so is measured, while the graph is
there: an edge that hands on nothing takes its contribution away from g, a sweep for each edge but one at a fork.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.reading import spine_first
from gradlab.explore.trace.retained_grads import grads_kept

ROUNDING = 1e-3  # of what should be equal
SECONDS = 2.0  # for edges that are cut one by one
SLACK = 100.0  # units of rounding
MOST_PATHS = 12  # that are followed one by one, a sweep each


@dataclass(frozen=True)
class Route:
    """One path from the leaf to an output.

    Attributes
    ----------
    edges : tuple of int
        Its edges by number, from the leaf on.
    amount : float or None
        What flowed along it, in the units of `Flow.total`.
    norm : float or None
        ‖what flowed along it‖.
    """

    edges: tuple[int, ...]
    amount: float | None
    norm: float | None = None


@dataclass
class Flow:
    """What flowed to a leaf.

    Attributes
    ----------
    total : float or None
        The leaf's gradient if it has one element, else ‖gradient‖; None if nothing is known of it.
    amounts : dict of int to float
        By number of the edge, its contribution's length along the gradient; of edges on a path, where it is known.
    norms : dict of int to float
        ‖cotangent‖ of these edges.
    cosines : dict of (int, int) to float
        Of the cotangents of the two edges that arrive at one tensor.
    remains : dict of int to float
        By node at which several cotangents arrive, ‖their sum‖ over the sum of their norms.
    slack : dict of int to float
        By edge, how much of its contribution may be rounding.
    routes : tuple of Route
        The paths, where they are few.
    why_not : str
        A sentence on what is not known.
    """

    total: float | None
    amounts: dict[int, float] = field(default_factory=dict)
    norms: dict[int, float] = field(default_factory=dict)
    cosines: dict[tuple[int, int], float] = field(default_factory=dict)
    remains: dict[int, float] = field(default_factory=dict)
    slack: dict[int, float] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    why_not: str = ""


# ------------------------------------------------------------------------------------------------------------ structure
@dataclass(frozen=True)
class LeafPaths:
    """Which nodes and edges lie between a leaf and the outputs, and how many paths there are.

    Attributes
    ----------
    edges : tuple of int
        Those on a path, by number.
    below, above : list of int
        Of each node, how many paths lead to it from the leaf, and on from it to an output.
    count : int
        The number of paths.
    """

    edges: tuple[int, ...]
    below: list[int]
    above: list[int]
    count: int


def leaf_paths(trace: Trace, leaf: int) -> LeafPaths:
    """The paths of a trace from a leaf to its outputs."""
    below, above = [0] * len(trace.nodes), [0] * len(trace.nodes)
    below[leaf] = 1
    for edge in trace.edges:  # by target: each node after what it is computed from
        below[edge.target] += below[edge.source]
    for output in trace.outputs:
        above[output] = 1
    for edge in reversed(trace.edges):
        above[edge.source] += above[edge.target]
    on = tuple(i for i, edge in enumerate(trace.edges) if below[edge.source] and above[edge.target])
    return LeafPaths(on, below, above, above[leaf])


def routes(trace: Trace, leaf: int, paths: LeafPaths) -> list[tuple[int, ...]]:
    """Each path from the leaf to an output, by the numbers of its edges."""
    after: dict[int, list[int]] = {}
    for i in paths.edges:
        after.setdefault(trace.edges[i].source, []).append(i)
    done: list[tuple[int, ...]] = []
    waiting: list[tuple[int, tuple[int, ...]]] = [(leaf, ())]
    while waiting:
        node, way = waiting.pop()
        if trace.nodes[node].kind == "output":
            done.append(way)
        else:
            waiting += [(trace.edges[i].target, (*way, i)) for i in reversed(after.get(node, ()))]
    return done


def arriving(trace: Trace, paths: LeafPaths) -> dict[int, list[int]]:
    """By node, the edges on a path by which cotangents arrive there."""
    edges: dict[int, list[int]] = {}
    for i in paths.edges:
        edges.setdefault(trace.edges[i].source, []).append(i)
    return edges


# --------------------------------------------------------------------------------------------------------------- sweeps
def swept(trace: Trace, leaf: int, outputs: Sequence[Any], weights: Sequence[Any] | None = None) -> Flow:
    """What flowed to a leaf, by private sweeps: two, and one for each path where these are few.

    The graph is kept; `.grad`, random state and versions are left alone. Hooks of the user's on tensors and nodes run.

    Parameters
    ----------
    trace : Trace
        Of the outputs.
    leaf : int
        Its number there.
    outputs : sequence of Tensor
    weights : sequence of Tensor, optional
        What the sweep starts with at each output; ones by default.

    Raises
    ------
    RuntimeError
        If the graph was freed, or something that it needs was overwritten.
    """
    library = library_of(outputs[0])
    assert library is not None
    tops = [library.whole(library.node(output)) for output in outputs]
    most = len(trace.nodes) - len(outputs) - 1 if trace.cut_off else None
    nodes, _ = spine_first(library, tops, most)
    paths = leaf_paths(trace, leaf)
    variable = library.variable(nodes[leaf])
    if variable is None:
        raise RuntimeError("this leaf is gone: nothing refers to its tensor any more.")
    starts = list(weights or (library.tensor(np.ones(tuple(out.shape)), like=out) for out in outputs))
    place = {(edge.target, edge.argument): i for i, edge in enumerate(trace.edges)}
    number = {node: i for i, node in enumerate(nodes)}
    on = frozenset(paths.edges)
    hooked = [nodes[i] for i in dict.fromkeys(trace.edges[i].target for i in paths.edges) if i < len(nodes)]
    ends = {place[len(nodes) + k, 0]: start for k, start in enumerate(starts)}
    sweeps = _Sweeps(library, outputs, variable, hooked, place, number, on)

    tensors = {
        i: library.targets(nodes[edge.target])[edge.argument] for i in paths.edges if (edge := trace.edges[i]).target < len(nodes)
    }
    with grads_kept(library, hooked, {}):
        return _flow(sweeps, trace, leaf, paths, starts, ends, tensors)


def _flow(
    sweeps: _Sweeps,
    trace: Trace,
    leaf: int,
    paths: LeafPaths,
    starts: Sequence[Any],
    ends: Mapping[int, Any],
    tensors: Mapping[int, Any],
) -> Flow:
    """The flow, once it is known what to sweep. `tensors` tells by edge which tensor a cotangent arrives at."""
    library = sweeps.library
    seen, g = sweeps.run(starts, ends)
    if g is None:
        return Flow(0.0, dict.fromkeys(paths.edges, 0.0))
    gradient = _plain(library, g)
    flow = Flow(_length(gradient))
    _compare(library, flow, trace, paths, seen, tensors)
    direction = _direction(gradient)
    if direction is None:
        flow.why_not = _no_direction(gradient)
    else:
        seed = library.tensor(direction, like=sweeps.variable)
        flow.why_not = sweeps.amounts(flow, starts, ends, seed)
        lost = None if flow.why_not else unconserved(trace, paths, flow)
        if lost is not None:
            flow.why_not = _not_known(f"{trace.nodes[lost].operation or trace.nodes[lost].label} has no second derivative")
        if flow.why_not:
            shares = _shares(library, trace, seen, tensors)
            cut = sweeps.cutting(starts, gradient, direction)
            flow.amounts = by_structure(trace, leaf, paths, flow.total, shares, _numbers(library, seen), cut)
            if len(flow.amounts) == len(paths.edges):
                flow.why_not = ""
    if 1 < paths.count <= MOST_PATHS:
        flow.routes = tuple(sweeps.along(way, starts, ends, direction) for way in routes(trace, leaf, paths))
        if flow.why_not and direction is not None:  # what flowed along an edge is what flowed along the paths through it
            for i in paths.edges:
                flow.amounts[i] = math.fsum(route.amount or 0.0 for route in flow.routes if i in route.edges)
            flow.why_not = ""
    return flow


class _Sweeps:
    """The sweeps from some outputs to one leaf, whose edges are known by their numbers in a trace."""

    def __init__(
        self,
        library: Library,
        outputs: Sequence[Any],
        variable: Any,
        hooked: Sequence[Any],
        place: Mapping[tuple[int, int], int],
        number: Mapping[Any, int],
        on: frozenset[int],
    ) -> None:
        self.library, self.outputs, self.variable, self.hooked = library, outputs, variable, hooked
        self.place, self.number, self.on = place, number, on

    def edge(self, node: Any, argument: int) -> int | None:
        """The number of an edge that is on a path."""
        i = self.place.get((self.number[node], argument))
        return i if i in self.on else None

    def run(self, starts: Sequence[Any], ends: Mapping[int, Any], *, recorded: bool = False) -> tuple[dict[int, Any], Any]:
        """The cotangents by edge, and the gradient."""
        seen = {i: start for i, start in ends.items() if i in self.on}

        def note(node: Any, handed: Sequence[Any]) -> Sequence[Any]:
            passed = list(handed)
            for argument, cotangent in enumerate(handed):
                i = self.edge(node, argument)
                if i is not None and cotangent is not None:
                    seen[i] = passed[argument] = cotangent.clone()
            return passed

        with self.library.handing(self.hooked, note):
            (g,) = self.library.grad(self.outputs, [self.variable], starts, create_graph=recorded)
        return seen, g

    def amounts(self, flow: Flow, starts: Sequence[Any], ends: Mapping[int, Any], direction: Any) -> str:
        """Fill in the contributions; returns why they are not known."""
        starts = [start.detach().clone().requires_grad_() for start in starts]
        library = self.library
        try:
            seen, g = self.run(starts, {i: starts[k] for k, i in enumerate(ends)}, recorded=True)
            tangents = library.grad([g], list(seen.values()), [direction])
        except Exception as error:  # noqa: BLE001  (whatever a rule without second derivatives raises)
            return _not_known(str(error).splitlines()[0][:120] if str(error) else type(error).__name__)
        for i, tangent in zip(seen, tangents, strict=True):
            c = _plain(library, seen[i])
            t = np.zeros(1) if tangent is None else _plain(library, tangent)
            flow.amounts[i] = 0.0 if tangent is None else float(np.vdot(c, t).real)
            flow.slack[i] = SLACK * _unit(library, seen[i]) * float(np.linalg.norm(c) * np.linalg.norm(t))
        for i in self.on - seen.keys():  # nothing was handed on there
            flow.amounts[i] = 0.0
        return ""

    def cutting(self, starts: Sequence[Any], gradient: np.ndarray, direction: np.ndarray) -> Callable[[int], float | None]:
        """What tells an edge's contribution by cutting it: what the gradient loses. A sweep each, as long as there is time."""
        ends_at = clock.now() + SECONDS

        def lost(i: int) -> float | None:
            if clock.now() >= ends_at:
                return None

            def without(node: Any, handed: Sequence[Any]) -> Sequence[Any]:
                return [None if self.edge(node, argument) == i else c for argument, c in enumerate(handed)]

            with self.library.handing(self.hooked, without):
                (g,) = self.library.grad(self.outputs, [self.variable], starts)
            rest = np.zeros(gradient.shape) if g is None else _plain(self.library, g)
            return float(np.vdot(gradient - rest, direction).real)

        return lost

    def along(self, way: tuple[int, ...], starts: Sequence[Any], ends: Mapping[int, Any], direction: np.ndarray | None) -> Route:
        """What flows along one path: a sweep in which every other edge hands on nothing."""
        allowed = frozenset(way)

        def only(node: Any, handed: Sequence[Any]) -> Sequence[Any]:
            return [c if self.edge(node, argument) in allowed else None for argument, c in enumerate(handed)]

        k = next(k for k, i in enumerate(ends) if i == way[-1])
        with self.library.handing(self.hooked, only):
            (g,) = self.library.grad([self.outputs[k]], [self.variable], [starts[k]])
        part = np.zeros(tuple(self.variable.shape)) if g is None else _plain(self.library, g)
        amount = None if direction is None else float(np.vdot(part, direction).real)
        return Route(way, amount, float(np.linalg.norm(part)))


def _plain(library: Library, tensor: Any) -> np.ndarray:
    """A tensor's numbers in double precision."""
    array = np.asarray(library.array(tensor.detach()))
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _unit(library: Library, tensor: Any) -> float:
    """The unit of rounding of a tensor's numbers."""
    name = library.dtype_name(tensor)
    return 2.0**-7 if name == "bfloat16" else float(np.finfo(name).eps)


def _length(gradient: np.ndarray) -> float:
    """The one number of a gradient, or its norm."""
    return float(gradient.reshape(-1)[0].real) if gradient.size == 1 else float(np.linalg.norm(gradient))


def _direction(gradient: np.ndarray) -> np.ndarray | None:
    """What contributions are measured along; None where there is no such direction."""
    if gradient.size == 1:
        return np.ones(gradient.shape)
    largest = float(np.abs(gradient).max(initial=0.0))
    if not largest or not math.isfinite(largest):
        return None
    scaled = gradient / largest
    unit: np.ndarray = scaled / np.linalg.norm(scaled)
    return unit


def _not_known(reason: str) -> str:
    return (
        "Where a tensor's gradients come together on the way, their parts are not known: the sweep could not be differentiated "
        f"({reason})."
    )


def unconserved(trace: Trace, paths: LeafPaths, flow: Flow) -> int | None:
    """The operation nearest to the leaf that hands on other contributions than arrive at it, if there is one: a rule of the
    user's that hides how its result depends on the cotangent, a hook that changes one."""
    into: dict[int, list[float]] = {}
    for i in paths.edges:
        into.setdefault(trace.edges[i].target, []).append(flow.amounts[i])
    most = max(map(abs, flow.amounts.values()), default=0.0)
    for node, edges in sorted(arriving(trace, paths).items()):
        came = [flow.amounts[i] for i in edges]
        went = into.get(node, [flow.total or 0.0])
        gross = max(math.fsum(map(abs, came)), math.fsum(map(abs, went)))
        slack = math.fsum(flow.slack.get(i, 0.0) for i in edges)
        if abs(math.fsum(came) - math.fsum(went)) > ROUNDING * gross + ROUNDING**2 * most + slack:
            return node
    return None


def _no_direction(gradient: np.ndarray) -> str:
    if not gradient.size:
        return "The leaf has no elements."
    if not np.isfinite(gradient).all():
        return "The gradient has NaN or ∞ among its elements: there are no shares in it."
    return "The gradient is 0, and nothing has a share in it."


def _compare(
    library: Library, flow: Flow, trace: Trace, paths: LeafPaths, seen: Mapping[int, Any], tensors: Mapping[int, Any]
) -> None:
    """The norms of the cotangents; where several meet, what remains of them, and the cosine of two."""
    plain = {i: _plain(library, c) for i, c in seen.items()}
    flow.norms = {i: float(np.linalg.norm(c)) for i, c in plain.items()}
    for node, edges in arriving(trace, paths).items():
        there = [i for i in edges if i in plain]
        norms = [flow.norms[i] for i in there]
        if len(there) < 2 or not 0 < sum(norms) < math.inf:
            continue
        if len({tensors[i] for i in there if i in tensors}) == 1:  # those of an operation's several outputs are not added up
            flow.remains[node] = float(np.linalg.norm(sum(plain[i] for i in there))) / sum(norms)
            if len(there) == 2 and all(norms):
                one, other = (plain[i] / flow.norms[i] for i in there)
                flow.cosines[there[0], there[1]] = float(np.vdot(one, other).real)


def _shares(library: Library, trace: Trace, seen: Mapping[int, Any], tensors: Mapping[int, Any]) -> dict[int, float]:
    """By edge ⟨c, h⟩/‖h‖², for the cotangent c on it and the sum h of those that arrive at its tensor."""
    by_tensor: dict[Any, list[int]] = {}
    for i in seen:
        by_tensor.setdefault(tensors.get(i, trace.edges[i].source), []).append(i)
    shares = {}
    for edges in by_tensor.values():
        parts = [_plain(library, seen[i]) for i in edges]
        whole = sum(parts[1:], parts[0])
        square = float(np.vdot(whole, whole).real)
        if 0 < square < math.inf:
            shares.update({i: float(np.vdot(c, whole).real) / square for i, c in zip(edges, parts, strict=True)})
    return shares


def _numbers(library: Library, seen: Mapping[int, Any]) -> dict[int, float]:
    """The cotangents that are one number."""
    return {i: float(_plain(library, c).reshape(-1)[0].real) for i, c in seen.items() if math.prod(c.shape) == 1}


# ---------------------------------------------------------------------------------------------------- without the graph
def flow_of(trace: Trace, leaf: int) -> Flow:
    """What is known of the flow to a leaf from a trace alone: its sweep's shares and few numbers, and the structure."""
    paths = leaf_paths(trace, leaf)
    node = trace.nodes[leaf]
    arrived = node.gradient
    if arrived is None:
        return Flow(None, why_not="No gradient arrived at this leaf in the sweep." if trace.sweep else "No sweep was seen.")
    numbers = arrived.numbers if arrived.size == 1 else None
    flow = Flow(arrived.norm if numbers is None else float(numbers[0].real))
    for i in paths.edges:
        gradient = trace.edges[i].gradient
        if gradient is not None:
            flow.norms[i] = gradient.norm
    shares = {i: edge.share for i, edge in enumerate(trace.edges) if edge.share is not None}
    for at, edges in arriving(trace, paths).items():
        norms = [flow.norms[i] for i in edges if i in flow.norms]
        whole = trace.nodes[at].gradient
        parts = [shares.get(i, math.nan) for i in edges]  # of an operation's several outputs, which are not added up, none are 1
        if whole is None or not (abs(math.fsum(parts) - 1) < ROUNDING or whole.all_zero):
            continue
        if len(norms) == len(edges) > 1 and 0 < sum(norms) < math.inf:
            flow.remains[at] = whole.norm / sum(norms)
            if len(edges) == 2 and all(norms):
                a, b = norms
                flow.cosines[edges[0], edges[1]] = max(-1.0, min(1.0, (whole.norm**2 - a * a - b * b) / (2 * a * b)))
    odd = arrived.odd
    if odd or (numbers is None and not flow.total):
        flow.why_not = _no_direction(np.full(2, np.nan if odd else 0.0))
        return flow
    known = {
        i: float(edge.gradient.numbers[0].real)
        for i, edge in enumerate(trace.edges)
        if edge.gradient is not None and edge.gradient.numbers is not None and edge.gradient.size == 1
    }
    flow.amounts = by_structure(trace, leaf, paths, flow.total, shares, known)
    if len(flow.amounts) == len(paths.edges) and 1 < paths.count <= MOST_PATHS:
        flow.routes = _split(trace, leaf, paths, flow)
    if len(flow.amounts) < len(paths.edges):
        flow.why_not = (
            "Where a tensor's gradients come together on the way, their parts are not known: backward has freed what the graph "
            "had saved. To know them ask before it, or call backward(retain_graph=True)."
        )
    return flow


def _split(trace: Trace, leaf: int, paths: LeafPaths, flow: Flow) -> tuple[Route, ...]:
    """The paths, where the contributions of the edges tell theirs: where several arrive at one number, each path is shared out
    as they are. () where that is not so."""
    edges = arriving(trace, paths)
    through = {node: math.fsum(flow.amounts[i] for i in there) for node, there in edges.items()}
    routes_split = []
    for way in routes(trace, leaf, paths):
        amount = 1.0
        for i in way:
            source = trace.edges[i].source
            if source == leaf:
                amount = flow.amounts[i]
            elif len(edges[source]) > 1:
                shape = trace.nodes[source].shape
                if shape is None or math.prod(shape) != 1 or not through[source]:
                    return ()
                amount *= flow.amounts[i] / through[source]
        routes_split.append(Route(way, amount))
    return tuple(routes_split)


def by_structure(
    trace: Trace,
    leaf: int,
    paths: LeafPaths,
    total: float | None,
    shares: Mapping[int, float],
    numbers: Mapping[int, float],
    cut: Callable[[int], float | None] | None = None,
) -> dict[int, float]:
    """The contributions that follow from the shares at each tensor.

    Parameters
    ----------
    total : float or None
        See `Flow`.
    shares : mapping of int to float
        By edge, its cotangent's share in what arrived at its tensor.
    numbers : mapping of int to float
        By edge, its cotangent, where that is one number.
    cut : callable, optional
        Tells an edge's contribution, or None, where it does not follow.
    """
    if total is None:
        return {}
    amounts: dict[int, float] = {}
    single = math.prod(trace.nodes[leaf].shape or ()) == 1
    into: dict[int, list[int]] = {}  # edges on a path by the node that hands on
    for i in paths.edges:
        into.setdefault(trace.edges[i].target, []).append(i)
    for node, edges in sorted(arriving(trace, paths).items()):
        if node == leaf:
            through: float | None = total
        else:
            parts = [amounts.get(i) for i in into[node]]
            through = None if None in parts else math.fsum(part for part in parts if part is not None)
            if through is None and paths.below[node] * paths.above[node] == paths.count:
                through = total
        shape = trace.nodes[node].shape
        splits = node == leaf or (shape is not None and math.prod(shape) == 1)  # J_s d of one number is one number
        for i in edges:
            edge = trace.edges[i]
            if len(edges) == 1 and through is not None:
                amounts[i] = through
            elif node == leaf and single and i in numbers:
                amounts[i] = numbers[i]
            elif through is not None and splits and i in shares:
                amounts[i] = through * shares[i]
            elif paths.below[edge.source] * paths.above[edge.target] == paths.count:
                amounts[i] = total
        missing = [i for i in edges if i not in amounts]
        if missing and through is not None and cut is not None:
            for i in missing[:-1]:
                if (amount := cut(i)) is not None:
                    amounts[i] = amount
            if all(i in amounts for i in missing[:-1]):
                amounts[missing[-1]] = through - math.fsum(amounts[i] for i in edges if i != missing[-1])
    return amounts
