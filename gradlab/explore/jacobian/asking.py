"""`jacobian` and `hessian`: what was asked for, checked, and the graph that answers it.

A Hessian is the Jacobian of the recorded gradient: one backward sweep with create_graph, then sweeps over what it recorded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gradlab.explore.jacobian.code import Called, HandCode, gradient_code
from gradlab.explore.jacobian.graph import graph_of, recorded_gradient, recording
from gradlab.explore.jacobian.matrix import Hessian, Jacobian, Like
from gradlab.explore.jacobian.plan import Plan, check_request
from gradlab.explore.jacobian.progress import check_progress
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.store import Store
from gradlab.explore.libraries import Library, library_of


def jacobian(
    func_or_output: Any,
    inputs: Any,
    *,
    method: str = "auto",
    chunk_size: int | str | None = None,
    sparsity: Any = None,
    plan: Plan | None = None,
    out: Any = None,
    progress: Any = None,
    resume: bool = False,
    key: str | bytes | None = None,
    names: Mapping[str, Any] | None = None,
) -> Jacobian:
    """The Jacobian of a tensor, or of a function, by one or several input tensors.

    Parameters
    ----------
    func_or_output : Tensor, tuple of Tensor, or callable
        Output tensors that were computed from `inputs`, or a function that computes them. A function is called once,
        on detached copies of `inputs` that require grad, so the tensors that were passed stay as they are. Several outputs
        become row blocks of one matrix.
    inputs : Tensor or sequence of Tensor
        What to differentiate by. Several inputs become column blocks of one matrix, and are separate arguments of a
        function.
    method : {"auto", "rows", "batched", "columns", "sparse"}
        "rows": one weighted backward a row. "batched": chunks of rows in one backward sweep. "columns": chunks of columns
        in one forward sweep. "sparse": the pattern of what can be nonzero is read off the graph, and rows or columns that
        share no column or row are computed in one sweep. "auto": the cheapest by estimate; `J.plan` says which and why.
    chunk_size : int, "auto" or None
        How many rows, columns or colours are swept at once. By default as many as keep the sweep's memory at a share of
        what is free.
    sparsity : scipy.sparse array, boolean array, or (rows, columns), optional
        The pattern, of shape (outputs, inputs), of the entries that can be nonzero. It is checked by sweeps in
        random directions, each row or column by itself, and a warning says which are wrong if it leaves something out (each time,
        and which cannot be told because they hold inf or NaN). torch's graphs do not say what their operations read, so for torch
        "sparse" needs it.
    plan : Plan, optional
        The `plan` of another Jacobian of the same shape: its method, pattern and colours are used and not searched for again.
        If the graph is another (other operations, shapes, indices or axes), the pattern is checked as a given one is.
    out : ndarray or np.memmap, optional
        Where the matrix is written, of J's shape and dtype: for results larger than memory. Blocks are written as they are
        computed (by `np.asarray(J)` for example), and nothing is kept twice. The entries outside of a sparse pattern are zeros.
        For columns an array in Fortran order is quicker.
    progress : None, bool or callable, optional
        A bar with rows, columns or colours a second and the time left: by default for runs that are expected to take over two
        seconds, always (True) or never (False). A function is called as `progress(done, total)` after each chunk. Ctrl-C, and
        an error in a rule, leave what is computed; asking again goes on.
    resume : bool, optional
        Go on where another process was stopped or killed. Needs a function and an np.memmap as `out`, opened with mode "w+" the
        first time and "r+" from then on. `<file>.json` beside it says which chunks the file holds, and what the work was:
        digests of the inputs, of the function's code, constants, closure and globals, of the plan. If any of these differ, or
        the record is damaged, that is said and nothing is overwritten. At most one chunk is computed twice (of twenty or more,
        if `chunk_size` does not say). What is not in the file as it was written is computed again. Move the record away to
        start anew.
    key : str or bytes, optional
        With `resume`: what to know the function by, instead of digests of what it is made of, where it holds what two processes
        cannot compare. That functions of one key are the same is then for you to see to: change the key with the function.
    names : mapping of str to Tensor, optional
        What to call the output (the tensor, or the function that makes it) and the inputs, as in `graph`. By default
        the names that the caller's variables have; an output without one is called "y", an input "x".

    Returns
    -------
    Jacobian
        A matrix of shape (output.numel(), number of input elements). Nothing of it is computed yet.

    Raises
    ------
    TypeError
        If `inputs` are not tensors of one library, or a function returned something else than tensors.
    RuntimeError
        If the output does not require grad, or an input is not floating point or does not require grad.
    ValueError
        If `method`, `chunk_size`, `sparsity`, `plan` or `out` do not fit, or `resume` finds a record of other work.

    Notes
    -----
    J[i, j] = ∂output[i] / ∂input[j]. Row i is vᵀJ with v the i-th unit vector: one reverse sweep, a vector-Jacobian
    product (VJP). Many texts call the same product a Jacobian-vector product. Column j is Ju with u the j-th unit vector: one
    forward sweep. A user's hooks stay out of these sweeps, and no `.grad` is written; torch's engine, though, runs the hooks of
    torch's tensors and nodes, and what they return counts.
    """
    request = {"method": method, "chunk_size": chunk_size, "sparsity": sparsity, "plan": plan}
    long = {"out": out, "progress": progress, "resume": resume, "key": key}
    return _asked("jacobian", func_or_output, inputs, names, request, long, sys._getframe(1))


def hessian(
    func_or_output: Any,
    inputs: Any,
    *,
    method: str = "auto",
    chunk_size: int | str | None = None,
    sparsity: Any = None,
    plan: Plan | None = None,
    out: Any = None,
    progress: Any = None,
    resume: bool = False,
    key: str | bytes | None = None,
    names: Mapping[str, Any] | None = None,
) -> Hessian:
    """The Hessian of a scalar, or of a function that returns one, by one or several input tensors.

    Parameters
    ----------
    func_or_output : Tensor or callable
        A tensor of one element that was computed from `inputs`, or a function that computes it, as in `jacobian`.
    inputs : Tensor or sequence of Tensor
        What to differentiate by. Several inputs become blocks of rows and columns.
    method, chunk_size, sparsity, plan, out, progress, resume, key, names
        As in `jacobian`. The colours of "sparse" use that the matrix is symmetric, and a given `sparsity` is made symmetric.

    Returns
    -------
    Hessian
        A `Jacobian` of shape (n, n), n the number of input elements, whose rows are those of the gradient. Nothing of it is
        computed yet but the gradient, once, with a graph of its own.

    Raises
    ------
    RuntimeError
        If the output has more than one element, and as `jacobian`.

    Notes
    -----
    H[i, j] = ∂²output / ∂input[i] ∂input[j].
    """
    request = {"method": method, "chunk_size": chunk_size, "sparsity": sparsity, "plan": plan}
    long = {"out": out, "progress": progress, "resume": resume, "key": key}
    made = _asked("hessian", func_or_output, inputs, names, request, long, sys._getframe(1))
    assert isinstance(made, Hessian)
    return made


def _asked(
    verb: str,
    target: Any,
    inputs: Any,
    names: Mapping[str, Any] | None,
    request: dict[str, Any],
    long: dict[str, Any],
    frame: Any,
) -> Jacobian:
    single = library_of(inputs) is not None
    if not single and (isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence)):
        raise TypeError(
            f"{verb}(func_or_output, inputs) differentiates by a tensor or a tuple of tensors; inputs is {_kind(inputs)}"
        )
    given = (inputs,) if single else tuple(inputs)
    library = _one_library(verb, given)
    called = Called(target, given, names, frame)
    progress, asked = long.pop("progress"), None
    check_progress(progress)
    if long["out"] is not None or long["resume"] is not False or long["key"] is not None:
        from gradlab.explore.jacobian import resuming  # late: most do without it, and it loads much

        asked = resuming.prepare(verb, target, given, called.inputs, library, **long)
    outputs, leaves, alone = _outputs(verb, target, given, library, called)
    outputs_called = called.outputs(len(outputs), alone)
    opening, spare = called.opening(outputs_called, alone), "y"
    if verb == "hessian":
        outputs = _gradient(library, outputs, leaves, called)
        (y,), spare = outputs_called, "g"
        opening = "\n".join(filter(None, [opening, gradient_code(library.alias, y, called.inputs)]))
        outputs_called, alone = tuple(f"∂{y}/∂{x}" for x in called.inputs), single
    graph = graph_of(library, outputs, leaves, symmetric=verb == "hessian")
    check_request(graph, **request)
    runner = Runner(graph, Store(graph.shape, graph.dtype, long["out"]), request, progress)
    code = HandCode(
        library.alias,
        list(zip(outputs_called, graph.output_shapes, strict=True)),
        list(zip(called.inputs, graph.input_shapes, strict=True)),
        leaves=all(value.is_leaf for value in graph.inputs),
        plain=all(library.dtype_name(y) == "float32" for y in graph.outputs),
        forward=library.has_forward,
        remark=called.remark,
        opening=opening,
        spare=spare,
    )
    made = (Hessian if verb == "hessian" else Jacobian)(runner, code, library, [Like(x) for x in graph.inputs], (alone, single))
    if asked is not None:
        named = [("input", zip(called.inputs, given, strict=True)), ("output", zip(outputs_called, graph.outputs, strict=True))]
        resuming.begin(asked, runner, [(f"the {what} {name}", library.array(one)) for what, some in named for name, one in some])
    return made


def _gradient(library: Library, outputs: Sequence[Any], leaves: Sequence[Any], called: Called) -> list[Any]:
    """The recorded gradient of a scalar by each input, zeros for one that it does not depend on."""
    if len(outputs) != 1 or math.prod(outputs[0].shape) != 1:
        shapes = [tuple(y.shape) for y in outputs]
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs: a Hessian is of one number; "
            f"{called.output} has shape {shapes[0] if len(shapes) == 1 else shapes}. Differentiate its .sum(), or "
            "one of its elements"
        )
    parts = recorded_gradient(library, outputs[0], list(leaves))
    return [x.detach() * 0 if g is None else g for g, x in zip(parts, leaves, strict=True)]


def _outputs(verb: str, target: Any, given: tuple[Any, ...], library: Library, called: Called) -> tuple[Any, Any, bool]:
    """(outputs, inputs that they were computed from, whether it is one output that came by itself)."""
    is_function = not _tensors(target)
    if is_function:
        if not callable(target):
            raise TypeError(
                f"{verb}(func_or_output, inputs) takes a tensor that requires grad, or a function that returns "
                f"one; got {_kind(target)}"
            )
        leaves = tuple(value.detach().clone().requires_grad_() for value in given)
        with recording(library):
            made = target(*leaves)
        if not _tensors(made) or any(library_of(y) is not library for y in _several(made)):
            raise TypeError(
                f"the function given to {verb} must return one {library.name} tensor, or a tuple of them; it "
                f"returned {_kind(made)}"
            )
    else:
        made, leaves = target, given
        for y in _several(made):
            if library_of(y) is not library:
                raise TypeError(
                    f"the output is {_kind(y)}, the inputs are {library.name} tensors; "
                    "a graph does not lead from one library to the other"
                )
        for name, leaf in zip(called.inputs, leaves, strict=True):
            if not leaf.requires_grad:
                raise RuntimeError(
                    f"One of the differentiated Tensors does not require grad: the input {name}, "
                    f"{_describe(library, leaf)}. Call {name}.requires_grad_() before the output is computed, "
                    f"or give {verb} a function instead of its result"
                )
    outputs = _several(made)
    if not any(y.requires_grad for y in outputs):
        raise RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn: the output "
            f"{called.output}, {_describe(library, outputs[0])}, was not computed from a tensor that requires grad. "
            + (
                "The function must compute it from its arguments by differentiable operations, without detach() or no_grad()"
                if is_function
                else f"Call requires_grad_() on the inputs first, or check for detach() and no_grad() on the way to "
                f"{called.output}"
            )
        )
    for y in outputs:
        if library.dtype_name(y).startswith("complex"):
            raise RuntimeError(
                f"the output {called.output} is {library.dtype_name(y)}; {verb} handles real outputs. "
                "Differentiate its .real and .imag"
            )
    return outputs, leaves, library_of(made) is not None


def _tensors(value: Any) -> bool:
    """Whether `value` is a tensor, or a tuple or list of them."""
    return library_of(value) is not None or (
        isinstance(value, (tuple, list)) and bool(value) and all(library_of(part) is not None for part in value)
    )


def _several(value: Any) -> tuple[Any, ...]:
    return (value,) if library_of(value) is not None else tuple(value)


def _one_library(verb: str, inputs: Sequence[Any]) -> Library:
    """The library of all `inputs`, which must be floating-point tensors."""
    if not inputs:
        raise ValueError(f"{verb} got an empty tuple of inputs; give at least one tensor to differentiate by")
    libraries = [library_of(value) for value in inputs]
    library = libraries[0]
    for k, value in enumerate(inputs):
        if library is None or libraries[k] is not library:
            raise TypeError(
                f"{verb}(func_or_output, inputs) differentiates by a tensor or a tuple of tensors of one library; "
                f"inputs[{k}] is {_kind(value)}" + (f", inputs[0] {_kind(inputs[0])}" if k else "")
            )
        if not library.dtype_name(value).startswith(("float", "bfloat")):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients: "
                f"{'the input' if len(inputs) == 1 else f'inputs[{k}]'} is {_describe(library, value)}. "
                "Convert it first, for example with .float()"
            )
    assert library is not None
    return library


def _kind(value: Any) -> str:
    library = library_of(value)
    if library:
        return f"a {library.name} tensor"
    name = type(value).__name__
    if isinstance(value, (tuple, list)):
        return f"a {name} of {len(value)}"
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _describe(library: Library, value: Any) -> str:
    return f"shape {tuple(value.shape)}, dtype {library.dtype_name(value)}"
