// The starting gradient as it is typed.

/** @import { Held } from "./numbers.js" */

/**
 * The numbers of a text, "0.5" or "[1, −2, 3]"; null if there are not `count` of them.
 * @param {string} text
 * @param {number} count
 */
function parsed(text, count) {
  const parts = text
      .replace(/[[\]()]/g, " ")
      .replaceAll("−", "-")
      .split(/[\s,;]+/)
      .filter(Boolean),
    numbers = parts.map(Number);
  return numbers.length === count && numbers.every(Number.isFinite) ? numbers : null;
}

/**
 * All digits of a start.
 * @param {Held | null} held
 */
function exact(held) {
  return (held?.numbers ?? []).map((x) => String(x).replace("-", "−")).join(", ");
}

export { parsed, exact };
