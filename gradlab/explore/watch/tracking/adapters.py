"""Trackers under one interface. Which kind an object is follows from its methods; no tracker's package is imported for that."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

import numpy as np

from gradlab.explore.watch.histograms import Spread

COLUMNS = ("layer", "gradient norm", "update ratio", "weight norm")
ACCEPTED = (
    "a SummaryWriter of TensorBoard, a run of Weights & Biases, the module mlflow with an active run, a logger of Lightning, "
    "any object with log(dict, step), or a list of these"
)
KINDS = ("gradlab", "gradient_norm", "update_ratio", "weight_norm", "dead_units")  # what the names of numbers begin with


class Tracker:
    """Base of adapters. A tracker without texts or histograms ignores them.

    Parameters
    ----------
    to : object
        The tracker.
    """

    def __init__(self, to: Any) -> None:
        self.to = to
        kind = type(to)
        self.name = to.__name__ if inspect.ismodule(to) else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        """Write the numbers and the histograms of a step, by name."""
        raise NotImplementedError

    def write_text(self, step: int, name: str, text: str) -> None:
        """Write a text in Markdown."""

    def write_finding(self, step: int, text: str) -> None:
        """Write a finding."""
        self.write_text(step, "gradlab/findings", text)

    def write_spike(self, step: int, title: str, rows: Sequence[tuple[str, float, float, float]]) -> None:
        """Write the numbers of a step by layer."""
        lines = [f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|"]
        lines += [f"| {layer} | {' | '.join(map(format_number, numbers))} |" for layer, *numbers in rows]
        self.write_text(step, "gradlab/spikes", "\n".join([title, "", *lines]))

    def flush(self) -> None:
        """Write what waits. The tracker stays open."""
        flush = getattr(self.to, "flush", None)
        if callable(flush):
            flush()


class TensorBoard(Tracker):
    """A `SummaryWriter` of PyTorch or of tensorboardX."""

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        for name, value in values.items():
            self.to.add_scalar(_tag(name), value, step)
        for name, spread in spreads.items():
            limits = edges(spread)
            middles, counts = (limits[1:] + limits[:-1]) / 2, np.array(spread.bins)
            self.to.add_histogram_raw(
                _tag(name),
                min=spread.low,
                max=spread.high,
                num=int(counts.sum()),
                sum=float(counts @ middles),
                sum_squares=float(counts @ middles**2),
                bucket_limits=limits[1:].tolist(),
                bucket_counts=counts.tolist(),
                global_step=step,
            )

    def write_text(self, step: int, name: str, text: str) -> None:
        self.to.add_text(name, text, step)


class WandB(Tracker):
    """A run of Weights & Biases.

    Rows are logged without `step=`, which would have to increase together with the user's own steps. The x axis of our series is
    "gradlab/step". The names of histograms begin with "gradlab/", since `wandb.watch` writes "gradients/…" with the user's steps.
    """

    def __init__(self, to: Any) -> None:
        super().__init__(to)
        self._findings: list[list[Any]] = []
        to.define_metric("gradlab/step", hidden=True)
        for kind in KINDS:
            to.define_metric(f"{kind}/*", step_metric="gradlab/step")

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        histogram = import_module("wandb").Histogram
        made = {f"gradlab/{name}": histogram(np_histogram=(np.array(one.bins), edges(one))) for name, one in spreads.items()}
        self.to.log({"gradlab/step": step, **values, **made})

    def write_finding(self, step: int, text: str) -> None:
        wandb = import_module("wandb")

        self._findings.append([step, text])
        table = wandb.Table(columns=["step", "finding"], data=list(self._findings))
        self.to.log({"gradlab/step": step, "gradlab/findings": table})

    def write_spike(self, step: int, title: str, rows: Sequence[tuple[str, float, float, float]]) -> None:
        wandb = import_module("wandb")

        table = wandb.Table(columns=list(COLUMNS), data=[list(row) for row in rows])
        self.to.log({"gradlab/step": step, f"gradlab/spike_{step}": table})


class MLflow(Tracker):
    """The active run of the module `mlflow`, or the run of Lightning's `MLFlowLogger`.

    Parameters
    ----------
    to : module or logger
    run_id : str
    client : MlflowClient
    """

    def __init__(self, to: Any, run_id: str, client: Any) -> None:
        super().__init__(to)
        self._run, self._client = run_id, client
        self._findings: list[str] = []

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        metric = import_module("mlflow.entities").Metric

        now = int(datetime.now().timestamp() * 1000)
        self._client.log_batch(self._run, metrics=[metric(_key(name), value, now, step) for name, value in values.items()])

    def write_text(self, step: int, name: str, text: str) -> None:
        self._client.log_text(self._run, text, f"{name}-{step}.md")

    def write_finding(self, step: int, text: str) -> None:
        self._findings.append(f"- Step {step}: {text}")
        self._client.log_text(self._run, "\n".join(self._findings), "gradlab/findings.md")


class LightningLogger(Tracker):
    """An object with `log_metrics(dict, step)`, as the loggers of Lightning have it."""

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        self.to.log_metrics(dict(values), step)


class LogMethod(Tracker):
    """An object with `log(dict, step)`."""

    def write_step(self, step: int, values: Mapping[str, float], spreads: Mapping[str, Spread]) -> None:
        self.to.log(dict(values), step)

    def write_text(self, step: int, name: str, text: str) -> None:
        self.to.log({name: text}, step)


def trackers_for(to: Any) -> list[Tracker]:
    """Return the adapters for what `gl.watch(to=…)` was given.

    Raises
    ------
    TypeError
        If it is not a tracker, or a list of them.
    ValueError
        If `wandb` or `mlflow` has no current run.
    """
    return [] if to is None else [tracker_for(one) for one in (to if isinstance(to, (list, tuple)) else [to])]


def tracker_for(to: Any) -> Tracker:
    """Return the adapter for one tracker."""
    if isinstance(to, type):
        raise TypeError(f"watch(to=…) takes an object, and got the class {to.__name__}. Give an instance of it.")
    if inspect.ismodule(to) and has_methods(to, "log_metrics", "active_run"):
        run = _current(to.active_run(), "mlflow", "mlflow.start_run()")
        return MLflow(to, run.info.run_id, to.tracking.MlflowClient())
    if has_methods(to, "log_metrics") and hasattr(to, "experiment"):
        experiment = to.experiment
        if has_methods(experiment, "log_batch", "log_text") and hasattr(to, "run_id"):
            return MLflow(to, to.run_id, experiment)
        known = has_methods(experiment, "add_scalar") or has_methods(experiment, "define_metric")
        return tracker_for(experiment) if known else LightningLogger(to)
    if has_methods(to, "add_scalar", "add_histogram_raw", "add_text"):
        return TensorBoard(to)
    if has_methods(to, "log", "define_metric"):
        run = to.run if inspect.ismodule(to) else to
        return WandB(_current(run, "wandb", "wandb.init()"))
    if has_methods(to, "log_metrics"):
        return LightningLogger(to)
    if has_methods(to, "log") and _takes_two(to.log):
        return LogMethod(to)
    hint = f" Give SummaryWriter({str(to)!r})." if isinstance(to, str) or hasattr(to, "__fspath__") else ""
    raise TypeError(f"watch(to=…) takes {ACCEPTED}, and got {type(to).__name__}: {to!r:.80}.{hint}")


def has_methods(to: Any, *names: str) -> bool:
    """Return whether an object has methods of these names."""
    return all(callable(getattr(to, name, None)) for name in names)


def _current(run: Any, module: str, call: str) -> Any:
    if run is None:
        raise ValueError(f"watch(to={module}): there is no active run. Call `{call}` before `gl.watch(…)`.")
    return run


def _takes_two(log: Callable[..., Any]) -> bool:
    try:
        inspect.signature(log).bind({}, 1)
    except (TypeError, ValueError):
        return False
    return True


def edges(spread: Spread) -> np.ndarray:
    """Return the edges of the bins of a histogram, shape (bins + 1,). They increase even if all elements are equal."""
    width = spread.high - spread.low or max(abs(spread.low) * 1e-6, 1e-12)
    made: np.ndarray = spread.low + width * np.arange(len(spread.bins) + 1) / len(spread.bins)
    return made


def format_number(x: float) -> str:
    """Return a number for a table of text: "" if it was not measured."""
    return f"{x:.4g}" if math.isfinite(x) else "" if math.isnan(x) else "not finite"


def _tag(name: str) -> str:
    return re.sub(r"[^-/\w.]", "_", name)


def _key(name: str) -> str:
    return re.sub(r"[^-/\w. ]", "_", name, flags=re.ASCII)
