"""The graph of a case as the families of causes walk it: edges both ways, norms, layers, and the words for a node."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from functools import cached_property

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.trace.data import GraphEdge, Operand, Trace
from gradlab.explore.trace.values import Value

# Operations that only move or reshape: nothing is computed.
SHAPES = frozenset(
    [
        "View",
        "UnsafeView",
        "Reshape",
        "ReshapeAlias",
        "T",
        "Transpose",
        "Permute",
        "Squeeze",
        "Unsqueeze",
        "Expand",
        "Clone",
        "Alias",
        "Flatten",
        "Contiguous",
        "AsStrided",
        "Unflatten",
        "Mt",
        "MH",
        "MT",
        "Movedim",
        "Swapaxes",
        "ViewAs",
    ]
)
PARTS = frozenset(
    [
        "Select",
        "Slice",
        "Index",
        "Split",
        "SplitWithSizes",
        "UnsafeSplit",
        "Chunk",
        "Unbind",
        "Narrow",
        "Gather",
        "IndexSelect",
        "Diagonal",
    ]
)
SEVERAL = frozenset(
    ["Unbind", "Split", "SplitWithSizes", "UnsafeSplit", "UnsafeSplitWithSizes", "Chunk", "UnsafeChunk"]
)  # one node, parts out
CASTS = frozenset(["ToCopy", "Identity"])
# Products with a weight, which are a layer if one factor is a leaf or the user's input.
PRODUCTS = frozenset(
    [
        "Mm",
        "Addmm",
        "Mv",
        "Addmv",
        "Bmm",
        "Baddbmm",
        "Addbmm",
        "Dot",
        "Linear",
        "Convolution",
        "ConvolutionOverrideable",
        "MkldnnConvolution",
        "MkldnnLinear",
        "SlowConv2D",
        "CudnnConvolution",
        "Matmul",
        "Tensordot",
        "Einsum",
        "Addr",
    ]
)
# What a loss ends in: sums over what was computed, and losses that the libraries have as one operation.
REDUCTIONS = frozenset(["Sum", "Mean", "Nansum", "Prod", "Logsumexp"])
LOSSES = frozenset(
    [
        "MseLoss",
        "L1Loss",
        "SmoothL1Loss",
        "HuberLoss",
        "NllLoss",
        "NllLoss2D",
        "BinaryCrossEntropy",
        "BinaryCrossEntropyWithLogits",
        "KlDiv",
        "CtcLoss",
        "SoftMarginLoss",
        "MultiMarginLoss",
        "MultilabelMarginLoss",
        "CrossEntropyLoss",
    ]
)
LONGEST = 70  # characters of code that a message quotes


def bare(operation: str) -> str:
    """The operation without what the engine adds: "Sigmoid" of "SigmoidBackward0"."""
    return operation.partition("Backward")[0]


class Flow:
    """What is asked of a graph again and again, worked out once."""

    def __init__(self, case: Case) -> None:
        assert case.trace is not None
        self.case, self.trace = case, case.trace
        self.nodes = self.trace.nodes
        self.words = [bare(node.operation) for node in self.nodes]
        self.given: list[list[GraphEdge]] = [[] for _ in self.nodes]  # edges to what a node was computed from
        self.uses: list[list[GraphEdge]] = [[] for _ in self.nodes]
        for edge in self.trace.edges:
            self.given[edge.target].append(edge)
            self.uses[edge.source].append(edge)

    @cached_property
    def norms(self) -> list[float | None]:
        """‖cotangent‖ at each node; None where it is not known. A node of several outputs has one for all of them."""
        norms = [None if node.gradient is None else node.gradient.norm for node in self.nodes]
        for i, name in enumerate(self.words):
            if name in SEVERAL and self.trace.library == "torch":
                norms[i] = math.hypot(*(self.handed.get(key(edge), 0.0) for edge in self.uses[i]))
        return norms

    @cached_property
    def handed(self) -> dict[tuple[int, int, int], float]:
        """‖what a target handed back‖ of each edge where it is known."""
        return {key(edge): edge.gradient.norm for edge in self.trace.edges if edge.gradient is not None}

    @cached_property
    def weights(self) -> list[int | None]:
        """Of each product the matrix that it multiplies with, a leaf or a part of one; -1 for an input that is none of the
        graph's; None of what is no layer."""
        weights: list[int | None] = []
        for i, node in enumerate(self.nodes):
            weight: int | None = None
            if self.words[i] in PRODUCTS:
                leaves = [leaf for edge in self.given[i] if (leaf := self.weight_behind(edge.source)) is not None]
                large = [leaf for leaf in leaves if len(self.nodes[leaf].shape or ()) >= 2]
                inputs = [o for o in node.operands if o.kind == "input" and o.value is not None and len(o.value.shape) >= 2]
                weight = large[-1] if large else -1 if inputs and not leaves else None
            weights.append(weight)
        return weights

    def leaf_behind(self, i: int) -> int | None:
        """The leaf that a node is, but for its shape and its dtype."""
        while self.nodes[i].kind == "operation" and self.words[i] in SHAPES | CASTS and len(self.given[i]) == 1:
            i = self.given[i][0].source
        return i if self.nodes[i].kind == "leaf" else None

    def weight_behind(self, i: int) -> int | None:
        """The leaf that a node is but for its shape, or the part of one: `W[k]` of a stack of weights is a weight of its own."""
        while self.nodes[i].kind == "operation" and self.words[i] in SHAPES | CASTS and len(self.given[i]) == 1:
            i = self.given[i][0].source
        return i if self.nodes[self.moved_from(i)].kind == "leaf" else None

    def moved_from(self, i: int) -> int:
        """The node that node `i` is a reshaped or a partial copy of; `i` itself of a computed one."""
        while self.nodes[i].kind == "operation" and self.words[i] in SHAPES | CASTS | PARTS and len(self.given[i]) == 1:
            i = self.given[i][0].source
        return i

    @cached_property
    def layered_behind(self) -> list[bool]:
        """Whether there is a layer among the ancestors of each node through which something came."""
        layered = [False] * len(self.nodes)
        for i in range(len(self.nodes)):
            for edge in self.given[i]:
                s = edge.source
                if layered[s] or (self.weights[s] is not None and positive(self.norms[s])):
                    layered[i] = True
                    break
        return layered

    @cached_property
    def hidden(self) -> list[bool]:
        """Whether a node's value is multiplied with something else that was computed before it reaches the loss."""
        hidden = [False] * len(self.nodes)
        for i in reversed(range(len(self.nodes))):
            for edge in self.uses[i]:
                t = edge.target
                if hidden[t] or self.words[t] in PRODUCTS or (self.words[t] == "Mul" and len(self.given[t]) == 2):
                    hidden[i] = True
                    break
        return hidden

    @cached_property
    def carriers(self) -> list[GraphEdge | None]:
        """The edge by which most of each node's cotangent came."""
        carriers: list[GraphEdge | None] = []
        for uses in self.uses:
            if len(uses) == 1:
                carriers.append(uses[0])
                continue
            known = [(self.handed.get(key(edge), 0.0), edge) for edge in uses]
            best = max(known, key=lambda pair: pair[0] if pair[0] == pair[0] else -1.0, default=None)
            carriers.append(None if best is None else best[1])
        return carriers

    def way_up(self, i: int) -> Iterator[int]:
        """A node and those that carried most of its cotangent, up to the output."""
        while True:
            yield i
            edge = self.carriers[i]
            if edge is None or self.nodes[edge.target].kind == "output":
                return
            i = edge.target

    # ------------------------------------------------------------------------------------------------------------- words
    @cached_property
    def kinds(self) -> dict[str, str]:
        """The class of each module that was called, by its path."""
        return {call.path: call.kind for call in self.trace.calls}

    @cached_property
    def keys(self) -> dict[int, int]:
        """What tells the leaves from other tensors, by their nodes."""
        return {leaf.node: leaf.key for leaf in self.trace.leaves if leaf.node is not None}

    def code(self, i: int) -> str:
        """What the user wrote for a node, in backticks; its operation where that is not known."""
        node = self.nodes[i]
        if node.kind == "leaf":
            return f"`{node.name or node.label}`"
        source = node.place.source if node.place is not None else ""
        if source and len(source) <= LONGEST:
            return f"`{source}`"
        return f"`{node.name}`" if node.name and node.kind != "output" else f"`{self.words[i].lower() or node.label}`"

    def name(self, i: int) -> str:
        """The same, with the user's name where it is a variable."""
        node = self.nodes[i]
        return f"`{node.name}`" if node.name and node.kind == "operation" and node.name.isidentifier() else self.code(i)

    def operation(self, i: int) -> str:
        """ "sigmoid", and its module if it is one of its own: "sigmoid (Sigmoid `net[1]`)"."""
        node = self.nodes[i]
        kind = self.kinds.get(node.module, "")
        plain = PLAIN.get(self.words[i], self.words[i].lower())
        return f"{kind} `{node.module}`" if kind and kind.lower().replace("_", "")[:5] == plain.replace("_", "")[:5] else plain

    def place(self, i: int) -> str:
        """ " on line 6"; "" where that is not known."""
        return self.said(self.case.line(self.nodes[i]), i)

    def said(self, line: int | None, i: int) -> str:
        node = self.nodes[i]
        if line is not None:
            inside = node.place is not None and node.cell is not None and node.place != node.cell and not node.place.in_cell
            return (
                f" in `{node.place.function}`, called on line {line}" if inside and node.place is not None else f" on line {line}"
            )
        return f" ({node.place.where})" if node.place is not None else ""

    def line(self, i: int) -> int | None:
        return self.case.line(self.nodes[i])


