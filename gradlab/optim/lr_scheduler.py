"""Schedules of the learning rate: `scheduler.step()` after each epoch (or batch) sets `lr` in the optimizer's groups.

`get_lr` of most schedules computes the new rate from the current one, so several schedules can be combined. Some compute it from
the epoch, as in torch. Creating a scheduler takes the first step, to epoch 0.
"""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from gradlab.optim.cyclical import CyclicLR, OneCycleLR
from gradlab.optim.optimizer import Optimizer
from gradlab.optim.plateau import ReduceLROnPlateau
from gradlab.optim.schedule import LRScheduler, Rate, check_optimizer, set_rate

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _Lambdas(LRScheduler):
    """Base of schedules with a function of the epoch, or one function for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        kept = {k: v for k, v in super().state_dict().items() if k != "lr_lambdas"}
        return kept | {"lr_lambdas": [None if isinstance(f, types.FunctionType) else dict(vars(f)) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                vars(function).update(kept)


class LambdaLR(_Lambdas):
    """Multiply the initial learning rate by a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    lr_lambda : callable or list of callable
        The function, or one for each group of parameters.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.3333, 0.25]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_Lambdas):
    """Multiply the learning rate by a function of the epoch in each epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    lr_lambda : callable or list of callable
        The function, or one for each group of parameters.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        if self._is_initial:
            return self._rates()
        return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self._rates(), strict=True)]


class StepLR(LRScheduler):
    """Multiply the learning rate by a factor every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    step_size : int
        Number of epochs between two changes.
    gamma : float, default: 0.1
        The factor.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [1.0, 0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        return self._scale_rates(1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply the learning rate by a factor at given epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    milestones : iterable of int
        The epochs at which the rate changes.
    gamma : float, default: 0.1
        The factor.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        return self._scale_rates(self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else 1)

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiply the learning rate by a factor for the first epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    factor : float, default: 1/3
        The factor.
    total_iters : int, default: 5
        Number of epochs with the factor.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 1.0, 1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        return self._scale_rates(
            self.factor if self.last_epoch == 0 else 1.0 / self.factor if self.last_epoch == self.total_iters else 1
        )

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * (self.factor if self.last_epoch < self.total_iters else 1) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Multiply the learning rate by a factor that changes linearly.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    start_factor : float, default: 1/3
        First factor.
    end_factor : float, default: 1
        Last factor.
    total_iters : int, default: 5
        Number of epochs until the last factor.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        if self.last_epoch == 0:
            return self._scale_rates(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        return self._scale_rates(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[Rate]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply the learning rate by a factor in each epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    gamma : float
        The factor.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        return self._scale_rates(1 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    r"""Decrease the learning rate to 0 along a polynomial.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    total_iters : int, default: 5
        Number of epochs until the rate is 0.
    power : float, default: 1
        Exponent.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Notes
    -----
    .. math:: \eta = \eta_0 \left( 1 - \frac{t}{T} \right)^p

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.PolynomialLR(optimizer, 4)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.75, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        here, before = (1.0 - at / self.total_iters for at in (self.last_epoch, self.last_epoch - 1))
        return self._scale_rates((here / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    r"""Decrease the learning rate to a minimum along a half cosine.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    T_max : int
        Number of epochs until the minimum.
    eta_min : float, default: 0
        Minimal rate.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Notes
    -----
    .. math:: \eta = \eta_{min} + (\eta_0 - \eta_{min}) \frac{1 + \cos(\pi t / T_{max})}{2}

    Loshchilov and Hutter (2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the factor would be x / 0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, self._rates(), strict=True)]
        here, before = (1 + math.cos(math.pi * at / self.T_max) for at in (self.last_epoch, self.last_epoch - 1))
        return [here / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[Rate]:
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeat cosine annealing with warm restarts.

    `step(epoch)` accepts fractions of epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    T_0 : int
        Number of epochs until the first restart.
    T_mult : int, default: 1
        Factor of the length of each period relative to the previous one.
    eta_min : float, default: 0
        Minimal rate.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Notes
    -----
    SGDR: Loshchilov and Hutter (2017).

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_if_called_directly()
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go to the next epoch, or to a given one, and set the rates.

        Parameters
        ----------
        epoch : float, optional
            The epoch, possibly fractional, for steps within an epoch.

        Returns
        -------
        None

        Raises
        ------
        ValueError
            If `epoch` is negative.

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> schedule.step(1.0)
        >>> schedule.get_last_lr()
        [0.25]
        """
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            epoch = self.last_epoch + 1
        else:
            epoch = 0 if epoch is None else epoch
            rounds = 0
            if epoch >= self.T_0 and self.T_mult > 1:
                rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**rounds
            self.T_cur = (
                epoch % self.T_0
                if self.T_mult == 1
                # type: ignore[assignment]
                else epoch - self.T_0 * (self.T_mult**rounds - 1) / (self.T_mult - 1)
            )
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)


class SequentialLR(LRScheduler):
    """Run several schedules one after the other.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    schedulers : list of LRScheduler
        The schedules.
    milestones : list of int
        Epochs at which the next schedule starts.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> from gradlab.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> parts = [ConstantLR(optimizer, 0.1, 9), ExponentialLR(optimizer, 0.5)]
    >>> scheduler = SequentialLR(optimizer, parts, [1])
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [1.0, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError(
                "SequentialLR expects all schedulers to belong to the same optimizer, but one has a different optimizer."
            )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to "
                f"be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:
            set_rate(group, "lr", group["initial_lr"])
        for scheduler in schedulers:  # undo the steps taken when they were created
            scheduler.last_epoch -= 1
        schedulers[0]._start()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at and self._milestones[at - 1] == self.last_epoch:
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        kept = {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
        return kept | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, kept in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(kept)
