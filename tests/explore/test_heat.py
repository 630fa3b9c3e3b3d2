"""The heat map: its colours, pooling, unfilled and nonfinite cells, labels and escaping."""

from __future__ import annotations

import base64
import io
import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from gradlab.explore.heat import heatmap
from gradlab.explore.heat_colours import SIGNED, VALUES, colour, ink_on
from gradlab.explore.heat_svg import brief, number
from gradlab.explore.pooled_matrix import bins, matrix_of, pool

SVG = "{http://www.w3.org/2000/svg}"


def tree(drawing):
    return ET.fromstring(drawing.svg())


def cells(drawing):
    """Return the colours of the filled cells, in order."""
    return [rect.get("fill") for rect in tree(drawing).iter(f"{SVG}rect") if rect.get("rx") == "3" and rect.get("fill")]


def texts(drawing):
    return ["".join(node.itertext()) for node in tree(drawing).iter(f"{SVG}text")]


def rgb(text):
    return np.array(list(bytes.fromhex(text[1:])), int)


def test_hue_shows_the_sign_and_intensity_the_magnitude():
    assert colour(-2.0, 2.0) == "#5e3c99" and colour(0.0, 2.0) == "#f6f4f3" and colour(2.0, 2.0) == "#d55e00"
    white = rgb(colour(0, 1))
    for sign in (-1, 1):
        away = [np.abs(rgb(colour(sign * t, 1)) - white).sum() for t in np.linspace(0, 1, 20)]
        assert all(a < b for a, b in itertools.pairwise(away))
    half = rgb(colour(0.5, 1))
    assert np.abs(half - (white + rgb(colour(1, 1))) / 2).max() <= 1, "the scale is linear"


def test_colours_of_cells_and_the_symmetric_scale():
    drawing = heatmap([[1.0, -4.0], [0.0, 2.0]], title="w.grad")
    assert cells(drawing) == [colour(1, 4), colour(-4, 4), colour(0, 4), colour(2, 4)]
    shown = texts(drawing)
    assert {"w.grad", "−4", "+4", "least −4 · greatest +2"} <= set(shown)
    assert drawing.text.splitlines()[0] == "w.grad" and re.search(r"0 +1 +−4", drawing.text)


def test_nonfinite_cells_have_different_marks_and_are_counted():
    drawing = heatmap([[np.nan, np.inf, -np.inf, 1.0]])
    paths = [path.get("d") for path in tree(drawing).iter(f"{SVG}path") if path.get("stroke-width") == "2"]
    assert len(paths) == 3 and len({re.sub(r"[\d. -]", "", path) for path in paths}) == 3, "three kinds of marks"
    assert "1 NaN (marked ×), 1 +inf (marked +), 1 −inf (marked −)" in drawing.text
    assert cells(drawing)[1:3] == [colour(1, 1), colour(-1, 1)] and cells(drawing)[3] == colour(1, 1)
    assert heatmap([[np.nan, np.nan]]).svg() and "no finite value" in heatmap([[np.nan]]).text
    assert "no finite value" in texts(heatmap([[np.nan]])) and "least" not in heatmap([[np.nan, np.inf]]).text


def test_unfilled_cells_are_outlined():
    drawing = heatmap(np.ones((3, 2)), filled=[True, False, True])
    outlines = [group for group in tree(drawing).iter(f"{SVG}g") if group.get("stroke-dasharray")]
    assert len(cells(drawing)) == 4 and [len(group) for group in outlines] == [2]
    assert "2 of 6 cells not computed yet" in drawing.text
    assert drawing.text.count("·") == 2
    corner = heatmap(np.ones((3, 2)), filled=[[True, False], [False, False], [False, False]])
    assert "5 of 6 cells" in corner.text
    assert "not computed" not in heatmap(np.ones((3, 2)), filled=np.ones(3, bool)).text
    hidden = heatmap([[1.0, 100.0]], filled=[[True, False]])
    assert "greatest 1" in hidden.text and "100" not in hidden.text, "the value of an unfilled cell is ignored"


def test_pooling_keeps_the_largest_magnitude_with_its_sign():
    values = np.random.default_rng(0).normal(size=(130, 70))
    values[7, 9], values[100, 3], values[50, 50] = -50.0, np.nan, np.inf
    starts = bins([("", 130)], 64), bins([("", 70)], 64)
    assert [len(s) for s in starts] == [64, 64] and starts[0][0] == 0
    pooled, shown = pool(values, *starts)
    edges = np.append(starts[0], 130), np.append(starts[1], 70)
    for i in range(64):
        for j in range(64):
            block = values[edges[0][i] : edges[0][i + 1], edges[1][j] : edges[1][j + 1]].ravel()
            want = np.nan if np.isnan(block).any() else block[np.argmax(np.abs(block))]
            np.testing.assert_equal(pooled[i, j], want)
    assert shown.all()
    text = heatmap(values).text
    assert "130 × 70 pooled to 64 × 64" in text and "least −50" in text
    assert "pooled" not in heatmap(values[:64, :64]).text


