"""Check that an interrupt at any place leaves no mode or observer behind.

Each place where the interpreter handles interrupts is tested in turn, while `tests/test_soak.py` uses random ones. By default
only some evenly spaced places of each situation are tested.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from unittest import mock

import pytest
from interrupting import run_interrupted
from leftovers import find_leftovers, find_torch_leftovers, reset_state, reset_torch_state, script_state
from threads import no_threads
from waiting import TIMEOUT_SECONDS

import gradlab as gl
from gradlab.autograd import forward_ad, graph
from gradlab.core import engine
from gradlab.core.observers import Observer, observing
from gradlab.core.scopes import scope_guard
from gradlab.explore.watch.training_finder import TrainingFinder
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
    def on_sweep_begin(self, sweep):
        pass

    def on_node(self, node, g, cotangents):
        pass

    def on_sweep_end(self, sweep, error):
        pass


def identity(x):
    return x


def make_leaf():
    return gl.tensor([0.5, 1.5], requires_grad=True)


def enter_and_exit(make):
    def work():
        with make():
            pass

    return work


def call_decorated(make):
    def work():
        make()(identity)(1)

    return work


def backward():
    Doubled.apply(make_leaf()).tanh().sum().backward()


def differentiate_twice():
    x = make_leaf()
    (g,) = gl.autograd.grad(Doubled.apply(x).sin().sum(), [x], create_graph=True)
    gl.autograd.grad(g.sum(), [x])


def observe_backward():
    with observing(Onlooker()):
        make_leaf().sin().sum().backward()


def nest_sweeps(inner, levels=3):
    """Run nested sweeps. The innermost calls `inner` and runs in a thread of its own."""
    with gl.enable_grad():
        y = make_leaf() * 2
    y.register_hook(lambda g: nest_sweeps(inner, levels - 1) if levels else inner())
    y.backward(gl.ones(2))


def sweep_in_another_thread():
    with mock.patch.object(engine, "MAX_NESTED_SWEEPS", 1):
        nest_sweeps(lambda: None)


def run_generator():
    @gl.no_grad()
    def steps():
        yield 1
        yield 2

    list(steps())


LAYER = gl.nn.Linear(2, 1)
OPTIMIZER = gl.optim.SGD(LAYER.parameters(), lr=0.0)


def watch_session():
    training = TrainingFinder(dict)
    return scope_guard(training.open, training.close)


def remaining_watch_hooks():
    """Return the tensors and hooks that a watched training left on its model and optimizer."""
    of_tensors = [
        p for p in LAYER.parameters() if p.node.real_node.hooks and (p._backward_hooks or p.node.real_node.hooks.accumulated)
    ]
    return [*of_tensors, *OPTIMIZER._before, *OPTIMIZER._after]


def dual():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(make_leaf(), gl.ones(2))
        forward_ad.unpack_dual(Doubled.apply(x).tanh())


def is_unavoidable(error):
    """Return True if cleanup was impossible: the interrupt came between the call of an `__exit__` and its first line."""
    return error.where[1] == "the beginning of __exit__"


SITUATIONS = {
    "no_grad": enter_and_exit(gl.no_grad),
    "enable_grad": enter_and_exit(gl.enable_grad),
    "inference_mode": enter_and_exit(gl.inference_mode),
    "no_grad as decorator": call_decorated(gl.no_grad),
    "inference_mode as decorator": call_decorated(gl.inference_mode),
    "set_grad_enabled as decorator": call_decorated(lambda: gl.set_grad_enabled(True)),
    "generator": run_generator,
    "record_sites": enter_and_exit(gl.record_sites),
    "watching": enter_and_exit(lambda: observing(Observer())),
    "watching a sweep": enter_and_exit(lambda: observing(Onlooker())),
    "saved_tensors_hooks": enter_and_exit(lambda: graph.saved_tensors_hooks(identity, identity)),
    "save_on_cpu": enter_and_exit(graph.save_on_cpu),
    "disable_saved_tensors_hooks": enter_and_exit(lambda: graph.disable_saved_tensors_hooks("no")),
    "allow_mutation_on_saved_tensors": enter_and_exit(graph.allow_mutation_on_saved_tensors),
    "cudnn.flags": enter_and_exit(gl.backends.cudnn.flags),
    "detect_anomaly": enter_and_exit(gl.autograd.detect_anomaly),
    "dual_level": enter_and_exit(forward_ad.dual_level),
    "backward": backward,
    "grad, twice": differentiate_twice,
    "backward, watched": observe_backward,
    "backward, continued in a thread": sweep_in_another_thread,
    "dual numbers": dual,
    "a checkpoint": lambda: checkpoint(lambda x: x.tanh(), make_leaf(), use_reentrant=False).sum().backward(),
    "a checkpoint, reentrant": lambda: checkpoint(lambda x: x.tanh(), make_leaf(), use_reentrant=True).sum().backward(),
    "func.grad": lambda: gl.func.grad(lambda x: x.sin().sum())(make_leaf()),
    "func.jvp": lambda: gl.func.jvp(lambda x: x.sin(), (make_leaf().detach(),), (gl.ones(2),)),
    "func.vjp": lambda: gl.func.vjp(lambda x: x.sin(), make_leaf())[1](gl.ones(2)),
    "func.hessian": lambda: gl.func.hessian(lambda x: x.sin().sum())(make_leaf().detach()),
    "functional.jvp": lambda: gl.autograd.functional.jvp(lambda x: x.sin(), make_leaf(), gl.ones(2)),
    "functional.hessian": lambda: gl.autograd.functional.hessian(lambda x: x.sin().sum(), make_leaf()),
    "jacobian": lambda: gl.jacobian(lambda x: x.sin(), make_leaf()),
    "step_through": lambda: gl.step_through(make_leaf().sin().sum()),
    "watch": enter_and_exit(lambda: gl.watch(LAYER, OPTIMIZER)),
    "watch, found": enter_and_exit(watch_session),
    "gradcheck": lambda: gl.autograd.gradcheck(lambda x: x.sin(), make_leaf().double()),
}


SAMPLED_PLACES = 60
sampled_or_all_places = pytest.mark.parametrize(
    "most",
    [pytest.param(SAMPLED_PLACES, marks=pytest.mark.slow), pytest.param(sys.maxsize, marks=pytest.mark.exhaustive)],
    ids=["some", "all"],
)


def select_places(places, most):
    """Return the numbers of all places, or of about `most` evenly spaced ones."""
    return range(1, places + 1, max(1, places // most))


@sampled_or_all_places
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_interrupt_leaves_no_global_state(situation, most, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)  # errors in destructors are reported, not raised
    work = SITUATIONS[situation]
    work()  # warm up: generates functions and imports modules
    places, found, threads = run_interrupted(work, 0).seen, [], set(threading.enumerate())
    assert places > 0
    for at in select_places(places, most):
        interrupt = run_interrupted(work, at)
        if find_leftovers() or remaining_watch_hooks():
            gc.collect()  # a traceback in a reference cycle may keep a context manager alive
        if left := [*find_leftovers(), *remaining_watch_hooks(), *(set(threading.enumerate()) - threads)]:
            reset_state()
            if not is_unavoidable(interrupt):
                found.append((*interrupt.where, left))
    assert found == []


@sampled_or_all_places
@pytest.mark.torch
def test_an_interrupt_of_a_watched_cell_leaves_nothing_in_torch(most, monkeypatch):
    """A watch wraps `backward` of PyTorch's tensors too, if PyTorch is imported."""
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    work = SITUATIONS["watch, found"]
    work()
    places, found = run_interrupted(work, 0).seen, []
    for at in select_places(places, 5 * most):
        interrupt = run_interrupted(work, at)
        if find_leftovers() or find_torch_leftovers():
            gc.collect()
        if left := find_torch_leftovers():
            reset_torch_state()
            if not is_unavoidable(interrupt):
                found.append((*interrupt.where, left))
        if find_leftovers():
            reset_state()
    assert found == []


