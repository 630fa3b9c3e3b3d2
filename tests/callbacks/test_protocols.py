"""The callbacks with stand-ins for the frameworks: the same hooks with the same arguments, in the order of the real ones."""

from __future__ import annotations

import importlib
import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest
from stepwise import BATCH, Recorder, Training, is_unhooked

pytestmark = pytest.mark.torch


@pytest.fixture
def stand_in(monkeypatch):
    """Return a function that imports a module of `gradlab.callbacks` with stand-ins for the packages that it imports."""

    def load(name, **modules):
        for path, attributes in modules.items():
            module = ModuleType(path.replace("__", "."))
            vars(module).update(attributes, __path__=[])
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.delitem(sys.modules, f"gradlab.callbacks.{name}", raising=False)
        return importlib.import_module(f"gradlab.callbacks.{name}")

    yield load
    for name in ("lightning", "huggingface", "accelerate", "keras"):
        sys.modules.pop(f"gradlab.callbacks.{name}", None)


def micro_batches(training):
    import torch

    return list(zip(*(torch.from_numpy(one).split(BATCH) for one in (training.x, training.y)), strict=True))


def sgd(training):
    import torch

    model = training.model()
    return model, torch.optim.SGD(model.parameters(), lr=training.rate)


def mse(model, x, y):
    import torch

    return torch.nn.functional.mse_loss(model(x), y)


def clip(training, model):
    import torch

    if training.clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip)


def test_lightning(stand_in):
    """Automatic optimization: the last micro-batch of a step runs in the closure of `optimizer.step`."""
    base = type("Callback", (), {"__module__": "lightning.pytorch.callbacks.callback"})
    classes = {"Callback": base, "LightningModule": object, "Trainer": object}
    module = stand_in("lightning", lightning={}, lightning__pytorch=classes)
    training, memory = Training(accumulate=3, clip=0.1), Recorder()
    model, optimizer = sgd(training)
    watch = module.Watch()
    trainer = SimpleNamespace(is_global_zero=True, optimizers=[optimizer], loggers=[memory], fast_dev_run=0, global_step=0)
    trainer.precision_plugin, trainer.estimated_stepping_batches = SimpleNamespace(), training.steps
    watch.on_train_start(trainer, model)
    for i, batch in enumerate(micro_batches(training)):
        outputs = {}

        def closure(i=i, batch=batch, outputs=outputs):
            loss = mse(model, *batch) / training.accumulate
            if i % training.accumulate == 0:
                optimizer.zero_grad()
            loss.backward()
            outputs["loss"] = loss.detach().clone()
            return loss

        if (i + 1) % training.accumulate:
            closure()
        else:

            def closure_and_clipping(closure=closure):
                loss = closure()
                clip(training, model)
                return loss

            optimizer.step(closure=closure_and_clipping)
            trainer.global_step += 1
        watch.on_train_batch_end(trainer, model, outputs, batch, i)
    watch.on_train_end(trainer, model)
    watch.teardown(trainer, model, stage="fit")
    training.check(watch.run)
    assert sorted(memory.rows) == list(range(training.steps)) and is_unhooked(optimizer)


class Wrapped:
    """An optimizer as Accelerate wraps it."""

    scaler = None

    def __init__(self, optimizer):
        self.optimizer = optimizer


def test_transformers(stand_in):
    names = ("TrainerCallback", "TrainerControl", "TrainerState", "TrainingArguments")
    module = stand_in(
        "huggingface",
        transformers={name: type(name, (), {}) for name in names},
        transformers__utils={"logging": SimpleNamespace(get_logger=logging.getLogger)},
    )
    training, memory = Training(accumulate=3, clip=0.1), Recorder()
    model, optimizer = sgd(training)
    watch = module.Watch(to=memory)
    args = SimpleNamespace(report_to=[], output_dir="out")
    state = SimpleNamespace(is_world_process_zero=True, global_step=10, max_steps=10 + training.steps)
    call = {"model": model, "processing_class": None, "optimizer": Wrapped(optimizer), "lr_scheduler": None}
    model.zero_grad()
    watch.on_train_begin(args, state, None, **call)
    for i, batch in enumerate(micro_batches(training)):
        model.train()
        (mse(model, *batch) / training.accumulate).backward()
        if (i + 1) % training.accumulate == 0:
            clip(training, model)
            optimizer.step()
            model.zero_grad()
            state.global_step += 1
            watch.on_step_end(args, state, None, **call)
    watch.on_train_end(args, state, None, **call)
    training.check(watch.run)
    assert sorted(memory.rows) == list(range(11, 11 + training.steps)) and is_unhooked(optimizer)


