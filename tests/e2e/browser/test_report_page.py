"""Reports as pages in Chromium: at three widths, in light and dark, no text is clipped, covered, too small or too pale."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from grouped import exhaustive_after_first

sys.path.insert(0, str(Path(__file__).parents[2] / "explore"))  # for `import cell_traces`, since test folders are not packages

from cell_traces import trace_cell
from measuring import measure

import gradlab as gl
from gradlab.explore.markup import say
from gradlab.explore.report import report_of

FEW = """
a_name_that_is_rather_long = gl.tensor([0.5, -12.25, 3., 1e-7, 123456., 7., 8., -9.125, 10., 11., 12., 13.], requires_grad=True)
m = gl.ones(3, 4, requires_grad=True)
big = gl.randn(40, 3, requires_grad=True)
target = (m * 2).detach()
loss = (a_name_that_is_rather_long ** 2).sum() + ((m - target) ** 2).sum() + (big * 1e-5).tanh().sum() + (m * 0).sum() * 3
loss.backward()
"""
MODEL = """
loss = (model(X) ** 2).mean()
loss.backward()
"""
REDRAWN = """{{ const image = document.querySelector('img.gradlab-picture'), at = image.src.indexOf(',') + 1;
  image.src = image.src.slice(0, at) + encodeURIComponent(decodeURIComponent(image.src.slice(at)).{}); }}"""
STATED = SimpleNamespace(
    kind="k",
    message="Line 5 cuts a path to `m`: `target` is a constant.",
    line=5,
    node=None,
    fix="Leave `.detach()` out.",
    evidence={"n": 1},
)


def model():
    gl.manual_seed(0)
    layer = gl.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return gl.nn.Sequential(gl.nn.Linear(8, 16), gl.nn.TransformerEncoder(layer, 12), gl.nn.LayerNorm(16), gl.nn.Linear(16, 3))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    gl.manual_seed(0)
    reports = {
        "few": report_of(
            trace_cell(FEW, {"gl": gl}), say("backward() was called."), by_hand="loss.backward()", findings=[STATED] * 7
        ),
        "model": report_of(trace_cell(MODEL, {"model": model(), "X": gl.randn(2, 5, 8)}), remarks=[STATED]),
    }
    return {name: report.save(folder / f"{name}.html") for name, report in reports.items()}


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
@pytest.mark.parametrize("width", exhaustive_after_first(1000, 1300, 700))
@pytest.mark.parametrize("name", ["few", "model"])
def test_all_text_is_visible(browser, pages, name, width, theme):
    context = browser.new_context(offline=True, color_scheme=theme, viewport={"width": width, "height": 900})
    try:
        page = context.new_page()
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(pages[name].as_uri())
        assert said == [], "the page's policy blocks none of its own parts"
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        fits = page.evaluate("document.querySelector('body > div').getBoundingClientRect().height <= innerHeight")
        assert fits or (name, width) != ("model", 1300), "a transformer of twelve layers fits a screen"
        for opened in (False, True):
            page.evaluate("opened => { for (const d of document.querySelectorAll('details')) d.open ||= opened; }", opened)
            [found] = measure(page, "body")
            assert found["faults"] == [] and found["texts"] > 40
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        images = page.locator("img")
        card, picture = page.locator("body > div > div").first.bounding_box(), images.last.bounding_box()
        beside = picture["x"] > card["x"] + card["width"] / 2
        assert beside or name == "few" or width < 1000, "the picture is beside the table if there is room"
    finally:
        context.close()


TOUCHING = """() => {
  const range = document.createRange();
  const boxOf = node => { range.selectNodeContents(node); return range.getBoundingClientRect(); };
  const found = { rows: 0, gap: Infinity, ragged: 0, off: 0 };
  const rights = new Map();
  for (const row of document.querySelectorAll('span[style*="float:right"], span[class]')) {
    if (getComputedStyle(row).display !== 'grid' || !row.checkVisibility()) continue;
    found.rows++;
    const boxes = [...row.children].map(boxOf);
    boxes.forEach((box, i) => {
      if (!box.width) return;
      const before = boxes.slice(0, i).filter(other => other.width).at(-1);
      if (before) found.gap = Math.min(found.gap, box.left - before.right);
    });
    for (const i of [0, row.children.length - 1]) {
      const right = Math.round(boxes[i].right);
      if (!rights.has(i)) rights.set(i, right);
      found.ragged = Math.max(found.ragged, Math.abs(rights.get(i) - right));
    }
  }
  for (const code of document.querySelectorAll('samp')) {
    const bar = code.nextElementSibling?.nextElementSibling;
    if (bar?.tagName !== 'I' || !bar.style.width && !bar.getBoundingClientRect().height) continue;
    const text = boxOf(code.nextElementSibling), own = bar.getBoundingClientRect();
    found.off = Math.max(found.off, text.top - own.top, own.bottom - text.bottom);
  }
  return found; }"""


@pytest.mark.parametrize("width", [700, 1000, 1280, 1920])
def test_no_two_figures_touch_and_bars_are_on_their_line(browser, tmp_path, width):
    """The model has 11,181,642 parameters, like ResNet-18."""
    report = report_of(trace_cell(MODEL, {"model": model(), "X": gl.randn(2, 5, 8)}))
    rows = [replace(row, shape=(11_000, 1_016)) if row.name == "model[0].weight" else row for row in report.rows]
    path = replace(report, rows=tuple(rows)).save(tmp_path / "large.html")
    context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
        found = page.evaluate(TOUCHING)
        assert found["rows"] > 40 and found["gap"] >= 8 and found["ragged"] <= 1 and found["off"] <= 1, found
    finally:
        context.close()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("document.querySelector('td').style.fontSize = '8px'", "7.36px: "),
        ("document.querySelector('td span').style.color = '#999'", "contrast "),
        ("document.querySelector('pre').style.transform = 'translateY(55px)'", '" over "'),
        ("document.querySelector('table').parentElement.style.width = '150px'", "gradient cut off: "),
        ("Object.assign(document.querySelector('details pre').style, {overflow: 'hidden', width: '40px'})", "clipped: "),
        ("document.querySelector('pre').style.transform = 'translateX(1000px)'", "off the page: "),
        ("document.querySelector('img.gradlab-picture').style.width = '120px'", "px in a picture: "),
        ("document.querySelector('img.gradlab-picture').parentElement.style.background = '#666'", " in a picture: "),
        (REDRAWN.format("replace('<text ', '<text dx=\"-900\" ')"), "clipped in its picture: "),
    ],
)
def test_the_measurement_finds_faults(browser, pages, change, fault):
    context = browser.new_context(offline=True, viewport={"width": 1000, "height": 900})
    try:
        page = context.new_page()
        page.goto(pages["few"].as_uri())
        page.evaluate(change)
        [found] = measure(page, "body")
        assert any(fault in one for one in found["faults"]), found["faults"]
    finally:
        context.close()
