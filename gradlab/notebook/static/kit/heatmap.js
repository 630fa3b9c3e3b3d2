// The heat map. The cells are pixels of a canvas, since there may be 160 × 160 of them and a frame comes at every step; labels,
// outlines and marks are SVG above it. It draws what it is given and knows where its cells are; what a click means is the view's.
//
// A cell that is not known is a dashed frame, or nothing where it is small; NaN is grey with a cross, an infinity has the
// colour of the end of the scale and a plus or minus. Edges are rounded to device pixels, so that cells neither blur nor overlap.
// Few cells have their number in them, in the ink that can be read on each.

import { MANY, UNDEFINED, classColour, classInk, css, diverging, inkOn } from "./colours.js";
import { KNOWN, worth } from "./cells.js";
import { SUPPRESS, html, svg } from "./dom.js";
import { boundOf, cellAt, measure } from "./grid.js";
import { binOf } from "./ranges.js";
import { brief, short } from "./format.js";

/** @import { Anchors, RGB } from "./colours.js" */
/** @import { Grid, Labels, Matrix, Tick } from "./grid.js" */
/** @typedef {{ x: number, y: number }} Place px, in the map */

const FRAME = "#7f8a99"; // of a cell that is not known
const EDGE = "rgba(127,138,153,.45)"; // of a cell with a gap to the next
const DIGIT = 6.2; // px of a character of a number in a cell, about
const ABSENT = "rgba(127,138,153,.10)"; // of a cell that is in no class

/**
 * @param {Anchors} anchors the colours of the scale
 * @param {Labels} labels
 */
function heatmap(anchors, labels) {
  const canvas = html("canvas", { "aria-hidden": "true" }),
    over = svg("svg", { "aria-hidden": "true" });
  const root = html(
    "div",
    { class: "gl-map", tabindex: "0", role: "application", "aria-roledescription": "heat map", [SUPPRESS]: "true" },
    canvas,
    over,
  );
  const colour = diverging(anchors);
  /** @type {Grid | null} */
  let grid = null; // of what was drawn last
  let bound = 0;

  /** @param {string} kind */
  function unmark(kind) {
    over.querySelector(`.${kind}`)?.remove();
  }

  return {
    root,

    /** The number at the ends of the colour scale. */
    bound: () => bound,

    /**
     * Draw a matrix into `room` px; its classes instead of its numbers, if they are given.
     * @param {Matrix} matrix
     * @param {number} room
     * @param {Int32Array | null} classes of each cell; −1: in none, −2: in several
     */
    draw(matrix, room, classes) {
      const g = (grid = measure(matrix, room, labels)),
        scale = Math.max(1, globalThis.devicePixelRatio || 1);
      bound = boundOf(matrix);
      over.replaceChildren();
      over.setAttribute("width", String(g.width));
      over.setAttribute("height", String(g.height));
      over.setAttribute("viewBox", `0 0 ${g.width} ${g.height}`);
      canvas.width = Math.ceil(g.width * scale);
      canvas.height = Math.ceil(g.height * scale);
      canvas.style.width = `${canvas.width / scale}px`;
      canvas.style.height = `${canvas.height / scale}px`;
      root.style.width = `${g.width}px`;
      root.style.height = `${g.height}px`;
      const pen = canvas.getContext("2d");
      if (!pen) return; // a page that has run out of canvases
      /** @param {number} value @returns {RGB} */
      const ground = (value) =>
        Number.isNaN(value) ? UNDEFINED : colour(Number.isFinite(value) ? (bound ? value / bound : 0) : Math.sign(value));
      const paint = painter(pen, scale, g.gap, (value) => css(ground(value)));
      /** @type {Painter} */
      const cell = (x, y, w, h, low, high, flags) => {
        paint(x, y, w, h, low, high, flags);
        const value = worth(low, high, flags),
          text = g.numbered && flags & KNOWN && Number.isFinite(value) ? brief(value) : "";
        if (!text || text.length * DIGIT > w) return;
        const middle = { x: x + w / 2, y: y + h / 2 + 3.6, "text-anchor": "middle" };
        over.append(svg("text", { ...middle, class: "gl-digits", style: `fill:${css(inkOn(ground(value)))}` }, text));
      };
      if (classes) drawClasses(pen, scale, g, classes, over);
      else drawCells(cell, g, matrix);
      drawStrip(cell, g, matrix);
      drawLabels(over, g, matrix, labels);
      drawOutline(over, g, matrix);
    },

    /**
     * The cell at a place; see `cellAt`.
     * @param {Place} place
     */
    at: ({ x, y }, anywhere = false) => grid && cellAt(grid, x, y, anywhere),

    /**
     * Show the rectangle that is dragged, or none.
     * @param {Place} [from]
     * @param {Place} [to]
     */
    mark(from, to) {
      unmark("gl-drag");
      if (!from || !to) return;
      const width = Math.abs(from.x - to.x),
        height = Math.abs(from.y - to.y);
      over.append(svg("rect", { class: "gl-drag", x: Math.min(from.x, to.x), y: Math.min(from.y, to.y), width, height }));
    },

    /**
     * Show the keyboard's cursor at a cell, or nowhere.
     * @param {number} i
     * @param {number} j
     */
    cursor(i, j) {
      unmark("gl-cursor");
      const g = grid;
      if (!g || i < 0 || j < 0 || i >= g.m || j >= g.n) return;
      const width = Math.max(4, g.wide - g.gap + 2),
        height = Math.max(4, g.high - g.gap + 2);
      over.append(svg("rect", { class: "gl-cursor", x: g.x(j) - 1, y: g.y(i) - 1, width, height }));
    },
  };
}

