// The picture: the graph with the gradient at each node so far. Nodes and edges that were passed stay lit, the active node is
// emphasized. Of a graph that is too large to draw, only the active operation, its inputs and its users are shown.

import { SUPPRESS, button, disable, html } from "../kit/dom.js";
import { shortNumber } from "../kit/format.js";
import { graph } from "../kit/graph.js";
import { gridOrText } from "./grids.js";
import { brief, rows } from "./numbers.js";

/** @import { Figure } from "../kit/graph.js" */
/** @import { Steps } from "./data.js" */

const LABEL = 5.6, // px of a letter at an edge
  SAME_ROW = 24; // px of height within which labels must not overlap
const NEIGHBOURS = 6, // that are shown on either side
  SMALLEST = 0.8; // of its size; a smaller picture scrolls sideways

/**
 * @param {Steps} steps
 * @param {(node: number) => void} run to a node's step
 */
function stage(steps, run) {
  const { data } = steps;
  const scroll = html("div", {
      class: "gl-scroll gl-stepper-graph",
      tabindex: "0",
      role: "group",
      "aria-label": "the graph",
      [SUPPRESS]: "true",
    }),
    root = html("div", { class: "gl-stepper-stage" }, scroll);
  const { figure } = data,
    drawing = figure && graph(figure),
    output = figure ? figure.nodes.findIndex(({ kind }) => kind === "output") : -1;
  let active = output;
  if (figure && drawing) {
    drawing.root.style.maxWidth = `max(100%, ${SMALLEST * figure.width}px)`;
    drawing.root.style.height = "auto";
    scroll.append(drawing.root);
    new ResizeObserver(bringIntoSight).observe(scroll);
  }
  drawing?.nodes.forEach((group, node) => {
    const turn = steps.turns.get(node);
    if (!turn) return;
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `run to step ${turn}, ${steps.nameOf(node)}`);
    group.classList.add("gl-stop");
    group.addEventListener("click", () => run(node));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") run(node);
    });
  });

  /**
   * @param {number} k
   * @param {Figure} figure
   * @param {ReturnType<typeof graph>} picture
   */
  function show(k, figure, picture) {
    const step = steps.step(k),
      arrived = steps.gradientsAfter(k),
      { edges, nodes } = figure;
    active = step?.node ?? output;
    const passed = new Set(data.steps.slice(0, k).flatMap(({ node, shares }) => shares.map(({ to }) => `${to} ${node}`))),
      lit = edges.flatMap(([from, to], i) => (passed.has(`${from} ${to}`) || nodes[to]?.kind === "output" ? [i] : []));
    picture.light([...arrived.keys()], lit, "", true);
    picture.nodes.forEach((group, node) => {
      group.classList.toggle("gl-active", active === node);
      const held = arrived.get(node) ?? null,
        room = picture.room(node),
        each = room > 1 && held?.numbers?.length === room ? held.numbers.map((x) => shortNumber(Number(x), 3)) : null;
      picture.arrive(node, arrived.has(node) ? (each ?? [room > 1 ? "" : brief(held)]) : []);
    });
    /** @type {Map<number, number>} */
    const seen = new Map(); // x * x: two lines, each with its own share
    const words = new Map(
      edges.map(([source, target], i) => {
        const nth = seen.get(source) ?? 0,
          share = step?.node === target ? step.shares.filter(({ to }) => to === source)[nth] : undefined;
        if (share) seen.set(source, nth + 1);
        return [i, step && share ? steps.product(step, share) : ""];
      }),
    );
    const places = spread(figure, words);
    picture.label(words, (i) => places.get(i));
    bringIntoSight();
  }

  /** Scroll to the active node, which is the output before the first step. */
  function bringIntoSight() {
    const group = drawing?.nodes[active];
    if (!group || !scroll.clientHeight) return;
    const box = group.getBoundingClientRect(),
      view = scroll.getBoundingClientRect();
    if (box.top < view.top || box.bottom > view.bottom) scroll.scrollTop += box.top - view.top - (view.height - box.height) / 2;
    if (box.left < view.left || box.right > view.right) scroll.scrollLeft += box.left - view.left - (view.width - box.width) / 2;
  }

  /**
   * The active operation, with its inputs above and its users below.
   * @param {number} k
   */
  function around(k) {
    const step = steps.step(k),
      outputs = Object.keys(data.nodes)
        .map(Number)
        .filter((i) => data.nodes[i][0] === "output"),
      node = step?.node ?? outputs[0],
      arrived = steps.gradientsAfter(k);
    const users = data.steps.slice(0, Math.max(0, k - 1)).filter(({ shares }) => shares.some(({ to }) => to === node)),
      ends = node === data.root ? outputs : [];
    const above = step ? step.shares.map((share) => neighbour(share.to, steps.product(step, share))) : [neighbour(data.root)],
      below = [...ends, ...users.map((user) => user.node)].map((i) => neighbour(i)),
      left = [above, below].reduce((sum, row) => sum + Math.max(0, row.length - NEIGHBOURS), 0);
    const active = neighbour(node);
    active.classList.add("gl-active");
    return [
      ...[above, [active], below].filter((row) => row.length).map((row) => html("div", {}, ...row.slice(0, NEIGHBOURS))),
      html("p", { class: "gl-dim" }, `The active operation and its neighbours${left ? `; ${left} more are not shown` : ""}.`),
    ];

    /**
     * @param {number} i
     * @param {string} [words] the gradient that it gets
     */
    function neighbour(i, words = "") {
      const [kind, label, name, value] = data.nodes[i],
        node = button("", `run to step ${steps.turns.get(i)}`, () => run(i), `gl-${kind}`);
      if (!steps.turns.has(i)) disable(node, true);
      const own = name && name !== label ? [html("code", {}, name)] : [],
        held = arrived.get(i) ?? null,
        result = value?.numbers ? [html("span", { class: "gl-local" }, gridOrText(value))] : [],
        back = held && data.values ? [html("span", { class: "gl-back" }, rows(held) ? gridOrText(held) : brief(held))] : [];
      node.append(html("b", {}, label), ...own, ...result, ...back);
      return html("span", {}, node, ...(words ? [html("small", { class: "gl-back" }, words)] : []));
    }
  }

  return {
    root,
    /** @param {number} k */
    update(k) {
      if (figure && drawing) show(k, figure, drawing);
      if (drawing) return;
      const had = scroll.querySelector(":focus");
      scroll.replaceChildren(html("div", { class: "gl-around" }, ...around(k)));
      if (had) scroll.focus();
    },
  };
}

