"""Limits and promotion of dtypes, and predicates for tensors and other objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.core.dtypes import (
    CATEGORY_OF_KIND,
    DTYPE_OF_NUMPY,
    as_numpy_dtype,
    common_dtype,
    default,
    dtype,
    join_dtypes,
    number_dtype,
)
from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.operator import Operator, build_docstring, composite
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor

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
    """Limits of a dtype, with PyTorch's repr."""

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
    """Limits of a floating point dtype.

    Parameters
    ----------
    type : dtype, optional
        The dtype. Default: the default dtype.

    Attributes
    ----------
    bits : int
        Number of bits.
    eps : float
        Difference between 1 and the next larger number.
    max, min : float
        Largest and smallest number. `min` is the negative of `max`.
    tiny, smallest_normal : float
        Smallest positive normal number.
    resolution : float
        10 to the power of minus the number of exact decimal digits.
    dtype : str
        Name of the dtype.

    Raises
    ------
    TypeError
        If `type` is not a dtype, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.finfo(gl.float32).eps
    1.1920928955078125e-07
    """

    shown = "resolution", "min", "max", "eps", "smallest_normal", "tiny"

    def __init__(self, type: dtype | None = None) -> None:
        if type is None:
            type = DTYPE_OF_NUMPY[default.float]
        if not isinstance(type, dtype):
            raise wrong_type("finfo", "type", 1, "gradlab.dtype", type)
        if not type.is_floating_point:
            raise TypeError(f"gradlab.finfo() requires a floating point input type. Use gradlab.iinfo to handle '{type}'")
        info = np.finfo(type.numpy)
        self.dtype, self.bits = type.name, info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(f"1e-{info.precision}")


class iinfo(_Info):  # noqa: N801  (torch's name)
    """Limits of an integer dtype.

    Parameters
    ----------
    type : dtype
        The dtype.

    Attributes
    ----------
    bits : int
        Number of bits.
    max, min : int
        Largest and smallest number.
    dtype : str
        Name of the dtype.

    Raises
    ------
    TypeError
        If `type` is not a dtype, or if it is floating point or bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.iinfo(gl.int8).max
    127
    """

    shown = "min", "max"

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise wrong_type("iinfo", "type", 1, "gradlab.dtype", type)
        if type.is_floating_point:
            raise TypeError(f"gradlab.iinfo() requires an integer input type. Use gradlab.finfo to handle '{type}'")
        if type.numpy.kind == "b":
            raise TypeError("gradlab.bool is not supported by gradlab.iinfo")
        info = np.iinfo(type.numpy)
        self.dtype, self.bits, self.max, self.min = type.name, info.bits, int(info.max), int(info.min)


@composite(method=False)
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype to which both dtypes can be promoted.

    Parameters
    ----------
    type1, type2 : dtype
        Dtypes to promote.

    Returns
    -------
    dtype
        The dtype of a sum of two tensors of these dtypes.

    Raises
    ------
    TypeError
        If an argument is not a dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.promote_types(gl.int32, gl.float16)
    gradlab.float16
    """
    for position, one in enumerate((type1, type2), 1):
        if not isinstance(one, dtype):
            raise wrong_type("promote_types", f"type{position}", position, "gradlab.dtype", one)
    return DTYPE_OF_NUMPY[join_dtypes(type1.numpy, type2.numpy)]


@composite(method=False)
def result_type(tensor: Tensor | float, other: Tensor | float) -> dtype:
    """Return the dtype of the result of an operation on two tensors or numbers.

    Parameters
    ----------
    tensor, other : Tensor or number
        Operands. Tensors with dimensions take priority over 0-d tensors, and those over numbers. An operand of lower priority
        affects the dtype only if its kind is higher.

    Returns
    -------
    dtype
        Dtype of the result.

    Raises
    ------
    TypeError
        If an operand is neither a Tensor nor a number.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.result_type(gl.tensor([1, 2]), 1.0)
    gradlab.float32
    """
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
        rank, own = ((2 if x.array.ndim else 1), x.array.dtype) if isinstance(x, Tensor) else (0, number_dtype(x))
        known = ranks[rank]
        ranks[rank] = own if known is None else join_dtypes(known, own)
    return DTYPE_OF_NUMPY[common_dtype(ranks)]


@composite(method=False)
def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether an in-place operation may store a result of one dtype in a tensor of another.

    Parameters
    ----------
    from_, to : dtype
        Dtype of the result, and dtype of the tensor to store it in.

    Returns
    -------
    bool
        True if the kind of `to` is not lower than that of `from_`. In ascending order, the kinds are bool, integer and
        floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.can_cast(gl.float64, gl.float16), gl.can_cast(gl.float16, gl.int64)
    (True, False)
    """
    for position, (argument, one) in enumerate((("from_", from_), ("to", to)), start=1):
        if not isinstance(one, dtype):
            raise wrong_type("can_cast", argument, position, "gradlab.dtype", one)
    kinds = [CATEGORY_OF_KIND[as_numpy_dtype(d, "can_cast").kind] for d in (from_, to)]  # type: ignore[union-attr]
    return kinds[0] <= kinds[1]


