"""Folding by names: modules, functions and lines of the user's become one node each, opened as far as there is room.

Every node has a path: the modules in which it was made, or the line of the cell and the function that it called, and finally the
line itself. The paths form a tree of folds. Starting at its root, the largest fold that can be opened within the limit is opened,
again and again; lines are opened last. Numbered parts of a module that are equal (the blocks of a transformer) are drawn as one
stack; opening a stack opens its first copy.

A parameter belongs to the innermost fold that contains all its uses. An operation that only moves or reshapes is hidden in the
operation whose result it moves. A fold that the graph leaves and enters again (a function called at every step) is drawn once for
each time.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.graph.contraction import Group, Uses, contract, group_of, last_used_outside, uses_of
from gradlab.explore.markup import count
from gradlab.explore.module_paths import CALL, is_below, path_range, prefixes
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, ModuleCall

Step = tuple[str, str]  # a kind (module, call, function, line) and a name
Path = tuple[Step, ...]
Nodes = Sequence[GraphNode]
Edges = Sequence[GraphEdge]

SHORT = 26  # characters of an expression that is not shortened
# Library modules that compute a layer in many operations, or in one operation with a name that users do not write.
WHOLE_LAYERS = frozenset(("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "EmbeddingBag"))


def without_moves(nodes: Nodes, edges: Edges, calls: Sequence[ModuleCall] = ()) -> tuple[Nodes, Edges]:
    """Hide each operation that only moves or reshapes a tensor in the operation that made the tensor, or in its only use. Within
    a whole layer, hide it in an operation of that layer."""
    layers = layers_of(nodes, calls)
    inputs: list[list[int]] = [[] for _ in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        inputs[edge.target].append(edge.source)
        users[edge.source].append(edge.target)
    owner = list(range(len(nodes)))
    for i, node in enumerate(nodes):
        if not is_move(node) or len(inputs[i]) != 1:
            continue
        source = inputs[i][0]
        if nodes[source].kind == "operation" and layers[i] == layers[source]:
            owner[i] = owner[source]
    for i in reversed(range(len(nodes))):  # without an operation that made it: where it is used
        node = nodes[i]
        if not is_move(node) or owner[i] != i or len(set(users[i])) != 1:
            continue
        if nodes[users[i][0]].kind == "operation" and layers[i] == layers[users[i][0]]:
            owner[i] = owner[users[i][0]]
    merged: defaultdict[int, list[int]] = defaultdict(list)
    for i in range(len(nodes)):
        merged[_root(owner, i)].append(i)
    groups = []
    for main, members in merged.items():
        if len(members) > 1:
            last = main
            while len(set(users[last])) == 1 and _root(owner, users[last][0]) == main and users[last][0] > last:
                last = users[last][0]
            groups.append(Group(members, _as_one(nodes, main, last, members)))
    return contract(nodes, _past_moves(edges, owner), groups) if groups else (nodes, edges)


def _past_moves(edges: Edges, owner: list[int]) -> list[GraphEdge]:
    """Return the edges, with an edge from a moving operation to its only use replaced by one from the operation that made the
    tensor. Its gradient is that use's part of the sum."""
    uses = Counter(edge.source for edge in edges)
    into: dict[int, GraphEdge] = {edge.target: edge for edge in edges if owner[edge.target] == _root(owner, edge.source)}
    kept = []
    for edge in edges:
        source, share = edge.source, edge.share
        while owner[source] != source and uses[source] == 1 and source in into:
            source, share = into[source].source, into[source].share
        kept.append(replace(edge, source=source, share=share))
    return kept


def is_move(node: GraphNode) -> bool:
    """Return whether an operation only moves, reshapes or casts all elements of its argument."""
    return node.kind == "operation" and lookup(node.operation).moves in ("layout", "cast")


def _root(owner: list[int], i: int) -> int:
    while owner[i] != i:
        i = owner[i]
    return i


def _as_one(nodes: Nodes, main: int, last: int, members: Sequence[int]) -> GraphNode:
    """Merge an operation with the operations that move its argument and its result, ending with `last`."""
    node, end = nodes[main], nodes[last]
    numbers = tuple(number for i in members for number in nodes[i].members)
    operands = tuple(operand for i in members for operand in nodes[i].operands)
    return replace(
        node,
        name=end.name or node.name,
        shape=end.shape,
        value=end.value,
        gradient=end.gradient,
        members=numbers,
        operands=operands,
    )


