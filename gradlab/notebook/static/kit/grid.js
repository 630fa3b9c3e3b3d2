// Where everything of a heat map stands: cells, labels, the gaps between the parts of the columns, and the strip beside or below.
// Arithmetic alone, from a matrix and the room that there is; `heatmap.js` draws by it and asks it what lies under the pointer.
//
// Cells are as large as the room allows, between a pixel's fraction and 30 px, and not far from square; up to 8 × 8 entries are
// wide enough for their numbers. Labels that would run into one another are left out but for round elements, which stand where
// they are in a cell of many, or upright where the columns are wide enough for that.

import { partOf, roundElements } from "./arrays.js";
import { short } from "./format.js";
import { binOf, clamp } from "./ranges.js";

/** @import { Part } from "./arrays.js" */

/**
 * A matrix to be drawn: cells that each stand for one entry or many, and a vector in the cells' rows or columns.
 * @typedef {object} Matrix
 * @property {[number, number, number, number]} window first row, end of the rows, first column, end of the columns
 * @property {ArrayLike<number>} rowBins the rows at which the cells begin
 * @property {ArrayLike<number>} columnBins
 * @property {ArrayLike<number>} low of each cell, row by row; see cells.js
 * @property {ArrayLike<number>} high
 * @property {ArrayLike<number>} flags
 * @property {number[]} extent the least and the greatest entry of the whole; empty if there is none
 * @property {boolean} across whether the strip stands at the right, so that the outlined line is a column; else below, and a row
 * @property {Strip | null} strip
 * @property {string} stripName
 * @property {number} at the row, or column, that is outlined; −1 for none
 */
/** @typedef {{ low: Float64Array, high: Float64Array, flags: Uint8Array }} Strip */

/**
 * What rows and columns are called; `rows` and `parts` are the arrays that the rows and the columns belong to.
 * @typedef {{ row: (i: number) => string, column: (j: number) => string, rows: Part[], parts: Part[] }} Labels
 */
/** @typedef {{ at: number, name: string }} Tick a label and where its middle is, px */

/** @typedef {ReturnType<typeof measure>} Grid */
/** @typedef {{ i: number, j: number }} Cell row and column of cells; −1: the strip */

const SIDE = 380; // px of a large map
const LARGEST = 30; // px of a cell
const LETTER = 6.3; // px of a character of a label, about
const NUMBERED = 8; // up to so many cells a side have their number in them
const WITH_NUMBER = 50; // px of such a cell: six characters

/**
 * @param {Matrix} matrix
 * @param {number} room px, across
 * @param {Labels} labels
 */
