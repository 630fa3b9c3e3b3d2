// The behaviour of a graph that Python drew (explore/graph/painting.figure): its nodes and edges are lit, selected, labelled,
// weighted and tinted by classes of the style sheet.

import { svg, svgFrom } from "./dom.js";

/** @typedef {{ kind: string, label: string, spoken: string }} GraphNode `kind`: "leaf", "operation", "output", "folded", "ghost" */
/** @typedef {[number, number, number?, number?]} GraphEdge source and target, −1 at a cut end; position of a label */
/**
 * @typedef {object} Figure
 * @property {string} svg
 * @property {number} width
 * @property {number} height
 * @property {GraphNode[]} nodes
 * @property {GraphEdge[]} edges
 * @property {number} [folded] number of nodes in its folds
 */
/** @typedef {{ width: number, sign: number }} Weight of an edge: 1 is the usual width; a negative sign is dashed */
/** @typedef {{ x: number, y: number, wide: number, high: number }} Place of a node's box; x is its middle */

const LETTER = 5.6; // px, of a label

/** @param {Figure} figure */
function graph(figure) {
  const root = svgFrom(figure.svg),
    nodes = /** @type {SVGGElement[]} */ ([...root.querySelectorAll("[data-node]")]),
    paths = /** @type {SVGPathElement[]} */ ([...root.querySelectorAll("[data-edge]")]),
    lines = /** @type {SVGGElement} */ (root.querySelector(".gl-lines")),
    labels = svg("g", { class: "gl-labels" }),
    parts = nodes.map((node) => /** @type {SVGTextElement[]} */ ([...node.querySelectorAll(".gl-orange text")])),
    lengths = parts.map((texts) => texts.map(({ textContent }) => textContent?.length ?? 0));
  const origin = translation(lines.parentNode);
  lines.parentNode?.append(labels);
  /** @type {Place[]} */
  const places = nodes.map((node) => {
    const { e, f } = translation(node),
      { width, height } = /** @type {SVGRectElement} */ (node.querySelector(":scope > rect"));
    return { x: e + origin.e, y: f + origin.f, wide: width.baseVal.value, high: height.baseVal.value };
  });

  /** @param {string} name of a class @param {(k: number) => boolean} has whether a node has it */
  const mark = (name, has) => nodes.forEach((node, k) => node.classList.toggle(name, has(k)));

  return {
    root,
    /** The group of each node, in the order of the figure, for listeners, focus and labels. */
    nodes,
    places,

    /**
     * Label only these edges, by their numbers; null: show the shares in the gradient again.
     * @param {Map<number, string> | null} words
     * @param {(k: number) => number | undefined} [across] x of a label, if not its edge's own
     */
    label(words, across = () => undefined) {
      root.classList.toggle("gl-labelled", words !== null);
      labels.replaceChildren(
        ...[...(words ?? [])].flatMap(([k, text]) => {
          const [, , x, y] = figure.edges[k];
          return text && x !== undefined ? [tag(text, `translate(${across(k) ?? x},${y})`, -0.5, 3.3)] : [];
        }),
      );
    },

    /**
     * Light these nodes and edges and no others.
     * @param {number[]} lit
     * @param {number[]} edges
     * @param {string} what passes there, for screen readers; empty if it is announced elsewhere
     * @param {boolean} [heads] whether lit edges have an arrowhead where the gradient arrives
     */
    light(lit, edges, what, heads = false) {
      mark("gl-lit", (k) => lit.includes(k));
      lines.querySelectorAll(".gl-head-arrow").forEach((arrow) => arrow.remove());
      paths.forEach((path, k) => {
        const on = edges.includes(k);
        if (path.classList.toggle("gl-lit", on)) lines.append(path); // on top
        if (on && heads) lines.append(head(path));
      });
      const passed = lit.map((k) => figure.nodes[k].label).reverse();
      if (what && lit.length) root.setAttribute("aria-label", `graph: ${what} passes ${passed.join(", ")}`);
      else root.removeAttribute("aria-label");
    },

    /**
     * Select a node, and mark its edges; null: none.
     * @param {number | null} chosen
     */
    choose(chosen) {
      mark("gl-chosen", (k) => k === chosen);
      paths.forEach((path, k) => {
        const [source, target] = figure.edges[k];
        if (path.classList.toggle("gl-near", chosen !== null && (source === chosen || target === chosen))) lines.append(path);
      });
    },

    /**
     * Mark nodes that were found, or that belong to a line.
     * @param {number[]} found
     */
    mark(found) {
      mark("gl-marked", (k) => found.includes(k));
    },

    /**
     * Set the width and sign of edges, by their numbers; the others are drawn as usual. Null: all as usual.
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
     * Colour the nodes by a strength from 0 to 1; null: no colour; a negative number: as a fault.
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
     * Write beside these nodes, by their numbers, and remove the texts beside the others.
     * @param {Map<number, string>} words
     */
    say(words) {
      root.querySelectorAll(".gl-said").forEach((text) => text.remove());
      for (const [k, text] of words) {
        const { wide, high } = places[k] ?? {},
          group = tag(text, `translate(${wide / 2 + 6},${high / 2})`, 0, 3.2);
        group.classList.add("gl-said");
        nodes[k]?.append(group);
      }
    },

    /** How many numbers of its gradient a node can show. @param {number} k */
    room: (k) => parts[k].length,

    /**
     * Show the numbers of the gradient at a node; none: the node waits for them.
     * @param {number} k
     * @param {string[]} words
     */
    arrive(k, words) {
      nodes[k].classList.toggle("gl-waiting", !words.length);
      parts[k].forEach((part, i) => {
        const text = words[i] ?? "",
          most = lengths[k][i];
        part.textContent = text;
        part.style.fontSize = text.length > most ? `${(9.5 * most) / text.length}px` : "";
      });
    },
  };
}

/** The translation of a group. @param {ParentNode | null} group */
function translation(group) {
  const [, e, f] = /translate\(([^,]+),([^)]+)\)/.exec(/** @type {Element} */ (group).getAttribute("transform") ?? "") ?? [];
  return { e: Number(e), f: Number(f) };
}

/**
 * A short text with a background.
 * @param {string} words
 * @param {string} transform
 * @param {number} side left edge of the background, as a multiple of its width
 * @param {number} baseline
 */
function tag(words, transform, side, baseline) {
  const width = LETTER * words.length + 8;
  return svg(
    "g",
    { transform },
    svg("rect", { x: side * width, y: -6, width, height: 12, rx: 3 }),
    svg("text", { x: (side + 0.5) * width, y: baseline }, words),
  );
}

/**
 * An arrowhead at the source of an edge, where the gradient arrives.
 * @param {SVGPathElement} path
 */
function head(path) {
  const start = /^M[^A-Z]+/.exec(path.getAttribute("d") ?? "");
  return svg("path", { d: `${start}l-4 7.5h8z`, class: "gl-head-arrow" });
}

export { graph };
