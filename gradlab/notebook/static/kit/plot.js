// A plot on two axes, in SVG: lines, points, bands, texts and arrows in the units of the axes, on a grid of round numbers. It
// takes the width that it is given and draws itself again when that changes. Colours come from classes (plot.css): gl-forward is
// what flows forward, gl-backward what flows back, gl-quiet what stands behind. Where a line leaves the axes it is cut; a text
// never is: it is moved back inside.

import { html, svg } from "./dom.js";
import { clamp } from "./ranges.js";
import { ticks } from "./ticks.js";

/** @import { Tick } from "./ticks.js" */

/**
 * @typedef {object} Axis
 * @property {[number, number]} range low and high, finite
 * @property {boolean} [log]
 * @property {string} [label]
 * @property {boolean} [bare] no numbers and no grid
 */

/**
 * What is drawn, in the order of the list. Coordinates are in units of the axes; what is not finite is a gap.
 * @typedef {(
 *   | { kind: "line", xs: ArrayLike<number>, ys: ArrayLike<number>, class: string }
 *   | { kind: "points", xs: ArrayLike<number>, ys: ArrayLike<number>, class: string, radius?: number }
 *   | { kind: "band", low: number, high: number, class?: string, across?: "x" | "y" }
 *   | { kind: "rule", at: number, class: string, across?: "x" | "y" }
 *   | { kind: "text", x: number, y: number, text: string, class?: string, dx?: number, dy?: number, end?: "start" | "middle" | "end" }
 * )} Mark bands and rules lie across the y axis (at a height) unless `across` says "x"
 */

/** @typedef {{ x: Axis, y: Axis, marks: Mark[] }} Picture */

const TEXT = 10.5, // px, as in kit.css
  ADVANCE = 0.64 * TEXT, // of a digit in the widest of the usual fonts
  EVERY = { x: 78, y: 44 }, // px between two numbers, about
  FAR = 20_000; // px beyond which a line goes nowhere new

/**
 * @param {{ label: string, height: (width: number) => number, sides?: [number, number] }} options `height` of the whole from its
 * width in px; `sides`: the room at the left and the right in px, so that plots above one another are in line
 */
