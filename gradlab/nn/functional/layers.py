"""Linear and bilinear layers, tables of embeddings, dropout."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.accumulate import counts
from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import namespace_of
from gradlab.core import inplace
from gradlab.core.promotion import cast
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED, chosen, writing
from gradlab.ops import dropping as drops
from gradlab.ops.arguments import fits_in_memory, not_a_tensor
from gradlab.ops.copies import in_single
from gradlab.ops.permutation import permute, t
from gradlab.ops.products import matmul
from gradlab.ops.shapes import reshape, squeeze, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import embedding as rules
from gradlab.rules import indexing, shapes
from gradlab.rules.matrix import addmm

__all__ = [
    "alpha_dropout",
    "bilinear",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "linear",
    "one_hot",
]

TRANSPOSED = shapes.permute.named("TBackward0")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias: input (…, in), weight (out, in), bias (out)."""
    if type(input) is not Tensor or type(weight) is not Tensor:
        raise not_a_tensor("linear", *((input,) if not isinstance(input, Tensor) else (weight, "weight", 2)))
    x, w = input.array, weight.array
    if not x.ndim or not w.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {w.ndim}D")
    if bias is None:
        return matmul(input, t(weight))
    b = bias.array
    if w.ndim == 1 and x.ndim == 2:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor. A weight is (out, in).")
    if w.ndim == 1 or not (x.ndim == 2 or (0 < b.ndim < 2 and x.flags.c_contiguous) or (x.ndim == 1 and b.ndim == 2)):
        return matmul(input, t(weight)) + bias
    if not x.dtype == w.dtype == b.dtype:
        what, other = ("self", bias) if b.dtype != w.dtype else ("mat1", input)
        raise RuntimeError(
            f"{what} and mat2 must have the same dtype, but got {other.dtype.word} and {weight.dtype.word}. "
            "Convert one of them: x.float(), x.to(weight.dtype)."
        )
    if w.ndim > 2:
        t(weight)  # raises
    transposed = TRANSPOSED.record(weight, axes=(-1, -2))
    if x.ndim == 2:
        return addmm.record(bias, input, transposed)
    rows = addmm.record(bias, shapes.reshape.record(input, shape=(prod(x.shape[:-1]), x.shape[-1])), transposed)
    return shapes.reshape.record(rows, shape=x.shape[:-1] + w.shape[:1])


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1ᵀ · weight[k] · input2 + bias[k] for each k: inputs (…, in1) and (…, in2), weight (out, in1, in2), bias (out)."""
    for at, (what, x) in enumerate((("input1", input1), ("input2", input2), ("weight", weight)), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("bilinear", x, what, at)
    one, two, w = input1.array.shape, input2.array.shape, weight.array.shape
    if not one or not two:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    dtypes = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({x.array.dtype for x in dtypes.values()}) > 1:
        named = ", ".join(f"{what}: {x.dtype.c_name}" for what, x in dtypes.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {named}")
    if len(one) != len(two):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(one)} and {len(two)}")
    for i, (n, m) in enumerate(zip(one[:-1], two[:-1], strict=True)):
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {n} and {m}")
    for at, shape in ((1, one), (2, two)):
        if at >= len(w) or shape[-1] != w[at]:
            raise RuntimeError(
                f"bilinear(): input{at} size does not match weight size: got {shape[-1]} but expected "
                f"{w[at] if at < len(w) else 'none'}. The weight is (out, in1, in2)."
            )
    if bias is not None and bias.array.shape != w[:1]:
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.array.shape[0] if bias.array.ndim else 1} but expected {w[0]}"
        )
    if input1.array.dtype.char == "e":
        return in_single(bilinear, input1, input2, weight, bias)
    rows = prod(one[:-1])
    left = matmul(reshape(input1, rows, one[-1]), reshape(permute(weight, 1, 0, 2), w[1], w[0] * w[2]))
    out = (reshape(left, rows, w[0], w[2]) * unsqueeze(reshape(input2, rows, two[-1]), 1)).sum(-1)
    out = cast(out, left.array.dtype)  # integers would be int64 now
    out = shapes.reshape.record(out, shape=one[:-1] + w[:1])
    return out if bias is None else out + bias


# ---------------------------------------------------------------------------------------------------------- embeddings
INDEX_TYPES = np.int64, np.int32


def check_indices(name: str, input: Tensor) -> Any:
    """The array of indices; only int64 and int32 are."""
    if not isinstance(input, Tensor):
        raise not_a_tensor(name, input, "indices", 2)
    if input.array.dtype not in INDEX_TYPES:
        got = "CPUBoolType" if input.array.dtype.kind == "b" else f"gradlab.{input.dtype.legacy}"
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
            f"got {got} instead (while checking arguments for {name}). Indices come first, the table second; "
            ".long() makes indices of floats."
        )
    return input.array


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of the table `weight` (count, width) by number: input (…) of int64, result (…, width).

    The row `padding_idx` gets no gradient. `max_norm` first scales down, in place, rows read whose `norm_type`-norm is larger;
    `scale_grad_by_freq` divides a row's gradient by how often it was read. `sparse` gradients are not supported."""
    if not isinstance(weight, Tensor):
        raise not_a_tensor("embedding", weight, "weight", 1)
    indices, table = check_indices("embedding", input), weight.array
    if padding_idx is not None and not -table.shape[0] <= padding_idx < table.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if table.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    refuse_sparse(sparse)
    on_axis(
        "embedding",
        indices,
        table.shape[0],
        lambda wrong: IndexError(
            f"index out of range in self. The table has {table.shape[0]} rows: indices are 0 to {table.shape[0] - 1}, and one is "
            f"{wrong}."
        ),
    )
    if max_norm is not None:
        renormalise(weight, indices, max_norm, norm_type)
    factor = None
    if weight.node is not None and (padding_idx is not None or scale_grad_by_freq):
        factor = row_factors(table, indices, padding_idx, scale_grad_by_freq)
    made = rules.embedding.record(weight, indices=indices, factor=factor)
    return chosen(made, input) if WATCHED else made


