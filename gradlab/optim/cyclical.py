"""Cyclical schedules of the learning rate, with the momentum in the opposite direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradlab.optim.optimizer import Optimizer
from gradlab.optim.schedule import LRScheduler, Rate, check_optimizer, cycles_momentum, momentum_of, per_group, set_rate


class OneCycleLR(LRScheduler):
    """Increase the learning rate to a maximum, then decrease it to almost 0, and the momentum in the opposite direction.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    max_lr : float or list of float
        Maximal rate, or one for each group.
    total_steps : int, optional
        Number of steps. If omitted, `epochs` times `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
        See `total_steps`.
    pct_start : float, default: 0.3
        Fraction of the steps in which the rate increases.
    anneal_strategy : {"cos", "linear"}
        Shape of the curve.
    cycle_momentum : bool, default: True
        Change the momentum, too.
    base_momentum, max_momentum : float or list of float
        Bounds of the momentum.
    div_factor : float, default: 25
        The initial rate is `max_lr` divided by this.
    final_div_factor : float, default: 1e4
        The final rate is the initial rate divided by this.
    three_phase : bool, default: False
        Decrease the rate to the initial rate first, then to the final rate.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Notes
    -----
    Smith and Topin (2018).

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=4, cycle_momentum=False)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.8117, 0.2831, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        lengths = {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if total_steps is None else {"total_steps": total_steps}
        if None in lengths.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        for name, value in lengths.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        self.total_steps = math.prod(value for value in lengths.values() if value is not None)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        ends = [pct_start * self.total_steps - 1, self.total_steps - 1]
        ways = [("initial", "max", "max", "base"), ("max", "min", "base", "max")]
        if three_phase:
            ends.insert(1, 2 * pct_start * self.total_steps - 2)
            ways = [ways[0], ("max", "initial", "base", "max"), ("initial", "min", "max", "max")]
        self._schedule_phases: list[dict[str, Any]] = [
            {
                "end_step": end,
                "start_lr": f"{a}_lr",
                "end_lr": f"{b}_lr",
                "start_momentum": f"{c}_momentum",
                "end_momentum": f"{d}_momentum",
            }
            for end, (a, b, c, d) in zip(ends, ways, strict=True)
        ]
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        peaks = per_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group.update(initial_lr=peak / div_factor, max_lr=peak, min_lr=peak / div_factor / final_div_factor)
        if cycle_momentum:
            cycles_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                most, least = (
                    per_group(optimizer, name, value)
                    for name, value in (("max_momentum", max_momentum), ("base_momentum", base_momentum))
                )
                for group, high, low in zip(optimizer.param_groups, most, least, strict=True):
                    momentum_of(group, high)
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"Tried to step {at} times. The specified number of total steps is {self.total_steps}")
        start: float = 0
        for phase in self._schedule_phases:
            if at <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                start = phase["end_step"]
        part = (at - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum_of(group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return rates


class CyclicLR(LRScheduler):
    """Move the learning rate up and down between two bounds, and the momentum in the opposite direction.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    base_lr, max_lr : float or list of float
        The bounds, one number or a list with one for each group.
    step_size_up : int, default: 2000
        Number of steps up.
    step_size_down : int, optional
        Number of steps down (default: `step_size_up`).
    mode : {"triangular", "triangular2", "exp_range"}
        The amplitude is constant, is halved in each cycle, or is multiplied by `gamma` in each step.
    gamma : float, default: 1
        Factor of mode "exp_range".
    scale_fn : callable, optional
        Function that returns the amplitude, in place of `mode`.
    scale_mode : {"cycle", "iterations"}
        Argument of `scale_fn`: the number of the cycle or of the step.
    cycle_momentum : bool, default: True
        Change the momentum, too.
    base_momentum, max_momentum : float
        Bounds of the momentum.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Notes
    -----
    Smith (2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, cycle_momentum=False)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        bases = per_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for base, group in zip(bases, optimizer.param_groups, strict=True):
                set_rate(group, "lr", base)
        self.max_lrs = per_group(optimizer, "max_lr", max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            cycles_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = per_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = per_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for high, low, group in zip(self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True):
                    momentum_of(group, high)
                    group.update(max_momentum=high, base_momentum=low)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().state_dict().items() if k != "_scale_fn_custom"} | {"_scale_fn_custom": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})

    def scale_fn(self, x: float) -> float:
        """Return the amplitude of a cycle relative to the first.

        Parameters
        ----------
        x : float
            Number of the cycle, or of the step if `scale_mode` is "iterations".

        Returns
        -------
        float

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.1)
        >>> schedule = gl.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, mode="triangular2", cycle_momentum=False)
        >>> schedule.scale_fn(3)
        0.25
        """
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True):
                momentum_of(group, high - (high - low) * height)
        return [base + (peak - base) * height for base, peak in zip(self.base_lrs, self.max_lrs, strict=True)]
