"""`gl.playground`: values, gradients and their check; curves, contours and paths; the code that it prints."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
from xml.etree import ElementTree

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.drawing import text_width
from gradlab.explore.playground import view_model
from gradlab.explore.playground.contours import contours, levels_of
from gradlab.explore.playground.descent import OPTIMIZERS

SMOOTH = [
    (lambda x: x**3 / 3 - x, lambda x: x**2 - 1, 1.6),
    (lambda x: gl.sin(3 * x) * gl.exp(-x), lambda x: math.exp(-x) * (3 * math.cos(3 * x) - math.sin(3 * x)), -0.7),
    (lambda x: gl.log(x * x + 1), lambda x: 2 * x / (x * x + 1), 2.0),
    (lambda x: gl.where(x > 0, x**2, -(x**2)), lambda x: 2 * abs(x), -1.2),
]


def frame(shown):
    return shown.lab.whole_frame()


def only(shown):
    """Return the row of the check for a single input."""
    (row,) = frame(shown)["rows"]
    return row


def plain(text):
    return float(text.replace("−", "-"))


# ------------------------------------------------------------------------------------------------------ value and gradient
@pytest.mark.parametrize(("f", "slope", "x"), SMOOTH)
def test_value_gradient_and_difference_match_the_formula(f, slope, x):
    P = gl.playground(f, x=(-3, 3), at={"x": x})
    assert P.value == pytest.approx(float(f(gl.tensor(x, dtype=gl.float64))), rel=1e-12)
    assert P.gradient == pytest.approx([slope(x)], rel=1e-12)
    name, gradient, difference, verdict = only(P)
    assert (name, verdict) == ("x", "agrees")
    assert plain(gradient) == pytest.approx(slope(x), rel=1e-3) and plain(difference) == pytest.approx(slope(x), rel=1e-3)
    h, error = (plain(found) for found in re.search(r"h = (\S+), its error about (\S+)\.$", frame(P)["checked"]).groups())
    true = (float(f(gl.tensor(x + h, dtype=gl.float64))) - float(f(gl.tensor(x - h, dtype=gl.float64)))) / (2 * h)
    assert abs(true - slope(x)) <= 20 * error, "the reported error is not too small"


def test_several_numbers_and_vectors():
    P = gl.playground(lambda x, y: x * y**2, x=(0, 4), y=(-2, 2), at={"x": 3, "y": 1.5})
    np.testing.assert_allclose(P.gradient, [1.5**2, 2 * 3 * 1.5])
    Q = gl.playground(lambda p, s: (p**2).sum() * s, p=[(-4, 4), (-2, 2), (0, 1)], s=(0, 1), at={"p": [1, 2, 0.5], "s": 0.5})
    np.testing.assert_allclose(Q.gradient, [1, 2, 0.5, 5.25])
    assert [row[0] for row in frame(Q)["rows"]] == ["p[0]", "p[1]", "p[2]", "s"]
    assert gl.playground(lambda p: p.sum(), p=[(0, 1), (0, 1)], at={"p[1]": 0.25}).point[1] == 0.25
    R = gl.playground(lambda x, k=2.0, *, y: x * k + y, y=(0, 1), x=(0, 1))
    assert R.gradient.tolist() == [2, 1], "a default is kept, and keyword arguments are passed by keyword"


def test_parameters_with_the_names_of_options():
    P = gl.playground(lambda lr, at: lr * at, {"lr": (0, 1), "at": (0, 2)}, at={"lr": 0.5, "at": 1.5})
    assert P.value == 0.75 and P.gradient.tolist() == [1.5, 0.5]


# ------------------------------------------------------------------------------------------------------ kinks, jumps, edges
@pytest.mark.parametrize(
    ("f", "x", "left", "right"),
    [
        (lambda x: x.abs(), 0.0, -1, 1),
        (gl.relu, 0.0, 0, 1),
        (lambda x: gl.where(x > 1, x * x, x), 1.0, 1, 2),
        (lambda x: gl.maximum(x, -2 * x) + 5, 0.0, -2, 1),
    ],
)
@pytest.mark.parametrize("width", [3, 1e4])
def test_kinks_are_found_with_both_slopes(f, x, left, right, width):
    names = {"input": (-width, width)} if f is gl.relu else {"x": (-width, width)}
    P = gl.playground(f, names, at=dict.fromkeys(names, x))
    assert only(P)[3] == "kink here"
    slopes = re.search(r"to the left the slope is (\S+), to the right (\S+) \(within", frame(P)["checked"]).groups()
    assert [plain(slope) for slope in slopes] == pytest.approx([left, right], abs=1e-3)


@pytest.mark.parametrize("x", [-1.5, 1e-2, 0.7])
def test_no_kink_beside_a_kink(x):
    assert only(gl.playground(lambda x: x.abs(), x=(-3, 3), at={"x": x}))[3] == "agrees"


def test_jumps():
    P = gl.playground(gl.floor, {"input": (-3, 3)}, at={"input": 1.0})
    assert only(P)[3] == "jump here" and "the value changes by 1, which no gradient shows (it is 0)" in frame(P)["checked"]
    assert only(gl.playground(gl.floor, {"input": (-3, 3)}, at={"input": 1.4}))[3] == "agrees"
    curve = frame(P)["picture"]["ground"][-1]
    xs, ys = np.asarray(curve["xs"]), np.asarray(curve["ys"])
    assert np.isnan(ys).sum() == 6, "the line has a gap at each integer except the first"
    known = ~np.isnan(ys)
    np.testing.assert_array_equal(ys[known], np.floor(xs[known]))


def test_points_without_a_value():
    P = gl.playground(lambda x: 1 * gl.log(x), x=(-1, 3), at={"x": 2.0})
    assert frame(P)["holes"] == "f has no finite value from −1 to 0."
    bands = [mark for mark in frame(P)["picture"]["ground"] if mark["kind"] == "band"]
    assert [(band["low"], pytest.approx(band["high"], abs=1e-5)) for band in bands] == [(-1, 0)]
    N = gl.playground(lambda x: 1 * gl.log(x), x=(-1, 3), at={"x": -0.5})
    assert math.isnan(N.value) and only(N)[3] == "edge" and "not a finite number" in frame(N)["checked"]
    assert "NaN" in N.sentence and N.drawing().svg()
    everywhere = gl.playground(lambda x: gl.log(-(x**2) - 1), x=(-1, 1))
    assert "no finite value anywhere" in everywhere.sentence and everywhere.html()


def test_a_wrong_gradient_is_distinguished_from_a_kink():
    P = gl.playground(lambda x: x.detach() * x, x=(-3, 3), at={"x": 2.0})
    assert only(P)[1:] == ["2", "4", "differs"] and "gradlab says 2" in frame(P)["checked"]
    Q = gl.playground(lambda x: gl.tensor(float(x) ** 2, dtype=gl.float64), x=(-3, 3), at={"x": 2.0})
    assert only(Q)[1:] == ["none", "4", "differs"] and "no gradient" in Q.sentence and Q.gradient is None


def test_constant_functions():
    for f in (lambda x: 0 * x + 3, lambda x: gl.tensor(3.0, dtype=gl.float64)):
        P = gl.playground(f, x=(-3, 3))
        assert P.value == 3 and only(P)[2:] == ["0", "agrees"]
        low, high = frame(P)["picture"]["y"]["range"]
        assert low < 3 < high and P.drawing().svg()
    flat = gl.playground(lambda x, y: 0 * x + 3 + 0 * y, x=(-3, 3), y=(0, 1))
    assert flat.value == 3 and flat.drawing().svg()


@pytest.mark.parametrize("width", [1e-12, 1e-6, 1.0, 1e9, 1e100])
def test_ranges_of_any_size(width):
    P = gl.playground(lambda x: (x / width) ** 2, x=(-width, width), at={"x": 0.5 * width})
    assert P.gradient == pytest.approx([1 / width]) and only(P)[3] == "agrees"
    Q = gl.playground(lambda x, y: (x / width) ** 2 + y, x=(-width, width), y=(0, 1))
    for shown in (P, Q):
        assert "nan" not in shown.drawing().svg() and "inf" not in shown.drawing().svg().replace("info", "")
    shifted = gl.playground(lambda x: (x - 1e6) ** 2, x=(1e6, 1e6 + 1), at={"x": 1e6 + 0.5})
    assert shifted.gradient == pytest.approx([1.0]) and only(shifted)[3] == "agrees"


def test_the_curve_follows_f():
    P = gl.playground(lambda x: 1 / x, x=(-1, 1), at={"x": 0.5})
    curve = frame(P)["picture"]["ground"][-1]
    xs, ys = np.asarray(curve["xs"]), np.asarray(curve["ys"])
    known = np.isfinite(ys)
    np.testing.assert_allclose(ys[known], 1 / xs[known])
    low, high = frame(P)["picture"]["y"]["range"]
    assert high < 1e3 and low > -1e3, "a pole does not flatten the rest of the curve"
    spike = gl.playground(lambda x: gl.exp(-((x - 0.503) ** 2) * 3e4), x=(0, 1), at={"x": 0.2})
    line = np.asarray(frame(spike)["picture"]["ground"][-1]["ys"])
    assert np.nanmax(line) > 0.98, "a narrow peak is found if a coarse point is on its flank"


# --------------------------------------------------------------------------------------------------------------- contours
def test_contours_are_at_their_levels():
    xs, ys = np.linspace(-3, 3, 65), np.linspace(-2, 2, 65)
    values = xs[None] ** 2 / 4 + ys[:, None] ** 2
    levels = levels_of(values)
    assert 5 <= len(levels) <= 9 and levels == sorted(levels) and values.min() < levels[0] and levels[-1] < values.max()
    lines = contours(xs, ys, values, levels)
    assert {line.level for line in lines} == set(levels)
    for line in lines:
        np.testing.assert_allclose(line.xs**2 / 4 + line.ys**2, line.level, atol=3e-3)
        if line.level < 1:
            assert line.xs[0] == line.xs[-1] and line.ys[0] == line.ys[-1], "contours inside the picture are closed"
            area = 0.5 * abs(np.sum(line.xs[1:] * line.ys[:-1] - line.xs[:-1] * line.ys[1:]))
            assert area == pytest.approx(2 * math.pi * line.level, rel=0.02), "one closed line"


def test_contours_of_a_saddle_and_beside_a_hole():
    xs = ys = np.linspace(-1, 1, 5)
    saddle = xs[None] * ys[:, None]
    assert len(contours(xs, ys, saddle, [0.1])) == 2 and len(contours(xs, ys, saddle, [-0.1])) == 2
    holed = np.where(xs[None] < 0, np.nan, saddle)
    for line in contours(xs, ys, holed, [0.1]):
        assert np.isfinite(line.xs).all() and (line.xs >= 0).all()
    assert levels_of(np.full((5, 5), 2.0)) == [] and levels_of(np.full((5, 5), np.nan)) == []


def test_the_grey_area_covers_points_without_a_value_once():
    P = gl.playground(lambda x, y: (x * y - 0.5).log(), x=(-2, 2), y=(-2, 2))
    picture = frame(P)["picture"]
    (boxes,) = (np.array(mark["boxes"]) for mark in picture["ground"] if mark["kind"] == "boxes")
    side = picture["side"]
    values = np.asarray(picture["values"]).reshape(side, side)
    xs = np.linspace(-2, 2, side)
    inner = (boxes[:, 0] < xs[:, None, None]) & (xs[:, None, None] < boxes[:, 0] + boxes[:, 2])
    across = (boxes[:, 1] < xs[:, None, None]) & (xs[:, None, None] < boxes[:, 1] + boxes[:, 3])
    covered = (across & inner.transpose(1, 0, 2)).sum(2)
    np.testing.assert_array_equal(covered[1:-1, 1:-1], ~np.isfinite(values[1:-1, 1:-1]))


def test_different_scales_are_mentioned():
    said = "The axes have different scales"
    assert said in gl.playground(bowl, p=[(-40, 40), (-2, 2)]).sentence
    assert said not in gl.playground(bowl, p=[(-4, 4), (-2, 2)]).sentence


def test_axes_can_be_chosen():
    f = lambda x, y, z: x + 2 * y**2 + 3 * z**3  # noqa: E731
    P = gl.playground(f, x=(0, 1), y=(0, 1), z=(0, 1), axes=("z", "y"))
    picture = frame(P)["picture"]
    assert (picture["x"]["label"], picture["y"]["label"]) == ("z", "y")
    line = frame(gl.playground(f, x=(0, 1), y=(0, 1), z=(0, 1), axes="z", at={"x": 0.5, "y": 0.5}))["picture"]["ground"][-1]
    np.testing.assert_allclose(line["ys"], 1 + 3 * np.asarray(line["xs"]) ** 3)
    P.lab.answer("axes", {"axes": [0]})
    assert frame(P)["picture"]["x"]["label"] == "x"
    with pytest.raises(ValueError, match="one input, or two"):
        P.lab.answer("axes", {"axes": [0, 0]})


# ------------------------------------------------------------------------------------------------------------------ paths
def rosenbrock(a, b):
    return (1 - a) ** 2 + 5 * (b - a**2) ** 2


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_path_matches_a_loop_by_hand(name):
    P = gl.playground(rosenbrock, a=(-2, 2), b=(-1, 3), at={"a": -1.2, "b": 1.0}, optimizer=name, lr=0.01, steps=25)
    a, b = (gl.tensor(x, dtype=gl.float64, requires_grad=True) for x in (-1.2, 1.0))
    cls, options = OPTIMIZERS[name]
    optimizer = getattr(gl.optim, cls)([a, b], lr=0.01, **options)
    points = [[-1.2, 1.0]]
    for _ in range(25):
        optimizer.zero_grad()
        rosenbrock(a, b).backward()
        optimizer.step()
        points.append([float(a.detach()), float(b.detach())])
    np.testing.assert_array_equal(P.path, points)
    P.lab.answer("step", {})
    assert len(P.path) == 27
    P.lab.answer("reset", {})
    assert len(P.path) == 1
    told = P.lab.answer("run", {})
    while told["running"]:
        told = P.lab.answer("go", {})
    np.testing.assert_array_equal(P.path[:26], points)


def bowl(p):
    return p[0] ** 2 / 2 + 2 * p[1] ** 2


def test_a_path_depends_on_its_start_and_its_rate():
    P = gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4, steps=11)
    k = np.arange(12)
    np.testing.assert_allclose(P.path, np.stack([-4 * 0.6**k, 1.8 * (-0.6) ** k], 1), atol=1e-12)
    P.lab.answer("move", {"point": [2.0, 1.0]})
    np.testing.assert_allclose(P.path, np.stack([2 * 0.6**k, (-0.6) ** k], 1), atol=1e-12)
    P.lab.answer("rate", {"lr": 0.25})
    np.testing.assert_allclose(P.path[:3], [[2, 1], [1.5, 0], [1.125, 0]], atol=1e-12)


def test_the_text_about_a_quadratic():
    said = gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4, steps=11).sentence
    assert "p[0] by 1 − 0.4·1 = 0.6 and p[1] by 1 − 0.4·4 = −0.6" in said and "It does not converge for lr ≥ 2/4 = 0.5" in said
    below, at, beyond = (
        gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 1.8]}, lr=lr, steps=500) for lr in (0.49, 0.5, 0.51)
    )
    assert frame(below)["ended"] == "settled" and abs(below.path[-1]).max() < 1e-4
    assert frame(at)["ended"] == "" and "goes back and forth between" in at.sentence
    assert frame(beyond)["ended"] == "left" and "diverges" in beyond.sentence
    level = gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 0.0]}, lr=0.6, steps=300)
    assert frame(level)["ended"] == "settled" and "does not converge" not in level.sentence, (
        "there is no descent along the steepest direction"
    )
    tilted = gl.playground(lambda x, y: x * x + x * y + y * y, x=(-2, 2), y=(-2, 2), lr=0.1)
    assert "along the flattest direction by 1 − 0.1·1 = 0.9 and along the steepest by 1 − 0.1·3 = 0.7" in frame(tilted)["course"]
    for other in (
        gl.playground(rosenbrock, a=(-2, 2), b=(-1, 3)),
        gl.playground(lambda x: x**4, x=(-2, 2)),
        gl.playground(lambda x: -(x**2), x=(-2, 2)),
        gl.playground(lambda x: x.abs(), x=(-2, 2)),
        gl.playground(bowl, p=[(-4, 4), (-2, 2)], optimizer="Adam"),
    ):
        assert "quadratic" not in frame(other)["course"] and "does not converge" not in frame(other)["course"]


def test_texts_about_the_end_of_paths():
    def run_path(f, lr, at, width=3.0):
        P = gl.playground(f, x=(-width, width), at={"x": at}, lr=lr, steps=400)
        return P.lab.whole_frame()["ended"], P.sentence

    kind, said = run_path(lambda x: x**4, 5.0, 2.0)
    assert kind == "left" and "It diverges: after step 2 it is more than 100 ranges away" in said
    kind, said = run_path(lambda x: 1 * x.sqrt(), 1.0, 0.1)
    assert kind == "nan" and "not a finite number, and the path ends" in said
    kind, said = run_path(lambda x: x.relu(), 0.5, 0.25)
    assert kind == "flat" and "exactly 0" in said
    kind, said = run_path(lambda x: x.abs(), 0.5, 0.25)
    assert kind == "" and "goes back and forth between x = −0.25 and x = 0.25" in said.replace(
        "x = 0.25 and x = −0.25", "x = −0.25 and x = 0.25"
    )
    kind, said = run_path(lambda x: gl.tensor(1.0, dtype=gl.float64), 0.5, 0.25)
    assert kind == "none" and "There is no gradient: no recorded" in said

    def picky(x):
        if float(x.detach()) < 0:
            raise ValueError("negative <b>")
        return x

    kind, said = run_path(picky, 0.5, 0.75)
    assert kind == "raised" and "f raised ValueError: negative <b> at x = −0.25" in said
    assert "<b>" not in gl.playground(picky, x=(-1, 1), at={"x": 0.75}, lr=0.5, steps=5).html()


def test_no_other_gradient_is_written():
    w = gl.tensor(2.0, dtype=gl.float64, requires_grad=True)
    P = gl.playground(lambda x: (w * x) ** 2, x=(-3, 3), steps=5)
    assert P.html() and w.grad is None and len(P.path) == 6


# ------------------------------------------------------------------------------------------------------------------- code
def run(code, scope):
    """Run code and return the value of its last line."""
    *lines, last = code.splitlines()
    exec("\n".join(lines), scope)
    return eval(last.partition("  #")[0], scope)


def numbers(value):
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.asarray(part.detach().numpy(), float).reshape(-1) for part in parts])


def named_function(x, y, *, z):
    """Compute with a docstring."""
    return x * y**2 + z


@pytest.mark.parametrize(
    ("f", "ranges"),
    [
        (lambda x: x**3 / 3 - x, {"x": (-2.4, 2.4)}),
        (rosenbrock, {"a": (-2, 2), "b": (-1, 3)}),
        (bowl, {"p": [(-4, 4), (-2, 2)]}),
        (named_function, {"x": (0, 1), "y": (0, 2), "z": (0, 3)}),
        (lambda f, g: f * g, {"f": (0, 1), "g": (0, 1)}),
    ],
)
@pytest.mark.parametrize("optimizer", ["SGD", "Nesterov", "Adam"])
def test_the_code_runs_as_printed(f, ranges, optimizer):
    P = gl.playground(f, ranges, optimizer=optimizer, lr=0.03, steps=4)
    scope = {"gl": gl, "f": f}  # the name in the code
    shown = frame(P)
    np.testing.assert_allclose(numbers(run(shown["code"], dict(scope))), P.gradient, rtol=1e-12)
    assert numbers(run(shown["differenceCode"], dict(scope)))[0] == pytest.approx(P.gradient[0], rel=1e-5)
    np.testing.assert_allclose(numbers(run(shown["descentCode"], dict(scope))), P.path[-1], rtol=1e-12)


def test_a_function_without_a_name_or_a_source():
    P = gl.playground(lambda x: x**2, x=(-3, 3))
    assert P.code.splitlines()[0] == "f = lambda x: x**2" and repr(P) == "<playground of x**2>"
    f = eval("lambda x: x * 2")
    assert frame(gl.playground(f, x=(0, 1)))["code"].splitlines()[1] == "f(x).backward()"
    Q = gl.playground(eval("lambda x: x * 2"), x=(0, 1))
    assert frame(Q)["code"].startswith("# f: your function\n")
    inner = gl.nn.Linear(1, 1)

    class Square(gl.nn.Module):
        def forward(self, x):
            return inner(x.reshape(1)).sum() ** 2

    assert gl.playground(Square(), x=(-1, 1)).gradient.shape == (1,)


# ------------------------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize(
    ("f", "given", "error", "says"),
    [
        (3, {"x": (0, 1)}, TypeError, "f is int, but must be a function"),
        (lambda x: x, {}, TypeError, r"no range is given.*gl\.playground\(f, x=\(-3, 3\)\)"),
        (lambda x: x, {"y": (0, 1)}, TypeError, "a range is given for 'y', but the function has the parameters x"),
        (rosenbrock, {"a": (0, 1)}, TypeError, r"rosenbrock needs b, too.*add b=\(-3, 3\)"),
        (lambda x: x, {"x": (1, 0)}, ValueError, "is decreasing"),
        (lambda x: x, {"x": (1, 1)}, ValueError, "is empty"),
        (lambda x: x, {"x": (0, math.inf)}, ValueError, "must be finite"),
        (lambda x: x, {"x": (1, 1 + 1e-15)}, ValueError, "too narrow"),
        (lambda x: x, {"x": 3}, TypeError, "the range of x is 3, but must be two numbers"),
        (lambda x: x, {"x": (0, 1, 2)}, TypeError, "must be two numbers"),
        (lambda x: x, {"x": ("a", "b")}, TypeError, "must be two numbers"),
        (lambda p: p, {"p": [(0, 1), (0, 1)]}, TypeError, r"a tensor of shape 2, but a playground shows one number.*\.sum\(\)"),
        (lambda x: (x, x), {"x": (0, 1)}, TypeError, "returned a tuple"),
        (lambda x: None, {"x": (0, 1)}, TypeError, "returned nothing"),
        pytest.param(
            *(lambda x: math.sin(1 * x), {"x": (0, 1)}, TypeError, r"returned float.*use (gl|gradlab)\.sin"),
            marks=pytest.mark.filterwarnings("ignore:Converting a tensor"),  # the warning appears once in a process
        ),
        (lambda x: 1 / 0, {"x": (0, 1)}, RuntimeError, "with tensors of gradlab it raised ZeroDivisionError: division by zero"),
    ],
)
def test_errors_for_functions_that_cannot_be_shown(f, given, error, says):
    with pytest.raises(error, match=says):
        gl.playground(f, given)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"optimizer": "LBFGS"}, "optimizer='LBFGS' must be one of 'SGD'"),
        ({"lr": 0}, "a learning rate must be a positive number"),
        ({"lr": "fast"}, "a learning rate must be a positive number"),
        ({"steps": -1}, "an integer from 0 to 500"),
        ({"axes": ("x", "z")}, "one or two of the inputs 'x', 'y'"),
        ({"axes": ("x", "x")}, "one or two of the inputs"),
        ({"at": {"x": 9}}, "outside its range"),
        ({"at": {"z": 1}}, "not one of the inputs"),
        ({"at": {"x": [1, 2]}}, "must be a number"),
        ({"library": "jax"}, "is not imported"),
    ],
)
def test_options_that_do_not_fit(options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        gl.playground(lambda x, y: x * y, x=(-3, 3), y=(-3, 3), **options)


def test_a_function_that_raises_at_some_points():
    def picky(x):
        if float(x.detach()) < 0:
            raise ValueError("no <script> below 0")
        return x * x

    P = gl.playground(picky, x=(-1, 1), at={"x": -0.5})
    shown = frame(P)
    assert shown["trouble"] == "f raised ValueError at x = −0.5: no <script> below 0" and shown["rows"] == []
    assert "<script" not in P.html() and math.isnan(P.value) and P.gradient is None
    line = shown["picture"]["ground"][-1]
    assert np.nanmax(line["ys"]) == 1, "the part with values is drawn"
    assert "f raised ValueError" in shown["holes"]
    moved = P.lab.answer("move", {"point": [0.5]})
    assert moved["trouble"] == "" and moved["rows"][0][1] == "1"


# ---------------------------------------------------------------------------------------------------------- the model
def test_the_model_raises_for_invalid_requests():
    lab = gl.playground(lambda x: x * x, x=(-3, 3)).lab
    for ask, message in (
        ("burn", {}),
        ("move", {"point": [1, 2]}),
        ("move", {"point": [math.nan]}),
        ("rate", {"lr": -1}),
        ("rate", {"lr": "NaN"}),
        ("optimizer", {"name": "__class__"}),
        ("axes", {"axes": [5]}),
    ):
        with pytest.raises(ValueError, match=r"request|finite numbers|positive number|optimizer|one input"):
            lab.answer(ask, message)
    assert lab.answer("move", {"point": [99.0]})["point"] == [3.0]


def test_a_slow_function_is_drawn_coarsely_first_and_then_refined(clock):
    def slow(x):
        clock.move(0.01)
        return x * x if float(x.detach()) > -9 else x

    P = gl.playground(slow, x=(-1, 1))
    began = clock()
    first = P.lab.answer("hello", {})
    budgets = view_model.GROUND + view_model.WALK + view_model.CHECK
    assert first["more"] and clock() - began < budgets + 0.1, "the time of an answer is bounded"
    points = len(first["picture"]["xs"])
    second = P.lab.answer("refine", {})
    assert len(second["picture"]["xs"]) > points
    grid = gl.playground(lambda x, y: slow(x) + y, x=(-1, 1), y=(-1, 1))
    assert grid.lab.answer("hello", {})["more"]


def test_a_check_that_ran_out_of_time_is_finished_while_nothing_moves(monkeypatch):
    lab = gl.playground(lambda x: x.abs(), x=(-3, 3), at={"x": 0.5}).lab
    monkeypatch.setattr(view_model, "CHECK", 0.0)
    frame, answers = lab.answer("move", {"point": [0.0]}), 1
    assert frame["more"] and frame["rows"][0][-1] == "not checked yet" and frame["checked"].endswith("f is slow.")
    while frame["more"]:
        frame, answers = lab.answer("refine", {}), answers + 1
        assert answers < 100
    assert frame["rows"][0][-1] == "kink here" and "the left the slope is −1, to the right 1" in frame["checked"]
    assert lab.answer("refine", {})["rows"] == frame["rows"], "the result is kept"
    assert lab.answer("move", {"point": [0.0]})["more"], "it begins again, since f may have changed"


def test_frames_contain_the_background_once():
    lab = gl.playground(bowl, p=[(-4, 4), (-2, 2)]).lab
    assert "ground" in lab.answer("hello", {})["picture"]
    assert "ground" not in lab.answer("move", {"point": [1, 1]})["picture"], "moving the inputs on the axes changes nothing else"
    assert "ground" in lab.answer("axes", {"axes": [1]})["picture"]
    assert "ground" in lab.answer("move", {"point": [2, 1]})["picture"], "moving the other input changes the background"
    assert "ground" in lab.answer("hello", {})["picture"]
    assert "ground" in lab.answer("refine", {"width": 600})["picture"], "another width"
    assert "ground" not in lab.answer("refine", {"width": 600})["picture"]
    assert "ground" not in lab.answer("refine", {"width": "wide"})["picture"]


@pytest.mark.parametrize("width", [240, 500, 900])
def test_a_view_gets_the_picture_of_its_width(width):
    lab = gl.playground(bowl, p=[(-5, 5), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4, steps=3).lab
    shown = lab.answer("hello", {"width": width})["picture"]
    drawing = ElementTree.fromstring(shown["ground"])
    assert float(drawing.get("width")) <= width + 1
    left, top, wide, high = map(float, drawing.get("data-frame").split())
    assert (drawing.get("data-x"), drawing.get("data-y")) == ("-5 5", "-2 2") and wide / 10 == pytest.approx(high / 4, rel=1e-3)
    dots = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in ElementTree.fromstring(shown["front"]).iter("circle")]
    places = [
        (left + wide * (x + 5) / 10, top + high * (2 - y) / 4)
        for x, y in zip(-4 * 0.6 ** np.arange(4), 1.8 * (-0.6) ** np.arange(4), strict=True)
    ]
    np.testing.assert_allclose(dots, [*places[1:], places[0]], atol=0.06)
    for text in drawing.iter("{*}text"):
        middle, half = float(text.get("x")), text_width(text.text, 10.5)
        low = middle - {"start": 0, "middle": half / 2, "end": half}[text.get("text-anchor", "start")]
        assert low >= -0.5 and low + half <= float(drawing.get("width")) + 0.5, text.text


def test_requests_from_several_threads():
    P = gl.playground(rosenbrock, a=(-2, 2), b=(-1, 3), steps=20, lr=0.01)
    wrong = []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(15):
            point = rng.uniform([-2, -1], [2, 3])
            told = P.lab.answer("move", {"point": point.tolist()})
            if told["point"] != point.tolist() or told["steps"] not in range(21):
                wrong.append(told)
            with contextlib.suppress(ValueError):
                P.lab.answer("rate", {"lr": float(rng.uniform(0.001, 0.02))})

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_interrupt_propagates_and_the_model_stays_usable():
    on = []

    def f(x):
        if on:
            on.pop()
            raise KeyboardInterrupt
        return x * x

    lab = gl.playground(f, x=(-3, 3)).lab
    for k in range(3):
        on.append(1)
        with pytest.raises(KeyboardInterrupt):
            lab.answer("move", {"point": [0.1 + k]})
    assert lab.answer("move", {"point": [2.0]})["rows"][0][1] == "4"


# ------------------------------------------------------------------------------------------------------------ static forms
def test_outputs_in_a_saved_notebook(tmp_path):
    P = gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4, steps=11)
    data = P.bundle()
    assert {"text/html", "text/plain"} <= set(data) and "image/svg+xml" not in data
    assert "11 steps of SGD with lr = 0.4 take f from 14.48 to 0.0001906" in data["text/plain"]
    svg = P.drawing().svg()
    assert svg.count("<circle") == 12 and "prefers-color-scheme:dark" in svg
    for name in ("f.svg", "f.png"):
        assert P.save(tmp_path / name).stat().st_size > 1000
    with pytest.raises(ValueError, match=r"the suffix must be \.html, \.svg, \.png or \.pdf"):
        P.save(tmp_path / "f.gif")


def test_matplotlib_axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    P = gl.playground(lambda x: 1 * gl.log(x), x=(-1, 3), at={"x": 2.0}, steps=3)
    ax = P.plot()
    assert ax.get_xlim() == (-1, 3) and len(ax.lines) >= 4
    figure, own = plt.subplots()
    assert gl.playground(bowl, p=[(-4, 4), (-2, 2)]).plot(own) is own
    plt.close("all")


def test_the_record_in_a_page_matches():
    pytest.importorskip("anywidget")
    P = gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4), at={"x": 1.6}, steps=2)
    record = P.record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    (places,) = record["places"]
    assert 1.6 in places and places == sorted(places) and len(record["frames"]) == len(places)
    for x, one in zip(places, record["frames"], strict=True):
        assert one["point"] == [pytest.approx(x)] and plain(one["rows"][0][1]) == pytest.approx(x * x - 1, abs=1e-3, rel=1e-3)
    assert [one["steps"] for one in record["path"]][:3] == [0, 1, 2]
    assert P.point.tolist() == [1.6] and len(P.path) == 3, "recording has no side effect"


# ------------------------------------------------------------------------------------------------------------------- torch
@pytest.mark.torch
def test_functions_of_torch():
    torch = pytest.importorskip("torch")
    P = gl.playground(lambda x: torch.sin(3 * x) * torch.exp(-x), x=(-1, 3), at={"x": 0.5}, steps=3)
    expected = math.exp(-0.5) * (3 * math.cos(1.5) - math.sin(1.5))
    assert P.gradient == pytest.approx([expected], rel=1e-12) and only(P)[3] == "agrees"
    x = run(frame(P)["descentCode"], {"torch": torch})
    np.testing.assert_allclose(x.detach().numpy(), P.path[-1], rtol=1e-12)
    Q = gl.playground(lambda p: (p**2).sum(), p=[(-1, 1), (-1, 1)], library="torch")
    assert "torch.tensor" in frame(Q)["code"] and Q.value == pytest.approx(float((Q.point**2).sum()))
    assert "gl.tensor" in frame(gl.playground(lambda p: (p**2).sum(), p=[(-1, 1), (-1, 1)]))["code"], (
        "f is called with gradlab's tensors first"
    )


@pytest.mark.torch
def test_a_model_of_torch_in_float32():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    P = gl.playground(lambda p: model(p).squeeze(), p=[(-2, 2), (-2, 2)], steps=3)
    p = torch.tensor(P.point, dtype=torch.float32, requires_grad=True)
    model(p).squeeze().backward()
    np.testing.assert_allclose(P.gradient, p.grad.numpy(), rtol=1e-5)
    assert {row[3] for row in frame(P)["rows"]} == {"agrees"} and "torch.float32" in P.code
    model.zero_grad()
    assert P.html() and all(w.grad is None for w in model.parameters())


@pytest.mark.torch
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_paths_of_torch(name):
    torch = pytest.importorskip("torch")
    at = {"a": -1.2, "b": 1.0}
    P = gl.playground(rosenbrock, a=(-2, 2), b=(-1, 3), at=at, optimizer=name, lr=0.01, steps=25, library=torch)
    ours = gl.playground(rosenbrock, a=(-2, 2), b=(-1, 3), at=at, optimizer=name, lr=0.01, steps=25)
    a, b = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in at.values())
    cls, options = OPTIMIZERS[name]
    optimizer = getattr(torch.optim, cls)([a, b], lr=0.01, **options)
    for _ in range(25):
        optimizer.zero_grad()
        rosenbrock(a, b).backward()
        optimizer.step()
    np.testing.assert_allclose(P.path[-1], [a.item(), b.item()], rtol=1e-12)
    np.testing.assert_allclose(ours.path, P.path, rtol=1e-9)
