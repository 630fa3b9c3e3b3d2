"""The modules that live views share, in Chromium: numbers as text, names of elements, panning and zooming, cells."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest

from gradlab.notebook.bundle import script


@pytest.fixture(scope="module")
def kit(browser):
    """Function `kit("format", "number(1)", ...)` that evaluates an expression over the exports of a module and `given`."""
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


def test_numbers_are_rounded_correctly(kit):
    """Parsed again, they are within half of their last digit, and exact ones are equal."""
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
    assert kit("arrays", "[shapeText([2, 3]), shapeText([]), names([{name: 'x'}, {name: 'w'}])]") == ["2×3", "scalar", "x, w"]


def test_an_element_is_named_by_its_label_or_its_number(kit):
    parts = [{"name": "x", "shape": [2, 3]}, {"name": "s", "shape": []}, {"name": "net.w", "shape": [4]}]
    labels = kit("arrays", "Array.from({length: 11}, (_, i) => label(given, i))", parts)
    assert kit("arrays", "given[1].map(text => indexOf(given[0], text))", [parts, labels]) == list(range(11))
    assert kit("arrays", "['0', ' 7 ', 'x[1, 2]', 'net.w[ 3 ]'].map(text => indexOf(given, text))", parts) == [0, 7, 5, 10]
    wrong = ["11", "-1", "1.5", "x[2,0]", "x[0]", "x", "w[0]", "net.w[4]", "s[0]", "1e1", "", "[", "x[0,0"]
    assert kit("arrays", "given[1].map(text => indexOf(given[0], text))", [parts, wrong]) == [-1] * len(wrong)


# ---------------------------------------------------------------------------------------------------------- panning and zooming
def test_zooming_keeps_the_target_and_stays_inside(kit):
    rng = np.random.default_rng(1)
    for _ in range(60):
        whole = int(rng.integers(1, 500))
        start, end = sorted(rng.choice(whole + 1, 2, replace=False).tolist())
        at, factor = int(rng.integers(-1, whole)), float(rng.choice([0.25, 0.5, 4, 100]))
        first, last = kit("ranges", "zoomWindow(...given)", [[start, end], whole, at, factor])
        assert 0 <= first < last <= whole
        wanted = min(max(round((end - start) * factor), min(7, whole)), whole)
        assert abs(last - first - wanted) <= 1, "JavaScript rounds halves up"
        if start <= at < end and last - first < whole:
            assert first <= at < last
            if first > 0 and last < whole:
                assert abs((first + last) / 2 - at) <= 1, "the target is in the middle"
        elif first > 0 and last < whole:
            assert abs((first + last) / 2 - (start + end) / 2) <= 1, "without a target the middle stays"


def test_zooming_by_hand(kit):
    assert kit("ranges", "zoomWindow([0, 400], 400, 200, 1 / 4)") == [151, 251]
    assert kit("ranges", "zoomWindow([150, 250], 400, 200, 4)") == [0, 400]
    assert kit("ranges", "zoomWindow([0, 400], 400, 3, 1 / 4)") == [0, 100], "the target is not centred at the edge"
    assert kit("ranges", "zoomWindow([196, 204], 400, 200, 1 / 4)") == [197, 204], "seven remain, and the target is the fourth"
    assert kit("ranges", "zoomWindow([0, 5], 5, -1, 1 / 4)") == [0, 5]
    assert kit("ranges", "zoomWindow([0, 100], 400, 300, 1 / 4)") == [38, 63], "zoomed around the middle, 50"


def test_bins(kit):
    bins = [3, 4, 7, 20]
    places = list(range(30))
    found = kit("ranges", "given[1].map(at => binOf(given[0], at))", [bins, places])
    assert found == (np.searchsorted(bins, places, "right") - 1).tolist()
    assert kit("ranges", "given.map((_, k) => binRange(given, k, 25))", bins) == [[3, 4], [4, 7], [7, 20], [20, 25]]
    assert kit("ranges", "[[3, 4], [4, 7]].map(range => rangeText(i => `x[${i}]`, range))") == ["x[3]", "x[4] … x[6]"]


# ---------------------------------------------------------------------------------------------------------------- cells
def test_texts_of_cells(kit):
    known, nan, plus, minus = 1, 2, 4, 8
    table = [[-1, 3, known], [-3, 1, known], [-3, 3, known], [-1, 3, known | minus], [-1, 3, known | plus | minus], [0, 0, 15]]
    assert kit("cells", "given.map(cell => String(worth(...cell)))", table) == ["3", "-3", "3", "-Infinity", "Infinity", "NaN"]
    assert kit("cells", "[0, 1, 2, 15].map(oddities)") == ["", "", "NaN", "NaN, +inf, −inf"]
    assert kit("cells", "KNOWN") == known and nan | plus | minus == 14


# ---------------------------------------------------------------------------------------- buffers, elements
def test_buffers_are_read_at_any_offset(kit):
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


def test_text_of_elements_is_escaped(kit):
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
        node.click(); disable(node, true); node.click(); node.focus(); const kept = hasFocus(node);
        disable(node, false); node.click(); node.remove(); return [count, kept, node.disabled, hasFocus(node)]; })()""",
    ) == [2, True, False, False]
