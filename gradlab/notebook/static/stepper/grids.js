// Small matrices with all their numbers.

import { html } from "../kit/dom.js";
import { said } from "../kit/format.js";
import { rows, text } from "./numbers.js";

/** @import { Held, Real } from "./numbers.js" */

/**
 * What arrived somewhere: a small matrix with all its numbers.
 * @param {Held | null} held
 */
function shown(held) {
  const matrix = rows(held);
  return matrix ? grid(matrix) : text(held);
}

/** @param {Real[][]} matrix */
function grid(matrix) {
  const digits = Math.max(matrix.length, matrix[0].length) > 3 ? 2 : 3,
    lines = matrix.map((row) => html("tr", {}, ...row.map((x) => html("td", {}, said(Number(x), digits)))));
  return html("table", { class: "gl-matrix" }, html("tbody", {}, ...lines));
}

export { grid, shown };