# --------------------------------------------------------------------------------------------------------- whole layers
def layers_of(nodes: Nodes, calls: Sequence[ModuleCall], whole: Collection[str] | None = None) -> list[Step | None]:
    """Return the whole layer of each operation: a library module, or a call of a function; None for other operations. `whole`
    has the paths of these modules, if the caller decides rather than their kinds."""
    if whole is not None:
        return [("module", node.layer) if node.layer in whole and node.kind == "operation" else None for node in nodes]
    outside = called_from(calls)
    whole = {call.path for call in calls if call.kind in WHOLE_LAYERS}
    layers: list[Step | None] = []
    for node in nodes:
        layer: Step | None = None
        if node.kind not in ("leaf", "output"):
            if node.layer in whole and (node.layer, node.place) in outside:
                layer = "module", node.layer
            elif node.part_of is not None:
                layer = "layer", "{} {}".format(*node.part_of)
        layers.append(layer)
    return layers


def called_from(calls: Sequence[ModuleCall]) -> set[tuple[str, Line | None]]:
    """Return the modules with the lines that called them. Operations of a library module have the user's line that called it,
    which is outside the module."""
    return {(call.path, call.place) for call in calls}


def whole_layers(
    nodes: Nodes,
    edges: Edges,
    calls: Sequence[ModuleCall],
    unfold: Collection[int] = (),
    whole: Collection[str] | None = None,
) -> tuple[Nodes, Edges]:
    """Replace each layer that is computed in many operations, such as an LSTM, by one node with its parameters.

    Parameters
    ----------
    nodes, edges
    calls : sequence of ModuleCall
    unfold : collection of int
        Nodes that must be visible, as numbered in `members`.
    whole : collection of str, optional
        Paths of the modules that become one node each. By default, modules of kinds that compute in many operations.
    """
    layers = layers_of(nodes, calls, whole)
    if not any(layers):
        return nodes, edges
    uses = uses_of(nodes, edges)
    folds: dict[Step, _Fold] = {}
    for i, layer in enumerate(layers):
        if nodes[i].kind == "leaf" and uses[i]:
            around = {layers[user] for user in uses[i]}
            layer = around.pop() if len(around) == 1 else None
            layer = layer if layer is not None and is_parameter(nodes[i], layer[1]) else None
        if layer is not None:
            folds.setdefault(layer, _Fold((layer,))).members.append(i)
    seen = set(unfold)
    hidden = [[fold] for fold in folds.values() if not any(seen.intersection(nodes[i].members) for i in fold.members)]
    kinds, times = {call.path: call.kind for call in calls}, Counter(call.path for call in calls)
    plain = len({prefixes(node.layer)[0] for node in nodes if node.layer}) < 2
    groups = [_stack_group(nodes, uses, stack, piece, kinds, times, plain) for stack, piece in _convex(nodes, edges, hidden)]
    return contract(nodes, edges, groups)


def is_parameter(leaf: GraphNode, module: str) -> bool:
    """Return whether a leaf that only one module uses belongs to it by name; an input of the module does not."""
    return not leaf.name or any(is_below(name, module) for name in leaf.name.split(", "))


# ----------------------------------------------------------------------------------------------------------------- tree
@dataclass
class _Fold:
    """A node of the tree: its folds by their last step, and the nodes that are directly in it."""

    path: Path
    folds: dict[Step, _Fold] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)

    def operations(self, nodes: Nodes) -> int:
        """Count the operations in it."""
        return sum(nodes[i].kind != "leaf" for i in self.members)

    def stacks(self, signature: Mapping[int, object]) -> list[list[_Fold]]:
        """Return its folds, with folds that are numbered, consecutive and equal in one stack."""
        inside = sorted(self.folds.values(), key=lambda fold: fold.members[0])
        stacks = alike_stacks([(fold.path[-1], fold.members) for fold in inside], signature)
        return [[self.folds[step] for step, _ in stack] for stack in stacks]