function plot({ label, height, sides }) {
  const drawing = svg("svg", { class: "gl-plot", role: "img", "aria-label": label }),
    root = html("div", { class: "gl-plotbox" }, drawing);
  /** @type {Picture | null} */
  let picture = null;
  let frame = { left: 0, top: 0, width: 1, height: 1 };

  const across = (/** @type {number} */ x) => (picture ? frame.left + frame.width * share(picture.x, x) : NaN);
  const down = (/** @type {number} */ y) => (picture ? frame.top + frame.height * (1 - share(picture.y, y)) : NaN);

  function draw() {
    if (!picture) return;
    const width = root.clientWidth;
    if (!width) return;
    const tall = Math.round(height(width)),
      { x, y, marks } = picture;
    const yTicks = y.bare ? [] : ticks(...y.range, Math.max(2, Math.floor((tall - 40) / EVERY.y)), y.log);
    const widest = Math.max(0, ...yTicks.map(({ text }) => text.length)),
      left = sides?.[0] ?? (y.bare ? 8 : Math.ceil(widest * ADVANCE) + 10),
      top = y.label ? 20 : 9,
      below = (x.bare ? 8 : 20) + (x.label ? 15 : 0);
    frame = { left, top, width: Math.max(20, width - left - (sides?.[1] ?? 12)), height: Math.max(20, tall - top - below) };
    const xTicks = x.bare ? [] : fewer(ticks(...x.range, Math.max(2, Math.floor(frame.width / EVERY.x)), x.log), across);
    const whole = frame.top + frame.height + below;
    drawing.setAttribute("viewBox", `0 0 ${width} ${whole}`);
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(whole));
    const { left: l, top: t, width: w, height: h } = frame;
    const grid = svg("g", { class: "gl-grid" });
    for (const { at } of xTicks) grid.append(line(across(at), t, across(at), t + h));
    for (const { at } of yTicks) grid.append(line(l, down(at), l + w, down(at)));
    const numbers = svg("g", { class: "gl-ticks" });
    for (const { at, text } of xTicks) numbers.append(inside(text, across(at), t + h + 14, "middle", width));
    for (const { at, text } of yTicks) numbers.append(svg("text", { x: l - 6, y: down(at) + 3.6, "text-anchor": "end" }, text));
    if (x.label) numbers.append(svg("text", { x: l + w, y: t + h + 29, "text-anchor": "end", class: "gl-name" }, x.label));
    if (y.label) numbers.append(svg("text", { x: 2, y: 11, class: "gl-name" }, y.label));
    // What is cut at the frame is in an inner SVG, which needs no clip path and so no name that another view might have too.
    const cut = svg("svg", { x: l, y: t, width: w, height: h, viewBox: `${l} ${t} ${w} ${h}`, overflow: "hidden" }),
      free = svg("g");
    for (const mark of marks) {
      const node = drawn(mark, width, whole);
      if (node) (["points", "text"].includes(mark.kind) ? free : cut).append(node);
    }
    drawing.replaceChildren(grid, cut, numbers, free);
  }

  /**
   * @param {Mark} mark
   * @param {number} width
   * @param {number} tall
   */
  function drawn(mark, width, tall) {
    const { left: l, top: t, width: w, height: h } = frame;
    switch (mark.kind) {
      case "line":
        return svg("path", { class: `gl-line ${mark.class}`, d: path(mark.xs, mark.ys) });
      case "points": {
        const group = svg("g", { class: mark.class });
        for (let k = 0; k < mark.xs.length; k++) {
          const x = across(mark.xs[k]),
            y = down(mark.ys[k]);
          if (!Number.isFinite(mark.ys[k]) || !Number.isFinite(mark.xs[k])) continue;
          if (x >= l - 0.5 && x <= l + w + 0.5 && y >= t - 0.5 && y <= t + h + 0.5)
            group.append(svg("circle", { cx: x, cy: y, r: mark.radius ?? 3 }));
        }
        return group;
      }
      case "band": {
        const place = mark.across === "x" ? across : down,
          a = place(mark.low),
          b = place(mark.high);
        const box =
          mark.across === "x"
            ? { x: Math.min(a, b), y: t, width: Math.abs(b - a), height: h }
            : { x: l, y: Math.min(a, b), width: w, height: Math.abs(b - a) };
        return Number.isFinite(a + b) ? svg("rect", { class: mark.class ?? "gl-band", ...box }) : null;
      }
      case "rule": {
        const at = mark.across === "x" ? across(mark.at) : down(mark.at);
        if (!Number.isFinite(at)) return null;
        const node = mark.across === "x" ? line(at, t, at, t + h) : line(l, at, l + w, at);
        node.setAttribute("class", `gl-line ${mark.class}`);
        return node;
      }
      case "text": {
        const x = across(mark.x) + (mark.dx ?? 0),
          y = down(mark.y) + (mark.dy ?? 0);
        if (!Number.isFinite(x + y)) return null;
        const node = inside(mark.text, x, clamp(y, 10, tall - 3), mark.end ?? "start", width);
        if (mark.class) node.setAttribute("class", mark.class);
        return node;
      }
    }
  }

  /**
   * @param {ArrayLike<number>} xs
   * @param {ArrayLike<number>} ys
   */
  function path(xs, ys) {
    const parts = [];
    let open = false;
    for (let k = 0; k < xs.length; k++) {
      const x = Number.isFinite(xs[k]) ? across(xs[k]) : NaN,
        y = Number.isFinite(ys[k]) ? down(ys[k]) : NaN;
      if (Number.isNaN(x) || Number.isNaN(y)) {
        open = false;
        continue;
      }
      parts.push(`${open ? "L" : "M"}${clamp(x, -FAR, FAR).toFixed(2)} ${clamp(y, -FAR, FAR).toFixed(2)}`);
      open = true;
    }
    return parts.join("");
  }

  /**
   * Where a pointer is, in units of the axes; null outside of them.
   * @param {PointerEvent | MouseEvent} event
   * @returns {[number, number] | null}
   */
  function value(event) {
    if (!picture) return null;
    const box = drawing.getBoundingClientRect(),
      { left, top, width, height: tall } = frame;
    const right = (event.clientX - box.left - left) / width,
      up = 1 - (event.clientY - box.top - top) / tall;
    if (right < -0.01 || right > 1.01 || up < -0.01 || up > 1.01) return null;
    return [unshared(picture.x, clamp(right, 0, 1)), unshared(picture.y, clamp(up, 0, 1))];
  }

  const resized = new ResizeObserver(() => draw());
  resized.observe(root);
  return {
    root,
    drawing,
    value,

    /** Where a place in units of the axes is on the drawing, in px. */
    place: (/** @type {number} */ x, /** @type {number} */ y) => [across(x), down(y)],

    /** @param {Picture} what */
    show(what) {
      picture = what;
      draw();
    },

    end() {
      resized.disconnect();
    },
  };
}

/**
 * How far along an axis a number is, from 0 to 1 inside.
 * @param {Axis} axis
 * @param {number} at
 */
function share({ range: [low, high], log }, at) {
  if (!log) return (at - low) / (high - low);
  return at > 0 ? Math.log(at / low) / Math.log(high / low) : NaN;
}

/**
 * @param {Axis} axis
 * @param {number} at
 */
function unshared({ range: [low, high], log }, at) {
  return log ? low * (high / low) ** at : low + at * (high - low);
}

/**
 * The ticks whose texts do not touch.
 * @param {Tick[]} all
 * @param {(x: number) => number} across
 */
function fewer(all, across) {
  for (let every = 1; every < all.length; every++) {
    const some = all.filter((_, k) => k % every === 0);
    const clear = some.every(({ at, text }, k) => {
      const next = some[k + 1];
      return !next || across(next.at) - across(at) > ((text.length + next.text.length) / 2) * ADVANCE + 6;
    });
    if (clear) return some;
  }
  return all.slice(0, 1);
}

/**
 * A text that begins, has its middle or ends at x, moved so that it is whole between 0 and `width`.
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {"start" | "middle" | "end"} end
 * @param {number} width
 */
function inside(text, x, y, end, width) {
  const long = text.length * ADVANCE,
    before = end === "start" ? 0 : end === "middle" ? long / 2 : long;
  return svg("text", { x: clamp(x, before + 1, Math.max(before + 1, width - 1 - (long - before))), y, "text-anchor": end }, text);
}

/**
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(x1, y1, x2, y2) {
  return svg("line", { x1, y1, x2, y2 });
}

export { plot };
