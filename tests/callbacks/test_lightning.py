"""`gradlab.callbacks.lightning` with Lightning, on a training that is also computed by hand."""

from __future__ import annotations

import logging

import pytest
from stepwise import BATCH, Recorder, Training, is_unhooked, line_with

pl = pytest.importorskip("lightning.pytorch")
torch = pytest.importorskip("torch")

from gradlab.callbacks.lightning import Watch  # noqa: E402

nn = torch.nn
pytestmark = [pytest.mark.frameworks, pytest.mark.torch]


class Module(pl.LightningModule):
    def __init__(self, training):
        super().__init__()
        self.net, self.rate, self.interrupt = training.model(), training.rate, None

    def training_step(self, batch, batch_idx):
        x, y = batch
        if self.interrupt is not None and self.global_step == 3:
            raise self.interrupt
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


class Classifier(pl.LightningModule):
    """Two classes, with a fault in one line."""

    def __init__(self, rate=0.05):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.rate = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)), rate

    def compute_loss(self, x, labels):
        return nn.functional.cross_entropy(self.net(x), labels)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return self.compute_loss(x, (y[:, 0] > 0).long())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate)


class DoubleSoftmax(Classifier):
    def compute_loss(self, x, labels):
        return nn.functional.cross_entropy(self.net(x).softmax(1), labels)


class Detached(Classifier):
    def compute_loss(self, x, labels):
        return nn.functional.cross_entropy(self.net[2](self.net[:2](x).detach()), labels)


class LogOfZero(Classifier):
    def compute_loss(self, x, labels):
        return torch.log(self.net(x).relu()).mean()


