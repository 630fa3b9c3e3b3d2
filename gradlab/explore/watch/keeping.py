"""The first sweep whose gradients are not finite, though its loss was: seen while its graph is there, and kept in numbers.

gradlab's sweeps hold what their nodes saved until the gradients were looked at, of each layer the smallest; if one is not finite
the sweep is run once more from the same seed, under a recorder. Where that is more than the processor has at hand the next step
would pay for it; there, and in PyTorch's sweeps, the nodes are looked at whose rules may have a pole (`libraries.backward_calls`,
`libraries.risky_torch`), and the sweep is run once more from such a node on.

What is seen is no finding yet: who scales the loss, or cleans gradients, goes on without a step. It becomes one with the step
that these gradients are about to make.
"""

from __future__ import annotations

import weakref
from typing import Any

from gradlab import clock
from gradlab.explore.libraries.backward_calls import Keeper
from gradlab.explore.watch.replaying import Look, Replay

LIGHT = 1 << 20  # bytes that a sweep of gradlab's may hold until it is over
AGAIN = 100  # sweeps after which that is counted again
TRIES = 5  # sweeps that are run once more in a run
POLES = 0.001  # share of a step's time for hooks on PyTorch's nodes, which cost about three times what can be timed of them


class Keeping(Keeper):
    """Of one watch, which it holds weakly."""

    def __init__(self, watch: Any, replay: Replay) -> None:
        self._watch, self._library = weakref.ref(watch), watch.library
        self._replay = replay
        self._over = replay.computes  # whether there is no more to look for
        self._tries = 0
        self._look: Look | None = None
        self._risky: Any = None
        self._light, self._counted = True, 0  # whether sweeps of gradlab's are held, and how many were since that was found

    def wants(self, library: str) -> bool:
        if self._over or library != self._library:
            return False
        watch = self._watch()
        if watch is None:
            return False
        step, kept = watch.measuring.row.step + 1, watch.kept
        if kept is not None and not _lacks(kept, step):
            self._over = True
            return False
        return self._look is None or self._look.step != step

    # ------------------------------------------------------------------------------------------------------ of gradlab
    def holds(self) -> bool:
        return self._light

    def over(self, loss: Any, seed: Any) -> None:
        watch = self._watch()
        if watch is not None:
            try:
                if self._counted % AGAIN == 0:
                    began = clock.now()
                    self._light = watch.of.saved_bytes(loss) <= LIGHT
                    watch.measuring.spent += clock.now() - began
                self._counted += 1
                if not watch.measuring.is_sound():
                    self._saw(watch, lambda step: self._replay.look(step, loss, watch.of.library.tensor(seed, loss)))
                    self.attach(by_hand=True)
            except Exception as error:  # noqa: BLE001  (as in `safely`, which costs more)
                watch.failed(error)

    # -------------------------------------------------------------------------------------------------------- of torch
    def arm(self, loss: Any) -> bool:
        risky = self._risky
        if risky is not None and risky.skips:
            risky.skips -= 1
            return False
        watch = self._watch()
        if watch is None or not self.wants("torch"):
            return False
        began, is_armed = clock.now(), False
        try:
            if risky is None:
                risky = self._risky = watch.of.library.risky(_weakly(self.born), POLES, watch.faults)
            is_armed = risky.arm(loss)
        except Exception as error:  # noqa: BLE001
            watch.failed(error)
            if risky is not None:
                risky.disarm()
        if not is_armed:  # else all of it is told when it is over
            watch.measuring.spent += clock.now() - began
        return is_armed

    def disarm(self) -> None:
        took, watch = self._risky.disarm(), self._watch()
        if watch is not None:
            watch.measuring.spent += took
            if self._look is not None:
                self.settle()

    def settle(self) -> None:
        watch = self._watch()
        if watch is not None and self._look is not None:
            with watch.safely():
                self.attach(by_hand=True)

    # ---------------------------------------------------------------------------------------------------------- of both
    def born(self, node: Any, cotangents: Any) -> None:
        watch = self._watch()
        if watch is not None and self.wants(self._library):
            with watch.safely():
                self._saw(watch, lambda step: self._replay.look_from(step, node, cotangents))

    def _saw(self, watch: Any, look: Any) -> None:
        self._tries += 1
        self._over = self._tries >= TRIES
        seen = look(watch.measuring.row.step)
        if seen is not None and seen.spoilt:
            self._look = seen
            watch.measuring.suspect = True
            watch.lend()

    def attach(self, *, by_hand: bool = False) -> None:
        """Add what was seen to what is kept of that step. `by_hand`: where no optimizer says when it steps, keep it now."""
        watch, look = self._watch(), self._look
        if watch is None or look is None or look.step != watch.measuring.row.step + 1:
            return
        if by_hand and watch.kept is None and not watch.optimizer_name:
            watch.alarm("gradient")
        kept = watch.kept
        if kept is not None and _lacks(kept, look.step):
            kept.sweep, kept.causes = look.report, look.causes
            if not watch.optimizer_name:  # it was kept when the first of them arrived
                kept.spoilt, kept.gradients = look.spoilt, look.gradients

    def let_go(self) -> None:
        """Of what was seen and came to nothing."""
        self._look = None


def _lacks(kept: Any, step: int) -> bool:
    return kept.step == step and kept.what == "gradient" and kept.sweep is None and kept.batch is None


def _weakly(method: Any) -> Any:
    weak = weakref.WeakMethod(method)

    def born(*args: Any) -> None:
        bound = weak()
        if bound is not None:
            bound(*args)

    return born
