"""Rules that count floating-point operations from the shapes of arguments and results.

Products are counted: of matrices, convolutions, attention, and the matrix products in recurrent layers. A multiplication and an
addition are two operations. Everything else (biases, activations, normalizations, reductions, copies) is small beside them and is
not counted. Masks of attention save nothing here: a causal one is counted in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isqrt, prod
from typing import Any

Rule = Callable[[Sequence[Any], Mapping[str, Any], Any], Any]

COUNTED = "products of matrices, convolutions, attention and recurrent layers"


def count_flops(function: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int | None:
    """Return the number of floating-point operations of a call, or None if the function is not counted.

    Parameters
    ----------
    function : str
        A name of PyTorch's, or of a primitive of gradlab.
    args, kwargs
        The arguments, which may be tensors of either library.
    result
    """
    rule = RULES.get(function)
    if rule is None:
        return None
    try:
        return int(rule(args, kwargs, result))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # arguments of a form that the rule does not know


def _argument(args: Sequence[Any], kwargs: Mapping[str, Any], position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs[name]


def _size(tensor: Any) -> int:
    return prod(tensor.shape)


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) else result


def _matmul(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Each element of the result is a sum over the last axis of the first factor."""
    first = args[0] if args else next(kwargs[name] for name in ("input", "self") if name in kwargs)
    return 2 * _size(result) * first.shape[-1]


def _reversed_matmul(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    return 2 * _size(result) * args[1].shape[-1]


def _addmm(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    return 2 * _size(result) * _argument(args, kwargs, 1, "mat1").shape[-1]


def _addmv(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    return 2 * _size(result) * _argument(args, kwargs, 1, "mat").shape[-1]


def _batched_add(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    left, right = _argument(args, kwargs, 1, "batch1"), _argument(args, kwargs, 2, "batch2")
    return 2 * _size(left) * right.shape[-1]


def _linear(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    return 2 * _size(result) * _argument(args, kwargs, 0, "input").shape[-1]


def _bilinear(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The product of the first input with W. The rest is an elementwise sum over the second input."""
    first, second = _argument(args, kwargs, 0, "input1"), _argument(args, kwargs, 1, "input2")
    return 2 * _size(result) * first.shape[-1] * second.shape[-1]


def _conv(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Each element of the result is a sum over the channels of its group and the window."""
    return 2 * _size(result) * prod(_argument(args, kwargs, 1, "weight").shape[1:])


def _convolution(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The function that all of PyTorch's convolutions call, with an argument for transposed ones."""
    return (_conv_transpose if _argument(args, kwargs, 6, "transposed") else _conv)(args, kwargs, result)


def _conv_transpose(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Each element of the input is spread over the channels of its group and the window."""
    return 2 * _size(_argument(args, kwargs, 0, "input")) * prod(_argument(args, kwargs, 1, "weight").shape[1:])


def _attention(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Q Kᵀ, then the weighted sum of V."""
    query, value = _argument(args, kwargs, 0, "query"), _argument(args, kwargs, 2, "value")
    steps = value.shape[-2]
    rows = _size(_first(result)) // value.shape[-1]
    return 2 * rows * steps * (query.shape[-1] + value.shape[-1])


def _multi_head(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The projections of query, key and value, attention, and the projection of the result."""
    query, key, value = (_argument(args, kwargs, i, name) for i, name in enumerate(("query", "key", "value")))
    width = _argument(args, kwargs, 3, "embed_dim_to_check")
    queries, keys = _size(query) // query.shape[-1], _size(key) // key.shape[-1]
    batch = query.shape[1] if len(query.shape) == 3 else 1
    projections = 2 * width * (queries * query.shape[-1] + keys * (key.shape[-1] + value.shape[-1]))
    added = (_argument(args, kwargs, 7, "bias_k") is not None) + bool(_argument(args, kwargs, 9, "add_zero_attn"))
    return projections + 4 * queries * (keys // batch + added) * width + 2 * queries * width * width


def _recurrent(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Each weight matrix is multiplied with one vector for each step and sequence."""
    packed = isinstance(args[3], (tuple, list))  # (data, batch_sizes, hx, weights, …), else (input, hx, weights, …)
    weights = args[3] if packed else args[2]
    return 2 * (_size(args[0]) // args[0].shape[-1]) * sum(_size(one) for one in weights if len(one.shape) == 2)


def _cell(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    batch = _size(args[0]) // args[0].shape[-1]
    return 2 * batch * (_size(args[2]) + _size(args[3]))


def _tensordot(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """The summed axes are in both factors, the others in the result."""
    a, b = _argument(args, kwargs, 0, "a"), _argument(args, kwargs, 1, "b")
    return 2 * isqrt(_size(a) * _size(b) * _size(result))


def _einsum(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    """Factors are multiplied from left to right. An index that neither a later factor nor the result has is summed at once:
    before the multiplication if only one of the two factors has it. If the two have no summed index in common, it is not a
    product of matrices, and is not counted.
    """
    equation = args[0].replace(" ", "")
    operands = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(equation)
    sizes: dict[str, int] = {}
    indices = []
    for term, operand in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        missing = len(operand.shape) - len(before) - len(after)
        letters = [*before, *([f"…{k}" for k in range(missing, 0, -1)] if dots else []), *after]
        sizes |= {letter: size for letter, size in zip(letters, operand.shape, strict=True) if size != 1}
        indices.append({letter for letter, size in zip(letters, operand.shape, strict=True) if size != 1})
    if arrow:
        kept = {*right.replace("...", ""), *(key for key in sizes if key[0] == "…" and "..." in right)}
    else:
        kept = {key for key in sizes if key[0] == "…" or left.count(key) == 1}
    total, so_far = 0, indices[0]
    for at in range(1, len(indices)):
        later = kept.union(*indices[at + 1 :])
        both = so_far & indices[at]
        together = both | (so_far | indices[at]) & later
        if both - later:
            total += 2 * prod(sizes[key] for key in together)
        so_far = together & later
    return total


def _scores(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
    return 2 * _size(result) * args[0].shape[-1]


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("matmul", "__matmul__", "mm", "bmm", "mv", "dot", "vdot", "inner", "linalg_matmul", "matvec", "mixture"), _matmul
    ),
    "__rmatmul__": _reversed_matmul,
    **dict.fromkeys(("addmm", "addmm_"), _addmm),
    **dict.fromkeys(("addmv", "addmv_"), _addmv),
    **dict.fromkeys(("baddbmm", "baddbmm_", "addbmm", "addbmm_"), _batched_add),
    "linear": _linear,
    "bilinear": _bilinear,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv", "conv_bias"), _conv),
    **dict.fromkeys(("convolution", "_convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _multi_head,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), _cell),
    "tensordot": _tensordot,
    "einsum": _einsum,
    "scores": _scores,
}