/**
 * @callback Painter paints one cell
 * @param {number} x0
 * @param {number} y0
 * @param {number} w
 * @param {number} h
 * @param {number} low
 * @param {number} high
 * @param {number} flags
 * @returns {void}
 */

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} scale device pixels of a px
 * @param {number} gap
 * @param {(value: number) => string} colour
 * @returns {Painter}
 */
function painter(pen, scale, gap, colour) {
  return (x0, y0, w, h, low, high, flags) => {
    const [ax, ay, width, height] = pixels(scale, x0, y0, w, h);
    if (!(flags & KNOWN)) {
      if (Math.min(w, h) < 7) return;
      pen.setLineDash([2 * scale, 2 * scale]);
      pen.lineWidth = scale * 0.8;
      pen.strokeStyle = FRAME;
      pen.strokeRect(ax + scale / 2, ay + scale / 2, width - scale, height - scale);
      return;
    }
    const value = worth(low, high, flags);
    pen.fillStyle = colour(value);
    pen.fillRect(ax, ay, width, height);
    if (gap) {
      pen.setLineDash([]);
      pen.lineWidth = scale * 0.6;
      pen.strokeStyle = EDGE;
      pen.strokeRect(ax, ay, width, height);
    }
    if (Number.isFinite(value)) return;
    pen.setLineDash([]);
    pen.lineWidth = Math.max(1, Math.min(2, w / 5)) * scale;
    pen.strokeStyle = value === -Infinity ? "#fff" : "#282c34";
    drawSign(pen, value, ax + width / 2, ay + height / 2, Math.max(1.2, Math.min(w, h) * 0.26) * scale);
  };
}

/**
 * A rectangle in whole device pixels, at least one a side.
 * @param {number} scale
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} h
 * @returns {[number, number, number, number]}
 */
function pixels(scale, x, y, w, h) {
  const [ax, ay] = [Math.round(x * scale), Math.round(y * scale)];
  return [ax, ay, Math.max(1, Math.round((x + w) * scale) - ax), Math.max(1, Math.round((y + h) * scale) - ay)];
}

/**
 * A cross for NaN, a plus or a minus for an infinity.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} value
 * @param {number} cx
 * @param {number} cy
 * @param {number} r
 */
function drawSign(pen, value, cx, cy, r) {
  pen.beginPath();
  if (Number.isNaN(value)) {
    pen.moveTo(cx - r, cy - r);
    pen.lineTo(cx + r, cy + r);
    pen.moveTo(cx - r, cy + r);
    pen.lineTo(cx + r, cy - r);
  } else {
    pen.moveTo(cx - r, cy);
    pen.lineTo(cx + r, cy);
    if (value > 0) {
      pen.moveTo(cx, cy - r);
      pen.lineTo(cx, cy + r);
    }
  }
  pen.stroke();
}

/**
 * @param {Painter} cell
 * @param {Grid} g
 * @param {Matrix} matrix
 */
function drawCells(cell, { m, n, x, y, wide, high, gap }, { low, high: greatest, flags }) {
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      const k = i * n + j;
      cell(x(j), y(i), wide - gap, high - gap, low[k], greatest[k], flags[k]);
    }
}

/**
 * @param {Painter} cell
 * @param {Grid} g
 * @param {Matrix} matrix
 */