def alike_stacks(
    folds: Sequence[tuple[Step, Sequence[int]]], signature: Mapping[int, object] | Sequence[object]
) -> list[list[tuple[Step, Sequence[int]]]]:
    """Group folds (last step and members) in order: modules that are numbered, consecutive and equal are in one stack."""
    stacks: list[list[tuple[Step, Sequence[int]]]] = []
    before: tuple[object, ...] | None = None
    for step, members in folds:
        kind, name = step
        numbered = kind == "module" and (name.endswith("]") or CALL in name)
        alike = tuple(signature[i] for i in members) if numbered else None
        if alike is not None and alike == before:
            stacks[-1].append((step, members))
        else:
            stacks.append([(step, members)])
        before = alike
    return stacks


def by_names(
    nodes: Nodes,
    edges: Edges,
    limit: int,
    calls: Sequence[ModuleCall] = (),
    unfold: Iterable[int] = (),
    *,
    lines: bool = True,
    opened_modules: Iterable[str] = (),
) -> tuple[Nodes, Edges]:
    """Fold the graph by modules, functions and lines to at most `limit` nodes, as far as possible.

    Parameters
    ----------
    nodes, edges
    limit : int
    calls : sequence of ModuleCall
        Calls of the modules.
    unfold : iterable of int
        Nodes that must be visible, whatever the limit.
    lines : bool
        Whether a line may be opened.
    opened_modules : iterable of str
        Modules that are open, whatever the limit.
    """
    paths = paths_of(nodes, edges, calls)
    if not any(paths):
        return nodes, edges
    root = _Fold(())
    for i, path in enumerate(paths):
        fold = root
        fold.members.append(i)
        for depth, step in enumerate(path, start=1):
            fold = fold.folds.setdefault(step, _Fold(path[:depth]))
            fold.members.append(i)
        fold.own.append(i)
    forced = {paths[i][:depth] for i in unfold for depth in range(len(paths[i]) + 1)}
    forced |= {tuple(("module", part) for part in prefixes(path)) for path in opened_modules}
    shut = _whole_objects(root, nodes, root.operations(nodes))  # also folds that contain every step of a loop
    while True:
        shown, opened = _open_folds(root, nodes, limit, forced, shut, lines=lines)
        pieces = _convex(nodes, edges, shown)
        seen = len(nodes) - sum(len(piece) - 1 for _, piece in pieces)
        times = Counter(stack[0].path for stack, _ in pieces)
        split = {path[:-1] for path, many in times.items() if many > 1} - forced - shut - {()}
        if seen <= limit or not split:
            break
        shut |= split
    plain = len({path[0] for path in opened if path and path[0][0] == "module"}) < 2  # one model: its name is left out
    uses = uses_of(nodes, edges)
    kinds, many = {call.path: call.kind for call in calls}, Counter(call.path for call in calls)
    groups = [
        _stack_group(nodes, uses, stack, piece, kinds, many, plain)
        for stack, piece in pieces
        if len(piece) > 1 or (stack[0].path[-1][0] == "module" and nodes[piece[0]].kind == "operation")
    ]
    return contract(nodes, edges, groups)


def _whole_objects(fold: _Fold, nodes: Nodes, most: int) -> set[Path]:
    """Return the user's objects that stay closed: those of fewer than `most` operations that contain only lines, and are one of
    several or contain a single line."""
    several = sum(step[0] == "module" for step in fold.folds) > 1
    found = set()
    for inner in fold.folds.values():
        found |= _whole_objects(inner, nodes, most)
        lines = all(step[0] == "line" for step in inner.folds) and (several or len(inner.folds) == 1)
        if lines and inner.operations(nodes) < most and any(nodes[i].object == inner.path[-1][1] for i in inner.members):
            found.add(inner.path)
    return found


