"""Recurrent layers: `RNN`, `LSTM` and `GRU`.

A layer passes its outputs to the next as a list of steps, so that the backward pass does not create a sequence of zeros for the
gradient of each step. Weights of layer k are `weight_ih_lk` (gates · hidden, inputs), `weight_hh_lk`, `bias_ih_lk`, `bias_hh_lk`,
with `_reverse` for the reverse direction. Gates are stacked in the order i, f, g, o (LSTM) and r, z, n (GRU). All parameters are
initialised uniformly within ±1/√hidden_size.
"""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from gradlab.core.errors import advice
from gradlab.core.tensor import Tensor
from gradlab.nn import init
from gradlab.nn.functional import dropout
from gradlab.nn.modules.bases import empty_parameter
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.recurrence import GATES, State, check_sizes
from gradlab.nn.modules.recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from gradlab.nn.modules.sequences import SEQUENCES, is_one_operation, run_steps
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.ops import cat, stack
from gradlab.ops.creation import zeros

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


# ------------------------------------------------------------------------------------------------------------------ sequences
@with_shared_texts
class RNNBase(Module):
    """Base of `RNN`, `LSTM` and `GRU`: settings, parameters, checks and the loop over layers and steps.

    Parameters
    ----------
    mode : str
        "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
    input_size, hidden_size : int
        Sizes of an input and of a state.
    num_layers : int, optional
        Number of layers; each takes the outputs of the previous one (default: 1).
    bias : bool, optional
        Whether there are biases (default: True).
    batch_first : bool, optional
        Whether the batch dimension comes before the time dimension.
    dropout : float, optional
        Probability of dropout between layers (default: 0).
    bidirectional : bool, optional
        Run each layer in both directions, and concatenate the outputs.
    proj_size : int, optional
        Size to which h is projected (default: 0, no projection).
    {device}
    {dtype}

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive int, `dropout` is not between 0 and 1, or `proj_size` is not supported.
    RuntimeError
        If the shape of the input or the state does not fit.

    Examples
    --------
    >>> from gradlab import nn
    >>> isinstance(nn.GRU(3, 4), nn.RNNBase)
    True
    """

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
                    setattr(self, f"{name}_l{layer}{suffix}", empty_parameter(*shape, device=device, dtype=dtype))
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.GRU(2, 3)
        >>> before = layer.weight_hh_l0.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight_hh_l0 == before).any())
        False
        """
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """No-op, for compatibility: PyTorch stores the weights in one block for cuDNN.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.GRU(2, 3).flatten_parameters()
        """

    @property
    def directions(self) -> int:
        """Number of directions: 2 if bidirectional, otherwise 1."""
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        shown = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *shown])

    def check_input(self, input: Tensor) -> None:
        """Raise unless the input has the dtype of the weights and `input_size` columns."""
        weights = self.weight_ih_l0.dtype
        if input.dtype != weights:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weights}). "
                + advice(f"Convert input: input.to({weights}), or convert model: model.to({input.dtype})")
            )
        if self.input_size != input.shape[-1]:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")

    def run(self, input: Tensor, given: State | None, widths: tuple[int, ...], labels: tuple[str, ...]) -> tuple[Tensor, State]:
        """Return the outputs of the last layer and the last states, for input with or without a batch axis.

        `given` are the first states, of these widths, or None for zeros. `labels` name them in errors.
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
        output, last = self.layers(input.transpose(0, 1) if self.batch_first else input, given)
        output = output.transpose(0, 1) if self.batch_first else output
        return (output, last) if batched else (output.squeeze(axis), tuple([state.squeeze(1) for state in last]))

    def layers(self, x: Tensor, given: State) -> tuple[Tensor, State]:
        """Run all layers and directions, each as one operation or step by step."""
        if not len(x):
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        weights: list[list[Any]] = self.all_weights
        whole = not self.proj_size and is_one_operation(self.mode, [x, *given, *[w for several in weights for w in several]])
        if self.proj_size and not self.bias:  # the projection follows the biases
            weights = [[w_ih, w_hh, None, None, w_hr] for w_ih, w_hh, w_hr in weights]
        starts = list(zip(*[state.unbind() for state in given], strict=True))
        xs: Any = x if whole else x.unbind()
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self.directions):
                at = layer * self.directions + direction
                if whole:
                    hs, *state = SEQUENCES[self.mode].apply(bool(direction), len(given), xs, *starts[at], *weights[at])
                else:
                    hs, state = run_steps(self.mode, xs, starts[at], weights[at], bool(direction))
                last.append(state)
                outputs.append(hs)
            joined = self.bidirectional and (whole or layer < self.num_layers - 1)
            if whole:
                xs = cat(outputs, 2) if joined else outputs[0]
            elif layer < self.num_layers - 1:
                xs = tuple([cat(pair, 1) for pair in zip(*outputs, strict=True)] if joined else outputs[0])
            else:
                xs = cat([stack(hs) for hs in outputs], 2) if self.bidirectional else stack(outputs[0])
            if layer < self.num_layers - 1 and self.dropout and self.training:
                xs = dropout(xs, self.dropout, True) if whole else tuple([dropout(one, self.dropout, True) for one in xs])
        return xs, tuple([stack(states) for states in zip(*last, strict=True)])

    def check_hidden(self, input: Tensor, hx: Tensor | None, word: str) -> None:
        """Raise if the numbers of dimensions do not fit."""
        dims = input.dim()
        if dims not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {dims}D{word} instead")
        if hx is not None and hx.dim() != dims:
            kind = "unbatched 2-D" if dims == 2 else "batched 3-D"
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")