/**
 * Place the labels of a step without overlaps, each as near to its edge as possible.
 * @param {Figure} figure
 * @param {Map<number, string>} words of each edge
 */
function spread({ edges, width }, words) {
  /** @type {Map<number, { i: number, wide: number, x: number }[]>} */
  const rows = new Map();
  /** @type {Map<number, number>} */
  const places = new Map();
  edges.forEach(([, , x, y], i) => {
    const text = words.get(i);
    if (!text || x === undefined || y === undefined) return;
    const row = Math.round(y / SAME_ROW);
    rows.set(row, [...(rows.get(row) ?? []), { i, wide: LABEL * text.length + 12, x }]);
  });
  for (const labels of rows.values()) {
    labels.sort((a, b) => a.x - b.x);
    const total = labels.reduce((sum, { wide }) => sum + wide, 0),
      middle = labels.reduce((sum, { x }) => sum + x, 0) / labels.length,
      clash = labels.some((one, k) => k > 0 && one.x - one.wide / 2 < labels[k - 1].x + labels[k - 1].wide / 2);
    let left = Math.max(0, Math.min(middle - total / 2, width - 8 - total));
    for (const { i, wide, x } of labels) {
      places.set(i, clash ? left + wide / 2 : Math.max(wide / 2, x));
      left += wide;
    }
  }
  return places;
}

export { stage };
