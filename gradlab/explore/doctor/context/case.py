"""What the doctor looks at: the trace of the last sweep, and what the namespace holds when the cell has ended."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradlab.diagnose.source_locations import CELL_FILE, cells, notebook
from gradlab.diagnose.user_spelling import library_name
from gradlab.explore.doctor.context.earlier_cells import Past
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.libraries import library_of
from gradlab.explore.names import attribute, is_model, is_optimizer, loop_leftovers, modules_in, names_in
from gradlab.explore.trace.data import Event, GraphNode, Line, Trace
from gradlab.explore.trace.journal import Entry, Swept


@dataclass(frozen=True)
class Learner:
    """A leaf of floating point that the namespace knows, by itself or as a parameter of a model.

    Attributes
    ----------
    name : str
        "model.fc1.weight"
    key : int
        What tells it from other tensors, as in the trace.
    requires : bool
        Whether it requires grad.
    graded : bool
        Whether it has a `.grad` now.
    parameter : bool
        Whether it is a `Parameter`.
    shape : tuple of int
    model, module : str
        The name of the model that holds it, and the path of the module in it: "model", "model.fc1"; "" outside of models.
    listed : str
        Where a model holds it in a plain list, in which its `parameters()` do not look: "model.hidden".
    optimizers : tuple of str
        The names of the optimizers that hold it.
    """

    name: str
    key: int
    requires: bool
    graded: bool
    parameter: bool
    shape: tuple[int, ...]
    model: str = ""
    module: str = ""
    listed: str = ""
    optimizers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Optimizer:
    """An optimizer of the namespace: its name and class, its learning rates, what tells its parameters from other tensors."""

    name: str
    kind: str
    rates: tuple[float, ...]
    keys: tuple[int, ...]
    maximizes: bool = False
    whose: int = 0


@dataclass
class Case:
    """One cell, or one call of `doctor`.

    Attributes
    ----------
    trace : Trace or None
        Of the last sweep, or of what was seen where there was none; None where nothing was.
    namespace : mapping of str to object
        The user's names now. Lives only while the doctor looks.
    error : BaseException or None
        With which the cell ended.
    past : Past
        What is known of earlier cells.
    meant : frozenset of int, or None
        What tells the tensors that are meant to learn from others; None where nobody said.
    root : str
        Where there is no graph: the name of what was to be differentiated, "the result" if it has none; "" if nothing was.
    ignore : frozenset of str
        The kinds of findings that are silenced.
    found : dict
        The findings of each check that has run, by its name, and the message if it failed.
    """

    trace: Trace | None
    namespace: Mapping[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    past: Past = field(default_factory=Past)
    meant: frozenset[int] | None = None
    root: str = ""
    ignore: frozenset[str] = frozenset()
    found: dict[str, tuple[list[Any], str]] = field(default_factory=dict, init=False, repr=False)
    tensors: dict[int, Any] = field(default_factory=dict, init=False, repr=False)  # of the learners, once these are known
    sharded: dict[int, str] = field(default_factory=dict, init=False)  # leaves that are no learners: see `learners`
    held: Any = field(default=None, init=False, repr=False)  # what `state` has read of them

    # ------------------------------------------------------------------------------------------------------- the graph
    @cached_property
    def uses(self) -> list[list[int]]:
        """The nodes that each node of the graph hands its value to."""
        assert self.trace is not None
        targets: list[list[int]] = [[] for _ in self.trace.nodes]
        for edge in self.trace.edges:
            targets[edge.source].append(edge.target)
        return targets

    @cached_property
    def inputs(self) -> list[list[int]]:
        """The nodes whose values each node was given."""
        assert self.trace is not None
        sources: list[list[int]] = [[] for _ in self.trace.nodes]
        for edge in self.trace.edges:
            sources[edge.target].append(edge.source)
        return sources

    def spelled(self, text: str) -> str:
        """A text that says gradlab, with what the program calls the library of the trace."""
        name = self.trace.library if self.trace is not None else "gradlab"
        return text.replace("gradlab", library_name(name) or name) if name in sys.modules else text

    @cached_property
    def timelines(self) -> dict[int, list[tuple[Swept, Entry]]]:
        """The sweeps that reached each leaf, by its key."""
        by_leaf: dict[int, list[tuple[Swept, Entry]]] = {}
        for swept in self.trace.journal if self.trace is not None else ():
            for entry in swept.entries:
                by_leaf.setdefault(entry.key, []).append((swept, entry))
        return by_leaf

    def line(self, node: GraphNode) -> int | None:
        """The line of the cell that a node comes from."""
        return cell_line(node.cell) or cell_line(node.place)

    @cached_property
    def reached(self) -> frozenset[int]:
        """The leaves that are in the graph, and those that another sweep of the cell reached."""
        if self.trace is None:
            return frozenset()
        keys = {leaf.key for leaf in self.trace.leaves}
        keys |= {entry.key for swept in self.trace.journal for entry in swept.entries}
        drawn = {name for node in self.trace.nodes if node.kind == "leaf" for name in node.name.split(", ")}
        return frozenset(keys | {one.key for one in self.learners.values() if one.name in drawn})

    @property
    def sweep_with_nan(self) -> int:
        """The number of the sweep that is shown, if its result is NaN or infinite; else 0."""
        if self.trace is None or not any((value := self.trace.nodes[i].value) and value.odd for i in self.trace.outputs):
            return 0
        return self.trace.sweep

    @cached_property
    def scene(self) -> Scene | None:
        """Where the error came from; None where there is none, or no code of the user's led to it."""
        scene = None if self.error is None else Scene(self.error, self.namespace)
        return scene if scene is not None and scene.steps else None

    @cached_property
    def program(self) -> Program:
        """The source of the cell."""
        return Program(self.trace.source if self.trace is not None else ())

    @cached_property
    def programs(self) -> list[Program]:
        """The source of the cell, then that of the notebook's other cells, newest first."""
        others = [name for name in reversed(list(notebook.numbers)) if CELL_FILE.match(name) and name != cells.current]
        return [self.program, *(program for program in map(Program.of_file, others) if program.lines)]

    # --------------------------------------------------------------------------------------------------- the namespace
    @cached_property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimizers of the namespace, and those that stepped in the cell."""
        optimizers: dict[int, Optimizer] = {}
        for name, value in self.namespace.items():
            groups = getattr(value, "param_groups", None) if is_optimizer(value) else None
            if name.startswith("_") or not isinstance(groups, list):
                continue
            keys = tuple(id(p) for group in groups for p in group["params"])
            rates = tuple(sorted({float(group["lr"]) for group in groups if "lr" in group}))
            up = any(group.get("maximize") for group in groups)
            optimizers.setdefault(id(value), Optimizer(name, type(value).__name__, rates, keys, up, id(value)))
        for event in self.steps:
            optimizers.setdefault(
                event.whose, Optimizer("", event.optimizer, event.rates, event.held, event.maximizes, event.whose)
            )
        return tuple(optimizers.values())

    @cached_property
    def steps(self) -> tuple[Event, ...]:
        """The steps of optimizers in the cell."""
        return tuple(event for event in self.trace.events if event.kind == "step") if self.trace is not None else ()

    @cached_property
    def models(self) -> dict[str, Any]:
        """The models of the namespace, by name; a model within another only as a part of it, and none by a loop's variable."""
        passing = loop_leftovers(self.namespace)
        models = {
            name: value
            for name, value in self.namespace.items()
            if not name.startswith("_") and name not in passing and is_model(value)
        }
        inside = {id(part) for model in models.values() for _, part in model.named_modules() if part is not model}
        return {name: model for name, model in models.items() if id(model) not in inside}

    @cached_property
    def learners(self) -> dict[int, Learner]:
        """All leaves of floating point that the namespace knows, those that require no gradient too.

        Not those of which this process holds a part: nothing that is computed with them shows in their name. They are `sharded`.
        """
        homes: dict[int, tuple[str, str]] = {}
        extra: dict[str, Any] = {}
        listed: dict[int, str] = {}
        for name, model in self.models.items():
            for whole, module in modules_in(name, model):
                for parameter in module.parameters(recurse=False):
                    homes.setdefault(id(parameter), (name, whole))
                for name_inside, kept in vars(module).items():
                    for label, part in _plain(name_inside, kept):
                        for inner, parameter in part.named_parameters():
                            extra[attribute(f"{whole}.{label}", inner, part)] = parameter
                            homes.setdefault(id(parameter), (name, f"{whole}.{label}"))
                            listed[id(parameter)] = f"{whole}.{name_inside}"
        for one in self.optimizers:
            value = self.namespace.get(one.name)
            for i, group in enumerate(getattr(value, "param_groups", ())):
                for j, parameter in enumerate(group["params"]):
                    extra.setdefault(f"{one.name}.param_groups[{i}]['params'][{j}]", parameter)
        learners: dict[int, Learner] = {}
        for name, tensor in [*names_in(self.namespace).items(), *extra.items()]:
            library = library_of(tensor)
            if library is None or id(tensor) in learners or not library.is_leaf(tensor) or not _is_floating(tensor):
                continue
            if library.is_sharded(tensor):
                self.sharded[id(tensor)] = name
                continue
            model, module = homes.get(id(tensor), ("", ""))
            self.tensors[id(tensor)] = tensor
            learners[id(tensor)] = Learner(
                name,
                id(tensor),
                bool(tensor.requires_grad),
                tensor.grad is not None,
                library.is_parameter(tensor),
                tuple(tensor.shape),
                model,
                module,
                listed.get(id(tensor), ""),
                tuple(one.name for one in self.optimizers if id(tensor) in one.keys),
            )
        return learners

    def known(self, keys: Iterable[int]) -> list[Learner]:
        """The learners of these keys that require grad, in the order of the namespace."""
        wanted = set(keys)
        return [learner for key, learner in self.learners.items() if key in wanted and learner.requires]

    def is_meant(self, learner: Learner) -> bool:
        """Whether a leaf is meant to learn, as far as that can be told: an optimizer that steps holds it; where none steps any
        optimizer, or none holds anything that a sweep has reached."""
        if self.meant is not None:
            return learner.key in self.meant
        if self.steps:
            return learner.key in self._stepping
        concerned = [one for one in self.optimizers if not self.reached or self.reached & {*one.keys}]
        return bool(learner.optimizers) or not concerned

    @cached_property
    def _stepping(self) -> frozenset[int]:
        return frozenset() if self.trace is None else self.trace.held_by_steps


