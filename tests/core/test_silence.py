"""NumPy's warnings about inf and nan are silenced: by default, with warnings as errors, and in threads."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from threads import no_processes, no_threads

import gradlab as gl
from gradlab.autograd import forward_ad

VALUES = [0.0, -1.0, 1.0, 1000.0]
# fmt: off
FUNCTIONS = {
    "x/0": lambda x: x / 0, "1/x": lambda x: 1 / x, "log": lambda x: x.log(), "sqrt": lambda x: x.sqrt(),
    "exp": lambda x: x.exp(),
    "x**-1": lambda x: x ** -1, "pow": lambda x: x.pow(0.5), "x**x": lambda x: x ** x, "acos": lambda x: x.acos(),
    "x/x": lambda x: x / x, "x%0": lambda x: x % 0, "overflow": lambda x: (x * 1e38) * 1e38, "inf - inf": lambda x: x / 0 - x / 0,
    "a large number": lambda x: x * 1e300, "softmax": lambda x: (x / 0).softmax(0), "std": lambda x: x.std(),
    "norm": lambda x: (x * 0).norm(), "logsumexp": lambda x: (x * 1e38 * 1e38).logsumexp(0), "cosh": lambda x: x.cosh(),
    "cast": lambda x: x.double().mul(1e300).float(), "matmul": lambda x: (x * 1e38) @ (x * 1e38),
    "prod": lambda x: (x * 1e38).prod(),
    "in place": lambda x: (x * 1).div_(0).log_().exp_(), "digamma": lambda x: x.digamma(), "rsqrt": lambda x: x.rsqrt(),
    "mean of nothing": lambda x: x[:0].mean(), "cross entropy": lambda x: gl.nn.functional.binary_cross_entropy(
        x.clamp(0, 1), x.detach().clamp(0, 1)), "layer_norm": lambda x: gl.nn.functional.layer_norm(x / 0, (4,)),
    "atan2": lambda x: gl.atan2(x, x * 0), "xlogy": lambda x: gl.xlogy(x, x), "hypot": lambda x: gl.hypot(x, x),
}
# fmt: on


def run_all_sweeps(function):
    x = gl.tensor(VALUES, requires_grad=True)
    y = function(x)
    (g,) = gl.autograd.grad(y, x, gl.ones_like(y), create_graph=True)
    if g.requires_grad:
        g.sum().backward()
    function(x).backward(gl.ones_like(y))
    function(x).backward(gl.ones_like(y))  # inf + -inf
    gl.autograd.jvp_of_graph(function(x), x, gl.ones(4))
    with gl.no_grad():
        function(x)
    with forward_ad.dual_level():
        forward_ad.unpack_dual(function(forward_ad.make_dual(gl.tensor(VALUES), gl.ones(4))))
    return x.grad


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("where", ["plain", "anomaly mode", pytest.param("thread", marks=no_threads)])
def test_with_warnings_as_errors(name, where):
    expected = run_all_sweeps(FUNCTIONS[name])
    found, raised = [], []

    def run():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                found.append(run_all_sweeps(FUNCTIONS[name]))
        except RuntimeWarning as warning:
            raised.append(warning)

    if where == "thread":
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    elif where == "plain":
        run()
    else:
        with pytest.warns(UserWarning, match="Anomaly Detection"), gl.autograd.detect_anomaly(check_nan=False):
            run()
    assert not raised
    assert np.array_equal(found[0].array, expected.array, equal_nan=True)


def test_in_place_writes_happen_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        x = gl.tensor([1.0, 3e38])
        x *= 2
        x += x
    assert x.tolist() == [4.0, float("inf")]


# fmt: off
NAN_OR_INF = {
    "int": lambda x: (x / 0).int(), "long": lambda x: (x * 0 / 0).long(), "to": lambda x: (x * 1e30).to(gl.int32),
    "copy_": lambda x: gl.zeros(2, dtype=gl.int32).copy_(x / 0), "sum": lambda x: (x / 0).sum(dtype=gl.int64),
    "an element": lambda x: gl.zeros(2).int().__setitem__(0, x[0] / 0), "cumsum": lambda x: (x / 0).cumsum(0, dtype=gl.int64),
    "out=": lambda x: gl.exp(x.double() * 300, out=gl.empty(2)), "new out=": lambda x: gl.exp(x.double() * 300, out=gl.empty(0)),
    "logspace": lambda x: gl.logspace(0, 500, 3), "one of logspace": lambda x: gl.logspace(500, 500, 1),
}
# fmt: on


@pytest.mark.parametrize("name", NAN_OR_INF)
def test_casts_with_warnings_as_errors(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        NAN_OR_INF[name](gl.tensor([1.0, 2.0]))


@pytest.mark.skipif(sys.platform == "emscripten", reason="WebAssembly does not report a division by zero to NumPy")
def test_a_users_own_numpy_code_still_warns():
    x = gl.ones(2, requires_grad=True)
    (x / 0).sum().backward()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.ones(1) / 0


@pytest.mark.e2e
@no_processes
def test_nothing_is_printed_by_default():
    program = (
        "import gradlab as gl\nx = gl.tensor([0., -1., 1000.], requires_grad=True)\n"
        "for y in (x / 0, x.log(), x.sqrt(), x.exp(), x ** -1, x.softmax(0) / 0): y.sum().backward()\n"
    )
    for flags in ([], ["-W", "error"], ["-W", "always"]):
        done = subprocess.run([sys.executable, *flags, "-c", program], capture_output=True, text=True, check=True)
        assert done.stderr == ""
