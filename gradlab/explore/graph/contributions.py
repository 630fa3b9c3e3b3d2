"""Contribution of each edge of a graph to the gradient of one leaf.

Let x be the leaf, g its gradient, and e an edge along which an operation passes the cotangent c to the tensor s. The part of g
that flows through e is J_sᵀ c, where J_s = ∂s/∂x counts all paths from x to s. This is the *contribution* of the edge. The
contributions of the edges that leave the leaf add up to g, and contributions are conserved at each tensor on the way:

    Σ (edges by which cotangents arrive at s) = Σ (edges by which the operation that made s passes them on),

where the right side counts the edges that lead to x. Contributions are tensors of the leaf's shape. We report their signed length
along g, ⟨J_sᵀ c, d⟩ with d = g/‖g‖. For a leaf with one element d = 1, so it is the number itself. The share is that length over
the length of g, ⟨J_sᵀ c, g⟩/‖g‖². Shares are signed, and sum to 1 where all paths are counted.

All of them are computed at once, without a vector for each edge. By the adjoint identity ⟨J_sᵀ c, d⟩ = ⟨c, J_s d⟩ it takes one
backward sweep (c at every edge) and one forward sweep (the tangent J_s d at every tensor). The forward sweep is a backward sweep
through the recorded backward sweep: g is linear in each c with the factor J_sᵀ, so ∂⟨g, d⟩/∂c = J_s d (Townsend, "A new trick for
calculating Jacobian vector products", 2017). All that this requires of a library is `create_graph=True`. Each edge's cotangent is
cloned, so that two edges with one cotangent remain two variables.

If the sweep cannot be recorded (an operation without second derivatives, such as PyTorch's fused attention) or the graph is gone,
`by_structure` derives what it can from the shares at each tensor: contributions are conserved; contributions of a scalar split as
its cotangents do; if all paths go through one node, so does all of g. The rest is measured while the graph exists: if an edge
passes on zero, g loses the contribution of that edge. This takes one sweep for each edge of a fork except one.
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

ROUNDING = 1e-3  # relative tolerance of equal quantities
SECONDS = 2.0  # for cutting edges one by one
SLACK = 100.0  # units of rounding
MOST_PATHS = 12  # followed one by one, with a sweep each


@dataclass(frozen=True)
class Route:
    """One path from the leaf to an output.

    Attributes
    ----------
    edges : tuple of int
        Edge numbers, starting at the leaf.
    amount : float or None
        Contribution of the path, in the units of `Flow.total`.
    norm : float or None
        Norm of the contribution.
    """

    edges: tuple[int, ...]
    amount: float | None
    norm: float | None = None


@dataclass
class Flow:
    """The contributions to the gradient of one leaf.

    Attributes
    ----------
    total : float or None
        The leaf's gradient if it has one element, else its norm; None if unknown.
    amounts : dict of int to float
        Contribution of each edge on a path, where it is known: its length along the gradient.
    norms : dict of int to float
        Norms of the cotangents on these edges.
    cosines : dict of (int, int) to float
        Cosines between the cotangents of two edges that arrive at one tensor.
    remains : dict of int to float
        For each node at which several cotangents arrive: the norm of their sum over the sum of their norms.
    slack : dict of int to float
        For each edge, how much of its contribution may be rounding.
    routes : tuple of Route
        The paths, if they are few.
    why_not : str
        A sentence on missing contributions.
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
    """The nodes and edges between a leaf and the outputs, and the number of paths.

    Attributes
    ----------
    edges : tuple of int
        Numbers of the edges on a path.
    below, above : list of int
        For each node, the number of paths from the leaf to it, and from it to an output.
    count : int
        The number of paths.
    """

    edges: tuple[int, ...]
    below: list[int]
    above: list[int]
    count: int


def leaf_paths(trace: Trace, leaf: int) -> LeafPaths:
    """Return the paths of a trace from a leaf to its outputs."""
    below, above = [0] * len(trace.nodes), [0] * len(trace.nodes)
    below[leaf] = 1
    for edge in trace.edges:  # sorted by target: each node comes after its inputs
        below[edge.target] += below[edge.source]
    for output in trace.outputs:
        above[output] = 1
    for edge in reversed(trace.edges):
        above[edge.source] += above[edge.target]
    on = tuple(i for i, edge in enumerate(trace.edges) if below[edge.source] and above[edge.target])
    return LeafPaths(on, below, above, above[leaf])


