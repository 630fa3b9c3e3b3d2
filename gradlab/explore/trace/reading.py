"""Build a trace from a recorded graph and the values that were recorded with it.

The graph is read once, through a `Library`, without recursion. The trace refers to no tensor, node or array. For a graph that was
not recorded, it has the structure, the names, and the values that still exist.
"""

from __future__ import annotations

import ast
import gc
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.core.scopes import scope_guard
from gradlab.diagnose.source_locations import source_of
from gradlab.explore.labels import index_written, operation_label, sign
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import count, number, shape_text
from gradlab.explore.module_paths import attribute
from gradlab.explore.names import CalledObject
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import Cut, Event, GraphEdge, GraphNode, ModuleCall, Operand, Shape, Trace
from gradlab.explore.trace.lines import Lines, index_of, literal, operands_of
from gradlab.explore.trace.notes import Note, RecordedArray, RecordedCall, RecordedCut, RecordedEvent, RecordedOperand
from gradlab.explore.trace.values import Value
from gradlab.explore.trace.wholes import Whole, contract

SETTINGS = ("dim", "dims", "dim0", "dim1", "axis", "axes", "exponent")  # shown in labels; see `labels.operation_label`
NAMES_SHOWN = 3  # of one node


@dataclass
class Root:
    """An output: the node that gets its cotangent, with its shape, name and value."""

    node: Any
    shape: Shape
    name: str = ""
    value: Value | None = None
    gradient: Value | None = None  # the cotangent that a sweep started with


@dataclass
class Names:
    """The user's names, by node, or by id for tensors without a node. Holds no tensor."""

    by_node: dict[Any, list[str]] = field(default_factory=dict)
    by_id: dict[int, str] = field(default_factory=dict)
    models: dict[int, str] = field(default_factory=dict)  # names of modules, by id
    objects: dict[int, CalledObject] = field(default_factory=dict)  # of other objects, by the id of their references

    @classmethod
    def of(cls, library: Library, names: Mapping[str, Any]) -> Names:
        """Return the names from {name: tensor}. If a tensor has two names, the first is used."""
        collected = cls()
        for name, tensor in names.items():
            if id(tensor) in collected.by_id or library_of(tensor) is not library:
                continue
            collected.by_id[id(tensor)] = name
            node = library.whole(library.node(tensor))
            if node is not None:
                collected.by_node.setdefault(node, []).append(name)
        return collected


@dataclass
class RecordedValues:
    """The values of a sweep, by node: see `RecordedSweep`."""

    values: dict[Any, Any] = field(default_factory=dict)  # of Value, or Pending while the sweep runs; so are the others
    gradients: dict[Any, Any] = field(default_factory=dict)
    handed: dict[tuple[Any, int], tuple[Any, float | None]] = field(default_factory=dict)
    given: dict[RecordedArray, Any] = field(default_factory=dict)  # arguments that get no gradient
    slopes: dict[Any, Any] = field(default_factory=dict)  # of activations


def trace_of(outputs: Sequence[Any], names: Mapping[str, Any], most: int | None = None) -> Trace:
    """Return the trace of the graph behind tensors that require grad, without a sweep.

    Parameters
    ----------
    outputs : sequence of Tensor
        Tensors of one library.
    names : mapping of str to Tensor
    most : int, optional
        The maximal number of nodes. Of a larger graph, the `most` + 1 nodes nearest to the outputs are read, and one for each
        output.
    """
    library = library_of(outputs[0])
    assert library is not None
    own: dict[int, str] = {}
    for name, tensor in names.items():
        own.setdefault(id(tensor), name)
    roots = [
        Root(library.node(output), tuple(output.shape), own.get(id(output), ""), library.values([output])[0])
        for output in outputs
    ]
    return read(Reader(library, Names.of(library, names)), roots, most=most)


def read(reader: Reader, roots: Sequence[Root], *, most: int | None = None) -> Trace:
    """Return the trace behind some roots. The recorder adds the data of the cell, such as leaves and events."""
    with without_garbage_collection():  # many objects are created, and none of them is garbage
        return _read(reader, roots, most)


def without_garbage_collection() -> AbstractContextManager[None]:
    """Disable the garbage collector in the block."""
    return scope_guard(gc.disable, gc.enable) if gc.isenabled() else nullcontext()


