"""Layout of heat maps: cells side by side within the available room, and labels at round elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gradlab.explore.heat_layout import Axis, lay_out


def axis(sizes, bins=None):
    total = sum(sizes)
    starts = np.arange(total) if bins is None else np.linspace(0, total, bins, endpoint=False).astype(int)
    return Axis(None, starts, total, [(size, size) for size in sizes])


def test_labels_are_at_round_elements():
    def round_elements(shapes, start, end, least):
        parts = [(int(np.prod(shape)), shape[-1] if shape else 1) for shape in shapes]
        return list(Axis(None, np.arange(start, end), end, parts).round_elements(least))

    assert round_elements([[10_000]], 0, 10_000, 490) == list(range(0, 10_000, 500))
    assert round_elements([[10_000]], 1231, 1238, 0.9) == list(range(1231, 1238))
    assert round_elements([[10_000]], 1231, 1300, 12) == [1240, 1260, 1280]
    assert round_elements([[8], [5]], 0, 13, 2.5) == [0, 5, 8], "counted in each block, and not close to the end of a block"
    assert round_elements([[3, 48]], 0, 144, 8) == [*range(0, 48, 10), *range(48, 96, 10), *range(96, 144, 10)]
    assert round_elements([[40, 7]], 0, 280, 30) == list(range(0, 280, 35)), "every fifth line"
    assert round_elements([[40, 7]], 0, 280, 7) == list(range(0, 280, 7))
    assert round_elements([[]], 0, 1, 1) == [0] and round_elements([[0], [2]], 0, 2, 1) == [0, 1]


@pytest.mark.parametrize(
    ("m", "n", "room", "across", "sizes"),
    [
        (1, 1, 440, False, [1]),
        (4, 3, 440, False, [3]),
        (4, 3, 440, True, [3]),
        (3, 12, 200, False, [5, 7]),
        (160, 160, 440, False, [160]),
        (160, 2, 440, True, [1, 1]),
        (2, 160, 300, False, [80, 80]),
        (30, 30, 200, True, [10, 10, 10]),
    ],
)
def test_cells_are_beside_one_another_in_the_available_room(m, n, room, across, sizes):
    blocks = [(f"p{k}", int(start)) for k, start in enumerate(np.cumsum([0, *sizes[:-1]]))] if len(sizes) > 1 else []
    written = 40.0 if max(m, n) <= 8 else 0.0
    g = lay_out(axis([m]), axis(sizes), blocks, side=380, room=room, across=across, written=written)
    assert len(g.x) == n and len(g.y) == m
    assert (np.diff(g.x) >= g.wide - 1e-9).all() and np.allclose(np.diff(g.y), g.high), "cells do not overlap"
    assert 0 < g.gap < g.wide <= (50 if written else 30) and 0 < g.high <= 30
    assert g.left + 90 <= room and (g.end[0] <= room or g.right - g.left <= 91)
    starts = np.cumsum([0, *sizes])[1:-1]
    if starts.size:
        np.testing.assert_allclose(np.diff(g.x)[starts - 1], g.wide + 10, err_msg="a gap between arrays")
    x, y, wide, high = g.strip
    if across:
        assert x[0] > g.right and (y == g.y).all() and high == g.high and g.end[0] >= x[0] + wide
    else:
        assert y[0] > g.bottom and (x == g.x).all() and wide == g.wide and g.end[1] == y[0] + high


def test_labels_of_columns_do_not_touch_and_long_ones_are_rotated():
    from gradlab.explore.drawing import text_width

    for n in (3, 12, 40, 300):
        labels = [f"a_long_name[{k}]" for k in range(n)]
        columns = Axis(labels, np.arange(n), n, [(n, n)])
        g = lay_out(axis([3]), columns, [], side=400)
        assert g.upright == (n <= 28), "labels are upright if there is room for a line of text"
        if g.upright:
            assert [name for _, _, name in g.columns] == [columns.label(k) for k in range(n)]
        else:
            ends = [(x - text_width(name, 10.5) / 2, x + text_width(name, 10.5) / 2) for x, _, name in g.columns]
            assert all(before[1] < after[0] for before, after in itertools.pairwise(ends)) and len(ends) > 1
