"""Several graphs side by side."""

from __future__ import annotations

import pytest

import gradlab as gl


def test_each_graph_is_below_its_name(t):
    x, y = t.tensor(2.0).requires_grad_(), t.tensor(3.0).requires_grad_()
    product, total = x * y, x + y
    several = gl.graphs(product, sum=total)
    assert list(several.graphs) == ["product", "sum"] and len(several) == 2
    assert several["sum"].nodes == gl.graph(total).nodes and several["product"].nodes == gl.graph(product).nodes
    bundle = several._repr_mimebundle_()
    assert bundle["text/html"].count("<figure") == bundle["text/html"].count("<img") == 2
    assert "flex-wrap:wrap" in bundle["text/html"]
    assert "product:" in bundle["text/plain"] and "sum:" in bundle["text/plain"] and "MulBackward0" in bundle["text/plain"]
    assert several.svg().count("Backward0</text>") == 2 and repr(several) == "<Graphs product, sum>"


def test_equal_names_are_numbered():
    x = gl.ones(2).requires_grad_()
    y = x * 2
    several = gl.graphs(y, y, x * 3, y=x * 4)
    assert list(several.graphs) == ["y (1)", "y (2)", "graph 3", "y"]
    assert gl.graphs(kept=gl.graph(y))["kept"].nodes == gl.graph(y).nodes


def test_many_graphs_are_wrapped():
    x = gl.ones(2).requires_grad_()
    several = gl.graphs(*[x * k for k in range(12)])
    one = several["graph 1"].drawing()
    assert several.drawing().width <= 1100 and several.drawing().height > 1.5 * one.height


def test_errors():
    x = gl.ones(2).requires_grad_()
    with pytest.raises(ValueError, match="none was given"):
        gl.graphs()
    with pytest.raises(TypeError, match=r"graphs\(b=…\): graph\(out\) draws"):
        gl.graphs(a=x * 2, b=3)
    with pytest.raises(RuntimeError, match=r"graphs\(b=…\): element 0 of tensors does not require grad"):
        gl.graphs(a=x * 2, b=gl.ones(2))


def test_names_are_escaped():
    x = gl.ones(2).requires_grad_()
    several = gl.graphs(**{"<script>alert(1)</script>": x * 2})
    assert "<script" not in several.html() and "<script" not in several.svg()
