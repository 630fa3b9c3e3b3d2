// The matrix as a heat map, with all ways of moving in it: hovering reads a cell, a click goes to its row (or column), a drag
// zooms, arrow keys go from line to line and along one, + and − and 0 zoom.
//
// Zooming asks the kernel, which knows the entries behind the cells; here it is decided about which window.

import { gradient } from "../kit/colours.js";
import { button, focused, html, readByTitle } from "../kit/dom.js";
import { number } from "../kit/format.js";
import { heatmap } from "../kit/heatmap.js";
import { binOf, binRange, clamp, zoomed } from "../kit/ranges.js";
import { anyKnown, cellText, extremesText, mapText, windowText } from "./words.js";

/** @import { Cell } from "../kit/grid.js" */
/** @import { Place } from "../kit/heatmap.js" */
/** @import { Ask } from "./controls.js" */
/** @import { Shown } from "./shown.js" */

const LARGE = 24; // lines beyond which there is something to zoom into
const DRAG = 6; // px beyond which a press is a drag

/**
 * @param {Shown} shown
 * @param {{ ask: Ask, wish: Ask, room: () => number, say: (text: string) => void }} view
 */
function map(shown, { ask, wish, room, say }) {
  const { about } = shown,
    large = Math.max(about.rows, about.columns) > LARGE;
  const heat = heatmap(about.colours, {
    row: shown.rowLabel,
    column: shown.columnLabel,
    rows: about.outputs,
    parts: about.inputs,
  });
  const read = html("div", { class: "gl-read gl-dim" });

  // ------------------------------------------------------------------------------------------------ the scale below
  const bar = html("i"),
    ends = [html("small"), html("small"), html("small")],
    extremes = html("span", { class: "gl-dim" });
  const scale = html("div", { class: "gl-scale" }, html("div", {}, bar, html("div", { class: "gl-ends" }, ...ends)), extremes);
  bar.style.background = gradient(about.colours);

  // ------------------------------------------------------------------------------------------------ zoom
  const whole = [0, about.rows, 0, about.columns];
  /** @param {number[]} window */
  const zoomTo = (window) => ask("window", { window });
  /** Zoom about the cell of the line that the cursor is at, or about what is not zero. @param {number} factor */
  function zoom(factor) {
    const { window, centre, at } = shown.frame,
      [first, end, left, right] = window,
      cell = shown.beside === null || at < 0 ? null : binRange(shown.besideBins, shown.beside, shown.across ? end : right),
      beside = cell ? Math.floor((cell[0] + cell[1]) / 2) : centre[shown.across ? 0 : 1],
      [row, column] = at < 0 ? centre : shown.across ? [beside, at] : [at, beside];
    zoomTo([...zoomed([first, end], about.rows, row, factor), ...zoomed([left, right], about.columns, column, factor)]);
  }
  const part = html("span", { class: "gl-dim" });
  const tools = html(
    "div",
    { class: "gl-tools", role: "group", "aria-label": "zoom" },
    button("−", "zoom out", () => zoom(4)),
    button("+", "zoom in, about what is shown", () => zoom(1 / 4)),
    button("all", "the whole matrix", () => zoomTo(whole)),
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
    const box = heat.root.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  heat.root.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (drag && large && Math.hypot(here.x - drag.x, here.y - drag.y) > DRAG) {
      drag.moved = true;
      heat.mark(drag, here);
    }
    hover = heat.at(here);
    read.textContent = hover ? cellText(shown, hover) : "";
  });
  heat.root.addEventListener("pointerleave", () => {
    hover = null;
    read.textContent = "";
  });
  heat.root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { ...place(event), moved: false };
    try {
      heat.root.setPointerCapture(event.pointerId);
    } catch {
      /* a pointer that is gone */
    }
  });
  heat.root.addEventListener("pointercancel", () => {
    drag = null;
    heat.mark();
  });
  heat.root.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { moved } = drag,
      from = heat.at(drag, moved),
      to = heat.at(place(event), moved);
    drag = null;
    heat.mark();
    if (moved && large && from && to) dragged(from, to);
    else if (from) clicked(from);
  });

  /**
   * @param {Cell} from
   * @param {Cell} to
   */
  function dragged(from, to) {
    const { rowBins, columnBins, window } = shown.frame,
      [top, bottom] = [Math.min(from.i, to.i), Math.max(from.i, to.i)].map((i) => Math.max(i, 0)),
      [left, right] = [Math.min(from.j, to.j), Math.max(from.j, to.j)].map((j) => Math.max(j, 0));
    const end = [binRange(rowBins, bottom, window[1])[1], binRange(columnBins, right, window[3])[1]];
    zoomTo([rowBins[top], end[0], columnBins[left], end[1]]);
  }

  /** @param {Cell} cell */
  function clicked({ i, j }) {
    const [line, beside] = shown.across ? [j, i] : [i, j];
    if (line < 0) return;
    const k = line * shown.frame.columnBins.length + beside,
      found = shown.across || beside < 0 || shown.frame.low[k] !== 0 || shown.frame.high[k] !== 0;
    shown.beside = found ? Math.max(beside, 0) : null; // where all is zero there is nothing to zoom to
    wish("go", { at: shown.lineBins[line] });
  }

  // ------------------------------------------------------------------------------------------------ keys
  /** @param {number} by */
  function move(by) {
    const at = shown.frame.at < 0 ? (by > 0 ? -1 : shown.many) : shown.frame.at;
    wish("go", { at: clamp(at + by, 0, shown.many - 1) });
  }
  /** @param {number} by */
  function aside(by) {
    shown.beside = clamp((shown.beside ?? 0) + by, 0, shown.besideBins.length - 1);
    tell();
  }
  /** Say what is under the keyboard's cursor. */
  function tell() {
    const k = shown.frame.at < 0 ? 0 : binOf(shown.lineBins, shown.frame.at),
      beside = shown.beside ?? 0,
      cell = shown.across ? { i: beside, j: k } : { i: k, j: beside },
      text = cellText(shown, cell);
    heat.cursor(cell.i, cell.j);
    read.textContent = text;
    say(text);
  }
  heat.root.addEventListener("keydown", (event) => {
    const rows = ["ArrowUp", "ArrowDown"],
      columns = ["ArrowLeft", "ArrowRight"],
      [along, sideways] = shown.across ? [columns, rows] : [rows, columns];
    /** @type {Record<string, () => void>} */
    const keys = {
      [along[0]]: () => move(-1),
      [along[1]]: () => move(1),
      [sideways[0]]: () => aside(-1),
      [sideways[1]]: () => aside(1),
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
  heat.root.addEventListener("blur", () => heat.cursor(-1, -1));

  function draw() {
    heat.draw(shown.matrix, room(), shown.classes);
    if (focused(heat.root)) tell();
  }

  return {
    nodes: [tools, heat.root, scale, read],

    /** Draw again, in the room that there is now. */
    draw,

    update() {
      draw();
      heat.root.setAttribute("aria-label", mapText(shown));
      const bound = heat.bound();
      [bound ? number(-bound) : "", "0", bound ? number(bound) : ""].forEach((text, k) => {
        ends[k].textContent = text;
      });
      extremes.textContent = extremesText(shown);
      scale.classList.toggle("gl-room", (!anyKnown(shown) && !shown.frame.result?.length) || shown.classes !== null);
      part.textContent = windowText(shown);
      if (hover) read.textContent = cellText(shown, hover);
      else if (large) read.textContent = "click a row, or drag to zoom";
    },
  };
}

export { map };
