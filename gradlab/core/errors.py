"""PyTorch's error messages, each followed by a hint.

PyTorch's wording comes first and unchanged, because users know it and search for it. The hint says what was given and what would
work. Errors under `@explainable` can be extended by one registered explainer, which adds the line, the operation and the fix (see
`gradlab.diagnose`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from gradlab.core.fixes import offer_fix


class Explainer(Protocol):
    """Rewrite an error, given the name of its factory in this module, the plain error and the factory's arguments."""

    def __call__(self, name: str, plain: Any, *about: Any) -> Any: ...


class _Registered:
    explainer: Explainer | None = None


_registered = _Registered()
Factory = TypeVar("Factory", bound=Callable[..., Any])


def explain_with(explainer: Explainer | None) -> None:
    """Pass errors under `@explainable` through `explainer` from now on, or leave them plain if it is None."""
    _registered.explainer = explainer


def explainable(plain: Factory) -> Factory:
    """Pass the result of `plain`, an error or a part of its text, through the registered explainer."""

    @functools.wraps(plain)
    def explain(*about: Any) -> Any:
        error, explainer = plain(*about), _registered.explainer
        return error if explainer is None else explainer(plain.__name__, error, *about)

    return explain  # type: ignore[return-value]


@explainable
def advice(text: str) -> str:
    """A hint to follow PyTorch's sentence. An explainer spells gradlab's names in it as the user's code does."""
    return text


class OutOfMemoryError(RuntimeError, MemoryError):
    """Not enough memory for a result, on the host or on a GPU."""


OutOfMemoryError.__module__ = "gradlab"


class RuleError(RuntimeError):
    """A defect of gradlab or of a primitive's declaration: the declaration, or the result of one of its rules, is invalid."""


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints, printed as `gradlab.Size([2, 3])`.

    Parameters
    ----------
    sizes : sequence of int, optional
        The lengths of the axes.

    Raises
    ------
    TypeError
        If an element of `sizes` is not an integer.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(2, 3).shape
    gradlab.Size([2, 3])
    """

    __slots__ = ()
    __module__ = "gradlab"

    def __new__(cls, sizes: Any = ()) -> Size:
        size = tuple.__new__(cls, sizes)
        for at, n in enumerate(size):
            if type(n) is not int:
                if not hasattr(n, "__index__"):
                    raise TypeError(f"gradlab.Size() takes an iterable of 'int' (item {at} is '{type(n).__name__}')")
                return cls([int(n) for n in size])
        return size

    def __repr__(self) -> str:
        return f"gradlab.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape.

        Returns
        -------
        int

        Examples
        --------
        >>> import gradlab as gl
        >>> gl.Size([2, 3]).numel()
        6
        """
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index: Any) -> Any:
        part = tuple.__getitem__(self, index)
        return size_of(part) if isinstance(index, slice) else part

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to gradlab.Size")
        return size_of(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return size_of(other + tuple(self))

    def __mul__(self, times: Any) -> Size:
        return size_of(tuple.__mul__(self, times))

    __rmul__ = __mul__


def size_of(shape: tuple[int, ...]) -> Size:
    """Convert an array's shape to a Size."""
    return tuple.__new__(Size, shape)


def type_name(x: Any) -> str:
    """Return the name of an argument's type as PyTorch spells it, with the module for NumPy's types."""
    kind = type(x)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def wrong_type(function: str, argument: str, position: int | None, wanted: str, got: Any) -> TypeError:
    """PyTorch's error for an argument of the wrong type."""
    at = f" (position {position})" if position else ""
    hint = advice(" Make it a tensor first: gradlab.tensor(…).") if wanted == "Tensor" and not isinstance(got, str) else ""
    return TypeError(f"{function}(): argument '{argument}'{at} must be {wanted}, not {type_name(got)}.{hint}")


def invalid_combination(function: str, args: tuple[Any, ...], *signatures: str, **named: Any) -> TypeError:
    """PyTorch's error for arguments that match none of a function's signatures."""
    got = ", ".join([type_name(x) for x in args] + [f"{k}={type_name(x)}" for k, x in named.items()])
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        + "\n".join(f" * {signature}" for signature in signatures)
    )


