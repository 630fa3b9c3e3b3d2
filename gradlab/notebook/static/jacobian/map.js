// The matrix as a heat map: hovering shows a cell's value, a click goes to its row (or column), a drag zooms, arrow keys go from
// line to line and along one, +, − and 0 zoom.
//
// Python draws it (explore/jacobian/live_map.py). This module chooses the window of a zoom; the kernel, which has the entries,
// draws it.

import { SUPPRESS, button, hasFocus, html, readByTitle, svg, svgFrom } from "../kit/dom.js";
import { binOf, binRange, clamp, zoomWindow } from "../kit/ranges.js";
import { anyKnown, cellText, extremesText, mapText, windowText } from "./words.js";

/** @import { Answer } from "../kit/kernel.js" */
/** @import { Cell } from "./shown.js" */
/** @import { Ask } from "./controls.js" */
/** @import { Shown } from "./shown.js" */

/** @typedef {{ x: number, y: number }} Place px, in the map */

/**
 * The positions of its cells (explore/jacobian/live_map._places).
 * @typedef {object} Layout
 * @property {number[]} x where each column of cells begins, px
 * @property {number[]} y where each row of cells begins
 * @property {number} wide a cell, and the gap after it
 * @property {number} high
 * @property {number} gap
 * @property {[number, number]} strip its start and thickness
 */

const LARGE = 24; // lines beyond which zooming is offered
const DRAG = 6; // px beyond which a press is a drag

/**
 * @param {Shown} shown
 * @param {{ ask: Ask, wish: Ask, say: (text: string) => void }} view
 */