class Accelerator:
    """Stand-in for an Accelerator without processes."""

    is_main_process, trackers, scaler, sync_gradients = True, (), None, True

    def unwrap_model(self, model):
        return model


def test_accelerate(stand_in):
    module = stand_in(
        "accelerate", accelerate={"Accelerator": Accelerator}, accelerate__logging={"get_logger": logging.getLogger}
    )
    training, accelerator = Training(accumulate=3, clip=0.1), Accelerator()
    model, optimizer = sgd(training)
    with module.Watch(accelerator, model, Wrapped(optimizer)) as watch:
        for i, batch in enumerate(micro_batches(training)):
            accelerator.sync_gradients = (i + 1) % training.accumulate == 0
            (mse(model, *batch) / training.accumulate).backward()
            if accelerator.sync_gradients:
                clip(training, model)
                optimizer.step()
                optimizer.zero_grad()
    training.check(watch.run)
    assert is_unhooked(optimizer)


def test_a_scaled_loss_is_logged_unscaled_and_a_skipped_step_is_left_out(stand_in):
    module = stand_in(
        "accelerate", accelerate={"Accelerator": Accelerator}, accelerate__logging={"get_logger": logging.getLogger}
    )
    import torch

    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this version has a GradScaler for CUDA only")
    training, accelerator = Training(), Accelerator()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    model, optimizer = sgd(training)
    batches = micro_batches(training)
    with module.Watch(accelerator, model, Wrapped(optimizer)) as watch:
        for i, batch in enumerate([batches[0], *batches]):
            scaler.scale(mse(model, *batch) * (1.0 if i else float("inf"))).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    training.check(watch.run)
    assert watch.run.skipped_steps == 1 and watch.run.loss_scale == 512.0


class Variable:
    def __init__(self, value):
        self.value = value


class KerasOptimizer:
    """Stand-in for an optimizer of Keras."""

    gradient_accumulation_steps = loss_scale_factor = None
    iterations = 0

    def __init__(self, rate):
        self.learning_rate = Variable(rate)

    def apply(self, grads, trainable_variables=None):
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            variable.value.sub_(self.learning_rate.value * gradient)
        self.iterations += 1


def test_keras(stand_in):
    import torch

    printed = []
    base = type("Callback", (), {})
    module = stand_in(
        "keras",
        keras={
            "backend": SimpleNamespace(backend=lambda: "torch"),
            "optimizers": SimpleNamespace(LossScaleOptimizer=type("LossScaleOptimizer", (), {})),
        },
        keras__callbacks={"Callback": base},
        keras__src={},
        keras__src__utils={},
        keras__src__utils__io_utils={"print_msg": printed.append},
    )
    training = Training()
    network, optimizer = training.model(), KerasOptimizer(training.rate)
    variables = [Variable(parameter) for parameter in network.parameters()]
    watch = module.Watch()
    network.optimizer, network.trainable_variables = optimizer, variables  # a Keras model is a module
    watch.model = network
    watch.params = {"epochs": 1, "steps": training.steps, "verbose": 0}
    watch.on_train_begin()
    for x, y in micro_batches(training):
        network.zero_grad()
        mse(network, x, y).backward()
        gradients = [variable.value.grad for variable in variables]
        with torch.no_grad():
            optimizer.apply(gradients, variables)
    watch.on_train_end()
    training.check(watch.run, lambda path: f"network{path}")
    assert watch.run.total == training.steps and "apply" not in vars(optimizer) and not printed


@pytest.mark.parametrize(
    ("name", "package", "install"),
    [
        ("lightning", "lightning", "pip install lightning"),
        ("huggingface", "transformers", r"pip install 'transformers\[torch\]'"),
        ("accelerate", "accelerate", "pip install accelerate"),
        ("keras", "keras", "pip install keras"),
    ],
)
def test_a_missing_framework_is_an_error_that_says_what_to_install(monkeypatch, name, package, install):
    for one in [one for one in sys.modules if one.split(".")[0] in (package, "pytorch_lightning")]:
        monkeypatch.delitem(sys.modules, one)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)
    monkeypatch.delitem(sys.modules, f"gradlab.callbacks.{name}", raising=False)
    with pytest.raises(ImportError, match=install):
        importlib.import_module(f"gradlab.callbacks.{name}")
