"""Recurrent layers, step by step: the plain one, LSTM and GRU, and the cells that are one step of them.

A layer hands its outputs to the next as a list of steps, so that backward meets each step's tensor alone, and never a whole
sequence of zeros for one step of it. Weights of layer k are `weight_ih_lk` (gates · hidden, inputs), `weight_hh_lk`,
`bias_ih_lk`, `bias_hh_lk`, with `_reverse` for the direction from the end; the gates are one below the other, in the order i, f,
g, o (LSTM) and r, z, n (GRU). All start uniform within ±1/√hidden_size.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Number
from typing import Any

from gradlab.core.errors import advice
from gradlab.core.tensor import Tensor
from gradlab.creation import zeros
from gradlab.nn import init
from gradlab.nn.functional import dropout, linear
from gradlab.nn.modules.described import unset
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.ops import cat, chunk, relu, sigmoid, stack, tanh

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


# --------------------------------------------------------------------------------------------------------------------- steps
def plain_step(activation: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    """h' = activation(W_ih x + b_ih + W_hh h + b_hh)."""

    def step(x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> State:
        return (activation(linear(state[0], w_hh, b_hh) + linear(x, w_ih, b_ih)),)

    return step


def lstm_step(
    x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None, w_hr: Tensor | None = None
) -> State:
    """c' = f c + i g, h' = o tanh(c'); with projections h' = W_hr (o tanh(c')). (Hochreiter and Schmidhuber 1997)"""
    h, c = state
    i, f, g, o = chunk(linear(h, w_hh, b_hh) + linear(x, w_ih, b_ih), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
    return (h if w_hr is None else linear(h, w_hr)), c


def gru_step(x: Tensor, state: State, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> State:
    """h' = (1 - z) n + z h, with n = tanh(W_in x + b_in + r (W_hn h + b_hn)). (Cho et al. 2014)"""
    (h,) = state
    x_r, x_z, x_n = chunk(linear(x, w_ih, b_ih), 3, 1)
    h_r, h_z, h_n = chunk(linear(h, w_hh, b_hh), 3, 1)
    r, z = sigmoid(h_r + x_r), sigmoid(h_z + x_z)
    n = tanh(h_n * r + x_n)
    return ((h - n) * z + n,)


STEPS = {"LSTM": lstm_step, "GRU": gru_step, "RNN_TANH": plain_step(tanh), "RNN_RELU": plain_step(relu)}


# ------------------------------------------------------------------------------------------------------------------ sequences
@with_shared_texts
class RNNBase(Module):
    """What the recurrent layers share: arguments, parameters, checks and the loop over layers, directions and steps."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                UserWarning,
                stacklevel=3,
            )
        check_sizes(bias, batch_first, input_size, hidden_size)
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates, out = GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self.directions]:
                inputs = out * self.directions if layer else input_size
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, inputs), "weight_hh": (gates, out)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{suffix}", unset(*shape, device=device, dtype=dtype))
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: there is no library here that wants the weights in one block."""

    @property
    def directions(self) -> int:
        """1, or 2 if the sequence is also read from its end."""
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        shown = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *shown])

    def check_input(self, input: Tensor) -> None:
        """Refuse another dtype than the weights', or another number of columns than `input_size`."""
        weights = self.weight_ih_l0.dtype
        if input.dtype != weights:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weights}). "
                + advice(f"Convert input: input.to({weights}), or convert model: model.to({input.dtype})")
            )
        if self.input_size != input.shape[-1]:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")

    def run(self, input: Tensor, given: State | None, widths: tuple[int, ...], labels: tuple[str, ...]) -> tuple[Tensor, State]:
        """The outputs of the last layer, and the last states; for input with or without a batch axis.

        given: the first states, of these widths each, or None for zeros; labels: what errors call them.
        """
        batched, axis = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(axis)
            given = given and tuple([state.unsqueeze(1) for state in given])
        self.check_input(input)
        count, batch = self.num_layers * self.directions, input.shape[axis]
        if given is None:
            given = tuple([zeros(count, batch, width, dtype=input.dtype, device=input.device) for width in widths])
        for label, state, width in zip(labels, given, widths, strict=True):
            if tuple(state.shape) != (count, batch, width):
                raise RuntimeError(f"Expected {label} size {(count, batch, width)}, got {list(state.shape)}")
        output, last = self.layers((input.transpose(0, 1) if self.batch_first else input).unbind(), given)
        output = output.transpose(0, 1) if self.batch_first else output
        return (output, last) if batched else (output.squeeze(axis), tuple([state.squeeze(1) for state in last]))

    def layers(self, xs: tuple[Tensor, ...], given: State) -> tuple[Tensor, State]:
        """The loop: over layers, directions and steps."""
        if not xs:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        step, last = STEPS[self.mode], []
        weights: list[list[Any]] = self.all_weights
        if self.proj_size and not self.bias:  # the projection stands behind the biases
            weights = [[w_ih, w_hh, None, None, w_hr] for w_ih, w_hh, w_hr in weights]
        starts = list(zip(*[state.unbind() for state in given], strict=True))
        for layer in range(self.num_layers):
            found = []
            for direction in range(self.directions):
                at = layer * self.directions + direction
                state, hs = starts[at], []
                for x in reversed(xs) if direction else xs:
                    state = step(x, state, *weights[at])
                    hs.append(state[0])
                last.append(state)
                found.append(hs[::-1] if direction else hs)
            if layer < self.num_layers - 1:
                xs = tuple([cat(pair, 1) for pair in zip(*found, strict=True)] if self.bidirectional else found[0])
                if self.dropout and self.training:
                    xs = tuple([dropout(x, self.dropout, True) for x in xs])
        output = cat([stack(hs) for hs in found], 2) if self.bidirectional else stack(found[0])
        return output, tuple([stack(states) for states in zip(*last, strict=True)])

    def checked_hidden(self, input: Tensor, hx: Tensor | None, word: str) -> None:
        """Refuse ranks that do not fit."""
        dims = input.dim()
        if dims not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {dims}D{word} instead")
        if hx is not None and hx.dim() != dims:
            kind = "unbatched 2-D" if dims == 2 else "batched 3-D"
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")