def _read(reader: Reader, roots: Sequence[Root], most: int | None) -> Trace:
    library, names, seen = reader.library, reader.names, reader.seen
    most = library.at_most(most)
    tops = [library.whole(root.node) for root in roots]
    nodes, inputs, wholes = read_graph(library, tops, most)
    reader.index = index = {node: i for i, node in enumerate(nodes)}
    for last, call in wholes.items():
        index |= dict.fromkeys(call.members, index[last])
    read_nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    uses: Counter[int] = Counter()
    leaves = 0
    recorded = False
    notes = _notes(library, nodes, inputs)
    users = Counter(source for sources in inputs for source in sources)
    for i, node in enumerate(nodes):
        operation, name = library.name_of(node), ", ".join(names.by_node.get(node, ())[:NAMES_SHOWN])
        shape, value, gradient = reader.shape(node), reader.value(node), seen.gradients.get(node)
        dtype = library.dtype_of(node) or (value.dtype if value is not None else "")
        if operation == "AccumulateGrad" or (not inputs[i] and library.variable(node) is not None):
            leaves += not name
            variable = library.variable(node)
            form = "" if variable is None else library.form(variable)
            label = name or f"leaf {leaves}"
            read_nodes.append(GraphNode("leaf", label, name, operation, shape, form, dtype=dtype, value=value, gradient=gradient))
            continue
        note = notes.get(node)
        recorded |= note is not None
        whole: Whole | None = wholes.get(node)
        if whole is not None and note is not None:
            operation, note = whole.call.operation, note.as_whole()
        one = reader.operation(
            node, note, operation, name, shape, dtype, value, gradient, [s for s in inputs[i] if s is not None]
        )
        read_nodes.append(one if whole is None else replace(one, label=whole.call.name, slopes=None))
        for argument, source in enumerate(inputs[i]):
            if source is not None:
                entries = [(node, argument)] if whole is None else whole.entries[source]
                handed, share = reader.edge_gradient(source, entries, None if whole is None else users[source])
                edges.append(GraphEdge(index[source], i, argument, reader.shape(source), handed, share))
                uses[index[source]] += 1
    for edge in edges:  # if one line runs several operations, only the last has the name
        if edge.source in reader.assigned and read_nodes[edge.target].place == read_nodes[edge.source].place:
            read_nodes[edge.source] = replace(read_nodes[edge.source], name="")
    for position, (root, top) in enumerate(zip(roots, tops, strict=True), start=1):
        unnamed = "loss" if top in wholes and not wholes[top].call.is_layer else "output"
        label = root.name or (unnamed if len(roots) == 1 else f"{unnamed} {position}")
        at = index[top]
        made_by = read_nodes[at]
        if made_by.kind == "operation" and made_by.name == root.name and not uses[at]:
            read_nodes[at] = replace(made_by, name="")  # the output has the name
        edges.append(GraphEdge(at, len(read_nodes), 0, root.shape, root.gradient))
        read_nodes.append(
            GraphNode(
                "output",
                label,
                root.name,
                "",
                root.shape,
                _root_text(root),
                value=root.value,
                gradient=root.gradient or made_by.gradient,
            )
        )
    return Trace(
        library.name,
        tuple(read_nodes),
        tuple(edges),
        recorded=recorded,
        objects=tuple(ModuleCall(path, kind, 0, graded=True, place=None) for path, kind in reader.objects.items()),
        cut_off=most is not None and len(read_nodes) - len(roots) > most,
    )


def _notes(library: Library, nodes: Sequence[Any], inputs: Sequence[Sequence[Any]]) -> dict[Any, Note]:
    """Return the notes of nodes. A node without a note whose users are all parts of one layer is a part of it, too, because in a
    large graph a recorder adds notes only to the nodes nearest to the result."""
    notes: dict[Any, Note] = {}
    users: dict[Any, list[Any]] = {}
    for node, sources in zip(reversed(nodes), reversed(inputs), strict=True):
        note = library.note(node)
        if note is None and sources:
            around = [notes.get(user) for user in users.get(node, ())]
            parts = {one.part_of if one is not None and one.inner else None for one in around}
            note = around[0] if len(parts) == 1 and None not in parts else None
        if note is not None:
            notes[node] = note
        for source in sources:
            if source is not None:
                users.setdefault(source, []).append(node)
    return notes


