"""What is noted where: sites of operations, writes, losses; looked up as lines and sub-expressions; nothing left afterwards."""

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
from gradlab.diagnose.sites import KEPT, MOST, Freed, recording, site_here
from gradlab.diagnose.source_locations import clipped, location_of, names_in, operands, quoted, root_name


def ran(source, name="program.py", **space):
    """The names that a program binds; its lines count from 1."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = {"gl": gl, "x": gl.ones(3, requires_grad=True), **space}
    exec(compile(source, name, "exec"), space)
    return space


@pytest.fixture
def x():
    return gl.ones(3, requires_grad=True)


def test_nothing_is_noted_unless_asked_for(x):
    y = (x * 2).exp()
    y.detach().add_(1)
    assert not hasattr(y.node, "site") and not hasattr(y.storage, "writes") and not hasattr(y.detach(), "lost")


def test_modules_of_pythons_own_are_nobodys_where_they_lie_in_a_zip_file(monkeypatch):
    """As on Pyodide, where there is no folder for a user's packages either."""
    monkeypatch.setattr(os, "__file__", "/lib/python314.zip/os.py")
    monkeypatch.setattr(sites.installed, "getusersitepackages", lambda: None)
    monkeypatch.setattr(sites, "USERS", {})
    monkeypatch.setattr(sites, "_libraries", sites._libraries.__wrapped__)
    assert not sites.is_users("/lib/python314.zip/functools.py")
    assert not sites.is_users("/lib/python3.14/site-packages/numpy/__init__.py")
    assert sites.is_users("/home/pyodide/program.py")


def test_a_site_is_the_very_sub_expression():
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
    assert quoted(times.site) == "program.py line 1, `x * 2` in `y = (x * 2 + x.exp()).sum()`"
    assert quoted(total.site) == "program.py line 1: `y = (x * 2 + x.exp()).sum()`"


def test_columns_are_bytes():
    with gl.record_sites():
        space = ran("größe, α = 'ü', x * 2 + 1\n")
    assert location_of(space["α"].node.site).expression == "x * 2 + 1"
    assert location_of(space["α"].node.edges[0].site).expression == "x * 2"


def test_what_gradlab_itself_calls_belongs_to_the_caller():
    with gl.record_sites():
        space = ran("model = gl.nn.Sequential(gl.nn.Linear(3, 2), gl.nn.Tanh())\ny = model(x)\n")
    node, lines = space["y"].node, set()
    while node.op is not None:
        lines.add(location_of(node.site).line)
        node = node.edges[0]
    assert lines == {2}


def test_a_sweep_that_is_recorded_has_the_line_of_its_call(x):
    with gl.record_sites():
        space = ran("y = (x ** 3).sum()\ng, = gl.autograd.grad(y, x, create_graph=True)\n", x=x)
    assert location_of(space["g"].node.site).line == 2


def test_a_site_without_source_names_the_file():
    with gl.record_sites():
        space = {"x": gl.ones(3, requires_grad=True)}
        exec("y = x * 2", space)
    assert quoted(space["y"].node.site) == "<string> line 1, in <module>"
    assert location_of(None) is None and quoted(None) == ""


def test_source_that_does_not_parse_is_still_quoted():
    with gl.record_sites():
        space = ran("y = x * 2\n")
    linecache.cache["program.py"] = (0, None, ["y = x * 2\n", "what is (\n"], "program.py")
    assert quoted(space["y"].node.site) == "program.py line 1, `x * 2` in `y = x * 2`"


def test_cells_are_called_cells():
    for name, cell in (("<ipython-input-3-0123456789ab>", "cell In[3]"), ("/tmp/ipykernel_4711/1234567.py", "cell")):
        with gl.record_sites():
            space = ran("\ny = x.exp()\n", name)
        assert quoted(space["y"].node.site) == f"{cell} line 2: `y = x.exp()`"


def test_writes_are_noted_with_their_versions_and_bounded(x):
    y = x * 1
    with gl.record_sites():
        ran("for _ in range(100):\n    y.add_(1)\n", y=y)
        with gl.no_grad():
            x.mul_(2)
    writes = y.storage.writes
    assert len(writes) == KEPT and writes[-1].version == 100 and writes[0].version == 100 - KEPT + 1
    assert writes[-1].tick == y.storage.written and not writes[-1].leaf and writes[-1].graded
    assert location_of(writes[-1].site).line == 2
    assert x.storage.writes[0].leaf and not x.storage.writes[0].graded


def test_losses_are_handed_on_and_never_chained(x):
    with gl.record_sites():
        h = x.detach()
        for _ in range(1000):
            h = h * 0.5 + 1
        assert [loss.how for loss in h.lost] == ["detach"]
        many = sum([(x * i).detach() for i in range(10)])
        assert len(many.lost) == MOST
        with gl.no_grad():
            assert [loss.how for loss in (x * 2).lost] == ["no_grad"]
        with gl.inference_mode():
            assert [loss.how for loss in (x * 2).lost] == ["inference_mode"]
        assert [loss.how for loss in (gl.ones(2) + 1).lost] == ["constant"]
        assert [loss.how for loss in (h + gl.ones(3)).lost] == ["detach"]
        assert [loss.how for loss in ((x > 0) * 2.5).lost] == ["comparison"]  # promoted from bool on the way


def test_an_operation_knows_what_was_cut_off_from_it(x):
    with gl.record_sites():
        y = x * x.detach()
        z = x * gl.ones(3)
    assert [loss.how for loss in y.node.site[2]] == ["detach"] and len(z.node.site) == 2
    assert y.node.site[2][0].node() is x.node


def test_a_sweep_leaves_its_site_in_what_it_frees(x):
    with gl.record_sites():
        space = ran("y = x.exp().sum()\ny.backward()\n", x=x)
    (exp,) = space["y"].node.edges
    assert type(exp.saved) is Freed and location_of(exp.saved.site).line == 2
    z = x.exp()
    z.sum().backward()
    assert z.node.saved is None


def test_no_tensor_is_held(x):
    with gl.record_sites():
        h = x.exp()
        lost = h.detach()
        alive = [weakref.ref(h), weakref.ref(h.node)]
        del h
        assert [ref() for ref in alive] == [None, None]
        assert lost.lost[0].node() is None


def test_nothing_stays_behind_after_the_block(x):
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


def test_blocks_nest_and_end_however_they_end(x):
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
    def computed():
        return x * 2

    assert hasattr(computed().node, "site") and hasattr(computed().node, "site")
    assert not hasattr((x * 2).node, "site")


def test_recording_concerns_its_thread_alone(x):
    made = []
    with gl.record_sites():
        thread = threading.Thread(target=lambda: made.append(x * 2))
        thread.start()
        thread.join()
    assert not hasattr(made[0].node, "site")


def test_the_frame_at_hand():
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
    assert len(clipped(text)) == 65 and "HERE" in clipped(text, "HERE")
    assert clipped("`a`") == "'a'"


def test_values_are_what_they_are_without(x):
    def computed():
        y = (x * np.float32(2)).exp() * 1
        y[0] = 1.0
        y.sum().backward()
        return y.tolist(), x.grad.tolist()

    plain = computed()
    x.grad = None
    with gl.record_sites():
        assert computed() == plain
