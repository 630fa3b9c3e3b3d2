"""A large graph seen by what the user has named: modules, functions, lines. Each is one node, opened as far as there is room.

Every node has a path: the modules that it was made in, or the line of the cell and the function that it called, and last the
line itself. The paths make a tree of folds. What is seen is found from its root on: the largest fold that can be opened
within the limit is opened, again and again, and lines last. Parts of a module that are numbered and alike (the blocks of a
transformer) stand behind each other as one stack; opening a stack opens its first copy.

A parameter belongs to the innermost fold that holds all its uses. An operation that only moves or reshapes is hidden in what it
moves. A fold that the graph leaves and enters again (a function that is called at every step) is drawn once for each time.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.graph.contraction import Group, Uses, contracted, folded, handing_on, uses_of
from gradlab.explore.markup import count
from gradlab.explore.module_paths import CALL, is_below, path_range, prefixes
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, ModuleCall

Step = tuple[str, str]  # a kind (module, call, function, line) and what it is called
Path = tuple[Step, ...]
Nodes = Sequence[GraphNode]
Edges = Sequence[GraphEdge]

SHORT = 26  # characters of an expression that is said whole
# Modules of the libraries that compute a layer in many operations, or in one of a name that nobody wrote.
WHOLE_LAYERS = frozenset(("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "EmbeddingBag"))


def without_moves(nodes: Nodes, edges: Edges, calls: Sequence[ModuleCall] = ()) -> tuple[Nodes, Edges]:
    """The graph in which what only moves or reshapes a tensor is hidden in the operation that made it, or in its one use; of
    what a whole layer moves in one of its own."""
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
    for i in reversed(range(len(nodes))):  # of what no operation made: where it is used
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
    return contracted(nodes, _past_moves(edges, owner), groups) if groups else (nodes, edges)


def _past_moves(edges: Edges, owner: list[int]) -> list[GraphEdge]:
    """The edges, those from what only moves a tensor to its one use as if they came from the operation that made the tensor: what
    comes back there is that use's part in the sum."""
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
    """An operation with what moves its argument and its result, of which `last` is the last."""
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
    """The whole layer that each operation is a part of: a module of the library, or a call of a function; None of the others.
    `whole` has the paths of the modules, if not their kinds but the caller decides."""
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
    """The modules with the lines that called them. What a module of the library computes has the user's line that called it,
    which lies outside of the module."""
    return {(call.path, call.place) for call in calls}


def whole_layers(
    nodes: Nodes,
    edges: Edges,
    calls: Sequence[ModuleCall],
    unfold: Collection[int] = (),
    whole: Collection[str] | None = None,
) -> tuple[Nodes, Edges]:
    """The graph in which each layer that is computed in many operations, as an LSTM is, is one node with its parameters.

    Parameters
    ----------
    nodes, edges
    calls : sequence of ModuleCall
    unfold : collection of int
        Nodes that are to be seen by themselves, as numbered in `members`.
    whole : collection of str, optional
        The paths of the modules that are one node each. By default those of kinds that compute in many operations.
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
    groups = [_named(nodes, uses, stack, piece, kinds, times, plain) for stack, piece in _convex(nodes, edges, hidden)]
    return contracted(nodes, edges, groups)


def is_parameter(leaf: GraphNode, module: str) -> bool:
    """Whether a leaf that is used in a module alone belongs to it by its name; an input of the module does not."""
    return not leaf.name or any(is_below(name, module) for name in leaf.name.split(", "))


# ----------------------------------------------------------------------------------------------------------------- tree
@dataclass
class _Fold:
    """A node of the tree: the folds in it by their last step, and the nodes that lie in it directly."""

    path: Path
    folds: dict[Step, _Fold] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)

    def operations(self, nodes: Nodes) -> int:
        """How many there are in it."""
        return sum(nodes[i].kind != "leaf" for i in self.members)

    def stacks(self, signature: Mapping[int, object]) -> list[list[_Fold]]:
        """The folds in it, those that are numbered, follow each other and are alike together."""
        inside = sorted(self.folds.values(), key=lambda fold: fold.members[0])
        stacks = alike_stacks([(fold.path[-1], fold.members) for fold in inside], signature)
        return [[self.folds[step] for step, _ in stack] for stack in stacks]


def alike_stacks(
    folds: Sequence[tuple[Step, Sequence[int]]], signature: Mapping[int, object] | Sequence[object]
) -> list[list[tuple[Step, Sequence[int]]]]:
    """Folds (their last steps, and their members) in order, the modules that are numbered, follow each other and are alike
    together."""
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
    """The graph folded by modules, functions and lines to at most `limit` nodes, as far as these allow.

    Parameters
    ----------
    nodes, edges
    limit : int
    calls : sequence of ModuleCall
        Of the modules.
    unfold : iterable of int
        Nodes that are to be seen, whatever the limit.
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
    shut = _whole_objects(root, nodes, root.operations(nodes))  # and folds with every step of a loop in them
    while True:
        shown, opened = _opened(root, nodes, limit, forced, shut, lines=lines)
        pieces = _convex(nodes, edges, shown)
        seen = len(nodes) - sum(len(piece) - 1 for _, piece in pieces)
        times = Counter(stack[0].path for stack, _ in pieces)
        split = {path[:-1] for path, many in times.items() if many > 1} - forced - shut - {()}
        if seen <= limit or not split:
            break
        shut |= split
    plain = (
        len({path[0] for path in opened if path and path[0][0] == "module"}) < 2
    )  # one model: its name need not be said each time
    uses = uses_of(nodes, edges)
    kinds, many = {call.path: call.kind for call in calls}, Counter(call.path for call in calls)
    groups = [
        _named(nodes, uses, stack, piece, kinds, many, plain)
        for stack, piece in pieces
        if len(piece) > 1 or (stack[0].path[-1][0] == "module" and nodes[piece[0]].kind == "operation")
    ]
    return contracted(nodes, edges, groups)