def _open_folds(
    root: _Fold, nodes: Nodes, limit: int, forced: set[Path], shut: set[Path], *, lines: bool
) -> tuple[list[list[_Fold]], set[Path]]:
    """Return the visible stacks, and the folds that were opened for them."""
    signature = {i: (node.kind, node.operation, node.shape) for i, node in enumerate(nodes)}
    waiting = sorted(root.stacks(signature), key=_size)
    seen = len(root.own) + len(waiting)
    opened: set[Path] = {()}
    shown: list[list[_Fold]] = []
    while waiting:
        stack = waiting.pop()
        wanted = next((fold for fold in stack if fold.path in forced), None)
        first = wanted or stack[0]
        at = stack.index(first)
        rest = [part for part in (stack[:at], stack[at + 1 :]) if part]
        inner = first.stacks(signature)
        more = len(inner) + len(first.own) - 1 + len(rest)
        alone = len(inner) + len(first.own) == 1 and not rest
        closed = first.path in shut or first.operations(nodes) < 2 or (first.path[-1][0] == "line" and not lines)
        if wanted is None and (closed or not (alone or seen + more <= limit)):
            shown.append(stack)
            continue
        seen += more
        opened.add(first.path)
        again = [part for part in rest if any(fold.path in forced for fold in part)]
        shown += [part for part in rest if part not in again]
        waiting = sorted([*waiting, *inner, *again], key=_size)
    return shown, opened


def _size(stack: list[_Fold]) -> tuple[bool, int, int]:
    """Sort key: the largest stack is opened first (the list is used from its end), and lines after all others."""
    return stack[0].path[-1][0] != "line", sum(len(fold.members) for fold in stack), -stack[0].members[0]


def paths_of(nodes: Nodes, edges: Edges, calls: Sequence[ModuleCall]) -> list[Path]:
    """Return the path of each node in the tree of folds."""
    paths: list[Path] = []
    outside = called_from(calls)
    by_stack: dict[tuple[object, ...], Path] = {}
    for node in nodes:
        if node.kind in ("leaf", "output"):
            paths.append(())
            continue
        key = node.layer, node.cell, node.place
        if key not in by_stack:
            by_stack[key] = _path(node, outside)
        paths.append(by_stack[key])
    uses: defaultdict[int, list[int]] = defaultdict(list)
    for edge in edges:
        uses[edge.source].append(edge.target)
    for i, node in enumerate(nodes):
        if node.kind == "leaf" and uses[i]:
            common = paths[uses[i][0]]
            for user in uses[i][1:]:
                other = paths[user]
                same = next(
                    (d for d, (a, b) in enumerate(zip(common, other, strict=False)) if a != b), min(len(common), len(other))
                )
                common = common[:same]
            others = (d for d, step in enumerate(common) if step[0] == "module" and not is_parameter(node, step[1]))
            paths[i] = common[: next(others, len(common))]
    return paths


def _path(node: GraphNode, outside: Collection[tuple[str, Line | None]]) -> Path:
    steps: list[Step] = []
    parts = prefixes(node.layer)
    steps += [("module", part) for part in parts]
    place, cell = node.place, node.cell
    if place is not None:
        if not parts and cell is not None and cell != place and place.function != cell.function:
            steps += [("call", f"{cell.line}: {cell.source}"), ("function", place.function)]
        if not parts or (node.layer, place) not in outside:
            steps.append(("line", place.where))
    return tuple(steps)


# ------------------------------------------------------------------------------------------------------- without cycles
def _convex(nodes: Nodes, edges: Edges, stacks: Sequence[list[_Fold]]) -> list[tuple[list[_Fold], list[int]]]:
    """Split the members of each stack into as few pieces as it takes for the graph of the pieces to have no cycle."""
    pieces = [(stack, sorted(i for fold in stack for i in fold.members)) for stack in stacks]
    whole = [True] * len(pieces)
    while True:
        place = list(range(len(nodes)))
        for at, (_, members) in enumerate(pieces):
            for i in members:
                place[i] = len(nodes) + at
        cyclic = {c - len(nodes) for c in _on_cycles(place, edges) if c >= len(nodes)}
        if not cyclic:
            return pieces
        split: list[tuple[list[_Fold], list[int]]] = []
        still: list[bool] = []
        for at, (stack, members) in enumerate(pieces):
            if at not in cyclic or not whole[at]:
                split.append((stack, members))
                still.append(whole[at])
                continue
            runs = _runs(members)
            split += [(stack, run) for run in runs]
            still += [False] * len(runs)
        pieces, whole = split, still