class Reader:
    """A reader that converts nodes to `GraphNode`."""

    def __init__(self, library: Library, names: Names, seen: RecordedValues | None = None) -> None:
        self.library, self.names, self.seen, self.lines = library, names, seen or RecordedValues(), Lines()
        self.index: Mapping[Any, int] = {}
        self.assigned: set[int] = set()  # nodes that have their name from their line
        self._shapes: dict[Any, Shape | None] = {}
        self._paths: dict[int, str] = {}
        self._tensors: set[str] | None = None
        self._written: dict[int, list[tuple[Any, Any]]] = {}  # by parsed operation, which `lines` keeps
        self.objects: dict[str, str] = {}  # the classes of the objects that made nodes, by path
        self.calls: set[RecordedCall] = set()  # calls that recorded a node of the graph, also in nested calls
        self.reaching: list[RecordedCut] = []  # the cuts whose result reached the graph
        self._reached: dict[int, list[int]] = {}  # the nodes that these results reached

    def shape(self, node: Any) -> Shape | None:
        """Return the shape of a node's tensor, from the library or from the sweep."""
        if node not in self._shapes:
            shape = self.library.shape(node)
            if shape is None and (seen := self.seen.gradients.get(node)) is not None:
                shape = seen.shape
            self._shapes[node] = shape
        return self._shapes[node]

    def value(self, node: Any) -> Value | None:
        """Return the value of a node from the sweep, or the value that still exists."""
        value: Value | None = self.seen.values.get(node)
        return self._read_pending(self.library.value_at(node)) if value is None else value

    def edge_gradient(
        self, source: Any, entries: Sequence[tuple[Any, int]], users: int | None
    ) -> tuple[Value | None, float | None]:
        """Return the gradient that a node passed to `source`, and its share of the gradient of `source`.

        `entries` are the operations of the node that use `source`, with the number of the argument. If there are several, their
        sum is known if the node is the only one of the `users` of `source`."""
        alone = self.seen.gradients.get(source)
        known: tuple[Value | None, float | None] = alone, None if alone is None else 1.0
        if len(entries) == 1:
            return self.seen.handed.get(entries[0], known)
        return known if users == 1 else (None, None)

    def kept_value(self, kept: RecordedArray | None) -> Value | None:
        """Return the value of a recorded array."""
        if kept in self.seen.given:
            value: Value | None = self.seen.given[kept]
            return value
        return None if kept is None else self._read_pending(self.library.kept_value(kept))

    def _read_pending(self, value: Any) -> Value | None:
        settled: Value | None = self.library.read_pending([value])[0]
        return settled

    def event(self, happening: RecordedEvent) -> Event:
        """Return a recorded event with the names of its leaves."""
        return Event(
            happening.kind,
            self.lines.line(happening.site),
            tuple(name for i in happening.leaves if (name := self.names.by_id.get(i))),
            happening.leaves,
            happening.optimizer,
            happening.rates,
            happening.maximizes,
            happening.held,
            happening.whose,
            self.lines.line(happening.cell),
            happening.checked,
            happening.scale,
        )

    def operation(
        self,
        node: Any,
        note: Note | None,
        operation: str,
        name: str,
        shape: Shape | None,
        dtype: str,
        value: Value | None,
        gradient: Value | None,
        inputs: Sequence[Any],
    ) -> GraphNode:
        library = self.library
        first = next((self.shape(source) for source in inputs), None)
        settings = _settings(library, node)
        exponent = settings.pop("exponent", None)
        label = operation_label(operation, settings, None if first is None else len(first))
        site = library.site(node) or (None if note is None else note.site)
        place = self.lines.line(site)
        expression = self.lines.expression(site)
        operands: tuple[Operand, ...] = ()
        cell = module = None
        layer = ""
        if note is not None:
            cell = place if note.cell is note.site else self.lines.line(note.cell)
            module, layer = self.path(note.call), self.object_path(note)
            call = note.call
            while call is not None and call not in self.calls:
                self.calls.add(call)
                call = call.outer
            if not note.inner:
                operands = self.operands(note, expression)
                for one in note.given:
                    self.mark_reached([loss.severed for loss in one.losses if loss.severed is not None], self.index.get(node, -1))
                if label == "[…]" and lookup(operation).moves == "part":
                    label = index_of(expression) or label
                called = note.call is not None and note.call.site == note.site  # then the line calls a module
                if not name and not called and place is not None and place.target:
                    name = place.target
                    self.assigned.add(self.index[node])
        if label == "to" and dtype and inputs and library.dtype_of(inputs[0]) not in ("", dtype):
            label = f"to {dtype}"
        if label == "[…]":
            label = index_written(library.setting(node, "index"), settings.get("dim")) or label
        if exponent is not None and not any(operand.kind == "constant" for operand in operands):
            written_by_user = note is None or not note.inner
            text = next((source_of(one) for one in operands_of(expression)[1:2] if written_by_user), "")
            operands = (*operands, Operand("constant", 1, text, Value((), "", (exponent,))))
        return GraphNode(
            "operation",
            label,
            name,
            operation,
            shape,
            note.made.form if note is not None and note.made is not None else "",
            place=place,
            cell=cell if cell is not None else place if place is not None and place.in_cell else None,
            module=module or "",
            part_of=None if note is None else note.part_of,
            dtype=dtype,
            value=value,
            gradient=gradient,
            operands=operands,
            slopes=self.seen.slopes.get(node),
            object=layer,
        )

    def path(self, call: Any) -> str:
        """Return the path of a called module from the user's name: "model.layers[0]"; the class's name if it has none."""
        if call is None:
            return ""
        module = call.module()
        if module is None:
            return str(call.kind)
        path = self._paths.get(id(module))
        if path is None:
            path = self.names.models.get(id(module), "")
            if not path and call.outer is not None:
                outer, inside = call.outer.module(), self.path(call.outer)
                step = next((step for step, child in library_children(outer) if child is module), "")
                path = attribute(inside, step, outer) if step else f"{inside}.{call.kind}"
            self._paths[id(module)] = path = path or str(call.kind)
        return path

    def object_path(self, note: Note) -> str:
        """Return the path of the innermost named object that recorded a node, but not in modules that it called; else ""."""
        objects = self.names.objects
        named = [one for ref, code in note.methods if (one := objects.get(id(ref))) is not None and code in one.methods]
        self.objects.update((one.path, one.kind) for one in reversed(named))
        return named[0].path if named else ""

    def operands(self, note: Note, expression: Any) -> tuple[Operand, ...]:
        """Return the arguments of an operation that get no gradient, with their text in the source."""
        module = note.call is not None and note.call.site == note.site  # then the source calls a module
        free = [] if module else list(self._operands_of(expression))
        operands = []
        for operand in note.given:
            value = self.kept_value(operand.kept)
            tensor = operand.tensor() if operand.tensor is not None else None
            name = self.names.by_id.get(id(tensor), "") if tensor is not None else ""
            cut = self.cut(operand, value)
            kind = "cut" if cut is not None else "constant" if operand.number is not None else "input"
            text = name or self._operand_text(operand, free)
            if text or kind != "input" or note.part_of is None:  # else the layer created it, such as an initial state of zeros
                operands.append(Operand(kind, operand.argument, text, value, cut))
        return tuple(operands)

    def _operands_of(self, expression: Any) -> Sequence[tuple[Any, Any]]:
        """Return the parsed operands of an operation with their literal numbers."""
        operands = self._written.get(id(expression))
        if operands is None:
            operands = self._written[id(expression)] = [(node, literal(node)) for node in operands_of(expression)]
        return operands

    def _operand_text(self, operand: RecordedOperand, free: list[tuple[Any, Any]]) -> str:
        """Return the source of an argument: the literal with its value, or the only remaining operand."""
        if operand.number is not None:
            for one in free:
                if one[1] == operand.number:
                    free.remove(one)
                    return source_of(one[0])
        left = [one for one in free if one[1] is None and not self._mentions_tensors(one[0])]
        if operand.number is None and operand.argument < len(free) and free[operand.argument] in left:
            left = [free[operand.argument]]
        if len(left) == 1:
            free.remove(left[0])
            return source_of(left[0][0])
        return ""

    def _mentions_tensors(self, expression: Any) -> bool:
        """Return True if a parsed expression contains the name of a tensor of the graph."""
        if self._tensors is None:
            self._tensors = {name for called in self.names.by_node.values() for name in called}
        return any(
            isinstance(node, (ast.Name, ast.Attribute)) and source_of(node) in self._tensors for node in ast.walk(expression)
        )

    def mark_reached(self, cuts: Sequence[RecordedCut], node: int) -> None:
        """Record that a node has the result of some cuts as an input, or is that result."""
        for cut in cuts:
            if id(cut) not in self._reached:
                self.reaching.append(cut)
            self._reached.setdefault(id(cut), []).append(node)

    def cut(self, operand: RecordedOperand, value: Value | None) -> Cut | None:
        """Return the cut at which an argument lost its history, if it had one."""
        severed = next((loss.severed for loss in operand.losses if loss.severed is not None and loss.severed.how != "born"), None)
        return None if severed is None else self.describe_cut(severed, value)

    def describe_cut(self, cut: RecordedCut, value: Value | None = None) -> Cut:
        """Return a recorded cut as data of a trace."""
        nodes = [node for ref in cut.leaves if (node := ref()) is not None]
        behind = tuple(dict.fromkeys(self.index[node] for node in nodes if node in self.index))
        leaves = tuple(name for node in nodes for name in self.names.by_node.get(node, ())[:1])
        label = leaves[0] if cut.operation == "AccumulateGrad" and leaves else sign(cut.operation)
        before = self.kept_value(cut.kept)
        variables = [self.library.variable(node) for node in nodes]
        return Cut(
            cut.how,
            self.lines.line(cut.site),
            label,
            cut.operation,
            cut.shape,
            behind,
            value or before,
            leaves,
            tuple(id(variable) for variable in variables if variable is not None),
            tuple(self._reached.get(id(cut), ())),
            self.lines.line(cut.cell),
            cut.old,
            cut.aside,
            self.lines.line(cut.within),
            cut.by_them,
        )