def overlapping_memory() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location, or the memory is read-only. Please clone() the tensor before performing the operation."
    )


# Names of PyTorch that gradlab leaves out, as patterns, and the reason.
UNSUPPORTED_NAMES = {
    r"bfloat16|BFloat16\w*": "NumPy does not have this dtype; use float16 or float32",
    r"complex\w*|c(float|double|half)|Complex\w*|view_as_(complex|real)|polar": "there are no complex numbers",
    r"sparse\w*|_sparse\w*|hspmm|sspaddmm|smm": "tensors are dense",
    r"uint(16|32|64)": "use int32 or int64",
    r"q_\w+|q(u?)int\d+\w*|(de|fake_)?quantize\w*": "there are no quantized tensors",
    r"jit|onnx|fx|export|library|package|_dynamo|_C": "operations run eagerly; there is no compiler",
    r"distributed|multiprocessing|distributions|hub|profiler": "it is not part of gradlab",
}


def missing_attribute(name: str, module: str = "gradlab") -> AttributeError:
    """The error for a name that a module of gradlab does not have."""
    from re import fullmatch

    why = next(
        (f"gradlab does not have it ({reason})" for pattern, reason in UNSUPPORTED_NAMES.items() if fullmatch(pattern, name)),
        "it is not one of PyTorch's names that gradlab implements",
    )
    return AttributeError(f"module {module!r} has no attribute {name!r}: {why}. dir({module}) lists the available names.")


def module_getattr(module: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module, which explains that a name of PyTorch is missing."""

    def raise_missing(name: str) -> Any:
        raise missing_attribute(name, module)

    return raise_missing


# ------------------------------------------------------------------------------------ errors about a graph: @explainable
SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after "
    "calling backward."
)
FIX_INTEGERS = (
    ": write data as 1. instead of 1, and differentiate what comes before a comparison, an argmax or a cast to integers"
)
NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward()."
)
FIX_NON_LEAF_GRAD = (
    " If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If "
    "you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead."
)


@explainable
def not_scalar(shape: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for scalar outputs. This one has shape {list(shape)}."
        + offer_fix(
            f" Pass gradient=, a tensor of shape {list(shape)} with a weight for each element (a single 1 picks one row of the "
            "Jacobian, all ones add up the rows), or reduce the output first with .sum() or .mean()."
        )
    )


@explainable
def no_graph(index: int, output: Any) -> RuntimeError:
    """`output` is the tensor without a graph, or only its dtype."""
    dtype = getattr(output, "dtype", output)
    first = f"element {index} of tensors does not require grad and does not have a grad_fn."
    if dtype.is_floating_point:
        return RuntimeError(first)
    return RuntimeError(f"{first} It has dtype {dtype}, and integers and bools carry no gradient{offer_fix(FIX_INTEGERS)}.")


@explainable
def graph_freed(node: Any, roots: Sequence[Any] = ()) -> RuntimeError:
    """`node` is the freed node. `roots` are the (node, cotangent) pairs from which the failing sweep started."""
    return RuntimeError(f"{SECOND_BACKWARD} The values saved by {node.title} have been freed.")


@explainable
def saved_tensor_modified(
    type_name: str,
    shape: tuple[int, ...],
    producer: str | None,
    version: int,
    user: str,
    node: Any = None,
    argument: str = "",
    storage: Any = None,
) -> RuntimeError:
    """A saved tensor was written to: `user`, the name of `node`, saved it as `argument`; `producer` made it, in `storage`."""
    return RuntimeError(modification_sentence(type_name, shape, producer, version, "an earlier version", user) + ".")


def modification_sentence(
    type_name: str, shape: tuple[int, ...], producer: str | None, version: int, wanted: str, user: str
) -> str:
    """PyTorch's sentence for a saved tensor that was written to, without the full stop."""
    return (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{type_name} "
        f"{list(shape)}]{f', which is {producer},' if producer else ''} is at version {version}; expected {wanted} instead. "
        f"Hint: {user} saved it for its gradient"
    )


def detached_in_place(node: str) -> RuntimeError:
    return RuntimeError(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
        f"supported, please use out-of-place `.detach()` instead. {node} saved it for its gradient."
    )


@explainable
def weight_shape(index: int, weight: tuple[int, ...], output: tuple[int, ...], batched: bool = False) -> RuntimeError:
    if batched:
        return RuntimeError(
            f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
            f"sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
            f"detected: grad_output[{index}] has a shape of {Size(weight)} and output[{index}] has a shape of {Size(output)}."
        )
    return RuntimeError(
        f"Mismatch in shape: grad_output[{index}] has a shape of {Size(weight)} and output[{index}] has a shape of "
        f"{Size(output)}. There must be one weight for each element of the output."
    )


@explainable
def unused_input(index: int, x: Any = None, outputs: Sequence[Any] = ()) -> RuntimeError:
    """`x` is the input that no tensor in `outputs` depends on."""
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        "this is the desired behavior. (Its gradient is then None; materialize_grads=True gives zeros.)"
    )


