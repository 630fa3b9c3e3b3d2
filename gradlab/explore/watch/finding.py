"""What a cell trains, found where it calls `backward`: for each training the loss, the model or tensors, the optimizer.

They are looked for among the names of the functions that run and of the notebook: what the loss is computed from, the model that
has most of these leaves, the optimizer that holds them. A loss that is computed from what no training under way moves begins
another one: of the next network in a loop, of the critic beside the actor. Which it belongs to is asked of the nearest leaf, and
of all leaves only where `backward` is called from a place that was not seen yet.

A training is over when another one begins and nobody but its watch holds its model any more; then the watch lets go of it, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.diagnose.sites import GRADLAB_FILES, is_gradlab_file
from gradlab.diagnose.source_locations import cells
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.libraries.backward_calls import BackwardCalls, Keeper
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import held_by_self, is_optimizer, names_in, running_loops, with_held
from gradlab.explore.trace.labels import Identity, labels
from gradlab.explore.trace.notes import Frame, is_outermost, line_of, locals_of
from gradlab.explore.watch.layers import WatchedModel, leaves_behind, route_to, watched
from gradlab.explore.watch.runs import MOST, Runs
from gradlab.explore.watch.watching import Watch

FRAMES = 20

Path = tuple[Any, ...]  # where `backward` was called: code and instruction of each frame


class Training:
    """A training that is watched.

    Attributes
    ----------
    sweeps : int
        How many times `backward` was called on its losses.
    alone : bool
        Whether it has had a loss of its own, which no other training takes part in.
    """

    def __init__(self, watch: Watch, identity: Identity, optimized: bool) -> None:
        self.watch, self.identity, self._optimized = watch, identity, optimized
        self.sweeps, self.alone, self.shown = 0, False, False
        self.optimizer_name = ""  # the plain name of the optimizer; "" if it has none
        self._sampled = 1

    @property
    def is_certain(self) -> bool:
        """Whether something learns: a model, what an optimizer moves, or what is differentiated again and again."""
        return self._optimized or bool(self.watch.of.called) or self.sweeps > 1

    def swept(self, frames: Callable[[], list[Frame]]) -> None:
        """`backward` is called on one of its losses. At some of them, ever more rarely, see which variables of loops have changed
        since it began."""
        self.sweeps += 1
        if self.sweeps == 2 * self._sampled:
            self._sampled = self.sweeps
            self.identity.keep(frames())

    def end(self, error: BaseException | None = None) -> None:
        """It is over, by an error perhaps. Nothing of the program is held any more."""
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


Owners = tuple[tuple[Training, ...], bool]  # the trainings of a loss, and whether it has leaves of nobody's


class Found:
    """The trainings of a cell, which are watched from their first `backward` on.

    Parameters
    ----------
    namespace : callable
        Returns the names of the notebook.
    every : int
        Steps between two looks at least.
    tell : callable, optional
        Called with this whenever there is another training to be shown.

    Attributes
    ----------
    trainings : list of Training
        In the order in which they began.
    trouble : str
        Why a training could not be watched.
    """

    def __init__(
        self, namespace: Callable[[], Mapping[str, Any]], every: int = 1, *, tell: Callable[[Found], None] | None = None
    ) -> None:
        self._namespace, self._every, self._tell = namespace, every, tell
        self._current = _Current()
        self._sweeps = BackwardCalls(self._swept, self._current, Faults("looked for what the cell trains"))
        self.trainings: list[Training] = []
        self.trouble = ""
        self._of: dict[int, Training] = {}  # by the identity of a tensor that a running watch holds
        self._owners: dict[tuple[Path, Training], Owners] = {}  # of losses, by the path of the call and the nearest training
        self._routes: dict[Path, tuple[int, ...]] = {}  # from a loss to the nearest leaf that is known
        self._latest: tuple[Training, ...] = ()  # what the last sweep belonged to
        self._unseen: dict[str, Callable[[Library, Any], None]] = {}  # `_swept_in`, by the name of the library
        self._vain = 0  # sweeps that began no training after all
        self._others: dict[int, Callable[[], Any]] = {}  # the leaves of those that are not watched
        self._unwatched = 0

    @property
    def runs(self) -> Runs:
        """What is watched, by label."""
        shown = [one for one in self.trainings if one.is_certain] or self.trainings[-1:]
        named = labels([one.identity for one in shown])
        return Runs({name: one.watch for name, one in zip(named, shown, strict=True)}, self._unwatched)

    @property
    def result(self) -> Watch | Runs | None:
        """What the cell is found to have trained: one Watch, or several as `Runs`."""
        runs = self.runs
        return runs if len(runs) > 1 or runs.unwatched else next(iter(runs.values()), None)

    def open(self) -> None:
        """From here on."""
        self._sweeps.open()

    def close(self, error: BaseException | None = None) -> None:
        """The cell is over, by an error perhaps, which ended what was trained last. May be called again."""
        try:
            with ExitStack() as ends:
                for one in self.trainings:
                    ends.callback(one.end, error if one in self._latest else None)
        finally:
            self._of.clear()
            self._owners.clear()
            self._routes.clear()
            self._latest = ()
            self._sweeps.close()

    # ------------------------------------------------------------------------------------------------------------- sweeps
    def _swept(self, loss: Any) -> None:
        """`backward` is called on a tensor."""
        self._current.of = None
        library = library_of(loss)
        if library is not None:
            swept = self._unseen.get(library.name)
            if swept is None:
                swept = self._unseen[library.name] = library.unseen(self._swept_in)
            swept(library, loss)

    def _swept_in(self, library: Library, loss: Any) -> None:
        if library.node(loss) is None:
            return
        everybody, strangers = self._owners_of(library, loss)
        owners = everybody
        if len(owners) == 1 and not strangers:
            owners[0].alone = True
        else:  # of a loss that goes through another's model, as a generator's through the critic
            owners = tuple(one for one in owners if not one.alone) or (() if strangers else owners)
        for one in everybody:
            one.watch.is_concerned = one in owners
        if not owners:
            return
        self._latest = owners
        for one in owners:
            if one.sweeps:
                one.watch.end_step()
            one.swept(_running)
            if one.sweeps == 2:
                self._end_unused()  # the first sweep let go of models that are gone
            if one.watch.optimizer_steps.has_lost_one or self._has_renamed_its_optimizer(one):
                self._follow_another(one)
            if loss.numel() == 1:
                one.watch.begins(loss)
                one.watch.note(loss)
        self._current.of = None if owners[0].watch.measuring.gauge.waits else owners[0].watch.keeping
        self._show(owners)

    def _show(self, owners: Iterable[Training]) -> None:
        new = [one for one in owners if one.is_certain and not one.shown]
        if new:
            for one in new:
                one.shown = True
            if self._tell is not None:
                self._tell(self)

    def _owners_of(self, library: Library, loss: Any) -> Owners:
        """The trainings that a loss belongs to, those that it begins among them, and whether it has leaves of nobody's."""
        path = _path()
        known = self._at_end_of_route(library, loss, path)
        if known is not None and (path, known) in self._owners and known.sweeps & (known.sweeps - 1):  # no power of 2
            return self._owners[path, known]
        leaves = list(leaves_behind(library, loss))
        owners = self._divided(library, loss, {id(leaf): leaf for leaf in leaves})
        nearest = self._of.get(id(leaves[0])) if leaves else None
        if nearest is not None:
            self._routes[path] = route_to(library, loss, leaves[0])
            self._owners[path, nearest] = owners
        return owners

    def _at_end_of_route(self, library: Library, loss: Any, path: Path) -> Training | None:
        """The training of the leaf that lies where the nearest one lay when `backward` was called from this place before."""
        node = library.node(loss)
        for at in self._routes.get(path, ()):
            sources = library.inputs(node)
            if at >= len(sources) or sources[at] is None:
                return None
            node = sources[at]
        leaf = library.variable(node)
        return None if leaf is None else self._of.get(id(leaf))

    def _divided(self, library: Library, loss: Any, leaves: Mapping[int, Any]) -> Owners:
        """The trainings under way that leaves belong to, and new ones for the rest; and whether there is a rest still."""
        owners = dict.fromkeys(self._of[key] for key in leaves if key in self._of)
        rest = {key: leaf for key, leaf in leaves.items() if key not in self._of and not self._is_unwatched(leaf)}
        if rest and not self.trouble:
            try:
                for one in self._begun(library, loss, rest, optimized=bool(owners)):
                    owners[one] = None
            except Exception as error:  # noqa: BLE001  (the cell runs as it would)
                self.trouble = f"{type(error).__name__}: {error}"
        return tuple(owners), any(key not in self._of for key in leaves)

    def _is_unwatched(self, leaf: Any) -> bool:
        """Whether a leaf is one of a training that there was no room for."""
        other = self._others.get(id(leaf))
        return other is not None and other() is leaf

    # ------------------------------------------------------------------------------------------------------------ trainings
    def _begun(self, library: Library, loss: Any, leaves: Mapping[int, Any], *, optimized: bool) -> Iterator[Training]:
        """The trainings that begin with a loss and some of its leaves. `optimized`: only of what an optimizer moves."""
        parameter = any(type(leaf).__name__ == "Parameter" for leaf in leaves.values())
        if self._vain >= MOST and not parameter and not optimized and len(leaves) == 1:
            return
        self._end_unused()
        space = with_held(_space(self._namespace()), _loops())
        frames = _running()
        parts = list(self._parts(space, set(leaves), optimized))
        if sum(one.is_certain for one in self.trainings) + len(parts) > MOST:
            self._count(library, leaves, len(parts))
            return
        for of, optimizers in parts:
            called = next((name for name, value in space.items() if value is loss and name[:1] != "_"), "loss")
            watch = Watch(of or watched({"x": loss}, space), optimizers, every=self._every, loss=called)
            watch.quiet, watch.listens = True, False
            identity = Identity(_name(watch.of, space), _line(frames))
            identity.keep(frames)
            training = Training(watch, identity, bool(optimizers))
            training.optimizer_name = _name_of(optimizers[0], space) if optimizers else ""
            self.trainings.append(training)
            watch.__enter__()
            self._of.update((id(p), training) for p in watch.of.params)
            yield training

    def _parts(
        self, space: Mapping[str, Any], leaves: set[int], optimized: bool
    ) -> Iterator[tuple[WatchedModel | None, Sequence[Any]]]:
        """(what learns, its optimizers) for each training that some leaves belong to: one of the model that has them all;
        else one for each optimizer that holds some."""
        model = _best(space, leaves, is_model, _parameters)
        optimizer = _best(space, leaves, is_optimizer, _moved)
        if optimizer is None and optimized:
            return
        if model is not None and leaves <= _identities(_parameters(model)):
            if not self._is_watched(model):
                yield watched(model, space), _optimizers(space, _identities(_parameters(model)))
            return
        if optimizer is None:
            yield _tensors(space, leaves), ()
            return
        while optimizer is not None:
            part = leaves & _identities(_moved(optimizer))
            model = _best(space, part, is_model, _parameters)
            if model is None or not part <= _identities(_parameters(model)):
                yield _tensors(space, part), (optimizer,)
            elif not self._is_watched(model):
                yield watched(model, space), _optimizers(space, _identities(_parameters(model)))
            leaves = leaves - part
            optimizer = _best(space, leaves, is_optimizer, _moved)

    def _is_watched(self, model: Any) -> bool:
        return any(id(p) in self._of for p in _parameters(model))

    def _follow_another(self, one: Training) -> None:
        """Count the steps of the optimizer that moves a training's tensors now."""
        space = with_held(_space(self._namespace()), _loops())
        optimizers = _optimizers(space, _identities(one.watch.of.params))
        if optimizers:
            one.watch.optimizer_steps.follow(*optimizers)
            one.optimizer_name = _name_of(optimizers[0], space)

    def _has_renamed_its_optimizer(self, one: Training) -> bool:
        """Whether the name of the optimizer whose steps are counted has another value now. While the doctor records a training,
        it keeps an optimizer that the program has dropped."""
        if not one.optimizer_name or not one.watch.measuring.is_full:
            return False
        for frame in _frames():
            own = locals_of(frame)
            if one.optimizer_name in own:
                return own[one.optimizer_name] not in one.watch.optimizer_steps
        return False

    def _end_unused(self) -> None:
        """End the trainings whose model is gone."""
        for one in list(self.trainings):
            if one.watch.ended:
                continue
            one.watch.locate()
            if not one.watch.of.release_unused():
                continue
            self._of = {key: training for key, training in self._of.items() if training is not one}
            self._owners = {key: owners for key, owners in self._owners.items() if one not in owners[0]}
            one.end()
            if not one.is_certain:
                self.trainings.remove(one)
                self._vain += 1

    def _count(self, library: Library, leaves: Mapping[int, Any], parts: int) -> None:
        """Count trainings that are not watched, and know their losses again."""
        self._others.update((key, library.weak(leaf)) for key, leaf in leaves.items())
        self._unwatched += parts