def _whole_objects(fold: _Fold, nodes: Nodes, most: int) -> set[Path]:
    """The objects of the user's that are not opened: those of fewer than `most` operations that hold nothing but lines, and stand
    beside others or hold one line."""
    several = sum(step[0] == "module" for step in fold.folds) > 1
    found = set()
    for inner in fold.folds.values():
        found |= _whole_objects(inner, nodes, most)
        lines = all(step[0] == "line" for step in inner.folds) and (several or len(inner.folds) == 1)
        if lines and inner.operations(nodes) < most and any(nodes[i].object == inner.path[-1][1] for i in inner.members):
            found.add(inner.path)
    return found


def _opened(
    root: _Fold, nodes: Nodes, limit: int, forced: set[Path], shut: set[Path], *, lines: bool
) -> tuple[list[list[_Fold]], set[Path]]:
    """The stacks that are seen, and the folds that were opened for it."""
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
    """What is opened last is the largest but for lines, which are opened when all else is."""
    return stack[0].path[-1][0] != "line", sum(len(fold.members) for fold in stack), -stack[0].members[0]


def paths_of(nodes: Nodes, edges: Edges, calls: Sequence[ModuleCall]) -> list[Path]:
    """The path of each node in the tree of folds."""
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
    """The members of each stack, in as many pieces as it takes for the graph of the pieces to have no cycle."""
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
    """The stretches of consecutive numbers."""
    runs: list[list[int]] = []
    for i in members:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def _on_cycles(place: Sequence[int], edges: Edges) -> set[int]:
    """Which of the places lie on a cycle, or between cycles, when each node is moved to its place: what Kahn's algorithm leaves
    from both ends."""
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
def _named(
    nodes: Nodes,
    uses: Uses,
    stack: list[_Fold],
    members: list[int],
    kinds: Mapping[str, str],
    times: Mapping[str, int],
    plain: bool,
) -> Group:
    """A stack, or a piece of one, as one node."""
    kind, name = stack[0].path[-1]
    inside = {i: node for i in members if (node := nodes[i]).kind != "leaf"}
    operations = sum(max(node.count, len(node.members)) for node in inside.values())  # what is hidden in them too
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
    return folded(nodes, uses, members, label, detail, copies=copies)


def _times(inside: Sequence[GraphNode]) -> int:
    """How often code ran, where all that it did was done equally often; else 1."""
    often = set(Counter((node.operation, node.place) for node in inside).values())
    return often.pop() if len(often) == 1 else 1


def rounds(nodes: Nodes, uses: Uses, members: Sequence[int], times: int) -> list[list[int]]:
    """Of what ran several times the last operation of each time; none where that cannot be told."""
    if times < 2:
        return []
    end = nodes[handing_on(nodes, uses, members)]
    same = [i for i in members if (nodes[i].operation, nodes[i].place, nodes[i].shape) == (end.operation, end.place, end.shape)]
    each, left = divmod(len(same), times)
    return [] if left or not each else [[i] for i in same[each - 1 :: each]]


def _expression(inside: Sequence[GraphNode], kind: str) -> str:
    """What a line computes: the longest expression in it."""
    places = [node.cell if kind == "call" else node.place for node in inside]
    return brief(max((place.source for place in places if place is not None), key=len, default=""))


def brief(source: str) -> str:
    """An expression as the user wrote it; of a long call its function: "F.cross_entropy(…)"."""
    if len(source) <= SHORT:
        return source
    try:
        parsed = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    return f"{source_of(parsed.func)}(…)" if isinstance(parsed, ast.Call) and parsed.args else source
