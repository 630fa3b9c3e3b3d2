"""Each kind of tracker, as a stand-in with the methods of the real one, gets the numbers that a loop by hand computes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from by_hand import Training
from stand_ins import Logger, MLflowClient, Recorder, Run, Writer, mlflow_module, wandb_module

import gradlab as gl
from gradlab.diagnose.faults import FaultWarning

LIBRARIES = [pytest.param("gradlab", id="gradlab"), pytest.param("torch", id="torch", marks=pytest.mark.torch)]


def same_numbers(scalars, expected):
    assert sorted(scalars) == list(range(1, len(expected) + 1))
    for step, row in enumerate(expected, 1):
        assert scalars[step] == pytest.approx(row, rel=1e-4), f"step {step}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_numbers_of_each_step(library):
    training, tracker = Training(), Recorder()
    w = training.watch(tracker, library)
    same_numbers(tracker.scalars, training.expected)
    assert not w.trouble


@pytest.mark.parametrize("library", LIBRARIES)
def test_gradients_before_and_after_clipping(library):
    training, tracker = Training(clip=0.5), Recorder()
    training.watch(tracker, library)
    same_numbers(tracker.scalars, training.expected)
    first = tracker.scalars[1]
    assert first["gradlab/gradient_norm"] == pytest.approx(0.5) and first["gradlab/gradient_norm_unclipped"] > 1


def test_a_spike_is_found_though_it_is_clipped():
    training, tracker = Training(steps=16, spike_at=14, clip=0.5), Recorder()
    training.watch(tracker)
    assert [step for step, name, _ in tracker.texts if name == "gradlab/spikes"] == [14]


def test_a_summary_writer():
    training, writer = Training(), Writer()
    training.watch(writer)
    same_numbers(writer.scalars, training.expected)
    assert {tag for _, tag, _ in writer.histograms} == {"gradients/0", "gradients/2", "weights/0", "weights/2"}
    step, _, (low, high, total, squares, limits, counts) = next(h for h in writer.histograms if h[1] == "weights/0")
    weights = training.start[0]  # of the first step, which is looked at before the weights move
    assert step == 1
    assert (low, high) == (pytest.approx(weights.min()), pytest.approx(weights.max()))
    assert counts == np.histogram(weights, bins=len(counts))[0].tolist()
    assert limits == pytest.approx(np.histogram_bin_edges(weights, bins=len(counts))[1:])
    width = (high - low) / len(counts)
    assert (
        abs(total - weights.sum()) <= width / 2 * weights.size and abs(squares - (weights**2).sum()) <= 2 * width * weights.size
    )
    assert writer.flushed == 1


def test_a_histogram_of_equal_numbers():
    writer = Writer()
    a = gl.full((5,), 3.0, requires_grad=True)
    optimizer = gl.optim.SGD([a], lr=0.1)
    with gl.watch([("a", a)], optimizer, to=writer) as w:
        a.sum().backward()
        optimizer.step()
        w.log(1.0)
    _, _, (low, high, _, _, limits, counts) = next(h for h in writer.histograms if h[1] == "weights/a")
    assert low == high == 3.0 and sum(counts) == 5
    assert (np.diff(limits) > 0).all() and limits[-1] == pytest.approx(3.0, rel=1e-5)


def test_a_run_of_wandb(monkeypatch):
    training, run = Training(), Run()
    module = wandb_module(monkeypatch, run)
    training.watch(module)  # the module stands for its current run
    same_numbers(run.scalars, training.expected)
    assert run.axes["gradlab/step"] is None
    assert {axis for name, axis in run.axes.items() if name != "gradlab/step"} == {"gradlab/step"}
    logged = set().union(*run.scalars.values()) | {name for _, name, _ in run.histograms}
    assert all(f"{name.partition('/')[0]}/*" in run.axes for name in logged)
    assert "gradlab/weights/0" in logged


def test_the_module_mlflow(monkeypatch):
    training, client = Training(), MLflowClient()
    training.watch(mlflow_module(monkeypatch, client))
    same_numbers(client.scalars, training.expected)


def test_mlflow_takes_no_other_characters(monkeypatch):
    client = MLflowClient()
    a = gl.ones(2, requires_grad=True)
    optimizer = gl.optim.SGD([a], lr=0.1)
    with gl.watch([("ä[0]", a)], optimizer, to=mlflow_module(monkeypatch, client)) as w:
        a.sum().backward()
        optimizer.step()
        w.log(1.0)
    assert "gradient_norm/__0_" in client.scalars[1]
    assert all(re.fullmatch(r"[\w./ -]+", name, re.ASCII) for name in client.scalars[1])


def test_loggers_of_lightning(monkeypatch):
    """A logger is written to by its experiment, if that is a kind of tracker that takes more than numbers."""
    training, writer, run, client, logger = Training(), Writer(), Run(), MLflowClient(), Logger()
    wandb_module(monkeypatch, run)
    mlflow_module(monkeypatch, client)
    training.watch([Logger(writer), Logger(run), Logger(client), logger])
    for memory in (writer, run, client, logger):
        same_numbers(memory.scalars, training.expected)
    assert writer.histograms and run.histograms


def test_several_trackers():
    training, one, two = Training(), Recorder(), Writer()
    training.watch([one, two])
    same_numbers(one.scalars, training.expected)
    same_numbers(two.scalars, training.expected)


# ------------------------------------------------------------------------------------------------------ spikes and findings
def test_a_spike_is_written_by_layer(monkeypatch):
    training, writer, run, client, recorder = Training(steps=16, spike_at=14), Writer(), Run(), MLflowClient(), Recorder()
    wandb_module(monkeypatch, run)
    mlflow = mlflow_module(monkeypatch, client)
    training.watch([writer, run, mlflow, recorder])
    row = training.expected[13]
    largest = max(("0", "2"), key=lambda layer: row[f"gradient_norm/{layer}"])
    step, name, text = next(one for one in writer.texts if one[1] == "gradlab/spikes")
    assert step == 14 and f"| {largest} | {row[f'gradient_norm/{largest}']:.4g} |" in text.splitlines()[4]
    usual = np.median([one["gradlab/gradient_norm"] for one in training.expected[:13]])
    assert f"{row['gradlab/gradient_norm'] / usual:.3g} times the median of the last 13 checks" in text
    assert (14, name, text) in recorder.texts
    assert (None, "gradlab/spikes-14.md", text) in client.texts
    at, key, table = next(one for one in run.tables if "spike" in one[1])
    assert (at, key) == (14, "gradlab/spike_14") and table.data[0][0] == largest
    assert table.data[0][1:] == pytest.approx(
        [row[f"{kind}/{largest}"] for kind in ("gradient_norm", "update_ratio", "weight_norm")]
    )
    assert sum(one[1] == "gradlab/spikes" for one in writer.texts) == 1  # the steps after it are of the same spike, or usual


def test_a_step_that_is_not_finite_is_a_spike_once():
    training, tracker = Training(steps=8), Recorder()
    training.scales[3:] = [math.nan] * 5
    training.watch(tracker)
    spikes = [(step, text) for step, name, text in tracker.texts if name == "gradlab/spikes"]
    assert [step for step, _ in spikes] == [4] and "not finite" in spikes[0][1]
    assert math.isnan(tracker.scalars[4]["gradlab/loss"]) and math.isfinite(tracker.scalars[3]["gradlab/loss"])


def test_findings_are_written_once(monkeypatch):
    training, writer, run, client, recorder = Training(steps=30), Writer(), Run(), MLflowClient(), Recorder()
    training.scales[20:] = [math.nan] * 10
    wandb_module(monkeypatch, run)
    w = training.watch([writer, run, mlflow_module(monkeypatch, client), recorder])
    expected = [f"{one} [{one.kind}]" for one in w.findings.findings]
    assert expected
    assert [text for _, name, text in writer.texts if name == "gradlab/findings"] == expected
    assert [text for _, name, text in recorder.texts if name == "gradlab/findings"] == expected
    assert [row[1] for row in run.tables[-1][2].data] == expected
    assert all(text in client.texts[-1][2] for text in expected) and client.texts[-1][1] == "gradlab/findings.md"


# ---------------------------------------------------------------------------------------------------------- what goes wrong
class Broken(Recorder):
    def log(self, values, step):
        if step == 3:
            raise OSError("disk full")
        super().log(values, step)


def test_a_tracker_that_raises_gets_nothing_more():
    training, broken, other = Training(), Broken(), Recorder()
    with pytest.warns(FaultWarning, match=r"writes nothing more to test_trackers\.Broken") as warned:
        w = training.watch([broken, other])
    assert len(warned) == 1 and "OSError: disk full" in w.trouble and "Broken" in w.trouble
    assert sorted(broken.scalars) == [1, 2]
    same_numbers(other.scalars, training.expected)
    assert w.trouble in w.findings.text()


def test_the_only_tracker_raises():
    training, broken = Training(steps=130), Broken()
    with pytest.warns(FaultWarning, match="disk full"):
        w = training.watch(broken)
    assert sorted(broken.scalars) == [1, 2] and not w.tracking.queue and w.steps == 130


def test_an_interrupt_of_a_tracker_stops_the_program():
    class Interrupted(Recorder):
        def log(self, values, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Training().watch(Interrupted())


class NoStep:
    def log(self, values):
        pass


@pytest.mark.parametrize(
    ("to", "error", "match"),
    [
        ("runs/x", TypeError, r"got str: 'runs/x'\. Give SummaryWriter\('runs/x'\)"),
        (3, TypeError, r"takes a SummaryWriter of TensorBoard, .* any object with log\(dict, step\), .* and got int: 3"),
        (Recorder, TypeError, "got the class Recorder. Give an instance"),
        (NoStep(), TypeError, "any object with log"),
        (math, TypeError, "and got module"),
        ([Recorder(), None], TypeError, "and got NoneType"),
    ],
)
def test_other_objects_are_refused(to, error, match):
    model = gl.nn.Linear(2, 1)
    with pytest.raises(error, match=match):
        gl.watch(model, gl.optim.SGD(model.parameters(), lr=0.1), to=to)


def test_modules_without_a_run_are_refused(monkeypatch):
    model = gl.nn.Linear(2, 1)
    optimizer = gl.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=r"no active run. Call `wandb.init\(\)` before"):
        gl.watch(model, optimizer, to=wandb_module(monkeypatch, None))
    with pytest.raises(ValueError, match=r"no active run. Call `mlflow.start_run\(\)` before"):
        gl.watch(model, optimizer, to=mlflow_module(monkeypatch, None, run_id=None))
