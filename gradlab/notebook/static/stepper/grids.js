// Small matrices with all their numbers.

import { html } from "../kit/dom.js";
import { shortNumber } from "../kit/format.js";
import { rows, text } from "./numbers.js";

/** @import { Held, Real } from "./numbers.js" */

/**
 * A gradient: a small matrix with all its numbers, else a short text.
 * @param {Held | null} held
 */
function gridOrText(held) {
  const matrix = rows(held);
  return matrix ? grid(matrix) : text(held);
}

/** @param {Real[][]} matrix */
function grid(matrix) {
  const digits = Math.max(matrix.length, matrix[0].length) > 3 ? 2 : 3,
    lines = matrix.map((row) => html("tr", {}, ...row.map((x) => html("td", {}, shortNumber(Number(x), digits)))));
  return html("table", { class: "gl-matrix" }, html("tbody", {}, ...lines));
}

export { grid, gridOrText };
