// Operations: the graph as boxes on a canvas. The kernel draws it with the folds that are open; each change is one short request.

import { canvas } from "../kit/canvas.js";
import { svg } from "../kit/dom.js";
import { graph } from "../kit/graph.js";
import { layOutPaths } from "./paths.js";

/** @import { Figure, GraphNode, Place } from "../kit/graph.js" */
/** @import { Data } from "./data.js" */
/** @import { Paths } from "./paths.js" */
/** @import { Choosing } from "./rows.js" */

/**
 * A node of the picture; see explore/explorer/folds.py.
 * @typedef {GraphNode & { at: number, members: number[], opens?: string, within?: string }} Drawn
 */
/** @typedef {Omit<Figure, "nodes"> & { nodes: Drawn[], open: string[] }} Picture */

const TALLEST = 640, // px
  LEAST = 300;

/**
 * @param {Data} data
 * @param {Choosing & { fold: (wish: object) => void }} choosing
 */
function operationsView(data, choosing) {
  const stage = canvas("the operations; arrow keys move along the edges");
  /** @type {Picture} */
  let picture;
  /** @type {ReturnType<typeof graph>} */
  let drawing;
  let chosen = -1; // a node of the picture
  /** @type {number} the node of the trace to choose when the picture arrives */
  let wished = -1;
  /** @type {Set<number>} */
  let marked = new Set();
  /** @type {(i: number) => number | null} */
  let strength = () => null;

  /** @type {Paths | null} */
  let paths = null;

  /** @param {Picture} shown */
  function show(shown) {
    picture = shown;
    drawing = graph(picture);
    drawing.nodes.forEach((group, k) => {
      const { spoken, opens } = picture.nodes[k],
        sign = { x: 6 - drawing.places[k].wide / 2, y: 12, class: "gl-fold", "data-opens": "" };
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", spoken);
      if (opens) group.append(svg("text", sign, "▸", svg("title", {}, "open (→)")));
    });
    stage.root.style.height = `${Math.max(LEAST, Math.min(TALLEST, picture.height + 20))}px`;
    stage.show(drawing.root, picture.width, picture.height);
    chosen = -1;
    mark();
    paint();
    flow();
    if (wished >= 0) follow(wished);
  }

  /**
   * @param {number} k
   * @param {boolean} [notify]
   */
  function choose(k, notify = true) {
    chosen = k;
    drawing.choose(k < 0 ? null : k);
    drawing.nodes.forEach((group, other) => {
      if (other === k) group.setAttribute("aria-current", "true");
      else group.removeAttribute("aria-current");
    });
    if (k < 0) return;
    const node = picture.nodes[k];
    stage.stage.setAttribute("aria-label", `the operations: ${node.spoken}`);
    const { x, y, wide, high } = drawing.places[k];
    stage.reveal({ x: x - wide / 2, y, wide, high: high + 24 });
    wished = -1;
    if (notify && node.at >= 0) choosing.choose(node.at, node.opens ? { label: node.label, members: node.members } : null);
  }

  /**
   * The node of the picture that shows a node of the trace; −1 if there is none.
   * @param {number} i
   */
  function showing(i) {
    const exact = picture.nodes.findIndex((node) => node.at === i && !node.opens);
    if (exact >= 0) return exact;
    return picture.nodes.findIndex((node) => [...data.members(node.members ?? [])].includes(i));
  }

  /** @param {number} i */
  function follow(i) {
    const k = showing(i);
    if (k >= 0) choose(k, false);
  }

  /** @param {string} [address] of a fold */
  function open(address) {
    if (!address) return;
    wished = picture.nodes.find((node) => node.opens === address)?.at ?? -1;
    choosing.fold({ open: [...picture.open, address] });
  }

  /** @param {string} [address] */
  function close(address) {
    if (!address) return;
    wished = picture.nodes[chosen]?.at ?? -1;
    choosing.fold({ open: picture.open.filter((other) => other !== address && !other.startsWith(`${address}.`)) });
  }

  /**
   * The neighbour in a direction: up or down along an edge, or sideways.
   * @param {string} key
   */
  function neighbour(key) {
    const here = drawing.places[chosen];
    if (!here) return picture.nodes.length - 1;
    const ends = { ArrowUp: [1, 0], ArrowDown: [0, 1] }[key];
    if (ends) {
      const next = picture.edges.filter((edge) => edge[ends[0]] === chosen).map((edge) => Number(edge[ends[1]]));
      return nearest(next, here);
    }
    const side = key === "ArrowRight" ? 1 : -1,
      beside = drawing.places.flatMap(({ x, y }, k) =>
        k !== chosen && Math.abs(y - here.y) < 40 && side * (x - here.x) > 0 ? [k] : [],
      );
    return nearest(beside, here);
  }

  /** @param {number[]} among @param {Place} here */
  function nearest(among, { x }) {
    const away = (/** @type {number} */ k) => Math.abs(drawing.places[k].x - x);
    return among.reduce((best, k) => (k >= 0 && (best < 0 || away(k) < away(best)) ? k : best), -1);
  }

  stage.stage.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null,
      group = target?.closest("[data-node]");
    if (!(group instanceof SVGElement)) return;
    const k = Number(group.dataset.node);
    choose(k);
    if (target?.closest("[data-opens]")) open(picture.nodes[k].opens);
  });
  stage.stage.addEventListener("dblclick", () => open(picture.nodes[chosen]?.opens));
  stage.stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const here = picture.nodes[chosen];
    if (stage.key(event)) event.preventDefault();
    else if (event.key === "Enter") choosing.enter();
    else if ((event.key === "ArrowRight" || event.key === "o") && here?.opens) open(here.opens);
    else if (event.key === "ArrowLeft" && here?.within) close(here.within);
    else if (event.key.startsWith("Arrow")) {
      const next = neighbour(event.key);
      if (next >= 0) choose(next);
    } else return;
    event.preventDefault();
  });

  function mark() {
    drawing.mark(
      picture.nodes.flatMap((node, k) => ([...data.members(node.members ?? [])].some((i) => marked.has(i)) ? [k] : [])),
    );
  }
  function paint() {
    drawing.tint((k) => (picture.nodes[k].at >= 0 ? strength(picture.nodes[k].at) : null));
  }

  function flow() {
    const drawn = paths ? layOutPaths(data, picture, paths) : null;
    drawing.weigh(drawn?.weights ?? null);
    drawing.label(drawn?.labels ?? null);
    drawing.say(drawn?.met ?? new Map());
  }

  return {
    root: stage.root,
    stage: stage.stage,
    show,
    follow,
    fit: stage.fit,

    /** Whether a node of the trace has its own box. @param {number} i */
    shows: (i) => picture.nodes.some((node) => node.at === i && !node.opens),

    /** Open the folds around a node. @param {number} node */
    reveal(node) {
      wished = node;
      choosing.fold({ open: picture.open, node });
    },

    /** @param {number[]} nodes */
    mark(nodes) {
      marked = new Set(nodes);
      mark();
    },

    /** @param {(i: number) => number | null} by */
    tint(by) {
      strength = by;
      paint();
    },

    /** Show the paths to a leaf; null: none. @param {Paths | null} shown */
    paths(shown) {
      paths = shown;
      flow();
    },
    end: stage.end,
  };
}

export { operationsView };
