"""Steps of backward: totals equal `.grad`, local derivatives are those of single operations, and the graph is unchanged."""

from __future__ import annotations

import random
import re
import warnings

import numpy as np
import pytest
from cell_traces import trace_cell
from random_programs import SHAPES, Run, program, values

import gradlab as gl
from gradlab.explore.steps import step_through
from gradlab.explore.steps.stepping import step_through_with_names
from gradlab.explore.trace.values import Value


def small():
    a, b = gl.tensor(-3.0, requires_grad=True), gl.tensor(2.0, requires_grad=True)
    c = a * b
    e = (c + b**3).relu()
    return a, b, c, 2 * e


def final_totals(walk):
    """Return the final sum at each node; for leaves, the gradient."""
    return {share["to"]: share["total"] for step in walk.steps for share in step.shares}


def run_program(lib, seed):
    """Run a random program, and return its tensors and a scalar computed from some of them; None if it has no graph."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    leaves = {k: numbers.standard_normal(rng.choice(SHAPES)).round(2) for k in "xyz"}
    run = Run(lib, leaves)
    for line, name in program(rng):
        if run.line(line) and name:
            run.line(f"{name} = x * 1")
    tensors = run.tensors()
    made = [k for k, t in tensors.items() if k[0] == "t" and t.requires_grad]
    if not made:
        return None
    total = sum((tensors[k] * (i + 0.5)).sum() for i, k in enumerate(rng.sample(made, min(len(made), rng.randint(1, 3)))))
    return tensors, total


def step_and_backward(lib, tensors, total):
    """Return the steps, after running backward for comparison; None if backward raises."""
    before = [None if tensors[k].grad is None else values(tensors[k].grad).copy() for k in "xyz"]
    try:
        walk = step_through_with_names(total, None, {**tensors, "total": total})
    except RuntimeError:
        with pytest.raises(RuntimeError):
            total.backward()
        return None
    assert [tensors[k].grad for k in "xyz"] == before == [None, None, None]
    total.backward()
    return walk


def check_against_grad(walk, tensors, same):
    totals = {walk.trace.nodes[to].name.partition(", ")[0]: total for to, total in final_totals(walk).items()}
    for k in "xyz":
        grad = tensors[k].grad
        assert (grad is None) == (k not in totals), k
        if grad is not None:
            assert same(np.asarray(totals[k]), values(grad)), f"{k}: {totals[k]}, .grad {grad}"


@pytest.mark.parametrize("block", range(4))
def test_totals_equal_grad_bitwise(block):
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(block * 60, block * 60 + 60):
            if (made := run_program(gl, seed)) is None or (walk := step_and_backward(gl, *made)) is None:
                continue
            check_against_grad(walk, made[0], lambda one, other: np.array_equal(one, other, equal_nan=True))
            check_products(walk)
            checked += 1
    assert checked > 30


def check_products(walk):
    """Check that upstream × local = downstream, and that sums are sums."""
    running = {}
    for step in walk.steps:
        arrived = [np.asarray(part).reshape(-1) for part in np_parts(step.upstream)]
        for share, (place, _) in zip(step.shares, step.meets, strict=True):
            handed = np.asarray(share["downstream"])
            if share["local"] is not None and all(part is not None for part in np_parts(step.upstream)):
                upstream, local = np.concatenate(arrived), np.asarray(share["local"])
                product = upstream * local if local.ndim < 2 else upstream @ local
                assert np.allclose(product, handed.reshape(-1), rtol=1e-9, atol=1e-12, equal_nan=True) or not (
                    np.isfinite(local).all() and np.isfinite(upstream).all()
                ), (step.operation, share)
            running[place] = handed + running.get(place, 0)
            assert np.allclose(running[place], share["total"], equal_nan=True), (step.operation, share)


def np_parts(upstream):
    return upstream if isinstance(upstream, tuple) else (upstream,)


@pytest.mark.torch
@pytest.mark.parametrize("block", range(2))
def test_totals_equal_grad_in_torch(block):
    import torch

    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(block * 40, block * 40 + 40):
            if (made := run_program(torch, seed)) is None or (walk := step_and_backward(torch, *made)) is None:
                continue
            check_against_grad(walk, made[0], lambda one, other: np.allclose(one, other, rtol=1e-12, equal_nan=True))
            check_products(walk)
            checked += 1
    assert checked > 20


def test_the_steps_of_a_small_graph():
    a, b, c, out = small()
    walk = gl.step_through(out)
    assert [step.label for step in walk.steps] == ["×", "relu", "+", "**", "×"]
    assert [step.upstream for step in walk.steps] == [1, 2, 2, 2, 2]
    last = walk.steps[-1]
    assert last.name == "c" and [share["name"] for share in last.shares] == ["a", "b"]
    rest = {"local": -3.0, "factor": None, "downstream": -6.0, "total": 18.0}
    assert last.shares[1] == {"to": last.shares[1]["to"], "name": "b", **rest}
    assert walk.steps[3].shares[0]["local"] == 12  # 3 b²
    assert "24 − 6 = 18" in walk.text() and repr(walk) == walk.text()
    assert (a.grad, b.grad) == (None, None)
    out.backward()
    assert (a.grad.item(), b.grad.item()) == (4, 18)


def test_another_start():
    a, b, c, out = small()
    walk = gl.step_through(out, 0.5)
    assert walk.steps[-1].shares[1]["total"] == 9 and walk.start == 0.5
    again = walk.again(gl.tensor(-1.0))
    assert again.steps[-1].shares[1]["total"] == -18 and again.steps[-1].shares[1]["name"] == "b"
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    walk = gl.step_through(y, [1, 10])
    assert walk.steps[-1].shares[-1]["total"].tolist() == [2, 40]


OPERATIONS = {
    "tanh": lambda x: x.tanh(),
    "softmax": lambda x: x.softmax(-1),
    "sum": lambda x: x.sum(),
    "index": lambda x: x[1:],
    "cumsum": lambda x: x.cumsum(0),
    "norm": lambda x: x.norm(),
    "sort": lambda x: x.sort().values,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_local_derivatives_match_the_jacobian_of_the_operation(name):
    x = gl.tensor([0.5, -1.5, 2.5], dtype=gl.float64, requires_grad=True)
    y = OPERATIONS[name](x)
    walk = gl.step_through(y, np.ones(tuple(y.shape)))
    assert len(walk.steps) == 1
    expected = np.asarray(gl.jacobian(OPERATIONS[name], x)).reshape(-1, 3)
    np.testing.assert_allclose(walk.steps[0].shares[0]["local"], expected, rtol=1e-12)


@pytest.mark.parametrize("lib", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("code", "products"),
    [
        ("C = A @ B", {"C.grad @ B.T", "A.T @ C.grad"}),
        ("C = A.T @ A", {"A @ C.grad", "C.grad @ A.T"}),
        ("C = A * B.T", {"A * C.grad", "B.T * C.grad"}),
        ("C = A @ v", {"C.grad ⊗ v", "A.T @ C.grad"}),
        ("C = v @ A", None),
        ("C = nn.functional.linear(B.T, A)", None),
    ],
)
def test_the_factors_of_a_product_multiply_to_the_downstream_gradient(lib, code, products):
    library = gl if lib == "gradlab" else pytest.importorskip("torch")
    library.manual_seed(0)
    space = {"nn": library.nn}
    for name, shape in (("A", (3, 4)), ("B", (4, 3)), ("v", (4,) if code.endswith("v") else (3,))):
        space[name] = library.randn(*shape, requires_grad=True)
    with gl.tracing():
        exec(code, space)
        loss = space["C"].tanh().sum()
    walk = step_through_with_names(loss, None, {**space, "loss": loss})
    found = [(step, share) for step in walk.steps for share in step.shares if share["factor"] is not None]
    assert found
    for step, share in found:
        factor, arrived = share["factor"], np.asarray(step.upstream)
        one, two = (factor.numbers, arrived.T if factor.turned else arrived)[:: 1 if factor.first else -1]
        product = {"@": np.matmul, "*": np.multiply, "⊗": np.outer}[factor.symbol](one, two)
        np.testing.assert_allclose(product, share["downstream"], rtol=1e-5, atol=1e-6)
    named = {share["factor"].product("C.grad") for step, share in found if step.name == "C"}
    assert products in (None, named)


@pytest.mark.parametrize("lib", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_factors_follow_the_rule_if_several_products_are_equal(lib, weight):
    """A and B have equal numbers, and the upstream gradient is 1 or 0: C.grad @ B.T equals C.grad @ A.T and B @ C.grad."""
    library = gl if lib == "gradlab" else pytest.importorskip("torch")
    space = {"A": library.ones(3, 3, requires_grad=True), "B": library.ones(3, 3, requires_grad=True)}
    with gl.tracing():
        exec(f"C = A @ B\nloss = (C * {weight}).sum()", space)
    walk = step_through_with_names(space["loss"], None, space)
    products = {
        share["name"]: share["factor"].product("C.grad") for step in walk.steps for share in step.shares if step.name == "C"
    }
    assert products == {"A": "C.grad @ B.T", "B": "A.T @ C.grad"}


def test_large_matrices_and_scalars_have_no_factor():
    a, b = gl.ones(5, 5, requires_grad=True), gl.tensor(2.0, requires_grad=True)
    for out in ((a @ a).sum(), b * 3, a.std() * b):
        assert all(share["factor"] is None for step in step_through(out).steps for share in step.shares)


def test_a_large_elementwise_operation_has_a_diagonal():
    x = gl.linspace(0.1, 2.0, 24, dtype=gl.float64).reshape(4, 6).detach().requires_grad_()
    walk = gl.step_through(x.log().sum())
    assert walk.steps[0].shares[0]["local"] is None  # 1×24 is larger than 16×16 allows
    np.testing.assert_allclose(walk.steps[1].shares[0]["local"], 1 / x.detach().numpy().reshape(-1))


def test_several_outputs_have_different_names():
    x = gl.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    v, m = gl.var_mean(x, 1)
    walk = gl.step_through((v * m).sum())
    product = next(step for step in walk.steps if step.label == "×")
    assert [share["name"] for share in product.shares] == ["v", "m"]
    last = walk.steps[-1]
    assert [part.tolist() for part in last.upstream] == [m.tolist(), v.tolist()]


def test_the_graph_and_versions_are_unchanged():
    gl.manual_seed(3)
    x = gl.randn(4, 3, requires_grad=True)
    mask = gl.nn.functional.dropout(x, 0.5)
    y = (mask * x).sum()
    x.grad = gl.ones(4, 3)
    state, version, held = gl.get_rng_state().tolist(), x._version, x.grad
    first, second = gl.step_through(y), gl.step_through(y)
    assert gl.get_rng_state().tolist() == state and x._version == version
    assert x.grad is held and held.tolist() == gl.ones(4, 3).tolist()
    assert np.array_equal(first.steps[-1].shares[-1]["total"], second.steps[-1].shares[-1]["total"])


def test_a_retained_gradient_is_unchanged():
    a, b, c, out = small()
    c.retain_grad()
    gl.step_through(out)
    assert c.grad is None
    out.backward(retain_graph=True)
    assert c.grad.item() == 2
    gl.step_through(out)
    assert c.grad.item() == 2 and b.grad.item() == 18


def test_hooks_run_and_are_mentioned():
    a, b, c, out = small()
    c.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: g + 1)
    walk = gl.step_through(out)
    assert any("Hooks that you registered of b, c ran" in note for note in walk.notes)
    step = walk.steps[-1]
    assert step.hooked and step.upstream == 20
    out.backward()
    assert [share["total"] for share in step.shares] == [a.grad.item(), b.grad.item()] == [40, 24 - 60 + 1]


def test_a_leaf_has_no_steps():
    x = gl.tensor(1.0, requires_grad=True)
    walk = gl.step_through(x)
    assert walk.steps == [] and "is a leaf" in walk.text()


def test_a_freed_leaf_still_has_a_step():
    x = gl.tensor(2.0, requires_grad=True)
    y = x * x
    del x
    assert gl.step_through(y).steps[-1].shares[-1]["total"] == 4


def test_errors_have_advice():
    a, b, c, out = small()
    out.backward()
    with pytest.raises(RuntimeError, match=r"second time.*Compute out again.*out\.backward\(retain_graph=True\)"):
        gl.step_through(out)
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match="only for scalar outputs") as failed:
        gl.step_through(y)
    advised = re.search(r"(gl|gradlab)\.ones_like\(y\)", str(failed.value))
    assert gl.step_through(y, eval(advised[0], {"gl": gl, "gradlab": gl, "y": y})).steps[0].shares[0]["total"].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        gl.step_through(y, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="must be numbers"):
        gl.step_through(y, "ones")
    with pytest.raises(TypeError, match="expects a tensor"):
        gl.step_through(3.0)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gl.step_through(gl.ones(()))


def test_closing_releases_all_tensors():
    import gc
    import weakref

    def step_and_close():
        a, b, c, out = small()
        walk = gl.step_through(out)
        text = walk.text()
        walk.close()
        return walk, text, [weakref.ref(t) for t in (a, b, c, out)] + [weakref.ref(out.grad_fn)]

    walk, text, refs = step_and_close()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5
    assert walk.text() == text and walk.is_closed
    with pytest.raises(RuntimeError, match="has released the graph"):
        walk.again(2.0)


def test_large_cotangents_are_shown_as_statistics(monkeypatch):
    from gradlab.explore.steps import sweep

    monkeypatch.setattr(sweep.SweepRecord.__init__, "__defaults__", (100_000,))
    x = gl.ones(100, 100, requires_grad=True)
    walk = gl.step_through((x * 2 + x.exp()).sum())
    assert walk.held <= 100_000
    last = walk.steps[-1].shares[0]["total"]
    assert isinstance(last, Value) and last.norm == pytest.approx(100 * (2 + np.e))
    assert "100×100, ‖·‖" in walk.text()


def test_a_long_table_is_bounded():
    x = gl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(500):
        y = y * 1.001
    walk = step_through(y)
    assert len(walk.steps) == 500
    lines = walk.text().splitlines()
    assert len(lines) < 70 and any("440 more of 500 operations" in line for line in lines)


MODELS = """
net = torch.nn.LSTM(4, 5); out = net(torch.randn(6, 2, 4))[0].pow(2).sum()
net = torch.nn.TransformerEncoderLayer(16, 2, 24, batch_first=True); out = (net(torch.randn(2, 5, 16)) ** 3).mean()
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)); out = net(torch.randn(2, 3, 6, 6)).relu().sum()
net = torch.nn.Linear(3, 2).bfloat16(); out = net(torch.randn(4, 3).bfloat16()).float().exp().sum()
net = torch.nn.Linear(3, 2, dtype=torch.complex64); out = net(torch.randn(4, 3, dtype=torch.complex64)).abs().sum()
net = torch.nn.Embedding(9, 3, sparse=True); out = net(torch.tensor([1, 2, 1])).pow(2).sum()
""".strip().splitlines()


@pytest.mark.torch
@pytest.mark.parametrize("source", MODELS)
def test_models_of_torch(source):
    import torch

    torch.manual_seed(0)
    space = {"torch": torch}
    exec(source, space)
    net, out = space["net"], space["out"]
    state = torch.get_rng_state()
    walk = step_through_with_names(out, None, {**dict(net.named_parameters()), "out": out})
    assert torch.equal(state, torch.get_rng_state()) and all(p.grad is None for p in net.parameters())
    totals = {walk.trace.nodes[to].name: total for to, total in final_totals(walk).items()}
    assert walk.text() and walk.view() and walk.frames()
    out.backward()
    for name, parameter in net.named_parameters():
        grad = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
        grad = grad.float() if grad.dtype is torch.bfloat16 else grad
        np.testing.assert_allclose(np.asarray(totals[name]), grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.torch
def test_hooks_and_retained_gradients_of_torch():
    import torch

    a, b = torch.tensor(-3.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    c = a * b
    c.retain_grad()
    c.register_hook(lambda g: g * 10)
    out = 2 * (c + b**3).relu()
    walk = gl.step_through(out)
    assert c.grad is None and any("of c ran" in note for note in walk.notes) and not walk.view()["linear"]
    out.backward()
    assert [share["total"] for share in walk.steps[-1].shares] == [a.grad.item(), b.grad.item()] and walk.steps[-1].hooked


@pytest.mark.torch
def test_saved_tensors_that_torch_unpacks_once_are_not_read():
    import torch
    from torch.utils.checkpoint import checkpoint

    w = torch.randn(3, 3, requires_grad=True)
    torch.manual_seed(1)
    out = checkpoint(lambda x: torch.dropout(x @ w, 0.5, True).tanh(), w * 2, use_reentrant=False).sum()
    state = torch.get_rng_state()
    walk = gl.step_through(out)
    assert torch.equal(state, torch.get_rng_state())
    out.backward()
    np.testing.assert_allclose(final_totals(walk)[next(i for i, n in enumerate(walk.trace.nodes) if n.name == "w")], w.grad)


def test_a_recorded_cell_reports_its_own_sweep():
    space = {"gl": gl}
    trace = trace_cell(
        """
a = gl.tensor(2.0, requires_grad=True)
y = a * a
steps = gl.step_through(y)
y.backward()
""",
        space,
    )
    assert trace.sweeps == 1 and trace.leaves[0].gradient.numbers == (4.0,)
    steps = space["steps"].steps
    assert [(step.line, step.place.source) for step in steps] == [(3, "a * a")] and steps[0].shares[-1]["total"] == 4


def test_a_start_of_one_element_is_broadcast():
    x = gl.tensor([2.0], requires_grad=True)
    walk = gl.step_through(x * 3)
    assert walk.view()["linear"] and walk.steps[0].shares[0]["total"].tolist() == [3]
    assert walk.again(walk.start_of([0.5])).steps[0].shares[0]["total"].tolist() == [1.5]
