"""Recurrent layers as one operation: the same numbers as step by step, derivatives of any order, and steps for observers."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product

import numpy as np
import pytest

import gradlab as gl
from gradlab import func, nn
from gradlab.core.observers import Observer, observing
from gradlab.nn.modules.rnn import RNNBase

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN, "relu": partial(nn.RNN, nonlinearity="relu")}
OPTIONS = [
    {"num_layers": layers, "bidirectional": two, "bias": bias, "batch_first": first}
    for layers, two, bias, first in product((1, 2), (False, True), (True, False), (False, True))
]


class OperationObserver(Observer):
    """An observer of operations."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_record(self, op, result, args, meta) -> None:
        self.names.append(op.name)


def layer(kind: str, seed: int = 0, **options) -> RNNBase:
    gl.manual_seed(seed)
    return KINDS[kind](3, 4, **options).double()


def inputs(net: RNNBase, with_states: bool = True) -> list[gl.Tensor]:
    """Return x and the states, one tensor each, as leaves."""
    gl.manual_seed(1)
    x = gl.randn(5, 2, 3, dtype=gl.float64)
    shape = (net.num_layers * net.directions, 5 if net.batch_first else 2, 4)
    states = [gl.randn(*shape, dtype=gl.float64) for _ in range(2 if net.mode == "LSTM" else 1)]
    return [one.requires_grad_() for one in (x, *(states if with_states else ()))]


def outputs(net: RNNBase, x: gl.Tensor, *states: gl.Tensor) -> tuple[gl.Tensor, ...]:
    output, last = net(x, None if not states else states if net.mode == "LSTM" else states[0])
    return output, *(last if isinstance(last, tuple) else (last,))


def gradients(net: RNNBase, given: list[gl.Tensor]) -> list[np.ndarray]:
    """Return the gradients of a function of all outputs, with respect to all inputs and parameters."""
    made = outputs(net, *given)
    total = sum(((k + 2) * y).sin().sum() for k, y in enumerate(made))
    return [g.numpy() for g in gl.autograd.grad(total, [*given, *net.parameters()])] + [y.detach().numpy() for y in made]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(f"{k}={v}" for k, v in o.items()))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_states", [True, False])
def test_as_step_by_step(kind, options, with_states):
    net = layer(kind, **options)
    whole = gradients(net, inputs(net, with_states))
    with observing(OperationObserver()) as looks:
        steps = gradients(net, inputs(net, with_states))
    assert "tanh" in looks.names or "relu" in looks.names
    for a, b in zip(whole, steps, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_as_finite_differences(kind, two):
    net = layer(kind, num_layers=2, bidirectional=two)
    given = inputs(net)
    names, weights = zip(*net.named_parameters(), strict=True)

    def run(*all_of_them):
        here = dict(zip(names, all_of_them[len(given) :], strict=True))
        output, last = func.functional_call(net, here, (all_of_them[0], states_of(net, all_of_them[1 : len(given)])))
        return output, *(last if isinstance(last, tuple) else (last,))

    assert gl.autograd.gradcheck(run, (*given, *weights))


def states_of(net, states):
    return tuple(states) if net.mode == "LSTM" else states[0]


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh"])
def test_second_derivatives(kind):
    net = layer(kind)
    assert gl.autograd.gradgradcheck(lambda *given: outputs(net, *given), inputs(net))


def test_it_is_one_node():
    net = layer("gru")
    output, _ = net(*inputs(net))
    assert output.grad_fn.name() == "GRUSequenceBackward"
    with observing(OperationObserver()):
        output, _ = net(*inputs(net))
    assert output.grad_fn.name() == "StackBackward0"


@pytest.mark.parametrize("options", [{"proj_size": 2}, {"proj_size": 2, "bias": False}])
def test_projections_go_step_by_step(options):
    gl.manual_seed(0)
    net = nn.LSTM(3, 4, **options).double()
    assert gl.autograd.gradcheck(lambda x: net(x)[0], inputs(net, False))


def test_unbatched_and_without_wanting_the_inputs_gradient():
    net = layer("lstm")
    x = gl.randn(5, 3, dtype=gl.float64)
    output, (h, c) = net(x)
    assert output.shape == (5, 4) and h.shape == c.shape == (1, 4)
    output.sum().backward()
    assert x.grad is None and all(p.grad is not None for p in net.parameters())
    with gl.no_grad():
        assert net(x)[0].grad_fn is None


def test_frozen_weights_have_no_gradient():
    net = layer("gru")
    net.weight_hh_l0.requires_grad_(False)
    (x,) = inputs(net, False)
    net(x)[0].sum().backward()
    assert net.weight_hh_l0.grad is None and net.weight_ih_l0.grad is not None and x.grad is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_into_the_output_is_noticed(kind):
    net = layer(kind)
    output, _ = net(*inputs(net)[:1])
    output.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_the_last_states_are_memory_of_their_own():
    net = layer("lstm")
    output, (h, c) = net(*inputs(net, False))
    before = output.detach().clone()
    with gl.no_grad():
        h.fill_(7.0)
        c.fill_(7.0)
    assert gl.equal(output.detach(), before)
    output.sum().backward()


def test_backward_twice_is_refused_once_it_is_freed():
    net = layer("lstm")
    output, _ = net(*inputs(net, False))
    output.sum().backward(retain_graph=True)
    first = net.weight_hh_l0.grad.clone()
    output.sum().backward()
    np.testing.assert_allclose(net.weight_hh_l0.grad.numpy(), 2 * first.numpy())
    with pytest.raises(RuntimeError, match="second time"):
        output.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
def test_a_jacobian_and_forward_mode_agree(kind):
    net = layer(kind)
    (x,) = inputs(net, False)

    def last(x):
        return net(x)[0][-1].sum(1)

    by_rows, by_columns = func.jacrev(last)(x), func.jacfwd(last)(x)
    np.testing.assert_allclose(by_rows.detach().numpy(), by_columns.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_large_preactivations_are_no_nan(kind):
    net = layer(kind)
    (x,) = inputs(net, False)
    output, _ = net(1e4 * x)
    output.tanh().sum().backward()
    if kind != "relu":
        assert output.isfinite().all() and x.grad.isfinite().all()


def test_no_warning_is_heard_of_infinite_inputs():
    net = layer("lstm")
    x = gl.full((5, 2, 3), float("inf"), dtype=gl.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output, _ = net(x)
    assert output.shape == (5, 2, 4)


def test_dropout_between_layers_draws_the_same_whoever_looks():
    net = layer("lstm", num_layers=3, dropout=0.5)
    (x,) = inputs(net, False)
    gl.manual_seed(5)
    alone = net(x)[0].detach().numpy()
    with observing(OperationObserver()):
        gl.manual_seed(5)
        watched = net(x)[0].detach().numpy()
    np.testing.assert_allclose(alone, watched, rtol=1e-12)


def test_a_report_shows_the_steps():
    net = layer("lstm")
    with observing(OperationObserver()):
        loss = net(*inputs(net, False))[0].sum()
    assert len(gl.explain(loss).trace.nodes) > 50
