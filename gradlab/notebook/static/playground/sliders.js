// A slider and a number box for each input of a function. Moving one reports the whole point.

import { SUPPRESS, hasFocus, html } from "../kit/dom.js";
import { short } from "../kit/format.js";
import { clamp } from "../kit/ranges.js";

/** @typedef {{ name: string, low: number, high: number, step: number }} Input */

/**
 * @param {Input[]} inputs
 * @param {(point: number[]) => void} moved
 */
function sliders(inputs, moved) {
  let point = inputs.map(() => 0);
  const rows = inputs.map((input, k) => {
    const { name, low, high, step } = input,
      common = { min: low, max: high, [SUPPRESS]: "true" };
    const slide = html("input", {
      ...{ type: "range", step, "aria-label": name, oninput: () => set(k, Number(slide.value)) },
      ...common,
    });
    const typed = html("input", {
      ...{ type: "number", step: "any", "aria-label": `${name} as a number`, oninput: () => type(k) },
      ...{ onchange: () => write(k) },
      ...common,
    });
    const row = html(
      "div",
      { class: "gl-slider", title: `${name} from ${low} to ${high}` },
      html("code", {}, short(name, 12)),
      slide,
      typed,
    );
    return { slide, typed, row };
  });

  /** @param {number} k */
  function type(k) {
    const chosen = Number(rows[k].typed.value);
    if (rows[k].typed.value !== "" && Number.isFinite(chosen)) set(k, chosen);
  }

  /**
   * @param {number} k
   * @param {number} to
   */
  function set(k, to) {
    point = point.map((old, j) => (j === k ? clamp(to, inputs[k].low, inputs[k].high) : old));
    write(k);
    moved(point);
  }

  /** @param {number} k */
  function write(k) {
    const { slide, typed } = rows[k],
      { low, high } = inputs[k];
    slide.value = String(point[k]);
    slide.style.setProperty("--gl-from", "0%");
    slide.style.setProperty("--gl-to", `${(100 * (point[k] - low)) / (high - low)}%`);
    if (!hasFocus(typed)) typed.value = String(Number(point[k].toPrecision(10)));
  }

  return {
    root: html("div", { class: "gl-sliders", role: "group", "aria-label": "inputs" }, ...rows.map(({ row }) => row)),

    point: () => point,

    /** @param {number[]} to */
    take(to) {
      point = [...to];
      rows.forEach((_, k) => write(k));
    },
  };
}

export { sliders };
