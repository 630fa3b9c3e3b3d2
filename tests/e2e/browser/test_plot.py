"""The kit's plot in Chromium: its ticks are those of the static pictures, nothing is cut off, things are where they should be."""

from __future__ import annotations

import pytest

from gradlab.explore.axes import ticks
from gradlab.notebook.bundle import script, styles

RANGES = [
    (0, 1), (-3, 3), (0, 1200), (-0.07, 0.31), (1e-9, 3e-9), (-2e6, 5e6), (1000.0001, 1000.0002), (0, 7e-5),
    (-1e300, 1e300), (5, 5), (2, 1), (99_990, 100_010), (0.1, 0.7), (-1, 250_000),
]  # fmt: skip
DECADES = [(1e-5, 1), (0.3, 7), (1, 1.2), (1e-300, 1e300), (0.02, 90), (1e-12, 1e5), (-1, 4), (3e4, 8e4)]


@pytest.fixture(scope="module")
def page(browser):
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto("about:blank")
    page.add_style_tag(content=styles("kit/kit.css", "kit/plot.css"))
    page.evaluate(
        """async texts => { for (const [name, text] of Object.entries(texts))
             window[name] = (await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))).default; }""",
        {"kit": script("kit/ticks.js"), "plots": script("kit/plot.js")},
    )
    yield page
    assert faults == []
    context.close()


@pytest.mark.parametrize("many", [1, 3, 5, 8])
def test_ticks_are_those_of_the_static_pictures(page, many):
    for (low, high), log in [*((r, False) for r in RANGES), *((r, True) for r in DECADES)]:
        live = page.evaluate("given => kit.ticks(...given)", [low, high, many, log])
        static = ticks(low, high, many, log)
        assert [tick["text"] for tick in live] == [tick.text for tick in static], (low, high, log)
        assert [tick["at"] for tick in live] == pytest.approx([tick.at for tick in static], rel=1e-12, abs=0)


# A picture is drawn again when the browser has told it its size, which it does once a frame.
DRAW = """async given => {
  document.body.replaceChildren();
  const box = document.createElement('div'); box.className = 'gl-view'; box.style.width = given.width + 'px';
  document.body.append(box);
  window.made = plots.plot({ label: 'a curve', height: () => 260 });
  box.append(made.root);
  made.show(given.picture);
  for (const _ of [1, 2]) await new Promise(done => requestAnimationFrame(done));
}"""
PICTURE = {
    "x": {"range": [0, 1200], "label": "step"},
    "y": {"range": [1e-5, 1], "log": True, "label": "ratio"},
    "marks": [
        {"kind": "band", "low": 1e-4, "high": 1e-2},
        {"kind": "line", "xs": [0, 300, 600, 900, 1200], "ys": [0.5, 0.02, None, 1e-3, 1e-9], "class": "gl-forward"},
        {"kind": "points", "xs": [0, 1200], "ys": [0.5, 1e-9], "class": "gl-held", "radius": 4},
        {"kind": "text", "x": 1200, "y": 0.5, "text": "far at the right", "dx": 4},
        {"kind": "text", "x": 0, "y": 1, "text": "far at the left", "dy": -40, "end": "end"},
    ],
}


@pytest.mark.parametrize("width", [260, 480, 860])
def test_no_text_is_cut_off_or_small(page, width):
    page.evaluate(DRAW, {"width": width, "picture": PICTURE})
    drawing = page.locator("svg.gl-plot")
    outer = drawing.bounding_box()
    texts = drawing.locator("text").all()
    assert len(texts) >= 8
    for text in texts:
        box = text.bounding_box()
        assert box["x"] >= outer["x"] - 0.5 and box["x"] + box["width"] <= outer["x"] + outer["width"] + 0.5, text.inner_html()
        assert box["y"] >= outer["y"] - 0.5 and box["y"] + box["height"] <= outer["y"] + outer["height"] + 0.5, text.inner_html()
        assert text.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 9


def test_what_is_drawn_is_where_it_is_said(page):
    page.evaluate(DRAW, {"width": 600, "picture": PICTURE})
    drawing = page.locator("svg.gl-plot")
    outer, point = drawing.bounding_box(), drawing.locator("circle")
    assert point.count() == 1, "a point that is not on the axes is not drawn"
    x, y = page.evaluate("made.place(0, 0.5)")
    box = point.bounding_box()
    assert box["x"] + box["width"] / 2 - outer["x"] == pytest.approx(x, abs=0.6)
    assert box["y"] + box["height"] / 2 - outer["y"] == pytest.approx(y, abs=0.6)
    assert drawing.locator("path.gl-line").get_attribute("d").count("M") == 2, "a gap is a gap"


def test_it_takes_the_width_that_it_is_given(page):
    page.evaluate(DRAW, {"width": 600, "picture": PICTURE})
    page.evaluate("document.querySelector('.gl-view').style.width = '300px'")
    page.wait_for_function("document.querySelector('svg.gl-plot').getBoundingClientRect().width < 301")
