"""PyTorch's own samples of its operators, run with torch and with gradlab.

Torch's tests keep a table, `op_db`, of its operators, each in one or more variants, with samples of their arguments. A variant is
claimed if its operator's name is here. The tensors among a sample's arguments are rebuilt as gradlab's, dtypes and the like are
translated by name, and where the table spells an operator by a function of its own, that function runs with gradlab in torch's
place. What is compared is the result (its structure, shapes, dtypes, values, and which of it requires grad), the gradients of a
weighted sum of what does, and the gradients of a weighted sum of those.

What is meant to differ stands in `DIFFERENCES`, with the reason and what the difference looks like. A row of it that no longer
differs fails. Where two results are right (which of equal elements an index names), only the values are compared so.
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
    """Variants that differ, in one step and some dtypes; what is then told matches `shows`."""

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
    # Torch's number is not the right one: `test_where_torch_is_wrong` says what is.
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
        "torch has a gradient for the triangle that is not read",
    ),
    Difference(
        "linalg.pinv.hermitian",
        FIRST,
        "float64",
        " is not ",
        "of a matrix that is not symmetric torch mixes the triangle that is not read into the gradient",
    ),
    Difference(
        "nn.functional.max_unpool1d nn.functional.max_unpool2d",
        FIRST,
        "float64",
        "0.0 is not",
        "torch hands a cotangent to elements that were overwritten",
    ),
    # Nothing, or zeros.
    Difference(
        "norm linalg.norm linalg.norm.subgradients_at_zero linalg.vector_norm",
        FIRST,
        "float64",
        "not None",
        "the number of nonzeros has the gradient 0; torch gives none",
    ),
    Difference(
        "cat",
        FIRST,
        "float64",
        r"None, not tensor\(\[\]",
        "an empty vector among matrices is passed over; torch gives it an empty gradient",
    ),
    # Both are right.
    Difference("kthvalue topk mode", FORWARD, "int64", r"^sample \d+: \[1\]", "which of equal elements it is"),
    Difference("mode sort", FORWARD, "bool", r"^sample \d+: \[1\]", "which of equal elements it is"),
    Difference("argsort", FORWARD, "bool", " is not ", "which of equal elements comes first, if not stable=True"),
    # Left out, and said so.
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
    """A sample asks for what gradlab does not have: complex numbers, sparse tensors, quantised dtypes."""


# -------------------------------------------------------------------------------------------------------- from torch's to ours
def translated(value: Any) -> Any:
    """An argument, in gradlab's terms."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or not hasattr(gradlab, str(value.dtype).removeprefix("torch.")):
            raise NotHereError
        return gradlab.from_numpy(np.array(value.numpy(force=True))).requires_grad_(value.requires_grad)
    if isinstance(value, torch.Size):
        return gradlab.Size(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(translated, value))
    if isinstance(value, dict):
        return {k: translated(v) for k, v in value.items()}
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
        return ours(value) if value.__module__.startswith("torch.testing") else here(f"nn.functional.{value.__name__}")
    if isinstance(value, slice):
        return slice(*map(translated, (value.start, value.stop, value.step)))
    return value


def reworked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch's tests, with gradlab in torch's place."""
    if isinstance(function, functools.partial):
        return functools.partial(reworked(function.func), *function.args, **function.keywords)
    inner = tuple(types.CellType(ours(cell.cell_contents)) for cell in function.__closure__ or ())
    space = {**function.__globals__, "torch": gradlab, "wrapper_set_seed": seeded}
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, inner)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def ours(value: Any) -> Any:
    return reworked(value) if isinstance(value, types.FunctionType) and value.__module__.startswith("torch.testing") else value


def seeded(operator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with gradlab.random.fork_rng():
        gradlab.manual_seed(42)
        return operator(*args, **kwargs)


def here(name: str) -> Callable[..., Any] | None:
    """gradlab's operator of that name: a function, or a method."""
    found: Any = gradlab
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or not callable(found):
        found = getattr(gradlab.Tensor, name, None)
    return found if callable(found) or isinstance(found, property) else None


def operator(op: Any) -> Callable[..., Any]:
    named = here(op.name)
    assert named is not None
    return ours(op.op) if ours(op.op) is not op.op else named


CLAIMED = [name for name, op in VARIANTS.items() if here(op.name) is not None]


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
    """How a result (order 0), gradients or second derivatives differ, each with its number if there are several."""
    found, expected = list(flat(found)), list(flat(expected))
    if len(found) != len(expected):
        yield f"{len(found)} results, not {len(expected)}"
        return
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        if told := difference(one, other, order, unset):
            yield f"[{i}] {told}" if len(expected) > 1 else told


