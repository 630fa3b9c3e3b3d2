"""The Tensor class: an array, the node that created it, and its gradient.

`node is None` means that the tensor does not require a gradient; there is no second flag. A leaf that requires one has an
`AccumulateGrad` node, so every edge of the graph leads to a node. Operators and methods belong to the public layer: they are
defined in `gradlab.methods` and attached when the package is imported.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.backend.namespaces import CPU, device, device_of
from gradlab.core.dtypes import dtype, from_numpy_dtype
from gradlab.core.errors import FIX_INTEGER_TENSOR, Size, cannot_require_grad, non_leaf_grad, size_of
from gradlab.core.freeing import free_view_source
from gradlab.core.inference import InferenceStorage
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Invalid, Node
from gradlab.core.observers import OBSERVERS, notify_create, notify_data_replaced, notify_detach, notify_restore
from gradlab.core.ports import replace_array
from gradlab.core.storage import FRESH, Storage, own_storage, view_of

if TYPE_CHECKING:
    from gradlab.methods.tensor import Methods
else:
    Methods = object


class Tensor(Methods):
    """An n-dimensional array that records its operations, so that gradients can be computed.

    Prefer `gradlab.tensor`, which infers the dtype.

    Parameters
    ----------
    *data : sequence of numbers, or ints
        The elements, converted to the default dtype. Integers are the shape of an uninitialized tensor.
    size : sequence of int, optional
        Shape of an uninitialized tensor.
    device : device, optional
        Device of the tensor.

    Attributes
    ----------
    array : ndarray
        The underlying NumPy or CuPy array.

    Raises
    ------
    TypeError
        If `data` is a single float, a string, or anything else that is not a sequence of numbers or integers.
    ValueError
        If nested lists differ in length.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.Tensor([[1, 2]])
    tensor([[1., 2.]])
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_frozen",
        "_role",
        "_tangent",
        "array",
        "grad_slot",
        "lost",
        "node",
        "storage",
        "view_record",
    )  # `__dict__` is for attributes that users set: x.mine = 3
    __array_priority__ = 1000
    __module__ = "gradlab"
    __hash__ = object.__hash__

    array: Any
    node: Node | None
    grad_slot: Tensor | None
    storage: Storage
    _frozen: AccumulateGrad  # the node of a leaf, with its hooks, after requires_grad was set to False
    _role: str  # the name of a Parameter or Buffer; unset on other tensors
    _tangent: Tensor  # set on dual tensors while a level is open: see core.tangents

    if sys.platform == "emscripten":
        __del__ = free_view_source

    # ---------------------------------------------------------------------------------------------------- autograd state
    @property
    def data(self) -> Tensor:
        """A tensor that shares this memory without history and without version checks.

        Autograd does not notice writes through `data`, so a backward pass that needs the old values is silently wrong. After a
        write through `detach()` it raises. Assigning to `data` replaces the memory; the shape may change.

        Raises
        ------
        TypeError
            If the assigned value is not a Tensor.
        RuntimeError
            If integers or bools are assigned while this tensor requires a gradient, or if `data` is deleted.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True)
        >>> x.data[0] = 5.0
        >>> x
        tensor([5., 1.], requires_grad=True)
        """
        alias = constant(self.array)
        if OBSERVERS:
            alias.storage = InferenceStorage() if self.is_inference() else FRESH
            notify_detach(alias, self, "data")
        return alias

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}.")
        if self.node is not None and new.array.dtype.kind != "f":
            raise RuntimeError(
                f"data set to a tensor that requires gradients must be floating point or complex dtype. It has dtype {new.dtype}."
            )
        replace_array(self, new.array)
        if OBSERVERS:
            notify_data_replaced(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def requires_grad(self) -> bool:
        """True if gradients must be computed for this tensor, False otherwise.

        It can be set on leaves. The result of an operation requires a gradient if any of its operands does.

        Raises
        ------
        RuntimeError
            If the assigned value is not a bool, or if the tensor is not floating point or not a leaf.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> (w * 2).requires_grad, gl.ones(2).requires_grad
        (True, False)
        """
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted is not True and wanted is not False:
            raise RuntimeError(f"requires_grad must be a bool. It is {type(wanted).__name__}.")
        if wanted and self.node is None and self.array.dtype.kind != "f":
            first = "only Tensors of floating point and complex dtype can require gradients. This one has dtype"
            raise cannot_require_grad(first, self.dtype, FIX_INTEGER_TENSOR)
        if wanted and not self.is_leaf:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. This one was computed from one that "
                "requires gradients, so it requires them already."
            )
        self.requires_grad_(wanted)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool. It cannot be deleted: set it to False.")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this leaf requires a gradient, in place.

        Parameters
        ----------
        requires_grad : bool, default: True
            Whether the tensor requires a gradient.

        Returns
        -------
        Tensor
            This tensor.

        Raises
        ------
        RuntimeError
            If the tensor is not floating point, if it is an inference tensor outside inference mode, or if it is not a leaf
            and `requires_grad` is False.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        if requires_grad:
            if self.node is None:
                if type(self.storage) is InferenceStorage and not mode.inference:
                    raise RuntimeError(
                        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. "
                        "Clone it first: x.clone().requires_grad_()."
                    )
                if self.array.dtype.kind != "f":
                    first = "only Tensors of floating point dtype can require gradients. This one has dtype"
                    raise cannot_require_grad(first, self.dtype, FIX_INTEGER_TENSOR)
                node = getattr(self, "_frozen", None)
                if node is None:
                    node = AccumulateGrad(self)
                node.shape, node.dtype, node.storage = self.array.shape, self.array.dtype, self.storage
                self.node = node
        elif isinstance(self.node, AccumulateGrad):
            self._frozen, self.node = self.node, None
        elif self.node is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        return self

    @property
    def is_leaf(self) -> bool:
        """True if this tensor was not created by a recorded operation.

        `backward` writes the `.grad` of leaves that require a gradient. Every tensor that does not require a gradient is a
        leaf.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> w.is_leaf, (w * 2).is_leaf, (w * 2).detach().is_leaf
        (True, False, True)
        """
        return self.node is None or type(self.node) is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operation that created this tensor, or None for a leaf.

        Raises
        ------
        RuntimeError
            If the tensor is a view created under `no_grad` or by a custom Function and its base has been modified since.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.ones(2, requires_grad=True)
        >>> type((w * 2).grad_fn).__name__, w.grad_fn
        ('MulBackward0', None)
        """
        node = self.node
        if type(node) is Invalid:
            raise RuntimeError(node.meta[0])
        return None if node is None or type(node) is AccumulateGrad else node.public[0]

    @property
    def _grad_fn(self) -> Node | None:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward`, or None before the first call.

        It is set on leaves that require a gradient and on tensors that retain it (`retain_grad`). On any other tensor, reading
        it warns and returns None. Each call of `backward` adds to it; set it to None or delete it before the next one.

        Raises
        ------
        TypeError
            If the assigned value is neither a Tensor nor None.
        RuntimeError
            If the assigned tensor differs in shape, dtype or device, or is this tensor itself.

        Examples
        --------
        >>> import gradlab as gl
        >>> w = gl.tensor([1.0, 2.0], requires_grad=True)
        >>> for _ in range(2): (w * w).sum().backward()
        >>> w.grad
        tensor([4., 8.])
        """
        if self.grad_slot is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(non_leaf_grad(self), stacklevel=2)
        return self.grad_slot

    @grad.setter
    def grad(self, new: Tensor | None) -> None:
        if new is not None:
            if not isinstance(new, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(new).__name__}")
            if new is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if new.array.shape != self.array.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(new.array.shape)}' to a tensor of size "
                    f"'{list(self.array.shape)}'. Please ensure that the gradient and the tensor are the same "
                    "size"
                )
            if type(new.array) is not type(self.array):
                raise RuntimeError(
                    "assigned grad has data located on a different device. It is on "
                    f"{new.device}, the tensor on {self.device}. Assign grad.to(x.device)."
                )
            if new.array.dtype != self.array.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{new.dtype.c_name}' to a tensor with grad_dtype "
                    f"'{self.dtype.word}'. Assign grad.to(x.dtype)."
                )
        self.grad_slot = new

    @grad.deleter
    def grad(self) -> None:
        self.grad_slot = None

    def detach(self) -> Tensor:
        """Return a tensor that shares this memory and has no history.

        Returns
        -------
        Tensor
            A view that does not require a gradient. Autograd notices writes through it.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True)
        >>> x.detach().requires_grad
        False
        """
        alias = constant(self.array)
        alias.storage = own_storage(self)
        if OBSERVERS:
            notify_detach(alias, self, "detach")
        return alias

    # -------------------------------------------------------------------------------------------------- description
    @property
    def shape(self) -> Size:
        """The size of each dimension.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).shape
        gradlab.Size([2, 3])
        """
        return size_of(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).ndim
        2
        """
        return self.array.ndim  # type: ignore[no-any-return]

    @property
    def dtype(self) -> dtype:
        """The dtype of the elements.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1, 2]).dtype, gl.tensor([1.0]).dtype
        (gradlab.int64, gradlab.float32)
        """
        return from_numpy_dtype(self.array.dtype)

    @property
    def device(self) -> device:
        """The device that holds the tensor.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").device
        device(type='cpu')
        """
        return device_of(self.array)

    @property
    def is_cuda(self) -> bool:
        """True if the tensor is on a GPU.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").is_cuda
        False
        """
        return self.device != CPU

    @property
    def retains_grad(self) -> bool:
        """True if `retain_grad` was called on this tensor and it is not a leaf.

        The backward pass then writes its `.grad`. For a leaf, whose `.grad` is always written, it is False.

        Examples
        --------
        >>> import gradlab as gl
        >>> y = gl.ones(2, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        hooks = self.node.real_node.hooks if self.node is not None else None
        return hooks is not None and hooks.retain is not None and hooks.retain() is self

    @property
    def _version(self) -> int:
        if type(self.storage) is InferenceStorage:
            raise RuntimeError(
                "Inference tensors do not track version counter. Use a clone made outside inference_mode: x.clone()._version."
            )
        return self.storage.version

    @property
    def _base(self) -> Tensor | None:
        view = None if self.is_inference() else view_of(self)
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return not self.is_inference() and view_of(self) is not None

    def is_inference(self) -> bool:
        """Return True if this tensor was created in inference mode or is a view of one that was.

        Returns
        -------
        bool

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2).is_inference()
        False
        """
        return type(self.storage) is InferenceStorage

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of the operation that created it.

        Examples
        --------
        >>> import gradlab as gl
        >>> values, _ = gl.ones(2, 3, requires_grad=True).max(0)
        >>> values.output_nr
        0
        """
        return 0 if self.node is None else self.node.public[1]


def _refuse_old_numpy(*_: Any, **__: Any) -> Tensor:
    raise RuntimeError(
        f"gradlab's own tensors need NumPy 2 or newer, whose dtype promotion differs; found NumPy {np.__version__}. "
        "%%grad, %doctor and gl.jacobian work on PyTorch's tensors with this version too. To use gradlab's own tensors: "
        "pip install 'numpy>=2'"
    )


if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    Tensor.__new__ = _refuse_old_numpy  # type: ignore[method-assign, assignment]


def constant(array: Any) -> Tensor:
    """Wrap `array` in a tensor without history, without copying."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor.array, tensor.node, tensor.grad_slot, tensor.storage = array, None, None, FRESH
    return notify_create(tensor) if OBSERVERS else tensor


def as_output(array: Any, node: Any) -> Tensor:
    """Return the output of `node` as a Tensor, from the array that the node saved.

    A node saves only the array of its output, since a reference to the Tensor would be a cycle.
    """
    out: Tensor = array
    if type(array) is Tensor:  # saved by a `Call`, which is used in place of the node: see core.tangents
        return out
    out = constant(array)
    out.node, out.storage = node.output_node(0), node.storage
    if OBSERVERS:
        notify_restore(out)
    return out
