"""The first sweep from a finite loss to non-finite gradients, examined while its graph exists and stored as a report.

gradlab's sweeps keep their saved tensors until the smallest gradient of each layer has been checked. If one is not finite, the
sweep runs again from the same seed, under a recorder. Keeping much memory would slow down the next step. In that case, and in
PyTorch, the nodes whose rules may have a pole are inspected while they run (`libraries.backward_calls`, `libraries.risky_torch`),
and the sweep runs again from such a node on.

A bad sweep alone is not a finding: programs that scale the loss or clean gradients skip the step. It becomes one with the step
that uses these gradients.
"""

from __future__ import annotations

import weakref
from typing import Any

from gradlab import clock
from gradlab.explore.libraries.backward_calls import SweepInspector
from gradlab.explore.watch.replaying import Replay, SweepResult

MAX_KEPT_BYTES = 1 << 20  # maximum bytes that a gradlab sweep keeps until its end
RECOUNT = 100  # sweeps after which the bytes are counted again
TRIES = 5  # maximum number of sweeps that run again in a training
POLES = 0.001  # share of a step's time for hooks on PyTorch nodes; they cost about three times what can be timed of them


class WatchInspector(SweepInspector):
    """The inspector of the sweeps of one watch, which it holds weakly."""

    def __init__(self, watch: Any, replay: Replay) -> None:
        self._watch, self._library = weakref.ref(watch), watch.library
        self._replay = replay
        self._is_done = replay.can_compute  # whether no more sweeps are inspected
        self._tries = 0
        self._result: SweepResult | None = None
        self._node_hooks: Any = None
        self._keeps, self._sweeps = True, 0  # whether gradlab's graphs are kept until the end of a sweep; number of sweeps so far

    def wants(self, library: str) -> bool:
        if self._is_done or library != self._library:
            return False
        watch = self._watch()
        if watch is None:
            return False
        step, bad = watch.measuring.row.step + 1, watch.bad_step
        if bad is not None and not _lacks_sweep(bad, step):
            self._is_done = True
            return False
        return self._result is None or self._result.step != step

    # ---------------------------------------------------------------------------------------------------------- gradlab
    def keeps_graph(self) -> bool:
        return self._keeps

    def inspect(self, loss: Any, seed: Any) -> None:
        watch = self._watch()
        if watch is not None:
            try:
                if self._sweeps % RECOUNT == 0:
                    began = clock.now()
                    self._keeps = watch.target.saved_bytes(loss) <= MAX_KEPT_BYTES
                    watch.measuring.spent += clock.now() - began
                self._sweeps += 1
                if not watch.measuring.are_gradients_finite():
                    self._run_again(watch, lambda step: self._replay.sweep(step, loss, watch.target.library.tensor(seed, loss)))
                    self.attach(manual=True)
            except Exception as error:  # noqa: BLE001  (as in `safely`, but faster)
                watch.handle_error(error)

    # ---------------------------------------------------------------------------------------------------------- PyTorch
    def add_hooks(self, loss: Any) -> bool:
        hooks = self._node_hooks
        if hooks is not None and hooks.skips:
            hooks.skips -= 1
            return False
        watch = self._watch()
        if watch is None or not self.wants("torch"):
            return False
        began, is_hooked = clock.now(), False
        try:
            if hooks is None:
                hooks = self._node_hooks = watch.target.library.risky_node_hooks(_weakly(self.inspect_node), POLES, watch.faults)
            is_hooked = hooks.add(loss)
        except Exception as error:  # noqa: BLE001
            watch.handle_error(error)
            if hooks is not None:
                hooks.remove()
        if not is_hooked:  # otherwise `remove_hooks` adds the whole cost
            watch.measuring.spent += clock.now() - began
        return is_hooked

    def remove_hooks(self) -> None:
        took, watch = self._node_hooks.remove(), self._watch()
        if watch is not None:
            watch.measuring.spent += took
            if self._result is not None:
                self.finish()

    def finish(self) -> None:
        watch = self._watch()
        if watch is not None and self._result is not None:
            with watch.safely():
                self.attach(manual=True)

    # ------------------------------------------------------------------------------------------------------------- both
    def inspect_node(self, node: Any, cotangents: Any) -> None:
        watch = self._watch()
        if watch is not None and self.wants(self._library):
            with watch.safely():
                self._run_again(watch, lambda step: self._replay.sweep_from(step, node, cotangents))

    def _run_again(self, watch: Any, sweep: Any) -> None:
        self._tries += 1
        self._is_done = self._tries >= TRIES
        result = sweep(watch.measuring.row.step)
        if result is not None and result.bad_parameters:
            self._result = result
            watch.measuring.suspect = True
            watch.update_hooks()

    def attach(self, *, manual: bool = False) -> None:
        """Add the result to the bad step, if it is of the same step. With `manual` and no optimizer, keep that step now."""
        watch, result = self._watch(), self._result
        if watch is None or result is None or result.step != watch.measuring.row.step + 1:
            return
        if manual and watch.bad_step is None and not watch.optimizer_name:
            watch.keep_bad_step("gradient")
        bad = watch.bad_step
        if bad is not None and _lacks_sweep(bad, result.step):
            bad.sweep, bad.causes = result.report, result.causes
            if not watch.optimizer_name:  # the step was kept at the first bad gradient
                bad.parameters, bad.gradients = result.bad_parameters, result.gradients

    def release(self) -> None:
        """Release a result that was not used."""
        self._result = None


def _lacks_sweep(bad: Any, step: int) -> bool:
    return bad.step == step and bad.what == "gradient" and bad.sweep is None and bad.batch is None


def _weakly(method: Any) -> Any:
    weak = weakref.WeakMethod(method)

    def inspect_node(*args: Any) -> None:
        bound = weak()
        if bound is not None:
            bound(*args)

    return inspect_node
