"""Functions that make a function's derivative: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize`.

A transform calls the function on fresh inputs (see `autograd.functional_helpers`) and sweeps over what the call recorded.
Transforms nest to any depth: an inner one's sweep is recorded where an outer one, or a tensor that requires gradients, can ask.
Under `no_grad` they work, and their results have no history. The arguments that are differentiated may be nested tuples, lists
and dictionaries of tensors; so may results, but for `grad`'s.

Forward mode is a sweep over the graph that the function recorded, so an operation under `no_grad` inside the function is a
constant for `jvp`, `jacfwd` and `linearize`, as it is for reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from gradlab.autograd import functional_helpers
from gradlab.autograd.forward_ad import check_tangent
from gradlab.autograd.functional_helpers import asked_outside, fresh, in_normal_mode, outward, recording, settle, zeros_like
from gradlab.core.modes import enable_grad, mode, recorded_if
from gradlab.core.tensor import Tensor
from gradlab.func.tree import Tree, flatten

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

Argnums = int | tuple[int, ...]
VJP, JVP = "vjp(f, *primals)", "jvp(f, primals, tangents)"


# --------------------------------------------------------------------------------------------------- arguments, aux, results
def _chosen(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions that `argnums` means, checked."""
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


class Call:
    """One call of a function on fresh inputs: they, what it returned, and whether the outside records."""

    def __init__(self, args: tuple[Any, ...], argnums: Any) -> None:
        self.recording = recording()
        at = tuple(range(len(args))) if argnums is None else _chosen(argnums, len(args))
        single = isinstance(argnums, int)
        leaves, self.tree = flatten(args[at[0]] if single else tuple([args[i] for i in at]))
        self.inputs: list[Tensor] = []
        for x in leaves:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            self.inputs.append(fresh(x, mode.grad))
        arguments = self.tree.build(self.inputs)
        replaced = dict(zip(at, (arguments,) if single else arguments, strict=True))
        self.args = tuple([replaced.get(i, x) for i, x in enumerate(args)])

    def run(self, func: Callable[..., Any], kwargs: dict[str, Any], has_aux: bool, api: str) -> Any:
        """What the function returns, recorded; `aux` is set aside."""
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

    def outward(self, x: Tensor) -> Tensor:
        return outward(x, self.inputs)

    def traced(self, *tensors: Tensor) -> bool:
        """Whether a sweep from these tensors is to be recorded."""
        return self.recording and asked_outside(tensors, self.inputs)

    def outward_aux(self) -> Any:
        leaves, tree = flatten(self.aux)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return tree.build([self.outward(x) for x in leaves])


def _tensors(output: Any, api: str, of: str = "f(*primals)") -> tuple[list[Tensor], Tree]:
    """The tensors that a function returned, and how they were nested."""
    leaves, tree = flatten(output)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for y in leaves:
        if not isinstance(y, Tensor):
            raise RuntimeError(f"{api}: expected {of} to return only tensors, got unsupported type {type(y)}")
    return leaves, tree


