"""What is seen while a program runs: its operations, its calls of modules, its writes and its reverse sweeps.

A `Recorder` belongs to one thread and one stretch of time, a cell or a `with tracing():` block. The libraries' adapters tell it
what happens (`Library.recording`); it keeps little: notes on the nodes themselves, and the last sweep that it looked at.
Cotangents and values are reduced when they pass, so that a number and its neighbour are of the same moment.

Where a NaN or an infinity came to a loss or to a leaf, and the leaf got no finite gradient again (as it does once a loss scaler
has gone back), the first such sweep is kept and shown in place of the last: what comes after it follows from it.

The time that this takes is bounded (`pacing`): beyond it whole sweeps go by unseen, together with the operations before them. A
report says which sweep of how many it shows.

A program may train several models (`trainings`). Of each the last sweep is kept, as plain data once another one begins, and the
first one as plain data: it shows how the weights were drawn.
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
from gradlab.explore.names import called_objects, module_names, modules_in, names_in, names_of_functions, owners_in
from gradlab.explore.pooled_matrix import reduced
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.entering import enter_sweep
from gradlab.explore.trace.happenings import Happenings
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.journal import Journal
from gradlab.explore.trace.making import trace_of_attempt, trace_of_first_sweep, trace_of_sweep, trace_of_unfinished
from gradlab.explore.trace.notes import METHODS, Called, Failed, Frame, Severed, cell_site, line_of
from gradlab.explore.trace.pacing import Pace
from gradlab.explore.trace.reading import Names, Root, Seen
from gradlab.explore.trace.slopes import slopes_of
from gradlab.explore.trace.sweep import LeafSeen, RecordedSweep, arrivals_of, uses_of
from gradlab.explore.trace.trainings import Training, Trainings

HELD = 64 * 2**20  # bytes that are kept alive until the next sweep has been seen
ASKED = 8  # sweeps of a loop after which it is asked again whose they are
PLACES, CALLS, CUTS = 100, 20_000, 1_000  # from which backward is called; of modules; of tensors that lost their history
SHARED = 16 * 2**20  # bytes of cotangents that wait for the rest of a sum
CELLS = 64  # a side of what is kept of a matrix-shaped gradient


class Recorder:
    """Sees what one thread does.

    Attributes
    ----------
    sweeps : int
        How many reverse sweeps that wrote `.grad` have run.
    last : Sweep or None
        The last that was looked at.
    trainings : Trainings
        The sweeps of each model.
    on : bool
        Whether operations are being noted.
    call : Called or None
        The module that is being called.
    faults : Faults
        What recording fails by ends there, and not in the program that is recorded.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]],
        first: Sequence[str] = (),
        *,
        maps: int = 0,
        called: Mapping[str, Any] | None = None,
    ) -> None:
        self.namespace, self.first, self.maps = namespace, tuple(first), maps
        self.called = dict(called or {})  # names as they are, `params[0]` too; they come before those of the namespace
        self.faults = Faults("recorded the program")
        self.sweeps = 0
        self.asked = 0  # calls of torch.autograd.grad
        self.on = True
        self.last: RecordedSweep | None = None
        self.identities = Identities()
        self.events = Happenings(self.identities)
        self.trainings = Trainings(self.identities)
        self.on_end: Callable[[Training], Any] | None = None  # asked about a training that is over; what it says is kept there
        self.unhurried = False  # whether every sweep is looked at, however long that takes
        self.call: Called | None = None
        self.calls: deque[Called] = deque(maxlen=CALLS)
        self.calls_objects = False  # whether objects that are not modules computed
        self.cuts: deque[Severed] = deque(maxlen=CUTS)
        self.journal = Journal()
        self.reborn: WeakKeyDictionary[Any, Sequence[Severed]] = WeakKeyDictionary()  # leaves that are made of what was cut off
        self.refused: list[tuple[Library, Any, str, tuple[Severed, ...], Any]] = []
        self._running: list[RecordedSweep | None] = []
        self._held: deque[tuple[int, Any]] = deque()
        self._bytes = 0
        self.pace = Pace()
        self._places: dict[tuple[tuple[int, int], ...], Training] = {}  # whose sweep was asked for where
        self._shared: set[tuple[tuple[int, int], ...]] = set()  # places from which several take turns
        self._training = self.trainings.rest  # that of the last sweep
        self._recordings: dict[str, Recording] = {}
        self._ours = False  # whether the sweep that runs is called for the user
        self.failed_call: Failed | None = None  # the last call of a function that raised

    # ------------------------------------------------------------------------------------------------------ from when on
    def __enter__(self) -> Recorder:
        self.meet_libraries()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def meet_libraries(self) -> None:
        """Watch the libraries that have been imported by now."""
        with self.faults:
            for library in adapters():
                if library.name not in self._recordings:
                    recording = library.recording(self)
                    if recording is not None:
                        self._recordings[library.name] = recording
                        recording.open()

    def close(self) -> None:
        """See no more. What was seen stays until `forget`. May be called again."""
        for recording in self._recordings.values():
            with self.faults:
                recording.close()

    def settle_journal(self) -> None:
        """Look once more at the leaves that sweeps have reached: what has become of them."""
        self.settle()
        for library in adapters():
            with self.faults:
                self.journal.ended(library.sample, library.version, library.is_tensor)

    @contextmanager
    def for_the_user(self) -> Iterator[None]:
        """See a backward that is called for the user, when the program is over: it has no line, and is looked at in any case."""

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
        """Let go of everything."""
        self.close()
        self._held.clear()
        self._bytes = 0
        self.last = self.failed_call = None
        self.trainings.clear()
        self._places.clear()
        self._shared.clear()
        self._training = self.trainings.rest
        self._running.clear()
        for kept in (self.calls, self.cuts, self.events, self.refused, self.journal, self.reborn):
            kept.clear()

    # ------------------------------------------------------------------------------------------------------- operations
    def hold(self, array: Any, size: int) -> None:
        """Keep an array alive until the next sweep has been seen, as far as there is room."""
        self._held.append((size, array))
        self._bytes += size
        while self._bytes > HELD:
            self._bytes -= self._held.popleft()[0]

    def entered(self, module: Any, site: Any, graded: bool) -> None:
        """A module is being called."""
        self.call = Called(module, self.call, site, graded)
        self.calls.append(self.call)

    def exited(self) -> None:
        """The call is over."""
        if self.call is not None:
            self.call = self.call.outer

    def took(self, seconds: float) -> None:
        """Count the seconds of a look, and end it if its time has run out."""
        self.pace.spent += seconds
        if self.pace.is_over and self.on and not self._ours:
            self.on = False

    def stepped(self, library: Library, optimizer: Any, site: Any) -> None:
        """An optimizer has made a step, with the gradients that its parameters still have."""
        started = clock.now()
        held = [p for group in optimizer.param_groups for p in group["params"]]
        moved = [p for p in held if p.grad is not None and not (self.on and library.is_zero(p.grad))]
        self.events.stepped(optimizer, site, held, moved, self.on)
        self.took(clock.now() - started)

    def refuse(self, library: Library, output: Any, severed: Sequence[Severed], site: Any) -> None:
        """A sweep was asked of a tensor without history, which lost it at some cuts."""
        if len(self.refused) < CUTS:
            self.refused.append((library, library.weakly(output), "", tuple(severed), site))

    def losses_of(self, library: Library, tensor: Any) -> tuple[Severed, ...]:
        """The cuts at which a tensor without history lost it, as far as they were seen."""
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
    ) -> RecordedSweep | None:
        """A sweep starts, from (node, cotangent) pairs. Returns it if it is to be looked at: one that writes `.grad`, or one of
        our own (`private`).

        `frames` are the user's functions that are running, innermost first."""
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
            self.events.happened("backward", site, outputs)
        if looks:
            first = library.values([*outputs, *(g for _, g in roots)])
            own, cotangents = first[: len(outputs)], first[len(outputs) :]
            number = self.sweeps if training is None else training.sweeps
            sweep = RecordedSweep(
                library, number, [], [library.weakly(out) for out in outputs], names, site, late, private, retains=retains
            )
            sweep.training, sweep.begins, sweep.nodes, sweep.uses = training, begins, nodes, uses
            for i, (node, _) in enumerate(roots):
                whole = library.whole(node)
                out = outputs[i] if len(outputs) == len(roots) else None
                name = names.by_id.get(id(out), "") if out is not None else ""
                shape = (library.shape_of(out) if out is not None else library.shape(node)) or ()
                sweep.roots.append(Root(node, shape, name, own[i] if out is not None else None, cotangents[i]))
                if library.variable(whole) is not None:
                    self.leaf(sweep, whole)
            sweep.owners = owners_in(names_of_functions([frame.names for frame in frames]))
            sweep.events = self.events.count
            if training is not None:
                self._looked_at(training, sweep, frames)
        self._running[-1] = sweep
        self.took(clock.now() - started)
        return sweep

    def _training_of(
        self, library: Library, nodes: Collection[Any], frames: Sequence[Frame], *, known: bool
    ) -> tuple[Training, bool]:
        """The training that a sweep belongs to, and whether it begins with it: by all leaves behind it where its nodes are known,
        else by those near its roots. (In a loop that goes on as before they are asked now and then alone: to touch torch's nodes
        takes longer than all else.)"""
        place = tuple([(id(frame.code), frame.offset) for frame in frames])
        likely = None if known or place in self._shared else self._places.get(place)
        if likely is not None and likely in self.trainings.known and likely.sweeps % ASKED:
            likely.progress.swept(frames)
            if likely.progress.steady:
                return likely, False
        if known:
            training, begins = self.trainings.of_nodes(library, nodes)
        else:
            training, begins = self.trainings.near(library, nodes)
        if begins or len(self._places) >= PLACES:
            self._places.clear()
            self._shared.clear()
        elif self._places.get(place, training) is not training:
            self._shared.add(place)
        if training is not likely or not likely.sweeps % ASKED:
            training.progress.swept(frames)
        if training in self.trainings.known:
            self._places[place] = training
        return training, begins

    def _begun(self, sweep: RecordedSweep) -> None:
        """A training has begun. Of the others there is plain data from now on, and those whose leaves have no name any more are
        over: what happened until then was theirs."""
        self._settle_identities()
        over, others = False, self.trainings.others(sweep.training)
        for other in others:
            self._let_go(other)
            if not other.over and other.is_of(sweep.library) and other.keys.isdisjoint(sweep.names.by_id):
                self.end_training(other)
                over = True
        if over and all(other.over for other in others):
            self._forget_events({key for other in others for key in other.keys})

    def _let_go(self, training: Training) -> None:
        """Keep of a training what is told of it, and no node of a graph."""
        training.last = training.shown
        for sweep in training.kept:
            if sweep.trace is None:
                sweep.let_go(self.trace(sweep))

    def _keep_first(self, training: Training) -> None:
        """Keep the plain data of the first sweep of a training, once another one has been looked at."""
        first = training.beginning
        if first is None or first is training.last:
            return
        self._settle_identities()
        trace = first.library.unseen(trace_of_first_sweep)(self, first) if first.trace is None else first.trace
        training.first, training.beginning = trace, None

    def end_training(self, training: Training) -> None:
        """A training is over: have it looked at, and hold nothing of it any more but what is said of it."""
        self._let_go(training)
        training.over = True
        if self.on_end is not None and training.trace is not None:
            with self.faults:
                training.said = self.on_end(training)
        training.owners.clear()

    def _forget_events(self, keys: set[int]) -> None:
        """Forget what happened to leaves up to the last time, and what was seen until then."""
        self.events.forget_those_of(keys)
        self.journal.clear()
        self.calls = deque(self.trainings.calls_of_others(self.calls, keys), maxlen=CALLS)
        self.cuts = deque((cut for cut in self.cuts if any(ref() is not None for ref in cut.leaves)), maxlen=CUTS)

    def _looked_at(self, training: Training, sweep: RecordedSweep, frames: Sequence[Frame]) -> None:
        """A sweep of a training is looked at: keep the names that what learns has now."""
        training.over = False  # though its leaves had no name for a while
        identity = training.identity
        identity.keep(frames)
        if sweep.begins:
            training.progress.begun(frames, lambda value: self.trainings.has_part(value, training.keys))
        theirs = {name: one for name, one in owners_in(self.namespace()).items() if self.trainings.has_part(one, training.keys)}
        training.owners = theirs | sweep.owners
        identity.model = next((name for name, one in training.owners.items() if is_model(one)), "")
        cell = cell_site()
        identity.line = identity.line or (f"line {line_of(cell)}" if cell is not None else "")

    @contextmanager
    def sweeping(self, library: Library, roots: Sequence[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Iterator[None]:
        """A sweep that the block runs, seen through hooks on its nodes. Arguments as of `begin`."""
        outer, sweep, watching = len(self._running), None, None
        error: BaseException | None = None
        try:
            with self.faults:
                sweep = library.unseen(self.begin)(library, roots, *args, **kwargs)
                if sweep is not None:
                    started = clock.now()
                    see = self.faults.guard(partial(self.visited, sweep))
                    watching = library.watching([*sweep.nodes], see, arrivals=arrivals_of(sweep))
                    watching.__enter__()
                    self.took(clock.now() - started)
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            with self.faults:
                if watching is not None:
                    started = clock.now()
                    watching.__exit__(None, None, None)
                    self.took(clock.now() - started)
            with self.faults:
                library.unseen(self.end)(error)
            del self._running[outer:]
            error = None  # its traceback holds this frame

    def see(self, library: Library, output: Any) -> None:
        """Look at the graph behind a tensor, without a sweep."""
        start = library.tensor(np.ones(tuple(output.shape)), like=output)
        with self.sweeping(library, [(library.node(output), start)], [output], None, (), private=True, retains=True):
            if (sweep := self._running[-1]) is not None:
                for node in sweep.nodes:
                    self.leaf(sweep, node)

    def leaf(self, sweep: RecordedSweep, node: Any) -> None:
        """A leaf that the sweep will reach, before its `.grad` is written."""
        if node in sweep.leaves:
            return
        tensor = sweep.library.variable(node)
        if tensor is not None:
            before = sweep.library.values([tensor.grad])[0] if tensor.grad is not None else None
            losses, key = self.losses_of(sweep.library, tensor), self.identities.key(tensor)
            version = sweep.library.version(tensor)
            sweep.leaves[node] = LeafSeen(node, tensor, str(tensor.device), before, losses=losses, key=key, version=version)

    def visited(self, sweep: RecordedSweep, node: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """`node` turned the cotangent `g` into one for each of its sources. Of a leaf: `g` arrived there."""
        started = clock.now()
        library, seen = sweep.library, sweep.seen
        whole = library.whole(node)
        if not sources:
            self.leaf(sweep, node)
        if (leaf := sweep.leaves.get(node)) is not None and g is not None and not sweep.private:
            leaf.sample = library.sample(g)
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
            self._given(library, seen, whole)
        parts = sweep.parts.pop(node, None)
        if parts is not None and g is not None:
            self._share(sweep, parts, g)
        for at, (source, cotangent) in enumerate(zip(sources, cotangents, strict=False)):
            if source is None or cotangent is None:
                continue
            if sweep.uses.get(source, 0) > 1:  # else all that arrives there is this
                seen.handed[node, at] = library.summary(cotangent), None
                size = library.bytes_of(cotangent)
                if sweep.waiting + size <= SHARED:
                    sweep.waiting += size
                    target = library.targets(node)[at]
                    part = node, at, 0 if target is None else target[1], library.copied(cotangent)
                    sweep.parts.setdefault(source, []).append(part)
            if library.variable(source) is not None:
                self.leaf(sweep, source)
        self.pace.spent += clock.now() - started

    def _given(self, library: Library, seen: Seen, node: Any) -> None:
        """What an operation was given besides, while it is there."""
        note = library.note(node)
        for operand in note.given if note is not None and not note.inner else ():
            kept = operand.kept
            if kept is not None and kept.numbers is None and kept not in seen.given:
                value = library.kept_value(kept)
                if value is not None:
                    seen.given[kept] = value

    def _share(self, sweep: RecordedSweep, parts: list[tuple[Any, int, int, Any]], g: Any) -> None:
        """What part each of several cotangents has in their sum: those of the same output of a node."""
        library, seen = sweep.library, sweep.seen
        together = Counter(output for _, _, output, _ in parts)
        for node, at, output, cotangent in parts:
            sweep.waiting -= library.bytes_of(cotangent)
            whole = g[output] if isinstance(g, tuple) else g
            share = 1.0 if together[output] == 1 else None if whole is None else library.share(cotangent, whole)
            seen.handed[node, at] = seen.handed[node, at][0], share

    def found(self, tensor: Any, gradient: Any) -> None:
        """What a private sweep gave for a tensor: not every library runs the nodes of leaves then."""
        sweep = self.last
        if sweep is not None and gradient is not None:
            node = sweep.library.whole(sweep.library.node(tensor))
            sweep.seen.gradients[node] = sweep.library.values([gradient])[0]

    def end(self, error: BaseException | None) -> None:
        """The sweep is over; `error` is what stopped it, if anything did."""
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
                    self._begun(sweep)
                self.last = sweep
            if not sweep.late:
                self._finish(sweep)
        self._held.clear()
        self._bytes = 0
        now = clock.now()
        self.pace.spent += now - started
        ahead = self._training.progress
        anyway = self.unhurried or ahead.last or (ahead.over and self.trainings.has_room)
        self.on = self.pace.look_next(ahead.done, anyway=anyway)

    def settle(self) -> None:
        """Read the gradients of a sweep that wrote them when it was over."""
        if self.last is not None and self.last.late:
            self.last.late = False
            self._finish(self.last)

    def _finish(self, sweep: RecordedSweep) -> None:
        """Reduce what the sweep left in the leaves, while it is there."""
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
            leaf.gradient, leaf.gradient_form = next(settled), library.form(g)
            if leaf.gradient is not None and len(g.shape) == 2 and g.numel() > 1 and len(sweep.maps) < self.maps:
                sweep.maps.append((leaf.node, reduced(library.own_array(g), CELLS)))
        sweep.reduce()
        if sweep.training is not None:
            sweep.training.judge(sweep)

    def names_at(self, library: Library, frames: Sequence[Frame]) -> Names:
        """The user's names at this moment: the running functions' locals, innermost first, then the notebook's."""
        space = names_of_functions([frame.names for frame in frames])
        space |= {name: value for name, value in self.namespace().items() if name not in space}
        names = Names.of(library, {**self.called, **names_in(space, first=self.first)})
        names.models = module_names((self.namespace(), space))  # the notebook's first: a trainer calls another's net `model`, too
        if self.calls_objects:
            running = {
                id(frame.names.get(name)) for frame in frames for name in frame.arguments[:1] if frame.code.co_name in METHODS
            }
            names.objects = {key: one for key, one in called_objects(space).items() if id(one.ref()) not in running}
        return names

    def _settle_identities(self) -> None:
        """Replace the keys of what is dead, which may be the ids of what lives."""
        renamed = self.identities.settle()
        if not renamed:
            return
        self.events.rename(renamed)
        self.journal.rename(renamed)
        self.trainings.rename(renamed)

    # ------------------------------------------------------------------------------------------------------ what was seen
    def models(self, value: Any) -> list[Any]:
        """A model of the user's and the modules in it; of anything else nothing."""
        return [module for _, module in modules_in("", value)]

    @property
    def shown(self) -> RecordedSweep | None:
        """The sweep that is told of where none is named."""
        training = None if self.last is None else self.last.training
        return self.last if training is None else training.shown

    def trace(self, sweep: RecordedSweep | None = None) -> Trace:
        """The trace of the last sweep that was looked at, or of the one that was spoilt.

        Raises
        ------
        RuntimeError
            If no sweep was seen.
        """
        self.settle()
        sweep = sweep or self.shown
        if sweep is None:
            raise RuntimeError("no backward was seen: there is no trace. Call backward() while it is recorded.")
        if sweep.trace is not None:
            return sweep.trace if sweep.training is None else sweep.training.counted(sweep.trace)
        self._settle_identities()
        return sweep.library.unseen(trace_of_sweep)(self, sweep)

    def attempt(self, losses: Sequence[Severed] | None = None, library: Library | None = None, site: Any = None) -> Trace:
        """What was seen where no sweep was: the last that was asked for and could not be, or one of a tensor with these losses.
        The trace has no nodes."""
        if losses is None and self.refused:
            library, _, _, losses, site = self.refused[-1]
        self._settle_identities()
        return trace_of_attempt(self, losses, library or self._mostly(), site)

    def unfinished(self, library: Library, outputs: Sequence[Any]) -> tuple[Trace, Names]:
        """The graph behind tensors of a program that failed, and the names; see `trace_of_unfinished`."""
        self._settle_identities()
        return library.unseen(trace_of_unfinished)(self, library, outputs)

    def _mostly(self) -> Library:
        """The library of most of the user's tensors."""
        names = names_in(dict(self.namespace()))
        return max(adapters(), key=lambda library: sum(library.is_tensor(tensor) for tensor in names.values()))