def refuse_sparse(sparse: bool) -> None:
    if sparse:
        raise NotImplementedError("sparse=True: gradlab has no sparse gradients. Leave it out; the gradient is then dense.")


def row_factors(table: Any, indices: Any, padding_idx: int | None, by_frequency: bool) -> Any:
    """What each row's gradient is multiplied by, (count, 1)."""
    xp = namespace_of[type(table)]
    factor = xp.ones((table.shape[0], 1), dtype=table.dtype)
    if by_frequency:
        factor /= xp.maximum(counts(xp, indices, table.shape[0]), 1).astype(table.dtype).reshape(-1, 1)
    if padding_idx is not None:
        factor[padding_idx] = 0
    return factor


def renormalise(weight: Tensor, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are read down to norm `max_norm`, in place and unrecorded."""
    table, xp = weight.array, namespace_of[type(weight.array)]
    rows = xp.unique(indices)
    norms = xp.linalg.norm(table[rows], norm_type, 1)
    large = norms > max_norm
    if WATCHED:
        writing(weight)
    table[rows[large]] *= (max_norm / (norms[large] + 1e-7)).astype(table.dtype)[:, None]
    wrote(weight)


BAG, BAG_MAX, BAG_WHERE = (op.named("EmbeddingBagBackward0") for op in (rules.embedding_dense, indexing.gather, el.where))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or max of bags of rows of the table `weight` (count, width), one row of the result for each bag.

    A row of a 2-D `input` is a bag; a 1-D one is cut into bags that start at `offsets`. Rows `padding_idx` are left out;
    `per_sample_weights` (mode "sum") multiplies them; an empty bag is zeros. The rest is as in `embedding`."""
    if input.array.dtype.kind == "f" and weight.array.dtype.kind in "iu":
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
            stacklevel=2,
        )
        input, weight = weight, input
    shape = input.array.shape
    if per_sample_weights is not None and per_sample_weights.array.shape != shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.array.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.array.ndim}")
    check_bags(input, offsets, mode, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    table, xp = weight.array, namespace_of[type(weight.array)]
    indices = check_indices("embedding_bag", input).reshape(-1)
    on_axis(
        "embedding_bag",
        indices,
        table.shape[0],
        lambda wrong: RuntimeError(
            f"Index {int((indices == wrong).argmax())} of input takes value {wrong} which is not in the valid range [0, "
            f"{table.shape[0]})"
        ),
    )
    if padding_idx is not None and not -table.shape[0] <= padding_idx < table.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-table.shape[0]} through "
            f"{table.shape[0] - 1}, but got {padding_idx}"
        )
    if max_norm is not None:
        renormalise(weight, indices, max_norm, norm_type)
    bag, count = bags_of(xp, input.array, offsets, include_last_offset)
    indices, within = indices[: bag.size], bag.size  # what lies behind the last offset is in no bag
    kept = None if padding_idx is None else indices != padding_idx % table.shape[0]
    if kept is not None:
        indices, bag = indices[kept], bag[kept]
    if mode == "max":
        return largest_of_bags(xp, weight, indices, bag, count)
    factor = row_factors(table, indices, None, True) if scale_grad_by_freq else None
    rows = rules.embedding.record(weight, indices=indices, factor=factor)
    if per_sample_weights is not None:
        if per_sample_weights.array.dtype != table.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                f"'per_sample_weights'; but type gradlab.{weight.dtype.legacy} does not equal gradlab."
                f"{per_sample_weights.dtype.legacy} (while checking arguments for embedding_bag)"
            )
        scale = reshape(per_sample_weights, -1)
        scale = scale if scale.array.size == within else scale[:within]
        rows = rows * unsqueeze(scale if kept is None else scale[constant(kept)], 1)
    elif mode == "mean":
        sizes = counts(xp, bag, count)[bag] if bag.size else bag
        rows = rows * constant((1 / sizes.astype(table.dtype)).astype(table.dtype).reshape(-1, 1))
    return BAG.record(rows, indices=bag, count=count)


