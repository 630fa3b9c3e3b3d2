"""A recurrent layer over a whole sequence as one operation, for NumPy arrays in single or double precision.

Work that does not depend on the state is done for all steps at once. In the forward pass these are the products with the inputs,
in the backward pass the derivatives of the activations (before the steps) and the gradients of weights, biases and inputs (after
them). Each step has one product with the state and a few loops over arrays of shape (N, gates · H). The formulas are those of
`recurrence`. Its steps are recorded one by one if there are observers (`core.observers`) or if the backward pass must be
differentiable.

Arrays are in the order of the sequence, even if it is read from its end: then the steps run backwards. Shapes: x (T, N, I),
states (N, H), weights (gates · H, I) and (gates · H, H).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradlab.autograd.function import Function
from gradlab.autograd.functions import grad
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules.recurrence import STEPS, State
from gradlab.ops import stack

Array = Any


def is_one_operation(mode: str, tensors: Iterable[Tensor]) -> bool:
    """Return True if a layer with these inputs, states and weights can run as one operation."""
    arrays = [x.array for x in tensors]
    kind = arrays[0].dtype
    return (
        mode in SEQUENCES
        and not OBSERVERS
        and kind.char in "fd"
        and all(type(a) is np.ndarray and a.dtype is kind for a in arrays)
    )


def run_steps(name: str, xs: Iterable[Tensor], state: State, weights: Iterable[Any], reverse: bool) -> tuple[list[Tensor], State]:
    """Run one layer and direction step by step. Return h of each step, in the order of the sequence, and the last state."""
    step, hs = STEPS[name], []
    for x in reversed(list(xs)) if reverse else xs:
        state = step(x, state, *weights)
        hs.append(state[0])
    return hs[::-1] if reverse else hs, state


class Sequence(Function):
    """One layer and direction: apply(reverse, count, x, *states, w_ih, w_hh, *biases) -> (h (T, N, H), *last states).

    `count` is the number of states. Subclasses define the arithmetic: `run` returns (h of each step, last states, arrays to
    save), and `sweep` computes from the cotangents of h and the last states those of the first states, of the products with the
    inputs, and of the products with the state.
    """

    mode: str
    run: Callable[..., tuple[Array, list[Array], tuple[Array, ...]]]
    sweep: Callable[..., tuple[list[Array], Array, Array]]

    @staticmethod
    def forward(ctx: Any, reverse: bool, count: int, *tensors: Tensor) -> Any:
        x, *arrays = [tensor.array for tensor in tensors]
        states, weights, biases = arrays[:count], arrays[count : count + 2], arrays[count + 2 :]
        order = range(len(x) - 1, -1, -1) if reverse else range(len(x))
        with np.errstate(all="ignore"):  # no warnings about inf and NaN, as in all operations
            y, last, kept = ctx._forward_cls.run(x, states, *weights, biases, order)
        output = constant(y)
        ctx.settings = order, count, len(tensors)
        ctx.save_for_backward(*tensors, output, *map(constant, kept))
        return output, *map(constant, last)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        order, count, number = ctx.settings
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[2:]
        tensors = saved[:number]
        if mode.grad:
            return None, None, *differentiable_gradients(ctx._forward_cls.mode, tensors, count, order, needed, cotangents)
        x, *arrays = [tensor.array for tensor in tensors]
        y, *kept = [tensor.array for tensor in saved[number:]]
        states, (w_ih, w_hh), biases = arrays[:count], arrays[count : count + 2], arrays[count + 2 :]
        before = previous_states(states[0], y, order)
        arrived = [cotangents[0].array, *[cotangent.array.copy() for cotangent in cotangents[1:]]]
        of_states, *slopes = ctx._forward_cls.sweep(arrived, y, before, states, w_hh, kept, order)
        of_inputs, of_products = [slope.reshape(-1, len(w_ih)) for slope in slopes]
        gradients = [(of_inputs @ w_ih).reshape(x.shape) if needed[0] else None, *of_states]
        gradients += [of_inputs.T @ x.reshape(-1, x.shape[-1]), of_products.T @ before.reshape(-1, before.shape[-1])]
        gradients += [of_inputs.sum(0), of_products.sum(0)] if biases else []
        return None, None, *[None if gradient is None else constant(gradient) for gradient in gradients]


class LSTMSequence(Sequence):
    """All steps of an LSTM layer. It saves the gates i, f, g, o after their activations, each c and its tanh."""

    mode = "LSTM"

    @staticmethod
    def run(x: Array, states: list[Array], w_ih: Array, w_hh: Array, biases: list[Array], order: range) -> Any:
        h, c = states
        size = h.shape[-1]
        gates, back = input_products(x, w_ih, biases), np.ascontiguousarray(w_hh.T)
        y, cells, curves = (np.empty((*x.shape[:2], size), x.dtype) for _ in range(3))
        product, g = np.empty_like(gates[0]), np.empty_like(h)
        for t in order:
            gate, cell = gates[t], cells[t]
            np.matmul(h, back, out=product)
            gate += product
            np.tanh(gate[:, 2 * size : 3 * size], out=g)
            logistic(gate)
            gate[:, 2 * size : 3 * size] = g
            np.multiply(gate[:, size : 2 * size], c, out=cell)
            g *= gate[:, :size]
            cell += g
            np.tanh(cell, out=curves[t])
            np.multiply(gate[:, 3 * size :], curves[t], out=y[t])
            h, c = y[t], cell
        return y, [h.copy(), c.copy()], (gates, cells, curves)

    @staticmethod
    def sweep(
        arrived: list[Array], y: Array, before: Array, states: list[Array], w_hh: Array, kept: list[Array], order: range
    ) -> tuple[list[Array], Array, Array]:
        gates, cells, curves = kept
        length, batch, size = y.shape
        i, f, g, o = (gates[:, :, k * size : (k + 1) * size] for k in range(4))
        dy, dh, dc = arrived
        slopes = np.empty(
            (length, batch, 4, size), y.dtype
        )  # derivatives of c by the gates i, f, g and of h by o, before their activations
        np.multiply(g * i, 1 - i, out=slopes[:, :, 0])
        np.multiply(previous_states(states[1], cells, order) * f, 1 - f, out=slopes[:, :, 1])
        np.multiply(i, 1 - g * g, out=slopes[:, :, 2])
        np.multiply(curves * o, 1 - o, out=slopes[:, :, 3])
        into_cell = o * (1 - curves * curves)
        flat, part = slopes.reshape(length, batch, 4 * size), np.empty_like(dh)
        for t in reversed(order):
            slope = slopes[t]
            dh += dy[t]
            np.multiply(dh, into_cell[t], out=part)
            dc += part
            slope[:, :3] *= dc[:, None]
            slope[:, 3] *= dh
            np.matmul(flat[t], w_hh, out=dh)
            dc *= f[t]
        return [dh, dc], flat, flat


class GRUSequence(Sequence):
    """All steps of a GRU layer. It saves r, z, n, and the product with the state that is multiplied by r."""

    mode = "GRU"

    @staticmethod
    def run(x: Array, states: list[Array], w_ih: Array, w_hh: Array, biases: list[Array], order: range) -> Any:
        (h,) = states
        size = h.shape[-1]
        gates, back = input_products(x, w_ih, biases[:1]), np.ascontiguousarray(w_hh.T)
        y, products = (np.empty((*x.shape[:2], size), x.dtype) for _ in range(2))
        product = np.empty_like(gates[0])
        for t in order:
            rz, n = gates[t, :, : 2 * size], gates[t, :, 2 * size :]
            np.matmul(h, back, out=product)
            for bias in biases[1:]:
                product += bias
            rz += product[:, : 2 * size]
            logistic(rz)
            products[t] = product[:, 2 * size :]
            np.multiply(rz[:, :size], products[t], out=y[t])
            n += y[t]
            np.tanh(n, out=n)
            np.subtract(h, n, out=y[t])
            y[t] *= rz[:, size:]
            y[t] += n
            h = y[t]
        return y, [h.copy()], (gates, products)

    @staticmethod
    def sweep(
        arrived: list[Array], y: Array, before: Array, states: list[Array], w_hh: Array, kept: list[Array], order: range
    ) -> tuple[list[Array], Array, Array]:
        gates, products = kept
        size = y.shape[-1]
        r, z, n = (gates[:, :, k * size : (k + 1) * size] for k in range(3))
        dy, dh = arrived
        of_products = np.empty_like(gates)
        into_z, into_n, into_r = (before - n) * z * (1 - z), (1 - z) * (1 - n * n), products * r * (1 - r)
        kept_on = np.empty_like(dh)
        for t in reversed(order):
            slope = of_products[t]
            dh += dy[t]
            into_n[t] *= dh
            np.multiply(into_n[t], into_r[t], out=slope[:, :size])
            np.multiply(dh, into_z[t], out=slope[:, size : 2 * size])
            np.multiply(into_n[t], r[t], out=slope[:, 2 * size :])
            np.multiply(dh, z[t], out=kept_on)
            np.matmul(slope, w_hh, out=dh)
            dh += kept_on
        of_inputs = of_products.copy()
        of_inputs[:, :, 2 * size :] = into_n
        return [dh], of_inputs, of_products


class PlainSequence(Sequence):
    """All steps of a plain layer, which saves only its output."""

    @classmethod
    def run(cls, x: Array, states: list[Array], w_ih: Array, w_hh: Array, biases: list[Array], order: range) -> Any:
        (h,) = states
        y, back = input_products(x, w_ih, biases), np.ascontiguousarray(w_hh.T)
        product = np.empty_like(h)
        for t in order:
            np.matmul(h, back, out=product)
            h = y[t]
            h += product
            cls.activate(h)
        return y, [h.copy()], ()

    @classmethod
    def sweep(
        cls, arrived: list[Array], y: Array, before: Array, states: list[Array], w_hh: Array, kept: list[Array], order: range
    ) -> tuple[list[Array], Array, Array]:
        dy, dh = arrived
        slopes = cls.slope(y)
        for t in reversed(order):
            dh += dy[t]
            slopes[t] *= dh
            np.matmul(slopes[t], w_hh, out=dh)
        return [dh], slopes, slopes

    @staticmethod
    def activate(h: Array) -> None:
        """Apply the activation in place."""

    @staticmethod
    def slope(y: Array) -> Array:
        """Return the derivative of the activation, computed from its result."""


class TanhSequence(PlainSequence):
    mode = "RNN_TANH"

    @staticmethod
    def activate(h: Array) -> None:
        np.tanh(h, out=h)

    @staticmethod
    def slope(y: Array) -> Array:
        return 1 - y * y


class ReluSequence(PlainSequence):
    mode = "RNN_RELU"

    @staticmethod
    def activate(h: Array) -> None:
        np.maximum(h, 0, out=h)

    @staticmethod
    def slope(y: Array) -> Array:
        return (y > 0).astype(y.dtype)


SEQUENCES: dict[str, type[Sequence]] = {one.mode: one for one in (LSTMSequence, GRUSequence, TanhSequence, ReluSequence)}


def differentiable_gradients(
    name: str, tensors: tuple[Tensor, ...], count: int, order: range, needed: tuple[bool, ...], cotangents: tuple[Tensor, ...]
) -> list[Tensor | None]:
    """Compute differentiable gradients, by recording the layer step by step."""
    x, states, weights = tensors[0], tuple(tensors[1 : 1 + count]), tensors[1 + count :]
    hs, last = run_steps(name, x.unbind(), states, weights, order.step < 0)
    wanted = [tensor for tensor, want in zip(tensors, needed, strict=True) if want]
    gradients = iter(grad((stack(hs), *last), wanted, cotangents, create_graph=True, allow_unused=True))
    return [next(gradients) if want else None for want in needed]


def previous_states(first: Array, states: Array, order: range) -> Array:
    """Return the state before each step."""
    before = np.empty_like(states)
    if order.step < 0:
        before[-1], before[:-1] = first, states[1:]
    else:
        before[0], before[1:] = first, states[:-1]
    return before


def input_products(x: Array, w_ih: Array, biases: list[Array]) -> Array:
    """Return the products of all inputs with the weights, plus biases: (T, N, gates · H)."""
    length, batch, width = x.shape
    products = x.reshape(length * batch, width) @ w_ih.T
    for bias in biases:
        products += bias
    return products.reshape(length, batch, len(w_ih))


def logistic(x: Array) -> None:
    """Compute 1 / (1 + e^(-x)) in place."""
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1
    np.reciprocal(x, out=x)
