"""Whether a function's derivatives are right: compared with central differences of the function itself.

    numerical    (f(x + eps) - f(x - eps)) / (2 eps), one element of an input after another, written into the input's own memory
                 and taken back
    analytical   what the recorded graph (or forward mode) says, one row (or column) after another, twice, so that a rule that
                 answers differently each time is found

Both are matrices of shape (input elements, output elements), as PyTorch prints them. An entry passes if |analytical - numerical|
<= atol + rtol * |numerical|. `fast_mode` compares one random combination of all entries instead. The error says which entry is
worst. Differences lose half the digits, so the inputs should be of double precision: in single precision a right gradient fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradlab.autograd.functions import grad
from gradlab.autograd.jacobians_compared import (
    checked_inputs,
    differences,
    forward_jacobian,
    numerical_jacobian,
    outputs_of,
    reverse_jacobian,
    tuple_of,
    unit_tensor,
)
from gradlab.backend.namespaces import host, namespace_of, wrap
from gradlab.core.tensor import Tensor, constant

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Inputs = Tensor | Sequence[Any]


class Entry(NamedTuple):
    """One entry of a Jacobian, by both ways. `excess` is |analytical - numerical| over what is allowed: above 1 it fails.
    `at` are the indices in the output and in the input; None in fast mode, where the numbers are combinations of all entries."""

    output: int
    input: int
    at: tuple[tuple[int, ...], tuple[int, ...]] | None
    analytical: float
    numerical: float
    excess: float

    def __str__(self) -> str:
        places = ["", ""] if self.at is None else [f"[{', '.join(map(str, index))}]" if index else "" for index in self.at]
        return (
            f"output {self.output}{places[0]} by input {self.input}{places[1]}: analytical {self.analytical:.10g}, numerical "
            f"{self.numerical:.10g}, difference {abs(self.analytical - self.numerical):.3g}"
        )


class GradcheckError(RuntimeError):
    """Derivatives are wrong. `worst` is the entry that is furthest off, where there is one."""

    def __init__(self, message: str, worst: Entry | None = None) -> None:
        super().__init__(message)
        self.worst = worst


class Tolerance(NamedTuple):
    """What may differ, and how far the inputs are moved."""

    eps: float
    atol: float
    rtol: float
    nondet: float


# ------------------------------------------------------------------------------------------------------------------ comparison
def _worst(analytical: Any, numerical: Any, allowed: Any, output: int, input: int, shapes: Any) -> Entry:
    """The entry that exceeds what is allowed by most."""
    with np.errstate(all="ignore"):
        off = np.abs(analytical - numerical)
        excess = np.where(analytical == numerical, 0.0, off / allowed)
    excess = np.where(np.isnan(excess), np.inf, excess)
    if not excess.size:
        return Entry(output, input, None, 0.0, 0.0, 0.0)
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    at: Any = (
        None
        if shapes is None
        else tuple([tuple(map(int, np.unravel_index(number, shape))) for number, shape in zip((j, i), shapes, strict=True)])
    )
    return Entry(output, input, at, float(analytical[i, j]), float(numerical[i, j]), float(excess[i, j]))


def _compared(
    analytical: Any,
    numerical: Any,
    tolerance: Tolerance,
    output: int,
    input: int,
    shapes: Any,
    mode: str = "",
    detail: Callable[[], tuple[str, Entry | None]] | None = None,
    scale: float = 1.0,
) -> Entry:
    """The worst entry, if all pass; otherwise the error that shows it."""
    entry = _worst(analytical, numerical, tolerance.atol * scale + tolerance.rtol * np.abs(numerical), output, input, shapes)
    if entry.excess > 1:
        message = (
            f"Jacobian {mode}mismatch for output {output} with respect to input {input},\n"
            f"numerical:{constant(numerical)}\nanalytical:{constant(analytical)}\n"
        )
        words, worst = (
            detail()
            if detail
            else (f"The worst entry is {entry}; allowed is {tolerance.atol:g} + {tolerance.rtol:g} * |numerical|.", entry)
        )
        raise GradcheckError(message + words, worst=worst)
    return entry


def _compare(
    func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int], tolerance: Tolerance, forward: bool, check_dtypes: bool
) -> Iterator[Entry]:
    """The worst entry of the Jacobian of each output by each input, all entries compared."""
    every = outputs_of(func, inputs)
    kept = [i for i, y in enumerate(every) if y.node is not None]
    differences = [numerical_jacobian(func, inputs, every, at, tolerance.eps) for at in wanted]
    if not kept:
        if any(d.any() for matrices in differences for d in matrices):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero, because no output requires grad; but the "
                "function changes with its inputs. Something in it cuts the graph: detach(), no_grad(), .data, "
                "item() or a cast to integers."
            )
        return
    xs = [inputs[at] for at in wanted]
    if forward:
        for j, (at, x) in enumerate(zip(wanted, xs, strict=True)):
            columns = [forward_jacobian(func, inputs, at, unit_tensor(x, index), kept) for index in np.ndindex(x.array.shape)]
            for k, i in enumerate(kept):
                matrix = np.stack([column[k] for column in columns]) if columns else np.zeros((0, every[i].array.size))
                numerical = differences[j][i] if columns else matrix
                yield _compared(matrix, numerical, tolerance, k, j, (every[i].array.shape, x.array.shape), FORWARD)
        return
    for k, i in enumerate(kept):
        y = every[i]
        once, again = reverse_jacobian(y, xs), reverse_jacobian(y, xs)
        for j, (x, a, b) in enumerate(zip(xs, once, again, strict=True)):
            if (np.abs(a - b) > tolerance.nondet).any():
                raise GradcheckError(NONDETERMINISTIC.format(tolerance.nondet))
            numerical = differences[j][i] if x.array.size else a
            yield _compared(a, numerical, tolerance, k, j, (y.array.shape, x.array.shape))
    if check_dtypes:
        for y in (every[i] for i in kept):
            gradients = grad(y, xs, _ones(y), retain_graph=True, allow_unused=True)
            if any(g is not None and g.dtype != x.dtype for g, x in zip(gradients, xs, strict=True)):
                raise GradcheckError("Gradient has dtype mismatch")


FORWARD = "computed with forward mode "
NONDETERMINISTIC = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
    "although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}.\n\nNOTE: If your function "
    "draws random numbers in its backward, this failure might be expected: give gradcheck `nondet_tol=<tol>`."
)


def _ones(x: Tensor) -> Tensor:
    return constant(namespace_of[type(x.array)].ones_like(x.array))


def _compare_fast(
    func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int], tolerance: Tolerance, forward: bool
) -> Iterator[Entry]:
    """The same for one random combination vᵀJu of the entries each."""
    every, random = outputs_of(func, inputs), np.random.default_rng(0)
    kept = [i for i, y in enumerate(every) if y.node is not None]

    def direction(x: Tensor) -> Any:
        vector = random.random(x.array.shape) + 1e-3
        vector /= np.linalg.norm(vector) or 1.0
        return namespace_of[type(x.array)].asarray(vector, dtype=x.array.dtype)

    us, vs = [direction(inputs[at]) for at in wanted], {i: direction(every[i]) for i in kept}
    for j, (at, u) in enumerate(zip(wanted, us, strict=True)):
        numbers = differences(func, inputs, every, inputs[at].array, tolerance.eps * u, ..., tolerance.eps)
        if not kept and any(np.abs(host(d)).max(initial=0) > tolerance.nondet for d in numbers):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        pushed = forward_jacobian(func, inputs, at, constant(u), kept) if forward and kept else []
        for k, i in enumerate(kept):
            v, y = host(vs[i]), every[i]
            if forward:
                analytical, numerical, scale = pushed[k][None], host(numbers[i]).reshape(1, -1), float(host(u).sum())
            else:
                pulled = [grad(y, inputs[at], constant(vs[i]), retain_graph=True, allow_unused=True)[0] for _ in range(2)]
                sums = [0.0 if g is None else float((host(g.array) * host(u)).sum()) for g in pulled]
                if abs(sums[0] - sums[1]) > tolerance.nondet:
                    raise GradcheckError(NONDETERMINISTIC.format(tolerance.nondet))
                analytical, numerical = np.array([[sums[0]]]), np.array([[float((host(numbers[i]) * v).sum())]])
                scale = float(host(u).sum() * v.sum())

            def slowly() -> tuple[str, Entry | None]:
                try:
                    for _ in _compare(func, inputs, wanted, tolerance, forward, False):
                        pass
                except GradcheckError as error:
                    return f"\nThe above quantities are computed in fast mode. In slow mode:\n\n{error}", error.worst
                return (
                    "\nFast gradcheck failed but element-wise differences are small. This means that the\ntest might've "
                    "passed in slow_mode!"
                ), None

            yield _compared(analytical, numerical, tolerance, k, j, None, FORWARD if forward else "", slowly, scale)


# -------------------------------------------------------------------------------------------------------------- further checks
def _check_batched(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """A batch of cotangents against one after another."""
    random = np.random.default_rng(0)
    for k, y in enumerate(outputs):
        vs = namespace_of[type(y.array)].asarray(random.standard_normal((2, *y.array.shape)), dtype=y.array.dtype)
        singly = [grad(y, xs, constant(wrap(v)), retain_graph=True, allow_unused=True) for v in vs]
        try:
            batched = grad(y, xs, constant(vs), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
        for j, got in enumerate(batched):
            expected = [row[j] for row in singly]
            if got is not None and not all(
                e is not None and np.allclose(host(g), host(e.array), rtol=1e-5, atol=1e-8)
                for g, e in zip(got.array, expected, strict=True)
            ):
                raise GradcheckError(f"For output {k} and input {j}:\n\n{BATCHED}\n\nGot:\n{got}\n\nExpected:\n{expected}")


BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation. A rule must take cotangents with axes "
    "more in front, as autograd.grad(..., is_grads_batched=True) gives them; check_batched_grad=False leaves this check "
    "out."
)


def _check_batched_forward(func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int]) -> None:
    """A batch of tangents over the recorded graph against one after another in forward mode."""
    from gradlab.autograd.functional_helpers import tangents

    every, random = outputs_of(func, inputs), np.random.default_rng(0)
    kept = [i for i, y in enumerate(every) if y.node is not None]
    for j, at in enumerate(wanted):
        x = inputs[at]
        us = namespace_of[type(x.array)].asarray(random.standard_normal((2, *x.array.shape)), dtype=x.array.dtype)
        singly = [forward_jacobian(func, inputs, at, constant(u), kept) for u in us]
        batched = tangents([every[i] for i in kept], [x], [constant(us)], traced=False, batched=True)
        for k, t in enumerate(batched):
            got = np.zeros_like(np.stack([one[k] for one in singly])) if t is None else host(t.array).reshape(2, -1)
            if not np.allclose(got, [one[k] for one in singly], rtol=1e-5, atol=1e-8):
                raise GradcheckError(
                    f"For output {k} and input {j}:\n\ngradcheck failed while testing batched gradient "
                    "computation with forward-mode AD. A jvp rule must take tangents with axes more in front; "
                    "check_batched_forward_grad=False leaves this check out."
                    f"\n\nGot:\n{got}\n\nExpected:\n{singly}"
                )


def _check_zero_cotangents(func: Callable[..., Any], inputs: tuple[Any, ...], xs: list[Tensor], undefined: bool) -> None:
    """Cotangents of zeros give zeros; and so they do where one output has no cotangent at all."""
    outputs = [y for y in outputs_of(func, inputs) if y.node is not None]
    if not outputs:
        return
    zeros = [constant(namespace_of[type(y.array)].zeros_like(y.array)) for y in outputs]
    for g in grad(outputs, xs, zeros, retain_graph=True, allow_unused=True):
        if g is not None and g.array.any():
            raise GradcheckError("backward not multiplied by grad_output")
    for left_out in range(len(outputs)) if undefined and len(outputs) > 1 else ():
        kept = [i for i in range(len(outputs)) if i != left_out]
        try:
            gradients = grad([outputs[i] for i in kept], xs, [zeros[i] for i in kept], retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. The cotangent of an output that "
                "nothing depends on is None, unless set_materialize_grads(True)."
            ) from error
        if any(g is not None and g.array.any() for g in gradients):
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")


# ------------------------------------------------------------------------------------------------------------------ the checks
def compared(
    func: Callable[..., Any],
    inputs: Inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> list[Entry]:
    """`gradcheck`, which returns the worst entry of each Jacobian that it compared. Raises GradcheckError."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    for asked, needed, name, other in (
        (check_batched_grad, check_backward_ad, "check_batched_grad", "check_backward_ad"),
        (check_batched_forward_grad, check_forward_ad, "check_batched_forward_grad", "check_forward_ad"),
    ):
        if asked and not needed:
            raise AssertionError(f"Setting {name}=True requires {other} to be True")
    arguments, tolerance = tuple_of(inputs), Tolerance(eps, atol, rtol, nondet_tol)
    wanted = checked_inputs(arguments)
    xs = [arguments[at] for at in wanted]
    entries: list[Entry] = []
    for forward in [False] * check_backward_ad + [True] * check_forward_ad:
        entries += (
            _compare_fast(func, arguments, wanted, tolerance, forward)
            if fast_mode
            else _compare(func, arguments, wanted, tolerance, forward, check_grad_dtypes)
        )
    if check_batched_forward_grad:
        _check_batched_forward(func, arguments, wanted)
    if check_backward_ad:
        if check_batched_grad:
            _check_batched([y for y in outputs_of(func, arguments) if y.node is not None], xs)
        _check_zero_cotangents(func, arguments, xs, check_undefined_grad)
    return entries