def routes(trace: Trace, leaf: int, paths: LeafPaths) -> list[tuple[int, ...]]:
    """Return each path from the leaf to an output as edge numbers."""
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
    """Return for each node the edges on a path by which cotangents arrive."""
    edges: dict[int, list[int]] = {}
    for i in paths.edges:
        edges.setdefault(trace.edges[i].source, []).append(i)
    return edges


# --------------------------------------------------------------------------------------------------------------- sweeps
def measure_flow(trace: Trace, leaf: int, outputs: Sequence[Any], weights: Sequence[Any] | None = None) -> Flow:
    """Measure the contributions to a leaf's gradient: two private sweeps, and one for each path if they are few.

    The graph is kept. `.grad`, random state and versions do not change. Hooks of the user's on tensors and nodes run.

    Parameters
    ----------
    trace : Trace
        Trace of the outputs.
    leaf : int
        Number of the leaf in the trace.
    outputs : sequence of Tensor
    weights : sequence of Tensor, optional
        Gradients of the outputs; ones by default.

    Raises
    ------
    RuntimeError
        If the graph was freed, or a saved tensor was overwritten.
    """
    library = library_of(outputs[0])
    assert library is not None
    tops = [library.whole(library.node(output)) for output in outputs]
    most = len(trace.nodes) - len(outputs) - 1 if trace.cut_off else None
    nodes, _ = spine_first(library, tops, most)
    paths = leaf_paths(trace, leaf)
    variable = library.variable(nodes[leaf])
    if variable is None:
        raise RuntimeError("this leaf no longer exists: nothing refers to its tensor.")
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
    """Compute the flow. `tensors` maps each edge to the tensor at which its cotangent arrives."""
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
        node = None if flow.why_not else find_unconserved(trace, paths, flow)
        if node is not None:
            flow.why_not = _not_known(f"{trace.nodes[node].operation or trace.nodes[node].label} has no second derivative")
        if flow.why_not:
            shares = _shares(library, trace, seen, tensors)
            cut = sweeps.cutting(starts, gradient, direction)
            flow.amounts = by_structure(trace, leaf, paths, flow.total, shares, _numbers(library, seen), cut)
            if len(flow.amounts) == len(paths.edges):
                flow.why_not = ""
    if 1 < paths.count <= MOST_PATHS:
        flow.routes = tuple(sweeps.along(way, starts, ends, direction) for way in routes(trace, leaf, paths))
        if flow.why_not and direction is not None:  # an edge's contribution is the sum over the paths through it
            for i in paths.edges:
                flow.amounts[i] = math.fsum(route.amount or 0.0 for route in flow.routes if i in route.edges)
            flow.why_not = ""
    return flow


class _Sweeps:
    """Sweeps from the outputs to one leaf, with edges numbered as in a trace."""

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
        """Return the number of an edge, or None if it is not on a path."""
        i = self.place.get((self.number[node], argument))
        return i if i in self.on else None

    def run(self, starts: Sequence[Any], ends: Mapping[int, Any], *, recorded: bool = False) -> tuple[dict[int, Any], Any]:
        """Run a sweep; return the cotangents by edge, and the gradient."""
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
        """Fill in the contributions; return why they are unknown, or an empty string."""
        starts = [start.detach().clone().requires_grad_() for start in starts]
        library = self.library
        try:
            seen, g = self.run(starts, {i: starts[k] for k, i in enumerate(ends)}, recorded=True)
            tangents = library.grad([g], list(seen.values()), [direction])
        except Exception as error:  # noqa: BLE001  (rules without second derivatives raise anything)
            return _not_known(str(error).splitlines()[0][:120] if str(error) else type(error).__name__)
        for i, tangent in zip(seen, tangents, strict=True):
            c = _plain(library, seen[i])
            t = np.zeros(1) if tangent is None else _plain(library, tangent)
            flow.amounts[i] = 0.0 if tangent is None else float(np.vdot(c, t).real)
            flow.slack[i] = SLACK * _unit(library, seen[i]) * float(np.linalg.norm(c) * np.linalg.norm(t))
        for i in self.on - seen.keys():  # these edges carried nothing
            flow.amounts[i] = 0.0
        return ""

    def cutting(self, starts: Sequence[Any], gradient: np.ndarray, direction: np.ndarray) -> Callable[[int], float | None]:
        """Return a function that measures an edge's contribution by cutting the edge: a sweep each, until time is up."""
        ends_at = clock.now() + SECONDS

        def contribution(i: int) -> float | None:
            if clock.now() >= ends_at:
                return None

            def without(node: Any, handed: Sequence[Any]) -> Sequence[Any]:
                return [None if self.edge(node, argument) == i else c for argument, c in enumerate(handed)]

            with self.library.handing(self.hooked, without):
                (g,) = self.library.grad(self.outputs, [self.variable], starts)
            rest = np.zeros(gradient.shape) if g is None else _plain(self.library, g)
            return float(np.vdot(gradient - rest, direction).real)

        return contribution

    def along(self, way: tuple[int, ...], starts: Sequence[Any], ends: Mapping[int, Any], direction: np.ndarray | None) -> Route:
        """Measure the contribution of one path by a sweep in which all other edges carry nothing."""
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
    """Return a tensor as a NumPy array in double precision."""
    array = np.asarray(library.array(tensor.detach()))
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _unit(library: Library, tensor: Any) -> float:
    """Return the unit roundoff of a tensor's dtype."""
    name = library.dtype_name(tensor)
    return 2.0**-7 if name == "bfloat16" else float(np.finfo(name).eps)


