"""The operators and methods of `Tensor`, in torch's spelling. They compute nothing: they hand over to the functions."""
from __future__ import annotations

import copy
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradlab import autograd, functions, indexing
from gradlab.backend.namespaces import device, moved
from gradlab.core import engine, inplace
from gradlab.core.dtypes import OF_NUMPY, default, dtype, float16, float32, float64, int16, int32, int64, uint8
from gradlab.core.dtypes import bool_ as bool_dtype
from gradlab.core.errors import Size
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.primitive import PRIMITIVES
from gradlab.core.printing import tensor_repr
from gradlab.core.tensor import Tensor, constant
from gradlab.functions import arithmetic
from gradlab.rules import elementwise as el
from gradlab.rules import shapes


class Methods:
    """What every tensor can do. (`Tensor` derives from this class for type checkers; at run time it takes its members.)"""

    array: Any
    node: Any

    __add__, __mul__, __sub__ = el.add.record, el.mul.record, el.sub.record
    __truediv__, __matmul__, __neg__, __abs__ = el.div.record, functions.matmul, el.neg.record, el.absolute.record
    __rsub__, __rtruediv__, __rpow__ = arithmetic.rsub, arithmetic.rdiv, arithmetic.rpow
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = (functions.eq, functions.ne, functions.lt, functions.le, functions.gt,
                                                      functions.ge)
    __and__, __or__, __xor__ = functions.bitwise_and, functions.bitwise_or, functions.bitwise_xor
    __getitem__, __setitem__ = indexing.get, indexing.set

    def __radd__(self, other: Any) -> Any:
        return el.add.record(self, other)

    def __rmul__(self, other: Any) -> Any:
        return el.mul.record(self, other)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) in (_int, _float) and self.array.dtype.kind == "f":
            return el.pow_scalar.record(self, exponent=exponent)
        return functions.pow(self, exponent)

    def __invert__(self) -> Tensor:
        if self.array.dtype.kind == "f":
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return constant(np.invert(self.array))

    def __bool__(self) -> _bool:
        if self.array.size != 1:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not self.array.size else
                               "Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().")
        return _bool(self.array.item())

    def __float__(self) -> _float:
        return _float(self._only())

    def __int__(self) -> _int:
        return _int(self._only())

    def _only(self) -> Any:
        if self.array.size != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars; this one has {self.array.size}.")
        return self.array.item()

    def __index__(self) -> _int:
        if self.array.size != 1 or self.array.dtype.kind == "f":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return _int(self.array.item())

    def __len__(self) -> _int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.array.shape[0])])

    def __contains__(self, value: Any) -> _bool:
        return _bool((self == value).array.any())

    def __repr__(self) -> str:
        leaf = self.is_leaf
        return tensor_repr(self.array, dtype_name=self.dtype.name, default_dtype_name=OF_NUMPY[default.float].name,
                           requires_grad=leaf and self.requires_grad, grad_fn_name=None if leaf else self.grad_fn.name(),
                           device=str(self.device) if self.is_cuda else None)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.array.ndim else object.__format__(self, spec)

    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                               "moment. Use .detach().clone() for a copy without history.")
        twin = memo[id(self)] = constant(self.array.copy())
        if self.requires_grad:
            twin.requires_grad_()
        twin.grad_slot = copy.deepcopy(self.grad_slot, memo)
        return twin

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise RuntimeError("a tensor with history cannot be pickled: detach() it first.")
        return _rebuilt, (self.detach().cpu().array, self.requires_grad, self.grad_slot)

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
        return Size(self.array.shape) if dim is None else self.array.shape[functions.one_dim(dim, self.array.ndim)]

    def dim(self) -> _int:
        """The number of axes."""
        return self.array.ndim

    ndimension = dim
    numel = nelement = functions.numel

    def stride(self, dim: _int | None = None) -> Any:
        """How many elements apart neighbours along each axis (or along `dim`) lie in memory."""
        steps = tuple(n // self.array.itemsize for n in self.array.strides)
        return steps if dim is None else steps[functions.one_dim(dim, self.array.ndim)]

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

    # --------------------------------------------------------------------------------------------------------- writing
    def zero_(self) -> Tensor:
        """Every element 0, in place."""
        return inplace.in_place(el.zero, self, value=0)

    def fill_(self, value: Any) -> Tensor:
        """Every element `value`, in place."""
        if isinstance(value, Tensor):
            if value.array.ndim:
                raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                                   f"{value.array.ndim} dimensions.")
            if value.node is not None:
                indexing.write(self, indexing.EVERYTHING, value, indexing.FILL)
                return self
            value = value.array.item()
        return inplace.in_place(el.fill, self, value=value)

    def copy_(self, src: Tensor) -> Tensor:
        """The elements of `src`, broadcast and cast, in place."""
        if not isinstance(src, Tensor):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {src.__class__.__name__}")
        if len(src.array.shape) > len(self.array.shape):
            raise RuntimeError(f"output with shape {list(self.array.shape)} doesn't match the broadcast shape "
                               f"{list(src.array.shape)}")
        indexing.write(self, indexing.EVERYTHING, src, indexing.COPY)
        return self

    def pow_(self, exponent: Any) -> Tensor:
        """self ** exponent, in place."""
        if isinstance(exponent, Tensor):
            return inplace.in_place(el.pow_, self, exponent)
        return inplace.in_place(el.pow_scalar, self, exponent=exponent)

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self + alpha · other, in place."""
        return inplace.in_place(el.add, self, other if alpha == 1 else other * alpha)

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self - alpha · other, in place."""
        return inplace.in_place(el.sub, self, other if alpha == 1 else other * alpha)

    def __iadd__(self, other: Any) -> Tensor:
        return inplace.in_place(el.add, self, other)

    def __isub__(self, other: Any) -> Tensor:
        return inplace.in_place(el.sub, self, other)

    def __imul__(self, other: Any) -> Tensor:
        return inplace.in_place(el.mul, self, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return inplace.in_place(el.div, self, other)

    def __ipow__(self, exponent: Any) -> Tensor:
        return self.pow_(exponent)

    def expand(self, *sizes: Any) -> Tensor:
        """Axes of length 1 repeated to the given sizes, without copying; -1 leaves an axis as it is."""
        return functions.expand(self, *sizes)

    def norm(self, p: Any = 2, dim: Any = None, keepdim: _bool = False) -> Tensor:
        """(Σ |x|ᵖ)^(1/p) over the axes `dim`."""
        return functions.norm(self, p, dim, keepdim)

    add, sub, mul, div, pow, square = (functions.add, functions.sub, functions.mul, functions.div, functions.pow,
                                       functions.square)
    subtract, multiply, divide, true_divide = functions.sub, functions.mul, functions.div, functions.div
    exp, log, sqrt, sin, cos, tanh = (functions.exp, functions.log, functions.sqrt, functions.sin, functions.cos,
                                      functions.tanh)
    sigmoid, relu, reciprocal, abs, neg = (functions.sigmoid, functions.relu, functions.reciprocal, functions.abs,
                                           functions.neg)
    absolute, negative = functions.abs, functions.neg
    maximum, minimum, where = functions.maximum, functions.minimum, lambda self, condition, other: functions.where(
        condition, self, other)
    eq, ne, lt, le, gt, ge = (functions.eq, functions.ne, functions.lt, functions.le, functions.gt, functions.ge)
    logical_not, isnan, isfinite, allclose, equal = (functions.logical_not, functions.isnan, functions.isfinite,
                                                     functions.allclose, functions.equal)
    sum, mean, std, var, max, min = (functions.sum, functions.mean, functions.std, functions.var, functions.max,
                                     functions.min)
    argmax, argmin, all, any = functions.argmax, functions.argmin, functions.all, functions.any
    matmul, mm, mv, dot = functions.product, functions.mm, functions.mv, functions.dot
    reshape, view, flatten, transpose, permute, t = (functions.reshape, functions.view, functions.flatten,
                                                     functions.transpose, functions.permute, functions.t)
    expand_as, broadcast_to, squeeze, unsqueeze = (functions.expand_as, functions.broadcast_to, functions.squeeze,
                                                   functions.unsqueeze)
    diagonal, diag, clone, softmax, log_softmax = (functions.diagonal, functions.diag, functions.clone, functions.softmax,
                                                   functions.log_softmax)

    def ravel(self) -> Tensor:
        """All elements along one axis."""
        return functions.flatten(self)

    def reshape_as(self, other: Tensor) -> Tensor:
        """In the shape of `other`."""
        return functions.reshape(self, *other.array.shape)

    view_as = reshape_as


_Device = device


def _rebuilt(array: np.ndarray, requires_grad: bool, grad: Tensor | None) -> Tensor:
    made = constant(array)
    if requires_grad:
        made.requires_grad_()
    made.grad_slot = grad
    return made


def _inplace_method(op: Any, name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *others: Any) -> Tensor:
        return inplace.in_place(op, self, *others)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name.rstrip('_')}`, written into this tensor's memory."
    return method


def install() -> None:
    """Give `Tensor` its members: those above, and the in-place twin of every primitive that declares one."""
    for name, member in vars(Methods).items():
        if name not in ("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__hash__", "__firstlineno__",
                        "__static_attributes__"):
            setattr(Tensor, name, member)
    for op in PRIMITIVES.values():
        if op.inplace and not hasattr(Tensor, op.inplace):
            setattr(Tensor, op.inplace, _inplace_method(op, op.inplace))


install()
