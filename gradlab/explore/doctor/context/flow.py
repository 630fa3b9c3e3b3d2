"""The graph of a case as the checks use it: edges both ways, norms of gradients, layers, and descriptions of nodes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from gradlab.core.properties import Properties
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.keras_layers import describe_layer
from gradlab.explore.operations import lookup
from gradlab.explore.trace.data import GraphEdge, Operand, Trace
from gradlab.explore.trace.values import Value

LOSS_REDUCTIONS = ("sum", "mean", "nansum", "product", "logsumexp")  # from the terms of a loss to the loss
AXES = re.compile(r"\w\((\d+(?:, \d+)*)\)$")  # in the label of a node: "softmax(1)", "sum(0, 2)"
MAX_CODE_LENGTH = 70  # characters of code in a message


class Flow:
    """The graph of the last sweep, with derived quantities that several checks use.

    Attributes
    ----------
    case : Case
    trace : Trace
    nodes : list of GraphNode
    ops : list of str
        The operation of each node: "Sigmoid".
    inputs : list of list of GraphEdge
        The edges from the nodes that a node was computed from.
    uses : list of list of GraphEdge
        The edges to the nodes that use the value of a node.
    """

    def __init__(self, case: Case) -> None:
        assert case.trace is not None
        self.case, self.trace = case, case.trace
        self.nodes = self.trace.nodes
        self.ops = [node.operation.partition("Backward")[0] for node in self.nodes]
        self.inputs: list[list[GraphEdge]] = [[] for _ in self.nodes]
        self.uses: list[list[GraphEdge]] = [[] for _ in self.nodes]
        for edge in self.trace.edges:
            self.inputs[edge.target].append(edge)
            self.uses[edge.source].append(edge)

    @cached_property
    def first(self) -> Flow | None:
        """The graph of the first sweep of the training, which may be this one; None if it is not known."""
        case, trace = self.case, self.case.first
        if trace is None or trace is case.trace:
            return None if trace is None else self
        return Flow(Case(trace, case.namespace, past=case.past, first=trace))

    @cached_property
    def properties(self) -> list[Properties]:
        """Facts about the operation of each node, from the table of operations."""
        return [lookup(node.operation) for node in self.nodes]

    @cached_property
    def norms(self) -> list[float | None]:
        """‖cotangent‖ at each node, over all of its outputs; None if it is not known."""
        norms = [None if node.gradient is None else node.gradient.norm for node in self.nodes]
        for i in range(len(self.nodes)):
            if self.trace.library == "torch" and self.is_split(i):
                norms[i] = math.hypot(*(self.edge_norms.get(edge_key(edge), 0.0) for edge in self.uses[i]))
        return norms

    @cached_property
    def edge_norms(self) -> dict[tuple[int, int, int], float]:
        """‖contribution to the cotangent of the source‖ by edge, where it is known. See `edge_key`."""
        return {edge_key(edge): edge.gradient.norm for edge in self.trace.edges if edge.gradient is not None}

    @cached_property
    def weights(self) -> list[int | None]:
        """The weight of each layer: the node of a matrix that is a leaf or a part of one, or -1 for an input that is not a node.

        None for nodes that are not layers.
        """
        weights: list[int | None] = []
        for i, node in enumerate(self.nodes):
            weight: int | None = None
            if self.properties[i].product:
                leaves = [leaf for edge in self.inputs[i] if (leaf := self.weight_of(edge.source)) is not None]
                large = [leaf for leaf in leaves if len(self.nodes[leaf].shape or ()) >= 2]
                inputs = [o for o in node.operands if o.kind == "input" and o.value is not None and len(o.value.shape) >= 2]
                weight = large[-1] if large else -1 if inputs and not leaves else None
            weights.append(weight)
        return weights

    def is_split(self, i: int) -> bool:
        """Return whether a node has several outputs, which are parts of its input."""
        return self.properties[i].several and self.properties[i].moves == "part"

    def is_reshape(self, i: int) -> bool:
        """Return whether a node has all elements of its input in another shape, order of axes or memory layout."""
        # After a write to the base of a view PyTorch records the view as AsStrided, whatever its kind.
        return self.properties[i].moves == "layout" or self.ops[i] == "AsStrided"

    def is_reshape_or_cast(self, i: int) -> bool:
        """Return whether a node has all elements of its input, up to shape and dtype."""
        return self.is_reshape(i) or self.properties[i].moves == "cast"

    def before_reshapes(self, i: int) -> int:
        """Return the node that a node is a reshaped or converted copy of; the node itself if it is not a copy."""
        while self.is_reshape_or_cast(i) and len(self.inputs[i]) == 1:
            i = self.inputs[i][0].source
        return i

    def scales_or_masks(self, i: int) -> bool:
        """Return whether an operation may be between the scores of an attention and their softmax: a scale, a sum or a mask."""
        properties = self.properties[i]
        return properties.adds or properties.multiplies or properties.chooses

    def leaf_of(self, i: int) -> int | None:
        """Return the leaf that a node is, up to shape and dtype; None if it is not one."""
        i = self.before_reshapes(i)
        return i if self.nodes[i].kind == "leaf" else None

    def weight_of(self, i: int) -> int | None:
        """Return the leaf or the part of a leaf that a node is, up to shape and dtype; None if it is neither.

        A part such as `W[k]` of stacked weights is a weight of its own.
        """
        i = self.before_reshapes(i)
        return i if self.nodes[self.origin_of(i)].kind == "leaf" else None

    def axes(self, i: int) -> tuple[int, ...]:
        """Return the axes that an operation reduces or normalises, counted from the left; none if it is over all or not known."""
        found = AXES.search(self.nodes[i].label)
        return tuple(map(int, found[1].split(", "))) if found is not None else ()

    def layer_at(self, i: int) -> int:
        """Return the product with weights that a node is, or to which it adds a bias; `i` itself if there is none."""
        if self.properties[i].adds and len(self.inputs[i]) == 2:
            sources = [edge.source for edge in self.inputs[i]]
            products = [source for source in sources if self.weights[source] is not None]
            if len(products) == 1 and any(self.leaf_of(source) is not None for source in sources):
                return products[0]
        return i

    def origin_of(self, i: int) -> int:
        """Return the node that node `i` is a reshaped copy or a part of; `i` itself if it was computed."""
        while self.properties[i].moves in ("layout", "part", "cast") and len(self.inputs[i]) == 1:
            i = self.inputs[i][0].source
        return i

    @cached_property
    def follows_layer(self) -> list[bool]:
        """Mask of the nodes that depend on a layer whose cotangent is known, finite and not 0."""
        follows = [False] * len(self.nodes)
        for i in range(len(self.nodes)):
            for edge in self.inputs[i]:
                s = edge.source
                if follows[s] or (self.weights[s] is not None and is_positive(self.norms[s])):
                    follows[i] = True
                    break
        return follows

    @cached_property
    def hidden(self) -> list[bool]:
        """Mask of the nodes whose value is multiplied by another computed value before it reaches the loss."""
        hidden = [False] * len(self.nodes)
        for i in reversed(range(len(self.nodes))):
            for edge in self.uses[i]:
                t = edge.target
                if hidden[t] or self.properties[t].product or (self.ops[t] == "Mul" and len(self.inputs[t]) == 2):
                    hidden[i] = True
                    break
        return hidden

    @cached_property
    def main_edges(self) -> list[GraphEdge | None]:
        """The edge with the largest contribution to the cotangent of each node."""
        carriers: list[GraphEdge | None] = []
        for uses in self.uses:
            if len(uses) == 1:
                carriers.append(uses[0])
                continue
            known = [(self.edge_norms.get(edge_key(edge), 0.0), edge) for edge in uses]
            best = max(known, key=lambda pair: pair[0] if pair[0] == pair[0] else -1.0, default=None)
            carriers.append(None if best is None else best[1])
        return carriers

    def path_up(self, i: int) -> Iterator[int]:
        """Yield a node and the nodes along its main edges, up to the output."""
        while True:
            yield i
            edge = self.main_edges[i]
            if edge is None or self.nodes[edge.target].kind == "output":
                return
            i = edge.target

    # ------------------------------------------------------------------------------------------------------------- words
    @cached_property
    def kinds(self) -> dict[str, str]:
        """The class of each module that was called, by its path."""
        return {call.path: call.kind for call in self.trace.calls}

    @cached_property
    def keras_layers(self) -> dict[str, str]:
        """The layers of Keras that were called, "`model.layers[1]` (Dense 'dense_1')", by their paths."""
        paths = self.kinds if self.case.is_of_keras else ()
        return {path: describe_layer(path, layer) for path in paths if (layer := self.case.keras_layer(path)) is not None}

    @cached_property
    def keys(self) -> dict[int, int]:
        """The keys of the leaves, by node."""
        return {leaf.node: leaf.key for leaf in self.trace.leaves if leaf.node is not None}

    def code(self, i: int) -> str:
        """Return the code of a node in backticks; its operation if the code is not known. In Keras, return the layer."""
        node = self.nodes[i]
        if node.kind == "leaf":
            return f"`{node.name or node.label}`"
        if node.module in self.keras_layers:
            return self.keras_layers[node.module]
        if node.operation.startswith("Keras "):
            return f"`{node.label}`"
        source = node.place.source if node.place is not None else ""
        if source and len(source) <= MAX_CODE_LENGTH:
            return f"`{source}`"
        return f"`{node.name}`" if node.name and node.kind != "output" else f"`{self.ops[i].lower() or node.label}`"

    def name(self, i: int) -> str:
        """Return the name of a node in backticks if it is a variable; else its code."""
        node = self.nodes[i]
        return f"`{node.name}`" if node.name and node.kind == "operation" and node.name.isidentifier() else self.code(i)

    def operation(self, i: int) -> str:
        """Return "sigmoid", or "Sigmoid `net[1]`" if the operation is a module."""
        node = self.nodes[i]
        kind = self.kinds.get(node.module, "")
        plain = self.properties[i].short_name or self.ops[i].lower()
        return f"{kind} `{node.module}`" if kind and kind.lower().replace("_", "")[:5] == plain.replace("_", "")[:5] else plain

    def place(self, i: int) -> str:
        """Return " on line 6", or another place; "" if it is not known."""
        return self._place_text(self.case.line(self.nodes[i]), i)

    def _place_text(self, line: int | None, i: int) -> str:
        """Return a line of the cell, with the function that it calls if the node is in one; else the place of the node."""
        node = self.nodes[i]
        if line is not None:
            inside = node.place is not None and node.cell is not None and node.place != node.cell and not node.place.in_cell
            return (
                f" in `{node.place.function}`, called on line {line}" if inside and node.place is not None else f" on line {line}"
            )
        return f" ({node.place.where})" if node.place is not None else ""

    def line(self, i: int) -> int | None:
        """Return the line of the cell that a node comes from."""
        return self.case.line(self.nodes[i])


def flow_of(case: Case) -> Flow:
    """Return the graph of a case, which all its checks share."""
    if case.flow is None:
        case.flow = Flow(case)
    flow: Flow = case.flow
    return flow


def first_arguments(flow: Flow, at: int, most: int = 10) -> Iterator[int]:
    """Yield at most `most` nodes of the chain of first arguments that node `at` is computed from."""
    for _ in range(most):
        if not flow.inputs[at]:
            return
        at = flow.inputs[at][0].source
        yield at


def edge_key(edge: GraphEdge) -> tuple[int, int, int]:
    """Return the source, the target and the argument of an edge."""
    return edge.source, edge.target, edge.argument


def is_positive(x: float | None) -> bool:
    """Return whether a norm is known, finite and not 0."""
    return x is not None and 0 < x < math.inf


def digits(x: float) -> str:
    """Return a number with three significant digits."""
    return f"{x:.3g}"


def plural(n: int, one: str, several: str = "") -> str:
    """Return "1 zero" or "6 zeros"."""
    return f"{n} {one if n == 1 else several or one + 's'}"


def operand_text(operand: Operand) -> str:
    """Return the code of an operand, else its number."""
    if operand.text:
        return f"`{operand.text}`"
    value = operand.value
    return digits(float(value.numbers[0])) if value is not None and value.numbers is not None and value.size == 1 else "a tensor"


def extremes(value: Value) -> tuple[float, float]:
    """Return the least and the greatest element of a value."""
    if value.numbers:
        return min(value.numbers), max(value.numbers)
    return value.statistics.minimum, value.statistics.maximum


def root_mean_square(value: Value) -> float:
    return value.norm / math.sqrt(value.size) if value.size else 0.0


def method_call(name: str, method: str) -> str:
    """Return the code that calls a method of an expression, which may be in backticks: "(a * b).squeeze(1)"."""
    code = name.strip("`")
    try:
        simple = isinstance(ast.parse(code, mode="eval").body, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    except SyntaxError:
        simple = True
    return f"{code}.{method}" if simple else f"({code}).{method}"


def leaf_names(flow: Flow, leaves: Sequence[int]) -> list[str]:
    return [flow.nodes[i].name or flow.nodes[i].label for i in leaves]


def has_gradients(trace: Trace | None) -> bool:
    """Return whether a trace has a sweep with gradients."""
    return trace is not None and trace.sweep > 0 and any(node.gradient is not None for node in trace.nodes)
