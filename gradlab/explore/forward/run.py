"""Record the run of a model: which functions and modules ran on which tensors.

A library's adapter (`Library.forward_recording`) reports each call of a function on tensors, and where a module begins and ends.
`Run` finds out which earlier call made each tensor. It refers to tensors weakly, except to those that exist before the run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradlab.diagnose.faults import Faults
from gradlab.explore.forward.arguments import named_tensors, tensors_in
from gradlab.explore.keras_layers import is_keras_layer, is_own_layer, modules_of, own_parameters
from gradlab.explore.libraries.memory import Region, covers, may_overlap
from gradlab.explore.markup import shape_text
from gradlab.explore.module_paths import attribute

Shape = tuple[int, ...]

MOST = 100_000  # calls of functions that are recorded
WRITES = 50  # calls that wrote to different parts of one memory, above which parts are not distinguished
SHOWN = 3  # arguments of a failed call whose shapes are shown
LIBRARIES = ("torch", "gradlab")


@dataclass(slots=True, eq=False)
class ModuleRun:
    """A call of a module.

    Attributes
    ----------
    path : str
        Its path from the user's name: "net.blocks[0]".
    kind : str
        Its class.
    outer : ModuleRun or None
    site : pair of a code object and an offset, or None
        The site of the call in the user's code.
    module : Module
    inner, calls : int
        The numbers of modules and of functions on tensors that it called itself.
    given : list of Tensor
        The tensors among its positional arguments, while it runs.
    shapes : list of tuple of int, or None
        The shapes of its results.
    failed : bool
        True if it raised.
    """

    path: str
    kind: str
    outer: ModuleRun | None
    site: Any
    module: Any
    training: bool
    inner: int = 0
    calls: int = 0
    given: list[Any] = field(default_factory=list)
    shapes: list[Shape | None] = field(default_factory=list)
    failed: bool = False
    handled: BaseException | None = None  # the exception that was handled when it began
    error: int = 0  # the id of the exception that it raised


@dataclass(slots=True, eq=False)
class RunNode:
    """A node of a run: a tensor from before the run, a call of a function, or an output.

    Attributes
    ----------
    kind : str
        "input", "parameter", "buffer", "constant", "call" or "output".
    label : str
        The name of a tensor, or the function with its arguments: "transpose(1, 2)".
    function : str
        The name of the function, or the class of a module if its calls were not recorded.
    sources : list of int
        The nodes that computed its arguments, each once.
    shapes : list of tuple of int, or None
        The shapes of the results.
    dtype : str
        The dtype of the first result.
    size : int
        Bytes of the results. Views of older tensors have none.
    elements : int
        Elements of a tensor from before the run.
    flops : int or None
        None if the operations of the function are not counted.
    seconds : float
        0 if calls are not timed.
    site : pair of a code object and an offset, or None
    module : ModuleRun or None
        The innermost running module.
    detail : str
    value : Value or Pending or None
    writes : list of str
        The buffers and parameters that it wrote to.
    failed : bool
        True if it raised.
    """

    kind: str
    label: str
    function: str = ""
    sources: list[int] = field(default_factory=list)
    shapes: list[Shape | None] = field(default_factory=list)
    dtype: str = ""
    size: int = 0
    elements: int = 0
    flops: int | None = None
    seconds: float = 0.0
    site: Any = None
    module: ModuleRun | None = None
    detail: str = ""
    value: Any = None
    writes: list[str] = field(default_factory=list)
    failed: bool = False
    error: int = 0  # the id of the exception that it raised

    @property
    def shape(self) -> Shape | None:
        """The shape of the result; None if there are several."""
        return self.shapes[0] if len(self.shapes) == 1 else None


class Write(NamedTuple):
    """A call that wrote to memory: its node, the id of the tensor through which it wrote, and the region of memory."""

    at: int
    key: int
    region: Region | None


@dataclass(frozen=True, slots=True)
class OwnedTensor:
    """A parameter or a buffer of a model: its kind, path, module's path, bytes, elements, and whether it requires grad."""

    kind: str
    path: str
    module: str
    size: int
    elements: int
    learns: bool


