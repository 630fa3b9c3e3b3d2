"""Summaries of PyTorch's tensors, reduced on their devices. Imported once the user has imported torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from gradlab.explore.libraries.forms_torch import COMPRESSED, form, has_numbers, readable
from gradlab.explore.libraries.unseen_torch import unseen
from gradlab.explore.statistics import BINS, Statistics
from gradlab.explore.trace.journal import spaced_sample
from gradlab.explore.trace.slopes import MASKED, MASKED_HALF, SHARP, slopes_reader
from gradlab.explore.trace.values import FEW, Pending, Value, ratio
from gradlab.explore.trace.values import share as share_of_arrays
from gradlab.explore.trace.values import summarize as summarize_array

FIRST = 1024  # elements that are checked first for a nonzero one
HALVES = (torch.float16, torch.bfloat16)
AS_NUMPYS = frozenset((torch.float32, torch.float64, torch.int64, torch.int32, torch.bool))


def numbers(tensor: Any) -> np.ndarray:
    """Return a tensor on the host as an array that shares its memory and may be read-only.

    This does not use `numpy()`, which makes the tensor's storage non-resizable; FSDP resizes it between a layer's uses.

    Raises
    ------
    ValueError
        If the tensor has no memory.
    """
    if not has_numbers(tensor):
        raise ValueError(f"there are no numbers to read in this tensor of shape {tuple(tensor.shape)}: {form(tensor)}")
    return _memory(tensor)


def _memory(tensor: Any) -> np.ndarray:
    array: np.ndarray = np.from_dlpack(tensor.resolve_conj().resolve_neg())
    return array


@unseen
def array(tensor: Any) -> np.ndarray:
    """Return a tensor as an array on the host: sparse ones dense, bfloat16 and similar dtypes as float32.

    Raises
    ------
    ValueError
        If it has no numbers.
    """
    if not has_numbers(tensor):
        return numbers(tensor)
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    tensor = readable(tensor if tensor.layout == torch.strided else tensor.to_dense())
    return numbers(tensor.float() if tensor.dtype == torch.bfloat16 else tensor)


@unseen
def copy(cotangent: Any) -> Any:
    """Return a cotangent that outlives its node: the engine adds in place only to tensors without other references."""
    return cotangent.detach()


@unseen
def sample(tensor: Any) -> np.ndarray | None:
    """Return copies of some elements (`journal.spaced_sample`) as float64 on the host; None if they are not dense real."""
    if tensor is None or not has_numbers(tensor) or tensor.layout != torch.strided or not tensor.is_floating_point():
        return None
    return np.array(_memory(spaced_sample(tensor.detach().reshape(-1)).double().cpu()))


@unseen
def is_zero(tensor: Any) -> bool:
    """Return whether every element is zero; False for tensors without numbers."""
    if not has_numbers(tensor):
        return False
    flat = readable(stored_elements(tensor.detach())).reshape(-1)
    return not (bool(flat[:FIRST].any()) or bool(flat.any()))


@unseen
def summarize(tensor: Any, *, histogram: bool = False) -> Value | Pending | None:
    """Return a summary of a tensor, `Pending` if it is on a device; None if it has no numbers."""
    if _on_host(tensor):
        return summarize_array(_memory(tensor.detach()), histogram=histogram)
    if not has_numbers(tensor):
        return None
    with torch.no_grad():
        tensor = tensor.detach()
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2]
        if tensor.layout != torch.strided:
            return _sparse(tensor, shape, dtype, histogram)
        tensor = readable(tensor)
        if tensor.numel() <= FEW:
            return _few(tensor, shape, dtype)
        return _many(tensor.abs() if tensor.is_complex() else tensor, shape, dtype, histogram)


def _on_host(tensor: Any) -> bool:
    """Return whether NumPy can read a tensor directly."""
    plain = tensor.is_cpu and tensor.dtype in AS_NUMPYS and tensor.layout is torch.strided and not tensor.is_nested
    return bool(plain and has_numbers(tensor) and not tensor.is_neg())


def _few(tensor: Any, shape: tuple[int, ...], dtype: str) -> Value | Pending:
    if tensor.device.type == "cpu":
        return Value(shape, dtype, tuple(tensor.reshape(-1).tolist()))
    kind = "?" if tensor.dtype is torch.bool else "f8" if tensor.is_floating_point() else "i8"
    if tensor.is_complex():
        return Value(shape, dtype, tuple(tensor.reshape(-1).cpu().tolist()))
    return Pending([tensor.reshape(-1).clone()], lambda read: Value(shape, dtype, tuple(read[0].astype(kind).tolist())))


def _many(tensor: Any, shape: tuple[int, ...], dtype: str, histogram: bool, absent: int = 0) -> Value | Pending:
    """Summarize the elements of a dense tensor, and `absent` additional zeros."""
    if tensor.device.type == "cpu" and not absent:
        return summarize_array(numbers(tensor.float() if tensor.dtype in HALVES else tensor), dtype, histogram=histogram)
    flat = tensor.reshape(-1)
    flat = flat.float() if flat.dtype in HALVES else flat if flat.is_floating_point() else flat.double()
    finite = torch.isfinite(flat)
    kept = torch.where(finite, flat, torch.zeros((), dtype=flat.dtype, device=flat.device))
    scale = kept.abs().max()
    part = kept / torch.where(scale > 0, scale, torch.ones_like(scale))
    infinity = torch.full((), math.inf, dtype=flat.dtype, device=flat.device)
    low, high = torch.where(finite, flat, infinity).min(), torch.where(finite, flat, -infinity).max()
    counts = [finite.sum(), torch.isnan(flat).sum(), flat.numel() - torch.count_nonzero(flat)]
    table = torch.stack(
        [x.double() for x in (low, high, scale, torch.linalg.vector_norm(part), part.sum(dtype=torch.float64), *counts)]
    )
    arrays = [table]
    if histogram:
        arrays.append(_histogram(flat, finite, low, high))
    size = flat.numel()

    def finish(read: list[np.ndarray]) -> Value:
        least, greatest, largest, norm, total, finites, nans, zeros = map(float, read[0])
        bins = tuple(int(n) for n in read[1]) if histogram else ()
        if not finites:
            nothing = math.nan
            return Value(
                shape, dtype, summary=Statistics(shape, nothing, nothing, nothing, nothing, int(nans), size - int(nans), 0, bins)
            )
        mean = largest * total / (finites + absent)
        odd = int(nans), size - int(nans) - int(finites), int(zeros) + absent
        if absent:
            least, greatest = min(least, 0.0), max(greatest, 0.0)
        return Value(shape, dtype, summary=Statistics(shape, largest * norm, least, greatest, mean, *odd, bins))

    if tensor.device.type == "cpu":
        return finish([array.numpy() for array in arrays])
    return Pending(arrays, finish)


def _histogram(flat: Any, finite: Any, low: Any, high: Any) -> Any:
    """Count the finite elements in each of `BINS` equal parts of [low, high]; if low equals high, all are in the middle."""
    width = high / BINS - low / BINS
    index = ((flat / width - low / width).clamp(0, BINS - 1)).nan_to_num(0).long()
    index = torch.where(width > 0, index, torch.full_like(index, BINS // 2))
    return torch.zeros(BINS, dtype=torch.float64, device=flat.device).index_add_(0, index, finite.double())


def _sparse(tensor: Any, shape: tuple[int, ...], dtype: str, histogram: bool) -> Value | Pending | None:
    """Summarize the stored elements of a sparse tensor, and its zeros."""
    if tensor.numel() <= FEW:
        return _few(tensor.to_dense(), shape, dtype)
    values = stored_elements(tensor)
    values = values.abs() if values.is_complex() else values
    if not values.numel():
        return Value(shape, dtype, summary=Statistics(shape, 0.0, 0.0, 0.0, 0.0, 0, 0, tensor.numel(), ()))
    return _many(values, shape, dtype, histogram, absent=tensor.numel() - values.numel())


def stored_elements(tensor: Any) -> Any:
    """Return the stored elements of a tensor; for sparse ones without the zeros."""
    if tensor.layout == torch.sparse_coo:
        return tensor.coalesce().values()
    if tensor.layout in COMPRESSED:
        return tensor.values()
    return tensor if tensor.layout == torch.strided else tensor.to_dense()  # mkldnn


@unseen
def share(part: Any, whole: Any) -> Any:
    """Return ⟨part, whole⟩ / ‖whole‖², `Pending` on a device; None if `whole` is 0 or not finite."""
    if _on_host(whole) and _on_host(part):
        return share_of_arrays(_memory(part.detach()), _memory(whole.detach()))
    if not (has_numbers(whole) and has_numbers(part)) or part.layout != torch.strided or whole.layout != torch.strided:
        return None
    with torch.no_grad():
        if part.shape != whole.shape or part.is_complex() or not whole.numel():
            return None
        g, p = whole.detach().reshape(-1), part.reshape(-1).to(whole.dtype)
        if g.dtype in HALVES:
            g, p = g.float(), p.float()
        scale = g.abs().max().clamp(min=torch.finfo(g.dtype).tiny)
        g, p = g / scale, p / scale
        both = [torch.dot(p, g), torch.dot(g, g)]
        return ratio([np.asarray(float(x)) for x in both]) if g.device.type == "cpu" else Pending(both, ratio)


@unseen
def slopes(g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
    """Return `trace.slopes.slopes` of tensors, `Pending` on a device."""
    if not (has_numbers(g) and has_numbers(handed)) or g.layout != torch.strided or handed.layout != torch.strided:
        return None
    with torch.no_grad():
        arrived, passed = g != 0, handed != 0
        sizes = g.abs(), handed.abs()
        low, nearly = (arrived & (sizes[1] < slope * sizes[0]) for slope in flat)
        others = [k for k in range(g.dim()) if k != axis]
        reached, open_ = (arrived.any(others), passed.any(others)) if others else (arrived, passed)
        counted = [arrived.sum(), low.sum(), reached.sum(), (reached & ~open_).sum(), nearly.sum()]
    return _read_counts(counted, slopes_reader(g.numel() // max(g.shape[axis], 1)))


@unseen
def sharp(rows: Any, inputs: Any, axis: int) -> Any:
    """Return `trace.slopes.sharp` of tensors."""
    if not has_numbers(rows):
        return None
    with torch.no_grad():
        counts = rows.amax(axis) > SHARP
        if inputs is None or not has_numbers(inputs):
            several = torch.full_like(counts, rows.shape[axis] > 1)
        else:
            several = (inputs > (MASKED if inputs.element_size() >= 4 else MASKED_HALF)).sum(axis) > 1
        counted = [several.sum(), (several & counts).sum()]
    return _read_counts(counted, slopes_reader())


def _read_counts(counted: list[Any], finish: Any) -> Any:
    return Pending(counted, finish) if counted[0].device.type != "cpu" else finish([x.numpy() for x in counted])


@unseen
def read(arrays: list[Any]) -> list[np.ndarray]:
    """Read the numbers of tensors on devices, with one transfer for each device."""
    values: list[Any] = [None] * len(arrays)
    by_device: dict[Any, list[int]] = {}
    for i, array in enumerate(arrays):
        by_device.setdefault(array.device, []).append(i)
    for indices in by_device.values():
        flat = torch.cat([arrays[i].reshape(-1).double() for i in indices]).cpu().numpy()
        stops = np.cumsum([arrays[i].numel() for i in indices])[:-1]
        for i, piece in zip(indices, np.split(flat, stops), strict=True):
            values[i] = piece.reshape(tuple(arrays[i].shape))
    return values
