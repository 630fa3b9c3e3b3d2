"""Steps by a GradScaler in a watched training: the scale, the steps that it skips, and the operation that overflows.

A watch does not count skipped steps. If steps are skipped again and again, the next sweeps are run twice, until one is found
whose gradients are not finite: its graph shows the operation.
"""

from __future__ import annotations

import weakref
from typing import Any

from gradlab import clock
from gradlab.explore.doctor.context.loss_scale import ScaledSteps
from gradlab.explore.watch.hooks import weakly
from gradlab.explore.watch.replaying import Replay, SweepResult

TRIES = 24  # maximum number of sweeps that are run twice; at least one step in 20 is skipped then


class ScaledLosses:
    """The scaled losses of one watch, which it holds weakly.

    Attributes
    ----------
    calls : LossScaling
        The detection of losses and steps.
    steps : ScaledSteps
        How many steps were made and skipped.
    scale, first, last : float or None
        The scale of the last step, and those of the first and the last skipped one.
    result : SweepResult or None
        A sweep with an overflow.
    """

    def __init__(self, watch: Any, replay: Replay) -> None:
        self._watch, self._replay = weakref.ref(watch), replay
        self.calls = watch.target.library.loss_scaling(watch.faults, weakly(self._add_step))
        self.steps = ScaledSteps()
        self.scale: Any = None
        self.first: float | None = None
        self.last: float | None = None
        self.result: SweepResult | None = None
        self._tries = 0

    def _add_step(self, kind: str, optimizer: Any, scale: Any) -> None:
        watch = self._watch()
        if watch is None or kind == "unscale" or (watch.optimizer_name and optimizer not in watch.optimizer_steps):
            return
        self.scale = scale
        if kind != "skip":
            self.steps.add_made()
            return
        self.last = float(scale)
        self.first = self.first or self.last
        self.steps.add_skipped(self.last)
        watch.measuring.skip_step()

    def before_backward(self, tensor: Any) -> bool:
        """Note the loss behind a tensor whose `backward` is called, and its scale. Return whether it was scaled. One that is not
        finite is left to the GradScaler."""
        watch = self._watch()
        if watch is None:
            return False
        began, is_scaled = clock.now(), False
        try:
            loss, scale = self.calls.loss_of(tensor)
            is_scaled = loss is not tensor
            if is_scaled:
                watch.measuring.begin_sweep(loss, scale)
                if self.steps.is_falling and self.result is None and self._tries < TRIES:
                    watch.target.library.unseen(self._examine)(watch, tensor)
        except Exception as error:  # noqa: BLE001  (as in `Watch.safely`, but faster)
            watch.handle_error(error)
        watch.measuring.spent += clock.now() - began
        return is_scaled

    def _examine(self, watch: Any, tensor: Any) -> None:
        self._tries += 1
        if watch.target.trains(tensor):
            result = self._replay.sweep(watch.measuring.row.step, tensor)
            if result is not None and result.bad_parameters:
                self.result = result
