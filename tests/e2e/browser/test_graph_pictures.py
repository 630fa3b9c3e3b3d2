"""The pictures of the gallery, measured in a browser: no text overlaps, is clipped or hard to read, in either theme."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lab import wait_until_drawn

sys.path.insert(0, str(Path(__file__).parents[2] / "gallery"))  # test folders are not packages

from program_traces import trace_of
from programs import PROGRAMS, marks_of

from gradlab.explore.graph import Graph

LEAST_TYPE, LEAST_CONTRAST = 9.0, 4.5
GROUNDS = {"light": "rgb(255,255,255)", "dark": "rgb(17,17,17)"}
PICTURES = [(name, level) for name in PROGRAMS for level in ("operations", "code", "modules")]

MEASURE = """
() => {
  const svg = document.querySelector("svg"), frame = svg.getBoundingClientRect();
  const box = (e) => {
    const r = e.getBoundingClientRect();
    return [r.left - frame.left, r.top - frame.top, r.right - frame.left, r.bottom - frame.top];
  };
  const order = [...svg.querySelectorAll("rect, path, circle, text")];
  const shapes = order.filter((e) => e.tagName !== "text" && getComputedStyle(e).fill !== "none");
  const texts = order.filter((e) => e.tagName === "text").map((e) => {
    const b = box(e), style = getComputedStyle(e), x = (b[0] + b[2]) / 2, y = (b[1] + b[3]) / 2;
    const below = shapes.filter((s) => {
      if (!(s.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) return false;
      const c = box(s);
      return c[0] <= x && x <= c[2] && c[1] <= y && y <= c[3];
    }).pop();
    const inks = [style.fill, ...[...e.querySelectorAll("tspan")].map((t) => getComputedStyle(t).fill)];
    return { text: e.textContent, box: b, size: parseFloat(style.fontSize), inks,
             ground: below ? getComputedStyle(below).fill : null, inside: below ? box(below) : null };
  });
  return { width: frame.width, height: frame.height, texts };
}
"""


def luminance(colour):
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def pages(browser):
    """Open a page in the light theme and one in the dark theme."""
    found = {theme: browser.new_page(color_scheme=theme) for theme in ("light", "dark")}
    yield found
    for page in found.values():
        page.close()


@pytest.mark.parametrize(("name", "level"), [pytest.param(*one, marks=marks_of(one[0]), id="-".join(one)) for one in PICTURES])
def test_a_picture_is_readable(pages, name, level):
    drawing = Graph(trace_of(name), level=level).drawing()
    assert drawing.height <= 900
    for theme, page in pages.items():
        page.set_content(f'<body style="margin:0">{drawing.svg()}</body>')
        found = page.evaluate(MEASURE)
        texts = [text for text in found["texts"] if text["text"].strip()]
        assert len(texts) > 4
        for text in texts:
            left, top, right, bottom = text["box"]
            assert left >= -0.5 and top >= -1 and right <= found["width"] + 0.5 and bottom <= found["height"] + 1, (
                f"clipped: {text}"
            )
            assert text["size"] >= LEAST_TYPE, text
            ground = text["ground"] or GROUNDS[theme]
            assert all(contrast(ink, ground) >= LEAST_CONTRAST for ink in text["inks"]), (theme, text)
            if text["ground"] is not None:
                assert text["inside"][0] <= left + 0.5 and right - 0.5 <= text["inside"][2], f"wider than its box: {text}"
        for i, one in enumerate(texts):
            for other in texts[:i]:
                wide = min(one["box"][2], other["box"][2]) - max(one["box"][0], other["box"][0])
                high = min(one["box"][3], other["box"][3]) - max(one["box"][1], other["box"][1])
                assert wide <= 1 or high <= 3, (
                    f"{one['text']!r} overlaps {other['text']!r}"
                )  # a line's box is taller than its letters


def test_pictures_follow_the_theme_of_the_notebook_and_not_of_the_system(browser):
    """JupyterLab marks its page with its theme, which pictures follow."""
    drawing = Graph(trace_of("scalar")).drawing()
    seen = {}
    for system in ("light", "dark"):
        for notebook in ("true", "false"):
            page = browser.new_page(color_scheme=system)
            page.set_content(f'<body data-jp-theme-light="{notebook}" style="margin:0;background:#fff">{drawing.html()}</body>')
            wait_until_drawn(page)
            seen[system, notebook] = page.screenshot(clip={"x": 0, "y": 0, "width": drawing.width, "height": drawing.height})
            page.close()
    assert seen["light", "true"] == seen["dark", "true"] != seen["light", "false"]
    assert seen["light", "false"] == seen["dark", "false"]
