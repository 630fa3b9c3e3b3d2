"""What a tensor tells of itself: values, shape, memory."""

from __future__ import annotations

from builtins import bool as _bool
from builtins import int as _int
from typing import Any

import numpy as np

from gradlab.backend.bounds import NOTED, settle
from gradlab.backend.memory import is_pinned, pinned
from gradlab.backend.namespaces import address, cuda
from gradlab.core.dtypes import dtype
from gradlab.core.errors import expected, size_of
from gradlab.core.layout import is_arranged, strided
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, notify_leave_autograd
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim


class Fixed:
    """An attribute that is the same for every tensor, and cannot be set."""

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
    """Gradients, values, shape and memory."""

    array: Any
    node: Any

    # ------------------------------------------------------------------------------------------------- reading values
    def item(self) -> Any:
        """The only element as a Python number.

        It has no history: what is computed from it is not differentiated.

        Returns
        -------
        bool, int or float

        Raises
        ------
        RuntimeError
            If there is not one element.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([2.5]).item()
        2.5
        """
        if self.array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self.array.size} elements cannot be converted to Scalar. It has shape "
                f"{list(self.array.shape)}: .tolist() gives all of them, .sum() or .mean() one."
            )
        if OBSERVERS:
            notify_leave_autograd(self, "item()")
        if NOTED:
            settle()
        return self.array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers.

        Returns
        -------
        list, or a number
            Of a tensor without axes a number.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        if OBSERVERS:
            notify_leave_autograd(self, "item()")
        if NOTED:
            settle()
        return self.array.tolist()

    def numpy(self, *, force: _bool = False) -> np.ndarray:
        """The elements as a NumPy array that shares memory.

        Parameters
        ----------
        force : bool, default False
            Whether to detach and to copy from a GPU where that is needed.

        Returns
        -------
        ndarray

        Raises
        ------
        RuntimeError
            If it requires a gradient, gradients are recorded, and `force` is False.
        TypeError
            If it is on a GPU, and `force` is False.

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
        """The shape, or the length of one axis.

        Parameters
        ----------
        dim : int, optional
            Which axis.

        Returns
        -------
        Size or int

        Raises
        ------
        IndexError
            If there is no such axis.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).size(), gl.ones(2, 3).size(-1)
        (gradlab.Size([2, 3]), 3)
        """
        return size_of(self.array.shape) if dim is None else self.array.shape[one_dim(dim, self.array.ndim)]

    def dim(self) -> _int:
        """The number of axes.

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
    layout: Any = Fixed(strided)

    def stride(self, dim: _int | None = None) -> Any:
        """How many elements apart neighbours along each axis lie in memory.

        Parameters
        ----------
        dim : int, optional
            Which axis.

        Returns
        -------
        tuple of int, or int

        Raises
        ------
        IndexError
            If there is no such axis.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).stride()
        (3, 1)
        """
        steps = tuple(n // self.array.itemsize for n in self.array.strides)
        return steps if dim is None else steps[one_dim(dim, self.array.ndim)]

    def storage_offset(self) -> _int:
        """How many elements into the memory that it shares the first element lies.

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
        """The address of the first element.

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
        """Whether the other tensor shows the same elements of the same memory.

        Parameters
        ----------
        tensor : Tensor
            The other one.

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
            raise expected("is_set_to", "tensor", 1, "Tensor", tensor)
        return (address(self.array), self.array.shape, self.array.strides) == (
            address(tensor.array),
            tensor.array.shape,
            tensor.array.strides,
        )

    def is_contiguous(self, memory_format: Any = None) -> _bool:
        """Whether the elements lie in memory in the order of their indices, or in that of the format.

        Parameters
        ----------
        memory_format : memory_format, optional
            Which order is asked for; by default that of the indices.

        Returns
        -------
        bool

        Raises
        ------
        RuntimeError
            If the format is for tensors of another number of axes, or is `preserve_format`.
        TypeError
            If it is no memory format.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).t().is_contiguous()
        False
        """
        return self.array.flags.c_contiguous if memory_format is None else is_arranged(self.array, memory_format)

    def element_size(self) -> _int:
        """Bytes that an element takes.

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
        """Bytes that an element takes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, dtype=gl.float64).itemsize
        8
        """
        return self.array.itemsize

    @property
    def nbytes(self) -> _int:
        """Bytes that the elements take, if each has its own place: an expanded tensor needs fewer.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).nbytes
        24
        """
        return self.array.size * self.array.itemsize

    def share_memory_(self) -> Tensor:
        """Itself: gradlab's memory is the process's own, and other processes are sent copies.

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
        """A copy in page-locked memory, which `.to("cuda", non_blocking=True)` sends without a wait.

        Parameters
        ----------
        device : device, optional
            Accepted, without effect.

        Returns
        -------
        Tensor
            Itself if it is there, or if there is no GPU; else a copy, without history.

        Raises
        ------
        RuntimeError
            If it is on a GPU.

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
        return constant(pinned(cuda.cupy, self.array))

    def is_pinned(self, device: Any = None) -> _bool:
        """Whether the memory is page-locked.

        Parameters
        ----------
        device : device, optional
            Accepted, without effect.

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
        """False: gradlab's memory is the process's own.

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

    # ---------------------------------------------------------------------------------------------- what kind of tensor
    # What gradlab has not:
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_meta = is_mps = is_xpu = is_xla = is_hpu = Fixed(False)
    is_ipu = is_maia = is_mtia = is_vulkan = Fixed(False)
    name: Any = Fixed(None)

    @property
    def is_cpu(self) -> _bool:
        """Whether the memory is the host's.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").is_cpu
        True
        """
        return not self.is_cuda

    def get_device(self) -> _int:
        """The number of the GPU; -1 on the CPU.

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
        """The dtype of `.grad`: that of the tensor.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).grad_dtype
        gradlab.float32
        """
        return self.dtype
