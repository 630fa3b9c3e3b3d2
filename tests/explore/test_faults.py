"""An error in gradlab's callbacks gives one warning and does not stop the program. The tests make each callback fail."""

import inspect
import signal
import warnings

import pytest
from watched import LIBRARIES, data, library, mlp

import gradlab as gl
from gradlab.diagnose.faults import OBSERVER_METHODS, Faults, FaultWarning, Watcher, guarded_method
from gradlab.explore.libraries.backward_calls import GradlabBackwardCalls, PoleObserver
from gradlab.explore.libraries.recording_gradlab import GradlabRecording
from gradlab.explore.trace.event_log import EventLog
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.journal import Journal
from gradlab.explore.trace.loops import Progress
from gradlab.explore.trace.pacing import Pace
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import Training, Trainings
from gradlab.explore.watch.measuring import Measuring
from gradlab.explore.watch.sweep_inspection import WatchInspector


class StruckError(Exception):
    """Raised by a callback."""


def strike(*_, **__):
    raise StruckError("struck")


def train(lib):
    """Train with modules, writes, cuts and an optimizer, so that every callback is called. Return the weights."""
    net, (x, y) = mlp(lib, 6, 4, 1), data(lib)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    scale = lib.ones(1)
    scale.requires_grad_()
    for _ in range(2):
        optimizer.zero_grad()
        shown = (net(x).detach() + 1).sum().item()
        with lib.no_grad():
            scale.mul_(1.5)
            scale.data = scale.data * 1
        h = net(x)
        loss = ((h - y) ** 2 + h * 0)[lib.tensor([0, 1, 2])].sqrt().mean() * scale + shown * 0
        loss.sum().backward()
        optimizer.step()
    return [p.detach().numpy().tolist() for p in net.parameters()]


def faults_of(program):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = program()
    return result, [one for one in warned if issubclass(one.category, FaultWarning)]


def observed_events(kind):
    """Return the callbacks that a class of observers or its base classes define."""
    return sorted(name for name in OBSERVER_METHODS if any(name in vars(one) for one in kind.__mro__[:-3]))


RECORDER_METHODS = ("begin", "on_node", "end", "on_module_enter", "on_module_exit", "on_step", "refuse", "settle", "hold")
RECORDER = [
    *((Recorder, name) for name in RECORDER_METHODS),
    *((Recorder, name) for name in ("losses_of", "leaf", "settle_journal", "names_at", "_finish", "_end_others", "_share")),
    *((EventLog, "add"), (Identities, "key"), (Training, "judge"), (Trainings, "of_nodes"), (Progress, "update")),
    *((Pace, "look_next"), (Journal, "add")),
]


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize(("kind", "name"), RECORDER)
def test_a_failing_recorder_does_not_stop_the_program(lib, kind, name, monkeypatch):
    lib = library(lib)
    plain = train(lib)
    monkeypatch.setattr(kind, name, strike)

    def program():
        recorder = Recorder(dict)
        with recorder:
            weights = train(lib)
        with recorder.faults:
            recorder.settle_journal()
        return weights

    weights, told = faults_of(program)
    assert weights == plain
    assert len(told) == (name != "refuse"), [str(one.message) for one in told]


@pytest.mark.parametrize("name", observed_events(GradlabRecording))
def test_a_failing_observer_does_not_stop_the_program(name, monkeypatch):
    plain = train(gl)
    monkeypatch.setattr(GradlabRecording, name, guarded_method(strike))

    def program():
        with gl.tracing():
            return train(gl)

    weights, told = faults_of(program)
    assert weights == plain
    if name not in (
        "on_join",
        "on_rebase",
        "on_backward_refused",
        "on_cast",
        "sweep_origin",
        "on_create",
    ):  # no such event occurs in the program
        assert len(told) == 1 and "StruckError: struck" in str(told[0].message)


def callbacks_of_torch():
    """Return the methods of `TorchRecording` that torch calls, or that such a method calls directly."""
    return [
        "_record_call",
        "_sweep_arguments",
        "on_module_enter",
        "on_module_exit",
        "before_step",
        "after_step",
        "_rest",
        "_enter_mode",
        "_cut",
        "_keep",
        "_describe_argument",
    ]


@pytest.mark.torch
@pytest.mark.parametrize("name", callbacks_of_torch())
def test_a_failing_callback_of_torch_does_not_stop_the_program(name, monkeypatch):
    torch = pytest.importorskip("torch")
    from leftovers import find_torch_leftovers, reset_torch_state

    from gradlab.explore.libraries.recording_torch import TorchRecording

    plain = train(torch)
    inner = {
        "on_module_enter": "site_of",
        "on_module_exit": "on_module_exit",
        "before_step": "_leave_mode",
        "after_step": "site_of",
    }.get(name, name)
    if inner == "site_of":
        monkeypatch.setattr("gradlab.explore.libraries.recording_torch.site_of", strike)
    else:
        monkeypatch.setattr(Recorder if inner == "on_module_exit" else TorchRecording, inner, strike)

    def program():
        with gl.tracing():
            return train(torch)

    weights, told = faults_of(program)
    assert weights == plain
    assert len(told) == 1 and "StruckError: struck" in str(told[0].message)
    if name == "before_step":
        reset_torch_state()  # the function that removes the mode failed, too
    assert find_torch_leftovers() == []


