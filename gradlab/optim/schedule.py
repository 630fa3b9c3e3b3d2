"""Base class of the schedules of the learning rate, and access to the groups of an optimizer."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.optim.optimizer import Optimizer

Rate = Any  # a float, or a tensor of one element
EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available."
)
TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them "
    "in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch "
    "skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def copy_rate(value: Rate) -> Rate:
    return value.clone() if isinstance(value, Tensor) else value


def set_rate(group: dict[str, Any], key: str, value: Rate) -> None:
    """Set a number of a group. If it is a tensor, write to the tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def per_group(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """Return one value for each group, from a list or from one number for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {groups}."
        )
    return list(value)


def momentum_of(group: dict[str, Any], value: float | None = None) -> float:
    """Return the momentum of a group, or its first beta. Set it if a value is given."""
    if value is not None:
        group.update({"betas": (value, *group["betas"][1:])} if "betas" in group else {"momentum": value})
    return group["betas"][0] if "betas" in group else group["momentum"]


def cycles_momentum(optimizer: Optimizer) -> None:
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")


def check_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


class LRScheduler:
    """Base class of the schedules. Subclasses define `get_lr`.

    `get_lr` returns the rates of this epoch (`last_epoch`), one for each group of parameters.

    Parameters
    ----------
    optimizer : Optimizer
        Optimizer whose learning rates are set.
    last_epoch : int, default: -1
        Last epoch of the run to resume, or -1 for a new run.

    Examples
    --------
    >>> import gradlab as gl
    >>> optimizer = gl.optim.SGD([gl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = gl.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    >>> rates = [(optimizer.step(), scheduler.step(), round(optimizer.param_groups[0]["lr"], 4))[-1] for _ in range(3)]
    >>> rates
    [0.5, 0.25, 0.125]
    """

    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = [copy_rate(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._start()

    def _start(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedule, without the optimizer and the user's functions.

        Returns
        -------
        dict
            Picklable data.

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule.state_dict()["gamma"]
        0.5
        """
        return {k: v for k, v in vars(self).items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`. The user's functions are kept.

        Parameters
        ----------
        state_dict : dict
            State of a schedule of the same class.

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule.load_state_dict(schedule.state_dict() | {"last_epoch": 3})
        >>> schedule.last_epoch
        3
        """
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Return the rates set by the last step.

        Returns
        -------
        list of float
            One for each group of parameters.

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule.get_last_lr()
        [0.5]
        """
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Return the rates of epoch `last_epoch`. `step` calls it, and subclasses define it.

        Returns
        -------
        list of float
            One for each group of parameters.

        Raises
        ------
        NotImplementedError
            If the class does not define this method.

        Examples
        --------
        >>> import gradlab as gl
        >>> class Halving(gl.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = Halving(optimizer)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr.")

    def _rates(self) -> list[Rate]:
        """Return the current rates."""
        return [copy_rate(group["lr"]) for group in self.optimizer.param_groups]

    def _scale_rates(self, factor: float) -> list[Rate]:
        return self._rates() if factor == 1 else [rate * factor for rate in self._rates()]

    def _warn_if_called_directly(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=3
            )

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set the rates.

        Parameters
        ----------
        epoch : int, optional
            Epoch to jump to (deprecated in torch).

        Returns
        -------
        None

        Examples
        --------
        >>> import gradlab as gl
        >>> optimizer = gl.optim.SGD([gl.ones(2, requires_grad=True)], lr=0.5)
        >>> schedule = gl.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> optimizer.param_groups[0]["lr"]
        0.25
        """
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self._go_to(epoch)

    def _go_to(self, epoch: int | None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: list[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, "lr", rate)
        self._last_lr = self._rates()
