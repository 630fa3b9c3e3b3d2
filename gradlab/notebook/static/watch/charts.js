// Loss, stripes and ratio above one another, on one axis of steps; a line through all of them marks the step that is looked at.

import { html } from "../kit/dom.js";
import { plot } from "../kit/plot.js";
import { LINES, firstBad } from "./run.js";
import { stripes } from "./stripes.js";

/** @import { Told, Values } from "./run.js" */
/** @import { Mark } from "../kit/plot.js" */

/**
 * @param {{ hover: (step: number | null) => void, choose: (step: number) => void }} tell steps are counted from 0
 */
function charts(tell) {
  /** @type {[number, number]} */
  const sides = [86, 74];
  const loss = plot({ label: "the loss over the steps", height: () => 176, sides }),
    gradient = stripes("gradient", "‖gradient‖ by layer", sides),
    ratio = plot({ label: "‖update‖ ÷ ‖weights‖ of each layer over the steps", height: () => 190, sides }),
    many = stripes("ratio", "‖update‖ ÷ ‖weights‖ by layer · usual (rule of thumb): 1e−4 … 1e−2", sides);
  const root = html("div", { class: "gl-stack" }, loss.root, gradient.drawing, ratio.root, many.drawing);
  /** @type {Told | null} */
  let run = null;
  /** @type {number | null} */
  let marked = null;

  const listen = (/** @type {SVGElement} */ drawing, /** @type {(event: any) => number | null | undefined} */ at) => {
    drawing.addEventListener("pointermove", (event) => tell.hover(at(event) ?? null));
    drawing.addEventListener("pointerleave", () => tell.hover(null));
    drawing.addEventListener("click", (event) => {
      const step = at(event);
      if (step !== null && step !== undefined) tell.choose(step);
    });
  };
  for (const one of [loss, ratio]) listen(one.drawing, (event) => one.value(event)?.[0]);
  for (const one of [gradient, many]) listen(one.drawing, (event) => one.step(event));

  /** @param {number} column */
  const middle = (column) => run && Math.min((column + 0.5) * run.width, run.steps);

  function draw() {
    if (!run) return;
    const width = root.clientWidth;
    if (!width) return;
    const few = run.layers.length <= LINES,
      moved = run.layers.some((layer) => layer.ratio.mean.some((x) => x !== null));
    loss.root.hidden = !run.loss.mean.some((x) => x !== null);
    ratio.root.hidden = !few || !moved;
    many.drawing.style.display = few || !moved ? "none" : "block";
    gradient.draw(run, width);
    if (!few) many.draw(run, width);
    lines();
  }

  function lines() {
    if (!run) return;
    /** @type {{ range: [number, number], label: string }} */
    const x = { range: [0, Math.max(1, run.steps)], label: "" };
    /** @type {Mark[]} */
    const line = marked === null ? [] : [{ kind: "rule", at: marked, class: "gl-ink gl-thin", across: "x" }];
    const bad = firstBad(run);
    if (bad >= 0) {
      const at = bad * run.width;
      line.push({ kind: "rule", at, class: "gl-dashes", across: "x" });
    }
    const { mean, low, high } = run.loss,
      [least, most] = range([...low, ...high]);
    if (most !== null && least !== null) {
      const log = least > 0 && most > 200 * least,
        room = log ? 0 : 0.06 * (most - least || Math.abs(most) || 1);
      const y = {
        range: /** @type {[number, number]} */ ([least - room, log ? most * 1.0001 : most + room]),
        log,
        label: run.called,
      };
      if (bad >= 0) line.push({ kind: "text", x: bad * run.width, y: y.range[1], text: "not finite", dx: 4, dy: 10 });
      loss.show({
        x,
        y,
        marks: [
          ...edges(low, high),
          { kind: "line", ...dots(mean), class: "gl-forward" },
          { kind: "points", ...end(mean), class: "gl-forward" },
          ...line,
        ],
      });
    }
    if (ratio.root.hidden) return;
    const all = run.layers.flatMap((layer) => layer.ratio.mean.filter((one) => one !== null && one > 0)).map(Number);
    const top = 10 ** Math.ceil(Math.log10(Math.max(...all, run.usual[1]))),
      bottom = Math.max(10 ** Math.floor(Math.log10(Math.min(...all, run.usual[0]))), top * 1e-9);
    /** @type {Mark[]} */
    const marks = [
      { kind: "band", low: run.usual[0], high: run.usual[1] },
      {
        kind: "text",
        x: x.range[1],
        y: run.usual[0],
        text: "usual (rule of thumb)",
        end: "end",
        dx: -4,
        dy: -5,
        class: "gl-halo",
      },
    ];
    run.layers.forEach((layer, k) => {
      const where = dots(layer.ratio.mean, true);
      marks.push({ kind: "line", ...where, class: "gl-ink gl-thin" });
      const at = Math.min(where.xs.length - 1, Math.round(where.xs.length * (0.12 + 0.07 * k)));
      if (at >= 0)
        marks.push(
          { kind: "points", xs: [where.xs[at]], ys: [where.ys[at]], class: "gl-number", radius: 7.5 },
          { kind: "text", x: where.xs[at], y: where.ys[at], text: String(k), end: "middle", dy: 3.5, class: "gl-ink" },
        );
    });
    ratio.show({ x, y: { range: [bottom, top], log: true, label: "‖update‖ ÷ ‖weights‖" }, marks: [...marks, ...line] });
  }

  /**
   * @param {Values} list
   * @param {boolean} positive
   */
  function dots(list, positive = false) {
    /** @type {number[]} */
    const xs = [],
      /** @type {number[]} */ ys = [];
    list.forEach((value, column) => {
      if (value === null || (positive && value <= 0)) return;
      xs.push(middle(column) ?? 0);
      ys.push(value);
    });
    return { xs, ys };
  }

  /** @param {Values} list */
  function end(list) {
    const { xs, ys } = dots(list);
    return { xs: xs.slice(-1), ys: ys.slice(-1) };
  }

  /**
   * The least and the greatest loss of each column, quietly, where columns are of several steps.
   * @param {Values} low
   * @param {Values} high
   * @returns {Mark[]}
   */
  function edges(low, high) {
    if (low.every((value, column) => value === high[column])) return [];
    return [
      { kind: "line", ...dots(low), class: "gl-extreme" },
      { kind: "line", ...dots(high), class: "gl-extreme" },
    ];
  }

  const resized = new ResizeObserver(draw);
  resized.observe(root);
  return {
    root: html("div", { class: "gl-charts" }, root),

    /** @param {Told} what */
    show(what) {
      run = what;
      draw();
    },

    /** @param {number | null} step from 0; null marks none */
    mark(step) {
      marked = step;
      gradient.mark(step);
      many.mark(step);
      lines();
    },

    end() {
      resized.disconnect();
      loss.end();
      ratio.end();
    },
  };
}

/**
 * @param {Values} list
 * @returns {[number, number] | [null, null]}
 */
function range(list) {
  let low = Infinity,
    high = -Infinity;
  for (const value of list) {
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : [null, null];
}

export { charts };
