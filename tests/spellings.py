"""Cases of user code, run with torch (to record) and with gradlab (to compare).

A topic is a dict of cases. A case is a function of the library `lib` that returns plain data. The recorder runs it with torch,
`test_as_torch.py` with gradlab, and both must agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from sessions import CASES as SESSIONS

Case = Callable[[Any], Any]


def chain(node: Any, names: dict[int, str]) -> str:
    """Return a graph as text: `MulBackward0(x, AddBackward0(y, None))`, with `.1` for the second output of a node."""
    if node is None:
        return "None"
    variable = getattr(node, "variable", None)
    if variable is not None:
        return names[id(variable)]
    inputs = (chain(following, names) + (f".{output}" if output else "") for following, output in node.next_functions)
    return f"{node.name()}({', '.join(inputs)})"


# --------------------------------------------------------------------------------------------------------------- seeds
def _leaf(lib: Any, values: Any) -> Any:
    return lib.tensor(values, requires_grad=True)


FIRST = [[0.25, -1.5, 3.0], [1.75, 0.5, -0.25], [-2.0, 2.5, 1.0], [0.125, -0.75, 4.5], [3.5, 1.25, -1.0]]
SECOND = [[1.0, 0.5, -2.5], [-0.5, 2.25, 0.75], [0.375, -1.0, 1.5], [2.0, 3.0, -0.125], [-1.25, 0.25, 2.0]]


def cross_correlation(lib: Any) -> Any:
    first, second = _leaf(lib, FIRST), _leaf(lib, SECOND)
    z1 = (first - first.mean(0)) / first.std(0)
    z2 = (second - second.mean(0)) / second.std(0)
    c = (z1.T @ z2) / z1.shape[0]
    loss = -lib.diagonal(c).sum()
    loss.backward()
    return {
        "c": c.tolist(),
        "loss": loss.item(),
        "first.grad": first.grad.tolist(),
        "second.grad": second.grad.tolist(),
        "chain": chain(loss.grad_fn, {id(first): "first", id(second): "second"}),
        "repr": [repr(z1), repr(c), repr(loss)],
    }


def arange_cubed(lib: Any) -> Any:
    t = lib.arange(5).float()
    t.requires_grad = True
    before = repr(t)
    t.pow(3).sum().backward()
    return [before, repr(t.grad)]


def describe_three(lib: Any) -> Any:
    x = lib.tensor(1.0, requires_grad=True)
    y = lib.tensor(2.0)
    z = x * y
    return [
        f"{name}\ndata: {i.data}\nrequires_grad: {i.requires_grad}\ngrad_fn: {i.grad_fn and i.grad_fn.name()}\n"
        f"is_leaf: {i.is_leaf}\n"
        for i, name in ((x, "x"), (y, "y"), (z, "z"))
    ]


def not_tracked(lib: Any) -> Any:
    x = lib.tensor(1.0, requires_grad=True)
    y = x * 2
    with lib.no_grad():
        quiet = x * 2
    return [y.requires_grad, quiet.requires_grad]


def cube_at_one(lib: Any) -> Any:
    x = lib.tensor(1.0, requires_grad=True)
    z = x**3
    z.backward()
    return repr(x.grad.data)


def product_with_weights(lib: Any) -> Any:
    x, y = _leaf(lib, [0.0, 2.0, 8.0]), _leaf(lib, [5.0, 1.0, 7.0])
    z = x * y
    try:
        z.backward()
    except RuntimeError as error:
        refused = {"raised": [type(error).__name__, str(error)]}
    z.backward(lib.FloatTensor([1.0, 1.0, 1.0]))
    return [refused, repr(z), repr(x.grad), repr(y.grad)]


def tiny_weights(lib: Any) -> Any:
    x = _leaf(lib, [1.0, -0.5, 0.25])
    y = x * 2
    while y.data.abs().max() < 1000:
        y = y * 2
    v = lib.tensor([0.1, 1.0, 0.0001], dtype=lib.float)
    y.backward(v)
    return [repr(y), repr(v), repr(x.grad)]


def row_by_row(lib: Any) -> Any:
    x = lib.autograd.Variable(lib.FloatTensor([[1, 2, 3, 4]]), requires_grad=True)
    z = 2 * x
    loss = z.sum(dim=1)
    printed = []
    for weights in ([[1, 0, 0, 0]], [[0, 1, 0, 0]], [[1, 1, 1, 1]]):
        z.backward(lib.FloatTensor(weights), retain_graph=True)
        printed.append(str(x.grad.data))
        x.grad.data.zero_()
    loss.backward()
    return [*printed, str(x.grad.data)]


def from_numpy_requires_grad(lib: Any) -> Any:
    import numpy as np

    x = np.array([1.0, 2.0, 3.0])
    x = lib.from_numpy(x)
    x.requires_grad_(True)
    return [repr(x), repr((x * x).sum())]


SEEDS: dict[str, Case] = {
    case.__name__: case
    for case in (
        cross_correlation,
        arange_cubed,
        describe_three,
        not_tracked,
        cube_at_one,
        product_with_weights,
        tiny_weights,
        row_by_row,
        from_numpy_requires_grad,
    )
}

# -------------------------------------------------------------------------------------------------- names of the nodes
NODES = """
-x
x + y | x + 1 | 1 + x | x - y | x - 1 | 1 - x | x * y | x * 2 | 2 * x | x / y | x / 2 | 2 / x
x ** 2 | x ** y | 2 ** x | x ** 0.5 | x ** v | x ** c | x ** 0 | x.pow(3) | lib.pow(x, 2) | lib.pow(2, x) | x.square()
1 - x.sum() | 2.5 ** s | lib.sub(2, x) | lib.maximum(x, y) | lib.minimum(x, c) | lib.min(x) | x.min(1).values
x + v | v + x | x * s | s * s | x + c | c * x | x * c + v
lib.add(x, y) | lib.sub(x, y) | lib.mul(x, y) | lib.div(x, y) | x.add(y) | x.sub(y) | x.mul(y) | x.div(y)
x.exp() | x.log() | x.sqrt() | x.abs() | x.tanh() | x.sigmoid() | x.relu() | x.neg()
abs(x) | lib.exp(x) | lib.log(x) | lib.sqrt(x) | lib.abs(x) | lib.tanh(x) | lib.sigmoid(x) | lib.relu(x)
lib.nn.functional.relu(x)
x.sum() | x.sum(0) | x.sum(1) | x.sum((0, 1)) | x.sum(0, keepdim=True) | lib.sum(x)
x.mean() | x.mean(0) | x.mean((0, 1)) | lib.mean(x) | x.std() | x.std(0) | x.var() | x.var(0) | x.var(0, unbiased=False)
x.max() | x.max(0).values | x.max(0, keepdim=True)[0] | lib.max(x) | lib.max(x, y)
x @ y | x @ v | v @ x | v @ v | b @ x | b @ v
lib.matmul(x, y) | x.matmul(v) | x.mm(y) | x.mv(v) | v.dot(v) | x @ c
x.T | x.t() | x.mT | b.mT | v.t() | x.transpose(0, 1) | b.transpose(-1, 0) | b.permute(2, 0, 1) | lib.transpose(x, 0, 1)
x.reshape(9) | x.reshape(3, 3) | x.T.reshape(9) | x.view(9) | x.view(-1) | x.flatten() | b.flatten(1)
v.expand(4, 3) | v.expand(-1) | s.expand(2, 2) | e.squeeze() | e.squeeze(0) | e.squeeze(-1)
x.squeeze() | x.unsqueeze(0)
x[0] | x[-1] | x[1:] | x[:, 1] | x[:, 1:] | x[::2] | x[...] | x[None] | x[..., 0]
x[[0, 1]] | x[i] | x[i, i] | x[:, i] | x[mask] | x[0][1] | x[1:, i]
lib.cat((x, y)) | lib.cat([x, y], 1) | lib.cat([x, c]) | lib.stack((x, y)) | lib.stack([x, y], dim=1)
x.diagonal() | lib.diagonal(x) | lib.diagonal(x, 1)
lib.where(mask, x, y) | lib.where(mask, x, 0.0) | lib.where(mask, 1.0, x)
x.softmax(0) | x.softmax(-1) | lib.softmax(x, 1) | lib.nn.functional.softmax(x, dim=1)
x.log_softmax(1) | lib.log_softmax(x, 0)
lib.nn.functional.log_softmax(x, dim=-1)
lib.nn.functional.cross_entropy(x, i) | lib.nn.functional.cross_entropy(x, i, reduction='sum')
lib.nn.functional.cross_entropy(x, i, reduction='none')
lib.nn.functional.cross_entropy(x, y.detach().softmax(1), reduction='sum')
x.clone() | x.detach().clone() + x | x.double() | x.float() | x.to(lib.float64) | x.data * y
x.clone().mul_(2) | x.clone().add_(y) | x.clone().sub_(1) | x.clone().div_(y) | x.clone().zero_() | x.clone().exp_()
x.clone().mul_(2).add_(x) | x.clone().relu_() | x.clone().tanh_() | x.clone().pow_(2) | x.clone().neg_()
(x * y + y).sum() | ((x @ y).tanh() @ v).mean() | (x - x.mean(0)) / x.std(0) | -lib.diagonal(x.T @ y).sum()
((x @ v) ** 2).sum().sqrt() | lib.relu(x @ y + v).sum(1).max() | (x / x.sum(1, keepdim=True)).log().mean()
lib.nn.functional.linear(x, y) | lib.nn.functional.linear(x, y, v) | lib.nn.functional.linear(b, y, v)
lib.nn.functional.linear(v, y, v) | lib.nn.functional.linear(v, y) | lib.nn.functional.linear(b, y)
lib.nn.functional.nll_loss(x, i) | lib.nn.functional.cross_entropy(v, i[0])
lib.nn.functional.cross_entropy(b[..., None], lib.stack([i, i])[..., None])
x.T.flatten() | v.diag() | lib.sin(x) | lib.cos(x) | x.reciprocal() | x.expand(2, 3, 3) | x.expand_as(b)
x == y | x > 0 | x.detach() | x.max(0).indices | x.data | c * 2
"""


def _leaves(lib: Any) -> dict[str, Any]:
    """Return the tensors used in NODES.

    They are matrices x and y, a vector v, a scalar s, a batch b, and e with axes of length 1, which require gradients, and a
    constant c, indices i and a mask, which do not.
    """
    matrix = [[0.5, 1.5, 2.5], [3.0, 1.0, 2.0], [1.25, 0.25, 4.0]]
    leaves = {
        "x": matrix,
        "y": [[2.0, 0.5, 1.0], [1.0, 3.0, 0.25], [0.75, 1.5, 2.0]],
        "v": [1.0, 2.0, 0.5],
        "s": 1.5,
        "b": [matrix, matrix],
        "e": [[[1.0], [2.0]]],
    }
    made = {name: _leaf(lib, values) for name, values in leaves.items()}
    mask = lib.tensor([[True, False, True], [False, True, False], [True, True, False]])
    return made | {"c": lib.tensor(matrix), "i": lib.tensor([0, 2, 1]), "mask": mask}


def _node_case(spelling: str) -> Case:
    def run(lib: Any) -> str:
        leaves = _leaves(lib)
        result = eval(spelling, {"lib": lib, **leaves})
        return chain(result.grad_fn, {id(leaf): name for name, leaf in leaves.items()})

    return run


NODE_NAMES: dict[str, Case] = {
    spelling: _node_case(spelling) for line in NODES.strip().splitlines() for spelling in line.split(" | ")
}

# -------------------------------------------------------------------------------------------------------------- errors
ERRORS: dict[str, Case] = {}


def register_error(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Register a function that raises. The result of the case is the type and text of the error."""

    def case(lib: Any) -> Any:
        try:
            run(lib)
        except Exception as error:  # noqa: BLE001  (the error is recorded)
            return [type(error).__name__, str(error)]
        return ["nothing raised", ""]

    ERRORS[run.__name__] = case
    return run


