"""Parameters and modules where gradlab differs from PyTorch: a mark instead of a subclass, and files."""

from __future__ import annotations

import io
import pickle

import pytest

import gradlab as gl
from gradlab import nn
from gradlab.core.tensor import Tensor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(gl.arange(6.0).reshape(2, 3))
        self.register_buffer("count", gl.tensor(4))

    def forward(self, x):
        return x @ self.weight.T


def test_a_parameter_is_a_plain_tensor_to_every_operation() -> None:
    p = nn.Parameter(gl.ones(2))
    assert type(p) is Tensor and issubclass(nn.Parameter, Tensor)
    for made in (p + 1, p.data, p.detach(), p.clone(), p[0], p.view(2, 1), gl.ones(2)):
        assert not isinstance(made, nn.Parameter)


@pytest.mark.parametrize("data", [[1.0, 2.0], 3.0])
def test_a_parameter_needs_a_tensor(data) -> None:
    with pytest.raises(TypeError, match=r"Parameter\(\): argument 'data' must be Tensor, not (list|float)"):
        nn.Parameter(data)


def test_saved_parameters_are_loaded_as_parameters() -> None:
    net, file = Net(), io.BytesIO()
    gl.save({"p": net.weight, "frozen": nn.Parameter(gl.ones(1), requires_grad=False), "state": net.state_dict()}, file)
    file.seek(0)
    found = gl.load(file)
    assert repr(found["p"]) == repr(net.weight) and isinstance(found["frozen"], nn.Parameter)
    assert not found["frozen"].requires_grad and not isinstance(found["state"]["weight"], nn.Parameter)
    assert repr(net.load_state_dict(found["state"])) == "<All keys matched successfully>"


def test_a_pickled_module_keeps_parameters_and_buffers() -> None:
    twin = pickle.loads(pickle.dumps(nn.Sequential(Net().eval())))
    assert isinstance(twin[0].weight, nn.Parameter) and not twin[0].training
    assert list(twin.state_dict()) == ["0.weight", "0.count"] and twin[0].count.item() == 4


def test_a_removed_hook_does_not_affect_calls() -> None:
    net, x = Net(), gl.ones(1, 3, requires_grad=True)
    before = net(x)
    with net.register_full_backward_hook(lambda m, of_input, of_output: None):
        assert net(x).grad_fn.name() == "BackwardHookFunctionBackward"
    after = net(x)
    assert after.grad_fn.name() == before.grad_fn.name() and after.tolist() == before.tolist()


def test_backward_hooks_see_second_derivatives() -> None:
    class Cube(nn.Module):
        def forward(self, x):
            return x**3

    cube, seen = Cube(), []
    cube.register_full_backward_hook(lambda m, of_input, of_output: seen.append((of_input[0].item(), of_output[0].item())))
    x = gl.tensor(2.0, requires_grad=True)
    (slope,) = gl.autograd.grad(cube(x), x, create_graph=True)
    assert seen == [(12.0, 1.0)] and gl.autograd.grad(slope, x)[0].item() == 12.0


@pytest.mark.gpu
def test_a_module_moves_to_the_gpu_and_back() -> None:
    pytest.importorskip("cupy")
    net = Net()
    weight = net.weight
    assert net.cuda().weight is weight and weight.is_cuda and net.count.is_cuda and isinstance(weight, nn.Parameter)
    net(gl.ones(1, 3, device="cuda")).sum().backward()
    assert weight.grad.is_cuda and net.cpu().weight.grad.tolist() == [[1.0, 1.0, 1.0]] * 2