@composite()
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is floating point. Only such tensors can have gradients.

    Parameters
    ----------
    {input}

    Returns
    -------
    bool
        True for float16, float32 and float64.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_floating_point(gl.tensor([1, 2]))
    False
    """
    if not isinstance(input, Tensor):
        raise wrong_type("is_floating_point", "input", 1, "Tensor", input)
    return input.array.dtype.kind == "f"


@composite()
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype can represent negative numbers.

    Parameters
    ----------
    {input}

    Returns
    -------
    bool
        False for uint8 and bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_signed(gl.tensor([1, 2]))
    True
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("is_signed", input)
    return input.dtype.is_signed


def _always_false(name: str, doc: str) -> Callable[[Tensor], bool]:
    def never(input: Tensor) -> bool:
        if not isinstance(input, Tensor):
            raise wrong_type(name, "input", 1, "Tensor", input)
        return False

    never.__name__ = never.__qualname__ = name
    never.__doc__ = build_docstring(
        f"{doc}. Always False, because gradlab has no complex numbers.",
        "input",
        "False.",
        ["TypeError\n    If `input` is not a Tensor."],
        f"{name}(gl.zeros(2)) -> False",
    ).replace("Tensor\n    False.", "bool\n    False.")
    Operator(name, never)
    return never


is_complex = _always_false("is_complex", "Return whether the elements are complex numbers")
is_conj = _always_false("is_conj", "Return whether the conjugate bit is set")
is_neg = _always_false("is_neg", "Return whether the negative bit is set")


@composite()
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is nonzero.

    Parameters
    ----------
    input : Tensor
        Tensor with one element.

    Returns
    -------
    bool
        Same as `bool(input)`.

    Raises
    ------
    RuntimeError
        If `input` does not have exactly one element.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_nonzero(gl.tensor([0.5]))
    True
    """
    return bool(input)


@composite()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Parameters
    ----------
    {input}
    other : Tensor
        Tensor to compare with.

    Returns
    -------
    bool
        True if the shapes are equal. Nothing broadcasts.

    Raises
    ------
    TypeError
        If `other` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_same_size(gl.zeros(2, 1), gl.zeros(2))
    False
    """
    if not isinstance(other, Tensor):
        raise wrong_type("is_same_size", "other", 1, "Tensor", other)
    return input.array.shape == other.array.shape


@composite(method=False)
def is_storage(obj: Any) -> bool:
    """Return whether an object is a PyTorch storage. Always False, because gradlab has none.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_storage(gl.zeros(2))
    False
    """
    return False


@composite(method=False)
def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor.

    Parameters
    ----------
    obj : object
        Any object.

    Returns
    -------
    bool
        True for a `gradlab.Tensor`, False for NumPy arrays and all other objects.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_tensor(gl.zeros(2)), gl.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@composite(method=False)
def typename(obj: Any) -> str:
    """Return the name of an object's type.

    Parameters
    ----------
    obj : object
        A tensor, another object, or a type.

    Returns
    -------
    str
        For a tensor, the same as `x.type()`. A type outside `builtins` is shown with its module.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.typename(gl.zeros(2))
    'gradlab.FloatTensor'
    """
    if type(obj) is Tensor:
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = "gradlab" if kind in (dtype, Tensor) else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