class _Current(Keeper):
    """Looks at each sweep for the training that it belongs to."""

    def __init__(self) -> None:
        self.of: Keeper | None = None

    def wants(self, library: str) -> bool:
        return self.of is not None and self.of.wants(library)

    def holds(self) -> bool:
        return self.of is None or self.of.holds()

    def over(self, loss: Any, seed: Any) -> None:
        if self.of is not None:
            self.of.over(loss, seed)

    def born(self, node: Any, cotangents: Any) -> None:
        if self.of is not None:
            self.of.born(node, cotangents)

    def settle(self) -> None:
        if self.of is not None:
            self.of.settle()

    def arm(self, loss: Any) -> bool:
        return self.of is not None and self.of.arm(loss)

    def disarm(self) -> None:
        if self.of is not None:
            self.of.disarm()


# ------------------------------------------------------------------------------------------------------------- among names
def _best(space: Mapping[str, Any], leaves: set[int], kind: Callable[[Any], bool], parts: Callable[[Any], Iterable[Any]]) -> Any:
    """The value of a kind that holds most of the leaves; the smaller one of two that hold as many."""
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
    """The optimizers that move some leaves, that of most of them first; of several that hold the same leaves one."""
    found: list[Any] = []
    while (optimizer := _best(space, leaves, is_optimizer, _moved)) is not None:
        found.append(optimizer)
        leaves = leaves - _identities(_moved(optimizer))
    return found


