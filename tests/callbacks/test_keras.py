"""`gradlab.callbacks.keras` with Keras on PyTorch, on a training that is also computed by hand."""

from __future__ import annotations

import gc
import os
import weakref

import pytest
from stepwise import BATCH, Recorder, Training

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
pytest.importorskip("torch")

from gradlab.callbacks.keras import Watch  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.torch]


def make_model(training, **options):
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(8, "relu", name="0"), keras.layers.Dense(1, name="2")], name="net"
    )
    w1, b1, w2, b2 = training.start
    model.set_weights([w1.T, b1, w2.T, b2])
    model.compile(options.pop("optimizer", None) or keras.optimizers.SGD(training.rate), options.pop("loss", "mse"))
    return model


def fit(model, training, watch, **options):
    return model.fit(training.x, training.y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[watch], **options)


def test_the_numbers_of_each_step_are_those_of_a_loop_by_hand():
    training, watch = Training(), Watch(to=Recorder())
    model = make_model(training)
    fit(model, training, watch, validation_data=(training.x, training.y))
    layers = dict(zip(("[0]", "[2]"), watch.run.layers, strict=True))
    training.check(watch.run, layers.__getitem__)
    assert watch.run.total == training.steps and watch.run.ended and not watch.run.findings.findings
    assert "apply" not in vars(model.optimizer)
    assert sorted(watch.to.rows) == [1, 2, 3, 4, 5, 6]
    first = watch.run
    fit(model, training, watch)
    assert watch.run is not first and sorted(watch.to.rows) == list(range(1, 13))


def test_a_problem_is_printed_once(capsys):
    training, watch = Training(steps=12), Watch()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(2, "softmax")])
    model.compile(keras.optimizers.SGD(0.05), loss)
    training.y = (training.y > 0).astype(int)
    fit(model, training, watch)
    (finding,) = watch.run.findings.findings
    assert finding.kind == "double-softmax"
    assert '`keras.layers.Dense(2)` in place of `keras.layers.Dense(2, "softmax")`' in finding.fix
    assert capsys.readouterr().out.count(f"Problem: {finding} [double-softmax]") == 1


def test_a_training_whose_gradients_the_optimizer_makes_is_not_watched(capsys):
    training, watch = Training(), Watch()
    for options in ({"gradient_accumulation_steps": 2}, {"loss_scale_factor": 8.0}):
        fit(make_model(training, optimizer=keras.optimizers.SGD(0.05, **options)), training, watch)
        assert watch.run is None
        assert "gradlab does not watch a training with" in capsys.readouterr().out


def test_the_watch_of_a_training_that_failed_ends_with_its_callback():
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise ValueError("stop")

    def fail():
        training, watch = Training(), Watch()
        model = make_model(training)
        with pytest.raises(ValueError, match="stop"):
            model.fit(training.x, training.y, batch_size=BATCH, verbose=0, callbacks=[watch, Stop()])
        return watch.run, weakref.ref(watch), model.optimizer

    run, watch, optimizer = fail()
    gc.collect()
    assert watch() is None and run.ended and run.steps == 3 and "apply" not in vars(optimizer)


def test_another_backend_is_an_error(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND"):
        Watch()
