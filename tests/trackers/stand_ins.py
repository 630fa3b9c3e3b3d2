"""Objects with the methods of trackers, which remember what they are given: `scalars` by step, and texts."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace


class Memory:
    def __init__(self):
        self.scalars: dict[int, dict[str, float]] = {}
        self.texts: list[tuple[int | None, str, str]] = []
        self.histograms: list[tuple[int, str, tuple]] = []
        self.flushed = 0

    def keep(self, step, values):
        row = self.scalars.setdefault(step, {})
        assert not row.keys() & values.keys(), "a number was written twice"
        row.update(values)


class Writer(Memory):
    """Stand-in for a `SummaryWriter`."""

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
        self.keep(global_step, {tag: scalar_value})

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None):
        assert len(bucket_limits) == len(bucket_counts) and num == __builtins__["sum"](bucket_counts)
        self.histograms.append((global_step, tag, (min, max, sum, sum_squares, bucket_limits, bucket_counts)))

    def add_text(self, tag, text_string, global_step=None):
        self.texts.append((global_step, tag, text_string))

    def flush(self):
        self.flushed += 1


class Table:
    def __init__(self, columns, data):
        self.columns, self.data = columns, data


class Histogram:
    def __init__(self, *, np_histogram):
        counts, edges = np_histogram
        assert len(edges) == len(counts) + 1
        self.histogram = counts, edges


class Run(Memory):
    """Stand-in for a run of `wandb`."""

    def __init__(self):
        super().__init__()
        self.axes, self.tables = {}, []

    def define_metric(self, name, step_metric=None, hidden=None):
        self.axes[name] = step_metric

    def log(self, data, step=None, commit=None):
        assert step is None and commit is None
        data = dict(data)
        at = data.pop("gradlab/step")
        self.keep(at, {name: value for name, value in data.items() if isinstance(value, float)})
        for name, value in data.items():
            if isinstance(value, Table):
                self.tables.append((at, name, value))
            elif isinstance(value, Histogram):
                self.histograms.append((at, name, value.histogram))


def wandb_module(monkeypatch, run):
    module = ModuleType("wandb")
    module.run, module.Table, module.Histogram = run, Table, Histogram
    module.log, module.define_metric = Run.log, Run.define_metric
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


class MLflowClient(Memory):
    def log_batch(self, run_id, metrics):
        assert run_id == "r1"
        for one in metrics:
            self.keep(one.step, {one.key: one.value})

    def log_text(self, run_id, text, artifact_file):
        assert run_id == "r1"
        self.texts.append((None, artifact_file, text))


def mlflow_module(monkeypatch, client, run_id="r1"):
    module, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    entities.Metric = lambda key, value, timestamp, step: SimpleNamespace(key=key, value=value, timestamp=timestamp, step=step)
    module.entities = entities
    module.active_run = lambda: run_id and SimpleNamespace(info=SimpleNamespace(run_id=run_id))
    module.log_metrics = lambda metrics, step=None: None
    module.tracking = SimpleNamespace(MlflowClient=lambda: client)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    return module


class Recorder(Memory):
    """Any object with `log(dict, step)`."""

    def log(self, values, step):
        numbers = {name: value for name, value in values.items() if not isinstance(value, str)}
        if numbers:
            self.keep(step, numbers)
        self.texts += [(step, name, value) for name, value in values.items() if isinstance(value, str)]


class Logger(Memory):
    """Stand-in for a logger of Lightning."""

    def __init__(self, experiment=None):
        super().__init__()
        self.experiment, self.run_id = experiment, "r1"

    def log_metrics(self, metrics, step=None):
        self.keep(step, metrics)