def _length(gradient: np.ndarray) -> float:
    """Return the element of a gradient that has one, else its norm."""
    return float(gradient.reshape(-1)[0].real) if gradient.size == 1 else float(np.linalg.norm(gradient))


def _direction(gradient: np.ndarray) -> np.ndarray | None:
    """Return the direction along which contributions are measured, or None if there is none."""
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


def find_unconserved(trace: Trace, paths: LeafPaths, flow: Flow) -> int | None:
    """Find the operation nearest to the leaf at which contributions are not conserved, for example because a custom rule hides
    how its result depends on the cotangent, or because a hook changes it."""
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
        return "The gradient contains NaN or ∞, so shares are undefined."
    return "The gradient is 0, so shares are undefined."


def _compare(
    library: Library, flow: Flow, trace: Trace, paths: LeafPaths, seen: Mapping[int, Any], tensors: Mapping[int, Any]
) -> None:
    """Compute the norms of the cotangents and, where several meet, the cosine of two and how much of their norms remains."""
    plain = {i: _plain(library, c) for i, c in seen.items()}
    flow.norms = {i: float(np.linalg.norm(c)) for i, c in plain.items()}
    for node, edges in arriving(trace, paths).items():
        there = [i for i in edges if i in plain]
        norms = [flow.norms[i] for i in there]
        if len(there) < 2 or not 0 < sum(norms) < math.inf:
            continue
        if len({tensors[i] for i in there if i in tensors}) == 1:  # cotangents of several outputs are not summed
            flow.remains[node] = float(np.linalg.norm(sum(plain[i] for i in there))) / sum(norms)
            if len(there) == 2 and all(norms):
                one, other = (plain[i] / flow.norms[i] for i in there)
                flow.cosines[there[0], there[1]] = float(np.vdot(one, other).real)


def _shares(library: Library, trace: Trace, seen: Mapping[int, Any], tensors: Mapping[int, Any]) -> dict[int, float]:
    """Return ⟨c, h⟩/‖h‖² by edge: c is its cotangent, h the sum of the cotangents that arrive at its tensor."""
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
    """Return the cotangents with one element as numbers."""
    return {i: float(_plain(library, c).reshape(-1)[0].real) for i, c in seen.items() if math.prod(c.shape) == 1}


# ---------------------------------------------------------------------------------------------------- without the graph
def flow_of(trace: Trace, leaf: int) -> Flow:
    """Return the flow to a leaf as far as it follows from a trace alone: its structure, its shares, and its few numbers."""
    paths = leaf_paths(trace, leaf)
    node = trace.nodes[leaf]
    arrived = node.gradient
    if arrived is None:
        return Flow(None, why_not="No gradient reached this leaf in the sweep." if trace.sweep else "No sweep was seen.")
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
        parts = [shares.get(i, math.nan) for i in edges]  # cotangents of several outputs are not summed: none is 1
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
    """Return the paths if the contributions of the edges determine theirs: where several edges arrive at a scalar, each path is
    split in proportion. Return () if not."""
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
    """Derive the contributions that follow from the shares at each tensor.

    Parameters
    ----------
    total : float or None
        See `Flow`.
    shares : mapping of int to float
        Share of each edge's cotangent in the sum at its tensor.
    numbers : mapping of int to float
        Cotangent of each edge, if it is a scalar.
    cut : callable, optional
        Called with an edge whose contribution does not follow; returns it, or None.
    """
    if total is None:
        return {}
    amounts: dict[int, float] = {}
    single = math.prod(trace.nodes[leaf].shape or ()) == 1
    into: dict[int, list[int]] = {}  # edges on a path, by the node that passes them on
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
        splits = node == leaf or (shape is not None and math.prod(shape) == 1)  # J_s d of a scalar is a scalar
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