def test_bins_do_not_cross_blocks():
    starts = bins([("x", 150), ("", 0), ("w", 49), ("b", 1)], 64)
    assert len(starts) <= 64 and {0, 150, 199} <= set(starts.tolist()) and (np.diff(starts) > 0).all()
    assert len(bins([(str(k), 2) for k in range(500)], 64)) == 64
    np.testing.assert_array_equal(bins([("x", 3), ("y", 2)], 64), range(5))


def decode(drawing):
    """Return the RGBA pixels of the embedded bitmap with the map's colours."""
    image = next(tree(drawing).iter(f"{SVG}image"))
    return np.array(Image.open(io.BytesIO(base64.b64decode(image.get("href").partition(",")[2]))).convert("RGBA"), int)


def test_a_large_map_is_one_small_bitmap_with_the_same_colours():
    values = np.random.default_rng(1).uniform(-1, 1, (40, 50))
    values[0, 0], values[0, 1], values[0, 2], values[0, 3] = 1, np.nan, np.inf, -np.inf
    filled = np.ones(40, bool)
    filled[-1] = False
    drawing = heatmap(values, filled=filled)
    pixels = decode(drawing)
    assert pixels.shape == (320, 400, 4)
    middle = pixels[::8][:, ::8][:, :, :3]
    for i, j in [(0, 0), (3, 4), (38, 49), (20, 20)]:
        assert np.abs(middle[i, j] - rgb(colour(values[i, j], 1))).max() <= 2
    tiles = [pixels[:8, 8 * j : 8 * j + 8, :3].reshape(-1, 3) for j in (1, 2, 3)]
    assert all(len(np.unique(tile, axis=0)) == 2 for tile in tiles), "each has a mark"
    assert (pixels[-8:, :, 3] == 0).any() and (pixels[:-8, :, 3] == 255).all(), "unfilled cells are transparent"
    full = heatmap(np.random.default_rng(2).normal(size=(64, 64)))
    assert len(full.svg()) < 20_000
    assert len(full.png()) > 1000


def test_labels_are_dropped_so_that_they_do_not_touch():
    from gradlab.explore.drawing import text_width

    for n, name in ((5, "x[{}]"), (64, "x[{}]"), (1000, "weight[{},3]"), (30, "a_rather_long_name[{}]")):
        drawing = heatmap(np.ones((2, n)), columns=[name.format(k) for k in range(n)])
        placed = [
            (float(t.get("x")), t.text)
            for t in tree(drawing).iter(f"{SVG}text")
            if t.get("text-anchor") == "middle" and t.get("font-size") == "10.5" and t.text != "0" and not t.get("transform")
        ]
        for (x0, a), (x1, b) in itertools.pairwise(placed):
            assert x1 - x0 >= (text_width(a, 10.5) + text_width(b, 10.5)) / 2
        ends = [
            float(t.get("x"))
            + text_width(t.text, float(t.get("font-size"))) * {"middle": 0.5, "end": 0.0}.get(t.get("text-anchor"), 1.0)
            for t in tree(drawing).iter(f"{SVG}text")
            if t.text and t.get("font-size") and not t.get("transform")  # numbers in cells inherit the size of their group
        ]
        assert max(ends) <= drawing.width + 2, "labels at the right are inside the picture"


def test_names_are_escaped():
    evil = '"]]></svg><script>alert(1)</script>$\\'
    drawing = heatmap([[1.0]], title=evil, rows=[evil], columns=[evil], remark=evil, blocks=[(evil, 1)])
    assert all(node.tag != f"{SVG}script" for node in tree(drawing).iter()) and "<script" not in drawing.svg()


def numbers_in_cells(drawing):
    """Return (text, its colour, the colour of the cell) for each number in a cell, in order."""
    grounds = [rect.get("fill") for rect in tree(drawing).iter(f"{SVG}rect") if rect.get("rx") == "3" and rect.get("fill")]
    written = [(node.text, node.get("fill")) for node in tree(drawing).iterfind(f".//{SVG}g[@font-size='10']/{SVG}text")]
    return [(text, ink, ground) for (text, ink), ground in zip(written, grounds, strict=True)]


