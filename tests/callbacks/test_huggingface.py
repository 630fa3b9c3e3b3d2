"""`gradlab.callbacks.huggingface` with Transformers, on a training that is also computed by hand."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest
from shells import interactive, shell  # noqa: F401
from stepwise import BATCH, Recorder, Training, is_unhooked, line_with

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from gradlab.callbacks.huggingface import Watch  # noqa: E402
from gradlab.explore.doctor.session import NOTEBOOK  # noqa: E402

nn = torch.nn
pytestmark = [pytest.mark.frameworks, pytest.mark.torch]


class Regression(nn.Module):
    """A model as Transformers takes it, without `num_items_in_batch`."""

    def __init__(self, training):
        super().__init__()
        self.net = training.model()

    def forward(self, x, labels):
        return {"loss": nn.functional.mse_loss(self.net(x), labels)}


class Rows(torch.utils.data.Dataset):
    def __init__(self, training):
        self.x, self.y = torch.from_numpy(training.x), torch.from_numpy(training.y)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class InOrder(transformers.Trainer):
    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def create_optimizer(self, *args):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.learning_rate)
        return self.optimizer


def settings(folder, **options):
    options = {"num_train_epochs": 1, "max_grad_norm": 0, "learning_rate": 0.05, "lr_scheduler_type": "constant", **options}
    return transformers.TrainingArguments(
        str(folder),
        per_device_train_batch_size=BATCH,
        report_to=options.pop("report_to", "none"),
        use_cpu=True,
        disable_tqdm=True,
        save_strategy=options.pop("save_strategy", "no"),
        dataloader_pin_memory=False,
        **options,
    )


@pytest.mark.parametrize("clip", [0, 0.1])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_numbers_of_each_step_are_those_of_a_loop_by_hand(tmp_path, accumulate, clip):
    training, watch = Training(accumulate=accumulate, clip=clip or None), Watch()
    options = {"max_grad_norm": clip, "gradient_accumulation_steps": accumulate, "eval_strategy": "steps", "eval_steps": 2}
    args, rows = settings(tmp_path, logging_steps=1, **options), Rows(training)
    trainer = InOrder(Regression(training), args, train_dataset=rows, eval_dataset=rows, callbacks=[watch])
    trainer.train()
    training.check(watch.run, lambda path: f"model.net{path}")
    said = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert list(watch.run.history()["loss"]) == pytest.approx(said, rel=1e-5)
    assert watch.run.total == training.steps and watch.run.ended and not watch.run.findings.findings
    assert is_unhooked(trainer.optimizer.optimizer)


def tiny_bert():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=50, max_position_embeddings=16, **sizes)
    return transformers.BertForSequenceClassification(config)


def tiny_gpt2():
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0)
    )


class Tokens(torch.utils.data.Dataset):
    def __init__(self, is_language):
        self.x = torch.randint(0, 50, (96, 8), generator=torch.Generator().manual_seed(0))
        self.y = self.x if is_language else (self.x[:, 0] > 25).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.y[i]}


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 4}, {"bf16": True}], ids=["plain", "accumulate", "bf16"])
@pytest.mark.parametrize("make", [tiny_bert, tiny_gpt2])
def test_healthy_trainings_have_no_findings(tmp_path, make, options):
    watch = Watch()
    args = settings(tmp_path, max_grad_norm=1.0, learning_rate=5e-5, logging_steps=1, **options)
    trainer = transformers.Trainer(make(), args, train_dataset=Tokens(make is tiny_gpt2), callbacks=[watch])
    trainer.train()
    assert not watch.run.findings.findings and not watch.run.trouble
    assert watch.run.steps == trainer.state.global_step
    said = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert list(watch.run.history()["loss"]) == pytest.approx(said, rel=1e-5)


class DoubleSoftmax(transformers.Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        return nn.functional.cross_entropy(model(**inputs).logits.softmax(-1), labels)


class LogOfZero(transformers.Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        inputs.pop("labels")
        return torch.log(model(**inputs).logits.relu()).mean()


@pytest.mark.parametrize(
    ("trainer", "kind", "text"), [(DoubleSoftmax, "double-softmax", "softmax(-1)"), (LogOfZero, "inf-born", "torch.log")]
)
def test_a_problem_is_logged_once_with_the_users_line(tmp_path, trainer, kind, text):
    watch, said = Watch(), []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("gradlab.callbacks.huggingface")
    logger.addHandler(handler)
    try:
        trainer(tiny_bert(), settings(tmp_path), train_dataset=Tokens(False), callbacks=[watch]).train()
    finally:
        logger.removeHandler(handler)
    (finding,) = watch.run.findings.findings
    assert finding.kind == kind and said == [f"Problem: {finding} [{kind}]"]
    assert f"line {line_with(text, trainer.compute_loss)}" in said[0] and ".py line" not in said[0]


class Failing(InOrder):
    fails = True

    def training_step(self, *args, **kwargs):
        if self.fails and self.state.global_step == 3:
            raise ValueError("stop")
        return super().training_step(*args, **kwargs)


def test_the_watch_of_a_training_that_failed_ends_with_the_next(tmp_path):
    training, watch = Training(), Watch()
    trainer = Failing(Regression(training), settings(tmp_path), train_dataset=Rows(training), callbacks=[watch])
    with pytest.raises(ValueError, match="stop"):
        trainer.train()
    first = watch.run
    assert first.steps == 3 and not first.ended
    trainer.fails = False
    trainer.train()
    assert first.ended and watch.run is not first and watch.run.steps == training.steps
    assert is_unhooked(trainer.optimizer.optimizer)


def test_the_watch_of_a_training_that_failed_ends_with_its_trainer(tmp_path):
    def fail():
        training, watch = Training(), Watch()
        trainer = Failing(Regression(training), settings(tmp_path), train_dataset=Rows(training), callbacks=[watch])
        with pytest.raises(ValueError, match="stop"):
            trainer.train()
        return watch.run, weakref.ref(watch), trainer.optimizer.optimizer

    run, watch, optimizer = fail()
    gc.collect()
    assert watch() is None and run.ended and is_unhooked(optimizer)


def test_a_resumed_training_continues_its_steps_in_a_new_run(tmp_path):
    training, watch = Training(), Watch(to=Recorder())
    args = settings(tmp_path, save_strategy="steps", save_steps=4)
    InOrder(Regression(training), args, train_dataset=Rows(training), callbacks=[watch]).train()
    again = Watch(to=Recorder())
    trainer = InOrder(Regression(training), args, train_dataset=Rows(training), callbacks=[again])
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert sorted(watch.to.rows) == [1, 2, 3, 4, 5, 6] and sorted(again.to.rows) == [5, 6]
    assert again.run.steps == again.run.total == 2
    assert again.to.rows[5]["gradlab/loss"] == pytest.approx(training.expected["loss"][4], rel=1e-5)


def test_numbers_are_written_to_tensorboard_if_the_trainer_reports_there(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    training, watch = Training(), Watch()
    args = settings(tmp_path, report_to=["tensorboard"], logging_steps=1)
    InOrder(Regression(training), args, train_dataset=Rows(training), callbacks=[watch]).train()
    (folder,) = {path.parent for path in tmp_path.rglob("events*") if path.parent.name == "gradlab"}
    rows = reader.EventAccumulator(str(folder)).Reload().Scalars("gradlab/loss")
    assert [one.step for one in rows] == [1, 2, 3, 4, 5, 6]
    assert [one.value for one in rows] == pytest.approx(training.expected["loss"], rel=1e-5)


GPT2 = """
import torch, transformers
config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0)
state = transformers.GPT2LMHeadModel(config).state_dict()
ids = torch.randint(0, 50, (8, 12))
"""
FINE_TUNING = """%%doctor
model = transformers.GPT2LMHeadModel(config)
model.load_state_dict(state, assign=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()"""


def test_embeddings_that_an_assigned_state_separates(shell):  # noqa: F811
    shell.ok(GPT2)
    shell.ok(FINE_TUNING)
    (finding,) = NOTEBOOK.last.findings
    assert finding.kind == "broken-tie" and finding.line == 3
    assert "`model.lm_head.weight` and `model.transformer.wte.weight`" in finding.message
    shell.ok(FINE_TUNING.replace("assign=True)", "assign=True)\nmodel.tie_weights()"))
    assert "`model.tie_weights()` after" in finding.fix and not NOTEBOOK.last.findings
    shell.ok(GPT2)  # PyTorch goes on to assign a state that was assigned once
    shell.ok(FINE_TUNING.replace(", assign=True", ""))
    assert not NOTEBOOK.last.findings
