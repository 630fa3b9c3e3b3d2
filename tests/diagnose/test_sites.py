"""Test recorded sites of operations, writes and losses, their lines and sub-expressions, and that nothing remains afterwards."""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.core.observers import OBSERVERS, observers
from gradlab.diagnose import sites
from gradlab.diagnose.sites import MAX_LOSSES, MAX_WRITES, Freed, recording, site_here
from gradlab.diagnose.source_locations import clip, location_of, names_in, operands, quote_site, root_name


def ran(source, name="program.py", **space):
    """Run a program, whose lines count from 1, and return its namespace."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = {"gl": gl, "x": gl.ones(3, requires_grad=True), **space}
    exec(compile(source, name, "exec"), space)
    return space


@pytest.fixture
def x():
    return gl.ones(3, requires_grad=True)


def test_nothing_is_recorded_by_default(x):
    y = (x * 2).exp()
    y.detach().add_(1)
    assert not hasattr(y.node, "site") and not hasattr(y.storage, "writes") and not hasattr(y.detach(), "lost")


def test_the_standard_library_in_a_zip_file_is_not_the_users(monkeypatch):
    """Pyodide has a zip file, and no folder for the packages of a user."""
    monkeypatch.setattr(os, "__file__", "/lib/python314.zip/os.py")
    monkeypatch.setattr(sites.installed, "getusersitepackages", lambda: None)
    monkeypatch.setattr(sites, "IS_USER_FILE", {})
    monkeypatch.setattr(sites, "_libraries", sites._libraries.__wrapped__)
    assert not sites.is_user_file("/lib/python314.zip/functools.py")
    assert not sites.is_user_file("/lib/python3.14/site-packages/numpy/__init__.py")
    assert sites.is_user_file("/home/pyodide/program.py")


def test_a_site_is_the_exact_sub_expression():
    with gl.record_sites():
        space = ran("y = (x * 2 + x.exp()).sum()\nz = gl.stack(\n    [x,\n     y * x])\n")
    total = space["y"].node
    (plus,) = total.edges
    times, exp = plus.edges
    assert [location_of(node.site).expression for node in (total, plus, times, exp)] == [
        "(x * 2 + x.exp()).sum()",
        "x * 2 + x.exp()",
        "x * 2",
        "x.exp()",
    ]
    assert {location_of(node.site).line for node in (total, plus, times, exp)} == {1}
    stack = location_of(space["z"].node.site)
    assert (stack.line, stack.end, stack.expression) == (2, 4, "gl.stack( [x, y * x])")
    assert quote_site(times.site) == "program.py line 1, `x * 2` in `y = (x * 2 + x.exp()).sum()`"
    assert quote_site(total.site) == "program.py line 1: `y = (x * 2 + x.exp()).sum()`"


def test_columns_are_bytes():
    with gl.record_sites():
        space = ran("größe, α = 'ü', x * 2 + 1\n")
    assert location_of(space["α"].node.site).expression == "x * 2 + 1"
    assert location_of(space["α"].node.edges[0].site).expression == "x * 2"


def test_operations_inside_gradlab_have_the_line_of_the_caller():
    with gl.record_sites():
        space = ran("model = gl.nn.Sequential(gl.nn.Linear(3, 2), gl.nn.Tanh())\ny = model(x)\n")
    node, lines = space["y"].node, set()
    while node.op is not None:
        lines.add(location_of(node.site).line)
        node = node.edges[0]
    assert lines == {2}


def test_recorded_sweeps_have_the_line_of_their_call(x):
    with gl.record_sites():
        space = ran("y = (x ** 3).sum()\ng, = gl.autograd.grad(y, x, create_graph=True)\n", x=x)
    assert location_of(space["g"].node.site).line == 2


def test_a_site_without_source_names_the_file():
    with gl.record_sites():
        space = {"x": gl.ones(3, requires_grad=True)}
        exec("y = x * 2", space)
    assert quote_site(space["y"].node.site) == "<string> line 1, in <module>"
    assert location_of(None) is None and quote_site(None) == ""


def test_source_that_does_not_parse_is_still_quoted():
    with gl.record_sites():
        space = ran("y = x * 2\n")
    linecache.cache["program.py"] = (0, None, ["y = x * 2\n", "not Python (\n"], "program.py")
    assert quote_site(space["y"].node.site) == "program.py line 1, `x * 2` in `y = x * 2`"


def test_cells_are_called_cells():
    for name, cell in (("<ipython-input-3-0123456789ab>", "cell In[3]"), ("/tmp/ipykernel_4711/1234567.py", "cell")):
        with gl.record_sites():
            space = ran("\ny = x.exp()\n", name)
        assert quote_site(space["y"].node.site) == f"{cell} line 2: `y = x.exp()`"


def test_a_bounded_number_of_writes_is_recorded_with_versions(x):
    y = x * 1
    with gl.record_sites():
        ran("for _ in range(100):\n    y.add_(1)\n", y=y)
        with gl.no_grad():
            x.mul_(2)
    writes = y.storage.writes
    assert len(writes) == MAX_WRITES and writes[-1].version == 100 and writes[0].version == 100 - MAX_WRITES + 1
    assert writes[-1].tick == y.storage.written and not writes[-1].leaf and writes[-1].graded
    assert location_of(writes[-1].site).line == 2
    assert x.storage.writes[0].leaf and not x.storage.writes[0].graded


def test_losses_are_copied_and_not_chained(x):
    with gl.record_sites():
        h = x.detach()
        for _ in range(1000):
            h = h * 0.5 + 1
        assert [loss.how for loss in h.lost] == ["detach"]
        many = sum([(x * i).detach() for i in range(10)])
        assert len(many.lost) == MAX_LOSSES
        with gl.no_grad():
            assert [loss.how for loss in (x * 2).lost] == ["no_grad"]
        with gl.inference_mode():
            assert [loss.how for loss in (x * 2).lost] == ["inference_mode"]
        assert [loss.how for loss in (gl.ones(2) + 1).lost] == ["constant"]
        assert [loss.how for loss in (h + gl.ones(3)).lost] == ["detach"]
        assert [loss.how for loss in ((x > 0) * 2.5).lost] == ["comparison"]  # promoted from bool


def test_a_site_has_the_losses_of_the_operands(x):
    with gl.record_sites():
        y = x * x.detach()
        z = x * gl.ones(3)
    assert [loss.how for loss in y.node.site[2]] == ["detach"] and len(z.node.site) == 2
    assert y.node.site[2][0].node() is x.node


def test_a_sweep_stores_its_site_in_freed_nodes(x):
    with gl.record_sites():
        space = ran("y = x.exp().sum()\ny.backward()\n", x=x)
    (exp,) = space["y"].node.edges
    assert type(exp.saved) is Freed and location_of(exp.saved.site).line == 2
    z = x.exp()
    z.sum().backward()
    assert z.node.saved is None


def test_records_hold_no_tensor(x):
    with gl.record_sites():
        h = x.exp()
        lost = h.detach()
        alive = [weakref.ref(h), weakref.ref(h.node)]
        del h
        assert [ref() for ref in alive] == [None, None]
        assert lost.lost[0].node() is None


def test_nothing_remains_after_the_block(x):
    def block():
        with gl.record_sites():
            y = (x * 2).exp().detach() + 1
            with gl.no_grad():
                x.add_(0)
            y.numpy().sum()
            return (x * 3).sum()

    for _ in range(3):
        block()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        for _ in range(300):
            block()
        gc.collect()
        grown = sum(entry.size_diff for entry in tracemalloc.take_snapshot().compare_to(before, "filename"))
    finally:
        tracemalloc.stop()
    assert grown < 20_000, f"{grown} bytes"


def test_blocks_nest_and_end_after_errors(x):
    with gl.record_sites(), recording() as inner:
        assert observers.active == (inner,)
        with gl.record_sites():
            pass
        assert observers.active == (inner,)
    for error in (KeyboardInterrupt, RuntimeError):
        with pytest.raises(error), gl.record_sites():
            raise error
    assert observers.active == () and inner not in OBSERVERS

    @gl.record_sites()
    def double():
        return x * 2

    assert hasattr(double().node, "site") and hasattr(double().node, "site")
    assert not hasattr((x * 2).node, "site")


def test_recording_is_per_thread(x):
    made = []
    with gl.record_sites():
        thread = threading.Thread(target=lambda: made.append(x * 2))
        thread.start()
        thread.join()
    assert not hasattr(made[0].node, "site")


def test_site_here():
    code, offset = site_here()
    assert code is sys._getframe().f_code and location_of((code, offset)).expression == "site_here()"


def test_names_of_a_sub_expression():
    with gl.record_sites():
        space = ran("w = gl.ones(3)\ny = gl.exp(x * w[0]) - w\nn = -x\n")
    minus = location_of(space["y"].node.site)
    assert names_in(minus) == ["x", "w"]
    with gl.record_sites():
        member = ran("class Model: pass\nm = Model()\nm.w = x\ny = m.w.clone() * gl.relu(x).sum(0)\n", "other.py")
    assert names_in(location_of(member["y"].node.site)) == ["m.w", "x"]
    assert operands(minus, ["input", "other"]) == {"input": "gl.exp(x * w[0])", "other": "w"}
    assert operands(location_of(space["n"].node.site), ["input"]) == {"input": "x"}
    assert root_name(minus.node.left.args[0].right) == "w" and root_name(minus.node) == ""


def test_long_source_is_clipped_around_the_part():
    text = "a" * 100 + "HERE" + "b" * 100
    assert len(clip(text)) == 65 and "HERE" in clip(text, "HERE")
    assert clip("`a`") == "'a'"


def test_recording_does_not_change_values(x):
    def compute():
        y = (x * np.float32(2)).exp() * 1
        y[0] = 1.0
        y.sum().backward()
        return y.tolist(), x.grad.tolist()

    plain = compute()
    x.grad = None
    with gl.record_sites():
        assert compute() == plain
