"""Detection of the trainings in a cell at calls of `backward`: the loss, the model or tensors, and the optimizer of each.

They are found in the namespaces of the running functions and of the notebook: the leaves that the loss is computed from, the
model that has most of these leaves, and the optimizer that holds them. A loss with leaves that no running training updates starts
another training, such as the next network in a loop, or the critic next to the actor. The training of a loss is determined by its
nearest leaf, and by all leaves only if `backward` is called from a new place in the program.

A training ends when another one starts and only its watch still references its model. Then the watch releases the model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.diagnose.sites import GRADLAB_FILES, is_gradlab_file
from gradlab.diagnose.source_locations import cells
from gradlab.explore.libraries import Library, adapters, library_of
from gradlab.explore.libraries.backward_calls import BackwardCalls, SweepInspector
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import held_by_self, is_optimizer, names_in, running_loops, with_held
from gradlab.explore.trace.labels import Identity, labels
from gradlab.explore.trace.notes import Frame, is_outermost, line_of, locals_of
from gradlab.explore.watch.layers import WatchedModel, as_watched_model, leaves_behind, route_to
from gradlab.explore.watch.runs import MAX_RUNS, Runs
from gradlab.explore.watch.watching import Watch

FRAMES = 20  # maximum number of frames whose names are searched

Path = tuple[Any, ...]  # the place of a call of `backward`: code and instruction of each frame


class Training:
    """A watched training.

    Attributes
    ----------
    sweeps : int
        Number of calls of `backward` on its losses.
    has_own_loss : bool
        Whether it has had a loss that belongs to no other training.
    """

    def __init__(self, watch: Watch, identity: Identity, has_optimizer: bool) -> None:
        self.watch, self.identity, self._has_optimizer = watch, identity, has_optimizer
        self.sweeps, self.has_own_loss, self.is_shown = 0, False, False
        self.optimizer_name = ""  # the variable of the optimizer; "" if there is none
        self._last_sample = 1

    @property
    def is_certain(self) -> bool:
        """Return whether this is a training: of a model, with an optimizer, or with several calls of `backward`."""
        return self._has_optimizer or bool(self.watch.target.model_name) or self.sweeps > 1

    def count_sweep(self, frames: Callable[[], list[Frame]]) -> None:
        """Count a call of `backward`. At the calls 1, 2, 4, 8 …, find the loop variables that have changed since the start."""
        self.sweeps += 1
        if self.sweeps == 2 * self._last_sample:
            self._last_sample = self.sweeps
            self.identity.keep(frames())

    def end(self, error: BaseException | None = None) -> None:
        """End the training, perhaps by an error, and release its model."""
        watch = self.watch
        try:
            if watch.has_begun and not watch.ended:
                try:
                    if error is None:
                        watch.end_step()
                finally:
                    watch.__exit__(type(error) if error is not None else None, error, None)
        finally:
            watch.release()


Owners = tuple[tuple[Training, ...], bool]  # the trainings of a loss, and whether some of its leaves belong to none


class TrainingFinder:
    """Detector of the trainings of a cell, which are watched from their first `backward` on.

    Parameters
    ----------
    namespace : callable
        Returns the namespace of the notebook.
    every : int
        Minimum number of steps between two measurements.
    on_training : callable, optional
        Called with this object when there is another training to show.

    Attributes
    ----------
    trainings : list of Training
        The trainings in the order of their start.
    trouble : str
        The error because of which a training could not be watched.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]],
        every: int = 1,
        *,
        on_training: Callable[[TrainingFinder], None] | None = None,
    ) -> None:
        self._namespace, self._every, self._on_training = namespace, every, on_training
        self._current = _Current()
        faults = Faults("searched for the trainings of the cell")
        self._sweeps = BackwardCalls(self._on_backward, self._current, faults)
        self._scaled = [library.loss_scaling(faults, lambda *step: None) for library in adapters()]  # also before a watch exists
        self.trainings: list[Training] = []
        self.trouble = ""
        self._training_of: dict[int, Training] = {}  # by the id of a tensor that a running watch holds
        self._owners: dict[tuple[Path, Training], Owners] = {}  # by the place of the call, and the training of the nearest leaf
        self._routes: dict[Path, tuple[int, ...]] = {}  # from a loss to its nearest leaf
        self._latest: tuple[Training, ...] = ()  # the trainings of the last sweep
        self._unseen: dict[str, Callable[[Library, Any], None]] = {}  # `_assign` with hidden operations, by library
        self._false_starts = 0  # number of supposed trainings that ended after one sweep
        self._others: dict[int, Callable[[], Any]] = {}  # the leaves of trainings that are not watched
        self._unwatched = 0

    @property
    def runs(self) -> Runs:
        """The watches, by label."""
        shown = [one for one in self.trainings if one.is_certain] or self.trainings[-1:]
        named = labels([one.identity for one in shown])
        return Runs({name: one.watch for name, one in zip(named, shown, strict=True)}, self._unwatched)

    @property
    def result(self) -> Watch | Runs | None:
        """The Watch of the cell's training, or `Runs` if there are several; None without a training."""
        runs = self.runs
        return runs if len(runs) > 1 or runs.unwatched else next(iter(runs.values()), None)

    def open(self) -> None:
        """Start detecting trainings."""
        self._sweeps.open()
        for scaling in self._scaled:
            scaling.open()

    def close(self, error: BaseException | None = None) -> None:
        """End all trainings. An error of the cell ended those that ran last. May be called again."""
        try:
            with ExitStack() as ends:
                for one in self.trainings:
                    ends.callback(one.end, error if one in self._latest else None)
        finally:
            self._training_of.clear()
            self._owners.clear()
            self._routes.clear()
            self._latest = ()
            self._sweeps.close()
            for scaling in self._scaled:
                scaling.close()

    # ------------------------------------------------------------------------------------------------------------- sweeps
    def _on_backward(self, loss: Any) -> None:
        """Handle a call of `backward` on a tensor."""
        self._current.inspector = None
        library = library_of(loss)
        if library is not None:
            assign = self._unseen.get(library.name)
            if assign is None:
                assign = self._unseen[library.name] = library.unseen(self._assign)
            assign(library, loss)

    def _assign(self, library: Library, loss: Any) -> None:
        if library.node(loss) is None:
            return
        all_owners, has_unknown_leaves = self._owners_of(library, loss)
        owners = all_owners
        if len(owners) == 1 and not has_unknown_leaves:
            owners[0].has_own_loss = True
        else:  # the loss of a generator, say, is computed through the critic
            owners = tuple(one for one in owners if not one.has_own_loss) or (() if has_unknown_leaves else owners)
        for one in all_owners:
            one.watch.owns_sweep = one in owners
        if not owners:
            return
        self._latest = owners
        for one in owners:
            if one.sweeps:
                one.watch.end_step()
            one.count_sweep(_running)
            if one.sweeps == 2:
                self._end_unused()  # the last model may have been released at the first sweep
            if one.watch.optimizer_steps.has_lost_one or self._has_replaced_its_optimizer(one):
                self._follow_another(one)
            if loss.numel() == 1:
                one.watch.before_backward(loss)
                one.watch.note_loss(one.watch.scaled.calls.loss_of(loss)[0])
        self._current.inspector = None if owners[0].watch.measuring.gauge.waits else owners[0].watch.sweep_inspector
        self._show(owners)

    def _show(self, owners: Iterable[Training]) -> None:
        new = [one for one in owners if one.is_certain and not one.is_shown]
        if new:
            for one in new:
                one.is_shown = True
            if self._on_training is not None:
                self._on_training(self)

    def _owners_of(self, library: Library, loss: Any) -> Owners:
        """Return the trainings of a loss, including new ones, and whether some of its leaves belong to none."""
        path = _path()
        known = self._at_end_of_route(library, loss, path)
        # All leaves are checked again at sweeps 1, 2, 4, 8 …
        if known is not None and (path, known) in self._owners and known.sweeps & (known.sweeps - 1):
            return self._owners[path, known]
        leaves = list(leaves_behind(library, loss))
        owners = self._divide(library, loss, {id(leaf): leaf for leaf in leaves})
        nearest = self._training_of.get(id(leaves[0])) if leaves else None
        if nearest is not None:
            self._routes[path] = route_to(library, loss, leaves[0])
            self._owners[path, nearest] = owners
        return owners

    def _at_end_of_route(self, library: Library, loss: Any, path: Path) -> Training | None:
        """Return the training of the leaf at the end of the path that was found when `backward` was last called from here."""
        node = library.node(loss)
        for at in self._routes.get(path, ()):
            sources = library.inputs(node)
            if at >= len(sources) or sources[at] is None:
                return None
            node = sources[at]
        leaf = library.variable(node)
        return None if leaf is None else self._training_of.get(id(leaf))

    def _divide(self, library: Library, loss: Any, leaves: Mapping[int, Any]) -> Owners:
        """Return the running trainings of some leaves, new ones for the rest, and whether any leaf still belongs to none."""
        owners = dict.fromkeys(self._training_of[key] for key in leaves if key in self._training_of)
        rest = {key: leaf for key, leaf in leaves.items() if key not in self._training_of and not self._is_unwatched(leaf)}
        if rest and not self.trouble:
            try:
                for one in self._start_trainings(library, loss, rest, needs_optimizer=bool(owners)):
                    owners[one] = None
            except Exception as error:  # noqa: BLE001  (the cell continues)
                self.trouble = f"{type(error).__name__}: {error}"
        return tuple(owners), any(key not in self._training_of for key in leaves)

    def _is_unwatched(self, leaf: Any) -> bool:
        """Return whether a leaf belongs to a training beyond the maximum number."""
        other = self._others.get(id(leaf))
        return other is not None and other() is leaf

    # ------------------------------------------------------------------------------------------------------------ trainings
    def _start_trainings(
        self, library: Library, loss: Any, leaves: Mapping[int, Any], *, needs_optimizer: bool
    ) -> Iterator[Training]:
        """Start the trainings of a loss and some of its leaves, and yield them. `needs_optimizer` skips those without one."""
        parameter = any(type(leaf).__name__ == "Parameter" for leaf in leaves.values())
        if self._false_starts >= MAX_RUNS and not parameter and not needs_optimizer and len(leaves) == 1:
            return
        self._end_unused()
        space = with_held(_space(self._namespace()), _loops())
        frames = _running()
        parts = list(self._parts(space, set(leaves), needs_optimizer))
        if sum(one.is_certain for one in self.trainings) + len(parts) > MAX_RUNS:
            self._count_unwatched(library, leaves, len(parts))
            return
        for target, optimizers in parts:
            loss_name = next((name for name, value in space.items() if value is loss and name[:1] != "_"), "loss")
            watch = Watch(target or as_watched_model({"x": loss}, space), optimizers, every=self._every, loss=loss_name)
            watch.quiet, watch.observes_backward = True, False
            identity = Identity(_name(watch.target, space), _line(frames))
            identity.keep(frames)
            training = Training(watch, identity, bool(optimizers))
            training.optimizer_name = _name_of(optimizers[0], space) if optimizers else ""
            self.trainings.append(training)
            watch.__enter__()
            self._training_of.update((id(p), training) for p in watch.target.params)
            yield training

    def _parts(
        self, space: Mapping[str, Any], leaves: set[int], needs_optimizer: bool
    ) -> Iterator[tuple[WatchedModel | None, Sequence[Any]]]:
        """Yield the model or tensors and the optimizers of each training of some leaves: one training if a model has them all,
        otherwise one for each optimizer that holds some of them."""
        model = _best(space, leaves, is_model, _parameters)
        optimizer = _best(space, leaves, is_optimizer, _optimizer_params)
        if optimizer is None and needs_optimizer:
            return
        if model is not None and leaves <= _identities(_parameters(model)):
            if not self._is_watched(model):
                yield as_watched_model(model, space), _optimizers(space, _identities(_parameters(model)))
            return
        if optimizer is None:
            yield _tensors(space, leaves), ()
            return
        while optimizer is not None:
            part = leaves & _identities(_optimizer_params(optimizer))
            model = _best(space, part, is_model, _parameters)
            if model is None or not part <= _identities(_parameters(model)):
                yield _tensors(space, part), (optimizer,)
            elif not self._is_watched(model):
                yield as_watched_model(model, space), _optimizers(space, _identities(_parameters(model)))
            leaves = leaves - part
            optimizer = _best(space, leaves, is_optimizer, _optimizer_params)

    def _is_watched(self, model: Any) -> bool:
        return any(id(p) in self._training_of for p in _parameters(model))

    def _follow_another(self, one: Training) -> None:
        """Count the steps of the optimizer that now updates a training's tensors."""
        space = with_held(_space(self._namespace()), _loops())
        optimizers = _optimizers(space, _identities(one.watch.target.params))
        if optimizers:
            one.watch.optimizer_steps.follow(*optimizers)
            one.optimizer_name = _name_of(optimizers[0], space)

    def _has_replaced_its_optimizer(self, one: Training) -> bool:
        """Return whether the optimizer's variable now has another value. This is needed while the doctor records a training,
        because the recording keeps optimizers alive that the program has dropped."""
        if not one.optimizer_name or not one.watch.measuring.in_first_steps:
            return False
        for frame in _frames():
            own = locals_of(frame)
            if one.optimizer_name in own:
                return own[one.optimizer_name] not in one.watch.optimizer_steps
        return False

    def _end_unused(self) -> None:
        """End the trainings whose model the program has released."""
        for one in list(self.trainings):
            if one.watch.ended:
                continue
            one.watch.find_recording()
            if not one.watch.target.release_unused():
                continue
            self._training_of = {key: training for key, training in self._training_of.items() if training is not one}
            self._owners = {key: owners for key, owners in self._owners.items() if one not in owners[0]}
            one.end()
            if not one.is_certain:
                self.trainings.remove(one)
                self._false_starts += 1

    def _count_unwatched(self, library: Library, leaves: Mapping[int, Any], parts: int) -> None:
        """Count trainings that are not watched, and remember their leaves."""
        self._others.update((key, library.weak(leaf)) for key, leaf in leaves.items())
        self._unwatched += parts


