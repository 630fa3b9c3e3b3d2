"""Find faults of the text in a browser: clipped, covered, off the page, too small, or too pale."""

from __future__ import annotations

from typing import Any

LEAST_TYPE, LEAST_CONTRAST = 9.0, 4.5

# Measures the visible texts in each root on the background that their ancestors paint, and texts inside pictures: the SVG
# document of an <img> is laid over the image with its size and theme while it is measured.
MEASURE = """
async ([roots, leastType, leastContrast]) => {
  const parsed = new Map();
  const colour = text => {
    if (!parsed.has(text)) {
      const parts = text.match(/[\\d.e+-]+/g).map(Number);
      const rgb = text.startsWith('color(') ? parts.slice(0, 3).map(x => x * 255) : parts.slice(0, 3);
      parsed.set(text, [...rgb, parts.length > 3 ? parts[3] : 1]);
    }
    return parsed.get(text);
  };
  const over = (top, below) => top.slice(0, 3).map((x, i) => x * top[3] + below[i] * (1 - top[3]));
  const light = rgb => rgb.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (ink, ground) => {
    const [high, low] = [light(ink), light(ground)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const chainOf = element => { const chain = []; for (let e = element; e; e = e.parentElement) chain.push(e); return chain; };
  const grounds = new Map();  // by element: the colour behind its text, and the visible part of the text
  const groundOf = element => {
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const [below, shown] = element.parentElement ? groundOf(element.parentElement) : [[255, 255, 255], 1];
      grounds.set(element, [over(colour(style.backgroundColor), below), shown * parseFloat(style.opacity)]);
    }
    return grounds.get(element);
  };

  const inHtml = (root, seen, faults) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, text = node.textContent.trim(), element = node.parentElement;
      if (!text || element.closest('style, script, svg') || !element.checkVisibility()) continue;
      const style = getComputedStyle(element), size = parseFloat(style.fontSize);
      if (size < leastType) faults.push(`${size}px: ${text}`);
      const [ground, shown] = groundOf(element), ink = colour(style.color);
      const found = contrast(over([...ink.slice(0, 3), ink[3] * shown], ground), ground);
      if (found < leastContrast) faults.push(`contrast ${found.toFixed(2)}: ${text}`);
      const range = document.createRange(); range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width < 1) continue;
        let scrolls = false;
        for (const e of chainOf(element)) {
          const { overflowX, overflowY } = getComputedStyle(e), outer = e.getBoundingClientRect();
          if (!outer.width) continue;
          const beyond = box.right > outer.right + 1 || box.left < outer.left - 1, under = box.bottom > outer.bottom + 3;
          if (beyond && !scrolls && overflowX === 'auto') scrolls = true;
          if (!scrolls && (beyond && overflowX === 'hidden' || under && overflowY === 'hidden' && root.contains(e)))
            faults.push(`clipped: ${text}`);
          if (e === root) break;
        }
        if (scrolls) continue;  // it may be scrolled out of sight
        if (box.right > innerWidth + 1) faults.push(`off the page: ${text}`);
        seen.push([box, text]);
      }
    }
  };

  // Texts of a picture at their positions in the image. The last shape below the centre of a text is its background.
  const inPicture = (image, seen, faults) => {
    const shown = image.getBoundingClientRect(), holder = document.createElement('div');
    holder.style.cssText = 'position:absolute;left:0;top:0;line-height:normal';
    const text = decodeURIComponent(image.src.slice(image.src.indexOf(',') + 1));
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
    const dark = { light: false, dark: true }[getComputedStyle(image).colorScheme] ??
      matchMedia('(prefers-color-scheme:dark)').matches;
    const style = parsed.querySelector('style');
    if (style) {  // a document in a page follows the page's theme, so set the colours that the image has
      const [usual] = style.textContent.split('@media');
      const rules = style.textContent.match(/@media \\(prefers-color-scheme:dark\\)\\{([^]*?\\})\\}/)?.[1] ?? '';
      for (const [, which, key, to] of (usual + (dark ? rules : '')).matchAll(/([^{}]+)\\{([\\w-]+):([^}]+)\\}/g))
        for (const e of parsed.querySelectorAll(which)) e.style.setProperty(key, to);  // a page may forbid other styles
      style.remove();
    }
    holder.append(document.adoptNode(parsed)); document.body.append(holder);
    const room = image.parentElement.getBoundingClientRect();  // the rest is reached by scrolling
    const frame = parsed.getBoundingClientRect(), zoom = shown.width / frame.width;
    const boxOf = e => {
      const r = e.getBoundingClientRect();
      return { left: r.left - frame.left, top: r.top - frame.top, right: r.right - frame.left, bottom: r.bottom - frame.top };
    };
    const order = [...parsed.querySelectorAll('rect, path, circle, ellipse, polygon, text')];
    const shapes = order.filter(e => e.tagName !== 'text' && !['none', 'transparent'].includes(getComputedStyle(e).fill))
      .map(e => [e, boxOf(e), getComputedStyle(e)]);
    const ground = groundOf(image)[0];
    for (const element of order.filter(e => e.tagName === 'text')) {
      const text = element.textContent.trim(), box = boxOf(element), style = getComputedStyle(element);
      if (!text) continue;
      if (box.left < -0.5 || box.top < -1 || box.right > frame.width + 0.5 || box.bottom > frame.height + 1)
        faults.push(`clipped in its picture: ${text}`);
      const size = parseFloat(style.fontSize) * zoom;
      if (size < leastType - 0.05) faults.push(`${size.toFixed(1)}px in a picture: ${text}`);
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      let below = ground;
      for (const [shape, on, look] of shapes) {
        if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
        if (on.left <= x && x <= on.right && on.top <= y && y <= on.bottom) {
          const ink = colour(look.fill);
          below = over([...ink.slice(0, 3), ink[3] * look.opacity * look.fillOpacity], below);
        }
      }
      for (const part of [element, ...element.querySelectorAll('tspan')]) {
        const ink = colour(getComputedStyle(part).fill), found = contrast(over(ink, below), below);
        if (found < leastContrast) faults.push(`contrast ${found.toFixed(2)} in a picture: ${part.textContent}`);
      }
      const left = shown.left + zoom * box.left, right = shown.left + zoom * box.right;
      const top = shown.top + zoom * box.top, bottom = shown.top + zoom * box.bottom;
      if (right <= room.right) seen.push([{ left, right, top, bottom }, text]);
    }
    holder.remove();
  };

  const overlapping = (seen, faults) => {
    seen.forEach(([box, text], i) => {
      for (const [other, words] of seen.slice(0, i)) {
        const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (wide > 1 && high > 4) faults.push(`"${text}" over "${words}"`);
      }
    });
  };

  const answer = [];
  for (const root of document.querySelectorAll(roots)) {
    const faults = [], seen = [];
    inHtml(root, seen, faults);
    for (const image of root.querySelectorAll('img.gradlab-picture')) if (image.checkVisibility()) inPicture(image, seen, faults);
    overlapping(seen, faults);
    for (const table of root.querySelectorAll('table:has(th)')) {
      const scroller = table.parentElement.getBoundingClientRect();
      for (const row of table.rows) {
        const cell = row.cells[1];
        if (cell && cell.getBoundingClientRect().right > scroller.right + 1) faults.push(`gradient cut off: ${row.textContent}`);
      }
    }
    const box = root.getBoundingClientRect();
    answer.push({ faults, texts: seen.length, height: box.height, cell: root.closest('[data-cell]')?.dataset.cell ?? '' });
  }
  return answer;
}
"""


def measure(page: Any, roots: str) -> list[dict[str, Any]]:
    """Return for each element that matches the selector: its `faults`, the number of `texts` measured, its `height`, and the
    `cell` that contains it (`data-cell` of an ancestor)."""
    return page.evaluate(MEASURE, [roots, LEAST_TYPE, LEAST_CONTRAST])
