"""Questions about dtypes, and about what kind of thing an object is."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.dtypes import CATEGORY, OF_NUMPY, as_numpy_dtype, common_dtype, default, dtype, join, number_dtype
from gradlab.core.errors import expected, invalid_combination
from gradlab.core.tensor import Tensor

__all__ = [
    "can_cast",
    "finfo",
    "iinfo",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "promote_types",
    "result_type",
    "typename",
]


class _Info:
    """The limits of a dtype, printed as torch prints them."""

    shown: tuple[str, ...] = ()
    dtype: str
    bits: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={getattr(self, k):g}' for k in self.shown)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class finfo(_Info):  # noqa: N801  (torch's name)
    """The limits of a floating point dtype (the default one if none is given): `bits`, `eps`, `max`, `min`, `tiny`,
    `smallest_normal`, `resolution`, `dtype`."""

    shown = "resolution", "min", "max", "eps", "smallest_normal", "tiny"

    def __init__(self, type: dtype | None = None) -> None:
        if type is None:
            type = OF_NUMPY[default.float]
        if not isinstance(type, dtype):
            raise expected("finfo", "type", 1, "gradlab.dtype", type)
        if not type.is_floating_point:
            raise TypeError(f"gradlab.finfo() requires a floating point input type. Use gradlab.iinfo to handle '{type}'")
        info = np.finfo(type.numpy)
        self.dtype, self.bits = type.name, info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"1e-{info.precision}")


class iinfo(_Info):  # noqa: N801  (torch's name)
    """The limits of an integer dtype: `bits`, `max`, `min`, `dtype`."""

    shown = "min", "max"

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise expected("iinfo", "type", 1, "gradlab.dtype", type)
        if type.is_floating_point:
            raise TypeError(f"gradlab.iinfo() requires an integer input type. Use gradlab.finfo to handle '{type}'")
        if type.numpy.kind == "b":
            raise TypeError("gradlab.bool is not supported by gradlab.iinfo")
        info = np.iinfo(type.numpy)
        self.dtype, self.bits, self.max, self.min = type.name, info.bits, int(info.max), int(info.min)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be promoted to."""
    for position, given in enumerate((type1, type2), 1):
        if not isinstance(given, dtype):
            raise expected("promote_types", f"type{position}", position, "gradlab.dtype", given)
    return OF_NUMPY[join(type1.numpy, type2.numpy)]


def result_type(tensor: Any, other: Any) -> dtype:
    """The dtype of an operation on two tensors or numbers."""
    ranks: list[np.dtype | None] = [None, None, None]
    for x in (tensor, other):
        if not isinstance(x, (Tensor, bool, int, float)):
            raise invalid_combination(
                "result_type",
                (tensor, other),
                "(Tensor tensor, Tensor other)",
                "(Number scalar, Tensor tensor)",
                "(Tensor tensor, Number other)",
                "(Number scalar1, Number scalar2)",
            )
        rank, found = ((2 if x.array.ndim else 1), x.array.dtype) if isinstance(x, Tensor) else (0, number_dtype(x))
        known = ranks[rank]
        ranks[rank] = found if known is None else join(known, found)
    return OF_NUMPY[common_dtype(ranks)]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether an in-place operation may store a result of the one dtype in the other: its kind must not be lower."""
    kinds = [CATEGORY[as_numpy_dtype(d, "can_cast").kind] for d in (from_, to)]  # type: ignore[union-attr]
    return kinds[0] <= kinds[1]


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating point numbers."""
    if not isinstance(input, Tensor):
        raise expected("is_floating_point", "input", 1, "Tensor", input)
    return input.array.dtype.kind == "f"


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


def _never(name: str, doc: str) -> Any:
    def never(input: Tensor) -> bool:
        if not isinstance(input, Tensor):
            raise expected(name, "input", 1, "Tensor", input)
        return False

    never.__name__ = never.__qualname__ = name
    never.__doc__ = f"{doc}: never, since gradlab has no complex numbers."
    return never


is_complex = _never("is_complex", "Whether the elements are complex numbers")
is_conj = _never("is_conj", "Whether the conjugate is still to be taken")
is_neg = _never("is_neg", "Whether the sign is still to be changed")


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0."""
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    if not isinstance(other, Tensor):
        raise expected("is_same_size", "other", 1, "Tensor", other)
    return input.array.shape == other.array.shape


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage of torch's: never, since gradlab has none."""
    return False


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def typename(obj: Any) -> str:
    """The name of an object's type: `gradlab.FloatTensor` of a tensor."""
    if type(obj) is Tensor:
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = "gradlab" if kind in (dtype, Tensor) else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
