// The picture: the graph with what has arrived at each node so far. Nodes and edges that were passed stay lit, the active one stands
// out. Of a graph that is too large to be drawn whole, the active operation with what it hands on to and where its own came from.

import { SUPPRESS, html } from "../kit/dom.js";
import { graph } from "../kit/graph.js";
import { brief, said } from "./numbers.js";

/** @import { Figure } from "../kit/graph.js" */
/** @import { Port } from "../kit/node.js" */
/** @import { Held } from "./numbers.js" */
/** @import { Steps } from "./data.js" */

const DIGIT = 5.9, // px of a digit at a node, about
  LETTER = 7.4, // and of a letter of a label
  PADDING = 13;
const LABEL = 5.6, // px of a letter at an edge
  SAME_ROW = 24; // px of height in which labels are kept apart
const NEIGHBOURS = 6; // that are drawn on either side
const GAP = 26,
  ROW = 92,
  TALL = 34; // px of the small picture

/**
 * @param {Steps} steps
 * @param {(node: number) => void} run to a node's turn
 */
function stage(steps, run) {
  const { data } = steps;
  const remark = html("p", { class: "gl-dim gl-around", hidden: "" }),
    scroll = html("div", {
      class: "gl-scroll gl-stepper-graph",
      tabindex: "0",
      role: "group",
      "aria-label": "the graph",
      [SUPPRESS]: "true",
    }),
    root = html("div", { class: "gl-stepper-stage" }, scroll, remark);
  const whole = data.figure ? drawn(data.figure, data.edges, Object.keys(data.nodes).map(Number)) : null;
  if (whole) scroll.append(whole.drawing.root);

  /**
   * @param {Figure} figure
   * @param {[number, number][]} edges
   * @param {number[]} nodes which are drawn, in the order of the figure
   */
  function drawn(figure, edges, nodes) {
    const drawing = graph(figure);
    drawing.root.setAttribute("role", "group");
    nodes.forEach((node, k) => {
      const turn = steps.turns.get(node),
        group = drawing.nodes[k];
      if (!turn) return;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `run to step ${turn}, ${steps.called(node)}`);
      group.classList.add("gl-stop");
      group.addEventListener("click", () => run(node));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter") run(node);
      });
    });
    return { figure, drawing, edges, nodes };
  }

  /**
   * @param {number} k
   * @param {{ figure: Figure, drawing: ReturnType<typeof graph>, edges: [number, number][], nodes: number[] }} picture
   */
  function show(k, { figure, drawing, edges, nodes }) {
    const step = steps.step(k),
      arrived = steps.arrived(k);
    const passed = new Set(data.steps.slice(0, k).flatMap(({ node, shares }) => shares.map(({ to }) => `${to} ${node}`))),
      now = new Set(step ? step.shares.map(({ to }) => `${to} ${step.node}`) : []);
    const isOutput = (/** @type {number} */ node) => data.nodes[node]?.[0] === "output";
    const lit = edges.flatMap(([source, target], i) => (passed.has(`${source} ${target}`) || isOutput(target) ? [i] : []));
    const reached = nodes.flatMap((node, i) => (arrived.has(node) ? [i] : []));
    drawing.light(reached, lit, "what has arrived", true);
    nodes.forEach((node, i) => {
      drawing.nodes[i].classList.toggle("gl-active", step?.node === node);
      drawing.port(i, ported(figure.nodes[i].port, arrived.get(node) ?? null, arrived.has(node) && data.values));
    });
    /** @type {Map<string, number>} */
    const seen = new Map(); // x * x: two lines, each with its own
    const words = edges.map(([source, target]) => {
      const pair = `${source} ${target}`;
      if (!step || !now.has(pair)) return "";
      const nth = seen.get(pair) ?? 0,
        share = step.shares.filter(({ to }) => to === source)[nth];
      seen.set(pair, nth + 1);
      return share ? steps.product(step, share) : "";
    });
    spread(figure, words);
    words.forEach((text, i) => drawing.label(i, text));
    drawing.root.setAttribute("aria-label", `graph of ${nodes.length} nodes`);
  }

  return {
    root,
    /** @param {number} k */
    update(k) {
      if (whole) {
        show(k, whole);
        bringIntoSight(k);
        return;
      }
      const near = around(k),
        picture = drawn(near.figure, near.edges, near.nodes);
      scroll.replaceChildren(picture.drawing.root);
      show(k, picture);
      remark.hidden = false;
      remark.textContent = near.left
        ? `The active operation and its neighbours; ${near.left} more are not drawn.`
        : "The graph is large: this is the active operation and its neighbours.";
    },
  };

  /** @param {number} k */
  function bringIntoSight(k) {
    const node = steps.step(k)?.node ?? data.root,
      group = whole?.drawing.nodes[whole.nodes.indexOf(node)];
    if (!group || !scroll.clientHeight) return;
    const box = group.getBoundingClientRect(),
      view = scroll.getBoundingClientRect();
    if (box.top < view.top || box.bottom > view.bottom) scroll.scrollTop += box.top - view.top - (view.height - box.height) / 2;
    if (box.left < view.left || box.right > view.right) scroll.scrollLeft += box.left - view.left - (view.width - box.width) / 2;
  }

  /**
   * The active operation between what it hands on to, above it, and where its own came from.
   * @param {number} k
   */
  function around(k) {
    const step = steps.step(k),
      node = step?.node ?? data.root;
    const inputs = [...new Set(step ? step.shares.map(({ to }) => to) : [])],
      users = data.steps
        .slice(0, Math.max(0, k - 1))
        .filter(({ shares }) => shares.some(({ to }) => to === node))
        .map((one) => one.node),
      ends =
        node === data.root
          ? Object.keys(data.nodes)
              .map(Number)
              .filter((i) => data.nodes[i][0] === "output")
          : [];
    const below = [...ends, ...users];
    const rows = [inputs.slice(0, NEIGHBOURS), [node], below.slice(0, NEIGHBOURS)].filter((row) => row.length);
    /** @type {[number, number][]} */
    const edges = [];
    for (const input of rows.length > 1 && inputs.length ? rows[0] : []) edges.push([input, node]);
    for (const user of below.slice(0, NEIGHBOURS)) edges.push([node, user]);
    return { ...laid(rows, edges), edges, left: inputs.length + below.length - edges.length };
  }

  /**
   * Rows of boxes in the middle of the picture, with lines between them.
   * @param {number[][]} rows
   * @param {[number, number][]} edges
   */
  function laid(rows, edges) {
    const wide = (/** @type {number} */ node) => Math.max(96, LETTER * data.nodes[node][1].length + 26);
    const lengths = rows.map((row) => row.reduce((sum, node) => sum + wide(node) + GAP, -GAP)),
      width = Math.max(240, ...lengths) + 8;
    /** @type {Map<number, { x: number, y: number }>} */
    const places = new Map();
    rows.forEach((row, r) => {
      let x = (width - lengths[r]) / 2;
      for (const node of row) {
        places.set(node, { x: x + wide(node) / 2, y: 4 + r * ROW });
        x += wide(node) + GAP;
      }
    });
    const nodes = [...places.keys()];
    /** @type {Figure} */
    const figure = {
      width,
      height: rows.length * ROW - ROW + TALL + 24,
      tall: TALL,
      margin: 0,
      scale: "",
      tears: [],
      nodes: nodes.map((node) => {
        const [kind, label, name] = data.nodes[node],
          own = kind === "operation" && name !== label ? name : "",
          turn = steps.turns.get(node);
        return {
          kind,
          label,
          small: turn ? data.steps[turn - 1].operation : "",
          title: steps.called(node),
          wide: wide(node),
          many: false,
          ...(places.get(node) ?? { x: 0, y: 0 }),
          port: {
            name: own,
            blue: "",
            orange: "",
            left: own ? LETTER * own.length + PADDING : 0,
            right: 0,
            bar: 0,
            quiet: false,
          },
        };
      }),
      edges: edges.map(([source, target]) => {
        const from = places.get(source) ?? { x: 0, y: 0 },
          to = places.get(target) ?? { x: 0, y: 0 },
          start = from.y + TALL + 11,
          middle = (start + to.y) / 2;
        return {
          path: `M${from.x} ${start}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`,
          title: "",
          source: nodes.indexOf(source),
          target: nodes.indexOf(target),
          faint: false,
          at: [(from.x + to.x) / 2, middle, from.x, start],
        };
      }),
    };
    return { figure, nodes };
  }
}

