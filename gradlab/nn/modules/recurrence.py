"""One step of each recurrent layer, and the checks of sizes that layers and cells share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.functional import linear
from gradlab.ops import chunk, relu, sigmoid, tanh

State = tuple[Tensor, ...]
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def plain_step(activation: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    """Return the step h' = activation(W_ih x + b_ih + W_hh h + b_hh)."""

    def step(x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> State:
        return (activation(linear(state[0], w_hh, b_hh) + linear(x, w_ih, b_ih)),)

    return step


def lstm_step(
    x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None, w_hr: Tensor | None = None
) -> State:
    """Compute c' = f c + i g, h' = o tanh(c'), or with projections h' = W_hr (o tanh(c')). (Hochreiter and Schmidhuber 1997)"""
    h, c = state
    i, f, g, o = chunk(linear(h, w_hh, b_hh) + linear(x, w_ih, b_ih), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
    return (h if w_hr is None else linear(h, w_hr)), c


def gru_step(x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> State:
    """Compute h' = (1 - z) n + z h, with n = tanh(W_in x + b_in + r (W_hn h + b_hn)). (Cho et al. 2014)"""
    (h,) = state
    x_r, x_z, x_n = chunk(linear(x, w_ih, b_ih), 3, 1)
    h_r, h_z, h_n = chunk(linear(h, w_hh, b_hh), 3, 1)
    r, z = sigmoid(h_r + x_r), sigmoid(h_z + x_z)
    n = tanh(h_n * r + x_n)
    return ((h - n) * z + n,)


STEPS = {"LSTM": lstm_step, "GRU": gru_step, "RNN_TANH": plain_step(tanh), "RNN_RELU": plain_step(relu)}


def check_sizes(bias: Any, batch_first: Any, input_size: Any, hidden_size: Any) -> None:
    """Raise if an argument has the wrong type or a size is not positive."""
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if kind is int and value <= 0:
            raise ValueError(f"{name} must be greater than zero")