function measure(matrix, room, labels) {
  const m = matrix.rowBins.length,
    n = matrix.columnBins.length,
    { across } = matrix;
  const [first, end, from, to] = matrix.window,
    single = end - first === m && to - from === n,
    numbered = single && m <= NUMBERED && n <= NUMBERED;
  /** @param {number} i an element */
  const rowName = (i) => short(labels.row(i), 14);
  /** @param {number} j an element */
  const columnName = (j) => short(labels.column(j), 14);
  const rowWidth = widest(rowName, matrix.rowBins, 5),
    columnWidth = widest(columnName, matrix.columnBins, 3),
    left = rowWidth + 10;
  const parts = Array.from(matrix.columnBins, (j) => partOf(labels.parts, j)),
    gaps = n ? parts[n - 1] - parts[0] : 0,
    between = gaps && gaps < 20 ? 10 : 0;
  const spare = clamp(room - left - between * gaps - (across ? 56 : 4), 90, SIDE);
  let high = Math.min(LARGEST, SIDE / m),
    wide = Math.min(LARGEST, spare / n);
  high = Math.min(high, Math.max(14, 3 * wide));
  wide = numbered ? Math.min(WITH_NUMBER, spare / n) : Math.min(wide, Math.max(14, 3 * high));
  const gap = Math.min(high, wide) >= 12 ? 2 : Math.min(high, wide) > 6 ? 1 : 0;
  const apart = (n * wide) / Math.max(1, to - from), // px from an element to the next
    upright = single && (columnWidth + 4) / wide > 2 && wide >= 13;
  const named = between > 0 || labels.parts.length > 1,
    top = (named ? 16 : 0) + (upright ? columnWidth + 10 : 20);
  /** @param {number} j */
  const x = (j) => left + j * wide + (between ? (parts[Math.min(j, n - 1)] - parts[0]) * between : 0);
  /** @param {number} i */
  const y = (i) => top + i * high;
  const right = n ? x(n - 1) + wide : left,
    bottom = y(m),
    thick = across && numbered ? WITH_NUMBER : clamp(across ? wide : high, 10, 30); // of the strip
  const columnTicks = roundElements(labels.parts, from, n ? to : from, upright ? 1 : (columnWidth + 4) / apart).map((j) =>
      tick(matrix.columnBins, to, j, columnName(j), x, wide, gap),
    ),
    rowTicks = roundElements(labels.rows, first, m ? end : first, (13 * Math.max(1, end - first)) / (m * high)).map((i) =>
      tick(matrix.rowBins, end, i, rowName(i), y, high, gap),
    );
  const last = columnTicks[columnTicks.length - 1];
  const width = Math.max(
    across ? right + 12 + Math.max(thick, 22) : right + 4,
    upright || !last ? 0 : Math.min(last.at + (last.name.length * LETTER) / 2, right + 24),
  );
  const height = across ? bottom + 4 : bottom + 12 + thick + 4;
  const [stripX, stripY] = [right + 12, bottom + 12];
  const cells = { m, n, x, y, high, wide, gap, left, top, right, bottom, across, numbered };
  return { ...cells, width, height, thick, stripX, stripY, parts, named, upright, rowTicks, columnTicks };
}

/**
 * The label of an element: in the middle of its cell, or where it begins in a cell of many.
 * @param {ArrayLike<number>} bins
 * @param {number} end of the last
 * @param {number} element
 * @param {string} name
 * @param {(k: number) => number} start of a cell, px
 * @param {number} length of a cell, px
 * @param {number} gap
 * @returns {Tick}
 */
function tick(bins, end, element, name, start, length, gap) {
  const k = binOf(bins, element),
    count = (k + 1 < bins.length ? bins[k + 1] : end) - bins[k];
  return { at: start(k) + (count === 1 ? (length - gap) / 2 : ((element - bins[k]) / count) * length), name };
}

/**
 * The width of the longest of some labels, px.
 * @param {(element: number) => string} name
 * @param {ArrayLike<number>} bins
 * @param {number} least characters
 */
function widest(name, bins, least) {
  return LETTER * Math.max(least, ...Array.from(bins, (element) => name(element).length));
}

/**
 * The cell at a place; null where there is none. `anywhere`: the one nearest before, as for a drag that ends outside.
 * @param {Grid} g
 * @param {number} px
 * @param {number} py
 * @returns {Cell | null}
 */
function cellAt(g, px, py, anywhere = false) {
  if (!g.m || !g.n) return null;
  const i = lineAt(g.y, g.m, g.high, py, anywhere),
    j = lineAt(g.x, g.n, g.wide, px, anywhere);
  if (i !== null && j !== null) return { i, j };
  if (!g.across && j !== null && py >= g.stripY && py < g.stripY + g.thick) return { i: -1, j };
  if (g.across && i !== null && px >= g.stripX && px < g.stripX + g.thick) return { i, j: -1 };
  return null;
}

/**
 * @param {(k: number) => number} start
 * @param {number} count
 * @param {number} length
 * @param {number} place
 * @param {boolean} anywhere
 */
function lineAt(start, count, length, place, anywhere) {
  for (let k = count - 1; k >= 0; k--) if (place >= start(k)) return anywhere || place < start(k) + length ? k : null;
  return anywhere ? 0 : null;
}

/**
 * The largest size of a finite number in the matrix or its strip: where the colours end.
 * @param {Matrix} matrix
 */
function boundOf({ extent, strip }) {
  let bound = extent.length ? Math.max(-extent[0], extent[1], 0) : 0;
  if (strip)
    for (const k of strip.high.keys()) if (strip.low[k] <= strip.high[k]) bound = Math.max(bound, -strip.low[k], strip.high[k]);
  return bound;
}

export { measure, cellAt, boundOf };