@no_threads
# With MAX_NESTED_SWEEPS = 1, in a second thread and in a third.
@pytest.mark.parametrize(("levels", "interrupts"), [(1, 1), (4, 1), (1, 2)])
def test_an_interrupt_stops_the_sweep_of_another_thread(levels, interrupts, monkeypatch):
    """The waiting thread is interrupted while a hook runs in the other one. It waits for the hook unless interrupted again."""
    at_the_hook, go_on, waits, join = threading.Event(), threading.Event(), [], threading.Thread.join
    leaf, main, before = make_leaf(), threading.current_thread(), set(threading.enumerate())

    def inner():
        with gl.enable_grad():
            y = leaf * 2
        y.register_hook(lambda g: (at_the_hook.set(), go_on.wait(TIMEOUT_SECONDS))[0])
        y.backward(gl.ones(2))

    def join_interrupted(thread, timeout=None):
        if threading.current_thread() is main:
            waits.append(thread)
            if len(waits) <= interrupts:
                assert at_the_hook.wait(TIMEOUT_SECONDS)
                raise KeyboardInterrupt
            go_on.set()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join_interrupted)
    monkeypatch.setattr(engine, "MAX_NESTED_SWEEPS", 1)
    with pytest.raises(KeyboardInterrupt):
        nest_sweeps(inner, levels)
    left = set(threading.enumerate()) - before
    go_on.set()
    for thread in left:
        join(thread, TIMEOUT_SECONDS)
    assert leaf.grad is None, "the sweep continued"
    assert len(left) == interrupts - 1


