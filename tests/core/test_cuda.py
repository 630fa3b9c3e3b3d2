"""gradlab.cuda. Tests marked `gpu` need a GPU. The others check its behaviour without one."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab import cuda
from gradlab.backend.bounds import PENDING_CHECKS, debug
from gradlab.nn import functional


@pytest.fixture
def gpu():
    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    yield cuda
    PENDING_CHECKS.clear()
    debug.at_once = False
    cuda.empty_cache()


def test_queries_work_without_a_gpu():
    if cuda.is_available():
        pytest.skip("there is a GPU")
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    assert cuda.memory_allocated() == cuda.memory_reserved() == cuda.max_memory_allocated() == 0
    assert cuda.empty_cache() is None and cuda.manual_seed(0) is None and cuda.manual_seed_all(0) is None
    assert cuda.get_sync_debug_mode() == 0 and not cuda.is_current_stream_capturing()
    x = gl.ones(2)
    assert x.pin_memory() is x and not x.is_pinned()
    with cuda.stream(None):
        pass


@pytest.mark.parametrize(
    "ask",
    [
        cuda.current_device,
        cuda.synchronize,
        cuda.get_device_name,
        cuda.Event,
        cuda.Stream,
        cuda.current_stream,
        cuda.init,
        cuda.reset_peak_memory_stats,
        cuda.mem_get_info,
        lambda: cuda.set_device(0),
        lambda: cuda.device(0).__enter__(),
    ],
)
def test_errors_say_why_there_is_no_gpu(ask):
    if cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match=r"was requested, but no CUDA GPU can be used here \(.+\)\. Use device='cpu'"):
        ask()


def test_unsupported_sync_debug_modes():
    with pytest.raises(NotImplementedError, match=r"set_sync_debug\(True\)"):
        cuda.set_sync_debug_mode("warn")
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        cuda.set_sync_debug_mode("loud")
    cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_devices(gpu):
    assert gpu.device_count() >= 1 and gpu.current_device() == 0 and gpu.get_device_name()
    found = gpu.get_device_properties(0)
    assert found.total_memory > 0 and gpu.get_device_capability() == (found.major, found.minor)
    with gpu.device(0), gpu.device_of(gl.ones(2)), gpu.device_of(gl.ones(2, device="cuda")):
        assert gl.ones(2, device="cuda").device == gl.device("cuda:0")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        gl.ones(2, device=f"cuda:{gpu.device_count()}")


@pytest.mark.gpu
def test_a_gradient_returns_to_the_device_of_its_tensor(gpu):
    x = gl.arange(6.0, requires_grad=True)
    y = (x.cuda() * gl.arange(6.0, device="cuda")).cpu() * gl.tensor(2.0)
    y.sum().backward()
    assert isinstance(x.grad.array, np.ndarray) and x.grad.tolist() == [0, 2, 4, 6, 8, 10]
    z = gl.arange(3.0, device="cuda").requires_grad_()
    (z * gl.tensor(3.0)).sum().backward()
    assert z.grad.is_cuda and z.grad.tolist() == [3, 3, 3]


@pytest.mark.gpu
def test_mixed_devices_raise_pytorchs_error(gpu):
    x, h = gl.ones(2, 2, device="cuda"), gl.zeros(2, 2)
    for run in (
        lambda: x + h,
        lambda: h + x,
        lambda: x @ h,
        lambda: h @ x,
        lambda: gl.cat([x, h]),
        lambda: x < h,
        lambda: h < x,
        lambda: gl.where(h > 0, x, x),
        lambda: x.add_(h),
        lambda: functional.linear(x, h),
        lambda: gl.maximum(h, x),
        lambda: functional.mse_loss(x, h),
        lambda: functional.cross_entropy(x, h[0].long()),
        lambda: gl.equal(x, h),
        lambda: functional.layer_norm(x, (2,), h[0]),
        lambda: gl.add(x, 1, out=h),
    ):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"):
            run()


@pytest.mark.gpu
def test_an_index_out_of_bounds_raises_at_the_next_synchronization(gpu):
    x = gl.ones(3, 2, device="cuda")
    functional.embedding(gl.tensor([0, 3], device="cuda"), x)
    with pytest.raises(IndexError, match=r"index out of range in self(.|\n)*The operation was embedding"):
        gpu.synchronize()
    gpu.set_sync_debug(True)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x[gl.tensor([5], device="cuda")]


@pytest.mark.gpu
def test_events_and_streams(gpu):
    start, end, side = gpu.Event(enable_timing=True), gpu.Event(enable_timing=True), gpu.Stream()
    x = gl.ones(1000, 1000, device="cuda")
    gpu.synchronize()
    start.record()
    for _ in range(20):
        y = x @ x
    end.record()
    end.synchronize()
    assert start.query() and end.query() and start.elapsed_time(end) > 0
    side.wait_stream(gpu.current_stream())
    with gpu.stream(side):
        assert gpu.current_stream() == side != gpu.default_stream()
        z = y + 1
        done = side.record_event()
    assert gpu.current_stream() == gpu.default_stream()
    done.wait()
    assert (z - y).sum().item() == 1e6
    side.synchronize()
    assert side.query()
    with pytest.raises(ValueError, match="enable_timing=True"):
        gpu.Event().elapsed_time(end)


@pytest.mark.gpu
def test_memory_is_counted(gpu):
    gpu.empty_cache()
    before = gpu.memory_allocated()
    gpu.reset_peak_memory_stats()
    x = gl.empty(1 << 20, device="cuda")
    y = gl.empty(1 << 20, device="cuda")
    assert gpu.memory_allocated() == before + (8 << 20) <= gpu.memory_reserved()
    del y
    assert gpu.memory_allocated() == before + (4 << 20) and gpu.max_memory_allocated() == before + (8 << 20)
    gpu.reset_peak_memory_stats()
    assert gpu.max_memory_allocated() == before + (4 << 20)
    free, total = gpu.mem_get_info()
    assert 0 < free < total and x.is_cuda


@pytest.mark.gpu
def test_copies_from_page_locked_memory(gpu):
    x = gl.randn(1000, 100)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned and pinned[10:].is_pinned()
    for there in (
        pinned.to("cuda", non_blocking=True),
        pinned.cuda(non_blocking=True),
        pinned.cuda(),
        x.cuda(non_blocking=True),
        pinned.T.to("cuda", non_blocking=True).T,
    ):
        assert gl.equal(there.cpu(), x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()


@pytest.mark.gpu
def test_too_little_memory(gpu):
    x = gl.ones(1000, device="cuda", requires_grad=True)
    y = x.exp()
    with pytest.raises(
        cuda.OutOfMemoryError,
        match=r"CUDA out of memory\. Tried to allocate (.|\n)*The operation was mul\."
        r"(.|\n)*ExpBackward0, its result \(1000 float32\)",
    ):
        y.expand(1 << 40, 1000) * 2


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(3))
def test_integers_are_added_at_repeated_indices(gpu, seed):
    """CUDA's atomic addition supports neither int64 nor small integers; see backend.accumulate."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 5, 40)
    for dtype in ("int64", "int32", "int16", "int8", "uint8", "float16", "float32", "float64"):
        values = rng.integers(0, 3, 40).astype(dtype)
        expected = np.zeros(5, dtype)
        np.add.at(expected, at, values)
        there = gl.from_numpy(np.zeros(5, dtype)).cuda().scatter_add(0, gl.from_numpy(at).cuda(), gl.from_numpy(values).cuda())
        np.testing.assert_array_equal(there.cpu().numpy(), expected)
