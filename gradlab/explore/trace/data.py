"""The data of a trace. It refers to no tensor, node or array, so it can be stored, saved and compared.

Nodes are operations, edges carry tensors. Nodes are numbered *spine first*: each node after its inputs, and the deepest input
first. Equal programs give equal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradlab.explore.trace.journal import SweepEntry
from gradlab.explore.trace.values import Value

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A place in the user's source.

    Attributes
    ----------
    where : str
        "cell line 3", "model.py line 12".
    line, end : int
        The first and the last line of the sub-expression, counted from 1 in its file; `%%grad` is line 1 of a cell.
    columns : tuple of int, or None
        The start and the end (exclusive) of the sub-expression on these lines, counted from 0.
    source : str
        The sub-expression, on one line; "" if the source is unknown.
    statement : str
        The statement that contains it, on one line.
    function : str
        The function that contains it; "<module>" for top-level lines of a cell.
    target : str
        The name to which the statement assigns exactly this sub-expression: "h" for `h = self.fc(x)`; else "".
    in_cell : bool
        True if the file is the cell that ran.
    file : str
        The file, as tracebacks name it.
    """

    where: str
    line: int
    end: int
    columns: tuple[int, int] | None
    source: str
    statement: str
    function: str = ""
    target: str = ""
    in_cell: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a tensor's history ends: tensors computed from its result pass no gradient to it.

    Attributes
    ----------
    how : str
        "detach", "data", "no_grad", "inference_mode", "checkpoint", "item()", "numpy()", "integers" …; "born" for a tensor that
        was created from numbers after other numbers were read from tensors.
    place : Line or None
        The line of the cut.
    label, operation : str
        The operation that computed the tensor: "×", "MulBackward0"; for a leaf, its name and "AccumulateGrad".
    shape : tuple of int, or None
        The shape of that tensor.
    behind : tuple of int
        The leaves of this graph that the tensor is, or is computed from.
    keys : tuple of int
        The keys (`Identities`) of nearby leaves that the tensor is computed from.
    reaches : tuple of int
        The nodes of this graph that get the detached tensor as an input, or that are the detached tensor.
    cell : Line or None
        The line of the running cell that led to the cut.
    old : bool
        True if a sweep ran between the computation of the tensor and its cut, so the tensor was passed from one step to the next.
    aside : bool
        True if the operation has other outputs with a history, such as the values of topk.
    value : Value or None
        The value of the tensor that was cut, or of the detached tensor.
    leaves : tuple of str
        The names of nearby leaves that the tensor is computed from.
    within : Line or None
        The line of an installed package that cut the history, if `place` is the user's line that called the package.
    by_them : bool
        True if a function of that package changes the grad mode itself.
    """

    how: str
    place: Line | None
    label: str
    operation: str
    shape: Shape | None
    behind: tuple[int, ...] = ()
    value: Value | None = None
    leaves: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()
    reaches: tuple[int, ...] = ()
    cell: Line | None = None
    old: bool = False
    aside: bool = False
    within: Line | None = None
    by_them: bool = False


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of an operation that gets no gradient.

    Attributes
    ----------
    kind : str
        "constant": a Python number; "input": a tensor that requires no gradient; "cut": a tensor that lost its history.
    argument : int
        The position of the argument.
    text : str
        The argument in the user's source, "3", "N", "targets"; "" if it is unknown.
    value : Value or None
    cut : Cut or None
        The cut at which the tensor lost its history.
    """

    kind: str
    argument: int
    text: str
    value: Value | None
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Slopes:
    """The numbers of elements and units of an activation that pass on little or none of the upstream gradient.

    Attributes
    ----------
    elements, flat : int
        The number of elements with a non-zero upstream gradient, and of those with a slope below `trace.slopes.FLAT` times the
        steepest one. For a softmax: rows with at least two entries that are not masked, and rows with one dominating entry.
    units, shut : int
        The number of units (columns of a layer, channels of a convolution) with a non-zero upstream gradient, and of those that
        passed on exactly 0. 0 for a softmax.
    places : int
        The number of elements of a unit: batch × positions.
    nearly_flat : int
        The number of elements with a slope below `trace.slopes.NEARLY_FLAT` times the steepest one; 0 for a softmax.
    """

    elements: int
    flat: int
    units: int = 0
    shut: int = 0
    places: int = 1
    nearly_flat: int = 0


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the graph.

    Attributes
    ----------
    kind : str
        "leaf", "operation", "output", or "folded" for a group of nodes.
    label : str
        The operation as the user writes it: "mean(0)". For a leaf or an output, its name.
    name : str
        The user's name for the tensor, or "".
    operation : str
        "MeanBackward1", "AccumulateGrad"; "" for an output.
    shape : tuple of int, or None
        The shape of the node's tensor, if the library has it.
    detail : str
        Additional text below the label.
    count : int
        The number of nodes that this node represents.
    inside : tuple of str
        For a group, the user's names of its leaves.
    members : tuple of int
        The indices of the grouped nodes before folding, if set by the reader of the graph.
    place : Line or None
        The innermost line of the user's code that called the operation.
    cell : Line or None
        The line of the running cell that led there; equal to `place` if the operation is in the cell itself.
    module : str
        The module that ran the operation, by its path from the user's name: "model.layers[0].attn"; "" outside modules.
    object : str
        The object of a user-defined class that computes like a module, by its path: "layers[0]"; "" if there is none.
    part_of : tuple of (str, int), or None
        The library function for a whole layer that the operation is part of ("lstm"), and the index of the call.
    dtype : str
        The dtype of the node's tensor; "" if it is unknown.
    value, gradient : Value or None
        The node's tensor, and the cotangent that reached it in the sweep; None if unknown.
    operands : tuple of Operand
        The arguments that get no gradient.
    slopes : Slopes or None
        The slopes of an activation in the sweep.
    norms : tuple of float
        For a node that represents several equal parts, ‖gradient‖ of each, in the order of the program.
    """

    kind: str
    label: str
    name: str = ""
    operation: str = ""
    shape: Shape | None = None
    detail: str = ""
    count: int = 1
    inside: tuple[str, ...] = ()
    members: tuple[int, ...] = ()
    place: Line | None = None
    cell: Line | None = None
    module: str = ""
    part_of: tuple[str, int] | None = None
    dtype: str = ""
    value: Value | None = None
    gradient: Value | None = None
    operands: tuple[Operand, ...] = ()
    slopes: Slopes | None = None
    norms: tuple[float, ...] = ()
    object: str = ""

    @property
    def layer(self) -> str:
        """The path of the innermost module or object that ran the operation."""
        return self.object or self.module


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """The tensor that node `source` passes to node `target` as argument number `argument`.

    Attributes
    ----------
    shape : tuple of int, or None
        The shape of the tensor.
    gradient : Value or None
        The gradient gᵢ that `target` returned to `source` in the sweep.
    share : float or None
        The signed part of gᵢ in the gradient g of `source`: ⟨gᵢ, g⟩ / ‖g‖². The shares of all edges from `source` sum to 1. None
        if it is unknown, or if g is 0.
    """

    source: int
    target: int
    argument: int
    shape: Shape | None = None
    gradient: Value | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the graph at the time of the sweep.

    Attributes
    ----------
    name : str
        The user's name, "model.fc1.weight"; "" if it has none.
    node : int or None
        The index of its node in the graph.
    shape, dtype, device
    value : Value or None
        The values, with a histogram; None for a tensor without dense numbers (see `form`).
    gradient : Value or None
        The `.grad` after the sweep; None if there is none, or one without dense numbers (see `gradient_form`).
    before : Value or None
        The `.grad` before the sweep, to which the sweep added.
    arrived : Value or None
        The gradient that this sweep computed for it.
    key : int
        Its key (`Identities`) among the objects of the cell.
    form, gradient_form : str
        A description of the tensor and of its `.grad` if they are not ordinary dense tensors: "sparse, 12 of 9 000 stored".
    version : int
        The library's count of in-place changes of its memory.
    """

    name: str
    node: int | None
    shape: Shape
    dtype: str
    device: str
    value: Value | None
    gradient: Value | None
    before: Value | None = None
    arrived: Value | None = None
    key: int = 0
    form: str = ""
    gradient_form: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module.

    Attributes
    ----------
    path : str
        "model.layers[0]"; the name of the class if the module has no name.
    kind : str
        The class of the module: "Linear".
    depth : int
        The number of enclosing module calls.
    graded : bool
        True if it was called in grad mode.
    place : Line or None
        The user's line that called the module.
    nodes : int
        The number of nodes that the call recorded, including nested calls.
    training : bool
        True if the module was in training mode.
    in_graph : bool
        True if the call, or the call around it, recorded a node of the graph.
    """

    path: str
    kind: str
    depth: int
    graded: bool
    place: Line | None
    nodes: int = 0
    training: bool = True
    in_graph: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """An event that concerns leaves, in the order of the program.

    Attributes
    ----------
    kind : str
        "backward", "step" (of an optimizer), "skip" (a step that a GradScaler skipped), "unscale" (gradients that it divided by
        its scale), or "write" (an in-place operation of the user).
    place : Line or None
    names : tuple of str
        The names of the leaves concerned: for a backward, the tensors it was called on; for a step, the leaves with a non-zero
        gradient. Leaves without names are left out.
    keys : tuple of int
        The keys (`Identities`) of these leaves.
    optimizer : str
        For a step, the optimizer's class: "Adam".
    rates : tuple of float
        The learning rates of the optimizer.
    maximizes : bool
        True if the optimizer maximizes.
    held : tuple of int
        The keys of all parameters of the optimizer.
    whose : int
        The key of the optimizer.
    cell : Line or None
        The line of the running cell that led there; equal to `place` if the event was in the cell itself.
    checked : bool
        For a step, True if leaves with a zero gradient are known and left out. Otherwise only leaves without a gradient are.
    scale : float
        For a step by a GradScaler, made or skipped: the factor by which it had multiplied the loss; else 0.
    """

    kind: str
    place: Line | None
    names: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()
    optimizer: str = ""
    rates: tuple[float, ...] = ()
    maximizes: bool = False
    held: tuple[int, ...] = ()
    whose: int = 0
    cell: Line | None = None
    checked: bool = True
    scale: float = 0.0


@dataclass(frozen=True, slots=True)
class MovedStatistics:
    """A batch normalisation with frozen parameters whose running statistics changed.

    Attributes
    ----------
    path, kind : str
        "model.layers[0]", "BatchNorm2d"
    key : int
        The key of the module (`Identities`).
    place : Line or None
        The user's line of the first call in training mode with frozen parameters, or of the outermost module call around it.
    learning : Line or None
        The same of the last call in training mode before the parameters were frozen, if there was one.
    shift : float
        The change of the running mean since, in standard deviations by the running variance at that time: the root mean square
        over the channels.
    spread : float
        The sum of the running variances now, divided by that at that time.
    while_training : bool
        True if a sweep ran between two of these calls.
    """

    path: str
    kind: str
    key: int
    place: Line | None
    learning: Line | None
    shift: float
    spread: float
    while_training: bool


@dataclass(frozen=True, slots=True)
class MovedLeaf:
    """A parameter that optimizer steps changed although it did not require a gradient, and no new one was written.

    Attributes
    ----------
    key : int
        Its key (`Identities`).
    steps : int
        The number of these steps, as far as they were recorded.
    moved, weight : float
        ‖Δw‖ of all these steps together, and ‖w‖ now, of the sampled elements.
    place, cell : Line or None
        The line of the last of these steps, and the line of the running cell that led there.
    """

    key: int
    steps: int
    moved: float
    weight: float
    place: Line | None
    cell: Line | None


RAN_UNCOMPILED = (
    "torch.compile was disabled: compiled functions ran as they are written, so that their lines can be shown. (With --compiled "
    "they run compiled, without lines.)"
)


@dataclass(frozen=True)
class Trace:
    """A graph and one sweep through it.

    Attributes
    ----------
    library : str
        "gradlab" or "torch".
    nodes : tuple of GraphNode
        Leaves, operations and outputs, each after its inputs.
    edges : tuple of GraphEdge
        Sorted by target and argument.
    leaves : tuple of Leaf
        In the order of the user's names.
    calls : tuple of ModuleCall
        In the order of the program.
    cuts : tuple of Cut
        All recorded cuts, also if their result does not reach the graph.
    events : tuple of Event
    sweep, sweeps : int
        The number of the reverse sweep, and how many the cell ran; 0 if none was recorded.
    source : tuple of str
        The lines of the cell; `%%grad` is the first.
    recorded : bool
        True if a recorder was active while the graph was built. Otherwise there are no lines, modules and values.
    freed : bool
        True if backward has freed the saved tensors of the graph.
    cut_off : bool
        True if parts of the graph that are far from the outputs were not read.
    journal : tuple of SweepEntry
        The sweeps of the cell and the gradients of its leaves, in order.
    losses : tuple of int
        If there is no graph because backward was called on a tensor without history: the cuts at which it lost the history.
    asked : Line or None
        The line of that call.
    program : str
        The program that ran: "the cell", or the name of a script.
    objects : tuple of ModuleCall
        Objects of user-defined classes that compute like modules: `layers[0]` of class Linear.
    scale : float
        The factor by which a GradScaler had multiplied the loss. All gradients are those of the loss itself, so `.grad` was this
        many times larger at the end of the sweep.
    uncompiled : bool
        Whether functions of `torch.compile` ran as they are written.
    moved_statistics : tuple of MovedStatistics
    moved_leaves : tuple of MovedLeaf
    """

    library: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    leaves: tuple[Leaf, ...] = ()
    calls: tuple[ModuleCall, ...] = ()
    cuts: tuple[Cut, ...] = ()
    events: tuple[Event, ...] = ()
    sweep: int = 0
    sweeps: int = 0
    source: tuple[str, ...] = ()
    recorded: bool = False
    freed: bool = False
    cut_off: bool = False
    journal: tuple[SweepEntry, ...] = ()
    losses: tuple[int, ...] = ()
    asked: Line | None = None
    program: str = "the cell"
    objects: tuple[ModuleCall, ...] = ()
    scale: float = 1.0
    uncompiled: bool = False
    moved_statistics: tuple[MovedStatistics, ...] = ()
    moved_leaves: tuple[MovedLeaf, ...] = ()

    @property
    def layers(self) -> tuple[ModuleCall, ...]:
        """The calls of modules, and the objects that compute like modules."""
        return (*self.calls, *self.objects)

    @property
    def held_by_steps(self) -> frozenset[int]:
        """The keys of the parameters of optimizers that have made a step."""
        return frozenset(key for event in self.events if event.kind == "step" for key in event.held)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The indices of the outputs."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind == "output")


def inputs_of(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> list[list[int]]:
    """Return the sources of each node's edges, in the order of the edges."""
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        inputs[edge.target].append(edge.source)
    return inputs


def renumber(
    nodes: Sequence[GraphNode] | Mapping[int, GraphNode], edges: Sequence[GraphEdge], order: Sequence[int]
) -> tuple[list[GraphNode], list[GraphEdge]]:
    """Return the graph with its nodes in another order, and its edges sorted by target and argument."""
    place = {node: i for i, node in enumerate(order)}
    moved = [GraphEdge(place[e.source], place[e.target], e.argument, e.shape, e.gradient, e.share) for e in edges]
    return [nodes[node] for node in order], sorted(moved, key=lambda e: (e.target, e.argument))