def library_children(module: Any) -> list[tuple[str, Any]]:
    """Return the submodules of a module with their names. Both libraries store them in `_modules`."""
    children = getattr(module, "_modules", None)
    return list(children.items()) if isinstance(children, dict) else []


def spine_first(library: Library, roots: Sequence[Any], most: int | None = None) -> tuple[list[Any], list[list[Any]]]:
    """Return all nodes behind `roots`, each after its inputs and the deepest input first, and the inputs of each node. Of more
    than `most` nodes, only those nearest to the roots are returned; other inputs are None.

    The parameters of an operation come directly before it, and the layers of a network are consecutive intervals. The result
    keeps every node alive, so ids stay valid. A call that is shown as one operation has one node (see `wholes`).
    """
    return read_graph(library, roots, most)[:2]


def read_graph(
    library: Library, roots: Sequence[Any], most: int | None = None
) -> tuple[list[Any], list[list[Any]], dict[Any, Whole]]:
    """Return the nodes and their inputs as `spine_first`, and the nodes that stand for whole calls."""
    inputs: dict[Any, list[Any]] = {}
    most = library.at_most(most)
    kept = None if most is None else _nearest(library, roots, most)

    def sources(node: Any) -> list[Any]:
        inputs[node] = [library.whole(source) for source in library.inputs(node)]
        if kept is not None:
            inputs[node] = [source if source in kept else None for source in inputs[node]]
        return [source for source in inputs[node] if source is not None]

    ordered = deepest_first(roots, sources)
    return contract(library, ordered, [inputs[node] for node in ordered], roots)


