"""Kinds of PyTorch tensors besides dense arrays of numbers: sparse, nested, quantized, fake …

Imported once the user has imported torch.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from gradlab.explore.libraries.unseen_torch import by_subclass, unseen
from gradlab.explore.markup import count, group_digits

COMPUTED = frozenset(
    (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
)  # dtypes that need no conversion for computing
UNREADABLE = frozenset(
    dtype for name in dir(torch) if name.startswith("bits") and isinstance(dtype := getattr(torch, name), torch.dtype)
)
COMPRESSED = {
    getattr(torch, f"sparse_{name}"): name.upper() for name in ("csr", "csc", "bsr", "bsc") if hasattr(torch, f"sparse_{name}")
}
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
NAMED = hasattr(torch.Tensor, "names")  # before 2.13
_C: Any = torch._C
_wrapped = getattr(_C._functorch, "is_functorch_wrapped_tensor", None) or _C._functorch.is_batchedtensor


@unseen
def form(tensor: Any) -> str:
    """Describe a tensor that is not an ordinary dense one: "sparse, 12 of 9 000 stored", "nested, 3 tensors", "meta, no numbers".
    Return "" for an ordinary one."""
    kind = type(tensor)
    if kind not in PLAIN and issubclass(kind, UninitializedTensorMixin):
        return "not yet initialized"
    if _dispatches(kind):
        name = kind.__name__.removesuffix("Tensor").lower()
        return f"{name}, no numbers" if name in ("fake", "functional") else f"a {kind.__name__}"
    if _is_wrapped(tensor):
        return "inside a transform of torch.func"
    if tensor.is_nested:
        return f"nested, {count(int(tensor.size(0)), 'tensor')}"
    if tensor.is_meta:
        return "meta, no numbers"
    if tensor.layout != torch.strided:
        return _layout(tensor)
    if tensor.is_quantized:
        return f"quantized, {str(tensor.dtype).rpartition('.')[2]}"
    if not has_numbers(tensor):
        return "no memory" if tensor.dtype not in UNREADABLE else f"{str(tensor.dtype).rpartition('.')[2]}, no numbers"
    words = ["inference"] if tensor.is_inference() else []
    if NAMED and any(tensor.names):
        words.append(f"named ({', '.join(map(str, tensor.names))})")
    return ", ".join(words)


def _layout(tensor: Any) -> str:
    if tensor.layout == torch.sparse_coo:
        return f"sparse, {_stored_text(tensor._values(), tensor)}"
    name = COMPRESSED.get(tensor.layout)
    if name is not None:
        return f"sparse {name}, {_stored_text(tensor.values(), tensor)}"
    return str(tensor.layout).rpartition(".")[2].lstrip("_")  # mkldnn


def _stored_text(values: Any, tensor: Any) -> str:
    return f"{group_digits(values.numel())} of {group_digits(tensor.numel())} stored"


def _dispatches(kind: type) -> bool:
    """Return whether tensors of a class represent other tensors, and define operations themselves."""
    return kind not in PLAIN and kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined, no-any-return]


def _is_wrapped(tensor: Any) -> bool:
    """Return whether a tensor is the wrapper of a running transform of `torch.func`, such as `vmap`'s batches."""
    return _C._functorch.peek_interpreter_stack() is not None and bool(_wrapped(tensor))


def inner_of(tensor: Any) -> Any:
    """Return the tensor that a wrapper of a running transform of `torch.func` represents; None for other tensors."""
    return _C._functorch.get_unwrapped(tensor) if _is_wrapped(tensor) else None


def has_numbers(tensor: Any) -> bool:
    """Return whether the numbers of a tensor can be read from its own memory.

    Tensors on device "meta" have no memory, and FSDP frees that of its parameters between uses. FakeTensor, DTensor, nested
    tensors and those inside a transform of `torch.func` represent other tensors, and are not read.
    """
    kind = type(tensor)
    if _dispatches(kind) or (kind not in PLAIN and issubclass(kind, UninitializedTensorMixin)) or tensor.is_meta:
        return False
    if tensor.is_nested or tensor.dtype in UNREADABLE or _is_wrapped(tensor):
        return False
    return tensor.layout != torch.strided or not tensor.numel() or tensor.untyped_storage().nbytes() > 0


def readable(tensor: Any) -> Any:
    """Return a dense tensor with a dtype for computing: quantized ones dequantized, float8 as float32."""
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor if tensor.dtype in COMPUTED else tensor.float()


def shape_of(tensor: Any) -> tuple[int, ...] | None:
    """Return a tensor's shape; None for nested tensors and for a lazy module's parameters before its first call."""
    return None if tensor.is_nested or isinstance(tensor, UninitializedTensorMixin) else tuple(tensor.shape)


def is_leaf(tensor: Any) -> bool:
    """Return whether no recorded operation made a tensor. For a view that was made in no_grad mode, and whose base was written to
    since, torch raises an error: it is not a leaf."""
    try:
        return bool(tensor.is_leaf)
    except RuntimeError:
        return False


def node_of(tensor: Any) -> Any:
    """Return the node at which a cotangent of a tensor arrives; None if there is none, for example for a leaf of inference
    mode."""
    if not tensor.requires_grad:
        return None
    try:
        if not tensor.is_leaf:
            return tensor.grad_fn
    except RuntimeError:  # see `is_leaf`
        return None
    if tensor.is_inference():
        return None
    return _accumulator_by_subclass(tensor) if _dispatches(type(tensor)) else _accumulator(tensor)


def _accumulate_grad(leaf: Any) -> Any:
    """Return the node that writes a leaf's `.grad`. It is found from a view, as in `torch.autograd.graph.get_gradient_edge`; for
    sparse and nested tensors, which have no views, from an identity operation of our own."""
    with torch.inference_mode(False), torch.enable_grad():
        viewed = leaf.layout == torch.strided and (not leaf.is_nested or _dispatches(type(leaf)))
        result = leaf.view_as(leaf) if viewed else _C._functions.UndefinedGrad()(leaf)
        return result.grad_fn.next_functions[0][0]


def _accumulate_grad_quietly(leaf: Any) -> Any:
    """Return the same for a leaf whose class may warn about each operation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _accumulate_grad(leaf)


_accumulator, _accumulator_by_subclass = unseen(_accumulate_grad), by_subclass(_accumulate_grad_quietly)
