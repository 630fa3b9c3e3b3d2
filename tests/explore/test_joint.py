"""Operations with two results are one node: their drawing, rules, lines and saved tensors."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.core.sparsity import pattern
from gradlab.diagnose.out_of_memory import saved_tensor_sizes
from gradlab.explore.trace.reading import trace_of


def results(name):
    x = gl.tensor([[1.0, 2.5, 4.0], [0.5, -1.0, 3.0]], requires_grad=True)
    return x, *getattr(gl, name)(x, dim=1)


@pytest.mark.parametrize("name", ["var_mean", "std_mean", "aminmax"])
def test_one_node_is_drawn(name):
    x, a, b = results(name)
    trace = trace_of([(a * b).sum()], {"x": x, "a": a, "b": b})
    nodes, edges = trace.nodes, trace.edges
    drawn = [(node.label, node.name) for node in nodes if node.kind == "operation"]
    assert drawn == [(f"{name}(1)", "a, b"), ("×", ""), ("sum", "")]
    assert [(e.source, e.target) for e in edges if e.target == 2] == [(1, 2), (1, 2)] and len(nodes) == 5


@pytest.mark.parametrize("kept", [True, False])
def test_each_result_depends_on_its_row(kept):
    x, v, m = results("var_mean")
    (v + m).sum().backward(retain_graph=kept)
    for y in (v, m, v * m):
        rows, columns = pattern(y.node, x.node)
        assert rows.tolist() == [0] * 3 + [1] * 3 and columns.tolist() == list(range(6))


def test_jacobians_backward_and_forward():
    x, v, m = results("var_mean")
    by_hand = np.zeros((2, 6))
    for row in range(2):  # d var / dx = 2 (x - mean) / (n - 1), d mean / dx = 1 / n
        values = x.detach().numpy()[row]
        by_hand[row, 3 * row : 3 * row + 3] = (values - values.mean()) + 3 / 3
    for method in ("rows", "columns"):
        J = gl.jacobian(lambda x: (lambda v, m: v + 3 * m)(*gl.var_mean(x, dim=1)), x.detach(), method=method)
        np.testing.assert_allclose(np.asarray(J), by_hand, rtol=1e-6)


def test_the_rule_is_shown():
    _, v, m = results("var_mean")
    assert gl.formula(v.grad_fn) == gl.formula(m.grad_fn)
    lines = gl.formula(v.grad_fn).lines()
    assert len(lines) == 2 and r"\bar{y}_0" in lines[1] and r"\bar{y}_1" in lines[1]


def test_where_it_was_computed_and_freed():
    with gl.record_sites():
        x, v, m = results("std_mean")
        v.sum().backward()
        with pytest.raises(RuntimeError, match=r"freed .*test_joint.py line \d+, `getattr\(gl, name\)\(x, dim=1\)`"):
            m.sum().backward()


def test_nan_is_traced_to_it():
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        mode = gl.autograd.detect_anomaly()
    with mode:
        x = gl.tensor([1.0, float("nan")], requires_grad=True)
        v, m = gl.var_mean(x)
        with (
            pytest.warns(UserWarning, match="Error detected in MulBackward0"),
            pytest.raises(RuntimeError, match="In the forward pass, VarMeanBackward0 received nan"),
        ):
            (v * m).backward()


def test_saved_tensors_are_counted():
    x, s, m = results("std_mean")
    assert sorted(saved_tensor_sizes([m.node])) == [
        ("StdMeanBackward0, its argument x (2×3 float32)", 24),
        ("StdMeanBackward0, its result (2 float32)", 8),
    ]
