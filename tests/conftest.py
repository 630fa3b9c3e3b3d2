"""Select the tests for the installed libraries, and check that every test restores the global state.

A test fails if it leaves a mode, an observer or a default changed. It also fails if it starts a process or opens a connection
without the marker `e2e`. Tests in the folder `e2e` get this marker automatically.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has one core; more threads would compete for it
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.testing  # NumPy 2.0 starts lscpu when this is first imported, which no test may do
import pytest


def cupy_or_skip():
    """Return CuPy's `asarray`, or skip the test with the reason why there is no GPU."""
    from gradlab import cuda

    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    import cupy

    return cupy.asarray


def strict_arrays():
    from strict import StrictArray, install

    install()
    return StrictArray


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Return the number of workers for `-n auto`: one per usable core, at most 8 so that their browsers fit in memory."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def pytest_addoption(parser):
    parser.addoption(
        "--comparison-share",
        type=int,
        default=1,
        metavar="N",
        help="run one in N of the tests marked oracle, always the same ones, and all others (default: %(default)s)",
    )


def is_excluded(marker, config):
    """Return True if the marker expression contains `not MARKER` or `not (… MARKER …)`."""
    return re.search(rf"\bnot\s+(\([^()]*\b)?{marker}\b", config.option.markexpr) is not None


def is_selected(marker, config):
    """Return True if the marker expression contains the marker without `not`."""
    return re.search(rf"\b{marker}\b", config.option.markexpr) is not None and not is_excluded(marker, config)


def pytest_ignore_collect(collection_path, config):
    """Skip the import of the folder `e2e` if its tests are excluded."""
    return True if collection_path == E2E and is_excluded("e2e", config) else None


def pytest_collection_modifyitems(items, config):
    """Mark the tests in the folder `e2e`. Deselect tests whose library is not installed and tests outside the sample."""
    share, here, gone = config.getoption("comparison_share"), {}, []
    for library, markers in (("torch", ("oracle", "torch")), ("cupy", ("gpu",))):
        here |= dict.fromkeys(markers, find_spec(library) is not None)
    here["gpu"] |= is_selected("gpu", config)  # each test is then skipped with the reason
    for item in items:
        if E2E in item.path.parents:
            item.add_marker(pytest.mark.e2e)
        marked = {mark.name for mark in item.iter_markers()}
        if not all(here[name] for name in marked & set(here)) or (
            "oracle" in marked and zlib.crc32(item.nodeid.encode()) % share != 0
        ):
            gone.append(item)
    if gone:
        config.hook.pytest_deselected(items=gone)
        gone = set(gone)
        items[:] = [item for item in items if item not in gone]


def pytest_generate_tests(metafunc):
    """Parametrize the fixture `backend` with the available backends."""
    if "backend" in metafunc.fixturenames:
        names = ["numpy", "strict"]
        if find_spec("cupy") is not None or is_selected("gpu", metafunc.config):
            names.append(pytest.param("cupy", marks=pytest.mark.gpu))
        metafunc.parametrize("backend", names, indirect=True)


def pytest_report_header(config):
    """Report the device of tests marked `gpu`, or why there is none, if these tests are selected by name."""
    return device_line() if is_selected("gpu", config) else None


def pytest_terminal_summary(terminalreporter):
    """Report how many of the doctor's applied fixes are code and how many are sentences."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, ())]
    fixes = [value for report in reports for name, value in getattr(report, "user_properties", ()) if name == "fix"]
    if fixes:
        terminalreporter.write_line(
            "Fixes of the doctor: " + ", ".join(f"{fixes.count(kind)} {kind}" for kind in sorted(set(fixes)))
        )


def device_line():
    from gradlab import cuda

    if not cuda.is_available():
        return f"GPU: none ({cuda.why_unavailable()})"
    import cupy

    return f"GPU: {cuda.get_device_name()}, CuPy {cupy.__version__}, CUDA {cupy.cuda.runtime.runtimeGetVersion()}"


E2E = Path(__file__).parent / "e2e"
BACKENDS = {"numpy": lambda: np.asarray, "strict": strict_arrays, "cupy": cupy_or_skip}


@pytest.fixture(autouse=True, scope="module")
def freeze_existing_objects():
    """Exclude the objects that pytest keeps of earlier tests from garbage collection, which many tests call."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def clock():
    """Replace gradlab's clock by one that tests move by hand, so that no time limit is reached by accident."""
    from waiting import HandClock

    from gradlab import clock

    by_hand = HandClock()
    with clock.use_source(by_hand):
        yield by_hand


@pytest.fixture
def backend(request):
    """Return a function that converts NumPy data to an array of the backend under test."""
    return BACKENDS[request.param]()


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.oracle)])
def t(request):
    """Return the library under test: gradlab, and torch under the marker oracle. For tests that both must pass."""
    return pytest.importorskip(request.param)


@pytest.fixture
def sigint():
    """Make SIGINT raise KeyboardInterrupt, here and in child processes. (Background jobs of a shell ignore it by default.)"""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


OUTSIDE_EVENTS = {
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "os.system",
    "socket.bind",
    "socket.connect",
}
outside_events = []  # since the test began


def record_outside_event(event, arguments):
    if event in OUTSIDE_EVENTS and arguments[:1] != ("fc-list",):  # Matplotlib lists the fonts with it, once on a machine
        outside_events.append(f"{event} {arguments}")


sys.addaudithook(record_outside_event)


@pytest.fixture(autouse=True)
def forbid_unmarked_processes(request):
    """Fail if a test without a marker starts a process or opens a connection. (PyTorch may start processes of its own.)"""
    outside_events.clear()
    yield
    allowed = any(request.node.get_closest_marker(name) for name in ("e2e", "torch", "oracle"))
    assert allowed or not outside_events, f"mark this test e2e: {outside_events}"


@pytest.fixture(autouse=True)
def check_global_state():
    from leftovers import find_leftovers, reset_state

    from gradlab.backend.bounds import run_pending_checks
    from gradlab.core.dtypes import default
    from gradlab.core.printing import get_printoptions

    before = default.float, get_printoptions()
    yield
    run_pending_checks()  # report an index out of bounds on a device in the test that caused it
    if find_leftovers():  # an inference tensor in a reference cycle keeps its guard alive
        gc.collect()
    left = find_leftovers()
    left += ["default dtype"] * (default.float != before[0]) + ["print options"] * (get_printoptions() != before[1])
    reset_state()
    default.float = before[0]
    assert not left, f"the test left behind: {', '.join(left)}"
