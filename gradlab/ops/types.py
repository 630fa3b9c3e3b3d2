"""Questions about dtypes, and about what kind of thing an object is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.core.dtypes import CATEGORY, OF_NUMPY, as_numpy_dtype, common_dtype, default, dtype, join, number_dtype
from gradlab.core.errors import expected, invalid_combination
from gradlab.core.operator import Operator, composed, documented
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
    """The limits of a floating point dtype.

    Parameters
    ----------
    type : dtype, optional
        The dtype; without it the default one.

    Attributes
    ----------
    bits : int
        The bits of a number.
    eps : float
        From 1 to the next larger number.
    max, min : float
        The largest number and the smallest, which is its negative.
    tiny, smallest_normal : float
        The smallest positive number of full precision.
    resolution : float
        10 to the power of minus the decimal digits that hold.
    dtype : str
        The name.

    Raises
    ------
    TypeError
        If `type` is no dtype, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.finfo(gl.float32).eps
    1.1920928955078125e-07
    """

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
    """The limits of an integer dtype.

    Parameters
    ----------
    type : dtype
        The dtype.

    Attributes
    ----------
    bits : int
        The bits of a number.
    max, min : int
        The largest and the smallest number.
    dtype : str
        The name.

    Raises
    ------
    TypeError
        If `type` is no dtype, floating point, or bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.iinfo(gl.int8).max
    127
    """

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


@composed(method=False)
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be promoted to.

    Parameters
    ----------
    type1, type2 : dtype
        The dtypes.

    Returns
    -------
    dtype
        The dtype of a sum of two tensors of these dtypes.

    Raises
    ------
    TypeError
        If one is no dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.promote_types(gl.int32, gl.float16)
    gradlab.float16
    """
    for position, one in enumerate((type1, type2), 1):
        if not isinstance(one, dtype):
            raise expected("promote_types", f"type{position}", position, "gradlab.dtype", one)
    return OF_NUMPY[join(type1.numpy, type2.numpy)]


@composed(method=False)
def result_type(tensor: Tensor | float, other: Tensor | float) -> dtype:
    """The dtype of an operation on two tensors or numbers.

    Parameters
    ----------
    tensor, other : Tensor or number
        The operands. Tensors with dimensions count more than 0-d ones, and these more than numbers: those decide the dtype only
        if their kind is higher.

    Returns
    -------
    dtype
        The dtype.

    Raises
    ------
    TypeError
        If one is neither a tensor nor a number.

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
        ranks[rank] = own if known is None else join(known, own)
    return OF_NUMPY[common_dtype(ranks)]


@composed(method=False)
def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether an in-place operation may store a result of one dtype in another.

    Parameters
    ----------
    from_, to : dtype
        The dtype of the result, and that of the tensor which it is stored in.

    Returns
    -------
    bool
        Whether the kind of `to` is not lower. The kinds are bool, integer, floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.can_cast(gl.float64, gl.float16), gl.can_cast(gl.float16, gl.int64)
    (True, False)
    """
    for position, (argument, one) in enumerate((("from_", from_), ("to", to)), start=1):
        if not isinstance(one, dtype):
            raise expected("can_cast", argument, position, "gradlab.dtype", one)
    kinds = [CATEGORY[as_numpy_dtype(d, "can_cast").kind] for d in (from_, to)]  # type: ignore[union-attr]
    return kinds[0] <= kinds[1]


@composed()
def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating point numbers: only those have gradients.

    Parameters
    ----------
    {input}

    Returns
    -------
    bool
        Whether its dtype is float16, float32 or float64.

    Raises
    ------
    TypeError
        If `input` is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_floating_point(gl.tensor([1, 2]))
    False
    """
    if not isinstance(input, Tensor):
        raise expected("is_floating_point", "input", 1, "Tensor", input)
    return input.array.dtype.kind == "f"


@composed()
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    Parameters
    ----------
    {input}

    Returns
    -------
    bool
        False of uint8 and bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_signed(gl.tensor([1, 2]))
    True
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("is_signed", input)
    return input.dtype.is_signed


def _never(name: str, doc: str) -> Callable[[Tensor], bool]:
    def never(input: Tensor) -> bool:
        if not isinstance(input, Tensor):
            raise expected(name, "input", 1, "Tensor", input)
        return False

    never.__name__ = never.__qualname__ = name
    never.__doc__ = documented(
        f"{doc}: never, since gradlab has no complex numbers.",
        "input",
        "False.",
        ["TypeError\n    If `input` is no tensor."],
        f"{name}(gl.zeros(2)) -> False",
    ).replace("Tensor\n    False.", "bool\n    False.")
    Operator(name, never)
    return never


is_complex = _never("is_complex", "Whether the elements are complex numbers")
is_conj = _never("is_conj", "Whether the conjugate is still to be taken")
is_neg = _never("is_neg", "Whether the sign is still to be changed")


@composed()
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0.

    Parameters
    ----------
    input : Tensor
        A tensor of one element.

    Returns
    -------
    bool
        What `bool(input)` is.

    Raises
    ------
    RuntimeError
        If there are several elements, or none.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_nonzero(gl.tensor([0.5]))
    True
    """
    return bool(input)


@composed()
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape.

    Parameters
    ----------
    {input}
    other : Tensor
        The tensor that it is compared with.

    Returns
    -------
    bool
        Whether their shapes are equal; nothing broadcasts.

    Raises
    ------
    TypeError
        If `other` is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_same_size(gl.zeros(2, 1), gl.zeros(2))
    False
    """
    if not isinstance(other, Tensor):
        raise expected("is_same_size", "other", 1, "Tensor", other)
    return input.array.shape == other.array.shape


@composed(method=False)
def is_storage(obj: Any) -> bool:
    """Whether an object is a storage of torch's: never, since gradlab has none.

    Parameters
    ----------
    obj : object
        Anything.

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


@composed(method=False)
def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Parameters
    ----------
    obj : object
        Anything.

    Returns
    -------
    bool
        Whether it is a `gradlab.Tensor`. Arrays of NumPy are none.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_tensor(gl.zeros(2)), gl.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@composed(method=False)
def typename(obj: Any) -> str:
    """The name of an object's type.

    Parameters
    ----------
    obj : object
        A tensor, another object, or a type.

    Returns
    -------
    str
        Of a tensor as `x.type()`; of a type outside `builtins` with its module.

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