@pytest.mark.torch
@pytest.mark.parametrize("name", ["form", "shape_of", "values", "summary", "sample", "share", "copy", "slopes", "version"])
def test_a_failing_description_of_a_tensor_does_not_stop_the_program(name, monkeypatch):
    torch = pytest.importorskip("torch")
    from gradlab.explore.libraries.library_torch import Torch

    plain = train(torch)
    monkeypatch.setattr(Torch, name, strike)

    def program():
        recorder = Recorder(dict)
        with recorder:
            return train(torch)

    weights, told = faults_of(program)
    assert weights == plain and len(told) <= 1


# ----------------------------------------------------------------------------------------------------------------- watch
MEASURING = ["before_step", "after_step", "add_output", "before_accumulate", "note_loss", "frame", "add_pause", "begin"]
INSPECTOR = ["wants", "keeps_graph", "inspect", "add_hooks", "inspect_node", "finish", "remove_hooks", "attach", "release"]


@pytest.mark.parametrize("lib", LIBRARIES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Measuring, name) for name in MEASURING),
        *((WatchInspector, name) for name in INSPECTOR),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_failing_watch_does_not_stop_the_training(lib, kind, name, monkeypatch):
    lib = library(lib)

    def training(watched):
        net, (x, y) = mlp(lib, 6, 4, 1, activation="ReLU"), data(lib)
        optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
        watch = gl.watch(net, optimizer) if watched else None
        if watched:
            monkeypatch.setattr(kind, name, strike)
            watch.__enter__()
        for step in range(3):
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean() * (1 if step < 2 else float("inf"))
            loss.backward()
            optimizer.step()
        if watched:
            watch.__exit__(None, None, None)
            monkeypatch.undo()
        return [p.detach().numpy().tolist() for p in net.parameters()], watch

    plain, _ = training(watched=False)
    (weights, watch), told = faults_of(lambda: training(watched=True))
    assert str(weights) == str(plain)
    assert len(told) <= 1
    assert not told or "while it watched the training" in str(told[0].message)
    assert bool(told) == bool(watch.faults.first)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_a_nan_is_examined_inside_anomaly_mode(lib):
    """The mode raises once, in the program's backward, and not in the sweep that searches for the cause."""
    lib = library(lib)

    def program():
        w = lib.tensor([-1.0], requires_grad=True)
        with gl.watch(w) as watch, lib.autograd.detect_anomaly():
            loss = w.sqrt().sum()
            with pytest.raises(RuntimeError, match="returned nan values"):
                loss.backward()
            assert lib.is_anomaly_enabled() and lib.is_anomaly_check_nan_enabled()
        return watch.bad_step

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        kept = program()
    assert kept.sweep is not None and kept.causes
    assert sum("Error detected in SqrtBackward0" in str(one.message) for one in warned) == 1
    assert not any(issubclass(one.category, FaultWarning) for one in warned)


@pytest.mark.parametrize("kind", [GradlabBackwardCalls, PoleObserver])
def test_failing_observers_of_backward_do_not_stop_the_training(kind, monkeypatch):
    plain = train(gl)
    for name in observed_events(kind):
        monkeypatch.setattr(kind, name, guarded_method(strike))
    monkeypatch.setattr(WatchInspector, "keeps_graph", lambda self: False)  # else nodes are not inspected
    net = mlp(gl, 6, 4, 1)

    def program():
        with gl.watch(net):
            return train(gl)

    weights, told = faults_of(program)
    assert weights == plain and len(told) == 1


def test_every_observer_that_changes_no_result_is_a_watcher():
    """Only observers that change results may raise: saved tensors' hooks, inference mode, tangents, anomaly mode."""
    import gradlab.core.tangents
    import gradlab.diagnose.anomaly  # noqa: F401
    from gradlab.core.observers import Observer

    def below(kind):
        return {kind, *(one for child in kind.__subclasses__() for one in below(child))}

    looking = {one.__name__ for one in below(Observer) - below(Watcher)} - {"Observer"}
    assert looking >= {"Inference", "PackingObserver", "Level", "Anomaly"}
    assert {"Sites", "GradlabRecording", "GradlabBackwardCalls", "PoleObserver"} <= {one.__name__ for one in below(Watcher)}


# ----------------------------------------------------------------------------------------------------------- the warning
def test_the_warning_has_the_error_its_place_and_how_to_report_it():
    def fail():
        gl.graph(1)

    with pytest.warns(FaultWarning) as warned, Faults("did something"):
        fail()
    text = str(warned[0].message)
    assert text.startswith("gradlab failed while it did something: TypeError: ")
    assert "explore/" in text and "Please report this as an issue of gradlab" in text and f"gradlab {gl.__version__}" in text
    assert warned[0].filename == __file__


def test_repeated_errors_give_one_warning():
    guarded = Faults("did something").guard(strike)
    result, told = faults_of(lambda: [guarded(), guarded(), guarded()])
    assert result == [None] * 3 and len(told) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_other_exceptions_propagate(error):
    with pytest.raises(error), Faults("did something"):
        raise error


def test_exceptions_of_signal_handlers_propagate():
    """For example, a time limit of the program."""

    def handler(*_):
        raise TimeoutError("the program's own")

    def struck():
        signal.raise_signal(signal.SIGTERM)
        inspect.stack()  # the handler runs at the latest here

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(TimeoutError), Faults("did something"):
            struck()
    finally:
        signal.signal(signal.SIGTERM, before)
