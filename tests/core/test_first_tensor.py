"""Process-wide settings are changed by gradlab's first tensor, not by the import or the explorers."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import pytest
from threads import no_processes, no_threads

import gradlab as gl
from gradlab.core import first_tensor, numpy_warnings
from gradlab.core.observers import GLOBAL_OBSERVERS, OBSERVERS

PROGRAM = """
import sys, warnings
import IPython.core.interactiveshell
{imports}
asked = []
sys.addaudithook(lambda event, arguments: event == "ctypes.dlsym" and asked.append(arguments[1]))
def ours():  # other libraries set filters of their own when they are imported
    return [one for one in warnings.filters if one[2] is RuntimeWarning or "gradlab" in str(one[3])]
import gradlab as gl
for name in gl._LAZY:
    getattr(gl, name)
shell = IPython.core.interactiveshell.InteractiveShell.instance()
shell.run_line_magic("load_ext", "gradlab")
{work}
assert ours() == [], ours()
assert "mallopt" not in asked
gl.ones(1)
assert len(ours()) == 1
assert asked.count("mallopt") == sys.platform.startswith("linux")
gl.ones(1)
assert asked.count("mallopt") <= 1
"""
TORCH = '''
def run(cell):
    assert shell.run_cell(cell).success
run("""import torch
import gradlab as gl
x = torch.ones(3, requires_grad=True)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)""")
run("%%grad -q\\nloss = model(x).sum() ** 2")
run("%%doctor\\nmodel(x).sum().backward()")
run("%%watch -q\\nfor _ in range(2):\\n    optimizer.zero_grad(); loss = model(x).sum(); loss.backward(); optimizer.step()")
run("%doctor\\nreport = gl.explain((x * x).sum()); repr(report); report.parts()")
run("repr(gl.graph((x * x).sum())); repr(gl.step_through((x * x).sum()))")
run("gl.jacobian(lambda x: x.sin(), x.detach()).dense()")
run("with gl.watch(model, optimizer) as w:\\n    model(x).sum().backward(); optimizer.step()")
run("with gl.tracing() as traced:\\n    model(x).sum().backward()")
'''


@pytest.mark.e2e
@no_processes
@pytest.mark.parametrize(("imports", "work"), [("", ""), pytest.param("import torch", TORCH, marks=pytest.mark.torch)])
def test_settings_do_not_change_before_the_first_tensor(imports, work):
    run = [sys.executable, "-c", PROGRAM.format(imports=imports, work=work)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.fixture
def before_the_first_tensor(monkeypatch):
    """Reset the state to that before the first tensor, and yield a list of the calls that change the allocator."""
    done = []
    monkeypatch.setattr(first_tensor, "keep_freed_memory", lambda: done.append(1))
    with warnings.catch_warnings():
        warnings.resetwarnings()
        monkeypatch.setattr(numpy_warnings, "INITIAL_FILTERS", warnings.filters)
        monkeypatch.setattr(numpy_warnings, "our_filter", [])
        for observers in (GLOBAL_OBSERVERS, OBSERVERS):
            if first_tensor.FIRST_TENSOR not in observers:
                observers.append(first_tensor.FIRST_TENSOR)
        yield done
    for observers in (GLOBAL_OBSERVERS, OBSERVERS):
        if first_tensor.FIRST_TENSOR in observers:
            observers.remove(first_tensor.FIRST_TENSOR)


def test_the_filter_outlives_a_block_that_creates_the_first_tensor(before_the_first_tensor):
    assert numpy_warnings.filter_is_overridden()
    with warnings.catch_warnings():
        gl.ones(1)
        assert not numpy_warnings.filter_is_overridden()
    assert not numpy_warnings.filter_is_overridden() and len(warnings.filters) == 1


@no_threads
def test_threads_may_create_the_first_tensor_at_once(before_the_first_tensor):
    together, errors = threading.Barrier(4), []

    def work():
        try:
            together.wait()
            gl.ones(1)
        except Exception as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and before_the_first_tensor and len(warnings.filters) == 1
    assert first_tensor.FIRST_TENSOR not in [*GLOBAL_OBSERVERS, *OBSERVERS]
