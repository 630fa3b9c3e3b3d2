"""For every test: nothing is left behind. A test that leaks a mode, an observer or a changed default fails."""

from __future__ import annotations

import gc
import os
import signal
from importlib.util import find_spec

import numpy as np
import pytest


def cupy_or_skip():
    """CuPy's `asarray`, or a skip that says why there is no GPU."""
    from gradlab import cuda

    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    import cupy

    return cupy.asarray


def strict():
    from strict import StrictArray, install

    install()
    return StrictArray


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """`-n auto`: a worker for each core that the process may use, but not so many that their browsers fill the memory."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def pytest_collection_modifyitems(items):
    """The marker oracle skips where there is no PyTorch."""
    if find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("oracle") is not None:
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


def pytest_report_header(config):
    """The device that the tests marked `gpu` run on, or what stands in their way, where they are asked for by name."""
    return device_line() if "gpu" in config.getoption("markexpr") and "not gpu" not in config.getoption("markexpr") else None


def device_line():
    from gradlab import cuda

    if not cuda.is_available():
        return f"GPU: none ({cuda.why_unavailable()})"
    import cupy

    return f"GPU: {cuda.get_device_name()}, CuPy {cupy.__version__}, CUDA {cupy.cuda.runtime.runtimeGetVersion()}"


BACKENDS = {"numpy": lambda: np.asarray, "strict": strict, "cupy": cupy_or_skip}


@pytest.fixture(autouse=True, scope="module")
def what_came_before_stays():
    """The garbage collector, which many tests call, need not look through what pytest keeps of all tests before."""
    gc.freeze()


@pytest.fixture(params=["numpy", "strict", pytest.param("cupy", marks=pytest.mark.gpu)])
def backend(request):
    """Makes an array of the backend under test out of NumPy data."""
    return BACKENDS[request.param]()


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.oracle)])
def t(request):
    """The library, for tests of torch's contract, which are written once: gradlab always, torch under the marker oracle."""
    return pytest.importorskip(request.param)


@pytest.fixture
def sigint():
    """SIGINT raises KeyboardInterrupt, here and in child processes. (A job that a shell starts in the background ignores it.)"""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    from leftovers import clear, left_behind

    from gradlab.backend.bounds import settle
    from gradlab.core.dtypes import default
    from gradlab.core.printing import get_printoptions

    before = default.float, get_printoptions()
    yield
    settle()  # an index out of bounds on a device belongs to its own test
    if left_behind():  # an inference tensor in a cycle keeps its guard there
        gc.collect()
    left = left_behind()
    left += ["default dtype"] * (default.float != before[0]) + ["print options"] * (get_printoptions() != before[1])
    clear()
    default.float = before[0]
    assert not left, f"the test left behind: {', '.join(left)}"