def _filled(parts: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    return [zeros_like(x) if part is None else part for part, x in zip(parts, like, strict=True)]


# -------------------------------------------------------------------------------------------------------------- reverse mode
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`'s value by its arguments, and the value.

    Parameters
    ----------
    func : callable
        Returns a tensor without axes (and with `has_aux` a pair: that tensor, and tensors that are handed on).
    argnums : int or tuple of int
        Which of the positional arguments are differentiated.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.

    Returns
    -------
    callable
        Takes what `func` takes; returns (gradient, value), or (gradient, (value, aux)). The gradient is nested as the argument,
        in a tuple if `argnums` is one.

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
        call = Call(args, argnums)
        try:
            y = call.run(func, kwargs, has_aux, "grad_and_value(f)(*args)")
            if not isinstance(y, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}")
            if y.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{y.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            aux = call.outward_aux() if has_aux else None
            traced = call.traced(y)
            with recorded_if(traced):
                gradients = _filled(
                    functional_helpers.cotangents([y], call.inputs, traced=traced, retain=traced or has_aux), call.inputs
                )
            gradient, value = call.tree.build([call.outward(g) for g in gradients]), call.outward(y) if traced else y.detach()
            return gradient, ((value, aux) if has_aux else value)
        finally:
            call.settle()

    return gradient_and_value


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`'s value by its arguments.

    Parameters
    ----------
    func : callable
        Returns a tensor without axes (and with `has_aux` a pair: that tensor, and tensors that are handed on).
    argnums : int or tuple of int
        Which of the positional arguments are differentiated.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.

    Returns
    -------
    callable
        Takes what `func` takes; returns the gradient, nested as the argument, in a tuple if `argnums` is one; with `has_aux`
        the pair (gradient, aux). Per-sample gradients are ``vmap(grad(f), in_dims=(None, 0))(w, samples)``.

    Raises
    ------
    RuntimeError
        If an argument is no tensor of floating point, or `func` does not return what it should.

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


def _vjp(func: Callable[..., Any], args: tuple[Any, ...], argnums: Any, has_aux: bool) -> tuple[Call, list[Tensor], Tree]:
    """The recorded call behind `vjp` and `jacrev`, its outputs and how they were nested."""
    call = Call(args, argnums)
    try:
        ys, tree = _tensors(call.run(func, {}, has_aux, VJP), VJP)
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
    """The value of `func`, and a function that multiplies a vector with its Jacobian.

    Parameters
    ----------
    func : callable
        Returns a tensor, or tensors in tuples, lists and dictionaries (and with `has_aux` a pair: that, and tensors that are
        handed on).
    *primals : Tensor, or tensors in tuples, lists and dictionaries
        The arguments.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.

    Returns
    -------
    tuple
        (output, vjp_fn), or with `has_aux` (output, vjp_fn, aux). ``vjp_fn(cotangents)`` takes what is nested and shaped as
        the output,
        and returns a tuple with one entry for each primal. It may be called any number of times; nothing is run again.

    Raises
    ------
    RuntimeError
        If an argument is no tensor of floating point, or `func` does not return what it should.

    Examples
    --------
    >>> import gradlab as gl
    >>> y, pull = gl.func.vjp(lambda x: x**2, gl.tensor([1.0, 2.0]))
    >>> pull(gl.tensor([1.0, 1.0]))
    (tensor([2., 4.]),)
    """
    call, ys, tree = _vjp(func, primals, None, has_aux)
    try:
        results = tree.build([call.outward(y) for y in ys])
        aux = call.outward_aux() if has_aux else None
    finally:
        call.settle()

    @in_normal_mode
    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """vᵀJ of the recorded call by its primals."""
        weights, structure = flatten(cotangents)
        if structure != tree:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure.drawn()}, primal output: {tree.drawn()}"
            )
        wanted = recording() if create_graph is None else create_graph
        traced = wanted and asked_outside([*ys, *weights], call.inputs)
        with recorded_if(traced):
            products = functional_helpers.cotangents(ys, call.inputs, weights, traced=traced, retain=retain_graph)
        return call.tree.build([outward(c, call.inputs) for c in _filled(products, call.inputs)])

    return (results, vjp_fn, aux) if has_aux else (results, vjp_fn)


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by its arguments, computed by rows: for functions of many inputs.

    All rows of an output are one batched reverse sweep, or as many at once as memory allows, or `chunk_size`.

    Parameters
    ----------
    func : callable
        Returns a tensor, or tensors in tuples, lists and dictionaries (and with `has_aux` a pair: that, and tensors that
        are handed on).
    argnums : int or tuple of int
        Which of the positional arguments are differentiated.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.
    chunk_size : int, optional
        The most rows of a sweep.

    Returns
    -------
    callable
        Takes `func`'s arguments; returns the output's nesting with, in place of each tensor, the nesting of the argument (in a
        tuple if `argnums` is one) of tensors of shape output.shape + argument.shape; with `has_aux` the pair of that and aux.

    Raises
    ------
    ValueError
        If `chunk_size` is not positive.
    RuntimeError
        If an argument is no tensor of floating point, or `func` does not return tensors.

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
        _chosen(argnums, len(args))
        call, ys, tree = _vjp(func, args, argnums, has_aux)
        try:
            traced = call.traced(*ys)
            with recorded_if(traced):
                blocks = [functional_helpers.rows(y, call.inputs, traced=traced, at_once=chunk_size) for y in ys]
            return _jacobian(call, ys, tree, blocks, has_aux)
        finally:
            call.settle()

    return jacobian


def _jacobian(call: Call, outputs: list[Tensor], tree: Tree, blocks: list[list[Tensor | None]], has_aux: bool) -> Any:
    """The blocks of a Jacobian, nested as the outputs and within as the inputs."""

    def block_of(block: Tensor | None, y: Tensor, x: Tensor) -> Tensor:
        return zeros_like(x, y.array.shape) if block is None else call.outward(block)

    jacobian = tree.build(
        [
            call.tree.build([block_of(block, y, x) for block, x in zip(line, call.inputs, strict=True)])
            for y, line in zip(outputs, blocks, strict=True)
        ]
    )
    return (jacobian, call.outward_aux()) if has_aux else jacobian


