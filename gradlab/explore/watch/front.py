"""`gl.watch` and the checks of its arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.explore.trace.notes import users_frames
from gradlab.explore.watch.layers import as_watched_model, refuse_lazy
from gradlab.explore.watch.stepping import optimizers_of
from gradlab.explore.watch.watching import Watch


def watch(
    model_or_params: Any,
    optimizer: Any = None,
    *,
    every: int = 1,
    loss: str | None = None,
    replay: Callable[..., Any] | None = None,
    to: Any = None,
) -> Watch:
    """Watch a training: record the loss, and the gradients and updates of every layer, and report problems.

    The doctor examines the first 100 steps, or all steps if the loops show that there are at most 200. These steps take several
    times as long. The findings name the line and a fix, as in a `%%grad` cell.

    Parameters
    ----------
    model_or_params : module, or Tensor, or iterable or mapping of Tensor
        A model of gradlab or PyTorch, which is shown by layers, or leaf tensors.
    optimizer : Optimizer, or list of Optimizer, optional
        The optimizer or optimizers, whose steps are counted. A step of several optimizers ends when each has stepped, when one
        steps again, or when the next backward starts. Without an optimizer, call `w.log(loss)` at the end of each step.
    every : int
        Minimum number of steps between two measurements. After the first steps, the number of measured steps is chosen so that
        watching takes about 5 % of a step of 2 ms, and less of longer steps (`w.cost` has the strides and the cost). The loss of
        every step is recorded.
    loss : str, optional
        The name of the loss. Default: the name of the argument in the first call of `w.log`, or "loss".
    replay : callable, optional
        ``replay(*batch)`` computes the loss of a batch and returns it, a tensor of one element. Compute the loss in the loop with
        ``w.loss(*batch)``, which calls it. At the first non-finite gradient or loss, the batch, the random state and the weights
        of that step are kept, and `w.replay()` returns a report on it. (Other state that `replay` changes, such as the running
        mean of a batch norm, is not restored.) Without `replay`, a loss that is not finite when its backward is called is
        examined immediately, operation by operation, and so is a sweep from a finite loss to non-finite gradients.
        `w.bad_step.sweep` is the report. (In PyTorch, and in gradlab for graphs that save more than 1 MB, such a sweep is only
        examined at operations with a pole, such as `sqrt`, `log` and `/`, and from there on: the overflow of a product is not
        detected. Some sweeps are skipped to limit the cost. On a device nothing is examined before the step.)
    to : tracker, or list of trackers, optional
        Also write the numbers, histograms and findings to a `SummaryWriter` of TensorBoard, a run of Weights & Biases, the module
        `mlflow` with an active run, a logger of Lightning, or any object with ``log(dict, step)``. The names are
        "gradlab/loss", "gradlab/lr", "gradlab/gradient_norm" (of all parameters), "gradlab/gradient_norm_unclipped" (before
        `clip_grad_norm_` or `clip_grad_value_` changed them), "gradlab/loss_scale" (of a GradScaler) and, for each layer,
        "gradient_norm/LAYER", "update_ratio/LAYER" (‖update‖ / ‖weights‖) and "weight_norm/LAYER", "dead_units/ACTIVATION" for
        each activation, and the histograms "gradients/LAYER" and "weights/LAYER". In models of more than 32 layers, layers are
        grouped. Steps count from 1. Fewer steps are written if writing would take more than 1 % of the program's own time.
        Non-finite numbers are written as NaN. Trackers are flushed at the end, and stay open.

    Returns
    -------
    Watch
        A context manager. It is displayed as a picture in a notebook and as text elsewhere.

    Raises
    ------
    TypeError, ValueError
        If there is nothing to watch, or the optimizer has none of the parameters.

    Examples
    --------
    >>> import gradlab as gl
    >>> model = gl.nn.Linear(2, 1)
    >>> optimizer = gl.optim.SGD(model.parameters(), lr=0.1)
    >>> with gl.watch(model, optimizer) as w:
    ...     for _ in range(10):
    ...         optimizer.zero_grad()
    ...         loss = model(gl.ones(4, 2)).square().mean()
    ...         loss.backward()
    ...         optimizer.step()
    ...         w.log(loss)
    >>> w.findings
    Nothing was found.
    >>> w.save("run.html")  # doctest: +SKIP
    """
    frame = sys._getframe(1)
    refuse_lazy(model_or_params)
    target = as_watched_model(model_or_params, {**frame.f_globals, **frame.f_locals}, list(frame.f_locals))
    if type(every) is not int or every < 1:
        raise ValueError(f"watch(every=…) takes a positive number of steps, and got {every!r}.")
    if loss is not None and not isinstance(loss, str):
        raise TypeError(
            f"watch(loss=…) takes the name of the loss, and got {type(loss).__name__}. Log its value with w.log(loss)."
        )
    if replay is not None and not callable(replay):
        raise TypeError(f"watch(replay=…) takes a callable that computes the loss of a batch, and got {type(replay).__name__}.")
    if optimizer is not None and not optimizers_of(optimizer):
        raise TypeError("watch(optimizer=[]) has no optimizer. Omit it if the program updates the weights itself.")
    for one in optimizers_of(optimizer):
        if isinstance(one, type) or not hasattr(one, "register_step_post_hook"):
            hint = " Pass the optimizer, not its class." if isinstance(one, type) else ""
            raise TypeError(
                f"watch(optimizer=…) takes an optimizer, or a list of them, and got {type(one).__name__}: {one!r:.80}.{hint}"
            )
        held = {id(p) for group in one.param_groups for p in group["params"]}
        if not any(id(p) in held for p in target.params):
            raise ValueError(
                f"watch: the {type(one).__name__} has none of the parameters of `{target.model_name or target.names[0]}`. Its "
                "steps do not update them. Create the optimizer with these parameters."
            )
    frames = users_frames(frame, is_gradlab_file)
    return Watch(target, optimizer, every=every, loss=loss, replay=replay, to=to, frames=frames)