PLAIN = {
    "LogSoftmax": "log_softmax",
    "NativeLayerNorm": "layer_norm",
    "NativeBatchNorm": "batch_norm",
    "CudnnBatchNorm": "batch_norm",
    "NativeGroupNorm": "group_norm",
    "ClampMin": "clamp",
    "ClampMax": "clamp",
    "NllLoss": "nll_loss",
    "MseLoss": "mse_loss",
    "MaskedFill": "masked_fill",
    "BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits",
    "BinaryCrossEntropy": "binary_cross_entropy",
    "Mul": "×",
    "Div": "÷",
    "Mm": "@",
    "Addmm": "@",
    "Mv": "@",
    "Bmm": "@",
    "Pow": "**",
    "Add": "+",
    "Sub": "−",
    "Convolution": "convolution",
    "Linear": "@",
}


def key(edge: GraphEdge) -> tuple[int, int, int]:
    return edge.source, edge.target, edge.argument


def positive(x: float | None) -> bool:
    """Whether a norm is known, finite and not 0."""
    return x is not None and 0 < x < math.inf


def figure(x: float) -> str:
    """A number as messages have it: three digits."""
    return f"{x:.3g}"


def plural(n: int, one: str, several: str = "") -> str:
    """ "1 zero", "6 zeros"."""
    return f"{n} {one if n == 1 else several or one + 's'}"


