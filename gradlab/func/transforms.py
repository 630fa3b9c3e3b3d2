"""Transforms that differentiate a function: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`.

A transform calls the function on fresh inputs (see `autograd.functional_helpers`) and computes derivatives from the graph that
the call recorded. Transforms can be nested to any depth: the sweep of an inner one is recorded if an outer one, or a tensor that
requires gradients, needs it. Transforms work under `no_grad`, but then their results have no history. The differentiated
arguments may be nested tuples, lists and dictionaries of tensors. The results may be, too, except for `grad`.

Forward mode is computed from the graph that the function recorded. So the result of an operation under `no_grad` inside the
function is a constant for `jvp`, `jacfwd` and `linearize`, as it is in reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from gradlab.autograd import functional_helpers
from gradlab.autograd.forward_ad import check_tangent
from gradlab.autograd.functional_helpers import (
    differentiable_outside,
    fresh_alias,
    in_normal_mode,
    outside_records,
    settle,
    to_outside,
    zeros_like,
)
from gradlab.core.modes import enable_grad, enable_grad_if, mode
from gradlab.core.tensor import Tensor
from gradlab.func.tree import Tree, flatten

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

Argnums = int | tuple[int, ...]
VJP, JVP = "vjp(f, *primals)", "jvp(f, primals, tangents)"


# --------------------------------------------------------------------------------------------------- arguments, aux, results
def _positions(argnums: Any, count: int) -> tuple[int, ...]:
    """Check `argnums`, and return the positions of the arguments as non-negative integers."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = []
    for n in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
        chosen.append(n % count)
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(chosen)


class TransformCall:
    """Call of a function on fresh inputs. Holds the inputs, `aux`, and whether results may have to be differentiable outside."""

    def __init__(self, args: tuple[Any, ...], argnums: Any) -> None:
        self.recording = outside_records()
        at = tuple(range(len(args))) if argnums is None else _positions(argnums, len(args))
        single = isinstance(argnums, int)
        leaves, self.tree = flatten(args[at[0]] if single else tuple([args[i] for i in at]))
        self.inputs: list[Tensor] = []
        for x in leaves:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            self.inputs.append(fresh_alias(x, mode.grad))
        arguments = self.tree.build(self.inputs)
        replaced = dict(zip(at, (arguments,) if single else arguments, strict=True))
        self.args = tuple([replaced.get(i, x) for i, x in enumerate(args)])

    def run(self, func: Callable[..., Any], kwargs: dict[str, Any], has_aux: bool, api: str) -> Any:
        """Call the function, recorded, and return its result without `aux`, which is stored as an attribute."""
        with enable_grad():
            output = func(*self.args, **kwargs)
        self.aux: Any = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
            output, self.aux = output
        return output

    def settle(self) -> None:
        settle(self.inputs)

    def to_outside(self, x: Tensor) -> Tensor:
        return to_outside(x, self.inputs)

    def needs_recording(self, *tensors: Tensor) -> bool:
        """Return True if a sweep from these tensors must be recorded."""
        return self.recording and differentiable_outside(tensors, self.inputs)

    def aux_to_outside(self) -> Any:
        leaves, tree = flatten(self.aux)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return tree.build([self.to_outside(x) for x in leaves])


def _flatten_outputs(output: Any, api: str, of: str = "f(*primals)") -> tuple[list[Tensor], Tree]:
    """Flatten the result of a function. Return its tensors and their structure."""
    leaves, tree = flatten(output)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for y in leaves:
        if not isinstance(y, Tensor):
            raise RuntimeError(f"{api}: expected {of} to return only tensors, got unsupported type {type(y)}")
    return leaves, tree