def _parameters(model: Any) -> Iterable[Any]:
    parameters: Iterable[Any] = model.parameters()
    return parameters


def _moved(optimizer: Any) -> list[Any]:
    """What an optimizer moves."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def _identities(tensors: Iterable[Any]) -> set[int]:
    return set(map(id, tensors))


def _tensors(space: Mapping[str, Any], leaves: set[int]) -> WatchedModel | None:
    """Leaves by their names; None if they have none."""
    known = {name: tensor for name, tensor in names_in(space, loops=_loops()).items() if id(tensor) in leaves}
    return watched(known, space) if known else None


def _name(of: WatchedModel, space: Mapping[str, Any]) -> str:
    """What the program calls a model, where it is named first: `net_a`, and not `model` in the function that trains it."""
    if of.model is None:
        return of.names[0] if len(of.names) == 1 else f"{of.names[0]} …"
    names = [name for name, value in space.items() if value is of.model and name[:1] != "_"]
    plain = [name for name in names if "." not in name]
    return (plain or names or [of.called])[-1]


def _name_of(value: Any, space: Mapping[str, Any]) -> str:
    """The plain name of an object; "" if it has none."""
    return "" if value is None else next((name for name, one in space.items() if one is value and name.isidentifier()), "")


def _line(frames: Iterable[Frame]) -> str:
    """The line of the cell that runs, if it is one of these frames'."""
    sites = ((frame.code, frame.offset) for frame in frames if frame.code.co_filename == cells.current)
    return next((f"line {line_of(site)}" for site in sites), "")


