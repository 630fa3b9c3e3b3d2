"""PyTorch's own samples of its operators, run with torch and with gradlab.

Torch's tests keep a table, `op_db`, of its operators, each in one or more variants, with samples of their arguments. A variant is
claimed if its operator's name is here. The tensors among a sample's arguments are rebuilt as gradlab's, dtypes and the like are
translated by name, and where the table spells an operator by a function of its own, that function runs with gradlab in torch's
place. What is compared is the result (its structure, shapes, dtypes, values, and which of it requires grad), the gradients of a
weighted sum of what does, and the gradients of a weighted sum of those.

What is meant to differ stands in `DIFFERENCES`, with the reason. A row of it that no longer differs fails.
"""
from __future__ import annotations

import functools
import importlib
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradlab

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")                                         # torch's samples import it
samples = importlib.import_module("torch.testing._internal.common_methods_invocations")

pytestmark = pytest.mark.oracle

VARIANTS = {op.full_name: op for op in samples.op_db}
TOLERANCES = {2: (2e-3, 1e-3), 4: (2e-5, 2e-6), 8: (1e-8, 1e-12)}        # of the element, and of the largest one
UNSET = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_"}     # any values at all


class NotHere(Exception):
    """A sample asks for what gradlab does not have: complex numbers, sparse tensors, quantised dtypes."""


# -------------------------------------------------------------------------------------------------------- from torch's to ours
def translated(value: Any) -> Any:
    """An argument, in gradlab's terms."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or not hasattr(gradlab, str(value.dtype).removeprefix("torch.")):
            raise NotHere
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
            raise NotHere
        return getattr(gradlab, name)
    if isinstance(value, torch.device):
        return gradlab.device(str(value))
    if isinstance(value, complex):
        raise NotHere
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
    """How a result (order 0), gradients or second derivatives differ."""
    found, expected = list(flat(found)), list(flat(expected))
    if len(found) != len(expected):
        yield f"{len(found)} results, not {len(expected)}"
        return
    for one, other in zip(found, expected, strict=True):
        if order == 2 and (one is None or other is None):                 # what does not depend on a leaf: nothing, or zeros
            rest = one if other is None else other
            if rest is not None and np.any(rest.numpy(force=True)):
                yield f"{one!r}, not {other!r}"
        elif isinstance(other, torch.Tensor) != isinstance(one, gradlab.Tensor):
            yield f"{one!r}, not {other!r}"
        elif isinstance(other, torch.Tensor):
            yield from tensor_differences(one, other, order, unset)
        elif isinstance(other, float):
            if not np.isclose(one, other, rtol=1e-7, equal_nan=True):
                yield f"{one!r}, not {other!r}"
        elif str(one).removeprefix("gradlab.") != str(other).removeprefix("torch."):
            yield f"{one!r}, not {other!r}"


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


def run(lib: Any, call: Callable[..., Any], process: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The result; then its gradients, and theirs, as far as there are any. An exception ends it."""
    leaves = [t for t in flat([*args, kwargs]) if isinstance(t, lib.Tensor) and t.requires_grad]
    steps: list[Any] = []
    try:
        steps.append(process(call(*args, **kwargs)))
        outputs = list(flat(steps[0]))
        for order in (1, 2):
            outputs = [t for t in outputs if isinstance(t, lib.Tensor) and t.requires_grad and "complex" not in str(t.dtype)]
            if not outputs or not leaves:
                break
            seeds = [lib.from_numpy(np.array(weights(y.shape, k))).to(y.dtype) for k, y in enumerate(outputs)]
            outputs = list(lib.autograd.grad(outputs, leaves, seeds, create_graph=order == 1, allow_unused=True))
            steps.append(outputs)
    except Exception as error:  # noqa: BLE001
        steps.append(error)
    return steps


NAMES = "forward", "first derivative", "second derivative"


def failures(op: Any, dtype: Any) -> Iterator[tuple[str, str]]:
    """Of each sample that differs: what does, and how."""
    call, unset = operator(op), op.name in UNSET
    torch.manual_seed(zlib.crc32(op.full_name.encode()))
    gradient = op.supports_autograd and dtype.is_floating_point
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=gradient)):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        process = sample.output_process_fn_grad
        try:
            own_args, own_kwargs = translated(args), translated(kwargs)
        except NotHere:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = run(torch, op.op, process, args, kwargs)
            found = run(gradlab, call, ours(process), own_args, own_kwargs)
        for step, (one, other) in enumerate(zip(found, expected, strict=False)):
            if isinstance(other, Exception):
                if not isinstance(one, Exception):
                    yield NAMES[step], f"sample {number}: torch raises {other!r}"
                break
            if isinstance(one, Exception):
                told = f"raises {one!r}"
            else:
                told = "; ".join(differences(one, other, step, unset))
            if told:
                yield NAMES[step], f"sample {number}: {told}"
                break
        else:
            if len(found) < len(expected) and (told := "; ".join(differences([None] * len(expected[-1]), expected[-1], 2))):
                yield NAMES[len(found)], f"sample {number}: {told}"
