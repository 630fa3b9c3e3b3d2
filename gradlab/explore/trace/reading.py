"""A trace from a recorded graph, and from what was seen while it was recorded and swept.

The graph is read once, through a `Library`, without recursion; afterwards nothing here refers to a tensor, a node or an array. A
graph that nobody looked at while it was made has its structure, its names, and the values that still exist.
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
from gradlab.explore.labels import index_written, sign, written
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import count, number, shape_text
from gradlab.explore.module_paths import attribute
from gradlab.explore.names import CalledObject
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import Cut, Event, GraphEdge, GraphNode, ModuleCall, Operand, Shape, Trace
from gradlab.explore.trace.lines import Lines, index_of, literal, operands_of
from gradlab.explore.trace.notes import Called, Given, Happening, KeptArray, Note, Severed
from gradlab.explore.trace.values import Value

SETTINGS = ("dim", "dims", "dim0", "dim1", "axis", "axes", "exponent")  # what a label may tell; see `labels.written`
NAMES_SHOWN = 3  # of one node


@dataclass
class Root:
    """An output: the node that its cotangent arrives at, and what is known of it."""

    node: Any
    shape: Shape
    name: str = ""
    value: Value | None = None
    gradient: Value | None = None  # the cotangent that a sweep started with


@dataclass
class Names:
    """The user's names, by node and, of tensors without one, by identity. Holds no tensor."""

    by_node: dict[Any, list[str]] = field(default_factory=dict)
    by_id: dict[int, str] = field(default_factory=dict)
    models: dict[int, str] = field(default_factory=dict)  # modules' names, by identity
    objects: dict[int, CalledObject] = field(default_factory=dict)  # other objects', by the identity of their references

    @classmethod
    def of(cls, library: Library, names: Mapping[str, Any]) -> Names:
        """Those of {name: tensor}; of two names for one tensor the first."""
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
class Seen:
    """What a sweep brought, by node: see `recorder.Sweep`."""

    values: dict[Any, Any] = field(default_factory=dict)  # of Value; Pending while the sweep runs, as the others
    gradients: dict[Any, Any] = field(default_factory=dict)
    handed: dict[tuple[Any, int], tuple[Any, float | None]] = field(default_factory=dict)
    given: dict[KeptArray, Any] = field(default_factory=dict)  # what operations were given that no gradient goes to
    slopes: dict[Any, Any] = field(default_factory=dict)  # of activations


def trace_of(outputs: Sequence[Any], names: Mapping[str, Any], most: int | None = None) -> Trace:
    """The trace of the graph behind tensors that require grad, without a sweep.

    Parameters
    ----------
    outputs : sequence of Tensor
        Of one library.
    names : mapping of str to Tensor
    most : int, optional
        Of a graph of more nodes those nearest to the outputs are read, one more than `most` of them, and one for each output.
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
    """The trace behind some roots. What belongs to the cell and not to the graph (leaves, events) is the recorder's to add."""
    with uncollected():  # there is much of what is made here, and nothing of it is garbage
        return _read(reader, roots, most)


def uncollected() -> AbstractContextManager[None]:
    """The garbage collector waits for the end of the block."""
    return scope_guard(gc.disable, gc.enable) if gc.isenabled() else nullcontext()