function map(shown, { ask, wish, say }) {
  const { about } = shown,
    large = Math.max(about.rows, about.columns) > LARGE;
  const root = html("div", {
    ...{ class: "gl-map", tabindex: "0", role: "application", "aria-roledescription": "heat map", [SUPPRESS]: "true" },
  });
  const read = html("div", { class: "gl-read gl-dim" });

  const extremes = html("div", { class: "gl-scale gl-dim" });

  // ------------------------------------------------------------------------------------------------ the drawing
  /** @type {SVGSVGElement | null} with numbers */
  let numbers = null;
  /** @type {SVGSVGElement | null} with the colours of sweeps instead */
  let colours = null;
  let over = ""; // the strip and the outline
  /** @type {Layout | null} */
  let layout = null;
  /** @type {Record<string, Element>} the cursor and the rectangle that is dragged */
  const marks = {};

  /** Show a rectangle of a kind, or none. @param {string} kind @param {Record<string, number>} [box] */
  function mark(kind, box) {
    marks[kind]?.remove();
    if (box) root.firstElementChild?.append((marks[kind] = svg("rect", { class: kind, ...box })));
  }

  /** Show the keyboard cursor at a cell, or hide it. @param {Cell} [cell] */
  function cursor(cell) {
    if (!cell || !layout || cell.i >= layout.y.length || cell.j >= layout.x.length) {
      mark("gl-cursor");
      return;
    }
    const { x, y, wide, high, gap } = layout,
      [width, height] = [Math.max(4, wide - gap + 2), Math.max(4, high - gap + 2)];
    mark("gl-cursor", { x: x[cell.j] - 1, y: y[cell.i] - 1, width, height });
  }

  /**
   * The cell at a position; null if there is none. `anywhere`: the nearest before it, for a drag that ends outside.
   * @param {Place} place
   * @returns {Cell | null}
   */
  function cellAt({ x, y }, anywhere = false) {
    if (!layout) return null;
    const i = lineAt(layout.y, layout.high, y, anywhere),
      j = lineAt(layout.x, layout.wide, x, anywhere),
      [start, thick] = layout.strip,
      beside = (shown.across ? x : y) - start;
    if (i !== null && j !== null) return { i, j };
    if (beside < 0 || beside >= thick) return null;
    return shown.across ? (i !== null ? { i, j: -1 } : null) : j !== null ? { i: -1, j } : null;
  }

  // ------------------------------------------------------------------------------------------------ zoom
  const whole = [0, about.rows, 0, about.columns];
  /** @param {number[]} window */
  const zoomTo = (window) => ask("window", { window });
  /** Zoom around the cell at the cursor, or around the nonzero entries. @param {number} factor */
  function zoom(factor) {
    const { window, centre, at } = shown.frame,
      [first, end, left, right] = window,
      cell = shown.beside === null || at < 0 ? null : binRange(shown.besideBins, shown.beside, shown.across ? end : right),
      beside = cell ? Math.floor((cell[0] + cell[1]) / 2) : centre[shown.across ? 0 : 1],
      [row, column] = at < 0 ? centre : shown.across ? [beside, at] : [at, beside];
    zoomTo([...zoomWindow([first, end], about.rows, row, factor), ...zoomWindow([left, right], about.columns, column, factor)]);
  }
  const part = html("span", { class: "gl-dim" });
  const tools = html(
    "div",
    { class: "gl-tools", role: "group", "aria-label": "zoom" },
    button("−", "zoom out", () => zoom(4)),
    button("+", "zoom in", () => zoom(1 / 4)),
    button("all", "show the whole matrix", () => zoomTo(whole)),
    part,
  );
  readByTitle(tools);
  tools.hidden = !large;

  // ------------------------------------------------------------------------------------------------ the pointer
  /** @type {Cell | null} */
  let hover = null;
  /** @type {(Place & { moved: boolean }) | null} */
  let drag = null;
  /** @param {MouseEvent} event */
  const place = (event) => {
    const drawn = root.querySelector("svg"),
      box = root.getBoundingClientRect(),
      scale = drawn ? drawn.viewBox.baseVal.width / drawn.getBoundingClientRect().width : 1;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  };
  root.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (drag && large && Math.hypot(here.x - drag.x, here.y - drag.y) > DRAG) {
      drag.moved = true;
      const size = { width: Math.abs(here.x - drag.x), height: Math.abs(here.y - drag.y) };
      mark("gl-drag", { x: Math.min(here.x, drag.x), y: Math.min(here.y, drag.y), ...size });
    }
    hover = cellAt(here);
    read.textContent = hover ? cellText(shown, hover) : "";
  });
  root.addEventListener("pointerleave", () => {
    hover = null;
    read.textContent = "";
  });
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { ...place(event), moved: false };
    try {
      root.setPointerCapture(event.pointerId);
    } catch {
      /* the pointer no longer exists */
    }
  });
  root.addEventListener("pointercancel", () => {
    drag = null;
    mark("gl-drag");
  });
  root.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { moved } = drag,
      from = cellAt(drag, moved),
      to = cellAt(place(event), moved);
    drag = null;
    mark("gl-drag");
    if (moved && large && from && to) zoomToCells(from, to);
    else if (from) select(from);
  });

  /**
   * @param {Cell} from
   * @param {Cell} to
   */
  function zoomToCells(from, to) {
    const { rowBins, columnBins, window } = shown.frame,
      [top, bottom] = [Math.min(from.i, to.i), Math.max(from.i, to.i)].map((i) => Math.max(i, 0)),
      [left, right] = [Math.min(from.j, to.j), Math.max(from.j, to.j)].map((j) => Math.max(j, 0));
    const end = [binRange(rowBins, bottom, window[1])[1], binRange(columnBins, right, window[3])[1]];
    zoomTo([rowBins[top], end[0], columnBins[left], end[1]]);
  }

  /** @param {Cell} cell */
  function select({ i, j }) {
    const [line, beside] = shown.across ? [j, i] : [i, j];
    if (line < 0) return;
    const k = line * shown.frame.columnBins.length + beside,
      found = shown.across || beside < 0 || shown.frame.low[k] !== 0 || shown.frame.high[k] !== 0;
    shown.beside = found ? Math.max(beside, 0) : null; // without a nonzero entry there is nothing to zoom to
    wish("go", { at: shown.lineBins[line] });
  }

  // ------------------------------------------------------------------------------------------------ keys
  /** @param {number} by */
  function move(by) {
    const at = shown.frame.at < 0 ? (by > 0 ? -1 : shown.many) : shown.frame.at;
    wish("go", { at: clamp(at + by, 0, shown.many - 1) });
  }
  /** @param {number} by */
  function moveAlong(by) {
    shown.beside = clamp((shown.beside ?? 0) + by, 0, shown.besideBins.length - 1);
    announce();
  }
  /** Announce the cell at the keyboard cursor. */
  function announce() {
    const k = shown.frame.at < 0 ? 0 : binOf(shown.lineBins, shown.frame.at),
      beside = shown.beside ?? 0,
      cell = shown.across ? { i: beside, j: k } : { i: k, j: beside },
      text = cellText(shown, cell);
    cursor(cell);
    read.textContent = text;
    say(text);
  }
  root.addEventListener("keydown", (event) => {
    const rows = ["ArrowUp", "ArrowDown"],
      columns = ["ArrowLeft", "ArrowRight"],
      [along, sideways] = shown.across ? [columns, rows] : [rows, columns];
    /** @type {Record<string, () => void>} */
    const keys = {
      [along[0]]: () => move(-1),
      [along[1]]: () => move(1),
      [sideways[0]]: () => moveAlong(-1),
      [sideways[1]]: () => moveAlong(1),
      PageUp: () => move(-10),
      PageDown: () => move(10),
      Home: () => move(-shown.many),
      End: () => move(shown.many),
      Enter: () => ask("step"),
      " ": () => ask("step"),
      "+": () => zoom(1 / 4),
      "=": () => zoom(1 / 4),
      "-": () => zoom(4),
      0: () => zoomTo(whole),
    };
    const action = keys[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !action) return;
    event.preventDefault();
    action();
  });
  root.addEventListener("blur", () => cursor());

  return {
    nodes: [tools, root, extremes, read],

    /**
     * Take over a new drawing: the cells, or only the overlay.
     * @param {Answer} answer
     */
    take(answer) {
      if (answer.groupCells) {
        colours = svgFrom(answer.map);
        return;
      }
      if (answer.map) numbers = svgFrom(answer.map);
      if (answer.layout) layout = answer.layout;
      over = answer.over ?? "";
    },

    update() {
      const drawn = (shown.classes && colours) || numbers;
      if (drawn) {
        drawn.querySelector(".gl-over")?.replaceWith(over ? svgFrom(over) : svg("g", { class: "gl-over" }));
        if (drawn !== root.firstElementChild) root.replaceChildren(drawn);
        mark("gl-cursor");
      }
      if (hasFocus(root) && drawn) announce();
      root.setAttribute("aria-label", mapText(shown));
      extremes.textContent = extremesText(shown);
      extremes.classList.toggle("gl-room", (!anyKnown(shown) && !shown.frame.result?.length) || shown.classes !== null);
      part.textContent = windowText(shown);
      if (hover) read.textContent = cellText(shown, hover);
      else if (large) read.textContent = "click a row, or drag to zoom";
    },
  };
}

/**
 * @param {number[]} starts
 * @param {number} length
 * @param {number} place
 * @param {boolean} anywhere
 */
function lineAt(starts, length, place, anywhere) {
  for (let k = starts.length - 1; k >= 0; k--) if (place >= starts[k]) return anywhere || place < starts[k] + length ? k : null;
  return anywhere ? 0 : null;
}

export { map };
