"""Record operations, module calls, in-place writes and backward passes while a program runs.

A `Recorder` belongs to one thread and one period of time, a cell or a `with tracing():` block. The adapters of the libraries
notify it of events (`Library.recording`). It stores little: notes on the nodes themselves, and the last recorded sweep.
Cotangents and values are reduced when they are computed, so all numbers are of the same time.

If a loss or leaf gets a NaN or an infinity, and the leaf gets no finite gradient later (as it would after a gradient scaler has
reduced its scale), the first such sweep is kept and shown, because later ones are its consequences.

The time for recording is bounded (`pacing`): beyond it, sweeps are skipped, with the operations before them. A program may train
several models (`trainings`): the last sweep of each is kept, and the first graph, which shows how weights were initialised.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gradlab import clock
from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries import Library, adapters
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import called_objects, module_names, names_in, names_of_functions, owners_in
from gradlab.explore.pooled_matrix import pool_matrix
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.entering import enter_sweep
from gradlab.explore.trace.event_log import EventLog
from gradlab.explore.trace.frozen import FrozenParts
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.journal import Journal
from gradlab.explore.trace.making import trace_of_attempt, trace_of_first_sweep, trace_of_sweep, trace_of_unfinished
from gradlab.explore.trace.notes import METHODS, Frame, RecordedCall, RecordedCut, RecordedFailure, cell_site, line_of
from gradlab.explore.trace.pacing import Pace
from gradlab.explore.trace.reading import Names, RecordedValues, Root
from gradlab.explore.trace.slopes import slopes_of
from gradlab.explore.trace.sweep import RecordedLeaf, RecordedSweep, arrivals_of, uses_of
from gradlab.explore.trace.trainings import Training, Trainings

MAX_HELD = 64 * 2**20  # bytes of arrays that are kept alive until the end of the next sweep
LOOKUP_INTERVAL = 8  # sweeps of a loop after which its training is determined again
MAX_PLACES, MAX_CALLS, MAX_CUTS = 100, 20_000, 1_000  # places that call backward, calls of modules, detached tensors
MAX_WAITING = 16 * 2**20  # bytes of cotangents that wait for the rest of a sum
CELLS = 64  # rows and columns of the reduced matrix of a matrix-shaped gradient


class Recorder:
    """A recorder of one thread.

    Attributes
    ----------
    sweeps : int
        The number of reverse sweeps that wrote `.grad`.
    last : RecordedSweep or None
        The last recorded sweep.
    trainings : Trainings
        The sweeps of each model.
    on : bool
        True while operations are recorded.
    call : RecordedCall or None
        The current module call.
    faults : Faults
        Catches errors of the recorder, so that they do not reach the recorded program.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]],
        first: Sequence[str] = (),
        *,
        maps: int = 0,
        called: Mapping[str, Any] | None = None,
        runs_compiled: bool = True,
    ) -> None:
        self.namespace, self.first, self.maps = namespace, tuple(first), maps
        self.called = dict(called or {})  # names, also `params[0]`; they have priority over the namespace
        self.runs_compiled, self.ran_uncompiled = runs_compiled, False  # functions of torch.compile
        self.faults = Faults("recorded the program")
        self.sweeps = 0
        self.asked = 0  # calls of torch.autograd.grad
        self.on = True
        self.last: RecordedSweep | None = None
        self.identities = Identities()
        self.events = EventLog(self.identities)
        self.frozen = FrozenParts(self.identities)
        self.trainings = Trainings(self.identities)
        self.on_end: Callable[[Training], Any] | None = None  # called with a training that is over; returns its diagnosis
        self.examines_every_sweep = False  # whether every sweep is recorded, regardless of the time
        self.call: RecordedCall | None = None
        self.calls: deque[RecordedCall] = deque(maxlen=MAX_CALLS)
        self.calls_objects = False  # whether objects that are not modules have computed
        self.cuts: deque[RecordedCut] = deque(maxlen=MAX_CUTS)
        self.journal = Journal()
        self.leaves_from_cuts: WeakKeyDictionary[Any, Sequence[RecordedCut]] = WeakKeyDictionary()
        self.refused: list[tuple[Library, Any, str, tuple[RecordedCut, ...], Any]] = []
        self._running: list[RecordedSweep | None] = []
        self._held: deque[tuple[int, Any]] = deque()
        self._bytes = 0
        self.pace = Pace()
        self._places: dict[tuple[tuple[int, int], ...], Training] = {}  # the training of each place
        self._shared: set[tuple[tuple[int, int], ...]] = set()  # places of several trainings
        self._training = self.trainings.rest  # of the last sweep
        self._recordings: dict[str, Recording] = {}
        self._ours = False  # whether the current sweep is called for the user
        self.failed_call: RecordedFailure | None = None  # the last call of a function that raised

    # ------------------------------------------------------------------------------------------------- start and stop
    def __enter__(self) -> Recorder:
        self.meet_libraries()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def meet_libraries(self) -> None:
        """Start recording the libraries that have been imported since."""
        with self.faults:
            for library in adapters():
                if library.name not in self._recordings:
                    recording = library.recording(self)
                    if recording is not None:
                        self._recordings[library.name] = recording
                        recording.open()

    def close(self) -> None:
        """Stop recording. The recorded data stays until `forget`. May be called several times."""
        for recording in self._recordings.values():
            with self.faults:
                recording.close()

    def settle_journal(self) -> None:
        """Sample the leaves that sweeps have reached once more, to complete the journal."""
        self.settle()
        for library in adapters():
            with self.faults:
                self.journal.finish(library.sample, library.version, library.is_tensor)

    @contextmanager
    def for_the_user(self) -> Iterator[None]:
        """Record a backward that is called for the user after the program. It has no line and is always recorded."""

        def reopen() -> None:
            for recording in self._recordings.values():
                with self.faults:
                    recording.open()

        self.on, self._ours = True, True
        try:
            with scope_guard(reopen, self.close):
                yield
        finally:
            self._ours = False

    def forget(self) -> None:
        """Delete all recorded data."""
        self.close()
        self._held.clear()
        self._bytes = 0
        self.last = self.failed_call = None
        self.trainings.clear()
        self._places.clear()
        self._shared.clear()
        self._training = self.trainings.rest
        self._running.clear()
        for kept in (self.calls, self.cuts, self.events, self.frozen, self.refused, self.journal, self.leaves_from_cuts):
            kept.clear()

    # ------------------------------------------------------------------------------------------------------- operations
    def hold(self, array: Any, size: int) -> None:
        """Keep an array alive until the end of the next sweep, as far as memory allows."""
        self._held.append((size, array))
        self._bytes += size
        while self._bytes > MAX_HELD:
            self._bytes -= self._held.popleft()[0]

    def on_module_enter(self, module: Any, site: Any, graded: bool) -> None:
        """Begin a module call."""
        self.call = RecordedCall(module, self.call, site, graded)
        self.calls.append(self.call)
        self.frozen.see_call(self.call, self.sweeps)

    def on_module_exit(self) -> None:
        """End the current module call."""
        if self.call is not None:
            self.call = self.call.outer

    def add_time(self, seconds: float) -> None:
        """Add time spent on recording, and stop recording if its time has run out."""
        self.pace.spent += seconds
        if self.pace.is_over and self.on and not self._ours:
            self.on = False

    def on_step(self, library: Library, optimizer: Any, site: Any) -> None:
        """Record an optimizer step, with the gradients that its parameters still have."""
        started = clock.now()
        held = [p for group in optimizer.param_groups for p in group["params"]]
        moved = [p for p in held if p.grad is not None and not (self.on and library.is_zero(p.grad))]
        self.events.add_step(optimizer, site, held, moved, self.on)
        self.frozen.after_step(library, site, self.sweeps)
        self.add_time(clock.now() - started)

    def refuse(self, library: Library, output: Any, severed: Sequence[RecordedCut], site: Any) -> None:
        """Record a call of backward on a tensor that lost its history at some cuts."""
        if len(self.refused) < MAX_CUTS:
            self.refused.append((library, library.weakly(output), "", tuple(severed), site))

    def losses_of(self, library: Library, tensor: Any) -> tuple[RecordedCut, ...]:
        """Return the recorded cuts at which a tensor lost its history."""
        recording = self._recordings.get(library.name)
        return () if recording is None else tuple(recording.losses(tensor))

    # ----------------------------------------------------------------------------------------------------------- sweeps
    def begin(
        self,
        library: Library,
        roots: Sequence[tuple[Any, Any]],
        outputs: Sequence[Any],
        site: Any,
        frames: Sequence[Frame],
        *,
        accumulates: bool = True,
        late: bool = False,
        retains: bool = False,
        private: bool = False,
        scale: float = 1.0,
    ) -> RecordedSweep | None:
        """Begin a sweep from (node, cotangent) pairs. Return it if it should be recorded: it writes `.grad`, or it is internal
        (`private`).

        `frames` are the running functions of the user, innermost first. The cotangents contain the factor `scale`, by which all
        gradients are divided."""
        self._running.append(None)
        started = clock.now()
        self.settle()
        if self._ours:
            site, frames = None, ()
        tops = [node for node, _ in roots]
        sweep = training = None
        looks, begins = private or (accumulates and self.on), False
        nodes, uses = uses_of(library, tops) if looks else (set(), Counter())
        if accumulates and not private:
            training, begins = self._training_of(library, nodes or tops, frames, known=looks)
            training.sweeps += 1
            if begins and not looks:
                looks, (nodes, uses) = True, uses_of(library, tops)
                training, _ = self.trainings.of_nodes(library, nodes)
            self._training = training
            self.journal.skipped += not looks
        looks = looks and not any(self._running)
        names = self.names_at(library, frames) if looks else Names()
        if begins and looks:
            self.pace.resume()
        if accumulates:
            self.sweeps += 1
            self.events.add("backward", site, outputs)
        if looks:
            first = library.values([*outputs, *(g for _, g in roots)])
            own, cotangents = first[: len(outputs)], first[len(outputs) :]
            number = self.sweeps if training is None else training.sweeps
            refs = [library.weakly(out) for out in outputs]
            sweep = RecordedSweep(library, number, [], refs, names, site, late, private, retains=retains, scale=scale)
            sweep.training, sweep.begins, sweep.nodes, sweep.uses = training, begins, nodes, uses
            for i, (node, _) in enumerate(roots):
                whole = library.whole(node)
                out = outputs[i] if len(outputs) == len(roots) else None
                name = names.by_id.get(id(out), "") if out is not None else ""
                shape = (library.shape_of(out) if out is not None else library.shape(node)) or ()
                value, start = own[i] if out is not None else None, sweep.unscale(cotangents[i])
                sweep.roots.append(Root(node, shape, name, value, start))
                if library.variable(whole) is not None:
                    self.leaf(sweep, whole)
            sweep.owners = owners_in(names_of_functions([frame.names for frame in frames]))
            sweep.events = self.events.count
            if training is not None:
                self._update_names(training, sweep, frames)
        self._running[-1] = sweep
        self.add_time(clock.now() - started)
        return sweep

    def _training_of(
        self, library: Library, nodes: Collection[Any], frames: Sequence[Frame], *, known: bool
    ) -> tuple[Training, bool]:
        """Return the training of a sweep, and whether it begins with the sweep. It is found by all leaves of the sweep if its
        nodes are known, else by leaves near its roots. (In a steady loop it is found every few sweeps only, because accessing
        torch's nodes takes most of the time.)"""
        place = tuple([(id(frame.code), frame.offset) for frame in frames])
        likely = None if known or place in self._shared else self._places.get(place)
        if likely is not None and likely in self.trainings.known and likely.sweeps % LOOKUP_INTERVAL:
            likely.progress.update(frames)
            if likely.progress.steady:
                return likely, False
        if known:
            training, begins = self.trainings.of_nodes(library, nodes)
        else:
            training, begins = self.trainings.near(library, nodes)
        if begins or len(self._places) >= MAX_PLACES:
            self._places.clear()
            self._shared.clear()
        elif self._places.get(place, training) is not training:
            self._shared.add(place)
        if training is not likely or not likely.sweeps % LOOKUP_INTERVAL:
            training.progress.update(frames)
        if training in self.trainings.known:
            self._places[place] = training
        return training, begins

    def _end_others(self, sweep: RecordedSweep) -> None:
        """Convert all other trainings to plain data when a training begins, and end trainings whose leaves have no name any more.
        The events so far belong to them."""
        self._settle_identities()
        over, others = False, self.trainings.others(sweep.training)
        for other in others:
            other.release(self.trace)
            if not other.over and other.is_of(sweep.library) and other.keys.isdisjoint(sweep.names.by_id):
                self.end_training(other)
                over = True
        if over and all(other.over for other in others):
            self._forget_events({key for other in others for key in other.keys})

    def _keep_first(self, training: Training) -> None:
        """Keep the plain data of the first sweep of a training, once another one has been recorded."""
        first = training.beginning
        if first is None or first is training.last:
            return
        self._settle_identities()
        trace = first.library.unseen(trace_of_first_sweep)(self, first) if first.trace is None else first.trace
        training.first, training.beginning = trace, None

    def end_training(self, training: Training) -> None:
        """End a training: call `on_end`, and keep only its plain data and diagnosis."""
        training.release(self.trace)
        training.over = True
        if self.on_end is not None and training.trace is not None:
            with self.faults:
                training.diagnosis = self.on_end(training)
        training.owners.clear()

    def _forget_events(self, keys: set[int]) -> None:
        """Delete the events of leaves up to the last one, and the calls and cuts until then."""
        self.events.forget_those_of(keys)
        self.journal.clear()
        self.calls = deque(self.trainings.calls_of_others(self.calls, keys), maxlen=MAX_CALLS)
        self.cuts = deque((cut for cut in self.cuts if any(ref() is not None for ref in cut.leaves)), maxlen=MAX_CUTS)

    def _update_names(self, training: Training, sweep: RecordedSweep, frames: Sequence[Frame]) -> None:
        """Update the names of the model of a training whose sweep is recorded."""
        training.over = False  # also if its leaves had no name before
        identity = training.identity
        identity.keep(frames)
        if sweep.begins:
            training.progress.begin(frames, lambda value: self.trainings.has_part(value, training.keys))
        theirs = {name: one for name, one in owners_in(self.namespace()).items() if self.trainings.has_part(one, training.keys)}
        training.owners = theirs | sweep.owners
        identity.model = next((name for name, one in training.owners.items() if is_model(one)), "")
        cell = cell_site()
        identity.line = identity.line or (f"line {line_of(cell)}" if cell is not None else "")

    @contextmanager
    def sweeping(self, library: Library, roots: Sequence[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Iterator[None]:
        """Record a sweep that the block runs, through hooks on its nodes. The arguments are those of `begin`."""
        outer, sweep, watching = len(self._running), None, None
        error: BaseException | None = None
        try:
            with self.faults:
                sweep = library.unseen(self.begin)(library, roots, *args, **kwargs)
                if sweep is not None:
                    started = clock.now()
                    see = self.faults.guard(partial(self.on_node, sweep))
                    watching = library.watching([*sweep.nodes], see, arrivals=arrivals_of(sweep))
                    watching.__enter__()
                    self.add_time(clock.now() - started)
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            with self.faults:
                if watching is not None:
                    started = clock.now()
                    watching.__exit__(None, None, None)
                    self.add_time(clock.now() - started)
            with self.faults:
                library.unseen(self.end)(error)
            del self._running[outer:]
            error = None  # its traceback holds this frame

    def see(self, library: Library, output: Any) -> None:
        """Record the graph behind a tensor, without a sweep."""
        start = library.tensor(np.ones(tuple(output.shape)), like=output)
        with self.sweeping(library, [(library.node(output), start)], [output], None, (), private=True, retains=True):
            if (sweep := self._running[-1]) is not None:
                for node in sweep.nodes:
                    self.leaf(sweep, node)

    def leaf(self, sweep: RecordedSweep, node: Any) -> None:
        """Record a leaf before the sweep writes its `.grad`."""
        if node in sweep.leaves:
            return
        tensor = sweep.library.variable(node)
        if tensor is not None:
            before = sweep.unscale(sweep.library.values([tensor.grad])[0]) if tensor.grad is not None else None
            losses, key = self.losses_of(sweep.library, tensor), self.identities.key(tensor)
            version = sweep.library.version(tensor)
            sweep.leaves[node] = RecordedLeaf(node, tensor, str(tensor.device), before, losses=losses, key=key, version=version)

    def on_node(self, sweep: RecordedSweep, node: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """Record that `node` computed cotangents of its sources from its upstream gradient `g`. A leaf has no sources."""
        started = clock.now()
        library, seen = sweep.library, sweep.seen
        whole = library.whole(node)
        if not sources:
            self.leaf(sweep, node)
        if (leaf := sweep.leaves.get(node)) is not None and g is not None and not sweep.private:
            leaf.sample = library.sample(g)
            if leaf.sample is not None and sweep.scale != 1.0:
                leaf.sample /= sweep.scale
        arrived = library.summary(g)
        if arrived is not None and (whole is node or whole not in seen.gradients):
            seen.gradients[whole] = arrived
        if whole not in seen.values:
            value = library.value_at(whole)
            if value is not None:
                seen.values[whole] = value
            passed = slopes_of(library, whole, g, sources, cotangents)
            if passed is not None:
                seen.slopes[whole] = passed
            self._read_operands(library, seen, whole)
        parts = sweep.parts.pop(node, None)
        if parts is not None and g is not None:
            self._share(sweep, parts, g)
        for at, (source, cotangent) in enumerate(zip(sources, cotangents, strict=False)):
            if source is None or cotangent is None:
                continue
            if sweep.uses.get(source, 0) > 1:  # else this is the whole upstream gradient
                seen.handed[node, at] = library.summary(cotangent), None
                size = library.bytes_of(cotangent)
                if sweep.waiting + size <= MAX_WAITING:
                    sweep.waiting += size
                    target = library.targets(node)[at]
                    part = node, at, 0 if target is None else target[1], library.copy(cotangent)
                    sweep.parts.setdefault(source, []).append(part)
            if library.variable(source) is not None:
                self.leaf(sweep, source)
        self.pace.spent += clock.now() - started

    def _read_operands(self, library: Library, seen: RecordedValues, node: Any) -> None:
        """Record the arguments of an operation that get no gradient, while they exist."""
        note = library.note(node)
        for operand in note.operands if note is not None else ():
            kept = operand.kept
            if kept is not None and kept.numbers is None and kept not in seen.given:
                value = library.kept_value(kept)
                if value is not None:
                    seen.given[kept] = value

    def _share(self, sweep: RecordedSweep, parts: list[tuple[Any, int, int, Any]], g: Any) -> None:
        """Compute the share of each of several cotangents in their sum. Cotangents of one output of a node are added up."""
        library, seen = sweep.library, sweep.seen
        together = Counter(output for _, _, output, _ in parts)
        for node, at, output, cotangent in parts:
            sweep.waiting -= library.bytes_of(cotangent)
            whole = g[output] if isinstance(g, tuple) else g
            share = 1.0 if together[output] == 1 else None if whole is None else library.share(cotangent, whole)
            seen.handed[node, at] = seen.handed[node, at][0], share

    def add_gradient(self, tensor: Any, gradient: Any) -> None:
        """Record the gradient of a tensor from an internal sweep, because not every library runs the nodes of leaves then."""
        sweep = self.last
        if sweep is not None and gradient is not None:
            node = sweep.library.whole(sweep.library.node(tensor))
            sweep.seen.gradients[node] = sweep.library.values([gradient])[0]

    def end(self, error: BaseException | None) -> None:
        """End the sweep. `error` is the exception that stopped it, if any."""
        started = clock.now()
        sweep = self._running.pop()
        if sweep is not None:
            sweep.error = error
            sweep.parts.clear()
            if error is None or self.last is None or self.last.error is not None:
                if sweep.training is not None:
                    sweep.training.record(sweep)
                    self._keep_first(sweep.training)
                if sweep.begins and error is None:
                    self._end_others(sweep)
                self.last = sweep
            if not sweep.late:
                self._finish(sweep)
        self._held.clear()
        self._bytes = 0
        now = clock.now()
        self.pace.spent += now - started
        ahead = self._training.progress
        anyway = self.examines_every_sweep or ahead.last or (ahead.over and self.trainings.has_room)
        self.on = self.pace.look_next(ahead.done, anyway=anyway)

    def settle(self) -> None:
        """Read the gradients of a sweep that wrote them at its end."""
        if self.last is not None and self.last.late:
            self.last.late = False
            self._finish(self.last)

    def _finish(self, sweep: RecordedSweep) -> None:
        """Reduce the gradients and values of the leaves, while they exist."""
        library = sweep.library
        leaves = [leaf for leaf in sweep.leaves.values() if leaf.tensor is not None]
        wanted = [leaf.tensor for leaf in leaves]
        held = [leaf.tensor.grad for leaf in leaves]
        settled = iter(library.values([*wanted, *(g for g in held if g is not None)], histograms=True))
        for leaf in leaves:
            leaf.value, leaf.form = next(settled), library.form(leaf.tensor)
            leaf.shape, leaf.dtype = library.shape_of(leaf.tensor) or (), library.dtype_name(leaf.tensor)
        if not sweep.private:
            with self.faults:
                enter_sweep(self.journal, sweep, leaves, held)
        for leaf, g in zip(leaves, held, strict=True):
            leaf.tensor = None
            if g is None:
                continue
            leaf.gradient, leaf.gradient_form = sweep.unscale(next(settled)), library.form(g)
            if leaf.gradient is not None and len(g.shape) == 2 and g.numel() > 1 and len(sweep.maps) < self.maps:
                array = library.own_array(g)
                sweep.maps.append((leaf.node, pool_matrix(array if sweep.scale == 1.0 else array / sweep.scale, CELLS)))
        sweep.reduce()
        if sweep.training is not None:
            sweep.training.judge(sweep, self.trace)

    def names_at(self, library: Library, frames: Sequence[Frame]) -> Names:
        """Return the current names of the user: local variables of the running functions, innermost first, then of the
        notebook."""
        space = names_of_functions([frame.names for frame in frames])
        space |= {name: value for name, value in self.namespace().items() if name not in space}
        names = Names.of(library, {**self.called, **names_in(space, first=self.first)})
        names.models = module_names(
            (self.namespace(), space)
        )  # the notebook has priority, because a trainer also calls its net `model`
        if self.calls_objects:
            running = {
                id(frame.names.get(name)) for frame in frames for name in frame.arguments[:1] if frame.code.co_name in METHODS
            }
            names.objects = {key: one for key, one in called_objects(space).items() if id(one.ref()) not in running}
        return names

    def _settle_identities(self) -> None:
        """Replace the keys of deleted objects, which may be the ids of living ones."""
        renamed = self.identities.settle()
        if not renamed:
            return
        self.events.rename(renamed)
        self.journal.rename(renamed)
        self.trainings.rename(renamed)

    # ------------------------------------------------------------------------------------------------- recorded data
    @property
    def shown_sweep(self) -> RecordedSweep | None:
        """The sweep that is shown by default."""
        training = None if self.last is None else self.last.training
        return self.last if training is None else training.shown_sweep

    def trace(self, sweep: RecordedSweep | None = None) -> Trace:
        """Return the trace of a sweep: by default, of the last recorded one, or of the first that is not finite.

        Raises
        ------
        RuntimeError
            If no sweep was recorded.
        """
        self.settle()
        sweep = sweep or self.shown_sweep
        if sweep is None:
            raise RuntimeError("no backward was recorded: there is no trace. Call backward() while recording.")
        if sweep.trace is not None:
            return sweep.trace if sweep.training is None else sweep.training.with_count(sweep.trace)
        self._settle_identities()
        return sweep.library.unseen(trace_of_sweep)(self, sweep)

    def attempt(self, losses: Sequence[RecordedCut] | None = None, library: Library | None = None, site: Any = None) -> Trace:
        """Return a trace without nodes for the last backward that failed for lack of a graph, or for a tensor that lost its
        history at the cuts `losses`."""
        if losses is None and self.refused:
            library, _, _, losses, site = self.refused[-1]
        self._settle_identities()
        return trace_of_attempt(self, losses, library or self._main_library(), site)

    def trace_unfinished(self, library: Library, outputs: Sequence[Any]) -> tuple[Trace, Names]:
        """Return the graph behind tensors of a program that failed, and the names; see `trace_of_unfinished`."""
        self._settle_identities()
        return library.unseen(trace_of_unfinished)(self, library, outputs)

    def _main_library(self) -> Library:
        """Return the library of most of the user's tensors."""
        names = names_in(dict(self.namespace()))
        return max(adapters(), key=lambda library: sum(library.is_tensor(tensor) for tensor in names.values()))
