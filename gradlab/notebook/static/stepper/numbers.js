// A gradient as a short text: its numbers if there are few, else its shape and norm, as Python writes it
// (explore/steps/step_text). Backward is linear in its start, so another scalar start multiplies every gradient.

import { shortNumber } from "../kit/format.js";

/** @typedef {number | string} Real a number, or the name of one that JSON cannot express */
/** @typedef {{ shape: number[], numbers?: Real[], norm?: Real }} Held */

const WIDEST = 26, // characters of a row of numbers
  SIDE = 4; // of a small matrix

/**
 * A gradient multiplied by a factor.
 * @param {Held | null} held
 * @param {number} factor
 * @returns {Held | null}
 */
function times(held, factor) {
  if (!held || factor === 1) return held;
  if (held.numbers) return { shape: held.shape, numbers: held.numbers.map((x) => Number(x) * factor) };
  return { shape: held.shape, norm: Number(held.norm) * Math.abs(factor) };
}

/**
 * "−6", "[0, 3, 12]", "5×4, ‖·‖ 3.24"; "–" for null.
 * @param {Held | null} held
 * @param {number} [most] elements that are written out
 */
function text(held, most = 5) {
  if (!held) return "–";
  const { shape, numbers } = held;
  if (numbers && numbers.length === 1) return shortNumber(Number(numbers[0]));
  if (numbers && numbers.length <= most && shape.length < 2) {
    const row = `[${numbers.map((x) => shortNumber(Number(x), 3)).join(", ")}]`;
    if (row.length <= WIDEST) return row;
  }
  const norm = numbers ? Math.hypot(...numbers.map(Number)) : Number(held.norm);
  return `${shape.join("×") || "scalar"}, ‖·‖ ${shortNumber(norm, 3)}`;
}

/**
 * The rows of a small matrix; null for anything else.
 * @param {Held | null} held
 */
function rows(held) {
  const { shape, numbers } = held ?? { shape: [] };
  if (!numbers || shape.length !== 2 || Math.max(...shape) > SIDE) return null;
  return Array.from({ length: shape[0] }, (_, i) => numbers.slice(i * shape[1], (i + 1) * shape[1]));
}

/**
 * The text at a node: the numbers, or only the norm.
 * @param {Held | null} held
 */
function brief(held) {
  return text(held).replace(/^.*‖·‖ /, "");
}

/**
 * The number of a scalar; null for other shapes.
 * @param {Held | null} held
 */
function scalar(held) {
  return held?.numbers && !held.shape.length ? Number(held.numbers[0]) : null;
}

/**
 * Put a negative factor into parentheses.
 * @param {string} factor
 */
function parenthesize(factor) {
  return factor.startsWith("−") ? `(${factor})` : factor;
}

export { times, text, rows, brief, scalar, parenthesize };
