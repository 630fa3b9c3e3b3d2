"""What a tensor tells of itself, and what it becomes: gradients, values, shape, dtype, device."""
from __future__ import annotations

from builtins import bool as _bool
from builtins import int as _int
from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab import autograd
from gradlab.backend.namespaces import device, moved
from gradlab.core import engine
from gradlab.core.dtypes import bool_ as bool_dtype
from gradlab.core.dtypes import dtype, float16, float32, float64, int16, int32, int64, uint8
from gradlab.core.errors import Size
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.tensor import Tensor
from gradlab.functions import shapes as functions
from gradlab.functions.arguments import one_dim
from gradlab.rules import shapes

_Device = device


class Holding:
    """Gradients, values, shape, dtype and device."""

    array: Any
    node: Any

    # ------------------------------------------------------------------------------------------------------- autograd
    def backward(self, gradient: Any = None, retain_graph: _bool | None = None, create_graph: _bool = False,
                 inputs: Any = None) -> None:
        """Accumulate vᵀJ into the `.grad` of the leaves this tensor was made from, v being `gradient`.

        gradient: weights of this tensor's elements, of its shape; 1 if left out, which needs a single element.
        retain_graph: keep what the graph saved, for another backward. create_graph: record the gradients themselves.
        inputs: only these tensors receive gradients.
        """
        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self) -> None:
        """Let backward write this non-leaf's `.grad` too. Does nothing on a leaf."""
        if self.node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if type(self.node) is not AccumulateGrad:
            engine.retain_grad(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` whenever this tensor's gradient is computed; what it returns, if anything, replaces it."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return RemovableHandle(self.node.hooks_of_its_own().tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` whenever this leaf's `.grad` was written."""
        if type(self.node) is not AccumulateGrad:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return RemovableHandle(self.node.hooks_of_its_own().accumulated, hook)

    def detach_(self) -> Tensor:
        """Forget the history of this tensor, in place."""
        if self._is_view():
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        self.node = None
        return self

    # ------------------------------------------------------------------------------------------------- reading values
    def item(self) -> Any:
        """The only element as a Python number."""
        if self.array.size != 1:
            raise RuntimeError(f"a Tensor with {self.array.size} elements cannot be converted to Scalar")
        return self.array.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.array.tolist()

    def numpy(self, *, force: _bool = False) -> np.ndarray:
        """The elements as a NumPy array that shares memory."""
        if force:
            return self.detach().cpu().array
        if self.requires_grad and mode.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self.is_cuda:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                            "host memory first.")
        return self.array

    # ------------------------------------------------------------------------------------------- shape, dtype, device
    def size(self, dim: _int | None = None) -> Any:
        """The shape, or the length of one axis."""
        return Size(self.array.shape) if dim is None else self.array.shape[one_dim(dim, self.array.ndim)]

    def dim(self) -> _int:
        """The number of axes."""
        return self.array.ndim

    ndimension = dim
    numel = nelement = functions.numel

    def stride(self, dim: _int | None = None) -> Any:
        """How many elements apart neighbours along each axis (or along `dim`) lie in memory."""
        steps = tuple(n // self.array.itemsize for n in self.array.strides)
        return steps if dim is None else steps[one_dim(dim, self.array.ndim)]

    def is_contiguous(self) -> _bool:
        """Whether the elements lie in memory in the order of their indices."""
        return self.array.flags.c_contiguous

    def contiguous(self) -> Tensor:
        """Itself if contiguous, else a copy that is."""
        return self if self.is_contiguous() else functions.clone(self)

    def is_floating_point(self) -> _bool:
        """Whether the elements are floating point numbers."""
        return self.array.dtype.kind == "f"

    def element_size(self) -> _int:
        """Bytes an element takes."""
        return self.array.itemsize

    @property
    def itemsize(self) -> _int:
        """Bytes an element takes."""
        return self.array.itemsize

    @property
    def nbytes(self) -> _int:
        """Bytes that the elements take."""
        return self.array.size * self.array.itemsize

    def to(self, *args: Any, dtype: dtype | None = None, device: Any = None, copy: _bool = False) -> Tensor:
        """On another device or in another dtype (in any order, or as another tensor has them); itself if nothing changes."""
        for arg in args:
            if isinstance(arg, Tensor):
                dtype, device = arg.dtype, arg.device
            elif isinstance(arg, (str, _Device)):
                device = arg
            else:
                dtype = arg
        result = functions.cast(self, dtype)
        if device is not None:
            array = moved(result.array, _Device(device))
            if array is not result.array:
                result = shapes.transfer.record(result, where=_Device(device))
        return functions.clone(result) if copy and result is self else result

    def cpu(self) -> Tensor:
        """In host memory."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Tensor:
        """On a GPU."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, _int) else device)

    def type(self, dtype: Any = None) -> Any:
        """The type's name, as `gradlab.FloatTensor`; with a dtype, the tensor in it."""
        return f"gradlab.{'cuda.' if self.is_cuda else ''}{self.dtype.legacy}" if dtype is None else functions.cast(self, dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """In the dtype of `other`."""
        return functions.cast(self, other.dtype)

    def float(self) -> Tensor:
        """As float32."""
        return functions.cast(self, float32)

    def double(self) -> Tensor:
        """As float64."""
        return functions.cast(self, float64)

    def half(self) -> Tensor:
        """As float16."""
        return functions.cast(self, float16)

    def long(self) -> Tensor:
        """As int64."""
        return functions.cast(self, int64)

    def int(self) -> Tensor:
        """As int32."""
        return functions.cast(self, int32)

    def short(self) -> Tensor:
        """As int16."""
        return functions.cast(self, int16)

    def byte(self) -> Tensor:
        """As uint8."""
        return functions.cast(self, uint8)

    def bool(self) -> Tensor:
        """As bool: whether each element is nonzero."""
        return functions.cast(self, bool_dtype)

    @property
    def T(self) -> Tensor:  # noqa: N802  (torch's name)
        """All axes reversed."""
        return shapes.permute.record(self, axes=tuple(range(-1, -self.array.ndim - 1, -1)))

    @property
    def mT(self) -> Tensor:  # noqa: N802  (torch's name)
        """The last two axes exchanged."""
        if self.array.ndim < 2:
            raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.array.ndim}-D tensor.")
        return functions.transpose(self, -2, -1)