def _is_floating(tensor: Any) -> bool:
    return str(tensor.dtype).rpartition(".")[2].startswith(("float", "bfloat"))


def _plain(name: str, kept: Any) -> list[tuple[str, Any]]:
    """The modules that an attribute holds in a plain list or dictionary."""
    if name.startswith("_"):
        return []
    items = enumerate(kept) if type(kept) in (list, tuple) else kept.items() if type(kept) is dict else ()
    return [(f"{name}[{key!r}]", item) for key, item in items if callable(getattr(type(item), "named_parameters", None))]


def cell_line(place: Line | None) -> int | None:
    """A line of the cell; None of another file's."""
    return place.line if place is not None and place.in_cell else None


def listed(several: Iterable[str], most: int = 4) -> str:
    """ "`a`, `b` and `c`", each once; beyond `most`, "`a`, `b`, `c` and 4 more"."""
    names = list(dict.fromkeys(several))
    shown = [f"`{name}`" for name in names[: most if len(names) <= most else most - 1]]
    if len(names) > most:
        shown.append(f"{len(names) - most + 1} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def called(learners: Sequence[Learner]) -> str:
    """Leaves in a sentence: their names where they are few, else by their modules."""
    if len(learners) <= 3:
        return listed([learner.name for learner in learners])
    modules = list(dict.fromkeys(learner.module or learner.name.rpartition(".")[0] or learner.name for learner in learners))
    models = {learner.model for learner in learners}
    if len(modules) > 3 and len(models) == 1 and "" not in models:
        return f"{len(learners)} parameters of `{models.pop()}`, `{learners[0].name}` among them"
    return f"the {len(learners)} parameters of {listed(modules)}"