function drawStrip(cell, { m, n, x, y, wide, high, gap, across, stripX, stripY, thick }, { strip }) {
  const count = across ? m : n;
  for (let k = 0; k < count; k++) {
    const [low, greatest, flags] = strip ? [strip.low[k], strip.high[k], strip.flags[k]] : [0, 0, 0];
    if (across) cell(stripX, y(k), thick - gap, high - gap, low, greatest, flags);
    else cell(x(k), stripY, wide - gap, thick - gap, low, greatest, flags);
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} scale
 * @param {Grid} g
 * @param {Int32Array} classes
 * @param {SVGSVGElement} over
 */
function drawClasses(pen, scale, { m, n, x, y, wide, high, gap }, classes, over) {
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      const which = classes[i * n + j];
      if (which === -1 && !gap) continue;
      pen.fillStyle = which === -1 ? ABSENT : which === -2 ? MANY : classColour(which);
      pen.fillRect(...pixels(scale, x(j), y(i), wide - gap, high - gap));
      if (which < 0 || Math.min(wide, high) < 14) continue;
      const middle = { x: x(j) + (wide - gap) / 2, y: y(i) + (high - gap) / 2 + 4, "text-anchor": "middle" };
      over.append(svg("text", { ...middle, class: "gl-group", style: `fill:${classInk(which)}` }, String(which)));
    }
}

/**
 * @param {SVGSVGElement} over
 * @param {Grid} g
 * @param {Matrix} matrix
 * @param {Labels} labels
 */
function drawLabels(over, g, { strip, stripName }, { parts }) {
  const { m, n, x, high, wide, left, top, right, bottom, across } = g;
  /** @type {(place: Record<string, string | number>, text: string) => void} */
  const write = (place, text) => over.append(svg("text", place, text));
  let free = -Infinity; // where the last label above the columns ends
  for (const tick of g.columnTicks) {
    const place = columnPlace(g, tick),
      half = tick.name.length * 3.15,
      start = place["text-anchor"] === "end" ? place.x - 2 * half : place.x - half;
    if (!g.upright && start < free) continue;
    write(place, tick.name);
    free = start + 2 * half + 3;
  }
  for (const { at, name } of g.rowTicks) write({ x: left - 7, y: at + 3.7, "text-anchor": "end" }, name);
  if (g.named)
    for (let from = 0; from < n;) {
      const to = g.parts.lastIndexOf(g.parts[from]),
        room = x(to) + wide - x(from),
        name = short(parts[g.parts[from]].name, Math.max(3, Math.floor(room / 6)));
      write({ x: x(from) + room / 2, y: 11, "text-anchor": "middle", class: "gl-name" }, name);
      from = to + 1;
    }
  const emphasis = "gl-name gl-product";
  if (across) write({ x: g.stripX + g.thick / 2, y: top - 8, "text-anchor": "middle", class: emphasis }, stripName);
  else write({ x: left - 7, y: g.stripY + g.thick / 2 + 3.7, "text-anchor": "end", class: emphasis }, stripName);
  if (Math.min(high, wide) >= 7) return; // small cells have no frames of their own
  const [width, height] = [right - left, bottom - top];
  if (m && n)
    over.append(svg("rect", { x: left - 0.5, y: top - 0.5, width: width + 1, height: height + 1, class: "gl-outline" }));
  if (strip) return;
  const place = across ? { x: g.stripX, y: top, width: g.thick, height } : { x: left, y: g.stripY, width, height: g.thick };
  over.append(svg("rect", { ...place, class: "gl-outline gl-dashed" }));
}

/**
 * Where the label of a column stands: upright, or above the column unless it would stick out at the right.
 * @param {Grid} g
 * @param {Tick} tick
 * @returns {{ x: number, y: number, [attribute: string]: string | number }}
 */
function columnPlace(g, { at, name }) {
  const y = g.top - 8;
  if (g.upright) return { x: at + 3, y, transform: `rotate(-90 ${at + 3} ${y})` };
  const end = g.across ? g.stripX - 6 : g.width - 1;
  return at + name.length * 3.15 > end ? { x: end, y, "text-anchor": "end" } : { x: at, y, "text-anchor": "middle" };
}

/**
 * The outline of the row, or column, that is shown.
 * @param {SVGSVGElement} over
 * @param {Grid} g
 * @param {Matrix} matrix
 */
function drawOutline(over, g, { at, window, rowBins, columnBins }) {
  const [first, end] = g.across ? [window[2], window[3]] : [window[0], window[1]];
  if (at < first || at >= end) return;
  const k = binOf(g.across ? columnBins : rowBins, at),
    thick = Math.max(3, g.across ? g.wide : g.high) - g.gap + 6,
    rx = g.gap === 2 ? 5 : 2;
  const place = g.across
    ? { x: g.x(k) - 3, y: g.top - 3, width: thick, height: g.bottom - g.top + 6 - g.gap }
    : { x: g.left - 3, y: g.y(k) - 3, width: g.right - g.left + 6 - g.gap, height: thick };
  over.append(svg("rect", { class: "gl-now", rx, ...place }));
}

export { heatmap };
