"""Recurrent cells: one step of a recurrent layer, with its own parameters."""

from __future__ import annotations

import math
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import init
from gradlab.nn.modules.bases import empty_parameter
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.recurrence import STEPS, State
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.ops.creation import zeros

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


@with_shared_texts
class RNNCellBase(Module):
    """Base of the cells: parameters, checks and the batch dimension.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    bias : bool, optional
        Whether there are biases (default: True).
    num_chunks : int
        Number of gates.
    {device}
    {dtype}

    Examples
    --------
    >>> from gradlab import nn
    >>> isinstance(nn.GRUCell(3, 4), nn.RNNCellBase)
    True
    """

    mode: str
    nonlinearity = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = empty_parameter(gates, input_size, device=device, dtype=dtype)
        self.weight_hh = empty_parameter(gates, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter(gates, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.GRUCell(2, 3)
        >>> before = layer.weight_hh.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight_hh == before).any())
        False
        """
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        return shown if self.nonlinearity == "tanh" else f"{shown}, nonlinearity={self.nonlinearity}"

    def step(self, input: Tensor, given: State | None, labels: tuple[str, ...]) -> State:
        """Return the next states for input (N, inputs) or (inputs,). `labels` name the given states in errors."""
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
    """One step of `RNN`: tanh(W_ih x + b_ih + W_hh h + b_hh), or with ReLU.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    bias : bool, optional
        Whether there are biases (default: True).
    nonlinearity : str, optional
        "tanh" (the default) or "relu".
    {device}
    {dtype}

    Attributes
    ----------
    weight_ih : Parameter of shape (hidden_size, input_size)
        Initialised uniformly within ±1/√hidden_size, as are all parameters.
    weight_hh : Parameter of shape (hidden_size, hidden_size)
        Weights of the state.
    bias_ih, bias_hh : Parameter of shape (hidden_size,), or None
        The biases.

    Notes
    -----
    Input: (N, input_size) or (input_size). State (default: zeros): (N, hidden_size) or (hidden_size). Output: the
    next state.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.RNNCell(3, 4)(gradlab.zeros(2, 3)).shape == (2, 4)
    True
    """

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
        """Name of the step function."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step(input, None if hx is None else (hx,), ("hidden",))[0]


@with_shared_texts
class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    bias : bool, optional
        Whether there are biases (default: True).
    {device}
    {dtype}

    Attributes
    ----------
    weight_ih : Parameter of shape (3 hidden_size, input_size)
        Initialised uniformly within ±1/√hidden_size, as are all parameters.
    weight_hh : Parameter of shape (3 hidden_size, hidden_size)
        Weights of the state.
    bias_ih, bias_hh : Parameter of shape (3 hidden_size,), or None
        The biases.

    Notes
    -----
    Input: (N, input_size) or (input_size). State (default: zeros): (N, hidden_size) or (hidden_size). Output: the
    next state.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.GRUCell(3, 4)(gradlab.zeros(2, 3)).shape == (2, 4)
    True
    """

    mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self.step(input, None if hx is None else (hx,), ("hidden",))[0]


@with_shared_texts
class LSTMCell(RNNCellBase):
    """One step of `LSTM`, with a pair (h, c) as state.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of an input and of a state.
    bias : bool, optional
        Whether there are biases (default: True).
    {device}
    {dtype}

    Attributes
    ----------
    weight_ih : Parameter of shape (4 hidden_size, input_size)
        Initialised uniformly within ±1/√hidden_size, as are all parameters.
    weight_hh : Parameter of shape (4 hidden_size, hidden_size)
        Weights of the state.
    bias_ih, bias_hh : Parameter of shape (4 hidden_size,), or None
        The biases.

    Notes
    -----
    Input: (N, input_size) or (input_size). State (default: zeros): (N, hidden_size) or (hidden_size). Output: the
    next state.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> h, c = nn.LSTMCell(3, 4)(gradlab.zeros(2, 3))
    >>> h.shape == c.shape == (2, 4)
    True
    """

    mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self.step(input, hx, ("hx[0]", "hx[1]"))
        return h, c
