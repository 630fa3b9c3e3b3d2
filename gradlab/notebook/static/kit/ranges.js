// Windows and bins: panning and zooming along one axis, in whole elements. A window is [from, to); bins are the elements at
// which the cells that stand for several begin. Everything here is arithmetic, so that it is tested without a page.

/** @typedef {[number, number]} Range */

const LEAST = 7; // elements that remain when one zooms in: of an odd number one is in the middle

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/**
 * The window `factor` times as long, about element `at`, or about its middle where `at` is not in it.
 * @param {Range} window
 * @param {number} whole how many elements there are
 * @param {number} at
 * @param {number} factor
 * @returns {Range}
 */
function zoomed([from, to], whole, at, factor) {
  const middle = at >= from && at < to ? at + 0.5 : (from + to) / 2;
  const length = clamp(Math.round((to - from) * factor), Math.min(LEAST, whole), whole);
  const start = clamp(Math.round(middle - length / 2), 0, whole - length);
  return [start, start + length];
}

/**
 * The elements that bin k stands for; `end` is the end of the last.
 * @param {ArrayLike<number>} bins
 * @param {number} k
 * @param {number} end
 * @returns {Range}
 */
function binRange(bins, k, end) {
  return [bins[k], k + 1 < bins.length ? bins[k + 1] : end];
}

/**
 * The bin that element `at` is in: the last that begins at it or before it; −1 if there is none.
 * @param {ArrayLike<number>} bins
 * @param {number} at
 */
function binOf(bins, at) {
  for (let k = bins.length - 1; k >= 0; k--) if (bins[k] <= at) return k;
  return -1;
}

/**
 * "x[3]", or "x[3] … x[5]"
 * @param {(i: number) => string} name
 * @param {Range} range
 */
function rangeText(name, [from, to]) {
  return to - from === 1 ? name(from) : `${name(from)} … ${name(to - 1)}`;
}

export { clamp, zoomed, binRange, binOf, rangeText };
