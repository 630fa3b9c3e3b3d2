// A stripe for each layer over the steps, from the ground to orange (or to ink) on a logarithmic scale: strong is what stands off.

import { svg } from "../kit/dom.js";
import { weight } from "../kit/format.js";

/** @import { Told, Values } from "./run.js" */

const ROW = 18, // px
  LEVELS = 16,
  FONT = 0.6 * 10.5; // px a letter, about

/**
 * @param {string} what "gradient" or "ratio"
 * @param {string} title
 * @param {[number, number]} sides room at the left and right, in px
 */
function stripes(what, title, [left, right]) {
  const kind = what === "gradient" ? "gl-heat" : "gl-shade"; // orange is what flows back, and a ratio does not
  const drawing = svg("svg", { class: "gl-stripes", role: "img", "aria-label": title });
  const hair = svg("line", { class: "gl-hair", y1: 20, visibility: "hidden" });
  let wide = 1,
    steps = 1;

  /**
   * @param {Told} run
   * @param {number} width in px
   */
  function draw(run, width) {
    const list = run.layers.map((layer) => layer[/** @type {"gradient" | "ratio"} */ (what)].mean);
    const known = list.flatMap((values) => values.filter((x) => x !== null && x > 0)).map(Number);
    const most = Math.max(...known),
      least = Math.max(Math.min(...known), most * 1e-9);
    const low = known.length ? 10 ** Math.floor(Math.log10(least)) : 1,
      high = known.length ? Math.max(10 ** Math.ceil(Math.log10(most)), 10 * low) : 10;
    wide = Math.max(20, width - left - right);
    steps = Math.max(1, run.steps);
    const tall = 24 + ROW * list.length;
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(tall));
    drawing.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    /** @type {SVGElement[]} */
    const parts = [svg("text", { x: 2, y: 11, class: what === "gradient" ? "gl-name gl-back" : "gl-name" }, title)];
    parts.push(...scale(low, high, left + wide, kind));
    list.forEach((values, k) => {
      const top = 20 + ROW * k,
        name = run.names[k],
        room = Math.floor((left - 8) / FONT);
      const label = svg("text", { x: left - 6, y: top + 12, "text-anchor": "end" });
      label.append(name.length > room ? `…${name.slice(1 - room)}` : name);
      parts.push(label, svg("rect", { class: "gl-ground", x: left, y: top, width: wide, height: ROW - 2 }));
      parts.push(...stripe(values, run, top, low, high));
      const last = [...values].reverse().find((x) => x !== null);
      if (last !== undefined && last !== null)
        parts.push(svg("text", { x: left + wide + 8, y: top + 12, class: what === "gradient" ? "gl-back" : "" }, weight2(last)));
    });
    hair.setAttribute("y2", String(tall));
    drawing.replaceChildren(...parts, hair);
  }

  /**
   * One path for each level of colour.
   * @param {Values} values
   * @param {Told} run
   * @param {number} top
   * @param {number} low
   * @param {number} high
   */
  function stripe(values, run, top, low, high) {
    /** @type {Map<number, string[]>} */
    const levels = new Map();
    const place = (/** @type {number} */ column) => left + wide * Math.min(1, (column * run.width) / steps);
    let next = values.length;
    for (let at = values.length - 1; at >= 0; at--) {
      const value = values[at];
      if (value === null) continue;
      if (value > 0) {
        const level = Math.round(LEVELS * Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low))));
        if (!levels.has(level)) levels.set(level, []);
        const x = Math.round(place(at)),
          long = Math.round(place(next)) - x; // whole pixels: no seams
        levels.get(level)?.push(`M${x} ${top}h${long}v${ROW - 2}h-${long}z`);
      }
      next = at;
    }
    return [...levels].map(([level, paths]) =>
      svg("path", { class: kind, d: paths.join(""), "fill-opacity": Math.max(level, 0.6) / LEVELS }),
    );
  }

  return {
    drawing,
    draw,
    left,

    /**
     * The column at a place of the pointer; null outside.
     * @param {PointerEvent | MouseEvent} event
     * @returns {number | null} a step, from 0
     */
    step(event) {
      const part = (event.clientX - drawing.getBoundingClientRect().left - left) / wide;
      return part < -0.01 || part > 1.01 ? null : Math.min(1, Math.max(0, part)) * steps;
    },

    /** @param {number | null} step where the line is drawn */
    mark(step) {
      const x = String(left + (wide * (step ?? 0)) / steps);
      hair.setAttribute("x1", x);
      hair.setAttribute("x2", x);
      hair.setAttribute("visibility", step === null ? "hidden" : "visible");
    },
  };
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} end in px
 * @param {string} kind
 */
function scale(low, high, end, kind) {
  const wide = 120,
    cells = Array.from({ length: LEVELS }, (_, k) =>
      svg("rect", {
        class: kind,
        x: end - wide + (wide * k) / LEVELS,
        y: 6,
        width: wide / LEVELS,
        height: 4,
        "fill-opacity": (k + 0.6) / LEVELS,
      }),
    );
  const first = svg("text", { x: end - wide - 4, y: 11, "text-anchor": "end" }, weight2(low)),
    last = svg("text", { x: end + 4, y: 11 }, weight2(high));
  return [first, ...cells, last];
}

/**
 * Two digits, with powers of ten where it is small or large: "0.031", "3.1e−6".
 * @param {number} value
 */
function weight2(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e4) return weight(Number(value.toPrecision(2)));
  return value.toExponential(1).replace(".0e", "e").replace("e-", "e−").replace("e+", "e");
}

export { stripes, weight2 };
