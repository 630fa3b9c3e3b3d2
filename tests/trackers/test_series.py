"""The names and groups of the series that trackers get."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from by_hand import Training
from stand_ins import Recorder

import gradlab as gl
from gradlab.explore.watch.measuring import SeriesLayout
from gradlab.explore.watch.tracking.series import Series, group_layers, module_path


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net[0]", "0"),
        ("net.layers[3].attn", "layers.3.attn"),
        ("net.heads['1'].fc", "heads.1.fc"),
        ("net", "net"),
        ("weights", "weights"),
    ],
)
def test_layers_have_pytorchs_paths(name, path):
    assert module_path(name, "net") == path


def test_few_layers_are_groups_of_their_own():
    groups = group_layers(["0", "2", "4"], "net")
    assert groups.names == ("0", "2", "4") and groups.of_layer.tolist() == [0, 1, 2]


def test_the_deepest_level_with_few_groups():
    paths = [f"blocks.{i}.{part}" for i in range(20) for part in ("attn.q", "attn.v", "mlp")]
    groups = group_layers(["embed", *paths], "net")
    assert groups.names == ("embed", *(f"blocks.{i}" for i in range(20)))
    assert groups.of_layer.tolist() == [0, *(1 + i for i in range(20) for _ in range(3))]
    assert groups.first == (0, *(1 + 3 * i for i in range(20)))


def test_neighbouring_blocks_share_a_group():
    """With 36 blocks, the modules above them alone would be two groups."""
    paths = [f"h.{i}.{part}" for i in range(36) for part in ("attn", "mlp")]
    groups = group_layers(["wte", *paths], "net")
    assert groups.names == ("wte", *(f"h.{i}-{i + 1}" for i in range(0, 36, 2)))
    assert groups.of_layer.tolist() == [0, *(1 + i // 2 for i in range(36) for _ in range(2))]


def test_layers_without_numbers_become_one_group():
    assert group_layers([f"layer_{i}x" for i in range(40)], "net").names == ("net",)


def test_a_thousand_layers_are_few_series():
    model = gl.nn.Sequential(*(gl.nn.Linear(2, 2, bias=False) for _ in range(1000)))
    optimizer = gl.optim.SGD(model.parameters(), lr=1e-3)
    tracker = Recorder()
    with gl.watch(model, optimizer, to=tracker) as w:
        gl.cat(list(model.parameters())).square().sum().backward()
        optimizer.step()
        w.log(1.0)
    names = set().union(*tracker.scalars.values())
    assert len(w.layers) == 1000
    assert {name for name in names if name.startswith("gradient_norm/")} == {
        f"gradient_norm/{a}-{min(a + 31, 999)}" for a in range(0, 1000, 32)
    }
    assert len(names) <= 3 + 4 * 32


def row_of(layout, gradient, ratio, weight):
    row = np.full(layout.size, np.nan)
    row[layout.gradient], row[layout.ratio], row[layout.weight] = gradient, ratio, weight
    return row


def test_numbers_of_groups():
    layout = SeriesLayout(40, 0)
    of = SimpleNamespace(model_name="net", layers=[f"net[{i}]" for i in range(40)], activations=[])
    series = Series(of, layout)
    drawn = np.random.default_rng(0)
    gradient, moved, weight = drawn.uniform(1, 2, (3, 40))
    gradient[3] = ratio_missing = np.nan
    ratio = moved / weight
    ratio[0] = ratio_missing
    numbers = series.scalars(row_of(layout, gradient, ratio, weight))
    assert numbers["gradlab/gradient_norm"] == pytest.approx(np.sqrt(np.nansum(gradient**2)))
    assert numbers["gradient_norm/2-3"] == pytest.approx(gradient[2])
    assert numbers["gradient_norm/4-5"] == pytest.approx(np.hypot(gradient[4], gradient[5]))
    assert numbers["update_ratio/0-1"] == pytest.approx(moved[1] / weight[1])
    assert numbers["update_ratio/4-5"] == pytest.approx(np.hypot(*moved[4:6]) / np.hypot(*weight[4:6]))
    assert numbers["weight_norm/4-5"] == pytest.approx(np.hypot(*weight[4:6]))
    assert "gradlab/loss" not in numbers  # it was not measured


def test_a_number_that_is_not_finite_is_nan():
    layout = SeriesLayout(2, 0)
    series = Series(SimpleNamespace(model_name="net", layers=["net.a", "net.b"], activations=[]), layout)
    numbers = series.scalars(row_of(layout, [np.inf, 1.0], [np.nan, np.nan], [np.nan, np.nan]))
    assert math.isnan(numbers["gradient_norm/a"]) and numbers["gradient_norm/b"] == 1.0
    assert math.isnan(numbers["gradlab/gradient_norm"])
    assert numbers.keys() == {"gradient_norm/a", "gradient_norm/b", "gradlab/gradient_norm"}


def test_tensors_keep_their_names():
    a = gl.ones(2, requires_grad=True)
    tracker = Recorder()
    optimizer = gl.optim.SGD([a], lr=0.1)
    with gl.watch({"first": a}, optimizer, to=tracker) as w:
        a.square().sum().backward()
        optimizer.step()
        w.log(2.0)
    assert tracker.scalars[1]["gradient_norm/first"] == pytest.approx(np.sqrt(8))


def test_steps_begin_with_an_offset():
    tracker, training = Recorder(), Training(steps=3)
    lib_watch = gl.watch

    def watch(*args, **options):
        w = lib_watch(*args, **options)
        w.tracking.first_step = 100
        return w

    gl.watch = watch
    try:
        training.watch(tracker)
    finally:
        gl.watch = lib_watch
    assert sorted(tracker.scalars) == [101, 102, 103]
