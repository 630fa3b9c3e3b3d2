"""Which tests run where, and for every test: nothing is left behind.

A test that leaks a mode, an observer or a changed default fails, and so does one that starts a process or opens a connection
without the marker `e2e`, which all in the folder `e2e` have.
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

if "PYTEST_XDIST_WORKER" in os.environ:  # a worker has a core: threads of all workers on all cores wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

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


def pytest_addoption(parser):
    parser.addoption(
        "--comparison-share",
        type=int,
        default=1,
        metavar="N",
        help="run one in N of the tests marked oracle, always the same ones, and all others (default: %(default)s)",
    )


def excluded(marker, config):
    """Whether the marker expression has `not MARKER`, or `not (… MARKER …)`."""
    return re.search(rf"\bnot\s+(\([^()]*\b)?{marker}\b", config.option.markexpr) is not None


def asked_for(marker, config):
    """Whether the marker expression names it otherwise."""
    return re.search(rf"\b{marker}\b", config.option.markexpr) is not None and not excluded(marker, config)


def pytest_ignore_collect(collection_path, config):
    """What is excluded as a folder is not even imported."""
    return True if collection_path == E2E and excluded("e2e", config) else None


def pytest_collection_modifyitems(items, config):
    """Mark what lies in the folder `e2e`. Deselect what there is no library for, and what is not in the sample."""
    share, here, gone = config.getoption("comparison_share"), {}, []
    for library, markers in (("torch", ("oracle", "torch")), ("cupy", ("gpu",))):
        here |= dict.fromkeys(markers, find_spec(library) is not None)
    here["gpu"] |= asked_for("gpu", config)  # each says then why it is skipped
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
    """The backends that there are, for the fixture `backend`."""
    if "backend" in metafunc.fixturenames:
        names = ["numpy", "strict"]
        if find_spec("cupy") is not None or asked_for("gpu", metafunc.config):
            names.append(pytest.param("cupy", marks=pytest.mark.gpu))
        metafunc.parametrize("backend", names, indirect=True)


def pytest_report_header(config):
    """The device that the tests marked `gpu` run on, or what stands in their way, where they are asked for by name."""
    return device_line() if asked_for("gpu", config) else None


def pytest_terminal_summary(terminalreporter):
    """How many of the doctor's fixes that were applied are code, and how many are sentences."""
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
BACKENDS = {"numpy": lambda: np.asarray, "strict": strict, "cupy": cupy_or_skip}


@pytest.fixture(autouse=True, scope="module")
def what_came_before_stays():
    """The garbage collector, which many tests call, need not look through what pytest keeps of all tests before."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def clock():
    """gradlab's clock in the tests of a module: no budget runs out, and no limit is reached, unless a test moves it."""
    from waiting import HandClock

    from gradlab import clock

    by_hand = HandClock()
    with clock.reading(by_hand):
        yield by_hand


@pytest.fixture
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


OUTSIDE = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "socket.bind", "socket.connect"}
reached = []  # what was done of these since the test began


def note(event, arguments):
    if event in OUTSIDE:
        reached.append(f"{event} {arguments}")


sys.addaudithook(note)


@pytest.fixture(autouse=True)
def nothing_outside(request):
    """A test that starts a process, or opens a connection, is marked so. (What PyTorch itself starts is its own affair.)"""
    reached.clear()
    yield
    allowed = any(request.node.get_closest_marker(name) for name in ("e2e", "torch", "oracle"))
    assert allowed or not reached, f"mark this test e2e: {reached}"


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
