// A node of a graph's drawing, as Python measured it (explore/graph/painting.figure): its box, the port that hangs on its lower edge
// with value and gradient, the chips beside it, its line's number, and what is said beside it.

import { svg } from "./dom.js";

/**
 * What hangs on a node's lower edge: a pill with the name and the value at the left and the gradient at the right.
 * @typedef {object} Pill
 * @property {string} name
 * @property {string} blue the value, or the shape
 * @property {string} orange the gradient
 * @property {number} left how wide its left part is; 0 of none
 * @property {number} right
 * @property {number} bar how long the bar of the gradient's norm is, from 0 to 1
 * @property {boolean} quiet it says a shape and nothing else
 */
/**
 * Or two rows of numbers, value over gradient.
 * @typedef {object} Rows
 * @property {string} name
 * @property {string} shape
 * @property {number} head how wide the part with the name is; 0 of none
 * @property {string[]} values
 * @property {string[]} gradients
 * @property {number[]} columns how wide they are
 */
/** @typedef {Pill | Rows} Port */
/** @typedef {{ text: string, x: number, y: number, wide: number, near: number }} Chip `near`: where the line from the box ends */

/**
 * @typedef {object} GraphNode
 * @property {string} kind "leaf", "operation", "output", "folded", "ghost"
 * @property {string} label
 * @property {string} small a second line; may be empty
 * @property {string} title shown on hovering
 * @property {number} x of the middle
 * @property {number} y of the upper edge
 * @property {number} wide
 * @property {boolean} many it stands for several
 * @property {Port} [port]
 * @property {string} [line] the number of its line in the source
 * @property {Chip[]} [chips]
 * @property {{ x: number, y: number, lines: string[] }} [beside]
 * @property {string} [opens] it is a fold, and a click on its sign opens it
 */

const PILL = 15, // px, as explore/graph/ports.py has them
  ROW = 13.5,
  PADDING = 6.5,
  BAR = 2.4;
const OVERLAP = 4; // px of a port that lie on its box

/**
 * @param {GraphNode} node
 * @param {number} tall how high its box is
 */
function drawNode(node, tall) {
  const half = node.wide / 2,
    pill = node.kind === "leaf" || node.kind === "output",
    box = { width: node.wide, height: tall, rx: pill ? tall / 2 : 5, class: "gl-box" };
  const group = svg(
    "g",
    { transform: `translate(${node.x},${node.y})`, class: `gl-node gl-${node.kind}` },
    svg("title", {}, node.title),
  );
  for (const chip of node.chips ?? []) group.append(...drawChip(chip, half));
  if (node.many) group.append(svg("rect", { x: -half + 3, y: 3, ...box }));
  group.append(svg("rect", { x: -half, ...box }));
  const first = node.port ? 13.5 : 15,
    baseline = node.small ? first : node.port ? 19 : 21.5;
  group.append(svg("text", { y: baseline, class: "gl-what" }, node.label));
  if (node.small) group.append(svg("text", { y: first + 11, class: "gl-small" }, node.small));
  if (node.port) group.append(drawPort(node.port, tall - OVERLAP));
  if (node.line) group.append(svg("text", { x: -half - 4, y: 8, class: "gl-line" }, node.line));
  if (node.opens)
    group.append(svg("text", { x: -half + 6, y: 12, class: "gl-fold", "data-opens": "" }, "▸", svg("title", {}, "open (→)")));
  const { beside } = node;
  beside?.lines.forEach((text, k) => {
    const y = beside.y + 3.2 + 11 * (k - (beside.lines.length - 1) / 2);
    group.append(svg("text", { x: beside.x, y, class: "gl-beside" }, text));
  });
  return group;
}

/**
 * @param {Port} port
 * @param {number} top
 */
function drawPort(port, top) {
  const group = svg("g", { class: "gl-port" });
  if ("columns" in port) drawRows(group, port, top);
  else drawPill(group, port, top);
  return group;
}

/**
 * @param {SVGGElement} group
 * @param {Pill} port
 * @param {number} top
 */
