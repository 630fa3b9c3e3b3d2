"""Measure contrast on the pixels of a page: `faint_texts` and `faint_lines` find texts and lines that violate WCAG AA.

The colour of a text is the computed style. Its background is read from a screenshot without texts, whatever painted it:
ancestors, shapes of an SVG, a canvas or an image. Scrollable parts are expanded first so that the screenshot has all of them.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

NORMAL, LARGE, LINES = 4.5, 3.0, 3.0  # smallest contrasts of text, large text, and lines with a meaning
SHARE = 0.25  # share of a text's box that a colour must fill to count as background

UNROLL = """() => {
  const style = document.createElement('style');
  style.textContent = `*, *::before, *::after { transition: none !important; animation: none !important;
      caret-color: transparent !important; }
    .gl-tree, .gl-side, .gl-scroll, .gl-sliders, pre { max-height: none !important; }`;
  document.head.append(style); }"""
HIDE = """() => { const style = document.createElement('style'); style.id = 'without-texts';
  style.textContent = `*, *::placeholder { color: transparent !important; -webkit-text-fill-color: transparent !important; }
    svg text, svg tspan { fill: transparent !important; }`;
  document.head.append(style); }"""
SHOW = "() => document.getElementById('without-texts').remove()"

READ = """() => {
  const colour = text => {
    const parts = text.match(/[\\d.e+-]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const rgb = text.startsWith('color(') ? parts.slice(0, 3).map(x => x * 255) : parts.slice(0, 3);
    return [...rgb, parts.length > 3 ? parts[3] : 1];
  };
  const opacity = element => { let shown = 1;
    for (let e = element; e; e = e.parentElement) shown *= parseFloat(getComputedStyle(e).opacity);
    return shown; };
  const clipped = box => e => { const { overflowX, overflowY, clipPath } = getComputedStyle(e), outer = e.getBoundingClientRect();
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    return clipPath !== 'none' || overflowX !== 'visible' && (x < outer.left || x > outer.right)
      || overflowY !== 'visible' && (y < outer.top || y > outer.bottom); };
  const chain = element => {
    const all = []; for (let e = element; e && e !== document.body; e = e.parentElement) all.push(e); return all; };
  const found = [];
  const add = (text, element, box, ink, size, weight, more = 1) => {
    if (box.width < 2 || box.height < 2 || chain(element).some(clipped(box))) return;
    const [r, g, b, a] = colour(ink), what = `${element.tagName.toLowerCase()}.${element.getAttribute('class') ?? ''}`;
    found.push({ text: text.slice(0, 40), what, ink: [r, g, b], alpha: a * more * opacity(element),
      large: size >= 24 || size >= 18.66 && weight >= 700, box: [box.left, box.top + scrollY, box.right, box.bottom + scrollY] });
  };
  const off = 'button, input, select, textarea';
  const disabled = e => { const control = e.closest(off);
    return control?.matches(':disabled, [aria-disabled="true"]') ?? false; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement, text = node.textContent.trim();
    if (!text || element.closest('style, script, title, desc, option, noscript')
      || !element.checkVisibility({ visibilityProperty: true })
      || disabled(element)) continue;
    const style = getComputedStyle(element), drawn = element instanceof SVGElement, range = document.createRange();
    range.selectNodeContents(node);
    const scale = drawn ? element.getScreenCTM?.()?.a ?? 1 : 1;
    for (const box of range.getClientRects())
      add(text, element, box, drawn ? style.fill : style.color, scale * parseFloat(style.fontSize), Number(style.fontWeight),
        drawn ? parseFloat(style.fillOpacity) : 1);
  }
  for (const input of document.querySelectorAll('input:is([type=text], [type=number], :not([type])), select')) {
    if (!input.checkVisibility({ visibilityProperty: true }) || disabled(input)) continue;
    const empty = !input.value && input.placeholder, style = getComputedStyle(input, empty ? '::placeholder' : null);
    const box = input.getBoundingClientRect(), inner = new DOMRect(box.x + 4, box.y + 4, box.width - 8, box.height - 8);
    add(empty ? input.placeholder : input.value, input, inner, style.color, parseFloat(style.fontSize), Number(style.fontWeight),
      empty ? parseFloat(style.opacity) : 1);
  }
  return found;
}"""
READ_STROKES = """selector => [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).map(e => {
  const style = getComputedStyle(e), parts = style.stroke.match(/[\\d.e+-]+/g)?.map(Number) ?? [0, 0, 0, 0];
  let shown = parseFloat(style.strokeOpacity) * (parts[3] ?? 1);
  for (let a = e; a; a = a.parentElement) shown *= parseFloat(getComputedStyle(a).opacity);
  const rgb = style.stroke.startsWith('color(') ? parts.slice(0, 3).map(x => 255 * x) : parts.slice(0, 3);
  const at = e.getTotalLength ? e.getPointAtLength(e.getTotalLength() / 2) : null, m = e.getScreenCTM(),
    b = e.getBoundingClientRect();
  const [x, y] = at && e.tagName === 'path' ? [m.a * at.x + m.c * at.y + m.e, m.b * at.x + m.d * at.y + m.f] : [b.left, b.top];
  return { what: `${e.tagName}.${e.getAttribute('class') ?? ''} in ${e.parentElement.getAttribute('class') ?? ''}`, ink: rgb,
    alpha: shown,
    box: [x - 7, y + scrollY - 7, x + 7, y + scrollY + 7] }; })"""


def luminance(colour: np.ndarray) -> float:
    """Return the relative luminance of WCAG 2 of an sRGB colour from 0 to 255."""
    c = np.asarray(colour, float)[:3] / 255
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _pixels(page: Any) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(page.screenshot(full_page=True))) as picture:
        return np.asarray(picture.convert("RGB"))


def _behind(pixels: np.ndarray, box: list[float]) -> list[np.ndarray]:
    """Return the colours that fill at least `SHARE` of a box."""
    left, top, right, bottom = (round(x) for x in box)
    part = pixels[max(0, top) : bottom, max(0, left) : right].reshape(-1, 3)
    colours, counts = np.unique(part, axis=0, return_counts=True)
    return [colour for colour, count in zip(colours, counts, strict=True) if count >= SHARE * max(1, len(part))]


def _blend(ink: list[float], alpha: float, ground: np.ndarray) -> np.ndarray:
    return alpha * np.asarray(ink) + (1 - alpha) * ground


def faint_texts(page: Any) -> tuple[int, list[str]]:
    """Return the number of texts measured, and descriptions of texts with too low a contrast."""
    page.evaluate(UNROLL)
    texts = page.evaluate(READ)
    page.evaluate(HIDE)
    pixels = _pixels(page)
    page.evaluate(SHOW)
    faults, measured = [], 0
    for text in texts:
        grounds = _behind(pixels, text["box"])
        measured += bool(grounds)
        ratio = min((contrast(_blend(text["ink"], text["alpha"], ground), ground) for ground in grounds), default=99.0)
        if ratio < (LARGE if text["large"] else NORMAL):
            faults.append(f"{ratio:.2f} {text['text']!r} in {text['what']}")
    return measured, faults


def faint_lines(page: Any, selector: str) -> tuple[int, list[str]]:
    """Return the number of SVG strokes that match the selector, and descriptions of those that are too faint."""
    strokes = page.evaluate(READ_STROKES, selector)
    pixels = _pixels(page)
    faults = []
    for stroke in strokes:
        ratio = max(
            (contrast(_blend(stroke["ink"], stroke["alpha"], g), g) for g in _behind(pixels, stroke["box"])), default=99.0
        )
        if ratio < LINES:
            faults.append(f"{ratio:.2f} {stroke['what']}")
    return len(strokes), faults
