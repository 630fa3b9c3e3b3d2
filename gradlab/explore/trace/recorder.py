"""What is seen while a program runs: its operations, its calls of modules, its writes and its reverse sweeps.

A `Recorder` belongs to one thread and one stretch of time, a cell or a `with tracing():` block. The libraries' adapters tell it
what happens (`Library.recording`); it keeps little: notes on the nodes themselves, and the last sweep that it looked at.
Cotangents and values are reduced when they pass, so that a number and its neighbour are of the same moment.

Where a NaN or an infinity came to a loss or to a leaf, and the leaf got no finite gradient again, the first such sweep is kept
and shown in place of the last: what comes after it follows from it. (A scaler that is too large at first makes infinities and
goes back: then there are finite ones again.)

It may take half of the time that the program took so far, of a long one a twentieth, and 0.15 s: beyond that whole sweeps go by
unseen, together with the operations before them, until the program has gone on for long enough. A report says which sweep of how
many it shows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gradlab import clock
from gradlab.core.scopes import scoped
from gradlab.diagnose.faults import Faults
from gradlab.diagnose.source_locations import cells
from gradlab.explore.libraries import Library, adapters
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.names import held_by_self, module_names, modules_in, names_in, owners_in, prefixes
from gradlab.explore.pooled_matrix import reduced
from gradlab.explore.trace.data import ModuleCall, Trace
from gradlab.explore.trace.journal import Entry, Journal, Swept
from gradlab.explore.trace.notes import Called, Happening, Severed, cell_site, cell_source, line_of
from gradlab.explore.trace.reading import Names, Reader, Root, Seen, read
from gradlab.explore.trace.slopes import slopes_of
from gradlab.explore.trace.sweep import LeafSeen, RecordedSweep, arrivals_of, leaves_of, uses_of

SHARE, FREE = 0.5, 0.15  # of the program's own time, and seconds besides
LONG, LATER = 10.0, 0.05  # seconds of its own time after which the share is smaller
ALIKE = 100  # tuples of identities that are kept once
HELD = 64 * 2**20  # bytes that are kept alive until the next sweep has been seen
EVENTS, CALLS, CUTS = 10_000, 20_000, 1_000
SHARED = 16 * 2**20  # bytes of cotangents that wait for the rest of a sum
CELLS = 64  # a side of what is kept of a matrix-shaped gradient
MOST = 50_000  # nodes of a graph that are read


class Recorder:
    """Sees what one thread does.

    Attributes
    ----------
    sweeps : int
        How many reverse sweeps that wrote `.grad` have run.
    last : Sweep or None
        The last that was looked at.
    spoilt : Sweep or None
        The first with a NaN or an infinity in its result or at its leaves, while none of these got a finite gradient since.
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
        self.spoilt: RecordedSweep | None = None
        self.unhurried = False  # whether every sweep is looked at, however long that takes
        self.call: Called | None = None
        self.calls: deque[Called] = deque(maxlen=CALLS)
        self.cuts: deque[Severed] = deque(maxlen=CUTS)
        self.events: deque[Happening] = deque(maxlen=EVENTS)
        self.happened_before = 0  # how many of the events are forgotten
        self.journal = Journal()
        self.reborn: WeakKeyDictionary[Any, Sequence[Severed]] = WeakKeyDictionary()  # leaves that are made of what was cut off
        self.refused: list[tuple[Library, Any, str, tuple[Severed, ...], Any]] = []
        self._running: list[RecordedSweep | None] = []
        self._held: deque[tuple[int, Any]] = deque()
        self._bytes = 0
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._began = clock.now()
        self._spent = 0.0
        self._recordings: dict[str, Recording] = {}
        self._ours = False  # whether the sweep that runs is called for the user

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
            with scoped(reopen, self.close):
                yield
        finally:
            self._ours = False

    def forget(self) -> None:
        """Let go of everything."""
        self.close()
        self._held.clear()
        self._bytes = 0
        self.last = self.spoilt = None
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

    def happened(self, kind: str, site: Any, tensors: Sequence[Any], **more: Any) -> None:
        """Something happened to leaves. What one line writes to the same leaves in two operations, as `p.data -= …`, which reads
        `p.data`, writes to it and binds it again, has happened once."""
        if kind == "write" and self.events and self._is_same_write(self.events[-1], site, tensors):
            return
        self.happened_before += len(self.events) == EVENTS
        self.events.append(
            Happening(kind, site, self._once(tuple(id(tensor) for tensor in tensors)), cell=site and cell_site(), **more)
        )

    @staticmethod
    def _is_same_write(last: Happening, site: Any, tensors: Sequence[Any]) -> bool:
        if last.kind != "write" or site is None or last.site is None or last.site[0] is not site[0] or last.site[1] >= site[1]:
            return False
        return last.leaves == tuple(id(tensor) for tensor in tensors) and line_of(last.site) == line_of(site)

    def _once(self, keys: tuple[int, ...]) -> tuple[int, ...]:
        """Equal identities as one object: thousands of steps name the same hundreds of parameters."""
        if len(self._alike) >= ALIKE:
            self._alike.clear()
        return self._alike.setdefault(keys, keys)

    def took(self, seconds: float) -> None:
        """Seconds that went into seeing."""
        self._spent += seconds

    def stepped(self, library: Library, optimizer: Any, site: Any) -> None:
        """An optimizer has made a step, with the gradients that its parameters still have."""
        started = clock.now()
        held = [p for group in optimizer.param_groups for p in group["params"]]
        moved = [p for p in held if p.grad is not None and not (self.on and library.is_zero(p.grad))]
        rates = {float(group["lr"]) for group in optimizer.param_groups if "lr" in group}
        self.happened(
            "step",
            site,
            moved,
            optimizer=type(optimizer).__name__,
            rates=tuple(sorted(rates)),
            maximizes=any(group.get("maximize") for group in optimizer.param_groups),
            held=self._once(tuple(map(id, held))),
            whose=id(optimizer),
        )
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
        frames: Sequence[Mapping[str, Any]],
        *,
        accumulates: bool = True,
        late: bool = False,
        retains: bool = False,
        private: bool = False,
    ) -> RecordedSweep | None:
        """A sweep starts, from (node, cotangent) pairs. Returns it if it is to be looked at: one that writes `.grad`, or one of
        our own (`private`).

        `frames` are the locals of the user's functions that are running, innermost first."""
        self._running.append(None)
        started = clock.now()
        self.settle()
        if self._ours:
            site, frames = None, ()
        if accumulates:
            self.sweeps += 1
            self.happened("backward", site, outputs)
        sweep = None
        self.journal.skipped += accumulates and not private and not self.on
        if (private or (accumulates and self.on)) and not any(self._running):
            names = self._names(library, frames)
            first = library.values([*outputs, *(g for _, g in roots)])
            own, cotangents = first[: len(outputs)], first[len(outputs) :]
            sweep = RecordedSweep(
                library, self.sweeps, [], [library.weakly(out) for out in outputs], names, site, late, private, retains=retains
            )
            for i, (node, _) in enumerate(roots):
                whole = library.whole(node)
                out = outputs[i] if len(outputs) == len(roots) else None
                name = names.by_id.get(id(out), "") if out is not None else ""
                shape = (library.shape_of(out) if out is not None else library.shape(node)) or ()
                sweep.roots.append(Root(node, shape, name, own[i] if out is not None else None, cotangents[i]))
                if library.variable(whole) is not None:
                    self.leaf(sweep, whole)
            sweep.owners = owners_in(self._space(frames, with_namespace=False))
            sweep.nodes, sweep.uses = uses_of(library, [node for node, _ in roots])
            sweep.events = self.happened_before + len(self.events)
        self._running[-1] = sweep
        self.took(clock.now() - started)
        return sweep

    @contextmanager
    def sweeping(self, library: Library, roots: Sequence[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Iterator[None]:
        """A sweep that the block runs, seen through hooks on its nodes. Arguments as of `begin`."""
        outer, sweep, watching = len(self._running), None, None
        error: BaseException | None = None
        try:
            with self.faults:
                sweep = library.unseen(self.begin)(library, roots, *args, **kwargs)
                if sweep is not None:
                    see = self.faults.guarded(partial(self.visited, sweep))
                    arrivals = () if sweep.private else arrivals_of(sweep)
                    watching = library.watching([*sweep.nodes], see, arrivals=arrivals)
                    watching.__enter__()
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            with self.faults:
                if watching is not None:
                    watching.__exit__(None, None, None)
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
            sweep.leaves[node] = LeafSeen(
                node, tensor, str(tensor.device), before, losses=self.losses_of(sweep.library, tensor), key=id(tensor)
            )

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
        self._spent += clock.now() - started

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
                self.last = sweep
            if not sweep.late:
                self._finish(sweep)
        self._held.clear()
        self._bytes = 0
        now = clock.now()
        self._spent += now - started
        self.on = self.unhurried or self._spent <= allowance(now - self._began - self._spent)

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
                self._enter(sweep, leaves, held)
        for leaf, g in zip(leaves, held, strict=True):
            leaf.tensor = None
            if g is None:
                continue
            leaf.gradient, leaf.gradient_form = next(settled), library.form(g)
            if leaf.gradient is not None and len(g.shape) == 2 and g.numel() > 1 and len(sweep.maps) < self.maps:
                sweep.maps.append((leaf.node, reduced(library.own_array(g), CELLS)))
        sweep.reduce()
        if not sweep.private:
            self._judge(sweep)

    def _judge(self, sweep: RecordedSweep) -> None:
        """Whether a sweep is the first that went wrong, or tells that the program has come back from one."""
        if self.spoilt is not None and self.spoilt.odd & (sweep.reached - sweep.odd):
            self.spoilt = None
        if (
            self.spoilt is None
            and sweep.error is None
            and (sweep.odd or any(root.value.odd for root in sweep.roots if root.value))
        ):
            self.spoilt = sweep

    def _enter(self, sweep: RecordedSweep, leaves: Sequence[LeafSeen], held: Sequence[Any]) -> None:
        """Enter the sweep into the journal."""
        library, root = sweep.library, sweep.roots[0]
        numbers = root.value.numbers if root.value is not None and root.value.size == 1 else None
        loss = None if not numbers else float(numbers[0].real)
        swept = Swept(sweep.number, sweep.events, root.name, loss, library.name_of(library.whole(root.node)))
        after = iter(library.values([g for g in held if g is not None]))
        for leaf, g in zip(leaves, held, strict=True):
            left = next(after) if g is not None else None
            norm = None if left is None else left.norm
            weights = library.sample(leaf.tensor)
            if leaf.sample is None or weights is None or leaf.sample.shape != weights.shape:
                continue
            name = next(iter(sweep.names.by_node.get(leaf.node, ())), "")
            entry = Entry(
                name,
                id(leaf.tensor),
                library.is_parameter(leaf.tensor),
                int(leaf.tensor.numel()),
                float(np.linalg.norm(weights)),
                float(np.linalg.norm(leaf.sample)),
                None if leaf.before is None else leaf.before.norm,
                norm,
            )
            version = library.version(leaf.tensor)
            self.journal.entered(swept, entry, leaf.tensor, library.weakly(leaf.tensor), weights, leaf.sample, version)
            leaf.sample = None
        self.journal.sweeps.append(swept)

    def _names(self, library: Library, frames: Sequence[Mapping[str, Any]]) -> Names:
        """The user's names at this moment: the running functions' locals, innermost first, then the notebook's."""
        space = self._space(frames)
        names = Names.of(library, {**self.called, **names_in(space, first=self.first)})
        names.models = module_names((self.namespace(), space))  # the notebook's first: a trainer calls another's net `model`, too
        return names

    def _space(self, frames: Sequence[Mapping[str, Any]], *, with_namespace: bool = True) -> dict[str, Any]:
        """The names of the running functions, what `self` of a trainer holds among them, innermost first; then the notebook's."""
        space: dict[str, Any] = {}
        for frame in frames:
            for name, value in frame.items():
                space.setdefault(name, value)
            for name, value in held_by_self(frame.get("self")):
                space.setdefault(name, value)
        for name, value in self.namespace().items() if with_namespace else ():
            space.setdefault(name, value)
        return space

    # ------------------------------------------------------------------------------------------------------ what was seen
    def models(self, value: Any) -> list[Any]:
        """A model of the user's and the modules in it; of anything else nothing."""
        return [module for _, module in modules_in("", value)]

    @property
    def shown(self) -> RecordedSweep | None:
        """The sweep that is told of where none is named."""
        return self.last if self.spoilt is None or self.last is None or self.last.private else self.spoilt

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
        return sweep.library.unseen(self._trace)(sweep)

    def _trace(self, sweep: RecordedSweep) -> Trace:
        reader = Reader(sweep.library, sweep.names, sweep.seen)
        trace = read(reader, sweep.roots, most=MOST)
        for node, leaf in sweep.leaves.items():
            if node in reader.index:
                reader.reached(leaf.losses, reader.index[node])
        for node, cuts in list(self.reborn.items()):
            if node in reader.index and node not in sweep.leaves:
                reader.reached(cuts, reader.index[node])
        return replace(
            trace,
            leaves=leaves_of(sweep, trace),
            calls=self._calls(reader, trace),
            cuts=tuple(reader.severed(cut) for cut in self._cuts(reader)),
            events=tuple(map(reader.event, self.events)),
            journal=tuple(self._journal()),
            sweep=sweep.number,
            sweeps=self.sweeps,
            source=cell_source(),
            program=cells.called,
            freed=not sweep.retains,
        )

    def _journal(self) -> Iterator[Swept]:
        """The sweeps in the journal whose events are still known, with the places of these among them."""
        for swept in self.journal.sweeps:
            if swept.event > self.happened_before:
                yield replace(swept, event=swept.event - self.happened_before)

    def _cuts(self, reader: Reader) -> list[Severed]:
        """The cuts in their order, then those at which a tensor was made of numbers and reached the graph."""
        known = {id(cut) for cut in self.cuts}
        return [*self.cuts, *(cut for cut in reader.reaching if id(cut) not in known)]

    def attempt(self, losses: Sequence[Severed] | None = None, library: Library | None = None, site: Any = None) -> Trace:
        """What was seen where no sweep was: the last that was asked for and could not be, or one of a tensor with these losses.
        The trace has no nodes."""
        if losses is None and self.refused:
            library, _, _, losses, site = self.refused[-1]
        library = library or self._mostly()
        names = self._names(library, ())
        reader = Reader(library, names)
        reader.reached(losses or (), -1)
        trace = Trace(library.name, (), ())
        cuts = self._cuts(reader)
        return replace(
            trace,
            calls=self._calls(reader, trace),
            cuts=tuple(reader.severed(cut) for cut in cuts),
            events=tuple(map(reader.event, self.events)),
            source=cell_source(),
            program=cells.called,
            recorded=True,
            losses=tuple(i for i, cut in enumerate(cuts) if any(cut is loss for loss in losses or ())),
            asked=reader.lines.line(site),
        )

    def _mostly(self) -> Library:
        """The library of most of the user's tensors."""
        names = names_in(dict(self.namespace()))
        return max(adapters(), key=lambda library: sum(library.is_tensor(tensor) for tensor in names.values()))

    def _calls(self, reader: Reader, trace: Trace) -> tuple[ModuleCall, ...]:
        operations: Counter[str] = Counter()
        for node in trace.nodes:
            operations.update(prefixes(node.module))
        return tuple(
            ModuleCall(path, call.kind, call.depth, call.graded, reader.lines.line(call.site), operations[path])
            for call in self.calls
            for path in (reader.path(call),)
        )


def allowance(own: float) -> float:
    """Seconds that may go into seeing a program that took so many itself."""
    return FREE + SHARE * min(own, LONG) + LATER * max(own - LONG, 0.0)