def gradcheck(
    func: Callable[..., Any],
    inputs: Inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of a function with differences of the function.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple
        Those that require grad are checked; they should be of double precision.
    eps : float
        How far an element is moved for a difference.
    atol, rtol : float
        An entry may differ by atol + rtol * |numerical|.
    raise_exception : bool
        Raise GradcheckError if they differ; otherwise return False.
    nondet_tol : float
        How far two runs of backward may differ.
    check_undefined_grad : bool
        Check that an output without cotangent counts as one with zeros.
    check_grad_dtypes : bool
        Check that gradients have the dtype of their inputs.
    check_batched_grad, check_batched_forward_grad : bool
        Check that batches of cotangents (tangents) give what they give one by one.
    check_forward_ad, check_backward_ad : bool
        Which modes are checked.
    fast_mode : bool
        Compare one random combination of the entries of each Jacobian instead of each entry.
    masked : bool, optional
        Accepted; tensors are dense.

    Raises
    ------
    GradcheckError
        With both matrices, and the entry that is furthest off.

    Returns
    -------
    bool
        True; or False, if they differ and `raise_exception` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0.5, 2.0], dtype=gl.float64, requires_grad=True)
    >>> gl.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    return _passes(
        raise_exception,
        func,
        inputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad,
        fast_mode=fast_mode,
        masked=masked,
    )


