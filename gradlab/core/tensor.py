"""A tensor: an array, the node that made it, and its gradient.

`node is None` means that no gradient is wanted; there is no second flag. A leaf that requires one holds an
`AccumulateGrad`, so an edge of the graph is always a node. Operators and methods are in `gradlab.methods`: they belong to
the public layer, and are attached when the package is imported.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.backend.namespaces import CPU, device, device_of
from gradlab.core.dtypes import dtype, known_dtype
from gradlab.core.errors import Size, non_leaf_grad, size_of
from gradlab.core.freeing import let_go_of_source
from gradlab.core.inference import InferenceStorage
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Invalid, Node
from gradlab.core.observers import OBSERVERS, notify_create, notify_detach, notify_restore, notify_data_replaced
from gradlab.core.ports import hold
from gradlab.core.storage import FRESH, Storage, own_storage, view_of

if TYPE_CHECKING:
    from gradlab.methods.tensor import Methods
else:
    Methods = object


class Tensor(Methods):
    """An n-dimensional array that can remember how it was made, so that its gradients can be computed.

    Prefer `gradlab.tensor`, which infers the dtype.

    Parameters
    ----------
    *data : sequence of numbers, or ints
        The elements, in the default dtype; or the shape of unset ones.
    size : sequence of int, optional
        The shape.
    device : device, optional
        Where it is.

    Attributes
    ----------
    array : ndarray
        The NumPy or CuPy array itself.

    Raises
    ------
    TypeError
        If it is a single number with a fraction, a string, or anything else that has no elements.
    ValueError
        If lists inside one another differ in length.

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
    )  # the dictionary is the user's: x.mine = 3
    __array_priority__ = 1000
    __module__ = "gradlab"
    __hash__ = object.__hash__

    array: Any
    node: Node | None
    grad_slot: Tensor | None
    storage: Storage
    _frozen: AccumulateGrad  # the node, with its hooks, while a leaf that had one requires no gradients
    _role: str  # set on a Parameter or Buffer alone: its name
    _tangent: Tensor  # set while a level is open, on those that have one: see core.tangents

    if sys.platform == "emscripten":
        __del__ = let_go_of_source

    # ------------------------------------------------------------------------------------------ what a tensor holds
    @property
    def data(self) -> Tensor:
        """The same memory without history, and not watched: a write through it is invisible to autograd.

        A backward that needs the old values is then silently wrong; through `detach` it raises. To set it replaces the memory,
        also by one of another shape.

        Raises
        ------
        TypeError
            If it is set to what is no tensor.
        RuntimeError
            If it is set to integers or bools while this tensor requires a gradient, or deleted.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True)
        >>> x.data[0] = 5.0
        >>> x
        tensor([5., 1.], requires_grad=True)
        """
        twin = constant(self.array)
        if OBSERVERS:
            twin.storage = InferenceStorage() if self.is_inference() else FRESH
            notify_detach(twin, self, "data")
        return twin

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}.")
        if self.node is not None and new.array.dtype.kind != "f":
            raise RuntimeError(
                f"data set to a tensor that requires gradients must be floating point or complex dtype. It has dtype {new.dtype}."
            )
        hold(self, new.array)
        if OBSERVERS:
            notify_data_replaced(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted for this tensor.

        It can be set on leaves; the result of an operation has it from its operands.

        Raises
        ------
        RuntimeError
            If it is set to what is no bool, on a tensor that is not floating point, or on one that is no leaf.

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
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients. This one has dtype "
                f"{self.dtype}: write 1. and not 1, or call .float() first."
            )
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
        """Ask for gradients of this leaf, or no longer, in place.

        Parameters
        ----------
        requires_grad : bool, default True
            Whether.

        Returns
        -------
        Tensor
            This tensor.

        Raises
        ------
        RuntimeError
            If it is not floating point, is an inference tensor and inference mode is over, or is no leaf and
            `requires_grad` is False.

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
                        "Take a clone of it: x.clone().requires_grad_()."
                    )
                if self.array.dtype.kind != "f":
                    raise RuntimeError(
                        f"only Tensors of floating point dtype can require gradients. This one has dtype {self.dtype}: "
                        "write 1. and not 1, or call .float() first."
                    )
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
        """Whether no recorded operation made this tensor.

        `backward` writes the `.grad` of leaves that require a gradient. A tensor that requires none is a leaf, however it was
        made.

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
        """The node of the operation that made this tensor; None for leaves.

        Raises
        ------
        RuntimeError
            If it is a view that was made under `no_grad` or by a custom Function, and its base was written to since.

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
        """The gradient that `backward` accumulated here; None until then.

        A leaf that requires a gradient has one, or a tensor that retains it (`retain_grad`). To read it of another tensor warns,
        and gives None. Each backward adds to it: set it to None, or delete it, before the next.

        Raises
        ------
        TypeError
            If it is set to what is neither a tensor nor None.
        RuntimeError
            If it is set to a tensor of another shape, dtype or device, or to this tensor itself.

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
                    "assigned grad has data located on a different device. It lies on "
                    f"{new.device}, the tensor on {self.device}: give grad.to(x.device)."
                )
            if new.array.dtype != self.array.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{new.dtype.c_name}' to a tensor with grad_dtype "
                    f"'{self.dtype.word}'. Give one of the tensor's dtype: grad.to(x.dtype)."
                )
        self.grad_slot = new

    @grad.deleter
    def grad(self) -> None:
        self.grad_slot = None

    def detach(self) -> Tensor:
        """The same memory without history.

        Returns
        -------
        Tensor
            A view that requires no gradient. Writes through it are noticed by autograd.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.ones(2, requires_grad=True)
        >>> x.detach().requires_grad
        False
        """
        twin = constant(self.array)
        twin.storage = own_storage(self)
        if OBSERVERS:
            notify_detach(twin, self, "detach")
        return twin

    # -------------------------------------------------------------------------------------------------- description
    @property
    def shape(self) -> Size:
        """The sizes of the axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).shape
        gradlab.Size([2, 3])
        """
        return size_of(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, 3).ndim
        2
        """
        return self.array.ndim  # type: ignore[no-any-return]

    @property
    def dtype(self) -> dtype:
        """The element type.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.tensor([1, 2]).dtype, gl.tensor([1.0]).dtype
        (gradlab.int64, gradlab.float32)
        """
        return known_dtype(self.array.dtype)

    @property
    def device(self) -> device:
        """Where the memory lies.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").device
        device(type='cpu')
        """
        return device_of(self.array)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory lies on a GPU.

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.ones(2, device="cpu").is_cuda
        False
        """
        return self.device != CPU

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this tensor, which is no leaf.

        Backward then writes its `.grad`. Of a leaf, whose `.grad` it writes in any case, it is False.

        Examples
        --------
        >>> import gradlab as gl
        >>> y = gl.ones(2, requires_grad=True) * 2
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        hooks = self.node.proper.hooks if self.node is not None else None
        return hooks is not None and hooks.retain is not None and hooks.retain() is self

    @property
    def _version(self) -> int:
        if type(self.storage) is InferenceStorage:
            raise RuntimeError("Inference tensors do not track version counter. A clone made outside inference_mode does.")
        return self.storage.version

    @property
    def _base(self) -> Tensor | None:
        view = None if self.is_inference() else view_of(self)
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return not self.is_inference() and view_of(self) is not None

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode, or is a view of one that was.

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
        """Which of its operation's outputs this tensor is, counted from 0.

        Examples
        --------
        >>> import gradlab as gl
        >>> values, _ = gl.ones(2, 3, requires_grad=True).max(0)
        >>> values.output_nr
        0
        """
        return 0 if self.node is None else self.node.public[1]


def _refused(*_: Any, **__: Any) -> Tensor:
    raise RuntimeError(
        f"gradlab's own tensors need NumPy 2 or newer, and this is NumPy {np.__version__}, which promotes dtypes otherwise. "
        "PyTorch's tensors are read with this one too: %%grad, %doctor and gl.jacobian take them. For tensors of gradlab's: "
        "pip install 'numpy>=2'"
    )


if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    Tensor.__new__ = _refused  # type: ignore[method-assign, assignment]


def constant(array: Any) -> Tensor:
    """`array` as a tensor without history, uncopied."""
    tensor: Tensor = Tensor.__new__(Tensor)
    tensor.array, tensor.node, tensor.grad_slot, tensor.storage = array, None, None, FRESH
    return notify_create(tensor) if OBSERVERS else tensor


def as_output(array: Any, node: Any) -> Tensor:
    """A saved `out` as the Tensor it was. (A node must not hold its own output: that would be a cycle.)"""
    out: Tensor = array
    if type(array) is Tensor:  # of a call that stands for its node: see core.tangents
        return out
    out = constant(array)
    out.node, out.storage = node.output_node(0), node.storage
    if OBSERVERS:
        notify_restore(out)
    return out