def deepest_first(roots: Sequence[Any], sources: Callable[[Any], list[Any]]) -> list[Any]:
    """Return all nodes behind `roots`, each after its sources and the deepest source first. `sources` is called once for each."""
    depth: dict[Any, int] = {}
    known: dict[Any, list[Any]] = {}

    def known_sources(node: Any) -> list[Any]:
        known[node] = sources(node)
        return known[node]

    for node in _after_their_sources(roots, known_sources):
        depth[node] = max((depth[source] + 1 for source in known[node]), default=0)
    return _after_their_sources(roots, lambda node: sorted(known[node], key=lambda source: -depth[source]))


def _nearest(library: Library, roots: Sequence[Any], most: int) -> set[Any] | None:
    """Return the `most` + 1 nodes with the shortest distance to the roots; None if there are at most `most` nodes."""
    nearest: dict[Any, None] = dict.fromkeys(roots)
    order = list(nearest)
    for node in order:  # grows during the iteration
        for source in library.inputs(node):
            source = library.whole(source)
            if source is not None and source not in nearest:
                nearest[source] = None
                order.append(source)
                if len(order) > most:
                    return set(order)
    return None


def _after_their_sources(roots: Sequence[Any], sources: Callable[[Any], list[Any]]) -> list[Any]:
    """Return the nodes of a depth-first search, each after its sources. `sources` is called once for each."""
    ordered: list[Any] = []
    seen: set[Any] = set()
    waiting: list[tuple[Any, bool]] = [(root, False) for root in reversed(roots)]
    while waiting:
        node, done = waiting.pop()
        if done:
            ordered.append(node)
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(source, False) for source in reversed(sources(node)) if source not in seen]
    return ordered


def _settings(library: Library, node: Any) -> dict[str, Any]:
    """Return the axes and the exponent that a node has saved."""
    settings: dict[str, Any] = {}
    for key, value in library.settings(node, SETTINGS).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            settings[key] = value
        elif isinstance(value, (tuple, list)) and value and all(isinstance(axis, int) for axis in value):
            settings[key] = tuple(value)
    return settings


def _root_text(root: Root) -> str:
    """Return "scalar −0.2749" for a tensor with one element, "3 elements" for a vector, "6×4" for others."""
    shape = root.shape
    if math.prod(shape) != 1 or root.value is None or root.value.numbers is None:
        return shape_text(shape) if len(shape) != 1 else count(shape[0], "element")
    value = root.value.numbers[0]
    said = f"{value:.4g}" if isinstance(value, complex) else number(float(value))
    return f"{shape_text(shape)} {said}" if not shape else f"{shape_text(shape)}: {said}"
