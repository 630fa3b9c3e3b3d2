"""Check of the derivatives of a function by comparison with central differences.

    numerical    (f(x + eps) - f(x - eps)) / (2 eps), for one element of an input after another; the elements are changed in place
                 and restored
    analytical   computed from the recorded graph row by row, or in forward mode column by column; rows are computed twice, so
                 that a nondeterministic backward is detected

Both are matrices of shape (input elements, output elements), as PyTorch prints them. An entry passes if |analytical - numerical|
<= atol + rtol * |numerical|. `fast_mode` compares one random combination of all entries instead. The error names the entry with
the largest deviation. Differences lose half the digits, so the inputs should be of double precision: in single precision, correct
gradients fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradlab.autograd.functions import grad
from gradlab.autograd.gradcheck_jacobians import (
    central_differences,
    find_checked_inputs,
    forward_jacobian,
    numerical_jacobian,
    outputs_of,
    reverse_jacobian,
    tuple_of,
    unit_tensor,
)
from gradlab.backend.namespaces import namespace_of, to_host, wrap
from gradlab.core.tensor import Tensor, constant

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Inputs = Tensor | Sequence[Any]


class Entry(NamedTuple):
    """Analytical and numerical value of one entry of a Jacobian.

    `excess` is |analytical - numerical| divided by the tolerance: the entry fails if it is above 1. `at` is the pair of indices
    in the output and in the input. It is None in fast mode, in which the values are combinations of all entries.
    """

    output: int
    input: int
    at: tuple[tuple[int, ...], tuple[int, ...]] | None
    analytical: float
    numerical: float
    excess: float

    def __str__(self) -> str:
        places = ["", ""] if self.at is None else [f"[{', '.join(map(str, index))}]" if index else "" for index in self.at]
        return (
            f"output {self.output}{places[0]} with respect to input {self.input}{places[1]}: analytical {self.analytical:.10g}, "
            f"numerical {self.numerical:.10g}, difference {abs(self.analytical - self.numerical):.3g}"
        )


class GradcheckError(RuntimeError):
    """Error raised if analytical and numerical derivatives differ. `worst` is the entry that differs most, or None."""

    def __init__(self, message: str, worst: Entry | None = None) -> None:
        super().__init__(message)
        self.worst = worst


class Tolerance(NamedTuple):
    """Tolerances of a check, and the step size `eps` of the differences."""

    eps: float
    atol: float
    rtol: float
    nondet: float


# ------------------------------------------------------------------------------------------------------------------ comparison
def _find_worst(analytical: Any, numerical: Any, allowed: Any, output: int, input: int, shapes: Any) -> Entry:
    """Return the entry with the largest deviation relative to `allowed`, the tolerance of each entry."""
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


def _compare_matrices(
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
    """Return the entry with the largest deviation, or raise an error that shows it if an entry fails."""
    entry = _find_worst(analytical, numerical, tolerance.atol * scale + tolerance.rtol * np.abs(numerical), output, input, shapes)
    if entry.excess > 1:
        message = (
            f"Jacobian {mode}mismatch for output {output} with respect to input {input},\n"
            f"numerical:{constant(numerical)}\nanalytical:{constant(analytical)}\n"
        )
        words, worst = (
            detail()
            if detail
            else (f"The worst entry is {entry}. The tolerance is {tolerance.atol:g} + {tolerance.rtol:g} * |numerical|.", entry)
        )
        raise GradcheckError(message + words, worst=worst)
    return entry


def _compare(
    func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int], tolerance: Tolerance, forward: bool, check_dtypes: bool
) -> Iterator[Entry]:
    """Compare all entries, and yield the worst one for each pair of an output and an input."""
    all_outputs = outputs_of(func, inputs)
    recorded = [i for i, y in enumerate(all_outputs) if y.node is not None]
    differences = [numerical_jacobian(func, inputs, all_outputs, at, tolerance.eps) for at in wanted]
    if not recorded:
        if any(d.any() for matrices in differences for d in matrices):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero, because no output requires grad. But the "
                "outputs change with the inputs. The function disconnects them from the graph, for example by detach(), "
                "no_grad(), .data, item() or a cast to integers."
            )
        return
    xs = [inputs[at] for at in wanted]
    if forward:
        for j, (at, x) in enumerate(zip(wanted, xs, strict=True)):
            columns = [forward_jacobian(func, inputs, at, unit_tensor(x, index), recorded) for index in np.ndindex(x.array.shape)]
            for k, i in enumerate(recorded):
                matrix = np.stack([column[k] for column in columns]) if columns else np.zeros((0, all_outputs[i].array.size))
                numerical = differences[j][i] if columns else matrix
                yield _compare_matrices(
                    matrix, numerical, tolerance, k, j, (all_outputs[i].array.shape, x.array.shape), FORWARD_MODE_MESSAGE
                )
        return
    for k, i in enumerate(recorded):
        y = all_outputs[i]
        once, again = reverse_jacobian(y, xs), reverse_jacobian(y, xs)
        for j, (x, a, b) in enumerate(zip(xs, once, again, strict=True)):
            if (np.abs(a - b) > tolerance.nondet).any():
                raise GradcheckError(NONDETERMINISTIC_MESSAGE.format(tolerance.nondet))
            numerical = differences[j][i] if x.array.size else a
            yield _compare_matrices(a, numerical, tolerance, k, j, (y.array.shape, x.array.shape))
    if check_dtypes:
        for y in (all_outputs[i] for i in recorded):
            gradients = grad(y, xs, _ones(y), retain_graph=True, allow_unused=True)
            if any(g is not None and g.dtype != x.dtype for g, x in zip(gradients, xs, strict=True)):
                raise GradcheckError("Gradient has dtype mismatch")


FORWARD_MODE_MESSAGE = "computed with forward mode "
NONDETERMINISTIC_MESSAGE = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
    "although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}.\n\nNOTE: If your function "
    "draws random numbers in its backward, this failure might be expected: pass `nondet_tol=<tol>` to gradcheck."
)


def _ones(x: Tensor) -> Tensor:
    return constant(namespace_of[type(x.array)].ones_like(x.array))


def _compare_fast(
    func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int], tolerance: Tolerance, forward: bool
) -> Iterator[Entry]:
    """Compare one random combination vᵀJu of the entries of each Jacobian, and yield it."""
    all_outputs, random = outputs_of(func, inputs), np.random.default_rng(0)
    recorded = [i for i, y in enumerate(all_outputs) if y.node is not None]

    def direction(x: Tensor) -> Any:
        vector = random.random(x.array.shape) + 1e-3
        vector /= np.linalg.norm(vector) or 1.0
        return namespace_of[type(x.array)].asarray(vector, dtype=x.array.dtype)

    us, vs = [direction(inputs[at]) for at in wanted], {i: direction(all_outputs[i]) for i in recorded}
    for j, (at, u) in enumerate(zip(wanted, us, strict=True)):
        numbers = central_differences(func, inputs, all_outputs, inputs[at].array, tolerance.eps * u, ..., tolerance.eps)
        if not recorded and any(np.abs(to_host(d)).max(initial=0) > tolerance.nondet for d in numbers):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        pushed = forward_jacobian(func, inputs, at, constant(u), recorded) if forward and recorded else []
        for k, i in enumerate(recorded):
            v, y = to_host(vs[i]), all_outputs[i]
            if forward:
                analytical, numerical, scale = pushed[k][None], to_host(numbers[i]).reshape(1, -1), float(to_host(u).sum())
            else:
                pulled = [grad(y, inputs[at], constant(vs[i]), retain_graph=True, allow_unused=True)[0] for _ in range(2)]
                sums = [0.0 if g is None else float((to_host(g.array) * to_host(u)).sum()) for g in pulled]
                if abs(sums[0] - sums[1]) > tolerance.nondet:
                    raise GradcheckError(NONDETERMINISTIC_MESSAGE.format(tolerance.nondet))
                analytical, numerical = np.array([[sums[0]]]), np.array([[float((to_host(numbers[i]) * v).sum())]])
                scale = float(to_host(u).sum() * v.sum())

            def compare_slowly() -> tuple[str, Entry | None]:
                try:
                    for _ in _compare(func, inputs, wanted, tolerance, forward, False):
                        pass
                except GradcheckError as error:
                    return f"\nThe above quantities are computed in fast mode. In slow mode:\n\n{error}", error.worst
                return (
                    "\nFast gradcheck failed but element-wise differences are small. This means that the\ntest might've "
                    "passed in slow_mode!"
                ), None

            yield _compare_matrices(
                analytical, numerical, tolerance, k, j, None, FORWARD_MODE_MESSAGE if forward else "", compare_slowly, scale
            )


# -------------------------------------------------------------------------------------------------------------- further checks
def _check_batched(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """Compare gradients computed from a batch of cotangents with gradients computed one by one."""
    random = np.random.default_rng(0)
    for k, y in enumerate(outputs):
        vs = namespace_of[type(y.array)].asarray(random.standard_normal((2, *y.array.shape)), dtype=y.array.dtype)
        one_by_one = [grad(y, xs, constant(wrap(v)), retain_graph=True, allow_unused=True) for v in vs]
        try:
            batched = grad(y, xs, constant(vs), retain_graph=True, allow_unused=True, is_grads_batched=True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED_MESSAGE}") from error
        for j, got in enumerate(batched):
            expected = [row[j] for row in one_by_one]
            if got is not None and not all(
                e is not None and np.allclose(to_host(g), to_host(e.array), rtol=1e-5, atol=1e-8)
                for g, e in zip(got.array, expected, strict=True)
            ):
                raise GradcheckError(
                    f"For output {k} and input {j}:\n\n{BATCHED_MESSAGE}\n\nGot:\n{got}\n\nExpected:\n{expected}"
                )


BATCHED_MESSAGE = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation. The backward function must accept "
    "gradients with additional leading dimensions, as autograd.grad(..., is_grads_batched=True) passes them. "
    "check_batched_grad=False skips this check."
)


def _check_batched_forward(func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[int]) -> None:
    """Compare a batch of tangents, computed from the recorded graph, with tangents computed one by one in forward mode."""
    from gradlab.autograd.functional_helpers import tangents

    all_outputs, random = outputs_of(func, inputs), np.random.default_rng(0)
    recorded = [i for i, y in enumerate(all_outputs) if y.node is not None]
    for j, at in enumerate(wanted):
        x = inputs[at]
        us = namespace_of[type(x.array)].asarray(random.standard_normal((2, *x.array.shape)), dtype=x.array.dtype)
        one_by_one = [forward_jacobian(func, inputs, at, constant(u), recorded) for u in us]
        batched = tangents([all_outputs[i] for i in recorded], [x], [constant(us)], traced=False, batched=True)
        for k, t in enumerate(batched):
            got = np.zeros_like(np.stack([one[k] for one in one_by_one])) if t is None else to_host(t.array).reshape(2, -1)
            if not np.allclose(got, [one[k] for one in one_by_one], rtol=1e-5, atol=1e-8):
                raise GradcheckError(
                    f"For output {k} and input {j}:\n\ngradcheck failed while testing batched gradient "
                    "computation with forward-mode AD. The jvp function must accept tangents with additional leading "
                    "dimensions. check_batched_forward_grad=False skips this check."
                    f"\n\nGot:\n{got}\n\nExpected:\n{one_by_one}"
                )


def _check_zero_cotangents(func: Callable[..., Any], inputs: tuple[Any, ...], xs: list[Tensor], undefined: bool) -> None:
    """Check that cotangents of zeros give gradients of zeros, and (if `undefined`) also if one output has no cotangent."""
    outputs = [y for y in outputs_of(func, inputs) if y.node is not None]
    if not outputs:
        return
    zeros = [constant(namespace_of[type(y.array)].zeros_like(y.array)) for y in outputs]
    for g in grad(outputs, xs, zeros, retain_graph=True, allow_unused=True):
        if g is not None and g.array.any():
            raise GradcheckError("backward not multiplied by grad_output")
    for left_out in range(len(outputs)) if undefined and len(outputs) > 1 else ():
        others = [i for i in range(len(outputs)) if i != left_out]
        try:
            gradients = grad([outputs[i] for i in others], xs, [zeros[i] for i in others], retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. The gradient of an unused output "
                "is None if ctx.set_materialize_grads(False) was called."
            ) from error
        if any(g is not None and g.array.any() for g in gradients):
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")


# ------------------------------------------------------------------------------------------------------------- public functions
def compare_jacobians(
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
    """Run `gradcheck`, and return the worst entry of each Jacobian that was compared, or raise GradcheckError."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    for asked, needed, name, other in (
        (check_batched_grad, check_backward_ad, "check_batched_grad", "check_backward_ad"),
        (check_batched_forward_grad, check_forward_ad, "check_batched_forward_grad", "check_forward_ad"),
    ):
        if asked and not needed:
            raise AssertionError(f"Setting {name}=True requires {other} to be True")
    arguments, tolerance = tuple_of(inputs), Tolerance(eps, atol, rtol, nondet_tol)
    wanted = find_checked_inputs(arguments)
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
    """Check the gradients of a function against finite differences.

    Parameters
    ----------
    func : callable
        Function of the inputs that returns a Tensor or a tuple of Tensors.
    inputs : Tensor or tuple of Any
        Arguments of `func`. The tensors that require gradients are checked. They should be of double precision.
    eps : float, default: 1e-6
        Step size of the differences.
    atol, rtol : float, default: 1e-5 and 1e-3
        Absolute and relative tolerance: an entry passes if it differs by at most atol + rtol * |numerical|.
    raise_exception : bool, default: True
        Raise GradcheckError if the check fails. Otherwise return False.
    nondet_tol : float, default: 0.0
        Tolerance for the difference between two runs of the backward pass.
    check_undefined_grad : bool, default: True
        Check that an output without a gradient is treated as one with a gradient of zeros.
    check_grad_dtypes : bool, default: False
        Check that gradients have the dtype of their inputs.
    check_batched_grad, check_batched_forward_grad : bool, default: False
        Check that batches of gradients or tangents give the same results as single ones.
    check_forward_ad, check_backward_ad : bool
        Modes to check. By default, only backward mode is checked.
    fast_mode : bool, default: False
        Compare one random combination of the entries of each Jacobian instead of each entry.
    masked : bool, optional
        Ignored, because all tensors are dense.

    Raises
    ------
    GradcheckError
        If the check fails. The message shows both matrices and the entry that differs most.

    Returns
    -------
    bool
        True if the check passes, False if it fails and `raise_exception` is False.

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
        compare_jacobians(func, inputs, **options)
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
    """Check the second derivatives of a function against finite differences of its gradients.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes : optional
        As in `gradcheck`.
    check_batched_grad, fast_mode, masked : optional
        As in `gradcheck`.
    grad_outputs : Tensor or tuple of Tensor, optional
        Gradients of the outputs. By default, they are random.
    gen_non_contig_grad_outputs : bool, default: False
        Make the random gradients non-contiguous.
    check_fwd_over_rev, check_rev_over_rev : bool
        Modes to check. By default, only reverse over reverse is checked.

    Returns
    -------
    bool
        True if the check passes, False if it fails and `raise_exception` is False.

    Raises
    ------
    GradcheckError
        If the check fails. The message shows both matrices and the entry that differs most.

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
            _random_cotangent(y, random, gen_non_contig_grad_outputs) for y in outputs_of(func, arguments) if y.node is not None
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


def _random_cotangent(y: Tensor, random: np.random.Generator, scattered: bool) -> Tensor:
    """Return a random cotangent for an output. It requires gradients, and is not contiguous if `scattered`."""
    values = random.uniform(-1, 1, (*y.array.shape, 2) if scattered and y.array.ndim else y.array.shape)
    weight = namespace_of[type(y.array)].asarray(values, dtype=y.array.dtype)
    return constant(weight[..., 0] if weight.ndim > y.array.ndim else weight).requires_grad_()
