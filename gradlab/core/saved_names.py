"""Attributes for a node's saved values under PyTorch's names: `_saved_self`, `_raw_saved_result`, `_saved_dim`.

Saved tensors are named after the arguments of the primitive, with the exceptions in TENSOR_NAMES_BY_NODE. METADATA_NAMES lists
the names of the metadata for each node. The primitives of torch and gradlab differ, but a value that both save has torch's name
and torch's value. READERS computes a value that is not stored in the metadata under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array
from gradlab.core.saved import get_value, saved_tensor
from gradlab.core.tensor import constant

# Names of saved tensors, and the exceptions by node name (and by primitive name if several primitives share a node).
TENSOR_NAMES = {"x": "self", "a": "self", "b": "other", "y": "target", "out": "result"}
# fmt: off
TENSOR_NAMES_BY_NODE = {
    "MmBackward0": {"b": "mat2"}, "BmmBackward0": {"b": "mat2"}, "MvBackward0": {"b": "vec"}, "DotBackward0": {"b": "tensor"},
    "AddmmBackward0": {"x": "mat1", "w": "mat2"}, "BaddbmmBackward0": {"x": "batch1", "w": "batch2"},
    "PowBackward1": {"b": "exponent"}, "PowBackward2": {"x": "exponent"}, "CdistBackward0": {"a": "x1", "b": "x2"},
    "ConvolutionBackward0": {"x": "input", "w": "weight"}, "NativeLayerNormBackward0": {"x": "input", "w": "weight"},
    "NativeBatchNormBackward0": {"x": "input", "w": "weight"}, "LinalgInvExBackward0": {"out": "inverse"},
    "LinalgSolveExBackward0": {"a": "A"}, "StdMeanBackward0": {"out": "result0"},
    "AminmaxBackward0 amin": {"out": "min"}, "AminmaxBackward0 amax": {"out": "max"}, "LinalgDetBackward0": {"x": "A"},
}
# fmt: on

# Metadata: node names | names of the saved values.
# fmt: off
METADATA_NAMES = {node: names.split() for nodes, names in (line.split("|") for line in """
AddBackward0 SubBackward0 RsubBackward1 | alpha
PowBackward0 | exponent
PowBackward2 | self
SumBackward0 ViewBackward0 UnsafeViewBackward0 ExpandBackward0 | self_sym_sizes
SumBackward1 | dim keepdim self_sym_sizes
MeanBackward0 | self_sym_numel self_sym_sizes
MeanBackward1 | dim keepdim self_sym_numel self_sym_sizes
MaxBackward0 MinBackward0 ModeBackward0 MedianBackward1 KthvalueBackward0 | dim indices keepdim self_sym_sizes
SortBackward0 TopkBackward0 | dim indices self_sym_sizes
CummaxBackward0 CumminBackward0 | dim indices
AmaxBackward0 AminBackward0 AminmaxBackward0 LogsumexpBackward0 | dim keepdim
VarBackward0 StdBackward0 VarMeanBackward0 StdMeanBackward0 | correction dim keepdim
LinalgVectorNormBackward0 | dim keepdim ord
SoftmaxBackward0 LogSoftmaxBackward0 CumsumBackward0 CumprodBackward0 CatBackward0 StackBackward0 | dim
GatherBackward0 | dim index
PermuteBackward0 FlipBackward0 | dims
RollBackward0 | dims shifts
TransposeBackward0 | dim0 dim1
UnsqueezeBackward0 | dim
SelectBackward0 | dim index self_sym_sizes
SliceBackward0 | dim start end step self_sym_sizes
IndexBackward0 | indices self_sym_sizes
IndexSelectBackward0 | dim index self_sym_sizes
UnbindBackward0 | dim
SplitBackward0 | dim self_sym_sizes
BaddbmmBackward0 | alpha beta
ClampBackward1 | min max
MaskedFillBackward0 | mask
RepeatBackward0 | repeats self_sym_sizes
DiagonalBackward0 | dim1 dim2 offset self_sym_sizes
TrilBackward0 TriuBackward0 | diagonal
LerpBackward0 | weight
AddcmulBackward0 AddcdivBackward0 | value
HardtanhBackward0 | min_val max_val
EluBackward0 | alpha scale
LogitBackward0 | eps
EmbeddingBackward0 | indices
UnfoldBackward0 | dimension size step self_sym_sizes
ConvolutionBackward0 | stride padding dilation groups
MmBackward0 | self_sym_sizes mat2_sym_sizes""".strip().splitlines()) for node in nodes.split()}
# fmt: on

# fmt: off
SINGLE_DIM_NODES = set("""
MaxBackward0 MinBackward0 ModeBackward0 MedianBackward1 KthvalueBackward0 SortBackward0 TopkBackward0
CummaxBackward0 CumminBackward0 SoftmaxBackward0 LogSoftmaxBackward0 CumsumBackward0 CumprodBackward0 CatBackward0 StackBackward0
GatherBackward0""".split())  # noqa: SIM905  (nodes whose `dim` is an int, not a tuple)
# fmt: on


class SavedMetadata:
    """Metadata of a node by name, and the shapes of its arguments."""

    def __init__(self, node: Any) -> None:
        keys = ["shapes"] * bool(node.op.variadic) + node.op.meta
        self.name, self.meta, self.out = node.title, dict(zip(keys, getattr(node, "meta", ()), strict=False)), node.shape
        self.shapes = [None if edge is None else edge.shape for edge in node.edges]
        self.shape = next((shape for shape in self.shapes if shape is not None), node.shape)

    def dims(self, axes: Any) -> Any:
        """Convert axes counted from the right to torch's convention."""
        rank = len(self.out if self.name == "StackBackward0" else self.shape)
        return tuple(a % rank for a in axes) if isinstance(axes, tuple) else axes % rank

    def dim(self) -> Any:
        if self.name == "UnsqueezeBackward0":
            return next((i for i, (n, m) in enumerate(zip(self.out, self.shape, strict=False)) if n != m), len(self.shape))
        if "index" in self.meta:
            return self.indexed_axis()[0]
        dims = self.dims(self.meta["axis"])
        return dims[0] if self.name in SINGLE_DIM_NODES and isinstance(dims, tuple) else dims

    def indexed_axis(self) -> tuple[int, Any]:
        """Return the one axis that an index selects from, and the index there."""
        index = self.meta["index"]
        for at, part in enumerate(index):
            if is_array(part) or part not in (Ellipsis, slice(None)):
                return len(self.shape) - (len(index) - at) if Ellipsis in index[:at] else at, part
        return 0, slice(None)

    def transposed_axes(self) -> list[int]:
        """Return the two axes that a transposition exchanges."""
        moved = [at for at, a in enumerate(self.dims(self.meta["axes"])) if a != at]
        return moved or [0, 0]

    def indices(self) -> Any:
        if "index" in self.meta:
            return tuple(constant(i) if is_array(i) else None for i in self.meta["index"])
        positions = self.meta["indices"]
        return constant(positions.squeeze(self.meta["axis"]) if self.meta.get("keepdims") is False else positions)

    def slice_bound(self, part: slice, which: str) -> int:
        value = getattr(part, which)
        return {"start": 0, "stop": np.iinfo(np.int64).max, "step": 1}[which] if value is None else value