class Manual(Classifier):
    """Manual optimization that never clears its gradients."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.manual_backward(self.compute_loss(x, (y[:, 0] > 0).long()))
        self.optimizers().step()


class Adversarial(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        torch.manual_seed(0)
        self.generator, self.critic = nn.Linear(3, 3), nn.Linear(3, 1)

    def training_step(self, batch, batch_idx):
        x, _ = batch
        first, second = self.optimizers()
        first.zero_grad()
        self.manual_backward(self.critic(self.generator(x)).square().mean())
        first.step()
        second.zero_grad()
        self.manual_backward((self.critic(x) - 1).square().mean())
        second.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=0.1) for part in (self.generator, self.critic)]


def make_trainer(folder, watch, **options):
    options = {"max_epochs": 1, "logger": False, "enable_checkpointing": False, **options}
    return pl.Trainer(
        callbacks=[watch, *options.pop("callbacks", ())],
        default_root_dir=folder,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )


def check(training, run):
    training.check(run, lambda path: f"model.net{path}")


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_numbers_of_each_step_are_those_of_a_loop_by_hand(tmp_path, accumulate, clip):
    training, watch = Training(accumulate=accumulate, clip=clip), Watch()
    model, loader = Module(training), training.loader()
    options = {"gradient_clip_val": clip, "accumulate_grad_batches": accumulate, "val_check_interval": 2 * accumulate}
    trainer = make_trainer(tmp_path, watch, **options)
    trainer.fit(model, loader, loader)
    check(training, watch.run)
    assert watch.run.total == training.steps and watch.run.ended
    assert not watch.run.findings.findings
    assert is_unhooked(trainer.optimizers[0])


def test_numbers_are_written_to_the_loggers_at_the_steps_of_lightnings_own(tmp_path):
    class Memory(pl.loggers.logger.Logger):
        name, version = "memory", 0

        def __init__(self):
            super().__init__()
            self.rows = {}

        def log_hyperparams(self, params, *args, **kwargs):
            pass

        def log_metrics(self, metrics, step=None):
            self.rows.setdefault(step, {}).update(metrics)

    training, watch, memory = Training(), Watch(), Memory()
    make_trainer(tmp_path, watch, logger=memory, log_every_n_steps=1).fit(Module(training), training.loader())
    for step in range(training.steps):
        row = memory.rows[step]
        assert row["gradlab/loss"] == pytest.approx(row["train_loss"]) == pytest.approx(training.expected["loss"][step], rel=1e-5)
        assert row["gradient_norm/net.2"] == pytest.approx(training.expected["gradient 2"][step], rel=1e-5)


def test_a_fast_run_has_no_loggers_to_write_to(tmp_path):
    training, watch = Training(), Watch()
    make_trainer(tmp_path, watch, logger=True, fast_dev_run=2).fit(Module(training), training.loader())
    assert watch.run.steps == 2 and not watch.run.trouble


def test_nothing_is_written_with_to_none(tmp_path):
    logger = pl.loggers.CSVLogger(tmp_path)
    training, watch = Training(), Watch(to=None)
    make_trainer(tmp_path, watch, logger=logger, log_every_n_steps=1).fit(Module(training), training.loader())
    check(training, watch.run)
    assert "gradlab" not in next(tmp_path.rglob("metrics.csv")).read_text()


@pytest.mark.parametrize("error", [ValueError("stop"), KeyboardInterrupt()])
def test_an_error_ends_the_watch(tmp_path, error):
    training, watch = Training(), Watch()
    model = Module(training)
    model.interrupt = error
    trainer = make_trainer(tmp_path, watch)
    with pytest.raises((ValueError, SystemExit)):
        trainer.fit(model, training.loader())
    assert watch.run.ended and watch.run.interrupted == type(error).__name__ and watch.run.steps == 3
    assert list(watch.run.history()["loss"]) == pytest.approx(training.expected["loss"][:3], rel=1e-5)
    assert is_unhooked(trainer.optimizers[0])


def test_max_steps_and_early_stopping_end_the_watch(tmp_path):
    training, watch = Training(), Watch()
    make_trainer(tmp_path, watch, max_steps=4).fit(Module(training), training.loader())
    assert watch.run.ended and watch.run.steps == watch.run.total == 4
    stop = pl.callbacks.EarlyStopping("val_loss", stopping_threshold=1e9)
    make_trainer(tmp_path, watch, max_epochs=5, callbacks=[stop]).fit(Module(training), training.loader(), training.loader())
    assert watch.run.ended and watch.run.steps == training.steps and watch.run.total == 5 * training.steps


def test_a_resumed_training_continues_its_steps_in_a_new_run(tmp_path):
    training, watch = Training(), Watch()
    loader = training.loader()
    trainer = make_trainer(tmp_path, watch)
    trainer.fit(Module(training), loader)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    first = watch.run
    watch.to = Recorder()
    trainer = make_trainer(tmp_path, watch, max_epochs=2)
    trainer.fit(Module(training), loader, ckpt_path=tmp_path / "last.ckpt")
    assert watch.run is not first and watch.run.steps == watch.run.total == training.steps
    assert sorted(watch.to.rows) == list(range(training.steps, 2 * training.steps))


def test_each_step_of_several_optimizers_counts_and_has_no_common_loss(tmp_path):
    training, watch = Training(), Watch()
    trainer = make_trainer(tmp_path, watch)
    trainer.fit(Adversarial(), training.loader())
    assert watch.run.steps == trainer.global_step == 2 * training.steps
    history = watch.run.history()
    assert all(value != value for value in history["loss"])
    moved = [history[f"ratio model.{part}"] > 0 for part in ("generator", "critic")]
    assert list(moved[0]) == [True, False] * training.steps and list(moved[1]) == [False, True] * training.steps


@pytest.mark.parametrize(
    ("model", "kind", "text", "function"),
    [
        (DoubleSoftmax, "double-softmax", "softmax(1)", DoubleSoftmax.compute_loss),
        (Detached, "detached", "detach()", Detached.compute_loss),
        (LogOfZero, "inf-born", "torch.log", LogOfZero.compute_loss),
        (Manual, "accumulated", "manual_backward", Manual.training_step),
    ],
)
def test_a_problem_is_logged_once_with_the_users_line(tmp_path, model, kind, text, function, caplog):
    watch, said = Watch(), []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("lightning.pytorch.callbacks.callback.gradlab")
    logger.addHandler(handler)
    try:
        make_trainer(tmp_path, watch).fit(model(), Training(steps=12).loader())
    finally:
        logger.removeHandler(handler)
    (finding,) = watch.run.findings.findings
    assert finding.kind == kind
    (message,) = said
    assert message == f"Problem: {finding} [{kind}]"
    assert f"line {line_with(text, function)}" in message and ".py line" not in message


def test_a_step_that_is_too_large_has_the_line_of_fit(tmp_path):
    watch = Watch()
    make_trainer(tmp_path, watch).fit(Classifier(rate=10**6), Training(steps=12).loader())
    (finding,) = [one for one in watch.run.findings.findings if one.kind == "update-ratio"]
    line = line_with(f"rate={10}**6", test_a_step_that_is_too_large_has_the_line_of_fit)
    assert f"on line {line} " in str(finding)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_healthy_trainings_have_no_findings(tmp_path, precision):
    watch = Watch()
    make_trainer(tmp_path, watch, precision=precision, accumulate_grad_batches=2).fit(Classifier(), Training(steps=12).loader())
    assert not watch.run.findings.findings and not watch.run.trouble and watch.run.steps == 6


def test_other_ranks_are_not_watched(tmp_path, monkeypatch):
    monkeypatch.setattr(pl.Trainer, "is_global_zero", property(lambda trainer: False))
    watch = Watch()
    make_trainer(tmp_path, watch).fit(Classifier(), Training().loader())
    assert watch.run is None


def test_a_wrong_tracker_is_an_error_of_fit(tmp_path):
    with pytest.raises(TypeError, match="takes a SummaryWriter"):
        make_trainer(tmp_path, Watch(to=BATCH)).fit(Classifier(), Training().loader())
