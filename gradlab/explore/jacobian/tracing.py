"""Tracing: from the arguments of `jacobian` and `hessian` to a recorded graph.

A `DerivativeRequest` holds the arguments without a graph; for a function it has copies of the inputs. `record` calls the function
on these as leaves that require grad, and checks the result. Another thread or process that has the request records the same
graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.jacobian.graph import DifferentiatedGraph, graph_of, recorded_gradient, recording
from gradlab.explore.jacobian.samples import SampleGraph
from gradlab.explore.libraries import Library, library_of


@dataclass(frozen=True)
class DerivativeRequest:
    """Arguments of a derivative: outputs or a function, and inputs.

    Attributes
    ----------
    verb : {"jacobian", "hessian"}
    target : tensor, tuple of tensors, or callable
    inputs : tuple of tensors
    output_name, input_names : str, tuple of str
        Names in messages.
    batch : int or None
        The axis of the samples, each of which has its own Jacobian.
    """

    verb: str
    target: Any
    inputs: tuple[Any, ...]
    output_name: str
    input_names: tuple[str, ...]
    batch: int | None = None

    @property
    def is_function(self) -> bool:
        """True if the target is a function, which can be called again."""
        return not _tensors(self.target)


@dataclass(frozen=True)
class Recorded:
    """A recorded graph, and the function's results or given outputs, which came `alone` or in a tuple."""

    graph: DifferentiatedGraph
    outputs: tuple[Any, ...]
    alone: bool


def record(question: DerivativeRequest) -> Recorded:
    """Record the graph, calling the function if there is one.

    Raises
    ------
    TypeError, RuntimeError, ValueError
        As in `jacobian` and `hessian`.
    """
    library = one_library(question.verb, question.inputs)
    if question.batch is not None:
        return _samples(question, library, question.batch)
    outputs, leaves, alone = _outputs(question, library)
    symmetric = question.verb == "hessian"
    ends = _gradient(library, outputs, leaves, question.output_name) if symmetric else outputs
    return Recorded(graph_of(library, ends, leaves, symmetric=symmetric), outputs, alone)


def _samples(question: DerivativeRequest, library: Library, axis: int) -> Recorded:
    """Record the graph of a function of a batch, which is called on some samples at a time."""
    if not question.is_function:
        raise TypeError(
            f"batch= takes a function, which is called on some samples at a time; got {kind_text(question.target)}. Give "
            f"{question.verb} the function that computes it"
        )
    inputs = []
    for name, x in zip(question.input_names, question.inputs, strict=True):
        if not -len(x.shape) <= axis < len(x.shape):
            raise ValueError(f"batch={axis}: the input {name} has shape {tuple(x.shape)}, and so no axis {axis}")
        inputs.append(x.detach().movedim(axis, 0) if axis else x.detach())
    counts = [int(x.shape[0]) for x in inputs]
    if len(set(counts)) != 1 or not counts[0]:
        said = ", ".join(f"{name} {count}" for name, count in zip(question.input_names, counts, strict=True))
        raise ValueError(
            f"batch={axis}: the inputs must have equally many samples, at least one, along that axis; they have {said}"
        )

    def part(some: Sequence[Any]) -> tuple[DifferentiatedGraph, Any]:
        """Record the graph of some samples, given with their axis first."""
        inner = DerivativeRequest(question.verb, with_samples_first, tuple(some), question.output_name, question.input_names)
        result = record(inner)
        if not result.alone:
            raise TypeError(f"batch= takes a function that returns one tensor; it returned {len(result.outputs)} of them")
        return result.graph, result.outputs[0]

    def with_samples_first(*some: Any) -> Any:
        if not axis:
            return question.target(*some)
        result = question.target(*(x.movedim(0, axis) for x in some))
        fits = library_of(result) is library and -len(result.shape) <= axis < len(result.shape)
        return result.movedim(axis, 0) if fits else result

    graph = SampleGraph(library, inputs, part)
    return Recorded(graph, graph.outputs, True)


