"""The case that the checks examine: the trace of the last sweep, and the namespace at the end of the cell."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gradlab.diagnose.source_locations import CELL_FILE, cells, notebook
from gradlab.diagnose.user_spelling import library_name
from gradlab.explore.doctor.context.earlier_cells import Past
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import join
from gradlab.explore.keras_layers import is_keras_layer, own_parameters
from gradlab.explore.libraries import library_of
from gradlab.explore.module_paths import attribute, is_model
from gradlab.explore.names import is_optimizer, loop_leftovers, modules_in, names_in
from gradlab.explore.trace.data import Event, GraphNode, Line, Trace
from gradlab.explore.trace.journal import Entry, SweepEntry


@dataclass(frozen=True)
class Learner:
    """A floating point leaf with a name in the namespace, by itself or as a parameter of a model.

    Attributes
    ----------
    name : str
        "model.fc1.weight"
    key : int
        Its identity, as in the trace.
    requires_grad : bool
        Whether it requires grad.
    has_grad : bool
        Whether its `.grad` is not None.
    is_parameter : bool
        Whether it is a `Parameter`.
    shape : tuple of int
    model, module : str
        The name of its model, and the path of its module in it: "model", "model.fc1". Empty outside models.
    in_list : str
        The plain list of a model that contains it, if any: "model.hidden". `parameters()` does not look into such lists.
    optimizers : tuple of str
        The names of the optimizers that hold it.
    """

    name: str
    key: int
    requires_grad: bool
    has_grad: bool
    is_parameter: bool
    shape: tuple[int, ...]
    model: str = ""
    module: str = ""
    in_list: str = ""
    optimizers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Optimizer:
    """An optimizer.

    Attributes
    ----------
    name : str
        Its name in the namespace; "" if it has none.
    kind : str
        The name of its class.
    rates : tuple of float
        Its learning rates.
    keys : tuple of int
        The keys of its parameters.
    maximizes : bool
        Whether it was made with `maximize=True`.
    whose : int
        Its identity, as in the events of the trace.
    """

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
        The trace of the last sweep, or of the operations if there was no sweep. None if nothing was recorded.
    namespace : mapping of str to object
        The user's names. They are held only while the checks run.
    error : BaseException or None
        The error that ended the cell.
    past : Past
        The leaves that sweeps of earlier cells reached.
    meant : frozenset of int, or None
        The keys of the tensors that should learn, if the user named them.
    root : str
        If there is no graph: the name of the tensor that should be differentiated, or "the result". Empty if there is no such
        tensor.
    ignore : frozenset of str
        The silenced kinds of findings.
    first : Trace or None
        The trace of the first sweep of the same training, `trace` if that is the first one. None if it is not known.
    overflow : Trace or None
        The trace of the last recorded sweep with a scaled loss whose gradients were not finite, if finite ones followed.
    found : dict
        The findings of each check that has run, by its name, and the message if the check failed.
    """

    trace: Trace | None
    namespace: Mapping[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    past: Past = field(default_factory=Past)
    meant: frozenset[int] | None = None
    root: str = ""
    ignore: frozenset[str] = frozenset()
    first: Trace | None = None
    overflow: Trace | None = None
    found: dict[str, tuple[list[Any], str]] = field(default_factory=dict, init=False, repr=False)
    tensors: dict[int, Any] = field(default_factory=dict, init=False, repr=False)  # of the learners, by key, once these are read
    sharded: dict[int, str] = field(default_factory=dict, init=False)  # names by key: see `learners`
    flow: Any = field(default=None, init=False, repr=False)  # the graph, while checks run: see `flow_of`
    final_values: Any = field(default=None, init=False, repr=False)  # the learners as `final_state` read them
    sources: Any = field(default=None, init=False, repr=False)  # the files of the training: see `sources_of`

    # ------------------------------------------------------------------------------------------------------- the graph
    @cached_property
    def uses(self) -> list[list[int]]:
        """The nodes that use the value of each node."""
        assert self.trace is not None
        targets: list[list[int]] = [[] for _ in self.trace.nodes]
        for edge in self.trace.edges:
            targets[edge.source].append(edge.target)
        return targets

    @cached_property
    def inputs(self) -> list[list[int]]:
        """The nodes whose values each node was computed from."""
        assert self.trace is not None
        sources: list[list[int]] = [[] for _ in self.trace.nodes]
        for edge in self.trace.edges:
            sources[edge.target].append(edge.source)
        return sources

    def release(self) -> None:
        """Hold nothing of the user's any more. A check may have left the case in a reference cycle."""
        vars(self).clear()

    def spell(self, text: str) -> str:
        """Return a text with `gradlab` replaced by the name that the program has for the library of the trace."""
        name = self.trace.library if self.trace is not None else "gradlab"
        library = sys.modules.get(name)
        if library is None:
            return text
        own = next((own for own, value in self.namespace.items() if value is library), name)  # of a script
        return text.replace("gradlab", library_name(name) or own)

    @cached_property
    def timelines(self) -> dict[int, list[tuple[SweepEntry, Entry]]]:
        """The sweeps that reached each leaf, by the key of the leaf."""
        by_leaf: dict[int, list[tuple[SweepEntry, Entry]]] = {}
        for swept in self.trace.journal if self.trace is not None else ():
            for entry in swept.entries:
                by_leaf.setdefault(entry.key, []).append((swept, entry))
        return by_leaf

    def line(self, node: GraphNode) -> int | None:
        """Return the line of the cell that a node comes from."""
        return cell_line(node.cell) or cell_line(node.place)

    @cached_property
    def reached_leaves(self) -> frozenset[int]:
        """The keys of the leaves in the graph, and of the leaves that another sweep of the cell reached."""
        if self.trace is None:
            return frozenset()
        keys = {leaf.key for leaf in self.trace.leaves}
        keys |= {entry.key for swept in self.trace.journal for entry in swept.entries}
        drawn = {name for node in self.trace.nodes if node.kind == "leaf" for name in node.name.split(", ")}
        return frozenset(keys | {one.key for one in self.learners.values() if one.name in drawn})

    @property
    def sweep_with_nan(self) -> int:
        """The number of the sweep in the trace if its result is NaN or infinite; else 0."""
        if self.trace is None or not any((value := self.trace.nodes[i].value) and value.odd for i in self.trace.outputs):
            return 0
        return self.trace.sweep

    @cached_property
    def is_of_keras(self) -> bool:
        """True if the graph is that of a Keras model."""
        paths = {node.module for node in self.trace.nodes if node.module} if self.trace is not None else ()
        return any(self.keras_layer(path) is not None for path in paths)

    def keras_layer(self, path: str) -> Any:
        """Return the Keras layer with a path, "model.layers[1]", or with a name of its own; None if there is none."""
        return self._keras_layers.get(path)

    @cached_property
    def _keras_layers(self) -> dict[str, Any]:
        """The Keras layers of the namespace by path, also by paths in models that are parts of other models."""
        held = [(name, value) for name, value in self.namespace.items() if is_keras_layer(value)]
        found = {path: layer for name, value in held for path, layer in modules_in(name, value)}
        return {path: layer for path, layer in {**found, **self.modules}.items() if is_keras_layer(layer)}

    @cached_property
    def failed_in_keras(self) -> bool:
        """True if the error was raised in Keras, or passed through it."""
        frames = traceback.walk_tb(None if self.error is None else self.error.__traceback__)
        return any(str(frame.f_globals.get("__name__", "")).startswith("keras.") for frame, _ in frames)

    @cached_property
    def scene(self) -> Scene | None:
        """The traceback of the error; None without an error, or if no code of the user's led to it."""
        scene = None if self.error is None else Scene(self.error, self.namespace)
        return scene if scene is not None and scene.frames else None

    @cached_property
    def program(self) -> Program:
        """The source of the cell."""
        return Program(self.trace.source if self.trace is not None else ())

    @cached_property
    def programs(self) -> list[Program]:
        """The source of the cell, then of the notebook's other cells, newest first."""
        others = [name for name in reversed(list(notebook.numbers)) if CELL_FILE.match(name) and name != cells.current]
        return [self.program, *(program for program in map(Program.of_file, others) if program.lines)]

    # --------------------------------------------------------------------------------------------------- the namespace
    @cached_property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimizers of the namespace, and the optimizers that stepped in the cell."""
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
        """The models of the namespace, by name, without parts of other models and variables of loops."""
        passing = loop_leftovers(self.namespace)
        models = {
            name: value
            for name, value in self.namespace.items()
            if not name.startswith("_") and name not in passing and is_model(value)
        }
        inside = {id(part) for model in models.values() for _, part in modules_in("", model) if part is not model}
        return {name: model for name, model in models.items() if id(model) not in inside}

    @cached_property
    def modules(self) -> dict[str, Any]:
        """The models and all modules in them, by their paths: "model.layers[0]"."""
        return {path: module for name, model in self.models.items() for path, module in modules_in(name, model)}

    @cached_property
    def learners(self) -> dict[int, Learner]:
        """The floating point leaves of the namespace by key, also those that do not require a gradient.

        Sharded leaves are left out and stored in `sharded`: this process has only a part of each.
        """
        homes: dict[int, tuple[str, str]] = {}
        extra: dict[str, Any] = {}
        listed: dict[int, str] = {}
        for name, model in self.models.items():
            for whole, module in modules_in(name, model):
                for _, parameter in own_parameters(whole, module):
                    homes.setdefault(id(parameter), (name, whole))
                for name_inside, kept in vars(module).items():
                    for label, part in _modules_in_list(name_inside, kept):
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

    def learners_of(self, keys: Iterable[int]) -> list[Learner]:
        """Return the learners with these keys that require grad, in the order of the namespace."""
        wanted = set(keys)
        return [learner for key, learner in self.learners.items() if key in wanted and learner.requires_grad]

    def should_learn(self, learner: Learner) -> bool:
        """Return whether a leaf should learn.

        These are the leaves in `meant`. Without `meant`, they are the parameters of the optimizers that step in the cell. If no
        optimizer steps, they are the parameters of all optimizers, or all leaves if no optimizer has a leaf that a sweep
        reached.
        """
        if self.meant is not None:
            return learner.key in self.meant
        if self.steps:
            return learner.key in self._stepping
        concerned = [one for one in self.optimizers if not self.reached_leaves or self.reached_leaves & {*one.keys}]
        return bool(learner.optimizers) or not concerned

    @cached_property
    def _stepping(self) -> frozenset[int]:
        return frozenset() if self.trace is None else self.trace.held_by_steps


def _is_floating(tensor: Any) -> bool:
    return str(tensor.dtype).rpartition(".")[2].startswith(("float", "bfloat"))


def _modules_in_list(name: str, kept: Any) -> list[tuple[str, Any]]:
    """Return the modules in a plain list or dictionary that is an attribute of a module."""
    if name.startswith("_"):
        return []
    items = enumerate(kept) if type(kept) in (list, tuple) else kept.items() if type(kept) is dict else ()
    return [(f"{name}[{key!r}]", item) for key, item in items if callable(getattr(type(item), "named_parameters", None))]


def cell_line(place: Line | None) -> int | None:
    """Return the line of a place in the cell; None for a place in another file."""
    return place.line if place is not None and place.in_cell else None


def join_names(several: Iterable[str], most: int = 4) -> str:
    """Return "`a`, `b` and `c`", each name once; of more than `most` names "`a`, `b`, `c` and 4 more"."""
    names = list(dict.fromkeys(several))
    shown = [f"`{name}`" for name in names[: most if len(names) <= most else most - 1]]
    if len(names) > most:
        shown.append(f"{len(names) - most + 1} more")
    return join(shown) if shown else ""


def learner_names(learners: Sequence[Learner]) -> str:
    """Return the names of at most three leaves, else the names of their modules, for a sentence."""
    if len(learners) <= 3:
        return join_names([learner.name for learner in learners])
    modules = list(dict.fromkeys(learner.module or learner.name.rpartition(".")[0] or learner.name for learner in learners))
    models = {learner.model for learner in learners}
    if len(modules) > 3 and len(models) == 1 and "" not in models:
        return f"{len(learners)} parameters of `{models.pop()}` (among them `{learners[0].name}`)"
    return f"the {len(learners)} parameters of {join_names(modules)}"
