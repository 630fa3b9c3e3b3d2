"""`gauging.Gauge` for PyTorch tensors. Imported once the user has imported torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gradlab.explore.libraries.forms_torch import PLAIN, form, has_numbers
from gradlab.explore.libraries.gauging import DEAD, Gauge, UnreadableError
from gradlab.explore.libraries.reducing_torch import stored_elements
from gradlab.explore.libraries.unseen_torch import count_function_modes, count_modes, is_profiled, unseen

WIDE = frozenset((torch.float32, torch.float64, torch.complex64, torch.complex128))  # whose squares seldom overflow
foreach_norm = getattr(torch, "_foreach_norm", None)  # one call for all tensors; if it is missing or fails, one for each
foreach_copy = getattr(torch, "_foreach_copy_", None)


class TorchGauge(Gauge):
    """Statistics of many PyTorch tensors."""

    @unseen
    def norms(self, tensors: Sequence[Any]) -> Any:
        _check_readable(tensors)
        with torch.no_grad():
            if not WIDE.issuperset([tensor.dtype for tensor in tensors]):
                tensors = [tensor.float() if tensor.element_size() < 4 else tensor for tensor in tensors]
            return self._stack(_norms(tensors))

    @unseen
    def copies(self, tensors: Sequence[Any], old: Sequence[Any] | None) -> list[Any]:
        _check_readable(tensors)
        with torch.no_grad():
            if old is None:
                return [tensor.detach().clone() for tensor in tensors]
            if foreach_copy is not None:
                foreach_copy(old, tensors)
            else:
                for copy, tensor in zip(old, tensors, strict=True):
                    copy.copy_(tensor)
            return list(old)

    @unseen
    def update_norms(self, tensors: Sequence[Any], copies: Sequence[Any]) -> Any:
        _check_readable(tensors)
        with torch.no_grad():
            torch._foreach_sub_(list(copies), list(tensors))
            return self.norms(copies)

    def _stack(self, numbers: list[Any]) -> Any:
        if not self.waits:
            return torch.stack(numbers)
        where = numbers[0].device
        return torch.stack([one if one.device == where else one.to(where) for one in numbers])

    @unseen
    def as_vector(self, tensor: Any) -> Any:
        _check_readable([tensor])
        return (
            tensor.detach().reshape(-1)[:1].double() if tensor.device.type != "mps" else tensor.detach().reshape(-1)[:1].float()
        )

    def value(self, tensor: Any) -> float:
        known = self.value_and_version(tensor)
        return self._unseen_value(tensor) if known is None else known[0]

    def value_and_version(self, tensor: Any) -> tuple[float, int] | None:
        if self.waits or type(tensor) not in PLAIN or count_modes() or count_function_modes() or is_profiled():
            return None
        try:
            number = tensor.item()
        except RuntimeError:  # several elements, or no numbers, as on the meta device
            return None
        return number if type(number) is float else float(abs(number)), tensor._version

    def version(self, tensor: Any) -> int | None:
        return int(tensor._version) if type(tensor) in PLAIN and not count_function_modes() else None

    @unseen
    def _unseen_value(self, tensor: Any) -> float:
        if not has_numbers(tensor) or tensor.numel() != 1:
            return math.nan
        number = tensor.item()
        return abs(number) if isinstance(number, complex) else float(number)

    @unseen
    def is_nonfinite(self, tensor: Any) -> bool:
        return has_numbers(tensor) and not math.isfinite(self._unseen_value(tensor))

    @unseen
    def unit_shares(self, tensor: Any, kind: str, flat: tuple[float, float] | None) -> Any:
        _check_readable([tensor])
        with torch.no_grad():
            flat_values = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
            axis = 1 if flat_values.dim() >= 4 else flat_values.dim() - 1
            absent = torch.full((), -1.0, device=flat_values.device)
            dead = full = absent
            if kind in DEAD:
                others = [k for k in range(flat_values.dim()) if k != axis]
                dead = ((flat_values.amax(others) if others else flat_values) == 0).float().mean()  # outputs are not negative
            if flat is not None:
                full = ((flat_values <= flat[0]) | (flat_values >= flat[1])).float().mean()
            return torch.stack([dead, full])

    @unseen
    def read(self, vectors: Sequence[Any]) -> list[np.ndarray]:
        by_device: dict[Any, list[int]] = {}
        for i, vector in enumerate(vectors):
            by_device.setdefault((vector.device, vector.dtype), []).append(i)
        numbers: list[Any] = [None] * len(vectors)
        for indices in by_device.values():
            together = torch.cat([vectors[i].reshape(-1) for i in indices]).cpu().numpy().astype(np.float64)
            stops = np.cumsum([vectors[i].numel() for i in indices])[:-1]
            for i, piece in zip(indices, np.split(together, stops), strict=True):
                numbers[i] = piece
        return numbers


def _check_readable(tensors: Sequence[Any]) -> None:
    """Raise an UnreadableError if a tensor only represents others: reading its own memory would crash."""
    if not PLAIN.issuperset(map(type, tensors)):
        for tensor in tensors:
            if not has_numbers(tensor):
                raise UnreadableError(f"the numbers of {form(tensor)} cannot be read")


def _norms(tensors: Sequence[Any]) -> list[Any]:
    if foreach_norm is not None:
        try:
            return list(foreach_norm(tensors, 2))
        except (RuntimeError, NotImplementedError):  # tensors of an unsupported kind
            pass
    return [torch.linalg.vector_norm(stored_elements(tensor)) for tensor in tensors]
