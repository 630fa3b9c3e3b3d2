"""Convert a recorded `Run` to plain data: a `Trace` that can be drawn, the cost of each node, and the modules as a tree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlab.explore.forward.labels import READS
from gradlab.explore.forward.run import LIBRARIES, ModuleRun, OwnedTensor, Run, RunNode
from gradlab.explore.keras_layers import is_keras_layer, is_own_layer, settings_of
from gradlab.explore.labels import shorten
from gradlab.explore.markup import shape_text
from gradlab.explore.module_paths import CALL, is_below, prefixes, without_root
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, ModuleCall, Trace
from gradlab.explore.trace.lines import Lines

Shape = tuple[int, ...]
LONGEST = 44  # characters of a detail


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one node.

    Attributes
    ----------
    flops : int or None
        None if the operations of the function are not counted.
    size : int
        Bytes.
    seconds : float
    parameters : int
        Elements of a parameter.
    writes : int
        The number of buffers and parameters that it writes to.
    """

    flops: int | None = None
    size: int = 0
    seconds: float = 0.0
    parameters: int = 0
    writes: int = 0


@dataclass(slots=True)
class Part:
    """A call of a module, several calls of one function in a module, or a module that was not called.

    Attributes
    ----------
    path : str
        The path of a module, or the name of a function.
    name : str
        The path of several equal modules; "" for a single one.
    kind : str
        The class; "" for a function.
    depth : int
    shapes : str
        The shape of the result, "" if there is none.
    calls : int
        The number of calls of a function.
    flops : int
    counted : bool
        True if the operations of one of the calls are counted.
    size : int
        Bytes of the results of the calls.
    seconds : float
    parameters : int
        Elements of the parameters that it and the modules in it own. Each is counted once, at its first call.
    called, failed : bool
    settings : str
        The `extra_repr` of the module: "in_features=784, out_features=10".
    base : str
        The path without the numbers of calls.
    parts : list of Part
    """

    path: str
    kind: str
    depth: int
    shapes: str = ""
    calls: int = 1
    flops: int = 0
    counted: bool = False
    size: int = 0
    seconds: float = 0.0
    parameters: int = 0
    called: bool = True
    failed: bool = False
    settings: str = ""
    base: str = ""
    name: str = ""
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True)
class Assembled:
    """A run as plain data.

    Attributes
    ----------
    trace : Trace
    costs : tuple of Cost
        One for each node of the trace.
    whole : dict of str to str
        The calls that are drawn as one node, by path: modules of the library in which no other module runs. The value is a
        description: "Linear(in_features=784, out_features=10, bias=True)".
    tree : tuple of Part
        The modules and functions that were called outside modules.
    owned : tuple of OwnedTensor
        The parameters and buffers of the models.
    failed : int or None
        The node of the call that raised.
    uncounted : tuple of str
        The functions whose operations are not counted, the most frequent first.
    timed, truncated : bool
        True if calls were timed, and if there were more calls than are recorded.
    training : bool
        True if a module was in training mode.
    root : str
        The name of the model, if one ran; else "".
    """

    trace: Trace
    costs: tuple[Cost, ...]
    whole: dict[str, str]
    tree: tuple[Part, ...]
    owned: tuple[OwnedTensor, ...]
    failed: int | None
    uncounted: tuple[str, ...]
    timed: bool
    truncated: bool
    training: bool
    root: str


def assemble(run: Run) -> Assembled:
    """Return a recorded run as plain data."""
    lines = Lines()
    paths = number_calls(run.modules)
    root = _root_of(run)
    values = run.library.read_pending([node.value for node in run.nodes])
    numbers = Counter(id(node.module) for node in run.nodes if node.kind == "call" and node.module is not None)
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    for at, (made, value) in enumerate(zip(run.nodes, values, strict=True)):
        nodes.append(_node(made, value, lines, paths, root))
        for argument, source in enumerate(made.sources):
            edges.append(GraphEdge(source, at, argument, run.nodes[source].shape))
    calls = tuple(
        ModuleCall(paths[id(call)], call.kind, _depth(call), True, lines.line(call.site), numbers[id(call)], call.training, True)
        for call in run.modules
    )
    whole = {
        paths[id(call)]: f"{call.kind}({_settings(call.module)})"
        for call in run.modules
        if not call.inner and numbers[id(call)] and _is_librarys(call.module) and call.outer is not None
    }
    trace = Trace(run.library.name, tuple(nodes), tuple(edges), calls=calls, recorded=True)
    costs = tuple(
        Cost(made.flops, made.size, made.seconds, made.elements if made.kind == "parameter" else 0, len(made.writes))
        for made in run.nodes
    )
    ran = {prefixes(call.path)[0] for call in run.modules}
    ran |= {prefixes(made.label)[0] for made in run.nodes if made.kind in ("parameter", "buffer") and made.label}
    uncounted = Counter(node.function for node in run.nodes if node.kind == "call" and node.flops is None and node.shapes)
    return Assembled(
        trace,
        costs,
        whole,
        tuple(_tree(run, paths)),
        tuple(one for one in run.owned.values() if prefixes(one.path)[0] in ran),
        next((at for at, made in enumerate(run.nodes) if made.failed), None),
        tuple(name for name, _ in uncounted.most_common()),
        run.timed,
        run.truncated,
        any(call.training for call in run.modules),
        root,
    )