def _outputs(question: DerivativeRequest, library: Library) -> tuple[Any, Any, bool]:
    """Return (outputs, inputs that they were computed from, whether there is a single output that is not in a tuple)."""
    verb, target, leaves_given = question.verb, question.target, question.inputs
    if question.is_function:
        if not callable(target):
            raise TypeError(
                f"{verb}(func_or_output, inputs) takes a tensor that requires grad, or a function that returns "
                f"one; got {kind_text(target)}"
            )
        leaves = tuple(value.detach().requires_grad_() for value in leaves_given)
        with recording(library):
            result = target(*leaves)
        if not _tensors(result) or any(library_of(y) is not library for y in _several(result)):
            raise TypeError(
                f"the function given to {verb} must return one {library.name} tensor, or a tuple of them; it "
                f"returned {kind_text(result)}"
            )
    else:
        result, leaves = target, leaves_given
        for y in _several(result):
            if library_of(y) is not library:
                raise TypeError(
                    f"the output is {kind_text(y)}, the inputs are {library.name} tensors; "
                    "a graph does not lead from one library to the other"
                )
        for name, leaf in zip(question.input_names, leaves, strict=True):
            if not leaf.requires_grad:
                raise RuntimeError(
                    f"One of the differentiated Tensors does not require grad: the input {name}, "
                    f"{_describe(library, leaf)}. Call {name}.requires_grad_() before the output is computed, "
                    f"or give {verb} a function instead of its result"
                )
    outputs = _several(result)
    if not any(y.requires_grad for y in outputs):
        raise RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn: the output "
            f"{question.output_name}, {_describe(library, outputs[0])}, was not computed from a tensor that requires grad. "
            + (
                "The function must compute it from its arguments by differentiable operations, without detach() or no_grad()"
                if question.is_function
                else f"Call requires_grad_() on the inputs first, or check for detach() and no_grad() on the way to "
                f"{question.output_name}"
            )
        )
    for y in outputs:
        if library.dtype_name(y).startswith("complex"):
            raise RuntimeError(
                f"the output {question.output_name} is {library.dtype_name(y)}; {verb} handles real outputs. "
                "Differentiate its .real and .imag"
            )
    return outputs, leaves, library_of(result) is not None


def _gradient(library: Library, outputs: Sequence[Any], leaves: Sequence[Any], name: str) -> list[Any]:
    """Return the recorded gradient of a scalar for each input, zeros for inputs on which it does not depend."""
    if len(outputs) != 1 or math.prod(outputs[0].shape) != 1:
        shapes = [tuple(y.shape) for y in outputs]
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs: a Hessian is of one number; "
            f"{name} has shape {shapes[0] if len(shapes) == 1 else shapes}. Differentiate its .sum(), or "
            "one of its elements"
        )
    parts = recorded_gradient(library, outputs[0], list(leaves))
    return [x.detach() * 0 if g is None else g for g, x in zip(parts, leaves, strict=True)]


def one_library(verb: str, inputs: Sequence[Any]) -> Library:
    """Return the library of all `inputs`, which must be floating-point tensors."""
    if not inputs:
        raise ValueError(f"{verb} got an empty tuple of inputs; give at least one tensor to differentiate by")
    libraries = [library_of(value) for value in inputs]
    library = libraries[0]
    for k, value in enumerate(inputs):
        if library is None or libraries[k] is not library:
            raise TypeError(
                f"{verb}(func_or_output, inputs) differentiates by a tensor or a tuple of tensors of one library; "
                f"inputs[{k}] is {kind_text(value)}" + (f", inputs[0] {kind_text(inputs[0])}" if k else "")
            )
        if not library.dtype_name(value).startswith(("float", "bfloat")):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients: "
                f"{'the input' if len(inputs) == 1 else f'inputs[{k}]'} is {_describe(library, value)}. "
                "Convert it first, for example with .float()"
            )
    assert library is not None
    return library


def kind_text(value: Any) -> str:
    """Describe a value: "a torch tensor", "a list of 3", "None"."""
    library = library_of(value)
    if library:
        return f"a {library.name} tensor"
    name = type(value).__name__
    if isinstance(value, (tuple, list)):
        return f"a {name} of {len(value)}"
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _tensors(value: Any) -> bool:
    """Return whether `value` is a tensor, or a tuple or list of tensors."""
    return library_of(value) is not None or (
        isinstance(value, (tuple, list)) and bool(value) and all(library_of(part) is not None for part in value)
    )


def _several(value: Any) -> tuple[Any, ...]:
    return (value,) if library_of(value) is not None else tuple(value)


def _describe(library: Library, value: Any) -> str:
    return f"shape {tuple(value.shape)}, dtype {library.dtype_name(value)}"
