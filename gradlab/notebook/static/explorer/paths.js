// Paths: the widths, signs and labels of a picture's edges, which show the contributions to one leaf's gradient. In a folded
// picture, all edges between two boxes are summed.

import { shortNumber } from "../kit/format.js";

/** @import { Weight } from "../kit/graph.js" */
/** @import { Data } from "./data.js" */
/** @import { Picture } from "./operations.js" */

/**
 * The kernel's answer; see explore/graph/paths.py.
 * @typedef {object} Paths
 * @property {number} leaf
 * @property {string} name
 * @property {boolean} scalar
 * @property {number | null} total
 * @property {{ edge: number, amount: number | null, share: number | null, norm: number | null }[]} edges
 * @property {{ node: number, edges: number[], cancels: boolean, text: string }[]} meetings
 * @property {string} why_not
 * @property {string[]} head
 */

const THICKEST = 4.5; // times the usual width of an edge

/**
 * @param {Data} data
 * @param {Picture} picture
 * @param {Paths} paths
 */
function layOutPaths(data, picture, paths) {
  const box = new Map(picture.nodes.flatMap((node, k) => [...data.members(node.members ?? [])].map((i) => [i, k]))),
    between = (/** @type {number | undefined} */ a, /** @type {number | undefined} */ b) => `${a}:${b}`;
  /** @type {Map<string, number[]>} the drawn edges between two boxes */
  const drawn = new Map();
  picture.edges.forEach(([source, target, x], k) => {
    if (x !== undefined) drawn.set(between(source, target), [...(drawn.get(between(source, target)) ?? []), k]);
  });
  /** @type {Map<string, { amount: number, known: boolean }[]>} */
  const flows = new Map();
  const ends = data.ends();
  for (const { edge, amount } of paths.edges) {
    const [source, target] = ends[edge],
      key = between(box.get(source), box.get(target));
    flows.set(key, [...(flows.get(key) ?? []), { amount: amount ?? 0, known: amount !== null }]);
  }
  const most = Math.max(...paths.edges.map(({ amount }) => Math.abs(amount ?? 0)), Number.MIN_VALUE);
  /** @type {Map<number, Weight>} */
  const weights = new Map(),
    /** @type {Map<number, string>} */ labels = new Map();
  for (const [key, found] of flows) {
    const lines = drawn.get(key) ?? [],
      each = lines.length === found.length,
      sum = found.reduce((total, { amount }) => total + amount, 0);
    lines.forEach((k, n) => {
      const { amount, known } = each ? found[n] : { amount: sum, known: found.every((one) => one.known) };
      weights.set(k, { width: 1 + (THICKEST * Math.abs(amount)) / most, sign: known ? Math.sign(amount) || 1 : 1 });
      if (known && (each || n === 0)) labels.set(k, withSign(amount, paths));
    });
  }
  const met = new Map(paths.meetings.filter(({ cancels }) => cancels).map(({ node, text }) => [box.get(node) ?? -1, text]));
  return { weights, labels, met };
}

/**
 * "+24" for a leaf with one element, else the share, "+62 %".
 * @param {number} amount
 * @param {Paths} paths
 */
function withSign(amount, paths) {
  if (!paths.scalar && paths.total) {
    const percent = (100 * amount) / paths.total;
    return `${percent < 0 ? "−" : "+"}${Math.abs(percent) >= 1 || !percent ? Math.abs(percent).toFixed(0) : Math.abs(percent).toFixed(1)} %`;
  }
  return amount > 0 ? `+${shortNumber(amount, 3)}` : shortNumber(amount, 3);
}

export { layOutPaths };
