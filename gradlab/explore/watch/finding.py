"""What a training cell trains, found when it calls `backward` for the first time: the loss, the model or tensors, the optimizer.

They are looked for among the names of the functions that run and of the notebook: what the loss is computed from, the model that
has most of these leaves, the optimizer that holds them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.diagnose.sites import is_ours
from gradlab.diagnose.source_locations import cells
from gradlab.explore.doctor.case import is_optimizer
from gradlab.explore.libraries import library_of
from gradlab.explore.libraries.backward_calls import BackwardCalls, Keeper
from gradlab.explore.names import held_by_self, is_model, names_in, with_held
from gradlab.explore.trace.notes import is_outermost, locals_of
from gradlab.explore.watch.layers import leaves_of, watched
from gradlab.explore.watch.watching import Watch

FRAMES = 20


class Found:
    """A training that watches itself begin.

    Attributes
    ----------
    watch : Watch or None
        Once `backward` has been called.
    """

    def __init__(self, namespace: Callable[[], Mapping[str, Any]], every: int = 1, *, quiet: bool = False) -> None:
        self._namespace, self._every, self._quiet = namespace, every, quiet
        self._first = _First()
        self._sweeps = BackwardCalls(self._swept, self._first, Faults("looked for what the cell trains"))
        self.watch: Watch | None = None
        self.trouble = ""

    def open(self) -> None:
        """From here on."""
        self._sweeps.open()

    def close(self, error: BaseException | None = None) -> None:
        """The cell is over, by an error perhaps. May be called again."""
        try:
            if self.watch is not None and not self.watch.ended:
                try:
                    if error is None:
                        self.watch.end_step()
                finally:
                    self.watch.__exit__(type(error) if error is not None else None, error, None)
        finally:
            self._sweeps.close()  # it was open before the watch's own

    def _swept(self, loss: Any) -> None:
        """`backward` is called on a tensor."""
        if self.watch is None:
            if self.trouble:
                return
            try:
                self.watch = self._find(loss)
            except Exception as error:  # noqa: BLE001  (the cell runs as it would)
                self.trouble = f"{type(error).__name__}: {error}"
                return
            self.watch.quiet = self._quiet
            self.watch.__enter__()
            self._first.of = self.watch.keeping
        else:
            self._first.of = None
            self.watch.end_step()
        if loss.numel() == 1:
            self.watch.begins(loss)
            self.watch.note(loss)

    def _find(self, loss: Any) -> Watch:
        library = library_of(loss)
        assert library is not None
        space = with_held(_space(self._namespace()))
        leaves = leaves_of(library, loss)
        model = _best(space, leaves, is_model, lambda value: value.parameters())
        optimizer = _best(space, leaves, is_optimizer, lambda value: [p for group in value.param_groups for p in group["params"]])
        if model is not None and leaves <= {id(p) for p in model.parameters()}:
            of = watched(model, space)
        else:
            known = {name: tensor for name, tensor in names_in(space).items() if id(tensor) in leaves}
            of = watched(known or {"x": loss}, space)
        called = next((name for name, value in space.items() if value is loss and name[:1] != "_"), "loss")
        return Watch(of, optimizer, every=self._every, loss=called)


class _First(Keeper):
    """Looks at the sweep at which a watch began: that one looks at those that begin after it."""

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

    def arm(self, loss: Any) -> list[Any]:
        return [] if self.of is None else self.of.arm(loss)

    def disarmed(self) -> None:
        if self.of is not None:
            self.of.disarmed()


def _best(space: Mapping[str, Any], leaves: set[int], kind: Callable[[Any], bool], parts: Callable[[Any], Any]) -> Any:
    """The value of a kind that holds most of the leaves; the smaller one of two that hold as many."""
    loss, best = None, (0, 0)
    for name, value in space.items():
        if not isinstance(name, str) or name[:1] == "_" or not kind(value):
            continue
        own = {id(p) for p in parts(value)}
        score = len(own & leaves), -len(own)
        if score[0] and (loss is None or score > best):
            loss, best = value, score
    return loss


def _space(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the functions that run, innermost first, what `self` holds in them, and the notebook's."""
    space: dict[str, Any] = {}
    frame: Any = sys._getframe(1)
    count = 0
    while frame is not None and count < FRAMES:
        if not is_ours(frame.f_code.co_filename) and not frame.f_globals.get("__name__", "").startswith("torch."):
            count += 1
            own = locals_of(frame)
            for name, value in (*own.items(), *held_by_self(own.get("self"))):
                space.setdefault(name, value)
            if is_outermost(frame, cells.current):
                break
        frame = frame.f_back
    for name, value in namespace.items():
        space.setdefault(name, value)
    return space
