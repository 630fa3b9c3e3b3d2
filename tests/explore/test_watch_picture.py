"""The picture of a watched training: positions and colours match the axes and the scale that the test reads from it."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.drawing import GRADIENT, VALUE
from gradlab.explore.theme import hex_of
from gradlab.explore.watch.picture import COLUMNS, last_of, live, spread

SVG = "{http://www.w3.org/2000/svg}"


def train(layers, steps, *, bad=None, rate=0.05, loss="loss"):
    gl.manual_seed(0)
    net = gl.nn.Sequential(*(gl.nn.Linear(3, 3) for _ in range(layers)))
    optimizer, x = gl.optim.SGD(net.parameters(), lr=rate), gl.randn(8, 3)
    with gl.watch(net, optimizer, loss=loss) as watch:
        for step in range(steps):
            optimizer.zero_grad()
            error = ((net(x) - x) ** 2).mean() * (math.nan if step == bad else 1)
            error.backward()
            if step != bad:
                optimizer.step()
            watch.log(error)
    return watch


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def texts(root, anchor):
    return [(float(e.get("x")), float(e.get("y")), e.text) for e in root.iter(f"{SVG}text") if e.get("text-anchor") == anchor]


def steps_of(root):
    """Return a function from pixels to steps, read from the numbers below a plot."""
    (x0, y0, first), *more = texts(root, "middle")
    x1, last = next((x, text) for x, y, text in reversed(more) if y == y0)
    return lambda x: number(first) + (x - x0) * (number(last) - number(first)) / (x1 - x0)


def test_the_line_of_the_loss_has_the_losses():
    watch = train(2, 50)
    root = ET.fromstring(watch.svg(theme="light"))
    line = next(e for e in root.iter(f"{SVG}path") if e.get("stroke") == hex_of(VALUE))
    points = np.array([point.split(" ") for point in line.get("d")[1:].split("L")], float)
    assert steps_of(root)(points[:, 0]) == pytest.approx(np.arange(50) + 0.5, abs=0.1)
    inside = [(y - 3.6, number(text)) for x, y, text in root_ticks(root) if points[:, 1].min() - 9 < y < points[:, 1].max() + 9]
    (y0, low), (y1, high) = inside[0], inside[-1]
    values = low + (points[:, 1] - y0) * (high - low) / (y1 - y0)
    losses = watch.history()["loss"]
    assert values == pytest.approx(losses, abs=0.01 * (losses.max() - losses.min()))
    assert f">{losses[-1]:.3g}<" in watch.svg()


def root_ticks(root):
    """Return the numbers at the left of plots."""
    return [one for one in texts(root, "end") if re.fullmatch(r"−?[\d.]+(e−?\d+)?", one[2]) and one[0] < 160]


@pytest.mark.parametrize(("layers", "steps"), [(2, 40), (9, 300)])
def test_the_colours_of_stripes_are_those_of_the_scale(layers, steps):
    watch = train(layers, steps)
    root = ET.fromstring(watch.svg(theme="light"))
    at = steps_of(root)
    orange = [e for e in root.iter(f"{SVG}g") if e.get("stroke") == hex_of(GRADIENT)]
    scale, stripes = orange
    y = float(scale[0].get("d").split(" ")[1].split("h")[0])
    low, high = (number(text) for x, top, text in sorted(all_texts(root)) if abs(top - 3 - y) < 0.1 and x > 400)
    found = {}
    for path in stripes:
        for x, row, wide in re.findall(r"M(\d+) ([\d.]+)h(\d+)", path.get("d")):
            found.setdefault(float(row), []).append((float(x), float(x) + float(wide), float(path.get("stroke-opacity"))))
    assert len(found) == layers
    data = watch.history()
    each = math.ceil(len(data["step"]) / COLUMNS)
    for row, name in zip(sorted(found), watch.layers, strict=True):
        pieces = sorted(found[row])
        assert all(a[1] == b[0] for a, b in pairwise(pieces)), "no gap, and nothing twice"
        assert at(pieces[0][0]) == pytest.approx(0, abs=0.5 * steps / 600) and at(pieces[-1][1]) == pytest.approx(steps, rel=0.01)
        if each > 1:
            continue
        for step, norm in zip(data["step"], data[f"gradient {name}"], strict=True):
            if norm == norm:
                shade = next(opacity for x, end, opacity in pieces if at(x) <= step - 0.5 < at(end))
                assert shade == pytest.approx(math.log(norm / low) / math.log(high / low), abs=0.05)


def all_texts(root):
    return [(float(e.get("x")), float(e.get("y")), e.text) for e in root.iter(f"{SVG}text") if re.match("[−\\d]", e.text)]


def test_few_layers_have_lines_and_many_share_stripes():
    few, many, most = (train(layers, 5).svg(theme="light") for layers in (6, 7, 60))
    assert few.count("<circle") == 7 and "rule of thumb)<" in few
    assert many.count("<circle") == 1 and "usual: 1e−4 … 1e−2" in many
    names = re.findall(r"net\[(\d+)\] …<", most)
    assert names == [str(k) for k in range(0, 60, 3)] * 2, "three neighbours share one"


def test_what_is_not_finite_is_marked_and_said():
    watch = train(2, 30, bad=20, loss="cost")
    svg = watch.svg()
    assert "not finite<" in svg and 'stroke-dasharray="4 3"' in svg
    (rule,) = re.findall(r'<path d="M(\S+) [^"]*" stroke="#1c2430" stroke-dasharray', svg)
    assert steps_of(ET.fromstring(svg))(float(rule)) == pytest.approx(20, abs=0.05)
    title, said = watch.drawing().alt.split("\n")
    losses = watch.history()["loss"]
    assert title.startswith("Step 29 · cost")
    assert f"cost goes from {losses[0]:.3g} to {losses[~np.isnan(losses)][-1]:.3g}." in said
    assert "At the end, ‖gradient‖ of 2 layers ranges from " in said and " in net[0]" in said and " in net[1]" in said
    assert said.endswith("The first loss or gradient that was not finite is at step 21.")


def test_a_view_is_told_the_axis_of_steps():
    root = ET.fromstring(live(train(2, 30)))
    assert root.get("data-x") == "0 30" and root.get("role") == "img" and "gl-figure" in root.get("class")
    left, top, width, height = map(float, root.get("data-frame").split(" "))
    at = steps_of(root)
    assert at(left) == pytest.approx(0, abs=0.05) and at(left + width) == pytest.approx(30, abs=0.05)
    numbers = sorted({y for _, y, text in texts(root, "middle") if text == "10"})
    assert top < numbers[0] and top + height == pytest.approx(numbers[-1] - 14, abs=0.1)


def test_a_long_name_of_a_loss_and_one_without_a_loss():
    assert ">" + "l" * 39 + "…<" in train(1, 3, loss="l" * 60).svg()
    w = gl.ones(2).requires_grad_()
    with gl.watch({"w": w}) as watch:
        assert "‖gradient‖<" in live(watch), "before the first step"
        for _ in range(3):
            (w * 0).sum().backward()
            watch.end_step()
    assert "At the end, ‖gradient‖ of w is 0." in watch.drawing().alt


def test_numbers_beside_lines_do_not_touch():
    assert spread([1.0, 2.0, 30.0], 10, 100) == [1, 11, 30]
    assert spread([90.0, 95.0, 99.0], 10, 100) == [80, 90, 100]
    nan = math.nan
    assert last_of(np.array([[1, nan, 3], [4, nan, nan]])) == pytest.approx([4, nan, 3], nan_ok=True)
    assert np.isnan(last_of(np.zeros((0, 2)))).tolist() == [True, True]
