// Windows and bins: panning and zooming along one axis, in whole elements. A window is [from, to); bins are the first elements of
// cells that pool several. Everything here is arithmetic, so that it can be tested without a page.

/** @typedef {[number, number]} Range */

const LEAST = 7; // elements of the smallest window; odd, so that one is in the middle

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/**
 * The window `factor` times as long, around element `at`, or around its middle if `at` is not in it.
 * @param {Range} window
 * @param {number} whole number of elements
 * @param {number} at
 * @param {number} factor
 * @returns {Range}
 */
function zoomWindow([from, to], whole, at, factor) {
  const middle = at >= from && at < to ? at + 0.5 : (from + to) / 2;
  const length = clamp(Math.round((to - from) * factor), Math.min(LEAST, whole), whole);
  const start = clamp(Math.round(middle - length / 2), 0, whole - length);
  return [start, start + length];
}

/**
 * The elements of bin k; `end` is the end of the last bin.
 * @param {ArrayLike<number>} bins
 * @param {number} k
 * @param {number} end
 * @returns {Range}
 */
function binRange(bins, k, end) {
  return [bins[k], k + 1 < bins.length ? bins[k + 1] : end];
}

/**
 * The bin of element `at`: the last that begins at or before it; −1 if there is none.
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

export { clamp, zoomWindow, binRange, binOf, rangeText };
