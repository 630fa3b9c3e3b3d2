// Operations: the graph as boxes, on a canvas. Which folds are open is the kernel's to draw; one short question a change.

import { canvas } from "../kit/canvas.js";
import { graph } from "../kit/graph.js";
import { drawnPaths } from "./paths.js";

/** @import { Figure } from "../kit/graph.js" */
/** @import { GraphNode } from "../kit/node.js" */
/** @import { Data } from "./data.js" */
/** @import { Paths } from "./paths.js" */
/** @import { Choosing } from "./rows.js" */

/**
 * A node of the picture; see explore/explorer/folds.py.
 * @typedef {GraphNode & { at: number, members: number[], within?: string }} Drawn
 */
/** @typedef {Omit<Figure, "nodes"> & { nodes: Drawn[], open: string[] }} Picture */

const TALLEST = 640, // px
  LEAST = 300;

/**
 * @param {Data} data
 * @param {Choosing & { fold: (wish: object) => void }} choosing
 */
function operationsView(data, choosing) {
  const stage = canvas("the operations; arrow keys walk along the edges");
  /** @type {Picture} */
  let picture;
  /** @type {ReturnType<typeof graph>} */
  let drawing;
  let chosen = -1; // a node of the picture
  /** @type {number} a node of the trace that is to be chosen when the picture has come */
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
    drawing = graph(/** @type {Figure} */ (picture));
    drawing.nodes.forEach((group, k) => {
      const node = picture.nodes[k];
      group.dataset.at = String(k);
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", spoken(node));
    });
    stage.root.style.height = `${Math.max(LEAST, Math.min(TALLEST, picture.height + 20))}px`;
    stage.show(drawing.root, picture.width, picture.height);
    drawing.light([], [], "");
    chosen = -1;
    mark();
    paint();
    flow();
    if (wished >= 0) follow(wished);
  }

  /** @param {Drawn} node */
  function spoken(node) {
    const port = node.port,
      numbers =
        port && "orange" in port
          ? [port.name || port.blue ? `${port.name} ${port.blue}`.trim() : "", port.orange && `gradient ${port.orange}`]
          : port
            ? [port.name, `values ${port.values.join(" ")}`, port.gradients.length ? `gradients ${port.gradients.join(" ")}` : ""]
            : [];
    return [node.label, node.small, ...numbers, node.line && `line ${node.line}`, node.opens ? "folded" : ""]
      .filter(Boolean)
      .join(", ");
  }

  /**
   * @param {number} k
   * @param {boolean} [tell]
   */
  function choose(k, tell = true) {
    chosen = k;
    drawing.choose(k < 0 ? null : k);
    drawing.nodes.forEach((group, other) => {
      if (other === k) group.setAttribute("aria-current", "true");
      else group.removeAttribute("aria-current");
    });
    if (k < 0) return;
    const node = picture.nodes[k];
    stage.stage.setAttribute("aria-label", `the operations: ${spoken(node)}`);
    stage.reveal({ x: node.x - node.wide / 2, y: node.y, wide: node.wide, high: picture.tall + 24 });
    wished = -1;
    if (tell && node.at >= 0) choosing.choose(node.at, node.opens ? node.members : null);
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
   * The neighbour in a direction: along an edge up or down, or beside it.
   * @param {string} key
   */
  function neighbour(key) {
    const here = picture.nodes[chosen];
    if (!here) return picture.nodes.length - 1;
    const edges = picture.edges.filter((edge) => edge.source >= 0 && edge.target >= 0);
    if (key === "ArrowUp" || key === "ArrowDown") {
      const next = edges.flatMap((edge) =>
        key === "ArrowUp" ? (edge.target === chosen ? [edge.source] : []) : edge.source === chosen ? [edge.target] : [],
      );
      return nearest(next, here);
    }
    const side = key === "ArrowRight" ? 1 : -1,
      beside = picture.nodes.flatMap((node, k) =>
        k !== chosen && Math.abs(node.y - here.y) < 40 && side * (node.x - here.x) > 0 ? [k] : [],
      );
    return nearest(beside, here);
  }

  /** @param {number[]} among @param {Drawn} here */
  function nearest(among, here) {
    return among.reduce(
      (best, k) => (best < 0 || Math.abs(picture.nodes[k].x - here.x) < Math.abs(picture.nodes[best].x - here.x) ? k : best),
      -1,
    );
  }

  stage.stage.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null,
      group = target?.closest("[data-at]");
    if (!(group instanceof SVGElement)) return;
    const k = Number(group.dataset.at);
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
    const drawn = paths ? drawnPaths(data, picture, paths) : null;
    drawing.weigh(drawn?.weights ?? null);
    drawing.say(drawn?.met ?? new Map());
    picture.edges.forEach((edge, k) => {
      if (edge.at) drawing.label(k, drawn ? (drawn.labels.get(k) ?? "") : undefined);
    });
  }

  return {
    root: stage.root,
    stage: stage.stage,
    show,
    follow,
    fit: stage.fit,

    /** Whether a node of the trace is seen by itself. @param {number} i */
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

    /** Show what flowed to a leaf; null: nothing. @param {Paths | null} shown */
    paths(shown) {
      paths = shown;
      flow();
    },
    end: stage.end,
  };
}

export { operationsView };