# ------------------------------------------------------------------------------------------------------------------ frames
def _frames() -> Iterator[Any]:
    """The frames of the program that runs, innermost first, out to the module's or the cell's own."""
    frame: Any = sys._getframe(1)
    count = 0
    while frame is not None and count < FRAMES:
        name = frame.f_code.co_filename
        if not (name in GRADLAB_FILES or is_gradlab_file(name)) and not frame.f_globals.get("__name__", "").startswith("torch."):
            count += 1
            yield frame
            if is_outermost(frame, cells.current):
                break
        frame = frame.f_back


def _running() -> list[Frame]:
    """The same with their names."""
    return [Frame(frame.f_code, frame.f_lasti, locals_of(frame), frame.f_globals) for frame in _frames()]


def _path() -> Path:
    """Where the program is."""
    return tuple([(frame.f_code, frame.f_lasti) for frame in _frames()])


def _loops() -> frozenset[str]:
    """The variables of the loops in the code that runs."""
    return running_loops(frame.f_code for frame in _frames())


def _space(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the functions that run, innermost first, what `self` holds in them, and the notebook's."""
    space: dict[str, Any] = {}
    for frame in _frames():
        own = locals_of(frame)
        for name, value in (*own.items(), *held_by_self(own.get("self"))):
            space.setdefault(name, value)
    for name, value in namespace.items():
        space.setdefault(name, value)
    return space
