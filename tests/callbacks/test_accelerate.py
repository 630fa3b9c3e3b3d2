"""`gradlab.callbacks.accelerate` with Accelerate, on a training that is also computed by hand."""

from __future__ import annotations

import pytest
from stepwise import Recorder, Training, is_unhooked

accelerate = pytest.importorskip("accelerate")
torch = pytest.importorskip("torch")

from gradlab.callbacks.accelerate import Watch  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.torch]


@pytest.fixture
def make_accelerator():
    def make(**options):
        accelerate.state.AcceleratorState._reset_state(True)
        return accelerate.Accelerator(cpu=True, **options)

    yield make
    accelerate.state.AcceleratorState._reset_state(True)


def train(accelerator, training, watch_options=None, stop=None):
    """Train, and return the `Watch` and the optimizer."""
    model = training.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=training.rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, training.loader())
    with Watch(accelerator, model, optimizer, **(watch_options or {})) as watch:
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                if training.clip is not None and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), training.clip)
                optimizer.step()
                optimizer.zero_grad()
            if watch.run is not None and watch.run.steps == stop:
                raise ValueError("stop")
    return watch, optimizer


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_numbers_of_each_step_are_those_of_a_loop_by_hand(make_accelerator, accumulate, clip):
    training = Training(accumulate=accumulate, clip=clip)
    accelerator = make_accelerator(gradient_accumulation_steps=accumulate)
    watch, optimizer = train(accelerator, training)
    training.check(watch.run)
    assert watch.run.ended and not watch.run.findings.findings
    assert is_unhooked(optimizer.optimizer)


def test_mixed_precision_is_healthy(make_accelerator):
    watch, _ = train(make_accelerator(mixed_precision="bf16", gradient_accumulation_steps=2), Training(accumulate=2))
    assert watch.run.steps == 6 and not watch.run.findings.findings and not watch.run.trouble


def test_a_gradient_scaler_does_not_change_the_numbers(make_accelerator):
    training, accelerator = Training(accumulate=2), make_accelerator(gradient_accumulation_steps=2)
    accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)  # as with mixed_precision="fp16" on a GPU
    watch, _ = train(accelerator, training)
    training.check(watch.run)
    assert watch.run.loss_scale == 1024.0 and not watch.run.findings.findings


def test_an_error_ends_the_watch(make_accelerator):
    training = Training()
    accelerator = make_accelerator()
    with pytest.raises(ValueError, match="stop"):
        train(accelerator, training, stop=3)
    assert is_unhooked(accelerator._optimizers[0].optimizer)


def test_numbers_are_written_to_the_trackers_of_the_accelerator(make_accelerator, tmp_path):
    class Memory(Recorder, accelerate.tracking.GeneralTracker):
        name, requires_logging_directory, tracker = "memory", False, None

        def __init__(self):
            accelerate.tracking.GeneralTracker.__init__(self)
            Recorder.__init__(self)

        def store_init_configuration(self, values):
            pass

    memory, training = Memory(), Training()
    accelerator = make_accelerator(log_with=[memory])
    accelerator.init_trackers("project")
    train(accelerator, training, {"first_step": 10, "total": 6})
    assert sorted(memory.rows) == [11, 12, 13, 14, 15, 16]
    assert [row["gradlab/loss"] for _, row in sorted(memory.rows.items())] == pytest.approx(training.expected["loss"], rel=1e-5)


def test_other_processes_are_not_watched(make_accelerator, monkeypatch):
    monkeypatch.setattr(accelerate.Accelerator, "is_main_process", property(lambda accelerator: False))
    watch, _ = train(make_accelerator(), Training())
    assert watch.run is None


def test_the_first_argument_is_an_accelerator():
    model = Training().model()
    with pytest.raises(TypeError, match="takes an Accelerator first, and got Sequential"):
        Watch(model, model, torch.optim.SGD(model.parameters(), lr=0.1))
