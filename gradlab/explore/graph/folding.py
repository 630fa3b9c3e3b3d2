"""Folding: fewer nodes for a large graph. Repeats are drawn once, straight chains become one box.

Folding replaces groups of nodes by one node each. It starts only if a graph has more nodes than the limit, and stops as soon as
it is within it. Each step runs only if those before it were not enough:

1. names      modules, the user's functions and lines, where they were recorded (`spans`)
2. repeats    a segment that follows itself is kept once; its other copies become one box, "11 times as above"
3. chains     operations in a row with their own parameters, longest chain first
4. parts      nodes that belong to one part of a model by their parameters' names; without names, equal intervals

Nodes are in the spine-first order of `reading`: each after its inputs, the deepest input first. So an operation's parameters come
just before it, the layers of a network are consecutive intervals, and replacing an interval by one node never makes a cycle: the
inputs of an interval come before it and its uses after it.

Repeats are found without a search for subgraphs. Each node gets a token: its kind, and the distance back to each of its inputs.
Two intervals with equal tokens are isomorphic and equally connected to the nodes before them, so repeated segments are the runs
of tokens that are equal at a distance p. For a node used throughout the graph (the weights of a recurrent network), the token has
its number instead of its distance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gradlab.explore.graph.contraction import Group, Uses, contract, group_of, list_leaves, names_in, uses_of
from gradlab.explore.graph.spans import by_names, without_moves
from gradlab.explore.labels import common_parts, module_path, part_of_model, shorten, strip_numbers
from gradlab.explore.markup import count
from gradlab.explore.trace.data import GraphEdge, GraphNode, ModuleCall, inputs_of

Nodes = Sequence[GraphNode]
Edges = Sequence[GraphEdge]

PERIODS = 12  # distances that are examined closely
COMPARISONS = 8_000_000  # of tokens, to choose them: 100 000 nodes at 80
LEAST_SAVED = 3  # nodes that a fold must remove
PIECES = 12  # boxes for one long chain
SHARES = (48, 24, 12, 6, 3)  # boxes into which a graph without structure is cut
DENSE = 3  # edges per box above which a picture cannot be followed
MANY_OUTPUTS = 24


def fold(
    nodes: Nodes,
    edges: Edges,
    limit: int,
    calls: Sequence[ModuleCall] = (),
    unfold: Iterable[int] = (),
    *,
    lines: bool = True,
    opened_modules: Iterable[str] = (),
) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
    """Fold a graph to at most `limit` nodes with less detail. A graph that is within the limit is returned as it is.

    Parameters
    ----------
    nodes, edges
        Numbered spine first, as in a trace. A node that replaces others has `members`.
    limit : int
    calls : sequence of ModuleCall, optional
        Calls of the modules.
    unfold : iterable of int
        Numbers, among `members`, of nodes that must be visible, even if this exceeds `limit`.
    lines : bool
        Whether the user's lines may be opened.
    opened_modules : iterable of str
        Modules that are open, even if this exceeds `limit`.
    """
    if len(nodes) <= limit:
        return tuple(nodes), tuple(edges)
    kept = set(unfold)
    nodes, edges = _fold_outputs(nodes, edges, limit)
    recorded = any(node.layer or node.place for node in nodes)
    if recorded:
        nodes, edges = without_moves(nodes, edges, calls)
        wanted = [i for i, node in enumerate(nodes) if kept.intersection(node.members or (i,))] if kept else []
        if len(nodes) > limit:
            nodes, edges = by_names(nodes, edges, limit, calls, wanted, lines=lines, opened_modules=opened_modules)
        if kept:
            return tuple(nodes), tuple(edges)
    whole = nodes, edges
    steps: list[Callable[[Nodes, Edges, int], list[Group]]] = [
        lambda nodes, edges, limit: _repeats(nodes, edges, shapes=True),
        lambda nodes, edges, limit: _repeats(nodes, edges, shapes=False),
        _chains,
    ]
    for step in steps:
        while len(nodes) > limit:
            groups = step(nodes, edges, limit)
            if not groups:
                break
            nodes, edges = contract(nodes, edges, groups)
    if len(nodes) > limit:
        for start, step in ((whole, _parts), ((nodes, edges), _parts), ((nodes, edges), _shares)):
            groups = step(*start, limit)
            if groups:
                nodes, edges = contract(*start, groups)
                break
    return tuple(nodes), tuple(edges)


def _fold_outputs(nodes: Nodes, edges: Edges, limit: int) -> tuple[Nodes, Edges]:
    """Replace all outputs by one node, if there are more than a reader can distinguish."""
    outputs = [i for i, node in enumerate(nodes) if node.kind == "output"]
    if len(outputs) <= min(MANY_OUTPUTS, limit // 4):
        return nodes, edges
    detail = list_leaves([nodes[i] for i in outputs])
    many = GraphNode(
        "output",
        count(len(outputs), "output"),
        detail=detail,
        count=len(outputs),
        members=tuple(number for i in outputs for number in nodes[i].members),
    )
    return contract(nodes, edges, [Group(outputs, many)])


# -------------------------------------------------------------------------------------------------------------- repeats
class _Arrays(NamedTuple):
    """The edges as columns, and the first and the last use of each node."""

    source: np.ndarray
    target: np.ndarray
    argument: np.ndarray
    first_use: np.ndarray
    last_use: np.ndarray


def _arrays(nodes: Nodes, edges: Edges) -> _Arrays:
    columns = np.array([(edge.source, edge.target, edge.argument) for edge in edges], dtype=np.int64).reshape(-1, 3)
    source, target, argument = columns.T
    first, last = np.full(len(nodes), len(nodes)), np.arange(len(nodes))
    np.minimum.at(first, source, target)
    np.maximum.at(last, source, target)
    return _Arrays(source, target, argument, first, last)


def _repeats(nodes: Nodes, edges: Edges, *, shapes: bool) -> list[Group]:
    """Group the other copies of segments that repeat at the one distance that saves most."""
    kinds, arrays = _kinds(nodes, shapes), _arrays(nodes, edges)
    leaf = np.array([node.kind == "leaf" for node in nodes])
    best: tuple[int, int, np.ndarray, list[tuple[int, int]]] = (0, 0, leaf, [])
    for period in _likely_periods(kinds):
        # nodes used at a distance of more than one period belong to no segment
        shared = leaf & (arrays.last_use - arrays.first_use > period)
        sequence = np.flatnonzero(~shared)
        tokens = _tokens(kinds, arrays, shared, sequence, period)
        runs = [run for run in _runs(tokens, period) if (run[1] // period) * period - 1 >= LEAST_SAVED]
        saved = sum((length // period) * period - 1 for _, length in runs)
        if saved > best[0]:
            best = (saved, period, sequence, runs)
    _, period, sequence, runs = best
    groups, uses = [], uses_of(nodes, edges)
    for start, length in runs:
        times = length // period
        start = period + _best_start(nodes, arrays, sequence, start, length % period)
        groups.append(_group_copies(nodes, uses, sequence[start : start + times * period].tolist(), period, times))
    return groups


def _best_start(nodes: Nodes, arrays: _Arrays, sequence: np.ndarray, start: int, slack: int) -> int:
    """Choose where to begin a run that is longer than its segments: where fewest tensors cross and names differ most."""

    def preference(cut: int) -> tuple[int, int, int]:
        passing = int(((sequence[:cut] < sequence[cut]) & (arrays.last_use[sequence[:cut]] >= sequence[cut])).sum())
        before = next((names_in(nodes[i])[-1] for i in reversed(sequence[:cut].tolist()) if names_in(nodes[i])), "")
        after = next((names_in(nodes[i])[0] for i in sequence[cut:].tolist() if names_in(nodes[i])), "")
        return passing, common_parts(before, after), -cut

    return min(range(start, start + slack + 1), key=preference) if slack else start


def _group_copies(nodes: Nodes, uses: Uses, copies: Sequence[int], period: int, times: int) -> Group:
    """Group the other copies of a segment, named after their members."""
    names = [name for member in copies for name in names_in(nodes[member])]
    segments = [copies[start : start + period] for start in range(0, len(copies), period)]
    signs = [strip_numbers(nodes[member].label) for member in segments[0] if nodes[member].kind != "leaf"]
    said = part_of_model(names) or shorten(", ".join(signs) if len(signs) <= 3 else f"{signs[0]}, {signs[1]} … {signs[-1]}", 28)
    each = count(sum(nodes[member].count for member in segments[0]), "node")
    return group_of(
        nodes,
        uses,
        copies,
        said,
        f"{count(times, 'time')} as above, {each} each" if period > 1 else f"{count(times, 'time')} as above",
        copies=segments,
    )


def _kinds(nodes: Nodes, shapes: bool) -> np.ndarray:
    """Return a number for each node, equal for nodes that differ only in their names."""
    numbers: dict[object, int] = {}
    kinds: list[int] = []
    for node in nodes:
        label = "" if (node.kind == "leaf" and node.count == 1) or node.label.startswith("[") else node.label
        kind = (node.kind, label, node.operation, node.shape if shapes else None, node.count)
        kinds.append(numbers.setdefault((len(kinds), kind) if node.kind == "output" else kind, len(numbers)))
    return np.array(kinds, dtype=np.uint64)


def _likely_periods(kinds: np.ndarray) -> list[int]:
    """Return the distances at which most nodes find one of their kind."""
    longest = min(len(kinds) // 2, max(1, COMPARISONS // len(kinds)))
    matches = [int((kinds[:-period] == kinds[period:]).sum()) for period in range(1, longest + 1)]
    order = sorted(range(longest), key=lambda i: -matches[i])
    return [i + 1 for i in order[:PERIODS] if matches[i]]


def _tokens(kinds: np.ndarray, arrays: _Arrays, shared: np.ndarray, sequence: np.ndarray, period: int) -> np.ndarray:
    """Return a 64-bit hash for each node of the sequence, of its kind and of the positions of its inputs."""
    position = np.full(len(kinds), -1)
    position[sequence] = np.arange(len(sequence))
    source, target, argument = arrays[:3]
    back = position[target] - position[source]
    near = ~shared[source] & (back <= 2 * period)
    where = np.where(near, back, len(kinds) + source).astype(np.uint64)
    tokens = _mix_bits(kinds)
    np.add.at(tokens, target, _mix_bits(where * np.uint64(0x9E3779B97F4A7C15) + argument.astype(np.uint64)))
    chosen: np.ndarray = tokens[sequence]
    return chosen


def _mix_bits(numbers: np.ndarray) -> np.ndarray:
    """Mix all bits, so that sums distinguish sets (the finaliser of splitmix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def _runs(tokens: np.ndarray, period: int) -> Iterator[tuple[int, int]]:
    """Yield (start, length) of each stretch of at least `period` tokens that equal the tokens `period` later, without
    overlaps."""
    same = np.concatenate(([False], tokens[:-period] == tokens[period:], [False]))
    starts, ends = np.flatnonzero(same[1:] & ~same[:-1]), np.flatnonzero(~same[1:] & same[:-1])
    free = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        start = max(start, free)
        if end - start >= period:
            yield start, end - start
            free = end + period


# --------------------------------------------------------------------------------------------------------------- chains
def _chains(nodes: Nodes, edges: Edges, limit: int) -> list[Group]:
    """Group straight chains of operations with their own parameters, the longest first, until within the limit."""
    inputs = inputs_of(nodes, edges)
    uses = Counter(edge.source for edge in edges)
    own = [False] * len(nodes)  # a parameter, or its transpose, used once
    for i, node in enumerate(nodes):
        single = inputs[i][0] if len(inputs[i]) == 1 else None
        transposed = single is not None and nodes[single].kind == "leaf" and own[single]
        own[i] = uses[i] == 1 and (node.kind == "leaf" or transposed)
    chain_of: dict[int, list[list[int]]] = {}  # by its last node; a link is an operation with its parameters
    for i, node in enumerate(nodes):
        if node.kind in ("leaf", "output") or own[i]:
            continue
        main = [source for source in inputs[i] if not own[source]]
        chain = chain_of.pop(main[0], None) if len(main) == 1 and uses[main[0]] == 1 else None
        if chain is None:
            chain_of[i] = [[i]]
            continue
        parameters = [member for source in inputs[i] if own[source] for member in (*inputs[source], source)]
        chain.append([*parameters, i])
        chain_of[i] = chain
    needed = len(nodes) - limit
    uses_by = uses_of(nodes, edges)
    groups: list[Group] = []
    for chain in sorted(chain_of.values(), key=lambda chain: (-sum(map(len, chain)), chain[-1])):
        length = sum(map(len, chain))
        if needed <= 0 or length - 1 < LEAST_SAVED:
            break
        pieces = max(1, min(PIECES, len(chain) // 3, length - needed))
        cuts = [len(chain) * piece // pieces for piece in range(pieces + 1)]
        groups += [group_of(nodes, uses_by, [member for link in chain[a:b] for member in link]) for a, b in pairwise(cuts)]
        needed -= length - pieces
    return groups


# ------------------------------------------------------------------------------------------------------------- segments
def _parts(nodes: Nodes, edges: Edges, limit: int) -> list[Group]:
    """Group intervals that belong to one part of a model by their parameters' names. Parts are as small as the limit allows."""
    inner = _inner(nodes)
    paths: list[list[str]] = []  # an operation has its parameters' path
    path: list[str] = []
    for node in nodes[:inner]:
        names = names_in(node)
        paths.append(module_path(names[0]) if names else path)
        path = module_path(names[-1]) if names else path
    arrays = _arrays(nodes, edges)
    for depth in range(max(map(len, paths), default=0), 0, -1):
        starts = [i for i in range(inner) if not i or paths[i][:depth] != paths[i - 1][:depth]]
        if 2 <= len(starts) <= limit - (len(nodes) - inner) and _density(starts, arrays) <= DENSE:
            return _intervals(nodes, edges, starts)
    return []


def _shares(nodes: Nodes, edges: Edges, limit: int) -> list[Group]:
    """Group intervals of about equal length, cut where fewest tensors cross; the denser the edges, the fewer intervals."""
    inner = _inner(nodes)
    arrays = _arrays(nodes, edges)
    passing = np.zeros(len(nodes) + 1, dtype=np.int64)  # tensors that cross a cut before each node
    np.add.at(passing, np.arange(len(nodes)) + 1, 1)
    np.add.at(passing, arrays.last_use + 1, -1)
    passing = np.cumsum(passing)
    starts = [0]
    for shares in SHARES:
        if shares > limit - (len(nodes) - inner):
            continue
        leeway = inner // shares // 3
        starts = [0]
        for share in range(1, shares):
            first = inner * share // shares - leeway
            starts.append(first + int(np.argmin(passing[first : first + 2 * leeway + 1])))
        if _density(starts, arrays) <= DENSE:
            break
    return _intervals(nodes, edges, starts)


def _inner(nodes: Nodes) -> int:
    """Return the number of nodes before the outputs."""
    return next((i for i, node in enumerate(nodes) if node.kind == "output"), len(nodes))


def _intervals(nodes: Nodes, edges: Edges, starts: Sequence[int]) -> list[Group]:
    uses = uses_of(nodes, edges)
    intervals = [range(start, end) for start, end in pairwise([*starts, _inner(nodes)])]
    return [group_of(nodes, uses, interval) for interval in intervals if len(interval) > 1]


def _density(starts: Sequence[int], arrays: _Arrays) -> float:
    """Return the number of edges per interval when the nodes from each of `starts` to the next become one."""
    source, target = (np.searchsorted(starts, column, side="right") for column in (arrays.source, arrays.target))
    pairs = np.unique(np.stack((source, target)), axis=1)
    return float((pairs[0] != pairs[1]).sum()) / len(starts)
