"""What live views share, module by module in Chromium: numbers as text, elements' names, colours, panning and zooming, cells."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest

from gradlab.explore.heat_colours import NEGATIVE, POSITIVE, ZERO, colour, ink_on
from gradlab.explore.heat_svg import brief
from gradlab.notebook.bundle import script


@pytest.fixture(scope="module")
def kit(browser):
    """kit("format", "number(1)", ...) -> the value of an expression over what a module of the kit exports, and `given`."""
    context = browser.new_context()
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto("about:blank")

    def evaluate(module, expression, given=None):
        return page.evaluate(
            """async ([text, expression, given]) => {
                 const names = (await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))).default;
                 const value = new Function(...Object.keys(names), 'given', 'return ' + expression);
                 return value(...Object.values(names), given); }""",
            [script(f"kit/{module}.js"), expression, given],
        )

    yield evaluate
    assert faults == []
    context.close()


# ---------------------------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1, "+1.00"),
        (-1, "−1.00"),
        (0.5, "+0.500"),
        (1234.5, "+1.23e3"),
        (9999, "+1.00e4"),
        (10_000, "+1.0e4"),
        (123_456, "+1.2e5"),
        (0.001, "+0.00100"),
        (0.000999, "+1.0e−3"),
        (-3.14159e-7, "−3.1e−7"),
        (1e300, "+1.0e300"),
        (100, "+100"),
        (99.95, "+100"),
        (12.34, "+12.3"),
        (5e-324, "+4.9e−324"),
    ],
)
def test_numbers_have_three_digits_and_a_sign(kit, value, text):
    assert kit("format", "number(given)", value) == text


def test_numbers_that_are_not_finite(kit):
    assert kit("format", "[NaN, Infinity, -Infinity].map(number)") == ["NaN", "+inf", "−inf"]
    assert kit("format", "[NaN, Infinity, -Infinity].map(exact)") == ["NaN", "+inf", "−inf"]


def test_numbers_say_what_they_are(kit):
    """Read back, they are within half of their last digit; exact ones are the number itself."""
    values = (np.random.default_rng(0).standard_normal(300) * 10.0 ** np.arange(-150, 150)).tolist()
    rounded = [float(text.replace("−", "-")) for text in kit("format", "given.map(number)", values)]
    np.testing.assert_allclose(rounded, values, rtol=0.05)
    usual = [k for k, value in enumerate(values) if 1e-3 <= abs(value) < 1e4]
    assert len(usual) >= 5
    np.testing.assert_allclose(np.array(rounded)[usual], np.array(values)[usual], rtol=0.005)
    assert [float(text.replace("−", "-")) for text in kit("format", "given.map(exact)", values)] == values


def test_weights_counts_and_names(kit):
    assert kit("format", "[0.5, -1, 1/3, 12.5, 0, 2e-7].map(weight)") == ["0.5", "−1", "0.333", "12.5", "0", "2e−7"]
    assert kit("format", "[1, 0, 2, 10000].map(count => plural(count, 'row'))") == ["1 row", "0 rows", "2 rows", "10,000 rows"]
    assert kit("format", "[16, 17].map(n => short('a'.repeat(n)))") == ["a" * 16, "a" * 9 + "…" + "a" * 6]
    assert kit("format", "short('weight_of_layer[12,3]', 14)") == "weight_…[12,3]"
    assert all(len(text) <= n for n, text in kit("format", "[3, 5, 9, 10, 14, 30].map(n => [n, short('x'.repeat(40), n)])"))


# ---------------------------------------------------------------------------------------------------------------- arrays
def test_elements_are_named_in_row_major_order(kit):
    shapes = {"x": [2, 3], "s": [], "none": [0], "w": [2, 1, 2]}
    parts = [{"name": name, "shape": shape} for name, shape in shapes.items()]
    labels, which = [], []
    for k, part in enumerate(parts):
        for index in itertools.product(*map(range, part["shape"])):
            labels.append(part["name"] + (f"[{','.join(map(str, index))}]" if index else ""))
            which.append(k)
    n = len(labels)
    assert n == 11
    assert kit("arrays", "given[0].length && Array.from({length: given[1]}, (_, i) => label(given[0], i))", [parts, n]) == labels
    assert kit("arrays", "Array.from({length: given[1]}, (_, i) => partOf(given[0], i))", [parts, n]) == which
    assert kit("arrays", "[shapeText([2, 3]), shapeText([]), names([{name: 'x'}, {name: 'w'}])]") == ["2×3", "scalar", "x, w"]


def test_a_text_names_an_element_as_its_label_does_or_by_its_number(kit):
    parts = [{"name": "x", "shape": [2, 3]}, {"name": "s", "shape": []}, {"name": "net.w", "shape": [4]}]
    labels = kit("arrays", "Array.from({length: 11}, (_, i) => label(given, i))", parts)
    assert kit("arrays", "given[1].map(text => indexOf(given[0], text))", [parts, labels]) == list(range(11))
    assert kit("arrays", "['0', ' 7 ', 'x[1, 2]', 'net.w[ 3 ]'].map(text => indexOf(given, text))", parts) == [0, 7, 5, 10]
    wrong = ["11", "-1", "1.5", "x[2,0]", "x[0]", "x", "w[0]", "net.w[4]", "s[0]", "1e1", "", "[", "x[0,0"]
    assert kit("arrays", "given[1].map(text => indexOf(given[0], text))", [parts, wrong]) == [-1] * len(wrong)


def test_labels_stand_at_round_elements(kit):
    def found(shapes, start, end, least):
        parts = [{"name": f"p{k}", "shape": shape} for k, shape in enumerate(shapes)]
        return kit("arrays", "roundElements(...given)", [parts, start, end, least])

    assert found([[10_000]], 0, 10_000, 490) == list(range(0, 10_000, 500))
    assert found([[10_000]], 1231, 1238, 0.9) == list(range(1231, 1238))
    assert found([[10_000]], 1231, 1300, 12) == [1240, 1260, 1280]
    assert found([[8], [5]], 0, 13, 2.5) == [0, 5, 8], "counted anew in each, and none close to the end of another"
    assert found([[3, 48]], 0, 144, 8) == [*range(0, 48, 10), *range(48, 96, 10), *range(96, 144, 10)]
    assert found([[40, 7]], 0, 280, 30) == list(range(0, 280, 35)), "every fifth line"
    assert found([[40, 7]], 0, 280, 7) == list(range(0, 280, 7))
    assert found([[]], 0, 1, 1) == [0] and found([[0], [2]], 0, 2, 1) == [0, 1]


# ---------------------------------------------------------------------------------------------------------------- colours
def rgb(text):
    return np.array([int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(",")])


def test_the_scale_is_purple_white_orange_symmetrical_and_that_of_pictures(kit):
    t = np.linspace(-1, 1, 201)
    shown = np.array(kit("colours", "given[1].map(diverging(given[0]))", [[NEGATIVE, ZERO, POSITIVE], t.tolist()]))
    pictures = np.array([list(bytes.fromhex(colour(value, 1)[1:])) for value in t])
    assert np.abs(shown - pictures).max() <= 1, "a half is rounded up here and to even there"
    np.testing.assert_array_equal(shown[[0, 100, 200]], [NEGATIVE, ZERO, POSITIVE])
    red, green, blue = shown.T
    assert (blue[:60] > green[:60]).all() and (red[:60] > green[:60]).all(), "purple is red and blue"
    assert (red[140:] > green[140:]).all() and (green[140:] > blue[140:]).all(), "orange is red and some green"
    # As far from white at −t as at t, as a share of the way to either end.
    zero = np.array(ZERO)
    way = [
        np.linalg.norm(side - zero, axis=1) / np.linalg.norm(np.array(end) - zero)
        for side, end in ((shown[100::-1], NEGATIVE), (shown[100:], POSITIVE))
    ]
    np.testing.assert_allclose(way[0], way[1], atol=0.01)
    np.testing.assert_allclose(way[0], np.linspace(0, 1, 101), atol=0.01)


def test_the_scale_ends_where_it_ends(kit):
    anchors = [NEGATIVE, ZERO, POSITIVE]
    ends = kit("colours", "[-7, 7, -Infinity, Infinity].map(diverging(given))", anchors)
    np.testing.assert_array_equal(ends, [NEGATIVE, POSITIVE, NEGATIVE, POSITIVE])
    said = ", ".join(f"rgb({r},{g},{b})" for r, g, b in anchors)
    assert kit("colours", "gradient(given)", anchors) == f"linear-gradient(90deg, {said})"


def luminance(text):
    """Relative luminance of a colour, "#rgb" or "#rrggbb", as WCAG 2 defines it."""
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    c = np.array(list(bytes.fromhex(digits))) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_classes_differ_and_their_numbers_can_be_read(kit):
    pairs = kit("colours", "Array.from({length: 10}, (_, k) => [classColour(k), classInk(k)])")
    assert len({fill for fill, _ in pairs}) == 10
    assert kit("colours", "[classColour(13), classInk(13)]") == pairs[3], "they come again"
    for fill, ink in pairs:
        assert contrast(fill, "#" + bytes(rgb(ink).tolist()).hex()) >= 4.5, fill


def test_numbers_in_cells_can_be_read_and_are_those_of_pictures(kit):
    grounds = [list(bytes.fromhex(colour(t, 1)[1:])) for t in np.linspace(-1, 1, 101)] + [[150, 156, 164]]
    for ground, ink in zip(grounds, kit("colours", "given.map(inkOn)", grounds), strict=True):
        assert contrast("#" + bytes(ground).hex(), "#" + bytes(ink).hex()) >= 4.5
        assert tuple(ink) == ink_on(tuple(ground))
    rng = np.random.default_rng(2)
    values = [
        0.0,
        1.0,
        -0.0167,
        0.3125,
        -0.1875,
        999.4,
        999.5,
        99_999.4,
        99_999.5,
        -12345.0,
        1e-300,
        5e-324,
        1.7e308,
        9.995,
        0.0001,
    ]
    values += (rng.standard_normal(2000) * 10.0 ** rng.integers(-12, 12, 2000)).tolist() + (np.arange(-400, 400) / 64).tolist()
    shown = kit("format", "given.map(brief)", values)
    assert shown == [brief(value) for value in values]
    usual = [text for text, value in zip(shown, values, strict=True) if value == 0 or 1e-9 < abs(value) < 1e9]
    assert max(map(len, usual)) <= 6


# ---------------------------------------------------------------------------------------------------------- panning and zooming
def test_zooming_keeps_what_is_looked_at_and_stays_inside(kit):
    rng = np.random.default_rng(1)
    for _ in range(60):
        whole = int(rng.integers(1, 500))
        start, end = sorted(rng.choice(whole + 1, 2, replace=False).tolist())
        at, factor = int(rng.integers(-1, whole)), float(rng.choice([0.25, 0.5, 4, 100]))
        first, last = kit("ranges", "zoomed(...given)", [[start, end], whole, at, factor])
        assert 0 <= first < last <= whole
        wanted = min(max(round((end - start) * factor), min(7, whole)), whole)
        assert abs(last - first - wanted) <= 1, "halves are rounded up there"
        if start <= at < end and last - first < whole:
            assert first <= at < last
            if first > 0 and last < whole:
                assert abs((first + last) / 2 - at) <= 1, "what is looked at is in the middle"
        elif first > 0 and last < whole:
            assert abs((first + last) / 2 - (start + end) / 2) <= 1, "else the middle stays"


def test_zooming_by_hand(kit):
    assert kit("ranges", "zoomed([0, 400], 400, 200, 1 / 4)") == [151, 251]
    assert kit("ranges", "zoomed([150, 250], 400, 200, 4)") == [0, 400]
    assert kit("ranges", "zoomed([0, 400], 400, 3, 1 / 4)") == [0, 100], "at the edge it is not centred"
    assert kit("ranges", "zoomed([196, 204], 400, 200, 1 / 4)") == [197, 204], "seven remain, and it is the fourth"
    assert kit("ranges", "zoomed([0, 5], 5, -1, 1 / 4)") == [0, 5]
    assert kit("ranges", "zoomed([0, 100], 400, 300, 1 / 4)") == [38, 63], "about its middle, 50"


def test_bins(kit):
    bins = [3, 4, 7, 20]
    places = list(range(30))
    found = kit("ranges", "given[1].map(at => binOf(given[0], at))", [bins, places])
    assert found == (np.searchsorted(bins, places, "right") - 1).tolist()
    assert kit("ranges", "given.map((_, k) => binRange(given, k, 25))", bins) == [[3, 4], [4, 7], [7, 20], [20, 25]]
    assert kit("ranges", "[[3, 4], [4, 7]].map(range => rangeText(i => `x[${i}]`, range))") == ["x[3]", "x[4] … x[6]"]


# ---------------------------------------------------------------------------------------------------------------- cells
MEASURE = """(() => { const [m, n, room, across, parts] = given;
  const bins = k => Int32Array.from({length: k}, (_, i) => i);
  const matrix = {window: [0, m, 0, n], rowBins: bins(m), columnBins: bins(n), low: [], high: [], flags: [], extent: [],
                  across, strip: null, stripName: 'vᵀJ', at: -1};
  const g = measure(matrix, room, {row: i => `y[${i}]`, column: j => `x[${j}]`, rows: [{name: 'y', shape: [m]}], parts});
  const at = (x, y, anywhere) => { const cell = cellAt(g, x, y, anywhere); return cell && [cell.i, cell.j]; };
  const out = {width: g.width, height: g.height, right: g.right, left: g.left, top: g.top, high: g.high, wide: g.wide,
               x: [...matrix.columnBins].map(g.x), y: [...matrix.rowBins].map(g.y)};
  out.centres = out.y.map(y => out.x.map(x => at(x + g.wide / 2, y + g.high / 2)));
  out.strip = across ? out.y.map(y => at(g.stripX + 1, y + g.high / 2)) : out.x.map(x => at(x + g.wide / 2, g.stripY + 1));
  out.outside = [at(1, 1), at(g.left + 1, g.top - 1), at(g.left - 1, g.top + 1), at(g.width + 9, g.height + 9)];
  out.dragged = [at(1, 1, true), at(g.width + 99, g.height + 99, true)];
  return out; })()"""


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
def test_each_cell_is_found_where_it_is_drawn(kit, m, n, room, across, sizes):
    parts = [{"name": f"p{k}", "shape": [size]} for k, size in enumerate(sizes)]
    g = kit("grid", MEASURE, [m, n, room, across, parts])
    assert g["centres"] == [[[i, j] for j in range(n)] for i in range(m)]
    assert g["strip"] == ([[i, -1] for i in range(m)] if across else [[-1, j] for j in range(n)])
    assert g["outside"] == [None] * 4
    assert g["dragged"] == [[0, 0], [m - 1, n - 1]], "a drag that ends outside ends at the edge"
    x, y = np.array(g["x"]), np.array(g["y"])
    assert (np.diff(x) >= g["wide"] - 1e-9).all() and (np.diff(y) >= g["high"] - 1e-9).all(), "no cell lies on another"
    assert 0 < g["wide"] <= (50 if max(m, n) <= 8 else 30) and 0 < g["high"] <= 30
    assert g["left"] + 90 <= room and g["right"] <= g["width"]
    starts = np.cumsum([0, *sizes])[1:-1]
    if starts.size:
        np.testing.assert_allclose(np.diff(x)[starts - 1], g["wide"] + 10, err_msg="a gap between arrays")


def test_a_matrix_without_rows_has_no_cells(kit):
    g = kit("grid", MEASURE, [0, 2, 440, False, [{"name": "x", "shape": [2]}]])
    assert g["outside"] == [None] * 4 and g["dragged"] == [None] * 2


def test_the_colours_end_at_the_largest_number(kit):
    """Of the matrix or of the strip, whose cells without a finite number have their extremes the wrong way round."""
    strip = "{low: Float64Array.of(-7, Infinity), high: Float64Array.of(2, -Infinity), flags: new Uint8Array(2)}"
    assert kit(
        "grid",
        f"[boundOf({{extent: [], strip: null}}), boundOf({{extent: [-3, 2], strip: null}}), "
        f"boundOf({{extent: [1, 2], strip: null}}), boundOf({{extent: [-3, 2], strip: {strip}}})]",
    ) == [0, 3, 2, 7]


def test_what_a_cell_says_is_what_matters_in_it(kit):
    known, nan, plus, minus = 1, 2, 4, 8
    table = [[-1, 3, known], [-3, 1, known], [-3, 3, known], [-1, 3, known | minus], [-1, 3, known | plus | minus], [0, 0, 15]]
    assert kit("cells", "given.map(cell => String(worth(...cell)))", table) == ["3", "-3", "3", "-Infinity", "Infinity", "NaN"]
    assert kit("cells", "[0, 1, 2, 15].map(oddities)") == ["", "", "NaN", "NaN, +inf, −inf"]
    assert kit("cells", "KNOWN") == known and nan | plus | minus == 14


# ---------------------------------------------------------------------------------------- buffers, elements
def test_buffers_are_read_wherever_they_begin(kit):
    values = np.array([1.5, -2.0, np.pi])
    text = base64.b64encode(b"\0" * 3 + values.tobytes() + b"\0" * 5).decode()
    assert kit(
        "kernel",
        """(() => { const bytes = Uint8Array.from(atob(given), c => c.charCodeAt(0));
        const answer = {arrays: [['a', 'f8'], ['b', 'u1'], ['c', 'i4']]};
        unpack(answer, [new DataView(bytes.buffer, 3, 24), new DataView(bytes.buffer, 0, 2), Int32Array.of(-5).buffer]);
        return [[...answer.a], [...answer.b], [...answer.c]]; })()""",
        text,
    ) == [values.tolist(), [0, 0], [-5]]


def test_elements_take_text_as_text(kit):
    evil = "<img src=x onerror='document.title=1'>"
    made = "html('p', {class: 'a', title: given, hidden: undefined}, given, html('b'))"
    read = "node => [node.textContent, node.title, node.className, node.hidden, node.childElementCount]"
    assert kit("dom", f"({read})({made})", evil) == [evil, evil, "a", False, 1]
    assert kit("dom", "svg('text', {x: 1}, given).namespaceURI", evil) == "http://www.w3.org/2000/svg"
    assert kit("dom", "svg('text', {x: 1}, given).childElementCount", evil) == 0


def test_a_disabled_button_can_be_focused_and_does_nothing(kit):
    assert kit(
        "dom",
        """(() => { let count = 0; const node = button('go', 'goes', () => count++); document.body.append(node);
        node.click(); disable(node, true); node.click(); node.focus(); const kept = focused(node);
        disable(node, false); node.click(); node.remove(); return [count, kept, node.disabled, focused(node)]; })()""",
    ) == [2, True, False, False]