class _Current(SweepInspector):
    """Inspector that passes each sweep to the inspector of its training."""

    def __init__(self) -> None:
        self.inspector: SweepInspector | None = None

    def wants(self, library: str) -> bool:
        return self.inspector is not None and self.inspector.wants(library)

    def keeps_graph(self) -> bool:
        return self.inspector is None or self.inspector.keeps_graph()

    def inspect(self, loss: Any, seed: Any) -> None:
        if self.inspector is not None:
            self.inspector.inspect(loss, seed)

    def inspect_node(self, node: Any, cotangents: Any) -> None:
        if self.inspector is not None:
            self.inspector.inspect_node(node, cotangents)

    def finish(self) -> None:
        if self.inspector is not None:
            self.inspector.finish()

    def add_hooks(self, loss: Any) -> bool:
        return self.inspector is not None and self.inspector.add_hooks(loss)

    def remove_hooks(self) -> None:
        if self.inspector is not None:
            self.inspector.remove_hooks()


# ------------------------------------------------------------------------------------------------------------- among names
def _best(space: Mapping[str, Any], leaves: set[int], kind: Callable[[Any], bool], parts: Callable[[Any], Iterable[Any]]) -> Any:
    """Return the object of a kind that holds most of the leaves, and among several of these the smallest."""
    found, best = None, (0, 0)
    for name, value in space.items():
        if not isinstance(name, str) or name[:1] == "_" or not kind(value):
            continue
        own = _identities(parts(value))
        score = len(own & leaves), -len(own)
        if score[0] and (found is None or score > best):
            found, best = value, score
    return found


