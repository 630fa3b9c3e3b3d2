"""Reentrant checkpointing: a custom Function that runs without recording, and records and runs `backward` in its backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradlab.autograd.function import Function
from gradlab.autograd.functions import backward
from gradlab.backend.streams import get_states, restore_states
from gradlab.core.engine import running
from gradlab.core.modes import enable_grad, no_grad
from gradlab.core.tensor import Tensor
from gradlab.random import fork_rng


class CheckpointFunction(Function):
    """`apply(function, preserve_rng_state, *args)`. The outputs require gradients if one of `args` does."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        if not any(isinstance(x, Tensor) and x.requires_grad for x in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
        ctx.function, ctx.state = function, get_states() if preserve_rng_state else None
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        if running.sweep is not None and running.sweep.wanted is not None:  # gradients of given tensors only
            raise RuntimeError(
                "When use_reentrant=True, gradlab.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, x in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = x.detach().requires_grad_(x.requires_grad)
        with fork_rng(enabled=ctx.state is not None), enable_grad():
            if ctx.state is not None:
                restore_states(ctx.state)
            result = ctx.function(*args)
        outputs = result if isinstance(result, tuple) else (result,)
        graded = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if isinstance(y, Tensor) and y.requires_grad]
        if not graded:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([y for y, _ in graded], [g for _, g in graded])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in args)