@explainable
def input_without_history(index: int, x: Any) -> RuntimeError:
    """`x` is the input without a history."""
    return RuntimeError(
        f"One of the differentiated Tensors does not require grad: inputs[{index}], of shape {list(x.array.shape)}."
        + offer_fix(" Set requires_grad=True on it before computing the output.")
    )


@explainable
def leaf_in_place() -> RuntimeError:
    return RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation."
        + offer_fix(" Update it inside `with gradlab.no_grad():`, or make a new tensor (x = x + 1).")
    )


@explainable
def view_of_leaf_in_place() -> RuntimeError:
    return RuntimeError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation."
        + offer_fix(" Update it inside `with gradlab.no_grad():`, or make a new tensor.")
    )


@explainable
def non_leaf_grad(tensor: Any) -> UserWarning:
    """Warning for reading the `.grad` of `tensor`, which is not a leaf."""
    return UserWarning(NON_LEAF_GRAD + offer_fix(FIX_NON_LEAF_GRAD))


@explainable
def out_of_memory(name: str, error: MemoryError, nodes: Sequence[Any]) -> OutOfMemoryError:
    """`name` is the operation that ran out of memory. The graph is reached from `nodes`."""
    return error if isinstance(error, OutOfMemoryError) else OutOfMemoryError(f"Out of memory. The operation was {name}.")


# -------------------------------------------------------------------------------------------------- errors of an operation
# Constants, because a traceback shows the lines of code around a `raise`.
FIX_INTEGER_DATA = "write 1. instead of 1, or pass dtype=gradlab.float32"
FIX_INTEGER_TENSOR = "write 1. instead of 1, or call .float() first"
FIX_INTEGER_PARAMETER = "call .float() first, or give requires_grad=False"


def cannot_require_grad(first: str, dtype: Any, fix: str) -> RuntimeError:
    """The error for integers or bools that are to require gradients. `first` is PyTorch's sentence and how the dtype follows."""
    return RuntimeError(f"{first} {dtype}{advice(offer_fix(f': {fix}'))}.")


def leaf_used_in_place() -> RuntimeError:
    return RuntimeError(
        "a leaf Variable that requires grad has been used in an in-place operation."
        + advice(offer_fix(" Call the Function on a copy (x.clone()), or inside `with gradlab.no_grad():`."))
    )


def broadcast_mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError | None:
    """Return PyTorch's error for shapes that do not broadcast, or None if they do."""
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at non-singleton "
                f"dimension {max(len(a), len(b)) - back}. The shapes are {list(a)} and {list(b)}. Starting from the "
                "last axis, sizes must be equal, or one of them must be 1 (unsqueeze adds such an axis)."
            )
    return None


