"""Anomaly mode: which operation failed in the backward pass, and where it was in the forward pass."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from leftovers import active_observers

import gradlab as gl
from gradlab.core.observers import Observer, observers, observing

HERE = Path(__file__).name
ON = "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def line_of(text):
    """Return the number of the only line of this file that ends with `text`."""
    lines = Path(__file__).read_text().splitlines()
    found = [i for i, line in enumerate(lines, 1) if line.endswith(text)]
    assert len(found) == 1
    return found[0]


def failing(function, kind=RuntimeError):
    """Return the message of the error that a function raises, and the texts of its UserWarnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(kind) as raised:
            function()
    return str(raised.value), [str(w.message) for w in caught if w.category is UserWarning]


def test_nan_is_found_with_the_line_of_the_forward_pass(t):
    def run():
        with t.autograd.detect_anomaly():
            x = leaf(t, 0.0, 1.0)
            y = x.sqrt() * 0  # the line of sqrt
            y.sum().backward()

    error, (first, second) = failing(run)
    assert error.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert first == ON
    assert second.startswith("Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n  File ")
    assert f'{HERE}", line {line_of("# the line of sqrt")}, in run\n    y = x.sqrt() * 0' in second


def test_the_error_names_the_output(t):
    def run():
        x, y = leaf(t, 1.0), leaf(t, 0.0)
        with t.autograd.detect_anomaly():
            (x / y * 0).sum().backward()

    error, _ = failing(run)
    assert error.startswith("Function 'DivBackward0' returned nan values in its 0th output.")

    def other():
        x, y = leaf(t, 0.0).detach(), leaf(t, 0.0)
        with t.autograd.detect_anomaly():
            (x / y).sum().backward()

    error, _ = failing(other)
    assert error.startswith("Function 'DivBackward0' returned nan values in its 1th output.")


def test_a_forward_pass_outside_the_mode(t):
    x = leaf(t, 0.0, 1.0)
    y = (x.sqrt() * 0).sum()

    def run():
        with t.autograd.detect_anomaly():
            y.backward()

    error, (_, second) = failing(run)
    assert error.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert second.startswith(
        "Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly "
        "during forward pass for more information."
    )


