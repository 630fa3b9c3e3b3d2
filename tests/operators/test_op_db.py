"""Run PyTorch's own samples of its operators with torch and with gradlab.

Torch's tests contain a table of operators, `op_db`, each with one or more variants and samples of their arguments. A variant is
compared if gradlab has the operator. Tensors in the arguments are converted to gradlab tensors, and dtypes and similar objects
are translated by name. If the table implements an operator by a function of its own, the function is run with gradlab in place of
torch. The tests compare the result (its structure, shapes, dtypes, values and `requires_grad`), its gradients and its second
derivatives.

Intended differences are listed in `DIFFERENCES`, with the reason and a pattern of the report. A row that no longer differs is an
error. If several results are correct, such as the indices of equal elements, the row excludes the indices only.
"""

from __future__ import annotations

import functools
import importlib
import re
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradlab

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's samples import it
samples = importlib.import_module("torch.testing._internal.common_methods_invocations")

pytestmark = pytest.mark.oracle

VARIANTS = {op.full_name: op for op in samples.op_db}
TOLERANCES = {2: (2e-3, 1e-3), 4: (1e-4, 1e-5), 8: (1e-8, 1e-12)}  # by bytes: of the element, and of the largest one
UNSET = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_"}  # any values


@dataclass(frozen=True)
class Difference:
    """Variants that differ in one step for some dtypes. The report of the difference matches `shows`."""

    variants: str
    step: str
    dtypes: str
    shows: str
    reason: str

    def covers(self, variant: str, dtype: str) -> bool:
        return variant in self.variants.split() and dtype in self.dtypes.split()


FORWARD, FIRST, SECOND = NAMES = "forward", "first derivative", "second derivative"
ANY = "float64 float32 int64 bool"
DIFFERENCES = [
    # Torch's result is wrong: `test_where_torch_is_wrong` tests the correct values.
    Difference(
        "special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1",
        FORWARD,
        "float64",
        " is not ",
        "torch's Bessel functions have seven digits, these sixteen",
    ),
    Difference("special.ndtr", FORWARD, "float32 int64", "is not 0.0", "torch rounds the lower tail of the normal to 0"),
    Difference("nn.functional.hardsigmoid", FIRST, "float64", " is not ", "torch has 1/6 in single precision"),
    Difference(
        "cholesky_inverse cholesky_solve",
        FIRST,
        "float64",
        "0.0 is not",
        "torch returns a gradient for the triangle that is not read",
    ),
    Difference(
        "linalg.pinv.hermitian",
        FIRST,
        "float64",
        " is not ",
        "torch includes the triangle that is not read in the gradient of a matrix that is not symmetric",
    ),
    Difference(
        "nn.functional.max_unpool1d nn.functional.max_unpool2d",
        FIRST,
        "float64",
        "0.0 is not",
        "torch passes a gradient to elements that were overwritten",
    ),
    # None instead of zeros, or vice versa.
    Difference(
        "norm linalg.norm linalg.norm.subgradients_at_zero linalg.vector_norm",
        FIRST,
        "float64",
        "not None",
        "the number of nonzeros has gradient 0; torch returns None",
    ),
    Difference(
        "cat",
        FIRST,
        "float64",
        r"None, not tensor\(\[\]",
        "an empty vector among matrices is skipped; torch returns an empty gradient for it",
    ),
    # Both results are correct.
    Difference("kthvalue topk mode", FORWARD, "int64", r"^sample \d+: \[1\]", "which of equal elements it is"),
    Difference("mode sort", FORWARD, "bool", r"^sample \d+: \[1\]", "which of equal elements it is"),
    Difference("argsort", FORWARD, "bool", " is not ", "which of equal elements comes first, if not stable=True"),
    # Not supported.
    Difference(
        "linalg.eig linalg.eigvals view_as_complex",
        FORWARD,
        "float64 float32",
        "complex tensors are not supported",
        "no complex numbers",
    ),
    Difference("bfloat16", FORWARD, ANY, "bfloat16 is a dtype that NumPy does not have", "NumPy has no such dtype"),
    Difference("nn.functional.ctc_loss", FORWARD, "float64 float32", "not supported", "no such loss"),
    Difference(
        "nn.functional.embedding nn.functional.embedding_bag", FORWARD, "float32", "no sparse gradients", "no sparse tensors"
    ),
    Difference(
        "as_strided.partial_views", FORWARD, ANY, " is not |out of bounds", "a view cannot reach its base's other elements"
    ),
]


class NotHereError(Exception):
    """Raised if a sample needs something that gradlab does not have: complex numbers, sparse tensors, quantised dtypes."""