def _optimizers(space: Mapping[str, Any], leaves: set[int]) -> list[Any]:
    """Return the optimizers of some leaves, the one of most leaves first, and one of several with the same leaves."""
    found: list[Any] = []
    while (optimizer := _best(space, leaves, is_optimizer, _optimizer_params)) is not None:
        found.append(optimizer)
        leaves = leaves - _identities(_optimizer_params(optimizer))
    return found


def _parameters(model: Any) -> Iterable[Any]:
    parameters: Iterable[Any] = model.parameters()
    return parameters


def _optimizer_params(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _identities(tensors: Iterable[Any]) -> set[int]:
    return set(map(id, tensors))


def _tensors(space: Mapping[str, Any], leaves: set[int]) -> WatchedModel | None:
    """Return leaves as a target, with their names; None if they have no names."""
    known = {name: tensor for name, tensor in names_in(space, loops=_loops()).items() if id(tensor) in leaves}
    return as_watched_model(known, space) if known else None


def _name(target: WatchedModel, space: Mapping[str, Any]) -> str:
    """Return the outermost name of a model: `net_a`, not `model` in the function that trains it."""
    if target.model is None:
        return target.names[0] if len(target.names) == 1 else f"{target.names[0]} …"
    names = [name for name, value in space.items() if value is target.model and name[:1] != "_"]
    plain = [name for name in names if "." not in name]
    return (plain or names or [target.model_name])[-1]


def _name_of(value: Any, space: Mapping[str, Any]) -> str:
    """Return a variable with this value; "" if there is none."""
    return "" if value is None else next((name for name, one in space.items() if one is value and name.isidentifier()), "")


def _line(frames: Iterable[Frame]) -> str:
    """Return the current line of the running cell, if one of these frames is in it."""
    sites = ((frame.code, frame.offset) for frame in frames if frame.code.co_filename == cells.current)
    return next((f"line {line_of(site)}" for site in sites), "")


# ------------------------------------------------------------------------------------------------------------------ frames
def _frames() -> Iterator[Any]:
    """Yield the frames of the running program, innermost first, up to that of the module or the cell."""
    frame: Any = sys._getframe(1)
    count = 0
    while frame is not None and count < FRAMES:
        name, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        if not (name in GRADLAB_FILES or is_gradlab_file(name) or module.startswith(("torch.", "keras."))):
            count += 1
            yield frame
            if is_outermost(frame, cells.current):
                break
        frame = frame.f_back


def _running() -> list[Frame]:
    """Return these frames with their local variables."""
    return [Frame(frame.f_code, frame.f_lasti, locals_of(frame), frame.f_globals) for frame in _frames()]


def _path() -> Path:
    """Return the current place in the program."""
    return tuple([(frame.f_code, frame.f_lasti) for frame in _frames()])


def _loops() -> frozenset[str]:
    """Return the variables of the loops in the running code."""
    return running_loops(frame.f_code for frame in _frames())


def _space(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names in the running functions, innermost first, the attributes of their `self`, and the notebook's names."""
    space: dict[str, Any] = {}
    for frame in _frames():
        own = locals_of(frame)
        for name, value in (*own.items(), *held_by_self(own.get("self"))):
            space.setdefault(name, value)
    for name, value in namespace.items():
        space.setdefault(name, value)
    return space
