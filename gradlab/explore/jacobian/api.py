"""`jacobian` and `hessian`: check the arguments and record the graph.

A Hessian is the Jacobian of the recorded gradient: one backward sweep with create_graph, then sweeps over the graph it recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradlab.explore.jacobian.code import Called, HandCode, gradient_code
from gradlab.explore.jacobian.matrix import Hessian, Jacobian, Like, SampleJacobians
from gradlab.explore.jacobian.plan import Plan, check_request
from gradlab.explore.jacobian.progress import check_progress
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.store import Store
from gradlab.explore.jacobian.tracing import DerivativeRequest, kind_text, one_library, record
from gradlab.explore.libraries import library_of


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
    batch: int | None = None,
    executor: Any = None,
    names: Mapping[str, Any] | None = None,
) -> Jacobian:
    """Compute the Jacobian of a tensor, or of a function, with respect to one or several input tensors.

    Parameters
    ----------
    func_or_output : Tensor, tuple of Tensor, or callable
        Output tensors that were computed from `inputs`, or a function that computes them. A function is called once, on detached
        copies of `inputs` that require grad, so the tensors that were passed do not change. Several outputs become row blocks of
        one matrix.
    inputs : Tensor or sequence of Tensor
        What to differentiate with respect to. Several inputs become column blocks of one matrix, and are separate arguments of a
        function.
    method : {"auto", "rows", "batched", "columns", "sparse"}
        "rows": one weighted backward per row. "batched": chunks of rows in one backward sweep. "columns": chunks of columns in
        one forward sweep. "sparse": the pattern of possible nonzeros is read off the graph, and rows without a common column (or
        columns without a common row) are computed in one sweep. "auto": the cheapest by estimate; `J.plan` says which and why.
    chunk_size : int, "auto" or None
        How many rows, columns or colours are swept at once. By default, as many as keep the sweep's memory within a share of the
        free memory.
    sparsity : scipy.sparse array, boolean array, or (rows, columns), optional
        Pattern, of shape (outputs, inputs), of the entries that can be nonzero. It is checked by sweeps in random directions,
        each row or column separately. A warning lists those where entries are missing, and those that cannot be checked because
        they contain inf or NaN. PyTorch's graphs do not say what their operations read, so for PyTorch "sparse" requires the
        pattern.
    plan : Plan, optional
        The `plan` of another Jacobian of the same shape. Its method, pattern and colours are used again without a search. If the
        graph differs (operations, shapes, indices or axes), the pattern is checked like a given one.
    out : ndarray, np.memmap, zarr.Array, zarr.Group, or where zarr opens one, optional
        Where the matrix is written, with J's shape and dtype, for results larger than memory. Blocks are written as they are
        computed (by `J.compute()` for example), and no copy is kept. In a NumPy array, entries outside a sparse pattern are
        zeros; for columns, Fortran order is faster. A zarr.Array takes a dense matrix, a zarr.Group the parts of a sparse one:
        see `gradlab.explore.jacobian.targets`. A path, a URL that fsspec knows or a zarr store says where one of these is
        created, with the blocks as chunks. With `resume`, an existing one is opened.
    progress : None, bool or callable, optional
        A bar with rows, columns or colours per second and the time left: by default for runs that are expected to take over two
        seconds, always (True) or never (False). A function is called as `progress(done, total)` after each chunk. After Ctrl-C,
        or an error in a rule, the computed part is kept, and the next request continues.
    resume : bool, optional
        Continue where another process was stopped or killed. Requires a function, and a file as `out`: an np.memmap, opened with
        mode "w+" the first time and "r+" from then on, or a zarr array or group. `<file>.json` beside it, or `gradlab.json` in
        the zarr store, records the finished chunks and digests of the inputs, of the function's code, constants, closure and
        globals, and of the plan. If any of these differ, or the record is damaged, an error says so and nothing is overwritten.
        At most one chunk is computed twice (of at least twenty, unless `chunk_size` is given). Blocks that are not in the file as
        they were written are computed again. Move the record away to start over.
    key : str or bytes, optional
        With `resume`: identifies the function, instead of digests of its parts, if it holds objects that two processes cannot
        compare. It is then up to you that functions with one key are the same: change the key with the function.
    batch : int, optional
        The axis of the samples, for a function whose output has a row for each sample along the same axis. Each sample then has
        its own Jacobian, and the matrix stacks them: (samples · outputs of one, inputs of one). `J.tensor()` is what
        torch.func.vmap(jacrev(f)) returns. The function is called on `chunk_size` samples at a time. Samples must not depend on
        each other; the first two are checked. `gl.func.vmap(f)` turns a function of one sample into a function of a batch.
    executor : dask.distributed.Client or concurrent.futures.Executor, optional
        Default workers for computing the whole matrix. The function and its inputs are sent to them: see `J.compute`. Single rows
        and products are computed here.
    names : mapping of str to Tensor, optional
        Names for the output (the tensor, or the function that makes it) and the inputs, as in `graph`. By default, the names of
        the caller's variables. An output without a name is called "y", an input "x".

    Returns
    -------
    Jacobian
        A matrix of shape (output.numel(), number of input elements). It is computed on demand.

    Raises
    ------
    TypeError
        If `inputs` are not tensors of one library, if the function does not return tensors, or if it cannot be sent to the
        workers of `executor`.
    RuntimeError
        If the output does not require grad, or an input is not floating point or does not require grad.
    ValueError
        If `method`, `chunk_size`, `sparsity`, `plan` or `out` do not fit, or `resume` finds a record of different work.

    Notes
    -----
    J[i, j] = ∂output[i] / ∂input[j]. Row i is vᵀJ with v the i-th unit vector: one reverse sweep, a vector-Jacobian product
    (VJP). Many texts call the same product a Jacobian-vector product. Column j is Ju with u the j-th unit vector: one forward
    sweep. Your hooks do not run in these sweeps, and no `.grad` is written. PyTorch's engine, however, runs the hooks of
    PyTorch's tensors and nodes, and uses their results.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> J = gl.jacobian(lambda x: gl.stack([x[0] * x[1], x[0] ** 2]), x)
    >>> J.tensor()
    tensor([[2., 1.],
            [2., 0.]])
    """
    request = {"method": method, "chunk_size": chunk_size, "sparsity": sparsity, "plan": plan}
    long = {"out": out, "progress": progress, "resume": resume, "key": key, "executor": executor}
    return _make_jacobian("jacobian", func_or_output, inputs, names, request, long, sys._getframe(1), batch)


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
    executor: Any = None,
    names: Mapping[str, Any] | None = None,
) -> Hessian:
    """Compute the Hessian of a scalar, or of a function that returns one, with respect to one or several input tensors.

    Parameters
    ----------
    func_or_output : Tensor or callable
        A tensor with one element that was computed from `inputs`, or a function that computes it, as in `jacobian`.
    inputs : Tensor or sequence of Tensor
        What to differentiate with respect to. Several inputs become blocks of rows and columns.
    method, chunk_size, sparsity, plan, out, progress, resume, key, executor, names : optional
        As in `jacobian`. The colouring of "sparse" exploits symmetry, and a given `sparsity` is made symmetric.

    Returns
    -------
    Hessian
        A `Jacobian` of shape (n, n), where n is the number of input elements. Its rows are those of the gradient. Only the
        gradient is computed immediately, with its own graph; the rest on demand.

    Raises
    ------
    RuntimeError
        If the output has more than one element, or as in `jacobian`.

    Notes
    -----
    H[i, j] = ∂²output / ∂input[i] ∂input[j].

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0])
    >>> gl.hessian(lambda x: x[0] ** 2 * x[1], x).tensor()
    tensor([[4., 2.],
            [2., 0.]])
    """
    request = {"method": method, "chunk_size": chunk_size, "sparsity": sparsity, "plan": plan}
    long = {"out": out, "progress": progress, "resume": resume, "key": key, "executor": executor}
    result = _make_jacobian("hessian", func_or_output, inputs, names, request, long, sys._getframe(1))
    assert isinstance(result, Hessian)
    return result


def _make_jacobian(
    verb: str,
    target: Any,
    inputs: Any,
    names: Mapping[str, Any] | None,
    request: dict[str, Any],
    long: dict[str, Any],
    frame: Any,
    batch: Any = None,
) -> Jacobian:
    single = library_of(inputs) is not None
    if not single and (isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence)):
        raise TypeError(
            f"{verb}(func_or_output, inputs) differentiates by a tensor or a tuple of tensors; inputs is {kind_text(inputs)}"
        )
    arguments = (inputs,) if single else tuple(inputs)
    library = one_library(verb, arguments)
    _check_batch(batch, request)
    called = Called(target, arguments, names, frame)
    question = DerivativeRequest(verb, target, arguments, called.output, called.inputs, batch)
    if question.is_function:  # later writes to the inputs must not change the result
        question = replace(question, inputs=tuple(x.detach().clone() for x in arguments))
    progress, executor = long.pop("progress"), long.pop("executor")
    asked = elsewhere = None
    check_progress(progress)
    if executor is not None:
        from gradlab.explore.jacobian import distributed  # rarely needed

        elsewhere = distributed.Workers(executor, question)
    if long["out"] is not None or long["resume"] is not False or long["key"] is not None:
        from gradlab.explore.jacobian import resume  # slow to import

        asked = resume.prepare(question, library, **long)
    recorded = record(question)
    graph, outputs, alone = recorded.graph, recorded.outputs, recorded.alone
    outputs_called = called.outputs(len(outputs), alone)
    opening, spare = called.opening(outputs_called, alone), "y"
    if verb == "hessian":
        (y,), spare = outputs_called, "g"
        opening = "\n".join(filter(None, [opening, gradient_code(library.alias, y, called.inputs)]))
        outputs_called, alone = tuple(f"∂{y}/∂{x}" for x in called.inputs), single
    check_request(graph, **request)
    runner = Runner(graph, Store(graph.shape, graph.dtype), request, progress, question)
    runner.elsewhere = elsewhere
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
    kind = Hessian if verb == "hessian" else Jacobian if batch is None else SampleJacobians
    result = kind(runner, code, library, [Like(x) for x in graph.likes()], (alone, single))
    if asked is not None:
        named = [
            ("input", zip(called.inputs, arguments, strict=True)),
            ("output", zip(outputs_called, graph.outputs, strict=True)),
        ]
        tensors = [(f"the {what} {name}", library.array(one)) for what, some in named for name, one in some]
        resume.begin(asked, runner, tensors)
    return result


def _check_batch(batch: Any, request: Mapping[str, Any]) -> None:
    if batch is None:
        return
    if isinstance(batch, bool) or not isinstance(batch, int):
        raise TypeError(f"batch={batch!r}: it takes the axis of the samples, a whole number, or None")
    if request["method"] != "auto" or request["sparsity"] is not None:
        raise ValueError("batch= determines the method (some samples at a time), so do not pass method or sparsity with it")