def _is_librarys(module: Any) -> bool:
    return is_own_layer(module) or type(module).__module__.partition(".")[0] in LIBRARIES


def _depth(call: ModuleRun) -> int:
    depth = 0
    while call.outer is not None:
        call, depth = call.outer, depth + 1
    return depth


def number_calls(modules: Sequence[ModuleRun]) -> dict[int, str]:
    """Return the path of each call by its id. If a module is called several times, the path has the number of the call."""

    def is_inside(call: ModuleRun) -> bool:
        return call.outer is not None and is_below(call.path, call.outer.path)

    keys = [(id(call.outer) if is_inside(call) else 0, call.path) for call in modules]
    times, so_far = Counter(keys), Counter[tuple[int, str]]()
    paths: dict[int, str] = {}
    for call, key in zip(modules, keys, strict=True):
        so_far[key] += 1
        path = call.path
        if call.outer is not None and is_inside(call):
            path = paths[id(call.outer)] + path[len(call.outer.path) :]
        if times[key] > 1:
            end = "]" if path.endswith("]") else ""
            path = f"{path.removesuffix(end)}{CALL}{so_far[key]}{end}"
        paths[id(call)] = path
    return paths


def _root_of(run: Run) -> str:
    """Return the name of the model that ran, which labels leave out; "" if there are several."""
    outermost = {call.path for call in run.modules if call.outer is None}
    roots = outermost if len(outermost) == 1 else {prefixes(path)[0] for path in outermost}
    return roots.pop() if len(roots) == 1 else ""


def _node(made: RunNode, value: Any, lines: Lines, paths: Mapping[int, str], root: str) -> GraphNode:
    place = lines.line(made.site)
    module = "" if made.module is None else paths[id(made.module)]
    shape = made.shape
    shown = shape_text(shape) if shape is not None else ""
    if made.kind == "output":
        return GraphNode("output", made.label, shape=shape, detail=f"{shown} {made.dtype}".strip(), dtype=made.dtype, value=value)
    if made.kind != "call":
        word = {"buffer": "buffer", "constant": "constant"}.get(made.kind, "")
        dtype = "" if made.kind == "parameter" and made.dtype == "float32" else made.dtype
        detail = " ".join(filter(None, (word, shown, dtype)))
        label = without_root(made.label, root) or shown or "tensor"
        return GraphNode(
            "leaf", label, name=made.label, operation=made.kind, shape=shape, detail=detail, dtype=made.dtype, value=value
        )
    label, details = made.label, []
    if made.function == "__bool__" and place is not None and place.source:
        word = place.statement.partition(" ")[0]
        label = shorten(f"{word} {place.source}" if word in ("if", "elif", "while", "assert") else place.source, 30)
    elif made.function in READS:
        label = f"{made.label}()"
    if len(made.shapes) > 1:
        details.append(_several(made.shapes))
    if made.detail:
        details.append(f"= {made.detail}" if made.function in READS else made.detail)
    if made.writes:
        details.append(f"writes {', '.join(path.rpartition('.')[2] for path in made.writes)}")
    return GraphNode(
        "operation",
        label,
        name="" if place is None or made.failed or "." in place.target else _users_target(place, made),
        operation=made.function,
        shape=shape,
        detail=shorten(" · ".join(details), LONGEST),
        place=place,
        module=module,
        dtype=made.dtype,
        value=value,
    )


def _users_target(place: Line, made: RunNode) -> str:
    """Return the name to which the user's line assigns the result; "" in a module of the library."""
    return "" if made.module is not None and _is_librarys(made.module.module) else place.target


def _several(shapes: Sequence[Shape | None]) -> str:
    """Return several shapes as text: "3 of 2×8×64", "2×8 and 4×2×8"."""
    texts = [shape_text(shape) for shape in shapes if shape is not None]
    if len(set(texts)) == 1 and len(texts) > 1:
        return f"{len(texts)} of {texts[0]}"
    return " and ".join(texts) if len(texts) <= 2 else f"{', '.join(texts[:2])} and {len(texts) - 2} more"


