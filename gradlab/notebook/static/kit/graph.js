// The drawing of a graph as Python laid it out (explore/graph/painting.figure), as SVG whose nodes and edges can be lit.
//
// Boxes and routes come with their places, so nothing is measured here. Leaves and outputs are pills, operations boxes; a node
// that stands for several has a second sheet behind it; a name and a shape hang on the lower edge as a tag.

import { svg } from "./dom.js";
import { clamp } from "./ranges.js";

/**
 * @typedef {object} GraphNode
 * @property {string} kind "leaf", "operation", "output", …
 * @property {string} label
 * @property {string} small a second line; may be empty
 * @property {string} name of the tag
 * @property {string} shape of the tag
 * @property {string} title shown on hovering
 * @property {number} x of the middle
 * @property {number} y of the upper edge
 * @property {number} wide
 * @property {number} tag how wide it is
 * @property {boolean} many
 */
/** @typedef {{ path: string, title: string, source: number, target: number }} GraphEdge */
/** @typedef {{ width: number, height: number, tall: number, folded: number, nodes: GraphNode[], edges: GraphEdge[] }} Figure */

const HIGH = 440; // px; a higher drawing is shrunk, though not below SMALLEST of its size, where its letters can still be read
const SMALLEST = 0.95;

/** @param {Figure} figure */
function graph(figure) {
  const shrink = clamp(HIGH / figure.height, SMALLEST, 1);
  const root = svg("svg", {
    width: figure.width * shrink,
    height: figure.height * shrink,
    viewBox: `0 0 ${figure.width} ${figure.height}`,
    role: "img",
    class: "gl-figure",
  });
  const lines = svg("g", { transform: "translate(4,4)", class: "gl-lines" }),
    boxes = svg("g");
  const paths = figure.edges.map(({ path, title }) => svg("path", { d: path }, svg("title", {}, title)));
  const nodes = figure.nodes.map((node) => drawNode(node, figure.tall));
  lines.append(...paths);
  boxes.append(...nodes);
  root.append(lines, boxes);
  return {
    root,

    /**
     * Light these nodes and edges and no others.
     * @param {number[]} lit
     * @param {number[]} edges
     * @param {string} what passes there, for screen readers
     */
    light(lit, edges, what) {
      nodes.forEach((node, k) => node.classList.toggle("gl-lit", lit.includes(k)));
      paths.forEach((path, k) => {
        if (path.classList.toggle("gl-lit", edges.includes(k))) lines.append(path); // on top
      });
      const passed = lit.map((k) => figure.nodes[k].label).reverse();
      root.setAttribute(
        "aria-label",
        lit.length ? `graph: ${what} passes ${passed.join(", ")}` : `graph of ${figure.nodes.length} nodes`,
      );
    },
  };
}

/**
 * @param {GraphNode} node
 * @param {number} tall how high its box is
 */
function drawNode(node, tall) {
  const half = node.wide / 2,
    rx = node.kind === "leaf" || node.kind === "output" ? tall / 2 : 5,
    box = { width: node.wide, height: tall, rx };
  const group = svg(
    "g",
    { transform: `translate(${node.x},${node.y})`, class: `gl-node gl-${node.kind}` },
    svg("title", {}, node.title),
  );
  if (node.many) group.append(svg("rect", { x: -half + 3, y: 3, ...box }));
  group.append(svg("rect", { x: -half, ...box }), svg("text", { y: node.small ? 15 : 21.5, class: "gl-what" }, node.label));
  if (node.small) group.append(svg("text", { y: 26, class: "gl-small" }, node.small));
  const tag = [node.name, node.shape].filter(Boolean).join("\u2002");
  if (tag)
    group.append(
      svg("rect", { x: -node.tag / 2, y: tall - 4, width: node.tag, height: 15, rx: 7.5, class: "gl-tag" }),
      svg("text", { y: tall + 6.8, class: "gl-small" }, tag),
    );
  return group;
}

export { graph };