def _register_errors(table: str) -> None:
    """Register lines `name: expression` on the tensors of `_leaves`."""
    for line in table.strip().splitlines():
        name, _, spelling = line.partition(": ")

        def run(lib: Any, spelling: str = spelling) -> None:
            eval(spelling, {"lib": lib, **_leaves(lib)})

        run.__name__ = name.strip()
        register_error(run)


_register_errors("""
backward_of_non_scalar: (x * 2).backward()
backward_of_constant: c.sum().backward()
grad_of_non_scalar: lib.autograd.grad(x * 2, x)
grad_of_constant: lib.autograd.grad(c.sum(), x)
grad_unused_input: lib.autograd.grad(x.sum(), y)
grad_input_without_requires_grad: lib.autograd.grad(x.sum(), c)
grad_no_inputs: lib.autograd.grad(x.sum(), [])
backward_no_inputs: x.sum().backward(inputs=[])
backward_weights_of_wrong_shape: (x * 2).backward(v.detach())
backward_weights_of_scalar: x.sum().backward(v.detach())
grad_weights_of_wrong_shape: lib.autograd.grad(x * 2, x, v.detach())
grad_batched_weights_of_wrong_shape: lib.autograd.grad(x * 2, x, c, is_grads_batched=True)
leaf_in_place_add: x.add_(1)
leaf_in_place_zero: x.zero_()
leaf_view_in_place: x[0].mul_(2)
int_requires_grad: lib.tensor([1, 2], requires_grad=True)
int_requires_grad_: lib.tensor([1, 2]).requires_grad_()
int_set_requires_grad: setattr(i, "requires_grad", True)
bool_requires_grad_: mask.requires_grad_()
zeros_int_requires_grad: lib.zeros(2, dtype=lib.int64, requires_grad=True)
non_leaf_set_requires_grad_false: (x * 2).requires_grad_(False)
assign_grad_number: setattr(x, "grad", 1)
assign_grad_of_wrong_shape: setattr(x, "grad", v.detach())
assign_grad_of_wrong_dtype: setattr(x, "grad", c.double())
numpy_of_requires_grad: x.numpy()
numpy_of_non_leaf: (x * 2).numpy()
retain_grad_of_constant: c.retain_grad()
register_hook_on_constant: c.register_hook(print)
broadcast: x + lib.tensor([1.0, 2.0])
broadcast_first_axis: lib.ones(2, 3) * lib.ones(4, 3)
broadcast_mul_batched: b * lib.ones(4, 3, 3)
matmul_matrices: lib.ones(2, 3) @ lib.ones(2, 3)
matmul_matrix_vector: lib.ones(2, 3) @ lib.ones(2)
matmul_vector_matrix: lib.ones(2) @ lib.ones(3, 2)
matmul_vectors: lib.ones(2) @ lib.ones(3)
matmul_batched: lib.ones(2, 3, 4) @ lib.ones(2, 3, 4)
matmul_batched_broadcast: lib.ones(2, 3, 4) @ lib.ones(3, 4, 5)
matmul_scalar: x @ s
matmul_dtypes: lib.ones(2, 2) @ lib.ones(2, 2, dtype=lib.float64)
mm_of_vector: x.mm(v)
reshape: lib.arange(6).reshape(4)
reshape_two_unknown: lib.arange(6).reshape(-1, -1)
reshape_unknown_indivisible: lib.arange(6).reshape(4, -1)
view_of_transposed: x.t().view(9)
view_wrong_size: x.view(4)
expand: v.expand(2, 4)
t_of_three_axes: b.t()
transpose_axis: x.transpose(0, 2)
permute_repeated: b.permute(0, 0, 1)
unsqueeze_axis: x.unsqueeze(4)
squeeze_axis: x.squeeze(3)
sum_axis: x.sum(2)
sum_axis_twice: x.sum((0, 0))
mean_of_int: i.mean()
std_of_int: i.std()
max_of_empty: lib.zeros(0).max()
max_of_empty_axis: lib.zeros(0, 3).max(0)
index_out_of_range: x[3]
index_out_of_range_second: x[0, -4]
index_too_many: x[0, 0, 0]
index_list_out_of_range: x[[0, 3]]
index_mask_of_wrong_shape: x[lib.tensor([True, False])]
index_float: x[1.5]
index_of_scalar: s[0]
index_negative_step: x[::-1]
cat_shapes: lib.cat([x, lib.ones(2, 2)])
cat_axes: lib.cat([x, v])
cat_empty: lib.cat([])
cat_axis: lib.cat([x, y], 2)
stack_shapes: lib.stack([x, lib.ones(2, 2)])
stack_empty: lib.stack([])
diagonal_of_vector: v.diagonal()
where_shapes: lib.where(mask, x, lib.ones(2))
where_condition_float: lib.where(x, x, y)
softmax_axis: x.softmax(2)
cross_entropy_target_length: lib.nn.functional.cross_entropy(x, i[:2])
cross_entropy_target_out_of_range: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 3]))
cross_entropy_reduction: lib.nn.functional.cross_entropy(x, i, reduction="average")
bool_of_many: bool(x)
bool_of_empty: bool(lib.zeros(0))
item_of_many: x.item()
float_of_many: float(c)
int_of_many: int(c)
len_of_scalar: len(s)
iterate_scalar: list(s)
ragged: lib.tensor([[1.0, 2.0], [3.0]])
tensor_of_text: lib.tensor("text")
bool_subtraction: mask - mask
bool_negation: -mask
int_power_negative: i ** -1
in_place_result_dtype: lib.tensor([1, 2]).add_(0.5)
in_place_result_dtype_div: lib.tensor([1, 2]).div_(2)
in_place_broadcast: lib.ones(3).add_(x.detach())
diagonal_axes: x.diagonal(0, 1, 1)
arange_step_zero: lib.arange(0, 5, 0)
arange_sign: lib.arange(0, 5, -1)
zeros_negative: lib.zeros(-1)
eye_negative: lib.eye(-1)
manual_seed_too_large: lib.manual_seed(2**64)
from_numpy_of_list: lib.from_numpy([1.0])
""")