def _fill_zeros(parts: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    return [zeros_like(x) if part is None else part for part, x in zip(parts, like, strict=True)]


# -------------------------------------------------------------------------------------------------------------- reverse mode
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`, and its value.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor of dimension 0. With `has_aux`, it returns a pair of that and further Tensors.
    argnums : int or tuple of int, default: 0
        Positions of the arguments to differentiate with respect to.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.

    Returns
    -------
    callable
        Function of the same arguments as `func`. It returns (gradient, value), or (gradient, (value, aux)) with `has_aux`. The
        gradient has the structure of the argument. If `argnums` is a tuple, it is a tuple with one gradient for each argument.

    Examples
    --------
    >>> import gradlab as gl
    >>> f = gl.func.grad_and_value(lambda x: (x**2).sum())
    >>> f(gl.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @wraps(func)
    @in_normal_mode
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        call = TransformCall(args, argnums)
        try:
            y = call.run(func, kwargs, has_aux, "grad_and_value(f)(*args)")
            if not isinstance(y, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}")
            if y.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{y.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            aux = call.aux_to_outside() if has_aux else None
            traced = call.needs_recording(y)
            with enable_grad_if(traced):
                gradients = _fill_zeros(
                    functional_helpers.cotangents([y], call.inputs, traced=traced, retain=traced or has_aux), call.inputs
                )
            gradient, value = (
                call.tree.build([call.to_outside(g) for g in gradients]),
                call.to_outside(y) if traced else y.detach(),
            )
            return gradient, ((value, aux) if has_aux else value)
        finally:
            call.settle()

    return gradient_and_value


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor of dimension 0. With `has_aux`, it returns a pair of that and further Tensors.
    argnums : int or tuple of int, default: 0
        Positions of the arguments to differentiate with respect to.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.

    Returns
    -------
    callable
        Function of the same arguments as `func`. It returns the gradient, or (gradient, aux) with `has_aux`. The gradient has the
        structure of the argument. If `argnums` is a tuple, it is a tuple with one gradient for each argument. Per-sample
        gradients are ``vmap(grad(f), in_dims=(None, 0))(w, samples)``.

    Raises
    ------
    ValueError
        If an argument to differentiate is not a Tensor.
    RuntimeError
        If an argument to differentiate is not floating point, or the value of `func` is not a Tensor of dimension 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.grad(lambda x: (x**3).sum())(gl.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def _vjp(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: Any, has_aux: bool
) -> tuple[TransformCall, list[Tensor], Tree]:
    """Call a function for `vjp` or `jacrev`. Return the recorded call, its outputs and their structure."""
    call = TransformCall(args, argnums)
    try:
        ys, tree = _flatten_outputs(call.run(func, {}, has_aux, VJP), VJP)
        for y in ys:
            if y.array.dtype.kind != "f":
                raise RuntimeError(
                    f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}"
                )
        return call, ys, tree
    except BaseException:
        call.settle()
        raise


@in_normal_mode
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of `func`, and return a function that computes vector-Jacobian products.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor, or a nested structure of tuples, lists and dictionaries of Tensors. With `has_aux`, it
        returns a pair of that and further Tensors.
    *primals : Tensor or nested structure of Tensor
        Arguments of `func`.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.

    Returns
    -------
    tuple
        (output, vjp_fn), or (output, vjp_fn, aux) with `has_aux`. ``vjp_fn(cotangents)`` takes cotangents with the structure and
        shapes of the output, and returns a tuple with one entry for each primal. It may be called any number of times, and does
        not call `func` again.

    Raises
    ------
    ValueError
        If an argument to differentiate is not a Tensor.
    RuntimeError
        If an argument to differentiate is not floating point, or `func` does not return floating point Tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> y, pull = gl.func.vjp(lambda x: x**2, gl.tensor([1.0, 2.0]))
    >>> pull(gl.tensor([1.0, 1.0]))
    (tensor([2., 4.]),)
    """
    call, ys, tree = _vjp(func, primals, None, has_aux)
    try:
        results = tree.build([call.to_outside(y) for y in ys])
        aux = call.aux_to_outside() if has_aux else None
    finally:
        call.settle()

    @in_normal_mode
    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Compute vᵀJ of the recorded call with respect to its primals."""
        weights, structure = flatten(cotangents)
        if structure != tree:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure.format_with_stars()}, primal output: {tree.format_with_stars()}"
            )
        wanted = outside_records() if create_graph is None else create_graph
        traced = wanted and differentiable_outside([*ys, *weights], call.inputs)
        with enable_grad_if(traced):
            products = functional_helpers.cotangents(ys, call.inputs, weights, traced=traced, retain=retain_graph)
        return call.tree.build([to_outside(c, call.inputs) for c in _fill_zeros(products, call.inputs)])

    return (results, vjp_fn, aux) if has_aux else (results, vjp_fn)


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in reverse mode, for functions of many inputs.

    All rows of an output are computed in one batched backward pass, or in several if memory requires it. `chunk_size` limits the
    number of rows in each.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor, or a nested structure of tuples, lists and dictionaries of Tensors. With `has_aux`, it
        returns a pair of that and further Tensors.
    argnums : int or tuple of int, default: 0
        Positions of the arguments to differentiate with respect to.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.
    chunk_size : int, optional
        Maximum number of rows to compute at once.

    Returns
    -------
    callable
        Function of the same positional arguments as `func`. It returns the Jacobian, or (Jacobian, aux) with `has_aux`. The
        Jacobian has the structure of the output, in which each tensor is replaced by the structure of the argument (a tuple of
        structures if `argnums` is a tuple), with tensors of shape output.shape + argument.shape.

    Raises
    ------
    ValueError
        If `chunk_size` is not positive, or an argument to differentiate is not a Tensor.
    RuntimeError
        If an argument to differentiate is not floating point, or `func` does not return floating point Tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.jacrev(lambda x: x**2)(gl.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"jacrev: `chunk_size` should be greater than 0. (got {chunk_size})")

    @wraps(func)
    @in_normal_mode
    def jacobian(*args: Any) -> Any:
        _positions(argnums, len(args))
        call, ys, tree = _vjp(func, args, argnums, has_aux)
        try:
            traced = call.needs_recording(*ys)
            with enable_grad_if(traced):
                blocks = [functional_helpers.jacobian_rows(y, call.inputs, traced=traced, at_once=chunk_size) for y in ys]
            return _jacobian(call, ys, tree, blocks, has_aux)
        finally:
            call.settle()

    return jacobian


def _jacobian(call: TransformCall, outputs: list[Tensor], tree: Tree, blocks: list[list[Tensor | None]], has_aux: bool) -> Any:
    """Nest the blocks of a Jacobian: in the structure of the outputs, and inside in the structure of the inputs."""

    def block_of(block: Tensor | None, y: Tensor, x: Tensor) -> Tensor:
        return zeros_like(x, y.array.shape) if block is None else call.to_outside(block)

    jacobian = tree.build(
        [
            call.tree.build([block_of(block, y, x) for block, x in zip(line, call.inputs, strict=True)])
            for y, line in zip(outputs, blocks, strict=True)
        ]
    )
    return (jacobian, call.aux_to_outside()) if has_aux else jacobian


# -------------------------------------------------------------------------------------------------------------- forward mode
def _check_tensors(leaves: list[Any], what: str) -> None:
    if not leaves:
        raise RuntimeError(f"{JVP}: Expected {what} to contain at least one Tensor.")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{JVP}: Expected {what} to only contain Tensors, got {type(x)}")


@in_normal_mode
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute the value of `func`, and the Jacobian-vector product with the given tangents.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor, or a nested structure of tuples, lists and dictionaries of Tensors. With `has_aux`, it
        returns a pair of that and further Tensors.
    primals : tuple of Tensor or nested structure of Tensor
        Arguments of `func`.
    tangents : tuple of Tensor or nested structure of Tensor
        Tangents of the arguments, with the same structure and shapes.
    strict : bool, default: False
        Raise an error if an output does not depend on the primals. Otherwise, its tangent is zeros.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.

    Returns
    -------
    tuple
        (output, jvp), or (output, jvp, aux) with `has_aux`. The product has the structure of the output.

    Raises
    ------
    ValueError
        If a primal or tangent is not floating point.
    RuntimeError
        If `primals` is not a tuple or contains a value that is not a Tensor, if the structure or shapes of `tangents` do not
        match, or if `strict` and an output does not depend on the primals.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.jvp(lambda x: x**2, (gl.tensor([1.0, 2.0]),), (gl.tensor([1.0, 0.0]),))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    xs, structure = flatten(primals)
    along, other = flatten(tangents)
    if structure != other:
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is "
            f"a tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents "
            f"with structure {other}"
        )
    _check_tensors(xs, "primals")
    _check_tensors(along, "tangents")
    for x, u in zip(xs, along, strict=True):
        check_tangent(x, u)
    call = TransformCall(primals, None)
    try:
        ys, tree = _flatten_outputs(call.run(func, {}, has_aux, JVP), JVP)
        pushed = _push_tangents(call, ys, along)
        if strict and any(t is None for t in pushed):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                "not allowed with strict=True."
            )
        results = tree.build([call.to_outside(y) for y in ys]), tree.build([call.to_outside(t) for t in _fill_zeros(pushed, ys)])
        return (*results, call.aux_to_outside()) if has_aux else results
    finally:
        call.settle()


def _push_tangents(call: TransformCall, outputs: list[Tensor], along: list[Tensor]) -> list[Tensor | None]:
    traced = outside_records() and differentiable_outside([*outputs, *along], call.inputs)
    with enable_grad_if(traced):
        return functional_helpers.tangents(outputs, call.inputs, along, traced=traced)


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in forward mode, for functions of few inputs.

    `func` is called once. All columns of an argument are computed from the recorded graph in one batched forward-mode pass.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor, or a nested structure of tuples, lists and dictionaries of Tensors. With `has_aux`, it
        returns a pair of that and further Tensors.
    argnums : int, tuple of int or None, default: 0
        Positions of the arguments to differentiate with respect to. None means all arguments.
    has_aux : bool, default: False
        If True, `func` returns a pair (output, aux), and only `output` is differentiated.
    randomness : str, default: "error"
        Ignored, because all columns are computed from the same call and the same random numbers.

    Returns
    -------
    callable
        Function as returned by `jacrev`.

    Raises
    ------
    ValueError
        If an argument to differentiate is not a Tensor.
    RuntimeError
        If an argument to differentiate is not floating point, or `func` does not return Tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.jacfwd(lambda x: x**2)(gl.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @wraps(func)
    @in_normal_mode
    def jacobian(*args: Any) -> Any:
        call = TransformCall(args, argnums)
        try:
            ys, tree = _flatten_outputs(call.run(func, {}, has_aux, JVP), JVP)
            traced = call.needs_recording(*ys)
            with enable_grad_if(traced):
                blocks = functional_helpers.jacobian_columns(ys, call.inputs, traced=traced)
            return _jacobian(call, ys, tree, blocks, has_aux)
        finally:
            call.settle()

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func` as `jacfwd(jacrev(func))`, forward over reverse mode.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor.
    argnums : int or tuple of int, default: 0
        Positions of the arguments to differentiate with respect to.

    Returns
    -------
    callable
        Function of the same positional arguments as `func`. For one argument `x` and a value of dimension 0, it returns a Tensor
        of shape x.shape + x.shape.

    Raises
    ------
    ValueError
        If an argument to differentiate is not a Tensor.
    RuntimeError
        If an argument to differentiate is not floating point, or `func` does not return floating point Tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.hessian(lambda x: x[0] ** 2 * x[1])(gl.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


@in_normal_mode
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute the value of `func`, and return its linear approximation at `primals`.

    Parameters
    ----------
    func : callable
        Function that returns a Tensor or a nested structure of Tensors. Other values in the result are returned unchanged, both
        in the output and by `jvp_fn`.
    *primals : Tensor or nested structure of Tensor
        Arguments of `func`.

    Returns
    -------
    tuple
        (output, jvp_fn). ``jvp_fn(*tangents)`` computes the Jacobian-vector product of the recorded call with these tangents,
        and does not call `func` again.

    Examples
    --------
    >>> import gradlab as gl
    >>> y, push = gl.func.linearize(lambda x: x**2, gl.tensor([1.0, 2.0]))
    >>> push(gl.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """
    call = TransformCall(primals, None)
    try:
        leaves, tree = flatten(call.run(func, {}, False, "linearize"))
        output = tree.build([call.to_outside(y) if isinstance(y, Tensor) else y for y in leaves])
    finally:
        call.settle()

    @in_normal_mode
    def jvp_fn(*tangents: Any) -> Any:
        """Compute the Jacobian-vector product of the recorded call with these tangents."""
        along, structure = flatten(tangents)
        if structure != call.tree:
            raise RuntimeError(f"Expected the tangents {structure} to have the same argspec as the primals {call.tree}")
        for i, (u, x) in enumerate(zip(along, call.inputs, strict=True)):
            for what in ("shape", "device", "dtype"):
                if getattr(u, what) != getattr(x, what):
                    raise RuntimeError(
                        f"tangent:{i} with {what} {getattr(u, what)} in flattened pytree doesn't match the {what} "
                        f"{getattr(x, what)} of the corresponding primal."
                    )
        ys = [y for y in leaves if isinstance(y, Tensor)]
        pushed = iter(_fill_zeros(_push_tangents(call, ys, along), ys))
        return tree.build([to_outside(next(pushed), call.inputs) if isinstance(y, Tensor) else y for y in leaves])

    return output, jvp_fn