def describe_given(tensors: Sequence[tuple[Shape | None, str]]) -> str:
    """Return the shapes of the arguments of a failed call, "given 2×16 and 4×10", with the dtypes if they differ."""
    shown = [(shape, dtype) for shape, dtype in tensors[:SHOWN] if shape is not None]
    differ = len({dtype for _, dtype in shown}) > 1
    texts = [f"{shape_text(shape)} {dtype}" if differ else shape_text(shape) for shape, dtype in shown]
    return f"given {', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else f"given {texts[0]}" if texts else ""


def describe_tensors(library: Any, tensors: Sequence[Any]) -> str:
    """Return the tensors of a failed call, with their devices if these differ: "given 2×3 on cpu and 3 on cuda:0"."""
    devices = [str(getattr(one, "device", "")) for one in tensors]
    words = [f"on {one}" for one in devices] if len(set(devices)) > 1 else map(library.dtype_name, tensors)
    return describe_given([(library.shape_of(one), word) for one, word in zip(tensors, words, strict=True)])


def has_raised(call: RunNode | ModuleRun, error: BaseException | None) -> bool:
    """Return True if a call raised an exception, or one in its chain. A deleted exception may have had the same id."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is other for other in seen):
            seen.append(one)
            waiting += (one.__cause__, one.__context__)
    return any(call.error == id(one) and (call.site is None or passes(one, call.site)) for one in seen)


def passes(error: BaseException, site: Any) -> bool:
    """Return True if the traceback of an exception goes through a site."""
    at = error.__traceback__
    while at is not None and not (at.tb_frame.f_code is site[0] and at.tb_lasti == site[1]):
        at = at.tb_next
    return at is not None


class Run:
    """The record of one run.

    Parameters
    ----------
    library : Library
    names : mapping of str to Tensor
        The user's names for tensors.
    values, timed : bool
        Summarize the values of results, and time calls.
    training : bool
        Models of Keras are called with `training=True`. They have no training mode of their own.

    Attributes
    ----------
    nodes : list of RunNode
        In the order of the program.
    modules : list of ModuleRun
        In the order of the program.
    owned : dict of str to OwnedTensor
        The parameters and buffers by their paths.
    known : dict of str to Module
        All modules of the models by their paths, including those that are not called.
    truncated : bool
        True if there were more calls than are recorded.
    """

    def __init__(
        self,
        library: Any,
        names: Mapping[str, Any] | None = None,
        *,
        values: bool = False,
        timed: bool = False,
        training: bool = False,
    ) -> None:
        self.library, self.values, self.timed, self.training = library, values, timed, training
        self.nodes: list[RunNode] = []
        self.modules: list[ModuleRun] = []
        self.module: ModuleRun | None = None
        self.owned: dict[str, OwnedTensor] = {}
        self.known: dict[str, Any] = {}
        self.truncated = False
        self.faults = Faults("recorded a run")
        self._names = {id(tensor): name for name, tensor in (names or {}).items()}
        self._makers: dict[int, tuple[Callable[[], Any], int]] = {}
        self._owned: dict[int, OwnedTensor] = {}
        self._versions: dict[int, int] = {}  # of buffers
        self._paths: dict[int, str] = {}
        self._before: list[Any] = list((names or {}).values())  # kept alive, so that no later tensor gets the id of one of these
        self._written: dict[Any, list[Write]] = {}  # by memory
        self._inside = 0  # modules that run inside a layer of Keras, which is shown as a whole

    # ------------------------------------------------------------------------------------------ models and their tensors
    def own(self, name: str, model: Any) -> None:
        """Add the names of a model's modules, parameters and buffers."""
        library = self.library
        for label, module in modules_of(name, model):
            if id(module) in self._paths:
                continue
            self._paths[id(module)] = label
            self.known[label] = module
            buffers = [(attribute(label, key, module), tensor) for key, tensor in module.named_buffers(recurse=False)]
            for kind, tensors in (("parameter", own_parameters(label, module)), ("buffer", buffers)):
                for own, tensor in tensors:
                    if id(tensor) in self._owned or not library.is_tensor(tensor):
                        continue
                    owned = OwnedTensor(
                        kind, own, label, library.bytes_of(tensor), library.elements(tensor), bool(tensor.requires_grad)
                    )
                    self._owned[id(tensor)] = self.owned[own] = owned
                    self._before.append(tensor)
                    if kind == "buffer":
                        self._versions[id(tensor)] = library.version(tensor)

    def give(self, label: str, value: Any) -> None:
        """Add the tensors in an argument of the model."""
        for path, tensor in named_tensors(label, value, self.library.is_tensor):
            if id(tensor) not in self._owned and self._node_of(tensor) is None:
                self._before.append(tensor)
                self._add(self._existing("input", path, tensor), (tensor,))

    def _existing(self, kind: str, label: str, tensor: Any) -> RunNode:
        """Return a node for a tensor from before the run."""
        library = self.library
        node = RunNode(kind, label, shapes=[library.shape_of(tensor)], dtype=library.dtype_name(tensor), module=self.module)
        node.size, node.elements = library.bytes_of(tensor), library.elements(tensor)
        if self.values and kind != "parameter":
            node.value = library.summary(tensor)
        return node

    # -------------------------------------------------------------------------------------------------------------- calls
    def on_call(self, node: RunNode, arguments: Sequence[Any], results: Sequence[Any], written: Sequence[Any] = ()) -> None:
        """Add a call that returned.

        Parameters
        ----------
        node : RunNode
            The node, with label, function, site and costs.
        arguments, results : sequence of Tensor
        written : sequence of Tensor
            The arguments that it wrote to, if known.
        """
        if len(self.nodes) >= MOST:
            self.truncated = True
            return
        is_same = node.function == "to" and any(one is two for one in results for two in arguments)
        if is_same and self.module is not None and is_keras_layer(self.module.module):
            return  # a model of Keras asks for the dtype that a tensor has
        library = self.library
        node.sources, node.module = self.sources(arguments), self.module
        if results:
            node.shapes, node.dtype = [library.shape_of(one) for one in results], library.dtype_name(results[0])
            memories = {library.memory_of(one) for one in arguments}
            node.size = sum(self._new_bytes(one, memories) for one in results)
            if self.values:
                node.value = library.summary(results[0])
        changed = list(written)
        for tensor in arguments:
            if id(tensor) in self._versions and self._versions[id(tensor)] != (version := library.version(tensor)):
                self._versions[id(tensor)] = version
                changed.append(tensor)
        node.writes = list(dict.fromkeys(self._owned[id(one)].path for one in changed if id(one) in self._owned))
        at = self._add(node, (*results, *changed))
        for tensor in changed:
            self._note_write(tensor, at)
        if self.module is not None:
            self.module.calls += 1

    def _new_bytes(self, result: Any, memories: Collection[Any]) -> int:
        """Return the bytes of new memory of a result. `memories` are those of the arguments."""
        if self._node_of(result) is not None or id(result) in self._owned:
            return 0
        memory = self.library.memory_of(result)
        if memory is not None and memory in memories:
            return 0
        base = self.library.base_of(result)
        if base is None or self._node_of(base) is None:
            self._written.pop(memory, None)  # of a deleted tensor that had this memory
        if base is None:
            return int(self.library.bytes_of(result))
        if self._node_of(base) is not None or id(base) in self._owned:
            return 0
        self._makers[id(base)] = (
            self.library.weak(base),
            len(self.nodes),
        )  # a temporary of the call, of which the result is a view
        return int(self.library.bytes_of(base))

    def _note_write(self, tensor: Any, at: int) -> None:
        """Record that a call wrote to a tensor. The overwritten tensor is among its sources."""
        memory = self.library.memory_of(tensor)
        if memory is None:
            return
        region = self.library.region_of(tensor)
        before = self._written.get(memory, [])
        if len(before) > WRITES:
            before, region = [], None
        self._written[memory] = [
            *(one for one in before if one.key != id(tensor) and not covers(region, one.region)),
            Write(at, id(tensor), region),
        ]

    def on_failed_call(self, node: RunNode, arguments: Sequence[Any], error: BaseException) -> None:
        """Add a call that raised, unless a call inside it did."""
        if not any(one.failed and one.error == id(error) for one in self.nodes[-1:]):
            node.sources, node.module, node.failed, node.error = self.sources(arguments), self.module, True, id(error)
            node.shapes = []
            self._add(node, ())
            if self.module is not None:
                self.module.calls += 1

    def unmark_caught(self, error: BaseException | None) -> None:
        """Remove the marks of failed calls, except of the last node if its error ended the run. The program caught the others."""
        last = len(self.nodes) - 1
        for at, node in enumerate(self.nodes):
            if node.failed and not (at == last and has_raised(node, error)):
                node.failed, node.detail = False, ", ".join(filter(None, ("raised", node.detail)))

    def _add(self, node: RunNode, results: Iterable[Any]) -> int:
        at = len(self.nodes)
        self.nodes.append(node)
        for tensor in results:
            one = tensor
            while one is not None:
                self._makers[id(one)] = self.library.weak(one), at
                one = self.library.inner_of(one)
        return at

    def _node_of(self, tensor: Any) -> int | None:
        known = self._makers.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def sources(self, arguments: Sequence[Any]) -> list[int]:
        """Return the nodes that computed some tensors, each once, including calls that have written to their memory through other
        tensors since."""
        found: dict[int, None] = {}
        for tensor in arguments:
            found[at := self.source(tensor)] = None
            writes = self._written.get(self.library.memory_of(tensor)) if self._written else None
            if writes and writes[-1].at > at:
                region = self.library.region_of(tensor) if len(writes) <= WRITES else None
                for write in writes:
                    if write.at > at and write.key != id(tensor) and may_overlap(region, write.region):
                        found[write.at] = None
        return list(found)

    def source(self, tensor: Any) -> int:
        """Return the node that computed a tensor, or a new one for a tensor from before the run."""
        at = self._node_of(tensor)
        if at is not None:
            return at
        owned = self._owned.get(id(tensor))
        if owned is not None:
            return self._add(self._existing(owned.kind, owned.path, tensor), (tensor,))
        inner = self.library.inner_of(tensor)
        if inner is not None:
            return self.source(inner)
        base = self.library.base_of(tensor)
        if base is not None and (at := self._node_of(base)) is not None:
            return at  # a view that was not recorded
        self._before.append(tensor)
        name = self._names.get(id(tensor), "")
        held = "" if name else self._attribute(tensor)
        learns = bool(tensor.requires_grad) and self.library.is_leaf(tensor)
        kind = "parameter" if learns else "input" if name else "constant"
        return self._add(self._existing(kind, name or held, tensor), (tensor,))

    def _attribute(self, tensor: Any) -> str:
        """Return the path of a tensor that is an attribute of a running module, or ""."""
        call = self.module
        while call is not None:
            for name, value in vars(call.module).items():
                if value is tensor:
                    return f"{call.path}.{name}"
            call = call.outer
        return ""

    # ------------------------------------------------------------------------------------------------------------ modules
    def on_module_enter(self, module: Any, site: Any, given: Any = ()) -> None:
        """Begin a module call."""
        if self._inside or (self.module is not None and is_own_layer(self.module.module)):
            self._inside += 1
            return
        path = self._paths.get(id(module))
        if path is None:  # created in the run, or not in a known model
            self.own(type(module).__name__, module)
            path = self._paths[id(module)]
        outer = self.module
        training = self.training if is_keras_layer(module) else bool(getattr(module, "training", True))
        call = ModuleRun(path, type(module).__name__, outer, site, module, training)
        call.given = tensors_in(given, self.library.is_tensor)
        call.handled = sys.exc_info()[1]
        if outer is not None:
            outer.inner += 1
        self.modules.append(call)
        self.module = call

    def on_module_exit(self, result: Any) -> None:
        """End the innermost module call. It failed if an exception is being raised."""
        if self._inside:
            self._inside -= 1
            return
        call = self.module
        if call is None:
            return
        library = self.library
        error = sys.exc_info()[1]
        failed = result is None and error is not call.handled
        call.handled, call.error = None, id(error) if failed else 0
        del error
        results = [] if failed else tensors_in(result, library.is_tensor)
        call.shapes, call.failed = [library.shape_of(one) for one in results], failed
        made = [one for one in results if self._node_of(one) is None and id(one) not in self._owned]
        if made and not any((base := library.base_of(one)) is not None and self._node_of(base) is not None for one in made):
            held = self._held_by(call.module) if not call.inner and not call.calls else []
            self.on_call(RunNode("call", call.kind, call.kind, site=call.site), [*call.given, *held], made)
        call.given = []
        self.module = call.outer

    def _held_by(self, module: Any) -> list[Any]:
        """Return the parameters and buffers of a module whose calls were not recorded, such as one compiled by TorchScript."""
        inside = [one for _, inner in module.named_modules() for one in (*inner.parameters(False), *inner.buffers(False))]
        return [one for one in inside if id(one) in self._owned]

    def add_outputs(self, value: Any) -> None:
        """Add the outputs of the run."""
        for name, tensor in named_tensors("output", value, self.library.is_tensor):
            node = self._existing("output", name, tensor)
            node.sources = self.sources((tensor,))
            self.nodes.append(node)

    # ------------------------------------------------------------------------------------------ for libraries that notify of more
    @property
    def before(self) -> list[Any]:
        """The known tensors from before the run."""
        return self._before

    def is_known(self, tensor: Any) -> bool:
        """Return True if a tensor was computed in the run, is an argument, or has a name."""
        return bool(
            self._node_of(tensor) is not None
            or id(tensor) in self._owned
            or id(tensor) in self._names
            or self._attribute(tensor)
            or any(tensor is one for one in self._before)
        )

    def maker_of(self, tensor: Any) -> int | None:
        """Return the node that computed a tensor, or None."""
        return self._node_of(tensor)

    def is_last(self, tensor: Any) -> bool:
        """Return True if the last node computed a tensor."""
        return self._node_of(tensor) == len(self.nodes) - 1

    def alias(self, tensor: Any, source: Any) -> None:
        """Record that `tensor` is the result of the node that computed `source`."""
        self._makers[id(tensor)] = self.library.weak(tensor), self.source(source)

    def also_from(self, result: Any, tensors: Sequence[Any]) -> None:
        """Add the nodes that computed some tensors to the sources of the node that computed `result`."""
        at = self._node_of(result)
        if at is not None:
            node = self.nodes[at]
            for source in self.sources(tensors):
                if source not in node.sources and source != at:
                    node.sources.append(source)

    def results(self) -> list[Any]:
        """Return the existing tensors of the run, the last first."""
        known = sorted(((at, weak) for weak, at in self._makers.values()), key=lambda pair: -pair[0])
        return [one for _, weak in known if (one := weak()) is not None]

    def on_write(self, tensor: Any, at: int) -> None:
        """Record that a recorded call wrote to a tensor."""
        known = self._node_of(tensor)
        if at < 0 or known == at:
            return
        node = self.nodes[at]
        self._makers[id(tensor)] = self.library.weak(tensor), at
        self._note_write(tensor, at)
        owned = self._owned.get(id(tensor))
        if owned is not None and owned.path not in node.writes:
            node.writes.append(owned.path)

    def on_buffer_writes(self, buffers: Sequence[Any]) -> None:
        """Record that the innermost module wrote to some of its buffers without a recorded call."""
        last = len(self.nodes) - 1
        if last < 0 or self.nodes[last].kind != "call" or self.nodes[last].module is not self.module:
            return
        for tensor in buffers:
            owned = self._owned.get(id(tensor))
            if owned is not None and not any(owned.path in node.writes for node in self.nodes if node.module is self.module):
                self.on_write(tensor, last)

    def find_rebound_buffers(self) -> None:
        """Find buffers that were assigned other tensors, and add them to the writes of the calls that computed these tensors."""
        for path, module in self.known.items():
            for key, tensor in module.named_buffers(recurse=False):
                label = attribute(path, key, module)
                at = None if id(tensor) in self._owned else self._node_of(tensor)
                if at is not None and label not in self.nodes[at].writes:
                    self.nodes[at].writes.append(label)
