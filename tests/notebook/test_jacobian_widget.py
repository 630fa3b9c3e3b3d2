"""The Python part of the Jacobian widget without a front end. Its content is tested with `explore.jacobian.view_model`."""

from __future__ import annotations

import gc
import importlib.util
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.jacobian import jacobian

pytest.importorskip("anywidget")

MATRIX = np.array([[2, 0, 0], [2, 1, 0], [0, 0, 1]], float)


def example():
    """Return z = (x0², x0·x1, x2), whose Jacobian can be computed by hand."""
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    z = gl.stack([x[0] ** 2, x[0] * x[1], x[2]])
    return jacobian(z, x), x, z


@pytest.fixture
def widget():
    made = []

    def make(J):
        one = J.widget()
        one.said = []
        one.send = lambda content, buffers=(): one.said.append((content, [bytes(buffer) for buffer in buffers]))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def ask(widget, what, *buffers, **more):
    """Send one message, and return the answer with its arrays."""
    name = f"t:{len(widget.said)}"
    widget._handle_custom_msg({"ask": what, "id": name, **more}, [memoryview(buffer) for buffer in buffers])
    content, raw = widget.said[-1]
    assert content["answer"] == name and content["ask"] == what
    assert len(content["arrays"]) == len(raw) if "arrays" in content else not raw
    types = {"f8": "<f8", "i4": "<i4", "u1": "u1"}
    arrays = {key: np.frombuffer(data, types[kind]) for (key, kind), data in zip(content["arrays"], raw, strict=True)}
    return {**content, **arrays}


def test_messages_are_answered_with_frames_and_binary_buffers(widget):
    J, *_ = example()
    w = widget(J)
    assert w.about["outputs"] == [{"name": "z", "shape": [3]}] and w.about["inputs"] == [{"name": "x", "shape": [3]}]
    assert (w.about["rows"], w.about["columns"]) == (3, 3) and w.about["plan"] == str(J.plan)
    assert J.sweeps == 0, "creating a widget computes nothing"
    frame = ask(w, "hello")
    assert frame["whole"] and frame["low"].size == 9 and not frame["flags"].any() and frame["code"] == J.by_hand(0)
    frame = ask(w, "step")
    assert (frame["at"], frame["filled"], frame["lines"]) == (0, 1, [[0, 0]])
    np.testing.assert_array_equal(frame["result"], MATRIX[0])
    np.testing.assert_array_equal(frame["low"], MATRIX[0])
    weights = np.array([0, 2], "<i4").tobytes(), np.array([0.5, -1], "<f8").tobytes()
    np.testing.assert_array_equal(ask(w, "mix", *weights)["result"], 0.5 * MATRIX[0] - MATRIX[2])
    ask(w, "axis", by="columns")
    np.testing.assert_array_equal(ask(w, "go", at=1)["result"], MATRIX[:, 1])


def test_an_exception_is_shown_and_answered(widget):
    J, *_ = example()
    w = widget(J)
    ask(w, "step")
    kept = w._lab._jacobian.row
    for problem, text in (
        (RuntimeError("modified by an inplace operation"), "RuntimeError: modified by an inplace operation"),
        (KeyboardInterrupt(), "interrupted"),
    ):

        def fail(i, problem=problem):
            raise problem

        J.row = fail
        assert ask(w, "step")["error"] == text
        J.row = kept
    frame = ask(w, "step")
    assert "error" not in frame and frame["filled"] == 2
    assert "do not fit a Jacobian with 3 rows" in ask(w, "mix", np.array([7], "<i4").tobytes(), np.ones(1).tobytes())["error"]
    assert ask(w, "mix", b"123", b"")["error"] and ask(w, "mix")["error"]
    assert "does not know the request 'burn'" in ask(w, "burn")["error"]
    w._handle_custom_msg("nonsense", [])
    assert w.said[-1][0]["error"]


def test_a_changed_leaf_is_reported(widget):
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    w = widget(jacobian(x * x, x))
    with gl.no_grad():
        x.mul_(2)
    assert "modified by an inplace operation" in ask(w, "step")["error"]
    assert ask(w, "pause")["filled"] == 0


def test_several_inputs_scalars_and_empty(widget):
    x, b = gl.ones(2, dtype=gl.float64, requires_grad=True), gl.tensor(3.0, dtype=gl.float64).requires_grad_()
    loss = (x * b).sum()
    w = widget(jacobian(loss, (x, b)))
    assert w.about["outputs"] == [{"name": "loss", "shape": []}] and w.about["columns"] == 3
    np.testing.assert_array_equal(ask(w, "step")["result"], [3, 3, 2])
    empty = widget(jacobian(x[:0], x))
    for what in ("hello", "step", "fill", "reset"):
        assert "error" not in ask(empty, what)


def test_the_graph_is_released_with_the_view(widget):
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    J = jacobian(lambda u: u * u, x)
    output = weakref.ref(J.runner.graph.outputs[0])
    w = widget(J)
    ask(w, "hello")
    ask(w, "step")
    ask(w, "step")
    del J
    gc.collect()
    assert output() is not None, "the widget owns the graph, so that it can highlight a path when all rows are known"
    ask(w, "gone")
    gc.collect()
    assert output() is None and w.ended
    assert "the graph is gone; run the cell again" in ask(w, "step")["error"]