def check_sizes(bias: Any, batch_first: Any, input_size: Any, hidden_size: Any) -> None:
    """Refuse arguments of other types, and sizes that are not positive."""
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


@with_shared_texts
class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or with relu.

    Input (T, N, inputs), or (N, T, inputs) if `batch_first`, or (T, inputs), and first states (layers · directions, N, hidden)
    give the outputs (T, N, directions · hidden) and the last states.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int | None = None,
    ) -> None:
        refuse_projections(proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        self.checked_hidden(input, hx, " tensor")
        output, (last,) = self.run(input, None if hx is None else (hx,), (self.hidden_size,), ("hidden",))
        return output, last


@with_shared_texts
class GRU(RNNBase):
    """Gated recurrent units; shapes as of `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        proj_size: int | None = None,
    ) -> None:
        refuse_projections(proj_size)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        self.checked_hidden(input, hx, "")
        output, (last,) = self.run(input, None if hx is None else (hx,), (self.hidden_size,), ("hidden",))
        return output, last


@with_shared_texts
class LSTM(RNNBase):
    """Long short-term memory; shapes as of `RNN`, with two states (h, c). With `proj_size` h has that width."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        )

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        self.checked_hidden(input, None, "")
        if hx is not None:
            h, c, dims = hx[0].dim(), hx[1].dim(), input.dim()
            if h != dims or c != dims:
                kind = "unbatched 2-D" if dims == 2 else "batched 3-D"
                raise RuntimeError(f"For {kind} input, hx and cx should also be {dims}-D but got ({h}-D, {c}-D) tensors")
            hx = hx[0], hx[1]
        widths = self.proj_size or self.hidden_size, self.hidden_size
        output, (h_last, c_last) = self.run(input, hx, widths, ("hidden[0]", "hidden[1]"))
        return output, (h_last, c_last)


def refuse_projections(proj_size: int | None) -> None:
    """Only LSTM has projections."""
    if proj_size is not None:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


# ---------------------------------------------------------------------------------------------------------------------- cells
@with_shared_texts
class RNNCellBase(Module):
    """What the cells share: parameters, checks and the batch axis."""

    mode: str
    nonlinearity = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = unset(gates, input_size, device=device, dtype=dtype)
        self.weight_hh = unset(gates, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, unset(gates, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        return shown if self.nonlinearity == "tanh" else f"{shown}, nonlinearity={self.nonlinearity}"

    def step(self, input: Tensor, given: State | None, labels: tuple[str, ...]) -> State:
        """The next states, of input (N, inputs) or (inputs,); errors call the states given by `labels`."""
        cell = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{cell}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for label, state in zip(labels, given or (), strict=False):
            if state.dim() not in (1, 2):
                raise ValueError(f"{cell}: Expected {label} to be 1D or 2D, got {state.dim()}D instead")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            given = given and tuple([state.unsqueeze(0) for state in given])
        batch, columns = input.shape
        if given is None:
            given = (zeros(batch, self.hidden_size, dtype=input.dtype, device=input.device),) * len(labels)
        if columns != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {columns} expected {self.input_size}")
        for number, state in enumerate(given):
            if state.shape[0] != batch:
                raise RuntimeError(f"Input batch size {batch} doesn't match hidden{number} batch size {state.shape[0]}")
            if state.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {self.hidden_size}"
                )
        made = STEPS[self.mode](input, given, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return made if batched else tuple([state.squeeze(0) for state in made])


@with_shared_texts
class RNNCell(RNNCellBase):
    """One step of `RNN`: (N, inputs) and (N, hidden), or without N, to the next (N, hidden)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    @property
    def mode(self) -> str:  # type: ignore[override]
        """Which step to take."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step(input, None if hx is None else (hx,), ("hidden",))[0]


@with_shared_texts
class GRUCell(RNNCellBase):
    """One step of `GRU`: (N, inputs) and (N, hidden), or without N, to the next (N, hidden)."""

    mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step(input, None if hx is None else (hx,), ("hidden",))[0]


@with_shared_texts
class LSTMCell(RNNCellBase):
    """One step of `LSTM`: (N, inputs) and ((N, hidden), (N, hidden)), or without N, to the next (h, c)."""

    mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self.step(input, hx, ("hx[0]", "hx[1]"))
        return h, c