def _read(reader: Reader, roots: Sequence[Root], most: int | None) -> Trace:
    library, names, seen = reader.library, reader.names, reader.seen
    most = library.at_most(most)
    tops = [library.whole(root.node) for root in roots]
    nodes, inputs = spine_first(library, tops, most)
    reader.index = index = {node: i for i, node in enumerate(nodes)}
    read_nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    uses: Counter[int] = Counter()
    leaves = 0
    recorded = False
    notes = _notes(library, nodes, inputs)
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
        read_nodes.append(
            reader.operation(node, note, operation, name, shape, dtype, value, gradient, [s for s in inputs[i] if s is not None])
        )
        for argument, source in enumerate(inputs[i]):
            if source is not None:
                alone = seen.gradients.get(source)
                handed, share = seen.handed.get((node, argument), (alone, None if alone is None else 1.0))
                edges.append(GraphEdge(index[source], i, argument, reader.shape(source), handed, share))
                uses[index[source]] += 1
    for edge in edges:  # of what one line made in several operations the last has the name
        if edge.source in reader.assigned and read_nodes[edge.target].place == read_nodes[edge.source].place:
            read_nodes[edge.source] = replace(read_nodes[edge.source], name="")
    for position, (root, top) in enumerate(zip(roots, tops, strict=True), start=1):
        label = root.name or ("output" if len(roots) == 1 else f"output {position}")
        at = index[top]
        made_by = read_nodes[at]
        if made_by.kind == "operation" and made_by.name == root.name and not uses[at]:
            read_nodes[at] = replace(made_by, name="")  # it is said next door
        edges.append(GraphEdge(at, len(read_nodes), 0, root.shape, root.gradient))
        read_nodes.append(
            GraphNode(
                "output",
                label,
                root.name,
                "",
                root.shape,
                _said(root),
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
    """The notes of nodes. One without a note of its own of which only parts of one whole layer make use is a part of it, too:
    of very many a recorder has touched those nearest to the result."""
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
    """What each node becomes."""

    def __init__(self, library: Library, names: Names, seen: Seen | None = None) -> None:
        self.library, self.names, self.seen, self.lines = library, names, seen or Seen(), Lines()
        self.index: Mapping[Any, int] = {}
        self.assigned: set[int] = set()  # nodes that have a name by the line that they stand in
        self._shapes: dict[Any, Shape | None] = {}
        self._paths: dict[int, str] = {}
        self._tensors: set[str] | None = None
        self._written: dict[int, list[tuple[Any, Any]]] = {}  # by parsed operation, which `lines` keeps
        self.objects: dict[str, str] = {}  # the classes of the objects that made nodes, by path
        self.calls: set[Called] = set()  # that made a node of the graph, themselves or in calls inside of them
        self.reaching: list[Severed] = []  # the cuts of which something reached the graph
        self._reached: dict[int, list[int]] = {}  # and which nodes

    def shape(self, node: Any) -> Shape | None:
        """Of what a node makes: as the library tells it, or as the sweep saw it."""
        if node not in self._shapes:
            shape = self.library.shape(node)
            if shape is None and (seen := self.seen.gradients.get(node)) is not None:
                shape = seen.shape
            self._shapes[node] = shape
        return self._shapes[node]

    def value(self, node: Any) -> Value | None:
        """What the sweep saw there, else what still exists."""
        value: Value | None = self.seen.values.get(node)
        return self._settled(self.library.value_at(node)) if value is None else value

    def kept(self, kept: KeptArray | None) -> Value | None:
        """What was kept of a tensor."""
        if kept in self.seen.given:
            value: Value | None = self.seen.given[kept]
            return value
        return None if kept is None else self._settled(self.library.kept_value(kept))

    def _settled(self, value: Any) -> Value | None:
        settled: Value | None = self.library.settled([value])[0]
        return settled

    def event(self, happening: Happening) -> Event:
        """What happened to leaves, with their names."""
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
        label = written(operation, settings, None if first is None else len(first))
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
                    self.reached([loss.severed for loss in one.losses if loss.severed is not None], self.index.get(node, -1))
                if label == "[…]" and lookup(operation).moves == "part":
                    label = index_of(expression) or label
                called = note.call is not None and note.call.site == note.site  # then the line is of a call of a module
                if not name and not called and place is not None and place.target:
                    name = place.target
                    self.assigned.add(self.index[node])
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
        """Where a called module is, from the user's name on: "model.layers[0]"; its class's name where it has none."""
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
        """Where the innermost object with a name is that made a node, outside of modules that it called; "" without one."""
        objects = self.names.objects
        named = [one for ref, code in note.methods if (one := objects.get(id(ref))) is not None and code in one.methods]
        self.objects.update((one.path, one.kind) for one in reversed(named))
        return named[0].path if named else ""

    def operands(self, note: Note, expression: Any) -> tuple[Operand, ...]:
        """What an operation was given that no gradient goes to, with the user's words for it."""
        module = note.call is not None and note.call.site == note.site  # then the words are of the call of a module
        free = [] if module else list(self._operands_of(expression))
        operands = []
        for operand in note.given:
            value = self.kept(operand.kept)
            tensor = operand.tensor() if operand.tensor is not None else None
            name = self.names.by_id.get(id(tensor), "") if tensor is not None else ""
            cut = self.cut(operand, value)
            kind = "cut" if cut is not None else "constant" if operand.number is not None else "input"
            text = name or self._words(operand, free)
            if text or kind != "input" or note.part_of is None:  # else the layer made it, such as a first state of zeros
                operands.append(Operand(kind, operand.argument, text, value, cut))
        return tuple(operands)

    def _operands_of(self, expression: Any) -> Sequence[tuple[Any, Any]]:
        """What a parsed operation is given, as it stands, and the numbers that are written there."""
        operands = self._written.get(id(expression))
        if operands is None:
            operands = self._written[id(expression)] = [(node, literal(node)) for node in operands_of(expression)]
        return operands

    def _words(self, operand: Given, free: list[tuple[Any, Any]]) -> str:
        """The operand of the source that an argument is: the literal of its value, or the one that is left."""
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
        """Whether a parsed expression mentions a tensor of the graph by its name."""
        if self._tensors is None:
            self._tensors = {name for called in self.names.by_node.values() for name in called}
        return any(
            isinstance(node, (ast.Name, ast.Attribute)) and source_of(node) in self._tensors for node in ast.walk(expression)
        )

    def reached(self, cuts: Sequence[Severed], node: int) -> None:
        """What was made at some cuts was given to a node, or is that node."""
        for cut in cuts:
            if id(cut) not in self._reached:
                self.reaching.append(cut)
            self._reached.setdefault(id(cut), []).append(node)

    def cut(self, operand: Given, value: Value | None) -> Cut | None:
        """Where an argument lost its history, if it had one."""
        severed = next((loss.severed for loss in operand.losses if loss.severed is not None and loss.severed.how != "born"), None)
        return None if severed is None else self.severed(severed, value)

    def severed(self, cut: Severed, value: Value | None = None) -> Cut:
        """A cut in words."""
        nodes = [node for ref in cut.leaves if (node := ref()) is not None]
        behind = tuple(dict.fromkeys(self.index[node] for node in nodes if node in self.index))
        leaves = tuple(name for node in nodes for name in self.names.by_node.get(node, ())[:1])
        label = leaves[0] if cut.operation == "AccumulateGrad" and leaves else sign(cut.operation)
        before = self.kept(cut.kept)
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
    """The modules that a module holds, by name: both libraries keep them so."""
    children = getattr(module, "_modules", None)
    return list(children.items()) if isinstance(children, dict) else []


def spine_first(library: Library, roots: Sequence[Any], most: int | None = None) -> tuple[list[Any], list[list[Any]]]:
    """All nodes behind `roots`, each after its inputs and the deepest of these first; and the inputs of each. Of more than `most`
    nodes those nearest to the roots; what is further away is None among the inputs.

    An operation's parameters so come just before it, and the layers of a network are intervals one after another. The
    result holds every node, so that identities stay valid.
    """
    inputs: dict[Any, list[Any]] = {}
    most = library.at_most(most)
    kept = None if most is None else _nearest(library, roots, most)

    def sources(node: Any) -> list[Any]:
        inputs[node] = [library.whole(source) for source in library.inputs(node)]
        if kept is not None:
            inputs[node] = [source if source in kept else None for source in inputs[node]]
        return [source for source in inputs[node] if source is not None]

    ordered = deepest_first(roots, sources)
    return ordered, [inputs[node] for node in ordered]


def deepest_first(roots: Sequence[Any], sources: Callable[[Any], list[Any]]) -> list[Any]:
    """All nodes behind `roots`, each after its sources and the deepest of these first. `sources` is asked once for each."""
    depth: dict[Any, int] = {}
    known: dict[Any, list[Any]] = {}

    def asked(node: Any) -> list[Any]:
        known[node] = sources(node)
        return known[node]

    for node in _after_their_sources(roots, asked):
        depth[node] = max((depth[source] + 1 for source in known[node]), default=0)
    return _after_their_sources(roots, lambda node: sorted(known[node], key=lambda source: -depth[source]))


def _nearest(library: Library, roots: Sequence[Any], most: int) -> set[Any] | None:
    """The nodes that take the fewest steps from the roots, one more than `most` of them; None if there are no more."""
    nearest: dict[Any, None] = dict.fromkeys(roots)
    order = list(nearest)
    for node in order:  # grows while it is read
        for source in library.inputs(node):
            source = library.whole(source)
            if source is not None and source not in nearest:
                nearest[source] = None
                order.append(source)
                if len(order) > most:
                    return set(order)
    return None


def _after_their_sources(roots: Sequence[Any], sources: Callable[[Any], list[Any]]) -> list[Any]:
    """A depth-first search: each node after its sources, the first of these first. Each is asked for once."""
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
    """The axes and the exponent that a node keeps."""
    settings: dict[str, Any] = {}
    for key, value in library.settings(node, SETTINGS).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            settings[key] = value
        elif isinstance(value, (tuple, list)) and value and all(isinstance(axis, int) for axis in value):
            settings[key] = tuple(value)
    return settings


def _said(root: Root) -> str:
    """ "scalar −0.2749" of a tensor with one element, "3 elements" of a vector, "6×4" of others."""
    shape = root.shape
    if math.prod(shape) != 1 or root.value is None or root.value.numbers is None:
        return shape_text(shape) if len(shape) != 1 else count(shape[0], "element")
    value = root.value.numbers[0]
    said = f"{value:.4g}" if isinstance(value, complex) else number(float(value))
    return f"{shape_text(shape)} {said}" if not shape else f"{shape_text(shape)}: {said}"