# ----------------------------------------------------------------------------------------------------- state of the explorers
EXPLORE = os.path.join(os.path.dirname(gl.__file__), "explore", "")
TRACING = tuple(EXPLORE + name for name in ("trace/tracing.py", "trace/reading.py", "libraries/recording_"))


def trace_backward():
    with gl.tracing():
        make_leaf().sin().sum().backward()


def trace_while_paused():
    """The recorder has used its time budget: it pauses, counts one backward call, and resumes."""
    import torch

    model = torch.nn.Linear(1, 1)
    with gl.tracing() as traced:
        traced._recorder.on = False
        for _ in range(2):
            model(torch.ones(1)).sum().backward()


@sampled_or_all_places
@pytest.mark.parametrize("work", [trace_backward, pytest.param(trace_while_paused, marks=pytest.mark.torch)])
def test_an_interrupt_stops_tracing(work, most, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    in_torch = work is trace_while_paused
    work()
    places, found = run_interrupted(work, 0, (*TRACING, contextlib.__file__)).seen, []
    assert places > 100
    for at in select_places(places, most):
        interrupt = run_interrupted(work, at, (*TRACING, contextlib.__file__))
        left = find_leftovers() + (find_torch_leftovers() if in_torch else [])
        if left:
            gc.collect()
            left = find_leftovers() + (find_torch_leftovers() if in_torch else [])
        if left:
            reset_state()
            if in_torch:
                reset_torch_state()
            if not is_unavoidable(interrupt):
                found.append((*interrupt.where, left))
    assert found == []


def prepare_script(tmp_path):
    from gradlab.explore.script.import_hooks import listen_to_imports
    from gradlab.explore.script.program import read_script, script_environment

    (tmp_path / "awaited.py").write_text("x = 1\n")
    (tmp_path / "train.py").write_text("import awaited\n")
    program = read_script(str(tmp_path / "train.py"))

    def run():
        with script_environment(program) as main, listen_to_imports({"awaited"}, lambda: None):
            exec(compile(program.source, program.filename, "exec"), vars(main))

    return run, lambda: None


def prepare_compiler(tmp_path):
    from gradlab.diagnose.faults import Faults
    from gradlab.explore.libraries.compiling_torch import UncompiledCalls

    def run():
        calls = UncompiledCalls(lambda: None, Faults("recorded the program"))
        with scope_guard(calls.open, calls.close):
            pass

    return run, find_torch_leftovers


def prepare_redirection(tmp_path):
    from gradlab.explore.script.redirection import redirect_stdout_to_stderr

    stream, descriptor = sys.stdout, os.dup(1)

    def run():
        with redirect_stdout_to_stderr():
            pass

    def restore():
        left = ["sys.stdout"] * (sys.stdout is not stream) + ["descriptor 1"] * (not os.path.sameopenfile(1, descriptor))
        sys.stdout = stream
        os.dup2(descriptor, 1)
        return left

    return run, restore


@sampled_or_all_places
@pytest.mark.parametrize("made", [prepare_script, prepare_redirection, pytest.param(prepare_compiler, marks=pytest.mark.torch)])
def test_an_interrupt_restores_the_interpreter_state_of_a_script(made, tmp_path, most, monkeypatch):
    if made is prepare_compiler:
        pytest.importorskip("torch._dynamo")
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    run, others = made(tmp_path)
    files = EXPLORE + "script", contextlib.__file__
    before = script_state()
    run()
    places, found = run_interrupted(run, 0, files).seen, []
    assert places > 5 and script_state() == before and not others()
    for at in select_places(places, most):
        interrupt = run_interrupted(run, at, files)
        gc.collect()
        if script_state() != before or others():
            found += [] if is_unavoidable(interrupt) else [(*interrupt.where, others())]
            sys.argv[:], sys.path[:], sys.meta_path[:] = before[:3]
            sys.modules["__main__"] = before[3]
            if others():
                reset_torch_state()
    assert found == []
