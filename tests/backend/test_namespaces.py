"""Devices, and the error if there is no GPU."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import gradlab as gl


def test_devices_are_parsed_and_compared():
    assert repr(gl.device("cuda:1")) == "device(type='cuda', index=1)"
    assert gl.device("cuda", 1) == gl.device("cuda:1") != gl.device("cuda")
    assert str(gl.device("cpu")) == "cpu"
    assert pickle.loads(pickle.dumps(gl.device("cuda:2"))) == gl.device("cuda:2")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda device type"):
        gl.device("tpu")
    with pytest.raises(RuntimeError, match="Invalid device string"):
        gl.device("cuda:one")


def test_a_missing_gpu_raises_a_clear_error():
    if gl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert gl.cuda.device_count() == 0
    for ask in (lambda: gl.ones(2, device="cuda"), lambda: gl.ones(2).cuda(), lambda: gl.ones(2).to("cuda:0")):
        with pytest.raises(RuntimeError, match=r"no CUDA GPU can be used here \(.+\)\. Use device='cpu', or install"):
            ask()
    assert gl.cuda.why_unavailable()


def test_the_cpu_is_always_available():
    x = gl.ones(2, device="cpu")
    assert x.to("cpu") is x
    assert x.cpu() is x
    assert x.device == gl.device("cpu")


@pytest.mark.e2e
def test_cupy_is_not_imported_before_a_gpu_is_requested():
    code = "import sys, gradlab as gl; gl.ones(2).sum(); print('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.gpu
def test_a_graph_on_the_gpu(backend):
    if not gl.cuda.is_available():
        pytest.skip(f"no GPU: {gl.cuda.why_unavailable()}")
    x = gl.randn(4, 4, device="cuda", requires_grad=True)
    y = (x.cpu() @ x.cpu()).sum() + (x @ x).sum().cpu()
    y.backward()
    assert x.grad.is_cuda
