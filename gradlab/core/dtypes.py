"""Element types and their promotion.

A `dtype` wraps a NumPy dtype and prints as in PyTorch. Promotion follows PyTorch: the category (bool, integer, float) is decided
first, tensors with axes outrank 0-d tensors, which outrank Python numbers, and an integer does not widen a float. Operands are
promoted before an operation runs, so that a forward receives one dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.errors import advice


class dtype:  # noqa: N801  (torch's name)
    """An element type: `gradlab.float32`.

    Parameters
    ----------
    name, word, c_name : str
        The names that PyTorch uses in its messages. Users do not create dtypes: each is a singleton, compared with `==` or `is`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(2).dtype is gl.float32
    True
    """

    __module__ = "gradlab"
    __slots__ = ("c_name", "is_complex", "is_floating_point", "is_signed", "itemsize", "legacy", "name", "numpy", "word")

    def __init__(self, name: str, word: str, c_name: str) -> None:
        self.name, self.word, self.c_name, self.numpy = name, word, c_name, np.dtype(name)  # torch's errors use all three
        self.legacy = f"{word}Tensor"
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.numpy.kind == "f"
        self.is_signed = self.numpy.kind in "if"
        self.is_complex = False

    def __repr__(self) -> str:
        return f"gradlab.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def __setstate__(self, state: Any) -> None:
        raise TypeError(f"{self!r} is a singleton: a pickle cannot change its state.")


bool_ = dtype("bool", "Bool", "bool")
uint8, int8 = dtype("uint8", "Byte", "unsigned char"), dtype("int8", "Char", "signed char")
int16, int32, int64 = dtype("int16", "Short", "short int"), dtype("int32", "Int", "int"), dtype("int64", "Long", "long int")
float16, float32 = dtype("float16", "Half", "c10::Half"), dtype("float32", "Float", "float")
float64 = dtype("float64", "Double", "double")

DTYPES = (bool_, uint8, int8, int16, int32, int64, float16, float32, float64)
DTYPE_OF_NUMPY: dict[np.dtype, dtype] = {d.numpy: d for d in DTYPES}


class _Default:
    float = float32.numpy


default = _Default()


def get_default_dtype() -> dtype:
    """Return the dtype of tensors created from Python floats: float32 unless changed.

    Returns
    -------
    dtype

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.get_default_dtype()
    gradlab.float32
    """
    return DTYPE_OF_NUMPY[default.float]


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors created from Python floats.

    Parameters
    ----------
    d : dtype
        float16, float32 or float64.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `d` is not a floating point dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_default_dtype(gl.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}.")
    if not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d}.")
    default.float = d.numpy


def as_numpy_dtype(value: Any, function: str = "") -> np.dtype | None:
    """Convert an argument `dtype=` to a NumPy dtype.

    Parameters
    ----------
    value : dtype, type or None
        A gradlab dtype, or Python's `float` (float64), `int` (int64) or `bool`. None is returned as it is.
    function : str, optional
        The name of the function in the error.

    Raises
    ------
    TypeError
        If `value` is not a dtype.
    """
    if value is None:
        return None
    if isinstance(value, dtype):
        return value.numpy
    if value is float:
        return float64.numpy
    if value is int:
        return int64.numpy
    if value is bool:
        return bool_.numpy
    raise TypeError(
        f"{function and f'{function}(): '}argument 'dtype' must be gradlab.dtype, not {type(value).__name__}. "
        + advice("Use a dtype such as gradlab.float32.")
    )


def from_numpy_dtype(numpy_dtype: np.dtype) -> dtype:
    """Convert a NumPy dtype to gradlab's. Raise a TypeError, which lists the supported types, if there is none."""
    try:
        return DTYPE_OF_NUMPY[numpy_dtype]
    except KeyError:
        if not numpy_dtype.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte "
                "orders is currently not supported. Call array.astype(array.dtype.newbyteorder('='))."
            ) from None
        hint = {
            "O": " NumPy makes an array of objects from rows of different lengths or from mixed data. Use numbers in rows of one "
            "length, or call array.astype(float).",
            "U": " The array holds text. If the text is numbers, call array.astype(float).",
            "u": " Call array.astype(numpy.int64).",
        }.get(numpy_dtype.kind, "")
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{numpy_dtype.type.__name__}. The only supported types are: "
            f"{', '.join(d.name for d in reversed(DTYPES))}.{hint}"
        ) from None


CATEGORY_OF_KIND = {"b": 0, "u": 1, "i": 1, "f": 2}


def join_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    """Promote two dtypes of equal rank, as NumPy does, except that an integer does not widen a float."""
    if (a.kind == "f") == (b.kind == "f"):
        return np.promote_types(a, b)
    return a if a.kind == "f" else b


def number_dtype(number: bool | int | float) -> np.dtype:
    """Return the dtype that a Python number has in promotion."""
    return bool_.numpy if isinstance(number, bool) else int64.numpy if isinstance(number, int) else default.float


def common_dtype(ranks: list[np.dtype | None]) -> np.dtype:
    """Return the common dtype of [numbers, 0-d tensors, tensors with axes], given the joined dtype of each rank or None.

    A lower rank counts only if its category is higher.
    """
    result: np.dtype | None = None
    for candidate in reversed(ranks):
        if candidate is not None and (result is None or CATEGORY_OF_KIND[candidate.kind] > CATEGORY_OF_KIND[result.kind]):
            result = candidate
    assert result is not None
    return result
