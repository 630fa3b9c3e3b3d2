"""The live map of a Jacobian: which parts a frame redraws, and that they show its numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.heat_colours import colour, contrast
from gradlab.explore.jacobian import jacobian, live_map
from gradlab.explore.jacobian.live_map import COLOURS, class_colour
from gradlab.explore.jacobian.view_model import JacobianViewModel

SVG = "{http://www.w3.org/2000/svg}"


def model(matrix):
    x = gl.tensor(np.ones(matrix.shape[1]), requires_grad=True)
    return JacobianViewModel(jacobian(gl.tensor(matrix) @ x, x, names={"x": x}))


def mix(made, weights):
    which = np.flatnonzero(weights).astype("<i4")
    return made.answer("mix", {}, [which.tobytes(), np.asarray(weights, "<f8")[which].tobytes()])[0]


def fills(text):
    """Return the colours of cells by position (x, y)."""
    rects = [rect for rect in ET.fromstring(text).iter(f"{SVG}rect") if (rect.get("fill") or "").startswith("#")]
    return {(float(rect.get("x")), float(rect.get("y"))): rect.get("fill") for rect in rects}


def test_cells_have_the_positions_of_the_layout_and_the_colours_of_their_numbers():
    matrix = np.array([[1.0, -4.0, 0.0], [2.0, 3.0, -1.0]])
    made = model(matrix)
    made.answer("hello", {"room": 300}, [])
    for row in range(2):
        frame, _ = made.answer("go", {"at": row}, [])
    layout = frame["layout"]
    places = [(round(x, 1), round(y, 1)) for y in layout["y"] for x in layout["x"]]
    want = dict(zip(places, [colour(value, 4) for value in matrix.reshape(-1)], strict=True))
    assert fills(frame["map"]) == want
    assert list(fills(frame["over"]).values()) == [colour(value, 4) for value in matrix[1]]
    assert all(y == layout["strip"][0] for _, y in fills(frame["over"]))
    assert "gl-now" in frame["over"] and "gl-now" not in frame["map"]
    assert ET.fromstring(frame["map"]).find(f"{SVG}title").text == "Jacobian of y with respect to x"
    assert ET.fromstring(frame["map"]).find(f"{SVG}desc").text == "Rows 0 to 1, columns 0 to 2; colours from −4 to 4"


def test_a_slider_redraws_only_the_strip_unless_the_scale_changes():
    made = model(np.array([[1.0, -4.0], [2.0, 3.0]]))
    made.answer("hello", {}, [])
    made.answer("fill", {}, [])
    small = mix(made, [0.5, 0.25])
    assert "map" not in small and "layout" not in small
    assert list(fills(small["over"]).values()) == [colour(1.0, 4), colour(-1.25, 4)]
    large = mix(made, [2.0, 0.0])
    assert list(fills(large["over"]).values()) == [colour(2.0, 8), colour(-8.0, 8)]
    assert colour(-4.0, 8) in fills(large["map"]).values() and not large["moved"]
    assert "map" in mix(made, [0.5, 0.25]), "and back"
    assert made.answer("hello", {}, [])[0]["map"], "for a view without a map"


def test_width_axis_and_window_move_the_cells():
    made = model(np.ones((2, 30)))
    wide = made.answer("hello", {"room": 400}, [])[0]
    narrow = made.answer("room", {"room": 200}, [])[0]
    assert wide["moved"] and narrow["moved"] and narrow["layout"]["wide"] < wide["layout"]["wide"]
    assert "map" not in made.answer("room", {"room": 200}, [])[0]
    turned = made.answer("axis", {"by": "columns"}, [])[0]
    assert turned["moved"] and turned["layout"]["strip"][0] > turned["layout"]["x"][-1]
    zoomed = made.answer("window", {"window": [0, 2, 3, 10]}, [])[0]
    assert zoomed["moved"] and len(zoomed["layout"]["x"]) == 7


def test_many_cells_are_one_small_bitmap():
    made = model(np.random.default_rng(0).normal(size=(160, 160)))
    made.answer("hello", {}, [])
    for _ in range(100):
        frame, _ = made.answer("fill", {}, [])
        if frame["known"]:
            break
    assert frame["map"].count("<image") == 3 and len(frame["map"]) < 50_000
    assert len(mix(made, np.eye(160)[0] / 4)["over"]) < 3_000


def test_names_are_escaped_and_a_matrix_without_cells_has_no_map():
    x = gl.tensor([1.0], requires_grad=True)
    evil = "</svg><script>"
    made = JacobianViewModel(jacobian(x * 2, x, names={evil: x}))
    frame, _ = made.answer("hello", {}, [])
    assert not list(ET.fromstring(frame["map"]).iter(f"{SVG}script")) and "<script" not in frame["map"]
    assert "map" not in model(np.ones((0, 3))).answer("hello", {}, [])[0]


def test_colour_classes_differ_and_their_numbers_are_readable():
    pairs = [class_colour(k) for k in range(len(COLOURS))]
    assert len({fill for fill, _ in pairs}) == 10 and class_colour(13) == pairs[3], "the colours repeat"
    for fill, ink in pairs:
        assert contrast(tuple(bytes.fromhex(fill[1:])), tuple(bytes.fromhex(ink[1:]))) >= 4.5, fill


@pytest.mark.parametrize("columns", [False, True])
def test_colour_classes_are_drawn_at_possible_nonzeros(columns):
    x = gl.tensor(np.arange(1.0, 6.0), requires_grad=True)
    made = JacobianViewModel(jacobian(x * x, x, names={"x": x}, method="sparse"))
    made.answer("hello", {}, [])
    if columns:
        made.answer("axis", {"by": "columns"}, [])
    frame, arrays = made.colours()
    numbers = re.findall(r">(\d+)</text>", frame["map"][frame["map"].index("gl-group") :])
    classes = arrays["groupCells"]
    assert [int(one) for one in numbers] == classes[classes >= 0].tolist() and len(numbers) == 5
    assert [tuple(group["colours"]) for group in frame["groups"]] == [class_colour(k) for k in range(len(frame["groups"]))]


def test_a_map_whose_drawing_was_interrupted_is_sent_with_the_next_frame(monkeypatch):
    made = model(np.eye(3, 24))
    made.answer("hello", {"room": 440}, [])

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(live_map, "draw_scale", interrupt)
        with pytest.raises(KeyboardInterrupt):
            made.answer("room", {"room": 200}, [])
    frame, _ = made.answer("room", {"room": 200}, [])
    width = float(ET.fromstring(frame["map"]).get("width"))
    assert frame["moved"] and max(frame["layout"]["x"]) < width < 240
