"""Internal errors while a cell runs give one warning; the cell and the notebook continue."""

import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import TIMEOUT_SECONDS

import gradlab as gl
from gradlab.diagnose.faults import FaultWarning
from gradlab.explore.doctor.session import NOTEBOOK
from gradlab.explore.watch.training_finder import TrainingFinder
from gradlab.explore.watch.watching import Watch
from gradlab.notebook import extension, magics, reporting, transform
from gradlab.notebook.live_view import LiveView
from gradlab.notebook.magics import GradMagics

CELL = "a = gl.tensor([2.0], requires_grad=True)\nloss = (a * 3).sum()\nloss.backward()\na.grad.item()"


class StruckError(Exception):
    """The error that a handler raises."""


def ours(text):
    """Return a function with these lines that counts as a function of gradlab."""
    space = {"__name__": "gradlab.struck", "StruckError": StruckError}
    exec(compile(text, str(Path(gl.__file__).parent / "struck.py"), "exec"), space)
    return space["strike"]


strike = ours('def strike(*_, **__):\n    raise StruckError("struck")')


def run_with_faults(program):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = program()
    return result, [str(one.message) for one in warned if issubclass(one.category, FaultWarning)]


PLACES = {  # the function that fails, and the cell's magic
    "before a cell": (GradMagics, "_close_widgets", "%%grad"),
    "a recorder is made": (magics, "recorder_of", "%%grad"),
    "a cell has ended": (GradMagics, "_end_cell", "%%grad"),
    "a report is made": (reporting, "make_report", "%%grad"),
    "findings are added": (GradMagics, "_add_findings", "%%grad"),
    "a report is shown": (GradMagics, "_finish", "%%grad"),
    "findings are shown": (GradMagics, "_show_diagnosis", "%%doctor"),
    "a value is chosen": (GradMagics, "_value_to_examine", "%%doctor"),
    "a watch begins": (TrainingFinder, "open", "%%watch"),
    "a watch ends": (Watch, "end_step", "%%watch"),
    "a line of options is read": (transform, "_rewrite", ""),
    "a cell's ending is read": (transform.Instrument, "_instrument", ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_cell_runs_whatever_internal_function_fails(shell, place, monkeypatch):
    owner, name, magic = PLACES[place]
    monkeypatch.setattr(owner, name, strike)
    ran, faults = run_with_faults(lambda: shell.run(f"{magic}\n{CELL}" if magic else CELL))
    monkeypatch.undo()
    assert ran.success and ran.error is None, ran.stdout
    assert ran.result == 3.0 and shell.ns["loss"].item() == 6
    assert len(faults) == 1 and "StruckError: struck" in faults[0], faults
    shell.run("1 + 1")
    again, faults = run_with_faults(lambda: shell.ok(f"%%grad\n{CELL}"))  # the next cell is recorded
    assert (not faults and "a" in again.text and "‖" in again.text) or again.outputs


def test_a_cell_that_fails_ends_with_its_own_error(shell, monkeypatch):
    monkeypatch.setattr(NOTEBOOK, "look", strike, raising=False)
    ran, faults = run_with_faults(lambda: shell.run("%%grad\na = gl.tensor([2.0], requires_grad=True)\n1 / 0"))
    assert isinstance(ran.error, ZeroDivisionError) and len(faults) == 1


def test_an_error_in_a_hook_of_the_user_is_raised(shell):
    text = "%%grad\na = gl.tensor([2.0], requires_grad=True)\nb = a * 3\nb.register_hook(lambda g: 1 / 0)\nb.sum()"
    ran, faults = run_with_faults(lambda: shell.run(text))
    assert isinstance(ran.error, ZeroDivisionError) and not faults


def test_if_completion_fails_pythons_completion_remains(shell, monkeypatch):
    monkeypatch.setattr(extension, "complete", strike)
    event = SimpleNamespace(line="%%grad --", symbol="--")
    from IPython.core.error import TryNext

    def ask_view():
        with pytest.raises(TryNext):
            extension._completer(shell.ip, event)

    _, faults = run_with_faults(ask_view)
    assert len(faults) == 1


def test_a_message_that_cannot_be_answered_is_a_warning(monkeypatch):
    class View(LiveView):
        _heard = strike

        def __init__(self):
            super().__init__()
            self._listen()

    view = View()
    _, faults = run_with_faults(lambda: view._handle_custom_msg({"ask": "x"}, []))
    assert len(faults) == 1 and "answered a live view" in faults[0]


# ------------------------------------------------------------------------------------------------- cells in several threads
def in_two_threads(shell, first, second):
    """Run `first` in another thread up to its `pause()`, then `second`, then the rest of `first`."""
    paused, resumed, ran = threading.Event(), threading.Event(), []

    def pause():
        paused.set()
        assert resumed.wait(TIMEOUT_SECONDS)

    shell.ns["pause"] = pause
    thread = threading.Thread(target=lambda: ran.append(shell.ip.run_cell(first)))
    thread.start()
    assert paused.wait(TIMEOUT_SECONDS)
    try:
        shell.ok(second)
    finally:
        resumed.set()
        thread.join(TIMEOUT_SECONDS)
    assert ran[0].success


def test_cells_in_two_threads_have_their_own_lines(shell):
    first = "%%grad -q -o one\na = gl.tensor([2.0, 1.0], requires_grad=True)\npause()\n(a * 3).sum().backward()"
    second = "%%grad -q -o two\nc = gl.tensor([1.0], requires_grad=True)\n\n(c * 5).sum().backward()"
    in_two_threads(shell, first, second)
    one, two = shell.ns["one"].trace, shell.ns["two"].trace
    assert [node.name for node in one.nodes if node.kind == "leaf"] == ["a"]
    assert [node.name for node in two.nodes if node.kind == "leaf"] == ["c"]
    for trace, line in ((one, 4), (two, 4)):
        assert {(node.cell.line, node.cell.in_cell) for node in trace.nodes if node.kind == "operation"} == {(line, True)}
        assert trace.source[0].startswith("%%grad -q -o ")
    assert one.source[0] != two.source[0]


def test_cells_in_two_threads_are_watched_each(shell):
    loop = "for step in range(3):\n    {pause}\n    loss = (NAME * NAME).sum()\n    loss.backward()\n"
    shell.ok("u, v = gl.ones(2), gl.ones(3)\nu.requires_grad_(); v.requires_grad_()")
    first = "%%watch -q -o one\n" + loop.format(pause="pause() if step == 2 else None").replace("NAME", "u").replace("loss", "p")
    second = "%%watch -q -o two\n" + loop.format(pause="pass").replace("NAME", "v").replace("loss", "q").replace("step", "k")
    in_two_threads(shell, first, second)
    assert (shell.ns["one"].layers, shell.ns["two"].layers) == (("u",), ("v",))
    assert (shell.ns["one"].steps, shell.ns["two"].steps) == (3, 3)


def test_one_cell_at_a_time_is_examined(monkeypatch):
    """The state for the next cell comes from one cell, not from parts of two."""
    free = []

    def examine(case):
        asking = threading.Thread(target=lambda: free.append(NOTEBOOK.lock.acquire(blocking=False)))
        asking.start()
        asking.join(TIMEOUT_SECONDS)
        return gl.doctor(gl.ones(1, requires_grad=True).sum())

    monkeypatch.setattr("gradlab.explore.doctor.session.examine", examine)
    with gl.tracing() as traced:
        gl.ones(2, requires_grad=True).sum().backward()
        NOTEBOOK.look(traced._recorder, {})
    assert free and not any(free)
