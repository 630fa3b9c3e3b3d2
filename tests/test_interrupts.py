"""An interrupt leaves no mode or observer behind, wherever it strikes.

One comes at each place in turn where the interpreter looks for one, so what `tests/test_soak.py` leaves to chance is complete
here. The gate takes some places of each piece of work, which lie as far from one another.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from unittest import mock

import pytest
from interrupting import interrupted
from leftovers import clear, clear_torch, left_behind, left_in_torch, surroundings
from threads import no_threads
from waiting import LONG

import gradlab as gl
from gradlab.autograd import forward_ad, graph
from gradlab.core import engine
from gradlab.core.observers import Observer, observing
from gradlab.core.scopes import scoped
from gradlab.explore.watch.finding import Found
from gradlab.utils.checkpoint import checkpoint


class Doubled(gl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 + ctx.saved_tensors[0] * 0

    @staticmethod
    def jvp(ctx, t):
        return t * 2


class Onlooker(Observer):
    def begin(self, sweep):
        pass

    def visit(self, node, g, cotangents):
        pass

    def end(self, sweep, error):
        pass


def the_same(x):
    return x


def x_of():
    return gl.tensor([0.5, 1.5], requires_grad=True)


def entered(make):
    def work():
        with make():
            pass

    return work


def decorated(make):
    def work():
        make()(the_same)(1)

    return work


def backward():
    Doubled.apply(x_of()).tanh().sum().backward()


def twice():
    x = x_of()
    (g,) = gl.autograd.grad(Doubled.apply(x).sin().sum(), [x], create_graph=True)
    gl.autograd.grad(g.sum(), [x])


def seen():
    with observing(Onlooker()):
        x_of().sin().sum().backward()


def deep(inner, levels=3):
    """Sweeps inside of sweeps, the last of which calls `inner` and has a thread of its own for its stack."""
    with gl.enable_grad():
        y = x_of() * 2
    y.register_hook(lambda g: deep(inner, levels - 1) if levels else inner())
    y.backward(gl.ones(2))


def continued_in_a_thread():
    with mock.patch.object(engine, "DEEP", 1):
        deep(lambda: None)


def generated():
    @gl.no_grad()
    def steps():
        yield 1
        yield 2

    list(steps())


LAYER = gl.nn.Linear(2, 1)
OPTIMIZER = gl.optim.SGD(LAYER.parameters(), lr=0.0)


def found():
    training = Found(dict)
    return scoped(training.open, training.close)


def hooks_of_a_watch():
    """What is left of a watched training on its model and its optimizer."""
    of_tensors = [p for p in LAYER.parameters() if p.node.proper.hooks and (p._backward_hooks or p.node.proper.hooks.accumulated)]
    return [*of_tensors, *OPTIMIZER._before, *OPTIMIZER._after]


def dual():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(x_of(), gl.ones(2))
        forward_ad.unpack_dual(Doubled.apply(x).tanh())


def accepted(error):
    """Whether nobody can help it: an `__exit__` in Python has been called and has not begun."""
    return error.where[1] == "the beginning of __exit__"


SITUATIONS = {
    "no_grad": entered(gl.no_grad),
    "enable_grad": entered(gl.enable_grad),
    "inference_mode": entered(gl.inference_mode),
    "no_grad as decorator": decorated(gl.no_grad),
    "inference_mode as decorator": decorated(gl.inference_mode),
    "set_grad_enabled as decorator": decorated(lambda: gl.set_grad_enabled(True)),
    "generator": generated,
    "record_sites": entered(gl.record_sites),
    "watching": entered(lambda: observing(Observer())),
    "watching a sweep": entered(lambda: observing(Onlooker())),
    "saved_tensors_hooks": entered(lambda: graph.saved_tensors_hooks(the_same, the_same)),
    "save_on_cpu": entered(graph.save_on_cpu),
    "disable_saved_tensors_hooks": entered(lambda: graph.disable_saved_tensors_hooks("no")),
    "allow_mutation_on_saved_tensors": entered(graph.allow_mutation_on_saved_tensors),
    "cudnn.flags": entered(gl.backends.cudnn.flags),
    "detect_anomaly": entered(gl.autograd.detect_anomaly),
    "dual_level": entered(forward_ad.dual_level),
    "backward": backward,
    "grad, twice": twice,
    "backward, watched": seen,
    "backward, continued in a thread": continued_in_a_thread,
    "dual numbers": dual,
    "a checkpoint": lambda: checkpoint(lambda x: x.tanh(), x_of(), use_reentrant=False).sum().backward(),
    "a checkpoint, reentrant": lambda: checkpoint(lambda x: x.tanh(), x_of(), use_reentrant=True).sum().backward(),
    "func.grad": lambda: gl.func.grad(lambda x: x.sin().sum())(x_of()),
    "func.jvp": lambda: gl.func.jvp(lambda x: x.sin(), (x_of().detach(),), (gl.ones(2),)),
    "func.vjp": lambda: gl.func.vjp(lambda x: x.sin(), x_of())[1](gl.ones(2)),
    "func.hessian": lambda: gl.func.hessian(lambda x: x.sin().sum())(x_of().detach()),
    "functional.jvp": lambda: gl.autograd.functional.jvp(lambda x: x.sin(), x_of(), gl.ones(2)),
    "functional.hessian": lambda: gl.autograd.functional.hessian(lambda x: x.sin().sum(), x_of()),
    "jacobian": lambda: gl.jacobian(lambda x: x.sin(), x_of()),
    "step_through": lambda: gl.step_through(x_of().sin().sum()),
    "watch": entered(lambda: gl.watch(LAYER, OPTIMIZER)),
    "watch, found": entered(found),
    "gradcheck": lambda: gl.autograd.gradcheck(lambda x: x.sin(), x_of().double()),
}


SOME = 60
every_place_or_some = pytest.mark.parametrize(
    "most",
    [pytest.param(SOME, marks=pytest.mark.slow), pytest.param(sys.maxsize, marks=pytest.mark.exhaustive)],
    ids=["some", "all"],
)


def spread(places, most):
    """The numbers of all places, or of about `most` of them."""
    return range(1, places + 1, max(1, places // most))


@every_place_or_some
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_interrupt_leaves_nothing_behind(situation, most, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)  # in a destructor it is reported, not raised
    work = SITUATIONS[situation]
    work()  # functions are generated, modules imported: once
    places, found, threads = interrupted(work, 0).seen, [], set(threading.enumerate())
    assert places > 0
    for at in spread(places, most):
        struck = interrupted(work, at)
        if left_behind() or hooks_of_a_watch():
            gc.collect()  # a traceback in a cycle holds what was not left
        if left := [*left_behind(), *hooks_of_a_watch(), *(set(threading.enumerate()) - threads)]:
            clear()
            if not accepted(struck):
                found.append((*struck.where, left))
    assert found == []


@no_threads
@pytest.mark.parametrize(("levels", "interrupts"), [(1, 1), (4, 1), (1, 2)])  # with DEEP = 1, in a second thread and in a third
def test_an_interrupt_stops_the_sweep_of_another_thread(levels, interrupts, monkeypatch):
    """The thread that waits is interrupted while a hook runs in the other. It waits for the hook unless interrupted again."""
    at_the_hook, go_on, waits, join = threading.Event(), threading.Event(), [], threading.Thread.join
    leaf, main, before = x_of(), threading.current_thread(), set(threading.enumerate())

    def inner():
        with gl.enable_grad():
            y = leaf * 2
        y.register_hook(lambda g: (at_the_hook.set(), go_on.wait(LONG))[0])
        y.backward(gl.ones(2))

    def join_interrupted(thread, timeout=None):
        if threading.current_thread() is main:
            waits.append(thread)
            if len(waits) <= interrupts:
                assert at_the_hook.wait(LONG)
                raise KeyboardInterrupt
            go_on.set()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join_interrupted)
    monkeypatch.setattr(engine, "DEEP", 1)
    with pytest.raises(KeyboardInterrupt):
        deep(inner, levels)
    left = set(threading.enumerate()) - before
    go_on.set()
    for thread in left:
        join(thread, LONG)
    assert leaf.grad is None, "it went on"
    assert len(left) == interrupts - 1


# ------------------------------------------------------------------------------------------------------ what explorers set
EXPLORE = os.path.join(os.path.dirname(gl.__file__), "explore", "")
TRACING = tuple(EXPLORE + name for name in ("trace/tracing.py", "trace/reading.py", "libraries/recording_"))


def explored():
    with gl.tracing():
        x_of().sin().sum().backward()


def explored_asleep():
    """The recorder has had its share: it sleeps, counts one backward, and wakes up."""
    import torch

    model = torch.nn.Linear(1, 1)
    with gl.tracing() as traced:
        traced._recorder.on = False
        for _ in range(2):
            model(torch.ones(1)).sum().backward()


@every_place_or_some
@pytest.mark.parametrize("work", [explored, pytest.param(explored_asleep, marks=pytest.mark.torch)])
def test_an_interrupt_leaves_no_recording_behind(work, most, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    in_torch = work is explored_asleep
    work()
    places, found = interrupted(work, 0, (*TRACING, contextlib.__file__)).seen, []
    assert places > 100
    for at in spread(places, most):
        struck = interrupted(work, at, (*TRACING, contextlib.__file__))
        left = left_behind() + (left_in_torch() if in_torch else [])
        if left:
            gc.collect()
            left = left_behind() + (left_in_torch() if in_torch else [])
        if left:
            clear()
            if in_torch:
                clear_torch()
            if not accepted(struck):
                found.append((*struck.where, left))
    assert found == []


def of_a_script(tmp_path):
    from gradlab.explore.script.import_hooks import arrivals
    from gradlab.explore.script.program import running, script

    (tmp_path / "awaited.py").write_text("x = 1\n")
    (tmp_path / "train.py").write_text("import awaited\n")
    program = script(str(tmp_path / "train.py"))

    def run():
        with running(program) as main, arrivals({"awaited"}, lambda: None):
            exec(compile(program.source, program.filename, "exec"), vars(main))

    return run, lambda: None


def of_a_compiler(tmp_path):
    from gradlab.explore.script.eager import eagerly

    def run():
        with eagerly():
            pass

    return run, left_in_torch


@every_place_or_some
@pytest.mark.parametrize("made", [of_a_script, pytest.param(of_a_compiler, marks=pytest.mark.torch)])
def test_an_interrupt_leaves_a_scripts_surroundings_as_they_were(made, tmp_path, most, monkeypatch):
    if made is of_a_compiler:
        pytest.importorskip("torch._dynamo")
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    run, others = made(tmp_path)
    files = EXPLORE + "script", contextlib.__file__
    before = surroundings()
    run()
    places, found = interrupted(run, 0, files).seen, []
    assert places > 5 and surroundings() == before and not others()
    for at in spread(places, most):
        struck = interrupted(run, at, files)
        gc.collect()
        if surroundings() != before or others():
            found += [] if accepted(struck) else [(*struck.where, others())]
            sys.argv[:], sys.path[:], sys.meta_path[:] = before[:3]
            sys.modules["__main__"] = before[3]
            if others():
                clear_torch()
    assert found == []