/**
 * Put the labels of a step beside one another, each as near to its edge as the others let it.
 * @param {Figure} figure whose edges' places are changed
 * @param {string[]} words of each edge
 */
function spread(figure, words) {
  /** @type {Map<number, { edge: Figure["edges"][number], wide: number, x: number }[]>} */
  const rows = new Map();
  figure.edges.forEach((edge, i) => {
    if (!edge.at) return;
    const { spot } = Object.assign(edge, { spot: /** @type {any} */ (edge).spot ?? [...edge.at] });
    edge.at = [spot[0], spot[1], spot[2], spot[3]];
    if (!words[i]) return;
    const row = Math.round(spot[1] / SAME_ROW),
      labels = rows.get(row) ?? [];
    labels.push({ edge, wide: LABEL * words[i].length + 12, x: spot[0] });
    rows.set(row, labels);
  });
  for (const labels of rows.values()) {
    labels.sort((a, b) => a.x - b.x);
    const total = labels.reduce((sum, { wide }) => sum + wide, 0),
      middle = labels.reduce((sum, { x }) => sum + x, 0) / labels.length,
      clash = labels.some((one, k) => k > 0 && one.x - one.wide / 2 < labels[k - 1].x + labels[k - 1].wide / 2);
    let left = Math.max(0, Math.min(middle - total / 2, figure.width - 2 * figure.margin - total));
    for (const { edge, wide, x } of labels) {
      if (edge.at) edge.at[0] = clash ? left + wide / 2 : Math.max(wide / 2, x);
      left += wide;
    }
  }
}

/**
 * A node's port with what has arrived there, and without what has not.
 * @param {Port | undefined} port
 * @param {Held | null} held
 * @param {boolean} there
 * @returns {Port | null}
 */
function ported(port, held, there) {
  const orange = there ? brief(held) : "",
    room = orange ? DIGIT * orange.length + PADDING : 0;
  if (!port) return orange ? { name: "", blue: "", orange, left: 0, right: room, bar: 0, quiet: false } : null;
  if (!("columns" in port) && !orange && !port.name && !port.blue) return null; // nothing is known, and nothing has come yet
  if (!("columns" in port)) return { ...port, orange, right: room || (port.left ? 0 : port.right), bar: 0 };
  const fits = there && held?.numbers?.length === port.columns.length;
  if (fits && held?.numbers) return { ...port, gradients: held.numbers.map((x) => said(Number(x), 3)) };
  return { ...port, gradients: port.gradients.map(() => "") }; // room for what will have arrived
}

export { stage };
