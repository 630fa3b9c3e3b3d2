"""The Jacobian against finite differences and matrices by hand; when it computes which rows, and that it has no side effects."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from differences import numerical_jacobian
from explore.timed_sweeps import set_sweep_time

import gradlab as gl
from gradlab.explore.jacobian import Jacobian, jacobian


def vector(*values, grad=True):
    x = gl.tensor(list(values), dtype=gl.float64)
    return x.requires_grad_() if grad else x


def count_sweeps(J):
    """Return a list that grows with each weighted backward pass that `J` runs."""
    sweeps, inner = [], J.runner.backward

    def sweep(weights):
        sweeps.append(np.array(weights))
        return inner(weights)

    J.runner.backward = sweep
    return sweeps


def test_matrix_by_hand():
    x = vector(2.0, 3.0)
    z = gl.stack([x[0] * x[1], x[0] ** 2, 5 * x[1]])
    J = jacobian(z, x)
    assert J.shape == (3, 2) and len(J) == 3
    np.testing.assert_array_equal(J, [[3, 2], [4, 0], [0, 5]])
    assert J.labels == ["z[0]", "z[1]", "z[2]"]
    assert J.column_labels == ["x[0]", "x[1]"]


def test_matches_finite_differences_for_matrices():
    start = np.random.default_rng(0).normal(size=(2, 3))
    x = gl.tensor(start, dtype=gl.float64).requires_grad_()
    z = gl.tanh(x.T @ x) * x[0]
    J = jacobian(z, x)
    assert J.shape == (9, 6)
    np.testing.assert_allclose(J, numerical_jacobian(lambda a: np.tanh(a.T @ a) * a[0], start), atol=1e-8)
    assert J.labels[5] == "z[1,2]" and J.column_labels[4] == "x[1,1]"
    whole = J.tensor()
    assert tuple(whole.shape) == (3, 3, 2, 3) and whole.dtype == x.dtype
    np.testing.assert_array_equal(whole.numpy().reshape(9, 6), np.asarray(J))


def test_nothing_is_computed_before_it_is_requested():
    x = vector(1.0, 2.0, 3.0)
    J = jacobian(x * x, x)
    sweeps = count_sweeps(J)
    assert (J.shape, len(J), len(J.labels), repr(J), J.rows_known) and not sweeps
    rows = iter(J)
    assert not sweeps
    np.testing.assert_array_equal(next(rows), [2, 0, 0])
    assert len(sweeps) == J.rows_known == 1
    np.testing.assert_array_equal(sweeps[0], [1, 0, 0])
    np.testing.assert_array_equal(J[2], [0, 0, 6])
    np.testing.assert_array_equal(J.known_mask, [True, False, True])
    J[0], J[-1], J[2, 1]
    assert len(sweeps) == 2, "a known row is not computed again"
    np.asarray(J)
    assert len(sweeps) == 3 and J.rows_known == 3
    assert not J[0].flags.writeable


@pytest.mark.parametrize(
    "key",
    [
        1,
        -1,
        (1, 2),
        (2, slice(None)),
        (slice(None), 1),
        slice(1, 3),
        (slice(None, None, -1), slice(0, 2)),
        ([0, 3], [1, 2]),
        [3, 0, 3],
        np.array([True, False, True, False]),
        (np.array([[0, 1], [2, 3]]), 0),
        ...,
        (..., 1),
        None,
        (0, None),
        (),
    ],
    ids=repr,
)
def test_indexes_like_an_array(key):
    start = np.arange(1.0, 4.0)
    x = vector(*start)
    z = gl.stack([x[0] * x[1], x[1] * x[2], x[0] * x[2], x[0] ** 3])
    whole = np.array([[2, 1, 0], [0, 3, 2], [3, 0, 1], [3, 0, 0]], float)
    got = jacobian(z, x)[key]
    np.testing.assert_array_equal(got, whole[key])
    assert np.shape(got) == whole[key].shape


def test_indexing_computes_only_the_rows_it_needs():
    x = vector(1.0, 2.0, 3.0, 4.0)
    J = jacobian(x.exp(), x)
    J[[2, 0]], J[1:1], J[2, 3]
    np.testing.assert_array_equal(J.known_mask, [True, False, True, False])
    with pytest.raises(IndexError, match="row 4 of a Jacobian with 4 rows"):
        J[4]
    with pytest.raises(IndexError, match="row -5"):
        J[-5, 0]


def test_tensors_and_gradients_of_the_user_are_unchanged():
    x, w = vector(1.0, 2.0), vector(3.0, 4.0)
    y = x * w
    y.sum().backward(retain_graph=True)
    before = [(t.grad.numpy().copy(), t.detach().numpy().copy(), t.requires_grad) for t in (x, w)]
    J = jacobian(y, (x, w))
    np.asarray(J), J.vjp([1.0, 1.0]), J.drawing(), J.tensor()
    jacobian(lambda a, b: a * b, (x, w)).drawing()
    for t, (grad, value, wanted) in zip((x, w), before, strict=True):
        np.testing.assert_array_equal(t.grad.numpy(), grad)
        np.testing.assert_array_equal(t.detach().numpy(), value)
        assert t.requires_grad is wanted
    y.sum().backward()  # the user's graph still exists


def test_several_inputs_are_column_blocks():
    x, w, unused = vector(1.0, 2.0), gl.tensor([[3.0], [4.0]], dtype=gl.float64).requires_grad_(), vector(9.0)
    z = x * w[:, 0]
    J = jacobian(z, (x, unused, w))
    np.testing.assert_array_equal(J, [[3, 0, 0, 1, 0], [0, 4, 0, 0, 2]])
    assert J.blocks == [("x", 2), ("unused", 1), ("w", 2)]
    assert J.column_labels == ["x[0]", "x[1]", "unused[0]", "w[0,0]", "w[1,0]"]
    parts = J.tensor()
    assert [tuple(part.shape) for part in parts] == [(2, 2), (2, 1), (2, 2, 1)]
    np.testing.assert_array_equal(parts[2].numpy()[1, 1], [2])
    assert "z does not depend on unused" in J.drawing().text


def test_a_function_is_called_once_on_detached_copies():
    x, n = vector(1.0, 2.0, grad=False), []

    def f(u):
        n.append(u)
        return u**2

    J = jacobian(f, x)
    np.testing.assert_array_equal(J, [[2, 0], [0, 4]])
    assert len(n) == 1 and n[0].is_leaf and n[0].requires_grad and n[0] is not x and not x.requires_grad
    assert J.labels == ["y[0]", "y[1]"] and J.column_labels == ["x[0]", "x[1]"]
    n[0].detach().numpy()[0] = 7.0
    assert x.numpy()[0] == 1.0, "the function gets a copy of the values"


def test_scalars_and_vjp():
    x = vector(1.0, 2.0)
    loss = (x * x).sum()
    J = jacobian(loss, x)
    assert J.shape == (1, 2) and J.labels == ["loss"] and tuple(J.tensor().shape) == (2,)
    x = vector(1.0, 2.0, 3.0)
    z = (x * x).reshape(1, 3)
    J = jacobian(z, x)
    sweeps = count_sweeps(J)
    for v in ([[0.5, 0.0, -1.0]], [0.5, 0.0, -1.0], gl.tensor([[0.5, 0.0, -1.0]])):
        np.testing.assert_array_equal(J.vjp(v), [1, 0, -6])
    assert len(sweeps) == 3 and J.rows_known == 0
    np.asarray(J)
    np.testing.assert_array_equal(J.vjp([0.5, 0.0, -1.0]), [1, 0, -6])
    assert len(sweeps) == 3, "if all rows are known, their linear combination needs no backward"
    with pytest.raises(ValueError, match=r"shape \(1, 3\) or \(3,\); v has shape \(2,\)"):
        J.vjp([1.0, 2.0])
    with pytest.raises(TypeError, match="real weights"):
        J.vjp(["a", "b", "c"])


def test_the_graph_is_released_when_all_rows_are_known():
    x = vector(1.0, 2.0)
    J = jacobian(lambda u: u * u, x)
    held = weakref.ref(J.runner.graph.outputs[0])
    J[0]
    gc.collect()
    assert held() is not None
    J[1]
    gc.collect()
    assert held() is None and J.runner.graph is None
    np.testing.assert_array_equal(J, [[2, 0], [0, 4]])
    assert tuple(J.tensor().shape) == (2, 2)


def test_conversion_to_arrays():
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    J = jacobian(x * 3, x)
    assert np.asarray(J).dtype == np.float32 and np.asarray(J, float).dtype == np.float64
    np.array(J)[0, 0] = 5
    assert J[0, 0] == 3
    with pytest.raises(ValueError, match="without a copy"):
        np.array(J, dtype=np.float64, copy=False)
    empty = jacobian(x[:0], x)
    assert np.asarray(empty).shape == (0, 2) and list(empty) == [] and empty.drawing().text


def test_names_come_from_the_caller():
    weight = vector(1.0)
    params = [vector(2.0)]
    y = weight * params[0]
    unnamed = jacobian(weight * 1, weight)
    assert unnamed.labels == ["y[0]"]
    J = jacobian(y, (weight, params[0]))
    assert J.column_labels == ["weight[0]", "params[0][0]"]
    J = jacobian(y * 1, y)
    assert J.labels == ["z[0]"] and J.column_labels == ["y[0]"], "if an input has the name y, the output is called z"
    J = jacobian(y, weight, names={"out": y, "w": weight})
    assert J.labels == ["out[0]"] and J.column_labels == ["w[0]"]
    assert jacobian(lambda u: u, weight, names={"w": weight}).column_labels == ["w[0]"]


# --------------------------------------------------------------------------------------------------------- code by hand
def run(code, **namespace):
    namespace = {"gl": gl, **namespace}
    exec(code, namespace)
    return namespace["row"].detach().numpy()


@pytest.mark.parametrize("weights", [0, 4, [0.5, 0, -0.25, 0, 1, 0], "numpy"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_code_by_hand_computes_the_same_row(weights, dtype):
    x = gl.tensor([1.0, 2.0, 3.0], dtype=getattr(gl, dtype)).requires_grad_()
    w = gl.tensor([[2.0], [5.0]], dtype=getattr(gl, dtype)).requires_grad_()
    z = gl.tanh(w * x)
    J = jacobian(z, (x, w))
    v = np.linspace(-1, 1, 6) if isinstance(weights, str) else weights
    wanted = J[v] if isinstance(v, int) else J.vjp(v)
    code = J.by_hand(v)
    assert "z.backward(" in code and "retain_graph=True" in code
    np.testing.assert_allclose(run(code, x=x, w=w, z=z), wanted, rtol=1e-6)
    np.testing.assert_allclose(run(code, x=x, w=w, z=z), wanted, rtol=1e-6)  # running it again does not accumulate


def test_the_code_by_hand_for_many_outputs_scalars_nonleaves_functions_and_unused_inputs():
    x, unused = vector(*np.linspace(0.1, 2, 20)), vector(1.0)
    z = (x * x).reshape(4, 5)
    J = jacobian(z, x)
    assert "v[1, 2] = 1." in J.by_hand(7)
    np.testing.assert_array_equal(run(J.by_hand(7), x=x, z=z), J[7])
    h = x * 2
    loss = (h**3).sum()
    J = jacobian(loss, h)
    assert "autograd.grad(loss, [h], None" in J.by_hand(0)
    np.testing.assert_allclose(run(J.by_hand(0), h=h, loss=loss), J[0])
    np.testing.assert_allclose(run(J.by_hand([0.5]), h=h, loss=loss), J.vjp(np.array(0.5)))
    J = jacobian(z, (h, unused))
    J[0]
    with pytest.raises(NameError):
        run(J.by_hand(0))
    J = jacobian(z, (x, unused))
    J[3]
    np.testing.assert_array_equal(run(J.by_hand(3), x=x, unused=unused, z=z), J[3])

    def f(a, b):
        return (a * b).exp()

    a, b = vector(0.1, 0.2, grad=False), vector(3.0, 4.0, grad=False)
    J = jacobian(f, (a, b))
    np.testing.assert_allclose(run(J.by_hand(1), a=a, b=b, f=f), J[1])
    J = jacobian(lambda u: u.exp(), a)
    assert J.by_hand(1).startswith("# func: as given to jacobian")
    np.testing.assert_allclose(run(J.by_hand(1), a=a, func=gl.exp), J[1])


@pytest.mark.parametrize("name", ["x if y", "f()", "a\nimport os", "<script>", "lambda", "1", "a b", "x;y", ""])
def test_names_that_are_not_identifiers_do_not_become_code(name):
    x = vector(1.0, 2.0)
    J = jacobian(x * 2, x, names={name: x})
    x_code = [line for line in J.by_hand(0).splitlines() if not line.startswith("#")]
    assert x_code[0] == "x.grad = None" and x_code[-1].startswith("row = x.grad.flatten()")
    J.drawing().svg()
    assert len(J.drawing().svg().split("<script>")) == 1


# --------------------------------------------------------------------------------------------------------------- errors
def test_errors_have_the_expected_and_the_given_value_and_advice():
    x, fixed, whole = vector(1.0, 2.0), vector(1.0, grad=False), gl.tensor([1, 2])
    with pytest.raises(RuntimeError, match=r"does not require grad and does not have a grad_fn.*\(1,\).*requires_grad_\(\)"):
        jacobian(fixed * 2, x)
    with pytest.raises(RuntimeError, match=r"One of the differentiated Tensors does not require grad.*fixed.*before the output"):
        jacobian(x * 2, fixed)
    with pytest.raises(RuntimeError, match=r"floating point dtype can require gradients.*int64.*\.float\(\)"):
        jacobian(lambda u: u, whole)
    with pytest.raises(TypeError, match=r"one gradlab tensor|one torch tensor"):
        jacobian(lambda u: u.numpy, fixed)
    with pytest.raises(TypeError, match=r"or a tuple of them; it returned a tuple of 2"):
        jacobian(lambda u: (u, 3), x)
    with pytest.raises(TypeError, match="returned None"):
        jacobian(lambda u: None, x)
    with pytest.raises(RuntimeError, match=r"without detach\(\)"):
        jacobian(lambda u: u.detach(), x)
    with pytest.raises(TypeError, match="a function that returns one; got an int"):
        jacobian(3, x)
    with pytest.raises(TypeError, match=r"inputs is a float"):
        jacobian(x * 2, 1.0)
    with pytest.raises(TypeError, match=r"inputs\[1\] is a list of 1"):
        jacobian(x * 2, (x, [1.0]))
    with pytest.raises(ValueError, match="empty tuple"):
        jacobian(x * 2, ())


def test_an_error_in_a_row_keeps_the_other_rows():
    x = vector(1.0, 2.0)
    J = jacobian(x * x, x)
    J[0]
    inner = J.runner.backward
    J.runner.backward = lambda weights: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        J[1]
    assert J.rows_known == 1
    J.runner.backward = inner
    np.testing.assert_array_equal(J, [[2, 0], [0, 4]])


# -------------------------------------------------------------------------------------------------------------- showing
def test_display_computes_cheap_rows_and_says_what_is_missing():
    x = vector(1.0, 2.0)
    z = x * x
    J = jacobian(z, x)
    blank = J.drawing(compute=False)
    assert J.rows_known == 0 and "not computed yet. np.asarray(J) computes it" in blank.text
    assert "all 0" not in blank.svg() and "least" not in blank.text and "not computed yet" in repr(J) and " 0 of" not in repr(J)
    bundle = J._repr_mimebundle_()
    assert J.rows_known == 2 and "z[1]" in bundle["text/plain"] and "<img alt=" in bundle["text/html"]
    assert "image/svg+xml" not in bundle
    many = vector(*np.ones(100))
    J = jacobian(many * 2, many)
    assert "least 0, greatest 2" in J.drawing().text and J.complete and J.rows_known == 100


@pytest.mark.parametrize(("seconds", "rows"), [(0.03, 30), (0.04, 1), (2.0, 1)])
def test_display_computes_all_rows_in_less_than_a_second(seconds, rows, clock):
    J = set_sweep_time(jacobian(lambda u: u**2, gl.ones(30), method="rows"), seconds, clock)
    J.drawing()
    assert J.rows_known == rows


def test_display_stops_if_all_rows_would_take_more_than_a_second(clock):
    x = gl.zeros(6000, requires_grad=True)
    for way, call in (
        ({"method": "rows"}, "np.asarray(J)"),
        ({"method": "batched", "chunk_size": 2}, "np.asarray(J)"),
        ({"method": "columns", "chunk_size": 1}, "np.asarray(J)"),
    ):
        J = set_sweep_time(jacobian(x * 2, x, **way), 0.001, clock)
        text = J.drawing().text
        assert not J.complete and 1 <= J.sweeps <= 2, "it estimates from the first block"
        assert call in text and str(J.plan) in text and "pooled to 64 × 64 cells" in text
        assert J[5999, 5999] == 2
    J = set_sweep_time(jacobian(gl.cat([x[1:] - x[:-1] ** 2, x[:1]]), x, chunk_size=1), 2.0, clock)
    text = J.drawing().text
    assert J.sweeps == 1 and "1 of 2 blocks of colours known" in text and "J.sparse() computes the rest" in text
    J = set_sweep_time(jacobian(lambda u: u**2, vector(1.0, 2.0), method="columns", chunk_size=1), 2.0, clock)
    assert "1 of 2 blocks of columns known" in J.drawing().text and "1 of 2" in repr(J)


def test_a_huge_jacobian_is_drawn_pooled_with_its_true_extremes():
    x = gl.zeros(6000, requires_grad=True)
    scale = gl.zeros(6000)
    scale[17], scale[4000] = -7.0, 9.0
    J = jacobian(x * scale, x)
    text = J.drawing().text
    assert "least −7, greatest 9" in text and "6000 × 6000 pooled to 64 × 64" in text and J[17, 17] == -7 and J.sweeps == 1


def test_plot_returns_axes_with_the_whole_matrix():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    x = vector(1.0, 2.0, 3.0)
    J = jacobian((x * x)[:2], x)
    ax = J.plot()
    np.testing.assert_array_equal(ax.images[0].get_array(), np.asarray(J))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["x[0]", "x[1]", "x[2]"]
    assert J.plot(ax) is ax
    evil = jacobian(x * 2, x, names={"$\\frac": x})
    evil.plot().figure.canvas.draw()  # matplotlib does not read a name as math text
    n = 20_000
    image = jacobian(lambda u: u * gl.linspace(-1, 1, n), gl.ones(n)).plot().images[0]
    assert image.get_array().shape == (512, 512) and (image.get_array().min(), image.get_array().max()) == (-1, 1)
    matplotlib.pyplot.close("all")


@pytest.mark.torch
def test_equals_torch():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    w = torch.randn(2, 4, generator=generator, dtype=torch.float64)

    def f(a, b):
        return torch.softmax(a @ b, 1).cumsum(0)

    wanted = torch.func.jacrev(f, argnums=(0, 1))(x, w)
    J = jacobian(f, (x, w))
    assert isinstance(J, Jacobian) and J.shape == (12, 14)
    for got, want, other in zip(J.tensor(), wanted, torch.autograd.functional.jacobian(f, (x, w)), strict=True):
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(got, other)
    ours = jacobian(lambda a, b: gl.softmax(a @ b, 1) * 2, (gl.tensor(x.numpy()), gl.tensor(w.numpy())))
    theirs = torch.func.jacrev(lambda a: torch.softmax(a @ w, 1) * 2)(x)
    np.testing.assert_allclose(ours.tensor()[0].numpy(), theirs.numpy(), atol=1e-12)
    namespace = {"torch": torch, "f": f, "x": x, "w": w}
    exec(jacobian(f, (x, w)).by_hand(5), namespace)
    np.testing.assert_allclose(namespace["row"].numpy(), J[5], atol=1e-12)
