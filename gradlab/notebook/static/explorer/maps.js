// The numbers of a tensor in the panel: one number, a map of its cells, a histogram.

import { html, svg } from "../kit/dom.js";
import { css, diverging, gradient, inkOn } from "../kit/colours.js";
import { brief, number } from "../kit/format.js";

/** @import { Anchors, RGB } from "../kit/colours.js" */

/**
 * What Python says of a value or a gradient; see explore/explorer/panel.py.
 * @typedef {object} Numbers
 * @property {"value" | "gradient"} kind
 * @property {string} [norm]
 * @property {string} [odd]
 * @property {string} [text]
 * @property {string[]} [range]
 * @property {string} [mean]
 * @property {number} [zeros]
 * @property {number} [size]
 * @property {number[]} [bins]
 * @property {{ shape: number[], rows: number[], columns: number[], cells: (number | string)[], wide: number, range: (number | string)[] }} [map]
 */

const WIDE = 200, // px
  NUMBERED = 8, // cells a side that have their number in them
  LARGEST = 22; // px of a cell without

/**
 * @param {Numbers | null} numbers
 * @param {string} title
 * @param {Anchors} anchors the colours of −, 0 and +
 * @param {string} [none] what is said where there are no numbers
 */
function tensor(numbers, title, anchors, none = "not known") {
  const head = html("div", { class: "gl-tensor-head" }, html("b", { class: `gl-${title}` }, title));
  if (!numbers) {
    head.append(" ", html("span", { class: "gl-dim" }, none));
    return html("div", { class: "gl-tensor" }, head);
  }
  if (numbers.text === undefined && numbers.norm) head.append(html("span", { class: "gl-dim" }, ` ‖·‖ = ${numbers.norm}`));
  if (numbers.odd) head.append(" ", html("b", {}, numbers.odd));
  const root = html("div", { class: "gl-tensor" }, head);
  if (numbers.text !== undefined) root.append(html("div", { class: `gl-one gl-${title}` }, numbers.text));
  if (numbers.map) root.append(cells(numbers.map, anchors, title));
  if (numbers.bins) root.append(histogram(numbers, title));
  else if (numbers.range && !numbers.map)
    root.append(html("div", { class: "gl-dim" }, `from ${numbers.range[0]} to ${numbers.range[1]}, mean ${numbers.mean}`));
  return root;
}

/**
 * A map of cells, the numbers in them where they are few.
 * @param {NonNullable<Numbers["map"]>} map
 * @param {Anchors} anchors
 * @param {string} title
 */
function cells(map, anchors, title) {
  const { wide, cells: numbers } = map,
    tall = numbers.length / wide,
    values = numbers.map((x) => (x === "NaN" ? NaN : x === "inf" ? Infinity : Number(x))),
    bound = Math.max(...values.filter(Number.isFinite).map(Math.abs), 0) || 1,
    colour = diverging(anchors),
    digits = wide <= NUMBERED && tall <= NUMBERED,
    w = digits ? Math.min(46, WIDE / wide) : Math.min(LARGEST, WIDE / wide),
    h = digits ? 20 : Math.min(w, 16),
    left = 22,
    top = 14;
  const drawn = svg("svg", {
    width: left + w * wide + 2,
    height: top + h * tall + 2,
    role: "img",
    "aria-label": `${title}, ${map.shape.join(" by ")}`,
    class: "gl-cells",
  });
  const step = (/** @type {number} */ many, /** @type {number} */ room) => Math.ceil(many / Math.max(1, room));
  map.columns.forEach((column, k) => {
    if (k % step(wide, (w * wide) / 24) === 0)
      drawn.append(svg("text", { x: left + w * (k + 0.5), y: 10, class: "gl-tick" }, String(column)));
  });
  map.rows.forEach((row, k) => {
    if (k % step(tall, (h * tall) / 13) === 0)
      drawn.append(svg("text", { x: left - 4, y: top + h * (k + 0.5) + 3.4, class: "gl-tick gl-end" }, String(row)));
  });
  values.forEach((value, k) => {
    const ground = Number.isFinite(value) ? colour(value / bound) : /** @type {RGB} */ ([150, 156, 164]),
      x = left + w * (k % wide),
      y = top + h * Math.floor(k / wide),
      cell = svg("rect", {
        x: x + 0.5,
        y: y + 0.5,
        width: w - (digits ? 1.5 : 0),
        height: h - (digits ? 1.5 : 0),
        fill: css(ground),
        rx: digits ? 2 : 0,
      });
    cell.append(svg("title", {}, `[${map.rows[Math.floor(k / wide)]}, ${map.columns[k % wide]}] ${number(value)}`));
    drawn.append(cell);
    if (digits && Number.isFinite(value))
      drawn.append(
        svg("text", { x: x + w / 2, y: y + h / 2 + 3.6, class: "gl-cell", style: `fill:${css(inkOn(ground))}` }, brief(value)),
      );
    else if (!Number.isFinite(value))
      drawn.append(svg("text", { x: x + w / 2, y: y + h / 2 + 3.6, class: "gl-cell" }, Number.isNaN(value) ? "×" : "∞"));
  });
  const [low, high] = map.range;
  const legend = html(
    "div",
    { class: "gl-legend", style: `margin-left:${left}px` },
    html("i", { style: `background:${gradient(anchors)}` }),
    html("span", {}, `${side(-bound)} to ${side(bound)}`),
    typeof low === "number" && typeof high === "number" ? html("span", {}, `least ${side(low)}, greatest ${side(high)}`) : "",
  );
  return html("div", {}, drawn, digits ? "" : legend);
}

/** @param {number} value */
function side(value) {
  return value === 0 ? "0" : number(value).replace("+", "");
}

/**
 * @param {Numbers} numbers
 * @param {string} title
 */
function histogram(numbers, title) {
  const bins = numbers.bins ?? [],
    most = Math.max(...bins, 1),
    wide = Math.min(10, WIDE / bins.length),
    high = 38;
  const bars = bins.map((many, k) =>
    svg(
      "rect",
      { x: wide * k, y: high - (high * many) / most, width: Math.max(1, wide - 1), height: (high * many) / most },
      svg("title", {}, String(many)),
    ),
  );
  const zeros = numbers.zeros
    ? `, ${numbers.zeros.toLocaleString("en")} of ${(numbers.size ?? 0).toLocaleString("en")} zero`
    : "";
  return html(
    "div",
    { class: `gl-histogram gl-${title}` },
    svg("svg", { width: wide * bins.length, height: high, role: "img", "aria-label": `histogram of the ${title}` }, ...bars),
    html("div", { class: "gl-dim" }, `${numbers.range?.[0]} to ${numbers.range?.[1]}, mean ${numbers.mean}${zeros}`),
  );
}

export { tensor, cells };
