"""Other backward functions of PyTorch under `%%grad`: autograd.backward and .grad, traced models, sparse gradients, NaN."""

import pytest

from gradlab.explore.doctor.session import NOTEBOOK

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

START = "%%grad\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"


def test_autograd_backward_is_recorded(shell):
    """For several tensors with weights, the gradients equal those in .grad."""
    text = START + "x = torch.tensor([1.0, 2.0], requires_grad=True)\ny, z = x**2, x.sum()\n"
    text += "torch.autograd.backward([y, z], [torch.ones(2), torch.tensor(3.0)])"
    ran = shell.ok(text)
    assert "called backward() itself, once" in ran.text and "2 tensors together" in ran.text
    assert shell.ns["x"].grad.tolist() == [2 + 3, 4 + 3]
    assert "[5, 7]" in ran.text


def test_autograd_backward_without_history_is_explained(shell):
    ran = shell.run(START + "x = torch.ones(2, requires_grad=True)\nloss = x.detach().sum()\ntorch.autograd.backward(loss)")
    assert isinstance(ran.error, RuntimeError)
    assert NOTEBOOK.last.findings[0].kind == "detached" and NOTEBOOK.last.findings[0].line == 6


def test_autograd_grad_is_reported_as_not_recorded(shell):
    ran = shell.ok(START + "x = torch.ones(2, requires_grad=True)\ng = torch.autograd.grad(x.sum(), x)\nprint(g)")
    assert "torch.autograd.grad(), whose sweeps are not recorded" in ran.text


def test_jit_trace_of_a_model_is_unchanged(shell):
    """torch.jit.trace compares two recordings, and gradlab adds no operation to either."""
    text = "net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())\nt = torch.jit.trace(net, torch.ones(1, 3))\n"
    text += "t(torch.ones(1, 3)).sum().backward()"
    shell.ok(START + text)
    assert "detach" not in str(shell.ns["t"].graph)


def test_sparse_gradients_are_reported(shell):
    text = "e = nn.Embedding(30, 4, sparse=True)\nopt = torch.optim.SGD(e.parameters(), lr=0.1)\n"
    text += "e(torch.tensor([1, 2])).sum().backward()\nopt.step()"
    ran = shell.ok(START + text)
    assert "e.weight" in ran.text
    assert not NOTEBOOK.last.findings and not NOTEBOOK.last.unseen


def test_the_storage_of_a_recorded_tensor_can_still_be_resized(shell):
    """`numpy()` would prevent it, and sharded training resizes the storages of its weights."""
    shell.ok(START + "x = torch.randn(5, 7, requires_grad=True)\nh = x * 2\nloss = (h**2).sum()\nloss.backward()")
    for name in ("x", "h", "loss"):
        storage = shell.ns[name].untyped_storage()
        assert storage.resizable()
        storage.resize_(0)
    shell.ok("%%grad\nx.grad.sum()")


def test_freed_memory_is_not_read(shell):
    text = "w = torch.randn(5, 7, requires_grad=True)\nh = w + 1\nloss = (h * 3).sum()\n"
    ran = shell.ok(START + text + "h.untyped_storage().resize_(0)\nloss.backward()")
    assert shell.ns["w"].shape == (5, 7) and "loss" in ran.text


LOOP = """w = torch.tensor([4.0], requires_grad=True)
for scale in {scales}:
    w.grad = None
    loss = (w * scale).sqrt().sum()
    loss.backward()
"""


def test_the_first_call_with_a_nan_is_shown(shell):
    ran = shell.ok(START + LOOP.format(scales=[1.0, -1.0, -1.0]))
    assert "this is call 2, the first with a NaN or an infinity" in ran.text
    assert NOTEBOOK.last.findings[0].kind == "nan-born" and NOTEBOOK.last.findings[0].line == 8


def test_a_program_that_recovered_from_a_nan_has_no_finding(shell):
    """The program skips a step, like a scaler whose scale was too large."""
    ran = shell.ok(START + LOOP.format(scales=[1.0, -1.0, 2.0]))
    assert "this is the last call" in ran.text
    assert not NOTEBOOK.last.findings
