"""Tensors print exactly as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from recorded import rows

from gradlab.core.printing import format_array, get_printoptions, printoptions, set_printoptions, tensor_repr

RECORDED = rows("printing")


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    with printoptions(profile="default"):
        yield


def array_of(case: dict[str, Any]) -> np.ndarray:
    if "values" in case:
        return np.array(case["values"], case["dtype"])
    start, step = case["line"]
    count = math.prod(case["shape"])
    return np.array([start + step * i for i in range(count)], np.float64).astype(case["dtype"]).reshape(case["shape"])


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name: str) -> None:
    case = RECORDED[name]
    set_printoptions(**case.get("options", {}))
    tangent = None
    if "tangent" in case:
        tangent = tensor_repr(np.array(case["tangent"], case["dtype"]), dtype_name=case["dtype"])
    text = tensor_repr(
        array_of(case), dtype_name=case["dtype"], requires_grad="mark" in case, grad_fn_name=case.get("grad_fn"), tangent=tangent
    )
    assert text == case["text"].replace("torch.", "gradlab.")


def test_device_comes_first() -> None:
    text = tensor_repr(np.zeros((0, 3)), dtype_name="float64", requires_grad=True, device="cuda:0")
    assert text == "tensor([], device='cuda:0', size=(0, 3), dtype=gradlab.float64,\n       requires_grad=True)"


def test_prefix_indents() -> None:
    text = tensor_repr(np.array([[1.5], [2.0]], np.float32), dtype_name="float32", prefix="Parameter(")
    assert text == "Parameter([[1.5000],\n           [2.0000]])"


def test_default_dtype_is_not_shown() -> None:
    array = np.array([0.5])
    assert tensor_repr(array, dtype_name="float64", default_dtype_name="float64") == "tensor([0.5000])"
    assert (
        tensor_repr(array.astype(np.float32), dtype_name="float32", default_dtype_name="float64")
        == "tensor([0.5000], dtype=gradlab.float32)"
    )


def test_a_view_prints_in_its_own_order() -> None:
    assert format_array(np.arange(6).reshape(2, 3).T, indent=0) == "[[0, 3],\n [1, 4],\n [2, 5]]"


def test_only_shown_elements_are_read() -> None:
    """A summarized array is cropped before anything is computed, so 10^12 elements print in the time of 36."""
    side = 10**6 if np.intp(0).itemsize == 8 else 10**4  # 32-bit sizes allow fewer elements
    with np.errstate(all="raise"):
        text = format_array(np.broadcast_to(np.float32(0.5), (side, side)))
    assert text.count("0.5000") == 36


def test_options_match_pytorch() -> None:
    assert get_printoptions() == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    set_printoptions(precision=2, sci_mode=True)
    set_printoptions(linewidth=100)
    assert get_printoptions() == {"precision": 2, "threshold": 1000, "edgeitems": 3, "linewidth": 100, "sci_mode": None}
    set_printoptions(profile="short", precision=3)
    assert get_printoptions() == {"precision": 3, "threshold": 1000, "edgeitems": 2, "linewidth": 80, "sci_mode": None}
    set_printoptions(profile="full")
    assert get_printoptions()["threshold"] == math.inf


def test_options_are_restored_after_an_error() -> None:
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1):
        raise KeyError
    assert get_printoptions() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "long"}, "profile must be one of 'default', 'short', 'full', got 'long'"),
        ({"precision": -1}, "precision must be a non-negative number, got -1"),
        ({"linewidth": "wide"}, "linewidth must be a non-negative number, got 'wide'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    before = get_printoptions()
    with pytest.raises(ValueError, match=message):
        set_printoptions(**options)
    assert get_printoptions() == before


# ------------------------------------------------------------------------------------------------------ live comparison
DTYPES = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]


def random_array(rng: np.random.Generator) -> np.ndarray:
    """Draw an array of any dtype and of up to five axes, with magnitudes that reach every branch of the formatting."""
    axes = int(rng.integers(6))
    shape = tuple(rng.integers(rng.random() > 0.1, (1, 40, 9, 5, 4, 3)[axes] + 1, axes).tolist())
    if axes and rng.random() < 0.1:
        shape = (int(rng.integers(990, 1500)), *shape[1:])
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))] if rng.random() < 0.4 else np.float32)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < rng.random())
    if dtype.kind in "iu":
        bound = 10.0 ** rng.uniform(0, 18)
        low, high = max(np.iinfo(dtype).min, -int(bound)), min(np.iinfo(dtype).max, int(bound))
        return np.asarray(rng.integers(low, high, shape, dtype, endpoint=True))
    scale = 10.0 ** rng.uniform(-12, 13)
    drawn = [
        lambda: rng.standard_normal(shape) * scale,
        lambda: np.round(rng.standard_normal(shape) * scale),
        lambda: rng.standard_normal(shape) * 10.0 ** rng.uniform(-40, 30, shape),
        lambda: rng.integers(0, 3, shape) * rng.choice([1, -1, 1000, 1e8, 1.1e8, 0.5, 1e-4, 1e-5]),
        lambda: np.round(rng.uniform(-1000, 1000, shape), int(rng.integers(5))),
        lambda: rng.uniform(0.9e-4, 1.1e-4, shape) * rng.choice([1, 1000, 1e12]),
        lambda: rng.standard_normal(shape) * float(np.finfo(dtype).tiny),
    ][rng.integers(7)]()
    for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        if rng.random() < 0.25:
            drawn = np.where(rng.random(shape) < rng.choice([0.05, 0.5, 1.0]), special, drawn)
    with np.errstate(over="ignore"):
        return np.asarray(drawn).astype(dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(10))
def test_random_arrays_against_torch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    try:
        for _ in range(300):
            array = random_array(rng)
            tensor = torch.tensor(array.tolist(), dtype=getattr(torch, array.dtype.name)).reshape(array.shape)
            if tensor.is_floating_point() and rng.random() < 0.5:
                tensor.requires_grad_()
                tensor = tensor.clone() if rng.random() < 0.5 else tensor
            options = {"profile": "default"}
            if rng.random() < 0.3:
                for name, choices in (
                    ("precision", (0, 2, 8)),
                    ("threshold", (0, 5, 50)),
                    ("edgeitems", (0, 1, 5)),
                    ("linewidth", (1, 40, 150)),
                    ("sci_mode", (True, False)),
                ):
                    if rng.random() < 0.4:
                        options[name] = choices[rng.integers(len(choices))]
            torch.set_printoptions(**options)
            set_printoptions(**options)
            text = tensor_repr(
                array,
                dtype_name=array.dtype.name,
                requires_grad=tensor.requires_grad,
                grad_fn_name=tensor.grad_fn and tensor.grad_fn.name(),
            )
            assert text == repr(tensor).replace("torch.", "gradlab."), options
    finally:
        torch.set_printoptions(profile="default")