@register_error
def backward_twice(lib: Any) -> None:
    z = (_leaf(lib, [1.0, 2.0]) ** 2).sum()
    z.backward()
    z.backward()


@register_error
def saved_tensor_changed(lib: Any) -> None:
    x = _leaf(lib, [1.0, 2.0, 3.0])
    y = x.exp()
    y.add_(1)
    y.sum().backward()


@register_error
def leaf_changed_in_place_after_saving(lib: Any) -> None:
    x = _leaf(lib, [1.0, 2.0, 3.0])
    y = x * x
    with lib.no_grad():
        x.add_(1)
    y.sum().backward()


# ----------------------------------------------------------------------------------------------------------- promotion
DTYPES = {
    "bool": "b",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}
NUMBERS = {"bool": True, "int": 2, "float": 2.0}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, a, b: a + b,
    "sub": lambda lib, a, b: a - b,
    "mul": lambda lib, a, b: a * b,
    "div": lambda lib, a, b: a / b,
    "pow": lambda lib, a, b: a**b,
    "lt": lambda lib, a, b: a < b,
    "eq": lambda lib, a, b: a == b,
    "where": lambda lib, a, b: lib.where(lib.tensor([True, False]), a, b),
    "matmul": lambda lib, a, b: a @ b,
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "stack": lambda lib, a, b: lib.stack([a, b]),
}
UNARY = """neg abs exp log sqrt tanh sigmoid relu sum sum(0) mean mean(0) std var max softmax(0) log_softmax(0)
clone detach float double""".split()  # noqa: SIM905  (a table reads better than quotes)
RANKS = (
    ("tensor", "tensor"),
    ("tensor", "scalar"),
    ("scalar", "tensor"),
    ("scalar", "scalar"),
    ("tensor", "number"),
    ("number", "tensor"),
    ("scalar", "number"),
    ("number", "scalar"),
)


