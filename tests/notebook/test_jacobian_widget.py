"""The Python half of the Jacobian widget, without a front end."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.jacobian import jacobian

pytest.importorskip("anywidget")


def example():
    """z = (x0², x0·x1, x2): a Jacobian that can be worked by hand."""
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    z = gl.stack([x[0] ** 2, x[0] * x[1], x[2]])
    return jacobian(z, x), np.array([[2, 0, 0], [2, 1, 0], [0, 0, 1]], float), x, z


@pytest.fixture
def widget():
    made = []

    def make(J):
        made.append(J.widget())
        return made[-1]

    yield make
    for one in made:
        one.close()


def ask(widget, what, *buffers):
    ask.count = getattr(ask, "count", 0) + 1
    widget._handle_custom_msg({"ask": what, "id": f"t:{ask.count}"}, [memoryview(buffer) for buffer in buffers])
    assert widget.answered == f"t:{ask.count}"


def mix(widget, weights):
    ask(widget, "mix", np.array(list(weights), "<i4").tobytes(), np.array(list(weights.values()), "<f8").tobytes())


def doubles(data):
    return np.frombuffer(data, "<f8")


def test_nothing_is_computed_until_a_step(widget):
    J, matrix, *_ = example()
    w = widget(J)
    assert J.rows_known == 0 and w.row == -1 and w.filled == 0 and w.result == b"" and w.code == J.by_hand(0)
    assert w.about["output"] == {"name": "z", "shape": [3]} and w.about["inputs"] == [{"name": "x", "shape": [3]}]
    for i in range(3):
        ask(w, "step")
        assert (w.row, w.filled, J.rows_known, w.sweeps, w.error) == (i, i + 1, i + 1, 1, "")
        np.testing.assert_array_equal(doubles(w.cells).reshape(3, 3), np.where(np.arange(3)[:, None] <= i, matrix, 0))
        assert list(w.shown) == [1] * (i + 1) + [0] * (2 - i)
        np.testing.assert_array_equal(doubles(w.result), matrix[i])
        assert np.frombuffer(w.picked, "<i4").tolist() == [i] and doubles(w.weights).tolist() == [1.0]
        assert w.code == J.by_hand(i)
    assert w.extent == [0.0, 2.0]
    ask(w, "step")
    assert (w.row, w.filled) == (2, 3)
    ask(w, "reset")
    assert (w.row, w.filled, w.result, w.picked, w.code) == (-1, 0, b"", b"", J.by_hand(0)) and not any(w.shown)
    ask(w, "play")
    assert (w.row, w.sweeps) == (0, 0), "the row is known: no backward"


def test_the_code_in_view_does_the_same(widget):
    J, matrix, x, z = example()
    w = widget(J)
    for wish in ("step", "step", {0: 0.5, 2: -0.25}):
        ask(w, wish) if isinstance(wish, str) else mix(w, wish)
        namespace = {"gl": gl, "x": x, "z": z}
        exec(w.code, namespace)
        np.testing.assert_allclose(namespace["row"].numpy(), doubles(w.result))


def test_sliders_give_the_mix_of_rows_by_one_sweep(widget):
    J, matrix, x, _ = example()
    w = widget(J)
    mix(w, {0: 0.5, 1: -1.0})
    np.testing.assert_allclose(doubles(w.result), 0.5 * matrix[0] - matrix[1])
    assert (w.row, w.filled, w.sweeps, J.rows_known) == (-1, 0, 1, 0) and x.grad is None
    mix(w, {})
    np.testing.assert_array_equal(doubles(w.result), [0, 0, 0])
    np.asarray(J)
    mix(w, {2: 1.0})
    assert w.sweeps == 0 and doubles(w.result).tolist() == [0, 0, 1]


def test_an_exception_is_shown_and_answered(widget):
    J, *_ = example()
    w = widget(J)
    ask(w, "step")
    for problem, text in (
        (RuntimeError("modified by an inplace operation"), "RuntimeError: modified by an inplace operation"),
        (KeyboardInterrupt(), "interrupted"),
    ):

        def fail(weights, problem=problem):
            raise problem

        J._sweep = fail
        ask(w, "step")
        assert w.error == text and w.filled == 1
    del J._sweep
    ask(w, "step")
    assert w.error == "" and w.filled == 2
    mix(w, {7: 1.0})
    assert "do not fit a Jacobian with 3 rows" in w.error
    ask(w, "mix", b"123", b"")
    assert w.error
    ask(w, "burn")
    assert "does not know the request 'burn'" in w.error
    w._handle_custom_msg("nonsense", [])
    assert w.error


def test_a_leaf_changed_since_is_said_in_words(widget):
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    w = widget(jacobian(x * x, x))
    with gl.no_grad():
        x.mul_(2)
    ask(w, "step")
    assert "modified by an inplace operation" in w.error and w.filled == 0


def test_a_large_matrix_travels_pooled(widget):
    x = gl.ones(150, dtype=gl.float64, requires_grad=True)
    scale = np.linspace(-1, 1, 200)
    J = jacobian(gl.tensor(scale, dtype=gl.float64) * gl.cat([x, x[:50]]), x)
    w = widget(J)
    for _ in range(4):
        ask(w, "step")
    cells = doubles(w.cells).reshape(64, 64)
    assert len(w.shown) == 64 and list(w.shown[:3]) == [1, 1, 0]
    assert cells[0, 0] == scale[0], "rows 0 to 2 share a bin: the largest magnitude stays"
    assert len(doubles(w.result)) == 64 and len(doubles(w.strip)) == 64
    assert w.extent == [-1.0, 0.0]
    assert all(len(getattr(w, name)) <= 64 * 64 * 8 for name in ("cells", "result", "strip", "shown"))


def test_blocks_and_scalars_and_empty(widget):
    x, b = gl.ones(2, dtype=gl.float64, requires_grad=True), gl.tensor(3.0, dtype=gl.float64).requires_grad_()
    loss = (x * b).sum()
    w = widget(jacobian(loss, (x, b)))
    assert w.about["blocks"] == [0, 2] and w.about["output"]["shape"] == []
    ask(w, "step")
    np.testing.assert_array_equal(doubles(w.result), [3, 3, 2])
    mix(w, {0: 0.5})
    np.testing.assert_array_equal(doubles(w.result), [1.5, 1.5, 1])
    empty = widget(jacobian(x[:0], x))
    ask(empty, "step")
    assert empty.filled == 0 and empty.error == ""


def test_the_graph_goes_with_the_view(widget):
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    J = jacobian(lambda u: u * u, x)
    output = weakref.ref(J._graph[0])
    w = widget(J)
    ask(w, "here")
    ask(w, "step")
    del J
    gc.collect()
    assert output() is not None, "the widget owns the graph"
    ask(w, "gone")
    gc.collect()
    assert output() is None and w.ended
    ask(w, "step")
    assert "the graph is gone; run the cell again" in w.error


def test_close_lets_the_graph_go(widget):
    J, *_ = example()
    w = widget(J)
    held = weakref.ref(J)
    del J
    w.close()
    gc.collect()
    assert held() is None
    w.close()


class Publisher:
    """What a notebook would be sent."""

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


def test_the_static_picture_is_an_output_of_its_own_and_kept_up_to_date(widget, monkeypatch):
    J, *_ = example()
    w, notebook = widget(J), Publisher(monkeypatch)
    w._ipython_display_()
    static, live = notebook.shown
    assert J.rows_known == 0, "displaying the widget computes nothing"
    assert (
        "data-gradlab-twin" in static["text/html"]
        and "<img " in static["text/html"]
        and "0 of 3 rows known" in static["text/plain"]
    )
    assert "application/vnd.jupyter.widget-view+json" not in static
    assert live["application/vnd.jupyter.widget-view+json"]["model_id"] == w.model_id
    assert live["text/plain"].startswith("live view of <Jacobian of z (3) by x (3)")
    ask(w, "step")
    assert "1 of 3 rows known" in notebook.updated[-1]["text/plain"]
    ask(w, "play")
    assert len(notebook.updated) == 1, "not at every frame while playing"
    ask(w, "pause")
    assert "2 of 3 rows known" in notebook.updated[-1]["text/plain"]
    ask(w, "play")
    assert "rows known" not in notebook.updated[-1]["text/plain"]
    w.close()
    type(w)._ipython_display_(w)                                  # ipywidgets 7 takes the instance's own away
    assert list(notebook.shown[-1]) == ["text/plain"] and len(notebook.shown) == 3, "a closed widget shows a text"
    assert all("data-gradlab-twin" in data["text/html"] for data in notebook.updated)


def test_state_is_small():
    from gradlab.notebook.jacobian_widget import STATIC

    assert sum((STATIC / name).stat().st_size for name in ("jacobian.js", "jacobian.css")) < 60_000