def _runs(members: Sequence[int]) -> list[list[int]]:
    """Split into runs of consecutive numbers."""
    runs: list[list[int]] = []
    for i in members:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def _on_cycles(place: Sequence[int], edges: Edges) -> set[int]:
    """Return the places that are on a cycle, or between cycles, when each node is moved to its place: those that Kahn's algorithm
    leaves over from both ends."""
    after: defaultdict[int, set[int]] = defaultdict(set)
    before: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        a, b = place[edge.source], place[edge.target]
        if a != b:
            after[a].add(b)
            before[b].add(a)
    left = set(after) | set(before)
    for ahead, behind in ((after, before), (before, after)):
        missing = {c: len(behind[c] & left) for c in left}
        ready = [c for c in left if not missing[c]]
        while ready:
            c = ready.pop()
            left.discard(c)
            for d in ahead[c]:
                if d in missing and d in left:
                    missing[d] -= 1
                    if not missing[d]:
                        ready.append(d)
    return left


# ---------------------------------------------------------------------------------------------------------------- names
def _stack_group(
    nodes: Nodes,
    uses: Uses,
    stack: list[_Fold],
    members: list[int],
    kinds: Mapping[str, str],
    times: Mapping[str, int],
    plain: bool,
) -> Group:
    """Make one node of a stack or of a piece of one."""
    kind, name = stack[0].path[-1]
    inside = {i: node for i in members if (node := nodes[i]).kind != "leaf"}
    operations = sum(max(node.count, len(node.members)) for node in inside.values())  # including operations hidden in them
    said = count(operations, "operation")
    copies = [[i for i in fold.members if i in inside] for fold in stack] if len(stack) > 1 else []
    if kind == "module":
        rest = name.removeprefix(prefixes(name)[0])
        short = rest[1:] if plain and rest.startswith(".") else name
        label = short if len(stack) == 1 else path_range(short, stack[-1].path[-1][1])
        what, many = kinds.get(name, ""), times.get(name, 1) if len(stack) == 1 else len(stack)
        alone = next(iter(inside.values())).operation if len(inside) == 1 and not what else ""
        again = "" if many == 1 else f"{many} calls" if len(stack) == 1 else f"{many} alike"
        detail = " · ".join(filter(None, (again, what or alone, said if len(inside) > 1 and what not in WHOLE_LAYERS else "")))
        copies = copies or rounds(nodes, uses, sorted(inside), many)
    elif kind == "layer":
        label, detail = name.partition(" ")[0], said if len(inside) > 1 else next(iter(inside.values())).operation
    elif kind == "function":
        often = _times([nodes[i] for i in inside])
        label, detail = f"{name}()", f"{often} times · {said}" if often > 1 else said
        copies = rounds(nodes, uses, sorted(inside), often)
    else:
        label, detail = (
            _expression([node for node in inside.values() if node.place is not None] or list(inside.values()), kind),
            said,
        )
    return group_of(nodes, uses, members, label, detail, copies=copies)


def _times(inside: Sequence[GraphNode]) -> int:
    """Return how often code ran, if all of its operations ran equally often; else 1."""
    often = set(Counter((node.operation, node.place) for node in inside).values())
    return often.pop() if len(often) == 1 else 1


def rounds(nodes: Nodes, uses: Uses, members: Sequence[int], times: int) -> list[list[int]]:
    """Return the last operation of each of several runs; an empty list if the runs cannot be separated."""
    if times < 2:
        return []
    end = nodes[last_used_outside(nodes, uses, members)]
    same = [i for i in members if (nodes[i].operation, nodes[i].place, nodes[i].shape) == (end.operation, end.place, end.shape)]
    each, left = divmod(len(same), times)
    return [] if left or not each else [[i] for i in same[each - 1 :: each]]


def _expression(inside: Sequence[GraphNode], kind: str) -> str:
    """Return the longest expression in a line."""
    places = [node.cell if kind == "call" else node.place for node in inside]
    return brief(max((place.source for place in places if place is not None), key=len, default=""))


def brief(source: str) -> str:
    """Return an expression as the user wrote it; of a long call the function: "F.cross_entropy(…)"."""
    if len(source) <= SHORT:
        return source
    try:
        parsed = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    return f"{source_of(parsed.func)}(…)" if isinstance(parsed, ast.Call) and parsed.args else source
