"""Detection of PyTorch's reentrant checkpoints that record no gradient, in a thread. Imported once the user has imported torch.

`checkpoint(function, *args, use_reentrant=True)` runs the function under `no_grad`, and again, with gradients, in the backward
pass. It only takes part in the backward pass if an argument requires grad. Otherwise its result has no history, although the
function may use parameters that require grad. `CheckpointFunction.apply`, which such a call runs, is replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointFunction

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.replacing import give_back, replace
from gradlab.explore.libraries.unseen_torch import unseen


class Checkpoints:
    """Detection of reentrant checkpoints without an argument that requires grad, in one thread.

    Parameters
    ----------
    where : callable
        Returns the site of the user's code that is running.
    faults : Faults
        Collects errors of ours.

    Attributes
    ----------
    running : site or None
        Where the user's code called the checkpoint that is running; None outside such checkpoints.
    """

    def __init__(self, where: Callable[[], Any], faults: Faults) -> None:
        self._where, self._faults, self._thread = where, faults, threading.get_ident()
        self.running: Any = None

    def open(self) -> None:
        """Start detecting calls."""
        replace(CheckpointFunction, "apply", self._applying)

    def close(self) -> None:
        """Stop detecting calls."""
        give_back(CheckpointFunction, "apply", self._applying)
        self.running = None

    def _applying(self, original: Any) -> Any:
        def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
            site = None
            if threading.get_ident() == self._thread:
                with self._faults:
                    site = self._where() if _records_nothing(args) else None
            if site is None:
                return original(kind, *args, **kwargs)
            outer = self.running
            try:
                self.running = site
                return original(kind, *args, **kwargs)
            finally:
                self.running = outer

        return outside_compiler(apply)


@unseen
def _records_nothing(args: Sequence[Any]) -> bool:
    """Return whether gradients are on, and no argument is a tensor that requires grad."""
    return torch.is_grad_enabled() and not any(isinstance(one, torch.Tensor) and one.requires_grad for one in args)
