"""Adapters of PEFT on small models of Transformers: healthy trainings, names, and checkpoints that record no gradient."""

from __future__ import annotations

import re

import pytest
from shells import interactive, shell  # noqa: F401
from test_huggingface import Tokens, settings, tiny_gpt2

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")

from gradlab.callbacks.huggingface import Watch  # noqa: E402
from gradlab.explore.doctor.session import NOTEBOOK  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.torch]
KIND = "checkpoint-without-grad"

LLAMA = """
import torch, transformers
from peft import LoraConfig, get_peft_model
torch.manual_seed(0)
sizes = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
config = transformers.LlamaConfig(vocab_size=50, bos_token_id=0, eos_token_id=0, **sizes)
lora = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.1, target_modules=["q_proj", "v_proj"])
model = get_peft_model(transformers.LlamaForCausalLM(config), lora)
ids = torch.randint(0, 50, (8, 12))
batch = dict(input_ids=ids, labels=ids)
"""
GPT2 = """
import torch, transformers
from peft import LoraConfig, get_peft_model
torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0)
lora = LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True)
model = get_peft_model(transformers.GPT2LMHeadModel(config), lora)
ids = torch.randint(0, 50, (8, 12))
batch = dict(input_ids=ids, labels=ids)
"""
VIT = """
import torch, transformers
from peft import LoraConfig, get_peft_model
torch.manual_seed(0)
sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4)
lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], modules_to_save=["classifier"])
model = get_peft_model(transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=3, **sizes)), lora)
batch = dict(pixel_values=torch.randn(8, 3, 8, 8), labels=torch.randint(0, 3, (8,)))
"""
FIRST = {
    LLAMA: "model.base_model.model.model.layers[0].self_attn.q_proj.lora_A.default.weight",
    GPT2: "model.base_model.model.transformer.h[0].attn.c_attn.lora_A.default.weight",
    VIT: "model.base_model.model.vit.layers[0].attention.q_proj.lora_A.default.weight",
}
IDS = {LLAMA: "llama", GPT2: "gpt2", VIT: "vit"}.get


def loop(steps, lines=""):
    return f"""{lines}
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()"""


@pytest.fixture
def run(shell):  # noqa: F811
    """Function that runs the cells of a model and of its training, and returns the diagnosis."""
    shell.ip.run_line_magic("config", "GradMagics.graph = False")

    def run(model, training, magic="%%grad"):
        shell.ok(model)
        result = shell.run(f"{magic}\n{training}")
        assert result.error is None, result.stdout
        return NOTEBOOK.last

    yield run
    shell.ip.reset(new_session=False)


@pytest.mark.parametrize("magic", ["%%grad", "%%doctor", "%%watch"])
@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("model", FIRST, ids=IDS)
def test_adapters_that_learn_have_no_problem(run, shell, model, steps, magic):  # noqa: F811
    found = run(model, loop(steps), magic)
    assert not found.findings and not found.unseen, found
    if steps == 1:  # the other factor starts at 0, and learns in the first step
        assert {one.kind for one in found.remarks} <= {"zero-factor"}
        assert all("from the next step on the others do" in one.message for one in found.remarks)
    else:
        assert not found.remarks
        assert shell.ns["model"].get_submodule(FIRST[model][6:-7].replace("[0]", ".0")).weight.grad.any()


@pytest.mark.parametrize("model", FIRST, ids=IDS)
def test_parameters_have_the_names_that_users_type(run, shell, model):  # noqa: F811
    shell.ok(model)
    shell.ok(f"%%grad -o report\n{loop(2)}")
    names = [leaf.name for leaf in shell.ns["report"].trace.leaves]
    assert FIRST[model] in names
    assert {id(eval(name, shell.ns)) for name in names} == {id(p) for p in shell.ns["model"].parameters() if p.requires_grad}


@pytest.mark.parametrize("magic", ["%%grad", "%%doctor", "%%watch"])
def test_a_checkpoint_that_records_no_gradient_and_its_fix(run, shell, magic):  # noqa: F811
    training = loop(4, 'model.gradient_checkpointing_enable({"use_reentrant": True})')
    found = run(VIT, training, magic)
    (finding,) = found.findings
    assert finding.kind == KIND and finding.line == 2 and 7 in finding.lines
    assert "`model(**batch)` on line 7" in finding.message and FIRST[VIT] in finding.message
    new, old = re.search("`([^`]*)` in place of `([^`]*)`", finding.fix).groups()
    assert training.count(old) == 1
    assert not run(VIT, training.replace(old, new), magic).findings
    assert all(p.grad is not None for p in shell.ns["model"].parameters() if p.requires_grad)


def test_a_backward_that_fails_because_of_a_checkpoint(run, shell):  # noqa: F811
    model = LLAMA + "batch = dict(inputs_embeds=torch.randn(8, 12, 16), labels=ids)\n"
    training = loop(2, 'model.gradient_checkpointing_enable({"use_reentrant": True})')
    shell.ok(model)
    assert isinstance(shell.run(f"%%grad\n{training}").error, RuntimeError)
    (finding,) = NOTEBOOK.last.findings
    assert finding.kind == KIND and finding.line == 2 and "The result has no history" in finding.message
    assert not run(model, training.replace("True", "False")).findings
    assert all(p.grad is not None for p in shell.ns["model"].parameters() if p.requires_grad)


def test_inputs_that_are_made_to_require_grad_are_healthy(run, shell):  # noqa: F811
    found = run(
        LLAMA, loop(4, 'model.gradient_checkpointing_enable({"use_reentrant": True})\nmodel.enable_input_require_grads()')
    )
    assert not found.findings and not found.remarks, found
    assert all(p.grad is not None for p in shell.ns["model"].parameters() if p.requires_grad)


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"pixel_values": torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(i)), "labels": torch.tensor(i % 3)}


def vit():
    names = {}
    exec(VIT, names)
    return names["model"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_trainer_that_checkpoints_adapters(tmp_path, reentrant):
    watch, model = Watch(), vit()
    args = settings(tmp_path, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": reentrant})
    transformers.Trainer(model, args, train_dataset=Pictures(), callbacks=[watch]).train()
    assert [one.kind for one in watch.run.findings.findings] == [KIND] * reentrant


@pytest.mark.parametrize("options", [{}, {"bf16": True}, {"gradient_accumulation_steps": 3}], ids=["plain", "bf16", "accumulate"])
def test_a_trainer_of_adapters_has_no_findings(tmp_path, options):
    watch = Watch()
    model = peft.get_peft_model(tiny_gpt2(), peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))
    args = settings(tmp_path, max_grad_norm=1.0, learning_rate=5e-5, **options)
    transformers.Trainer(model, args, train_dataset=Tokens(True), callbacks=[watch]).train()
    assert not watch.run.findings.findings and not watch.run.findings.remarks and not watch.run.trouble
