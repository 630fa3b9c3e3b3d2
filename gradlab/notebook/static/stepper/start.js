// The starting gradient as typed text.

/** @import { Held } from "./numbers.js" */

/**
 * Parse the numbers in a text, "0.5" or "[1, −2, 3]"; null unless there are `count`.
 * @param {string} text
 * @param {number} count
 */
function parseNumbers(text, count) {
  const parts = text
      .replace(/[[\]()]/g, " ")
      .replaceAll("−", "-")
      .split(/[\s,;]+/)
      .filter(Boolean),
    numbers = parts.map(Number);
  return numbers.length === count && numbers.every(Number.isFinite) ? numbers : null;
}

/**
 * The start with all digits.
 * @param {Held | null} held
 */
function exact(held) {
  return (held?.numbers ?? []).map((x) => String(x).replace("-", "−")).join(", ");
}

export { parseNumbers, exact };