def difference(one: Any, other: Any, order: int, unset: bool) -> str:
    if order == 2 and (one is None or other is None):  # what does not depend on a leaf: nothing, or zeros
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
    """The result; then its gradients, and theirs, up to `orders` and as far as there are any. An exception ends it."""
    leaves = [t for t in flat([*args, kwargs]) if isinstance(t, lib.Tensor) and t.requires_grad]
    steps: list[Any] = []
    try:
        steps.append(process(call(*args, **kwargs)))
        outputs = list(flat(steps[0]))
        for order in range(1, orders + 1):
            recorded = [(k, t) for k, t in enumerate(outputs) if isinstance(t, lib.Tensor) and t.requires_grad]
            if not recorded or not leaves:
                break
            # Weights go by place: torch records some zeros that have no history here.
            seeds = [lib.from_numpy(np.array(weights(y.shape, k))).to(y.dtype) for k, y in recorded]
            outputs = list(
                lib.autograd.grad([y for _, y in recorded], leaves, seeds, create_graph=order < orders, allow_unused=True)
            )
            steps.append(outputs)
    except Exception as error:  # noqa: BLE001
        steps.append(error)
    return steps


def compared(op: Any, sample: Any, orders: int, wrapped: bool) -> tuple[str, str] | None:
    """The step in which a sample differs, and how. `wrapped`: of the matrices made symmetric or triangular, as torch's own check
    of derivatives makes them."""
    call, theirs = operator(op), op.op
    if wrapped:
        call, theirs = functools.partial(ours(op.gradcheck_wrapper), call), functools.partial(op.gradcheck_wrapper, theirs)
    args, kwargs, process = (sample.input, *sample.args), sample.kwargs, sample.output_process_fn_grad
    own_args, own_kwargs = translated(args), translated(kwargs)
    found, expected = (
        run(lib, *rest, orders)
        for lib, *rest in ((gradlab, call, ours(process), own_args, own_kwargs), (torch, theirs, process, args, kwargs))
    )
    for step, other in enumerate(expected):
        one = found[step] if step < len(found) else [None] * len(other)  # nothing to derive stands for zeros
        if isinstance(one, AttributeError) and "is not a name of torch's that gradlab has" in str(one):
            raise NotHereError
        if isinstance(other, Exception) or isinstance(one, Exception):
            if isinstance(one, Exception) and isinstance(other, Exception):
                return None
            if isinstance(one, Exception):
                return NAMES[step], f"raises {one!r}"
            return (NAMES[step], f"torch raises {other!r}") if step == 0 else None  # a derivative more is welcome
        if told := "; ".join(differences(one, other, step, op.name in UNSET)):
            return NAMES[step], told
    return None


def failures(op: Any, dtype: Any, wrapped: bool = False) -> tuple[int, list[tuple[str, str]]]:
    """How many samples were compared, and of each that differs in which step, and how. Derivatives are compared in double
    precision."""
    torch.manual_seed(zlib.crc32(op.full_name.encode()))
    gradient = op.supports_autograd and dtype is torch.float64
    count, found = 0, []
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=gradient)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                told = compared(op, sample, 2 if gradient else 0, wrapped)
            except NotHereError:
                continue
        count += 1
        if told:
            found.append((told[0], f"sample {number}: {told[1]}"))
    return count, found


CASES = [(name, dtype) for name in CLAIMED for dtype in ANY.split() if getattr(torch, dtype) in VARIANTS[name].dtypes]
WRAPPED = [
    name
    for name in CLAIMED
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
        pytest.skip("each sample asks for what gradlab does not have")
    for row in DIFFERENCES:
        if row.covers(name, dtype):
            matched = [told for told in found if told[0] == row.step and re.search(row.shows, told[1])]
            assert matched, f"{name}, {dtype}, {row.step}: this does not differ any more. Take it out of DIFFERENCES."
            found = [told for told in found if told not in matched]
    assert not found


@pytest.mark.parametrize("name", WRAPPED)
def test_samples_made_symmetric_or_triangular(name: str) -> None:
    count, found = failures(VARIANTS[name], torch.float64, wrapped=True)
    assert count and not found


def test_rows_are_of_cases() -> None:
    for row in DIFFERENCES:
        for variant in row.variants.split():
            assert any(row.covers(variant, dtype) and name == variant for name, dtype in CASES), row


def test_most_of_it_is_claimed() -> None:
    """So that a translation that fails silently is seen: how many variants there are, and how many are compared as a whole."""
    differing = {name for name in CLAIMED for row in DIFFERENCES if name in row.variants.split()}
    assert len(CLAIMED) >= 560 and len(differing) <= 30
