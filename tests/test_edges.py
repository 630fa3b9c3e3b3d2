"""What stands at the edge of an operator's arguments and is no line of `operators/rows`: every function on 0-d tensors, layers
with few parameters, bags that end early."""
from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradlab
from gradlab.nn import functional, init

PLACES = {"gradlab": gradlab, "functional": functional, "init": init, "special": gradlab.special, "linalg": gradlab.linalg,
          "Tensor": gradlab.Tensor}
MORE = (), (0.5,), (2,), (True,), (False,), (0, 1), (-1.0, 1.0), "t", "tn"                   # t: such a tensor, n: an integer one
SETTINGS = "set_", "manual_seed", "seed", "use_", "inference_mode", "compile", "save", "load"


def zero_d() -> list[Any]:
    return [gradlab.tensor(0.5), gradlab.tensor(0.5, dtype=gradlab.half), gradlab.tensor(0.5, requires_grad=True),
            gradlab.tensor(2), gradlab.tensor(True)]


def functions() -> Iterator[tuple[str, str]]:
    for place, module in PLACES.items():
        public = getattr(module, "__all__", dir(module))
        for name in dir(module):
            function = getattr(module, name, None)
            if isinstance(function, types.FunctionType) and not name.startswith(("_", *SETTINGS)) and name in public:
                yield place, name


def tensors(result: Any) -> Iterator[Any]:
    if isinstance(result, gradlab.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from tensors(part)


def test_no_result_is_a_number_of_numpy() -> None:
    """NumPy makes numbers of 0-d arrays at every turn; a tensor holds an array."""
    odd, called = set(), 0
    with warnings.catch_warnings(), gradlab.random.fork_rng():
        warnings.simplefilter("ignore")
        for place, name in functions():
            function = getattr(PLACES[place], name)
            for more in MORE:
                for i in range(len(zero_d())):
                    given = [zero_d()[i], *(zero_d()[i if m == "t" else 3] if isinstance(m, str) else m for m in more)]
                    made = None
                    with contextlib.suppress(Exception):                                 # not what it takes
                        made = function(*given)
                        called += 1
                    odd |= {(place, name) for x in (*tensors(made), *tensors(given)) if type(x.array) is not np.ndarray}
    assert called > 3000
    assert not odd


def test_lstm_with_projections_and_no_biases() -> None:
    """By hand: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = W_hr (sigmoid(o) tanh(c'))."""
    gradlab.manual_seed(0)
    layer = gradlab.nn.LSTM(2, 3, num_layers=2, proj_size=2, bias=False)
    x = gradlab.randn(4, 1, 2)
    found, _ = layer(x)

    def sigmoid(v: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-v))

    rows = [np.asarray(row) for row in x.numpy()]
    for k in range(2):
        w_ih, w_hh, w_hr = (getattr(layer, f"weight_{part}_l{k}").detach().numpy() for part in ("ih", "hh", "hr"))
        h, c, out = np.zeros((1, 2)), np.zeros((1, 3)), []
        for row in rows:
            i, f, g, o = np.split(row @ w_ih.T + h @ w_hh.T, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = (sigmoid(o) * np.tanh(c)) @ w_hr.T
            out.append(h)
        rows = out
    assert np.allclose(found.detach().numpy(), np.stack(rows), atol=1e-6)


@pytest.mark.parametrize(("mode", "expected"), [("sum", [[3.0], [4.0]]), ("mean", [[1.5], [4.0]]), ("max", [[2.0], [4.0]])])
def test_what_lies_behind_the_last_offset_is_in_no_bag(mode: str, expected: list[list[float]]) -> None:
    """(torch divides the mean of the last bag by the number of all that follow.)"""
    table = gradlab.tensor([[1.0], [2.0], [4.0]], requires_grad=True)
    found = functional.embedding_bag(gradlab.tensor([0, 1, 2, 1]), table, gradlab.tensor([0, 2, 3]), mode=mode,
                                     include_last_offset=True)
    assert found.tolist() == expected
    found.sum().backward()
    assert table.grad.tolist() == {"sum": [[1], [1], [1]], "mean": [[0.5], [0.5], [1]], "max": [[0], [1], [1]]}[mode]


def test_weights_of_what_is_in_no_bag_get_no_gradient() -> None:
    table, weights = gradlab.tensor([[1.0], [2.0], [4.0]]), gradlab.ones(4, requires_grad=True)
    functional.embedding_bag(gradlab.tensor([0, 1, 2, 1]), table, gradlab.tensor([0, 2, 3]), mode="sum", include_last_offset=True,
                             per_sample_weights=weights).sum().backward()
    assert weights.grad.tolist() == [1, 2, 4, 0]
