"""The schedule that reduces the learning rate when a metric stops improving."""

from __future__ import annotations

import math
import warnings
from typing import Any

from gradlab.optim.optimizer import Optimizer
from gradlab.optim.schedule import EPOCH, LRScheduler, check_optimizer, set_rate


class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rate by a factor when a metric stops improving.

    Pass the metric to `scheduler.step(loss)`.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    mode : {"min", "max"}
        Whether a smaller or a larger metric is better.
    factor : float, default: 0.1
        The factor.
    patience : int, default: 10
        Number of epochs without improvement that are tolerated.
    threshold : float, default: 1e-4
        Smallest change that is an improvement.
    threshold_mode : {"rel", "abs"}
        Whether the threshold is relative to the best metric or absolute.
    cooldown : int, default: 0
        Number of epochs after a reduction in which bad epochs are not counted.
    min_lr : float or list of float, default: 0
        Minimal rate, or one for each group.
    eps : float, default: 1e-8
        Smaller changes of the rate are not made.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> rates = [(optimizer.step(), scheduler.step(1.0), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor, self.optimizer = factor, check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr, self.min_lrs = None, list(min_lr)
        else:
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * groups  # type: ignore[assignment]
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch, self._last_lr = 0, self._rates()
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    def _least(self) -> list[float]:
        """Return the minimal rate of each group, including groups that were added later."""
        groups = len(self.optimizer.param_groups)
        if len(self.min_lrs) != groups:
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({groups}) differs from when `ReduceLROnPlateau` was "
                    f"initialized ({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please "
                    "modify the `min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * groups  # type: ignore[list-item]
        return self.min_lrs

    @property
    def in_cooldown(self) -> bool:
        """True if bad epochs are currently not counted."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Return True if a metric improves on the best by more than the threshold.

        Parameters
        ----------
        a : float
            The metric.
        best : float
            The best so far.

        Returns
        -------
        bool

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> schedule.is_better(0.9, best=1.0)
        True
        """
        margin = self.threshold if self.mode == "max" else -self.threshold
        bound = best * (margin + 1.0) if self.threshold_mode == "rel" else best + margin
        return a < bound if self.mode == "min" else a > bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the metric of the epoch, and reduce the rates if it has not improved for `patience` epochs.

        Parameters
        ----------
        metrics : float or Tensor
            The metric, for instance the validation loss.
        epoch : int, optional
            The epoch (deprecated in torch).

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> for loss in (1.0, 1.0, 1.0):
        ...     schedule.step(loss)
        >>> round(optimizer.param_groups[0]["lr"], 4)
        0.005
        """
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self._least(), strict=True):
                before = float(group["lr"])
                if before - (after := max(before * self.factor, least)) > self.eps:
                    set_rate(group, "lr", after)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()
