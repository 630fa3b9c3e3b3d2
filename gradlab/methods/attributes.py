"""Methods of `Tensor` that return its values, its shape and its memory layout."""

from __future__ import annotations

from builtins import bool as _bool
from builtins import int as _int
from typing import Any

import numpy as np

from gradlab.backend.bounds import PENDING_CHECKS, run_pending_checks
from gradlab.backend.memory import copy_to_pinned, is_pinned
from gradlab.backend.namespaces import address, cuda
from gradlab.core.dtypes import dtype
from gradlab.core.errors import size_of, wrong_type
from gradlab.core.layout import has_memory_format, strided
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, notify_leave_autograd
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim


class ConstantAttribute:
    """Read-only attribute with the same value for every tensor."""

    def __init__(self, value: Any) -> None:
        self.value, self.name = value, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type | None = None) -> Any:
        return self.value

    def __set__(self, tensor: Any, value: Any) -> None:
        raise AttributeError(f"attribute '{self.name}' of 'gradlab.Tensor' objects is not writable")

    def __delete__(self, tensor: Any) -> None:
        raise AttributeError(f"attribute '{self.name}' of 'gradlab.Tensor' objects is not writable")


class Attributes:
    """Values, shape and memory."""

    array: Any
    node: Any

    # ------------------------------------------------------------------------------------------------- reading values
    def item(self) -> Any:
        """Return the value of a tensor with one element as a Python number.

        The number has no history, so operations on it are not differentiated.

        Returns
        -------
        bool, int or float

        Raises
        ------
        RuntimeError
            If the tensor does not have exactly one element.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([2.5]).item()
        2.5
        """
        if self.array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self.array.size} elements cannot be converted to Scalar. It has shape "
                f"{list(self.array.shape)}. Use .tolist() to get all elements, or reduce it with .sum() or .mean()."
            )
        if OBSERVERS:
            notify_leave_autograd(self, "item()")
        if PENDING_CHECKS:
            run_pending_checks()
        return self.array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers.

        Returns
        -------
        list or number
            A number for a 0-d tensor.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        if OBSERVERS:
            notify_leave_autograd(self, "item()")
        if PENDING_CHECKS:
            run_pending_checks()
        return self.array.tolist()

    def numpy(self, *, force: _bool = False) -> np.ndarray:
        """Return a NumPy array that shares memory with the tensor.

        Parameters
        ----------
        force : bool, default: False
            Detach the tensor and copy it from the GPU if needed.

        Returns
        -------
        ndarray

        Raises
        ------
        RuntimeError
            If the tensor requires a gradient, gradients are being recorded, and `force` is False.
        TypeError
            If the tensor is on a GPU and `force` is False.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        if force:
            return self.detach().cpu().array
        if self.requires_grad and mode.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.is_cuda:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        if OBSERVERS:
            notify_leave_autograd(self, "numpy()")
        return self.array

    # ---------------------------------------------------------------------------------------------------------- shape
    def size(self, dim: _int | None = None) -> Any:
        """Return the shape, or the length of one axis.

        Parameters
        ----------
        dim : int, optional
            The axis.

        Returns
        -------
        Size or int

        Raises
        ------
        IndexError
            If `dim` is out of range.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).size(), gl.ones(2, 3).size(-1)
        (gradlab.Size([2, 3]), 3)
        """
        return size_of(self.array.shape) if dim is None else self.array.shape[negative_dim(dim, self.array.ndim)]

    def dim(self) -> _int:
        """Return the number of axes.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).dim()
        2
        """
        return self.array.ndim

    ndimension = dim

    # --------------------------------------------------------------------------------------------------------- memory
    layout: Any = ConstantAttribute(strided)

    def stride(self, dim: _int | None = None) -> Any:
        """Return the strides: the distance in memory, in elements, between neighbours along each axis.

        Parameters
        ----------
        dim : int, optional
            The axis.

        Returns
        -------
        tuple of int, or int

        Raises
        ------
        IndexError
            If `dim` is out of range.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).stride()
        (3, 1)
        """
        steps = tuple(n // self.array.itemsize for n in self.array.strides)
        return steps if dim is None else steps[negative_dim(dim, self.array.ndim)]

    def storage_offset(self) -> _int:
        """Return the offset of the first element in the underlying memory, in elements.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(5)[2:].storage_offset()
        2
        """
        base = self.array.base
        return 0 if type(base) is not type(self.array) else (address(self.array) - address(base)) // self.array.itemsize

    def data_ptr(self) -> _int:
        """Return the address of the first element.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(3)
        >>> x[1:].data_ptr() - x.data_ptr()
        4
        """
        return address(self.array)

    def is_set_to(self, tensor: Tensor) -> _bool:
        """Return True if both tensors refer to the same memory with the same shape and strides.

        Parameters
        ----------
        tensor : Tensor
            The other tensor.

        Returns
        -------
        bool

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2)
        >>> x.is_set_to(x.detach())
        True
        """
        if not isinstance(tensor, Tensor):
            raise wrong_type("is_set_to", "tensor", 1, "Tensor", tensor)
        return (address(self.array), self.array.shape, self.array.strides) == (
            address(tensor.array),
            tensor.array.shape,
            tensor.array.strides,
        )

    def is_contiguous(self, memory_format: Any = None) -> _bool:
        """Return True if the elements are contiguous in memory in the order given by `memory_format`.

        Parameters
        ----------
        memory_format : memory_format, optional
            The order to check. Defaults to row-major order.

        Returns
        -------
        bool

        Raises
        ------
        RuntimeError
            If `memory_format` requires a different number of axes or is `preserve_format`.
        TypeError
            If `memory_format` is not a memory format.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).t().is_contiguous()
        False
        """
        return self.array.flags.c_contiguous if memory_format is None else has_memory_format(self.array, memory_format)

    def element_size(self) -> _int:
        """Return the size of an element in bytes.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).element_size()
        4
        """
        return self.array.itemsize

    @property
    def itemsize(self) -> _int:
        """Size of an element in bytes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, dtype=gl.float64).itemsize
        8
        """
        return self.array.itemsize

    @property
    def nbytes(self) -> _int:
        """Size of all elements in bytes. An expanded tensor takes less memory than that.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).nbytes
        24
        """
        return self.array.size * self.array.itemsize

    def share_memory_(self) -> Tensor:
        """Return the tensor itself. Memory is not shared between processes; tensors sent to another process are copied.

        Returns
        -------
        Tensor

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).share_memory_()
        tensor([1., 1.])
        """
        return self

    def pin_memory(self, device: Any = None) -> Tensor:
        """Return a copy in page-locked memory, which `.to("cuda", non_blocking=True)` transfers asynchronously.

        Parameters
        ----------
        device : device, optional
            Accepted for compatibility; has no effect.

        Returns
        -------
        Tensor
            The tensor itself if it is already in page-locked memory or if there is no GPU. Otherwise a copy without history.

        Raises
        ------
        RuntimeError
            If the tensor is on a GPU.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).pin_memory()
        tensor([1., 1.])
        """
        if not cuda.probe() or self.is_pinned():
            return self
        if self.is_cuda:
            raise RuntimeError(f"cannot pin 'gradlab.cuda.{self.dtype.legacy}' only dense CPU tensors can be pinned")
        return constant(copy_to_pinned(cuda.cupy, self.array))

    def is_pinned(self, device: Any = None) -> _bool:
        """Return True if the memory is page-locked.

        Parameters
        ----------
        device : device, optional
            Accepted for compatibility; has no effect.

        Returns
        -------
        bool

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).is_pinned()
        False
        """
        return cuda.cupy is not None and is_pinned(cuda.cupy, self.array)

    def is_shared(self) -> _bool:
        """Return False. Memory is not shared between processes.

        Returns
        -------
        bool

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).is_shared()
        False
        """
        return False

    is_distributed = is_shared

    # ----------------------------------------------------------------------------------------------- kinds of tensors
    # Kinds that gradlab does not have:
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_meta = ConstantAttribute(False)
    is_mps = is_xpu = is_xla = is_hpu = is_ipu = is_maia = is_mtia = is_vulkan = ConstantAttribute(False)
    name: Any = ConstantAttribute(None)

    @property
    def is_cpu(self) -> _bool:
        """True if the tensor is in host memory.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").is_cpu
        True
        """
        return not self.is_cuda

    def get_device(self) -> _int:
        """Return the index of the tensor's GPU, or -1 on the CPU.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).get_device()
        -1
        """
        return self.device.index if self.is_cuda else -1  # type: ignore[return-value]

    @property
    def grad_dtype(self) -> dtype:
        """The dtype of `.grad`, which is the dtype of the tensor.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).grad_dtype
        gradlab.float32
        """
        return self.dtype