def test_close_releases_the_graph(widget):
    J, *_ = example()
    w = widget(J)
    held = weakref.ref(J)
    del J
    w.close()
    gc.collect()
    assert held() is None
    w.close()


class Publisher:
    """The messages to a notebook."""

    def __init__(self, monkeypatch):
        import IPython.display

        self.shown, self.updated = [], []
        monkeypatch.setattr(IPython.display, "display", self.display)

    def display(self, data, metadata=None, raw=False, display_id=None):
        assert raw
        self.shown.append(data)
        return self if display_id else None

    def update(self, data, raw=False):
        assert raw
        self.updated.append(data)


def wide():
    """Return z = x[:3] * 2 with 100 elements, which are more entries than a first picture shows."""
    x = gl.ones(100, dtype=gl.float64, requires_grad=True)
    return jacobian(x[:3] * 2, x, method="rows")


def test_the_static_picture_is_a_separate_output_and_is_updated(widget, monkeypatch):
    J = wide()
    w, notebook = widget(J), Publisher(monkeypatch)
    w._ipython_display_()
    static, live = notebook.shown
    assert J.sweeps == 0, "displaying the widget of a large Jacobian computes nothing"
    assert "data-gradlab-twin" in static["text/html"] and "not computed yet" in static["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" not in static
    assert live["application/vnd.jupyter.widget-view+json"]["model_id"] == w.model_id
    assert live["text/plain"].startswith("live view of the Jacobian of "), "the output is not created again"
    ask(w, "step")
    assert "1 of 3 rows known" in notebook.updated[-1]["text/plain"]
    ask(w, "step", swift=True)
    assert len(notebook.updated) == 1, "not updated at every frame while playing"
    ask(w, "pause")
    assert "2 of 3 rows known" in notebook.updated[-1]["text/plain"]
    ask(w, "step", swift=True)
    assert "rows known" not in notebook.updated[-1]["text/plain"]
    w.close()
    type(w)._ipython_display_(w)  # ipywidgets 7 removes the method of the instance
    assert list(notebook.shown[-1]) == ["text/plain"] and len(notebook.shown) == 3, "a closed widget shows a text"
    assert all("data-gradlab-twin" in data["text/html"] for data in notebook.updated)


def test_the_static_picture_of_a_small_jacobian_is_complete_and_the_view_is_not(widget, monkeypatch):
    J, *_ = example()
    w, notebook = widget(J), Publisher(monkeypatch)
    w._ipython_display_()
    text = notebook.shown[0]["text/plain"]
    assert "known" not in text and "computed" not in text
    assert [[float(n) for n in line.split()[1:]] for line in text.splitlines()[2:5]] == MATRIX.tolist()
    assert J.rows_known == 0, "the view is not filled yet"
    frame = ask(w, "step")
    assert frame["at"] == 0 and not frame["done"]
    assert notebook.updated == [], "the picture does not change"


def test_a_small_jacobian_that_cannot_be_computed_is_displayed(widget, monkeypatch):
    J, _, z = example()
    w, notebook = widget(J), Publisher(monkeypatch)
    z.sum().backward()  # frees the graph
    w._ipython_display_()
    assert len(notebook.shown) == 2 and "not computed yet" in notebook.shown[0]["text/plain"]
    assert "error" in ask(w, "step")


def test_the_static_picture_has_the_computed_columns(widget, monkeypatch):
    J = wide()
    w, notebook = widget(J), Publisher(monkeypatch)
    w._ipython_display_()
    ask(w, "axis", by="columns")
    ask(w, "go", at=1)
    text = notebook.updated[-1]["text/plain"]
    assert "1 of 100 columns known" in text and "297 of 300 cells not computed yet" in text and "least 0, greatest 2" in text
    for _ in range(99):
        ask(w, "step")
    text = notebook.updated[-1]["text/plain"]
    assert "computed" not in text and "known" not in text and "least 0, greatest 2" in text
    assert J.rows_known == 0, "columns are not stored as rows"


def test_the_bitmap_of_a_large_jacobian_waits_for_the_live_view(widget, monkeypatch):
    x = gl.ones(1200, requires_grad=True)
    J = jacobian(x * 2, x, method="rows")
    J.row(0)
    w, notebook = widget(J), Publisher(monkeypatch)
    w._ipython_display_()
    assert "<img" in notebook.shown[0]["text/html"] and "image/png" not in notebook.shown[0]
    ask(w, "hello")
    assert len(notebook.updated) == 1 and notebook.updated[0]["text/html"] == notebook.shown[0]["text/html"]
    assert ("image/png" in notebook.updated[0]) == (importlib.util.find_spec("resvg_py") is not None)
    ask(w, "hello")
    assert len(notebook.updated) == 1


def test_state_is_small(widget):
    import json

    x = gl.ones(400, requires_grad=True)
    w = widget(jacobian(x * 2, x))
    state = {name: value for name, value in w.get_state().items() if name not in ("_esm", "_css")}
    assert len(json.dumps(state, default=str)) < 8_000, "numbers are sent on request and not saved"