@with_shared_texts
class RNN(RNNBase):
    """Elman network: h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or with ReLU.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    num_layers : int, optional
        Number of layers; each takes the outputs of the previous one (default: 1).
    nonlinearity : str, optional
        "tanh" (the default) or "relu".
    bias : bool, optional
        Whether there are biases (default: True).
    batch_first : bool, optional
        Whether the batch dimension comes before the time dimension.
    dropout : float, optional
        Probability of dropout between layers (default: 0).
    bidirectional : bool, optional
        Run each layer in both directions, and concatenate the outputs.
    {device}
    {dtype}
    proj_size : int, optional
        Not supported: only `LSTM` has projections.

    Attributes
    ----------
    weight_ih_lk : Parameter of shape (hidden_size, inputs)
        Input weights of layer k, with the suffix `_reverse` for the reverse direction. All parameters are initialised
        uniformly within ±1/√hidden_size.
    weight_hh_lk : Parameter of shape (hidden_size, hidden_size)
        Weights of the state.
    bias_ih_lk, bias_hh_lk : Parameter of shape (hidden_size,)
        The biases.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive int, `dropout` is not between 0 and 1, or `proj_size` is not supported.
    RuntimeError
        If the shape of the input or the state does not fit.

    Notes
    -----
    Input: (T, N, input_size); (N, T, input_size) if `batch_first`; or (T, input_size). State, zeros unless given:
    (layers · directions,
    N, hidden_size). Output: (T, N, directions · hidden_size), and the last states.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> output, state = nn.RNN(3, 4)(gradlab.zeros(5, 2, 3))
    >>> output.shape == (5, 2, 4)
    True
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
        self.check_hidden(input, hx, " tensor")
        output, (last,) = self.run(input, None if hx is None else (hx,), (self.hidden_size,), ("hidden",))
        return output, last


@with_shared_texts
class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014).

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    num_layers : int, optional
        Number of layers; each takes the outputs of the previous one (default: 1).
    bias : bool, optional
        Whether there are biases (default: True).
    batch_first : bool, optional
        Whether the batch dimension comes before the time dimension.
    dropout : float, optional
        Probability of dropout between layers (default: 0).
    bidirectional : bool, optional
        Run each layer in both directions, and concatenate the outputs.
    {device}
    {dtype}
    proj_size : int, optional
        Not supported: only `LSTM` has projections.

    Attributes
    ----------
    weight_ih_lk : Parameter of shape (3 hidden_size, inputs)
        Input weights of layer k, with the suffix `_reverse` for the reverse direction. All parameters are initialised
        uniformly within ±1/√hidden_size.
    weight_hh_lk : Parameter of shape (3 hidden_size, hidden_size)
        Weights of the state.
    bias_ih_lk, bias_hh_lk : Parameter of shape (3 hidden_size,)
        The biases.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive int, `dropout` is not between 0 and 1, or `proj_size` is not supported.
    RuntimeError
        If the shape of the input or the state does not fit.

    Notes
    -----
    h' = (1 - z) n + z h, with n = tanh(W_in x + b_in + r (W_hn h + b_hn)), and r, z logistic functions with their own weights.
    The rows of the weights are in the order r, z, n.

    Input: (T, N, input_size); (N, T, input_size) if `batch_first`; or (T, input_size). State, zeros unless given:
    (layers · directions,
    N, hidden_size). Output: (T, N, directions · hidden_size), and the last states.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> output, state = nn.GRU(3, 4)(gradlab.zeros(5, 2, 3))
    >>> output.shape == (5, 2, 4)
    True
    """

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
        self.check_hidden(input, hx, "")
        output, (last,) = self.run(input, None if hx is None else (hx,), (self.hidden_size,), ("hidden",))
        return output, last


@with_shared_texts
class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    num_layers : int, optional
        Number of layers; each takes the outputs of the previous one (default: 1).
    bias : bool, optional
        Whether there are biases (default: True).
    batch_first : bool, optional
        Whether the batch dimension comes before the time dimension.
    dropout : float, optional
        Probability of dropout between layers (default: 0).
    bidirectional : bool, optional
        Run each layer in both directions, and concatenate the outputs.
    proj_size : int, optional
        Size to which h is projected (default: 0, no projection).
    {device}
    {dtype}

    Attributes
    ----------
    weight_ih_lk : Parameter of shape (4 hidden_size, inputs)
        Input weights of layer k, with the suffix `_reverse` for the reverse direction. All parameters are initialised
        uniformly within ±1/√hidden_size.
    weight_hh_lk : Parameter of shape (4 hidden_size, hidden_size)
        Weights of the state.
    bias_ih_lk, bias_hh_lk : Parameter of shape (4 hidden_size,)
        The biases.
    weight_hr_lk : Parameter of shape (proj_size, hidden_size)
        Weights of the projection, if `proj_size` is given.

    Raises
    ------
    ValueError, TypeError
        If a size is not a positive int, `dropout` is not between 0 and 1, or `proj_size` is not supported.
    RuntimeError
        If the shape of the input or the state does not fit.

    Notes
    -----
    c' = f c + i g, h' = o tanh(c'), with logistic functions i, f, o and a tanh g with their own weights. The rows of the weights
    are in the order i, f, g, o. The state is a pair (h, c).

    Input: (T, N, input_size); (N, T, input_size) if `batch_first`; or (T, input_size). State, zeros unless given:
    (layers · directions,
    N, hidden_size). Output: (T, N, directions · hidden_size), and the last states.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> output, state = nn.LSTM(3, 4)(gradlab.zeros(5, 2, 3))
    >>> output.shape == (5, 2, 4)
    True
    """

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
        self.check_hidden(input, None, "")
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
    """Raise if `proj_size` is given: only LSTM has projections."""
    if proj_size is not None:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
