"""Tensors on several devices, with a strict array type that simulates two GPUs.

These tests cover gradlab's own part: it moves arrays to the right device, never mixes devices itself, brings gradients back, and
raises torch's error if a user mixes them. They do not test CuPy or a GPU; see the tests marked `gpu`.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from strict import COPIED_BYTES, HOST_WAITS, GPUs, Namespace, StrictArray, install_as_gpus

import gradlab as gl
from gradlab.backend import streams
from gradlab.explore.heat import heatmap
from gradlab.explore.pooled_matrix import pool_matrix
from gradlab.explore.trace.recorder import Recorder
from gradlab.nn import functional
from gradlab.utils.checkpoint import checkpoint

MIXED = "Expected all tensors to be on the same device, but found at least two devices, "


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    install_as_gpus(monkeypatch)
    monkeypatch.setattr(streams, "gpu_streams", {})


def test_a_tensor_moves_to_a_gpu_and_back():
    x = gl.arange(3.0, requires_grad=True)
    there = x.to("cuda:1")
    assert there.device == gl.device("cuda:1") and there.get_device() == 1 and there.is_cuda
    assert type(there.array) is StrictArray and there.to("cuda:1") is there
    assert x.cuda().device == gl.device("cuda:0") and x.cuda(1).device == gl.device("cuda:1")
    back = there.cpu()
    assert back.device == gl.device("cpu") and back.tolist() == [0, 1, 2]
    (back * gl.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert type(x.grad.array) is np.ndarray and x.grad.tolist() == [1, 2, 3]


def test_a_gradient_is_on_the_device_of_its_leaf():
    x = gl.arange(3.0, device="cuda").requires_grad_()
    ((x * x).cpu() * 2).sum().backward()
    assert x.grad.device == x.device and x.grad.tolist() == [0, 4, 8]
    row = gl.autograd.grad((x * x).cpu(), x, gl.ones(2, 3), is_grads_batched=True)[0]
    assert row.device == x.device and row.tolist() == [[0, 2, 4], [0, 2, 4]]
    twice = gl.autograd.grad((x**3).cpu().sum(), x, create_graph=True)[0]
    twice.cpu().sum().backward()
    assert x.grad.tolist() == [0, 10, 20]


@pytest.mark.parametrize("name", ["ones", "zeros", "arange", "randn", "eye", "empty"])
def test_factories_use_the_given_device(name):
    assert getattr(gl, name)(3, device="cuda:0").device == gl.device("cuda:0")
    assert getattr(gl, name)(3, device=gl.device("cuda", 1)).device == gl.device("cuda", 1)
    assert getattr(gl, name)(3).device == gl.device("cpu")


def test_a_0d_cpu_tensor_mixes_with_gpu_tensors():
    x, two = gl.ones(3, device="cuda", requires_grad=True), gl.tensor(2.0, requires_grad=True)
    for y in (x * two, two * x, gl.where(x > 0, x * 2, two), x - 1 + two, gl.maximum(x, two)):
        assert y.device == x.device and y.tolist() == [2, 2, 2]
    (x * two).sum().backward()
    assert type(two.grad.array) is np.ndarray and two.grad.item() == 3 and x.grad.device == x.device
    with gl.no_grad():
        assert x.clone().add_(two).tolist() == [3, 3, 3]
        assert (x < two).tolist() == [True] * 3 and (two > x).device == x.device


MIXTURES = {
    "add": (lambda x, h: x + h, "cuda:0 and cpu!"),
    "radd": (lambda x, h: h + x, "cpu and cuda:0!"),
    "matmul": (lambda x, h: x @ h, "cuda:0 and cpu!"),
    "cat": (lambda x, h: gl.cat([x, h]), "cuda:0 and cpu!"),
    "where": (lambda x, h: gl.where(h > 0, x, x), "cpu and cuda:0!"),
    "compare": (lambda x, h: x < h, "cuda:0 and cpu!"),
    "add_": (lambda x, h: x.add_(h), "cuda:0 and cpu!"),
    "linear": (functional.linear, "cuda:0 and cpu!"),
    "masked_fill": (lambda x, h: x.masked_fill(h > 0, 1.0), "cuda:0 and cpu!"),
    "gather": (lambda x, h: x.gather(0, h.long()), "cuda:0 and cpu!"),
    "embedding": (lambda x, h: functional.embedding(h.long(), x), "cuda:0 and cpu!"),
    "cross_entropy": (lambda x, h: functional.cross_entropy(x, h[0].long()), "cuda:0 and cpu!"),
    "mse_loss": (functional.mse_loss, "cuda:0 and cpu!"),
    "out": (lambda x, h: gl.add(x, 1, out=h), "cuda:0 and cpu!"),
    "equal": (gl.equal, "cuda:0 and cpu!"),
    "layer_norm": (lambda x, h: functional.layer_norm(x, (2,), h[0]), "cuda:0 and cpu!"),
    "backward": (lambda x, h: (x.requires_grad_() * 2).backward(h), "cuda:0 and cpu!"),
    "x[i] = many": (lambda x, h: x.__setitem__(h[0].long(), h), "cuda:0 and cpu!"),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_other_mixtures_raise_torchs_error(name):
    run, devices = MIXTURES[name]
    with pytest.raises(RuntimeError, match=MIXED + devices):
        run(gl.ones(2, 2, device="cuda"), gl.zeros(2, 2))


def test_the_error_names_both_tensors_and_a_fix():
    with pytest.raises(
        RuntimeError,
        match=r"add\(\) got one of shape \[3\] on cuda:0 and one of shape \[2, 3\] on cpu\. Move "
        r"one of them: x\.to\('cuda:0'\)\.",
    ):
        gl.ones(3, device="cuda") + gl.ones(2, 3)


def test_host_indices_work_on_a_device():
    x = gl.arange(6.0, device="cuda").reshape(3, 2).requires_grad_()
    for index in ([0, 2], gl.tensor([0, 2]), gl.tensor([True, False, True]), (gl.tensor([0, 2]), slice(None))):
        assert x[index].tolist() == [[0, 1], [4, 5]]
    x[[0, 2]].sum().backward()
    assert x.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    y = x.detach().clone()
    y[[0, 2]] = 7.0
    y[1] = gl.tensor([8.0, 9.0])  # a copy moves to the device of its destination
    y[gl.tensor([0]), 1] = gl.tensor(6.0)
    assert y.tolist() == [[7, 6], [8, 9], [7, 7]]
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        x[[0, 3]]


def test_copies_cross_devices():
    x, h = gl.ones(3, device="cuda"), gl.arange(3.0)
    assert x.copy_(h).tolist() == [0, 1, 2] and x.is_cuda
    assert gl.empty(3).copy_(x).tolist() == [0, 1, 2]
    layer = gl.nn.Linear(2, 1).to("cuda")
    assert {p.device for p in layer.parameters()} == {gl.device("cuda:0")}
    state = gl.nn.Linear(2, 1).state_dict()
    layer.load_state_dict(state)
    assert layer.weight.tolist() == state["weight"].tolist() and layer.weight.is_cuda


def test_pickle_and_deepcopy_keep_the_device():
    x = gl.arange(3.0, device="cuda:1")
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert twin.device == x.device and twin.tolist() == [0, 1, 2]


def test_a_number_is_sent_to_a_gpu_once(monkeypatch):
    """Streams other than the default do not wait for the first transfer, so they get their own copy."""
    sent, array = [], Namespace.array
    monkeypatch.setattr(Namespace, "array", lambda self, value, dtype=None: sent.append(value) or array(self, value, dtype))
    for gpu in (0, 1):
        with gl.cuda.device(gpu):
            x, half = gl.ones(3, device="cuda", requires_grad=True), gl.ones(3, device="cuda", dtype=gl.float64)
            sent.clear()
            for _ in range(3):
                (x * 2.75).sum().backward()
                half * 2.75
            assert sent == [2.75, 2.75] and x.grad.tolist() == [8.25] * 3
            monkeypatch.setattr(GPUs, "stream", 7)
            assert (x * 2.75).tolist() == [2.75] * 3 and sent == [2.75] * 3
            monkeypatch.setattr(GPUs, "stream", 0)


def test_grad_on_another_device_is_refused():
    x = gl.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="assigned grad has data located on a different device"):
        x.grad = gl.ones(3)


def test_numpy_is_refused_and_the_error_names_cpu():
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"):
        gl.ones(3, device="cuda").numpy()


def test_a_tensor_on_a_gpu_that_is_not_current_is_refused():
    x = gl.ones(3, device="cuda:1")
    with pytest.raises(RuntimeError, match=r"on cuda:1, but the current GPU is cuda:0(.|\n)*with gl.cuda.device\(1\)"):
        x + x
    with gl.cuda.device(1):
        assert gl.cuda.current_device() == 1 and (x + x).device == x.device
    assert GPUs.current == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        gl.ones(3, device="cuda:2")


def test_map_location_chooses_the_device_of_loaded_tensors(tmp_path):
    path = tmp_path / "x.pt"
    gl.save({"x": gl.arange(3.0, device="cuda:1")}, path)
    for given, wanted in (
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:0", "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        (gl.device("cuda:1"), "cuda:1"),
    ):
        found = gl.load(path, map_location=given)["x"]
        assert found.device == gl.device(wanted) and found.tolist() == [0, 1, 2]


def test_a_step_of_training_does_not_wait():
    """Forward, backward and update of a classifier do not wait; reading the loss does."""
    gl.manual_seed(0)
    net = gl.nn.Sequential(
        gl.nn.Embedding(7, 4), gl.nn.Flatten(), gl.nn.Linear(12, 8), gl.nn.LayerNorm(8), gl.nn.GELU(), gl.nn.Linear(8, 3)
    ).to("cuda")
    optimizers = [kind(net.parameters(), lr=0.01) for kind in (gl.optim.SGD, gl.optim.Adam, gl.optim.AdamW)]
    x, y = gl.randint(0, 7, (5, 3)).to("cuda"), gl.randint(0, 3, (5,)).to("cuda")
    for optimizer in optimizers:
        HOST_WAITS.clear()
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        assert not HOST_WAITS
    loss.item()
    assert HOST_WAITS


NETS = {
    "linear": (lambda: gl.nn.Sequential(gl.nn.Linear(6, 5), gl.nn.GELU(), gl.nn.Linear(5, 2)), (4, 6)),
    "convolution": (
        lambda: gl.nn.Sequential(
            gl.nn.Conv2d(2, 3, 3, padding=1),
            gl.nn.BatchNorm2d(3),
            gl.nn.ReLU(),
            gl.nn.MaxPool2d(2),
            gl.nn.Conv2d(3, 2, 3),
            gl.nn.AdaptiveAvgPool2d(1),
        ),
        (2, 2, 8, 8),
    ),
    "transposed convolution": (lambda: gl.nn.ConvTranspose2d(2, 3, 3, stride=2), (2, 2, 4, 4)),
    "dropout": (lambda: gl.nn.Sequential(gl.nn.Linear(6, 5), gl.nn.Dropout(0.5)), (4, 6)),
    "normalization": (lambda: gl.nn.Sequential(gl.nn.LayerNorm(6), gl.nn.Linear(6, 4), gl.nn.GroupNorm(2, 4)), (4, 6)),
    "LSTM": (lambda: gl.nn.LSTM(6, 3, 2, batch_first=True), (2, 4, 6)),
    "GRU": (lambda: gl.nn.GRU(6, 3, bidirectional=True), (4, 2, 6)),
    "transformer": (lambda: gl.nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1), (3, 2, 6)),
    "upsampling": (
        lambda: gl.nn.Sequential(gl.nn.Conv2d(2, 2, 1), gl.nn.Upsample(scale_factor=2, mode="bilinear")),
        (1, 2, 3, 3),
    ),
}


def train(name, device, optimizer):
    """Return the parameters of a network after two steps, and the reads that waited for the device."""
    gl.manual_seed(0)
    make, shape = NETS[name]
    net, x = make().to(device), gl.randn(*shape).to(device)
    steps = optimizer(net.parameters(), lr=0.01)
    HOST_WAITS.clear()
    for _ in range(2):
        steps.zero_grad()
        y = net(x)
        y = y[0] if isinstance(y, tuple) else y
        (y**3).mean().backward()
        gl.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        steps.step()
    waited = list(HOST_WAITS)
    return [p.detach().cpu().numpy() for p in net.parameters()], waited


@pytest.mark.parametrize("name", NETS)
def test_training_on_a_gpu_agrees_with_the_cpu_and_does_not_wait(name):
    here, _ = train(name, "cpu", gl.optim.SGD)  # (Adam amplifies a gradient that is 0 except for rounding)
    there, waited = train(name, "cuda", gl.optim.SGD)
    assert not waited
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [kind for kind in dir(gl.optim) if kind[0].isupper() and kind not in ("LBFGS", "Optimizer")])
def test_no_optimizer_waits(name):
    here, _ = train("linear", "cpu", getattr(gl.optim, name))
    there, waited = train("linear", "cuda", getattr(gl.optim, name))
    assert not waited
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def make_report(device):
    rng = np.random.default_rng(0)
    x, w, b = (gl.tensor(rng.normal(size=shape), device=device, requires_grad=True) for shape in ((20, 300), (300, 200), (200,)))
    return gl.explain(((x @ w + b).tanh() ** 2).mean())


def test_a_report_copies_only_what_it_shows():
    here = make_report("cpu")
    HOST_WAITS.clear()
    COPIED_BYTES.clear()
    there = make_report("cuda")
    assert len(HOST_WAITS) <= 14 and max(COPIED_BYTES) < 0.1 * 300 * 200 * 8  # w.grad: 64 cells a side of 300 x 200
    a, b = here._repr_mimebundle_(), there._repr_mimebundle_()
    assert len(HOST_WAITS) <= 14  # displaying reads nothing
    assert a["text/html"].replace(">cpu<", ">cuda:0<") == b["text/html"] and a["image/png"] == b["image/png"]
    assert a["text/plain"].replace("cpu", "cuda:0").split() == b["text/plain"].split()


def test_a_trace_reduces_arrays_on_the_device():
    x = gl.ones(500, 400, device="cuda", requires_grad=True)
    with Recorder(dict) as recorder:
        COPIED_BYTES.clear()
        (x * x).backward(gl.ones(500, 400, device="cuda"))
    trace = recorder.trace()
    assert max(COPIED_BYTES, default=0) <= 4096 * 8, "only sums, extremes and small samples may be copied to the host"
    node = next(node for node in trace.nodes if node.kind == "operation")
    assert node.gradient.norm == pytest.approx(200_000**0.5) and node.value.statistics.maximum == 1
    assert trace.leaves[0].gradient.norm == pytest.approx(2 * 200_000**0.5)


@pytest.mark.parametrize("shape", [(300, 7), (5, 1000), (130, 129), (70,), (3, 4), (0, 5)])
def test_reducing_a_matrix_agrees_on_both_devices(shape):
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    for at, odd in zip(((-1, -1), (0, 0), (1, 1)), (np.nan, np.inf, -np.inf), strict=True):
        if values.size > 100:
            values[at[: values.ndim]] = odd
    a, b = (heatmap(array, limit=64) for array in (values, StrictArray(values)))
    assert a.svg() == b.svg()
    here, there = pool_matrix(values, 64), pool_matrix(StrictArray(values), 64)
    np.testing.assert_array_equal(here.cells, there.cells)
    np.testing.assert_array_equal(here.sample.numbers, there.sample.numbers)
    assert here.truth == there.truth and here.rows.tolist() == there.rows.tolist()


def test_a_gpu_draws_from_the_default_stream_until_it_is_seeded():
    gl.manual_seed(0)
    shared = gl.rand(4, device="cuda").tolist()
    gl.manual_seed(0)
    assert gl.rand(4).tolist() == shared
    gl.manual_seed(0)
    gl.cuda.manual_seed(0)
    own, here = gl.rand(4, device="cuda").tolist(), gl.rand(4).tolist()
    assert here == shared != own  # the CPU's stream has not advanced
    gl.cuda.manual_seed(0)
    assert gl.empty(4, device="cuda").uniform_().tolist() == own
    with gl.cuda.device(1):
        assert gl.rand(4, device="cuda").tolist() == gl.rand(8, generator=gl.Generator().manual_seed(0))[4:].tolist()
    gl.manual_seed(0)
    assert gl.rand(4, device="cuda").tolist() == shared  # it restarts all streams


def test_the_state_of_a_gpus_stream():
    gl.cuda.manual_seed_all(3)
    before = gl.cuda.get_rng_state()
    drawn = functional.dropout(gl.ones(50, device="cuda")).tolist()
    gl.cuda.set_rng_state(before)
    assert functional.dropout(gl.ones(50, device="cuda")).tolist() == drawn
    gl.cuda.set_rng_state(before)
    with pytest.raises(TypeError, match=r"expected a gradlab\.ByteTensor, but got list"):
        gl.cuda.set_rng_state([1, 2])
    kept = gl.cuda.get_rng_state("cuda:1")
    with pytest.raises(RuntimeError, match="input RNG state size to be 3"):
        gl.cuda.set_rng_state(gl.zeros(3, dtype=gl.uint8), "cuda:1")
    assert gl.equal(gl.cuda.get_rng_state("cuda:1"), kept)
    with gl.random.fork_rng():
        gl.randn(3, device="cuda")
        gl.cuda.seed()
    assert functional.dropout(gl.ones(50, device="cuda")).tolist() == drawn


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_repeats_the_draws_on_a_gpu(use_reentrant):
    gl.cuda.manual_seed(1)
    x = gl.ones(60, device="cuda", requires_grad=True)
    y = checkpoint(functional.dropout, x, use_reentrant=use_reentrant)
    gl.rand(3, device="cuda")
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def chain(x):
    return (x[1:] * x[:-1]).tanh()


@pytest.mark.parametrize("method", ["rows", "batched", "columns", "sparse", "auto"])
def test_jacobian_on_a_gpu(method):
    here = gl.jacobian(chain, gl.arange(6.0), method=method)
    there = gl.jacobian(chain, gl.arange(6.0, device="cuda"), method=method)
    np.testing.assert_array_equal(np.asarray(there), np.asarray(here))
    assert there.tensor().is_cuda and there.drawing().svg() == here.drawing().svg()
    v = gl.arange(5.0)
    np.testing.assert_array_equal(np.asarray(v.cuda() @ there), np.asarray(v @ here))


def test_derivatives_on_a_gpu():
    x = gl.arange(1.0, 5.0, device="cuda", dtype=gl.float64).requires_grad_()
    assert gl.autograd.gradcheck(chain, x) and gl.autograd.gradgradcheck(chain, x)
    for found in (
        gl.func.jacrev(chain)(x.detach()),
        gl.func.jacfwd(chain)(x.detach()),
        gl.autograd.functional.jacobian(chain, x.detach()),
    ):
        np.testing.assert_allclose(found.cpu().numpy(), np.asarray(gl.jacobian(chain, x.detach().cpu())), rtol=1e-14)
    cubes = gl.hessian(lambda x: (x**3).sum(), x)
    np.testing.assert_allclose(np.asarray(cubes), np.diag(6 * np.arange(1.0, 5.0)), rtol=1e-14)
