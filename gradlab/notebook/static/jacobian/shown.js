// The state of a Jacobian view, which its parts read. The kernel's frames change it, and some actions of the user do (weights,
// colours, the cell at the cursor); nothing here touches the page.
//
// Rows and columns are numbered from 0, and named by their labels: in the map, in the box, in sentences.
//
// Rows are computed backward with a cotangent v, columns forward with a tangent u. Most of the view is the same for both; so
// "line" is a row or a column, whichever is stepped through, and the words that differ are properties here.

import { indexOf, label } from "../kit/arrays.js";

/** @import { Part } from "../kit/arrays.js" */
/** @import { Figure } from "../kit/graph.js" */
/** @import { Answer } from "../kit/kernel.js" */
/** @typedef {"rows" | "columns"} By */
/** @typedef {{ i: number, j: number }} Cell row and column of cells; −1: the strip */

/**
 * The constant data (explore/jacobian/view_model.JacobianViewModel.about).
 * @typedef {object} About
 * @property {Part[]} outputs
 * @property {Part[]} inputs
 * @property {number} rows
 * @property {number} columns
 * @property {string} plan how the whole matrix would be computed; empty if it is known
 * @property {By[]} axes that can be stepped through
 * @property {string} backward how a v is applied, in code
 * @property {{ zero: string, retain: string }} unforgettable why a line cannot be forgotten here; empty where it can
 * @property {number} groups number of colours of the plan
 * @property {boolean} forward whether the graph shows what a tangent reaches, or only what it may reach
 * @property {Figure | null} graph
 */

/**
 * The current frame (explore/jacobian/view_model.JacobianViewModel.answer) with all cells. The kernel sends either all cells or the
 * lines that changed.
 * @typedef {object} Frame
 * @property {string} ask the request
 * @property {By} by
 * @property {number} at the line that is shown; −1 for none or a mix
 * @property {[number, number]} centre row and column of a zoom: the middle of the nonzero entries
 * @property {[number, number, number, number]} window
 * @property {ArrayLike<number> & Iterable<number>} rowBins
 * @property {ArrayLike<number> & Iterable<number>} columnBins
 * @property {Float64Array} low
 * @property {Float64Array} high
 * @property {Uint8Array} flags
 * @property {Float64Array} [result] vᵀJ or Ju: the elements shown as numbers
 * @property {Int32Array} [places] their indices
 * @property {number} nonzero number of nonzero elements of the whole result
 * @property {Float64Array} [stripLow] the same in the cells' rows or columns
 * @property {Float64Array} [stripHigh]
 * @property {Uint8Array} [stripFlags]
 * @property {number} filled how many lines are shown
 * @property {number} of how many lines there are
 * @property {boolean} done no line is left to step to
 * @property {boolean} known the whole matrix is shown
 * @property {number[]} extent
 * @property {number} nans
 * @property {number} sweeps run for this frame
 * @property {string} code
 * @property {number[]} lit
 * @property {number[]} litEdges
 * @property {string[]} unused inputs that the output does not depend on
 * @property {boolean} zero zeroing .grad is forgotten
 * @property {boolean} retain retain_graph is forgotten
 * @property {string} trial with either: the resulting .grad
 * @property {string} happened with either: the resulting error
 */

class Shown {
  /** @param {About} about */
  constructor(about) {
    this.about = about;
    /** @type {Frame} */
    this.frame = { ...NOTHING, window: [0, about.rows, 0, about.columns], of: about.rows };
    /** @type {Map<number, number>} the nonzero elements of v or u */
    this.weights = new Map();
    /** @type {Int32Array | null} the colour of each cell, if colours are shown instead of numbers */
    this.classes = null;
    /** @type {number | null} the cell of the keyboard cursor, along the line */
    this.beside = null;
    /** @type {(i: number) => string} */
    this.rowLabel = (i) => label(about.outputs, i);
    /** @type {(j: number) => string} */
    this.columnLabel = (j) => label(about.inputs, j);
  }

  /** Whether columns are stepped through. */
  get across() {
    return this.frame.by === "columns";
  }

  /** How many lines there are. */
  get many() {
    return this.about[this.frame.by];
  }

  /** How many elements a line has. */
  get length() {
    return this.across ? this.about.rows : this.about.columns;
  }

  /** The word for a line: row or column. */
  get line() {
    return this.across ? "column" : "row";
  }

  /** The name of the weights. */
  get letter() {
    return this.across ? "u" : "v";
  }

  /** The name of the result. */
  get product() {
    return this.trial ? ".grad" : this.across ? "Ju" : "vᵀJ";
  }

  /** Whether a line of the loop is left out, so that the view shows a trial. */
  get trial() {
    return this.frame.zero || this.frame.retain;
  }

  /** The cells along which lines follow one another. */
  get lineBins() {
    return this.across ? this.frame.columnBins : this.frame.rowBins;
  }

  /** The cells along a line. */
  get besideBins() {
    return this.across ? this.frame.rowBins : this.frame.columnBins;
  }

  /**
   * The name of a line.
   * @param {number} i
   */
  name(i) {
    return this.across ? this.columnLabel(i) : this.rowLabel(i);
  }

  /**
   * The name of an element of a line.
   * @param {number} i
   */
  elementName(i) {
    return this.across ? this.rowLabel(i) : this.columnLabel(i);
  }

  /** A line of J in a sentence: "row z[0]". @param {number} i */
  title(i) {
    return `${this.line} ${this.name(i)}`;
  }

  /**
   * The line with a name, or a number from 0; −1 if there is none.
   * @param {string} text
   */
  lineOf(text) {
    return indexOf(this.across ? this.about.inputs : this.about.outputs, text);
  }

  /**
   * Take over a frame's changed lines, or all its cells.
   * @param {Answer} answer unpacked
   * @returns {boolean} whether rows and columns changed places
   */
  take(answer) {
    const old = this.frame,
      { low, high, flags, rowBins, columnBins } = answer.whole ? answer : old;
    let from = 0;
    for (const [isColumn, k] of answer.whole ? [] : answer.lines) {
      const length = isColumn ? rowBins.length : columnBins.length;
      for (let p = 0; p < length; p++, from++) {
        const to = isColumn ? p * columnBins.length + k : k * columnBins.length + p;
        low[to] = answer.low[from];
        high[to] = answer.high[from];
        flags[to] = answer.flags[from];
      }
    }
    this.frame = /** @type {Frame} */ (/** @type {unknown} */ ({ ...answer, low, high, flags, rowBins, columnBins }));
    return old.by !== this.frame.by;
  }

  /**
   * Take over the weights of a frame, and reset the cursor if the cells changed.
   * @param {Answer} answer
   * @param {boolean} turned
   */
  follow(answer, turned) {
    this.weights = new Map(Array.from(/** @type {Int32Array} */ (answer.picked), (i, k) => [i, answer.weights[k]]));
    if (turned || answer.ask === "window") this.beside = null;
  }
}

/** @type {Frame} */
const NOTHING = {
  ...{ ask: "", by: "rows", at: -1, nonzero: 0, window: [0, 0, 0, 0], centre: [0, 0], rowBins: [], columnBins: [] },
  ...{ low: new Float64Array(), high: new Float64Array(), flags: new Uint8Array(), extent: [], nans: 0 },
  ...{ filled: 0, of: 0, done: false, known: false, sweeps: 0, code: "", lit: [], litEdges: [], unused: [] },
  ...{ zero: false, retain: false, trial: "", happened: "" },
};

export { Shown };