function drawPill(group, port, top) {
  const { left, right } = port,
    start = -(left + right) / 2,
    at = start + left;
  if (left)
    group.append(
      svg("path", { d: half(start, top, left, true, !right), class: port.quiet ? "gl-tag" : "gl-blue" }),
      svg(
        "text",
        { x: start + left / 2, y: top + 10.8, class: port.quiet ? "gl-digit" : "gl-digit gl-in-blue" },
        ...named(port.name, port.blue),
      ),
    );
  if (!right) return;
  group.append(svg("path", { d: half(at, top, right, !left, true), class: "gl-orange" }));
  if (port.bar) {
    const width = port.bar * (right - 2 * PADDING + 4);
    group.append(svg("rect", { x: at + PADDING - 2, y: top + PILL - BAR, width, height: BAR, class: "gl-bar" }));
  }
  const y = top + 10.8 - (port.bar ? 0.7 : 0);
  group.append(svg("text", { x: at + right / 2, y, class: "gl-digit gl-in-orange" }, port.orange));
}

/**
 * @param {SVGGElement} group
 * @param {Rows} port
 * @param {number} top
 */
function drawRows(group, port, top) {
  const wide = port.columns.reduce((sum, column) => sum + column, 0),
    start = -(port.head + wide) / 2;
  let y = top;
  for (const [row, kind] of /** @type {[string[], string][]} */ ([
    [port.values, "blue"],
    [port.gradients, "orange"],
  ])) {
    if (!row.length) continue;
    if (port.head && y === top)
      group.append(
        svg("rect", { x: start, y, width: port.head, height: ROW, rx: 2, class: "gl-blue" }),
        svg(
          "text",
          { x: start + port.head / 2, y: y + ROW - 3.6, class: "gl-digit gl-in-blue" },
          ...named(port.name, port.shape),
        ),
      );
    group.append(svg("rect", { x: start + port.head, y, width: wide, height: ROW, rx: 2, class: `gl-${kind}` }));
    let x = start + port.head;
    row.forEach((text, k) => {
      group.append(svg("text", { x: x + port.columns[k] / 2, y: y + ROW - 3.6, class: `gl-digit gl-in-${kind}` }, text));
      x += port.columns[k];
    });
    y += ROW;
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
function named(name, text) {
  /** @type {(string | SVGElement)[]} */
  const parts = name ? [svg("tspan", { class: "gl-name" }, name)] : [];
  if (text) parts.push((name ? "\u2002" : "") + text);
  return parts;
}

/**
 * @param {Chip} chip
 * @param {number} side of the box
 */
function drawChip({ text, x, y, wide, near }, side) {
  return [
    svg("path", { d: `M${Math.sign(near) * side} ${y + PILL / 2}H${near}`, class: "gl-stub" }),
    svg("rect", { x, y, width: wide, height: PILL, rx: PILL / 2, class: "gl-chip" }),
    svg("text", { x: x + wide / 2, y: y + 10.8, class: "gl-digit" }, text),
  ];
}

/**
 * The outline of a part of a pill.
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {boolean} roundLeft
 * @param {boolean} roundRight
 */
function half(x, y, width, roundLeft, roundRight) {
  const r = PILL / 2,
    right = x + width,
    bottom = y + PILL,
    a = roundLeft ? r : 0,
    b = roundRight ? r : 0;
  const end = b ? `A${r} ${r} 0 0 1 ${right - b} ${bottom}` : `V${bottom}`,
    start = a ? `A${r} ${r} 0 0 1 ${x + a} ${y}Z` : "Z";
  return `M${x + a} ${y}H${right - b}${end}H${x + a}${start}`;
}

/**
 * A torn edge: two jagged ends, and the words beside them.
 * @param {{ x: number, y: number, words: string }} tear
 */
function drawTear({ x, y, words }) {
  const jagged = (/** @type {number} */ top) =>
    "M" + [0, 1, 2, 3, 4, 5, 6].map((i) => `${4 * i - 12} ${top + 5 * (i % 2)}`).join("L");
  return svg(
    "g",
    { transform: `translate(${x},${y})`, class: "gl-tear" },
    svg("path", { d: jagged(1.5) + jagged(11.5) }),
    svg("text", { x: 17, y: 12.8, class: "gl-beside" }, words),
  );
}

export { OVERLAP, drawNode, drawPort, drawTear };
