"""Ticks of axes: round numbers, their labels, and which labels are dropped if there is little room."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from gradlab.explore.axes import Axes, Tick, apart, ticks
from gradlab.explore.drawing import text_width

RANGES = [
    (0, 1), (-3, 3), (0, 1200), (-0.07, 0.31), (1e-9, 3e-9), (-2e6, 5e6), (1000.0001, 1000.0002), (0, 7e-5),
    (-1e300, 1e300), (5, 5), (2, 1), (99_990, 100_010), (0.1, 0.7), (-1, 250_000),
]  # fmt: skip


def test_ticks_are_round_and_labelled():
    assert [t.text for t in ticks(-3, 3, 6)] == ["−3", "−2", "−1", "0", "1", "2", "3"]
    assert [t.text for t in ticks(0, 1, 4)] == ["0", "0.5", "1.0"]
    assert [t.text for t in ticks(1e-5, 1, 6, True)] == ["1e−5", "1e−4", "1e−3", "0.01", "0.1", "1"]
    for (low, high), many in itertools.product(RANGES, (2, 4, 7)):
        found = ticks(low, high, many)
        assert len(found) <= 2 * many + 1
        assert len({t.text for t in found}) == len(found), "labels are unique"
        for at, text in found:
            assert low - 1e-9 * abs(low) <= at <= high + 1e-9 * abs(high)
            assert float(text.replace("−", "-")) == pytest.approx(at, rel=1e-9, abs=1e-300)
    assert ticks(0, math.inf, 5) == [] and ticks(math.nan, 1, 5) == []


@pytest.mark.parametrize(("low", "high"), [(1e-5, 1), (0.3, 7), (1, 1.2), (1e-300, 1e300), (0.02, 90), (1e-12, 1e5), (3e4, 8e4)])
def test_ticks_of_a_logarithmic_axis_are_round_and_in_the_range(low, high):
    for many in (1, 3, 5, 8):
        found = ticks(low, high, many, True)
        assert min(many, 2) <= len(found) <= max(7, 2 * many + 1) and len({t.text for t in found}) == len(found)
        for at, text in found:
            assert low * (1 - 1e-9) <= at <= high * (1 + 1e-9)
            assert float(text.replace("−", "-")) == pytest.approx(at, rel=1e-9)
    assert ticks(-1, 4, 5, True) == [] == ticks(0, 4, 5, True)


def test_axes_map_numbers_to_positions():
    axes = Axes((10, 20, 100, 50), (0, 4), (1, 100), log=True)
    assert [axes.across(x) for x in (0, 1, 4)] == [10, 35, 110]
    assert [axes.down(y) for y in (1, 10, 100)] == pytest.approx([70, 45, 20])
    assert Axes((10, 20, 100, 50), (0, 4), (-1, 1)).down(0.5) == 32.5
    assert axes.attributes() == {"data_frame": "10 20 100 50", "data_x": "0 4", "data_y": "1 100"}
    drawn = axes.grid_svg([Tick(0, "0"), Tick(0.1, "0.1"), Tick(4, "4 000 000")], [Tick(10, "10")], 115)
    assert re.findall(r'x="(\S+)" y="(\S+)" text-anchor="middle">([^<]*)', drawn)[0] == ("10", "84", "0")
    assert "0.1<" not in drawn, "there is no room for the label"
    last = float(re.search(r'x="([^"]+)"[^>]*>4 000 000<', drawn)[1])
    assert last + text_width("4 000 000", 10.5) / 2 < 115, "the label is inside the picture"
    assert 'y="48.6" text-anchor="end">10<' in drawn and "M10 45h100" in drawn


@pytest.mark.parametrize("width", [40, 90, 200, 600])
def test_labels_do_not_touch(width):
    found = ticks(0, 1200, 12)
    kept = apart(found, lambda at: width * at / 1200, 10.5)
    assert kept and kept[0] == found[0] and set(kept) <= set(found)
    for a, b in itertools.pairwise(kept):
        assert width * (b.at - a.at) / 1200 > (text_width(a.text, 10.5) + text_width(b.text, 10.5)) / 2
    assert apart(found, lambda at: at, 10.5) == found
    assert apart([], float, 10.5) == [] and apart([Tick(1, "1")], float, 10.5) == [Tick(1, "1")]
