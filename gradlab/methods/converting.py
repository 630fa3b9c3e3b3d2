"""Methods of `Tensor` that convert its dtype, device or memory format."""

from __future__ import annotations

import warnings
from builtins import bool as _bool
from builtins import int as _int
from typing import Any

from gradlab.backend.namespaces import device, is_on_device
from gradlab.core.dtypes import bool_ as bool_dtype
from gradlab.core.dtypes import dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.layout import to_memory_format
from gradlab.core.tensor import Tensor
from gradlab.ops import copies, permutation
from gradlab.ops.legacy_tensors import parse_legacy_type
from gradlab.rules import elementwise as el
from gradlab.rules import shapes

_Device = device
COPY = el.clone.with_node("ToCopyBackward0")
TO = (
    "(gradlab.device device = None, gradlab.dtype dtype = None, bool non_blocking = False, bool copy = False)",
    "(gradlab.dtype dtype, bool non_blocking = False, bool copy = False)",
    "(Tensor other, bool non_blocking = False, bool copy = False)",
)


CAST = """Return the tensor converted to {name}.

Parameters
----------
memory_format : memory_format, optional
    The desired memory format of the result.

Returns
-------
Tensor
    The tensor itself if it already has this dtype.

Raises
------
RuntimeError
    If `memory_format` requires a different number of axes.

Examples
--------
>>> import gradlab as gl
>>> gl.tensor([0, 1]).{method}().dtype
gradlab.{name}
"""


def _cast_to(method: str, dtype: dtype) -> Any:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        cast = copies.cast(self, dtype)
        return cast if memory_format is None else cast.to(memory_format=memory_format)

    convert.__doc__ = CAST.format(name=dtype.name, method=method)
    return convert