# -------------------------------------------------------------------------------------------------------------- forward mode
def _check_tensors(leaves: list[Any], what: str) -> None:
    if not leaves:
        raise RuntimeError(f"{JVP}: Expected {what} to contain at least one Tensor.")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{JVP}: Expected {what} to only contain Tensors, got {type(x)}")


@in_normal_mode
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The value of `func`, and its Jacobian times a vector of tangents.

    Parameters
    ----------
    func : callable
        Returns a tensor, or tensors in tuples, lists and dictionaries (and with `has_aux` a pair: that, and tensors that
        are handed on).
    primals, tangents : tuple
        The arguments, and what each is moved by: nested alike, tensors of the same shapes.
    strict : bool, default False
        Whether an output that does not depend on the primals is an error; else its tangent is zeros.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.

    Returns
    -------
    tuple
        (output, jvp), or with `has_aux` (output, jvp, aux). The second is nested as the output.

    Raises
    ------
    RuntimeError
        If primals are no tuple, tangents are nested or shaped otherwise, or what `strict` refuses.

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
    call = Call(primals, None)
    try:
        ys, tree = _tensors(call.run(func, {}, has_aux, JVP), JVP)
        pushed = _pushed(call, ys, along)
        if strict and any(t is None for t in pushed):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                "not allowed with strict=True."
            )
        results = tree.build([call.outward(y) for y in ys]), tree.build([call.outward(t) for t in _filled(pushed, ys)])
        return (*results, call.outward_aux()) if has_aux else results
    finally:
        call.settle()


def _pushed(call: Call, outputs: list[Tensor], along: list[Tensor]) -> list[Tensor | None]:
    traced = recording() and asked_outside([*outputs, *along], call.inputs)
    with recorded_if(traced):
        return functional_helpers.tangents(outputs, call.inputs, along, traced=traced)


def jacfwd(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by its arguments, computed by columns: for functions of few inputs.

    The function is called once, and all columns of an argument are one batched forward sweep over what it recorded.

    Parameters
    ----------
    func : callable
        Returns a tensor, or tensors in tuples, lists and dictionaries (and with `has_aux` a pair: that, and tensors that
        are handed on).
    argnums : int, tuple of int or None
        Which of the positional arguments are differentiated; None: all.
    has_aux : bool, default False
        Whether `func` returns a pair of what is differentiated and something that is handed on.
    randomness : str
        Accepted: every column sees the same random numbers, whatever it says.

    Returns
    -------
    callable
        As of `jacrev`.

    Raises
    ------
    RuntimeError
        If an argument is no tensor of floating point, or `func` does not return what it should.

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
        call = Call(args, argnums)
        try:
            ys, tree = _tensors(call.run(func, {}, has_aux, JVP), JVP)
            traced = call.traced(*ys)
            with recorded_if(traced):
                blocks = functional_helpers.columns(ys, call.inputs, traced=traced)
            return _jacobian(call, ys, tree, blocks, has_aux)
        finally:
            call.settle()

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`: `jacfwd(jacrev(func))`, forward over reverse.

    Parameters
    ----------
    func : callable
        Returns a tensor.
    argnums : int or tuple of int
        Which of the positional arguments are differentiated.

    Returns
    -------
    callable
        Takes `func`'s arguments; for one argument and a value without axes it returns a tensor of shape x.shape + x.shape.

    Raises
    ------
    RuntimeError
        If an argument is no tensor of floating point, or `func` does not return what it should.

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
    """The value of `func`, and its linear approximation there.

    Parameters
    ----------
    func : callable
        Returns a tensor, or tensors nested. Results that are no tensors are returned by both as they are.
    *primals : Tensor, or tensors nested
        The arguments.

    Returns
    -------
    tuple
        (output, jvp_fn): ``jvp_fn(*tangents)`` is the Jacobian of the recorded call times these tangents, and runs nothing again.

    Examples
    --------
    >>> import gradlab as gl
    >>> y, push = gl.func.linearize(lambda x: x**2, gl.tensor([1.0, 2.0]))
    >>> push(gl.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """
    call = Call(primals, None)
    try:
        leaves, tree = flatten(call.run(func, {}, False, "linearize"))
        output = tree.build([call.outward(y) if isinstance(y, Tensor) else y for y in leaves])
    finally:
        call.settle()

    @in_normal_mode
    def jvp_fn(*tangents: Any) -> Any:
        """The Jacobian of the recorded call times these tangents."""
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
        pushed = iter(_filled(_pushed(call, ys, along), ys))
        return tree.build([outward(next(pushed), call.inputs) if isinstance(y, Tensor) else y for y in leaves])

    return output, jvp_fn