# ------------------------------------------------------------------------------------------------------ from torch to gradlab
def to_gradlab(value: Any) -> Any:
    """Convert an argument to the corresponding object of gradlab."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or not hasattr(gradlab, str(value.dtype).removeprefix("torch.")):
            raise NotHereError
        return gradlab.from_numpy(np.array(value.numpy(force=True))).requires_grad_(value.requires_grad)
    if isinstance(value, torch.Size):
        return gradlab.Size(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(to_gradlab, value))
    if isinstance(value, dict):
        return {k: to_gradlab(v) for k, v in value.items()}
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        name = str(value).removeprefix("torch.")
        if not hasattr(gradlab, name):
            raise NotHereError
        return getattr(gradlab, name)
    if isinstance(value, torch.device):
        return gradlab.device(str(value))
    if isinstance(value, complex):
        raise NotHereError
    if isinstance(value, torch.nn.Module):
        return getattr(gradlab.nn, type(value).__name__)()
    if isinstance(value, types.FunctionType):
        return (
            rebind_if_torch_test(value)
            if value.__module__.startswith("torch.testing")
            else find_operator(f"nn.functional.{value.__name__}")
        )
    if isinstance(value, slice):
        return slice(*map(to_gradlab, (value.start, value.stop, value.step)))
    return value


def rebind_to_gradlab(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function of torch's tests that uses gradlab in place of torch."""
    if isinstance(function, functools.partial):
        return functools.partial(rebind_to_gradlab(function.func), *function.args, **function.keywords)
    inner = tuple(types.CellType(rebind_if_torch_test(cell.cell_contents)) for cell in function.__closure__ or ())
    space = {**function.__globals__, "torch": gradlab, "wrapper_set_seed": call_seeded}
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, inner)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def rebind_if_torch_test(value: Any) -> Any:
    return (
        rebind_to_gradlab(value)
        if isinstance(value, types.FunctionType) and value.__module__.startswith("torch.testing")
        else value
    )


def call_seeded(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with gradlab.random.fork_rng():
        gradlab.manual_seed(42)
        return operator(*args, **kwargs)


def find_operator(name: str) -> Callable[..., Any] | None:
    """Return gradlab's function or method with this name, or None."""
    found: Any = gradlab
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or not callable(found):
        found = getattr(gradlab.Tensor, name, None)
    return found if callable(found) or isinstance(found, property) else None


def operator(op: Any) -> Callable[..., Any]:
    named = find_operator(op.name)
    assert named is not None
    return rebind_if_torch_test(op.op) if rebind_if_torch_test(op.op) is not op.op else named


COMPARED_VARIANTS = [name for name, op in VARIANTS.items() if find_operator(op.name) is not None]


# ------------------------------------------------------------------------------------------------------------------ comparing
def flat(result: Any) -> Iterator[Any]:
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)) and not isinstance(result, (torch.Size, gradlab.Size)):
        for part in result:
            yield from flat(part)
    else:
        yield result


def weights(shape: Any, k: int) -> np.ndarray:
    return np.cos(np.arange(1, int(np.prod(shape)) + 1) * (0.7 + k)).reshape(tuple(shape))


def differences(found: Any, expected: Any, order: int, unset: bool = False) -> Iterator[str]:
    """Yield descriptions of differences of results (order 0), gradients or second derivatives."""
    found, expected = list(flat(found)), list(flat(expected))
    if len(found) != len(expected):
        yield f"{len(found)} results, not {len(expected)}"
        return
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        if difference_text := difference(one, other, order, unset):
            yield f"[{i}] {difference_text}" if len(expected) > 1 else difference_text


def difference(one: Any, other: Any, order: int, unset: bool) -> str:
    if order == 2 and (one is None or other is None):  # None and zeros are equivalent
        rest = one if other is None else other
        same = rest is None or np.allclose(rest.numpy(force=True), 0, atol=1e-12)
    elif isinstance(other, torch.Tensor) and isinstance(one, gradlab.Tensor):
        return "; ".join(tensor_differences(one, other, order, unset))
    elif isinstance(other, float):
        same = isinstance(one, float) and np.isclose(one, other, rtol=1e-7, equal_nan=True)
    else:
        same = not isinstance(other, torch.Tensor) and str(one).removeprefix("gradlab.") == str(other).removeprefix("torch.")
    return "" if same else f"{one!r}, not {other!r}"


def tensor_differences(one: Any, other: Any, order: int, unset: bool) -> Iterator[str]:
    if tuple(one.shape) != tuple(other.shape):
        yield f"shape {tuple(one.shape)}, not {tuple(other.shape)}"
    elif str(one.dtype).removeprefix("gradlab.") != str(other.dtype).removeprefix("torch."):
        yield f"dtype {one.dtype}, not {other.dtype}"
    elif order == 0 and one.requires_grad != other.requires_grad:
        yield f"requires_grad {one.requires_grad}, not {other.requires_grad}"
    elif not unset:
        a, b = one.numpy(force=True), other.numpy(force=True)
        bound, rounding = TOLERANCES[b.dtype.itemsize] if b.dtype.kind == "f" else (0.0, 0.0)
        scale = np.abs(b[np.isfinite(b)]).max(initial=float(order > 0)) * rounding
        if (wrong := ~np.isclose(a, b, rtol=bound, atol=scale, equal_nan=True)).any():
            yield f"{a[wrong][0]} is not {b[wrong][0]}"


