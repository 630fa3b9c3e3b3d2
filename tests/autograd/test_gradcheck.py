"""`gradcheck` and `gradgradcheck`: passing and failing functions, and error messages, also compared with torch."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gradlab as gl
from gradlab.autograd import gradcheck, gradgradcheck
from gradlab.autograd.gradcheck import GradcheckError
from gradlab.core.tensor import constant


def inputs(lib):
    x = lib.tensor([[0.5, -1.25], [2.0, 0.25]], dtype=lib.float64, requires_grad=True)
    return x, lib.tensor([1.5, -0.5], dtype=lib.float64, requires_grad=True)


def right(x, y):
    return (x @ y).tanh(), (x * x).sum() * y


def function_with_hook(factor):
    """Return a function whose recorded gradient is too large by `factor()`."""

    def f(x, y):
        h = x * 1
        h.register_hook(lambda g: g * factor())
        return h * h + y

    return f


def unsteady():
    numbers = itertools.count()
    return function_with_hook(lambda: 1 + 1e-9 * next(numbers))


def cut(x, y):
    return x.detach() * y.detach()


def half_cut(x, y):
    return x * x.detach() + y


def jumping(x, y):
    """Return an output whose shape changes when an element is perturbed."""
    return x[0] * y if float(x[0, 0].detach()) > 0.5 else x * y


CASES = {  # name: (function, keywords)
    "right": (lambda: right, {}),
    "right, fast": (lambda: right, {"fast_mode": True}),
    "right, forward": (lambda: right, {"check_forward_ad": True}),
    "right, forward alone": (lambda: right, {"check_forward_ad": True, "check_backward_ad": False}),
    "right, forward, fast": (lambda: right, {"check_forward_ad": True, "fast_mode": True}),
    "right, batched": (lambda: right, {"check_batched_grad": True}),
    "0-d, batched": (lambda: lambda x, y: (x * x).sum() + y.sum(), {"check_batched_grad": True}),
    "right, batched forward": (lambda: right, {"check_forward_ad": True, "check_batched_forward_grad": True}),
    "right, dtypes": (lambda: right, {"check_grad_dtypes": True}),
    "half the graph is cut": (lambda: half_cut, {}),
    "half the graph is cut, fast": (lambda: half_cut, {"fast_mode": True}),
    "half the graph is cut, forward": (lambda: half_cut, {"check_forward_ad": True, "check_backward_ad": False}),
    "twice too large": (lambda: function_with_hook(lambda: 2), {}),
    "a loose tolerance": (lambda: function_with_hook(lambda: 1.0005), {"check_undefined_grad": False}),
    "a tight tolerance": (lambda: function_with_hook(lambda: 1.0005), {"rtol": 1e-5, "atol": 1e-8}),
    "unsteady": (unsteady, {}),
    "unsteady, but allowed": (unsteady, {"nondet_tol": 1e-6, "check_undefined_grad": False}),
    "unsteady, fast": (unsteady, {"fast_mode": True}),
    "the graph is cut": (lambda: cut, {}),
    "the graph is cut, fast": (lambda: cut, {"fast_mode": True}),
    "constant": (lambda: lambda x, y: x.detach() * 0, {}),
    "another shape": (lambda: jumping, {}),
    "integers": (lambda: lambda x, y: (x * y, (x > 0).sum()), {}),
    "nothing to check": (lambda: right, {"check_backward_ad": False}),
    "batched without backward": (
        lambda: right,
        {"check_batched_grad": True, "check_backward_ad": False, "check_forward_ad": True},
    ),
    "batched forward without forward": (lambda: right, {"check_batched_forward_grad": True}),
}


def outcome(lib, name):
    make, keywords = CASES[name]
    try:
        return lib.autograd.gradcheck(make(), inputs(lib), **keywords)
    except Exception as error:  # noqa: BLE001  (whatever it is, the other library must raise it too)
        return type(error).__name__, str(error)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(gl, name), outcome(torch, name)
    if theirs is True:
        assert ours is True
        return
    assert ours[0] == theirs[0]
    first = re.split(r"\.The tolerance|numerical:|, because|\n\n", theirs[1].replace("torch", "gradlab").removesuffix("."))[0]
    assert ours[1].startswith(first)


@pytest.mark.oracle
def test_the_matrices_match_torch():
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(gl, "half the graph is cut"), outcome(torch, "half the graph is cut")

    def numbers(text):
        return [float(word) for word in re.findall(r"-?\d+\.\d+", text.split("The worst")[0])]

    assert np.allclose(numbers(ours[1]), numbers(theirs[1]))


def test_the_error_ends_with_the_worst_entry():
    x, y = inputs(gl)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(half_cut, (x, y))
    assert str(caught.value).startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor")
    assert str(caught.value).endswith(
        "The worst entry is output 0[1, 0] with respect to input 0[1, 0]: analytical 2, numerical 4, difference 2. "
        "The tolerance is 1e-05 + 0.001 * |numerical|."
    )
    worst = caught.value.worst
    assert (worst.output, worst.input, worst.at) == (0, 0, ((1, 0), (1, 0)))
    assert worst.analytical == 2 and worst.numerical == pytest.approx(4)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(half_cut, (x, y), fast_mode=True)
    assert caught.value.worst.at == ((1, 0), (1, 0))


def test_a_nan_is_a_mismatch():
    x = gl.tensor([4.0, 0.0], dtype=gl.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="analytical nan"):
        gradcheck(lambda x: (x * x).sqrt() * (x * 0 + 1), x)


def test_raise_exception_false_returns_false():
    x, y = inputs(gl)
    assert gradcheck(right, [x, y], raise_exception=False) is True
    assert gradcheck(half_cut, (x, y), raise_exception=False) is False
    with pytest.raises(ValueError, match="at least one input tensor to require gradient, but none"):
        gradcheck(right, (x.detach(), y.detach()), raise_exception=False)


def test_single_precision_warns():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="^Input #0 requires gradient and is not a double precision floating point or") as seen:
        gradcheck(lambda x: x * 3, x, eps=1e-2)
    assert seen[0].filename == __file__


def test_inputs_are_restored():
    x, y = inputs(gl)
    before = x.array.copy(), y.array.copy()
    gradcheck(right, (x, y), check_forward_ad=True)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x, y: x * (1 / (float(x.detach()[0, 0]) == 0.5)), (x, y))
    assert (x.array == before[0]).all() and (y.array == before[1]).all() and x.grad is None and x._version == 0


def test_inputs_without_memory_of_their_own_are_refused():
    x = gl.ones(1, dtype=gl.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, x)


def test_other_arguments_are_passed_on():
    x, _ = inputs(gl)
    assert gradcheck(lambda x, power, scale: x**power * scale, (x, 2, gl.tensor(3.0)))
    with pytest.raises(TypeError, match="expects func to return a Tensor or a tuple of Tensors, but it returned float"):
        gradcheck(lambda x: 3.0, x)


def test_on_every_backend(backend):
    x = constant(backend(np.array([[0.5, -1.25], [2.0, 0.25]]))).requires_grad_()
    y = constant(backend(np.array([1.5, -0.5]))).requires_grad_()
    everything = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(right, (x, y), **everything) and gradcheck(right, (x, y), fast_mode=True, **everything)
    assert gradgradcheck(right, (x, y))
    with pytest.raises(GradcheckError, match="The worst entry is output 0"):
        gradcheck(half_cut, (x, y))


def test_empty_tensors_pass():
    assert gradcheck(lambda x: x * 2, gl.zeros(0, 2, dtype=gl.float64, requires_grad=True), check_forward_ad=True)


# --------------------------------------------------------------------------------------------------------- custom Functions
def function_named(lib, wrong=1.0, unsteady=0.0, tangent=1.0):
    """Return a custom Function for x³ whose backward and jvp are wrong by constant factors."""
    numbers = itertools.count()

    class Cubed(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return wrong * (1 + unsteady * next(numbers)) * 3 * x**2 * g

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return tangent * 3 * x**2 * t

    return Cubed.apply


@pytest.mark.parametrize(
    ("made", "keywords", "words"),
    [
        ({}, {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}, None),
        ({"wrong": 1.5}, {}, "Jacobian mismatch for output 0 with respect to input 0,"),
        (
            {"tangent": 1.5},
            {"check_forward_ad": True},
            "Jacobian computed with forward mode mismatch for output 0 with respect to",
        ),
        (
            {"unsteady": 1e-9},
            {},
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times",
        ),
        ({"unsteady": 1e-9}, {"nondet_tol": 1e-6}, None),
    ],
)
def test_a_custom_function(made, keywords, words):
    x = gl.tensor([0.5, -1.25, 2.0], dtype=gl.float64, requires_grad=True)
    if words is None:
        assert gradcheck(function_named(gl, **made), x, **keywords)
    else:
        with pytest.raises(GradcheckError, match=f"^{re.escape(words)}"):
            gradcheck(function_named(gl, **made), x, **keywords)


def test_a_backward_that_does_not_multiply_by_its_cotangent():
    class Shifted(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return gl.where(g == 0, 1.0, g)

    x = gl.tensor(2.0, dtype=gl.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"^backward not multiplied by grad_output"):
        gradcheck(Shifted.apply, x)


# ------------------------------------------------------------------------------------------------------------- second order
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"fast_mode": True},
        {"check_fwd_over_rev": True},
        {"gen_non_contig_grad_outputs": True},
        {"check_batched_grad": True},
        {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
    ],
)
def test_correct_second_derivatives(keywords):
    assert gradgradcheck(right, inputs(gl), **keywords)


def test_wrong_second_derivatives():
    def f(x, y):
        h = x * x
        h.register_hook(lambda g: g * (x / x.detach()) ** 2)  # the gradient is right, its derivative is not
        return h + y

    assert gradcheck(f, inputs(gl))
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradgradcheck(f, inputs(gl))
    assert not gradgradcheck(f, inputs(gl), raise_exception=False)


def test_second_derivatives_with_given_cotangents():
    x, y = inputs(gl)
    v = gl.ones(2, 2, dtype=gl.float64, requires_grad=True)
    assert gradgradcheck(lambda x, y: x.exp() * y, (x, y), v)
    with pytest.raises(AssertionError, match="Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"):
        gradgradcheck(right, (x, y), check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="Setting check_undefined_grad=True requires check_rev_over_rev to be True"):
        gradgradcheck(right, (x, y), check_rev_over_rev=False, check_fwd_over_rev=True)


@pytest.mark.e2e
def test_the_function_and_the_module_have_the_same_name():
    code = (
        "from gradlab.autograd.gradcheck import GradcheckError, gradgradcheck; import gradlab; "
        "assert callable(gradlab.autograd.gradcheck) and issubclass(GradcheckError, RuntimeError); "
        "assert gradlab.autograd.gradgradcheck is gradgradcheck"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_warning_if_the_check_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(right, inputs(gl), check_forward_ad=True, check_batched_grad=True)