# ----------------------------------------------------------------------------------------------------------------- tree
def _tree(run: Run, paths: Mapping[int, str]) -> list[Part]:
    """Return the calls of modules as a tree, with the functions that each module calls, and the modules that were not called."""
    parts: dict[int, Part] = {}
    tops: list[Part] = []
    functions: dict[tuple[int, str], Part] = {}
    owned_by: Counter[str] = Counter()
    for owned in run.owned.values():
        if owned.kind == "parameter":
            owned_by[owned.module] += owned.elements
    for one in _in_order(run):
        if isinstance(one, ModuleRun):
            outer = parts.get(id(one.outer))
            part = Part(paths[id(one)], one.kind, 0 if outer is None else outer.depth + 1, failed=one.failed, base=one.path)
            part.settings = _settings(one.module)
            part.shapes = _several(one.shapes) if one.shapes else ""
            parts[id(one)] = part
            (tops if outer is None else outer.parts).append(part)
            continue
        if one.kind != "call":
            continue
        around = parts.get(id(one.module))
        whole = around is not None and one.module is not None and not one.module.inner and _is_librarys(one.module.module)
        if whole:
            assert around is not None
            _add_cost(around, one)
            around.failed |= one.failed
            if one.failed:
                around.shapes = ""
            elif not one.module.shapes and one.shapes:  # gradlab does not report what a module returns
                around.shapes = _several(one.shapes)
            continue
        key = id(one.module), one.function
        function = functions.get(key)
        if function is None:
            name = one.function.strip("_") if one.function.startswith("__") else one.function
            function = functions[key] = Part(name, "", 0 if around is None else around.depth + 1, calls=0)
            (tops if around is None else around.parts).append(function)
        function.calls += 1
        function.failed |= one.failed
        function.shapes = _several(one.shapes)
        _add_cost(function, one)
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for path in owned_by:
        for prefix in prefixes(path):
            inside[prefix].append(path)
    seen: set[str] = set()
    for part in tops:
        _sum_up(part, owned_by, inside, seen)
    _add_uncalled(run, tops, owned_by)
    return tops


def _in_order(run: Run) -> list[Any]:
    """Return the nodes and the calls of modules, each call before its contents."""
    order: list[Any] = []
    waiting = list(reversed(run.modules))
    at: dict[int, int] = {id(call): i for i, call in enumerate(run.modules)}
    for node in run.nodes:
        last = -1 if node.module is None else at[id(node.module)]
        while waiting and at[id(waiting[-1])] <= last:
            order.append(waiting.pop())
        order.append(node)
    return [*order, *reversed(waiting)]


def _settings(module: Any) -> str:
    try:
        return settings_of(module) if is_keras_layer(module) else str(module.extra_repr()).replace("\n", " ")
    except Exception:  # noqa: BLE001  (the user's)
        return ""


def _add_cost(part: Part, node: RunNode) -> None:
    part.flops += node.flops or 0
    part.counted |= node.flops is not None
    part.size += node.size
    part.seconds += node.seconds


def _sum_up(part: Part, owned_by: Mapping[str, int], within: Mapping[str, list[str]], seen: set[str]) -> None:
    """Add the costs of the parts in a part. The parameters of a module are counted at its first call. `within` has the modules
    that own parameters, by the modules around them."""
    for inner in part.parts:
        _sum_up(inner, owned_by, within, seen)
        part.flops += inner.flops
        part.counted |= inner.counted
        part.size += inner.size
        part.seconds += inner.seconds
        part.parameters += inner.parameters
    if not part.shapes and part.parts and not part.failed:
        part.shapes = part.parts[-1].shapes
    if part.kind:
        own = [path for path in within.get(part.base, ()) if path not in seen]
        seen.update(own)
        part.parameters += sum(owned_by[path] for path in own)


def _add_uncalled(run: Run, tops: list[Part], owned_by: Mapping[str, int]) -> None:
    """Add the modules that were not called, if none of their parameters was used and none of their submodules was called."""
    at: dict[str, Part] = {}
    waiting = list(tops)
    while waiting:
        part = waiting.pop()
        if part.kind:
            at.setdefault(part.base, part)
        waiting += part.parts
    used = {owned.module for node in run.nodes if (owned := run.owned.get(node.label)) is not None and node.kind == "parameter"}
    busy = {prefix for path in (*at, *used) for prefix in prefixes(path)}
    for path, module in run.known.items():
        around = prefixes(path)[:-1]
        if path in busy or any(prefix not in busy for prefix in around) or not around:
            continue
        if not any(prefix in at and _is_librarys_leaf(at[prefix], run) for prefix in around):
            outer = next((at[prefix] for prefix in reversed(around) if prefix in at), None)
            if outer is not None:
                part = Part(path, type(module).__name__, outer.depth + 1, base=path, called=False, settings=_settings(module))
                part.parameters = sum(size for inside, size in owned_by.items() if inside == path or is_below(inside, path))
                outer.parts.append(part)


def _is_librarys_leaf(part: Part, run: Run) -> bool:
    """Return True for a module of the library that called no other, such as attention, whose projection is a module but not
    called."""
    return _is_librarys(run.known[part.base]) and not part.parts