def check_bags(input: Tensor, offsets: Tensor | None, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Torch's refusals of what is no bags."""
    if input.array.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.array.ndim}")
    if input.array.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if input.array.ndim == 1 and (offsets is None or offsets.array.ndim != 1):
        raise ValueError(f"offsets has to be a 1D Tensor{' but got None' if offsets is None else ''}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    refuse_sparse(sparse)


def bags_of(xp: Any, input: Any, offsets: Tensor | None, include_last_offset: bool) -> tuple[Any, int]:
    """The number of the bag that each index belongs to, and how many bags there are."""
    if offsets is None:
        return xp.repeat(xp.arange(input.shape[0]), input.shape[1]), input.shape[0]
    starts = offsets.array.tolist()
    if include_last_offset and not starts:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {starts[0]}"
        )
    if starts and starts[-1] > input.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {input.shape[0]} but got offsets[-1] of {starts[-1]}"
        )
    if starts != sorted(starts):
        raise RuntimeError(f"offsets have to rise from bag to bag, got {starts}.")
    if include_last_offset:
        starts, end = starts[:-1], starts[-1]
    else:
        end = input.shape[0]
    return xp.repeat(xp.arange(len(starts)), xp.asarray(np.diff([*starts, end]).astype(np.int64))), len(starts)


def largest_of_bags(xp: Any, weight: Tensor, indices: Any, bag: Any, count: int) -> Tensor:
    """For each bag and column the largest number, the first of equals; 0 for an empty bag."""
    table = weight.array
    at, empty = xp.zeros((count, table.shape[1]), dtype=np.int64), xp.ones((count, 1), dtype=bool)
    for number in np.unique(bag.tolist()).tolist():
        mine = indices[bag == int(number)]
        at[int(number)], empty[int(number)] = mine[table[mine].argmax(axis=0)], False
    out = BAG_MAX.record(weight, axis=-2, indices=at, keepdims=True)
    return BAG_WHERE.record(constant(empty), constant(xp.zeros((), dtype=table.dtype)), out) if bool(empty.any()) else out


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """int64 tensor of shape (…, num_classes): 1 at each class, 0 elsewhere."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("one_hot", input)
    if not isinstance(num_classes, (int, np.integer)):
        raise TypeError(f"one_hot(): argument 'num_classes' (position 2) must be int, not {type(num_classes).__name__}")
    classes = input.array
    if classes.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor. Call .long() first.")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor. Give num_classes.")
    if classes.size and int(classes.min()) < 0:
        raise RuntimeError(f"Class values must be non-negative. The smallest is {int(classes.min())}.")
    n = int(classes.max()) + 1 if num_classes == -1 else num_classes
    if classes.size and int(classes.max()) >= n:
        raise RuntimeError(f"Class values must be smaller than num_classes. The largest is {int(classes.max())} of {n}.")
    fits_in_memory(*classes.shape, n)
    made = constant((classes[..., None] == namespace_of[type(classes)].arange(n)).astype(np.int64))
    return chosen(made, input) if WATCHED else made


# ------------------------------------------------------------------------------------------------------------- dropout
def _checked(p: Any) -> float:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return float(p)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability `p`, else divided by 1 - p; `input` itself if not `training`."""
    return (drops.dropout_ if inplace else drops.dropout)(input, _checked(p), training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what SELU makes."""
    return (drops.alpha_dropout_ if inplace else drops.alpha_dropout)(input, _checked(p), training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels: input (N, C, …)."""
    return (drops.feature_alpha_dropout_ if inplace else drops.feature_alpha_dropout)(input, _checked(p), training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each channel zeroed with probability `p`, else divided by 1 - p: input (N, C, L) or (C, L)."""
    p, ndim = _checked(p), input.array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an "
            "optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return of_channels(input, p, training, inplace, ndim == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same for input (N, C, H, W)."""
    p, ndim = _checked(p), input.array.ndim
    if ndim not in (3, 4):
        warn_of_rank(2, ndim)
    elif ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=2,
        )
    return of_channels(input, p, training, inplace, True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same for input (N, C, D, H, W) or (C, D, H, W)."""
    p, ndim = _checked(p), input.array.ndim
    if ndim not in (4, 5):
        warn_of_rank(3, ndim)
    return of_channels(input, p, training, inplace, ndim == 5)


def warn_of_rank(spatial: int, ndim: int) -> None:
    warnings.warn(
        f"dropout{spatial}d: Received a {ndim}-D input to dropout{spatial}d, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use dropout instead. Note "
        f"that dropout{spatial}d exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a "
        f"channel dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        UserWarning,
        stacklevel=3,
    )


def of_channels(input: Tensor, p: float, training: bool, in_place: bool, batched: bool) -> Tensor:
    """Dropout of channels, with a batch axis put in front where there is none."""
    if batched:
        return (drops.feature_dropout_ if in_place else drops.feature_dropout)(input, p, training)
    if in_place:
        return inplace.composed_in_place(lambda x: of_channels(x, p, training, False, False), input) if training and p else input
    return squeeze(drops.feature_dropout(unsqueeze(input, 0), p, training), 0)