def no_bool(name: str, both: bool = False) -> Exception:
    """PyTorch's error for an operation that is not defined for bools."""
    instead = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    if name == "sub":
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
            if both
            else f"Subtraction, the `-` operator, with a bool tensor is not supported. {instead}"
        )
    if name == "neg":
        return RuntimeError(f"Negation, the `-` operator, on a bool tensor is not supported. {instead}")
    if name == "relu":
        return RuntimeError("Boolean inputs not supported for relu. Call .float() first.")
    return not_implemented(name, "Bool")


# PyTorch's errors name the kernel. Kernels whose name does not follow from the operation's:
KERNEL_NAMES = {
    **{name: f"{name}_vml_cpu" for name in ("floor", "ceil", "round", "trunc")},
    "floor_divide": "div_floor_cpu",
    "bitwise_left_shift": "lshift_cpu",
    "bitwise_right_shift": "rshift_cpu",
    "lerp_scalar": "lerp_kernel_scalar",
    "lerp": "lerp_kernel_tensor",
    "round_decimals": "round_cpu",
    "addcmul": "addcmul_cpu_out",
    "div_trunc": "div_trunc_cpu",
    "pow": "pow",
    "gelu": "GeluKernelImpl",
    "gelu_tanh": "GeluKernelImpl",
    "logsigmoid": "log_sigmoid_cpu",
    "softshrink": "softshrink_check",
    "mse_loss": "mse_cpu",
    "smooth_l1_loss": "smooth_l1_cpu",
    "huber_loss": "huber_cpu",
    "binary_cross_entropy": "binary_cross_entropy",
}


def not_implemented(name: str, word: Any) -> NotImplementedError:
    """PyTorch's error for an operation that is not defined for a dtype, given as a dtype or as PyTorch's word for it ("Long")."""
    word = getattr(word, "word", word)
    instead = {"Bool": " Call .int() or .float() first.", "Long": " Call .float() first."}.get(word, "")
    return NotImplementedError(f"\"{KERNEL_NAMES.get(name, f'{name}_cpu')}\" not implemented for '{word}'.{instead}")


def forward_failed(op: Any, error: Exception, arrays: tuple[Any, ...], nodes: tuple[Any, ...] = ()) -> Exception:
    """Return the exception to raise after a forward failed.

    It is PyTorch's error if there is one, without NumPy's as its context; otherwise the original error with the operation's name
    and the shapes. `nodes` are the nodes of the operands.
    """
    shapes = [tuple(a.shape) for a in arrays if hasattr(a, "shape")]
    if isinstance(error, MemoryError):
        return out_of_memory(op.name, error, nodes)
    better = argument_mismatch(op, error, shapes, arrays)
    if better is not None:
        better.__suppress_context__ = True
        return better
    if isinstance(error, (ValueError, IndexError)):
        return type(error)(f"{op.name}: {error} (shapes {', '.join(map(str, shapes))})")
    return error


def argument_mismatch(op: Any, error: Exception, shapes: list[tuple[int, ...]], arrays: tuple[Any, ...]) -> Exception | None:
    """Return PyTorch's error for arguments that do not match, or None if PyTorch has none."""
    if isinstance(error, ValueError):
        own: Exception | None = None if op.explain is None else op.explain(*shapes)
        if own is not None:
            return own
        if op.kind == "elementwise":
            for first in range(len(shapes)):
                for second in range(first + 1, len(shapes)):
                    if better := broadcast_mismatch(shapes[first], shapes[second]):
                        return better
        if op.kind == "bilinear" and (better := broadcast_mismatch(*(shape[:-2] for shape in shapes))):
            return better
    if isinstance(error, TypeError) and all(a.dtype.kind == "b" for a in arrays):
        return no_bool(op.name, both=True)
    return None
