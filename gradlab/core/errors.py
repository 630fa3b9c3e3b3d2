"""The messages that torch users know and search for, each followed by what to do here.

PyTorch's wording comes first and unchanged; the hint after it says what arrived and what would work.
"""
from __future__ import annotations

from typing import Any


class RuleError(RuntimeError):
    """A primitive's declaration, or what one of its rules returned, is wrong: a defect of gradlab or of the declaration."""


class Size(tuple[int, ...]):
    """A shape, printed as `gradlab.Size([2, 3])`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"gradlab.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index: Any) -> Any:
        part = tuple.__getitem__(self, index)
        return Size(part) if isinstance(index, slice) else part

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple(self) * times)


def not_scalar(shape: tuple[int, ...]) -> RuntimeError:
    return RuntimeError(
        f"grad can be implicitly created only for scalar outputs. This one has shape {list(shape)}: give the weights of its "
        f"elements as gradient=, a tensor of shape {list(shape)} (ones weigh all alike, a single 1 picks one row of the "
        "Jacobian), or reduce it first, by .sum() or .mean().")


def no_graph(index: int, dtype: Any) -> RuntimeError:
    why = (f" It has dtype {dtype}, and only floating point tensors carry gradients: write 1. and not 1, or call .float() "
           "before requires_grad_()." if not dtype.is_floating_point else
           " No tensor it was made from requires a gradient, or it was made under no_grad() or cut off by detach(), .data "
           "or .item(): set requires_grad=True on the input before computing.")
    return RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn.{why}")


def graph_freed(name: str) -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        f"after calling backward. What {name} had saved is freed: give retain_graph=True to the earlier call.")


def overwritten(type_name: str, shape: tuple[int, ...], producer: str | None, version: int, user: str) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name} {list(shape)}]{f', which is {producer},' if producer else ''} is at version {version}; expected "
        f"{'version 0' if version == 1 else 'an earlier version'} instead. Hint: {user} saved it "
        "for its gradient. Write to a copy (x = x + 1 rather than x += 1), or after backward().")


def weight_shape(index: int, weight: tuple[int, ...], output: tuple[int, ...], batched: bool = False) -> RuntimeError:
    if batched:
        return RuntimeError(
            f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
            f"sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
            f"detected: grad_output[{index}] has a shape of {Size(weight)} and output[{index}] has a shape of {Size(output)}.")
    return RuntimeError(f"Mismatch in shape: grad_output[{index}] has a shape of {Size(weight)} and output[{index}] has a "
                        f"shape of {Size(output)}.")


def unused(index: int) -> RuntimeError:
    return RuntimeError(
        f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set allow_unused=True if "
        f"this is the desired behavior. (Its gradient is then None; materialize_grads=True gives zeros.)")


def leaf_in_place() -> RuntimeError:
    return RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation. Update it inside `with no_grad():`, or "
        "make a new tensor (x = x + 1).")


def view_of_leaf_in_place() -> RuntimeError:
    return RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation. Update it inside "
                        "`with no_grad():`, or make a new tensor.")


def broadcast_mismatch(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError | None:
    """Torch's error for shapes that do not broadcast, or None if they do."""
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            return RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at non-singleton "
                f"dimension {max(len(a), len(b)) - back}. The shapes are {list(a)} and {list(b)}.")
    return None


def no_bool(name: str, both: bool = False) -> Exception:
    """Torch's refusal of an operation that has no meaning for bools."""
    instead = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
    if name == "sub":
        return RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                            "`logical_xor()` operator instead." if both else
                            f"Subtraction, the `-` operator, with a bool tensor is not supported. {instead}")
    if name == "neg":
        return RuntimeError(f"Negation, the `-` operator, on a bool tensor is not supported. {instead}")
    if name == "relu":
        return RuntimeError("Boolean inputs not supported for relu. Call .float() first.")
    return NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'. Call .int() or .float() first.")


def forward_failed(op: Any, error: Exception, arrays: tuple[Any, ...]) -> Exception:
    """What to raise when a forward did: torch's sentence where the shapes do not fit, else the error, named."""
    shapes = [tuple(a.shape) for a in arrays if hasattr(a, "shape")]
    if isinstance(error, ValueError):
        if op.explain is not None and (better := op.explain(*shapes)):
            return better
        if op.kind == "elementwise":
            for first in range(len(shapes)):
                for second in range(first + 1, len(shapes)):
                    if better := broadcast_mismatch(shapes[first], shapes[second]):
                        return better
        if op.kind == "bilinear" and (better := broadcast_mismatch(*(shape[:-2] for shape in shapes))):
            return better
    if isinstance(error, TypeError) and all(a.dtype.kind == "b" for a in arrays):
        return no_bool(op.name, both=True)
    if isinstance(error, (ValueError, IndexError)):
        return type(error)(f"{op.name}: {error} (shapes {', '.join(map(str, shapes))})")
    return error
