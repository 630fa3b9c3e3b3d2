"""Test edge cases of arguments that `operators/rows` does not cover: 0-d tensors, layers with few parameters, short bags."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradlab
from gradlab.backend import sizes
from gradlab.nn import functional, init

NAMESPACES = {
    "gradlab": gradlab,
    "functional": functional,
    "init": init,
    "special": gradlab.special,
    "linalg": gradlab.linalg,
    "Tensor": gradlab.Tensor,
}
FURTHER_ARGUMENTS = (), (0.5,), (2,), (True,), (False,), (0, 1), (-1.0, 1.0), "t"  # t: another tensor of the same kind
EXCLUDED_PREFIXES = "set_", "manual_seed", "seed", "use_", "inference_mode", "compile", "save", "load"


def zero_d() -> list[Any]:
    return [
        gradlab.tensor(0.5),
        gradlab.tensor(0.5, dtype=gradlab.half),
        gradlab.tensor(0.5, requires_grad=True),
        gradlab.tensor(2),
        gradlab.tensor(True),
    ]


def functions() -> Iterator[tuple[str, str]]:
    for place, module in NAMESPACES.items():
        public = getattr(module, "__all__", dir(module))
        for name in dir(module):
            function = getattr(module, name, None)
            if isinstance(function, types.FunctionType) and not name.startswith(("_", *EXCLUDED_PREFIXES)) and name in public:
                yield place, name


def tensors(result: Any) -> Iterator[Any]:
    if isinstance(result, gradlab.Tensor):
        yield result
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from tensors(part)


@pytest.mark.slow
def test_results_contain_arrays_and_not_numpy_scalars() -> None:
    """Many NumPy operations convert 0-d arrays to scalars. A tensor must always contain an array."""
    odd, called = set(), 0
    with warnings.catch_warnings(), gradlab.random.fork_rng():
        warnings.simplefilter("ignore")
        for place, name in functions():
            function = getattr(NAMESPACES[place], name)
            for more in FURTHER_ARGUMENTS:
                for i in range(len(zero_d())):
                    given = [zero_d()[i], *(zero_d()[i if m == "t" else 3] if isinstance(m, str) else m for m in more)]
                    made = None
                    with contextlib.suppress(Exception):  # the arguments are not valid for this function
                        made = function(*given)
                        called += 1
                    odd |= {(place, name) for x in (*tensors(made), *tensors(given)) if type(x.array) is not np.ndarray}
    assert called > 3000
    assert not odd


def test_lstm_with_projections_and_no_biases() -> None:
    """Compare with the formulas: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = W_hr (sigmoid(o) tanh(c'))."""
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
def test_elements_after_the_last_offset_are_ignored(mode: str, expected: list[list[float]]) -> None:
    """Torch's mean of the last bag is wrong: it divides by the number of all following elements."""
    table = gradlab.tensor([[1.0], [2.0], [4.0]], requires_grad=True)
    found = functional.embedding_bag(
        gradlab.tensor([0, 1, 2, 1]), table, gradlab.tensor([0, 2, 3]), mode=mode, include_last_offset=True
    )
    assert found.tolist() == expected
    found.sum().backward()
    assert table.grad.tolist() == {"sum": [[1], [1], [1]], "mean": [[0.5], [0.5], [1]], "max": [[0], [1], [1]]}[mode]


def test_weights_of_ignored_elements_have_gradient_0() -> None:
    table, weights = gradlab.tensor([[1.0], [2.0], [4.0]]), gradlab.ones(4, requires_grad=True)
    functional.embedding_bag(
        gradlab.tensor([0, 1, 2, 1]),
        table,
        gradlab.tensor([0, 2, 3]),
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weights,
    ).sum().backward()
    assert weights.grad.tolist() == [1, 2, 4, 0]


def index_reduce(x: Any, source: Any, kind: str) -> Any:
    return x.index_reduce(0, gradlab.tensor([0, 2, 0, 3, 2]), source, kind, include_self=False)


@pytest.mark.parametrize("kind", ["prod", "mean", "amax", "amin"])
def test_index_reduce_without_self(kind: str) -> None:
    """Compare values with NumPy and derivatives with numerical ones. Torch's second derivative of the product is wrong."""
    numbers = np.random.default_rng(0)
    x, source = (gradlab.from_numpy(numbers.standard_normal(shape)).requires_grad_() for shape in ((4, 3), (5, 3)))
    reduce = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[kind]
    s = source.detach().numpy()
    expected = np.stack([reduce(s[[0, 2]], 0), x.detach().numpy()[1], reduce(s[[1, 4]], 0), s[3]])
    assert np.allclose(index_reduce(x, source, kind).detach().numpy(), expected)
    assert gradlab.autograd.gradcheck(lambda x, s: index_reduce(x, s, kind), (x, source))
    assert gradlab.autograd.gradgradcheck(lambda x, s: index_reduce(x, s, kind), (x, source))


def test_an_excluded_element_gets_no_gradient() -> None:
    """In torch an excluded element takes a share of the gradient of an extremum, which is lost."""
    source = gradlab.tensor([2.0, 1.0], requires_grad=True)
    gradlab.tensor([2.0]).index_reduce(0, gradlab.tensor([0, 0]), source, "amax", include_self=False).sum().backward()
    assert source.grad.tolist() == [1, 0]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_second_derivatives_of_grid_sample(mode: str, padding: str) -> None:
    """Compare with numerical derivatives, at positions away from the kinks at integers and half-integers."""
    numbers = np.random.default_rng(1)
    image = gradlab.from_numpy(numbers.standard_normal((1, 2, 3, 4))).requires_grad_()
    pixels = numbers.integers(-2, 5, (1, 2, 3, 2)) + numbers.uniform(0.1, 0.4, (1, 2, 3, 2))
    grid = gradlab.from_numpy((2 * pixels + 1) / np.array([4, 3]) - 1).requires_grad_()

    def sample(image: Any, grid: Any) -> Any:
        return functional.grid_sample(image, grid, mode, padding, align_corners=False)

    assert gradlab.autograd.gradcheck(sample, (image, grid))
    assert gradlab.autograd.gradgradcheck(sample, (image, grid))


def test_data_parallel_wraps_the_module() -> None:
    inner = gradlab.nn.Linear(2, 3)
    outer = gradlab.nn.DataParallel(inner, device_ids=[0])
    x = gradlab.ones(4, 2)
    assert gradlab.equal(outer(x), inner(x))
    assert list(outer.state_dict()) == ["module.weight", "module.bias"]
    assert outer.module is inner
    outer.load_state_dict({f"module.{name}": value * 2 for name, value in inner.state_dict().items()})
    assert [name for name, _ in outer.named_parameters()] == ["module.weight", "module.bias"]


def test_cudnn_flags_are_restored() -> None:
    cudnn = gradlab.backends.cudnn
    before = cudnn.enabled, cudnn.benchmark
    with contextlib.suppress(ZeroDivisionError), cudnn.flags(enabled=False, benchmark=True):
        assert (cudnn.enabled, cudnn.benchmark) == (False, True)
        1 / 0  # noqa: B018
    assert (cudnn.enabled, cudnn.benchmark) == before


def test_set_and_resize_of_tensors_that_require_gradients() -> None:
    p = gradlab.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        p.set_(gradlab.zeros(3))
    with gradlab.no_grad():
        p.set_(gradlab.tensor([3.0, 4.0, 5.0]))
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            p.resize_(2)
    (p * p).sum().backward()
    assert p.grad.tolist() == [6, 8, 10]
    with gradlab.inference_mode():
        assert p.resize_(2).tolist() == [3, 4]
        assert gradlab.ones(2, 3).resize_as_(p).shape == (2,)
        made = gradlab.ones(2)
    for write in (lambda: made.resize_(3), lambda: made.set_(gradlab.ones(3))):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
            write()


def test_0d_tensors_are_accepted_as_numbers() -> None:
    """A 0-d tensor is accepted in place of a number, as in PyTorch."""
    x, two = gradlab.tensor([-3.0, 0.5, 4.0]), gradlab.tensor(2.0)
    assert functional.hardtanh(x, -two, two).tolist() == [-2, 0.5, 2]
    assert functional.leaky_relu(x, gradlab.tensor(0.5)).tolist() == [-1.5, 0.5, 4]
    assert gradlab.dist(x, gradlab.zeros(3), two).item() == pytest.approx(25.25**0.5)
    assert gradlab.logit(gradlab.tensor(0.5), gradlab.tensor(0.25)).item() == 0


def test_indices_are_int64_on_32_bit_platforms(monkeypatch):
    """On Pyodide NumPy's indices are int32. The recorded rows test the effects there."""
    monkeypatch.setattr(sizes, "INTP_IS_64_BIT", False)
    positions = sizes.as_long(np.array([3, 1], np.int32))
    assert positions.dtype == np.int64 and positions.tolist() == [3, 1]
