"""Reports of gradlab's own operations and sweeps to a `Recorder`."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from sys import _getframe
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.core.modes import mode
from gradlab.core.observers import ReverseSweep, add_observer, count_active, remove_observer
from gradlab.core.storage import NUMBER_STORAGE, own_storage, tick
from gradlab.diagnose.sites import GRADLAB_FILES, Loss, Sites, is_gradlab_file, site_here
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.trace.notes import Note, RecordedArray, RecordedCut, RecordedOperand, around, cell_site, users_frames
from gradlab.explore.trace.values import FEW

BEHIND = 200  # maximum number of nodes searched behind a cut
GIVEN = 8  # maximum number of arguments without gradient in a note


class GradlabRecording(Sites, Recording):
    """Observer that records a thread's operations on gradlab's tensors: sites, and notes for a trace."""

    def __init__(self, library: Any, recorder: Any) -> None:
        super().__init__()
        self.library, self.recorder = library, recorder
        self._sweeps: list[Any] = []
        self._sites: list[Any] = []  # where the current sweeps were called
        self._swept_at: int | None = None  # when the last sweep ended
        self.faults = recorder.faults

    def open(self) -> None:
        if count_active(self) == 0:
            add_observer(self)

    def close(self) -> None:
        remove_observer(self)

    # ------------------------------------------------------------------------------------------------------- operations
    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        frame: Any = _getframe(2)
        while (code := frame.f_code).co_filename in GRADLAB_FILES or is_gradlab_file(code.co_filename):
            frame = frame.f_back
            if frame is None:
                return
        site = code, frame.f_lasti
        self.note_operation(site, op, result, args)
        node, recorder = result.node, self.recorder
        if node is None or not recorder.on:
            return
        cell, methods = around(frame, site, recorder.call)
        if methods:
            recorder.calls_objects = True
        # Conditions are in comprehensions: an `if` at the end of a loop's body compiles to a jump without a line number, and
        # IPython before 8 fails to show the traceback of an interrupt there.
        if self.lossy:  # a leaf may no longer exist when the sweep comes
            leaves = [x for x in args if x is not None and x.node is not None and x.node.op is None]
            recorder.leaves_from_cuts.update([(x.node, cuts) for x in leaves if (cuts := self.losses(x))])
        constants = [given_of(at, x) for at, x in enumerate(args[:GIVEN]) if x is not None and x.node is None]
        arrays = [one.kept.array() for one in constants if one.kept is not None and one.kept.array is not None]
        for array in [one for one in arrays if one is not None]:
            recorder.hold(array, array.nbytes)
        inner = bool(self._sites) and site == self._sites[-1]  # operations of a derivative, whose operands the user did not write
        node.note = Note(site, cell, recorder.call, self._keep(result), constants, inner, None, methods)

    def _keep(self, tensor: Any) -> RecordedArray:
        array = tensor.array
        if array.size <= FEW and isinstance(array, (np.ndarray, np.generic)):
            return RecordedArray(array.shape, array.dtype, tuple(array.reshape(-1).tolist()), None, None, 0)
        storage = own_storage(tensor)
        self.recorder.hold(array, array.nbytes)
        return RecordedArray(array.shape, array.dtype, None, weakref.ref(array), storage, storage.version)

    def on_join(self, results: Sequence[Any], members: Sequence[Any]) -> None:
        note = getattr(members[0], "note", None)
        if note is not None and results[0].node is not None:
            whole = results[0].node.edges[0]
            whole.note = note

    def on_module_enter(self, module: Any) -> None:
        self.recorder.on_module_enter(module, site_here(2), mode.grad)

    def on_module_exit(self, module: Any) -> None:
        self.recorder.on_module_exit()

    # ----------------------------------------------------------------------------------------------------- cuts, writes
    def make_loss(self, source: Any, how: str, site: Any, all_of: Sequence[Any] = ()) -> Loss:
        """Also record the node behind the cut: it may no longer exist when the trace is read."""
        others = [other for other in all_of if other is not None and other is not source]
        leaves = leaves_behind(source.node, *(other.node for other in others if other.node is not None))
        leaves += [leaf for other in others if other.node is None for cut in self.losses(other) for leaf in cut.leaves]
        severed = RecordedCut(how, site, source.node.title, source.array.shape, self._keep(source), leaves, cell_site())
        severed.old = self._swept_at is not None and source.node.order > self._swept_at  # ticks count down
        self.recorder.cuts.append(severed)
        return super().make_loss(source, how, site)._replace(severed=severed)

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """Record a cut also if the history was lost before: the numbers are still computed from leaves."""
        super().on_leave_autograd(source, how)
        if source.node is None and (severed := self.losses(source)):
            first = severed[0]
            self.recorder.cuts.append(
                RecordedCut(how, site_here(2), first.operation, source.array.shape, self._keep(source), first.leaves)
            )

    def on_create(self, result: Any) -> None:
        """Record where a tensor was made from numbers, once numbers have left tensors with a history."""
        if self.last_export is not None and result.node is None:
            site = site_here(2)
            if site is None:
                return
            severed = RecordedCut("born", site, "", result.array.shape, self._keep(result), [])
            result.lost = (Loss("constant", site, "", result.array.shape, None, self.last_export, severed),)
            self.lossy = True

    def on_index(self, result: Any, indices: Sequence[Any]) -> None:
        """Record the numbers of an index, which are arguments, too."""
        super().on_index(result, indices)
        note = None if result.node is None else getattr(result.node, "note", None)
        if note is not None:
            note.given = [*note.given, *(given_of(1 + i, index) for i, index in enumerate(indices) if getattr(index, "lost", ()))]

    def losses(self, tensor: Any) -> list[RecordedCut]:
        return [loss.severed for loss in getattr(tensor, "lost", ()) if loss.severed is not None]

    def on_backward_refused(self, output: Any) -> None:
        self.recorder.refuse(self.library, output, self.losses(output), site_here(2))

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        began = clock.now()
        self.recorder.frozen.before_step(self.library, optimizer)
        self.recorder.add_time(clock.now() - began)

    def on_optimizer_step(self, optimizer: Any) -> None:
        self.recorder.on_step(self.library, optimizer, site_here(2))

    def on_after_write(self, tensor: Any) -> None:
        super().on_after_write(tensor)
        if tensor.node is not None and tensor.node.op is None:
            write = tensor.storage.writes[-1]
            if write.entry != "step":
                self.recorder.events.add("write", write.site, [tensor])
        elif (
            (severed := self.losses(tensor)) and severed[0].how in ("data", "detach") and severed[0].operation == "AccumulateGrad"
        ):
            leaves = [node.variable for ref in severed[0].leaves if (node := ref()) is not None]
            self.recorder.events.add("write", tensor.storage.writes[-1].site, leaves)

    def on_data_replaced(self, tensor: Any) -> None:
        if tensor.node is not None and tensor.node.op is None:
            self.recorder.events.add("write", site_here(2), [tensor])

    # ----------------------------------------------------------------------------------------------------------- sweeps
    def on_sweep_begin(self, sweep: ReverseSweep) -> None:
        self._sites.append(None)
        self._sweeps.append(None)
        frames = users_frames(_getframe(1), lambda name: name in GRADLAB_FILES or is_gradlab_file(name))
        site = (frames[0].code, frames[0].offset) if frames else None
        self._sites[-1] = site
        self._sweeps[-1] = self.recorder.begin(
            self.library,
            sweep.roots,
            sweep.outputs,
            site,
            frames,
            accumulates=sweep.accumulates and not sweep.lead,
            late=sweep.wanted is not None,
        )

    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        sweep = self._sweeps[-1]
        if sweep is not None:
            self.recorder.on_node(sweep, node, g, node.edges if node.op is not None else (), cotangents)

    def on_sweep_end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        self._sweeps.pop()
        self._sites.pop()
        if sweep.accumulates:
            self._swept_at = tick()
        self.recorder.end(error)


def given_of(at: int, tensor: Any) -> RecordedOperand:
    """Describe an argument that gets no gradient."""
    array = tensor.array
    few = array.size <= FEW and isinstance(array, (np.ndarray, np.generic))
    numbers = tuple(array.reshape(-1).tolist()) if few else None
    if tensor.storage is NUMBER_STORAGE:
        return RecordedOperand(
            at, RecordedArray(array.shape, array.dtype, numbers, None, None, 0), numbers[0] if numbers else 0, None, ()
        )
    storage = own_storage(tensor)
    kept = RecordedArray(array.shape, array.dtype, numbers, None if few else weakref.ref(array), storage, storage.version)
    return RecordedOperand(at, kept, None, weakref.ref(tensor), getattr(tensor, "lost", ()))


def leaves_behind(*nodes: Any) -> list[Any]:
    """Return weak references to the leaf nodes behind some nodes, among the `BEHIND` nodes nearest to them."""
    leaves: list[Any] = []
    seen, waiting = set(nodes), deque(dict.fromkeys(nodes))
    while waiting and len(seen) < BEHIND:
        node = waiting.popleft()
        if node.op is None:
            leaves.append(weakref.ref(node))
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                waiting.append(edge)
    return leaves