def _operands(lib: Any, rank: str) -> Iterable[tuple[str, Any]]:
    if rank == "number":
        return NUMBERS.items()
    values = [1, 1] if rank == "tensor" else 1
    return [(short, lib.tensor(values, dtype=getattr(lib, name))) for name, short in DTYPES.items()]


def _dtype_of(run: Callable[[], Any]) -> str:
    try:
        return DTYPES[str(run().dtype).split(".")[1]]
    except (RuntimeError, TypeError, NotImplementedError):
        return "-"


def promoted_dtypes(lib: Any, operation: str, left: str, right: str) -> dict[str, str]:
    """Return for each left operand the result dtypes with all right operands in the tables' order. An error is written as "-"."""
    run = BINARY[operation]
    return {
        name: " ".join(_dtype_of(lambda a=a, b=b: run(lib, a, b)) for _, b in _operands(lib, right))
        for name, a in _operands(lib, left)
    }


def unary(lib: Any, operation: str) -> str:
    """Return the result dtypes for all DTYPES."""
    name, _, arguments = operation.rstrip(")").partition("(")
    return " ".join(_dtype_of(lambda a=a: getattr(a, name)(*map(int, arguments))) for _, a in _operands(lib, "tensor"))


PROMOTION: dict[str, Case] = {
    f"{operation}: {left}, {right}": lambda lib, key=(operation, left, right): promoted_dtypes(lib, *key)
    for operation, (left, right) in itertools.product(BINARY, RANKS)
    if operation not in ("matmul", "cat", "stack") or (left, right) == ("tensor", "tensor")
} | {operation: lambda lib, operation=operation: unary(lib, operation) for operation in UNARY}

TOPICS = {"seeds": SEEDS, "sessions": SESSIONS, "node_names": NODE_NAMES, "errors": ERRORS, "promotion": PROMOTION}
