"""`gl.watch`: what is watched, and how."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.explore.trace.notes import users_frames
from gradlab.explore.watch.layers import refuse_lazy, watched
from gradlab.explore.watch.watching import Watch, optimizers_of


def watch(
    model_or_params: Any,
    optimizer: Any = None,
    *,
    every: int = 1,
    loss: str | None = None,
    replay: Callable[..., Any] | None = None,
    to: Any = None,
) -> Watch:
    """Watch a training: the loss, the gradients and updates of every layer over the steps, and what goes wrong when.

    The doctor examines each of the first 100 steps, or all of a training whose loops say that it has at most 200; these steps
    take several times as long. Its findings have the line and a fix, as those of a `%%grad` cell.

    Parameters
    ----------
    model_or_params : module, or Tensor, or iterable or mapping of Tensor
        What learns: a model of gradlab's or PyTorch's, by layers; or leaves, each by itself.
    optimizer : Optimizer, or list of Optimizer, optional
        What moves it: its steps are counted. A step of several is over when each has stepped, when one steps again, or when the
        next backward begins. Without an optimizer, `w.log(loss)` at the end of a step says that it is over.
    every : int
        Look at every so many steps at most. After the first steps, looking is paced so that watching takes about 5 % of a step of
        2 ms, and less of a longer one: where it would take more, it looks less often (`w.cost` says how often, and what it took).
        The loss is kept of every step.
    loss : str, optional
        What the loss is called. Default: the name of what is given to the first call of `w.log`, or "loss".
    replay : callable, optional
        ``replay(*batch)`` computes the loss of a batch and returns it, a tensor of one element. Compute the loss in the loop by
        ``w.loss(*batch)`` then, which calls it. When a gradient or the loss is not finite for the first time, the batch, the
        random state and the weights of that step are kept, and `w.replay()` reports on it. (What `replay` changes besides, as a
        batch norm its running mean, is not put back.) Without it, a loss that is not finite when its backward is called is looked
        at there and then, operation by operation, and so is a sweep that makes gradients of a finite loss which are not;
        `w.kept.sweep` is the report. (A sweep of PyTorch's, or of gradlab's where it has saved more than 1 MB, is looked at
        where an operation has a pole, as `sqrt`, `log` and `/` have, and from there on: what an overflow made of a product is not
        seen there. Where looking would take too long, some sweeps go by. On a device neither is seen before the step.)
    to : tracker, or list of trackers, optional
        Write the numbers, histograms and findings there, too: a `SummaryWriter` of TensorBoard, a run of Weights & Biases, the
        module `mlflow` with an active run, a logger of Lightning, or any object with ``log(dict, step)``. The names are
        "gradlab/loss", "gradlab/lr", "gradlab/gradient_norm" (of all parameters), "gradlab/gradient_norm_unclipped" (before
        `clip_grad_norm_` or `clip_grad_value_` changed them) and, for each layer, "gradient_norm/LAYER",
        "update_ratio/LAYER" (‖update‖ / ‖weights‖) and "weight_norm/LAYER", "dead_units/ACTIVATION" for each activation, and
        the histograms "gradients/LAYER" and "weights/LAYER". A model of more than 32 layers is written by groups of layers. Steps
        count from 1. Writing takes at most 1 % of the program's own time: where it would take more, fewer steps are written.
        A number that is not finite is written as NaN. Trackers are flushed at the end, and stay open.

    Returns
    -------
    Watch
        A context manager. It reads as a picture in a notebook and as text elsewhere.

    Raises
    ------
    TypeError, ValueError
        If there is nothing to watch, or the optimizer holds none of it.

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
    of = watched(model_or_params, {**frame.f_globals, **frame.f_locals}, list(frame.f_locals))
    if type(every) is not int or every < 1:
        raise ValueError(f"watch(every=…) takes a number of steps from 1 on, and got {every!r}.")
    if loss is not None and not isinstance(loss, str):
        raise TypeError(
            f"watch(loss=…) takes the name of the loss, and got {type(loss).__name__}. Tell its value by w.log(loss)."
        )
    if replay is not None and not callable(replay):
        raise TypeError(f"watch(replay=…) takes a callable that computes the loss of a batch, and got {type(replay).__name__}.")
    if optimizer is not None and not optimizers_of(optimizer):
        raise TypeError("watch(optimizer=[]) has no optimizer. Leave it out if the weights are moved by hand.")
    for one in optimizers_of(optimizer):
        if isinstance(one, type) or not hasattr(one, "register_step_post_hook"):
            hint = " Give the optimizer, not its class." if isinstance(one, type) else ""
            raise TypeError(
                f"watch(optimizer=…) takes an optimizer, or a list of them, and got {type(one).__name__}: {one!r:.80}.{hint}"
            )
        held = {id(p) for group in one.param_groups for p in group["params"]}
        if not any(id(p) in held for p in of.params):
            raise ValueError(
                f"watch: the {type(one).__name__} holds none of the parameters of `{of.called or of.names[0]}`: its steps "
                "do not move what is watched. Make the optimizer of the same parameters."
            )
    frames = users_frames(frame, is_gradlab_file)
    return Watch(of, optimizer, every=every, loss=loss, replay=replay, to=to, frames=frames)
