// The drawing of a graph as Python laid it out (explore/graph/painting.figure), as SVG whose nodes and edges can be lit, chosen,
// labelled, weighed and tinted one by one. Boxes and routes come with their places, so nothing is measured here.

import { svg } from "./dom.js";
import { OVERLAP, drawNode, drawPort, drawTear } from "./node.js";
import { clamp } from "./ranges.js";

/** @import { GraphNode, Port } from "./node.js" */

/**
 * @typedef {object} GraphEdge
 * @property {string} path
 * @property {string} title
 * @property {number} source a node; −1 of a torn edge's end, as of `target`
 * @property {number} target
 * @property {boolean} faint it leads to what lies behind a cut
 * @property {string} [share] its part in the gradient where several met; may be empty
 * @property {[number, number, number, number]} [at] where a label stands, and where it begins; no labels without
 */
/**
 * @typedef {object} Figure
 * @property {number} width
 * @property {number} height
 * @property {number} tall how high a box is
 * @property {number} margin
 * @property {string} scale of the bars: "0.01 to 10"; empty where there are none
 * @property {GraphNode[]} nodes
 * @property {{ x: number, y: number, words: string }[]} tears
 * @property {GraphEdge[]} edges
 * @property {number} [folded] of how many nodes it is folded
 */
/** @typedef {{ width: number, sign: number }} Weight of an edge: 1 is usual; a negative sign is dashed */

const HIGH = 440; // px; a higher drawing is shrunk, though not below SMALLEST of its size, where its letters can still be read
const SMALLEST = 0.95;
const LETTER = 5.6; // px, of a label

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
  const move = `translate(${figure.margin},${figure.margin})`,
    lines = svg("g", { transform: move, class: "gl-lines" }),
    boxes = svg("g"),
    labels = svg("g", { transform: move, class: "gl-labels" });
  const paths = figure.edges.map(({ path, title, faint }) => {
    const line = svg("path", { d: path, class: faint ? "gl-faint" : "" });
    if (title) line.append(svg("title", {}, title));
    return line;
  });
  const nodes = figure.nodes.map((node) => drawNode(node, figure.tall));
  /** @type {(SVGGElement | null)[]} */
  const said = figure.edges.map(() => null),
    /** @type {(SVGPathElement | null)[]} */ arrows = figure.edges.map(() => null);
  lines.append(...paths);
  boxes.append(...figure.tears.map(drawTear), ...nodes);
  root.append(lines, boxes, labels);

  /**
   * Say something at an edge, instead of what was said there; nothing: its share again.
   * @param {number} k
   * @param {string} [text]
   */
  function label(k, text) {
    const { at, share } = figure.edges[k],
      words = text ?? share ?? "";
    said[k]?.remove();
    said[k] = null;
    if (!at || !words) return;
    const width = LETTER * words.length + 7;
    said[k] = svg(
      "g",
      { transform: `translate(${at[0]},${at[1]})` },
      svg("rect", { x: -width / 2, y: -6, width, height: 12, rx: 3 }),
      svg("text", { y: 3.3 }, words),
    );
    labels.append(said[k]);
  }
  figure.edges.forEach((_, k) => label(k));

  return {
    root,
    /** The group of each node, in the order of the figure: to be listened to, focused, named. */
    nodes,
    label,

    /**
     * Light these nodes and edges and no others.
     * @param {number[]} lit
     * @param {number[]} edges
     * @param {string} what passes there, for screen readers
     * @param {boolean} [heads] whether lit edges have a head where a gradient arrives
     */
    light(lit, edges, what, heads = false) {
      nodes.forEach((node, k) => node.classList.toggle("gl-lit", lit.includes(k)));
      paths.forEach((path, k) => {
        const on = edges.includes(k);
        if (path.classList.toggle("gl-lit", on)) lines.append(path); // on top
        arrows[k]?.remove();
        arrows[k] = on && heads ? head(figure.edges[k]) : null;
        if (arrows[k]) lines.append(arrows[k]);
      });
      const passed = lit.map((k) => figure.nodes[k].label).reverse();
      root.setAttribute(
        "aria-label",
        lit.length ? `graph: ${what} passes ${passed.join(", ")}` : `graph of ${figure.nodes.length} nodes`,
      );
    },

    /**
     * Choose a node, and mark the edges at it; null: none.
     * @param {number | null} chosen
     */
    choose(chosen) {
      nodes.forEach((node, k) => node.classList.toggle("gl-chosen", k === chosen));
      paths.forEach((path, k) => {
        const { source, target } = figure.edges[k];
        if (path.classList.toggle("gl-near", chosen !== null && (source === chosen || target === chosen))) lines.append(path);
      });
    },

    /**
     * Mark some nodes, as found or as belonging to a line.
     * @param {number[]} found
     */
    mark(found) {
      nodes.forEach((node, k) => node.classList.toggle("gl-marked", found.includes(k)));
    },

    /**
     * The thickness and the sign of each edge, by its number; of the others as usual. Null: all as usual.
     * @param {Map<number, Weight> | null} weights
     */
    weigh(weights) {
      root.classList.toggle("gl-weighed", weights !== null);
      paths.forEach((path, k) => {
        const weight = weights?.get(k);
        path.classList.toggle("gl-plus", weight !== undefined && weight.sign > 0);
        path.classList.toggle("gl-minus", weight !== undefined && weight.sign < 0);
        path.style.strokeWidth = weight ? String(Math.max(0.8, 1.2 * weight.width)) : "";
      });
    },

    /**
     * How strongly each node is coloured, from 0 to 1; null of one that is not. A negative number: as a fault.
     * @param {(k: number) => number | null} strength
     */
    tint(strength) {
      nodes.forEach((node, k) => {
        const t = strength(k);
        node.classList.toggle("gl-tinted", t !== null && t >= 0);
        node.classList.toggle("gl-faulty", t !== null && t < 0);
        node.style.setProperty("--gl-tint", `${Math.round(6 + 56 * (t ?? 0))}%`);
      });
    },

    /**
     * Say something beside nodes, by their numbers, and nothing more beside the others.
     * @param {Map<number, string>} words
     */
    say(words) {
      nodes.forEach((node, k) => {
        node.querySelector(".gl-said")?.remove();
        const text = words.get(k),
          wide = LETTER * (text?.length ?? 0) + 8,
          x = figure.nodes[k].wide / 2 + 6;
        if (text)
          node.append(
            svg(
              "g",
              { class: "gl-said", transform: `translate(${x},${figure.tall / 2})` },
              svg("rect", { x: 0, y: -8, width: wide, height: 16, rx: 3 }),
              svg("text", { x: 4, y: 3.2, class: "gl-beside" }, text),
            ),
          );
      });
    },

    /**
     * Draw a node's port anew; null: none.
     * @param {number} k
     * @param {Port | null} port
     */
    port(k, port) {
      nodes[k].querySelector(".gl-port")?.remove();
      if (port) nodes[k].append(drawPort(port, figure.tall - OVERLAP));
    },
  };
}

/**
 * An arrow's head where an edge leaves its source, which is where a gradient arrives.
 * @param {GraphEdge} edge
 */
function head({ at }) {
  if (!at) return null;
  const [, , x, y] = at;
  return svg("path", { d: `M${x} ${y}l-4 7.5h8z`, class: "gl-head-arrow" });
}

export { graph };