def run(
    lib: Any, call: Callable[..., Any], process: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], orders: int
) -> list[Any]:
    """Return a list with the result, its gradients and its second derivatives, up to `orders`. An exception ends the list."""
    leaves = [t for t in flat([*args, kwargs]) if isinstance(t, lib.Tensor) and t.requires_grad]
    steps: list[Any] = []
    try:
        steps.append(process(call(*args, **kwargs)))
        outputs = list(flat(steps[0]))
        for order in range(1, orders + 1):
            recorded = [(k, t) for k, t in enumerate(outputs) if isinstance(t, lib.Tensor) and t.requires_grad]
            if not recorded or not leaves:
                break
            # Weights depend on the position: torch records some zeros that have no history in gradlab.
            seeds = [lib.from_numpy(np.array(weights(y.shape, k))).to(y.dtype) for k, y in recorded]
            outputs = list(
                lib.autograd.grad([y for _, y in recorded], leaves, seeds, create_graph=order < orders, allow_unused=True)
            )
            steps.append(outputs)
    except Exception as error:  # noqa: BLE001
        steps.append(error)
    return steps


def compare_sample(op: Any, sample: Any, orders: int, wrapped: bool) -> tuple[str, str] | None:
    """Return the step in which a sample differs and a description, or None.

    If `wrapped` is True, matrices are made symmetric or triangular first, as in torch's own check of derivatives.
    """
    call, theirs = operator(op), op.op
    if wrapped:
        call, theirs = (
            functools.partial(rebind_if_torch_test(op.gradcheck_wrapper), call),
            functools.partial(op.gradcheck_wrapper, theirs),
        )
    args, kwargs, process = (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad
    own_args, own_kwargs = to_gradlab(args), to_gradlab(kwargs)
    found, expected = (
        run(lib, *rest, orders)
        for lib, *rest in (
            (gradlab, call, rebind_if_torch_test(process), own_args, own_kwargs),
            (torch, theirs, process, args, kwargs),
        )
    )
    for step, other in enumerate(expected):
        one = found[step] if step < len(found) else [None] * len(other)  # a missing derivative is zero
        if isinstance(one, AttributeError) and "is not one of PyTorch's names that gradlab implements" in str(one):
            raise NotHereError
        if isinstance(other, Exception) or isinstance(one, Exception):
            if isinstance(one, Exception) and isinstance(other, Exception):
                return None
            if isinstance(one, Exception):
                return NAMES[step], f"raises {one!r}"
            return (NAMES[step], f"torch raises {other!r}") if step == 0 else None  # gradlab may have more derivatives
        if difference_text := "; ".join(differences(one, other, step, op.name in UNSET)):
            return NAMES[step], difference_text
    return None


def failures(op: Any, dtype: Any, wrapped: bool = False) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of compared samples, and the step and description of each difference.

    Derivatives are compared in double precision.
    """
    torch.manual_seed(zlib.crc32(op.full_name.encode()))
    gradient = op.supports_autograd and dtype is torch.float64
    count, found = 0, []
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=gradient)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                difference_text = compare_sample(op, sample, 2 if gradient else 0, wrapped)
            except NotHereError:
                continue
        count += 1
        if difference_text:
            found.append((difference_text[0], f"sample {number}: {difference_text[1]}"))
    return count, found


CASES = [(name, dtype) for name in COMPARED_VARIANTS for dtype in ANY.split() if getattr(torch, dtype) in VARIANTS[name].dtypes]
WRAPPED_VARIANTS = [
    name
    for name in COMPARED_VARIANTS
    if VARIANTS[name].gradcheck_wrapper.__name__.startswith("gradcheck_wrapper_") and name != "nn.functional.ctc_loss"
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_samples(name: str, dtype: str) -> None:
    count, found = failures(VARIANTS[name], getattr(torch, dtype))
    if not count:
        pytest.skip("each sample needs something that gradlab does not have")
    for row in DIFFERENCES:
        if row.covers(name, dtype):
            matched = [
                difference_text
                for difference_text in found
                if difference_text[0] == row.step and re.search(row.shows, difference_text[1])
            ]
            assert matched, f"{name}, {dtype}, {row.step}: this does not differ any more. Remove it from DIFFERENCES."
            found = [difference_text for difference_text in found if difference_text not in matched]
    assert not found


@pytest.mark.parametrize("name", WRAPPED_VARIANTS)
def test_samples_made_symmetric_or_triangular(name: str) -> None:
    count, found = failures(VARIANTS[name], torch.float64, wrapped=True)
    assert count and not found


def test_differences_refer_to_compared_variants() -> None:
    for row in DIFFERENCES:
        for variant in row.variants.split():
            assert any(row.covers(variant, dtype) and name == variant for name, dtype in CASES), row


def test_most_variants_are_compared() -> None:
    """Check the number of compared variants, so that a silent failure of the conversion is noticed."""
    differing = {name for name in COMPARED_VARIANTS for row in DIFFERENCES if name in row.variants.split()}
    assert len(COMPARED_VARIANTS) >= 560 and len(differing) <= 30
