// The data that Python sends when the view opens (explore/explorer/model.py), and what the view derives from it without the
// kernel: names of nodes, the output of a group of nodes, results of a search.

import { shortNumber } from "../kit/format.js";

/** @import { Picture } from "./rows.js" */

/**
 * The nodes and edges as columns; see explore/explorer/columns.py.
 * @typedef {object} Columns
 * @property {string} kinds
 * @property {number[]} label
 * @property {number[]} name
 * @property {number[]} operation
 * @property {number[]} module
 * @property {number[]} made
 * @property {number[]} place
 * @property {number[]} cell
 * @property {(number | string | null)[]} norm
 * @property {number[]} bytes
 * @property {[number, number][]} odd
 * @property {number[]} none
 * @property {(number | number[])[]} inputs
 */
/** @typedef {[number, number, number, number | null, number | null, string]} Span of source, lines, columns, text */
/** @typedef {{ title: string, lines: [number, string][] }} Source */
/**
 * @typedef {object} About
 * @property {{ out: string, value: string, by: string[], many: string, parts: string[], held: string }} head
 * @property {string} library
 * @property {string} level
 * @property {string[]} levels
 * @property {Columns} nodes
 * @property {string[]} texts
 * @property {Record<string, Picture>} rows of each level except "operations"
 * @property {Source[]} sources
 * @property {Span[]} spans
 * @property {string[]} wheres
 * @property {string} unrecorded
 * @property {any} figure
 * @property {import("./panel.js").Together} whole of all nodes
 * @property {Record<string, string>} terms
 * @property {boolean} sweep
 * @property {boolean} steps whether backward can be stepped through
 * @property {[number, string][]} leaves whose paths can be shown
 */

const LEAF = "l",
  OUTPUT = "u";

class Data {
  /** @param {About} about */
  constructor(about) {
    this.about = about;
    const { nodes, texts } = about;
    this.count = nodes.kinds.length;
    this.nodes = nodes;
    this.texts = texts;
    this.norms = nodes.norm.map((norm) =>
      norm === null ? null : norm === "NaN" ? NaN : norm === "inf" ? Infinity : Number(norm),
    );
    this.odd = new Map(nodes.odd);
    this.none = new Set(nodes.none);
    /** @type {number[][]} the inputs of each node */
    this.inputs = nodes.inputs.map((back, i) => (typeof back === "number" ? [i - back] : back.map((one) => i - one)));
    /** @type {number[][]} */
    this.uses = Array.from({ length: this.count }, () => []);
    this.inputs.forEach((sources, i) => {
      for (const source of sources) this.uses[source].push(i);
    });
  }

  /** @param {number} i */
  label(i) {
    return this.texts[this.nodes.label[i]];
  }
  /** @param {number} i */
  name(i) {
    return this.texts[this.nodes.name[i]];
  }
  /** @param {number} i */
  operation(i) {
    return this.texts[this.nodes.operation[i]];
  }
  /** @param {number} i */
  module(i) {
    return this.texts[this.nodes.module[i]];
  }
  /** @param {number} i */
  made(i) {
    return this.texts[this.nodes.made[i]];
  }
  /** @param {number} i */
  isLeaf(i) {
    return this.nodes.kinds[i] === LEAF;
  }
  /** @param {number} i */
  isOutput(i) {
    return this.nodes.kinds[i] === OUTPUT;
  }
  /**
   * The span of a node's expression in the cell, or else of the line that recorded it; −1 if there is none.
   * @param {number} i
   */
  span(i) {
    return this.nodes.place[i] >= 0 ? this.nodes.place[i] : this.nodes.cell[i];
  }

  /**
   * The nodes of ranges, given as pairs of first node and length.
   * @param {number[]} ranges
   */
  *members(ranges) {
    for (let k = 0; k < ranges.length; k += 2) for (let i = 0; i < ranges[k + 1]; i++) yield ranges[k] + i;
  }

  /**
   * The output of a group of nodes: the last of them that a node outside uses.
   * @param {number[]} ranges
   */
  outputOf(ranges) {
    const inside = new Set(this.members(ranges));
    let found = -1,
      last = -1;
    for (const i of inside) {
      if (this.isLeaf(i)) continue;
      last = Math.max(last, i);
      if (this.uses[i].some((use) => !inside.has(use))) found = Math.max(found, i);
    }
    return found >= 0 ? found : last;
  }

  /**
   * The source and the target of each edge.
   * @returns {[number, number][]}
   */
  ends() {
    return this.inputs.flatMap((sources, target) => sources.map((source) => /** @type {[number, number]} */ ([source, target])));
  }

  /**
   * The nodes that match a query: by size ("‖g‖<1e-6", "g>10", "nan", "inf", "zero", "none"), else by name, label, operation,
   * module or line ("line 6"); all words must match.
   * @param {string} query
   * @returns {number[]}
   */
  find(query) {
    const text = query.trim().toLowerCase();
    if (!text) return [];
    const all = Array.from({ length: this.count }, (_, i) => i),
      size = /^(?:‖g‖|\|g\||g|grad|gradient)\s*(<=|>=|<|>|=|≤|≥)\s*([0-9.e+\-−]+)$/.exec(text);
    if (size) {
      const bound = Number(size[2].replaceAll("−", "-")),
        sign = size[1];
      if (Number.isNaN(bound)) return [];
      return all.filter((i) => {
        const norm = this.norms[i];
        if (norm === null || Number.isNaN(norm)) return false;
        if (sign === "<") return norm < bound;
        if (sign === ">") return norm > bound;
        if (sign === "=") return norm === bound;
        return sign === "<=" || sign === "≤" ? norm <= bound : norm >= bound;
      });
    }
    if (text === "nan" || text === "inf") return all.filter((i) => this.odd.has(i));
    if (text === "none") return all.filter((i) => this.none.has(i));
    if (text === "zero") return all.filter((i) => this.norms[i] === 0);
    const line = /^line\s+(\d+)$/.exec(text);
    if (line) {
      const number = Number(line[1]);
      return all.filter((i) =>
        [this.nodes.place[i], this.nodes.cell[i]].some(
          (at) => at >= 0 && this.about.spans[at][1] <= number && number <= this.about.spans[at][2],
        ),
      );
    }
    const words = text.split(/\s+/);
    return all.filter((i) => {
      const described = [this.label(i), this.name(i), this.operation(i), this.module(i), this.about.wheres[this.span(i)] ?? ""]
        .join(" ")
        .toLowerCase();
      return words.every((word) => described.includes(word));
    });
  }
}

/**
 * A log scale of norms between two powers of ten, as in explore/graph/ports.py; null without norms.
 * @param {(number | null)[]} norms
 */
function scaleOf(norms) {
  const known = /** @type {number[]} */ (norms.filter((norm) => norm !== null && norm > 0 && norm < Infinity));
  if (!known.length) return null;
  const most = known.reduce((a, b) => Math.max(a, b)),
    high = Math.ceil(Math.log10(most) - 1e-9),
    least = known.filter((norm) => norm >= most * 1e-6).reduce((a, b) => Math.min(a, b)),
    low = Math.min(Math.floor(Math.log10(least) + 1e-9), high - 2);
  return {
    text: `${shortNumber(10 ** low)} to ${shortNumber(10 ** high)}`,
    /** @param {number | null} norm from 0 to 1; 0 below the scale */
    part(norm) {
      if (norm === null || !(norm >= 10 ** low)) return 0;
      return Math.min(1, 0.04 + (0.96 * (Math.log10(norm) - low)) / (high - low));
    },
  };
}

export { Data, scaleOf };