def operand_text(operand: Operand) -> str:
    """An operand as the user wrote it, else its number."""
    if operand.text:
        return f"`{operand.text}`"
    value = operand.value
    return figure(float(value.numbers[0])) if value is not None and value.numbers is not None and value.size == 1 else "a tensor"


def extremes(value: Value) -> tuple[float, float]:
    """The least and the greatest number of a value."""
    if value.numbers:
        return min(value.numbers), max(value.numbers)
    return value.statistics.minimum, value.statistics.maximum


def root_mean_square(value: Value) -> float:
    return value.norm / math.sqrt(value.size) if value.size else 0.0


def called(name: str, method: str) -> str:
    """An expression, in backticks or not, with a method's call: "(a * b).squeeze(1)"."""
    code = name.strip("`")
    try:
        simple = isinstance(ast.parse(code, mode="eval").body, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    except SyntaxError:
        simple = True
    return f"{code}.{method}" if simple else f"({code}).{method}"


def leaf_names(flow: Flow, leaves: Sequence[int]) -> list[str]:
    return [flow.nodes[i].name or flow.nodes[i].label for i in leaves]


def numbers_known(trace: Trace | None) -> bool:
    """Whether there is a sweep to look at."""
    return trace is not None and trace.sweep > 0 and any(node.gradient is not None for node in trace.nodes)