class Converting:
    """Conversions. Each returns the tensor itself if nothing changes."""

    array: Any

    def to(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        other: Any = None,
        non_blocking: _bool = False,
        copy: _bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Convert the tensor to another dtype, device or memory format.

        Parameters
        ----------
        *args : dtype, device or Tensor
            `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`.
        device : device, optional
            The desired device.
        dtype : dtype, optional
            The desired dtype.
        other : Tensor, optional
            Tensor whose dtype and device the result gets.
        non_blocking : bool, default: False
            Copy asynchronously if the source is in page-locked memory.
        copy : bool, default: False
            Always return a copy.
        memory_format : memory_format, optional
            The desired memory format of the result.

        Returns
        -------
        Tensor
            The tensor itself if nothing changes and `copy` is False. Gradients are converted back to this dtype and device.

        Raises
        ------
        TypeError
            If the arguments match none of these signatures.
        RuntimeError
            If the device does not exist or `memory_format` requires a different number of axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1.5, 2.5]).to(gl.int64)
        tensor([1, 2])
        """
        for at, arg in enumerate(args):
            if isinstance(arg, Tensor) and not at:
                other = arg
            elif isinstance(arg, _bool):
                if at and isinstance(args[at - 1], _bool):
                    copy = arg
                else:
                    non_blocking = arg
            elif isinstance(arg, (str, _Device, _int)) and not at:
                device = arg
            elif isinstance(arg, _Dtype) or arg in (float, int, bool):
                dtype = arg
            elif arg is not None:
                raise invalid_combination("to", args, *TO)
        if other is not None:
            dtype, device = other.dtype, other.device
        result = self if dtype is None else copies.cast(self, dtype)
        if device is not None:
            where = _Device(device)
            if not is_on_device(result.array, where):
                result = shapes.transfer.record(result, where=where, back=result.device, waits=not non_blocking)
        if copy and result is self:
            result = COPY.record(self)
        if memory_format is not None:
            arranged_array = to_memory_format(result.array, memory_format)
            if arranged_array is not result.array:
                result = COPY.record(self) if result is self else result
                result.array = arranged_array
        return result

    def cpu(self, memory_format: Any = None) -> Tensor:
        """Return a copy of the tensor in host memory.

        Parameters
        ----------
        memory_format : memory_format, optional
            The desired memory format of the result.

        Returns
        -------
        Tensor
            The tensor itself if it is already there.

        Raises
        ------
        RuntimeError
            If `memory_format` requires a different number of axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).cpu()
        tensor([1., 1.])
        """
        return self.to("cpu", memory_format=memory_format)

    def cuda(self, device: Any = None, non_blocking: _bool = False, memory_format: Any = None) -> Tensor:
        """Return a copy of the tensor in GPU memory.

        Parameters
        ----------
        device : device or int, optional
            The destination GPU. Defaults to the current one.
        non_blocking : bool, default: False
            Copy asynchronously if the source is in page-locked memory.
        memory_format : memory_format, optional
            The desired memory format of the result.

        Returns
        -------
        Tensor
            The tensor itself if it is already there.

        Raises
        ------
        RuntimeError
            If there is no GPU or `memory_format` requires a different number of axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2)
        >>> x = x.cuda() if gl.cuda.is_available() else x
        >>> x.tolist()
        [1.0, 1.0]
        """
        return self.to("cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)

    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any:
        """Return the name of the tensor's type, or convert the tensor to the given type.

        Parameters
        ----------
        dtype : dtype, type or str, optional
            The desired dtype, or a type such as `gradlab.FloatTensor` or its name.
        non_blocking : bool, default: False
            Accepted for compatibility; has no effect on the CPU.

        Returns
        -------
        str or Tensor
            The name if `dtype` is None, the converted tensor otherwise.

        Raises
        ------
        ValueError
            If `dtype` is a string that does not name a type.
        TypeError
            If `dtype` is any other object that does not name a dtype.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).type()
        'gradlab.FloatTensor'
        >>> gl.ones(2).type(gl.int64)
        tensor([1, 1])
        """
        if dtype is None:
            return f"gradlab.{'cuda.' if self.is_cuda else ''}{self.dtype.legacy}"
        legacy = parse_legacy_type(dtype)
        return copies.cast(self, dtype) if legacy is None else self.to("cuda" if legacy[1] else "cpu", legacy[0])

    def type_as(self, other: Tensor) -> Tensor:
        """Convert the tensor to the dtype and device of another tensor.

        Parameters
        ----------
        other : Tensor
            The other tensor.

        Returns
        -------
        Tensor
            The tensor itself if it already has that dtype and device.

        Raises
        ------
        TypeError
            If `other` is not a Tensor.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).type_as(gl.tensor([1]))
        tensor([1, 1])
        """
        if not isinstance(other, Tensor):
            raise wrong_type("type_as", "other", 1, "Tensor", other)
        return self.to(other)

    @property
    def T(self) -> Tensor:  # noqa: N802  (torch's name)
        """View of the tensor with its axes reversed: the transpose of a matrix.

        Warns if the tensor does not have two axes, as in PyTorch. Use `mT` to transpose batches of matrices.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([[1, 2], [3, 4]]).T
        tensor([[1, 3],
                [2, 4]])
        """
        if not self.array.ndim:
            warnings.warn(
                "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.", UserWarning, stacklevel=2
            )
        elif self.array.ndim != 2:
            warnings.warn(
                "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
                "will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
                "`x.permute(*gradlab.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
                UserWarning,
                stacklevel=2,
            )
            return shapes.permute.record(self, axes=tuple(range(-1, -self.array.ndim - 1, -1)))
        return shapes.permute.record(self, axes=(-1, -2) if self.array.ndim else ())

    @property
    def mT(self) -> Tensor:  # noqa: N802  (torch's name)
        """View of the tensor with its last two axes exchanged: each matrix of a batch transposed.

        Raises
        ------
        RuntimeError
            If the tensor has fewer than two axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(5, 2, 3).mT.shape
        gradlab.Size([5, 3, 2])
        """
        if self.array.ndim < 2:
            raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.array.ndim}-D tensor.")
        return permutation.transpose(self, -2, -1)

    @property
    def mH(self) -> Tensor:  # noqa: N802  (torch's name)
        """View of the tensor with its last two axes exchanged. Equal to `mT`, since elements are real.

        Raises
        ------
        RuntimeError
            If the tensor has fewer than two axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(5, 2, 3).mH.shape
        gradlab.Size([5, 3, 2])
        """
        if self.array.ndim < 2:
            raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {self.array.ndim}-D tensor.")
        return permutation.transpose(self, -2, -1)

    @property
    def H(self) -> Tensor:  # noqa: N802  (torch's name)
        """Transpose of a matrix, since elements are real. A 0-d tensor is returned unchanged.

        Raises
        ------
        RuntimeError
            If the tensor is neither 2-d nor 0-d.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).H.shape
        gradlab.Size([3, 2])
        """
        if self.array.ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {self.array.ndim}-D tensor. For "
                "batches of matrices, consider using tensor.mH"
            )
        return permutation.transpose(self, -2, -1) if self.array.ndim else self

    def bfloat16(self, memory_format: Any = None) -> Tensor:
        """Raise an error: bfloat16 is not supported, because NumPy does not have it.

        Parameters
        ----------
        memory_format : memory_format, optional
            Ignored.

        Returns
        -------
        None
            Never returned.

        Raises
        ------
        TypeError
            Always.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).half().dtype  # the supported 16-bit dtype
        gradlab.float16
        """
        raise TypeError("bfloat16 is a dtype that NumPy does not have, so gradlab does not support it. Use .half() or .float().")

    float = _cast_to("float", float32)
    double = _cast_to("double", float64)
    half = _cast_to("half", float16)
    long = _cast_to("long", int64)
    short = _cast_to("short", int16)
    char = _cast_to("char", int8)
    byte = _cast_to("byte", uint8)
    int = _cast_to("int", int32)
    bool = _cast_to("bool", bool_dtype)


_Dtype = dtype
