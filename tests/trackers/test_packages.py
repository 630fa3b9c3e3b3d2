"""The numbers read back from TensorBoard, Weights & Biases (offline) and MLflow (in a file) are those of a loop by hand."""

from __future__ import annotations

import importlib
import json
import struct
import warnings

import numpy as np
import pytest
from by_hand import Training

pytestmark = [pytest.mark.frameworks, pytest.mark.torch, pytest.mark.e2e]


def same_numbers(scalars, training):
    assert sorted(scalars) == list(range(1, len(training.expected) + 1))
    for step, row in enumerate(training.expected, 1):
        assert scalars[step] == pytest.approx(row, rel=1e-4), f"step {step}"


def spiking():
    training = Training(steps=16, spike_at=14)
    row = training.expected[13]
    return training, max(("0", "2"), key=lambda layer: row[f"gradient_norm/{layer}"])


# ----------------------------------------------------------------------------------------------------------------- TensorBoard
def events(folder):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    return found.Reload()


def scalars_of(found):
    rows = {}
    for tag in found.Tags()["scalars"]:
        for one in found.Scalars(tag):
            rows.setdefault(one.step, {})[tag] = one.value
    return rows


@pytest.mark.parametrize("logger", [False, True], ids=["writer", "lightning"])
def test_tensorboard(tmp_path, logger):
    pytest.importorskip("tensorboard")
    training, largest = spiking()
    if logger:
        to = pytest.importorskip("lightning.pytorch.loggers").TensorBoardLogger(tmp_path, name="", version="")
        writer = to.experiment
    else:
        from torch.utils.tensorboard import SummaryWriter

        to = writer = SummaryWriter(tmp_path)
    w = training.watch(to, "torch")
    found = events(tmp_path)  # before the writer is closed: it was flushed
    writer.close()
    assert not w.trouble
    same_numbers(scalars_of(found), training)
    first = next(one for one in found.Histograms("weights/0") if one.step == 1).histogram_value
    weights = training.start[0]
    assert (first.min, first.max, first.num) == (pytest.approx(weights.min()), pytest.approx(weights.max()), weights.size)
    assert first.bucket == np.histogram(weights, bins=len(first.bucket))[0].tolist()
    spikes = found.Tensors("gradlab/spikes/text_summary")
    assert [one.step for one in spikes] == [14]
    assert spikes[0].tensor_proto.string_val[0].decode().splitlines()[4].startswith(f"| {largest} |")


def test_numbers_that_are_not_finite_in_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    training = Training(steps=6)
    training.scales[3:] = [np.nan] * 3
    with SummaryWriter(tmp_path) as writer:
        training.watch(writer, "torch")
    rows = scalars_of(events(tmp_path))
    assert np.isnan(rows[4]["gradlab/loss"]) and np.isnan(rows[4]["gradient_norm/0"]) and np.isfinite(rows[3]["gradlab/loss"])


# ------------------------------------------------------------------------------------------------------------ Weights & Biases
def records(path):
    """Yield the records of a .wandb file: a LevelDB log of blocks of 32 kB, whose header has 7 bytes, as that of each record."""
    record = pytest.importorskip("wandb.proto.wandb_internal_pb2").Record
    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record.FromString(whole)
            whole = b""


