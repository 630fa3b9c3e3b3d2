"""What a trace holds: plain data, which refers to no tensor, no node and no array, and can be kept, saved and compared.

Nodes are operations, edges carry tensors. Nodes are numbered *spine first*: each after what it is computed from, and of its
inputs the deepest first. Equal programs give equal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gradlab.explore.trace.journal import Swept
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
        Its first and its last character but one on these lines, counted from 0.
    source : str
        The sub-expression, on one line; "" if the source is not known.
    statement : str
        The statement that it is part of, on one line.
    function : str
        The function that it is in; "<module>" of a cell's own lines.
    target : str
        The name that the statement assigns the very sub-expression to: "h" of `h = self.fc(x)`; else "".
    in_cell : bool
        Whether the file is the cell that ran.
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
    """Where a tensor's history ends: what was made of it has no gradient.

    Attributes
    ----------
    how : str
        "detach", "data", "no_grad", "inference_mode", "item()", "numpy()", "integers" …; "born" of a tensor that was made of
        numbers after others had left tensors.
    place : Line or None
        Where.
    label, operation : str
        What made the tensor that was cut: "×", "MulBackward0"; of a leaf its name and "AccumulateGrad".
    shape : tuple of int, or None
        Of that tensor.
    behind : tuple of int
        The leaves of this graph that it is, or is computed from.
    keys : tuple of int
        What tells the leaves that it is computed from, of those that are near, from other tensors of the cell.
    reaches : tuple of int
        The nodes of this graph that what was made of it was given to, or that it is.
    cell : Line or None
        The line of the cell that ran which led there.
    old : bool
        Whether a sweep came between the making of the tensor and its cut: it is handed from one step to the next.
    aside : bool
        Whether the operation also made what has a history, as topk does.
    value : Value or None
        Of the tensor that was cut, or of what was made of it.
    leaves : tuple of str
        The names of the leaves that it is computed from, of those that are near.
    within : Line or None
        The line of an installed package that did it, where `place` is the user's that called the package.
    by_them : bool
        Whether a function of that package switches the grad mode itself.
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
    """What an operation was given that no gradient goes to.

    Attributes
    ----------
    kind : str
        "constant": a Python number; "input": a tensor that requires no gradient; "cut": one that has lost its history.
    argument : int
        Which of the operation's arguments.
    text : str
        As the user wrote it, "3", "N", "targets"; "" if that is not known.
    value : Value or None
    cut : Cut or None
        Of a tensor that lost its history.
    """

    kind: str
    argument: int
    text: str
    value: Value | None
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Slopes:
    """What an activation passed on of the cotangent that arrived at it.

    Attributes
    ----------
    elements, flat : int
        At how many elements something arrived, and how many of these passed on less than `trace.slopes.FLAT` of what the
        steepest slope would. Of a softmax rows with two entries or more that are not masked, and those of one entry alone.
    units, shut : int
        At how many units (columns of a layer, channels of a convolution) something arrived, and how many of these passed on
        exactly nothing; 0 of a softmax.
    places : int
        How many elements a unit has: batch × positions.
    nearly_flat : int
        How many elements passed on less than `trace.slopes.NEARLY_FLAT` of what the steepest slope would; 0 of a softmax.
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
        "leaf", "operation", "output", or "folded" for many of them.
    label : str
        What the user wrote for the operation: "mean(0)". Of a leaf or an output its name.
    name : str
        The user's name for the tensor, or "".
    operation : str
        "MeanBackward1", "AccumulateGrad"; of an output "".
    shape : tuple of int, or None
        Of the tensor that the node makes, where the library tells.
    detail : str
        What is said below the label besides.
    count : int
        How many nodes this one stands for.
    inside : tuple of str
        Of a node that stands for many the user's names of the leaves among them.
    members : tuple of int
        The numbers that the nodes it stands for had before folding, where the reader of the graph set them.
    place : Line or None
        Of an operation, where the user's code called for it: the innermost line that is the user's.
    cell : Line or None
        The line of the cell that ran which led there; the same where the operation stands in the cell itself.
    module : str
        The module that made it, by its path from the user's name: "model.layers[0].attn"; "" outside modules.
    object : str
        The object of the user's own class that made it as a module does, by its path: "layers[0]"; "" where there is none.
    part_of : tuple of (str, int), or None
        The function of the library that computes a whole layer, of which it is a part ("lstm"), and which call of it.
    dtype : str
        Of the tensor that it makes; "" if it is not known.
    value, gradient : Value or None
        That tensor, and the cotangent that arrived at it in the sweep; None where it is not known.
    operands : tuple of Operand
        What it was given besides.
    slopes : Slopes or None
        Of an activation in the sweep.
    norms : tuple of float
        Of a node that stands for several parts that are alike, ‖gradient‖ as it arrived at each, in the order of the program.
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
        """The path of what made it, the innermost module or object."""
        return self.object or self.module


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """The tensor that node `source` hands to node `target` as its argument number `argument`.

    Attributes
    ----------
    shape : tuple of int, or None
        Of the tensor.
    gradient : Value or None
        What `target` handed back to `source` in the sweep.
    share : float or None
        Its part in what arrived at `source`: ⟨gᵢ, g⟩ / ‖g‖², signed; those of all edges from `source` sum to 1. None where it is
        not known, and where g is 0.
    """

    source: int
    target: int
    argument: int
    shape: Shape | None = None
    gradient: Value | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the graph, as it was when the sweep reached it.

    Attributes
    ----------
    name : str
        The user's name, "model.fc1.weight"; "" for none.
    node : int or None
        Its number in the graph.
    shape, dtype, device
    value : Value or None
        What it held, with a histogram; None of one without numbers (`form`).
    gradient : Value or None
        Its `.grad` after the sweep; None if it got none, or one without numbers (`gradient_form`).
    before : Value or None
        The `.grad` that was there before it, which the sweep added to.
    arrived : Value or None
        What this sweep brought.
    key : int
        What tells it from other tensors of the cell.
    form, gradient_form : str
        What it is, and what its `.grad` is, if that is not an ordinary dense tensor: "sparse, 12 of 9 000 stored".
    version : int
        How often the library counts that its memory was written to.
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
        "model.layers[0]"; the class's name where the module has no name.
    kind : str
        Its class: "Linear".
    depth : int
        How many calls it stands in.
    graded : bool
        Whether it was called in grad mode.
    place : Line or None
        The user's line that called it.
    nodes : int
        How many nodes of the graph were made in it, in calls inside of it too.
    training : bool
        Whether the module was in training mode.
    in_graph : bool
        Whether it, or the call around it, made a node of the graph.
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
    """Something that happened to the leaves, in the order of the program.

    Attributes
    ----------
    kind : str
        "backward", "step" (of an optimizer), "write" (in place, of the user's).
    place : Line or None
    names : tuple of str
        The leaves concerned, where they have names; of a backward what it was called on. Of a step those of which the gradient
        was not zero.
    keys : tuple of int
        What tells these from other tensors of the cell.
    optimizer : str
        Of a step the optimizer's class: "Adam".
    rates : tuple of float
        Its learning rates.
    maximizes : bool
        Whether it goes up.
    held : tuple of int
        What tells all its parameters from others.
    whose : int
        What tells the optimizer from others.
    cell : Line or None
        The line of the cell that ran which led there; the same where it happened in the cell itself.
    checked : bool
        Of a step, whether the leaves whose gradient was zero are known and left out. If not, those without a gradient are.
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


@dataclass(frozen=True)
class Trace:
    """A graph and one sweep through it.

    Attributes
    ----------
    library : str
        "gradlab" or "torch".
    nodes : tuple of GraphNode
        Leaves, operations and outputs, each after what it is computed from.
    edges : tuple of GraphEdge
        By target and argument.
    leaves : tuple of Leaf
        In the order of their names.
    calls : tuple of ModuleCall
        In the order of the program.
    cuts : tuple of Cut
        All that were seen, also those that reach nothing in the graph.
    events : tuple of Event
    sweep, sweeps : int
        Which reverse sweep of how many that the cell ran; 0 where none was seen.
    source : tuple of str
        The lines of the cell; `%%grad` is the first.
    recorded : bool
        Whether somebody looked while the graph was made; if not there are no lines, no modules and no values.
    freed : bool
        Whether backward has freed what the graph had saved.
    cut_off : bool
        Whether there is more of the graph, further away from the outputs, that was not read.
    journal : tuple of Swept
        What the sweeps of the cell brought to its leaves, one after the other.
    losses : tuple of int
        Where there is no graph, since a sweep was asked of a tensor without history: the cuts at which it lost it.
    asked : Line or None
        And where it was asked.
    program : str
        What ran: "the cell", or the name of a script.
    objects : tuple of ModuleCall
        The objects of the user's own classes that computed as modules do, `layers[0]` of class Linear.
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
    journal: tuple[Swept, ...] = ()
    losses: tuple[int, ...] = ()
    asked: Line | None = None
    program: str = "the cell"
    objects: tuple[ModuleCall, ...] = ()

    @property
    def layers(self) -> tuple[ModuleCall, ...]:
        """The calls of modules, and the objects that computed as these do."""
        return (*self.calls, *self.objects)

    @property
    def held_by_steps(self) -> frozenset[int]:
        """The keys of what the optimizers hold that have stepped."""
        return frozenset(key for event in self.events if event.kind == "step" for key in event.held)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The numbers of the outputs."""
        return tuple(i for i, node in enumerate(self.nodes) if node.kind == "output")


def inputs_of(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> list[list[int]]:
    """The sources of each node's edges, in the order of the edges."""
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        inputs[edge.target].append(edge.source)
    return inputs


def renumbered(
    nodes: Sequence[GraphNode] | Mapping[int, GraphNode], edges: Sequence[GraphEdge], order: Sequence[int]
) -> tuple[list[GraphNode], list[GraphEdge]]:
    """The graph with its nodes in another order; edges by target and argument."""
    place = {node: i for i, node in enumerate(order)}
    moved = [GraphEdge(place[e.source], place[e.target], e.argument, e.shape, e.gradient, e.share) for e in edges]
    return [nodes[node] for node in order], sorted(moved, key=lambda e: (e.target, e.argument))