def test_errors_of_a_rule(t):
    class Fails(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("the rule's own")

    def run():
        with t.autograd.detect_anomaly():
            y = Fails.apply(leaf(t, 1.0))  # the line of apply
            (y * 2).backward()

    error, (_, second) = failing(run, ValueError)
    assert error == "the rule's own"
    assert second.startswith("Error detected in FailsBackward. Traceback of forward call that caused the error:\n")
    assert f'{HERE}", line {line_of("# the line of apply")}, in run' in second


def test_errors_of_a_hook(t):
    def run():
        with t.autograd.detect_anomaly():
            y = leaf(t, 1.0).exp()
            y.register_hook(lambda g: 1 / 0)
            y.backward()

    _, (_, second) = failing(run, ZeroDivisionError)
    assert second.startswith("Error detected in ExpBackward0. Traceback of forward call")


def test_the_parents_of_a_second_derivative(t):
    def run():
        x = leaf(t, 0.0, 1.0)
        with t.autograd.detect_anomaly():
            y = (x**1.5).sum()  # the line of pow
            (g,) = t.autograd.grad(y, x, create_graph=True)  # the line of the first
            (h,) = t.autograd.grad(g.sum(), x, create_graph=True)  # the line of the second
            (h * 0).sum().backward()

    error, (_, *told) = failing(run)
    assert error.startswith("Function 'PowBackward0' returned nan values in its 0th output.")
    assert len(told) == 3
    assert told[0].startswith("Error detected in PowBackward0. Traceback of forward call that caused the error:\n")
    for text in told[1:]:
        assert text.startswith(
            "\n\nPrevious calculation was induced by PowBackward0. Traceback of forward call that induced the "
            "previous calculation:\n"
        )
    for text, mark in zip(told, ("# the line of the second", "# the line of the first", "# the line of pow"), strict=True):
        assert f'{HERE}", line {line_of(mark)}, in run' in text


def test_metadata(t):
    x = leaf(t, 1.0, 2.0)
    with t.autograd.set_detect_anomaly(True):
        y = (x**3).sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
    trace = y.grad_fn.metadata["traceback_"]
    assert len(trace) == len(list(trace)) > 1 and all(isinstance(line, str) for line in trace)
    assert f'{HERE}", line ' in trace[-1] and trace[-1].count("\n") >= 2 and "".join(trace).endswith("\n")
    assert g.grad_fn.metadata["parent_"] is y.grad_fn.next_functions[0][0]
    assert "parent_" not in y.grad_fn.metadata
    z = x.exp()
    assert "traceback_" not in z.grad_fn.metadata


def test_check_nan_false_lets_nan_through(t):
    x = leaf(t, 0.0, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with t.autograd.detect_anomaly(check_nan=False):
            assert t.is_anomaly_enabled() and not t.is_anomaly_check_nan_enabled()
            (x.sqrt() * 0).sum().backward()
    assert [str(w.message) for w in caught if w.category is UserWarning] == [ON]
    assert np.isnan(x.grad.numpy()).tolist() == [True, False]


def test_switching(t):
    detect = t.autograd.set_detect_anomaly
    assert not t.is_anomaly_enabled() and t.is_anomaly_check_nan_enabled()
    detect(True)
    try:
        assert t.is_anomaly_enabled()
        with detect(False):
            assert not t.is_anomaly_enabled()
        with detect(True, check_nan=False):
            assert not t.is_anomaly_check_nan_enabled()
        assert t.is_anomaly_enabled() and t.is_anomaly_check_nan_enabled()
    finally:
        detect(False)
    assert not t.is_anomaly_enabled()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = t.autograd.detect_anomaly()
    assert not t.is_anomaly_enabled()
    with mode:
        assert t.is_anomaly_enabled()
    with pytest.raises(ZeroDivisionError), mode:
        1 / 0  # noqa: B018
    assert not t.is_anomaly_enabled()
    t.set_anomaly_enabled(True)
    t.set_anomaly_enabled(False)
    assert not t.is_anomaly_enabled()


def test_gradients_are_the_same_under_it(t):
    x = leaf(t, 0.3, 0.7)

    def gradient():
        z = x * 1
        z[0] = z[1] * 2
        y = (t.cat([z.sin(), z.exp()]).reshape(2, 2) @ z).tanh().sum()
        (g,) = t.autograd.grad(y, x, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), x)
        return g.detach().numpy().tolist() + h.numpy().tolist()

    plain = gradient()
    with t.autograd.set_detect_anomaly(True):
        assert gradient() == plain


# --------------------------------------------------------------------------------------- additions to PyTorch's text
def test_the_error_shows_the_operands_of_the_nan():
    def run():
        with gl.autograd.set_detect_anomaly(True):
            (leaf(gl, 4.0, 0.0, 1.0).sqrt() * 0).sum().backward()

    error, _ = failing(run)
    assert error == (
        "Function 'SqrtBackward0' returned nan values in its 0th output. It is the gradient with respect to input: "
        "1 of 3 elements are nan, the first at [1], computed from the incoming gradient = 0.0, its "
        "result = 0.0."
    )


def test_the_error_names_the_first_nan_of_the_forward_pass():
    def run():
        with gl.autograd.set_detect_anomaly(True):
            x = leaf(gl, -1.0, 4.0)
            y = (x.sqrt() + 1).exp()  # the line of the root
            y.sum().backward()

    error, _ = failing(run)
    assert error.startswith("Function 'ExpBackward0' returned nan values in its 0th output.")
    line = line_of("# the line of the root")
    assert error.endswith(
        f"In the forward pass, SqrtBackward0 produced nan from inputs without nan ({HERE} line {line}: `x.sqrt()`)."
    )


def test_nan_in_an_input_of_the_forward_pass():
    def run():
        with gl.autograd.set_detect_anomaly(True):
            (leaf(gl, 1.0, 2.0) * gl.tensor([1.0, float("nan")])).sum().backward()

    error, _ = failing(run)
    assert "the first at [1], computed from the incoming gradient = 1.0, its other = nan." in error
    assert "In the forward pass, MulBackward0 received nan" in error


def test_nan_in_an_argument_of_backward():
    def run():
        with gl.autograd.set_detect_anomaly(True):
            y = leaf(gl, 1.0, 2.0) * 2
            y.backward(gl.tensor([1.0, float("nan")]))

    error, _ = failing(run)
    assert (
        "1 of 2 elements are nan, the first at [1]. The incoming gradient already has nan: it was passed to backward()" in error
    )


def test_batches_and_recorded_sweeps():
    x = leaf(gl, 4.0, 0.0)

    def run():
        with gl.autograd.set_detect_anomaly(True):
            gl.autograd.grad(x.sqrt(), x, gl.tensor([[1.0, 1.0], [1.0, 0.0]]), is_grads_batched=True)

    error, _ = failing(run)
    assert "1 of 4 elements are nan, the first at [1, 1]" in error

    def run_recorded():
        with gl.autograd.set_detect_anomaly(True):
            gl.autograd.grad((x.sqrt() * 0).sum(), x, create_graph=True)

    error, _ = failing(run_recorded)
    assert error.startswith("Function 'SqrtBackward0' returned nan")


def test_the_traceback_marks_the_expression():
    def run():
        with gl.autograd.set_detect_anomaly(True):
            x = leaf(gl, 0.0)
            y = 2 * x.sqrt() * 0
            y.backward()

    _, (told,) = failing(run)
    line, marks = told.splitlines()[-2:]
    assert line == "    y = 2 * x.sqrt() * 0"
    assert marks in (" " * 12 + "^" * 8, " " * 12 + "~~~~~~^^")  # the second since Python 3.13


def test_writes_are_recorded():
    x = leaf(gl, 1.0, 2.0)
    with gl.autograd.set_detect_anomaly(True):
        y = x * 1
        y[0] = 5.0
        z = x * 1
        z.exp_()
    for node in (y.grad_fn, z.grad_fn):
        assert "test_writes_are_recorded" in node.metadata["traceback_"][-1]


def test_other_observers_and_hooks():
    """Use anomaly mode together with another observer, as in a `%%grad` cell, and with hooks on saved tensors."""

    class Counting(Observer):
        visits = ends = 0

        def on_node(self, node, g, cotangents):
            self.visits += 1

        def on_sweep_end(self, sweep, error):
            self.ends += 1

    counting, x = Counting(), leaf(gl, 0.0, 1.0)

    def run():
        with observing(counting), gl.autograd.graph.saved_tensors_hooks(lambda z: z.clone(), lambda z: z):
            gl.autograd.set_detect_anomaly(True)
            (x.sqrt() * 0).sum().backward()

    try:
        error, _ = failing(run)
        assert error.startswith("Function 'SqrtBackward0' returned nan")
        assert counting.visits >= 2 and counting.ends == 1
        assert gl.is_anomaly_enabled()  # enabled permanently, not for the block
    finally:
        gl.autograd.set_detect_anomaly(False)
    assert not active_observers() and not observers.active


def test_the_mode_is_per_thread():
    seen = []
    with gl.autograd.set_detect_anomaly(True):
        thread = threading.Thread(target=lambda: seen.append(gl.is_anomaly_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_an_interrupt_is_not_an_anomaly():
    def stop(g):
        raise KeyboardInterrupt

    def run():
        with gl.autograd.set_detect_anomaly(True):
            y = leaf(gl, 1.0).exp()
            y.register_hook(stop)
            y.backward()

    _, told = failing(run, KeyboardInterrupt)
    assert told == []


def test_errors_name_lines():
    """Source sites are recorded too, so that other errors of autograd name lines."""
    with gl.autograd.set_detect_anomaly(True):
        x = leaf(gl, 1.0, 2.0)
        y = x.exp()
        with gl.no_grad():
            y.zero_()  # the line of the write
        error, _ = failing(lambda: y.sum().backward())
    assert f"line {line_of('# the line of the write')}" in error


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("create_graph", [False, True])
def test_nan_of_a_custom_function(t, outputs, create_graph):
    class MyFunc(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, y):
            return x * y if outputs == 1 else (x * y, x + y)

        @staticmethod
        def backward(ctx, *g):
            return g[0] * 0 + 1, None, g[0] * float("nan")

    def run():
        with t.autograd.set_detect_anomaly(True):
            z = MyFunc.apply(leaf(t, 1.0), 2.0, leaf(t, 2.0) * 1)  # the line of the function
            sum([z] if outputs == 1 else z).backward(create_graph=create_graph)

    error, told = failing(run)
    assert error.startswith("Function 'MyFuncBackward' returned nan values in its ")
    assert f'{HERE}", line {line_of("# the line of the function")}, in run' in told[-1]


def test_nan_below_a_view_and_a_write(t):
    def run():
        with t.autograd.set_detect_anomaly(True):
            x = leaf(t, 0.0, 1.0)
            y = x * 1
            y[0] = (x[0].sqrt() * 0).reshape(())  # the line of the root in a write
            y.sum().backward()

    error, told = failing(run)
    assert error.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.")
    assert f'{HERE}", line {line_of("# the line of the root in a write")}, in run' in told[-1]