def _passes(raise_exception: bool, func: Callable[..., Any], inputs: Inputs, **options: Any) -> bool:
    try:
        compared(func, inputs, **options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Inputs,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the second derivatives of a function with differences of its recorded first ones.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes : optional
        As of `gradcheck`.
    check_batched_grad, fast_mode, masked : optional
        As of `gradcheck`.
    grad_outputs : Tensor or tuple, optional
        The cotangents of the first derivatives, random ones by default.
    gen_non_contig_grad_outputs : bool
        Whether the random ones are not contiguous.
    check_fwd_over_rev, check_rev_over_rev : bool
        Which modes are checked.

    Returns
    -------
    bool
        True; or False, if they differ and `raise_exception` is False.

    Raises
    ------
    GradcheckError
        With both matrices, and the entry that is furthest off.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0.5, 2.0], dtype=gl.float64, requires_grad=True)
    >>> gl.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for asked, name in ((check_undefined_grad, "check_undefined_grad"), (check_batched_grad, "check_batched_grad")):
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    arguments = tuple_of(inputs)
    if grad_outputs is None:
        random = np.random.default_rng(0)
        weights = tuple(
            _weight(y, random, gen_non_contig_grad_outputs) for y in outputs_of(func, arguments) if y.node is not None
        )
    else:
        weights = tuple_of(grad_outputs)
    differentiated = [isinstance(x, Tensor) and x.node is not None for x in arguments]
    weighted = [v.requires_grad for v in weights]

    def first_derivatives(*args: Any) -> tuple[Tensor, ...]:
        xs = [x.requires_grad_() if wanted else x for x, wanted in zip(args[: len(arguments)], differentiated, strict=True)]
        outputs = [y for y in outputs_of(func, tuple(xs)) if y.node is not None]
        vs = [v.requires_grad_() if wanted else v for v, wanted in zip(args[len(arguments) :], weighted, strict=True)]
        gradients = grad(
            outputs,
            [x for x, wanted in zip(xs, differentiated, strict=True) if wanted],
            tuple(vs),
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in gradients if g is not None)

    return _passes(
        raise_exception,
        first_derivatives,
        arguments + weights,
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _weight(y: Tensor, random: np.random.Generator, scattered: bool) -> Tensor:
    """A random cotangent for an output, which requires grad."""
    values = random.uniform(-1, 1, (*y.array.shape, 2) if scattered and y.array.ndim else y.array.shape)
    weight = namespace_of[type(y.array)].asarray(values, dtype=y.array.dtype)
    return constant(weight[..., 0] if weight.ndim > y.array.ndim else weight).requires_grad_()