@pytest.fixture
def wandb_run(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = wandb.init(project="p", mode="offline", dir=tmp_path)
        yield run
        run.finish()
        wandb.teardown()


def history(run, tmp_path):
    run.finish()
    importlib.import_module("wandb").teardown()  # which writes the last block of the file
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kept = list(records(path))
    rows = [
        {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in one.history.item}
        for one in kept
        if one.WhichOneof("record_type") == "history"
    ]
    axes = {one.metric.glob_name: one.metric.step_metric for one in kept if one.WhichOneof("record_type") == "metric"}
    return rows, axes


def test_wandb(tmp_path, wandb_run):
    training, largest = spiking()
    w = training.watch(wandb_run, "torch")
    rows, axes = history(wandb_run, tmp_path)
    assert not w.trouble
    scalars = {
        row["gradlab/step"]: {name: value for name, value in row.items() if name in training.expected[0]}
        for row in rows
        if "gradlab/loss" in row
    }
    same_numbers(scalars, training)
    assert axes["gradient_norm/*"] == axes["gradlab/*"] == "gradlab/step"
    assert any(name.startswith("gradlab/weights/0") for row in rows for name in row)
    (table,) = tmp_path.glob("wandb/offline-run-*/files/media/table/gradlab/spike_14_*.table.json")
    assert json.loads(table.read_text())["data"][0][0] == largest


def test_wandb_keeps_the_steps_of_the_user(tmp_path, wandb_run, clock):
    """W&B drops a row whose `step=` is smaller than the number of rows that it has."""
    training = Training(steps=40)

    def log(step):
        clock.move(0.03)
        wandb_run.log({"mine": float(step)}, step=step)

    training.watch(wandb_run, "torch", before_step=log)
    rows, _ = history(wandb_run, tmp_path)
    assert [row["mine"] for row in rows if "mine" in row] == list(range(40))
    assert sum("gradlab/loss" in row for row in rows) > 10


# ---------------------------------------------------------------------------------------------------------------------- MLflow
@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import mlflow
        except ImportError as error:
            pytest.skip(f"needs mlflow: {error}")
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("e", artifact_location=(tmp_path / "files").as_uri()))
        with mlflow.start_run():
            yield mlflow
        mlflow.set_tracking_uri(None)


def metrics(mlflow, run_id):
    client, rows = mlflow.tracking.MlflowClient(), {}
    for name in client.get_run(run_id).data.metrics:
        for one in client.get_metric_history(run_id, name):
            rows.setdefault(one.step, {})[name] = one.value
    return rows


def test_mlflow(tmp_path, mlflow):
    training, largest = spiking()
    w = training.watch(mlflow, "torch")
    assert not w.trouble
    run_id = mlflow.active_run().info.run_id
    same_numbers(metrics(mlflow, run_id), training)
    (spike,) = (tmp_path / "files").rglob("spikes-14.md")
    assert spike.read_text().splitlines()[4].startswith(f"| {largest} |")


def test_lightnings_logger_of_mlflow(tmp_path, mlflow):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    training, _ = spiking()
    logger = loggers.MLFlowLogger("e", tracking_uri=f"sqlite:///{tmp_path}/runs.db")
    w = training.watch(logger, "torch")
    assert not w.trouble
    same_numbers(metrics(mlflow, logger.run_id), training)
    assert logger.run_id != mlflow.active_run().info.run_id


def test_numbers_that_are_not_finite_in_mlflow(mlflow):
    training = Training(steps=6)
    training.scales[3:] = [np.nan] * 3
    w = training.watch(mlflow, "torch")
    assert not w.trouble
    rows = metrics(mlflow, mlflow.active_run().info.run_id)
    assert np.isnan(rows[4]["gradlab/loss"]) and np.isfinite(rows[3]["gradlab/loss"])


# -------------------------------------------------------------------------------------------------------- Lightning, accelerate
def test_lightnings_logger_of_csv(tmp_path):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    training, logger = Training(), loggers.CSVLogger(tmp_path)
    w = training.watch(logger, "torch")
    assert not w.trouble
    same_numbers({row.pop("step"): row for row in map(dict, logger.experiment.metrics)}, training)


def test_accelerates_tracker_of_tensorboard(tmp_path):
    """A `GeneralTracker` has `log(dict, step)`."""
    tracking = pytest.importorskip("accelerate.tracking")
    pytest.importorskip("tensorboard")
    pytest.importorskip("accelerate").PartialState()
    training, to = Training(), tracking.TensorBoardTracker("run", logging_dir=str(tmp_path))
    to.start()
    w = training.watch(to, "torch")
    to.finish()
    assert not w.trouble
    same_numbers(scalars_of(events(tmp_path / "run")), training)