def luminance(colour):
    """Return the relative luminance of an sRGB colour as defined in WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb(colour) / 255]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_small_maps_have_readable_numbers_in_their_cells():
    values = np.linspace(-1, 1, 64).reshape(8, 8)
    found = numbers_in_cells(heatmap(values))
    assert [text for text, *_ in found[:2]] == ["−1", "−0.968"] and len(found) == 64
    for text, ink, ground in found:
        assert float(text.replace("−", "-")) == pytest.approx(values.flat[found.index((text, ink, ground))], abs=5e-3)
        bright, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, ink, ground)
    assert len({ink for _, ink, _ in found}) > 1, "both dark and light text occur"
    for t in np.linspace(-1, 1, 401):
        bright, dark = sorted(
            (luminance(colour(t, 1)), luminance("#" + bytes(ink_on(tuple(rgb(colour(t, 1))))).hex())), reverse=True
        )
        assert (bright + 0.05) / (dark + 0.05) >= 4.5
    assert "gl-digits" not in heatmap(np.ones((9, 2))).svg()
    partly = heatmap(np.ones((2, 2)), filled=[True, False])
    assert len(numbers_in_cells(partly)) == 2
    marked = heatmap([[np.nan, 3.0]])
    assert [node.text for node in tree(marked).iterfind(f".//{SVG}g[@font-size='10']/{SVG}text")] == ["3"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.0722, "0.0722"),
        (-0.0167, "−0.017"),
        (-0.123, "−0.123"),
        (12345.0, "12345"),
        (-12345.0, "−12345"),
        (123456.0, "1.23e5"),
        (-123456.0, "−1.2e5"),
        (1.23e-5, "1.2e−5"),
        (0.3125, "0.313"),
        (999.95, "1000"),
        (1e-300, "1e−300"),
    ],
)
def test_numbers_in_cells_are_short(value, text):
    assert brief(value) == text
    assert float(text.replace("−", "-")) == pytest.approx(value, rel=0.05)


def test_uncomputed_cells_are_not_drawn_as_zero():
    drawing = heatmap(np.zeros((3, 3)), filled=np.zeros(3, bool))
    assert "not computed yet" in drawing.text and "0" not in texts(drawing)[-1]
    assert not {"all 0", "least 0 · greatest 0"} & set(texts(drawing)) and "least" not in drawing.text


@pytest.mark.parametrize(("side", "beside"), [(400, True), (180, False)])
def test_the_extremes_are_below_the_scale_of_a_narrow_map(side, beside):
    drawing = heatmap(np.linspace(-1, 2, 1600).reshape(40, 40), side=side)
    places = {node.text: node for node in tree(drawing).iter(f"{SVG}text")}
    said, end = places["least −1 · greatest +2"], places["positive +2"]
    assert (float(said.get("y")) < float(end.get("y"))) == beside
    assert (float(said.get("x")) > float(end.get("x"))) == beside
    assert float(said.get("y")) + 3 < drawing.height and drawing.width < side + 60


def test_the_legend_names_the_signs_if_there_is_room():
    wide, narrow = texts(heatmap(np.ones((2, 20)), what="gradient")), texts(heatmap(np.ones((2, 2)), what="value"))
    assert {"−1 negative", "0", "positive +1", "gradient: all +1"} <= set(wide)
    assert {"−1", "0", "+1", "value: all +1"} <= set(narrow) and not re.search("negative|positive", "".join(narrow))


# Linear RGB as a dichromat sees it: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A physiologically-based model for
# simulation of color vision deficiency", IEEE Trans. Vis. Comput. Graph. 15(6), 2009, table 1, severity 1. Gray: BT.709.
SIGHTS = {
    "usual": np.eye(3),
    "gray": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}


def lightness(pixels, sight):
    """Return CIE L* of pixels (0 to 255) as seen with a kind of colour vision."""
    srgb = np.asarray(pixels) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4) @ np.transpose(SIGHTS[sight])
    y = np.clip(linear, 0, 1) @ [0.2126, 0.7152, 0.0722]
    return np.where(y > (6 / 29) ** 3, 116 * np.cbrt(y) - 16, y * (29 / 3) ** 3)


@pytest.mark.parametrize("anchors", [SIGNED, VALUES])
@pytest.mark.parametrize("side", [12, 50])  # single cells and a bitmap
def test_signs_can_be_distinguished_without_colour(side, anchors):
    strengths = np.geomspace(0.03, 1, side)
    values = strengths * np.where(np.indices((side, side)).sum(0) % 2, -1, 1)
    drawing = heatmap(values, anchors=anchors)
    kind = "rect[@rx='3']" if side == 12 else "image"
    box = tree(drawing).find(f".//{SVG}{kind}")
    left, top, pitch = float(box.get("x")), float(box.get("y")), 30 if side == 12 else float(box.get("width")) / side
    picture = np.array(Image.open(io.BytesIO(drawing.png(width=int(2 * drawing.width)))).convert("RGB"))
    scale = picture.shape[1] / drawing.width
    for sight in SIGHTS:
        light = lightness(picture, sight)
        for i, j in np.ndindex(values.shape):
            ends = [[int(scale * (at + pitch * (k + part))) for part in (0.2, 0.8)] for at, k in ((top, i), (left, j))]
            spread = np.ptp(light[slice(*ends[0]), slice(*ends[1])])
            if values[i, j] > 0:
                assert spread < 1, (sight, values[i, j])
            else:
                assert spread > 2 * 2.3, (sight, values[i, j])  # a difference of 2.3 is just noticeable


def test_values_close_to_zero_are_not_hatched():
    for side in (12, 50):
        drawing = heatmap(np.where(np.eye(side), 1.0, -0.01))
        assert heatmap(np.where(np.eye(side), 1.0, 0.0)).svg().count("<image") == drawing.svg().count("<image")
        assert not re.search('d="M[^"]*v28"', drawing.svg())


def test_labels_are_at_round_elements():
    drawing = heatmap(np.eye(5000, 777), rows=[f"y[{k}]" for k in range(5000)], columns=[f"x[{k}]" for k in range(777)])
    labels = {node.text: (float(node.get("x")), float(node.get("y"))) for node in tree(drawing).iter(f"{SVG}text")}
    rows = sorted(int(name[2:-1]) for name in labels if name.startswith("y["))
    columns = sorted(int(name[2:-1]) for name in labels if name.startswith("x["))
    for found in (rows, columns):
        step = found[1] - found[0]
        assert found == list(range(0, found[-1] + 1, step)) and str(step).rstrip("0") in ("1", "2", "5")
    image = next(tree(drawing).iter(f"{SVG}image"))
    top, height = float(image.get("y")), float(image.get("height"))
    for k in rows:  # position of the element
        assert labels[f"y[{k}]"][1] - 3.7 == pytest.approx(top + k / 5000 * height, abs=height / 64)


def test_vectors_numbers_and_errors():
    assert matrix_of([1, 2, 3]).shape == (1, 3) and matrix_of(5.0).shape == (1, 1)
    assert matrix_of(np.zeros((2, 2), np.float16)).dtype == np.float32
    assert "all 0" in texts(heatmap([[0.0, 0.0]]))
    assert "nothing to show" in heatmap(np.zeros((0, 3))).text
    assert number(-0.012345) == "−0.0123" and number(2.0, sign=True) == "+2" and number(-0.0) == "0"
    with pytest.raises(ValueError, match=r"one or two axes; got shape \(2, 2, 2\)"):
        heatmap(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError, match="real numbers; got dtype complex128"):
        heatmap(np.zeros((2, 2), complex))
    with pytest.raises(ValueError, match="got 3 labels for 2 rows"):
        heatmap(np.zeros((2, 2)), rows=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"filled has shape \(3,\)"):
        heatmap(np.zeros((2, 2)), filled=[True, True, True])
    with pytest.raises(ValueError, match="blocks of"):
        heatmap(np.zeros((2, 2)), blocks=[("x", 3)])


def test_highlight_outlines_one_row():
    def outline(drawing):
        return [
            (float(r.get("y")), float(r.get("height")))
            for r in tree(drawing).iter(f"{SVG}rect")
            if r.get("stroke-width") == "2.2"
        ]

    first, third = outline(heatmap(np.ones((5, 3)), highlight=0)), outline(heatmap(np.ones((5, 3)), highlight=2))
    assert len(first) == len(third) == 1 and third[0][0] - first[0][0] == pytest.approx(60)
    assert outline(heatmap(np.ones((5, 3)))) == []


def test_tooltips_have_the_elements_of_a_cell_and_its_number():
    def tips(drawing):
        return [node.text for node in tree(drawing).iterfind(f".//{SVG}rect/{SVG}title")]

    assert tips(heatmap([[1.0, -0.123456789]], columns=["a", "<b>"], tips=True)) == ["[0, a] 1", "[0, <b>] −0.123457"]
    pooled = tips(heatmap(np.arange(16.0).reshape(4, 4), limit=2, tips=True))
    assert pooled == ["[0 … 1, 0 … 1] 5", "[0 … 1, 2 … 3] 7", "[2 … 3, 0 … 1] 13", "[2 … 3, 2 … 3] 15"]
    assert tips(heatmap([[np.nan, np.inf]], tips=True)) == ["[0, 0] nan", "[0, 1] inf"]
    assert not tips(heatmap([[1.0]]))