# fmt: off
READERS: dict[str, Callable[[SavedMetadata], Any]] = {
    "alpha": lambda f: f.meta.get("alpha", 1), "self": lambda f: f.meta["base"], "keepdim": lambda f: f.meta["keepdims"],
    "dim": SavedMetadata.dim, "dims": lambda f: f.dims(f.meta["axes"]), "indices": SavedMetadata.indices,
    "dim0": lambda f: f.transposed_axes()[0],
    "dim1": lambda f: f.dims(f.meta["axes"])[0] if f.name == "DiagonalBackward0" else f.transposed_axes()[1],
    "dim2": lambda f: f.dims(f.meta["axes"])[1], "ord": lambda f: f.meta["order"], "dimension": lambda f: f.dims(f.meta["axis"]),
    "index": lambda f: f.indexed_axis()[1] if "index" in f.meta else f.meta["indices"],
    "start": lambda f: f.slice_bound(f.indexed_axis()[1], "start"), "end": lambda f: f.slice_bound(f.indexed_axis()[1], "stop"),
    "step": lambda f: f.meta["step"] if "step" in f.meta else f.slice_bound(f.indexed_axis()[1], "step"),
    "min_val": lambda f: f.meta["low"], "max_val": lambda f: f.meta["high"],
    "stride": lambda f: f.meta["plan"].stride, "padding": lambda f: f.meta["plan"].padding,
    "dilation": lambda f: f.meta["plan"].dilation,
    "self_sym_sizes": lambda f: tuple(f.shape), "self_sym_numel": lambda f: prod(f.shape),
    "mat2_sym_sizes": lambda f: None if f.shapes[1] is None else tuple(f.shapes[1]),
}
# fmt: on


def tensor_names(op: Any) -> list[str]:
    """Return torch's names of the tensors that a primitive's nodes save, in the order of `op.saves`."""
    called = TENSOR_NAMES | TENSOR_NAMES_BY_NODE.get(op.node_name, {}) | TENSOR_NAMES_BY_NODE.get(f"{op.node_name} {op.name}", {})
    return [called.get(name, name) for name in op.saves]


def attribute_names(op: Any) -> list[str]:
    """Return the names of the attributes for the saved values of a primitive's nodes."""
    here = tensor_names(op)
    return [f"_raw_saved_{n}" for n in here] + [f"_saved_{n}" for n in (*here, *METADATA_NAMES.get(op.node_name, ()))]


def saved_properties(op: Any) -> dict[str, property]:
    """Return these attributes as properties. A `__getattr__` would slow down every attribute access of a node."""
    return {name: PROPERTIES.setdefault(name, property(partial(read_attribute, name=name))) for name in attribute_names(op)}


PROPERTIES: dict[str, property] = {}


def read_attribute(node: Any, name: str) -> Any:
    """Return `node.<name>`: a Tensor with its history (or None if no gradient needs it), its raw form, or metadata."""
    raw = name.startswith("_raw")
    short, here = name.removeprefix("_raw").removeprefix("_saved_"), tensor_names(node.op)
    if short in here:
        return saved_tensor(node, here.index(short)) if raw else get_value(node, here.index(short))
    facts = SavedMetadata(node)
    value = READERS[short](facts) if short in READERS else facts.meta[short]
    return constant(value) if is_array(value) else value
